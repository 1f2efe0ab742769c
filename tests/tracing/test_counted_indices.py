"""Counted numbers as indices: Z[cd.arange(n), labels], which is Z[i, labels[i]]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, back, converted

import combdiff as cd

TABLE, LABELS = np.random.default_rng(0).normal(size=(5, 5)), np.array([0, 3, 1, 2, 0])
Table, Labels = cd.Space("n", "m"), cd.Space("n", dtype=int)

# programs of a table Z, labels y and their number n, as they are printed; `r` is cd.arange or NumPy's
READ: dict[str, tuple[Callable[..., Any], str]] = {
    "labels": (lambda Z, y, n, r: Z[r(n), y], "i ↦ Z[i,y[i]]"),
    "the diagonal": (lambda Z, y, n, r: Z[r(3), r(3)], "i<3 ↦ Z[i,i]"),
    "neighbours": (lambda Z, y, n, r: Z[r(n - 1) + 1] * Z[r(n - 1)], "(i<n - 1, j) ↦ Z[i + 1,j] Z[i,j]"),
    "every other": (lambda Z, y, n, r: Z[:, 2 * r(2) + 1], "(i, j<2) ↦ Z[i,2j + 1]"),
    "a grid": (lambda Z, y, n, r: Z[r(n)[:, None], r(3)], "(i, j<3) ↦ Z[i,j]"),
    "backwards": (lambda Z, y, n, r: Z[r(n)[::-1], y], "i ↦ Z[n - i - 1,y[i]]"),
    "beside labels": (lambda Z, y, n, r: Z[r(n), (y + r(n)) - y], "i ↦ Z[i,i]"),
    "squares": (lambda Z, y, n, r: Z[r(3) * r(n)[:3]], "(i<3, j) ↦ Z[i²,j]"),
    "one of them": (lambda Z, y, n, r: Z[r(n)[2]], "i ↦ Z[2,i]"),
}


def traced(name: str) -> cd.Program:
    body = READ[name][0]

    @cd.program
    def read(Z: Table, y: Labels):
        return body(Z, y, Z.shape[0], cd.arange)

    return read


@pytest.mark.parametrize("name", READ)
def test_they_read_what_numpys_do(name: str) -> None:
    body, printed = READ[name]
    program, expected = traced(name), body(TABLE, LABELS, 5, np.arange)
    assert str(program) == f"(Z, y) ↦ {printed}"
    np.testing.assert_array_equal(program(TABLE, LABELS), expected)
    cotangent = np.random.default_rng(1).normal(size=expected.shape)
    slope = np.zeros_like(TABLE)
    for place in np.ndindex(*TABLE.shape):
        unit = np.zeros_like(TABLE)
        unit[place] = 1e-6
        ends = [body(TABLE + sign * unit, LABELS, 5, np.arange) for sign in (1, -1)]
        slope[place] = np.sum(cotangent * (ends[0] - ends[1])) / 2e-6
    for simplified in (True, False):
        found = cd.pullback(program, "Z", simplify=simplified)(TABLE, LABELS, cotangent)
        np.testing.assert_allclose(found, slope, atol=1e-8)


@pytest.mark.sample(2)
@pytest.mark.parametrize("library", BACKENDS)
@pytest.mark.parametrize("name", ["labels", "squares", "every other"])
def test_other_libraries_agree(name: str, library: str) -> None:
    program = traced(name)
    expected = program(TABLE, LABELS)
    np.testing.assert_allclose(back(program(*converted(library, (TABLE, LABELS)))), expected, rtol=1e-6)
    pull = cd.pullback(program, "Z")
    found = back(pull(*converted(library, (TABLE, LABELS, expected))))
    np.testing.assert_allclose(found, pull(TABLE, LABELS, expected), rtol=1e-5)


@pytest.mark.parametrize(
    ("read", "position"), [(lambda x: x[cd.arange(6)], "i = 3"), (lambda x: x[cd.arange(3) * cd.arange(3)], "= 4")]
)
def test_what_leaves_the_axis_is_refused(read: Callable[[Any], Any], position: str) -> None:
    @cd.program
    def f(x: cd.Space("n")):
        return np.sum(read(x))

    for program in (f, cd.pullback(f, "x", simplify=False)):
        with pytest.raises(cd.IndexingError, match=position):
            program(*[np.ones(3), 1.0][: len(program.parameters)])
