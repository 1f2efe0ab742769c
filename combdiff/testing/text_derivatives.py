"""Central differences for derivatives of tensors, at random values.

    ∂f[o]/∂x[d] ≈ (f[o](x + h e_d) − f[o](x − h e_d)) / 2h

    errors(parse(text), derive(text), "x")  =  [3e-11]

A tensor with symmetries is moved within its Space, a complex tensor in both directions:
∂f/∂z = (∂f/∂Re − i ∂f/∂Im)/2 and ∂f/∂z̄ = (∂f/∂Re + i ∂f/∂Im)/2.

Invariant: axes of unequal classes get unequal lengths, so exchanged axes are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from math import prod
from typing import Any

import numpy as np

from combdiff.api import Derivation, Program
from combdiff.errors import UnsupportedError
from combdiff.ir import Affine, Apply, Range, Space, Var, extent, subterms, type_of
from combdiff.planning import size_names
from combdiff.runtime import run
from combdiff.testing.arrays import random_arrays
from combdiff.testing.differences import default_step, unit_moves

Array = np.ndarray[Any, Any]
LENGTHS = ((3, 2, 4), (2,), (1,))
MOST_ENTRIES = 20_000  # of a derivative
MANY_ENTRIES = 1_000_000  # that are refused
CLOSE, STEPS = 1e-7, (1.0, 32.0)  # an error worth a second look, and the steps for it in units of the usual one


def random_sizes(program: Program) -> dict[str, int]:
    """A small length for every size name of a program, smaller where its derivatives would have many entries.

    An axis that is read at 7 has 8 entries. Raises UnsupportedError where there are too many.
    """
    names, least = sorted(size_names(program.term)), _least_sizes(program)
    for lengths in LENGTHS:
        sizes = {name: max(length, least.get(name, 0)) for name, length in zip(names, cycle(lengths), strict=False)}
        largest = max((_entries(p.type, sizes) for p in program.parameters), default=1)
        entries = largest * _entries(type_of(program.term.body), sizes)
        if entries <= MOST_ENTRIES:
            break
    if entries > MANY_ENTRIES:
        needs = max(least, key=least.__getitem__, default="")
        raise UnsupportedError(
            f"the derivative has {entries} entries or more, which are not compared one by one",
            hint=f"an element is read at {least[needs] - 1}; try a smaller number" if needs else "",
        )
    return sizes


def _least_sizes(program: Program) -> dict[str, int]:
    """For each named size that an element with a number for an index needs, how many entries it needs."""
    least: dict[str, int] = {}
    for node in subterms(program.term):
        if isinstance(node, Apply) and isinstance(node.function, Var) and isinstance(node.function.type, Space):
            for axis, at in zip(node.function.type.axes, node.arguments, strict=True):
                if isinstance(axis, Range) and isinstance(axis.size, str) and isinstance(at, Affine) and not at.free:
                    least[axis.size] = max(least.get(axis.size, 0), int(at.offset) + 1)
    return least


def _entries(space: object, sizes: dict[str, int]) -> int:
    """How many entries an array, or all of a tuple of arrays, would have."""
    if isinstance(space, tuple):
        return sum(_entries(item, sizes) for item in space)
    assert isinstance(space, Space)
    return prod(extent(axis, sizes) for axis in space.axes)


def random_values(program: Program, sizes: Mapping[str, int], seed: int = 0) -> dict[str, Array]:
    """Arrays by name with (real parts of) entries in (0, 1), where every function of the language is smooth."""
    rng = np.random.default_rng(seed)
    return {name: 0.5 + 0.4 * array for name, array in random_arrays(program.parameters, rng, sizes).items()}


def value(program: Program, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> Any:
    """The value of a program; domain errors give nan without a warning."""
    with np.errstate(all="ignore"):
        return run(program.term, [arrays[p.name] for p in program.parameters], sizes)


def central_differences(
    program: Program, arrays: Mapping[str, Array], sizes: Mapping[str, int], name: str, scale: float = 1.0
) -> list[Array]:
    """The derivative by one tensor, result axes first; for a complex one by z and by z̄. `scale` widens the step."""
    array = np.asarray(arrays[name], complex if arrays[name].dtype.kind == "c" else float)
    space = next(p.type for p in program.parameters if p.name == name)
    assert isinstance(space, Space)
    step = scale * default_step(array)

    def slopes(direction: complex) -> Array:
        moved = []
        for unit in (unit for _, along, unit in unit_moves(array, space) if along == direction):
            ahead, behind = array + step * unit, array - step * unit
            two = [np.asarray(value(program, {**arrays, name: each}, sizes)) for each in (ahead, behind)]
            with np.errstate(all="ignore"):
                moved.append((two[0] - two[1]) / (2 * step))
        if not moved:  # a tensor without entries
            return np.zeros((*np.shape(value(program, arrays, sizes)), *array.shape))
        stacked = np.stack(moved, axis=-1)
        return stacked.reshape((*stacked.shape[:-1], *array.shape))

    real = slopes(1.0)
    if array.dtype.kind != "c":
        return [real]
    imaginary = slopes(1j)
    return [(real - 1j * imaginary) / 2, (real + 1j * imaginary) / 2]


def error(found: Any, expected: Array) -> float:
    """The largest deviation, relative to the largest entry (absolute where that is below 1); ∞ for unequal shapes."""
    found = np.asarray(found)
    if found.shape != expected.shape:
        return float("inf")
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    with np.errstate(all="ignore"):
        return float(np.max(np.abs(found - expected), initial=0.0)) / scale


def extrapolated_differences(
    program: Program, arrays: Mapping[str, Array], sizes: Mapping[str, int], name: str, scale: float
) -> list[Array]:
    """Central differences of two steps h and 2h without their h² term: (4 D(h) − D(2h)) / 3."""
    near, far = (central_differences(program, arrays, sizes, name, wide) for wide in (scale, 2 * scale))
    return [(4 * a - b) / 3 for a, b in zip(near, far, strict=True)]


def largest_error(program: Program, derivative: Program, names: tuple[str, ...], seed: int = 0) -> float:
    """The largest error of a derivative by the given names at random values; nan where either is not finite.

    A name that is no parameter has the derivative 0, shaped like the program's result.
    """
    sizes = random_sizes(program)
    arrays = random_values(program, sizes, seed)
    found = value(derivative, arrays, sizes)
    blocks = found if len(names) > 1 else (found,)
    pairs = zip(names, blocks, strict=True)
    return float(np.max([_block_error(program, arrays, sizes, name, block) for name, block in pairs]))


def largest_errors(found: Derivation) -> float:
    """The largest error of any of the derivatives against central differences of what stands before it; nan counts."""
    steps = zip(found.steps, found.steps[1:], found.names, strict=False)
    return float(np.max([largest_error(*step) for step in steps]))


def _block_error(
    program: Program, arrays: Mapping[str, Array], sizes: Mapping[str, int], name: str, block: Any
) -> float:
    """The error of the derivative by one tensor, the least that any of a few steps finds.

    Beside a pole short steps without the h² term are right; where a value is a difference of large ones, wide ones.
    """
    space = next((p.type for p in program.parameters if p.name == name), None)
    if not isinstance(space, Space):
        return error(block, np.zeros(np.shape(value(program, arrays, sizes))))
    parts = block if space.dtype is complex else (block,)

    def largest(expected: list[Array]) -> float:
        return float(np.max([error(*pair) for pair in zip(parts, expected, strict=True)]))

    found = largest(central_differences(program, arrays, sizes, name))
    for scale in STEPS:
        if found > CLOSE:
            found = min(found, largest(extrapolated_differences(program, arrays, sizes, name, scale)))
    return found
