"""Scans as recurrences: what a state is at first, and what it is after a step.

    let x = Scan((t, s) ↦ A @ s + u[t], (a,), "before"), y = Scan(…, "last") in …
    is written    x[0,i] = a[i]    x[t+1,i] = u[t,i] + Σ_j A[i,j] x[t,j]    and y is x[T,i]

One that runs backward has its boundary value at the end, and the bindings of a step become tensors over the steps.

Invariant: a state has one name, and its value before step t, or after a reverse one, is that at t.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

from combdiff.ir import (
    BEFORE,
    LAST,
    Apply,
    Lambda,
    Names,
    Rewriter,
    Scan,
    Size,
    Space,
    Term,
    Tuple,
    Var,
    affine,
    affine_parts,
    apply,
    as_integer,
    is_index,
    items_of,
    iteration_of,
    lambda_,
    opened,
    put_back,
    size_form,
    substitute,
    subterms,
    type_of,
    whole_tensor,
)
from combdiff.records import dataclass

Definitions = list[tuple[Var, Term]]


@dataclass(frozen=True, eq=False, repr=False)
class AtStep(Term):
    """What a tensor is at some of its indices, `x[t+1,…] = body` for all t; it occurs in prints alone.

    The last `own` indices are those of a value, the one before is the step's. `open` says that nothing else tells how
    many steps there are; a value that steps give `beside` their states reads these, or nothing tells it.
    """

    indices: tuple[Var, ...]
    place: tuple[Term, ...]
    body: Term
    own: int
    open: bool = False
    beside: bool = False

    @property
    def children(self) -> tuple[Term, ...]:
        return (*self.place, self.body)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return replace(self, place=children[:-1], body=children[-1])

    @property
    def bound(self) -> tuple[Var, ...]:
        return self.indices


def with_recurrences(bindings: Definitions, result: Term) -> tuple[Definitions, Term]:
    """The same program with scans that are bound written as recurrences."""
    names = Names(Tuple((*(v for pair in bindings for v in pair), result)))
    bindings, result = _bound_in_result(bindings, result, names)
    if not any(isinstance(value, Scan) for _, value in bindings):
        return bindings, result
    values = Tuple((*(value for _, value in bindings), result))
    writer = _RecurrenceWriter(names, {node for node in subterms(values) if isinstance(node, Var)})
    found = writer.definitions(bindings, ())
    alike = len(set(writer.sizes.values())) == 1 and writer.shown  # what tells the steps of one tells those of all
    result = writer.put_back(result)
    doubtful = writer.read_at_numbers([*(value for _, value in found), result])
    told = writer.shown | (writer.sizes.keys() - doubtful if alike else set())
    found = [
        (var, replace(value, open=var not in told) if isinstance(value, AtStep) else value) for var, value in found
    ]
    return found, result


def _bound_in_result(bindings: Definitions, result: Term, names: Names) -> tuple[Definitions, Term]:
    """The program with scans that a result is, or reads, bound."""
    if isinstance(result, Tuple):
        items = []
        for item in result.items:
            bindings, item = _bound_in_result(bindings, item, names)
            items.append(item)
        return bindings, Tuple(tuple(items))
    inner = result.body if isinstance(result, Lambda) else result
    scan = inner.function if isinstance(inner, Apply) else inner
    if not isinstance(scan, Scan) or not scan.free.isdisjoint(result.bound):
        return bindings, result
    space = type_of(scan)
    assert isinstance(space, Space)
    var = names.fresh(Var(scan.states[0].name if scan.states else "y", space))
    whole = Apply(var, inner.arguments) if isinstance(inner, Apply) else var
    return [*bindings, (var, scan)], Lambda(result.parameters, whole) if isinstance(result, Lambda) else whole


def _whole_read(value: AtStep) -> Var | None:
    """The tensor that a value is all elements of."""
    whole = whole_tensor(value.body, value.place)
    return whole if isinstance(whole, Var) else None


class _AtIntegers(Rewriter):
    """Reads what recurrences define at integers of arrays: what x[t + 1] is at t = idx[i] is x[idx[i] + 1]."""

    def __init__(self, known: Mapping[Var, Term]) -> None:
        super().__init__()
        self.known = known

    def node(self, term: Term) -> Term:
        """The term with such reads."""
        new = self.inside(term)
        if not isinstance(new, Apply) or all(map(is_index, new.arguments)):
            return new
        read = self.known.get(new.function) if isinstance(new.function, Var) else None
        if not isinstance(read, Lambda):
            return new
        assert isinstance(read.body, Apply)
        given = dict(zip(read.parameters, new.arguments, strict=True))
        return Apply(read.body.function, tuple(_integer(place, given) for place in read.body.arguments))


def _integer(place: Term, given: Mapping[Var, Term]) -> Term:
    """An index expression at indices, or at integers in place of some, which make it a sum of integers."""
    if all(is_index(given[v]) for v in place.free if v in given):
        return substitute(place, given)
    return as_integer(place, given)


class _RecurrenceWriter:
    def __init__(self, names: Names, mentioned: Container[Var]) -> None:
        self.names = names
        self.mentioned = mentioned
        self.known: dict[Var, Term] = {}
        self.states: dict[Term, tuple[Var, ...]] = {}
        self.named_states: set[Var] = set()
        self.sizes: dict[Var, Size] = {}  # of each name the number of steps
        self.shown: set[Var] = set()  # those whose number of steps a boundary shows
        self.beside: dict[Var, tuple[int, tuple[Var, ...]]] = {}  # what is no state: the steps' axis, its states

    def definitions(self, bindings: Sequence[tuple[Var, Term]], around: tuple[Var, ...]) -> Definitions:
        """The definitions that bindings make under the indices of the steps around."""
        found: Definitions = []
        for var, value in bindings:
            value = self.put_back(value)
            if isinstance(value, Scan):
                found += self._scan(var, value, around)
            elif self._is_state(value):
                self.known[var] = value
            elif around:
                whole = self._over(var, around)
                own = value.parameters if isinstance(value, Lambda) else ()
                found.append((whole, Lambda((*around, *own), value.body if isinstance(value, Lambda) else value)))
                self.known[var] = self._read(whole, around, self._space(value))
            else:
                found.append((var, value))
        return found

    def _is_state(self, value: Term) -> bool:
        """Whether a definition is a state under another name, for a matrix function of it."""
        body = value.body if isinstance(value, Lambda) else value
        return isinstance(body, Apply) and body.function in self.named_states and all(map(is_index, body.arguments))

    def read_at_numbers(self, terms: Iterable[Term]) -> set[Var]:
        """The names of iterations of which a value beside the states is read at a number: states may be at fewer."""
        found: set[Var] = set()
        for node in subterms(Tuple(tuple(terms))):
            if isinstance(node, Apply) and isinstance(node.function, Var) and node.function in self.beside:
                axis, names = self.beside[node.function]
                if is_index(node.arguments[axis]) and not affine_parts(node.arguments[axis])[0]:
                    found.update(names)
        return found

    def put_back(self, term: Term) -> Term:
        """A term with what is known in place of the names of scans."""
        return put_back(_AtIntegers(self.known).run(term), self.known)

    def _over(self, var: Var, around: tuple[Var, ...]) -> Var:
        space = var.type
        assert isinstance(space, Space)
        return self.names.fresh(Var(var.name, Space(*(v.type for v in around), *space.axes, dtype=space.dtype)))  # type: ignore[arg-type]

    def _space(self, term: Term) -> Space:
        space = type_of(term)
        assert isinstance(space, Space)
        return space

    def _read(self, tensor: Var, first: tuple[Term, ...], space: Space) -> Term:
        own = self.names.indices(space.axes)
        return lambda_(own, Apply(tensor, (*first, *own)))

    def _scan(self, var: Var, scan: Scan, around: tuple[Var, ...]) -> Definitions:
        form = iteration_of(scan)
        found = [] if form in self.states else self._recurrence(form, scan, around)
        names, count = self.states[form], len(scan.states)
        if scan.states and (scan.reverse or (scan.kind == LAST and var in self.mentioned)):
            self.shown.update(names)
        index = self.names.fresh(scan.index)
        size = size_form(scan.steps.size)
        early, late = index, affine([(index, 1)], 1)
        before, after = (late, early) if scan.reverse else (early, late)
        name = names[scan.component]
        own = self.names.indices(self._space(scan).axes[0 if scan.kind == LAST else 1 :])
        if scan.kind == LAST:
            end = affine([]) if scan.reverse else affine([(size, 1)])
            self.known[var] = lambda_(own, Apply(name, (*around, end, *own)))
        else:
            place = before if scan.kind == BEFORE else after if scan.component < count else early
            self.known[var] = Lambda((index, *own), Apply(name, (*around, place, *own)))
        return found

    def _recurrence(self, form: Term, scan: Scan, around: tuple[Var, ...]) -> Definitions:
        """The boundary values of the states of a scan, the bindings of its step, and what a step gives."""
        step = opened(scan, self.names)
        index, size = step.index, size_form(scan.steps.size)
        early, late = index, affine([(index, 1)], 1)
        before, after = (late, early) if scan.reverse else (early, late)
        start = affine([(size, 1)]) if scan.reverse else affine([])
        values = (*step.states, *step.outputs[len(step.states) :])  # a state may be complex where a step gives reals
        spaces = [self._space(value) for value in values]
        stems = [x.name for x in step.states] + ["y"] * (len(spaces) - len(step.states))
        every = [Space(*(v.type for v in (*around, index)), *s.axes, dtype=s.dtype) for s in spaces]  # type: ignore[arg-type]
        names = [
            self.names.fresh(Var(stem.split(".")[0].rstrip("0123456789") or "x", s))
            for stem, s in zip(stems, every, strict=True)
        ]
        self.named_states.update(names[: len(step.states)])
        found: Definitions = []
        for name, value, x in zip(names, scan.starts, step.states, strict=False):
            found.append((name, self._at(around, (*around, start), self.put_back(value))))
            self.known[x] = self._read(name, (*around, before), self._space(x))
        bindings, outputs = _bound_in_result(list(step.bindings), Tuple(step.outputs), self.names)
        made = self.definitions(bindings, (*around, index))
        found += made
        for n, output in enumerate(items_of(outputs)):
            beside = n >= len(step.states)
            value = self._at((*around, index), (*around, early if beside else after), self.put_back(output))
            if beside and (known := _whole_read(value)) in {var for var, _ in made}:  # it has a name
                names[n] = known
                continue
            found.append((names[n], replace(value, beside=beside)))
        self.states[form] = tuple(names)
        self.sizes.update(dict.fromkeys(names, scan.steps.size))
        self.beside.update(dict.fromkeys(names[len(step.states) :], (len(around), tuple(names))))
        return found

    def _at(self, indices: tuple[Var, ...], first: tuple[Term, ...], value: Term) -> AtStep:
        own = self.names.indices(self._space(value).axes, letters="ijklmn")
        return AtStep((*indices, *own), (*first, *own), apply(value, own), len(own))
