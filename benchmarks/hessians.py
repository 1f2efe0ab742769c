"""Hessians of the three problems of Laue, Mitterreiter and Giesen, side by side in one process.

    python benchmarks/hessians.py [--quick] [--repeats N]

Each problem and size: the Hessian by combdiff, dense and compressed, against a floor written by hand in NumPy and,
where they are installed, jit(jax.hessian), jit(jacfwd(grad)) and torch.func.hessian, in float64. Every result is
compared with the floor before anything is timed. Repeats are interleaved; printed are medians and their ratios to the
floor.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import combdiff as cd

Array = np.ndarray[Any, Any]
LAYERS, FACTORS = 10, 5


@dataclass(frozen=True)
class Problem:
    """A Hessian at arrays: ways to compute it by name, and which of them give cores instead of the dense array."""

    name: str
    ways: dict[str, Callable[[], Any]]
    cores: tuple[str, ...]


# --- combdiff ------------------------------------------------------------------------------------------------------


@cd.program
def logistic(X: cd.Space("m", "n"), y: cd.Space("m"), w: cd.Space("n")):
    return np.log(1 + np.exp(-y * (X @ w))).sum()


@cd.program
def factorisation(T: cd.Space("n", "m"), U: cd.Space("n", "k"), V: cd.Space("m", "k")):
    R = T - U @ V.T
    return (R * R).sum()


@cd.program
def masked(T: cd.Space("n", "m"), M: cd.Space("n", "m"), U: cd.Space("n", "k"), V: cd.Space("m", "k")):
    R = M * (T - U @ V.T)
    return (R * R).sum()


Square, Vector = cd.Space("n", "n"), cd.Space("n")


def network_on(data: cd.Space) -> cd.Program:
    """The loss of ten layers with softmax cross-entropy, on one vector or on rows of a batch."""

    @cd.program
    def network(
        W1: Square,
        W2: Square,
        W3: Square,
        W4: Square,
        W5: Square,
        W6: Square,
        W7: Square,
        W8: Square,
        W9: Square,
        W10: Square,
        x: data,
        y: data,
    ):
        h = x
        for W in (W1, W2, W3, W4, W5, W6, W7, W8, W9):
            h = cd.relu(h @ W.T)
        z = h @ W10.T
        return cd.log(np.exp(z).sum(axis=-1)).sum() - (y * z).sum()

    return network


network = network_on(Vector)


# --- floors --------------------------------------------------------------------------------------------------------


def logistic_floor(X: Array, y: Array, w: Array) -> Array:
    s = 1 / (1 + np.exp(-y * (X @ w)))
    return X.T @ ((s * (1 - s))[:, None] * X)


def logistic_floor_by_syrk(X: Array, y: Array, w: Array) -> Array:
    s = 1 / (1 + np.exp(-y * (X @ w)))
    root = np.sqrt(s * (1 - s))[:, None] * X
    return root.T @ root


def spread(blocks: Array, n: int, k: int) -> Array:
    """Blocks on the diagonal of an array of zeros, n × k × n × k."""
    result = np.zeros((n, k, n, k))
    np.einsum("ijil->ijl", result)[...] = blocks
    return result


def factorisation_floor(T: Array, U: Array, V: Array) -> Array:
    return spread(2 * (V.T @ V), *U.shape)


def masked_core(T: Array, M: Array, U: Array, V: Array) -> Array:
    n, k = U.shape
    pairs = (V[:, :, None] * V[:, None, :]).reshape(len(V), k * k)
    return (2 * (M * M) @ pairs).reshape(n, k, k)


def masked_floor(T: Array, M: Array, U: Array, V: Array) -> Array:
    return spread(masked_core(T, M, U, V), *U.shape)


def network_core(*arrays: Array) -> tuple[Array, Array]:
    *weights, x, _ = arrays
    h, J = x, None
    for n, W in enumerate(weights):
        z = W @ h
        J = np.eye(len(z)) if n == 0 else W @ J
        if n < len(weights) - 1:
            J, h = (z > 0)[:, None] * J, np.maximum(z, 0)
    p = np.exp(z - z.max())
    p /= p.sum()
    Jp = p @ J
    return J.T @ (p[:, None] * J) - np.outer(Jp, Jp), x


def network_floor(*arrays: Array) -> Array:
    core, x = network_core(*arrays)
    return np.multiply.outer(core, np.outer(x, x)).transpose(0, 2, 1, 3)


# --- peers ---------------------------------------------------------------------------------------------------------


def jax_ways(loss: Callable[..., Any], at: int, arrays: tuple[Array, ...]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """jit(jax.hessian) and jit(jacfwd(grad)) of a loss written with jax.numpy as its first argument."""
    try:
        import jax
    except ImportError:
        return
    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    def of(*given: Any) -> Any:
        return loss(jnp, *given)

    device = [jnp.asarray(a) for a in arrays]
    for name, made in (("jax.hessian", jax.hessian), ("jacfwd(grad)", lambda f, n: jax.jacfwd(jax.grad(f, n), n))):
        jitted = jax.jit(made(of, at))
        yield name, lambda jitted=jitted: jitted(*device).block_until_ready()


def torch_ways(loss: Callable[..., Any], at: int, arrays: tuple[Array, ...]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """torch.func.hessian of a loss written with torch as its first argument."""
    try:
        import torch
    except ImportError:
        return
    tensors = [torch.from_numpy(np.asarray(a)) for a in arrays]
    function = torch.func.hessian(lambda *given: loss(torch, *given), at)
    yield "torch.func", lambda: function(*tensors)


def logistic_loss(xp: Any, X: Any, y: Any, w: Any) -> Any:
    return xp.log(1 + xp.exp(-y * (X @ w))).sum()


def factorisation_loss(xp: Any, T: Any, U: Any, V: Any) -> Any:
    return ((T - U @ V.T) ** 2).sum()


def masked_loss(xp: Any, T: Any, M: Any, U: Any, V: Any) -> Any:
    return ((M * (T - U @ V.T)) ** 2).sum()


def network_loss(xp: Any, *arrays: Any) -> Any:
    *weights, x, y = arrays
    h = x
    for W in weights[:-1]:
        z = W @ h
        h = z * (z > 0)
    z = weights[-1] @ h
    return xp.log(xp.exp(z).sum()) - (y * z).sum()


# --- the problems --------------------------------------------------------------------------------------------------


def problem(
    name: str, f: cd.Program, wrt: str, loss: Callable[..., Any], arrays: tuple[Array, ...], peers: bool, **floors: Any
) -> Problem:
    """All ways to one Hessian; `floors` are functions of the arrays, those named *_core of the compressed form."""
    at = [p.name for p in f.parameters].index(wrt)
    start = time.perf_counter()
    H = cd.hessian(f, wrt)
    compressed = H.compressed()
    print(f"\n{name}: derived in {time.perf_counter() - start:.2f} s, {compressed.structure}")
    ways: dict[str, Callable[[], Any]] = {label: (lambda g=g: g(*arrays)) for label, g in floors.items()}
    ways["combdiff"] = lambda: H(*arrays)
    cores = tuple(label for label in floors if label.endswith("core"))
    if cores:
        ways["combdiff compressed"] = lambda: compressed(*arrays)
        cores += ("combdiff compressed",)
    if peers:
        ways.update(jax_ways(loss, at, arrays))
        ways.update(torch_ways(loss, at, arrays))
    return Problem(name, ways, cores)


def problems(quick: bool) -> Iterator[Problem]:
    """Every problem at every size; the peers' dense arrays and times bound the sizes."""
    rng = np.random.default_rng(0)
    for n in (100,) if quick else (100, 300, 1000):
        X, y, w = rng.normal(size=(2 * n, n)), np.sign(rng.normal(size=2 * n)), rng.normal(size=n) / n
        floors = {"floor": logistic_floor, "floor, syrk": logistic_floor_by_syrk}
        yield problem(f"logistic regression, n = {n}", logistic, "w", logistic_loss, (X, y, w), n < 1000, **floors)
    for n in (50,) if quick else (100, 200):
        T, U, V = rng.normal(size=(n, n)), rng.normal(size=(n, FACTORS)), rng.normal(size=(n, FACTORS))
        floors = {"floor": factorisation_floor, "core": lambda T, U, V: 2 * (V.T @ V)}
        arrays: tuple[Array, ...] = (T, U, V)
        yield problem(f"factorisation, n = {n}", factorisation, "U", factorisation_loss, arrays, n <= 100, **floors)
    for n in (50,) if quick else (100, 200):
        T, U, V = rng.normal(size=(n, n)), rng.normal(size=(n, FACTORS)), rng.normal(size=(n, FACTORS))
        arrays = (T, (rng.normal(size=(n, n)) > 0) * 1.0, U, V)
        floors = {"floor": masked_floor, "core": masked_core}
        yield problem(f"masked factorisation, n = {n}", masked, "U", masked_loss, arrays, n <= 100, **floors)
    for n in (12,) if quick else (24,):
        weights = [rng.normal(size=(n, n)) / np.sqrt(n / 2) for _ in range(LAYERS)]
        arrays = (*weights, rng.normal(size=n), np.eye(n)[0])
        floors = {"floor": network_floor, "core": network_core}
        yield problem(f"ten-layer network, n = {n}", network, "W1", network_loss, arrays, True, **floors)


