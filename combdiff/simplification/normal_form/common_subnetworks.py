"""Common subnetworks: what several results of a program compute alike becomes a binding.

    (J, C) ↦ (Σ C[p,i] C[q,j] C[r,i]* C[s,j]* J[r,p,s,q],  (d, e) ↦ 4 Σ C[p,e] C[q,i] C[r,i]* J[d,p,r,q])
    = (J, C) ↦ let t[d,e] = Σ C[p,e] C[q,i] C[r,i]* J[d,p,r,q] in (Σ C[s,j]* t[s,j],  (d, e) ↦ 4 t[d,e])

A subnetwork (see `subnetworks`) is some of the factors under a Σ, with the sums that only they need. Two are alike when
their canonical forms are, perhaps after one is conjugated or its axes are exchanged, so that the symmetries of the
tensors count. One that several results have is bound where that lowers the number of multiplications of all results
together, at typical sizes, and raises it at none of the sizes tried. Of those that one result repeats
(`bind_repeated`), the caller chooses by the length of the print.

Invariant: the value is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations

from combdiff.ir import (
    MINUS_ONE,
    Apply,
    Conj,
    Implicit,
    Lambda,
    Mul,
    Names,
    Number,
    Rewriter,
    Scan,
    Space,
    Sum,
    Term,
    Tuple,
    Var,
    conj,
    dtype_of,
    factors_of,
    items_of,
    joined,
    let,
    matrices_in,
    mul,
    negate,
    put_back,
    split,
    total,
    type_of,
    values_of,
)
from combdiff.polyhedra import doubtful_accesses
from combdiff.simplification.egraph.extraction import symbols
from combdiff.simplification.normal_form.canonical import canonical
from combdiff.simplification.normal_form.contraction import normalise
from combdiff.simplification.normal_form.subnetworks import (
    Common,
    Sizes,
    Subnetwork,
    Use,
    components,
    costs_nothing,
    domain_of,
    parts_of,
    saving,
    scenarios,
    signature,
)
from combdiff.simplification.normal_form.symmetries import with_symmetries

Group = list[tuple[int, Subnetwork]]  # parts of one signature, each with the number of its site
MOST_ORDERS = 24  # exchanges of axes that are tried
MOST_BINDINGS = 64
MOST_OPEN = 3  # axes of what is bound as it stands several times in one network
HEAVY = 3  # factors of a network from which on a tensor that is bound is bound in derivatives too


def bind_common(body: Term) -> Term:
    """A let program in which the subnetworks that its results have in common are bound."""
    if not isinstance(split(body)[1], Tuple):
        return body
    search = _BindingSearch(body)
    for _ in range(MOST_BINDINGS):
        found = search.best(body)
        if found is None:
            break
        body = _bind(body, found, search.names)
    return body


def read_bound(body: Term) -> Term:
    """A let program whose networks read the tensors that are bound before, where they have them as parts.

    Once simplified a network may hold what has a name already: Σ_i A[d,i] x[i] / t beside t2[i] = Σ_j A[i,j] x[j].
    """
    search = _BindingSearch(body)
    for number in range(len(split(body)[0])):
        body = search.reading(body, number)
    return body


def bind_repeated(body: Term) -> Iterator[Term]:
    """The program with a part of a network bound that its networks hold several times, at indices of their own.

    Σ_{i,j} A[d,i] x[i] A[e,j] x[j] is t[d] t[e] with t[d] = Σ_i A[d,i] x[i].
    """
    search = _BindingSearch(body)
    for common in search.repeated(list(values_of(body))):
        yield _bind(body, common, search.names)


def bind_again(body: Term, origin: Term) -> Term:
    """A derivative in which heavy tensors that the program has bound are bound, where that costs no multiplication.

    The laws take networks for wholes, and find them simplest without names; a reader finds ρ in w ρ* U S. Looked at are
    tensors made of parameters alone: what is made of other bindings has their names in the derivative, too.
    """
    names = Names(body, origin)
    bindings = split(origin)[0]
    bound = {var for var, _ in bindings}
    before = body
    for var, value in bindings:
        inner = value.body if isinstance(value, Lambda) else value
        if isinstance(inner, Sum) and len(factors_of(inner.body)) >= HEAVY and value.free.isdisjoint(bound):
            body = _bound_again(body, with_symmetries(names.fresh(var), value), value, names)
    return body if body is before else without_multiples(body)


def without_multiples(body: Term) -> Term:
    """The program without the definitions that have become multiples of others: 2 t[d] where t_bar[d] = 2 t[d]."""
    bindings, result = split(body)
    held = matrices_in(body)
    writing = _WritingOut()
    kept: list[tuple[Var, Term]] = []
    for var, value in bindings:
        value = writing.run(value)
        factors = factors_of(value.body if isinstance(value, Lambda) else value)
        number = mul(*(factor for factor in factors if isinstance(factor, Number)))
        rest = [factor for factor in factors if not isinstance(factor, Number)]
        real = isinstance(number, Number) and not number.imag
        if real and len(rest) == 1 and isinstance(rest[0], Apply) and var not in held:
            writing.values[var] = value
        else:
            kept.append((var, value))
    return let(kept, joined(result, map(writing.run, items_of(result))))


class _WritingOut(Rewriter):
    """Puts real multiples of accesses where their names are read, (2 t)* as 2 t*."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[Var, Term] = {}

    def node(self, term: Term) -> Term:
        """The term with the multiples in it."""
        if isinstance(term, Conj) and isinstance(term.body, Apply) and term.body.function in self.values:
            return mul(*(conj(factor) for factor in factors_of(put_back(term.body, self.values))))
        return put_back(term, self.values) if isinstance(term, Apply | Var) else self.inside(term)


