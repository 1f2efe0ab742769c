"""Quotients and their derivatives: one denominator where a term of it cancels, as in a table of derivatives."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import combdiff as cd
from combdiff.ir import ONE, Number, Range, Space, Var, add, divide, function, mul, raised, tidy, unequal
from combdiff.ir.interpreter import evaluate
from combdiff.simplification.normal_form.denominators import over_one_denominator, without_fractions_below
from combdiff.simplification.normal_form.polynomials import Product, exact_quotient, exact_root

Vector = cd.Space("n")


def rational(x: Vector):
    return cd.sum(lambda i: x[i] / (1 + x[i]))


def moebius(x: Vector):
    return cd.sum(lambda i: (1 - x[i]) / (1 + x[i]))


def witch(x: Vector):
    return cd.sum(lambda i: x[i] / (1 + x[i] ** 2))


def hill(x: Vector, k: cd.Space()):
    return cd.sum(lambda i: x[i] ** 2 / (k**2 + x[i] ** 2))


def softplus(x: Vector):
    return cd.sum(lambda i: cd.log(1 + cd.exp(x[i])))


def sigmoid(x: Vector):
    return cd.sum(lambda i: cd.exp(x[i]) / (1 + cd.exp(x[i])))


def cross_entropy(x: Vector, y: Vector):
    share = 1 / (1 + cd.exp(-x))
    return -cd.sum(lambda i: y[i] * cd.log(share[i]) + (1 - y[i]) * cd.log(1 - share[i]))


def rest(x: Vector):
    return cd.sum(lambda i: cd.log(1 - 1 / (1 + x[i])))


def jensen_shannon(x: Vector, y: Vector):
    share, other = 2 * x / (x + y), 2 * y / (x + y)  # the gradient has 1 / (x + y) and 1 / (2 x t) by names
    return cd.sum(lambda i: x[i] * cd.log(share[i]) + y[i] * cd.log(other[i])) / 2


def powers(x: Vector):
    return cd.sum(lambda i: x[i] ** x[i])


PRINTED = [
    (rational, "x ↦ d ↦ 1 / (1 + x[d])²", "x ↦ (a, d) ↦ -2 δ(a, d) / (1 + x[d])³"),
    (moebius, "x ↦ d ↦ -2 / (1 + x[d])²", "x ↦ (a, d) ↦ 4 δ(a, d) / (1 + x[d])³"),
    (
        witch,
        "x ↦ d ↦ (1 - x[d]²) / (1 + x[d]²)²",
        "x ↦ (a, d) ↦ δ(a, d) x[d] (2 x[d]² - 6) / (1 + x[d]²)³",
    ),
    (
        hill,
        "(x, k) ↦ d ↦ 2 k² x[d] / (x[d]² + k²)²",
        "(x, k) ↦ (a, d) ↦ δ(a, d) k² (2 k² - 6 x[d]²) / (k² + x[d]²)³",
    ),
    (
        cross_entropy,
        "(x, y) ↦ d ↦ 1 / (1 + exp(-x[d])) - y[d]",
        "(x, y) ↦ (a, d) ↦ δ(a, d) exp(-x[a]) / (1 + exp(-x[a]))²",
    ),
    (rest, "x ↦ d ↦ 1 / (x[d] (1 + x[d]))", None),
    (softplus, "x ↦ d ↦ 1 / (1 + exp(-x[d]))", "x ↦ (a, d) ↦ δ(a, d) exp(x[a]) / (1 + exp(x[a]))²"),
    (
        sigmoid,
        "x ↦ d ↦ exp(x[d]) / (1 + exp(x[d]))²",
        "x ↦ (a, d) ↦ δ(a, d) exp(x[a]) (1 - exp(x[a])) / (1 + exp(x[a]))³",
    ),
    (powers, "x ↦ d ↦ x[d]^x[d] (1 + log(x[d]))", None),
    (
        jensen_shannon,
        "(x, y) ↦ d ↦ 1/2 log(2 x[d] / (x[d] + y[d]))",
        "(x, y) ↦ (a, d) ↦ δ(a, d) (1 / (2 x[a]) - 1 / (2 (x[a] + y[a])))",
    ),
]
EXTRA: dict[Any, list[Any]] = {
    hill: [1.3],
    cross_entropy: [np.array([0.0, 1.0, 0.3, 1.0])],
    jensen_shannon: [np.array([0.3, 1.0, 2.0, 0.7])],
}


@pytest.mark.sample(1)
@pytest.mark.parametrize(("definition", "gradient", "hessian"), PRINTED, ids=lambda one: getattr(one, "__name__", ""))
def test_derivatives_read_as_in_a_table(definition: Any, gradient: str, hessian: str | None) -> None:
    f = cd.program(definition)
    found = cd.grad(f, wrt="x"), cd.hessian(f, wrt="x")
    assert str(found[0]) == gradient
    assert hessian is None or str(found[1]) == hessian
    arrays = np.random.default_rng(0).uniform(0.5, 2, 4), *EXTRA.get(definition, [])
    raw = cd.grad(f, wrt="x", simplify=False), cd.hessian(f, wrt="x", simplify=False)
    for one, other in zip(found, raw, strict=True):
        np.testing.assert_allclose(one(*arrays), other(*arrays), rtol=1e-10, atol=1e-12)


def reads_as(objective: str, expected: str, **numbers: float) -> None:
    """The derivative by x of a number made of numbers is written so, and is that of central differences."""
    program = cd.read(f"{', '.join(f'{name} ()' for name in numbers)}\n{objective}")
    assert str(cd.grad(program, wrt="x")).rpartition("↦ ")[2] == expected
    cd.testing.check_grad(program, wrt="x", **numbers)


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        ("(a*x + b) / (c*x + d)", "(a d - b c) / (c x + d)²"),
        ("log(1 + (x / a)^2)", "2 x / (a² + x²)"),
        ("x / sqrt(a^2 + x^2)", "a² / sqrt(a² + x²)³"),
        ("log((1 + x) / (1 - x))", "2 / (1 - x²)"),
        ("1 / x^4 - 1 / x^7", "7 / x⁸ - 4 / x⁵"),  # (7 - 4 x³) / x⁸ would be ∞/∞ for large x
        ("a x^2 / (1 + b x + c x^2)", "a x (2 + b x) / (1 + b x + c x²)²"),  # 2 (1 + b x) - b x is multiplied out
        ("4 (a^12 / x^12 - a^6 / x^6)", "24 a⁶ / x⁷ - 48 a¹² / x¹³"),
        ("(sqrt(1 + x^2) - a)^2 / 2", "x - a x / sqrt(1 + x²)"),
        ("log(x / (1 - x))", "1 / (x (1 - x))"),  # (1/x - 1)/(1 - x)² has x - 1 over 1 - x
        ("log(exp(x) + exp(a))", "1 / (1 + exp(a - x))"),
        ("-x log(x) - (1 - x) log(1 - x)", "log((1 - x) / x)"),
        ("a (1 + x) log((1 + x) / 2) + a (1 - x) log((1 - x) / 2)", "a log((1 + x) / (1 - x))"),
        ("x log(x) - x - x log(a)", "log(x) - log(a)"),  # x/a may be ∞
    ],
)
def test_sums_of_fractions_over_one_denominator(objective: str, expected: str) -> None:
    reads_as(objective, expected, a=2.0, b=0.5, c=-0.4, d=1.5, x=0.3)


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        ("x^a log(x)", "x^(a - 1) (1 + a log(x))"),
        ("d a^d / x^(d + 1)", "-d a^d x^(-2 - d) (1 + d)"),
        ("a log(x / b) - (x / b)^a", "a (1 - (x / b)^a) / x"),
        ("sqrt(x^a) x^b", "1/2 x^(b - 1) sqrt(x^a) (2 b + a)"),  # of a negative x, √(x²) is not x
        ("x^(2 a) x^b", "x^(2 a + b - 1) (2 a + b)"),
        ("x^(a / 2) / x^(b - a)", "1/2 x^(3/2 a - 1 - b) (3 a - 2 b)"),
    ],
)
def test_powers_of_one_base_are_one(objective: str, expected: str) -> None:
    reads_as(objective, expected, a=2.5, b=0.5, d=1.5, x=0.3)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1 / (2 x)^2", "1 / (4 x²)"),
        ("x / (8 (x / 2)^2)", "1 / (2 x)"),
        ("(3 x)^5 / x^4", "243 x"),
        ("(x + y) / (x / 2 + y / 2)^2", "4 / (x + y)"),
        ("(2 x - 2 y)^3 / (y - x)^2", "8 x - 8 y"),
        ("(x + y)^99 / (2 x + 2 y)^100", "(x + y)⁹⁹ / (2 x + 2 y)¹⁰⁰"),  # no number holds 2¹⁰⁰ times small ones
    ],
)
def test_multiples_of_one_base_are_one(written: str, expected: str) -> None:
    assert str(cd.simplify(cd.read(f"(x, y) ↦ {written}"))) == f"(x, y) ↦ {expected}"


MULTIPLES = st.fractions(-3, 3, max_denominator=4).filter(bool)


@given(st.lists(st.tuples(MULTIPLES, st.integers(-4, 4).filter(bool)), min_size=2, max_size=4))
def test_products_of_multiples_of_a_sum_have_one_base(factors: list[tuple[Fraction, int]]) -> None:
    written = cd.read("(x, y) ↦ " + " ".join(f"(({c})*x - 2*({c})*y)^({n})" for c, n in factors))
    simple = cd.simplify(written)
    assert len(re.findall("x", str(simple).partition("↦")[2])) <= 1, simple
    assert np.isclose(simple(0.7, -1.3), written(0.7, -1.3), rtol=1e-12)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("(x^2 - y^2) / (x - y)", "x + y"),
        ("(x^2 - y^2) / (y - x)", "-x - y"),
        ("(6 x^2 - 6) / (3 x - 3)", "2 (1 + x)"),
        ("y (1 + x (2 + x)) / (1 + x)^2", "y"),
        ("(exp(x)^2 - 1) / (exp(x) - 1)", "1 + exp(x)"),
        ("(x^2 - 2) / (x - 1)", "(x² - 2) / (x - 1)"),
        ("(x^9 - 1) / (x - 1)", "(x⁹ - 1) / (x - 1)"),  # the quotient has nine terms
    ],
)
def test_what_divides_without_rest_is_divided_by(written: str, expected: str) -> None:
    assert str(cd.simplify(cd.read(f"(x, y) ↦ {written}"))) == f"(x, y) ↦ {expected}"


FACTORS = st.lists(st.tuples(MULTIPLES, st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=3)


@given(FACTORS, FACTORS)
def test_a_product_of_polynomials_is_divided_by_each(one: list[Any], other: list[Any]) -> None:
    x, y = Var("x", Space()), Var("y", Space())

    def polynomial(terms: list[Any]) -> list[Product]:
        return [(Number(tidy(c)), {base: n for base, n in ((x, n), (y, m)) if n}) for c, n, m in terms]

    def value(terms: Any) -> float:
        return sum(float(c.real) * 0.7 ** p.get(x, 0) * (-1.3) ** p.get(y, 0) for c, p in terms)

    whole = polynomial([(a * b, n + p, m + q) for a, n, m in one for b, p, q in other])
    found = exact_quotient(whole, polynomial(other), most=20)
    sums: dict[tuple[int, int], Fraction] = {}
    for c, n, m in other:
        sums[n, m] = sums.get((n, m), Fraction(0)) + c
    if any(sums.values()):
        assert found is not None
        assert np.isclose(value(found), value(polynomial(one)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Σ_{i,j} x[i] P[i,j] / Σ_k P[i,k]", "Σ_i x[i]"),
        ("Σ_{i,j} x[i] P[i,j] / (Σ_k P[i,k])²", "Σ_i x[i] / Σ_k P[i,k]"),
        ("Σ_{i,j} x[i] y[j] P[i,j] / Σ_k P[i,k]", "Σ_{i,j} x[i] y[j] P[i,j] / Σ_k P[i,k]"),
        ("Σ_{i,j} x[i] P[i,j] / Σ_k P[k,i]", "Σ_{i,j} x[i] P[i,j] / Σ_k P[k,i]"),
    ],
)
def test_what_adds_up_to_a_divisor_goes_with_it(written: str, expected: str) -> None:
    head = "P (n, n), x (n), y (n)\n(P, x, y) ↦ "
    assert cd.simplify(cd.read(head + written)) == cd.read(head + expected)


def test_the_gradient_of_mutual_information() -> None:
    program = cd.read("P (n, n)\nP ↦ Σ_{i,j} P[i,j] log(P[i,j] / (Σ_k P[i,k] Σ_k P[k,j]))")
    assert str(cd.grad(program)) == "P ↦ (d, e) ↦ log(P[d,e] / ((Σ_l P[d,l]) Σ_l P[l,e])) - 1"


@cd.program
def shared_information(P: cd.Space("n", "m")):
    """Mutual information, over the geometric mean of both entropies."""
    a, b = P.sum(axis=0), P.sum(axis=1)
    mutual = (P * np.log(P / (b[:, None] * a[None, :]))).sum()
    return mutual / np.sqrt((a * np.log(a)).sum() * (b * np.log(b)).sum())


def test_definitions_that_cancel_in_a_product() -> None:
    """P t u is 1 with t = 1/(a b), of which the logarithm is taken, and u = a b/P, the derivative of that."""
    found = cd.grad(shared_information)
    assert len(str(found).splitlines()) == 9
    assert "P[d,e]" not in str(found).splitlines()[-1]
    P = np.random.default_rng(3).uniform(0.1, 1, (3, 4))
    cd.testing.check_grad(shared_information, P=P / P.sum())


def test_fractions_of_definitions_are_written_out_where_a_factor_goes() -> None:
    x, y, s, t, u = (Var(name, Space()) for name in "xystu")
    for term, named, expected in (
        (mul(x, t, u), {t: raised(s, -1), u: divide(s, x)}, ONE),
        (mul(y, t, s), {t: raised(s, -1)}, y),
        (mul(y, t, t, s), {t: raised(s, -1)}, mul(y, raised(s, -1))),
        (mul(x, t), {t: divide(s, mul(x, y, u))}, None),  # three factors for two
        (mul(x, t), {t: divide(x, s)}, None),
    ):
        found = without_fractions_below(term, named)
        assert found is (term if expected is None else expected)


def test_fractions_below_a_line_are_turned_over() -> None:
    x, y, s, t = (Var(name, Space()) for name in "xyst")
    for below, named, expected in (
        (mul(Number(2), x, t), {t: raised(s, -1)}, mul(raised(mul(Number(2), x), -1), s)),
        (mul(x, raised(t, 2)), {t: divide(Number(3), s)}, mul(raised(mul(x, Number(9)), -1), s, s)),
        (raised(s, -2), {}, mul(s, s)),
        (mul(x, raised(mul(y, raised(s, -1)), -1)), {}, mul(raised(mul(x, s), -1), y)),
        (add(x, t), {t: raised(s, -1)}, None),
    ):
        term = raised(below, -1)
        found = without_fractions_below(term, named)
        assert found is (expected or term)
        at = {x: 0.7, y: -1.3, s: 0.4}
        known = {var: evaluate(value, at, {}) for var, value in named.items()}
        assert np.isclose(evaluate(found, at | known, {}), evaluate(term, at | known, {}), rtol=1e-14)


def test_a_power_is_not_taken_apart_where_its_base_may_be_zero() -> None:
    program = cd.read("a (), x ()\nx^a log(1 + x) + x^a")
    assert float(cd.grad(program, wrt="x")(2.0, 0.0)) == 0.0  # x^a / x is 0/0


def test_what_is_masked_is_divided_by_nothing_that_may_be_zero() -> None:
    s, y, i = Var("s", Space()), Var("y", Space()), Var("i", Range(3))
    divisor = function("power", s, Number(-1))
    masked = mul(y, function("power", add(ONE, mul(unequal(i), divisor)), Number(-1)))
    assert over_one_denominator(masked) is masked  # s y / (s + [i ≠ 0]) is 0/0 where s = i = 0
    plain = mul(y, function("power", add(ONE, mul(Number(2), divisor)), Number(-1)))
    assert over_one_denominator(plain) is mul(y, s, function("power", add(Number(2), s), Number(-1)))


def test_fractions_stay_apart_where_nothing_cancels() -> None:
    @cd.program
    def f(x: Vector, y: Vector):
        return cd.tensor(lambda i: 1 / (1 + x[i]) - y[i] / (1 + x[i]) ** 2)

    assert str(cd.simplify(f)) == "(x, y) ↦ i ↦ 1 / (1 + x[i]) - y[i] / (1 + x[i])²"


@pytest.mark.thorough
def test_of_a_long_denominator_little_cancels() -> None:
    @cd.program
    def f(x: Vector):
        def t(i):
            return 1 + cd.sin(x[i]) + cd.cos(x[i]) + cd.exp(x[i]) + x[i]

        return cd.tensor(lambda i: 1 / t(i) - x[i] / t(i) ** 2)

    assert str(cd.simplify(f)).splitlines()[-1] == "  i ↦ 1 / t[i] - x[i] / t[i]²"


@pytest.mark.parametrize("share", ["1 / (1 + exp(-z[i]))", "expit(z[i])"])
def test_logarithms_of_what_is_computed_are_not_joined(share: str) -> None:
    """(1 - p)/p is ∞ where p is 0 for a computer, and the logarithm of p a number."""
    program = cd.read(f"z (n), y (n)\n(z, y) ↦\n  p[i] = {share}\n  Σ_i y[i] (log(1 - p[i]) - log(p[i]))")
    slope = cd.grad(program, wrt="y")
    np.testing.assert_allclose(slope(np.array([-800.0, -40.0, 1.0]), np.ones(3)), [800.0, 40.0, -1.0], rtol=1e-12)


NOT_WHOLE = {
    "x x^(1/2)": "x^(3/2)",
    "x^(3/2) / x³": "1 / x^(3/2)",
    "x^(1/3) x^(1/3)": "x^(2/3)",
    "x^(1/2) y² x^(3/2)": "x² y²",
    "x^(1/3) / x": "1 / x^(2/3)",
    "y x^(1/2)": "y sqrt(x)",
    "sqrt(x) / x": "1 / sqrt(x)",
}


@pytest.mark.parametrize("written", NOT_WHOLE)
def test_powers_that_are_not_whole_are_one(written: str) -> None:
    program = cd.read(f"(x, y) ↦ {written}", {"x": cd.Space(), "y": cd.Space()})
    simple = cd.simplify(program)
    assert str(simple) == f"(x, y) ↦ {NOT_WHOLE[written]}"
    assert simple(2.3, 0.7) == pytest.approx(program(2.3, 0.7))


def test_the_laws_see_definitions_that_are_written_into_the_steps_of_scans() -> None:
    """(Σ q²)^(3/2) and its root are made for all steps at once, and read in the step back."""

    @cd.program
    def orbit(q0: Vector, p0: Vector):
        def step(state, _):
            q, p = state
            return (q + 0.1 * p, p - 0.1 * q / np.sum(q**2) ** 1.5), None

        (q, _), _ = cd.scan(step, (q0, p0), length=4)
        return np.sum(q**2)

    gradient, given = cd.grad(orbit), {"q0": np.array([1.0, 0.2]), "p0": np.array([0.1, 0.9])}
    assert "/ sqrt(t2[t])⁵" in str(gradient)
    cd.testing.check_grad(orbit, "q0", **given)
    np.testing.assert_allclose(gradient(**given), cd.grad(orbit, simplify=False)(**given), rtol=1e-12)
    np.testing.assert_allclose(cd.read(str(gradient), {"q0": Vector, "p0": Vector})(**given), gradient(**given))


CANCELLING = {
    "x * (2 * x - y) + y * (2 * y - x)": "i ↦ 2 x[i]² - 2 x[i] y[i] + 2 y[i]²",
    "(y * (x * (2 * x - y) + y * (2 * y - x))).sum()": "2 Σ_i y[i] (x[i]² - x[i] y[i] + y[i]²)",
    "x @ (2 * x - y) + y @ (2 * y - x)": "2 Σ_i x[i] (x[i] - y[i]) + 2 Σ_i y[i]²",
    "x * (1 - x)": "i ↦ x[i] (1 - x[i])",  # nothing cancels, and 1 - x keeps its digits
    "x**2 - 2 * x * y + y**2": "i ↦ (x[i] - y[i])²",
    "8 * x * y - 8 * x**2 - 2 * y**2": "i ↦ -2 (2 x[i] - y[i])²",
    "x * (x - 2 * y) + y * y": "i ↦ (x[i] - y[i])²",
    "x**2 - x * y + y**2": "i ↦ x[i]² - x[i] y[i] + y[i]²",
}


@pytest.mark.parametrize("written", CANCELLING)
def test_products_of_sums_that_cancel_in_part_are_multiplied_out(written: str) -> None:
    def program(x: Vector, y: Vector):
        return eval(written)

    simple = cd.simplify(cd.program(program))
    assert str(simple) == f"(x, y) ↦ {CANCELLING[written]}"
    x, y = np.array([0.5, -2.0, 3.0]), np.array([1.5, 0.25, -1.0])
    np.testing.assert_allclose(simple(x, y), eval(written), rtol=1e-13)


@given(st.dictionaries(st.tuples(*[st.integers(0, 2)] * 2), st.fractions(-3, 3, max_denominator=4), max_size=4))
def test_the_root_of_a_square_is_found(polynomial: dict[tuple[int, int], Fraction]) -> None:
    x, y = Var("x", Space()), Var("y", Space())
    terms = [(n, value) for n, value in polynomial.items() if value]
    square: dict[tuple[int, int], Fraction] = {}
    for ((m, n), value), ((k, p), other) in product(terms, terms):
        square[m + k, n + p] = square.get((m + k, n + p), Fraction(0)) + value * other
    products = [(Number(tidy(value)), {x: m, y: n}) for (m, n), value in square.items() if value]
    found = exact_root(products, 8)
    if not terms:
        assert found is None
        return
    assert found is not None
    sign = 1 if {(p.get(x, 0), p.get(y, 0)): n.real for n, p in found} == dict(terms) else -1
    assert {(p.get(x, 0), p.get(y, 0)): sign * n.real for n, p in found} == dict(terms)
    products[0] = Number(tidy(products[0][0].real + Fraction(1, 7))), products[0][1]
    assert exact_root(products, 8) is None or len(terms) == 1


def test_a_number_is_in_front_of_a_sum_of_its_multiples_also_where_it_is_a_float() -> None:
    @cd.program
    def program(x: Vector, y: Vector):
        return x @ (0.3 * x + 0.3 * y)

    assert str(cd.simplify(program)) == "(x, y) ↦ 0.3 Σ_i x[i] (x[i] + y[i])"


def test_a_leaky_maximum_has_steps_of_its_argument() -> None:
    @cd.program
    def leaky(x: cd.Space(4)):
        return np.maximum(0.9 * x, -0.1 * x).mean()

    assert str(cd.grad(leaky)) == "x ↦ d ↦ 0.225 heaviside(x[d]) - 0.025 heaviside(-x[d])"


def test_an_imaginary_part_is_one_whatever_the_number_in_front() -> None:
    @cd.program
    def program(x: cd.Space("n", dtype=complex)):
        return np.real(0.3j * np.sum(x)) + np.imag(np.sum(x))

    assert str(cd.simplify(program)) == "x ↦ 0.7 Im(Σ_i x[i])"
    x = np.array([1 + 2j, -0.5 + 0.25j])
    np.testing.assert_allclose(cd.simplify(program)(x), program(x))


def test_the_distance_of_two_indices_is_one_whichever_stands_first() -> None:
    @cd.program
    def program(x: cd.Space("n")):
        return cd.sum(lambda i, j: abs(1 * i - 1 * j) * x[i] * x[j])

    assert str(cd.grad(program)) == "x ↦ d<n ↦ 2 Σ_i x[i] |i - d|"
    cd.testing.check_grad(program, x=np.array([0.5, -2.0, 3.0]))


def test_what_is_chosen_at_even_places_is_not_chosen_at_odd_ones() -> None:
    @cd.program
    def program(x: cd.Space("n")):
        return cd.sum(lambda i: cd.where(i % 2 == 0, x[i], 3 * x[i]) ** 2)

    assert str(cd.grad(program)) == "x ↦ d ↦ 18 [d mod 2 = 1] x[d] + 2 [d mod 2 = 0] x[d]"
    cd.testing.check_grad(program, x=np.array([0.5, -2.0, 3.0]))


def test_a_kernel_of_a_distance_is_one_whichever_index_stands_first() -> None:
    text = "(u, s) ↦ Σ_{i,j} exp(-(i - j)² / s) exp(-(u[i] - u[j])²)"
    program = cd.read(text, {"u": Vector, "s": cd.Space()})
    assert str(cd.grad(program)).count("exp(") == 2
    cd.testing.check_grad(program, u=np.array([0.5, -2.0, 3.0]), s=np.array(2.0))
