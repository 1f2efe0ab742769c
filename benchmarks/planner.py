"""Planned programs against hand-written NumPy, JAX and PyTorch, side by side in one process.

    python benchmarks/planner.py [--quick] [--repeats N] [--cpu] [--chart FILE.svg]

Timed are Hartree-Fock value and gradient (Coulomb and exchange energy), those of the Wannier spread, and the Hessian of
a symmetric quartic form: combdiff on NumPy, which is what is compared, and on JAX; a floor written by hand in NumPy;
and, where they are installed, jax.jit and PyTorch, all in 64 bits. Every result is compared with the floor's before
anything is timed. Repeats are interleaved, so that a busy spell of the machine falls on all; printed are medians and
their ratios to the floor.
`--chart` draws the ratios: docs/pictures/benchmarks.svg is made by it.

Then what a call costs beyond its kernels, and peak memory within limits. Contraction orders are counted in `orders.py`.

Every library gets one thread: they divide work among threads in different ways, and on a busy machine of few cores it
is that which one would measure.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import side_by_side

import combdiff as cd
from combdiff.pictures import Picture, bars

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from wannier import localisation as spread

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)
LONGEST = 6.0  # of the ratios that are drawn
DRAWN = (", N = 24", ", Nk = 64", ", n = 20")  # one size of each problem
JAX, TORCH = (importlib.util.find_spec(name) is not None for name in ("jax", "torch"))

Integrals = cd.Space(
    "N", "N", "N", "N", dtype=complex, symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = conj(J[q,p,s,r])"]
)
Quartic = cd.Space("n", "n", "n", "n", symmetry=["J[i,j,k,l] = J[j,i,k,l]", "J[i,j,k,l] = J[j,k,l,i]"])


@cd.program
def coulomb(J: Integrals, C: cd.Space("N", "Ne", dtype=complex)):
    return cd.sum(lambda i, j, p, q, r, s: cd.conj(C[p, i]) * C[q, i] * cd.conj(C[r, j]) * C[s, j] * J[p, q, r, s])


@cd.program
def exchange(J: Integrals, C: cd.Space("N", "Ne", dtype=complex)):
    return cd.sum(lambda i, j, p, q, r, s: cd.conj(C[p, i]) * C[q, j] * cd.conj(C[r, j]) * C[s, i] * J[p, q, r, s])


@cd.program
def quartic(J: Quartic, x: cd.Space("n")):
    return cd.sum(lambda i, j, k, m: J[i, j, k, m] * x[i] * x[j] * x[k] * x[m])


@cd.program
def apply(A: cd.Space("n", "n"), x: cd.Space("n")):
    return A @ x


@dataclass(frozen=True)
class Problem:
    """One result computed in several ways, by name; the first is the floor. `partial` ways do not give all of it."""

    name: str
    ways: dict[str, Callable[[], Any]]
    partial: tuple[str, ...] = ()


def gaussian(*shape: int) -> Array:
    """Complex normal numbers."""
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


def integrals(N: int) -> Array:
    """Random two-electron integrals, stored row by row: NumPy's sum of an array and its transpose may not be."""
    J = gaussian(N, N, N, N)
    J = J + J.transpose(2, 3, 0, 1)
    return np.ascontiguousarray(J + J.transpose(1, 0, 3, 2).conj())


# --- Hartree-Fock --------------------------------------------------------------------------------------------------


COULOMB, EXCHANGE = "pqrs,sr->pq", "pqrs,qr->ps"  # of the integrals with the density; the second has no layout at hand


