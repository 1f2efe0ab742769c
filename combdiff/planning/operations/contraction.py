"""Products of two arrays, summed over labels of both: einsum's, as matrix products where they are.

    Contract(left=(0, 1), right=(2, 1), out=(0, 2)) on A, B       A @ B.T
    Contract(left=(0, 1, 2, 3), right=(0, 1), out=(2, 3)) on J, D
    = (J.reshape(N*N, N*N).T @ D.reshape(N*N)).reshape(N, N)      a matrix-vector product, no copy of J

A contraction is a matrix product of the summed labels, once its operands are laid out as matrices: by a reshape
where the groups of labels already stand together, by a transposed copy otherwise. An array times a vector may be read
where it lies instead, matrix by matrix along its last two axes:

    Σ_{q,s} J[p,q,r,s]·D[q,s]   =   Σ_q (Σ_s J[p,q,r,s]·D[q,s])
    = (J @ D[:, None, :, None])[..., 0].sum(1)               where J.transpose(0, 2, 1, 3).reshape(…) would copy J

Invariant: an expression has the value of its step for arrays of every size, 0 and 1 included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from combdiff.dialects import LETTERS
from combdiff.ir import Domain
from combdiff.planning.extents import at_least, extent_form
from combdiff.planning.operations.operation import BUFFER, Labels, Occurrence, Operation, Step
from combdiff.planning.operations.words import Pattern, Words
from combdiff.records import dataclass

FUSED = "fused"
LONG_ROW = 32  # elements of rows from which a BLAS call for each product of two takes less time than einsum


@dataclass(frozen=True)
class Contract(Operation):
    """Product of two operands, summed over the labels that are not in `out`; each such label is in both.

    `in_place` says how the operands are read where they lie, not copied for a product of matrices: by "einsum" or, an
    array and a vector, as a "stack" of matrices (see `stacks`), or "fused": multiplied while they are summed, one of
    them with all labels.
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
    def title(self) -> str:
        """What computes it."""
        return self.kernel

    @property
    def kernel(self) -> str:
        """What computes it: a product of numbers, a BLAS-like product, or an einsum."""
        if not self.summed:
            return "outer" if self.left and self.right and not self.batch else "multiply"
        if self.in_place:
            return "stacked matrix-vector" if self.in_place == "stack" else self.in_place
        free = bool(self.left_only) + bool(self.right_only)
        if self.batch:
            return ("einsum", "batched matrix-vector", "batched matrix-matrix")[free]
        return ("dot", "matrix-vector", "matrix-matrix")[free]

    def labels(self, step: Step) -> Labels:
        """Its own; products of blocks of a summed label add up to the product."""
        return Labels((self.left, self.right), self.out)

    def flops(self, at: Occurrence) -> int:
        """The product of the extents of all labels."""
        return at.products((self.left, self.right))

    def workspace(self, at: Occurrence) -> int:
        """What is laid out for the kernel."""
        if self.in_place == "stack":
            stack = stack_of(self)
            assert stack is not None
            return stack_elements(stack, dict(zip(stack.array, at.shape_of(stack.matrix), strict=True))) * at.item
        if self.kernel in ("multiply", "outer"):
            return at.buffers(self._places)
        if self.kernel in ("einsum", FUSED):
            return sum(min(BUFFER, many) for many in at.given) * at.item
        return sum(self._copied(at, position) for position in (0, 1))

    @property
    def _places(self) -> list[Pattern]:
        """The axis of the result along each axis of the operands, of a product without a sum."""
        return [tuple(map(self.out.index, pattern)) for pattern in (self.left, self.right)]

    def _copied(self, at: Occurrence, position: int) -> int:
        """Bytes of the copies of an operand that a matrix product needs: laid out in order, in another element type."""
        step, pattern = at.operands[position], (self.left, self.right)[position]
        rows = self.summed if position else self.left_only
        columns = self.right_only if position else self.summed
        in_place = pattern in ((*self.batch, *rows, *columns), (*self.batch, *columns, *rows))
        merged = len(rows) > 1 or len(columns) > 1
        whole = at.whole[position]
        same = step.is_like(at.step) or (step.operation.takes_type and at.step.kind is float)
        in_rows = not merged and pattern[-1:] in (rows, columns)  # BLAS reads matrices whose rows lie far apart
        lies = in_rows or (in_place and (whole or not merged))
        return at.given[position] * (step.item * (not lies) + at.item * (not same))

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """An elementwise product, an einsum or a product of matrices."""
        if self.kernel in ("multiply", "outer"):
            texts = words.aligned(operands, self._places, len(step.axes))
            parts = zip(step.operands, texts, strict=True)  # numbers last: Python's `complex * np.float64` is Python's
            return " * ".join(text for _, text in sorted(parts, key=lambda part: words.numbers[part[0]]))
        left, right = operands
        if not words.dialect.mixes_kinds:
            left, right = (words.as_kind(m, text, step.kind) for m, text in zip(step.operands, operands, strict=True))
        same = self.batch and not (self.left_only or self.right_only)
        if self.in_place == FUSED or (words.dialect.fuses_sums and same):
            return self._summed_product(words, left, right)
        if self._is_dot_of_rows(words, step):
            return f"{words.dialect.np}.vecdot({left}, {right})"
        if self.kernel == "einsum" or words.dialect.prefers_einsum(len(self.left), len(self.right)):
            return words.dialect.contraction(*_einsum_operands(self, left, right))
        if stack := stack_of(self) if self.in_place else None:
            array, vector = (right, left) if stack.matrix else (left, right)
            vector = words.placed(vector, stack.places, len(stack.array))
            text, order = stack_text(stack, self, array, vector)
            return words.dialect.transposed(text, order)
        return self._matrix_product(words, step, left, right)

    def _is_dot_of_rows(self, words: Words, step: Step) -> bool:
        """Whether it is a product of each row of real numbers with another, of rows so long that BLAS is quicker."""
        rows = (*self.out, *self.summed)
        if not words.dialect.native or len(self.summed) != 1 or self.kernel != "einsum":
            return False
        if (self.left, self.right) != (rows, rows) or any(words.kinds[m] is not float for m in step.operands):
            return False
        return at_least(LONG_ROW, [extent_form(words.axes[step.operands[0]][-1])], words.planned)

    @property
    def is_called(self) -> bool:
        """Whether it is a product of elements."""
        return self.kernel == "multiply"

    def called(self, words: Words, step: Step, operands: Sequence[str]) -> str | None:
        """A product of elements."""
        if not self.is_called:
            return None
        return f"multiply({', '.join(words.aligned(operands, self._places, len(step.axes)))})"

    def _summed_product(self, words: Words, left: str, right: str) -> str:
        """The sum of a product of operands of which one has the labels of both."""
        whole = max(self.left, self.right, key=len)
        if len(self.left) == len(self.right):
            right = words.dialect.transposed(right, [self.right.index(label) for label in whole])
        else:
            places = [tuple(map(whole.index, pattern)) for pattern in (self.left, self.right)]
            left, right = words.aligned([left, right], places, len(whole))
        axes = [axis for axis, label in enumerate(whole) if label in self.summed]
        kept = [label for label in whole if label not in self.summed]
        text = words.dialect.summed(f"({left} * {right})", axes, len(whole))
        return words.dialect.transposed(text, [kept.index(label) for label in self.out])

    def _matrix_product(self, words: Words, step: Step, left: str, right: str) -> str:
        """The operands as stacks of matrices, multiplied; the product with the axes of the result."""
        axes = [words.axes[m] for m in step.operands]
        domains = dict(zip((*self.left, *self.right), (*axes[0], *axes[1]), strict=True))
        op = self
        if not op.batch and not op.left_only and op.right[-len(op.summed) :] == op.summed:
            left, right = right, left  # vector times transposed matrix: rather matrix times vector
            op = Contract(op.right, op.left, op.out)
        if words.dialect.vectors_first and not op.right_only and op.left[-len(op.summed) :] != op.summed:
            left, right = right, left  # no transposed matrix: rather vector times matrix
            op = Contract(op.right, op.left, op.out)
        left = _matrix(words, left, op.left, domains, (op.batch, op.left_only, op.summed))
        right = _matrix(words, right, op.right, domains, (op.batch, op.summed, op.right_only))
        text = f"{left} @ {right}"
        if op.batch and not (op.left_only and op.right_only):
            text = f"({text})[..., 0]" if op.left_only else f"({text})[..., 0, :]"
        if len(op.left_only) > 1 or len(op.right_only) > 1:
            text = f"({text}).reshape({', '.join(words.extent(axis) for axis in step.axes)})"
        return text


