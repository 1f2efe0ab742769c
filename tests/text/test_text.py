"""The text language: the thesis's appendix, orders and axes, errors with places, hostile input, random texts."""

from __future__ import annotations

import re
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from thesis_cases import CASES, INTRODUCTION, Case

from combdiff.api.language import derivation, derive, parse
from combdiff.api.programs import Program
from combdiff.errors import UnsupportedError
from combdiff.ir.domains import Range, Space
from combdiff.ir.substitution import subterms
from combdiff.ir.terms import Lambda, Let, Term
from combdiff.planning.planning import size_names
from combdiff.simplification.egraph.extraction import symbols
from combdiff.testing.text_derivatives import largest_error, random_sizes, random_values, value
from combdiff.text import grammar
from combdiff.text.places import TextError

TOLERANCE = 1e-6


def named(text: str) -> tuple[str, ...]:
    """The name after the last wrt."""
    return (text.split()[-1],)


def count(program: Program) -> int:
    """The symbols of a program's values, bound indices of the result not counted."""

    def inner(term: Term) -> Term:
        return inner(term.body) if isinstance(term, Lambda) else term

    body = program.term.body
    values = [*(v for _, v in body.bindings), body.body] if isinstance(body, Let) else [body]
    return sum(symbols(inner(term)) for term in values)


def printed(program: Program) -> str:
    """A program as text with its indices named i, j, k, … in the order in which they are read."""
    names = {p.name for p in program.parameters}
    letters: dict[str, str] = {}

    def rename(match: re.Match[str]) -> str:
        return match[0] if match[0] in names else letters.setdefault(match[0], "ijklmn"[len(letters)])

    return re.sub(r"(?<!<)\b[a-z]\b", rename, str(program))


# --- the thesis ----------------------------------------------------------------------------------------------------


@pytest.mark.sample(10)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_the_appendix_by_central_differences(case: Case) -> None:
    expression, derivative = derivation(case.text).steps
    assert largest_error(expression, derivative, named(case.text)) <= TOLERANCE


@pytest.mark.sample(14)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_the_appendix_against_its_own_answers(case: Case) -> None:
    """With all axes of length 3, as in the thesis, where some answers leave axes apart that belong together."""
    derivative, answer = derive(case.text), parse(case.answer_text)
    sizes = dict.fromkeys((*size_names(derivative.term), *size_names(answer.term)), 3)
    arrays = random_values(derivative, sizes)
    found, expected = value(derivative, arrays, sizes), value(answer, arrays, sizes)
    np.testing.assert_allclose(found, np.broadcast_to(expected, np.shape(found)), rtol=1e-12, atol=1e-12)


@pytest.mark.sample(14)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_the_appendix_is_no_longer_than_its_own_answers(case: Case) -> None:
    assert count(derive(case.text)) <= count(parse(case.answer_text))


@pytest.mark.parametrize("text", INTRODUCTION)
def test_the_examples_of_the_introduction(text: str) -> None:
    assert largest_error(*derivation(text).steps, named(text)) <= TOLERANCE


@pytest.mark.parametrize("case", [case for case in CASES if case.printed], ids=lambda case: case.printed)
def test_inputs_printed_without_an_index(case: Case) -> None:
    """As printed, one contradicts the declared orders and the other is a scalar product."""
    if " - b - c" in case.printed:
        with pytest.raises(TextError, match=r"unequal orders: 'a.*a' has order 0, 'b' has order 1"):
            derive(case.printed)
    else:
        assert printed(derive(case.printed)) == "(a, b, c) ↦ i ↦ b[i] - c[i]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("declare x 1 expression x *(i,i->) x derivative wrt x", "x ↦ i ↦ 2 x[i]"),
        ("declare A 2 x 1 expression A *(ij,j->i) x derivative wrt x", "(A, x) ↦ (i, j) ↦ A[i,j]"),
        ("declare X 2 expression X derivative wrt X", "X ↦ (i<n, j<m, k, l) ↦ δ(j, l) δ(i, k)"),
        ("declare X 2 expression sin(delta(1)) *(ij,ij->) X derivative wrt a", "X ↦ 0"),
        ("declare x 1 y 1 expression x derivative wrt y", "(x, y) ↦ (i<n, j<m) ↦ 0"),
        ("declare A 2 v 1 expression A *(ij,j->) v derivative wrt A", "(A, v) ↦ (i<n, j) ↦ v[j]"),
        ("declare x 1 expression 0.5 *(,i->i) x derivative wrt x", "x ↦ (i<n, j) ↦ 1/2 δ(i, j)"),
        ("declare x 1 expression x^x derivative wrt x", "x ↦ (i, j) ↦ δ(i, j) x[j]^x[j] (1 + log(x[j]))"),
    ],
)
def test_derivatives_read_well(text: str, expected: str) -> None:
    assert printed(derive(text)) == expected


