"""Programs with conditions between indices, and what they are of arrays of a size: for plans and for derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

import combdiff as cd
from combdiff.ir.interpreter import evaluate

Vector, Matrix, Cube = cd.Space("n"), cd.Space("n", "n"), cd.Space("n", "n", "n")


@cd.program
def triangle(A: Matrix):
    return cd.sum(lambda i, j: cd.where(j <= i, A[i, j], 0))


@cd.program
def lower(A: Matrix, x: Vector):
    return cd.tensor(lambda i: cd.sum(lambda j: cd.where(j <= i, A[i, j] * x[j], 0)))


@cd.program
def form(A: Matrix, x: Vector):
    return cd.sum(lambda i, j: cd.where(j <= i, A[i, j] * x[j] * x[i], 0))


@cd.program
def pairs(A: Matrix, B: Matrix):
    return cd.sum(lambda i, j: cd.where(j < i, A[i, j] * B[j, i], 0))


@cd.program
def product(A: Matrix, B: cd.Space("n", "m")):
    return cd.tensor(lambda i, k: cd.sum(lambda j: cd.where(j <= i, A[i, j] * B[j, k], 0)))


@cd.program
def band(A: Matrix, x: Vector):
    return cd.tensor(lambda i: cd.sum(lambda j: cd.where((i - j <= 2) & (j - i <= 1), A[i, j] * x[j], 0)))


@cd.program
def simplex(T: Cube, x: Vector):
    return cd.sum(lambda i, j, k: cd.where((i <= j) & (j <= k), T[i, j, k] * x[i] * x[j] * x[k], 0))


@cd.program
def logarithms(A: Matrix, x: Vector):
    return cd.sum(lambda i, j: cd.where(j < i, cd.log(A[i, j]) / x[j] + cd.log(A[i, j] - x[i]), 0))


@cd.program
def window(x: Vector, v: Vector):
    return cd.sum(lambda i, j: cd.where((j <= i) & (j >= i - 3), cd.log(x[j]) / v[i], 0))


@cd.program
def parity(A: Matrix, x: Vector):
    return cd.sum(lambda i, j: cd.where(((i + j) % 3 == 1) & (2 * i >= j), A[i, j] ** 2 * x[j], 0))


@cd.program
def chosen(A: Matrix, x: Vector):
    return cd.tensor(lambda i, j: cd.where(j <= i, cd.exp(A[i, j]), x[j]))


@cd.program
def between(x: Vector, y: Vector, z: Vector):
    return cd.tensor(lambda i, k: cd.sum(lambda j: cd.where((i <= j) & (j <= k), x[j] * y[i] * z[k], 0)))


@cd.program
def diagonal(c: Matrix, y: Matrix):
    return cd.tensor(lambda i, j: c[i, i] ** 2 * y[i, j])


PROGRAMS = [triangle, lower, form, pairs, product, band, simplex, logarithms, window, parity, chosen, between, diagonal]


def arrays_of(f: Any, n: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    sizes = {"n": n, "m": 3}
    shapes = [[sizes[axis.size] for axis in p.type.axes] for p in f.parameters]
    return [rng.random(shape) + 2 + 3 * (len(shape) > 1) for shape in shapes]


def meaning(f: Any, arrays: list[Any], n: int) -> Any:
    values = dict(zip(f.term.parameters, arrays, strict=True))
    with np.errstate(all="ignore"):
        return np.asarray(evaluate(f.term.body, values, {"n": n, "m": 3}))
