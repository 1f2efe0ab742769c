"""Sums up to a bound that is another index, and conditions on one index: no mask is made, on any backend."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.reference import evaluate

Vector = cd.Space("n")


@cd.program
def before(x: Vector, v: Vector):
    return cd.sum(lambda i: v[i] * cd.sum(lambda j: cd.where(j <= i, x[j], 0)) ** 2)


@cd.program
def after(x: Vector, v: cd.Space("n", "c")):
    return cd.sum(lambda i, j, c: cd.where(j > i + 1, cd.sin(x[j]) * v[j, c] * v[i, c], 0))


@cd.program
def slanted(x: Vector, v: cd.Space("m", "c"), w: cd.Space("c")):
    return cd.sum(lambda i, j, k: cd.where(2 * i + k - 3 >= j, x[j] ** 2 * v[i, k] * w[k], 0))


@cd.program
def band(x: Vector, v: Vector):
    return cd.sum(lambda i, j: cd.where((j <= i + 2) & (i <= j + 1), x[j] ** 3 * v[i], 0))


@cd.program
def guarded(x: Vector, v: Vector):
    return cd.sum(lambda i, j: cd.where(j < i, cd.log(x[j] - 1) * v[i], 0))


@cd.program
def ends(x: Vector, v: Vector):
    return cd.sum(lambda i: cd.where(i >= 2, (x[i - 2] - x[i]) ** 2 + v[i] * x[i - 1], 0))


CASES = [before, after, slanted, band, guarded, ends]


def arrays_of(f: Any, n: int) -> list[Any]:
    rng = np.random.default_rng(n)
    sizes = {"n": n, "m": 4, "c": 3}
    return [2 + rng.random([sizes[axis.size] for axis in p.type.axes]) for p in f.parameters]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 9])
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.name)
def test_values_and_derivatives_are_those_of_the_interpreter(f: Any, n: int) -> None:
    arrays = arrays_of(f, n)
    names = [p.name for p in f.parameters]
    programs = [f, *(cd.grad(f, wrt=name, simplify=s) for name in names for s in (True, False)), cd.hvp(f)]
    for program in programs:
        given = [*arrays, arrays[0]][: len(program.parameters)]
        values = dict(zip(program.term.parameters, given, strict=True))
        with np.errstate(all="ignore"):
            expected = evaluate(program.term.body, values, {"n": n, "m": 4, "c": 3})
        np.testing.assert_allclose(program(*given), np.asarray(expected), atol=1e-10)
    if n:
        cd.testing.check_grad(f, "x", **dict(zip(names, arrays, strict=True)))


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.name)
def test_no_mask_is_made(f: Any) -> None:
    programs = [f, cd.grad(f, wrt="v"), *([] if f is slanted else [cd.grad(f)])]
    for program in programs:  # by x, slanted has v[i, k] beside a bound of i and k: there a mask selects
        source = program.source()
        assert " mask\n" not in source, source
        assert "np.where" not in source, source


@pytest.mark.parametrize("backend", ["torch", "jax", "dask"])
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.name)
def test_other_libraries_agree(f: Any, backend: str) -> None:
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    module = importlib.import_module({"torch": "torch", "jax": "jax.numpy", "dask": "dask.array"}[backend])
    convert = {"torch": "from_numpy", "jax": "asarray", "dask": "asarray"}[backend]
    arrays = arrays_of(f, 7)
    gradient = cd.grad(f)
    found = np.asarray(gradient(*(getattr(module, convert)(a) for a in arrays)))
    np.testing.assert_allclose(found, gradient(*arrays), rtol=1e-4 if backend == "jax" else 1e-10)


def test_what_stands_behind_a_bound_does_not_spread() -> None:
    x, v = np.arange(6.0) + 2, np.ones(6)
    x[3] = np.nan
    found = cd.grad(guarded, wrt="v")(x, v)
    assert np.isnan(found).tolist() == [False] * 4 + [True] * 2
