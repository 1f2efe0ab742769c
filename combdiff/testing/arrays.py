"""Arrays that have the symmetries of a Space, and arguments checked for theirs.

    symmetrize([[0, 2], [4, 6]], Space("n", "n", symmetry=["A[i,j] = A[j,i]"]))   →   [[0, 3], [3, 6]]

Invariant: an array made for a Space has its symmetries exactly, not up to rounding. (Entries are multiples of
2⁻¹⁰, so the sums over the symmetry group are exact.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from combdiff.errors import ArgumentError, shown
from combdiff.hessians import transform
from combdiff.ir import Domain, Real, Space, Symmetric, Var, extent, names_in
from combdiff.runtime import bind_sizes

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Array = np.ndarray[Any, Any]

GRAIN = 1024  # entries are multiples of 1/GRAIN
MOST_ENTRIES = 200  # up to so many entries, each is drawn by itself


def symmetrize(array: Any, space: Space) -> Array:
    """The mean of the array over the symmetry group of the Space: the nearest array that has its symmetries.

    Takes and gives an array of `space.order` axes. The element type becomes that of the Space; whole numbers are
    rounded. Raises ArgumentError where the order does not fit or axes that a symmetry exchanges differ in length.
    """
    array = np.asarray(array)
    named_sizes([Var("the array", space)], {"the array": array})
    mean = sum(transform(array, action, space) for action in space.group) / len(space.group)
    return np.asarray(np.rint(mean) if space.dtype is int else mean).astype(space.dtype)


def broken_symmetry(array: Any, space: Space, tolerance: float = 1e-9, name: str = "A") -> tuple[str, float] | None:
    """The symmetry equation of the Space that the array violates most, with the largest deviation; None if it has all.

    The equation speaks of the array by the `name`.

    A deviation counts as one where it exceeds `tolerance` times the largest entry (or 1, if that is larger).
    """
    array = np.asarray(array)
    worst, scale = None, max(1.0, largest(array))
    for action in space.generators:
        image = transform(array, action, space)
        deviation = largest(array - image)
        if not deviation <= max(tolerance * scale, worst[1] if worst else 0.0):
            worst = action.equation(name), deviation
    return worst


def largest(array: Any) -> float:
    """The largest entry in absolute value, 0 if there is none."""
    return float(np.max(np.abs(array), initial=0.0))


def array_shape(space: Space, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an array of that Space. Raises ArgumentError for the real line and for a size that is not given."""
    for axis in space.axes:
        if isinstance(axis, Real):
            raise ArgumentError(f"{space!r} has an axis over the real line: no array is of that kind")
        for name in sorted(names_in(_size(axis)) - sizes.keys()):
            raise ArgumentError(f"the size {name} of {space!r} is not given", hint=f"add {name}=3")
    return tuple(extent(axis, dict(sizes)) for axis in space.axes)


def _size(axis: Domain) -> int | str | None:
    """The declared size of an axis, or the bound of a Symmetric one."""
    if isinstance(axis, Real):
        return None
    return axis.bound if isinstance(axis, Symmetric) else axis.size


def random_array(space: Space, rng: np.random.Generator, sizes: Mapping[str, int]) -> Array:
    """An array of that Space with entries in [−1, 1] (whole ones in [−9, 9]) that has its symmetries exactly."""
    shape = array_shape(space, sizes)
    if space.dtype is int:
        return symmetrize(rng.integers(-9, 10, shape), space)
    array = rng.integers(-GRAIN, GRAIN + 1, shape) / GRAIN
    if space.dtype is complex:
        array = array + 1j * rng.integers(-GRAIN, GRAIN + 1, shape) / GRAIN
    return symmetrize(array, space)


def random_arrays(parameters: Iterable[Var], rng: np.random.Generator, sizes: Mapping[str, int]) -> dict[str, Array]:
    """An array by name for each parameter that is a tensor, as `random_array` draws them; named maps are left out."""
    return {p.name: random_array(p.type, rng, sizes) for p in parameters if isinstance(p.type, Space)}


