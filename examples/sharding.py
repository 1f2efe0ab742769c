"""The Hartree-Fock Coulomb energy and gradient with the integrals spread over eight devices (JAX).

J is by far the largest array. Cut along its first axis, every device holds an eighth of it and contracts that with the
small density matrix, without asking the others; only then what is small is exchanged. XLA finds out by itself what to
exchange, from the sharding of J and the plan of combdiff, which is one product with J for value and gradient together.

The devices are virtual, made of one processor: the program would be the same for eight GPUs.
"""

import os
import re
import sys

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

import combdiff as cd

try:
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
except ModuleNotFoundError:
    print("this example needs JAX: pip install 'combdiff[jax]'")
    sys.exit()

jax.config.update("jax_enable_x64", True)

Integrals = cd.Space(
    "N", "N", "N", "N", dtype=complex, symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = conj(J[q,p,s,r])"]
)
Orbitals = cd.Space("N", "Ne", dtype=complex)


@cd.program
def coulomb(J: Integrals, C: Orbitals):
    return cd.sum(lambda i, j, p, q, r, s: cd.conj(C[p, i]) * C[q, i] * cd.conj(C[r, j]) * C[s, j] * J[p, q, r, s])


N, Ne = 16, 3
rng = np.random.default_rng(0)
J = rng.normal(size=(N, N, N, N)) + 1j * rng.normal(size=(N, N, N, N))
J = J + J.transpose(2, 3, 0, 1)
J = J + J.transpose(1, 0, 3, 2).conj()
C = rng.normal(size=(N, Ne)) + 1j * rng.normal(size=(N, Ne))

energy_and_gradient = cd.value_and_grad(coulomb, wrt="C")
print(energy_and_gradient)
print("the one step that reads J:")
print(next(line for line in energy_and_gradient.source("jax").splitlines() if "(N, N) matrix-vector" in line).strip())

mesh = Mesh(np.array(jax.devices()), ("devices",))


def placed(array, *axes):
    """The array on all devices, cut along the axes that are given a name, the same everywhere along the others."""
    return jax.device_put(array, NamedSharding(mesh, PartitionSpec(*axes)))


def exchanged(compiled):
    """What the devices exchange: each operation of the compiled program, and the shape of its result."""
    operation = r"= \(?\w+\[([\d,]*)\].*? (all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute)\("
    found = re.findall(operation, compiled.as_text())
    return [(kind, tuple(map(int, filter(None, shape.split(","))))) for shape, kind in found]


value, gradient = energy_and_gradient(J, C)
for axis, cut in enumerate(("first", "second", "third")):
    sharded, whole = placed(J, *[None] * axis, "devices"), placed(C)
    program = jax.jit(energy_and_gradient).lower(sharded, whole).compile()
    for found, expected in zip(program(sharded, whole), (value, gradient), strict=True):
        assert np.allclose(np.asarray(found), expected, rtol=0, atol=1e-9 * np.abs(gradient).max())
    messages = exchanged(program)
    assert max(np.prod(shape) for _, shape in messages) <= N * N

    part = sharded.addressable_shards[0].data.shape
    print(f"\nJ cut along its {cut} axis: each of {len(mesh.devices)} devices holds {part} of {J.shape}")
    print("exchanged:", ", ".join(f"{kind} of {shape}" for kind, shape in messages))
print("\nvalue and gradient are those of NumPy, and J itself never leaves its devices")
