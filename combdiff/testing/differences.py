"""Derivatives by central differences, and the check of a gradient against them.

    ∂f/∂x ≈ (f(x + h) − f(x − h)) / 2h,        gradient = ∂f/∂Re z + i ∂f/∂Im z

    cd.testing.check_grad(coulomb, "C", J=J, C=C)     # the largest error, or an AssertionError that names the entry

Invariant: an array with symmetries is moved within its Space, in which its gradient lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from combdiff.api import Program, grad
from combdiff.ir import Space
from combdiff.testing.arrays import MOST_ENTRIES, Array, broken_symmetry, check_arguments, largest, symmetrize

ROUNDINGS = 8  # of a value, in computing it twice
PROBES = 24  # directions tried where there are too many entries to move each


def default_step(array: Array) -> float:
    """The step that balances rounding against truncation: ε^(1/3) times the largest entry (or 1, if larger)."""
    return float(np.finfo(float).eps ** (1 / 3)) * max(1.0, largest(array))


def rounding(value: Any, step: float) -> float:
    """What a slope by central differences may be off by alone because values are rounded: ε |f| / h, with room."""
    return ROUNDINGS * float(np.finfo(float).eps) * largest(np.asarray(value)) / step


def _slope(function: Callable[..., Any], arrays: Mapping[str, Any], name: str, move: Array) -> float:
    """The central difference of a real scalar function along a small move of one array."""
    ahead, behind = (function(**{**arrays, name: arrays[name] + s * move}) for s in (1.0, -1.0))
    return float(np.real(np.asarray(ahead) - np.asarray(behind)).item() / 2)


def unit_moves(array: Array, space: Space | None = None) -> Iterator[tuple[tuple[int, ...], complex, Array]]:
    """For each entry and real direction: the entry, the direction (1 or 1j) and the unit array.

    With a Space it is the unit array projected onto the Space, so that the slope along it is an entry of the gradient
    in that Space.
    """
    for entry in np.ndindex(array.shape):
        for direction in (1.0, 1j) if array.dtype.kind == "c" else (1.0,):
            unit = np.zeros(array.shape, array.dtype)
            unit[entry] = direction
            yield entry, direction, unit if space is None else symmetrize(unit, space)


def finite_difference_gradient(
    function: Callable[..., Any],
    arrays: Mapping[str, Any],
    name: str,
    step: float | None = None,
    space: Space | None = None,
) -> Array:
    """`∂f/∂Re z + i ∂f/∂Im z` by central differences, all entries of the array independent.

    `function` takes arrays by name and gives a real number; the result is shaped like `arrays[name]`. With a Space the
    array is moved within it, and the gradient is the element of the Space.
    """
    array = _inexact(arrays[name])
    h = step or default_step(array)
    gradient = np.zeros(array.shape, array.dtype)
    for entry, direction, unit in unit_moves(array, space):
        gradient[entry] += direction * _slope(function, {**arrays, name: array}, name, h * unit) / h
    return gradient


def finite_difference_pullback(
    function: Callable[..., Any],
    arrays: Mapping[str, Any],
    name: str,
    cotangent: Any,
    step: float | None = None,
    space: Space | None = None,
) -> Array:
    """`V⁻¹ Jᵀ V(k)` by central differences, `V(z) = [Re z, Im z]` and k the cotangent, shaped like the value.

    It is the gradient of `Re Σ conj(k)·f`. The result is shaped like `arrays[name]`.
    """
    seed = np.conj(np.asarray(cotangent))
    return finite_difference_gradient(lambda **a: np.sum(np.real(seed * function(**a))), arrays, name, step, space)


def _inexact(value: Any) -> Array:
    array = np.asarray(value)
    return array.astype(complex if array.dtype.kind == "c" else float)


def check_grad(
    f: Program,
    /,
    wrt: str | tuple[str, ...] | None = None,
    *,
    tolerance: float = 1e-6,
    step: float | None = None,
    **arrays: Any,
) -> float:
    """Compare `grad(f, wrt)` with central differences at the arrays given by name; return the largest error.

    What central differences lose to the rounding of values is taken off each error, so it is often 0.

    Every entry is moved, in the imaginary direction too where the argument is complex; an array of more than 200
    entries is moved in 24 fixed random directions. Where the argument has symmetries all moves stay within its Space,
    in which the gradient has to lie. An error is relative to the size of the largest slope found
    (absolute where that is below 1); `step` is how far an entry is moved, by its size if none is given. Raises
    AssertionError naming the entry where an error exceeds `tolerance`, and ArgumentError where the arrays do not have
    the declared shapes and symmetries.
    """
    arguments = check_arguments(f.parameters, arrays)
    names = (f.parameters[0].name,) if wrt is None else (wrt,) if isinstance(wrt, str) else tuple(wrt)
    derivative = grad(f, wrt)(**arguments)
    gradients = derivative if isinstance(wrt, tuple) else (derivative,)
    errors = [
        _check_one(f, name, np.asarray(gradient), arguments, tolerance, step)
        for name, gradient in zip(names, gradients, strict=True)
    ]
    return max(errors, default=0.0)


def _check_one(
    f: Program, name: str, gradient: Array, arguments: dict[str, Any], tolerance: float, step: float | None
) -> float:
    """The largest error of the gradient with respect to one argument."""
    array = _inexact(arguments[name])
    if gradient.shape != array.shape:
        raise AssertionError(f"the gradient with respect to {name} has shape {gradient.shape}, not {array.shape}")
    space = next(p.type for p in f.parameters if p.name == name)
    assert isinstance(space, Space)
    broken = broken_symmetry(gradient, space, tolerance, name)
    if broken:
        raise AssertionError(
            f"the gradient with respect to {name} is not in its Space: it violates {broken[0]!r} by {broken[1]:.2g}"
        )
    h, arguments = step or default_step(array), {**arguments, name: array}
    rows = []
    for place, unit in _probes(array, space):
        expected = _slope(f, arguments, name, h * unit) / h
        rows.append((place, expected, float(np.sum(np.real(np.conj(unit) * gradient)[unit != 0]))))
    scale = max([1.0, *(abs(expected) for _, expected, _ in rows)])
    lost = rounding(f(**arguments), h)
    errors = [max(abs(found - expected) - lost, 0.0) / scale for _, expected, found in rows]  # NaN stays
    if not rows:
        return 0.0
    worst = int(np.argmax(errors))  # NaN counts as largest
    if not errors[worst] <= tolerance:
        place, expected, found = rows[worst]
        raise AssertionError(
            f"the gradient with respect to {name} is wrong {place}: central differences give {expected:.9g}, "
            f"the gradient {found:.9g} (error {errors[worst]:.2g}, tolerance {tolerance:.2g})"
        )
    return errors[worst]


def _probes(array: Array, space: Space) -> Iterator[tuple[str, Array]]:
    """Unit moves, each with words for the place: every entry, or random directions where there are many."""
    if array.size <= MOST_ENTRIES:
        for entry, direction, unit in unit_moves(array, space):
            part = "" if array.dtype.kind != "c" else " (imaginary part)" if direction == 1j else " (real part)"
            yield f"at {list(entry)}{part}", unit
        return
    rng = np.random.default_rng(0)
    for number in range(PROBES):
        move: Array = np.asarray(rng.standard_normal(array.shape))
        move = move + 1j * rng.standard_normal(array.shape) if array.dtype.kind == "c" else move
        move = symmetrize(move, space)
        yield f"along random direction {number}", move / (np.linalg.norm(move) or 1.0)
