"""Softmax, log-sum-exp and logistic functions where they overflow: values, gradients and Hessians, against SciPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir import is_nonnegative, is_positive
from combdiff.ir.interpreter import evaluate
from combdiff.stability import stable

special = pytest.importorskip("scipy.special")
mpmath = pytest.importorskip("mpmath")

V = cd.Space("n")
DATA = cd.Space("m", "n")
LABELS = cd.Space("m")


@cd.program
def log_sum_exp(x: V):
    return cd.log(cd.sum(lambda i: cd.exp(x[i])))


@cd.program
def softplus(x: V):
    return cd.sum(lambda i: cd.log(1 + cd.exp(x[i])))


@cd.program
def sigmoids(x: V):
    return 1 / (1 + cd.exp(-x))


@cd.program
def other_sigmoids(x: V):
    return cd.exp(x) / (1 + cd.exp(x))


@cd.program
def softmax(x: V):
    powers = cd.exp(x)
    return powers / powers.sum()


@cd.program
def cross_entropy(x: V, y: V):
    powers = cd.exp(x)
    shares = powers / powers.sum()
    return -cd.sum(lambda i: y[i] * cd.log(shares[i]))


@cd.program
def logistic_loss(X: DATA, y: LABELS, w: V):
    margins = X @ w
    return cd.sum(lambda i: cd.log(1 + cd.exp(-y[i] * margins[i])))


# Of one length, so that each program is derived and planned once for all of them.
EXTREME = np.array(
    [
        [1000.0, -1000.0, 0.0, 999.0],
        [-1000.0, -1001.0, -2000.0, -1000.5],
        [1000.0, 1000.0, 1000.0, -1000.0],
        [0.3, -0.2, 1.1, 0.0],
        [40.0, -40.0, 745.0, -745.0],
    ]
)


def finite(found: Any, expected: Any, tolerance: float = 1e-11) -> None:
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def softmax_jacobian(x: Any) -> Any:
    p = special.softmax(x)
    return np.diag(p) - np.outer(p, p)


def sigmoid_slope(x: Any) -> Any:
    return special.expit(x) * special.expit(-x)


SIMPLIFIED = pytest.mark.parametrize("simplified", [True, False], ids=["simplified", "raw"])


@SIMPLIFIED
def test_log_sum_exp(simplified: bool) -> None:
    gradient, hessian = (derive(log_sum_exp, simplify=simplified) for derive in (cd.grad, cd.hessian))
    for x in EXTREME:
        finite(log_sum_exp(x), special.logsumexp(x))
        finite(gradient(x), special.softmax(x))
        finite(hessian(x), softmax_jacobian(x))


def test_log_sum_exp_with_its_gradient_and_products() -> None:
    both, product = cd.value_and_grad(log_sum_exp), cd.hvp(log_sum_exp)
    vector = np.arange(1.0, 5)
    for x in EXTREME:
        value, gradient = both(x)
        finite(value, special.logsumexp(x))
        finite(gradient, special.softmax(x))
        finite(product(x, vector), softmax_jacobian(x) @ vector)


@SIMPLIFIED
def test_softplus(simplified: bool) -> None:
    gradient, hessian = (derive(softplus, simplify=simplified) for derive in (cd.grad, cd.hessian))
    for x in EXTREME:
        finite(softplus(x), np.logaddexp(0, x).sum())
        finite(gradient(x), special.expit(x))
        finite(hessian(x), np.diag(sigmoid_slope(x)))


@SIMPLIFIED
@pytest.mark.parametrize("program", [sigmoids, other_sigmoids], ids=lambda p: p.name)
def test_sigmoids(program: cd.Program, simplified: bool) -> None:
    jacobian = cd.jacobian(program, simplify=simplified)
    for x in EXTREME:
        finite(program(x), special.expit(x))
        finite(jacobian(x), np.diag(sigmoid_slope(x)))


@SIMPLIFIED
def test_softmax(simplified: bool) -> None:
    jacobian = cd.jacobian(softmax, simplify=simplified)
    for x in EXTREME:
        finite(softmax(x), special.softmax(x))
        finite(jacobian(x), softmax_jacobian(x))


@pytest.mark.thorough
def test_products_with_the_jacobian_of_softmax() -> None:
    backward, forward = cd.pullback(softmax), cd.pushforward(softmax)
    k = np.linspace(-1, 1, 4)
    for x in EXTREME:
        finite(backward(x, k), softmax_jacobian(x) @ k)
        finite(forward(x, k), softmax_jacobian(x) @ k)


@pytest.mark.thorough
@SIMPLIFIED
def test_softmax_cross_entropy(simplified: bool) -> None:
    gradient = cd.grad(cross_entropy, "x", simplify=simplified)
    hessian = cd.hessian(cross_entropy, "x", simplify=simplified)
    y = np.array([0.0, 1.0, 0.0, 0.0])
    for x in EXTREME:
        finite(cross_entropy(x, y), -special.log_softmax(x)[1])
        finite(gradient(x, y), special.softmax(x) - y)
        finite(hessian(x, y), softmax_jacobian(x))


@pytest.mark.thorough
@SIMPLIFIED
def test_logistic_loss(simplified: bool) -> None:
    gradient, hessian = (derive(logistic_loss, "w", simplify=simplified) for derive in (cd.grad, cd.hessian))
    rng = np.random.default_rng(3)
    data, y, w = rng.normal(size=(6, 3)), np.sign(rng.normal(size=6)), rng.normal(size=3)
    for X in (data, 1000 * data):
        z = -y * (X @ w)
        finite(logistic_loss(X, y, w), np.logaddexp(0, z).sum())
        finite(gradient(X, y, w), X.T @ (-y * special.expit(z)), 1e-10)
        finite(hessian(X, y, w), X.T @ np.diag(sigmoid_slope(z)) @ X, 1e-8)


def test_axes_and_rows() -> None:
    """Attention: a softmax along one axis of a matrix, and its derivative."""
    rows = cd.Space("m", "n")

    @cd.program
    def attention(x: rows, v: rows):
        powers = cd.exp(x)
        sums = cd.tensor(lambda i: cd.sum(lambda j: powers[i, j]))
        return cd.sum(lambda i, j: powers[i, j] / sums[i] * v[i, j])

    x = np.array([[1000.0, 0.0, -1000.0], [-1000.0, -1000.5, -3000.0]])
    v = np.arange(6.0).reshape(2, 3)
    p = special.softmax(x, axis=1)
    finite(attention(x, v), np.sum(p * v))
    finite(cd.grad(attention, "x")(x, v), p * (v - np.sum(p * v, axis=1, keepdims=True)))


def test_ordinary_arguments_keep_their_values() -> None:
    """At small arguments the reference interpreter, which knows nothing of stability, agrees."""
    x = np.array([0.3, -0.4, 1.2])
    for program in (log_sum_exp, softplus, softmax, sigmoids, cd.grad(log_sum_exp), cd.hessian(softplus)):
        expected = evaluate(program.term.body, {program.term.parameters[0]: x}, {"n": 3})
        np.testing.assert_allclose(program(x), expected, rtol=1e-12, atol=1e-14)
    for program in (log_sum_exp, softplus):
        cd.testing.check_grad(program, "x", x=x)


def test_numpy_logaddexp() -> None:
    @cd.program
    def f(x: V, y: V):
        return np.logaddexp(x, y).sum()

    x, y = np.array([1000.0, -1000.0]), np.array([999.0, -1000.0])
    finite(f(x, y), np.logaddexp(x, y).sum())
    finite(cd.grad(f)(x, y), special.expit(x - y))
    finite(cd.hessian(f, "x")(x, y), np.diag(sigmoid_slope(x - y)))
    finite(cd.logaddexp(x, y), np.logaddexp(x, y))


def test_the_source_stands_alone() -> None:
    program = cd.grad(cross_entropy, "x")
    namespace: dict[str, Any] = {}
    exec(program.source(), namespace)
    x, y = EXTREME[0], np.array([0.0, 1.0, 0.0, 0.0])
    finite(namespace[program.name](x, y), special.softmax(x) - y)


def test_programs_without_quotients_of_exponentials_are_left_alone() -> None:
    @cd.program
    def bell(x: V):
        return cd.sum(lambda i: cd.exp(-(x[i] ** 2)) / x[i])

    assert stable(bell.term) is bell.term
    assert stable(softmax.term) is not softmax.term


@pytest.mark.thorough
def test_deltas_that_no_index_solves_stay() -> None:
    Ring = cd.Space(cd.Cyclic(3))

    @cd.program
    def f(x: Ring, y: cd.Space(cd.Cyclic(3), cd.Cyclic(3)), z: Ring):
        def inner(i):
            return cd.sum(
                lambda j: x[-4 * i - 3] * cd.exp(y[3 * i + 4 * j + 1, 3 * i - 3]) * z[i + 4 * j], j=cd.Cyclic(3)
            )

        return cd.sum(lambda i: cd.cos(inner(i)), i=cd.Cyclic(3))

    rng = np.random.default_rng(0)
    x, y, z, v = rng.random(3), rng.random((3, 3)), rng.random(3), rng.standard_normal((3, 3))
    found = np.tensordot(cd.hessian(f, wrt="y")(x, y, z), v, 2)
    gradient = cd.grad(f, wrt="y")
    expected = (gradient(x, y + 1e-6 * v, z) - gradient(x, y - 1e-6 * v, z)) / 2e-6
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.thorough
def test_products_that_no_law_helps_are_not_multiplied_out() -> None:
    @cd.program
    def f(A: cd.Space("m", "n"), B: cd.Space("p", "m"), x: cd.Space("n")):
        t = cd.tensor(lambda i: cd.exp(cd.sum(lambda j: A[i, j] * x[j])))
        return cd.tensor(lambda o: cd.sum(lambda i: B[o, i] * cd.tanh(t[i])))

    J = cd.jacobian(f, wrt="x")
    matrices = [row for row in J.cost(m=30, n=30, p=30).rows if row.flops >= 30**2]
    assert [row.operation for row in matrices] == ["matrix-vector", "multiply", "matrix-matrix"]


# --- what is positive by its form ----------------------------------------------------------------------------------

SIGNS: dict[str, tuple[Any, str]] = {
    "a sum of exponentials": (lambda x: 1 + 2 * cd.exp(x).sum(), "positive"),
    "a root of one": (lambda x: cd.sqrt(cd.cosh(x).sum()), "positive"),
    "squares": (lambda x: (x**2).sum(), "not negative"),
    "less one": (lambda x: cd.exp(x).sum() - 1, "unknown"),
    "a negative multiple": (lambda x: -2 * cd.exp(x).sum(), "unknown"),
    "any number": (lambda x: x.sum(), "unknown"),
}


@pytest.mark.parametrize("name", SIGNS)
def test_signs_by_form(name: str) -> None:
    body, expected = SIGNS[name]

    @cd.program
    def f(x: cd.Space("n")):
        return body(x)

    term = f.term.body
    found = "positive" if is_positive(term) else "not negative" if is_nonnegative(term) else "unknown"
    assert found == expected


def test_steps_of_scans_that_are_results() -> None:
    """As a result of the program, as one of two, and within another value."""

    def carried(x: cd.Space("n"), y: cd.Space("T", "n")):
        return cd.scan(lambda state, v: (v * cd.softmax(state), state), x, y)

    x, y = np.array([1e3, 1e3, 0.0]), np.ones((1, 3))
    last = np.array([0.5, 0.5, 0.0])
    for program, expected in (
        (lambda x, y: carried(x, y)[0], last),
        (carried, (last, x[None])),
        (lambda x, y: 2 * carried(x, y)[0], 2 * last),
    ):
        program.__annotations__ = carried.__annotations__
        found = cd.program(program)(x, y)
        for one, other in zip(found, expected, strict=True):
            finite(one, other)


def test_a_sigmoid_is_one_exponential_and_as_exact_as_it_gets() -> None:
    """Its value, slope and bend, and its like that cancels at 0, at all sizes of arguments."""

    @cd.program
    def sigmoid(z: cd.Space()):
        return 1 / (1 + cd.exp(-z))

    @cd.program
    def odds(z: cd.Space()):
        return (cd.exp(z) - 1) / (cd.exp(z) + 1)

    slope = cd.grad(sigmoid)
    bend = cd.grad(slope)
    for z in (-700.0, -40.0, -1.0, -1e-9, 0.0, 1e-9, 1.0, 40.0, 700.0):
        with mpmath.workdps(700):
            one = 1 / (1 + mpmath.exp(-mpmath.mpf(z)))
            expected = one, one * (1 - one), one * (1 - one) * (1 - 2 * one), 2 * one - 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = [program(z) for program in (sigmoid, slope, bend, odds)]
        np.testing.assert_allclose(found, [float(each) for each in expected], rtol=1e-13)
    assert [sigmoid(np.inf), sigmoid(-np.inf), slope(np.inf), slope(-np.inf)] == [1, 0, 0, 0]
    assert sigmoid.source().count("exp(") == 1


@pytest.mark.thorough
def test_steps_with_sigmoids_are_run_once() -> None:
    """What is outside of a scan and what its steps hold are made stable alike: one loop forward, one back."""

    @cd.program
    def f(w: V, x: cd.Space("T", "n")):
        def step(h: Any, u: Any) -> Any:
            h = h / (1 + cd.exp(-w * h)) + u
            return h, h / (1 + cd.exp(-h))

        return cd.scan(step, w, x)[1].sum()

    assert cd.value_and_grad(f, "w").source().count("for ") == 2
    w, x = np.array([0.3, -0.5]), np.array([[0.1, 0.2], [-0.4, 0.3], [0.7, 0.1]])
    assert cd.testing.check_routes(f, w=w, x=x) < 1e-6


def test_weights_are_looked_for_before_scales_that_depend_on_them() -> None:
    """Whether a factor beside exponentials is positive asks for its scale, which conditions and weights stand in."""
    program = cd.read(
        """x ↦
        t[i,k] = log(Σ_j exp(x[i,j,k]))
        e[j<3,k<3,i] = [j ≥ k] exp(Σ_l t[i,l]²)
        p[i,j,k] = e[j,k,i] / Σ_l e[j,l,i]
        z[i,j,k] = Σ_l p[i,j,l] t[i,k]
        Σ_{i,j,k} (z[i,j,k] / sqrt(1 + Σ_{l,m,n} z[l,m,n]²))²""",
        {"x": cd.Space(2, 3, 4)},
    )
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    z = np.repeat(np.log(np.exp(x).sum(1))[:, None], 3, axis=1)  # the shares of a row add up to 1
    np.testing.assert_allclose(program(x), (z**2).sum() / (1 + (z**2).sum()), rtol=1e-12)
