"""What was simplified before, by its form: equal terms, up to names, are simplified once.

    64 layers     t.k = Σ_j W[k, i, j] h.k[j]     one saturation, named back 64 times

With the result of a form go the budgets that were met, and the events of its simplification: an explanation reads what
was done when a derivative was made, and no law is applied for it a second time.

Invariant: the result for a term depends on its form alone, not on what was simplified before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any

from combdiff.ir import TABLE, Term
from combdiff.records import dataclass
from combdiff.simplification.egraph.budget import current, gathered, stopped
from combdiff.simplification.egraph.context import Known
from combdiff.simplification.egraph.provenance import Event, Found, Solved, note, recording
from combdiff.simplification.laws.loading import BUILT_IN, load
from combdiff.simplification.normal_form.forms import CanonicalForm, form_of

MOST_KEPT = 512  # forms; those used least recently are dropped

Simplify = Callable[[Term, tuple[str, ...], Known], Term]


@dataclass(frozen=True)
class _Result:
    term: Term
    limits: tuple[str, ...]
    events: tuple[Event, ...]


_kept: OrderedDict[Any, _Result] = OrderedDict()
_keeping = Lock()


def simplified_once(term: Term, rules: tuple[str, ...], known: Known, simplify: Simplify) -> Term:
    """`simplify` of a scalar term, rule files and what is known of matrices: done once for all terms of a form."""
    files = load(rules)
    form = form_of(term, known, renamed=len(files) == len(BUILT_IN))  # laws of users may name tensors
    key = form.term, tuple(form.known.items()), files, tuple(TABLE), current()
    result = _kept_for(key)
    if result is None:
        with recording() as events, gathered() as stops:
            found = simplify(form.term, rules, form.known)
        result = _Result(found, tuple(limit for limit, _ in stops), tuple(events))
        if not any("seconds" in limit for limit in result.limits):  # time is no property of a form
            _keep(key, result)
    for event in result.events:
        note(lambda: _named_event(event, form, known))  # noqa: B023  (called at once)
    for limit in result.limits:
        stopped(limit)
    return form.named(result.term)


def forget() -> None:
    """Drop all that is kept."""
    with _keeping:
        _kept.clear()


def _kept_for(key: object) -> _Result | None:
    with _keeping:
        result = _kept.get(key)
        if result is not None:
            _kept.move_to_end(key)
    return result


def _keep(key: object, result: _Result) -> None:
    with _keeping:
        _kept[key] = result
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)


def _named_event(event: Event, form: CanonicalForm, known: Known) -> Event:
    """An event of the simplification of a form, in the names of the term."""
    match event:
        case Solved():
            return Solved(form.named(event.term), form.named(event.solved))
        case Found():
            rounds = tuple((form.named(best), form.named(named)) for best, named in event.rounds)
            return Found(form.named(event.term), form.named(event.written), rounds, form.named(event.chosen), known)
    return event
