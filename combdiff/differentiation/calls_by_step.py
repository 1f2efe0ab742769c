"""What solvers and named maps give at every step of a scan, where a derivative asks for it: one step after the other.

    Σ_t k[t] solve(x ↦ H[t] x, b[t])    =    Σ_t k[t] y[t],    y = Scan(t ↦ solve(x ↦ H[t] x, b[t]), (), "after", 0)

All else that a derivative by a parameter needs of the steps is computed for all of them at once; a solver, or a map
that is given as a callable, takes one at a time.

Invariant: no call is left that mentions the number of the step.
"""

from __future__ import annotations

from collections.abc import Iterable

from combdiff.ir import (
    Names,
    Scan,
    Term,
    Var,
    Whole,
    at_every_step,
    at_step,
    bind_heavy,
    free_indices,
    is_call,
    let,
    put_back,
    solves,
    split,
    substitute,
    subterms,
)


def with_calls_by_step(term: Term, scan: Scan, index: Var, names: Names) -> Term:
    """A number or tensor at a step of the scan, with what is called there read from scans without states."""
    if not solves(term):
        return term
    symbols = {var: names.fresh(Var(var.name, Whole())) for var in (index, *free_indices(term))}  # of scans around, too
    symbol = symbols[index]
    bindings, result = split(bind_heavy(substitute(term, symbols)))
    moving = {symbol}  # what differs from step to step
    calls: dict[Var, Term] = {}
    kept: list[tuple[Var, Term]] = []
    for var, value in bindings:
        value = put_back(value, calls)
        if _calls(value, moving):
            stack = at_every_step(let(kept, value), scan, symbol, names)
            calls[var] = at_step(stack, symbol, var, names)
            continue
        kept.append((var, value))
        if not value.free.isdisjoint(moving):
            moving.add(var)
    return substitute(let(kept, put_back(result, calls)), {symbol: var for var, symbol in symbols.items()})


def _calls(value: Term, moving: Iterable[Var]) -> bool:
    """Whether a value calls a solver or a named map, or a scan of them, with what differs from step to step.

    What is read from the scan of such a call does not: it has an index of its own.
    """
    calls = (node for node in subterms(value) if is_call(node) and not node.free.isdisjoint(moving))
    return any(map(solves, calls))
