"""How a program came about: the steps from the raw derivative to the result, each law by name.

    explanation(raw, result, rules)   →   Step("δ meets Σ", Σ_i δ(i, d) x[i], x[d]), …

The simplification is done again and noted (`egraph.history`); between two terms that it found equal the laws are found
by trial (`egraph.replay`). What is no law has a name too: sharing, contraction normal form, canonical names.

Invariant: the steps are a chain. Each begins with the term that the one before it ends with, the first with the raw
program and the last with the result.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from combdiff.ir import Lambda, Names, Term, Tuple, Var, canonical_names, lambda_, letters_of, readable, share
from combdiff.printing import latex, text
from combdiff.records import dataclass
from combdiff.simplification import (
    MET,
    Event,
    Found,
    Normalised,
    Place,
    Replay,
    Solved,
    State,
    bind_again,
    declared,
    gathered,
    normalise,
    ordered,
    recording,
    restored,
    simplify_body,
)
from combdiff.status import stage, working

SOLVED = "δ meets Σ"
PREPARED = "own indices named, arguments of calls simplified"
APART = "every Σ binds indices of its own"
NORMAL = "contraction normal form: connected sums, δ's solved"
CANONICAL = "canonical form: names of indices, signs, equal terms"
CHOSEN = "the cheapest form met"
NAMED = "heavy tensors of the program bound again"
READABLE = "names for readers"
_NUMBERED = re.compile(r"\b([^\W\d]\w*)\.\d+(?=: )")  # a binding in the law of a symmetry: t.2: t[i,j] = …


@dataclass(frozen=True)
class ExplanationStep:
    """One step: the law (or laws) or what else was done, the part of the program it changed, before and after.

    `place` names the binding that the part is the value of, "" for the result. `before` and `after` are whole program
    bodies, `part` the two forms of the part.
    """

    law: str
    place: str
    before: Term
    after: Term
    part: tuple[Term, Term]


@dataclass(frozen=True)
class Explanation:
    """The steps from a raw program to what it was simplified to; prints as text, in notebooks as formulas."""

    parameters: tuple[Var, ...]
    steps: tuple[ExplanationStep, ...]
    raw: Term
    result: Term

    def shown(self) -> Iterator[tuple[ExplanationStep, Term, Term]]:
        """The steps that change more than names and order, with their parts in letters for readers."""
        letters = letters_of(Lambda(self.parameters, self.raw))
        for number, step in enumerate(self.steps, start=1):
            stage(f"printing step {number} of {len(self.steps)}")
            old, new = (_lettered(part, letters) for part in step.part)
            if text(old) != text(new) and _form(step.part[0]) is not _form(step.part[1]):
                yield step, old, new

    @working("printing")
    def __str__(self) -> str:
        first, last = map(text, self._ends())
        lines = [first]
        for number, (step, old, new) in enumerate(self.shown(), start=1):
            place = f", in {step.place}" if step.place else ""
            lines += [f"{number}. {step.law}{place}", f"     {_indented(text(old))}", f"   → {_indented(text(new))}"]
        return "\n".join([*lines, last])

    def _ends(self) -> tuple[Lambda, Lambda]:
        """The raw program, its iterations and long parts by name, and the result."""
        return Lambda(self.parameters, share(self.raw)), Lambda(self.parameters, self.result)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as programs are, with the primitives of rule files that its terms need."""
        terms = (self.raw, self.result, *(term for step in self.steps for term in (step.before, *step.part)))
        return restored, (declared(Tuple(terms)), type(self), {f.name: getattr(self, f.name) for f in fields(self)})

    @working("printing")
    def _repr_html_(self) -> str:
        rows = []
        for number, (step, old, new) in enumerate(self.shown(), start=1):
            place = f" <small>in {html.escape(step.place)}</small>" if step.place else ""
            cells = (f"{number}", f"{html.escape(step.law)}{place}", _formula(old), _formula(new))
            rows.append("".join(f'<td style="text-align:left">{cell}</td>' for cell in cells))
        ends = map(_formula, self._ends())
        first, last = (f'<tr><td colspan="4" style="text-align:left">{end}</td></tr>' for end in ends)
        head = "<tr><th></th><th>law</th><th>before</th><th>after</th></tr>"
        return f"<table>{first}{head}{''.join(f'<tr>{row}</tr>' for row in rows)}{last}</table>"


