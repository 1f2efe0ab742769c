"""Terms: interning, folding constructors, substitution."""

from __future__ import annotations

import gc
import math
import pickle
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import Case, programs

from combdiff.ir import indices as indexing
from combdiff.ir import terms
from combdiff.ir.domains import Cyclic, Function, Range, Real, Space, Whole
from combdiff.ir.indices import (
    Affine,
    Coordinate,
    Indicator,
    affine,
    affine_parts,
    delta,
    indicator,
    size_form,
    unequal,
)
from combdiff.ir.interpreter import evaluate
from combdiff.ir.largest import NOTHING, Magnitude, masked
from combdiff.ir.relations import Relation
from combdiff.ir.substitution import apply, fresh, substitute, subterms, without_shadows
from combdiff.ir.terms import (
    MINUS_ONE,
    ONE,
    ZERO,
    Add,
    Apply,
    Conj,
    Lambda,
    Let,
    Mul,
    Number,
    Primitive,
    Pullback,
    Sum,
    Term,
    Tuple,
    Var,
    add,
    conj,
    exact,
    lambda_,
    let,
    mul,
    negate,
    number,
    total,
)
from combdiff.ir.types import type_of

N = Range("n")
i, j, k = (Var(name, N) for name in "ijk")
c = Var("c", Cyclic("m"))
x, y, A = Var("x", Space("n")), Var("y", Space("n")), Var("A", Space("n", "n"))
s, t, u = (Var(name, Space()) for name in "stu")
R = Var("R", Function(Space("n")))

EVERY_NODE: list[Term] = [
    Number(2),
    s,
    Affine(((i, 2),), 1),
    Apply(x, (i,)),
    Lambda((i,), Apply(x, (i,))),
    Sum((i,), Apply(x, (i,))),
    delta(i, j),
    Indicator(i, 2),
    unequal(affine([(i, 1), (j, -1)])),
    Coordinate(Var("t", Real())),
    Add((s, t)),
    Mul((s, t)),
    Conj(s),
    Primitive("sin", (s,)),
    Relation("less", (s, t)),
    Tuple((s, t)),
    Let(((t, s),), Mul((t, t))),
    Pullback(R, 0, (x,), s),
]


# --- interning


@pytest.mark.parametrize("term", EVERY_NODE, ids=lambda term: type(term).__name__)
def test_equal_terms_are_one_object_also_after_pickling(term: Term) -> None:
    again = type(term)(*(getattr(term, name) for name in term.__dataclass_fields__))
    assert again is term
    assert pickle.loads(pickle.dumps(term)) is term
    assert term.with_children(term.children) is term


def test_every_node_class_is_tried_here() -> None:
    classes = {
        cls for cls in (vars(terms) | vars(indexing)).values() if isinstance(cls, type) and issubclass(cls, Term)
    } - {Term, terms.OverIndices, terms.PrintedNumber}  # bases of others
    assert classes == {type(term) for term in EVERY_NODE}


def test_terms_that_differ_are_different_objects() -> None:
    assert Var("i", Range(3)) is not Var("i", Range(4))
    assert Var("i", Range(3)) is not Var("i", Cyclic(3))
    assert Number(1) is not Number(1.0)
    assert Number(0, 1) is not Number(1)
    assert Number(Fraction(1, 2)) is not Number(0.5)
    assert Indicator(i) is not Indicator(i, 2)
    assert len(set(EVERY_NODE)) == len(EVERY_NODE)


def test_equal_spaces_make_equal_variables() -> None:
    one = Space("n", "n", symmetry=["A[i,j] = A[j,i]"])
    other = Space("n", "n", symmetry=["M[a,b] = M[b,a]"])
    assert Var("A", one) is Var("A", other)


def test_unused_terms_are_forgotten() -> None:
    gc.freeze()  # what there is from before is not looked through
    before = len(terms._interned)
    kept = Mul((Number(123457), Number(765431), s))
    assert len(terms._interned) >= before + 3
    del kept
    gc.collect()
    gc.unfreeze()
    assert len(terms._interned) <= before


def test_terms_are_frozen() -> None:
    with pytest.raises(AttributeError):
        s.name = "other"  # type: ignore[misc]


# --- folding


def test_numbers_are_exact_where_they_can_be() -> None:
    assert number(2) is Number(2)
    assert number(2.0) is Number(2)
    assert number(0.5) is Number(Fraction(1, 2))
    assert number(0.1) is Number(0.1)
    assert number(1 + 0j) is ONE
    assert number(0.1 + 0j).value() == 0.1
    assert number(2 - 0.5j) is Number(2, Fraction(-1, 2))
    assert Number(1, 1).exact
    assert not Number(1, 0.1).exact
    assert Number(1, 1).value() == 1 + 1j
    assert Number(Fraction(1, 4)).value() == 0.25


