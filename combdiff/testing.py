"""Checks for programs and their gradients: arrays with symmetries, central differences.

    ∂f/∂x ≈ (f(x + h) − f(x − h)) / 2h,        gradient = ∂f/∂Re z + i ∂f/∂Im z

    @given(cd.testing.tensors(ERI, N=3), cd.testing.tensors(Orbitals, N=3, Ne=2))
    def test_coulomb(J, C):
        cd.testing.check_grad(coulomb, "C", J=J, C=C)

Invariant: an array made for a Space has its symmetries exactly, not up to rounding. (Entries are multiples of
2⁻¹⁰, so the sums over the symmetry group are exact.) The gradient with respect to an array with symmetries is the
one with all entries independent, so single entries are moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from combdiff.domains import Action, Cyclic, Domain, Real, Space, Symmetric, extent, parse_symmetry
from combdiff.errors import ArgumentError
from combdiff.program import Program
from combdiff.terms import Var
from combdiff.transforms import grad

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Array = np.ndarray[Any, Any]

GRAIN = 1024  # entries are multiples of 1/GRAIN
PROBES = 24  # directions tried where there are too many entries to move each
MOST_ENTRIES = 200  # up to so many entries, each is drawn or moved by itself


# --- arrays with symmetry ------------------------------------------------------------------------------------------


def transform(array: Array, action: Action, space: Space) -> Array:
    """The array `sign · conj?(array[i'…])` that an action makes of an array of that Space (any sizes)."""
    for axis, negated in enumerate(action.negated):
        if negated:
            array = np.flip(array, axis)
            # On a cycle the index −0 is 0: it keeps its place.
            array = np.roll(array, 1, axis) if isinstance(space.axes[axis], Cyclic) else array
    array = np.transpose(array, np.argsort(action.axes)) if action.axes else array
    return action.sign * (array.conj() if action.conjugate else array)


def symmetrize(array: Any, space: Space) -> Array:
    """The mean of the array over the symmetry group of the Space: the nearest array that has its symmetries.

    Takes and gives an array of `space.order` axes. The element type becomes that of the Space; whole numbers are
    rounded. Raises ArgumentError where the order does not fit or axes that a symmetry exchanges differ in length.
    """
    array = np.asarray(array)
    named_sizes([Var("the array", space)], {"the array": array})
    mean = sum(transform(array, action, space) for action in space.group) / len(space.group)
    return np.asarray(np.rint(mean) if space.dtype is int else mean).astype(space.dtype)


def broken_symmetry(array: Any, space: Space, tolerance: float = 1e-9) -> tuple[str, float] | None:
    """The symmetry equation of the Space that the array violates most, with the largest deviation; None if it has all.

    A deviation counts as one where it exceeds `tolerance` times the largest entry (or 1, if that is larger).
    """
    array = np.asarray(array)
    worst, scale = None, max(1.0, _largest(array))
    for equation in space.symmetry:
        image = transform(array, parse_symmetry(equation, space.axes, space.dtype), space)
        deviation = _largest(array - image)
        if not deviation <= max(tolerance * scale, worst[1] if worst else 0.0):
            worst = equation, deviation
    return worst


def _largest(array: Any) -> float:
    return float(np.max(np.abs(array), initial=0.0))


def array_shape(space: Space, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an array of that Space. Raises ArgumentError for the real line and for a size that is not given."""
    for axis in space.axes:
        if isinstance(axis, Real):
            raise ArgumentError(f"{space!r} has an axis over the real line: no array is of that kind")
        name = _size(axis)
        if isinstance(name, str) and name not in sizes:
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

    names = {name for axis in space.axes if isinstance(name := _size(axis), str)}
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
    sizes: dict[str, int] = {}
    for parameter in parameters:
        if isinstance(parameter.type, Space) and parameter.name in arrays:
            _read_sizes(parameter.name, parameter.type, np.shape(arrays[parameter.name]), sizes)
    return sizes


