"""The front end: Python functions become terms, NumPy's notation included.

    def f(A: M, x: V):                       (A, x) ↦ Σ_i (A @ x)[i]·x[i]
        y = A @ x                            where A @ x = (i) ↦ Σ_k A[i, k]·x[k] is one object
        return cd.sum(lambda i: y[i] * x[i])

From the bottom up: `context` (the trace under way), `arrays` (whole tensors as terms), `numpy_protocol`, `indices`,
`values` (what operators act on), `functions` and `linalg` (what a program calls), `inlining` (programs in programs) and
`recording` (a decorated function).

Invariant: a `Traced` term is closed but for size names, well typed, and binds every name once.
"""

from combdiff.tracing.functions import (
    abs,
    arccos,
    arcsin,
    arctan,
    conj,
    cos,
    cosh,
    delta,
    einsum,
    exp,
    imag,
    is_traced,
    log,
    logaddexp,
    maximum,
    minimum,
    primitive,
    real,
    relu,
    sign,
    sin,
    sinh,
    sqrt,
    sum_,
    tan,
    tanh,
    tensor,
    where,
)
from combdiff.tracing.inlining import inline
from combdiff.tracing.linalg import adj, det, inv, logdet, matrix_power, solve, trace
from combdiff.tracing.recording import Traced, trace_function
from combdiff.tracing.solutions import argmin, root
from combdiff.tracing.values import NamedFunction, Scalar, Tensor

__all__ = [
    "NamedFunction",
    "Scalar",
    "Tensor",
    "Traced",
    "abs",
    "adj",
    "arccos",
    "arcsin",
    "arctan",
    "argmin",
    "conj",
    "cos",
    "cosh",
    "delta",
    "det",
    "einsum",
    "exp",
    "imag",
    "inline",
    "inv",
    "is_traced",
    "log",
    "logaddexp",
    "logdet",
    "matrix_power",
    "maximum",
    "minimum",
    "primitive",
    "real",
    "relu",
    "root",
    "sign",
    "sin",
    "sinh",
    "solve",
    "sqrt",
    "sum_",
    "tan",
    "tanh",
    "tensor",
    "trace",
    "trace_function",
    "where",
]
