"""The derivative at ties, zeros and branch points: as the guide's table states it, beside JAX's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import combdiff as cd

HALF, NAN = 0.5, np.nan
# Name, the function of a library and a vector, the point, our gradient, JAX's where it differs.
PLACES: dict[str, tuple[Callable[[Any, Any], Any], list[float], list[float], list[float] | None]] = {
    "maximum(x, y), minimum(x, y) where x = y": (lambda np, x: np.maximum(x[0], x[1]), [2, 2], [HALF, HALF], None),
    "x.max(), x.min() where several are largest": (lambda np, x: np.max(x), [2, 2, 1], [HALF, HALF, 0], None),
    "clip(x, a, b) where x = a": (lambda np, x: np.clip(x[0], 0.0, 1.0), [0], [HALF], None),
    "where(x > 0, a, b) where x = 0": (lambda np, x: np.where(x[0] > 0, x[0], 0), [0], [0], None),
    "abs(x) at 0": (lambda np, x: np.abs(x[0]), [0], [0], [1]),
    "sqrt(x) at 0": (lambda np, x: np.sqrt(x[0]), [0], [np.inf], None),
    "linalg.norm(x) at 0": (lambda np, x: np.linalg.norm(x), [0, 0], [NAN, NAN], None),
    "hypot(x, y) at 0": (lambda np, x: np.hypot(x[0], x[1]), [0, 0], [NAN, NAN], [HALF, HALF]),
    "arctan2(y, x) at 0": (lambda np, x: np.arctan2(x[0], x[1]), [0, 0], [NAN, NAN], None),
    "var(x) of one number": (lambda np, x: np.var(x), [3], [0], None),
    "std(x) of one number": (lambda np, x: np.std(x), [3], [NAN], None),
    "x ** y, by x and by y, where x = 0 and y = 2": (lambda np, x: x[0] ** x[1], [0, 2], [0, 0], None),
    "x ** y, by x and by y, where x = 0 and y = ½": (lambda np, x: x[0] ** x[1], [0, HALF], [np.inf, 0], None),
    "x ** y, by x and by y, where both are 0": (lambda np, x: x[0] ** x[1], [0, 0], [NAN, -np.inf], [NAN, 0]),
    "maximum(x, 0) ** 2 at 0": (lambda np, x: np.maximum(x[0], 0) ** 2, [0], [0], None),
    "prod(x) of 0, 2, 3": (lambda np, x: np.prod(x), [0, 2, 3], [6, 0, 0], None),
    "prod(x) of 0, 0, 3": (lambda np, x: np.prod(x), [0, 0, 3], [0, 0, 0], None),
    "linalg.norm(x, 1) of 0, 2": (lambda np, x: np.linalg.norm(x, 1), [0, 2], [0, 1], [1, 1]),
    "copysign(x, y) where x = 0": (lambda np, x: np.copysign(x[0], x[1]), [0, 1], [0, 0], [1, 0]),
    "cbrt(x) at 0": (lambda np, x: np.cbrt(x[0]), [0], [NAN], [np.inf]),
    "arcsin(x) at 1": (lambda np, x: np.arcsin(x[0]), [1], [np.inf], None),
    "sort(x)[0] of 2, 2, 3": (lambda np, x: np.sort(x)[0], [2, 2, 3], [1, 0, 0], None),
}
GUIDE = (Path(__file__).parents[2] / "docs" / "guide" / "arrays.md").read_text("utf-8")


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", PLACES)
def test_the_derivative_is_the_stated_one(name: str) -> None:
    function, point, ours, jax_s = PLACES[name]

    def at(x):  # type: ignore[no-untyped-def]
        return function(np, x)

    at.__annotations__ = {"x": cd.Space(len(point))}
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(cd.grad(cd.program(at))(np.array(point, float)), ours)
    jax = pytest.importorskip("jax")
    found = jax.jit(jax.grad(lambda x: function(jax.numpy, x)))(jax.numpy.array(point, float))
    np.testing.assert_array_equal(found, ours if jax_s is None else jax_s)


def test_the_guide_states_them() -> None:
    for name, (_, _, ours, jax_s) in PLACES.items():
        other = "the same" if jax_s is None else _written(jax_s)
        assert f"| {name} | {_written(ours)} | {other} |" in GUIDE


def _written(numbers: list[float]) -> str:
    names = {"0.5": "½", "inf": "∞", "-inf": "−∞", "nan": "no number"}
    return ", ".join(names.get(f"{number:g}", f"{number:g}") for number in numbers)


M = cd.Space("n", "n")
MATRIX = cd.Space("n", "n", symmetry=["S[i,j] = S[j,i]"])
OF_ROWS: list[Callable[[Any], Any]] = [
    lambda S: (S.max(axis=0) ** 2).sum(),
    lambda S: ((S - S.max(axis=0)) ** 2).sum(),
    lambda S: ((S @ S).min(axis=0) * S.max(axis=1)).sum(),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("simplify", [False, True])
@pytest.mark.parametrize("function", OF_ROWS)
def test_what_is_largest_does_not_hang_on_the_last_digit_of_a_symmetric_matrix(
    function: Callable[[Any], Any], simplify: bool
) -> None:
    """np.linalg.inv, say, gives matrices that are symmetric but for rounding: no element may be read at its mirror
    image and compared with the largest of a row."""

    def f(S):  # type: ignore[no-untyped-def]
        return function(S)

    f.__annotations__ = {"S": MATRIX}
    gradient = cd.grad(cd.program(f), simplify=simplify)
    exact = np.random.default_rng(0).normal(size=(4, 4))
    exact += exact.T
    rounded = np.where(np.triu(np.ones((4, 4)), 1) > 0, np.nextafter(exact, np.inf), exact)
    np.testing.assert_allclose(gradient(rounded), gradient(exact), rtol=1e-9, atol=1e-12)
    cd.testing.check_grad(cd.program(f), "S", S=exact)


@pytest.mark.thorough
def test_ties_are_decided_on_the_numbers_that_were_compared() -> None:
    """A derivative may compute the product that is compared in another order, and its last digit differs."""

    @cd.program
    def f(x: M, y: M, z: M):  # type: ignore[valid-type, no-untyped-def]
        n = x.shape[0]

        def largest(i, j):  # type: ignore[no-untyped-def]
            def part(k, m):  # type: ignore[no-untyped-def]
                product = x[i, m] ** 2 * y[n - 1 - j, m] ** 2 * cd.exp(z[i, n - 1 - j] / 3)
                return cd.delta(k, m) * cd.where(i <= m + 2, product, 0)

            return cd.max(part, k="n", m="n")

        rows = cd.tensor(largest, i="n", j="n")
        return cd.sum(lambda i: cd.where(i + 1 < n, rows[i, i + 1], 0), i="n")

    rng = np.random.default_rng(11)
    arrays = {name: rng.normal(size=(4, 4)) for name in "xyz"}
    for name in "xy":
        cd.testing.check_grad(f, name, **arrays)


def test_zeros_among_the_bases_of_powers_leave_the_gradient_by_the_exponent() -> None:
    """Data with zeros in them: 0^y log 0 was no number, and so was the sum."""

    @cd.program
    def f(x: cd.Space("n"), g: cd.Space(), w: cd.Space("n")):
        return cd.sum(lambda i: (w[i] * x[i] ** g) ** 2 + x[i] ** g)

    x, w = np.array([0.0, 1.0, 2.0, 0.5]), np.arange(1.0, 5)
    assert "log(x[i])" in str(cd.grad(f, "g"))
    for simplify in (True, False):
        slope = cd.grad(f, "g", simplify=simplify)
        ahead, behind = (slope(x, 1.3 + step, w) for step in (1e-6, -1e-6))
        assert slope(x, 1.3, w) == pytest.approx((f(x, 1.3 + 1e-6, w) - f(x, 1.3 - 1e-6, w)) / 2e-6, rel=1e-7)
        for second in (cd.hessian(f, "g", simplify=simplify)(x, 1.3, w), cd.hvp(f, "g")(x, 1.3, w, 1.0)):
            assert second == pytest.approx((ahead - behind) / 2e-6, rel=1e-6)
    assert np.isnan(cd.grad(f, "g")(np.array([np.nan]), 1.3, np.ones(1)))


def test_a_logarithm_beside_a_power_that_is_not_zero_stays() -> None:
    @cd.program
    def f(x: cd.Space(), y: cd.Space()):
        return x**y * (cd.log(x) + 2)

    with np.errstate(all="ignore"):
        assert f(0.0, 0.0) == -np.inf
        assert f(0.0, 2.0) == 0
        assert f(3.0, 2.0) == pytest.approx(9 * (np.log(3) + 2))
