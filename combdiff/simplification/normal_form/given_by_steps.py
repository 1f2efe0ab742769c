"""What is computed again of the states of an iteration, where its steps have computed it: read from these.

    h[t+1] = t1[t] + h[t], t1[t] = tanh(W h[t]);  Σ_t λ[t+1] (1 − tanh(W h[t])²)    →    Σ_t λ[t+1] (1 − t1[t]²)

A pullback computes a step again, at all states at once, so that the laws see what there is; what they leave as the step
has it is a result of the iteration. Values are compared by number, as compilers do: a tensor is a number by what it is
made of, with its definition opened, and what a step gives is made of the states that it begins with.

Invariant: the value is unchanged, and the print is shorter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from combdiff.ir import (
    AFTER,
    BEFORE,
    Add,
    Apply,
    Implicit,
    Lambda,
    Let,
    Mul,
    Names,
    Number,
    OpenStep,
    Primitive,
    Relation,
    Rewriter,
    Scan,
    Space,
    Sum,
    Term,
    Tuple,
    Var,
    add,
    apply,
    assumed,
    canonical_names,
    dtype_of,
    factors_of,
    families,
    free_indices,
    is_index,
    items_of,
    joined,
    lambda_,
    let,
    mul,
    opened,
    results_by_name,
    share,
    split,
    substitute,
    subterms,
    type_of,
    whole_tensor,
)
from combdiff.records import dataclass
from combdiff.simplification.egraph.extraction import order_key, symbols
from combdiff.simplification.normal_form.lengths import length

UNBOUNDED = frozenset(["exp", "expm1", "sinh", "cosh", "sqrt"])


def with_results_of_steps(body: Term) -> Term:
    """A let program that reads what its iterations have computed from them, where it then is shorter."""
    whole = _with_iterations_bound(body)
    bindings, result = split(whole)
    if not any(isinstance(value, Scan) for _, value in bindings):
        return body
    reading = _StepReading(whole)
    kept: list[tuple[Var, Term]] = []
    for var, value in bindings:
        kept.append((var, reading.iteration(var) if var in reading.members else reading.read(value)))
        reading.numbers.define(var, value)
    items = [reading.read(item) for item in items_of(result)]
    if not reading.stacks:
        return body
    found = share(let(reading.giving(kept), joined(result, items)))
    return found if length(found) < length(body) else body


def _with_iterations_bound(body: Term) -> Term:
    """A let program of which no result is one of an iteration that has no name."""
    bindings, result = split(body)
    binding = _BindingIterations(Names(body))
    items = [binding.run(item) for item in items_of(result)]
    return let((*bindings, *binding.bound), joined(result, items)) if binding.bound else body


class _BindingIterations(Rewriter):
    def __init__(self, names: Names) -> None:
        super().__init__()
        self.names = names
        self.bound: list[tuple[Var, Term]] = []

    def node(self, term: Term) -> Term:
        """The term with names for what iterations give."""
        if not isinstance(term, Scan):
            return self.inside(term)
        if free_indices(term):
            return term
        self.bound.append((self.names.fresh(Var("y", _space(term))), term))
        return self.bound[-1][0]


class _ValueNumbers(Rewriter):
    """Terms by number: each is an element of a variable that stands for all terms of one form.

    Sums and products are of what stands in them with definitions opened: 2 t with t = a b is 2 a b.
    """

    def __init__(self, names: Names) -> None:
        super().__init__()
        self.names = names
        self.values: dict[Var, Term] = {}  # of definitions, by number
        self.by_form: dict[Term, Var] = {}
        self.made: dict[Term, Lambda] = {}  # of what each number is made

    def define(self, var: Var, value: Term) -> None:
        """Makes a variable stand for its value, unless it stands for one already, or for a call."""
        if var not in self.values and not isinstance(value, Implicit | Scan):
            self.values[var] = self.run(value)

    def node(self, term: Term) -> Term:
        """The element, or the tensor of elements, that stands for a term."""
        if isinstance(term, Var):
            return self.values.get(term, term)
        if is_index(term) or not term.children or isinstance(term, Implicit | Scan | Let | Tuple):
            return term
        children = tuple(map(self.run, term.children))
        if isinstance(term, Lambda):
            return lambda_(term.parameters, *children)
        if isinstance(term, Apply):
            return apply(children[0], children[1:])
        if isinstance(term, Add | Mul):
            parts = sorted((part for child in children for part in self._parts(type(term), child)), key=_place)
            return self._element(add(*parts) if isinstance(term, Add) else mul(*parts))
        if isinstance(term, Sum):
            order = [*free_indices(children[0]), *term.indices]
            return self._element(Sum(tuple(sorted(term.indices, key=order.index)), *children))
        return self._element(term.with_children(tuple(map(self._whole, children))))

    def made_of(self, number: Term) -> Term:
        """What an element is made of; a number that is made of nothing is itself."""
        made = self.made.get(number.function) if isinstance(number, Apply) else None
        return apply(made, number.arguments) if made and isinstance(number, Apply) else number

    def _parts(self, kind: type[Add | Mul], member: Term) -> tuple[Term, ...]:
        """The members of a sum that stands in a sum, or of a product in a product."""
        whole = self.made_of(member)
        return whole.children if isinstance(whole, kind) else (member,)

    def _element(self, term: Term) -> Term:
        space = type_of(term)
        if not term.children or _is_read(term) or not isinstance(space, Space) or space.order:
            return term
        indices = free_indices(term)
        return Apply(self._number(Lambda(indices, term)), indices)

    def _whole(self, tensor: Term) -> Term:
        """The variable of a tensor; a number is itself."""
        if not isinstance(tensor, Lambda):
            return tensor
        whole = whole_tensor(tensor.body, tensor.parameters)
        return whole if whole is not None and _is_read(tensor.body) else self._number(tensor)

    def _number(self, tensor: Lambda) -> Var:
        form = canonical_names(tensor)
        if form not in self.by_form:
            space = Space(*(v.type for v in tensor.parameters), dtype=dtype_of(tensor.body))  # type: ignore[arg-type]
            self.by_form[form] = var = self.names.fresh(Var("v", space))
            self.made[var] = tensor
        return self.by_form[form]

    def cancels(self, number: Term) -> bool:
        """Whether a number may be too large, or too small, for a float where what it stands in is not.

        Powers and exponentials are, and sums of them: what they cancel with is to be seen beside them.
        """
        match made := self.made_of(number):
            case Primitive(name="power"):
                return not self._is_plain_divisor(*made.arguments)
            case Add() | Mul() | Sum():
                return any(map(self.cancels, made.children))
        return isinstance(made, Primitive) and made.name in UNBOUNDED and not self._is_phase(made)

    def _is_phase(self, made: Primitive) -> bool:
        """Whether a term is exp(i x) of a real number x, whose absolute value is 1."""
        number, *rest = self._parts(Mul, made.arguments[0])
        imaginary = isinstance(number, Number) and not number.real
        return made.name == "exp" and imaginary and not any(dtype_of(part) is complex for part in rest)

    def _is_plain_divisor(self, base: Term, exponent: Term) -> bool:
        """Whether a power is 1/a of such a number as cancels nothing, or 1/(1 + a), which is 0 where a is too large."""
        positive = any(isinstance(part, Number) and part.real > 0 for part in self._parts(Add, base))
        return (
            isinstance(exponent, Number)
            and exponent.real < 0
            and (positive or (exponent.real == -1 and not self.cancels(base)))
        )


def _is_read(term: Term) -> bool:
    """Whether a term is an element of a named tensor."""
    return isinstance(term, Apply) and isinstance(term.function, Var)


def _place(part: Term) -> tuple[object, ...]:
    """A key for the order of sums and products, in which names of indices decide last."""
    return order_key(canonical_names(lambda_(free_indices(part), part))), order_key(part)


@dataclass(frozen=True)
class _StepResult:
    """What the steps of an iteration compute: one of their outputs, or of their bindings.

    It is known by number at `arguments`, and is read at `indices`, the first of which is the step's.
    """

    family: int
    output: int | None
    binding: int | None
    indices: tuple[Var, ...]
    arguments: tuple[Term, ...]


class _StepReading:
    """What the iterations of a program compute, by number, and the names by which it is read."""

    def __init__(self, body: Term) -> None:
        self.bindings = dict(split(body)[0])
        self.families = families(self.bindings.items())
        self.members = {var: n for n, family in enumerate(self.families) for var in family}
        self.names = Names(body)
        self.numbers = _ValueNumbers(self.names)
        self.results: dict[Term, _StepResult] = {}
        self.stacks: dict[tuple[int, int | None, int | None], Var] = {}
        self.iterations: dict[int, Term] = {}  # of each family, with what is known read
        self.reader = _StepReader(self)

    def read(self, term: Term) -> Term:
        """The term with what is known read."""
        return self.reader.run(term)

    def iteration(self, var: Var) -> Term:
        """A result of an iteration with what is known read; when the first is bound, what it computes is known."""
        n, own = self.members[var], self._scan(var)
        if n not in self.iterations:  # read before, as it cannot read itself
            self.iterations[n] = self.read(own)
            self._note(n)
        whole = self.iterations[n]
        assert isinstance(whole, Scan)
        return whole.result(own.kind, own.component)

    def _note(self, n: int) -> None:
        """Takes note of what an iteration computes."""
        scan = self._scan(self.families[n][0])
        step = opened(scan, self.names)
        bound = {(s.kind, s.component): v for v, s in ((v, self._scan(v)) for v in self.families[n])}
        for m, state in enumerate(step.states):
            own = self.names.indices(_space(state).axes)
            before = bound.get((BEFORE, m)) or self.names.fresh(Var("v", _space(scan.result(BEFORE, m))))
            self.numbers.values[state] = lambda_(own, Apply(before, (step.index, *own)))
        for inner, value in step.bindings:
            self.numbers.define(inner, value)
        ends = _may_end(step)
        for m, output in enumerate(step.outputs):
            whole = self._know(n, m, None, step.index, output)
            if (AFTER, m) in bound:
                self.numbers.values[bound[AFTER, m]] = whole
        for m, (inner, value) in enumerate(step.bindings):
            if not ends and not isinstance(value, Implicit | Scan):
                self._know(n, None, m, step.index, inner)
        self.reader = _StepReader(self)  # what was looked at before may be known now

    def _know(self, family: int, output: int | None, binding: int | None, index: Var, value: Term) -> Lambda:
        indices = (index, *self.names.indices(_space(value).axes))
        number = self.numbers.run(apply(value, indices[1:]))
        stands_alone = binding is None or not self.numbers.cancels(number)
        if stands_alone and number.children and number.children[0] in self.numbers.made:
            function, *arguments = number.children
            if {*arguments} == {*indices}:
                self.results.setdefault(function, _StepResult(family, output, binding, indices, tuple(arguments)))
        return Lambda(indices, number)

    def _scan(self, var: Var) -> Scan:
        value = self.bindings[var]
        assert isinstance(value, Scan)
        return value

    def given(self, number: Term) -> Term | None:
        """What is read in place of what has that number."""
        result = self.results.get(number.function) if isinstance(number, Apply) else None
        if result is None or not isinstance(number, Apply):
            return None
        key = result.family, result.output, result.binding
        if key not in self.stacks:
            first = self.families[result.family][0]
            name = first if result.binding is None else self._scan(first).bindings[result.binding][0]
            axes = (v.type for v in result.indices)
            space = Space(*axes, dtype=_space(number.function).dtype)  # type: ignore[arg-type]
            self.stacks[key] = self.names.fresh(Var(name.name, space))
        places = dict(zip(result.arguments, number.arguments, strict=True))
        return Apply(self.stacks[key], tuple(places[index] for index in result.indices))

    def giving(self, bindings: Iterable[tuple[Var, Term]]) -> list[tuple[Var, Term]]:
        """The bindings, with the iterations giving what is read of them."""
        found: list[tuple[Var, Term]] = []
        for var, value in bindings:
            if isinstance(value, Scan):
                n, many = self.members[var], len(value.outputs)
                read = {key: stack for key, stack in self.stacks.items() if key[0] == n}
                more = [binding for _, _, binding in read if binding is not None]
                row = Tuple((*value.outputs, *(value.bindings[m][0] for m in more)))
                whole = replace(value, step=Lambda(value.variables, let(value.bindings, row)))
                for (_, output, binding), stack in read.items() if var is self.families[n][0] else ():
                    place = output if output is not None else many + more.index(binding)  # type: ignore[arg-type]
                    found.append((stack, whole.result(AFTER, place)))
                found.append((var, whole))
            else:
                found.append((var, value))
        return found


def _may_end(step: OpenStep) -> bool:
    """Whether the states stay as they are where a comparison fails: one that gives nothing but states ends there."""
    many, relations = len(step.states), (node for node in subterms(step.body) if isinstance(node, Relation))
    conditions = (each for node in relations for each in (node, node.opposite))
    return len(step.outputs) == many and any(
        results_by_name(assumed(step.body, each, False))[:many] == step.states for each in conditions
    )


class _StepReader(Rewriter):
    """Reads each part that an iteration has computed from it, where that is shorter."""

    def __init__(self, reading: _StepReading) -> None:
        super().__init__()
        self.reading = reading

    def node(self, term: Term) -> Term:
        """The term with such parts read."""
        is_part = bool(term.children) and not is_index(term)
        if is_part and not isinstance(term, Apply | Lambda | Tuple | Let | Implicit | Scan):
            found = self.reading.given(self.reading.numbers.run(term))
            if found is not None and symbols(found) < symbols(term):
                return found
        if isinstance(term, Mul):
            term = self._with_products_read(term)
        return self.inside(term)

    def _with_products_read(self, product: Term) -> Term:
        """A product with some of its factors read, as often as they are all there is to a product that steps compute.

        x³ s² is x (x s)²: a factor may be there several times, and goes as often as it is read.
        """
        numbers = [(factor, self.reading.numbers.run(factor)) for factor in factors_of(product)]
        for number in self.reading.results:
            made = self.reading.numbers.made[number]
            wanted = made.body.factors if isinstance(made.body, Mul) else ()
            for factors, at in _matches(wanted, numbers, made.parameters, {}) if wanted else ():
                if len(at) == len(made.parameters):
                    read = self.reading.given(Apply(number, tuple(at[index] for index in made.parameters)))
                    rest = list(factors_of(product))
                    for factor in factors:
                        rest.remove(factor)
                    return self._with_products_read(mul(*rest, read)) if read is not None else product
        return product


def _matches(
    wanted: Sequence[Term], numbers: Sequence[tuple[Term, Term]], indices: Collection[Var], at: Mapping[Var, Term]
) -> Iterator[tuple[tuple[Term, ...], Mapping[Var, Term]]]:
    """The factors that have the numbers that are wanted, with what stands there for each of the indices."""
    if not wanted:
        yield (), at
        return
    first, *others = wanted
    for place, (factor, number) in enumerate(numbers):
        if (found := _places(first, number, indices, at)) is not None:
            left = [*numbers[:place], *numbers[place + 1 :]]
            for factors, places in _matches(others, left, indices, found):
                yield (factor, *factors), places


def _places(wanted: Term, number: Term, indices: Collection[Var], at: Mapping[Var, Term]) -> dict[Var, Term] | None:
    """What stands for indices where a number is the one that is wanted: x[3, 1] is x[i, 1] at i = 3, and no x[i, i]."""
    if not isinstance(wanted, Apply) or not isinstance(number, Apply) or wanted.function is not number.function:
        return None
    pairs = zip(wanted.arguments, number.arguments, strict=True)
    found = {**{place: other for place, other in pairs if isinstance(place, Var) and place in indices}, **at}
    return found if substitute(wanted, found) is number else None


def _space(term: Term) -> Space:
    found = type_of(term)
    assert isinstance(found, Space)
    return found
