"""Conjugate gradients from the derivative of a search (theory.md §3, result 5).

A step of the method goes from x along r + βp by α. Of an objective R that is only named, the derivatives by α and β
are products with ∇R(u) at u = x + α(r + βp); with R(u) = ½ uᵀAu − bᵀu they are the closed form, and the coefficients of
the method are where they vanish: α = rᵀr / pᵀAp with p the direction, and β such that directions are conjugate.
"""

import numpy as np

import combdiff as cd

Matrix = cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"])
Vector, Number = cd.Space("n"), cd.Space()


@cd.program
def search(R: cd.Function(Vector), x: Vector, r: Vector, p: Vector, α: Number, β: Number):
    return R(x + α * (r + β * p))


@cd.program
def quadratic(u: Vector, A: Matrix, b: Vector):
    return u @ (A @ u) / 2 - b @ u


print("R unknown")
print(search)
gradient = cd.grad(search, wrt=("α", "β"))
print(gradient)

print("\nR a quadratic form of A and b")


@cd.program
def closed(A: Matrix, b: Vector, x: Vector, r: Vector, p: Vector, α: Number, β: Number):
    return search(lambda u: quadratic(u, A, b), x, r, p, α, β)


slopes = cd.grad(closed, wrt=("α", "β"))
print(slopes)
print(slopes.matrix())

rng = np.random.default_rng(0)
n = 5
M = rng.normal(size=(n, n))
A0, b0 = M @ M.T / n + np.eye(n), 10 * rng.normal(size=n)
R0 = quadratic.partial(A=A0, b=b0)

# An abstract result evaluates when a program is passed for R, and when one takes its place.
arguments = dict(zip(("x", "r", "p"), rng.normal(size=(3, n)), strict=True), α=0.3, β=-0.7)
expected = slopes(A=A0, b=b0, **arguments)
assert np.allclose(gradient(R=R0, **arguments), expected, rtol=0, atol=1e-12)
assert np.allclose(gradient.partial(R=R0)(**arguments), expected, rtol=0, atol=1e-12)
cd.testing.check_grad(closed, ("α", "β"), A=A0, b=b0, **arguments)
print("the abstract gradient, given the form, agrees with the closed one and with central differences")


# The coefficients: R is quadratic along the search, so one Newton step in α solves ∂/∂α = 0 for any β. The best β is
# where the derivative by β vanishes too, at the α that belongs to it.
@cd.program
def step(A: Matrix, b: Vector, x: Vector, r: Vector, p: Vector, β: Number):
    return cd.root(lambda α: slopes(A, b, x, r, p, α, β)[0], like=β)


@cd.program
def least(A: Matrix, b: Vector, x: Vector, r: Vector, p: Vector, β: Number):
    return closed(A, b, x, r, p, step(A, b, x, r, p, β), β)


@cd.program
def conjugate(A: Matrix, b: Vector, x: Vector, r: Vector, p: Vector, start: Number):
    return cd.argmin(lambda β: least(A, b, x, r, p, β), like=start)


print("\nA solution by these derivatives alone")
x = np.zeros(n)
r = A0 @ x - b0  # the gradient of R
p = np.zeros(n)
for iteration in range(n):
    β = 0.0 if iteration == 0 else conjugate(A0, b0, x, r, p, 0.1)
    α = step(A0, b0, x, r, p, β)
    direction = r + β * p
    assert np.isclose(α, -(r @ r) / (direction @ A0 @ direction), rtol=1e-5)
    if iteration:
        assert np.isclose(β, -(r @ A0 @ p) / (p @ A0 @ p), rtol=1e-4)
    x, p = x + α * direction, direction
    r = A0 @ x - b0
    print(f"{iteration}  α = {α:9.6f}  β = {β:9.6f}  |A x − b| = {np.linalg.norm(r):.1e}")
assert np.linalg.norm(r) < 1e-4
print("α = −rᵀr / dᵀAd and β = −rᵀAp / pᵀAp, with d = r + βp, at every step: conjugate gradients")
