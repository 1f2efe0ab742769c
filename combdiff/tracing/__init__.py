"""The front end: Python functions become terms, NumPy's notation included.

    def f(A: M, x: V):                       (A, x) ↦ Σ_i (A @ x)[i]·x[i]
        y = A @ x                            where A @ x = (i) ↦ Σ_k A[i, k]·x[k] is one object
        return cd.sum(lambda i: y[i] * x[i])

In: a decorated function. Out: a `Traced` term.

In the order in which data meets them: `annotations`, `context` (the trace under way), `arrays` (whole tensors as
terms), `rearranging` (cut, joined, laid out anew), `numpy_protocol`, `indices`, `reading`, `values` (what operators
act on), `truths` (comparisons of them), `functions`, `whole_arrays` and `linalg` (what a program calls), `solutions`
(roots and minima), `inlining` (programs in programs), `currying`, `recording` (a decorated function).

Invariant: a `Traced` term is closed but for size names, well typed, and binds every name once.
"""

from combdiff.tracing.functions import (
    abs,
    arccos,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    ceil,
    conj,
    cos,
    cosh,
    delta,
    einsum,
    exp,
    floor,
    hypot,
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
    trunc,
)
from combdiff.tracing.inlining import called, inline, renamed_sizes
from combdiff.tracing.linalg import adj, det, inv, logdet, matrix_power, solve, trace
from combdiff.tracing.recording import trace_function
from combdiff.tracing.solutions import argmin, root
from combdiff.tracing.truths import where
from combdiff.tracing.whole_arrays import clip, constant, logsumexp, softmax

__all__ = [
    "abs",
    "adj",
    "arccos",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmin",
    "called",
    "ceil",
    "clip",
    "conj",
    "constant",
    "cos",
    "cosh",
    "delta",
    "det",
    "einsum",
    "exp",
    "floor",
    "hypot",
    "imag",
    "inline",
    "inv",
    "is_traced",
    "log",
    "logaddexp",
    "logdet",
    "logsumexp",
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
    "softmax",
    "solve",
    "sqrt",
    "sum_",
    "tan",
    "tanh",
    "tensor",
    "trace",
    "trace_function",
    "trunc",
    "where",
]
