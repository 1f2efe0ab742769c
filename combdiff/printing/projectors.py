"""Averages over symmetries by their names: ½ (t[d,e] + t[e,d]) with t = … is Sym_{d,e} ….

    t[i,j,a,b] = …          ¼ (t[i,j,a,b] − t[j,i,a,b] − t[i,j,b,a] + t[j,i,b,a])     becomes     Alt_{i,j} Alt_{a,b} …

Sym, Alt and Herm are averages over all orders of some indices (or over an exchange of groups of them, or of an index
and its negative): plain, with the sign of the order, or with the conjugate. An average of two terms is written out
where that is no longer than their definition.

Invariant: the term that is written has the value of the term given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from combdiff.ir import (
    MINUS_ONE,
    Action,
    Add,
    Apply,
    Conj,
    Lambda,
    Let,
    Number,
    PrintedNumber,
    Rewriter,
    Subgroup,
    Term,
    Tuple,
    Var,
    add,
    apply,
    identity_action,
    image_under,
    is_call,
    lambda_,
    let,
    moved_indices,
    mul,
    negate,
    number,
    subgroup_factors,
    uses,
    whole_read,
)
from combdiff.records import dataclass
from combdiff.simplification import coefficient_of, printed_length, weighted

NAMES = {(1, False): "Sym", (-1, False): "Alt", (1, True): "Herm", (-1, True): "SkewHerm"}
WRITTEN_OUT = 2
Indices = tuple[Var, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Projection(PrintedNumber):
    """The average of a term over the orders of some groups of indices: `Alt_{i,j} body`; it occurs in prints alone."""

    name: str
    groups: tuple[tuple[Term, ...], ...]
    body: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (*(index for group in self.groups for index in group), self.body)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        rest = iter(children)
        groups = tuple(tuple(next(rest) for _ in group) for group in self.groups)
        return Projection(self.name, groups, next(rest))


def with_projectors(term: Term) -> Term:
    """A program with the averages of tensors that are bound for no other use written by the names of the averages."""
    if isinstance(term, Lambda):
        return Lambda(term.parameters, with_projectors(term.body))
    if not isinstance(term, Let):
        return term
    counts: Counter[Var] = uses(Tuple((*(value for _, value in term.bindings), term.body)))
    writer = _ProjectorWriter(
        {var: value for var, value in term.bindings if counts[var] > 1 and not is_call(value)}, counts
    )
    bindings = [(var, writer.run(value)) for var, value in term.bindings]
    body = writer.run(term.body)
    return let(((var, value) for var, value in bindings if var not in writer.named), body)


class _ProjectorWriter(Rewriter):
    def __init__(self, definitions: Mapping[Var, Term], counts: Mapping[Var, int]) -> None:
        super().__init__()
        self.definitions = definitions
        self.counts = counts
        self.named: set[Var] = set()

    def node(self, term: Term) -> Term:
        """The term with the averages in it named."""
        found = self._sum(term) if isinstance(coefficient_of(term)[1], Add) else None
        return found or self.inside(term)

    def _sum(self, term: Term) -> Term | None:
        """A sum, or a multiple of one, with the averages among its terms named; None where there are none."""
        reads: dict[Var, list[tuple[Number, Term]]] = {}
        others: list[Term] = []
        for factor, part in weighted(term):
            access = part.body if isinstance(part, Conj) else part
            tensor = access.function if isinstance(access, Apply) else None
            if isinstance(tensor, Var) and tensor in self.definitions:
                reads.setdefault(tensor, []).append((factor, part))
            else:
                others.append(mul(factor, self.run(part)))
        alone = not others and len(reads) == 1
        found: list[Term] = []
        for tensor, parts in reads.items():
            average = self._average(tensor, parts, alone) if self.counts[tensor] == len(parts) else None
            if average is None:
                others += [mul(*part) for part in parts]
            else:
                self.named.add(tensor)
                found.append(average)
        return add(*others, *found) if found else None

    def _average(self, tensor: Var, parts: Sequence[tuple[Number, Term]], alone: bool) -> Term | None:
        """A multiple of an average of the value of a tensor, from the reads that are added."""
        for factor, first in parts:
            access = first.body if isinstance(first, Conj) else first
            assert isinstance(access, Apply)
            indices = tuple(argument for argument in access.arguments if isinstance(argument, Var))
            if isinstance(first, Conj) or len(indices) < len(access.arguments):
                continue
            actions = []
            for other, part in parts:
                read = whole_read(part if other == factor else mul(MINUS_ONE, part), indices)
                if read is None or other not in (factor, negate(factor)):
                    return None
                actions.append(read[1])
            subgroups = subgroup_factors(actions, ()) if len(set(actions)) == len(actions) else None
            moves = all(any(_groups(subgroup, indices)) for subgroup in subgroups or ())  # t + t* moves no index
            if factor.real > 0 and subgroups is not None and moves:
                inner = self.run(apply(self.definitions[tensor], indices))
                written = _written(inner, indices, subgroups, actions, alone)
                return None if written is None else mul(factor, written)
        return None


def _written(
    inner: Term, indices: Indices, subgroups: Sequence[Subgroup], actions: Sequence[Action], alone: bool
) -> Term | None:
    """The sum of the images of a term: two of one term one by one, others as a multiple of an average.

    None where two that are written out are longer than a definition and two elements of it, t[d,e] = … and so on.
    """
    if alone and len(actions) == WRITTEN_OUT and not isinstance(coefficient_of(inner)[1], Add):
        if printed_length(inner) > 10 + 3 * len(indices):  # t[…] = and twice t[…], of 4 or 3 symbols and its indices
            return None
        tensor = lambda_(indices, inner)
        return add(*(image_under(tensor, indices, action) for action in actions))
    outside, result = coefficient_of(inner)
    for subgroup in reversed(subgroups):
        result = Projection(_name(subgroup), _groups(subgroup, indices), result)
    return mul(number(len(actions)), outside, result)


def _name(subgroup: Subgroup) -> str:
    signs = [action.sign for action in subgroup]
    return NAMES[min(signs), any(action.conjugate for action in subgroup)]


def _groups(subgroup: Subgroup, indices: Indices) -> tuple[tuple[Term, ...], ...]:
    """What is exchanged: single indices, or two groups of which one takes the place of the other."""
    if len(subgroup) > WRITTEN_OUT:
        places = sorted({n for a in subgroup for n, source in enumerate(a.axes) if source != n})
        return tuple((indices[n],) for n in places)
    (action,) = (a for a in subgroup if a != identity_action(len(indices)))
    images = moved_indices(indices, action)
    first = [n for n, source in enumerate(action.axes) if source > n or (source == n and action.negated[n])]
    return tuple(indices[n] for n in first), tuple(images[n] for n in first)
