r"""The grammar of what is printed: from characters to documents, the ones that `printing` writes.

    "x ↦ Σ_i x[i]²"   =   Sheet(((x,),), (), BigSum((Bound(i),), (), Power(Access(x, (i,)), Literal(2))))

Index notation and matrix notation have one grammar, with ASCII spellings: `sum_{i,j}` for Σ_{i,j}, `delta` for δ, `->`
for ↦, `<=` for ≤, `*` for ·, `.*` for ⊙, `'` for ᵀ. Blanks count in three places, as in print: `x[i]` is an element and
`x [i > 0]` a product, `f(a)` a call and `a (b + c)` a product, `a* b` holds a conjugate and `a * b` does not.

A line that goes on is one that ends in ↦, = or within brackets, or is followed by one that begins with `+ ` or `- `.

Invariant: every input ends in a Sheet with a place for each document in it, or in a TextError that names a place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from combdiff.printing import (
    Arrow,
    BigFold,
    BigSum,
    Bound,
    Comparison,
    Derivative,
    Division,
    Doc,
    ElementPower,
    ElementProduct,
    FunctionCall,
    Iverson,
    Juxtaposition,
    Literal,
    Marked,
    MatrixProduct,
    Modulo,
    Name,
    Norm,
    Projected,
    Ranging,
    ResultRow,
    Rounded,
    Sheet,
    Signed,
    Subscripted,
    Superscript,
)
from combdiff.records import dataclass
from combdiff.text.grammar import LOWERED, RAISED, double, lark_parser, refuse_large
from combdiff.text.places import Span, TextError, alternatives, quoted, stopped

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

DIGITS = str.maketrans(RAISED + LOWERED, "0123456789" * 2)
ENDS = rf"\w)\]}}'*ᵀ†{RAISED}⁻𝟏\ue001\ue003"  # what an operand may end in
DIVISIONS = ("/", "⊘", "./")
BARS = {"|": ("\ue000", "\ue001"), "‖": ("\ue002", "\ue003")}  # to what opens and what closes

GRAMMAR = rf"""
start: statement (_SEP statement)*
statement: expression | expression "=" expression -> definition

?expression: compared | compared _ARROW expression -> arrow
?compared: modular | modular (RELATION modular)+ -> comparison
?modular: sum | sum _MOD sum -> remainder
?sum: term | (SIGN term | term SIGN term) (SIGN term)* -> signed
?term: factor | factor (OPERATOR? factor | OVER NUMBER)+ -> product
?factor: power
    | SIGMA NAME -> sigma
    | SIGMA "{{" bound ("," bound)* "}}" ["^" "{{" expression "}}"] -> sigma
    | INTEGRAL -> integral
    | AVERAGE "{{" expression ("," expression)* "}}" -> average
?bound: compared | compared "=" expression -> equation
?power: postfix | postfix "^" exponent -> raised | postfix ELEMENTS exponent -> raised_elements
?exponent: simple | SIGN exponent -> signed
?simple: atom | simple _CALL arguments ")" -> call | simple _ELEMENT arguments "]" -> element
?postfix: atom
    | postfix _CALL arguments ")" -> call
    | postfix _ELEMENT arguments "]" -> element
    | postfix (STAR | MARK) -> marked
    | postfix UP -> powered
arguments: (expression ("," expression)*)?
?atom: NUMBER -> number
    | NAME -> name
    | DERIVATIVE NAME -> derivative
    | "(" expression ")" -> parenthesised
    | "(" ")" -> row
    | "(" expression ("," expression)+ ")" -> row
    | "(" expression "," ")" -> row
    | "[" condition ("," condition)* "]" -> iverson
    | _BAR expression _ENDBAR -> modulus
    | _NORM expression ENDNORM -> norm
    | _FLOOR expression _ENDFLOOR -> floor
    | _CEILING expression _ENDCEILING -> ceiling
?condition: compared | compared "=" expression -> equation

