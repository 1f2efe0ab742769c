"""Decompositions in programs: factors, eigenvalues, singular values, pseudoinverses, and norms that are made of them.

    w, U = cd.eigh(A)               eigvalsh(A)[k], eigvecsh(A)[i, k]
    np.linalg.norm(A, "nuc")        Σ_k svdvals(A)[k]
    cd.lstsq(A, b)                  pinv(A) @ b

Each takes the last two axes of a tensor as a matrix, and the axes before them as a stack of matrices, as NumPy does.
Of a Hermitian function's argument the Hermitian part is taken, ½(A + A†), as in JAX.

Invariant: applied to plain arrays, a function is NumPy's of the same meaning, of that Hermitian part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import combdiff.tracing.arrays as arrays
from combdiff.errors import TypeMismatchError, UnsupportedError, shown
from combdiff.ir import MATRIX_TABLE, Conj, Cyclic, Lambda, Primitive, Range, Symmetric, Term, apply, axes_of, describe
from combdiff.kernels import for_numpy
from combdiff.tracing.context import TracedValue, current
from combdiff.tracing.functions import flag
from combdiff.tracing.linalg import matrix_array, refusing, square
from combdiff.tracing.numpy_protocol import HANDLERS, on_arrays
from combdiff.tracing.values import lift, traced, wrap


class Eigh(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors as columns: A = U diag(w) U†."""

    eigenvalues: Any
    eigenvectors: Any


class Svd(NamedTuple):
    """A = U diag(S) Vh, with as many singular values as A has columns."""

    U: Any
    S: Any
    Vh: Any


class Qr(NamedTuple):
    """A = Q R, R an upper triangle."""

    Q: Any
    R: Any


def _whole(caller: str, a: object) -> Term:
    """The matrix, or stack of them, which a decomposition is of."""
    matrix = lift(a)
    if MATRIX_TABLE[caller].square:
        matrix = square(caller, matrix)
    elif len(axes_of(matrix)) < 2:
        raise TypeMismatchError(
            f"{caller} takes a matrix, but {describe(matrix)} has order {len(axes_of(matrix))}",
            hint="give a tensor whose last two axes are the rows and columns",
        )
    if any(isinstance(axis, Cyclic | Symmetric) for axis in axes_of(matrix)[-2:]):
        raise UnsupportedError(
            f"{caller} numbers the rows and columns of {describe(matrix)}, whose indices have no first one",
            hint="declare both axes by a size or a Range",
        )
    return matrix


def _of(name: str, a: object) -> Any:
    return wrap(Primitive(name, (_whole(name, a),)))


def cholesky(a: Any, /) -> Any:
    """The lower triangular L with A = L L†, for a positive definite matrix A or each in a stack.

    A matrix that is not positive definite is refused with SingularError in a call (JAX gives NaN).
    """
    if isinstance(a, TracedValue):
        return _of("cholesky", a)
    with refusing("cholesky"):
        return for_numpy("cholesky")(matrix_array("cholesky", a), "A")


def eigvalsh(a: Any, /) -> Any:
    """The eigenvalues of a Hermitian matrix, or of each in a stack, in ascending order.

    Sums of functions of them have gradients where eigenvalues are equal, too; second derivatives need distinct ones.
    Raises TypeMismatchError for what is no square matrix or stack of them.
    """
    if isinstance(a, TracedValue):
        return _of("eigvalsh", a)
    with refusing("eigvalsh"):
        return for_numpy("eigvalsh")(matrix_array("eigvalsh", a))


def eigvecsh(a: Any, /) -> Any:
    """The eigenvectors, as columns, of a Hermitian matrix, or of each in a stack, in the order of the eigenvalues.

    Their derivatives are infinite or NaN where eigenvalues are equal. Raises TypeMismatchError for what is no square
    matrix or stack of them.
    """
    if isinstance(a, TracedValue):
        return _of("eigvecsh", a)
    with refusing("eigvecsh"):
        return for_numpy("eigvecsh")(matrix_array("eigvecsh", a))


def eigh(a: Any, /) -> Any:
    """The eigenvalues and eigenvectors of a Hermitian matrix, or of each in a stack: (eigenvalues, eigenvectors).

    Eigenvalues ascend, eigenvectors are columns: A V = V diag(w). For derivatives and errors see `eigvalsh` and
    `eigvecsh`.
    """
    return Eigh(eigvalsh(a), eigvecsh(a))


def svdvals(a: Any, /) -> Any:
    """The singular values of a matrix, or of each in a stack, in descending order.

    There are as many as the matrix has columns, or rows where these are fewer by numbers. Raises TypeMismatchError for
    what is no matrix or stack of them.
    """
    if isinstance(a, TracedValue):
        return _of("svdvals", wrap(_adjoint(lift(a))) if _is_wide(lift(a)) else a)
    return on_arrays("svdvals", lambda array: np.linalg.svd(np.asarray(array), compute_uv=False), a)


