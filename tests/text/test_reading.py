"""Read back, the print is the program: index notation at every width, its ASCII spellings, and messages."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import textbook
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from strategies import Case, assert_reads_back, examples, programs

import combdiff as cd
from combdiff.ir import Apply, Lambda, Number, Primitive, Sum, Var, add, affine, delta, divide, function, mul
from combdiff.ir.domains import Function, Real
from combdiff.ir.interpreter import evaluate
from combdiff.printing.plain import text as printed
from combdiff.text.places import TextError

Vector, Square, Scalar = cd.Space("n"), cd.Space("n", "n"), cd.Space()
Complex = cd.Space("n", dtype=complex)
WIDTHS = st.integers(20, 200)


# --- every program -------------------------------------------------------------------------------------------------


@settings(max_examples=examples(12))
@given(programs(), WIDTHS)
def test_a_program_reads_back(case: Case, width: int) -> None:
    found = assert_reads_back(case.term, case.environment, case.sizes, width)
    spaces = {p.name: p.type for p in case.term.parameters}
    again = cd.read(str(found), spaces)
    assert str(cd.read(str(again), spaces)) == str(again)


@settings(max_examples=examples(4), phases=[Phase.generate])
@given(programs(result="scalar"), WIDTHS, st.booleans())
def test_a_gradient_reads_back(case: Case, width: int, simplified: bool) -> None:
    for parameter in case.term.parameters:
        gradient = cd.grad(case.program, parameter.name, simplify=simplified)
        assert_reads_back(gradient.term, case.environment, case.sizes, width)


DERIVATIVES = {
    "program": lambda f, x: f,
    "gradient": cd.grad,
    "Hessian": cd.hessian,
    "hvp": cd.hvp,
}
TEXTBOOK = [entry for entry in textbook.entries() if not entry.wrt.startswith("J")]
EVERY = 7  # of which the derivatives are dear


@pytest.mark.sample(2)
@pytest.mark.parametrize("number", range(0, len(TEXTBOOK), EVERY), ids=lambda number: TEXTBOOK[number].title)
def test_what_is_read_back_equals_the_program(number: int) -> None:
    """Programs of the textbooks, and of each one of three derivatives, at one of four widths."""
    entry, width = TEXTBOOK[number], (20, 60, 100, 200)[number // 3 // EVERY % 4]
    name = entry.wrt.split()[-1]
    for kind in ("program", ("gradient", "Hessian", "hvp")[number % 3]):
        found = DERIVATIVES[kind](entry.program, name)
        assert cd.read(printed(found.term, width), {p.name: p.type for p in found.parameters}) == found, kind


@pytest.mark.thorough
def test_equal_programs_may_name_other_parts() -> None:
    spaces = {"A": Square, "x": Vector, "z": cd.Space("n", "n", dtype=complex)}
    one = cd.read("(A, x) ↦\n  t[i] = Σ_j A[i,j] x[j]\n  Σ_i t[i] (1 - 2 t[i])", spaces)
    other = cd.read("(A, x) ↦ -Σ_j (2 Σ_i A[j,i] x[i] - 1) Σ_k x[k] A[j,k]", spaces)
    assert one == other
    assert hash(one) == hash(other)
    for text in (
        "(A, x) ↦ Σ_i (Σ_j A[j,i] x[j]) (1 - 2 Σ_j A[i,j] x[j])",
        "(A, x) ↦ Σ_i (Σ_j A[i,j] x[j]) (2 - 2 Σ_j A[i,j] x[j])",
        "(A, x) ↦ Σ_i (Σ_j A[i,j] x[j]) (1 + 2 Σ_j A[i,j] x[j])",
        "(A, x) ↦ Σ_i (Σ_j A[i,j] x[i]) (1 - 2 Σ_j A[i,j] x[j])",
        "(A, x) ↦ i ↦ (Σ_j A[i,j] x[j]) (1 - 2 Σ_j A[i,j] x[j])",
    ):
        assert cd.read(text, spaces) != one, text
    for named, alone in {
        "(A, x) ↦\n  t[i] = sin(x[i]) / (1 + Σ_j x[j]²)\n  Σ_i t[i]²": "(A, x) ↦ Σ_i (sin(x[i]) / (1 + Σ_j x[j]²))²",
        "(A, x) ↦ (i, j) ↦ δ(i, j) sin(x[i]) x[j]": "(A, x) ↦ (i, j) ↦ δ(j, i) x[j] sin(x[i])",
        "(A, x) ↦\n  t[i,j] = sin(x[i] x[j])\n  (i, j) ↦ t[j,i] A[i,j]": "(A, x) ↦ (i, j) ↦ sin(x[i] x[j]) A[i,j]",
        "(A, x) ↦\n  t[i,j] = sin(x[i]) - sin(x[j])\n  (i, j) ↦ exp(t[i,j] - t[j,i])": (
            "(A, x) ↦ (i, j) ↦ exp(2 sin(x[i]) - 2 sin(x[j]))"
        ),
        "(A, x) ↦\n  t[i,j] = Σ_k (A[i,k] - A[j,k])³\n  (i, j) ↦ t[i,j] x[j]": (
            "(A, x) ↦ (i, j) ↦ -x[j] Σ_k (A[j,k] - A[i,k])³"
        ),
        "(A, x) ↦\n  t[i] = x[i] ([i ≥ 1] exp(x[i]) - Σ_j A[j,i]³)\n  (i, j) ↦ t[i] - t[j]": (
            "(A, x) ↦\n  t[i] = [i ≥ 1] exp(x[i]) - Σ_j A[j,i]³\n  (i, j) ↦ x[i] t[i] - x[j] t[j]"
        ),
        "z ↦\n  t[k] = -i Σ_j sin(z[k,j])\n  k ↦ t[k]*": "z ↦\n  t[k] = Σ_j sin(z[k,j])\n  k ↦ i t[k]*",
    }.items():
        assert cd.read(named, spaces) == cd.read(alone, spaces), named
    for one_order, other_order in {
        "(A, x) ↦ Σ_{i,j} A[i,j]": "(A, x) ↦ Σ_{j,i} A[i,j]",
        "(A, x) ↦ Σ_{i,j,k} A[i,j] A[j,k] A[k,i]": "(A, x) ↦ Σ_{k,j,i} A[i,j] A[j,k] A[k,i]",
        "(A, x) ↦ Σ_{i,j} (x[i] - 2 x[j])³ A[i,j]": "(A, x) ↦ -8 Σ_{j,i} (x[j] - x[i] / 2)³ A[i,j]",
        "(A, x) ↦\n  t[i,j] = A[i,j] exp(x[j])\n  Σ_{i,j} t[i,j]": "(A, x) ↦ Σ_{j,i} exp(x[j]) A[i,j]",
        "(A, x) ↦\n  t[i] = 2 Σ_j A[i,j] x[j]\n  Σ_i t[i]": "(A, x) ↦ 2 Σ_{i,j} A[j,i] x[i]",
        "(A, x) ↦\n  t[i,j<1] = Σ_k A[i,k]³\n  Σ_{i,j<1} t[i,j]² x[i]": "(A, x) ↦ Σ_i x[i] (Σ_k A[i,k]³)²",
    }.items():
        assert cd.read(one_order, spaces) == cd.read(other_order, spaces), one_order
    for order in ("A[i,j] A[j,k] A[i,k]", "A[i,j] A[j,i] A[k,k]", "A[i,j] A[j,k] A[k,j]"):
        assert cd.read(f"(A, x) ↦ Σ_{{i,j,k}} {order}", spaces) != cd.read(
            "(A, x) ↦ Σ_{i,j,k} A[i,j] A[j,k] A[k,i]", spaces
        )
    swapped = cd.read("(A, x) ↦ (i, j) ↦ x[j] Σ_k (A[j,k] - A[i,k])³", spaces)
    assert swapped != cd.read("(A, x) ↦ (i, j) ↦ x[j] Σ_k (A[i,k] - A[j,k])³", spaces)
    both = [cd.read(f"(A, x) ↦ (i, j) ↦ A[{at}] Σ_k A[i,k] A[j,k]", spaces) for at in ("i,j", "j,i")]
    assert both[0] != both[1]


@pytest.mark.thorough
@pytest.mark.parametrize("decomposed", ["pinv", "qr"])
def test_derivatives_of_decompositions_are_read(decomposed: str) -> None:
    """What is bound by a Σ has no part in which axis of a part comes first, nor has a complex number before it."""

    @cd.program
    def f(A: cd.Space("m", "n", dtype=complex)):
        found = np.linalg.pinv(A) if decomposed == "pinv" else np.linalg.qr(A)[1]
        return np.cos(np.real(found) + 2 * np.imag(found)).sum()

    gradient = cd.grad(f)
    assert cd.read(str(gradient), {p.name: p.type for p in gradient.parameters}) == gradient


# Programs whose prints once had two meanings, with what they print.


@cd.program
def imaginary(z: Complex):
    return cd.sum(lambda i: 1j * z[i])


@cd.program
def beside_a_parameter(i: Scalar, z: Complex):
    return cd.sum(lambda k: 2j * i * z[k] * z[0])


@cd.program
def total(x: Vector):
    return x.sum()


ones = cd.grad(total)


@cd.program
def counted(x: Vector):
    return cd.sum(lambda k: x[2 * k + 1], k=2)


@cd.program
def around(x: Vector):
    return cd.tensor(lambda b, k: x[0], b=cd.Symmetric("B"), k=cd.Cyclic(3))


@cd.program
def apart(x: Vector):
    return cd.sum(lambda i, j: cd.where(i != j, x[0], 0), i=3, j=3)


@cd.program
def strided(x: Vector):
    return cd.sum(lambda i, j: cd.where(2 * i + j <= 4, x[2 * i + j], 0), i=3, j=3)


SHOWN = {
    imaginary: "z ↦ i Σ_j z[j]",
    beside_a_parameter: "(i, z) ↦ 2ⅈ Σ_k i z[k] z[0]",
    ones: "x ↦ d<n ↦ 1",
    counted: "x ↦ Σ_{k<2} x[2k + 1]",
    around: "x ↦ (|b|≤B, k mod 3) ↦ x[0]",
    apart: "x ↦ Σ_{i<3,j<3,j≠i} x[0]",
    strided: "x ↦ Σ_{i<3} Σ_{j=0}^{min(2, 4 - 2i)} x[2i + j]",
}


def test_what_stands_beside_an_empty_sum_is_read_where_that_is_not_empty() -> None:
    """t[4] of four elements stands beside a Σ over nothing."""
    shown = "x ↦\n  t[j<4] = tanh([j ≥ 1] x[j - 1])\n  d<4 ↦ (1 - t[d + 1]²) Σ_{j=d + 1}^{3} t[j]"
    x = np.random.default_rng(0).normal(size=4)
    t = np.tanh([0, *x[:3]])
    expected = [*(1 - t[1:] ** 2) * np.cumsum(t[:0:-1])[::-1], 0]
    np.testing.assert_allclose(cd.read(shown, {"x": cd.Space(4)})(x), expected)


def test_the_last_state_that_is_read_is_the_last() -> None:
    """It was one of the numbers at which states are read, n - 1, as it stands first."""
    shown = "(x, B) ↦\n  c[0,i] = x[i]\n  c[t + 1,i] = B[i] c[t,i]\n  Σ_i c[n - 1,i] c[n,i]"
    x, B = np.random.default_rng(0).normal(size=(2, 3))
    read = cd.read(shown, {"x": cd.Space("n"), "B": cd.Space("n")})
    np.testing.assert_allclose(read(x, B), np.sum(x**2 * B**5))


def test_an_index_of_other_tensors_reads_some_of_the_states() -> None:
    shown = "(w, B) ↦\n  y[0] = w[0]\n  y[j<3 + 1] = min(y[j], w[j + 1])\n  Σ_i B[i] y[i]"
    w, B = np.random.default_rng(0).normal(size=(2, 4))
    read = cd.read(shown, {"w": cd.Space(4), "B": cd.Space(4)})
    np.testing.assert_allclose(read(w, B), np.minimum.accumulate(w) @ B)


@pytest.mark.parametrize("program", SHOWN, ids=lambda program: program.name)
def test_what_no_tensor_tells_is_written(program: cd.Program) -> None:
    assert str(program) == SHOWN[program]
    rng = np.random.default_rng(0)
    arrays = {p: rng.normal(size=[5] * p.type.order) for p in program.term.parameters}
    assert_reads_back(program.term, arrays, {"n": 5, "B": 2})
    assert cd.read(str(program), {p.name: p.type for p in program.parameters}) == program


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
def test_numbers_on_a_cycle_of_any_size_are_read(size: int) -> None:
    """Whether 1 and −4 are one place of a cycle is told by its size, which δ(1, -4) does not mention."""
    cycle = cd.Cyclic("c")
    x, i = Var("x", cd.Space(cycle)), Var("i", cd.Range(4))
    one, three, beside = affine([], 1), affine([], 3), affine([(i, 1)], 1)
    places = add(delta(one, affine([], -4), cycle), mul(Number(2), delta(beside, three, cycle)))
    term = Lambda((x,), Lambda((i,), mul(places, Apply(x, (affine([], 0),)))))
    assert printed(term) == "x ↦ i<4 ↦ x[0] ([5 mod c = 0] + 2 [(i - 2) mod c = 0])"
    assert_reads_back(term, {x: np.arange(1.0, size + 1)}, {"c": size})


def test_a_matrix_function_that_is_named_in_a_long_formula_is_read() -> None:
    """inv(…) twice in a formula of many terms is a definition, of a matrix and not of a number."""
    x, *indices = Var("x", Vector), *(Var(name, cd.Range("n")) for name in "kpde")
    k, p, d, e = indices
    at_k, at_p = (Apply(x, (index,)) for index in (k, p))
    share = divide(mul(at_k, at_p), add(Number(2), mul(at_k, at_k), mul(at_p, at_p)))
    inverse = Primitive("inv", (Lambda((k, p), add(mul(Number(3), delta(k, p)), share)),))
    many = [mul(Number(n), function("sin", mul(Number(n), Apply(x, (d,))))) for n in range(2, 60)]
    body = add(*many, mul(Apply(inverse, (d, e)), Apply(inverse, (e, d))))
    term = Lambda((x,), Lambda((d,), Sum((e,), body)))
    assert_reads_back(term, {x: np.array([0.3, 0.7, -0.4])}, {"n": 3})


def test_an_index_with_a_name_is_read() -> None:
    spaces = {"y": Vector, "idx": cd.Space("n", dtype=int)}
    found = cd.read("(y, idx) ↦\n  t = idx[idx[1]]\n  y[t] + t", spaces)
    assert found(np.array([3.0, 4.0, 5.0]), np.array([2, 0, 1])) == 5.0 + 2
    assert cd.read(str(found), spaces) == found


def test_what_is_an_index_is_an_integer() -> None:
    """Where no Space says so, too."""
    for shown in ("(y, idx) ↦ Σ_i y[idx[i]]²", "(y, idx) ↦ d<n ↦ 2 y[d] Σ_i δ(idx[i], d)"):
        found = cd.read(shown)
        assert [p.type.dtype for p in found.parameters] == [float, int]
    assert cd.read("(y, idx) ↦ Σ_i y[idx[i]]²")(np.array([3.0, 4.0]), np.array([1, 1, 0])) == 16 + 16 + 9


def test_a_sum_from_a_negative_index_to_a_bound() -> None:
    mirrored = {"x": cd.Space(cd.Symmetric("B")), "y": cd.Space(cd.Symmetric("B"))}
    form = cd.read("(x, y) ↦ Σ_q Σ_{s=q}^{B} [s ≠ q] x[q] y[s]", mirrored)
    x, y = np.arange(1.0, 6.0), np.array([1.0, -2.0, 3.0, 0.5, 4.0])
    np.testing.assert_allclose(form(x, y), np.triu(np.outer(x, y), 1).sum())


LIMITED = {
    "x ↦ q<n ↦ Σ_{s=0}^{-q} x[q + s]": lambda x: [x[0], 0, 0, 0, 0, 0],
    "x ↦ Σ_{u=0}^{0} Σ_{d=0}^{-2u} x[d + 1]": lambda x: x[1],
    "x ↦ |q|≤B ↦ Σ_{s=0}^{2q} x[2q - s]": lambda x: [0, 0, x[0], x[:3].sum(), x[:5].sum()],
    "x ↦ Σ_{p=0}^{⌊(n - 2)/2⌋} Σ_{r=0}^{n - 2p - 2} x[2p + r + 1]": lambda x: x[1:].sum() + x[3:].sum() + x[5],
    "x ↦ Σ_{|q|≤1} Σ_{s=max(-1, q - 1)}^{1} x[s + 2]": lambda x: 2 * x[1:4].sum() + x[2:4].sum(),
    "x ↦ Σ_{q<2} Σ_{s=-1}^{q} x[s + 2]": lambda x: x[1:3].sum() + x[1:4].sum(),
    "x ↦ Σ_{u<2} Σ_{v=u - 1}^{2u} x[u + v + 1]": lambda x: x[0] + x[1] + x[2] + x[3] + x[4],
}


@pytest.mark.parametrize("shown", LIMITED)
def test_the_limits_of_a_sum_tell_its_range(shown: str) -> None:
    form, x = cd.read(shown, {"x": Vector}), np.arange(1.0, 7.0)
    found = evaluate(form.term.body, {form.parameters[0]: x}, {"n": 6, "B": 2})
    np.testing.assert_allclose(found, LIMITED[shown](x))


# --- comparisons of values, extremes, and a tensor that is called as an operator -----------------------------------

CYCLE = cd.Space(cd.Cyclic("n"))
CHOICES = {
    "pieces": lambda x: np.where(x > 0, x**2, -x).sum(),
    "huber": lambda x: np.where(np.abs(x) < 1, x**2, np.abs(x) - 0.5).sum(),
    "largest": lambda x: np.where(x > np.max(x) * 0.5, x, 0).sum() * np.min(x),
    "masked": lambda x: cd.max(lambda j: cd.where(j <= 1, x[j], -np.inf)),
    "even": lambda x: cd.sum(lambda i: cd.where(i % 2 == 0, x[i] ** 2, 0)),
    "clipped": lambda x: np.clip(x, -1, 1).sum() + np.maximum(x, 0).sum(),
}


def check_prints(program: cd.Program, arrays: dict[str, np.ndarray]) -> None:
    """Index notation at three widths, and matrix notation, are the program."""
    given = {p: arrays[p.name] for p in program.term.parameters}
    for width in (20, 100, 200):
        assert_reads_back(program.term, given, {"n": 4}, width)
    spaces = {p.name: p.type for p in program.term.parameters}
    expected = program(**arrays) if len(given) == len(arrays) else program(**{p.name: v for p, v in given.items()})
    found = cd.read(str(program.matrix()), spaces)(**{p.name: v for p, v in given.items()})
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CHOICES)
def test_comparisons_of_values_read_back(name: str) -> None:
    form = CHOICES[name]

    @cd.program
    def f(x: Vector):
        return form(x)

    x = np.array([0.5, -2.0, 1.5, 0.25])
    check_prints(f, {"x": x})
    check_prints(cd.grad(f), {"x": x})
    assert cd.read(str(f)) == f


def test_a_comparison_and_its_opposite_add_up_to_one() -> None:
    """Where x is no number too: `[x ≥ 0]` beside `[x < 0]` is what that is not."""
    found = cd.read("x ↦ i ↦ [x[i] < 0] + 2 [x[i] ≥ 0]")
    np.testing.assert_array_equal(found(np.array([-1.0, 0.0, np.nan])), [1, 2, 2])
    alone = cd.read("x ↦ i ↦ 2 [x[i] ≥ 0] + [x[i] = 3] + [x[i] ≠ 3]")
    np.testing.assert_array_equal(alone(np.array([-1.0, 3.0, np.nan])), [1, 3, 1])


def test_a_tensor_called_mod() -> None:
    """It stands beside the operator, `k mod n`."""

    @cd.program
    def f(mod: Vector, x: CYCLE):
        return cd.sum(lambda i: x[i] ** 2 * x[i - 2]) * mod.sum() + cd.sum(lambda i: cd.where(i % 2 == 0, mod[i], 0))

    arrays = {"mod": np.arange(4.0), "x": np.array([1.0, -2.0, 0.5, 3.0])}
    for program in (f, cd.grad(f, "x"), cd.grad(f, "mod")):
        check_prints(program, arrays)
        assert cd.read(str(program), {"mod": Vector, "x": CYCLE}) == program


def test_what_compares_nothing_is_refused() -> None:
    with pytest.raises(TextError, match="numbers are not compared by ∈"):
        cd.read("x ↦ Σ_i [2 x[i] ∈ x[i]] x[i]")


def test_maps_and_fields_read_back() -> None:
    """No arrays stand for these: what is read prints the same."""
    path, spaces = cd.Space(Real()), {}
    spaces["least action"] = {
        "r": path,
        "L": Function(Scalar, Scalar),
        "D": Function(path, result=path, linear=True),
    }
    spaces["field"] = {"H": cd.Space(Real(), Real(), dtype=complex), "ψ": cd.Space(Real(), dtype=complex)}
    spaces["map"] = {"R": Function(Vector), "F": Function(Vector, result=Vector), "x": Vector, "s": Function(Scalar)}
    for kind, shown in [
        ("least action", "(r, L, D) ↦ ∂₁L(r, D(r)) + Dᵀ(∂₂L(r, D(r)))"),
        ("least action", "(L, D, r) ↦ ∫ L(r(t), D(r)(t)) dt"),
        ("field", "(H, ψ) ↦ ∫∫ ψ(x)* H(x, y) ψ(y) dx dy"),
        ("field", "(H, ψ) ↦ d ↦ 2 ∫ H(d, x) ψ(x) dx"),
        ("map", "(R, x) ↦ R(i ↦ 2 x[i]) Σ_i ∇R(x)[i] x[i]"),
        ("map", "(F, x) ↦ i ↦ F(x)[i] ∂F(x)ᵀ(x)[i]"),
        ("map", "(s, x) ↦ d ↦ s'(x[d]) exp(s(2 x[d]))"),
    ]:
        assert str(cd.read(shown, spaces[kind])) == shown


@pytest.mark.parametrize(
    ("ascii", "unicode"),
    [
        ("(A, x) -> d -> 2 sum_{j} A[d,j]*x[j]", "(A, x) ↦ d ↦ 2 Σ_j A[d,j] x[j]"),
        ("(A, x) -> sum_i sum_{j!=i} A[i,j] * x[j]^2", "(A, x) ↦ Σ_{i,j≠i} A[i,j] x[j]²"),
        ("x -> (d, e) -> delta(d, e) * x[d] / (1 + exp(x[d]))", "x ↦ (d, e) ↦ δ(d, e) x[d] / (1 + exp(x[d]))"),
        ("x -> d -> [d >= 1, d mod 2 = 0] x[d]**2".replace("**", "^"), "x ↦ d ↦ [d ≥ 1, d mod 2 = 0] x[d]²"),
        ("x -> sum_{k=0}^{n - 1} x[k]", "x ↦ Σ_k x[k]"),
    ],
)
def test_ascii_spellings(ascii: str, unicode: str) -> None:
    assert str(cd.read(ascii, {"A": Square, "x": Vector})) == unicode


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("x'*A*x + norm2(A*x - y)^2", "xᵀ·A·x + ‖A·x - y‖²"),
        ("tr(A'*B)", "tr(A·Bᵀ)"),
        ("log(det(X))", "log(det(X))"),
        ("sum(log(vector(1) + exp(-(y .* (X*w)))))", "𝟏ᵀ·log(𝟏 + exp(-y ⊙ (X·w)))"),
        ("inv(A)*b", "A⁻¹·b"),
        ("norm1(x - y)", "𝟏ᵀ·|x - y|"),
        ("x'*A*x + c*sin(y)'*x", "xᵀ·A·x + c·sin(y)ᵀ·x"),
        ("norm2(A*x - y)^2 + c*norm1(x) + b", "‖A·x - y‖² + c·𝟏ᵀ·|x| + b"),
        ("tr(A*X'*B*X*C)", "tr(A·Xᵀ·B·X·C)"),
        ("norm2(A*x - b)/norm2(x)", "‖A·x - b‖ / ‖x‖"),
        ("log(det(inv(A)))", "t = A⁻¹\nlog(det(t))"),
        ("exp(x)./sum(exp(x))", "t = exp(x)\nt / (𝟏ᵀ·t)"),
    ],
)
def test_matrix_notation_as_it_is_typed(written: str, shown: str) -> None:
    """Capital letters are matrices and small ones vectors, or scalars where only these can stand."""
    assert cd.read(written).matrix() == shown


def test_ones_and_the_identity_alone_have_the_size_of_the_parameters() -> None:
    """`matrix()` writes the gradient of a sum and the Hessian of x·x / 2 so; of two sizes none is guessed."""
    total, square = cd.read("sum(x)", {"x": Vector}), cd.read("x'*x / 2", {"x": Vector})
    for derivative, shown in ((cd.grad(total), "𝟏"), (cd.hessian(square), "𝐈")):
        assert derivative.matrix() == shown
        assert cd.read(shown, {"x": Vector}) == derivative
    with pytest.raises(cd.TextError, match="nothing tells the range of an index"):
        cd.read("𝟏", {"X": cd.Space("m", "n")})


def test_signs_of_phones_and_of_typeset_pages_are_those_of_a_keyboard() -> None:
    assert cd.read("x’*A*x − y′*x") == cd.read("x'*A*x - y'*x")


@pytest.mark.parametrize("written", ["u*v", "u*v + w", "x*y*z", "sum(a*b)"])
def test_where_several_names_could_be_the_scalar_none_is_guessed(written: str) -> None:
    with pytest.raises(cd.TextError, match="a column stands before a vector or matrix"):
        cd.read(written)
    assert cd.read(f"a (), b (n), u (), v (n), w (n), x (), y (), z (n)\n{written}")


def test_spaces_are_declared_in_front() -> None:
    found = cd.read("A symmetric (n, n), x (n), c complex ()\nx'*A*x")
    symmetric = cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"])
    assert {p.name: p.type for p in found.parameters} == {"A": symmetric, "x": Vector, "c": cd.Space(dtype=complex)}
    assert cd.grad(found, "x").matrix() == "2·A·x"
    assert cd.read("A symmetric (n, n)\nx (n); c complex ()\n\nx'*A*x") == found  # on lines of their own
    assert cd.read("x (n), y (n)\n-x'*y").matrix() == "-xᵀ·y"
    assert str(cd.read("x (n)\nlog(x)\n+ 1")) == "x ↦ i ↦ 1 + log(x[i])"
    with pytest.raises(cd.TextError, match=r"line 1, column 1: A: the symmetry 'A\[i,j\] = A\[j,i\]' has 2 indices"):
        cd.read("A symmetric (n)\nA*x")
    with pytest.raises(cd.TextError, match="line 2, column 5: two"):
        cd.read("x (n)\n1 + x x", {})


def test_averages_over_symmetries_read_back() -> None:
    Symmetric3 = cd.Space("n", "n", "n", symmetry=["A[i,j,k] = A[j,i,k]", "A[i,j,k] = A[k,j,i]"])
    spaces = {"A": Symmetric3, "x": Vector, "y": Vector}
    found = cd.read("(A, x, y) ↦ (d, e, f) ↦ Sym_{d,e,f} x[d] y[e]² x[f]", spaces)
    x, y = np.random.default_rng(0).normal(size=(2, 3))
    product = np.einsum("i,j,k->ijk", x, y**2, x)
    expected = np.mean([np.transpose(product, axes) for axes in itertools.permutations(range(3))], axis=0)
    np.testing.assert_allclose(found(np.zeros((3, 3, 3)), x, y), expected)
    z = np.array([1 + 2j, 3j])
    herm = cd.read("z ↦ (d, e) ↦ Herm_{d,e} z[d]", {"z": Complex})
    np.testing.assert_allclose(herm(z), (z[:, None] + z.conj()[None, :]) / 2)


def test_an_average_over_an_index_and_the_negative_of_another() -> None:
    """`Sym_{d,-e}`: d takes the place of -e, and so e that of -d."""
    around = cd.Space(cd.Cyclic("n"), cd.Cyclic("n"))
    w = np.random.default_rng(0).normal(size=(3, 3))
    given = {"w": around, "v": cd.Space(cd.Cyclic("n"))}
    found = cd.read("(w, v) ↦ (d, e) ↦ Sym_{d,-e} w[d,e] v[d]", given)
    v = np.array([1.0, -2.0, 0.5])
    plain, back = w * v[:, None], -np.arange(3) % 3
    np.testing.assert_allclose(found(w, v), (plain + plain[np.ix_(back, back)].T) / 2)
    odd = cd.read("(w, v) ↦ d ↦ Alt_{d,-d} v[d]²", given)
    np.testing.assert_allclose(odd(w, v), (v**2 - v[back] ** 2) / 2)
    with pytest.raises(cd.TextError, match="an average exchanges indices and their negatives"):
        cd.read("(w, v) ↦ (d, e) ↦ Sym_{d,2e} w[d,e]", given)


def test_spaces_follow_from_use() -> None:
    found = cd.read("(A, x) ↦ Σ_{i,j} x[i] A[i,j] x[j]")
    assert [p.type for p in found.parameters] == [cd.Space("n", "n"), cd.Space("n")]
    assert found(np.eye(2), np.ones(2)) == 2


# --- messages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("log(1 + exp(-x))", "x ↦ i ↦ log(1 + exp(-x[i]))"),
        ("sum(log(vector(1) + exp(x)))", "x ↦ Σ_i log(1 + exp(x[i]))"),
        ("z complex (n)\nsum(conj(z) .* z)", "z ↦ Σ_i |z[i]|²"),
        ("[x >= 0] .* x", "x ↦ i ↦ [x[i] ≥ 0] x[i]"),
        ("x ↦ Σ_i [0 < x[i] <= 1] x[i]", "x ↦ Σ_i [x[i] > 0, x[i] ≤ 1] x[i]"),
        ("sum([A != B])", "(A, B) ↦ Σ_{i,j} [A[i,j] ≠ B[i,j]]"),
        ("R (n, n; R[i,j] = -R[j,i]), x (n)\nR*x", "(R, x) ↦ i ↦ Σ_j R[i,j] x[j]"),
        # a to g and Greek letters are scalars where the result has fewer axes then
        ("c*x'*x", "(c, x) ↦ Σ_i c x[i]²"),
        ("exp(-a*norm2(x - y)^2)", "(a, x, y) ↦ exp(-a Σ_i (x[i] - y[i])²)"),
        ("lam*norm2(w)^2", "(lam, w) ↦ lam Σ_i w[i]²"),
        ("alpha*x + beta*y", "(alpha, x, beta, y) ↦ i ↦ alpha x[i] + beta y[i]"),
        ("a*b + c", "(a, b, c) ↦ a b + c"),
        ("a*b*c*d*e*f*g", "(a, b, c, d, e, f, g) ↦ a b c d e f g"),
        ("(a - b)*norm2(x)^2", "(a, b, x) ↦ (a - b) Σ_i x[i]²"),
        ("inv(c*eye + A)*b", "(c, A, b) ↦\n  t[d,e] = δ(d, e) c + A[d,e]\n  i ↦ Σ_j inv(t)[i,j] b[j]"),
        ("c*norm2(A*x - b)^2", "(c, A, x, b) ↦ c Σ_i (Σ_j A[i,j] x[j] - b[i])²"),
        ("sum(log(b))", "b ↦ Σ_i log(b[i])"),
        ("c .* x", "(c, x) ↦ i ↦ c[i] x[i]"),
        ("norm2(x - mu)^2/(2*sigma^2)", "(x, mu, sigma) ↦ (Σ_i (x[i] - mu[i])²) / (2 sigma²)"),
        # a quotient goes from left to right, a number tight behind it or not
        ("‖x‖^2/2", "x ↦ 1/2 Σ_i x[i]²"),
        ("‖x‖²/c/2", "(x, c) ↦ (Σ_i x[i]²) / (2 c)"),
        ("‖x‖² / c/2", "(x, c) ↦ (Σ_i x[i]²) / (2 c)"),
        ("‖x‖^2/c^2/3/2", "(x, c) ↦ (Σ_i x[i]²) / (6 c²)"),
        ("c/1/2*norm2(x)^2", "(c, x) ↦ 1/2 c Σ_i x[i]²"),
        ("x./y/2", "(x, y) ↦ i ↦ x[i] / (2 y[i])"),
        ("c/2 e/3", "(c, e) ↦ 1/6 c e"),
    ],
)
def test_what_people_write_and_prints_do_not(text: str, shown: str) -> None:
    assert str(cd.read(text)) == shown


def test_declared_equations_are_the_symmetry() -> None:
    form = cd.read("J complex (n, n; J[i,j] = conj(J[j,i])), z complex (n)\nsum(conj(z) .* (J*z))")
    assert form.parameters[0].type == cd.Space("n", "n", dtype=complex, symmetry=["J[i,j] = conj(J[j,i])"])
    with pytest.raises(cd.TextError, match="is not an equation"):
        cd.read("J (n, n; J[j,i]), x (n)\nJ*x")
    with pytest.raises(cd.TextError, match="only a number as in 1 \\+ x"):
        cd.read("s (), x (n)\ns + x")


def test_the_square_of_a_root_is_read_as_it_is_written() -> None:
    """Only that of a norm is what stands under its root."""
    root = cd.read("x ↦ sqrt(x)²")
    assert str(root) == "x ↦ sqrt(x)²"
    with np.errstate(invalid="ignore"):
        assert np.isnan(root(-1.0))
    assert str(cd.read("norm2(x)^2 + 2*‖x‖²")) == "x ↦ 3 Σ_i x[i]²"
    assert str(cd.read("norm2(x)^3")) == "x ↦ sqrt(Σ_i x[i]²)³"
    assert str(cd.read("norm2(x)^sum(y)")) == "(x, y) ↦ sqrt(Σ_i x[i]²)^(Σ_i y[i])"


def test_an_exponent_reads_elements() -> None:
    for shown in ("x ↦ i ↦ 2^x[i]", "(x, y) ↦ i ↦ x[i]^(1 + y[i])"):
        assert str(cd.read(shown)) == shown


def test_a_power_of_a_matrix_is_a_product() -> None:
    A = np.array([[2.0, 1.0, 0.5], [0.0, 1.5, -1.0], [1.0, 0.0, 3.0]])
    for text, expected in {
        "A (n, n); A^3": np.linalg.matrix_power(A, 3),
        "A (n, n); A²": A @ A,
        "A (n, n); A^-1": np.linalg.inv(A),
        "A (n, n); A.^2": A**2,
        "A (n, n); A^∘2": A**2,
    }.items():
        np.testing.assert_allclose(cd.read(text)(A), expected, rtol=1e-12)
    for text in ("x (n); x^2", "A (n, n); A^0.5", "A (n, n); A^65", "A (n, n); sum(A^A)"):
        with pytest.raises(cd.TextError):
            cd.read(text)
    with pytest.raises(cd.TextError, match=r"\^ is a power of a number"):
        cd.read("x (n); x^2")
    with pytest.raises(cd.CombdiffError):
        cd.read("A (n, m); A^2")


@pytest.mark.parametrize(
    ("text", "shown", "latex"),
    [
        ("2 π x", "2π x", r"2 \pi x"),
        ("x / (2 π)", "x / (2π)", r"\frac{x}{2 \pi}"),
        ("1 / (x · 2 π)", "1 / (2π x)", r"\frac{1}{2 \pi x}"),
        ("exp(-2 π i x)", "exp(-2π i x)", r"\exp(-2 \pi \mathrm{i} x)"),
        ("x^(4 π) (2 π)²", "(2π)² x^(4π)", r"(2 \pi)^{2} x^{4 \pi}"),
        ("x - π i", "x - π i", r"x - \pi \mathrm{i}"),
        ("x + 3.21 π", "10.084512418023236 + x", "10.084512418023236 + x"),
        ("x π / 4", "π x / 4", r"\frac{\pi x}{4}"),
        ("exp(2 π i x / 6)", "exp(π i x / 3)", r"\exp\left(\frac{\pi \mathrm{i} x}{3}\right)"),
        ("x + π / 2", "π / 2 + x", r"\frac{\pi}{2} + x"),
    ],
)
def test_multiples_of_pi_are_read_and_printed(text: str, shown: str, latex: str) -> None:
    found = cd.read(f"x ()\n{text}")
    assert str(found) == f"x ↦ {shown}"
    assert found.latex() == rf"x \mapsto {latex}"
    assert cd.read(str(found), {"x": cd.Space()}) == found


@pytest.mark.parametrize("n", [3, "n"])
@pytest.mark.parametrize("binder", ["Σ_{{j<{n}}} ", "j<{n} ↦ "])
def test_inequalities_on_a_cycle_that_no_index_is_on(n: int | str, binder: str) -> None:
    """`j ≠ 1` and `j ≠ -2` are one condition modulo 3, and two on the whole numbers: the print says which."""
    spaces = dict.fromkeys("xy", cd.Space(cd.Cyclic(n)))
    found = cd.read(f"(x, y) ↦ {binder.format(n=n)}[(2j + 4) mod {n} ≠ 0] x[j] y[2j - 2]", spaces)
    x, y = np.array([2.0, 3.0, 5.0]), np.array([1.0, 7.0, 11.0])
    terms = [x[j] * y[(2 * j - 2) % 3] * ((2 * j + 4) % 3 != 0) for j in range(3)]
    again = cd.read(str(found), spaces)
    assert again == found
    np.testing.assert_array_equal(again(x, y), sum(terms) if "Σ" in binder else terms)


@pytest.mark.parametrize(
    ("outer", "inner", "first", "last"),
    [
        ("i=max(0, 1 - b)", "j=1 - i", lambda n, b: max(0, 1 - b), lambda n, b: min(b, (n - 1) // 3)),  # 1 − i ≥ 1 − b
        ("i=1 - b", "j=max(1 - i, 2 - i - n)", lambda n, b: 1 - b, lambda n, b: min(b, (n - 1) // 3)),
    ],
)
def test_bounds_of_a_sum_tell_a_range_around_zero(outer: str, inner: str, first: Any, last: Any) -> None:
    """i is b at most, so 1 − i is at least 1 − b: j is between −b and b, whichever axis i indexes."""
    sums = f"Σ_{{{outer}}}^{{min(b, ⌊(n - 1)/3⌋)}} Σ_{{{inner}}}^{{min(b, 1 - i)}}"
    text = f"(x, y) ↦ {sums} [0 ≤ i < n] y[-i,1 - i - j,i] x[i + j - 1]"
    read = cd.read(text, {"x": cd.Space("n"), "y": cd.Space(cd.Symmetric("b"), "n", "n")})
    rng = np.random.default_rng(0)
    for n, b in ((3, 1), (5, 2), (8, 2)):
        x, y = rng.normal(size=n), rng.normal(size=(2 * b + 1, n, n))
        pairs = [(i, 1 - i) for i in range(first(n, b), last(n, b) + 1) if 0 <= i < n and 1 - i <= b]
        expected = sum(y[b - i, 1 - i - j, i] * x[i + j - 1] for i, j in pairs)
        assert read(x, y) == pytest.approx(expected)
