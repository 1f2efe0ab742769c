"""Programs made stable, the steps of scans too, each as a program of its own that knows what is bound before.

    e = (t, i) ↦ exp(A[t,i]),  s = t ↦ Σ_i e[t,i],  y = Scan((t, x) ↦ i ↦ e[t,i] x[i] / s[t], …)
    →   … y = Scan((t, x) ↦ i ↦ exp(A[t,i] − m[t]) x[i] / Σ_j exp(A[t,j] − m[t]), …),  m[t] = max_i A[t,i]

What no state changes is bound outside again, once for all steps.

Invariant: results of one scan stay results of one scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from combdiff.ir import (
    Function,
    Lambda,
    Names,
    Scan,
    Space,
    Term,
    Tuple,
    Var,
    Whole,
    iteration_of,
    let,
    opened,
    share,
    split,
    substitute,
)
from combdiff.stability.hypotenuses import with_hypotenuses
from combdiff.stability.magnitudes import with_scaled_sums
from combdiff.stability.stabilisation import with_stable_exponentials
from combdiff.stability.vanishing_powers import with_vanishing_powers


@lru_cache(maxsize=32)
def stable(program: Lambda) -> Lambda:
    """An equal program in which quotients, logarithms and roots neither over- nor underflow on the way."""
    return _stable_values(_with_stable_steps(program))


def _stable_values(program: Lambda) -> Lambda:
    """The program with its values stable; what steps of scans compute is left."""
    return with_scaled_sums(with_hypotenuses(with_vanishing_powers(with_stable_exponentials(program))))


def _with_stable_steps(program: Lambda) -> Lambda:
    """The program with the steps of its scans made stable: of those that are bound, and of those that are results."""
    bindings, result = split(program.body)
    results = result.items if isinstance(result, Tuple) else (result,)
    values = [*(value for _, value in bindings), *results]
    if not any(isinstance(value, Scan) for value in values):
        return program
    names = Names(program)
    done: dict[Term, Scan] = {}
    kept: list[tuple[Var, Term]] = []

    def steady(value: Term) -> Term:
        if not isinstance(value, Scan):
            return value
        form = iteration_of(value)
        if form not in done:
            done[form] = _stable_scan(value, kept, names)
        return done[form].result(value.kind, value.component)

    for var, value in bindings:
        kept.append((var, steady(value)))
    found = tuple(map(steady, results))
    if all(new is old for new, old in zip([*(value for _, value in kept), *found], values, strict=True)):
        return program
    return Lambda(program.parameters, share(let(kept, Tuple(found) if isinstance(result, Tuple) else found[0])))


def _stable_scan(scan: Scan, before: Sequence[tuple[Var, Term]], names: Names) -> Scan:
    """A scan with a stable step, from the bindings before it."""
    step = opened(scan, names)
    symbol = names.fresh(Var(step.index.name, Whole()))
    body = let(before, substitute(step.body, {step.index: symbol}))
    outside = sorted((v for v in body.free if isinstance(v.type, Space | Function)), key=lambda v: v.name)
    program = Lambda(tuple(outside), body)
    found = _stable_values(program)
    if found is program:
        return scan
    names.take(found)
    whole_step = Lambda((step.index, *step.states), substitute(found.body, {symbol: step.index}))
    return Scan(whole_step, scan.starts, scan.kind, scan.component, scan.reverse)
