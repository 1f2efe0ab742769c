"""Linear algebra in programs: functions of matrices, in cd's and in NumPy's names.

    cd.inv(A) @ A            (i, k) ↦ Σ_j inv(A)[i, j]·A[j, k]
    cd.solve(A, b)           (i) ↦ Σ_j inv(A)[i, j]·b[j]           evaluated without forming the inverse
    cd.matrix_power(A, 3)    A @ A @ A

Each takes the last two axes of a tensor as a matrix, and the axes before them as a stack of matrices, as NumPy does.

Invariant: applied to plain arrays, a function is NumPy's of the same meaning.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

import combdiff.tracing.arrays as arrays
import combdiff.tracing.rearranging as rearranging
from combdiff.errors import ArgumentError, SingularError, TypeMismatchError, UnsupportedError, shown
from combdiff.ir import Lambda, Primitive, Term, axes_of, delta, describe, type_of
from combdiff.kernels import for_numpy
from combdiff.tracing.context import TracedValue, current, show_domain
from combdiff.tracing.functions import whole_number
from combdiff.tracing.numpy_protocol import HANDLERS, on_arrays
from combdiff.tracing.values import lift, wrap

MOST_POWER = 2**32  # of a matrix: each doubling is a product more


def _function(name: str, of_arrays: Callable[[Any], Any], doc: str) -> Callable[[Any], Any]:
    """The matrix function `name` on traced values, and its numerical form on plain arrays."""

    def matrix_function(a: Any, /) -> Any:
        if not isinstance(a, TracedValue):
            with refusing(name):
                return of_arrays(matrix_array(name, a))
        return wrap(Primitive(name, (square(name, lift(a)),)))

    matrix_function.__name__ = matrix_function.__qualname__ = name
    matrix_function.__doc__ = f"{doc}\n\nRaises TypeMismatchError for what is no square matrix or stack of them."
    return matrix_function


def square(caller: str, matrix: Term) -> Term:
    """The matrix, after checking that it is a square one or a stack of them."""
    axes = axes_of(matrix)
    if len(axes) < 2:
        raise TypeMismatchError(
            f"{caller} takes a matrix, but {describe(matrix)} has order {len(axes)}",
            hint="give a tensor whose last two axes are the rows and columns",
        )
    if axes[-1] != axes[-2]:
        raise TypeMismatchError(
            f"{caller} takes a square matrix, but the axes of {describe(matrix)} are "
            f"{show_domain(axes[-2])} and {show_domain(axes[-1])}",
            hint="sizes are equal when they have the same name or number",
        )
    type_of(_inverse(matrix))
    return matrix


def matrix_array(caller: str, array: Any) -> Any:
    """A plain array, after checking that it is a square matrix or a stack of them."""
    found = on_arrays(caller, np.asarray, array)
    if found.ndim < 2 or found.shape[-1] != found.shape[-2]:
        raise TypeMismatchError(
            f"{caller} takes a square matrix, but the array has shape {found.shape}",
            hint="give an array whose last two axes have one length",
        )
    return found


@contextmanager
def refusing(caller: str) -> Iterator[None]:
    """What NumPy refuses of plain arrays, in the words of a call of a program."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        if "positive" in str(error):
            raise ArgumentError(
                f"{caller} is given a matrix that is not positive definite", hint="leave positive=True out"
            ) from None
        raise SingularError(
            f"{caller} is given a matrix that is singular", hint="np.linalg.pinv and np.linalg.lstsq take singular ones"
        ) from None
    except (TypeError, ValueError) as error:
        raise TypeMismatchError(f"cd.{caller}: {error}", hint="give numbers, arrays or traced values") from None


def _inverse(matrix: Term) -> Term:
    return Primitive("inv", (matrix,))


inv = _function(
    "inv",
    np.linalg.inv,
    "The inverse of a square matrix, or of each in a stack. A singular one is refused with SingularError in a call.",
)
det = _function("det", np.linalg.det, "The determinant of a square matrix, or of each in a stack.")
adj = _function(
    "adj",
    for_numpy("adjugate"),
    "The adjugate (transposed cofactors) of a square matrix, or of each in a stack, of singular matrices too.\n\n"
    "adj(A) A = det(A) 1. Its derivatives hold for invertible matrices.",
)


def logdet(a: Any, /, *, positive: bool = False) -> Any:
    """log |det A| of a square matrix, or of each in a stack, without overflow; −∞ for a singular one.

    `positive=True` says that A is positive definite: log det A by its Cholesky factor. Another matrix is then refused
    with ArgumentError in a call (JAX, which has no such errors, takes LU factors). It is not needed to be right.
    """
    name = "logdet_positive" if positive else "logdet"
    if isinstance(a, TracedValue):
        return wrap(Primitive(name, (square("logdet", lift(a)),)))
    matrix = matrix_array("logdet", a)
    with refusing("logdet"):
        return for_numpy("logdet_positive")(matrix, "A") if positive else np.linalg.slogdet(matrix)[1]


_signdet = _function("signdet", lambda matrix: np.linalg.slogdet(matrix)[0], "det A / |det A|, 0 for singular A.")


