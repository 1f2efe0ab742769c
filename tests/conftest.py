"""What several test files need, and how Hypothesis draws its examples: the same in every run, so that what fails can
be repeated.

`make test`, which leaves out what is thorough, draws a fifth of the examples.

Tests marked `needs("torch")` are left out where PyTorch is not installed, and a line at the end says so. Those marked
`thorough` are left out by `make test`, and so are all cases but n of a test marked `sample(n)`.

`pytest --hypothesis-profile=explore` draws new ones; `--hypothesis-profile=thousand` a thousand of each
property, and of one whose examples are dear 25 times as many.
"""

import gc
import importlib.metadata
import importlib.util
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from combdiff.ir.primitives import TABLE
from combdiff.simplification.fingerprints import SWITCH

# What some tests need beyond the packages that `make test` installs, by the name of the module.
EXTRAS = {"torch": "PyTorch", "pyscf": "PySCF", "sklearn": "scikit-learn", "matplotlib": "Matplotlib", "mypy": "mypy"}
EXTRAS |= {"nbformat": "nbformat"}

settings.register_profile("repeatable", max_examples=40, derandomize=True, database=None, deadline=None)
settings.register_profile("quick", settings.get_profile("repeatable"), max_examples=8)
settings.register_profile("explore", deadline=None)
settings.register_profile("thousand", max_examples=1000, deadline=None)
settings.load_profile("repeatable")

# Hypothesis also draws numbers that stand in the modules which happen to be loaded: the examples of a test would depend
# on the tests before it, and on every number in the package.
providers._get_local_constants = providers.Constants

# Compiling takes most of JAX's time here, and what is compiled runs once. A version that does not know a flag ends the
# process, so that the newer flags are given to the versions on which they were tried.
XLA_FLAGS = ["--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true"]
if importlib.util.find_spec("jaxlib") and importlib.metadata.version("jaxlib").startswith("0.10."):
    XLA_FLAGS += ["--xla_cpu_use_fusion_emitters=false", "--xla_cpu_use_xnnpack=false"]
    XLA_FLAGS += ["--xla_cpu_parallel_codegen_split_count=1"]
os.environ.setdefault("XLA_FLAGS", " ".join(XLA_FLAGS))

# Terms are many small objects that live long: looking for cycles among them at every turn takes a tenth of the time.
gc.set_threshold(200_000, 20, 50)

# Rooms whose tests compare each simplified program with what it was made of; the environment may say 0 or 1 for all.
COMPARED = {"api", "differentiation", "hessians", "ir", "printing", "routes"}
COMPARED |= {"simplification", "stability", "text", "tracing"}
ASKED_FOR = os.environ.get(SWITCH)

# The state of each generator of a test module, by its identity, where the first of its tests begins.
BEGINNINGS: dict[int, Mapping[str, Any]] = {}


@pytest.hookimpl(tryfirst=True)  # before a profile that is asked for by name
def pytest_configure(config: pytest.Config) -> None:
    """Draws few examples where tests that are thorough are left out."""
    if "not thorough" in config.option.markexpr:
        settings.load_profile("quick")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks as thorough what is beyond a test's sample, and skips what needs a package that is not installed."""
    cases: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if isinstance(item, pytest.Function) and "sample" in marks and marks.isdisjoint({"needs", "thorough"}):
            cases[item.nodeid.partition("[")[0]].append(item)
    for alike in cases.values():
        (n,) = next(alike[0].iter_markers("sample")).args
        for item in set(alike).difference(sample(alike, n)):
            item.add_marker("thorough")
    installed = {name: importlib.util.find_spec(name) is not None for name in EXTRAS}
    for item in items:
        for mark in item.iter_markers("needs"):
            (name,) = mark.args
            if not installed[name]:
                item.add_marker(pytest.mark.skip(reason=f"{EXTRAS[name]} is not installed"))


@pytest.hookimpl(tryfirst=True)  # before fixtures draw numbers
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Switches the comparison of results on or off for a test."""
    if ASKED_FOR is None:
        os.environ[SWITCH] = str(int(item.path.parent.name in COMPARED))
    if isinstance(item, pytest.Function):
        rewind(item.module)


def rewind(module: ModuleType) -> None:
    """Lets a module's generator begin again, so that a test's numbers do not depend on the tests that ran before it."""
    for value in vars(module).values():
        if isinstance(value, np.random.Generator):
            beginning = BEGINNINGS.setdefault(id(value), value.bit_generator.state)
            value.bit_generator.state = beginning


def sample(cases: Sequence[pytest.Function], n: int) -> list[pytest.Function]:
    """So many of a test's cases, from all over the list, each with the most values that no case before it has.

    Of cases that are pairs of a program and a library, every library comes once before one comes twice.
    """
    golden = (5**0.5 - 1) / 2  # multiples of it, modulo 1, lie evenly however many are taken
    left = sorted(range(len(cases)), key=lambda k: k * golden % 1)
    chosen: list[pytest.Function] = []
    seen: Counter[tuple[str, int]] = Counter()
    while left and len(chosen) < n:
        best = min(left, key=lambda k: sum(seen[value] for value in cases[k].callspec.indices.items()))
        left.remove(best)
        chosen.append(cases[best])
        seen.update(cases[best].callspec.indices.items())
    return chosen


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tells how many tests were left out, and what would run them."""
    reasons = Counter(report.longrepr[2] for report in terminalreporter.getreports("skipped"))
    missing = [f"{n} as {reason.removeprefix('Skipped: ')}" for reason, n in sorted(reasons.items())]
    if any(reason.endswith("is not installed") for reason in missing):
        terminalreporter.write_line(f"left out: {'; '.join(missing)} (`make test-all` installs everything)")


@pytest.fixture
def results_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets false laws give false results."""
    monkeypatch.setenv(SWITCH, "0")


@pytest.fixture
def primitive_table() -> Iterator[None]:
    """Gives the table of primitives back as it was."""
    before = dict(TABLE)
    yield
    TABLE.clear()
    TABLE.update(before)


@pytest.fixture
def rule_file(tmp_path: Path) -> Callable[..., str]:
    """Writes a rule file and gives its path."""

    def write(text: str, name: str = "mine.egg") -> str:
        (tmp_path / name).write_text(text, "utf-8")
        return str(tmp_path / name)

    return write
