"""Evaluations of GradBench (github.com/gradbench/gradbench), stated anew: derivatives beside jax.jit and NumPy by hand.

    python benchmarks/gradbench.py [NAME …] [--repeats N] [--large] [--cpu]

    lse      log Σ exp x[i]: gradient
    llsq     ½ Σ_i (sign t[i] − Σ_j x[j] t[i]^j)²: gradient
    det      determinant of a matrix: gradient
    kmeans   Σ_i min_k |p[i] − c[k]|²: gradient and diagonal of the Hessian, by the centres
    gmm      likelihood of a mixture of Gaussians, a Wishart prior, Q[k] lower triangular with the diagonal exp q[k]:
             gradient by weights, means, q and the strict triangles
    ba       reprojection by a camera with radial distortion, all observations: the Jacobian's blocks for each
    ode      y[0]' = x[0], y[i]' = x[i] y[i − 1], RK4 from 0 to 2: gradient of the last y by x, by scan
    lstm     two layers with gates by element, c steps: gradient by weights and other parameters, by scan
    particle a charge that two others push, by Euler's steps until it is down: derivative of how far it comes, by where
             one of them stands, through a loop with a condition
    ht       a palm and five chains of bones that carry vertices with them, turned by 26 angles and shifts: the Jacobian
             of how far seen points lie from their vertices
    saddle   where min over p of max over q of (|p|² − |q|²) is, by a minimum within a minimum

Inputs are seeded. Each result is compared with JAX's to a relative 1e-8 before anything is timed; then calls alternate,
in one process with one thread; printed are medians in milliseconds, and our time as a multiple of the others'.
Not stated is the search of the best place in `particle`; `saddle` is compared to an error of 1e-4, as the other side
descends by steps along the gradient that are doubled and halved, as GradBench's programs do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import log, pi
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import side_by_side

import combdiff as cd

Arrays = tuple[Any, ...]


@dataclass(frozen=True)
class Evaluation:
    """`inputs` makes the arguments for sizes; `ours`, `theirs` and, where there is one, NumPy's `by_hand` are timed."""

    inputs: Callable[..., Arrays]
    ours: Callable[..., Callable[..., Any]]
    theirs: Callable[..., Callable[..., Any]]
    sizes: tuple[Mapping[str, int], ...]
    large: tuple[Mapping[str, int], ...] = ()
    by_hand: Callable[..., Callable[..., Any]] | None = None
    error: float | None = None  # of a result, where the other side has one; else 1e-8 of the largest number


R = np.random.default_rng
V = cd.Space("n")


# --- lse, llsq, det --------------------------------------------------------------------------------------------------


def lse_ours(n: int) -> Callable[..., Any]:
    @cd.program
    def lse(x: V):
        return cd.logsumexp(x)

    return cd.grad(lse)


def lse_by_hand(n: int) -> Callable[..., Any]:
    def gradient(x: Any) -> Any:
        e = np.exp(x - x.max())
        return e / e.sum()

    return gradient


def llsq_inputs(n: int, m: int) -> Arrays:
    return R(0).normal(size=m), np.linspace(-1, 1, n)


def llsq_ours(n: int, m: int) -> Callable[..., Any]:
    @cd.program
    def llsq(x: cd.Space("m"), t: V):
        rest = cd.tensor(lambda i: np.sign(t[i]) - cd.sum(lambda j: x[j] * t[i] ** j))
        return 0.5 * rest @ rest

    return cd.grad(llsq, "x")


def llsq_theirs(n: int, m: int) -> Callable[..., Any]:
    def llsq(x: Any, t: Any) -> Any:
        rest = jnp.sign(t) - (t[:, None] ** jnp.arange(m)) @ x
        return 0.5 * rest @ rest

    return jax.grad(llsq)


def llsq_by_hand(n: int, m: int) -> Callable[..., Any]:
    def gradient(x: Any, t: Any) -> Any:
        powers = t[:, None] ** np.arange(m)
        return (powers @ x - np.sign(t)) @ powers

    return gradient


def det_ours(n: int) -> Callable[..., Any]:
    @cd.program
    def det(A: cd.Space("n", "n")):
        return np.linalg.det(A)

    return cd.grad(det)


