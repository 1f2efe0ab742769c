"""Bounds on lattices: however they are written, the same points meet them."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from combdiff.ir import Range, Var, affine, indicator
from combdiff.polyhedra import enclosed, is_empty, lattice_of, linear, loosest, loosest_room, tightest

D, J = Var("d", Range("n")), Var("j", Range("m"))
FORMS = st.tuples(st.integers(-6, 6), st.integers(-6, 6), st.integers(-6, 6))


def test_examples() -> None:
    lattice = lattice_of([indicator(D, 3)])
    bound = linear(affine([(D, 1), (J, -6)], -1))
    assert tightest(bound, lattice) == bound - 2
    assert loosest(bound, lattice) == bound
    assert loosest(bound - 2, lattice) == bound
    other = linear(affine([(D, 1), (J, 1)]))
    assert tightest(other, lattice) == loosest(other, lattice) == other


def test_the_room_of_what_counts_by_twos_is_no_wider_than_it_was() -> None:
    form = affine([(D, 2), (J, -2)])
    ends = [indicator(form), indicator(affine([(form, -1)], 2))]
    assert [loosest_room(each, ()) for each in enclosed(ends)] == [2, 2]
    assert {loosest_room(each, lattice_of([indicator(D, 3), indicator(J, 3)])) for each in enclosed(ends)} == {2}
    odd = [indicator(D), indicator(affine([(D, -1)], 3)), indicator(affine([(D, 1)], 1), 2)]
    assert [loosest_room(each, lattice_of(odd)) for each in enclosed(odd)] == [4, 3]


@given(FORMS, FORMS, st.integers(2, 6))
def test_the_same_points_meet_them(form: tuple[int, ...], known: tuple[int, ...], modulus: int) -> None:
    written, congruence = (affine([(D, a), (J, b)], c) for a, b, c in (form, known))
    lattice = lattice_of([indicator(congruence, modulus)])
    bounds = [change(linear(written), lattice) for change in (tightest, loosest)]
    for d, j in product(range(12), range(-4, 5)):
        at = {"d": d, "j": j}
        if linear(congruence).evaluate(at) % modulus == 0:
            expected = linear(written).evaluate(at) >= 0
            assert [bound.evaluate(at) >= 0 for bound in bounds] == [expected, expected]


@given(
    shifts=st.tuples(*[st.integers(-5, 5)] * 2),
    sizes=st.tuples(*[st.integers(2, 6)] * 2),
    sign=st.sampled_from([1, -1]),
)
def test_what_two_congruences_leave_is_seen(shifts: tuple[int, int], sizes: tuple[int, int], sign: int) -> None:
    forms = affine([(D, 1)], shifts[0]), affine([(D, sign)], shifts[1])
    conditions = [indicator(form, size) for form, size in zip(forms, sizes, strict=True)]
    met = [n for n in range(60) if not (n + shifts[0]) % sizes[0] and not (sign * n + shifts[1]) % sizes[1]]
    assert is_empty(lattice_of(conditions)) == (not met)
