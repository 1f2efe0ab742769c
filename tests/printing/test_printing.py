"""How programs read: the worked results of theory.md §3 word for word, and what holds of every program."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Case, examples, programs

import combdiff as cd
from combdiff.ir.domains import Cyclic, Domain, Function, Range, Real, Space, Symmetric, Whole
from combdiff.ir.indices import Affine, Indicator, affine, delta, indicator
from combdiff.ir.interpreter import evaluate
from combdiff.ir.primitives import HALF, divide, function, power, square
from combdiff.ir.substitution import apply, subterms
from combdiff.ir.terms import (
    MINUS_ONE,
    ONE,
    Add,
    Apply,
    Lambda,
    Let,
    Mul,
    Number,
    Primitive,
    Pullback,
    Sum,
    Term,
    Tuple,
    Var,
    add,
    conj,
    let,
    mul,
    negate,
    total,
)
from combdiff.printing.monomials import monomial
from combdiff.printing.outline import outline
from combdiff.printing.plain import text
from combdiff.printing.tex import latex

ROOT = Path(__file__).parents[2]


def indices(names: str, domain: Domain | str) -> list[Var]:
    return [Var(name, Range(domain) if isinstance(domain, str) else domain) for name in names.split()]


def at(tensor: Term, *arguments: Term) -> Term:
    return apply(tensor, arguments)


def plus(*terms: Term, offset: int = 0) -> Term:
    return affine([(term, 1) for term in terms], offset)


# --- the worked results of theory.md §3 ----------------------------------------------------------------------------


def quadratic_form() -> Term:
    d, j = indices("d j", "n")
    A, x = Var("A", Space("n", "n", dtype=complex)), Var("x", Space("n", dtype=complex))
    return Lambda((A, x), Lambda((d,), mul(Number(2), total((j,), mul(at(A, d, j), at(x, j))))))


def quadratic_form_without_symmetry() -> Term:
    d, j = indices("d j", "n")
    A, x = Var("A", Space("n", "n", dtype=complex)), Var("x", Space("n", dtype=complex))
    halves = [total((j,), mul(at(A, d, j), at(x, j))), total((j,), mul(conj(at(A, j, d)), at(x, j)))]
    return Lambda((A, x), Lambda((d,), add(*halves)))


def supersymmetric() -> Term:
    d, i, k = indices("d i k", "n")
    T, x = Var("T", Space("n", "n", "n")), Var("x", Space("n"))
    return Lambda((T, x), Lambda((d,), total((i, k), mul(Number(3), at(T, i, d, k), at(x, i), at(x, k)))))


def cp_decomposition() -> Term:
    i, j, k = (Var(name, Range(name.upper())) for name in "ijk")
    d, e, n = (Var("d", Range("I")), Var("e", Range("R")), Var("n", Range("R")))
    f, g = Var("d", Range("J")), Var("d", Range("K"))
    T, X, Y, Z = (
        Var("T", Space("I", "J", "K")),
        *(Var(name, Space(a, "R")) for name, a in zip("XYZ", "IJK", strict=True)),
    )
    r = Var("r", Space("I", "J", "K"))
    model = total((n,), mul(at(X, i, n), at(Y, j, n), at(Z, k, n)))
    gradients = (
        Lambda((d, e), mul(Number(-2), total((j, k), mul(at(r, d, j, k), at(Y, j, e), at(Z, k, e))))),
        Lambda((f, e), mul(Number(-2), total((i, k), mul(at(r, i, f, k), at(X, i, e), at(Z, k, e))))),
        Lambda((g, e), mul(Number(-2), total((i, j), mul(at(r, i, j, g), at(X, i, e), at(Y, j, e))))),
    )
    residual = Lambda((i, j, k), add(at(T, i, j, k), negate(model)))
    return Lambda((T, X, Y, Z), let([(r, residual)], Tuple(gradients)))


ERI, ORBITALS = Space("N", "N", "N", "N", dtype=complex), Space("N", "Ne", dtype=complex)
J, C, K = Var("J", ERI), Var("C", ORBITALS), Var("k", ORBITALS)


def coulomb_gradient() -> Term:
    d, p, r, s = indices("d p r s", "N")
    e, i = indices("e i", "Ne")
    body = mul(Number(4), conj(at(J, r, s, p, d)), conj(at(C, s, i)), at(C, p, e), at(C, r, i))
    return Lambda((J, C), Lambda((d, e), total((i, p, r, s), body)))


def coulomb_hessian_product() -> Term:
    a, d, p, r, s = indices("a d p r s", "N")
    e, f, j = indices("e f j", "Ne")
    terms = (
        total((d, e, p, s), mul(conj(at(C, p, e)), at(J, a, s, p, d), at(K, d, e), at(C, s, f))),
        total((d, e, p, r), mul(conj(at(J, r, a, p, d)), conj(at(K, d, e)), at(C, p, e), at(C, r, f))),
        total((d, j, r, s), mul(conj(at(C, r, j)), at(J, r, s, a, d), at(K, d, f), at(C, s, j))),
    )
    return Lambda((J, C, K), Lambda((a, f), add(*(mul(Number(4), t) for t in terms))))


def conjugate_gradient() -> Term:
    (i,), v = indices("i", "n"), Space("n")
    x, r, p, u = (Var(name, v) for name in "xrpu")
    alpha, beta, R = Var("alpha", Space()), Var("beta", Space()), Var("R", Function(v))
    step = add(at(r, i), mul(beta, at(p, i)))
    slope = at(Pullback(R, 0, (u,), ONE), i)
    point = Lambda((i,), add(at(x, i), mul(alpha, step)))
    results = (total((i,), mul(slope, step)), total((i,), mul(alpha, slope, at(p, i))))
    return Lambda((x, r, p, alpha, beta, R), let([(u, point)], Tuple(results)))


def wannier() -> Term:
    d, e, n, p, q = indices("d e n p q", "M")
    k, b = Var("k", Cyclic("Nk")), Var("b", Symmetric("B"))
    U, S = (Var(name, Space(*"MM"[:m], *[k.type] * n, dtype=complex)) for name, m, n in (("U", 2, 1), ("S", 2, 2)))
    w, rho = Var("w", Space(b.type)), Var("ρ", Space("M", b.type, dtype=complex))
    inner = total((p, q, k), mul(conj(at(U, p, n, k)), at(S, p, q, k, plus(k, b)), at(U, q, n, plus(k, b))))
    outer = mul(at(w, b), conj(at(rho, e, b)), at(U, p, e, plus(k, b)), at(S, d, p, k, plus(k, b)))
    gradient = Lambda((d, e, k), mul(Number(4), total((b, p), outer)))
    return Lambda((U, S, w), let([(rho, Lambda((n, b), inner))], gradient))


def perceptron() -> Term:
    """Two layers with an unknown activation s and its derivative; all names but the parameters are made up."""
    i, j = indices("@1 @2", "n")
    W, x, s = Var("W", Space(2, "n", "n")), Var("x", Space("n")), Var("s", Function(Space()))
    z = [Var(f"z.{layer}", Space("n")) for layer in range(2)]
    y_bar = Var("y_bar", Space("n"))

    def affine_map(layer: int, entry: Term) -> Lambda:
        return Lambda((i,), total((j,), mul(at(W, Affine((), layer), i, j), entry)))

    bindings = [
        (z[0], affine_map(0, at(x, j))),
        (z[1], affine_map(1, Apply(s, (at(z[0], j),)))),
        (y_bar, Lambda((i,), at(Pullback(s, 0, (at(z[1], i),), ONE)))),
    ]
    transposed = mul(at(W, Affine((), 1), j, i), at(y_bar, j))
    result = mul(Pullback(s, 0, (at(z[0], i),), ONE), total((j,), transposed))
    return Lambda((W, x, s), let(bindings, Lambda((i,), result)))


def hermitian_functional() -> Term:
    d, y = indices("d y", Real())
    H, psi = Var("H", Space(Real(), Real(), dtype=complex)), Var("psi", Space(Real(), dtype=complex))
    return Lambda((H, psi), Lambda((d,), total((y,), mul(Number(2), at(H, d, y), at(psi, y)))))


def convolution_functional() -> Term:
    d, t = indices("d t", Real())
    g, w = Var("g", Space(Real())), Var("w", Space(Real()))
    return Lambda((g, w), Lambda((d,), total((t,), mul(at(w, t), at(g, affine([(t, 1), (d, -1)]))))))


def least_action() -> Term:
    path = Space(Real())
    r, L = Var("r", path), Var("L", Function(path, path))
    D = Var("D", Function(path, result=path, linear=True))
    velocity = Apply(D, (r,))
    momentum = Pullback(L, 1, (r, velocity), ONE)
    (t,) = indices("t", Real())
    return Lambda(
        (r, L, D),
        Lambda((t,), add(at(Pullback(L, 0, (r, velocity), ONE), t), at(Pullback(D, 0, (r,), momentum), t))),
    )


WORKED = {
    quadratic_form: (
        "(A, x) ↦ d ↦ 2 Σ_j A[d,j] x[j]",
        r"(A, x) \mapsto d \mapsto 2 \sum_{j} A_{d,j} x_{j}",
    ),
    quadratic_form_without_symmetry: (
        "(A, x) ↦ d ↦ Σ_j A[d,j] x[j] + Σ_j A[j,d]* x[j]",
        r"(A, x) \mapsto d \mapsto \sum_{j} A_{d,j} x_{j} + \sum_{j} A_{j,d}^{*} x_{j}",
    ),
    supersymmetric: (
        "(T, x) ↦ d ↦ 3 Σ_{i,k} T[i,d,k] x[i] x[k]",
        r"(T, x) \mapsto d \mapsto 3 \sum_{i,k} T_{i,d,k} x_{i} x_{k}",
    ),
    cp_decomposition: (
        """\