def _matrix(
    words: Words, text: str, pattern: Pattern, domains: Mapping[int, Domain], groups: tuple[Pattern, Pattern, Pattern]
) -> str:
    """An operand as a stack of matrices, batch × rows × columns; without batch an empty group is left out."""
    batch, rows, columns = groups
    turned = pattern == (*batch, *columns, *rows) and pattern != (*batch, *rows, *columns)
    first, second = (columns, rows) if turned else (rows, columns)
    text = words.dialect.transposed(text, [pattern.index(label) for label in (*batch, *first, *second)])
    if len(first) > 1 or len(second) > 1:
        sizes = [words.extent(domains[label]) for label in batch]
        sizes += [words.product(domains[label] for label in group) for group in (first, second) if group]
        text = f"{text}.reshape({', '.join(sizes)})"
    if turned and rows and columns:
        text = f"{text}.swapaxes(-1, -2)" if batch else f"{text}.T"
    if batch and not rows:
        text = f"{text}[..., None, :]"
    return f"{text}[..., None]" if batch and not columns else text


def _einsum_operands(op: Contract, left: str, right: str) -> tuple[str, str, str]:
    """The subscripts and operands of an einsum for a contraction.

    JAX sums labels in the order of the alphabet, and XLA transposes what does not have them so: letters go along the
    operand with more axes. XLA is quick where that one has its summed labels last and comes first, or the reverse.
    """
    longer, shorter = (op.left, op.right) if len(op.left) >= len(op.right) else (op.right, op.left)
    names = {label: LETTERS[n] for n, label in enumerate(dict.fromkeys((*longer, *shorter)))}
    operands = [(op.left, left), (op.right, right)]
    if (operands[0][0] == longer) == (longer[0] in op.summed):
        operands.reverse()
    inputs = ["".join(map(names.__getitem__, pattern)) for pattern, _ in operands]
    output = "".join(map(names.__getitem__, op.out))
    return f"{','.join(inputs)}->{output}", operands[0][1], operands[1][1]


