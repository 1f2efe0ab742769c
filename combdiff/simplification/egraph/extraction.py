"""The cheapest term of an e-graph: cost counts the work of the best contraction, shared parts once.

Extraction walks the frozen e-graph in Python. The cost of a class is (floating-point operations at typical sizes,
number of symbols), summed over the distinct classes below it, so that a part used twice is paid once. A Σ of a
product is costed as a tensor network, by the best pairwise order a greedy search finds.

Invariant: the result does not depend on the numbering of e-classes: ties are broken by the terms themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from heapq import heappop, heappush
from itertools import combinations
from math import prod
from typing import Any

from combdiff.ir import (
    MATRIX_TABLE,
    ONE,
    TABLE,
    TYPICAL_SIZE,
    Add,
    Affine,
    Apply,
    Conj,
    Coordinate,
    Cyclic,
    Delta,
    Indicator,
    Lambda,
    Mul,
    Number,
    Primitive,
    Range,
    Space,
    Sum,
    Symmetric,
    Term,
    Unequal,
    Var,
    Whole,
    add,
    affine,
    axes_of,
    canonical_names,
    conj,
    delta,
    dtype_of,
    element,
    factors_of,
    free_indices,
    function,
    indicator,
    is_branched,
    is_domain,
    is_matrix_function,
    is_wave,
    lambda_,
    matrices_in,
    mul,
    number_and_rest,
    places_around,
    reduced_index,
    remembered,
    subterms,
    tidy,
    total,
    type_of,
    unequal,
    values_of,
    whole_power,
    with_real_moduli,
)
from combdiff.records import dataclass
from combdiff.simplification.egraph.context import NOTHING, Context
from combdiff.simplification.egraph.encoding import Codec

FEW_FACTORS = 5  # up to which the best order of a product is sought
FUNCTION_COST = 8

Cost = tuple[float, int]
Indices = frozenset[Var]

# --- the cost of a term --------------------------------------------------------------------------------------------


@remembered
def extent(var: Var) -> int:
    """A typical number of values of an index."""
    match var.type:
        case Range(int(size)) | Cyclic(int(size)):
            return max(size, 1)
        case Symmetric(int(bound)):
            return 2 * bound + 1
    return TYPICAL_SIZE


def volume(indices: Iterable[Var]) -> int:
    """How many elements a tensor over the indices typically has."""
    return prod(extent(i) for i in indices)


@remembered
def index_variables(term: Term) -> Indices:
    """The index variables free in a scalar term; sizes are not among them."""
    return frozenset(v for v in term.free if is_domain(v.type) and not isinstance(v.type, Whole))


@lru_cache(maxsize=512)
def contraction_cost(factors: tuple[Indices, ...], summed: Indices) -> float:
    """Multiplications of a pairwise contraction of factors with these indices: the best of few, a greedy one of many.

    Factors with the same indices are multiplied first: nothing is cheaper, and the rest of the search is over few.
    Those that have none multiply the smallest tensor there is on the way.
    """
    alike = Counter(factors)
    numbers = alike.pop(frozenset(), 0) if len(alike) > 1 else 0
    several = sum((count - 1) * volume(indices) for indices, count in alike.items())
    if len(alike) == 1 and not several:
        (only,) = alike
        work, smallest = volume(only | summed) if summed else 0, volume(only - summed)
    else:
        least = _least_contraction if len(alike) <= FEW_FACTORS else _greedy_contraction
        work, smallest = least(list(alike), summed)
    return float(several + work + (numbers - 1 + smallest if numbers else 0))


def _least_contraction(factors: Sequence[Indices], summed: Indices) -> tuple[int, int]:
    """The least multiplications of few factors, two by two, and the size of the smallest tensor on the way.

    Products are told by their factors, one bit for each.
    """
    left: list[Indices] = [frozenset()]
    best = [(0, 0)]
    for product in range(1, 1 << len(factors)):
        inside = [indices for n, indices in enumerate(factors) if product >> n & 1]
        outside = [indices for n, indices in enumerate(factors) if not product >> n & 1]
        every = frozenset().union(*inside)
        left.append(every - summed.difference(*outside) if len(inside) > 1 else every)
        halves = [(one, product - one) for one in range(1, product // 2 + 1) if one & product == one]
        ways = [
            (best[one][0] + best[other][0] + volume(left[one] | left[other]), min(best[one][1], best[other][1]))
            for one, other in halves
        ]
        work, smallest = min(ways, default=(0, volume(every)))
        best.append((work, min(smallest, volume(left[-1]))))
    return best[-1]


def _greedy_contraction(factors: Sequence[Indices], summed: Indices) -> tuple[int, int]:
    """The multiplications of many factors, and the size of the smallest tensor on the way."""
    contraction = _PairwiseContraction(factors, summed)
    return contraction.cost(), min(contraction.sizes)


class _PairwiseContraction:
    """Factors that are multiplied two by two, each time those that leave the smallest tensor beside what they were.

    Each pair is looked at once, and again where one of its indices is read by fewer.
    """

    def __init__(self, factors: Sequence[Indices], summed: Indices) -> None:
        self.pool = dict(enumerate(factors))
        self.summed = summed
        self.readers = Counter(index for indices in factors for index in indices)
        self.sizes = list(map(volume, factors))
        self.rated: dict[tuple[int, int], tuple[int, int, int, int]] = {}
        self.queue: list[tuple[int, int, int, int]] = []

    def cost(self) -> int:
        """The multiplications of all products."""
        for a, b in combinations(self.pool, 2):
            self._rate(a, b)
        cost = 0
        while len(self.pool) > 1:
            found = heappop(self.queue)
            _, work, a, b = found
            if a in self.pool and b in self.pool and self.rated[a, b] == found:
                cost += work
                self._merge(a, b)
        return cost

    def _rate(self, a: int, b: int) -> None:
        """Note by how much the tensors grow when two factors become one, and the work."""
        one, other = self.pool[a], self.pool[b]
        left = volume(_left_over(one, other, self.summed, self.readers))
        found = left - self.sizes[a] - self.sizes[b], volume(one | other), a, b
        if self.rated.get((a, b)) != found:
            self.rated[a, b] = found
            heappush(self.queue, found)

    def _merge(self, a: int, b: int) -> None:
        """Put one factor in place of two, behind the others."""
        merged = _left_over(self.pool[a], self.pool[b], self.summed, self.readers)
        one, other = self.pool.pop(a), self.pool.pop(b)
        self.readers.subtract((*one, *other))
        self.readers.update(merged)
        new, shared = len(self.sizes), one & other
        self.sizes.append(volume(merged))
        for n in [n for n, indices in self.pool.items() if not indices.isdisjoint(shared)]:
            for m in self.pool:
                if m != n:
                    self._rate(min(m, n), max(m, n))
        self.pool[new] = merged
        for n in self.pool:
            if n != new:
                self._rate(n, new)


def _left_over(one: Indices, other: Indices, summed: Indices, readers: Mapping[Var, int]) -> Indices:
    """The indices that remain after contracting two factors: those still free or that more factors read."""
    joined = one | other
    return joined - {i for i in joined & summed if readers[i] == (i in one) + (i in other)}


@remembered
def own_cost(term: Term) -> float:
    """The work of the top of a term, its parts given."""
    match term:
        case Sum():
            around = places_around(term)
            factors = [f for f in factors_of(term.body) if f not in around]
            places = [(index, index_variables(form)) for index, form, _ in around.values()]
            sets = tuple(_read_at(indices, places) for indices in _operands(factors))
            masses = sum(volume(index_variables(f)) for f in factors if _holds_delta(f))  # better outside
            summed = frozenset(term.indices).difference(index for index, _ in places)
            if len(sets) > 1 and summed.isdisjoint(frozenset().union(*sets)):  # how many values is a factor
                return masses + 1 + contraction_cost((frozenset(), *sets), frozenset())
            return masses + contraction_cost(sets or (frozenset(),), summed)
        case Mul():
            sets = _operands(term.factors)
            return contraction_cost(sets, frozenset()) if sets else 0.0
        case Add():
            return float(volume(index_variables(term)) * (len(term.terms) - 1))
        case Primitive() if is_matrix_function(term):
            axes = matrix_axes(term)
            return float(MATRIX_TABLE[term.name].cost * prod(axes) * axes[-1])
        case Primitive() if is_wave(term):
            return 0.0  # sums of waves are transforms, which make no table of them
        case Primitive():
            return float(volume(index_variables(term)) * FUNCTION_COST)
        case Delta():
            return 0.0 if reduced_index(term) else float(volume(index_variables(term)))
        case Conj():
            return 0.0 if isinstance(term.body, Apply | Var) else float(volume(index_variables(term)))
    return 0.0


def _read_at(indices: Indices, places: Iterable[tuple[Var, Indices]]) -> Indices:
    """What an element depends on that is read at places around axes: a view, which takes no work."""
    for index, inside in places:
        indices = (indices - {index}) | inside if index in indices else indices
    return indices


def as_real_as(written: Term, found: Term) -> Term:
    """A form of a term with Re where the laws have dropped one: z + z̄ is real, but not by its type.

    Around squared moduli where these are all that is complex, else around the whole where that was of real type; and
    around the arguments of functions of real numbers. Roots of squared moduli were of real numbers if no others were
    written.
    """
    whole = with_real_arguments(found)
    if dtype_of(whole) is not complex or dtype_of(written) is complex:
        return whole
    complex_roots = any(is_branched(part) and dtype_of(part) is complex for part in subterms(written))
    return with_real_moduli(whole, inside_roots=not complex_roots) or function("real", whole)


@remembered
def with_real_arguments(term: Term) -> Term:
    """A term read from its classes with Re around what functions of real numbers are of, where the laws drop it."""
    children = tuple(map(with_real_arguments, term.children))
    new = term if children == term.children else term.with_children(children)
    row = TABLE.get(new.name) if isinstance(new, Primitive) else None
    if row is None or not row.real_only or all(dtype_of(each) is not complex for each in new.children):
        return new
    return new.with_children(tuple(function("real", c) if dtype_of(c) is complex else c for c in new.children))


@remembered
def _holds_delta(term: Term) -> bool:
    """Whether a factor is a δ, or a sum with one."""
    parts = term.factors if isinstance(term, Mul) else term.terms if isinstance(term, Add) else ()
    return isinstance(term, Delta) or any(map(_holds_delta, parts))


def _operands(factors: Iterable[Term]) -> tuple[Indices, ...]:
    """The indices of each factor that takes work: numbers and conditions, which only bound the work, do not."""
    return tuple(index_variables(f) for f in factors if not isinstance(f, Number | Indicator | Unequal))


def matrix_axes(term: Primitive) -> list[int]:
    """The typical sizes of the axes of what a matrix function is a function of."""
    space = type_of(term.arguments[0])
    assert isinstance(space, Space)
    return [extent(Var("", axis)) for axis in space.axes]


@remembered
def parts_cost(term: Term) -> Mapping[Term, float]:
    """The work of each distinct part of a term; the product under a Σ is paid with the Σ."""
    costs: dict[Term, float] = {}
    if isinstance(term, Delta) and reduced_index(term):
        return costs
    if isinstance(term, Sum) and (opened := by_transposes(term)):
        return parts_cost(opened)
    inside = term.body if isinstance(term, Sum) and isinstance(term.body, Mul) else term
    for child in inside.children:
        costs.update(parts_cost(child))
    own = own_cost(term)
    if own:
        costs[term] = own
    return costs


def parts_work(term: Term) -> dict[Term, float]:
    """The same, with squares as the products that they are: no choice is between these and a function."""
    return {
        part: cost / FUNCTION_COST if whole_power(part)[1] == 2 else cost for part, cost in parts_cost(term).items()
    }


def by_transposes(term: Sum) -> Term | None:
    """A sum of transposes times a vector as plans have it, (A + Aᵀ)·x as A·x + Aᵀ·x; None for other networks."""
    factors = factors_of(term.body)
    sums = [factor for factor in factors if isinstance(factor, Add)]
    if len(sums) != 1:
        return None
    numbers, parts = zip(*map(number_and_rest, sums[0].terms), strict=True)
    readings = [part.body if isinstance(part, Conj) else part for part in parts]
    if len(set(numbers)) > 1 or len({part.function for part in readings if isinstance(part, Apply)}) != 1:
        return None
    indices = index_variables(sums[0])
    if not all(isinstance(part, Apply) and set(part.arguments) == indices for part in readings):
        return None
    others = [factor for factor in factors if factor is not sums[0]]
    if not indices > frozenset().union(*map(index_variables, others)):
        return None
    networks = (Sum(term.indices, mul(*sorted((*others, part), key=order_key))) for part in parts)
    return add(*(mul(numbers[0], network) for network in networks))


def program_cost(body: Term) -> float:
    """The work of a let program at typical sizes, equal parts computed once."""
    work: dict[Term, float] = {}
    for value in values_of(body):
        for part, own in parts_cost(value.body if isinstance(value, Lambda) else value).items():
            work[_array(part)] = own  # one array, whatever its indices are called
    return sum(work.values())


@remembered
def _array(term: Term) -> Term:
    """A scalar term as a tensor of its free indices, without their names and the order of its factors."""
    found = ordered(term, collect=False)
    return canonical_names(lambda_(free_indices(found), found))


@remembered
def symbols(term: Term) -> int:
    """How many symbols a term takes to print; a number in Re or Im as many as in front, and one more."""
    if isinstance(term, Primitive) and term.name in ("real", "imag"):
        return 1 + symbols(term.arguments[0]) + 2 * holds_number(term.arguments[0])
    if isinstance(term, Sum):
        return 1 + len(term.indices) + symbols(term.body)
    if isinstance(term, Coordinate):
        return symbols(term.form)
    return 1 + sum(symbols(child) for child in term.children)


def holds_number(argument: Term) -> bool:
    """Whether the argument of Re or Im has a real number that may stand in front of that."""
    number, _ = number_and_rest(argument.body if isinstance(argument, Sum) else argument)
    return number is not ONE and not number.imag


def cost(term: Term) -> Cost:
    """(operations, symbols) of a scalar term."""
    return sum(parts_cost(term).values()), symbols(term)


def price(term: Term, context: Context = NOTHING) -> Cost:
    """The cost of a term and of the values, where known, of what its matrix functions are functions of, and so on."""
    own = [cost(term)]
    if context.known:
        held, todo = dict[Var, Term](), [term]
        while todo:
            new = {var: context.known[var] for var in matrices_in(todo.pop()) if var in context.known} | held
            todo += [value for var, value in new.items() if var not in held]
            held = new
        own += [cost(value.body) for value in held.values() if isinstance(value, Lambda)]
    return sum(flops for flops, _ in own), sum(signs for _, signs in own)


@remembered
def order_key(term: Term) -> tuple[Any, ...]:
    """A key that orders terms independently of how they were made."""
    match term:
        case Var():
            return (0, term.name, repr(term.type))
        case Number():
            return (1, repr(term.real), repr(term.imag))
        case Affine():
            return (2, tuple((v.name, str(c)) for v, c in term.coefficients), str(term.offset))
    return (3, term.label, tuple(v.name for v in term.bound), tuple(order_key(child) for child in term.children))


def ordered(term: Term, collect: bool = True) -> Term:
    """A term with the members of its sums and products in the order in which extraction writes them.

    Equal members of a sum are added up, unless they are to stay as they are: `collect` is False.
    """
    if isinstance(term, Var | Apply):
        return term
    children = tuple(ordered(child, collect) for child in term.children)
    if isinstance(term, Mul):
        numbers = [child for child in children if isinstance(child, Number)]
        return mul(*numbers, *sorted((c for c in children if not isinstance(c, Number)), key=order_key))
    if isinstance(term, Add):
        members = tuple(sorted(children, key=order_key))
        return add(*members) if collect else Add(members)
    if isinstance(term, Sum):
        return total(sorted(term.indices, key=lambda index: index.name), children[0])
    return term.with_children(children)


# --- the e-graph as data -------------------------------------------------------------------------------------------


@dataclass
class Classes:
    """A frozen e-graph: for each class of values its nodes, as (operation, payload)."""

    values: dict[Any, list[tuple[str, Any]]] = field(default_factory=dict)
    indices: dict[Any, list[Term | tuple[Any, ...]]] = field(default_factory=dict)
    steps: dict[Any, list[tuple[Fraction, Any]]] = field(default_factory=dict)
    tensors: dict[Any, list[Term | tuple[str, Any]]] = field(default_factory=dict)
    size: int = 0


def read(egraph: Any, codec: Codec) -> Classes:
    """The classes of an e-graph that has run."""
    functions = egraph.freeze().functions
    classes = Classes()
    classes.size = sum(len(functions[name].rows) for name in _READERS) + len(functions["Subst"].rows)

    def rows(name: str) -> Iterable[tuple[Any, Any]]:
        return ((row.inputs, row.output) for row in functions[name].rows)

    for inputs, output in rows("I"):
        key = egraph.value_to_string(inputs[0]), egraph.value_to_string(inputs[1])
        if key in codec.indices:  # laws have an index of their own
            classes.indices.setdefault(output, []).append(codec.indices[key])
    for inputs, output in rows("By"):
        classes.steps.setdefault(output, []).append((egraph.value_to_bigrat(inputs[0]), inputs[1]))
    for inputs, output in rows("Affine"):
        form = ("affine", tuple(egraph.value_to_vec(inputs[0])), egraph.value_to_bigrat(inputs[1]))
        classes.indices.setdefault(output, []).append(form)
    for inputs, output in rows("Neg"):
        classes.indices.setdefault(output, []).append(("neg", inputs[0]))
    for inputs, output in rows("T"):
        if (tensor := codec.tensors.get(egraph.value_to_string(inputs[0]))) is not None:  # a law may name others
            classes.tensors.setdefault(output, []).append(tensor)
    for inputs, output in rows("MatrixFn"):
        if egraph.value_to_string(inputs[0]) not in MATRIX_TABLE:
            continue
        classes.tensors.setdefault(output, []).append((egraph.value_to_string(inputs[0]), inputs[1]))
    for name, reader in _READERS.items():
        for inputs, output in rows(name):
            classes.values.setdefault(output, []).append((name, reader(egraph, inputs)))
    return classes


_READERS: dict[str, Any] = {
    "At": lambda g, i: (i[0], tuple(g.value_to_vec(i[1]))),
    "Num": lambda g, i: (g.value_to_bigrat(i[0]), g.value_to_bigrat(i[1])),
    "Float": lambda g, i: (g.value_to_f64(i[0]), g.value_to_f64(i[1])),
    "Scale": lambda g, i: (g.value_to_bigrat(i[0]), g.value_to_bigrat(i[1]), i[2]),
    "Conj": lambda g, i: i[0],
    "Prod": lambda g, i: tuple(g.value_to_multiset(i[0])),
    "Add": lambda g, i: tuple(g.value_to_multiset(i[0])),
    "Sum": lambda g, i: (tuple(g.value_to_set(i[0])), i[1]),
    "Delta": lambda g, i: (i[0], i[1], g.value_to_string(i[2])),
    "Where": lambda g, i: (i[0], g.value_to_i64(i[1])),
    "Differ": lambda g, i: (i[0], g.value_to_string(i[1])),
    "Fn": lambda g, i: (g.value_to_string(i[0]), tuple(g.value_to_vec(i[1]))),
    "Opaque": lambda g, i: (g.value_to_string(i[0]), tuple(g.value_to_vec(i[1]))),
}

# --- the search ----------------------------------------------------------------------------------------------------


class Extractor:
    """The best terms of classes, improved until nothing changes; tensors that are hidden are not read."""

    def __init__(self, classes: Classes, codec: Codec, hidden: frozenset[Var] = frozenset()) -> None:
        self.classes = classes
        self.codec = codec
        self.hidden = hidden
        self.index_terms = {c: self._index(c, frozenset()) for c in classes.indices}
        self.tensor_terms = {c: self._tensor(c, frozenset()) for c in classes.tensors}
        self.best: dict[Any, tuple[Cost, Term]] = {}
        self._read: set[Any] = set()

    def best_of(self, class_: Any) -> tuple[Cost, Term] | None:
        """The best term of a class and its price, None if it has no term: from the classes that it is made of alone."""
        made_of, todo = set[Any](), [class_]
        while todo:
            part = todo.pop()
            if part not in made_of and part not in self._read:
                made_of.add(part)
                todo += (below for node in self.classes.values.get(part, ()) for below in self._made_of(*node))
        self._run(made_of)
        return self.best.get(class_)

    def best_of_all(self) -> Mapping[Any, tuple[Cost, Term]]:
        """The best term of each class that has one, and its price."""
        self._run(self.classes.values.keys() - self._read)
        return self.best

    def _index(self, class_: Any, above: frozenset[Any]) -> Term | None:
        """The plainest form of an index class; None while it has none (a substitution not yet done)."""
        found: list[Term] = []
        for form in self.classes.indices.get(class_, ()):
            if isinstance(form, Term):
                found.append(form)
            elif class_ not in above:
                expanded = self._expand(form, above | {class_})
                if expanded is not None:
                    found.append(expanded)
        return min(found, key=lambda t: (not isinstance(t, Var), order_key(t))) if found else None

    def _tensor(self, class_: Any, above: frozenset[Any]) -> Term | None:
        """The cheapest form of a class of tensors: a variable, or a matrix function of one."""
        found: list[Term] = []
        for form in self.classes.tensors.get(class_, ()):
            if isinstance(form, Term):
                found += [form] if form not in self.hidden else []
            elif class_ not in above:
                matrix = self._tensor(form[1], above | {class_})
                if isinstance(matrix, Var):
                    found.append(Primitive(form[0], (matrix,)))
        return min(found, key=lambda t: (price(t, self.codec.context), order_key(t))) if found else None

    def _expand(self, form: tuple[Any, ...], above: frozenset[Any]) -> Term | None:
        if form[0] == "neg":
            inner = self._index(form[1], above)
            return None if inner is None else affine([(inner, -1)])
        parts: list[tuple[Term, Fraction | int]] = []
        for step in form[1]:
            options = [(c, self._index(i, above)) for c, i in self.classes.steps.get(step, ())]
            known = [(t, c) for c, t in options if t is not None]
            if not known:
                return None
            parts.append(min(known, key=lambda part: (order_key(part[0]), part[1])))
        return affine(parts, tidy(form[2]))

    def _run(self, classes: Set[Any]) -> None:
        """Sweep over classes that are made of each other and of those read before, until nothing changes.

        A node is looked at again when a part of it got better.
        """
        swept = [(class_, nodes) for class_, nodes in self.classes.values.items() if class_ in classes]
        above = self._users(swept)
        waiting = {class_ for class_, _ in swept}
        seen: dict[tuple[Any, int], list[Any]] = {}
        self._read |= classes
        while waiting:
            for class_, nodes in swept:
                if class_ not in waiting:
                    continue
                waiting.discard(class_)
                held = self.best.get(class_)
                for number, (name, payload) in enumerate(nodes):
                    made_of = [self.best.get(part) for part in self._made_of(name, payload)]
                    if seen.get((class_, number)) != made_of:
                        seen[class_, number] = made_of
                        for term in self._terms(name, payload):
                            self._offer(class_, term)
                if self.best.get(class_) is not held:
                    waiting |= above.get(class_, set())

    def _users(self, swept: Iterable[tuple[Any, Iterable[tuple[str, Any]]]]) -> dict[Any, set[Any]]:
        """For each class, the classes whose terms are made of its best: a Σ looks at the products in its body's."""
        above: dict[Any, set[Any]] = {}
        for class_, nodes in swept:
            for name, payload in nodes:
                for part in self._made_of(name, payload):
                    above.setdefault(part, set()).add(class_)
        return above

    def _made_of(self, name: str, payload: Any) -> tuple[Any, ...]:
        """The classes whose best terms those of a node are made of."""
        parts = _parts(name, payload)
        if name == "Sum":
            products = (p for n, p in self.classes.values.get(payload[1], ()) if n == "Prod")
            parts = (*parts, *(part for product in products for part in product))
        return parts

    def _offer(self, class_: Any, term: Term) -> None:
        """Take the term for a class if it is cheaper than the one held, or comes first among equally cheap ones."""
        paid = price(term, self.codec.context)
        if class_ in self.best:
            least, held = self.best[class_]
            if held is term or paid > least or (paid == least and order_key(held) <= order_key(term)):
                return
        self.best[class_] = (paid, term)

    def alternatives(self, class_: Any) -> Iterable[Term]:
        """A term for each node of a class, over the best of its parts."""
        return (term for node in self.classes.values.get(class_, ()) for term in self._terms(*node))

    def _terms(self, name: str, payload: Any) -> Iterable[Term]:
        """The terms a node stands for, given the best of its parts; none while a part has none."""
        match name:
            case "Num" | "Float":
                real, imag = (tidy(p) if isinstance(p, Fraction) else p for p in payload)
                yield Number(real, imag or 0)  # 0.0 would make it another number than the one that was written
            case "At" | "Opaque":
                arguments = [self.index_terms.get(i) for i in payload[1]]
                tensor = self.tensor_terms.get(payload[0]) if name == "At" else None
                known = tuple(a for a in arguments if a is not None)
                if len(known) == len(arguments) == self._order(name, payload[0], tensor):
                    yield element(tensor, known) if tensor else self.codec.restore(payload[0], known)
            case "Delta":
                left, right = self.index_terms.get(payload[0]), self.index_terms.get(payload[1])
                if left is not None and right is not None and payload[2] in self.codec.domains:
                    yield delta(left, right, self.codec.domains[payload[2]])
            case "Where":
                form = self.index_terms.get(payload[0])
                if form is not None:
                    yield indicator(form, payload[1])
            case "Differ":
                form = self.index_terms.get(payload[0])
                if form is not None:
                    yield unequal(form, self.codec.domains.get(payload[1], Whole()))
            case "Sum":
                yield from self._sums(*payload)
            case _:
                yield from self._composite(name, payload)

    def _order(self, name: str, payload: Any, tensor: Term | None) -> int | None:
        """How many indices a tensor or opaque part has; None for what there is not."""
        if name == "Opaque":
            return len(self.codec.opaque[payload][0]) if payload in self.codec.opaque else None
        return len(axes_of(tensor)) if tensor is not None else None

    def _composite(self, name: str, payload: Any) -> Iterable[Term]:
        parts = [self.best.get(c) for c in _parts(name, payload)]
        if any(part is None for part in parts):
            return
        terms = [part[1] for part in parts if part is not None]
        match name:
            case "Conj":
                yield conj(terms[0])
            case "Scale":
                yield mul(Number(tidy(payload[0]), tidy(payload[1])), terms[0])
            case "Fn" if payload[0] in TABLE and TABLE[payload[0]].arity == len(terms):
                yield function(payload[0], *terms)
            case "Prod":
                yield mul(*sorted(terms, key=order_key))
            case "Add":
                yield add(*sorted(terms, key=order_key))

    def _sums(self, binds: tuple[Any, ...], body: Any) -> Iterable[Term]:
        """A Σ over the best body, and over each product in the body's class: a network may beat its best product."""
        found = [self.index_terms.get(i) for i in binds]
        indices = tuple(sorted((i for i in found if isinstance(i, Var)), key=lambda i: i.name))
        if len(indices) < len(binds):
            return
        if body in self.best:
            yield total(indices, self.best[body][1])
        for name, payload in self.classes.values.get(body, ()):
            if name == "Prod":
                for term in self._composite(name, payload):
                    yield total(indices, term)


def _parts(name: str, payload: Any) -> tuple[Any, ...]:
    """The classes of values that a node has as children."""
    match name:
        case "Num" | "Float" | "At" | "Opaque" | "Delta" | "Where" | "Differ":
            return ()
        case "Sum":
            return (payload[1],)
        case "Conj":
            return (payload,)
        case "Scale":
            return (payload[2],)
        case "Fn":
            return tuple(payload[1])
    return tuple(payload)
