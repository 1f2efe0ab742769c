"""Numbers that know how they were made from named sizes.

    n = Quantity(40, symbol("n"))
    8 * n**4                  # before: 20480000
    str((8 * n**4).form)      # after: '8·n⁴'

Whatever computes a cost with +, −, ·, whole powers, division by a number, min and max computes its polynomial at the
same time. Where a comparison decides, the polynomial is that of the case the sizes are in; any other operation gives a
plain number, which is constant.

Invariant: `form` at the sizes is the number, up to the rounding of divisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from combdiff.records import dataclass

Powers = tuple[tuple[str, int], ...]
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Polynomial:
    """Products of powers of sizes, each with its coefficient, the highest degree first; prints as a sum."""

    terms: tuple[tuple[Powers, Fraction], ...] = ()

    def __add__(self, other: Polynomial) -> Polynomial:
        return _collected((*self.terms, *other.terms))

    def __mul__(self, other: Polynomial) -> Polynomial:
        return _collected((_times(left, right), a * b) for left, a in self.terms for right, b in other.terms)

    def scaled(self, factor: Fraction | int) -> Polynomial:
        """The polynomial times a number."""
        return _collected((powers, factor * value) for powers, value in self.terms)

    def at(self, sizes: Mapping[str, int]) -> Fraction:
        """The value at given sizes."""
        total = Fraction(0)
        for powers, value in self.terms:
            for name, power in powers:
                value *= sizes[name] ** power
            total += value
        return total

    def __str__(self) -> str:
        terms = sorted(self.terms, key=lambda term: term[1] < 0)
        text = "".join((" - " if value < 0 else " + ") + _written(powers, abs(value)) for powers, value in terms)
        return ("-" if text.startswith(" -") else "") + text[3:] or "0"


def symbol(name: str) -> Polynomial:
    """The polynomial that is one size."""
    return Polynomial(((((name, 1),), Fraction(1)),))


def constant(value: int | Fraction) -> Polynomial:
    """The polynomial that is a number."""
    return _collected([((), Fraction(value))])


def _collected(terms: Iterable[tuple[Powers, Fraction]]) -> Polynomial:
    total: dict[Powers, Fraction] = {}
    for powers, value in terms:
        total[powers] = total.get(powers, Fraction(0)) + value
    kept = [(powers, value) for powers, value in total.items() if value]
    return Polynomial(tuple(sorted(kept, key=lambda term: (-sum(power for _, power in term[0]), term[0]))))


def _times(left: Powers, right: Powers) -> Powers:
    powers = dict(left)
    for name, power in right:
        powers[name] = powers.get(name, 0) + power
    return tuple(sorted(powers.items()))


def _written(powers: Powers, value: Fraction) -> str:
    factors = [name + (str(power).translate(_RAISED) if power > 1 else "") for name, power in powers]
    number = f"{value.numerator:,}" + (f"/{value.denominator}" if value.denominator > 1 else "")
    return "·".join(factors if value == 1 and factors else [number, *factors])


def _operation(
    of_numbers: Callable[[int, int], int], of_forms: Callable[[Polynomial, Polynomial], Polynomial]
) -> Callable[[int, int], int]:
    """An operation on quantities and whole numbers; with other numbers they are plain."""

    def operation(self: int, other: int) -> int:
        value = of_numbers(self, other)
        return value if value is NotImplemented else Quantity(value, of_forms(form_of(self), form_of(other)))

    return operation


class Quantity(int):
    """A whole number with the polynomial in named sizes that it is the value of."""

    form: Polynomial

    def __new__(cls, value: int, form: Polynomial) -> Quantity:
        """The number `value` that is the value of `form`."""
        made = super().__new__(cls, value)
        made.form = form
        return made

    def __getnewargs__(self) -> tuple[int, Polynomial]:  # type: ignore[override]
        return int(self), self.form

    def __pow__(self, power: int, modulus: None = None) -> int:  # type: ignore[override]
        product: int = 1
        for _ in range(power):
            product = product * self
        return product

    def __floordiv__(self, other: int) -> int:
        value = int(self) // int(other)
        return value if isinstance(other, Quantity) else Quantity(value, self.form.scaled(Fraction(1, other)))

    __add__ = _operation(int.__add__, lambda a, b: a + b)
    __radd__ = __add__
    __sub__ = _operation(int.__sub__, lambda a, b: a + b.scaled(-1))
    __rsub__ = _operation(int.__rsub__, lambda a, b: b + a.scaled(-1))
    __mul__ = _operation(int.__mul__, lambda a, b: a * b)
    __rmul__ = __mul__


def form_of(value: int) -> Polynomial:
    """The polynomial of a number, constant for a plain one."""
    return value.form if isinstance(value, Quantity) else constant(int(value))


def quantity(value: int) -> Quantity:
    """A number with its polynomial."""
    return Quantity(value, form_of(value))
