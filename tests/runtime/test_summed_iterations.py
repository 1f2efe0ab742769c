"""Sums over the steps of an iteration that are added up in its steps, as JAX's loops do them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.planning import make_plan, peak, with_sums_in_steps
from combdiff.runtime.execution import find_paths, run
from combdiff.stability import stable

N, T = 70, 9
SIZES = {"n": N, "T": T}
R = np.random.default_rng(0)
Vector, Steps = cd.Space("n"), cd.Space("T", "n")


@cd.program
def waves(w: Vector, x: Vector, u: Steps):
    """Each step reads its neighbours, and inputs that are made for all steps at once."""
    last, seen = cd.scan(lambda h, v: (np.tanh(w * h + np.concatenate([h[:1], h[:-1]]) + np.sin(v)), h * v), x, u)
    return cd.sum(lambda t, i: seen[t, i] ** 2) + last @ last


@cd.program
def turning(w: cd.Space("n", dtype=complex), x: cd.Space("n", dtype=complex), u: Steps):
    last, _ = cd.scan(lambda h, v: (w * h * v + x, None), x, u)
    return (abs(last) ** 2).sum()


@cd.program
def network(w: cd.Space("n", "n"), x: Vector, u: Steps):
    last, _ = cd.scan(lambda h, v: (np.tanh(w @ h + v), None), x, u)
    return last @ last


def arguments(f: cd.Program, dtype: type = float) -> tuple[Any, ...]:
    shapes = {"w": (N, N) if f is network else (N,), "x": (N,), "u": (T, N)}
    given = {name: 0.3 * R.normal(size=shape) for name, shape in shapes.items()}
    return tuple(value.astype(dtype) if name != "u" else value for name, value in given.items())


@pytest.mark.parametrize(("f", "dtype"), [(waves, float), pytest.param(turning, complex, marks=pytest.mark.thorough)])
def test_the_sums_are_those_over_all_steps(f: cd.Program, dtype: type) -> None:
    given, program = arguments(f, dtype), stable(cd.grad(f, "w").term)
    summed = with_sums_in_steps(program, SIZES)
    np.testing.assert_allclose(run(summed, given), run(program, given), rtol=1e-12)
    assert peak(make_plan(summed, SIZES, find_paths)) < peak(make_plan(program, SIZES, find_paths))


def test_a_loop_that_adds_up_keeps_no_states_on_jax() -> None:
    text = cd.grad(waves, "w").source("jax", n=N, T=T)
    assert ", ()\n" in text
    assert "sum_of_rows" not in text


@pytest.mark.parametrize(("f", "wrt"), [(network, "w"), (waves, ("w", "u"))])
def test_products_of_matrices_and_states_that_others_read_stay(f: cd.Program, wrt: Any) -> None:
    program = stable(cd.grad(f, wrt).term)
    assert with_sums_in_steps(program, SIZES) is program


def test_short_states_stay() -> None:
    program = stable(cd.grad(waves, "w").term)
    assert with_sums_in_steps(program, {"n": 5, "T": T}) is program


@pytest.mark.thorough
@pytest.mark.parametrize(("f", "dtype"), [(waves, float), (turning, complex)])
def test_on_jax(f: cd.Program, dtype: type) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    given, slope = arguments(f, dtype), cd.grad(f, "w")
    found = slope(*map(jax.numpy.asarray, given))
    np.testing.assert_allclose(found, slope(*given), rtol=1e-12)
    np.testing.assert_allclose(jax.jit(slope)(*map(jax.numpy.asarray, given)), found, rtol=1e-12)
