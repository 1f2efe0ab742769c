"""Programs that return functions: x ↦ (y ↦ f(x)(y)), recorded as (x, y) ↦ f(x)(y).

    def f(A: Matrix):
        def form(x: Vector):             parameters (A) and, of the function that is returned, (x);
            return x @ A @ x             the term is (A, x) ↦ Σ x[i] A[i,j] x[j]
        return form

A lambda without annotations is a function of indices, which is a tensor: `return lambda i: x[i] ** 2`. A program that
is returned is a function of its parameters.

Invariant: the parameters of the function come last and have names of their own.
"""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

from combdiff.errors import Location, TraceError
from combdiff.ir import Space, Var
from combdiff.tracing.annotations import parameters_of
from combdiff.tracing.context import Trace
from combdiff.tracing.functions import tensor
from combdiff.tracing.values import Value, wrap


def returned_function(value: Any, outer: tuple[Var, ...], trace: Trace) -> tuple[tuple[Var, ...], Any]:
    """The parameters of a function that a program returned, and its value at them; none, and the value, for others.

    Raises TraceError for a parameter that is no tensor, or that has the name of a parameter of the program.
    """
    if isinstance(value, FunctionType) and not any(map(_annotated, inspect.signature(value).parameters.values())):
        return (), tensor(value)
    inner = _parameters(value)
    if inner is None:
        return (), value
    for var in inner:
        if not isinstance(var.type, Space):
            raise TraceError(f"the function that {trace.name} returns takes the map {var.name}; it may take tensors")
        if any(var.name == other.name for other in outer):
            raise TraceError(
                f"{var.name} is a parameter of {trace.name} and of the function that it returns",
                hint="give one of them another name",
                location=trace.location,
            )
    found = value(*map(wrap, inner))
    if isinstance(found, FunctionType) or _parameters(found) is not None:
        raise TraceError(
            f"the function that {trace.name} returns gives a function again",
            hint="let it take the arguments of both",
            location=trace.location,
        )
    return inner, found


def _annotated(parameter: inspect.Parameter) -> bool:
    return parameter.annotation is not parameter.empty


def _parameters(value: Any) -> tuple[Var, ...] | None:
    """The parameters of a Python function or a program; None for what is no function."""
    if isinstance(value, FunctionType):
        return parameters_of(value, Location(value.__code__.co_filename, value.__code__.co_firstlineno))
    known = None if isinstance(value, Value) else getattr(value, "parameters", None)
    return tuple(known) if isinstance(known, tuple) else None
