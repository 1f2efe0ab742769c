"""Plans use the memory of arrays that they have freed again, not new pages of the system's."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

CODE = """
import resource
import numpy as np
import combdiff as cd

@cd.program
def f(x: cd.Space("n", "d"), w: cd.Space("d", "d")):
    return np.tanh((x - x.mean(axis=0)) @ w / np.sqrt(x.var(axis=0) + 1)).sum()

def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

gradient, x, w = cd.grad(f, "x"), np.ones((600, 128)), np.eye(128)
for _ in range(3):
    gradient(x, w)
before = pages()
for _ in range(20):
    gradient(x, w)
print((pages() - before) / 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries keep what they keep")
def test_a_plan_that_runs_again_takes_no_new_pages() -> None:
    """Its arrays have 600 kilobytes, 150 pages each."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, encoding="utf-8", check=True)
    assert float(done.stdout) < 50
