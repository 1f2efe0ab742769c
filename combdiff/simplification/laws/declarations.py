"""Primitives that a rule file adds, as rows of the table of primitives.

    (primitive "log1p" "\\operatorname{log1p}")     a name and its LaTeX
    (numpy "log1p" "log1p")                         the NumPy function of that name, or SciPy's
    (numpy "spence" "scipy.special.spence")         special function, or else
    (definition f v)                                what f is of (Argument 0), (Argument 1), …
    (derivative "log1p" 0 v)                        ∂f/∂z₀; one for each argument
    (conjugate-derivative f 0 v)                    ∂f/∂z̄₀, where f is not holomorphic
    (mirror f) (real-valued f) (real-only f)        f(z̄) = conj f(z); f is real; f takes real arguments alone

Derivatives and definitions are values in the vocabulary of numbers, sums, products, conjugates and functions.

Invariant: a row that a file makes is data: its NumPy name is that of an element-wise function (a ufunc) of NumPy or
of scipy.special.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from fractions import Fraction
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from combdiff.errors import RuleError
from combdiff.ir import (
    SCIPY,
    TABLE,
    Number,
    Primitive,
    Row,
    Space,
    Term,
    Var,
    add,
    conj,
    function,
    mul,
    register,
    substitute,
    subterms,
    tidy,
    without_scipy,
)
from combdiff.records import dataclass
from combdiff.simplification.laws.syntax import Command, Expr, Source, calls

T = TypeVar("T")

SAID = ("primitive", "numpy", "definition", "derivative", "conjugate-derivative", "real-only", "valid")
FLAGS = ("mirror", "real-valued")  # facts for the laws too
DERIVATIVES = ("derivative", "conjugate-derivative")


@dataclass(frozen=True)
class Template:
    """A term in arguments: called with terms, the term with them put in."""

    body: Term

    def __call__(self, *arguments: Term) -> Term:
        return substitute(self.body, {argument(n): term for n, term in enumerate(arguments)})


def argument(number: int) -> Var:
    """What stands for the argument of that number in a Template."""
    return Var(f"argument{number}", Space(dtype=complex))


@dataclass
class _Said:
    """What a file says of one primitive, with the places."""

    node: Expr
    latex: str
    numpy: str = ""
    valid: str = ""
    definition: Term | None = None
    flags: set[str] = field(default_factory=set)
    derivative: dict[int, Term] = field(default_factory=dict)
    conjugate_derivative: dict[int, Term] = field(default_factory=dict)


def rows(commands: Iterable[Command], source: Source, globals_: Mapping[str, Expr]) -> list[Row]:
    """The primitives that the facts of a file declare, in their order.

    `globals_` are the values of `(let $name …)` that hold in the file. Raises RuleError with the place of what is
    missing, unknown or said twice.
    """
    facts = [c.action.expr for c in commands if _is_fact(c)]
    reading = _Reading(source, globals_)
    said: dict[str, _Said] = {}
    for fact in facts:
        if fact.name == "primitive":
            name = reading.string(fact.args[0])
            if name in said:
                raise source.error(fact, f"the primitive {name} is declared twice")
            said[name] = _Said(fact, reading.string(fact.args[1]))
    for fact in facts:
        if fact.name in (*SAID[1:], *FLAGS):
            reading.fact(fact, said)
    _check_order(said, source)
    return [_row(name, one, source) for name, one in said.items()]


def _check_order(said: Mapping[str, _Said], source: Source) -> None:
    """Raise RuleError for a definition that leads back to itself."""
    uses = {
        name: {n.name for n in subterms(one.definition) if isinstance(n, Primitive)} if one.definition else set()
        for name, one in said.items()
    }
    for name, one in said.items():
        reached, waiting = set[str](), [name]
        while waiting:
            new = uses.get(waiting.pop(), set()) - reached
            reached |= new
            waiting += sorted(new)
        if name in reached:
            raise source.error(one.node, f"the definition of {name} leads back to {name}")


def _is_fact(command: Command) -> bool:
    action: Expr = getattr(command, "action", None)
    return type(action).__name__ == "Expr_" and type(action.expr).__name__ == "Call"


def declared(term: Term) -> tuple[Row, ...]:
    """The rows of rule files that a term needs, those of their derivatives and definitions with them, by name."""
    found: dict[str, Row] = {}

    def visit(terms: Iterable[Term]) -> None:
        names = {node.name for each in terms for node in subterms(each) if isinstance(node, Primitive)}
        for row in (TABLE[name] for name in sorted(names - found.keys()) if name in TABLE):
            if row.origin:
                found[row.name] = row
                arguments = [argument(n) for n in range(row.arity)]
                makers = (*row.partials, *row.conjugate_partials, *([row.definition] if row.definition else []))
                visit(make(*arguments) for make in makers)

    visit([term])
    return tuple(found[name] for name in sorted(found))


def restored(rows: Iterable[Row], kind: Callable[..., T], parts: Mapping[str, Any]) -> T:
    """An object from its pickle, the rows that its terms need entered first, so that it works where the files are not.

    Raises RuleError where the name of a row means something else in this process.
    """
    for row in rows:
        if not register(row):
            raise RuleError(
                f"a pickle uses the primitive {row.name} of {row.origin}, which means something else in this process"
            )
    return kind(**parts)


def without_declarations(commands: Iterable[Command]) -> list[Command]:
    """The commands without what only the table of primitives is told."""
    return [c for c in commands if not (_is_fact(c) and c.action.expr.name in SAID)]


def check_functions(commands: Iterable[Command], source: Source, declared: Iterable[Row]) -> None:
    """Raise RuleError for a function that is neither in the table nor declared, or that has too many arguments."""
    known = {**TABLE, **{row.name: row for row in declared}}
    for command in commands:
        for call in calls(command):
            if call.name in ("Fn", "Part") and len(call.args) == 2 and _is_string(call.args[0]):
                name, inside = call.args[0].value.value, call.args[1]
                if name not in known:
                    mend = f'declare it with (primitive "{name}" …), or use a function of the table'
                    raise source.error(call, f"{name} is not a primitive", mend)
                count = 1 if call.name == "Part" else len(inside.args) if _is_vector(inside) else None
                if count is not None and count != known[name].arity:
                    raise source.error(call, f"{name} takes {known[name].arity} arguments, not {count}")


def _is_vector(node: Expr) -> bool:
    return getattr(node, "name", "") == "vec-of"


def _is_string(node: Expr) -> bool:
    return type(node).__name__ == "Lit" and type(node.value).__name__ == "String"


def _row(name: str, said: _Said, source: Source) -> Row:
    """The row of one primitive, complete."""
    if not name.isidentifier():
        raise source.error(said.node, f"{name!r} is not a name", "use letters, digits and underscores")
    arity = len(said.derivative)
    if not arity or sorted(said.derivative) != list(range(arity)):
        mend = f'write (derivative "{name}" 0 …), with a number for each argument from 0 on'
        raise source.error(said.node, f"the derivative of {name} is not given for each argument", mend)
    if said.conjugate_derivative and said.conjugate_derivative.keys() != said.derivative.keys():
        raise source.error(said.node, f"{name} has a conjugate derivative for some of its arguments only")
    if (said.definition is None) == (not said.numpy):
        mend = f'write one of (numpy "{name}" …) and (definition "{name}" …)'
        raise source.error(said.node, f"how to compute {name} is not said, or said twice", mend)
    for term in (said.definition, *said.derivative.values(), *said.conjugate_derivative.values()):
        if term is not None and any(v not in [argument(n) for n in range(arity)] for v in term.free):
            raise source.error(said.node, f"{name} has {arity} derivatives, but more arguments are used")
    if said.numpy:
        _check_numpy(name, said, arity, source)
    return Row(
        name,
        said.numpy,
        said.latex,
        tuple(Template(said.derivative[n]) for n in range(arity)),
        said.valid or "everywhere",
        tuple(Template(said.conjugate_derivative[n]) for n in sorted(said.conjugate_derivative)),
        real_valued="real-valued" in said.flags,
        real_only="real-only" in said.flags,
        mirror="mirror" in said.flags or "real-only" in said.flags,
        definition=None if said.definition is None else Template(said.definition),
        origin=source.name,
    )


def _check_numpy(name: str, said: _Said, arity: int, source: Source) -> None:
    """A NumPy name must be that of an element-wise function of as many arguments."""
    of_scipy = said.numpy.startswith(SCIPY)
    shown = said.numpy if of_scipy else f"np.{said.numpy}"
    module = _scipy_special(said.numpy) if of_scipy else np
    own = said.numpy.removeprefix(SCIPY)
    ufunc = getattr(module, own, None) if own.isidentifier() else None
    if not isinstance(ufunc, np.ufunc) or ufunc.nout != 1:
        library = "SciPy" if of_scipy else "NumPy"
        mend = f'write (definition "{name}" …) in terms of functions that {library} has'
        raise source.error(said.node, f"{library} has no element-wise function {own!r}", mend)
    if ufunc.nin != arity:
        raise source.error(said.node, f"{shown} takes {ufunc.nin} arguments, but {name} has {arity}")


def _scipy_special(wanted: str) -> ModuleType:
    """The module of SciPy's special functions. Raises UnsupportedError where it is not installed."""
    try:
        return importlib.import_module(SCIPY.rstrip("."))
    except ModuleNotFoundError:
        raise without_scipy(f"{wanted} is computed") from None


