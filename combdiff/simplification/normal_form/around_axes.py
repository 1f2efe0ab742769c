"""δ's around an axis: they say of a summed index that it is an expression reduced modulo its size.

    Σ_i δ(d, (i − 1) mod n)·f(i)                     is   Σ_i δ(i, (d + 1) mod n)·f(i)
    Σ_i δ(i, (d + 1) mod n)·δ(k, (i + 2) mod n)·y[k] is   Σ_i δ(i, (d + 1) mod n)·δ(k, (d + 3) mod n)·y[k]
    Σ_k [1 ≤ k ≤ 3]·[k ≡ d (mod 3)]·f(k)             is   Σ_i δ(i, (d − 1) mod 3)·f(i + 1)

Invariant: the value of the product is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from combdiff.ir import (
    ONE,
    ZERO,
    Apply,
    Cyclic,
    Delta,
    Indicator,
    Range,
    Real,
    Size,
    Space,
    SummedProduct,
    Term,
    Unequal,
    Var,
    Whole,
    affine,
    affine_parts,
    as_integer,
    delta,
    denominator,
    equal_modulo,
    exchanged,
    from_the_end,
    index_left,
    indicator,
    mul,
    number_left,
    read_forwards,
    reduced_index,
    relation,
    remainder,
    remainder_parts,
    size_form,
    size_parts,
    size_sum,
    substitute,
    subterms,
    type_of,
    unequal,
    within_a_turn,
)
from combdiff.polyhedra import implied, is_inside, linear, plain_congruence, premises_of
from combdiff.simplification.normal_form.conditions import compares_bare_indices, compares_indices


def around_axes(product: SummedProduct) -> SummedProduct:
    """The product, in which δ's around an axis say what summed indices are, and these stand where others ask for them.

    It is the one that is given where nothing changes.
    """
    rebased = _counted_from_bounds(product)
    indices = rebased.indices
    factors = [_placed(f, indices) for f in rebased.factors]
    for place in range(len(factors)):
        factor = factors[place]
        found = reduced_index(factor) if isinstance(factor, Delta) else None
        if found and found[0] in indices and found[0] not in found[1].free:
            factors = read_forwards(factors, place)
            found = reduced_index(factors[place]) or found  # type: ignore[arg-type]
            told = [f if n == place else _told_around(f, found, indices) for n, f in enumerate(factors)]
            if all(found[0] not in f.free for n, f in enumerate(told) if n != place):  # Σ_k δ(k, …) is 1
                indices = tuple(index for index in indices if index is not found[0])
                told[place] = ONE
            else:  # an index that is read still is told by the conditions on it
                told = [
                    f if n == place else _told_around(f, found, indices, bounds=False) for n, f in enumerate(factors)
                ]
            factors = told
    same = indices == product.indices and factors == list(product.factors)
    return product if same else SummedProduct.over(indices, factors)


def _counted_from_bounds(product: SummedProduct) -> SummedProduct:
    """The product with indices that run once around an axis from their bounds on: i = k − 1 of k = 1, 2, 3 modulo 3."""
    for index in product.indices:
        sizes = {size for factor in product.factors if index in factor.free for size in _turned_by(factor)}
        if not sizes or not isinstance(index.type, Range):
            continue
        starts, ends = _bounds(index, product.factors)
        start, end = next(iter(starts), affine([])), next(iter(ends), affine([(size_form(index.type.size), 1)], -1))
        count = affine([(end, 1), (start, -1)], 1)
        size = next((size for size in sizes if size_form(size) is count and size != index.type.size), None)
        beyond = affine([(size_form(index.type.size), 1), (end, -1)], -1)
        if size is None or len(starts) > 1 or len(ends) > 1 or not (_is_natural(start) and _is_natural(beyond)):
            continue
        new = Var(index.name, Range(size))
        left = (f for f in product.factors if f not in (*starts.values(), *ends.values()))
        factors = [substitute(factor, {index: affine([(new, 1), (start, 1)])}) for factor in left]
        return SummedProduct.over((new if i is index else i for i in product.indices), factors)
    return product


def _is_natural(form: Term) -> bool:
    """Whether a form of sizes is not negative, whatever these are."""
    return implied(linear(form), premises_of(form.free))


def _turned_by(factor: Term) -> Iterator[Size]:
    """The sizes modulo which a factor asks for a place."""
    if isinstance(factor, Indicator) and factor.modulus:
        yield factor.modulus
    if isinstance(factor, Delta) and factor.lookup and (parts := remainder_parts(factor.lookup[1])):
        yield parts[1]


def _bounds(index: Var, factors: Sequence[Term]) -> tuple[dict[Term, Term], dict[Term, Term]]:
    """The first and the last places of an index that bounds of it by sizes and numbers say, with these."""
    starts, ends = dict[Term, Term](), dict[Term, Term]()
    for factor in factors:
        if isinstance(factor, Indicator) and not factor.modulus and index in factor.free:
            coefficients = dict(affine_parts(factor.form)[0])
            sign = coefficients.pop(index)
            if abs(sign) == 1 and all(isinstance(var.type, Whole) for var in coefficients):
                rest = affine([(factor.form, -sign), (index, 1)])  # what the index is not less, or not more, than
                (starts if sign > 0 else ends)[rest] = factor
    return starts, ends


def _placed(factor: Term, indices: Sequence[Var]) -> Term:
    """A condition as a δ around an axis that says what a summed index is: of δ's, and of congruences on one axis.

    Where it says that of none, and the size is a number, it is a congruence, as conditions on whole numbers are.
    """
    if isinstance(factor, Delta):
        placed = turned(factor, indices)
        if placed is factor and (told := _told_inside(factor, indices)) is not None:
            return told
        found = reduced_index(placed) if isinstance(placed, Delta) else None
        if found is None:
            return placed
        index, form, size = found
        is_place = index_left(form, size) is not None  # as 1 mod 3 is
        if index not in indices and isinstance(size, int) and not is_place:
            return indicator(affine([(form, 1), (index, -1)]), size)
        return equal_modulo(*found) if is_place or within_a_turn(form, size) is not form else placed
    if isinstance(factor, Indicator) and (size := factor.modulus):
        parts, offset = affine_parts(factor.form)
        form = affine([part for part in parts if part[1] % size], offset)
        if all(getattr(v.type, "size", None) == size for v in form.free):
            return _solved(form, size, indices) or factor
    return factor


def _told_inside(factor: Delta, indices: Sequence[Var]) -> Term | None:
    """[1 ≤ d ≤ 3] δ(j, d mod 3) for a δ((j - 1) mod 3, d - 1) of a summed j, and δ(d, 0) for a δ((d - 1) mod 3, 2).

    Where the place is a number the one index in the form is told by it, summed or not; None for other δ's.
    """
    place, value = factor.lookup or (ZERO, ZERO)
    parts = remainder_parts(value)
    if parts is None or factor.domain != Range(parts[1]) or not place.free.isdisjoint(indices):
        return None
    form, size = parts
    is_number = not place.free and isinstance(size, int) and len(form.free) == 1
    solved = _solved(affine([(form, 1), (place, -1)]), size, tuple(form.free) if is_number else indices)
    inside = (indicator(place), indicator(affine([(size_form(size), 1), (place, -1)], -1)))
    return None if solved is None else mul(*inside, solved)


def turned(factor: Delta, indices: Sequence[Var]) -> Term:
    """A δ around an axis, or on a cycle, as one that says what a summed index is; itself where there is none."""
    found = reduced_index(factor)
    if not found and isinstance(other := _from_the_start(factor), Delta) and other is not factor:
        return turned(other, indices)
    if found and found[0] in indices:
        return equal_modulo(*found)
    if isinstance(cycle := factor.domain, Cyclic):
        if factor.lookup and (parts := remainder_parts(factor.lookup[1])) and parts[1] == cycle.size:
            factor = Delta(factor.lookup[0], parts[0], cycle)  # a cycle compares modulo its size
        if compares_indices(factor) and not compares_bare_indices(factor):
            return _solved(affine([(factor.left, 1), (factor.right, -1)]), cycle.size, indices) or factor
    elif around := _reduced(factor):
        return _solved(affine([(around[1], 1), (around[0], -1)]), around[2], indices) or factor
    return factor


def _reduced(factor: Delta) -> tuple[Term, Term, Size] | None:
    """`(place, form, n)` where a δ says that a place of an axis of n elements, such as 2d + k, is `form mod n`."""
    parts = remainder_parts(factor.lookup[1]) if factor.lookup else None
    if factor.lookup and parts and factor.domain == Range(parts[1]) and is_inside(factor.lookup[0], factor.domain):
        return factor.lookup[0], *parts
    return reduced_index(factor)


def _equal_around(place: Term, form: Term, size: Size) -> Term:
    """δ(place, form mod size), plain where the form is a place of the axis."""
    axis = Range(size)
    if is_inside(form, axis) and (not isinstance(place, Var) or place.type == axis):
        return delta(place, form, axis)
    return equal_modulo(place, form, size) if isinstance(place, Var) else delta(place, remainder(form, size), axis)


def _from_the_start(factor: Delta) -> Term:
    """δ(i, n - 1 - (form mod n)) of a δ(n - 1 - i, form mod n); itself where it is none."""
    parts = remainder_parts(factor.lookup[1]) if factor.lookup and isinstance(factor.domain, Range) else None
    if factor.lookup and parts and parts[1] == getattr(factor.domain, "size", None):
        place = factor.lookup[0]
        for index in place.free:
            if index.type == factor.domain and place is from_the_end(index):
                return equal_modulo(index, substitute(place, {index: parts[0]}), parts[1])
    return factor


def _solved(form: Term, size: Size, indices: Sequence[Var]) -> Term | None:
    """`form ≡ 0 (mod size)` as what it says a summed index of so many values is: (j − k)/2 ≡ d (mod n) of j < 2n."""
    scale = denominator(form)
    form, size = affine([(form, scale)]), size_sum((size, scale))
    for index, sign in affine_parts(form)[0]:
        if index in indices and abs(sign) == 1 and isinstance(index.type, Range | Cyclic) and index.type.size == size:
            return equal_modulo(index, affine([(form, -sign), (index, 1)]), size)
    return None


def _told_around(term: Term, told: tuple[Var, Term, Size], indices: Sequence[Var], *, bounds: bool = True) -> Term:
    """A term with `form mod n` for an index where it asks for that modulo n; a second such δ says what another is.

    With `bounds` conditions on the index ask for that number, too; those that it meets are left out in any case.
    """
    index, form, size = told
    others: dict[Term, Term] = {}
    for node in subterms(term):
        if index not in node.free:
            continue
        if isinstance(node, Indicator):
            bound = _bound_around(node, told)
            others[node] = bound if bounds or bound is ONE else node
        elif (parts := remainder_parts(node)) and _turns(index, size, parts):
            others[node] = number_left(substitute(parts[0], {index: form}), parts[1])
        elif isinstance(node, Delta) and (found := _reduced(node)) and index not in found[0].free:
            if _turns(index, size, found[1:]):
                others[node] = _equal_around(found[0], substitute(found[1], {index: form}), found[2])
        elif node is term and isinstance(node, Delta) and (found := reduced_index(node)):
            if found[0] is index and (other := _solved(affine([(form, 1), (found[1], -1)]), size, indices)):
                others[node] = other
        elif isinstance(node, Unequal) and isinstance(node.domain, Cyclic) and node.domain.size == size:
            others[node] = unequal(substitute(node.form, {index: form}), node.domain)
        elif isinstance(node, Apply) and isinstance(space := type_of(node.function), Space):
            at = [
                substitute(place, {index: form}) if isinstance(axis, Cyclic) and axis.size == size else place
                for place, axis in zip(node.arguments, space.axes, strict=True)
            ]
            others[node] = Apply(node.function, tuple(at))
    return exchanged(term, others) if others else term


def _turns(index: Var, size: Size, place: tuple[Term, Size]) -> bool:
    """Whether a place around an axis is the same wherever an index is one around its own of that size."""
    share = Fraction(dict(affine_parts(place[0])[0]).get(index, 0))
    (names, offset), (others, rest) = size_parts(size), size_parts(place[1])
    pairs = [(share * offset, rest), *((share * n, others.get(name, 0)) for name, n in names.items())]
    ratios = {many / one for many, one in pairs if one}
    return all(one or not many for many, one in pairs) and len(ratios) == 1 and ratios.pop().denominator == 1


def _bound_around(condition: Indicator, told: tuple[Var, Term, Size]) -> Term:
    """A bound of an index by sizes, numbers and indices that count as one of the number `form mod n` that it is.

    What it asks modulo a divisor of n it asks of the form.
    """
    index, form, size = told
    parts = affine_parts(condition.form)[0]
    sign = dict(parts).get(index, 0)
    if not condition.modulus and implied(linear(condition.form), premises_of(condition.free)):
        return ONE
    names, offset = size_parts(size)
    if condition.modulus and not any(sign * n % condition.modulus for n in (*names.values(), offset)):
        return plain_congruence(Indicator(substitute(condition.form, {index: form}), condition.modulus))
    rest = affine([(condition.form, -sign), (index, 1)])
    if condition.modulus or abs(sign) != 1 or any(isinstance(var.type, Cyclic | Real) for var in rest.free):
        return condition
    place, bound = remainder(form, size), as_integer(rest)
    return relation("less_equal", *((bound, place) if sign > 0 else (place, bound)))
