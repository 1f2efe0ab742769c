"""Conditions told beside what they guard: a factor that is 0 where none of its conditions holds, put under each.

    ([i < j] + [i > k])·log(w[i,j])                →  [i < j]·log(w[i,j]) + [i > k]·log(w[i,j])
    v[i,j]/w[i,j]  with  v[i,j] = [i ≠ j]·P[i,j]   →  [i ≠ j]·v[i,j]/w[i,j]

A product is 0 where a condition among its factors fails, whatever the others are: they may be infinite or undefined
there, and are not computed. Common factors in front of a sum, or a name for it, must not hide such a condition.

Invariant: the value is unchanged wherever all factors have one; a product without partial functions stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from combdiff.ir import (
    ONE,
    ZERO,
    Add,
    Apply,
    Conj,
    Cyclic,
    Delta,
    Guard,
    Implicit,
    Indicator,
    Lambda,
    Let,
    Mul,
    Names,
    Number,
    Primitive,
    Relation,
    Rewriter,
    Scan,
    Sum,
    SummedProduct,
    Term,
    Unequal,
    Var,
    add,
    factors_of,
    let,
    mul,
    opposite,
    relation,
    substitute,
    subterms,
)
from combdiff.planning.lowering.graph import TOTAL
from combdiff.simplification import plain_conditions, solve

MOST_REGIONS = 8  # of a product
MOST_PIECES = 16  # that a product is written in
Region = tuple[Term, ...]  # conditions that all hold


def guard_conditions(program: Lambda, partial: frozenset[str] = frozenset()) -> Lambda:
    """The program with conditions beside partial functions, and `partial` parameters, that they guard."""
    nodes = list(subterms(program))
    relations = any(isinstance(n, Relation) for n in nodes)
    guards = any(isinstance(n, Guard) for n in nodes)
    if not relations and not (guards and (partial or any(map(_is_partial_function, nodes)))):
        return program
    given = (p for p in program.parameters if p.name in partial)
    return Lambda(program.parameters, _Telling(given).run(program.body))


def _is_partial_function(term: Term) -> bool:
    """Whether a function may be infinite or undefined at some number, by overflow too."""
    if not isinstance(term, Primitive) or term.name in TOTAL:
        return False
    exponent = term.arguments[-1]
    natural = isinstance(exponent, Number) and isinstance(exponent.real, int) and exponent.real >= 0
    return not (term.name == "power" and natural and not exponent.imag)  # type: ignore[attr-defined]


class _Telling(Rewriter):
    """Rewrites one program; remembers what its bindings are."""

    def __init__(self, partial: Iterable[Term]) -> None:
        super().__init__()
        self.scope: dict[Var, Term] = {}
        self._regions: dict[Term, tuple[Region, ...] | None] = {}
        self._partial: dict[Term, bool] = dict.fromkeys(partial, True)

    def node(self, term: Term) -> Term:
        """The term with its conditions told."""
        match term:
            case Let():
                bindings = []
                for var, value in term.bindings:
                    self.scope[var] = self.run(value)
                    bindings.append((var, self.scope[var]))
                return let(bindings, self.run(term.body))
            case Mul():
                return self._product([self.run(factor) for factor in term.factors])
            case Implicit():
                return term
            case Scan():
                return term.with_children((term.step, *map(self.run, term.starts)))
        return self.inside(term)

    def _product(self, factors: Sequence[Term], done: frozenset[Term] = frozenset()) -> Term:
        """A product, with the conditions of each factor that are not told yet; those of `done` are."""
        whole = mul(*factors)
        parts = factors_of(whole)
        conditions = {part for part in parts if isinstance(part, Guard)}
        for n, part in enumerate(parts):
            regions = None if part in conditions or part in done else self.regions(part)
            rest = (*parts[:n], *parts[n + 1 :])
            if regions == ():
                return ZERO
            if regions is None or any(map(conditions.issuperset, regions)):
                continue
            if not any(map(self.is_partial, rest)) and not (_chooses(part, regions) and _holds_arrays(rest)):
                continue
            if isinstance(part, Add):
                return add(*(self._product((*rest, addend), done) for addend in part.terms))
            pieces = _disjoint(regions)
            return add(*(self._product((*rest, *region, part), done | {part}) for region in pieces))
        return whole

    def is_partial(self, term: Term) -> bool:
        """Whether a number or tensor may be infinite or undefined where the parameters are numbers."""
        if term not in self._partial:
            inside = (
                (*term.children, self.scope[term]) if isinstance(term, Var) and term in self.scope else term.children
            )
            self._partial[term] = _is_partial_function(term) or any(map(self.is_partial, inside))
        return self._partial[term]

    def regions(self, term: Term) -> tuple[Region, ...] | None:
        """Outside of which a number is 0 by its conditions; None where nothing is known."""
        if term not in self._regions:
            self._regions[term] = self._found(term)
        return self._regions[term]

    def _found(self, term: Term) -> tuple[Region, ...] | None:
        match term:
            case Delta() | Indicator() | Unequal() | Relation():
                return ((term,),)
            case Mul():
                return self._of_product(term)
            case Add():
                found = [self.regions(addend) for addend in term.terms]
                every = dict.fromkeys(region for one in found if one is not None for region in one)
                return tuple(every) if None not in found and not _is_everywhere(tuple(every)) else None
            case Conj():
                return self.regions(term.body)
            case Primitive(name="real" | "imag", arguments=(argument,)):
                return self.regions(argument)
            case Sum():
                return self._of_sum(term)
            case Apply(function=Var() as var) if isinstance(value := self.scope.get(var), Lambda):
                return self._of_access(value, term.arguments)
        return None

    def _of_product(self, term: Mul) -> tuple[Region, ...] | None:
        found: list[Region] = [()]
        for factor in term.factors:
            if (more := self.regions(factor)) is not None and len(found) * len(more) <= MOST_REGIONS:
                found = [(*region, *one) for region in found for one in more]
        return tuple(found) if found != [()] else None

    def _of_sum(self, term: Sum) -> tuple[Region, ...] | None:
        inside = self.regions(term.body)
        if inside is None:
            return None
        outside = (_without(term.indices, region) for region in inside)
        found = tuple(dict.fromkeys(region for region in outside if ZERO not in region))
        return found if () not in found else None

    def _of_access(self, value: Lambda, arguments: Sequence[Term]) -> tuple[Region, ...] | None:
        inside = self.regions(value.body)
        pairs: Mapping[Var, Term] = dict(zip(value.parameters, arguments, strict=True))
        turned = any(isinstance(p.type, Cyclic) and getattr(a, "type", None) != p.type for p, a in pairs.items())
        if inside is None or turned:  # on a cycle what is read is reduced first
            return None
        read = [tuple(substitute(condition, pairs) for condition in region) for region in inside]
        return tuple(tuple(c for c in region if not isinstance(c, Number)) for region in read if ZERO not in region)


def _chooses(term: Term, regions: Sequence[Region]) -> bool:
    """Whether a sum has been factored out of terms that numbers in arrays choose from: those may be no numbers."""
    return isinstance(term, Add) and any(isinstance(condition, Relation) for region in regions for condition in region)


def _holds_arrays(factors: Sequence[Term]) -> bool:
    return not all(isinstance(factor, Number | Guard) for factor in factors)


def _without(indices: Sequence[Var], region: Region) -> Region:
    """What a region says of other indices: its conditions, the δ's in it solved for the indices that are summed."""
    left = solve(SummedProduct(tuple(indices), region), Names(*region))
    return tuple(c for c in left.factors if c.free.isdisjoint(left.indices) and c is not ONE)


