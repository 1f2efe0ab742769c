"""Tensor networks: in which order to multiply the operands of a Σ of a product, pair by pair.

    Σ_{j,k} A[i,j]·B[j,k]·x[k]   as trees:  ((0, 1), 2) with N³ + N² products, (0, (1, 2)) with 2·N²

A contraction tree costs, for each pair, the product of the extents of all labels the pair has, and for each operand
that has a summed label to itself, its size. A label shared by three or more operands stays until its last use
(opt_einsum's `optimal` and `auto` miscount there: its issue 248), so every order is costed here.

Invariant: the cost of a tree is that of the contractions that are done, whatever its labels are shared by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from math import prod
from typing import TypeAlias

from combdiff.records import dataclass

Tree: TypeAlias = "int | tuple[Tree, Tree]"
Path = Sequence[Sequence[int]]
PathFinder = Callable[[Sequence[frozenset[int]], frozenset[int], Mapping[int, int]], Sequence[Path]]
Cost = tuple[int, int]  # multiplications, and as a tie-break the elements of all intermediates


@dataclass(frozen=True)
class Network:
    """Operands given by their labels, the labels of the result, and the extent of every label."""

    operands: tuple[frozenset[int], ...]
    output: frozenset[int]
    extents: Mapping[int, int]
    _labels: dict[int, int] = field(default_factory=dict, repr=False)
    _sizes: dict[int, int] = field(default_factory=dict, repr=False)

    @cached_property
    def _bits(self) -> tuple[int, ...]:
        return tuple(sum(1 << label for label in labels) for labels in self.operands)

    @cached_property
    def _output_bits(self) -> int:
        return sum(1 << label for label in self.output)

    @cached_property
    def everything(self) -> int:
        """The set of all operands, as bits."""
        return (1 << len(self.operands)) - 1

    def labels(self, subset: int) -> int:
        """All labels of a set of operands, as bits."""
        if subset not in self._labels:
            low = subset & -subset
            rest = self.labels(subset ^ low) if subset ^ low else 0
            self._labels[subset] = rest | self._bits[low.bit_length() - 1]
        return self._labels[subset]

    def kept(self, subset: int) -> int:
        """The labels a product of these operands must keep: those of the result and of the other operands."""
        rest = self.everything ^ subset
        return self.labels(subset) & (self._output_bits | (self.labels(rest) if rest else 0))

    def kept_labels(self, subset: int) -> frozenset[int]:
        """`kept` as a set of labels."""
        bits = self.kept(subset)
        return frozenset(label for label in self.extents if bits >> label & 1)

    def size(self, labels: int) -> int:
        """The product of extents; an extent of 0 counts as 1, so that orders differ for empty arrays too."""
        if labels not in self._sizes:
            self._sizes[labels] = prod(max(1, n) for label, n in self.extents.items() if labels >> label & 1)
        return self._sizes[labels]

    def leaf_cost(self, operand: int) -> Cost:
        """Summing an operand over the labels that no one else has."""
        subset = 1 << operand
        labels, kept = self.labels(subset), self.kept(subset)
        return (self.size(labels), self.size(kept)) if labels != kept else (0, 0)

    def pair_cost(self, left: int, right: int) -> Cost:
        """Multiplying the products of two sets of operands."""
        return self.size(self.kept(left) | self.kept(right)), self.size(self.kept(left | right))


def members(tree: Tree) -> int:
    """The set of operands in a tree, as bits."""
    return 1 << tree if isinstance(tree, int) else members(tree[0]) | members(tree[1])


def cost_of(network: Network, tree: Tree) -> Cost:
    """What a tree costs: multiplications, and the elements of all its intermediates."""
    if isinstance(tree, int):
        return network.leaf_cost(tree)
    return plus(
        network.pair_cost(members(tree[0]), members(tree[1])),
        plus(cost_of(network, tree[0]), cost_of(network, tree[1])),
    )


def plus(a: Cost, b: Cost) -> Cost:
    """The sum of two costs."""
    return a[0] + b[0], a[1] + b[1]


def from_path(path: Path, count: int) -> Tree:
    """The tree of a path in opt_einsum's linear form: each entry gives positions in the shrinking list of operands."""
    items: list[Tree] = list(range(count))
    for positions in path:
        chosen = [items.pop(position) for position in sorted(positions, reverse=True)][::-1]
        items.append(_joined(chosen))
    return _joined(items)


def _joined(items: Sequence[Tree]) -> Tree:
    tree = items[0]
    for item in items[1:]:
        tree = (tree, item)
    return tree
