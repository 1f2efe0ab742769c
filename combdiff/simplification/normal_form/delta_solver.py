"""The δ's and conditions of a network, solved exactly over the integers.

    Σ_{i,k} δ(i + k, d)·y[i]·w[k]       becomes  Σ_k [0 ≤ d − k < m]·y[d − k]·w[k]
    Σ_i δ(2i, d)·y[i]                   becomes  [d ≡ 0 (mod 2)]·y[d/2]
    Σ_{i,j} δ(2i + 3j, d)·y[i, j]       becomes  Σ_z [0 ≤ …]·y[3z − d, d − 2z]
    Σ_{k,i} δ(k, idx[i])·δ(d, idx[i])·x[k]   becomes  x[d]·Σ_i δ(d, idx[i])

All δ's of a network that compare whole numbers are one system Aα = β for the summed indices α, solved for those that
read tensors of high order: i, j of a result rather than k, l of a sum in it, so that what is left is a sum over the
kernel, as in `Σ_k y[d − k, e]·w[k]`; among others the canonical order decides, whatever their names. Its solutions (see
`affine`) leave sums over the kernel, a δ of the cokernel, integrality conditions, and the ranges of the indices solved
for as conditions on what is left; conditions that others imply are dropped (Urban & van der Smagt 2017, sec. 4). A δ on
a cycle is solved modulo its size, a δ of Dirac's with the factor 1/|a| of its coefficient.

Invariant: the value of the network is unchanged; conditions guard what a substitution may have moved out of range.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, permutations, product
from math import ceil, floor, gcd, lcm

from combdiff.ir import (
    ONE,
    ZERO,
    Affine,
    Apply,
    Cyclic,
    Delta,
    Domain,
    Guard,
    Indicator,
    Names,
    Number,
    Range,
    Real,
    Size,
    Space,
    Sum,
    SummedProduct,
    Symmetric,
    Term,
    Unequal,
    Var,
    Whole,
    affine,
    affine_parts,
    as_integer,
    counts_modulo,
    delta,
    denominator,
    equal_modulo,
    exchanged,
    factors_of,
    from_the_end,
    indicator,
    is_index,
    mul,
    number_left,
    read_forwards,
    reduced_index,
    relation,
    remainder,
    remainder_parts,
    remembered,
    size_form,
    size_parts,
    size_sum,
    substitute,
    subterms,
    type_of,
    unequal,
)
from combdiff.polyhedra import (
    NEVER,
    Linear,
    contradictory,
    eliminate,
    implied,
    in_domain,
    integer_points,
    is_inside,
    linear,
    plain_congruence,
    premises_of,
    prune,
    symbol,
    term_of,
    tighten,
)
from combdiff.simplification.normal_form.canonical import canonical_order

MOST_WAYS = 4  # parts of an index expression of which each is reduced either way around
MOST_LEFT_OUT = 3  # elements at the edge of a cycle, each a factor


def solve(product: SummedProduct, names: Names) -> SummedProduct:
    """The product with every δ solved that can be, and no condition that others imply; a factor 0 if it vanishes."""
    before: SummedProduct | None = None
    product = _with_factors(product.indices, product.factors)
    while before is None or (len(product.indices) < len(before.indices) and _is_left(product)):
        before = product  # that an index is taken may make of conditions a δ
        product = _together(_one_by_one(_whole_turns(_plainly(product), names), names), names)
        product = _around_ranges(_plainly(product))
    product = _as_one(_without_tiles(product), names)
    return SummedProduct(product.indices, tuple(plain_conditions(product.factors)))


def solve_at_ends(product: SummedProduct, names: Names) -> SummedProduct:
    """As `solve`, with δ(i, 0) for [i ≤ 0] of a summed index that counts from 0, and so at the other end."""
    solved = solve(SummedProduct(product.indices, _at_an_end(product)), names)
    return solved if _at_an_end(solved) == solved.factors else solve_at_ends(solved, names)


def _at_an_end(product: SummedProduct) -> tuple[Term, ...]:
    if not any(isinstance(factor, Indicator) for factor in product.factors):
        return product.factors
    counted = [index for index in product.indices if isinstance(index.type, Range | Symmetric)]
    outside = {side.scale(-1) for index in counted for side in in_domain(linear(index), index.type)}
    return tuple(
        _vanishing(f.form) if isinstance(f, Indicator) and not f.modulus and linear(f.form) in outside else f
        for f in product.factors
    )


def _is_left(product: SummedProduct) -> bool:
    """Whether there is a δ that its Σ can take."""
    return any(isinstance(factor, Delta) and can_take(product.indices, factor) for factor in product.factors)


def _with_factors(indices: Sequence[Var], factors: Iterable[Term]) -> SummedProduct:
    """Σ over indices of a product, factors that are products opened."""
    return SummedProduct(tuple(indices), factors_of(mul(*factors)))


def _without_tiles(product: SummedProduct) -> SummedProduct:
    """The product without indices that only say in which tile something is: Σ_j [0 ≤ d − 3j ≤ 2] is [0 ≤ d < 3m]."""
    for index in product.indices:
        asked = [f for f in product.factors if index in f.free]
        if len(asked) != 2 or not isinstance(index.type, Range):
            continue
        for bound, other in (asked, reversed(asked)):
            if not isinstance(bound, Indicator) or bound.modulus or denominator(bound.form) > 1:
                continue
            width = -int(dict(affine_parts(bound.form)[0])[index])
            if width > 0 and other == indicator(affine([(bound.form, -1)], width - 1)):
                place = affine([(bound.form, 1), (index, width)])
                end = indicator(affine([(size_form(index.type.size), width), (place, -1)], -1))
                rest = [f for f in product.factors if f not in asked]
                left = [i for i in product.indices if i is not index]
                return _without_tiles(_with_factors(left, [indicator(place), end, *rest]))
    return product


def _as_one(product: SummedProduct, names: Names) -> SummedProduct:
    """The product with one index for two that are read together alone: Σ_{i,j<3} f(3i + j) is Σ_k f(k)."""
    if len(product.indices) < 2:
        return product
    forms = {n for f in product.factors for n in subterms(f) if isinstance(n, Affine)}
    shares = [dict(affine_parts(form)[0]) for form in forms]
    alone = {child for f in product.factors for n in subterms(f) if not isinstance(n, Affine) for child in n.children}
    counted = [(i, i.type.size) for i in product.indices if isinstance(i.type, Range) and i not in alone]
    for (less, size), (more, many) in permutations(counted, 2):
        if isinstance(size, int) and all(share.get(less, 0) * size == share.get(more, 0) for share in shares):
            whole = names.fresh(Var(less.name, Range(size_sum((many, size)))))
            factors = [substitute(f, {less: whole, more: affine([])}) for f in product.factors]
            left = [whole if i is less else i for i in product.indices if i is not more]
            return _as_one(SummedProduct(tuple(left), tuple(factors)), names)
    return product


# --- δ's between bare indices, and of integers that arrays hold ----------------------------------------------------


def can_take(indices: Sequence[Var], factor: Delta) -> bool:
    """Whether Σ over indices can take a δ: it says what one of them is, by the others or by what an array holds."""
    if factor.domain is None or factor.free.isdisjoint(indices):
        return False
    if factor.lookup:
        index, value = factor.lookup
        return index in indices and index not in value.free and getattr(index, "type", None) == factor.domain
    if isinstance(factor.domain, Range | Symmetric):
        return _is_equation(factor, indices)
    steps = _steps(factor, indices)
    is_counted = isinstance(factor.domain, Cyclic) and bool(_counting(steps, factor.domain))
    return is_counted or any(index.type == factor.domain for index in steps)


def _plainly(product: SummedProduct) -> SummedProduct:
    """The product without the δ's that set a summed index equal to another index of its domain."""
    factors = [part for f in product.factors for part in _by_primes(f)]
    lattice = _lattice(plain_congruence(f) for f in factors if isinstance(f, Indicator) and f.modulus)
    factors = [part for f in factors for part in (_by_digits_on(f, lattice) if lattice else _by_digits(f))]
    factors = _met([*factors, *_in_one_window(product.indices, factors)])
    product = _looked_up_once(_with_factors(product.indices, factors))
    for factor in product.factors:
        if not isinstance(factor, Delta) or not _is_plain(factor):
            continue
        for index, value in ((factor.left, factor.right), (factor.right, factor.left)):
            if index in product.indices:
                assert isinstance(index, Var)
                rest = [substitute(other, {index: value}) for other in product.factors if other is not factor]
                return _plainly(_with_factors([other for other in product.indices if other is not index], rest))
    return product


