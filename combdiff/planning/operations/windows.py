"""What a product with a sliding window costs: its multiplications, and the memory that it takes while it is done.

    Σ_k x[i + k]·w[k]      len(y)·len(w) products; for the time being a band of weights and some windows beside x and y

The functions count what those of `bands` do, case by case; where a case depends on how an array lies in memory, the
dearer one counts. So does the way that infinite elements take, which costs arrays of the operands' sizes.

Invariant: no product takes more memory than `Sliding.elements` and its result.
"""

from __future__ import annotations

from combdiff.kernels import CHUNK, block_size
from combdiff.planning.operations.operation import BUFFER
from combdiff.records import dataclass


@dataclass(frozen=True)
class Sliding:
    """A product of an array of axes (rows, size, inner) by windows of `width` elements, `count` of them in each row.

    For `lags`, `count` elements of each row are summed over and there are `width` results; `outer` counts the elements
    of the other operand for each element of a window. `plain` says that inner and outer axes there are none. `mixed`
    says that the element types of the operands differ, `real` that the result is of real numbers,
    `scattered` that the elements of the array do not lie in order in memory.
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
        other = self._other()
        return other.flops if other else self.rows * self.count * self.width * self.inner * self.outer

    @property
    def elements(self) -> int:
        """The elements of arrays beside the operands and the result, at most."""
        other = self._other()
        if other and self.lags:
            many = other.width * self.stride * self.rows * self.inner
            return 2 * many + other.elements + 2 * other.results + self._plainly()
        if other:
            return max(other.elements + self.rows * self.size * self.inner + self.results, self._row_by_row())
        if self._is_empty:
            return 0
        if self.lags:
            return max(self._few(), self._blocks()) + self._plainly()
        few = self.plain and self.width <= 7 and self.stride == 1 and self.real
        return self._short() if few else max(self._blocks(), self._row_by_row())

    @property
    def each_lag(self) -> int:
        """The elements of arrays beside the operands and the result, where each element of a window is by itself."""
        if self._is_empty:
            return 0
        laid, matrix = self.scattered * self.rows * self.size * self.inner, self.inner * self.outer
        wide, least = max(self.inner, self.outer), matrix if self.lags else 1
        long = max(1, min(self.count, CHUNK // 4 // wide))
        many = min(self.rows, max(1, CHUNK // 4 // max(long * wide, least)))
        cast = self.mixed * many * long * (self.inner + self.outer * self.lags)
        if self.lags:
            return laid + self.rows * self.count * self.outer + cast + (many + 2) * matrix
        product = many * long * self.outer  # and what NumPy lays out of it to add it up
        return laid + cast + product + 2 * min(BUFFER, product) + (self.width + self.mixed) * matrix

    @property
    def _is_empty(self) -> bool:
        return not all((self.rows, self.size, self.inner, self.width, self.count, self.outer))

    @property
    def results(self) -> int:
        """The elements of the result."""
        return (self.width * self.inner if self.lags else self.rows * self.count) * self.outer

    def _other(self) -> Sliding | None:
        """The product that is done instead, where most of the windows lies outside of the array; else None."""
        if self.wrap or self.size == 0:
            return None
        if not self.lags and self.width > self.size:
            return Sliding(
                *(self.outer, self.width, self.inner, self.size, self.count, self.rows, self.stride),
                *(False, False, False, self.mixed, self.real, True),
            )
        if self.lags and (self.size + 2 * self.stride) * 2 < self.count * self.stride:
            many, turns = -(-self.size // self.stride) + 1, -(-self.width // self.stride)
            outer = self.stride * self.inner
            return Sliding(
                *(self.outer, self.count, self.rows, many, turns, outer, 1),
                *(False, False, False, self.mixed, self.real, True),
            )
        return None

    @property
    def _span(self) -> int:
        """The elements that the windows of a row reach over."""
        return (self.count - 1) * self.stride + self.width

    def _few(self) -> int:
        """What lags that are few take, which `np.convolve` or `np.einsum` multiplies."""
        if not self.plain or self.width > 11:
            return 0
        return self.rows * (self.size + 3 * self._span) + self.results

    def _short(self) -> int:
        """What `np.convolve` takes of windows of a few elements: rows laid end to end, and their results."""
        rows = self.rows if self._span == self.size else min(self.rows, max(1, CHUNK // 2 // self._span))
        laid = self.scattered * self.rows * self.size + self.mixed * rows * self._span
        return laid + 2 * rows * self._span

    def _row_by_row(self) -> int:
        """What is taken where an element is infinite: each lag of some rows by itself."""
        row = self._span * self.inner
        rows = min(self.rows, max(1, CHUNK // row))
        return rows * (row + self.count * (self.inner * (1 + self.mixed) + 2 * self.outer))

    def _blocks(self) -> int:
        """What blocks of windows take: a band or sums along its diagonals, the windows, and results laid out."""
        block = block_size(self.width, self.inner, self.outer, self.stride, self.count)
        wide = ((block - 1) * self.stride + self.width) * self.inner
        step = block * self.stride * self.inner
        blocks = -(-max(self._span, self.count) // (self.stride * block))  # in a row that is laid out with others
        blocks = blocks if 4 * blocks * block <= 5 * self.count else -(-self.count // block)
        row = blocks * step + wide
        windows = min(self.rows * row, max(CHUNK, row)) + wide
        windows += 2 * min(self.rows * blocks * wide, max(CHUNK, 16 * wide))
        if self.mixed:
            windows += self.rows * blocks * wide
        laid = (self.rows * max(blocks * block, 5 * self.count // 4) + block) * self.outer
        band = wide * block * self.outer
        if self.lags:
            return windows + laid * (1 + self.mixed) + 2 * band + self.results
        return windows + laid + band * (1 + self.mixed) + self.width * self.inner * self.outer

    def _plainly(self) -> int:
        """What lags take beside where an element is infinite: each by itself."""
        stretched = self.rows * self._span * self.inner
        lag = self.rows * self.count * self.inner * (1 + self.mixed)
        return stretched + lag + self.results + self.rows * self.count * self.outer
