"""What steps give beside the next state: the state that they began with, the next one, both or neither.

A loop over arrays that are written in place stores a state before it becomes the next one, whichever result it is.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy
import pytest
from backends import TORCH, back, convert, double_precision, on

import combdiff as cd

STEPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "rational": lambda np, c, r: c + (c - r) / np.sum(1 + (c - r) ** 2),
    "tanh": lambda np, c, r: np.tanh(c + r),
    "sine": lambda np, c, r: c * 0.5 + np.sin(c) * r.sum(),
    "logistic": lambda np, c, r: c - 0.1 * c * c + r,
    "turned": lambda np, c, r: c[::-1] * r,
}
GIVEN: dict[str, Callable[[Any, Any, Any], Any]] = {
    "old": lambda new, old, x: old,
    "new": lambda new, old, x: new,
    "old, turned": lambda new, old, x: old[::-1],
    "old, less": lambda new, old, x: -old,
    "both": lambda new, old, x: old * new,
    "input": lambda new, old, x: x,
}
NUMBERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "ends": lambda np, last, ys: ys[-1].sum() * last.sum(),
    "squares": lambda np, last, ys: (ys**2).sum(),
    "neighbours": lambda np, last, ys: (ys[1:] * ys[:-1]).sum() + (last**2).sum(),
}
PAIRS = product(enumerate(STEPS), enumerate(GIVEN))
CASES = [(step, given, list(NUMBERS)[(m + n) % 3]) for (m, step), (n, given) in PAIRS]  # each pair of two of them once


def objective(np: Any, scan: Any, case: tuple[str, str, str]) -> Callable[[Any, Any], Any]:
    """The number of a case, in the words of a library."""
    step, given, number = case

    def value(x: Any, A: Any) -> Any:
        def body(c: Any, r: Any) -> Any:
            new = STEPS[step](np, c, r)
            return new, GIVEN[given](new, c, r)

        last, ys = scan(body, x, A)
        return NUMBERS[number](np, last, ys)

    return value


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", CASES, ids=", ".join)
def test_second_derivatives_are_those_of_jax(case: tuple[str, str, str]) -> None:
    import jax
    import jax.numpy as jnp

    plain = objective(numpy, cd.scan, case)

    def f(x: cd.Space(3), A: cd.Space(4, 3)):  # type: ignore[no-untyped-def, valid-type]
        return plain(x, A)

    program, rng = cd.program(f), numpy.random.default_rng(len(str(case)))
    arrays = [rng.uniform(-1, 1, shape) for shape in (3, (4, 3))]
    for wrt, place in (("x", 0), ("A", 1)):
        way = rng.normal(size=arrays[place].shape)
        found = cd.hvp(program, wrt)
        with double_precision():
            slope = jax.grad(objective(jnp, jax.lax.scan, case), argnums=place)
            ways = [way if n == place else numpy.zeros_like(array) for n, array in enumerate(arrays)]
            expected = numpy.asarray(jax.jvp(slope, tuple(map(jnp.asarray, arrays)), tuple(map(jnp.asarray, ways)))[1])
        numpy.testing.assert_allclose(found(*arrays, way), expected, rtol=1e-9, atol=1e-11)
        numpy.testing.assert_allclose(cd.hvp(program, wrt, simplify=False)(*arrays, way), expected, atol=1e-11)


@pytest.mark.parametrize("backend", [TORCH, "jax"])
def test_a_state_is_stored_before_it_is_the_next(backend: str) -> None:
    plain = objective(numpy, cd.scan, ("rational", "old", "squares"))

    @cd.program
    def f(x: cd.Space(3), A: cd.Space(4, 3)):  # type: ignore[no-untyped-def, valid-type]
        return plain(x, A)

    product_ = cd.hvp(f, "x")
    arrays = [numpy.random.default_rng(n).normal(size=shape) for n, shape in enumerate((3, (4, 3), 3))]
    with double_precision():
        found = back(on(backend, product_)(*(convert(backend, array) for array in arrays)))
    x, A, way = arrays
    gradient, h = cd.grad(f, "x"), 1e-6
    expected = (gradient(x + h * way, A) - gradient(x - h * way, A)) / (2 * h)
    numpy.testing.assert_allclose(found, expected, rtol=1e-6)
    numpy.testing.assert_allclose(product_(*arrays), expected, rtol=1e-6)
    numpy.testing.assert_allclose(product_.compile(memory_limit=4000)(*arrays), expected, rtol=1e-6)


def test_names_of_states_are_not_those_of_their_stacks() -> None:
    """A TypeMismatchError: in a derivative of another convention `c` of a step was taken for the `c` of all steps."""

    @cd.program
    def f(x: cd.Space(4, dtype=complex), A: cd.Space(4, 4, dtype=complex)):  # type: ignore[no-untyped-def, valid-type]
        def step(c: Any, r: Any) -> Any:
            after = numpy.append(c[:-1] - c[1:], 0.0)
            after = after / (1 + numpy.abs(numpy.vdot(after, after)))
            return after, after

        last, ys = cd.scan(step, x, A)
        return (ys[-1] @ last).imag

    cd.grad(f, "x")
    x = numpy.exp(1j * numpy.arange(4))
    assert str(cd.grad(f, "x", convention="jax"))
    numpy.testing.assert_allclose(
        cd.grad(f, "x", convention="jax")(x, numpy.eye(4) + 0j), cd.grad(f, "x")(x, numpy.eye(4) + 0j).conj()
    )
