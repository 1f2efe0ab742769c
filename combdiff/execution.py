"""Running programs on arrays: sizes from shapes, one plan per program and shapes, the emitted source compiled.

    run(A, x ↦ (i ↦ Σ_j A[i,j]·x[j]), [A0, x0])
    = the array of the compiled source `return A @ x`, planned once for shapes and element types like these

Arguments are checked before anything is computed. A repeated call looks the compiled function up by shapes and
element types and calls it.

Invariant: the function that runs is the text `source` gives. Arguments are never changed, and results share no
memory with them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from combdiff.accesses import Access, check
from combdiff.domains import Domain, Function, Range, Real, Space, Symmetric, extent
from combdiff.errors import ArgumentError, ConvergenceError, UnsupportedError
from combdiff.lowering import Plan, make_plan, size_names
from combdiff.lowering import source as plan_source
from combdiff.lowering.plan import TYPICAL
from combdiff.terms import Lambda, Tuple, Var

Array = np.ndarray[Any, Any]
Signature = tuple[object, ...]

MOST_FOR_DP = 16  # operands up to which opt_einsum's dynamic programming is quick, where few share a label
MOST_FOR_DENSE_DP = 9  # operands up to which it is quick in any case
REPEATS = 16  # of the randomised greedy search


# --- contraction paths ---------------------------------------------------------------------------------------------


def find_paths(
    operands: Sequence[frozenset[int]], output: frozenset[int], extents: Mapping[int, int]
) -> list[Sequence[Sequence[int]]]:
    """Contraction paths that opt_einsum proposes for a network, the same ones every time."""
    from opt_einsum import paths
    from opt_einsum.path_random import RandomGreedy

    sizes = {label: max(1, size) for label, size in extents.items()}
    finders: list[Callable[..., Any]] = [paths.greedy, RandomGreedy(max_repeats=REPEATS)]
    sharing = sum(not a.isdisjoint(b) for a, b in combinations(operands, 2))
    if len(operands) <= (MOST_FOR_DP if sharing <= 2 * len(operands) else MOST_FOR_DENSE_DP):
        finders.append(paths.DynamicProgramming())
    state = random.getstate()  # the randomised search seeds Python's generator
    try:
        return [finder(list(operands), output, sizes) for finder in finders]
    finally:
        random.setstate(state)


# --- planning and running ------------------------------------------------------------------------------------------


def run(
    program: Lambda,
    arguments: Sequence[object],
    sizes: Mapping[str, int] | None = None,
    accesses: tuple[Access, ...] = (),
) -> Any:
    """The value of a program at arrays, numbers and callables given in the order of its parameters.

    A tensor comes as an array of its axes (lists are converted), a scalar as a number, a named map as a callable of
    arrays; where a derivative of it is needed it has a method `pullback(position, arguments, cotangent)`. `sizes` gives
    named sizes that no axis of an argument shows. `accesses` are checked at the sizes first. The result is a NumPy
    scalar, a fresh array, or a tuple of them.
    Raises ArgumentError for arguments that do not fit, naming tensor and axis, IndexingError for an access that leaves
    its tensor, and UnsupportedError for programs that arrays cannot express.
    """
    signature = tuple([(a.shape, a.dtype) if type(a) is np.ndarray else _described(a) for a in arguments])
    call = _prepared(program, signature, tuple(sizes.items()) if sizes else (), accesses)
    try:
        return call(arguments)
    except ArithmeticError as error:
        if type(error) is not ArithmeticError:  # those of its kinds are the user's
            raise
        raise ConvergenceError(str(error), hint="start nearer to a solution, and check that there is one") from None
    except ModuleNotFoundError as error:
        if error.name != "scipy":
            raise
        raise UnsupportedError(
            "roots and minima are found by SciPy, which is not installed", hint="pip install combdiff[implicit]"
        ) from None


def plan(program: Lambda, sizes: Mapping[str, int] | None = None) -> Plan:
    """The array steps of a program; sizes that are not given count as typical ones."""
    known = dict.fromkeys(sorted(size_names(program)), TYPICAL) | dict(sizes or {})
    return _plan(program, tuple(known.items()))


def source(program: Lambda, name: str, sizes: Mapping[str, int] | None = None) -> str:
    """Standalone Python source of a function `name` that computes the program with NumPy alone.

    It takes the parameters in order and holds for arrays of every size; `sizes` only choose the order of contractions,
    those not given count as typical ones. (A size that no axis of a parameter shows must be given, and is fixed.)
    """
    hidden = sorted(size_names(program) - size_names(Tuple(program.parameters)) - set(sizes or {}))
    if hidden:
        raise _unknown_size(hidden[0])
    return plan_source(plan(program, sizes), name)


@lru_cache(maxsize=512)
def _plan(program: Lambda, sizes: tuple[tuple[str, int], ...]) -> Plan:
    return make_plan(program, dict(sizes), find_paths)


@lru_cache(maxsize=512)
def _compiled(program: Lambda, sizes: tuple[tuple[str, int], ...]) -> Callable[..., Any]:
    """The function that the source of the program at these sizes defines."""
    text = plan_source(_plan(program, sizes), "program")
    namespace: dict[str, Any] = {}
    # Named like this module, the text counts as combdiff's own when an error looks for the user's line.
    exec(compile(text, f"{__file__} (source of a program)", "exec"), namespace)
    compiled: Callable[..., Any] = namespace["program"]
    return compiled


# --- arguments -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Other:
    """What an argument is that is no plain array: "number" (of Python's), "array" (or a list) or "map"."""

    what: str
    shape: tuple[int, ...] = ()
    dtype: Any = None


def _described(value: object) -> _Other:
    if isinstance(value, int | float | complex) and not isinstance(value, np.generic):
        return _Other("number", (), np.dtype(type(value)))
    if value is None or callable(value):
        return _Other("nothing" if value is None else "map")
    try:
        array = np.asarray(value)
    except ValueError:  # lists of unequal lengths
        return _Other("ragged")
    return _Other("array", array.shape, array.dtype)


@lru_cache(maxsize=4096)
def _prepared(
    program: Lambda, signature: Signature, extra: tuple[tuple[str, int], ...], accesses: tuple[Access, ...]
) -> Callable[[Sequence[object]], Any]:
    """How to call the program with arguments of these shapes and element types, and sizes that they do not show."""
    parameters = program.parameters
    if len(signature) != len(parameters):
        raise _wrong_count(parameters, len(signature))
    given = [d if isinstance(d, _Other) else _Other("plain", *d) for d in signature]  # type: ignore[misc]
    for var, one in zip(parameters, given, strict=True):
        _check_sort(var, one)
    tensors = [(var, one) for var, one in zip(parameters, given, strict=True) if isinstance(var.type, Space)]
    sizes = dict(extra) | bind_sizes({var: one.shape for var, one in tensors})
    unknown = sorted(size_names(program) - sizes.keys())
    if unknown:
        raise _unknown_size(unknown[0])
    check(accesses, sizes)
    function = _compiled(program, tuple(sizes.items()))
    exact = [one.dtype for _, one in tensors if one.what != "number" and one.dtype.kind in "fc"]
    width = np.finfo(np.result_type(*exact)).dtype if exact else np.dtype(float)
    converters = [_converter(var, one, width, sizes) for var, one in zip(parameters, given, strict=True)]
    if not any(converters):
        return lambda arguments: function(*arguments)
    return lambda arguments: function(
        *[convert(a) if convert else a for convert, a in zip(converters, arguments, strict=True)]
    )


def _converter(var: Var, given: _Other, width: np.dtype[Any], sizes: Mapping[str, int]) -> Callable[[Any], Any] | None:
    """What makes the argument the array, scalar or map that the source takes; None where it is one already."""
    space = var.type
    if isinstance(space, Function):
        return lambda value: _NamedMap(var.name, space, value, sizes)
    assert isinstance(space, Space)
    dtype = given.dtype
    weak = width if given.what == "number" else np.dtype(float)  # Python numbers do not widen float32
    if space.dtype is int:
        dtype = np.dtype(int) if dtype.kind == "b" else dtype
    elif dtype.kind not in "fc" or given.what == "number":
        dtype = weak
    if space.dtype is complex and dtype.kind != "c":
        dtype = np.result_type(dtype, np.complex64)
    if space.order == 0:
        return lambda value: np.asarray(value, dtype)[()]
    if given.what == "plain" and dtype == given.dtype:
        return None
    return lambda value: np.asarray(value, dtype)


def _check_sort(var: Var, given: _Other) -> None:
    """Refuse what is no array of numbers, no callable, or of a wider kind than the parameter."""
    name = var.name
    if given.what == "nothing":
        raise ArgumentError(f"no array was given for {name}", hint=f"pass {name} by position or by name")
    if isinstance(var.type, Function):
        if given.what != "map":
            raise ArgumentError(f"{name} is a map, but what was given for it cannot be called")
        return
    assert isinstance(var.type, Space), var
    if given.what == "map":
        raise ArgumentError(f"{name} is a tensor, {var.type!r}, but a callable was given for it")
    if given.what == "ragged":
        raise ArgumentError(f"what was given for {name} is not an array: its lists have unequal lengths")
    kind = given.dtype.kind
    if kind not in "biufc":
        raise ArgumentError(f"the array given for {name} has dtype {given.dtype}, which is not a number type")
    allowed = {int: "biu", float: "biuf", complex: "biufc"}[var.type.dtype]
    if kind not in allowed:
        real = "take its real part, or declare" if kind == "c" else "round it, or declare"
        wanted = {int: "whole numbers", float: "real numbers"}[var.type.dtype]
        found = "complex" if kind == "c" else "float"
        raise ArgumentError(
            f"{name} takes {wanted}, but the array given for it has dtype {given.dtype}",
            hint=f"{real} {name} with dtype={found}",
        )


def _wrong_count(parameters: Sequence[Var], count: int) -> ArgumentError:
    names = ", ".join(var.name for var in parameters)
    missing = ", ".join(var.name for var in parameters[count:])
    found = f"missing: {missing}" if missing else f"{count - len(parameters)} too many"
    return ArgumentError(f"the program takes {len(parameters)} arguments ({names}), but {count} were given; {found}")


def _unknown_size(name: str) -> ArgumentError:
    return ArgumentError(f"the size {name} is not known", hint=f"no axis of an argument shows it: give {name}=… itself")


def bind_sizes(shapes: Mapping[Var, tuple[int, ...]]) -> dict[str, int]:
    """The named sizes, read off the shapes of arrays for tensor parameters.

    Raises ArgumentError for a wrong number of axes, a fixed size that differs, an even length of a Symmetric axis, and
    one name with two sizes; UnsupportedError for an axis over the real line.
    """
    sizes: dict[str, int] = {}
    places: dict[str, str] = {}
    for var, shape in shapes.items():
        assert isinstance(var.type, Space), var
        axes = var.type.axes
        expected = ", ".join(map(_axis_text, axes))
        if len(shape) != len(axes):
            raise ArgumentError(
                f"{var.name} has {len(shape)} axes, shape {shape}, but {len(axes)} were expected: ({expected})"
            )
        for n, (axis, length) in enumerate(zip(axes, shape, strict=True)):
            place = f"axis {n} of {var.name} (shape {shape}, expected ({expected}))"
            name, size = _size(axis, length, place)
            if name is not None and sizes.setdefault(name, size) != size:
                raise ArgumentError(f"{name} is {sizes[name]} by {places[name]}, but {size} by {place}")
            places.setdefault(name or "", place)
    return sizes


def _size(axis: Domain, length: int, place: str) -> tuple[str | None, int]:
    """The name (if any) and value of the size that an axis of that length has."""
    if isinstance(axis, Real):
        raise UnsupportedError(f"{place} is the real line: nothing over it can be evaluated with arrays")
    size = axis.bound if isinstance(axis, Symmetric) else axis.size
    if isinstance(size, int):
        if extent(axis, {}) != length:
            raise ArgumentError(f"{place} has {length} elements, but {extent(axis, {})} were expected")
        return None, size
    if isinstance(axis, Symmetric):
        if length % 2 == 0:
            raise ArgumentError(f"{place} has {length} elements, but a Symmetric axis has an odd number, 2·{size} + 1")
        return size, length // 2
    return size, length


def _axis_text(axis: Domain) -> str:
    return str(axis.size) if isinstance(axis, Range) else repr(axis)


@dataclass(frozen=True)
class _NamedMap:
    """The callable given for a named map, its results checked."""

    name: str
    type: Function
    function: Callable[..., Any]
    sizes: Mapping[str, int]

    def __call__(self, *arguments: Any) -> Any:
        return self._checked(self.function(*arguments), self.type.result, self.name)

    def pullback(self, position: int, arguments: tuple[Any, ...], cotangent: Any) -> Any:
        """The pullback of the map, if it brings one."""
        pullback = getattr(self.function, "pullback", None)
        if pullback is None:
            raise ArgumentError(
                f"the derivative of {self.name} is needed, but what was given for {self.name} has no pullback",
                hint="give a Program, or an object with a method pullback(position, arguments, cotangent)",
            )
        result = pullback(position, arguments, cotangent)
        return self._checked(result, self.type.arguments[position], f"the pullback of {self.name}")

    def _checked(self, result: Any, space: Space, what: str) -> Any:
        array = np.asarray(result)
        expected = tuple(extent(axis, dict(self.sizes)) for axis in space.axes)
        if array.shape != expected:
            raise ArgumentError(f"{what} gave an array of shape {array.shape}, but {expected} was expected")
        return array