def test_add_folds() -> None:
    assert add() is ZERO
    assert add(s) is s
    assert add(s, ZERO) is s
    assert add(Number(2), s, Number(Fraction(1, 2)), t) is Add((s, t, Number(Fraction(5, 2))))
    assert add(add(s, t), add(t, ONE)) is Add((s, Mul((Number(2), t)), ONE))
    assert add(s, t, mul(Number(-1), s)) is t
    assert add(mul(Number(Fraction(1, 2)), s, t), mul(Number(Fraction(1, 2)), s, t)) is Mul((s, t))
    assert add(mul(Number(0.5), s), mul(Number(0.5), s)) is s
    assert add(s, Number(Fraction(1, 2)), Number(Fraction(1, 2))) is Add((s, ONE))
    assert add(Number(0, 1), Number(0, -1)) is ZERO
    assert add(s, MINUS_ONE, ONE) is s


def test_mul_folds() -> None:
    assert mul() is ONE
    assert mul(s) is s
    assert mul(s, ONE) is s
    assert mul(s, ZERO, t) is ZERO
    assert mul(s, Number(2), t, Number(Fraction(1, 2))) is Mul((s, t))
    assert mul(s, Number(2), mul(Number(3), t)) is Mul((Number(6), s, t))
    assert mul(Number(0, 1), Number(0, 1)) is MINUS_ONE
    assert negate(negate(s)) is s
    assert negate(Number(2)) is Number(-2)


def test_floats_fold_like_exact_numbers() -> None:
    assert mul(Number(0.1)) is Number(0.1)
    assert mul(Number(0.1), s) is Mul((Number(0.1), s))
    assert mul(mul(Number(0.1), s), t) is Mul((Number(0.1), s, t))
    assert add(Number(0.1)) is Number(0.1)
    assert mul(Number(0), Number(0.1), s) is ZERO
    assert mul(Number(3), Number(0.1)) is Number(0.3)
    assert add(Number(0.1), Number(0.7)) is Number(0.8)
    assert mul(Number(0.1), Number(0.123456789123456)) is Number(0.1 * 0.123456789123456)
    assert mul(Number(1e200), Number(1e200)) is Number(inf)
    assert add(Number(0.9), Number(0.1)) is ONE
    assert mul(Number(0.1), Number(Fraction(1, 9))) is Number(Fraction(1, 90))


def test_a_coordinate_at_a_number_is_that_number() -> None:
    shifted = Coordinate(affine([(i, 2)], 1))
    assert substitute(shifted, {i: j}) is Coordinate(affine([(j, 2)], 1))
    assert substitute(shifted, {i: Affine((), 3)}) is Number(7)


def test_conj_folds() -> None:
    assert conj(conj(s)) is s
    assert conj(Number(1, 2)) is Number(1, -2)
    assert conj(Number(3)) is Number(3)
    assert conj(s) is Conj(s)


def test_delta_and_indicator_fold() -> None:
    assert delta(i, i) is ONE
    assert delta(i, j) is delta(i, j)
    assert indicator(Affine((), 0)) is ONE
    assert indicator(Affine((), -1)) is ZERO
    assert indicator(Affine((), 4), 2) is ONE
    assert indicator(Affine((), 5), 2) is ZERO
    assert indicator(i, 2) is Indicator(i, 2)
    assert delta(i, j).with_children((k, k)) is ONE
    assert Indicator(i).with_children((Affine((), -2),)) is ZERO


def test_sums_and_lets_join() -> None:
    inner = Apply(A, (i, j))
    assert total((i,), Sum((j,), inner)) is Sum((i, j), inner)
    assert total((), s) is s
    assert total((i,), ZERO) is ZERO
    assert let((), s) is s
    assert let([(t, s)], Let(((u, t),), u)) is Let(((t, s), (u, t)), u)
    assert lambda_((), s) is s
    assert lambda_((i,), s) is Lambda((i,), s)


def test_affine_collects() -> None:
    assert affine([(i, 1)]) is i
    assert affine([(i, 1), (j, 1), (i, -1)]) is j
    assert affine([(j, 1), (i, 2)], 3) is Affine(((i, 2), (j, 1)), 3)
    assert affine([(affine([(i, 2)], 1), 3), (j, -1)], -3) is Affine(((i, 6), (j, -1)), 0)
    assert affine([(i, Fraction(1, 2)), (i, Fraction(1, 2))]) is i
    assert affine([], 2) is Affine((), 2)
    assert affine_parts(i) == (((i, 1),), 0)
    assert size_form(3) is Affine((), 3)
    assert size_form("n") is Var("n", Whole())


def test_apply_reduces() -> None:
    tensor = Lambda((i, j), Mul((Apply(x, (i,)), Apply(y, (j,)))))
    assert apply(tensor, (j, i)) is Mul((Apply(x, (j,)), Apply(y, (i,))))
    assert apply(x, (i,)) is Apply(x, (i,))
    assert apply(s, ()) is s


