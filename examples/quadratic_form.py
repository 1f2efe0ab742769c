"""The gradient of a quadratic form over the complex numbers (theory.md §3, result 1).

With A Hermitian, `x† A x` is real and its gradient is `2 A x`. For a general A only the real part has a gradient,
and it is `(A + A†) x`. The gradient of a real function f of complex z is `∂f/∂Re z + i ∂f/∂Im z`, the direction of
steepest ascent.
"""

import numpy as np

import combdiff as cd

Vector = cd.Space("n", dtype=complex)
General = cd.Space("n", "n", dtype=complex)
Hermitian = cd.Space("n", "n", dtype=complex, symmetry=["A[i,j] = conj(A[j,i])"])


@cd.program
def energy(A: Hermitian, x: Vector):
    return cd.sum(lambda i, j: cd.conj(x[i]) * A[i, j] * x[j])


@cd.program
def real_part(A: General, x: Vector):
    return cd.real(cd.sum(lambda i, j: cd.conj(x[i]) * A[i, j] * x[j]))


rng = np.random.default_rng(0)
M = rng.normal(size=(4, 4)) + 1j * rng.normal(size=(4, 4))
H = M + M.conj().T
x = rng.normal(size=4) + 1j * rng.normal(size=4)

print("A Hermitian:")
print(energy)
print(energy.combinators())
gradient = cd.grad(energy, wrt="x")
print(gradient)

# The derivative twice over: against the closed form, and against central differences of the program itself.
assert np.allclose(gradient(H, x), 2 * H @ x, rtol=0, atol=1e-12)
cd.testing.check_grad(energy, "x", A=H, x=x)
print("equals 2 A x and agrees with central differences")

print("\nA general:")
print(real_part)
gradient = cd.grad(real_part, wrt="x")
print(gradient)
assert np.allclose(gradient(M, x), (M + M.conj().T) @ x, rtol=0, atol=1e-12)
cd.testing.check_grad(real_part, "x", A=M, x=x)
print("equals (A + A†) x and agrees with central differences")

# Without cd.real the general form is not provably real, and combdiff refuses to differentiate it.


@cd.program
def not_real(A: General, x: Vector):
    return cd.sum(lambda i, j: cd.conj(x[i]) * A[i, j] * x[j])


try:
    cd.grad(not_real, wrt="x")
except cd.CombdiffError as error:
    print("\nwithout cd.real:", error.message)
