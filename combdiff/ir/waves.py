"""Plane waves: exponentials of an imaginary number times two index expressions.

    exp(−2π i j k / n)        radians −2π, by j and by k, over n points
    exp(i a k x)*             radians −a, by k and by x, on the real line

Invariant: the product of the waves of a factor and of what is left of it is the factor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import lcm, pi
from typing import cast

from combdiff.ir.domains import Cyclic, Range, Real, Symmetric, Whole
from combdiff.ir.indices import Affine, Coordinate, affine, affine_parts, coordinate
from combdiff.ir.primitives import function, power
from combdiff.ir.products import factors_of
from combdiff.ir.sizes import Size, size_of_parts, size_sum
from combdiff.ir.terms import MINUS_ONE, ONE, Add, Conj, Number, Primitive, Term, Var, add, mul, remembered
from combdiff.records import dataclass

NEAR = 1e-15  # relative to a number of turns: as far from a fraction as rounding makes it
MOST_MORE = 2  # times as many points as an index has values
MOST_PARTS = 64  # of a turn over a named number of points


@dataclass(frozen=True)
class Wave:
    """exp(i · radians · one · other / points): index expressions, and a named number of points or 1."""

    radians: float
    one: Term
    other: Term
    points: Term = ONE

    @property
    def term(self) -> Term:
        """The wave as a term."""
        below = () if self.points is ONE else (power(self.points, MINUS_ONE),)
        turned = mul(Number(0, self.radians), coordinate(self.one), coordinate(self.other), *below)
        return function("exp", turned)


def waves_of(factor: Term) -> tuple[tuple[Wave, ...], Term]:
    """The waves that a factor is the product of, and what is left of it; none and itself where it is no exponential."""
    inner, sign = (factor.body, -1) if isinstance(factor, Conj) else (factor, 1)
    if not (isinstance(inner, Primitive) and inner.name == "exp"):
        return (), factor
    exponent = inner.arguments[0]
    parts = exponent.terms if isinstance(exponent, Add) else (exponent,)
    found = [(part, _wave(part, sign)) for part in parts]
    waves = tuple(wave for _, wave in found if wave)
    if not waves:
        return (), factor
    left = [part for part, wave in found if not wave]
    rest = function("exp", add(*left)) if left else ONE
    return waves, Conj(rest) if left and sign < 0 else rest


@remembered
def is_wave(term: Term) -> bool:
    """Whether a term is a product of waves."""
    waves, left = waves_of(term)
    return bool(waves) and left is ONE


def _wave(exponent: Term, sign: int) -> Wave | None:
    """A term of an exponent as a wave, by one index expression or by two."""
    number, points, forms = ONE, cast(Term, ONE), list[Term]()
    for factor in factors_of(exponent):
        match factor:
            case Number():
                number = factor
            case Coordinate(form=form) if not _is_size(form):
                forms.append(form)
            case Primitive(name="power", arguments=(Coordinate(form=form) as size, raised)) if (
                raised is MINUS_ONE and points is ONE and _is_size(form)
            ):
                points = size
            case _:
                return None
    if number.real or not number.imag or not 1 <= len(forms) <= 2:
        return None
    one, other = (*forms, Affine((), 1))[:2]
    return Wave(float(sign * number.imag), one, other, points)


def _is_size(form: Term) -> bool:
    return all(isinstance(var.type, Whole) for var in form.free)


@dataclass(frozen=True)
class Transform:
    """exp(2π i index · position / points) times waves by the index `alone` and waves `beside`, without it."""

    points: Size
    position: Term
    alone: tuple[Wave, ...]
    beside: tuple[Wave, ...]


def transform_along(index: Var, waves: Iterable[Wave]) -> Transform | None:
    """A product of waves as one of an index and others, which tell a position modulo the number of points.

    There are as many points as the waves are over, or a multiple; of a number without a name, at least as many as the
    index has values, and at most twice as many. None where the waves are no such product.
    """
    turns, beside = list[_Turns](), list[Wave]()
    for wave in waves:
        split = _split(index, wave)
        if split is None:
            return None
        turns += split[0]
        beside += split[1]
    period = _period(index, [turn for turn in turns if turn.form.free])
    if period is None:
        return None
    points, size, times = period
    numbers = [(turn, _fraction(turn, points, times)) for turn in turns]
    alone = [turn for turn, number in numbers if number is None]
    position = affine((turn.form, number * times) for turn, number in numbers if number is not None)
    parts = affine_parts(position)[0]
    if any(turn.form.free for turn in alone) or any(isinstance(var.type, Real) for var, _ in parts):
        return None
    return Transform(size, position, tuple(turn.wave(index) for turn in alone), tuple(beside))


@dataclass(frozen=True)
class _Turns:
    """exp(2π i · number · form / points), for each step of an index."""

    number: float
    form: Term
    points: Term

    def wave(self, index: Var) -> Wave:
        """The wave by the index that turns so."""
        return Wave(2 * pi * self.number, index, self.form, self.points)


def _split(index: Var, wave: Wave) -> tuple[list[_Turns], list[Wave]] | None:
    """A wave as what it turns by for each step of an index, and waves without it; None where it has its square."""
    one, other = (wave.one, wave.other) if index in wave.one.free else (wave.other, wave.one)
    if index in other.free:
        return None
    step = dict(affine_parts(one)[0]).get(index, 0)
    rest = affine([(one, 1), (index, -step)])
    turns = [_Turns(float(step) * wave.radians / (2 * pi), other, wave.points)] if step else []
    return turns, [] if rest is affine([]) else [Wave(wave.radians, rest, other, wave.points)]


def _period(index: Var, turns: Sequence[_Turns]) -> tuple[Term, Size, int] | None:
    """What turns by other indices are divided by, the points of their transform, and how many of these a turn is."""
    below, many = {turn.points for turn in turns}, number_of_values(index)
    if len(below) != 1 or many is None:
        return None
    (points,) = below
    named = isinstance(points, Coordinate)
    most = MOST_MORE * many if isinstance(many, int) and not named else MOST_PARTS
    fractions = [Fraction(turn.number).limit_denominator(max(1, most)) for turn in turns]
    parts = lcm(*(fraction.denominator for fraction in fractions))
    if isinstance(points, Coordinate):
        return points, size_sum((_size(points.form), parts)), parts
    if not isinstance(many, int):
        return None
    size = parts * -(-many // parts)
    return (points, size, size) if size <= most else None


def _fraction(turn: _Turns, points: Term, times: int) -> Fraction | None:
    """The multiple of 1 / times that a turn is, None where it is none or over other points."""
    found = Fraction(round(turn.number * times), max(1, times))
    is_near = abs(found - Fraction(turn.number)) <= NEAR * abs(turn.number)
    return found if turn.points is points and is_near else None


def number_of_values(index: Var) -> Size | None:
    """How many values an index has; None on the real line."""
    match index.type:
        case Range(size=size) | Cyclic(size=size):
            return size
        case Symmetric(bound=bound):
            return size_sum((bound, 2), (1, 1))
    return None


def _size(form: Term) -> Size:
    """The size that an index expression of sizes is."""
    names, offset = affine_parts(form)
    return size_of_parts({var.name: int(factor) for var, factor in names}, int(offset))
