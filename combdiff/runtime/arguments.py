"""What a call gives a program: one library, sizes read off shapes, element types, named maps.

    prepare((A, x), (2×3 array, list of 3 numbers))
    = sizes {"N": 2, "M": 3}, library NumPy, converters (none for A, a float64 array for x)

Every argument is described once per shape and element type, so a repeated call converts what must be converted and
does nothing else.

Invariant: what does not fit is refused before anything is computed, and arguments are never changed.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from math import prod
from typing import Any, SupportsFloat

import numpy as np

from combdiff.errors import ArgumentError, UnsupportedError, shown
from combdiff.ir import Domain, Function, Range, Real, Space, Symmetric, Var, extent, names_in, size_parts, size_value
from combdiff.records import dataclass
from combdiff.runtime.libraries import LIBRARIES, Library, library_of_type

PERMUTED = 1 << 12  # elements of an array from which a copy in another order of axes is noticed

_INTEGER = np.dtype(np.int64)  # in fewer bits, products of whole numbers wrap around
KINDS = {int: "biu", float: "biuf", complex: "biufc"}  # NumPy's letters of the numbers that a Space takes
NUMBERS = {int: "whole numbers", float: "real numbers", complex: "numbers"}

Converter = Callable[[Any], Any]


@dataclass(frozen=True)
class Given:
    """What an argument is: an "array" of a library, a "number" (of Python's, or NumPy's beside arrays of another
    library), "lists", a "map", "nothing", "ragged" lists, or an "other" thing: its `type`, and a hint how to make an
    array of it."""

    what: str
    shape: tuple[int, ...] = ()
    dtype: Any = None
    library: Library | None = None
    device: Any = None
    exact_type: bool = False  # of the library's own array type, no subclass
    type: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Prepared:
    """How to call a program with arguments like those described."""

    library: Library
    sizes: dict[str, int]
    converters: tuple[Converter | None, ...]
    precisions: dict[str, int]  # bytes of a real number in the element type that a tensor is taken in
    copies: int  # bytes of the arrays that are made of what is given


def key(value: Any) -> object:
    """What tells apart arguments that need different plans or conversions; cheap to make, cheap to compare."""
    kind: type = type(value)
    if kind is np.ndarray:
        order = memory_order(value)
        repeats = bytes_written_out(value) > 0
        return (value.shape, value.dtype, order, repeats) if order or repeats else (value.shape, value.dtype)
    library = library_of_type(kind)
    if library is not None:
        return kind, value.shape, value.dtype, library.device(value)
    if kind in (int, float, complex, bool) or value is None or callable(value):
        return kind
    given = described(value)
    return given.what, given.shape, given.dtype


def memory_order(value: Any) -> tuple[int, ...] | None:
    """The order in which the axes of a NumPy array lie in memory one after the other, where it is not their own.

    None for what is small, and for other arrays, which have gaps.
    """
    if type(value) is not np.ndarray or value.flags.c_contiguous or value.size < PERMUTED:
        return None
    order = tuple(sorted(range(value.ndim), key=lambda axis: -value.strides[axis]))
    return order if value.transpose(order).flags.c_contiguous else None


def bytes_written_out(value: Any) -> int:
    """The bytes of a copy of a NumPy array that repeats what it holds (np.broadcast_to), 0 for any other array.

    Products by BLAS make such a copy, whatever the plan says.
    """
    if type(value) is not np.ndarray or 0 not in value.strides or not value.size:
        return 0
    repeats = any(not stride and size > 1 for stride, size in zip(value.strides, value.shape, strict=True))
    return int(value.nbytes) if repeats else 0


def described(value: Any) -> Given:
    """What an argument is."""
    kind: type = type(value)
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", ())  # none without the module, which imports slowly
    if isinstance(value, masked):
        raise ArgumentError("a masked array was given, whose mask would be lost", hint="give x.filled(0), or x.data")
    library = library_of_type(kind)
    if library is not None:
        shape = tuple(n if isinstance(n, int) else _unknown_length(n, value, library) for n in value.shape)
        exact = type(value) is np.ndarray or library.name != "numpy"
        return Given("array", shape, library.dtype(value) or value.dtype, library, library.device(value), exact)
    if isinstance(value, int | float | complex) and not isinstance(value, np.generic):
        base = next(kind for kind in (bool, int, float, complex) if isinstance(value, kind))
        return Given("number", (), np.dtype(base))
    if value is None or callable(value):
        return Given("nothing" if value is None else "map")
    try:
        array = np.asarray(value)
    except ValueError:  # lists of unequal lengths
        return Given("ragged")
    if array.dtype == object or kind is bytearray:
        return Given("other", type=_type_name(kind), hint=_conversion(value))
    if not array.size and not hasattr(value, "dtype"):  # an empty list has no element type of its own
        return Given("number", array.shape, np.dtype(bool))
    return Given("lists", array.shape, array.dtype)


def _type_name(kind: type) -> str:
    module = kind.__module__.partition(".")[0]
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _conversion(value: Any) -> str:
    """How to make an array of numbers of something that is none."""
    ways = {"toarray": ".toarray()", "todense": ".todense()", "to_numpy": ".to_numpy(dtype=float)"}
    method = next((way for name, way in ways.items() if hasattr(value, name)), None)
    if method:
        return f"give an array of numbers: {method} makes one"
    if isinstance(value, SupportsFloat):
        return "give float(…) of it"
    return "give an array, nested lists of numbers, or a number"


def _unknown_length(length: Any, value: Any, library: Library) -> int:
    if length != length or length in (float("inf"), None):
        raise ArgumentError(
            f"a {library.array_name} of shape {value.shape} has an unknown size", hint="compute its chunk sizes first"
        )
    return int(length)


def prepare(
    parameters: Sequence[Var], values: Sequence[Any], extra: Mapping[str, int], wanted: Library | None
) -> Prepared:
    """How to call a program with these arguments; `wanted` is the library to use, else it is the arguments' own.

    Raises ArgumentError for arguments that do not fit, naming tensor and axis.
    """
    if len(values) != len(parameters):
        raise _wrong_count(parameters, len(values))
    given = [described(value) for value in values]
    pairs = list(zip(parameters, given, strict=True))
    for var, one in pairs:
        _check_sort(var, one)
    tensors = [(var, one) for var, one in pairs if isinstance(var.type, Space)]
    sizes = dict(extra) | bind_sizes({var: one.shape for var, one in tensors})
    library = _common_library(tensors, wanted)
    device = _common_device(tensors)
    width = _width([one for _, one in tensors], library)
    taken = {var: _taken(var, one, width, library) for var, one in tensors}
    converters = [
        _converter(var, one, taken[var], library, device) if var in taken else _calling(var, width, library, sizes)
        for var, one in pairs
    ]
    precisions = {var.name: _precision(dtype).itemsize for var, dtype in taken.items()}
    made = {var for (var, _), convert in zip(pairs, converters, strict=True) if convert}
    copies = _copied(tensors, taken, made) if library.name == "numpy" else 0  # on a device all arguments are copies
    return Prepared(library, sizes, tuple(converters), precisions, copies)


def _copied(tensors: Sequence[tuple[Var, Given]], taken: Mapping[Var, np.dtype[Any]], made: Container[Var]) -> int:
    """The bytes of what is made of arguments: arrays in the element types that are taken."""
    return sum(prod(one.shape) * taken[var].itemsize for var, one in tensors if one.shape and var in made)


def _precision(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The real element type of that width, a complex one's parts'; that of Python's floats for whole numbers."""
    return np.finfo(np.result_type(dtype, np.float16)).dtype


