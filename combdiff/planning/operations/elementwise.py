"""Operations element by element: sums with factors, functions, conjugates.

2·A[i, j] − x[i]     Combine((2, −1), ((0, 1), (0,)))      2 * A - x[:, None]
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod

import numpy

from combdiff.dialects import parenthesised
from combdiff.ir import OPPOSITES, TABLE, Number
from combdiff.planning.operations.leaves import Fill
from combdiff.planning.operations.operation import REUSED, Labels, Named, Occurrence, Operation, Step
from combdiff.planning.operations.words import NEGATIVE, UNIT, Pattern, SizeFactor, Words
from combdiff.records import dataclass

REPEATED = Number(3)  # a power that is written as products
IN_TWO = (Number(-2), Number(Fraction(-1, 2)), REPEATED)  # powers that are written as two operations

QUOTIENT = "divide"


@dataclass(frozen=True)
class ConjugateElements(Operation):
    """The complex conjugate, element by element."""

    def labels(self, step: Step) -> Labels:
        """Those of the axes."""
        return Labels.of_elements(step)

    def workspace(self, at: Occurrence) -> int:
        """Elements of a part of an array, which NumPy lays out."""
        return at.buffers([tuple(range(len(at.step.axes)))])

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The library's own, or a method of Python's numbers."""
        number = not step.axes and words.numbers[step.operands[0]]
        return f"{operands[0]}.conjugate()" if number else words.dialect.conjugate(operands[0])

    is_called = True

    def called(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The function of that name."""
        return f"conjugate({operands[0]})"


@dataclass(frozen=True)
class Scale(Operation):
    """The operand times a number."""

    factor: SizeFactor

    def labels(self, step: Step) -> Labels:
        """Those of the axes."""
        return Labels.of_elements(step)

    def workspace(self, at: Occurrence) -> int:
        """Elements of a part of an array, which NumPy lays out."""
        return at.buffers([tuple(range(len(at.step.axes)))])

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A product."""
        return words.scaled(self.factor, words.widened(step.operands[0], operands[0], step.kind))

    is_called = True

    def called(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A product."""
        return f"multiply({words.factor(self.factor)}, {operands[0]})"


@dataclass(frozen=True)
class Combine(Operation):
    """Σ factor·operand, each operand broadcast along its pattern."""

    factors: tuple[SizeFactor, ...]
    patterns: tuple[Pattern, ...]

    def labels(self, step: Step) -> Labels:
        """Those of the result's axes."""
        return Labels(self.patterns, tuple(range(len(step.axes))))

    def flops(self, at: Occurrence) -> int:
        """One for each operand and element."""
        return max(1, len(at.operands)) * at.elements

    def workspace(self, at: Occurrence) -> int:
        """What there is beside the result while operands times their factors are added from the left.

        NumPy writes a large sum over the one so far where that is its own, or else over a product; not where either is
        broadcast.
        """
        first, *others = sorted(range(len(at.operands)), key=lambda n: at.numbers[n])
        own = 0 if self.factors[first] == UNIT else at.given[first]  # elements of the sum so far
        most, labels = own, set(self.patterns[first])
        for n in others:
            plain = self.factors[n] in (UNIT, NEGATIVE)
            term = 0 if plain else at.given[n]
            terms = labels, set(self.patterns[n])
            labels = set.union(*terms)
            total = prod(at.shape[label] for label in labels)
            over = own == total or (term == total and not self.factors[n].is_negative)
            over = over and all(axes in (labels, set()) for axes in terms)
            most = max(most, own + term + (0 if over and self._writes_over(at, total) else total))
            own = total
        return max(0, most - at.elements) * at.item + at.buffers(self.patterns)

    @staticmethod
    def _writes_over(at: Occurrence, total: int) -> bool:
        """Whether NumPy writes sums of so many elements over terms: large ones, of one element type."""
        return total * at.item >= REUSED and all(one.is_like(at.step) for one in at.operands)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """factor·array + …; numbers stand last, as Python's `complex + np.float64` is no NumPy scalar."""
        text = ""
        parts = zip(step.operands, self.patterns, self.factors, strict=True)
        for m, pattern, factor in sorted(parts, key=lambda part: words.numbers[part[0]]):
            constant = words.constants.get(m)
            total = factor.times(SizeFactor(constant or Number(1)))
            if negative := total.is_negative:
                total = total.times(NEGATIVE)
            array = words.placed(words.widened(m, words.names[m], step.kind), pattern, len(step.axes))
            sign = (" - " if text else "-") if negative else (" + " if text else "")
            text += sign + (words.scaled(total, array) if constant is None else words.factor(total))
        return text

    @property
    def is_called(self) -> bool:
        """Whether it is a sum or difference of two."""
        return self.factors in ((UNIT, UNIT), (UNIT, NEGATIVE))

    def called(self, words: Words, step: Step, operands: Sequence[str]) -> str | None:
        """A sum or difference of two."""
        if not self.is_called:
            return None
        texts = words.aligned(operands, self.patterns, len(step.axes))
        return f"{'add' if self.factors[1] == UNIT else 'subtract'}({', '.join(texts)})"


@dataclass(frozen=True)
class ElementwiseStep(Named, Operation):
    """A function of `primitives.TABLE`, each operand broadcast along its pattern; or what makes exponents ready:

    `masked`, of a condition and a number, is −∞ where the condition is 0; `finite` is a number, or 0 where infinite,
    `capped` a number, or the largest finite one there. Of truth values, `chosen` is a number where they hold and 0
    elsewhere, and `truth` their numbers 0 and 1; `counted` are integers as real numbers; `log1p` and `expm1` are
    log(1 + x) and exp(x) − 1, and `divide` is a quotient.
    """

    name: str
    patterns: tuple[Pattern, ...]

    @property
    def takes_type(self) -> bool:
        """The numbers of truth values do."""
        return self.name == "truth"

    @property
    def is_truth(self) -> bool:
        """Whether it compares."""
        return self.name in OPPOSITES

    @property
    def fresh(self) -> bool:
        """Whether the result is not a part of its operand."""
        return self.name not in ("real", "imag")

    def labels(self, step: Step) -> Labels:
        """Those of the result's axes."""
        return Labels(self.patterns, tuple(range(len(step.axes))))

    def flops(self, at: Occurrence) -> int:
        """One for each operand and element."""
        return max(1, len(at.operands)) * at.elements

    def held(self, at: Occurrence) -> int:
        """A part of complex numbers lies in their memory."""
        return at.elements if self.fresh else 0

    def workspace(self, at: Occurrence) -> int:
        """Some powers are two operations, hypotenuses are made of squares, infinities found by truth values."""
        truths = self.name == "finite" or self.name.startswith("not_less")  # of one byte
        beside = at.item * self._in_two(at) + truths
        return beside * at.elements + (at.buffers(self.patterns) if self.fresh else 0)

    def _in_two(self, at: Occurrence) -> bool:
        """Whether an array is held between two operations; a product of three is written over that of two."""
        exponent = at.operands[-1].operation
        if self.name != "power" or not isinstance(exponent, Fill):
            return self.name == "hypot"
        over = exponent.number == REPEATED and at.elements * at.item >= REUSED
        return exponent.number in IN_TWO and not over

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A call of the library's function, or a power as something cheaper."""
        texts = words.aligned(operands, self.patterns, len(step.axes))
        numbers = [words.numbers[m] for m in step.operands]
        if self.name in ("truth", "counted"):
            return (words.dialect.cast if step.axes else words.dialect.scalar)(texts[0], words.dtype(step.kind))
        if self.name == "capped":
            number = words.dialect.largest_number(words.dtype(float))
            least = words.dialect.function("minimum", (*texts, number), (float, float), (*numbers, True))
            return words.dialect.number(least) if all(numbers) else least
        if self.name in TABLE or self.name == QUOTIENT:
            texts = [words.widened(m, text, step.kind) for m, text in zip(step.operands, texts, strict=True)]
        text = _power(words, step, texts) if self.name == "power" else None
        if text is None:
            text = words.dialect.function(self.name, texts, [words.kinds[m] for m in step.operands], numbers)
        libraries = (f"{words.dialect.np}.", f"{words.dialect.special}.")
        return words.dialect.number(text) if all(numbers) and text.startswith(libraries) else text

    @property
    def is_called(self) -> bool:
        """Whether it is written as a call of one of NumPy's functions of elements."""
        if self.name == QUOTIENT:
            return True
        row = TABLE.get("minimum" if self.name == "capped" else self.name)
        if row is None or row.fixed or self.name in ("power", "hypot", *OPPOSITES):
            return False
        return isinstance(getattr(numpy, row.numpy, None), numpy.ufunc)

    def called(self, words: Words, step: Step, operands: Sequence[str]) -> str | None:
        """What its text calls, where that is a function of elements; a reciprocal counts as one."""
        if self.name == QUOTIENT:
            return f"divide({', '.join(words.aligned(operands, self.patterns, len(step.axes)))})"
        text = self.write(words, step, operands)
        if text.startswith("1 / ") and text[4:].isidentifier():
            return f"divide(1, {text[4:]})"
        name, _, arguments = text.removeprefix(f"{words.dialect.np}.").partition("(")
        single = arguments.count("(") == arguments.count(")") - 1 and arguments.endswith(")")
        return f"{name}({arguments}" if single and isinstance(getattr(numpy, name, None), numpy.ufunc) else None


def _power(words: Words, step: Step, texts: list[str]) -> str | None:
    """A power where it is not written as a call of a function."""
    base, exponent = step.operands
    if exponent in words.constants:
        number = words.constants[exponent]
        whole = isinstance(number.real, int) and not number.imag
        below = whole and number.real < 0
        texts[1] = f"{texts[1]}.0" if below and (words.kinds[base] is int or words.numbers[base]) else texts[1]
        if words.numbers[base] and not words.positive[base] and not (whole and number.real > 0):
            return None  # Python raises at 1/0 and makes a complex number of sqrt(-1)
        if written := words.dialect.powers.get(number):
            of_arrays = "{np}" in written and words.numbers[base]
            return None if of_arrays else written.format(texts[0], np=words.dialect.np)
    elif words.kinds[base] is int and words.kinds[exponent] is int:
        return words.dialect.integer_power(*texts)
    if words.numbers[base] and not words.positive[base]:  # of arrays of exponents −1.5 has powers that are no numbers
        return None
    return f"{parenthesised(texts[0])} ** {parenthesised(texts[1])}"