def svd(a: Any, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """The singular value decomposition of a matrix, or of each in a stack: (U, S, Vh) with A = U diag(S) Vh.

    As `numpy.linalg.svd`. There are as many singular values as the matrix has columns, or rows where these are fewer by
    numbers; of sizes that are names the last ones and their columns of U may be 0. Raises UnsupportedError for
    `full_matrices=True` of traced values that are not square, TypeMismatchError for what is no matrix or stack of them.
    """
    if not isinstance(a, TracedValue):
        return on_arrays("svd", np.linalg.svd, a, full_matrices=full_matrices, compute_uv=compute_uv)
    if not flag(compute_uv, "compute_uv"):
        return svdvals(a)
    matrix = _whole("svdvals", a)
    rows, columns = axes_of(matrix)[-2:]
    if flag(full_matrices, "full_matrices") and rows != columns:
        raise UnsupportedError(
            "np.linalg.svd of a matrix that is not square gives vectors without derivatives, unless it is told "
            "full_matrices=False",
            hint="write np.linalg.svd(A, full_matrices=False)",
        )
    if _is_wide(matrix):
        left, values, right = svd(wrap(_adjoint(matrix)))
        return Svd(wrap(_adjoint(lift(right))), values, wrap(_adjoint(lift(left))))
    return Svd(_of("svd_left", a), _of("svdvals", a), wrap(_adjoint(Primitive("svd_right", (matrix,)))))


def _is_wide(matrix: Term) -> bool:
    """Whether numbers say that a matrix has fewer rows than columns."""
    sizes = [axis.size for axis in axes_of(matrix)[-2:] if isinstance(axis, Range)]
    return len(sizes) == 2 and isinstance(sizes[0], int) and isinstance(sizes[1], int) and sizes[0] < sizes[1]


def _adjoint(matrix: Term) -> Term:
    """The conjugate transpose of each matrix of a stack."""
    *stack, rows, columns = current("svd").fresh_indices(axes_of(matrix))
    return Lambda((*stack, columns, rows), Conj(apply(matrix, (*stack, rows, columns))))


def qr(a: Any, /) -> Any:
    """The factors (Q, R) of a matrix A = Q R with no fewer rows than columns, or of each in a stack, as np.linalg.qr.

    Q is A R⁻¹: the columns of A must be independent. Raises TypeMismatchError for what is no matrix or stack of them.
    """
    if not isinstance(a, TracedValue):
        return on_arrays("qr", np.linalg.qr, a)
    matrix = _whole("qr_r", a)
    factor = Primitive("qr_r", (matrix,))
    return Qr(wrap(arrays.matmul(matrix, Primitive("inv", (factor,)))), wrap(factor))


def pinv(a: Any, /) -> Any:
    """The pseudoinverse of a matrix, or of each in a stack; its derivatives hold where the rank does not change.

    Raises TypeMismatchError for what is no matrix or stack of them.
    """
    if isinstance(a, TracedValue):
        return _of("pinv", a)
    with refusing("pinv"):
        return on_arrays("pinv", np.linalg.pinv, a)


def expm(a: Any, /) -> Any:
    """The exponential Σ Aᵏ/k! of a square matrix, or of each in a stack. Not element by element, which is `cd.exp`.

    Raises TypeMismatchError for what is no square matrix or stack of them.
    """
    if isinstance(a, TracedValue):
        return _of("expm", a)
    return for_numpy("expm")(matrix_array("expm", a))


def sqrtm(a: Any, /) -> Any:
    """The principal square root of a square matrix, or of each in a stack, of the matrix's own element type.

    Give a complex matrix where the root is complex: NaN stands where an eigenvalue is on the negative real axis. Raises
    TypeMismatchError for what is no square matrix or stack of them.
    """
    if isinstance(a, TracedValue):
        return _of("sqrtm", a)
    with refusing("sqrtm"):
        return for_numpy("sqrtm")(matrix_array("sqrtm", a))


def lstsq(a: Any, b: Any, /) -> Any:
    """The x of least norm for which |a @ x − b| is least, for a matrix a and a vector or matrix b: pinv(a) @ b.

    Raises TypeMismatchError where a is no matrix or b has another number of rows.
    """
    if not isinstance(a, TracedValue) and not isinstance(b, TracedValue):
        return on_arrays("lstsq", np.linalg.lstsq, a, b)[0]
    return wrap(arrays.matmul(lift(pinv(a if isinstance(a, TracedValue) else traced(a))), lift(b)))


def _numpy_lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """NumPy's four results, of which a program has the first alone."""
    if rcond is not None:
        raise UnsupportedError("np.linalg.lstsq in a program: rcond is not taken", hint="leave rcond out")
    return lstsq(a, b), None, None, None


def _numpy_svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    return svd(a, full_matrices, compute_uv)


def _numpy_cholesky(a: Any, *, upper: Any = False) -> Any:
    return wrap(_adjoint(lift(cholesky(a)))) if flag(upper, "upper") else cholesky(a)


def _numpy_qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "r"):
        raise UnsupportedError(
            f"np.linalg.qr in a program: mode={shown(mode)} is not taken: columns beside the matrix's are any",
            hint='mode="reduced", or mode="r" for R alone',
        )
    return qr(a).R if mode == "r" else qr(a)


def _lower(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function of Hermitian matrices that is told which triangle holds: both do in a program, as in JAX."""

    def told(a: Any, UPLO: str = "L") -> Any:  # NumPy's word
        if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
            raise UnsupportedError(f"UPLO={shown(UPLO)} names no triangle of a matrix", hint='give UPLO="L" or "U"')
        return function(a)

    return told


def matrix_norm(a: Any, order: object) -> Any:
    """The nuclear norm ("nuc") or the spectral norm (2) of a matrix, or of each in a stack."""
    values = svdvals(a)
    return values.sum(axis=-1) if order == "nuc" else values[..., 0]


HANDLERS.update(
    {
        np.linalg.cholesky: _numpy_cholesky,
        np.linalg.eigh: _lower(eigh),
        np.linalg.eigvalsh: _lower(eigvalsh),
        np.linalg.svd: _numpy_svd,
        np.linalg.svdvals: svdvals,
        np.linalg.qr: _numpy_qr,
        np.linalg.pinv: pinv,
        np.linalg.lstsq: _numpy_lstsq,
    }
)
