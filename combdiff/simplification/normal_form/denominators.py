"""One denominator: sums of fractions as one fraction, and fractions in a divisor cleared, where that is shorter.

    a/(c x + d) − c (a x + b)/(c x + d)²    →   (a d − b c)/(c x + d)²
    r/(c² (1 + r²/c²))                      →   r/(c² + r²)
    y[d] (t[d] − c)/t[d]                    →   y[d] (1 − c/t[d])
    12 s/r⁷ − 7 (1 − 2 s/r³)/r⁴             →   26 s/r⁷ − 7/r⁴
    1/√(a² + x²) − x²/√(a² + x²)³           →   a²/√(a² + x²)³
    2 u/s − 2 v w/s²                        →   2 (u − v w/s)/s
    n log(x) xⁿ⁻¹ + xⁿ/x                    →   xⁿ⁻¹ (n log(x) + 1)
    1/(2 t), t = 1/s                        →   s/2
    x² − 2 x y + y²                         →   (x − y)²

A sum over one denominator has a polynomial above it. It is multiplied out, as what cancels in it is seen only then.
Nothing is done with sums that hold a condition: [x ≠ y]/(x − y) is 0 where x = y, and one over x − y would not be.

Invariant: the value is unchanged wherever it is defined, the work is no more, and each step makes the print shorter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, combinations, permutations, product
from math import ceil, floor, prod

from combdiff.ir import (
    MINUS_ONE,
    ONE,
    ZERO,
    Add,
    Apply,
    Guard,
    Mul,
    Number,
    Primitive,
    Rewriter,
    Sum,
    Term,
    Var,
    add,
    dtype_of,
    factors_beside,
    factors_of,
    function,
    mul,
    negate,
    put_back,
    raised,
    remembered,
    subterms,
    tidy,
    total,
    whole_power,
)
from combdiff.simplification.egraph.extraction import parts_work
from combdiff.simplification.normal_form.angles import with_angles_added
from combdiff.simplification.normal_form.canonical import canonical
from combdiff.simplification.normal_form.joined_networks import primitive
from combdiff.simplification.normal_form.lengths import is_negative, printed_length
from combdiff.simplification.normal_form.polynomials import exact_quotient, exact_root

MOST_TERMS = 12  # of a numerator that is multiplied out
MOST_POWER = 4  # of a sum in it
HALF = Fraction(1, 2)

Exponent = int | Fraction  # whole ones are ints, which are added up far quicker
Powers = Mapping[Term, Exponent]  # of the bases of a product
Part = tuple[Number, Powers]  # a product, an addend of a polynomial


@remembered
def over_one_denominator(term: Term) -> Term:
    """A term whose sums of fractions are one fraction where that is shorter and no more work."""
    if not isinstance(term, Add | Mul | Sum | Primitive):
        return term
    children = tuple(over_one_denominator(child) for child in term.children)
    new = term if children == term.children else term.with_children(children)
    if isinstance(new, Add):
        return _shortest(new, chain(_forms(new), [with_angles_added(new)]))
    if isinstance(new, Sum):
        return _shortest(new, _with_divisors_summed(new))
    if isinstance(new, Mul) or is_fraction(new):
        forms = (*_gathered(new), *_opened(new), *_divided(new), *_multiplied(new, [_powers(new)]), *_under_sums(new))
        return _shortest(new, (*forms, *_divided_without_rest(new)))
    return new


def is_fraction(term: Term) -> bool:
    """Whether a term is divided by something: a product with a whole power below a line."""
    return any(whole_power(factor)[1] < 0 for factor in factors_of(term))


def without_fractions_below(term: Term, fractions: Mapping[Var, Term]) -> Term:
    """A term with the fractions below its lines turned over, those with names too: with t = 1/s, (2 t)⁻¹ is s/2.

    It is no more work: a division goes for each factor that rises. Nor are products in which named fractions cancel:
    with t = 1/s and u = s/x, x t u is 1.
    """
    return _TurningOver(fractions).run(term)


class _TurningOver(Rewriter):
    def __init__(self, fractions: Mapping[Var, Term]) -> None:
        super().__init__()
        self.fractions = fractions

    def node(self, term: Term) -> Term:
        new = self._with_names_cancelled(self.inside(term))
        base, n = whole_power(new)
        factors = [self._written_out(factor) for factor in factors_of(base)] if n < 0 else []
        powers = [power for factor in factors for power in _whole_powers(factor)]
        if all(m > 0 for _, m in powers):
            return new
        below = mul(*(raised(inner, m) for inner, m in powers if m > 0))
        return mul(raised(below, n), *(_raised(inner, m * n) for inner, m in powers if m < 0))

    def _with_names_cancelled(self, product_: Term) -> Term:
        """A product with the named fractions written out that share a factor with another, if fewer are left."""
        written = {factor: self._written_out(factor) for factor in factors_of(product_)}
        powers = {factor: _powers(value)[1] for factor, value in written.items()}

        def cancels(factor: Term) -> bool:
            others = (powers[other] for other in written if other is not factor)
            return any(n * other.get(base, 0) < 0 for other in others for base, n in powers[factor].items())

        opened = {factor for factor, value in written.items() if value is not factor and cancels(factor)}
        if not opened:
            return product_
        number, left = _powers(mul(*(written[f] if f in opened else f for f in factors_of(product_))))
        return mul(number, _product(left)) if _degree(left) < _degree(_powers(product_)[1]) else product_

    def _written_out(self, factor: Term) -> Term:
        """A factor, by its value where it is a fraction with a name or a power of one."""
        read, _ = whole_power(factor)
        named = read.function if isinstance(read, Apply) else read
        return put_back(factor, self.fractions) if isinstance(named, Var) else factor


def _degree(powers: Powers) -> Exponent:
    """How many factors a product has, above a line and below."""
    return sum(max(n, -n) for n in powers.values())


def with_roots_squared(term: Term) -> Term:
    """A term whose products have no root twice: s x for √s √s x, which a definition of √s has become."""
    return _SquaringRoots().run(term)


class _SquaringRoots(Rewriter):
    def node(self, term: Term) -> Term:
        new = self.inside(term)
        roots = [f for f in factors_of(new) if isinstance(f, Primitive) and f.name == "sqrt"]
        if len({*roots}) == len(roots):
            return new
        number, powers = _powers(new)
        return mul(number, _product(powers))


def _whole_powers(product_: Term, exponent: int = 1) -> Iterator[tuple[Term, int]]:
    """The bases of a product of fractions, those of powers of fractions too, with their exponents."""
    for factor in factors_of(product_):
        base, n = whole_power(factor)
        if n != 1 and is_fraction(base):
            yield from _whole_powers(base, n * exponent)
        else:
            yield base, n * exponent


def _shortest(term: Term, forms: Iterable[Term]) -> Term:
    """The shortest of the forms of a term that take no more work, the term itself if none is shorter.

    Of forms as long the one that takes least, the first of those.
    """
    length, work = printed_length(term), _work(term)
    shorter = [form for form in forms if printed_length(form) < length and _is_tame(form) and _work(form) <= work]
    return min(shorter, key=lambda form: (printed_length(form), _work(form)), default=term)


def _work(term: Term) -> float:
    return sum(parts_work(term).values())


def _is_tame(product_: Term) -> bool:
    """Whether no sum above a line has a higher power of what is below it: (x³ − 2)/x⁷ is ∞/∞ where 1/x⁴ is small."""
    _, powers = _powers(product_)
    sums = (base for base, n in powers.items() if isinstance(base, Add) and n > 0)
    inside = (each for base in sums for part in base.terms for each in _powers(part)[1].items())
    return not any(n > 1 and powers.get(base, 0) < 0 for base, n in inside)


def _forms(sum_: Add) -> Iterator[Term]:
    """A sum as a product: its common divisors in front, or over one denominator, which may be multiplied out."""
    if _holds_condition(sum_):
        return
    parts = _with_divisors_apart([_powers(part) for part in sum_.terms])
    fractional = [any(isinstance(base, Add) and n < 0 for base, n in powers.items()) for _, powers in parts]
    if 1 < sum(fractional) < len(parts):  # the fractions among the terms by themselves
        fractions = add(*(part for part, has in zip(sum_.terms, fractional, strict=True) if has))
        others = [part for part, has in zip(sum_.terms, fractional, strict=True) if not has]
        yield from (add(*others, form) for form in (_forms(fractions) if isinstance(fractions, Add) else ()))
    yield from _multiplied(sum_, parts)
    bases = dict.fromkeys(base for _, powers in parts for base in powers)
    exponents = {base: [powers.get(base, 0) for _, powers in parts] for base in bases}
    symbolic = {base.children[0] for base in bases if _is_symbolic_power(base)}
    shared = {base: min(each) if base in symbolic else _common(each) for base, each in exponents.items()}
    if any(shared.values()):
        rest = add(*(mul(number, _product(_quotient(powers, shared))) for number, powers in parts))
        yield mul(_product(shared), *primitive(rest))
    if not any(n < 0 for _, powers in parts for n in powers.values()):
        return
    below = {base: min(each) for base, each in exponents.items()}
    divisors = [base for base, n in below.items() if n and isinstance(base, Add)]
    sums = [base for base in bases if isinstance(base, Add)]
    divided = bool(divisors)
    for opened in (divisors, *([sums] if len(sums) > len(divisors) or not divided else [])):
        above = _polynomial_sum(parts, below, opened)
        if above is None or (divided and len(above) > len(parts)):
            continue  # nothing cancels: fractions of their own are read as easily
        front, rest = _without_content(above)
        powers = _times(below, front)
        yield mul(_product(powers), *primitive(rest))
        if (multiplied := _with_denominator_multiplied_out(powers)) is not None:
            yield mul(multiplied, *primitive(rest))


def _with_divisors_apart(parts: list[Part]) -> list[Part]:
    """Products whose divisors are those of others where they are products of these: 1 − x² beside 1 + x and 1 − x."""
    sums = dict.fromkeys(base for _, powers in parts for base, n in powers.items() if isinstance(base, Add) and n < 0)
    known = {frozenset(sum_.children): sum_ for sum_ in sums}
    for one, other in combinations(sums, 2):
        factors: Powers = {one: 1, other: 1}
        opened = [mul(number, _product(powers)) for number, powers in _multiplied_out(ONE, factors) or ()]
        for sign in (1, -1):
            base = known.get(frozenset(mul(Number(sign), term) for term in opened))
            if base is not None and base not in factors:
                parts = [_apart(part, base, factors, sign) for part in parts]
    return parts


def _apart(part: Part, base: Term, factors: Powers, sign: int) -> Part:
    """A product with the factors of a base, or of its negative, in place of whole powers of that."""
    number, powers = part
    n = powers.get(base, 0)
    if not n or n.denominator != 1:
        return part
    moved = {base: -n, **{each: n * m for each, m in factors.items()}}
    return _number(mul(number, Number(sign ** abs(n.numerator)))), _times(powers, moved)


def _multiplied(term: Term, parts: Sequence[Part]) -> Iterator[Term]:
    """A sum of products with the sums in these multiplied out, where something cancels: no brackets are no gain.

    So is one collected by the powers of a base: p (1 − x) − q x is p − (p + q) x.
    """
    found = _polynomial_sum(parts, {}, None)
    if found is not None:
        counts = Counter(base for _, powers in found for base in powers)
        collected = (_by_powers(found, base) for base, n in counts.items() if 1 < n < len(found))
        multiplied_out = add(*(mul(number, _product(powers)) for number, powers in found))
        forms = (
            multiplied_out,
            mul(*primitive(multiplied_out)),
            with_angles_added(multiplied_out),
            *collected,
            *_as_square(multiplied_out),
        )
        cancels = len(found) < sum(map(_products_in, parts))
        yield from (form for form in forms if cancels or _work(form) < _work(term))


def _as_square(polynomial: Term) -> Iterator[Term]:
    """A multiple of a square as such: 2 x² − 4 x y + 2 y² is 2 (x − y)²."""
    *front, inner = primitive(polynomial)
    for sign in (ONE, MINUS_ONE) if isinstance(inner, Add) and len(inner.terms) > 2 else ():
        root = exact_root([_powers(mul(sign, part)) for part in inner.children], MOST_TERMS)
        if root is not None:
            yield mul(sign, *front, raised(add(*(mul(number, _product(powers)) for number, powers in root)), 2))


def _products_in(part: Part) -> int:
    """How many products a product of sums is, multiplied out."""
    return prod(len(base.terms) ** int(n) for base, n in part[1].items() if isinstance(base, Add) and n > 0)


class JoiningLogarithms(Rewriter):
    """Writes log(x/y) for log x − log y of data whose sum is a number: log(1 − p) − log(p) is log((1 − p)/p).

    The quotient of other numbers may be ∞ or 0 where the logarithms are not, and what is `named`, or a function, may be
    too near to 0 for it.
    """

    def __init__(self, named: frozenset[Var]) -> None:
        super().__init__()
        self.named = named

    def node(self, term: Term) -> Term:
        """The term with its logarithms joined where that is shorter."""
        new = self.inside(term)
        return _shortest(new, self._forms(new)) if isinstance(new, Add | Mul) else new

    def _forms(self, term: Term) -> Iterator[Term]:
        if isinstance(term, Add):
            logarithms = [(part, *found) for part in term.terms if (found := self._logarithm(part)) is not None]
            for (one, front, x), (other, back, y) in permutations(logarithms, 2):
                if not is_negative(front) and negate(front) is back and _adds_up(x, y):
                    others = (part for part in term.terms if part not in (one, other))
                    yield add(mul(front, function("log", _over(x, y))), *others)
        elif (found := self._logarithm(term)) and is_negative(term) and is_fraction(found[1]):
            yield mul(negate(found[0]), function("log", _over(ONE, found[1])))

    def _logarithm(self, term: Term) -> tuple[Term, Term] | None:
        """A term as the other factors of a logarithm of data, and these; None for what has none, or more."""
        logarithms = [f for f in factors_of(term) if isinstance(f, Primitive) and f.name == "log"]
        if len(logarithms) != 1 or not self._is_data(inside := logarithms[0].arguments[0]):
            return None
        return mul(*factors_beside(logarithms[0], term)), inside

    def _is_data(self, term: Term) -> bool:
        """Whether a real number is made of parameters by sums, products and quotients."""
        parts = (part for part in subterms(term) if isinstance(part, Primitive | Sum))
        plain = all(whole_power(part)[1] != 1 for part in parts)
        return plain and dtype_of(term) is not complex and term.free.isdisjoint(self.named)


def _over(x: Term, y: Term) -> Term:
    """x / y, each base once."""
    (above, over), (below, under) = _powers(x), _powers(y)
    return mul(above, raised(below, -1), _product(_quotient(over, under)))


def _adds_up(x: Term, y: Term) -> bool:
    """Whether the sum of two terms is a number."""
    found: list[Part] = []
    for term in (x, y):
        more = _multiplied_out(*_powers(term))
        if more is None:
            return False
        found += more
    return not any(powers for _, powers in _collected(found))


def _by_powers(parts: Sequence[Part], base: Term) -> Term:
    """A sum of products with each power of a base in front of what it multiplies."""
    groups: dict[Exponent, list[Term]] = {}
    for number, powers in parts:
        n = powers.get(base, 0)
        groups.setdefault(n, []).append(mul(number, _product(_quotient(powers, {base: n}))))
    return add(*(mul(_raised(base, n), *_signed(terms)) if n else add(*terms) for n, terms in groups.items()))


def _signed(terms: Sequence[Term]) -> Iterable[Term]:
    """The factors of a sum, its number and sign in front."""
    if all(map(is_negative, terms)):
        return MINUS_ONE, *primitive(add(*map(negate, terms)))
    return primitive(add(*terms))


def _common(exponents: Sequence[Exponent]) -> Exponent:
    """The power that all have: the one nearest to 0 of powers of one sign."""
    return max(exponents) if max(exponents) < 0 else max(min(exponents), 0)


def _gathered(term: Term) -> Iterator[Term]:
    """A product in which the powers of one base are one: x^a/(x^(1 + a))² is x^(−a − 2), x y/√(2 x y) is ½ √(2 x y)."""
    number, powers = _powers(term)
    for base, n in list(powers.items()):
        if isinstance(base, Mul) and n.denominator != 1:
            inner, own = _powers(base)
            times = _whole_power(powers, own)
            scale = raised(inner, -times)
            if isinstance(scale, Number):
                number = _number(mul(number, scale))
                powers = _times(powers, {base: times, **{each: -times * m for each, m in own.items()}})
    number, powers = _with_one_sum(number, powers)
    yield mul(number, _product(powers))
    if (multiplied := _with_denominator_multiplied_out(powers)) is not None:
        yield mul(number, multiplied)


def _with_one_sum(number: Number, powers: Powers) -> Part:
    """A product in which multiples of a sum are one base: (x − 1)/(1 − x)² is −1/(1 − x), (x + y)/(2 x + 2 y) is ½."""
    known: dict[frozenset[Term], tuple[Term, Number]] = {}
    sums = [(primitive(base), base) for base, n in powers.items() if isinstance(base, Add) and n.denominator == 1]
    for (*front, rest), base in sorted(sums, key=lambda each: len(each[0])):  # those that are no multiples first
        for sign in (1, -1):
            terms = frozenset(mul(Number(sign), term) for term in rest.children)
            if terms not in known:
                continue
            other, multiple = known[terms]
            n = powers[base].numerator
            times = raised(mul(Number(sign), *front, raised(multiple, -1)), n)
            if isinstance(times, Number):  # not too large a power
                number, powers = _number(mul(number, times)), _times(powers, {base: -powers[base], other: n})
            break
        else:
            known[frozenset(rest.children)] = base, _number(mul(*front))
    return number, powers


def _whole_power(powers: Powers, own: Powers) -> int:
    """The power of a product, given by its own powers, that is a factor of others: 2 of x² y⁴ for x y²."""
    each = [Fraction(powers.get(base, 0)) / m for base, m in own.items()]
    return max(floor(min(each)), 0) or min(ceil(max(each)), 0) if each else 0


def _opened(term: Term) -> Iterator[Term]:
    """A product with whole powers of sums in it over one denominator each, which may cancel with other factors."""
    number, powers = _powers(term)
    for base, n in powers.items():
        if isinstance(base, Add) and n.denominator == 1:
            others = {other: m for other, m in powers.items() if other is not base}
            for form in _forms(base):
                inner, found = _powers(form)
                opened = _times(others, {each: m * n for each, m in found.items()})
                if isinstance(times := raised(inner, n.numerator), Number):  # not too large a power, and no float's
                    numbers, opened = _with_one_sum(_number(mul(number, times)), opened)
                    yield mul(numbers, _product(opened))


def _divided_without_rest(term: Term) -> Iterator[Term]:
    """A product with its sums over the one that divides them, as often as they do without a rest."""
    number, powers = _powers(term)
    sums: Powers = {base: n for base, n in powers.items() if isinstance(base, Add) and n.denominator == 1}
    above = _polynomial({base: n for base, n in sums.items() if n > 0})
    for divisor in (base for base, n in sums.items() if n < 0):
        below, times = _polynomial({divisor: 1}), 0
        quotient = above
        while quotient and below and times < -sums[divisor]:
            found = exact_quotient(quotient, below, MOST_TERMS)
            if found is None:
                break
            quotient, times = found, times + 1
        if quotient and times:
            others = {base: n for base, n in powers.items() if sums.get(base, 0) <= 0}
            sum_ = add(*(mul(each, _product(inner)) for each, inner in quotient))
            yield mul(number, _product(_times(others, {divisor: times})), *primitive(sum_))


def _polynomial(sums: Powers) -> list[Part] | None:
    """A product of sums multiplied out, the sums in them too; None where there are none, or it is not short."""
    found = _multiplied_out(ONE, sums) if sums else None
    while found and any(isinstance(base, Add) for _, powers in found for base in powers):
        opened = [_multiplied_out(*part) for part in found]
        if None in opened or sum(len(parts or ()) for parts in opened) > MOST_TERMS**2:
            return None
        found = _collected(part for parts in opened for part in parts or ())
    return found


def _divided(term: Term) -> Iterator[Term]:
    """A product with a divisor in the sum that it divides, where it cancels in a term: (t − l)/t² is (1 − l/t)/t."""
    number, powers = _powers(term)
    for base in (base for base, n in powers.items() if isinstance(base, Add) and n == 1):
        parts = [_powers(part) for part in base.terms]
        for divisor, n in powers.items():
            cancels = min(-n, max(above.get(divisor, 0) for _, above in parts))
            if cancels > 0:
                inside = {divisor: -cancels}
                terms = (mul(each, _product(_times(above, inside))) for each, above in parts)
                outside = _quotient({other: m for other, m in powers.items() if other is not base}, inside)
                yield mul(number, _product(outside), add(*map(over_one_denominator, terms)))


def _under_sums(term: Term) -> Iterator[Term]:
    """A product with its divisors under a Σ in it, where they cancel: s⁻² Σ 1/(1 + x[i]²/s²) is Σ 1/(s² + x[i]²)."""
    divisors = [factor for factor in factors_of(term) if any(n < 0 for _, n in _power(factor))]
    for factor in factors_of(term):
        if divisors and isinstance(factor, Sum):
            inside = mul(*divisors, factor.body)
            found = over_one_denominator(inside)
            if found is not inside:
                others = [each for each in factors_beside(factor, term) if each not in divisors]
                yield mul(*others, Sum(factor.indices, found))


def _with_divisors_summed(term: Sum) -> Iterator[Term]:
    """A Σ without what it adds up to a divisor in it: Σ_{k,l} x[k] P[k,l] / Σ_i P[k,i] is Σ_k x[k]."""
    factors = factors_of(term.body)
    for index in term.indices:
        inside = [factor for factor in factors if index in factor.free]
        others = [factor for factor in factors if index not in factor.free]
        summed = canonical(total((index,), mul(*inside)))
        for divisor in others:
            base, n = whole_power(divisor)
            if n < 0 and isinstance(base, Sum) and canonical(base) is summed:
                left = (*(each for each in others if each is not divisor), *factors_of(raised(base, n + 1)))
                yield total((each for each in term.indices if each is not index), mul(*left))


def _holds_condition(sum_: Add) -> bool:
    """Whether a term of a sum is masked, outside of the Σ's in it."""
    todo: list[Term] = [*sum_.terms]
    while todo:
        part = todo.pop()
        if isinstance(part, Guard):
            return True
        if isinstance(part, Add | Mul | Primitive):
            todo += part.children
    return False


