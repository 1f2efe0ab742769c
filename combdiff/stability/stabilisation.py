"""Programs made ready to run without overflow: products of exponentials as one exponential of what stays bounded.

    exp(x[i]) / Σ_j exp(x[j])   →   exp(x[i] − log Σ_j exp(x[j]))           1 / (1 + exp(z))  →  exp(−log(1 + exp(z)))

The laws, of real numbers: exp(a)·exp(b) = exp(a + b), Σ_i exp(a)·f(i) = exp(a)·Σ_i f(i), and S = exp(L)·Σ_i sign(w[i])
exp(log|w[i]| + x[i] − L) for a weighted sum S = Σ_i w[i]·exp(x[i]) under a power or a logarithm, with
L = log Σ_i |w[i]| exp(x[i]). Every factor is written as exponentials of single addends, and these are put together, in
front of a Σ or inside of it, so that as few exponentials as possible may overflow (`overflow`). Logarithms of sums of
exponentials are evaluated as a whole (`lowering.exponentials`).

Invariant: the value is unchanged where the program has one without overflow.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import product
from math import prod

from combdiff.ir import (
    HALF,
    ONE,
    ZERO,
    Add,
    Delta,
    Guard,
    Lambda,
    Mul,
    Names,
    Number,
    Primitive,
    Sum,
    Term,
    Tuple,
    Var,
    add,
    canonical_names,
    dtype_of,
    inline_all,
    let,
    mul,
    negate,
    put_back,
    share,
    split,
    substitute,
    subterms,
    total,
)
from combdiff.simplification import closed, common_factors, factors_of, order_key
from combdiff.stability.exponentials import ELEMENTARY, holds_exp, is_logarithm, is_positive
from combdiff.stability.exponents import ExponentialProduct, addends_of, exponential, magnitude, put_together
from combdiff.stability.overflow import is_divided, risk, risky

MOST_TERMS = 64  # that a product is expanded to
MOST_COPIES = 4  # of a logarithm that a power gives


@lru_cache(maxsize=512)
def stable(program: Lambda) -> Lambda:
    """The program with quotients and logarithms of exponentials written so that they do not overflow."""
    bindings, result = split(program.body)
    if not holds_exp(program.body) or not _wanted(inline_all(program.body)):
        return program
    stabilising = _Stabilising(Names(program))
    inside: dict[Var, Term] = {}  # put where they are used, to be seen together
    tamed: dict[Var, Term] = {}  # put where they are used together with what may overflow
    kept: list[tuple[Var, Term]] = []

    def seen(value: Term) -> Term:
        found = put_back(value, inside, {})
        return put_back(value, inside | tamed, {}) if risk(found) else found

    for var, value in bindings:
        value = seen(value)
        new = stabilising.value(value)
        kept.append((var, new))
        if holds_exp(value) and _is_made_of_exponentials(_body(value)):
            inside[var] = new if isinstance(_body(new), Primitive) else value
        elif risk(new) or _is_bare(new):
            inside[var] = value
        elif new is not value:
            tamed[var] = value
    items = result.items if isinstance(result, Tuple) else (result,)
    found = tuple(stabilising.value(seen(item)) for item in items)
    return Lambda(program.parameters, share(let(kept, Tuple(found) if isinstance(result, Tuple) else found[0])))


def _is_made_of_exponentials(term: Term) -> bool:
    """Whether a term is sums, products and powers of exponentials and numbers."""
    if isinstance(term, Primitive) and term.name == "power":
        return isinstance(term.arguments[1], Number) and _is_made_of_exponentials(term.arguments[0])
    if isinstance(term, Add | Mul | Sum) or (isinstance(term, Primitive) and term.name == "sqrt"):
        return all(map(_is_made_of_exponentials, term.children))
    return isinstance(term, Number) or _is_exponential(term)


def _body(value: Term) -> Term:
    return value.body if isinstance(value, Lambda) else value


def _is_bare(term: Term) -> bool:
    """Whether an exponential in a term has an exponent without a logarithm, which something else may have to tame."""
    return any(
        isinstance(node, Primitive) and node.name == "exp" and not any(map(is_logarithm, subterms(node.arguments[0])))
        for node in _outside(term)
    )


def _outside(term: Term) -> Iterator[Term]:
    """The subterms outside of logarithms of sums of exponentials."""
    todo, seen = [term], {term}
    while todo:
        node = todo.pop()
        yield node
        new = [] if is_logarithm(node) else [child for child in node.children if child not in seen]
        seen.update(new)
        todo += new


def _wanted(term: Term) -> bool:
    """Whether the laws may keep a term from overflowing: it has a quotient or logarithm, or several exponentials."""
    nodes = list(subterms(term))
    if any(map(_is_quotient, nodes)):
        return True
    return risk(term) > 0 and any(is_logarithm(node) or _is_product(node) for node in nodes)


def _is_quotient(node: Term) -> bool:
    if not isinstance(node, Primitive):
        return False
    if node.name == "log":
        return holds_exp(node.arguments[0]) and dtype_of(node) is not complex and not is_logarithm(node)
    return node.name in ("power", "sqrt") and is_divided(node)


def _is_product(node: Term) -> bool:
    return isinstance(node, Mul) and sum(map(holds_exp, node.factors)) > 1


class _Stabilising:
    """Rewrites the terms of one program; `names` gives new names to what Σ's bind, as exponents move into them."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._known: dict[Term, Term] = {}

    def value(self, term: Term) -> Term:
        """A number or tensor by the laws, where they may help."""
        if isinstance(term, Lambda):
            return Lambda(term.parameters, self.value(term.body))
        if not holds_exp(term) or not _wanted(term):
            return term
        if term not in self._known:
            self._known[term] = _gathered([put_together(part) for part in self._products(term)])
        return self._known[term]

    # --- a term as a sum of products

    def _products(self, term: Term, opened: bool = False) -> list[ExponentialProduct]:
        """A term as a sum of products; Σ's that cannot overflow are factors as they are, unless `opened`."""
        if not holds_exp(term):
            return [ExponentialProduct((term,))]
        match term:
            case Add():
                return [part for inner in term.terms for part in self._products(inner, opened)]
            case Mul():
                solved = mul(*map(self._solved, term.factors))
                whole = _without_deltas(solved) if isinstance(solved, Mul) else solved
                return self._of_factors(whole, opened) if isinstance(whole, Mul) else self._products(whole, opened)
            case Sum():
                return self._of_sum(term, opened)
            case Primitive() if term.name in ELEMENTARY and dtype_of(term) is not complex:
                return self._of_function(term, opened)
        return [self._atom(term)]

    def _atom(self, term: Term) -> ExponentialProduct:
        return ExponentialProduct((term.with_children(tuple(map(self.value, term.children))),))

    def _of_factors(self, term: Term, opened: bool) -> list[ExponentialProduct]:
        """A product: sums in it stay whole, unless fewer exponentials may overflow when they are opened."""
        if opened:
            return self._opened(term)
        found = self._multiplied([self._whole(factor) for factor in factors_of(term)])
        danger = _danger(found)
        return opened_up if danger and _danger(opened_up := self._opened(term)) < danger else found

    def _opened(self, term: Term) -> list[ExponentialProduct]:
        """A product with the sums in it multiplied out, or as it is where they are too many."""
        choices = [self._products(factor, opened=True) for factor in factors_of(term)]
        if prod(map(len, choices)) > MOST_TERMS:
            return [ExponentialProduct(tuple(map(self.value, factors_of(term))))]
        return self._multiplied(choices)

    def _whole(self, factor: Term) -> list[ExponentialProduct]:
        found = self._products(factor)
        return [ExponentialProduct((self.value(factor),))] if len(found) > 1 else found

    def _multiplied(self, choices: Sequence[Sequence[ExponentialProduct]]) -> list[ExponentialProduct]:
        return [reduce(operator.mul, choice, ExponentialProduct()) for choice in product(*choices)]

    def _of_sum(self, term: Sum, opened: bool) -> list[ExponentialProduct]:
        solved = self._solved(term)
        if solved is not term:
            return self._products(solved, opened)
        renamed = {index: self.names.fresh(index) for index in term.indices}
        body = substitute(term.body, renamed)
        found = self._products(body, opened)
        if not opened and not _danger(found):
            return [ExponentialProduct((total(renamed.values(), self.value(body)),))]
        return [ExponentialProduct(sums=((tuple(renamed.values()), part),)) for part in found]

    def _solved(self, term: Term) -> Term:
        """A Σ without the δ's that determine one of its indices; other terms as they are."""
        if not isinstance(term, Sum):
            return term
        pairs = [(f.left, f.right) for f in factors_of(term.body) if isinstance(f, Delta)]
        alike = [(a, b) for a, b in pairs if isinstance(a, Var) and isinstance(b, Var) and a.type == b.type]
        solvable = any(index in term.indices for pair in alike for index in pair)
        solved = mul(*closed(term.indices, factors_of(term.body), self.names)) if solvable else term
        stays = isinstance(solved, Sum) and len(solved.indices) >= len(term.indices)  # on a cycle, δ(i, 3k) may stay
        return term if stays else solved

    def _of_function(self, term: Primitive, opened: bool) -> list[ExponentialProduct]:
        argument = term.arguments[0]
        match term.name:
            case "exp":
                return [ExponentialProduct(units=addends_of(self.value(argument)))]
            case "cosh" | "sinh":
                argument, sign = self.value(argument), ONE if term.name == "cosh" else Number(-1)
                negative = ExponentialProduct((mul(HALF, sign),), addends_of(negate(argument)))
                return [ExponentialProduct((HALF,), addends_of(argument)), negative]
            case "log" if found := self._scaled(argument):
                logarithm, rest = found
                return [
                    ExponentialProduct((part,))
                    for part in (*addends_of(logarithm), *([] if rest is None else [Primitive("log", (rest,))]))
                ]
            case "power" | "sqrt" if powered := self._of_power(term, opened):
                return [powered]
        return [self._atom(term)]

    def _of_power(self, term: Primitive, opened: bool) -> ExponentialProduct | None:
        """A power of what holds exponentials; None for others, and for whole powers of sums unless `opened`."""
        base, exponent = term.arguments if term.name == "power" else (term.arguments[0], HALF)
        if not opened and not is_divided(term) and not _is_exponential(base):
            return None
        found = self._scaled(base)
        if found is None:
            return None
        logarithm, rest = found
        count = abs(exponent.real) if isinstance(exponent, Number) else None
        copies = count if isinstance(count, int) and 0 < count <= MOST_COPIES else 1
        once = exponent if copies == 1 else Number(1 if exponent.real > 0 else -1)  # type: ignore[attr-defined]
        units = tuple(mul(once, part) for part in addends_of(logarithm)) * copies
        return ExponentialProduct(() if rest is None else (Primitive("power", (rest, exponent)),), units)

    # --- sums under powers and logarithms

    def _scaled(self, term: Term) -> tuple[Term, Term | None] | None:
        """L and r with term = exp(L)·r, no part of r above 1; r is None for 1. None where there is no such form."""
        found = self._over_one([self._flat(part) for part in self._products(term, opened=True)])
        if not any(part.units for _, part in found):
            return None
        if any(isinstance(f, Guard) or dtype_of(f) is complex for _, part in found for f in part.factors):
            return None
        if len(found) == 1 and not found[0][0]:
            factors, units = found[0][1].factors, found[0][1].units
            numbers = [f for f in factors if isinstance(f, Number) and f.real > 0]
            rest = [f for f in factors if f not in numbers]
            logarithms = [] if mul(*numbers) is ONE else [Primitive("log", (mul(*numbers),))]
            return add(*units, *logarithms), mul(*rest) if rest else None
        weighted = [(indices, *_weight(part)) for indices, part in found]
        terms = (total(indices, mul(number, exponential(units))) for indices, _, number, units in weighted)
        logarithm = canonical_names(Primitive("log", (add(*terms),)))
        if all(sign is ONE for _, sign, _, _ in weighted):
            return logarithm, None
        down = negate(logarithm)
        rests = (
            total(indices, mul(sign, number, exponential((*units, down)))) for indices, sign, number, units in weighted
        )
        return logarithm, add(*rests)

    def _over_one(
        self, found: list[tuple[tuple[Var, ...], ExponentialProduct]]
    ) -> list[tuple[tuple[Var, ...], ExponentialProduct]]:
        """Products of both signs over a common denominator, if all have one sign then: 1 − 1/(1 + e) is e/(1 + e)."""
        numbers = [mul(*part.factors) for _, part in found]
        plain = all(
            isinstance(number, Number) and not indices for number, (indices, _) in zip(numbers, found, strict=True)
        )
        if not plain or all(map(is_positive, numbers)):
            return found
        logarithms = [Counter(_denominators(part.units)) for _, part in found]
        most: Counter[Term] = reduce(operator.or_, logarithms)
        sums: dict[tuple[Term, ...], Term] = {}
        for number, (_, part), own in zip(numbers, found, logarithms, strict=True):
            opened = ExponentialProduct((number,), tuple(unit for unit in part.units if not _denominators((unit,))))
            missing = [self._products(log.children[0], opened=True) for log in (most - own).elements()]
            for each in self._multiplied([[opened], *missing]) if prod(map(len, missing)) <= MOST_TERMS else ():
                if each.sums or not isinstance(mul(*each.factors), Number):
                    return found
                key = tuple(sorted(addends_of(add(*each.units)), key=order_key))
                sums[key] = add(sums.get(key, ZERO), *(mul(*each.factors),))
        kept = {units: number for units, number in sums.items() if number is not ZERO}
        if not most or not kept or len({is_positive(number) for number in kept.values()}) > 1:
            return found
        down = tuple(map(negate, most.elements()))
        return [((), ExponentialProduct((number,), (*units, *down))) for units, number in kept.items()]

    def _flat(self, part: ExponentialProduct) -> tuple[tuple[Var, ...], ExponentialProduct]:
        """A product with at most one Σ as one Σ over all of it; of several Σ's all are scaled."""
        if not part.sums:
            return (), part
        own = ExponentialProduct(part.factors, part.units)
        if len(part.sums) == 1:
            indices, inner = part.sums[0]
            more, flat = self._flat(inner)
            return (*indices, *more), own * flat
        for indices, inner in part.sums:
            whole = total(indices, put_together(inner))
            scaled = self._scaled(whole)
            own = own * (
                ExponentialProduct((whole,))
                if scaled is None
                else ExponentialProduct(_present(scaled[1]), addends_of(scaled[0]))
            )
        return (), own


