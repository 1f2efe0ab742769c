"""What the values of a program repeat, by a name: sums, and factors that stand together in several products.

    exp(−(x² + y²)/(2 s²)) ((x² + y²)/(2 s²) − 1)    →   t = (x² + y²)/(2 s²) in exp(−t) (t − 1)
    2 b (a[d] − b c[d]/s)/s                          →   t = b/s in 2 t (a[d] − t c[d])
    f(q[d] − q[d − 1]) − f(q[d + 1] − q[d])           →   t[i] = f(q[i + 1] − q[i]) in t[d − 1] − t[d], around an axis

Sharing binds what is work; what takes hardly any is repeated in a print as often as it is read.

Invariant: the value is unchanged; nothing is read outside of a tensor that was not read there before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, count, permutations
from math import floor

from combdiff.ir import (
    ZERO,
    Add,
    Affine,
    Cyclic,
    Guard,
    Implicit,
    Lambda,
    Mul,
    Names,
    Number,
    Range,
    Rewriter,
    Scan,
    Space,
    Sum,
    Symmetric,
    Term,
    Var,
    add,
    affine,
    apply,
    canonical_names,
    counts_modulo,
    dtype_of,
    factors_of,
    free_indices,
    inline_single_uses,
    is_matrix_function,
    items_of,
    joined,
    lambda_,
    let,
    mul,
    negate,
    raised,
    remembered,
    split,
    substitute,
    subterms,
    type_of,
    values_of,
)
from combdiff.polyhedra import doubtful_accesses
from combdiff.records import dataclass
from combdiff.simplification.egraph.extraction import order_key, ordered
from combdiff.simplification.normal_form.common_subnetworks import without_multiples
from combdiff.simplification.normal_form.expansion import multiplied_out
from combdiff.simplification.normal_form.lengths import length
from combdiff.simplification.normal_form.quotients import exponents

SHORTEST = 5  # symbols of what gets a name: t = 1 + x is no easier to read where it is read twice


def with_repeated_named(body: Term) -> Iterator[Term]:
    """The let program with a part that its values hold more than once as a definition; each such part alone."""
    bindings, result = split(body)
    body = let(((var, _aligned(value)) for var, value in bindings), joined(result, map(_aligned, items_of(result))))
    every = [part for value in values_of(body) for part in _parts(value)]
    tried: set[Term] = set()
    for part in (*_repeated(every), *_sums(every), *_products(every), *_quotients(every)):
        if (form := _placed(part).value) not in tried:
            tried.add(form)
            yield from _named(body, part)
    yield from _with_differences_named(body)


def _aligned(term: Term, around: frozenset[str] = frozenset()) -> Term:
    """A term with summed indices named by how many stand around them: those of several Σ's side by side are alike."""
    if isinstance(term, Implicit | Scan):
        return term
    if isinstance(term, Sum):
        free = (name for name in map("@s{}".format, count()) if name not in around)
        indices = tuple(Var(next(free), index.type) for index in term.indices)
        inner = substitute(term.body, dict(zip(term.indices, indices, strict=True)))
        return Sum(indices, _aligned(inner, around.union(index.name for index in indices)))
    around = around.union(var.name for var in term.bound)
    children = tuple(_aligned(child, around) for child in term.children)
    return term if children == term.children else term.with_children(children)


def _parts(value: Term) -> Iterator[Term]:
    """The sums, products and determinants of a value, as often as they are printed; equations and steps are none."""
    todo = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, Implicit | Scan):
            continue
        todo.extend(node.children)
        if isinstance(node, Add | Mul) or _is_number_of_matrix(node):
            yield node


def _is_number_of_matrix(node: Term) -> bool:
    """Whether a part is a number such as det(X), which has a name as soon as that is shorter."""
    space = type_of(node) if is_matrix_function(node) else None
    return isinstance(space, Space) and not space.order


def _repeated(parts: list[Term]) -> Iterator[Term]:
    """The parts that occur more than once, up to names of indices, places around axes and signs."""
    counts = Counter(map(_form, parts))
    yield from (part for part in parts if counts[_form(part)] > 1)


def _sums(parts: list[Term]) -> Iterator[Term]:
    """The terms that two sums have in common, up to names of indices, where these are not all of them."""
    sums = list({_form(part): part for part in parts if isinstance(part, Add)}.values())
    for one, other in permutations(sums, 2):
        common = _terms_like(one, other)
        if 1 < len(common) < len(one.terms):
            yield add(*common)


def _terms_like(sum_: Add, other: Add) -> list[Term]:
    """The terms of a sum that are like those of another one."""
    forms = {*map(_form, other.terms)}
    return [term for term in sum_.terms if _form(term) in forms]


