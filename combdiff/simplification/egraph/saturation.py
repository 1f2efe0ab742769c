"""The schedule: saturate by laws, read the best term out, name its indices canonically, and again until it settles.

    Σ_i δ(i, d)·a[i] + Σ_j δ(d, j)·a[j]   →   2 a[d]

Laws from rules/*.egg and the symmetries of the tensors do the simplifying. Between saturations the best term is put
in contraction normal form with canonical names and joined with its class, so that terms equal up to names of bound
indices meet (see `canonical`).

Invariant: the result equals the input in value and never costs more; it does not depend on hash seeds.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from combdiff.ir import (
    MATRIX_TABLE,
    TABLE,
    Names,
    Number,
    Space,
    Sum,
    Symmetric,
    Term,
    Var,
    affine,
    canonical_names,
    dtype_of,
    exchanged,
    substitute,
    subterms,
)
from combdiff.records import dataclass
from combdiff.simplification.egglog_bindings import bindings
from combdiff.simplification.egraph.budget import Budget, current, stopped
from combdiff.simplification.egraph.context import NOTHING, Context
from combdiff.simplification.egraph.encoding import Codec, function_facts
from combdiff.simplification.egraph.extraction import Classes, Extractor, ordered, price, read, with_real_arguments
from combdiff.simplification.egraph.provenance import Found, note
from combdiff.simplification.egraph.settled import words_in
from combdiff.simplification.laws.loading import RuleFile, load, run_laws
from combdiff.simplification.laws.reach import FRACTIONAL, PARTS, ReachedLaws, reached
from combdiff.simplification.laws.syntax import run_text
from combdiff.simplification.normal_form.canonical import canonical
from combdiff.simplification.normal_form.contraction import normalise, without_deltas_and_ends
from combdiff.simplification.normal_form.expansion import with_sums_cancelled

# Bounded repeats, not `saturate`: a class that contains itself (x = 1·x) can make egglog rebuild a container for ever.
STEP = """(run-schedule
    (repeat 3 (run units) (repeat 2 (run facts)) (run collect)) (run laws) (repeat 8 (run substitution)))"""

_local = threading.local()


MOST_EGRAPHS = 6  # that a thread keeps, of some megabytes each: those of other choices of laws are made again
MOST_USES = 1000  # of an e-graph: it keeps about a kilobyte of what was pushed and popped each time
MOST_MORE = 1.6  # laws of two e-graphs in one, for each law of either, up to which it takes the place of one
MOST_IDLE = 10  # laws copied and searched for nothing, for each law of an e-graph without them, until that is made


@dataclass(frozen=True)
class _Base:
    """An e-graph with the laws of some files that hold of terms with these functions and parts."""

    files: tuple[RuleFile, ...]
    table: tuple[str, ...]
    words: frozenset[str]

    @cached_property
    def laws(self) -> ReachedLaws:
        return reached(self.files, self.words)

    @cached_property
    def egraph(self) -> Any:
        made = bindings().EGraph()
        run_laws(made, self.laws.commands)
        run_text(made, function_facts())
        return made

    def serves(self, other: _Base) -> bool:
        """Whether terms of another e-graph find their laws in this one."""
        return self.laws.names >= other.laws.names and (self.files, self.table) == (other.files, other.table)

    def joined(self, other: _Base) -> _Base:
        return _Base(self.files, self.table, self.words | other.words)


@dataclass
class _Usage:
    """How often an e-graph was used, and for how many laws that it would not have needed."""

    count: int = 0
    idle: int = 0


def _base_egraph(files: tuple[RuleFile, ...], words: frozenset[str]) -> Any:
    """An e-graph with the laws that hold of terms with these functions and parts, and perhaps some that find nothing.

    Each is made once per thread, and again when it was used often; callers push and pop. One is made for terms that
    another serves once so many laws of that one have been idle that to make it would have taken less time.
    """
    cache: OrderedDict[_Base, _Usage] = _local.__dict__.setdefault("egraphs", OrderedDict())
    wanted = _Base(files, tuple(TABLE), words)
    found = min((base for base in cache if base.serves(wanted)), key=lambda base: len(base.laws.names), default=None)
    if found is None:
        found = _made_for(
            wanted.joined(_Base(files, wanted.table, _local.__dict__.get("foreseen", frozenset()))), cache
        )
    else:
        cache[found].idle += len(found.laws.names) - len(wanted.laws.names)
        if cache[found].idle > MOST_IDLE * len(wanted.laws.names):
            cache[found].idle, found = 0, wanted
    uses, egraph = cache.pop(found, _Usage()), found.egraph
    uses.count += 1
    if uses.count < MOST_USES:
        cache[found] = uses
        if len(cache) > MOST_EGRAPHS:
            cache.popitem(last=False)
    return egraph


def _made_for(wanted: _Base, cache: OrderedDict[_Base, _Usage]) -> _Base:
    """What to make where no e-graph serves: with the laws of another too, in its place, where these are few more."""
    joined = {base: base.joined(wanted) for base in cache if (base.files, base.table) == (wanted.files, wanted.table)}
    size = {base: len(base.laws.names) for base in (wanted, *joined, *joined.values())}
    near = [base for base, both in joined.items() if size[both] <= MOST_MORE * min(size[base], size[wanted])]
    if not near:
        return wanted
    replaced = min(near, key=lambda base: size[joined[base]])
    del cache[replaced]
    return joined[replaced]


def simplify(term: Term, rules: Iterable[str] = (), budget: Budget | None = None, context: Context = NOTHING) -> Term:
    """The cheapest equal of a scalar term (free indices allowed) that the laws reach within the budget.

    No Σ of it holds a δ that it can take, whatever the budget (see `contraction`).
    """
    if infinite := {node for node in subterms(term) if isinstance(node, Number) and not node.finite}:
        # The laws hold for finite numbers: 2·∞ = ∞ would make y = 2y of them, and so on without end.
        ordered = enumerate(sorted(infinite, key=repr))
        stand_ins: dict[Term, Var] = {number: Var(f"∞.{n}", Space(dtype=dtype_of(number))) for n, number in ordered}
        found = simplify(exchanged(term, stand_ins), rules, budget, context)
        return substitute(found, {var: number for number, var in stand_ins.items()})
    with session(rules, (term,), context) as egraph:
        saturation = Saturation(egraph, (term,), budget or current(), context)
        ((named, found),) = saturation.settle()
        chosen = saturation.cheapest(0, named, found)
        note(lambda: Found(term, saturation.written[0], tuple(saturation.rounds), chosen, context.known))
        return chosen


def unsaturated(term: Term, context: Context = NOTHING) -> Term:
    """The cheapest of the forms of a term that no law changes (see `settled`)."""
    names, forms = Names(term), dict[Any, int]()
    written = ordered(apart(term, names))
    named = _named(written, names, forms)
    chosen = _cheapest((named, written), (written,), context, forms)
    note(lambda: Found(term, written, ((written, named),), chosen, context.known))
    return chosen


def _named(term: Term, names: Names, labels: dict[Any, int]) -> Term:
    return canonical(normalise(with_sums_cancelled(term, names), names), labels)


def _cheapest(forms: Sequence[Term], as_read: Sequence[Term], context: Context, labels: dict[Any, int]) -> Term:
    """The cheapest of some forms of a term, the first of equals; one that is as it was read, with canonical names."""
    chosen = min(forms, key=lambda one: price(one, context))
    if any(chosen is one for one in as_read):
        return min((canonical(chosen, labels), chosen), key=lambda one: price(one, context))  # whatever the letters
    return chosen


def equivalent(
    one: Term, other: Term, rules: Iterable[str] = (), budget: Budget | None = None, context: Context = NOTHING
) -> bool:
    """Whether the laws find two scalar terms equal. Often their canonical forms are one before any law is tried."""
    names, forms = Names(one, other), dict[Any, int]()
    plain, like = (canonical(normalise(apart(term, names), names), forms) for term in (one, other))
    if plain is like:
        return True
    with session(rules, (one, other), context) as egraph:
        (first, _), (second, _) = Saturation(egraph, (one, other), budget or current(), context).settle()
        return first is second


@contextmanager
def foreseen(terms: Iterable[Term]) -> Iterator[None]:
    """Within it an e-graph that is made holds the laws of what is in all of these terms, so that it serves each.

    To make one takes about as long as to saturate ten short terms.
    """
    before = _local.__dict__.get("foreseen", frozenset())
    _local.foreseen = before | words_in(*terms)
    try:
        yield
    finally:
        _local.foreseen = before


@contextmanager
def session(
    rules: Iterable[str],
    terms: Iterable[Term] | None = None,
    context: Context = NOTHING,
    *,
    defined: bool = False,
) -> Iterator[Any]:
    """An e-graph with the laws that can fire on terms (with all laws for None), as it was again afterwards.

    With some terms `defined`, their values are read at other indices.
    """
    if terms is None:
        words = frozenset({*TABLE, *MATRIX_TABLE, FRACTIONAL, *PARTS})
    else:
        words = words_in(*terms, *context.known.values())
    egraph = _base_egraph(load(rules), words | {"Subst"} if defined else words)
    run_text(egraph, "(push)")
    try:
        yield egraph
    finally:
        run_text(egraph, "(pop)")


def apart(term: Term, names: Names) -> Term:
    """The term with every Σ binding names of its own, equal ones the same."""
    made: dict[Term, Term] = {}

    def separate(term: Term) -> Term:
        if not isinstance(term, Sum):
            return term.with_children(tuple(map(separate, term.children)))
        form = canonical_names(term)
        if form not in made:
            renamed = {index: names.fresh(index) for index in term.indices}
            made[form] = Sum(tuple(renamed.values()), substitute(separate(term.body), renamed))
        return made[form]

    return separate(term)


def normal(term: Term) -> Term:
    """The normal form of a scalar term, to which no law is applied: δ's solved, equal terms one, canonical names."""
    names = Names(term)
    return canonical(normalise(apart(without_deltas_and_ends(term, names), names), names))


