"""Results compared with what they are made of, by their values at a random point: a false law is found on arrival."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir import MINUS_ONE, Add, Lambda, Number, Sum, Term, Tuple, Var, affine, apply, items_of, let, mul, split
from combdiff.simplification import fingerprints

FALSE = '(rewrite (Fn "sin" v) (Fn "cos" v) :ruleset laws :name "sin = cos")'
PROGRAMS = [
    "A symmetric (n, n), x (n)\nΣ_{i,j} x[i] A[i,j] x[j]",
    "H hermitian (n, n), x (n)\n(H, x) ↦ Σ_i x[i]² + Σ_i x[i] Im(exp(H[i,i]))",
    "x (n)\nlog(Σ_i exp(x[i]))",
    "x (n), X (n, n)\nxᵀ·X⁻¹·x",
]


@cd.program
def wave(x: cd.Space("n")):
    return cd.sum(lambda i: x[i] * cd.sin(x[i]))


def test_a_false_law_is_found(rule_file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(fingerprints.SWITCH, "1")
    with pytest.raises(cd.RuleError, match="at a random point where it had"):
        cd.simplify(wave, rules=[rule_file(FALSE, "false.egg")])


def test_off_nothing_is_evaluated(rule_file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(fingerprints.SWITCH, raising=False)
    monkeypatch.setattr(fingerprints, "evaluate", None)
    assert "cos" in str(cd.simplify(wave, rules=[rule_file(FALSE, "false.egg")]))


@pytest.mark.parametrize("text", PROGRAMS)
def test_derivatives_pass_and_twice_their_value_does_not(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(fingerprints.SWITCH, "1")
    body = cd.grad(cd.read(text), wrt="x").term.body
    assert isinstance(body, Lambda)
    with pytest.raises(cd.RuleError):
        fingerprints.checked(body, Lambda(body.parameters, mul(Number(2), body.body)))


@pytest.mark.thorough
def test_where_rounding_decides_another_point_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """X at the first point is almost singular, so that (XᵀAX)⁻¹ loses nine digits; twice the Hessian is found yet."""
    monkeypatch.setenv(fingerprints.SWITCH, "1")
    body = cd.hessian(cd.read("A (n, n), X (n, m)\n1/2 log(det(Xᵀ·A·X)) - 1/2 tr(Xᵀ·X)"), "A").term.body
    bindings, tensor = split(body)
    assert isinstance(tensor, Lambda)
    twice = let(bindings, Lambda(tensor.parameters, mul(Number(2), tensor.body)))
    with pytest.raises(cd.RuleError):
        fingerprints.checked(body, twice)


def test_a_symmetry_is_not_missed_by_rounding() -> None:
    """Of the identity, written by the inverse of XᵀAX, which is almost singular at the first point."""
    value = cd.read("A (n, n), X (n, m)\ninv(Xᵀ·A·X)·inv(Xᵀ·A·X)·(Xᵀ·A·X)·(Xᵀ·A·X)").term.body
    symmetric, antisymmetric = (cd.Space("m", "m", symmetry=[f"S[i,j] = {sign}S[j,i]"]) for sign in ("", "-"))
    assert fingerprints.missing_symmetry(value, symmetric) is None
    assert fingerprints.missing_symmetry(value, antisymmetric) is not None


def test_what_would_take_long_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    x, indices = Var("x", cd.Space("n")), tuple(Var(f"i{n}", cd.Range("n")) for n in range(20))
    long: Term = Sum(indices, mul(*(apply(x, (index,)) for index in indices)))
    monkeypatch.setenv(fingerprints.SWITCH, "1")
    assert fingerprints.checked(long, mul(Number(2), long)) is not long


def test_what_is_bound_behind_the_laws_is_checked_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A common subnetwork of a value and its gradient that is bound wrongly is found."""
    monkeypatch.setenv(fingerprints.SWITCH, "1")
    f = cd.read("A (n, n), x (n)\nxᵀ·A·A·x")

    def wrongly(body: Term) -> Term:
        bindings, result = split(body)
        return let(bindings, Tuple((mul(Number(2), items_of(result)[0]), *items_of(result)[1:])))

    monkeypatch.setattr("combdiff.simplification.pipeline.bind_common", wrongly)
    with pytest.raises(cd.RuleError):
        cd.value_and_grad(f, wrt="x")


def test_a_result_by_its_name_is_compared_element_by_element(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a Hessian that are read twice are bindings before, and tensors of their own afterwards."""
    monkeypatch.setenv(fingerprints.SWITCH, "1")
    block = cd.hessian(cd.read("A (n, n), x (n)\nxᵀ·A·x"), ("A", "x"))["A", "x"]
    assert str(block) == "(A, x) ↦ (a, b, d) ↦ δ(b, d) x[a] + δ(a, d) x[b]"


def test_a_sum_too_large_to_have_a_magnitude_is_not_among_those_that_seem_zero() -> None:
    x, i, once = Var("x", cd.Space(2)), Var("i", cd.Range(2)), Var("j", cd.Range(1))
    huge = Sum((once,), Number(1.5e308, 1.5e308))
    vanishing = Sum((i,), Add((apply(x, [i]), mul(MINUS_ONE, apply(x, [affine([(i, -1)], 1)])))))
    assert list(fingerprints.seeming_zero([huge, vanishing], {})) == [vanishing]


def test_sizes_that_are_sums_are_those_of_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """An axis of m + 1 elements is longer than one of m, or a column that is joined to a matrix is lost."""

    @cd.program
    def joined(A: cd.Space("n", "m")):  # type: ignore[no-untyped-def, valid-type]
        return np.hstack([A, A[:, :1]]).sum()

    written, simplified = (cd.grad(joined, simplify=each).term.body for each in (False, True))
    assert isinstance(simplified, Lambda)
    monkeypatch.setenv(fingerprints.SWITCH, "1")
    assert fingerprints.checked(written, simplified) is simplified
    with pytest.raises(cd.RuleError):
        fingerprints.checked(written, Lambda(simplified.parameters, mul(Number(2), simplified.body)))
