"""A Kalman filter's parameters fitted: how far a state moves, and how much noise is measured, from the evidence.

    x[t+1] = a x[t] + noise of variance q,    y[t] = x[t] + noise of variance r
    s = P + r,   k = P / s,   m ← a (m + k (y − m)),   P ← a² (1 − k) P + q,   −log p(y) = ½ Σ_t (log s + (y − m)²/s)

The filter is a scan; the gradient of its evidence is one recurrence backward in time, derived once for any number of
measurements. The parameters are fitted as a, log q and log r, as variances are positive.
"""

import numpy as np
from scipy.optimize import minimize

import combdiff as cd

Number, Measured, Parameters = cd.Space(), cd.Space("T"), cd.Space(3)


@cd.program
def evidence(p: Parameters, y: Measured):
    a, q, r = p[0], np.exp(p[1]), np.exp(p[2])

    def step(state, measured):
        m, P = state
        s = P + r
        k = P / s
        rest = measured - m
        return (a * (m + k * rest), a**2 * (1 - k) * P + q), np.log(s) + rest**2 / s

    _, terms = cd.scan(step, (0.0, 1.0), y)
    return 0.5 * terms.sum()


print(evidence)
gradient = cd.grad(evidence, wrt="p")
print("\nits gradient:")
print(gradient)


def measured(a, q, r, steps, rng):
    """Measurements of a state that wanders."""
    x, found = 0.0, []
    for _ in range(steps):
        found.append(x + np.sqrt(r) * rng.normal())
        x = a * x + np.sqrt(q) * rng.normal()
    return np.array(found)


y = measured(0.95, 0.1, 0.5, 2000, np.random.default_rng(0))
start = np.array([0.5, 0.0, 0.0])
found = minimize(evidence, start, args=(y,), jac=gradient, method="BFGS")
print(f"\nevidence {evidence(start, y):.1f} at the start, {found.fun:.1f} at the end, {found.nfev} evaluations")
print(f"a = {found.x[0]:.2f}, q = {np.exp(found.x[1]):.2f}, r = {np.exp(found.x[2]):.2f}   (0.95, 0.10, 0.50)")

h = 1e-6
for move in h * np.eye(3):
    difference = (evidence(start + move, y) - evidence(start - move, y)) / (2 * h)
    assert abs(difference - gradient(start, y) @ move / h) < 1e-3 * abs(difference)
print("the gradient is that of central differences")
