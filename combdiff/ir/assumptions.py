"""Let programs where a comparison is known to hold, or to fail.

    let y = [x > 1] x/2 + [x ≤ 1] x in sin(y)        sin(x) where x > 1 fails

Invariant: where what is assumed is so, the value is that of the program.
"""

from __future__ import annotations

from combdiff.ir.inlining import put_back, split
from combdiff.ir.let_form import used
from combdiff.ir.relations import Relation
from combdiff.ir.substitution import exchanged
from combdiff.ir.terms import ONE, ZERO, Lambda, Number, Term, Tuple, Var, let
from combdiff.ir.types import whole_tensor


def assumed(body: Term, condition: Term, holds: bool) -> Term:
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


def results_by_name(body: Term) -> tuple[Term, ...]:
    """The results of a let program, a tensor by its name where it is one."""
    result = split(body)[1]
    return tuple(map(_plain, result.items if isinstance(result, Tuple) else (result,)))


def _plain(term: Term) -> Term:
    """`i ↦ x[i]` as x."""
    whole = whole_tensor(term.body, term.parameters) if isinstance(term, Lambda) else None
    return term if whole is None else whole
