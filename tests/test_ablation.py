"""Every group of laws, step of the normal form, of the planner and of stability matters: without it a case gets worse.

Each row switches one of them off and names a program whose derivative is then written longer, takes a larger e-graph,
whose plan costs more, or that overflows.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial, partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from measuring import measured

import combdiff as cd
from combdiff import simplification, stability
from combdiff.codegen import source as plan_source
from combdiff.differentiation import derivation
from combdiff.hessians import compression
from combdiff.ir import ONE, Lambda, Term, Var, add, average, function, inline_all, terms
from combdiff.ir.domains import Real
from combdiff.planning import checkpointed, lowering, planning, sliced
from combdiff.planning import passes as passes_room
from combdiff.planning.lowering import joining, lower, mask_elimination, shifts
from combdiff.planning.lowering.graph import Graph
from combdiff.planning.operations.operation import Step
from combdiff.planning.operations.reads import Read
from combdiff.planning.operations.words import UNIT, Pattern
from combdiff.planning.passes import fusion, slicing, structured
from combdiff.planning.passes import pipeline as passes
from combdiff.planning.plan import Plan, cost, patterns_of, peak, rounds
from combdiff.printing.plain import text
from combdiff.runtime.execution import find_paths, stable
from combdiff.simplification import eigenvectors, normal_form, pipeline
from combdiff.simplification.egraph import saturation
from combdiff.simplification.egraph.encoding import Codec
from combdiff.simplification.laws.loading import RuleFile, load
from combdiff.simplification.laws.syntax import Source, trusted
from combdiff.simplification.normal_form import (
    canonical,
    coefficients,
    common_factors,
    conditions,
    contraction,
    definitions,
    delta_solver,
    denominators,
    symmetries,
)
from combdiff.stability import hypotenuses, magnitudes, stabilisation
from combdiff.stability import steps as stability_steps
from combdiff.stability.scaled_numbers import ScaledNumber
from combdiff.testing.arrays import named_sizes

Number, Vector, Matrix = cd.Space(), cd.Space("n"), cd.Space("n", "n")
Even = cd.Space("n", "n", symmetry=["S[i,j] = S[j,i]"])
Hermitian = cd.Space("n", "n", dtype=complex, symmetry=["H[i,j] = conj(H[j,i])"])
Complex = cd.Space("n", dtype=complex)
Mirrored = cd.Space(cd.Symmetric("n"), dtype=complex, symmetry=["H[k] = conj(H[-k])"])
LINE = Real()
Wave = cd.Space(LINE, dtype=complex)
RING = cd.Cyclic("n")
Cycle = cd.Space(RING)
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


def slope_of_wave(x: Vector, z: Complex):
    return wave(x, z)  # of which the gradient is taken


def beside_a_real(x: Vector, z: Complex):
    return cd.sum(lambda i: cd.real((z[i] + cd.conj(z[i])) * cd.exp(z[i])) * x[i])


def zeros(x: Vector):
    """Sums of zeros over several indices: each is one over all of any of these, too."""
    sums = [cd.sum(lambda i: cd.sin(k * x[i]) ** 2 + cd.cos(k * x[i]) ** 2 - 1) for k in (1, 2, 3)]  # noqa: B023
    return x @ x + sums[0] * sums[1] * sums[2]


def centre(x: Vector, H: Mirrored):
    return cd.sum(lambda i: x[i] ** 2 + x[i] * cd.imag(cd.exp(H[0])))


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
    "what is real": beside_a_real,
    "real parts": slope_of_wave,
}
ENDING: dict[str, Callable[..., Any]] = {  # without these the e-graph grows
    "empty and single": moebius,
    "like terms": moebius,
    "a number needs no other form": zeros,
    "negated indices": centre,
}
LAW = re.compile(r"^\((?:rewrite|rule) .*?(?=^\(|^;|\Z)", re.MULTILINE | re.DOTALL)
STEPS = ("(repeat 2 (run facts))", "(run collect)", "(run laws)", "(run substitution)")


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
    return tuple(RuleFile(source, tuple(trusted(source.text)), file.rows) if each is file else each for each in files())


@pytest.fixture
def own_egraphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No e-graph of other laws is kept for later tests."""
    monkeypatch.setattr(saturation, "_local", type(saturation._local)())


@pytest.fixture
def own_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is simplified in another way is neither found as it was before nor kept for later tests."""
    monkeypatch.setattr(pipeline, "simplified_once", lambda term, rules, known, do: do(term, rules, known))
    monkeypatch.setattr(pipeline, "factored_once", lambda value, joining, do: do(value))
    monkeypatch.setattr(pipeline, "body_once", lambda body, rules, stage, do: do())
    forget_simplification()
    yield
    forget_simplification()


def forget_simplification() -> None:
    """What simplification has found out about the terms that there are is forgotten."""
    for term in [reference() for reference in list(terms._interned.values())]:
        kept = {} if term is None else vars(term)
        for key in [key for key in kept if key.startswith(simplification.__name__)]:
            del kept[key]


@cache
def settled(f: Callable[..., Any]) -> str:
    return text(saturation.simplify(raw(f)))


@pytest.mark.sample(8)
@pytest.mark.usefixtures("own_egraphs")
@pytest.mark.parametrize(("section", "case"), LAWS.items(), ids=tuple(LAWS))
def test_laws(section: str, case: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expected, less = settled(case), without_section(section)
    monkeypatch.setattr(saturation, "load", lambda *_: less)
    assert text(saturation.simplify(raw(case))) != expected


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of each e-graph after each of its rounds, as they come."""
    found: list[int] = []
    saturate = saturation.Saturation._saturate

    def counted(self: saturation.Saturation) -> str:
        stopped = saturate(self)
        found.append(self._size())
        return stopped

    monkeypatch.setattr(saturation.Saturation, "_saturate", counted)
    return found


