"""Canonical names of bound indices: one object for equal networks, different objects for different ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from elements import at
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from combdiff.ir.domains import Cyclic, Function, Range, Space, Symmetric
from combdiff.ir.implicit import Implicit
from combdiff.ir.indices import affine, delta, indicator
from combdiff.ir.interpreter import evaluate
from combdiff.ir.iteration import Scan
from combdiff.ir.let_form import canonical_names
from combdiff.ir.primitives import TABLE, function, power
from combdiff.ir.substitution import substitute
from combdiff.ir.terms import (
    ONE,
    ZERO,
    Apply,
    Conj,
    Lambda,
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
    mul,
    negate,
    total,
)
from combdiff.simplification.normal_form import canonical as module
from combdiff.simplification.normal_form.canonical import canonical
from combdiff.simplification.normal_form.reindexings import MOST_MOVES, moves
from combdiff.testing.arrays import random_array

GIVEN: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
}
SIZES = {"n": 2}

EIGHTFOLD = ["J[p,q,r,s] = J[q,p,r,s]", "J[p,q,r,s] = J[p,q,s,r]", "J[p,q,r,s] = J[r,s,p,q]"]
TENSORS = (
    Var("x", Space("n")),
    Var("z", Space("n", dtype=complex)),
    Var("G", Space("n", "n")),
    Var("S", Space("n", "n", symmetry=["S[i,j] = S[j,i]"])),
    Var("A", Space("n", "n", symmetry=["A[i,j] = -A[j,i]"])),
    Var("H", Space("n", "n", dtype=complex, symmetry=["H[i,j] = conj(H[j,i])"])),
    Var("J", Space("n", "n", "n", "n", symmetry=EIGHTFOLD)),
    Var(
        "K",
        Space(*"nnnn", dtype=complex, symmetry=["K[p,q,r,s] = K[r,s,p,q]", "K[p,q,r,s] = conj(K[q,p,s,r])"]),
    ),
)
S, A = TENSORS[3], TENSORS[4]
d = Var("d", Range("n"))  # a free index


def index(name: str, domain: Any = None) -> Var:
    return Var(name, domain or Range("n"))


def test_nodes_that_differ_beside_their_children_have_forms_of_their_own() -> None:
    """It was 0 what a step begins with less what it ends with."""
    x, w = TENSORS[0], Var("w", Space("n"))
    move = Lambda((Var("t", Range("n")), w), Tuple((w, w)))
    results = [Scan(move, (x,), kind, component) for kind in ("before", "after") for component in (0, 1)]
    results += [Scan(move, (x,), "after", 0, reverse=True)]
    solutions = [Implicit(kind, Lambda((w,), w), x) for kind in ("root", "solve")]
    force = Var("L", Function(Space("n"), Space("n"), result=Space()))
    slopes = [Pullback(force, position, (x, x), ONE) for position in (0, 1)]
    for alike, at_ in ((results, (d, d)), (solutions, (d,)), (slopes, (d,))):
        elements = [Apply(each, at_) for each in alike]
        assert len({canonical(each) for each in elements}) == len(elements)
        assert all(canonical(add(one, negate(other))) is not ZERO for one, other in itertools.pairwise(elements))


def test_a_free_index_named_as_canonical_forms_name_theirs_is_not_bound() -> None:
    """As in a part of a canonical form; it was Σ_{@0.0.0} G[@0.0.0,@0.0.0] x[@0.0.0]."""
    x, _, G = TENSORS[:3]
    row, column = index("i"), index("j")
    plain = total((column,), mul(at(G, row, column), at(x, column)))
    for name in ("@0.0", "@0.0.0", "@0.1"):
        free = index(name)
        found = canonical(substitute(plain, {row: free}))
        assert found.free == {x, G, free}
        assert canonical_names(found) is canonical_names(substitute(plain, {row: free}))


def variants(access: Term) -> Iterator[tuple[int, Term]]:
    """Every form of an access (perhaps conjugated) under the symmetries of its tensor, with its sign."""
    starred = isinstance(access, Conj)
    inner = access.body if isinstance(access, Conj) else access
    assert isinstance(inner, Apply)
    assert isinstance(inner.function, Var)
    space = inner.function.type
    assert isinstance(space, Space)
    for action in space.group:
        moved = Apply(inner.function, tuple(inner.arguments[a] for a in action.axes))
        star = space.dtype is complex and starred != action.conjugate
        yield action.sign, conj(moved) if star else moved


def factors_of(term: Sum) -> tuple[Term, ...]:
    return term.body.factors if isinstance(term.body, Mul) else (term.body,)


@st.composite
def networks(draw: st.DrawFn, most: int = 5, accesses: int = 4) -> Sum:
    """A Σ over up to `most` indices of a product of accesses, each index used; one free index may occur."""
    indices = [index(name) for name in "abcde"[: draw(st.integers(1, most))]]
    factors: list[Term] = []
    for _ in range(draw(st.integers(1, accesses))):
        tensor = draw(st.sampled_from(TENSORS))
        assert isinstance(tensor.type, Space)
        arguments = [draw(st.sampled_from([*indices, *indices, d])) for _ in range(tensor.type.order)]
        access = at(tensor, *arguments)
        factors.append(conj(access) if tensor.type.dtype is complex and draw(st.booleans()) else access)
    used = tuple(i for i in indices if any(i in f.free for f in factors))
    assume(used)
    return Sum(used, mul(*factors))


@st.composite
def moved(draw: st.DrawFn, network: Sum) -> tuple[int, Sum]:
    """The same network after a random relabelling, reordering and choice of symmetric forms, and its sign."""
    fresh_names = draw(st.permutations([f"f{n}" for n in range(len(network.indices))]))
    renaming = {i: Var(name, i.type) for i, name in zip(network.indices, fresh_names, strict=True)}
    sign, factors = 1, []
    for factor in factors_of(network):
        one, form = draw(st.sampled_from(list(variants(factor))))
        sign *= one
        factors.append(renamed(form, renaming))
    order = draw(st.permutations(factors))
    indices = draw(st.permutations([renaming[i] for i in network.indices]))
    return sign, Sum(tuple(indices), mul(*order))


def renamed(access: Term, renaming: dict[Var, Var]) -> Term:
    inner = access.body if isinstance(access, Conj) else access
    assert isinstance(inner, Apply)
    moved_ = Apply(inner.function, tuple(renaming.get(a, a) for a in inner.arguments))  # type: ignore[call-overload]
    return conj(moved_) if isinstance(access, Conj) else moved_


# --- one object for equal networks ---------------------------------------------------------------------------------


@settings(max_examples=20, **GIVEN)
@given(st.data())
def test_names_order_and_symmetric_forms_do_not_matter(data: st.DataObject) -> None:
    network = data.draw(networks())
    sign, other = data.draw(moved(network))
    forms: dict[Any, int] = {}
    one, two = canonical(network, forms), canonical(other, forms)
    assert two is (negate(one) if sign < 0 else one)
    assert canonical(one, forms) is one or one is ZERO


@st.composite
def richer(draw: st.DrawFn) -> Sum:
    """A Σ whose factors are accesses, sums of accesses, inner sums and functions of them."""
    indices = [index(name) for name in "abc"]
    inner = index("e")

    def access(scope: list[Var]) -> Term:
        tensor = draw(st.sampled_from([S, A, A, TENSORS[0], TENSORS[2], TENSORS[5]]))
        assert isinstance(tensor.type, Space)
        return at(tensor, *(draw(st.sampled_from(scope)) for _ in range(tensor.type.order)))

    def factor() -> Term:
        kind = draw(st.sampled_from(["access", "sum", "function", "inner", "conjugate"]))
        if kind == "access":
            return access(indices)
        if kind == "sum":
            return add(access(indices), negate(access(indices)) if draw(st.booleans()) else access(indices))
        if kind == "function":
            return Primitive(draw(st.sampled_from(["sin", "exp"])), (access(indices),))
        if kind == "conjugate":
            return conj(Primitive("exp", (access(indices),)))
        return Sum((inner,), mul(access([inner]), access([inner, *indices])))

    factors = [factor() for _ in range(draw(st.integers(1, 4)))]
    used = tuple(i for i in indices if any(i in f.free for f in factors))
    assume(used)
    return Sum(used, mul(*factors))


@settings(max_examples=25, **GIVEN)
@given(st.data())
def test_renamed_networks_of_sums_and_functions_are_one(data: st.DataObject) -> None:
    """The value is kept, and renaming and reordering do not change the object."""
    network = data.draw(richer())
    assume(isinstance(network.body, Mul))
    rng = np.random.default_rng(2)
    arrays: dict[Var, Any] = {tensor: random_array(tensor.type, rng, SIZES) for tensor in TENSORS}  # type: ignore
    forms: dict[Any, int] = {}
    one = canonical(network, forms)
    assert evaluate(one, arrays, SIZES) == pytest.approx(evaluate(network, arrays, SIZES), rel=1e-10, abs=1e-10)
    names = data.draw(st.permutations("pqr"))
    renaming = {i: index(name) for i, name in zip(network.indices, names, strict=False)}
    factors = data.draw(st.permutations(factors_of(network)))
    body = substitute(mul(*factors), renaming)  # type: ignore[arg-type]
    indices = data.draw(st.permutations([renaming[i] for i in network.indices]))
    assert canonical(Sum(tuple(indices), body), forms) is one


@settings(max_examples=12, **GIVEN)
@given(networks())
def test_the_value_is_unchanged(network: Sum) -> None:
    rng = np.random.default_rng(1)
    arrays: dict[Var, Any] = {tensor: random_array(tensor.type, rng, SIZES) for tensor in TENSORS}  # type: ignore
    for place in (0, 1):
        expected = evaluate(network, {**arrays, d: place}, SIZES)
        found = evaluate(canonical(network), {**arrays, d: place}, SIZES)
        assert found == pytest.approx(expected, rel=1e-10, abs=1e-10)


# --- the oracle ----------------------------------------------------------------------------------------------------


def all_forms(network: Sum) -> dict[tuple[Any, ...], set[int]]:
    """Every way to write a network with the indices 0, 1, …: sorted factors, with the signs they come with."""
    found: dict[tuple[Any, ...], set[int]] = {}
    for names in itertools.permutations(range(len(network.indices))):
        place = dict(zip(network.indices, names, strict=True))
        for choice in itertools.product(*(list(variants(f)) for f in factors_of(network))):
            key = tuple(sorted(_written(form, place) for _, form in choice))
            sign = int(np.prod([one for one, _ in choice]))
            found.setdefault(key, set()).add(sign)
    return found


def _written(access: Term, place: dict[Var, int]) -> tuple[Any, ...]:
    inner = access.body if isinstance(access, Conj) else access
    assert isinstance(inner, Apply)
    assert isinstance(inner.function, Var)
    return inner.function.name, isinstance(access, Conj), tuple(place.get(a, -1) for a in inner.arguments)  # type: ignore


@settings(max_examples=20, **GIVEN)
@given(networks(most=4, accesses=3), networks(most=4, accesses=3))
def test_different_networks_have_different_forms(one: Sum, other: Sum) -> None:
    """Two random networks are one object exactly when brute force finds a common way to write them."""
    forms: dict[Any, int] = {}
    first, second = canonical(one, forms), canonical(other, forms)
    mine, theirs = all_forms(one), all_forms(other)
    assert (first is ZERO) == any(len(signs) > 1 for signs in mine.values())
    assert (second is ZERO) == any(len(signs) > 1 for signs in theirs.values())
    if first is ZERO or second is ZERO or len(one.indices) != len(other.indices):
        return
    common = mine.keys() & theirs.keys()
    assert (first is second or first is negate(second)) == bool(common)


@settings(max_examples=15, **GIVEN)
@given(st.data())
def test_networks_of_one_tensor_are_told_apart(data: st.DataObject) -> None:
    """Small graphs as products of S, five indices: equal exactly when they are isomorphic."""
    points = [index(name) for name in "abcde"]
    pairs = list(itertools.combinations(points, 2))
    graphs = [data.draw(st.lists(st.sampled_from(pairs), min_size=3, max_size=6)) for _ in range(2)]
    sums = [Sum(tuple(i for i in points if any(i in p for p in g)), mul(*(at(S, *p) for p in g))) for g in graphs]
    forms: dict[Any, int] = {}
    one, other = (canonical(term, forms) for term in sums)
    assert (one is other) == (_graph_key(graphs[0], points) == _graph_key(graphs[1], points))


def _graph_key(graph: list[tuple[Var, Var]], points: list[Var]) -> tuple[Any, ...]:
    """The least way to write a multigraph, over all namings."""
    keys = []
    for names in itertools.permutations(range(len(points))):
        place = dict(zip(points, names, strict=True))
        keys.append(tuple(sorted(tuple(sorted((place[a], place[b]))) for a, b in graph)))
    return min(keys)


def test_domains_tell_indices_apart() -> None:
    a, b = index("a"), index("b", Range("m"))
    T = Var("T", Space("n", "m"))
    U = Var("T", Space("m", "n"))
    forms: dict[Any, int] = {}
    assert canonical(Sum((a, b), at(T, a, b)), forms) is not canonical(Sum((a, b), at(U, b, a)), forms)


def test_free_indices_keep_their_names() -> None:
    a, e = index("a"), index("e")
    forms: dict[Any, int] = {}
    one = canonical(Sum((a,), mul(at(S, a, d), at(TENSORS[0], a))), forms)
    other = canonical(Sum((a,), mul(at(S, e, a), at(TENSORS[0], a))), forms)
    assert one is not other
    assert d in one.free
    assert e in other.free


def test_equal_sums_in_one_term_get_equal_names_and_different_sums_different_ones() -> None:
    a, b, c = index("a"), index("b"), index("c")
    x, z = TENSORS[0], TENSORS[1]
    square = lambda i: Sum((i,), mul(at(x, i), at(x, i)))  # noqa: E731
    result = canonical(mul(square(a), square(b), Sum((c,), at(z, c))))
    assert isinstance(result, Mul)
    sums = [f for f in result.factors if isinstance(f, Sum)]
    assert len(set(sums)) == 2
    (one, other) = set(sums)
    assert not set(one.indices) & set(other.indices)


# --- zero by symmetry ----------------------------------------------------------------------------------------------


def test_what_equals_its_negative_is_zero() -> None:
    a, b, c = index("a"), index("b"), index("c")
    x, G = TENSORS[0], TENSORS[2]
    assert canonical(Sum((a, b), mul(at(x, a), at(A, a, b), at(x, b)))) is ZERO
    assert canonical(Sum((a, b), mul(at(S, a, b), at(A, a, b)))) is ZERO
    assert canonical(Sum((a, b, c), mul(at(A, a, b), at(A, b, c), at(A, c, a)))) is ZERO
    assert canonical(Sum((a,), mul(at(A, a, a), at(x, a)))) is ZERO
    assert canonical(Sum((a, b), mul(at(G, a, b), at(A, a, b)))) is not ZERO
    assert canonical(Sum((a, b), mul(at(A, a, b), at(A, a, b)))) is not ZERO


def exp(term: Term) -> Term:
    return Primitive("exp", (term,))


SIGNED = {
    "function": lambda a, b: mul(at(A, a, b), exp(at(A, a, b))),
    "sum": lambda a, b: mul(at(A, a, b), add(at(A, a, b), at(S, a, b))),
    "inner sum": lambda a, b: mul(at(A, a, b), add(Sum((d,), mul(at(A, a, d), at(TENSORS[2], b, d))), at(S, a, b))),
    "function of a product": lambda a, b: mul(at(A, a, b), exp(mul(Number(2), at(A, a, b), at(S, a, b)))),
}


@pytest.mark.parametrize("name", SIGNED)
def test_a_sign_inside_a_sum_or_function_is_not_a_sign_in_front(name: str) -> None:
    """Σ A exp(A) is not its own negative, though exchanging the indices negates both accesses."""
    a, b, p, q = (index(letter) for letter in "abpq")
    forms: dict[Any, int] = {}
    one = canonical(Sum((a, b), SIGNED[name](a, b)), forms)
    assert one is not ZERO
    assert canonical(Sum((p, q), SIGNED[name](q, p)), forms) is one
    rng = np.random.default_rng(5)
    arrays = {t: random_array(t.type, rng, {"n": 3}) for t in TENSORS}  # type: ignore[arg-type]
    expected = evaluate(Sum((a, b), SIGNED[name](a, b)), arrays, {"n": 3})
    assert evaluate(one, arrays, {"n": 3}) == pytest.approx(expected)


def test_an_even_function_of_an_antisymmetric_access_lets_the_sign_out() -> None:
    """Σ A |A|: nothing says that |−z| = |z|, so it may stay; what matters is that its value is kept."""
    a, b = index("a"), index("b")
    term = Sum((a, b), mul(at(A, a, b), Primitive("abs", (at(A, a, b),)), at(S, a, b)))
    rng = np.random.default_rng(6)
    arrays = {t: random_array(t.type, rng, {"n": 3}) for t in TENSORS}  # type: ignore[arg-type]
    assert evaluate(canonical(term), arrays, {"n": 3}) == pytest.approx(evaluate(term, arrays, {"n": 3}), abs=1e-12)


def test_a_vanishing_sum_vanishes_in_a_larger_term() -> None:
    a, b = index("a"), index("b")
    x = TENSORS[0]
    zero = Sum((a, b), mul(at(x, a), at(A, a, b), at(x, b)))
    assert canonical(mul(at(x, d), zero)) is ZERO
    assert canonical(add(at(x, d), zero)) is at(x, d)


def test_the_sign_comes_out_in_front() -> None:
    a, b = index("a"), index("b")
    x, y = TENSORS[0], Var("y", Space("n"))
    forms: dict[Any, int] = {}
    one = canonical(Sum((a, b), mul(at(x, a), at(A, a, b), at(y, b))), forms)
    other = canonical(Sum((a, b), mul(at(x, a), at(A, b, a), at(y, b))), forms)
    assert other is negate(one)
    assert canonical(mul(Number(-2), other), forms) is mul(Number(2), one)


# --- interchangeable indices ---------------------------------------------------------------------------------------


class Counter:
    """Counts the nodes of the search and the passes of refinement."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.searches = self.leaves = 0
        search, leaf = module._NamedNetwork.search, module._NamedNetwork._leaf

        def counted_search(network: Any, *arguments: Any) -> Any:
            self.searches += 1
            return search(network, *arguments)

        def counted_leaf(network: Any, *arguments: Any) -> Any:
            self.leaves += 1
            return leaf(network, *arguments)

        monkeypatch.setattr(module._NamedNetwork, "search", counted_search)
        monkeypatch.setattr(module._NamedNetwork, "_leaf", counted_leaf)


