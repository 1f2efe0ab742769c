"""Tensors whose symmetries change the sign: every δ of a derivative meets its Σ, as without the signs."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir import Add, Apply, Lambda, Mul, Number, Range, Space, Var, mul
from combdiff.simplification.normal_form.symmetries import with_symmetries

AMPLITUDES = ["t[a,b,i,j] = -t[b,a,i,j]", "t[a,b,i,j] = -t[a,b,j,i]"]
INTEGRALS = ["V[i,j,a,b] = -V[j,i,a,b]", "V[i,j,a,b] = -V[i,j,b,a]"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("last", [(0, 0), (1, 0), (0, 1), (1, 1), (2, 2)])
def test_the_gradient_of_a_coupled_cluster_term(last: tuple[int, int]) -> None:
    amplitudes, integrals = AMPLITUDES[: last[0]], INTEGRALS[2 - last[1] :]

    @cd.program
    def cubic(
        t: cd.Space("v", "v", "o", "o", symmetry=amplitudes), V: cd.Space("o", "o", "v", "v", symmetry=integrals)
    ):
        return cd.sum(lambda a, b, c, d, i, j, k, l: V[k, l, c, d] * t[c, d, i, j] * t[a, b, k, l] * t[a, b, i, j])  # noqa: E741

    gradient = cd.grad(cubic, wrt="t")
    assert "δ" not in str(gradient)
    assert 3 <= str(gradient).count("Σ") <= 4  # three terms; two of them may be one Σ of t times a sum of two
    rng = np.random.default_rng(1)
    t, V, u = rng.normal(size=(3, 3, 2, 2)), rng.normal(size=(2, 2, 3, 3)), rng.normal(size=(3, 3, 2, 2))
    t, u = (a - a.transpose(1, 0, 2, 3) for a in (t, u))
    t, u = (a - a.transpose(0, 1, 3, 2) for a in (t, u))
    V = V - V.transpose(1, 0, 2, 3)
    V = V - V.transpose(0, 1, 3, 2)
    step = 1e-6
    expected = (cubic(t + step * u, V) - cubic(t - step * u, V)) / (2 * step)
    np.testing.assert_allclose((gradient(t, V) * u).sum(), expected, rtol=1e-7)


def test_what_is_zero_tells_no_symmetries() -> None:
    """It has all of them, also those that contradict each other."""
    t, x = Var("t", Space("n", "n")), Var("x", Space("n"))
    i, j = Var("i", Range("n")), Var("j", Range("n"))
    product = mul(Apply(x, (i,)), Apply(x, (j,)))
    zero = Lambda((i, j), Add((product, Mul((Number(-1), *product.factors)))))
    assert with_symmetries(t, zero) is t
    assert with_symmetries(t, Lambda((i, j), product)) is not t


Integrals = cd.Space("N", "N", "N", "N", symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = J[q,p,r,s]"])


@pytest.mark.thorough
def test_two_pairs_of_axes_may_change_together() -> None:
    """t[i,a,j,b] = t[j,b,i,a] of integrals in molecular orbitals: both orbital energies have one derivative."""

    @cd.program
    def mp2(J: Integrals, U: cd.Space("N", "o"), V: cd.Space("N", "v"), e: cd.Space("o"), f: cd.Space("v")):
        t = np.einsum("pi,qa,rj,sb,pqrs->iajb", U, V, U, V, J)
        gaps = e[:, None, None, None] - f[:, None, None] + e[:, None] - f
        return (t * (2 * t - t.transpose(0, 3, 2, 1)) / gaps).sum()

    assert str(cd.grad(mp2, "f")).splitlines()[2].strip() == (
        "d ↦ 2 Σ_{i,j,a} t[i,a,j,d] (2 t[i,a,j,d] - t[i,d,j,a]) / (e[i] + e[j] - f[d] - f[a])²"
    )
    draw = np.random.default_rng(1).normal
    J = draw(size=(3, 3, 3, 3))
    J = J + J.transpose(1, 0, 2, 3)
    J = J + J.transpose(0, 1, 3, 2)
    arrays = {"J": J + J.transpose(2, 3, 0, 1), "U": draw(size=(3, 2)), "V": draw(size=(3, 2))}
    for name in ("V", "f"):
        cd.testing.check_grad(mp2, wrt=name, **arrays, e=-1 - draw(size=2) ** 2, f=1 + draw(size=2) ** 2)
