"""Functions of matrices: rows of the table, laws, every route, second derivatives, plans, prints and messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, converted, on
from elements import at
from measuring import laws_counted, side_by_side

import combdiff as cd
from combdiff.differentiation.pullback import cotangent_space, pull, push
from combdiff.ir.domains import Range
from combdiff.ir.interpreter import evaluate
from combdiff.ir.let_form import share
from combdiff.ir.matrix_functions import MATRIX_TABLE
from combdiff.ir.primitives import power
from combdiff.ir.substitution import Names, substitute
from combdiff.ir.terms import Apply, Lambda, Number, Primitive, Term, Var, add, conj, let, mul, negate, total
from combdiff.ir.types import type_of
from combdiff.kernels import for_numpy
from combdiff.runtime.execution import plan, run
from combdiff.simplification.egraph.context import Context
from combdiff.simplification.egraph.extraction import price
from combdiff.simplification.egraph.saturation import equivalent, simplify
from combdiff.simplification.laws.loading import rule_directory
from combdiff.simplification.pipeline import simplify_body
from combdiff.testing.differences import finite_difference_pullback

M = cd.Space("n", "n")
V = cd.Space("n")
C = cd.Space("n", "n", dtype=complex)
S = cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"])
H = cd.Space("n", "n", dtype=complex, symmetry=["H[i,j] = conj(H[j,i])"])
K = cd.Space("n", "n", symmetry=["A[i,j] = -A[j,i]"])
STACK = cd.Space("b", "n", "n")
RECTANGLE = cd.Space("n", "m")
SIZES = {"n": 3, "m": 4, "b": 2}
DOMAINS = (
    *("everywhere", "X invertible", "X positive definite", "distinct eigenvalues", "distinct singular values"),
    *("independent columns", "constant rank", "no ties", "no eigenvalue on the negative real axis"),
)


def array(space: cd.Space, seed: int = 0) -> Any:
    """A random array of a Space, its matrices far from singular."""
    found = cd.testing.random_array(space, np.random.default_rng(seed), SIZES)
    is_matrix = space.order > 1 and space.axes[-1] == space.axes[-2]
    return found + 3 * np.eye(SIZES["n"]) if is_matrix and not any("-" in s for s in space.symmetry) else found


# --- the table -----------------------------------------------------------------------------------------------------


ALGEBRA = [name for name, row in MATRIX_TABLE.items() if row.natural]  # the others are in test_decompositions.py


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("name", ALGEBRA)
def test_derivatives_of_every_row(name: str, dtype: type) -> None:
    """Pullback and pushforward, of a matrix and of a stack, raw and simplified, against central differences."""
    if dtype is complex and MATRIX_TABLE[name].real_only:
        return  # complex numbers have no order
    for axes in (("n", "n"), ("b", "n", "n")):
        space = cd.Space(*axes, dtype=dtype)
        X = Var("X", space)
        body = _dense(Primitive(name, (X,)))
        names = Names(body)
        result = _space(body)
        k, t = Var("k", cotangent_space(result)), Var("t", cotangent_space(space))
        arrays = {X: array(space), k: array(k.type, 1), t: array(t.type, 2)}  # type: ignore[arg-type]

        def value(X: Any, body: Term = body, var: Var = X) -> Any:
            return evaluate(body, {var: X}, SIZES)

        expected = finite_difference_pullback(value, {"X": arrays[X]}, "X", arrays[k])
        backward, (pulled,) = pull(share(body), (X,), k, names)
        raw = let(backward, pulled)
        forward, pushed = push(share(body), {X: t}, Names(body, t))
        raw_forward = let(forward, pushed)
        step = 1e-6
        slope = (value(arrays[X] + step * arrays[t]) - value(arrays[X] - step * arrays[t])) / (2 * step)
        for term, wanted in ((raw, expected), (raw_forward, slope)):
            for form in (term, share(term), simplify_body(term)):
                np.testing.assert_allclose(evaluate(form, arrays, SIZES), wanted, atol=2e-6, rtol=2e-6)
                program = Lambda(tuple(arrays), form)
                np.testing.assert_allclose(run(program, list(arrays.values())), wanted, atol=2e-6, rtol=2e-6)


def _space(term: Term) -> cd.Space:
    found = type_of(term)
    assert isinstance(found, cd.Space)
    return found


def _dense(tensor: Term) -> Term:
    """A tensor as an abstraction over indices."""
    indices = Names(tensor).indices(_space(tensor).axes)
    return Lambda(indices, Apply(tensor, indices)) if indices else tensor


@pytest.mark.parametrize("name", MATRIX_TABLE)
def test_rows_are_complete(name: str) -> None:
    row = MATRIX_TABLE[name]
    assert row.name == name
    assert "{0}" in row.numpy
    assert row.latex
    assert row.domain in DOMAINS
    for dtype in (float,) if row.real_only else (float, complex):
        stack = cd.Space("b", "n", "n", dtype=dtype)
        found = _space(Primitive(name, (Var("X", stack),)))
        value = evaluate(Primitive(name, (Var("X", stack),)), {Var("X", stack): array(stack)}, SIZES)
        assert found.axes == (*stack.axes[:1], *row.of_result(stack.axes[1:]))
        assert np.asarray(value).dtype.kind == {float: "f", complex: "c", int: "i"}[found.dtype]


# --- laws ----------------------------------------------------------------------------------------------------------

i, j, k, d, e = (Var(name, Range("n")) for name in "ijkde")
A, B, Z, Y, Q, T = Var("A", M), Var("B", M), Var("Z", C), Var("Y", C), Var("Q", RECTANGLE), Var("T", M)
SYM, HERM, SKEW = Var("S", S), Var("H", H), Var("K", K)
POSITIVE, HERMITIAN = Var("P", S), Var("W", H)
x = Var("x", V)
s = Var("s", STACK)


def f(name: str, matrix: Term) -> Primitive:
    return Primitive(name, (matrix,))


def product(*factors: Callable[[Term, Term], Term]) -> Lambda:
    """The matrix product of factors given by their elements."""
    inner = [Var(f"k{n}", Range("n")) for n in range(len(factors) - 1)]
    path = [i, *inner, j]
    links = [factor(*path[n : n + 2]) for n, factor in enumerate(factors)]
    return Lambda((i, j), total(inner, mul(*links)))


def plain(tensor: Term) -> Callable[[Term, Term], Term]:
    return lambda p, q: at(tensor, p, q)


def turned(tensor: Term) -> Callable[[Term, Term], Term]:
    return lambda p, q: at(tensor, q, p)


def starred(tensor: Term) -> Callable[[Term, Term], Term]:
    return lambda p, q: conj(at(tensor, p, q))


IMAGE, NUMBER = Var("U", C), Var("c", cd.Space())
SCALED = Lambda((i, j), mul(NUMBER, at(A, i, j)))
TURNED = Var("R", M)  # the transpose of another
# For each law a term on which it matches, and the values of variables that matrix functions in it are functions of.
LAWS: Mapping[str, tuple[Term, Mapping[Var, Term]]] = {
    "a matrix function is square": (at(f("inv", A), d, e), {}),
    "a transposed matrix is square": (at(f("inv", SYM), d, e), {}),
    "a conjugated matrix is square": (at(f("inv", HERM), d, e), {}),
    "a multiple is square": (at(f("inv", SKEW), d, e), {}),
    "a product of squares is square": (f("det", T), {T: product(plain(A), plain(B))}),
    "a function of a real matrix is real": (at(f("inv", A), d, e), {}),
    "log |det| is real": (f("logdet", Z), {}),
    "a transposed matrix is real": (at(f("inv", SYM), d, e), {}),
    "an element of a matrix": (conj(at(f("inv", A), d, e)), {}),
    "conjugate of a real matrix": (f("det", T), {T: product(starred(A))}),
    "transpose twice": (at(f("inv", SYM), d, e), {}),
    "conjugate a matrix twice": (at(f("inv", HERM), d, e), {}),
    "conjugate of a transpose": (at(f("inv", HERM), d, e), {}),
    "transpose of a multiple": (at(f("inv", SKEW), d, e), {}),
    "conjugate of a multiple of a matrix": (
        conj(at(f("inv", IMAGE), d, e)),
        {IMAGE: Lambda((i, j), mul(Number(0, 2), at(Z, i, j)))},
    ),
    "a number times a square matrix is square": (at(f("inv", T), d, e), {T: SCALED}),
    "transpose of a number times a matrix": (at(f("inv", TURNED), d, e), {TURNED: product(turned(T)), T: SCALED}),
    "conjugate of a number times a matrix": (
        conj(at(f("inv", IMAGE), d, e)),
        {IMAGE: Lambda((i, j), mul(NUMBER, at(Z, i, j)))},
    ),
    "an element of a number times a matrix": (at(f("inv", T), d, e), {T: SCALED}),
    "inverse of a number times a matrix": (at(f("inv", T), d, e), {T: SCALED}),
    "transpose of a product": (
        at(f("inv", T), d, e),
        {T: product(turned(A)), A: product(plain(B), plain(B))},
    ),
    "conjugate of a matrix product": (
        mul(conj(at(IMAGE, d, e)), f("det", IMAGE)),
        {IMAGE: product(plain(Z), plain(Y))},
    ),
    "an element of a transpose": (at(f("inv", SYM), d, e), {}),
    "an element of a conjugate": (at(f("inv", HERM), d, e), {}),
    "conjugate of an element": (conj(at(f("inv", HERM), d, e)), {}),
    "an element of a multiple": (at(f("inv", SKEW), d, e), {}),
    "f(Xᵀ) = f(X)ᵀ": (at(f("inv", T), d, e), {T: product(turned(A))}),
    "det Xᵀ = det X": (f("det", T), {T: product(turned(A))}),
    "f(X*) = f(X)*": (at(f("inv", IMAGE), d, e), {IMAGE: product(starred(Z))}),
    "det X* = (det X)*": (f("det", IMAGE), {IMAGE: product(starred(Z))}),
    "inverse of an inverse": (at(f("inv", T), d, e), {T: product(plain(f("inv", A)))}),
    "inverse of a multiple": (at(f("inv", T), d, e), {T: Lambda((i, j), mul(Number(2), at(A, i, j)))}),
    "determinant of a product": (f("det", T), {T: product(plain(A), plain(B))}),
    "sign of the determinant of a product": (f("signdet", T), {T: product(plain(A), plain(B))}),
    "log-determinant of a product": (f("logdet", T), {T: product(plain(A), plain(B))}),
    "determinant of an inverse": (f("det", T), {T: product(plain(f("inv", A)))}),
    "log-determinant of an inverse": (f("logdet", T), {T: product(plain(f("inv", A)))}),
    "log det of a positive definite matrix": (f("logdet_positive", SYM), {}),
    "log of a determinant": (Primitive("log", (Primitive("abs", (f("det", A),)),)), {}),
    "det X · inv X = adj X": (mul(f("det", A), at(f("inv", A), d, e)), {}),
    "adj X / det X = inv X": (mul(power(f("det", A), Number(-2)), at(f("adj", A), d, e)), {}),
    "Σ adj X / det X = Σ inv X": (
        mul(power(f("det", A), Number(-1)), total((k,), mul(at(f("adj", A), k, d), at(x, k)))),
        {},
    ),
    "tr adj X / det X = tr inv X": (mul(power(f("det", A), Number(-1)), total((k,), at(f("adj", A), k, d))), {}),
    "inv X · X, met": (total((k,), mul(at(f("inv", A), d, k), at(A, k, e))), {}),
    "X · inv X, met": (total((k,), mul(at(A, d, k), at(f("inv", A), k, e), at(x, d))), {}),
    "adj X · X, met": (total((k,), mul(at(f("adj", A), d, k), at(A, k, e))), {}),
    "X · adj X, met": (total((k,), mul(at(A, d, k), at(f("adj", A), k, e))), {}),
    "a matrix meets its inverse": (total((k,), mul(at(f("inv", A), d, k), at(A, k, e))), {}),
    "Σ log of a Cholesky factor's diagonal": (
        total((k,), Primitive("log", (at(f("cholesky", POSITIVE), k, k),))),
        {POSITIVE: product(turned(A), plain(A))},
    ),
    "L⁻ᵀ · L⁻¹, met": (
        total((k,), mul(at(f("inv", T), k, d), at(f("inv", T), k, e))),
        {T: product(plain(f("cholesky", POSITIVE))), POSITIVE: product(turned(A), plain(A))},
    ),
    "L⁻† · L⁻¹, met": (
        total((k,), mul(conj(at(f("inv", IMAGE), k, d)), at(f("inv", IMAGE), k, e))),
        {IMAGE: product(plain(f("cholesky", HERMITIAN))), HERMITIAN: product(lambda p, q: conj(at(Z, q, p)), plain(Z))},
    ),
    "two factors are one matrix": (
        total((k,), mul(at(f("inv", T), k, d), at(f("inv", T), k, e))),
        {T: product(plain(f("cholesky", POSITIVE))), POSITIVE: product(turned(A), plain(A))},
    ),
}


def environment(known: Mapping[Var, Term]) -> dict[Var, Any]:
    """Arrays for every tensor, those of known variables computed, and values for free indices."""
    arrays = {v: array(v.type, n) for n, v in enumerate((A, B, Z, Y, Q, T, SYM, HERM, SKEW, x, s, NUMBER))}  # type: ignore[arg-type]
    for var, term in reversed(list(known.items())):
        arrays[var] = evaluate(term, arrays, SIZES)
    return {**arrays, d: 1, e: 2}


def with_own_names(name: str) -> tuple[Term, dict[Var, Term]]:
    """An example and what it knows, in which no known variable has the name of one that another example knows."""
    term, known = LAWS[name]
    own: dict[Var, Term] = {var: Var(f"{var.name}{list(LAWS).index(name)}", var.type) for var in known}
    return substitute(term, own), {own[var]: substitute(value, own) for var, value in known.items()}  # type: ignore[misc]


@cache
def laws_side_by_side() -> tuple[Counter[str], dict[str, Term]]:
    """All examples in one e-graph: how often each law matched, and the cheapest form of each."""
    named = {name: with_own_names(name) for name in LAWS}
    context = Context({var: value for _, known in named.values() for var, value in known.items()})
    return side_by_side({name: term for name, (term, _) in named.items()}, context=context)


@cache
def arrays_side_by_side() -> dict[Var, Any]:
    return environment({var: value for name in LAWS for var, value in with_own_names(name)[1].items()})


@pytest.mark.parametrize("name", LAWS)
def test_each_law_fires_and_keeps_the_value(name: str) -> None:
    """Beside all other examples, where a false law makes values equal that are not."""
    fired, found = laws_side_by_side()
    term, known = with_own_names(name)
    if SKEW not in term.free:  # of odd order it is singular
        arrays = arrays_side_by_side()
        simple = evaluate(found[name], arrays, SIZES)
        np.testing.assert_allclose(simple, evaluate(term, arrays, SIZES), rtol=1e-9, atol=1e-12)
    assert price(found[name], Context(known)) <= price(term, Context(known))
    assert fired[name], f"{name} did not match"


@pytest.mark.thorough
@pytest.mark.parametrize("name", LAWS)
def test_each_law_fires_on_its_smallest_example(name: str, monkeypatch: Any) -> None:
    """By itself: beside others it might match on the terms of another's example."""
    fired = laws_counted(monkeypatch)
    term, known = LAWS[name]
    if name == "a function of a real matrix is real":
        term = add(term, at(Z, d, e))
    simplify(term, context=Context(known))
    assert fired.get(name), f"{name} did not match; {sorted(law for law, count in fired.items() if count)} did"


