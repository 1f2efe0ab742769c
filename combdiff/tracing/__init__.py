"""The front end: Python functions become terms, NumPy's notation included.

    def f(A: M, x: V):                       (A, x) ↦ Σ_i (A @ x)[i]·x[i]
        y = A @ x                            where A @ x = (i) ↦ Σ_k A[i, k]·x[k] is one object
        return cd.sum(lambda i: y[i] * x[i])

In: a decorated function. Out: a `Traced` term.

In the order in which data meets them: `annotations`, `scipy_names` (what to write for SciPy's), `context` (the trace
under way), `arrays` (whole tensors as terms), `rearranging` (cut, joined, laid out anew), `numpy_protocol`, `indices`,
`formulas` (arrays of numbers by their indices), `reading`, `values` (what operators act on), `truths` (comparisons of
them), `functions`, `special_functions`, `reductions`, `orders` (sorted, the largest's place), `creation` (ones, unit
matrices), `whole_arrays`, `compositions` (a few words of those), `layouts`, `segments`, `signals`, `fourier` and
`statistics` (more of NumPy's names), `masks` (truth values in those that move elements), `refusals` (what is not taken,
and why), `linalg` and `decompositions` (what a program calls), `solutions` (roots and minima), `iteration` (scans),
`inlining` (programs in programs), `currying`, `recording` (a decorated function).

Invariant: a `Traced` term is closed but for size names, well typed, and binds every name once.
"""

from combdiff.tracing import compositions as _compositions  # noqa: F401  (rows of a table)
from combdiff.tracing import fourier as _fourier  # noqa: F401
from combdiff.tracing import layouts as _layouts  # noqa: F401
from combdiff.tracing import masks as _masks  # noqa: F401
from combdiff.tracing import refusals as _refusals  # noqa: F401
from combdiff.tracing import segments as _segments  # noqa: F401
from combdiff.tracing import signals as _signals  # noqa: F401
from combdiff.tracing import statistics as _statistics  # noqa: F401
from combdiff.tracing.creation import arange, eye, full, linspace, ones, zeros
from combdiff.tracing.decompositions import (
    cholesky,
    eigh,
    eigvalsh,
    eigvecsh,
    expm,
    lstsq,
    pinv,
    qr,
    sqrtm,
    svd,
    svdvals,
)
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
    flag,
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
    sinc,
    sinh,
    sqrt,
    sum_,
    tan,
    tanh,
    tensor,
    trunc,
)
from combdiff.tracing.inlining import called, inline, renamed_sizes
from combdiff.tracing.iteration import scan, while_loop
from combdiff.tracing.linalg import adj, det, inv, logdet, matrix_power, solve, trace
from combdiff.tracing.orders import argsort, sort
from combdiff.tracing.recording import trace_function
from combdiff.tracing.reductions import max, min, prod
from combdiff.tracing.solutions import argmin, root
from combdiff.tracing.special_functions import (
    betaln,
    digamma,
    erf,
    erfc,
    erfcx,
    erfinv,
    expit,
    gamma,
    gammaln,
    i0,
    i0e,
    i1,
    i1e,
    iv,
    ive,
    j0,
    j1,
    jv,
    log_expit,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
    polygamma,
    xlog1py,
    xlogy,
)
from combdiff.tracing.truths import where
from combdiff.tracing.whole_arrays import clip, constant, logsumexp, softmax

__all__ = [
    "abs",
    "adj",
    "arange",
    "arccos",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmin",
    "argsort",
    "betaln",
    "called",
    "ceil",
    "cholesky",
    "clip",
    "conj",
    "constant",
    "cos",
    "cosh",
    "delta",
    "det",
    "digamma",
    "eigh",
    "eigvalsh",
    "eigvecsh",
    "einsum",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp",
    "expit",
    "expm",
    "eye",
    "flag",
    "floor",
    "full",
    "gamma",
    "gammaln",
    "hypot",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "imag",
    "inline",
    "inv",
    "is_traced",
    "iv",
    "ive",
    "j0",
    "j1",
    "jv",
    "linspace",
    "log",
    "log_expit",
    "log_ndtr",
    "logaddexp",
    "logdet",
    "logit",
    "logsumexp",
    "lstsq",
    "matrix_power",
    "max",
    "maximum",
    "min",
    "minimum",
    "ndtr",
    "ndtri",
    "ones",
    "pinv",
    "polygamma",
    "primitive",
    "prod",
    "qr",
    "real",
    "relu",
    "renamed_sizes",
    "root",
    "scan",
    "sign",
    "sin",
    "sinc",
    "sinh",
    "softmax",
    "solve",
    "sort",
    "sqrt",
    "sqrtm",
    "sum_",
    "svd",
    "svdvals",
    "tan",
    "tanh",
    "tensor",
    "trace",
    "trace_function",
    "trunc",
    "where",
    "while_loop",
    "xlog1py",
    "xlogy",
    "zeros",
]
