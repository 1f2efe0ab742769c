"""Explanations: a chain from the raw derivative to the result, every step named and checked on numbers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from test_sameness import coulomb, network, residual

import combdiff as cd
from combdiff.api.explanation import Explanation
from combdiff.cli import main
from combdiff.ir.interpreter import evaluate
from combdiff.ir.terms import Lambda
from combdiff.printing import text
from combdiff.simplification.egraph.replay import MET, Replay
from combdiff.testing.arrays import random_arrays

Matrix = cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"])
Vector = cd.Space("n")
SIZES = {"n": 3, "N": 2, "Ne": 2, "a": 2, "b": 2, "c": 2, "r": 2}


@cd.program
def form(A: Matrix, x: Vector):
    return cd.sum(lambda i, j: x[i] * A[i, j] * x[j])


@cd.program
def softmax(x: Vector):
    return cd.log(cd.exp(x).sum())


@cd.program
def parts(z: cd.Space("n", dtype=complex)):
    return cd.real(cd.sum(lambda i: z[i] * cd.exp(z[i])))


def close(found: Any, expected: Any) -> bool:
    if isinstance(expected, tuple):
        return all(close(a, b) for a, b in zip(found, expected, strict=True))
    return bool(np.allclose(found, expected, rtol=1e-9, atol=1e-9))


def checked(program: cd.Program) -> Explanation:
    """The explanation, its chain complete and each of its terms equal to the first on numbers."""
    explanation = program.explain()
    sizes = SIZES | {axis.size: 3 for p in program.parameters for axis in p.type.axes if axis.size not in SIZES}
    arrays = random_arrays(program.parameters, np.random.default_rng(0), sizes)
    scope = {p: arrays[p.name] for p in program.parameters}
    state = explanation.raw
    expected = evaluate(state, scope, sizes)
    for step in explanation.steps:
        assert step.before is state
        state = step.after
        assert close(evaluate(state, scope, sizes), expected), step.law
    assert state is explanation.result
    assert state is program.term.body
    return explanation


DERIVATIVES = {
    "form": lambda: cd.grad(form, wrt="x"),
    "softmax": lambda: cd.grad(softmax),
    "parts": lambda: cd.grad(parts),
    "coulomb": lambda: cd.grad(coulomb, wrt="C"),
    "coulomb and value": lambda: cd.value_and_grad(coulomb, wrt="C"),
    "network": lambda: cd.grad(network, wrt=("A", "x")),
    "residual": lambda: cd.grad(residual, wrt=("X", "Y")),
    "pushforward": lambda: cd.pushforward(softmax),
    "jacobian": lambda: cd.jacobian(cd.grad(softmax)),
    "hessian": lambda: cd.hessian(softmax),
    "text": lambda: cd.derive("declare A 2 x 1 expression A *(ij,j->i) (x + 1) derivative wrt x"),
    "hvp": lambda: cd.hvp(form, wrt="x"),
    "simplify": lambda: cd.simplify(cd.grad(form, wrt="x", simplify=False)),
}


@cache
def explained(name: str) -> Explanation:
    """The explanation of one of these, checked."""
    return checked(DERIVATIVES[name]())


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", DERIVATIVES)
def test_every_step_holds_and_the_steps_are_a_chain(name: str) -> None:
    assert explained(name).steps


def laws(explanation: Explanation) -> list[str]:
    return [step.law for step, _, _ in explanation.shown()]


def test_the_gradient_of_a_quadratic_form_is_explained() -> None:
    explanation = explained("form")
    assert {"δ meets Σ", "A: A[i,j] = A[j,i]"} <= set(laws(explanation))
    text = str(explanation)
    assert text.startswith("(A, x) ↦ d ↦ Σ_{i,j} δ(d, j) x[i] A[i,j] + Σ_{i,j} δ(d, i) A[i,j] x[j]\n1. ")
    assert text.endswith(f"\n{cd.grad(form, wrt='x')}")
    assert "Σ_i A[i,d] x[i] + Σ_i A[d,i] x[i]" in text


@pytest.mark.thorough
def test_hartree_fock_is_explained_by_the_symmetries_of_its_integrals() -> None:
    found = laws(explained("coulomb"))
    assert "δ meets Σ" in found
    assert any(law.startswith("J: J[i,j,k,l] = ") for law in found)


@pytest.mark.thorough
def test_what_value_and_gradient_share_is_explained() -> None:
    found = laws(explained("coulomb and value"))
    assert found[-1] == "what the results have in common computed once"


@pytest.mark.thorough
def test_the_symmetry_of_a_binding_is_told_by_its_name() -> None:
    Even = cd.Space(cd.Symmetric("B"), symmetry=["w[b] = w[-b]"])

    @cd.program
    def spread(w: Even, U: cd.Space(cd.Cyclic("K"), dtype=complex)):
        t = cd.tensor(lambda b: cd.sum(lambda k: cd.conj(U[k]) * U[k + b]), b=cd.Symmetric("B"))
        return cd.sum(lambda b: w[b] * cd.conj(t[b]) * t[b])

    found = laws(cd.grad(spread, wrt="U").explain())
    assert any("conj(" in law and law.startswith(("t: ", "t_bar: ")) for law in found), found


def test_the_symmetry_of_a_tensor_is_told_by_its_name_whatever_was_written() -> None:
    told = []
    for equation in ("S[p,q] = S[q,p]", "W[a,b] = W[b,a]"):  # of equal Spaces, met in one process

        @cd.program
        def form(K: cd.Space("n", "n", symmetry=[equation]), x: Vector):
            """One of two."""
            return cd.sum(lambda i, j: x[i] * K[i, j] * x[j])

        told.append((laws(cd.grad(form, wrt="x").explain()), form.__doc__, repr(form.parameters[0].type)))
    assert told[0] == told[1]
    assert "K: K[i,j] = K[j,i]" in told[0][0]


def test_html_shows_formulas() -> None:
    html = cd.grad(form, wrt="x").explain()._repr_html_()
    assert html.startswith("<table>")
    assert "δ meets Σ" in html
    assert r"\sum_{i,j}" in html
    assert html.count("<tr>") == html.count("</tr>")


@pytest.mark.thorough
def test_explanations_of_long_programs_name_their_iterations() -> None:
    @cd.program
    def long(x: Vector, w: cd.Space("T")):
        def step(s, w):
            t = np.sin(s * x[0])
            return t / (2 + t**2) + s / (2 + s**2) + w, t

        s, y = cd.scan(step, x[1], w)
        z = s / (2 + s**2)
        u = np.exp(z * y / (1 + y**2)) / (1 + z**2)
        return (np.tanh(u) * y).sum() + np.cos(z / (2 + z**2))

    explanation = cd.grad(long, "x").explain()
    assert "s[0] = x[1]" in str(explanation)
    assert r"s_{0} = x_{1}" in explanation._repr_html_()
    assert "= before(scan(" in text(Lambda(explanation.parameters, explanation.raw))  # one that has no name yet


@pytest.mark.thorough
def test_laws_of_a_rule_file_are_named(tmp_path: Any) -> None:
    file = tmp_path / "mine.egg"
    file.write_text(
        '(rewrite (Fn "log" (vec-of (Fn "exp" (vec-of x)))) x :when ((real x)) :name "log of exp")', "utf-8"
    )

    @cd.program
    def f(x: Vector):
        return cd.sum(lambda i: cd.log(cd.exp(x[i])) * x[i])

    assert any("log of exp" in law for law in laws(checked(cd.simplify(f, rules=[str(file)]))))


def test_the_command_explains(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--explain", "declare x 1 expression x *(i,i->) x derivative wrt x"]) == 0
    printed = capsys.readouterr().out
    assert "δ meets Σ" in printed
    assert printed.strip().endswith("x ↦ d ↦ 2 x[d]")


def test_what_was_not_simplified_has_no_steps() -> None:
    for program in (form, cd.grad(form, simplify=False)):
        explanation = program.explain()
        assert explanation.steps == ()
        assert str(program) in str(explanation)


def test_the_laws_of_a_step_are_needed_and_enough() -> None:
    """Without a law of a step its two terms are not found equal; with them they are."""
    explanation = explained("form")
    replay = Replay((), {})
    steps = [step for step in explanation.steps if step.law.startswith("A: ")]
    assert steps
    for step in steps:
        old, new = (part.body if isinstance(part, Lambda) else part for part in step.part)
        assert replay.reached(old, new, [step.law]) is not None
        assert replay.reached(old, new, []) is None
    assert MET not in {step.law for step in explanation.steps}


@pytest.mark.thorough
def test_no_value_is_simplified_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is explained is what was done when the derivative was made, as it was noted then."""
    gradient = cd.grad(cd.read("A (n, n), b (n), x (n)\nexp(xᵀ·A·x) + bᵀ·sin(x)"), wrt="x")

    def again(*_: Any, **__: Any) -> Any:
        raise AssertionError("a value is simplified a second time")

    monkeypatch.setattr("combdiff.simplification.pipeline.simplify", again)
    assert len(gradient.explain().steps) > 5
