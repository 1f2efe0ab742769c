"""Products, sorted elements and what is read at them, sinc, fmax: NumPy's values, JAX's derivatives, also at zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import TORCH, back, convert, double_precision, on

import combdiff as cd

A = np.random.default_rng(0).normal(size=(3, 4))
ZEROS = A * np.array([[1, 0, 1, 1], [0, 0, 1, 1], [1, 1, 1, 1]])
PICKED = np.array([[1, 2], [0, 0], [3, 1]])

# In the words of NumPy, or of jax.numpy, which `np` stands for.
PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "prod": lambda x, np: np.prod(x),
    "prod of rows": lambda x, np: (np.prod(x, axis=1) ** 2).sum(),
    "prod, kept": lambda x, np: (x * np.prod(x, axis=0, keepdims=True)).sum(),
    "cumprod": lambda x, np: (np.cumprod(x, axis=1) ** 2).sum(),
    "sinc": lambda x, np: np.sinc(3 * x).sum(),
}
ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "sort": lambda x, np: (np.sort(x, axis=0) * x).sum(),
    "argsort": lambda x, np: (x**2 * np.argsort(x)).sum(),
    "take_along_axis": lambda x, np: (np.take_along_axis(x, np.asarray(PICKED), axis=1) ** 3).sum(),
    "argmax": lambda x, np: (x**2 * np.argmax(x, axis=1)[:, None]).sum() + np.argmin(x) * x[0, 0],
    "median": lambda x, np: (np.median(x, axis=1) ** 2).sum(),
    "quantile": lambda x, np: np.quantile(x, 0.3) ** 2 + np.percentile(x[0], 60),
    "fmax": lambda x, np: (np.fmax(x, x[::-1] ** 2) * np.fmin(x, 0.3)).sum(),
}


def _program(body: Callable[[Any, Any], Any]) -> cd.Program:
    def f(x: cd.Space(3, 4)):  # type: ignore[no-untyped-def, valid-type]
        return body(x, np)

    return cd.program(f)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", [*PRODUCTS, *ORDERS])
def test_values_and_derivatives_are_those_of_numpy_and_jax(name: str) -> None:
    import jax
    import jax.numpy as jnp

    body = {**PRODUCTS, **ORDERS}[name]
    f = _program(body)
    gradient, product, way = cd.grad(f), cd.hvp(f), np.cos(np.arange(12.0)).reshape(3, 4)
    assert cd.testing.check_grad(f, "x", x=A) < 1e-6
    for x in (A, ZEROS) if name in PRODUCTS else (A,):
        assert f(x) == pytest.approx(body(x, np))
        with double_precision():
            expected = jax.jit(jax.grad(lambda x: body(x, jnp)))
            np.testing.assert_allclose(gradient(x), expected(x), atol=1e-12)
            np.testing.assert_allclose(product(x, way), jax.jvp(expected, (x,), (way,))[1], atol=1e-11)


@pytest.mark.sample(1)
@pytest.mark.parametrize("backend", [TORCH, "jax", "dask"])
def test_other_libraries_agree(backend: str) -> None:
    @cd.program
    def everything(x: cd.Space(3, 4)):  # type: ignore[no-untyped-def, valid-type]
        return sum(body(x, np) for name, body in {**PRODUCTS, **ORDERS}.items())

    gradient = cd.grad(everything, simplify=False)
    with double_precision():
        found = back(on(backend, gradient)(convert(backend, ZEROS + 0.01 * A)))
    np.testing.assert_allclose(found, gradient(ZEROS + 0.01 * A), rtol=1e-8, atol=1e-10)


OF_VECTORS: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "sort": (lambda x: np.sort(x)[-1] ** 2, "x ↦ x[argsort(x)[4]]²", "d ↦ 2 δ(argsort(x)[4], d) x[d]"),
    "argmax": (lambda x: x[np.argmax(x)] ** 3, "x ↦ x[argmax(x)]³", "d ↦ 3 δ(argmax(x), d) x[d]²"),
    "argmin": (
        lambda x: x[np.argmin(x)] * x[0],
        "x ↦ x[argmin(x)] x[0]",
        "d<5 ↦ δ(argmin(x), d) x[0] + δ(d, 0) x[argmin(x)]",
    ),
    "kept": (lambda x: (np.argmax(x, keepdims=True) * x).sum(), "x ↦ Σ_i argmax(x) x[i]", "d<5 ↦ argmax(x)"),
}


@pytest.mark.parametrize("name", OF_VECTORS)
def test_orders_of_vectors_are_functions_of_vectors(name: str) -> None:
    """Not of matrices with one row, `t[d<1,e] = x[e]; argmax(t)[0]`, as they were."""
    body, written, derived = OF_VECTORS[name]

    def f(x: cd.Space(5)):  # type: ignore[no-untyped-def, valid-type]
        return body(x)

    program = cd.program(f)
    gradient = cd.grad(program)
    assert str(program) == written
    assert str(gradient) == f"x ↦ {derived}"
    spaces = {"x": cd.Space(5)}
    assert cd.read(str(program), spaces) == program
    assert cd.read(str(gradient), spaces) == gradient
    x = A[:, 0].repeat(2)[:5] + np.arange(5) / 10
    assert program(x) == pytest.approx(body(x))
    assert cd.testing.check_grad(program, "x", x=x) < 1e-6


def test_places_of_an_undeclared_name_are_those_of_a_vector() -> None:
    assert str(cd.read("x[argmax(x)]²")) == "x ↦ x[argmax(x)]²"
    assert str(cd.read("argmin(x ↦ (x - 1)², 0)")) == "argmin(x ↦ (x - 1)², 0)"
    for formula, message in (
        ("argmax(3)", "argmax takes a vector"),
        ("argmin(x, y)", "argmin takes a map and the start of its search"),
    ):
        with pytest.raises(cd.CombdiffError, match=message):
            cd.read(formula)


@pytest.mark.thorough
def test_complex_products_and_products_over_indices() -> None:
    @cd.program
    def f(z: cd.Space("n", dtype=complex), w: cd.Space("n", "m")):  # type: ignore[no-untyped-def, valid-type]
        return cd.abs(z.prod()) ** 2 + cd.sum(lambda i: cd.prod(lambda j: 1 + w[i, j] ** 2))

    z = np.array([1 + 2j, 0, 3 - 1j])
    assert f(z, A) == pytest.approx(np.prod(1 + A**2, axis=1).sum())
    assert cd.testing.check_grad(f, "z", z=z + 1, w=A) < 1e-6
    assert cd.testing.check_grad(f, "w", z=z, w=A) < 1e-6
    assert cd.prod([2, 3]) == 6
    np.testing.assert_array_equal(cd.sort([3, 1, 2]), [1, 2, 3])
    np.testing.assert_array_equal(cd.argsort([3, 1, 2]), [1, 2, 0])


def test_what_is_refused_says_what_to_write() -> None:
    for body, message in (
        (
            lambda x: np.argsort(x, axis=None),
            r"argsort with axis=None .*\n? *hint: write np.argsort\(x.resh",
        ),
        (lambda x: x.sort(), "sorts in place"),
        (lambda x: np.take_along_axis(x, x, axis=0), "takes whole numbers as indices, but x is float"),
        (lambda x: np.take_along_axis(x, np.array([0]), axis=0), "of order 2 and indices of order 1"),
        (lambda x: np.quantile(x, 2), "a number from 0 to 1"),
        (lambda x: np.prod(x, axis=5), "the axes of a product are 5"),
        (lambda x: np.sort(1j * x), "takes real numbers"),
    ):
        with pytest.raises(cd.CombdiffError, match=message):
            _program(lambda x, _: cd.real(body(x)).sum())  # noqa: B023  (called at once)
