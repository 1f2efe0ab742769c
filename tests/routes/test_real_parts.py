"""Real parts of products under Σ: what is real of a sum of products is taken once, of a product of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd


@cd.program
def misfit(  # type: ignore[no-untyped-def]
    x: cd.Space("n"),  # type: ignore[valid-type]
    W: cd.Space("m", "n", dtype=complex),  # type: ignore[valid-type]
    y: cd.Space("m", dtype=complex),  # type: ignore[valid-type]
):
    """The squared error of a complex linear model with real parameters."""
    return cd.sum(lambda i: cd.abs(cd.sum(lambda j: W[i, j] * x[j]) - y[i]) ** 2)


@cd.program
def overlaps(a: cd.Space("n", dtype=complex), b: cd.Space("n", dtype=complex), w: cd.Space("n")):  # type: ignore[no-untyped-def,valid-type]
    return cd.sum(lambda i: w[i] * cd.real(a[i] * b[i]) * cd.imag(a[i] * w[i]))


@cd.program
def weighted(A: cd.Space("m", "n"), a: cd.Space("n", dtype=complex), b: cd.Space("n", dtype=complex)):  # type: ignore[no-untyped-def,valid-type]
    return cd.tensor(lambda i: cd.sum(lambda j: A[i, j] * cd.real(a[j] * b[j])))


@cd.program
def filtered(x: cd.Space("n"), w: cd.Space(3, "o", dtype=complex)):  # type: ignore[no-untyped-def,valid-type]
    """A real signal filtered by complex windows."""
    return cd.tensor(
        lambda i, o: cd.sum(lambda k: cd.where((i + k >= 1) & (i + k <= x.shape[0]), x[i + k - 1] * w[k, o], 0)), i="n"
    )


@cd.program
def scattered(x: cd.Space("n", 3), q: cd.Space("m", 3), f: cd.Space("n"), F: cd.Space("m")):  # type: ignore[no-untyped-def,valid-type]
    """Intensities of scattering by atoms at x, against those that are measured."""
    waves = np.exp(1j * (q @ x.T))
    return cd.sum(lambda a: (cd.abs(cd.sum(lambda j: f[j] * waves[a, j])) ** 2 - F[a]) ** 2)


PROGRAMS = {"scattered": scattered, "misfit": misfit, "overlaps": overlaps, "weighted": weighted, "filtered": filtered}
SIZES = {"m": 4, "n": 6, "o": 2}


def arrays(f: cd.Program, rng: np.random.Generator) -> dict[str, Any]:
    found = {}
    for parameter in f.term.parameters:
        shape = [SIZES.get(axis.size, axis.size) for axis in parameter.type.axes]  # type: ignore[union-attr]
        found[parameter.name] = rng.normal(size=shape)
        if parameter.type.dtype is complex:  # type: ignore[union-attr]
            found[parameter.name] = found[parameter.name] + 1j * rng.normal(size=shape)
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_route_agrees(name: str) -> None:
    f = PROGRAMS[name]
    given = arrays(f, np.random.default_rng(3))
    cd.testing.check_routes(f, **given)
    cotangent = cd.pullback(f).parameters[-1].name
    cd.testing.check_routes(cd.pullback(f), **given, **{cotangent: np.full(np.shape(f(**given)), 0.7)})


def test_no_array_is_made_of_all_products() -> None:
    sizes = {"m": 1000, "n": 1000}
    assert cd.grad(misfit, "x").cost(**sizes).peak_bytes < 200_000
    assert cd.pullback(filtered, "x").cost(n=1000, o=3).peak_bytes < 400_000


def test_the_matrix_notation_is_that_of_books() -> None:
    assert cd.grad(misfit, "x").matrix() == "2·Re(W†·(W·x - y))"
    assert cd.grad(scattered, "x").matrix().splitlines()[-1].endswith("·q)")


def test_numbers_stand_before_real_and_imaginary_parts() -> None:
    hermitian = cd.Space("n", "n", dtype=complex, symmetry=["H[i,j] = conj(H[j,i])"])

    @cd.program
    def energy(t: cd.Space("n"), c: cd.Space("n", dtype=complex), H: hermitian):  # type: ignore[no-untyped-def,valid-type]
        state = c * np.exp(1j * t)
        return np.real(np.conj(state) @ (H @ state))

    assert str(cd.grad(energy, "t")) == "(t, c, H) ↦ d ↦ 2 Im(c[d]* exp(i t[d])* Σ_j H[d,j] c[j] exp(i t[j]))"


def test_a_short_product_beside_a_matrix_is_made_first() -> None:
    """Σ_j A[i,j] Re(a[j] b[j]) multiplies a real matrix, and no copy of it that is complex."""
    assert weighted.cost(m=1000, n=1000).peak_bytes < 200_000


@cd.program
def twice(x: cd.Space("n"), A: cd.Space("n", "n", dtype=complex), z: cd.Space("n", dtype=complex)):  # type: ignore[no-untyped-def,valid-type]
    """A real vector that goes two ways among complex numbers, and one among real ones."""
    return cd.sum(lambda i: cd.abs(A @ x - z)[i] ** 2 + cd.real(z[i] * cd.exp(1j * x[i])) + x[i] ** 2)


def test_the_real_part_is_taken_once_of_what_arrives_at_a_real_number() -> None:
    raw = cd.grad(twice, simplify=False)
    assert str(raw).rpartition("d ↦")[2].count("Re(") == 1
    given = arrays(twice, np.random.default_rng(3))
    assert cd.testing.check_routes(twice, **given) < 2e-5


def test_real_parts_are_added_to_one_real_part() -> None:
    @cd.program
    def f(A: cd.Space("n", "n", dtype=complex), b: cd.Space("n", dtype=complex), c: cd.Space("n", dtype=complex)):  # type: ignore[no-untyped-def,valid-type]
        return cd.real(A @ b) + 2 * cd.real(A @ c)

    assert str(cd.simplify(f)) == "(A, b, c) ↦ i ↦ Re(Σ_j A[i,j] (b[j] + 2 c[j]))"


def test_sums_inside_of_functions_have_their_factors_in_front() -> None:
    @cd.program
    def f(a: cd.Space("n"), b: cd.Space("n"), c: cd.Space("n")):  # type: ignore[no-untyped-def,valid-type]
        return cd.exp(a @ b + a @ c)

    assert str(cd.simplify(f)) == "(a, b, c) ↦ exp(Σ_i a[i] (b[i] + c[i]))"