@remembered
def _powers(product_: Term) -> Part:
    """A product as a number and the powers of its bases; roots are halves of powers."""
    number: Term = ONE
    found: dict[Term, Exponent] = {}
    for factor in factors_of(product_):
        if isinstance(factor, Number):
            number = mul(number, factor)
        else:
            for base, exponent in _power(factor):
                found[base] = found.get(base, 0) + exponent
    return _number(number), {base: n for base, n in found.items() if n}


def _power(factor: Term) -> Iterator[tuple[Term, Exponent]]:
    """A factor that is no number as powers: √(x y)⁻² is (x y)⁻¹, which is x⁻¹ y⁻¹; x^(2 n − 1) is (xⁿ)² x⁻¹."""
    base: Term = factor
    exponent: Exponent = 1
    if isinstance(base, Primitive) and base.name == "power":
        inner, to = base.arguments
        if isinstance(to, Number) and to.exact and not to.imag:
            base, exponent = inner, _exact(to.real)
    if isinstance(base, Primitive) and base.name == "sqrt":
        base, exponent = base.arguments[0], exponent * HALF
        inner, n = whole_power(base)
        if n % 2 and dtype_of(inner) is not complex:  # √(1/s) is 1/√s, and √(s³) is no number either where s < 0
            base, exponent = inner, exponent * n
    if _is_symbolic_power(base) and exponent.denominator == 1:
        inner, to = base.children
        for times, symbol in _whole_multiples(to):
            yield from _exactly(inner if symbol is ONE else function("power", inner, symbol), times * exponent)
        return
    yield from _exactly(base, exponent)


