"""Windows that slide along an axis: products with them, and sums of what they overlap in.

Σ_k x[2i + k]·w[k]               Correlate(stride=2, …) of x and w
Σ_{i,j} [2i + j = d]·K[i, j]     Fold(stride=2) of K
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from combdiff.ir import Domain
from combdiff.planning.extents import at_most, extent_form, shape
from combdiff.planning.operations.operation import BUFFER, ITEM_BYTES, Occurrence, Operation, Step
from combdiff.planning.operations.windows import Sliding
from combdiff.planning.operations.words import Pattern, Words
from combdiff.polyhedra import Linear
from combdiff.records import dataclass

FEW_PRODUCTS = 1 << 16  # of elements, which NumPy's own convolution does as soon as products by blocks
SHORT_WINDOWS = range(2, 8)  # elements of those that it slides along as quickly


@dataclass(frozen=True)
class Correlate(Operation):
    """A product with a window that slides along an axis of the first operand, with zeros outside of it.

    The axes of the operands are taken in the orders `left` and `right`. The first `kept` axes of A are not summed over;
    along the next it is read at `start + stride·i + k`:  Σ A[…, start + stride·i + k, …]·w[k, …] over k and the axes of
    A after, which w has next, or, for `lags`, Σ A[…]·v[…, i, …] over the kept axes and i, with i after those in v. The
    axes of the result are then taken in the order `out`. `turned` says of k and of i whether they count from the end.
    """

    left: Pattern
    right: Pattern
    out: Pattern
    kept: int
    start: Linear
    stride: int
    wrap: bool
    turned: tuple[bool, bool]
    lags: bool

    def flops(self, at: Occurrence) -> int:
        """The elements that are multiplied."""
        return self._sliding([operand.axes for operand in at.operands], at.step, at.sizes).flops

    def held(self, at: Occurrence) -> int:
        """The elements of what the result lies in: blocks of windows may be some more."""
        sliding = self._in_memory(at)
        return sliding.held if sliding else at.elements

    def workspace(self, at: Occurrence) -> int:
        """A band of weights, windows, and results laid out; of vectors with few elements what NumPy's own takes."""
        if sliding := self._in_memory(at):
            return sliding.elements * at.item
        (length,), (width,), (count,) = at.shape_of(0), at.shape_of(1), at.shape
        results, mixed = count * self.stride, not at.operands[0].is_like(at.operands[1])
        span = results + width - 1
        more = width + (results if self.stride > 1 else 0)
        if self.wrap:  # the positions that are read, twice, then the elements there
            cast = mixed * (span + width)
            return max((2 * ITEM_BYTES[int]) * span - count * at.item, (span + more + cast) * at.item)
        start = int(self.start.evaluate(at.sizes))
        read = max(0, min(length, start + span) - max(0, start))
        if read == span:
            return (more + mixed * (read + width)) * at.item
        copied = read + width if mixed or width > read else width  # NumPy slides the shorter over the longer one
        return (more + copied + read) * at.item

    def slides(self, operands: Sequence[Sequence[Domain]], out: Sequence[Domain], sizes: Mapping[str, int]) -> bool:
        """Whether it is a product of two vectors with few elements, or with a short window, at those sizes."""
        if max(map(len, operands)) > 1 or (self.lags and self.stride > 1):
            return False
        (length,), (width,), (count,) = (map(extent_form, axes) for axes in (*operands, out))
        return self._is_short(length, width, count) or at_most(FEW_PRODUCTS, (width, count.scale(self.stride)), sizes)

    def _is_short(self, length: Linear, width: Linear, count: Linear) -> bool:
        """Whether a short window slides over the whole of the first operand."""
        is_whole = self.start == Linear() and length == count + width - 1 and self.stride == 1 and not self.wrap
        return is_whole and width in map(Linear().__add__, SHORT_WINDOWS)

    def _in_memory(self, at: Occurrence) -> Sliding | None:
        """The product as its operands lie in memory; None where NumPy's own function does it."""
        axes = [operand.axes for operand in at.operands]
        if self.slides(axes, at.step.axes, at.sizes):
            return None
        orders = zip((self.left, self.right), at.whole, strict=True)
        first, second = (order != tuple(range(len(order))) or not whole for order, whole in orders)
        mixed = not at.operands[0].is_like(at.operands[1])
        return replace(self._sliding(axes, at.step, at.sizes), mixed=mixed, scattered=(first, second))

    def _sliding(self, operands: Sequence[Sequence[Domain]], step: Step, sizes: Mapping[str, int]) -> Sliding:
        """The product with the extents of its groups of axes, of arrays of one element type that lie in order."""
        orders = zip(operands, (self.left, self.right), strict=True)
        left, right = (shape([axes[n] for n in order], sizes) for axes, order in orders)
        along = shape([self._along(step)], sizes)[0]
        after = self.kept + 1 if self.lags else len(left) - self.kept
        return Sliding(
            rows=prod(left[: self.kept]),
            size=left[self.kept],
            inner=prod(left[self.kept + 1 :]),
            width=along if self.lags else right[0],
            count=right[self.kept] if self.lags else along,
            outer=prod(right[after:]),
            start=0 if self.wrap else int(self.start.evaluate(sizes)),
            stride=self.stride,
            wrap=self.wrap,
            lags=self.lags,
            plain=len(left) == self.kept + 1 and len(right) == after,
            mixed=False,
            real=step.kind is float,
            scattered=(False, False),
        )

    def _along(self, step: Step) -> Domain:
        """The axis of the result that the window slides along, or, for lags, that of the lags."""
        return step.axes[self.out.index(0 if self.lags else self.kept)]

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """NumPy's own convolution, where that is as good; else a helper, given the axes in order."""
        axes = [words.axes[m] for m in step.operands]
        if self.slides(axes, step.axes, words.planned):
            return self._plain(words, step, operands)
        sliding, start, along = self._sliding(axes, step, words.planned), self.start, extent_form(self._along(step))
        orders = (self.left, self.right)
        array, other = (words.dialect.transposed(text, order) for text, order in zip(operands, orders, strict=True))
        if self.wrap:
            other_axis = extent_form(axes[1][self.right[self.kept if self.lags else 0]])
            width, count = (along, other_axis) if self.lags else (other_axis, along)
            span = words.form((count - 1).scale(self.stride) + width)
            array, start = f"_wrapped({words.dialect.np}, {array}, {self.kept}, {words.form(start)}, {span})", Linear()
        short, long = ("[::-1]" if turned else "" for turned in self.turned)
        long = long and f"[{':, ' * self.kept}::-1]"
        other, turned = (f"{other}{long}", short) if self.lags else (f"{other}{short}", long)
        place = f"{self.kept}, {words.form(start)}, {self.stride}"
        given = f"{other}, {words.form(along)}"
        helper, at = sliding.helper, f"{place}, {given}"
        if helper == "_short":
            at = f"{words.form(start)}, {given}"
        elif helper not in ("_lag_sums", "_window_sums"):
            at = f"{at}, {sliding.block}"
        text = f"{helper}({array}, {at})"
        return words.dialect.transposed(f"{text}{turned}", self.out)

    def _plain(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A product of two vectors, as NumPy has it."""
        length, width, count = (extent_form(axes[0]) for axes in (*(words.axes[m] for m in step.operands), step.axes))
        inner, outer = self.turned[::-1] if self.lags else self.turned
        array, weights = operands
        if self._is_short(length, width, count):
            weights = weights if inner else f"{weights}[::-1]"
            text = f'np.convolve({array}, {weights}, "valid")'
            text = f"{text}[:{words.form(count)}]"  # without a window it has another length
        else:
            start, results = self.start, count.scale(self.stride)
            if self.wrap:
                places = words.dialect.arange(words.form(start), words.form(start + results + width - 1))
                array, start = f"{array}[{places} % {words.form(length)}]", Linear()
            weights = f"{weights}[::-1]" if inner else weights
            text = f"_slide({array}, {words.form(start)}, {weights}, {words.form(results)})"
            text = f"{text}[::{self.stride}].copy()" if self.stride > 1 else text
        return f"{text}[::-1]" if outer else text


@dataclass(frozen=True)
class Fold(Operation):
    """The sum of the elements (i, j, …) of the operand at `stride·i + j + start` along the first axis of the result."""

    stride: int
    start: Linear

    def workspace(self, at: Occurrence) -> int:
        """Rows laid out one after the other, shifted."""
        count, width, *rest = at.shape_of(0)
        laid = abs(self.stride) * (count + -(-width // abs(self.stride))) * prod(rest)
        return (laid + 2 * min(BUFFER, sum(at.given))) * at.item

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A helper."""
        return f"_fold({operands[0]}, {self.stride}, {words.form(self.start)}, {words.extent(step.axes[0])})"