def hartree_fock(N: int, Ne: int = 6, term: str = COULOMB) -> Problem:
    """The Coulomb or the exchange energy and its gradient. The floor of the first passes over J once."""
    J, C = integrals(N), gaussian(N, Ne)
    energy = coulomb if term == COULOMB else exchange
    both = cd.value_and_grad(energy, wrt="C")

    def floor() -> Any:
        density = C @ C.conj().T
        if term == COULOMB:
            G = (J.reshape(N * N, N * N) @ density.T.reshape(-1)).reshape(N, N) @ C
        else:
            G = np.einsum(term, J, density) @ C
        return np.vdot(C, G).real, 4 * G

    ways: dict[str, Callable[[], Any]] = {
        "NumPy by hand": floor,
        "combdiff, value alone": lambda: energy(J, C),
        "combdiff": lambda: both(J, C),
    }
    if JAX:
        ways |= _hartree_fock_jax(both, J, C, term)
    if TORCH:
        ways |= _hartree_fock_torch(J, C, term)
    name = "Hartree-Fock" if term == COULOMB else "exchange"
    return Problem(f"{name} value and gradient, N = {N}", ways, ("combdiff, value alone",))


def _orbitals(term: str) -> str:
    """The energy in orbitals, as one einsum."""
    return "pi,qi,rj,sj,pqrs->" if term == COULOMB else "pi,qj,rj,si,pqrs->"


def _hartree_fock_jax(both: cd.Program, J: Array, C: Array, term: str) -> dict[str, Callable[[], Any]]:
    import jax
    import jax.numpy as jnp

    def einsum(J: Any, C: Any) -> Any:
        return jnp.einsum(_orbitals(term), C.conj(), C, C.conj(), C, J).real

    def staged(J: Any, C: Any) -> Any:
        density = C @ C.conj().T
        fock = jnp.einsum(term, J, density)
        return jnp.einsum("pq,qp->", fock, density).real

    def run(function: Callable[..., Any], turn: bool) -> Callable[[], Any]:
        compiled, arrays = jax.jit(function), (jnp.asarray(J), jnp.asarray(C))
        conjugate = jax.jit(jnp.conj)  # to the convention of combdiff; a pass over the small gradient
        return lambda: jax.block_until_ready(_turned(compiled(*arrays), conjugate if turn else None))

    return {
        "combdiff on JAX": run(both, False),
        "jax.jit of the einsum": run(jax.value_and_grad(einsum, argnums=1), True),
        "jax.jit of a staged form": run(jax.value_and_grad(staged, argnums=1), True),
    }


def _turned(result: tuple[Any, Any], conjugate: Callable[[Any], Any] | None) -> tuple[Any, Any]:
    return (result[0], conjugate(result[1])) if conjugate else result


def _hartree_fock_torch(J: Array, C: Array, term: str) -> dict[str, Callable[[], Any]]:
    import torch

    integrals, orbitals = torch.from_numpy(J), torch.from_numpy(C).requires_grad_()

    def einsum() -> Any:
        D = orbitals.conj()
        energy = torch.einsum(_orbitals(term), D, orbitals, D, orbitals, integrals).real
        return energy.detach(), torch.autograd.grad(energy, orbitals)[0]

    return {"PyTorch einsum": einsum}


# --- Wannier functions ---------------------------------------------------------------------------------------------


def wannier(Nk: int, N: int = 8, n: int = 4, bound: int = 1) -> Problem:
    """The spread and its gradient. The floor gathers S and U at k + b once."""
    S = gaussian(N, N, Nk, Nk)
    S = np.ascontiguousarray(S + S.transpose(1, 0, 3, 2).conj())
    w = RNG.random(2 * bound + 1)
    w = w + w[::-1]
    U = gaussian(N, n, Nk)
    k = np.arange(Nk)[:, None]
    ahead = (k + np.arange(-bound, bound + 1)) % Nk
    both = cd.value_and_grad(spread, wrt="U")

    def floor() -> Any:
        M = S[:, :, k, ahead].transpose(2, 3, 0, 1) @ U[:, :, ahead].transpose(2, 3, 0, 1)  # k, b, p, n
        rho = np.einsum("pnk,kbpn->nb", U.conj(), M)
        G = np.einsum("nb,kbpn->pnk", 4 * w * rho.conj(), M)
        return np.sum(w * np.abs(rho) ** 2), G

    ways: dict[str, Callable[[], Any]] = {"NumPy by hand": floor, "combdiff": lambda: both(w, S, U)}
    if JAX:
        ways |= _wannier_jax(both, w, S, U, k, ahead)
    if TORCH:
        ways |= _wannier_torch(w, S, U, k, ahead)
    return Problem(f"Wannier value and gradient, Nk = {Nk}", ways)


