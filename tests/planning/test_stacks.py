"""Products of an array and a vector that are read where they lie, as stacks of matrices."""

from __future__ import annotations

import tracemalloc
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from backends import TORCH
from known_programs import exchange_slope

import combdiff as cd
from combdiff.planning.operations.contraction import Contract, stack_of, stackable

RNG = np.random.default_rng(5)
LETTERS = "abcd"


def integrals(N: int) -> Any:
    J = RNG.normal(size=(N,) * 4) + 1j * RNG.normal(size=(N,) * 4)
    J = J + J.transpose(2, 3, 0, 1)
    return np.ascontiguousarray(J + J.transpose(1, 0, 3, 2).conj())


def product(equation: str) -> cd.Program:
    left, right = equation.split("->")[0].split(",")

    @cd.program
    def f(x: cd.Space(*left), y: cd.Space(*right)):
        return cd.einsum(equation, x, y)

    return f


def equations() -> list[str]:
    """An array of four axes with a vector or a matrix that is summed over or stays, in every order."""
    found = []
    for summed in ("ad", "bd", "ac", "bc", "d", "abd"):
        out = "".join(letter for letter in LETTERS if letter not in summed)
        for kept in ("", out[-1:]):
            found += [f"{LETTERS},{summed[::-1]}{kept}->{out}", f"{kept}{summed},{LETTERS}->{out[::-1]}"]
    return found


@pytest.mark.sample(18)
@pytest.mark.parametrize("equation", equations())
@pytest.mark.parametrize("backend", ["numpy", "jax", TORCH])
def test_products_in_every_order(equation: str, backend: str) -> None:
    f = product(equation)
    sizes = dict(zip(LETTERS, (3, 5, 12, 13), strict=True))
    arrays = [RNG.normal(size=[sizes[a] for a in part]) for part in equation.split("->")[0].split(",")]
    found = f.compile(backend=backend)(*arrays)
    bound = 1e-4 if backend == "jax" else 1e-9  # float32 unless JAX is told otherwise
    np.testing.assert_allclose(np.asarray(found), np.einsum(equation, *arrays), rtol=bound, atol=bound)


@pytest.mark.parametrize("sizes", [(0, 0), (1, 1), (4, 2), (12, 3)])
def test_exchange_and_its_gradient(sizes: tuple[int, int]) -> None:
    J, C = integrals(sizes[0]), RNG.normal(size=sizes) + 1j * RNG.normal(size=sizes)
    value, gradient = exchange_slope(J, C)
    F = np.einsum("pqrs,qr->ps", J, C @ C.conj().T)
    np.testing.assert_allclose(value, np.vdot(C, F @ C).real, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(gradient, 4 * F @ C, rtol=1e-9, atol=1e-9)


def test_integrals_are_not_copied() -> None:
    J, C = integrals(24), RNG.normal(size=(24, 6)) + 0j
    exchange_slope(J, C)
    tracemalloc.start()
    exchange_slope(J, C)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    table = exchange_slope.cost(N=24, Ne=6)
    assert most <= table.peak_bytes + 4096 < J.nbytes / 4
    assert [row.operation for row in table.rows].count("stacked matrix-vector") == 1
    assert exchange_slope.cost(N=4, Ne=2).rows[2].operation == "matrix-vector"  # too small to be worth it


def test_symmetry_still_gives_the_product_without_copies() -> None:
    for order in permutations("rs"):
        f = product(f"pqrs,{''.join(order)}->pq")
        assert "stacked" not in str(f.cost(p=12, q=12, r=12, s=12)) or order == ("s", "r")


def test_mixed_types_and_layouts() -> None:
    J, D = RNG.normal(size=(6, 12, 6, 12)), RNG.normal(size=(6, 12))
    f = product("abcd,ad->bc")
    expected = np.einsum("abcd,ad->bc", J, D)
    for one in (J, np.asfortranarray(J), J[::-1][::-1], J.transpose(2, 1, 0, 3).copy().transpose(2, 1, 0, 3)):
        np.testing.assert_allclose(f(one, D), expected)
    assert f(J.astype("f4"), D.astype("f4")).dtype == np.float32
    np.testing.assert_allclose(f(J.astype("f4"), D), expected, rtol=1e-4)

    @cd.program
    def mixed(J: cd.Space("a", "b", "c", "d"), D: cd.Space("a", "d", dtype=complex)):
        return cd.einsum("abcd,ad->bc", J, D)

    assert "stacked" not in str(mixed.cost(a=6, b=12, c=6, d=12))
    np.testing.assert_allclose(mixed(J, D + 1j), np.einsum("abcd,ad->bc", J, D + 1j))


def test_what_is_no_stack() -> None:
    extents = dict.fromkeys(range(5), 20)
    assert stack_of(Contract((0, 1), (1,), (0,))) is None  # a matrix is read as it lies
    assert stack_of(Contract((0, 1, 2, 3), (2, 3), (0, 1))) is None
    assert stack_of(Contract((0, 1, 2, 3), (0, 1), (2, 3))) is None
    assert stack_of(Contract((0, 1, 2, 3), (3, 4), (0, 1, 2, 4))) is None
    assert stackable(Contract((0, 1, 2, 3), (1, 3), (0, 2)), extents)
    assert not stackable(Contract((0, 1, 2, 3), (1, 3), (0, 2)), extents | {3: 2})