def test_every_law_has_an_example() -> None:
    text = (rule_directory() / "linalg.egg").read_text("utf-8")
    names = re.findall(r':name "([^"]*)"', text)
    assert len(set(names)) == len(names)
    assert set(names) == LAWS.keys()


@pytest.mark.thorough
def test_a_cholesky_factor_of_what_is_not_symmetric_is_no_square_root_of_it() -> None:
    """The factor is that of the Hermitian part."""

    @cd.program
    def half(A: cd.Space("n", "n"), x: cd.Space("n")):
        u = np.linalg.solve(np.linalg.cholesky(A), x)
        return cd.sum(lambda i: u[i] ** 2)

    A, x = np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([1.0, 2.0])
    value = x @ np.linalg.solve((A + A.T) / 2, x)
    np.testing.assert_allclose((half(A, x), cd.simplify(half)(A, x)), value)
    cd.testing.check_grad(half, "A", A=A, x=x)


@pytest.mark.thorough
def test_a_log_likelihood_by_a_cholesky_factor_has_the_gradient_of_the_literature() -> None:
    """½ tr(K⁻¹ dK) − ½ αᵀ dK α with α = K⁻¹ y: one inverse, and no product of matrices (Rasmussen & Williams, 5.9)."""

    @cd.program
    def evidence(t: cd.Space(), X: cd.Space("n", "d"), y: cd.Space("n")):
        K = np.exp(-t * np.sum((X[:, None] - X[None]) ** 2, -1)) + cd.eye(X.shape[0])
        L = np.linalg.cholesky(K)
        return 0.5 * y @ np.linalg.solve(L.T, np.linalg.solve(L, y)) + np.log(np.diag(L)).sum()

    rng = np.random.default_rng(0)
    given = {"t": 0.3, "X": rng.normal(size=(5, 2)), "y": rng.normal(size=5)}
    cd.testing.check_grad(evidence, "t", **given)
    both = cd.value_and_grad(evidence, "t")
    assert "cholesky(" not in str(both)
    operations = [row.operation for row in both.cost().rows]
    assert operations.count("inv") == 1
    assert "matrix-matrix" not in operations


