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

import sys
from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "api": "Hessian Program derive grad hessian hvp jacobian parse program pullback pushforward read simplify"
    " value_and_grad",
    "errors": "ArgumentError BudgetWarning CombdiffError ConvergenceError DifferentiationError IndexingError"
    " MemoryLimitError RuleError SingularError SpaceError TraceError TypeMismatchError UnsupportedError",
    "ir": "Cyclic Function Range Real Space Symmetric",
    "pictures": "Picture",
    "simplification": "budget",
    "status": "progress",
    "text": "TextError",
    "tracing": "abs adj arange arccos arcsin arcsinh arctan arctan2 arctanh argmin argsort betaln ceil cholesky clip"
    " conj constant cos cosh delta det digamma eigh eigvalsh eigvecsh einsum erf erfc erfcx erfinv exp"
    " expit expm eye floor full gamma gammaln hypot i0 i0e i1 i1e imag inv iv ive j0 j1 jv linspace log"
    " log_expit log_ndtr logaddexp logdet logit logsumexp lstsq matrix_power max maximum min minimum ndtr"
    " ndtri ones pinv polygamma primitive prod qr real relu root scan sign sin sinc sinh softmax solve"
    " sort sqrt sqrtm sum svd svdvals tan tanh tensor trace trunc where while_loop xlog1py"
    " xlogy zeros",
}
_HOMES = {name: module for module, names in _PUBLIC.items() for name in names.split()}
_MODULES = {"interop": "combdiff.api.interop", "testing": "combdiff.testing"}

# The functions that other libraries call otherwise than SciPy.
_OF_SCIPY = {"sigmoid": "expit", "logistic": "expit", "log_sigmoid": "log_expit", "logsigmoid": "log_expit"}
_OF_SCIPY |= {"lgamma": "gammaln"}

__all__ = sorted((*_HOMES, *_MODULES))


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first used: so the command line answers `--help` at once."""
    if name in _HOMES:
        value = getattr(import_module(f"combdiff.{_HOMES[name]}"), "sum_" if name == "sum" else name)
    elif name in _MODULES:
        value = import_module(_MODULES[name])
    else:
        problem = f"module 'combdiff' has no attribute {name!r}{_elsewhere(name)}"
        raise AttributeError(problem, name=name, obj=sys.modules[__name__])
    globals()[name] = value
    return value


def _elsewhere(name: str) -> str:
    """Where a name is that combdiff has not: under SciPy's, or NumPy's own function takes a program's tensors."""
    if name in _OF_SCIPY:
        return f"; it is cd.{_OF_SCIPY[name]}, as in SciPy"
    homes = {"np": "numpy", "np.linalg": "numpy.linalg", "np.fft": "numpy.fft"}
    found = (home for home, module in homes.items() if hasattr(sys.modules.get(module), name))
    return next((f"; NumPy's own functions take the tensors of a program: {home}.{name}" for home in found), "")


def __dir__() -> list[str]:
    return list(__all__)
