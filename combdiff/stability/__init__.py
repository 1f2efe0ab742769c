"""Forms that neither overflow nor cancel: products of exponentials as one exponential of what stays bounded.

    exp(x[i]) / Σ_j exp(x[j])   →   exp(x[i] − m) / Σ_j exp(x[j] − m),   m = max_j x[j]

In: a program to be run. Out: an equal program; what is printed is never changed.

In the order in which data meets them: `positivity` (which numbers are positive by their form), `steps` (of scans),
`stabilisation` (the whole program, in one pass).
"""

from combdiff.stability.stabilisation import stable

__all__ = [
    "stable",
]