# --- traversal


def test_free_variables() -> None:
    assert Sum((i,), Apply(A, (i, j))).free == {A, j}
    assert Let(((t, s),), mul(t, u)).free == {s, u}
    assert Lambda((x,), Sum((i,), Apply(x, (i,)))).free == frozenset()
    assert Affine(((Var("n", Whole()), 1), (i, -1))).free == {Var("n", Whole()), i}


def test_free_variables_of_sequential_lets() -> None:
    """A name bound by a later binding is free in an earlier value."""
    assert Let(((t, u), (u, s)), mul(t, u)).free == {s, u}


def test_subterms_come_once_and_children_first() -> None:
    shared = Mul((s, t))
    term = Add((shared, Conj(shared)))
    assert list(subterms(term)) == [s, t, shared, Conj(shared), term]


def test_fresh_names() -> None:
    assert fresh(i, {"j"}) is i
    assert fresh(i, {"i"}) is Var("i.1", N)
    assert fresh(Var("i.1", N), {"i.1", "i.2"}) is Var("i.3", N)


# --- substitution


def test_substitution_renames_what_would_capture() -> None:
    term = Sum((i,), Mul((Apply(x, (i,)), s)))
    found = substitute(term, {s: Apply(y, (i,))})
    new = Var("i.1", N)
    assert found is Sum((new,), Mul((Apply(x, (new,)), Apply(y, (i,)))))


def test_substitution_leaves_bound_variables_alone() -> None:
    term = Sum((i,), Apply(x, (i,)))
    assert substitute(term, {i: j}) is term
    assert substitute(Let(((t, s),), t), {t: u}) is Let(((t, s),), t)


def test_substitution_is_simultaneous() -> None:
    assert substitute(Apply(A, (i, j)), {i: j, j: i}) is Apply(A, (j, i))


def test_substitution_renames_lets() -> None:
    term = Let(((t, s), (u, mul(t, t))), mul(u, s))
    found = substitute(term, {s: t})
    assert evaluate(found, {t: 3.0}, {}) == 27.0


def test_a_renamed_let_does_not_meet_a_later_binding() -> None:
    """The new name of t must not be one that a later binding of the same let has."""
    later = Var("t.1", Space())
    term = Let(((t, Number(1)), (later, Number(2))), add(t, s))
    assert evaluate(substitute(term, {s: t}), {t: 10.0}, {}) == 11.0


def test_substituting_a_let_keeps_outer_variables_free() -> None:
    """In `let t = u in s` with s := (let u = 1 in u), the u outside stays free."""
    found = substitute(Let(((t, u),), mul(t, s)), {s: Let(((u, Number(1)),), u)})
    assert u in found.free
    assert evaluate(found, {u: 5.0}, {}) == 5.0
    assert evaluate(substitute(found, {u: Number(7)}), {}, {}) == 7


def test_substituting_shared_terms_takes_linear_time() -> None:
    term: Term = s
    for _ in range(60):
        term = add(ONE, mul(Primitive("sin", (term,)), Primitive("cos", (term,))))
    result = substitute(term, {s: t})
    assert result.free == {t}
    back = substitute(result, {t: s})
    same = back is term  # apart: pytest would write both out
    assert same


def _bound(term: Term) -> list[Var]:
    """Index variables bound anywhere in the term."""
    return sorted({v for node in subterms(term) for v in node.bound if isinstance(v.type, Range)}, key=lambda v: v.name)


@settings(max_examples=20, deadline=None)
@given(st.data(), programs())
def test_substitution_commutes_with_evaluation(data: st.DataObject, case: Case) -> None:
    """⟦t[v := e]⟧ρ = ⟦t⟧ρ[v = ⟦e⟧ρ], where e mentions names that t binds."""
    term = case.term.body
    assume(case.term.parameters[0] in term.free)
    target = data.draw(st.sampled_from([p for p in case.term.parameters if p in term.free]))
    environment: dict[Var, Any] = dict(case.environment)
    replacement = data.draw(_replacements(target, _bound(term), environment))
    before = dict(environment) | {target: evaluate(replacement, environment, case.sizes)}
    found = evaluate(substitute(term, {target: replacement}), environment, case.sizes)
    np.testing.assert_allclose(found, evaluate(term, before, case.sizes), rtol=1e-9, atol=1e-9)


