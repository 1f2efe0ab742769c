"""Forms that neither over- nor underflow nor cancel: what is large or small is kept apart until it has cancelled.

    exp(x[i]) / Σ_j exp(x[j])   →   exp(x[i] − m) / Σ_j exp(x[j] − m),        m = max_j x[j]
    x / sqrt(1 + x²)            →   x / hypot(1, x)
    x[i] / sqrt(Σ_j x[j]²)      →   (x[i]/s) / sqrt(Σ_j (x[j]/s)²),           s = 2^k near max_j |x[j]|

In: a program to be run. Out: an equal program; what is printed is never changed.

In the order in which data meets them: `scaled_numbers` (exp(E)·r and s^k·r), `bindings` (programs rewritten binding by
binding), `stabilisation` (sums of exponentials), `vanishing_powers` (beside logarithms of their bases), `hypotenuses`
(roots of a few squares), `magnitudes` (roots and quotients of sums of squares), `steps` (all of it, in the steps of
scans too).
"""

from combdiff.stability.steps import stable

__all__ = [
    "stable",
]
