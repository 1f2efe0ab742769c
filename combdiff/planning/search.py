"""The search for contraction trees: exhaustive where a network is small, proposals improved where it is large.

    Σ_{j,k} A[i,j]·B[j,k]·x[k]    becomes    (0, (1, 2))    the cheapest of the trees of three operands

Up to `EXACT` operands the search over subsets is exhaustive (outer products too) and yields all orders of nearly the
least cost. Beyond, a path finder proposes trees; the best are improved part by part: the product of a few subtrees
below a node is searched for its best order, which takes their place where it costs less. (A greedy search looks one
step ahead; for subtree reconfiguration see J. Gray and S. Kourtis, Quantum 5, 410 (2021), section 4.)

Invariant: the first tree returned costs no more than any tree the path finder proposes, and results are deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import islice
from operator import or_

from combdiff.planning.networks import Cost, Network, PathFinder, Tree, cost_of, from_path, members, plus

EXACT = 8
SLACK = 2
MOST = 32
REFINED = 3  # proposals that are improved
PARTS = 8  # subtrees whose product is searched at a time
ROUNDS = 8
NEGLIGIBLE = 1000  # what costs less than this part of the whole is left as it is


def trees(network: Network, find_paths: PathFinder) -> tuple[Tree, ...]:
    """The cheapest tree, then others that cost at most `SLACK` times as much (at most `MOST` in all)."""
    count = len(network.operands)
    if count <= EXACT:
        found = list(islice(Exhaustive(network).near_best(), MOST))
    elif len(alike := _alike(network.operands)) < count:
        inner = Network(tuple(alike), network.output, network.extents)
        chains = [reduce(_pair, positions) for positions in alike.values()]
        return tuple(_filled(tree, chains) for tree in trees(inner, find_paths))
    else:
        paths = find_paths(network.operands, network.output, network.extents)
        proposed = dict.fromkeys(from_path(path, count) for path in paths)
        best = sorted(proposed, key=lambda tree: cost_of(network, tree))[:REFINED]
        improver = _Improver(network)
        found = list(dict.fromkeys([*map(improver.refined, best), *best]))
    priced = sorted(((cost_of(network, tree), n) for n, tree in enumerate(found)))
    limit = priced[0][0][0] * SLACK
    return tuple(found[n] for (multiplications, _), n in priced if multiplications <= limit)


def _alike(operands: Sequence[frozenset[int]]) -> dict[frozenset[int], list[Tree]]:
    """The positions of the operands, by labels. Those of the same labels are multiplied first: nothing is cheaper."""
    found: dict[frozenset[int], list[Tree]] = {}
    for position, labels in enumerate(operands):
        found.setdefault(labels, []).append(position)
    return found


def _pair(left: Tree, right: Tree) -> Tree:
    return left, right


# --- improving a tree ----------------------------------------------------------------------------------------------


class _Improver:
    """Improves trees of one network, and knows the orders of the parts it has met."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.orders: dict[tuple[int, ...], Tree] = {}

    def refined(self, tree: Tree) -> Tree:
        """The tree after rounds of improvements, until none is found."""
        for _ in range(ROUNDS):
            before = cost_of(self.network, tree)
            tree = self._improved(tree, before[0] // NEGLIGIBLE)
            if cost_of(self.network, tree) == before:
                break
        return tree

    def _improved(self, tree: Tree, least: int) -> Tree:
        """The tree with the part below each node in its best order, down to what costs at most `least`."""
        cost = cost_of(self.network, tree)
        if isinstance(tree, int) or cost[0] <= least:
            return tree
        found = self._reordered(_parts(self.network, tree))
        tree = found if cost_of(self.network, found) < cost else tree
        assert not isinstance(tree, int)
        return self._improved(tree[0], least), self._improved(tree[1], least)

    def _reordered(self, parts: list[Tree]) -> Tree:
        """The cheapest tree of the product of some trees."""
        sets = tuple(members(part) for part in parts)
        if sets not in self.orders:
            operands = tuple(self.network.kept_labels(subset) for subset in sets)
            output = self.network.kept_labels(reduce(or_, sets))
            self.orders[sets] = _cheapest(*_renamed(operands, output, self.network.extents))
        return _filled(self.orders[sets], parts)


def _renamed(
    operands: Sequence[frozenset[int]], output: frozenset[int], extents: Mapping[int, int]
) -> tuple[tuple[frozenset[int], ...], frozenset[int], tuple[int, ...]]:
    """Operands, output and extents with labels numbered as they appear: those of the links of a chain are the same."""
    found = dict.fromkeys(label for labels in (*operands, output) for label in sorted(labels))
    number = {label: n for n, label in enumerate(found)}
    renamed = tuple(frozenset(number[label] for label in labels) for labels in (*operands, output))
    return renamed[:-1], renamed[-1], tuple(extents[label] for label in found)


@lru_cache(maxsize=1024)
def _cheapest(operands: tuple[frozenset[int], ...], output: frozenset[int], extents: tuple[int, ...]) -> Tree:
    """The cheapest tree of a small network."""
    return next(Exhaustive(Network(operands, output, dict(enumerate(extents)))).near_best())


def _parts(network: Network, tree: Tree) -> list[Tree]:
    """At most `PARTS` subtrees that make up the tree: those whose last product costs most are opened first."""
    parts = [tree]
    while len(parts) < PARTS:
        dear = [
            (network.pair_cost(members(t[0]), members(t[1])), n) for n, t in enumerate(parts) if isinstance(t, tuple)
        ]
        if not dear:
            break
        opened = parts.pop(max(dear)[1])
        assert not isinstance(opened, int)
        parts += opened
    return parts


def _filled(order: Tree, parts: list[Tree]) -> Tree:
    return parts[order] if isinstance(order, int) else (_filled(order[0], parts), _filled(order[1], parts))


# --- exhaustive search ---------------------------------------------------------------------------------------------


class Exhaustive:
    """Dynamic programming over subsets of the operands."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.best: dict[int, Cost] = {1 << n: network.leaf_cost(n) for n in range(len(network.operands))}
        for subset in range(1, network.everything + 1):
            if subset not in self.best:
                self.best[subset] = min(self._split_cost(left, subset ^ left) for left in _halves(subset))

    def _split_cost(self, left: int, right: int) -> Cost:
        return plus(self.network.pair_cost(left, right), plus(self.best[left], self.best[right]))

    def near_best(self) -> Iterator[Tree]:
        """Trees within the slack, a cheapest one first."""
        multiplications, elements = self.best[self.network.everything]
        yield from self._trees(self.network.everything, (int(multiplications * SLACK), elements))

    def _trees(self, subset: int, budget: Cost) -> Iterator[Tree]:
        """All trees of the subset that cost at most the budget, cheap splits first."""
        if subset & (subset - 1) == 0:
            yield subset.bit_length() - 1
            return
        splits = sorted((self._split_cost(left, subset ^ left), left) for left in _halves(subset))
        for least, left in splits:
            if least > budget:
                return
            right = subset ^ left
            spare = (budget[0] - least[0], budget[1] - least[1])
            for left_tree in self._trees(left, plus(self.best[left], spare)):
                used = cost_of(self.network, left_tree)
                remaining = plus(plus(self.best[right], spare), _minus(self.best[left], used))
                for right_tree in self._trees(right, remaining):
                    yield left_tree, right_tree


def _minus(a: Cost, b: Cost) -> Cost:
    return a[0] - b[0], a[1] - b[1]


def _halves(subset: int) -> Iterator[int]:
    """The proper subsets that hold the lowest member."""
    low = subset & -subset
    rest = subset ^ low
    part = rest
    while part:
        part = (part - 1) & rest
        yield part | low
