"""What values repeat has a name where that is shorter, and the value that it had without one."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir import evaluate
from combdiff.simplification.normal_form.common_subnetworks import bind_repeated
from combdiff.simplification.normal_form.repeated_parts import with_repeated_named

DECLARED = "a (), b (), s (), x (), y (n), R symmetric (n, n), z (n)"
ARRAYS = {"a": 1.3, "b": 0.7, "s": 1.1, "x": 0.4, "y": np.array([0.5, 1.5, 0.9]), "z": np.array([1.2, -0.3, 0.8])}
ARRAYS["R"] = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.8]])


@pytest.mark.parametrize(
    ("objective", "by", "printed"),
    [
        ("exp(-(x^2 + a^2) / (2·s^2)) / (2·s^2)", "s", "t = (a² + x²) / (2 s²); exp(-t) (t - 1) / s³"),
        ("exp(-a·b·x^2 / (a + b))", "x", "t = a b x / (a + b); -2 t exp(-x t)"),
        (
            "(yᵀ·z)^2 / (zᵀ·R·z)",
            "z",
            "t = (Σ_i y[i] z[i]) / Σ_i z[i] Σ_j R[i,j] z[j]; d ↦ 2 t (y[d] - t Σ_i R[d,i] z[i])",
        ),
        ("log(1 + x)", "x", "1 / (1 + x)"),
        ("log(log(1 + x))", "x", "1 / (log(1 + x) (1 + x))"),  # two symbols read twice are no easier to read by a name
    ],
)
def test_what_is_repeated_has_a_name(objective: str, by: str, printed: str) -> None:
    program = cd.read(f"{DECLARED}\n{objective}")
    lines = str(cd.grad(program, by)).partition("↦")[2].splitlines()
    assert "; ".join(line.strip() for line in lines if line.strip()) == printed
    cd.testing.check_grad(program, wrt=by, **ARRAYS)


Ring = cd.Space(cd.Cyclic("n"))


@cd.program
def chain(x: Ring, k: cd.Space(), r: cd.Space()):
    """Springs around a ring, of length r in a plane: each force is read at two places, with two signs."""
    return k * cd.sum(lambda i: (cd.sqrt((x[i + 1] - x[i]) ** 2 + 1) - r) ** 2) / 2


@pytest.mark.thorough
def test_what_is_repeated_around_an_axis_has_a_name() -> None:
    lines = [line.strip() for line in str(cd.grad(chain, "x")).splitlines()[1:]]
    assert lines == ["t[d] = x[d] - x[d + 1]", "t2[d] = k t[d] (r / sqrt(1 + t[d]²) - 1)", "d ↦ t2[d - 1] - t2[d]"]
    cd.testing.check_grad(chain, "x", x=np.array([0.3, -0.2, 1.1, 0.4]), k=0.7, r=1.3)


@cd.program
def numbered(x: Ring):
    """An index that is compared counts from 0, so that what is read with it stands at its own place alone."""
    jumps = cd.tensor(lambda i: cd.where(i >= 1, (x[i] - x[i - 1]) ** 3, x[i] - x[i - 1]))
    return cd.tensor(lambda i: jumps[i] * cd.exp(jumps[i + 1]) - (x[i + 1] - x[i]) * (x[i] - x[i - 1]) ** 2)


@pytest.mark.thorough
def test_every_name_around_an_axis_leaves_the_value_as_it_was() -> None:
    x = np.array([0.3, -0.2, 1.1, 0.4])
    for program in (numbered, cd.jacobian(numbered, simplify=False), cd.grad(chain, "x", simplify=False)):
        scope = {parameter: {"x": x, "k": 0.7, "r": 1.3}[parameter.name] for parameter in program.term.parameters}
        expected = evaluate(program.term.body, scope, {"n": 4})
        for candidate in with_repeated_named(program.term.body):
            np.testing.assert_allclose(evaluate(candidate, scope, {"n": 4}), expected, rtol=1e-12)


@cd.program
def attention(
    Q: cd.Space("t", "d"),
    K: cd.Space("t", "d"),
    V: cd.Space("t", "e"),
):
    return (np.square(cd.softmax(Q @ K.T, axis=-1) @ V)).sum() / 2


@cd.program
def ridge(X: cd.Space("m", "n"), y: cd.Space("m"), a: cd.Space()):
    w = np.linalg.solve(X.T @ X + a * cd.eye(X.shape[1]), X.T @ y)
    return (X @ w - y) @ (X @ w - y)


@pytest.mark.thorough
def test_a_network_within_a_network_has_a_name_where_it_is_repeated() -> None:
    """The gradient of attention has the rows of P V, in P V Vᵀ and squared; that of ridge regression has w twice."""
    last = str(cd.grad(attention, "Q")).splitlines()[-1].strip()
    assert last == "(d, e) ↦ Σ_i K[i,e] p[d,i] (Σ_j V[i,j] Σ_k V[k,j] p[d,k] - Σ_j (Σ_k V[k,j] p[d,k])²)"
    assert cd.grad(ridge, "a").matrix().splitlines()[1:] == ["t2 = t⁻¹·Xᵀ·y", "2·(y - X·t2)ᵀ·X·t⁻¹·t2"]
    draw = np.random.default_rng(0).normal
    arrays = {"Q": draw(size=(3, 2)), "K": draw(size=(3, 2)), "V": draw(size=(3, 4))}
    cd.testing.check_grad(attention, wrt="Q", **arrays)
    cd.testing.check_grad(ridge, wrt="a", X=draw(size=(4, 3)), y=draw(size=4), a=0.7)


@pytest.mark.parametrize(
    "definition",
    [
        "i ↦ (Σ_j R[i,j] y[j] z[j])² + Σ_{j,k} R[i,k] R[k,j] y[j] z[j]",  # one is a part of the other
        "Σ_{i,j} R[i,j] y[i] z[j] (y[i] - Σ_k R[i,k] z[k]) / Σ_{i,j} y[i] R[i,j] z[j]",
        "(x + a b + 1)^2 / (1 + (x + a b + 1) s)",
        "a² b x / s³ + a b² / s² - x / (a b)",  # factors that stand together, above and below a line
        "i ↦ exp(y[i] - z[i]) + Σ_j (y[j] - z[j])² (y[i] - z[i])",  # at two indices
        "i ↦ (y[i] - y[0]) / Σ_j R[i,j] (y[j] - y[0]) + (y[i] - y[0])²",
        "Σ_i Σ_j [i < j] (y[i] - z[j])² exp(y[i] - z[j]) / (y[j] - z[i])³",
        "i ↦ exp(x (a + b + s)) + (a + b + s) Σ_{j,k} R[i,j] R[j,k] y[j] z[k] + (Σ_{j,k} R[j,k] y[j] z[k])²",
    ],
)
def test_every_name_leaves_the_value_as_it_was(definition: str) -> None:
    names = "a, b, s, x, y, R, z"
    program = cd.read(f"{DECLARED}\n({names}) ↦\n{definition}")
    body = program.term.body
    scope = {parameter: ARRAYS[parameter.name] for parameter in program.term.parameters}
    found = [body]
    for _ in range(3):  # names are given one after another
        candidates = dict.fromkeys(new for each in found for new in (*with_repeated_named(each), *bind_repeated(each)))
        found += [each for each in candidates if each not in found][:20]
    assert len(found) > 1
    for candidate in found[1:]:
        np.testing.assert_allclose(evaluate(candidate, scope, {"n": 3}), evaluate(body, scope, {"n": 3}), rtol=1e-12)


def test_what_may_be_read_outside_of_its_tensor_has_no_name() -> None:
    """y[i + 1] is read where i + 1 < n alone: a tensor of all of them would have an element too many."""

    @cd.program
    def steps(y: cd.Space("n")):
        return cd.sum(lambda i: cd.where(i < y.shape[0] - 1, np.exp(y[i + 1] - y[i]) * (y[i + 1] - y[i]) ** 2, 0.0))

    assert not list(with_repeated_named(steps.term.body))
