"""Kernels on NumPy's arrays: reads at affine positions, writes into arrays of zeros, solvers.

    _view(x, ((-1, (1, 1)),), (4, 3))           x of 5 elements: the 4 × 3 array of x[i + k − 1]
    _shifted(x, (-1,), (5,))                    0, x[0], x[1], x[2], x[3]
    _search("root", "x", lambda x: (x**2 - 2, 2 * x), 1.0, float)     = 1.41421356…

Each axis of an array that is read is given by `(start, steps)` (then a divisor for `_gather` and `_place`, and whether
it wraps for these and `_view_around`): it is read at `start + Σ steps[n]·t[n]`, modulo its length where it wraps;
outside the array there are zeros. Equations are solved by Newton's method. Where its first steps do not go down as they
promise, SciPy brings the search near (`root` by Powell's hybrid method, `minimize` by trust regions); plain steps
finish it, and what they tell about the solution is checked. A complex unknown counts as a pair of real ones, since
equations need not be holomorphic.

Invariant: no kernel writes to its arguments but `_deposit`, which owns its total; reading never fails, whatever the
sizes are; what a solver returns solves the equation and is isolated, all else raises ArithmeticError with the residual.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from combdiff.kernels.boxes import _kept_parts, _product_of_kept, _product_parts, _selection
from combdiff.kernels.numerics import _adjugate, _system, _wrapped
from combdiff.kernels.positions import _gathered

GRAM_BLOCK = 2**20  # elements that `_gram` weights at a time
GRAM_SMALL = 2**15  # and of arrays that it weights as a whole


def _reach(start: Any, steps: Any, shape: Any) -> Any:
    """The least and the greatest of the positions start + steps · t."""
    ends = [step * (n - 1) for step, n in zip(steps, shape, strict=True)]
    return start + sum(min(0, end) for end in ends), start + sum(max(0, end) for end in ends)


def _view(array: Any, axes: Any, shape: Any) -> Any:
    """array at positions start + steps · t along each axis; zeros outside; a view if it can be."""
    if 0 in shape:
        return np.zeros(shape, array.dtype)
    origin = []
    for axis, (start, steps) in enumerate(axes):
        low, high = _reach(start, steps, shape)
        if low < 0 or high >= array.shape[axis]:
            first, total = max(low, 0), high + 1 - low
            inner = array[(slice(None),) * axis + (slice(first, max(high + 1, first)),)]
            before = min(first - low, total)
            after = total - before - inner.shape[axis]
            array = np.pad(inner, [(before, after) if n == axis else (0, 0) for n in range(array.ndim)])
            start -= low
        origin.append(slice(start, None))
    strides = [
        sum(steps[n] * stride for (_, steps), stride in zip(axes, array.strides, strict=True))
        for n in range(len(shape))
    ]
    return np.lib.stride_tricks.as_strided(array[tuple(origin)], shape, strides, writeable=False)


def _view_around(array: Any, axes: Any, shape: Any) -> Any:
    """_view of an array that begins again after its end along the axes that say so."""
    laid = []
    for axis, (start, steps, wrap) in enumerate(axes):
        (low, high), size = _reach(start, steps, shape), array.shape[axis]
        if wrap and size and not 0 <= low <= high < size:
            array, start = _wrapped(np, array, axis, low, high + 1 - low), start - low
        laid.append((start, steps))
    return _view(array, laid, shape)


@np.errstate(invalid="ignore")
def _product_of_chosen(product: Any, array: Any, weights: Any, truths: Any) -> Any:
    """The product of an array and weights that are 0 where truth values do not choose, of what these choose alone."""
    result = product(array, weights)
    return result if np.isfinite(result).all() else product(np.where(truths, array, 0), weights)


def _shifted(array: Any, starts: Any, shape: Any) -> Any:
    """array at positions start + t along each axis; zeros outside."""
    result = np.zeros(shape, array.dtype)
    inner, outer = [], []
    for start, size, total in zip(starts, array.shape, shape, strict=True):
        low, high = max(0, -start), min(total, size - start)
        inner.append(slice(low, max(low, high)))
        outer.append(slice(low + start, max(low, high) + start))
    result[tuple(inner)] = array[tuple(outer)]
    return result


def _gather(array: Any, axes: Any, shape: Any) -> Any:
    """array at positions (start + steps · t) / divisor along each axis; zeros outside and between the elements."""
    if 0 in shape or 0 in array.shape:
        return np.zeros(shape, array.dtype)
    return _gathered(np, np.arange, array, axes, shape)


def _place(array: Any, axes: Any, shape: Any) -> Any:
    """array with element a of each axis at divisor·a - start along one axis of the result; zeros elsewhere."""
    result, order, source, target = np.zeros(shape, array.dtype), [], [], {}
    for size, (start, steps, divisor, _) in zip(array.shape, axes, strict=True):
        label = steps.index(1)
        low = max(0, -(-start // divisor))
        high = max(low, min(size, (shape[label] - 1 + start) // divisor + 1))
        order.append(label)
        source.append(slice(low, high))
        first = divisor * low - start
        target[label] = slice(first, max(first + divisor * (high - low - 1) + 1, first), divisor)
    axis = [order.index(label) for label in range(len(shape))]
    result[tuple(target[label] for label in range(len(shape)))] = array[tuple(source)].transpose(axis)
    return result


def _scatter(values: Any, index: Any, size: Any) -> Any:
    """The sum of values at each index below size; the axes of index come first in values."""
    flat, rest = index.reshape(-1), values.shape[index.ndim :]
    if not rest and values.dtype == float:
        return np.bincount(flat, values.reshape(-1), size)
    result = np.zeros((size, *rest), values.dtype)
    np.add.at(result, flat, values.reshape(flat.shape + rest))
    return result


def _fold(array: Any, stride: Any, start: Any, size: Any) -> Any:
    """The sums of the elements (i, j, …) at stride·i + j + start along one axis of that size, for the first two."""
    if stride < 0:
        array, stride, start = np.flip(array, 0), -stride, start + stride * (array.shape[0] - 1)
    count, width, *rest = array.shape
    turns = max(1, -(-width // stride))
    rows = np.zeros((count + turns - 1, stride, *rest), array.dtype)
    for n in range(turns):
        part = array[:, n * stride : (n + 1) * stride]
        rows[n : n + count, : part.shape[1]] += part
    row = rows.reshape((len(rows) * stride, *rest))
    if start == 0 and size <= len(row):
        return row[:size]
    row, result = row[max(0, -start) : max(0, size - start)], np.zeros((size, *rest), array.dtype)
    result[max(0, start) : max(0, start) + len(row)] = row
    return result


def _spread(array: Any, along: Any, shape: Any) -> Any:
    """Zeros of a shape, with the array where the axes that go along one of its axes coincide."""
    result = np.zeros(shape, np.result_type(array))
    np.einsum(result, along, list(range(max(along) + 1)))[...] = array
    return result


def _deposit(total: Any, array: Any, along: Any) -> Any:
    """The total, with the array added where the axes that go along one of its axes coincide."""
    kind = np.result_type(total, array)
    total = total if total.dtype == kind else total.astype(kind)
    diagonal = np.einsum(total, along, list(range(max(along) + 1)))
    diagonal += array
    return total


def _gram(array: Any, weights: Any = None) -> Any:
    """arrayᴴ·diag(weights)·array for real weights, at half the multiplications of a product of two arrays.

    Rows are taken in blocks and added to one triangle, by SciPy's BLAS where it is there; the other mirrors it.
    """
    size, is_complex = array.shape[1], array.dtype.kind == "c"
    kind = array.dtype if weights is None else np.result_type(array, weights)
    small = size < 64 or array.size <= GRAM_SMALL
    step = len(array) if small else max(16, min(size // 2, GRAM_BLOCK // size))

    def signed(block: Any) -> Any:
        if weights is None:
            yield 1, array[block]
            return
        roots, negative = np.sqrt(np.abs(weights[block]))[:, None], weights[block] < 0
        if negative.all() or not negative.any():
            yield -1 if negative.any() else 1, array[block] * roots
            return
        for sign, chosen in ((1, ~negative), (-1, negative)):
            rows = array[block][chosen]
            yield sign, np.multiply(rows, roots[chosen], out=rows if rows.dtype == kind else None)
            del rows

    if small and (size < 64 or not is_complex):
        result = None
        for sign, rows in signed(slice(None)):
            product = rows.conj().T @ rows
            product = product if sign > 0 else np.negative(product, out=product)
            result = product if result is None else np.add(result, product, out=result)
        return result
    try:
        from scipy.linalg.blas import cherk, dsyrk, ssyrk, zherk

        update = {"d": dsyrk, "f": ssyrk, "D": zherk, "F": cherk}.get(kind.char)
    except ImportError:
        update = None
    result = np.zeros((size, size), kind, order="F")  # the lower triangle of the transpose
    for first in range(0, len(array), max(1, step)):
        for sign, rows in signed(slice(first, first + step)):
            for start in range(0, 0 if update else size, 64):
                stop = start + 64
                part = rows[:, start:].T @ rows[:, start:stop].conj()
                result[start:, start:stop] += part if sign > 0 else np.negative(part, out=part)
                del part
            if update:
                result = update(sign, rows.T, beta=1, c=result, lower=1, overwrite_c=1)
            del rows
    upper = np.tri(64, k=-1, dtype=bool).T
    for start in range(0, size, 64):
        stop = start + 64
        corner = result[start:stop, start:stop]
        np.copyto(corner, corner.T.conj(), where=upper[: len(corner), : len(corner)])
        result[start:stop, stop:] = result[stop:, start:stop].T.conj()
    if is_complex:
        np.einsum("ii->i", result.imag)[...] = 0
    return result.T


def _checked_step(name: Any, matrix: Any, right: Any, where: Any) -> Any:
    """The solution of a linear system, and the condition number of its matrix, which is not singular."""
    condition = np.linalg.cond(matrix, 1) if np.all(np.isfinite(matrix)) else np.nan
    if not condition < 1e14:
        raise ArithmeticError(f"the Jacobian of the equation for {name} is singular{where()}")
    return np.linalg.solve(matrix, right), condition


@np.errstate(all="ignore")
def _solve(name: Any, system: Any, given: Any, order: Any, dtype: Any, *captures: Any) -> Any:
    """The k with H(k) = given for a linear map H; axes of given before the last `order` are systems of their own."""
    shape = np.shape(given)[np.ndim(given) - order :]
    packed, unpacked, evaluated = _system(np, system, shape, dtype, captures)
    right = packed(given)
    if not right.size:
        return np.zeros(np.shape(given), dtype)
    matrix = evaluated(np.zeros(right.shape[-1]))[-1]
    return unpacked(_checked_step(name, matrix, right.reshape(-1, right.shape[-1]).T, str)[0].T.reshape(right.shape))


@np.errstate(all="ignore")
def _search(kind: Any, name: Any, system: Any, given: Any, dtype: Any, *captures: Any) -> Any:
    """The root of an equation ("root") or the local minimum of an objective ("argmin") that is found from `given`."""
    packed, unpacked, evaluated = _system(np, system, np.shape(given), dtype, captures)
    v = packed(given)
    if not v.size:
        return unpacked(v)
    near = _descended(kind, evaluated, v)
    if near is not None and near[1] is not None and np.linalg.cond(near[1], 1) < 1e14:
        return unpacked(near[0])
    v = _near(kind, evaluated, v) if near is None else near[0]
    before = float("inf")

    def found() -> Any:
        return f"the residual is {np.max(np.abs(residual)):.3g} (its largest entry) at {name} = {unpacked(v)}"

    for _ in range(10):
        *_, residual, matrix = evaluated(v)
        move, condition = _checked_step(name, matrix, residual, lambda: f"; {found()}")
        v = v - move
        size = float(np.abs(move).max()) / max(1.0, float(np.abs(v).max()))
        stalled = 0.8 * before < size < 1e-6  # rounding errors are left; near a multiple root steps shrink by half
        if size <= max(1e-12, 1e3 * np.finfo(float).eps * condition) or stalled:
            break
        before = size
    else:
        raise ArithmeticError(f"no {'root' if kind == 'root' else 'minimum'} was found for {name}: {found()}")
    if kind == "argmin" and not np.linalg.eigvalsh(matrix)[0] > 0:
        raise ArithmeticError(f"the gradient vanishes where there is no minimum: {found()}")
    return unpacked(v)


def _det_times_inverse(matrix: Any) -> Any:
    """The adjugate of a matrix, or of each in a stack: det(A)·A⁻¹ where that keeps all digits but a few."""
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return _adjugate(np, matrix)
    sizes = [np.abs(each).max((-2, -1), initial=0) for each in (matrix, inverse)]
    if not (sizes[0] * sizes[1] * (matrix.shape[-1] ** 2 * np.finfo(inverse.dtype).eps ** 0.5) < 0.01).all():
        return _adjugate(np, matrix)
    return np.linalg.det(matrix)[..., None, None] * inverse


def _descended(kind: Any, evaluated: Any, v: Any) -> Any:
    """A point near a root or minimum, by Newton's steps, where each does half of what it promises; None elsewhere.

    With it the Jacobian before the last step, if that moved by rounding errors alone.
    """
    before = bound = float("inf")
    for _ in range(20):
        *objective, residual, matrix = evaluated(v)
        value = float(np.real(objective[0])) if kind == "argmin" else float(np.linalg.norm(residual))
        if not value <= bound:
            return None
        try:
            if kind == "argmin":
                np.linalg.cholesky(matrix)
            move = np.linalg.solve(matrix, residual)
        except np.linalg.LinAlgError:
            return None
        promised = residual @ move / 2 if kind == "argmin" else value
        v = v - move
        size = float(np.abs(move).max()) / max(1.0, float(np.abs(v).max()))
        if size <= 1e-12 or 0.8 * before < size < 1e-6:
            return v, matrix
        bound = value - promised / 2 + 1e-15 * abs(value) if size > 1e-6 else np.inf
        before = size
    return (v, None) if before <= 1e-6 else None


def _near(kind: Any, evaluated: Any, start: Any) -> Any:
    """A point near a root or minimum, by SciPy."""
    from scipy import optimize

    known: Any = {}

    def at(v: Any) -> Any:
        key = v.tobytes()
        if key not in known:
            known.clear()
            known[key] = evaluated(v)
        return known[key]

    with np.errstate(all="ignore"):
        if kind == "root":
            found = optimize.root(lambda v: at(v)[0], start, jac=lambda v: at(v)[1], method="hybr", tol=1e-13)
        else:
            found = optimize.minimize(
                lambda v: float(np.real(at(v)[0])),
                start,
                jac=lambda v: at(v)[1],
                hess=lambda v: at(v)[2],
                method="trust-exact",
                options={"gtol": 1e-9},
            )
    return found.x


def _magnitude(array: Any, axes: Any, degree: Any) -> Any:
    """A power of 2 near the largest size of the finite elements along axes; 1 where powers of their squares are safe.

    Powers up to that degree: the elements are looked at once more only where the sum of their squares says so.
    """
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    kind = array.real.dtype
    if kind.kind != "f":
        return np.ones([array.shape[axis] for axis in kept])
    limits = np.finfo(kind)
    safe = limits.max ** (2 / (3 * degree))
    with np.errstate(all="ignore"):
        labels = list(range(array.ndim))
        if not kept and array.dtype == kind and array.flags.c_contiguous:
            squares = np.dot(array.reshape(-1), array.reshape(-1))
        else:
            squares = np.einsum(array, labels, array.conj(), labels, kept).real
        is_safe = (squares > 1 / safe) & (squares < safe)
        if is_safe.all():
            return np.ones(np.shape(squares), kind)
        finite = np.isfinite(array)
        sizes = array if array.dtype == kind else np.abs(array)
        largest = np.maximum(sizes.max(axes, initial=0, where=finite), -sizes.min(axes, initial=0, where=finite))
    exponent = np.frexp(np.maximum(largest, limits.tiny))[1] - 1
    return np.where(is_safe | (largest == 0), kind.type(1), np.ldexp(kind.type(1), exponent))


def _rescaled(array: Any, scale: Any) -> Any:
    """array / scale; the array itself where the scale is 1 throughout."""
    is_one = (scale == 1).all() if scale.ndim else scale == 1  # of a number `all` takes as long as fifty divisions
    return array if is_one else array / scale


@np.errstate(over="ignore", under="ignore")
def _hypot(one: Any, other: Any) -> Any:
    """The hypotenuse, by squares where none over- or underflows, in an eighth of the time of np.hypot."""
    if max(np.size(one), np.size(other)) < 1 << 10:  # what is looked at to know takes longer
        return np.hypot(one, other)
    squares = np.square(one) + np.square(other)
    if squares.dtype.kind == "f" and squares.size:
        limits = np.finfo(squares.dtype)
        if squares.min() > limits.tiny / limits.eps and squares.max() < limits.max:
            return np.sqrt(squares)
    return np.hypot(one, other)


def _placed(part: Any, slices: Any, shape: Any) -> Any:
    """Zeros of a shape, with a part at slices of it."""
    result = np.zeros(shape, part.dtype)
    result[slices] = part
    return result


def _powers(base: Any, shape: Any, axis: int, first: int) -> Any:
    """The powers of numbers along an axis, with exponents from the first one on: products of those that there are."""
    result = np.empty(shape, base.dtype)
    powers = np.moveaxis(result, axis, 0)
    base = np.moveaxis(base.reshape((1,) * (len(shape) - base.ndim) + base.shape), axis, 0)[0]
    below = min(max(0, -first), len(powers))
    for n in range(below):  # 1/0 is no factor of others
        powers[n] = base ** float(first + n)
    powers = powers[below:]
    powers[:1] = base ** float(max(0, first))
    done, factor = 1, base
    while done < len(powers):
        more = powers[done : 2 * done]
        np.multiply(powers[: len(more)], factor, out=more)
        done *= 2
        if done < len(powers):
            factor = factor * factor
    return result


def _keep(array: Any, conditions: Any) -> Any:
    """An array at the positions at which conditions hold; zeros elsewhere. Boxes of several multiples may overlap."""
    result = np.zeros_like(array)
    for box, part in _kept_parts(np, np.arange, array, conditions):
        result[box] += part
        del part  # before the next one is made
    return result


def _either(holds: Any, one: Any, other: Any) -> Any:
    """What `one` gives where a truth of values holds, else what `other` gives."""
    return one() if holds else other()


@np.errstate(invalid="ignore")
def _masked_product(product: Any, parts: Any, masks: Any, spared: Any = None) -> Any:
    """The product of parts where their masks hold: what stands beside has no share, even if it is infinite or nan."""
    return _product_of_kept(np, _either, product, parts, masks, spared)


@np.errstate(invalid="ignore")
def _selected(*given: Any) -> Any:
    """The function of parts over a box, of what meets bounds alone."""
    return _selection((np, np.arange, _either), *given)


def _within(function: Any, arrays: Any, patterns: Any, out: Any, sizes: Any, conditions: Any, hosts: Any) -> Any:
    """The function of arrays, a product summed over labels, of the positions alone at which conditions hold."""
    shape, result = tuple(sizes[label] for label in out), None
    for box, part in _product_parts(_selected, function, arrays, patterns, out, sizes, conditions, hosts):
        if result is None and len(arrays) == 2 and part.shape == shape != ():
            result = part  # an array of its own, as a product is
            continue
        result = np.zeros(shape, np.result_type(*arrays)) if result is None else result
        result[box] += part
        del part
    return np.zeros(shape, np.result_type(*arrays)) if result is None else result
