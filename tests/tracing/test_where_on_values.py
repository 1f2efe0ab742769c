"""Numbers compared: what is not chosen has no part in values and derivatives, on every library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import TORCH, back, convert

import combdiff as cd

A = np.array([[-1.4, 0.0, 0.6], [0.3, 2.1, -0.4]])  # 0 is where a side that is not taken is infinite
NEAR = np.array([[-1.4, 0.2, 0.6], [0.3, 2.1, -0.4]])  # without a jump nearby

CHOICES: dict[str, Callable[[Any], Any]] = {
    "of elements": lambda A: (
        np.where(A > 0, np.sqrt(A) * np.log(A), A**3)
        + np.where(A != 0, 1 / A, 0)
        + (A[0] < A) * A
        + np.where((A > -1) & ~((A >= 1) | (A == 0)), np.arcsin(A), np.abs(A))
    ),
    "of sums": lambda A: (
        np.where(A.sum() > 0, A / np.sqrt(A.sum()), A)[:, :2]
        + np.where(A @ A.T > 0, np.sqrt(A @ A.T), 0)
        + np.where(A[:, None] > A[None], np.log(A[:, None] - A[None]), 0).sum(axis=2)
    ),
}


def weights_of(choice: Callable[[Any], Any]) -> Any:
    with np.errstate(all="ignore"):
        return np.cos(np.arange(np.size(choice(A)))).reshape(np.shape(choice(A)))


def weighed(choice: Callable[[Any], Any]) -> cd.Program:
    weights = weights_of(choice)

    def total(A):  # type: ignore[no-untyped-def]
        return (weights * choice(A)).sum()

    total.__annotations__ = {"A": cd.Space(2, 3)}
    return cd.program(total)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_is_numpys_and_so_are_its_derivatives(name: str) -> None:
    f = weighed(CHOICES[name])
    gradient, product = cd.grad(f), cd.hvp(f)
    with np.errstate(all="ignore"):
        assert f(A) == pytest.approx((weights_of(CHOICES[name]) * CHOICES[name](A)).sum())
    assert cd.testing.check_grad(f, "A", A=NEAR) < 1e-5
    way, step = NEAR + 1, 1e-6
    slopes = (gradient(NEAR + step * way) - gradient(NEAR - step * way)) / (2 * step)
    np.testing.assert_allclose(product(NEAR, way), slopes, atol=1e-5)
    np.testing.assert_allclose(np.einsum("abcd,cd->ab", cd.hessian(f)(NEAR), way), slopes, atol=1e-5)
    assert np.isfinite(gradient(A)).all()
    assert np.isfinite(product(A, way)).all()


@pytest.mark.thorough
@pytest.mark.parametrize("backend", [TORCH, "jax", "dask"])
def test_other_libraries_choose_alike(backend: str) -> None:
    gradient = cd.grad(weighed(CHOICES["of elements"]))
    with np.errstate(all="ignore"):  # Dask computes when it is asked
        np.testing.assert_allclose(back(gradient(convert(backend, A))), gradient(A), atol=1e-5)  # JAX has float32


def test_a_nan_that_is_given_is_not_let_through() -> None:
    @cd.program
    def known(x: cd.Space("n"), y: cd.Space("n")):
        return np.where(np.isfinite(x), x * y, 0).sum()

    x, y = np.array([1.0, np.nan, np.inf]), np.array([2.0, 3.0, 4.0])
    value, (by_x, by_y) = cd.value_and_grad(known, ("x", "y"))(x, y)
    assert value == 2
    np.testing.assert_array_equal(by_x, [2, 0, 0])
    np.testing.assert_array_equal(by_y, [1, 0, 0])


def test_where_nothing_compares_the_other_side_is_taken() -> None:
    @cd.program
    def sides(x: cd.Space("n")):
        return np.where(x < 0, 1, 2) + np.where(x == x, 10, 20)

    np.testing.assert_array_equal(sides(np.array([np.nan, -1.0, 1.0])), [22, 11, 12])


@pytest.mark.thorough
def test_what_is_used_twice_keeps_its_guard() -> None:
    @cd.program
    def twice(x: cd.Space("n")):
        y = np.sqrt(x)
        z = np.where(x > 0, y, x)
        return (z * z * np.exp(-z)).sum()

    x = np.array([-1.0, 0.0, 2.0])
    np.testing.assert_allclose(cd.grad(twice)(x)[:2], [-3 * np.e, 0], atol=1e-12)
    assert np.isfinite(cd.hvp(twice)(x, x)).all()


def test_choices_are_printed_with_brackets() -> None:
    @cd.program
    def f(x: cd.Space("n")):
        return cd.sum(lambda i: cd.where(x[i] > 0, cd.log(x[i]), 0))

    assert str(f) == "x ↦ Σ_i [x[i] > 0] log(x[i])"
    assert str(cd.grad(f)) == "x ↦ d ↦ [x[d] > 0] / x[d]"
    assert "np.where(" in cd.grad(f).source()


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "if": (lambda x: 1 if x[0] > 0 else x, "needs the truth of a comparison of traced values"),
    "max": (lambda x: max(x[0], x[1]), "needs the truth of a comparison of traced values"),
    "chain": (lambda x: 0 < x[0] < 1, "needs the truth of a comparison of traced values"),
    "mask": (lambda x: x[x > 0], "a tensor is read with a mask, which depends on values"),
    "alone": (lambda x: np.where(x > 0), "np.where is given a condition alone"),
    "joined": (lambda x: (x > 0) & 3, "& and | join comparisons, not 3"),
    "complex": (lambda x: x * 1j > 0, "complex numbers have no order"),
    "text": (lambda x: cd.where("x > 0", x, 0), "the condition of cd.where is 'x > 0'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_truth_value_is_refused(name: str) -> None:
    operation, message = REFUSED[name]

    def refused(x):  # type: ignore[no-untyped-def]
        return operation(x)

    refused.__annotations__ = {"x": cd.Space("n")}
    with pytest.raises(cd.CombdiffError) as caught:
        cd.program(refused)
    assert message in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("backend", ["", "jax", TORCH, "dask"])
def test_an_infinity_is_chosen_like_any_number(backend: str) -> None:
    @cd.program
    def masked(A: cd.Space("m", "n")):
        return (
            np.where(A > 0, A, -np.inf),
            np.where(A > 0, A, np.inf).min(axis=1),
            cd.sum(lambda i, j: cd.where(A[i, j] > 3, np.inf, A[i, j])),
            np.where(A > 0, 2 * A, -1e300 * 1e300 * A),
        )

    with np.errstate(invalid="ignore"):
        others = np.where(A > 0, 2 * A, np.inf * -A)
        expected = np.where(A > 0, A, -np.inf), np.array([0.6, 0.3]), A.sum(), others
        for found, right in zip(masked(convert(backend, A) if backend else A), expected, strict=True):
            np.testing.assert_allclose(back(found) if backend else found, right, rtol=1e-6)


@pytest.mark.sample(1)
@pytest.mark.parametrize("mode", ["forward", "reverse", "cross-country"])
def test_no_order_of_products_takes_a_condition_apart_from_what_it_guards(mode: str) -> None:
    @cd.program
    def f(x: cd.Space("n"), w: cd.Space("n")):
        return np.sum(w * np.where(x[:, None] > x[None], np.log(x[:, None] - x[None]), 0).sum(axis=1))

    x, w, step = np.array([0.3, 1.4, 0.9]), np.array([1.0, -2.0, 0.5]), 1e-6
    slope = cd.grad(f, "x")
    columns = [(slope(x + step * e, w) - slope(x - step * e, w)) / (2 * step) for e in np.eye(3)]
    for simplify in (False, True):
        hessian = cd.hessian(f, "x", mode=mode, simplify=simplify)
        np.testing.assert_allclose(hessian(x, w), np.transpose(columns), atol=1e-6)
        assert "matrix-matrix" not in hessian.source(n=3)  # the sums on the diagonal are taken there alone


@pytest.mark.parametrize("axis", [0, 1])
def test_a_number_that_overflows_is_chosen_before_a_sum(axis: int) -> None:
    """Twice the largest number is infinite; where no element is, nothing is multiplied by it."""

    @cd.program
    def finite(A: cd.Space(2, 3), y: cd.Space(3)) -> Any:  # type: ignore[valid-type]
        return np.sum(2 * np.nan_to_num(A) / (1 + y), axis=axis)

    A, y = np.arange(6.0).reshape(2, 3), np.ones(3)
    np.testing.assert_allclose(finite(A, y), A.sum(axis))
