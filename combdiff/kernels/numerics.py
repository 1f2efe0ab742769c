"""Numerical functions that array libraries lack: what programs call them for, and what emitted source carries with it.

    _adjugate(np, [[1, 2], [3, 4]]) = [[4, −2], [−3, 1]]
    _inverse(torch, [[1, 1], [1, 1]], "A") raises torch.linalg.LinAlgError: the matrix A is singular

Each is one text for NumPy, JAX, PyTorch and CuPy, in words that all of them have: `xp` is the library, whose arrays are
given. Emitted source holds that text, so a function needs `xp` alone and nothing else of this module.

Invariant: a function never writes to its argument, and takes stacks of matrices of every size, 0 and 1 included.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy


def for_numpy(name: str) -> Callable[..., Any]:
    """The function of that name, without its underscore, for NumPy's arrays."""
    return partial(globals()[f"_{name}"], numpy)


def _inverse(xp: Any, matrix: Any, name: Any) -> Any:
    """The inverse of a matrix, or of each in a stack; LinAlgError names one that is singular."""
    try:
        return xp.linalg.inv(matrix)
    except xp.linalg.LinAlgError:
        raise xp.linalg.LinAlgError(f"the matrix {name} is singular") from None


def _linear_solve(xp: Any, matrix: Any, right: Any, name: Any) -> Any:
    """The inverse of a matrix times a matrix, without forming the inverse; LinAlgError names one that is singular."""
    try:
        return xp.linalg.solve(matrix, right)
    except xp.linalg.LinAlgError:
        raise xp.linalg.LinAlgError(f"the matrix {name} is singular") from None


def _adjugate(xp: Any, matrix: Any) -> Any:
    """The adjugate, of singular matrices too: adj(U diag(s) V) = adj(V) diag(products of the other s) adj(U)."""
    if 0 in matrix.shape:
        return xp.linalg.inv(matrix)
    left, values, right = xp.linalg.svd(matrix)
    place = xp.ones_like(values).cumsum(-1)
    others = xp.where(place[..., None] == place[..., None, :], 1, values[..., None, :]).prod(-1)
    turned = xp.linalg.det(left) * xp.linalg.det(right)
    scaled = right.swapaxes(-1, -2).conj() * (turned[..., None] * others)[..., None, :]
    return scaled @ left.swapaxes(-1, -2).conj()


def _logdet_positive(xp: Any, matrix: Any, name: Any) -> Any:
    """log det of a positive definite matrix, or of each in a stack; LinAlgError names one that is none.

    A Hermitian one by its Cholesky factor, another, of which the Hermitian part must be positive definite, by LU.
    """
    half = (matrix + matrix.swapaxes(-1, -2).conj()) / 2
    try:
        factor = xp.linalg.cholesky(half)
    except xp.linalg.LinAlgError:
        raise xp.linalg.LinAlgError(f"logdet({name}): the matrix is not positive definite") from None
    if xp.linalg.norm(matrix - half) > 4 * xp.finfo(half.dtype).eps * xp.linalg.norm(half):
        return xp.linalg.slogdet(matrix)[1]
    return 2 * xp.log(xp.diagonal(factor, 0, -2, -1).real).sum(-1)


def _cholesky(xp: Any, matrix: Any, name: Any) -> Any:
    """The lower Cholesky factor of the Hermitian part of a matrix, or of each in a stack; LinAlgError names it."""
    try:
        return xp.linalg.cholesky((matrix + matrix.swapaxes(-1, -2).conj()) / 2)
    except xp.linalg.LinAlgError:
        raise xp.linalg.LinAlgError(f"cholesky({name}): the matrix is not positive definite") from None


def _eigvalsh(xp: Any, matrix: Any) -> Any:
    """The eigenvalues of the Hermitian part of a matrix, or of each in a stack, in ascending order."""
    return xp.linalg.eigvalsh((matrix + matrix.swapaxes(-1, -2).conj()) / 2)


def _eigvecsh(xp: Any, matrix: Any) -> Any:
    """The eigenvectors, as columns, of the Hermitian part of a matrix, or of each in a stack, in that order."""
    return xp.linalg.eigh((matrix + matrix.swapaxes(-1, -2).conj()) / 2)[1]


def _eigh(xp: Any, matrix: Any) -> Any:
    """Both of these, by one decomposition."""
    return xp.linalg.eigh((matrix + matrix.swapaxes(-1, -2).conj()) / 2)


