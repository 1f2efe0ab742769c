"""Which laws lead from one term to another: saturation again, with fewer and fewer laws.

    Σ_i δ(i, d)·x[i] + x[d]   →   2 x[d]      by   "δ meets Σ", "like terms"

egglog has proofs for programs without containers only, so the laws are found by trial: those that fire on the way, less
each that can be left out. The terms between are looked for among what each law makes by itself.

Invariant: every step is confirmed in an e-graph that holds its two terms and its laws alone (with the rules that note
facts and carry out substitutions).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from combdiff.ir import Term, exchanged, subterms
from combdiff.simplification.egglog_bindings import bindings
from combdiff.simplification.egraph.context import Context, Known
from combdiff.simplification.egraph.encoding import Codec, function_facts
from combdiff.simplification.egraph.extraction import Extractor, cost, ordered, read
from combdiff.simplification.egraph.saturation import STEP, session
from combdiff.simplification.laws.loading import load
from combdiff.simplification.laws.syntax import Command, law_names, run_text, trusted

MET = "an equal term met before"
MOST_STEPS = 12  # of saturation
MOST_ROWS = 20_000
MOST_CANDIDATES = 12  # terms that a law makes by itself


class Replay:
    """An e-graph without laws, to which any choice of laws is added for a question."""

    def __init__(self, rules: Iterable[str], known: Known) -> None:
        self.rules = tuple(rules)
        self.known = known
        self.laws: dict[str, Command] = {}
        self.own: dict[str, Command] = {}  # the laws of the tensors in the terms of a question
        self.egraph = bindings().EGraph()
        for command in (command for file in load(self.rules) for command in file.commands):
            names = law_names([command])
            if names and _ruleset(command) in ("units", "collect", "laws"):
                self.laws[names[0]] = command
            else:
                self.egraph.run_program(command)
        run_text(self.egraph, function_facts())

    def steps(self, start: Term, goal: Term) -> Iterator[tuple[str, Term, Term]]:
        """The chain from a term to one that the laws find equal: the law or laws, the term before, the term after."""
        laws = self._needed(start, goal)
        while start is not goal:
            law, after, rest = self._next(start, goal, laws)
            yield law, start, after
            start, laws = after, rest

    def _next(self, start: Term, goal: Term, laws: tuple[str, ...]) -> tuple[str, Term, tuple[str, ...]]:
        """One law that takes the start to a term from which the other laws reach the goal; all at once if none does."""
        if len(laws) > 1:
            for law in laws:
                rest = tuple(other for other in laws if other != law)
                for candidate in self._made(start, law):
                    if self.reached(candidate, goal, rest) is not None:
                        return law, candidate, self._fewest(candidate, goal, rest)
        return ", ".join(laws) or MET, goal, ()

    def _needed(self, start: Term, goal: Term) -> tuple[str, ...]:
        """Laws by which two terms are equal, none of which can be left out."""
        fired = self.reached(start, goal, None)
        return self._fewest(start, goal, fired or ())

    def _fewest(self, start: Term, goal: Term, laws: tuple[str, ...]) -> tuple[str, ...]:
        size = max(len(laws) // 2, 1)
        too_few: list[frozenset[str]] = []  # what does not reach the goal does not with fewer laws either

        def reaches(fewer: tuple[str, ...]) -> bool:
            if any(part.issuperset(fewer) for part in too_few):
                return False
            if self.reached(start, goal, fewer) is None:
                too_few.append(frozenset(fewer))
                return False
            return True

        while laws:
            for at in range(0, len(laws), size):
                fewer = laws[:at] + laws[at + size :]
                if len(fewer) < len(laws) and reaches(fewer):
                    laws = fewer
                    break
            else:
                if size == 1:
                    break
                size //= 2
            size = min(size, max(len(laws), 1))
        return laws

    def reached(self, start: Term, goal: Term, names: Iterable[str] | None) -> tuple[str, ...] | None:
        """The laws of those named (of all for None) that fire until two terms are equal; None if they never are."""
        with self._question([start, goal], names) as question:
            fired: dict[str, None] = {}
            for _ in range(MOST_STEPS):
                if question.equal():
                    return tuple(fired)
                report = question.step()
                counts = report.num_matches_per_rule
                fired.update(dict.fromkeys(name for name in sorted(counts) if counts[name] and self._is_law(name)))
                if not report.updated or question.size() > MOST_ROWS:
                    break
            return tuple(fired) if question.equal() else None

    def _is_law(self, name: str) -> bool:
        return name in self.laws or name in self.own

    def _made(self, start: Term, law: str) -> list[Term]:
        """Terms that one law makes of another: in all places, as the plainest of the class, in one place."""
        with self._question([start], (law,)) as question:
            for _ in range(2):
                if not question.step().updated:
                    break
            extractor = Extractor(read(question.egraph, question.codec), question.codec)
            best = extractor.best_of_all()
            _, plainest = best[question.root(0)]
            inside = set(subterms(start))
            changes: dict[Term, list[Term]] = {}
            for class_ in best:
                found = dict.fromkeys(map(ordered, extractor.alternatives(class_)))
                for old in (term for term in found if term in inside):
                    changes[old] = [term for term in found if term is not old]
        everywhere = ordered(exchanged(start, {old: min(new, key=cost) for old, new in changes.items() if new}))
        singly = (ordered(exchanged(start, {old: new})) for old, many in changes.items() for new in many)
        made = dict.fromkeys([everywhere, ordered(plainest), *singly])
        return [term for term in made if term is not start][:MOST_CANDIDATES]

    @contextmanager
    def _question(self, terms: list[Term], names: Iterable[str] | None) -> Iterator[_EqualityQuestion]:
        """An e-graph with terms in it and the laws of those names; all for None, as they are kept for saturation."""
        codec = Codec(Context(self.known))
        written = [codec.written(term) for term in terms]
        own = trusted(codec.tensor_laws())
        self.own = {name: command for command in own for name in law_names([command])}
        if names is None:
            with session(self.rules, terms, Context(self.known)) as egraph:
                egraph.run_program(*own)
                yield _EqualityQuestion(egraph, codec, written)
            return
        wanted = set(names)
        run_text(self.egraph, "(push)")
        try:
            laws = {**self.laws, **self.own}
            self.egraph.run_program(*(laws[name] for name in laws if name in wanted))
            self.egraph.run_program(*(command for command in own if not law_names([command])))
            yield _EqualityQuestion(self.egraph, codec, written)
        finally:
            run_text(self.egraph, "(pop)")


class _EqualityQuestion:
    """Terms in an e-graph with laws: what becomes of their classes."""

    def __init__(self, egraph: Any, codec: Codec, written: Iterable[tuple[str, str]]) -> None:
        self.egraph, self.codec = egraph, codec
        for number, (parts, term) in enumerate(written):
            run_text(egraph, f"{parts}\n(let $term{number} {term})")

    def step(self) -> Any:
        """Apply the laws once; the report."""
        return run_text(self.egraph, STEP)[0].report

    def root(self, number: int) -> Any:
        """The class of a term."""
        return self.egraph.lookup_function(f"$term{number}", [])

    def equal(self) -> bool:
        """Whether the two terms are in one class."""
        return bool(self.root(0) == self.root(1))

    def size(self) -> int:
        """The number of rows of all tables."""
        (report,) = run_text(self.egraph, "(print-size)")
        return sum(rows for _, rows in report.sizes)


def _ruleset(command: Command) -> str:
    return str(command.rule.ruleset if hasattr(command, "rule") else command.name)
