"""What is the same in every step of a scan is done once before it; reads that leave an array are slices among zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.planning import Iteration, Parameter, Plan, make_plan
from combdiff.runtime.execution import find_paths, stable


def unchanging(plan: Plan) -> list[str]:
    """What iterations do in each step that neither states nor slices have part in."""
    found = []
    for operation in (step.operation for step in plan.steps if isinstance(step.operation, Iteration)):
        inner, own = plan.inner[operation.system], operation.states + operation.stacks
        changing = {p.name for p in operation.system.parameters[:own]}
        changed: set[int] = set()
        for n, step in enumerate(inner.steps):
            if not changed.isdisjoint(step.operands) or getattr(step.operation, "name", None) in changing:
                changed.add(n)
            elif not isinstance(step.operation, Parameter) and not inner.numbers[n]:
                found.append(step.operation.title)
    return found


@cd.program
def cell(w: cd.Space(3, 2), x0: cd.Space(2), u: cd.Space("T", 2)):
    def step(x: Any, v: Any) -> Any:
        return (w[0] - w[1] + 3) * x + w[2] * v + np.tanh(w[1]) + np.arange(2), w[0]

    last, ys = cd.scan(step, x0, u)
    return (last @ last) + (ys * ys).sum()


@pytest.mark.thorough
def test_a_step_does_what_its_states_have_part_in_alone() -> None:
    for program in (cell, cd.grad(cell), cd.hvp(cell)):
        plan = make_plan(stable(program.term), {"T": 5}, find_paths)
        assert any(isinstance(step.operation, Iteration) for step in plan.steps)
        assert unchanging(plan) == []


def test_values_and_derivatives_are_those_of_the_steps_for_any_number_of_them() -> None:
    r = np.random.default_rng(0)
    for count in (0, 1, 4):
        w, x0, u = r.normal(size=(3, 2)), r.normal(size=2), r.normal(size=(count, 2))
        x = x0
        for v in u:
            x = (w[0] - w[1] + 3) * x + w[2] * v + np.tanh(w[1]) + np.arange(2)
        assert np.isclose(cell(w, x0, u), x @ x + count * w[0] @ w[0])
        cd.testing.check_grad(cell, "w", w=w, x0=x0, u=u)


def test_reads_beyond_the_ends_are_slices_among_zeros() -> None:
    @cd.program
    def beside(x: cd.Space("n"), A: cd.Space("n", "n")):
        left = cd.tensor(lambda i: cd.where(i >= 1, x[i - 1], 0), i="n")
        return np.sin(left) + cd.tensor(lambda j, i: cd.where(i + 1 < j, A[i, j], 0) + x[j]).sum(1)

    assert "_view" not in beside.source()
    x, A = np.arange(1.0, 6), np.arange(25.0).reshape(5, 5)
    np.testing.assert_allclose(beside(x, A), np.sin([0, 1, 2, 3, 4]) + np.triu(A, 2).sum(0) + 5 * x)
    slope = np.diag(np.cos([1, 2, 3, 4]), -1) + 5 * np.eye(5)
    np.testing.assert_allclose(cd.jacobian(beside, "x")(x, A), slope)


def test_a_comparison_chooses_from_the_smallest_of_what_is_multiplied() -> None:
    @cd.program
    def kmeans(c: cd.Space("k", "d"), p: cd.Space("n", "d")):
        return cd.sum(lambda i: cd.min(lambda k: cd.sum(lambda a: (p[i, a] - c[k, a]) ** 2)))

    product, sizes = cd.hvp(kmeans), {"n": 50, "k": 4, "d": 10}
    plan = make_plan(stable(product.term), sizes, find_paths)
    chosen = [plan.elements(n) for n, step in enumerate(plan.steps) if step.operation.title == "chosen"]
    assert chosen == [sizes["n"] * sizes["k"]]
    r = np.random.default_rng(0)
    c, p, v = r.normal(size=(4, 10)), r.normal(size=(50, 10)), r.normal(size=(4, 10))
    nearest = ((p[:, None] - c) ** 2).sum(2).argmin(1)
    np.testing.assert_allclose(product(c, p, v), 2 * np.bincount(nearest, minlength=4)[:, None] * v)
