"""Definitions that a reader does without: a binding is written where it is used if the program then is shorter.

    let t = tanh(z) in 1 − t²                     →   1 − tanh(z)²
    let u[i] = Σ_j Q[i,j] y[j] in Σ_i B[i,d] u[i]   →   Σ_{i,j} B[i,d] Q[i,j] y[j]
    let t = exp(z) in t/(1 + t)                   →   1/(1 + exp(−z)), by a law that does not see through names

Sharing binds what occurs twice in the graph of a program; less is printed twice, since a square is written once.
The length is that of the print: a definition counts its name, its indices and the sign =, where it stands.

Invariant: the value is unchanged, the work, with equal parts computed once, is no more, and the length is less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from combdiff.ir import (
    Add,
    Implicit,
    Lambda,
    Primitive,
    Term,
    Tuple,
    Var,
    bind_heavy,
    is_call,
    is_field,
    items_of,
    joined,
    let,
    matrices_in,
    put_back,
    split,
    subterms,
    values_of,
)
from combdiff.simplification.egraph.extraction import program_cost
from combdiff.simplification.normal_form.common_factors import factored, one_network
from combdiff.simplification.normal_form.lengths import length

MOST_BINDINGS = 12  # of a program whose definitions are weighed one by one
LONGEST = 400  # symbols of such a program


def without_short_definitions(body: Term, simplified: Callable[[Term], Term]) -> Term:
    """A let program without the bindings that make it longer to read and spare no work; `simplified` applies laws."""
    bindings, result = split(body)
    is_long = len(bindings) > MOST_BINDINGS or length(body) > LONGEST
    if not bindings or is_long or isinstance(result, Tuple):  # several results share what has a name
        return body
    held = matrices_in(body)
    price = _price(body)
    for var, value in reversed(bindings):
        if var in held or is_call(value) or is_field(value) or _is_in_an_equation(var, body):
            continue
        for candidate in _without(body, var, simplified):
            if length(candidate) < price[1] and (new := _price(candidate)) < price:
                body, price = candidate, new
    return body


def _price(body: Term) -> tuple[float, int]:
    """The work of a program with equal parts computed once, and its length."""
    return program_cost(bind_heavy(body)), length(body)


def _without(body: Term, var: Var, simplified: Callable[[Term], Term]) -> Iterator[Term]:
    """The program with the value of a binding where it is used: as it stands, in the networks that read it, by laws."""
    bindings, result = split(body)
    replacement = {var: dict(bindings)[var]}
    kept = [(bound, put_back(value, replacement)) for bound, value in bindings if bound is not var]
    items = [put_back(item, replacement) for item in items_of(result)]
    before = {*values_of(body)}

    def with_values(changed: Callable[[Term], Term]) -> Term:
        def value_of(value: Term) -> Term:
            return value if value in before or isinstance(value, Implicit) or is_call(value) else changed(value)

        return let([(bound, value_of(value)) for bound, value in kept], joined(result, map(value_of, items)))

    yield with_values(lambda value: value)
    yield with_values(lambda value: factored(one_network(value)))
    if _is_function(replacement[var]):
        yield with_values(simplified)


def _is_in_an_equation(var: Var, body: Term) -> bool:
    """Whether an equation reads a variable: solving it would compute the value again and again."""
    parts = (part for value in values_of(body) if var in value.free for part in subterms(value))
    return any(isinstance(part, Implicit) and var in part.free for part in parts)


def _is_function(value: Term) -> bool:
    """Whether laws may meet the value of a binding: a function of what is around, or a sum with one."""
    body = value.body if isinstance(value, Lambda) else value
    return isinstance(body, Primitive) or (isinstance(body, Add) and any(isinstance(p, Primitive) for p in body.terms))
