"""How long derivations take, and how they grow: many symmetries, many factors, many layers, and cold starts beside JAX.

The first table is made in one process after a first gradient, so that imports are done: seconds, terms of the result
and the ratio to the first row of its group. The second comes from fresh processes that alternate: import, derive,
compile and compute value and gradient once, by combdiff and by `jax.jit(jax.value_and_grad)`; medians are compared.
Run: python benchmarks/derivation.py [repeats]
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

import combdiff as cd

REPULSION = cd.Space(*"NNNN", symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = J[q,p,r,s]"])


def ring(length: int) -> cd.Program:
    """Σ J[a0,b0,a1,b1] J[a1,b1,a2,b2] … J[…,a0,b0]: two-electron tensors of 8-fold symmetry in a ring."""
    pairs = [(f"a{n}", f"b{n}") for n in range(length)]
    factors = [f"J[{', '.join((*pairs[n], *pairs[(n + 1) % length]))}]" for n in range(length)]
    names = ", ".join(name for pair in pairs for name in pair)
    scope = {"cd": cd, "REPULSION": REPULSION}
    body = eval(f"lambda J: cd.sum(lambda {names}: {' * '.join(factors)})", scope)
    body.__annotations__["J"] = REPULSION
    return cd.program(body)


def product(length: int) -> cd.Program:
    """Π_n sin((n + 1)·x): as many different factors as that."""

    @cd.program
    def factors(x: cd.Space()):
        result = cd.sin(x)
        for n in range(1, length):
            result = result * cd.sin((n + 1) * x)
        return result

    return factors


def layers(depth: int) -> cd.Program:
    """A network of tanh layers with one weight matrix each, read from a tensor of order 3."""

    @cd.program
    def network(W: cd.Space(depth, "n", "n"), x: cd.Space("n")):
        y = x
        for level in range(depth):
            y = np.tanh(cd.tensor(lambda i: cd.sum(lambda j: W[level, i, j] * y[j]), i="n"))  # noqa: B023  called at once
        return cd.sum(lambda i: y[i] ** 2)

    return network


AMPLITUDES = cd.Space("v", "v", "o", "o", symmetry=["t[a,b,i,j] = -t[b,a,i,j]", "t[a,b,i,j] = -t[a,b,j,i]"])
OOVV = cd.Space("o", "o", "v", "v", symmetry=["V[i,j,a,b] = -V[j,i,a,b]", "V[i,j,a,b] = -V[i,j,b,a]"])
VVVV = cd.Space(*"vvvv", symmetry=["V[a,b,c,d] = -V[b,a,c,d]", "V[a,b,c,d] = -V[a,b,d,c]", "V[a,b,c,d] = V[c,d,a,b]"])
OOOO = cd.Space(*"oooo", symmetry=["V[i,j,k,l] = -V[j,i,k,l]", "V[i,j,k,l] = -V[i,j,l,k]", "V[i,j,k,l] = V[k,l,i,j]"])
OVVO = cd.Space("o", "v", "v", "o")


@cd.program
def doubles_energy(V: OOVV, t: AMPLITUDES):
    """The correlation energy of coupled-cluster doubles, ¼ Σ V[i,j,a,b] t[a,b,i,j]."""
    return cd.sum(lambda i, j, a, b: V[i, j, a, b] * t[a, b, i, j]) / 4


@cd.program
def doubles_residual(V: OOVV, W: VVVV, Q: OOOO, X: OVVO, t: AMPLITUDES):
    """The two-particle part of the doubles residual in spin orbitals (Shavitt and Bartlett, eq. 9.126)."""

    def ring_term(a, b, i, j):
        return cd.sum(lambda k, c: X[k, b, c, j] * t[a, c, i, k])

    def exchange(a, b, i, j):
        return cd.sum(lambda k, l, c, d: V[k, l, c, d] * t[a, c, i, k] * t[b, d, j, l])  # noqa: E741

    def ladder(a, b, i, j):
        return cd.sum(lambda k, l, c, d: V[k, l, c, d] * t[a, c, i, j] * t[b, d, k, l])  # noqa: E741

    def hole(a, b, i, j):
        return cd.sum(lambda k, l, c, d: V[k, l, c, d] * t[a, b, i, k] * t[c, d, j, l])  # noqa: E741

    return cd.tensor(
        lambda a, b, i, j: (
            V[i, j, a, b]
            + cd.sum(lambda c, d: W[a, b, c, d] * t[c, d, i, j]) / 2
            + cd.sum(lambda k, l: Q[k, l, i, j] * t[a, b, k, l]) / 2  # noqa: E741
            + ring_term(a, b, i, j)
            - ring_term(b, a, i, j)
            - ring_term(a, b, j, i)
            + ring_term(b, a, j, i)
            + cd.sum(lambda k, l, c, d: V[k, l, c, d] * t[c, d, i, j] * t[a, b, k, l]) / 4  # noqa: E741
            + exchange(a, b, i, j)
            - exchange(a, b, j, i)
            - (ladder(a, b, i, j) - ladder(b, a, i, j)) / 2
            - (hole(a, b, i, j) - hole(a, b, j, i)) / 2
        )
    )


CASES: dict[str, tuple[str, Callable[[], cd.Program]]] = {
    **{f"ring of {n}": ("gradient of a ring", lambda n=n: cd.grad(ring(n), "J")) for n in (2, 4, 6, 8)},
    **{f"{n} factors": ("gradient of a product", lambda n=n: cd.grad(product(n), "x")) for n in (10, 20, 30)},
    **{f"{n} layers": ("gradient of a network", lambda n=n: cd.grad(layers(n), "W")) for n in (16, 32, 64)},
    "energy": ("coupled-cluster doubles, by t", lambda: cd.grad(doubles_energy, "t")),
    "residual, pushforward": ("coupled-cluster doubles, by t", lambda: cd.pushforward(doubles_residual, "t")),
    "residual, pullback": ("coupled-cluster doubles, by t", lambda: cd.pullback(doubles_residual, "t")),
}

HARTREE_FOCK = """
import time
start = time.perf_counter()
import numpy as np
rng = np.random.default_rng(0)
N, Ne = 12, 3
def noise(*shape): return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
J, C = noise(N, N, N, N), noise(N, Ne)
J = J + J.transpose(2, 3, 0, 1)
J = J + J.transpose(1, 0, 3, 2).conj()
"""
WANNIER = """
import time
start = time.perf_counter()
import numpy as np
rng = np.random.default_rng(0)
N, K, B = 6, 8, 1
def noise(*shape): return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
S, U, w = noise(N, N, K, K), noise(N, N, K), np.ones(2 * B + 1)
S = S + S.transpose(1, 0, 3, 2).conj()
"""
COLD = {
    ("Hartree-Fock", "combdiff"): HARTREE_FOCK
    + """
