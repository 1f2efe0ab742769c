"""How a product with a sliding window is computed, and what that costs: multiplications, memory while it is done.

    Σ_k x[i + k]·w[k]      len(y)·len(w) products; for the time being a band of weights and some windows beside x and y

The functions count what those of `kernels/bands` do, case by case; where a case depends on how an array lies in memory,
the dearer one counts. So does the way that infinite elements take.

Invariant: no product takes more memory than `Sliding.elements` and its result.
"""

from __future__ import annotations

from dataclasses import replace

from combdiff.kernels import CHUNK
from combdiff.planning.operations.operation import BUFFER
from combdiff.records import dataclass

FEW_PRODUCTS = 1 << 14  # with which a loop over a narrow window takes about as long as the making of blocks
NARROW = 24  # elements of a window that a loop goes over
CHANNELS = 8  # before and after, with which a product for each element of a window is as quick as one by blocks
SHORT, FEW_LAGS = 7, 4  # elements of windows without channels with which `np.convolve` and a loop are as quick


@dataclass(frozen=True)
class Sliding:
    """A product of an array of axes (rows, size, inner) by windows of `width` elements, `count` of them in each row.

    For `lags`, `count` elements of each row are summed over and there are `width` results; `outer` counts the elements
    of the other operand for each element of a window. `plain` says that inner and outer axes there are none. `mixed`
    says that the element types of the operands differ, `real` that the result is of real numbers, `scattered` that the
    elements of the array do not lie in order in memory, `wrap` that the array goes around.
    """

    rows: int
    size: int
    inner: int
    width: int
    count: int
    outer: int
    stride: int
    wrap: bool
    lags: bool
    plain: bool
    mixed: bool
    real: bool
    scattered: bool

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
                self, rows=self.outer, size=self.width, width=self.size, outer=self.rows, scattered=True, plain=False
            )
        if self.lags and (self.size + 2 * self.stride) * 2 < self.count * self.stride:
            return replace(
                self,
                rows=self.outer,
                size=self.count,
                inner=self.rows,
                width=-(-self.size // self.stride) + 1,
                count=-(-self.width // self.stride),
                outer=self.stride * self.inner,
                stride=1,
                lags=False,
                scattered=True,
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
    def elements(self) -> int:
        """The elements of arrays beside the operands and the result, at most."""
        if not self.flops or not self.size:
            return 0
        if self._goes_by_lags:
            return self._turned + self._each_lag
        if other := self._other:
            laid = other.width * other.outer * other.inner + self._results if self.lags else 0
            return other.elements + other._results + 2 * laid
        if self._is_short:
            return self._turned + self._scattered + (1 + self.mixed) * self.rows * (self._span + self.width)
        return self._turned + max(self._blocks(), self._each_lag + self._results * self.lags)

    @property
    def _results(self) -> int:
        """The elements of the result."""
        return (self.width * self.inner if self.lags else self.rows * self.count) * self.outer

    @property
    def _span(self) -> int:
        """The elements that the windows of a row reach over."""
        return (self.count - 1) * self.stride + self.width

    @property
    def _turned(self) -> int:
        """A copy of what is read of an array that goes around."""
        return self.wrap * self.rows * self._span * self.inner

    @property
    def _scattered(self) -> int:
        """A copy of an array that does not lie in order."""
        return self.scattered * self.rows * self.size * self.inner

    @property
    def _each_lag(self) -> int:
        """What is taken where each element of a window is multiplied by itself."""
        matrix, wide = self.inner * self.outer, max(self.inner, self.outer)
        long = max(1, min(self.count, CHUNK // wide))
        many = min(self.rows, max(1, CHUNK // max(long * wide, matrix if self.lags else 1)))
        cast = self.mixed * many * long * (self.inner + self.outer * self.lags)
        if self.lags:
            return self._scattered + self.rows * self.count * self.outer + cast + (many + 2) * matrix
        product = many * long * self.outer  # and what NumPy lays out of it to add it up
        return self._scattered + cast + product + 2 * min(BUFFER, product) + (self.width + self.mixed) * matrix

    def _blocks(self) -> int:
        """What blocks of windows take: a band or sums along its diagonals, the windows, and results laid out."""
        step, many = self.block * self.stride, -(-self.count // self.block)
        wide = ((self.block - 1) * self.stride + self.width) * self.inner
        laid = self.rows * max(many * self.block, 5 * self.count // 4 + self.block) * self.outer
        spread = self.rows * ((many - 1) * step * self.inner + wide)
        windows = min(self.rows * many * wide, max(4 * CHUNK, wide)) * (1 + self.mixed)
        band = wide * self.block * self.outer
        common = self._scattered + spread + windows + laid + self.mixed * self.rows * many * wide
        if self.lags:
            return common + laid * self.mixed + 2 * band + self._results
        return common + band * (1 + self.mixed)
