"""What editors and `help` show of a program: its parameters with their Spaces, its docstring, its print.

    inspect.signature(loss)      (A: Space('n', 'n'), x: Space('n')) -> Space()
    help(loss)                   the same, the docstring of the decorated function, what it computes

Invariant: of the class `Program` itself Python sees what it would see without this module.
"""

from __future__ import annotations

import inspect
from keyword import iskeyword
from typing import Protocol

from combdiff.ir import Function, Lambda, Space, Term, Tuple, Var, show_axis, split, type_of


class Described(Protocol):
    """What is shown of a program."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def docstring(self) -> str:
        """What the user wrote about it."""

    @property
    def term(self) -> Lambda:
        """What it computes."""

    @property
    def parameters(self) -> tuple[Var, ...]:
        """What a call must give."""


class Documentation:
    """The `__doc__` of a program; of the class, its own docstring."""

    def __init__(self, of_class: str) -> None:
        self.of_class = of_class

    def __get__(self, program: Described | None, owner: type | None = None) -> str:
        return self.of_class if program is None else documentation(program)


class SignatureOf:
    """The `__signature__` of a program; the class has none but that of its constructor."""

    def __get__(self, program: Described | None, owner: type | None = None) -> inspect.Signature | None:
        return None if program is None else signature(program)


def signature(program: Described) -> inspect.Signature | None:
    """The parameters that a call must give, annotated with their Spaces and Functions, and the Space of the result."""
    names = [p.name for p in program.parameters]
    if any(iskeyword(name) or not name.isidentifier() for name in names):
        return None  # parameters of formulas may have other names
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(p.name, kind, annotation=p.type) for p in program.parameters]
    return inspect.Signature(parameters, return_annotation=_result(program.term.body))


def _result(body: Term) -> object:
    """The Space of a result, or a tuple of those of several."""
    _, result = split(body)
    return tuple(map(_result, result.items)) if isinstance(result, Tuple) else type_of(result)


def documentation(program: Described) -> str:
    """The call with its shapes, what the user wrote about it, the parameters, and the print."""
    names = ", ".join(p.name for p in program.parameters)
    lines = [f"{program.name}({names})", ""]
    if program.docstring:
        lines += [program.docstring, ""]
    lines += [f"{p.name}: {_said(p.type, p.name)}" for p in program.parameters]
    return "\n".join([*lines, f"returns {_said_result(_result(program.term.body))}", "", str(program)])


def _said_result(result: object) -> str:
    return ", ".join(map(_said_result, result)) if isinstance(result, tuple) else _said(result)


def _said(type_: object, name: str = "A") -> str:
    """A tensor of a name by its shape and symmetries; a map, a whole number and others by what they are."""
    if isinstance(type_, Space):
        kind = {float: "real", complex: "complex", int: "integer"}[type_.dtype]
        if not type_.order:
            return f"a {kind} number" if kind != "integer" else "an integer"
        sizes = ", ".join(str(show_axis(axis)) for axis in type_.axes)
        shape = f"({sizes}{',' if type_.order == 1 else ''})"
        symmetry = f", {', '.join(type_.equations(name))}" if len(type_.group) > 1 else ""
        return f"{kind}, shape {shape}{symmetry}"
    return "a map" if isinstance(type_, Function) else str(type_)
