"""Networks of random layers on a stack of matrices: values and derivatives are JAX's, prints are read back.

The layers are those of users: normalisations along any axis, attention with and without masks, products with weights
along each axis, windows, shifts, sums so far, pooling, inverses of Gram matrices, arrays that the program makes.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy
import pytest
from backends import double_precision

import combdiff as cd

SIZES = {"b": 2, "t": 3, "d": 4}
SHAPES = {"x": "btd", "W": "dd", "S": "tt", "B": "bb", "g": "d"}
ARRAYS = {
    name: numpy.random.default_rng(n).normal(size=[SIZES[axis] for axis in axes])
    for n, (name, axes) in enumerate(SHAPES.items())
}

Layer = Callable[[Any, Any, Any, Random], Any]  # of a library, a stack, the parameters, and what draws choices


def _axis(draw: Random) -> Any:
    return draw.choice([0, 1, 2, -1, (0, 2), (1, 2)])


def _softmax(np: Any, z: Any, p: Any, draw: Random) -> Any:
    axis = _axis(draw)
    e = np.exp(z - z.max(axis=axis, keepdims=True)) if draw.random() < 0.5 else np.exp(z)
    return e / e.sum(axis=axis, keepdims=True)


def _normalised(np: Any, z: Any, p: Any, draw: Random) -> Any:
    axis = _axis(draw)
    return (z - z.mean(axis=axis, keepdims=True)) / np.sqrt(z.var(axis=axis, keepdims=True) + 0.3)


def _by_root_mean_square(np: Any, z: Any, p: Any, draw: Random) -> Any:
    return z / np.sqrt((z * z).mean(axis=_axis(draw), keepdims=True) + 0.5)


def _logarithms(np: Any, z: Any, p: Any, draw: Random) -> Any:
    axis = draw.choice([0, 1, 2])
    most = z.max(axis=axis, keepdims=True)
    return z - most - np.log(np.exp(z - most).sum(axis=axis, keepdims=True))


def _attention(np: Any, z: Any, p: Any, draw: Random) -> Any:
    scores = z @ z.swapaxes(1, 2) / 3
    if draw.random() < 0.5:
        scores = scores + numpy.triu(numpy.full((3, 3), -numpy.inf), 1)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)) @ z


def _image_attention(np: Any, z: Any, p: Any, draw: Random) -> Any:
    e = np.exp(np.einsum("atd,btd->ab", z, z) / 4)
    return np.einsum("ab,btd->atd", e / e.sum(axis=1, keepdims=True), z)


def _heads(np: Any, z: Any, p: Any, draw: Random) -> Any:
    h = z.reshape(2, 3, 2, 2).transpose(0, 2, 1, 3)
    e = np.exp(h @ h.transpose(0, 1, 3, 2) / 2)
    return ((e / e.sum(axis=-1, keepdims=True)) @ h).transpose(0, 2, 1, 3).reshape(2, 3, 4)


def _function(np: Any, z: Any, p: Any, draw: Random) -> Any:
    functions: list[Callable[[Any], Any]] = [
        np.tanh,
        np.sin,
        np.exp,
        np.arctan,
        lambda v: v * v,
        lambda v: np.maximum(v, 0),
        lambda v: v / (1 + np.exp(-v)),
        lambda v: np.where(v > 0, v, 0.1 * v),
        lambda v: np.log1p(v * v),
        lambda v: np.logaddexp(0, v),
        lambda v: np.clip(v, -0.5, 0.8),
    ]
    return draw.choice(functions)(z)


def _window(np: Any, z: Any, p: Any, draw: Random) -> Any:
    w = np.pad(z, ((0, 0), (1, 1), (0, 0)))
    return w[:, :-2] * p["g"] + w[:, 1:-1] + 0.5 * w[:, 2:]


def _moved(np: Any, z: Any, p: Any, draw: Random) -> Any:
    moves = [
        lambda: z[:, ::-1],
        lambda: np.roll(z, draw.choice([1, -1, 2]), axis=draw.choice([0, 1, 2])),
        lambda: np.concatenate([z[:, 1:] - z[:, :-1], z[:, :1]], axis=1),
        lambda: np.concatenate([z[..., :2] * z[..., 2:], z[..., 2:]], axis=2),
        lambda: z[:, numpy.arange(2, -1, -1)],
        lambda: np.repeat(z[:, :1], 3, axis=1) + z,
    ]
    return draw.choice(moves)()


def _pooled(np: Any, z: Any, p: Any, draw: Random) -> Any:
    axis = draw.choice([0, 1, 2])
    pools = [
        lambda: z.max(axis=axis, keepdims=True),
        lambda: z.min(axis=axis, keepdims=True),
        lambda: np.sqrt((z * z).sum(axis=axis, keepdims=True)),
        lambda: np.sort(z, axis=axis),
        lambda: z * np.prod(1 + 0.1 * z, axis=axis, keepdims=True),
    ]
    return z + draw.choice(pools)()


def _made(np: Any, z: Any, p: Any, draw: Random) -> Any:
    """Products with arrays that the program makes of numbers."""
    made = [
        numpy.tri(3),
        1 - numpy.eye(3),
        numpy.eye(3) - 1 / 3,
        numpy.eye(3, k=1) + numpy.eye(3, k=-1),
        numpy.abs(numpy.arange(3)[:, None] - numpy.arange(3)),
        2 * numpy.eye(3) - numpy.eye(3, k=1),
    ]
    matrix = draw.choice(made)
    return matrix @ z if draw.random() < 0.6 else (matrix * (z @ z.swapaxes(1, 2))) @ z


def _inverted(np: Any, z: Any, p: Any, draw: Random) -> Any:
    return np.linalg.inv(z @ z.swapaxes(1, 2) + 2 * np.eye(3)) @ z


LAYERS: list[Layer] = [
    _softmax,
    _normalised,
    _by_root_mean_square,
    _logarithms,
    _attention,
    _image_attention,
    _heads,
    _function,
    _function,
    _window,
    _moved,
    _pooled,
    _made,
    _inverted,
    lambda np, z, p, draw: z @ p["W"],
    lambda np, z, p, draw: np.einsum("st,btd->bsd", p["S"], z),
    lambda np, z, p, draw: np.einsum("ab,btd->atd", p["B"], z),
    lambda np, z, p, draw: z / (1 + np.exp(-(z @ p["W"]))),
    lambda np, z, p, draw: z @ np.einsum("bti,btj->ij", z, z) / 5,
    lambda np, z, p, draw: np.cumsum(z, axis=draw.choice([0, 1, 2])),
]


def network(np: Any, seed: int, given: dict[str, Any]) -> Any:
    """Two to four layers, some of them beside what came before, and a number of the last."""
    draw = Random(seed)
    found = [given["x"]]
    for _ in range(draw.choice([2, 3, 3, 4])):
        z, share = draw.choice(LAYERS)(np, found[-1], given, draw), draw.random()
        found.append(z + draw.choice(found) if share < 0.3 else z * draw.choice(found) if share < 0.4 else z)
    z = found[-1]
    numbers = [
        lambda: (z**2).sum(),
        lambda: (z * given["x"]).mean(),
        lambda: np.log(1 + (z**2).sum(axis=1)).sum(),
        lambda: np.sqrt(1 + z * z).sum(),
    ]
    return draw.choice(numbers)()


def program(seed: int) -> cd.Program:
    """The network of a seed, of numbers as sizes."""

    def f(x: Any, W: Any, S: Any, B: Any, g: Any) -> Any:
        return network(numpy, seed, {"x": x, "W": W, "S": S, "B": B, "g": g})

    f.__annotations__ = {name: cd.Space(*(SIZES[axis] for axis in axes)) for name, axes in SHAPES.items()}
    return cd.program(f)


def agrees(found: Any, expected: Any) -> bool:
    """Whether arrays are equal but for rounding; what JAX has no finite number for is not compared."""
    expected = numpy.asarray(expected)
    scale = max(1, numpy.abs(expected).max())
    return not numpy.isfinite(expected).all() or bool(numpy.abs(numpy.asarray(found) - expected).max() <= 1e-7 * scale)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(16))
def test_values_and_derivatives_are_those_of_jax(seed: int) -> None:
    import jax
    import jax.numpy as jnp

    wrt = Random(seed).choice([*SHAPES, "x", "x"])
    f, place = program(seed), list(SHAPES).index(wrt)
    gradient, way = cd.value_and_grad(f, wrt), numpy.cos(numpy.arange(24.0)).reshape(2, 3, 4)
    value, slope = gradient(**ARRAYS)
    with double_precision():
        arrays = [jnp.asarray(array) for array in ARRAYS.values()]

        def objective(*given: Any) -> Any:
            return network(jnp, seed, dict(zip(SHAPES, given, strict=True)))

        expected, slopes = jax.jit(jax.value_and_grad(objective, argnums=place))(*arrays)
        assert agrees(value, expected)
        assert agrees(slope, slopes)
        assert agrees(gradient(*arrays)[1], slopes)
        if seed % 3 == 0:
            product = jax.jvp(lambda x: jax.grad(objective)(x, *arrays[1:]), (arrays[0],), (jnp.asarray(way),))[1]
            assert agrees(cd.hvp(f, "x")(*ARRAYS.values(), way), product)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(100, 112))
def test_prints_are_read_back(seed: int) -> None:
    f = program(seed)
    gradient = cd.grad(f, "x")
    spaces = {parameter.name: parameter.type for parameter in f.parameters}
    for written in (f, gradient):
        read = cd.read(str(written), spaces)
        given = {parameter.name: ARRAYS[parameter.name] for parameter in read.parameters}
        assert agrees(read(**given), written(**ARRAYS))
