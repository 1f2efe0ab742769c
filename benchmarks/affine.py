"""Convolution, strided pairs and a stencil, derived by combdiff and run on NumPy, beside others in one process.

- `Σ_k x[b, i + k]·w[k]`, batch 32, length 4096, widths 8 and 64: the value and both gradients, each as a multiple
  of the time of `np.einsum` on a sliding window. Beside them jax.lax and torch where they are installed.
- `sin(x[2i]·x[2i + 1])` with 4·10⁶ outputs: the gradient as a multiple of the time of one written by hand.
- The Hessian-vector product of a periodic stencil energy on 10⁶ points, as a multiple of jax's with rolls.

Of each the median time counts, over three calls in a row in alternating rounds, so that few pay for the caches and
sleeping threads that the one before left. Each result is checked.
Run: python benchmarks/affine.py [rounds]
"""

import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import combdiff as cd

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # or torch's idle threads keep the cores from all others
BATCH, LENGTH, OUTPUTS, POINTS = 32, 4096, 4_000_000, 1_000_000
HAS_JAX, HAS_TORCH = (importlib.util.find_spec(name) is not None for name in ("jax", "torch"))


@cd.program
def convolution(x: cd.Space("B", "n"), w: cd.Space("k"), v: cd.Space("B", "m")):
    return cd.sum(lambda b, i, k: v[b, i] * x[b, i + k] * w[k])


@cd.program
def pairs(x: cd.Space("n"), v: cd.Space("m")):
    return cd.sum(lambda i: v[i] * cd.sin(x[2 * i] * x[2 * i + 1]))


@cd.program
def stencil(u: cd.Space(cd.Cyclic("n"))):
    return cd.sum(lambda i: (u[i + 1] - 2 * u[i] + u[i - 1]) ** 2 + cd.sin(u[i]) * u[i + 1])


def rounds() -> int:
    """How often each function runs."""
    return int(sys.argv[1]) if len(sys.argv) > 1 else 15


def compare(title: str, functions: dict[str, Callable[[], Any]], base: str) -> None:
    """Print the median time of each function as a multiple of that of `base`, after checking that results agree."""
    expected = np.asarray(functions[base]())
    times: dict[str, list[float]] = {name: [] for name in functions}
    for name, function in functions.items():
        np.testing.assert_allclose(np.asarray(function()), expected, rtol=1e-8, atol=1e-8, err_msg=name)
    for _ in range(rounds()):
        for name, function in functions.items():
            for _ in range(3):
                start = time.perf_counter()
                function()
                times[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in times.items()}
    shown = "   ".join(f"{name} {value / medians[base]:.2f}" for name, value in medians.items())
    print(f"{title}: {shown}   ({base} {medians[base] * 1e3:.2f} ms)")


