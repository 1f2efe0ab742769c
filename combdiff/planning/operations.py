"""Array operations: the nodes of a lowered program.

Axes are numbered, not named: `Σ_k A[i, k]·B[k, j]` is

    Step(Contract(left=(0, 1), right=(1, 2), out=(0, 2)), operands=(A, B), axes=(N, M))

so that equal computations are equal values whatever their indices were called. A *pattern* gives, for each axis
of an operand, the number of the axis or label it runs along.

Invariant: an operation says everything about a step but the sizes; it holds for arrays of every size.
"""

from __future__ import annotations

from dataclasses import dataclass

from combdiff.ir import ONE, Domain, Lambda, Number, Space, conj, mul
from combdiff.planning.indirections import Clip, IndexEquals, Iota, Scatter, Take
from combdiff.planning.views import IndexCondition, Position
from combdiff.polyhedra import Linear

Pattern = tuple[int, ...]


@dataclass(frozen=True)
class SizeFactor:
    """A number times the extents of some domains."""

    number: Number = ONE
    extents: tuple[Domain, ...] = ()

    def times(self, other: SizeFactor) -> SizeFactor:
        """The product."""
        product = mul(self.number, other.number)
        assert isinstance(product, Number)
        return SizeFactor(product, self.extents + other.extents)

    def conjugate(self) -> SizeFactor:
        """The complex conjugate."""
        number = conj(self.number)
        assert isinstance(number, Number)
        return SizeFactor(number, self.extents)


UNIT = SizeFactor()


@dataclass(frozen=True)
class Parameter:
    """An argument of the program."""

    name: str


@dataclass(frozen=True)
class Fill:
    """A number."""

    number: Number


@dataclass(frozen=True)
class Read:
    """Elements of the operand at affine positions, one `Position` per axis of the operand; 0 outside."""

    positions: tuple[Position, ...]

    def diagonal(self) -> Pattern | None:
        """The label along each axis, where every axis is read along one label from its start; None otherwise."""
        along = [position.along() for position in self.positions]
        return None if None in along else tuple(n for n in along if n is not None)

    def places(self, labels: int) -> bool:
        """Whether every axis is read along one label of its own with steps 1/n, some n > 1."""
        along = [[n for n, size in enumerate(p.steps) if size] for p in self.positions]
        alone = sorted(n for used in along for n in used) == list(range(labels)) and all(len(u) == 1 for u in along)
        plain = all(not p.wrap and sum(p.steps) == 1 for p in self.positions)
        return alone and plain and any(p.divisor > 1 for p in self.positions)


@dataclass(frozen=True)
class Arrange:
    """The operand with axes in another order: axis n of the result is axis `order[n]`, or new where that is None."""

    order: tuple[int | None, ...]


@dataclass(frozen=True)
class ConjugateElements:
    """The complex conjugate, element by element."""


@dataclass(frozen=True)
class Contract:
    """Product of two operands, summed over the labels that are not in `out`; each such label is in both.

    `in_place` says how the operands are read where they lie, not copied for a product of matrices: by "einsum" or, an
    array and a vector, as a "stack" of matrices (see `stacks`).
    """

    left: Pattern
    right: Pattern
    out: Pattern
    in_place: str = ""

    @property
    def batch(self) -> Pattern:
        """Labels of both operands that stay, in the order of `out`."""
        return tuple(n for n in self.out if n in self.left and n in self.right)

    @property
    def summed(self) -> Pattern:
        """Labels summed over, in the order of the operand with more axes (the one that is dearer to transpose)."""
        longer = self.right if len(self.right) > len(self.left) else self.left
        return tuple(n for n in longer if n not in self.out)

    @property
    def left_only(self) -> Pattern:
        """Labels of the left operand alone."""
        return tuple(n for n in self.out if n not in self.right)

    @property
    def right_only(self) -> Pattern:
        """Labels of the right operand alone."""
        return tuple(n for n in self.out if n not in self.left)

    @property
    def kernel(self) -> str:
        """What computes it: a product of numbers, a BLAS-like product, or an einsum."""
        if not self.summed:
            return "outer" if self.left and self.right and not self.batch else "multiply"
        if self.in_place:
            return "einsum" if self.in_place == "einsum" else "stacked matrix-vector"
        free = bool(self.left_only) + bool(self.right_only)
        if self.batch:
            return ("einsum", "batched matrix-vector", "batched matrix-matrix")[free]
        return ("dot", "matrix-vector", "matrix-matrix")[free]


@dataclass(frozen=True)
class DiagonalEmbed:
    """Zeros with the operand where axes coincide: axis n of the result goes along axis `along[n]` of the operand.

    Where the operand has one axis less than `along` tells, it is the same along axis 0.
    """

    along: Pattern


@dataclass(frozen=True)
class Gram:
    """Σ_i conj(X[i,a])·s[i]·X[i,d] of a matrix X, summed along its `axis`, and a real vector s, or no s.

    `flipped` says that the result is transposed, which is conjugated.
    """

    axis: int
    flipped: bool = False


@dataclass(frozen=True)
class DiagonalScatterAdd:
    """The first operand with the second added where axes coincide, as for `DiagonalEmbed`.

    In place, where `owned` says that nothing else reads the first operand.
    """

    along: Pattern
    owned: bool


