"""Shares of a sum have a name where that is shorter; cores of Hessians of softmax do not overflow, and make it up."""

from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.hessians.newton import expanded
from combdiff.ir import Apply, Lambda, Space, Sum, Term, Var, add, divide, evaluate, let, mul, negate
from combdiff.simplification.normal_form.definitions import with_factors_taken_in

Vector, Rows = cd.Space("n"), cd.Space("m", "n")


@cd.program
def log_sum_exp(x: Vector):
    return cd.log(cd.exp(x).sum())


@cd.program
def cross_entropy(x: Vector, y: Vector):
    return -(y * cd.log(cd.exp(x) / cd.exp(x).sum())).sum()


@cd.program
def squares(x: Vector):
    p = cd.exp(x) / cd.exp(x).sum()
    return (p * p).sum()


@cd.program
def damped(x: Vector, y: Vector):
    return cd.log(cd.exp(x).sum()) - x @ y + (x * x).sum() / 2


@cd.program
def by_rows(X: Rows):
    return cd.sum(lambda i: cd.log(cd.sum(lambda j: cd.exp(X[i, j]))))


@cd.program
def regression(W: Rows, A: cd.Space("b", "n"), Y: cd.Space("b", "m")):
    Z = A @ W.T
    return cd.log(np.exp(Z).sum(axis=1)).sum() - (Y * Z).sum()


EXTREME = np.array([1e4, -1e4, 3.0, 1e4 - 1, 0.0])
SHARES = np.array([0.1, 0.2, 0.3, 0.2, 0.2])
A = np.array([[1.0, -1.0, 2.0, 0.5, 0.0], [0.3, 0.2, 0.1, -1.0, 2.0], [1.0, 1.0, 0.0, 0.0, 1.0]])
CASES: dict[str, tuple[cd.Program, tuple[Any, ...]]] = {
    "log-sum-exp": (log_sum_exp, (EXTREME,)),
    "cross-entropy": (cross_entropy, (EXTREME, SHARES)),
    "squares": (squares, (EXTREME,)),
    "damped": (damped, (EXTREME, SHARES)),
    "rows": (by_rows, (np.stack([EXTREME, -EXTREME]),)),
    "regression": (regression, (np.stack([EXTREME, -EXTREME, EXTREME / 3]), A, np.eye(3))),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_cores_of_extreme_arguments(name: str) -> None:
    f, arrays = CASES[name]
    H = cd.hessian(f)
    for scale in (1.0, 1e-4):
        check_cores(H, (arrays[0] * scale, *arrays[1:]))


def check_cores(H: cd.Program, arrays: tuple[Any, ...]) -> None:
    dense, operator = H(*arrays), H._operator(arrays)
    assert operator is not None
    assert all(np.isfinite(core).all() for core in operator.cores)
    np.testing.assert_allclose(expanded(operator.structure, operator.cores, operator.shape * 2), dense, atol=1e-10)
    v = np.cos(np.arange(dense[..., 0].size if dense.ndim == 2 else arrays[0].size)).reshape(arrays[0].shape)
    np.testing.assert_allclose(operator.matvec(v), np.tensordot(dense, v, v.ndim), atol=1e-9)


def test_log_sum_exp_has_a_diagonal_beside_one_column() -> None:
    assert str(cd.hessian(log_sum_exp).compressed()) == (
        "H[i,j] = core1[i] δ[i,j] + core2[i] core1[j]\n"
        "x ↦\n  t[d] = exp(x[d])\n  p[d] = t[d] / Σ_i t[i]\n  (a ↦ p[a], a ↦ -p[a])"
    )


@pytest.mark.thorough
def test_a_newton_step_at_extreme_arguments() -> None:
    """The gradient is p − y + x, the Hessian diag(p) − p·pᵀ + 1."""
    H, gradient = cd.hessian(damped), cd.grad(damped)(EXTREME, SHARES)
    step = H.solve(-gradient, EXTREME, SHARES)
    p = np.exp(EXTREME - EXTREME.max()) / np.exp(EXTREME - EXTREME.max()).sum()
    np.testing.assert_allclose(step, np.linalg.solve(np.diag(p) - np.outer(p, p) + np.eye(5), -gradient), rtol=1e-12)


@cd.program
def softmax(x: Vector):
    return cd.softmax(x)


@cd.program
def mean(x: Vector, c: Vector):
    return cd.softmax(x) @ c


@cd.program
def entropy(x: Vector):
    p = cd.softmax(x)
    return -(p * np.log(p)).sum()


@cd.program
def attention(Q: cd.Space("t", "d"), K: cd.Space("t", "d"), W: cd.Space("t", "d")):
    return ((cd.softmax(Q @ K.T, axis=-1) @ W) ** 2).sum()


SHARE = "p[d] = exp(x[d]) / Σ_i exp(x[i])"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("derivative", "printed"),
    [
        (lambda: cd.jacobian(softmax), [SHARE, "(a, d) ↦ p[a] (δ(a, d) - p[d])"]),
        (lambda: cd.grad(mean, "x"), [SHARE, "d ↦ p[d] (c[d] - Σ_i c[i] p[i])"]),
        (
            lambda: cd.grad(entropy),
            [SHARE, "d ↦ p[d] (Σ_i p[i] log(p[i]) - log(p[d]))"],  # Σ_i p[i] (1 + log(p[i])) is 1 + Σ_i p[i] log(p[i])
        ),
        (lambda: cd.hessian(log_sum_exp), [SHARE, "(a, d) ↦ p[d] (δ(a, d) - p[a])"]),
    ],
)
def test_shares_have_a_name(derivative: Any, printed: list[str]) -> None:
    assert [line.strip() for line in str(derivative()).splitlines()[1:]] == printed


