"""Conditions between indices, and derivatives under them: every size, every library, no mask in any plan."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, MODULES, converted, on
from masked_programs import PROGRAMS, chosen, form, logarithms, lower, meaning, pairs, triangle

import combdiff as cd
from combdiff.planning import size_names
from combdiff.planning.operations.indirections import IndexEquals
from combdiff.planning.operations.masks import IndexCondition
from combdiff.runtime.execution import plan


@cache
def derivatives(f: Any) -> list[Any]:
    """The program, its pullbacks, and the derivative of one of these again."""
    first = [cd.pullback(f, wrt=p.name) for p in f.parameters]
    return [f, *first, cd.pullback(first[-1], wrt=f.parameters[0].name)]


def given(program: Any, f: Any, arrays: list[Any], n: int) -> list[Any]:
    """The arrays with a cotangent for each of the arguments that a pullback takes more."""
    found, rng = list(arrays), np.random.default_rng(1)
    for p in program.parameters[len(arrays) :]:
        found.append(rng.random([{"n": n, "m": 3}[axis.size] for axis in p.type.axes]))
    return found


@pytest.mark.sample(4)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.name)
def test_no_plan_has_an_indicator(f: Any) -> None:
    for program in derivatives(f):
        steps = plan(program.term).steps
        assert not [step for step in steps if isinstance(step.operation, IndexCondition | IndexEquals)], program
        large = dict.fromkeys(size_names(program.term), 200)  # small triangles are masks
        for backend in ("numpy", *MODULES):
            body = program.source(backend, **large).split(f"\ndef {program.name}")[1].split("\n\n\n")[0]
            body = "".join(line for line in body.split("\n") if not line.endswith("# indices"))  # what windows read
            assert not any(word in body for word in (".where(", ".eye(", ".tri(", "arange(n)[:, None]")), body


@pytest.mark.parametrize("n", [3, 6])
def test_what_a_sum_leaves_stands_in_the_order_of_the_result(n: int) -> None:
    """Also where the operand has its axes in another one, and all are of one length."""
    kernel, (x, y, z) = np.array([1.0, -2.0, 0.5]), np.random.default_rng(0).normal(size=(3, n))

    def chosen(x, y, z):
        return np.convolve(np.where(y > 0, np.tile(x, 2)[1 : n + 1], z), kernel, "same") @ z

    chosen.__annotations__ = dict.fromkeys("xyz", cd.Space(n))
    assert cd.program(chosen)(x, y, z) == pytest.approx(chosen(x, y, z))
    cd.testing.check_grad(cd.program(chosen), ("x", "z"), x=x, y=y, z=z)


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore:invalid value")  # of Dask, which computes logarithms of all elements
@pytest.mark.parametrize("backend", ["numpy", *BACKENDS])
def test_elements_beside_a_bound_are_not_read(backend: str) -> None:
    n, rng = 9, np.random.default_rng(0)
    i, j = np.indices((n, n))
    A, B, x = rng.random((n, n)) + 2, rng.random((n, n)) + 2, rng.random(n) + 1
    A[j > i] = rng.choice([np.nan, np.inf, -1.0], size=(j > i).sum())
    B[j < i] = np.nan
    cases = [(triangle, (A,)), (lower, (A, x)), (form, (A, x)), (pairs, (A, B)), (logarithms, (A, x)), (chosen, (A, x))]
    for f, arrays in cases:
        for program in derivatives(f)[:-1]:
            every = given(program, f, list(arrays), n)
            there = every if backend == "numpy" else converted(backend, every)
            found = np.asarray(on(backend, program)(*there))
            assert np.isfinite(found).all(), (f, program)
            np.testing.assert_allclose(found, meaning(program, every, n), rtol=1e-4)


@pytest.mark.parametrize("backend", ["numpy", *BACKENDS])
def test_a_packed_triangle_takes_no_more_than_its_operands(backend: str) -> None:
    """Its gradient is a product of matrices, kept below the diagonal: no operand is repeated for the condition."""

    @cd.program
    def packed(T: cd.Space("k", "m"), x: cd.Space("n", "k", "d"), at: cd.Space("d", "d", dtype=int)):
        y = cd.tensor(
            lambda i, k, a: np.sin(x[i, k, a]) + cd.sum(lambda b: cd.where(b < a, T[k, at[a, b]] * x[i, k, b], 0))
        )
        return (y * y).sum()

    rows, columns = np.tril_indices(5, -1)
    at = np.zeros((5, 5), int)
    at[rows, columns] = range(10)
    rng = np.random.default_rng(0)
    T, x = rng.normal(size=(2, 10)), rng.normal(size=(3, 2, 5))
    gradient = cd.grad(packed, "T")
    L = np.zeros((2, 5, 5))
    L[:, rows, columns] = T
    y = np.sin(x) + np.einsum("kab,ikb->ika", L, x)
    expected = 2 * np.einsum("ika,ikb->kab", y, x)[:, rows, columns]
    found = on(backend, gradient)(*(converted(backend, [T, x, at]) if backend != "numpy" else (T, x, at)))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4 if backend == "jax" else 1e-12)
    assert "(n, k, d, d)" not in gradient.source()
    assert gradient.cost(k=10, n=100, d=20, m=190).peak_bytes < 8 * 8 * 100 * 10 * 20
