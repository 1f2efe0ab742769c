"""What derivations take, counted by no clock: rows of e-graphs, terms made and functions called, beside a table.

A law that matches its own results, or a walk that takes a graph for a tree, shows in these figures long before anybody
waits for it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calls import Calls
from latency import derivatives

import combdiff as cd
from combdiff.ir.terms import _Interning
from combdiff.simplification import memory
from combdiff.simplification.egraph.saturation import Saturation
from combdiff.testing.arrays import array_shape

DEAR = 15_000  # terms, that a derivation takes in `make test`
SLACK = 2  # what is in memory already makes fewer terms, a new law some more rows

# (rows of all e-graphs after each saturation, terms asked for, functions of Python called), as counted in November 2026
COSTS: dict[str, tuple[int, int, int]] = {
    "logistic map, 10 steps": (565, 6200, 300000),
    "logistic map, Hessian": (1976, 33000, 1500000),
    "pendulum, 10 steps": (0, 9700, 400000),
    "MPS energy": (2072, 46100, 1590000),
    "bundle adjustment": (10520, 71500, 2890000),
    "Kalman filter, 8 steps": (11959, 208600, 9440000),
    "coupled-cluster Lagrangian": (1982, 16500, 600000),
    "GP evidence, Hessian": (7673, 76500, 2800000),
    "64 tanh layers": (3821, 84700, 3290000),
    "attention": (2538, 18600, 640000),
    "Hartree-Fock": (737, 3400, 120000),
    "Wannier": (1236, 22700, 620000),
    "RNN, 6 steps": (0, 7900, 300000),
    "Gaussian mixture": (1850, 12000, 450000),
    "GP evidence": (5528, 22400, 870000),
    "shooting, 6 steps": (4156, 54200, 2020000),
    "neo-Hooke, Hessian": (1339, 7600, 270000),
    "autoencoder": (687, 25300, 910000),
    "Ising mean field": (469, 3500, 130000),
    "principal components": (1993, 15700, 570000),
    "convolutions": (231, 13200, 580000),
    "LSTM, 3 steps": (8795, 73400, 2740000),
    "coupled cluster, quadratic": (0, 25400, 740000),
    "logistic regression, Hessian": (2034, 15000, 540000),
}


def counted(derive: Callable[[], Any], most: float = float("inf")) -> tuple[int, int, int]:
    """The rows, the terms and the calls of a derivation, which is stopped where it calls more functions than `most`."""
    rows = terms = 0
    saturate, make = Saturation._saturate, _Interning.__call__

    def saturated(self: Saturation) -> str:
        nonlocal rows
        found = saturate(self)
        rows += self._size()
        return found

    def made(cls: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal terms
        terms += 1
        return make(cls, *arguments, **named)

    memory.forget()
    gc.collect()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Saturation, "_saturate", saturated)
        patch.setattr(_Interning, "__call__", made)
        with Calls(most) as calls:
            derive()
    return rows, terms, calls.count


CASES = [pytest.param(name, marks=pytest.mark.thorough if cost[1] > DEAR else ()) for name, cost in COSTS.items()]


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", CASES)
def test_a_derivation_takes_no_more_than_it_did(name: str) -> None:
    """Where it takes much less for good, the table is to say so."""
    stated = COSTS[name]
    for found, each in zip(counted(derivatives()[name], SLACK * stated[-1]), stated, strict=True):
        assert found <= SLACK * each, f"{name}: {found}, but {each} in the table"
        assert 2 * SLACK * found >= each, f"{name}: {found}, so that {each} in the table says little"


@cd.program
def sharpe(w: cd.Space(4), returns: cd.Space(30, 4)):
    """The ratio of Sharpe of a portfolio, its weights scaled to add up to 1."""
    earned = returns @ (w / w.sum())
    return earned.mean() / earned.std(ddof=1)


@cd.program
def spread(X: cd.Space(7, 2), L: cd.Space(2, 2)):
    """How far rows are from their mean."""
    centred = (X - X.mean(axis=0)) @ L
    return np.sqrt((centred**2).sum(axis=1)).sum()


@cd.program
def layered(A: cd.Space("n", "n"), x: cd.Space("n")):
    """Definitions each of which is read twice by the next."""
    share = cd.softmax(2 * (A @ x))
    t = 3 * np.log(1 + share * share)
    return np.log(np.sum(np.exp(t * t)))


@pytest.mark.parametrize(
    ("program", "wrt"), [(sharpe, "w"), (spread, "X"), (layered, "x")], ids=("sharpe", "spread", "layered")
)
def test_indices_are_not_replaced_over_and_over_where_there_are_none(
    program: cd.Program, wrt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Definitions that read one another at many indices: 800 000, 250 000 and 70 000 rows were made of these."""
    most, size = 0, Saturation._size

    def seen(self: Saturation) -> int:
        nonlocal most
        most = max(most, found := size(self))
        return found

    monkeypatch.setattr(Saturation, "_size", seen)
    memory.forget()
    cd.grad(program, wrt)
    assert 1000 < most < 6000
    rng, sizes = np.random.default_rng(0), {"n": 3}
    shapes = {each.name: array_shape(each.type, sizes) for each in program.term.parameters}
    cd.testing.check_grad(program, wrt, **{name: rng.uniform(1, 2, shape) for name, shape in shapes.items()})


@pytest.mark.thorough
def test_the_order_of_products_is_found_without_reading_the_steps_of_loops_again() -> None:
    """A derivative of a step stood in each product of cross-country mode: five times the terms for twice the step."""

    def terms(moves: int) -> int:
        @cd.program
        def moved(x: cd.Space("n"), b: cd.Space("n")):
            def step(state, _):
                q, v = state
                for _ in range(moves):
                    v = v - 0.1 * np.sin(q) * b
                    q = q + 0.1 * v / (1 + q @ q)
                return (q, v), None

            (q, v), _ = cd.scan(step, (x, b), length=5)
            return q @ v

        return counted(lambda: cd.hessian(moved, wrt="x", mode="cross-country", simplify=False))[1]

    assert terms(2) < 3 * terms(1)


def test_the_table_is_of_all_programs() -> None:
    assert COSTS.keys() == derivatives().keys()
