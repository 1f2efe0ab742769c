"""The budget of a saturation: where it stops, and how a user sets it.

    with cd.budget(nodes=2_000):
        gradient = cd.grad(f)       # stops at 2 000 nodes, with a BudgetWarning that names them

Invariant: a budget changes how simple a result is, never its value. One that is set holds inside its `with` block, in
the thread or task that entered it, and nowhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any

from combdiff.errors import ArgumentError, BudgetWarning, shown


@dataclass(frozen=True)
class Budget:
    """Where saturation stops: nodes in the e-graph, rounds of saturation and naming, seconds."""

    nodes: int = 20_000
    rounds: int = 12
    seconds: float = 20.0

    def __post_init__(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise ArgumentError(f"a budget of {shown(value)} {part.name} was given", hint="give a number from 0 on")


_current: ContextVar[Budget] = ContextVar("combdiff_budget", default=Budget())  # noqa: B039  (it is frozen)


def current() -> Budget:
    """The budget that holds here."""
    return _current.get()


@contextmanager
def budget(*, nodes: int | None = None, rounds: int | None = None, seconds: float | None = None) -> Iterator[Budget]:
    """Set where simplification stops inside a `with` block, for each tensor that is simplified.

    `nodes` bounds the size of the e-graph, `rounds` how often it is saturated, `seconds` the time; what is not given
    stays as it is outside. Reaching one gives a correct result that is perhaps not the simplest, and a BudgetWarning
    that names the budget. Raises ArgumentError for what is not a number from 0 on.
    """
    given: dict[str, Any] = {"nodes": nodes, "rounds": rounds, "seconds": seconds}
    token = _current.set(replace(_current.get(), **{name: n for name, n in given.items() if n is not None}))
    try:
        yield _current.get()
    finally:
        _current.reset(token)


_met: ContextVar[list[str] | None] = ContextVar("combdiff_limits", default=None)


@contextmanager
def collecting() -> Iterator[list[str]]:
    """The budgets that are spent in the block, each once, in order: nobody is warned of them yet."""
    limits: list[str] = []
    token = _met.set(limits)
    try:
        yield limits
    finally:
        _met.reset(token)


def warn(limit: str) -> None:
    """Say that the budget named in `limit` is spent, or note it where such are collected."""
    met = _met.get()
    if met is not None:
        met += [] if limit in met else [limit]
        return
    warnings.warn(
        f"simplification stopped at its budget of {limit}; the result is correct, perhaps not the simplest",
        BudgetWarning,
        stacklevel=2,
    )
