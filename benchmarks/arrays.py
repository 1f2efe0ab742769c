"""What NumPy's users write, as they write it: value and gradient of whole-array programs, beside jax.jit.

    python benchmarks/arrays.py [NAME …] [--repeats N] [--small]

Each program is one function of arrays that is given NumPy, or jax.numpy, and its special functions: nothing in it was
written for combdiff or for JAX. combdiff's value and gradient, on NumPy and under jax.jit, are compared with JAX's (64
bits, 1e-8 of the largest number) before anything is timed; then calls alternate in one process with one thread; printed
are medians in milliseconds and our times as multiples of JAX's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
import scipy.special as sp
import side_by_side

import combdiff as cd

R = np.random.default_rng
Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A program of a user: `f(np, sp, **arrays)`, differentiated by `wrt`; `inputs` makes its arrays for sizes.

    The axes of `spaces` are names of sizes, or numbers where the program says them.
    """

    f: Callable[..., Any]
    inputs: Callable[..., Arrays]
    spaces: Callable[..., Mapping[str, cd.Space]]
    wrt: tuple[str, ...]
    small: Mapping[str, int]
    usual: Mapping[str, int]


# --- networks --------------------------------------------------------------------------------------------------------


def attention(np: ModuleType, sp: ModuleType, x: Any, wq: Any, wk: Any, wv: Any, y: Any) -> Any:
    """Attention with a causal mask and a softmax that keeps its axes, to targets y."""
    q, k, v = x @ wq, x @ wk, x @ wv
    scores = q @ k.T / np.sqrt(wq.shape[1])
    scores = np.where(np.tril(np.ones_like(scores)) > 0, scores, -np.inf)
    scores = scores - scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return ((weights @ v - y) ** 2).mean()


def attention_inputs(t: int, d: int, h: int) -> Arrays:
    r = R(0)
    x, y = r.normal(size=(t, d)), r.normal(size=(t, h))
    wq, wk, wv = (r.normal(size=(d, h)) / d**0.5 for _ in range(3))
    return {"x": x, "wq": wq, "wk": wk, "wv": wv, "y": y}


def attention_spaces(t: int, d: int, h: int) -> Mapping[str, cd.Space]:
    w = cd.Space("d", "h")
    return {"x": cd.Space("t", "d"), "wq": w, "wk": w, "wv": w, "y": cd.Space("t", "h")}


def batch_norm(np: ModuleType, sp: ModuleType, x: Any, gamma: Any, beta: Any, y: Any) -> Any:
    """Normalised over the examples of a batch."""
    z = (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5) * gamma + beta
    return ((np.tanh(z) - y) ** 2).sum()


def layer_norm(np: ModuleType, sp: ModuleType, x: Any, gamma: Any, beta: Any, y: Any) -> Any:
    """Normalised over the features of an example."""
    mean = np.mean(x, axis=-1, keepdims=True)
    z = (x - mean) / np.sqrt(np.var(x, axis=-1, keepdims=True) + 1e-5)
    return ((np.tanh(gamma * z + beta) - y) ** 2).sum()


def norm_inputs(n: int, d: int) -> Arrays:
    r = R(0)
    return {"x": r.normal(size=(n, d)), "gamma": r.normal(size=d), "beta": r.normal(size=d), "y": r.normal(size=(n, d))}


def norm_spaces(n: int, d: int) -> Mapping[str, cd.Space]:
    x, v = cd.Space("n", "d"), cd.Space("d")
    return {"x": x, "gamma": v, "beta": v, "y": x}


def gelu_network(np: ModuleType, sp: ModuleType, x: Any, w1: Any, b1: Any, w2: Any, b2: Any, y: Any) -> Any:
    """Two layers with the exact GELU, z Φ(z)."""
    z = x @ w1 + b1
    hidden = 0.5 * z * (1 + sp.erf(z / np.sqrt(2)))
    return ((hidden @ w2 + b2 - y) ** 2).mean()


def gelu_inputs(n: int, d: int, h: int) -> Arrays:
    r = R(0)
    return {
        "x": r.normal(size=(n, d)),
        "w1": r.normal(size=(d, h)) / d**0.5,
        "b1": r.normal(size=h),
        "w2": r.normal(size=(h, 3)) / h**0.5,
        "b2": r.normal(size=3),
        "y": r.normal(size=(n, 3)),
    }


