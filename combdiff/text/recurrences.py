"""Recurrences read back: what a state is at first and after a step, as results of one scan.

    x[0,i] = a[i]    x[t + 1,i] = u[t,i] + Σ_j A[i,j] x[t,j]    and then  x[T,i]
    is read as       Scan((t, x) ↦ (i ↦ u[t,i] + Σ_j A[i,j] x[j]), (a,), "last", 0)[i]

A state has two definitions. Those whose boundaries stand together and whose steps follow in the same order are the
states of one iteration; one inside of it has its own states between them, with the step around as an index. Until the
last step is known a state is a tensor that no one gives, x[t,i]; then each of its elements becomes what the scan gives.

Invariant: a step reads its states as the step before left them, and nothing reads a state before it is known.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import field

from combdiff.ir import (
    AFTER,
    BEFORE,
    LAST,
    Apply,
    IndexGuard,
    Lambda,
    Mul,
    Rewriter,
    Scan,
    Space,
    Term,
    Tuple,
    Var,
    add,
    affine,
    apply,
    dtype_of,
    element,
    indicator,
    lambda_,
    let,
    mul,
    put_back,
    size_form,
    substitute,
)
from combdiff.polyhedra import Access
from combdiff.printing import Doc, Name, Ranging, Subscripted
from combdiff.records import dataclass

Definition = tuple[Doc, Doc]


class MisreadError(Exception):
    """What a recurrence does not allow, at the definition of that name."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True)
class StateBlock:
    """The states of an iteration and its last definition; `depth` is how many indices of steps are around it."""

    names: tuple[str, ...]
    depth: int
    last: int


def defined(left: Doc) -> str:
    """The name on the left of a definition, "" where there is none."""
    name = left.map if isinstance(left, Subscripted) else left
    return name.name if isinstance(name, Name) else ""


def blocks(definitions: Sequence[Definition], sizes: Container[str]) -> list[StateBlock]:
    """The iterations in a list of definitions, those around others first; `sizes` are the names of sizes."""
    places: dict[str, list[int]] = {}
    for n, (left, _) in enumerate(definitions):
        places.setdefault(defined(left), []).append(n)
    if name := next((name for name, at in places.items() if name and len(at) > 2), None):
        raise MisreadError(name, f"{name} has {len(places[name])} definitions; a recurrence has two")
    pairs = {name: (at[0], at[1]) for name, at in places.items() if name and len(at) == 2}
    found = []
    while pairs:
        start, step = next(iter(pairs.values()))
        own = {name: at for name, at in pairs.items() if start <= at[0] < step <= at[1]}
        place = _place(definitions[start][0], definitions[step][0], sizes)
        found.append(StateBlock(tuple(own), place, max(at[1] for at in own.values())))
        pairs = {name: at for name, at in pairs.items() if name not in own}
    return found


def _place(start: Doc, step: Doc, sizes: Container[str]) -> int:
    """Which index of a state counts the steps: the one that is no index where its boundary value is given."""
    at = start.arguments if isinstance(start, Subscripted) else ()
    then = step.arguments if isinstance(step, Subscripted) else ()
    forms = [n for n, each in enumerate(at) if not isinstance(each, Name | Ranging)]
    forms += [n for n, each in enumerate(then) if not isinstance(each, Name | Ranging)]
    forms += [n for n, each in enumerate(at) if isinstance(each, Name) and each.name in sizes]
    return next(iter(forms), 0)


