"""A let program in one e-graph: laws see through the names of definitions; what is read depends on those kept."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir import (
    Apply,
    Lambda,
    Names,
    Number,
    Range,
    Space,
    Sum,
    Symmetric,
    Term,
    Var,
    add,
    affine,
    delta,
    function,
    let,
    mul,
    split,
)
from combdiff.ir.interpreter import evaluate
from combdiff.printing.plain import text
from combdiff.simplification.egraph.budget import gathered
from combdiff.simplification.egraph.programs import ProgramClasses
from combdiff.simplification.normal_form.canonical import canonical
from combdiff.simplification.normal_form.expansion import multiplied_out

SEEN_THROUGH = {  # what a binding would keep from the laws
    "x (5)\nΣ_i (x[i] - (Σ_j x[j]) / 5)² / 5": "d ↦ 2/5 x[d] - 2/25 Σ_j x[j]",
    "x (n, n)\nt = x·x\ntr(t·t·x)": "(d, e) ↦ 5 Σ_k (Σ_i x[e,i] x[i,k]) Σ_i x[k,i] x[i,d]",
    "x ()\nlog(x + sqrt(1 + x^2))": "1 / sqrt(1 + x²)",
    "x ()\nlog(1 + exp(x))": "1 / (1 + exp(-x))",
}


@pytest.mark.parametrize(("program", "expected"), SEEN_THROUGH.items())
def test_laws_see_through_definitions(program: str, expected: str) -> None:
    found = cd.grad(cd.read(program), wrt="x")
    assert str(found).removeprefix("x ↦ ") == expected


@cd.program
def rectified(W: cd.Space("d", "k"), v: cd.Space("k"), X: cd.Space("n", "d")):
    return np.sum((np.maximum(X @ W, 0) * v) ** 2)


@cd.program
def likelihood(W: cd.Space("d"), b: cd.Space(), X: cd.Space("n", "d"), y: cd.Space("n")):
    p = 1 / (1 + np.exp(-(X @ W + b)))
    return np.sum(y * np.log(p) + (1 - y) * np.log1p(-p))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("program", "wrt", "gone"), [(rectified, ("W", "v"), "heaviside"), (likelihood, ("W", "b"), ")²")]
)
def test_laws_see_through_what_several_results_read(program: cd.Program, wrt: tuple[str, ...], gone: str) -> None:
    """Of max(z, 0) heaviside(z), and of (y/p − (1 − y)/(1 − p)) exp(−z)/(1 + exp(−z))², each part has a name."""
    gradient = cd.grad(program, wrt)
    assert gone not in str(gradient)
    rng = np.random.default_rng(0)
    arrays = {"W": rng.normal(size=(3, 2) if program is rectified else 3), "X": rng.normal(size=(4, 3))}
    arrays |= {"v": rng.normal(size=2)} if program is rectified else {"b": np.array(0.3), "y": rng.uniform(size=4)}
    for name in wrt:
        cd.testing.check_grad(program, name, **arrays)


def test_the_same_classes_are_read_with_a_definition_and_without() -> None:
    x, t = (Var(name, Space("n")) for name in "xt")
    i, d = (Var(name, Range("n")) for name in "id")
    exponential = Lambda((i,), function("exp", Apply(x, (i,))))
    at = Apply(t, (d,))
    share = Lambda((d,), mul(at, function("power", add(Number(1), at), Number(-1))))
    classes = ProgramClasses(let([(t, exponential)], share), (), {})
    kept, written = classes.without(frozenset()), classes.without(frozenset({t}))
    assert kept is not None
    assert written is not None
    assert [var for var, _ in split(kept)[0]] == [t]
    assert text(written) == "d ↦ 1 / (1 + exp(-x[d]))"
    values = {x: np.array([0.3, -1.2])}
    np.testing.assert_allclose(evaluate(kept, values, {"n": 2}), evaluate(written, values, {"n": 2}))


@pytest.mark.parametrize("more", [Number(1), Var("a", Space())])
def test_a_reciprocal_that_is_a_sum_with_itself_comes_to_rest(more: Term) -> None:
    x, t = Var("x", Space()), Var("t", Space())
    over = mul(add(Number(1), mul(x, function("power", t, Number(-1)))), function("power", add(x, t), Number(-1)))
    classes = ProgramClasses(let([(t, function("sqrt", add(more, mul(x, x))))], over), (), {})
    with gathered() as stops:
        kept = classes.without(frozenset())
    assert kept is not None
    assert text(split(kept)[1]) == "1 / t"
    assert not stops


def test_what_is_equal_as_a_polynomial_is_equal_multiplied_out() -> None:
    x, m = Var("x", Space("n")), Var("m", Space())
    i = Var("i", Range("n"))
    down, up = add(Apply(x, (i,)), mul(Number(-1), m)), add(Apply(x, (i,)), m)
    linear, product = Sum((i,), mul(down, m)), Sum((i,), mul(down, up))
    assert text(canonical(multiplied_out(linear, Names(linear)))) == "m Σ_i x[i] - m² n"
    assert text(canonical(multiplied_out(product, Names(product)))) == "Σ_i (x[i] - m) (x[i] + m)"  # keeps its digits


SIZES = {
    "x (n)\nΣ_{i,j} (x[i] - x[j])²": "d ↦ 4 x[d] n - 4 Σ_i x[i]",
    "x (9)\nΣ_{i,j} (x[i] - x[j])² / 2": "d ↦ 18 x[d] - 2 Σ_i x[i]",
    "x (n)\n(x) ↦ (Σ_i x[i]) (Σ_{j<n} 1) / n": "d<n ↦ 1",
}


@pytest.mark.parametrize(("program", "expected"), SIZES.items())
def test_a_sum_of_ones_is_a_size(program: str, expected: str) -> None:
    assert expected in str(cd.grad(cd.read(program)))
    cd.testing.check_grad(cd.read(program), "x", x=np.arange(9.0))


REPEATED = {  # tensors that are the same along an axis: the maximum of a vector is one of a matrix of one column
    "modulus": lambda x, y: np.abs((x + y) / (1 + y**2)).max(),
    "product of extremes": lambda x, y: ((x + y) / (1 + y**2)).max() * ((x + y) / (1 + y**2)).min(),
    "clipped": lambda x, y: np.maximum(x * y / (1 + x**2) - x, 0.1).max(),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", REPEATED)
def test_what_an_axis_repeats_brings_no_index_along(name: str) -> None:
    def f(x, y):
        return REPEATED[name](x, y)

    f.__annotations__ = {"x": cd.Space("n"), "y": cd.Space("n")}
    program, rng = cd.program(f), np.random.default_rng(4)
    assert "maxima" in str(cd.grad(program, "y"))
    cd.testing.check_grad(program, ("x", "y"), x=rng.normal(size=5), y=rng.normal(size=5))


def test_what_asks_where_an_index_of_a_cycle_is_has_no_value_at_two_beyond_it() -> None:
    """t[d - 2] is t at d - 2 modulo n, and t is [d ≤ 1] y[d] x[d] + …: [d ≤ 3] is not what it asks there."""
    Ring = cd.Space(cd.Cyclic("n"))

    @cd.program
    def f(x: Ring, y: Ring):
        z = cd.tensor(lambda i: cd.where(i != 1, x[i + 2] * y[i - 2], cd.sin(x[i - 2])))
        return cd.sum(lambda i: cd.where(i <= 1, z[i] ** 2 * y[i], z[i]))

    gradient, raw = cd.grad(f), cd.grad(f, simplify=False)
    for n in range(1, 6):
        x, y = np.random.default_rng(n).normal(size=(2, n))
        expected = evaluate(raw.term.body, dict(zip(raw.term.parameters, (x, y), strict=True)), {"n": n})
        np.testing.assert_allclose(gradient(x, y), expected, atol=1e-12)


@pytest.mark.parametrize("domain", [Range(3), Symmetric(1)])
def test_a_definition_read_at_its_own_indices_exchanged(domain: Range | Symmetric) -> None:
    """t[i, j] = δ(i, j) + c is u[j, i] for u = tᵀ: replaced one after the other, the indices would both be i."""
    i, j, k, m = (Var(name, domain) for name in "ijkm")
    t, u = (Var(name, Space(domain, domain, symmetry=[f"{name}[i,j] = {name}[j,i]"])) for name in "tu")
    c = Var("c", Space())
    value = Lambda((i, j), add(delta(i, j), function("sin", c)))
    turned = Lambda((k, m), Apply(t, (m, k)))
    result = mul(function("det", t), add(function("det", u), Apply(u, (affine([]), affine([])))))
    body = let([(t, value), (u, turned)], result)
    classes = ProgramClasses(body, (), {t: value, u: turned})
    expected = evaluate(body, {c: 0.3}, {})
    for left_out in (frozenset[Var](), frozenset({t}), frozenset({u})):
        found = classes.without(left_out)
        assert found is None or evaluate(found, {c: 0.3}, {}) == pytest.approx(expected), text(found)