(T, X, Y, Z) ↦
  r[i,j,k] = T[i,j,k] - Σ_n X[i,n] Y[j,n] Z[k,n]
  (
    (d, e) ↦ -2 Σ_{j,k} r[d,j,k] Y[j,e] Z[k,e],
    (d, e) ↦ -2 Σ_{i,k} r[i,d,k] X[i,e] Z[k,e],
    (d, e) ↦ -2 Σ_{i,j} r[i,j,d] X[i,e] Y[j,e]
  )""",
        r"""\begin{aligned}
& (T, X, Y, Z) \mapsto \\
& \quad r_{i,j,k} = T_{i,j,k} - \sum_{n} X_{i,n} Y_{j,n} Z_{k,n} \\
& \quad ((d, e) \mapsto -2 \sum_{j,k} r_{d,j,k} Y_{j,e} Z_{k,e}, \\
& \quad (d, e) \mapsto -2 \sum_{i,k} r_{i,d,k} X_{i,e} Z_{k,e}, \\
& \quad (d, e) \mapsto -2 \sum_{i,j} r_{i,j,d} X_{i,e} Y_{j,e})
\end{aligned}""",
    ),
    coulomb_gradient: (
        "(J, C) ↦ (d, e) ↦ 4 Σ_{i,p,r,s} J[r,s,p,d]* C[s,i]* C[p,e] C[r,i]",
        r"(J, C) \mapsto (d, e) \mapsto 4 \sum_{i,p,r,s} J_{r,s,p,d}^{*} C_{s,i}^{*} C_{p,e} C_{r,i}",
    ),
    coulomb_hessian_product: (
        """\
