"""NumPy's discrete Fourier transforms on traced tensors, each as the Σ of waves that it is.

    np.fft.fft(x)      (k) ↦ Σ_j x[j] exp(−2π i j k / n)
    np.fft.ifft(y)     (j) ↦ (Σ_k y[k] exp(2π i j k / n)) / n
    np.fft.rfft(x)     the first n // 2 + 1 elements of np.fft.fft(x)
    np.fft.irfft(y)    (j) ↦ Re(Σ_k w[k] y[k] exp(2π i j k / n)) / n,  w[k] = 1 for k = 0 and k = n / 2, 2 for others

So a transform is differentiated, simplified and read as any other Σ is, and plans compute it fast.

Invariant: value, shape and keywords are NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

import combdiff.tracing.arrays as arrays
import combdiff.tracing.rearranging as rearranging
from combdiff.errors import TypeMismatchError, UnsupportedError, shown
from combdiff.ir import (
    MINUS_ONE,
    ONE,
    Cyclic,
    Domain,
    Number,
    Range,
    Size,
    Term,
    Var,
    add,
    affine,
    axes_of,
    coordinate,
    delta,
    describe,
    function,
    half_of,
    is_at_most,
    is_complex,
    mul,
    negate,
    power,
    size_form,
    size_of_axis,
    size_sum,
    total,
)
from combdiff.records import dataclass
from combdiff.tracing.context import current
from combdiff.tracing.functions import whole_number
from combdiff.tracing.numpy_protocol import HANDLERS
from combdiff.tracing.values import Value, as_size, lift, traced, wrap

FORWARD, INVERSE = -1, 1  # signs of the exponent


def _one(_: Term) -> Term:
    return ONE


def _size(points: Term) -> Term:
    return points


def _root(points: Term) -> Term:
    return function("sqrt", points)


NORMS = {"backward": (_one, _size), "ortho": (_root, _root), "forward": (_size, _one)}
"""What a transform of so many points is divided by, and what an inverse one is."""
EXCHANGED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


@dataclass(frozen=True)
class _AlongAxis:
    """The axis at a place of a tensor, along which it is transformed at `size` points."""

    tensor: Term
    place: int
    size: Size
    name: str

    def transformed(self, sign: int, results: Size) -> Term:
        """(k) ↦ Σ_j x[j] exp(±2π i j k / size) for as many k as results."""
        return self._waves(sign, results, self.size, lambda _: ONE)

    def real_inverse(self) -> Term:
        """(k) ↦ Re Σ_j w[j] x[j] exp(2π i j k / size): of the real numbers whose transform begins with x."""
        half = _half(self.size, self.name)
        ends = [affine([]), *([size_form(half)] if size_sum((half, 2)) == self.size else [])]

        def weight(j: Var) -> Term:
            return add(Number(2), *(negate(delta(j, end)) for end in ends))

        summed = self._waves(INVERSE, self.size, size_sum((half, 1), (1, 1)), weight)
        return arrays.elementwise(lambda each: function("real", each), summed)

    def _waves(self, sign: int, results: Size, most: Size, weight: Callable[[Var], Term]) -> Term:
        """(k) ↦ Σ_j weight(j) x[j] exp(±2π i j k / size) over at most so many j."""
        shape, trace = axes_of(self.tensor), current(self.name)
        axis = shape[self.place]
        many = _fewer(_numbers(axis, self.name), most, self.name)
        (j,) = trace.fresh_indices([_as_long(axis, many)])
        indices = trace.fresh_indices([*shape[: self.place], _as_long(axis, results), *shape[self.place + 1 :]])
        turns = mul(coordinate(j), coordinate(indices[self.place]), power(size_of_axis(Range(self.size)), MINUS_ONE))
        wave = function("exp", mul(Number(0, 2 * math.pi * sign), turns))
        element = rearranging.moved(self.tensor, self.place, j, indices)
        return arrays.tabulate(indices, total([j], mul(weight(j), element, wave)))


def _numbers(axis: Domain, name: str) -> Size:
    """How many numbers stand along an axis, from index 0 on."""
    return axis.size if isinstance(axis, Cyclic) else rearranging.lengths((axis, 1), what=name).size


def _as_long(axis: Domain, size: Size) -> Domain:
    """An axis of that size: the cycle that is given, if it is as long."""
    return axis if isinstance(axis, Cyclic) and axis.size == size else Range(size)


def _half(size: Size, name: str) -> Size:
    """size // 2. Raises UnsupportedError where it is no size."""
    half = half_of(size)
    if half is None:
        raise UnsupportedError(
            f"{name} at {size} points, of which it is not known whether they are an even number",
            hint='declare the axis with a number, or as twice a name: cd.Space("2*m")',
        )
    return half


def _fewer(one: Size, other: Size, name: str) -> Size:
    """The smaller of two sizes. Raises UnsupportedError where that depends on what their names stand for."""
    if is_at_most(one, other):
        return one
    if is_at_most(other, one):
        return other
    raise UnsupportedError(
        f"{name} of {one} numbers at {other} points: which are more depends on the sizes",
        hint="slice the axis, or pad it with zeros, to as many numbers as there are points",
    )


