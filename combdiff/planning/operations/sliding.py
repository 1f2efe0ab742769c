"""Windows that slide along an axis: products with them, and sums of what they overlap in.

Σ_k x[2i + k]·w[k]               Correlate(stride=2, …) of x and w
Σ_{i,j} [2i + j = d]·K[i, j]     Fold(stride=2) of K
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from combdiff.ir import Domain
from combdiff.planning.extents import at_least, at_most, extent_form
from combdiff.planning.operations.operation import BUFFER, ITEM_BYTES, Occurrence, Operation, Step
from combdiff.planning.operations.windows import Sliding
from combdiff.planning.operations.words import Pattern, Words
from combdiff.polyhedra import Linear
from combdiff.records import dataclass

FEW_PRODUCTS = 1 << 16  # of elements, which NumPy's own convolution does as soon as products by blocks
FEW_AT_ONCE = 1 << 14  # with which a loop over a narrow window takes about as long as the making of blocks
NARROW_WINDOWS = 24
CHANNELS = 8  # before and after, with which a product for each element of a window is as quick as one by blocks
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
        return self._sliding(at).flops

    def workspace(self, at: Occurrence) -> int:
        """A band of weights, windows, and results laid out; of vectors with few elements what NumPy's own takes."""
        if not self.slides([operand.axes for operand in at.operands], at.step.axes, at.sizes):
            sliding = self._sliding(at)
            by_lags = self.goes_by_lags([operand.axes for operand in at.operands], at.step.axes, at.sizes)
            return (sliding.each_lag if by_lags else sliding.elements) * at.item
        (length,), (width,), (count,) = at.shape_of(0), at.shape_of(1), at.shape
        results = count * self.stride
        span = results + width - 1
        more = width + (results if self.stride > 1 else 0)
        if self.wrap:  # the positions that are read, twice, then the elements there
            return max((2 * ITEM_BYTES[int]) * span - count * at.item, (span + more) * at.item)
        is_inside = self.start == Linear() and span <= length
        return (more if is_inside else more + min(length, span) + width) * at.item

    def slides(self, operands: Sequence[Sequence[Domain]], out: Sequence[Domain], sizes: Mapping[str, int]) -> bool:
        """Whether it is a product of two vectors with few elements, or with a short window, at those sizes."""
        if max(map(len, operands)) > 1 or (self.lags and self.stride > 1):
            return False
        (length,), (width,), (count,) = (map(extent_form, axes) for axes in (*operands, out))
        return self._is_short(length, width, count) or at_most(FEW_PRODUCTS, (width, count.scale(self.stride)), sizes)

    def goes_by_lags(
        self, operands: Sequence[Sequence[Domain]], out: Sequence[Domain], sizes: Mapping[str, int]
    ) -> bool:
        """Whether each element of a window is multiplied by itself, at those sizes.

        So are narrow windows of matrices of channels, which are products enough for BLAS, and those with few products.
        """
        left, right = ([operands[n][axis] for axis in order] for n, order in enumerate((self.left, self.right)))
        of_result = out[self.out.index(0 if self.lags else self.kept)]
        width, count = (of_result, right[self.kept]) if self.lags else (right[0], of_result)
        outer = right[self.kept + 1 if self.lags else len(left) - self.kept :]
        inner = left[self.kept + 1 :]
        if self.wrap or not at_most(NARROW_WINDOWS, [extent_form(width)], sizes):
            return False
        if all(at_least(CHANNELS, map(extent_form, axes), sizes) for axes in (inner, outer)):
            return True
        return at_most(FEW_AT_ONCE, map(extent_form, (width, count, *left[: self.kept], *inner, *outer)), sizes)

    def _is_short(self, length: Linear, width: Linear, count: Linear) -> bool:
        """Whether a short window slides over the whole of the first operand."""
        is_whole = self.start == Linear() and length == count + width - 1 and self.stride == 1 and not self.wrap
        return is_whole and width in map(Linear().__add__, SHORT_WINDOWS)

    def _sliding(self, at: Occurrence) -> Sliding:
        """The product with the extents of its groups of axes."""
        left, right = ([at.shape_of(n)[axis] for axis in order] for n, order in enumerate((self.left, self.right)))
        result = dict(zip(self.out, at.shape, strict=True))
        after = self.kept + 1 if self.lags else len(left) - self.kept
        return Sliding(
            rows=prod(left[: self.kept]),
            size=left[self.kept],
            inner=prod(left[self.kept + 1 :]),
            width=result[0] if self.lags else right[0],
            count=right[self.kept] if self.lags else result[self.kept],
            outer=prod(right[after:]),
            stride=self.stride,
            wrap=self.wrap,
            lags=self.lags,
            plain=len(left) == self.kept + 1 and len(right) == after,
            mixed=at.operands[0].kind is not at.operands[1].kind,
            real=at.step.kind is float,
            scattered=self.left != tuple(range(len(left))) or not all(at.whole[:1]),
        )

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """NumPy's own convolution, where that is as good; else a helper, given the axes in order."""
        if self.slides([words.axes[m] for m in step.operands], step.axes, words.planned):
            return self._plain(words, step, operands)
        orders = (self.left, self.right)
        array, other = (words.dialect.transposed(text, order) for text, order in zip(operands, orders, strict=True))
        short, long = ("[::-1]" if turned else "" for turned in self.turned)
        long = long and f"[{':, ' * self.kept}::-1]"
        place = f"{array}, {self.kept}, {words.form(self.start)}, {self.stride}"
        sums, lags = "_window_sums", "_lag_sums"
        if not self.goes_by_lags([words.axes[m] for m in step.operands], step.axes, words.planned):
            place, sums, lags = f"{place}, {int(self.wrap)}", "_correlate", "_lags"
        extent = words.extent(step.axes[self.out.index(0 if self.lags else self.kept)])
        if self.lags:
            text = f"{lags}({place}, {other}{long}, {extent}){short}"
        else:
            text = f"{sums}({place}, {other}{short}, {extent}){long}"
        return words.dialect.transposed(text, self.out)

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