@st.composite
def _replacements(draw: st.DrawFn, target: Var, names: list[Var], environment: dict[Var, Any]) -> Term:
    """A term of the target's type over names that may be captured; their values go into the environment.

    A clashing name is an index, a scalar of the same name as an index, or (for tensors) the index of the Lambda.
    """
    space = target.type
    assert isinstance(space, Space)
    scale = Var("scale", Space())
    environment[scale] = 1.5
    indices = tuple(
        Var(draw(st.sampled_from(["i", "j", "k", "p"])) + f".{n}", axis) for n, axis in enumerate(space.axes)
    )
    old = Apply(target, indices) if indices else target
    term: Term = mul(scale, old)
    if names:
        name = draw(st.sampled_from(names))
        environment[name] = 0
        weights = Var("weights", Space(name.type))
        environment[weights] = np.array([0.5, -2.0, 3.0, 1.0])
        term = add(term, Apply(weights, (name,)))
    return lambda_(indices, term)


@settings(max_examples=20, deadline=None)
@given(programs())
def test_rebuilding_through_the_constructors_keeps_the_value(case: Case) -> None:
    """`with_children` folds (add, mul, total, …); folding never changes a value or a type."""
    rebuilt: dict[Term, Term] = {}
    for node in subterms(case.term.body):
        rebuilt[node] = node.with_children(tuple(rebuilt[child] for child in node.children))
    term = rebuilt[case.term.body]
    found = evaluate(term, case.environment, case.sizes)
    np.testing.assert_allclose(found, evaluate(case.term.body, case.environment, case.sizes), rtol=1e-9, atol=1e-12)
    assert type_of(term).axes == type_of(case.term.body).axes


@settings(max_examples=20, deadline=None)
@given(programs())
def test_programs_survive_pickling(case: Case) -> None:
    assert pickle.loads(pickle.dumps(case.term)) is case.term


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (4 / 3, Fraction(4, 3)),
        (-1 / 3, Fraction(-1, 3)),
        (0.1 + 0.2, Fraction(3, 10)),
        (100 / 7, Fraction(100, 7)),
        (0.5, Fraction(1, 2)),
        (3.0, 3),
        (0.3, 0.3),
        (1e-5, 1e-5),
        (1e-17, 1e-17),
        (math.pi, math.pi),
        (2**0.5, 2**0.5),
        (1 / 3001, 1 / 3001),
        (5e-324, 5e-324),
        (math.inf, math.inf),
    ],
)
def test_a_float_beside_a_small_fraction_is_that_fraction(value: float, expected: Any) -> None:
    found = exact(value)
    assert (found, type(found)) == (expected, type(expected))


@given(st.fractions(max_denominator=1000).filter(lambda f: 0 < abs(f) < 2**20))
def test_fractions_survive_their_floats(fraction: Fraction) -> None:
    found = exact(float(fraction))
    assert found == (fraction if isinstance(found, int | Fraction) else float(fraction))
    assert isinstance(found, int | Fraction) or len(repr(found).strip("-0.")) <= 12


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ij"), st.integers(1, 3)), min_size=2, max_size=4), st.data())
def test_sums_of_sums_over_indices_of_the_same_name_are_joined(
    axes: list[tuple[str, int]], data: st.DataObject
) -> None:
    """What is inside reads its own index: the one around it counts, and has another name then."""
    indices = [Var(name, Range(size)) for name, size in axes]
    read = list({index.name: index for index in indices}.values())
    body: Term = mul(*(Coordinate(data.draw(st.sampled_from(read))) for _ in range(2)))
    joined = body
    for index in reversed(indices):
        body, joined = Sum((index,), body), total((index,), joined)
    assert isinstance(joined, Sum)
    assert len(joined.indices) == len({index.name for index in joined.indices}) == len(indices)
    assert evaluate(joined, {}, {}) == evaluate(body, {}, {})


def test_indices_bound_in_one_another_get_names_of_their_own() -> None:
    """A part may be read apart from its binder then: in Σ_k x[k] Σ_k y[k] it is not told which k is meant."""
    inner = total((k,), Apply(y, (k,)))
    shadowed = Lambda((k,), mul(Apply(x, (k,)), inner, inner))
    found = without_shadows(shadowed)
    assert [sum_.indices for sum_ in subterms(found) if isinstance(sum_, Sum)] == [(Var("k.1", N),)]
    assert found.bound == (k,)
    beside = mul(total((k,), Apply(x, (k,))), inner)
    assert without_shadows(beside) is beside


def test_a_magnitude_keeps_its_degree_where_its_index_is_renamed() -> None:
    found = substitute(Magnitude((i,), Apply(A, (i, j)), 2), {j: i})
    assert isinstance(found, Magnitude)
    assert found.degree == 2
    assert found.indices[0] is not i


def test_conditions_that_are_numbers_hold_or_not() -> None:
    x, holds = Var("x", Space()), Var("c", Space())
    assert masked((ONE, Number(-1)), x) is x
    assert masked((Number(-1), holds), x) == masked((holds,), x)
    assert masked((Number(-1), ZERO, holds), x) == NOTHING
