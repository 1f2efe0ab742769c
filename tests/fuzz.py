"""New random programs, texts and rule files for as long as one likes: `make fuzz SECONDS=3600`.

Four fifths of the time go to programs (`cd.testing.programs()`): the value and the pullback of each, by every route,
are compared with the reference interpreter and with central differences, on JAX too, and its print is read back; a
quarter of them are shown in every form that there is, with their gradients. The rest goes to the property tests of
texts and rule files, with new seeds.

Invariant: each failure is printed with the seed that draws it again; `python tests/fuzz.py 0 SEED …` does so.
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, given, settings

import combdiff as cd
from combdiff.ir import Implicit, subterms
from combdiff.testing import Case, check_routes, programs

ROOT = Path(__file__).parents[1]
PROPERTIES = (
    "tests/routes/test_lookup_routes.py",
    "tests/differentiation/test_symmetric_parameters.py",
    "tests/simplification/test_hostile_rulefiles.py",
    "tests/stability/test_shifted_sums.py",
    "tests/text",
)
TOGETHER = 20  # programs that one seed draws
NODES = 2_000  # of an e-graph
PATIENCE = 120  # seconds of the processor's after which a program counts as slow
WRONG = (
    *(cd.CombdiffError, AssertionError, ArithmeticError, AttributeError, LookupError, NameError),
    *(RuntimeError, SyntaxError, TypeError, ValueError),
)  # what a program may end in; the next one is tried
CLOSE = 1e-8  # what JAX may differ by, relative to the largest entry


class SlowError(Exception):
    """A program took longer than is waited for."""


# --- programs ------------------------------------------------------------------------------------------------------


def compared(case: Case, number: int) -> None:
    """Every route of a program and of its pullback; JAX for every fourth, which it takes a second to compile."""
    from strategies import assert_reads_back

    with warnings.catch_warnings(), np.errstate(all="ignore"), cd.budget(nodes=NODES):
        warnings.simplefilter("ignore")
        check_routes(case.program, **case.arrays)
        if not any(isinstance(part, Implicit) and part.kind != "solve" for part in subterms(case.term)):
            assert_reads_back(case.term, case.environment, case.sizes)  # prints do not tell where a search starts
        if number % 4 == 0:
            on_jax(case)
        elif number % 4 == 2:
            presented(case)


def on_jax(case: Case) -> None:
    """JAX gives what NumPy gives, for a program and its pullback by the first parameter."""
    import jax

    jax.config.update("jax_enable_x64", True)  # for callbacks too, which run in other threads
    found = jax.jit(lambda arrays: case.program(**arrays))(case.arrays)
    close(found, case.program(**case.arrays))
    if case.scalar and case.points:
        gradient = cd.grad(case.program, case.points[0].name)
        close(jax.jit(lambda arrays: gradient(**arrays))(case.arrays), gradient(**case.arrays))


def presented(case: Case) -> None:
    """A program and its simplified gradient in every form that shows it; the gradient's print is read back."""
    from strategies import assert_reads_back

    shown = [case.program]
    if case.scalar and case.points:
        shown.append(cd.grad(case.program, case.points[0].name))
        if not any(isinstance(part, Implicit) for part in subterms(shown[1].term)):
            assert_reads_back(shown[1].term, case.environment, case.sizes)
    for program in shown:
        str(program), program.latex(), program.matrix(), program.diagram(), program.combinators()
        program.source(), program.cost(), program.explain()


def close(found: Any, expected: Any) -> None:
    one, other = np.asarray(found), np.asarray(expected)
    scale = max(1.0, float(np.max(np.abs(other), initial=0.0)))
    np.testing.assert_allclose(one, other, rtol=0, atol=CLOSE * scale, err_msg="on JAX")


