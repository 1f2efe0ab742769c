"""What every operation of a plan tells of itself: its labels, what it costs, and its text.

Axes are numbered, not named: `Σ_k A[i, k]·B[k, j]` is

    Step(Contract(left=(0, 1), right=(1, 2), out=(0, 2)), operands=(A, B), axes=(N, M))

so that equal computations are equal values whatever their indices were called. A *pattern* gives, for each axis
of an operand, the number of the axis or label it runs along.

Invariant: an operation says everything about a step but the sizes; it holds for arrays of every size.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from math import prod

from combdiff.ir import Domain
from combdiff.planning.extents import elements, shape
from combdiff.planning.operations.words import Pattern, Words
from combdiff.records import dataclass

ITEM_BYTES = {int: 8, float: 8, complex: 16}
BUFFER = 1 << 13  # elements of an operand that NumPy lays out at a time
REUSED = 1 << 18  # bytes of a temporary array over which NumPy writes the next sum or product of an expression


@dataclass(frozen=True)
class Labels:
    """The label along each axis of each operand (None: it has none) and of the result.

    `whole` are labels along which a step needs all of the index at once: it can't be done block by block.
    """

    operands: tuple[tuple[int | None, ...], ...]
    result: Pattern
    whole: frozenset[int] = frozenset()

    @classmethod
    def of_elements(cls, step: Step) -> Labels:
        """Those of a step that works element by element on one operand: the axes of both."""
        rank = tuple(range(len(step.axes)))
        return cls((rank,), rank)


@dataclass(frozen=True)
class InnerCost:
    """What a program within a step costs each time: operations on numbers, and the most bytes."""

    flops: int
    peak: int


@dataclass(frozen=True)
class Occurrence:
    """A step at given sizes, in its plan: what a cost may depend on.

    `operands` are the steps it acts on, `numbers` tells which of them are Python numbers, `whole` which of them lie in
    memory as arguments or arrays of their own, in a row. In a loop, `rounds` is how
    many blocks it goes through, and `starts` names the positions that loops begin their blocks at. `inner` tells what
    the programs that a step does over and over cost each time.
    """

    step: Step
    operands: tuple[Step, ...]
    sizes: Mapping[str, int]
    numbers: tuple[bool, ...] = ()
    whole: tuple[bool, ...] = ()
    rounds: int = 1
    starts: Collection[str] = ()
    inner: tuple[InnerCost, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return shape(self.step.axes, self.sizes)

    @property
    def elements(self) -> int:
        """The number of elements of the result."""
        return elements(self.step.axes, self.sizes)

    @property
    def item(self) -> int:
        """The bytes of one element of the result."""
        return self.step.item

    @property
    def given(self) -> tuple[int, ...]:
        """The number of elements of each operand."""
        return tuple(elements(one.axes, self.sizes) for one in self.operands)

    def shape_of(self, position: int) -> tuple[int, ...]:
        """The shape of an operand."""
        return shape(self.operands[position].axes, self.sizes)

    def products(self, patterns: Sequence[Pattern]) -> int:
        """The product of the extents of all labels of the operands."""
        pairs = [pair for n, pattern in enumerate(patterns) for pair in zip(pattern, self.shape_of(n), strict=True)]
        return prod(dict(pairs).values())

    def buffers(self, patterns: Sequence[Pattern]) -> int:
        """Bytes of the buffers in which NumPy lays out elements of operands, at most two at a time.

        Of those that have another element type, are repeated along an axis, or do not lie in a row in the order of the
        axes; of vectors, which have one stride, only of the first.
        """
        long = [axis for axis, many in enumerate(self.shape) if many != 1]
        laid = 0
        for one, pattern, whole in zip(self.operands, patterns, self.whole, strict=True):
            in_a_row = len(long) < 2 or (whole and [axis for axis in pattern if axis in long] == long)
            laid += bool(pattern) and not (one.is_like(self.step) and in_a_row)
        return min(2, laid) * min(BUFFER, self.elements) * max(one.item for one in (self.step, *self.operands))


class Operation(ABC):
    """An operation on arrays, as a frozen value. What it does not say of itself is what this class says."""

    @abstractmethod
    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The expression that computes a step with this operation, from the texts of its operands."""

    def statements(self, words: Words, step: Step, operands: Sequence[str], name: str) -> Sequence[str]:
        """The lines that make a step of that name, where they are plainer than an expression; none where they are not.

        Where zeros have something written among them, say.
        """
        return ()

    def called(self, words: Words, step: Step, operands: Sequence[str]) -> str | None:
        """The step as a call of one of NumPy's functions of elements, without the library's name; None if it is none.

        Such a function may write its result over an operand.
        """
        return None

    @property
    def is_called(self) -> bool:
        """Whether `called` names a function for whatever operands."""
        return False

    @property
    def is_truth(self) -> bool:
        """Whether the elements of the result are truth values, of one byte each."""
        return False

    @property
    def takes_type(self) -> bool:
        """Whether the result, zeros and ones, has the element type of the arguments though it counts as integers."""
        return False

    @property
    def title(self) -> str:
        """A short name for what it does."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).lower()

    @property
    def fresh(self) -> bool:
        """Whether the result is an array of its own, sharing no memory with an operand."""
        return True

    @property
    def in_rows(self) -> bool:
        """Whether the elements of the result lie in memory in their order, as far as is known."""
        return self.fresh

    def labels(self, step: Step) -> Labels | None:
        """The labels of a step with this operation; None where indices do not run through it."""
        return None

    def flops(self, at: Occurrence) -> int:
        """Operations on numbers that are done: one for each element of the operand, or of the operands' product."""
        return prod(at.given) if at.given else 0

    def held(self, at: Occurrence) -> int:
        """Elements of the new array that is made."""
        return at.elements

    def workspace(self, at: Occurrence) -> int:
        """Bytes that NumPy takes meanwhile and gives back: copies in another layout or element type, terms.

        Arguments count as contiguous. The number is an upper bound, but for the interpreter's own objects.
        """
        return 0


