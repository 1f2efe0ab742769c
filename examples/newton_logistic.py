"""Newton's method on logistic regression, on the breast cancer data that scikit-learn ships.

569 tumours with 30 measurements each, ±1 for benign and malignant; `Σ_i log(1 + exp(−y[i] (Xw)[i])) + μ wᵀw` is
minimised to machine precision in a few steps. The Hessian is Xᵀ·diag(s)·X + 2μ·1: a low-rank part beside a δ.
"""

import sys

import numpy as np

import combdiff as cd

try:
    from sklearn.datasets import load_breast_cancer
except ModuleNotFoundError:
    sys.exit("this example needs scikit-learn: run `make demo`, or pip install 'combdiff[demo]'")


@cd.program
def loss(X: cd.Space("m", "n"), y: cd.Space("m"), w: cd.Space("n"), mu: cd.Space()):
    return np.log(1 + np.exp(-y * (X @ w))).sum() + mu * (w * w).sum()


gradient, hessian = cd.grad(loss, "w"), cd.hessian(loss, "w")
print(hessian.matrix())
print("\nits structure:", hessian.compressed().structure)

data = load_breast_cancer()
X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
X = np.column_stack([X, np.ones(len(X))])
y = 2.0 * data.target - 1
w, mu = np.zeros(X.shape[1]), 0.1

print("\nstep   loss                |gradient|")
for step in range(20):
    g = gradient(X, y, w, mu)
    print(f"{step:>4}   {loss(X, y, w, mu):<18.12f}  {np.linalg.norm(g):.1e}")
    if np.linalg.norm(g) < 1e-10:
        break
    w = w + hessian.solve(-g, X, y, w, mu)
assert np.linalg.norm(g) < 1e-10

right = ((X @ w > 0) == (y > 0)).mean()
print(f"\n{right:.1%} of the tumours are told apart")
assert right > 0.98
error = cd.testing.check_grad(loss, "w", X=X, y=y, w=w, mu=mu)
print("the gradient agrees with central differences")
