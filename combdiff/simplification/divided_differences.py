"""Sums over pairs of eigenvalues, with divided differences where their gaps were.

    Σ_{i,k≠i} f(w[i]) g[i,k] / (w[i] − w[k])   →   ½ Σ_{i,k≠i} divided_f(w[i], w[k]) g[i,k]
    Σ_{i,k≠i} [i ≤ 1] g[i,k] / (w[i] − w[k])   →   Σ_{i,k} [i ≤ 1] [k ≥ 2] g[i,k] / (w[i] − w[k])

where g[k,i] = g[i,k]. Functions of a matrix by its eigenvalues, and projectors onto some eigenvectors, have such
derivatives: what is left is finite where eigenvalues are equal, or chosen ones. A sum is taken together with itself,
its pair exchanged; terms with the same elements of vectors are added up; beside these stands P(x, y)/(x − y), with
x = w[i] and y = w[k]. Where P(y, y) is 0, it is the divided difference of P( · , y). Where conditions on i and k stand
in it, each case is on its own: a gap between what a condition chooses and what it does not stays.

Invariant: the value is unchanged where eigenvalues are distinct. The gaps within pairs go from all terms of a result,
or stay in all, so that a derivative that does not exist is infinite or no number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from combdiff.ir import (
    DIVIDED,
    HALF,
    MATRIX_TABLE,
    MINUS_ONE,
    ONE,
    ZERO,
    Add,
    Apply,
    Conj,
    Indicator,
    Lambda,
    Mul,
    Names,
    Number,
    Primitive,
    Range,
    Replacing,
    Sum,
    SummedProduct,
    Term,
    Type,
    Unequal,
    Var,
    Whole,
    add,
    affine,
    affine_parts,
    axes_of,
    divided,
    divided_function,
    factors_of,
    function,
    indicator,
    is_call,
    is_matrix_function,
    items_of,
    joined,
    lambda_,
    let,
    matrices_in,
    mul,
    negate,
    opposite,
    put_back,
    raised,
    remembered,
    size_form,
    split,
    substitute,
    subterms,
    total,
    unequal,
    values_of,
    whole_power,
)
from combdiff.records import dataclass
from combdiff.simplification.egraph.saturation import apart, normal
from combdiff.simplification.eigenvectors import UNITARY, changed, conjugated, contracted, times
from combdiff.simplification.normal_form.canonical import canonical, canonical_order, form_key
from combdiff.simplification.normal_form.conditions import plain_conditions
from combdiff.simplification.normal_form.expansion import coefficient_of
from combdiff.simplification.normal_form.symmetries import with_known_symmetries, without_known_symmetries

_Conditions = tuple[Term, ...]
_Case = tuple[_Conditions, _Conditions]

MOST_TERMS = 300  # of a sum of products that is looked through
MOST_CONDITIONS = 3  # on the indices of a pair
NUMBERED = ("eigvalsh", "eiglevels", "svdvals", "svdlevels", "svd_left", *UNITARY)  # by the last of their axes

BY_OTHERS: dict[str, Callable[[Term], Term]] = {
    "sinh": lambda z: mul(HALF, add(function("exp", z), negate(function("exp", negate(z))))),
    "cosh": lambda z: mul(HALF, add(function("exp", z), function("exp", negate(z)))),
    "tanh": lambda z: add(ONE, mul(Number(-2), raised(add(ONE, function("exp", mul(Number(2), z))), -1))),
    "expit": lambda z: raised(add(ONE, function("exp", negate(z))), -1),
}


class _Irregular(Exception):
    """A gap stays between numbers that may be equal."""


def _with_powers(whole: SummedProduct) -> SummedProduct:
    """A product with powers of its own for the factors of products, and of differences of squares."""
    return SummedProduct(whole.indices, tuple(part for each in whole.factors for part in _powers(each)))


def with_divided_differences(body: Term, settled: Callable[[Term], Term]) -> Term:
    """A let program with divided differences for gaps within pairs, where `settled` finds what is 0 without a gap."""
    nodes = {node for value in values_of(body) for node in subterms(value)}
    of_pairs = any(isinstance(node, Unequal) or _numbers(node) for node in nodes)
    if not of_pairs or all(whole_power(node)[1] > 0 for node in nodes):
        return body
    known = with_known_symmetries(body)
    bindings, result = split(known)
    regular = _Regular(known, settled)
    items = tuple(map(regular.item, items_of(result)))
    if items == tuple(items_of(result)):
        return body
    return without_known_symmetries(let(bindings, joined(result, items)))


def _ends(gap: Term) -> tuple[Apply, ...]:
    """The numbers x and y of 1/(x − y), which are elements of one tensor that differ in one index."""
    base, exponent = whole_power(gap)
    if exponent >= 0 or not isinstance(base, Add) or len(base.terms) != 2:
        return ()
    less = [negate(each) for each in base.terms if not isinstance(each, Apply)]
    found = [each for each in (*base.terms, *less) if isinstance(each, Apply)]
    if len(less) != 1 or len(found) != 2 or found[0].function is not found[1].function:
        return ()
    return tuple(found) if len(_differing(found)) == 1 else ()


def _nodes(gap: Term) -> tuple[Apply, ...]:
    """The numbers x and y of 1/(x − y), where these have bare indices."""
    ends = _ends(gap)
    return ends if all(isinstance(each, Var) for pair in _differing(ends) for each in pair) else ()


def _is_divided(whole: SummedProduct) -> bool:
    """Whether a product is divided by a gap."""
    return any(map(_ends, whole.factors))


def _differing(ends: Sequence[Apply]) -> list[tuple[Term, ...]]:
    """The pairs of indices of two elements that are not the same."""
    pairs = zip(*(each.arguments for each in ends), strict=True)
    return [pair for pair in pairs if pair[0] is not pair[1]]


def _pair(nodes: Sequence[Apply]) -> tuple[Var, Var]:
    """The indices of the nodes of a gap."""
    ((first, second),) = _differing(nodes)
    assert isinstance(first, Var)
    assert isinstance(second, Var)
    return first, second


def _over_all_numbers(whole: SummedProduct, names: Names) -> SummedProduct:
    """A product with conditions on an index over all eigenvalues for one over some, w[k + 2] is [k ≥ 2] w[k]: for those
    that conditions say to differ from others."""
    differing = {index for factor in whole.factors for index in _pair_indices(factor)}
    reads = (
        node for factor in whole.factors for node in subterms(factor) if isinstance(node, Apply) and _numbers(node)
    )
    for place, axis in ((node.arguments[-1], axes_of(node.function)[-1]) for node in reads):
        for index in (each for each in whole.indices if each in differing):
            start = affine([(place, 1), (index, -1)])
            if index is place or index not in place.free or index in start.free or not isinstance(index.type, Range):
                continue
            new = names.fresh(Var(index.name, axis))
            here = affine([(new, 1), (start, -1)])
            last = affine([(size_form(index.type.size), 1), (here, -1)], -1)
            moved = changed(whole, {index: here})
            factors = plain_conditions((*moved.factors, indicator(here), indicator(last)))
            return _over_all_numbers(SummedProduct((*moved.indices, new), tuple(factors)), names)
    return whole


def _numbers(access: Term) -> bool:
    """Whether a term is an eigenvalue, a singular value or an element of vectors of them."""
    function = access.function if isinstance(access, Apply) else None
    return isinstance(function, Primitive) and function.name in NUMBERED


@remembered
def _pair_indices(value: Term) -> frozenset[Var]:
    """The indices that conditions say to differ, and those of gaps."""
    found = {var for node in subterms(value) if isinstance(node, Unequal) for var, _ in affine_parts(node.form)[0]}
    ends = (each for node in subterms(value) for part in _powers(node) for each in _ends(part))
    return frozenset(found.union(var for end in ends for var in end.arguments if isinstance(var, Var)))


def _read_in(value: Term) -> set[Term]:
    """What is read in a value, other than matrices whose functions are."""
    return {value, *(part for node in subterms(value) if not is_matrix_function(node) for part in node.children)}


def _is_open(term: Term, marked: set[Var] | None) -> bool:
    """Whether a factor is taken apart: a sum in which conditions, gaps or marked indices stand."""
    if not isinstance(term, Add | Sum | Mul | Conj) and not (isinstance(term, Primitive) and term.name == "real"):
        return False
    return marked is None or not term.free.isdisjoint(marked) or bool(_pair_indices(term))


class _Regular:
    """Takes gaps within pairs out of the results of one program."""

    def __init__(self, body: Term, settled: Callable[[Term], Term]) -> None:
        self.definitions = definitions = dict(split(body)[0])
        self.names = Names(body)
        self.settled = settled
        held = definitions.keys() & matrices_in(body)
        self.inner = held.union(*(definitions[each].free for each in held))  # what matrices are made of, and they
        self.unequal = set[Var]()  # definitions that sum over pairs
        self.numbered: dict[Var, list[int]] = {}  # definitions with parameters that number eigenvalues, and which
        for var, value in definitions.items():
            if _pair_indices(value) or not self.unequal.isdisjoint(value.free):
                self.unequal.add(var)
            parameters = value.parameters if isinstance(value, Lambda) else ()
            if numbers := [n for n, each in enumerate(parameters) if each in self._numbering(value)]:
                self.numbered[var] = numbers

    def item(self, item: Term) -> Term:
        """A result without gaps within pairs; as it is where it has none, or one would stay."""
        parameters, value = (item.parameters, item.body) if isinstance(item, Lambda) else ((), item)
        try:
            value = apart(self._opened(value), self.names)  # an index is of one pair, whatever its name was elsewhere
            opened = self._products(value, {*_pair_indices(value)})
            products = [_with_powers(_over_all_numbers(each, self.names)) for each in opened]
            before = sum(map(_is_divided, products))
            products = self._contracted(products)
            left = self._left_of([each for each in products if _is_divided(each)])
            paired = [each for each in left if _gaps(each.factors)]
            if not paired and len(left) == before:
                return item
            rest = [each.term for each in products if each not in paired and (each in left or not _is_divided(each))]
            if not left:
                return lambda_(parameters, self._without_gaps(rest))
            return lambda_(parameters, self._regular(paired, rest) if paired else add(*rest))
        except _Irregular:
            return item

    def _numbering(self, value: Term) -> set[Term]:
        """The indices that number eigenvalues or singular values."""
        found = set[Term]()
        for node in subterms(value):
            if isinstance(node, Apply):
                places = [-1] if _numbers(node) else self.numbered.get(node.function, [])  # type: ignore[call-overload]
                found.update(node.arguments[n] for n in places)
        return found

    # --- sums of products ------------------------------------------------------------------------------------------

    def _opened(self, value: Term) -> Term:
        """The value with definitions written out that sum over pairs, or have elements by eigenvalues or by pairs.

        A matrix keeps its name where functions of it are taken.
        """

        def chosen(value: Term) -> Collection[Term]:
            marked = _pair_indices(value)
            reads = {n.function for n in subterms(value) if isinstance(n, Apply) and not n.free.isdisjoint(marked)}
            return {*reads, *self.unequal, *self.numbered}

        return self._with_values(value, chosen)

    def _written_out(self, value: Term) -> Term:
        """The value with all definitions written out but what the matrices of vectors are made of."""
        outside = self.definitions.keys() - self.inner
        return apart(self._with_values(value, lambda _: outside), self.names)

    def _with_values(self, value: Term, chosen: Callable[[Term], Collection[Term]]) -> Term:
        """The value with definitions written out as long as it reads some that are chosen for it."""
        while read := self.definitions.keys() & _read_in(value) & {*chosen(value)}:
            wanted = {var: self.definitions[var] for var in read}
            if any(map(is_call, wanted.values())):
                raise _Irregular
            value = put_back(value, wanted, {})
        return value

    def _left_of(self, divided: Sequence[SummedProduct]) -> list[SummedProduct]:
        """Products with gaps without those that are 0, alone or all together."""
        left = [each for each in divided if not self._vanishes([each])]
        return [] if len(left) > 1 and self._vanishes(left) else left

    def _vanishes(self, divided: Sequence[SummedProduct]) -> bool:
        """Whether products with gaps are 0 by what vectors are to each other and to their matrix."""
        try:
            written = self._written_out(add(*(each.term for each in divided)))
            products = self._contracted(self._products(written, None))
        except _Irregular:
            return False
        return not _added_up(each.term for each in products)

    def _without_gaps(self, terms: Sequence[Term]) -> Term:
        """What is left of a sum without its pairs; multiplied out, where fewer terms are left of it then."""
        try:
            written = self._written_out(add(*terms))
            before, after = self._products(written, None), self._collected([written])
        except _Irregular:
            return add(*terms)
        return add(*(after if len(after) < len(before) else terms))

    def _products(self, term: Term, marked: set[Var] | None) -> list[SummedProduct]:
        """A term as a sum of products; as far as conditions or marked indices stand in it, if some are."""
        match term:
            case Add():
                found = [each for part in term.terms for each in self._products(part, marked)]
            case Mul():
                found = [SummedProduct((), ())]
                for factor in term.factors:
                    parts = (
                        self._products(factor, marked) if _is_open(factor, marked) else [SummedProduct((), (factor,))]
                    )
                    if len(found) * len(parts) > MOST_TERMS:
                        raise _Irregular
                    found = [times(one, other) for one, other in product(found, parts)]
            case Sum():
                own: dict[Var, Term] = {index: self.names.fresh(index) for index in term.indices}
                if marked is not None:
                    marked |= {new for index, new in own.items() if index in marked and isinstance(new, Var)}
                inside = self._products(substitute(term.body, own), marked)
                found = [SummedProduct((*own.values(), *each.indices), each.factors) for each in inside]  # type: ignore[arg-type]
            case Conj() if not isinstance(term.body, Apply):
                found = [conjugated(each) for each in self._products(term.body, marked)]
            case Primitive(name="real", arguments=(body,)):
                parts = self._products(body, marked)
                found = [
                    SummedProduct(p.indices, (HALF, *p.factors)) for each in parts for p in (each, conjugated(each))
                ]
            case _:
                return [] if term is ZERO else [SummedProduct((), (term,))]
        if len(found) > MOST_TERMS:
            raise _Irregular
        return found

    # --- pairs -----------------------------------------------------------------------------------------------------

    def _regular(self, paired: Sequence[SummedProduct], rest: Sequence[Term]) -> Term:
        """The sum of all products, with divided differences in those that have gaps within pairs."""
        groups = _Groups(self.names)
        for each in paired:
            groups.take(each)
        within, between = list[_Group](), list[Term]()
        for group in groups.found():
            for chosen, coefficient in _cases(group, self.settled):
                conditions = mul(*chosen[0], *(substitute(each, {group.first: group.second}) for each in chosen[1]))
                if chosen[0] == chosen[1]:
                    within.append(group.having(mul(conditions, _nodes_in_order(_difference(coefficient, group)))))
                else:
                    between.append(group.having(mul(conditions, coefficient, group.gap)).term)
        joined_up = self._without_diagonals(rest, within)
        if joined_up is None:
            return add(*rest, *between, *(each.having(mul(each.unequal, each.coefficient)).term for each in within))
        whole = [each for group in within for each in self._products(group.term, {group.first, group.second})]
        return add(*joined_up, *between, *(each.term for each in self._contracted(whole)))

    def _without_diagonals(self, rest: Sequence[Term], within: Sequence[_Group]) -> list[Term] | None:
        """Terms less those at which pairs are equal, for sums over all pairs; None where these are not among them."""
        try:
            before = self._collected(rest)
            after = self._collected([*rest, *(negate(each.on_diagonal) for each in within)])
        except _Irregular:
            return None
        return after if len(after) < len(before) or not within else None

    def _collected(self, terms: Sequence[Term]) -> list[Term]:
        """The terms of a sum, multiplied out, that are not multiples of each other."""
        return _added_up(self.settled(each.term) for each in self._contracted(self._products(add(*terms), None)))

    def _contracted(self, products: Sequence[SummedProduct]) -> list[SummedProduct]:
        return contracted(products, self.definitions, self.names)


def _added_up(terms: Iterable[Term]) -> list[Term]:
    """The terms of a sum in normal form, with those that are multiples of each other as one; none that is 0."""
    sums: dict[Term, Term] = {}
    for each in terms:
        number, rest = coefficient_of(normal(each))
        sums[rest] = add(sums.get(rest, ZERO), number)
    return [mul(number, rest) for rest, number in sums.items() if number is not ZERO and rest is not ZERO]


@dataclass(frozen=True)
class _Group:
    """Σ over first, second and more of coefficient · vectors, of numbers x and y at first and second.

    `symmetric` says that vectors are the same with first and second exchanged.
    """

    gap: Term
    more: tuple[Var, ...]
    vectors: Term
    coefficient: Term
    symmetric: bool

    @property
    def first(self) -> Var:
        """The index of x."""
        return _pair(_nodes(self.gap))[0]

    @property
    def second(self) -> Var:
        """The index of y."""
        return _pair(_nodes(self.gap))[1]

    @property
    def unequal(self) -> Term:
        """That the two differ."""
        return unequal(affine([(self.first, 1), (self.second, -1)]))

    def having(self, coefficient: Term) -> _Group:
        """With another coefficient."""
        return replace(self, coefficient=coefficient)

    @property
    def term(self) -> Term:
        """It as a term."""
        return total((self.first, self.second, *self.more), mul(self.coefficient, self.vectors))

    @property
    def on_diagonal(self) -> Term:
        """The part of it at which first and second are equal."""
        both = substitute(mul(self.coefficient, self.vectors), {self.second: self.first})
        return total((self.first, *self.more), _nodes_met(both))

    @property
    def numbers(self) -> tuple[Term, Term]:
        """The number x, as a level and as what that is the level of."""
        level = _nodes(self.gap)[0]
        levels = level.function
        row = MATRIX_TABLE.get(levels.name) if isinstance(levels, Primitive) else None
        numbers = Primitive(row.levels_of, levels.children) if row and row.levels_of else levels
        return level, Apply(numbers, level.arguments)

    def as_numbers(self, term: Term) -> Term:
        """A term with the numbers in place of their levels."""
        level, number = self.numbers
        return Replacing({level: number, self.at_second(level): self.at_second(number)}).run(term)

    def at_second(self, term: Term) -> Term:
        """A function of x at y."""
        return substitute(term, {self.first: self.second})


_Key = tuple[Term, Term]  # the gap and the vectors of a group


class _Groups:
    """Collects what stands beside equal vectors, of products and of these with their pairs exchanged."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.forms: dict[Any, int] = {}  # of sums within vectors, which are compared
        self.indices: dict[tuple[int, Type], Var] = {}
        self.groups: dict[_Key, _Group] = {}
        self.exchanged: dict[_Key, set[_Key]] = {}  # what groups were with their pairs exchanged

    def take(self, whole: SummedProduct) -> None:
        """Add half of a product with a gap within a pair, and half of it with its pair exchanged."""
        (gap, differ), *more = _gaps(whole.factors)
        one, other = _pair(_nodes(gap))
        summed = one in whole.indices and other in whole.indices and one.type == other.type
        if more or whole_power(gap)[1] != -1 or not summed:
            raise _Irregular
        left = SummedProduct(
            tuple(each for each in whole.indices if each is not one and each is not other),
            tuple(each for each in whole.factors if each is not gap and each is not differ),
        )
        first, second = self._index(0, one), self._index(1, other)
        gap = substitute(gap, {one: first, other: second})
        groups = [
            self._group(gap, changed(left, dict(zip((one, other), places, strict=True))))
            for places in ((first, second), (second, first))
        ]
        keys = [(gap, group.vectors) for group in groups]
        for group, scale, key, exchanged in zip(groups, (HALF, negate(HALF)), keys, keys[::-1], strict=True):
            before = self.groups.get(key, group.having(ZERO))
            self.groups[key] = before.having(add(before.coefficient, mul(scale, group.coefficient)))
            self.exchanged.setdefault(key, set()).add(exchanged)

    def found(self) -> Iterator[_Group]:
        """What has been collected, once of each two that are one another's with the pair exchanged."""
        done = set[_Key]()
        for key, group in self.groups.items():
            (other, *more) = self.exchanged[key]
            both = not more and self.exchanged[other] == {key}
            if not both:  # canonical forms have told apart what is equal; each stands for itself then
                yield group
            elif other not in done:
                done.add(key)
                symmetric = other == key
                yield replace(group, symmetric=symmetric).having(mul(Number(1 if symmetric else 2), group.coefficient))

    def _group(self, gap: Term, left: SummedProduct) -> _Group:
        """A product with names of its own for its indices, so that equal vectors are equal terms."""
        plain = _Group(gap, (), ONE, ONE, symmetric=False)
        pair = {plain.first, plain.second}
        numbers = {*plain.numbers, *map(plain.at_second, plain.numbers)}
        scale = [each for each in left.factors if _is_coefficient(each, pair, numbers)]
        vectors = mul(*(each for each in left.factors if not _is_coefficient(each, pair, numbers)))
        summed = [each for each in left.indices if each in vectors.free]
        order = canonical_order(Sum(tuple(summed), vectors)) if summed else ()
        order = (*order, *(each for each in left.indices if each not in order))
        named: dict[Var, Term] = {each: self._index(2 + n, each) for n, each in enumerate(order)}
        sign, vectors = coefficient_of(canonical(substitute(vectors, named), self.forms))
        coefficient = mul(sign, *(substitute(each, named) for each in scale))
        more = tuple(self._index(2 + n, each) for n, each in enumerate(order))
        return _Group(gap, more, vectors, coefficient, symmetric=False)

    def _index(self, number: int, like: Var) -> Var:
        if (number, like.type) not in self.indices:
            self.indices[number, like.type] = self.names.fresh(Var("i", like.type))
        return self.indices[number, like.type]