def test_the_missing_index_repair() -> None:
    """An index in one factor alone: the printed rule makes an invalid product of it (thesis, 4.6)."""
    for text in (
        "declare A 2 v 1 expression A *(ij,j->) v derivative wrt A",
        "declare A 3 v 1 expression A *(ijk,k->i) v derivative wrt A",
        "declare A 2 v 1 expression v *(j,ij->) A derivative wrt A",
        "declare A 2 B 2 expression A *(ij,kl->k) B derivative wrt A",
        "declare A 2 v 1 expression A *(ii,j->j) v derivative wrt A",
    ):
        assert largest_error(*derivation(text).steps, named(text)) <= TOLERANCE


def test_result_axes_come_first_then_those_of_wrt() -> None:
    derivative = derive("declare A 3 x 1 expression A *(ijk,j->ki) x derivative wrt A")
    arrays = {"A": np.ones((2, 3, 4)), "x": np.array([1.0, 2.0, 3.0])}
    found = derivative(**arrays)
    expected = np.einsum("kc,ia,b->kiabc", np.eye(4), np.eye(2), arrays["x"])
    np.testing.assert_allclose(found, expected)


# --- meaning of an expression --------------------------------------------------------------------------------------

MEANINGS: list[tuple[str, Callable[..., object]]] = [
    ("declare A 2 x 1 expression (A + 1) *(ij,j->i) x", lambda A, x: (A + 1) @ x),
    ("declare A 2 expression A *(ij,->ji) 1", lambda A: A.T),
    ("declare A 2 v 1 expression A *(ii,i->) v", lambda A, v: np.diag(A) @ v),
    ("declare x 1 y 1 expression x *(i,j->ij) y", np.outer),
    ("declare x 1 expression -x^2", lambda x: -(x**2)),
    ("declare x 1 expression --x", lambda x: x),
    ("declare x 1 expression x^-2", lambda x: x**-2.0),
    ("declare x 0 expression 2^x^2", lambda x: 2.0 ** (x**2)),
    ("declare x 1 y 1 expression x^y", lambda x, y: x**y),
    ("declare x 1 expression 2^x", lambda x: 2.0**x),
    ("declare x 1 expression (1 + 1)^2 + x", lambda x: 4 + x),
    ("declare x 1 y 1 expression x / y / 2", lambda x, y: x / y / 2),
    ("declare x 1 y 1 expression x - y - 1.5e-1", lambda x, y: x - y - 0.15),
    ("declare x 1 y 1 expression x - (y - 1)", lambda x, y: x - (y - 1)),
    ("declare x 1 expression 1 - x + log(2)", lambda x: 1 - x + np.log(2)),
    ("declare X 2 expression relu(X - 0.5)", lambda X: np.maximum(X - 0.5, 0)),
    ("declare A 3 x 0 expression A *(ijk,->ijk) exp(x)", lambda A, x: A * np.exp(x)),
    ("declare x 1 expression delta(1) *(ij,j->i) x", lambda x: x),
    ("declare x 1 expression x *(i,->) 1 + 3", lambda x: x.sum() + 3),
]


@pytest.mark.parametrize(("text", "meaning"), MEANINGS, ids=[text for text, _ in MEANINGS])
def test_an_expression_means_what_numpy_says(text: str, meaning: Callable[..., object]) -> None:
    program = parse(text)
    arrays = random_values(program, random_sizes(program))
    np.testing.assert_allclose(program(**arrays), meaning(*arrays.values()), rtol=1e-13)


@pytest.mark.parametrize(
    "name", ["sin", "cos", "tan", "arcsin", "arccos", "arctan", "tanh", "exp", "log", "sign", "abs"]
)
def test_functions_are_numpys(name: str) -> None:
    program = parse(f"declare x 2 expression {name}(x)")
    x = np.random.default_rng(0).uniform(0.1, 0.9, (2, 3))
    np.testing.assert_allclose(program(x), getattr(np, name)(x))


def axes(text: str) -> dict[str, tuple[object, ...]]:
    """The sizes of the declared tensors."""
    found = {}
    for parameter in parse(text).parameters:
        assert isinstance(parameter.type, Space)
        found[parameter.name] = tuple(axis.size for axis in parameter.type.axes if isinstance(axis, Range))
    return found


