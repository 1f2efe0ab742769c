"""Least action: the Euler-Lagrange equation and Newton's law from one pullback (theory.md §3, result 8).

The action of a path r is the integral of a Lagrangian L(r, Dr) over the time, where D is a linear operator that is
only named: the time derivative. Its gradient by the path, set to zero, is the equation of motion; for D = d/dt the
adjoint is Dᵀ = −D. Nothing is discretised. The same program over a finite axis is evaluated below, with a matrix for D.
"""

import numpy as np

import combdiff as cd

Path, Number = cd.Space(cd.Real()), cd.Space()
Operator = cd.Function(Path, result=Path, linear=True)


@cd.program
def action(L: cd.Function(Number, Number), D: Operator, r: Path):
    v = D(r)
    return cd.sum(lambda t: L(r[t], v[t]))


print("A Lagrangian that is only named:")
print(action)
print(cd.grad(action, wrt="r"))
print(cd.grad(action, wrt="r").latex())


@cd.program
def oscillator(q: Number, v: Number, m: Number, k: Number):
    return m * v**2 / 2 - k * q**2 / 2


@cd.program
def motion(m: Number, k: Number, D: Operator, r: Path):
    return action(lambda q, v: oscillator(q, v, m, k), D, r)


print("\nThe harmonic oscillator: m Dᵀ D r = k r is Newton's law, m r'' = −k r")
print(motion)
print(cd.grad(motion, wrt="r"))

try:
    motion(1.0, 1.0, np.gradient, np.linspace(0, 1, 5))
except cd.UnsupportedError as error:
    print("arrays are refused:", error.message)

# The same formula over n instants evaluates. With periodic central differences for D the discrete path that satisfies
# the discrete law is stationary.
Path, Operator = cd.Space("n"), cd.Function(cd.Space("n"), result=cd.Space("n"), linear=True)


@cd.program
def instants(m: Number, k: Number, D: Operator, r: Path):
    v = D(r)
    return cd.sum(lambda t: m * v[t] ** 2 / 2 - k * r[t] ** 2 / 2)


@cd.program
def difference(r: Path, B: cd.Space("n", "n")):
    return B @ r


n, h = 40, 2 * np.pi / 40
B = (np.roll(np.eye(n), 1, axis=1) - np.roll(np.eye(n), -1, axis=1)) / (2 * h)
law = cd.grad(instants, wrt="r")
print("\nOver finitely many instants:")
print(law)
frequency = np.sin(h) / h  # of the discrete operator on a wave of period 2π
path = np.cos(h * np.arange(n))
residual = law(2.0, 2.0 * frequency**2, difference.partial(B=B), path)
assert np.abs(residual).max() < 1e-12
cd.testing.check_grad(instants.partial(D=difference.partial(B=B)), ("m", "k", "r"), m=2.0, k=1.5, r=path)
print("the cosine satisfies the discrete law; the gradient agrees with central differences")