def _gaps(factors: Sequence[Term]) -> list[tuple[Term, Term]]:
    """Gaps among factors, with the conditions that the two indices differ."""
    differing = {frozenset(_pair_indices(each)): each for each in factors if isinstance(each, Unequal)}
    gaps = ((each, frozenset(_pair(_nodes(each)))) for each in factors if _nodes(each))
    return [(each, differing[pair]) for each, pair in gaps if pair in differing]


def _powers(factor: Term) -> list[Term]:
    """A whole power of a product, or of a difference of squares, as powers of its factors."""
    base, exponent = whole_power(factor)
    if isinstance(base, Add) and len(base.terms) == 2:
        added, less = (
            [root for root, power in map(whole_power, terms) if power == 2]
            for terms in (base.terms, map(negate, base.terms))
        )
        if len(added) == len(less) == 1:
            base = mul(add(added[0], negate(less[0])), add(added[0], less[0]))
    return [raised(each, exponent) for each in factors_of(base)] if isinstance(base, Mul) else [factor]


def _is_coefficient(factor: Term, pair: set[Var], numbers: Container[Term]) -> bool:
    """Whether a factor is a number, a condition on an index of the pair, or a function of the numbers there."""
    if isinstance(factor, Number):
        return True
    if isinstance(factor, Indicator):
        indices = [each for each in factor.free if not isinstance(each.type, Whole)]
        return len(indices) == 1 and {*indices} <= pair and not factor.modulus
    if factor in numbers:
        return True
    inside = [each for each in factor.children if not each.free.isdisjoint(pair)]
    if not isinstance(factor, Add | Mul | Primitive) or not inside:
        return False
    return all(_is_coefficient(each, pair, numbers) for each in inside)


