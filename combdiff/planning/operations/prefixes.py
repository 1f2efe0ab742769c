"""Sums along an axis up to each position, or from it on; the largest elements, sums of exponentials, powers, alike.

    Σ_{j ≤ i} x[j]                        PrefixSum of x: np.cumsum(x), read at i
    max_{j ≤ i} x[j]                      PrefixMax of x: np.maximum.accumulate(x)
    Σ_{j ≤ i} r[j]·exp(x[j] + y[i])       PrefixExponentials of x, y and r: no product overflows that the sum does not
    log Σ_{j ≤ i} exp(x[j])               PrefixLogSumExp of x: np.logaddexp.accumulate(x)
    x[i] ** j                             Powers of x: each is a product of two

Invariant: each takes one pass over the axis, in time and memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from combdiff.ir import Domain
from combdiff.planning.extents import extent_form
from combdiff.planning.operations.operation import ITEM_BYTES, Labels, Occurrence, Operation, Step
from combdiff.planning.operations.words import Pattern, Words
from combdiff.polyhedra import Linear
from combdiff.records import dataclass

SCAN = 4  # arrays as large as the sums that are found, which a scan by pairs of neighbours holds at a time
SCAN_OF_MAXIMA = 5  # and as large as what the largest is found of
SCAN_OBJECTS = 1 << 13  # bytes of the interpreter's objects for these


@dataclass(frozen=True)
class Prefix(Operation):
    """Over the positions l of `axis` with `sign·l + steps · t + start ≥ 0`; the labels t stand in its place."""

    axis: int
    sign: int
    steps: tuple[int, ...]
    start: Linear

    @property
    def in_rows(self) -> bool:
        """What is summed up from the end on is a view from there."""
        return self.sign < 0

    def labels(self, step: Step) -> Labels:
        """Those beside the bound's, which needs all elements."""
        bound = range(self.axis, self.axis + len(self.steps))
        labels = range(len(step.axes) - len(self.steps) + 1)
        operand = (None if n == self.axis else n + (len(bound) - 1) * (n > self.axis) for n in labels)
        return Labels((tuple(operand),), tuple(range(len(step.axes))), frozenset(bound))

    def bound(self, words: Words, step: Step) -> str:
        """What is added to `sign·l`, along the labels t."""
        labels = step.axes[self.axis : self.axis + len(self.steps)]
        return words.grid(self.steps, self.start, labels, full=True)

    def accumulated(self, words: Words, operand: str, forwards: Callable[[str], str]) -> str:
        """What takes all up to each position, or with an array turned round twice all from each on."""
        if self.sign < 0:
            return forwards(operand)
        np, axes = words.dialect.np, f"({self.axis},)"
        return f"{np}.flip({forwards(f'{np}.flip({operand}, {axes})')}, {axes})"

    def takes_all_beside(self, step: Step, summed: Sequence[Domain]) -> bool:
        """Whether each position takes all of as many positions up to its own, or all from its own on."""
        same = extent_form(step.axes[self.axis]) == extent_form(summed[self.axis]) if self.steps else False
        return same and self.steps == (-self.sign,) and self.start == Linear()


@dataclass(frozen=True)
class PrefixSum(Prefix):
    """Sums along `axis`."""

    def workspace(self, at: Occurrence) -> int:
        """The sums, with 0 before them, made of those without; the bound, and the places that it makes."""
        (many,) = at.given
        if self.takes_all_beside(at.step, at.operands[0].axes):
            return 0
        row = many // max(1, at.shape_of(0)[self.axis])
        places = prod(at.shape[self.axis : self.axis + len(self.steps)]) * ITEM_BYTES[int]
        before = (2 * (many + row) - at.elements) * at.item + places, (many + row - at.elements) * at.item + 3 * places
        return max(*before, (many + row) * at.item + 2 * places)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The library's running sum, where each position takes all up to its own, or from its own on; else a helper."""
        if self.takes_all_beside(step, words.axes[step.operands[0]]):
            return self.accumulated(words, operands[0], lambda x: f"{words.dialect.np}.cumsum({x}, {self.axis})")
        return f"_running({words.dialect.np}, {operands[0]}, {self.axis}, {self.sign}, {self.bound(words, step)})"


@dataclass(frozen=True)
class PrefixMax(Prefix):
    """The largest elements along `axis`; −∞ of none."""

    def workspace(self, at: Occurrence) -> int:
        """What a scan takes, and the places at which it is read."""
        if self.takes_all_beside(at.step, at.operands[0].axes):
            return 0
        places = prod(at.shape[self.axis : self.axis + len(self.steps)]) * ITEM_BYTES[int]
        return max(SCAN_OF_MAXIMA * at.given[0] - at.elements, 0) * at.item + 3 * places + SCAN_OBJECTS

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """NumPy accumulates; other libraries have a helper."""
        if words.dialect.native and self.takes_all_beside(step, words.axes[step.operands[0]]):
            return self.accumulated(words, operands[0], lambda x: f"np.maximum.accumulate({x}, {self.axis})")
        return f"_running_max({words.dialect.np}, {operands[0]}, {self.axis}, {self.sign}, {self.bound(words, step)})"