def _common_library(tensors: Sequence[tuple[Var, Given]], wanted: Library | None) -> Library:
    """The library of all arrays, NumPy's beside those of one other. Raises ArgumentError where there are two others."""
    numpy = LIBRARIES["numpy"]
    arrays = [(var, one.library) for var, one in tensors if one.library is not None]
    arrays = [(var, library) for var, library in arrays if library is not numpy] or arrays
    found = arrays[0][1] if arrays else wanted or numpy
    for var, library in arrays:
        if library is not found:
            raise ArgumentError(
                f"{arrays[0][0].name} is a {found.array_name}, but {var.name} is a {library.array_name}",
                hint="convert one of them: all arrays of a call belong to one library",
            )
    return wanted if wanted is not None and found.name == "numpy" else _agreed(arrays, found, wanted)


def _agreed(arrays: Sequence[tuple[Var, Library]], found: Library, wanted: Library | None) -> Library:
    if wanted is not None and found is not wanted:
        raise ArgumentError(
            f"the program is compiled for {wanted.name}, but {arrays[0][0].name} is a {found.array_name}",
            hint=f"give {wanted.array_name}s or NumPy arrays, or compile without a backend",
        )
    return found


def _common_device(tensors: Sequence[tuple[Var, Given]]) -> Any:
    """The device of all arrays that have axes, else of the first that has a device."""
    placed = [(var, one) for var, one in tensors if one.device is not None]
    placed = [(var, one) for var, one in placed if one.shape] or placed[:1]
    for var, one in placed:
        if one.device != placed[0][1].device:
            raise ArgumentError(
                f"{placed[0][0].name} is on device {placed[0][1].device}, but {var.name} on {one.device}",
                hint="move one of them: all arrays of a call are on one device",
            )
    return placed[0][1].device if placed else None