# --- measuring -----------------------------------------------------------------------------------------------------


def check(problem: Problem) -> None:
    """Every dense result against the floor, every core against the core of the floor."""
    for label, way in problem.ways.items():
        expected = problem.ways["core" if label in problem.cores else "floor"]()
        expected = expected if isinstance(expected, tuple) else (expected,)
        found = way()
        found = found if isinstance(found, tuple) else (found,)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-8, atol=1e-10, err_msg=label)


def medians(problem: Problem, repeats: int) -> dict[str, float]:
    """The median time of each way, one after the other in every repeat."""
    times: dict[str, list[float]] = {label: [] for label in problem.ways}
    for _ in range(repeats):
        for label, way in problem.ways.items():
            start = time.perf_counter()
            way()
            times[label].append(time.perf_counter() - start)
    return {label: statistics.median(found) for label, found in times.items()}


def newton_by_hand(g: Array, T: Array, U: Array, V: Array) -> Array:
    return np.linalg.solve(2 * (V.T @ V), g.T).T


def newton(n: int, k: int, repeats: int) -> None:
    """A Newton step on matrix factorisation: through the structure, by hand, and with the dense matrix (once)."""
    rng = np.random.default_rng(1)
    T, U, V = rng.normal(size=(n, n)), rng.normal(size=(n, k)), rng.normal(size=(n, k))
    H, gradient = cd.hessian(factorisation, "U"), cd.grad(factorisation, "U")(T, U, V)
    step = H.solve(-gradient, T, U, V)
    np.testing.assert_allclose(cd.grad(factorisation, "U")(T, U + step, V), 0, atol=1e-6)
    ways = {
        "floor": lambda: newton_by_hand(-gradient, T, U, V),
        "combdiff": lambda: H.solve(-gradient, T, U, V),
    }
    found = medians(Problem("newton", ways, ()), max(repeats, 21))
    start = time.perf_counter()
    dense = np.linalg.solve(H(T, U, V).reshape(n * k, n * k), -gradient.ravel())
    found["dense"] = time.perf_counter() - start
    np.testing.assert_allclose(dense.reshape(n, k), step, rtol=1e-6, atol=1e-9)
    print(f"\nNewton step on factorisation, n = {n}, k = {k}")
    table(found)


def table(found: dict[str, float]) -> None:
    """Print times and their ratios to the floor."""
    for label, spent in found.items():
        print(f"  {label:<22}{spent * 1e3:>10.3f} ms{spent / found['floor']:>10.2f} × floor")


def main() -> None:
    """Print a table for every problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--repeats", type=int, default=11)
    options = parser.parse_args()
    for each in problems(options.quick):
        check(each)
        table(medians(each, options.repeats))
    newton(200 if options.quick else 1000, 10, options.repeats)


if __name__ == "__main__":
    main()