# What laws make of a term, with what they know.
REDUCED: tuple[tuple[Term, Term, Mapping[Var, Term]], ...] = (
    (total((i, k), mul(at(f("inv", A), i, k), at(A, k, i), at(x, i))), total((i,), at(x, i)), {}),
    (at(f("inv", T), d, e), at(f("inv", A), e, d), {T: product(turned(A))}),
    (
        at(f("inv", T), d, e),
        mul(power(Number(2), Number(-1)), at(f("inv", A), d, e)),
        {T: Lambda((i, j), mul(Number(2), at(A, i, j)))},
    ),
    (at(f("inv", SYM), d, e), at(f("inv", SYM), e, d), {}),
    (at(f("inv", HERM), d, e), conj(at(f("inv", HERM), e, d)), {}),
    (at(f("inv", SKEW), d, e), negate(at(f("inv", SKEW), e, d)), {}),
    (f("det", HERM), conj(f("det", HERM)), {}),
    (f("det", IMAGE), conj(f("det", IMAGE)), {IMAGE: product(plain(Z), lambda p, q: conj(at(Z, q, p)))}),
    (
        total((k,), mul(at(s, d, i, k), at(f("inv", s), d, k, j))),
        total((k,), mul(at(s, d, i, k), at(f("inv", s), d, k, j))),
        {},
    ),
)