@cd.program
def powers(x: Vector, c: Vector):
    t = cd.exp(x)
    p = t / t.sum()
    return cd.sum(lambda i: (p[i] ** 2 * t[i] / t.sum() + c[i] * p[i] ** 3) * p[i])


@pytest.mark.thorough
@pytest.mark.parametrize("transform", [cd.grad, cd.hessian])
def test_powers_of_shares_are_all_read(transform: Any) -> None:
    found, raw = (transform(powers, "x", simplify=simplify) for simplify in (True, False))
    np.testing.assert_allclose(found(SHARES, A[0]), raw(SHARES, A[0]), rtol=1e-10)
    cd.testing.check_grad(powers, "x", x=SHARES, c=A[0])


@pytest.mark.thorough
@pytest.mark.parametrize("by", ["Q", "K", "W"])
def test_shares_of_rows_have_the_value_of_quotients(by: str) -> None:
    """Along an axis of several, beside factors of other indices, in sums of sums."""
    gradient = cd.grad(attention, by)
    rows = "p[d,e] = exp(Σ_k K[e,k] Q[d,k]) / Σ_i exp(Σ_k K[i,k] Q[d,k])"
    assert (rows in str(gradient)) == (by != "W")  # which reads each share once
    arrays = {name: np.random.default_rng(n).normal(size=(3, 3)) for n, name in enumerate("QKW")}
    cd.testing.check_grad(attention, by, **arrays)
    np.testing.assert_allclose(gradient(**arrays), cd.grad(attention, by, simplify=False)(**arrays), rtol=1e-10)


@cd.program
def classified(W: cd.Space("c", "k"), U: cd.Space("k", "n"), x: Vector, y: cd.Space("c")):
    h = np.tanh(U @ x)
    z = W @ h
    return -(y * np.log(np.exp(z) / np.exp(z).sum())).sum()


@pytest.mark.thorough
def test_a_cotangent_takes_in_the_factor_that_it_is_always_read_beside() -> None:
    """∂/∂z of cross entropy is p Σ y − y, whatever z is: not t (Σ y/Σ t − y/t) with t = exp(z)."""
    gradients = cd.grad(classified, ("W", "U"))
    assert "t2[d] = (t[d] Σ_i y[i]) / Σ_i t[i] - y[d]" in str(gradients)
    rng = np.random.default_rng(3)
    W, U, x, y = rng.normal(size=(4, 3)), rng.normal(size=(3, 2)), rng.normal(size=2), rng.random(4)
    h = np.tanh(U @ x)
    p = np.exp(W @ h) / np.exp(W @ h).sum()
    by_z = p * y.sum() - y
    by_W, by_U = gradients(W, U, x, y)
    np.testing.assert_allclose(by_W, np.outer(by_z, h), rtol=1e-12)
    np.testing.assert_allclose(by_U, np.outer((1 - h**2) * (W.T @ by_z), x), rtol=1e-12)
    np.testing.assert_allclose(cd.grad(classified, "U")(W, U, x, y), by_U, rtol=1e-12)