(J, C, k) ↦
  (a, f) ↦
    4 Σ_{d,e,p,s} C[p,e]* J[a,s,p,d] k[d,e] C[s,f]
    + 4 Σ_{d,e,p,r} J[r,a,p,d]* k[d,e]* C[p,e] C[r,f]
    + 4 Σ_{d,j,r,s} C[r,j]* J[r,s,a,d] k[d,f] C[s,j]""",
        r"(J, C, k) \mapsto (a, f) \mapsto 4 \sum_{d,e,p,s} C_{p,e}^{*} J_{a,s,p,d} k_{d,e} C_{s,f}"
        r" + 4 \sum_{d,e,p,r} J_{r,a,p,d}^{*} k_{d,e}^{*} C_{p,e} C_{r,f}"
        r" + 4 \sum_{d,j,r,s} C_{r,j}^{*} J_{r,s,a,d} k_{d,f} C_{s,j}",
    ),
    conjugate_gradient: (
        """\
(x, r, p, alpha, beta, R) ↦
  u[i] = x[i] + alpha (r[i] + beta p[i])
  (Σ_i ∇R(u)[i] (r[i] + beta p[i]), Σ_i alpha ∇R(u)[i] p[i])""",
        r"""\begin{aligned}
& (x, r, p, \alpha, \beta, R) \mapsto \\
& \quad u_{i} = x_{i} + \alpha (r_{i} + \beta p_{i}) \\
& \quad (\sum_{i} \nabla R(u)_{i} (r_{i} + \beta p_{i}), \\
& \quad \sum_{i} \alpha \nabla R(u)_{i} p_{i})
\end{aligned}""",
    ),
    wannier: (
        """\
(U, S, w) ↦
  ρ[n,b] = Σ_{p,q,k} U[p,n,k]* S[p,q,k,k + b] U[q,n,k + b]
  (d, e, k) ↦ 4 Σ_{b,p} w[b] ρ[e,b]* U[p,e,k + b] S[d,p,k,k + b]""",
        r"""\begin{aligned}
& (U, S, w) \mapsto \\
& \quad \rho_{n,b} = \sum_{p,q,k} U_{p,n,k}^{*} S_{p,q,k,k + b} U_{q,n,k + b} \\
& \quad (d, e, k) \mapsto 4 \sum_{b,p} w_{b} \rho_{e,b}^{*} U_{p,e,k + b} S_{d,p,k,k + b}
\end{aligned}""",
    ),
    perceptron: (
        """\
(W, x, s) ↦
  z[i] = Σ_j W[0,i,j] x[j]
  z2[i] = Σ_j W[1,i,j] s(z[j])
  y_bar[i] = s'(z2[i])
  i ↦ s'(z[i]) Σ_j W[1,j,i] y_bar[j]""",
        r"""\begin{aligned}
& (W, x, s) \mapsto \\
& \quad z_{i} = \sum_{j} W_{0,i,j} x_{j} \\
& \quad {z_{2}}_{i} = \sum_{j} W_{1,i,j} s(z_{j}) \\
& \quad \bar{y}_{i} = s'({z_{2}}_{i}) \\
& \quad i \mapsto s'(z_{i}) \sum_{j} W_{1,j,i} \bar{y}_{j}
\end{aligned}""",
    ),
    hermitian_functional: (
        "(H, psi) ↦ d ↦ 2 ∫ H(d, y) psi(y) dy",
        r"(H, \psi) \mapsto d \mapsto 2 \int H(d, y) \psi(y) \, \mathrm{d}y",
    ),
    convolution_functional: (
        "(g, w) ↦ d ↦ ∫ w(t) g(t - d) dt",
        r"(g, w) \mapsto d \mapsto \int w(t) g(t - d) \, \mathrm{d}t",
    ),
    least_action: (
        "(r, L, D) ↦ ∂₁L(r, D(r)) + Dᵀ(∂₂L(r, D(r)))",
        r"(r, L, D) \mapsto \partial_{1} L(r, D(r)) + D^{\top}(\partial_{2} L(r, D(r)))",
    ),
}


@pytest.mark.parametrize("build", WORKED, ids=lambda build: build.__name__)
def test_worked_results_read_as_in_a_textbook(build) -> None:
    plain, tex = WORKED[build]
    assert text(build()) == plain
    assert latex(build()) == tex


# --- one expression at a time --------------------------------------------------------------------------------------

i, j, k = indices("i j k", "n")
x, y = Var("x", Space("n", dtype=complex)), Var("y", Space("n", dtype=complex))
a, z = Var("a", Space()), Var("z", Space())
N = Var("N", Whole())
xi, xj = Apply(x, (i,)), Apply(x, (j,))
t = Var("t", Real())
R = Var("R", Function(Space("n")))
F = Var("F", Function(Space("n"), result=Space("n")))
Z = Var("Z", Function(Space("n", dtype=complex), result=Space(dtype=complex)))
row = Var("row", Range("n"))