def _wannier_jax(both: cd.Program, w: Array, S: Array, U: Array, k: Array, ahead: Array) -> dict[str, Any]:
    import jax
    import jax.numpy as jnp

    def value(U: Any, w: Any, S: Any) -> Any:
        rho = jnp.einsum("pnk,pqkb,qnkb->nb", U.conj(), S[:, :, k, ahead], U[:, :, ahead])
        return jnp.sum(w * jnp.abs(rho) ** 2)

    arrays = [jnp.asarray(array) for array in (w, S, U)]
    compiled, ours, conjugate = jax.jit(jax.value_and_grad(value)), jax.jit(both), jax.jit(jnp.conj)
    return {
        "combdiff on JAX": lambda: jax.block_until_ready(ours(*arrays)),
        "jax.jit": lambda: jax.block_until_ready(_turned(compiled(arrays[2], *arrays[:2]), conjugate)),
    }


def _wannier_torch(w: Array, S: Array, U: Array, k: Array, ahead: Array) -> dict[str, Callable[[], Any]]:
    import torch

    weights, overlaps, gauge = torch.from_numpy(w), torch.from_numpy(S), torch.from_numpy(U).requires_grad_()
    here, there = torch.from_numpy(k), torch.from_numpy(ahead)

    def run() -> Any:
        rho = torch.einsum("pnk,pqkb,qnkb->nb", gauge.conj(), overlaps[:, :, here, there], gauge[:, :, there])
        value = torch.sum(weights * torch.abs(rho) ** 2)
        return value.detach(), torch.autograd.grad(value, gauge)[0]

    return {"PyTorch": run}


# --- quartic form --------------------------------------------------------------------------------------------------


def hessian(n: int, peers: bool) -> Problem:
    """The Hessian of a symmetric quartic form. The floor passes over J once; peers do a hundred times the work."""
    J, x = np.zeros((n,) * 4), RNG.normal(size=n)
    vectors = RNG.normal(size=(3, n))
    for v in vectors:
        J += np.einsum("i,j,k,l->ijkl", v, v, v, v)
    ours = cd.hessian(quartic, wrt="x").compile()
    ways: dict[str, Callable[[], Any]] = {
        "NumPy by hand": lambda: 12 * (J.reshape(n * n, n * n) @ np.outer(x, x).reshape(-1)).reshape(n, n),
        "combdiff": lambda: ours(J, x),
    }
    if JAX and peers:
        import jax
        import jax.numpy as jnp

        compiled = jax.jit(jax.hessian(lambda x, J: jnp.einsum("ijkl,i,j,k,l->", J, x, x, x, x)))
        arrays = jnp.asarray(x), jnp.asarray(J)
        ways["jax.hessian"] = lambda: jax.block_until_ready(compiled(*arrays))
    if TORCH and peers:
        import torch

        tensors, form = (torch.from_numpy(x), torch.from_numpy(J)), "ijkl,i,j,k,l->"
        ways["torch.func.hessian"] = lambda: torch.func.hessian(lambda x: torch.einsum(form, tensors[1], x, x, x, x))(
            tensors[0]
        )
    return Problem(f"quartic Hessian, n = {n}", ways)


# --- timing --------------------------------------------------------------------------------------------------------


def parts(result: Any) -> list[Array]:
    """The arrays of a result."""
    items = result if isinstance(result, tuple) else (result,)
    return [np.asarray(item) for item in items]


def check(problem: Problem) -> None:
    """Every way must give what the floor gives."""
    (_, floor), *others = problem.ways.items()
    expected = parts(floor())
    for name, way in others:
        found = parts(way())
        for one, other in zip(found, expected, strict=name not in problem.partial):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max(), err_msg=name)