@pytest.mark.parametrize("n", range(len(REDUCED)))
def test_laws_make_terms_equal(n: int) -> None:
    one, other, known = REDUCED[n]
    assert equivalent(one, other, context=Context(known))


def test_an_index_that_the_rest_of_a_product_mentions_is_not_cancelled() -> None:
    term = total((k,), mul(at(f("inv", A), d, k), at(A, k, e), at(x, k)))
    arrays = environment({})
    np.testing.assert_allclose(evaluate(simplify(term), arrays, SIZES), evaluate(term, arrays, SIZES))
    assert not equivalent(term, at(x, d))
    rectangular = product(lambda p, q: at(Q, p, q), lambda p, q: at(Q, q, p))
    gram = Lambda((i, j), total((m := Var("m", Range("m")),), mul(at(Q, i, m), at(Q, j, m))))
    assert rectangular.parameters == gram.parameters
    assert simplify(f("det", T), context=Context({T: gram})) is f("det", T)


# --- programs by every route ---------------------------------------------------------------------------------------


@cd.program
def quadratic(A: M, x: V):
    return x @ cd.solve(A, x)


@cd.program
def sums_of_inverses(A: M):
    return cd.sum(lambda i, j: cd.inv(A)[i, j] ** 2)


@cd.program
def shifted(A: M):
    return cd.logdet(A @ A.T + cd.tensor(lambda i, j: cd.delta(i, j), i="n", j="n"))


