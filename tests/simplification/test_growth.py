"""Chains of layers, steps and iterations: what deriving and planning take and give is linear in their number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calls import Calls

import combdiff as cd
from combdiff.simplification import memory
from combdiff.testing.arrays import named_sizes, random_arrays

LINEAR = 1.3  # times twice as much for twice as many: what is near a limit of a search costs more, or less


def softmax(z):
    e = np.exp(z - np.max(z, axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def standardised(z):
    centred = z - z.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)


def newton_schulz(steps: int) -> cd.Program:
    """The inverse of a matrix by X ← 2 X − X A X: each adjoint is a unit matrix and a rest, read three times."""

    @cd.program
    def trace(A: cd.Space("n", "n"), X: cd.Space("n", "n")):
        for _ in range(steps):
            X = 2 * X - X @ A @ X
        return np.trace(X)

    return trace


def residual(steps: int) -> cd.Program:
    """Layers that add what they make of standardised rows: the sums that vanish have all layers below them."""

    @cd.program
    def network(x: cd.Space("t", "d"), W: cd.Space(steps, "d", "d")):
        for layer in range(steps):
            x = x + np.tanh(standardised(x) @ W[layer])
        return (x**2).sum()

    return network


def transformer(steps: int) -> cd.Program:
    @cd.program
    def network(x: cd.Space("t", "d"), W: cd.Space(steps, "d", "d"), V: cd.Space(steps, "d", "d")):
        for layer in range(steps):
            z = standardised(x)
            x = x + softmax(z @ W[layer] @ z.T) @ z
            x = x + np.maximum(standardised(x) @ V[layer], 0)
        return (x**2).sum()

    return network


def normalised_chain(steps: int) -> cd.Program:
    """A chain of tensors whose product is scaled to norm 1 at each site, which an adjoint is orthogonal to."""

    @cd.program
    def trace(A: cd.Space(steps, "a", "s", "a"), L: cd.Space("a", "a")):
        for site in range(steps):
            L = cd.einsum("ab,aic,bid->cd", L, A[site], A[site])
            L = L / np.sqrt((L**2).sum())
        return np.trace(L)

    return trace


def kalman_filter(steps: int) -> cd.Program:
    """Definitions that read one another along many paths: 2ⁿ for n steps."""

    @cd.program
    def likelihood(F: cd.Space("n", "n"), H: cd.Space("m", "n"), z: cd.Space(steps, "m"), P: cd.Space("n", "n")):
        value, m = 0.0, z[0] @ H
        for step in range(steps):
            S, r = H @ P @ H.T + cd.eye("m"), z[step] - H @ m
            gain = P @ H.T @ cd.inv(S)
            value = value + cd.logdet(S) + r @ cd.inv(S) @ r
            m, P = F @ (m + gain @ r), F @ (P - gain @ H @ P) @ F.T
        return value

    return likelihood


def lstm(steps: int) -> cd.Program:
    """Gates whose exponentials are scaled by peaks, each of which has those of the steps before among its entries."""

    @cd.program
    def network(U: cd.Space(4, "d", "d"), x: cd.Space(steps, 4, "d"), h: cd.Space("d"), c: cd.Space("d")):
        for step in range(steps):
            inputs, forget, output, cell = (x[step, gate] + U[gate] @ h for gate in range(4))
            c = c / (1 + np.exp(-forget)) + np.tanh(cell) / (1 + np.exp(-inputs))
            h = np.tanh(c) / (1 + np.exp(-output))
        return h @ h

    return network


CHAINS: list[tuple[Callable[[int], cd.Program], str]] = [
    (newton_schulz, "A"),
    (residual, "W"),
    (transformer, "W"),
    (normalised_chain, "A"),
    (kalman_filter, "F"),
    (lstm, "U"),
]
SIZES = {"n": 3, "m": 2, "t": 3, "d": 2, "a": 2, "s": 2}


def arrays_for(program: cd.Program) -> dict[str, Any]:
    """Random arrays for a program of these axes."""
    return random_arrays(program.parameters, np.random.default_rng(3), SIZES)


class Linearly:
    """Counts the calls of a task, and the text that it gives: for twice as many steps both are about twice as much."""

    def __init__(self) -> None:
        self.most = self.longest = float("inf")

    def __call__(self, text_of: Callable[[], str]) -> None:
        """Hold a task to what it took before; it is stopped where it takes more."""
        with Calls(self.most) as calls:
            text = text_of()
        assert len(text) <= self.longest
        self.most, self.longest = 2 * LINEAR * calls.count, 2 * LINEAR * len(text)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("make", "wrt"), CHAINS)
@pytest.mark.thorough
def test_derivations_and_plans_grow_linearly(make: Callable[[int], cd.Program], wrt: str) -> None:
    deriving, planning = Linearly(), Linearly()
    fewest = 12 if make is newton_schulz else 6  # short programs, as this one of 6 steps, are weighed more closely
    for steps in (fewest, 2 * fewest):
        memory.forget()
        program = make(steps)
        deriving(lambda: str(cd.grad(program, wrt)))  # noqa: B023  (called at once)
        gradient = cd.grad(program, wrt)
        sizes = named_sizes(gradient.parameters, arrays_for(gradient))
        planning(lambda: gradient.source(**sizes))  # noqa: B023  (called at once)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("make", "wrt"), CHAINS)
@pytest.mark.parametrize("steps", [1, pytest.param(3, marks=pytest.mark.thorough)])
def test_their_gradients_agree_with_central_differences(
    make: Callable[[int], cd.Program], wrt: str, steps: int
) -> None:
    program = make(steps)
    arrays = arrays_for(program)
    if make in (newton_schulz, kalman_filter):
        arrays = {
            name: np.eye(*array.shape) + array / 9 if array.ndim == 2 else array for name, array in arrays.items()
        }
    cd.testing.check_grad(program, wrt, **arrays, tolerance=1e-5)