def report(problem: Problem, repeats: int, cpu: bool) -> dict[str, float]:
    """Print the times of a problem, and give their ratios to the floor."""
    check(problem)
    found = side_by_side.medians(problem.ways, repeats, cpu)
    floor = next(iter(found.values()))
    print(f"\n{problem.name}")
    for name, time in found.items():
        print(f"  {name:<28} {time:10.3f} ms {time / floor:9.2f}", flush=True)
    return {name: time / floor for name, time in found.items()}


def chart(ratios: dict[str, dict[str, float]]) -> Picture:
    """Bars of the ratios at one size, those beyond `LONGEST` cut off; the numbers stand beside them."""
    rows = []
    for problem, found in ratios.items():
        if not problem.endswith(DRAWN):
            continue
        problem = problem.replace(" value and gradient", "")
        whole = {way: ratio for way, ratio in found.items() if "alone" not in way}
        for number, (way, ratio) in enumerate(whole.items()):
            label = f"{ratio:.2f}" if ratio < LONGEST else f"{ratio:.0f} …"
            rows.append((problem if not number else "", way, min(ratio, LONGEST), label))
    return bars(rows, "times, by hand in NumPy = 1")


# --- calls and memory ----------------------------------------------------------------------------------------------


def report_calls(repeats: int, cpu: bool) -> None:
    """Print what a call costs beyond its kernel, for a product of a matrix and a vector with three elements."""
    A, x, compiled = np.eye(3), np.arange(3.0), apply.compile()
    np.testing.assert_array_equal(compiled(A, x), A @ x)
    many = range(1000)
    ways: dict[str, Callable[[], Any]] = {
        "A @ x": lambda: [A @ x for _ in many],
        "compiled": lambda: [compiled(A, x) for _ in many],
        "plain call": lambda: [apply(A, x) for _ in many],
    }
    found = side_by_side.medians(ways, repeats, cpu)
    print("\nmicroseconds of a call beyond the kernel")
    for name in ("compiled", "plain call"):
        print(f"  {name:<28} {1e3 * (found[name] - found['A @ x']) / len(many):10.1f}")


def report_memory(N: int = 24) -> None:
    """Print the peak memory of a value and gradient through integrals that are made of factors, within limits."""

    @cd.program
    def factored(L: cd.Space("aux", "N", "N"), D: cd.Space("N", "N")):
        J = cd.tensor(lambda p, q, r, s: cd.sum(lambda k: L[k, p, q] * L[k, r, s]))
        return cd.sum(lambda p, q, r, s: cd.exp(-J[p, q, r, s]) * D[p, q] * D[r, s])

    both = cd.value_and_grad(factored, wrt="D")
    L, D = RNG.normal(size=(2 * N, N, N)), RNG.normal(size=(N, N))
    print(f"\npeak memory, N = {N}: J alone is {8 * N**4 / 2**20:.1f} MiB")
    expected = parts(both(L, D))
    for limit in (None, "4MB", "2MB", "1MB"):
        run = both.compile(memory_limit=limit)
        found = parts(run(L, D))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)
        tracemalloc.start()
        run(L, D)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"  limit {limit or 'none':<22} {peak / 2**20:10.2f} MiB")


# --- the whole -----------------------------------------------------------------------------------------------------


def problems(quick: bool) -> Iterator[Problem]:
    """What is timed."""
    for N in (12,) if quick else (12, 24, 40):
        yield hartree_fock(N)
    for N in (12,) if quick else (12, 24, 40):
        yield hartree_fock(N, term=EXCHANGE)
    for Nk in (16,) if quick else (16, 64):
        yield wannier(Nk)
    for n in (12,) if quick else (20, 40):
        yield hessian(n, peers=n < 40)


def main() -> None:
    """Read the command line, measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes alone")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--cpu", action="store_true", help="time of this process alone, where others run beside")
    parser.add_argument("--chart", help="where to draw the ratios, an SVG file")
    options = parser.parse_args()
    if TORCH:
        import torch

        torch.set_num_threads(1)
    ratios = {problem.name: report(problem, options.repeats, options.cpu) for problem in problems(options.quick)}
    if options.chart:
        chart(ratios).save(options.chart)
    report_calls(options.repeats, options.cpu)
    report_memory()


if __name__ == "__main__":
    main()
