"""The front end: Python functions become terms, NumPy's notation included.

    def f(A: M, x: V):                       (A, x) ↦ Σ_i (A @ x)[i]·x[i]
        y = A @ x                            where A @ x = (i) ↦ Σ_k A[i, k]·x[k] is one object
        return cd.sum(lambda i: y[i] * x[i])

In: a decorated function. Out: a `Traced` term.

In the order in which data meets them: `annotations`, `context` (the trace under way), `arrays` (whole tensors as
terms), `numpy_protocol`, `indices`, `reading`, `values` (what operators act on), `functions` and `linalg` (what a
program calls), `solutions` (roots and minima), `inlining` (programs in programs), `currying`, `recording` (a
decorated function).

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
from combdiff.tracing.inlining import called, inline, renamed_sizes
from combdiff.tracing.linalg import adj, det, inv, logdet, matrix_power, solve, trace
from combdiff.tracing.recording import trace_function
from combdiff.tracing.solutions import argmin, root

__all__ = [
    "abs",
    "adj",
    "arccos",
    "arcsin",
    "arctan",
    "argmin",
    "called",
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
    "renamed_sizes",
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
