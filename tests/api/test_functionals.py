"""Functionals over the real line: variational derivatives as formulas, and the same over finite axes as numbers.

Nothing over the real line can be evaluated. What a derivative says is checked on a finite axis, where the same program
has values and central differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from messages import messages_of

import combdiff as cd
from combdiff.ir.domains import Domain, Range, Real

LINE, GRID = Real(), Range("n")
RNG = np.random.default_rng(2)
Number = cd.Space()


def same(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def expectation(axis: Domain) -> cd.Program:
    Hermitian = cd.Space(axis, axis, dtype=complex, symmetry=["H[x,y] = conj(H[y,x])"])

    @cd.program
    def value(H: Hermitian, psi: cd.Space(axis, dtype=complex)):  # type: ignore
        return cd.sum(lambda x, y: cd.conj(psi[x]) * H[x, y] * psi[y])

    return value


def action(axis: Domain) -> cd.Program:
    Path = cd.Space(axis)

    @cd.program
    def least(L: cd.Function(Number, Number), D: cd.Function(Path, result=Path, linear=True), r: Path):  # type: ignore
        v = D(r)
        return cd.sum(lambda t: L(r[t], v[t]))

    return least


def motion(axis: Domain) -> cd.Program:
    Path = cd.Space(axis)

    @cd.program
    def oscillator(m: Number, k: Number, D: cd.Function(Path, result=Path, linear=True), r: Path):  # type: ignore
        v = D(r)
        return cd.sum(lambda t: m * v[t] ** 2 / 2 - k * r[t] ** 2 / 2)

    return oscillator


Field, Wave = cd.Space(LINE), cd.Space(LINE, dtype=complex)


@cd.program
def smoothed(f: Field, g: Field, w: Field):  # type: ignore[valid-type, no-untyped-def]
    return cd.sum(lambda t, s: w[t] * f[s] * g[t - s])


def transform(f: Any, sign: int) -> Any:
    """The Fourier transform of a traced field."""
    wave = sign * 2j * np.pi
    return cd.tensor(lambda k: cd.sum(lambda x: cd.exp(wave * k * x) * f[x], x=LINE), k=LINE)


@cd.program
def back_and_forth(f: Wave):  # type: ignore[valid-type, no-untyped-def]
    return transform(transform(f, -1), 1)


@cd.program
def forth_and_forth(f: Wave):  # type: ignore[valid-type, no-untyped-def]
    return transform(transform(f, 1), 1)


@cd.program
def power(f: Wave):  # type: ignore[valid-type, no-untyped-def]
    g = transform(f, -1)
    return cd.sum(lambda k: cd.real(cd.conj(g[k]) * g[k]))


@cd.program
def unscaled(g: Wave):  # type: ignore[valid-type, no-untyped-def]
    """The paper's pair exp(−iωr), exp(iωr), without 2π in the exponents."""
    return cd.tensor(
        lambda w: cd.sum(lambda v, r: cd.exp(-1j * w * r) * cd.exp(1j * v * r) * g[v], v=LINE, r=LINE), w=LINE
    )


@cd.program
def position(f: Wave):  # type: ignore[valid-type, no-untyped-def]
    return cd.sum(lambda x: x * cd.real(cd.conj(f[x]) * f[x]), x=LINE)


SHOWN: dict[str, tuple[Callable[[], cd.Program], str]] = {
    "expectation": (lambda: cd.grad(expectation(LINE), "psi"), "(H, psi) ↦ d ↦ 2 ∫ H(d, x) psi(x) dx"),
    "expectation twice": (
        lambda: cd.hvp(expectation(LINE), "psi"),
        "(H, psi, psi_dot) ↦ d ↦ 2 ∫ H(d, x) psi_dot(x) dx",
    ),
    "convolution by f": (lambda: cd.grad(smoothed, "f"), "(f, g, w) ↦ d ↦ ∫ g(t - d) w(t) dt"),
    "convolution by g": (lambda: cd.grad(smoothed, "g"), "(f, g, w) ↦ d ↦ ∫ f(t - d) w(t) dt"),
    "least action": (lambda: cd.grad(action(LINE), "r"), "(L, D, r) ↦ ∂₁L(r, D(r)) + Dᵀ(∂₂L(r, D(r)))"),
    "Newton's law": (lambda: cd.grad(motion(LINE), "r"), "(m, k, D, r) ↦ m Dᵀ(D(r)) - k r"),
    "Newton's law, moved": (lambda: cd.hvp(motion(LINE), "r"), "(m, k, D, r, r_dot) ↦ m Dᵀ(D(r_dot)) - k r_dot"),
    "Fourier and back": (lambda: cd.simplify(back_and_forth), "f ↦ y ↦ f(y)"),
    "Parseval": (lambda: cd.grad(power), "f ↦ d ↦ 2 f(d)"),
    "Fourier without 2π": (lambda: cd.simplify(unscaled), "g ↦ w ↦ 2π g(w)"),
    "position": (lambda: cd.grad(position), "f ↦ d ↦ 2 f(d) d"),
}


