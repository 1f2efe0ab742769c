"""The budget of a saturation: where it stops, and how a user sets it.

    with cd.budget(nodes=2_000):
        gradient = cd.grad(f)       # stops at 2 000 nodes, with a BudgetWarning that names them

Invariant: a budget changes how simple a result is, never its value. One that is set holds inside its `with` block, in
the thread or task that entered it, and nowhere else. A call of the user warns once, whatever budgets it meets.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace
from typing import Any

from combdiff.errors import ArgumentError, BudgetWarning, refusing_depth, shown, user_location
from combdiff.records import dataclass

MOST_NAMED = 5  # tensors that a warning names


@dataclass(frozen=True)
class Budget:
    """Where saturation stops: nodes in the e-graph, rounds of saturation and naming, seconds.

    And where loops are looked for no longer: pairs of parts that are compared, for each part of a program.
    """

    nodes: int = 20_000
    rounds: int = 12
    seconds: float = 20.0
    pairs: int = 400

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
def budget(
    *, nodes: int | None = None, rounds: int | None = None, seconds: float | None = None, pairs: int | None = None
) -> Iterator[Budget]:
    """Set where simplification stops inside a `with` block, for each tensor that is simplified.

    `nodes` bounds the size of the e-graph, `rounds` how often it is saturated, `seconds` the time, and `pairs` how
    many parts of a program are compared for each of them where loops are rolled up; what is not given stays as it is
    outside. Reaching one gives a correct result that is perhaps not the simplest, and a BudgetWarning
    that names the budget. Raises ArgumentError for what is not a number from 0 on.
    """
    given: dict[str, Any] = {"nodes": nodes, "rounds": rounds, "seconds": seconds, "pairs": pairs}
    token = _current.set(replace(_current.get(), **{name: n for name, n in given.items() if n is not None}))
    try:
        yield _current.get()
    finally:
        _current.reset(token)


# --- what a budget left undone -------------------------------------------------------------------------------------

Stops = dict[tuple[str, str], None]
"""The budgets that were met, each with the tensor that it stopped at ("" where that has no name), in order."""

_stops: ContextVar[Stops | None] = ContextVar("combdiff_stops", default=None)


@contextmanager
def gathered() -> Iterator[Stops]:
    """The budgets met inside the block, of which nothing is said."""
    stops: Stops = {}
    token = _stops.set(stops)
    try:
        yield stops
    finally:
        _stops.reset(token)


@contextmanager
def one_warning() -> Iterator[None]:
    """One warning for all budgets met inside the outermost of such blocks, what a call of the user does.

    It says which tensors were left as they are, by their names in the derivative as it is before simplification.
    Raises UnsupportedError where formulas are nested too deeply.
    """
    if _stops.get() is not None:
        yield
        return
    with gathered() as stops, refusing_depth():
        yield
    if stops:
        place = user_location()
        file, line = (place.file, place.line) if place else ("combdiff", 0)
        warnings.warn_explicit(_said(stops), BudgetWarning, file, line)


def _said(stops: Stops) -> str:
    limits = " and ".join(dict.fromkeys(limit for limit, _ in stops))
    tensors = list(dict.fromkeys(name for _, name in stops))
    spoken = list(dict.fromkeys(name.split(".")[0] for name in tensors))
    named = ", ".join(spoken[:MOST_NAMED]) + (", …" if len(spoken) > MOST_NAMED else "")
    where = named if tensors == ["the result"] else f"{len(tensors)} of its tensors ({named})"
    result = "the result is correct, perhaps not the simplest: with cd.budget(…) another one is set"
    return f"simplification stopped at its budget of {limits}, in {where}; {result}"


def stopped(limit: str, name: str = "") -> None:
    """Note that the budget named in `limit` is spent, in the tensor of that name."""
    stops = _stops.get()
    if stops is None:
        with one_warning():
            stopped(limit, name)
    else:
        stops[limit, name or "the result"] = None


@contextmanager
def simplifying(name: str) -> Iterator[None]:
    """Budgets met inside the block are met in the tensor of that name."""
    with gathered() as stops:
        yield
    for limit, _ in stops:
        stopped(limit, name)