def _products(parts: list[Term]) -> Iterator[Term]:
    """The products of what two products have in common."""
    tables = [exponents(part) for part in parts if isinstance(part, Mul)]
    for one, other in combinations(tables, 2):
        common = {base: _less(n, other.get(base, 0)) for base, n in one.items() if not isinstance(base, Number)}
        if sum(n != 0 for n in common.values()) > 1:
            yield mul(*(raised(base, n) for base, n in common.items() if n))


def _quotients(parts: list[Term]) -> Iterator[Term]:
    """The quotients whose dividend is a sum that occurs elsewhere: (x − m)/s beside x − m, which then is t s."""
    sums = Counter(_placed(part).value for part in parts if isinstance(part, Add))
    for part in parts:
        dividend = _dividend(part)
        if dividend is not None and sums[_placed(dividend).value] > 1:
            yield part


def _dividend(part: Term) -> Add | None:
    """The sum that a product divides by all of its other factors, which have no other indices."""
    powers = exponents(part) if isinstance(part, Mul) else {}
    others = {base: n for base, n in powers.items() if not isinstance(base, Number)}
    sums = [base for base, n in others.items() if isinstance(base, Add) and n == 1]
    if len(sums) != 1 or any(n > 0 for base, n in others.items() if base is not sums[0]):
        return None
    return sums[0] if {*free_indices(part)} == {*free_indices(sums[0])} else None


def _less(one: int, other: int) -> int:
    """The power that both have."""
    return 0 if one * other <= 0 else min(one, other, key=abs)


@dataclass(frozen=True)
class _Placed:
    """A part as a value, of its indices, that is read at places: x[d − 1] − x[d] is i ↦ x[i] − x[i + 1] at d − 1."""

    value: Term
    places: tuple[Term, ...]


@remembered
def _placed(part: Term) -> _Placed:
    indices = free_indices(part)
    around = (index for index in indices if isinstance(index.type, Cyclic) and counts_modulo(index, part))
    moves = {index: _first_place(part, index) for index in around}
    away = {index: affine([(index, 1)], -by) for index, by in moves.items() if by}
    value = canonical_names(lambda_(indices, substitute(part, away) if away else part))
    return _Placed(value, tuple(affine([(index, 1)], moves.get(index, 0)) for index in indices))


def _first_place(part: Term, index: Var) -> int | Fraction:
    """The least of the places around its axis that a part reads with an index, 0 for the index itself."""
    reading = [node for node in subterms(part) if index in node.children]
    return min(node.offset if isinstance(node, Affine) else 0 for node in reading)


@remembered
def _form(part: Term) -> Term:
    """A part up to the names of its indices, their places around axes, and its sign."""
    return min((ordered(_placed(each).value) for each in (part, _negative(part))), key=order_key)


def _negative(part: Term) -> Term:
    return add(*map(negate, part.terms)) if isinstance(part, Add) else negate(part)


def _named(body: Term, part: Term) -> Iterator[Term]:
    """The program with a name for a part, if it can have one that is worth it; conditions have none."""
    indices, value = free_indices(part), _placed(part).value
    if all(isinstance(factor, Guard) for factor in factors_of(part)):
        return
    if not all(isinstance(i.type, Range | Cyclic | Symmetric) for i in indices) or doubtful_accesses(value):
        return
    names = Names(body)
    name = names.fresh(Var("t", Space(*(i.type for i in indices), dtype=dtype_of(part))))  # type: ignore[arg-type]
    naming = _ReadByName(name, part)
    bindings, result = split(body)
    renamed = [(var, naming.run(old)) for var, old in bindings]
    items = [naming.run(item) for item in items_of(result)]
    first = next((n for n, (_, new) in enumerate(renamed) if name in new.free), len(renamed))
    if not part.free.isdisjoint(var for var, _ in renamed[first:]):
        return
    own = names.indices(name.type.axes)  # type: ignore[union-attr]
    renamed.insert(first, (name, lambda_(own, apply(value, own))))
    found = inline_single_uses(without_multiples(let(renamed, joined(result, items))))
    defined = dict(split(found)[0]).get(name)
    if defined is not None and (length(defined) >= SHORTEST or _is_number_of_matrix(part)):
        yield found