SIGMA.4: /[ΣΠ]_(?=[{{\w])|(sum|prod|max|min|maxima|minima)_(?=\{{|\w\b)/
INTEGRAL.3: /∫+/
AVERAGE.3: /(Sym|Alt|Herm|SkewHerm)_(?=\{{)/
_MOD.3: /mod\b/
_ARROW.3: /↦|\|->|->/
RELATION: /≤|≥|≠|<=|>=|!=|<|>|∈/
SIGN: /[+-]/
OPERATOR: /·|⊙|⊘|\.\*|\.\/|[*\/]/
ELEMENTS.2: /\^∘|\.\^/
STAR.4: /(?<=[{ENDS}])\*(?=$|[\s)\],;^'·{RAISED}⁻ᵀ†}}\ue001\ue003])/
UP.3: /[{RAISED}]+/
MARK.3: /⁻¹|⁻ᵀ|⁻†|ᵀ|†|'/
OVER.3: /(?<=\S)\/(?=\d+(?![\w.^]))/
_CALL.3: /(?<=[\w)\]'ᵀ†])\(/
_ELEMENT.3: /(?<=[\w)\]'ᵀ†])\[/
DERIVATIVE: /∇|∂[{LOWERED}]*/
_BAR: "\ue000"
_ENDBAR: "\ue001"
_NORM: "\ue002"
ENDNORM: /\ue003(_F)?/
_FLOOR: "⌊"
_ENDFLOOR: "⌋"
_CEILING: "⌈"
_ENDCEILING: "⌉"
NUMBER: /[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?/
NAME: /(?![0-9]|mod\b)((?![{RAISED}{LOWERED}ᵀ†])[\w𝟏𝐈])+/
_SEP: ";"

%ignore /\s+/
"""

WORDS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "OPERATOR": "an operator",
    "SIGN": "'+' or '-'",
    "_ARROW": "'↦'",
    "RELATION": "a comparison",
    "EQUAL": "'='",
    "COMMA": "','",
    "RPAR": "')'",
    "RSQB": "']'",
    "RBRACE": "'}'",
    "_ENDBAR": "'|'",
    "ENDNORM": "'‖'",
    "LBRACE": "'{'",
    "LPAR": "'('",
    "_SEP": "a new line",
    "$END": "the end",
    "_MOD": "'mod'",
    "CIRCUMFLEX": "'^'",
    "_ENDFLOOR": "'⌋'",
    "_ENDCEILING": "'⌉'",
}
CLOSING = {
    "RPAR": ("(", ")"),
    "RSQB": ("[", "]"),
    "RBRACE": ("{", "}"),
    "_ENDFLOOR": ("⌊", "⌋"),
    "_ENDCEILING": ("⌈", "⌉"),
}
RARELY = {"COMMA", "EQUAL", "CIRCUMFLEX", "RELATION", "_MOD", "_ARROW", "_SEP"}  # where an operator would do
ELSEWHERE = {  # what other languages write, and what is written here
    "**": "a power is x^2",
    ".T": "a transpose is A' or Aᵀ",
    "@": "a product of matrices is A * B or A·B",
    "_+": "the positive part is relu(x)",
    "||": "a norm is norm2(x) or ‖x‖",
    "\\": "A⁻¹·b is inv(A) * b",
}
OPERAND = {"NAME", "NUMBER", "LPAR"}
GO_ON = {"STAR", "UP", "MARK", "OVER", "_CALL", "_ELEMENT", "ELEMENTS", "INTEGRAL", "SIGMA", "DERIVATIVE", "_BAR"}
GO_ON |= {"AVERAGE", "_NORM", "LSQB", "_FLOOR", "_CEILING"}
SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠"}


D = TypeVar("D", bound=Doc)


@dataclass(frozen=True)
class Formula:
    """A text as documents; `spans` has the place of each by its id, `documents` are all that are part of the sheet."""

    text: str
    sheet: Sheet
    spans: dict[int, Span]
    documents: tuple[Any, ...] = ()

    def error(self, message: str, doc: Doc, hint: str = "") -> TextError:
        """What is wrong with a part of the text."""
        span = self.spans.get(id(doc))
        return TextError(message, self.text, span.start if span else 0, hint)


@lru_cache(maxsize=1)
def parser() -> Lark:
    """The parser, made once."""
    return lark_parser(GRAMMAR)


def formula(text: str, names: Iterable[str] = ()) -> Formula:
    """What a text says; `names` are those of tensors.

    Raises TextError with the place where it is not of the language.
    """
    refuse_large(text)
    lark = parser()
    from lark import UnexpectedInput

    try:
        tree = lark.parse(_marked(_with_own_mod(text, names)))
    except UnexpectedInput as problem:
        raise _syntax_error(text, problem) from None
    builder = _FormulaBuilder(text)
    sheet = builder.sheet(tree)
    return Formula(text, sheet, builder.spans, tuple(builder.made))


# --- characters ----------------------------------------------------------------------------------------------------


OWN_MOD = "ｍod"  # a tensor that is called mod, where that is no operator


def _with_own_mod(text: str, names: Iterable[str]) -> str:
    """The text with a tensor `mod` told from the operator, which stands before a size that ends a form: `k mod n ↦`."""
    head = re.match(r"\s*+\(?([\w\s,]*+)(?:\)\s*+)?(?:↦|\|?->)", text)
    tensors = {*names, *(name.strip() for name in (head[1].split(",") if head else ()))}
    if "mod" not in tensors:
        return text

    def told(match: re.Match[str]) -> str:
        before, size = text[: match.start()][-2:], match["size"]
        is_operator = re.fullmatch(r"[\w\])] ", before) and size and (size.isdigit() or size not in tensors)
        return match[0] if is_operator else match[0].replace("mod", OWN_MOD, 1)

    return re.sub(r"\bmod\b(?: (?P<size>\w+)(?=\s*[,)\]}↦=]))?", told, text)


def _marked(text: str) -> str:
    """The text, place by place, with comments blank, bars told apart and `;` where a line ends a statement."""
    plain = re.sub(r"#[^\n]*", lambda comment: " " * len(comment[0]), text)
    signs, depth, opened = list(plain), 0, {"|": False, "‖": False}
    for n, sign in enumerate(plain):
        if sign in opened and plain[n : n + 3] != "|->":
            signs[n] = BARS[sign][opened[sign]]
            opened[sign] = not opened[sign]
        depth += (sign in "([{⌊⌈") - (sign in ")]}⌋⌉")
        if sign == "\n" and not depth and _ends(plain[:n], plain[n:]):
            signs[n] = ";"
    return "".join(signs)


def _ends(before: str, after: str) -> bool:
    """Whether a statement ends at a line break."""
    before, after = before[-200:].rstrip(), after[:200].lstrip()
    goes_on = re.match(r"[+-]\s", after) or before.endswith(("↦", "->", "=", ";"))
    return bool(before and after and not goes_on)


def _syntax_error(text: str, problem: Any) -> TextError:
    """lark's error in words: what stands there, what could stand there."""
    position, expected = stopped(problem)
    if position is None:
        found, position = "the text ends", len(text.rstrip())
    elif text[position] == "\n":
        found = "the line ends"
    else:
        found = f"{quoted(text[position:].split()[0])} is not expected here"
    before = text[:position]
    shut = {name for name, (left, right) in CLOSING.items() if before.count(left) <= before.count(right)}
    shut |= {name for name, bar in (("_ENDBAR", "|"), ("ENDNORM", "‖")) if before.count(bar) % 2 == 0}
    operand = expected >= OPERAND
    rest = expected - GO_ON - shut - (OPERAND | {"SIGN"} if operand else set())
    rest -= RARELY if "OPERATOR" in rest else set()
    wanted = sorted(({"an expression"} if operand else set()) | {WORDS.get(name, name) for name in rest})
    near = text[max(position - 2, 0) : position + 2]
    hint = next((hint for sign, hint in ELSEWHERE.items() if sign in near), "")
    return TextError(f"{found}; expected {alternatives(wanted)}", text, position, hint)


# --- documents -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Headed:
    """`x ↦ t = …`: the first definition of a program behind the parameters."""

    left: Doc
    right: Doc


@dataclass(frozen=True)
class _Sign:
    """A Σ, an ∫ or an average before the rest of its product."""

    bounds: tuple[Bound, ...] = ()
    integrals: int = 0
    sign: str = "Σ"
    average: str = ""
    groups: tuple[tuple[Doc, ...], ...] = ()

    def before(self, variables: tuple[Name, ...], body: Doc) -> Doc:
        """The sign with what it stands before."""
        if self.average:
            return Projected(self.average, self.groups, body)
        return BigSum(self.bounds, variables, body) if self.sign == "Σ" else BigFold(self.sign, self.bounds, body)


class _FormulaBuilder:
    """Turns lark's tree over from the leaves up; rules and methods have the same names."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans: dict[int, Span] = {}
        self.made: list[Any] = []  # so that no id is used twice

    def sheet(self, tree: Tree[Token]) -> Sheet:
        """The whole input."""
        done: dict[int, Any] = {}
        for subtree in tree.iter_subtrees():
            children = [done.get(id(child), child) for child in subtree.children]
            self.place = subtree.meta
            done[id(subtree)] = made = getattr(self, f"_{subtree.data}")(*children)
            self.made.append(made)
            if not subtree.meta.empty:
                self.spans.setdefault(id(made), Span(subtree.meta.start_pos, subtree.meta.end_pos))
        result: Sheet = done[id(tree)]
        return result

    def _error(self, message: str, hint: str = "") -> TextError:
        return TextError(message, self.text, self.place.start_pos, hint)

    # statements

    def _start(self, *statements: Any) -> Sheet:
        groups: list[tuple[Doc, ...]] = []
        first = statements[0]
        *definitions, result = (_opened(first, groups), *statements[1:])
        if isinstance(result, Comparison | _Headed) and "=" in getattr(result, "signs", "="):
            raise TextError("the text ends in a definition", self.text, len(self.text.rstrip()), "add what it gives")
        sign = next((made for made in (*definitions, result) if isinstance(made, _Sign)), None)
        if sign is not None:
            raise TextError("a Σ or ∫ has nothing after it", self.text, self.spans[id(sign)].start)
        pairs = []
        for each in definitions:
            if not (isinstance(each, Comparison) and each.signs == ("=",)):
                span = self.spans.get(id(each), Span(0, 0))
                raise TextError(
                    "a line before the last is a definition", self.text, span.start, "write name = … or name[i] = …"
                )
            pairs.append((each.sides[0], each.sides[1]))
        return Sheet(tuple(groups), tuple(pairs), result)

    def _statement(self, one: Any) -> Any:
        return one

    def _definition(self, left: Doc, right: Doc) -> Doc:
        if isinstance(left, Arrow):
            return self._headed(left.parameters, left.body, right)
        if isinstance(left, Subscripted) and any(isinstance(a, Comparison | Modulo) for a in left.arguments):
            ranged = (self._ranging(a) if isinstance(a, Comparison | Modulo) else a for a in left.arguments)
            left = self._at(left, Subscripted(left.map, tuple(ranged), left.round))
        return Comparison((left, right), ("=",))

    def _headed(self, parameters: Any, left: Doc, right: Doc) -> Doc:
        return Arrow(self._parameters(parameters), self._definition(left, right))

    def _arrow(self, left: Doc, body: Doc) -> Doc:
        return Arrow(self._parameters(left), body)

    def _parameters(self, left: Any) -> tuple[Doc, ...]:
        given = left.items if isinstance(left, ResultRow) else left if isinstance(left, tuple) else (left,)
        return tuple(self._ranging(each) for each in given)

    def _ranging(self, doc: Doc) -> Name | Ranging:
        """An index: `i`, `i<n`, `|b|≤B`, `k mod n`, `t∈ℝ`."""
        match doc:
            case Name() | Ranging():
                return doc
            case Comparison((Name() as name, size), ("<" | "∈" as sign,)):
                return self._at(doc, Ranging(name, sign, size))
            case Comparison((FunctionCall("abs", (Name() as name,)), size), ("≤",)):
                return self._at(doc, Ranging(name, "≤", size))
            case Modulo(Name() as name, size):
                return self._at(doc, Ranging(name, "mod", size))
        raise self._error("an index or a parameter is a name", "write (x, y) ↦ …, i ↦ …, or with its range i<n ↦ …")

    def _at(self, old: Any, new: D) -> D:
        if id(old) in self.spans:
            self.spans[id(new)] = self.spans[id(old)]
        self.made.append(new)
        return new

    # sums and products

    def _equation(self, left: Doc, right: Doc) -> Doc:
        return Comparison((left, right), ("=",))

    def _comparison(self, first: Doc, *rest: Any) -> Doc:
        signs = tuple(SIGNS.get(str(sign), str(sign)) for sign in rest[::2])
        return Comparison((first, *rest[1::2]), signs)

    def _remainder(self, form: Doc, modulus: Doc) -> Doc:
        return Modulo(form, modulus)

    def _signed(self, *parts: Any) -> Doc:
        items = list(parts) if _is_token(parts[0], "SIGN") else ["+", *parts]
        pairs = zip(items[::2], items[1::2], strict=True)
        return Signed(tuple((str(sign) == "-", term) for sign, term in pairs))

    def _sigma(self, sign: Token, *parts: Any) -> _Sign:
        shown = sign.rstrip("_")
        return replace(self._bounded(*parts), sign={"sum": "Σ", "prod": "Π"}.get(shown, shown))

    def _bounded(self, *parts: Any) -> _Sign:
        *bounds, upper = parts if len(parts) > 1 else (Name(str(parts[0])), None)
        if upper is None:
            return _Sign(self._merged([self._bound(bound) for bound in bounds]), 0)
        match bounds:
            case [Comparison((Name() as name, lower), ("=",))]:
                return _Sign((Bound(name, lower, upper),), 0)
        raise self._error("a Σ with an upper limit has one lower limit", "write Σ_{k=0}^{n - 1}")

    def _bound(self, doc: Doc) -> Bound:
        if isinstance(doc, Comparison) and isinstance(doc.sides[0], Name) and doc.signs == ("≠",):
            return Bound(doc.sides[0], apart=(doc.sides[1],))
        return Bound(self._ranging(doc))

    def _merged(self, bounds: Sequence[Bound]) -> tuple[Bound, ...]:
        """`j≠i,j≠k` as one index that is unequal to both."""
        found: dict[Doc, Bound] = {}
        for bound in bounds:
            name = bound.name.name if isinstance(bound.name, Ranging) else bound.name
            other = found.get(name)
            if other and not (other.apart or bound.apart):
                raise self._error("an index is summed over twice")
            ranged = other.name if other and isinstance(other.name, Ranging) else bound.name
            found[name] = Bound(ranged, apart=(*(other.apart if other else ()), *bound.apart))
        return tuple(found.values())

    def _integral(self, signs: Token) -> _Sign:
        return _Sign(integrals=len(signs))

    def _product(self, *parts: Any) -> Doc:
        """Factors side by side; a Σ takes all that follows it."""
        at = next((n for n, part in enumerate(parts) if isinstance(part, _Sign)), None)
        if at is None:
            return self._factors(parts)
        if at == len(parts) - 1:
            raise self._error("a Σ or ∫ has nothing after it")
        sign, rest = parts[at], parts[at + 1 :]
        if _is_token(rest[0], "OVER"):
            raise self._error("a Σ or ∫ has nothing after it")
        names: tuple[Name, ...] = ()
        if sign.integrals:
            names, rest = self._differentials(rest, sign.integrals)
        body = self._product(*rest) if len(rest) > 1 else rest[0]
        if isinstance(body, _Sign):
            raise self._error("a Σ or ∫ has nothing after it")
        whole = sign.before(names, body)
        self.spans[id(whole)] = self.spans.get(id(sign), Span(self.place.start_pos, self.place.end_pos))
        self.made.append(whole)
        return self._factors((*parts[:at], whole))

    def _average(self, name: Token, *groups: Doc) -> _Sign:
        each = tuple(group.items if isinstance(group, ResultRow) else (group,) for group in groups)
        if len(each) < 2 or len({len(group) for group in each}) > 1:
            raise self._error("an average exchanges indices, or groups of as many", "write Sym_{i,j} A[i,j]")
        return _Sign(average=name.rstrip("_"), groups=each)

    def _differentials(self, parts: tuple[Any, ...], count: int) -> tuple[tuple[Name, ...], tuple[Any, ...]]:
        """The variables of integrals, `dx dy` behind the body, and the body."""
        ends = parts[-count:]
        if len(parts) <= count or not all(isinstance(e, Name) and e.name[:1] == "d" and e.name[1:] for e in ends):
            raise self._error("an integral names its variable at its end", "write ∫ f(x) dx")
        return tuple(self._at(e, Name(e.name[1:])) for e in ends), parts[:-count]

    def _factors(self, parts: tuple[Any, ...]) -> Doc:
        first, *rest = self._with_quotients(parts)
        result, over, operator = first, False, ""
        for part in rest:
            if _is_token(part, "OPERATOR") or _is_token(part, "OVER"):
                operator = str(part)
                continue
            if over and not operator:
                raise self._error("a / b c has two meanings", "write a / (b c) or (a / b) c")
            result = self._at(result, _combined(result, operator, part))
            over, operator = operator == "/", ""
        return result  # type: ignore[no-any-return]

    def _with_quotients(self, parts: tuple[Any, ...]) -> list[Any]:
        """A factor over a number, as in `1/2 x`, is one factor, unless it is divided by: a/b/2 is (a/b)/2."""
        found: list[Any] = []
        following = iter(parts)
        for part in following:
            if not _is_token(part, "OVER"):
                found.append(part)
                continue
            number = next(following)
            if len(found) > 1 and found[-2] in DIVISIONS:
                found += [part, self._number(number)]
            else:
                found[-1] = self._at(found[-1], self._divided(found[-1], number))
        return found

    # powers and what stands behind a factor

    def _raised(self, base: Doc, exponent: Doc) -> Doc:
        return Superscript(base, exponent)

    def _raised_elements(self, base: Doc, _: Token, exponent: Doc) -> Doc:
        return ElementPower(base, exponent)

    def _powered(self, base: Doc, up: Token) -> Doc:
        return Superscript(base, Literal(int(up.translate(DIGITS))))

    def _marked(self, body: Doc, mark: Token) -> Doc:
        return Derivative(body, "'") if mark == "'" else Marked(body, str(mark))

    def _divided(self, body: Doc, number: Token) -> Doc:
        divisor = int(number)
        if isinstance(body, Literal) and isinstance(body.real, int) and divisor:
            return Literal(Fraction(body.real, divisor))
        return Division(body, Literal(divisor))

    def _arguments(self, *arguments: Doc) -> tuple[Doc, ...]:
        return arguments

    def _call(self, map_: Doc, arguments: tuple[Doc, ...]) -> Doc:
        return Subscripted(map_, arguments, round=True)

    def _element(self, map_: Doc, arguments: tuple[Doc, ...]) -> Doc:
        return Subscripted(map_, arguments, round=False)

    # atoms

    def _number(self, token: Token) -> Doc:
        return Literal(int(token) if token.isdigit() else double(token, self.text))

    def _name(self, token: Token) -> Doc:
        return Name("mod" if token == OWN_MOD else str(token))

    def _derivative(self, sign: Token, name: Token) -> Doc:
        inner = self._at(None, Name(str(name)))
        self.spans[id(inner)] = Span(name.start_pos or 0, name.end_pos or 0)
        return Derivative(inner, sign[0], int(sign[1:].translate(DIGITS) or 0))

    def _parenthesised(self, inner: Doc) -> Doc:
        return inner

    def _row(self, *items: Doc) -> Doc:
        return ResultRow(items)

    def _iverson(self, *conditions: Doc) -> Doc:
        if not all(isinstance(condition, Comparison) for condition in conditions):
            raise self._error("brackets hold conditions, such as [i < j]", "an element is written tight: x[i]")
        return Iverson(conditions)  # type: ignore[arg-type]

    def _modulus(self, inner: Doc) -> Doc:
        return FunctionCall("abs", (inner,))

    def _norm(self, inner: Doc, end: Token) -> Doc:
        return Norm(inner, "F" if end.endswith("F") else "")

    def _floor(self, inner: Doc) -> Doc:
        return self._rounded(inner, up=False)

    def _ceiling(self, inner: Doc) -> Doc:
        return self._rounded(inner, up=True)

    def _rounded(self, inner: Doc, *, up: bool) -> Doc:
        match inner:
            case Division(form, Literal(int(divisor), 0)):
                return Rounded(form, divisor, up)
            case Juxtaposition((number, Division(form, Literal(int(divisor), 0)))):  # 3d/2
                return Rounded(Juxtaposition((number, form)), divisor, up)
        raise self._error("⌊ ⌋ and ⌈ ⌉ hold an index expression over a whole number, such as ⌊i/2⌋")


def _opened(statement: Any, groups: list[tuple[Doc, ...]]) -> Any:
    """The statement behind the parameters of a program."""
    while isinstance(statement, Arrow):
        groups.append(statement.parameters)
        statement = statement.body
    return statement


def _is_token(part: object, kind: str) -> bool:
    return getattr(part, "type", "") == kind


def _combined(left: Doc, operator: str, right: Doc) -> Doc:
    match operator:
        case "/":
            return Division(left, right)
        case "⊙" | ".*":
            return ElementProduct((left, right), ())
        case "⊘" | "./":
            return ElementProduct((left,), (right,))
        case "":
            return Juxtaposition((left, right))
    return MatrixProduct((left, right))
