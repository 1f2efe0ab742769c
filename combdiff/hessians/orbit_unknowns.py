"""The unknowns of a system for tensors with symmetries: one real number for each orbit of entries.

    A[i,j] = A[j,i]:    x = (A[0,0], √2 A[0,1], A[1,1], …)    so that x·x = Σ A[i,j]²

A symmetry takes the real and imaginary parts of entries to those of others, perhaps with a minus. A part that is its
own negative is 0 and no unknown.

Invariant: the columns of the basis are orthonormal, and span the Space.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from combdiff.ir import Action, Cyclic, Space
from combdiff.records import dataclass

Array = np.ndarray[Any, Any]


def transform(array: Array, action: Action, space: Space) -> Array:
    """The array with its axes permuted and negated, conjugated and times a sign, as an action of the Space says."""
    moved = reordered(array, action, space)
    return action.sign * (moved.conj() if action.conjugate else moved)


def reordered(array: Array, action: Action, space: Space) -> Array:
    """The array[i'…] with the entries where an action takes them from, without its sign or conjugate."""
    for axis, negated in enumerate(action.negated):
        if negated:
            array = np.flip(array, axis)
            # On a cycle the index −0 is 0: it keeps its place.
            array = np.roll(array, 1, axis) if isinstance(space.axes[axis], Cyclic) else array
    return np.transpose(array, np.argsort(action.axes)) if action.axes else array


@dataclass(frozen=True)
class OrbitBasis:
    """For each real number of packed arrays the unknown that it is a multiple of, −1 for none, and the multiple."""

    unknown: Array
    weight: Array

    @property
    def count(self) -> int:
        """The number of unknowns."""
        return int(self.unknown.max(initial=-1)) + 1

    def reduced(self, columns: Array) -> Array:
        """The unknowns of columns: Bᵀ·columns."""
        found = np.zeros((self.count, *columns.shape[1:]), columns.dtype)
        used = self.unknown >= 0
        np.add.at(found, self.unknown[used], self.weight[used, None] * columns[used])
        return found

    def expanded(self, unknowns: Array) -> Array:
        """The columns that have the unknowns: B·unknowns."""
        return np.where(self.unknown >= 0, self.weight, 0)[:, None] * unknowns[self.unknown]

    def matrix(self, matrix: Array) -> Array:
        """A matrix on the Space: Bᵀ·matrix·B."""
        return self.reduced(self.reduced(matrix).T).T


def orbit_basis(spaces: Sequence[Space], shapes: Sequence[Sequence[int]]) -> OrbitBasis:
    """The basis for arrays of some Spaces, packed one below the other."""
    unknowns, weights, start = [], [], 0
    for space, shape in zip(spaces, shapes, strict=True):
        unknown, weight = _orbits(space, shape)
        unknowns.append(np.where(unknown >= 0, unknown + start, -1))
        weights.append(weight)
        start += int(unknown.max(initial=-1)) + 1
    return OrbitBasis(np.concatenate(unknowns), np.concatenate(weights))


def _orbits(space: Space, shape: Sequence[int]) -> tuple[Array, Array]:
    """The orbits of the packed real numbers of an array by number, and weights that make a unit vector of each."""
    size = int(np.prod(shape, dtype=int))
    entries = np.arange(size).reshape(tuple(shape))
    images, signs = [], []
    for action in space.group:
        image, sign = reordered(entries, action, space).reshape(-1), np.full(size, float(action.sign))
        if space.dtype is complex:
            image = np.concatenate([image, image + size])
            sign = np.concatenate([sign, -sign if action.conjugate else sign])
        images.append(image)
        signs.append(sign)
    places, sign = np.stack(images), np.stack(signs)
    first = places.argmin(axis=0)
    least = np.take_along_axis(places, first[None], 0)[0]
    zero = np.any((places == np.arange(places.shape[1])) & (sign < 0), axis=0)
    unknown = np.full(places.shape[1], -1)
    _, numbers, counts = np.unique(least[~zero], return_inverse=True, return_counts=True)
    unknown[~zero] = numbers
    weight = np.take_along_axis(sign, first[None], 0)[0]
    weight[~zero] /= np.sqrt(counts[numbers])
    return unknown, weight
