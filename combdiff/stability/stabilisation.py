"""Programs made ready to run without overflow: sums of exponentials are shifted by their largest exponent.

    exp(x[i]) / Σ_j exp(x[j])   →   exp(x[i] − m) / Σ_j exp(x[j] − m)           with m = max_j x[j]
    log Σ_j exp(x[j])           →   m + log Σ_j exp(x[j] − m)
    exp(z) / (1 + exp(z))²      →   1 / (1 + exp(−z)) · 1 / (1 + exp(z))        which may overflow: 1 / ∞ is 0

Every number that exponentials make is taken as exp(E)·r, a *scaled* number: products add the exponents E, powers
multiply them, and a sum takes out the largest of its exponents, so that r is about as large as the number of its terms.
A sum that is 0 where all exponentials are 1, as exp(x[d]) − Σ_i exp(x[i]) / n is, is one of exp(z) − 1 in their place.
Of a + b·exp(z) the shift is m = log(1 + exp(z)), which is near the larger of 0 and z: 1 + exp(z) is exp(m)·1, and what
m cancels is written as 1 / (1 + exp(z)) or 1 / (1 + exp(−z)).
E is a linear combination of terms that are equal by their form, so that in quotients the large exponents cancel
exactly, before anything is evaluated. What is under a logarithm, a quotient or a root is taken that way, nothing else.
Conditions in front of an exponential (`cd.where(j <= i, cd.exp(x[i, j]), 0)`) go into its exponent, as −∞ where they do
not hold; so do weights, Σ_j w[j]·exp(x[j]), where they are 0.

Invariant: the value is unchanged where the program has one without overflow. One pass over the bindings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations
from math import gcd, isinf, log, prod

from combdiff.ir import (
    HALF,
    MINUS_ONE,
    ONE,
    ZERO,
    Add,
    Apply,
    Conj,
    Coordinate,
    Delta,
    Guard,
    Implicit,
    Indicator,
    Lambda,
    Largest,
    Let,
    Mul,
    Names,
    Number,
    Primitive,
    Scalar,
    Scan,
    Shift,
    Space,
    Sum,
    Term,
    Var,
    add,
    axes_of,
    dtype_of,
    exact,
    factors_of,
    free_indices,
    function,
    is_domain,
    is_nonnegative,
    is_positive,
    masked,
    mul,
    negate,
    opposite,
    substitute,
    subterms,
    total,
)
from combdiff.records import dataclass
from combdiff.simplification import canonical, closed, normalise, order_key
from combdiff.stability.bindings import Rewriting
from combdiff.stability.scaled_numbers import Exponent, ScaledNumber, common_part, plus, substituted, times

LARGEST = 20  # of a number that counts as bounded
MOST_TERMS = 64  # of a sum over a common denominator
MOST_FACTORS = 6  # beside a quotient, among which those are looked for that cancel with it
MOST_ALIKE = 4  # exponentials that are written as a power of one, which a square beside them may share
MOST_PEAKS = 3  # one within another, to see that an exponent is bounded

_Polynomial = dict[frozenset[tuple[Term, Scalar]], Scalar]
"""A sum of exponentials with numbers as weights, by their exponents."""
_Key = frozenset[tuple[frozenset[tuple[Term, Scalar]], Scalar]]


@dataclass(frozen=True)
class _Entry:
    """One of the terms that a shift is the largest of, over some indices, where conditions hold."""

    indices: tuple[Var, ...]
    exponent: Exponent
    conditions: tuple[Term, ...]

    @property
    def term(self) -> Term:
        body = masked(self.conditions, _term(self.exponent))
        return Largest(self.indices, body) if self.indices else body

    def renamed(self, names: Names) -> _Entry:
        """The same with new names for the indices."""
        new: dict[Var, Var] = {index: names.fresh(index) for index in self.indices}
        exponent = substituted(self.exponent, new)
        return _Entry(tuple(new.values()), exponent, tuple(substitute(c, new) for c in self.conditions))


@dataclass(frozen=True)
class _Fraction:
    """A sum of exponentials over powers of others."""

    above: _Polynomial
    below: Counter[_Key]

    def times(self, other: _Fraction) -> _Fraction | None:
        """The product, where it is not too long."""
        if len(self.above) * len(other.above) > MOST_TERMS:
            return None
        return _Fraction(_product(self.above, other.above), self.below + other.below)

    def to(self, power: int) -> _Fraction | None:
        """A whole power; of a fraction no negative one."""
        if power < 0:
            return None if self.below else _Fraction({frozenset(): 1}, Counter({frozenset(self.above.items()): -power}))
        found: _Fraction | None = _Fraction({frozenset(): 1}, Counter())
        for _ in range(power):
            found = found and found.times(self)
        return found

    def at(self, replacement: Mapping[Var, Term]) -> _Fraction:
        """The same at other indices."""
        below: Counter[_Key] = Counter()
        for one, count in self.below.items():
            below[frozenset(_moved(dict(one), replacement).items())] += count
        return _Fraction(_moved(self.above, replacement), below)


def with_stable_exponentials(program: Lambda) -> Lambda:
    """The program with quotients and logarithms of exponentials written so that they do not overflow.

    What steps of scans compute is left.
    """
    if not any(isinstance(node, Primitive) and node.name in _EXPONENTIAL for node in subterms(program)):
        return program
    weights = _Stabilising(program).named_weights(program)  # of sums whose scales depend on no weight
    stabilising = _Stabilising(program, weights)
    return stabilising.rewritten() if any(map(stabilising.may_ask, subterms(program))) else program


_EXPONENTIAL = ("exp", "cosh", "sinh")


class _Stabilising(Rewriting):
    """Rewrites sums of exponentials; see the module."""

    def __init__(self, program: Lambda, weights: frozenset[Term] = frozenset()) -> None:
        super().__init__(program)
        self._weights = weights
        self._peaks: dict[Var, tuple[tuple[Var, ...], tuple[_Entry, ...]]] = {}
        self._odds: dict[Var, Exponent] = {}
        self._nonnegative: dict[Var, bool] = {}
        self._grows: dict[Term, bool] = {}
        self._asks: dict[Term, bool] = {}
        self._quotients: dict[Term, bool] = {}
        self._dividing: dict[Term, bool] = {}
        self._logarithmic: dict[Term, bool] = {}
        self._values: dict[Term, Term] = {}
        self._scaled: dict[Term, ScaledNumber] = {}
        self._pairs: dict[Var, ScaledNumber] = {}
        self._positive: set[Var] = set()
        self._moderate: dict[Term, bool] = {}
        self._limited: dict[Term, bool] = {}
        self._ample: set[Term] = set()  # sums, and bindings of sums, that are at least 1
        self._fractions: dict[Term, _Fraction | None] = {}
        self._settled: dict[Term, frozenset[Term] | None] = {}
        self._weighted: dict[Term, tuple[Term, ...]] = {}

    # --- what kind a term is

    def grows(self, term: Term) -> bool:
        """Whether a real number is made of exponentials, by sums, products and powers."""
        if term not in self._grows:
            self._grows[term] = self._is_made_of_exponentials(term)
        return self._grows[term]

    def _is_made_of_exponentials(self, term: Term) -> bool:
        match term:
            case Primitive() if term.name in _EXPONENTIAL:
                return dtype_of(term) is not complex
            case Primitive(name="sqrt") | Sum() | Conj():
                return self.grows(term.children[0])
            case Primitive(name="power", arguments=(base, Number(imag=0))):
                return self.grows(base)
            case Add() | Mul():
                return any(map(self.grows, term.children))
            case Apply() | Var():
                found = self.read(term)
                return found is not None and self.grows(found[1])
        return False

    def may_ask(self, term: Term) -> bool:
        """Whether a term asks, if nothing is known of bounds."""
        return self._is_of_exponentials(term) or self._of_differences(term) is not term

    def _is_of_exponentials(self, term: Term) -> bool:
        """Whether a term is a logarithm, a root or a power of exponentials, and no whole positive power."""
        match term:
            case Primitive(name="power", arguments=(base, Number(imag=0) as exponent)):
                return not (isinstance(exponent.real, int) and exponent.real > 0) and self.grows(base)
            case Primitive(name="log" | "sqrt", arguments=(base,)):
                return self.grows(base) and dtype_of(term) is not complex
        return False

    def asks(self, term: Term) -> bool:
        """Whether a term holds a logarithm, a quotient or a root of exponentials, or a product with one."""
        if term not in self._asks:
            own = self._is_divided(term) or self._is_logarithm(term) or self._has_quotient(term)
            own = own or self._of_differences(term) is not term
            self._asks[term] = own or any(map(self.asks, term.children))
        return self._asks[term]

    def _is_divided(self, term: Term) -> bool:
        """Whether a term is a root or a power of exponentials that may be next to 0, or large."""
        return self._asked(term) in ("sqrt", "power")

    def _is_logarithm(self, term: Term) -> bool:
        return self._asked(term) == "log"

    def _asked(self, term: Term) -> str:
        """The name of a function of exponentials that may be next to 0, or large; empty for other terms."""
        asking = self._is_of_exponentials(term) and not self._is_moderate(term.children[0])
        return term.name if asking and isinstance(term, Primitive) else ""

    def _is_moderate(self, term: Term) -> bool:
        """Whether a number is positive, not next to 0, and bounded by its form, as ε + Σ_i (p[i] − μ)² is of shares p.

        What is not made of exponentials counts as it is.
        """
        if term not in self._moderate:
            self._moderate[term] = False  # while it is looked for
            self._moderate[term] = self._find_moderate(term)
        return self._moderate[term]

    def _find_moderate(self, term: Term) -> bool:
        match term:
            case Add():
                positive = any(isinstance(part, Number) and not part.imag and part.real > 0 for part in term.terms)
                return positive and all(self._is_square(part) and self._is_limited(part) for part in term.terms)
            case Primitive(name="sqrt") | Primitive(name="power", arguments=(_, Number(imag=0))):
                return self._is_moderate(term.children[0])
            case Sum():
                number = self.scaled(term)
                return not number.exponent and number.rest in self._ample
            case Var() | Apply():
                found = self.read(term)
                return found is not None and self._is_moderate(found[1])
        return False

    def _is_limited(self, term: Term) -> bool:
        """Whether a number is bounded by its form, with nothing left in it that a factor could cancel."""
        if not self.grows(term):
            return True
        if term not in self._limited:
            self._limited[term] = False
            self._limited[term] = self._find_limited(term)
        return self._limited[term]

    def _find_limited(self, term: Term) -> bool:
        match term:
            case Primitive(name="exp"):
                return self._is_settled(self.scaled(term))
            case Primitive(name="power", arguments=(base, Number(imag=0) as exponent)) if exponent.real < 0:
                return self._is_moderate(base)
            case Primitive(name="power" | "sqrt") | Conj() | Add() | Sum():
                return all(map(self._is_limited, term.children))
            case Mul():
                settled = self._settled_by(term) or frozenset()
                return all(factor in settled or self._is_limited(factor) for factor in term.factors)
            case Var() | Apply():
                found = self.read(term)
                return found is not None and self._is_limited(found[1])
        return False

    def _is_square(self, term: Term) -> bool:
        """Whether a number is real and not negative by its form, or by what its bindings are."""
        found = self.read(term)
        return is_nonnegative(term) or self._is_positive(term) or (found is not None and self._is_square(found[1]))

    def _is_logarithmic(self, term: Term) -> bool:
        """Whether a sum has a multiple of a logarithm of exponentials."""
        if term not in self._logarithmic:
            found = self.read(term)
            inside = (found[1],) if found else term.children if isinstance(term, Add | Mul) else ()
            linear = not isinstance(term, Mul) or (isinstance(term.factors[0], Number) and len(term.factors) == 2)
            held = linear and any(map(self._is_logarithmic, inside))
            self._logarithmic[term] = self._is_logarithm(term) or held
        return self._logarithmic[term]

    def _has_quotient(self, term: Term) -> bool:
        """Whether sums and products have a quotient of exponentials."""
        if term not in self._quotients:
            self._quotients[term] = self._is_quotient(term) or any(map(self._has_quotient, self._inside(term)))
        return self._quotients[term]

    def _is_quotient(self, term: Term) -> bool:
        return self._is_divided(term) or (
            isinstance(term, Primitive) and term.name == "exp" and self._is_logarithmic(term.arguments[0])
        )

    def _inside(self, term: Term) -> tuple[Term, ...]:
        """What sums, products, powers and bindings of exponentials are made of."""
        match term:
            case Mul() | Add() | Sum():
                return term.children
            case Primitive(name="power") if self.grows(term):
                return (term.arguments[0],)
            case Apply() | Var():
                found = self.read(term)
                return (found[1],) if found is not None and self.grows(found[1]) else ()
        return ()

    def _divides(self, term: Term) -> bool:
        """Whether sums and products have a quotient of exponentials that may cancel what is beside it.

        exp(x[i]) / Σ exp(x) does not: nothing is left in it that could.
        """
        if not self._has_quotient(term):
            return False
        if isinstance(term, Mul) and self._settled_by(term) is not None:
            return False
        if term not in self._dividing:
            inside = self._inside(term)
            common = isinstance(term, Add) and all(self._fraction(part) is not None for part in inside)
            self._dividing[term] = common or self._is_quotient(term) or any(map(self._divides, inside))
        return self._dividing[term]

    def _settled_by(self, term: Mul) -> frozenset[Term] | None:
        """The fewest factors, all quotients among them, that are bounded with nothing left to cancel; None for none.

        Of exp(q)·exp(x[i]) / Σ exp(x), the last two: exp(q) is as large as it is, whatever stands beside it.
        """
        if term not in self._settled:
            self._settled[term] = self._find_settled(term)
        return self._settled[term]

    def _find_settled(self, term: Mul) -> frozenset[Term] | None:
        growing = [f for f in term.factors if self.grows(f)]
        quotients = [f for f in growing if self._divides(f)]
        others = [f for f in growing if f not in quotients]
        if not quotients or len(others) > MOST_FACTORS:
            return None if quotients else frozenset()
        conditions = [f for f in term.factors if f not in growing]
        for count in range(len(others) + 1):
            for chosen in combinations(others, count):
                number = self.scaled(mul(*conditions, *quotients, *chosen))
                if self._is_settled(number):
                    return frozenset((*quotients, *chosen))
        return None

    # --- weights of sums of exponentials

    def named_weights(self, program: Lambda) -> frozenset[Term]:
        """The tensors that are weights of exponentials in a sum under a logarithm, a quotient or a root."""
        found: set[Term] = set()
        seen: set[Term] = set()
        for node in subterms(program):
            if isinstance(node, Primitive) and self._is_of_exponentials(node):
                self._collect_weights(node.arguments[0], found, seen)
        return frozenset(found)

    def _collect_weights(self, term: Term, found: set[Term], seen: set[Term]) -> None:
        if term in seen or not self.grows(term):
            return
        seen.add(term)
        if isinstance(term, Mul):
            others = (f for f in term.factors if not self.grows(f) and not self._is_logarithmic(f))
            found.update(_head(f) for f in others if not self._is_positive(f))
        inside = self.read(term)
        roots = isinstance(term, Primitive) and term.name not in _EXPONENTIAL
        for child in (inside[1],) if inside else term.children if isinstance(term, Mul | Add | Sum) or roots else ():
            self._collect_weights(child, found, seen)

    def _conditions(self, rest: Term) -> list[Term]:
        """The factors beside which a product is 0, where they are 0: conditions, and weights."""
        found: list[Term] = []
        for factor in factors_of(rest):
            if isinstance(factor, Guard):
                found += [factor] if not (isinstance(factor, Delta) and factor.lookup) else []
            else:
                found += self._zeros(factor)
        return found

    def _zeros(self, term: Term) -> tuple[Term, ...]:
        """The weights beside which a number is 0 where they are: w[i] and w[j] of Σ_j w[i] w[j] t[j] + δ(i, j) w[j]."""
        if term not in self._weighted:
            self._weighted[term] = tuple(dict.fromkeys(self._find_zeros(term))) if self._weights else ()
        return self._weighted[term]

    def _find_zeros(self, term: Term) -> Iterator[Term]:
        if _head(term) in self._weights and dtype_of(term) is not complex:
            yield _base(term)
            return
        match term:
            case Mul():
                deltas = [f for f in term.factors if isinstance(f, Delta) and not f.lookup]
                for weight in (weight for factor in term.factors for weight in self._zeros(factor)):
                    yield weight
                    for delta in deltas:  # where it is 1
                        ends = delta.left, delta.right
                        for one, other in (ends, ends[::-1]):
                            if isinstance(one, Var) and isinstance(other, Var) and one in weight.free:
                                yield substitute(weight, {one: other})
            case Add():
                others = [self._zeros(part) for part in term.terms[1:]]
                yield from (w for w in self._zeros(term.terms[0]) if all(w in each for each in others))
            case Sum():
                yield from (w for w in self._zeros(term.body) if w.free.isdisjoint(term.indices))
            case Conj():
                yield from self._zeros(term.body)
            case Primitive(name="power") if _base(term) is not term:
                yield from self._zeros(_base(term))
            case Apply(function=Var() as var) if isinstance(value := self.kept.get(var), Lambda):
                pairs = dict(zip(value.parameters, term.arguments, strict=True))
                yield from (substitute(w, pairs) for w in self._zeros(value.body))
            case Var() if (value := self.kept.get(term)) and not isinstance(value, Lambda):
                yield from self._zeros(value)

    def _is_positive(self, term: Term) -> bool:
        match term:
            case Mul() | Add() | Sum():
                return all(map(self._is_positive, term.children))
            case Primitive(name="power", arguments=(base, Number(imag=0))) | Primitive(name="sqrt", arguments=(base,)):
                return self._is_positive(base)
            case Apply() | Var():
                found = self.read(term)
                return _binding(term) in self._positive or (found is not None and self._is_positive(found[1]))
        return isinstance(term, Guard) or is_positive(term)

    # --- terms as numbers

    def value(self, term: Term) -> Term:
        """A number or tensor, with what may overflow written so that it does not."""
        if term not in self._values:
            self._values[term] = self._of_value(term)
        return self._values[term]

    def _of_value(self, term: Term) -> Term:
        if not self.asks(term):
            return term
        if isinstance(term, Implicit | Scan | Let):  # an equation, or a step, of its own
            return term
        if isinstance(term, Lambda):
            return Lambda(term.parameters, self.value(term.body))
        if self._is_logarithm(term):
            return self._logarithm(term.children[0])
        if isinstance(term, Mul) and (apart := self._apart(term)):
            inside = mul(*(f for f in term.factors if f not in apart))
            return mul(*(self.value(f) for f in term.factors if f in apart), self.value(inside))
        if self._is_cancelled(term):
            return self._written(self.scaled(term))
        children = tuple(map(self.value, term.children))
        return term if children == term.children else term.with_children(children)

    def _is_cancelled(self, term: Term) -> bool:
        """Whether exponents cancel in a term that would overflow without."""
        if isinstance(term, Mul):
            growing = [f for f in term.factors if self.grows(f)]
            others = len(growing) > 1 or any(map(self._zeros, term.factors))  # with which there is something to cancel
            divides = others and any(map(self._divides, growing))
            return divides and not all(self._stays(self.scaled(f)) for f in growing)
        return (
            self._is_divided(term)
            or (isinstance(term, Primitive) and term.name == "exp" and self.grows(term) and self._divides(term))
            or self._of_differences(term) is not term
        )

    def _apart(self, term: Mul) -> frozenset[Term]:
        """The factors that grow beside quotients which are settled without them."""
        settled = self._settled_by(term)
        return frozenset(f for f in term.factors if settled and self.grows(f) and f not in settled)

    def _logarithm(self, argument: Term) -> Term:
        """log of what exponentials make; of a sum of positive terms by logaddexp, which is exact near 0."""
        while isinstance(argument, Var | Apply) and (found := self.read(argument)):
            argument = substitute(found[1], found[0])
        if isinstance(argument, Add) and self._is_positive(argument):
            terms = [self._log(self.scaled(term)) for term in argument.terms]
            return reduce(lambda one, other: Primitive("logaddexp", (one, other)), terms)
        return self._log(self.scaled(argument))

    def _log(self, number: ScaledNumber) -> Term:
        """log(exp(E)·r) = E + log r, −∞ where a condition among the factors of r does not hold."""
        factors = factors_of(number.rest)
        guards = [f for f in factors if isinstance(f, Guard)]
        rest = mul(*(f for f in factors if not isinstance(f, Guard)))
        last = Number(log(rest.real)) if isinstance(rest, Number) and rest.real > 0 else Primitive("log", (rest,))
        return masked(guards, add(self._uncapped(number.exponent), *([] if rest is ONE else [last])))

    # --- terms as scaled numbers

    def scaled(self, term: Term) -> ScaledNumber:
        """A number as exp(E)·r."""
        if term not in self._scaled:
            self._scaled[term] = self._of_scaled(term) if self.grows(term) else ScaledNumber({}, self.value(term))
        return self._scaled[term]

    def _of_scaled(self, term: Term) -> ScaledNumber:
        match term:
            case Primitive(name="exp", arguments=(argument,)):
                return self._linear(argument)
            case Primitive(name="cosh" | "sinh", arguments=(argument,)):
                return self._hyperbolic(term.name, argument)
            case Primitive(name="sqrt", arguments=(base,)):
                return self.scaled(base).to(HALF)
            case Primitive(name="power", arguments=(base, Number() as exponent)):
                return self.scaled(base).to(exponent)
            case Mul():
                solved = _without_deltas(mul(*map(self._solved, term.factors)))
                return reduce(ScaledNumber.__mul__, map(self.scaled, factors_of(solved)))
            case Add():
                return self._over_one(term) or self._sum([self.scaled(part) for part in term.terms])
            case Sum():
                solved = _running_inside(self._solved(term))
                return self._total(term) if solved is term else self.scaled(solved)
            case Conj():
                found = self.scaled(term.body)
                return ScaledNumber(found.exponent, Conj(found.rest) if dtype_of(found.rest) is complex else found.rest)
            case Apply() | Var():
                return self._element(term)
        raise AssertionError(term)

    def _element(self, term: Term) -> ScaledNumber:
        """An element of a binding, of which the rest is bound, too."""
        found = self.read(term)
        assert found is not None
        pairs, body = found
        var = _binding(term)
        assert var is not None
        if var not in self._pairs:
            whole = self.scaled(body)
            guards = [f for f in factors_of(whole.rest) if isinstance(f, Guard)]
            others = mul(*(f for f in factors_of(whole.rest) if not isinstance(f, Guard)))
            rest = self.named(others, var)
            if (bound := _binding(rest)) is not None and self._is_positive(others):
                self._positive.add(bound)
            if bound is not None and others in self._ample:
                self._ample.add(bound)
            self._pairs[var] = ScaledNumber(whole.exponent, mul(*guards, rest))
        own = self._pairs[var]
        exponent: Exponent = {}
        for atom, factor in own.exponent.items():
            exponent = plus(exponent, {substitute(atom, pairs): factor})
        return ScaledNumber(exponent, substitute(own.rest, pairs))

    def _linear(self, argument: Term) -> ScaledNumber:
        """exp of a sum: multiples of terms go into the exponent, and of a logarithm of exponentials what it is of."""
        match argument:
            case Number(imag=0):
                return ScaledNumber({ONE: argument.real} if argument.real else {}, ONE)
            case Add() if any(map(_is_infinite, argument.terms)):
                return self._infinite(argument)
            case Add():
                return reduce(ScaledNumber.__mul__, map(self._linear, argument.terms))
            case _ if self._is_small(argument):
                return ScaledNumber({}, Primitive("exp", (self.value(argument),)))
            case Mul(factors=(Number(imag=0) as number, *rest)):
                inside = mul(*rest)
                small = self._is_small(inside)
                return (self._atoms(self.value(inside)) if small else self._linear(inside)).to(number)
        if self._is_logarithm(argument):
            return self.scaled(argument.children[0])
        if self._is_logarithmic(argument) and (found := self.read(argument)):
            return self._linear(substitute(found[1], found[0]))
        return self._extreme(self.opened(argument)) or self._atoms(self.value(argument))

    def _extreme(self, term: Term) -> ScaledNumber | None:
        """exp of the largest of some terms, which is a shift: what is taken out by hand cancels as one does.

        exp(x[i] − max_j x[j]) / Σ_k exp(x[k] − max_j x[j]) has that shift and no other. None for other terms.
        """
        indices, parts = self._largest_of(term)
        entries: list[_Entry] = []
        for number in map(self._linear, parts):
            conditions = _beside(number.rest)
            if not all(isinstance(condition, Guard) for condition in conditions):
                return None
            met = frozenset[Var]().union(*(part.free for part in (*number.exponent, *conditions)))
            entries.append(_Entry(tuple(i for i in indices if i in met), number.exponent, conditions))
        if not entries:
            return None
        self.named(Shift(tuple(entry.term for entry in entries)), Var("m", Space()), term)
        return ScaledNumber(self._peak(entries), ONE)

    def _largest_of(self, term: Term) -> tuple[tuple[Var, ...], tuple[Term, ...]]:
        """What a term is the largest of, and the indices over which it is; nothing for other terms."""
        function, places = (term.function, term.arguments) if isinstance(term, Apply) else (term, ())
        match function:
            case Primitive(name="maximum", arguments=parts):
                return (), parts
            case Primitive(name="amax", arguments=(Var() as stack,)):
                own = tuple(self.names.fresh(Var("j", axis)) for axis in axes_of(stack)[len(places) :])
                element = Apply(stack, (*places, *own))
                found = self.read(element)
                return own, (substitute(found[1], found[0]) if found else element,)
        return (), ()

    def _is_small(self, argument: Term) -> bool:
        """Whether a number is made of exponentials and small by its form, as an element of a softmax is.

        Its own exponential needs no shift, and would lose its digits beside large exponents.
        """
        if not self.grows(argument) or not (self._has_quotient(argument) or self._is_limited(argument)):
            return False
        own = self.scaled(argument)
        found = self._left_over(own.exponent, self._conditions(own.rest))
        if found is None or any(left.get(ONE, 0) > 0 for left in found):
            return False
        size: float = 1
        for factor in factors_of(own.rest):
            match factor:
                case Number(imag=0) as number:
                    size *= abs(float(number.real))
                case Primitive(name="power", arguments=(base, Number(real=int() as power))) if power < 0:
                    if base not in self._ample and _binding(base) not in self._ample:
                        return False
                case _ if not isinstance(factor, Guard):
                    return False
        return size <= LARGEST

    def _infinite(self, argument: Add) -> ScaledNumber:
        """exp(a − ∞ [c]) is exp(a) where c does not hold; other infinite sums stay as they are."""
        parts = [part for part in argument.terms if _is_infinite(part)]
        outside = [opposite(mul(*factors_of(p)[1:])) for p in parts if factors_of(p)[0].real < 0]  # type: ignore[attr-defined]
        if len(outside) < len(parts) or None in outside:
            return ScaledNumber({self.named(self.value(argument), Var("t", Space())): 1}, ONE)
        rest = add(*(part for part in argument.terms if part not in parts))
        return self._linear(rest) * ScaledNumber({}, mul(*(c for c in outside if c is not None)))

    def _atoms(self, term: Term) -> ScaledNumber:
        """exp of a number, by its canonical form."""
        if isinstance(term, Var) or (isinstance(term, Apply) and isinstance(term.function, Var)):
            return ScaledNumber({term: 1}, ONE)
        named = canonical(normalise(term, Names(term)))
        if isinstance(named, Number):
            return self._linear(named)
        if isinstance(named, Add):
            return reduce(ScaledNumber.__mul__, map(self._atoms, named.terms))
        if isinstance(named, Mul) and isinstance(first := named.factors[0], Number) and not first.imag:
            return self._atoms(mul(*named.factors[1:])).to(first)
        heavy = any(isinstance(node, Sum) for node in subterms(named))
        return ScaledNumber({self.named(named, Var("t", Space())) if heavy else named: 1}, ONE)

    def _hyperbolic(self, name: str, argument: Term) -> ScaledNumber:
        """cosh z = (exp(z) + exp(−z))/2, and sinh z = tanh(z)·cosh z, which is exact near 0."""
        both = [self._linear(argument), self._linear(negate(argument))]
        half = self._sum(both) * ScaledNumber({}, HALF)
        return half if name == "cosh" else half * ScaledNumber({}, Primitive("tanh", (self.value(argument),)))

    # --- sums

    def _sum(self, parts: Sequence[ScaledNumber]) -> ScaledNumber:
        """The sum of scaled numbers: what all exponents have in common is taken out, then the largest of the rest."""
        same: dict[frozenset[tuple[Term, Scalar]], list[ScaledNumber]] = {}
        for part in parts:
            same.setdefault(frozenset(part.exponent.items()), []).append(part)
        joined = [ScaledNumber(group[0].exponent, add(*(part.rest for part in group))) for group in same.values()]
        if len(joined) == 1:
            return joined[0]
        common = common_part([part.exponent for part in joined])
        left = [replace(part, exponent=plus(part.exponent, times(common, -1))) for part in joined]
        if not (all(map(self._stays, left)) and any(not part.exponent for part in left)):
            entries = [_Entry((), part.exponent, tuple(self._conditions(part.rest))) for part in left]
            odds = self._odds_of(left)
            peak = {self._peak_of_odds(odds): 1} if odds is not None else self._above(left) or self._peak(entries)
            if odds is not None and (rest := _over_odds(left, odds)) is not None:
                return ScaledNumber(plus(common, peak), rest)
            common = plus(common, peak)
            left = [replace(part, exponent=plus(part.exponent, times(peak, -1))) for part in left]
        whole = self._of_differences(add(*map(self._written, left)))
        if all(isinstance(part.rest, Number) and part.rest.real >= 1 for part in left):  # the largest of which is that
            self._ample.add(whole)
        return ScaledNumber(common, whole)

    def _of_differences(self, term: Term) -> Term:
        """A sum of exponentials and of Σ of them that is 0 where all are 1, by exp(z) − 1; other terms as they are.

        As exp(x[d]) − Σ_i exp(x[i]) / n is, of which nothing would be left for small x.
        """
        sums = isinstance(term, Add) and any(isinstance(f, Sum) for t in term.terms for f in factors_of(t))
        if not isinstance(term, Add) or not sums or not self.grows(term):
            return term
        found = [self._from_one(part) for part in term.terms]
        if any(part is None for part in found):
            return term
        constant = add(*(part[0] for part in found if part))
        vanishes = _is_zero_at_all_sizes(normalise(constant, Names(constant)))
        return add(*(part[1] for part in found if part)) if vanishes else term

    def _from_one(self, term: Term) -> tuple[Term, Term] | None:
        """A product or Σ of exponentials: what it is where all are 1, and the difference; None for other terms."""
        match term:
            case _ if not self.grows(term):
                return term, ZERO
            case Primitive(name="exp"):
                return ONE, add(term, MINUS_ONE)
            case Primitive(name="power", arguments=(Primitive(name="exp", arguments=(inner,)), Number() as exponent)):
                return self._from_one(Primitive("exp", (mul(exponent, inner),)))
            case Mul():
                constant: Term = ONE
                difference: Term = ZERO
                for factor in term.factors:
                    if (found := self._from_one(factor)) is None:
                        return None
                    whole = add(*found) if isinstance(found[1], Sum) else factor  # Σ exp(z) beside it would be bound
                    difference = add(mul(difference, whole), mul(constant, found[1]))
                    constant = mul(constant, found[0])
                return constant, difference
            case Sum():
                found = self._from_one(term.body)
                return found and (total(term.indices, found[0]), total(term.indices, found[1]))
            case Apply() | Var():
                bound = self.read(term)
                return self._from_one(substitute(bound[1], bound[0])) if bound else None
        return None

    def _above(self, parts: Sequence[ScaledNumber]) -> Exponent | None:
        """The exponent of a part that is no smaller than those of the others, made of shifts alone; None if none is.

        That part is no condition or weight, nor has it any, so that it is what the sum is about as large as.
        """
        for part in parts:
            shifts = all(factor > 0 and self._peak_of(atom) for atom, factor in part.exponent.items())
            if part.exponent and shifts and (self._is_positive(part.rest) or self._is_positive(negate(part.rest))):
                down = times(part.exponent, -1)
                others = [replace(other, exponent=plus(other.exponent, down)) for other in parts]
                if all(map(self._stays, others)):
                    return part.exponent
        return None

    def _odds_of(self, parts: Sequence[ScaledNumber]) -> Exponent | None:
        """E of a + b·exp(E) with numbers a and b, if no shift is part of E: what that cancels, cancels exactly."""
        one, *others = sorted((part.exponent for part in parts), key=len)
        if one or len(others) > 1 or not all(isinstance(part.rest, Number) for part in parts):
            return None
        return None if any(map(self._peak_of, others[0])) else others[0]

    def _total(self, term: Sum) -> ScaledNumber:
        """Σ of a scaled number, the largest of its exponents taken out."""
        indices = {index: self.names.fresh(index) for index in term.indices}
        summed = frozenset(indices.values())
        body = self.scaled(substitute(term.body, indices))
        inner = {atom: factor for atom, factor in body.exponent.items() if not summed.isdisjoint(atom.free)}
        outer = {atom: factor for atom, factor in body.exponent.items() if atom not in inner}
        if not inner:
            return ScaledNumber(outer, total(indices.values(), body.rest))
        told = frozenset[Var]().union(*(atom.free for atom in inner))
        conditions = tuple(
            c
            for c in self._conditions(body.rest)
            if not summed.isdisjoint(c.free) and (isinstance(c, Guard) or summed.intersection(c.free) <= told)
        )  # Σ_{j,k} A[i,j] B[j,k] exp(x[k]) is shifted by max_k x[k]: where B is 0 is not asked for each i, j and k
        met = frozenset[Var]().union(*(part.free for part in (*inner, *conditions)))
        peak = self._peak([_Entry(tuple(i for i in indices.values() if i in met), inner, conditions)])
        rest = self._written(ScaledNumber(plus(inner, times(peak, -1)), body.rest))
        whole = total(indices.values(), rest)
        if all(isinstance(f, Guard) and not (isinstance(f, Delta) and f.lookup) for f in _beside(body.rest)):
            self._ample.add(whole)
        return ScaledNumber(plus(outer, peak), whole)

    def _peak(self, entries: Sequence[_Entry]) -> Exponent:
        """The largest of exponents, as a multiple of an element of a binding: that of 2x and 2y is twice that of x, y.

        So squares of exponentials cancel what is divided by squares of their sums, however large they are.
        """
        factors = [factor for entry in entries for factor in entry.exponent.values()]
        whole = [factor for factor in factors if isinstance(factor, int)]
        alike = len(whole) == len(factors) and all(entry.exponent for entry in entries)
        most = max(1, gcd(*whole)) if alike else 1
        parts = [entry.renamed(self.names) for entry in entries]
        if most > 1:
            parts = [replace(part, exponent={a: int(f) // most for a, f in part.exponent.items()}) for part in parts]
        atom, _ = self._shifted(Shift(tuple(part.term for part in parts)), parts)
        return {atom: most}

    def _peak_of_odds(self, exponent: Exponent) -> Term:
        """log(1 + exp(E)), as an element of a binding: no smaller than 0 and E, and near the larger of them."""
        both = [_Entry((), {}, ()), _Entry((), exponent, ())]
        logarithm = Primitive("logaddexp", (ZERO, _term(exponent)))
        atom, var = self._shifted(Shift((ZERO, logarithm)), both)
        self._odds.setdefault(var, exponent)
        return atom

    def _shifted(self, term: Term, entries: Sequence[_Entry]) -> tuple[Term, Var]:
        """An element of a binding that is no smaller than the entries, and the binding."""
        atom = self.named(term, Var("m", Space()))
        var = _binding(atom)
        assert var is not None
        self._peaks.setdefault(var, (free_indices(term), tuple(entries)))
        return atom, var

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

    # --- one denominator

    def _over_one(self, term: Add) -> ScaledNumber | None:
        """Numbers of both signs over a common denominator, if all have one sign then: 1 − 1/(1 + e) is e/(1 + e)."""
        if self._is_positive(term) or not any(map(self._divides, term.terms)):
            return None
        found = [self._fraction(part) for part in term.terms]
        most: Counter[_Key] = Counter()
        for fraction in found:
            if fraction is None:
                return None
            most |= fraction.below
        whole: _Polynomial = {}
        for fraction in filter(None, found):
            missing = [dict(denominator) for denominator in (most - fraction.below).elements()]
            if prod(map(len, missing)) * len(fraction.above) > MOST_TERMS:
                return None
            whole = _added(whole, reduce(_product, missing, fraction.above))
        whole = {exponent: factor for exponent, factor in whole.items() if factor}
        if not whole or len({factor > 0 for factor in whole.values()}) > 1:
            return None
        down = [self._polynomial(dict(one)).to(Number(-count)) for one, count in most.items()]
        return reduce(ScaledNumber.__mul__, down, self._polynomial(whole))

    def _polynomial(self, polynomial: _Polynomial) -> ScaledNumber:
        return self._sum([ScaledNumber(dict(exponent), Number(factor)) for exponent, factor in polynomial.items()])

    def _fraction(self, term: Term) -> _Fraction | None:
        """A sum of exponentials over others, each with numbers as weights; None for other terms."""
        if isinstance(term, Number):
            return None if term.imag else _Fraction({frozenset(): term.real}, Counter())
        if not self.grows(term):
            return None
        if term not in self._fractions:
            self._fractions[term] = self._of_fraction(term)
        return self._fractions[term]

    def _of_fraction(self, term: Term) -> _Fraction | None:
        match term:
            case Var() | Apply():
                found = self.read(term)
                inside = self._fraction(found[1]) if found else None
                return inside and found and inside.at(found[0])
            case Primitive(name="exp", arguments=(argument,)):
                plain = self._linear(argument)
                return _Fraction({frozenset(plain.exponent.items()): 1}, Counter()) if plain.rest is ONE else None
            case Primitive(name="power", arguments=(base, Number(real=int() as power, imag=0))) if abs(power) <= 4:
                inside = self._fraction(base)
                return inside and inside.to(power)
            case Mul() if len(term.factors) <= MOST_TERMS:
                product: _Fraction | None = _Fraction({frozenset(): 1}, Counter())
                for factor in term.factors:
                    inside = self._fraction(factor)
                    if inside is None or product is None:
                        return None
                    product = product.times(inside)
                return product
            case Add() if len(term.terms) <= MOST_TERMS:
                whole: _Polynomial = {}
                for part in term.terms:
                    inside = self._fraction(part)
                    if inside is None or inside.below:
                        return None
                    whole = _added(whole, inside.above)
                return _Fraction(whole, Counter())
        return None

    # --- written down

    def _written(self, number: ScaledNumber) -> Term:
        """exp(E)·r, by exponentials that are bounded; conditions among the factors of r go into their exponents."""
        if not number.exponent:
            return number.rest
        conditions = self._conditions(number.rest)
        exponentials: list[Term] = []
        told: set[Term] = set()
        for group, count, is_bounded in self._groups(number.exponent, conditions):
            peaks = {atom: factor for atom, factor in group.items() if self._peak_of(atom) and factor < 0}
            own = [c for c in conditions if any(map(self._peak_of, group)) and _indices(c) <= _indices(*group)]
            if not own and (share := self._share_of_odds(group)) is not None:
                exponentials.append(function("power", share, Number(count)))
                continue
            if count > MOST_ALIKE:
                group, peaks, count = times(group, count), dict(times(peaks, count)), 1
            told.update(own)
            inner = _term({atom: factor for atom, factor in group.items() if atom not in peaks})
            whole = add(masked(own, inner), _term(peaks))
            if is_bounded and not isinstance(inner, Number) and any(map(self._is_capped, peaks)):
                # where it is +∞ it is its own shift
                whole = Primitive("minimum", (whole, ZERO))
            exponentials.append(function("power", Primitive("exp", (whole,)), Number(count)))
        factors = factors_of(number.rest)
        guards = {factor for factor in factors if isinstance(factor, Guard) and factor in told}
        if all(factor in guards or (isinstance(factor, Number) and factor.finite) for factor in factors):
            factors = tuple(factor for factor in factors if factor not in guards)  # exp(−∞) is 0, and ∞ exp(−∞) is not
        return mul(*exponentials, *factors)

    def _share_of_odds(self, group: Exponent) -> Term | None:
        """exp(−m) as 1 / (1 + exp(E)), exp(E − m) as 1 / (1 + exp(−E)) for m = log(1 + exp(E)); None for others."""
        negative = [atom for atom, factor in group.items() if factor == -1 and self._peak_of(atom)]
        if len(negative) != 1:
            return None
        (peak,) = negative
        var = _binding(peak)
        if var not in self._odds:
            return None
        indices, _ = self._peaks[var]
        at = dict(zip(indices, peak.arguments if isinstance(peak, Apply) else (), strict=True))
        exponent = substituted(self._odds[var], at)
        rest = plus(group, {peak: 1})
        if rest and rest != exponent:
            return None
        odds = Primitive("exp", (_term(times(exponent, -1) if rest else exponent),))
        return self.named(function("power", add(ONE, odds), Number(-1)), Var("r", Space()))

    def _groups(self, exponent: Exponent, conditions: Sequence[Term]) -> list[tuple[Exponent, int, bool]]:
        """An exponent as a sum of such that are at most 0, each with how often it occurs, and whether it is so bounded.

        The exponent as it stands, which may be of any size, where there are none.

        What a shift is the largest of under a condition is below it where that stands beside the exponential.
        """
        found: Counter[frozenset[tuple[Term, Scalar]]] = Counter()
        left = dict(exponent)
        for peak in [atom for atom, factor in exponent.items() if factor < 0 and self._peak_of(atom)]:
            while left.get(peak, 0) < 0 and (entry := self._entry_below(peak, left, conditions)) is not None:
                part = plus(entry, {peak: -1}) if left[peak] <= -1 else None
                if part is None:
                    break
                found[frozenset(part.items())] += 1
                left = dict(plus(left, times(part, -1)))
        if not left:
            return [(dict(part), count, True) for part, count in found.items()]
        if found and self._is_low(left):
            return [*((dict(part), count, True) for part, count in found.items()), (left, 1, self._is_at_most_0(left))]
        return [(exponent, 1, self._is_at_most_0(exponent))]

    def _peak_of(self, atom: Term) -> tuple[tuple[Var, ...], tuple[_Entry, ...]] | None:
        var = _binding(atom)
        return self._peaks.get(var) if var else None

    def _is_capped(self, atom: Term) -> bool:
        """Whether a shift is the larger of a number and a term, so that it is finite where the term is not."""
        found = self._peak_of(atom)
        return found is not None and any(isinstance(entry.term, Number) for entry in found[1])

    def _uncapped(self, exponent: Exponent) -> Term:
        """An exponent, with the largest of terms in place of a shift that is the largest finite number for +∞."""
        parts: list[Term] = []
        for atom, factor in exponent.items():
            found = self._peak_of(atom) if self._is_capped(atom) else None
            if found is not None:
                at = dict(zip(found[0], atom.arguments if isinstance(atom, Apply) else (), strict=True))
                joining = "logaddexp" if _binding(atom) in self._odds else "maximum"
                largest = reduce(lambda one, other: Primitive(joining, (one, other)), (e.term for e in found[1]))
                atom = substitute(largest, at)
            parts.append(mul(Number(exact(factor)), atom))
        return add(*parts)

    def _entry_below(self, peak: Term, left: Exponent, conditions: Sequence[Term]) -> Exponent | None:
        """An exponent that is one of those a shift is the largest of, and part of what is left."""
        entries = self._entries(peak, {v for atom in left for v in _indices(atom)})
        holding = [e for e, needed in entries if set(needed) <= set(conditions)]
        inside = [e for e in holding if all(_covers(left.get(atom, 0), factor) for atom, factor in e.items())]
        return max(inside, key=len, default=None)

    def _entries(
        self, peak: Term, candidates: set[Var], depth: int = MOST_PEAKS
    ) -> list[tuple[Exponent, tuple[Term, ...]]]:
        """The exponents that a shift is the largest of, at all choices of indices, and where each counts.

        Those, too, that a shift among them is the largest of: x[i] ≤ max_j x[j] ≤ max(0, max_j x[j]).
        """
        found = self._peak_of(peak)
        assert found is not None
        parameters, entries = found
        arguments = peak.arguments if isinstance(peak, Apply) else ()
        at: dict[Var, Term] = dict(zip(parameters, arguments, strict=True))
        result: list[tuple[Exponent, tuple[Term, ...]]] = []
        for entry in entries:
            choices: list[dict[Var, Term]] = [at]
            for index in entry.indices:
                fitting = sorted((v for v in candidates if v.type == index.type), key=lambda v: v.name)
                choices = [{**choice, index: value} for choice in choices for value in fitting]
            result += [
                (substituted(entry.exponent, choice), tuple(substitute(c, choice) for c in entry.conditions))
                for choice in choices
            ]
        for exponent, conditions in list(result) if depth else ():
            inner = next((atom for atom, factor in exponent.items() if factor == 1 and self._peak_of(atom)), None)
            if inner is not None:
                rest = plus(exponent, {inner: -1})
                below = self._entries(inner, candidates, depth - 1)
                result += [(plus(rest, part), (*conditions, *needed)) for part, needed in below]
        return result

    def _stays(self, number: ScaledNumber) -> bool:
        """Whether the exponent of a number is bounded where the number is not 0."""
        return self._is_bounded(number.exponent, self._conditions(number.rest))

    def _is_bounded(self, exponent: Exponent, conditions: Sequence[Term]) -> bool:
        """Whether an exponent is at most a small number by its form, where conditions hold."""
        return self._left_over(exponent, conditions) is not None

    def _is_settled(self, number: ScaledNumber) -> bool:
        """Whether a number is bounded, and no shift is left in its exponent that a factor could cancel."""
        found = self._left_over(number.exponent, self._conditions(number.rest))
        return found is not None and not any(
            factor < 0 and self._peak_of(atom) for left in found for atom, factor in left.items()
        )

    def _left_over(
        self, exponent: Exponent, conditions: Sequence[Term], depth: int = MOST_PEAKS
    ) -> list[Exponent] | None:
        """What is left of a bounded exponent once shifts have cancelled what they are the largest of; None if large.

        One for each of the terms that a shift left above is the largest of.
        """
        left = dict(exponent)
        for peak in [atom for atom, factor in exponent.items() if factor < 0 and self._peak_of(atom)]:
            while left.get(peak, 0) < 0 and (entry := self._entry_below(peak, left, conditions)) is not None:
                if not entry:
                    break
                left = dict(plus(left, plus(times(entry, -1), {peak: 1})))
                if left.get(peak, 0) > 0:
                    return None
        if self._is_low(left):
            return [left]
        above = next((atom for atom, factor in left.items() if factor > 0 and self._peak_of(atom)), None)
        if above is None or not depth:
            return None
        factor = left.pop(above)
        found = self._peak_of(above)
        assert found is not None
        at: dict[Var, Term] = dict(zip(found[0], above.arguments if isinstance(above, Apply) else (), strict=True))
        parts: list[Exponent] = []
        for each in found[1]:
            one = plus(left, times(substituted(each.exponent, at), factor))
            inside = self._left_over(one, conditions, depth - 1)
            if inside is None:
                return None
            parts += inside
        return parts

    def _is_low(self, exponent: Exponent) -> bool:
        """Whether no term is positive, but for a small number; a shift that has 0 among its terms is not negative."""
        number = exponent.get(ONE, 0)
        others = [(atom, factor) for atom, factor in exponent.items() if atom is not ONE]
        return number <= LARGEST and all(factor < 0 and self._is_nonnegative(atom) for atom, factor in others)

    def _is_at_most_0(self, exponent: Exponent) -> bool:
        return self._is_low(exponent) and exponent.get(ONE, 0) <= 0

    def _is_nonnegative(self, atom: Term) -> bool:
        found, var = self._peak_of(atom), _binding(atom)
        if found is None or var is None:
            return is_nonnegative(atom)
        if var not in self._nonnegative:  # a peak has peaks among its entries, and these have in theirs
            opposites = (times(entry.exponent, -1) for entry in found[1])
            self._nonnegative[var] = any(not opposite or self._is_low(opposite) for opposite in opposites)
        return self._nonnegative[var]


def _is_zero_at_all_sizes(term: Term) -> bool:
    """Whether a sum of products of numbers and powers of sizes cancels, as 2/n − 2 n/n² does."""
    left: dict[frozenset[tuple[Term, int]], Scalar] = {}
    for part in term.terms if isinstance(term, Add) else (term,):
        number: Scalar = 1
        powers = Counter[Term]()
        for factor in factors_of(part):
            match factor:
                case Number(imag=0):
                    number *= factor.real
                case Coordinate():
                    powers[factor] += 1
                case Primitive(name="power", arguments=(Coordinate() as size, Number(real=int() as power, imag=0))):
                    powers[size] += power
                case _:
                    return False
        key = frozenset((size, power) for size, power in powers.items() if power)
        left[key] = left.get(key, 0) + number
    return not any(left.values())


def _over_odds(parts: Sequence[ScaledNumber], odds: Exponent) -> Term | None:
    """(a + b·exp(E)) / (1 + exp(E)) where that is one function: a for b = a, and for b = −a, which cancels near 0."""
    one, other = (part.rest for part in sorted(parts, key=lambda part: len(part.exponent)))
    if one == other:
        return one
    return mul(other, Primitive("tanh", (_term(times(odds, HALF.real)),))) if one == negate(other) else None


def _binding(atom: Term) -> Var | None:
    """The variable of which a term is an element."""
    var = atom.function if isinstance(atom, Apply) else atom
    return var if isinstance(var, Var) else None


# --- exponents -----------------------------------------------------------------------------------------------------


def _covers(whole: Scalar, part: Scalar) -> bool:
    """Whether a multiple is part of another, of the same sign."""
    return whole * part >= part * part


def _term(exponent: Exponent) -> Term:
    """The sum; its order is that of the terms, so that equal exponents are one term, whatever made them."""
    parts = sorted(exponent.items(), key=lambda part: order_key(part[0]))
    return add(*(mul(Number(exact(factor)), atom) for atom, factor in parts))


def _indices(*terms: Term) -> frozenset[Var]:
    return frozenset(v for term in terms for v in term.free if is_domain(v.type))


def _product(one: _Polynomial, other: _Polynomial) -> _Polynomial:
    found: _Polynomial = {}
    for left, a in one.items():
        for right, b in other.items():
            key = frozenset(plus(dict(left), dict(right)).items())
            found[key] = found.get(key, 0) + a * b
    return {key: factor for key, factor in found.items() if factor}


def _added(one: _Polynomial, other: _Polynomial) -> _Polynomial:
    keys = {**one, **other}
    return {key: one.get(key, 0) + other.get(key, 0) for key in keys}


def _without_deltas(term: Term) -> Term:
    """δ(i, j)·f(i, j) as δ(i, j)·f(i, i), so that what cancels where the δ is 1 can be seen."""
    for delta in (f for f in factors_of(term) if isinstance(f, Delta)):
        left, right = delta.left, delta.right
        if isinstance(left, Var) and isinstance(right, Var) and left.type == right.type:
            return mul(*(f if f is delta else substitute(f, {right: left}) for f in factors_of(term)))
    return term


def _beside(rest: Term) -> tuple[Term, ...]:
    """The factors of what an exponential is multiplied by, but for 1."""
    return tuple(factor for factor in factors_of(rest) if factor is not ONE)


def _running_inside(term: Term) -> Term:
    """Σ_{k ≤ j} f(k)·g(j) as Σ_j g(j) Σ_{k ≤ j} f(k), with a largest exponent for each j; other terms as they are."""
    if not isinstance(term, Sum) or len(term.indices) < 2:
        return term
    factors = factors_of(term.body)
    for index in term.indices:
        inside = [factor for factor in factors if index in factor.free]
        bounds = [factor for factor in inside if isinstance(factor, Guard)]
        others = frozenset[Var]().union(*(bound.free for bound in bounds)) - {index}
        apart = all(factor.free.isdisjoint(others) for factor in inside if factor not in bounds)
        outside = [factor for factor in factors if factor not in inside]
        bounded = len(bounds) == 1 and isinstance(bounds[0], Indicator) and not bounds[0].modulus
        if bounded and others and apart and outside:
            rest = [other for other in term.indices if other is not index]
            return total(rest, mul(*outside, total([index], mul(*inside))))
    return term


def _is_infinite(term: Term) -> bool:
    """Whether a term is an infinite number, or has one as a factor."""
    first = factors_of(term)[0]
    return isinstance(first, Number) and isinstance(first.real, float) and isinf(first.real)


def _moved(polynomial: _Polynomial, replacement: Mapping[Var, Term]) -> _Polynomial:
    found: _Polynomial = {}
    for exponent, factor in polynomial.items():
        key = frozenset(substituted(dict(exponent), replacement).items())
        found[key] = found.get(key, 0) + factor
    return found


def _base(term: Term) -> Term:
    """w of a positive power wⁿ, which is 0 where w is."""
    match term:
        case Primitive(name="power", arguments=(base, Number(imag=0) as exponent)) if exponent.real > 0:
            return base
    return term


def _head(term: Term) -> Term:
    """The tensor that a weight is an element of, or a power of one."""
    base = _base(term)
    return base.function if isinstance(base, Apply) else base