EXPRESSIONS: list[tuple[Term, str, str | None]] = [
    # numbers
    (Number(4), "4", "4"),
    (Number(-4), "-4", "-4"),
    (Number(0.3), "0.3", "0.3"),
    (mul(Number(1e-5), z), "1e-05 z", r"10^{-5} z"),
    (power(Number(2.5e30), z), "2.5e+30^z", r"(2.5 \cdot 10^{30})^{z}"),
    (mul(HALF, z), "1/2 z", r"\frac{1}{2} z"),
    (mul(Number(0, 1), z), "i z", r"\mathrm{i} z"),
    (mul(Number(0, -2), z), "-2i z", r"-2 \mathrm{i} z"),
    (mul(Number(1, 2), z), "(1 + 2i) z", r"(1 + 2 \mathrm{i}) z"),
    (mul(Number(-1, 2), z), "-(1 - 2i) z", r"-(1 - 2 \mathrm{i}) z"),
    (mul(Number(0, Fraction(-1, 2)), z), "-i/2 z", r"-\frac{\mathrm{i}}{2} z"),
    (Mul((Number(0), z)), "0", "0"),
    # products
    (mul(xi, Number(3), xj, xi), "3 x[i]² x[j]", "3 x_{i}^{2} x_{j}"),
    (mul(add(a, z), xi), "x[i] (a + z)", "x_{i} (a + z)"),
    (mul(total((i,), xi), a), "a Σ_i x[i]", r"a \sum_{i} x_{i}"),
    (mul(total((i,), xi), total((j,), conj(xj))), "|Σ_i x[i]|²", None),
    (mul(total((i,), xi), total((j,), square(xj))), "(Σ_i x[i]) Σ_j x[j]²", None),
    (square(total((i,), xi)), "(Σ_i x[i])²", r"\left(\sum_{i} x_{i}\right)^{2}"),
    (total((i,), mul(Number(-2), xi)), "-2 Σ_i x[i]", r"-2 \sum_{i} x_{i}"),
    (total((i,), mul(Number(0.3), xi)), "Σ_i 0.3 x[i]", r"\sum_{i} 0.3 x_{i}"),
    (mul(Number(3), power(Number(2), a)), "3 · 2^a", r"3 \cdot 2^{a}"),
    (mul(xi, delta(i, j), indicator(plus(i, affine([(j, -1)])))), "δ(i, j) [i ≥ j] x[i]", None),
    (Sum((i,), ONE), "Σ_{i<n} 1", r"\sum_{i < n} 1"),
    (total((row,), Apply(x, (row,))), "Σ_{row} x[row]", r"\sum_{\mathrm{row}} x_{\mathrm{row}}"),
    # fractions and powers
    (divide(a, mul(z, xi)), "a / (z x[i])", r"\frac{a}{z x_{i}}"),
    (divide(total((i,), xi), z), "(Σ_i x[i]) / z", r"\frac{\sum_{i} x_{i}}{z}"),
    (divide(HALF, function("sqrt", z)), "1 / (2 sqrt(z))", r"\frac{1}{2 \sqrt{z}}"),
    (divide(mul(Number(0, Fraction(1, 2)), z), a), "i z / (2 a)", r"\frac{\mathrm{i} z}{2 a}"),
    (divide(ONE, add(ONE, function("exp", negate(z)))), "1 / (1 + exp(-z))", r"\frac{1}{1 + \exp(-z)}"),
    (divide(ONE, mul(Number(Fraction(2, 3)), z)), "3 / (2 z)", r"\frac{3}{2 z}"),
    (divide(a, divide(z, xi)), "a / (z (1 / x[i]))", r"\frac{a}{z \frac{1}{x_{i}}}"),
    (square(divide(a, z)), "(a / z)²", r"\left(\frac{a}{z}\right)^{2}"),
    (power(xi, Number(-2)), "1 / x[i]²", r"\frac{1}{x_{i}^{2}}"),
    (power(z, Number(Fraction(-1, 2))), "1 / z^(1/2)", r"\frac{1}{z^{1/2}}"),
    (power(z, negate(a)), "z^(-a)", "z^{-a}"),
    (power(z, Number(0)), "1", "1"),
    (power(power(z, a), Number(12)), "(z^a)¹²", "(z^{a})^{12}"),
    (power(negate(z), Number(3)), "(-z)³", "(-z)^{3}"),
    # sums
    (add(negate(xi), z), "z - x[i]", "z - x_{i}"),
    (add(negate(xi), negate(z)), "-x[i] - z", "-x_{i} - z"),
    (add(z, Number(2)), "2 + z", "2 + z"),
    (add(z, Number(-2)), "z - 2", "z - 2"),
    (add(z, Number(2, -1)), "(2 - i) + z", r"(2 - \mathrm{i}) + z"),
    (add(z, negate(add(a, xi))), "z - a - x[i]", "z - a - x_{i}"),
    (add(z, negate(add(a, negate(add(xi, MINUS_ONE))))), "z - a + x[i] - 1", "z - a + x_{i} - 1"),
    (add(negate(total((i,), xi)), z), "z - Σ_i x[i]", r"z - \sum_{i} x_{i}"),
    (total((i,), add(xi, ONE)), "Σ_i (1 + x[i])", r"\sum_{i} (1 + x_{i})"),
    (total((t,), add(z, a)), "∫ (z + a) dt", r"\int (z + a) \, \mathrm{d}t"),
    (total((t, i), mul(xi, a)), "Σ_i ∫ a x[i] dt", r"\sum_{i} \int a x_{i} \, \mathrm{d}t"),
    # conjugates and functions
    (conj(mul(a, xi)), "(a x[i])*", "(a x_{i})^{*}"),
    (square(conj(xi)), "(x[i]*)²", "(x_{i}^{*})^{2}"),
    (conj(square(xi)), "(x[i]²)*", "(x_{i}^{2})^{*}"),
    (function("abs", xi), "|x[i]|", r"\left|{x_{i}}\right|"),
    (function("abs", mul(a, function("abs", xi))), "abs(a |x[i]|)", None),
    (function("real", xi), "Re(x[i])", r"\operatorname{Re}(x_{i})"),
    (function("maximum", a, z), "max(a, z)", r"\max(a, z)"),
    (Primitive("mine", (a,)), "mine(a)", r"\operatorname{mine}(a)"),
    # indices and conditions
    (Apply(x, (affine([(i, 2), (j, -1)], 1),)), "x[2i - j + 1]", "x_{2 i - j + 1}"),
    (Apply(x, (affine([(i, -1)], 4),)), "x[4 - i]", "x_{4 - i}"),
    (Apply(x, (affine([(N, 1), (i, -1)], -1),)), "x[N - i - 1]", "x_{N - i - 1}"),
    (Apply(x, (affine([(row, 2)]),)), "x[2 row]", r"x_{2 \mathrm{row}}"),
    (Apply(x, (Affine((), 0),)), "x[0]", "x_{0}"),
    (Apply(Var("f", Space(Real())), (affine([(t, Fraction(1, 2))]),)), "f(t/2)", "f(t/2)"),
    (indicator(affine([(i, 1), (j, -1)], -1)), "[i > j]", "[i > j]"),
    (indicator(affine([(i, -1), (j, 1)])), "[i ≤ j]", r"[i \leq j]"),
    (indicator(affine([(i, -1), (j, -1)], 4)), "[i + j ≤ 4]", r"[i + j \leq 4]"),
    (indicator(affine([(i, 1)], -2)), "[i ≥ 2]", r"[i \geq 2]"),
    (indicator(affine([(N, 1), (i, -1)], -1)), "[i < N]", "[i < N]"),
    (indicator(affine([(i, 1), (j, -1)]), 2), "[(i - j) mod 2 = 0]", r"[(i - j) \, \mathrm{mod} \, 2 = 0]"),
    (
        mul(indicator(affine([(i, -1), (j, 1)], 4)), indicator(affine([(i, 1), (j, -1)])), indicator(i, 3)),
        "[0 ≤ i - j ≤ 4, i mod 3 = 0]",
        r"[0 \leq i - j \leq 4, i \, \mathrm{mod} \, 3 = 0]",
    ),
    (mul(indicator(j), indicator(affine([(N, 1), (j, -1)], -1)), xj), "[0 ≤ j < N] x[j]", r"[0 \leq j < N] x_{j}"),
    # named maps
    (Apply(F, (Lambda((i,), xi),)), "F(x)", "F(x)"),
    (Apply(F, (Lambda((i,), mul(a, xi)),)), "F(i ↦ a x[i])", r"F(i \mapsto a x_{i})"),
    (Apply(Apply(F, (x,)), (i,)), "F(x)[i]", "F(x)_{i}"),
    (Pullback(R, 0, (x,), z), "z ∇R(x)", r"z \nabla R(x)"),
    (Apply(Pullback(R, 0, (x,), mul(Number(2), z)), (i,)), "2 z ∇R(x)[i]", r"2 z \nabla R(x)_{i}"),
    (Pullback(F, 0, (x,), y), "∂F(x)ᵀ(y)", r"\partial F(x)^{\top}(y)"),
    (Pullback(Z, 0, (x,), z), "∂Z(x)ᵀ(z)", r"\partial Z(x)^{\top}(z)"),
    (delta(x, y), "δ(x, y)", r"\delta_{x,y}"),
    (Tuple((xj, Lambda((i,), xi))), "(x[j], i ↦ x[i])", r"(x_{j}, i \mapsto x_{i})"),
    # names
    (Var("rho_bar", Space()), "rho_bar", r"\bar{\rho}"),
    (Var("Ω", Space()), "Ω", r"\Omega"),
    (Apply(Var("x1", Space("n")), (i,)), "x1[i]", "{x_{1}}_{i}"),
    (Var("net_out", Space()), "net_out", r"\mathrm{net}_{\mathrm{out}}"),
]


