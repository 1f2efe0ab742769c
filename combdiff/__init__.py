"""combdiff: symbolic differentiation of tensor programs.

Write the mathematics in a decorated Python function, get its derivative back as mathematics a person can read,
simplified up to the symmetries of the tensors, and run it as tensor contractions.

    import combdiff as cd

    A, x = cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"]), cd.Space("n")

    @cd.program
    def energy(A: A, x: x):
        return cd.sum(lambda i, j: x[i] * A[i, j] * x[j])

    print(cd.grad(energy, wrt="x"))        # (A, x) ↦ d ↦ 2 Σ_i A[d,i] x[i]
"""

from combdiff import interop, testing
from combdiff.domains import Cyclic, Function, Range, Real, Space, Symmetric
from combdiff.egraph.budget import budget
from combdiff.errors import (
    ArgumentError,
    BudgetWarning,
    CombdiffError,
    ConvergenceError,
    DifferentiationError,
    IndexingError,
    MemoryLimitError,
    RuleError,
    SingularError,
    SpaceError,
    TraceError,
    TypeMismatchError,
    UnsupportedError,
)
from combdiff.hessians import Hessian, hessian
from combdiff.program import Program, program
from combdiff.text import TextError, derive, parse
from combdiff.tracing import (
    abs,
    adj,
    arccos,
    arcsin,
    arctan,
    argmin,
    conj,
    cos,
    cosh,
    delta,
    det,
    einsum,
    exp,
    imag,
    inv,
    log,
    logaddexp,
    logdet,
    matrix_power,
    maximum,
    minimum,
    primitive,
    real,
    relu,
    root,
    sign,
    sin,
    sinh,
    solve,
    sqrt,
    tan,
    tanh,
    tensor,
    trace,
    where,
)
from combdiff.tracing import sum_ as sum
from combdiff.transforms import grad, hvp, jacobian, pullback, pushforward, simplify, value_and_grad

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "BudgetWarning",
    "CombdiffError",
    "ConvergenceError",
    "Cyclic",
    "DifferentiationError",
    "Function",
    "Hessian",
    "IndexingError",
    "MemoryLimitError",
    "Program",
    "Range",
    "Real",
    "RuleError",
    "SingularError",
    "Space",
    "SpaceError",
    "Symmetric",
    "TextError",
    "TraceError",
    "TypeMismatchError",
    "UnsupportedError",
    "abs",
    "adj",
    "arccos",
    "arcsin",
    "arctan",
    "argmin",
    "budget",
    "conj",
    "cos",
    "cosh",
    "delta",
    "derive",
    "det",
    "einsum",
    "exp",
    "grad",
    "hessian",
    "hvp",
    "imag",
    "interop",
    "inv",
    "jacobian",
    "log",
    "logaddexp",
    "logdet",
    "matrix_power",
    "maximum",
    "minimum",
    "parse",
    "primitive",
    "program",
    "pullback",
    "pushforward",
    "real",
    "relu",
    "root",
    "sign",
    "simplify",
    "sin",
    "sinh",
    "solve",
    "sqrt",
    "sum",
    "tan",
    "tanh",
    "tensor",
    "testing",
    "trace",
    "value_and_grad",
    "where",
]
