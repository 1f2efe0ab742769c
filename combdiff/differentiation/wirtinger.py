"""Derivatives of complex maps from real ones: one sweep with a unit u gives ∂f/∂z and ∂f/∂z̄ as what u and ū multiply.

    P f (x, (i ↦ u δ(i, o))) = conj(∂f[o]/∂z)·u + ∂f[o]/∂z̄·ū        T f (x, (j ↦ u δ(j, d))) = ∂f/∂z[d]·u + ∂f/∂z̄[d]·ū

    Re(z* u) = 1/2 z* u + 1/2 z ū        has the halves    1/2 z*  and  1/2 z

A sweep is linear over the reals in its unit, so that each of its terms is the sum of a part with u and a part with ū.
For real points and results u is 1.

Invariant: a `WirtingerMap` map k ↦ holomorphic·k + antiholomorphic·k̄ has no antiholomorphic part where k is real.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from fractions import Fraction

from combdiff.ir import (
    ONE,
    ZERO,
    Add,
    Apply,
    Conj,
    Lambda,
    Mul,
    Names,
    Number,
    Primitive,
    Space,
    Sum,
    Term,
    Var,
    add,
    apply,
    conj,
    delta,
    lambda_,
    let,
    mul,
    split,
    substitute,
    subterms,
    total,
    type_of,
)
from combdiff.records import dataclass

IMAGINARY_UNIT = Number(0, 1)
HALF = Number(Fraction(1, 2))
UNIT = Var("unit of a derivative", Space(dtype=complex))  # no Python name, and in no result
Sweep = Callable[[Term], Term]
Halves = tuple[Term, Term]


@dataclass(frozen=True)
class WirtingerMap:
    """Elements of ∂/∂z and ∂/∂z̄; the second is 0 for a real z."""

    holomorphic: Term
    antiholomorphic: Term = ZERO


def unit(names: Names, space: Space, location: tuple[Var, ...], size: Term) -> Term:
    """The tensor that is `size` at a location and 0 elsewhere."""
    indices = names.indices(space.axes)
    masses = [delta(i, o, axis) for i, o, axis in zip(indices, location, space.axes, strict=True)]
    return Lambda(indices, mul(size, *masses)) if indices else size


def by_pullback(pulled: Sweep, complex_point: bool, complex_result: bool, names: Names) -> WirtingerMap:
    """The derivative from the pullback of a unit cotangent."""
    if complex_result:
        turned, antiholomorphic = _halves(pulled(UNIT), names)
        return (
            WirtingerMap(conj(turned), antiholomorphic)
            if complex_point
            else WirtingerMap(mul(Number(2), antiholomorphic))
        )
    one = pulled(ONE)
    return WirtingerMap(mul(HALF, conj(one)), mul(HALF, one)) if complex_point else WirtingerMap(one)


def by_pushforward(pushed: Sweep, complex_point: bool, names: Names) -> WirtingerMap:
    """The derivative from the pushforward of a unit tangent."""
    return WirtingerMap(*_halves(pushed(UNIT), names)) if complex_point else WirtingerMap(pushed(ONE))


def _halves(swept: Term, names: Names) -> Halves:
    """d and m with d·u + m·ū the scalar that a sweep of the unit u gives, each under the bindings that it needs."""
    bindings, value = split(swept)
    halving, kept = _Halving(names), []
    for var, bound in bindings:
        if halving.moves(bound):
            parts = halving.of(bound)
            variables = _each(lambda part, var=var: part if _is_zero(part) else names.fresh(var), parts)  # type: ignore[misc]
            kept += [(v, part) for v, part in zip(variables, parts, strict=True) if isinstance(v, Var)]
            halving.moving[var] = variables
        else:
            kept.append((var, bound))
    holomorphic, antiholomorphic = halving.of(value)
    return let(kept, holomorphic), let(kept, antiholomorphic)


@dataclass
class _Halving:
    """Takes terms apart that are linear over the reals in the unit; `moving` are the variables that depend on it."""

    names: Names
    moving: dict[Var, Halves] = field(default_factory=lambda: {UNIT: (ONE, ZERO)})
    _done: dict[Term, Halves] = field(default_factory=dict)

    def moves(self, term: Term) -> bool:
        """Whether a term depends on the unit."""
        return not term.free.isdisjoint(self.moving)

    def of(self, term: Term) -> Halves:
        """The parts of a number or tensor that multiply u and ū."""
        for node in subterms(term):
            if node not in self._done:
                self._done[node] = self._node(node) if self.moves(node) else (ZERO, ZERO)
        return self._done[term]

    def _node(self, term: Term) -> Halves:
        inner = [self._done[child] for child in term.children]
        moving = [child for child in term.children if self.moves(child)]
        match term:
            case Var():
                return self.moving[term]
            case Add() if len(moving) == len(inner):
                return add(*(holomorphic for holomorphic, _ in inner)), add(
                    *(antiholomorphic for _, antiholomorphic in inner)
                )
            case Mul() if len(moving) == 1:
                rest = [child for child in term.factors if child not in moving]
                return _each(lambda part: mul(*rest, part), self._done[moving[0]])
            case Sum():
                return _each(lambda part: total(term.indices, part), inner[0])
            case Lambda():
                return _each(lambda part: Lambda(term.parameters, part), inner[0])
            case Conj():
                return conj(inner[0][1]), conj(inner[0][0])
            case Primitive(name="real" | "imag"):
                holomorphic, turned = inner[0][0], conj(inner[0][1])
                if term.name == "real":
                    half = mul(HALF, add(holomorphic, turned))
                else:
                    half = mul(HALF, Number(0, -1), add(holomorphic, mul(Number(-1), turned)))
                return half, conj(half)
            case Apply() if moving == [term.function]:
                return _each(lambda part: ZERO if _is_zero(part) else Apply(part, term.arguments), inner[0])
        return self._by_two_values(term)

    def _by_two_values(self, term: Term) -> Halves:
        """The parts from the values at u = 1 and u = i, of what is linear by some law of its own, as a named map."""
        space = type_of(term)
        indices = self.names.indices(space.axes) if isinstance(space, Space) else ()
        one, turned = (
            apply(substitute(term, {var: self._at(var, number) for var in self.moving}), indices)
            for number in (ONE, IMAGINARY_UNIT)
        )
        signed = (mul(Number(0, sign), turned) for sign in (-1, 1))
        return tuple(lambda_(indices, mul(HALF, add(one, part))) for part in signed)  # type: ignore[return-value]

    def _at(self, var: Var, number: Number) -> Term:
        """The value of what depends on the unit for a value of the unit."""
        assert isinstance(var.type, Space)
        indices = self.names.indices(var.type.axes)
        holomorphic, antiholomorphic = (ZERO if _is_zero(part) else apply(part, indices) for part in self.moving[var])
        return lambda_(indices, add(mul(number, holomorphic), mul(conj(number), antiholomorphic)))


def _each(f: Callable[[Term], Term], halves: Iterable[Term]) -> Halves:
    holomorphic, antiholomorphic = map(f, halves)
    return holomorphic, antiholomorphic


def _is_zero(part: Term) -> bool:
    return part is ZERO or (isinstance(part, Lambda) and part.body is ZERO)
