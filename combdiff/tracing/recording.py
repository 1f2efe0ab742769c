"""From a decorated Python function to the term of its program.

    def f(x: cd.Space("n")):              Lambda((x,), Sum((i,), Mul((x[i], x[i]))))
        return cd.sum(lambda i: x[i] * x[i])

The function runs once, on traced values in place of its parameters (see `annotations`). What it returns may be a
function again (see `currying`).

Invariant: the term's only free names are sizes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from traceback import walk_tb
from types import FunctionType
from typing import Any

from combdiff.errors import Location, TraceError, is_own, is_users, shown
from combdiff.ir import Function, Lambda, Term, Tuple, Var, Whole, settled_parts
from combdiff.records import dataclass
from combdiff.tracing.annotations import parameters_of, size_names_in
from combdiff.tracing.arrays import expanded
from combdiff.tracing.context import SIDE_BY_SIDE, Trace, TracedValue, tracing
from combdiff.tracing.currying import returned_function
from combdiff.tracing.indices import Index
from combdiff.tracing.values import NamedFunction, Value, lift, wrap

OF_OBJECTS = ("dtype('O')", "no callable")  # what NumPy says of an array of traced numbers that it made of a list
NOTATION = re.compile(r"mod|(sum|Σ)_\w+")  # not names in what is printed: k mod n, sum_i


@dataclass(frozen=True)
class Traced:
    """What tracing a function found: its term, its name and where it is written.

    `inner` names the last parameters where the function returns a function of them: the term is uncurried. `places` are
    the lines that read elements, by `access_name`. `constants` are the arrays of the surrounding scope that it uses,
    values of further parameters. `names` are the user's own for parts of the term. `steps` is what was returned, as it
    was computed, operation by operation, with the user's names for its parts.
    """

    term: Lambda
    name: str
    location: Location
    inner: tuple[str, ...] = ()
    places: Mapping[str, Location] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[Term, str] = field(default_factory=dict)
    steps: tuple[Term, Mapping[Term, str]] | None = None


def trace_function(function: Callable[..., object]) -> Traced:
    """Runs a function whose parameters are annotated with Spaces or Functions, and records what it computes.

    Raises TraceError for a function that does not describe a program, or calls another with what that does not take;
    other errors come from its body.
    """
    if not isinstance(function, FunctionType):
        raise TraceError(f"{shown(function)} is not a Python function", hint="decorate a function written with def")
    code = function.__code__
    location = Location(code.co_filename, code.co_firstlineno)
    parameters = parameters_of(function, location)
    sizes = {name for parameter in parameters for name in size_names_in(parameter.type)}
    with tracing(function.__name__, location, (*parameters, *(Var(name, Whole()) for name in sizes)), code) as trace:
        try:
            returned = function(*(_traced_parameter(parameter, trace) for parameter in parameters))
        except ValueError as error:
            if isinstance(
                error.__cause__, TraceError
            ):  # as NumPy wraps what an assignment to an array of its own meets
                raise error.__cause__ from None
            raise
        except TypeError as error:
            frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
            if is_own(frames[-1][0]):
                raise
            place = next(Location(*frame) for frame in reversed(frames) if is_users(frame[0]))
            raise TraceError(
                f"{function.__name__} meets a TypeError: {error}",
                hint=SIDE_BY_SIDE if any(word in str(error) for word in OF_OBJECTS) else "",
                location=place,
            ) from error
        except RecursionError as error:
            line = next(line for frame, line in walk_tb(error.__traceback__) if frame.f_code is code)
            raise TraceError(
                f"{function.__name__} meets Python's limit of recursion",
                hint="end what calls itself; write a loop of thousands of steps as a cd.scan",
                location=Location(code.co_filename, line),
            ) from None
        inner, returned = returned_function(returned, parameters, trace)
        written = _result(returned, function.__name__, location)
        parts = settled_parts(written)
        body = parts[written]
        own = {term: name for term, (_, name) in trace.locals.items() if not NOTATION.fullmatch(name)}
        names = {parts[term]: name for term, name in own.items() if term in parts}
        read = {variable: array for variable, array in trace.constants.items() if variable in body.free}
        constants = {variable.name: array for variable, array in read.items()}
        term = Lambda((*parameters, *read, *inner), body)
        told = tuple(var.name for var in inner)
        return Traced(term, function.__name__, location, told, trace.places, constants, names, (written, own))


def _traced_parameter(parameter: Var, trace: Trace) -> TracedValue:
    return NamedFunction(parameter, trace) if isinstance(parameter.type, Function) else wrap(parameter)


def _result(value: object, name: str, location: Location) -> Term:
    """The term of what the function returned: a number, a tensor or a tuple of them."""
    if isinstance(value, tuple):
        if not value or any(isinstance(item, tuple) for item in value):
            raise TraceError(
                f"{name} returns {'a tuple in a tuple' if value else 'an empty tuple'}",
                hint="return numbers and tensors, or one flat tuple of them",
                location=location,
            )
        return Tuple(tuple(_result(item, name, location) for item in value))
    if value is None or isinstance(value, Index | list | dict) or _is_function(value):
        found = "nothing" if value is None else f"a {getattr(value, 'kind', type(value).__name__)}"
        raise TraceError(
            f"{name} returns {found}, but a program returns a number, a tensor or a tuple of them",
            hint="end the function with return and such a value",
            location=location,
        )
    return expanded(lift(value))


def _is_function(value: object) -> bool:
    return callable(value) and not isinstance(value, Value)
