"""Functionals over the real line: expectation values, convolution, Fourier (theory.md §3, result 8).

Fields are tensors over the real line: Σ is an integral and δ is Dirac's, so that differentiating by a function is what
differentiating by a tensor is.
"""

import numpy as np

import combdiff as cd

Line = cd.Real()
Field, Wave = cd.Space(Line), cd.Space(Line, dtype=complex)
Hermitian = cd.Space(Line, Line, dtype=complex, symmetry=["H[x,y] = conj(H[y,x])"])


@cd.program
def expectation(H: Hermitian, ψ: Wave):
    return cd.sum(lambda x, y: cd.conj(ψ[x]) * H[x, y] * ψ[y])


@cd.program
def smoothed(f: Field, g: Field, w: Field):
    return cd.sum(lambda t, τ: w[t] * f[τ] * g[t - τ])


print("An expectation value and its derivative:")
print(expectation)
print(cd.grad(expectation, wrt="ψ"))

print("\nA convolution, by each of its functions:")
print(smoothed)
print(cd.grad(smoothed, wrt="f"))
print(cd.grad(smoothed, wrt="g"))


@cd.program
def there_and_back(f: Wave):
    transformed = cd.tensor(lambda k: cd.sum(lambda x: cd.exp(-2j * np.pi * k * x) * f[x], x=Line), k=Line)
    return cd.tensor(lambda y: cd.sum(lambda k: cd.exp(2j * np.pi * k * y) * transformed[k], k=Line), y=Line)


@cd.program
def power(f: Wave):
    transformed = cd.tensor(lambda k: cd.sum(lambda x: cd.exp(-2j * np.pi * k * x) * f[x], x=Line), k=Line)
    return cd.sum(lambda k: cd.real(cd.conj(transformed[k]) * transformed[k]))


print("\nFourier and back is the identity:")
print(there_and_back)
print(cd.simplify(there_and_back))
print("\nand the derivative of the power in all frequencies is that of the power in f (Parseval):")
print(cd.grad(power))

try:
    smoothed(np.ones(3), np.ones(3), np.ones(3))
except cd.UnsupportedError as error:
    print("\narrays are refused:", error.message)
