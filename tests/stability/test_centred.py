"""Variances and covariances of numbers far from 0, simplified: their squares are not multiplied out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

Vector, Matrix = cd.Space("n"), cd.Space("m", "n")
POINTS = np.random.default_rng(3)
X, Y = (1e8 + POINTS.normal(size=6) for _ in range(2))
TABLE, WEIGHTS = 1e8 + POINTS.normal(size=(5, 3)), POINTS.normal(size=3)


def covariance(x: Any, y: Any) -> Any:
    return ((x - np.mean(x)) * (y - np.mean(y))).sum() / x.shape[0]


def weighted(table: Any, weights: Any) -> Any:
    return (np.var(table, axis=0) * weights).sum()


def explained(x: Any, y: Any) -> Any:
    return covariance(x, y) ** 2 / (covariance(x, x) * covariance(y, y))


@cd.program
def of_vector(x: Vector):
    return np.var(x)


@cd.program
def of_shifted(x: Vector):
    return np.var(1 + x)


@cd.program
def of_two(x: Vector, y: Vector):
    return covariance(x, y)


@cd.program
def of_columns(table: Matrix, weights: Vector):
    return weighted(table, weights)


@cd.program
def of_quotient(x: Vector, y: Vector):
    return explained(x, y)


def gradient_of_columns(f: cd.Program) -> cd.Program:
    return cd.grad(f, "weights")


CASES: list[tuple[Callable[[cd.Program], cd.Program], cd.Program, Any, Callable[..., Any]]] = [
    (cd.simplify, of_vector, (X,), np.var),
    (cd.simplify, of_shifted, (X,), np.var),
    (cd.grad, of_vector, (X,), lambda x: 2 * (x - x.mean()) / len(x)),
    (cd.simplify, of_two, (X, Y), covariance),
    (cd.grad, of_two, (X, Y), lambda x, y: (y - y.mean()) / len(y)),
    (cd.simplify, of_columns, (TABLE, WEIGHTS), weighted),
    (gradient_of_columns, of_columns, (TABLE, WEIGHTS), lambda table, _: np.var(table, axis=0)),
    (cd.simplify, of_quotient, (X, Y), explained),
]
IDS = [f"{transform.__name__}-{f.name}" for transform, f, *_ in CASES]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("transform", "f", "arrays", "exact"), CASES, ids=IDS)
def test_what_is_centred_stays_centred(
    transform: Callable[[cd.Program], cd.Program], f: cd.Program, arrays: tuple[Any, ...], exact: Callable[..., Any]
) -> None:
    wanted = exact(*(np.asarray(array, np.longdouble) for array in arrays)).astype(float)
    np.testing.assert_allclose(transform(f)(*arrays), wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())