def gelu_spaces(n: int, d: int, h: int) -> Mapping[str, cd.Space]:
    return {
        "x": cd.Space("n", "d"),
        "w1": cd.Space("d", "h"),
        "b1": cd.Space("h"),
        "w2": cd.Space("h", 3),
        "b2": cd.Space(3),
        "y": cd.Space("n", 3),
    }


def spectral_penalty(np: ModuleType, sp: ModuleType, x: Any, w1: Any, w2: Any, y: Any) -> Any:
    """A network whose layers shall not stretch: the largest singular values are added to the loss."""
    error = np.mean((np.tanh(x @ w1) @ w2 - y) ** 2)
    return error + 0.1 * (np.linalg.norm(w1, 2) + np.linalg.norm(w2, ord=2)) + 0.01 * np.linalg.norm(w1, "fro")


def spectral_inputs(n: int, d: int, h: int) -> Arrays:
    r = R(0)
    x, w1, w2 = r.normal(size=(n, d)), r.normal(size=(d, h)), r.normal(size=(h, d))
    return {"x": x, "w1": w1 / d**0.5, "w2": w2 / h**0.5, "y": r.normal(size=(n, d))}


def spectral_spaces(n: int, d: int, h: int) -> Mapping[str, cd.Space]:
    x = cd.Space("n", "d")
    return {"x": x, "w1": cd.Space("d", "h"), "w2": cd.Space("h", "d"), "y": x}


def unet(np: ModuleType, sp: ModuleType, x: Any, w1: Any, w2: Any, w3: Any, y: Any) -> Any:
    """Down by a strided convolution and by pooling, up by repetition, joined with what was there before."""
    n = x.shape[1]
    padded = np.pad(x, ((0, 0), (1, 1)))
    windows = np.stack([padded[:, k : k + n : 2] for k in range(3)], axis=1)
    first = np.tanh(np.einsum("oik,ikn->on", w1, np.swapaxes(windows, 0, 0)))  # half the length
    pooled = first.reshape(first.shape[0], n // 4, 2).max(axis=-1)
    second = np.tanh(np.tensordot(w2, pooled, axes=1))
    up = np.repeat(second, 2, axis=1)
    joined = np.concatenate([up, first], axis=0)
    out = np.repeat(np.einsum("oi,in->on", w3, joined), 2, axis=-1)
    return np.mean((out - y) ** 2)


def unet_inputs(n: int, c: int) -> Arrays:
    r = R(0)
    w1, w2, w3 = r.normal(size=(c, 2, 3)), r.normal(size=(c, c)), r.normal(size=(2, 2 * c))
    return {"x": r.normal(size=(2, n)), "w1": w1, "w2": w2 / c**0.5, "w3": w3 / c**0.5, "y": r.normal(size=(2, n))}


def unet_spaces(n: int, c: int) -> Mapping[str, cd.Space]:
    x = cd.Space(2, n)
    return {"x": x, "w1": cd.Space(c, 2, 3), "w2": cd.Space(c, c), "w3": cd.Space(2, 2 * c), "y": x}


# --- statistics ------------------------------------------------------------------------------------------------------


def kmeans(np: ModuleType, sp: ModuleType, centres: Any, points: Any) -> Any:
    """The squares of the distances to the nearest centres."""
    squares = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1)
    return squares.min(axis=1).sum()


def kmeans_inputs(n: int, k: int, d: int) -> Arrays:
    return {"centres": R(1).normal(size=(k, d)), "points": R(0).normal(size=(n, d))}


def kmeans_spaces(n: int, k: int, d: int) -> Mapping[str, cd.Space]:
    return {"centres": cd.Space("k", "d"), "points": cd.Space("n", "d")}


def least_squares(np: ModuleType, sp: ModuleType, theta: Any, X: Any, y: Any) -> Any:
    """A line with an offset, which stands behind the slopes."""
    rest = X @ theta[:-1] + theta[-1] - y
    return 0.5 * np.dot(rest, rest) / len(y) + 0.1 * np.sum(theta[:-1] ** 2)


def logistic(np: ModuleType, sp: ModuleType, theta: Any, X: Any, y: Any) -> Any:
    """The loss of labels 0 and 1, an offset in front of the slopes."""
    logits = theta[0] + X @ theta[1:]
    return np.mean(np.logaddexp(0, logits) - y * logits) + 0.5 * np.linalg.norm(theta[1:]) ** 2


def regression_inputs(n: int, d: int) -> Arrays:
    r = R(0)
    return {"theta": r.normal(size=d + 1), "X": r.normal(size=(n, d)), "y": 1.0 * (r.random(n) > 0.5)}