def _width(given: Sequence[Given], library: Library) -> np.dtype[Any]:
    """The real element type as wide as the arrays of floating point numbers; that of Python's floats without any."""
    exact = [one for one in given if one.what != "number" and one.dtype.kind in "fc"]
    if library.name != "numpy":  # numbers, lists and NumPy's arrays are as wide as the arrays beside them
        exact = [one for one in exact if one.library is library] or exact
    if library.name == "torch":  # and so are tensors without axes
        exact = [one for one in exact if one.shape] or exact
    return np.finfo(np.result_type(*[one.dtype for one in exact])).dtype if exact else library.floating()


def _calling(var: Var, width: np.dtype[Any], library: Library, sizes: Mapping[str, int]) -> Converter:
    """What makes a callable the map that the source takes."""
    space = var.type
    assert isinstance(space, Function)
    return lambda value: _NamedMap(var.name, space, value, sizes, library, width)


def _converter(var: Var, given: Given, dtype: np.dtype[Any], library: Library, device: Any) -> Converter | None:
    """What makes the argument the array or scalar that the source takes; None where it is one already."""
    space = var.type
    assert isinstance(space, Space)
    ready = given.library is library and given.exact_type and dtype == given.dtype
    if ready and (space.order or library.name != "numpy"):
        return None
    make = library.array if space.order else library.scalar

    def convert(value: Any) -> Any:
        try:
            return make(value, dtype, device)
        except OverflowError:  # a whole number of Python's
            raise ArgumentError(f"{shown(value)} was given for {var.name}, which {dtype} does not hold") from None

    return convert


def _taken(var: Var, given: Given, width: np.dtype[Any], library: Library) -> np.dtype[Any]:
    """The element type that a tensor is taken in."""
    space, dtype = var.type, given.dtype.newbyteorder("=")
    assert isinstance(space, Space)
    weak = given.what == "number" or (library.name != "numpy" and given.library is not library)
    if space.dtype is int:
        dtype = _INTEGER
    elif dtype.kind not in "fc" or weak:
        # Python numbers do not widen float32; NumPy's arrays of integers do.
        dtype = width if weak or library.name != "numpy" else np.dtype(float)
    if space.dtype is complex and dtype.kind != "c":
        dtype = np.result_type(dtype, np.complex64)
    return library.result_type(dtype, width)


def _check_sort(var: Var, given: Given) -> None:
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
    if given.what == "other":
        raise ArgumentError(f"a {given.type} was given for {name}, which is no array of numbers", hint=given.hint)
    if given.what == "ragged":
        raise unequal_lists(f"what was given for {name}")
    kind = getattr(given.dtype, "kind", "V")
    if kind == "V":
        raise ArgumentError(
            f"the array given for {name} has dtype {given.dtype}, which is not supported",
            hint="convert it to float32 or another element type that NumPy has too",
        )
    if kind not in "biufc":
        raise ArgumentError(
            f"the array given for {name} has dtype {given.dtype}, which is not a number type",
            hint="convert it first: x.astype(float)",
        )
    if kind not in KINDS[var.type.dtype]:
        real = "take its real part, or declare" if kind == "c" else "round it, or declare"
        wanted = NUMBERS[var.type.dtype]
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


def unknown_size(name: str, hint: str) -> ArgumentError:
    """The error for a size that no axis of an argument shows; the hint says how it is given."""
    return ArgumentError(f"the size {name} is not known", hint=f"no axis of an argument shows it: {hint}")


def unequal_lists(what: str) -> ArgumentError:
    """The error for lists that are no array."""
    return ArgumentError(
        f"{what} is not an array: its lists have unequal lengths", hint="make them equally long, or fill them up"
    )


