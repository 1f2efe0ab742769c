"""Random texts: each ends in a derivative that agrees with central differences, or in an error on few printable lines.

`pytest --hypothesis-profile=thousand tests/text/test_text_fuzz.py` tries a thousand of each kind.
"""

from __future__ import annotations

import re
import warnings

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from strategies import examples

from combdiff.api.language import derivation
from combdiff.api.programs import Program
from combdiff.api.transforms import jacobian
from combdiff.errors import CombdiffError
from combdiff.testing.text_derivatives import central_differences, error, random_sizes, random_values, value

NAMES = {"A": 2, "B": 2, "x": 1, "y": 1, "a": 0}
UNARY = ("sin", "cos", "tanh", "exp", "log", "arctan", "abs", "sign", "relu", "tan", "arcsin", "-")
PRODUCTS = {
    2: (("ik,kj->ij", 2, 2), ("ij,ij->ij", 2, 2), ("i,j->ij", 1, 1), ("ij,->ji", 2, 0), (",ij->ij", 0, 2)),
    1: (("ij,j->i", 2, 1), ("i,i->i", 1, 1), ("ji,j->i", 2, 1), ("i,->i", 1, 0), ("ij,i->i", 2, 1), ("ii,i->i", 2, 1)),
    0: (("i,i->", 1, 1), ("ij,ij->", 2, 2), ("ij,j->", 2, 1), (",->", 0, 0), ("i,->", 1, 0)),
}


@st.composite
def expressions(draw: st.DrawFn, order: int, depth: int) -> str:
    """An expression of the language of that order."""
    kinds = ["leaf"] if depth == 0 else ["leaf", "unary", "sum", "product", "product", "quotient", "power"]
    kind = draw(st.sampled_from(kinds))
    if kind == "leaf":
        constants = ["2", "0.5", "1e-1"] + (["(delta(1) + 1)"] if order == 2 else ["delta(0)"] if order == 0 else [])
        return draw(st.sampled_from([name for name, o in NAMES.items() if o == order] * 3 + constants))
    if kind == "unary":
        return f"{draw(st.sampled_from(UNARY))}({draw(expressions(order, depth - 1))})"
    if kind == "product":
        indices, *orders = draw(st.sampled_from(PRODUCTS[order]))
        left, right = (draw(expressions(o, depth - 1)) for o in orders)
        return f"({left}) *({indices}) ({right})"
    first, second = draw(expressions(order, depth - 1)), draw(expressions(order, depth - 1))
    if kind == "quotient":
        return f"({first}) / ({second})"
    if kind == "power":
        return f"({first})^{draw(st.sampled_from(['2', '-1', '0.5', 'a', f'({second})']))}"
    return f"({first}) {draw(st.sampled_from('+-'))} ({second})"


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A text of the language, with a name to differentiate by."""
    declared = " ".join(f"{name} {order}" for name, order in NAMES.items())
    expression = draw(expressions(draw(st.sampled_from((0, 1, 1, 2))), draw(st.integers(0, 3))))
    return f"declare {declared} expression {expression} derivative wrt {draw(st.sampled_from('ABxya'))}"


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A text with some of its symbols left out, repeated, exchanged or replaced."""
    symbols_ = re.findall(r"\w+|\s+|[^\w\s]", draw(texts()))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(symbols_) - 1))
        new = draw(st.sampled_from(["", "(", ")", "i", "x", "*", "^", "->", "delta(2)", "9", "\x07", "#", "wrt", ","]))
        symbols_[at] = draw(st.sampled_from([new, symbols_[at] * 2, symbols_[draw(st.integers(0, len(symbols_) - 1))]]))
    return "".join(symbols_)


def checks_or_is_refused(text: str) -> None:
    """A text ends in a derivative that agrees with central differences, or in an error on few printable lines."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            steps = derivation(text).steps
    except CombdiffError as problem:
        message = str(problem)
    else:
        message = ""
    assert len(message) < 1000
    assert all(c.isprintable() or c == "\n" for c in message)
    if message:
        return
    name = re.findall(r"[A-Za-z]\w*", re.sub(r"#.*", "", text))[-1]
    if len(steps) == 2 and name in NAMES:
        agrees(*steps, name)


def agrees(expression: Program, derivative: Program, name: str) -> None:
    """Compare where the expression is finite and smooth: two steps of central differences agree.

    On the edge of where a rule is valid (0^a = 0 by a) the derivative as the rules write it need not be finite either.
    """
    sizes = random_sizes(expression)
    arrays = random_values(expression, sizes, seed=3)
    if name not in arrays:
        return
    (near,), (wide,) = (central_differences(expression, arrays, sizes, name, scale) for scale in (1.0, 2.0))
    if np.all(np.isfinite(near)) and np.all(np.isfinite(wide)) and error(near, wide) < 1e-7:
        found = value(derivative, arrays, sizes)
        if np.all(np.isfinite(found)) or np.all(
            np.isfinite(value(jacobian(expression, name, simplify=False), arrays, sizes))
        ):
            assert error(found, near) < 1e-5


FUZZ = settings(
    max_examples=examples(80),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@FUZZ
@given(texts())
@example("declare A 2 B 2 x 1 y 1 a 0 expression ((0.5) - (2))^((2) *(ij,j->i) (1e-1)) derivative wrt A")
def test_random_texts(text: str) -> None:
    checks_or_is_refused(text)


@FUZZ
@given(mutated())
def test_mutated_texts(text: str) -> None:
    checks_or_is_refused(text)


@given(st.text(max_size=60))
@settings(max_examples=40, deadline=None)
def test_any_characters(text: str) -> None:
    checks_or_is_refused(f"declare x 1 expression {text}")