def _with_differences_named(body: Term) -> Iterator[Term]:
    """The program with a value that is a difference of neighbours around an axis by what stands between these.

    So are derivatives of sums over bonds, which the laws take apart: k (2 q[d] − q[d − 1] − q[d + 1]) and other forces
    are t[d − 1] − t[d].
    """
    bindings, result = split(body)
    values = [*(value for _, value in bindings), *items_of(result)]
    for n, value in enumerate(values):
        axes = [parameter.type for parameter in value.parameters] if isinstance(value, Lambda) else []
        if isinstance(value, Lambda) and len(axes) == 1 and isinstance(cycle := axes[0], Cyclic):
            (index,) = value.parameters
            names = Names(body)
            between, rest = _between(index, multiplied_out(value.body, names))
            if between is ZERO:
                continue
            name = names.fresh(Var("t", Space(cycle, dtype=dtype_of(between))))
            before, here = (apply(name, (affine([(index, 1)], by),)) for by in (-1, 0))
            values[n : n + 1] = Lambda((index,), between), Lambda((index,), add(before, negate(here), rest))
            variables = [*(var for var, _ in bindings[:n]), name, *(var for var, _ in bindings[n:])]
            yield inline_single_uses(
                let(zip(variables, values, strict=False), joined(result, values[len(variables) :]))
            )
            values[n : n + 2] = [value]


def _between(index: Var, sum_: Term) -> tuple[Term, Term]:
    """What the terms of a sum that are differences around an axis are differences of; the other terms."""
    shifted: dict[Term, dict[int | Fraction, Term]] = {}
    for term in sum_.terms if isinstance(sum_, Add) else ():
        number = mul(*(factor for factor in factors_of(term) if isinstance(factor, Number)))
        rest = mul(*(factor for factor in factors_of(term) if not isinstance(factor, Number)))
        place = _first_place(rest, index) if index in rest.free and counts_modulo(index, rest) else 0
        counts = shifted.setdefault(canonical_names(_moved(rest, index, -place)), {})
        counts[place] = add(counts.get(place, ZERO), number)
    found: dict[Term, Term] = {}
    others = []
    for term, counts in shifted.items():
        whole = all(place == floor(place) for place in counts)
        if index in term.free and whole and add(*counts.values()) is ZERO:
            constant = mul(*(factor for factor in factors_of(term) if index not in factor.free))
            moving = mul(*(factor for factor in factors_of(term) if index in factor.free))
            running: Term = ZERO
            for place in range(floor(min(counts)), floor(max(counts))):
                running = add(running, counts.get(place, ZERO))
                force = mul(running, _moved(moving, index, place + 1))
                found[constant] = add(found.get(constant, ZERO), force)
        else:
            others += [mul(number, _moved(term, index, place)) for place, number in counts.items()]
    return add(*(mul(constant, sum_) for constant, sum_ in found.items())), add(*others)


def _moved(term: Term, index: Var, by: int | Fraction) -> Term:
    return substitute(term, {index: affine([(index, 1)], by)}) if by else term


class _ReadByName(Rewriter):
    """Reads a part by its name, a product also among other factors, the dividend of a quotient by it."""

    def __init__(self, name: Var, part: Term) -> None:
        super().__init__()
        self.name, self.part, self.form, self.value = name, part, _form(part), ordered(_placed(part).value)
        self.powers = exponents(part) if isinstance(part, Mul) else {}
        self.dividend = _dividend(part)

    def node(self, term: Term) -> Term:
        """The term with the part by its name in it."""
        if isinstance(term, Implicit | Scan):
            return term
        if type(term) is type(self.part) and (read := self._read(term)):
            return read
        new = self.inside(term)
        if isinstance(new, Add) and isinstance(self.part, Add):
            like = _terms_like(new, self.part)
            if len(like) == len(self.part.terms) < len(new.terms) and (read := self._read(add(*like))):
                return add(read, *(each for each in new.terms if each not in like))
        if isinstance(new, Mul) and self.powers:
            found = exponents(new)
            often = min(found.get(base, 0) // n for base, n in self.powers.items())
            if often > 0:
                rest = (raised(base, n - often * self.powers.get(base, 0)) for base, n in found.items())
                return mul(*rest, *[apply(self.name, _placed(self.part).places)] * often)
        if new is self.dividend:
            rest = (raised(base, -n) for base, n in self.powers.items() if base is not self.dividend)
            return mul(*rest, apply(self.name, _placed(self.part).places))
        return new

    def _read(self, part: Term) -> Term | None:
        """What is the part, or the negative of it, by its name; None for what is neither."""
        if _form(part) is not self.form:
            return None
        placed = _placed(part)
        read = apply(self.name, placed.places)
        if ordered(placed.value) is self.value:
            return read
        return negate(read) if ordered(_placed(_negative(part)).value) is self.value else None
