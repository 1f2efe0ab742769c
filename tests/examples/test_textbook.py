"""Derivatives beside the forms of textbooks (benchmarks/textbook.txt): a part of them, by length and by value."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import textbook

from combdiff.simplification.fingerprints import SWITCH

EVERY = 8
CHOSEN = textbook.entries()[::EVERY]


@pytest.fixture(autouse=True)
def results_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each derivative is compared on arrival with what it is made of."""
    monkeypatch.setenv(SWITCH, "1")


@pytest.mark.sample(9)
@pytest.mark.parametrize("entry", CHOSEN, ids=lambda entry: entry.title)
def test_derivatives_are_no_longer_than_the_books(entry: textbook.Entry) -> None:
    result = textbook.compared(entry)
    assert result.longer == bool(entry.reason), (result.prints, result.ours, result.books)
    assert not textbook.wrong(entry)


def test_symbols_are_counted_as_printed() -> None:
    assert textbook.symbols("(A, x) ↦ d ↦ 2 Σ_i A[d,i] x[i]") == 12
    assert textbook.symbols("2·Aᵀ·(A·x - b)") == 12
    assert textbook.symbols("t = K⁻¹·y\n1/2·t") == 6 + 3


def test_the_table_is_of_books() -> None:
    table = textbook.entries()
    assert len(table) >= 150
    assert len({(entry.title, entry.book) for entry in table}) == len(table)


DERIVE = """import sys, warnings; sys.path.insert(0, sys.argv[1]); warnings.simplefilter("ignore")
import textbook
for entry in textbook.entries()[2::16]: print(*textbook.prints(entry.derivative), sep="\\n")"""


@pytest.mark.thorough
def test_other_derivatives_read_the_same_under_any_hash_seed_and_number_of_threads() -> None:
    """A sixteenth of the table, none of those chosen above, which two processes derive in half a minute each."""
    root = Path(__file__).parents[2]
    found = []
    for seed, threads in (("0", "1"), ("4242", "4")):
        more = {"PYTHONHASHSEED": seed, "PYTHONPATH": str(root), "PYTHONIOENCODING": "utf-8"}
        more |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), threads)
        command = [sys.executable, "-c", DERIVE, str(root / "benchmarks")]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **more})
        found.append(done.stdout)
    assert found[0].count("↦") > len(CHOSEN) // 3
    assert set(found) == {found[0]}