def _levels(xp: Any, values: Any) -> Any:
    """Eigenvalues or singular values in order, with their mean, or 0, for those that rounding cannot tell apart."""
    rounding = 4 * values.shape[-1] * xp.finfo(values.dtype).eps * (abs(values[..., :1]) + abs(values[..., -1:]))
    values = xp.where(abs(values) > rounding, values, 0 * values)
    apart = abs(values[..., 1:] - values[..., :-1]) > rounding
    level = xp.cumsum(xp.concatenate([values[..., :1] != values[..., :1], apart], -1), -1)
    same = xp.where(level[..., :, None] == level[..., None, :], xp.ones_like(values)[..., None, :], 0)
    return (same * values[..., None, :]).sum(-1) / same.sum(-1)


def _eiglevels(xp: Any, matrix: Any) -> Any:
    """The eigenvalues of the Hermitian part of a matrix, as `_levels`."""
    return _levels(xp, _eigvalsh(xp, matrix))


def _svdlevels(xp: Any, matrix: Any) -> Any:
    """The singular values of a matrix, as `_levels`."""
    return _levels(xp, _svdvals(xp, matrix))


def _svdvals(xp: Any, matrix: Any) -> Any:
    """As many singular values as a matrix has columns, in descending order, with zeros where it has fewer rows."""
    found, rows = xp.linalg.svd(matrix, full_matrices=False)[1], matrix.shape[-2]
    if matrix.shape[-1] <= rows:
        return found
    return xp.concatenate([found, xp.zeros_like(abs(matrix[..., 0, rows:]))], -1)


def _svd_left(xp: Any, matrix: Any) -> Any:
    """The left singular vectors, as columns, with zeros where a matrix has more columns than rows."""
    found, rows = xp.linalg.svd(matrix, full_matrices=False)[0], matrix.shape[-2]
    return found if matrix.shape[-1] <= rows else xp.concatenate([found, xp.zeros_like(matrix[..., rows:])], -1)


def _svd_right(xp: Any, matrix: Any) -> Any:
    """The right singular vectors, as columns: as many as a matrix has columns."""
    if matrix.shape[-1] > matrix.shape[-2]:
        return xp.linalg.svd(matrix)[2].swapaxes(-1, -2).conj()
    return xp.linalg.svd(matrix, full_matrices=False)[2].swapaxes(-1, -2).conj()


def _svd(xp: Any, matrix: Any) -> Any:
    """The left singular vectors, the singular values and the right singular vectors, by one decomposition."""
    rows, columns = matrix.shape[-2:]
    left, values, right = xp.linalg.svd(matrix, full_matrices=columns > rows)
    if columns > rows:
        left = xp.concatenate([left, xp.zeros_like(matrix[..., rows:])], -1)
        values = xp.concatenate([values, xp.zeros_like(abs(matrix[..., 0, rows:]))], -1)
    return left, values, right.swapaxes(-1, -2).conj()


def _qr_r(xp: Any, matrix: Any, name: Any) -> Any:
    """The triangular factor of A = Q R for a matrix with no fewer rows than columns; LinAlgError names another."""
    if matrix.shape[-1] > matrix.shape[-2]:
        raise xp.linalg.LinAlgError(f"qr({name}): the matrix has fewer rows than columns")
    return xp.linalg.qr(matrix)[1]


def _expm(xp: Any, matrix: Any) -> Any:
    """The exponential of a matrix, or of each in a stack, by scaling, a Padé quotient of degree 13, and squaring."""
    norm = float(abs(matrix).sum(-2).max()) if 0 not in matrix.shape else 0.0
    if not norm < 1e300:
        return matrix * float("nan")
    halvings = 0
    while norm > 5.37 * 2.0**halvings:
        halvings += 1
    scaled, one = matrix / 2.0**halvings, xp.tril(xp.triu(xp.ones_like(matrix)))
    square = scaled @ scaled
    power, factor, factors = one, 1.0, [1.0]
    for k in range(13):
        factor = factor * (13 - k) / ((26 - k) * (k + 1))
        factors.append(factor)
    even, odd = factors[0] * one, factors[1] * one
    for k in range(1, 7):
        power = power @ square
        even, odd = even + factors[2 * k] * power, odd + factors[2 * k + 1] * power
    odd = scaled @ odd
    found = xp.linalg.solve(even - odd, even + odd)
    for _ in range(halvings):
        found = found @ found
    return found