@dataclass(frozen=True)
class Correlate:
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


@dataclass(frozen=True)
class PrefixSum:
    """Sums along `axis` over its positions l with `sign·l + steps · t + start ≥ 0`; the labels t stand in its place."""

    axis: int
    sign: int
    steps: tuple[int, ...]
    start: Linear


@dataclass(frozen=True)
class Mask:
    """The operand where all conditions on the positions along its axes hold, 0 elsewhere."""

    conditions: tuple[IndexCondition, ...]


@dataclass(frozen=True)
class MaskedContract:
    """The product of the operands, summed over labels, of the positions alone at which conditions on the labels hold.

    `patterns` are the labels along the axes of one or two operands, `out` those of the result. Each condition is one of
    labels that all are in an operand, its host, or in the result, whose number as a host comes after the operands'.
    """

    patterns: tuple[Pattern, ...]
    out: Pattern
    conditions: tuple[IndexCondition, ...]
    hosts: tuple[int, ...]


@dataclass(frozen=True)
class Fold:
    """The sum of the elements (i, j, …) of the operand at `stride·i + j + start` along the first axis of the result."""

    stride: int
    start: Linear


@dataclass(frozen=True)
class Reduce:
    """The sum over some axes."""

    summed: Pattern


@dataclass(frozen=True)
class ReduceMax:
    """The largest element along some axes; −∞ of no elements."""

    summed: Pattern


@dataclass(frozen=True)
class Scale:
    """The operand times a number."""

    factor: SizeFactor


@dataclass(frozen=True)
class Combine:
    """Σ factor·operand, each operand broadcast along its pattern."""

    factors: tuple[SizeFactor, ...]
    patterns: tuple[Pattern, ...]


@dataclass(frozen=True)
class ElementwiseStep:
    """A function of `primitives.TABLE`, of `SHIFTING` or of `CHOOSING`, each operand broadcast along its pattern."""

    name: str
    patterns: tuple[Pattern, ...]


SHIFTING = ("masked", "finite")  # a condition and a number: −∞ where it is 0; a number, or 0 where it is not finite
CHOOSING = ("chosen", "truth", "counted")
"""Truth values and a number: 0 where they are false; truth values as the numbers 0 and 1; integers as real numbers."""


@dataclass(frozen=True)
class MatrixFunctionStep:
    """A function of `matrices.MATRIX_TABLE` of the last two axes of the operand, for each matrix of the stack."""

    name: str


@dataclass(frozen=True)
class LinearSolve:
    """The inverse of the first operand times the second; says which of them, and whether the result, is transposed."""

    matrix_transposed: bool
    right_transposed: bool
    transposed: bool


@dataclass(frozen=True)
class NamedCall:
    """A named map of its arguments or, with a position, its pullback (the last operand is the cotangent)."""

    name: str
    position: int | None = None


@dataclass(frozen=True)
class SolveEquation:
    """The solution of an equation, by a solver: `system` gives the equation and its Jacobian (see `systems`).

    The first operand is what is given, the others are the tensors that the system takes after the unknown.
    """

    kind: str
    system: Lambda

    @property
    def order(self) -> int:
        """How many axes the unknown has."""
        space = self.system.parameters[0].type
        return space.order if isinstance(space, Space) else 0


@dataclass(frozen=True)
class Block:
    """The block of the operand, along an axis, that a loop is at."""

    axis: int


@dataclass(frozen=True)
class Collect:
    """All blocks of the operand that a loop makes: side by side along an axis, or added where that is None.

    Those that are added `pairwise` are held until the loop has ended, and lose less to rounding.
    """

    axis: int | None
    pairwise: bool = False


@dataclass(frozen=True)
class Choice:
    """Equal arrays computed in different ways, of which a plan takes one."""


Operation = (
    Parameter
    | Fill
    | Read
    | Arrange
    | ConjugateElements
    | Contract
    | Correlate
    | PrefixSum
    | Mask
    | MaskedContract
    | Fold
    | Take
    | Scatter
    | IndexEquals
    | Clip
    | Iota
    | Gram
    | DiagonalScatterAdd
    | DiagonalEmbed
    | Reduce
    | ReduceMax
    | Scale
    | Combine
    | ElementwiseStep
    | MatrixFunctionStep
    | LinearSolve
    | IndexCondition
    | NamedCall
    | SolveEquation
    | Block
    | Collect
    | Choice
)
VIEWS = (Parameter, Read, Arrange, Block)


@dataclass(frozen=True)
class Step:
    """An operation on earlier steps, given by number; `axes` are the domains of the result, `kind` its element type."""

    operation: Operation
    operands: tuple[int, ...]
    axes: tuple[Domain, ...]
    kind: type

    @property
    def fresh(self) -> bool:
        """Whether the result is an array of its own, sharing no memory with an operand."""
        if isinstance(self.operation, ElementwiseStep):
            return self.operation.name not in ("real", "imag")
        if isinstance(self.operation, DiagonalScatterAdd):
            return not self.operation.owned
        return not isinstance(self.operation, (*VIEWS, NamedCall))
