"""egglog's compiled module without its package: one and the same, in whatever order they are imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

FIRST = """
import sys
import combdiff as cd

@cd.program
def form(x: cd.Space("n")):
    return (x * x).sum()

assert str(cd.grad(form)) == "x ↦ d ↦ 2 x[d]"
"""

ALIKE = """
import egglog
import egglog.bindings
from combdiff.simplification.egglog_bindings import bindings
assert egglog.bindings is bindings()
graph = egglog.EGraph()
graph.register(egglog.i64(3))
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "code",
    [
        f"{FIRST}assert 'egglog' not in sys.modules",
        FIRST + ALIKE,
        ALIKE + FIRST,
    ],
    ids=["never", "after", "before"],
)
def test_the_package_may_be_imported_at_any_time(code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