def det_by_hand(n: int) -> Callable[..., Any]:
    return lambda A: np.linalg.det(A) * np.linalg.inv(A).T


# --- kmeans ----------------------------------------------------------------------------------------------------------


def kmeans_ours(n: int, k: int, d: int) -> Callable[..., Any]:
    @cd.program
    def kmeans(c: cd.Space("k", "d"), p: cd.Space("n", "d")):
        return cd.sum(lambda i: cd.min(lambda k: cd.sum(lambda a: (p[i, a] - c[k, a]) ** 2)))

    gradient = cd.grad(kmeans, "c")
    product = cd.hvp(kmeans, "c")

    @cd.program
    def both(c: cd.Space("k", "d"), p: cd.Space("n", "d")):
        return gradient(c, p), product(c, p, cd.tensor(lambda k, a: 1, k="k", a="d"))

    return both


def kmeans_theirs(n: int, k: int, d: int) -> Callable[..., Any]:
    def cost(c: Any, p: Any) -> Any:
        return ((p[:, None] - c) ** 2).sum(-1).min(1).sum()

    return lambda c, p: jax.jvp(lambda c: jax.grad(cost)(c, p), (c,), (jnp.ones_like(c),))


def kmeans_by_hand(n: int, k: int, d: int) -> Callable[..., Any]:
    def both(c: Any, p: Any) -> Any:
        nearest = ((c * c).sum(1) - 2 * p @ c.T).argmin(1)
        member = np.eye(len(c))[nearest]
        count = member.sum(0)[:, None]
        return 2 * (count * c - member.T @ p), 2 * count * np.ones_like(c)

    return both


# --- gmm -------------------------------------------------------------------------------------------------------------

GAMMA, M = 1.0, 0  # of the Wishart prior


def gmm_inputs(n: int, k: int, d: int) -> Arrays:
    r = R(0)
    triangles = 0.3 * r.normal(size=(k, d, d))
    return r.normal(size=k), r.normal(size=(k, d)), 0.3 * r.normal(size=(k, d)), triangles, r.normal(size=(n, d))


def gmm_constant(n: int, k: int, d: int) -> float:
    """What no parameter changes; the prior's normalisation is left out."""
    return -n * d * 0.5 * log(2 * pi)


def gmm_ours(n: int, k: int, d: int) -> Callable[..., Any]:
    means = cd.Space("k", "d")

    @cd.program
    def gmm(a: cd.Space("k"), mu: means, q: means, L: cd.Space("k", "d", "d"), x: cd.Space("n", "d")):
        far = cd.tensor(lambda i, k, a: x[i, a] - mu[k, a])
        lower = np.tril(L, -1)
        seen = cd.tensor(
            lambda i, k, a: np.exp(q[k, a]) * far[i, k, a] + cd.sum(lambda b: lower[k, a, b] * far[i, k, b])
        )
        inner = cd.tensor(lambda i, k: a[k] + cd.sum(lambda b: q[k, b]) - 0.5 * cd.sum(lambda b: seen[i, k, b] ** 2))
        likelihood = cd.logsumexp(inner, 1).sum() - x.shape[0] * cd.logsumexp(a)
        prior = 0.5 * GAMMA**2 * ((np.exp(q) ** 2).sum() + (lower * lower).sum()) - M * q.sum()
        return gmm_constant(n, k, d) + likelihood + prior

    return cd.grad(gmm, ("a", "mu", "q", "L"))


def gmm_theirs(n: int, k: int, d: int) -> Callable[..., Any]:
    def gmm(a: Any, mu: Any, q: Any, L: Any, x: Any) -> Any:
        lower, far = jnp.tril(L, -1), x[:, None] - mu
        seen = jnp.exp(q) * far + jnp.einsum("kab,ikb->ika", lower, far)
        inner = a + q.sum(1) - 0.5 * (seen**2).sum(-1)
        likelihood = jax.nn.logsumexp(inner, 1).sum() - n * jax.nn.logsumexp(a)
        prior = 0.5 * GAMMA**2 * ((jnp.exp(q) ** 2).sum() + (lower**2).sum()) - M * q.sum()
        return gmm_constant(n, k, d) + likelihood + prior

    return jax.grad(gmm, (0, 1, 2, 3))