def tensors(space: Space, /, **sizes: int) -> SearchStrategy[Array]:
    """A Hypothesis strategy for arrays of that Space that have its symmetries exactly.

    `sizes` gives the named sizes; one not given is drawn from 1 to 4. Entries lie in [−1, 1] (parts of complex
    ones too; whole ones in [−9, 9]). Shrinks towards small arrays of zeros; arrays of more than 200 entries come
    from a drawn seed. Needs Hypothesis (`pip install combdiff[testing]`). Raises ArgumentError for a Space over
    the real line.
    """
    from hypothesis import strategies as st

    names = {name for axis in space.axes for name in names_in(_size(axis))}
    array_shape(space, dict.fromkeys(names, 1) | sizes)

    @st.composite
    def draw_array(draw: st.DrawFn) -> Array:
        known = dict(sizes) | {name: draw(st.integers(1, 4)) for name in sorted(names - set(sizes))}
        shape = array_shape(space, known)
        count = int(np.prod(shape, dtype=int))
        if count > MOST_ENTRIES:
            return random_array(space, np.random.default_rng(draw(st.integers(0, 2**32 - 1))), known)
        entries = st.integers(-9, 9) if space.dtype is int else st.integers(-GRAIN, GRAIN).map(lambda n: n / GRAIN)

        def part() -> Array:
            return np.array(draw(st.lists(entries, min_size=count, max_size=count))).reshape(shape)

        return symmetrize(part() + 1j * part() if space.dtype is complex else part(), space)

    return draw_array()


# --- arguments ------------------------------------------------------------------------------------------------------


def named_sizes(parameters: Iterable[Var], arrays: Mapping[str, Any]) -> dict[str, int]:
    """The named sizes, read off the shapes of the arrays given for those parameters that are tensors.

    Raises ArgumentError where an array has another order or size than its parameter, naming both.
    """
    given = (p for p in parameters if isinstance(p.type, Space) and p.name in arrays)
    return bind_sizes({p: np.shape(arrays[p.name]) for p in given})


def check_arguments(parameters: Iterable[Var], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name, arrays as NumPy arrays of the declared element type.

    Raises ArgumentError where one is missing or unknown, where shapes do not fit, and where an array violates a
    declared symmetry (naming the tensor, the equation and the largest deviation).
    """
    parameters = tuple(parameters)
    names = [parameter.name for parameter in parameters]
    for name in [*(n for n in names if n not in arrays), *(n for n in arrays if n not in names)]:
        problem = "is missing" if name in names else "is not a parameter"
        raise ArgumentError(f"{name} {problem}; the parameters are {', '.join(names)}")
    arrays = {p.name: _numbers(p, arrays[p.name]) for p in parameters}
    named_sizes(parameters, arrays)
    return {p.name: _check_argument(p, arrays[p.name]) for p in parameters}


def _numbers(parameter: Var, value: Any) -> Any:
    """An array of numbers for a tensor; what is given for a map as it is."""
    if not isinstance(parameter.type, Space):
        return value
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"what is given for {parameter.name} is no array: {error}") from None
    if array.dtype.kind not in "biufc":
        raise ArgumentError(f"what is given for {parameter.name} is no array of numbers: {shown(value)}")
    return array


def _check_argument(parameter: Var, value: Any) -> Any:
    space = parameter.type
    if not isinstance(space, Space):
        return value
    array = np.asarray(value)
    if array.dtype.kind == "c" and space.dtype is not complex:
        raise ArgumentError(f"{parameter.name} is complex, but {space!r} is declared with dtype {space.dtype.__name__}")
    broken = broken_symmetry(array, space, name=parameter.name)
    if broken:
        raise ArgumentError(
            f"{parameter.name} violates its declared symmetry {broken[0]!r}: "
            f"the two sides differ by up to {broken[1]:.3g}",
            hint="cd.testing.tensors(space, …) and cd.testing.symmetrize(array, space) make arrays that have it",
        )
    return array.astype(space.dtype)