@cd.program
def determinants(A: M, B: M):
    return cd.det(A @ B) + cd.det(cd.inv(A)) * cd.trace(B)


@cd.program
def gram(X: RECTANGLE):
    return cd.logdet(X @ X.T)


@cd.program
def gaussian(S: S, x: V):
    return 0.5 * (x @ cd.inv(S) @ x) + 0.5 * cd.logdet(S)


@cd.program
def powers(A: M):
    return cd.trace(cd.matrix_power(A, 5)) + cd.trace(cd.matrix_power(A, -2)) + cd.trace(cd.matrix_power(A, 0))


@cd.program
def adjugates(A: M, B: M):
    return cd.sum(lambda i, j: cd.adj(A)[i, j] * B[i, j]) * cd.det(B)


@cd.program
def stacked(A: STACK, x: V):
    return cd.sum(lambda b: cd.logdet(A)[b] * (x @ cd.solve(A[b], x)))


@cd.program
def slices(A: STACK):
    return cd.sum(lambda b: cd.det(A[b] @ A[b]) ** 2)


@cd.program
def nested(A: M):
    return cd.logdet(cd.inv(A + cd.inv(A)) + A)


@cd.program
def elementwise(A: M):
    return cd.exp(-(cd.det(A) ** 2) / 100) + cd.sum(lambda i, j: cd.sin(cd.inv(A)[i, j]))


@cd.program
def complex_inverse(A: C, B: C):
    return cd.real(cd.trace(cd.inv(A) @ B @ cd.inv(A.conj().T)))


@cd.program
def complex_determinants(A: C):
    sign, size = np.linalg.slogdet(A)
    return cd.real(
        cd.det(A) * cd.det(A).conj() + sign * size + cd.det(cd.inv(A)) + cd.sum(lambda i, j: cd.adj(A)[i, j])
    )


@cd.program
def hermitian(H: H):
    return cd.det(H) + cd.logdet(H)


@cd.program
def hermitian_product(A: C):
    return cd.det(A @ A.conj().T)


PROGRAMS = (
    quadratic,
    sums_of_inverses,
    shifted,
    determinants,
    gram,
    gaussian,
    powers,
    adjugates,
    stacked,
    slices,
    nested,
    elementwise,
    complex_inverse,
    complex_determinants,
    hermitian,
    hermitian_product,
)


def arguments(program: cd.Program) -> dict[str, Any]:
    return {p.name: array(p.type, n) for n, p in enumerate(program.parameters)}  # type: ignore[arg-type]


def reference(program: cd.Program, arrays: Mapping[str, Any]) -> Any:
    return evaluate(program.term.body, {p: arrays[p.name] for p in program.parameters}, SIZES)


def close(one: Any, other: Any, tolerance: float = 1e-9) -> None:
    scale = max(1.0, float(np.max(np.abs(other), initial=0.0)))
    np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * scale)


grad = cache(cd.grad)  # two tests look at each gradient


@pytest.mark.sample(3)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_values_and_gradients_by_every_route(program: cd.Program) -> None:
    arrays = arguments(program)
    value = reference(program, arrays)
    simple = cd.simplify(program)
    close(program(**arrays), value)
    close(reference(simple, arrays), value)
    close(simple(**arrays), value)
    for parameter in program.parameters:
        raw, gradient = cd.grad(program, parameter.name, simplify=False), grad(program, parameter.name)
        expected = reference(raw, arrays)
        close(reference(gradient, arrays), expected)
        close(raw(**arrays), expected)
        close(gradient(**arrays), expected)
        cd.testing.check_grad(program, parameter.name, **arrays)


