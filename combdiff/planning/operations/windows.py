"""How a product with a sliding window is computed, and what that costs: multiplications, memory while it is done.

    Σ_k x[i + k]·w[k]      len(y)·len(w) products; for the time being a band of weights and some windows beside x and y

The functions count what those of `kernels/bands` do, case by case; where a case depends on how an array lies in memory,
the dearer one counts. So does the way that infinite elements take.

Invariant: no product takes more memory than `Sliding.elements` and its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from combdiff.kernels import CHUNK
from combdiff.planning.operations.operation import BUFFER, ITEM_BYTES
from combdiff.planning.operations.reads import AGAIN
from combdiff.records import dataclass

FEW_PRODUCTS = 1 << 14  # with which a loop over a narrow window takes about as long as the making of blocks
NARROW = 24  # elements of a window that a loop goes over
CHANNELS = 8  # before and after, with which a product for each element of a window is as quick as one by blocks
SHORT, FEW_LAGS = 7, 4  # elements of windows without channels with which `np.convolve` and a loop are as quick


@dataclass(frozen=True)
class Sliding:
    """A product of an array of axes (rows, size, inner) by windows of `width` elements, `count` of them in each row.

    For `lags`, `count` elements of each row are summed over and there are `width` results; `outer` counts the elements
    of the other operand for each element of a window. The first window begins at `start`, each other one `stride` after
    the one before. `plain` says that inner and outer axes there are none, `mixed` that the element types of the
    operands differ, `real` that the result is of real numbers, `scattered` of each operand that its elements do not lie
    in order in memory, `wrap` that the array goes around.
    """

    rows: int
    size: int
    inner: int
    width: int
    count: int
    outer: int
    start: int
    stride: int
    wrap: bool
    lags: bool
    plain: bool
    mixed: bool
    real: bool
    scattered: tuple[bool, bool]

    @property
    def flops(self) -> int:
        """How many elements are multiplied."""
        other = self._other
        return other.flops if other else self.rows * self.count * self.width * self.inner * self.outer

    @property
    def helper(self) -> str:
        """The function that computes it."""
        if self._goes_by_lags:
            return "_lag_sums" if self.lags else "_window_sums"
        if self._other:
            return "_by_phases" if self.lags else "_exchanged"
        if self._is_short:
            return "_short"
        return "_lags" if self.lags else "_correlate"

    @property
    def _goes_by_lags(self) -> bool:
        """Whether each element of a window is multiplied by itself.

        So are narrow windows of matrices of channels, which are products enough for BLAS, and those with few products.
        """
        if self.plain and self.lags and self.width <= FEW_LAGS:
            return True
        return self.width <= NARROW and (min(self.inner, self.outer) >= CHANNELS or self.flops <= FEW_PRODUCTS)

    @property
    def _is_short(self) -> bool:
        """Whether `np.convolve` multiplies windows of a few elements, all rows as one."""
        return self.plain and not self.lags and self.width <= SHORT and self.stride == 1 and self.real

    @property
    def _other(self) -> Sliding | None:
        """The product that is done instead, where most of the windows lies outside of the array; else None."""
        if self.wrap or self.size == 0:
            return None
        if not self.lags and self.width > self.size:
            return replace(
                self,
                rows=self.outer,
                size=self.width,
                width=self.size,
                outer=self.rows,
                start=-self.start - self.stride * (self.count - 1),
                scattered=(True, True),
                plain=False,
            )
        if self.lags and (self.size + 2 * self.stride) * 2 < self.count * self.stride:
            first = -((self.start + self.stride - 1) // self.stride)
            turns = -(-self.width // self.stride)
            return replace(
                self,
                rows=self.outer,
                size=self.count,
                inner=self.rows,
                width=max(1, (self.size - 1 - self.start) // self.stride + 1 - first),
                count=turns,
                outer=self.stride * self.inner,
                start=first - (turns - 1),
                stride=1,
                lags=False,
                scattered=(True, True),
                plain=False,
            )
        return None

    @property
    def block(self) -> int:
        """How many windows to multiply at once: for few, products are narrow; for many, the band is wide."""
        if other := self._other:
            return other.block

        def wide(size: int) -> int:
            return ((size - 1) * self.stride + self.width) * self.inner

        sizes = [1 << n for n in range(7) if 1 << n < 2 * self.count]
        fitting = [size for size in sizes if wide(size) * size * self.outer <= 16 * CHUNK]
        return min(fitting or [1], key=lambda size: wide(size) * (self.outer + 9 / size))

    @property
    def held(self) -> int:
        """The elements of the array that the result lies in."""
        if not self.flops or not self.size or self._goes_by_lags:
            return self._results
        if other := self._other:
            return other._results if self.lags else other._in_blocks
        if self._is_short:
            return self.rows * self._span
        return self._results if self.lags else self._in_blocks

    @property
    def elements(self) -> int:
        """The elements of arrays beside the operands and what the result lies in, at most."""
        if not self.flops or not self.size:
            return 0
        if self._goes_by_lags:
            return self._turned + self._each_lag
        if other := self._other:
            if not self.lags:
                return other._by_blocks
            laid = other.width * other.outer * other.inner
            finite = other._results // ITEM_BYTES[float]
            after = other._in_blocks + max(finite, self._each_lag + self._results)
            return self._copied_array + laid + max(other._by_blocks + other._in_blocks, after)
        if self._is_short:
            vector = self.rows * (self._span + self.width)
            copied = not self._is_inside or (self.rows > 1 and self._span < self.size)
            usual = self._copied_array + (copied + self.mixed) * vector
            return self._turned + self.width + max(usual, self._each_lag + self._results - self.held)
        return self._turned + self._by_blocks

    @property
    def _in_blocks(self) -> int:
        """The elements of results that lie in blocks."""
        return max(way.laid for way in self._ways)

    @property
    def _by_blocks(self) -> int:
        """What is taken where windows are multiplied by blocks."""
        return max(map(self._blocks, self._ways))

    @property
    def _results(self) -> int:
        """The elements of the result."""
        return (self.width * self.inner if self.lags else self.rows * self.count) * self.outer

    @property
    def _span(self) -> int:
        """The elements that the windows of a row reach over."""
        return (self.count - 1) * self.stride + self.width

    @property
    def _length(self) -> int:
        """The elements of a row that windows are taken of: what goes around is laid out before."""
        return self._span if self.wrap else self.size

    @property
    def _is_inside(self) -> bool:
        """Whether no window goes over an end of the array."""
        return self.start >= 0 and self.start + self._span <= self._length

    @property
    def _turned(self) -> int:
        """A copy of what is read of an array that goes around, and the places of what goes around again and again."""
        places = 2 * self._span if self._span > AGAIN * self.size else 0
        return self.wrap * (self.rows * self._span * self.inner + places)

    @property
    def _copied_array(self) -> int:
        """A copy of an array that does not lie in order."""
        return self.scattered[0] * self.rows * self._length * self.inner

    @property
    def _copied_other(self) -> int:
        """A copy of the other operand, where it does not lie in order."""
        return self.scattered[1] * (self.rows * self.count if self.lags else self.width * self.inner) * self.outer

    @property
    def _each_lag(self) -> int:
        """What is taken where each element of a window is multiplied by itself."""
        matrix, wide = self.inner * self.outer, max(self.inner, self.outer)
        long = max(1, min(self.count, CHUNK // wide))
        many = min(self.rows, max(1, CHUNK // max(long * wide, matrix if self.lags else 1)))
        copied = self._copied_array + self._copied_other
        copied += self.mixed * many * long * (self.inner + self.outer * self.lags)
        if self.lags:
            return copied + (many + 2) * matrix
        product = many * long * self.outer
        in_a_row = self._is_inside and (long == self.count or self.rows == 1)  # else NumPy lays it out to add it up
        laid = 3 if self.inner == 1 else 0 if in_a_row else 2  # and what is repeated, to multiply it
        return copied + product + laid * min(BUFFER, product) + self.mixed * matrix

    @property
    def _ways(self) -> Sequence[_BlocksOfWindows]:
        """How the windows may be laid out in blocks: those of all rows together, where few go over the end of a row."""
        length, count, stride = self._length, self.count, self.stride
        apart = _BlocksOfWindows(self, self.rows, length, count)
        begin_all = length % stride == 0 and 4 * length <= 5 * count * stride
        if not (begin_all and self._is_inside):
            return (apart,)
        together = _BlocksOfWindows(self, 1, self.rows * length, (self.rows - 1) * (length // stride) + count)
        return (together, apart) if self.scattered[0] or self.wrap else (together,)

    def _blocks(self, way: _BlocksOfWindows) -> int:
        """What blocks of windows take: a band or sums along its diagonals, the windows, and what is laid out for lags.

        And how the same is done where something is infinite, while some of that is held still.
        """
        band = way.wide * self.inner * self.block * self.outer
        copied = self._copied_array + self._copied_other
        if self.lags:
            others = (1 + self.mixed) * way.laid
            return copied + max(others + way.windows + 2 * band + self._results, way.laid + band + self._each_lag)
        return copied + max((1 + self.mixed) * band + way.windows, band + self._each_lag + self._results - way.laid)


@dataclass(frozen=True)
class _BlocksOfWindows:
    """Windows of some lines of `size` places, `count` in each, in blocks that are rows of matrices."""

    of: Sliding
    lines: int
    size: int
    count: int

    @property
    def many(self) -> int:
        """How many blocks there are in a line."""
        return -(-self.count // self.of.block)

    @property
    def wide(self) -> int:
        """How many places the windows of a block reach over."""
        return (self.of.block - 1) * self.of.stride + self.of.width

    @property
    def laid(self) -> int:
        """The elements of results in blocks."""
        return self.lines * self.many * self.of.block * self.of.outer

    @property
    def windows(self) -> int:
        """Elements of lines that are copied with zeros around them, and of matrices of blocks that are copied."""
        step, one, many, tail = self.of.block * self.of.stride, self.wide * self.of.inner, self.many, 0
        start, last = self.of.start, self.of.start + (many - 1) * step
        if self.lines == 1 and start >= 0 and last - step + self.wide <= self.size < last + self.wide:
            many, tail = many - 1, one  # the last block alone goes over the end
        reach = (many - 1) * step + self.wide
        outside = many > 0 and (start < 0 or start + reach > self.size)
        around = outside * self.lines * reach * self.of.inner
        overlapping = -(-self.wide // step)
        if many >= 32 * overlapping and (outside or not self.of.scattered[0]):
            return around + max(tail, self.of.mixed * -(-many // overlapping) * one)
        long = max(1, min(many, CHUNK // -(-one // 4)))
        at_once = min(self.lines, max(1, CHUNK // (long * -(-one // 4)))) * long * one
        two = min(2 * at_once, self.lines * many * one + tail)  # the next matrix is made beside one
        return around + max(two, at_once + tail) + self.of.mixed * at_once