def _points(given: Any, name: str) -> Size:
    """The number of points that is asked for."""
    return as_size(given) if isinstance(given, Value) else whole_number(given, f"the number of points of {name}", 1)


def _norm(norm: Any, name: str) -> str:
    """How a transform is scaled."""
    found = "backward" if norm is None else norm
    if not isinstance(found, str) or found not in NORMS:
        raise TypeMismatchError(f"{name} has no norm {shown(norm)}", hint=f"it has {', '.join(map(repr, NORMS))}")
    return found


def _scaled(term: Term, size: Size, sign: int, norm: str) -> Value:
    """A transform divided by what the norm says."""
    points = size_of_axis(Range(size))
    divisor = NORMS[norm][sign == INVERSE](points)
    return wrap(term) * wrap(power(divisor, MINUS_ONE)) if divisor is not ONE else wrap(term)


def _along(a: Any, n: Any, axis: Any, name: str, default: Callable[[Size], Size] = lambda size: size) -> _AlongAxis:
    """The axis along which a tensor is transformed; at as many points as it has, if it is not said."""
    tensor = lift(a)
    place = rearranging.axis_of(tensor, axis, name)
    given = _numbers(axes_of(tensor)[place], name)
    return _AlongAxis(tensor, place, default(given) if n is None else _points(n, name), name)


def _of_complex(sign: int, name: str, a: Any, n: Any, axis: Any, norm: Any) -> Value:
    along = _along(a, n, axis, name)
    return _scaled(along.transformed(sign, along.size), along.size, sign, _norm(norm, name))


def _of_real(name: str, a: Any, n: Any, axis: Any, norm: Any) -> Value:
    along = _along(a, n, axis, name)
    if is_complex(along.tensor):
        raise TypeMismatchError(
            f"{name} takes real numbers, but {describe(along.tensor)} is complex", hint="np.fft.fft"
        )
    results = size_sum((_half(along.size, name), 1), (1, 1))
    return _scaled(along.transformed(FORWARD, results), along.size, FORWARD, _norm(norm, name))


def _to_real(name: str, a: Any, n: Any, axis: Any, norm: Any) -> Value:
    along = _along(a, n, axis, name, lambda size: size_sum((size, 2), (-2, 1)))
    return _scaled(along.real_inverse(), along.size, INVERSE, _norm(norm, name))


def _to_real_from_half(name: str, a: Any, n: Any, axis: Any, norm: Any) -> Value:
    return _to_real(name, traced(a).conj(), n, axis, EXCHANGED[_norm(norm, name)])


def _half_of_real(name: str, a: Any, n: Any, axis: Any, norm: Any) -> Value:
    return _of_real(name, a, n, axis, EXCHANGED[_norm(norm, name)]).conj()


def _along_one(name: str, make: Callable[..., Value]) -> Callable[..., Value]:
    """A transform along one axis."""

    def transform(a: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Value:
        return make(name, a, n, axis, norm)

    return transform


def _many(a: Any, s: Any, axes: Any, name: str) -> list[tuple[Any, int]]:
    """At how many points and along which axes, in the order of `axes`."""
    tensor = lift(a)
    order = len(axes_of(tensor))
    points = None if s is None else list(s)
    if axes is None:
        axes = range(order - (order if points is None else len(points)), order)
    chosen = [rearranging.axis_of(tensor, axis, name) for axis in axes]
    if points is not None and len(points) != len(chosen):
        raise TypeMismatchError(
            f"{name} at {shown(s)} points along {len(chosen)} axes", hint="give one number for each"
        )
    if not chosen:
        raise TypeMismatchError(f"{name} along no axis of {describe(tensor)}", hint="give one axis at least")
    return list(zip(points or [None] * len(chosen), chosen, strict=True))


def _along_many(name: str, one: str, other: str, default: Any) -> Callable[..., Value]:
    """The transform `one` along the last axis and the `other` along others: at the end if it gives real numbers."""

    def transform(a: Any, s: Any = None, axes: Any = default, norm: Any = None) -> Value:
        *rest, last = _many(a, s, axes, name)
        steps = [(one, *last), *((other, *each) for each in reversed(rest))]
        for kind, n, axis in steps if one != "irfft" else [*steps[1:], steps[0]]:
            a = _ONE_AXIS[kind](name, a, n, axis, norm)
        return cast(Value, a)

    return transform


_ONE_AXIS: dict[str, Callable[..., Value]] = {
    "fft": partial(_of_complex, FORWARD),
    "ifft": partial(_of_complex, INVERSE),
    "rfft": _of_real,
    "irfft": _to_real,
    "hfft": _to_real_from_half,
    "ihfft": _half_of_real,
}
_BESIDE = {"fft": "fft", "ifft": "ifft", "rfft": "fft", "irfft": "ifft"}  # along the other ones of several axes

for _name, _make in _ONE_AXIS.items():
    HANDLERS[getattr(np.fft, _name)] = _along_one(f"np.fft.{_name}", _make)
for _name, _beside in _BESIDE.items():
    for _ending, _default in (("2", (-2, -1)), ("n", None)):
        _whole = _along_many(f"np.fft.{_name}{_ending}", _name, _beside, _default)
        HANDLERS[getattr(np.fft, f"{_name}{_ending}")] = _whole
