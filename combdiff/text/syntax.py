"""What a text says: declarations, an expression as a tree with places, and what to differentiate by.

    declare A 2 x 1 expression A *(ij,j->i) x derivative wrt x
    = Text((Declaration("A", 2), Declaration("x", 1)),
           Contraction((Reference("A"), Reference("x")), ("ij", "j"), "i"),
           (("x",),))                                         (spans left out)

Invariant: trees are immutable and at most `MOST_DEPTH` deep; two nodes are the same only if they stand in one place.
"""

from __future__ import annotations

from dataclasses import field, fields

from combdiff.ir import Scalar
from combdiff.records import dataclass
from combdiff.text.places import Span

MOST_DEPTH = 1000


@dataclass(frozen=True, eq=False)
class Node:
    """Base of the expressions; `span` is where it stands."""

    span: Span

    @property
    def operands(self) -> tuple[Node, ...]:
        """The expressions directly inside, in the order of the fields."""
        values = [getattr(self, each.name) for each in fields(self)]
        found = [value if isinstance(value, tuple) else (value,) for value in values]
        return tuple(node for group in found for node in group if isinstance(node, Node))


@dataclass(frozen=True, eq=False)
class Numeral(Node):
    """A number; it has whatever order fits."""

    value: Scalar


@dataclass(frozen=True, eq=False)
class Reference(Node):
    """A declared tensor."""

    name: str


@dataclass(frozen=True, eq=False)
class Unit(Node):
    """`delta(n)`: the unit tensor of order 2n."""

    half: int


@dataclass(frozen=True, eq=False)
class ElementwiseFunction(Node):
    """A function of every element; `function` is a name of the language, or "-" for the unary minus."""

    function: str
    operand: Node


@dataclass(frozen=True, eq=False)
class FunctionOfMatrix(Node):
    """det, inv or adj of a matrix."""

    function: str
    operand: Node


@dataclass(frozen=True, eq=False)
class Plus(Node):
    """A sum of two or more expressions of one shape; `signs` are 1 and −1."""

    terms: tuple[Node, ...]
    signs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ElementwiseQuotient(Node):
    """An element-wise quotient."""

    numerator: Node
    denominator: Node


@dataclass(frozen=True, eq=False)
class ElementwisePower(Node):
    """A power of every element; the exponent is a scalar or has the shape of the base."""

    base: Node
    exponent: Node


@dataclass(frozen=True, eq=False)
class EinsteinProduct(Node):
    """A product of tensors with their indices, summed over those that are not in the output.

    A unary sum or a transposition is one with a single factor. `place` is where the indices are written.
    """

    factors: tuple[Node, ...]
    inputs: tuple[str, ...]
    output: str
    place: Span


@dataclass(frozen=True)
class Declaration:
    """One declared tensor; the order is None where it follows from its use."""

    name: str
    order: int | None
    span: Span = field(compare=False)
    complex: bool = False
    symmetric: bool = False


@dataclass(frozen=True)
class Wrt:
    """A name to differentiate by."""

    name: str
    span: Span = field(compare=False)


@dataclass(frozen=True)
class Text:
    """A whole input: `derivatives` lists the names of each `wrt` in turn, none where there is no such part."""

    source: str
    declarations: tuple[Declaration, ...]
    expression: Node
    derivatives: tuple[tuple[Wrt, ...], ...]
