"""What solvers and named maps give at every step of a scan, where a derivative asks for it: one step after the other.

    Σ_t k[t] solve(x ↦ H[t] x, b[t])    =    Σ_t k[t] y[t],    y = Scan(t ↦ solve(x ↦ H[t] x, b[t]), (), "after", 0)

All else that a derivative by a parameter needs of the steps is computed for all of them at once; a solver, or a map
that is given as a callable, takes one at a time.

Invariant: no call is left that mentions the number of the step.
"""

from __future__ import annotations

from combdiff.ir import (
    Names,
    Scan,
    Term,
    Var,
    Whole,
    at_every_step,
    at_step,
    bind_heavy,
    is_call,
    let,
    put_back,
    split,
    substitute,
    subterms,
)


def with_calls_by_step(term: Term, scan: Scan, index: Var, names: Names) -> Term:
    """A number or tensor at a step of the scan, with what is called there read from scans without states."""
    if not _calls(term):
        return term
    symbol = names.fresh(Var(index.name, Whole()))
    bindings, result = split(bind_heavy(substitute(term, {index: symbol})))
    calls: dict[Var, Term] = {}
    kept: list[tuple[Var, Term]] = []
    for var, value in bindings:
        value = put_back(value, calls)
        whole = let(kept, value)
        if symbol in whole.free and _calls(value):
            stack = at_every_step(whole, scan, symbol, names)
            calls[var] = at_step(stack, symbol, var, names)
        else:
            kept.append((var, value))
    return substitute(let(kept, put_back(result, calls)), {symbol: index})


def _calls(term: Term) -> bool:
    """Whether a term calls a solver or a named map."""
    return any(is_call(node) and not isinstance(node, Scan) for node in subterms(term))