def _cases(group: _Group, settled: Callable[[Term], Term]) -> Iterator[tuple[_Case, Term]]:
    """What stands beside vectors where conditions hold of first and of second, or do not: these conditions of first."""
    found = dict.fromkeys(
        substitute(each, {group.second: group.first})
        for each in subterms(group.coefficient)
        if isinstance(each, Indicator)
    )
    conditions = [each for n, each in enumerate(found) if opposite(each) not in [*found][:n]]
    if len(conditions) > MOST_CONDITIONS:
        raise _Irregular
    every = [*product(*((each, opposite(each) or ZERO) for each in conditions))]
    for one, other in product(every, every):
        met = dict[Term, Term]()
        for index, chosen in ((group.first, one), (group.second, other)):
            for each in chosen:
                here = substitute(each, {group.first: index})
                met |= {here: ONE, opposite(here) or ZERO: ZERO}
        coefficient = Replacing(met).run(group.coefficient)
        if settled(coefficient) is ZERO or (group.symmetric and every.index(one) > every.index(other)):
            continue
        if one != other:
            yield (one, other), mul(Number(1 + group.symmetric), coefficient)
        elif settled(_nodes_in_order(group.as_numbers(group.at_second(coefficient)))) is ZERO:
            yield (one, other), coefficient
        else:
            raise _Irregular


