"""Values, gradients, Hessians and products with them at large arguments, simplified and not, against mpmath."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

mpmath = pytest.importorskip("mpmath")
V, S = cd.Space("n"), cd.Space()


class Exact:
    """The functions of arrays of mpmath's numbers."""

    exp = staticmethod(np.frompyfunc(mpmath.exp, 1, 1))
    log = staticmethod(np.frompyfunc(mpmath.log, 1, 1))
    sqrt = staticmethod(np.frompyfunc(mpmath.sqrt, 1, 1))
    cosh = staticmethod(np.frompyfunc(mpmath.cosh, 1, 1))


def weighted(o: Any, x: Any, w: Any) -> Any:
    return o.log((w * o.exp(x)).sum())


def squared_weights(o: Any, x: Any, w: Any) -> Any:
    return o.log((w * w * o.exp(x)).sum())


def affine(o: Any, x: Any, a: Any, b: Any) -> Any:
    return o.log(o.exp(a * x + b).sum())


def mean_by_softmax(o: Any, x: Any, v: Any) -> Any:
    return (o.exp(x) / o.exp(x).sum()) @ v


def softplus(o: Any, x: Any) -> Any:
    return o.log(1 + o.exp(x)).sum()


def log_less(o: Any, x: Any) -> Any:
    return o.log(1 - o.exp(-x * x)).sum()


def tempered(o: Any, x: Any, v: Any, a: Any) -> Any:
    return (o.exp(x / a) / o.exp(x / a).sum()) @ v


def log_softmax(o: Any, x: Any, v: Any) -> Any:
    return o.log(o.exp(x) / o.exp(x).sum()) @ v


def entropy(o: Any, x: Any) -> Any:
    p = o.exp(x) / o.exp(x).sum()
    return -(p * o.log(p)).sum()


def cross_entropy_of_sigmoids(o: Any, x: Any, v: Any) -> Any:
    s = 1 / (1 + o.exp(-x))
    return -(v * o.log(s) + (1 - v) * o.log(1 - s)).sum()


def swish(o: Any, x: Any) -> Any:
    return (x / (1 + o.exp(-x))).sum()


def log_cosh(o: Any, x: Any) -> Any:
    return o.log(o.cosh(x)).sum()


def roots(o: Any, x: Any) -> Any:
    return (o.sqrt(1 + o.exp(x)) / o.sqrt(2 + o.exp(x))).sum()


def gaussians(o: Any, x: Any, v: Any) -> Any:
    return o.log(o.exp(-((x - 100 * v) ** 2) / 2).sum())


def log_of_a_quotient(o: Any, x: Any, v: Any) -> Any:
    return o.log(o.exp(x).sum() / o.exp(v).sum())


DEFINITIONS: list[tuple[Callable[..., Any], tuple[str, ...]]] = [
    (weighted, ("w",)),
    (squared_weights, ("w",)),
    (affine, ("a", "b")),
    (mean_by_softmax, ("v",)),
    (softplus, ()),
    (log_less, ()),
    (tempered, ("v", "a")),
    (log_softmax, ("v",)),
    (entropy, ()),
    (cross_entropy_of_sigmoids, ("v",)),
    (swish, ()),
    (log_cosh, ()),
    (roots, ()),
    (gaussians, ("v",)),
    (log_of_a_quotient, ("v",)),
]
OTHERS = {
    "w": np.array([0.3, 1.7, 0.9]),
    "v": np.array([0.4, -1.2, 0.8]),
    "a": np.array(0.5),
    "b": np.array(2.0),
}
POINTS = ([1e3, -1e3, 3.0], [1e4, -1e4, 1e4], [-1e3, -2e3, -1.5e3], [0.3, -0.2, 1.1], [40.0, -40.0, 745.0])


