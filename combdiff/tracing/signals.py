"""NumPy's functions of sampled functions and of polynomials, on traced tensors.

    np.convolve(x, w)          (k) ↦ Σ_j w[j]·x[k − j]
    np.gradient(y, h)          central differences, one-sided at the ends
    np.interp(x, xp, fp)       fp[0] + Σ_k slope[k]·clip(x − xp[k], 0, xp[k + 1] − xp[k])
    np.polymul(p, q)           np.convolve(p, q)

Invariant: value, shape and keywords are NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import combdiff.tracing.rearranging as rearranging
from combdiff.errors import TypeMismatchError, UnsupportedError, shown
from combdiff.tracing import functions as cd
from combdiff.tracing.creation import ones
from combdiff.tracing.formulas import numbers_of
from combdiff.tracing.numpy_protocol import HANDLERS
from combdiff.tracing.truths import where
from combdiff.tracing.values import Value, wrap

MODES = ("full", "same", "valid")
MOST_POWERS = 1000  # columns of a matrix of powers, each of which is written by itself
MOST_INTEGRALS = 64  # of a polynomial, each of which adds a coefficient


def _vector(a: Any, what: str) -> Any:
    value = cd.taken(a)
    if value.ndim != 1:
        raise TypeMismatchError(f"{what} takes vectors, but is given a tensor of order {value.ndim}")
    return value


def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    signal, window = _vector(a, "np.convolve"), _vector(v, "np.convolve")
    if mode not in MODES:
        raise TypeMismatchError(f"np.convolve has no mode {shown(mode)}", hint=f"it has {', '.join(MODES)}")
    if isinstance(window.shape[0], int) and isinstance(signal.shape[0], int) and window.shape[0] > signal.shape[0]:
        signal, window, v = window, signal, a
    width = window.shape[0]
    if not isinstance(width, int):
        return _convolve_named(signal, window, mode)
    start, more = {"full": (0, width - 1), "same": ((width - 1) // 2, 0), "valid": (width - 1, 1 - width)}[mode]
    size = rearranging.lengths((signal.space.axes[0], 1), (more, 1), what="np.convolve")
    padded = np.pad(signal, (width - 1 - start, max(more + start, 0)))
    if weights := numbers_of(v):  # a stencil, x[k] - 2 x[k + 1] + x[k + 2]
        places = [(weight, width - 1 - j) for j, weight in enumerate(weights) if weight] or [(0, 0)]
        return cd.tensor(lambda k: sum(weight * padded[k + place] for weight, place in places), k=size)
    return cd.tensor(lambda k: cd.sum_(lambda j: window[j] * padded[k + (width - 1) - j], j=width), k=size)


def _convolve_named(signal: Any, window: Any, mode: str) -> Any:
    """A convolution by a window of a named size: where all of it is asked for, either may be the longer."""
    if mode != "full":
        raise UnsupportedError(
            f"np.convolve with mode={mode!r} of vectors of named sizes is not supported in a program: which is the "
            "longer is not known",
            hint='declare the size of the window with a number, take mode="full", or write '
            "cd.sum(lambda j: w[j] * x[k + j])",
        )
    if isinstance(signal.shape[0], int):
        return _convolve(window, signal)
    size = rearranging.lengths((signal.space.axes[0], 1), (window.space.axes[0], 1), (-1, 1), what="np.convolve")
    length = signal.shape[0]

    def inside(k: Any, j: Any) -> Any:
        return where((k - j >= 0) & (k - j < length), window[j] * signal[k - j], 0)

    return cd.tensor(lambda k: cd.sum_(lambda j: inside(k, j), j=window.shape[0]), k=size)


def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    signal, window = _vector(a, "np.correlate"), _vector(v, "np.correlate")
    sizes = signal.shape[0], window.shape[0]
    if isinstance(sizes[0], int) and isinstance(sizes[1], int) and sizes[1] > sizes[0]:
        return _correlate(window, signal, mode).conj()[::-1]
    return _convolve(signal, (window if numbers_of(v) is None else np.asarray(v)).conj()[::-1], mode)


def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    value = cd.taken(f)
    axes = range(value.ndim) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    spacings = list(varargs) * len(axes) if len(varargs) == 1 else list(varargs) or [1.0] * len(axes)
    if len(spacings) != len(axes) or edge_order not in (1, 2):
        raise TypeMismatchError(
            f"np.gradient over {len(axes)} axes is given {len(varargs)} spacings and edge_order={shown(edge_order)}",
            hint="give one spacing, or one for each axis; edge_order is 1 or 2",
        )
    found = [_slopes(value, h, each, edge_order) for h, each in zip(spacings, axes, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def _slopes(value: Any, spacing: Any, axis: int, edge_order: int) -> Any:
    y: Any = np.moveaxis(value, axis, -1)
    steps: Any = spacing
    if np.ndim(spacing):
        steps = np.diff(spacing if isinstance(spacing, Value) else np.asarray(spacing))
    up, down, across = (steps, steps, None) if not np.ndim(steps) else (steps[1:], steps[:-1], steps)
    if across is None:
        middle = (y[..., 2:] - y[..., :-2]) / (2 * steps)
    else:
        weighed = down**2 * y[..., 2:] + (up**2 - down**2) * y[..., 1:-1] - up**2 * y[..., :-2]
        middle = weighed / (down * up * (down + up))
    first, last = (steps, steps) if across is None else (across[0], across[-1])
    start, stop = (y[..., 1] - y[..., 0]) / first, (y[..., -1] - y[..., -2]) / last
    if edge_order == 2:
        second, before = (steps, steps) if across is None else (across[1], across[-2])
        start = start - (_second_slope(y[..., :3], first, second)) * first
        stop = stop + (_second_slope(y[..., -3:], before, last)) * last
    joined = np.concatenate([start[..., None], middle, stop[..., None]], -1)
    return np.moveaxis(joined, -1, axis)


def _second_slope(y: Any, first: Any, second: Any) -> Any:
    """Half of the second derivative by three points with two steps between them."""
    return ((y[..., 2] - y[..., 1]) / second - (y[..., 1] - y[..., 0]) / first) / (first + second)


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    if period is not None:
        raise UnsupportedError(
            "np.interp with a period is not supported in a program",
            hint="take x % period before",
        )
    at, knots, values = (cd.taken(a) for a in (x, xp, fp))
    steps = np.diff(knots)
    along = cd.minimum(cd.maximum(at[..., None] - knots[:-1], 0), steps)
    found = values[0] + (along * (np.diff(values) / steps)).sum(-1)
    found = found if left is None else where(at < knots[0], left, found)
    return found if right is None else where(at > knots[-1], right, found)


def _unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Any:
    value = np.moveaxis(cd.taken(p), axis, -1)
    steps: Any = np.diff(value)
    half = period / 2
    turned = (steps + half) % period - half
    turned = where((turned == -half) & (steps > 0), half, turned)
    jumps = where(abs(steps) < (half if discont is None else discont), 0, turned - steps)
    moved = np.concatenate([value[..., :1], value[..., 1:] + np.cumsum(jumps, -1)], -1)
    return np.moveaxis(moved, -1, axis)


def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    parts = [None if to_begin is None else np.ravel(cd.taken(to_begin)), np.diff(np.ravel(cd.taken(ary)))]
    parts += [] if to_end is None else [np.ravel(cd.taken(to_end))]
    return np.concatenate([part for part in parts if part is not None])


def _sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    value = cd.taken(x)
    widths = [window_shape] if isinstance(window_shape, int) else list(window_shape)
    axes = list(range(value.ndim)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    if len(widths) != len(axes):
        raise TypeMismatchError(f"sliding_window_view has {len(widths)} widths for {len(axes)} axes")
    for place, width in zip((each % value.ndim for each in axes), widths, strict=True):
        size = rearranging.lengths((value.space.axes[place], 1), (1 - width, 1), what="a window").size
        parts = [wrap(rearranging.part(value.term, place, k, size)) for k in range(width)]
        value = np.stack(parts, -1)
    return value


# --- polynomials, the highest power first ----------------------------------------------------------------------------


def _numeric(value: Any, what: str) -> int:
    size = value.shape[0]
    if not isinstance(size, int):
        raise UnsupportedError(
            f"{what} of a vector of named size is not supported in a program", hint="declare its size with a number"
        )
    return size


def _vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    value = _vector(x, "np.vander")
    count = _numeric(value, "np.vander") if N is None else cd.whole_number(N, "N of np.vander", 0)
    if count > MOST_POWERS:
        raise UnsupportedError(
            f"np.vander of {count} columns: {MOST_POWERS} are taken", hint="write cd.tensor(lambda i, j: x[i] ** j)"
        )
    powers = [value**n for n in range(count)] if count else []
    columns = [1 + 0 * value, *powers[1:]][:count]
    return np.stack(columns if increasing else columns[::-1], 1)


def _aligned(a1: Any, a2: Any) -> tuple[Any, Any]:
    one, other = cd.taken(a1), cd.taken(a2)
    one, other = (v[None] if not v.ndim else v for v in (one, other))
    missing = _numeric(other, "np.polyadd") - _numeric(one, "np.polyadd")
    return np.pad(one, (max(missing, 0), 0)), np.pad(other, (max(-missing, 0), 0))


def _polyadd(a1: Any, a2: Any) -> Any:
    one, other = _aligned(a1, a2)
    return one + other


def _polysub(a1: Any, a2: Any) -> Any:
    one, other = _aligned(a1, a2)
    return one - other


def _polymul(a1: Any, a2: Any) -> Any:
    one, other = (cd.taken(v)[None] if not np.ndim(v) else cd.taken(v) for v in (a1, a2))
    return _convolve(one, other)


def _polyder(p: Any, m: int = 1) -> Any:
    value = _vector(p, "np.polyder")
    for _ in range(min(cd.whole_number(m, "m of np.polyder", 0), _numeric(value, "np.polyder"))):
        value = value[:-1] * np.arange(_numeric(value, "np.polyder") - 1, 0, -1)
    return value


def _polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    value = _vector(p, "np.polyint")
    if cd.whole_number(m, "m of np.polyint", 0) > MOST_INTEGRALS:
        raise UnsupportedError(
            f"np.polyint of {m} integrals: {MOST_INTEGRALS} are taken", hint="integrate term by term"
        )
    constants = [0] * m if k is None else [k] * m if not isinstance(k, Sequence) else list(k)
    for each in constants:
        scaled = value / np.arange(_numeric(value, "np.polyint"), 0, -1)
        value = np.append(scaled, cd.taken(each)[None])
    return value


def _poly(seq_of_zeros: Any) -> Any:
    zeros = _vector(seq_of_zeros, "np.poly")
    found: Any = ones(1)
    for n in range(_numeric(zeros, "np.poly")):
        found = np.append(found, 0) - zeros[n] * np.insert(found, 0, 0)
    return found


def _polyfit(x: Any, y: Any, deg: int) -> Any:
    found = HANDLERS[np.linalg.lstsq](_vander(x, deg + 1), cd.taken(y))
    return found[0] if isinstance(found, tuple) else found


HANDLERS.update(
    {
        np.convolve: _convolve,
        np.correlate: _correlate,
        np.gradient: _gradient,
        np.interp: _interp,
        np.unwrap: _unwrap,
        np.ediff1d: _ediff1d,
        np.lib.stride_tricks.sliding_window_view: _sliding_window_view,
        np.vander: _vander,
        np.polyadd: _polyadd,
        np.polysub: _polysub,
        np.polymul: _polymul,
        np.polyder: _polyder,
        np.polyint: _polyint,
        np.poly: _poly,
        np.polyfit: _polyfit,
    }
)
