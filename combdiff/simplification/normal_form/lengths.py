"""How long a term is to read: the symbols of its print in index notation, commas not counted.

    2 Σ_i A[d,i]·x[i]²    has    1 + 2 + 5 + 5    symbols

A factor that occurs again is a power, one over a power a fraction, −1 a sign, and a number is one symbol.

Invariant: equal terms have equal lengths, and what is added to a term makes it longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from combdiff.ir import (
    Add,
    Apply,
    Conj,
    Coordinate,
    Lambda,
    Mul,
    Number,
    Primitive,
    Scan,
    Sum,
    Term,
    Var,
    add,
    factors_of,
    function,
    half_turns,
    items_of,
    iteration_of,
    mul,
    negate,
    places_around,
    remembered,
    split,
    total,
    with_moduli,
)
from combdiff.simplification.egraph.extraction import holds_number


def length(body: Term) -> int:
    """How many symbols a let program takes in index notation, a definition once; commas are not counted."""
    bindings, result = split(body)
    iterations = {iteration_of(value): value for _, value in bindings if isinstance(value, Scan)}
    values = (value for _, value in bindings if not isinstance(value, Scan))
    return sum(map(_defined, values)) + sum(map(_iteration, iterations.values())) + sum(map(_inner, items_of(result)))


def _inner(value: Term) -> int:
    return printed_length(value.body if isinstance(value, Lambda) else value)


def _defined(value: Term, steps: int = 0) -> int:
    """The symbols of a definition, at so many steps."""
    own = len(value.parameters) if isinstance(value, Lambda) else 0
    return 2 + _indices(steps + own) + _inner(value)


def _iteration(scan: Scan) -> int:
    """The symbols of a recurrence: its boundary values, what its steps bind, and what else they give."""
    bound = [var for var, _ in scan.bindings]
    states, others = scan.outputs[: len(scan.states)], scan.outputs[len(scan.states) :]
    values = (*scan.starts, *(value for _, value in scan.bindings), *states, *(v for v in others if v not in bound))
    return sum(_defined(value, 1) for value in values)


def _indices(count: int) -> int:
    """The symbols of `[i,j]`."""
    return 2 + count if count else 0


@remembered
def printed_length(term: Term) -> int:
    """How many symbols a scalar term takes in index notation."""
    match term:
        case Number():
            return 1 + (term.real < 0) + 2 * (half_turns(term.real or term.imag).denominator > 1)
        case Var():
            return 1
        case Sum():
            return _sum(term)
        case Mul():
            return _product(term.factors)
        case Add():
            negative = sum(is_negative(part) for part in term.terms)
            return sum(map(printed_length, term.terms)) + len(term.terms) - 1 - min(negative, len(term.terms) - 1)
        case Conj():
            return 1 + _bracketed(term.body)
        case Primitive(name="power"):
            base, exponent = term.arguments
            return _product((term,)) if _is_below(exponent) else _bracketed(base) + _raised(exponent)
        case Coordinate():
            return printed_length(term.form)
        case Apply():
            return printed_length(term.function) + 2 + sum(map(printed_length, term.arguments))
        case Primitive(name="real" | "imag", arguments=(argument,)):  # a number reads better in front
            return 3 + printed_length(argument) + holds_number(argument)
        case Primitive(name="abs"):
            return 2 + printed_length(term.arguments[0])
        case Primitive(name="remainder"):
            return 1 + sum(map(_bracketed, term.arguments))
    return 1 + (2 if term.children else 0) + sum(map(printed_length, term.children))


def _sum(term: Sum) -> int:
    """The symbols of a Σ; of an index around an axis, `(i - 1) mod n`, those wherever it is read."""
    places = places_around(term)
    if not places:
        return 1 + len(term.indices) + _bracketed(term.body)
    summed = {index for index, _, _ in places.values()}
    others = (factor for factor in factors_of(term.body) if factor not in places)
    rest = total((i for i in term.indices if i not in summed), mul(*others))
    return printed_length(rest) + sum(
        (printed_length(form) + 1) * _uses(rest, index) for index, form, _ in places.values()
    )


def _uses(term: Term, index: Var) -> int:
    """How often an index is written in a term."""
    return 1 if term is index else sum(_uses(child, index) for child in term.children if index in child.free)


def length_alone(term: Term) -> int:
    """How many symbols a scalar term takes by itself, where −½ (a − b) is printed as ½ (b − a)."""
    return printed_length(term) - (is_negative(term) and any(map(_holds_difference, factors_of(term))))


def _holds_difference(factor: Term) -> bool:
    """Whether the negative of a factor is as long."""
    if isinstance(factor, Sum):
        return any(map(_holds_difference, factors_of(factor.body)))
    return isinstance(factor, Add) and any(map(is_negative, factor.terms))


def is_negative(term: Term) -> bool:
    """Whether a term begins with a negative number."""
    first = term.factors[0] if isinstance(term, Mul) else term
    return isinstance(first, Number) and first.real < 0


def _is_below(exponent: Term) -> bool:
    """Whether a power with that exponent is written as a fraction."""
    return isinstance(exponent, Number) and exponent.real < 0


def _raised(exponent: Term) -> int:
    """The symbols of `²`, `^a` or `^(a - 1)`."""
    if isinstance(exponent, Number):
        return printed_length(exponent)
    return printed_length(exponent) + (3 if isinstance(exponent, Add | Mul) else 1)


def _product(factors: Sequence[Term]) -> int:
    """The symbols of a product: −1 is a sign, a factor that occurs again a power, and one over a power a fraction."""
    first = factors[0]
    sign = isinstance(first, Number) and first.real == -1 and not first.imag
    if sign and len(factors) == 2 and isinstance(negative := factors[1], Add):
        return printed_length(add(*map(negate, negative.terms)))  # -(a + b) is printed -a - b
    above: Counter[Term] = Counter(factor for factor in factors if not sign or factor is not first)
    below: Counter[Term] = Counter()
    for factor in list(above):
        if isinstance(factor, Primitive) and factor.name == "power" and _is_below(factor.arguments[1]):
            base, exponent = factor.arguments
            assert isinstance(exponent, Number)
            if isinstance(exponent.real, int):
                times = -exponent.real * above.pop(factor)
                below.update({part: times * count for part, count in Counter(factors_of(base)).items()})
            else:
                below[function("power", base, negate(exponent))] += above.pop(factor)
    above, below = Counter(with_moduli(above)), Counter(with_moduli(below))
    whole = sign + (_powers(above) or 1)
    if not below:
        return whole
    brackets = 2 * any(isinstance(factor, Sum) for factor in above) + 2 * (len(below) > 1)
    return whole + 1 + _powers(below) + brackets


def _powers(factors: Counter[Term]) -> int:
    """The symbols of factors, each with a raised number where it occurs again."""
    return sum(_bracketed(factor) + (count != 1) for factor, count in factors.items())


def _bracketed(term: Term) -> int:
    return printed_length(term) + (2 if isinstance(term, Add) else 0)
