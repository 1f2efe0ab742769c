"""Fragments of Python text that every dialect writes alike: numbers, tuples, parentheses, slices.

    literal(Number(Fraction(1, 3)))  =  "(1 / 3)",     parenthesised("a + b")  =  "(a + b)"

Invariant: a number that is written is read back as the same floating point number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from combdiff.ir import Domain, Number, as_float
from combdiff.planning import Contract, Position, extent_form
from combdiff.polyhedra import Linear

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def einsum_operands(op: Contract, left: str, right: str) -> tuple[str, str, str]:
    """The subscripts and operands of an einsum for a contraction.

    JAX sums labels in the order of the alphabet, and XLA transposes what does not have them so: letters go along the
    operand with more axes. XLA is quick where that one has its summed labels last and comes first, or the reverse.
    """
    longer, shorter = (op.left, op.right) if len(op.left) >= len(op.right) else (op.right, op.left)
    names = {label: LETTERS[n] for n, label in enumerate(dict.fromkeys((*longer, *shorter)))}
    operands = [(op.left, left), (op.right, right)]
    if (operands[0][0] == longer) == (longer[0] in op.summed):
        operands.reverse()
    inputs = ["".join(map(names.__getitem__, pattern)) for pattern, _ in operands]
    output = "".join(map(names.__getitem__, op.out))
    return f"{','.join(inputs)}->{output}", operands[0][1], operands[1][1]


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


def slice_text(position: Position, axis: Domain, labels: Sequence[Domain]) -> str | None:
    """Basic indexing that reads an axis there whatever the sizes: whole, reversed or one element; else None."""
    used = [n for n, size in enumerate(position.steps) if size]
    length = extent_form(axis)
    if position.divisor > 1 or len(used) > 1:
        return None
    if not used:
        known = not length.symbols and not position.start.symbols
        return str(position.start) if known and 0 <= position.start.constant < length.constant else None
    if extent_form(labels[used[0]]) != length:
        return None
    step = position.steps[used[0]]
    if step == 1 and position.start == Linear():
        return ":"
    return "::-1" if step == -1 and position.start == length - 1 else None