def _exactly(base: Term, exponent: Exponent) -> Iterator[tuple[Term, Exponent]]:
    """A power, of each factor of its base where it is a whole one."""
    if isinstance(base, Mul) and exponent.denominator == 1 and not any(isinstance(f, Number) for f in base.factors):
        for inner in base.factors:
            for each, n in _power(inner):
                yield each, n * exponent
        return
    yield base, exponent


def _is_symbolic_power(base: Term) -> bool:
    """Whether a term is a power whose exponent is no number."""
    return isinstance(base, Primitive) and base.name == "power" and not isinstance(base.arguments[1], Number)


def _whole_multiples(exponent: Term) -> Iterator[tuple[Exponent, Term]]:
    """The terms of an exponent as whole numbers times the rest, and a number of any kind: √(xⁿ) is no x^(n/2)."""
    if isinstance(exponent, Add):
        for term in exponent.terms:
            yield from _whole_multiples(term)
        return
    number, *others = _number_in_front(exponent)
    if len(others) == 1 and isinstance(others[0], Add):
        for term in others[0].terms:
            yield from _whole_multiples(mul(number, term))
    elif not number.exact or number.imag:
        yield 1, exponent
    elif not others or _exact(number.real).denominator == 1:
        yield _exact(number.real), mul(*others)
    else:
        sign = -1 if number.real < 0 else 1
        yield sign, mul(Number(sign), exponent)


