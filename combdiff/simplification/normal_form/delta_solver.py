"""The δ's and conditions of a network, solved exactly over the integers.

    Σ_{i,k} δ(i + k, d)·y[i]·w[k]       becomes  Σ_k [0 ≤ d − k < m]·y[d − k]·w[k]
    Σ_i δ(2i, d)·y[i]                   becomes  [d ≡ 0 (mod 2)]·y[d/2]
    Σ_{i,j} δ(2i + 3j, d)·y[i, j]       becomes  Σ_z [0 ≤ …]·y[3z − d, d − 2z]
    Σ_{k,i} δ(k, idx[i])·δ(d, idx[i])·x[k]   becomes  x[d]·Σ_i δ(d, idx[i])

Conditions are taken apart first (`mixed_radix`). What compares two indices, or an index and what an array holds, is
solved here; a δ on a cycle modulo its size, one of Dirac's with the factor 1/|a| of its coefficient (`cyclic_deltas`);
all others that compare whole numbers as one system (`linear_systems`); those around an axis tell others what indices
are (`around_axes`). Conditions that others imply are dropped (`conditions`).

Invariant: the value of the network is unchanged; conditions guard what a substitution may have moved out of range.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from combdiff.ir import (
    Cyclic,
    Delta,
    Domain,
    Guard,
    Indicator,
    Names,
    Range,
    SummedProduct,
    Symmetric,
    Term,
    Var,
    affine,
    delta,
    substitute,
)
from combdiff.polyhedra import Linear, contradictory, in_domain, is_inside, linear, premises_of
from combdiff.simplification.normal_form.around_axes import around_axes
from combdiff.simplification.normal_form.conditions import (
    compares_bare_indices,
    compares_whole_numbers,
    met,
    plain_conditions,
    vanishing,
)
from combdiff.simplification.normal_form.cyclic_deltas import counted_sizes, one_by_one, unit_steps, whole_turns
from combdiff.simplification.normal_form.linear_systems import is_equation, together
from combdiff.simplification.normal_form.mixed_radix import (
    as_one,
    counted_in_steps,
    counted_within,
    taken_apart,
    without_tiles,
)

OF_ONE_ELEMENT = (Range(1), Cyclic(1), Symmetric(0))


def solve(product: SummedProduct, names: Names) -> SummedProduct:
    """The product with every δ solved that can be, and no condition that others imply; a factor 0 if it vanishes."""
    before: SummedProduct | None = None
    product = SummedProduct.over(product.indices, product.factors)
    while before is None or (len(product.indices) < len(before.indices) and _is_left(product)):
        before = product  # that an index is taken may make of conditions a δ
        product = together(one_by_one(whole_turns(_plainly(product), names), names), names)
        product = _plainly_around(product)
    product = counted_in_steps(counted_within(without_tiles(_at_only_places(product)), names), names)
    product = as_one(product, names)
    return SummedProduct(product.indices, tuple(plain_conditions(product.factors)))


def _at_only_places(product: SummedProduct) -> SummedProduct:
    """The product with 0 for the indices of axes of one element, where a δ that is left asks for these."""
    asked = {var for factor in product.factors if isinstance(factor, Delta) for var in factor.free}
    only = {index: affine([]) for index in product.indices if index in asked and index.type in OF_ONE_ELEMENT}
    if not only:
        return product
    left = (index for index in product.indices if index not in only)
    return SummedProduct.over(left, (substitute(factor, only) for factor in product.factors))


def solve_at_ends(product: SummedProduct, names: Names) -> SummedProduct:
    """As `solve`, with δ(i, 0) for [i ≤ 0] of a summed index that counts from 0, and so at the other end.

    So where others tell that no other place is left: [3 j ≤ 1 − d] is δ(j, 0) [d ≤ 1].
    """
    solved = solve(SummedProduct(product.indices, _at_an_end(product)), names)
    return solved if _at_an_end(solved) == solved.factors else solve_at_ends(solved, names)


def _at_an_end(product: SummedProduct) -> tuple[Term, ...]:
    conditions = [factor for factor in product.factors if isinstance(factor, Indicator) and not factor.modulus]
    if not conditions:
        return product.factors
    counted = [index for index in product.indices if isinstance(index.type, Range | Symmetric)]
    outside = {side.scale(-1) for index in counted for side in in_domain(linear(index), index.type)}
    found = [vanishing(f.form) if f in conditions and linear(f.form) in outside else f for f in product.factors]
    return (*found, *(place for index in counted for place in _only_place(index, conditions)))


def _only_place(index: Var, conditions: Sequence[Indicator]) -> Iterator[Term]:
    """δ(j, 0) where conditions with other indices hold at the first or the last j alone: of 3 j ≤ 1 − d at j = 0."""
    told = [f for f in conditions if index in f.free and len(f.free) > 1]
    if told and isinstance(index.type, Range) and isinstance(size := index.type.size, int):
        known = (*premises_of(set().union(*(f.free for f in told))), *(linear(f.form) for f in told))
        ends = (0, linear(index)), (size - 1, linear(index).scale(-1) + (size - 1))
        place = next((place for place, away in ends if _contradict((*known, away - 1))), None)
        if place is not None:
            yield delta(index, affine([], place))


@lru_cache(maxsize=1024)
def _contradict(forms: tuple[Linear, ...]) -> bool:
    return contradictory(list(forms))


def _is_left(product: SummedProduct) -> bool:
    """Whether there is a δ that its Σ can take."""
    return any(isinstance(factor, Delta) and can_take(product.indices, factor) for factor in product.factors)


def can_take(indices: Sequence[Var], factor: Delta) -> bool:
    """Whether Σ over indices can take a δ: it says what one of them is, by the others or by what an array holds."""
    if factor.domain is None or factor.free.isdisjoint(indices):
        return False
    if factor.lookup:
        index, value = factor.lookup
        return index in indices and index not in value.free and getattr(index, "type", None) == factor.domain
    if isinstance(factor.domain, Range | Symmetric):
        return is_equation(factor, indices)
    steps = unit_steps(factor, indices)
    is_counted = isinstance(factor.domain, Cyclic) and bool(counted_sizes(steps, factor.domain))
    return is_counted or any(index.type == factor.domain for index in steps)


def _plainly_around(product: SummedProduct) -> SummedProduct:
    """The product without δ's between bare indices, and with what δ's around axes say for as long as they do."""
    plain = _plainly(product)
    told = around_axes(plain)
    return plain if told is plain else _plainly_around(told)


def _plainly(product: SummedProduct) -> SummedProduct:
    """The product without the δ's that set a summed index equal to another index of its domain."""
    factors = met(taken_apart(product.indices, product.factors))
    product = _looked_up_once(SummedProduct.over(product.indices, factors))
    for factor in product.factors:
        if not isinstance(factor, Delta) or not compares_bare_indices(factor):
            continue
        for index, value in ((factor.left, factor.right), (factor.right, factor.left)):
            if index in product.indices:
                assert isinstance(index, Var)
                rest = [substitute(other, {index: value}) for other in product.factors if other is not factor]
                return _plainly(SummedProduct.over([other for other in product.indices if other is not index], rest))
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
    if compares_bare_indices(factor):
        assert isinstance(left, Var)
        return {left: right} if all(any(index in other.free for other in rest) for index in (left, right)) else {}
    if compares_whole_numbers(factor):
        for index, form in ((left, right), (right, left)):
            if not isinstance(index, Var) or index in form.free or not any(index in other.free for other in rest):
                continue
            if is_inside(form, index.type, [index]):
                return {index: form}
    return {}


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
    return _without_unread(indices, [*rest, *dict.fromkeys(plain)])


def _without_unread(indices: Sequence[Var], factors: Sequence[Term]) -> SummedProduct:
    """Σ over indices without those that δ's alone mention which look them up: Σ_k δ(k, idx[i]) is 1.

    What is looked up is an index of the axis; programs and their derivatives are refused arrays that hold others.
    """
    mentioned = Counter(index for factor in factors for index in factor.free)
    unread = {
        f: f.lookup[0]
        for f in factors
        if isinstance(f, Delta) and f.lookup and f.lookup[0] in indices and can_take(indices, f)
        if mentioned[f.lookup[0]] == 1  # type: ignore[index]
    }
    left = [index for index in indices if index not in unread.values()]
    return SummedProduct.over(left, [factor for factor in factors if factor not in unread])


def _preference(form: Term, indices: Sequence[Var]) -> tuple[bool, bool, list[str]]:
    """What orders index forms, those that are left standing first: those of the result, and bare ones."""
    return not form.free.isdisjoint(indices), not isinstance(form, Var), sorted(v.name for v in form.free)
