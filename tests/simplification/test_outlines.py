"""What is made without laws: outlines, by which a mode of Hessians is chosen, and results beyond a spent budget."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from known_programs import logistic

import combdiff as cd
from combdiff.api import transforms
from combdiff.ir import Add, Delta, Mul, Number, Sum, mul, subterms
from combdiff.ir.interpreter import evaluate
from combdiff.simplification import canonical, outline
from combdiff.testing.arrays import random_arrays

Matrix = cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"])


def hyperbolic(steps: int) -> cd.Program:
    @cd.program
    def last(r: cd.Space(), x: cd.Space()):
        for _ in range(steps):
            x = r * x / (1 + x)
        return x

    return last


@cd.program
def energy(A: Matrix, x: cd.Space("n")):
    t = A @ x
    return x @ t + (t * t).sum() + cd.sum(lambda i: cd.exp(x[i]) * t[i] / (2 + x[i] ** 2))


@pytest.mark.parametrize("mode", ["forward", "reverse", "cross-country"])
@pytest.mark.parametrize("program", [logistic(3), energy], ids=["logistic", "energy"])
def test_an_outline_has_the_value_of_the_program(program: cd.Program, mode: str) -> None:
    raw = cd.hessian(program, wrt="x", mode=mode, simplify=False).term
    sizes = {"n": 3}
    arrays = random_arrays(raw.parameters, np.random.default_rng(1), sizes)
    environment = {p: arrays[p.name] for p in raw.parameters}
    expected = evaluate(raw.body, environment, sizes)
    np.testing.assert_allclose(evaluate(outline(raw.body), environment, sizes), expected, rtol=1e-9, atol=1e-12)


@pytest.fixture
def simplified(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is simplified of derivatives."""
    seen: list[object] = []
    derived = transforms.derived

    def counted(*given: object, **named: object) -> object:
        seen.append(given)
        return derived(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(transforms, "derived", counted)
    return seen


@pytest.mark.thorough
def test_of_a_long_hessian_one_mode_is_simplified(simplified: list[object]) -> None:
    hessian = cd.hessian(logistic(6), wrt="x")
    assert len(simplified) == 2, "the gradient, and one of three modes"
    step = 1e-4
    slope = cd.grad(logistic(6), wrt="x")
    assert hessian(3.1, 0.2) == pytest.approx((slope(3.1, 0.2 + step) - slope(3.1, 0.2 - step)) / (2 * step), rel=1e-5)


@pytest.mark.thorough
def test_of_a_short_hessian_modes_are_left_out_that_another_is_clearly_shorter_than(simplified: list[object]) -> None:
    @cd.program
    def loss(w: cd.Space("n"), X: cd.Space("m", "n"), y: cd.Space("m")):
        return np.log(1 + np.exp(-y * (X @ w))).sum() + (w**2).sum() / 2

    @cd.program
    def divergence(x: cd.Space("n"), y: cd.Space("n")):
        return (x * np.log(x / (x + y))).sum()

    cd.hessian(loss, wrt="w")
    assert len(simplified) == 2, "the gradient, and one of three modes"
    simplified.clear()
    hessian = cd.hessian(divergence, wrt="x")  # the shortest has neither the shortest outline nor that of least work
    assert len(simplified) > 2
    assert str(hessian) == "(x, y) ↦ (a, d) ↦ δ(a, d) y[d]² / (x[d] (x[d] + y[d])²)"


def test_what_a_loop_uses_twice_is_computed_once() -> None:
    lengths = [len(str(cd.grad(logistic(steps), wrt="x"))) for steps in (6, 12)]
    assert lengths[1] < 2.5 * lengths[0]
    assert "r t (1 - t)" in str(logistic(3))


@pytest.mark.sample(2)
@pytest.mark.parametrize("limit", [{"nodes": 0}, {"rounds": 0}, {"seconds": 0}], ids=["nodes", "rounds", "seconds"])
@pytest.mark.parametrize("program", [hyperbolic(5), energy], ids=["hyperbolic", "energy"])
def test_a_spent_budget_leaves_the_normal_form(program: cd.Program, limit: dict[str, int]) -> None:
    with cd.budget(**limit), pytest.warns(cd.BudgetWarning):
        found = cd.grad(program, wrt="x").term
    assert len(list(subterms(found))) < 200, "numbers that are used again are bound"
    for node in subterms(found):
        if isinstance(node, Sum):
            assert not any(isinstance(p, Delta) and not p.free.isdisjoint(node.indices) for p in subterms(node))
        if isinstance(node, Add):
            alike = Counter(canonical(_without_number(term)) for term in node.terms)
            assert max(alike.values()) == 1, node


def _without_number(term: object) -> object:
    return mul(*(f for f in term.factors if not isinstance(f, Number))) if isinstance(term, Mul) else term
