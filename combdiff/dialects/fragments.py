"""Fragments of Python text that every dialect writes alike: numbers, tuples, parentheses.

    literal(Number(Fraction(1, 3)))  =  "(1 / 3)",     parenthesised("a + b")  =  "(a + b)"

Invariant: a number that is written is read back as the same floating point number.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from combdiff.ir import Number, as_float

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def literal(number: Number) -> str:
    """A number as Python writes it."""
    if not number.imag:
        return _real_literal(number.real)
    imag = _real_literal(number.imag)
    imag = f"{imag}j" if imag.lstrip("-").replace(".", "").isdigit() else f"{imag} * 1j"
    return f"({imag})" if not number.real else f"({_real_literal(number.real)} + {imag})"


def _real_literal(value: int | Fraction | float) -> str:
    if isinstance(value, int) and abs(value) < 2**53:
        return str(value)
    nearest = as_float(value)
    if isinstance(value, Fraction) and value.denominator & (value.denominator - 1):
        return f"({value.numerator} / {value.denominator})"
    text = repr(nearest)
    return text if any(c.isdigit() for c in text) else f'float("{text}")'


def parenthesised(text: str) -> str:
    """The text as one operand of a product or power."""
    plain = text.isalnum() or text.replace("_", "a").replace(".", "0").isalnum()
    return text if plain or text.startswith("(") else f"({text})"


def tuple_text(items: Iterable[str], *, single: bool = True) -> str:
    """A tuple; one item alone stands without it unless `single`."""
    items = list(items)
    if len(items) == 1:
        return f"({items[0]},)" if single else items[0]
    return f"({', '.join(items)})"