def _number_in_front(product_: Term) -> tuple[Number, *tuple[Term, ...]]:
    """A product as a number and its other factors."""
    factors = factors_of(product_)
    numbers = [factor for factor in factors if isinstance(factor, Number)]
    return _number(mul(*numbers)), *(factor for factor in factors if factor not in numbers)


def _product(powers: Powers) -> Term:
    """The product of powers of bases, those of one base with symbols in the exponent as one.

    They are never taken apart: xⁿ/x is not defined at 0, where xⁿ⁻¹ is.
    """
    symbolic: dict[Term, list[Term]] = {}
    rest: Powers = {base: n for base, n in powers.items() if n.denominator != 1 or not _is_symbolic_power(base)}
    for base, n in powers.items():
        if base not in rest:
            inner, symbol = base.children
            symbolic.setdefault(inner, []).append(mul(Number(n.numerator), symbol))
    joined = []
    for inner, exponents in symbolic.items():
        bases = dict(_exactly(inner, 1))
        common = min(Fraction(rest.get(base, 0)) / m for base, m in bases.items())
        taken = tidy(common) if len(bases) == 1 else floor(common)
        rest = _quotient(rest, {base: m * taken for base, m in bases.items()})
        joined.append(function("power", inner, add(*exponents, Number(taken))))
    return mul(*joined, *(_raised(base, n) for base, n in rest.items() if n))