def on_diagonals(factors: Sequence[Term]) -> Sequence[Term]:
    """The factors, in which what a δ says of an index stands for it: δ(a, d)·f(a, d) is δ(a, d)·f(d, d).

    A Σ in f is then over the elements of the diagonal alone, and conditions in it guard what stands beside them. Of
    indices of different domains it is that of the larger one: with i < 2 and j < 4 δ(j, i + 1)·f(j) is
    δ(j, i + 1)·f(i + 1), which no condition has to guard.
    """
    left = list(factors)
    for n, factor in enumerate(factors):
        if isinstance(factor, Delta) and left[n] is factor:
            rest = [*left[:n], *left[n + 1 :]]
            if told := _told(factor, rest):
                left = [other if m == n else substitute(other, told) for m, other in enumerate(left)]
    return left


def _told(factor: Delta, rest: Sequence[Term]) -> dict[Var, Term]:
    """An index that the other factors need not mention, with what a δ says that it is; nothing where there is none."""
    left, right = factor.left, factor.right
    if _is_plain(factor):
        assert isinstance(left, Var)
        return {left: right} if all(any(index in other.free for other in rest) for index in (left, right)) else {}
    if _compares_whole_numbers(factor):
        for index, form in ((left, right), (right, left)):
            if not isinstance(index, Var) or index in form.free or not any(index in other.free for other in rest):
                continue
            if is_inside(form, index.type, [index]):
                return {index: form}
    return {}


