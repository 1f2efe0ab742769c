"""Programs made ready to run without overflow: quotients of exponentials as exponentials of what stays bounded.

    exp(x[i]) / Σ_j exp(x[j])   →   exp(x[i] − log Σ_j exp(x[j]))           1 / (1 + exp(z))  →  exp(−log(1 + exp(z)))

The laws of rules/stable.egg give the equal forms; taken is the one with the fewest exponentials that may overflow. An
exponential cannot where its exponent is at most 0 whatever the tensors are: x[i] − log Σ_j exp(x[j]) is, since
exp(x[i]) is one of the terms of the sum. Logarithms of such sums are evaluated as a whole (`lowering.exponentials`).

Invariant: the value is unchanged where the program has one without overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import prod

from combdiff.checking import is_domain
from combdiff.egraph.canonical import canonical
from combdiff.egraph.context import Context
from combdiff.egraph.contraction import normalise
from combdiff.egraph.saturation import simplify
from combdiff.expansion import common_factors, factors_of
from combdiff.exponentials import is_positive, parts
from combdiff.indexing import Delta
from combdiff.rulefiles.loading import STABLE, rule_directory
from combdiff.sharing import inline_all, put_back, share, split
from combdiff.substitution import Names, substitute, subterms
from combdiff.terms import Add, Lambda, Mul, Number, Primitive, Sum, Term, Tuple, Var, add, let, mul, total

MOST_TERMS = 64  # that a product is expanded to

Exponent = dict[Term, Fraction]
"""A sum as multiples of canonical terms."""


@lru_cache(maxsize=512)
def stable(program: Lambda) -> Lambda:
    """The program with quotients and logarithms of exponentials written so that they do not overflow."""
    bindings, result = split(program.body)
    if not _holds_exp(program.body) or not any(map(_is_quotient, subterms(inline_all(program.body)))):
        return program
    inside: dict[Var, Term] = {}  # put where they are used, for the laws to see them together
    tamed: dict[Var, Term] = {}  # put where they are used together with what may overflow
    kept: list[tuple[Var, Term]] = []

    def seen(value: Term) -> Term:
        found = put_back(value, inside, {})
        return put_back(value, inside | tamed, {}) if _risk(found) else found

    for var, value in bindings:
        value = seen(value)
        new = _stable(value)
        kept.append((var, new))
        if _is_exponential(value):
            inside[var] = new if isinstance(_body(new), Primitive) else value
        elif _wants_laws(value):
            (inside if _risk(new) else tamed)[var] = new
    items = result.items if isinstance(result, Tuple) else (result,)
    stabilised = tuple(_stable(seen(item)) for item in items)
    return Lambda(
        program.parameters, share(let(kept, Tuple(stabilised) if isinstance(result, Tuple) else stabilised[0]))
    )


def _is_exponential(value: Term) -> bool:
    """Whether a value is made of exponentials, and positive by its form."""
    return is_positive(_body(value)) and _holds_exp(value)


def _body(value: Term) -> Term:
    return value.body if isinstance(value, Lambda) else value


def _holds_exp(term: Term) -> bool:
    return any(isinstance(node, Primitive) and node.name == "exp" for node in subterms(term))


def _stable(value: Term) -> Term:
    """A number or tensor by the laws, where they may help: each term of a sum by itself."""
    if not _wants_laws(value):
        return value
    if isinstance(value, Lambda):
        return Lambda(value.parameters, _stable(value.body))
    return _gathered(list(map(_stable_product, _expanded(value))))


def _stable_product(term: Term) -> Term:
    """A term of a sum by the laws, Σ's in it first."""
    if isinstance(term, Mul):
        term = _without_deltas(term)
        term = term.with_children(tuple(_stable(f) if isinstance(f, Sum) else f for f in term.children))
    if not _wants_laws(term):
        return term
    rules = (str(rule_directory() / STABLE),)
    return simplify(term, rules, context=Context(positive=is_positive, risk=_risk))


def _gathered(parts: Sequence[Term]) -> Term:
    """The sum of products, with what all of them have in common in front: one matrix product, not one for each."""
    if len(parts) < 2:
        return add(*parts)
    common, rests = common_factors([factors_of(part) for part in parts])
    return mul(*common, add(*(mul(*rest) for rest in rests)))


def _without_deltas(term: Mul) -> Term:
    """δ(i, j)·f(i, j) as δ(i, j)·f(i, i), so that what cancels where the δ is 1 can be seen."""
    for delta in (f for f in term.factors if isinstance(f, Delta)):
        left, right = delta.left, delta.right
        if isinstance(left, Var) and isinstance(right, Var) and left.type == right.type:
            others = (f if f is delta else substitute(f, {right: left}) for f in term.factors)
            return mul(*others)
    return term


def _expanded(term: Term) -> list[Term]:
    """The terms of a sum, products expanded over sums in them that may be negative."""
    if is_positive(term):
        return [term]
    match term:
        case Add():
            return [part for inner in term.terms for part in _expanded(inner)]
        case Mul():
            choices = [_expanded(factor) for factor in term.factors]
            return [mul(*factors) for factors in product(*choices)] if prod(map(len, choices)) <= MOST_TERMS else [term]
        case Sum():
            settled = total(term.indices, _stable(term.body))
            return [total(term.indices, part) for part in _expanded(term.body)] if _risk(settled) else [settled]
    return [term]


