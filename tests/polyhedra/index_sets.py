"""Index sets in closed form, made of the integer solutions and the elimination of `combdiff.polyhedra`, for tests.

For `d[i + k]` with i in 0..2, j in 0..3 and k in 0..4:

    before   Σ_i Σ_j Σ_k δ(i + k, d0, term(i, j, k))
    after    Σ_j Σ_k term(d0 - k, j, k),   0 <= j <= 3,   max(0, d0 - 2) <= k <= min(4, d0)
             where d0 >= 0 and d0 <= 6; with 0 <= d0 < 7 assumed, always
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from combdiff.polyhedra import Bounds, Linear, as_linear, eliminate, integer_points


def in_range(index: str, size: Linear | int | str) -> tuple[Linear, Linear]:
    """The constraints `0 <= index < size`."""
    form = Linear.symbol(index)
    return form, as_linear(size) - form - 1


@dataclass(frozen=True)
class IndexSet:
    """The set Γ(β) in closed form: one integer point for each value of the loops `bounds`, outermost first.

    It is empty unless each of `equalities` is 0, each of `congruences` is 0 modulo its number and each of
    `feasible` is >= 0: all of them in β and sizes only. `alpha` is α in β, sizes and loop variables.
    """

    targets: tuple[str, ...]
    equalities: tuple[Linear, ...]
    congruences: tuple[tuple[Linear, int], ...]
    feasible: tuple[Linear, ...]
    bounds: tuple[Bounds, ...]
    alpha: tuple[Linear, ...]

    def points(self, beta: Sequence[int], sizes: Mapping[str, int] | None = None) -> Iterator[tuple[int, ...]]:
        """The index tuples that reach β."""
        values = {**(sizes or {}), **dict(zip(self.targets, beta, strict=True))}
        reached = (
            all(form.evaluate(values) == 0 for form in self.equalities)
            and all(form.evaluate(values) % modulus == 0 for form, modulus in self.congruences)
            and all(form.evaluate(values) >= 0 for form in self.feasible)
        )
        if reached:
            yield from self._loop(values, 0)

    def _loop(self, values: Mapping[str, int], depth: int) -> Iterator[tuple[int, ...]]:
        if depth == len(self.bounds):
            yield tuple(int(form.evaluate(values)) for form in self.alpha)
            return
        bound = self.bounds[depth]
        for value in bound.range(values):
            yield from self._loop({**values, bound.name: value}, depth + 1)


def index_set(
    matrix: Sequence[Sequence[int]],
    offset: Sequence[Linear | int],
    ranges: Iterable[Linear],
    *,
    indices: Sequence[str],
    targets: Sequence[str],
    assume: Iterable[Linear] = (),
) -> IndexSet:
    """The integer α with `matrix·α + offset = β`, `ranges` >= 0 (Urban & van der Smagt 2017, eq. 41 to 46).

    `indices` names α, `targets` names β; they and the sizes share no name. `ranges` may couple indices; with
    the equation they must bound them all. `assume` holds what is known of β and sizes. A loop variable that
    equals an index has its name; later indices are preferred.
    """
    constraints, premises = tuple(ranges), tuple(assume)
    shifted = tuple(Linear.symbol(name) - form for name, form in zip(targets, offset, strict=True))
    taken = {name for form in (*constraints, *premises) for name in form.symbols}
    points = integer_points(matrix, shifted, indices, taken)
    known = (*premises, *points.equalities, *(form.scale(-1) for form in points.equalities))
    substitution = dict(zip(indices, points.alpha, strict=True))
    system = [form.substitute(substitution) for form in constraints]
    elimination = eliminate(system, reversed(points.loops), known)
    return IndexSet(
        targets=tuple(targets),
        equalities=points.equalities,
        congruences=points.congruences,
        feasible=elimination.feasible,
        bounds=elimination.bounds[::-1],
        alpha=points.alpha,
    )
