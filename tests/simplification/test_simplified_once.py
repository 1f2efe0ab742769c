"""Terms that differ in names alone are simplified once, and the result does not depend on what came before."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir import Var, subterms
from combdiff.simplification import memory, pipeline
from combdiff.simplification.normal_form.forms import form_of

Matrix, Vector = cd.Space("n", "n"), cd.Space("n")


@pytest.fixture
def saturated(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The forms that are simplified while the test runs, nothing being known before."""
    found: list[Any] = []
    original = memory._forms.keep

    def keep(key: Any, result: Any) -> None:
        found.append(key)
        original(key, result)

    memory.forget()
    monkeypatch.setattr(memory._forms, "keep", keep)
    return found


def network(layers: int) -> cd.Program:
    def f(W, x):
        for level in range(layers):
            x = np.tanh(W[level] @ x)
        return (x**2).sum()

    f.__annotations__ = {"W": cd.Space(layers, "n", "n"), "x": Vector}
    return cd.program(f)


def test_layers_are_simplified_once(saturated: list[Any]) -> None:
    gradient = cd.grad(network(6), wrt="x")
    few = len(saturated)
    cd.grad(network(12), wrt="x")
    assert len(saturated) <= 2 * few  # names of layers 9 and 10 stand in another order
    arrays = {"W": np.random.default_rng(0).normal(size=(6, 3, 3)), "x": np.array([0.3, -0.2, 0.5])}
    cd.testing.check_grad(network(6), "x", **arrays)
    assert "W[5,i,d]" in str(gradient) or "W[5,i,j]" in str(gradient)


@pytest.mark.thorough
def test_what_came_before_does_not_show(saturated: list[Any]) -> None:
    @cd.program
    def one(A: Matrix, x: Vector, y: Vector):
        return np.exp(x @ A @ y) + (x @ A @ A @ x) / (1 + y @ y)

    @cd.program
    def other(P: Matrix, q: Vector, r: Vector):
        return np.exp(q @ P @ r) + (q @ P @ P @ q) / (1 + r @ r)

    first = str(cd.grad(one, wrt="x"))
    memory.forget()
    cd.grad(other, wrt="q")
    assert str(cd.grad(one, wrt="x")) == first


@pytest.mark.thorough
def test_an_equal_program_is_not_simplified_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """But where its steps are to be told, where the budget is another one, and where its time was short."""
    done: list[Any] = []
    simplified = pipeline._simplified_body
    monkeypatch.setattr(pipeline, "_simplified_body", lambda body, *rest: done.append(body) or simplified(body, *rest))
    memory.forget()

    def derived() -> cd.Program:
        @cd.program
        def f(x: Vector, A: Matrix):
            return np.log(x @ A @ x)

        return cd.grad(f)

    gradient = derived()
    assert derived() == gradient
    assert len(done) == 1
    gradient.explain()
    for message, given in {"0 rounds": {"rounds": 0}, "0.0 seconds": {"seconds": 0.0}}.items():
        for _ in range(2):
            with cd.budget(**given), pytest.warns(cd.BudgetWarning, match=message):
                derived()
    assert len(done) == 5
    monkeypatch.setattr(memory._bodies, "most", 0)
    memory.forget()
    assert [derived() == gradient for _ in range(2)] == [True, True]
    assert len(done) == 7


def test_a_form_named_back_is_the_term() -> None:
    @cd.program
    def f(W: cd.Space(4, "n", "n"), A: Matrix, x: Vector):
        return cd.sum(lambda i, j: W[2, i, j] * W[3, j, i] * x[i] * A[i, j]) + x[0]

    body = f.term.body
    form = form_of(body, {})
    assert form.named(form.term) is form_of(form.named(form.term), {}).named(form.term)
    names = {node.name for node in subterms(form.named(form.term)) if isinstance(node, Var)}
    assert {"W", "A", "x"} <= names
    assert not {"W", "A", "x"} & {node.name for node in subterms(form.term) if isinstance(node, Var)}


def test_a_budget_that_was_met_is_told_again(saturated: list[Any]) -> None:
    @cd.program
    def f(A: Matrix, x: Vector):
        return np.exp(x @ A @ x) * (x @ A @ A @ x) / (1 + x @ x)

    def warned() -> set[str]:
        with warnings.catch_warnings(record=True) as found, cd.budget(nodes=300):
            warnings.simplefilter("always")
            cd.grad(f, wrt="x")
        return {str(w.message) for w in found if w.category is cd.BudgetWarning}

    first = warned()
    assert any("300 nodes" in message for message in first)
    assert warned() == first


@pytest.mark.usefixtures("results_not_compared")  # the laws are false
def test_laws_of_users_see_the_names_of_tensors(tmp_path: Any) -> None:
    """A law that names a tensor holds for that tensor, not for one that stands where it stood."""
    path = tmp_path / "known.egg"
    path.write_text('(rewrite (At (T "A") v) (Num $zero $zero) :ruleset laws :name "A is zero")\n')

    @cd.program
    def f(A: Vector, x: Vector):
        return x @ x + A @ x

    @cd.program
    def g(B: Vector, x: Vector):
        return x @ x + B @ x

    assert str(cd.grad(g, wrt="x", rules=[path])).endswith("B[d]") or "B[d]" in str(cd.grad(g, wrt="x", rules=[path]))
    assert "A[d]" not in str(cd.grad(f, wrt="x", rules=[path])).split("↦", 1)[1]


@pytest.mark.thorough
def test_a_bound_tensor_keeps_its_places() -> None:
    """The unknown of an equation and the states of an iteration are read at constants too, but not free."""
    State = cd.Space(2)

    @cd.program
    def f(a: State, b: State):
        x = cd.root(lambda x: cd.tensor(lambda i: a[0] * x[i] + x[0] ** 3 - b[i], i=2), b)
        return x[0] * a[1] + x @ x

    cd.testing.check_grad(f, wrt=("a", "b"), a=np.array([2.0, 0.7]), b=np.array([0.4, 0.3]))
