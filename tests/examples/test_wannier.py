"""Maximally localised Wannier functions: cyclic k, symmetric b, and the sharing of ρ (theory.md §3, result 6)."""

import importlib.util
import warnings
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir import interpreter as reference
from combdiff.testing.arrays import random_arrays
from combdiff.testing.differences import finite_difference_gradient

grad, value_and_grad, hvp = cache(cd.grad), cache(cd.value_and_grad), cache(cd.hvp)
K, B = cd.Cyclic("K"), cd.Symmetric("B")
Gauge = cd.Space("N", "n", K, dtype=complex)
Overlaps = cd.Space("N", "N", K, K, dtype=complex, symmetry=["S[p,q,k,l] = conj(S[q,p,l,k])"])
Weights = cd.Space(B, symmetry=["w[b] = w[-b]"])


@cd.program
def spread(w: Weights, S: Overlaps, U: Gauge):
    rho = cd.tensor(lambda n, b: cd.sum(lambda k, p, q: cd.conj(U[p, n, k]) * S[p, q, k, k + b] * U[q, n, k + b]), b=B)
    return cd.sum(lambda n, b: w[b] * cd.conj(rho[n, b]) * rho[n, b])


@cd.program
def wrapped(v: cd.Space(K, dtype=complex), w: Weights, U: cd.Space("n", K)):
    return cd.real(cd.sum(lambda k, j, b, m: U[m, 2 * k + 2 * j + 1] * U[m, k - j + 1] * v[-k] * w[b], k=K, j=K))


def by_hand(w: Any, S: Any, U: Any) -> float:
    """The spread with loops over k and b."""
    bound, mesh = len(w) // 2, U.shape[2]
    total = 0.0
    for b in range(-bound, bound + 1):
        ahead = [(k + b) % mesh for k in range(mesh)]
        rho = sum(np.einsum("pn,pq,qn->n", U[:, :, k].conj(), S[:, :, k, m], U[:, :, m]) for k, m in enumerate(ahead))
        total += w[b + bound] * float(np.sum(abs(rho) ** 2))
    return total


def close(found: Any, expected: Any, tolerance: float = 1e-6) -> bool:
    """Whether two arrays agree relative to the size of the second."""
    return bool(np.max(abs(found - expected)) <= tolerance * max(1.0, np.max(abs(expected))))


@pytest.mark.thorough
@pytest.mark.parametrize(("mesh", "bound"), list(product((1, 2, 3, 4), (0, 1, 2, 5))))
def test_gradient_and_hessian_on_every_small_mesh(mesh: int, bound: int) -> None:
    rng = np.random.default_rng(10 * mesh + bound)
    arrays = random_arrays(spread.parameters, rng, {"N": 2, "n": 2, "K": mesh, "B": bound})
    w, S, U = arrays["w"], arrays["S"], arrays["U"]
    expected = finite_difference_gradient(by_hand, arrays, "U")
    for simplify in (True, False):
        value, gradient = value_and_grad(spread, wrt="U", simplify=simplify)(w, S, U)
        assert close(value, by_hand(w, S, U))
        assert close(gradient, expected)
    alone = grad(spread, wrt="U")
    assert close(alone(w, S, U), expected)
    V = rng.normal(size=U.shape) + 1j * rng.normal(size=U.shape)
    difference = (alone(w, S, U + 1e-5 * V) - alone(w, S, U - 1e-5 * V)) / 2e-5
    assert close(hvp(spread, wrt="U")(w, S, U, V), difference)


@pytest.mark.thorough
@pytest.mark.parametrize(("mesh", "bound"), [(1, 1), (2, 3), (3, 1)])
def test_gradient_means_the_same_to_the_reference(mesh: int, bound: int) -> None:
    sizes = {"N": 1, "n": 2, "K": mesh, "B": bound}
    arrays = random_arrays(spread.parameters, np.random.default_rng(mesh), sizes)
    for simplify in (True, False):
        both = value_and_grad(spread, wrt="U", simplify=simplify)
        meant = reference.evaluate(both.term.body, {p: arrays[p.name] for p in both.parameters}, sizes)
        found = both(**arrays)
        assert close(found[0], meant[0])
        assert close(found[1], meant[1])


@pytest.mark.parametrize(("mesh", "bound"), [(1, 1), (2, 1), (3, 2), (5, 1)])
def test_indices_that_shift_one_another_are_not_renamed_together(mesh: int, bound: int) -> None:
    arrays = random_arrays(wrapped.parameters, np.random.default_rng(mesh), {"n": 2, "K": mesh, "B": bound})
    expected = finite_difference_gradient(wrapped, arrays, "U")
    assert close(grad(wrapped, wrt="U", simplify=False)(**arrays), expected)
    assert close(grad(wrapped, wrt="U")(**arrays), expected)
    assert close(cd.simplify(wrapped)(**arrays), wrapped(**arrays))