def _bound_again(body: Term, var: Var, value: Term, names: Names) -> Term:
    """The body with the tensor bound and read, if it has it as a part."""
    bindings, result = split(body)
    candidate = let([(var, value), *bindings], result)
    search, sites = _BindingSearch(candidate), list(values_of(candidate))
    (own,) = (node for node in _networks(sites[0]) if node is (value.body if isinstance(value, Lambda) else value))
    whole = max((part for _, part in search.listed_parts(own)), key=lambda part: len(part.factors), default=None)
    if whole is None:
        return body
    alike = [(0, whole)]
    for number, site in enumerate(sites[1:], start=1):
        parts = (part for node in _networks(site) for _, part in search.listed_parts(node))
        alike += [(number, part) for part in parts if signature(part) == signature(whole)]
    every = [(var, value), *bindings]
    for common in search.alike(alike, every, sites, range(len(sites))):
        has_name = any(_is_bound((use.site, use.part), every) for use in common.uses)
        if common.bound == 0 and not has_name and costs_nothing(common, list(scenarios(sites))):
            return _bind(candidate, common, names)
    return body


# --- rewriting -----------------------------------------------------------------------------------------------------


def _bind(body: Term, common: Common, names: Names) -> Term:
    """The program with the tensor bound before its first use, and read wherever it is used."""
    bindings = list(split(body)[0])
    if common.bound is None:
        value = common.definition.value
        space = type_of(value)
        assert isinstance(space, Space)
        tensor = with_symmetries(names.fresh(Var("t", space)), value)
    else:
        tensor = bindings[common.bound][0]
    sites = list(values_of(body))
    for site in {use.site for use in common.uses}:
        sites[site] = _NetworkRewriting(tensor, [use for use in common.uses if use.site == site]).run(sites[site])
    rewritten = [(var, site) for (var, _), site in zip(bindings, sites, strict=False)]
    if common.bound is None:
        rewritten.insert(min(*(use.site for use in common.uses), len(bindings)), (tensor, value))
    return let(rewritten, joined(split(body)[1], sites[len(bindings) :]))


