"""Roots of a few squares as hypotenuses, which do not overflow, and quotients by them as quotients of sides.

    sqrt(1 + x²)                →   hypot(1, x)
    x·y / (x² + y²)             →   (x/h)·(y/h)                                 h = hypot(x, y)
    1/h − x²/h³                 →   (y/h)²/h

A side is at most as large as its hypotenuse, so that side/h neither over- nor underflows where x²/h³ does both. Sums of
squares over an index have scales of their own (`magnitudes`).

Invariant: the value is unchanged where the program has one without over- or underflow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import reduce

from combdiff.ir import (
    ONE,
    Add,
    Apply,
    Guard,
    Implicit,
    Lambda,
    Let,
    Mul,
    Number,
    Primitive,
    Rescaled,
    Scan,
    Space,
    Sum,
    Term,
    Var,
    add,
    dtype_of,
    exact,
    factors_beside,
    factors_of,
    free_indices,
    function,
    is_positive,
    mul,
    subterms,
    whole_power,
)
from combdiff.records import dataclass
from combdiff.simplification import order_key
from combdiff.stability.bindings import Rewriting

MOST_SIDES = 4

Sides = tuple[Term, ...]
"""What is squared under a root, in a fixed order; numbers among them are positive."""


@dataclass(frozen=True)
class _Quotient:
    """number · Π factor^power / Π hypotenuse^power."""

    number: Term
    above: Counter[Term]
    below: Counter[Sides]
    others: tuple[Term, ...]

    @property
    def key(self) -> tuple[frozenset[tuple[Term, int]], frozenset[tuple[Sides, int]], frozenset[Term]]:
        """All but the number."""
        return frozenset(self.above.items()), frozenset(self.below.items()), frozenset(self.others)

    def with_square(self, side: Term, sides: Sides) -> _Quotient:
        """The product with (side/h)²."""
        above = self.above if side is ONE else self.above + Counter({side: 2})
        return _Quotient(self.number, above, self.below + Counter({sides: 2}), self.others)


def with_hypotenuses(program: Lambda) -> Lambda:
    """The program with roots of sums of squares as hypotenuses, and what is divided by them as quotients of sides."""
    if not any(map(_may_divide, subterms(program))):
        return program
    finding = _Finding(program)
    asking = any(map(finding.asks, (*finding.scope.values(), finding.result)))
    return finding.rewritten() if asking else program


def _may_divide(term: Term) -> bool:
    match term:
        case Primitive(name="sqrt" | "hypot"):
            return True
        case Primitive(name="power", arguments=(_, Number(imag=0) as power)):
            return not isinstance(power.real, int) or power.real < 0
    return False


class _Finding(Rewriting):
    """Rewrites the bindings of one program; see the module."""

    def __init__(self, program: Lambda) -> None:
        super().__init__(program)
        self._values: dict[Term, Term] = {}
        self._asks: dict[Term, bool] = {}
        self._hypotenuses: dict[Term, tuple[Sides, Fraction] | None] = {}

    # --- which terms are hypotenuses

    def hypotenuse(self, term: Term) -> tuple[Sides, Fraction] | None:
        """The sides of the hypotenuse that a term is a power of, and the power."""
        if term not in self._hypotenuses:
            self._hypotenuses[term] = self._find_hypotenuse(self.opened(term))
        return self._hypotenuses[term]

    def _find_hypotenuse(self, term: Term) -> tuple[Sides, Fraction] | None:
        match term:
            case Primitive(name="hypot", arguments=arguments):
                return self._ordered(self._all_sides(arguments)), Fraction(1)
            case Primitive(name="sqrt", arguments=(base,)):
                return self._power_of(base, Fraction(1, 2))
            case Primitive(name="power", arguments=(base, Number(imag=0) as power)) if power.exact:
                return self._power_of(base, Fraction(power.real))
            case Add():
                sides = [self._side(part) for part in term.terms]
                found = [side for side in sides if side is not None]
                if len(found) < len(sides) or len(sides) > MOST_SIDES:
                    return None
                return self._ordered(found), Fraction(2)
        return None

    def _power_of(self, base: Term, power: Fraction) -> tuple[Sides, Fraction] | None:
        found = self.hypotenuse(base)
        return found and (found[0], found[1] * power)

    def _all_sides(self, arguments: tuple[Term, ...]) -> list[Term]:
        """The sides of hypot(hypot(x, y), z) are three."""
        found: list[Term] = []
        for argument in arguments:
            inside = self.opened(argument)
            nested = isinstance(inside, Primitive) and inside.name == "hypot"
            found += self._all_sides(inside.children) if nested else [argument]
        return found

    def _side(self, part: Term) -> Term | None:
        """a of a² and of c·a², of which c is positive; the root of a positive number; None for other terms."""
        part = self.opened(part)
        number: Term = ONE
        powers: Counter[Term] = Counter()
        for factor in factors_of(part):
            base, power = whole_power(self.opened(factor))
            if isinstance(base, Number) and power == 1:
                number = mul(number, base)
            elif power < 0 or dtype_of(base) is complex or self._is_summed(base):
                return None
            else:
                powers[base] += power
        if not is_positive(number) or any(power % 2 for power in powers.values()):
            return None
        sides = [function("power", base, Number(power // 2)) for base, power in powers.items()]
        return mul(*sides) if number is ONE else mul(function("sqrt", number), *sides)

    def _is_summed(self, term: Term) -> bool:
        """Whether a term has no value but that of a Σ: those have scales."""
        return isinstance(self.opened(term), Sum)

    def _ordered(self, sides: list[Term]) -> Sides:
        return tuple(sorted(sides, key=order_key))

    # --- which programs have them

    def asks(self, term: Term) -> bool:
        """Whether something in a term is a root of squares, or is divided by one that it has a side of."""
        if term not in self._asks:
            self._asks[term] = self._is_asked(term) or any(map(self.asks, term.children))
        return self._asks[term]

    def _is_asked(self, term: Term) -> bool:
        if isinstance(term, Implicit | Scan | Let):
            return False
        if isinstance(term, Mul):
            return self._has_sides(self._quotient(term)) or self._multiplied_out(term) is not term
        return self._root(term) is not None

    def _root(self, term: Term) -> tuple[Sides, Fraction] | None:
        """The sides of an odd power of a hypotenuse that is not written as such."""
        if not isinstance(term, Primitive) or term.name not in ("sqrt", "power"):
            return None
        found = self.hypotenuse(term)
        return found if found and len(found[0]) > 1 and found[1].denominator == 1 and found[1] % 2 else None

    # --- terms

    def value(self, term: Term) -> Term:
        """A number or tensor, with its roots as hypotenuses."""
        if term not in self._values:
            self._values[term] = self._of_value(term)
        return self._values[term]

    def _of_value(self, term: Term) -> Term:
        if not self.asks(term) or isinstance(term, Implicit | Scan | Let):
            return term
        if isinstance(term, Add):
            return add(*map(self._written, self._joined(term)))
        if isinstance(term, Mul) and self._has_sides(quotient := self._quotient(term)):
            return self._written(quotient)
        if isinstance(term, Mul) and (parts := self._multiplied_out(term)) is not term:
            return self.value(parts)
        if root := self._root(term):
            return function("power", self._length(root[0]), Number(exact(root[1])))
        children = tuple(map(self.value, term.children))
        return term if children == term.children else term.with_children(children)

    def _length(self, sides: Sides) -> Term:
        """The hypotenuse, as an element of a binding."""
        values = [self.value(side) for side in sides]
        return self.named(reduce(lambda one, other: Primitive("hypot", (one, other)), values), Var("h", Space()))

    # --- quotients

    def _quotient(self, term: Term) -> _Quotient:
        """A product, its hypotenuses apart; of bindings that are products of their sides, what is in them."""
        number: Term = ONE
        above: Counter[Term] = Counter()
        below: Counter[Sides] = Counter()
        others: list[Term] = []
        conditions: list[Term] = []  # which are never divided: what they guard is 0 where they do not hold
        for factor in factors_of(term):
            found = self.hypotenuse(factor) if isinstance(factor, Primitive | Var | Apply) else None
            joined = self._joined(factor) if isinstance(factor, Add) else []
            if isinstance(factor, Number):
                number = mul(number, factor)
            elif isinstance(factor, Guard):
                conditions.append(factor)
            elif len(joined) == 1:
                number = mul(number, joined[0].number)
                above, below = above + joined[0].above, below + joined[0].below
                others += joined[0].others
            elif found and found[1] < 0 and found[1].denominator == 1:
                below[found[0]] += -found[1].numerator
            else:
                others.append(factor)
        sides = {side for each in below for side in each}
        rest: list[Term] = []
        for factor in others:
            inside = [whole_power(each) for each in factors_of(self.opened(factor))]
            powers = inside if all(base in sides and power > 0 for base, power in inside) else [whole_power(factor)]
            rest += [factor] if powers[0][1] < 0 else []
            for base, power in powers:
                if power > 0:
                    above[base] += power
        return _Quotient(number, above, below, (*rest, *conditions))

    def _multiplied_out(self, term: Term) -> Term:
        """A product with a sum among its factors, multiplied out where squares of hypotenuses divide terms of that.

        In x (a/hypot(x, y)² + b/hypot(x, z)²) each quotient has its side then.
        """
        for factor in factors_of(term):
            if (
                factor is not term
                and isinstance(factor, Add)
                and any(n > 1 for p in self._joined(factor) for n in p.below.values())
            ):
                rest = factors_beside(factor, term)
                parts = [mul(*rest, part) for part in factor.terms]
                if any(self._has_sides(self._quotient(part)) for part in parts):
                    return add(*parts)
        return term

    def _has_sides(self, quotient: _Quotient) -> bool:
        """Whether a product has sides of what it is divided by that may overflow.

        In x / (1 + x²) none does: it is 0 at worst where the square overflows.
        """
        for sides in quotient.below:
            least = 2 if any(map(is_positive, sides)) else 1
            degrees = [quotient.above[side] for side in sides]
            degrees += [self._degree(base, sides) for base in quotient.above]
            if max(degrees, default=0) >= least:
                return True
        return False

    def _degree(self, base: Term, sides: Sides) -> int:
        """How many sides are multiplied in a term of a sum, at most."""
        parts = map(self._quotient, base.terms) if isinstance(base, Add) else ()
        return max((sum(part.above[side] for side in sides) for part in parts), default=0)

    def _written(self, quotient: _Quotient) -> Term:
        """A product, its sides by their hypotenuses; where more than one is left below, other factors are divided."""
        above, below = Counter(quotient.above), Counter(quotient.below)
        shares: list[Term] = []

        def share(base: Term, sides: Sides, most: int) -> None:
            if (count := min(above[base], most)) > 0:
                shares.append(function("power", Rescaled(self.value(base), self._length(sides)), Number(count)))
                above[base] -= count
                below[sides] -= count

        def share_sum(base: Term, sides: Sides) -> None:
            degree = self._degree(base, sides)
            if isinstance(base, Add) and above[base] == 1 and 0 < degree <= below[sides]:
                parts = [replace(part, below=part.below + Counter({sides: degree})) for part in self._joined(base)]
                shares.append(add(*map(self._written, parts)))
                above[base] -= 1
                below[sides] -= degree

        for sides in quotient.below:
            for base in quotient.above:
                share_sum(base, sides)
            for side in dict.fromkeys(sides):
                share(side, sides, below[sides])
            for base in quotient.above:
                if free_indices(base) == free_indices(self._length(sides)):
                    share(base, sides, below[sides] - 1)
        powers = [function("power", self.value(base), Number(count)) for base, count in above.items() if count]
        divisors = [function("power", self._length(sides), Number(-n)) for sides, n in below.items() if n]
        return mul(quotient.number, *shares, *divisors, *powers, *map(self.value, quotient.others))

    # --- differences

    def _joined(self, term: Add) -> list[_Quotient]:
        """The terms of a sum, of which w/h − w·x²/h³ is w·y²/h³."""
        whole = add(*map(self._multiplied_out, term.terms))
        terms = whole.terms if isinstance(whole, Add) else (whole,)
        left = {part: self._quotient(part) for part in terms}
        joined: list[_Quotient] = []
        for part in terms:
            if part in left:
                joined += self._other_sides(part, left)
        return [*left.values(), *joined]

    def _other_sides(self, part: Term, left: dict[Term, _Quotient]) -> list[_Quotient]:
        """What w·x²/h³ and one of the terms that are left are together, both taken out; nothing where there is none."""
        for whole, sides, side in _complements(left[part]):
            opposite = mul(whole.number, Number(-1))
            match = next((p for p, q in left.items() if q.key == whole.key and q.number is opposite), None)
            if match is not None:
                del left[part]
                found = left.pop(match)
                others = list(sides)
                others.remove(side)
                return [found.with_square(other, sides) for other in others]
        return []


def _complements(quotient: _Quotient) -> Iterator[tuple[_Quotient, Sides, Term]]:
    """w/h, for each way in which a product is w·x²/h³; with the sides of h, and x."""
    for sides, count in quotient.below.items():
        for side in dict.fromkeys(sides):
            if count > 1 and (side is ONE or quotient.above[side] > 1):
                above = quotient.above if side is ONE else quotient.above - Counter({side: 2})
                below = quotient.below - Counter({sides: 2})
                yield _Quotient(quotient.number, above, below, quotient.others), sides, side