@dataclass(frozen=True)
class ChosenProduct(Operation):
    """The product of an array and weights, which are 0 where truth values, the last operand, do not choose them.

    `places` are the axes of the array along those of the truth values.
    """

    product: Contract
    places: Pattern

    @property
    def title(self) -> str:
        """The product that it is."""
        return f"chosen {self.product.kernel}"

    def labels(self, step: Step) -> Labels:
        """Those of the product, which the truth values have, too."""
        left, right = self.product.left, self.product.right
        return Labels((left, right, tuple(left[place] for place in self.places)), self.product.out)

    def flops(self, at: Occurrence) -> int:
        """Those of the product."""
        return self.product.flops(at)

    def workspace(self, at: Occurrence) -> int:
        """The chosen elements and both products, where another one is infinite; what is laid out for them."""
        pair = replace(at, operands=at.operands[:2], numbers=at.numbers[:2], whole=at.whole[:2])
        many = at.given[0]
        return (many + min(BUFFER, many)) * at.operands[0].item + at.elements * at.item + self.product.workspace(pair)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A helper, which looks at the result."""
        array, weights, truths = operands
        truths = words.placed(truths, self.places, len(self.product.left))
        pair = replace(step, operation=self.product, operands=step.operands[:2])
        product = self.product.write(words, pair, ["array", "weights"])
        return f"_product_of_chosen(lambda array, weights: {product}, {array}, {weights}, {truths})"


# --- stacks of matrices

LEAST = 128  # elements of a matrix from which a call for each costs less than a copy of all


@dataclass(frozen=True)
class Stack:
    """A product as a stack: which operand is the array, the labels of both, and whether columns are summed."""

    matrix: int
    array: Pattern
    vector: Pattern
    by_columns: bool

    @property
    def labels(self) -> Pattern:
        """The labels of the product before the sum along the stack."""
        return (*self.array[:-2], self.array[-2] if self.by_columns else self.array[-1])

    @property
    def places(self) -> Pattern:
        """The axis that each label of the vector stands at, beside the axes of the array."""
        last = self.array[-1] if self.by_columns else self.array[-2]
        axis = len(self.array) - (2 if self.by_columns else 1)
        return tuple(axis if label == last else self.array.index(label) for label in self.vector)


def stack_of(op: Contract) -> Stack | None:
    """The product as a stack of matrices times vectors; None where the vector has not just one of the last two axes."""
    matrix = int(len(op.right) > len(op.left))
    array, vector = (op.right, op.left) if matrix else (op.left, op.right)
    if len(array) < 3 or len(set(array)) < len(array) or not set(vector) < set(array):
        return None
    shared = [label in vector for label in array[-2:]]
    summed = [label in op.summed for label in array[-2:]]
    return Stack(matrix, array, vector, summed[1]) if shared == summed and sum(summed) == 1 else None


def stackable(op: Contract, extents: Mapping[int, int]) -> bool:
    """Whether a product with a vector is worth doing matrix by matrix."""
    stack = stack_of(op)
    return stack is not None and extents[stack.array[-1]] * extents[stack.array[-2]] >= LEAST


def stack_elements(stack: Stack, extents: Mapping[int, int]) -> int:
    """The elements of the product before the sum along the stack."""
    return prod(extents[label] for label in stack.labels)


def stack_text(stack: Stack, op: Contract, array: str, vector: str) -> tuple[str, Sequence[int]]:
    """The expression, with the vector's axes placed, and the order that takes the axes of its value to `op.out`."""
    text = f"({array} @ {vector})[..., 0]" if stack.by_columns else f"({vector} @ {array})[..., 0, :]"
    added = [axis for axis, label in enumerate(stack.labels) if label not in op.out]
    if added:
        text += f".sum({added[0] if len(added) == 1 else tuple(added)})"
    left = [label for label in stack.labels if label in op.out]
    return text, [left.index(label) for label in op.out]