@remembered
def _by_primes(factor: Term) -> tuple[Term, ...]:
    """[3d + 2j − 2k ≡ 0 (mod 6)] as [d ≡ 0 (mod 2)] and [j − k ≡ 0 (mod 3)]: each asks for indices of its own."""
    if not isinstance(factor, Indicator) or denominator(factor.form) > 1:
        return (factor,)
    size = factor.modulus
    for one in (n for n in range(2, size) if not size % n and gcd(n, size // n) == 1):
        sides = [_congruence(factor.form, n) for n in (one, size // one)]
        if sides[0].free.isdisjoint(sides[1].free):
            return tuple(part for side in sides for part in _by_primes(side))
    return (factor,)


def _congruence(form: Term, modulus: int) -> Term:
    """An index expression is 0 modulo a number; its first index counts once where it can."""
    parts, offset = affine_parts(form)
    first = next((int(c) for _, c in parts if c % modulus), 1)
    times = pow(first, -1, modulus) if gcd(first, modulus) == 1 else 1
    return indicator(affine([(v, int(c) * times % modulus) for v, c in parts], int(offset) * times % modulus), modulus)


@remembered
def _by_digits(factor: Term) -> tuple[Term, ...]:
    return _by_digits_on(factor, ())


def _by_digits_on(factor: Term, lattice: Lattice) -> tuple[Term, ...]:
    """δ(c·a + b, c·d + e) as δ(a, d) and δ(b, e) where b − e is more than −c and less than c, as of a reshape and back.

    And [c·a + b ≥ 0] as [a ≥ 0] where b is 0 … c − 1. A lattice is what congruences say of indices.
    """
    if isinstance(factor, Indicator) and factor.modulus:
        return _without_turns(factor)
    if isinstance(factor, Delta) and _compares_whole_numbers(factor):
        form = affine([(factor.left, 1), (factor.right, -1)])
    elif isinstance(factor, Indicator) and not factor.modulus:
        form = factor.form
    else:
        return (factor,)
    if not _counts(form) or denominator(form) > 1:
        return (factor,)
    parts, offset = affine_parts(form)
    for base in sorted({abs(int(c)) for _, c in parts} - {1}):
        for small in _remainders(form, base):
            great = affine([(form, Fraction(1, base)), (small, Fraction(-1, base))], Fraction(-offset, base))
            if not _counts(small) or not _counts(great):
                continue
            premises = [_on_lattice(premise, lattice) for premise in premises_of(small.free)]
            for turns in (floor(Fraction(offset, base)), ceil(Fraction(offset, base))):
                low, high = linear(affine([(small, 1)], offset - turns * base)), affine([(great, 1)], turns)
                if not implied(low.scale(-1) + (base - 1), premises):
                    continue
                if isinstance(factor, Indicator) and implied(low, premises):
                    return _by_digits_on(indicator(high), lattice)
                if isinstance(factor, Delta) and implied(low + (base - 1), premises):
                    small = affine([(small, 1)], offset - turns * base)
                    return (*_by_digits_on(_vanishing(high), lattice), *_by_digits_on(_vanishing(small), lattice))
    return (factor,)


def _without_turns(factor: Indicator) -> tuple[Term, ...]:
    """[i − j − 2k ≡ 0 (mod 6)] as δ(i, j + 2k), and its digits, where i < 6, j < 2 and k < 3: one multiple is met."""
    if denominator(factor.form) > 1 or not _counts(factor.form):
        return (factor,)
    offset = int(affine_parts(factor.form)[1]) % factor.modulus
    for small in _remainders(factor.form, factor.modulus):
        premises = premises_of(small.free)
        for whole in (affine([(small, 1)], offset), affine([(small, 1)], offset - factor.modulus)):
            sides = (linear(whole).scale(sign) + (factor.modulus - 1) for sign in (1, -1))
            if _counts(small) and all(implied(side, premises) for side in sides):
                return _by_digits(_vanishing(whole))
    return (factor,)


def _remainders(form: Term, base: int) -> Iterator[Term]:
    """An index expression less multiples of a number, without a constant: each part either way around."""
    parts = [(v, int(c) % base) for v, c in affine_parts(form)[0] if c % base]
    if len(parts) <= MOST_WAYS:
        for turned in product((0, base), repeat=len(parts)):
            yield affine([(v, c - turn) for (v, c), turn in zip(parts, turned, strict=True)])


def _counts(form: Term) -> bool:
    """Whether an index expression is one of indices that count, and of sizes."""
    kinds = [var.type for var, _ in affine_parts(form)[0] if not isinstance(var.type, Whole)]
    return bool(kinds) and all(isinstance(kind, Range | Symmetric) for kind in kinds)


def _met(factors: Sequence[Term]) -> list[Term]:
    """The factors with δ(i, d) for [i ≥ d] [i ≤ d]."""
    bounds = {f.form: f for f in factors if isinstance(f, Indicator) and not f.modulus and _counts(f.form)}
    # What is at one place is a part of an axis, as a range is; conditions on fractions ask for more.
    bounds = {form: f for form, f in bounds.items() if len(form.free) > 1 and denominator(form) == 1}
    met = {bound: _vanishing(form) for form, bound in bounds.items() if affine([(form, -1)]) in bounds}
    return [*(f for f in factors if f not in met), *dict.fromkeys(met.values())] if met else list(factors)


def _in_one_window(indices: Sequence[Var], factors: Sequence[Term]) -> Iterator[Delta]:
    """What windows say that lie apart by multiples of what is wider: δ(j, k) by [0 ≤ d − 2j ≤ 1] [0 ≤ d − 2k ≤ 1]."""
    bounds = [f.form for f in factors if isinstance(f, Indicator) and not f.modulus and _counts(f.form)]
    pairs = [(one, affine([(one, 1), (other, 1)])) for one, other in combinations(bounds, 2)]
    windows = [(form, int(affine_parts(room)[1])) for form, room in pairs if not room.free and denominator(form) == 1]
    for (one, width), (other, room) in combinations(windows, 2):
        for sign in (1, -1):
            apart = affine([(one, 1), (other, -sign)], 0 if sign > 0 else -room)
            parts, offset = affine_parts(apart)
            step = gcd(*(int(c) for _, c in parts))
            if step > 1 and not apart.free.isdisjoint(indices):
                low, high = ceil(Fraction(-room - offset, step)), floor(Fraction(width - offset, step))
                if low == high:
                    yield _vanishing(affine([(v, Fraction(c, step)) for v, c in parts], -low))


def _vanishing(form: Term) -> Delta:
    """The δ that says that an index expression is 0."""
    parts, offset = affine_parts(form)
    left = affine([part for part in parts if part[1] > 0], max(offset, 0))
    domain = next(v.type for v, _ in parts if not isinstance(v.type, Whole))
    return Delta(left, affine([(left, 1), (form, -1)]), domain)  # type: ignore[arg-type]


def _looked_up_once(product: SummedProduct) -> SummedProduct:
    """The product, in which an integer that an array holds is compared with one index form alone, each guard once.

    δ(k, idx[i]) δ(l, idx[i]) is δ(k, l) δ(k, idx[i]): what is looked up twice is one index.
    """
    indices, factors = product.indices, product.factors
    guards = dict.fromkeys(f for f in factors if isinstance(f, Guard))
    rest = [f for f in factors if f not in guards]
    looked_up = {f: pair for f in guards if isinstance(f, Delta) and f.domain and (pair := f.lookup)}
    plain: list[Term] = [f for f in guards if f not in looked_up]
    first: dict[tuple[Term, Domain | None], Term] = {}
    for found in sorted(looked_up, key=lambda f: _preference(looked_up[f][0], indices)):
        form, value = looked_up[found]
        other = first.setdefault((value, found.domain), form)
        plain.append(found if other is form else delta(other, form, found.domain))
    return _with_factors(indices, [*rest, *dict.fromkeys(plain)])


def _preference(form: Term, indices: Sequence[Var]) -> tuple[bool, bool, list[str]]:
    """What orders index forms, those that are left standing first: those of the result, and bare ones."""
    return not form.free.isdisjoint(indices), not isinstance(form, Var), sorted(v.name for v in form.free)


# --- one δ at a time: on a cycle, on the real line -----------------------------------------------------------------


def _one_by_one(product: SummedProduct, names: Names) -> SummedProduct:
    indices, factors = product.indices, product.factors
    for position, factor in enumerate(factors):
        rest = [*factors[:position], *factors[position + 1 :]]
        solution = _single(factor, indices, rest, names) if isinstance(factor, Delta) else None
        if solution is not None:
            index, value, extra, more = solution
            replaced = factors_of(mul(*(substitute(_around(f, index), {index: value}) for f in rest)))
            left = (*(i for i in indices if i is not index), *more)
            return _one_by_one(SummedProduct(left, (*replaced, *extra)), names)
    return product


Single = tuple[Var, Term, list[Term], list[Var]]


def _single(factor: Delta, indices: Sequence[Var], rest: Sequence[Term], names: Names) -> Single | None:
    """A summed index, its value where the δ is 1, further factors and further summed indices."""
    if not _compares_indices(factor) or _is_plain(factor):
        return None
    form = affine([(factor.left, 1), (factor.right, -1)])
    candidates = [(v, c) for v, c in affine_parts(form)[0] if v in indices and v.type == factor.domain]
    order = _order(indices, [factor, *rest]) if len(candidates) > 1 else indices
    for index, coefficient in sorted(candidates, key=lambda part: (abs(part[1]), order.index(part[0]))):
        if isinstance(factor.domain, Real):
            value = affine([(form, -1 / Fraction(coefficient)), (index, 1)])
            return index, value, [Number(abs(1 / Fraction(coefficient)))] if abs(coefficient) != 1 else [], []
        if isinstance(factor.domain, Cyclic) and all(counts_modulo(index, _around(other, index)) for other in rest):
            solution = _modular(index, coefficient, form, factor.domain, names)
            if solution is not None:
                return solution
    return None


def _whole_turns(product: SummedProduct, names: Names) -> SummedProduct:
    """The product, in which an index of which δ's on cycles ask is counted round the cycle, and its turns beside it.

    Σ_{i<9} δ(d, i + 1)·y[i] is Σ_{z<2,i<6} δ(d, i + 1)·[6z + i ≤ 8]·y[6z + i] for d on a cycle of 6 elements.
    """
    for factor in product.factors:
        if not isinstance(factor, Delta) or not isinstance(cycle := factor.domain, Cyclic) or _is_plain(factor):
            continue
        steps = _steps(factor, product.indices)
        sizes = _counting(steps, cycle)
        size = cycle.size
        if not sizes or any(index.type == cycle or sizes.get(index) == size for index in steps):
            continue
        assert isinstance(size, int)
        order = _order(product.indices, product.factors)
        index = max(sizes, key=lambda index: (sizes[index], -order.index(index)))  # what is left is a shorter sum
        place = names.fresh(Var(index.name, Range(size)))
        turns = [names.fresh(Var("z", Range(-(-sizes[index] // size))))] if sizes[index] > size else []
        value = affine([(place, 1), *((turn, size) for turn in turns)])
        counted = indicator(affine([(value, -1)], sizes[index] - 1))
        factors = [counted, *(substitute(other, {index: value}) for other in product.factors)]
        left = [other for other in product.indices if other is not index]
        return _whole_turns(_with_factors([*left, place, *turns], factors), names)
    return product


def _steps(factor: Delta, indices: Sequence[Var]) -> list[Var]:
    """The summed indices that a δ has once, so that it says what they are."""
    if not _compares_indices(factor):
        return []
    parts, _ = affine_parts(affine([(factor.left, 1), (factor.right, -1)]))
    return [index for index, c in parts if index in indices and abs(c) == 1]


def _counting(indices: Iterable[Var], cycle: Cyclic) -> dict[Var, int]:
    """The sizes of those indices that count, where these and the cycle's are numbers."""
    if not isinstance(cycle.size, int) or not cycle.size:
        return {}
    return {i: i.type.size for i in indices if isinstance(i.type, Range) and isinstance(i.type.size, int)}


def _around(term: Term, index: Var) -> Term:
    """The term with what it asks of an edge of an index's cycle asked modulo its size: [i ≥ 1] is [i ≢ 0]."""
    if not isinstance(index.type, Cyclic):
        return term
    conditions = [node for node in subterms(term) if isinstance(node, Indicator) and index in node.free]
    edges: dict[Term, Term] = {
        node: other for node in conditions if (other := _edge(node, index, index.type)) is not None
    }
    return exchanged(term, edges) if edges else term


def _edge(condition: Indicator, index: Var, cycle: Cyclic) -> Term | None:
    """A condition that only the first or last elements of a cycle fail, or only one meets, asked modulo its size."""
    if condition.modulus:
        return None
    bound = linear(condition.form)
    for side, first, step in zip(in_domain(Linear.symbol(symbol(index)), cycle), (0, -1), (1, -1), strict=True):
        left_out, kept = side - bound, bound + side
        if not left_out.coefficients and 0 < left_out.constant <= MOST_LEFT_OUT:
            places = (first + step * n for n in range(int(left_out.constant)))
            return mul(*(unequal(affine([(index, 1)], -place), cycle) for place in places))
        if not kept.coefficients and kept.constant == 0:
            return delta(index, affine([], first), cycle)
    return None


def _modular(index: Var, coefficient: int | Fraction, form: Term, cycle: Cyclic, names: Names) -> Single | None:
    """The solutions of `coefficient·index + rest ≡ 0 (mod n)`: gcd(coefficient, n) of them where that divides rest."""
    rest = affine([(form, 1), (index, -coefficient)])
    if abs(coefficient) == 1:
        return index, affine([(rest, -coefficient)]), [], []
    size = cycle.size
    if not isinstance(size, int) or not isinstance(coefficient, int) or not size:
        return None
    turns = gcd(coefficient, size)
    inverse = pow(coefficient // turns, -1, size // turns) if size > turns else 0
    value = affine([(rest, Fraction(-inverse, turns))])
    conditions = [indicator(rest, turns)] if turns > 1 else []
    if turns == 1:
        return index, value, conditions, []
    step = names.fresh(Var("z", Range(turns)))
    return index, affine([(value, 1), (step, size // turns)]), conditions, [step]


def _compares_indices(factor: Delta) -> bool:
    return is_index(factor.left) and is_index(factor.right) and bool(factor.domain)


def _compares_whole_numbers(factor: Delta) -> bool:
    return _compares_indices(factor) and isinstance(factor.domain, Range | Symmetric)


def _is_plain(factor: Delta) -> bool:
    """Whether a δ compares two bare indices of its domain; those are left to the laws."""
    left, right = factor.left, factor.right
    return isinstance(left, Var) and isinstance(right, Var) and left.type == right.type == factor.domain


def _order(indices: Sequence[Var], factors: Iterable[Term]) -> Sequence[Var]:
    """The summed indices in the order in which they are solved for, whatever they are called.

    First are those of tensors of high order, then the first axes of tensors by name.
    """
    places: dict[Var, list[tuple[int, str, int]]] = {index: [] for index in indices}
    body = mul(*factors)
    for access in (node for node in subterms(body) if isinstance(node, Apply)):
        for axis, argument in enumerate(access.arguments):
            for index in argument.free & places.keys():
                places[index].append((-len(access.arguments), getattr(access.function, "name", ""), axis))
    canonical = canonical_order(Sum(tuple(indices), body))
    return sorted(canonical, key=lambda index: sorted(places[index]) or [(0, "", 0)])


# --- indices reduced modulo the size of their axis -----------------------------------------------------------------


def _around_ranges(product: SummedProduct) -> SummedProduct:
    """The product, in which δ's around an axis say what summed indices are, and these stand where others ask for them.

    Σ_i δ(d, (i − 1) mod n)·f(i) is Σ_i δ(i, (d + 1) mod n)·f(i), with δ(k, (d + 3) mod n) for δ(k, (i + 2) mod n) in f.
    """
    indices = product.indices
    factors = [_placed(f, indices) for f in product.factors]
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
    if indices == product.indices and factors == list(product.factors):
        return product
    return _around_ranges(_plainly(_with_factors(indices, factors)))


def _placed(factor: Term, indices: Sequence[Var]) -> Term:
    """A condition as a δ around an axis that says what a summed index is: of δ's, and of congruences on one axis.

    Where it says that of none, and the size is a number, it is a congruence, as conditions on whole numbers are.
    """
    if isinstance(factor, Delta):
        placed = turned(factor, indices)
        found = reduced_index(placed) if isinstance(placed, Delta) else None
        if found and found[0] not in indices and isinstance(found[2], int):
            return indicator(affine([(found[1], 1), (found[0], -1)]), found[2])
        return placed
    if isinstance(factor, Indicator) and (size := factor.modulus):
        parts, offset = affine_parts(factor.form)
        form = affine([part for part in parts if part[1] % size], offset)
        if all(getattr(v.type, "size", None) == size for v in form.free):
            return _solved(form, size, indices) or factor
    return factor


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
        if _compares_indices(factor) and not _is_plain(factor):
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


# --- all δ's on whole numbers together -----------------------------------------------------------------------------


def _together(product: SummedProduct, names: Names) -> SummedProduct:
    indices, factors = product.indices, product.factors
    equations = [f for f in factors if isinstance(f, Delta) and _is_equation(f, indices)]
    if all(_is_plain(equation) for equation in equations):
        return product
    mentioned = frozenset().union(*(equation.free for equation in equations))
    rest = [f for f in factors if f not in equations]
    unknowns = [i for i in indices if i in mentioned]
    if len(unknowns) > 1:
        unknowns = [i for i in _order(indices, factors) if i in mentioned]
    solution = _solution(equations, unknowns, rest, names)
    if solution is None:  # a kernel without closed bounds: solve for indices that the others determine
        solution = _solution(equations, _independent(equations, unknowns), rest, names)
    if solution is None:
        return product
    replacement, loops, extra = solution
    kept = [i for i in indices if i not in replacement or i in loops]
    left = [*kept, *(loop for loop in loops if loop not in kept)]
    return _with_factors(left, [*extra, *(substitute(f, replacement) for f in rest)])


def _is_equation(factor: Delta, indices: Sequence[Var]) -> bool:
    """Whether a δ compares whole numbers and mentions a summed index."""
    whole = _compares_whole_numbers(factor)
    return whole and not factor.free.isdisjoint(indices) and not any(isinstance(v.type, Real) for v in factor.free)


Solution = tuple[dict[Var, Term], list[Var], list[Term]]


def _solution(equations: list[Delta], unknowns: list[Var], rest: list[Term], names: Names) -> Solution | None:
    """What the unknowns are, the indices that stay summed, and the conditions that come with them."""
    forms = [linear(affine([(e.left, 1), (e.right, -1)])) for e in equations]
    if any(not isinstance(value, int) for form in forms for _, value in form.coefficients):
        forms = [form.scale(lcm(*(Fraction(v).denominator for _, v in form.coefficients))) for form in forms]
    symbols = [symbol(v) for v in unknowns]
    matrix = [[int(form.coefficient(name)) for name in symbols] for form in forms]
    beta = [
        (form - Linear(tuple(zip(symbols, row, strict=True)))).scale(-1)
        for form, row in zip(forms, matrix, strict=True)
    ]
    variables = {symbol(v): v for f in (*equations, *rest) for v in f.free} | dict(zip(symbols, unknowns, strict=True))
    points = integer_points(matrix, beta, symbols, variables)
    ranges = [form for v, a in zip(unknowns, points.alpha, strict=True) for form in in_domain(a, v.type)]
    shifts: dict[str, Linear] = {}
    for name in points.loops:
        if name in variables:
            continue
        bounds = _constant_bounds(name, ranges, variables)
        if bounds is None:
            return None
        variables[name] = names.fresh(Var("z", Range(max(bounds[1] - bounds[0] + 1, 0))))
        shifts[name] = Linear(((name, 1),), bounds[0])
    forms = [form.substitute(shifts) for form in (*points.alpha, *ranges)]
    alpha, ranges = forms[: len(unknowns)], forms[len(unknowns) :]
    loops = [variables[name] for name in points.loops]
    replacement = {v: a for v, form in zip(unknowns, alpha, strict=True) if (a := term_of(form, variables)) is not v}
    domain = equations[0].domain
    extra = [
        *(_equal(form, variables, domain) for form in points.equalities),
        *(indicator(term_of(form, variables), m) for form, m in points.congruences),
        *(indicator(term_of(form, variables)) for form in ranges),
    ]
    return replacement, loops, extra


def _equal(form: Linear, variables: Mapping[str, Var], domain: Domain | None) -> Term:
    """δ for `form = 0`: a bare index, or what has positive coefficients, on the left."""
    form = form.scale(Fraction(1, gcd(*(int(c) for _, c in form.coefficients)) or 1))
    bare = next((name for name, c in form.coefficients if abs(c) == 1 and name in variables), None)
    if bare is not None and not isinstance(variables[bare].type, Whole):
        rest = (form - Linear(((bare, form.coefficient(bare)),))).scale(-form.coefficient(bare))
        return delta(variables[bare], term_of(rest, variables), domain)
    left = Linear(tuple((name, c) for name, c in form.coefficients if c > 0))
    if not form.coefficients:
        return ONE if not form.constant else ZERO
    return delta(term_of(left, variables), term_of((form - left).scale(-1), variables), domain)


def _independent(equations: list[Delta], unknowns: list[Var]) -> list[Var]:
    """Unknowns, as many as the equations determine when the others are given; those with small coefficients first."""
    forms = [linear(affine([(e.left, 1), (e.right, -1)])) for e in equations]
    chosen: list[Var] = []
    rows: list[list[Fraction]] = []
    for var in sorted(unknowns, key=lambda v: max(abs(Fraction(form.coefficient(symbol(v)))) for form in forms)):
        column = [Fraction(form.coefficient(symbol(var))) for form in forms]
        for row in rows:
            pivot = next(n for n, x in enumerate(row) if x)
            column = [x - column[pivot] / row[pivot] * y for x, y in zip(column, row, strict=True)]
        if any(column):
            rows.append(column)
            chosen.append(var)
    return chosen


def _constant_bounds(name: str, ranges: list[Linear], variables: Mapping[str, Var]) -> tuple[int, int] | None:
    """The least and greatest value of a loop variable over all indices, where sizes are numbers."""
    mentioned = {n for form in ranges for n in form.symbols}
    system = [*ranges, *premises_of(v for n, v in variables.items() if n in mentioned)]
    others = sorted({n for form in system for n in form.symbols} - {name})
    left = eliminate(system, others).feasible
    if left == (NEVER,):
        return 0, -1
    sides = [(Fraction(f.coefficient(name)), Fraction(f.constant)) for f in left if f.symbols]
    low = [-constant / c for c, constant in sides if c > 0]
    high = [-constant / c for c, constant in sides if c < 0]
    return (ceil(max(low)), floor(min(high))) if low and high else None


# --- conditions ----------------------------------------------------------------------------------------------------


def plain_conditions(factors: Sequence[Term]) -> Sequence[Term]:
    """The factors with the conditions among them in their plainest form, and those that others imply left out."""
    conditions = [f for f in factors if isinstance(f, Indicator | Unequal) and not _on_the_real_line(f)]
    if not conditions:
        return factors
    equal = [f for f in factors if isinstance(f, Delta) and _compares_whole_numbers(f)]
    variables = {symbol(v): v for f in (*conditions, *equal) for v in f.free}
    indicators = [f for f in conditions if isinstance(f, Indicator)]
    congruences = [c for f in indicators if f.modulus if (c := plain_congruence(f)) is not ONE]
    lattice = _lattice(congruences)
    bounds = tuple(sorted((_on_lattice(linear(f.form), lattice) for f in indicators if not f.modulus), key=str))
    apart = {linear(f.form): f for f in conditions if isinstance(f, Unequal) and not f.cycle}
    premises = [*(_on_lattice(form, lattice) for form in premises_of(variables.values())), *_equal_sides(equal)]
    found = _pruned(bounds, tuple(apart), tuple(premises))
    if found is None:
        return [ZERO]
    around = [f for f in conditions if isinstance(f, Unequal) and f.cycle]
    chosen = [*(indicator(term_of(form, variables)) for form in found[0]), *(apart[form] for form in found[1])]
    return [f for f in factors if f not in conditions] + chosen + list(dict.fromkeys((*around, *congruences)))


def _equal_sides(deltas: Iterable[Delta]) -> Iterator[Linear]:
    """What δ's say: `i − j ≥ 0` and `j − i ≥ 0` for δ(i, j)."""
    for each in deltas:
        form = linear(affine([(each.left, 1), (each.right, -1)]))
        yield from (form, form.scale(-1))


Lattice = Sequence[tuple[Linear, int]]


def _lattice(congruences: Iterable[Term]) -> Lattice:
    """What plain congruences say is a multiple, and of what."""
    return [(linear(f.form), f.modulus) for f in congruences if isinstance(f, Indicator)]


def _on_lattice(bound: Linear, lattice: Lattice) -> Linear:
    """`d ≥ 0` as `d ≥ 1` where a condition says that d is odd: the same points."""
    bound = tighten(bound)
    for form, modulus in lattice:
        for turned in (form, form.scale(-1)):
            if turned.coefficients == bound.coefficients:
                return bound - (bound.constant - turned.constant) % modulus
    return bound


def _on_the_real_line(condition: Indicator | Unequal) -> bool:
    return any(isinstance(v.type, Real) for v in condition.free)


@lru_cache(maxsize=1024)
def _pruned(
    bounds: tuple[Linear, ...], apart: tuple[Linear, ...], premises: tuple[Linear, ...]
) -> tuple[tuple[Linear, ...], tuple[Linear, ...]] | None:
    """The bounds, and the forms that are not 0, that the others do not imply; None where they contradict each other.

    A form that is not 0 and not less is at least 1: a bound, in its place.
    """
    known = [*bounds, *premises]
    for form in apart:
        sides = (form, form.scale(-1))
        end = next((side - 1 for side in sides if implied(side, known)), None)
        if end is not None:
            return _pruned((*bounds, end), tuple(f for f in apart if f is not form), premises)
    if contradictory(known):
        return None
    return prune(bounds, premises), apart
