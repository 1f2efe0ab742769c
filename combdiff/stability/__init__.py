"""Forms that neither overflow nor cancel: products of exponentials as one exponential of what stays bounded.

    exp(x[i]) / Σ_j exp(x[j])   →   exp(x[i] − m) / Σ_j exp(x[j] − m),   m = max_j x[j]

In: a program to be run. Out: an equal program; what is printed is never changed.

In the order in which data meets them: `exponentials` (which terms are sums of exponentials), `overflow` (which may
overflow), `exponents` (a product with its exponentials put together), `stabilisation` (the whole program).
"""

from combdiff.stability.exponentials import WeightedExponential, parts
from combdiff.stability.stabilisation import stable

__all__ = [
    "WeightedExponential",
    "parts",
    "stable",
]