@dataclass(frozen=True)
class Definition:
    """A name for the value of a root at given indices: `name[v]` is that term with v in place of the parameters."""

    name: Var
    parameters: tuple[Var, ...]
    root: int

    def law(self, codec: Codec, roots: Sequence[str]) -> str:
        """What makes an access to the name, at whatever indices, a member of a class of its value.

        Parameters are replaced one after the other, so what the first becomes must not mention the next: t[j, i] where
        i and j are the parameters of t, which its symmetries write, is left as it is.
        """
        name, value = codec.tensor(self.name), roots[self.root]
        if not self.parameters:
            return f"(union (At {name} (vec-empty)) {value})"
        for place, parameter in enumerate(self.parameters):
            value = f"(Subst {codec.index(parameter)} (vec-get v {place}) {value})"
        moved = [tuple(_under_symmetries(p, codec)) for p in self.parameters]
        later = [(place, index) for n, indices in enumerate(moved) for index in indices for place in range(n)]
        apart = " ".join(f"(!= (vec-get v {place}) {index})" for place, index in later)
        rule = f"(rule ((= e (At {name} v)) {apart}) ((union e {value}))"
        rule += f' :ruleset laws :name "{self.name.name} is its value")'
        return "\n".join([*dict.fromkeys(index for _, index in later), rule])


