"""Element-wise chains over large arrays, derived by combdiff and run on NumPy, beside others in one process.

- The gradient and the Hessian-vector product of a double-well energy with a periodic Laplacian, on 1000 × 1000 points.
- The Hessian-vector product of the squared residuals of a Lorenz-96 step, on 10⁶ points around a cycle.
- Value and gradient of the softmax cross-entropy of 10⁵ rows of 10.

Each as a multiple of the time of NumPy written by hand, whole arrays at a time; beside them `jax.jit`, where JAX is
installed, which fuses the chains and uses all cores. Of each the least time of alternating rounds counts, as other work
on the machine only adds; each result is checked. Run: OPENBLAS_NUM_THREADS=1 python benchmarks/chains.py [rounds]
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from affine import HAS_JAX, compare

import combdiff as cd

POINTS, SIDE, ROWS, CLASSES = 1_000_000, 1000, 100_000, 10
RNG = np.random.default_rng(0)


@cd.program
def wells(u: cd.Space(cd.Cyclic("n"), cd.Cyclic("m"))):
    return cd.sum(
        lambda i, j: (u[i + 1, j] - u[i, j]) ** 2 / 2 + (u[i, j + 1] - u[i, j]) ** 2 / 2 + (u[i, j] ** 2 - 1) ** 2 / 4
    )


@cd.program
def lorenz(u: cd.Space(cd.Cyclic("n"))):
    return cd.sum(lambda i: ((u[i + 1] - u[i - 2]) * u[i - 1] - u[i] + 8) ** 2)


@cd.program
def entropy(z: cd.Space("n", "k"), y: cd.Space("n", "k")):
    return cd.sum(lambda i: cd.log(cd.sum(lambda c: cd.exp(z[i, c]))) - cd.sum(lambda c: y[i, c] * z[i, c]), i="n")


def jitted(make: Callable[[Any, Any], Callable[..., Any]], *arrays: Any) -> dict[str, Callable[[], Any]]:
    """A function that `make` gives of jax and jax.numpy, compiled, at arrays; nothing where JAX is not installed."""
    if not HAS_JAX:
        return {}
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    compiled = jax.jit(make(jax, jnp))
    held = [jnp.asarray(array) for array in arrays]
    return {"jax": lambda: jax.block_until_ready(compiled(*held))}


def laplacian(u: Any) -> Any:
    """4 u less the four neighbours."""
    return 4 * u - np.roll(u, 1, 0) - np.roll(u, -1, 0) - np.roll(u, 1, 1) - np.roll(u, -1, 1)


def double_wells() -> None:
    """The gradient and the Hessian-vector product of the energy on a grid."""
    u, p = RNG.standard_normal((2, SIDE, SIDE))
    gradient, product = cd.grad(wells), cd.hvp(wells)

    def energy(jnp: Any) -> Callable[[Any], Any]:
        def f(u: Any) -> Any:
            bonds = (jnp.roll(u, -1, 0) - u) ** 2 + (jnp.roll(u, -1, 1) - u) ** 2
            return jnp.sum(bonds / 2 + (u**2 - 1) ** 2 / 4)

        return f

    functions = {"by hand": lambda: laplacian(u) + u * (u * u - 1), "combdiff": lambda: gradient(u)}
    functions |= jitted(lambda jax, jnp: jax.grad(energy(jnp)), u)
    compare("double wells, gradient              ", functions, "by hand")
    functions = {"by hand": lambda: laplacian(p) + p * (3 * u * u - 1), "combdiff": lambda: product(u, p)}
    functions |= jitted(lambda jax, jnp: lambda u, p: jax.jvp(jax.grad(energy(jnp)), (u,), (p,))[1], u, p)
    compare("double wells, Hessian-vector product", functions, "by hand")


def lorenz_steps() -> None:
    """The Hessian-vector product of the squared residuals."""
    u, p = RNG.standard_normal((2, POINTS))
    product = cd.hvp(lorenz)

    def by_hand() -> Any:
        before, across = np.roll(u, 1), np.roll(u, -1) - np.roll(u, 2)
        residual = 2 * (across * before - u + 8)
        moved, along = np.roll(p, 1), np.roll(p, -1) - np.roll(p, 2)
        change = 2 * (along * before + across * moved - p)
        outer = change * before + residual * moved
        return np.roll(outer, 1) - np.roll(outer, -2) + np.roll(change * across + residual * along, -1) - change

    def in_jax(jax: Any, jnp: Any) -> Callable[..., Any]:
        def f(u: Any) -> Any:
            return jnp.sum(((jnp.roll(u, -1) - jnp.roll(u, 2)) * jnp.roll(u, 1) - u + 8) ** 2)

        return lambda u, p: jax.jvp(jax.grad(f), (u,), (p,))[1]

    functions = {"by hand": by_hand, "combdiff": lambda: product(u, p)} | jitted(in_jax, u, p)
    compare("Lorenz-96, Hessian-vector product   ", functions, "by hand")


def cross_entropies() -> None:
    """The value and the gradient by the scores, in one array."""
    z, y = RNG.standard_normal((ROWS, CLASSES)), np.eye(CLASSES)[RNG.integers(0, CLASSES, ROWS)]
    both = cd.value_and_grad(entropy)

    def by_hand() -> Any:
        top = z.max(1, keepdims=True)
        terms = np.exp(z - top)
        sums = terms.sum(1, keepdims=True)
        value = np.sum(np.log(sums) + top) - np.vdot(y, z)
        terms /= sums
        terms -= y
        return np.append(terms, value)

    def in_jax(jax: Any, jnp: Any) -> Callable[..., Any]:
        f = jax.value_and_grad(lambda z, y: jnp.sum(jax.nn.logsumexp(z, 1)) - jnp.sum(y * z))

        def appended(z: Any, y: Any) -> Any:
            value, gradient = f(z, y)
            return jnp.append(gradient, value)

        return appended

    def derived() -> Any:
        value, gradient = both(z, y)
        return np.append(gradient, value)

    functions = {"by hand": by_hand, "combdiff": derived} | jitted(in_jax, z, y)
    compare("cross-entropy, value and gradient   ", functions, "by hand")


if __name__ == "__main__":
    double_wells()
    lorenz_steps()
    cross_entropies()
