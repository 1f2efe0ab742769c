"""Numbers and domains as egglog text.

    3/2 = (bigrat (from-string "3") (from-string "2"))        Cyclic("n") = "mod n"

Invariant: equal values have equal text, different values different text.
"""

from __future__ import annotations

from fractions import Fraction

from combdiff.ir import Cyclic, Range, Real, Symmetric, Whole


def rational(value: int | Fraction) -> str:
    """An exact rational as an egglog BigRat."""
    value = Fraction(value)
    return f'(bigrat (from-string "{value.numerator}") (from-string "{value.denominator}"))'


def domain_key(type_: object) -> str:
    """A short text that is equal for equal domains."""
    match type_:
        case Range(size):
            return f"{size}"
        case Cyclic(size):
            return f"mod {size}"
        case Symmetric(bound):
            return f"± {bound}"
        case Real():
            return "real"
        case Whole():
            return "size"
    raise TypeError(f"not a domain: {type_!r}")