@dataclass(eq=False)
class Recurrence:
    """The states of a block as they become known: each a tensor that no one gives, its boundary value and its step."""

    block: StateBlock
    reverse: bool = False
    dtypes: dict[str, type] = field(default_factory=dict)
    tensors: dict[str, Var] = field(default_factory=dict)
    values: dict[str, list[Term]] = field(default_factory=dict)
    scan: Scan | None = None
    around: tuple[Var, ...] = ()

    def close(self, fresh: Callable[[Var], Var], definitions: Mapping[Var, Term]) -> dict[Var, Term]:
        """Make the scan; those of the definitions that are of its states are returned, its results first.

        A step gives what it computes of its states beside them. Raises MisreadError where one reads its states
        elsewhere than at the step before.
        """
        depth, tensors = self.block.depth, tuple(self.tensors[name] for name in self.block.names)
        axes = _space(tensors[0]).axes[: depth + 1]
        *around, index = (fresh(Var("t", axis)) for axis in axes)
        self.around = tuple(around)
        before = affine([(index, 1)], 1 if self.reverse else 0)
        states = tuple(fresh(Var(tensor.name, self._own(tensor))) for tensor in tensors)
        at_step = {tensor: (state, (*around, before)) for tensor, state in zip(tensors, states, strict=True)}
        inside = _ReadingAtSteps(at_step)

        def of_step(value: Term, space: Space) -> Term:
            indices = tuple(fresh(Var("i", axis)) for axis in space.axes)
            return inside.run(lambda_(indices, apply(value, (*around, index, *indices))))

        computed: dict[Var, tuple[Var, Term]] = {}
        for var, value in definitions.items():
            if not inside.changes(value):
                continue
            if _space(var).axes[: depth + 1] == axes:
                with suppress(MisreadError):
                    own = fresh(Var(var.name, self._own(var)))
                    computed[var] = own, of_step(value, self._own(var))
                    inside.read[var] = own, (*around, index)
            if var not in computed:
                inside.written_out[var] = value
        starts, outputs = [], []
        for name, state in zip(self.block.names, states, strict=True):
            start, output = self.values[name]
            indices = tuple(fresh(Var("i", axis)) for axis in _space(state).axes)
            starts.append(lambda_(indices, apply(start, (*around, *indices))))
            outputs.append(of_step(output, _space(state)))
        row = Tuple((*outputs, *(own for own, _ in computed.values())))
        step = Lambda((index, *states), let(computed.values(), row))
        self.scan = Scan(step, tuple(starts), LAST, 0, self.reverse)
        return {var: self._result(var, len(states) + n) for n, var in enumerate(computed)} | inside.written_out

    def _own(self, tensor: Var) -> Space:
        """The space of what a tensor of all steps is at one of them."""
        space = _space(tensor)
        return Space(*space.axes[self.block.depth + 1 :], dtype=space.dtype)

    def _result(self, var: Var, component: int) -> Term:
        """What the steps give of a definition, as a tensor of the steps around, its own and the rest."""
        assert self.scan is not None
        given = self.scan.result(AFTER, component)
        if not self.around:
            return given
        indices = (*self.around, *(Var(f"i.{n}", axis) for n, axis in enumerate(_space(var).axes[self.block.depth :])))
        return Lambda(indices, apply(given, indices[self.block.depth :]))

    def widened(self) -> bool:
        """Whether a boundary value or a step is complex where its state was not; then that is complex now."""
        before = dict(self.dtypes)
        for name, values in self.values.items():
            if any(_dtype(value) is complex for value in values):
                self.dtypes[name] = complex
        return before != self.dtypes

    def element(self, name: str, arguments: tuple[Term, ...], guards: frozenset[Term]) -> Term:
        """What a state is at a step, where the guards hold: a result of the scan."""
        assert self.scan is not None
        depth = self.block.depth
        first, place, rest = arguments[:depth], arguments[depth], arguments[depth + 1 :]
        steps, size = self.scan.steps, size_form(self.scan.steps.size)
        around = dict(zip(self.around, first, strict=True))
        last, early, late = (
            substitute(self.scan.result(kind, self.block.names.index(name)), around)
            for kind in ((LAST, AFTER, BEFORE) if self.reverse else (LAST, BEFORE, AFTER))
        )
        if place == (affine([]) if self.reverse else affine([(size, 1)])):
            return apply(last, rest)
        previous = affine([(place, 1)], -1)
        if Access(name, 0, steps, place, guards).is_safe():
            return apply(early, (place, *rest))
        if Access(name, 0, steps, previous, guards).is_safe():
            return apply(late, (previous, *rest))
        is_late = indicator(affine([(place, 1), (size, -1)]))
        is_early = indicator(affine([(size, 1), (place, -1)], -1))
        return add(mul(is_early, apply(early, (place, *rest))), mul(is_late, apply(late, (previous, *rest))))


