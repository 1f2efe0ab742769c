"""Logistic regression, once by indices and once by whole arrays.

Both programs state `Σ_i log(1 + exp(−y[i] Σ_j X[i,j] w[j]))` with labels y = ±1. Tracing turns both into the same
kind of term, so they have the same gradient, `−Xᵀ (y ⊙ σ(−y ⊙ Xw))` with `σ(t) = 1 / (1 + exp(−t))`.
"""

import numpy as np

import combdiff as cd

Data = cd.Space("m", "n")
Labels = cd.Space("m")
Weights = cd.Space("n")


@cd.program
def by_indices(X: Data, y: Labels, w: Weights):
    return cd.sum(lambda i: cd.log(1 + cd.exp(-y[i] * cd.sum(lambda j: X[i, j] * w[j]))))


@cd.program
def by_arrays(X: Data, y: Labels, w: Weights):
    return np.log(1 + np.exp(-y * (X @ w))).sum()


print(by_indices)
print(by_arrays)

indices, arrays = cd.grad(by_indices, wrt="w"), cd.grad(by_arrays, wrt="w")
print("\ngradients:")
print(indices)
print(arrays)

rng = np.random.default_rng(0)
X, w = rng.normal(size=(20, 4)), rng.normal(size=4)
y = np.sign(rng.normal(size=20))

closed_form = -X.T @ (y / (1 + np.exp(y * (X @ w))))
assert np.allclose(by_indices(X, y, w), by_arrays(X, y, w), rtol=1e-13, atol=0)
assert np.allclose(indices(X, y, w), closed_form, rtol=0, atol=1e-12)
assert np.allclose(arrays(X, y, w), closed_form, rtol=0, atol=1e-12)
for loss in (by_indices, by_arrays):
    cd.testing.check_grad(loss, "w", X=X, y=y, w=w)
print("\nboth agree with each other, with the closed form and with central differences")