def _disjoint(regions: Sequence[Region]) -> list[Region]:
    """Regions with the same union, no two of which overlap, as each becomes a product of its own.

    Where there would be many, and where what lies outside of one has no form, it is one: 0 < how many of them hold.
    """
    found: list[Region] = []
    outside: list[Region] = [()]
    for n, region in enumerate(regions):
        found += _possible((*left, *region) for left in outside)
        if n + 1 < len(regions):
            rest = _outside(outside, region)
            if rest is None:
                return [_counted(regions)]
            outside = rest
        if len(found) + len(outside) > MOST_PIECES:
            return [_counted(regions)]
    return found


def _is_everywhere(regions: Sequence[Region]) -> bool:
    """Whether regions are known to have all indices: [i ≥ 16] and [i ≤ 15]."""
    outside: list[Region] | None = [()]
    for region in regions:
        if outside is None or len(outside) > MOST_PIECES:
            return False
        outside = _outside(outside, region)
    return outside == []


def _outside(parts: Sequence[Region], region: Region) -> list[Region] | None:
    """What is left of disjoint regions outside of another; None where that has no form."""
    complement = _complement(region)
    return None if complement is None else _possible((*left, *piece) for left in parts for piece in complement)


def _counted(regions: Sequence[Region]) -> Region:
    """Where some of the regions hold, as one condition."""
    return (relation("less", ZERO, add(*(mul(*region) for region in regions))),)


def _possible(regions: Iterable[Region]) -> list[Region]:
    """Those of some regions that are not known to be empty, in few conditions."""
    plain = (tuple(plain_conditions(list(dict.fromkeys(region)))) for region in regions)
    return [region for region in plain if ZERO not in region]


def _complement(region: Region) -> list[Region] | None:
    """Disjoint regions that make up what lies outside of one.

    What numbers say is asked where indices are: beyond an axis neither they nor their opposites hold.
    """
    found: list[Region] = []
    ordered = sorted(region, key=lambda condition: isinstance(condition, Relation))
    for n, condition in enumerate(ordered):
        outside = opposite(condition)
        if outside is None:
            return None
        found.append((*ordered[:n], outside))
    return found
