"""Equations solved from their values alone: what a root, a minimum and a solution mean.

    solution("root", x ↦ x² − 2, 1.0)  = 1.41421356…       by Newton's method, slopes by differences
    solution("solve", k ↦ 2k, 3.0)     = 1.5                one linear system

No derivative is known here: a Jacobian is made of central differences (of a linear map, of its values at unit
arrays), a gradient of differences of high order. Complex numbers count as pairs of real ones.

Invariant: what is returned solves the equation; otherwise ConvergenceError gives the residual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from combdiff.errors import ConvergenceError

Array = np.ndarray[Any, Any]
Map = Callable[[Array], Any]

STEPS = 100
STENCIL = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))  # a first derivative by central differences, of order 6


def solution(kind: str, function: Map, given: Any) -> Array:
    """The x with function(x) = 0 ("root"), where it is least ("argmin"), or with function(x) = given ("solve").

    The search begins at `given`; it gives the shape and element type. Raises ConvergenceError where it fails and where
    the Jacobian is singular.
    """
    start = np.asarray(given) * 1.0

    def packed(z: Any) -> Array:
        flat = np.ravel(z)
        return np.concatenate([flat.real, flat.imag]) if start.dtype.kind == "c" else np.asarray(flat, float)

    def unpacked(v: Array) -> Array:
        parts = v[: start.size] + 1j * v[start.size :] if start.dtype.kind == "c" else v
        return np.asarray(parts.reshape(start.shape))

    def residual(v: Array) -> Array:
        return packed(function(unpacked(v)))

    if kind == "solve":
        zero = residual(np.zeros(packed(start).shape))
        matrix = np.array([residual(unit) - zero for unit in np.eye(zero.size)]).reshape(zero.size, zero.size).T
        return unpacked(solved(matrix, packed(start)))
    if kind == "argmin":
        return unpacked(_newton(lambda v: slopes(lambda w: function(unpacked(w)), v), packed(start), 1e-10))
    return unpacked(_newton(residual, packed(start), 1e-14))


def solved(matrix: Array, right: Array) -> Array:
    """The solution of a linear system. Raises ConvergenceError for a singular matrix."""
    values = np.linalg.svd(matrix, compute_uv=False)
    if values.size and not values[-1] > 1e-14 * values[0]:
        raise ConvergenceError(
            f"the Jacobian of an equation is singular where the residual is {_size(right):.3g} (its largest entry)",
            hint="the solution is not isolated; add equations that determine it",
        )
    return np.asarray(np.linalg.solve(matrix, right))


def slopes(function: Callable[[Array], float], v: Array) -> Array:
    """The gradient of a real function by differences of order 6."""
    step = 1e-2
    units = step * np.eye(v.size)
    return np.array(
        [sum(c * (function(v + n * u) - function(v - n * u)) for n, c in STENCIL) / step for u in units]
    ).real


def _newton(residual: Callable[[Array], Array], v: Array, tolerance: float) -> Array:
    """A root by Newton's method, steps halved until the residual falls."""
    for _ in range(STEPS):
        now = residual(v)
        step = solved(_differences(residual, v), now)
        if not np.any(np.abs(step) > tolerance * np.maximum(1.0, np.abs(v))):
            return v - step
        for _ in range(30):
            if _size(residual(v - step)) < _size(now):
                break
            step = step / 2
        else:
            if _size(step) < 1e-6 and _size(now) < 1e-8:
                return v  # rounding errors are all that is left
            break
        v = v - step
    raise ConvergenceError(
        f"no solution was found: the residual is still {_size(residual(v)):.3g} (its largest entry)",
        hint="start nearer to a solution, and check that there is one",
    )


def _size(values: Array) -> float:
    return float(np.max(np.abs(values), initial=0.0))


def _differences(residual: Callable[[Array], Array], v: Array) -> Array:
    """The Jacobian by central differences."""
    step = 1e-5 * np.maximum(1.0, np.abs(v))
    moves = np.diag(step)
    columns = [(residual(v + move) - residual(v - move)) / (2 * h) for move, h in zip(moves, step, strict=True)]
    return np.array(columns).reshape(v.size, v.size).T