def _sqrtm(xp: Any, matrix: Any) -> Any:
    """The principal square root of a matrix, or of each in a stack, by the iteration of Denman and Beavers.

    NaN where it does not converge: for eigenvalues on the negative real axis, and singular matrices.
    """
    one = xp.tril(xp.triu(xp.ones_like(matrix)))
    root, inverse, n = matrix, one, max(1, matrix.shape[-1])
    for _ in range(30):
        size = xp.linalg.slogdet(root)[1] + xp.linalg.slogdet(inverse)[1]
        scale = xp.exp(-size / (2 * n))[..., None, None]
        root, inverse = scale * root, scale * inverse
        root, inverse = (root + xp.linalg.inv(inverse)) / 2, (inverse + xp.linalg.inv(root)) / 2
    away = abs(root @ root - matrix).sum((-2, -1)) - 1e-3 * abs(matrix).sum((-2, -1))
    return xp.where((away <= 0)[..., None, None], root, root * float("nan"))


def _products_of_others(xp: Any, matrix: Any) -> Any:
    """For each element of a matrix, or of each in a stack, the product of all the others of that matrix."""
    flat = matrix.reshape((*matrix.shape[:-2], matrix.shape[-2] * matrix.shape[-1]))
    one = xp.ones_like(flat[..., :1])
    before = xp.cumprod(xp.concatenate([one, flat[..., :-1]], -1), -1)
    after = xp.flip(xp.cumprod(xp.flip(xp.concatenate([flat[..., 1:], one], -1), (-1,)), -1), (-1,))
    return (before * after).reshape(matrix.shape)