def _wants_laws(term: Term) -> bool:
    """Whether laws may keep a term from overflowing."""
    return _has_quotient(term) or (
        _risk(term) > 0 and any(_is_logarithm(node) or _is_product(node) for node in subterms(term))
    )


def _has_quotient(term: Term) -> bool:
    return any(map(_is_quotient, subterms(term)))


def _is_product(node: Term) -> bool:
    """Whether a node is a product of several exponentials, of which one may tame the other."""
    return isinstance(node, Mul) and sum(isinstance(f, Primitive) and f.name == "exp" for f in node.factors) > 1


def _is_logarithm(node: Term) -> bool:
    """Whether a node is the logarithm of a sum of exponentials."""
    return isinstance(node, Primitive) and node.name == "log" and bool(parts(node.arguments[0]))


def _is_quotient(node: Term) -> bool:
    """Whether laws may keep a node from overflowing: a power of a sum of exponentials, a logarithm of a product."""
    if not isinstance(node, Primitive) or node.name not in ("power", "log", "sqrt"):
        return False
    base = node.arguments[0]
    return _is_exponential(base) and not _is_logarithm(node)


# --- which exponentials may overflow -------------------------------------------------------------------------------


def _risk(term: Term) -> int:
    """How many different exponentials in a term may overflow."""
    return len(_risky(_body(term)))


@lru_cache(maxsize=65536)
def _risky(term: Term) -> frozenset[Term]:
    """The exponentials in a term that may overflow; those of a sum inside a logarithm cannot."""
    inside: Iterable[Term] = term.children
    if isinstance(term, Primitive) and term.name == "log" and (found := parts(term.arguments[0])):
        inside = (part.exponent for part in found)
    risky = frozenset[Term]().union(*map(_risky, inside))
    return risky | {term} if _is_risky(term) else risky


def _is_risky(term: Term) -> bool:
    """Whether a term is an exponential without bound, or the reciprocal of one."""
    if not isinstance(term, Primitive):
        return False
    if term.name == "power":
        exponent = term.arguments[1]
        return isinstance(exponent, Number) and exponent.real < 0 and _is_exponential(term.arguments[0])
    return term.name == "exp" and not _is_bounded(term.arguments[0])


def _is_bounded(exponent: Term) -> bool:
    """Whether a sum of terms and −log(…) is at most 0, each logarithm being that of a sum with such an exponential."""
    terms, constant = _multiples(exponent)
    return constant <= 0 and _cancels(terms, frozenset(v for v in exponent.free if is_domain(v.type)))


def _cancels(terms: Exponent, indices: frozenset[Var]) -> bool:
    if not terms:
        return True
    logarithm = next((t for t, c in terms.items() if c <= -1 and isinstance(t, Primitive) and t.name == "log"), None)
    if logarithm is None:
        return False
    rest = _plus(terms, {logarithm: Fraction(1)})
    return any(
        _cancels(left, indices)
        for summand in _summands(logarithm.children[0], indices)
        if (left := _less(rest, summand)) is not None
    )


def _summands(sum_: Term, indices: frozenset[Var]) -> Iterator[Exponent]:
    """The exponents in a sum of exponentials of weight 1 or more, at the indices that are given."""
    for part in parts(sum_):
        choices = [[v for v in sorted(indices, key=lambda v: v.name) if v.type == index.type] for index in part.indices]
        for values in product(*choices) if part.weight.real >= 1 else ():
            terms, constant = _multiples(substitute(part.exponent, dict(zip(part.indices, values, strict=True))))
            if not constant:
                yield terms


def _less(terms: Exponent, other: Exponent) -> Exponent | None:
    """terms − other, where each multiple of other is part of that in terms."""
    for term, factor in other.items():
        if terms.get(term, Fraction(0)) * factor < factor * factor:
            return None
    return _plus(terms, {term: -factor for term, factor in other.items()})


def _plus(one: Exponent, other: Exponent) -> Exponent:
    total = {term: one.get(term, Fraction(0)) + other.get(term, Fraction(0)) for term in {**one, **other}}
    return {term: factor for term, factor in total.items() if factor}


@lru_cache(maxsize=65536)
def _multiples(term: Term) -> tuple[Exponent, float | Fraction]:
    """A term as multiples of canonical terms, and a number. (The dict is not to be changed.)"""
    if isinstance(term, Add):
        found: Exponent = {}
        constant: float | Fraction = Fraction(0)
        for part in term.terms:
            more, number = _multiples(part)
            found, constant = _plus(found, more), constant + number
        return found, constant
    if isinstance(term, Number):
        return ({}, term.real) if not term.imag else ({term: Fraction(1)}, Fraction(0))
    if isinstance(term, Mul) and isinstance(first := term.factors[0], Number) and first.exact and not first.imag:
        rest = Mul(term.factors[1:]) if len(term.factors) > 2 else term.factors[1]
        more, number = _multiples(rest)
        factor = Fraction(first.real)
        return {t: f * factor for t, f in more.items()}, number * factor
    if isinstance(term, Primitive) and term.name == "log" and parts(term.arguments[0]):
        return {term: Fraction(1)}, Fraction(0)  # as it is: a canonical form may hide the signs of the sum
    named = canonical(normalise(term, Names(term)))
    return (
        _multiples(named)
        if isinstance(named, Add | Number) or _has_factor(named)
        else ({named: Fraction(1)}, Fraction(0))
    )


def _has_factor(term: Term) -> bool:
    return isinstance(term, Mul) and isinstance(first := term.factors[0], Number) and first.exact and not first.imag