@pytest.mark.parametrize(("term", "plain", "tex"), EXPRESSIONS, ids=[plain for _, plain, _ in EXPRESSIONS])
def test_expressions(term: Term, plain: str, tex: str | None) -> None:
    assert text(term) == plain
    if tex is not None:
        assert latex(term) == tex


# --- names of bound variables --------------------------------------------------------------------------------------


def product_of(*names: str) -> Term:
    """`A x` with the given names for the result's axis and the summation index."""
    outer, inner = indices(" ".join(names), "n")
    A = Var("A", Space("n", "n"))
    return Lambda((A, x), Lambda((outer,), total((inner,), mul(at(A, outer, inner), at(x, inner)))))


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (("i", "j"), "(A, x) ↦ i ↦ Σ_j A[i,j] x[j]"),
        (("i", "i.1"), "(A, x) ↦ i ↦ Σ_j A[i,j] x[j]"),
        (("i.1", "i"), "(A, x) ↦ j ↦ Σ_i A[j,i] x[i]"),
        (("a.17", "a.18"), "(A, x) ↦ b ↦ Σ_a A[b,a] x[a]"),
        (("@1", "@2"), "(A, x) ↦ i ↦ Σ_j A[i,j] x[j]"),
        (("@1", "i"), "(A, x) ↦ j ↦ Σ_i A[j,i] x[i]"),
        (("d", "x"), "(A, x) ↦ d ↦ Σ_y A[d,y] x[y]"),
        (("row", "row.1"), "(A, x) ↦ row ↦ Σ_{row2} A[row,row2] x[row2]"),
    ],
)
def test_bound_names_keep_the_users_where_they_can(names: tuple[str, str], shown: str) -> None:
    assert text(product_of(*names)) == shown