def _denominators(units: Iterable[Term]) -> list[Term]:
    """The logarithms that are subtracted, each as often as it is."""
    found: list[Term] = []
    for unit in units:
        number, *rest = factors_of(unit)
        whole = isinstance(number, Number) and isinstance(number.real, int) and number.real < 0
        if whole and len(rest) == 1 and is_logarithm(rest[0]):
            found += [canonical_names(rest[0])] * -number.real  # type: ignore[attr-defined]
    return found


def _danger(parts: Iterable[ExponentialProduct]) -> int:
    """How many different exponentials in a sum of products may overflow."""
    return len(frozenset[Term]().union(*(risky(put_together(part)) for part in parts)))


def _present(term: Term | None) -> tuple[Term, ...]:
    return () if term is None else (term,)


def _weight(part: ExponentialProduct) -> tuple[Term, Term, tuple[Term, ...]]:
    """The sign of a product, a positive number, and units, of which the product is made."""
    number = mul(*(f for f in part.factors if isinstance(f, Number)))
    assert isinstance(number, Number)
    positive = ONE if number.real > 0 else Number(-1)
    found = [magnitude(f) for f in part.factors if not isinstance(f, Number)]
    return mul(positive, *(sign for sign, _ in found)), mul(positive, number), (*part.units, *(m for _, m in found))


def _is_exponential(term: Term) -> bool:
    return isinstance(term, Primitive) and term.name == "exp"


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
