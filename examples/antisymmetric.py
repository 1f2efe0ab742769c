"""A quadratic form that is zero by symmetry.

With `A[i,j] = −A[j,i]`, exchanging the names of the two summed indices turns `Σ x[i] A[i,j] x[j]` into its own
negative, so it vanishes. Equality saturation finds this from the declared symmetry alone, before any number is known;
the pairing of two different vectors, `Σ x[i] A[i,j] y[j]`, stays.
"""

import numpy as np

import combdiff as cd

Antisymmetric = cd.Space("n", "n", symmetry=["A[i,j] = -A[j,i]"])
Vector = cd.Space("n")


@cd.program
def form(A: Antisymmetric, x: Vector):
    return cd.sum(lambda i, j: x[i] * A[i, j] * x[j])


@cd.program
def pairing(A: Antisymmetric, x: Vector, y: Vector):
    return cd.sum(lambda i, j: x[i] * A[i, j] * y[j])


print(form)
zero = cd.simplify(form)
print("simplified:")
print(zero)

print("\nits gradient:")
print(cd.grad(form, wrt="x"))

print("\nthe pairing of two vectors stays:")
print(cd.simplify(pairing))
gradient = cd.grad(pairing, wrt="x")
print(gradient)

rng = np.random.default_rng(0)
M = rng.normal(size=(5, 5))
A, x, y = M - M.T, rng.normal(size=5), rng.normal(size=5)

assert abs(form(A, x)) < 1e-12
assert zero(A, x) == 0
assert np.array_equal(cd.grad(form, wrt="x")(A, x), np.zeros(5))
assert np.allclose(gradient(A, x, y), A @ y, rtol=0, atol=1e-12)
cd.testing.check_grad(pairing, "x", A=A, x=x, y=y)
print("\nthe form and its gradient are 0; the pairing's gradient equals A y and agrees with central differences")