def solve(a: Any, b: Any, /) -> Any:
    """The solution x of `a @ x = b` for a square matrix a and a vector or matrix b, or stacks of matrices.

    In a program it is inv(a) @ b, which is evaluated without forming the inverse where that is its only use. Raises
    TypeMismatchError where a is not square or b has another number of rows, and SingularError in a call.
    """
    if not isinstance(a, TracedValue) and not isinstance(b, TracedValue):
        return _solved(matrix_array("solve", a), np.asarray(b))
    matrix, right = square("solve", lift(a)), lift(b)
    if not axes_of(right) or axes_of(right)[-2 if len(axes_of(right)) > 1 else -1] != axes_of(matrix)[-1]:
        shown = ", ".join(map(show_domain, axes_of(right))) or "none"
        raise TypeMismatchError(
            f"solve takes a right side with {show_domain(axes_of(matrix)[-1])} rows for {describe(matrix)}, "
            f"but the axes of {describe(right)} are {shown}"
        )
    return wrap(arrays.matmul(_inverse(matrix), right))


def _solved(matrix: Any, right: Any) -> Any:
    """The solution for plain arrays."""
    rows = matrix.shape[-1]
    if not right.ndim or right.shape[-2 if right.ndim > 1 else -1] != rows:
        raise TypeMismatchError(
            f"solve takes a right side with {rows} rows for a matrix of shape {matrix.shape}, but the array has shape "
            f"{right.shape}",
            hint="give a vector of that length, or a matrix with as many rows",
        )
    with refusing("solve"):
        return np.linalg.solve(matrix, right)


def matrix_power(a: Any, n: Any, /) -> Any:
    """The nth power of a square matrix for a whole number n, by repeated squaring; of the inverse for negative n.

    Raises TypeMismatchError for an exponent that is not a Python or NumPy integer.
    """
    if not isinstance(a, TracedValue):
        with refusing("matrix_power"):
            return np.linalg.matrix_power(matrix_array("matrix_power", a), n)
    try:
        exponent = operator.index(n)
    except TypeError:
        raise TypeMismatchError(
            f"matrix_power takes a whole number as exponent, not {shown(n)}", hint="write a Python integer"
        ) from None
    if abs(exponent) > MOST_POWER:
        raise UnsupportedError(f"matrix_power takes exponents up to {MOST_POWER}, not {shown(exponent)}")
    matrix = square("matrix_power", lift(a))
    if not exponent:
        return wrap(_identity(matrix))
    return wrap(_power(matrix if exponent > 0 else _inverse(matrix), abs(exponent)))


def _identity(matrix: Term) -> Term:
    """The stack of unit matrices with the axes of another stack."""
    indices = current("matrix_power").fresh_indices(axes_of(matrix))
    return Lambda(indices, delta(indices[-2], indices[-1], axes_of(matrix)[-1]))


def _power(base: Term, exponent: int) -> Term:
    """base to a positive power, each square used twice one object."""
    if exponent == 1:
        return base
    half = _power(base, exponent // 2)
    square = arrays.matmul(half, half)
    return arrays.matmul(square, base) if exponent % 2 else square


def trace(x: Any, /) -> Any:
    """The sum of the diagonal of a matrix; of a tensor of higher order, over its first two axes.

    Raises TypeMismatchError for what has fewer axes.
    """
    if not isinstance(x, TracedValue):
        x = on_arrays("trace", np.asarray, x)
        if x.ndim < 2:
            raise TypeMismatchError(f"the trace of an array of shape {x.shape} is asked for, which is no matrix")
        return on_arrays("trace", np.trace, x)
    term = lift(x)
    if len(axes_of(term)) < 2:
        raise TypeMismatchError(
            f"the trace of {describe(term)} is asked for, but its order is {len(axes_of(term))}, not 2"
        )
    if axes_of(term)[0] != axes_of(term)[1]:
        return wrap(rearranging.trace(term, 0, 0, 1))
    rest = "abcdefghijklm"[: len(axes_of(term)) - 2]
    return wrap(arrays.contract([term], ["zz" + rest], rest, "a trace"))


def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    if not offset and (axis1, axis2) == (0, 1):
        return trace(a)
    term, offset = lift(a), whole_number(offset, "the offset of a trace")
    first, second = (rearranging.axis_of(term, axis, "a trace") for axis in (axis1, axis2))
    if first == second:
        raise TypeMismatchError(f"np.trace along axis {axis1} twice", hint="give two axes")
    return wrap(rearranging.trace(term, offset, first, second))


class _Slogdet(NamedTuple):
    """What NumPy's slogdet gives, under its names."""

    sign: Any
    logabsdet: Any


def _slogdet(a: Any) -> _Slogdet:
    return _Slogdet(_signdet(a), logdet(a))


HANDLERS.update(
    {
        np.linalg.inv: inv,
        np.linalg.det: det,
        np.linalg.slogdet: _slogdet,
        np.linalg.solve: solve,
        np.linalg.matrix_power: matrix_power,
        np.trace: _trace,
    }
)