@dataclass(frozen=True)
class _Reading:
    """Expressions of egglog as strings, numbers and terms."""

    source: Source
    globals_: Mapping[str, Expr]

    def fact(self, fact: Expr, said: Mapping[str, _Said]) -> None:
        """Note what one fact says."""
        name = self.string(fact.args[0])
        if name not in said:
            if fact.name in FLAGS and name in TABLE:
                return
            raise self.source.error(fact, f"{name} is not declared", f'write (primitive "{name}" …) in this file')
        one = said[name]
        if fact.name in (*FLAGS, "real-only"):
            one.flags.add(fact.name)
        elif fact.name in DERIVATIVES:
            found = one.derivative if fact.name == "derivative" else one.conjugate_derivative
            found[self.integer(fact.args[1])] = self.value(fact.args[2])
        elif fact.name == "definition":
            one.definition = self.value(fact.args[1])
        else:
            setattr(one, fact.name, self.string(fact.args[1]))

    def string(self, node: Expr) -> str:
        """A string literal."""
        if not _is_string(node):
            raise self.source.error(node, "a text in quotation marks is expected here")
        return str(node.value.value)

    def integer(self, node: Expr) -> int:
        """A whole number."""
        if type(node).__name__ != "Lit" or type(node.value).__name__ != "Int":
            raise self.source.error(node, "a whole number is expected here")
        return int(node.value.value)

    def value(self, node: Expr) -> Term:
        """A value as a term."""
        node = self._resolved(node)
        name, args = getattr(node, "name", ""), getattr(node, "args", [])
        match name:
            case "Argument":
                return argument(self.integer(args[0]))
            case "Num":
                return Number(self.rational(args[0]), self.rational(args[1]))
            case "Float":
                return Number(*(float(a.value.value) for a in args))
            case "Scale":
                return mul(Number(self.rational(args[0]), self.rational(args[1])), self.value(args[2]))
            case "Conj":
                return conj(self.value(args[0]))
            case "Times":
                return mul(*map(self.value, args))
            case "Plus":
                return add(*map(self.value, args))
            case "Prod":
                return mul(*self.values(args[0]))
            case "Add":
                return add(*self.values(args[0]))
            case "Fn":
                return function(self.string(args[0]), *self.values(args[1]))
        raise self.source.error(node, "this cannot stand in a derivative or definition")

    def values(self, node: Expr) -> list[Term]:
        """The members of a container that is written out."""
        node = self._resolved(node)
        if getattr(node, "name", "") not in ("vec-of", "multiset-of"):
            raise self.source.error(node, "(vec-of …) or (multiset-of …) is expected here")
        return [self.value(inner) for inner in node.args]

    def rational(self, node: Expr) -> int | Fraction:
        """An exact number."""
        node = self._resolved(node)
        if type(node).__name__ == "Lit" and type(node.value).__name__ in ("Int", "String"):
            return int(node.value.value)
        name, args = getattr(node, "name", ""), [self.rational(inner) for inner in getattr(node, "args", [])]
        match name, args:
            case (("bigint" | "from-string"), [n]):
                return n
            case "bigrat", [top, bottom] if bottom:
                return tidy(Fraction(top) / Fraction(bottom))
            case "neg", [a]:
                return -a
        raise self.source.error(node, "a number such as (bigrat (bigint 1) (bigint 2)) is expected here")

    def _resolved(self, node: Expr) -> Expr:
        """A global replaced by its value."""
        while type(node).__name__ == "Var" and node.name in self.globals_:
            node = self.globals_[node.name]
        return node
