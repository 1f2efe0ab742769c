"""Functions of matrices, systems of equations, and products of a matrix with itself."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from combdiff.ir import MARKS, MATRIX_TABLE
from combdiff.kernels import GRAM_BLOCK, GRAM_SMALL
from combdiff.planning.operations.operation import (
    BUFFER,
    ITEM_BYTES,
    Labels,
    Named,
    Occurrence,
    Operation,
    PartialResult,
    Step,
)
from combdiff.planning.operations.words import Words
from combdiff.records import dataclass

# Beside the result: arrays of the size of all matrices, and of one row of each, and copies of one matrix that LAPACK
# works on. Three, none and three for those not here.
HELD: dict[str, tuple[float, int, float]] = {
    **dict.fromkeys(("det", "logdet", "signdet"), (0, 1, 1)),
    **dict.fromkeys(("cumprod", "argsort"), (0, 0, 0)),
    "prod": (1, 0, 0),
    **dict.fromkeys(("argmax", "argmin"), (1, 0, 0)),
    **dict.fromkeys(MARKS, (0.125, 1, 0)),  # truth values of one byte
    "inv": (0, 1, 2),
    "eigvalsh": (2, 2, 0),
    "eigvecsh": (1, 1, 3),
    "logdet_positive": (3, 1, 0),
    "cholesky": (1, 0, 1),
    "qr_r": (2, 2, 1.5),
    "prod_others": (2, 4, 0),
    "sqrtm": (5, 0, 3),
    "expm": (8, 0, 2),
}

MIRRORED = 64  # rows of a product of a matrix with itself that are mirrored at a time

SINGULAR = ("svdvals", "svd_left", "svd_right", "pinv", "adj")  # functions by a singular value decomposition


def _in_doubles(at: Occurrence) -> tuple[int, int]:
    """The bytes of an element that LAPACK works on, and of all operands and results in that type: NumPy makes copies.

    Of narrower elements, that is.
    """
    kinds = {step.kind for step in (at.step, *at.operands)}
    item = ITEM_BYTES[complex if complex in kinds else float]
    return max(item, at.item), item * (sum(at.given) + at.elements) * (at.step.precision < ITEM_BYTES[float])


def _by_singular_values(name: str, shape: Sequence[int], is_complex: bool) -> int:
    """Elements that these functions hold beside their result: of all matrices, and of one that LAPACK works on."""
    rows, columns = shape[-2:]
    short, count = min(rows, columns), prod(shape[:-2])
    left, right = rows * short, columns * (columns if name == "svd_right" else short)
    work = (4 if 6 * max(rows, columns) >= 11 * short else 3) * short * (short + 16)
    lapack = rows * columns + left + right + work
    conjugate = rows * columns * is_complex
    match name:
        case "svd_left":
            return max(count * right + lapack, count * (columns > rows) * rows * columns)
        case "svd_right":
            return max(count * left + lapack, count * right * is_complex)
        case "pinv":
            made = count * (left + right + conjugate)
            return max(made + lapack - count * rows * columns, made + count * left)
        case "adj":  # of a singular matrix
            return count * 2 * rows * columns + lapack
    return count * (left + right) + lapack


@dataclass(frozen=True)
class MatrixFunctionStep(Named, Operation):
    """A function of `matrices.MATRIX_TABLE` of the last two axes of the operand, for each matrix of the stack."""

    name: str

    def labels(self, step: Step) -> Labels | None:
        """Those of the stack, of what multiplies or marks a matrix; a decomposition is no element-wise step."""
        stack = tuple(range(len(step.axes)))
        if self.name in MARKS:
            return Labels((stack,), stack, frozenset(stack[-2:]))
        if self.name != "prod":
            return None
        return Labels(((*stack, len(stack), len(stack) + 1),), stack, frozenset((len(stack), len(stack) + 1)))

    def flops(self, at: Occurrence) -> int:
        """A share of n³ for each matrix."""
        extents, share = at.shape_of(0), MATRIX_TABLE[self.name].cost
        return max(1, prod(extents) * extents[-1] * share.numerator // share.denominator)

    def workspace(self, at: Occurrence) -> int:
        """What is made of all matrices meanwhile, and the copies of one that LAPACK works on, each matrix in turn."""
        shape, elements = at.shape_of(0), sum(at.given)
        if values := MATRIX_TABLE[self.name].levels_of:
            return max(MatrixFunctionStep(values).workspace(at), at.elements * ITEM_BYTES[float] + _of_levels(at))
        item, cast = max(at.item, at.operands[0].item), 0
        copies, rows, by_lapack = HELD.get(self.name, (3, 0, 3))
        if by_lapack:
            item, cast = _in_doubles(at)
        if self.name in SINGULAR:
            return _by_singular_values(self.name, shape, at.operands[0].kind is complex) * item + cast
        whole = max(elements, at.elements)
        row = whole // max(1, max(shape[-2:]) if self.name.startswith(("amax", "amin", "prod")) else min(shape[-2:]))
        lapack = int(by_lapack * prod(shape[-2:]))
        return (int(copies * whole) + rows * row + lapack + min(BUFFER, elements)) * item + cast

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The library's own; integers come as real numbers where it would keep them."""
        operand = words.widened(step.operands[0], operands[0], step.kind)
        return words.dialect.matrix_function(self.name, operand, words.shape(step.axes))


def _of_levels(at: Occurrence) -> int:
    """Bytes of the pairs of values of each matrix, which are compared."""
    return (3 * at.elements * at.shape[-1] + 8 * at.elements + BUFFER) * ITEM_BYTES[float]


@dataclass(frozen=True)
class Levels(Operation):
    """Eigenvalues or singular values with one number for those that rounding cannot tell apart."""

    title = "levels"

    def flops(self, at: Occurrence) -> int:
        """A few for each pair of values."""
        return 4 * at.elements * at.shape[-1]

    def workspace(self, at: Occurrence) -> int:
        """The pairs."""
        return _of_levels(at)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A helper."""
        return words.dialect.levels(operands[0], words.shape(step.axes))


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
        """What the one that takes most does."""
        return max(MatrixFunctionStep(name).workspace(at) for name in self.names)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The statement names its results."""
        raise TypeError("a decomposition is written with its results")


@dataclass(frozen=True)
class DecompositionResult(Named, PartialResult):
    """What a decomposition gives for one of its functions."""

    name: str


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
        """Copies that LAPACK works on, and operands in another element type."""
        cast = sum(many for one, many in zip(at.operands, at.given, strict=True) if not one.is_like(at.step))
        item, narrow = _in_doubles(at)
        return (sum(at.given) + cast) * item + narrow

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
        """Some rows at a time, scaled, conjugated or laid out; rows of the result that are mirrored."""
        rows, columns = self._sides(at)
        block, weighted, is_complex = gram_block(rows, columns), len(at.operands) > 1, at.step.kind is complex
        conjugated = is_complex and block == rows * columns
        laid = (block * (weighted + (conjugated or self.axis == 1)) + min(BUFFER, block) * weighted) * at.item
        laid += block * at.operands[0].item * (not at.operands[0].is_like(at.step))  # rows of weights of one sign
        mirrored = (MIRRORED * columns + BUFFER) * at.item if columns >= MIRRORED else 0
        return max(laid, mirrored) + 3 * rows * weighted * at.step.precision

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
