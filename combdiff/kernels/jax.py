"""Kernels on JAX's arrays, which never change: what `kernels.numpy` has under the same names.

    _scatter(k, idx, n)                       the sum of k at each index
    _on_host(solver, given, dtype)            what NumPy solves, by a callback where arrays are traced
    _found(attempt, solver, given, dtype)     the same, where an attempt in compiled code fails

Invariant: each kernel works under jax.jit, jax.grad and jax.vmap; what the values of arrays decide, `lax.cond` does.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from combdiff.kernels.boxes import _product_of_kept, _product_parts, _selection
from combdiff.kernels.numerics import _system
from combdiff.kernels.positions import _folded, _gathered

LONG_ROW = 64  # elements from which a product with ones is quicker than a sum column by column


def _gather(array: Any, axes: Any, shape: Any) -> Any:
    """array at positions (start + steps · t) / divisor along each axis; zeros outside and between the elements."""
    if 0 in shape or 0 in array.shape:
        return jnp.zeros(shape, array.dtype)
    return _gathered(jnp, jnp.arange, array, axes, shape)


def _by_pads(array: Any, axes: Any, shape: Any) -> Any:
    """Elements at places along each axis, which is read along one axis of its own of the result, or at one place."""
    if 0 in shape or 0 in array.shape:
        return jnp.zeros(shape, array.dtype)
    labels = [[n for n, step in enumerate(steps) if step] for _, steps, _, _ in axes]
    used = [n for along in labels for n in along]
    for axis, (along, (start, steps, divisor, _)) in enumerate(zip(labels, axes, strict=True)):
        step, count = (steps[along[0]], shape[along[0]]) if along else (1, 1)
        array = _padded(array, axis, divisor, start, step, count)
    array = array.reshape([shape[along[0]] for along in labels if along])
    array = jnp.transpose(array, [used.index(n) for n in sorted(used)])
    return jnp.broadcast_to(array.reshape([shape[n] if n in used else 1 for n in range(len(shape))]), shape)


def _padded(array: Any, axis: Any, divisor: Any, start: Any, step: Any, count: Any) -> Any:
    """The elements at (start + step · t) / divisor along one axis, for t below count; zeros outside and between.

    XLA fuses pads and slices, and no gather, into what reads them.
    """
    first = min(start, start + step * (count - 1))
    end = first + abs(step) * (count - 1) + 1
    width = [(0, 0, 0)] * array.ndim
    width[axis] = (-first, end - divisor * (array.shape[axis] - 1) - 1, divisor - 1)
    array = jax.lax.pad(array, jnp.zeros((), array.dtype), width)
    array = array[(slice(None),) * axis + (slice(None, None, abs(step)),)]
    return array if step > 0 else jnp.flip(array, axis)


def _stack(arrays: Any, axis: Any) -> Any:
    """jnp.stack by a choice for each element: XLA makes no arrays that it would put together only then."""
    each = [jnp.expand_dims(array, axis) for array in arrays]
    position = jnp.expand_dims(jnp.arange(len(each)), [n for n in range(each[0].ndim) if n != axis])
    return functools.reduce(lambda rest, n: jnp.where(position == n, each[n], rest), range(len(each) - 1), each[-1])


def _sum_of_rows(array: Any, count: int) -> Any:
    """The sum over so many of the first axes: on CPUs of long rows as a product, which takes them in their order.

    XLA adds up column by column there, and computes what is summed in that order, too.
    """
    rows, shape = math.prod(array.shape[:count]), array.shape[count:]

    def by_product(array: Any) -> Any:
        flat = array.reshape(rows, math.prod(shape))
        return jnp.matmul(jnp.ones(rows, array.dtype), flat, precision="highest").reshape(shape)

    def by_columns(array: Any) -> Any:
        return array.sum(tuple(range(count)))

    if math.prod(shape) < LONG_ROW or not jnp.issubdtype(array.dtype, jnp.inexact):
        return by_columns(array)
    return jax.lax.platform_dependent(array, cpu=by_product, default=by_columns)


def _hypot(one: Any, other: Any) -> Any:
    """jnp.hypot; of single numbers the size of a complex number, one operation of XLA's in place of some twenty.

    XLA makes one kernel of a loop of few operations; over arrays it is quicker with those of jnp.hypot.
    """
    if jnp.ndim(one) or jnp.ndim(other):
        return jnp.hypot(one, other)
    kind = jnp.result_type(one, other, float)
    wide = jnp.promote_types(kind, jnp.float32)
    one, other = jnp.asarray(one, wide), jnp.asarray(other, wide)
    size = jnp.abs(jax.lax.complex(one, other))
    return jnp.where(jnp.isinf(one) | jnp.isinf(other), jnp.inf, size).astype(kind)


def _det_times_inverse(matrix: Any) -> Any:
    """The adjugate of a matrix, or of each in a stack: det(A)·A⁻¹ by one LU where that keeps all digits but a few.

    Rows of the unit matrix go through the elimination of the transposed matrix beside it. It is compared and chosen
    transposed, which is how a gradient reads it.
    """
    if 0 in matrix.shape:
        return jnp.linalg.inv(matrix)
    unit = jnp.broadcast_to(jnp.eye(matrix.shape[-1], dtype=matrix.dtype), matrix.shape)
    factors, pivots, _ = jax.lax.linalg.lu(jnp.concatenate([matrix.swapaxes(-1, -2), unit], -1))
    upper, rows = jnp.split(factors, 2, -1)
    det = _det_of_lu(upper, pivots)
    adjugate = jax.lax.linalg.triangular_solve(upper, det[..., None, None] * rows, left_side=True)
    sizes = [(abs(each) @ jnp.ones_like(abs(each[..., 0]))[..., None]).max((-2, -1)) for each in (matrix, adjugate)]
    keeps = jnp.all(sizes[0] * sizes[1] * jnp.finfo(matrix.dtype).eps ** 0.5 < 0.01 * abs(det))
    return _either(keeps, lambda: adjugate, lambda: _adjugate_transposed(matrix)).swapaxes(-1, -2)


def _det_of_lu(factors: Any, pivots: Any) -> Any:
    """The determinant of a matrix, or of each in a stack, by its LU decomposition: each swap of rows turns the sign."""
    swapped = jnp.where(pivots == jnp.arange(pivots.shape[-1]), 1, -1)
    return (swapped * jnp.diagonal(factors, 0, -2, -1)).prod(-1)


def _adjugate_transposed(matrix: Any) -> Any:
    """The transposed adjugate of a matrix, or of each in a stack, of singular matrices too, row by row.

    As `kernels.numerics._adjugate`, with loops: XLA runs a program of few operations at once, and counts those of a
    branch that is not taken, too, but a loop's once.
    """

    def of_one(matrix: Any) -> Any:
        left, values, right = jnp.linalg.svd(matrix)
        turned = _det_of_lu(*jax.lax.linalg.lu(jnp.stack([left, right]))[:2]).prod()
        places = jnp.arange(len(values))
        others = jax.lax.map(lambda place: jnp.where(places == place, 1, values).prod(), places)
        return jax.lax.map(lambda row: turned * ((row * others) @ right.conj()), left.conj())

    return jnp.vectorize(of_one, signature="(n,n)->(n,n)")(matrix)


def _placed(part: Any, box: Any, shape: Any) -> Any:
    """Zeros of a shape, with a part at the slices of a box, which step forward."""
    around = []
    for size, place in zip(shape, box, strict=False):
        places = range(size)[place]
        around.append((places.start, size - 1 - places[-1], places.step - 1) if places else (0, size, 0))
    around += [(0, 0, 0)] * (part.ndim - len(around))
    return jax.lax.pad(part, jnp.zeros((), part.dtype), around)


def _scatter(values: Any, index: Any, size: Any) -> Any:
    """The sum of values at each index below size; the axes of index come first in values."""
    flat, rest = index.reshape(-1), values.shape[index.ndim :]
    return jnp.zeros((size, *rest), values.dtype).at[flat].add(values.reshape(flat.shape + rest))


def _fold(array: Any, stride: Any, start: Any, size: Any) -> Any:
    """The sums of the elements (i, j, …) at stride·i + j + start along one axis of that size, for the first two."""
    return _folded(jnp, functools.partial(jnp.zeros, dtype=array.dtype), array, stride, start, size)


def _spread(array: Any, along: Any, shape: Any) -> Any:
    """Zeros of a shape, with the array where the axes that go along one of its axes coincide."""
    sizes = [shape[along.index(n)] for n in range(max(along) + 1)]
    places = jnp.meshgrid(*map(jnp.arange, sizes), indexing="ij", sparse=True)
    return jnp.zeros(shape, jnp.result_type(array)).at[tuple(places[n] for n in along)].set(array)


def _on_host(solver: Any, given: Any, dtype: Any, *captures: Any) -> Any:
    """A solution that NumPy finds for arrays, by a callback where they are traced, as an array of that type."""
    from jax import ShapeDtypeStruct, core, pure_callback

    def found(given: Any, *captures: Any) -> Any:
        solution = solver(np.asarray(given), np.dtype(dtype), *[np.asarray(value) for value in captures])
        return np.asarray(solution, dtype)

    if any(isinstance(value, core.Tracer) for value in (given, *captures)):
        result = ShapeDtypeStruct(jnp.shape(given), dtype)
        return pure_callback(found, result, given, *captures, vmap_method="sequential")
    return jnp.asarray(found(given, *captures))


def _found(attempt: Any, solver: Any, given: Any, dtype: Any, *captures: Any) -> Any:
    """The solution that an attempt in compiled code gives with a truth, or NumPy's where that does not hold.

    NumPy's alone where nothing is traced, and in single precision, in which no search would come to its end.
    """
    traced = any(isinstance(value, jax.core.Tracer) for value in (given, *captures))
    if not traced or not given.size or jnp.result_type(float) != np.dtype(float):
        return _on_host(solver, given, dtype, *captures)

    @jax.custom_batching.custom_vmap
    def found(*arguments: Any) -> Any:
        solution, holds = attempt(arguments[0], dtype, *arguments[1:])
        return jax.lax.cond(holds, lambda: solution, lambda: _on_host(solver, arguments[0], dtype, *arguments[1:]))

    @found.def_vmap
    def one_by_one(size: Any, mapped: Any, *arguments: Any) -> Any:
        several = [value for value, along in zip(arguments, mapped, strict=True) if along]

        def each(some: Any) -> Any:
            some = iter(some)
            return found(*[next(some) if along else value for value, along in zip(arguments, mapped, strict=True)])

        return jax.lax.map(each, several), True

    return found(given, *captures)


def _newton(kind: Any, system: Any, given: Any, dtype: Any, *captures: Any) -> Any:
    """A root or minimum by Newton's steps, and whether each did half of what it promised, down to rounding errors."""
    packed, unpacked, evaluated = _system(jnp, system, jnp.shape(given), dtype, captures)

    def step(state: Any) -> Any:
        n, v, _, before, bound, _, _ = state
        *objective, residual, matrix = evaluated(v)
        if kind == "argmin":
            value = objective[0].real.astype(float)
            factor = jax.lax.linalg.cholesky(matrix, symmetrize_input=False)
            move = jax.scipy.linalg.cho_solve((factor, True), residual, check_finite=False)
        else:
            value = jnp.sqrt(residual @ residual)
            move = jnp.linalg.solve(matrix, residual)
        promised = residual @ move / 2 if kind == "argmin" else value
        v = v - move
        size = jnp.abs(move).max() / jnp.maximum(1, jnp.abs(v).max())
        goes = (value <= bound) & jnp.isfinite(size)
        ends = (size <= 1e-12) | ((0.8 * before < size) & (size < 1e-6))
        bound = jnp.where(size > 1e-6, value - promised / 2 + 1e-15 * jnp.abs(value), jnp.inf)
        return n + 1, v, matrix, size, bound, goes, ends

    v = packed(given)
    begun = (0, v, jnp.zeros(v.shape * 2), jnp.inf, jnp.inf, True, False)
    ended = jax.lax.while_loop(lambda state: state[-2] & ~state[-1] & (state[0] < 20), step, begun)
    _, v, matrix, _, _, goes, ends = ended
    return unpacked(v), goes & ends & (_condition(matrix) < 1e14)