class _NetworkRewriting(Rewriter):
    """Puts accesses to a tensor in place of the parts that use it."""

    def __init__(self, tensor: Var, uses: Iterable[Use]) -> None:
        super().__init__()
        self.tensor = tensor
        self.uses: dict[Term, list[Use]] = {}
        for use in uses:
            self.uses.setdefault(use.part.node, []).append(use)

    def node(self, term: Term) -> Term:
        if term in self.uses:
            return self._network(term)
        return term if isinstance(term, Implicit | Scan) else self.inside(term)

    def _network(self, term: Term) -> Term:
        assert isinstance(term, Sum)
        taken = {n for use in self.uses[term] for n in use.part.positions}
        gone = {i for use in self.uses[term] for i in use.part.summed}
        kept = (self.run(factor) for n, factor in enumerate(factors_of(term.body)) if n not in taken)
        read = (use.access(self.tensor) for use in self.uses[term])
        return total((i for i in term.indices if i not in gone), mul(*kept, *read))


def _apart(bindings: int, result: Term) -> list[int]:
    """For each site a number, one for all items of one result: what the gradients alone have in common stays there."""
    items = result.items if isinstance(result, Tuple) else (result,)
    found = list(range(bindings))
    for number, item in enumerate(items, start=bindings):
        found += [number] * sum(1 for _ in values_of(item))
    return found


def _networks(site: Term) -> Iterator[Sum]:
    """The networks of a site, without those of equations and steps, where other tensors may have the same names."""
    seen: set[Term] = set()
    todo = [site]
    while todo:
        node = todo.pop()
        if node not in seen and not isinstance(node, Implicit | Scan):
            seen.add(node)
            todo.extend(node.children)
            if isinstance(node, Sum):
                yield node


