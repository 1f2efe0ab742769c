"""What simplification does, noted while it is done, for `explain` to account for.

    with recording() as events: simplify_body(body)      →   [State, Place, Found, State, …]

Nothing is noted outside such a block.

Invariant: noting changes nothing of what is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field

from combdiff.ir import Term, Var
from combdiff.records import dataclass


@dataclass(frozen=True)
class State:
    """A whole program body, and what made it of the one before."""

    reason: str
    body: Term


@dataclass(frozen=True)
class Place:
    """A value about to be simplified: its name, and the whole body with another value in its place."""

    name: str
    value: Term
    whole: Callable[[Term], Term]


@dataclass(frozen=True)
class Normalised:
    """The value of the place with its own indices plainly named and the arguments of calls simplified."""

    value: Term


@dataclass(frozen=True)
class Solved:
    """A number, and the same in which no Σ holds a δ that it can take."""

    term: Term
    solved: Term


@dataclass(frozen=True)
class Found:
    """One saturation: the term written, the best and the canonical term of every round, the term chosen."""

    term: Term
    written: Term
    rounds: tuple[tuple[Term, Term], ...]
    chosen: Term
    known: Mapping[Var, Term] = field(default_factory=dict)


Event = State | Place | Normalised | Solved | Found
_events: ContextVar[list[Event] | None] = ContextVar("combdiff_history", default=None)


@contextmanager
def recording() -> Iterator[list[Event]]:
    """The events of what is done in the block, in order."""
    events: list[Event] = []
    token = _events.set(events)
    try:
        yield events
    finally:
        _events.reset(token)


def is_recorded() -> bool:
    """Whether events are recorded here."""
    return _events.get() is not None


def note(make: Callable[[], Event]) -> None:
    """Add an event where events are recorded."""
    events = _events.get()
    if events is not None:
        events.append(make())


@contextmanager
def unrecorded() -> Iterator[None]:
    """What is done in the block is no step by itself."""
    token = _events.set(None)
    try:
        yield
    finally:
        _events.reset(token)