def programmed(definition: Callable[..., Any], others: tuple[str, ...]) -> cd.Program:
    """The program of a definition."""
    parameters = ("x", *others)
    spaces = {name: V if name in "xwv" else S for name in parameters}

    def traced(*arguments: Any) -> Any:
        return definition(cd, *arguments)

    lines = f"def {definition.__name__}({', '.join(parameters)}):\n    return traced({', '.join(parameters)})"
    namespace: dict[str, Any] = {"traced": traced}
    exec(lines, namespace)
    made = namespace[definition.__name__]
    made.__annotations__ = spaces
    return cd.program(made)


def exact(definition: Callable[..., Any], arrays: list[Any]) -> tuple[float, np.ndarray, np.ndarray]:
    """Value, gradient and Hessian by differences of numbers with 1000 digits."""
    with mpmath.workdps(1000):
        number = np.frompyfunc(lambda value: mpmath.mpf(float(value)), 1, 1)
        given = [number(array) for array in arrays]
        x, h, n = given[0], mpmath.mpf(10) ** -40, len(arrays[0])
        steps = [np.array([h if i == j else mpmath.mpf(0) for j in range(n)], dtype=object) for i in range(n)]

        def at(step: Any) -> Any:
            return definition(Exact, x + step, *given[1:])

        gradient = [float((at(a) - at(-a)) / (2 * h)) for a in steps]
        hessian = [
            [float((at(a + b) - at(a - b) - at(b - a) + at(-a - b)) / (4 * h * h)) for b in steps] for a in steps
        ]
        return float(at(0 * x)), np.array(gradient), np.array(hessian)


def close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * max(1.0, np.abs(expected).max()))


@pytest.mark.thorough
@pytest.mark.parametrize(("definition", "others"), DEFINITIONS, ids=lambda d: getattr(d, "__name__", ""))
def test_at_large_arguments(definition: Callable[..., Any], others: tuple[str, ...]) -> None:
    f = programmed(definition, others)
    derived = [
        (cd.grad(f, "x", simplify=s), cd.hessian(f, "x", simplify=s), cd.hvp(f, "x", simplify=s)) for s in (True, False)
    ]
    both = cd.value_and_grad(f, "x")
    vector = np.array([1.0, 2.0, -1.0])
    for point in POINTS:
        arrays = [np.array(point), *(OTHERS[name] for name in others)]
        if definition is cross_entropy_of_sigmoids and max(map(abs, point)) > 5e3:
            continue  # 1 − s takes more digits there
        value, gradient, hessian = exact(definition, arrays)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            close(f(*arrays), value)
            close(both(*arrays)[1], gradient)
            for by_gradient, by_hessian, by_product in derived:
                close(by_gradient(*arrays), gradient)
                close(by_hessian(*arrays), hessian)
                close(by_product(*arrays, vector), hessian @ vector)
        narrow = [a.astype(np.float32) for a in arrays]
        if max(map(abs, point)) < 1e3:
            close(f(*narrow), value, 1e-4)
            close(derived[0][0](*narrow), gradient, 1e-3)
        assert np.isfinite(derived[0][1](*narrow)).all()


@pytest.mark.sample(1)
@pytest.mark.parametrize("simplified", [True, False])
def test_weights_that_are_negative_or_zero(simplified: bool) -> None:
    f = programmed(weighted, ("w",))
    gradient = cd.grad(f, "x", simplify=simplified)
    hessian = cd.hessian(f, "x", "auto" if simplified else "reverse", simplify=simplified)
    by_weight = cd.grad(f, "w", simplify=simplified)
    for w in ([2.0, -1.0, 0.0], [0.0, 3.0, -1.0], [-1.0, 0.5, 2.0]):
        for x in ([1000.0, 999.0, 5000.0], [-1000.0, -998.0, -2000.0], [0.2, 0.1, 3.0], [800.0, 805.0, 801.0]):
            top = max(e for e, weight in zip(x, w, strict=True) if weight)
            terms = np.array(w) * np.exp(np.minimum(np.array(x) - top, 700.0)) * (np.array(w) != 0)
            if terms.sum() <= 0:
                continue
            arrays = np.array(x), np.array(w)
            p = terms / terms.sum()
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                close(f(*arrays), top + np.log(terms.sum()))
                close(gradient(*arrays), p)
                close(hessian(*arrays), np.diag(p) - np.outer(p, p))
            if max(x) < 700:
                close(by_weight(*arrays), np.exp(np.array(x) - top) / terms.sum())