def ring(size: int) -> Sum:
    points = [index(f"r{n}") for n in range(size)]
    return Sum(tuple(points), mul(*(at(S, points[n - 1], points[n]) for n in range(size))))


def complete(size: int) -> Sum:
    points = [index(f"c{n}") for n in range(size)]
    return Sum(tuple(points), mul(*(at(S, a, b) for a, b in itertools.combinations(points, 2))))


def star(size: int) -> Sum:
    """Σ G[h, i]·x[i] over so many equal arms of one hub."""
    hub, points = index("hub"), [index(f"s{n}") for n in range(size)]
    return Sum((hub, *points), mul(*(at(TENSORS[2], hub, p) for p in points)))


def equal_pairs(size: int) -> Sum:
    """So many disconnected equal pairs."""
    points = [(index(f"p{n}"), index(f"q{n}")) for n in range(size)]
    return Sum(tuple(i for pair in points for i in pair), mul(*(at(S, *pair) for pair in points)))


@pytest.mark.parametrize(
    ("network", "most"),
    [(star(8), 60), (ring(12), 60), (complete(6), 60), (equal_pairs(5), 250), (ring(20), 120), (complete(8), 100)],
    ids=["star 8", "ring 12", "complete 6", "pairs 5", "ring 20", "complete 8"],
)
def test_interchangeable_indices_cost_a_square(network: Sum, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = Counter(monkeypatch)
    result = canonical(network)
    assert counter.searches <= most
    assert counter.leaves <= most
    reversed_ = Sum(network.indices[::-1], mul(*factors_of(network)[::-1]))
    assert canonical(reversed_) is result


# --- other index forms ---------------------------------------------------------------------------------------------


def test_deltas_and_conditions_take_part() -> None:
    a, b, p, q = (index(name) for name in "abpq")
    x, G = TENSORS[0], TENSORS[2]
    forms: dict[Any, int] = {}

    def with_condition(i: Var, j: Var) -> Term:
        return canonical(Sum((i, j), mul(indicator(affine([(i, 1), (j, -1)])), at(G, i, j))), forms)

    assert with_condition(a, b) is with_condition(q, p)
    swapped = canonical(Sum((a, b), mul(indicator(affine([(b, 1), (a, -1)])), at(G, a, b))), forms)
    assert swapped is not with_condition(a, b)
    one = canonical(Sum((a, b), mul(delta(a, affine([(b, 1)], 1)), at(x, a), at(x, b))), forms)
    other = canonical(Sum((p, q), mul(at(x, p), delta(affine([(p, 1)], 1), q), at(x, q))), forms)
    assert one is other or isinstance(one, Sum)


def test_a_reflected_symmetric_index() -> None:
    """w[b] = w[−b]: an access to an even tensor has both forms."""
    domain = Symmetric("n")
    b, c = index("b", domain), index("c", domain)
    w = Var("w", Space(domain, symmetry=["w[b] = w[-b]"]))
    u = Var("u", Space(domain))
    forms: dict[Any, int] = {}
    one = canonical(Sum((b,), mul(at(w, b), at(u, b))), forms)
    other = canonical(Sum((c,), mul(at(w, affine([(c, -1)])), at(u, c))), forms)
    assert one is other


def test_renaming_of_cyclic_sums() -> None:
    k, l = index("k", Cyclic("n")), index("l", Cyclic("n"))  # noqa: E741
    u, w = Var("u", Space(Cyclic("n"))), Var("w", Space(Cyclic("n")))
    forms: dict[Any, int] = {}
    one = canonical(Sum((k,), mul(at(u, k), at(w, affine([(k, 1)], 1)))), forms)
    other = canonical(Sum((l,), mul(at(w, affine([(l, 1)], 1)), at(u, l))), forms)
    assert one is other
    three = canonical(Sum((k,), mul(at(u, affine([(k, 1)], 1)), at(w, k))), forms)
    assert three is not one


@settings(max_examples=12, **GIVEN)
@given(st.data())
def test_shifts_and_reflections_of_cyclic_sums_do_not_matter(data: st.DataObject) -> None:
    """A bound cyclic index may start anywhere and run either way; a symmetric one may be negated."""
    cycle, around = Cyclic("c"), Symmetric("b")
    bound = [index("k", cycle), index("l", cycle), index("b", around)]
    U = Var("U", Space(cycle, cycle, dtype=complex))
    w = Var("w", Space(around, symmetry=["w[b] = w[-b]"]))
    factors: list[Term] = [at(w, bound[2])]
    for _ in range(data.draw(st.integers(1, 3))):
        forms_ = [
            affine([(data.draw(st.sampled_from(bound[:2])), 1), (bound[2], data.draw(st.sampled_from([0, 0, 1, -1])))])
            for _ in range(2)
        ]
        factors.append(at(U, *forms_))
    used = tuple(i for i in bound if any(i in f.free for f in factors))
    turned: dict[Var, Term] = {}
    for i in used:
        sign = data.draw(st.sampled_from([1, -1]))
        shift = data.draw(st.integers(-2, 2)) if i.type == cycle else 0
        turned[i] = affine([(index(f"{i.name}{i.name}", i.type), sign)], shift)
    names = tuple(index(f"{i.name}{i.name}", i.type) for i in used)
    network = Sum(used, mul(*factors))
    other = Sum(names, substitute(mul(*factors), turned))
    forms: dict[Any, int] = {}
    one = canonical(network, forms)
    assert canonical(other, forms) is one
    sizes = {"c": 3, "b": 1}
    rng = np.random.default_rng(3)
    arrays = {t: random_array(t.type, rng, sizes) for t in (U, w)}  # type: ignore[arg-type]
    assert evaluate(one, arrays, sizes) == pytest.approx(evaluate(network, arrays, sizes))


@settings(max_examples=12, **GIVEN)
@given(st.data())
def test_unimodular_changes_of_cyclic_sums_do_not_matter(data: st.DataObject) -> None:
    """Indices of one cycle may be added to one another: Σ_{k,l} u[k] v[k + l] = Σ_{k,l} u[k − l] v[k]."""
    cycle = Cyclic("c")
    U = Var("U", Space(cycle, cycle, dtype=complex))
    S = Var("S", Space(cycle, cycle, symmetry=["S[i,j] = S[j,i]"]))
    bound = [index(name, cycle) for name in "klm"[: data.draw(st.integers(1, 3))]]
    small = st.integers(-1, 2)

    def form() -> Term:
        return affine([(k, data.draw(small)) for k in bound], data.draw(small))

    body = mul(*(at(data.draw(st.sampled_from([U, S])), form(), form()) for _ in range(data.draw(st.integers(1, 3)))))
    change: dict[Var, Term] = {k: affine([(k, data.draw(st.sampled_from([1, -1])))], data.draw(small)) for k in bound}
    for _ in range(3):
        one, two = data.draw(st.sampled_from(bound)), data.draw(st.sampled_from(bound))
        if one is not two:
            step = {one: affine([(one, 1), (two, data.draw(st.sampled_from([1, -1])))])}
            change = {k: substitute(value, step) for k, value in change.items()}
    used = tuple(k for k in bound if k in body.free)
    network, other = Sum(tuple(bound), body), Sum(tuple(bound), substitute(body, change))
    assume(len(used) == len(bound))
    forms: dict[Any, int] = {}
    result = canonical(network, forms)
    assert canonical(other, forms) is result
    arrays = {t: random_array(t.type, np.random.default_rng(3), {"c": 3}) for t in (U, S)}  # type: ignore[arg-type]
    assert evaluate(result, arrays, {"c": 3}) == pytest.approx(evaluate(network, arrays, {"c": 3}))


def test_nested_sums_and_functions() -> None:
    a, b, p, q = (index(name) for name in "abpq")
    x, G = TENSORS[0], TENSORS[2]
    forms: dict[Any, int] = {}

    def nested(i: Var, j: Var) -> Term:
        inner = total((j,), mul(at(G, i, j), at(x, j)))
        return Sum((i,), mul(at(x, i), add(inner, at(x, i)), negate(inner)))

    assert canonical(nested(a, b), forms) is canonical(nested(q, p), forms)


PAIR = Var("i", Range("n")), Var("j", Range("n"))


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row.parity])
def test_the_sign_of_what_an_even_or_odd_function_takes_is_left_out_or_comes_out(name: str) -> None:
    x = TENSORS[0]
    one, other = (add(at(x, i), negate(at(x, j))) for i, j in (PAIR, PAIR[::-1]))
    forms: dict[Any, int] = {}
    first, second = (canonical(function(name, argument), forms) for argument in (one, other))
    assert first is (second if TABLE[name].parity > 0 else canonical(negate(second), forms))
    values = dict.fromkeys(PAIR, 0) | {PAIR[1]: 1, x: np.array([0.3, 0.1])}
    assert evaluate(first, values, SIZES) == pytest.approx(evaluate(function(name, one), values, SIZES))


