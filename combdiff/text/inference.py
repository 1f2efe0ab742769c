"""Orders and axes: which shape every part of a text has, by unification over the tree.

    declare A 2 x 1 expression A *(ij,j->i) x + 1
    A: (n, m)    x: (m)    1: (n)    the whole: (n)

A shape is a list of axes; two parts that must have one shape share their axes from then on. A number starts with an
open shape that takes whatever order fits: that is broadcasting. So does a tensor declared without an order.

Invariant: afterwards every node has a shape, and equal axes carry one size name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from itertools import count
from typing import Self

from combdiff.records import dataclass
from combdiff.text.places import TextError, quoted
from combdiff.text.syntax import (
    EinsteinProduct,
    ElementwiseFunction,
    ElementwisePower,
    ElementwiseQuotient,
    FunctionOfMatrix,
    Node,
    Numeral,
    Plus,
    Reference,
    Text,
    Unit,
)

SIZE_LETTERS = "nmklpqrstuvw"


class _Joinable:
    """What may be found to be the same as another: joined ones point to the one that stands for all of them."""

    joined: Self | None

    def root(self) -> Self:
        """The one that stands for this one."""
        one = self
        while one.joined is not None:
            if one.joined.joined is not None:
                one.joined = one.joined.joined
            one = one.joined
        return one


@dataclass(eq=False)
class Axis(_Joinable):
    """An axis."""

    joined: Axis | None = None


@dataclass(eq=False)
class Shape(_Joinable):
    """The axes of a part, None while its order is open."""

    axes: tuple[Axis, ...] | None = None
    joined: Shape | None = None

    @property
    def order(self) -> int | None:
        """The number of axes, None while open."""
        axes = self.root().axes
        return None if axes is None else len(axes)


def new_shape(order: int) -> Shape:
    """A shape of axes of its own."""
    return Shape(tuple(Axis() for _ in range(order)))


def join(one: Axis, other: Axis) -> None:
    """Make two axes one."""
    first, second = one.root(), other.root()
    if first is not second:
        second.joined = first


def unify(one: Shape, other: Shape) -> bool:
    """Make two shapes one; False, and nothing done, if their orders differ."""
    first, second = one.root(), other.root()
    if first is second:
        return True
    if first.axes is None:
        first.joined = second
    elif second.axes is None:
        second.joined = first
    elif len(first.axes) != len(second.axes):
        return False
    else:
        second.joined = first
        for a, b in zip(first.axes, second.axes, strict=True):
            join(a, b)
    return True


@dataclass
class Shapes:
    """The result: shapes of the nodes and of the declared tensors, and the index strings as they are to be read."""

    of_node: dict[Node, Shape] = field(default_factory=dict)
    of_name: dict[str, Shape] = field(default_factory=dict)
    inputs: dict[EinsteinProduct, tuple[str, ...]] = field(default_factory=dict)
    names: dict[Axis, str] = field(default_factory=dict)
    _more_names: Iterator[str] = field(default_factory=lambda: iter(()))

    def sizes(self, shape: Shape) -> tuple[str, ...]:
        """The size names of the axes."""
        axes = shape.root().axes
        assert axes is not None
        return tuple(self._size(axis.root()) for axis in axes)

    def _size(self, axis: Axis) -> str:
        if axis not in self.names:
            self.names[axis] = next(self._more_names)
        return self.names[axis]

    def name_sizes(self, taken: frozenset[str]) -> None:
        """Name every axis class n, m, k, …, in the order of the declarations."""
        self._more_names = (
            name for number in count() for letter in SIZE_LETTERS if (name := f"{letter}{number or ''}") not in taken
        )
        for shape in self.of_name.values():
            self.sizes(shape)


def nodes(expression: Node) -> list[Node]:
    """Every node of a tree, operands before what they stand in."""
    found, stack = [], [expression]
    while stack:
        node = stack.pop()
        found.append(node)
        stack.extend(node.operands)
    return found[::-1]


def infer(text: Text) -> Shapes:
    """The shapes of a text. Raises TextError where orders contradict each other or a name is not declared."""
    return _Inference(text).run()


class _Inference:
    def __init__(self, text: Text) -> None:
        self.text = text
        self.shapes = Shapes()
        self.open_powers: list[ElementwisePower] = []

    def run(self) -> Shapes:
        for declaration in self.text.declarations:
            order = 2 if declaration.symmetric and declaration.order is None else declaration.order
            shape = Shape() if order is None else new_shape(order)
            self.shapes.of_name[declaration.name] = shape
        for node in nodes(self.text.expression):
            self.shapes.of_node[node] = self._shape(node)
        self._settle()
        self._symmetric()
        self.shapes.name_sizes(frozenset(self.shapes.of_name))
        return self.shapes

    def error(self, message: str, node: Node, hint: str = "") -> TextError:
        return TextError(message, self.text.source, node.span.start, hint)

    def quote(self, node: Node) -> str:
        return quoted(self.text.source[node.span.start : node.span.end])

    def described(self, node: Node) -> str:
        return f"{self.quote(node)} has order {self.shapes.of_node[node].order}"

    def _shape(self, node: Node) -> Shape:
        match node:
            case Numeral():
                return Shape()
            case Reference():
                return self._declared(node)
            case Unit():
                half = new_shape(node.half).axes or ()
                return Shape((*half, *half))
            case ElementwiseFunction():
                return self.shapes.of_node[node.operand]
            case FunctionOfMatrix():
                return self._matrix(node)
            case Plus():
                return self._alike(node.terms, "the terms of a sum")
            case ElementwiseQuotient():
                return self._alike(node.operands, "the two parts of a quotient")
            case ElementwisePower():
                return self._power(node)
            case EinsteinProduct():
                return self._contraction(node)
        raise TypeError(f"not an expression: {node!r}")

    def _declared(self, node: Reference) -> Shape:
        if node.name not in self.shapes.of_name:
            known = ", ".join(quoted(name)[1:-1] for name in list(self.shapes.of_name)[:12])
            hint = f"declared are {known}" if known else "declare it with its order: declare x 1"
            raise self.error(f"{self.quote(node)} is not declared", node, hint)
        return self.shapes.of_name[node.name]

    def _alike(self, parts: tuple[Node, ...], what: str) -> Shape:
        first, *rest = parts
        for part in rest:
            if not unify(self.shapes.of_node[first], self.shapes.of_node[part]):
                fixed = next((p for p in parts if not isinstance(p, Numeral)), first)
                raise self.error(
                    f"{what} have unequal orders: {self.described(fixed)}, {self.described(part)}",
                    part,
                    hint="only constants are broadcast; a product x *(i,->i) a takes a scalar to every element",
                )
        return self.shapes.of_node[first]

    def _matrix(self, node: FunctionOfMatrix) -> Shape:
        operand = self.shapes.of_node[node.operand]
        if not unify(operand, new_shape(2)):
            raise self.error(f"{node.function} takes a matrix, but {self.described(node.operand)}", node.operand)
        axes = operand.root().axes
        assert axes is not None
        join(*axes)
        return Shape(()) if node.function == "det" else operand

    def _power(self, node: ElementwisePower) -> Shape:
        """The shape of the base; what the exponent is may be known only when all else is."""
        if not self._exponent(node):
            self.open_powers.append(node)
        return self.shapes.of_node[node.base]

    def _exponent(self, node: ElementwisePower) -> bool:
        """Settle an exponent whose order is known."""
        base, exponent = self.shapes.of_node[node.base], self.shapes.of_node[node.exponent]
        if exponent.order is None:
            return base.root() is exponent.root()
        if exponent.order and not unify(base, exponent):
            raise self.error(
                f"an exponent is a scalar or has the order of its base, but {self.described(node.exponent)} "
                f"and {self.described(node.base)}",
                node.exponent,
            )
        return True

    def _settle(self) -> None:
        """Close what is open: exponents are scalars unless known to be more, and so is a constant expression."""
        before = -1
        while len(self.open_powers) != before:  # an exponent that is settled may settle another
            before = len(self.open_powers)
            self.open_powers = [p for p in reversed(self.open_powers) if not self._exponent(p)][::-1]
        for power in self.open_powers:
            if not self._exponent(power):
                unify(self.shapes.of_node[power.exponent], Shape(()))
        for shape in (*self.shapes.of_name.values(), *self.shapes.of_node.values()):
            if shape.order is None:
                unify(shape, Shape(()))

    def _contraction(self, node: EinsteinProduct) -> Shape:
        inputs = self.shapes.inputs[node] = self._read_inputs(node)
        axes: dict[str, Axis] = {}
        for factor, indices in zip(node.factors, inputs, strict=True):
            shape = self.shapes.of_node[factor]
            if not unify(shape, new_shape(len(indices))):
                raise self.error(
                    f"{self.described(factor)}, but its indices {quoted(indices)} are for order {len(indices)}", factor
                )
            for letter, axis in zip(indices, shape.root().axes or (), strict=True):
                join(axes.setdefault(letter, axis), axis)
        for n, letter in enumerate(node.output):
            problem = "stands twice" if letter in node.output[:n] else "" if letter in axes else "is new"
            if problem:
                raise TextError(
                    f"the index {letter!r} {problem} in the result {quoted(node.output)}",
                    self.text.source,
                    node.place.start,
                )
        return Shape(tuple(axes[letter] for letter in node.output))

    def _read_inputs(self, node: EinsteinProduct) -> tuple[str, ...]:
        """The index strings; an empty one of a factor that has an order repeats the other's, as in the appendix."""
        if len(node.factors) != 2:
            return node.inputs
        orders = [self.shapes.of_node[factor].order for factor in node.factors]
        left, right = node.inputs
        if not right and orders[1] == len(left) and left:
            return left, left
        if not left and orders[0] == len(right) and right:
            return right, right
        return node.inputs

    def _symmetric(self) -> None:
        for declaration in self.text.declarations:
            shape = self.shapes.of_name[declaration.name]
            if declaration.symmetric:
                for axis in shape.root().axes or ():
                    join((shape.root().axes or (axis,))[0], axis)
