"""Derivatives as the literature writes them (the Matrix Cookbook and its like): their value, and how they are printed.

Each row is an objective, what it is differentiated by, the textbook's right-hand side in NumPy, and the derivative in
matrix notation as it is to be printed: without anything that cancels, and no longer than the textbook's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir.interpreter import evaluate
from combdiff.runtime.arguments import bind_sizes

N, M, P = 3, 4, 2
Square, Symmetric = cd.Space("n", "n"), cd.Space("n", "n", symmetry=["S[i,j] = S[j,i]"])
Wide, Tall, Vector, Other = cd.Space("m", "n"), cd.Space("n", "m"), cd.Space("n"), cd.Space("m")
Thin = cd.Space("n", "p")
OuterSquare, OuterSymmetric = cd.Space("m", "m"), cd.Space("m", "m", symmetry=["S[i,j] = S[j,i]"])
Flat, FlatSymmetric = cd.Space("p", "n"), cd.Space("p", "p", symmetry=["S[i,j] = S[j,i]"])
ComplexSquare, ComplexWide = cd.Space("n", "n", dtype=complex), cd.Space("p", "n", dtype=complex)
ComplexVector = cd.Space("n", dtype=complex)
Hermitian = cd.Space("n", "n", dtype=complex, symmetry=["H[i,j] = conj(H[j,i])"])

inv, det, tr, norm = np.linalg.inv, np.linalg.det, np.trace, np.linalg.norm


def cofactors(X: Any) -> Any:
    return det(X) * inv(X).T


def dagger(Z: Any) -> Any:
    return Z.conj().T


@dataclass(frozen=True)
class Row:
    """f(parameters by name, with their Spaces), differentiated by `wrt`, is `expected` and prints as `shown`."""

    name: str
    spaces: dict[str, cd.Space]
    f: Callable[..., Any]
    wrt: str
    shown: str
    expected: Callable[..., Any]
    transform: str = "grad"

    @property
    def program(self) -> cd.Program:
        names = ", ".join(self.spaces)
        scope: dict[str, Any] = {"f": self.f}
        exec(f"def objective({names}): return f({names})", scope)
        objective = scope["objective"]
        objective.__annotations__ = dict(self.spaces)
        return cd.program(objective)

    @property
    def derivative(self) -> cd.Program:
        found: cd.Program = getattr(cd, self.transform)(self.program, self.wrt)
        return found


def row(
    spaces: str, f: Callable[..., Any], wrt: str, shown: str, expected: Callable[..., Any], how: str = "grad"
) -> Row:
    """A row whose spaces are given as 'A: Square, x: Vector'."""
    pairs = [part.split(":") for part in spaces.split(",")]
    made = {name.strip(): globals()[kind.strip()] for name, kind in pairs}
    return Row(f"{shown.splitlines()[-1]} ({spaces} by {wrt}, {how})", made, f, wrt, shown, expected, how)


ROWS = [
    # traces, first order
    row("X: Square", lambda X: cd.trace(X), "X", "𝐈", lambda X: np.eye(N)),
    row("A: Wide, X: Square, B: Tall", lambda A, X, B: cd.trace(A @ X @ B), "X", "Aᵀ·Bᵀ", lambda A, X, B: A.T @ B.T),
    row("A: Wide, X: Square, B: Tall", lambda A, X, B: cd.trace(A @ X.T @ B), "X", "B·A", lambda A, X, B: B @ A),
    row("a: Vector, X: Square, b: Vector", lambda a, X, b: a @ X @ b, "X", "a·bᵀ", lambda a, X, b: np.outer(a, b)),
    row("a: Vector, X: Square, b: Vector", lambda a, X, b: a @ X.T @ b, "X", "b·aᵀ", lambda a, X, b: np.outer(b, a)),
    # traces, second and higher order
    row("X: Square", lambda X: cd.trace(X @ X), "X", "2·Xᵀ", lambda X: 2 * X.T),
    row("X: Wide", lambda X: cd.trace(X.T @ X), "X", "2·X", lambda X: 2 * X),
    row(
        "X: Square, B: Square",
        lambda X, B: cd.trace(X @ X @ B),
        "X",
        "(B·X + X·B)ᵀ",
        lambda X, B: (X @ B + B @ X).T,
    ),
    row("X: Wide, B: Square", lambda X, B: cd.trace(X @ B @ X.T), "X", "X·(B + Bᵀ)", lambda X, B: X @ B.T + X @ B),
    row("X: Wide, B: Symmetric", lambda X, B: cd.trace(X @ B @ X.T), "X", "2·X·B", lambda X, B: 2 * X @ B),
    row("X: Wide, B: OuterSquare", lambda X, B: cd.trace(B @ X @ X.T), "X", "(B + Bᵀ)·X", lambda X, B: (B + B.T) @ X),
    row(
        "A: OuterSquare, X: Wide, B: Square, C: OuterSquare",
        lambda A, X, B, C: cd.trace(A @ X @ B @ X.T @ C),
        "X",
        "Aᵀ·Cᵀ·X·Bᵀ + C·A·X·B",
        lambda A, X, B, C: A.T @ C.T @ X @ B.T + C @ A @ X @ B,
    ),
    row(
        "A: Square, X: Square, B: Square",
        lambda A, X, B: cd.trace(A @ X @ B @ X),
        "X",
        "(A·X·B + B·X·A)ᵀ",
        lambda A, X, B: A.T @ X.T @ B.T + B.T @ X.T @ A.T,
    ),
    row("X: Wide", lambda X: cd.trace(X @ X.T @ X @ X.T), "X", "4·X·Xᵀ·X", lambda X: 4 * X @ X.T @ X),
    row(
        "A: Square, X: Square",
        lambda A, X: cd.trace(A @ cd.matrix_power(X, 3)),
        "X",
        "((A·X + X·A)·X + X·X·A)ᵀ",
        lambda A, X: sum((np.linalg.matrix_power(X, r) @ A @ np.linalg.matrix_power(X, 2 - r)).T for r in range(3)),
    ),
    # quadratic forms
    row("x: Vector", lambda x: x @ x, "x", "2·x", lambda x: 2 * x),
    row("x: Vector, B: Square", lambda x, B: x @ B @ x, "x", "(B + Bᵀ)·x", lambda x, B: (B + B.T) @ x),
    row("x: Vector, B: Square", lambda x, B: x @ B @ x, "x", "B + Bᵀ", lambda x, B: B + B.T, "hessian"),
    row("x: Vector, B: Symmetric", lambda x, B: x @ B @ x, "x", "2·B·x", lambda x, B: 2 * B @ x),
    row(
        "b: Vector, X: Wide, c: Vector",
        lambda b, X, c: b @ X.T @ X @ c,
        "X",
        "X·c·bᵀ + X·b·cᵀ",
        lambda b, X, c: X @ (np.outer(b, c) + np.outer(c, b)),
    ),
    row(
        "W: Symmetric, x: Vector, A: Tall, s: Other",
        lambda W, x, A, s: (x - A @ s) @ W @ (x - A @ s),
        "s",
        "2·Aᵀ·W·(A·s - x)",
        lambda W, x, A, s: -2 * A.T @ W @ (x - A @ s),
    ),
    row(
        "W: Symmetric, x: Vector, A: Tall, s: Other",
        lambda W, x, A, s: (x - A @ s) @ W @ (x - A @ s),
        "x",
        "2·W·(x - A·s)",
        lambda W, x, A, s: 2 * W @ (x - A @ s),
    ),
    row(
        "W: Symmetric, x: Vector, A: Tall, s: Other",
        lambda W, x, A, s: (x - A @ s) @ W @ (x - A @ s),
        "A",
        "2·W·(A·s - x)·sᵀ",
        lambda W, x, A, s: -2 * W @ np.outer(x - A @ s, s),
    ),
    row(
        "A: Wide, x: Vector, b: Other",
        lambda A, x, b: ((A @ x - b) ** 2).sum(),
        "x",
        "2·Aᵀ·(A·x - b)",
        lambda A, x, b: 2 * A.T @ (A @ x - b),
    ),
    row(
        "A: Wide, x: Vector, b: Other",
        lambda A, x, b: ((A @ x - b) ** 2).sum(),
        "x",
        "2·Aᵀ·A",
        lambda A, x, b: 2 * A.T @ A,
        "hessian",
    ),
    # norms
    row("X: Wide", lambda X: np.sqrt((X * X).sum()), "X", "X / ‖X‖_F", lambda X: X / norm(X)),
    row(
        "x: Vector, a: Vector",
        lambda x, a: np.sqrt(((x - a) ** 2).sum()),
        "x",
        "(x - a) / ‖x - a‖",
        lambda x, a: (x - a) / norm(x - a),
    ),
    row(
        "x: Vector, a: Vector",
        lambda x, a: np.sqrt(((x - a) ** 2).sum()),
        "x",
        "t = a - x\nt2 = ‖t‖\n𝐈 / t2 - t·tᵀ / t2³",
        lambda x, a: np.eye(N) / norm(x - a) - np.outer(x - a, x - a) / norm(x - a) ** 3,
        "hessian",
    ),
    # inverses
    row(
        "X: Square, A: Square",
        lambda X, A: cd.trace(cd.inv(X) @ A),
        "X",
        "-X⁻ᵀ·Aᵀ·X⁻ᵀ",
        lambda X, A: -(inv(X) @ A @ inv(X)).T,
    ),
    row(
        "A: Wide, X: Square, B: Tall",
        lambda A, X, B: cd.trace(A @ cd.inv(X) @ B),
        "X",
        "-X⁻ᵀ·Aᵀ·Bᵀ·X⁻ᵀ",
        lambda A, X, B: -(inv(X) @ B @ A @ inv(X)).T,
    ),
    row(
        "a: Vector, X: Square, b: Vector",
        lambda a, X, b: a @ cd.inv(X) @ b,
        "X",
        "-X⁻ᵀ·a·bᵀ·X⁻ᵀ",
        lambda a, X, b: -inv(X).T @ np.outer(a, b) @ inv(X).T,
    ),
    row(
        "a: Vector, X: Symmetric",
        lambda a, X: a @ cd.inv(X) @ a,
        "X",
        "-X⁻¹·a·aᵀ·X⁻¹",
        lambda a, X: -inv(X) @ np.outer(a, a) @ inv(X),
    ),
    row(
        "X: Square, A: Square",
        lambda X, A: cd.trace(cd.inv(X + A)),
        "X",
        "t = A + X\n-t⁻ᵀ·t⁻ᵀ",
        lambda X, A: -(inv(X + A) @ inv(X + A)).T,
    ),
    row(
        "X: Thin, C: Symmetric, A: FlatSymmetric",
        lambda X, C, A: cd.trace(cd.inv(X.T @ C @ X) @ A),
        "X",
        "t = Xᵀ·C·X\n-2·C·X·t⁻¹·A·t⁻¹",
        lambda X, C, A: -2 * C @ X @ inv(X.T @ C @ X) @ A @ inv(X.T @ C @ X),
    ),
    row(
        "X: Thin, C: Symmetric, B: Symmetric",
        lambda X, C, B: cd.trace(cd.inv(X.T @ C @ X) @ (X.T @ B @ X)),
        "X",
        "t = Xᵀ·C·X\n2·(B - C·X·t⁻¹·Xᵀ·B)·X·t⁻¹",
        lambda X, C, B: -2 * C @ X @ inv(X.T @ C @ X) @ X.T @ B @ X @ inv(X.T @ C @ X) + 2 * B @ X @ inv(X.T @ C @ X),
    ),
    # determinants
    row("X: Square", lambda X: cd.det(X), "X", "adj(X)ᵀ", lambda X: det(X) * inv(X).T),
    row("X: Square", lambda X: cd.det(X) ** 2, "X", "2·det(X)·adj(X)ᵀ", lambda X: 2 * det(X) ** 2 * inv(X).T),
    row(
        "A: Square, X: Square, B: Square",
        lambda A, X, B: cd.det(A @ X @ B),
        "X",
        "det(A)·det(B)·adj(X)ᵀ",
        lambda A, X, B: det(A @ X @ B) * inv(X).T,
    ),
    row(
        "X: Flat, A: Symmetric",
        lambda X, A: cd.det(X @ A @ X.T),
        "X",
        "t = X·A·Xᵀ\n2·adj(t)·X·A",
        lambda X, A: 2 * det(X @ A @ X.T) * inv(X @ A @ X.T) @ X @ A,
    ),
    row(
        "X: Flat, A: Square",
        lambda X, A: cd.det(X @ A @ X.T),
        "X",
        "t = X·A·Xᵀ\nadj(t)ᵀ·X·Aᵀ + adj(t)·X·A",
        lambda X, A: det(X @ A @ X.T) * (inv(X @ A @ X.T).T @ X @ A.T + inv(X @ A @ X.T) @ X @ A),
    ),
    # logarithms of determinants
    row("X: Square", lambda X: cd.logdet(X), "X", "X⁻ᵀ", lambda X: inv(X).T),
    row("X: Symmetric", lambda X: cd.logdet(X), "X", "X⁻¹", lambda X: inv(X)),
    row("X: Square", lambda X: cd.log(cd.det(X @ X)), "X", "2·X⁻ᵀ", lambda X: 2 * inv(X).T),
    row("X: Flat", lambda X: cd.logdet(X @ X.T), "X", "t = X·Xᵀ\n2·t⁻¹·X", lambda X: 2 * np.linalg.pinv(X).T),
    row("X: Thin", lambda X: cd.logdet(X.T @ X), "X", "t = Xᵀ·X\n2·X·t⁻¹", lambda X: 2 * np.linalg.pinv(X).T),
    row("X: Square, A: Square", lambda X, A: cd.logdet(X.T @ A @ X), "X", "2·X⁻ᵀ", lambda X, A: 2 * inv(X).T),
    row("X: Square", lambda X: cd.logdet(cd.inv(X)), "X", "-X⁻ᵀ", lambda X: -inv(X).T),
    row(
        "S: Symmetric, x: Vector",
        lambda S, x: cd.logdet(S) + x @ cd.inv(S) @ x,
        "S",
        "S⁻¹ - S⁻¹·x·xᵀ·S⁻¹",
        lambda S, x: inv(S) - inv(S) @ np.outer(x, x) @ inv(S),
    ),
    # second order, and functions that give matrices
    row(
        "X: Square",
        lambda X: cd.logdet(X),
        "X",
        "(a, b, d, e) ↦ -inv(X)[b,d] inv(X)[e,a]",
        lambda X: -np.einsum("bd,ea->abde", inv(X), inv(X)),
        "hessian",
    ),
    row(
        "X: Square",
        lambda X: cd.det(X),
        "X",
        "(a, b, d, e) ↦ adj(X)[b,a] inv(X)[e,d] - adj(X)[e,a] inv(X)[b,d]",
        lambda X: det(X) * (np.einsum("ba,ed->abde", inv(X), inv(X)) - np.einsum("ea,bd->abde", inv(X), inv(X))),
        "hessian",
    ),
    row(
        "X: Square",
        lambda X: cd.inv(X),
        "X",
        "(a, b, d, e) ↦ -inv(X)[a,d] inv(X)[e,b]",
        lambda X: -np.einsum("ad,eb->abde", inv(X), inv(X)),
        "jacobian",
    ),
    # complex: gradients are 2 ∂f/∂Z̄
    row("Z: ComplexWide", lambda Z: cd.real(cd.trace(Z.conj().T @ Z)), "Z", "2·Z", lambda Z: 2 * Z),
    row(
        "A: ComplexSquare, Z: ComplexSquare",
        lambda A, Z: cd.real(cd.trace(A @ Z)),
        "Z",
        "A†",
        lambda A, Z: dagger(A),
    ),
    row("Z: ComplexSquare", lambda Z: cd.real(cd.trace(Z @ Z)), "Z", "2·Z†", lambda Z: 2 * dagger(Z)),
    row(
        "H: Hermitian, z: ComplexVector",
        lambda H, z: cd.real(z.conj() @ H @ z),
        "z",
        "2·H·z",
        lambda H, z: 2 * H @ z,
    ),
    row(
        "Z: ComplexWide, A: ComplexSquare",
        lambda Z, A: cd.real(cd.trace(Z @ A @ Z.conj().T)),
        "Z",
        "Z·(A + A†)",
        lambda Z, A: Z @ (A + dagger(A)),
    ),
    row(
        "A: ComplexWide, z: ComplexVector",
        lambda A, z: cd.real((A @ z).conj() @ (A @ z)),
        "z",
        "2·A†·A·z",
        lambda A, z: 2 * dagger(A) @ A @ z,
    ),
    row(
        "z: ComplexVector",
        lambda z: cd.sqrt(cd.real(z.conj() @ z)),
        "z",
        "z / ‖z‖",
        lambda z: z / norm(z),
    ),
    row("Z: ComplexSquare", lambda Z: cd.logdet(Z), "Z", "Z⁻†", lambda Z: dagger(inv(Z))),
    row(
        "Z: ComplexSquare, A: ComplexSquare",
        lambda Z, A: cd.real(cd.trace(cd.inv(Z) @ A)),
        "Z",
        "-Z⁻†·A†·Z⁻†",
        lambda Z, A: -dagger(inv(Z) @ A @ inv(Z)),
    ),
    row(
        "Z: ComplexWide",
        lambda Z: cd.logdet(Z @ Z.conj().T),
        "Z",
        "t = Z·Z†\n2·t⁻¹·Z",
        lambda Z: 2 * inv(Z @ dagger(Z)) @ Z,
    ),
    row(
        "Z: ComplexWide, H: Hermitian",
        lambda Z, H: cd.real(cd.det(Z @ H @ Z.conj().T)),
        "Z",
        "t = Z·H·Z†\n2·adj(t)·Z·H",
        lambda Z, H: 2 * det(Z @ H @ dagger(Z)) * inv(Z @ H @ dagger(Z)) @ Z @ H,
    ),
    row("H: Hermitian", lambda H: cd.logdet(H), "H", "H⁻¹", lambda H: inv(H)),
    row(
        "H: Hermitian, a: ComplexVector",
        lambda H, a: cd.real(a.conj() @ cd.inv(H) @ a),
        "H",
        "-H⁻¹·a·a†·H⁻¹",
        lambda H, a: -inv(H) @ np.outer(a, a.conj()) @ inv(H),
    ),
    row(
        "Z: ComplexSquare",
        lambda Z: cd.det(Z),
        "Z",
        "(adj(Z)ᵀ, 0)",
        lambda Z: (det(Z) * inv(Z).T, np.zeros((N, N))),
        "jacobian",
    ),
    row(
        "Z: ComplexSquare",
        lambda Z: cd.logdet(Z),
        "Z",
        "((a<n, b<n, d<n, e<n) ↦ 0, (a, b, d, e) ↦ -1/2 inv(Z)[b,d] inv(Z)[e,a])",
        lambda Z: (np.zeros((N, N, N, N)), -np.einsum("bd,ea->abde", inv(Z), inv(Z)) / 2),
        "hessian",
    ),
]


def arrays_of(row: Row) -> list[Any]:
    rng = np.random.default_rng(5)
    sizes = {"n": N, "m": M, "p": P}
    found = []
    for space in row.spaces.values():
        shape = tuple(sizes[axis.size] for axis in space.axes)  # type: ignore[union-attr]
        array = rng.normal(size=shape) + (1j * rng.normal(size=shape) if space.dtype is complex else 0)
        found.append(array + array.conj().T if space.symmetry else array)
    return found


def close(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            close(one, other)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * (1 + np.abs(expected).max()))


@pytest.mark.sample(6)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_derivative_is_that_of_the_textbook(row: Row) -> None:
    arrays, derivative = arrays_of(row), row.derivative
    close(derivative(*arrays), row.expected(*arrays))
    raw = getattr(cd, row.transform)(row.program, row.wrt, simplify=False)
    close(raw(*arrays), row.expected(*arrays))
    values = dict(zip(derivative.term.parameters, map(np.asarray, arrays), strict=True))
    sizes = bind_sizes({var: np.shape(value) for var, value in values.items()})
    close(evaluate(derivative.term.body, values, sizes), row.expected(*arrays))


@pytest.mark.sample(22)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_it_is_printed_as_in_the_textbook(row: Row) -> None:
    assert row.derivative.matrix() == row.shown
