"""Conditions on indices that count from −b, beside elements that are read at other index expressions of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import examples

import combdiff as cd
from combdiff.testing import check_routes

ROWS = 16
FORMS = st.tuples(*[st.integers(-4, 4)] * 3, st.integers(-3, 3))


def summed(forms: list[tuple[int, ...]], rooms: list[int], bound: int | str) -> Any:
    """d ↦ Σ_{|i|≤b, j<3} w[form, j] under conditions 0 ≤ form ≤ room, of d, i and j."""

    def element(w: Any, d: Any, i: Any, j: Any) -> Any:
        read, *others = (a * d + b * i + c * j + e for a, b, c, e in forms)
        inside = (read >= 0) & (read < ROWS)
        for form, room in zip(others, rooms, strict=True):
            inside &= (form >= 0) & (form <= room)
        return cd.where(inside, w[read, j], 0)

    def row(w: cd.Space(ROWS, 3), z: cd.Space(cd.Symmetric(bound))):
        return cd.tensor(lambda d: cd.sum(lambda i, j: element(w, d, i, j) * z[i], j=3), d=6)

    return cd.program(row)


@pytest.mark.thorough
@settings(max_examples=examples(20))
@given(st.lists(FORMS, min_size=2, max_size=3), st.integers(1, 4), st.integers(0, 4))
def test_they_hold_for_the_index_and_not_for_its_place_on_the_axis(
    forms: list[tuple[int, ...]], bound: int, room: int
) -> None:
    rng, rooms = np.random.default_rng(0), [room] * (len(forms) - 1)
    w, z = rng.normal(size=(ROWS, 3)), rng.normal(size=2 * bound + 1)
    values = [check(summed(forms, rooms, b), w, z) for b in (bound, "b")]
    np.testing.assert_allclose(*values)


def check(f: cd.Program, w: Any, z: Any) -> Any:
    check_routes(f, w=w, z=z)
    return f(w, z)


@pytest.mark.parametrize("b", [3, 5])
def test_a_window_that_is_narrower_than_what_is_read(b: int) -> None:
    """Σ_i [−1 ≤ d + 2 i ≤ 0] x[3 d + 4 i + 2] by a loop."""
    x = np.random.default_rng(1).normal(size=12)

    @cd.program
    def f(x: cd.Space(12)):
        def element(d: Any, i: Any) -> Any:
            place = 3 * d + 4 * i + 2
            inside = (d + 2 * i >= -1) & (d + 2 * i <= 0) & (place >= 0) & (place < 12)
            return cd.where(inside, x[place], 0)

        return cd.tensor(lambda d: cd.sum(lambda i: element(d, i), i=cd.Symmetric(b)), d=8)

    expected = [
        sum(x[3 * d + 4 * i + 2] for i in range(-b, b + 1) if -1 <= d + 2 * i <= 0 and 0 <= 3 * d + 4 * i + 2 < 12)
        for d in range(8)
    ]
    np.testing.assert_allclose(f(x), expected)
