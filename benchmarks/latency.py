"""How long derivations take from a cold start, beside `jax.jit` of the same program written for JAX.

Every figure comes from a fresh process with compiled modules on disk: CPU seconds (of all threads) from the first
import to the first value of the derivative on the same small arrays, for combdiff also as text. With JAX beside it the
values of the two are compared, to 1e-8 of the largest, and in no derivative of combdiff's a Σ may hold a δ. Names on
the command line choose programs.
Run: OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/latency.py [--jax] [--repeats 3] [name …]
"""

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

STEPS, LAYERS = 10, 64
CLOSE = 1e-8  # of the largest number in a result


def derivatives() -> dict[str, Callable[[], Any]]:
    """How combdiff derives each program."""
    import combdiff as cd

    n, c = cd.Space("n"), complex

    def program(function: Callable[..., Any], *spaces: Any) -> cd.Program:
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        function.__annotations__ = dict(zip(names, spaces, strict=True))
        return cd.program(function)

    def mps(A, B, C, D, E, W):
        def bra_ket(left, site):
            return cd.einsum("ab,aic,bjd,ij->cd", left, np.conj(site), site, W)

        left = cd.einsum("ic,jd,ij->cd", np.conj(A), A, W)
        for site in (B, C, D):
            left = bra_ket(left, site)
        return np.real(cd.einsum("ab,ai,bj,ij->", left, np.conj(E), E, W))

    def lagrangian(V, W, X, t, u):
        residual = V + cd.einsum("abcd,cdij->abij", W, t) / 2
        residual = residual + cd.einsum("kbcj,acik->abij", X, t)
        return cd.einsum("abij,abij->", V, t) / 4 + cd.einsum("abij,abij->", u, residual)

    def evidence(x, y, s, w):
        K = cd.tensor(lambda i, j: s * np.exp(-((x[i] - x[j]) ** 2) / w) + cd.delta(i, j))
        return y @ cd.inv(K) @ y + cd.logdet(K)

    def attention(Q, K, V):
        weights = np.exp(Q @ K.T)
        return ((weights / cd.tensor(lambda i, j: cd.sum(lambda k: weights[i, k]), j="n")) @ V).sum()

    def hartree_fock(J, C):
        return cd.einsum("pi,qi,rj,sj,pqrs->", np.conj(C), C, np.conj(C), C, J)

    def wannier(w, S, U):
        rho = cd.tensor(
            lambda n, b: cd.sum(lambda k, p, q: np.conj(U[p, n, k]) * S[p, q, k, k + b] * U[q, n, k + b]),
            b=cd.Symmetric("B"),
        )
        return cd.sum(lambda n, b: w[b] * np.conj(rho[n, b]) * rho[n, b])

    def mixture(x, m, p):
        density = cd.tensor(lambda i: cd.sum(lambda k: p[k] * np.exp(-cd.sum(lambda d: (x[i, d] - m[k, d]) ** 2))))
        return cd.sum(lambda i: np.log(density[i]))

    def conv(w, x):
        return np.tanh(cd.tensor(lambda i: cd.sum(lambda k: w[k] * x[i + k]), i=x.shape[0] - 2))

    def ising(m, J, h):
        def entropy(p):
            return p * np.log(p)

        energy = cd.sum(lambda i: -J[i] * m[i] * m[i + 1] - h[i] * m[i])
        return energy + cd.sum(lambda i: entropy((1 + m[i]) / 2) + entropy((1 - m[i]) / 2))

    matrix, K, B = cd.Space("n", "n"), cd.Cyclic("K"), cd.Symmetric("B")
    R = cd.Space(*"NNNN", dtype=c, symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = conj(J[q,p,s,r])"])
    S = cd.Space("N", "N", K, K, dtype=c, symmetry=["S[p,q,k,l] = conj(S[q,p,l,k])"])
    site = cd.Space("D", "p", "D", dtype=c)
    chain = (cd.Space("p", "D", dtype=c), site, site, site, cd.Space("D", "p", dtype=c))
    number = cd.Space()
    return {
        "logistic map, 10 steps": lambda: cd.grad(program(logistic, number, number)),
        "logistic map, Hessian": lambda: cd.hessian(program(logistic, number, number)),
        "pendulum, 10 steps": lambda: cd.grad(program(pendulum(np), number, number)),
        "MPS energy": lambda: cd.value_and_grad(program(mps, *chain, cd.Space("p", "p", dtype=c)), "C"),
        "bundle adjustment": lambda: cd.grad(
            program(bundle, cd.Space(4, 3, 3), cd.Space(10, 3), cd.Space(20, 2)), ("cameras", "points")
        ),
        "Kalman filter, 8 steps": lambda: cd.value_and_grad(
            program(
                kalman(cd.inv, cd.logdet),
                matrix,
                cd.Space("m", "n"),
                matrix,
                cd.Space("m", "m"),
                cd.Space(8, "m"),
                n,
                matrix,
            ),
            "F",
        ),
        "coupled-cluster Lagrangian": lambda: cd.value_and_grad(
            program(
                lagrangian,
                cd.Space(*"vvoo"),
                cd.Space(*"vvvv"),
                cd.Space(*"ovvo"),
                cd.Space(*"vvoo"),
                cd.Space(*"vvoo"),
            ),
            ("t", "u"),
        ),
        "GP evidence, Hessian": lambda: cd.hessian(program(evidence, n, n, number, number), ("s", "w")),
        "64 tanh layers": lambda: cd.grad(program(layers(np), cd.Space(LAYERS, "n", "n"), n)),
        "attention": lambda: cd.grad(program(attention, matrix, matrix, matrix)),
        "Hartree-Fock": lambda: cd.grad(program(hartree_fock, R, cd.Space("N", "Ne", dtype=c)), "C"),
        "Wannier": lambda: cd.grad(
            program(wannier, cd.Space(B, symmetry=["w[b] = w[-b]"]), S, cd.Space("N", "n", K, dtype=c)), "U"
        ),
        "RNN, 6 steps": lambda: cd.grad(program(rnn(np), matrix, matrix, cd.Space(6, "n"))),
        "Gaussian mixture": lambda: cd.grad(
            program(mixture, cd.Space("n", "d"), cd.Space("k", "d"), cd.Space("k")), "m"
        ),
        "GP evidence": lambda: cd.value_and_grad(program(evidence, n, n, number, number), ("s", "w")),
        "shooting, 6 steps": lambda: cd.value_and_grad(program(shooting, number, number)),
        "neo-Hooke, Hessian": lambda: cd.hessian(program(neo_hooke(cd.logdet), cd.Space(3, 3), number, number)),
        "autoencoder": lambda: cd.grad(
            program(
                autoencoder(np),
                *map(cd.Space, "kkkn", "nnnk"),
                cd.Space("b", "n"),
                cd.Space("b", "k"),
            ),
            ("A", "B", "C", "D"),
        ),
        "Ising mean field": lambda: cd.grad(program(ising, cd.Space(K), cd.Space(K), cd.Space(K))),
        "principal components": lambda: cd.grad(program(components, cd.Space("m", "n"), cd.Space("n", "k")), "W"),
        "convolutions": lambda: cd.grad(program(convolutions(conv), *[cd.Space(3)] * 3, cd.Space(24)), ("u", "v", "w")),
        "LSTM, 3 steps": lambda: cd.grad(
            program(lstm(np), cd.Space(4, "k", "k"), cd.Space(4, "k", "n"), cd.Space(3, "n")), ("A", "B")
        ),
        "coupled cluster, quadratic": lambda: cd.value_and_grad(
            program(quadratic(cd.einsum), cd.Space(*"oovv"), cd.Space(*"vvoo"), cd.Space(*"vvoo")), ("t", "u")
        ),
        "logistic regression, Hessian": lambda: cd.hessian(
            program(regression(np), cd.Space("n"), cd.Space("m", "n"), cd.Space("m")), "w"
        ),
    }


def derived(name: str) -> tuple[str, Any]:
    """The derivative of a program by combdiff, as text and on the arrays."""
    derivative = derivatives()[name]()
    values, text = derivative(*arrays(name)), str(derivative)
    if _sums_delta(derivative.term):
        raise SystemExit(f"{name}: a Σ holds a δ of its index in\n{text}")
    return text, values


def _sums_delta(term: Any) -> bool:
    """Whether a Σ in a term holds a δ of an index that it binds."""
    from combdiff.ir import Delta, Sum, subterms

    sums = (node for node in subterms(term) if isinstance(node, Sum))
    return any(
        isinstance(part, Delta) and not part.free.isdisjoint(node.indices) for node in sums for part in subterms(node)
    )


# --- the arrays --------------------------------------------------------------------------------------------------


def arrays(name: str) -> tuple[Any, ...]:
    """Small arguments of a program, the same for both libraries."""
    rng = np.random.default_rng(0)

    def real(*shape: int) -> Any:
        return 0.3 * rng.normal(size=shape)

    def complex_(*shape: int) -> Any:
        return real(*shape) + 1j * real(*shape)

    def integrals(n: int) -> Any:
        J = complex_(n, n, n, n)
        J = J + J.transpose(2, 3, 0, 1)
        return J + J.transpose(1, 0, 3, 2).conj()

    def overlaps(n: int, points: int) -> Any:
        S = complex_(n, n, points, points)
        return S + S.transpose(1, 0, 3, 2).conj()

    makers: dict[str, Callable[[], tuple[Any, ...]]] = {
        "logistic map, 10 steps": lambda: (3.7, 0.3),
        "logistic map, Hessian": lambda: (3.7, 0.3),
        "pendulum, 10 steps": lambda: (0.1, 0.01),
        "MPS energy": lambda: (
            complex_(2, 3),
            complex_(3, 2, 3),
            complex_(3, 2, 3),
            complex_(3, 2, 3),
            complex_(3, 2),
            complex_(2, 2),
        ),
        "bundle adjustment": lambda: (real(4, 3, 3), 2 + real(10, 3), real(20, 2)),
        "Kalman filter, 8 steps": lambda: (
            real(3, 3),
            real(2, 3),
            np.eye(3),
            np.eye(2),
            real(8, 2),
            real(3),
            np.eye(3),
        ),
        "coupled-cluster Lagrangian": lambda: (
            real(4, 4, 2, 2),
            real(4, 4, 4, 4),
            real(2, 4, 4, 2),
            real(4, 4, 2, 2),
            real(4, 4, 2, 2),
        ),
        "GP evidence, Hessian": lambda: (real(8), real(8), 1.0, 0.5),
        "64 tanh layers": lambda: (real(LAYERS, 8, 8), real(8)),
        "attention": lambda: (real(6, 6), real(6, 6), real(6, 6)),
        "Hartree-Fock": lambda: (integrals(4), complex_(4, 2)),
        "Wannier": lambda: (np.array([1.0, 0.5, 1.0]), overlaps(3, 4), complex_(3, 2, 4)),
        "RNN, 6 steps": lambda: (real(4, 4), real(4, 4), real(6, 4)),
        "Gaussian mixture": lambda: (real(9, 2), real(3, 2), np.array([0.2, 0.3, 0.5])),
        "GP evidence": lambda: (real(8), real(8), 1.0, 0.5),
        "shooting, 6 steps": lambda: (0.7, 0.1),
        "neo-Hooke, Hessian": lambda: (np.eye(3) + real(3, 3) / 3, 1.2, 0.8),
        "autoencoder": lambda: (real(3, 5), real(3, 5), real(3, 5), real(5, 3), real(7, 5), real(7, 3)),
        "Ising mean field": lambda: (np.tanh(real(9)), real(9), real(9)),
        "principal components": lambda: (real(9, 5), real(5, 2)),
        "convolutions": lambda: (real(3), real(3), real(3), real(24)),
        "LSTM, 3 steps": lambda: (real(4, 4, 4), real(4, 4, 3), real(3, 3)),
        "coupled cluster, quadratic": lambda: (real(2, 2, 4, 4), real(4, 4, 2, 2), real(4, 4, 2, 2)),
        "logistic regression, Hessian": lambda: (real(4), real(9, 4), np.sign(real(9))),
    }
    return makers[name]()


# --- programs for both libraries ---------------------------------------------------------------------------------


def logistic(r, x):
    """x ← r x (1 − x)."""
    for _ in range(STEPS):
        x = r * x * (1 - x)
    return x


def pendulum(xp: Any, steps: int = STEPS) -> Callable[[Any, Any], Any]:
    """Semi-implicit Euler steps from the speed v, with the functions of a library."""

    def last(v, h):
        angle = 0.3
        for _ in range(steps):
            v = v - h * xp.sin(angle)
            angle = angle + h * v
        return angle**2

    return last


def layers(xp: Any) -> Callable[[Any, Any], Any]:
    """A network of tanh layers, with the functions of a library."""

    def network(W, x):
        for level in range(LAYERS):
            x = xp.tanh(W[level] @ x)
        return (x**2).sum()

    return network


def shooting(v, h):
    """How far a Duffing oscillator that starts with the speed v is from 1 after Runge-Kutta steps, squared."""

    def slope(x, v):
        return v, x - x**3 - v / 5

    x = 0.0
    for _ in range(6):
        a, b = slope(x, v)
        c, d = slope(x + h / 2 * a, v + h / 2 * b)
        e, f = slope(x + h / 2 * c, v + h / 2 * d)
        p, q = slope(x + h * e, v + h * f)
        x, v = x + h / 6 * (a + 2 * c + 2 * e + p), v + h / 6 * (b + 2 * d + 2 * f + q)
    return (x - 1) ** 2


def bundle(cameras, points, seen):
    """How far images of points by cameras are from where they were seen, squared."""
    total = 0.0
    for o in range(20):
        image = cameras[o % 4] @ points[o // 2]
        x, y, z = image[0], image[1], image[2]
        total = total + (x / z - seen[o, 0]) ** 2 + (y / z - seen[o, 1]) ** 2
    return total


def kalman(inv: Callable[[Any], Any], logdet: Callable[[Any], Any]) -> Callable[..., Any]:
    """The likelihood of eight measurements by a Kalman filter."""

    def likelihood(F, H, Q, R, z, m, P):
        value = 0.0
        for step in range(8):
            m, P = F @ m, F @ P @ F.T + Q
            S, r = H @ P @ H.T + R, z[step] - H @ m
            gain = P @ H.T @ inv(S)
            value = value + logdet(S) + r @ inv(S) @ r
            m, P = m + gain @ r, P - gain @ H @ P
        return value

    return likelihood


def rnn(xp: Any) -> Callable[..., Any]:
    """Six steps of a recurrent network."""

    def network(A, B, x):
        h = xp.tanh(B @ x[0])
        for step in range(1, 6):
            h = xp.tanh(A @ h + B @ x[step])
        return (h**2).sum()

    return network


def neo_hooke(logdet: Callable[[Any], Any]) -> Callable[..., Any]:
    """The energy of a compressible rubber that is deformed."""

    def energy(F, mu, la):
        volume = logdet(F)
        return mu / 2 * ((F * F).sum() - 3) - mu * volume + la / 2 * volume**2

    return energy


def quadratic(einsum: Callable[..., Any]) -> Callable[..., Any]:
    """What is quadratic in the amplitudes of coupled cluster theory, in a Lagrangian."""

    def lagrangian(V, t, u):
        ring = einsum("acik,klcd,dblj->abij", t, V, t)
        ladder = einsum("abkl,klcd,cdij->abij", t, V, t)
        return einsum("abij,abij->", u, ring + ladder / 4) + einsum("ijab,abij->", V, t) / 4

    return lagrangian


def components(X, W):
    """What is left of data after their projection, with weights for columns that are not orthonormal."""
    rest = X - X @ W @ W.T
    return (rest * rest).sum()


def autoencoder(xp: Any) -> Callable[..., Any]:
    """The loss of a variational autoencoder at given noise."""

    def loss(A, B, C, D, x, noise):
        hidden = xp.tanh(x @ A.T)
        mean, spread = hidden + x @ B.T, x @ C.T
        found = xp.tanh((mean + xp.exp(spread) * noise) @ D.T)
        divergence = (xp.exp(2 * spread) + mean**2 - 1 - 2 * spread).sum() / 2
        return ((x - found) ** 2).sum() + divergence

    return loss


def convolutions(layer: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Three convolutions of one axis, each after the other."""

    def network(u, v, w, x):
        return (layer(w, layer(v, layer(u, x))) ** 2).sum()

    return network


def lstm(xp: Any) -> Callable[..., Any]:
    """Steps of a network with gates."""

    def network(A, B, x):
        def gates(h, step):
            return [1 / (1 + xp.exp(-(A[n] @ h + B[n] @ x[step]))) for n in range(3)]

        h = cell = xp.tanh(B[3] @ x[0])
        for step in range(3):
            forget, enter, leave = gates(h, step)
            cell = forget * cell + enter * xp.tanh(A[3] @ h + B[3] @ x[step])
            h = leave * xp.tanh(cell)
        return (h**2).sum()

    return network


def regression(xp: Any) -> Callable[..., Any]:
    """The loss of a logistic regression with a penalty."""

    def loss(w, X, y):
        return xp.log(1 + xp.exp(-y * (X @ w))).sum() + (w**2).sum() / 2

    return loss


def compiled(name: str) -> tuple[str, Any]:
    """The same by JAX, compiled and computed once; gradients as combdiff has them, conjugates of JAX's."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    einsum, conj = jnp.einsum, jnp.conj

    def logdet(A):
        return jnp.linalg.slogdet(A)[1]

    def mps(A, B, C, D, E, W):
        left = einsum("ic,jd,ij->cd", conj(A), A, W)
        for site in (B, C, D):
            left = einsum("ab,aic,bjd,ij->cd", left, conj(site), site, W)
        return jnp.real(einsum("ab,ai,bj,ij->", left, conj(E), E, W))

    def lagrangian(V, W, X, t, u):
        residual = V + einsum("abcd,cdij->abij", W, t) / 2 + einsum("kbcj,acik->abij", X, t)
        return einsum("abij,abij->", V, t) / 4 + einsum("abij,abij->", u, residual)

    def evidence(x, y, s, w):
        K = s * jnp.exp(-((x[:, None] - x[None, :]) ** 2) / w) + jnp.eye(len(x))
        return y @ jnp.linalg.inv(K) @ y + logdet(K)

    def attention(Q, K, V):
        weights = jnp.exp(Q @ K.T)
        return ((weights / weights.sum(axis=1, keepdims=True)) @ V).sum()

    def hartree_fock(J, C):
        return jnp.real(einsum("pi,qi,rj,sj,pqrs->", conj(C), C, conj(C), C, J))

    def wannier(w, S, U):
        total, points = 0.0, S.shape[2]
        for place, b in enumerate(range(-1, 2)):
            near = (jnp.arange(points) + b) % points
            links = S[:, :, jnp.arange(points), near]
            rho = einsum("pnk,pqk,qnk->n", conj(U), links, U[:, :, near])
            total = total + w[place] * jnp.real(conj(rho) * rho).sum()
        return total

    def mixture(x, m, p):
        distances = ((x[:, None, :] - m[None, :, :]) ** 2).sum(axis=2)
        return jnp.log((p * jnp.exp(-distances)).sum(axis=1)).sum()

    def conv(w, x):
        return jnp.tanh(jnp.convolve(x, w[::-1], mode="valid"))

    def ising(m, J, h):
        energy = -(J * m * jnp.roll(m, -1) + h * m).sum()
        shares = jnp.concatenate([(1 + m) / 2, (1 - m) / 2])
        return energy + (shares * jnp.log(shares)).sum()

    grad, both, hessian = jax.grad, jax.value_and_grad, jax.hessian
    cases: dict[str, Callable[..., Any]] = {
        "logistic map, 10 steps": grad(logistic),
        "logistic map, Hessian": hessian(logistic),
        "pendulum, 10 steps": grad(pendulum(jnp)),
        "MPS energy": both(mps, 2),
        "bundle adjustment": grad(bundle, (0, 1)),
        "Kalman filter, 8 steps": both(kalman(jnp.linalg.inv, logdet), 0),
        "coupled-cluster Lagrangian": both(lagrangian, (3, 4)),
        "GP evidence, Hessian": hessian(evidence, (2, 3)),
        "64 tanh layers": grad(layers(jnp)),
        "attention": grad(attention),
        "Hartree-Fock": grad(hartree_fock, 1),
        "Wannier": grad(wannier, 2),
        "RNN, 6 steps": grad(rnn(jnp)),
        "Gaussian mixture": grad(mixture, 1),
        "GP evidence": both(evidence, (2, 3)),
        "shooting, 6 steps": both(shooting),
        "neo-Hooke, Hessian": hessian(neo_hooke(logdet)),
        "autoencoder": grad(autoencoder(jnp), (0, 1, 2, 3)),
        "Ising mean field": grad(ising),
        "principal components": grad(components, 1),
        "convolutions": grad(convolutions(conv), (0, 1, 2)),
        "LSTM, 3 steps": grad(lstm(jnp), (0, 1)),
        "coupled cluster, quadratic": both(quadratic(einsum), (1, 2)),
        "logistic regression, Hessian": hessian(regression(jnp)),
    }
    if not name:
        return "\n".join(cases), ()
    values = jax.block_until_ready(jax.jit(cases[name])(*arrays(name)))
    return str(values), jax.tree.map(jnp.conj, values)


# --- measuring -----------------------------------------------------------------------------------------------------


def flat(values: Any) -> np.ndarray:
    """All numbers of a result."""
    if isinstance(values, tuple | list):
        return np.concatenate([flat(value) for value in values])
    return np.asarray(values).reshape(-1).astype(complex)


def cold(library: str, name: str, repeats: int) -> tuple[float, np.ndarray]:
    """The median CPU seconds of fresh processes, after one that fills the caches of the file system; the values."""
    spent = []
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        values = os.path.join(folder, "values.npy")
        for _ in range(repeats + 1):
            command = [sys.executable, __file__, "--one", library, name, "--values", values]
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            if done.returncode:
                raise SystemExit(f"{name} by {library} failed:\n{done.stderr}")
            spent.append(float(done.stdout.splitlines()[-1]))
        return statistics.median(spent[1:] or spent), np.load(values)


def table(names: list[str], repeats: int, with_jax: bool) -> None:
    """A line for each program: seconds by combdiff, by JAX, their ratio, and how far the values are apart."""
    print(f"{'program':<30} {'combdiff':>9} {'jax':>7} {'ratio':>6} {'apart':>8}")
    for name in names:
        ours, values = cold("combdiff", name, repeats)
        if not with_jax:
            print(f"{name:<30} {ours:9.2f}", flush=True)
            continue
        theirs, expected = cold("jax", name, repeats)
        apart = abs(values - expected).max() / abs(expected).max()
        print(f"{name:<30} {ours:9.2f} {theirs:7.2f} {ours / theirs:6.2f} {apart:8.0e}", flush=True)
        if not apart < CLOSE:
            raise SystemExit(f"{name}: the values are {apart:.0e} apart")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jax", action="store_true", help="beside JAX, if it is installed")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("LIBRARY", "NAME"), help="one derivation, its seconds printed last")
    parser.add_argument("--values", help="a file for the values of that derivation")
    given = parser.parse_args()
    if given.one:
        library, name = given.one
        text, values = derived(name) if library == "combdiff" else compiled(name)
        seconds = time.process_time()
        if given.values:
            np.save(given.values, flat(values))
        print(text)
        print(seconds)
    else:
        names = given.names or list(derivatives())
        table(names, given.repeats, given.jax and importlib.util.find_spec("jax") is not None)


if __name__ == "__main__":
    main()
