"""Every group of laws, step of the normal form and pass of the planner matters: without it a named case gets worse.

Each row switches one of them off and names a program whose derivative is then written longer, or whose plan costs more.
`WITHOUT_CASE` lists the groups of laws for which none was found: their work is done before or after the e-graph, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.differentiation import derivation
from combdiff.ir import Lambda, Term, average, function, inline_all
from combdiff.ir.domains import Real
from combdiff.planning import checkpointed, planning, sliced
from combdiff.planning.passes import pipeline as passes
from combdiff.planning.plan import Plan, cost, peak
from combdiff.printing.plain import text
from combdiff.runtime.execution import find_path, stable
from combdiff.simplification import pipeline
from combdiff.simplification.egraph import saturation
from combdiff.simplification.egraph.encoding import Codec
from combdiff.simplification.laws.loading import RuleFile, load
from combdiff.simplification.laws.syntax import Source, parse
from combdiff.simplification.normal_form import contraction

Number, Vector, Matrix = cd.Space(), cd.Space("n"), cd.Space("n", "n")
Even = cd.Space("n", "n", symmetry=["S[i,j] = S[j,i]"])
Hermitian = cd.Space("n", "n", dtype=complex, symmetry=["H[i,j] = conj(H[j,i])"])
Complex = cd.Space("n", dtype=complex)
LINE = Real()
Wave = cd.Space(LINE, dtype=complex)
Integrals = cd.Space("n", "n", "n", "n", symmetry=["J[p,q,r,s] = J[r,q,p,s]", "J[p,q,r,s] = J[q,p,r,s]"])


def raw(f: Callable[..., Any]) -> Term:
    """The element of the raw gradient by x, which the laws are given; of `wave` its value."""
    program = cd.program(f)
    found = inline_all((program if f is wave else cd.grad(program, "x", simplify=False)).term.body)
    while isinstance(found, Lambda):
        found = found.body
    return found


# --- laws ----------------------------------------------------------------------------------------------------------


def nested(x: Vector, A: Matrix):
    return cd.sum(lambda i: x[i] * (1 + 2 * (x[i] + cd.sum(lambda j: A[i, j] * (x[j] + 1)))))


def circle(x: Vector):
    return cd.sum(lambda i: cd.sin(x[i]) ** 2 + cd.cos(x[i]) ** 2 + cd.sin(x[i]) * cd.cos(x[i]))


def softplus(x: Vector):
    return cd.sum(lambda i: cd.log(1 + cd.exp(x[i])))


def moebius(x: Vector):
    return cd.sum(lambda i: x[i] / (1 + x[i]))


def entropy(x: Vector):
    return cd.sum(lambda i: (1 + x[i]) / 2 * cd.log((1 + x[i]) / 2))


def rectified(x: Vector):
    return cd.sum(lambda i: cd.maximum(x[i], 0) ** 3)


def modulus(x: Complex):
    return cd.sum(lambda i: cd.abs(x[i]) ** 3)


def error_function(x: Vector):
    return cd.sum(lambda i: x[i] * (cd.erf(x[i]) + cd.erfc(x[i])))


def chosen(x: Vector):
    return cd.sum(lambda i: cd.where(x[i] < 1, cd.sin(x[i]), cd.sin(x[i])))


def wave(x: Vector, z: Complex):
    return cd.real(cd.sum(lambda i: 1j * x[i] * cd.conj(cd.exp(z[i] * x[i]))))


LAWS: dict[str, Callable[..., Any]] = {  # by how the heading of the section begins
    "associativity": nested,
    "exact multiples": circle,
    "conjugates": wave,
    "Σ and δ": circle,
    "a product is expanded": circle,
    "substitution goes down": circle,
    "Laws of the primitive functions": wave,
    "whole powers": entropy,
    "one denominator": moebius,
    "the larger of two numbers": rectified,
    "numbers compared": chosen,
    "hyperbolic and logistic functions": softplus,
    "inverse pairs": modulus,
    "special functions": error_function,
}
WITHOUT_CASE = {
    "empty and single": "the constructors of terms drop these",
    "like terms": "the constructors of sums add them up when a term is read out",
    "a number needs no other form": "this bounds the work, and changes no result",
    "negated indices": "index forms are affine before they are written",
    "what is real": "found by the types of terms as well",
    "real parts": "taken apart by the contraction normal form as well",
}
LAW = re.compile(r"^\((?:rewrite|rule) .*?(?=^\(|^;|\Z)", re.MULTILINE | re.DOTALL)
STEPS = ("(repeat 2 (run facts))", "(run collect)", "(run laws)", "(repeat 8 (run substitution))")


@cache
def files() -> tuple[RuleFile, ...]:
    return load()


def sections(file: RuleFile) -> dict[str, str]:
    """A rule file cut before each heading; the laws of each section by its heading."""
    parts = re.split(r"(?m)^(?=; ---)", file.source.text)
    return {part.splitlines()[0].lstrip("; -"): part for part in parts}


def without_section(start: str) -> tuple[RuleFile, ...]:
    """The built-in files, the laws of one section left out."""
    ((file, part),) = (
        (file, part) for file in files() for heading, part in sections(file).items() if heading.startswith(start)
    )
    assert LAW.search(part)
    source = Source(file.source.name, file.source.text.replace(part, LAW.sub("", part)))
    return tuple(RuleFile(source, tuple(parse(source)), file.rows) if each is file else each for each in files())


@pytest.fixture
def own_egraphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No e-graph of other laws is kept for later tests, nor what was simplified with them."""
    monkeypatch.setattr(saturation, "_local", type(saturation._local)())
    monkeypatch.setattr(
        pipeline, "simplified_once", lambda term, rules, known, do: do(term, rules, known), raising=False
    )


