"""The grammar, and the way from characters to a tree with places.

    read("declare x 1 expression sin(x)").expression = Elementwise("sin", Reference("x"))

The text is bounded before it is parsed (size and nesting), lark's LALR parser needs no recursion, and its tree is
turned over from the leaves up. So no text, however deep or long, reaches Python's recursion limit.

Invariant: every input ends in a `Text` or in a TextError that names a place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from combdiff.errors import UnsupportedError, shown
from combdiff.ir import Scalar, exact
from combdiff.text.places import Span, TextError, alternatives, quoted, stopped
from combdiff.text.syntax import (
    MOST_DEPTH,
    Declaration,
    EinsteinProduct,
    ElementwiseFunction,
    ElementwisePower,
    ElementwiseQuotient,
    FunctionOfMatrix,
    Node,
    Numeral,
    Plus,
    Reference,
    Text,
    Unit,
    Wrt,
)

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

ELEMENTWISE = ("sin", "cos", "tan", "arcsin", "arccos", "arctan", "tanh", "exp", "log", "sign", "relu", "abs")
MATRIX = ("det", "inv", "adj")
RESERVED = (*ELEMENTWISE, *MATRIX, "delta")
KEYWORDS = ("declare", "expression", "derivative", "wrt")

MOST_CHARACTERS = 1 << 21
MOST_SYMBOLS = 20_000
MOST_NESTED = 100  # parentheses
MOST_DIGITS = 1000  # of a number; Python reads 4300
RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
LOWERED = "₀₁₂₃₄₅₆₇₈₉"
_DIGIT = rf"[\d{RAISED}{LOWERED}]"
_LONG_NUMBER = re.compile(rf"(?<!{_DIGIT}){_DIGIT}{{{MOST_DIGITS + 1},}}")
MOST_ORDER = 26  # as many as there are index letters

# Words beyond the thesis are special only where its grammar allows no name, so that its texts keep their meaning.
GRAMMAR = rf"""
start: "declare" declaration* "expression" sum (_DERIVATIVE_WRT wrt (_WRT wrt)*)?
declaration: NAME [WHOLE] MODIFIER*
wrt: NAME ("," NAME)*

?sum: product ((PLUS | MINUS) product)*
?product: factor ((times | OVER) factor)*
times: TIMES "(" [INDICES] "," [INDICES] _ARROW [INDICES] CLOSE
?factor: MINUS factor -> negative
    | REARRANGE "(" [INDICES] _ARROW [INDICES] CLOSE factor -> rearrangement
    | power
?power: atom | atom "^" exponent -> raised
?exponent: MINUS exponent -> negative | REARRANGE "(" [INDICES] _ARROW [INDICES] CLOSE exponent -> rearrangement | power
?atom: NUMBER -> number
    | NAME -> reference
    | FUNCTION "(" sum CLOSE -> function
    | DELTA "(" WHOLE CLOSE -> unit
    | "(" sum ")"

