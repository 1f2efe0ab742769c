"""What was simplified before: equal terms, up to names, are simplified once, and so are equal programs.

    64 layers     t.k = Σ_j W[k, i, j] h.k[j]     one saturation, named back 64 times
    cd.grad(f) and then cd.testing.check_grad(f)  one derivative, simplified once

With the result of a form go the budgets that were met, and the events of its simplification: an explanation reads what
was done when a derivative was made, and no law is applied for it a second time. With that of a whole program go the
budgets; where events are recorded it is put together from its forms again.

Invariant: the result for a term depends on its form alone, not on what was simplified before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Any, Generic, TypeVar

from combdiff.ir import TABLE, Add, Lambda, Term, is_call, lambda_, subterms
from combdiff.records import dataclass
from combdiff.simplification.egraph.budget import current, gathered, stopped
from combdiff.simplification.egraph.context import Known
from combdiff.simplification.egraph.provenance import Event, Found, Solved, is_recorded, note, recording
from combdiff.simplification.laws.loading import BUILT_IN, load
from combdiff.simplification.normal_form.forms import CanonicalForm, form_of

MOST_FORMS, MOST_BODIES = 256, 32  # that are kept; those used least recently are dropped

Simplify = Callable[[Term, tuple[str, ...], Known], Term]
_Value = TypeVar("_Value")


class _Memory(Generic[_Value]):
    """Values by their keys, as many as `most`: of more, those used least recently are dropped."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._values: OrderedDict[Any, _Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: object) -> _Value | None:
        with self._lock:
            found = self._values.get(key)
            if found is not None:
                self._values.move_to_end(key)
        return found

    def keep(self, key: object, value: _Value) -> None:
        with self._lock:
            self._values[key] = value
            while len(self._values) > self.most:
                self._values.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._values.clear()


@dataclass(frozen=True)
class _Result:
    term: Term
    limits: tuple[str, ...]
    events: tuple[Event, ...]


@dataclass(frozen=True)
class _SimplifiedBody:
    body: Term
    stops: tuple[tuple[str, str], ...]


_forms: _Memory[_Result] = _Memory(MOST_FORMS)
_factored: _Memory[Term] = _Memory(MOST_FORMS)
_bodies: _Memory[_SimplifiedBody] = _Memory(MOST_BODIES)


def simplified_once(term: Term, rules: tuple[str, ...], known: Known, simplify: Simplify) -> Term:
    """`simplify` of a scalar term, rule files and what is known of matrices: done once for all terms of a form."""
    files = load(rules)
    form = form_of(term, known, renamed=len(files) == len(BUILT_IN))  # laws of users may name tensors
    key = form.term, tuple(form.known.items()), files, tuple(TABLE), current()
    result = _forms.get(key)
    if result is None:
        with recording() as events, gathered() as stops:
            found = simplify(form.term, rules, form.known)
        result = _Result(found, tuple(limit for limit, _ in stops), tuple(events))
        if not any("seconds" in limit for limit in result.limits):  # time is no property of a form
            _forms.keep(key, result)
    for event in result.events:
        note(lambda: _named_event(event, form, known))  # noqa: B023  (called at once)
    for limit in result.limits:
        stopped(limit)
    return form.named(result.term)


def body_once(body: Term, rules: tuple[str, ...], stage: str, simplify: Callable[[], Term]) -> Term:
    """What `simplify` makes of a program's body with rule files at a stage: done once for equal bodies."""
    if is_recorded():
        return simplify()
    budget = current()
    key = body, load(rules), tuple(TABLE), budget, stage
    result = _bodies.get(key)
    if result is None:
        began = monotonic()
        with gathered() as stops:
            result = _SimplifiedBody(simplify(), tuple(stops))
        if monotonic() - began < budget.seconds:  # time is no property of a body, and none of its parts ran out of it
            _bodies.keep(key, result)
    for limit, name in result.stops:
        stopped(limit, name)
    return result.body


def factored_once(value: Term, joining: bool, factor: Callable[[Term], Term]) -> Term:
    """What `factor` makes of a tensor or number: done once for all of a form, but for calls, whose names are bound."""
    body, parameters = (value.body, value.parameters) if isinstance(value, Lambda) else (value, ())
    if is_call(body) or not any(isinstance(part, Add) for part in subterms(body)):
        return factor(value)
    form = form_of(body, {})
    ranked = {var: new for new, var in form.names.items()}
    given = lambda_((ranked.get(index, index) for index in parameters), form.term)
    found = _factored.get((given, joining))
    if found is None:
        found = factor(given)
        _factored.keep((given, joining), found)
    if found is given:
        return value
    return lambda_(parameters, form.named(found.body if isinstance(found, Lambda) else found))


def forget() -> None:
    """Drop all that is kept."""
    _factored.clear()
    _forms.clear()
    _bodies.clear()


def _named_event(event: Event, form: CanonicalForm, known: Known) -> Event:
    """An event of the simplification of a form, in the names of the term."""
    match event:
        case Solved():
            return Solved(form.named(event.term), form.named(event.solved))
        case Found():
            rounds = tuple((form.named(best), form.named(named)) for best, named in event.rounds)
            return Found(form.named(event.term), form.named(event.written), rounds, form.named(event.chosen), known)
    return event