@pytest.mark.sample(1)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_second_derivatives(program: cd.Program) -> None:
    """The Hessian-vector product, raw and simplified, against central differences of the gradient."""
    arrays = arguments(program)
    name = program.parameters[0].name
    gradient = grad(program, name)
    vector = array(program.parameters[0].type, 9)  # type: ignore[arg-type]
    step = 1e-5
    ahead, behind = ({**arrays, name: arrays[name] + sign * step * vector} for sign in (1, -1))
    slope = (gradient(**ahead) - gradient(**behind)) / (2 * step)
    for simplified in (True, False):
        product_ = cd.hvp(program, name, simplify=simplified)
        close(product_(*arrays.values(), vector), slope, 1e-5)


@pytest.mark.thorough
def test_third_derivative_of_a_log_determinant() -> None:
    """D³ logdet(A)[U, U, U] = 2 tr (A⁻¹U)³."""

    @cd.program
    def f(A: M):
        return cd.logdet(A)

    third = cd.pushforward(cd.hvp(f), "A")
    X, U = array(M), array(M, 3)
    step = np.linalg.solve(X, U)
    close(np.sum(third(X, U, U) * U), 2 * np.trace(step @ step @ step))


# --- worked forms --------------------------------------------------------------------------------------------------


def shown(program: Any) -> str:
    return str(cd.program(program) if not isinstance(program, cd.Program) else program)


@pytest.mark.thorough
def test_derivatives_of_the_literature() -> None:
    @cd.program
    def determinant(X: M):
        return cd.det(X)

    @cd.program
    def log_determinant(X: M):
        return cd.logdet(X)

    @cd.program
    def inverse(X: M):
        return cd.inv(X)

    @cd.program
    def log_of_determinant(X: M):
        return cd.log(cd.det(X))

    assert shown(cd.grad(determinant)) == "X ↦ (d, e) ↦ adj(X)[e,d]"
    assert shown(cd.grad(log_determinant)) == "X ↦ (d, e) ↦ inv(X)[e,d]"
    assert shown(cd.grad(log_of_determinant)) == "X ↦ (d, e) ↦ inv(X)[e,d]"
    assert shown(cd.jacobian(inverse)) == "X ↦ (a, b, d, e) ↦ -inv(X)[a,d] inv(X)[e,b]"
    assert shown(cd.hessian(log_determinant)) == "X ↦ (a, b, d, e) ↦ -inv(X)[b,d] inv(X)[e,a]"
    assert cd.jacobian(inverse).latex() == (r"X \mapsto (a, b, d, e) \mapsto -({X}^{-1})_{a,d} ({X}^{-1})_{e,b}")
    assert cd.grad(determinant).latex() == r"X \mapsto (d, e) \mapsto \operatorname{adj}(X)_{e,d}"
    assert determinant.latex() == r"X \mapsto \det(X)"
    assert log_determinant.latex() == r"X \mapsto \log\left|\det {X}\right|"
    assert log_determinant.combinators() == "(X) ↦ 𝐁 logdet X"


def test_laws_simplify_programs() -> None:
    def forms(function: Callable[..., Any]) -> str:
        return str(cd.simplify(cd.program(function)))

    def left(A: M):
        return cd.inv(A) @ A

    def right(A: M, B: M):
        return B @ A @ cd.inv(A)

    def twice(A: M):
        return cd.inv(cd.inv(A))

    def of_product(A: M, B: M):
        return cd.det(A @ B)

    def of_transpose(A: M):
        return cd.inv(A.T) @ A.T

    def of_adjoint(A: C):
        return A.conj().T @ cd.inv(A.conj().T)

    def solved(A: M, x: V):
        return A @ cd.solve(A, x)

    def adjugate_(A: M):
        return cd.adj(A) @ A

    assert forms(left) == "A ↦ (i<n, j) ↦ δ(i, j)"
    assert forms(right) == "(A, B) ↦ (i, j) ↦ B[i,j]"
    assert forms(twice) == "A ↦ (i, j) ↦ A[i,j]"
    assert forms(of_product) == "(A, B) ↦ det(A) det(B)"
    assert forms(of_transpose) == "A ↦ (i<n, j) ↦ δ(i, j)"
    assert forms(of_adjoint) == "A ↦ (i<n, j) ↦ δ(i, j)"
    assert forms(solved) == "(A, x) ↦ i ↦ x[i]"
    assert forms(adjugate_) == "A ↦ (i<n, j) ↦ δ(i, j) det(A)"


def test_the_adjugate_of_singular_matrices() -> None:
    for dtype in (float, complex):
        rng = np.random.default_rng(5)
        low = rng.normal(size=(4, 3)) + (1j * rng.normal(size=(4, 3)) if dtype is complex else 0)
        singular = low @ rng.normal(size=(3, 4))
        X = Var("X", cd.Space("n", "n", dtype=dtype))
        expected = evaluate(Primitive("adj", (X,)), {X: singular}, {"n": 4})
        np.testing.assert_allclose(for_numpy("adjugate")(singular), expected, atol=1e-12)
        np.testing.assert_allclose(cd.adj(singular), expected, atol=1e-12)
    assert for_numpy("adjugate")(np.array([[7.0]])) == 1

    @cd.program
    def determinant(X: M):
        return cd.det(X)

    cd.testing.check_grad(determinant, "X", X=np.ones((3, 3)) + np.diag([0.0, 0.0, 1.0]))