_DERIVATIVE_WRT.3: /derivative\b(\s|#[^\n]*\n)*wrt\b/
_WRT.3: /wrt\b/
FUNCTION.2: /({"|".join((*ELEMENTWISE, *MATRIX))})\b|conj(?=\s*\()/
DELTA.2: /delta\b/
REARRANGE.2: /(sum|transpose)(?=\s*\()/
MODIFIER.2: /(symmetric|complex)(?=\s+[A-Za-z#])/
NAME: /(?!({"|".join((*RESERVED, *KEYWORDS[2:]))})\b)[A-Za-z][A-Za-z0-9_]*/
INDICES: /[a-z]+/
WHOLE: /[0-9]+/
NUMBER: /[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?/
TIMES: "*"
OVER: "/"
PLUS: "+"
MINUS: "-"
CLOSE: ")"
_ARROW: "->"
COMMENT: /#[^\n]*/

%ignore /\s+/
%ignore COMMENT
"""

WORDS = {
    "NAME": "a name",
    "WHOLE": "a whole number",
    "NUMBER": "a number",
    "INDICES": "indices (small letters)",
    "FUNCTION": "a function",
    "COMMA": "','",
    "_ARROW": "'->'",
    "LPAR": "'('",
    "RPAR": "')'",
    "CLOSE": "')'",
    "CIRCUMFLEX": "'^'",
    "TIMES": "'*'",
    "OVER": "'/'",
    "PLUS": "'+'",
    "MINUS": "'-'",
    "DECLARE": "'declare'",
    "EXPRESSION": "'expression'",
    "_DERIVATIVE_WRT": "'derivative wrt'",
    "$END": "the end",
}
OPERAND = {"NAME", "NUMBER", "FUNCTION", "LPAR"}


_BEGINNING = re.compile(r"(\s|#[^\n]*(\n|$))*(declare|expression)\b")


def is_calculus(text: str) -> bool:
    """Whether a text begins as those of this language do; others show a formula as it is printed."""
    return isinstance(text, str) and _BEGINNING.match(text) is not None


def declarations_of(text: str) -> tuple[int, int]:
    """Where the declarations of a text of this language begin and end; twice 0 where there are none."""
    plain = re.sub(r"#[^\n]*", lambda comment: " " * len(comment[0]), text)
    found = re.search(r"\bdeclare\b\s*(.*?)\s*\bexpression\b", plain, re.DOTALL)
    return found.span(1) if found else (0, 0)


@lru_cache(maxsize=1)
def parser() -> Lark:
    """The parser, made once."""
    return lark_parser(GRAMMAR)


def lark_parser(grammar: str) -> Lark:
    """A parser that tells places. Raises UnsupportedError where lark is not installed."""
    try:
        from lark import Lark
    except ImportError:
        raise UnsupportedError(
            "the text language needs the package lark", hint="install it with: pip install lark"
        ) from None
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def read(text: str) -> Text:
    """What a text says. Raises TextError with the place where it is not of the language."""
    refuse_large(text)
    lark = parser()
    from lark import UnexpectedInput

    try:
        tree = lark.parse(text)
    except UnexpectedInput as problem:
        raise _syntax_error(text, problem) from None
    return _MatrixBuilder(text).text(tree)


def refuse_large(text: str) -> None:
    """Refuse what is no text, and a text too large or too deeply nested to be worth reading."""
    if not isinstance(text, str):
        raise TextError(f"a text is expected, not {shown(text)}", "")
    if len(text) > MOST_CHARACTERS:
        raise TextError(f"the text has {len(text)} characters; {MOST_CHARACTERS} are read", text)
    if number := _LONG_NUMBER.search(text):
        raise TextError(f"a number has {len(number[0])} digits; {MOST_DIGITS} are read", text, number.start())
    depth = 0
    for count, symbol in enumerate(re.finditer(r"#[^\n]*|\w+|[^\s\w]", text)):
        depth += {"(": 1, ")": -1}.get(symbol[0], 0)
        if depth > MOST_NESTED:
            raise TextError(f"parentheses are nested more than {MOST_NESTED} deep", text, symbol.start())
        if count == MOST_SYMBOLS:
            raise TextError(f"the text has more than {MOST_SYMBOLS} symbols", text, symbol.start())


def double(token: Token, text: str) -> float:
    """A number as written. Raises TextError for one that double precision makes infinite, or zero."""
    value = float(token)
    nonzero = any(digit in "123456789" for digit in re.split("[eE]", token)[0])
    if not math.isfinite(value) or (nonzero and not value):
        raise TextError(f"{quoted(token)} is not a number of double precision", text, span(token).start)
    return value


def _syntax_error(text: str, problem: Any) -> TextError:
    """lark's error in words: what stands there, what could stand there."""
    position, expected = stopped(problem)
    if position is None:
        found, position = "the text ends", len(text.rstrip())
    else:
        found = f"{quoted(str(getattr(problem, 'token', None) or text[position]))} is not expected here"
    words = {"an expression"} if expected >= OPERAND else set()
    rest = expected - {"REARRANGE", "DELTA", "_WRT", "MODIFIER"} - (OPERAND | {"MINUS"} if words else set())
    wanted = sorted(words | {WORDS.get(name, name) for name in rest})
    return TextError(f"{found}; expected {alternatives(wanted)}", text, position, _hint(text, position, expected))


def _hint(text: str, position: int, expected: set[str]) -> str:
    if text[:position].rstrip().endswith("*") and "LPAR" in expected and "NAME" not in expected:
        return "a product carries its indices: A *(ij,j->i) x, or x *(i,i->i) y element by element"
    word = re.match(r"\w+", text[position:])
    if "NAME" in expected and word and word[0] in (*RESERVED, *KEYWORDS):
        return f"{word[0]} is a word of the language and cannot be a name"
    if not re.search(r"\bexpression\b", text) or "DECLARE" in expected:
        return "a text reads: declare A 2 x 1 expression A *(ij,j->i) x derivative wrt x"
    return ""


class _MatrixBuilder:
    """Turns lark's tree over from the leaves up; rules and methods have the same names."""

    def __init__(self, text: str) -> None:
        self.text_ = text
        self.depths: dict[Node, int] = {}

    def text(self, tree: Tree[Token]) -> Text:
        """The whole input."""
        done: dict[int, Any] = {}
        for subtree in tree.iter_subtrees():
            children = [done.get(id(child), child) for child in subtree.children]
            made = getattr(self, f"_{subtree.data}")(*children)
            done[id(subtree)] = self._measured(made) if isinstance(made, Node) else made
        result: Text = done[id(tree)]
        return result

    def _measured(self, node: Node) -> Node:
        depth = 1 + max((self.depths[operand] for operand in node.operands), default=0)
        if depth > MOST_DEPTH:
            raise TextError(
                f"the expression is more than {MOST_DEPTH} operations deep",
                self.text_,
                node.span.start,
                hint="balance long products with parentheses",
            )
        self.depths[node] = depth
        return node

    def _start(self, *parts: Any) -> Text:
        declarations = tuple(p for p in parts if isinstance(p, Declaration))
        (expression,) = (p for p in parts if isinstance(p, Node))
        seen: set[str] = set()
        for declaration in declarations:
            if declaration.name in seen:
                raise TextError(f"{quoted(declaration.name)} is declared twice", self.text_, declaration.span.start)
            seen.add(declaration.name)
        return Text(self.text_, declarations, expression, tuple(p for p in parts if isinstance(p, tuple)))

    def _declaration(self, name: Token, order: Token | None, *modifiers: Token) -> Declaration:
        if name in KEYWORDS:
            raise TextError(f"{quoted(name)} is a word of the language, not a name", self.text_, span(name).start)
        words = {str(m) for m in modifiers}
        declared = None if order is None else self._order(order, MOST_ORDER)
        return Declaration(str(name), declared, span(name), "complex" in words, "symmetric" in words)

    def _order(self, token: Token, most: int) -> int:
        if len(token.lstrip("0")) > 3 or int(token) > most:
            raise TextError(f"{quoted(token)} is too large; the most here is {most}", self.text_, span(token).start)
        return int(token)

    def _wrt(self, *names: Token) -> tuple[Wrt, ...]:
        found = tuple(Wrt(str(name), span(name)) for name in names)
        for n, wrt in enumerate(found):
            if wrt in found[:n]:
                raise TextError(f"{quoted(wrt.name)} is named twice", self.text_, wrt.span.start)
        return found

    def _sum(self, first: Node, *rest: Any) -> Node:
        terms, signs = [first], [1]
        for sign, term in _pairs(rest):
            terms.append(term)
            signs.append(1 if sign == "+" else -1)
        return Plus(first.span.through(terms[-1].span), tuple(terms), tuple(signs))

    def _product(self, first: Node, *rest: Any) -> Node:
        result = first
        for operator, factor in _pairs(rest):
            whole = first.span.through(factor.span)
            if isinstance(operator, str):
                made: Node = ElementwiseQuotient(whole, result, factor)
            else:
                inputs, output, place = operator
                made = EinsteinProduct(whole, (result, factor), inputs, output, place)
            result = self._measured(made)
        return result

    def _times(self, star: Token, left: Token | None, right: Token | None, output: Token | None, close: Token) -> Any:
        return (str(left or ""), str(right or "")), str(output or ""), span(star).through(span(close))

    def _negative(self, minus: Token, operand: Node) -> Node:
        return ElementwiseFunction(span(minus).through(operand.span), "-", operand)

    def _rearrangement(
        self, word: Token, indices: Token | None, output: Token | None, close: Token, operand: Node
    ) -> Node:
        inside, outside = str(indices or ""), str(output or "")
        if word == "transpose" and sorted(inside) != sorted(outside):
            raise TextError(
                f"a transpose gives its indices in another order, but {quoted(inside)} and {quoted(outside)} differ",
                self.text_,
                span(word).start,
            )
        place = span(word).through(span(close))
        return EinsteinProduct(place.through(operand.span), (operand,), (inside,), outside, place)

    def _raised(self, base: Node, exponent: Node) -> Node:
        return ElementwisePower(base.span.through(exponent.span), base, exponent)

    def _number(self, token: Token) -> Node:
        return Numeral(span(token), self._value(token))

    def _value(self, token: Token) -> Scalar:
        if token.isdigit() and len(token) < 20:
            return int(token)
        return exact(double(token, self.text_))

    def _reference(self, token: Token) -> Node:
        return Reference(span(token), str(token))

    def _function(self, name: Token, operand: Node, close: Token) -> Node:
        kind: Callable[..., Node] = FunctionOfMatrix if name in MATRIX else ElementwiseFunction
        return kind(span(name).through(span(close)), str(name), operand)

    def _unit(self, word: Token, half: Token, close: Token) -> Node:
        return Unit(span(word).through(span(close)), self._order(half, MOST_ORDER // 2))


def _pairs(parts: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    return zip(parts[::2], parts[1::2], strict=True)


def span(token: Token) -> Span:
    """Where a token stands."""
    return Span(token.start_pos or 0, token.end_pos or 0)
