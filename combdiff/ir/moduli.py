"""Even powers of absolute values without the absolute value.

    |z|²  →  Re(z* z)        for complex z
    |x|⁴  →  x⁴              for real x

The absolute value has a kink at 0, its even powers have none: written without it they have every derivative there,
and derivatives without sign(z) and 1/|z|.

Invariant: the value is unchanged, and of real type.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from combdiff.ir.inlining import free_indices
from combdiff.ir.primitives import TABLE, function, is_branched, power, raised, whole, whole_power
from combdiff.ir.products import factors_beside, factors_of
from combdiff.ir.substitution import apply, substitute
from combdiff.ir.terms import (
    MINUS_ONE,
    Add,
    Apply,
    Conj,
    Lambda,
    Mul,
    Number,
    Primitive,
    Sum,
    Term,
    conj,
    mul,
    remembered,
    total,
)
from combdiff.ir.types import dtype_of
from combdiff.ir.waves import is_wave


def power_of(base: Term, exponent: Term) -> Term:
    """base ** exponent."""
    argument = _inside(base)
    number = whole(exponent)
    if argument is None or number is None or number <= 0 or number % 2:
        return power(base, exponent)
    if dtype_of(argument) is not complex:
        return power(argument, exponent)
    return power(function("real", mul(conj(argument), argument)), Number(number // 2))


def with_moduli(exponents: Mapping[Term, int]) -> dict[Term, int]:
    """Factors with their exponents, in which what stands beside its conjugate is a modulus: z² z* is |z|² z."""
    if not any(map(_may_have_conjugate, exponents)):
        return dict(exponents)
    paired: dict[Term, int] = {}
    for base, exponent in exponents.items():
        other = _conjugate_among(base, exponents)
        pairs = 0 if other is None else min(exponent, exponents[other])
        if other is not None and pairs:
            modulus = Primitive("abs", (_plainer(base, other),))
            paired[modulus] = 2 * pairs + exponents.get(modulus, 0)
        if isinstance(base, Mul) and len(base.factors) == 2 and _are_conjugates(*base.factors):
            paired[Primitive("abs", (_plainer(*base.factors),))] = 2 * exponent
        elif exponent > pairs:
            paired.setdefault(base, exponent - pairs)
    return paired


def _plainer(one: Term, conjugate: Term) -> Term:
    """The one of two conjugates with fewer conjugates in it: z of z and z*."""
    return min(one, conjugate, key=_conjugates_in)


def _conjugate_among(term: Term, others: Collection[Term]) -> Term | None:
    """The conjugate of a term among others, however it is written: z* − b* of z − b. z + z* has no other."""
    plain = conj(term)
    if plain in others:
        return plain if plain is not term else None
    if not isinstance(term, Add | Mul | Sum):
        return None
    return next((other for other in others if other is not term and _are_conjugates(term, other)), None)


def _are_conjugates(one: Term, other: Term) -> bool:
    if conj(one) is other or (one is other and dtype_of(one) is not complex):
        return True
    if isinstance(one, Sum) and isinstance(other, Sum):
        alike = [index.type for index in one.indices] == [index.type for index in other.indices]
        alike &= other.free.isdisjoint(one.indices)
        renamed = dict(zip(other.indices, one.indices, strict=False))
        return alike and _are_conjugates(one.body, substitute(other.body, renamed))
    if is_wave(one) and is_wave(other):
        return function("exp", mul(MINUS_ONE, *one.children)) is other
    if not (isinstance(one, Add) and isinstance(other, Add)) and not (isinstance(one, Mul) and isinstance(other, Mul)):
        return False
    left = list(other.children)
    for part in one.children:
        found = next((each for each in left if _are_conjugates(part, each)), None)
        if found is None:
            return False
        left.remove(found)
    return not left


@remembered
def _may_have_conjugate(term: Term) -> bool:
    """Whether a conjugate or a wave is written in a term."""
    return isinstance(term, Conj) or is_wave(term) or any(map(_may_have_conjugate, term.children))


@remembered
def _conjugates_in(term: Term) -> int:
    """How often a conjugate is written in a term."""
    return isinstance(term, Conj) + sum(map(_conjugates_in, term.children))


def _inside(term: Term) -> Term | None:
    """z where a term is |z|, perhaps as an element of a tensor given element by element."""
    if isinstance(term, Apply) and isinstance(term.function, Lambda) and _inside(term.function.body) is not None:
        return _inside(apply(term.function, term.arguments))
    return term.arguments[0] if isinstance(term, Primitive) and term.name == "abs" else None


def squared_modulus(term: Term) -> Term | None:
    """z where a term is Re(z* z), else None."""
    if not (isinstance(term, Primitive) and term.name == "real" and isinstance(product := term.arguments[0], Mul)):
        return None
    if len(product.factors) != 2:
        return None
    one, other = product.factors
    if not _are_conjugates(one, other):
        return None
    return _plainer(one, other)


def with_part_outside(term: Sum) -> Term | None:
    """Re(Σ_i r[i] A[i,d] b[i]) for Σ_i r[i] Re(A[i,d] b[i]), with real r: a product of matrices; else None. So is Im.

    It stays where r[i,d] has more elements than the product, or the product is the square of an absolute value.
    """
    factors = factors_of(term.body)
    parts = [one for one in factors if _is_part_of_product(one) and squared_modulus(one) is None]
    if len(parts) != 1 or any(dtype_of(one) is complex for one in factors):
        return None
    part = parts[0]
    assert isinstance(part, Primitive)
    own = set(free_indices(part))
    if any(own < set(free_indices(one)) for one in factors):
        return None
    return function(part.name, total(term.indices, mul(*factors_beside(part, term.body), *part.arguments)))


def _is_part_of_product(term: Term) -> bool:
    return isinstance(term, Primitive) and term.name in ("real", "imag") and isinstance(term.arguments[0], Mul)


def with_real_moduli(term: Term, *, inside_roots: bool) -> Term | None:
    """A number with Re(z* z) for its products of z and z*, 2 Re z for z + z*, None where other parts are complex, too.

    Those inside arguments of functions as well, of functions with a branch cut if `inside_roots`: √ of a negative
    number is none where that is of real type.
    """
    if dtype_of(term) is not complex:
        return term
    if isinstance(term, Primitive):
        if term.name not in (*TABLE, "power") or (is_branched(term) and not inside_roots):
            return None
    elif not isinstance(term, Add | Mul | Sum):
        return None
    left, found = list(term.children), list[Term]()
    while left:
        one = left.pop(0)
        base, exponent = whole_power(one)
        other = _conjugate_among(base, [whole_power(each)[0] for each in left]) if isinstance(term, Mul) else None
        if other is not None and (partner := raised(other, exponent)) in left:
            left.remove(partner)
            plain = _plainer(base, other)
            real: Term | None = raised(function("real", mul(conj(plain), plain)), exponent)
        elif isinstance(term, Add) and (other := _conjugate_among(one, left)) is not None:
            left.remove(other)
            real = mul(Number(2), function("real", _plainer(one, other)))
        else:
            real = with_real_moduli(one, inside_roots=inside_roots)
        if real is None:
            return None
        found.append(real)
    new = mul(*found) if isinstance(term, Mul) else term.with_children(tuple(found))
    return new if dtype_of(new) is not complex else None