def regression_spaces(n: int, d: int) -> Mapping[str, cd.Space]:
    return {"theta": cd.Space(d + 1), "X": cd.Space(n, d), "y": cd.Space(n)}


def evidence(np: ModuleType, sp: ModuleType, log_theta: Any, X: Any, y: Any) -> Any:
    """Minus the logarithm of the evidence of a Gaussian process with a squared exponential kernel."""
    scale, length, noise = np.exp(log_theta)
    squares = np.sum((X[:, None] - X[None, :]) ** 2, -1)
    K = scale**2 * np.exp(-0.5 * squares / length**2) + noise**2 * np.eye(len(y))
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    return 0.5 * y @ alpha + np.log(np.diag(L)).sum() + 0.5 * len(y) * np.log(2 * np.pi)


def evidence_inputs(n: int, d: int) -> Arrays:
    r = R(0)
    X = r.normal(size=(n, d))
    return {"log_theta": np.array([0.1, 0.3, -1.0]), "X": X, "y": np.sin(X.sum(1)) + 0.1 * r.normal(size=n)}


def evidence_spaces(n: int, d: int) -> Mapping[str, cd.Space]:
    return {"log_theta": cd.Space(3), "X": cd.Space(n, d), "y": cd.Space(n)}


def pca(np: ModuleType, sp: ModuleType, X: Any) -> Any:
    """What the two principal components leave of the data."""
    centred = X - X.mean(axis=0)
    w, V = np.linalg.eigh(centred.T @ centred / X.shape[0])
    rest = centred - centred @ V[:, -2:] @ V[:, -2:].T
    return (rest**2).sum() + w[-1]


def pca_inputs(n: int, d: int) -> Arrays:
    return {"X": R(0).normal(size=(n, d)) * np.linspace(1, 2, d)}


def pca_spaces(n: int, d: int) -> Mapping[str, cd.Space]:
    return {"X": cd.Space(n, d)}


def gamma_likelihood(np: ModuleType, sp: ModuleType, beta: Any, shape: Any, X: Any, y: Any) -> Any:
    """Waiting times with a mean that is the exponential of a line."""
    k = np.exp(shape)
    rate = k / np.exp(X @ beta)
    return -np.sum(k * np.log(rate) - sp.gammaln(k) + (k - 1) * np.log(y) - rate * y)


def poisson_likelihood(np: ModuleType, sp: ModuleType, beta: Any, X: Any, y: Any) -> Any:
    """Counts with a rate that is the exponential of a line."""
    eta = X @ beta
    return -np.sum(y * eta - np.exp(eta) - sp.gammaln(y + 1))


def counts_inputs(n: int, d: int) -> Arrays:
    r = R(0)
    return {"beta": 0.3 * r.normal(size=d), "X": r.normal(size=(n, d)), "y": 1.0 + r.poisson(2, size=n)}


def counts_spaces(n: int, d: int) -> Mapping[str, cd.Space]:
    return {"beta": cd.Space("d"), "X": cd.Space("n", "d"), "y": cd.Space("n")}


# --- geometry --------------------------------------------------------------------------------------------------------


def bundle(np: ModuleType, sp: ModuleType, cameras: Any, points: Any, seen: Any, camera: Any, point: Any) -> Any:
    """Reprojection by cameras of 9 numbers (rotation, translation, focal length, distortion), all observations."""
    c, X = cameras[camera], points[point]
    angle = np.linalg.norm(c[:, :3], axis=1, keepdims=True)
    axis = c[:, :3] / angle
    along = np.sum(axis * X, axis=1, keepdims=True)
    turned = X * np.cos(angle) + np.cross(axis, X) * np.sin(angle) + axis * along * (1 - np.cos(angle))
    moved = turned + c[:, 3:6]
    image = -moved[:, :2] / moved[:, 2:]
    r2 = np.sum(image**2, axis=1)
    image = image * (c[:, 6] * (1 + c[:, 7] * r2 + c[:, 8] * r2**2))[:, None]
    return 0.5 * np.sum((image - seen) ** 2)


def bundle_inputs(cameras: int, points: int, m: int) -> Arrays:
    r = R(0)
    numbers = (0.3 * r.normal(size=(cameras, 6)), 1 + r.random(size=(cameras, 1)), 0.1 * r.normal(size=(cameras, 2)))
    return {
        "cameras": np.concatenate(numbers, 1),
        "points": np.array([0, 0, 4]) + r.normal(size=(points, 3)) / 2,
        "seen": r.normal(size=(m, 2)),
        "camera": r.integers(cameras, size=m),
        "point": r.integers(points, size=m),
    }


