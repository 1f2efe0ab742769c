"""What derivations take, counted by no clock: rows of e-graphs and terms made, beside a table.

A law that matches its own results, or a walk that takes a graph for a tree, shows in these figures long before anybody
waits for it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from latency import derivatives

import combdiff as cd
from combdiff.ir.terms import _Interning
from combdiff.simplification import memory
from combdiff.simplification.egraph.saturation import Saturation

DEAR = 15_000  # terms, that a derivation takes in `make test`
SLACK = 2  # what is in memory already makes fewer terms, a new law some more rows

# (rows of all e-graphs after each saturation, terms asked for while deriving), as counted in November 2026
COSTS: dict[str, tuple[int, int]] = {
    "logistic map, 10 steps": (592, 5900),
    "logistic map, Hessian": (2361, 27088),
    "pendulum, 10 steps": (0, 7111),
    "MPS energy": (2168, 50041),
    "bundle adjustment": (10728, 61016),
    "Kalman filter, 8 steps": (7109, 140198),
    "coupled-cluster Lagrangian": (1908, 12589),
    "GP evidence, Hessian": (8019, 60191),
    "64 tanh layers": (3917, 66218),
    "attention": (2778, 14012),
    "Hartree-Fock": (769, 3046),
    "Wannier": (1300, 22121),
    "RNN, 6 steps": (0, 6706),
    "Gaussian mixture": (1898, 9494),
    "GP evidence": (5550, 24065),
    "shooting, 6 steps": (4743, 45588),
    "neo-Hooke, Hessian": (1329, 6059),
    "autoencoder": (735, 18518),
    "Ising mean field": (475, 2269),
    "principal components": (1860, 11573),
    "convolutions": (563, 9631),
    "LSTM, 3 steps": (9067, 57855),
    "coupled cluster, quadratic": (0, 16532),
    "logistic regression, Hessian": (1874, 12659),
}


def counted(derive: Callable[[], Any]) -> tuple[int, int]:
    """The rows and the terms of a derivation."""
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
        derive()
    return rows, terms


CASES = [pytest.param(name, marks=pytest.mark.thorough if terms > DEAR else ()) for name, (_, terms) in COSTS.items()]


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", CASES)
def test_a_derivation_takes_no_more_than_it_did(name: str) -> None:
    """Where it takes much less for good, the table is to say so."""
    for found, stated in zip(counted(derivatives()[name]), COSTS[name], strict=True):
        assert found <= SLACK * stated, f"{name}: {found}, but {stated} in the table"
        assert 2 * SLACK * found >= stated, f"{name}: {found}, so that {stated} in the table says little"


@cd.program
def sharpe(w: cd.Space(4), returns: cd.Space(30, 4)):
    """The ratio of Sharpe of a portfolio, its weights scaled to add up to 1."""
    earned = returns @ (w / w.sum())
    return earned.mean() / earned.std(ddof=1)


@pytest.mark.thorough
def test_substitutions_are_held_to_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Definitions that read one another at many indices: one step used to make 800 000 rows of 1000."""
    most = 0
    size = Saturation._size

    def seen(self: Saturation) -> int:
        nonlocal most
        most = max(most, found := size(self))
        return found

    monkeypatch.setattr(Saturation, "_size", seen)
    cd.grad(sharpe, "w")
    assert 1000 < most < 100_000
    rng = np.random.default_rng(0)
    cd.testing.check_grad(sharpe, "w", w=rng.uniform(1, 2, 4), returns=rng.normal(size=(30, 4)))


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