@pytest.mark.parametrize("exponent", [-3, -2, 2, 3])
def test_whole_powers_are_even_or_odd(exponent: int) -> None:
    x = TENSORS[0]
    one, other = (add(at(x, i), negate(at(x, j))) for i, j in (PAIR, PAIR[::-1]))
    first, second = (canonical(power(argument, Number(exponent)), {}) for argument in (one, other))
    assert first is (second if exponent % 2 == 0 else canonical(negate(second), {}))


def test_functions_that_are_neither_keep_the_sign_inside() -> None:
    x = TENSORS[0]
    one, other = (add(at(x, i), negate(at(x, j))) for i, j in (PAIR, PAIR[::-1]))
    for name in ("exp", "sqrt", "relu", "arccos"):
        assert canonical(function(name, one), {}) is not canonical(function(name, other), {})


def test_of_a_sum_and_its_negative_the_one_that_reads_better_is_canonical() -> None:
    x, G = TENSORS[0], TENSORS[2]
    (i, j) = PAIR
    product = total((j,), mul(at(G, i, j), at(x, j)))
    for terms in ((negate(at(x, i)), product), (Number(1), negate(at(x, i))), (at(x, i), at(x, j), negate(product))):
        assert not is_negative(canonical(add(*terms), {}))
        assert is_negative(canonical(negate(add(*terms)), {}))


