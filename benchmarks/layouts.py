"""What order in memory, packing and the width of windows cost: medians of calls, in milliseconds, in one process.

    python benchmarks/layouts.py

Hartree-Fock's energy and gradient for integrals in four orders of axes in memory; a mixture of Gaussians whose
triangles are packed, read at an index array within the program, or unpacked by NumPy beforehand; and the pullback of a
strided convolution whose width is named, beside the loop over its elements that one writes by hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import combdiff as cd

REPEATS = 15
RNG = np.random.default_rng(0)
Integrals = cd.Space(
    "N", "N", "N", "N", dtype=complex, symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = conj(J[q,p,s,r])"]
)


def milliseconds(call: Callable[[], Any]) -> float:
    """The median time of a call that has run before."""
    call()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * median(times)


@cd.program
def coulomb(J: Integrals, C: cd.Space("N", "e", dtype=complex)):
    return cd.sum(lambda i, j, p, q, r, s: cd.conj(C[p, i]) * C[q, i] * cd.conj(C[r, j]) * C[s, j] * J[p, q, r, s])


@cd.program
def packed(t: cd.Space("K", "P"), mu: cd.Space("K", "D"), x: cd.Space("N", "D"), place: cd.Space("D", "D", dtype=int)):
    """Σ_n log Σ_k exp(−½ |L_k (x_n − μ_k)|²) with L_k[i, j] = t[k, place[i, j]] below its diagonal of ones."""
    y = cd.tensor(lambda n, k, j: x[n, j] - mu[k, j])
    z = cd.tensor(lambda k, n, i: y[n, k, i] + cd.sum(lambda j: cd.where(j < i, t[k, place[i, j]], 0) * y[n, k, j]))
    return cd.sum(lambda n: cd.log(cd.sum(lambda k: cd.exp(-cd.sum(lambda i: z[k, n, i] ** 2) / 2))))


@cd.program
def unpacked(L: cd.Space("K", "D", "D"), mu: cd.Space("K", "D"), x: cd.Space("N", "D")):
    """The same with L_k as an array of its own."""
    y = cd.tensor(lambda n, k, j: x[n, j] - mu[k, j])
    z = cd.tensor(lambda k, n, i: y[n, k, i] + cd.sum(lambda j: cd.where(j < i, L[k, i, j], 0) * y[n, k, j]))
    return cd.sum(lambda n: cd.log(cd.sum(lambda k: cd.exp(-cd.sum(lambda i: z[k, n, i] ** 2) / 2))))


@cd.program
def strided(v: cd.Space("m"), x: cd.Space("n"), w: cd.Space("k")):
    return cd.sum(lambda i, j: v[i] * x[3 * i + j] * w[j])


def orders(N: int = 24, electrons: int = 5) -> None:
    """Integrals in four orders of axes in memory."""
    J = RNG.normal(size=(N,) * 4) + 1j * RNG.normal(size=(N,) * 4)
    J = J + J.transpose(2, 3, 0, 1)
    J = np.ascontiguousarray(J + J.transpose(1, 0, 3, 2).conj())
    C = RNG.normal(size=(N, electrons)) + 1j * RNG.normal(size=(N, electrons))
    both = cd.value_and_grad(coulomb, wrt="C")
    for order in ((0, 1, 2, 3), (2, 3, 0, 1), (3, 2, 1, 0), (0, 2, 1, 3)):
        given = np.ascontiguousarray(J.transpose(order)).transpose(np.argsort(order))
        print(f"Hartree-Fock, N = {N}, axes in memory {order}: {milliseconds(lambda given=given: both(given, C)):.3f}")


def triangles(D: int = 10, K: int = 25, N: int = 1000) -> None:
    """A packed triangle beside an unpacked one."""
    place = np.zeros((D, D), int)
    place[np.tril_indices(D, -1)] = np.arange(D * (D - 1) // 2)
    t, mu, x = RNG.normal(size=(K, D * (D - 1) // 2)), RNG.normal(size=(K, D)), RNG.normal(size=(N, D))
    L = np.tril(t[:, place], -1)
    one, other = cd.value_and_grad(packed, wrt=("t", "mu")), cd.value_and_grad(unpacked, wrt=("L", "mu"))
    print(f"triangles read at an index array: {milliseconds(lambda: one(t, mu, x, place)):.2f}")
    print(f"triangles unpacked beforehand: {milliseconds(lambda: other(L, mu, x)):.2f}")


def windows(m: int = 4000) -> None:
    """Windows of a named width, pulled back, and by hand."""
    gradient = cd.grad(strided, wrt="x")
    for k in (5, 100, 1000):
        v, x, w = RNG.normal(size=m), RNG.normal(size=3 * m + k), RNG.normal(size=k)

        def by_hand(v: Any = v, x: Any = x, w: Any = w, k: int = k) -> Any:
            result = np.zeros_like(x)
            for j in range(k):
                result[j : j + 3 * m : 3] += v * w[j]
            return result

        ours = milliseconds(lambda v=v, x=x, w=w: gradient(v, x, w))
        print(f"windows of {k} elements: {ours:.3f}, by hand {milliseconds(by_hand):.3f}")


if __name__ == "__main__":
    orders()
    triangles()
    windows()