class _BindingSearch:
    """Finds the common part that saves most; remembers what it learnt about parts."""

    def __init__(self, body: Term) -> None:
        self.names = Names(body)
        self.found = False
        self.forms: dict[object, int] = {}
        self.known: dict[tuple[Subnetwork, tuple[int, ...], bool], tuple[Term, bool]] = {}
        self.listed: dict[Sum, list[tuple[tuple[object, ...], Subnetwork]]] = {}
        self.parts: dict[Term, list[tuple[tuple[object, ...], Subnetwork]]] = {}
        self.kinds: dict[Term, frozenset[tuple[object, ...]]] = {}
        self.worthwhile: dict[object, list[tuple[float, Common]]] = {}
        self.variants: dict[Subnetwork, dict[Term, tuple[tuple[int, ...], bool, bool]]] = {}

    def best(self, body: Term) -> Common | None:
        """The tensor to bind next, None where none is worth it.

        All of a result, such as F C in 4 F C, is bound only where no smaller part is in common: the rest reads better.
        """
        sites = list(values_of(body))
        bindings, result = split(body)
        apart = _apart(len(bindings), result)
        names = {var.name for var, _ in bindings}
        groups: dict[tuple[object, ...], Group] = {}
        for number, site in enumerate(sites):
            for kind, part in self._parts(site):
                groups.setdefault(kind, []).append((number, part))
        tried = tuple(scenarios(sites))
        found: list[tuple[float, int, int, Common]] = []
        for group in groups.values():
            if len({apart[site] for site, _ in group}) > 1:
                for saved, common in self._worthwhile(group, bindings, sites, apart, tried):
                    part = common.definition
                    later = sum(not names.isdisjoint(v.name for v in f.free) for f in part.factors)
                    found.append((-saved, later, sum(map(symbols, part.factors)), common))
        inside = [item for item in found if not any(use.is_result(len(bindings)) for use in item[3].uses)]
        if not inside and self.found:
            return None
        self.found = True
        return min(inside or found, key=lambda item: item[:3])[3] if found else None

    def _worthwhile(
        self,
        group: Group,
        bindings: Sequence[tuple[Var, Term]],
        sites: Sequence[Term],
        apart: Sequence[int],
        tried: tuple[Sizes, ...],
    ) -> Iterator[tuple[float, Common]]:
        """What is alike in a group and saves, with what it saves.

        A binding changes few groups and moves the sites of others: what was found for the same parts holds, renumbered.
        """
        numbers = list(dict.fromkeys(site for site, _ in group))
        local = {site: n for n, site in enumerate(numbers)}
        first = {result: n for n, result in reversed(list(enumerate(apart[site] for site in numbers)))}
        members = tuple((local[site], part, _is_bound((site, part), bindings)) for site, part in group)
        arguments = tuple(sites[site].bound if isinstance(sites[site], Lambda) else () for site in numbers)
        key = members, arguments, tuple(first[apart[site]] for site in numbers), tried
        if key not in self.worthwhile:
            every = ((saving(common, tried), common) for common in self.alike(group, bindings, sites, apart))
            self.worthwhile[key] = [(saved, common.renumbered(local)) for saved, common in every if saved > 0]
        back = dict(enumerate(numbers))
        return ((saved, common.renumbered(back)) for saved, common in self.worthwhile[key])

    def reading(self, body: Term, number: int) -> Term:
        """The body with the tensor of that binding read wherever a later network has it, if that saves."""
        bindings, sites = split(body)[0], list(values_of(body))
        whole = self._whole(bindings[number][1])
        if whole is None:
            return body
        kind = signature(whole)
        later = (site for site in range(number + 1, len(sites)) if kind in self._kinds(sites[site]))
        nodes = ((site, node) for site in later for node in _networks(sites[site]))
        alike = [(site, part) for site, node in nodes for other, part in self.listed_parts(node) if other == kind]
        if alike:
            tried = list(scenarios(sites))
            for common in self.alike([(number, whole), *alike], bindings, sites, range(len(sites))):
                if common.bound == number and saving(common, tried) > 0:
                    return _bind(body, common, self.names)
        return body

    def _whole(self, value: Term) -> Subnetwork | None:
        """All of a tensor that is one network, as a part of it."""
        inner = value.body if isinstance(value, Lambda) else value
        parts = [part for _, part in self.listed_parts(inner)] if isinstance(inner, Sum) else []
        whole = (part for part in parts if len(part.factors) == len(factors_of(part.node.body)))
        return next((part for part in whole if set(part.open) == set(value.bound)), None)

    def _kinds(self, site: Term) -> frozenset[tuple[object, ...]]:
        """The signatures of all parts of the networks of a site."""
        if site not in self.kinds:
            self.kinds[site] = frozenset(kind for kind, _ in self._parts(site))
        return self.kinds[site]

    def _parts(self, site: Term) -> list[tuple[tuple[object, ...], Subnetwork]]:
        """The parts of all networks of a site, with their signatures."""
        if site not in self.parts:
            self.parts[site] = [found for node in _networks(site) for found in self.listed_parts(node)]
        return self.parts[site]

    def listed_parts(self, node: Sum) -> list[tuple[tuple[object, ...], Subnetwork]]:
        """The parts of a network with their signatures."""
        if node not in self.listed:
            self.listed[node] = [(signature(part), part) for part in parts_of(node)]
        return self.listed[node]

    def alike(
        self,
        group: Group,
        bindings: Sequence[tuple[Var, Term]],
        sites: Sequence[Term],
        apart: Sequence[int],
    ) -> Iterator[Common]:
        """The parts of a group equal up to exchange of axes, conjugation and sign, where two results have them."""
        left = sorted(group, key=lambda one: (not _is_bound(one, bindings), -len(_arguments(sites[one[0]], one[1]))))
        while len({apart[site] for site, _ in left}) > 1:
            first, part = left[0]
            whole = _is_bound(left[0], bindings)
            found, left = self._uses(part, left[1:] if whole else left)
            uses = list(_disjoint(use for use in found if not whole or use.site > first))
            if len({apart[use.site] for use in uses}) > (0 if whole else 1):
                ahead = _arguments(sites[first], part)
                yield Common(part, tuple(uses), first if whole else None).shown((*ahead, *part.open))

    def repeated(self, sites: Sequence[Term]) -> Iterator[Common]:
        """The parts of networks that stand in several places of one value or of several, no two of which overlap."""
        groups: dict[tuple[object, ...], Group] = {}
        for number, site in enumerate(sites):
            for node in _networks(site):
                for part in dict.fromkeys((*components(node), *parts_of(node))):
                    if len(part.open) <= MOST_OPEN:
                        groups.setdefault(signature(part), []).append((number, part))
        for left in groups.values():
            while len(left) > 1:
                first, part = left[0]
                found, left = self._uses(part, left)
                uses = tuple(_disjoint(found))
                if len(uses) > 1 and not doubtful_accesses(part.value):
                    yield Common(part, uses).shown((*_arguments(sites[first], part), *part.open))

    def _uses(self, part: Subnetwork, group: Group) -> tuple[list[Use], Group]:
        """Those of a group that are equal to a part up to exchange of axes, conjugation and sign; the others."""
        variants = self._variants(part)
        uses: list[Use] = []
        rest: Group = []
        for site, other in group:
            form, negative = self._form(other, tuple(range(len(other.open))), False)
            if form in variants:
                order, conjugated, minus = variants[form]
                uses.append(Use(site, other, order, conjugated, negative != minus))
            else:
                rest.append((site, other))
        return uses, rest

    def _variants(self, part: Subnetwork) -> dict[Term, tuple[tuple[int, ...], bool, bool]]:
        """The forms of a part under exchanges of its axes and conjugation, with what each does."""
        if part not in self.variants:
            self.variants[part] = self._made_variants(part)
        return self.variants[part]

    def _made_variants(self, part: Subnetwork) -> dict[Term, tuple[tuple[int, ...], bool, bool]]:
        found: dict[Term, tuple[tuple[int, ...], bool, bool]] = {}
        axes = range(len(part.open))
        orders = [o for o in permutations(axes) if all(part.open[o[n]].type == part.open[n].type for n in axes)]
        starred = any(dtype_of(factor) is complex for factor in part.factors)
        for order in orders[:MOST_ORDERS]:
            for conjugated in (False, True) if starred else (False,):
                form, negative = self._form(part, order, conjugated)
                inverse = tuple(order.index(n) for n in axes)
                found.setdefault(form, (inverse, conjugated, negative))
        return found

    def _form(self, part: Subnetwork, order: tuple[int, ...], conjugated: bool) -> tuple[Term, bool]:
        """The canonical form of a part up to its sign: open indices are summed against tensors that mark the axes."""
        key = (part, order, conjugated)
        if key not in self.known:
            product = mul(*part.factors)
            marks = [Apply(Var(f"#{n}", Space(domain_of(part.open[m]))), (part.open[m],)) for n, m in enumerate(order)]
            marked = total((*part.summed, *part.open), mul(conj(product) if conjugated else product, *marks))
            form = canonical(normalise(marked, self.names), self.forms)
            negative = isinstance(form, Mul) and form.factors[0] is MINUS_ONE
            self.known[key] = (negate(form) if negative else form), negative
        return self.known[key]


def _arguments(site: Term, part: Subnetwork) -> list[Var]:
    """The arguments of a site that are open indices of a part."""
    return [index for index in site.bound if index in part.open] if isinstance(site, Lambda) else []


def _is_bound(member: tuple[int, Subnetwork], bindings: Sequence[tuple[Var, Term]]) -> bool:
    """Whether a part is all there is to a binding."""
    site, part = member
    if site >= len(bindings) or len(part.factors) < len(factors_of(part.node.body)):
        return False
    value = bindings[site][1]
    body = value.body if isinstance(value, Lambda) else value
    return body is part.node and set(value.bound) == set(part.open)


def _disjoint(uses: Iterable[Use]) -> Iterator[Use]:
    """Those that do not share a factor with one before."""
    taken: dict[tuple[int, Term], set[int]] = {}
    for use in uses:
        mine = taken.setdefault((use.site, use.part.node), set())
        if mine.isdisjoint(use.part.positions):
            mine.update(use.part.positions)
            yield use
