"""Types of terms, and what is refused."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from strategies import Case, programs

from combdiff.errors import TypeMismatchError
from combdiff.ir.domains import Cyclic, Function, Range, Real, Space, Symmetric, Whole
from combdiff.ir.indices import Affine, Indicator, affine, delta
from combdiff.ir.substitution import subterms
from combdiff.ir.terms import Add, Apply, Conj, Lambda, Let, Mul, Number, Primitive, Pullback, Sum, Term, Tuple, Var
from combdiff.ir.types import dtype_of, is_complex, is_domain, join, scalar, type_of

N, M = Range("n"), Range("m")
i, j = Var("i", N), Var("j", M)
b, k = Var("b", Symmetric("B")), Var("k", Cyclic("K"))
A, x = Var("A", Space("n", "m")), Var("x", Space("m", dtype=complex))
s, z, n = Var("s", Space()), Var("z", Space(dtype=complex)), Var("n", Space(dtype=int))
R = Var("R", Function(Space("m", dtype=complex)))
D = Var("D", Function(Space("n"), Space("m"), result=Space("n", "m")))


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (Number(1), scalar(int)),
        (Number(Fraction(1, 2)), scalar(float)),
        (Number(0.5), scalar(float)),
        (Number(1, 1), scalar(complex)),
        (i, N),
        (Var("n", Whole()), Whole()),
        (Affine(((i, 2),), 1), N),
        (affine([(b, -1)], 2), Symmetric("B")),
        (Affine((), 3), Whole()),
        (affine([(Var("N", Whole()), 1), (i, -1)]), N),
        (A, Space("n", "m")),
        (Apply(A, (i, j)), scalar(float)),
        (Apply(x, (j,)), scalar(complex)),
        (Apply(R, (x,)), scalar(float)),
        (Apply(D, (s, s)), Space("n", "m")),
        (Apply(Apply(D, (s, s)), (i, j)), scalar(float)),
        (Lambda((j, i), Apply(A, (i, j))), Space("m", "n")),
        (Lambda((i,), Lambda((j,), Number(1, 1))), Space("n", "m", dtype=complex)),
        (Lambda((k, b), Number(1)), Space(Cyclic("K"), Symmetric("B"), dtype=int)),
        (Lambda((A, x), s), Function(Space("n", "m"), Space("m", dtype=complex))),
        (Sum((i, j), Mul((Apply(A, (i, j)), Apply(x, (j,))))), scalar(complex)),
        (delta(i, i), scalar(int)),
        (Indicator(i), scalar(int)),
        (Add((s, Number(1))), scalar(float)),
        (Mul((n, Number(2))), scalar(int)),
        (Conj(z), scalar(complex)),
        (Primitive("exp", (n,)), scalar(float)),
        (Primitive("exp", (z,)), scalar(complex)),
        (Primitive("abs", (z,)), scalar(float)),
        (Primitive("power", (z, s)), scalar(complex)),
        (Tuple((s, A)), (scalar(float), Space("n", "m"))),
        (Let(((s, Number(1)),), z), scalar(complex)),
        (Pullback(D, 1, (s, s), s), Space("m")),
    ],
)
def test_types(term: Term, expected: object) -> None:
    assert type_of(term) == expected


def test_an_index_shifted_around_a_cycle_is_on_the_cycle() -> None:
    """k + b with k modulo K and b from −B to B, in whichever order the names stand."""
    assert type_of(affine([(k, 1), (b, 1)])) == Cyclic("K")
    assert type_of(affine([(k, 1), (Var("z", Symmetric("B")), 1)])) == Cyclic("K")


def test_helpers() -> None:
    assert join(int, float) is float
    assert join(float, complex, int) is complex
    assert join() is int
    assert is_complex(x)
    assert not is_complex(A)
    assert not is_complex(R)
    assert dtype_of(Apply(x, (j,))) is complex
    assert all(map(is_domain, (N, Cyclic(2), Symmetric(1), Real(), Whole())))
    assert not is_domain(Space())


@pytest.mark.parametrize(
    ("term", "message"),
    [
        (Apply(A, (i,)), "A has order 2, but is read with 1 indices"),
        (Apply(s, (i,)), "s has order 0, but is read with 1 indices"),
        (Apply(i, (i,)), "an index over Range(size='n') cannot be applied"),
        (Add((A, s)), "a number was expected, but this is a tensor of order 2"),
        (Mul((i, s)), "a number was expected, but this is an index over Range(size='n')"),
        (Conj(R), "a number was expected, but this is a map Function("),
        (Sum((i,), Tuple((s, s))), "a number was expected, but this is a tuple of 2 results"),
        (Primitive("sin", (A,)), "a number was expected, but this is a tensor of order 2"),
        (Primitive("relu", (z,)), "relu takes real arguments\n  hint: take cd.real(…) of the argument first"),
        (Pullback(A, 0, (s,), s), "only a named map has a pullback of its own, not a tensor of order 2"),
    ],
)
def test_messages(term: Term, message: str) -> None:
    with pytest.raises(TypeMismatchError, match=re.escape(message)):
        type_of(term)


@settings(max_examples=40, deadline=None)
@given(programs())
def test_every_part_of_a_well_typed_program_has_a_type(case: Case) -> None:
    for node in subterms(case.term):
        assert type_of(node) is not None
    body = type_of(case.term.body)
    assert type_of(case.term) == Function(*(p.type for p in case.term.parameters), result=body)