def _sinc_slope(xp: Any, order: Any, x: Any) -> Any:
    """The derivative of a whole order n > 0 of f(x) = sin(πx) / (πx).

    With y = πx: near 0 by ∫₀¹ tⁿ cos(y t + nπ/2) dt as a series in y, elsewhere by y f⁽ⁿ⁾ = sin⁽ⁿ⁾(y) − n f⁽ⁿ⁻¹⁾.
    """
    if order.real > 620:  # πⁿ is no number of double precision beyond
        return x * float("nan")
    n, y = int(order.real), x * 3.141592653589793  # of complex x the order comes as a complex number, too
    near = abs(y) < n + 1
    close, far = xp.where(near, y, 0 * y), xp.where(near, 1 + 0 * y, y)
    sine, cosine = xp.sin(far), xp.cos(far)
    slope = sine / far
    for m in range(1, n + 1):
        slope = ((sine, cosine, -sine, -cosine)[m % 4] - m * slope) / far
    series, factor = 0 * close, 1.0
    for k in range(44 + 4 * n):
        if (n + k) % 2 == 0:
            series = series + (-1) ** ((n + k) // 2) * factor / (n + k + 1) * close**k
        factor = factor / (k + 1)
    return 3.141592653589793**n * xp.where(near, series, slope)


def _divided(xp: Any, derivative: Any, reach: Any, nodes: Any) -> Any:
    """The divided difference of a function at real nodes, of which `derivative(n, x)` is the n-th derivative, n ≥ 0.

    That of nodes in order is one of the differences of those without the first and without the last; of nodes within
    `reach(mean)` it is Taylor's series about their mean, with sums of all products of n steps for powers.
    """
    ordered = [node + 0 * sum(nodes) for node in nodes]
    for last in range(len(nodes) - 1, 0, -1):
        for n in range(last):
            low, high = xp.minimum(ordered[n], ordered[n + 1]), xp.maximum(ordered[n], ordered[n + 1])
            ordered[n], ordered[n + 1] = low, high
    found = [derivative(0, node) for node in ordered]
    for order in range(1, len(nodes)):
        parts = [ordered[n : n + order + 1] for n in range(len(nodes) - order)]
        found = [_divided_by_gap(xp, derivative, reach, part, *found[n : n + 2]) for n, part in enumerate(parts)]
    return found[0]


def _divided_by_gap(xp: Any, derivative: Any, reach: Any, nodes: Any, lower: Any, upper: Any) -> Any:
    """The divided difference at nodes in order, by those without the last and without the first, or by the series."""
    mean, gap, order = sum(nodes) / len(nodes), nodes[-1] - nodes[0], len(nodes) - 1
    near = gap <= reach(mean)
    centre = xp.where(near, mean, nodes[-1])
    steps = [xp.where(near, node - mean, 0 * mean) for node in nodes]
    series, factor, powers = 0 * mean, 1.0, [1 + 0 * mean for _ in steps]
    for n in range(order):
        factor = factor / (n + 1)
    for k in range(26):
        series = series + factor * derivative(order + k, centre) * powers[-1]
        factor = factor / (order + k + 1)
        before = 0 * mean
        for n, step in enumerate(steps):
            before = powers[n] = before + step * powers[n]
    return xp.where(near, series, (upper - lower) / xp.where(near, 1 + 0 * gap, gap))


def _divided_exp(xp: Any, *nodes: Any) -> Any:
    """The divided difference of exp."""
    return _divided(xp, lambda n, x: xp.exp(x), lambda mean: 1 + 0 * mean, nodes)


def _divided_log(xp: Any, *nodes: Any) -> Any:
    """The divided difference of log at positive nodes: its n-th derivative is −(n − 1)! / (−x)ⁿ."""

    def derivative(n: Any, x: Any) -> Any:
        factor = -1.0
        for k in range(1, n):
            factor = factor * k
        return factor / (-x) ** n if n else xp.log(x)

    return _divided(xp, derivative, lambda mean: abs(mean) / 3, nodes)


def _divided_sin(xp: Any, *nodes: Any) -> Any:
    """The divided difference of sin."""

    def derivative(n: Any, x: Any) -> Any:
        return (1, 1, -1, -1)[n % 4] * (xp.cos(x) if n % 2 else xp.sin(x))

    return _divided(xp, derivative, lambda mean: 1 + 0 * mean, nodes)


def _divided_cos(xp: Any, *nodes: Any) -> Any:
    """The divided difference of cos, which is sin a quarter of a turn on."""
    return _divided_sin(xp, *(node + 1.5707963267948966 for node in nodes))


def _modified_bessel(xp: Any, order: Any, x: Any, zero: Any, one: Any, scale: Any) -> Any:
    """The modified Bessel function of a whole order n > 1, times scale, of those of the orders 0 and 1, times scale.

    Far from 0 by I(m + 1) = I(m − 1) − 2m/x I(m), elsewhere by its series, (x/2)ⁿ Σ_k (x/2)²ᵏ / (k! (n + k)!).
    """
    near = abs(x) < 10 + 2 * order**2
    close, far = xp.where(near, x, 0 * x) / 2, xp.where(near, 1 + 0 * x, x)
    for m in range(1, order):
        zero, one = one, zero - 2 * m / far * one
    series = 1 + 0 * close
    for k in range(40 + 4 * order**2, 0, -1):
        series = 1 + series * close**2 / (k * (order + k))
    for k in range(1, order + 1):
        series = series * close / k
    return xp.where(near, series * scale, one)


def _wrapped(xp: Any, array: Any, axis: Any, start: Any, total: Any) -> Any:
    """total elements along an axis from start on, the array again and again on either side of it; a view if it can."""
    size = array.shape[axis]
    if total < 1:
        return array[(slice(None),) * axis + (slice(0, 0),)]
    if total > 4 * size:
        return array[(slice(None),) * axis + (xp.arange(start, start + total) % size,)]
    pieces, first, left = [], start % size, total
    while left > 0:
        pieces.append(array[(slice(None),) * axis + (slice(first, first + left),)])
        left, first = left - pieces[-1].shape[axis], 0
    return pieces[0] if len(pieces) == 1 else xp.concatenate(pieces, axis)


def _system(xp: Any, system: Any, shape: Any, dtype: Any, captures: Any) -> Any:
    """An equation in real numbers: arrays to vectors and back, and the equation with its Jacobian.

    system(x, *captures) gives the equation and its Jacobian, by x and by conj(x) if dtype is complex; for a minimum
    the objective comes before its gradient and Hessian.
    """
    size, twice = 1, xp.dtype(dtype).kind == "c"
    for extent in shape:
        size *= extent

    def packed(z: Any) -> Any:
        flat = xp.reshape(z, (*xp.shape(z)[: xp.ndim(z) - len(shape)], size))
        return xp.concatenate([flat.real, flat.imag], -1).astype(float) if twice else flat.astype(float)

    def unpacked(v: Any) -> Any:
        parts = v[..., :size] + 1j * v[..., size:] if twice else v
        return parts.reshape((*v.shape[:-1], *shape)).astype(dtype)[()]

    def evaluated(v: Any) -> Any:
        z = v[:size] + 1j * v[size:] if twice else v
        parts = system(z.reshape(shape)[()], *captures)
        *objective, equation = parts[: -1 - twice]
        blocks = [xp.reshape(block, (size, size)) for block in parts[-1 - twice :]]
        if twice:
            along, turned = blocks[0] + blocks[1], 1j * (blocks[0] - blocks[1])
            blocks = [xp.block([[along.real, turned.real], [along.imag, turned.imag]])]
        return (*objective, packed(equation), xp.asarray(blocks[0], float))

    return packed, unpacked, evaluated
