"""A product with exponentials, put together so that as few as possible may overflow.

    exp(x[i]) · exp(−L)² · Σ_j exp(x[j])·v[j]   →   exp(x[i] − L) · Σ_j exp(x[j] − L)·v[j]

Exponentials are taken apart into *units*, one addend of an exponent each, which go in front of a Σ or inside of it; a
factor w goes into an exponent as log|w|, with its sign in front, where a logarithm there has it as a weight.

Invariant: what is put together is the product.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice

from combdiff.ir import (
    ONE,
    ZERO,
    Add,
    Number,
    Primitive,
    Term,
    Var,
    add,
    dtype_of,
    is_domain,
    mul,
    remembered,
    substitute,
    subterms,
    total,
)
from combdiff.simplification import factors_of
from combdiff.stability.exponentials import is_nonnegative
from combdiff.stability.overflow import risk

MOST_MOVED = 4  # units into one Σ
MOST_TRIES = 256  # of ways to put a product together


@dataclass(frozen=True)
class ExponentialProduct:
    """Factors · Π exp(unit) · Π Σ of a product over some indices."""

    factors: tuple[Term, ...] = ()
    units: tuple[Term, ...] = ()
    sums: tuple[tuple[tuple[Var, ...], ExponentialProduct], ...] = ()

    def __mul__(self, other: ExponentialProduct) -> ExponentialProduct:
        return ExponentialProduct(self.factors + other.factors, self.units + other.units, self.sums + other.sums)


@lru_cache(maxsize=8192)
def put_together(part: ExponentialProduct, extra: tuple[Term, ...] = ()) -> Term:
    """A product with its units, and more, where as few exponentials as possible may overflow."""
    units = part.units + extra
    if not part.sums:
        term = mul(*part.factors, exponential(units))
        return _absorbed(part.factors, units) if risk(term) else term
    best: tuple[int, Term] | None = None
    for tried, (moved, left) in enumerate(_assignments([inner for _, inner in part.sums], units)):
        sums = (total(i, put_together(inner, more)) for (i, inner), more in zip(part.sums, moved, strict=True))
        term = mul(*part.factors, *sums, exponential(left))
        danger = risk(term)
        if best is None or danger < best[0]:
            best = danger, term
        if not danger or tried > MOST_TRIES:
            break
    assert best is not None
    return best[1]


def _absorbed(factors: tuple[Term, ...], units: tuple[Term, ...]) -> Term:
    """A product whose exponential may overflow, with factors in the exponent where these are weights in a logarithm."""
    plain = mul(*factors, exponential(units))
    names = frozenset[Term]().union(*map(_weight_names, units))
    chosen = [f for f in factors if not isinstance(f, Number) and _weight_name(magnitude(f)[1]) in names]
    if not chosen:
        return plain
    rest = list(factors)
    for factor in chosen:
        rest.remove(factor)
    signs, logarithms = zip(*map(magnitude, chosen), strict=True)
    found = mul(*rest, *signs, exponential((*units, *logarithms)))
    return found if risk(found) < risk(plain) else plain


@remembered
def _weight_names(unit: Term) -> frozenset[Term]:
    """The names of the logarithms in a unit."""
    logs = (node for node in subterms(unit) if isinstance(node, Primitive) and node.name == "log")
    return frozenset(map(_weight_name, logs))


@remembered
def _weight_name(term: Term) -> Term:
    """A logarithm up to the names of its indices, without the number in front."""
    logarithm = next((f for f in factors_of(term) if isinstance(f, Primitive) and f.name == "log"), term)
    indices = sorted((v for v in logarithm.free if is_domain(v.type)), key=lambda v: v.name)
    return substitute(logarithm, {v: Var(f"#{n}", v.type) for n, v in enumerate(indices)})


def magnitude(factor: Term) -> tuple[Term, Term]:
    """The sign of a real factor and the logarithm of its absolute value."""
    if isinstance(factor, Primitive) and factor.name == "power":
        base, exponent = factor.arguments
        if isinstance(exponent, Number) and isinstance(exponent.real, int) and dtype_of(base) is not complex:
            sign, logarithm = magnitude(base)
            return ONE if exponent.real % 2 == 0 else sign, mul(exponent, logarithm)
    if is_nonnegative(factor):
        return ONE, Primitive("log", (factor,))
    return Primitive("sign", (factor,)), Primitive("log", (Primitive("abs", (factor,)),))


def _assignments(
    inner: Sequence[ExponentialProduct], units: tuple[Term, ...]
) -> Iterator[tuple[list[tuple[Term, ...]], tuple[Term, ...]]]:
    """The ways to move units into Σ's, those that help first: what each takes, and what is left."""
    if not inner:
        yield [], units
        return
    first, *rest = inner
    for taken in _helpful(first, units):
        left = tuple((Counter(units) - Counter(taken)).elements())
        for moved, last in _assignments(rest, left):
            yield [taken, *moved], last


def _helpful(part: ExponentialProduct, units: tuple[Term, ...]) -> list[tuple[Term, ...]]:
    """Choices of units that keep a Σ from overflowing, the smallest first; any, where no choice does."""
    helpful = (taken for taken in _choices(units) if not risk(put_together(part, taken)))
    first = next(helpful, None)
    if first is None:
        return list(islice(_choices(units), 16))
    more = _choices(units, len(first) + 1)
    return list(islice((taken for taken in more if not risk(put_together(part, taken))), 8))


def _choices(units: tuple[Term, ...], most: int = MOST_MOVED) -> Iterator[tuple[Term, ...]]:
    seen = set()
    for count in range(min(len(units), most, MOST_MOVED) + 1):
        for taken in combinations(units, count):
            key = frozenset(Counter(taken).items())
            if key not in seen:
                seen.add(key)
                yield taken


def addends_of(term: Term) -> tuple[Term, ...]:
    """The addends of a sum, or the term itself."""
    return term.terms if isinstance(term, Add) else (term,)


def exponential(units: Iterable[Term]) -> Term:
    """exp of the sum of units."""
    exponent = add(*units)
    return ONE if exponent is ZERO else Primitive("exp", (exponent,))