class _ReadingAtSteps(Rewriter):
    """A step with its states, and what it computes of them, in place of the tensors that stand for all steps.

    `read` says of each of these what stands for it, and at which first indices it is read; those of `written_out` are
    read elsewhere, too.
    """

    def __init__(self, read: dict[Var, tuple[Var, tuple[Term, ...]]]) -> None:
        super().__init__()
        self.read = read
        self.written_out: dict[Var, Term] = {}

    def changes(self, term: Term) -> bool:
        """Whether a term reads any of these."""
        return not (term.free.isdisjoint(self.read) and term.free.isdisjoint(self.written_out))

    def node(self, term: Term) -> Term:
        if not self.changes(term):
            return term
        if isinstance(term, Var) and term in self.written_out:
            return self.run(self.written_out[term])
        if isinstance(term, Apply) and isinstance(term.function, Var) and term.function in self.read:
            own, first = self.read[term.function]
            arguments = tuple(map(self.run, term.arguments))
            if arguments[: len(first)] != first:
                raise MisreadError(own.name.split(".")[0], "a step reads a state as the step before left it alone")
            return element(own, arguments[len(first) :])
        if isinstance(term, Apply) and term.function in self.written_out:
            return self.run(apply(self.written_out[term.function], term.arguments))
        return self.inside(term)


class Iterations(Rewriter):
    """What is read of states that are known, as results of their scans."""

    def __init__(self, guards: frozenset[Term] = frozenset()) -> None:
        super().__init__()
        self.guards = guards  # the conditions of the products around
        self.known: dict[Var, tuple[Recurrence, str]] = {}

    def add(self, iteration: Recurrence) -> None:
        """Know the states of one more iteration."""
        self.known.update({var: (iteration, name) for name, var in iteration.tensors.items()})
        self._done.clear()

    def under(self, guards: frozenset[Term]) -> Iterations:
        """The same where more conditions hold."""
        found = Iterations(self.guards | guards)
        found.known = self.known
        return found

    def node(self, term: Term) -> Term:
        if term.free.isdisjoint(self.known):
            return term
        if isinstance(term, Apply) and isinstance(term.function, Var) and term.function in self.known:
            iteration, name = self.known[term.function]
            return self.run(iteration.element(name, tuple(map(self.run, term.arguments)), self.guards))
        if isinstance(term, Mul):
            guards = frozenset(factor for factor in term.factors if isinstance(factor, IndexGuard))
            if not guards <= self.guards:
                return self.under(guards).inside(term)
        return self.inside(term)


@dataclass(eq=False)
class BoundTensors:
    """Definitions as terms: what is bound, what stands where it is used, what stands among steps not yet known."""

    bindings: list[tuple[Var, Term]] = field(default_factory=list)
    inlined: dict[Var, Term] = field(default_factory=dict)
    inside: dict[Var, Term] = field(default_factory=dict)
    opened: list[Recurrence] = field(default_factory=list)
    known: Iterations = field(default_factory=Iterations)

    def put(self, term: Term) -> Term:
        """A term with what is known put where it is used."""
        return self.known.run(put_back(term, self.inlined))

    def take(self, iteration: Recurrence, var: Var, value: Term, fresh: Callable[[Var], Var], *, ends: bool) -> None:
        """The boundary value of a state, or its step; after the last one the iteration is known."""
        name = var.name
        if iteration not in self.opened:
            iteration.values.clear()
            self.opened.append(iteration)
        iteration.tensors[name] = var
        iteration.values.setdefault(name, []).append(value)
        if ends:
            known = iteration.close(fresh, self.inside)
            self.inside = {var: value for var, value in self.inside.items() if var not in known} | known
            self.known.add(iteration)
            self.opened.remove(iteration)
        if not self.opened:
            self.bindings += [(var, self.known.run(value)) for var, value in self.inside.items()]
            self.inside.clear()


def _dtype(value: Term) -> type:
    return dtype_of(value.body if isinstance(value, Lambda) else value)


def _space(var: Var) -> Space:
    assert isinstance(var.type, Space)
    return var.type
