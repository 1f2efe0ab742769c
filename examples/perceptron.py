"""A multilayer perceptron and its gradients, as lists of forward values and cotangents (theory.md §3, result 7).

The loss of a network of three layers, `Σ_i (h₃[i] − y[i])²` with `h_n = σ(W_n h_{n−1})` and `h₀ = x`, once with σ
only named and once with σ = tanh. Either derivative is a list of equations: first the values of the layers, then the
cotangents from the last layer to the first, each computed once. With σ named its pullback stays in the result, as
∂σ(u)ᵀ(k); a program passed for σ then serves both passes. The list of a deep network grows by the same few lines for
each layer, and so does the time to derive it.
"""

import time

import numpy as np

import combdiff as cd
from combdiff.ir.substitution import subterms

Vector = cd.Space("m")
Weights = cd.Space("m", "m")
Activation = cd.Function(Vector, result=Vector)
NAMES = ("W1", "W2", "W3")


@cd.program
def loss(σ: Activation, W1: Weights, W2: Weights, W3: Weights, x: Vector, y: Vector):
    h = x
    for W in (W1, W2, W3):
        h = σ(W @ h)
    return ((h - y) ** 2).sum()


@cd.program
def tanh_loss(W1: Weights, W2: Weights, W3: Weights, x: Vector, y: Vector):
    h = x
    for W in (W1, W2, W3):
        h = np.tanh(W @ h)
    return ((h - y) ** 2).sum()


@cd.program
def tanh(u: Vector):
    return np.tanh(u)


def backpropagation(weights, x, y):
    """The loss and its gradients as one writes them by hand."""
    layers = [x]
    for W in weights:
        layers.append(np.tanh(W @ layers[-1]))
    k, slopes = 2 * (layers[-1] - y), []
    for W, before, after in zip(weights[::-1], layers[-2::-1], layers[:0:-1], strict=True):
        inner = k * (1 - after**2)
        slopes.append(np.outer(inner, before))
        k = W.T @ inner
    return np.sum((layers[-1] - y) ** 2), tuple(slopes[::-1])


print("The activation only named")
print(loss)
named = cd.value_and_grad(loss, wrt=NAMES)
print(named)
print("\nThe activation known")
known = cd.value_and_grad(tanh_loss, wrt=NAMES)
print(known)

rng = np.random.default_rng(0)
weights = [rng.normal(size=(4, 4)) / 2 for _ in NAMES]
x, y = rng.normal(size=4), rng.normal(size=4)
value, slopes = backpropagation(weights, x, y)
for found_value, found in (named(tanh, *weights, x, y), known(*weights, x, y)):
    assert np.isclose(found_value, value, rtol=1e-13, atol=0)
    assert all(np.allclose(one, other, rtol=0, atol=1e-12) for one, other in zip(found, slopes, strict=True))
cd.testing.check_grad(tanh_loss, NAMES, **dict(zip(NAMES, weights, strict=True)), x=x, y=y)
print("\nboth agree with backpropagation by hand, and with central differences")


def deep(depth):
    """A network of many layers whose weights are one tensor, with biases."""

    @cd.program
    def loss(W: cd.Space(depth, "m", "m"), b: cd.Space(depth, "m"), x: Vector, y: Vector):
        h = x
        for n in range(depth):
            h = layer(n, W, b, h)
        return ((h - y) ** 2).sum()

    return loss


def layer(n, W, b, h):
    """Layer n: tanh(W[n] h + b[n])."""
    return cd.tensor(lambda i: np.tanh(cd.sum(lambda j: W[n, i, j] * h[j]) + b[n, i]))


print("\nThe gradient of deeper networks grows by the same few lines per layer")
print(f"{'layers':>8}{'lines':>8}{'nodes':>8}{'ms per layer':>14}")
sizes = []
for depth in (4, 8, 16):
    start = time.process_time()
    gradient = cd.grad(deep(depth), wrt=("W", "b"))
    milliseconds = 1000 * (time.process_time() - start) / depth
    sizes.append(sum(1 for _ in subterms(gradient.term)))
    print(f"{depth:>8}{len(str(gradient).splitlines()):>8}{sizes[-1]:>8}{milliseconds:>14.0f}")
assert sizes[2] - sizes[1] <= 2.1 * (sizes[1] - sizes[0])
