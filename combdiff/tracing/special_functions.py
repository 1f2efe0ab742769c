"""SciPy's special functions in programs: `cd.erf(x)`, and `scipy.special.erf(x)` on traced values.

    cd.gammaln(x)              Primitive("gammaln", x), elementwise, and SciPy's function on plain arrays
    cd.polygamma(1, x)         Primitive("polygamma", 1, x): the order is a number

All take real numbers. SciPy computes them (`pip install combdiff[special]`), jax.scipy and torch.special on their
arrays. A SciPy function that is a ufunc asks a traced value to answer for it, and is found by its name.

Invariant: SciPy is imported only when a number is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from combdiff.errors import TypeMismatchError, shown
from combdiff.ir import TABLE
from combdiff.tracing.functions import element_function
from combdiff.tracing.numpy_protocol import SCIPY_HANDLERS, python_number


def _special(name: str, doc: str, *others: str) -> Callable[..., Any]:
    """The special function `name`, which SciPy calls so or by other names too."""
    told = f"{doc}\n\nOf real numbers, as `scipy.special.{name}`."
    special = element_function(name, lambda *values: TABLE[name].numerical()(*values), told)
    SCIPY_HANDLERS.update(dict.fromkeys((name, *others), special))
    return special


def _of_order(name: str, doc: str, whole: bool = False) -> Callable[[Any, Any], Any]:
    """The special function `name` of an order, which is a number, and of x."""
    special = element_function(name, lambda *values: TABLE[name].numerical()(*values), doc)

    def checked(n: Any, x: Any, /) -> Any:
        order: Any = python_number(n)
        real = isinstance(order, int | float) and not isinstance(order, bool)
        if not real or (whole and (order < 0 or order % 1)):
            kind = "a whole number that is not negative" if whole else "a number"
            raise TypeMismatchError(f"{name} is given the order {shown(n)}, which is not {kind}", hint="write a number")
        return special(int(order) if order % 1 == 0 else order, x)

    checked.__name__ = checked.__qualname__ = name
    given = "a whole number" if whole else "a number"
    checked.__doc__ = (
        f"{doc}\n\nOf real numbers, as `scipy.special.{name}`; the order comes first, and nothing is "
        f"differentiated by it.\nRaises TypeMismatchError for an order that is not {given}."
    )
    SCIPY_HANDLERS[name] = checked
    return checked


erf = _special("erf", "The error function 2/√π ∫₀ˣ exp(−t²) dt, element by element.")
erfc = _special("erfc", "1 − erf(x) without cancellation, element by element.")
erfcx = _special("erfcx", "exp(x²) erfc(x) without overflow, element by element.")
erfinv = _special("erfinv", "The inverse of erf on (−1, 1), element by element.")
ndtr = _special("ndtr", "The distribution function of the standard normal distribution, element by element.")
log_ndtr = _special("log_ndtr", "log ndtr(x) without underflow, element by element.")
ndtri = _special("ndtri", "The quantiles of the standard normal distribution: the inverse of ndtr on (0, 1).")
gamma = _special("gamma", "Γ(x), element by element.")
gammaln = _special("gammaln", "log |Γ(x)|, element by element.")
digamma = _special("digamma", "The derivative of log Γ(x), element by element.", "psi")
betaln = _special("betaln", "log |B(a, b)|, with B(a, b) = Γ(a) Γ(b) / Γ(a + b), element by element.")
xlogy = _special("xlogy", "x log y, and 0 where x = 0 and y is any number, element by element.")
xlog1py = _special("xlog1py", "x log(1 + y), and 0 where x = 0, element by element.")
expit = _special("expit", "The logistic function 1 / (1 + exp(−x)), element by element.")
log_expit = _special("log_expit", "log expit(x) without overflow, element by element.")
logit = _special("logit", "log(p / (1 − p)), the inverse of expit on (0, 1), element by element.")
i0 = _special("i0", "The modified Bessel function of the first kind of order 0, element by element.")
i1 = _special("i1", "The modified Bessel function of the first kind of order 1, element by element.")
i0e = _special("i0e", "exp(−|x|) i0(x), element by element.")
i1e = _special("i1e", "exp(−|x|) i1(x), element by element.")
j0 = _special("j0", "The Bessel function of the first kind of order 0, element by element.")
j1 = _special("j1", "The Bessel function of the first kind of order 1, element by element.")
polygamma = _of_order("polygamma", "The derivative of order n ≥ 0 of digamma, element by element of x.", whole=True)
jv = _of_order("jv", "The Bessel function of the first kind of a real order, element by element of x.")
iv = _of_order("iv", "The modified Bessel function of the first kind of a real order, element by element of x.")
ive = _of_order("ive", "exp(−|x|) iv(v, x), element by element of x.")
