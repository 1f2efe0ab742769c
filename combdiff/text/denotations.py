"""What the documents of a print stand for: tensors with axes whose domains may not be known yet.

    x[i]   →   Denotation((), at ↦ x[i])   with the cell of i joined to that of the axis of x

Invariant: elements are made when all domains are known; until then cells that must have one domain are one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from combdiff.ir import Domain, Space, Term, Var, Whole, apply
from combdiff.ir import Function as Map
from combdiff.printing import Doc
from combdiff.records import dataclass
from combdiff.text.recurrences import Recurrence


class Cell:
    """The domain of an axis or index, which may not be known yet; cells that are one share their root."""

    def __init__(self, domain: Domain | None = None) -> None:
        self._root: Cell | None = None
        self._domain = domain

    def root(self) -> Cell:
        """The cell that stands for all that are one with this."""
        return self if self._root is None else self._root.root()

    @property
    def domain(self) -> Domain | None:
        """The domain, None where it is not known."""
        return self.root()._domain

    def join(self, other: Cell) -> bool:
        """Make two cells one; whether their domains agree."""
        one, two = self.root(), other.root()
        if one is two:
            return True
        if one._domain is not None and two._domain is not None and one._domain != two._domain:
            return False
        one._domain = one._domain or two._domain
        two._root = one
        return True


@dataclass(eq=False)
class BoundIndex:
    """A bound index; `var` is the variable that stands for it where terms are made."""

    name: str
    cell: Cell
    doc: Doc
    written: bool = False  # whether its domain is written with it
    var: Var | None = None


@dataclass(eq=False)
class NamedTensor:
    """A parameter or definition; the order of one without a Space follows from its first use."""

    name: str
    cells: tuple[Cell, ...] | None
    dtype: type
    space: Space | None = None
    var: Var | None = None


@dataclass(frozen=True)
class Denotation:
    """A tensor or number: its axes, its element at indices, and the whole where there is a term for it."""

    cells: tuple[Cell, ...]
    element: Element
    whole: Callable[[], Term] | None = None
    row: bool = False  # a vector that was transposed
    square: Element | None = None  # of a norm: what stands under its root


Element = Callable[[tuple[Term, ...]], Term]


@dataclass(frozen=True)
class DefinedTensor:
    """A definition, or the boundary value or step of a state of an iteration, which may be its last one."""

    symbol: NamedTensor
    value: Denotation
    iteration: Recurrence | None = None
    is_last: bool = False


Symbol = BoundIndex | NamedTensor | Map | Whole
Scope = Mapping[str, Symbol]


def number_of(make: Callable[[], Term]) -> Denotation:
    """A number that is made when all domains are known."""
    return Denotation((), lambda _: make())


def tensor_of(cells: tuple[Cell, ...], make: Callable[[], Term]) -> Denotation:
    """A tensor that is one term; its elements are read from that."""
    return Denotation(cells, lambda at: apply(make(), at) if at else make(), make)


def at_point(value: Denotation, space: Space, point: tuple[Term, ...]) -> Term:
    """The argument that a map takes at a point."""
    return value.element(point) if len(value.cells) > space.order else value.element(())
