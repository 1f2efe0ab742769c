"""From a text with shapes to a program: every part a scalar term at given indices.

    A *(ij,j->i) x   at (d)   →   Σ_j A[d, j]·x[j]

Equal parts are numbered alike first, so what a text repeats becomes one binding that is read in several places, and
the program has as many nodes as the text has different parts. A deep expression is cut into bindings, too.

Invariant: every bound index has a name of its own, and no term is deeper than MOST_HEIGHT operations.
"""

from __future__ import annotations

from collections import Counter

from combdiff.ir import (
    ONE,
    Apply,
    Lambda,
    Names,
    Number,
    Primitive,
    Range,
    Space,
    Term,
    Var,
    add,
    apply,
    conj,
    delta,
    divide,
    element,
    function,
    lambda_,
    let,
    mul,
    negate,
    power_of,
    total,
    type_of,
)
from combdiff.text.inference import Shapes, nodes
from combdiff.text.syntax import (
    Declaration,
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

AXES = "ijklmnpq"
Indices = tuple[Var, ...]
MOST_HEIGHT = 16  # operations in one another up to which no binding is made


def parameters(text: Text, shapes: Shapes) -> dict[str, Var]:
    """A variable for every declared tensor."""
    return {d.name: Var(d.name, _space(d, shapes)) for d in text.declarations}


def _space(declaration: Declaration, shapes: Shapes) -> Space:
    sizes = shapes.sizes(shapes.of_name[declaration.name])
    letters = list(AXES[: len(sizes)]) if len(sizes) <= len(AXES) else [f"i{n}" for n in range(len(sizes))]
    name, swaps = declaration.name, range(len(sizes) - 1) if declaration.symmetric else ()
    symmetry = [f"{name}[{','.join(letters)}] = {name}[{','.join(_swapped(letters, n))}]" for n in swaps]
    return Space(*sizes, dtype=complex if declaration.complex else float, symmetry=symmetry)


def _swapped(letters: list[str], n: int) -> list[str]:
    return [*letters[:n], letters[n + 1], letters[n], *letters[n + 2 :]]


def translate(text: Text, shapes: Shapes) -> Lambda:
    """The program of the expression, a function of all declared tensors; its body is not yet in normal form."""
    variables = parameters(text, shapes)
    return Lambda(tuple(variables.values()), _Translation(text, shapes, variables).whole())


class _Translation:
    def __init__(self, text: Text, shapes: Shapes, variables: dict[str, Var]) -> None:
        self.text = text
        self.shapes = shapes
        self.variables = variables
        self.names = Names(*variables.values())
        self.number: dict[Node, int] = {}
        self.uses: Counter[int] = Counter()
        self.shared: dict[int, Term] = {}
        self.bindings: list[tuple[Var, Term]] = []
        self._count()

    def _count(self) -> None:
        """Number the nodes, equal ones alike, and count in how many places each number is used."""
        known: dict[tuple[object, ...], int] = {}
        for node in nodes(self.text.expression):
            operands = [self.number[operand] for operand in node.operands]
            key = (type(node), self._content(node), *operands, self.shapes.sizes(self.shapes.of_node[node]))
            if key not in known:
                self.uses.update(operands)
            self.number[node] = known.setdefault(key, len(known))

    def _content(self, node: Node) -> object:
        """What distinguishes a node from others with the same operands."""
        match node:
            case Numeral():
                return type(node.value), node.value
            case Reference():
                return node.name
            case ElementwiseFunction() | FunctionOfMatrix():
                return node.function
            case Plus():
                return node.signs
            case EinsteinProduct():
                return self.shapes.inputs[node], node.output
        return None

    def whole(self) -> Term:
        """The expression as a tensor, below the bindings of what is repeated or deep."""
        root = self.text.expression
        heights: dict[int, int] = {}
        for node in nodes(root):
            number = self.number[node]
            if number not in heights:
                heights[number] = 1 + max((heights[self.number[operand]] for operand in node.operands), default=0)
                if node.operands and node is not root and (self.uses[number] > 1 or heights[number] > MOST_HEIGHT):
                    self.shared[number], heights[number] = self._bound(node), 0
        indices = self._indices(root)
        return let(self.bindings, lambda_(indices, self._element(root, indices)))

    def _bound(self, node: Node) -> Term:
        """A part as a binding; an access that only renames or exchanges indices as itself."""
        own = self._indices(node)
        element = self._element(node, own)
        if isinstance(element, Apply | Number | Var):
            return lambda_(own, element)
        space = type_of(value := lambda_(own, element))
        assert isinstance(space, Space)
        self.bindings.append((self.names.fresh(Var("t", space)), value))
        return self.bindings[-1][0]

    def _indices(self, node: Node, letters: str = "ijklmnopq") -> Indices:
        sizes = self.shapes.sizes(self.shapes.of_node[node])
        return self.names.indices((Range(size) for size in sizes), letters)

    def at(self, node: Node, indices: Indices) -> Term:
        """The element of a part at indices."""
        tensor = self.shared.get(self.number[node])
        if tensor is None:
            return self._element(node, indices)
        return apply(tensor, indices) if indices else tensor

    def _element(self, node: Node, indices: Indices) -> Term:
        match node:
            case Numeral():
                return Number(node.value)
            case Reference():
                variable = self.variables[node.name]
                return element(variable, indices)
            case Unit():
                pairs = zip(indices[: node.half], indices[node.half :], strict=True)
                return mul(ONE, *(delta(i, j) for i, j in pairs))
            case ElementwiseFunction():
                return elementwise(node.function, self.at(node.operand, indices))
            case FunctionOfMatrix():
                own = self._indices(node.operand)
                return self._matrix(node, lambda_(own, self.at(node.operand, own)), indices)
            case Plus():
                terms = [self.at(term, indices) for term in node.terms]
                return add(*(t if sign > 0 else negate(t) for t, sign in zip(terms, node.signs, strict=True)))
            case ElementwiseQuotient():
                return divide(self.at(node.numerator, indices), self.at(node.denominator, indices))
            case ElementwisePower():
                scalar = not self.shapes.of_node[node.exponent].order
                return power_of(self.at(node.base, indices), self.at(node.exponent, () if scalar else indices))
            case EinsteinProduct():
                return self._contraction(node, indices)
        raise TypeError(f"not an expression: {node!r}")

    def _contraction(self, node: EinsteinProduct, indices: Indices) -> Term:
        inputs = self.shapes.inputs[node]
        known = dict(zip(node.output, indices, strict=True))
        summed: list[Var] = []
        for factor, letters in zip(node.factors, inputs, strict=True):
            for letter, size in zip(letters, self.shapes.sizes(self.shapes.of_node[factor]), strict=True):
                if letter not in known:
                    known[letter] = self.names.fresh(Var(letter, Range(size)))
                    summed.append(known[letter])
        factors = [
            self.at(factor, tuple(known[letter] for letter in letters))
            for factor, letters in zip(node.factors, inputs, strict=True)
        ]
        return total(summed, mul(*factors))

    def _matrix(self, node: FunctionOfMatrix, matrix: Term, indices: Indices) -> Term:
        value = Primitive(node.function, (matrix,))
        return element(value, indices)


def elementwise(name: str, argument: Term) -> Term:
    """An element-wise function of the language; "-" is the unary minus."""
    if name == "-":
        return negate(argument)
    return conj(argument) if name == "conj" else function(name, argument)
