"""Parts of tensor networks, and what is saved when several networks have one in common.

    Σ_{i,j} A[i,j]·x[i]·y[j]        has the parts  j ↦ Σ_i A[i,j]·x[i],  i ↦ Σ_j A[i,j]·y[j],  and the whole
    with Σ_i A[i,k]·x[i] elsewhere  the first is common: computed once it saves n² of 4 n² multiplications

A part is some of the factors under a Σ, with the sums over the indices that only they have. Multiplications are those
of the best contractions found, at typical sizes and with each named size in turn small and large.

Invariant: a part sums over an index, and all of its factors are connected through such indices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from combdiff.ir import (
    Apply,
    Conj,
    Cyclic,
    Domain,
    Guard,
    Number,
    Range,
    Real,
    Size,
    Sum,
    Symmetric,
    Term,
    Var,
    conj,
    connected,
    dtype_of,
    factors_of,
    is_domain,
    lambda_,
    mul,
    names_in,
    negate,
    remembered,
    subterms,
    total,
)
from combdiff.records import dataclass
from combdiff.simplification.egraph.extraction import contraction_cost, index_variables

MOST_FACTORS = 7  # of a network whose parts are looked at
SIZES = (3, 48)  # few and many values of one named size, others being typical


class Subnetwork(NamedTuple):
    """Some factors of the network `node`, by position; the indices that only they have, the others by domain."""

    node: Sum
    positions: tuple[int, ...]
    summed: tuple[Var, ...]
    open: tuple[Var, ...]

    @property
    def factors(self) -> tuple[Term, ...]:
        """The factors."""
        return tuple(factors_of(self.node.body)[n] for n in self.positions)

    @property
    def value(self) -> Term:
        """The tensor, with the open indices for its axes."""
        return lambda_(self.open, total(self.summed, mul(*self.factors)))


class Use(NamedTuple):
    """A part of the site (a binding or a result, by number) that reads the common tensor.

    `order` says which of the open indices stands on each axis; the tensor is perhaps conjugated, or negated.
    """

    site: int
    part: Subnetwork
    order: tuple[int, ...]
    conjugated: bool
    negative: bool

    def is_result(self, bindings: int) -> bool:
        """Whether the part is a whole network of a result; sites numbered below `bindings` are bindings."""
        rest = (f for n, f in enumerate(factors_of(self.part.node.body)) if n not in self.part.positions)
        return self.site >= bindings and all(isinstance(factor, Number) for factor in rest)

    def access(self, tensor: Var) -> Term:
        """The part as an access to the tensor."""
        arguments = tuple(self.part.open[n] for n in self.order)
        read: Term = Apply(tensor, arguments) if arguments else tensor
        read = conj(read) if self.conjugated and dtype_of(read) is complex else read
        return negate(read) if self.negative else read


@dataclass(frozen=True)
class Common:
    """A tensor that several sites use: a new one defined by a part, or the binding numbered `bound`."""

    definition: Subnetwork
    uses: tuple[Use, ...]
    bound: int | None = None

    def shown(self, order: Iterable[Var]) -> Common:
        """The same with the axes in the order in which the open indices of the definition are first met."""
        axes = [self.definition.open.index(i) for i in dict.fromkeys(order)]
        definition = self.definition._replace(open=tuple(self.definition.open[n] for n in axes))
        uses = tuple(use._replace(order=tuple(use.order[n] for n in axes)) for use in self.uses)
        return Common(definition, uses, self.bound)

    def renumbered(self, sites: Mapping[int, int]) -> Common:
        """The same where the sites have other numbers."""
        uses = tuple(use._replace(site=sites[use.site]) for use in self.uses)
        return Common(self.definition, uses, None if self.bound is None else sites[self.bound])


# --- parts of networks ---------------------------------------------------------------------------------------------


def parts_of(node: Sum) -> Iterator[Subnetwork]:
    """The connected parts of a network that sum over an index of their own."""
    factors = factors_of(node.body)
    eligible = [n for n, factor in enumerate(factors) if not isinstance(factor, Number | Guard)]
    if len(eligible) > MOST_FACTORS or any(isinstance(v.type, Real) for v in index_variables(node.body)):
        return
    for count in range(2, len(eligible) + 1):
        for positions in combinations(eligible, count):
            chosen = [factors[n] for n in positions]
            others = [index_variables(f) for n, f in enumerate(factors) if n not in positions]
            mine = list(dict.fromkeys(v for f in chosen for v in sorted(index_variables(f), key=_name)))
            summed = [v for v in mine if v in node.indices and not any(v in other for other in others)]
            if summed and len(connected(summed, chosen)) == 1:
                left = sorted((v for v in mine if v not in summed), key=lambda v: (repr(v.type), v.name))
                yield Subnetwork(node, positions, tuple(summed), tuple(left))


def components(node: Sum) -> Iterator[Subnetwork]:
    """The connected parts that a network falls into, those that sum over an index."""
    factors = factors_of(node.body)
    if any(isinstance(v.type, Real) for v in index_variables(node.body)):
        return
    for group in connected(node.indices, factors):
        summed, own = group.indices, group.factors
        if summed and not any(isinstance(factor, Guard) for factor in own):
            positions = tuple(n for n, factor in enumerate(factors) if not factor.free.isdisjoint(summed))
            others = {v for factor in own for v in index_variables(factor)}.difference(summed)
            left = sorted(others, key=lambda v: (repr(v.type), v.name))
            yield Subnetwork(node, positions, summed, tuple(left))


def domain_of(index: Var) -> Domain:
    """The domain of an index."""
    assert isinstance(index.type, Domain)
    return index.type


def _name(var: Var) -> str:
    return var.name


def _label(factor: Term) -> str:
    """What a factor is, whatever its indices and conjugated or not."""
    factor = factor.body if isinstance(factor, Conj) else factor
    tensors = sorted(v.name for v in factor.free if not is_domain(v.type))
    return f"{type(factor).__name__} {getattr(factor, 'name', '')} {tensors}"


def signature(part: Subnetwork) -> tuple[object, ...]:
    """What parts that are alike have in common, cheap to compare."""
    domains = (sorted(repr(v.type) for v in group) for group in (part.summed, part.open))
    return (*sorted(_label(factor) for factor in part.factors), *map(tuple, domains))


# --- what it saves -------------------------------------------------------------------------------------------------

Sizes = tuple[tuple[str, int], ...]  # of some named sizes


def scenarios(sites: Iterable[Term]) -> Iterator[Sizes]:
    """Typical sizes, then each named size in turn small and large."""
    yield ()
    for name in sorted(frozenset[str]().union(*map(_summed_sizes, sites))):
        for value in SIZES:
            yield ((name, value),)


@remembered
def _summed_sizes(site: Term) -> frozenset[str]:
    """The named sizes of the indices that are bound in a term."""
    domains = {v.type for node in subterms(site) for v in node.bound if is_domain(v.type)}
    return frozenset(name for domain in domains for name in names_in(_size(domain)))


def _size(domain: object) -> Size | None:
    match domain:
        case Range(size) | Cyclic(size) | Symmetric(size):
            return size
    return None


def _sized(indices: Iterable[Var], sizes: Mapping[object, int]) -> frozenset[Var]:
    """The indices over as many values as the sizes say."""
    found = set()
    for var in indices:
        value = sizes.get(_size(var.type))
        if value is not None:
            domain: Domain = Symmetric(value) if isinstance(var.type, Symmetric) else Range(value)
            var = Var(var.name, domain)
        found.add(var)
    return frozenset(found)


@lru_cache(maxsize=1024)
def _price(factors: tuple[frozenset[Var], ...], summed: frozenset[Var], sizes: Sizes) -> float:
    """The work of a network; kept, as the same networks are priced for each candidate and again after each binding."""
    known: Mapping[object, int] = dict(sizes)
    return contraction_cost(tuple(_sized(factor, known) for factor in factors), _sized(summed, known))


def saving(common: Common, sizes_tried: Sequence[Sizes]) -> float:
    """Multiplications saved at typical sizes, 0 where there are sizes at which more would be done."""
    typical, *others = sizes_tried
    saved = _saving_at(common, typical)
    return saved if saved > 0 and all(_saving_at(common, sizes) >= 0 for sizes in others) else 0.0


def costs_nothing(common: Common, sizes_tried: Sequence[Sizes]) -> bool:
    """Whether a tensor may be computed for those that use it at no more multiplications, whatever the sizes."""
    return all(_saving_at(replace(common, bound=None), sizes) >= 0 for sizes in sizes_tried)


def _saving_at(common: Common, sizes: Sizes) -> float:
    part = common.definition
    spent = 0.0
    if common.bound is None:
        spent = _price(tuple(map(index_variables, part.factors)), frozenset(part.summed), sizes)
    networks: dict[tuple[int, Sum], list[Subnetwork]] = {}
    for use in common.uses:
        networks.setdefault((use.site, use.part.node), []).append(use.part)
    saved = 0.0
    for (_, node), parts in networks.items():
        factors = [(n, index_variables(f)) for n, f in enumerate(factors_of(node.body)) if not isinstance(f, Number)]
        taken = {n for part in parts for n in part.positions}
        left = (indices for n, indices in factors if n not in taken)
        gone = {i for part in parts for i in part.summed}
        after = (*left, *(frozenset(part.open) for part in parts))
        saved += _price(tuple(indices for _, indices in factors), frozenset(node.indices), sizes)
        saved -= _price(after, frozenset(node.indices) - gone, sizes)
    return saved - spent
