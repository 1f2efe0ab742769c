"""Layers of a ReLU network with softmax cross-entropy: the structure of its Hessian, against JAX, in seconds."""

import time
from typing import Any

import numpy as np
import pytest
from hessians import network, network_on

import combdiff as cd
from combdiff.hessians.newton import expanded

DEPTH, N, BATCH = 10, 3, 4
Rows = cd.Space("b", "n")


batch = network_on(Rows)


def loss(*arrays: Any) -> Any:
    """Both programs, with jax.numpy."""
    import jax.numpy as jnp

    *weights, x, y = arrays
    h = x
    for W in weights[:-1]:
        z = h @ W.T
        h = z * (z > 0)
    z = h @ weights[-1].T
    return jnp.log(jnp.exp(z).sum(axis=-1)).sum() - (y * z).sum()


def arrays_of(f: cd.Program) -> tuple[Any, ...]:
    rng = np.random.default_rng(9 if f is network else 3)
    weights = [rng.normal(size=(N, N)) / np.sqrt(N / 2) + 0.3 for _ in range(DEPTH)]
    if f is network:
        return (*weights, rng.normal(size=N), np.eye(N)[0])
    return (*weights, rng.normal(size=(BATCH, N)), np.eye(N)[[0, 1, 0, 2]])


# One input vector leaves a matrix and a vector, a batch tensors of order 3; the last layer is a δ beside a low rank.
STRUCTURES = {
    network: (
        "H[i,j,k,l] = core1[i,k] core2[j] core2[l]",
        "H[i,j,k,l] = core2[i] core1[j] core1[l] δ[i,k] + core3[i] core1[j] core2[k] core1[l]",
    ),
    batch: (
        "H[i,j,k,l] = Σ_{r} core1[i,k,r] core2[j,r] core2[l,r]",
        "H[i,j,k,l] = core1[i,j,l] δ[i,k] + Σ_{r} core4[i,r] core2[j,r] core4[k,r] core3[l,r]",
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("layer", [1, DEPTH])
@pytest.mark.parametrize("f", STRUCTURES, ids=lambda f: f.name)
def test_the_hessian_by_a_layer(f: cd.Program, layer: int) -> None:
    jax = pytest.importorskip("jax")
    start = time.process_time()
    H = cd.hessian(f, f"W{layer}", mode="cross-country")
    core, structure = H.compressed()
    assert time.process_time() - start < 20  # seconds; one to three on a quiet machine
    assert str(structure) == STRUCTURES[f][layer == DEPTH]

    arrays = arrays_of(f)
    cores = core(*arrays)
    assert all(np.ndim(each) <= 3 for each in cores)
    dense = H(*arrays)
    operator = H._operator(arrays)
    assert operator is not None
    np.testing.assert_allclose(expanded(operator.structure, operator.cores, operator.shape * 2), dense, atol=1e-12)
    with jax.enable_x64(True):
        expected = np.asarray(jax.jit(jax.hessian(loss, layer - 1))(*arrays))
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(dense, expected, atol=1e-11 * (1 + np.abs(expected).max()))
    v = np.random.default_rng(layer).normal(size=(N, N))
    np.testing.assert_allclose(H.matvec(v, *arrays), np.tensordot(dense, v, 2), atol=1e-10 * (1 + np.abs(dense).max()))
    np.testing.assert_allclose(H.diag(*arrays), np.einsum("ijij->ij", dense), atol=1e-11 * (1 + np.abs(dense).max()))