# --- plans ---------------------------------------------------------------------------------------------------------


def operations(program: cd.Program, **sizes: int) -> list[str]:
    return [line.split()[1] for line in str(plan(program.term, sizes)).splitlines()[1:-1]]


def test_a_product_with_an_inverse_is_a_solution() -> None:
    assert operations(quadratic, n=50) == ["A", "x", "solve", "dot"] or "inv" not in operations(quadratic, n=50)

    @cd.program
    def from_the_left(A: M, B: RECTANGLE):
        return cd.inv(A.T) @ B

    @cd.program
    def from_the_right(A: M, B: RECTANGLE):
        return B.T @ cd.inv(A)

    @cd.program
    def wanted(A: M, x: V):
        return cd.inv(A), cd.inv(A) @ x

    X, Q, v = array(M), array(RECTANGLE, 1), array(V, 2)
    for program, expected in ((from_the_left, np.linalg.inv(X.T) @ Q), (from_the_right, Q.T @ np.linalg.inv(X))):
        assert "_linear_solve" in program.source()
        assert "_inverse" not in program.source()
        close(program(X, Q), expected)
    assert "_linear_solve" not in wanted.source()
    close(wanted(X, v)[1], np.linalg.solve(X, v))


@pytest.mark.thorough
@pytest.mark.parametrize("backend", BACKENDS)
def test_other_libraries(backend: str) -> None:
    @cd.program
    def mixed(A: C, x: V):
        return cd.real(cd.sum(lambda i: cd.solve(A, x)[i])) + cd.logdet(A) + cd.real(cd.det(A) + cd.trace(cd.adj(A)))

    for program in (mixed, cd.grad(mixed), quadratic, cd.grad(quadratic)):
        arrays = list(arguments(program).values())
        found = np.asarray(on(backend, program)(*converted(backend, arrays)))
        close(found, program(*arrays), 1e-4 if backend == "jax" else 1e-9)


def test_equal_matrix_functions_are_computed_once() -> None:
    assert cd.grad(gaussian, "S").source().count("_inverse(np, S") <= 1
    assert sums_of_inverses.source().count("_inverse(np, A") == 1


def test_the_source_stands_alone() -> None:
    for program in (cd.grad(complex_determinants), cd.grad(quadratic)):
        namespace: dict[str, Any] = {}
        exec(program.source(), namespace)
        arrays = arguments(program)
        close(namespace[program.name](**arrays), program(**arrays))


def test_single_precision_stays_single() -> None:
    arrays = {name: value.astype(np.float32) for name, value in arguments(quadratic).items()}
    assert quadratic(**arrays).dtype == np.float32
    assert cd.grad(quadratic)(**arrays).dtype == np.float32
    assert for_numpy("adjugate")(np.eye(3, dtype=np.complex64)).dtype == np.complex64


# --- NumPy's names, plain arrays and messages ----------------------------------------------------------------------


@pytest.mark.thorough
def test_numpy_names_mean_the_same() -> None:
    @cd.program
    def numpys(A: M, x: V):
        _, size = np.linalg.slogdet(A)
        return (
            np.linalg.det(A)
            + size
            + x @ np.linalg.solve(A, np.linalg.inv(A) @ x)
            + np.trace(np.linalg.matrix_power(A, 2))
        )

    X, v = array(M), array(V, 1)
    expected = (
        np.linalg.det(X)
        + np.linalg.slogdet(X)[1]
        + v @ np.linalg.solve(X, np.linalg.inv(X) @ v)
        + np.trace(np.linalg.matrix_power(X, 2))
    )
    close(numpys(X, v), expected)
    cd.testing.check_grad(numpys, "A", A=X, x=v)


def test_plain_arrays_are_numpys() -> None:
    X, v = array(M), array(V, 1)
    close(cd.inv(X), np.linalg.inv(X))
    close(cd.det(X.tolist()), np.linalg.det(X))
    close(cd.logdet(X), np.linalg.slogdet(X)[1])
    close(cd.solve(X, v), np.linalg.solve(X, v))
    close(cd.matrix_power(X, -3), np.linalg.matrix_power(X, -3))
    close(cd.trace(X), np.trace(X))
    close(cd.adj(X) @ X, np.linalg.det(X) * np.eye(3))


@pytest.mark.parametrize(
    "made",
    [lambda: quadratic, lambda: sums_of_inverses, lambda: grad(quadratic, "A"), lambda: cd.hvp(gaussian)],
    ids=["value", "inverses", "gradient", "product"],
)
def test_a_singular_matrix_is_named(made: Callable[[], cd.Program]) -> None:
    program = made()
    arrays = [np.ones((3, 3)) if p.type.order == 2 else np.ones(3) for p in program.parameters]  # type: ignore[union-attr]
    name = program.parameters[0].name
    with pytest.raises(cd.ArgumentError, match=rf"the matrix {name} is singular\n  hint: .*invertible matrix"):
        program(*arrays)
    environment = dict(zip(program.parameters, arrays, strict=True))
    with pytest.raises(cd.ArgumentError, match="the inverse of a singular matrix is asked for"):
        evaluate(program.term.body, environment, SIZES)


