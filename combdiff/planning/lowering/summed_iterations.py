"""Sums over the steps of an iteration, added up in its steps.

    λ[t] = g(λ[t+1]),  Σ_t a[t, i]·λ[t+1, i]    =    (λ, s)[t] = (g(λ[t+1]), s[t+1, i] + a[t, i]·λ[t+1, i])

Where nothing else reads the states of all steps they are not kept, and what is made of them stays in the caches: good
where a step is compiled as a whole. What maps over the steps element by element for these sums alone, before or after
the iteration, is done in its steps too. A sum that is no smaller than the states, as that of an outer product is, or
one over more than the steps, is a product of matrices of all steps at once, and stays.

Invariant: no step of the program is done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from combdiff.ir import (
    BEFORE,
    LAST,
    ONE,
    ZERO,
    Add,
    Apply,
    Delta,
    Implicit,
    Lambda,
    Largest,
    Let,
    Mul,
    Names,
    Number,
    OpenStep,
    Replacing,
    Rewriter,
    Scan,
    Shift,
    Space,
    Sum,
    Term,
    Tuple,
    Var,
    add,
    apply,
    canonical_names,
    dtype_of,
    element,
    families,
    free_indices,
    lambda_,
    let,
    mul,
    opened,
    put_back,
    split,
    substitute,
    subterms,
)
from combdiff.planning.extents import elements
from combdiff.planning.lowering.joint_iterations import Bindings, over_steps, reads_own_step

LONG_STATE = 64  # elements of a state from which sums are quicker in the steps than over all of them at once


def with_sums_in_steps(program: Lambda, sizes: Mapping[str, int]) -> Lambda:
    """A let program with sums over the steps of iterations added up in these, where that saves their states."""
    names = Names(program)
    body = program.body
    while (found := _summed(body, sizes, names)) is not None:
        body = found
    return program if body is program.body else Lambda(program.parameters, body)


def _summed(body: Term, sizes: Mapping[str, int], names: Names) -> Term | None:
    bindings, result = split(body)
    for results in reversed(families(bindings)):
        attempt = _InSteps(dict(bindings), results, result)
        if attempt.fits(sizes):
            return attempt.joined(names)
    return None


class _InSteps:
    """An iteration of a let program: its results, by their variables, and the sums over its steps.

    `places` tells, of what is made of its states element by element, along which axis it has one for each step.
    """

    def __init__(self, values: Bindings, results: list[Var], result: Term) -> None:
        self.values, self.results, self.result = values, results, result
        self.scan = self._of(results[0])
        self.stacks = [v for v in results if self._of(v).kind != LAST]
        self.places: dict[Var, int] = dict.fromkeys(self.stacks, 0)
        self.later = set(results)  # what cannot stand before the iteration
        self.sums: dict[Term, Sum] = {}
        self.stays = not self.stacks
        for var, value in values.items():
            if var in self.later or value.free.isdisjoint(self.later):
                continue
            self.later.add(var)
            place = self._place(value)
            if place is None:
                self.values[var] = self._collected(value)
            else:
                self.places[var] = place
        self.result = self._collected(result)
        self._add_what_is_made_before()

    def _of(self, var: Var) -> Scan:
        value = self.values[var]
        assert isinstance(value, Scan)
        return value

    def _place(self, value: Term) -> int | None:
        """The axis of a tensor of elements along which each is made of one step alone; None where there is none."""
        if not isinstance(value, Lambda) or not _is_elementwise(value.body):
            return None
        if not value.free.isdisjoint(self.later - self.places.keys()):
            return None
        for place, index in enumerate(value.parameters):
            if index.type == self.scan.steps and reads_own_step(value.body, index, self.places):
                return place
        return None

    def _collected(self, term: Term) -> Term:
        """The term, with the sums in it found; the iteration stays as it is where something else reads its states."""
        joined = _Joined(self._is_summed_alone).run(term)
        self._collect(joined)
        return joined

    def _collect(self, term: Term) -> None:
        if self.stays or term.free.isdisjoint(self.places) or term in self.sums:
            return
        if isinstance(term, Sum) and self._is_summed_alone(term):
            self.sums[term] = term
        self.stays |= not term.children  # a state of all steps as a whole
        for child in term.children if term not in self.sums else ():
            self._collect(child)

    def _is_summed_alone(self, term: Sum) -> bool:
        """Whether a sum is one over the steps, of what is made of each of them alone."""
        (index, *more), known = term.indices, self.later - self.places.keys()
        own = not more and index.type == self.scan.steps and term.free.isdisjoint(known)
        placed = any(isinstance(node, Delta) and index in node.free for node in subterms(term.body))
        return own and not placed and _is_elementwise(term.body) and reads_own_step(term.body, index, self.places)

    def _parts(self) -> Iterable[tuple[Term, Var]]:
        """What is done in the steps, each with the index of the step."""
        for term in self.sums.values():
            yield term.body, term.indices[0]
        for var, place in self.places.items():
            value = self.values[var]
            if isinstance(value, Lambda):
                yield value.body, value.parameters[place]

    def _add_what_is_made_before(self) -> None:
        """Tensors that only the sums read, made of each step element by element before the iteration."""
        sums = Replacing(dict.fromkeys(self.sums, ZERO))
        for var in reversed(self.values):
            value = self.values[var]
            if var in self.later or not isinstance(value, Lambda) or not _is_elementwise(value.body):
                continue
            others = (each for other, each in self.values.items() if other not in self.places or other in self.results)
            if any(var in sums.run(each).free for each in (*others, self.result)):
                continue
            for place, index in enumerate(value.parameters):
                at = {var: place}
                if index.type == self.scan.steps and all(reads_own_step(body, i, at) for body, i in self._parts()):
                    self.places[var] = place
                    break

    def _whole_slices(self) -> dict[Var, int]:
        """Tensors from before the iteration that are read at the step alone, with the axis of the steps in each."""
        found = {}
        parts = list(self._parts())
        read = {node.function: node for body, _ in parts for node in subterms(body) if isinstance(node, Apply)}
        for var, node in read.items():
            if isinstance(var, Var) and isinstance(var.type, Space) and var not in self.places:
                for place, axis in enumerate(var.type.axes):
                    own = axis == self.scan.steps and node.arguments[place].free
                    if own and all(reads_own_step(body, index, {var: place}) for body, index in parts):
                        found[var] = place
                        break
        return found

    def fits(self, sizes: Mapping[str, int]) -> bool:
        """Whether what is read of the states of all steps are sums, no larger than the states, and these are long."""
        if self.stays or not self.sums:
            return False
        states = [elements(var.type.axes[1:], sizes) for var in self.stacks if isinstance(var.type, Space)]
        forms = {canonical_names(lambda_(free_indices(each), each)): free_indices(each) for each in self.sums}
        sums = [elements([i.type for i in indices], sizes) for indices in forms.values()]  # type: ignore[misc]
        return max(states) >= LONG_STATE and sum(sums) <= sum(states)

    def joined(self, names: Names) -> Term:
        """The let program with the sums as states of the iteration."""
        step = opened(self.scan, names)
        at_step, middle = self._made_in_step(step, names)
        states, sums = self._states(names)
        outputs, starts = [], []
        for term, state in states.items():
            indices = free_indices(term)
            more = put_back(substitute(term.body, {term.indices[0]: step.index}), at_step)
            outputs.append(lambda_(indices, add(element(state, indices), more)))
            starts.append(lambda_(indices, ZERO))
        many = len(step.states)
        every = (*step.outputs[:many], *outputs, *step.outputs[many:])
        body = Lambda((step.index, *step.states, *states.values()), let((*step.bindings, *middle), Tuple(every)))
        scan = Scan(body, (*self.scan.starts, *starts), LAST, 0, self.scan.reverse)
        whole = {state: scan.result(LAST, many + n) for n, state in enumerate(states.values())}
        last = {var: scan.result(LAST, self._of(var).component) for var in self.results if var not in self.stacks}
        rest = {v: value for v, value in self.values.items() if v not in self.places and v not in last}
        before = {v: value for v, value in rest.items() if v not in self.later}
        replaced = Replacing(sums)
        after = {v: replaced.run(value) for v, value in rest.items() if v in self.later}
        return let((before | last | whole | after).items(), replaced.run(self.result))

    def _made_in_step(self, step: OpenStep, names: Names) -> tuple[dict[Var, Term], list[tuple[Var, Term]]]:
        """What stands in a step for tensors of all steps, and definitions of those parts that are made there."""
        at_step = dict[Var, Term]()
        for var in self.stacks:
            old = self._of(var)
            at = step.states if old.kind == BEFORE else step.outputs
            at_step[var] = over_steps(at[old.component], step.index, names)
        made = {v: value for v, value in self.values.items() if v in self.places and isinstance(value, Lambda)}
        definitions: list[tuple[Var, Term]] = []
        for var, place in (*self._whole_slices().items(), *((v, self.places[v]) for v in made)):
            assert isinstance(var.type, Space)
            indices = names.indices(var.type.axes)
            rest = (*indices[:place], *indices[place + 1 :])
            value = apply(made.get(var, var), (*indices[:place], step.index, *indices[place + 1 :]))
            new = names.fresh(Var(var.name, Space(*(i.type for i in rest), dtype=var.type.dtype)))  # type: ignore[arg-type]
            definitions.append((new, lambda_(rest, put_back(value, at_step))))
            at_step[var] = Lambda(indices, element(new, rest))
        return at_step, definitions

    def _states(self, names: Names) -> tuple[dict[Sum, Var], dict[Term, Term]]:
        """A state for each sum of one form, by the first such sum, and what stands for every sum behind the steps."""
        forms: dict[Term, Var] = {}
        states: dict[Sum, Var] = {}
        sums: dict[Term, Term] = {}
        for term in self.sums.values():
            indices = free_indices(term)
            form = canonical_names(lambda_(indices, term))
            if form not in forms:
                space = Space(*(i.type for i in indices), dtype=dtype_of(term))  # type: ignore[arg-type]
                forms[form] = states[term] = names.fresh(Var("sum", space))
            sums[term] = element(forms[form], indices)
        return states, sums


def _is_elementwise(term: Term) -> bool:
    """Whether nothing in a term is summed up or solved."""
    return not any(isinstance(node, Sum | Largest | Shift | Scan | Implicit | Let | Lambda) for node in subterms(term))


class _Joined(Rewriter):
    """Puts sums that are added up, Σ_t f(t) + 2 Σ_t g(t), into one, where a sum is one of those that may be."""

    def __init__(self, may_be: Callable[[Sum], bool]) -> None:
        super().__init__()
        self.may_be = may_be

    def node(self, term: Term) -> Term:
        term = self.inside(term)
        if not isinstance(term, Add):
            return term
        groups: dict[frozenset[Var], list[tuple[Term, Sum]]] = {}
        rest = []
        for part in term.terms:
            number, inside = (part.factors[0], mul(*part.factors[1:])) if isinstance(part, Mul) else (ONE, part)
            if isinstance(inside, Sum) and isinstance(number, Number) and self.may_be(inside):
                groups.setdefault(frozenset(free_indices(inside)), []).append((number, inside))
            else:
                rest.append(part)
        for group in groups.values():
            index = group[0][1].indices[0]
            bodies = (mul(number, substitute(each.body, {each.indices[0]: index})) for number, each in group)
            rest.append(Sum((index,), add(*bodies)))
        return add(*rest)
