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


COEFFICIENTS = {
    "a vector": lambda a, A, x: a @ x,
    "a matrix": lambda a, A, x: x @ A @ x,
    "squares": lambda a, A, x: a @ (x * x),
    "their product": lambda a, A, x: a @ (A @ x),
    "powers": lambda a, A, x: np.sum(a**2 * x),
    "the largest": lambda a, A, x: np.max(a) * np.sum(x),
    "products so far": lambda a, A, x: np.cumprod(a) @ x,
    "remainders": lambda a, A, x: np.sum((a % 2) * np.sign(a) * x),
    "positions added": lambda a, A, x: cd.sum(lambda i: (i + a[i]) * x[i]),
    "looked up": lambda a, A, x: np.sum(A[a] @ x),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", COEFFICIENTS)
@pytest.mark.parametrize("library", ["numpy", "jax", TORCH])
def test_derivatives_are_real_where_coefficients_are_integers(name: str, library: str) -> None:
    body = COEFFICIENTS[name]

    @cd.program
    def f(a: cd.Space("n", dtype=int), A: cd.Space("n", "n", dtype=int), x: Vector):
        return body(a, A, x)

    arrays = np.array([2, 0, 1]), np.arange(9).reshape(3, 3) % 4, np.array([0.5, 1.5, -2.0])
    step, single = 1e-3 * np.cos(np.arange(3.0)), arrays[2].astype(np.float32)
    change = (f(*arrays[:2], arrays[2] + step) - f(*arrays[:2], arrays[2] - step)) / 2
    derivatives = cd.grad(f, "x"), cd.grad(f, "x", simplify=False), cd.jacobian(f, "x"), cd.hessian(f, "x")
    for derivative in derivatives:
        if library == "numpy":
            found = derivative(*arrays)
        else:
            given = (*arrays[:2], single if library == "jax" else arrays[2])
            found = back(on(library, derivative)(*[convert(library, array) for array in given]))
        assert found.dtype == (np.float32 if library == "jax" else np.float64)
        if found.ndim == 1:
            np.testing.assert_allclose(found @ step, change, rtol=1e-5)


def test_integers_remain_where_nothing_is_differentiated() -> None:
    @cd.program
    def f(a: cd.Space("n", dtype=int), x: Vector):
        return a + 1, x

    assert f(np.array([2**60 + 1]), np.ones(1))[0].tolist() == [2**60 + 2]


CONSTANTS = {
    "rescaled": lambda t: t**3 / (2 + t**2) ** 3,  # divided by a hypotenuse
    "sum": lambda t: 1 + t,
    "power": lambda t: t**0.3,
    "chosen": lambda t: cd.where(t > 0, t, 2 * t),
    "largest": lambda t: np.maximum(t, 1),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_what_is_made_of_constants_alone_is_a_number_of_numpy(name: str) -> None:
    body = CONSTANTS[name]

    @cd.program
    def f(x: cd.Space()):
        return body(cd.expit(np.log(11 / 9) + 0 * x))

    expected = body(1 / (1 + 9 / 11)) if name != "chosen" else 11 / 20
    for found in (f(0.3), f(np.float64(0.3))):
        assert isinstance(found, np.floating)
        assert abs(found - expected) < 1e-14
