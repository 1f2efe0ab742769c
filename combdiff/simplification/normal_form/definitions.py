"""Definitions that a reader does without: a binding is written where it is used if the program then is shorter.

    let t = tanh(z) in 1 − t²                     →   1 − tanh(z)²
    let u[i] = Σ_j Q[i,j] y[j] in Σ_i B[i,d] u[i]   →   Σ_{i,j} B[i,d] Q[i,j] y[j]

Sharing binds what occurs twice in the graph of a program; what is printed twice is less, since a square is written once.
The length is that of the print: a definition counts its name, its indices and the sign =, where it stands.

Invariant: the value is unchanged, the work, with equal parts computed once, is no more, and the length is less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from combdiff.ir import (
    Add,
    Apply,
    Conj,
    Implicit,
    Lambda,
    Mul,
    Names,
    Number,
    Primitive,
    Sum,
    Term,
    Var,
    bind_heavy,
    is_call,
    is_field,
    items_of,
    joined,
    let,
    matrices_in,
    put_back,
    remembered,
    split,
    values_of,
)
from combdiff.simplification.egraph.extraction import parts_cost
from combdiff.simplification.normal_form.canonical import canonical
from combdiff.simplification.normal_form.contraction import normalise

MOST_BINDINGS = 12  # of a program whose definitions are weighed one by one
LONGEST = 400  # symbols of such a program


def without_short_definitions(body: Term) -> Term:
    """A let program without the bindings that make it longer to read and spare no work."""
    bindings = split(body)[0]
    if not bindings or len(bindings) > MOST_BINDINGS or length(body) > LONGEST:
        return body
    held = matrices_in(body)
    price = _price(body)
    for var, value in reversed(bindings):
        if var in held or is_call(value) or is_field(value):
            continue
        for candidate in _without(body, var):
            if length(candidate) < price[1] and (new := _price(candidate)) < price and new[0] <= price[0]:
                body, price = candidate, new
                break
    return body


def _price(body: Term) -> tuple[float, int]:
    """The work of a program with equal parts computed once, and its length."""
    work: dict[Term, float] = {}
    for value in values_of(bind_heavy(body)):
        work.update(parts_cost(value.body if isinstance(value, Lambda) else value))
    return sum(work.values()), length(body)


def _without(body: Term, var: Var) -> Iterator[Term]:
    """The program with the value of a binding where it is used: in the networks that read it, and as it stands."""
    bindings, result = split(body)
    replacement = {var: value for bound, value in bindings if bound is var}
    kept = [(bound, put_back(value, replacement)) for bound, value in bindings if bound is not var]
    items = [put_back(item, replacement) for item in items_of(result)]
    before = {*values_of(body)}

    def opened(value: Term) -> Term:
        return value if value in before or isinstance(value, Implicit) else _one_network(value)

    yield let([(bound, opened(value)) for bound, value in kept], joined(result, map(opened, items)))
    yield let(kept, joined(result, items))


def _one_network(value: Term) -> Term:
    """A value whose Σ's in one another are one."""
    if is_call(value):
        return value
    body = value.body if isinstance(value, Lambda) else value
    found = canonical(normalise(body, Names(value)))
    return Lambda(value.parameters, found) if isinstance(value, Lambda) else found


# --- the length of a print -----------------------------------------------------------------------------------------


def length(body: Term) -> int:
    """How many symbols a let program takes in index notation, a definition once; commas are not counted."""
    bindings, result = split(body)
    heads = sum(2 + _indices(len(value.parameters)) if isinstance(value, Lambda) else 2 for _, value in bindings)
    return heads + sum(_inner(value) for _, value in bindings) + sum(_inner(item) for item in items_of(result))


def _inner(value: Term) -> int:
    return _length(value.body if isinstance(value, Lambda) else value)


def _indices(count: int) -> int:
    """The symbols of `[i,j]`."""
    return 2 + count if count else 0


@remembered
def _length(term: Term) -> int:
    match term:
        case Number():
            return (1 if term.exact and isinstance(term.real, int) else 3) + (term.real < 0)
        case Var():
            return 1
        case Sum():
            return 1 + len(term.indices) + _bracketed(term.body)
        case Mul():
            return _product(term)
        case Add():
            negative = sum(_is_negative(part) for part in term.terms)
            return sum(map(_length, term.terms)) + len(term.terms) - 1 - min(negative, len(term.terms) - 1)
        case Conj():
            return 1 + _bracketed(term.body)
        case Primitive(name="power"):
            base, exponent = term.arguments
            if isinstance(exponent, Number) and exponent.real == -1:
                return 2 + _bracketed(base)
            return _bracketed(base) + _length(exponent)
        case Apply():
            return _length(term.function) + 2 + sum(map(_length, term.arguments))
    return 1 + (2 if term.children else 0) + sum(map(_length, term.children))


def _is_negative(term: Term) -> bool:
    first = term.factors[0] if isinstance(term, Mul) else term
    return isinstance(first, Number) and first.real < 0


def _product(term: Mul) -> int:
    """The symbols of a product: −1 is a sign, a factor that occurs again a power, and one over a power a fraction."""
    number = 0
    if isinstance(first := term.factors[0], Number):
        number = 1 if first.real == -1 and not first.imag else _length(first)
    counts = Counter(factor for factor in term.factors if not isinstance(factor, Number))
    return number + sum(_bracketed(factor) + (count > 1) for factor, count in counts.items())


def _bracketed(term: Term) -> int:
    return _length(term) + (2 if isinstance(term, Add) else 0)
