"""What is made of whole numbers alone is of real numbers: derivatives of real tensors are real, on every library."""

import numpy as np
import pytest
from backends import TORCH, back, convert, on

import combdiff as cd

Vector, Matrix = cd.Space("n"), cd.Space("n", "n")
PROGRAMS = {
    "constant": (lambda x: 2 * x.sum(), Vector),
    "size": (lambda x: x.sum() * x.shape[0], Vector),
    "size on a diagonal": (lambda A: cd.tensor(lambda i: cd.sum(lambda j: A[i, 0] * 4, j="n")), Matrix),
    "positions": (lambda x: cd.sum(lambda i, j: x[i] * j, j="n"), Vector),
    "condition": (lambda x: cd.sum(lambda i, j: cd.where(j <= i, x[i], 0), j="n"), Vector),
    "delta": (lambda A: 3 * np.trace(A), Matrix),
}
ARRAYS = {Vector: np.arange(3.0), Matrix: np.eye(3)}


@pytest.mark.sample(9)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("library", ["numpy", "jax", "dask"])
def test_derivatives_are_real_numbers(name: str, library: str) -> None:
    body, space = PROGRAMS[name]

    def traced(x):  # type: ignore[no-untyped-def]
        return body(x)

    traced.__annotations__ = {"x": space}
    array = ARRAYS[space]
    for simplify in (False, True):
        derivative = cd.jacobian(cd.program(traced), simplify=simplify)
        found = derivative(array) if library == "numpy" else on(library, derivative)(convert(library, array))
        assert np.dtype(str(found.dtype)).kind == "f"
        step = 0.5 * np.cos(np.arange(array.size)).reshape(array.shape)
        change = cd.program(traced)(array + step) - cd.program(traced)(array)
        np.testing.assert_allclose(np.tensordot(np.asarray(found), step, array.ndim), change, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("library", [TORCH, "dask"])
def test_functions_of_whole_numbers_have_double_precision(library: str) -> None:
    whole, x = np.array([3, 7, 1]), np.array([0.3, 0.7, 1.1])

    @cd.program
    def f(x: cd.Space(3)):
        return x / whole, whole**x, x**whole, np.sqrt(cd.constant(whole) * whole) * x

    for found, expected in zip(f(convert(library, x)), (x / whole, whole**x, x**whole, whole * x), strict=True):
        np.testing.assert_allclose(back(found), expected, rtol=1e-14)
