"""Common factors in front of sums: what a reader would take out of a simplified term.

    Σ_i (X[i,a]·X[i,d]·t[i] − X[i,a]·X[i,d]·u[i])      →   Σ_i X[i,a]·X[i,d]·(t[i] − u[i])
    Σ_i A[d,i]·x[i] + Σ_j A[j,d]·x[j]                →   Σ_i (A[d,i] + A[i,d])·x[i]
    T[a,d] + δ(a, d)·V[d] + 2 δ(a, d)·g·z[d]²          →   T[a,d] + δ(a, d)·(V[d] + 2 g·z[d]²)
    x[d]·y[(d − 1) mod n] − (x·y)[(d − 1) mod n]      →   (x[d] − x[(d − 1) mod n])·y[(d − 1) mod n]

The laws expand products to free δ's, and none of them puts a sum of many terms together again; this is done once, at
the end, on canonical forms.

Invariant: the value of the term is unchanged, and it costs no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from combdiff.ir import (
    Add,
    Delta,
    Lambda,
    Mul,
    Names,
    Number,
    Primitive,
    Sum,
    SummedProduct,
    Term,
    Var,
    add,
    factors_of,
    function,
    is_matrix_function,
    mul,
    negate,
    number_and_rest,
    places_around,
    remembered,
    squared_modulus,
    subterms,
    total,
)
from combdiff.simplification.egraph.extraction import parts_work, volume
from combdiff.simplification.normal_form.canonical import canonical
from combdiff.simplification.normal_form.contraction import normalise, one_sum
from combdiff.simplification.normal_form.denominators import is_fraction, over_one_denominator
from combdiff.simplification.normal_form.expansion import common_factors
from combdiff.simplification.normal_form.joined_networks import joined_networks, primitive
from combdiff.simplification.normal_form.lengths import is_negative, length_alone, printed_length


def factored(value: Term, *, joining: bool = True) -> Term:
    """A tensor or number with common factors in front, where that costs no more; `joining` those of networks too."""
    return _factored_and_joined(value) if joining else _factored_alone(value)


@remembered
def _factored_and_joined(value: Term) -> Term:
    return _factored(value, joining=True)


@remembered
def _factored_alone(value: Term) -> Term:
    return _factored(value, joining=False)


def _factored(value: Term, *, joining: bool) -> Term:
    body = value.body if isinstance(value, Lambda) else value
    if not any(isinstance(part, Add) or is_fraction(part) for part in subterms(body)):
        return value
    taken_out = _taken_out(body, joining)
    taken_out = taken_out if taken_out is body else canonical(taken_out)  # equal Σ's are one base of a power then
    found = canonical(normalise(over_one_denominator(taken_out), Names(value)))
    indices = frozenset(value.parameters if isinstance(value, Lambda) else ())
    (work, length), (before, written) = _weight(found, indices), _weight(body, indices)
    if (work, length) >= (before, written) or (length > written and before - work <= volume(indices)):
        return value
    return Lambda(value.parameters, found) if isinstance(value, Lambda) else found


def one_network(value: Term) -> Term:
    """A value in which Σ's that stand in one another are one."""
    body = value.body if isinstance(value, Lambda) else value
    found = canonical(normalise(body, Names(value)))
    return Lambda(value.parameters, found) if isinstance(value, Lambda) else found


def _weight(term: Term, indices: frozenset[Var]) -> tuple[float, int]:
    """What a term costs, and its length; where a number stands in front of it a plan chooses what it multiplies."""
    in_front = [f for f in factors_of(term) if not isinstance(f, Number) and f.free.isdisjoint(indices)]
    rest = mul(*(f for f in factors_of(term) if f not in in_front))
    work: dict[Term, float] = {}
    for part in (rest, *in_front):
        work |= parts_work(part)
    return sum(work.values()) + len(in_front), length_alone(term)


