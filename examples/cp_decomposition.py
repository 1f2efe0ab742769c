"""The three gradients of a CP decomposition (theory.md §3, result 3).

A tensor T is approximated by a sum of R outer products, the columns of X, Y and Z. The error is the squared norm of
the residual `T[i,j,k] − Σ_n X[i,n] Y[j,n] Z[k,n]`, and its gradient with respect to X is
`−2 Σ_{j,k} residual[i,j,k] Y[j,n] Z[k,n]`; those for Y and Z are alike. The residual is bound to a name in the program,
so the error and all three gradients share one computation of it.
"""

import numpy as np

import combdiff as cd


@cd.program
def error(
    T: cd.Space("I", "J", "K"),
    X: cd.Space("I", "R"),
    Y: cd.Space("J", "R"),
    Z: cd.Space("K", "R"),
):
    residual = cd.tensor(lambda i, j, k: T[i, j, k] - cd.sum(lambda n: X[i, n] * Y[j, n] * Z[k, n]))
    return cd.sum(lambda i, j, k: residual[i, j, k] ** 2)


print(error)
gradients = cd.grad(error, wrt=("X", "Y", "Z"))
print(gradients)

rng = np.random.default_rng(0)
T = rng.normal(size=(4, 5, 6))
X, Y, Z = (rng.normal(size=(size, 3)) for size in T.shape)

# The same in NumPy, by hand.
residual = T - np.einsum("in,jn,kn->ijk", X, Y, Z)
by_hand = (
    -2 * np.einsum("ijk,jn,kn->in", residual, Y, Z),
    -2 * np.einsum("ijk,in,kn->jn", residual, X, Z),
    -2 * np.einsum("ijk,in,jn->kn", residual, X, Y),
)
for name, found, expected in zip("XYZ", gradients(T, X, Y, Z), by_hand, strict=True):
    assert np.allclose(found, expected, rtol=0, atol=1e-12)
    cd.testing.check_grad(error, name, T=T, X=X, Y=Y, Z=Z)
    print(f"the gradient with respect to {name} equals the closed form and agrees with central differences")

# One program gives the error and its gradients; a few steps of steepest descent use both.
step = cd.value_and_grad(error, wrt=("X", "Y", "Z"))
before = error(T, X, Y, Z)
for _ in range(200):
    value, slopes = step(T, X, Y, Z)
    X, Y, Z = (factor - 0.002 * slope for factor, slope in zip((X, Y, Z), slopes, strict=True))
print(f"200 steps of steepest descent: the error falls from {before:.3f} to {value:.3f}")
assert value < before