def _solution(system: Any, order: Any, given: Any, dtype: Any, *captures: Any) -> Any:
    """The k with H(k) = given for a linear map H, as NumPy's solver has it, and whether H is not singular."""
    packed, unpacked, evaluated = _system(jnp, system, given.shape[given.ndim - order :], dtype, captures)
    right = packed(given)
    matrix = evaluated(jnp.zeros(right.shape[-1]))[-1]
    solved = jnp.linalg.solve(matrix, right.reshape(-1, right.shape[-1]).T)
    return unpacked(solved.T.reshape(right.shape)), _condition(matrix) < 1e14


def _condition(matrix: Any) -> Any:
    """The condition number of a matrix, by the largest sum of a column."""
    return jnp.abs(matrix).sum(0).max() * jnp.abs(jnp.linalg.inv(matrix)).sum(0).max()


def _magnitude(array: Any, axes: Any, degree: Any) -> Any:
    """A power of 2 near the largest size of the finite elements along axes; 1 where its powers are safe.

    Powers of more than that degree, of sums. No result depends on it, so that no derivative goes through it.
    """
    from jax import lax

    sizes = jnp.abs(lax.stop_gradient(array))
    if not jnp.issubdtype(sizes.dtype, jnp.floating):
        return jnp.ones([size for axis, size in enumerate(array.shape) if axis not in axes])
    limits = jnp.finfo(sizes.dtype)
    safe = float(limits.max) ** (1 / (4 * degree))
    largest = jnp.where(jnp.isfinite(sizes), sizes, 0).max(axes, initial=0)
    exponent = jnp.frexp(jnp.maximum(largest, limits.tiny))[1] - 1
    is_one = ((largest > 1 / safe) & (largest < safe)) | (largest == 0)
    return jnp.where(is_one, jnp.ones_like(largest), jnp.ldexp(jnp.ones_like(largest), exponent))