@pytest.mark.parametrize("name", SHOWN)
def test_variational_derivatives(name: str) -> None:
    make, expected = SHOWN[name]
    if name == "Fourier and back":
        assert str(make()) in (expected, "f ↦ k ↦ f(k)")
    else:
        assert str(make()) == expected


def test_the_equation_of_motion_in_latex() -> None:
    assert cd.grad(action(LINE), "r").latex() == (
        r"(L, D, r) \mapsto \partial_{1} L(r, D(r)) + D^{\top}(\partial_{2} L(r, D(r)))"
    )


def test_two_transforms_in_one_direction_do_not_cancel() -> None:
    """exp(2πi k x) exp(2πi x y) has no difference of indices: the integrals stay."""
    assert str(cd.simplify(forth_and_forth)).count("∫") == 2


# --- the same over finite axes -------------------------------------------------------------------------------------


@cd.program
def difference(r: cd.Space("n"), B: cd.Space("n", "n")):  # type: ignore
    return B @ r


@cd.program
def pendulum(q: Number, v: Number):  # type: ignore[valid-type, no-untyped-def]
    return v**2 / 2 + cd.cos(q) + q * v**3


@pytest.mark.thorough
def test_the_derivatives_hold_on_finite_axes() -> None:
    B, r = RNG.normal(size=(4, 4)), RNG.normal(size=4)
    D = difference.partial(B=B)
    cd.testing.check_grad(motion(GRID).partial(D=D), ("m", "k", "r"), m=1.3, k=0.4, r=r)
    same(cd.grad(motion(GRID), "r")(1.3, 0.4, D, r), 1.3 * B.T @ B @ r - 0.4 * r)
    placed = action(GRID).partial(D=D, L=pendulum)
    cd.testing.check_grad(placed, "r", r=r)
    v = B @ r
    expected = -np.sin(r) + v**3 + B.T @ (v + 3 * r * v**2)
    same(cd.grad(placed, "r")(r), expected)
    same(cd.grad(action(GRID), "r").partial(L=pendulum)(D, r), expected)
    psi = RNG.normal(size=4) + 1j * RNG.normal(size=4)
    H = B + B.T + 1j * (B - B.T)
    same(cd.grad(expectation(GRID), "psi")(H, psi), 2 * H @ psi)


def test_a_linear_map_and_its_adjoint_take_numbers_out() -> None:
    Vector = cd.Space("n")

    @cd.program
    def scaled(D: cd.Function(Vector, result=Vector, linear=True), x: Vector, a: Number):  # type: ignore
        return cd.sum(lambda i: D(3 * a * x)[i] ** 2)

    assert str(cd.simplify(scaled)).splitlines()[1:] == ["  t = D(x)", "  9 a² Σ_i t[i]²"]
    B, x = RNG.normal(size=(3, 3)), RNG.normal(size=3)
    same(cd.grad(scaled, "a")(difference.partial(B=B), x, 2.0), 36 * np.sum((B @ x) ** 2))
    same(cd.grad(scaled, "x")(difference.partial(B=B), x, 2.0), 72 * B.T @ B @ x)


# --- arrays are refused --------------------------------------------------------------------------------------------


@cd.program
def indexed(x: cd.Space("n")):  # type: ignore
    return cd.sum(lambda i: x[i])


REFUSED: dict[str, tuple[type[cd.CombdiffError], Callable[[], Any], str]] = {
    "arrays": (
        cd.UnsupportedError,
        lambda: smoothed(np.ones(3), np.ones(3), np.ones(3)),
        "axis 0 of f (shape (3,), expected (Real())) is the real line: nothing over it can be evaluated with arrays",
    ),
    "arrays for a derivative": (
        cd.UnsupportedError,
        lambda: cd.grad(power)(np.ones(3)),
        "axis 0 of f (shape (3,), expected (Real())) is the real line: nothing over it can be evaluated with arrays",
    ),
    "source": (
        cd.UnsupportedError,
        lambda: cd.grad(smoothed, "f").source(),
        "nothing over the real line can be evaluated with arrays",
    ),
}


test_nothing_over_the_real_line_is_evaluated = messages_of(REFUSED)


def test_indices_of_two_cycles_have_no_sum() -> None:
    with pytest.raises(cd.IndexingError) as raised:

        @cd.program
        def mixed(x: cd.Space(cd.Cyclic("N")), w: cd.Space(cd.Cyclic("M"))):  # type: ignore
            return cd.sum(lambda k, b: x[k + b] * w[b] * x[k])

    assert raised.value.message == (
        "b + k adds b, an index of Cyclic('M'), and k, an index of Cyclic('N'): they have no sum"
    )