def drawn(seed: int) -> list[Case]:
    """The programs that a seed draws."""
    found: list[Case] = []

    @hypothesis.seed(seed)
    @settings(
        max_examples=TOGETHER,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def collect(case: Case) -> None:
        found.append(case)

    collect()
    return found


def of_programs(first: int, seconds: float) -> int:
    """Compare programs until the time is over; how many failed."""
    end = time.monotonic() + seconds
    counts, causes = Counter[str](), Counter[str]()
    signal.signal(signal.SIGPROF, _give_up)
    for seed in range(first, first + 10**9):
        for number, case in enumerate(drawn(seed)):
            if time.monotonic() > end:
                return counts["failed"]
            one(seed, number, case, counts, causes)
        print(f"seed {seed}: {dict(counts)}", flush=True)
    return counts["failed"]


def one(seed: int, number: int, case: Case, counts: Counter[str], causes: Counter[str]) -> None:
    """Compare one program, and tell what is wrong with it; of one cause three times."""
    signal.setitimer(signal.ITIMER_PROF, PATIENCE, 5)  # again: what is raised while an object is freed is lost
    try:
        compared(case, number)
        _wait_no_more()
        counts["programs agree"] += 1
    except SlowError:
        _wait_no_more()
        counts["slow"] += 1
        print(f"slow: {seed} {number}\n{_printed(case)}\n{case.sizes}", flush=True)
    except WRONG as problem:
        _wait_no_more()
        counts["failed"] += 1
        where = "".join(traceback.format_exception(problem)[-4:])
        cause = re.sub(r"[\d.e+-]+", "#", where)
        causes[cause] += 1
        if causes[cause] <= 3:
            print(f"failed: {seed} {number}\n{_printed(case)}\n{case.sizes}\n{where[:3000]}", flush=True)


def _printed(case: Case) -> str:
    """The program as text, which may be what fails."""
    try:
        return str(case.program)[:2000]
    except WRONG:
        return repr(case.term)[:2000]


def _give_up(*_: object) -> None:
    raise SlowError


def _wait_no_more() -> None:
    signal.setitimer(signal.ITIMER_PROF, 0)


# --- texts and rule files ------------------------------------------------------------------------------------------


def round_(seed: int, seconds: float) -> tuple[int, bool]:
    """How many examples one round tried, and whether all held; a round that takes longer than is left is ended."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "--hypothesis-profile=explore"]
    command += [
        f"--hypothesis-seed={seed}",
        "--hypothesis-show-statistics",
        "-k",
        "random or every or property or fuzz",
    ]
    command += PROPERTIES
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return 0, True
    tried = sum(int(count) for count in re.findall(r"- (\d+) passing, ", done.stdout))
    if done.returncode not in (0, 5):
        print(done.stdout[-6000:], "\nagain with:", " ".join(command[1:]), flush=True)
    return tried, done.returncode in (0, 5)


def of_texts(first: int, seconds: float) -> int:
    """Rounds until the time is over; how many failed."""
    end = time.monotonic() + seconds
    tried = failed = rounds = 0
    while (left := end - time.monotonic()) > 0:
        found, held = round_(first + rounds, left)
        tried, rounds, failed = tried + found, rounds + 1, failed + (not held)
        print(f"round {rounds}: {tried} examples in all, {failed} rounds failed", flush=True)
    return failed


def main(seconds: float, seeds: list[int]) -> int:
    """How many failures were found; with seeds those are tried again, whatever the time."""
    if seeds:
        return sum(again(seed) for seed in seeds)
    first = int(time.time())
    return of_programs(first, 0.8 * seconds) + of_texts(first, 0.2 * seconds)


def again(seed: int) -> int:
    """The programs of one seed."""
    counts, causes = Counter[str](), Counter[str]()
    signal.signal(signal.SIGPROF, _give_up)
    for number, case in enumerate(drawn(seed)):
        one(seed, number, case, counts, causes)
    print(dict(counts))
    return counts["failed"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", nargs="?", type=float, default=600, help="how long new programs are drawn (600)")
    parser.add_argument("seeds", nargs="*", type=int, metavar="seed", help="of programs that are drawn again")
    return parser.parse_args()


if __name__ == "__main__":
    given_ = arguments()
    sys.exit(min(main(given_.seconds, given_.seeds), 100))