def bind_sizes(shapes: Mapping[Var, tuple[int, ...]]) -> dict[str, int]:
    """The named sizes, read off the shapes of arrays for tensor parameters.

    Raises ArgumentError for a wrong number of axes, a fixed size that differs, an even length of a Symmetric axis, and
    one name with two sizes; UnsupportedError for an axis over the real line.
    """
    sizes: dict[str, int] = {}
    places: dict[str, str] = {}
    sums: list[tuple[str, int, str]] = []
    for var, shape in shapes.items():
        assert isinstance(var.type, Space), var
        axes = var.type.axes
        expected = ", ".join(map(_axis_text, axes))
        if len(shape) != len(axes):
            raise ArgumentError(
                f"{var.name} has {len(shape)} {'axis' if len(shape) == 1 else 'axes'}, shape {shape}, but {len(axes)} "
                f"were expected: ({expected})"
            )
        for n, (axis, length) in enumerate(zip(axes, shape, strict=True)):
            place = f"axis {n} of {var.name} (shape {shape}, expected ({expected}))"
            name, size = _size(axis, length, place)
            if name is not None and not name.isidentifier():
                sums.append((name, size, place))
                continue
            if name is not None and sizes.setdefault(name, size) != size:
                raise ArgumentError(f"{name} is {sizes[name]} by {places[name]}, but {size} by {place}")
            places.setdefault(name or "", place)
    for each in sorted(sums, key=lambda each: len(names_in(each[0]))):
        _bind_sum(*each, sizes)
    return sizes


def _bind_sum(size: str, length: int, place: str, sizes: dict[str, int]) -> None:
    """Checks the length of an axis whose size is a sum of names, or finds the one name that nothing else shows."""
    names, offset = size_parts(size)
    unknown = [name for name in names if name not in sizes]
    if len(unknown) == 1:
        factor = names[unknown[0]]
        rest = length - offset - sum(names[name] * sizes[name] for name in names.keys() & sizes.keys())
        if rest % factor or rest // factor < 0:
            raise ArgumentError(f"{place} has {length} elements, which is no {size}")
        sizes[unknown[0]] = rest // factor
    elif not unknown and size_value(size, sizes) != length:
        known = ", ".join(f"{name} = {sizes[name]}" for name in sorted(names))
        raise ArgumentError(f"{place} has {length} elements, but {size_value(size, sizes)} were expected for {known}")


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


def _can_take(function: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with so many arguments, as far as Python tells."""
    try:
        inspect.signature(function).bind(*range(count))
    except ValueError:  # of functions that are not written in Python, some tell nothing
        return True
    except TypeError:
        return False
    return True


@dataclass(frozen=True)
class _NamedMap:
    """The callable given for a named map, its results checked."""

    name: str
    type: Function
    function: Callable[..., Any]
    sizes: Mapping[str, int]
    library: Library
    width: np.dtype[Any]

    def __call__(self, *arguments: Any) -> Any:
        try:
            result = self.function(*arguments)
        except TypeError:
            if _can_take(self.function, len(arguments)):
                raise  # it is about something else
            raise ArgumentError(
                f"{self.name} takes {len(arguments)} arguments, which the function given for it cannot be called with",
                hint="give a function of as many parameters as the Function declares arguments",
            ) from None
        return self._checked(result, self.type.result, self.name)

    def pullback(self, position: int, arguments: tuple[Any, ...], cotangent: Any) -> Any:
        """The pullback of the map, if it brings one."""
        pullback = getattr(self.function, "pullback", None)
        if pullback is None:
            raise ArgumentError(
                f"the derivative of {self.name} is needed, but what was given for {self.name} has no pullback",
                hint="give a Program, or an object with a method pullback(position, arguments, cotangent)",
            )
        if not arguments:  # of a linear map: the same at every point
            space = self.type.arguments[0]
            shape = tuple(extent(axis, dict(self.sizes)) for axis in space.axes)
            arguments = (
                self.library.array(np.zeros(shape), np.result_type(self.width), self.library.device(cotangent)),
            )
        result = pullback(position, arguments, cotangent)
        return self._checked(result, self.type.arguments[position], f"the pullback of {self.name}")

    def _checked(self, result: Any, space: Space, what: str) -> Any:
        given = described(result)
        if given.dtype is None or (given.library is not None and given.library is not self.library):
            found = given.library.array_name if given.library else type(result).__name__
            raise ArgumentError(f"{what} gave a {found}, but a {self.library.array_name} was expected")
        expected = tuple(extent(axis, dict(self.sizes)) for axis in space.axes)
        if given.shape != expected:
            raise ArgumentError(f"{what} gave an array of shape {given.shape}, but {expected} was expected")
        if getattr(given.dtype, "kind", "V") not in KINDS[space.dtype]:
            raise ArgumentError(
                f"{what} gave {given.dtype}, but {NUMBERS[space.dtype]} were expected",
                hint=f"take its real part or round it, or declare {self.name} with that dtype",
            )
        var = Var("", space)
        convert = _converter(var, given, _taken(var, given, self.width, self.library), self.library, None)
        return convert(result) if convert else result