def _read_sizes(name: str, space: Space, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    if len(shape) != space.order:
        raise ArgumentError(f"{name} has {len(shape)} axes, shape {shape}, but {space!r} has {space.order}")
    for n, (axis, length) in enumerate(zip(space.axes, shape, strict=True)):
        found = length
        if isinstance(axis, Symmetric):
            if length % 2 == 0:
                raise ArgumentError(f"axis {n} of {name} is symmetric about 0 but has {length} entries, an even number")
            found = length // 2
        declared = _size(axis)
        expected = sizes.setdefault(declared, found) if isinstance(declared, str) else declared
        if found != expected:
            size = f"{declared} = {expected}" if isinstance(declared, str) else f"{expected}"
            raise ArgumentError(f"axis {n} of {name} has size {found}, but {axis!r} stands for {size} here")


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
    named_sizes(parameters, arrays)
    return {p.name: _check_argument(p, arrays[p.name]) for p in parameters}


def _check_argument(parameter: Var, value: Any) -> Any:
    space = parameter.type
    if not isinstance(space, Space):
        return value
    array = np.asarray(value)
    if array.dtype.kind == "c" and space.dtype is not complex:
        raise ArgumentError(f"{parameter.name} is complex, but {space!r} is declared with dtype {space.dtype.__name__}")
    broken = broken_symmetry(array, space)
    if broken:
        raise ArgumentError(
            f"{parameter.name} violates its declared symmetry {broken[0]!r}: "
            f"the two sides differ by up to {broken[1]:.3g}",
            hint="cd.testing.tensors(space, …) and cd.testing.symmetrize(array, space) make arrays that have it",
        )
    return array.astype(space.dtype)


# --- central differences -------------------------------------------------------------------------------------------


def default_step(array: Array) -> float:
    """The step that balances rounding against truncation: ε^(1/3) times the largest entry (or 1, if larger)."""
    return float(np.finfo(float).eps ** (1 / 3)) * max(1.0, _largest(array))


def _slope(function: Callable[..., Any], arrays: Mapping[str, Any], name: str, move: Array) -> float:
    """The central difference of a real scalar function along a small move of one array."""
    ahead, behind = (function(**{**arrays, name: arrays[name] + s * move}) for s in (1.0, -1.0))
    return float(np.real(np.asarray(ahead) - np.asarray(behind)).item() / 2)


def _unit_moves(array: Array) -> Iterator[tuple[tuple[int, ...], complex, Array]]:
    """For each entry and real direction: the entry, the direction (1 or 1j) and the unit array."""
    for entry in np.ndindex(array.shape):
        for direction in (1.0, 1j) if array.dtype.kind == "c" else (1.0,):
            unit = np.zeros(array.shape, array.dtype)
            unit[entry] = direction
            yield entry, direction, unit


def finite_difference_gradient(
    function: Callable[..., Any], arrays: Mapping[str, Any], name: str, step: float | None = None
) -> Array:
    """`∂f/∂Re z + i ∂f/∂Im z` by central differences, all entries of the array independent.

    `function` takes arrays by name and gives a real number; the result is shaped like `arrays[name]`.
    """
    array = _inexact(arrays[name])
    h = step or default_step(array)
    gradient = np.zeros(array.shape, array.dtype)
    for entry, direction, unit in _unit_moves(array):
        gradient[entry] += direction * _slope(function, {**arrays, name: array}, name, h * unit) / h
    return gradient


def finite_difference_pullback(
    function: Callable[..., Any], arrays: Mapping[str, Any], name: str, cotangent: Any, step: float | None = None
) -> Array:
    """`V⁻¹ Jᵀ V(k)` by central differences, `V(z) = [Re z, Im z]` and k the cotangent, shaped like the value.

    It is the gradient of `Re Σ conj(k)·f`. The result is shaped like `arrays[name]`.
    """
    seed = np.conj(np.asarray(cotangent))
    return finite_difference_gradient(lambda **a: np.sum(np.real(seed * function(**a))), arrays, name, step)


def _inexact(value: Any) -> Array:
    array = np.asarray(value)
    return array.astype(complex if array.dtype.kind == "c" else float)


def check_grad(
    f: Program,
    /,
    wrt: str | tuple[str, ...] | None = None,
    *,
    tolerance: float = 1e-6,
    step: float | None = None,
    **arrays: Any,
) -> float:
    """Compare `grad(f, wrt)` with central differences at the arrays given by name; return the largest error.

    Every entry is moved, in the imaginary direction too where the argument is complex; an array of more than 200
    entries is moved in 24 fixed random directions. An error is relative to the size of the largest slope found
    (absolute where that is below 1). Raises AssertionError naming the entry where an error exceeds `tolerance`,
    and ArgumentError where the arrays do not have the declared shapes and symmetries.
    """
    arguments = check_arguments(f.parameters, arrays)
    names = (f.parameters[0].name,) if wrt is None else (wrt,) if isinstance(wrt, str) else tuple(wrt)
    derivative = grad(f, wrt)(**arguments)
    gradients = derivative if isinstance(wrt, tuple) else (derivative,)
    errors = [
        _check_one(f, name, np.asarray(gradient), arguments, tolerance, step)
        for name, gradient in zip(names, gradients, strict=True)
    ]
    return max(errors, default=0.0)


def _check_one(
    f: Program, name: str, gradient: Array, arguments: dict[str, Any], tolerance: float, step: float | None
) -> float:
    """The largest error of the gradient with respect to one argument."""
    array = _inexact(arguments[name])
    if gradient.shape != array.shape:
        raise AssertionError(f"the gradient with respect to {name} has shape {gradient.shape}, not {array.shape}")
    h, arguments = step or default_step(array), {**arguments, name: array}
    rows = []
    for place, unit in _probes(array):
        expected = _slope(f, arguments, name, h * unit) / h
        rows.append((place, expected, float(np.sum(np.real(np.conj(unit) * gradient)[unit != 0]))))
    scale = max([1.0, *(abs(expected) for _, expected, _ in rows)])
    errors = [abs(found - expected) / scale for _, expected, found in rows]
    if not rows:
        return 0.0
    worst = int(np.argmax(errors))  # NaN counts as largest
    if not errors[worst] <= tolerance:
        place, expected, found = rows[worst]
        raise AssertionError(
            f"the gradient with respect to {name} is wrong {place}: central differences give {expected:.9g}, "
            f"the gradient {found:.9g} (error {errors[worst]:.2g}, tolerance {tolerance:.2g})"
        )
    return errors[worst]


def _probes(array: Array) -> Iterator[tuple[str, Array]]:
    """Unit moves, each with words for the place: every entry, or random directions where there are many."""
    if array.size <= MOST_ENTRIES:
        for entry, direction, unit in _unit_moves(array):
            part = "" if array.dtype.kind != "c" else " (imaginary part)" if direction == 1j else " (real part)"
            yield f"at {list(entry)}{part}", unit
        return
    rng = np.random.default_rng(0)
    for number in range(PROBES):
        move: Array = np.asarray(rng.standard_normal(array.shape))
        move = move + 1j * rng.standard_normal(array.shape) if array.dtype.kind == "c" else move
        yield f"along random direction {number}", move / np.linalg.norm(move)