def gmm_by_hand(n: int, k: int, d: int) -> Callable[..., Any]:
    def gradient(a: Any, mu: Any, q: Any, L: Any, x: Any) -> Any:
        strict = np.tril(np.ones((x.shape[1],) * 2), -1)
        diagonal, lower = np.exp(q), L * strict
        Q = lower + diagonal[:, :, None] * np.eye(x.shape[1])
        seen = (x @ Q.transpose(0, 2, 1)) - np.einsum("kab,kb->ka", Q, mu)[:, None]  # k, i, a
        inner = (a + q.sum(1))[:, None] - 0.5 * np.einsum("kia,kia->ki", seen, seen)
        inner -= inner.max(0)
        share = np.exp(inner)
        share /= share.sum(0)
        weight = share.sum(1)
        pulled = share[:, :, None] * seen
        e = np.exp(a - a.max())
        total = pulled.sum(1)
        toward = np.einsum("kab,ka->kb", Q, total)
        by_Q = -(pulled.transpose(0, 2, 1) @ x - total[:, :, None] * mu[:, None])
        by_q = weight[:, None] + diagonal * np.einsum("kaa->ka", by_Q) + GAMMA**2 * diagonal**2 - M
        return weight - len(x) * e / e.sum(), toward, by_q, by_Q * strict + GAMMA**2 * lower

    return gradient


# --- ba --------------------------------------------------------------------------------------------------------------


def ba_inputs(cameras: int, points: int, seen: int) -> Arrays:
    """A camera has 11 numbers, rotation, centre, focal length, principal point, distortion; taken per observation."""
    r = R(0)
    parts = (0.3 * r.normal(size=(cameras, 6)), 1 + r.random(size=(cameras, 1)), 0.1 * r.normal(size=(cameras, 4)))
    camera = np.concatenate(parts, 1)
    point = np.array([0, 0, 4]) + r.normal(size=(points, 3))
    return (
        camera[r.integers(cameras, size=seen)],
        point[r.integers(points, size=seen)],
        r.random(size=seen),
        r.normal(size=(seen, 2)),
    )


def residuals(xp: Any, c: Any, X: Any, w: Any, z: Any) -> tuple[Any, Any]:
    """w (projection − seen) of all observations, along each direction of the image."""
    r, far = [c[:, n] for n in range(3)], [X[:, n] - c[:, 3 + n] for n in range(3)]
    angle = xp.sqrt(r[0] ** 2 + r[1] ** 2 + r[2] ** 2)
    axis = [each / angle for each in r]
    cos, sin = xp.cos(angle), xp.sin(angle)
    along = (axis[0] * far[0] + axis[1] * far[1] + axis[2] * far[2]) * (1 - cos)
    turned = [
        far[n] * cos + (axis[n - 2] * far[n - 1] - axis[n - 1] * far[n - 2]) * sin + axis[n] * along for n in range(3)
    ]
    x, y = turned[0] / turned[2], turned[1] / turned[2]
    square = x * x + y * y
    scale = (1 + c[:, 9] * square + c[:, 10] * square**2) * c[:, 6]
    return w * (x * scale + c[:, 7] - z[:, 0]), w * (y * scale + c[:, 8] - z[:, 1])


def ba_ours(cameras: int, points: int, seen: int) -> Callable[..., Any]:
    """No observation has to do with another one: the sum over them has the blocks of the Jacobian as its derivative."""

    @cd.program
    def ba(c: cd.Space("p", 11), X: cd.Space("p", 3), w: cd.Space("p"), z: cd.Space("p", 2)):
        across, down = residuals(np, c, X, w, z)
        return np.stack([across.sum(), down.sum()])

    return cd.jacobian(ba, ("c", "X", "w"), "reverse")


def ba_theirs(cameras: int, points: int, seen: int) -> Callable[..., Any]:
    def ba(c: Any, X: Any, w: Any, z: Any) -> Any:
        return jnp.stack([each.sum() for each in residuals(jnp, c, X, w, z)])

    return jax.jacrev(ba, (0, 1, 2))


