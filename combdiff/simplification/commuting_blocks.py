"""Derivatives of functions of a matrix in directions that commute with it: the gradient of tr f(A) is f′(A)ᵀ.

    t = [[A, c 1], [0, A]]    expm(t)[d, e + n]     →   c expm(A)[d, e]
    t = [[A, A], [0, A]]      sqrtm(t)[d, e + n]    →   ½ Σ_k inv(sqrtm(A))[d, k] A[k, e]

The derivative of a primary function f of A in the direction E is the upper right block of f([[A, E], [0, A]]), a matrix
of twice the size. Where E is a sum of multiples of 1, A, its inverse, and primary functions of it, it commutes with A,
and the block is f′(A) E.

Source: Higham, Functions of Matrices, section 3.2.
Invariant: the value is unchanged wherever f is differentiable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from combdiff.ir import (
    MATRIX_TABLE,
    ZERO,
    Add,
    Apply,
    Delta,
    Lambda,
    Names,
    Primitive,
    Range,
    Rewriter,
    Term,
    Var,
    affine,
    affine_parts,
    apply,
    delta,
    factors_of,
    half_of,
    indicator,
    is_primary,
    items_of,
    joined,
    let,
    mul,
    size_form,
    size_sum,
    split,
    subterms,
    total,
    upper_blocks,
    values_of,
    whole_tensor,
)
from combdiff.records import dataclass
from combdiff.simplification.egraph.saturation import normal
from combdiff.simplification.normal_form.conditions import plain_conditions


@dataclass(frozen=True)
class _UpperBlocks:
    """A and E of [[A, E], [0, A]] as maps of the indices of a stack, of rows and of columns.

    A is the `tensor`, or where `turned` its transpose.
    """

    own: Lambda
    direction: Lambda
    tensor: Term
    turned: bool

    @property
    def rows(self) -> Range:
        """The axis of A."""
        axis = self.own.parameters[-1].type
        assert isinstance(axis, Range)
        return axis

    def derivative(self, name: str, indices: Sequence[Term]) -> Term:
        """Σ_k f′(A)[i, k] E[k, j] at indices of a stack, i and j."""
        *stack, i, j = indices
        k = Names(*indices, self.own, self.direction).fresh(Var("k", self.rows))
        slope = MATRIX_TABLE[name].slope
        assert slope is not None
        factor, functions = slope
        tensor = self.tensor
        for each in functions:
            tensor = Primitive(each, (tensor,))
        derivative = Apply(tensor, (*stack, *((k, i) if self.turned else (i, k))))
        return total((k,), mul(factor, derivative, apply(self.direction, (*stack, k, j))))

    def term(self, indices: Sequence[Var]) -> Lambda:
        """[[A, E], [0, A]]."""
        stack = indices[:-2]

        def own(i: Term, j: Term) -> Term:
            return apply(self.own, (*stack, i, j))

        return upper_blocks(indices, self.rows, own, lambda i, j: apply(self.direction, (*stack, i, j)))


def with_commuting_blocks(body: Term) -> Term:
    """A let program with f′(A) E for the blocks f([[A, E], [0, A]]) of matrices that commute, itself without any."""
    nodes = (node for value in values_of(body) for node in subterms(value))
    matrices = frozenset(node.children[0] for node in nodes if isinstance(node, Primitive) and is_primary(node))
    if not matrices:
        return body
    bindings, result = split(body)
    reading = _ReadingBlocks(matrices)
    kept = [(var, reading.definition(var, value)) for var, value in bindings]
    return let(kept, joined(result, map(reading.run, items_of(result)))) if reading.blocks else body


class _ReadingBlocks(Rewriter):
    """Reads the upper right blocks of functions of block matrices as products."""

    def __init__(self, matrices: frozenset[Term]) -> None:
        super().__init__()
        self.matrices = matrices
        self.maps: dict[Term, Lambda] = {}
        self.functions: dict[Term, Term] = {}
        self.blocks: dict[Term, _UpperBlocks] = {}

    def definition(self, var: Var, value: Term) -> Term:
        """A value with products in it, those in its own block E, too; those that follow may read it."""
        value = self.run(value)
        if not isinstance(value, Lambda):
            return value
        self.functions[var] = whole_tensor(value.body, value.parameters) or var
        if var not in self.matrices:
            return value
        blocks = _blocks(value, self.maps)
        self.maps[var] = value
        if blocks is None:
            return value
        if _MadeOf(blocks, self.functions)(blocks.direction.body):
            self.blocks[var] = blocks
            return value
        inside = self.run(blocks.direction)
        assert isinstance(inside, Lambda)
        return value if inside is blocks.direction else replace(blocks, direction=inside).term(value.parameters)

    def node(self, term: Term) -> Term:
        """The term with products in it."""
        new = self.inside(term)
        if not isinstance(new, Apply):
            return new
        tensor = self.functions.get(new.function, new.function)
        blocks = self.blocks.get(tensor.children[0]) if isinstance(tensor, Primitive) and is_primary(tensor) else None
        if blocks is None or not isinstance(tensor, Primitive):
            return new
        *stack, row, column = new.arguments
        behind = affine([(column, 1), (size_form(blocks.rows.size), -1)])
        if not all(isinstance(index, Var) and index.type == blocks.rows for index in (row, behind)):
            return new
        return blocks.derivative(tensor.name, (*stack, row, behind))


def _blocks(value: Lambda, maps: Mapping[Term, Lambda]) -> _UpperBlocks | None:
    """The parts of a matrix, or a stack of some, that is [[A, E], [0, A]]; A may be one of some that have names."""
    *before, first, second = value.parameters
    rows = _half(second.type)
    if rows is None or first.type != second.type:
        return None
    names = Names(value)
    stack, place = tuple(map(names.fresh, before)), names.indices((rows, rows))

    def part(*beyond: bool) -> Term:
        n = size_form(rows.size)
        moved = (affine([(index, 1), (n, int(each))]) for index, each in zip(place, beyond, strict=True))
        return normal(_NearDeltas().run(apply(value, (*stack, *moved))))

    own = part(False, False)
    if part(True, False) is not ZERO or part(True, True) is not own:
        return None
    direction = Lambda((*stack, *place), part(False, True))
    return _UpperBlocks(Lambda((*stack, *place), own), direction, *_tensor(own, stack, place, maps))


def _tensor(own: Term, stack: Sequence[Var], place: tuple[Var, ...], maps: Mapping[Term, Lambda]) -> tuple[Term, bool]:
    """The tensor whose elements some are, and whether it is its transpose; where it is neither, a map."""
    for turned, indices in ((False, (*stack, *place)), (True, (*stack, *reversed(place)))):
        if (tensor := whole_tensor(own, indices)) is not None:
            return tensor, turned
        for var, value in maps.items():
            same = [parameter.type for parameter in value.parameters] == [index.type for index in indices]
            if same and normal(apply(value, indices)) is own:
                return var, turned
    return Lambda((*stack, *place), own), False


class _MadeOf:
    """Whether terms are, at the indices of the blocks A and E, elements of matrices that commute with A."""

    def __init__(self, blocks: _UpperBlocks, functions: Mapping[Term, Term]) -> None:
        *stack, i, j = blocks.own.parameters
        self.place = frozenset((i, j))
        self.own = self._held(blocks.own.body)
        self.tensor = blocks.tensor
        self.indices = (*stack, j, i) if blocks.turned else (*stack, i, j)
        self.functions = functions

    def __call__(self, term: Term) -> bool:
        held = self._held(term)
        if term is ZERO or held == self.own:
            return True
        if isinstance(term, Add):
            return all(map(self, term.terms))
        match held:
            case [Delta(left=left, right=right)]:
                return {left, right} == self.place
            case [Apply(function=tensor, arguments=indices)]:
                return indices == self.indices and self._is_function(tensor)
        return False

    def _held(self, term: Term) -> list[Term]:
        """The factors that are not the same for all elements."""
        return [factor for factor in factors_of(term) if not factor.free.isdisjoint(self.place)]

    def _is_function(self, tensor: Term) -> bool:
        """Whether a tensor is an inverse or a primary function of the matrix, perhaps of one of these."""
        tensor = self.functions.get(tensor, tensor)
        if isinstance(tensor, Primitive) and (tensor.name == "inv" or is_primary(tensor)):
            return self._is_function(tensor.arguments[0])
        return tensor is self.tensor


def _half(axis: object) -> Range | None:
    """The axis of half as many elements."""
    if not isinstance(axis, Range):
        return None
    half = half_of(axis.size)
    return None if half is None or size_sum((half, 2)) != axis.size else Range(half)


class _NearDeltas(Rewriter):
    """Compares what δ's compare less what both have in common; δ(i, j + n) is 0 for i and j below n."""

    def node(self, term: Term) -> Term:
        """The term with its δ's so."""
        new = self.inside(term)
        if not isinstance(new, Delta) or not isinstance(new.domain, Range):
            return new
        apart = affine([(new.left, 1), (new.right, -1)])
        if any(ZERO in plain_conditions([indicator(affine([(apart, sign)]))]) for sign in (1, -1)):
            return ZERO
        parts, offset = affine_parts(apart)
        indices = [index for index, _ in parts]
        return delta(indices[0], indices[1]) if not offset and sorted(sign for _, sign in parts) == [-1, 1] else new