class Named:
    """An operation of many of one kind, which is called by its name."""

    name: str

    @property
    def title(self) -> str:
        """Its name."""
        return self.name


class View(Operation):
    """An operation whose result shares the memory of its operand, or is the caller's: nothing is computed or held."""

    fresh = False

    def flops(self, at: Occurrence) -> int:
        """None."""
        return 0

    def held(self, at: Occurrence) -> int:
        """None."""
        return 0


class PartialResult(Operation):
    """One of several results of its operand, which makes them all: there is no expression for it alone."""

    @property
    def is_made_along(self) -> bool:
        """Whether it takes memory of its own while the operand makes it: not the last of what replaces each other."""
        return True

    def flops(self, at: Occurrence) -> int:
        """The operand counts them."""
        return 0

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The statements of the operand make it."""
        raise TypeError(f"a {self.title} is written with the step that makes it")


class IndexArray(Operation):
    """An array made by arithmetic on indices, with terms of their own element type on the way."""

    def flops(self, at: Occurrence) -> int:
        """One for each element."""
        return at.elements

    def workspace(self, at: Occurrence) -> int:
        """A form and one of its terms, or the truth values that are made of it."""
        return at.elements * max(1, 2 * ITEM_BYTES[int] - at.item)


@dataclass(frozen=True)
class Step:
    """An operation on earlier steps, given by number; `axes` are the domains of the result, `kind` its element type.

    `precision` is how many bytes a real number of that type has, where the arguments are known.
    """

    operation: Operation
    operands: tuple[int, ...]
    axes: tuple[Domain, ...]
    kind: type
    precision: int = ITEM_BYTES[float]

    @property
    def fresh(self) -> bool:
        """Whether the result is an array of its own, sharing no memory with an operand."""
        return self.operation.fresh

    @property
    def in_rows(self) -> bool:
        """Whether the elements of the result lie in memory in their order, as far as is known."""
        return self.operation.in_rows

    @property
    def item(self) -> int:
        """The bytes of one element of the result."""
        return 1 if self.operation.is_truth else ITEM_BYTES[self.kind] * self.precision // ITEM_BYTES[float]

    def is_like(self, other: Step) -> bool:
        """Whether the result has the element type of another step's."""
        return self.kind is other.kind and self.precision == other.precision
