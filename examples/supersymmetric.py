"""The gradient of a supersymmetric form of order 3 (theory.md §3, result 2).

`Σ T[i,j,k] x[i] x[j] x[k]` mentions x three times, so the product rule gives three terms. T is unchanged by every
permutation of its indices, so the three terms are one: `3 Σ T[i,d,k] x[i] x[k]`.
"""

import itertools

import numpy as np

import combdiff as cd

# Two exchanges of neighbours generate all six permutations.
Cubic = cd.Space("n", "n", "n", symmetry=["T[i,j,k] = T[j,i,k]", "T[i,j,k] = T[i,k,j]"])


@cd.program
def cubic(T: Cubic, x: cd.Space("n")):
    return cd.sum(lambda i, j, k: T[i, j, k] * x[i] * x[j] * x[k])


print(cubic)
print(cubic.combinators())

raw = cd.grad(cubic, wrt="x", simplify=False)
print("\nthe gradient as the pullback rules give it:")
print(raw)

gradient = cd.grad(cubic, wrt="x")
print("\nand simplified:")
print(gradient)

rng = np.random.default_rng(0)
any_tensor = rng.normal(size=(4, 4, 4))
T = sum(any_tensor.transpose(axes) for axes in itertools.permutations(range(3)))
x = rng.normal(size=4)

assert np.allclose(gradient(T, x), 3 * np.einsum("idk,i,k->d", T, x, x), rtol=0, atol=1e-12)
assert np.allclose(raw(T, x), gradient(T, x), rtol=0, atol=1e-12)
cd.testing.check_grad(cubic, "x", T=T, x=x)
print("\nequals 3 Σ T[i,d,k] x[i] x[k] and agrees with central differences")
