"""What the vectors of a decomposition are to each other, and to the matrix that they are the eigenvectors of.

    Σ_i U[i,k]* U[i,l]   →   δ(k, l)             Σ_k U[i,k] U[j,k]*   →   δ(i, j)
    Σ_j A[i,j] U[j,k]    →   w[k] U[i,k]         where U and w are those of the Hermitian matrix A

The matrix may stand in a product by its name or written out, as in Σ_{j,l} X[l,i] X[l,j] U[j,k].

Invariant: the value is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from combdiff.ir import (
    ZERO,
    Action,
    Add,
    Apply,
    Conj,
    Delta,
    Domain,
    Lambda,
    Names,
    Primitive,
    Space,
    SummedProduct,
    Term,
    Var,
    apply,
    axes_of,
    conj,
    delta,
    dtype_of,
    negate,
    raised,
    substitute,
)
from combdiff.records import dataclass
from combdiff.simplification.normal_form.joined_networks import Renaming, naming_of, together

UNITARY = ("eigvecsh", "svd_right")  # square matrices of vectors


def times(one: SummedProduct, other: SummedProduct) -> SummedProduct:
    """The product of two products that have no index in common."""
    return SummedProduct((*one.indices, *other.indices), (*one.factors, *other.factors))


def changed(whole: SummedProduct, replacement: Mapping[Var, Term]) -> SummedProduct:
    """A product with other terms for some of its indices, which it is not summed over then."""
    indices = tuple(each for each in whole.indices if each not in replacement)
    return SummedProduct(indices, tuple(substitute(each, replacement) for each in whole.factors))


def contracted(products: Sequence[SummedProduct], definitions: Mapping[Var, Term], names: Names) -> list[SummedProduct]:
    """Products with δ for sums of products of orthonormal vectors, and eigenvalues for what a matrix makes of its
    eigenvectors; without those that are 0."""
    found, todo = list[SummedProduct](), [*reversed(products)]
    while todo:
        each = todo.pop()
        if (one := _by_orthonormality(each)) is not None:
            todo.append(one)
        elif (several := _by_eigenvalues(each, definitions, names)) is not None:
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
            for axis in (-2, -1):
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
    """A product with δ(left, right), solved for a summed index that goes over all of the axis."""
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
    if not isinstance(inner, Apply) or not isinstance(inner.function, Primitive) or inner.function.name not in UNITARY:
        return None
    return inner


@dataclass(frozen=True)
class _Matrix:
    """The elements at a row and a column of the matrix that vectors are eigenvectors of: a product, and the rest."""

    row: Var
    column: Var
    product: SummedProduct
    rest: tuple[SummedProduct, ...] = ()

    @property
    def transposed(self) -> _Matrix:
        """The same, for vectors that are multiplied from the left."""
        return replace(self, row=self.column, column=self.row)


def _by_eigenvalues(whole: SummedProduct, definitions: Mapping[Var, Term], names: Names) -> list[SummedProduct] | None:
    """Products with w[k] U[i,k] for a sum over j of A[i,j] U[j,k], less what the rest of the matrix makes of U[j,k]."""
    for factor in whole.factors:
        vector = _vector(factor)
        if vector is None or vector.arguments[-2] not in whole.indices:
            continue
        for matrix in _matrices(vector, definitions, names):
            ways = [matrix] if factor is vector else []
            ways += [matrix.transposed] if factor is not vector or dtype_of(vector) is not complex else []
            for each in ways:
                if (found := _with_number(whole, factor, vector, each)) is not None:
                    return found
    return None


def _matrices(vector: Apply, definitions: Mapping[Var, Term], names: Names) -> Iterator[_Matrix]:
    """The Hermitian matrix that a vector is an eigenvector of, as it may stand in a product: by its name, written out,
    and as each of its terms with a sum in it."""
    (matrix,) = vector.function.children
    if not isinstance(matrix, Var) or vector.function is not Primitive("eigvecsh", (matrix,)):
        return
    if not isinstance(matrix.type, Space) or not _is_hermitian(matrix.type):
        return
    row, column = names.indices(matrix.type.axes[-2:])
    stack = vector.arguments[:-2]
    yield _Matrix(row, column, SummedProduct((), (Apply(matrix, (*stack, row, column)),)))
    if matrix.type.dtype is complex:
        yield _Matrix(row, column, SummedProduct((), (conj(Apply(matrix, (*stack, column, row))),)))
    value = definitions.get(matrix)
    if isinstance(value, Lambda):
        written = apply(value, (*stack, row, column))
        parts = [SummedProduct.of(term, names) for term in (written.terms if isinstance(written, Add) else (written,))]
        for n, part in enumerate(parts):
            if part.indices:
                yield _Matrix(row, column, part, (*parts[:n], *parts[n + 1 :]))


def _is_hermitian(space: Space) -> bool:
    """Whether the last two axes may be exchanged, complex numbers with their conjugates."""
    *stack, row, column = range(space.order)
    exchanged = Action((*stack, column, row), (False,) * space.order, 1, space.dtype is complex)
    return exchanged in space.group


def _with_number(whole: SummedProduct, factor: Term, vector: Apply, matrix: _Matrix) -> list[SummedProduct] | None:
    """The product with an eigenvalue for the matrix and the sum over its column; None where they are not there."""
    index, product = vector.arguments[-2], matrix.product
    beside = list(whole.factors)
    beside.remove(factor)
    read = tuple(dict.fromkeys(var for each in beside for var in each.free))
    for naming, left in _embedded(product.factors, beside, {}, (*product.indices, matrix.row, matrix.column), read):
        summed = [naming.get(each) for each in (*product.indices, matrix.column)]
        others = {naming.get(matrix.row), *(var for each in left for var in each.free)}
        if naming.get(matrix.column) is index and {*summed} <= {*whole.indices} and others.isdisjoint({None, *summed}):
            kept = tuple(each for each in whole.indices if each not in summed)
            scaled = SummedProduct(kept, (*left, raised(product.number, -1)))
            row = naming[matrix.row]
            at = (*vector.arguments[:-2], vector.arguments[-1])
            number = Apply(Primitive("eigvalsh", vector.function.children), at)
            found = [times(scaled, SummedProduct((), (number, substitute(factor, {index: row}))))]
            for each in matrix.rest:
                moved = changed(each, {matrix.row: row, matrix.column: index})
                less = SummedProduct((index, *moved.indices), (negate(each.number), *moved.factors, factor))
                found.append(_with_deltas_solved(times(scaled, less)))
            return found
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
