"""Maximally localised Wannier functions from Wannier90 files (theory.md §3, result 6).

    python examples/wannier.py FOLDER/diamond     reads diamond.win, diamond.mmn and diamond.amn
    python examples/wannier.py                    builds a small tight-binding model of its own

The bands of a crystal at the points k of a mesh may be mixed by any unitary matrices U(k). The mixture whose Wannier
functions have the least spread is found by descent: with `M[n,k,b] = Σ U[p,n,k]* S[p,q,k,b] U[q,n,k+b]`, centres
`r_n = −(1/Nk) Σ_{k,b} w_b b Im ln M[n,k,b]` and weights with `Σ_b w_b b bᵀ = 1`, the spread is

    Ω = Σ_n ( (1/Nk) Σ_{k,b} w_b (1 − |M[n,k,b]|² + (Im ln M[n,k,b])²) − |r_n|² )

(N. Marzari and D. Vanderbilt, Phys. Rev. B 56, 12847 (1997), eqs. 31 and 32). The indices k count modulo the mesh.
"""

import argparse
import itertools
from pathlib import Path
from typing import NamedTuple

import numpy as np

import combdiff as cd

# 1. As in the theory: one cyclic axis, the part of the spread that is |ρ|². The gradient is one term with factor 4.

K, B = cd.Cyclic("K"), cd.Symmetric("B")


@cd.program
def localisation(
    w: cd.Space(B, symmetry=["w[b] = w[-b]"]),
    S: cd.Space("N", "N", K, K, dtype=complex, symmetry=["S[p,q,k,l] = conj(S[q,p,l,k])"]),
    U: cd.Space("N", "n", K, dtype=complex),
):
    rho = cd.tensor(lambda n, b: cd.sum(lambda k, p, q: cd.conj(U[p, n, k]) * S[p, q, k, k + b] * U[q, n, k + b]), b=B)
    return cd.sum(lambda n, b: w[b] * cd.conj(rho[n, b]) * rho[n, b])


# 2. The whole spread, on a mesh in three dimensions. The neighbours k + b of a point are at (a, b, c) steps along the
# three directions of the mesh; `away` is 1 where (a, b, c) is no neighbour: its M is 1, and its weight 0.

Mesh = (cd.Cyclic("K1"), cd.Cyclic("K2"), cd.Cyclic("K3"))
Steps = (cd.Symmetric("B1"), cd.Symmetric("B2"), cd.Symmetric("B3"))
Gauge = cd.Space("N", "n", *Mesh, dtype=complex)
Overlaps = cd.Space("N", "N", *Mesh, *Steps, dtype=complex)
Weights = cd.Space(*Steps, symmetry=["w[a,b,c] = w[-a,-b,-c]"])
Vectors = cd.Space(3, *Steps, symmetry=["v[x,a,b,c] = -v[x,-a,-b,-c]"])


@cd.program
def spread(S: Overlaps, w: Weights, v: Vectors, away: Weights, h: cd.Space(), U: Gauge):
    M = cd.tensor(
        lambda n, i, j, k, a, b, c: (
            away[a, b, c]
            + cd.sum(lambda p, q: cd.conj(U[p, n, i, j, k]) * S[p, q, i, j, k, a, b, c] * U[q, n, i + a, j + b, k + c])
        )
    )
    phase = np.log(M).imag
    r = cd.tensor(
        lambda n, x: -h * cd.sum(lambda i, j, k, a, b, c: w[a, b, c] * v[x, a, b, c] * phase[n, i, j, k, a, b, c])
    )
    part = 1 - (cd.conj(M) * M).real + phase**2
    return h * cd.sum(lambda n, i, j, k, a, b, c: w[a, b, c] * part[n, i, j, k, a, b, c]) - (r * r).sum()


# 3. Neighbours of a mesh and their weights.


class Neighbours(NamedTuple):
    """Arrays over the steps (a, b, c) along the mesh, −most … most along each axis."""

    weights: np.ndarray
    vectors: np.ndarray
    away: np.ndarray
    overlaps: np.ndarray  # bands, bands, mesh, steps


