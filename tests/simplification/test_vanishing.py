"""Sums that are 0 by what their names stand for: what a softmax is shifted by has no part in a gradient."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir import Lambda, Let, Number, Sum, Term, Var, add, affine, apply, mul, negate
from combdiff.simplification import fingerprints

RANDOM = np.random.default_rng(8)


@cd.program
def cross_entropy(W: cd.Space("d", "k"), X: cd.Space("n", "d"), Y: cd.Space("n", "k")):
    z = X @ W
    z = z - z.max(axis=1, keepdims=True)
    return -(Y * (z - np.log(np.exp(z).sum(axis=1, keepdims=True)))).sum()


@cd.program
def attention(Q: cd.Space("t", "k"), K: cd.Space("t", "k"), V: cd.Space("t", "v")):
    s = np.where(np.tril(cd.ones(("t", "t"))) > 0, Q @ K.T, -np.inf)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return ((p / p.sum(axis=-1, keepdims=True) @ V) ** 2).sum()


@cd.program
def mean_of_differences(x: cd.Space("n"), w: cd.Space("n")):
    return (w * (x - x.mean()) ** 3).sum()


@pytest.mark.thorough
def test_the_largest_that_a_softmax_is_shifted_by_has_no_derivative() -> None:
    gradient = cd.grad(cross_entropy, wrt="W")
    assert "amax_ties" not in str(gradient)
    arguments = {"W": RANDOM.normal(size=(3, 4)), "X": RANDOM.normal(size=(5, 3)), "Y": np.eye(4)[[0, 1, 3, 2, 2]]}
    assert cd.testing.check_grad(cross_entropy, "W", **arguments) < 1e-6


@pytest.mark.thorough
def test_nor_has_the_largest_of_each_row_of_attention() -> None:
    gradient = cd.grad(attention, wrt="Q")
    assert "amax_ties" not in str(gradient)
    arguments = {name: RANDOM.normal(size=(4, 3)) for name in "QKV"}
    assert cd.testing.check_grad(attention, "Q", **arguments) < 1e-6


@pytest.mark.usefixtures("results_not_compared")  # which evaluates, too
def test_definitions_are_computed_once_for_all_sums_of_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where all numbers of a point are nearly 0: each by itself would compute all layers below it again."""
    evaluated: Counter[tuple[Term, tuple[int, ...]]] = Counter()
    values = fingerprints._values

    def counted(term: Term, scope: Mapping[Var, Any], *given: Any) -> Any:
        evaluated[term, tuple(value for value in scope.values() if isinstance(value, int))] += 1  # at which indices
        return values(term, scope, *given)

    monkeypatch.setattr(fingerprints, "_values", counted)

    @cd.program
    def network(W: cd.Space(6, "n", "n"), x: cd.Space("n")):
        for level in range(6):
            x = np.tanh(20 * W[level] @ x)
        return (x**2).sum()

    cd.grad(network)
    assert set(evaluated.values()) == {1}
    assert not any(isinstance(term, Let) for term, _ in evaluated)


def test_sums_are_tried_below_however_many_definitions() -> None:
    """As many calls deep, Python has no values."""
    names = [Var(f"t{n}", cd.Space(2)) for n in range(400)]
    i = Var("i", cd.Range(2))
    values = [Lambda((i,), mul(Number(2), apply(before, [i]))) for before in names[:-1]]
    turned = apply(names[-1], [affine([(i, -1)], 1)])
    vanishing = Sum((i,), add(apply(names[-1], [i]), negate(turned)))
    other = Sum((i,), add(apply(names[-1], [i]), turned))
    assert list(fingerprints.seeming_zero([other, vanishing], dict(zip(names[1:], values, strict=True)))) == [vanishing]


def test_a_sum_that_is_not_zero_stays() -> None:
    gradient = cd.grad(mean_of_differences, wrt="x")
    assert "/ n" in str(gradient)
    arguments = {"x": RANDOM.normal(size=5), "w": RANDOM.normal(size=5)}
    assert cd.testing.check_grad(mean_of_differences, "x", **arguments) < 1e-6


