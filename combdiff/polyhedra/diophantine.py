"""Linear equations over the integers: the Smith normal form and all integer solutions.

    A α = β   has integer solutions   α = I β + K z   iff   Ck β = 0 and I β is integral

with I the rational pseudo-inverse, K a basis of the integer kernel and Ck of the cokernel, all from U·A·V = S (Urban &
van der Smagt 2017, sec. 4.1):

    before   2 i = d
    after    i = d / 2,  d ≡ 0 (mod 2)

Invariant: all arithmetic is exact (int, Fraction); the solutions are all there are.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from math import lcm
from typing import TypeVar

from combdiff.records import dataclass

Rational = int | Fraction
Vector = tuple[int, ...]
Matrix = tuple[Vector, ...]
Condition = tuple[Vector, int]  # row·β ≡ 0 (mod the number)
Number = TypeVar("Number", int, Fraction)


@dataclass(frozen=True)
class Smith:
    """`U·A·V = S`: U, V unimodular, S diagonal, `s_i > 0` and `s_i | s_{i+1}` up to the rank, 0 beyond."""

    U: Matrix
    S: Matrix
    V: Matrix
    rank: int


def smith(matrix: Sequence[Sequence[int]], columns: int | None = None) -> Smith:
    """The Smith normal form (Urban & van der Smagt 2017, sec. 4.1). Without rows, `columns` must be given."""
    n = len(matrix)
    m = len(matrix[0]) if columns is None else columns
    # The tableau [[A, 1], [1, 0]]: a row operation acts on A and U at once, a column operation on A and V.
    w = [[*row, *unit] for row, unit in zip(matrix, _identity(n), strict=True)]
    w += [[*unit, *[0] * n] for unit in _identity(m)]
    t = 0
    while entries := [(abs(w[i][j]), i, j) for i in range(t, n) for j in range(t, m) if w[i][j]]:
        _, row, column = min(entries)
        w[t], w[row] = w[row], w[t]
        for line in w:
            line[t], line[column] = line[column], line[t]
        pivot = w[t][t]
        for i in range(t + 1, n):
            _add_row(w, i, t, -(w[i][t] // pivot))
        for j in range(t + 1, m):
            _add_column(w, j, t, -(w[t][j] // pivot))
        if any(w[t][t + 1 : m]):
            continue  # a remainder is left, and it is smaller than this pivot
        indivisible = [i for i in range(t + 1, n) if any(entry % pivot for entry in w[i][:m])]
        if indivisible:  # a remainder in column t, too
            _add_row(w, t, indivisible[0], 1)  # reducing it leaves a smaller pivot
            continue
        if pivot < 0:
            w[t] = [-entry for entry in w[t]]
        t += 1
    return Smith(_cut(w[:n], m, m + n), _cut(w[:n], 0, m), _cut(w[n:], 0, m), rank=t)


def hermite(rows: Sequence[Sequence[int]], columns: int) -> tuple[Matrix, Matrix]:
    """(H, V) with A·V = H, V unimodular and H the Hermite normal form by columns of independent rows A.

    H is lower triangular with a positive diagonal, each entry before it at least 0 and less than it. So H is unique.
    """
    n, m = len(rows), columns
    w = [list(row) for row in rows] + _identity(m)
    for t in range(n):
        while not w[t][t] or any(w[t][t + 1 : m]):
            column = min((j for j in range(t, m) if w[t][j]), key=lambda j: abs(w[t][j]))
            for line in w:
                line[t], line[column] = line[column], line[t]
            for j in range(t + 1, m):
                _add_column(w, j, t, -(w[t][j] // w[t][t]))
        if w[t][t] < 0:
            _add_column(w, t, t, -2)
        for j in range(t):
            _add_column(w, j, t, -(w[t][j] // w[t][t]))
    return _cut(w[:n], 0, m), _cut(w[n:], 0, m)


def _identity(size: int) -> list[list[int]]:
    return [[int(i == j) for j in range(size)] for i in range(size)]


def _add_row(w: list[list[int]], target: int, source: int, factor: int) -> None:
    w[target] = [x + factor * y for x, y in zip(w[target], w[source], strict=True)]


def _add_column(w: list[list[int]], target: int, source: int, factor: int) -> None:
    for line in w:
        line[target] += factor * line[source]


def _cut(rows: list[list[int]], start: int, stop: int) -> Matrix:
    return tuple(tuple(row[start:stop]) for row in rows)


@dataclass(frozen=True)
class IntegerSolution:
    """All integer solutions of `Aα = β`: `α = inverse·β + kernel·z`, z any integers.

    They exist iff `cokernel·β = 0` and `row·β ≡ 0 (mod modulus)` for each of `congruences`.
    `kept[t]` is the component of α that the kernel variable `z_t` equals, or None.
    """

    inverse: tuple[tuple[Fraction, ...], ...]
    kernel: Matrix
    cokernel: Matrix
    congruences: tuple[Condition, ...]
    kept: tuple[int | None, ...]


def solve(matrix: Sequence[Sequence[int]], columns: int | None = None) -> IntegerSolution:
    """Solve `Aα = β` over the integers for every β (Urban & van der Smagt 2017, eq. 16 to 20).

    Where the kernel allows it, its variables are components of α, the last ones first.
    """
    form = smith(matrix, columns)
    rank = form.rank
    kept, vectors = _readable_kernel([tuple(row[t] for row in form.V) for t in range(rank, len(form.V))])
    cokernel = _reduced(form.U[rank:])
    inverse = [
        [
            sum((Fraction(row[t] * form.U[t][j], form.S[t][t]) for t in range(rank)), Fraction())
            for j in range(len(form.U))
        ]
        for row in form.V
    ]
    inverse = _readable_inverse(inverse, vectors, kept, cokernel)
    return IntegerSolution(
        inverse=tuple(tuple(row) for row in inverse),
        kernel=tuple(tuple(vector[r] for vector in vectors) for r in range(len(form.V))),
        cokernel=tuple(cokernel),
        congruences=_congruences(inverse),
        kept=(*kept, *[None] * (len(vectors) - len(kept))),
    )


def _readable_kernel(vectors: list[Vector]) -> tuple[Vector, list[Vector]]:
    """A basis of the lattice, its first vectors unit vectors on components of α: as many as can be."""
    components = range(len(vectors[0]) if vectors else 0)
    for count in range(len(vectors), 0, -1):
        for kept in reversed(list(combinations(components, count))):
            form = smith([[vector[r] for vector in vectors] for r in kept])
            if all(form.S[t][t] == 1 for t in range(count)):
                # U·R·V = [1 0] for the kept rows R, so R·V·diag(U, 1) = [1 0]: diag and V change the basis.
                basis = _combined(vectors, form.V)
                return kept, _combined(basis[:count], form.U) + _reduced(basis[count:])
    return (), _reduced(vectors)


def _combined(vectors: Sequence[Vector], factors: Matrix) -> list[Vector]:
    """The vectors Σ_l vectors[l]·factors[l][c], one for each column c."""
    entries = list(zip(*vectors, strict=True))
    return [tuple(_dot(entry, column) for entry in entries) for column in zip(*factors, strict=True)]


def _dot(vector: Iterable[Number], other: Iterable[int]) -> Number:
    products = [x * y for x, y in zip(vector, other, strict=True)]
    return sum(products[1:], products[0])


def _readable_inverse(
    inverse: list[list[Fraction]], vectors: list[Vector], kept: Vector, cokernel: list[Vector]
) -> list[list[Fraction]]:
    """Add kernel vectors and cokernel rows, which changes no solution: kept rows vanish, others shrink."""
    zeroed = [inverse[r] for r in kept]
    for vector, row in zip(vectors, zeroed, strict=False):
        inverse = [[a - x * b for a, b in zip(old, row, strict=True)] for old, x in zip(inverse, vector, strict=True)]
    if vectors[len(kept) :] and inverse[0]:
        shortened = [_shorten(column, vectors[len(kept) :]) for column in zip(*inverse, strict=True)]
        inverse = [list(row) for row in zip(*shortened, strict=True)]
    return [list(_shorten(tuple(row), cokernel)) for row in inverse]


def _shorten(vector: tuple[Number, ...], basis: Sequence[Vector]) -> tuple[Number, ...]:
    """Subtract integer multiples of the basis vectors while that makes the vector shorter."""
    changed = True
    while changed:
        changed = False
        for b in basis:
            factor = round(Fraction(_dot(vector, b), _dot(b, b)))
            if factor:
                vector = tuple(x - factor * y for x, y in zip(vector, b, strict=True))
                changed = True
    return vector


def _reduced(vectors: Sequence[Vector]) -> list[Vector]:
    """The same lattice in shorter vectors, the first non-zero entry of each positive."""
    basis = list(vectors)
    previous: list[Vector] = []
    while basis != previous:
        previous = list(basis)
        for position, vector in enumerate(basis):
            basis[position] = _shorten(vector, basis[:position] + basis[position + 1 :])
    return [_positive(vector) for vector in basis]


def _positive(vector: Vector) -> Vector:
    leading = next((x for x in vector if x), 0)
    return tuple(-x for x in vector) if leading < 0 else vector


def _congruences(inverse: list[list[Fraction]]) -> tuple[Condition, ...]:
    """The conditions that `inverse·β` be integral, without those that follow from others."""
    conditions = []
    for row in inverse:
        modulus = lcm(*(x.denominator for x in row))
        entries = (int(x * modulus) % modulus for x in row)
        centred = _positive(tuple(x - modulus if 2 * x > modulus else x for x in entries))
        if modulus > 1 and (centred, modulus) not in conditions:
            conditions.append((centred, modulus))
    for condition in tuple(conditions):
        others = [other for other in conditions if other != condition]
        if _follows(condition, others):
            conditions = others
    return tuple(conditions)


def _follows(condition: Condition, others: list[Condition]) -> bool:
    """Whether row/modulus is an integer combination of the others' row/modulus and of unit vectors."""
    scale = lcm(condition[1], *(modulus for _, modulus in others))
    scaled = [[x * scale // modulus for x in row] for row, modulus in (condition, *others)]
    size = len(condition[0])
    units = [[scale * x for x in row] for row in _identity(size)]
    form = smith(list(zip(*scaled[1:], *units, strict=True)))
    return all(_dot(row, scaled[0]) % form.S[t][t] == 0 for t, row in enumerate(form.U))