def shell_weights(vectors, tolerance=1e-6):
    """Weights w_b, equal within a shell of equal |b|, with Σ_b w_b b bᵀ = 1 (Wannier90 User Guide, sec. on kmesh)."""
    lengths = np.linalg.norm(vectors, axis=1)
    shells = [np.flatnonzero(abs(lengths - length) < tolerance) for length in unique(lengths, tolerance)]
    sums = np.stack([vectors[shell].T @ vectors[shell] for shell in shells], axis=-1).reshape(9, -1)
    found = np.linalg.lstsq(sums, np.eye(3).reshape(9), rcond=None)[0]
    if np.max(abs(sums @ found - np.eye(3).reshape(9))) > tolerance:
        raise SystemExit("the shells of neighbours do not satisfy Σ w_b b bᵀ = 1: more shells are needed")
    weights = np.zeros(len(vectors))
    for shell, weight in zip(shells, found, strict=True):
        weights[shell] = weight
    return weights


def unique(lengths, tolerance):
    """The distinct lengths, ascending."""
    ordered = np.sort(lengths)
    return ordered[np.concatenate(([True], np.diff(ordered) > tolerance))]


def search_shells(reciprocal, mesh, reach=3, tolerance=1e-6):
    """The steps to the neighbours: the nearest shells, those that add nothing to Σ b bᵀ left out, until it can be 1."""
    steps = np.array([s for s in itertools.product(range(-reach, reach + 1), repeat=3) if any(s)])
    vectors = steps / mesh @ reciprocal
    lengths = np.linalg.norm(vectors, axis=1)
    chosen, sums = [], np.zeros((9, 0))
    for length in unique(lengths, tolerance):
        shell = np.flatnonzero(abs(lengths - length) < tolerance)
        wider = np.column_stack([sums, (vectors[shell].T @ vectors[shell]).reshape(9)])
        if np.linalg.matrix_rank(wider, tol=tolerance) < wider.shape[1]:
            continue
        chosen, sums = [*chosen, *shell], wider
        solution = np.linalg.lstsq(sums, np.eye(3).reshape(9), rcond=None)[0]
        if np.max(abs(sums @ solution - np.eye(3).reshape(9))) < tolerance:
            return steps[chosen]
    raise SystemExit("no shells of neighbours satisfy Σ w_b b bᵀ = 1")


def neighbours(steps, vectors, overlap):
    """The arrays for steps to neighbours, the vectors b there, and the function (bands, bands, mesh) of a step."""
    most = np.max(abs(steps), axis=0)
    weights, away = np.zeros(2 * most + 1), np.ones(2 * most + 1)
    b = np.zeros((3, *weights.shape))
    first = overlap(0)
    overlaps = np.zeros((*first.shape, *weights.shape), complex)
    for number, (step, vector, weight) in enumerate(zip(steps, vectors, shell_weights(vectors), strict=True)):
        place = tuple(step + most)
        weights[place], away[place] = weight, 0.0
        b[:, *place] = vector
        overlaps[..., *place] = overlap(number)
    return Neighbours(weights, b, away, overlaps)


# 4. Wannier90 files: the cell and the mesh (.win), overlaps of neighbours (.mmn), projections on trial orbitals (.amn).


def block(text, name):
    """The lines between `begin name` and `end name`."""
    lines = [line.split("!")[0].strip() for line in text.splitlines()]
    start = next(n for n, line in enumerate(lines) if line.lower().split() == ["begin", name])
    end = next(n for n, line in enumerate(lines) if line.lower().split() == ["end", name])
    return [line.split() for line in lines[start + 1 : end] if line]


def read_win(path):
    """The reciprocal cell (rows, 1/Å), the mesh, and where on the mesh each k point is."""
    text = path.read_text(encoding="utf-8")
    lines = block(text, "unit_cell_cart")
    bohr = lines[0][0].lower() == "bohr"
    cell = np.array([line for line in lines if len(line) == 3], float) * (0.52917721092 if bohr else 1.0)
    (found,) = [line for line in text.splitlines() if line.strip().lower().startswith("mp_grid")]
    mesh = np.array(found.replace("=", " ").replace(":", " ").split()[1:4], int)
    points = np.array([line[:3] for line in block(text, "kpoints")], float)
    return 2 * np.pi * np.linalg.inv(cell).T, mesh, np.rint(points * mesh).astype(int)


