"""What the vectors of a decomposition are to each other, and to the matrix that they are those of.

    Σ_i U[i,k]* U[i,l]   →   δ(k, l)             Σ_k U[i,k] U[j,k]*   →   δ(i, j)
    Σ_j A[i,j] U[j,k]    →   w[k] U[i,k]         where U and w are those of the Hermitian matrix A
    Σ_j X[i,j] V[j,k]    →   s[k] U[i,k]         where X = U diag(s) V†, and Σ_i X[i,j]* U[i,k]  →  s[k] V[j,k]

The matrix may stand in a product by its name or written out, as in Σ_{j,l} X[l,i] X[l,j] U[j,k].

Invariant: the value is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from combdiff.ir import (
    ZERO,
    Action,
    Add,
    Apply,
    Conj,
    Delta,
    Domain,
    Lambda,
    Mul,
    Names,
    Primitive,
    Space,
    SummedProduct,
    Term,
    Var,
    add,
    apply,
    axes_of,
    delta,
    dtype_of,
    mul,
    negate,
    raised,
    substitute,
)
from combdiff.records import dataclass
from combdiff.simplification.normal_form.expansion import conjugate
from combdiff.simplification.normal_form.joined_networks import Renaming, naming_of, together

UNITARY = ("eigvecsh", "svd_right")  # square matrices of vectors
MOST_MORE = 100  # products that the terms of matrices are written out to
IMAGES = {  # the vectors that a matrix makes of vectors, times which numbers; the adjoint does it of those on the left
    "eigvecsh": ("eigvecsh", "eigvalsh"),
    "svd_right": ("svd_left", "svdvals"),
    "svd_left": ("svd_right", "svdvals"),
}


def times(one: SummedProduct, other: SummedProduct) -> SummedProduct:
    """The product of two products that have no index in common."""
    return SummedProduct((*one.indices, *other.indices), (*one.factors, *other.factors))


def changed(whole: SummedProduct, replacement: Mapping[Var, Term]) -> SummedProduct:
    """A product with other terms for some of its indices, which it is not summed over then."""
    indices = tuple(each for each in whole.indices if each not in replacement)
    return SummedProduct(indices, tuple(substitute(each, replacement) for each in whole.factors))


def conjugated(whole: SummedProduct) -> SummedProduct:
    """The conjugate of a product."""
    return SummedProduct(whole.indices, tuple(map(_conjugate, whole.factors)), _conjugate(whole.number))


def _conjugate(factor: Term) -> Term:
    """The conjugate of a factor; of a sum, the sum of those of its terms."""
    if isinstance(factor, Add | Mul):
        return (add if isinstance(factor, Add) else mul)(*map(_conjugate, factor.children))
    return conjugate(factor)


def contracted(products: Sequence[SummedProduct], definitions: Mapping[Var, Term], names: Names) -> list[SummedProduct]:
    """Products with δ for sums of products of orthonormal vectors, and numbers for what a matrix makes of its vectors;
    without those that are 0."""
    found, todo = list[SummedProduct](), [*reversed(products)]
    while todo:
        if len(found) + len(todo) > len(products) + MOST_MORE:
            return [*products]
        each = todo.pop()
        if (one := _by_orthonormality(each)) is not None:
            todo.append(one)
        elif (several := _by_numbers(each, definitions, names)) is not None:
            todo += several
        elif ZERO not in each.factors:
            found.append(each)
    return found


def _by_orthonormality(whole: SummedProduct) -> SummedProduct | None:
    """A product in which one sum over elements of orthonormal vectors is a δ."""
    accesses = [(each, inner) for each in whole.factors if (inner := _vector(each)) is not None]
    for n, (one, first) in enumerate(accesses):
        for other, second in accesses[n + 1 :]:
            conjugated = isinstance(one, Conj) != isinstance(other, Conj)
            if first.function is not second.function or conjugated != (dtype_of(first) is complex):
                continue
            for axis in (-2, -1) if first.function.name in UNITARY else (-2,):  # type: ignore[attr-defined]
                index, fixed = first.arguments[axis], -3 - axis
                left, right = first.arguments[fixed], second.arguments[fixed]
                same = index is second.arguments[axis] and first.arguments[:-2] == second.arguments[:-2]
                every = isinstance(index, Var) and index.type == axes_of(first.function)[axis]
                rest = list(whole.factors)
                rest.remove(one)
                rest.remove(other)
                if (
                    not (same and every)
                    or index not in whole.indices
                    or any(index in each.free for each in (*rest, left, right))
                ):
                    continue
                kept = SummedProduct(tuple(each for each in whole.indices if each is not index), tuple(rest))
                return _where_equal(kept, left, right, axes_of(first.function)[fixed])
    return None


def _where_equal(whole: SummedProduct, left: Term, right: Term, axis: Domain) -> SummedProduct:
    """A product with δ(left, right), solved for a summed index that goes over all of the axis.

    The solver of δ's would make the conditions plain, too, by which pairs of eigenvalues are found.
    """
    for here, there in ((left, right), (right, left)):
        if isinstance(here, Var) and here in whole.indices and here.type == axis and here not in there.free:
            return changed(whole, {here: there})
    return times(whole, SummedProduct((), (delta(left, right),)))


def _with_deltas_solved(whole: SummedProduct) -> SummedProduct:
    """A product without the δ's that its sums may take."""
    for factor in whole.factors:
        if isinstance(factor, Delta) and factor.domain is not None:
            rest = SummedProduct(whole.indices, tuple(each for each in whole.factors if each is not factor))
            solved = _where_equal(rest, factor.left, factor.right, factor.domain)
            if len(solved.indices) < len(whole.indices):
                return _with_deltas_solved(solved)
    return whole


