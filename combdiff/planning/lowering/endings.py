"""Loops whose steps do nothing any more once a condition fails: that condition, and the step where it holds.

    x[t+1] = [x[t] > 1] (x[t]/2) + [x[t] ≤ 1] x[t]      while x > 1: x = x/2

A comparison of numbers that are made of the states and of what is the same in all steps is such a condition where each
next state is, with 0 in place of the comparison, the state itself: then nothing changes, the comparison neither.

Invariant: while the condition holds the step gives what it gave, and where it fails every later state is the last one.
"""

from __future__ import annotations

from combdiff.ir import Lambda, Relation, Term, Tuple, assumed, let, results_by_name, split, subterms, used
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
            if results_by_name(assumed(system.body, holds, False)) == system.parameters[:states]:
                conditions.append(_alone(system.body, holds))
                going = assumed(going, holds, True)
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
