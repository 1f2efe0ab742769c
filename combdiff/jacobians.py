"""Dense derivatives of tensors, from pullbacks of unit cotangents or pushforwards of unit tangents.

    P f (x, (i ↦ δ(i, o))) = conj(∂f[o]/∂z) + ∂f[o]/∂z̄          T f (x, (j ↦ δ(j, d))) = ∂f/∂z[d] + ∂f/∂z̄[d]

With the unit i in place of 1 the two halves change their relative sign, so a complex derivative follows from two
sweeps; for real parameters and results one is enough.

Invariant: a block's axes are those of the result, then those of the variable of differentiation.
"""

from __future__ import annotations

from fractions import Fraction

from combdiff.checking import type_of
from combdiff.domains import Space
from combdiff.indexing import delta
from combdiff.pullback import pull, push
from combdiff.substitution import Names, apply
from combdiff.terms import ONE, Lambda, Number, Term, Tuple, Var, add, conj, lambda_, let, mul

IMAGINARY_UNIT = Number(0, 1)
HALF = Number(Fraction(1, 2))


def jacobian_block(body: Term, point: Var, mode: str, names: Names) -> Term:
    """∂body/∂point of a let program (its bindings stay visible to the block); a pair for a complex point."""
    block = _Block(body, point, mode, names)
    if block.complex_point:
        return Tuple(tuple(block.closed(part) for part in block.wirtinger()))
    return block.closed(block.plain())


def hessian_block(gradient: Term, point: Var, mode: str, names: Names) -> Term:
    """The second derivative from the gradient, which for a complex point is g = 2 ∂f/∂z̄.

    The pair (∂²f/∂zᵢ∂z̄ⱼ, ∂²f/∂zᵢ∂zⱼ) is then (∂gⱼ/∂zᵢ / 2, conj(∂gᵢ/∂z̄ⱼ) / 2).
    """
    block = _Block(gradient, point, mode, names)
    if not block.complex_point:
        return block.closed(block.plain())
    direct, mirrored = block.wirtinger()
    return Tuple(
        (lambda_((*block.own, *block.at), mul(HALF, direct)), block.closed(mul(HALF, conj(mirrored)))),
    )


class _Block:
    """One derivative at result indices `at` and point indices `own`."""

    def __init__(self, body: Term, point: Var, mode: str, names: Names) -> None:
        self.body, self.point, self.names = body, point, names
        result, space = type_of(body), point.type
        assert isinstance(result, Space)
        assert isinstance(space, Space)
        self.result, self.space = result, space
        self.complex_point = space.dtype is complex
        self.forward = mode == "forward" or (mode == "auto" and space.order < result.order)
        self.at = names.indices(result.axes, "abcmn")
        self.own = names.indices(space.axes)

    def closed(self, value: Term) -> Term:
        """The block as a tensor."""
        return lambda_((*self.at, *self.own), value)

    def plain(self) -> Term:
        """The element of the derivative by a real point; its result may be complex."""
        if self.forward:
            return self._pushed(ONE)
        real = self._pulled(ONE)
        if self.result.dtype is not complex:
            return real
        return add(real, mul(IMAGINARY_UNIT, self._pulled(IMAGINARY_UNIT)))

    def wirtinger(self) -> tuple[Term, Term]:
        """The elements of ∂f/∂z and ∂f/∂z̄."""
        if self.forward:
            one, turned = self._pushed(ONE), self._pushed(IMAGINARY_UNIT)
            return _half_sum(one, turned, -1), _half_sum(one, turned, 1)
        one = self._pulled(ONE)
        if self.result.dtype is not complex:
            return mul(HALF, conj(one)), mul(HALF, one)
        turned = self._pulled(IMAGINARY_UNIT)
        return conj(_half_sum(one, turned, -1)), _half_sum(one, turned, 1)

    def _pulled(self, unit: Number) -> Term:
        """The pullback of the unit cotangent at `at`, taken at `own`."""
        cotangent = self._unit(self.result, self.at, unit)
        backward, (pulled,) = pull(self.body, (self.point,), cotangent, self.names)
        return let(backward, apply(pulled, self.own))

    def _pushed(self, unit: Number) -> Term:
        """The pushforward of the unit tangent at `own`, taken at `at`."""
        tangent = self._unit(self.space, self.own, unit)
        forward, pushed = push(self.body, {self.point: tangent}, self.names)
        return let(forward, apply(pushed, self.at))

    def _unit(self, space: Space, location: tuple[Var, ...], unit: Number) -> Term:
        indices = self.names.indices(space.axes)
        masses = [delta(i, o, axis) for i, o, axis in zip(indices, location, space.axes, strict=True)]
        return Lambda(indices, mul(unit, *masses)) if indices else unit


def _half_sum(one: Term, turned: Term, sign: int) -> Term:
    """(one ± i·turned) / 2."""
    return mul(HALF, add(one, mul(Number(0, sign), turned)))
