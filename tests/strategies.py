"""Random programs, under the name that the tests use, and the property that holds of the print of every program."""

from collections.abc import Mapping
from math import ceil
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis.strategies import SearchStrategy

import combdiff as cd
from combdiff.ir.interpreter import evaluate
from combdiff.ir.terms import Lambda, Var
from combdiff.printing.plain import text
from combdiff.testing import programs as all_programs
from combdiff.testing.routes import Case

__all__ = ["ORDERED", "Case", "all_programs", "assert_reads_back", "examples", "programs"]

PLAIN = ("lookups", "empty axes", "matrix functions", "solutions", "recurrences", "maps")


def programs(**options: Any) -> SearchStrategy[Case]:
    """Programs of sums, products, conditions and functions of numbers; each parameter has a derivative."""
    return all_programs(without=PLAIN, **options)


ORDERED = frozenset({"polygamma", "sinc_slope", "jv", "iv", "ive"})
"""Functions whose first argument is an order."""


def examples(ordinarily: int) -> int:
    """The examples of a test where each is dear: so many where others draw 40; in proportion under other profiles."""
    return ceil(ordinarily * settings().max_examples / 40)


def assert_reads_back(
    term: Lambda, arrays: Mapping[Var, Any], sizes: Mapping[str, int], width: int = 100
) -> cd.Program:
    """Read back, the print is the program: its value at the arrays is that of the term."""
    shown = text(term, width)
    found = cd.read(shown, {p.name: p.type for p in term.parameters})
    by_name = {p.name: p for p in found.term.parameters}
    with np.errstate(all="ignore"):
        expected = evaluate(term.body, arrays, dict(sizes))
        value = evaluate(found.term.body, {by_name[p.name]: array for p, array in arrays.items()}, dict(sizes))
    for one, other in zip(_flat(value), _flat(expected), strict=True):
        assert one.shape == other.shape, shown
        scale = max(1.0, float(np.max(np.abs(other), initial=0.0)))
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * scale, err_msg=shown)
    return found


def _flat(value: Any) -> list[Any]:
    return [each for item in value for each in _flat(item)] if isinstance(value, tuple) else [np.asarray(value)]
