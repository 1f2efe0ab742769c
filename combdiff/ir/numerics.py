"""Numerical functions that NumPy lacks: what programs call them for, and what emitted source carries with it.

    adjugate([[1, 2], [3, 4]]) = [[4, −2], [−3, 1]]
    inverse([[1, 1], [1, 1]], "A") raises LinAlgError: inv(A): the matrix is singular

Emitted source holds the very text of these functions (`lowering.helpers`), so each stands alone: it needs `np` and
nothing else of this module.

Invariant: a function never writes to its argument, and takes stacks of matrices of every size, 0 and 1 included.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def inverse(matrix: Any, name: Any) -> Any:
    """The inverse of a matrix, or of each in a stack; LinAlgError names one that is singular."""
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(f"inv({name}): the matrix is singular") from None


def linear_solve(matrix: Any, right: Any, name: Any) -> Any:
    """The inverse of a matrix times a matrix, without forming the inverse; LinAlgError names one that is singular."""
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(f"inv({name}): the matrix is singular") from None


def adjugate(matrix: Any) -> Any:
    """The adjugate, of singular matrices too: adj(U diag(s) V) = adj(V) diag(products of the other s) adj(U)."""
    if 0 in matrix.shape:
        return np.linalg.inv(matrix)
    left, values, right = np.linalg.svd(matrix)
    count = values.shape[-1]
    others = np.where(np.eye(count, dtype=bool), 1, values[..., None, :]).prod(-1)
    turned = np.linalg.det(left) * np.linalg.det(right)
    scaled = right.swapaxes(-1, -2).conj() * (turned[..., None] * others)[..., None, :]
    return scaled @ left.swapaxes(-1, -2).conj()


def logdet_positive(matrix: Any, name: Any) -> Any:
    """log det of a positive definite matrix, or of each in a stack; LinAlgError names one that is none.

    A Hermitian one by its Cholesky factor, another, of which the Hermitian part must be positive definite, by LU.
    """
    half = (matrix + matrix.swapaxes(-1, -2).conj()) / 2
    try:
        factor = np.linalg.cholesky(half)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(f"logdet({name}): the matrix is not positive definite") from None
    if np.linalg.norm(matrix - half) > 4 * np.finfo(half.dtype).eps * np.linalg.norm(half):
        return np.linalg.slogdet(matrix)[1]
    return 2 * np.log(np.diagonal(factor, 0, -2, -1).real).sum(-1)


def cholesky(matrix: Any, name: Any) -> Any:
    """The lower Cholesky factor of the Hermitian part of a matrix, or of each in a stack; LinAlgError names it."""
    try:
        return np.linalg.cholesky((matrix + matrix.swapaxes(-1, -2).conj()) / 2)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(f"cholesky({name}): the matrix is not positive definite") from None


def eigvalsh(matrix: Any) -> Any:
    """The eigenvalues of the Hermitian part of a matrix, or of each in a stack, in ascending order."""
    return np.linalg.eigvalsh((matrix + matrix.swapaxes(-1, -2).conj()) / 2)


def eigvecsh(matrix: Any) -> Any:
    """The eigenvectors, as columns, of the Hermitian part of a matrix, or of each in a stack, in that order."""
    return np.linalg.eigh((matrix + matrix.swapaxes(-1, -2).conj()) / 2)[1]


def svdvals(matrix: Any) -> Any:
    """As many singular values as a matrix has columns, in descending order, with zeros where it has fewer rows."""
    found, rows = np.linalg.svd(matrix, full_matrices=False)[1], matrix.shape[-2]
    if matrix.shape[-1] <= rows:
        return found
    return np.concatenate([found, np.zeros_like(abs(matrix[..., 0, rows:]))], -1)


def svd_left(matrix: Any) -> Any:
    """The left singular vectors, as columns, with zeros where a matrix has more columns than rows."""
    found, rows = np.linalg.svd(matrix, full_matrices=False)[0], matrix.shape[-2]
    return found if matrix.shape[-1] <= rows else np.concatenate([found, np.zeros_like(matrix[..., rows:])], -1)


def svd_right(matrix: Any) -> Any:
    """The right singular vectors, as columns: as many as a matrix has columns."""
    if matrix.shape[-1] > matrix.shape[-2]:
        return np.linalg.svd(matrix)[2].swapaxes(-1, -2).conj()
    return np.linalg.svd(matrix, full_matrices=False)[2].swapaxes(-1, -2).conj()


def qr_r(matrix: Any, name: Any) -> Any:
    """The triangular factor of A = Q R for a matrix with no fewer rows than columns; LinAlgError names another."""
    if matrix.shape[-1] > matrix.shape[-2]:
        raise np.linalg.LinAlgError(f"qr({name}): the matrix has fewer rows than columns")
    return np.linalg.qr(matrix)[1]


def expm(matrix: Any) -> Any:
    """The exponential of a matrix, or of each in a stack, by scaling, a Padé quotient of degree 13, and squaring."""
    norm = float(abs(matrix).sum(-2).max(initial=0))
    if not norm < 1e300:
        return matrix * float("nan")
    halvings = max(0, int(np.ceil(np.log2(norm / 5.37)))) if norm else 0
    scaled, one = matrix / 2.0**halvings, np.eye(matrix.shape[-1], dtype=matrix.dtype)
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
    found = np.linalg.solve(even - odd, even + odd)
    for _ in range(halvings):
        found = found @ found
    return found


def sqrtm(matrix: Any) -> Any:
    """The principal square root of a matrix, or of each in a stack, by the iteration of Denman and Beavers.

    NaN where it does not converge: for eigenvalues on the negative real axis, and singular matrices.
    """
    one = np.tril(np.triu(np.ones_like(matrix)))
    root, inverse, n = matrix, one, max(1, matrix.shape[-1])
    for _ in range(30):
        size = np.linalg.slogdet(root)[1] + np.linalg.slogdet(inverse)[1]
        scale = np.exp(-size / (2 * n))[..., None, None]
        root, inverse = scale * root, scale * inverse
        root, inverse = (root + np.linalg.inv(inverse)) / 2, (inverse + np.linalg.inv(root)) / 2
    away = abs(root @ root - matrix).sum((-2, -1)) - 1e-3 * abs(matrix).sum((-2, -1))
    return np.where((away <= 0)[..., None, None], root, root * float("nan"))


def products_of_others(matrix: Any) -> Any:
    """For each element of a matrix, or of each in a stack, the product of all the others of that matrix."""
    flat = matrix.reshape((*matrix.shape[:-2], matrix.shape[-2] * matrix.shape[-1]))
    one = np.ones_like(flat[..., :1])
    before = np.cumprod(np.concatenate([one, flat[..., :-1]], -1), -1)
    after = np.flip(np.cumprod(np.flip(np.concatenate([flat[..., 1:], one], -1), (-1,)), -1), (-1,))
    return (before * after).reshape(matrix.shape)


def sinc_slope(order: Any, x: Any) -> Any:
    """The derivative of a whole order n > 0 of f(x) = sin(πx) / (πx).

    With y = πx: near 0 by ∫₀¹ tⁿ cos(y t + nπ/2) dt as a series in y, elsewhere by y f⁽ⁿ⁾ = sin⁽ⁿ⁾(y) − n f⁽ⁿ⁻¹⁾.
    """
    n, y = int(order), x * 3.141592653589793
    near = abs(y) < n + 1
    close, far = np.where(near, y, 0 * y), np.where(near, 1 + 0 * y, y)
    sine, cosine = np.sin(far), np.cos(far)
    slope = sine / far
    for m in range(1, n + 1):
        slope = ((sine, cosine, -sine, -cosine)[m % 4] - m * slope) / far
    series, factor = 0 * close, 1.0
    for k in range(44 + 4 * n):
        if (n + k) % 2 == 0:
            series = series + (-1) ** ((n + k) // 2) * factor / (n + k + 1) * close**k
        factor = factor / (k + 1)
    return 3.141592653589793**n * np.where(near, series, slope)


def wrapped(array: Any, axis: Any, start: Any, total: Any) -> Any:
    """total elements along an axis from start on, the array again and again on either side of it; a view if it can."""
    size = array.shape[axis]
    if total < 1:
        return array[(slice(None),) * axis + (slice(0, 0),)]
    if total > 4 * size:
        return array.take(np.arange(start, start + total) % size, axis)
    pieces, first, left = [], start % size, total
    while left > 0:
        pieces.append(array[(slice(None),) * axis + (slice(first, first + left),)])
        left, first = left - pieces[-1].shape[axis], 0
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis)
