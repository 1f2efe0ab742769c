"""Loops whose steps do nothing any more once a condition fails: that condition, and the step where it holds.

    x[t+1] = [x[t] > 1] (x[t]/2) + [x[t] ≤ 1] x[t]      while x > 1: x = x/2

A comparison of numbers that are made of the states and of what is the same in all steps is such a condition where each
next state is, with 0 in place of the comparison, the state itself: then nothing changes, the comparison neither.

Invariant: while the condition holds the step gives what it gave, and where it fails every later state is the last one.
"""

from __future__ import annotations

from combdiff.ir import (
    ONE,
    ZERO,
    Apply,
    Lambda,
    Number,
    Relation,
    Term,
    Tuple,
    Var,
    exchanged,
    let,
    put_back,
    split,
    subterms,
    used,
)
from combdiff.planning.operations.iterations import Ending


def ending(system: Lambda, states: int, stacks: int) -> Ending | None:
    """How the steps of an iteration end, from `(states…, slices…, captures…) ↦ next states`; None where they do not."""
    _, result = split(system.body)
    if len(result.items if isinstance(result, Tuple) else (result,)) != states:
        return None
    slices = set(system.parameters[states : states + stacks])
    going, conditions = system.body, []
    for node in [node for node in subterms(system.body) if isinstance(node, Relation)]:
        condition = _alone(system.body, node)
        known = condition.free.issubset(system.parameters) and condition.free.isdisjoint(slices)
        for holds in (node, node.opposite) if known else ():
            if _next(_assumed(system.body, holds, False)) == system.parameters[:states]:
                conditions.append(_alone(system.body, holds))
                going = _assumed(going, holds, True)
    if not conditions:
        return None
    return Ending(Lambda(system.parameters, _together(conditions)), Lambda(system.parameters, going))


def _alone(body: Term, condition: Term) -> Term:
    """A condition under the bindings of a let program that it needs."""
    return let(used(split(body)[0], condition), condition)


def _together(conditions: list[Term]) -> Term:
    """Several conditions as one result of a let program, under the bindings of all."""
    bindings = dict(binding for each in conditions for binding in split(each)[0])
    results = dict.fromkeys(split(each)[1] for each in conditions)
    return let(bindings.items(), Tuple(tuple(results)))


def _assumed(body: Term, condition: Term, holds: bool) -> Term:
    """A let program where a relation is known to hold, or to fail; what is a variable or a number then is not bound."""
    assert isinstance(condition, Relation)
    truth = {condition: ONE if holds else ZERO, condition.opposite: ZERO if holds else ONE}
    bindings, result = split(body)
    plain: dict[Var, Term] = {}
    kept = []
    for var, value in bindings:
        new = _plain(put_back(exchanged(value, truth), plain))
        if isinstance(new, Var | Number):
            plain[var] = new
        else:
            kept.append((var, new))
    result = put_back(exchanged(result, truth), plain)
    return let(used(kept, result), result)


def _next(body: Term) -> tuple[Term, ...]:
    """The results of a let program, a tensor by its name where it is one."""
    result = split(body)[1]
    return tuple(map(_plain, result.items if isinstance(result, Tuple) else (result,)))


def _plain(term: Term) -> Term:
    """`i ↦ x[i]` as x."""
    if isinstance(term, Lambda) and isinstance(term.body, Apply) and term.body.arguments == term.parameters:
        return term.body.function
    return term
