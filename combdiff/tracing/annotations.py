"""The parameters of a decorated function: their names, and the Spaces and Functions of their annotations.

    def f(A: cd.Space("n", "n"), R: cd.Function(V)):      (Var("A", Space("n", "n")), Var("R", Function(V)))

Annotations may be strings (as under `from __future__ import annotations`); their names are looked up where the
function is written, locals of the enclosing functions included. `Annotated[Any, cd.Space("n")]` is what type checkers
take for a Space.

Invariant: every parameter has a type; a function with one that has none is refused with the corrected line.
"""

from __future__ import annotations

import builtins
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import FunctionType
from typing import Annotated, Any, get_origin

from combdiff.errors import Location, TraceError
from combdiff.ir import Function, Space, Var, names_in
from combdiff.tracing.context import size_of


def parameters_of(function: FunctionType, location: Location) -> tuple[Var, ...]:
    """The typed parameters of a function; raises TraceError, with the corrected line, for one that has no type."""
    namespace: dict[str, Any] | None = None
    found: dict[str, Space | Function] = {}
    signature = inspect.signature(function)
    for name, parameter in signature.parameters.items():
        annotation = parameter.annotation
        if isinstance(annotation, str):
            namespace = namespace or _namespace(function)
            annotation = _evaluated(annotation, namespace, name, location)
        annotation = _annotated(annotation)
        plain = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        if isinstance(annotation, Space | Function) and plain and parameter.default is parameter.empty:
            found[name] = annotation
            continue
        raise TraceError(
            f"the parameter {name} of {function.__name__} {_fault(parameter, annotation)}",
            hint=f"write {_corrected(function.__name__, signature.parameters)}, with the Spaces you mean",
            location=location,
        )
    return tuple(Var(name, type_) for name, type_ in found.items())


def _annotated(annotation: object) -> object:
    """The Space of `Annotated[Any, cd.Space("n")]`, which type checkers take; other annotations as they are."""
    told = getattr(annotation, "__metadata__", ()) if get_origin(annotation) is Annotated else ()
    return next((each for each in told if isinstance(each, Space | Function)), annotation)


def _fault(parameter: inspect.Parameter, annotation: object) -> str:
    """What is wrong with a parameter."""
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY):
        return "is not a plain one: a program has a fixed list of parameters"
    if parameter.annotation is parameter.empty:
        return "has no annotation: its Space or Function is not known"
    if isinstance(annotation, Space | Function):
        return f"has the default {parameter.default!r}: a program has none"
    return f"is annotated with {annotation!r}, which is not a Space or a Function"


def _corrected(name: str, parameters: Mapping[str, inspect.Parameter]) -> str:
    """The definition line with a Space for every parameter that lacks one."""
    parts = []
    for parameter in parameters.values():
        annotation = parameter.annotation
        shown = annotation if isinstance(annotation, str) else 'cd.Space("N")'
        if isinstance(annotation, Space | Function):
            shown = f"cd.{annotation!r}"
        parts.append(f"{parameter.name}: {shown}")
    return f"def {name}({', '.join(parts)})"


def _evaluated(annotation: str, namespace: dict[str, Any], parameter: str, location: Location) -> object:
    """The value of a string annotation, where the function is written."""
    value: object = annotation
    while isinstance(value, str):
        try:
            value = eval(value, namespace)
        except (NameError, AttributeError, SyntaxError, TypeError) as error:
            raise TraceError(
                f"the annotation {value!r} of the parameter {parameter} cannot be read: {error}",
                hint="define the Space before the function, where the function can see it",
                location=location,
            ) from error
    return value


def _namespace(function: FunctionType) -> dict[str, Any]:
    """All names visible where a function is written: builtins, globals, enclosing locals, its closure."""
    names = {**vars(builtins), **function.__globals__}
    for local in reversed(list(_enclosing_locals(function))):
        names.update(local)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # a name that gets its value only after the definition
            names[name] = cell.cell_contents
    return names


def _enclosing_locals(function: FunctionType) -> Iterator[Mapping[str, Any]]:
    """The locals of the functions and classes around a definition that are still running, the innermost first.

    A name used only in a string annotation is not in the closure, so the frames on the stack are asked.
    """
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if frame.f_globals is function.__globals__ and function.__qualname__.startswith(f"{code.co_qualname}."):
            yield frame.f_locals
        frame = frame.f_back  # type: ignore[assignment]


def size_names_in(type_: object) -> Iterator[str]:
    """The named sizes in a type."""
    spaces = (*type_.arguments, type_.result) if isinstance(type_, Function) else (type_,)
    axes = [axis for space in spaces if isinstance(space, Space) for axis in space.axes]
    return (name for axis in axes for name in names_in(size_of(axis)))
