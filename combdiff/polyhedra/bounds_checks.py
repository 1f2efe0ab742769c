"""Accesses that may leave their tensor: found when a program is traced, decided when its sizes are known.

    Σ_i x[i + 1]·y[i]                        with x, y over Range(5): x is read at 5, refused
    Σ_{i,k} x[i + k]·w[k]                    with named sizes: refused for arrays where some i + k is past the end
    Σ_i [i + 1 < n]·x[i + 1]                 stays inside for every n

An access is kept with the conditions that guard it, the δ's and indicators of the products around it. Those in the
body of a tensor that is read elsewhere count where the tensor is read, with the guards there: what no one asks for is
not computed. Whether indices exist that meet the guards and leave the axis is decided exactly, by Fourier-Motzkin
elimination and a search of the integer points it leaves.

Invariant: an access that `check` lets pass reads inside its axis at every index that meets its guards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product

from combdiff.errors import IndexingError, Location
from combdiff.ir import (
    ONE,
    ZERO,
    Add,
    Apply,
    Conj,
    Cyclic,
    Delta,
    Domain,
    Function,
    IndexGuard,
    Indicator,
    Lambda,
    Let,
    Mul,
    Range,
    Real,
    Relation,
    Size,
    Space,
    Sum,
    Symmetric,
    Term,
    Unequal,
    Var,
    Whole,
    access_name,
    affine,
    as_integer,
    describe,
    exchanged,
    index_form,
    indicator,
    is_domain,
    is_index,
    is_reduced,
    names_in,
    remainder_parts,
    show_index,
    size_form,
    substitute,
    subterms,
    type_of,
    unequal,
)
from combdiff.polyhedra.affine import Bounds, Linear, contradictory, eliminate, implied, tighten
from combdiff.polyhedra.linear_forms import in_domain, linear, met_by_each, premises_of, projected, size_linear, symbol
from combdiff.records import dataclass

MOST_POINTS = 100_000  # loops entered in search of an index; beyond, what holds over the rationals decides

Guards = frozenset[Term]


@dataclass(frozen=True)
class Access:
    """`tensor[…, index, …]` at one axis, where the guards hold; its free indices run over their domains."""

    tensor: str
    axis: int
    domain: Domain
    index: Term
    guards: Guards = frozenset()

    @property
    def free(self) -> frozenset[Var]:
        """The indices and sizes that it depends on."""
        return self.index.free.union(*(guard.free for guard in self.guards))

    def at(self, replacement: Mapping[Var, Term], guards: Guards) -> Access | None:
        """The access with forms for indices and under further guards; None where they cannot hold."""
        moved = {substitute(guard, replacement) for guard in self.guards}
        index = substitute(self.index, replacement)
        if ZERO in guards:
            return None
        moved |= {guard for guard in guards if not any(isinstance(v.type, Real) for v in guard.free)}
        if ZERO in moved:
            return None
        return Access(self.tensor, self.axis, self.domain, index, frozenset(moved - {ONE}))

    # --- deciding --------------------------------------------------------------------------------------------------

    @property
    def is_sized(self) -> bool:
        """Whether it depends on no named size."""
        forms = (form for system in ([self._outside({})], self._systems({})) for part in system for form in part)
        return not any(name.startswith("#") for form in forms for name in form.symbols)

    def is_safe(self) -> bool:
        """Whether it stays inside for all sizes."""
        return all(map(contradictory, self._regions()))

    def _regions(self) -> Iterator[list[Linear]]:
        """Where it leaves the axis, for all sizes: the union of these, of which each is where its forms are ≥ 0."""
        sides = self._outside({})
        for system in self._systems({}):
            yield from ([side, *system] for side in sides)

    def outside(self) -> tuple[tuple[Linear, ...], ...]:
        """The regions that hold integer points as far as can be seen, with what holds for the sizes at these points."""
        found = (_with_sizes(region) for region in self._regions() if not contradictory(region))
        return tuple(region for region in found if not contradictory(region))

    def escape(self, sizes: Mapping[str, int]) -> dict[str, int] | None:
        """Values of the indices at which it leaves the axis; None where there are none."""
        for side in self._outside(sizes):
            for system in self._systems(sizes):
                if not contradictory([side, *system]):
                    found = next(self._points([side, *system]), None)
                    if found is not None:
                        return found
        return None

    def _outside(self, sizes: Mapping[str, int]) -> list[Linear]:
        """Forms of which one is ≥ 0 where the index leaves the axis."""
        inside = in_domain(linear(self.index), self.domain)
        return [_sized(form.scale(-1) - 1, sizes) for form in inside]

    def _systems(self, sizes: Mapping[str, int]) -> Iterator[list[Linear]]:
        """What is ≥ 0 where the guards hold, for each way in which they may."""
        forms = premises_of(self.free)
        guards = enumerate(sorted(_of_indices(self.guards), key=repr))
        for cases in product(*(_guard_cases(guard, f"turns {number}", sizes) for number, guard in guards)):
            yield [_sized(form, sizes) for form in (*forms, *(form for case in cases for form in case))]

    def _points(self, system: list[Linear]) -> Iterator[dict[str, int]]:
        names = sorted({name for form in system for name in form.symbols}, key=lambda n: (n.startswith("turns"), n))
        loops = eliminate(system, reversed(names)).bounds[::-1]
        yield from islice(_enter(loops, {}, [MOST_POINTS]), 1)

    def refusal(self, point: Mapping[str, int], sizes: Mapping[str, int], location: Location | None) -> IndexingError:
        """The error that names tensor, axis, index value and range."""
        value = _sized(linear(self.index), sizes).evaluate(point)
        rests = self._rests()
        names = {symbol(v): show_index(v) for v in self.index.free - rests.keys() if not isinstance(v.type, Whole)}
        where = ", ".join(f"{names[name]} = {point[name]}" for name in sorted(names) if name in point)
        first, last = ends(self.domain, sizes)
        extent = f"the indices {first} … {last}" if first <= last else "no indices"
        given = {v.name for v in self.index.free if isinstance(v.type, Whole)} | sizes_named(self.domain)
        given |= {name for v in self.index.free for name in sizes_named(v.type)}
        known = ", ".join(f"{name} = {sizes[name]}" for name in sorted(given) if name in sizes)
        index = show_index(substitute(self.index, rests))
        at = f"{index} = {value}" if where or rests else str(value)
        return IndexingError(
            f"axis {self.axis} of {self.tensor} is read at {at}{f' (for {where})' if where else ''}, but it has "
            f"{extent}{f' for {known}' if known else ''}",
            hint=f"read it where it exists, cd.where(({index} >= 0) & (…), {self.tensor}[…], 0), or declare the axis "
            "cd.Cyclic if indices should wrap",
            location=location,
        )

    def _rests(self) -> dict[Var, Var]:
        """The indices that a δ says to be remainders, as a user writes these: (d - k) % 6."""
        found = ((index, remainder_parts(value)) for index, value in _lookups(self.guards))
        return {
            index: replace(index, name=f"({show_index(parts[0])}) % {parts[1]}")
            for index, parts in found
            if isinstance(index, Var) and parts
        }


def ends(domain: Domain, sizes: Mapping[str, int]) -> tuple[int, int]:
    """The first and the last index of a domain at some sizes."""
    low, high = in_domain(Linear(), domain)
    return -int(_sized(low, sizes).constant), int(_sized(high, sizes).constant)


def sizes_named(domain: object) -> set[str]:
    """The name of its size, if it has one."""
    match domain:
        case Range(size) | Cyclic(size) | Symmetric(size):
            return set(names_in(size))
    return set()


def _sized(form: Linear, sizes: Mapping[str, int]) -> Linear:
    return form.substitute({f"#{name}": Linear((), size) for name, size in sizes.items()})


def _guard_cases(guard: Term, turns: str, sizes: Mapping[str, int]) -> list[list[Linear]]:
    """What is ≥ 0 in each of the cases in which a guard holds: what is not 0 is at least 1 or at most −1."""
    if isinstance(guard, Unequal):
        form = linear(guard.form)
        return [[form - 1], [form.scale(-1) - 1]] if not guard.cycle else [[]]
    return [_guard_forms(guard, turns, sizes)]


def _guard_forms(guard: Term, turns: str, sizes: Mapping[str, int]) -> list[Linear]:
    """What is ≥ 0 where a guard holds, with one more unknown for a congruence; nothing for what cannot be said."""
    if isinstance(guard, Indicator):
        modulus: Size = guard.modulus
        form = linear(guard.form)
    else:
        assert isinstance(guard, Delta)
        if not all(map(is_index, guard.children)) or isinstance(guard.domain, Real):
            return []
        form = linear(guard.left) - linear(guard.right)
        modulus = guard.domain.size if isinstance(guard.domain, Cyclic) else 0
        if not modulus:
            return [form, form.scale(-1)]
    if not modulus:
        return [form]
    number = _sized(size_linear(modulus), sizes)
    if number.symbols or not number.constant:
        return []
    rest = form - Linear(((turns, number.constant),))
    return [rest, rest.scale(-1)]


def _of_indices(guards: Guards) -> set[Term]:
    """The guards, those of a number that a δ says to be an index as conditions on it: (d − k) mod n ≤ 3 as r ≤ 3."""
    told: dict[Term, Term] = {value: as_integer(index) for index, value in _lookups(guards)}
    return {one for guard in guards for one in (_compared(guard, told) if isinstance(guard, Relation) else [guard])}


def _lookups(guards: Guards) -> list[tuple[Term, Term]]:
    """The indices that guards say to be numbers, and those."""
    return [guard.lookup for guard in guards if isinstance(guard, Delta) and guard.lookup]


def _compared(guard: Relation, told: Mapping[Term, Term]) -> Sequence[Term]:
    """A relation of two whole numbers as conditions on the indices that they are; nothing where they are none."""
    left, right = (index_form(exchanged(side, told), around=True) for side in guard.arguments)
    if left is None or right is None:
        return ()
    above, below = affine([(left, 1), (right, -1)]), affine([(right, 1), (left, -1)])
    match guard.name:
        case "less" | "not_less_equal":
            return (indicator(affine([(below if guard.name == "less" else above, 1)], -1)),)
        case "less_equal" | "not_less":
            return (indicator(below if guard.name == "less_equal" else above),)
        case "equal":
            return indicator(above), indicator(below)
    return (unequal(above, Whole()),)


def _with_sizes(region: list[Linear]) -> tuple[Linear, ...]:
    """A region with what the sizes meet at its integer points: tighter than what they meet at its rational ones."""
    indices = sorted({name for form in region for name in form.symbols if not name.startswith("#")})
    return (*map(tighten, region), *eliminate(region, indices).feasible)


def _counts_turns(region: Iterable[Linear]) -> bool:
    """Whether a congruence is told by an unknown of its own."""
    return any(name.startswith("turns") for form in region for name in form.symbols)


def _is_within(region: tuple[Linear, ...], other: tuple[Linear, ...]) -> bool:
    """Whether the forms of another region are ≥ 0 all over a region."""
    return all(implied(form, list(region)) for form in other if form not in region)


def _enter(loops: tuple[Bounds, ...], values: dict[str, int], left: list[int]) -> Iterator[dict[str, int]]:
    """Integer points of nested bounds; while many are left to be tried."""
    if not loops:
        yield values
        return
    for value in loops[0].range(values):
        left[0] -= 1
        if left[0] < 0:
            return
        yield from _enter(loops[1:], {**values, loops[0].name: value}, left)


# --- finding them --------------------------------------------------------------------------------------------------


def doubtful_accesses(term: Term) -> tuple[Access, ...]:
    """The accesses of a program that are not known to stay inside for all sizes."""
    search = _IndexSearch()
    parts = list(subterms(term))
    if not any(isinstance(part, Let) for part in parts):  # what a let binds is known only inside it
        for part in parts:  # children first: a deep term would overflow the stack of calls
            search.inside(part)
    return tuple(search.inside(term))


def check(
    found: Iterable[Access],
    sizes: Mapping[str, int],
    location: Location | None = None,
    places: Mapping[str, Location] | None = None,
) -> None:
    """Raises IndexingError for the first access that leaves its tensor at these sizes.

    The error names its line, one of `places`, else the location given.
    """
    for access in found:
        point = access.escape(sizes)
        if point is not None:
            name = access_name(access.tensor, access.axis, access.index)
            raise access.refusal(point, sizes, (places or {}).get(name, location))


class _IndexSearch:
    """Collects the doubtful accesses of every subterm once, and specialises them where a tensor is read."""

    def __init__(self) -> None:
        self.done: dict[Term, dict[Access, None]] = {}
        self.scope: dict[Term, Term] = {}  # what definitions are
        self.needed: dict[Term, Guards] = {}
        self.regions: dict[Access, tuple[tuple[Linear, ...], ...]] = {}
        self.covering: dict[tuple[Access, Access], bool] = {}

    def at(self, term: Term, guards: Guards) -> dict[Access, None]:
        """The doubtful accesses of a term under guards, each once, in order."""
        found = self.inside(term)
        return _specialised(found, {}, guards) if guards else found

    def inside(self, term: Term) -> dict[Access, None]:
        """The doubtful accesses of a term, by its own guards."""
        if term not in self.done:
            self.done[term] = self._widest(dict.fromkeys(self._node(term)))
        return self.done[term]

    def _widest(self, found: dict[Access, None]) -> dict[Access, None]:
        """The accesses without those that leave their tensor only where another one leaves its own.

        In what is read at shifted indices again and again there is an access for each way in which the shifts add up,
        and few of them leave at other sizes and indices than the first.
        """
        kept: list[Access] = []
        for access in found:
            if not any(self._covers(other, access) for other in kept):
                kept = [*(other for other in kept if not self._covers(access, other)), access]
        return dict.fromkeys(kept)

    def _covers(self, one: Access, other: Access) -> bool:
        """Whether one access leaves its tensor wherever the other one does, as far as regions tell."""
        if (one, other) not in self.covering:
            for access in (one, other):
                if access not in self.regions:
                    self.regions[access] = access.outside()
            wide = [region for region in self.regions[one] if not _counts_turns(region)]
            inside = (any(_is_within(region, each) for each in wide) for region in self.regions[other])
            self.covering[one, other] = one.free <= other.free and all(inside)
        return self.covering[one, other]

    def _node(self, term: Term) -> Iterator[Access]:
        match term:
            case Mul():
                guards = self._needed(term)
                for factor in term.factors:
                    yield from self.at(factor, guards)
            case Apply() if isinstance(type_of(term.function), Space):
                yield from self._leaving(term)
                yield from self._read(term)
            case Let():
                for var, value in term.bindings:
                    self.inside(value)  # before it is read: a long chain would overflow the stack of calls
                    self.scope[var] = value
                yield from self.inside(term.body)
            case Var() if term in self.scope:
                yield from self.inside(self.scope[term])
            case Indicator() | Unequal():
                return
            case Sum() | Lambda() if any(is_domain(v.type) for v in term.bound):
                yield from self._under(term)
            case _:
                for child in term.children:
                    yield from self.inside(child)

    def _needed(self, term: Term) -> Guards:
        """The conditions without which a term is 0: its factors, those of the tensors read, and of all terms of a sum.

        Only of tensors that are read inside their axes: outside there is no element that would be 0.
        """
        if term not in self.needed:
            self.needed[term] = self._needed_by(term)
        return self.needed[term]

    def _needed_by(self, term: Term) -> Guards:
        match term:
            case Mul():
                return frozenset().union(*map(self._needed, term.factors))
            case Add():
                needed = [*map(self._needed, term.terms)]
                shared = frozenset.intersection(*needed)
                others = [guards - shared for guards in needed]
                return shared.union(met_by_each(others)) if all(others) else shared
            case Sum(indices, body):
                guards = self._needed(body)
                apart = [guard for guard in guards if guard.free.isdisjoint(indices)]
                return frozenset((*apart, *projected(guards.difference(apart), term.free)))  # Σ_{j>d} is over some j
            case Conj(inner):
                return self._needed(inner)
            case Apply(function) if isinstance(value := self.scope.get(function, function), Lambda):
                replacement = dict(zip(value.parameters, term.arguments, strict=False))
                stands = all(_may_stand(argument, parameter) for parameter, argument in replacement.items())
                if stands and not any(self._leaving(term)):
                    return frozenset(substitute(guard, replacement) for guard in self._needed(value.body))
        return frozenset({term} if is_of_indices(term) else ())

    def _under(self, term: Sum | Lambda) -> Iterator[Access]:
        """What is read for some index: not where there is none."""
        for access in self.inside(term.body):
            indices = (v for v in term.bound if is_domain(v.type) and not isinstance(v.type, Real))
            unmentioned = [v for v in indices if v not in access.free]
            inhabited = {indicator(affine([(extent_term(v.type), 1)], -1)) for v in unmentioned}
            yield from _specialised([access], {}, frozenset(inhabited))

    def _leaving(self, term: Apply) -> Iterator[Access]:
        """The doubtful accesses of a tensor by its own indices."""
        space = type_of(term.function)
        assert isinstance(space, Space)
        for n, (axis, index) in enumerate(zip(space.axes, term.arguments, strict=True)):
            if isinstance(axis, Range | Symmetric) and not (isinstance(index, Var) and index.type == axis):
                access = Access(describe(term.function), n, axis, index)
                if not access.is_safe():
                    yield access

    def _read(self, term: Apply) -> Iterator[Access]:
        """The doubtful accesses in the tensor itself, at the indices at which it is read."""
        function = term.function
        if isinstance(function, Lambda):
            parameters, found = function.parameters, self.inside(function.body)
        elif function in self.scope:
            value = self.scope[function]
            parameters, found = value.parameters if isinstance(value, Lambda) else (), self.inside(value)
        else:
            yield from self.inside(function)
            return
        pairs = zip(parameters, term.arguments, strict=False)
        yield from _specialised(found, {p: a for p, a in pairs if _may_stand(a, p)}, frozenset())


def is_of_indices(factor: Term) -> bool:
    """Whether a factor is a condition on indices, or on numbers made of them: (d − k) mod n ≤ 3."""
    if isinstance(factor, Relation):
        return not any(isinstance(v.type, Space | Function) for v in factor.free)
    return isinstance(factor, IndexGuard)


def extent_term(domain: object) -> Term:
    """How many indices a domain has, as an index expression."""
    assert isinstance(domain, Range | Cyclic | Symmetric), domain
    return affine([(size_form(domain.bound), 2)], 1) if isinstance(domain, Symmetric) else size_form(domain.size)


def _may_stand(argument: Term, parameter: Var) -> bool:
    return not isinstance(parameter.type, Cyclic) or is_reduced(argument, parameter.type)


def _specialised(found: Iterable[Access], replacement: Mapping[Var, Term], guards: Guards) -> dict[Access, None]:
    """The accesses at other indices and under more guards, those that are safe there left out."""
    moved: dict[Access, None] = {}
    for access in found:
        new = access.at(replacement, guards)
        if new is not None and (new == access or not new.is_safe()):
            moved[new] = None
    return moved