def bundle_spaces(cameras: int, points: int, m: int) -> Mapping[str, cd.Space]:
    whole = cd.Space("m", dtype=int)
    return {
        "cameras": cd.Space("c", 9),
        "points": cd.Space("p", 3),
        "seen": cd.Space("m", 2),
        "camera": whole,
        "point": whole,
    }


# --- waves -----------------------------------------------------------------------------------------------------------


def deconvolution(np: ModuleType, sp: ModuleType, image: Any, kernel: Any, seen: Any) -> Any:
    """An image behind a lens, whose edges are joined, with a price for rough ones."""
    blurred = np.fft.ifft2(np.fft.fft2(image) * np.fft.fft2(kernel)).real
    rough = ((image[1:] - image[:-1]) ** 2).sum() + ((image[:, 1:] - image[:, :-1]) ** 2).sum()
    return ((blurred - seen) ** 2).sum() + 0.1 * rough


def image_inputs(n: int) -> Arrays:
    r = R(11)
    return {"image": r.normal(size=(n, n)), "kernel": r.uniform(size=(n, n)) / n**2, "seen": r.normal(size=(n, n))}


def image_spaces(n: int) -> Mapping[str, cd.Space]:
    return dict.fromkeys(("image", "kernel", "seen"), cd.Space("n", "n"))


def split_steps(np: ModuleType, sp: ModuleType, v: Any, k: Any, real: Any, imag: Any, x: Any) -> Any:
    """How far a wave spreads in a potential, by four steps in space and in frequency."""
    wave = real + 1j * imag
    for _ in range(4):
        wave = np.fft.ifft(np.exp(-0.1j * k**2) * np.fft.fft(np.exp(-0.2j * v) * wave))
    return (x**2 * np.abs(wave) ** 2).sum()


def wave_inputs(n: int) -> Arrays:
    r, x = R(12), np.linspace(-10, 10, n)
    packet = np.exp(-(x**2) / 4) / n
    k = 2 * np.pi * np.fft.fftfreq(n, 20 / n)
    return {"v": r.normal(size=n), "k": k, "real": packet, "imag": 0.1 * packet * x, "x": x}


def wave_spaces(n: int) -> Mapping[str, cd.Space]:
    return dict.fromkeys(("v", "k", "real", "imag", "x"), cd.Space("n"))


CASES = {
    "attention": Case(
        attention,
        attention_inputs,
        attention_spaces,
        ("wq", "wk", "wv"),
        {"t": 5, "d": 4, "h": 3},
        {"t": 128, "d": 64, "h": 64},
    ),
    "batch norm": Case(
        batch_norm, norm_inputs, norm_spaces, ("x", "gamma", "beta"), {"n": 6, "d": 4}, {"n": 512, "d": 128}
    ),
    "layer norm": Case(
        layer_norm, norm_inputs, norm_spaces, ("x", "gamma", "beta"), {"n": 6, "d": 4}, {"n": 512, "d": 128}
    ),
    "k-means": Case(
        kmeans, kmeans_inputs, kmeans_spaces, ("centres",), {"n": 12, "k": 3, "d": 2}, {"n": 5000, "k": 10, "d": 8}
    ),
    "least squares": Case(
        least_squares, regression_inputs, regression_spaces, ("theta",), {"n": 7, "d": 3}, {"n": 2000, "d": 100}
    ),
    "logistic regression": Case(
        logistic, regression_inputs, regression_spaces, ("theta",), {"n": 7, "d": 3}, {"n": 2000, "d": 100}
    ),
    "GELU network": Case(
        gelu_network,
        gelu_inputs,
        gelu_spaces,
        ("w1", "b1", "w2", "b2"),
        {"n": 5, "d": 4, "h": 3},
        {"n": 256, "d": 64, "h": 128},
    ),
    "evidence": Case(evidence, evidence_inputs, evidence_spaces, ("log_theta",), {"n": 6, "d": 2}, {"n": 200, "d": 5}),
    "PCA": Case(pca, pca_inputs, pca_spaces, ("X",), {"n": 8, "d": 4}, {"n": 500, "d": 30}),
    "spectral norm": Case(
        spectral_penalty,
        spectral_inputs,
        spectral_spaces,
        ("w1", "w2"),
        {"n": 5, "d": 4, "h": 3},
        {"n": 256, "d": 64, "h": 48},
    ),
    "bundle adjustment": Case(
        bundle,
        bundle_inputs,
        bundle_spaces,
        ("cameras", "points"),
        {"cameras": 2, "points": 4, "m": 8},
        {"cameras": 20, "points": 500, "m": 5000},
    ),
    "Gamma likelihood": Case(
        gamma_likelihood,
        lambda n, d: {**counts_inputs(n, d), "shape": 0.5},
        lambda n, d: {**counts_spaces(n, d), "shape": cd.Space()},
        ("beta", "shape"),
        {"n": 6, "d": 3},
        {"n": 2000, "d": 50},
    ),
    "Poisson likelihood": Case(
        poisson_likelihood, counts_inputs, counts_spaces, ("beta",), {"n": 6, "d": 3}, {"n": 2000, "d": 50}
    ),
    "U-Net": Case(unet, unet_inputs, unet_spaces, ("w1", "w2", "w3"), {"n": 16, "c": 3}, {"n": 1024, "c": 16}),
    "deconvolution": Case(deconvolution, image_inputs, image_spaces, ("image", "kernel"), {"n": 5}, {"n": 256}),
    "split steps": Case(split_steps, wave_inputs, wave_spaces, ("v",), {"n": 8}, {"n": 4096}),
}