def test_a_name_serves_again_after_its_scope() -> None:
    first, second = indices("i i.1", "n")
    both = add(total((first,), Apply(x, (first,))), total((second,), square(Apply(x, (second,)))))
    assert text(Lambda((x,), both)) == "x ↦ Σ_i x[i] + Σ_i x[i]²"


def test_a_made_up_name_is_not_i_beside_the_imaginary_unit() -> None:
    (made_up,) = indices("@1", "n")
    assert text(total((made_up,), mul(Number(0, 1), Apply(x, (made_up,))))) == "i Σ_j x[j]"


# --- raw programs --------------------------------------------------------------------------------------------------


def layers(count: int, *, residual: bool) -> Term:
    """A network as tracing leaves it: nested applications of tensors, with or without a second use of each."""
    W, here = Var("W", Space("n", "n")), Lambda((i,), xi)
    for layer in range(count):
        row, column = indices(f"i.{layer + 1} j.{layer + 1}", "n")
        body = function("tanh", total((column,), mul(at(W, row, column), Apply(here, (column,)))))
        here = Lambda((row,), add(body, Apply(here, (row,))) if residual else body)
    return Lambda((W, x), here)


def test_a_tensor_used_twice_becomes_a_definition() -> None:
    assert text(layers(3, residual=True)) == (
        "(W, x) ↦\n"
        "  t1[i] = tanh(Σ_j W[i,j] x[j]) + x[i]\n"
        "  t2[i] = tanh(Σ_j W[i,j] t1[j]) + t1[i]\n"
        "  i ↦ tanh(Σ_j W[i,j] t2[j]) + t2[i]"
    )


def test_a_short_tensor_used_once_is_written_where_it_is_used() -> None:
    assert text(layers(2, residual=False)) == "(W, x) ↦ i ↦ tanh(Σ_k W[i,k] tanh(Σ_j W[k,j] x[j]))"


@pytest.mark.parametrize("residual", [True, False])
def test_deep_programs_print_in_linear_space(residual: bool) -> None:
    lengths = [len(text(layers(count, residual=residual))) for count in (16, 32, 64)]
    assert lengths[1] < 2.3 * lengths[0]
    assert lengths[2] < 2.3 * lengths[1]
    assert len(latex(layers(64, residual=residual))) < 200 * 64


def test_a_shared_scalar_does_not_print_exponentially() -> None:
    term: Term = z
    for _ in range(64):
        term = mul(function("sin", term), function("cos", term))
    shown = text(Lambda((z,), term))
    assert len(shown) < 64 * 200
    assert "t2 = sin(" in shown


def test_a_very_deep_expression_is_cut_into_definitions() -> None:
    term: Term = z
    for _ in range(3000):
        term = function("sin", term)
    assert max(map(len, text(Lambda((z,), term)).splitlines())) < 500


def test_lets_and_programs_inside_a_program_are_put_in_place() -> None:
    u, v, inner = Var("u", Space("n")), Var("v", Space("n")), Var("s", Space())
    twice = Lambda((v,), total((j,), mul(Number(2), Apply(v, (j,)))))
    local = Let(((inner, Apply(twice, (u,))),), mul(inner, Apply(u, (i,))))
    assert text(Lambda((u,), Lambda((i,), local))) == "u ↦ i ↦ 2 u[i] Σ_j u[j]"


def test_a_definition_made_under_a_binder_takes_its_indices() -> None:
    A = Var("A", Space("n", "n"))
    part = Lambda((j,), total((k,), mul(at(A, i, k), at(A, k, j))))
    one, two = indices("p q", "n")
    body = total((one, two), mul(Apply(part, (one,)), Apply(part, (two,)), at(A, one, two)))
    assert text(Lambda((A,), Lambda((i,), body))) == (
        "A ↦\n  t1[i,j] = Σ_k A[i,k] A[k,j]\n  i ↦ Σ_{p,q} t1[i,p] t1[i,q] A[p,q]"
    )


def test_a_program_longer_than_a_line_has_a_result_on_each() -> None:
    long = total((i,), mul(*(Apply(Var(f"tensor{n}", Space("n")), (i,)) for n in range(5))))
    pieces = [mul(Number(n + 2), Apply(Var(f"x{n}", Space("n")), (j,))) for n in range(12)]
    assert (
        text(Lambda((x,), Tuple((long, add(long, *pieces), ONE))))
        == """\
x ↦
  (
    Σ_i tensor0[i] tensor1[i] tensor2[i] tensor3[i] tensor4[i],
      Σ_i tensor0[i] tensor1[i] tensor2[i] tensor3[i] tensor4[i]
      + 2 x0[j] + 3 x1[j] + 4 x2[j] + 5 x3[j] + 6 x4[j] + 7 x5[j] + 8 x6[j] + 9 x7[j] + 10 x8[j]
      + 11 x9[j] + 12 x10[j] + 13 x11[j],
    1
  )"""
    )


# --- what holds of every program -----------------------------------------------------------------------------------


def is_balanced(shown: str) -> bool:
    """Whether parentheses, brackets and braces are closed in the order in which they were opened."""
    closing, waiting = {")": "(", "]": "[", "}": "{"}, []
    for sign in shown:
        if sign in "([{":
            waiting.append(sign)
        elif sign in closing and (not waiting or waiting.pop() != closing[sign]):
            return False
    return not waiting


@settings(max_examples=examples(20), deadline=None)
@given(programs(depth=4))
def test_every_program_prints_with_balanced_brackets(case: Case) -> None:
    for shown in (text(case.term), latex(case.term)):
        assert is_balanced(shown)
        assert "@" not in shown


def parts_of(terms: Iterable[Term]) -> list[Term]:
    """Every scalar subterm that could be printed alone."""
    return [node for term in terms for node in subterms(term) if not isinstance(node, Affine | Var)]