def test_axes_are_unified_through_the_graph() -> None:
    assert axes("declare A 2 x 1 expression A *(ij,j->i) x + A *(ij,j->i) sin(x)") == {"A": ("n", "m"), "x": ("m",)}
    assert axes("declare A 2 B 2 expression A + B *(ij,->ji) 1") == {"A": ("n", "m"), "B": ("m", "n")}
    assert axes("declare A 2 x 1 expression A *(ij,j->i) x + x") == {"A": ("n", "n"), "x": ("n",)}
    assert axes("declare A 3 n 1 m 0 expression A *(ijk,j->ik) n") == {"A": ("k", "l", "p"), "n": ("l",), "m": ()}


def test_texts_are_deterministic() -> None:
    text = "declare A 2 x 1 expression sin(A *(ij,j->i) x) *(i,i->) exp(A *(ij,j->i) x) derivative wrt A"
    assert str(derive(text)) == str(derive(text))
    assert derive(text) == derive(text)


# --- extensions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "declare A x expression A *(ij,j->i) x derivative wrt x",
        "declare A 2 expression transpose(ij->ji) sin(A) derivative wrt A",
        "declare A 3 expression transpose(ijk->kij) A derivative wrt A",
        "declare A 2 expression sum(ij->i) A^2 derivative wrt A",
        "declare A 2 expression sum(ii->) A derivative wrt A",
        "declare A 2 x 1 # a matrix (\n y 1 expression A *(ij,j->i) x # and a vector\n derivative # !\n wrt x",
        "declare sum 1 transpose 0 complex 1 expression sum *(i,i->) complex - transpose derivative wrt sum",
        "declare x_1 1 expression sin(x_1) derivative wrt x_1",
    ],
)
def test_extensions_by_central_differences(text: str) -> None:
    assert largest_error(*derivation(text).steps, named(text)) <= TOLERANCE


def test_several_names_after_wrt() -> None:
    text = "declare A 2 x 1 expression sin(A *(ij,j->i) x) derivative wrt A, x, b"
    expression, both = derivation(text).steps
    assert largest_error(expression, both, ("A", "x", "b")) <= TOLERANCE
    arrays = random_values(expression, random_sizes(expression))
    for found, name in zip(both(**arrays), ("A", "x"), strict=False):
        np.testing.assert_allclose(found, derive(text.partition("wrt")[0] + f"wrt {name}")(**arrays))


def test_second_derivatives() -> None:
    steps = derivation("declare A 2 x 1 expression x *(i,i->) (A *(ij,j->i) x) derivative wrt x wrt x").steps
    assert largest_error(steps[1], steps[2], ("x",)) <= TOLERANCE
    assert printed(steps[2]) == "(A, x) ↦ (i, j) ↦ A[i,j] + A[j,i]"


def test_symmetric_declarations() -> None:
    text = "declare A 2 symmetric x 1 expression x *(i,i->) (A *(ij,j->i) x) derivative wrt x"
    assert largest_error(*derivation(text).steps, ("x",)) <= TOLERANCE
    assert "+" not in str(derive(text))
    parameter = parse("declare T 3 symmetric expression T").parameters[0].type
    assert isinstance(parameter, Space)
    assert len(parameter.group) == 6
    assert len(set(parameter.axes)) == 1


def test_complex_declarations_give_both_derivatives() -> None:
    text = "declare z 1 complex expression conj(z) *(i,i->i) exp(z) derivative wrt z"
    expression, pair = derivation(text).steps
    assert largest_error(expression, pair, ("z",)) <= TOLERANCE
    z = np.array([0.3 + 0.2j, 1.0 - 0.4j])
    by_z, by_conjugate = pair(z)
    np.testing.assert_allclose(by_z, np.diag(z.conj() * np.exp(z)))
    np.testing.assert_allclose(by_conjugate, np.diag(np.exp(z)))