def _under_symmetries(index: Var, codec: Codec) -> Iterator[str]:
    """What the symmetries of a tensor, which exchange its indices, make of one."""
    yield codec.index(index)
    if isinstance(index.type, Symmetric):
        yield codec.index(affine([(index, -1)]))


class Saturation:
    """Terms that share an e-graph, each the root of a class; `definitions` are names for some of them."""

    def __init__(
        self,
        egraph: Any,
        terms: tuple[Term, ...],
        budget: Budget,
        context: Context,
        definitions: Sequence[Definition] = (),
    ) -> None:
        self.egraph = egraph
        self.budget = budget
        self.context = context
        self.definitions = definitions
        self.codec = Codec(context)
        self.names = Names(*terms)
        self.forms: dict[Any, int] = {}
        self.roots = [f"$root{n}" for n in range(len(terms))]
        self.written = [apart(term, self.names) for term in terms]
        self.rounds: list[tuple[Term, Term]] = []
        self.classes = Classes()
        self.root_classes: list[Any] = []
        self._extractors: dict[frozenset[Var], Extractor] = {}
        starts = [self.codec.written(term) for term in self.written]
        run_text(egraph, self.codec.tensor_laws())
        for root, (parts, start) in zip(self.roots, starts, strict=True):
            run_text(egraph, f"{parts}\n(let {root} {start})")
        for definition in definitions:
            run_text(egraph, definition.law(self.codec, self.roots))
        self.started = time.monotonic()

    def settle(self) -> list[tuple[Term, Term]]:
        """Saturate and name until the terms stand still: for each, its canonical form and the cheapest term found."""
        best = tuple(self.written)
        plain = tuple(canonical(term, self.forms) for term in best)
        seen: set[tuple[Term, ...]] = set()
        named = best if self.budget.rounds else tuple(map(normal, best))
        while len(self.rounds) < self.budget.rounds:
            limit = self._saturate()
            self.look()
            best = tuple(self.best(number) or written for number, written in enumerate(self.written))
            named = tuple(map(self.named, best))
            self.rounds.append((best[0], named[0]))
            if named in seen or (named == plain and not limit):  # under other names they would find what they found
                break
            seen.add(named)
            for number, term in enumerate(named):
                self.unite(number, term)
            if limit:
                stopped(limit)
                break
        else:
            stopped(f"{self.budget.rounds} rounds")
        return list(zip(named, best, strict=True))

    def _saturate(self) -> str:
        """Apply the laws until nothing changes; the budget that stopped it first, empty if none did."""
        size, growth = self._size(), 1.0
        while not (limit := self._limit(size * growth)):
            (ran,) = run_text(self.egraph, STEP)
            if not ran.report.updated:  # sizes do not say so: a node may come where two classes become one
                break
            before, size = size, self._size()
            growth = max(size / max(before, 1) - 1, 1.0)  # the laws cannot be interrupted, so the size is foreseen
        return limit

    def _size(self) -> int:
        """The number of rows of all tables."""
        (report,) = run_text(self.egraph, "(print-size)")
        return sum(rows for _, rows in report.sizes)

    def unite(self, number: int, term: Term) -> None:
        """Put a term into the class of a root that it is equal to."""
        parts, written = self.codec.written(term)
        run_text(self.egraph, f"{parts}\n(union {self.roots[number]} {written})")

    def look(self) -> None:
        """Take the classes as they are now for those that are read."""
        self.classes, self._extractors = read(self.egraph, self.codec), {}
        self.root_classes = [self.egraph.lookup_function(root, []) for root in self.roots]

    def best(self, number: int, left_out: frozenset[Var] = frozenset()) -> Term | None:
        """The cheapest term of a root; a definition is not read in its own value, nor those left out.

        None where the laws have not got so far that there is a term without them.
        """
        hidden = left_out.union(d.name for d in self.definitions if d.root >= number)
        if hidden not in self._extractors:
            self._extractors[hidden] = Extractor(self.classes, self.codec, hidden)
        found = self._extractors[hidden].best_of(self.root_classes[number])
        return None if found is None else with_real_arguments(found[1])

    def cheapest(self, number: int, named: Term, found: Term, left_out: frozenset[Var] = frozenset()) -> Term:
        """The cheapest of a root's forms: as read out and with canonical names, and as written."""
        written = self.written[number] if left_out.isdisjoint(self.written[number].free) else found
        return _cheapest((named, found, written), (found, written), self.context, self.forms)

    def named(self, term: Term) -> Term:
        """A term in contraction normal form with canonical names, what cancels within sums left out."""
        return _named(term, self.names, self.forms)

    def _limit(self, size: float) -> str:
        """The budget that is spent, in words; empty while none is."""
        if size > self.budget.nodes:
            return f"{self.budget.nodes} nodes"
        if time.monotonic() - self.started > self.budget.seconds:
            return f"{self.budget.seconds} seconds"
        return ""