# --- ode and lstm ----------------------------------------------------------------------------------------------------


def runge_kutta(f: Callable[[Any], Any], y: Any, h: float) -> Any:
    """A step of the classical method."""
    one = f(y)
    two = f(y + 0.5 * h * one)
    three = f(y + 0.5 * h * two)
    return y + h / 6 * (one + 2 * two + 2 * three + f(y + h * three))


def ode_ours(n: int, s: int) -> Callable[..., Any]:
    @cd.program
    def ode(x: cd.Space(n)):
        def slope(y: Any) -> Any:
            return x * np.concatenate([np.ones(1), y[:-1]])

        return cd.scan(lambda y, _: (runge_kutta(slope, y, 2 / s), None), np.zeros(n), length=s)[0][n - 1]

    return cd.grad(ode)


def ode_theirs(n: int, s: int) -> Callable[..., Any]:
    def ode(x: Any) -> Any:
        def slope(y: Any) -> Any:
            return x * jnp.concatenate([jnp.ones(1), y[:-1]])

        return jax.lax.scan(lambda y, _: (runge_kutta(slope, y, 2 / s), None), jnp.zeros(n), length=s)[0][n - 1]

    return jax.grad(ode)


def lstm_inputs(c: int, b: int) -> Arrays:
    r = R(0)
    seen = r.random(size=(c, b))
    return 0.3 * r.normal(size=(2, 8, b)), r.normal(size=(3, b)), r.normal(size=(4, b)), seen[:-1], seen[1:]


def cell(xp: Any, w: Any, h: Any, c: Any, x: Any) -> tuple[Any, Any]:
    """A layer whose gates look at each element alone: the next hidden values and cells."""
    sigmoid: Callable[[Any], Any] = lambda z: 1 / (1 + xp.exp(-z))  # noqa: E731
    forget, take = sigmoid(x * w[0] + w[4]), sigmoid(h * w[1] + w[5])
    out, change = sigmoid(x * w[2] + w[6]), xp.tanh(h * w[3] + w[7])
    c = c * forget + take * change
    return out * xp.tanh(c), c


def lstm_step(xp: Any, w: Any, e: Any) -> Callable[[Any, Any], Any]:
    def step(carry: Any, given: Any) -> Any:
        (h0, c0, h1, c1), (x, _) = carry, given
        h0, c0 = cell(xp, w[0], h0, c0, x * e[0])
        h1, c1 = cell(xp, w[1], h1, c1, h0)
        return (h0, c0, h1, c1), h1 * e[1] + e[2]

    return step


def lstm_loss(xp: Any, out: Any, x: Any, y: Any) -> Any:
    return -(y * (out - xp.log(xp.exp(out).sum(1) + 2)[:, None])).sum() / x.size


def lstm_ours(c: int, b: int) -> Callable[..., Any]:
    steps = cd.Space("T", "b")

    @cd.program
    def lstm(w: cd.Space(2, 8, "b"), e: cd.Space(3, "b"), state: cd.Space(4, "b"), x: steps, y: steps):
        _, out = cd.scan(lstm_step(np, w, e), tuple(state[n] for n in range(4)), (x, y))
        return lstm_loss(np, out, x, y)

    return cd.grad(lstm, ("w", "e"))


def lstm_theirs(c: int, b: int) -> Callable[..., Any]:
    def lstm(w: Any, e: Any, state: Any, x: Any, y: Any) -> Any:
        _, out = jax.lax.scan(lstm_step(jnp, w, e), tuple(state), (x, y))
        return lstm_loss(jnp, out, x, y)

    return jax.grad(lstm, (0, 1))


# --- particle --------------------------------------------------------------------------------------------------------


def flight(xp: Any, loop: Callable[..., Any], w: Any) -> Any:
    """The square of where the particle crosses the ground, on the line of its last step."""

    def pushed(state: Any) -> Any:
        x, y, u, v = state
        a, b = x - 10, y - 10 + w
        near, far = (a**2 + b**2) ** 1.5, (a**2 + y**2) ** 1.5
        return x + 0.1 * u, y + 0.1 * v, u + 0.1 * (a / near + a / far), v + 0.1 * (b / near + y / far)

    x, y, u, v = loop(lambda state: state[1] > 0, pushed, (0.0, 8.0, 0.75, 0.0))
    return (x - u * y / v) ** 2