@dataclass(frozen=True)
class PrefixExponentials(Prefix):
    """Sums of exp(x + y)·r along `axis` of x and of r, with y at the labels t; r is 1 where there is none.

    The axes of x and r lie along `patterns`, which count `axis` in place of all labels t; those of y as the result's.
    Sums of x and y count as no larger than 0 where `low`: they are, but where both are infinite.
    """

    patterns: tuple[Pattern, ...]
    low: bool = False

    def labels(self, step: Step) -> Labels:
        """Those of the result, but for the axis that is summed over."""
        more = len(self.steps) - 1
        exponent, shift, *weight = self.patterns
        inner = [
            tuple(None if n == self.axis else n + more * (n > self.axis) for n in pattern)
            for pattern in (exponent, *weight)
        ]
        bound = range(self.axis, self.axis + len(self.steps))
        return Labels((inner[0], shift, *inner[1:]), tuple(range(len(step.axes))), frozenset(bound))

    def flops(self, at: Occurrence) -> int:
        """Exponentials, products and sums."""
        return 8 * at.elements + 8 * sum(at.given)

    def workspace(self, at: Occurrence) -> int:
        """What a scan takes, of both operands, and the places at which it is read."""
        bound = prod(at.shape[self.axis : self.axis + len(self.steps)])
        scanned = at.elements // max(1, bound) * at.shape_of(0)[self.patterns[0].index(self.axis)]
        meanwhile = max(SCAN * scanned + SCAN_OF_MAXIMA * at.given[0] - at.elements, 2 * scanned + 3 * at.elements)
        return meanwhile * at.item + 2 * bound * ITEM_BYTES[int] + SCAN_OBJECTS

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A helper."""
        rank = len(step.axes)
        ranks = [rank - len(self.steps) + 1] * 3
        ranks[1] = rank
        texts = [
            _of_rank(words, words.widened(m, text, step.kind), pattern, size)
            for m, text, pattern, size in zip(step.operands, operands, self.patterns, ranks, strict=False)
        ]
        weight = texts[2] if len(texts) > 2 else "1"
        rest = f"{self.axis}, {self.sign}, {self.bound(words, step)}, {self.low}"
        return f"_running_exponentials({words.dialect.np}, {texts[0]}, {texts[1]}, {weight}, {rest})"


@dataclass(frozen=True)
class PrefixLogSumExp(Prefix):
    """Logarithms of sums of exponentials along `axis`, of all up to each position or from it on.

    The axes of the operand lie along `pattern`.
    """

    pattern: Pattern

    def labels(self, step: Step) -> Labels:
        """Those of the result, but for the axis that is summed over."""
        operand = tuple(None if n == self.axis else n for n in self.pattern)
        return Labels((operand,), tuple(range(len(step.axes))), frozenset({self.axis}))

    def flops(self, at: Occurrence) -> int:
        """An exponential and a logarithm for each element."""
        return 4 * at.elements

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The library's own."""
        (operand,) = step.operands
        text = _of_rank(words, words.widened(operand, operands[0], step.kind), self.pattern, len(step.axes))
        return self.accumulated(words, text, lambda x: words.dialect.log_sums_so_far(x, self.axis))


def _of_rank(words: Words, text: str, pattern: Pattern, rank: int) -> str:
    """An array with as many axes, in front too."""
    text = words.dialect.transposed(text, sorted(range(len(pattern)), key=pattern.__getitem__))
    slots = [":" if axis in pattern else "None" for axis in range(rank)]
    return f"{text}[{', '.join(slots)}]" if "None" in slots else text


@dataclass(frozen=True)
class Powers(Operation):
    """All powers of an array, with exponents from `first` on, along `axis`; its own axes lie along `pattern`."""

    axis: int
    pattern: Pattern
    first: Linear

    def labels(self, step: Step) -> Labels:
        """Those of the result's axes; a power needs those before it."""
        return Labels((self.pattern,), tuple(range(len(step.axes))), frozenset({self.axis}))

    def flops(self, at: Occurrence) -> int:
        """A product each."""
        return at.elements

    def workspace(self, at: Occurrence) -> int:
        """Two powers of all numbers, whose exponents are powers of two."""
        return 2 * at.given[0] * at.item

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A helper."""
        base = words.placed(operands[0], self.pattern, len(step.axes))
        return f"_powers({base}, {words.shape(step.axes)}, {self.axis}, {words.form(self.first)})"