@cache
def settled(f: Callable[..., Any]) -> str:
    return text(saturation.simplify(raw(f)))


@pytest.mark.usefixtures("own_egraphs")
@pytest.mark.parametrize(("section", "case"), LAWS.items(), ids=tuple(LAWS))
def test_laws(section: str, case: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expected, less = settled(case), without_section(section)
    monkeypatch.setattr(saturation, "load", lambda *_: less)
    assert text(saturation.simplify(raw(case))) != expected


def test_every_section_is_listed() -> None:
    """The laws of matrix functions are held one by one, in tests/api/test_linalg.py."""
    listed = (*LAWS, *WITHOUT_CASE)
    for file in files():
        if Path(file.source.name).name not in ("language.egg", "linalg.egg"):
            for heading, part in sections(file).items():
                assert not LAW.search(part) or heading.startswith(listed), heading


@pytest.mark.parametrize("step", STEPS)
def test_parts_of_the_schedule(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = settled(circle)
    assert step in saturation.STEP
    monkeypatch.setattr(saturation, "STEP", saturation.STEP.replace(step, ""))
    assert len(text(saturation.simplify(raw(circle)))) > len(expected)


# --- the normal form -----------------------------------------------------------------------------------------------


def coulomb(J: cd.Space("N", "N", "N", "N", symmetry=["J[p,q,r,s] = J[r,s,p,q]"]), x: cd.Space("N", "m")):
    return cd.sum(lambda i, j, p, q, r, s: x[p, i] * x[q, i] * x[r, j] * x[s, j] * J[p, q, r, s])


def form(x: Vector, A: Matrix):
    return x @ A @ x


def rayleigh(x: Complex, H: Hermitian):
    return cd.real(x.conj() @ H @ x) / cd.real(x.conj() @ x)


def diagonal(x: Vector, H: Hermitian):
    return cd.sum(lambda i: x[i] ** 2 + x[i] * cd.imag(cd.exp(H[i, i])))


def pairs(x: cd.Space("n", 2)):
    return cd.sum(lambda i, j: cd.exp(-cd.sum(lambda d: (x[i, d] - x[j, d]) ** 2)))


def projected(x: Even, a: Vector):
    return cd.sum(lambda i, j: a[i] * x[i, j] * a[j] ** 2)


def determinant(x: cd.Space("m", "n"), S: Even):
    return cd.logdet(x @ S @ x.T)


def shifted(x: Vector, a: Vector, A: Even):
    return ((x - a) @ A @ (x - a)) ** 2


ORBITALS = cd.read("C (n, m), S symmetric (n, n), E symmetric (m, m), h symmetric (n, n)\ntr(Cᵀ·h·C) - tr(E·(Cᵀ·S·C))")


def inverse_sinh(x: cd.Space(), a: cd.Space()):
    return cd.log(x + cd.sqrt(x**2 + a))


def fourth_power(x: Matrix):
    return cd.trace(x @ x @ x @ x)


def spectrum(x: Wave):
    def transformed(f, sign):
        return cd.tensor(lambda k: cd.sum(lambda t: cd.exp(sign * 2j * np.pi * k * t) * f[t], t=LINE), k=LINE)

    back = transformed(transformed(x, -1), 1)
    return cd.sum(lambda t: cd.real(cd.conj(back[t]) * back[t]), t=LINE)


def implicit(x: Vector, A: Matrix):
    y = cd.root(lambda y: A @ y + cd.sin(y) - 2 * x, x)
    return cd.sum(y**2) / 4


def smeared(x: Vector, A: Matrix, B: Matrix, C: Matrix):
    t = cd.tensor(lambda i: cd.sum(lambda j, k, p: A[i, j] * B[j, k] * C[k, p] * x[p]))
    return t @ t


def log_shares(x: Matrix, y: Matrix):
    z = x - x.max(axis=1, keepdims=True)
    return (y * (z - np.log(np.exp(z).sum(axis=1, keepdims=True)))).sum()


def causal(x: Matrix, y: Matrix):
    scores = np.where(np.tril(np.ones_like(x)) > 0, x, -np.inf)
    return (y * cd.softmax(scores, axis=1)).sum()


NORMAL_FORM: dict[str, tuple[Any, str, Any, Any]] = {
    "connected networks": (saturation, "normalise", lambda term, names: term, determinant),
    "symmetries of tensors": (Codec, "tensor_laws", lambda self: "", diagonal),
    "common factors": (pipeline, "factored", lambda value, **_: value, form),
    "bindings that are real": (pipeline, "where_real", lambda var, value: (var, value), rayleigh),
    "symmetries of bindings": (pipeline, "with_symmetries", lambda var, value: var, pairs),
    "averages term by term": (pipeline, "projected_by_terms", average, projected),
    "common parts of results": (derivation, "bind_common", lambda body: body, coulomb),
    "bound tensors read": (pipeline, "read_bound", lambda body: body, shifted),
    "heavy tensors of the program": (derivation, "bind_again", lambda body, origin: body, smeared),
    "signs turned": (saturation, "_turned", lambda term: term, ORBITALS),
    "factors cancelled": (contraction, "_cancelled", lambda factors: factors, inverse_sinh),
    "sums that vanish": (pipeline, "without_vanishing_sums", lambda body, settled: body, log_shares),
    "short definitions": (pipeline, "without_short_definitions", lambda body, classes: body, fourth_power),
    "transforms inverted": (contraction, "collapsed", lambda product: product, spectrum),
    "masks out of exponentials": (contraction, "exponential", lambda argument: function("exp", argument), causal),
    "numbers out of linear calls": (pipeline, "_without_factor", lambda call: call, implicit),
}


def shown(case: Any) -> str:
    transform = cd.value_and_grad if case in (coulomb, pairs) else cd.grad
    return cd.grad(ORBITALS, "C").matrix() if case is ORBITALS else str(transform(cd.program(case), "x"))


@pytest.mark.usefixtures("own_egraphs")
@pytest.mark.parametrize("name", NORMAL_FORM)
def test_steps_of_the_normal_form(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a step the case is longer, or what it computes once has no name."""
    where, what, instead, case = NORMAL_FORM[name]
    expected = shown(case)
    monkeypatch.setattr(where, what, instead)
    found = shown(case)
    assert len(found) > len(expected) or found.count(" = ") < expected.count(" = ")


@pytest.mark.usefixtures("own_egraphs")
def test_canonical_names_end_the_saturation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them the rounds go on, as terms equal up to the names of bound indices do not meet."""

    def twice(x: Vector, A: Matrix):
        return cd.sum(lambda i, j: x[i] * A[i, j]) * cd.sum(lambda j, i: A[j, i] * x[j])

    monkeypatch.setattr(saturation, "canonical", lambda term, forms: term)
    with pytest.warns(cd.BudgetWarning, match="12 rounds"):
        shown(twice)


# --- the planner ---------------------------------------------------------------------------------------------------


def solved(A: Matrix, b: Vector):
    return cd.inv(A) @ b


def factoring(A: Matrix, B: Matrix, C: Matrix):
    return A @ B + 2 * A @ C - A @ C.T


def scaled(A: cd.Space("m", "n"), x: Vector):
    return 3 * (A @ x)


def contracted(J: Integrals, D: Matrix):
    return cd.tensor(lambda p, s: cd.sum(lambda q, r: J[p, q, r, s] * D[r, q]))


def lower(A: Matrix, x: Vector):
    return cd.tensor(lambda i: cd.sum(lambda j: cd.where(j <= i, A[i, j] * x[j], 0)))


def windows(x: cd.Space("c", "m"), w: cd.Space("o", "c", "k")):
    return cd.tensor(lambda o, i: cd.sum(lambda j, c: x[c, i + j] * w[o, c, j]), i=cd.Range("n"))


def gram(X: cd.Space("m", "n"), s: cd.Space("m")):
    return cd.tensor(lambda a, d: cd.sum(lambda i: X[i, a] * s[i] * X[i, d]))


def chain(x: Vector):
    return (cd.exp(cd.sin(x) * 2) + cd.cos(x)).sum()


def stacked(x: Matrix, mu: cd.Space("k", "n"), L: cd.Space("k", "n", "n")):
    far = cd.tensor(lambda i, k, a: cd.exp(x[i, a] - mu[k, a]))
    return cd.tensor(lambda k, b, i: cd.sum(lambda a: L[k, a, b] * far[i, k, a]))


def workspace(plan: Plan) -> int:
    return sum(step.workspace for step in cost(plan))


def flops(plan: Plan) -> int:
    return sum(step.flops for step in cost(plan))


PASSES: dict[str, tuple[Callable[..., Any], dict[str, int], Callable[[Plan], int]]] = {
    "solves": (solved, {"n": 100}, flops),
    "factoring": (factoring, {"n": 100}, flops),
    "scaling": (scaled, {"m": 1000, "n": 10}, flops),
    "layouts": (contracted, {"n": 20}, peak),
    "masked products": (lower, {"n": 100}, flops),
    "axis orders": (stacked, {"n": 30, "k": 20}, workspace),
    "correlations": (windows, {"m": 1100, "k": 101, "n": 1000, "c": 8, "o": 8}, peak),
    "structured": (gram, {"m": 1000, "n": 100}, flops),
    "fusion": (chain, {"n": 10**6}, peak),
}


def planned(case: Callable[..., Any], sizes: dict[str, int]) -> Plan:
    plan = planning.make_plan(stable(cd.program(case).term), sizes, find_path)
    return passes.specialise(plan, "numpy")


def states(u: cd.Space("T"), x: Number):
    return cd.scan(lambda state, v: (cd.sin(state) * v, None), x, u)[0]


def test_checkpoints_keep_a_limit_that_blocks_of_an_axis_do_not() -> None:
    plan = planning.make_plan(stable(cd.grad(cd.program(states), "x").term), {"T": 2000}, find_path)
    limit = peak(plan) // 4
    assert sliced(plan, limit)[0] is None
    found, _ = checkpointed(plan, limit)
    assert found is not None
    assert peak(found) <= limit


def test_every_pass_has_a_case() -> None:
    assert list(PASSES) == [each.name for each in (*passes.PLANNING, *passes.NATIVE)]


@pytest.mark.parametrize("name", PASSES)
def test_passes_of_the_planner(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, sizes, figure = PASSES[name]
    expected = figure(planned(case, sizes))
    monkeypatch.setattr(planning, "PLANNING", tuple(each for each in passes.PLANNING if each.name != name))
    monkeypatch.setattr(passes, "NATIVE", tuple(each for each in passes.NATIVE if each.name != name))
    assert figure(planned(case, sizes)) > expected
