"""Roots and minima inside a program.

    cd.root(lambda x: A @ x - b, like=b)              Implicit("root", x ↦ (i ↦ Σ_k A[i,k]·x[k] − b[i]), b)
    cd.argmin(lambda x: cd.sum(lambda i: …), like=b)  Implicit("argmin", x ↦ Σ_i …, b)

The lambda may mention every value of the program around it; its parameter is the unknown.

Invariant: the equation has as many components as the unknown, and the unknown stays inside its lambda.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from combdiff.errors import TraceError, TypeMismatchError, UnsupportedError
from combdiff.ir import ZERO, Implicit, Lambda, Real, Space, Term, Var, axes_of, join, lambda_
from combdiff.tracing.arrays import expanded
from combdiff.tracing.context import current, show_space
from combdiff.tracing.functions import parameters_of
from combdiff.tracing.values import Scalar, Tensor, Value, check_space, lift, wrap


def root(equation: Callable[[Any], object], /, like: object, start: object = None) -> Scalar | Tensor:
    """The x with equation(x) = 0 that Newton's method finds: `cd.root(lambda x: A @ x + x**3 - b, like=b)`.

    `like` is a tensor or number of the program with the axes and element type of x, where the search starts, or a
    Space (the search then starts at zero); `start` is another place to start. Derivatives follow from the equation by
    one linear solve and do not depend on the start. Raises TypeMismatchError unless the equation gives a value of the
    type of x; evaluation raises ConvergenceError where no root is found or the Jacobian is singular there. Arrays of
    other libraries than NumPy are solved for with NumPy; `jax.jit` compiles Newton's method, and calls NumPy where its
    steps go astray. Tensors that PyTorch is to differentiate are refused with UnsupportedError.
    """
    return _solution("root", equation, like, start)


def argmin(objective: Callable[[Any], object], /, like: object, start: object = None) -> Scalar | Tensor:
    """The x at which a real objective(x) has a local minimum: the root of its gradient. Arguments are as for `root`.

    Evaluation raises ConvergenceError where no minimum is found or the Hessian is singular there.
    """
    return _solution("argmin", objective, like, start)


def _solution(kind: str, function: Any, like: object, start: object) -> Scalar | Tensor:
    trace = current(f"cd.{kind}")
    name = _unknown_name(kind, function)
    given = _start(kind, like)
    space = _space(kind, given)
    if start is not None:
        given = lift(start)
        check_space(given, space, f"the start of cd.{kind}")
    unknown = trace.names.fresh(Var(name, space))
    try:
        body = lift(function(wrap(unknown)))
    finally:
        trace.closed.add(unknown)
    _check_value(kind, body, space)
    return wrap(Implicit(kind, Lambda((unknown,), expanded(body)), given))


def _unknown_name(kind: str, function: Any) -> str:
    """The name of the only parameter of a lambda."""
    is_function = callable(function) and not isinstance(function, Value)
    names = [each.name for each in parameters_of(function, f"cd.{kind}")] if is_function else []
    if len(names) != 1:
        found = f"a lambda of ({', '.join(names)})" if names else repr(function)
        raise TraceError(
            f"cd.{kind} takes a lambda of one unknown, not {found}", hint=f"write cd.{kind}(lambda x: …, like=…)"
        )
    return names[0]


def _start(kind: str, like: object) -> Term:
    """Where the search starts by `like`."""
    if not isinstance(like, Space):
        return lift(like)
    if any(isinstance(axis, Real) for axis in like.axes):
        _refuse_real(kind)
    return lambda_(current(f"cd.{kind}").fresh_indices(like.axes), ZERO)


def _space(kind: str, given: Term) -> Space:
    """The type of the unknown: that of the start, without its symmetries, with real numbers for whole ones."""
    axes = axes_of(given)
    if any(isinstance(axis, Real) for axis in axes):
        _refuse_real(kind)
    space = wrap(given).space
    return Space(*axes, dtype=join(space.dtype, float))


def _refuse_real(kind: str) -> None:
    raise UnsupportedError(
        f"the unknown of cd.{kind} is a function over the real line, which no array holds",
        hint="declare its axes with sizes",
    )


def _check_value(kind: str, body: Term, space: Space) -> None:
    """A root needs one equation for each component of the unknown, a minimum a real number."""
    found = wrap(body).space
    if kind == "argmin":
        if found.order or found.dtype is complex:
            what = f"a tensor of order {found.order}" if found.order else "a complex number"
            raise TypeMismatchError(
                f"the objective of cd.argmin is {what}, but a real number is to be least",
                hint="sum it, or take cd.real(…) of it",
            )
    elif found.axes != space.axes or (found.dtype is complex) != (space.dtype is complex):
        raise TypeMismatchError(
            f"the equation of cd.root is {show_space(found)}, but its unknown is {show_space(space)}",
            hint="give `like` the axes and the element type of the equation: one component for each unknown",
        )