# --- checking and timing ---------------------------------------------------------------------------------------------


def program(name: str, sizes: Mapping[str, int]) -> cd.Program:
    """The program as combdiff's users have it: the function with a Space for each array."""
    case = CASES[name]
    parameters = case.f.__code__.co_varnames[2 : case.f.__code__.co_argcount]
    spaces = case.spaces(**sizes)
    scope = {"f": case.f, "np": np, "sp": sp}
    text = ", ".join(parameters)
    exec(f"def {name.replace(' ', '_').replace('-', '_')}({text}):\n    return f(np, sp, {text})", scope)
    definition = next(value for key, value in scope.items() if key not in ("f", "np", "sp", "__builtins__"))
    definition.__annotations__ = {each: spaces[each] for each in parameters}  # type: ignore[attr-defined]
    return cd.program(definition)


def in_jax(name: str) -> Callable[..., Any]:
    """The same function's value and gradient by JAX, of the same keywords."""
    case = CASES[name]

    def of_parts(parts: Mapping[str, Any], rest: Mapping[str, Any]) -> Any:
        return case.f(jnp, jsp, **parts, **rest)

    both = jax.jit(jax.value_and_grad(of_parts))

    def value_and_gradient(**arrays: Any) -> Any:
        value, found = both(
            {each: arrays[each] for each in case.wrt}, {k: v for k, v in arrays.items() if k not in case.wrt}
        )
        return value, tuple(found[each] for each in case.wrt)

    return value_and_gradient


def row(name: str, sizes: Mapping[str, int], repeats: int, cpu: bool) -> str:
    """The times of one program, after value and gradient are compared."""
    case = CASES[name]
    arrays = case.inputs(**sizes)
    on_device = {key: jnp.asarray(value) for key, value in arrays.items()}
    theirs = in_jax(name)
    expected = jax.block_until_ready(theirs(**on_device))
    begun = time.perf_counter()
    ours = cd.value_and_grad(program(name, sizes), case.wrt)
    side_by_side.agree(ours(**arrays), expected)
    derived = time.perf_counter() - begun
    compiled = jax.jit(lambda **each: ours(**each))
    side_by_side.agree(jax.block_until_ready(compiled(**on_device)), expected)
    calls = {
        "ours": partial(ours, **arrays),
        "on jax": lambda: jax.block_until_ready(compiled(**on_device)),
        "jax": lambda: jax.block_until_ready(theirs(**on_device)),
    }
    middle = side_by_side.medians(calls, repeats, cpu)
    shown = ", ".join(f"{key}={value}" for key, value in sizes.items())
    times = "".join(f"{middle[each]:>9.3f}" for each in calls)
    ratios = "".join(f"{middle[each] / middle['jax']:>8.2f}" for each in ("ours", "on jax"))
    return f"{name:<20}{shown:<28}{times}{ratios}{derived:>8.1f} s"


def main() -> None:
    """Print a row for each program."""
    told = side_by_side.options(__doc__, CASES, 15, small="small sizes, where a call's own cost is what is seen")
    print(f"{'':<48}{'ours ms':>9}{'on jax':>9}{'jax.jit':>9}{'/ jax':>8}{'on jax':>8}  first call")
    for name in told.names or CASES:
        print(row(name, CASES[name].small if told.small else CASES[name].usual, told.repeats, told.cpu), flush=True)


if __name__ == "__main__":
    main()