def _taken_out(term: Term, joining: bool) -> Term:
    """A term with the common factors of each sum in it in front of that."""
    if isinstance(term, Primitive) and term.name != "power" and not is_matrix_function(term):
        return function(term.name, *(_taken_out(argument, joining) for argument in term.arguments))
    if not isinstance(term, Add | Mul | Sum):
        return term
    children = tuple(_taken_out(child, joining) for child in term.children)
    if isinstance(term, Add):
        parts = _with_parts_added(children)
        if parts is not children:
            return _taken_out(add(*parts), joining)
        return _of_terms([*map(_with_reads_apart, children)], joined_networks if joining else lambda sum_: sum_)
    if isinstance(term, Mul):
        return _with_numbers_in_front([factor for child in children for factor in factors_of(child)])
    if isinstance(term, Sum):
        return one_sum(SummedProduct.over(term.indices, children))
    return term.with_children(children)


def _with_reads_apart(term: Term) -> Term:
    """A product of x[(d - 1) mod n] and y[(d - 1) mod n], each a Σ of its own, for the one Σ that reads both."""
    return mul(*(read for factor in factors_of(term) for read in _reads(factor)))


def _reads(factor: Term) -> Iterator[Term]:
    """What a Σ reads at places around axes alone, each by itself; other factors as they are."""
    found = places_around(factor).items() if isinstance(factor, Sum) else ()
    places = {index: condition for condition, (index, *_) in found}
    if not isinstance(factor, Sum) or places.keys() != {*factor.indices}:
        yield factor
        return
    for read in factors_of(factor.body):
        if read not in places.values():
            own = [index for index in factor.indices if index in read.free]
            yield total(own, mul(*(places[index] for index in own), read))


def _with_parts_added(terms: Sequence[Term]) -> Sequence[Term]:
    """Terms with Re(a + 2 b) for Re a and 2 Re b, and Im so; squares of absolute values are real as they stand."""
    found = {term: number_and_rest(term) for term in terms}
    for name in ("real", "imag"):
        parts = {
            term: mul(number, *rest.children)
            for term, (number, rest) in found.items()
            if isinstance(rest, Primitive) and rest.name == name and not number.imag and squared_modulus(rest) is None
        }
        if len(parts) > 1:
            return [*(term for term in terms if term not in parts), function(name, add(*parts.values()))]
    return terms


def in_front(terms: Sequence[Term]) -> Term:
    """A sum with the factors in front that all of its terms have, its sign too."""
    if all(map(is_negative, terms)):
        return negate(in_front([negate(term) for term in terms]))
    return _in_front(terms, lambda sum_: sum_)


def _of_terms(terms: Sequence[Term], join: Callable[[Term], Term]) -> Term:
    """A sum with the factors in front that its terms have in common, first those with the same δ's, then all."""
    groups: dict[frozenset[Term], list[Term]] = {}
    for term in terms:
        groups.setdefault(frozenset(f for f in factors_of(term) if isinstance(f, Delta)), []).append(term)
    plain = groups.pop(frozenset(), [])
    return _in_front([*plain, *(_in_front(group, join) for group in groups.values())], join)


def _with_numbers_in_front(factors: Sequence[Term]) -> Term:
    """A product with whole numbers taken out of its sums, fractions where that is shorter: ½ (a − b), but a + ⅙ b."""
    parts = [primitive(factor) for factor in factors]
    whole = [each if _is_whole(each[0]) else (factor,) for each, factor in zip(parts, factors, strict=True)]
    return min((mul(*(part for each in form for part in each)) for form in (whole, parts)), key=printed_length)


def _is_whole(term: Term) -> bool:
    return isinstance(term, Number) and isinstance(term.real, int)


def _in_front(terms: Sequence[Term], join: Callable[[Term], Term]) -> Term:
    """A sum with the factors in front that all of its terms have, and with these the number that divides the rest."""
    numbers = [mul(*(f for f in factors_of(term) if isinstance(f, Number))) for term in terms]
    others = [tuple(f for f in factors_of(term) if not isinstance(f, Number)) for term in terms]
    common, rests = common_factors(others)
    if not common:
        return _with_numbers_in_front([join(add(*terms))])
    inside = join(add(*(mul(number, *rest) for number, rest in zip(numbers, rests, strict=True))))
    return _with_numbers_in_front([*common, inside])
