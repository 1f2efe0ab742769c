"""The type of every term: the domains of its arguments and its element type.

    type_of(Σ_i A[i, j]·x[i])   with A: Space("n", "m"), x: Space("n", dtype=complex)
    = Space(dtype=complex)

Invariant: a term that `type_of` accepts can be evaluated once arrays of the declared types are given; what does
not fit raises TypeMismatchError, naming the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from combdiff.errors import TypeMismatchError
from combdiff.ir.domains import Action, Cyclic, Domain, Function, Range, Real, Space, Symmetric, Whole
from combdiff.ir.implicit import Implicit
from combdiff.ir.indices import Affine, Coordinate, Delta, Indicator, Unequal
from combdiff.ir.iteration import LAST, Scan
from combdiff.ir.largest import Largest, Magnitude, Masked, Rescaled, Shift
from combdiff.ir.matrix_functions import MATRIX_TABLE
from combdiff.ir.primitives import TABLE
from combdiff.ir.relations import Relation
from combdiff.ir.terms import (
    Add,
    Apply,
    Conj,
    Lambda,
    Let,
    Mul,
    Number,
    Primitive,
    PrintedNumber,
    Pullback,
    Sum,
    Term,
    Tuple,
    Type,
    Var,
    composed,
)

Inferred = Type | tuple["Inferred", ...]


def is_domain(type_: object) -> bool:
    """Whether a type is that of an index."""
    return isinstance(type_, Range | Cyclic | Symmetric | Real | Whole)


@cache
def scalar(dtype: type) -> Space:
    """The type of a number."""
    return Space(dtype=dtype)


def join(*dtypes: type) -> type:
    """The element type that holds all of them: complex over float over int."""
    return complex if complex in dtypes else float if float in dtypes else int


def whole_tensor(element: Term, indices: Sequence[Term]) -> Term | None:
    """The tensor of which a term is every element, at indices in the order of its axes: x of x[i]. None of a part: of
    x[i] for an i that takes fewer values than the axis has, as in x[:4], or other ones."""
    if not isinstance(element, Apply) or element.arguments != tuple(indices):
        return None
    tensor = element.function
    space = type_of(tensor)
    if not isinstance(space, Space) or not tensor.free.isdisjoint(element.arguments):
        return None
    runs_over = (isinstance(i, Var) and i.type == axis for i, axis in zip(indices, space.axes, strict=True))
    return tensor if all(runs_over) and len(set(indices)) == len(indices) else None


@composed
def type_of(term: Term) -> Inferred:
    """The type of a term: a domain for an index, a Space for a tensor or number, a Function for a map, a tuple.

    Raises TypeMismatchError where the parts of the term do not fit.
    """
    match term:
        case Var():
            return term.type
        case Number():
            whole = isinstance(term.real, int) and not term.imag
            return scalar(complex if term.imag else int if whole else float)
        case Affine():
            return _affine_type(term)
        case Apply():
            return _apply_type(term)
        case Lambda():
            return _lambda_type(term)
        case Tuple():
            return tuple(type_of(item) for item in term.items)
        case Let():
            return type_of(term.body)
        case Pullback():
            return _pullback_type(term)
        case Implicit():
            return term.space
        case Scan():
            return _scan_type(term)
        case Coordinate():
            return scalar(term.dtype)
        case Relation():
            _primitive_type(term)  # of real arguments
            return scalar(int)
        case Primitive():
            return _primitive_type(term)
        case Delta() | Indicator() | Unequal():
            return scalar(int)
        case Masked() | Largest() | Shift() | Magnitude():
            return scalar(float)
        case Rescaled():
            return scalar(join(dtype_of(term.body), float))
        case Add() | Mul() | Conj() | Sum():
            return scalar(join(*(dtype_of(child) for child in term.children)))
        case PrintedNumber():
            return scalar(dtype_of(term.children[-1]))
    raise TypeError(f"not a term: {term!r}")


def dtype_of(term: Term) -> type:
    """The element type of a scalar term."""
    found = type_of(term)
    if not isinstance(found, Space) or found.order:
        raise TypeMismatchError(f"a number was expected, but this is {_describe(found)}")
    return found.dtype


def is_complex(term: Term) -> bool:
    """Whether a scalar or tensor term has complex elements."""
    found = type_of(term)
    return isinstance(found, Space) and found.dtype is complex


def _describe(type_: Inferred) -> str:
    if isinstance(type_, tuple):
        return f"a tuple of {len(type_)} results"
    if isinstance(type_, Space):
        return f"a tensor of order {type_.order}"
    return f"an index over {type_!r}" if is_domain(type_) else f"a map {type_!r}"


def _affine_type(term: Affine) -> Domain | Whole:
    """The domain of an index expression is that of its indices; of several, a cycle or the first by name."""
    domains = [var.type for var, _ in term.coefficients if not isinstance(var.type, Whole)]
    if not domains:
        return Whole()
    return next((d for d in domains if isinstance(d, Cyclic)), domains[0])  # type: ignore[return-value]


def _apply_type(term: Apply) -> Inferred:
    function = type_of(term.function)
    if isinstance(function, Function):
        return function.result
    if not isinstance(function, Space):
        raise TypeMismatchError(f"{_describe(function)} cannot be applied")
    if len(term.arguments) != function.order:
        name = f"{term.function.name} has" if isinstance(term.function, Var) else "a tensor has"
        raise TypeMismatchError(f"{name} order {function.order}, but is read with {len(term.arguments)} indices")
    return scalar(function.dtype)


def _lambda_type(term: Lambda) -> Inferred:
    body = type_of(term.body)
    if not isinstance(body, Space):
        return body
    if all(is_domain(p.type) for p in term.parameters):
        return Space(*(p.type for p in term.parameters), *body.axes, dtype=body.dtype)  # type: ignore[arg-type]
    spaces = [p.type for p in term.parameters if isinstance(p.type, Space)]
    return Function(*spaces, result=body)


def _pullback_type(term: Pullback) -> Inferred:
    function = type_of(term.function)
    if not isinstance(function, Function):
        raise TypeMismatchError(f"only a named map has a pullback of its own, not {_describe(function)}")
    return function.arguments[term.position]


def _scan_type(term: Scan) -> Space:
    """A state or what a step gives; of all steps unless it is the last state."""
    states = term.states
    space = states[term.component].type if term.component < len(states) else type_of(term.outputs[term.component])
    assert isinstance(space, Space)
    return space if term.kind == LAST else Space(term.steps, *space.axes, dtype=space.dtype)


def _primitive_type(term: Primitive) -> Inferred:
    if term.name in MATRIX_TABLE:
        return _matrix_type(term)
    row = TABLE[term.name]
    dtype = join(*(dtype_of(argument) for argument in term.arguments))
    if row.real_only and dtype is complex:
        raise TypeMismatchError(f"{term.name} takes real arguments", hint="take cd.real(…) of the argument first")
    if dtype is complex and row.real_valued:
        return scalar(float)
    return scalar(join(dtype, float))


def _matrix_type(term: Primitive) -> Space:
    """The type of a matrix function; the inverse and the adjugate keep the symmetries of their matrix."""
    row, space = MATRIX_TABLE[term.name], type_of(term.arguments[0])
    if not isinstance(space, Space) or space.order < row.order:
        what = "vector" if row.by_rows else "matrix"
        raise TypeMismatchError(f"{term.name} takes a {what}, but this is {_describe(space)}")
    if row.real_only and space.dtype is complex:
        raise TypeMismatchError(f"{term.name} takes real numbers", hint="complex numbers have no order: take cd.abs(z)")
    matrix = space.axes[-2:]
    if (row.square and matrix[0] != matrix[1]) or any(isinstance(axis, Real) for axis in matrix):
        raise TypeMismatchError(
            f"{term.name} takes a square matrix, but its axes are {matrix[0]!r} and {matrix[1]!r}",
            hint="declare both axes with one finite domain",
        )
    dtype = int if row.whole else float if row.real_valued else join(space.dtype, float)
    kept = space.generators if row.kind == "matrix" else ()
    symmetry = [action.equation("A") for action in kept if _inherited(term.name, action)]
    return Space(*row.of_result(space.axes), dtype=dtype, symmetry=symmetry)


def _inherited(name: str, action: Action) -> bool:
    """Whether a symmetry of a matrix X, or of a stack of them, is one of its inverse (or adjugate) as it stands.

    Exchanging or negating both matrix indices is: (Xᵀ)⁻¹ = (X⁻¹)ᵀ, (P X P)⁻¹ = P X⁻¹ P. A sign is one of the inverse
    alone, as adj(−X) = (−1)ⁿ⁻¹ adj(X).
    """
    order = len(action.axes)
    own = set(action.axes[-2:]) == {order - 2, order - 1}
    return own and action.negated[-1] == action.negated[-2] and (action.sign > 0 or name == "inv")
