"""δ's and conditions of indices that count in several units, as those of arrays that are laid out anew."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from combdiff.ir import (
    Delta,
    Names,
    Range,
    Space,
    SummedProduct,
    Symmetric,
    Term,
    Var,
    affine,
    affine_parts,
    as_integer,
    element,
    function,
    indicator,
    mul,
    total,
)
from combdiff.ir.interpreter import evaluate
from combdiff.simplification.normal_form.delta_solver import solve

UNITS = [1, -1, 2, -2, 3, -3, 4, 6, -6, 12, -11, 7, -12, -22]
KEPT = (Var("d", Range(6)), Var("e", Symmetric(2)))
SUMMED = (Var("i", Range(4)), Var("j", Range(3)), Var("k", Range(2)))
X = Var("x", Space(4, 3, 2))


@st.composite
def conditions(draw: st.DrawFn) -> Term:
    """δ(form, 0), [form ≥ 0] or [form ≡ 0 (mod n)]."""
    indices = draw(st.lists(st.sampled_from((*KEPT, *SUMMED)), min_size=1, max_size=4, unique=True))
    form = affine([(v, draw(st.sampled_from(UNITS))) for v in indices], draw(st.integers(-6, 6)))
    if draw(st.booleans()):
        return indicator(form, draw(st.sampled_from([0, 2, 3, 6, 12])))
    parts, offset = affine_parts(form)
    left = affine([part for part in parts if part[1] > 0], max(offset, 0))
    right = affine([(left, 1), (form, -1)])
    return Delta(left, right, Range(10**6)) if parts else indicator(form)


@st.composite
def windows(draw: st.DrawFn) -> list[Term]:
    """[0 ≤ i − 2j ≤ 1], and a number made of i − 2j: cos(i − 2j), or cos((d − i)/2 + j) of even d − i."""
    index, other = draw(st.permutations(SUMMED))[:2]
    form = affine([(index, draw(st.sampled_from([1, -1]))), (other, draw(st.sampled_from(UNITS)))])
    form = affine([(form, 1)], draw(st.integers(-3, 3)))
    read, more = form, list[Term]()
    if draw(st.booleans()):
        apart = affine([(draw(st.sampled_from(KEPT)), 1), (form, -1)])
        read, more = affine([(apart, Fraction(1, 2))]), [indicator(apart, 2)]
    room = draw(st.integers(0, 4))
    ends = indicator(form), indicator(affine([(form, -1)], room))
    return [*ends, *more, function("cos", as_integer(read))]


def wide(step: int, room: int) -> list[Term]:
    """[0 ≤ step d − step i ≤ room]"""
    form = affine([(KEPT[0], step), (SUMMED[0], -step)])
    return [indicator(form), indicator(affine([(form, -1)], room))]


@given(
    st.lists(conditions(), min_size=1, max_size=3),
    st.one_of(st.just([]), windows()),
    st.sampled_from([[element(X, SUMMED)], []]),  # indices that nothing reads say where something is
)
@example(wide(2, 2), [], [])
@example(wide(2, 1), [], [])
@example(wide(3, 5), [], [])
def test_what_is_solved_in_several_units_has_its_value(factors: list[Term], more: list[Term], read: list[Term]) -> None:
    x = np.random.default_rng(1).normal(size=(4, 3, 2))
    sum_ = SummedProduct(SUMMED, (*factors, *more, *read))
    found = solve(sum_, Names(mul(*sum_.factors)))
    for place in product(range(6), range(-2, 3)):
        given_ = {**dict(zip(KEPT, place, strict=True)), X: x}
        values = [evaluate(total(each.indices, mul(*each.factors)), given_, {}) for each in (sum_, found)]
        np.testing.assert_allclose(values[0], values[1], err_msg=f"{factors} at {place}: {found}")