def particle_ours(limit: int) -> Callable[..., Any]:
    @cd.program
    def particle(w: cd.Space()):
        return flight(np, partial(cd.while_loop, limit=limit), w)

    return cd.jacobian(particle, "w", "forward")


def particle_theirs(limit: int) -> Callable[..., Any]:
    def loop(condition: Any, step: Any, init: Any) -> Any:
        return jax.lax.while_loop(condition, step, tuple(map(jnp.asarray, init)))

    return jax.jacfwd(partial(flight, jnp, loop))


# --- ht --------------------------------------------------------------------------------------------------------------

FINGERS, BONES = 5, 4  # and the palm, the first of all bones


def ht_inputs(vertices: int, points: int) -> Arrays:
    """Angles and shifts, each bone in the one before, bones at rest, vertices, weights, which of them is seen where."""
    r = R(0)
    bones = np.tile(np.eye(4), (1 + FINGERS * BONES, 1, 1))
    bones[:, :3] += 0.2 * r.normal(size=bones[:, :3].shape)
    homogeneous = np.concatenate([r.normal(size=(vertices, 3)), np.ones((vertices, 1))], 1)
    weights = r.random(size=(len(bones), vertices))
    at = r.integers(vertices, size=points)
    rest = np.linalg.inv(bones)
    return 0.3 * r.normal(size=26), bones, rest, homogeneous, weights / weights.sum(0), at, r.normal(size=(points, 3))


def turns(xp: Any, angles: Any) -> Any:
    """Rotations about x, then y, then z, of stacks of three angles, as matrices that move homogeneous vectors."""
    c, s = xp.cos(angles), xp.sin(angles)
    (cx, cy, cz), (sx, sy, sz) = ((each[..., 0], each[..., 1], each[..., 2]) for each in (c, s))
    zero, one = 0 * cx, 0 * cx + 1
    rows = (
        (cy * cz, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz, zero),
        (cy * sz, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz, zero),
        (-sy, sx * cy, cx * cy, zero),
        (zero, zero, zero, one),
    )
    return xp.stack([xp.stack(row, -1) for row in rows], -2)


def turn_about(xp: Any, axis: Any) -> Any:
    """The rotation about an axis by its length (Rodrigues): 1 + sin φ K + (1 − cos φ) K²."""
    angle = xp.sqrt((axis * axis).sum())
    x, y, z = (axis[n] / angle for n in range(3))
    cross = xp.stack([xp.stack([0 * x, -z, y]), xp.stack([z, 0 * x, -x]), xp.stack([-y, x, 0 * x])])
    return xp.eye(3) + xp.sin(angle) * cross + (1 - xp.cos(angle)) * (cross @ cross)


def hand(xp: Any, scan: Any, theta: Any, bones: Any, rest: Any, v: Any, weights: Any, at: Any, points: Any) -> Any:
    """Points less the vertices that they show; a finger's first bone is stiff, the next bends in two directions."""
    bends = theta[6:].reshape(FINGERS, 4)
    still = 0 * bends[:, 0]
    bend = xp.stack([still, bends[:, 0], bends[:, 2], bends[:, 3]])
    spread = xp.stack([still, bends[:, 1], still, still])
    chain = bones[1:].reshape(FINGERS, BONES, 4, 4).swapaxes(0, 1) @ turns(xp, xp.stack([bend, 0 * bend, spread], -1))
    palm = xp.broadcast_to(bones[0], (FINGERS, 4, 4))
    _, found = scan(lambda placed, bone: (placed @ bone, placed @ bone), palm, chain)
    absolute = xp.concatenate([bones[:1], found.swapaxes(0, 1).reshape(FINGERS * BONES, 4, 4)])
    carried = xp.einsum("bxy,vy,bv->vx", absolute @ rest, v[at], weights[:, at])
    return points - (carried[:, :3] @ turn_about(xp, theta[:3]).T + theta[3:6])