@pytest.mark.thorough
def test_the_number_of_a_step_is_no_index_of_the_sums_in_it() -> None:
    @cd.program
    def gated(U: cd.Space(2, "h", "h"), x: cd.Space("T", "h")):
        def step(h, row):
            gate = 1 / (1 + np.exp(-(U[0] @ h + row)))
            h = gate * h + (1 - gate) * np.tanh(U[1] @ h)
            return h, h

        return (cd.scan(step, x[0], x)[1] ** 2).sum()

    arguments = {"U": RANDOM.normal(size=(2, 3, 3)), "x": RANDOM.normal(size=(4, 3))}
    assert cd.testing.check_grad(gated, "U", **arguments) < 1e-6


@pytest.mark.thorough
def test_values_that_lie_deeper_than_the_interpreter_reaches_are_not_known() -> None:
    @cd.program
    def layers(W: cd.Space(64, "n", "n"), x: cd.Space("n")):
        for k in range(64):
            x = np.tanh(W[k] @ x)
        return x @ x

    gradient = cd.grad(layers, "x")
    W, x = 0.5 * np.random.default_rng(0).normal(size=(64, 2, 2)), np.array([0.3, -0.2])
    np.testing.assert_allclose(gradient(W, x), cd.grad(cd.simplify(layers, rolled=True), "x")(W, x), atol=1e-12)


@pytest.mark.thorough
def test_what_vanishes_through_two_definitions() -> None:
    """Deviations from a mean sum up to 0, and so does the slope of a correlation by them, a sum of two definitions."""

    @cd.program
    def correlation(x: cd.Space("n"), y: cd.Space("n")):
        x, y = x - x.mean(), y - y.mean()
        return (x @ y) / np.sqrt((x @ x) * (y @ y))

    gradient = cd.grad(correlation, "x")
    assert "bar" not in str(gradient)
    arrays = {"x": RANDOM.normal(size=5), "y": RANDOM.normal(size=5)}
    cd.testing.check_grad(correlation, "x", **arrays)
    assert gradient(**arrays).sum() == pytest.approx(0, abs=1e-12)


@cd.program
def layer_norm(x: cd.Space("n"), g: cd.Space("n")):
    t = x - x.mean()
    return (g * t / np.sqrt((t * t).mean() + 1e-5)).sum()


@cd.program
def batch_norm(x: cd.Space("n", "m"), w: cd.Space("m"), y: cd.Space("n", "m")):
    t = x - x.mean(axis=0)
    return ((w * t / np.sqrt((t * t).mean(axis=0) + 1e-5) - y) ** 2).sum()


@pytest.mark.thorough
@pytest.mark.parametrize("program", [layer_norm, pytest.param(batch_norm, marks=pytest.mark.thorough)])
def test_of_a_sum_over_a_definition_the_terms_that_vanish_are_left_out(program: cd.Program) -> None:
    """A cotangent whose mean is subtracted has a part along t, and Σ_i t[i] is 0: no name for it is needed."""
    gradient = cd.grad(program, wrt="x")
    assert "t_bar" not in str(gradient)
    shapes = {"n": 5, "m": 3}
    spaces = {parameter.name: parameter.type.axes for parameter in program.parameters}
    arrays = {name: RANDOM.normal(size=[shapes[str(axis.size)] for axis in axes]) for name, axes in spaces.items()}
    assert cd.testing.check_grad(program, "x", **arrays) < 1e-6


@pytest.mark.parametrize("size", ["n", 4, 30])
def test_deviations_from_a_mean_sum_up_to_nothing(size: str | int) -> None:
    """Of sizes that are numbers, too, where 30 is as much as n is elsewhere."""

    @cd.program
    def deviation(x: cd.Space(size), y: cd.Space(size)):
        return (x - x.mean()).sum() + x @ y

    @cd.program
    def from_another(x: cd.Space(size), y: cd.Space(size)):
        return (x - y.mean()).sum()

    assert str(cd.simplify(deviation)) == "(x, y) ↦ Σ_j x[j] y[j]"
    x, y = RANDOM.normal(size=(2, 4 if size == "n" else size))
    np.testing.assert_allclose(cd.simplify(from_another)(x, y), x.sum() - y.sum(), atol=1e-12)


