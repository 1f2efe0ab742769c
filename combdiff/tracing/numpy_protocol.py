"""NumPy's functions on traced values: `np.exp(x)` in a program means `cd.exp(x)`.

NumPy asks an argument that is no array to answer for it (NEP 13 and NEP 18). The answer is looked up in one table,
which `functions` completes with a row for each function it defines:

    np.exp(x)    → HANDLERS[np.exp](x)    = cd.exp(x)
    np.float64(2) * x → HANDLERS[np.multiply](2.0, x) = 2.0 * x

Invariant: a function without a row and an option without a meaning raise UnsupportedError.
"""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from traceback import walk_tb
from typing import Any

import numpy as np

from combdiff.errors import CombdiffError, TypeMismatchError, UnsupportedError, is_users, shown
from combdiff.tracing.context import TracedValue
from combdiff.tracing.scipy_names import in_place_of, numbers_function

HANDLERS: dict[Any, Callable[..., Any]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
    np.power: operator.pow,
    np.remainder: operator.mod,
    np.floor_divide: operator.floordiv,
    np.matmul: operator.matmul,
    np.negative: operator.neg,
    np.positive: operator.pos,
    np.bitwise_and: operator.and_,
    np.bitwise_or: operator.or_,
    np.bitwise_xor: operator.xor,
    np.invert: operator.invert,
}

SCIPY_HANDLERS: dict[str, Callable[..., Any]] = {}
"""Functions of scipy.special by name: SciPy need not be there, and is not imported to know its functions."""

UFUNC_METHODS: dict[str, Callable[..., Any]] = {}
"""Methods of NumPy's functions of elements, as in np.add.reduce: they are given the function first."""

REFUSED: dict[Any, tuple[str, str]] = {}
"""Why a function is not taken, and what to write in its place."""

METHODS: dict[str, Callable[..., Any]] = {}
"""Methods of arrays that take other arguments than NumPy's function of the same name, or have none."""


class NumpyAware(TracedValue):
    """A traced value that NumPy's functions accept."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        if method != "__call__":
            handler = UFUNC_METHODS.get(method)
            if handler is None:
                raise UnsupportedError(
                    f"np.{ufunc.__name__}.{method} is not supported in a program: it changes an array in place",
                    hint="build the new tensor with cd.tensor(lambda i: …); np.bincount(b, weights=x) adds up in bins",
                )
            return answer(f"np.{ufunc.__name__}.{method}", handler, ufunc, *inputs, **options)
        beside_truths = any(getattr(value, "is_mask", False) for value in inputs)
        return _answer(ufunc, [_without_arrays(value, beside_truths) for value in inputs], options)

    def __array_function__(
        self, function: Callable[..., object], _: object, arguments: Sequence[object], options: Mapping[str, object]
    ) -> object:
        return _answer(function, arguments, options)


def python_number(value: object) -> object:
    """The Python number a NumPy scalar or array without axes holds; anything else as it is."""
    return (
        value.item() if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and not value.ndim) else value
    )


def _without_arrays(value: object, beside_truths: bool) -> object:
    """An operand, an array of the surrounding scope as a constant; truth values beside a Truth as such."""
    value = python_number(value)
    if isinstance(value, np.ndarray):
        is_truth = beside_truths and value.dtype == bool
        return HANDLERS[np.not_equal](value, 0) if is_truth else HANDLERS[np.asarray](value)
    return value


def _answer(function: Any, arguments: Sequence[object], options: Mapping[str, object]) -> object:
    name = _name_of(function)
    handler = HANDLERS.get(function)
    if handler is None and name.startswith("scipy.special."):
        handler = SCIPY_HANDLERS.get(function.__name__)
    if handler is None:
        raise refusal(name, function)
    return answer(name, handler, *arguments, **options)


def refusal(name: str, function: Any) -> UnsupportedError:
    """The error for what is not taken, which says why and what to write in its place."""
    reason, hint = REFUSED.get(function, ("", "write it with cd functions, element by element: cd.tensor(lambda i: …)"))
    if name.startswith("scipy.special."):
        reason, hint = "its derivative is not in the table", in_place_of(name.removeprefix("scipy."))
    name, hint = numbers_function(sys._getframe(1)) or (name, hint)
    return UnsupportedError(f"{name} is not supported in a program{reason and f': {reason}'}", hint=hint)


def _name_of(function: Any) -> str:
    """What users call a function of NumPy's, or a ufunc of SciPy's special functions."""
    name = function.__name__
    if isinstance(function, np.ufunc) and getattr(np, name, None) is not function and "scipy.special" in sys.modules:
        return f"scipy.special.{name.lstrip('_')}"
    module = getattr(function, "__module__", None)
    return f"np.{module.partition('.')[2]}.{name}" if module in ("numpy.linalg", "numpy.fft") else f"np.{name}"


def answer(name: str, handler: Callable[..., Any], /, *arguments: object, **options: object) -> Any:
    """What the function in NumPy's or a method's place gives.

    Raises UnsupportedError for options it does not take, and TypeMismatchError for arguments of which it can make
    nothing; what a function among these raises is its own.
    """
    out = options.pop("out", None)
    if any(each is not None for each in (out if isinstance(out, tuple) else (out,))):
        raise UnsupportedError(
            f"{name} with out= changes an array in place, as y += x does where y is an array of NumPy's",
            hint="make a new one: y = y + x",
        )
    if options.get("where", True) is not True and "where" not in inspect.signature(handler).parameters:
        raise UnsupportedError(
            f"{name} with where= leaves elements of the result undefined", hint="write np.where(mask, f(x), other)"
        )
    try:
        inspect.signature(handler).bind(*arguments, **options)
    except TypeError as mismatch:
        raise UnsupportedError(f"{name} in a program: {mismatch}", hint="leave the other options out") from None
    try:
        return handler(*arguments, **options)
    except CombdiffError:
        raise
    except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, MemoryError) as error:
        if any(is_users(frame.f_code.co_filename) for frame, _ in walk_tb(error.__traceback__)):
            raise
        if isinstance(error.__cause__, CombdiffError):  # as NumPy wraps what an assignment to an array of its own meets
            raise error.__cause__ from None
        raise _mismatch(name, error, *arguments, *options.values()) from None


def _mismatch(name: str, error: Exception, *arguments: object) -> TypeMismatchError:
    given = ", ".join(map(shown, arguments))
    return TypeMismatchError(f"{name} of {given}: {error}", hint="give numbers, arrays or traced values")


def on_arrays(name: str, function: Callable[..., Any], *arguments: object, **options: object) -> Any:
    """NumPy's function. Raises TypeMismatchError where NumPy does not take the arguments."""
    try:
        return function(*arguments, **options)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise _mismatch(f"cd.{name}", error, *arguments) from None