@functools.partial(jax.jit, static_argnums=1)
def _keep(array: Any, conditions: Any) -> Any:
    """An array at the positions at which conditions hold; zeros elsewhere. XLA fuses masks with what reads them."""
    places = [jnp.arange(size).reshape((-1, *(1,) * (array.ndim - 1 - n))) for n, size in enumerate(array.shape)]
    for steps, start, modulus in conditions:
        form = sum((step * place for step, place in zip(steps, places, strict=True) if step), start)
        rest = form % abs(modulus) if modulus else form
        holds = rest >= 0 if modulus == 0 else rest == 0 if modulus and modulus > 0 else rest != 0
        array = jnp.where(holds, array, 0)
    return array


def _either(holds: Any, one: Any, other: Any) -> Any:
    """What `one` gives where a truth of values holds, else what `other` gives; under jax.vmap both are computed.

    Only what is traced is a conditional of XLA's, which would be compiled again in each call.
    """
    if isinstance(holds, jax.core.Tracer):
        return jax.lax.cond(holds, one, other)
    return one() if holds else other()


def _product_of_chosen(product: Any, array: Any, weights: Any, truths: Any) -> Any:
    """The product of an array and weights that are 0 where truth values do not choose, of what these choose alone."""
    result = product(array, weights)
    return _either(jnp.isfinite(result).all(), lambda: result, lambda: product(jnp.where(truths, array, 0), weights))


