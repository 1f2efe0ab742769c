"""Logarithms of sums of exponentials, evaluated as a whole.

    log Σ_i exp(x[i])       LogSumExp(summed=(0,)) of x:  m + log Σ exp(x − m)  with m the largest element
    log(1 + exp(z))         logaddexp(0, z)

Invariant: no exponential that is evaluated is greater than 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from math import log

from combdiff.ir import ONE, Add, Apply, Lambda, Mul, Number, Primitive, Sum, Term, Var, add, apply
from combdiff.planning.lowering.graph import Graph, LabelledStep
from combdiff.planning.operations import ElementwiseStep, LogSumExp
from combdiff.stability import WeightedExponential, parts


def logarithm(
    term: Primitive, graph: Graph, value: Callable[[Term], LabelledStep], scope: Mapping[Var, Term]
) -> LabelledStep | None:
    """The logarithm of a sum of exponentials; None for other functions. `value` lowers terms, `scope` has bindings."""
    found = parts(_unbound(term.arguments[0], scope, {})) if term.name == "log" else ()
    if not found:
        return None
    return reduce(lambda one, other: _sum(one, other, graph), (_part(part, graph, value) for part in found))


def _unbound(term: Term, scope: Mapping[Var, Term], known: dict[Var, bool]) -> Term:
    """A sum of exponentials with what its variables, or elements of them, are bound to."""
    var = _bound(term, scope)
    if var is not None and _is_sum(var, scope, known):
        return _unbound(apply(scope[var], term.arguments) if isinstance(term, Apply) else scope[var], scope, known)
    if isinstance(term, Add | Mul | Sum):
        return term.with_children(tuple(_unbound(child, scope, known) for child in term.children))
    return term


def _bound(term: Term, scope: Mapping[Var, Term]) -> Var | None:
    """The variable of the scope that a term is, or is an element of."""
    function = term.function if isinstance(term, Apply) else term
    return function if isinstance(function, Var) and function in scope else None


def _is_sum(term: Term, scope: Mapping[Var, Term], known: dict[Var, bool]) -> bool:
    """Whether a term may be a sum of exponentials, once variables are replaced; `known` tells of variables."""
    var = _bound(term, scope)
    if var is not None:
        if var not in known:
            value = scope[var]
            known[var] = _is_sum(value.body if isinstance(value, Lambda) else value, scope, known)
        return known[var]
    if isinstance(term, Add | Mul | Sum):
        return all(_is_sum(child, scope, known) for child in term.children)
    return isinstance(term, Number) or (isinstance(term, Primitive) and term.name == "exp")


def _part(part: WeightedExponential, graph: Graph, value: Callable[[Term], LabelledStep]) -> LabelledStep:
    """log Σ weight·exp(exponent)."""
    weight = [] if part.weight is ONE else [Number(log(part.weight.real))]
    exponent = value(add(part.exponent, *weight))
    if not part.indices:
        return exponent
    missing = [index for index in part.indices if index not in exponent.labels]
    exponent = graph.arrange(exponent, (*exponent.labels, *missing))
    summed = tuple(n for n, label in enumerate(exponent.labels) if label in part.indices)
    kept = [label for label in exponent.labels if label not in part.indices]
    return graph.labelled(LogSumExp(summed), (exponent,), kept, float)


def _sum(one: LabelledStep, other: LabelledStep, graph: Graph) -> LabelledStep:
    return graph.broadcast(lambda patterns: ElementwiseStep("logaddexp", patterns), [one, other], float)
