"""Functions of matrices, systems of equations, and products of a matrix with itself."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from combdiff.ir import MATRIX_TABLE
from combdiff.kernels import GRAM_BLOCK, GRAM_SMALL
from combdiff.planning.operations.operation import (
    BUFFER,
    ITEM_BYTES,
    Labels,
    Occurrence,
    Operation,
    PartialResult,
    Step,
)
from combdiff.planning.operations.words import Words
from combdiff.records import dataclass

# Arrays of the size of all matrices, and of one row of each, that a function holds meanwhile. Three for those not here.
HELD: dict[str, tuple[float, int]] = {
    **dict.fromkeys(("inv", "det", "logdet", "signdet", "amax", "amin", "prod"), (0, 1)),
    **dict.fromkeys(("argsort", "argmax", "argmin"), (1, 0)),
    **dict.fromkeys(("amax_ties", "amin_ties"), (0.125, 1)),  # truth values of one byte
    **dict.fromkeys(("eigvecsh", "svd_left", "svd_right"), (1, 1)),
    **dict.fromkeys(("eigvalsh", "svdvals"), (2, 1)),
    "logdet_positive": (3, 1),
    "cumprod": (0, 0),
    "adj": (1, 4),
    "cholesky": (1, 0),
    "qr_r": (2, 2),
    "prod_others": (2, 4),
    "pinv": (4, 1),
    "sqrtm": (5, 0),
    "expm": (8, 0),
}

FOLDS = ("amax", "amin", "amax_ties", "amin_ties", "prod")  # a number of each matrix, whatever its axes are


@dataclass(frozen=True)
class MatrixFunctionStep(Operation):
    """A function of `matrices.MATRIX_TABLE` of the last two axes of the operand, for each matrix of the stack."""

    name: str

    @property
    def title(self) -> str:
        """Its name."""
        return self.name

    def labels(self, step: Step) -> Labels | None:
        """Those of the stack, of what folds a matrix; a decomposition of LAPACK's is no element-wise step."""
        if self.name not in FOLDS:
            return None
        stack = tuple(range(len(step.axes)))
        return Labels(((*stack, len(stack), len(stack) + 1),), stack, frozenset((len(stack), len(stack) + 1)))

    def flops(self, at: Occurrence) -> int:
        """A share of n³ for each matrix."""
        extents, share = at.shape_of(0), MATRIX_TABLE[self.name].cost
        return max(1, prod(extents) * extents[-1] * share.numerator // share.denominator)

    def workspace(self, at: Occurrence) -> int:
        """What is made of all matrices meanwhile, and the copies of one that LAPACK works on, each matrix in turn."""
        copies, rows = HELD.get(self.name, (3, 0))
        shape, elements = at.shape_of(0), sum(at.given)
        by_lapack = 3 * prod(shape[-2:]) if MATRIX_TABLE[self.name].cost else 0
        whole = max(elements, at.elements)  # a factor of a wide matrix has more elements than the matrix
        made = int(copies * whole) + rows * (whole // max(1, min(shape[-2:])))
        return (made + by_lapack + min(BUFFER, elements)) * max(at.item, ITEM_BYTES[at.operands[0].kind])

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The library's own."""
        return words.dialect.matrix_function(self.name, operands[0], words.shape(step.axes))


@dataclass(frozen=True)
class Decomposition(Operation):
    """The functions `names` of one matrix, or of each in a stack, by one decomposition.

    The results are those of the `DecompositionResult`s that read it.
    """

    names: tuple[str, ...]

    @property
    def title(self) -> str:
        """All that it gives."""
        return ", ".join(self.names)

    def flops(self, at: Occurrence) -> int:
        """Those of the dearest function, which the others come with."""
        return max(MatrixFunctionStep(name).flops(at) for name in self.names)

    def held(self, at: Occurrence) -> int:
        """Its results hold what it makes."""
        return 0

    def workspace(self, at: Occurrence) -> int:
        """What the one that takes most does, and results that nothing reads."""
        return max(MatrixFunctionStep(name).workspace(at) for name in self.names) + 2 * sum(at.given) * at.item

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The statement names its results."""
        raise TypeError("a decomposition is written with its results")


@dataclass(frozen=True)
class DecompositionResult(PartialResult):
    """What a decomposition gives for one of its functions."""

    name: str

    @property
    def title(self) -> str:
        """Its name."""
        return self.name


@dataclass(frozen=True)
class LinearSolve(Operation):
    """The inverse of the first operand times the second; says which of them, and whether the result, is transposed."""

    matrix_transposed: bool
    right_transposed: bool
    transposed: bool

    def flops(self, at: Occurrence) -> int:
        """A factorisation, and two triangular systems for each column."""
        rows, others = at.shape_of(0)[0], at.shape_of(1)
        return max(1, rows**3 // 3 + rows * prod(others))

    def workspace(self, at: Occurrence) -> int:
        """Copies that LAPACK works on."""
        return 3 * sum(at.given) * at.item

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A helper, whose errors call the matrix by name."""
        turned = (self.matrix_transposed, self.right_transposed)
        matrix, right = (f"{text}.T" if turn else text for text, turn in zip(operands, turned, strict=True))
        text = words.dialect.linear_solve(matrix, right, operands[0])
        return f"{text}.T" if self.transposed else text


@dataclass(frozen=True)
class Gram(Operation):
    """Σ_i conj(X[i,a])·s[i]·X[i,d] of a matrix X, summed along its `axis`, and a real vector s, or no s.

    `flipped` says that the result is transposed, which is conjugated.
    """

    axis: int
    flipped: bool = False

    def flops(self, at: Occurrence) -> int:
        """One triangle of the product."""
        rows, columns = self._sides(at)
        return rows * columns * (columns + 1) // 2

    def workspace(self, at: Occurrence) -> int:
        """Some rows at a time, scaled and conjugated."""
        return 2 * gram_block(*self._sides(at)) * at.item

    def _sides(self, at: Occurrence) -> tuple[int, int]:
        shape = at.shape_of(0)
        return shape[self.axis], shape[1 - self.axis]

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A helper that computes one triangle."""
        turned = f"{operands[0]}{'.T' if self.axis else ''}"
        return f"_gram({', '.join([turned, *operands[1:]])}){'.T' if self.flipped else ''}"


def gram_block(rows: int, columns: int) -> int:
    """The elements of the rows that `_gram` takes at a time, of a matrix with so many rows and columns."""
    if columns < 64 or rows * columns <= GRAM_SMALL:
        return rows * columns
    return columns * min(rows, max(16, min(columns // 2, GRAM_BLOCK // columns)))