# --- errors with places --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("declare x 1 expression x + y", "y", "'y' is not declared"),
        ("declare A 2 x 1 expression A + x", "x", "unequal orders: 'A' has order 2, 'x' has order 1"),
        ("declare A 2 x 1 expression 1 + A + x", "x", "unequal orders: 'A' has order 2, 'x' has order 1"),
        ("declare x 1 a 0 expression x / a", "a", "unequal orders: 'x' has order 1, 'a' has order 0"),
        ("declare A 2 x 1 expression A *(ij,jk->ik) x", "x", "'x' has order 1, but its indices 'jk' are for order 2"),
        ("declare A 2 x 1 expression x^A", "A", "an exponent is a scalar or has the order of its base"),
        ("declare x 1 expression det(x)", "x)", "det takes a matrix, but 'x' has order 1"),
        ("declare A 2 expression A *(ij,->ik) 1", "*", "the index 'k' is new in the result 'ik'"),
        ("declare A 2 expression A *(ij,->ii) 1", "*", "the index 'i' stands twice in the result 'ii'"),
        ("declare A 2 expression transpose(ij->i) A", "transpose", "gives its indices in another order"),
        ("declare x 1 x 2 expression x", "x 2", "'x' is declared twice"),
        ("declare sin 1 expression 1", "sin", "'sin' is not expected here; expected a name"),
        ("declare x 1 expression x * x", "x", "'x' is not expected here; expected '('"),
        ("declare x 1 expression x y", "y", "'y' is not expected here"),
        ("declare x 1 expression (x", "", "the text ends; expected ')'"),
        ("declare x 1 expression x + ", "", "the text ends; expected an expression"),
        ("declare x 1 expression x) + 1", ")", "')' is not expected here"),
        ("declare x 99 expression x", "99", "'99' is too large; the most here is 26"),
        ("declare x 1 expression 1e999", "1e999", "'1e999' is not a number of double precision"),
        ("declare x 1 expression 1e-999", "1e-999", "'1e-999' is not a number of double precision"),
        ("declare x 1 expression x derivative wrt x, x", "x", "'x' is named twice"),
        ("declare x 1 expression x derivative wrt", "", "the text ends; expected a name"),
        ("declare x 1 y 1 expression x derivative wrt x, y wrt x", "x", "has several results"),
        ("declare x 1 expression x", "", "does not say what to differentiate by"),
        ("", "", "the text ends; expected 'declare'"),
        ("declare é 1 expression é", "é 1", "'é' is not expected here; expected a name"),
    ],
)
def test_errors_show_the_place(text: str, at: str, message: str) -> None:
    with pytest.raises(TextError, match=re.escape(message)) as caught:
        derive(text)
    expected = text.rindex(at) if at else len(text.rstrip())
    assert (caught.value.line, caught.value.column, caught.value.position) == (1, expected + 1, expected)
    first, shown, caret, *_ = str(caught.value).splitlines()
    assert first.startswith(f"line 1, column {expected + 1}: ")
    assert caret.index("^") == 2 + min(expected, 49)
    assert shown[caret.index("^") :].startswith(text[expected : expected + 40])


def test_an_error_counts_lines() -> None:
    with pytest.raises(TextError) as caught:
        parse("declare x 1\nexpression\n  x +\n  y")
    assert (caught.value.line, caught.value.column) == (4, 3)
    assert str(caught.value) == "line 4, column 3: 'y' is not declared\n    y\n    ^\n  hint: declared are x"


def test_hints_say_how_to_mend() -> None:
    with pytest.raises(TextError, match="a product carries its indices"):
        parse("declare x 1 expression x * x")
    with pytest.raises(TextError, match="sin is a word of the language and cannot be a name"):
        parse("declare sin 1 expression 1")
    for text in ("x + 1", "declare x 1 expresion x"):
        with pytest.raises(TextError, match="a text reads: declare A 2 x 1 expression"):
            parse(text)


def test_control_characters_are_shown_escaped() -> None:
    for bad, shown in (("\x1b[31m", r"\x1b"), ("\u202e", r"\u202e"), ("\x00", r"\x00"), ("\ud800", r"\ud800")):
        with pytest.raises(TextError) as caught:
            parse(f"declare x 1 expression x + {bad}")
        assert shown in str(caught.value)
        assert all(c.isprintable() or c == "\n" for c in str(caught.value))


@pytest.mark.parametrize("function", ["inv", "det", "adj"])
def test_matrix_functions_of_expressions(function: str) -> None:
    text = f"declare A 2 expression {function}(A + 1) derivative wrt A"
    assert largest_error(*derivation(text).steps, ("A",)) <= TOLERANCE


def test_without_lark_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lark", None)
    grammar.parser.cache_clear()
    with pytest.raises(UnsupportedError, match=r"needs the package lark\n  hint: .*pip install lark"):
        parse("declare x 1 expression x")