@pytest.mark.thorough
def test_weights_of_rows_and_columns_that_are_zero() -> None:
    @cd.program
    def f(w: V, x: V):
        return cd.sum(lambda i: cd.log(1 + cd.sum(lambda j: cd.exp(x[i] + x[j]) * w[i] * w[j])))

    w, small, large = np.array([0.0, 1.0, 2.0]), np.array([0.5, 1.0, 2.0]), np.array([5000.0, 1.0, 2.0])
    for simplified in (True, False):
        derived = [d(f, "x", simplify=simplified) for d in (cd.grad, cd.pullback, cd.hvp)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for program, more in zip((f, *derived), ([], [], [1.0], [np.ones(3)]), strict=True):
                close(program(w, large, *more), program(w, small, *more))


@pytest.mark.thorough
def test_sums_over_several_indices() -> None:
    @cd.program
    def double(x: V, y: cd.Space("m")):
        return cd.log(cd.sum(lambda i, j: cd.exp(x[i] + y[j] * x[i])))

    x, y = np.array([1000.0, -300.0]), np.array([0.5, -2.0, 0.1])
    exponents = x[:, None] * (1 + y)
    p = np.exp(exponents - exponents.max())
    p /= p.sum()
    expected = exponents.max() + np.log(np.exp(exponents - exponents.max()).sum())
    slopes = (1 + y) * np.ones((2, 1))
    close(double(x, y), expected)
    gradient = (p * slopes).sum(1)
    for simplified in (True, False):
        close(cd.grad(double, "x", simplify=simplified)(x, y), gradient)
        hessian = cd.hessian(double, "x", mode="reverse", simplify=simplified)
        close(hessian(x, y), np.diag((p * slopes**2).sum(1)) - np.outer(gradient, gradient))


def test_a_user_still_hears_of_a_logarithm_of_zero() -> None:
    @cd.program
    def f(x: V):
        return cd.log(cd.abs(x)).sum()

    with pytest.warns(RuntimeWarning, match="divide by zero"):
        f(np.array([0.0, 1.0]))


@pytest.mark.thorough
def test_products_at_ordinary_arguments_agree_with_central_differences() -> None:
    x = np.array([0.3, -0.4, 0.9])
    for definition, others in DEFINITIONS:
        cd.testing.check_grad(programmed(definition, others), "x", x=x, **{name: OTHERS[name] for name in others})


@pytest.mark.thorough
def test_functions_of_matrices_of_exponentials() -> None:
    @cd.program
    def likelihood(D: cd.Space("n", "n"), y: V, a: S, s: S):
        K = cd.tensor(lambda i, j: cd.exp(-a * D[i, j]) + s * cd.delta(i, j))
        return y @ cd.solve(K, y) + cd.logdet(K) + cd.log(cd.exp(y).sum())

    rng = np.random.default_rng(0)
    D = rng.random((3, 3))
    arrays = {"D": D + D.T, "y": rng.normal(size=3), "a": np.array(0.7), "s": np.array(0.5)}
    names = ("a", "s", "y")
    cd.testing.check_grad(likelihood, names, **arrays)
    gradient, H = cd.grad(likelihood, names), cd.hessian(likelihood, names)(**arrays)
    for name in ("a", "s"):
        up, down = ({**arrays, name: arrays[name] + h} for h in (1e-5, -1e-5))
        for m, other in enumerate(names):
            expected = (np.asarray(gradient(**up)[m]) - np.asarray(gradient(**down)[m])) / 2e-5
            np.testing.assert_allclose(H[other, name], expected, rtol=1e-5, atol=1e-6)


def test_messages_about_plain_arrays_and_arguments_in_the_wrong_place() -> None:
    for name, function in (("inv", cd.inv), ("det", cd.det), ("adj", cd.adj), ("logdet", cd.logdet)):
        with pytest.raises(cd.TypeMismatchError, match=rf"{name} takes a square matrix, but .* shape \(2, 3\)"):
            function(np.ones((2, 3)))
    with pytest.raises(cd.TraceError, match="takes one lambda, but is given 5 after it") as caught:

        @cd.program
        def f(x: V):
            return cd.tensor(lambda i: x[i], 5)

    assert "test_stable_derivatives.py" in str(caught.value)


@pytest.mark.thorough
def test_chains_of_logarithms_of_sums_are_put_together_in_few_tries() -> None:
    """The forward algorithm of a chain of states: its Hessian-vector product took 37 000 tries, and 40 seconds."""

    @cd.program
    def chain(T: cd.Space("k", "k"), u: cd.Space(3, "k")):
        first = cd.tensor(lambda j: u[1, j] + cd.log(cd.sum(lambda i: cd.exp(u[0, i] + T[i, j]))))
        second = cd.tensor(lambda j: u[2, j] + cd.log(cd.sum(lambda i: cd.exp(first[i] + T[i, j]))))
        return cd.log(cd.exp(second).sum())

    rng = np.random.default_rng(3)
    T, u, V = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    gradient, product = cd.grad(chain), cd.hvp(chain)
    found = product(T, u, V)
    step = 1e-6
    np.testing.assert_allclose(found, (gradient(T + step * V, u) - gradient(T - step * V, u)) / (2 * step), atol=1e-8)
    assert np.isfinite(product(1000 * T, 1000 * u, V)).all()


@pytest.mark.thorough
@pytest.mark.parametrize("simplify", [True, False])
@pytest.mark.parametrize("times", [3, 1000])
def test_softmax_of_multiples_of_a_softmax(times: int, simplify: bool) -> None:
    """Its exponential keeps its digits beside large ones, as it is small by its form; its multiples cancel at once."""

    @cd.program
    def twice(x: V, w: V):
        return np.sum(w * cd.softmax(times * cd.softmax(x)))

    x, w = np.array([0.3, -1.0, 0.7]), np.array([1.0, 2.0, 3.0])
    inner = np.exp(x) / np.exp(x).sum()
    outer = np.exp(times * (inner - inner.max()))
    outer /= outer.sum()
    back = times * outer * (w - w @ outer)
    expected = inner * (back - back @ inner)
    np.testing.assert_allclose(cd.grad(twice, "x", simplify=simplify)(x, w), expected, rtol=1e-9)
    far = 1e11 if times < 20 else 1e3
    gradient = cd.grad(twice, "x", simplify=simplify)(x + far, w)
    np.testing.assert_allclose(gradient, cd.grad(twice, "x")((x + far) - far, w), rtol=1e-9)


@pytest.mark.parametrize("simplify", [True, False])
def test_exponentials_of_a_softmax_beside_large_ones(simplify: bool) -> None:
    gradient = cd.grad(cd.program(_of_shares), "x", simplify=simplify)
    np.testing.assert_array_equal(gradient(np.array([1e150, -1e150, 3e149])), 0)
    ties = gradient(np.array([1e150, 1e150, -1e150]))
    np.testing.assert_allclose(ties, 0, atol=1e-15)
    x = np.array([1.0, 0.0, -1.0])
    np.testing.assert_allclose(gradient(x + 1e11), gradient(x), rtol=1e-12)


def _of_shares(x: V):
    return cd.logsumexp(cd.softmax(x))


@pytest.mark.thorough
def test_an_entropy_whose_logarithms_have_no_square() -> None:
    """What is 0 stays 0 beside logarithms of 1e200: they are no weights that say which exponents count."""

    @cd.program
    def f(x: cd.Space("n")):
        return cd.log(1 + entropy(cd, x) ** 2)

    product = cd.hvp(f)
    for size in (1e150, 1e200, 9e299):
        np.testing.assert_array_equal(product(size * np.array([0.3, -1.2, 0.7]), np.array([1.0, -2.0, 0.5])), 0)
