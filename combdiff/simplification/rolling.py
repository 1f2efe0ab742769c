"""Loops that were traced step by step, recognised as scans.

    tanh(A tanh(A tanh(A x)))    =    x[0] = x,  x[t + 1] = tanh(A x[t]),  x[3]
    W[2] (W[1] (W[0] x))         =    x[0] = x,  x[t + 1] = W[t] x[t],        x[3]

Two parts of a program, one inside of the other, are compared from the outside in, closed part by closed part. Where
both are built alike, the comparison goes on with what they are built of; where they are not, the loop begins: the one
is what a state begins with, the other the state after the first step. Whole numbers may differ by the same from step to
step: they count the steps. Numbers that differ otherwise and hold no state, a step length for each, are listed.

Invariant: the value is the same, operation by operation; a loop has at least `FEWEST_STEPS` steps. Where the budget of
pairs compared is spent before all parts are looked at, a BudgetWarning says so.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice

from combdiff.ir import (
    BEFORE,
    LAST,
    Add,
    Affine,
    Apply,
    Conj,
    Coordinate,
    Lambda,
    Let,
    Mul,
    Names,
    Number,
    Primitive,
    Range,
    Scan,
    Space,
    Sum,
    Term,
    Tuple,
    Var,
    Whole,
    add,
    affine,
    axes_of,
    base_name,
    canonical_names,
    delta,
    exchanged,
    held,
    is_call,
    join,
    lambda_,
    mul,
    put_back,
    released,
    split,
    substitute,
    subterms,
    type_of,
)
from combdiff.records import dataclass
from combdiff.simplification.egraph.budget import current, stopped

FEWEST_STEPS = 3  # two steps may be alike by chance
MOST_CANDIDATES = 12  # earlier parts of the program that one part is compared with: steps of a step, about


def rolled_up(body: Term, names: Mapping[Term, str] | None = None) -> Term:
    """A program's body with loops that were traced step by step as scans; `names` are the user's own for parts of it.

    A body in let form is looked at as a graph. Without such loops it is given back as it is.
    """
    graph = _graph(body)
    rolling = _Rolling(graph, names or {})
    found = rolling.run(graph)
    return body if found is graph else found


def _graph(body: Term) -> Term:
    """A let program as a graph in which values stand where they are used, numbers as one object."""
    bindings, result = split(body)
    values: dict[Var, Term] = {}
    for var, value in bindings:
        whole = substitute(value, {v: values[v] for v in value.free if v in values})
        values[var] = whole if isinstance(whole, Lambda) else held(whole)
    return substitute(result, values)


# --- what one step does --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _RolledLevel:
    """A part that is built like an earlier one: `form`, with holes for the closed parts that the two are built of.

    `pairs` are the two parts of each hole, the later one first; `counts` are whole numbers with what they differ by.
    """

    term: Term
    holes: tuple[Var, ...]
    pairs: tuple[tuple[Term, Term], ...]
    symbols: tuple[Var, ...]
    counts: tuple[tuple[int, int], ...]

    @cached_property
    def form(self) -> tuple[Term, tuple[int, ...]]:
        """What is the same for all steps."""
        return canonical_names(Lambda((*self.holes, *self.symbols), self.term)), tuple(d for _, d in self.counts)

    def at(self, index: Var, parts: Mapping[Var, Term]) -> Term:
        """The part at a step, where it was compared at step 1."""
        counted = {s: affine([(index, d)], n - d) for s, (n, d) in zip(self.symbols, self.counts, strict=True)}
        return put_back(substitute(self.term, counted), parts)


class _Comparing:
    """Compares one part with an earlier one, down to the closed parts inside."""

    def __init__(self) -> None:
        self.pairs: dict[tuple[Term, Term], Var] = {}
        self.counts: list[tuple[Var, int, int]] = []

    def level(self, later: Term, earlier: Term) -> _RolledLevel | None:
        """What the two have in common; None where they are not built alike."""
        if isinstance(later, Var | Number):
            return None
        term = self._alike(later, earlier, {}, {})
        if term is None:
            return None
        symbols = tuple(symbol for symbol, _, _ in self.counts)
        counts = tuple((number, difference) for _, number, difference in self.counts)
        return _RolledLevel(term, tuple(self.pairs.values()), tuple(self.pairs), symbols, counts)

    def _node(self, later: Term, earlier: Term, inside: dict[Var, Var], outside: dict[Var, Var]) -> Term | None:
        """The later term with holes, where the two are alike; `inside` are the bound names of the one in the other."""
        closed = later.free.isdisjoint(inside) and earlier.free.isdisjoint(outside)
        if later is earlier and closed:
            return later
        if isinstance(later, Number) and isinstance(earlier, Number):
            if number := self._counted(later, earlier):
                return number
        elif isinstance(later, Var) and inside.get(later) is earlier:
            return later
        elif isinstance(later, Affine) and isinstance(earlier, Affine):
            return self._affine(later, earlier, inside)
        if closed and _fits(later, earlier):
            pair = released(later), released(earlier)
            return self.pairs.setdefault(pair, Var(f"?{len(self.pairs)}", type_of(later)))  # type: ignore[arg-type]
        return self._alike(released(later), released(earlier), inside, outside)

    def _alike(self, later: Term, earlier: Term, inside: dict[Var, Var], outside: dict[Var, Var]) -> Term | None:
        if _head(later) != _head(earlier) or isinstance(later, Let) or not later.children:
            return None
        inside = {**inside, **dict(zip(later.bound, earlier.bound, strict=True))}
        outside = {**outside, **dict(zip(earlier.bound, later.bound, strict=True))}
        children = []
        for one, other in zip(later.children, earlier.children, strict=True):
            if (child := self._node(one, other, inside, outside)) is None:
                return None
            children.append(child)
        return later if tuple(children) == later.children else later.with_children(tuple(children))

    def _affine(self, later: Affine, earlier: Affine, inside: Mapping[Var, Var]) -> Term | None:
        renamed = {(inside.get(v, v), c) for v, c in later.coefficients}
        if renamed != set(earlier.coefficients):
            return None
        symbol = self._symbol(later.offset, earlier.offset)
        return affine([*later.coefficients, (symbol, 1)]) if symbol else None

    def _counted(self, later: Number, earlier: Number) -> Term | None:
        if later.imag or earlier.imag or not isinstance(later.real, int) or not isinstance(earlier.real, int):
            return None
        symbol = self._symbol(later.real, earlier.real)
        return Coordinate(symbol, int) if symbol else None

    def _symbol(self, later: object, earlier: object) -> Var | None:
        if not isinstance(later, int) or not isinstance(earlier, int):
            return None
        symbol = Var(f"#{len(self.counts)}?", Whole())
        self.counts.append((symbol, later, later - earlier))
        return symbol


def _head(term: Term) -> tuple[object, ...]:
    """All of a node but its children and the names that it binds."""
    own = tuple(v for name in term.__match_args__ if not _holds_terms(v := getattr(term, name)))  # type: ignore[var-annotated]
    return type(term), own, len(term.children), tuple(v.type for v in term.bound)


def _holds_terms(value: object) -> bool:
    return isinstance(value, Term) or (isinstance(value, tuple) and any(isinstance(item, Term) for item in value))


def _fits(later: Term, earlier: Term) -> bool:
    """Whether one may be the state of a scan that the other one is at the next step."""
    one, other = type_of(later), type_of(earlier)
    if not isinstance(one, Space) or not isinstance(other, Space) or one.axes != other.axes or one.dtype is int:
        return False
    return join(one.dtype, other.dtype, float) is join(one.dtype, float) is join(other.dtype, float)


# --- the loop ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _RolledChains:
    """How the parts of a loop follow each other: `earlier` has for each the one of the step before.

    `levels` has what a part and the one before it have in common, where they are built alike; the others are `first`:
    states after the first step, with what they begin with, or inputs.
    """

    earlier: Mapping[Term, Term]
    levels: Mapping[Term, _RolledLevel]
    later: Mapping[Term, Term]

    def after(self, part: Term) -> Iterator[Term]:
        """A part, and what it is at later steps."""
        current: Term | None = part
        while current is not None:
            yield current
            current = self.later.get(current)

    def is_state(self, part: Term) -> bool:
        """Whether a first part is made anew by each step, and not just another one."""
        return any(one in self.levels for one in self.after(part))


def _chains(pairs: Mapping[Term, Term], most: int) -> tuple[_RolledChains | None, int]:
    """How the parts of terms and earlier ones follow each other, None where in no one way; how many were compared."""
    found: dict[Term, Term] = dict(pairs)
    levels: dict[Term, _RolledLevel] = {}
    after: dict[Term, Term] = {earlier: later for later, earlier in pairs.items()}
    clashing: set[Term] = set()
    todo = deque(pairs)
    while todo:
        part = todo.popleft()
        level = _Comparing().level(part, found[part])
        following = levels.get(after.get(part, part))
        if level is None or (following and following.form != level.form):
            continue
        levels[part] = level
        for one, other in level.pairs:
            if one is other:
                continue
            if one not in found:
                todo.append(one)
            if found.setdefault(one, other) is not other or len(found) > most:
                return None, len(levels)
            if after.setdefault(other, one) is not one:
                clashing.add(other)  # what several states begin with, unless it is a state itself
    if not clashing.isdisjoint(found) or any(
        (following := levels.get(after.get(part, part))) and following.form != level.form
        for part, level in levels.items()
    ):
        return None, len(levels)
    return _RolledChains(found, levels, after), len(levels)


class _RolledLoop:
    """A scan made of parts that follow each other: its states, its inputs, its step."""

    def __init__(self, chains: _RolledChains, names: Names, hints: Mapping[Term, str]) -> None:
        self.chains, self.names = chains, names
        self.firsts = [part for part in chains.earlier if part not in chains.levels and chains.is_state(part)]
        self.runs = [list(chains.after(part)) for part in self.firsts]
        self.steps = min(map(len, self.runs), default=0)
        self.index = names.fresh(Var("t", Range(self.steps)))
        self.states = [self._state(part, hints) for part in self.firsts]
        self.inputs: dict[Term, list[Term]] = {}
        self.done: dict[Term, Term] = dict(zip(self.firsts, self.states, strict=True))

    def replacements(self) -> dict[Term, Term] | None:
        """Of each state at each step what the scan has for it; None where this is no loop, or too short."""
        if self.steps < FEWEST_STEPS or self._by_chance():
            return None
        following = tuple(self._at_step(run[1]) for run in self.runs)
        made = {one for run in self.runs for one in run}
        for given in self.inputs.values():
            if len(given) < self.steps or axes_of(given[0]) or any(not made.isdisjoint(subterms(one)) for one in given):
                return None
        step = Lambda((self.index, *self.states), Tuple(following))
        starts = tuple(self.chains.earlier[part] for part in self.firsts)
        scan = Scan(step, starts, LAST, 0)
        found: dict[Term, Term] = {}
        for n, run in enumerate(self.runs):
            for at, part in enumerate(run[: self.steps - 1], 1):
                found.setdefault(part, self._state_at(scan.result(BEFORE, n), at, part))
        for n, run in enumerate(self.runs):
            found[run[self.steps - 1]] = scan.result(LAST, n)
        return {part: new for part, new in found.items() if part not in starts}

    def _by_chance(self) -> bool:
        """Whether states go on for longer than others by more than the step that a loop may end in.

        A state that another one was some steps before is one of those, too: more steps must be alike for that.
        """
        return self.steps + 1 < max(map(len, self.runs)) and self.steps < 2 * len(self.runs)

    def _state(self, part: Term, hints: Mapping[Term, str]) -> Var:
        """The variable of a state: named as what it begins with, or as the user does."""
        start, space = self.chains.earlier[part], type_of(part)
        assert isinstance(space, Space)
        name = base_name(start) if isinstance(start, Var) else hints.get(part, "x")
        return self.names.fresh(Var(name, Space(*space.axes, dtype=join(space.dtype, float))))

    def _at_step(self, part: Term) -> Term:
        """A part, given as it is at step 1, by the number of the step, the states and the inputs."""
        if part not in self.done:
            if part in self.chains.levels:
                level = self.chains.levels[part]
                inner = (_as_operand(self._at_step(one)) for one, _ in level.pairs)
                self.done[part] = level.at(self.index, dict(zip(level.holes, inner, strict=True)))
            else:
                self.done[part] = self._read(part)
        return self.done[part]

    def _read(self, part: Term) -> Term:
        """A number at a step, from a list of all of them."""
        given = [self.chains.earlier[part], *self.chains.after(part)][: self.steps]
        self.inputs[part] = given
        if axes_of(part):
            return part  # a loop that is refused: each step would look at all of the tensors
        return add(*(mul(delta(self.index, affine([], n)), one) for n, one in enumerate(given)))

    def _state_at(self, stack: Term, step: int, part: Term) -> Term:
        own = self.names.indices(axes_of(part))
        return lambda_(own, Apply(stack, (affine([], step), *own)))


def _as_operand(term: Term) -> Term:
    """A part as one object in what is built of it."""
    return term if isinstance(term, Lambda) else held(term)


# --- looking for loops ---------------------------------------------------------------------------------------------


class _Rolling:
    def __init__(self, body: Term, hints: Mapping[Term, str]) -> None:
        self.names = Names(body)
        self.hints = {released(term): name for term, name in hints.items()}
        self.refused: set[tuple[Term, Term]] = set()

    def run(self, body: Term) -> Term:
        """The body with one loop after the other as a scan, until there is none."""
        while (replacement := self._loop(body)) is not None:
            body = exchanged(body, {**replacement, **{held(part): new for part, new in replacement.items()}})
        return body

    def _loop(self, body: Term) -> dict[Term, Term] | None:
        """What is to be put in place of the states of a loop, one that ends as late as there is."""
        parts = [part for part in subterms(body) if _is_computed(part)]
        alike: dict[tuple[object, ...], list[Term]] = defaultdict(list)
        before: dict[Term, int] = {}
        for part in parts:
            before[part] = len(same := alike[_outline(part)])
            same.append(part)
        left = (most := current().pairs) * len(parts)
        for later in reversed(parts):
            if not before[later]:
                continue
            if left < 0:
                stopped(f"{most} pairs for each part")
                return None
            inside = set(subterms(later))
            left -= len(inside)
            same = alike[_outline(later)][: before[later]]
            near = (part for part in reversed(same) if part in inside and part.free <= later.free)
            for candidate in islice(near, MOST_CANDIDATES):
                if (later, candidate) in self.refused:
                    continue
                chains, compared = _chains({later: candidate}, left)
                left -= compared
                if chains and (found := self._as_long_as_possible({later: candidate}, chains, alike).replacements()):
                    return found
                self.refused.add((later, candidate))
        return None

    def _as_long_as_possible(
        self, pairs: dict[Term, Term], chains: _RolledChains, alike: Mapping[tuple[object, ...], list[Term]]
    ) -> _RolledLoop:
        """The loop of parts that follow each other, with the last of a state that only the rest of the program uses."""
        loop = _RolledLoop(chains, self.names, self.hints)
        for run in (run for run in loop.runs if len(run) == loop.steps < max(map(len, loop.runs))):
            for last in alike[_outline(run[-1])]:
                if last in chains.earlier or _Comparing().level(last, run[-1]) is None:
                    continue
                longer, _ = _chains(more := {**pairs, last: run[-1]}, current().pairs * len(chains.earlier))
                if longer and len(list(longer.after(run[0]))) > len(run):
                    return self._as_long_as_possible(more, longer, alike)
        return loop


def _is_computed(part: Term) -> bool:
    """Whether a part may be the state of a loop: a number or a tensor that is computed."""
    if isinstance(part, Lambda):
        return bool(part.parameters) and isinstance(type_of(part), Space)
    return isinstance(part, Add | Mul | Primitive | Sum | Conj) or is_call(part)


def _outline(part: Term) -> tuple[object, ...]:
    """What parts have in common that may be the same at different steps: their heads, a few levels deep."""
    inner = part.body if isinstance(part, Lambda) else part
    return (*_head(part), *(_head(released(child))[0] for child in inner.children))
