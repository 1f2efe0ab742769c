"""Discrete Fourier transforms along some axes.

    Σ_j x[j] exp(−2π i j k / n)          FourierTransform(axes=(0,), sign=−1) of x: np.fft.fft(x, n)
    Σ_k y[k] exp(2π i j k / n)           FourierTransform(axes=(0,), sign=1) of y: n · np.fft.ifft(y, n)

Invariant: n log n operations on numbers for n points; rows of fewer numbers count as if zeros followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from combdiff.planning.extents import extent_form
from combdiff.planning.operations.operation import Labels, Occurrence, Operation, Step
from combdiff.planning.operations.words import Words
from combdiff.records import dataclass

FLOPS = 5  # for each point and each halving, as is usual to count
ROWS = 4  # that are held to transform one of a prime length, which is a convolution


@dataclass(frozen=True)
class FourierTransform(Operation):
    """Sums times exp(sign · 2π i j k / n), with j the place along an axis and k < n that in the result."""

    axes: tuple[int, ...]
    sign: int

    def labels(self, step: Step) -> Labels:
        """Those of the other axes; along these each result needs all elements."""
        labels = tuple(range(len(step.axes)))
        return Labels((tuple(None if n in self.axes else n for n in labels),), labels, frozenset(self.axes))

    def flops(self, at: Occurrence) -> int:
        """n log n for n points."""
        points = prod(at.shape[axis] for axis in self.axes)
        return FLOPS * at.elements * max(1, (points - 1).bit_length())

    def workspace(self, at: Occurrence) -> int:
        """What one axis of several gives, real numbers as complex ones; a row that is worked on, with its factors."""
        row = max(at.shape[axis] for axis in self.axes)
        copied = max(at.elements * (len(self.axes) > 1), 0 if at.operands[0].is_like(at.step) else at.given[0])
        return (copied + ROWS * row) * at.item

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The library's own."""
        (operand,) = step.operands
        text = words.widened(operand, operands[0], step.kind)
        given = words.axes[operand]
        same = all(extent_form(given[axis]) == extent_form(step.axes[axis]) for axis in self.axes)
        points = [] if same else [words.extent(step.axes[axis]) for axis in self.axes]
        last = self.axes == (len(step.axes) - 1,)
        return words.dialect.fourier(text, points, () if last else self.axes, self.sign, words.shape(step.axes))
