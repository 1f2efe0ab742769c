"""Maps without their argument: a tensor or field that is made of whole ones is written by their names.

    d ↦ 2 Dᵀ(y)[d]                         2 Dᵀ(y)
    t ↦ ∂₁L(r(t), v(t)) + Dᵀ(p)(t)         ∂₁L(r, v) + Dᵀ(p)

Only where a named map is involved: sums and multiples of plain tensors keep their indices. Products of two maps, and
functions of them, keep their argument too.

Invariant: what is written holds at every point; the terms made here are laid out, never typed or evaluated.
"""

from __future__ import annotations

from combdiff.ir import Add, Apply, Function, Lambda, Mul, Pullback, Space, Term, Var, factors_of, is_call, subterms


def whole(term: Lambda) -> Term | None:
    """A map as an expression of whole maps; None where it needs its argument, or mentions no named map."""
    if not any(map(is_call, subterms(term.body))):
        return None
    return _whole(term.body, term.parameters)


def _whole(term: Term, point: tuple[Var, ...]) -> Term | None:
    """The map `point ↦ term`; a number that does not depend on the point stands for itself."""
    if term.free.isdisjoint(point):
        return term
    match term:
        case Apply() if term.arguments == point and term.function.free.isdisjoint(point):
            return term.function
        case Apply() if _takes_numbers(term.function):
            return _lifted(term, term.arguments, point)
        case Pullback() if _takes_numbers(term.function):
            return _lifted(term, (*term.arguments, term.cotangent), point)
        case Add():
            parts = [_whole(part, point) for part in term.terms if not part.free.isdisjoint(point)]
            known = tuple(part for part in parts if part is not None)
            return Add(tuple(sorted(known, key=_is_adjoint))) if len(known) == len(term.terms) else None
        case Mul():
            dependent = [factor for factor in term.factors if not factor.free.isdisjoint(point)]
            inner = _whole(dependent[0], point) if len(dependent) == 1 else None
            if inner is None:
                return None
            return Mul((*(factor for factor in term.factors if factor is not dependent[0]), inner))
    return None


def _is_adjoint(term: Term) -> bool:
    """Whether an adjoint is a factor of the term: such terms come after the others."""
    factors = factors_of(term)
    return any(isinstance(factor, Pullback) and not factor.arguments for factor in factors)


def _lifted(term: Apply | Pullback, arguments: tuple[Term, ...], point: tuple[Var, ...]) -> Term | None:
    """A function of numbers at every point: L(r, v) for t ↦ L(r(t), v(t))."""
    parts = [_whole(argument, point) for argument in arguments]
    known = tuple(part for part in parts if part is not None)
    return term.with_children((term.children[0], *known)) if len(known) == len(parts) else None


def _takes_numbers(function: Term) -> bool:
    type_ = function.type if isinstance(function, Var) else None
    return isinstance(type_, Function) and not any(
        isinstance(space, Space) and space.order for space in (*type_.arguments, type_.result)
    )