def convolutions(width: int) -> None:
    """The value and both gradients at one width."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((BATCH, LENGTH)), rng.standard_normal(width)
    v = rng.standard_normal((BATCH, LENGTH - width + 1))
    windows, padded = sliding_window_view(x, width, 1), np.pad(v, [(0, 0), (width - 1, width - 1)])
    gradients = {n: cd.grad(convolution, wrt=n) for n in ("x", "w", "v")}
    value: dict[str, Callable[[], Any]] = {
        "einsum": lambda: np.einsum("bik,k->bi", windows, w),
        "combdiff": lambda: gradients["v"](x, w, v),
    }
    by_x: dict[str, Callable[[], Any]] = {
        "einsum": lambda: np.einsum("bik,k->bi", sliding_window_view(padded, width, 1), w[::-1]),
        "combdiff": lambda: gradients["x"](x, w, v),
    }
    by_w: dict[str, Callable[[], Any]] = {
        "einsum": lambda: np.einsum("bik,bi->k", windows, v),
        "combdiff": lambda: gradients["w"](x, w, v),
    }
    if HAS_JAX:
        _add_jax_convolution(value, by_x, by_w, x, w, v)
    if HAS_TORCH:
        _add_torch_convolution(value, by_x, by_w, x, w, v)
    compare(f"convolution, width {width:>2}, value        ", value, "einsum")
    compare(f"convolution, width {width:>2}, gradient by x", by_x, "einsum")
    compare(f"convolution, width {width:>2}, gradient by w", by_w, "einsum")


def _add_jax_convolution(value: Any, by_x: Any, by_w: Any, x: Any, w: Any, v: Any) -> None:
    import jax

    jax.config.update("jax_enable_x64", True)

    def f(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x[:, None, :], w[None, None, :], (1,), "VALID")[:, 0]

    arrays = jax.numpy.asarray(x), jax.numpy.asarray(w)
    forward = jax.jit(f)
    back = [jax.jit(lambda x, w, v, n=n: jax.vjp(f, x, w)[1](v)[n]) for n in (0, 1)]
    value["jax.lax"] = lambda: forward(*arrays).block_until_ready()
    by_x["jax.lax"] = lambda: back[0](*arrays, v).block_until_ready()
    by_w["jax.lax"] = lambda: back[1](*arrays, v).block_until_ready()


def _add_torch_convolution(value: Any, by_x: Any, by_w: Any, x: Any, w: Any, v: Any) -> None:
    import torch

    tx, tw, tv = (torch.from_numpy(array) for array in (x, w, v))
    f = torch.nn.functional.conv1d
    value["torch"] = lambda: f(tx[:, None], tw[None, None])[:, 0]
    by_x["torch"] = lambda: torch.nn.grad.conv1d_input((*x.shape[:1], 1, x.shape[1]), tw[None, None], tv[:, None])[:, 0]
    by_w["torch"] = lambda: torch.nn.grad.conv1d_weight(tx[:, None], (1, 1, len(w)), tv[:, None])[0, 0]


def strided_pairs() -> None:
    """The gradient of Σ v[i] sin(x[2i] x[2i + 1])."""
    rng = np.random.default_rng(1)
    x, v = rng.standard_normal(2 * OUTPUTS), rng.standard_normal(OUTPUTS)
    gradient = cd.grad(pairs, wrt="x")

    def by_hand() -> Any:
        even, odd = x[::2], x[1::2]
        common = v * np.cos(even * odd)
        result = np.empty_like(x)
        np.multiply(common, odd, out=result[::2])
        np.multiply(common, even, out=result[1::2])
        return result

    compare("pairs, gradient", {"by hand": by_hand, "combdiff": lambda: gradient(x, v)}, "by hand")


def stencils() -> None:
    """The Hessian-vector product of a periodic stencil."""
    rng = np.random.default_rng(2)
    u, p = rng.standard_normal((2, POINTS))
    product = cd.hvp(stencil)

    def by_hand() -> Any:
        def laplacian(a: Any) -> Any:
            return np.roll(a, -1) - 2 * a + np.roll(a, 1)

        mixed = np.cos(u) * np.roll(p, -1) + np.roll(np.cos(u) * p, 1)
        return 2 * laplacian(laplacian(p)) - np.sin(u) * np.roll(u, -1) * p + mixed

    functions: dict[str, Callable[[], Any]] = {"by hand": by_hand, "combdiff": lambda: product(u, p)}
    if HAS_JAX:
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)

        def energy(u: Any) -> Any:
            curved = jnp.roll(u, -1) - 2 * u + jnp.roll(u, 1)
            return jnp.sum(curved**2 + jnp.sin(u) * jnp.roll(u, -1))

        other = jax.jit(lambda u, p: jax.jvp(jax.grad(energy), (u,), (p,))[1])
        arrays = jnp.asarray(u), jnp.asarray(p)
        functions["jax"] = lambda: other(*arrays).block_until_ready()
    compare("stencil, Hessian-vector product", functions, "jax" if HAS_JAX else "by hand")


if __name__ == "__main__":
    for size in (8, 64):
        convolutions(size)
    strided_pairs()
    stencils()