# --- hostile input and growth --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("declare x 1 expression " + "(" * 10_000 + "x" + ")" * 10_000, "nested more than 100 deep"),
        ("declare x 1 expression " + "sin(" * 10_000 + "x" + ")" * 10_000, "nested more than 100 deep"),
        ("declare x 1 expression " + "-" * 10_000 + "x", "more than 1000 operations deep"),
        ("declare x 1 expression x" + "^x" * 9_000, "more than 1000 operations deep"),
        ("declare x 1 expression x" + " *(i,i->i) x" * 1_500, "more than 1000 operations deep"),
        ("declare x 1 expression " + "sum(i->i)" * 1_500 + "x", "more than 1000 operations deep"),
        ("declare x 1 expression " + "x + " * 250_000 + "x", "more than 20000 symbols"),
        ("(" * 1_000_000, "nested more than 100 deep"),
        ("\x00" * 1_000_000, "more than 20000 symbols"),
        ("declare x 1 expression " + "1" * 1_000_000, "a number has 1000000 digits; 1000 are read"),
        ("declare x 1 expression " + "1" * 1000, "not a number of double precision"),
        ("declare " + "x" * 1_000_000 + " 1 expression y", "'y' is not declared"),
        ("declare x " + "9" * 1000 + " expression x", "is too large"),
        ("declare x 1 expression x" + " " * 1_000_000 + "y", "'y' is not expected here"),
        ("declare x 1 expression x" + "#" * 1_000_000, "does not say what to differentiate by"),
        ("declare x 1 expression x + " * 40_000, "'declare' is not expected here|more than 20000 symbols"),
        (" " * 3_000_000, "the text has 3000000 characters"),
    ],
    ids=range(17),
)
def test_hostile_texts_end_in_a_short_error_soon(text: str, message: str) -> None:
    started = time.monotonic()
    with pytest.raises(TextError, match=message) as caught:
        derive(text)
    assert time.monotonic() - started < 10
    assert len(str(caught.value)) < 1000


@pytest.mark.thorough
def test_long_sums_and_deep_expressions_are_differentiated() -> None:
    wide = "declare x 1 expression " + " + ".join(f"sin({n} + x)" for n in range(200)) + " derivative wrt x"
    assert largest_error(*derivation(wide).steps, ("x",)) <= TOLERANCE
    deep = "declare x 1 expression " + "sin(" * 30 + "x" + ")" * 30 + " derivative wrt x"
    assert largest_error(*derivation(deep).steps, ("x",)) <= TOLERANCE


def doubled(levels: int, step: str) -> str:
    """An expression with 2 ** levels leaves, each level used twice in the next."""
    text = "x"
    for _ in range(levels):
        text = step.format(text)
    return f"declare x 1 expression {text} derivative wrt x"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("joint", "part"),
    [
        (" + ", "sin({} + x)"),
        (" *(i,i->i) ", "sin({} + x)"),
        (" / ", "({} + x)"),
        (" *(ij,jk->ik) ", "A"),
    ],
)
def test_long_chains_are_differentiated_in_linear_size(joint: str, part: str) -> None:
    """A chain of products is as deep as it is long. Four times as long, its derivative is four times as large, and the
    shorter one is simplified."""
    sizes = []
    for n in (20, 80):
        chain = joint.join(part.format(m + 2) for m in range(n))
        end = " *(ij,j->i) x" if part == "A" else ""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expression, derivative = derivation(f"declare A 2 x 1 expression {chain}{end} derivative wrt x").steps
        if n == 20:
            assert largest_error(expression, derivative, ("x",)) <= TOLERANCE
        parts = list(subterms(derivative.term))
        sizes.append(len(parts) + sum(len(term.children) for term in parts))
    assert sizes[1] <= 6 * sizes[0]


@pytest.mark.thorough
@pytest.mark.parametrize("step", ["({0} *(i,i->i) {0})", "sin({0} + {0} *(i,i->i) {0})"])
def test_repeated_parts_stay_shared(step: str) -> None:
    levels = (2, 4, 6) if step.startswith("sin") else (5, 10)
    sizes = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in levels:
            started = time.process_time()  # other processes do not count
            program = derivation(doubled(n, step)).steps[-1]
            assert time.process_time() - started < 20
            sizes.append(sum(1 for _ in subterms(program.term)))
    assert sizes[-1] <= 80 * levels[-1]
    most = 1.6 if step.startswith("sin") else 1.5  # a product of six sums is multiplied out
    assert sizes[-1] <= most * levels[-1] / levels[0] * sizes[0]