D, E, K = (Var(name, cd.Range("n")) for name in "dek")
T, U, X, Y = (Var(name, Space("n")) for name in "tuxy")
NUMBER = Var("a", Space())


def at(tensor: Var, *indices: Var) -> Term:
    return Apply(tensor, indices)


OWN = Lambda((D,), add(NUMBER, negate(divide(at(Y, D), at(T, D)))))
SUMMED = Lambda((D,), add(NUMBER, negate(Sum((K,), divide(at(Y, K), at(T, K))))))


@pytest.mark.parametrize(
    ("value", "result", "applies"),
    [
        (OWN, Lambda((D,), mul(at(T, D), at(U, D))), True),
        (OWN, Lambda((E,), Sum((D,), mul(at(T, D), at(U, D), at(X, E)))), True),
        (OWN, Lambda((D, E), mul(at(T, D), at(U, E), at(X, E))), False),  # t at another index
        (OWN, Lambda((D,), add(mul(at(T, D), at(U, D)), at(U, D))), False),  # alone, too
        (OWN, Lambda((D, E), mul(at(T, D), at(U, D), at(U, E))), False),  # twice in a product
        (SUMMED, Lambda((D,), Sum((K,), mul(at(T, K), at(U, D)))), False),  # an index that the definition sums over
    ],
)
def test_only_what_is_read_at_the_same_indices_is_taken_in(value: Lambda, result: Lambda, applies: bool) -> None:
    body = let([(U, value)], result)
    found = list(with_factors_taken_in(body))
    assert bool(found) == applies
    rng = np.random.default_rng(5)
    scope = {v: rng.random(3) + 0.5 for v in (T, X, Y)} | {NUMBER: 0.3}
    for each in found:
        np.testing.assert_allclose(evaluate(each, scope, {"n": 3}), evaluate(body, scope, {"n": 3}), rtol=1e-12)


ROWS = "W (n, n), q (n, n), y (n)\n(W, q, y) ↦\n  p[i,j] = exp(W[i,j]) / Σ_k exp(W[i,k])\n  "


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("objective", "averaged"),
    [
        ("Σ_{i,j} p[i,j] log(p[i,j])", "(log(p[d,e]) - Σ_i p[d,i] log(p[d,i]))"),
        ("Σ_{i,j} p[i,j] q[i,j]", "(q[d,e] - Σ_i q[d,i] p[d,i])"),
        ("Σ_{i,j} p[i,j] log(p[i,j] / q[i,j])", "(log(p[d,e] / q[d,e]) - Σ_i p[d,i] log(p[d,i] / q[d,i]))"),
        ("Σ_{i,j} y[i] p[i,j] log(p[i,j])", "y[d] (log(p[d,e]) - Σ_i p[d,i] log(p[d,i]))"),
    ],
)
def test_what_shares_of_rows_do_not_average_cancels(objective: str, averaged: str) -> None:
    """log p + 1 − Σ p (log p + 1) is log p − Σ p log p, row by row."""
    program = cd.read(ROWS + objective)
    gradient = cd.grad(program, wrt="W")
    assert str(gradient).splitlines()[-1] == f"  (d, e) ↦ p[d,e] {averaged}"
    assert "1 +" not in str(gradient)
    rng = np.random.default_rng(5)
    values = [rng.normal(size=(4, 4)), rng.random((4, 4)) + 0.5, rng.normal(size=4)]
    plain = cd.grad(program, wrt="W", simplify=False)
    at = {parameter.name: value for parameter, value in zip(program.parameters, values, strict=True)}
    found, expected = (f(*(at[parameter.name] for parameter in f.parameters)) for f in (gradient, plain))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)
