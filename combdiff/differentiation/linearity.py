"""Whether a program is the linear map it is declared to be.

    x ↦ A x            its tangent v ↦ A v does not mention x, and A 0 = 0: linear
    x ↦ A x + b        0 does not become 0: refused
    x ↦ x²             the tangent 2 x v mentions x: refused

Invariant: a map that passes is linear over the real numbers.
"""

from __future__ import annotations

from functools import lru_cache

from combdiff.differentiation.pullback import push, zero
from combdiff.errors import TypeMismatchError
from combdiff.ir import ZERO, Lambda, Names, Space, Term, Var, inline_all, let, put_back, split
from combdiff.simplification import simplify_body


def check_linear(given: Lambda, name: str) -> None:
    """Raises TypeMismatchError unless the program given for the linear map `name` is linear in its first parameter."""
    problem = _problem(given)
    if problem:
        raise TypeMismatchError(
            f"{name} is declared linear, but the program given for it is not: {problem}",
            hint=f"declare {name} without linear=True, or give a linear program",
        )


@lru_cache(maxsize=256)
def _problem(given: Lambda) -> str:
    """What shows that a program is not linear; empty for one that is."""
    x = given.parameters[0]
    assert isinstance(x.type, Space)
    names = Names(given)
    v = names.fresh(Var("v", Space(*x.type.axes, dtype=x.type.dtype)))
    forward, tangent = push(given.body, {x: v}, names)
    slope = simplify_body(let((*split(given.body)[0], *forward), tangent))
    if x in slope.free:
        return f"its derivative depends on {x.name}"
    start = simplify_body(put_back(inline_all(given.body), {x: zero(names, x.type)}))
    return "" if _vanishes(start) else f"it is not 0 at {x.name} = 0"


def _vanishes(term: Term) -> bool:
    return (term.body if isinstance(term, Lambda) else term) is ZERO