def _vector(factor: Term) -> Apply | None:
    """The element of orthonormal vectors that a factor is, or is the conjugate of."""
    inner = factor.body if isinstance(factor, Conj) else factor
    if not isinstance(inner, Apply) or not isinstance(inner.function, Primitive) or inner.function.name not in IMAGES:
        return None
    return inner


@dataclass(frozen=True)
class _Matrix:
    """The elements at a row and a column of a matrix, a product and the rest, which makes multiples of vectors of some:
    Σ over the column of it times vectors[column, k] is numbers[k] images[row, k]."""

    row: Var
    column: Var
    images: Primitive
    numbers: Primitive
    product: SummedProduct
    rest: tuple[SummedProduct, ...] = ()


def _by_numbers(whole: SummedProduct, definitions: Mapping[Var, Term], names: Names) -> list[SummedProduct] | None:
    """Products with w[k] U[i,k] for a sum over j of A[i,j] U[j,k], less what the rest of the matrix makes of U[j,k]."""
    for factor in whole.factors:
        vector = _vector(factor)
        if vector is None or vector.arguments[-2] not in whole.indices:
            continue
        for matrix in _matrices(vector, definitions, names):
            if (found := _with_number(whole, factor, vector, matrix)) is not None:
                return found
    return None


def _matrices(vector: Apply, definitions: Mapping[Var, Term], names: Names) -> Iterator[_Matrix]:
    """The matrix that a vector is of, as it may stand in a product: by its name, or written out, of a sum one term.

    A Hermitian matrix is its own adjoint; of a sum only one term is looked for, as two might stand for each other.
    """
    vectors, stack = vector.function, vector.arguments[:-2]
    assert isinstance(vectors, Primitive)
    images, numbers = (Primitive(name, vectors.children) for name in IMAGES[vectors.name])
    (matrix,) = vectors.children
    if not isinstance(matrix, Var) or axes_of(images)[-1] != axes_of(vectors)[-1]:
        return
    if vectors.name == "eigvecsh" and not _is_hermitian(matrix):
        return
    row, column = names.indices((axes_of(images)[-2], axes_of(vectors)[-2]))
    values = [value for value in (matrix, definitions.get(matrix)) if isinstance(value, Var | Lambda)]
    sides = (False, True) if vectors.name == "eigvecsh" else (vectors.name == "svd_left",)
    for value, is_adjoint in product(values, sides):
        at = (column, row) if is_adjoint else (row, column)
        terms = _terms(apply(value, (*stack, *at)), names)
        if is_adjoint:
            terms = [conjugated(each) for each in terms]
        read = [term for term in terms if not any(isinstance(factor, Delta) for factor in term.factors)]
        if read and not (is_adjoint and vectors.name == "eigvecsh" and terms[1:]):
            yield _Matrix(row, column, images, numbers, read[0], tuple(term for term in terms if term is not read[0]))


def _terms(value: Term, names: Names) -> list[SummedProduct]:
    return [SummedProduct.of(term, names) for term in (value.terms if isinstance(value, Add) else (value,))]


def _is_hermitian(matrix: Var) -> bool:
    """Whether the last two axes may be exchanged, complex numbers with their conjugates."""
    space = matrix.type
    assert isinstance(space, Space)
    *stack, row, column = range(space.order)
    exchanged = Action((*stack, column, row), (False,) * space.order, 1, space.dtype is complex)
    return exchanged in space.group


def _with_number(whole: SummedProduct, factor: Term, vector: Apply, matrix: _Matrix) -> list[SummedProduct] | None:
    """The product with a number for the matrix and the sum over its column; None where they are not there."""
    index = vector.arguments[-2]
    star = _conjugate if isinstance(factor, Conj) else lambda each: each
    beside = list(whole.factors)
    beside.remove(factor)
    read = tuple(dict.fromkeys(var for each in beside for var in each.free))
    pattern = tuple(map(star, matrix.product.factors))
    for naming, left in _embedded(pattern, beside, {}, (*matrix.product.indices, matrix.row, matrix.column), read):
        summed = [naming.get(each) for each in (*matrix.product.indices, matrix.column)]
        others = {naming.get(matrix.row), *(var for each in left for var in each.free)}
        if naming.get(matrix.column) is index and {*summed} <= {*whole.indices} and others.isdisjoint({None, *summed}):
            kept = tuple(each for each in whole.indices if each not in summed)
            scaled = SummedProduct(kept, (*left, raised(star(matrix.product.number), -1)))
            row, (*stack, _, k) = naming[matrix.row], vector.arguments
            found = [
                SummedProduct((), (Apply(matrix.numbers, (*stack, k)), star(Apply(matrix.images, (*stack, row, k)))))
            ]
            for each in matrix.rest:
                at = changed(each, {matrix.row: row, matrix.column: index})
                less = (negate(star(each.number)), *map(star, at.factors), factor)
                found.append(SummedProduct((index, *at.indices), less))
            return [_with_deltas_solved(times(scaled, each)) for each in found]
    return None


def _embedded(
    pattern: Sequence[Term], factors: Sequence[Term], naming: Renaming, own: Sequence[Var], theirs: Sequence[Var]
) -> Iterator[tuple[Renaming, list[Term]]]:
    """The namings of some indices under which a product is part of another, and the factors beside it."""
    if not pattern:
        yield naming, [*factors]
        return
    for n, factor in enumerate(factors):
        more = naming_of(pattern[0], factor, own, theirs)
        both = None if more is None else together(naming, more)
        if both is not None:
            yield from _embedded(pattern[1:], [*factors[:n], *factors[n + 1 :]], both, own, theirs)