def _raised(base: Term, n: Exponent) -> Term:
    if n.denominator == 1 and n > 0:
        return mul(*(base,) * n.numerator)
    if n.denominator == 2:
        root = function("sqrt", base)
        return root if n == HALF else raised(root, n.numerator)
    return function("power", base, Number(tidy(n)))


def _times(one: Powers, other: Powers) -> Powers:
    """The powers of a product of products."""
    found = dict(one)
    for base, n in other.items():
        found[base] = found.get(base, 0) + n
    return {base: n for base, n in found.items() if n}


def _quotient(one: Powers, other: Powers) -> Powers:
    return _times(one, {base: -n for base, n in other.items()})


def _polynomial_sum(parts: Sequence[Part], below: Powers, opened: Collection[Term] | None) -> list[Part] | None:
    """A sum of products over their common divisor, its sums multiplied out as `opened` says; None if not short.

    Where what cancels is what a divisor is made of, other sums stay as they are: in 1/√(1 + (x − y)²) − (x − y)²/… the
    first is (1 + (x − y)²)/….
    """
    found: list[Part] = []
    for number, powers in parts:
        rest = _quotient(powers, below)
        more = _multiplied_out(number, rest, opened)
        if more is None:
            return None
        found = _collected([*found, *more])
    return found if len(found) <= MOST_TERMS else None


