"""The deep chains of benchmarks/depth.py: the work and the size of a derivative are linear in the depth."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from depth import numbers, perceptron, vectors

import combdiff as cd
from combdiff.ir.substitution import subterms
from combdiff.ir.terms import Term
from combdiff.simplification import memory
from combdiff.simplification import pipeline as simplification

Chain = Callable[[int], cd.Program]


def nodes(program: cd.Program) -> int:
    """The number of distinct terms in a program."""
    return sum(1 for _ in subterms(program.term))


@pytest.mark.sample(1)
@pytest.mark.parametrize("make", [numbers, vectors, perceptron])
def test_size_and_simplifications_grow_linearly(make: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[int] = []
    simplify = simplification._affordable

    def counted(term: Term, *further: Any) -> Term:
        met.append(sum(1 for _ in subterms(term)))
        return simplify(term, *further)

    monkeypatch.setattr(simplification, "_affordable", counted)
    sizes, printed, work, largest = [], [], [], []
    for depth in (8, 16, 24):
        met.clear()
        memory.forget()
        gradient = cd.grad(make(depth))
        sizes.append(nodes(gradient))
        printed.append(len(str(gradient)))
        work.append(sum(met))
        largest.append(max(met))
    for figures in (sizes, printed):
        first, second = figures[1] - figures[0], figures[2] - figures[1]
        assert second <= 1.25 * first, figures  # the depth added is the same
    assert work[2] <= 3 * work[0], work  # three times the depth; layers that are equal are simplified once
    assert largest[2] <= 1.3 * largest[1], largest  # no single simplification grows with the depth


@pytest.mark.sample(1)
@pytest.mark.parametrize("make", [numbers, vectors, perceptron])
def test_a_gradient_of_8_layers_agrees_with_central_differences(make: Chain) -> None:
    program = make(8)
    rng = np.random.default_rng(1)
    arrays = {"x": np.asarray(0.4)}
    if make is vectors:
        arrays = {"x": rng.normal(size=3) / 10}
    if make is perceptron:
        arrays = {"W": 0.8 * rng.normal(size=(8, 2, 2)), "x": rng.normal(size=2), "y": rng.normal(size=2)}
    cd.testing.check_grad(program, **arrays, tolerance=1e-5)
    plain = cd.grad(program, simplify=False)(**arrays)
    assert np.allclose(cd.grad(program)(**arrays), plain, rtol=1e-9, atol=1e-9 * np.max(abs(plain)))


@pytest.mark.thorough
def test_a_chain_of_tensors_meets_no_recursion_limit() -> None:
    """Twenty-five with 220 frames, as 150 with Python's thousand, in a thread: its stack begins empty."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(in_few_frames, 220).result()


def in_few_frames(frames: int) -> None:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(frames)
    try:
        derive_a_chain(25)
    finally:
        sys.setrecursionlimit(before)


def derive_a_chain(layers: int) -> None:
    @cd.program
    def chain(A: cd.Space("n", "n"), x: cd.Space("n")):
        t = x
        for _ in range(layers):
            t = cd.tanh(A @ t)
        return (t * t).sum()

    A, x = np.array([[1.2, 0.4], [-0.3, 1.1]]), np.array([0.3, -0.2])
    cd.testing.check_grad(chain, wrt="x", A=A, x=x, tolerance=1e-4)
