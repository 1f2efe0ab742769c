"""How long derivations take from a cold start, beside `jax.jit` where the same program is written for JAX.

Every figure comes from a fresh process with compiled modules on disk: CPU seconds (of all threads) from the first
import to the first value of the derivative on the same small arrays, for combdiff also as text. Names on the command
line choose programs.
Run: python benchmarks/latency.py [--jax] [--repeats 3] [name …]
"""

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

STEPS, LAYERS = 10, 64


def derived(name: str) -> str:
    """The derivative of a program by combdiff, as text."""
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

    def bundle(cameras, points, seen):
        total = 0
        for o in range(20):
            image = cameras[o % 4] @ points[o // 2]
            x, y, z = image[0], image[1], image[2]
            total = total + (x / z - seen[o, 0]) ** 2 + (y / z - seen[o, 1]) ** 2
        return total

    def kalman(F, H, Q, R, z, m, P):
        value = 0
        for step in range(8):
            m, P = F @ m, F @ P @ F.T + Q
            S, r = H @ P @ H.T + R, z[step] - H @ m
            gain = P @ H.T @ cd.inv(S)
            value = value + cd.logdet(S) + r @ cd.inv(S) @ r
            m, P = m + gain @ r, P - gain @ H @ P
        return value

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

    def rnn(A, B, x):
        h = np.tanh(B @ x[0])
        for step in range(1, 6):
            h = np.tanh(A @ h + B @ x[step])
        return (h**2).sum()

    def mixture(x, m, p):
        density = cd.tensor(lambda i: cd.sum(lambda k: p[k] * np.exp(-cd.sum(lambda d: (x[i, d] - m[k, d]) ** 2))))
        return cd.sum(lambda i: np.log(density[i]))

    matrix, K, B = cd.Space("n", "n"), cd.Cyclic("K"), cd.Symmetric("B")
    R = cd.Space(*"NNNN", dtype=c, symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = conj(J[q,p,s,r])"])
    S = cd.Space("N", "N", K, K, dtype=c, symmetry=["S[p,q,k,l] = conj(S[q,p,l,k])"])
    site = cd.Space("D", "p", "D", dtype=c)
    chain = (cd.Space("p", "D", dtype=c), site, site, site, cd.Space("D", "p", dtype=c))
    number = cd.Space()
    cases: dict[str, Callable[[], Any]] = {
        "logistic map, 10 steps": lambda: cd.grad(program(logistic, number, number)),
        "logistic map, Hessian": lambda: cd.hessian(program(logistic, number, number)),
        "pendulum, 10 steps": lambda: cd.grad(program(pendulum(np), number, number)),
        "MPS energy": lambda: cd.value_and_grad(program(mps, *chain, cd.Space("p", "p", dtype=c)), "C"),
        "bundle adjustment": lambda: cd.grad(
            program(bundle, cd.Space(4, 3, 3), cd.Space(10, 3), cd.Space(20, 2)), ("cameras", "points")
        ),
        "Kalman filter, 8 steps": lambda: cd.value_and_grad(
            program(kalman, matrix, cd.Space("m", "n"), matrix, cd.Space("m", "m"), cd.Space(8, "m"), n, matrix), "F"
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
        "RNN, 6 steps": lambda: cd.grad(program(rnn, matrix, matrix, cd.Space(6, "n"))),
        "Gaussian mixture": lambda: cd.grad(
            program(mixture, cd.Space("n", "d"), cd.Space("k", "d"), cd.Space("k")), "m"
        ),
    }
    if not name:
        return "\n".join(cases)
    derivative = cases[name]()
    derivative(*arrays(name))
    return str(derivative)


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
    }
    return makers[name]()


# --- programs for both libraries ---------------------------------------------------------------------------------


def logistic(r, x):
    """x ← r x (1 − x)."""
    for _ in range(STEPS):
        x = r * x * (1 - x)
    return x


def pendulum(xp: Any) -> Callable[[Any, Any], Any]:
    """Semi-implicit Euler steps from the speed v, with the functions of a library."""

    def last(v, h):
        angle = 0.3
        for _ in range(STEPS):
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


def compiled(name: str) -> str:
    """The derivative of the same program by JAX, compiled and computed once."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    einsum, conj = jnp.einsum, jnp.conj

    def mps(A, B, C, D, E, W):
        left = einsum("ic,jd,ij->cd", conj(A), A, W)
        for site in (B, C, D):
            left = einsum("ab,aic,bjd,ij->cd", left, conj(site), site, W)
        return jnp.real(einsum("ab,ai,bj,ij->", left, conj(E), E, W))

    def bundle(cameras, points, seen):
        total = 0.0
        for o in range(20):
            x, y, z = cameras[o % 4] @ points[o // 2]
            total = total + (x / z - seen[o, 0]) ** 2 + (y / z - seen[o, 1]) ** 2
        return total

    def kalman(F, H, Q, R, z, m, P):
        value = 0.0
        for step in range(8):
            m, P = F @ m, F @ P @ F.T + Q
            S, r = H @ P @ H.T + R, z[step] - H @ m
            gain = P @ H.T @ jnp.linalg.inv(S)
            value = value + jnp.linalg.slogdet(S)[1] + r @ jnp.linalg.inv(S) @ r
            m, P = m + gain @ r, P - gain @ H @ P
        return value

    def lagrangian(V, W, X, t, u):
        residual = V + einsum("abcd,cdij->abij", W, t) / 2 + einsum("kbcj,acik->abij", X, t)
        return einsum("abij,abij->", V, t) / 4 + einsum("abij,abij->", u, residual)

    def evidence(x, y, s, w):
        K = s * jnp.exp(-((x[:, None] - x[None, :]) ** 2) / w) + jnp.eye(len(x))
        return y @ jnp.linalg.inv(K) @ y + jnp.linalg.slogdet(K)[1]

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

    def rnn(A, B, x):
        h = jnp.tanh(B @ x[0])
        for step in range(1, 6):
            h = jnp.tanh(A @ h + B @ x[step])
        return (h**2).sum()

    def mixture(x, m, p):
        distances = ((x[:, None, :] - m[None, :, :]) ** 2).sum(axis=2)
        return jnp.log((p * jnp.exp(-distances)).sum(axis=1)).sum()

    grad, both, hessian = jax.grad, jax.value_and_grad, jax.hessian
    cases: dict[str, Callable[..., Any]] = {
        "logistic map, 10 steps": grad(logistic),
        "logistic map, Hessian": hessian(logistic),
        "pendulum, 10 steps": grad(pendulum(jnp)),
        "MPS energy": both(mps, 2),
        "bundle adjustment": grad(bundle, (0, 1)),
        "Kalman filter, 8 steps": both(kalman, 0),
        "coupled-cluster Lagrangian": both(lagrangian, (3, 4)),
        "GP evidence, Hessian": hessian(evidence, (2, 3)),
        "64 tanh layers": grad(layers(jnp)),
        "attention": grad(attention),
        "Hartree-Fock": grad(hartree_fock, 1),
        "Wannier": grad(wannier, 2),
        "RNN, 6 steps": grad(rnn),
        "Gaussian mixture": grad(mixture, 1),
    }
    if not name:
        return "\n".join(cases)
    return str(jax.block_until_ready(jax.jit(cases[name])(*arrays(name))))


# --- measuring -----------------------------------------------------------------------------------------------------


def cold(library: str, name: str, repeats: int) -> float:
    """The median CPU seconds of fresh processes, after one that fills the caches of the file system."""
    spent = []
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(repeats + 1):
        command = [sys.executable, __file__, "--one", library, name]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise SystemExit(f"{name} by {library} failed:\n{done.stderr}")
        spent.append(float(done.stdout.splitlines()[-1]))
    return statistics.median(spent[1:] or spent)


def table(names: list[str], repeats: int, with_jax: bool) -> None:
    """A line for each program: seconds by combdiff, by JAX, and their ratio."""
    twins = compiled("").splitlines() if with_jax else []
    print(f"{'program':<30} {'combdiff':>9} {'jax':>7} {'ratio':>6}")
    for name in names:
        ours = cold("combdiff", name, repeats)
        if name in twins:
            theirs = cold("jax", name, repeats)
            print(f"{name:<30} {ours:9.2f} {theirs:7.2f} {ours / theirs:6.2f}", flush=True)
        else:
            print(f"{name:<30} {ours:9.2f}", flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jax", action="store_true", help="beside JAX, if it is installed")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("LIBRARY", "NAME"), help="one derivation, its seconds printed last")
    given = parser.parse_args()
    if given.one:
        library, name = given.one
        print(derived(name) if library == "combdiff" else compiled(name))
        print(time.process_time())
    else:
        names = given.names or derived("").splitlines()
        table(names, given.repeats, given.jax and importlib.util.find_spec("jax") is not None)


if __name__ == "__main__":
    main()
