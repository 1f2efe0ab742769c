"""Index expressions that two conditions keep between 0 and a number."""

from __future__ import annotations

import pytest

from combdiff.ir import Indicator, Range, Term, Var, affine, delta, indicator
from combdiff.polyhedra import enclosed

d, j = Var("d", Range("n")), Var("j", Range("m"))
FORM = affine([(d, 1), (j, -3)])


def kept_within(form: Term, room: int) -> list[Term]:
    return [indicator(form), indicator(affine([(form, -1)], room))]


def test_each_is_found_either_way_around() -> None:
    low, high = kept_within(FORM, 2)
    back = affine([(j, 3), (d, -1)], 2)
    assert {*enclosed([low, high])} == {(FORM, 2, (low, high)), (back, 2, (high, low))}


@pytest.mark.parametrize("room", [0, 1, 5])
def test_constants_belong_to_the_expression(room: int) -> None:
    shifted = affine([(FORM, 1)], -4)
    assert (shifted, room) in [each[:2] for each in enclosed(kept_within(shifted, room))]


def test_what_is_on_one_side_of_a_bound_or_nowhere_is_not_enclosed() -> None:
    others = [Indicator(FORM, 3), Indicator(affine([(d, -1), (j, 3)], 2), 2), delta(d, j, d.type)]
    assert not [*enclosed([indicator(FORM), *others])]
    assert not [*enclosed(kept_within(FORM, -1))]  # nothing is ≥ 0 and ≤ −1
    assert not [*enclosed([indicator(FORM), indicator(affine([(d, -1), (j, 2)], 2))])]