def read_mmn(path, reciprocal, mesh, points):
    """The neighbours and the overlaps S(k, b) between the bands at k and at k + b."""
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    bands, count, around = map(int, lines[0].split())
    table = {}
    for n in range(count * around):
        start = 1 + n * (bands * bands + 1)
        here, there, *shift = map(int, lines[start].split())
        numbers = np.array([line.split() for line in lines[start + 1 : start + 1 + bands * bands]], float)
        step = points[there - 1] + np.array(shift) * mesh - points[here - 1]
        table[tuple(points[here - 1] % mesh), tuple(step)] = (numbers @ [1, 1j]).reshape(bands, bands).T
    steps = np.array(sorted({step for _, step in table}))

    def overlap(number):
        found = np.zeros((bands, bands, *mesh), complex)
        for place in np.ndindex(*mesh):
            found[:, :, *place] = table[place, tuple(steps[number])]
        return found

    return neighbours(steps, steps / mesh @ reciprocal, overlap)


def read_amn(path, mesh, points):
    """The overlaps A(k) of the bands with the trial orbitals."""
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    bands, _, orbitals = map(int, lines[0].split())
    found = np.zeros((bands, orbitals, *mesh), complex)
    for line in lines[1:]:
        m, n, k, *number = line.split()
        found[int(m) - 1, int(n) - 1, *(points[int(k) - 1] % mesh)] = complex(*map(float, number))
    return found


# 5. Without files: the two lower bands of a tight-binding crystal with four sites per cell.


def model():
    """The neighbours of a 4 × 4 × 2 mesh, and projections of two bands on the two lower of four orbitals."""
    cell, mesh = np.diag([2.0, 2.0, 3.0]), np.array([4, 4, 2])
    reciprocal = 2 * np.pi * np.linalg.inv(cell).T
    sites = np.array([[0.1, 0.1, 0.2], [0.6, 0.1, 0.3], [0.1, 0.6, 0.7], [0.6, 0.6, 0.8]]) @ cell
    shifts = np.array(list(itertools.product((-1, 0, 1), repeat=3))) @ cell
    apart = sites[None, :, None] + shifts - sites[:, None, None]
    hopping = -0.4 * np.exp(-np.linalg.norm(apart, axis=-1)) * np.any(apart, axis=-1)

    def bands(place):
        """The cell-periodic parts of the two lower bands at a point of the mesh, one per column."""
        phases = np.exp(1j * apart @ (place / mesh @ reciprocal))
        return np.linalg.eigh(np.diag([-1.0, 1.0, -0.8, 1.2]) + np.sum(hopping * phases, axis=-1))[1][:, :2]

    held = {place: bands(np.array(place)) for place in np.ndindex(*mesh)}
    steps = search_shells(reciprocal, mesh)
    projections = np.zeros((2, 2, *mesh), complex)
    for place, periodic in held.items():
        bloch = np.exp(1j * sites @ (place / mesh @ reciprocal))[:, None] * periodic
        projections[:, :, *place] = bloch[[0, 2]].conj().T

    def overlap(number):
        found = np.zeros((2, 2, *mesh), complex)
        for place in held:
            ahead = np.array(place) + steps[number]
            wrapped = np.exp(-1j * sites @ ((ahead - ahead % mesh) / mesh @ reciprocal))  # u(k + G) = exp(−iGr) u(k)
            found[:, :, *place] = held[place].conj().T @ (wrapped[:, None] * held[tuple(ahead % mesh)])
        return found

    return neighbours(steps, steps / mesh @ reciprocal, overlap), projections


# 6. Descent on the unitary matrices: conjugate gradients, U ← U exp(t D) with D anti-Hermitian.


def matrices(array):
    """An array of bands × functions × mesh as a stack of matrices."""
    return np.moveaxis(array, (0, 1), (-2, -1))


def projected(projections):
    """The gauge nearest to the trial orbitals: U = A (A†A)^(−1/2), by Löwdin."""
    left, _, right = np.linalg.svd(matrices(projections), full_matrices=False)
    return np.moveaxis(left @ right, (-2, -1), (0, 1))


def moved(U, D, t):
    """U exp(t D) at every k."""
    values, vectors = np.linalg.eigh(1j * matrices(D))
    turn = (vectors * np.exp(-1j * t * values)[..., None, :]) @ np.conj(np.swapaxes(vectors, -1, -2))
    return np.moveaxis(matrices(U) @ turn, (-2, -1), (0, 1))