def unbroken(shown: str) -> str:
    """A print without its blanks and line breaks."""
    return "".join(shown.split())


@settings(max_examples=examples(20), deadline=None)
@given(programs(depth=4), st.integers(20, 200))
def test_breaking_lines_changes_no_sign(case: Case, width: int) -> None:
    assert unbroken(text(case.term, width)) == unbroken(text(case.term, 100_000))


def test_a_minus_before_a_broken_sum_stands_before_each_term() -> None:
    spaces = [Var(name, Space("n", "n")) for name in "αβ"]
    long = add(*(total((j,), mul(at(one, i, j), at(two, j, i))) for one in spaces for two in spaces))
    head = mul(add(a, z), add(a, xi), long)
    for term in (negate(long), add(z, negate(long)), negate(negate(Mul((MINUS_ONE, long)))), head, Tuple((head, a))):
        assert unbroken(text(term, 20)) == unbroken(text(term, 100_000))
    shown = text(Lambda((i,), Mul((MINUS_ONE, long))), 60)
    assert shown.splitlines()[0] == "i ↦"
    assert all(line.lstrip().startswith("-") for line in shown.splitlines()[1:])


def test_a_minus_turns_the_difference_that_it_stands_before() -> None:
    difference = Add((a, negate(z)))
    assert text(Mul((MINUS_ONE, difference))) == "z - a"
    assert text(Mul((Number(-2), difference, xi))) == "2 x[i] (z - a)"
    assert text(Mul((MINUS_ONE, divide(difference, xi)))) == "(z - a) / x[i]"
    assert text(Add((xi, Mul((MINUS_ONE, difference, xi))))) == "x[i] - x[i] (a - z)"


def test_quotients_functions_and_sums_are_broken_where_they_are_long() -> None:
    spaces = [Var(name, Space("n", "n")) for name in "αβ"]
    terms = add(*(mul(at(one, i, j), at(two, j, i)) for one in spaces for two in spaces))
    quotient = divide(total((j,), terms), add(function("exp", terms), a))
    assert (
        text(Lambda((i,), function("log", quotient)), 40)
        == """\
i ↦ log(
  (
    Σ_k (
      α[i,k] α[k,i] + α[i,k] β[k,i]
      + β[i,k] α[k,i] + β[i,k] β[k,i]
    )
  ) / (
    exp(
      α[i,j] α[j,i] + α[i,j] β[j,i]
      + β[i,j] α[j,i] + β[i,j] β[j,i]
    )
    + a
  )
)"""
    )


@settings(max_examples=examples(15), deadline=None)
@given(programs())
def test_every_part_of_a_program_prints_alone(case: Case) -> None:
    for part in parts_of([case.term]):
        assert is_balanced(text(part))
        assert is_balanced(latex(part))


@settings(max_examples=examples(15), deadline=None)
@given(programs(guarded=False))
def test_the_outline_has_the_value_of_the_program(case: Case) -> None:
    parts = outline(case.term)
    expected = evaluate(case.term.body, case.environment, case.sizes)
    found = evaluate(let(parts.definitions, parts.result), case.environment, case.sizes)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=examples(15), deadline=None)
@given(programs(result="scalar", guarded=False))
def test_a_monomial_has_the_value_of_its_term(case: Case) -> None:
    def product(factors: dict[Term, int]) -> Term:
        return mul(*(power(base, Number(exponent)) for base, exponent in factors.items()))

    body = outline(case.term).result
    bindings = outline(case.term).definitions
    parts = monomial(body)
    rebuilt = divide(mul(parts.coefficient, product(parts.above)), product(parts.below))
    values = [evaluate(let(bindings, term), case.environment, case.sizes) for term in (body, rebuilt)]
    np.testing.assert_allclose(values[1], values[0], rtol=1e-9, atol=1e-12)


@given(
    st.lists(
        st.tuples(*[st.integers(-3, 3)] * 4, st.sampled_from([0, 0, 0, 2, 3])).filter(lambda form: any(form[:3])),
        min_size=1,
        max_size=3,
    )
)
def test_written_conditions_hold_where_the_conditions_do(forms: list[tuple[int, ...]]) -> None:
    conditions = [Indicator(affine(zip((i, j, N), form[:3], strict=True), form[3]), form[4]) for form in forms]
    shown = text(Mul((*conditions, a)))
    claim = re.fullmatch(r"\[(.*)\] a", shown)[1].replace(", ", ") and (").replace("≤", "<=").replace("≥", ">=")
    claim = re.sub(r"(?<![<>])=(?!=)", "==", re.sub(r"(\d)([ijN])", r"\1*\2", claim)).replace("mod", "%")
    for values in itertools.product((-2, 0, 1, 3), repeat=3):
        held = [sum(c * v for c, v in zip(f[:4], (*values, 1), strict=True)) for f in forms]
        expected = all(h % f[4] == 0 if f[4] else h >= 0 for h, f in zip(held, forms, strict=True))
        assert bool(eval(f"({claim})", {}, dict(zip("ijN", values, strict=True)))) == expected, shown


# --- other processes, other readers --------------------------------------------------------------------------------

PRINT_ALL = """
import sys
sys.path[:0] = sys.argv[1:]
from test_printing import EXPRESSIONS, WORKED, latex, layers, product_of, text
terms = [*(build() for build in WORKED), *(term for term, _, _ in EXPRESSIONS), layers(9, residual=True)]
terms += [product_of("@1", "@2"), product_of("a.3", "a.4")]
sys.stdout.buffer.write("\\n".join(shown(term) for term in terms for shown in (text, latex)).encode())
"""


