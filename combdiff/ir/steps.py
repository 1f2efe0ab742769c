"""The step of a scan, taken apart: with names of its own, at the states of a run, for all indices around it at once.

    Scan((t, x) ↦ A[i,t] x, …)  under an index i    =    Scan((t, x) ↦ (i ↦ A[i,t] x[i]), …) read at i

Invariant: what is put in place of the index and the states of a step leaves no name of the step behind.
"""

from __future__ import annotations

from collections.abc import Callable

from combdiff.ir.domains import Space, Whole
from combdiff.ir.inlining import free_indices, put_back
from combdiff.ir.iteration import AFTER, BEFORE, LAST, Scan
from combdiff.ir.substitution import Names, apply, substitute
from combdiff.ir.terms import Apply, Lambda, Term, Tuple, Var, lambda_, let
from combdiff.ir.types import type_of
from combdiff.records import dataclass


@dataclass(frozen=True)
class OpenStep:
    """The body of a step with names of its own."""

    index: Var
    states: tuple[Var, ...]
    bindings: tuple[tuple[Var, Term], ...]
    outputs: tuple[Term, ...]

    @property
    def body(self) -> Term:
        """The outputs under their bindings."""
        return let(self.bindings, Tuple(self.outputs))


def opened(scan: Scan, names: Names) -> OpenStep:
    """A step whose index, states and bindings have names that are used nowhere else."""
    index, *states = (names.fresh(var) for var in scan.variables)
    renaming: dict[Var, Term] = dict(zip(scan.variables, (index, *states), strict=True))
    bindings = []
    for var, value in scan.bindings:
        bindings.append((new := names.fresh(var), substitute(value, renaming)))
        renaming[var] = new
    outputs = substitute(Tuple(scan.outputs), renaming)
    assert isinstance(outputs, Tuple)
    return OpenStep(index, tuple(states), tuple(bindings), outputs.items)


def with_symbol(step: Lambda, names: Names) -> tuple[Var, Term]:
    """A symbol for the number of the step, as sizes have, and the body of the step with it in place of the index.

    A pass over a program takes an index around it for one that its tensors may get as an axis; a symbol is constant.
    """
    index = step.parameters[0]
    symbol = names.fresh(Var(index.name, Whole()))
    return symbol, substitute(step.body, {index: symbol})


def at_step(stack: Term, index: Term, state: Var, names: Names) -> Term:
    """The state that a stack of all of them holds for a step."""
    own = names.indices(_space(state).axes)
    return lambda_(own, Apply(stack, (index, *own)))


def at_every_step(call: Term, scan: Scan, symbol: Var, names: Names) -> Scan:
    """What is called with the number of the step, a symbol, for all steps of a scan: one after the other."""
    index = names.fresh(scan.index)
    return Scan(Lambda((index,), Tuple((substitute(call, {symbol: index}),))), (), AFTER, 0)


def at_histories(term: Term, scan: Scan, step: OpenStep, names: Names) -> Term:
    """A term of a step with the states that the scan has at its index in place of its variables for them."""
    stacks = (scan.result(BEFORE, n) for n in range(len(step.states)))
    pairs = zip(step.states, stacks, strict=True)
    return put_back(term, {x: at_step(stack, step.index, x, names) for x, stack in pairs})


def over_indices(scan: Scan, outer: tuple[Var, ...], names: Names) -> Scan:
    """One iteration for all values of the indices around it: each state has them as its first axes."""
    step = opened(scan, names)
    inner = tuple(map(names.fresh, outer))
    around: dict[Var, Term] = dict(zip(outer, inner, strict=True))
    states = tuple(names.fresh(Var(x.name, _with_axes(outer, x))) for x in step.states)
    replacement = dict(around)
    for state, whole in zip(step.states, states, strict=True):
        own = names.indices(_space(state).axes)
        replacement[state] = lambda_(own, Apply(whole, (*inner, *own)))

    def lifted(term: Term, replacement: dict[Var, Term]) -> Term:
        space = type_of(term)
        assert isinstance(space, Space)
        own = names.indices(space.axes)
        return Lambda((*inner, *own), apply(put_back(term, replacement), own))

    outputs = tuple(lifted(let(step.bindings, output), replacement) for output in step.outputs)
    starts = tuple(lifted(start, around) for start in scan.starts)
    whole_step = Lambda((step.index, *states), Tuple(outputs))
    return Scan(whole_step, starts, scan.kind, scan.component, scan.reverse)


def for_all_indices(scan: Scan, bound: Callable[[Scan], Term], names: Names) -> Term:
    """A result of a scan under indices, read from what is bound for the one iteration for all of their values."""
    outer = free_indices(scan)
    whole = bound(over_indices(scan, outer, names) if outer else scan)
    space = type_of(scan)
    assert isinstance(space, Space)
    axes = names.indices(space.axes)
    first = () if scan.kind == LAST else axes[:1]
    return lambda_(axes, apply(whole, (*first, *outer, *axes[len(first) :])))


def _with_axes(outer: tuple[Var, ...], state: Var) -> Space:
    space = _space(state)
    return Space(*(v.type for v in outer), *space.axes, dtype=space.dtype)  # type: ignore[arg-type]


def _space(var: Var) -> Space:
    assert isinstance(var.type, Space)
    return var.type
