"""Iterations with a condition, and those that run beside them on their states, as one.

    x[t+1] = g(x[t]),    ẋ[t+1] = Dg(x[t]) ẋ[t]    =    (x, ẋ)[t+1] = (g(x[t]), Dg(x[t]) ẋ[t])

The one behind needs the states of all steps of the one before; together they keep none of them, and end together as
soon as the condition fails. Without a condition they stay apart: what maps over the steps is then done for all at once.

Invariant: results of the steps that are needed elsewhere stay as they are; nothing is done twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from combdiff.ir import (
    BEFORE,
    LAST,
    Apply,
    Lambda,
    Names,
    Relation,
    Scan,
    Space,
    Term,
    Tuple,
    Var,
    apply,
    families,
    lambda_,
    let,
    opened,
    put_back,
    split,
    substitute,
    subterms,
    type_of,
)

Bindings = dict[Var, Term]


def with_joint_iterations(body: Term, names: Names) -> Term:
    """A let program with its iterations put together where that lets them end with their condition."""
    bindings, result = split(body)
    values = dict(bindings)
    groups = families(bindings)
    for n, first in enumerate(groups):
        for second in groups[n + 1 :]:
            pair = _Beside(values, first, second, result)
            if pair.fits():
                return with_joint_iterations(let(pair.joined(names), result), names)
    return body


def reads_own_step(term: Term, index: Var, places: Mapping[Var, int]) -> bool:
    """Whether all that is read of some tensors is read at an index, along the axis that each has at its place."""
    todo, seen = [term], {term}
    while todo:
        node = todo.pop()
        if node.free.isdisjoint(places):
            continue
        children = node.children
        if isinstance(node, Apply) and isinstance(node.function, Var) and node.function in places:
            place = places[node.function]
            if node.arguments[place] != index:
                return False
            children = (*node.arguments[:place], *node.arguments[place + 1 :])
        elif not children:  # a tensor as a whole
            return False
        todo += [child for child in children if child not in seen]
        seen.update(children)
    return True


class _Beside:
    """Two iterations of a let program: the results of each by their variables, and what stands between them.

    `stacks` are the results of the first one for all steps, `between` the tensors over the steps that are made of them.
    """

    def __init__(self, values: Bindings, first: list[Var], second: list[Var], result: Term) -> None:
        self.values, self.result = values, result
        self.first, self.second = first, second
        self.one, self.other = self._scan(first), self._scan(second)
        self.stacks = {v for v in first if self._of(v).kind != LAST}
        self.between: list[Var] = []
        self.later = set(first)  # what cannot stand before the first one
        for var, value in values.items():
            if var in self.later or value.free.isdisjoint(self.later):
                continue
            self.later.add(var)
            if value.free.isdisjoint(self.later - self.stacks - set(self.between)) and self._maps_over_steps(value):
                self.between.append(var)

    def _of(self, var: Var) -> Scan:
        value = self.values[var]
        assert isinstance(value, Scan)
        return value

    def _scan(self, results: list[Var]) -> Scan:
        return self._of(results[0])

    @property
    def shared(self) -> set[Var]:
        """What is one thing for each step and made of the states of the first iteration."""
        return {*self.stacks, *self.between}

    def _maps_over_steps(self, value: Term) -> bool:
        """Whether a tensor over the steps has for each of them what is made of that step alone."""
        if not isinstance(value, Lambda) or value.parameters[0].type != self.one.steps:
            return False
        return reads_own_step(value.body, value.parameters[0], self._first_axes)

    @property
    def _first_axes(self) -> dict[Var, int]:
        return dict.fromkeys(self.shared, 0)

    def fits(self) -> bool:
        """Whether both are done as one: the first has a condition, and all steps of it are asked for by the second."""
        one, other = self.one, self.other
        if not self.stacks or other.step.free.isdisjoint(self.shared):
            return False
        if one.reverse or other.reverse or one.steps != other.steps or not _has_condition(one):
            return False
        needs_more = not other.step.free.isdisjoint(self.later - self.shared)
        if needs_more or any(not each.free.isdisjoint(self.later) for each in other.starts):
            return False
        own = {*self.shared, *self.second}
        elsewhere = (value for var, value in self.values.items() if var not in own)
        if any(not each.free.isdisjoint(self.shared) for each in (*elsewhere, self.result)):
            return False
        return reads_own_step(other.body, other.index, self._first_axes)

    def joined(self, names: Names) -> Iterable[tuple[Var, Term]]:
        """The bindings with both as one, in an order in which each stands behind what it needs."""
        scan = self._joint(names)
        many, own = len(self.one.states), len(self.other.states)
        more = len(self.one.outputs) - many

        def result(var: Var) -> Scan:
            old = self._of(var)
            place = old.component
            if var in self.first:
                return scan.result(old.kind, place + own * (place >= many))
            return scan.result(old.kind, many + place + more * (place >= own))

        before = [(var, value) for var, value in self.values.items() if var not in self.later]
        both = {var: result(var) for var in (*self.first, *self.second) if var not in self.stacks}
        rest = [(v, self.values[v]) for v in self.values if v in self.later and v not in both and v not in self.shared]
        return [*before, *both.items(), *rest]

    def _joint(self, names: Names) -> Scan:
        one, other = opened(self.one, names), opened(self.other, names)
        known: dict[Var, Term] = {}
        for var in self.stacks:
            old = self._of(var)
            at = one.states if old.kind == BEFORE else one.outputs
            known[var] = over_steps(at[old.component], one.index, names)
        middle: list[tuple[Var, Term]] = []
        for var in self.between:
            value = self.values[var]
            assert isinstance(value, Lambda)
            assert isinstance(var.type, Space)
            inner = substitute(value.body, {value.parameters[0]: one.index})
            new = names.fresh(Var(var.name, Space(*var.type.axes[1:], dtype=var.type.dtype)))
            middle.append((new, put_back(lambda_(value.parameters[1:], inner), known)))
            known[var] = over_steps(new, one.index, names)
        second = [(var, put_back(substitute(value, {other.index: one.index}), known)) for var, value in other.bindings]
        outputs = [put_back(substitute(each, {other.index: one.index}), known) for each in other.outputs]
        many, own = len(one.states), len(other.states)
        every = (*one.outputs[:many], *outputs[:own], *one.outputs[many:], *outputs[own:])
        body = let((*one.bindings, *middle, *second), Tuple(every))
        starts = (*self.one.starts, *self.other.starts)
        return Scan(Lambda((one.index, *one.states, *other.states), body), starts, LAST, 0)


def _has_condition(scan: Scan) -> bool:
    """Whether steps depend on a comparison of single numbers, as those of a loop with a condition do."""
    return any(isinstance(node, Relation) for node in subterms(scan.step))


def over_steps(value: Term, index: Var, names: Names) -> Term:
    """The tensor over the steps that has a value for each of them, to be read at the step in which the value stands."""
    space = type_of(value)
    assert isinstance(space, Space)
    own = names.indices(space.axes)
    return Lambda((names.fresh(index), *own), apply(value, own) if own else value)
