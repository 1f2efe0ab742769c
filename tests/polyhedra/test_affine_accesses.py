"""Tensors read at affine indices: derivatives of every order against brute force, and what they look like.

Random integer maps, up to three indices each way with coefficients −4 … 4 and offsets, are read behind a condition that
keeps them inside the tensor; the gradient is compared with loops over all indices, and so is the Hessian.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import examples

import combdiff as cd
from combdiff.differentiation.pullback import pull
from combdiff.ir.domains import Cyclic, Range, Space, Symmetric, extent, first_index
from combdiff.ir.indices import affine, indicator, size_form
from combdiff.ir.interpreter import evaluate
from combdiff.ir.let_form import share, split
from combdiff.ir.primitives import function
from combdiff.ir.substitution import Names
from combdiff.ir.terms import ONE, Apply, Lambda, Term, Tuple, Var, let, mul, total
from combdiff.runtime.execution import run
from combdiff.simplification.pipeline import simplify_body

pytestmark = pytest.mark.filterwarnings("ignore::combdiff.BudgetWarning")
QUICK: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
}


@dataclass(frozen=True)
class Access:
    """`Σ_α sin(x[Aα + c])·y[α]`, guarded where Aα + c may leave x."""

    term: Lambda
    matrix: tuple[tuple[int, ...], ...]
    offset: tuple[int, ...]
    sizes: dict[str, int]

    def targets(self) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
        """For each position in x, the positions in y that read it, by looping over all."""
        x, y = self.term.parameters
        found: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for stored in itertools.product(*(range(extent(axis, self.sizes)) for axis in y.type.axes)):
            alpha = [n + first_index(axis, self.sizes) for n, axis in zip(stored, y.type.axes, strict=True)]
            beta = [
                sum(a * b for a, b in zip(row, alpha, strict=True)) + c
                for row, c in zip(self.matrix, self.offset, strict=True)
            ]
            place = tuple(self._stored(b, axis) for b, axis in zip(beta, x.type.axes, strict=True))
            if None not in place:
                found.setdefault(place, []).append(stored)
        return found

    def _stored(self, value: int, axis: Any) -> int | None:
        size, first = extent(axis, self.sizes), first_index(axis, self.sizes)
        if isinstance(axis, Cyclic):
            return value % size
        return value - first if first <= value < first + size else None


@st.composite
def accesses(draw: st.DrawFn) -> Access:
    sizes = {"n": draw(st.integers(0, 4)), "m": draw(st.integers(1, 4)), "b": 1}
    domains = [Range(1), Range(2), Range(3), Range(5), Range("n"), Range("m"), Symmetric(1), Symmetric("b")]
    order, wide = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    cycle = Cyclic(draw(st.sampled_from([3, 4, 6])))
    alpha = [Var(f"i{n}", draw(st.sampled_from([*domains, cycle]))) for n in range(wide)]
    plain = [Range(3), Range(6), Range("n"), Range("m"), Symmetric(2)]
    axes = [draw(st.sampled_from([*plain, cycle])) for _ in range(order)]
    matrix = tuple(tuple(draw(st.integers(-4, 4)) for _ in alpha) for _ in axes)
    offset = tuple(draw(st.integers(-2, 4)) for _ in axes)
    forms = [affine(zip(alpha, row, strict=True), c) for row, c in zip(matrix, offset, strict=True)]
    guards = [g for form, axis in zip(forms, axes, strict=True) for g in inside(form, axis)]
    x, y = Var("x", Space(*axes)), Var("y", Space(*(v.type for v in alpha)))
    body = total(alpha, mul(*guards, function("sin", Apply(x, tuple(forms))), Apply(y, tuple(alpha))))
    return Access(Lambda((x, y), body), matrix, offset, sizes)


def inside(form: Term, axis: Any) -> list[Term]:
    """Conditions that a form is an index of the axis."""
    if isinstance(axis, Cyclic):
        return []
    if isinstance(axis, Symmetric):
        bound = size_form(axis.bound)
        return [indicator(affine([(form, 1), (bound, 1)])), indicator(affine([(form, -1), (bound, 1)]))]
    return [indicator(affine([(form, 1)])), indicator(affine([(form, -1), (size_form(axis.size), 1)], -1))]


def gradient(body: Term, point: Var, *, simplify: bool) -> Term:
    backward, (found,) = pull(body, (point,), ONE, Names(body))
    raw = let((*split(body)[0], *backward), found)
    return simplify_body(raw) if simplify else share(raw)


@settings(max_examples=examples(8), **QUICK)
@given(accesses(), st.integers(0, 99))
def test_derivatives_of_random_accesses_to_second_order(case: Access, seed: int) -> None:
    """Gradient and Hessian-vector product of Σ sin(x[Aα + c]) y[α], interpreted and executed, against loops."""
    x, y = case.term.parameters
    rng = np.random.default_rng(seed)
    values = {v: rng.standard_normal([extent(a, case.sizes) for a in v.type.axes]) for v in (x, y)}
    expected, curved = np.zeros_like(values[x]), np.zeros_like(values[x])
    direction = rng.standard_normal(values[x].shape)
    for place, sources in case.targets().items():
        weight = sum(values[y][source] for source in sources)
        expected[place] += np.cos(values[x][place]) * weight
        curved[place] -= np.sin(values[x][place]) * weight * direction[place]
    found = gradient(share(case.term.body), x, simplify=True)
    agree(found, values, case, expected)
    agree(gradient(share(case.term.body), x, simplify=False), values, case, expected)
    v = Var("v", x.type)
    names = Names(found, v)
    indices = names.indices(x.type.axes)
    element = Apply(found, indices) if isinstance(found, Lambda) else found
    objective = share(total(indices, mul(element, Apply(v, indices))))
    if not isinstance(found, Tuple):
        second = gradient(objective, x, simplify=True)
        agree(second, {**values, v: direction}, case, curved)


def agree(term: Term, values: dict[Var, Any], case: Access, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(evaluate(term, values, case.sizes)), expected, atol=1e-10)
    executed = run(Lambda(tuple(values), term), list(values.values()), case.sizes)
    np.testing.assert_allclose(np.asarray(executed), expected, atol=1e-10)


# --- what derivatives look like ------------------------------------------------------------------------------------


def test_the_derivative_of_a_convolution_has_closed_bounds() -> None:
    @cd.program
    def f(x: cd.Space(9), w: cd.Space(3), v: cd.Space(7)):
        return cd.sum(lambda i, k: x[i + k] * w[k] * v[i])

    assert str(cd.grad(f)) == "(x, w, v) ↦ d<9 ↦ Σ_{k=max(0, d - 6)}^{min(2, d)} v[d - k] w[k]"
    assert str(cd.grad(f, wrt="w")) == "(x, w, v) ↦ d<3 ↦ Σ_i v[i] x[d + i]"
    assert r"\sum_{k=\max(0, d - 6)}^{\min(2, d)}" in cd.grad(f).latex()


def test_strides_leave_integrality_conditions_and_rounded_bounds() -> None:
    @cd.program
    def dilated(x: cd.Space(11), y: cd.Space(3, 3)):
        return cd.sum(lambda i, j: x[2 * i + 3 * j] * y[i, j])

    shown = str(cd.grad(dilated))
    assert "δ" not in shown
    assert "⌈d/3⌉" in shown
    assert r"\left\lceil \frac{d}{3} \right\rceil" in cd.grad(dilated).latex()

    @cd.program
    def pairs(x: cd.Space(8), y: cd.Space(4)):
        return cd.sum(lambda i: x[2 * i + 1] * y[i])

    assert str(cd.grad(pairs)) == "(x, y) ↦ d<8 ↦ [d mod 2 = 1] y[d/2 - 1/2]"


def test_a_strided_walk_round_a_cycle_is_solved_modulo_its_size() -> None:
    @cd.program
    def f(x: cd.Space(cd.Cyclic(6)), y: cd.Space(cd.Cyclic(6))):
        return cd.sum(lambda i: x[2 * i] * y[i])

    assert "δ" not in str(cd.grad(f))
    x, y = np.random.default_rng(0).standard_normal((2, 6))
    expected = np.zeros(6)
    np.add.at(expected, 2 * np.arange(6) % 6, y)
    np.testing.assert_allclose(cd.grad(f)(x, y), expected)


def test_a_diagonal_keeps_its_delta_outside_of_the_sum() -> None:
    @cd.program
    def f(c: cd.Space("n", "n"), y: cd.Space("n", "n")):
        return cd.sum(lambda i, j: c[i, i] ** 2 * y[i, j])

    assert str(cd.grad(f)) == "(c, y) ↦ (d, e) ↦ 2 δ(d, e) c[d,d] Σ_i y[d,i]"


def test_selection_rules_lose_an_index() -> None:
    @cd.program
    def f(A: cd.Space("n", "n"), B: cd.Space("n", "n")):
        return cd.sum(lambda i, j, k, m: cd.delta(i + j, k + m) * A[i, j] * B[k, m])

    assert "δ" not in str(cd.simplify(f))
    A, B = np.random.default_rng(0).standard_normal((2, 4, 4))
    expected = sum(A[i, j] * B[k, m] for i, j, k, m in itertools.product(range(4), repeat=4) if i + j == k + m)
    assert abs(f(A, B) - expected) < 1e-12
    assert abs(cd.simplify(f)(A, B) - expected) < 1e-12


def test_sizes_in_several_bounds_keep_their_names() -> None:
    @cd.program
    def f(A: cd.Space("n", "n"), x: cd.Space("n")):
        return cd.sum(lambda i, j: cd.where(j <= i, A[i, j] * x[j] * x[i], 0))

    assert str(cd.grad(f, wrt="x")) == "(A, x) ↦ d ↦ Σ_{i=0}^{d} A[d,i] x[i] + Σ_{i=d}^{n - 1} A[i,d] x[i]"