import combdiff as cd
R = cd.Space(*"NNNN", dtype=complex, symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = conj(J[q,p,s,r])"])
@cd.program
def energy(J: R, C: cd.Space("N", "Ne", dtype=complex)):
    return cd.sum(lambda i, j, p, q, r, s:
                  cd.conj(C[p, i]) * C[q, i] * cd.conj(C[r, j]) * C[s, j] * J[p, q, r, s])
value, gradient = cd.value_and_grad(energy, "C")(J, C)
print(time.perf_counter() - start, value.real, np.sum(np.abs(gradient)))
""",
    ("Hartree-Fock", "jax"): HARTREE_FOCK
    + """
import jax
import jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
def energy(C):
    return jnp.einsum("pi,qi,rj,sj,pqrs->", C.conj(), C, C.conj(), C, J, optimize=True).real
value, gradient = jax.jit(jax.value_and_grad(energy))(C)
gradient.block_until_ready()
print(time.perf_counter() - start, value, np.sum(np.abs(gradient)))
""",
    ("Wannier", "combdiff"): WANNIER
    + """
import combdiff as cd
k, b = cd.Cyclic("K"), cd.Symmetric("B")
@cd.program
def spread(w: cd.Space(b, symmetry=["w[b] = w[-b]"]),
           S: cd.Space("N", "N", k, k, dtype=complex, symmetry=["S[p,q,k,l] = conj(S[q,p,l,k])"]),
           U: cd.Space("N", "n", k, dtype=complex)):
    rho = cd.tensor(lambda n, b: cd.sum(
        lambda k, p, q: cd.conj(U[p, n, k]) * S[p, q, k, k + b] * U[q, n, k + b]), b=cd.Symmetric("B"))
    return cd.sum(lambda n, b: w[b] * cd.conj(rho[n, b]) * rho[n, b])
value, gradient = cd.value_and_grad(spread, "U")(w, S, U)
print(time.perf_counter() - start, value.real, np.sum(np.abs(gradient)))
""",
    ("Wannier", "jax"): WANNIER
    + """
import jax
import jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
near = (np.arange(K)[:, None] + np.arange(-B, B + 1)) % K
T = S[:, :, np.arange(K)[:, None], near]
def spread(U):
    rho = jnp.einsum("pnk,pqkb,qnkb->nb", U.conj(), T, U[:, :, near], optimize=True)
    return jnp.sum(w * jnp.abs(rho) ** 2)
value, gradient = jax.jit(jax.value_and_grad(spread))(U)
gradient.block_until_ready()
print(time.perf_counter() - start, value, np.sum(np.abs(gradient)))
""",
}


def warm_table() -> None:
    """Derivations in this process."""
    cd.grad(ring(2), "J")  # imports and reads the rules
    first: dict[str, float] = {}
    print(f"{'derivation':<32} {'':<24} {'seconds':>8} {'ratio':>7} {'lines':>6}")
    for name, (group, derive) in CASES.items():
        start = time.perf_counter()
        result = derive()
        spent = time.perf_counter() - start
        unit = first.setdefault(group, spent)
        print(f"{group:<32} {name:<24} {spent:8.3f} {spent / unit:7.1f} {len(str(result).splitlines()):6d}")


def cold_table(repeats: int) -> None:
    """Fresh processes, alternating."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    runs: dict[tuple[str, str], list[float]] = {case: [] for case in COLD}
    results: dict[tuple[str, str], list[float]] = {}
    for _ in range(repeats + 1):
        for case, code in COLD.items():
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
            if done.returncode:
                raise SystemExit(f"{' '.join(case)} failed:\n{done.stderr}")
            spent, *numbers = map(float, done.stdout.split())
            runs[case].append(spent)
            results[case] = numbers
    print(f"\n{'cold start to value and gradient':<34} {'combdiff':>9} {'jax':>9} {'ratio':>7}")
    for name in dict.fromkeys(name for name, _ in COLD):
        ours, theirs = results[name, "combdiff"], results[name, "jax"]
        if any(abs(a - b) > 1e-8 * abs(b) for a, b in zip(ours, theirs, strict=True)):
            raise SystemExit(f"{name}: combdiff gives {ours}, jax {theirs}")
        one, other = (statistics.median(runs[name, library][1:]) for library in ("combdiff", "jax"))
        print(f"{name:<34} {one:9.3f} {other:9.3f} {one / other:7.2f}")


if __name__ == "__main__":
    warm_table()
    cold_table(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