def _formula(term: Term) -> str:
    return f"${html.escape(latex(term))}$"


def _indented(lines: str) -> str:
    return lines.replace("\n", "\n     ")


def _lettered(part: Term, letters: dict[object, list[str]]) -> Term:
    """A part with letters for the indices bound in it."""
    free = tuple(sorted(part.free, key=lambda var: var.name))
    return readable(Lambda(free, part), letters).body if free else part


def _form(part: Term) -> Term:
    """A part up to bound names and order."""
    free = sorted(part.free, key=lambda var: var.name)
    return ordered(canonical_names(lambda_(free, part)), collect=False)


@working("explaining")
def explanation(parameters: tuple[Var, ...], raw: Term, result: Term, rules: tuple[str, ...]) -> Explanation:
    """The steps from the raw body of a derivative to the body that simplification gave, by simplifying again."""
    for paired in (False, True):  # whether what results have in common was bound
        with recording() as events, gathered():  # of budgets was told when it was derived
            simple = simplify_body(raw, rules, paired=paired)
        named = bind_again(simple, raw)
        if _form(named) is _form(result):
            break
    writer = _StoryWriter(raw, rules)
    for number, event in enumerate(events, start=1):
        stage(f"finding the laws, step {number} of {len(events)}")
        writer.take(event)
    if named is not simple and _form(named) is _form(result):
        writer.step(NAMED, "", named, (writer.state, named))
    writer.step(READABLE, "", result, (writer.state, result))
    return Explanation(parameters, tuple(writer.steps), raw, result)


class _StoryWriter:
    """Steps from events; `state` is the whole body that the last step ended with."""

    def __init__(self, raw: Term, rules: tuple[str, ...]) -> None:
        self.state, self.rules = raw, rules
        self.steps: list[ExplanationStep] = []
        self.place: Place | None = None

    def step(self, law: str, place: str, after: Term, part: tuple[Term, Term]) -> None:
        """Add a step, if it changes anything."""
        if after is not self.state:
            spoken = _NUMBERED.sub(r"\1", law)
            self.steps.append(ExplanationStep(spoken, place, self.state, after, part))
            self.state = after

    def take(self, event: Event) -> None:
        """The steps of one event."""
        match event:
            case State():
                self.step(event.reason, "", event.body, (self.state, event.body))
            case Place():
                self.place = event
                whole = event.whole(event.value)
                self.step("values put where they are used", "", whole, (self.state, whole))
            case Normalised():
                self._prepared(event.value)
            case Solved():
                self._at(SOLVED, event.term, event.solved)
            case Found():
                self._found(event)

    def _prepared(self, value: Term) -> None:
        assert self.place is not None
        name = self.place.name.split(".")[0]
        self.step(PREPARED, name, self.place.whole(value), (self.place.value, value))
        self.place = replace(self.place, value=value)

    def _found(self, event: Found) -> None:
        """The steps of a saturation: laws, normal form and names, round by round."""
        part = event.term
        for law, after in self._chain(event):
            self._at(law, part, after)
            part = after

    def _at(self, law: str, old: Term, new: Term) -> None:
        assert self.place is not None
        value = self.place.value
        whole = self.place.whole(Lambda(value.parameters, new) if isinstance(value, Lambda) else new)
        self.step(law, self.place.name.split(".")[0], whole, (old, new))

    def _chain(self, event: Found) -> Iterator[tuple[str, Term]]:
        replay = Replay(self.rules, event.known)
        current, chosen = ordered(event.written), ordered(event.chosen)
        yield APART, current
        for best, named in event.rounds:
            for law, _, after in replay.steps(current, ordered(best)):
                yield law, after
            current = ordered(best)
            if current is chosen:
                break
            normal = normalise(ordered(best), Names(best))
            yield NORMAL, normal
            current = ordered(named)
            yield CANONICAL, current
            if current is chosen:
                break
        if current is not chosen:
            for law, _, after in replay.steps(current, chosen):
                yield CHOSEN if law == MET else law, after
        yield CHOSEN, event.chosen
