"""A group of symmetries as a product of small ones, which have names: exchanges, and all orders of some indices.

    {1, (ij), (ab), (ij)(ab)}  with signs     =     {1, −(ij)} · {1, −(ab)}        Alt_{i,j} Alt_{a,b}

The average over a group is the product of the averages over the factors, and what some of the symmetries leave fixed
(its stabiliser) needs the average over the others alone.

Invariant: the products of an element of each factor are all different, and with the stabiliser make the group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, permutations

from combdiff.ir.domains import Action, identity_action

Subgroup = tuple[Action, ...]


def subgroup_factors(group: Collection[Action], stabiliser: Collection[Action]) -> list[Subgroup] | None:
    """Subgroups H₁, …, Hᵣ such that every element of the group is h₁.then(… hᵣ.then(k)) for one choice, k stabilising.

    The group may be a set that is no group, as long as it is such a product. None where there is no such product.
    """
    order = len(next(iter(group)).axes)
    wanted = frozenset(group)
    return _search(wanted, frozenset(stabiliser) or {identity_action(order)}, list(_candidates(wanted)))


def _search(wanted: frozenset[Action], covered: Collection[Action], left: Sequence[Subgroup]) -> list[Subgroup] | None:
    if len(covered) == len(wanted):
        return []
    for n, subgroup in enumerate(left):
        more = {h.then(k) for h in subgroup for k in covered}
        if len(more) == len(subgroup) * len(covered) and more <= wanted:
            rest = _search(wanted, more, left[n + 1 :])
            if rest is not None:
                return [*rest, subgroup]
    return None


def product(subgroups: Sequence[Subgroup], order: int) -> Subgroup:
    """The products of an element of each, the identity first."""
    found: Subgroup = (identity_action(order),)
    for subgroup in reversed(subgroups):
        found = tuple(h.then(k) for h in subgroup for k in found)
    return found


def representatives(group: Sequence[Action], stabiliser: Collection[Action]) -> Subgroup:
    """An element of each coset g·stabiliser, the identity first: a product of subgroups with names, where there is."""
    order = len(group[0].axes)
    subgroups = subgroup_factors(group, stabiliser)
    if subgroups is not None:
        return product(subgroups, order)
    kept: list[Action] = []
    seen: set[Action] = set()
    for action in group:
        if action not in seen:
            kept.append(action)
            seen.update(action.then(k) for k in stabiliser)
    return tuple(kept)


def _candidates(actions: frozenset[Action]) -> Iterator[Subgroup]:
    """The subgroups with a name among some actions: all orders of three or more indices, then the involutions."""
    order = len(next(iter(actions)).axes)
    identity = identity_action(order)
    for size in range(order, 2, -1):
        for positions in combinations(range(order), size):
            for sign in (1, -1):
                whole = tuple(_orders(positions, order, sign))
                if actions.issuperset(whole):
                    yield whole
    involutions = [a for a in actions if a != identity and a.then(a) == identity]
    for action in sorted(involutions, key=lambda action: action.rank):
        yield (identity, action)


def _orders(positions: tuple[int, ...], order: int, sign: int) -> Iterator[Action]:
    """All orders of the indices at some positions, odd ones with the sign."""
    for image in permutations(positions):
        axes = list(range(order))
        for place, source in zip(positions, image, strict=True):
            axes[place] = source
        odd = sum(a > b for a, b in combinations(image, 2)) % 2
        yield Action(tuple(axes), (False,) * order, sign if odd else 1)