def _difference(term: Term, group: _Group) -> Term:
    """(f(x, y) − f(y, y)) / (x − y) of a function f(x, y)."""
    if group.first not in term.free:
        return ZERO
    if term in group.numbers:
        return ONE
    base, exponent = whole_power(term)
    if isinstance(term, Add):
        return add(*(_difference(each, group) for each in term.terms))
    if isinstance(term, Mul):
        return _of_product(term.factors, group)
    if exponent > 1:
        powers = (mul(raised(base, n), group.at_second(raised(base, exponent - 1 - n))) for n in range(exponent))
        return mul(_difference(base, group), add(*powers))
    if exponent < 0:
        inverse = raised(base, -exponent)
        return mul(MINUS_ONE, term, group.at_second(term), _difference(inverse, group))
    if not isinstance(term, Primitive):
        raise _Irregular
    if name := divided_function(term):
        return add(*(_of_node(name, term.arguments, n, group) for n in range(len(term.arguments))))
    if term.name in DIVIDED:
        return _of_node(term.name, term.arguments, 0, group)
    if term.name == "power" and isinstance(term.arguments[1], Number):
        return _of_root(term.arguments[0], term.arguments[1], group)
    if term.name == "sqrt":
        return _of_root(term.arguments[0], HALF, group)
    if term.name in BY_OTHERS:
        return _difference(BY_OTHERS[term.name](*term.arguments), group)
    raise _Irregular