def is_negative(term: Term) -> bool:
    return isinstance(term, Mul) and isinstance(term.factors[0], Number) and term.factors[0].real < 0


def test_changes_of_indices_around_cycles_are_not_tried_by_the_million() -> None:
    """Σ over r and k, l, … of z[2k − r, k] z[2l − r, l] …: of ten forms with five indices there are 200 000 changes."""
    cycle = Cyclic("c")
    r, *others = (Var(name, cycle) for name in "rklpq")
    z = Var("z", Space(cycle, cycle))
    factors = [Apply(z, (affine([(k, 2), (r, -3)]), affine([(k, 2), (r, -1)]))) for k in others]
    found = list(moves(Sum((r, *others), mul(*factors))))
    assert len(found) <= MOST_MOVES
    symmetric = [Var(f"s{n}", Symmetric("b")) for n in range(30)]
    x = Var("x", Space(Symmetric("b")))
    body = mul(*(Apply(x, (s,)) for s in symmetric))
    assert list(moves(Sum(tuple(symmetric), body))) == [Sum(tuple(symmetric), body)]


@pytest.mark.parametrize("inner", [Cyclic("n"), Range(3)])
def test_an_index_of_a_cycle_is_not_shifted_by_one_that_is_bound_inside(inner: Any) -> None:
    """Σ_i sin(Σ_j w[j] x[i − j]) was changed by i := i + j, where there is no j."""
    x, w = Var("x", Space(Cyclic("n"))), Var("w", Space(inner))
    i, j = Var("i", Cyclic("n")), Var("j", inner)
    apart = affine([(i, 1), (j, -1)])
    term = total((i,), mul(function("sin", total((j,), mul(at(w, j), at(x, apart)))), at(x, affine([(i, 2)]))))
    assert isinstance(term, Sum)
    assert all(moved.free == term.free for moved in moves(term))
    assert canonical(term).free == term.free