def ht_ours(vertices: int, points: int) -> Callable[..., Any]:
    every = cd.Space(1 + FINGERS * BONES, 4, 4)

    @cd.program
    def ht(
        theta: cd.Space(26),
        bones: every,
        rest: every,
        v: cd.Space("v", 4),
        w: cd.Space(1 + FINGERS * BONES, "v"),
        at: cd.Space("p", dtype=int),
        points: cd.Space("p", 3),
    ):
        return hand(np, cd.scan, theta, bones, rest, v, w, at, points)

    return cd.jacobian(ht, "theta", "forward")


def ht_theirs(vertices: int, points: int) -> Callable[..., Any]:
    return jax.jacfwd(partial(hand, jnp, jax.lax.scan))


# --- saddle ----------------------------------------------------------------------------------------------------------


def saddle_ours(n: int) -> Callable[..., Any]:
    @cd.program
    def saddle(start: V):
        def farthest(p: Any) -> Any:
            return cd.argmin(lambda q: q @ q - p @ p, like=start)

        def worst(p: Any) -> Any:
            q = farthest(p)
            return p @ p - q @ q

        p = cd.argmin(worst, like=start)
        return np.stack([p, farthest(p)])

    return saddle


def descended(f: Callable[[Any], Any], start: Any) -> Any:
    """A minimum by steps down the gradient: ten that go down double the step, one that does not halves it."""
    slope = jax.grad(f)

    def step(state: Any) -> Any:
        x, _, eta, good = state
        g = slope(x)
        after = x - eta * g
        down = f(after) < f(x)
        ends = (jnp.linalg.norm(g) <= 1e-5) | (jnp.linalg.norm(after - x) <= 1e-5)
        doubles = down & (good == 9)
        eta = jnp.where(doubles, 2 * eta, jnp.where(down, eta, eta / 2))
        return jnp.where(down & ~ends, after, x), ends, eta, jnp.where(down & ~doubles, good + 1, 0)

    begun = (start, jnp.array(False), jnp.array(1e-2), jnp.array(0))
    return jax.lax.while_loop(lambda state: ~state[1], step, begun)[0]


def saddle_theirs(n: int) -> Callable[..., Any]:
    def saddle(start: Any) -> Any:
        def farthest(p: Any) -> Any:
            return descended(lambda q: q @ q - p @ p, start)

        def worst(p: Any) -> Any:
            q = jax.lax.stop_gradient(farthest(p))  # at the maximum nothing depends on q
            return p @ p - q @ q

        p = descended(worst, start)
        return jnp.stack([p, farthest(p)])

    return saddle


EVALUATIONS = {
    "lse": Evaluation(
        lambda n: (R(0).normal(size=n),),
        lse_ours,
        lambda n: jax.grad(jax.nn.logsumexp),
        ({"n": 1000}, {"n": 100_000}),
        ({"n": 2_500_000},),
        lse_by_hand,
    ),
    "llsq": Evaluation(
        llsq_inputs,
        llsq_ours,
        llsq_theirs,
        ({"n": 1000, "m": 16}, {"n": 4096, "m": 128}),
        ({"n": 8192, "m": 1024},),
        llsq_by_hand,
    ),
    "det": Evaluation(
        lambda n: (R(0).normal(size=(n, n)),),
        det_ours,
        lambda n: jax.grad(jnp.linalg.det),
        ({"n": 5}, {"n": 20}, {"n": 100}),
        ({"n": 500},),
        det_by_hand,
    ),
    "kmeans": Evaluation(
        lambda n, k, d: (R(1).normal(size=(k, d)), R(0).normal(size=(n, d))),
        kmeans_ours,
        kmeans_theirs,
        ({"n": 1000, "k": 10, "d": 4}, {"n": 10_000, "k": 20, "d": 16}),
        ({"n": 100_000, "k": 40, "d": 32},),
        kmeans_by_hand,
    ),
    "gmm": Evaluation(
        gmm_inputs,
        gmm_ours,
        gmm_theirs,
        ({"n": 1000, "k": 5, "d": 2}, {"n": 1000, "k": 10, "d": 10}, {"n": 1000, "k": 25, "d": 32}),
        ({"n": 10_000, "k": 25, "d": 64},),
        gmm_by_hand,
    ),
    "ba": Evaluation(
        ba_inputs,
        ba_ours,
        ba_theirs,
        ({"cameras": 10, "points": 100, "seen": 1000}, {"cameras": 50, "points": 2000, "seen": 30_000}),
        ({"cameras": 200, "points": 10_000, "seen": 200_000},),
    ),
    "ode": Evaluation(
        lambda n, s: (R(0).random(size=n),),
        ode_ours,
        ode_theirs,
        ({"n": 100, "s": 50}, {"n": 1000, "s": 200}),
        ({"n": 10_000, "s": 200},),
    ),
    "lstm": Evaluation(
        lstm_inputs,
        lstm_ours,
        lstm_theirs,
        ({"c": 256, "b": 14}, {"c": 1024, "b": 14}),
        ({"c": 4096, "b": 14},),
    ),
    "ht": Evaluation(
        ht_inputs,
        ht_ours,
        ht_theirs,
        ({"vertices": 544, "points": 100}, {"vertices": 544, "points": 5000}),
        ({"vertices": 10_000, "points": 100_000},),
    ),
    "saddle": Evaluation(lambda n: (np.ones(n),), saddle_ours, saddle_theirs, ({"n": 2},), error=1e-4),
    "particle": Evaluation(lambda limit: (np.array(0.0),), particle_ours, particle_theirs, ({"limit": 360},)),
}


