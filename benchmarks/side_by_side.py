"""How combdiff and others are timed in one process: one core, results compared first, calls that alternate, medians.

Importing it starts a script of this folder anew where the libraries have read another number of threads, on one core:
XLA makes a pool of threads for the cores it sees, whatever its flags say, and NumPy works with one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
THREADS |= {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", "JAX_ENABLE_X64": "1"}

if (
    getattr(sys.modules["__main__"], "__file__", None)
    and Path(sys.modules["__main__"].__file__ or "").resolve().parent == Path(__file__).resolve().parent
    and any(os.environ.get(name) != value for name, value in THREADS.items())
):
    if hasattr(os, "sched_setaffinity"):  # not on macOS, not on Windows
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **THREADS})

import numpy as np  # noqa: E402


def leaves(value: Any) -> list[Any]:
    """The arrays in tuples of tuples."""
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple | list) else [value]


def agree(ours: Any, theirs: Any, error: float | None = None) -> None:
    """Raises AssertionError unless the arrays agree to 1e-8 of the largest number, or up to an absolute error."""
    for one, two in zip(leaves(ours), leaves(theirs), strict=True):
        expected = np.asarray(two)
        allowed = 1e-8 * np.abs(expected).max() if error is None else error
        np.testing.assert_allclose(one, expected, rtol=1e-8, atol=allowed)


def medians(calls: Mapping[str, Callable[[], Any]], repeats: int, cpu: bool = False) -> dict[str, float]:
    """The middle of the times of calls that alternate, in milliseconds; with `cpu` of the process alone.

    That is the same on a quiet machine, as there is one core, and changes little where other programs run beside.
    """
    clock = time.process_time if cpu else time.perf_counter
    times: dict[str, list[float]] = {each: [] for each in calls}
    for _ in range(repeats):
        for each, call in calls.items():
            call()  # what ran before has left its data in the caches
            begun = clock()
            call()
            times[each].append(clock() - begun)
    return {each: 1e3 * statistics.median(found) for each, found in times.items()}


def options(doc: str | None, names: Iterable[str], repeats: int, **flags: str) -> argparse.Namespace:
    """What a benchmark is told on the command line: names of rows, how often each is timed, `--cpu`, other flags."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=", ".join(names))
    parser.add_argument("--repeats", type=int, default=repeats)
    flags["cpu"] = "time of this process alone, where others run beside"
    for flag, told in flags.items():
        parser.add_argument(f"--{flag}", action="store_true", help=told)
    return parser.parse_args()
