"""Sums of exponentials up to each position, of which none is computed for pairs of positions.

    Σ_j [j ≤ i]·r[j]·exp(x[j] + y[i])         PrefixExponentials of x, y and r
    max_j (x[j] where j ≤ i)                  PrefixMax of x

The sum so far, over its largest exponential, is multiplied by exp(m − m′) where the largest exponent m grows to m′. So
log-sum-exps of all that is at risk at each time (partial likelihoods of Cox, rankings of ListMLE), and what decays
from one time to the next (processes of Hawkes), take one pass, also where exp(x[j]) or exp(y[i]) alone overflows.

Invariant: the value is unchanged; an exponent in which both positions are mixed stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from combdiff.ir import (
    ONE,
    ZERO,
    Add,
    Conj,
    Cyclic,
    Guard,
    IndexGuard,
    Largest,
    Masked,
    Mul,
    Number,
    Primitive,
    Sum,
    Term,
    Var,
    add,
    conj,
    dtype_of,
    factors_beside,
    factors_of,
    join,
    masked,
    mul,
    total,
)
from combdiff.planning.lowering.graph import Graph, LabelledStep
from combdiff.planning.lowering.mask_elimination import IndexBound, index_bound
from combdiff.planning.operations.prefixes import PrefixExponentials, PrefixMax
from combdiff.polyhedra import projected
from combdiff.records import dataclass

Lower = Callable[[Term], LabelledStep]
Read = Callable[[Term], Term]


@dataclass(frozen=True)
class RunningExponentials:
    """Σ over `index` of weight·exp(exponent + shift) within a bound; beside `rest`, summed over `indices`."""

    index: Var
    bound: IndexBound
    exponent: Term
    shift: Term
    weight: Term
    low: bool
    rest: Term
    indices: tuple[Var, ...]

    def lowered(self, graph: Graph, value: Lower) -> LabelledStep:
        """The running sums."""
        exponent, shift = graph.plain(value(self.exponent)), graph.plain(value(self.shift))
        weight = None if self.weight is ONE else graph.plain(value(self.weight))
        inner = [part for part in (exponent, weight) if part is not None]
        mine = [label for part in inner for label in part.labels if label is not self.index]
        outer = dict.fromkeys([*mine, *(label for label in shift.labels if label not in self.bound.others)])
        labels, summed = (*outer, *self.bound.others), (*outer, self.index)
        patterns = tuple(tuple(summed.index(label) for label in part.labels) for part in inner)
        across = tuple(labels.index(label) for label in shift.labels)
        operation = PrefixExponentials(
            len(outer),
            self.bound.sign,
            self.bound.steps,
            self.bound.start,
            (patterns[0], across, *patterns[1:]),
            self.low,
        )
        kind = join(graph.kind(exponent, shift, *inner), float)
        return graph.labelled(operation, (exponent, shift, *inner[1:]), labels, kind)


def running_exponentials(term: Term, read: Read) -> RunningExponentials | None:
    """A Σ as a running sum of exponentials; None where it is none. `read` opens elements of bindings."""
    if not isinstance(term, Sum) or isinstance(term.body, Add):
        return None
    factors = list(factors_read(term.body, read))
    if not any(map(_is_exponential, factors)):
        return None
    found = (_along(index, term.indices, factors) for index in term.indices)
    return next((one for one in found if one is not None), None)


def is_bounded_exponential(term: Term) -> bool:
    """Whether a term is an exponential with a condition on indices in its exponent."""
    return _is_exponential(term) and bool(_Exponent.of(term).conditions)


def prefix_largest(term: Largest, graph: Graph, value: Lower) -> LabelledStep | None:
    """The largest elements within a bound of one of the indices, by accumulation; None where there is none."""
    if not isinstance(term.body, Masked):
        return None
    body = term.body.body
    for index in term.indices:
        bound = _only_bound(index, term.body.conditions, (body,))
        if bound is None or not bound.condition.free.isdisjoint(set(term.indices) - {index}):
            continue
        rest = masked((c for c in term.body.conditions if c is not bound.condition), body)
        others = tuple(other for other in term.indices if other is not index)
        array = graph.plain(value(Largest(others, rest) if others else rest))
        array = graph.arrange(array, (*(label for label in array.labels if label is not index), index))
        axis = len(array.labels) - 1
        operation = PrefixMax(axis, bound.sign, bound.steps, bound.start)
        return graph.labelled(operation, (array,), (*array.labels[:axis], *bound.others), float)
    return None


def _along(index: Var, indices: Sequence[Var], factors: Sequence[Term]) -> RunningExponentials | None:
    """The running sum along one index."""
    inside = [factor for factor in factors if index in factor.free]
    powers = [factor for factor in inside if _is_exponential(factor)]
    if not powers or isinstance(index.type, Cyclic):
        return None
    exponent = _Exponent.of(*powers)
    guards = [factor for factor in inside if isinstance(factor, Guard)]
    conditions = list(dict.fromkeys((*guards, *exponent.conditions)))
    weights = [factor for factor in inside if factor not in (*powers, *guards)]
    own = [part for part in exponent.parts if index in part.free]
    others = [part for part in exponent.parts if index not in part.free]
    bound = _only_bound(index, conditions, (*own, *weights))
    if bound is None or not own or any(dtype_of(part) is complex for part in exponent.parts):
        return None
    if all(part.free.isdisjoint(bound.others) for part in others):
        return None  # a running sum as it is
    alone = [c for c in conditions if c.free == {index}]
    apart = [c for c in exponent.conditions if c is not bound.condition and c not in alone]
    some = projected([bound.condition], bound.others)  # where there is none, what stands beside the sum may be infinite
    rest = [*apart, *some, *(factor for factor in factors if factor not in inside)]
    told = frozenset[Var]().union(*(part.free for part in (*exponent.parts, *rest, *conditions)))
    private = [one for one in indices if one is not index and one not in told]
    left = tuple(one for one in indices if one is not index and one not in private)
    weight = total(private, mul(*weights))
    return RunningExponentials(
        index, bound, masked(alone, add(*own)), add(*others), weight, exponent.low, mul(*rest), left
    )


def _only_bound(index: Var, conditions: Sequence[Term], parts: Sequence[Term]) -> IndexBound | None:
    """The one condition on an index and others, where it is a bound and no part has both."""
    met = [c for c in conditions if index in c.free and (c.free != {index} or not _is_guard(c))]
    if len(met) != 1 or not isinstance(met[0], IndexGuard):
        return None
    bound = index_bound(index, met[0])
    mixed = bound is None or not bound.others or not all(part.free.isdisjoint(bound.others) for part in parts)
    return None if mixed else bound


@dataclass(frozen=True)
class _Exponent:
    """The terms of the exponents of exponentials, and the conditions outside of which these are −∞."""

    parts: tuple[Term, ...]
    conditions: tuple[Term, ...] = ()
    low: bool = False

    @classmethod
    def of(cls, *exponentials: Term) -> _Exponent:
        """That of a product of exponentials; `low` where all of them count as at most 1."""
        parts: list[Term] = []
        conditions: list[Term] = []
        low: list[bool] = []
        for factor in exponentials:
            base, power = _power(factor)
            exponent = base.children[0]
            capped = isinstance(exponent, Primitive) and exponent.name == "minimum" and exponent.arguments[1] is ZERO
            low.append(capped)
            for part in _terms(exponent.children[0] if capped else exponent):
                if isinstance(part, Masked):
                    conditions += filter(_is_guard, part.conditions)
                    part = masked((c for c in part.conditions if not _is_guard(c)), part.body)
                parts.append(mul(power, part))
        return cls(tuple(p for whole in parts for p in _terms(whole) if p is not ZERO), tuple(conditions), all(low))


def _is_guard(condition: Term) -> bool:
    return isinstance(condition, IndexGuard)


def _is_exponential(term: Term) -> bool:
    base, power = _power(term)
    return isinstance(base, Primitive) and base.name == "exp" and isinstance(power.real, int) and power.real > 0


def _power(term: Term) -> tuple[Term, Number]:
    """The base and the exponent of a power with a real number as exponent; 1 of other terms."""
    match term:
        case Primitive(name="power", arguments=(base, Number(imag=0) as power)):
            return base, power
    return term, ONE


def _terms(term: Term) -> Iterator[Term]:
    """The terms of a sum; of a product with one, its products."""
    if isinstance(term, Add):
        for part in term.terms:
            yield from _terms(part)
    elif isinstance(term, Mul) and (sums := [f for f in term.factors if isinstance(f, Add)]):
        rest = factors_beside(sums[0], term)
        for part in sums[0].terms:
            yield from _terms(mul(*rest, part))
    else:
        yield term


def factors_read(term: Term, read: Read) -> Iterator[Term]:
    """The factors of a product, of those that are bindings of products and of conjugates of products too."""
    if isinstance(term, Conj) and isinstance(term.body, Mul):
        term = mul(*map(conj, term.body.factors))
    for factor in factors_of(term):
        opened = read(factor)
        if opened is not factor or (isinstance(factor, Conj) and isinstance(factor.body, Mul)):
            yield from factors_read(opened, read)
        else:
            yield factor