def _sum_of_chosen(made: Any, weights: Any, truths: Any, axes: Any) -> Any:
    """The sum over axes of what truth values choose of an array that is made while it is summed, times its weights.

    These are 0 where it is not chosen; the array is kept for neither way.
    """
    result = (made() * weights).sum(axes)
    chosen = lambda: (jnp.where(truths, made(), 0) * weights).sum(axes)  # noqa: E731
    return _either(jnp.isfinite(result).all(), lambda: result, chosen)


def _masked_product(product: Any, parts: Any, masks: Any, spared: Any = None) -> Any:
    """The product of parts where their masks hold: what stands beside has no share, even if it is infinite or nan."""
    return _product_of_kept(jnp, _either, product, parts, masks, spared)


@functools.partial(jax.jit, static_argnums=(0, 2, 3, 4, 5, 6))
def _within(function: Any, arrays: Any, patterns: Any, out: Any, sizes: Any, conditions: Any, hosts: Any) -> Any:
    """The function of arrays, a product summed over labels, of the positions alone at which conditions hold."""
    selected, product = (
        functools.partial(_selection, (jnp, jnp.arange, _either)),
        functools.partial(jnp.einsum, function),
    )
    shape = tuple(sizes[label] for label in out)
    parts = _product_parts(selected, product, arrays, patterns, out, sizes, conditions, hosts)
    placed = [_placed(part, box, shape) for box, part in parts]
    return functools.reduce(jnp.add, placed) if placed else jnp.zeros(shape, jnp.result_type(*arrays))