def tangent(U, G):
    """The gradient on the unitary matrices: the anti-Hermitian part of U† G."""
    product = np.conj(np.swapaxes(matrices(U), -1, -2)) @ matrices(G)
    return np.moveaxis((product - np.conj(np.swapaxes(product, -1, -2))) / 2, (-2, -1), (0, 1))


def inner(A, B):
    """The real inner product of two directions."""
    return float(np.sum((np.conj(A) * B).real))


def step_length(both, U, D, value, slope, trial):
    """Where the slope along D vanishes, by the secant through the slopes here and at a trial; less if Ω would rise."""
    ahead = moved(U, D, trial)
    bend = inner(tangent(ahead, both(ahead)[1]), D) - slope
    t = min(-slope * trial / bend, 10 * trial) if bend > 0 else 2 * trial
    while both(moved(U, D, t))[0] > value + 1e-12 * abs(value):
        t /= 4
    return t


def minimise(both, U, steps=200, tolerance=1e-8):
    """Conjugate gradients (Polak and Ribière) from the gauge U, a line of progress per step; the spread and U."""
    print(f"{'step':>5}  {'spread':>14}  {'|gradient|':>10}  {'length':>8}")
    D, before, t = None, None, 1.0
    for step in range(steps):
        value, G = both(U)
        A = tangent(U, G)
        size = np.sqrt(inner(A, A))
        print(f"{step:>5}  {value:>14.9f}  {size:>10.2e}  {t:>8.2g}")
        if size < tolerance:
            break
        turn = 0.0 if before is None else max(inner(A, A - before) / inner(before, before), 0.0)
        D = -A if D is None else -A + turn * D
        if inner(A, D) >= 0:
            D = -A
        t = step_length(both, U, D, value, inner(A, D), t)
        U, before = moved(U, D, t), A
    return float(both(U)[0]), U


def invariant_part(near, points):
    """Ω_I = (1/Nk) Σ_{k,b} w_b (n − Σ |S|²): the part of the spread that no gauge changes."""
    kept = np.sum(abs(near.overlaps) ** 2, axis=(0, 1))
    return float(np.sum(near.weights * (len(near.overlaps) * (1 - near.away) - kept)) / points)


def main(seed=None):
    """Read or build the problem, derive the gradient, and minimise; returns the spreads (start, end, Ω_I)."""
    if seed is None:
        near, projections = model()
    else:
        reciprocal, mesh, points = read_win(Path(f"{seed}.win"))
        near = read_mmn(Path(f"{seed}.mmn"), reciprocal, mesh, points)
        projections = read_amn(Path(f"{seed}.amn"), mesh, points)
    if projections.shape[0] != projections.shape[1]:
        raise SystemExit("as many projections as bands are needed: entangled bands are not treated here")

    print("The part of the spread that is |ρ|², on one cyclic axis, and its gradient: one term, ρ shared")
    print(cd.value_and_grad(localisation, wrt="U"))
    print("\nThe whole spread and its gradient")
    derived = cd.value_and_grad(spread, wrt="U")
    print(derived)

    points = int(np.prod(projections.shape[2:]))
    fixed = {"S": near.overlaps, "w": near.weights, "v": near.vectors, "away": near.away, "h": 1 / points}
    both, start = derived.partial(**fixed), projected(projections)
    first = spread.partial(**fixed)(start)
    invariant = invariant_part(near, points)
    print(f"\n{points} k points, {int(np.sum(near.away == 0))} neighbours each, {projections.shape[1]} functions")
    print(f"spread in the projected gauge {first:.9f} Å², of which no gauge changes {invariant:.9f} Å²\n")
    last, U = minimise(both, start)
    assert np.allclose(np.conj(np.swapaxes(matrices(U), -1, -2)) @ matrices(U), np.eye(U.shape[1]))
    assert invariant <= last <= first
    print(f"\nspread of the maximally localised functions {last:.9f} Å² = Ω_I + {last - invariant:.9f} Å²")
    return first, last, invariant


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Maximally localised Wannier functions from Wannier90 files.")
    parser.add_argument("seed", nargs="?", help="the path of the .win, .mmn and .amn files without their ending")
    main(parser.parse_args().seed)