Cell = (cd.Cyclic("K1"), cd.Cyclic("K2"), cd.Cyclic("K3"))
Around = (cd.Symmetric("B1"), cd.Symmetric("B2"), cd.Symmetric("B3"))


@cd.program
def whole_spread(
    S: cd.Space("N", "N", *Cell, *Around, dtype=complex),
    w: cd.Space(*Around, symmetry=["w[a,b,c] = w[-a,-b,-c]"]),
    v: cd.Space(3, *Around, symmetry=["v[x,a,b,c] = -v[x,-a,-b,-c]"]),
    h: cd.Space(),
    U: cd.Space("N", "n", *Cell, dtype=complex),
):
    """The spread of Marzari and Vanderbilt on a mesh in three dimensions; h is 1/Nk."""
    M = cd.tensor(
        lambda n, i, j, k, a, b, c: cd.sum(
            lambda p, q: cd.conj(U[p, n, i, j, k]) * S[p, q, i, j, k, a, b, c] * U[q, n, i + a, j + b, k + c]
        )
    )
    phase = np.log(M).imag
    r = cd.tensor(
        lambda n, x: -h * cd.sum(lambda i, j, k, a, b, c: w[a, b, c] * v[x, a, b, c] * phase[n, i, j, k, a, b, c])
    )
    local = 1 - (cd.conj(M) * M).real + phase**2
    return h * cd.sum(lambda n, i, j, k, a, b, c: w[a, b, c] * local[n, i, j, k, a, b, c]) - (r * r).sum()


@pytest.mark.thorough
def test_whole_spread_on_three_cyclic_axes_within_the_default_budget() -> None:
    sizes = {"N": 2, "n": 2, "K1": 1, "K2": 2, "K3": 3, "B1": 1, "B2": 0, "B3": 1}
    arrays = random_arrays(whole_spread.parameters, np.random.default_rng(0), sizes)
    expected = finite_difference_gradient(whole_spread, arrays, "U")
    with warnings.catch_warnings():
        warnings.simplefilter("error", cd.BudgetWarning)
        both = cd.value_and_grad(whole_spread, wrt="U")
    value, gradient = both(**arrays)
    assert isinstance(value, float)
    assert close(value, whole_spread(**arrays))
    assert close(gradient, expected)
    assert close(cd.grad(whole_spread, wrt="U", simplify=False)(**arrays), expected)


# --- the example ---------------------------------------------------------------------------------------------------

DATA = next(
    (folder for up in Path(__file__).resolve().parents if (folder := up / "shared" / "data" / "diamond").is_dir()), None
)


def example() -> Any:
    """The module examples/wannier.py."""
    path = Path(__file__).resolve().parents[2] / "examples" / "wannier.py"
    spec = importlib.util.spec_from_file_location("wannier_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.thorough
@pytest.mark.skipif(DATA is None, reason="the Wannier90 files of diamond are not beside the checkout")
def test_diamond_reaches_the_spread_of_wannier90() -> None:
    assert DATA is not None
    first, last, invariant = example().main(str(DATA / "diamond"))
    assert first == pytest.approx(2.3255183666, abs=1e-8)
    assert invariant == pytest.approx(1.954619860, abs=1e-8)
    assert last == pytest.approx(2.320904915, abs=1e-8)


def test_weights_of_cubic_cells_are_those_of_their_shells() -> None:
    page = example()
    simple = 2 * np.pi / 3 * np.eye(3)
    faces = 2 * np.pi / 3 * np.array([[-1.0, 1, 1], [1, -1, 1], [1, 1, -1]])
    skew = np.array([[1.0, 0.1, 0], [0, 1.3, 0.2], [0.3, 0, 0.8]])
    for reciprocal, mesh, count in ((simple, (4, 4, 4), 6), (faces, (3, 3, 3), 8), (skew, (2, 3, 4), None)):
        steps = page.search_shells(reciprocal, np.array(mesh))
        vectors = steps / mesh @ reciprocal
        weights = page.shell_weights(vectors)
        assert count in (None, len(steps))
        assert np.allclose(np.einsum("b,bi,bj->ij", weights, vectors, vectors), np.eye(3))


@pytest.mark.thorough
def test_the_gauge_moves_on_the_unitary_matrices_against_the_gradient() -> None:
    page = example()
    near, projections = page.model()
    both = cd.value_and_grad(page.spread, wrt="U").partial(
        S=near.overlaps, w=near.weights, v=near.vectors, away=near.away, h=1 / 32
    )
    U = page.projected(projections)
    value, G = both(U)
    A = page.tangent(U, G)
    ahead, behind = (both(page.moved(U, A, t))[0] for t in (1e-4, -1e-4))
    assert (ahead - behind) / 2e-4 == pytest.approx(page.inner(A, A), rel=1e-6)
    assert value == pytest.approx(page.spread(near.overlaps, near.weights, near.vectors, near.away, 1 / 32, U))