def _multiplied_out(number: Number, powers: Powers, opened: Collection[Term] | None = None) -> list[Part] | None:
    """A product as a sum of products, its sums multiplied out, or those among them that are to be opened; None where
    that is not short, or has roots of these sums."""
    sums = {base: n for base, n in powers.items() if isinstance(base, Add) and (opened is None or base in opened)}
    if any(n.denominator != 1 or not 0 < n <= MOST_POWER for n in sums.values()):
        return None
    choices = [[_powers(part) for part in base.children] for base, n in sums.items() for _ in range(n.numerator)]
    if prod(map(len, choices)) > MOST_TERMS**2:
        return None
    plain: Powers = {base: n for base, n in powers.items() if base not in sums}
    found = []
    for choice in product(*choices):
        whole, coefficient = plain, number
        for factor, more in choice:
            whole, coefficient = _times(whole, more), _number(mul(coefficient, factor))
        found.append((coefficient, whole))
    return _collected(found)


def _collected(parts: Iterable[Part]) -> list[Part]:
    """Products with those that differ in a number alone added up, without those that are 0."""
    found: dict[frozenset[tuple[Term, Exponent]], Part] = {}
    for number, powers in parts:
        before, first = found.get(key := frozenset(powers.items()), (ZERO, powers))
        found[key] = _number(add(before, number)), first
    return [part for part in found.values() if part[0].real or part[0].imag]


def _without_content(parts: Sequence[Part]) -> tuple[Powers, Term]:
    """The powers that all products of a sum have, and the rest of it."""
    bases = dict.fromkeys(base for _, powers in parts for base in powers)
    front = {base: min(powers.get(base, 0) for _, powers in parts) for base in bases}
    return front, add(*(mul(number, _product(_quotient(powers, front))) for number, powers in parts))


def _with_denominator_multiplied_out(powers: Powers) -> Term | None:
    """A product whose simple divisors are multiplied with one another: 1/((1 + x)(1 − x)) is 1/(1 − x²)."""
    simple: Powers = {base: -n for base, n in powers.items() if n == -1 and isinstance(base, Add)}
    parts = _multiplied_out(ONE, simple) if len(simple) > 1 else None
    if parts is None:
        return None
    below = add(*(mul(number, _product(found)) for number, found in parts))
    others = {base: n for base, n in powers.items() if base not in simple}
    return mul(_product(others), raised(below, -1))


def _number(term: Term) -> Number:
    assert isinstance(term, Number)
    return term


def _exact(value: int | Fraction | float) -> Exponent:
    assert not isinstance(value, float)
    return value