@pytest.mark.parametrize("shape", [("n", "d"), (7, 4)])
@pytest.mark.thorough
def test_means_of_centred_data_vanish_inside_of_long_products(shape: tuple[Any, Any]) -> None:
    """In the gradient of what principal components leave, sums over pairs of vectors would each have their mean."""

    @cd.program
    def left(X: cd.Space(*shape)):
        centred = X - X.mean(axis=0)
        V = np.linalg.eigh(centred.T @ centred)[1]
        rest = centred - centred @ V[:, -2:] @ V[:, -2:].T
        return (rest**2).sum()

    assert str(cd.grad(left)).count("/ n" if shape[0] == "n" else "1/7") == 1  # in the mean that is subtracted
    assert cd.testing.check_grad(left, "X", X=RANDOM.normal(size=(7, 4))) < 1e-6
    product = cd.hvp(left)(X := RANDOM.normal(size=(7, 4)), V := RANDOM.normal(size=(7, 4)))
    beside = [cd.grad(left)(X + step * V) for step in (1e-5, -1e-5)]
    np.testing.assert_allclose(product, (beside[0] - beside[1]) / 2e-5, rtol=1e-4, atol=1e-4)


def test_a_sum_that_became_one_of_its_terms_is_not_taken_for_zero() -> None:
    """Of the sums of a layer's terms the one of what is centred is 0, and the next layer has the other for a term."""

    def network(x: Any, P: Any, V: Any) -> Any:
        def standardised(z: Any) -> Any:
            t = z - z.mean(axis=1, keepdims=True)
            return t / np.sqrt((t * t).mean(axis=1, keepdims=True) + 1)

        for layer in range(2):
            x = x + P @ standardised(x)
            x = x + np.maximum(standardised(x) @ V[layer], 0)
        return (x**2).sum()

    @cd.program
    def traced(x: cd.Space("t", "d"), P: cd.Space("t", "t"), V: cd.Space(2, "d", "d")):
        return network(x, P, V)

    arrays = [RANDOM.normal(size=shape) for shape in ((3, 4), (3, 3), (2, 4, 4))]
    np.testing.assert_allclose(cd.simplify(traced)(*arrays), network(*arrays))


def test_what_is_left_beside_a_projection_is_orthogonal_to_it() -> None:
    """The sums of a product that is multiplied out cancel, whether its factors have names or not."""

    @cd.program
    def beside(x: cd.Space("n"), y: cd.Space("n")):
        return np.exp(y.sum()) * (x @ (y - x * (x @ y) / (x @ x)))

    @cd.program
    def beside_layers(x: cd.Space("n"), y: cd.Space("n"), A: cd.Space("n", "n")):
        z = np.tanh(A @ np.tanh(A @ x))
        return z @ (y - z * (z @ y) / (z @ z)) + x @ x

    assert str(cd.simplify(beside)) == "(x, y) ↦ 0"
    assert str(cd.simplify(beside_layers)) == "(x, y, A) ↦ Σ_j x[j]²"


def test_sums_cancel_with_those_of_their_terms() -> None:
    """Each Σ has an index of its own, so that the laws alone do not see it."""

    @cd.program
    def cancelled(x: cd.Space("n"), y: cd.Space("n")):
        return x.sum() + y.sum() - (x + y).sum()

    @cd.program
    def left(X: cd.Space("m", "n"), Y: cd.Space("m", "n")):
        return (X + Y).sum(axis=1) - Y.sum(axis=1)

    @cd.program
    def centred(X: cd.Space("m", "n"), Y: cd.Space("m", "n")):
        return (X + Y - (X + Y).mean(axis=1, keepdims=True)).sum(axis=1)

    assert str(cd.simplify(cancelled)) == "(x, y) ↦ 0"
    assert str(cd.simplify(left)) == "(X, Y) ↦ i ↦ Σ_j X[i,j]"
    assert str(cd.simplify(centred)) == "(X, Y) ↦ i<m ↦ 0"
