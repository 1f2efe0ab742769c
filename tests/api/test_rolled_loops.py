"""`cd.simplify(f, rolled=True)`: Python's loops as recurrences, with the values and derivatives of the loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from known_programs import logistic

import combdiff as cd
from combdiff.ir import Scan, canonical_names, subterms

Number, Vector, Matrix = cd.Space(), cd.Space(2), cd.Space(2, 2)
FEW = settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def scans(f: cd.Program) -> int:
    """How many iterations a program has, one for each step that is another one."""
    return len({canonical_names(node.step) for node in subterms(f.term) if isinstance(node, Scan)})


def test_a_loop_prints_and_differentiates_as_a_recurrence_whatever_its_length() -> None:
    rolled = {steps: cd.simplify(logistic(steps), rolled=True) for steps in (3, 10, 200)}
    texts = {
        steps: str(cd.grad(f)).replace(f"x2[{steps}]", "x2[T]").replace(f"x3[{steps}]", "x3[T]")
        for steps, f in rolled.items()
    }
    assert len(set(texts.values())) == 1
    assert np.isclose(cd.grad(rolled[10])(3.7, 0.3), cd.grad(logistic(10), simplify=False)(3.7, 0.3))
    assert scans(cd.simplify(logistic(2), rolled=True)) == 0  # two steps may be alike by chance
    assert "x2" not in str(cd.simplify(logistic(3)))  # only when asked


def test_whole_numbers_that_count_the_steps_and_numbers_of_each_step_belong_to_the_loop() -> None:
    @cd.program
    def layers(W: cd.Space(6, "n", "n"), x: cd.Space("n")):
        for k in range(5):
            x = np.tanh(W[5 - k] @ x) * (2 * k + 3)
        for h in (0.1, 0.3, 0.25, 0.7):
            x = x - h * np.sin(x)
        return x @ x

    rolled = cd.simplify(layers, rolled=True)
    assert scans(rolled) == 2
    assert "(2t + 3) tanh(Σ_j W[5 - t,i,j]" in str(rolled)
    W, x = 0.4 * np.random.default_rng(0).normal(size=(6, 3, 3)), np.array([0.3, -0.2, 0.9])
    results = (cd.value_and_grad(f, simplify=False)(W, x) for f in (rolled, layers))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.thorough
def test_steps_of_many_parts_are_rolled_however_many_there_are() -> None:
    """Sixteen steps of an LSTM, each nested in the next, went beyond Python's limit of recursion."""

    def cell(W: Any, x: Any, h: Any, c: Any) -> tuple[Any, Any]:
        z = W[:, :2] @ h + W[:, 2:] @ x
        i, f, o = (1 / (1 + np.exp(-part)) for part in (z[:2], z[2:4], z[4:6]))
        c = f * c + i * np.tanh(z[6:])
        return o * np.tanh(c), c

    for steps in (16, 60):

        @cd.program
        def lstm(W: cd.Space(8, 4), xs: cd.Space(steps, 2), h: Vector, c: Vector):
            for k in range(steps):  # noqa: B023  (traced at once)
                h, c = cell(W, xs[k], h, c)
            return (h**2).sum()

        rolled = cd.simplify(lstm, rolled=True)
        assert scans(rolled) == 1
        rng = np.random.default_rng(steps)
        arrays = [0.5 * rng.normal(size=shape) for shape in ((8, 4), (steps, 2), 2, 2)]
        assert rolled(*arrays) == pytest.approx(lstm(*arrays), rel=1e-12)


@pytest.mark.thorough
def test_loops_in_loops_under_indices_and_with_several_states() -> None:
    @cd.program
    def nested(x: Vector, a: Number):
        def settled(y: Any) -> Any:
            z = a
            for _ in range(4):
                for _ in range(3):
                    y, z = 3 * np.sin(y) + z, y * z
                y = y * y
            return y + z

        return cd.sum(lambda i: settled(x[i]))

    rolled = cd.simplify(nested, rolled=True)
    assert scans(rolled) == 2
    values = np.array([0.3, -0.4]), 0.2
    np.testing.assert_allclose(rolled(*values), nested(*values), rtol=1e-12)
    np.testing.assert_allclose(*(cd.grad(f, "a", simplify=False)(*values) for f in (rolled, nested)), rtol=1e-9)


def test_what_is_unlike_stays_as_it_is() -> None:
    @cd.program
    def several(A: Matrix, B: Matrix, C: Matrix, D: Matrix, x: Vector):
        for W in (A, B, C, D):  # each step with a tensor of its own: as one scan it would look at all of them
            x = np.tanh(W @ x)
        return x

    @cd.program
    def broken(x: Number):
        for k in range(7):
            x = np.sin(x) * 3 + x + (1 if k == 3 else 0)
        return x

    assert scans(cd.simplify(several, rolled=True)) == 0
    rolled = cd.simplify(broken, rolled=True)
    assert scans(rolled) in (1, 2)
    np.testing.assert_allclose(rolled(0.3), broken(0.3), rtol=1e-13)
    assert cd.simplify(rolled, rolled=True) == rolled


@pytest.mark.thorough
def test_derivatives_may_be_rolled_themselves() -> None:
    gradient = cd.grad(logistic(12), "r", simplify=False)
    rolled = cd.simplify(gradient, rolled=True)
    np.testing.assert_allclose(rolled(3.7, 0.3), gradient(3.7, 0.3), rtol=1e-10)


STEPS: list[Callable[..., Any]] = [
    lambda A, x, z, k: (A @ x + z, z),
    lambda A, x, z, k: (np.sin(x) * z, 0.5 * z + x),
    lambda A, x, z, k: (x / (2 + x * np.conj(x)) + 0.1 * k * z, x),
    lambda A, x, z, k: (z, A @ (x * z)),
    lambda A, x, z, k: (x + 0.1 * (A @ x), z - 0.1 * x.sum() * x),
]


@pytest.mark.thorough
@FEW
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=2), st.integers(3, 5), st.booleans())
def test_random_loops_have_the_values_and_derivatives_of_their_steps(
    moves: list[Callable[..., Any]], steps: int, is_complex: bool
) -> None:
    kind = complex if is_complex else float

    @cd.program
    def loop(A: cd.Space(2, 2, dtype=kind), x: cd.Space(2, dtype=kind), z: cd.Space(2, dtype=kind)):
        for k in range(steps):
            for move in moves:
                x, z = move(A, x, z, k)
        return cd.real((x * np.conj(x)).sum() + 0.3 * (z * np.conj(z)).sum())

    rolled = cd.simplify(loop, rolled=True)
    assert scans(rolled) or steps < 5
    r = np.random.default_rng(steps)
    values = [0.4 * (r.normal(size=s) + (1j * r.normal(size=s) if is_complex else 0)) for s in ((2, 2), 2, 2, 2)]
    np.testing.assert_allclose(rolled(*values[:3]), loop(*values[:3]), rtol=1e-12)
    for derivative, arguments in ((cd.grad, values[:3]), (partial(cd.hvp, wrt="x"), values)):
        found, expected = (derivative(f, simplify=False)(*arguments) for f in (rolled, loop))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_rolled_is_a_truth_value() -> None:
    with pytest.raises(cd.DifferentiationError, match=r"rolled is 3\n  hint: write rolled=True or rolled=False"):
        cd.simplify(logistic(3), rolled=3)  # type: ignore[arg-type]


def test_loops_that_are_looked_for_no_longer_are_told() -> None:
    with cd.budget(pairs=0), pytest.warns(cd.BudgetWarning, match="budget of 0 pairs for each part"):
        assert scans(cd.simplify(logistic(10), rolled=True)) == 0