@pytest.mark.sample(2)
@pytest.mark.usefixtures("own_egraphs")
@pytest.mark.filterwarnings("ignore::combdiff.BudgetWarning")
@pytest.mark.parametrize(("section", "case"), ENDING.items(), ids=tuple(ENDING))
def test_laws_that_end_others(
    section: str, case: Callable[..., Any], sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a section the e-graph of the case is twice as large, at least, within a small budget."""
    term, less = raw(case), without_section(section)
    saturation.simplify(term)
    spared, sizes[:] = max(sizes), []
    monkeypatch.setattr(saturation, "load", lambda *_: less)
    with cd.budget(nodes=1500), suppress(RecursionError):  # an index that is negated over and over is read by recursion
        saturation.simplify(term)
    assert max(sizes) > 2 * spared


def test_every_section_is_listed() -> None:
    """The laws of matrix functions are held one by one, in tests/api/test_linalg.py."""
    listed = (*LAWS, *ENDING)
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
    return cd.real((x.conj() @ H @ x) / (x.conj() @ x))


def diagonal(x: Vector, H: Hermitian):
    return cd.sum(lambda i: x[i] ** 2 + x[i] * cd.imag(cd.exp(H[i, i])))


def pairs(x: cd.Space("n", 2)):
    return cd.sum(lambda i, j: cd.exp(-cd.sum(lambda d: (x[i, d] - x[j, d]) ** 2)))


def projected(x: Even, a: Vector):
    return cd.sum(lambda i, j: a[i] * x[i, j] * a[j] ** 2)


def shifted(x: Vector, a: Vector, A: Even):
    return ((x - a) @ A @ (x - a)) ** 2


def fourth_power(x: Matrix):
    return cd.trace(x @ x @ x @ x)


def spectrum(x: Wave):
    def transformed(f, sign):
        return cd.tensor(lambda k: cd.sum(lambda t: cd.exp(sign * 2j * np.pi * k * t) * f[t], t=LINE), k=LINE)

    back = transformed(transformed(x, -1), 1)
    return cd.sum(lambda t: cd.real(cd.conj(back[t]) * back[t]), t=LINE)


def there_and_back(x: cd.Space("n", dtype=complex)):
    return np.sum(np.abs(np.fft.ifft(np.fft.fft(x))) ** 2)


def in_frequency(x: Complex):
    transformed, n = np.fft.fft(x), x.shape[0]
    return cd.sum(
        lambda m: cd.sum(lambda k: cd.real(cd.exp(2j * np.pi * k * m / n) * transformed[k]), k="n") ** 2, m="n"
    )


def implicit(x: Vector, A: Matrix):
    y = cd.root(lambda y: A @ y + cd.sin(y) - 2 * x, x)
    return cd.sum(y**2) / 4


def smeared(x: Vector, A: Matrix, B: Matrix, C: Matrix):
    t = cd.tensor(lambda i: cd.sum(lambda j, k, p: A[i, j] * B[j, k] * C[k, p] * x[p]))
    return t @ t


def layer_norm(x: Matrix, y: Matrix):
    centred = x - x.mean(axis=1, keepdims=True)
    return (y * centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)).sum()


def causal(x: Matrix, y: Matrix):
    scores = np.where(np.tril(np.ones_like(x)) > 0, x, -np.inf)
    return (y * cd.softmax(scores, axis=1)).sum()


def around(x: Cycle, y: Cycle):
    return cd.sum(lambda i, j: cd.exp(x[i] * y[i - j]) * y[j], i=RING, j=RING) + cd.sum(
        lambda i, j: cd.exp(x[i + j] * y[i]) * y[j], i=RING, j=RING
    )


def arm(a: Number, b: Number, p: Number, x: Number):
    return (a * cd.cos(p) + b * cd.cos(p + x)) ** 2 + (a * cd.sin(p) + b * cd.sin(p + x)) ** 2


def geometric_series(a: Number, x: Number):
    return a * (1 - x**3) / (1 - x)


def trinomial(x: Number, y: Number):
    return cd.exp(x**2 - 2 * x * y + y**2)


def cumulated(x: Vector):
    return np.cumsum(np.cumsum(x)).sum()


def interpolated(x: cd.Space(5), t: Number):
    return np.interp(t, np.arange(5), x)


def by_steps(x: cd.Space(5)):
    return cd.sum(lambda j, d: cd.where(3 * j + d <= 2, x[j] ** 3 * x[d], 0))


def chosen_twice(x: Vector, y: Vector):
    return cd.sum(lambda i: cd.where(x[i] > y[i], x[i], 3 * y[i]) ** 2)


def crossed(x: Vector, y: Vector):
    return cd.exp(x @ (2 * x - y) + y @ (2 * y - x))


def quotient_rule(x: Vector, y: Vector):
    return cd.sum(lambda i: (y[i] * x[i] + 1) / (2 * x[i] + y[i]))


def inverted(x: cd.Space("n", "n", symmetry=["x[i,j] = x[j,i]"]), y: Vector, z: Vector):
    return (y - z) @ cd.inv(x) @ (y - z)


def steps(x: Vector):
    for _ in range(4):
        x = x * (1 - x[0])
    return x.sum()


def entropy(x: Vector):
    p = cd.softmax(x)
    return -(p * np.log(p)).sum()


def shares(x: Vector):
    return cd.logsumexp(x)


def bell(x: Number, a: Number, b: Number):
    return np.exp(-(a**2 + b**2) / (2 * x**2)) / (2 * x**2)


def loss_of_steps(x: Vector):
    last, losses = cd.scan(lambda s, _: (z := np.sin(s), z.sum()), x, length=7)
    return last.sum() + losses.sum()


def gated(x: Vector, W: Even):
    def step(h, _):
        z = 1 / (1 + np.exp(-(W @ h)))
        return h + z * np.tanh(z * h), None

    return cd.scan(step, x, length=7)[0].sum()


def focal(x: Vector, g: Number):
    p = 1 / (1 + np.exp(-x))
    return -cd.sum(lambda i: (1 - p[i]) ** g * np.log(p[i]))


def cross_entropy(W: cd.Space("c", "k"), U: cd.Space("k", "n"), x: Vector, y: cd.Space("c")):
    z = W @ np.tanh(U @ x)
    return -(y * np.log(np.exp(z) / np.exp(z).sum())).sum()


def squared_form(A: cd.Space("n", "n"), x: Vector):
    return (x @ A @ x) ** 2


def waves(x: cd.Space("n", dtype=complex)):
    y = np.sin(x / (2 + abs(x) ** 2))
    z = np.tanh(y / (2 + abs(y) ** 2))
    return (abs(z) ** 2).sum()


def laid_out_anew(x: cd.Space(12)):
    return (x.reshape(3, 4).T.reshape(-1) ** 3).sum()


def kronecker(x: cd.Space(2, 2), p: cd.Space(4)):
    return ((np.kron(x, x) @ p) ** 2).sum()


def halves(x: cd.Space("2*n")):
    return cd.sum(lambda i: cd.where(i % 2 == 0, x[i], 0)) ** 3


def every_other(x: cd.Space("2*n")):
    return (x[::2] ** 3).sum()


def turned_around(x: Vector):
    return (np.roll(x, 1) ** 3).sum()


def doubled(x: cd.Space(cd.Cyclic(6))):
    return cd.sum(lambda i: x[2 * i] ** 3, i=cd.Cyclic(6))


def differences(x: cd.Space("n + 1")):
    return (np.diff(x) ** 4).sum()


def partition_function(x: cd.Space("n", "n")):
    return np.log(np.trace(cd.expm(-x)))


def captured(x: cd.Space("n", "d")):
    return ((x @ np.linalg.eigh(x.T @ x)[1][:, -2:]) ** 2).sum()


NORMAL_FORM: dict[str, tuple[Any, str, Any, Any]] = {
    "digits apart": (delta_solver, "taken_apart", lambda indices, factors: factors, laid_out_anew),
    "indices within windows": (delta_solver, "counted_within", lambda product, names: product, kronecker),
    "remainders of summed indices": (delta_solver, "counted_in_steps", lambda product, names: product, halves),
    "linear systems": (delta_solver, "together", lambda product, names: product, every_other),
    "axes around": (delta_solver, "around_axes", lambda product: product, turned_around),
    "whole cycles": (delta_solver, "one_by_one", lambda product, names: product, doubled),
    "conditions": (conditions, "_pruned", lambda bounds, apart, premises: (bounds, apart), differences),
    "sums counted from elsewhere": (canonical, "moves", lambda term: iter([term]), around),
    "coefficients of δ's": (coefficients.Coefficients, "apart", lambda self, value, name: value, steps),
    "shares of quotients": (compression, "with_shares", lambda factors, definitions: tuple(factors), shares),
    "one denominator": (common_factors, "over_one_denominator", lambda term: term, quotient_rule),
    "angles added": (denominators, "with_angles_added", lambda term: term, arm),
    "polynomials divided": (denominators, "exact_quotient", lambda *_: None, geometric_series),
    "squares": (denominators, "exact_root", lambda *_: None, trinomial),
    "places counted": (contraction, "without_counted_places", lambda product: product, cumulated),
    "indices as one number": (contraction, "with_places_joined", lambda sum_: sum_, interpolated),
    "the only place": (delta_solver, "_only_place", lambda index, conditions: iter(()), by_steps),
    "what conditions say": (contraction, "where_they_hold", lambda factors: factors, chosen_twice),
    "terms that cancel": (saturation, "with_sums_cancelled", lambda term, names: term, crossed),
    "networks joined": (common_factors, "joined_networks", lambda term: term, form),
    "sums of transposes": (definitions, "with_transposes_joined", lambda term: term, squared_form),
    "sums opened": (pipeline, "with_sums_opened", lambda body: body, waves),
    "connected networks": (saturation, "normalise", lambda term, names: term, doubled),
    "symmetries of tensors": (Codec, "tensor_laws", lambda self: "", diagonal),
    "common factors": (pipeline, "factored", lambda value, **_: value, form),
    "bindings that are real": (pipeline, "where_real", lambda var, value, *_: (var, value), rayleigh),
    "symmetries of bindings": (symmetries, "_symmetries", lambda value, axes, dtype: (), pairs),
    "averages term by term": (pipeline, "projected_by_terms", average, projected),
    "common parts of results": (pipeline, "bind_common", lambda body: body, coulomb),
    "bound tensors read": (pipeline, "read_bound", lambda body: body, shifted),
    "heavy tensors of the program": (derivation, "bind_again", lambda body, origin: body, smeared),
    "directions that commute": (pipeline, "with_commuting_blocks", lambda body: body, partition_function),
    "images of eigenvectors": (eigenvectors, "_by_numbers", lambda *_: None, captured),
    "sums that vanish": (pipeline, "without_vanishing_sums", lambda body, settled: body, layer_norm),
    "short definitions": (pipeline, "without_short_definitions", lambda body, classes: body, fourth_power),
    "shares by name": (definitions, "with_named_shares", lambda body: iter(()), entropy),
    "parts that a product holds twice": (definitions, "with_repeated_defined", lambda body: body, inverted),
    "parts that values repeat": (definitions, "with_repeated_named", lambda body: iter(()), bell),
    "factors of definitions": (definitions, "with_factors_taken_in", lambda body: iter(()), cross_entropy),
    "transforms inverted": (contraction, "collapsed", lambda product: product, spectrum),
    "waves over a period": (contraction, "collapsed", lambda product: product, there_and_back),
    "parts out of sums": (contraction, "with_part_outside", lambda term: None, in_frequency),
    "masks out of exponentials": (contraction, "exponential", lambda argument: function("exp", argument), causal),
    "logarithms of inverses": (contraction, "_logarithm", lambda argument: function("log", argument), focal),
    "results of steps": (pipeline, "with_results_of_steps", lambda body: body, gated),
    "results that nothing reads": (pipeline, "without_unread_results", lambda body: body, loss_of_steps),
    "numbers out of linear calls": (pipeline, "_without_factor", lambda call: call, implicit),
}


def shown(case: Any) -> str:
    if case is shares:
        return str(cd.hessian(cd.program(case), "x", simplify=False).compressed())
    if case is cross_entropy:
        return str(cd.grad(cd.program(case), ("U", "W")))
    transform = cd.value_and_grad if case in (coulomb, pairs) else cd.grad
    return str(transform(case if isinstance(case, cd.Program) else cd.program(case), "x"))


shown_whole = cache(shown)  # with every step


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", NORMAL_FORM)
def test_steps_of_the_normal_form(name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a step the case is longer, or what it computes once has no name."""
    where, what, instead, case = NORMAL_FORM[name]
    expected = shown_whole(case)
    request.getfixturevalue("own_memory")
    monkeypatch.setattr(where, what, instead)
    found = shown(case)
    assert len(found) > len(expected) or found.count(" = ") < expected.count(" = ")


def cubes(x: cd.Space("n", "n", dtype=complex)):
    return cd.real(cd.trace(x @ x @ x))


def exponentials(x: Vector, v: Vector):
    return sum(cd.sum(lambda i: cd.exp(k * x[i]) / v[i]) for k in range(2, 60))  # noqa: B023  (called at once)


WORK: dict[str, tuple[Any, str, Any, Any]] = {  # less of it, for the same text
    "δ's solved before saturation": (pipeline, "without_deltas_and_ends", lambda term, names: term, cubes),
    "long sums by groups": (pipeline, "simplify_sum", lambda terms, simplify: simplify(add(*terms)), exponentials),
}


@pytest.mark.usefixtures("own_memory")
@pytest.mark.parametrize("name", WORK)
def test_steps_that_spare_the_egraph_work(name: str, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a step the largest e-graph of the case has half as many rows again, at least."""
    where, what, instead, case = WORK[name]
    shown(case)
    spared, sizes[:] = max(sizes), []
    monkeypatch.setattr(where, what, instead)
    shown(case)
    assert max(sizes) > 1.5 * spared


PARTS_OF_OTHERS = {
    "forms": "terms without names: how simplified terms are found again",
    "delta_solver": "solves δ's for `contraction`, which is the normal form",
    "expansion": "sums of products, for `coefficients`, `orbits` and `joined_networks`",
    "subnetworks": "what `common_subnetworks` binds",
    "lengths": "the measure of `joined_networks`, `common_factors` and `definitions`",
}


def taking_part(rows: Iterable[tuple[Any, ...]]) -> set[str]:
    """The modules in which what is switched off is written."""
    return {getattr(where, what).__module__.rpartition(".")[2] for where, what, *_ in rows}


def modules_of(room: Any) -> set[str]:
    return {module.name for module in pkgutil.iter_modules(room.__path__)}


def test_every_module_of_the_normal_form_has_a_case() -> None:
    listed = taking_part([*NORMAL_FORM.values(), *WORK.values(), (saturation, "canonical")])
    assert modules_of(normal_form) == (listed & modules_of(normal_form)) | PARTS_OF_OTHERS.keys()


@pytest.mark.usefixtures("own_egraphs", "own_memory")
def test_canonical_names_end_the_saturation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them the rounds go on, as terms equal up to the names of bound indices do not meet."""

    def twice(x: Vector, A: Even):
        return cd.sum(lambda i, j: x[i] * A[i, j]) * cd.sum(lambda j, i: A[j, i] * x[j])

    monkeypatch.setattr(saturation, "canonical", lambda term, forms: term)
    with pytest.warns(cd.BudgetWarning, match="12 rounds"):
        shown(twice)


# --- the planner ---------------------------------------------------------------------------------------------------


def solved(A: Matrix, b: Vector):
    return cd.inv(A) @ b


def decomposed(A: Matrix):
    w, V = cd.eigh(A)
    return w * V[0]


def factoring(A: Matrix, B: Matrix, C: Matrix):
    return A @ B + 2 * A @ C - A @ C.T


def scaled(A: cd.Space("m", "n"), x: Vector):
    return 3 * (A @ x)


def contracted(J: Integrals, D: Matrix):
    return cd.tensor(lambda p, s: cd.sum(lambda q, r: J[p, q, r, s] * D[r, q]))


def triangular(A: Matrix, x: Vector):
    return cd.tensor(lambda i: cd.sum(lambda j: cd.where(j <= i, A[i, j] * x[j], 0)))


def windows(x: cd.Space("c", "m"), w: cd.Space("o", "c", "k")):
    return cd.tensor(lambda o, i: cd.sum(lambda j, c: x[c, i + j] * w[o, c, j]), i=cd.Range("n"))


def gram(X: cd.Space("m", "n"), s: cd.Space("m")):
    return cd.tensor(lambda a, d: cd.sum(lambda i: X[i, a] * s[i] * X[i, d]))


def chosen(X: cd.Space("m", "n"), s: cd.Space("m")):
    return cd.tensor(lambda a: cd.sum(lambda i: cd.where(s[i] > 0, s[i] * X[i, a], 0)))


def chain(x: Vector):
    return (cd.exp(cd.sin(x) * 2) + cd.cos(x)).sum()


def stacked(x: Matrix, mu: cd.Space("k", "n"), L: cd.Space("k", "n", "n")):
    far = cd.tensor(lambda i, a, k: cd.exp(x[i, a] - mu[k, a]))
    return cd.tensor(lambda k, b, i: cd.sum(lambda a: L[k, a, b] * far[i, a, k]))


def distances(p: cd.Space("n", "d"), c: cd.Space("k", "d")):
    return np.tanh(p[None] - c[:, None])


def polynomial(x: cd.Space("m"), t: Vector):
    return cd.tensor(lambda i: cd.sum(lambda j: x[j] * t[i] ** j))


def made_down_columns(plan: Plan) -> int:
    """Elements that are made of operands whose axes come in another order than theirs."""
    made = [(n, pattern) for n, step in enumerate(plan.steps) for pattern in patterns_of(step)]
    return sum(plan.elements(n) for n, pattern in made if list(pattern) != sorted(pattern))


def workspace(plan: Plan) -> int:
    return sum(step.workspace for step in cost(plan))


def flops(plan: Plan) -> int:
    return sum(step.flops for step in cost(plan))


def flops_to_the_end(plan: Plan) -> int:
    return flops(passes.specialise(plan, "numpy"))


def steps_done_over_and_over(plan: Plan) -> int:
    return sum(len(inner.steps) for inner in plan.inner.values())


def iterated(x: cd.Space("n"), w: cd.Space(2, "n"), s: cd.Space("T")):
    return cd.scan(lambda state, v: (w[0] * state + v, None), x, s)[0]


def columns(x: Vector):
    return np.stack([cd.sin(x), cd.cos(x), 2 * x], 1)


def column_and_all(A: Matrix, B: cd.Space("n", 4)):
    return np.exp(A @ B[:, 0]), A @ B


def log_sums_so_far(x: Vector):
    return np.log(np.cumsum(np.exp(x)))


def in_waves(z: cd.Space("n", "n", dtype=complex)):
    return np.fft.fft2(z)


def calls_made(plan: Plan) -> int:
    return len(plan.steps)


def inverse_squares(x: Vector, y: Vector):
    return x / y**2


PASSES: dict[str, tuple[Callable[..., Any], dict[str, int], Callable[[Plan], int]]] = {
    "solves": (solved, {"n": 100}, flops),
    "decompositions": (decomposed, {"n": 100}, flops),
    "parts": (column_and_all, {"n": 100}, flops),
    "factoring": (factoring, {"n": 100}, flops),
    "scaling": (scaled, {"m": 1000, "n": 10}, flops),
    "layouts": (contracted, {"n": 20}, peak),
    "masked products": (triangular, {"n": 100}, flops),
    "stacks": (columns, {"n": 1000}, peak),
    "quotients": (inverse_squares, {"n": 1000}, flops),
    "transforms": (in_waves, {"n": 100}, calls_made),
    "running logarithms": (log_sums_so_far, {"n": 100}, flops),
    "invariants": (iterated, {"n": 100, "T": 100}, steps_done_over_and_over),
    "axis orders": (stacked, {"n": 30, "k": 20}, workspace),
    "powers": (polynomial, {"m": 20, "n": 1000}, flops),
    "chosen products": (chosen, {"m": 1000, "n": 100}, flops),
    "correlations": (windows, {"m": 1100, "k": 101, "n": 1000, "c": 8, "o": 8}, peak),
    "structured": (gram, {"m": 1000, "n": 100}, flops),
    "rows": (distances, {"n": 1000, "k": 10, "d": 3}, made_down_columns),
    "fusion": (chain, {"n": 10**6}, peak),
}


def planned(case: Callable[..., Any], sizes: dict[str, int], fuses: bool = True) -> Plan:
    plan = planning.make_plan(stability_steps.stable.__wrapped__(cd.program(case).term), sizes, find_paths)
    return passes.specialise(plan, "numpy", fuses)


def function_of(plan: Plan) -> Any:
    """The function that a plan's source defines."""
    scope: dict[str, Any] = {}
    exec(plan_source(plan, "case", "numpy"), scope)
    return scope["case"]


def held(plan: Plan) -> int:
    """The most bytes that the plan holds when it runs."""
    return measured(partial(function_of(plan), *(np.ones(plan.shape(n)) for n in range(len(plan.parameters)))))[1]


def least(plan: Plan) -> int:
    """The smallest memory limit that blocks of one axis keep to."""
    return sliced(plan, 0)[1]


def rounds_within_half(plan: Plan) -> int:
    """How often the loop of blocks goes, in half of the memory."""
    found, _ = sliced(plan, peak(plan) // 2)
    assert found is not None
    return rounds(found, found.loops[0])


def hermitian_gram(X: cd.Space("m", "n", dtype=complex)):
    return X.conj().T @ X


def thrice(X: cd.Space("m", "n"), s: cd.Space("m")):
    return 3 * gram(X, s)


def ridge(X: cd.Space("m", "n"), w: Vector):
    return cd.tensor(lambda a, d: cd.sum(lambda i: X[i, a] * X[i, d]) + w[a] * cd.delta(a, d))


def several(x: Vector, y: Vector, z: Vector):
    return 12 * cd.sin(x) - 8 * cd.cos(y) - 8 * cd.exp(z) + x


def neighbours(x: Cycle, y: Cycle):
    return cd.tensor(lambda i: cd.sin(x[i + 1]) * cd.cos(x[i - 1]) + cd.exp(y[i]), i=RING)


def beside_the_first(x: Vector, y: Vector):
    t = cd.tensor(lambda i, j: cd.exp(x[i] * y[j]))
    return cd.tensor(lambda i: cd.sum(lambda j: cd.sin(t[i, j] - t[i, 0])))


def shifted_exp(x: Vector):
    return cd.exp(cd.sin(x) * 2) + 1


def screened(L: cd.Space("k", "n", "n"), D: Matrix):
    J = cd.tensor(lambda p, q, r, s: cd.sum(lambda k: L[k, p, q] * L[k, r, s]))
    return cd.tensor(lambda p, q: cd.sum(lambda r, s: cd.exp(J[p, q, r, s]) * D[r, s]))


def both_ways(x: Vector, y: Vector):
    t = cd.tensor(lambda i, j: cd.exp(x[i] * y[j]))
    return cd.tensor(lambda i: cd.sum(lambda j: cd.sin(t[i, j] + t[j, i])))


def accumulated(x: Vector, A: Matrix):
    s = np.cumsum(x)
    return cd.sum(lambda i, j: cd.sin(A[i, j] + s[i] + s[j]))


def not_twice(plan: Plan, seed: int, axis: int, small: int) -> Plan:
    """In place of a split in which steps that are read along two indices are done for each."""
    try:
        return slicing._split(plan, seed, axis, small)
    except slicing._Twice:
        raise slicing._Refused from None


def no_reads(step: Step, follows: Callable[[Step], bool] = fusion._follows) -> bool:
    """In place of what follows in a loop, reads of some of an axis too."""
    return not isinstance(step.operation, Read) and follows(step)


def in_one(step: Step, kinds: Sequence[type], first: int) -> list[tuple[Step, Pattern]]:
    """In place of a sum that is taken apart."""
    return [(step, tuple(range(len(step.axes))))]


def counted_down(x: Number):
    return cd.while_loop(lambda y: y > 1, lambda y: y / 2, x, limit=1000)


LONG = {"n": 10**6}
PARTS_OF_PASSES: dict[str, tuple[Any, str, Any, Any, dict[str, int], Callable[[Plan], int]]] = {
    "Gram matrices": (structured, "gram", lambda *_: None, gram, {"m": 1000, "n": 100}, flops),
    "Gram matrices of complex arrays": (
        structured,
        "gram",
        lambda *_: None,
        hermitian_gram,
        {"m": 500, "n": 90},
        flops,
    ),
    "weights of Gram matrices": (structured, "scaled_weight", lambda *_: None, thrice, {"m": 1000, "n": 100}, flops),
    "addends along diagonals": (
        structured._Depositing,
        "_deposited",
        lambda self, step: None,
        ridge,
        {"m": 1000, "n": 100},
        flops,
    ),
    "sums in pairs": (fusion, "in_pairs", in_one, several, LONG, peak),
    "members that are done later": (fusion._Chains, "_postpone", lambda self: None, neighbours, LONG, peak),
    "reads of each block": (fusion._Chains, "_take_in", lambda self: None, neighbours, LONG, peak),
    "parts of members": (
        fusion,
        "_follows",
        no_reads,
        beside_the_first,
        {"n": 1000},
        peak,
    ),
    "loops that end": (passes, "with_early_ends", lambda plan, used: plan, counted_down, {}, flops),
    "results over operands": (Plan, "_is_writable", lambda *_: False, shifted_exp, {"n": 10**5}, held),
    "blocks as large as they may be": (
        slicing,
        "_enlarged",
        lambda plan, limit: plan,
        screened,
        {"n": 12, "k": 12},
        rounds_within_half,
    ),
    "arrays of each size held whole": (slicing, "_sizes", lambda plan: [], accumulated, {"n": 40}, least),
    "steps that are read along two indices": (slicing, "_split_with_copies", not_twice, both_ways, {"n": 30}, least),
}


@pytest.mark.parametrize("name", PARTS_OF_PASSES)
def test_parts_of_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, what, instead, case, sizes, figure = PARTS_OF_PASSES[name]
    expected = figure(planned(case, sizes, where is not slicing))
    monkeypatch.setattr(where, what, instead)
    assert figure(planned(case, sizes, where is not slicing)) > expected


HELPING_PASSES = {
    "pipeline": "the passes in order",
    "loop_axis": "where an index runs through a step, for `loops`",
    "loops": "steps in loops over blocks, for `fusion`, `slicing` and `checkpoints`",
    "checkpoints": "its own test, below",
    "fused_sums": "its own test, below, as it is for compilers",
    "reuse": "the text of a result that is written over an operand, which `results over operands` switches off",
}


def test_every_module_of_passes_has_a_case() -> None:
    listed = {
        each.rewrite.__module__.rpartition(".")[2] for each in (*passes.PLANNING, *passes.ITERATED, *passes.NATIVE)
    }
    listed |= taking_part(PARTS_OF_PASSES.values())
    assert modules_of(passes_room) == (listed & modules_of(passes_room)) | HELPING_PASSES.keys()


def test_sums_of_what_is_soon_made_keep_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    @cd.program
    def moments(c: cd.Space("k", "d"), p: cd.Space("n", "d"), w: cd.Space("k", "n")):
        far = p[:, None] - c
        squares = cd.tensor(lambda k, i: cd.sum(lambda a: far[i, k, a] ** 2), k="k", i="n")
        return squares, cd.tensor(lambda k, a: cd.sum(lambda i: w[k, i] * far[i, k, a]), k="k", a="d")

    plan = planning.make_plan(moments.term, {"k": 20, "n": 1000, "d": 9}, find_paths)
    fused = [step.operation.title for step in passes.specialise(plan, "jax").steps]
    monkeypatch.setattr(passes, "SUMS", replace(passes.SUMS, rewrite=lambda plan: plan))
    kept = [step.operation.title for step in passes.specialise(plan, "jax").steps]
    assert (fused.count("combine"), fused.count("fused")) == (2, 2)
    assert (kept.count("combine"), kept.count("fused")) == (1, 0)


def states(u: cd.Space("T"), x: Number):
    return cd.scan(lambda state, v: (cd.sin(state) * v, None), x, u)[0]


def test_checkpoints_keep_a_limit_that_blocks_of_an_axis_do_not() -> None:
    plan = planning.make_plan(stable(cd.grad(cd.program(states), "x").term), {"T": 2000}, find_paths)
    limit = peak(plan) // 4
    assert sliced(plan, limit)[0] is None
    found, _ = checkpointed(plan, limit)
    assert found is not None
    assert peak(found) <= limit


def test_every_pass_has_a_case() -> None:
    assert list(PASSES) == [each.name for each in (*passes.PLANNING, *passes.ITERATED, *passes.NATIVE)]


@pytest.mark.parametrize("name", PASSES)
def test_passes_of_the_planner(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, sizes, figure = PASSES[name]
    expected = figure(planned(case, sizes))
    monkeypatch.setattr(planning, "PLANNING", tuple(each for each in passes.PLANNING if each.name != name))
    monkeypatch.setattr(planning, "ITERATED", tuple(each for each in passes.ITERATED if each.name != name))
    monkeypatch.setattr(passes, "NATIVE", tuple(each for each in passes.NATIVE if each.name != name))
    assert figure(planned(case, sizes)) > expected


# --- lowering ------------------------------------------------------------------------------------------------------


def convolved(x: cd.Space("m"), w: cd.Space("k")):
    return cd.sum(lambda i: cd.sum(lambda j: x[i + j] * w[j]) ** 2, i=cd.Range("m-k+1"))


def shifted_behind(x: Vector, y: Vector):
    return cd.tensor(lambda i: cd.where(i >= 1, x[i - 1] + 2 * y[i - 1], 0), i="n")


def filtered(x: cd.Space("m", "m"), w: cd.Space("n", "n"), v: cd.Space("d", "d")):
    return cd.sum(lambda i, j, a, b: x[i + a, j + b] * w[a, b] * v[i, j])


def squares(x: cd.Space("m"), w: cd.Space("k")):
    return cd.tensor(lambda i: cd.sum(lambda j: x[i + j] ** 2 * w[j]), i=cd.Range("m-k+1"))


def powers_of_waves(x: Vector):
    return cd.sum(np.abs(np.fft.fft(x)) ** 4)


def sines(x: cd.Space("m"), w: cd.Space("k")):
    return cd.tensor(lambda i: cd.sum(lambda j: cd.sin(x[i + j]) * w[j]), i=cd.Range("m-k+1"))


def blocks(x: cd.Space("3*n"), w: cd.Space(2)):
    return cd.sum(lambda i: cd.sum(lambda j: x[3 * i + j] * w[j]) ** 2, i=cd.Range("n"))


def every_other(t: Vector, x: cd.Space("2*n")):
    return cd.sum(lambda i: t[i] * x[2 * i] ** 2 * x[2 * i + 1])


def running(x: Vector):
    return cd.tensor(lambda i: cd.sum(lambda j: cd.where(j <= i, x[j] ** 2, 0)), i=cd.Range("n"))


def at_risk(x: Vector):
    return cd.sum(lambda i: x[i] - cd.log(cd.sum(lambda j: cd.where(j >= i, cd.exp(x[j]), 0))))


def strides(x: Cycle):
    return cd.sum(lambda i: cd.sin(x[2 * i]), i=RING)


def packed(low: cd.Space("k", "p"), z: cd.Space("k", "d", "n"), place: cd.Space("d", "d", dtype=int)):
    return cd.tensor(lambda k, i, n: cd.sum(lambda j: cd.where(j < i, low[k, place[i, j]], 0) * cd.exp(z[k, j, n])))


def repeated(x: cd.Space(40)):
    return np.repeat(cd.sin(x), 5)


def paths(A: Matrix, x: Vector):
    t = cd.tensor(lambda i, j, k: A[i, j] * A[j, k] * x[i])
    return cd.tensor(lambda i: cd.sum(lambda j, k: t[i, j, k] * x[k]) + cd.sum(lambda j, k: t[k, i, j] * x[j]))


def one_more(x: Vector):
    return cd.sum(lambda i: cd.log(1 + x[i]))


def one_less(x: Vector):
    return cd.tensor(lambda i: (cd.exp(x[i]) - 1) / x[i])


def opened(A: Matrix, B: Matrix, x: Matrix):
    t = cd.tensor(lambda d, e, j, i: A[d, i] * B[e, i] * A[j, i])
    return cd.tensor(lambda d, e: cd.sum(lambda j, i: t[d, e, j, i] * x[j, i] + t[e, d, j, i] * x[j, i]))


Bilinear = cd.Space("n", "n", "n", "n", symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = J[q,p,r,s]"])


def turned(J: Bilinear, D: Matrix, x: Matrix):
    """The same sum, read once as it stands and once by the symmetries of J."""
    first = cd.tensor(lambda p, q: cd.sum(lambda r, s: J[p, q, r, s] * D[r, s]))
    second = cd.tensor(lambda p, q: cd.sum(lambda r, s: J[s, r, q, p] * D[r, s]))
    return cd.sum(lambda p, q: x[p, q] * cd.sin(first[p, q]) * cd.cos(second[p, q]))


def halved(x: Number):
    return cd.while_loop(lambda y: y > 1, lambda y: y / 2 + cd.sin(y) / 9, x, limit=1000)


def tangent(f: Callable[..., Any]) -> cd.Program:
    return cd.pushforward(cd.program(f), "x")


def raw_gradient(f: Callable[..., Any]) -> cd.Program:
    return cd.grad(cd.program(f), "x", simplify=False)


def gradient(f: Callable[..., Any]) -> cd.Program:
    return cd.grad(cd.program(f), "x")


def never(*_: Any, **__: Any) -> None:
    """In place of a step that says what it has found, if anything."""


def unmoved(space: cd.Space, order: Iterable[int]) -> tuple[Any, ...]:
    """In place of the symmetries of an array: it is equal to itself."""
    return ((tuple(range(space.order)), False),)


def lags(x: cd.Space(cd.Cyclic("n")), w: cd.Space("m")):
    return cd.tensor(lambda a, d: cd.sum(lambda i: x[i] * x[d + i - a]) * w[a] * w[d])


EXTENTS = {"n": 50, "m": 400, "k": 30, "d": 10, "p": 45}
LOWERING: dict[str, tuple[Any, str, Any, Callable[..., cd.Program], Any, Callable[[Plan], int]]] = {
    "δ's solved before planning": (planning, "without_deltas", lambda term, names: term, raw_gradient, form, flops),
    "windows of what a kernel slides over": (joining, "_sliding", never, gradient, filtered, flops),
    "factors read at the same places": (
        lower,
        "joined",
        lambda graph, values, kept: graph.product(values, frozenset(kept)),
        cd.program,
        squares,
        flops,
    ),
    "sums of waves": (lower, "fourier_sum", never, gradient, powers_of_waves, flops),
    "sums of transposes term by term": (Graph, "_transposes", lambda *_: (UNIT, []), gradient, squared_form, flops),
    "sums around cycles": (planning, "with_narrow_reads", lambda body: body, cd.program, lags, peak),
    "intermediates opened": (lower, "summed_intermediates", lambda program: frozenset(), cd.program, opened, peak),
    "symmetries of arguments": (lower, "exchanges", unmoved, cd.program, turned, flops),
    "loops with a condition beside what they move": (
        planning,
        "with_joint_iterations",
        lambda body, names: body,
        tangent,
        halved,
        peak,
    ),
    "conditions that end loops": (lower, "ending", never, cd.program, halved, flops_to_the_end),
    "windows side by side": (mask_elimination, "fold", never, gradient, blocks, flops),
    "running sums": (mask_elimination, "_without_mask", never, cd.program, running, flops),
    "running sums of exponentials": (lower, "running_exponentials", never, gradient, at_risk, peak),
    "running maxima": (shifts, "prefix_largest", never, gradient, at_risk, peak),
    "conditions that reads tell": (mask_elimination, "needless", never, gradient, convolved, peak),
    "sums of views that are 0 outside": (
        mask_elimination,
        "view_reads",
        lambda graph, value: [()],
        cd.program,
        shifted_behind,
        flops,
    ),
    "products that are 0 between": (lower, "placement", never, gradient, every_other, flops),
    "tiles that make up an index": (lower, "tiling", never, cd.program, repeated, flops),
    "tensors that are only summed over": (
        lower,
        "summed_intermediates",
        lambda program: frozenset(),
        cd.program,
        paths,
        flops,
    ),
    "strides round a cycle": (lower, "unwind", never, gradient, strides, flops),
    "functions before views": (lower, "read_late", never, cd.program, sines, flops),
    "reads at index arrays": (lower, "read_looked_up", never, cd.program, packed, peak),
    "log near one": (lower, "log_near_one", never, cd.program, one_more, flops),
    "exp near one": (lower, "exp_near_one", never, cd.program, one_less, flops),
}


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", LOWERING)
def test_steps_of_lowering(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a step the plan of the case takes more."""
    where, what, instead, transform, case, figure = LOWERING[name]
    program = stable(transform(case).term)
    sizes = {size: EXTENTS[size] for size in planning.size_names(program)}
    expected = figure(planning.make_plan(program, sizes, find_paths))
    monkeypatch.setattr(where, what, instead)
    assert figure(planning.make_plan(program, sizes, find_paths)) > expected


def told(w: Matrix, x: Vector):
    return cd.sum(lambda i, j: (cd.where(i < j, 1, 0) + cd.where(i > j + 1, x[i], 0)) * cd.log(w[i, j]))


def picked(w: Matrix, x: Vector):
    return cd.tensor(lambda j: cd.sum(lambda i: cd.where(x[i] > 0, x[i], 0) * w[i, j]))


def larger(x: Vector, y: Vector):
    return cd.sum(lambda i: cd.maximum(x[i], y[i]))


LOGS = np.array([[0, 1, 1], [0, 0, 1], [1, 0, 0]])
HELD: dict[str, tuple[Any, str, Any, Callable[..., cd.Program], Any, tuple[Any, ...]]] = {
    "conditions beside what they guard": (
        planning,
        "guard_conditions",
        lambda program, partial: program,
        cd.program,
        told,
        (LOGS, np.ones(3)),
    ),
    "choices before sums": (
        lower,
        "choose_inside",
        lambda graph, product: [],
        cd.program,
        picked,
        (np.array([[np.inf, 1], [2, 3]]), np.array([-1.0, 2])),
    ),
    "steps at infinite ties": (lower, "step_at_tie", never, gradient, larger, (np.array([np.inf, 1]),) * 2),
}


@pytest.mark.parametrize("name", HELD)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_steps_of_lowering_that_keep_values_finite(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a step the case has a nan in its result."""
    where, what, instead, transform, case, arrays = HELD[name]
    program = transform(case)
    assert np.isfinite(computed(program, arrays)).all()
    monkeypatch.setattr(where, what, instead)
    assert np.isnan(computed(program, arrays)).any()


def computed(program: cd.Program, arrays: Sequence[Any]) -> Any:
    """What a program gives, made stable and planned anew."""
    parameters = program.term.parameters
    sizes = named_sizes(parameters, {p.name: array for p, array in zip(parameters, arrays, strict=True)})
    plan = planning.make_plan(stability_steps.stable.__wrapped__(program.term), sizes, find_paths)
    return function_of(passes.specialise(plan, "numpy"))(*arrays)


PARTS_OF_LOWERING = {
    "lower": "the walk over a term",
    "graph": "the steps so far",
    "products": "a product that is being taken apart",
    "shifts": "one operation for each term of `stability`",
    "systems": "what a solver evaluates, without which there is none",
    "iteration": "what a scan does, without which there is none",
    "summed_iterations": "for libraries that compile steps; tests/runtime/test_summed_iterations.py has its case",
}


def test_every_module_of_lowering_has_a_case() -> None:
    listed = taking_part([*LOWERING.values(), *HELD.values()]) & modules_of(lowering)
    assert modules_of(lowering) == listed | PARTS_OF_LOWERING.keys()


# --- stability -----------------------------------------------------------------------------------------------------


def log_sum(x: Vector):
    return cd.log(cd.sum(lambda i: cd.exp(x[i])))


def log_of_weighted(x: Vector, w: Vector):
    return cd.log(cd.sum(lambda i: w[i] * cd.exp(x[i])))


def log_of_squared(x: Vector, w: Vector):
    return cd.log(cd.sum(lambda i: w[i] ** 2 * cd.exp(x[i])))


def weighted_share(x: Number, y: Number):
    return cd.exp(x) / (1 + y**2 + cd.exp(x))


def third(x: Number, y: Number, z: Number):
    return x * y / cd.hypot(cd.hypot(x, y), z) ** 2


def log_of_first(x: Vector):
    return cd.tensor(lambda i: cd.log(cd.sum(lambda j: cd.where(j <= i, cd.exp(x[j]), 0))), i="n")


def log_of_three(x: Number):
    return cd.log(1 + cd.exp(x) + cd.exp(2 * x))


def log_cosh(x: Number):
    return cd.log(cd.cosh(x))


def beside_a_quotient(x: Vector, q: Matrix):
    return cd.sum(lambda i, j: cd.exp(q[i, j]) * cd.exp(x[i]) / (1 + cd.exp(x[i])))


def share_by_logarithms(x: Number, y: Number):
    return cd.exp(cd.log(cd.exp(x) + cd.exp(y)) - x)


def log_of_rest(x: Number):
    return cd.log(1 - 1 / (1 + cd.exp(x)))


def mean_by_softmax(x: Vector, v: Vector):
    return (cd.exp(x) / cd.exp(x).sum()) @ v


def log_softmax(x: Vector, v: Vector):
    return cd.log(cd.exp(x) / cd.exp(x).sum()) @ v


def repeated_softmax(x: Vector, y: cd.Space("T", "n")):
    return cd.scan(lambda state, v: (v * cd.softmax(state), None), x, y)[0]


def side(x: Number):
    return x / cd.sqrt(1 + x**2)


def curvature(x: Number, y: Number):
    return 1 / cd.sqrt(x**2 + y**2) - x**2 / cd.sqrt(x**2 + y**2) ** 3


def half_sine(x: Number, y: Number):
    return x * y / (x**2 + y**2)


def cosine(x: Number, y: Number):
    return (x**2 - y**2) / (x**2 + y**2)


def length(x: Vector):
    return cd.sqrt(cd.sum(lambda i: x[i] ** 2))


def length_of_both(x: Vector, y: Vector):
    return cd.sqrt(cd.sum(lambda i: x[i] ** 2) + cd.sum(lambda i: y[i] ** 2))


def residual(x: Vector, y: Vector):
    return cd.sqrt(cd.sum(lambda i: (cd.sin(y[i]) * x[i] - x[i]) ** 2))


def lengths(x: cd.Space("m", "n")):
    return cd.tensor(lambda i: cd.sqrt(cd.sum(lambda j: x[i, j] ** 2)))


def turned_length(x: Vector, A: Matrix):
    return x * (x @ A @ x) / cd.sqrt(x @ x) ** 3


def slope_by_exponent(x: cd.Space(), y: cd.Space()):
    return x**y * cd.log(x)


EXPONENTIALS, SIDES, SCALES = stabilisation._Stabilising, hypotenuses._Finding, magnitudes._Scaling
SECOND_LARGE = np.array([0, 1e3]), np.array([1.0, 0])  # the exponents, and their weights
LARGE, TWO_LARGE = np.array([3e200, 4e200]), np.array([1e3, 1e3])
STABILITY: dict[str, tuple[Any, str, Any, Any, tuple[Any, ...], Any]] = {  # the arrays, and the value there
    "sums of exponentials": (
        stability_steps,
        "with_stable_exponentials",
        lambda program: program,
        log_sum,
        (TWO_LARGE,),
        1e3 + np.log(2),
    ),
    "hypotenuses": (stability_steps, "with_hypotenuses", lambda program: program, side, (1e200,), 1),
    "logarithms beside powers that are 0": (
        stability_steps,
        "with_vanishing_powers",
        lambda program: program,
        slope_by_exponent,
        (0.0, 2.0),
        0,
    ),
    "scaled sums of squares": (stability_steps, "with_scaled_sums", lambda program: program, length, (LARGE,), 5e200),
    "steps of scans": (
        stability_steps,
        "_stable_scan",
        lambda scan, *_: scan,
        repeated_softmax,
        (TWO_LARGE, np.ones((1, 2))),
        [0.5, 0.5],
    ),
    "weights that are 0": (
        EXPONENTIALS,
        "named_weights",
        lambda *_: set(),
        log_of_weighted,
        SECOND_LARGE,
        0,
    ),
    "conditions in exponents": (
        EXPONENTIALS,
        "_conditions",
        lambda *_: [],
        log_of_first,
        (np.array([1, 1e3]),),
        [1, 1e3],
    ),
    "logarithms of few terms": (
        EXPONENTIALS,
        "_logarithm",
        lambda self, argument: self._log(self.scaled(argument)),
        log_of_three,
        (-50.0,),
        np.exp(-50),
    ),
    "powers of weights": (stabilisation, "_base", lambda term: term, log_of_squared, SECOND_LARGE, 0),
    "shifts of infinite numbers": (EXPONENTIALS, "_is_capped", lambda *_: False, weighted_share, (np.inf, 1.0), 1),
    "positive numbers": (stabilisation, "is_positive", lambda _: False, log_of_three, (-50.0,), np.exp(-50)),
    "hyperbolic functions": (
        EXPONENTIALS,
        "_hyperbolic",
        lambda self, name, argument: ScaledNumber({}, function(name, argument)),
        log_cosh,
        (1e3,),
        1e3 - np.log(2),
    ),
    "exponentials of logarithms": (
        EXPONENTIALS,
        "_is_logarithmic",
        lambda *_: False,
        share_by_logarithms,
        (1e17, 1e17),
        2,
    ),
    "one denominator": (EXPONENTIALS, "_over_one", lambda *_: None, log_of_rest, (-800.0,), -800),
    "exponents where a δ is 1": (
        stabilisation,
        "_without_deltas",
        lambda term: term,
        log_softmax,
        (np.array([1e3, 0]), np.array([1.0, 1]), np.array([0.0, 1])),
        [0, 0],
    ),
    "differences of sides": (SIDES, "_other_sides", lambda *_: [], curvature, (1e8, 1.0), 1e-24),
    "sides over hypotenuses": (SIDES, "_has_sides", lambda *_: False, half_sine, (1e200, 1e200), 0.5),
    "hypotenuses of hypotenuses": (
        SIDES,
        "_all_sides",
        lambda self, arguments: list(arguments),
        third,
        (1e200, 1e200, 1e200),
        1 / 3,
    ),
    "sums of sides": (SIDES, "_degree", lambda *_: 0, cosine, (2e200, 1e200), 0.6),
    "what is squared and no tensor": (
        magnitudes,
        "_with_names",
        lambda program, forms: program,
        residual,
        (LARGE, np.zeros(2)),
        5e200,
    ),
    "the larger of two scales": (
        SCALES,
        "_largest",
        lambda self, scales, indices=(): scales[0],
        length_of_both,
        (LARGE / 1e300 / 1e100, LARGE),
        5e200,
    ),
    "scales of rows": (
        magnitudes._Squared,
        "read_at",
        lambda *_: None,
        lengths,
        (np.stack([LARGE, LARGE / 1e300 / 1e100]),),
        [5e200, 5e-200],
    ),
    "squares in products of sums": (
        SCALES,
        "_products",
        lambda *_: iter(()),
        turned_length,
        (LARGE, np.eye(2)),
        [0.6, 0.8],
    ),
}


DERIVED = {  # by some derivative, others as they are
    mean_by_softmax: lambda f: cd.hessian(f, "x"),
    log_softmax: lambda f: cd.hvp(f, "x", simplify=False),
}


@pytest.mark.parametrize("name", STABILITY)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_steps_of_stability(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a step the value of the case is another, or none."""
    where, what, instead, case, arrays, expected = STABILITY[name]
    program = DERIVED.get(case, lambda f: f)(cd.program(case))
    np.testing.assert_allclose(computed(program, arrays), expected, rtol=1e-9, atol=1e-300)
    monkeypatch.setattr(where, what, instead)
    assert not np.allclose(computed(program, arrays), expected, rtol=1e-6, atol=0)


def masked_logs(x: Matrix):
    return cd.tensor(lambda i: cd.log(cd.sum(lambda j: cd.exp(cd.where(j <= i, x[i, j], -np.inf)))), i="n")


def bells(x: Vector):
    return cd.sum(lambda i: 1 / (1 + cd.exp(-(x[i] ** 2)) + cd.exp(-2 * x[i] ** 2)))


def picked_share(x: Vector):
    return cd.tensor(lambda k: cd.sum(lambda i: cd.delta(i, k) * cd.exp(x[i])) / cd.sum(lambda j: cd.exp(x[j])), k="n")


def slope_of_three(x: Number):
    return cd.exp(-x) / (1 + cd.exp(-x) + cd.exp(-2 * x)) ** 2


def logistic_share(x: Number):
    return cd.exp(x) / (1 + cd.exp(x))


def fermi_slope(e: Vector, b: Number):
    odds = np.exp(b * e)
    return (e / (1 + odds)).sum() * (e * e * odds / (1 + odds) ** 2).sum()


def slope_of_shares(x: Vector):
    return cd.exp(x) * (cd.exp(x).sum() - cd.exp(x)) / cd.exp(x).sum() ** 2


def as_they_are(self: Any, argument: Term) -> ScaledNumber:
    """In place of conditions that are read out of a sum with −∞ in it."""
    return ScaledNumber({self.named(self.value(argument), Var("t", cd.Space())): 1}, ONE)


SPARED: dict[str, tuple[Any, str, Any, Any, dict[str, int]]] = {  # less work, for the same value
    "masks of −∞": (EXPONENTIALS, "_infinite", as_they_are, masked_logs, {"n": 100}),
    "numbers that are not negative": (stabilisation, "is_nonnegative", lambda _: False, bells, {"n": 100}),
    "δ's beside exponentials": (EXPONENTIALS, "_solved", lambda self, term: term, picked_share, {"n": 100}),
    "a shift above the others": (EXPONENTIALS, "_above", lambda *_: None, slope_of_shares, {"n": 100}),
    "shifts of what is bounded": (
        EXPONENTIALS,
        "_left_over",
        partialmethod(EXPONENTIALS._left_over, depth=0),
        fermi_slope,
        {"n": 100},
    ),
    "1 + exp(z)": (EXPONENTIALS, "_odds_of", lambda self, parts: None, logistic_share, {}),
    "quotients settled by themselves": (EXPONENTIALS, "_find_settled", lambda *_: None, beside_a_quotient, {"n": 100}),
    "exponents of the same shift": (
        EXPONENTIALS,
        "_groups",
        lambda self, exponent, conditions: [(dict(exponent), 1, True)],
        slope_of_three,
        {},
    ),
}


@pytest.mark.parametrize("name", SPARED)
def test_steps_of_stability_that_spare_work(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, what, instead, case, sizes = SPARED[name]
    expected = flops(planned(case, sizes))
    monkeypatch.setattr(where, what, instead)
    assert flops(planned(case, sizes)) > expected


PARTS_OF_STABILITY = {
    "bindings": "programs rewritten binding by binding, for all the others",
    "scaled_numbers": "what `stabilisation` and `magnitudes` make of a term",
}


def test_every_module_of_stability_has_a_case() -> None:
    listed = taking_part([*STABILITY.values(), *SPARED.values()]) & modules_of(stability)
    assert modules_of(stability) == listed | PARTS_OF_STABILITY.keys()