def test_singular_matrices_where_functions_have_values() -> None:
    @cd.program
    def f(A: M):
        return cd.det(A), cd.logdet(A)

    assert f(np.ones((2, 2))) == (0.0, -np.inf)


@pytest.mark.parametrize(
    ("body", "message", "hint"),
    [
        (lambda A, Q, x: cd.inv(x), "inv takes a matrix, but x has order 1", "last two axes are the rows and columns"),
        (lambda A, Q, x: cd.det(x[0]), r"det takes a matrix, but x\[0\] has order 0", "last two axes"),
        (lambda A, Q, x: cd.logdet(Q), "logdet takes a square matrix, but the axes of Q are 'n' and 'm'", "same name"),
        (lambda A, Q, x: cd.solve(Q, x), "solve takes a square matrix, but the axes of Q are 'n' and 'm'", "same name"),
        (
            lambda A, Q, x: cd.solve(A, Q.T),
            "a right side with 'n' rows for A, but the axes .* are 'm', 'n'",
            "",
        ),
        (lambda A, Q, x: cd.matrix_power(A, 0.5), "takes a whole number as exponent, not 0.5", "Python integer"),
        (
            lambda A, Q, x: cd.matrix_power(Q, 2),
            "matrix_power takes a square matrix, but the axes of Q are 'n' and 'm'",
            "same name",
        ),
        (lambda A, Q, x: cd.trace(x), "the trace of x is asked for, but its order is 1, not 2", ""),
        (lambda A, Q, x: np.linalg.eigvals(A), "np.linalg.eigvals is not supported in a program", "np.linalg.eigh"),
    ],
)
def test_messages(body: Callable[..., Any], message: str, hint: str) -> None:
    def program(A: M, Q: RECTANGLE, x: V):
        return body(A, Q, x)

    with pytest.raises(cd.CombdiffError, match=message) as caught:
        cd.program(program)
    assert hint in caught.value.hint


def test_a_matrix_over_the_real_line_has_no_inverse() -> None:
    kernel = cd.Space(cd.Real(), cd.Real())

    def program(K: kernel):  # type: ignore[valid-type]
        return cd.inv(K)

    with pytest.raises(cd.TypeMismatchError, match="inv takes a square matrix"):
        cd.program(program)


@pytest.mark.parametrize(
    ("objective", "wrt", "expected"),
    [
        ("log(det(s·K))", "s", "n / s"),
        ("log(det(s^2·K))", "K", "K⁻ᵀ"),
        ("yᵀ·(s^2·K)⁻¹·y", "s", "-2·yᵀ·K⁻¹·y / s³"),
        ("tr((K/s)⁻¹·A)", "s", "tr(K⁻¹·A)"),
        ("log(det(s·K)) + yᵀ·(s·K)⁻¹·y", "K", "K⁻ᵀ - K⁻ᵀ·y·yᵀ·K⁻ᵀ / s"),
    ],
)
def test_a_number_leaves_the_matrix_that_is_inverted(objective: str, wrt: str, expected: str) -> None:
    program = cd.read(f"s (), K (n, n), A (n, n), y (n)\n{objective}")
    gradient = cd.grad(program, wrt=wrt)
    assert gradient.matrix() == expected
    rng = np.random.default_rng(3)
    arrays = {"s": 1.7, "K": rng.normal(size=(4, 4)) + 4 * np.eye(4), "A": rng.normal(size=(4, 4)), "y": np.ones(4)}
    values = [arrays[parameter.name] for parameter in gradient.parameters]
    plain = cd.grad(program, wrt=wrt, simplify=False)(*values)
    np.testing.assert_allclose(gradient(*values), plain, rtol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["expm", "sqrtm"])
def test_a_stack_of_matrices_takes_one_derivative_for_each(name: str) -> None:
    """Elements of each function are read by an index that the cotangent is summed over, not the derivatives."""

    @cd.program
    def corner(x: cd.Space("n"), A: cd.Space("m", "m")):
        each = getattr(cd, name)(x[:, None, None] * A + 4 * cd.eye(A.shape[0]))
        return (each[:, 0, 1] ** 2).sum() + each[:, 1, 1].sum()

    gradient = cd.grad(corner, "x")
    one, two = (gradient.cost(n=n, m=4).flops for n in (20, 40))
    assert two < 2.1 * one
    rng = np.random.default_rng(3)
    assert cd.testing.check_routes(corner, x=rng.uniform(1, 2, 3), A=rng.normal(size=(2, 2)) / 2) < 1e-6
