"""Angles added: products of sines and cosines of two angles that are one sine or cosine of their sum or difference.

    cos(a) cos(b) + sin(a) sin(b)                 →   cos(a − b)
    sin(a) cos(b) − cos(a) sin(b)                 →   sin(a − b)
    a − a sin(x)²                                 →   a cos(x)²
    Σ_{i,j} (cos(x[i]) cos(x[j]) + sin(x[i]) sin(x[j]))   as it is: n cosines and n sines for n² cosines

Invariant: the value is unchanged, and no angle has more indices than those that it is made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations

from combdiff.ir import Add, Number, Primitive, Term, add, factors_of, free_indices, function, mul, negate
from combdiff.simplification.normal_form.lengths import printed_length


def with_angles_added(term: Term) -> Term:
    """A term, if it is a sum with two of its terms as one as long as that makes it shorter."""
    while isinstance(term, Add):
        shorter = min(_forms(term), key=printed_length, default=term)
        if printed_length(shorter) >= printed_length(term):
            break
        term = shorter
    return term


def _forms(sum_: Add) -> Iterator[Term]:
    """The sum with two of its terms as one function of a sum or difference of two angles, for any two that are that."""
    parts = [(term, *_taken_apart(term)) for term in sum_.terms if any(map(is_angle, factors_of(term)))]
    yield from _with_squares(sum_, parts)
    for (one, first, above), (other, second, below) in permutations(parts, 2):
        if first not in (second, negate(second)):
            continue
        common = above & below
        joined = _joined(_angles(above - common), _angles(below - common), same=first is second)
        if joined is not None:
            others = (term for term in sum_.terms if term not in (one, other))
            yield add(*others, mul(first, *common.elements(), joined))


def _with_squares(sum_: Add, parts: Sequence[tuple[Term, Term, Counter[Term]]]) -> Iterator[Term]:
    """The sum with a cos(x)² for a − a sin(x)², and the like."""
    known = {
        (number, frozenset(factors.items())): term for term in sum_.terms for number, factors in [_taken_apart(term)]
    }
    for square, number, factors in parts:
        for factor in (each for each, n in factors.items() if n > 1 and is_angle(each)):
            assert isinstance(factor, Primitive)
            rest = factors - Counter({factor: 2})
            term = known.get((negate(number), frozenset(rest.items())))
            if term is not None:
                other = function("cos" if factor.name == "sin" else "sin", *factor.arguments)
                others = (each for each in sum_.terms if each not in (square, term))
                yield add(*others, mul(negate(number), *rest.elements(), other, other))


def _taken_apart(term: Term) -> tuple[Term, Counter[Term]]:
    """A product as its numbers and the other factors."""
    factors = Counter(factors_of(term))
    numbers = [factor for factor in factors if isinstance(factor, Number)]
    return mul(*numbers), Counter({factor: n for factor, n in factors.items() if factor not in numbers})


def is_angle(term: Term) -> bool:
    """Whether a term is a sine or cosine."""
    return isinstance(term, Primitive) and term.name in ("sin", "cos")


def _angles(factors: Counter[Term]) -> dict[str, list[Term]] | None:
    """The angles of a sine or cosine times another, by function; None for other products."""
    if factors.total() != 2 or not all(map(is_angle, factors)):
        return None
    found: dict[str, list[Term]] = {"sin": [], "cos": []}
    for factor in factors.elements():
        assert isinstance(factor, Primitive)
        found[factor.name].append(factor.arguments[0])
    return found


def _joined(one: dict[str, list[Term]] | None, other: dict[str, list[Term]] | None, *, same: bool) -> Term | None:
    """What two such products add up to, or by how much the first is larger if they do not have the `same` sign."""
    match one, other:
        case {"cos": [a, b]}, {"sin": [c, d]} if {a, b} == {c, d}:
            name, sign = "cos", -1 if same else 1
        case {"sin": [a], "cos": [b]}, {"cos": [c], "sin": [d]} if (a, b) == (c, d):
            name, sign = "sin", 1 if same else -1
        case _:
            return None
    if {*free_indices(a)} != {*free_indices(b)}:
        return None
    return function(name, add(a, b if sign > 0 else add(*map(negate, b.terms if isinstance(b, Add) else (b,)))))