# --- checking and timing ---------------------------------------------------------------------------------------------


def row(name: str, sizes: Mapping[str, int], repeats: int, cpu: bool) -> str:
    """The times of one evaluation at some sizes, after the results are compared."""
    evaluation = EVALUATIONS[name]
    arguments = evaluation.inputs(**sizes)
    on_device = tuple(map(jnp.asarray, arguments))
    jitted = jax.jit(evaluation.theirs(**sizes))
    expected = jax.block_until_ready(jitted(*on_device))
    begun = time.perf_counter()
    ours = evaluation.ours(**sizes)
    side_by_side.agree(ours(*arguments), expected, evaluation.error)
    derived = time.perf_counter() - begun
    begun = time.perf_counter()
    ours_on_jax = jax.jit(ours)
    side_by_side.agree(jax.block_until_ready(ours_on_jax(*on_device)), expected, evaluation.error)
    compiled = time.perf_counter() - begun
    calls = {
        "ours": partial(ours, *arguments),
        "on jax": lambda: jax.block_until_ready(ours_on_jax(*on_device)),
        "jax": lambda: jax.block_until_ready(jitted(*on_device)),
    }
    if evaluation.by_hand:
        by_hand = evaluation.by_hand(**sizes)
        side_by_side.agree(by_hand(*arguments), expected, evaluation.error)
        calls["hand"] = partial(by_hand, *arguments)
    middle = side_by_side.medians(calls, repeats, cpu)
    shown = ", ".join(f"{key}={value}" for key, value in sizes.items())
    hand = f"{middle['hand']:>9.3f}" if "hand" in middle else " " * 9
    ratios = f"{middle['on jax'] / middle['jax']:>9.2f}{middle['ours'] / middle['jax']:>9.2f}" + (
        f"{middle['ours'] / middle['hand']:>9.2f}" if "hand" in middle else ""
    )
    times = f"{middle['ours']:>9.3f}{middle['on jax']:>9.3f}{middle['jax']:>9.3f}{hand}"
    return f"{name:<9}{shown:<36}{times}{ratios:<27}{derived:>7.1f} s{compiled:>7.1f} s"


def main() -> None:
    """Print a row for each evaluation and size."""
    told = side_by_side.options(__doc__, EVALUATIONS, 15, large="larger sizes as well")
    heads = ("NumPy ms", "on JAX", "jax.jit", "hand", "JAX/jax", "Np/jax", "Np/hand", "first", "compiled")
    print(f"{'':<45}{''.join(f'{head:>9}' for head in heads)}")
    for name in told.names or EVALUATIONS:
        evaluation = EVALUATIONS[name]
        for sizes in evaluation.sizes + (evaluation.large if told.large else ()):
            print(row(name, sizes, told.repeats, told.cpu), flush=True)


if __name__ == "__main__":
    main()