def _of_product(factors: Sequence[Term], group: _Group) -> Term:
    """That of a product: ½ (f(x) + f(y)) g[x, y] + ½ f[x, y] (g(x) + g(y)), which is symmetric."""
    constant = [each for each in factors if group.first not in each.free]
    first, *rest = (each for each in factors if group.first in each.free)
    if not rest:
        return mul(*constant, _difference(first, group))
    others = mul(*rest)
    sums = (add(each, group.at_second(each)) for each in (first, others))
    differences = _difference(others, group), _difference(first, group)
    return mul(HALF, *constant, add(*(mul(one, other) for one, other in zip(sums, differences, strict=True))))


def _of_node(name: str, nodes: Sequence[Term], place: int, group: _Group) -> Term:
    """That of a function, or of its divided difference, by one node: one of a node more, times that of the node."""
    before = map(group.at_second, nodes[: place + 1])
    return mul(_difference(nodes[place], group), divided(name, (*before, *nodes[place:])))


def _of_root(base: Term, exponent: Term, group: _Group) -> Term:
    """That of a power whose exponent is not whole: a power of the root, or an exponential."""
    doubled = mul(Number(2), exponent)
    root = function("sqrt", base)
    if exponent is HALF:
        return mul(_difference(base, group), raised(add(root, group.at_second(root)), -1))
    if isinstance(doubled, Number) and isinstance(doubled.real, int):
        return _difference(raised(root, doubled.real), group)
    return _difference(function("exp", mul(exponent, function("log", base))), group)


def _nodes_met(term: Term) -> Term:
    """A term with derivatives in place of divided differences of nodes that are one."""
    return Replacing({each: divided(name, each.children) for each, name in _divided(term)}).run(term)


def _nodes_in_order(term: Term) -> Term:
    """A term in which the nodes of divided differences, which are symmetric in these, have an order of their own."""
    ordered = ((each, name, sorted(each.children, key=form_key)) for each, name in _divided(term))
    return Replacing({each: divided(name, nodes) for each, name, nodes in ordered}).run(term)


def _divided(term: Term) -> Iterator[tuple[Term, str]]:
    """The divided differences in a term, with their functions."""
    return ((each, name) for each in subterms(term) if (name := divided_function(each)))