@pytest.mark.thorough
def test_printing_is_the_same_under_every_hash_seed() -> None:
    def printed(seed: int) -> bytes:
        command = [sys.executable, "-c", PRINT_ALL, str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "printing")]
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        return subprocess.run(command, capture_output=True, check=True, env=environment).stdout

    assert printed(1) == printed(2) != b""


def assert_mathtext_reads(shown: str) -> None:
    from matplotlib import mathtext

    mathtext.MathTextParser("path").parse(f"${shown}$")


@pytest.mark.needs("matplotlib")
def test_latex_on_one_line_is_read_by_mathtext() -> None:
    shown = [*(tex for _, tex in WORKED.values()), *(latex(term) for term, _, _ in EXPRESSIONS)]
    for line in shown:
        if r"\begin" not in line:
            assert_mathtext_reads(line)


@pytest.mark.needs("matplotlib")
@settings(max_examples=examples(15), deadline=None)
@given(programs())
def test_latex_of_random_programs_is_read_by_mathtext(case: Case) -> None:
    shown = latex(case.term).removeprefix("\\begin{aligned}\n").removesuffix("\n\\end{aligned}")
    for line in shown.split(r"\\"):
        line = line.strip().removeprefix("& ").strip()
        if is_balanced(line):  # not one of the several lines of a tuple
            assert_mathtext_reads(line)


def test_conditions_in_products_inside_a_product_bound_its_sum() -> None:
    """The names of the sizes in these bounds are known, too; a product that stands there twice stays one."""
    b, m = Symmetric("b"), Whole()
    i, x = Var("i", b), Var("x", Space("m"))
    inner = Mul(
        (
            indicator(affine([(i, 1)], -1)),
            indicator(affine([(i, -1), (Var("m", m), 1)])),
            Apply(x, (affine([(i, 1)], -1),)),
        )
    )
    assert text(Lambda((x,), Sum((i,), Mul((inner, inner))))) == "x ↦ Σ_{i=1}^{min(b, m)} x[i - 1]²"


def test_a_tensor_and_its_conjugate_are_no_average_over_symmetries() -> None:
    """No index is exchanged: it was printed as `Herm_{,}`, which cannot be read."""

    @cd.program
    def f(x: cd.Space("n", dtype=complex)):
        t = cd.tensor(lambda i: x[i] * x[i] + 1)
        return cd.tensor(lambda i: x[i] * (t[i] + np.conj(t[i])))

    assert "Herm" not in str(f)
    z = np.array([1 + 2j, 3 - 1j])
    np.testing.assert_allclose(cd.read(str(f), {"x": cd.Space("n", dtype=complex)})(z), f(z))


def test_inverses_of_definitions_tell_no_ranges_of_others() -> None:
    """The axes of inv(t) are those of t, which the reader has to know first: `t[q]` was written without its cycle."""
    cycle = cd.Cyclic(3)

    @cd.program
    def f(x: cd.Space(cycle)):
        shares = cd.tensor(lambda q: np.tanh(x[4 * q + 3]), q=cycle)
        matrix = cd.tensor(lambda d, e: 3 * cd.delta(d, e) + shares[e] * shares[d], d=cycle, e=cycle)
        inverse = cd.inv(matrix)
        return cd.tensor(lambda r: inverse[r, r] + inverse[r + 1, r] * shares[r], r=cycle)

    x = np.array([0.3, -0.5, 0.8])
    np.testing.assert_allclose(cd.read(str(f), {"x": cd.Space(cycle)})(x), f(x))


@pytest.mark.parametrize(
    ("index", "cycle", "shown"),
    [
        (affine([], -2), Cyclic("c"), "[(2 + idx[i]) mod c = 0]"),
        (affine([(Var("j", Cyclic("m")), 2)], 1), Cyclic(3), "[(idx[i] - 2 j - 1) mod 3 = 0]"),
        (Var("i", Cyclic("c")), Cyclic("c"), "δ(idx[i], i)"),
    ],
)
def test_a_position_that_an_array_holds_is_compared_around_the_cycle_that_is_meant(
    index: Term, cycle: Domain, shown: str
) -> None:
    """Where the other index is on that cycle, it tells it; `δ(idx[i], -2)` was read back as one of whole numbers."""
    c, m = Cyclic("c"), Cyclic("m")
    held, x, i, j = Var("idx", Space(c, dtype=int)), Var("x", Space(m)), Var("i", c), Var("j", m)
    term = Lambda((held, x), Lambda((i, j), mul(Apply(x, (j,)), delta(Apply(held, (i,)), index, cycle))))
    written = text(term)
    assert written == f"(idx, x) ↦ (i, j) ↦ {shown} x[j]"
    arrays = {held: np.array([0, 1, 2, 3, 4]), x: np.array([3.0, 5.0])}
    sizes = {"c": 5, "m": 2}
    read = cd.read(written, {"idx": held.type, "x": x.type}).term
    expected = evaluate(term.body, arrays, sizes)
    found = evaluate(read.body, dict(zip(read.parameters, arrays.values(), strict=True)), sizes)
    np.testing.assert_array_equal(found, expected)
    assert expected.any()


def test_positions_are_compared_with_shifted_indices() -> None:
    """The range of d + 1 is not that of d: read back, sorted places past it were refused."""

    @cd.program
    def f(c: cd.Space("n")):
        return np.sort(np.pad(c, 1, mode="edge")).sum()

    c = np.array([0.5, -0.3, 0.2])
    gradient = cd.grad(f, "c")
    np.testing.assert_allclose(cd.read(str(gradient), {"c": cd.Space("n")})(c), [2, 1, 2])
