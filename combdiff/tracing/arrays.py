"""Whole tensors as terms: what NumPy's operations mean element by element.

    A @ x = (i) ↦ Σ_k A[i, k]·x[k]        A.T = (i, j) ↦ A[j, i]        A + x = (i, j) ↦ A[i, j] + x[j]

An element of a computed tensor is an application that is *not* reduced, `Apply(Lambda(…), indices)`: the tensor
stays one object however often it is used, and the pass `share` decides what to inline. A tensor that only renames
the indices of another (a transpose, a row) is read through: `element(A.T, (p, q)) = A[q, p]`.

Invariant: every function takes and gives closed tensor terms or numbers whose shape is that of NumPy's result.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from combdiff.errors import TypeMismatchError, UnsupportedError, shown
from combdiff.ir import (
    Affine,
    Apply,
    Axes,
    Domain,
    Lambda,
    Range,
    Term,
    Var,
    axes_of,
    describe,
    dtype_of,
    held,
    is_access,
    lambda_,
    mul,
    released,
    size_of_axis,
    substitute,
    total,
)
from combdiff.tracing.context import current, show_domain

Combine = Callable[..., Term]
FIRST = Affine((), 0)
MOST_UNNAMED = 64  # axes of a `...`


def element(tensor: Term, indices: Sequence[Term]) -> Term:
    """`tensor[indices]`, read through where the tensor only renames the indices of another."""
    if isinstance(tensor, Lambda) and is_access(tensor):
        return substitute(tensor.body, dict(zip(tensor.parameters, indices, strict=True)))
    return Apply(tensor, tuple(indices)) if indices else held(tensor)


def tabulate(indices: Sequence[Var], body: Term) -> Term:
    """The tensor `indices ↦ body`, after checking the types of the body."""
    dtype_of(body)
    return lambda_(indices, body)


def elementwise(combine: Combine, *operands: Term) -> Term:
    """`combine` of the elements, operands broadcast as by NumPy.

    Raises TypeMismatchError where sizes differ.
    """
    shapes = [axes_of(operand) for operand in operands]
    indices = current("arithmetic").fresh_indices(broadcast(operands, shapes))
    parts = [element(operand, aligned(shape, indices)) for operand, shape in zip(operands, shapes, strict=True)]
    return tabulate(indices, released(combine(*parts)))


def broadcast(operands: Sequence[Term], shapes: Sequence[Axes]) -> Axes:
    """NumPy's broadcast of the shapes, aligned at the last axis; the operands are named in errors."""
    order = max(len(shape) for shape in shapes)
    return tuple(_common_axis(operands, shapes, distance) for distance in range(order, 0, -1))


def _common_axis(operands: Sequence[Term], shapes: Sequence[Axes], distance: int) -> Domain:
    """The axis that stands `distance` from the end, of size 1 only where all shapes have that."""
    found: tuple[Term, Axes] | None = None
    for operand, shape in zip(operands, shapes, strict=True):
        if len(shape) < distance or shape[-distance] == Range(1):
            continue
        if found and found[1][-distance] != shape[-distance]:
            sides = [
                f"axis {len(axes) - distance} of {describe(term)} is {show_domain(axes[-distance])}"
                for term, axes in (found, (operand, shape))
            ]
            raise TypeMismatchError(
                f"{sides[0]}, but {sides[1]}: they cannot be combined element by element",
                hint="sizes are equal when they have the same name or number; "
                "for other pairings write the indices: cd.tensor(lambda i, j: …)",
            )
        found = found or (operand, shape)
    return found[1][-distance] if found else Range(1)


def aligned(shape: Axes, indices: Sequence[Var]) -> tuple[Term, ...]:
    """The indices with which an element of the broadcast reads an operand of that shape."""
    own = indices[len(indices) - len(shape) :]
    return tuple(FIRST if a == Range(1) and i.type != a else i for a, i in zip(shape, own, strict=True))


# --- contractions --------------------------------------------------------------------------------------------------


def contract(operands: Sequence[Term], labels: Sequence[str], result: str, what: str) -> Term:
    """The product of the operands, one label per axis, summed over the labels that are not in the result.

    Raises TypeMismatchError, naming the operation `what`, where axes of one label differ.
    """
    domains: dict[str, tuple[Domain, Term, int]] = {}
    for operand, letters in zip(operands, labels, strict=True):
        for axis, (letter, domain) in enumerate(zip(letters, axes_of(operand), strict=True)):
            known, other, position = domains.setdefault(letter, (domain, operand, axis))
            if known != domain:
                raise TypeMismatchError(
                    f"in {what}, axis {position} of {describe(other)} is {show_domain(known)}, "
                    f"but axis {axis} of {describe(operand)} is {show_domain(domain)}: they must be equal"
                )
    names = current(what).names
    index = {letter: names.fresh(Var(letter, domain)) for letter, (domain, _, _) in domains.items()}
    factors = [element(t, [index[c] for c in letters]) for t, letters in zip(operands, labels, strict=True)]
    summed = [variable for letter, variable in index.items() if letter not in result]
    return tabulate([index[c] for c in result], total(summed, mul(*factors)))


def matmul(a: Term, b: Term) -> Term:
    """NumPy's `a @ b`: the last axis of a with the last but one of b (its only one for a vector), batches broadcast."""
    left, right = axes_of(a), axes_of(b)
    if not left or not right:
        raise TypeMismatchError(
            f"{describe(a)} @ {describe(b)}: @ takes tensors, but {describe(b if left else a)} is a number",
            hint="write * for a product with a number",
        )
    met = max(len(right) - 2, 0)
    if left[-1] != right[met]:
        raise TypeMismatchError(
            f"{describe(a)} @ {describe(b)}: axis {len(left) - 1} of {describe(a)} is {show_domain(left[-1])}, "
            f"but axis {met} of {describe(b)} is {show_domain(right[met])}: they must be equal"
        )
    batch, rows, columns = broadcast([a, b], [left[:-2], right[:-2]]), left[-2:-1], right[met + 1 :]
    *outer, k = current("@").fresh_indices((*batch, *rows, *columns, left[-1]))
    stack, i, j = outer[: len(batch)], outer[len(batch) :][: len(rows)], outer[len(batch) + len(rows) :]
    row = element(a, (*aligned(left[:-2], stack), *i, k))
    column = element(b, (*aligned(right[:-2], stack), k, *j))
    return tabulate(outer, total([k], mul(row, column)))


def einsum(subscripts: str, operands: Sequence[Term]) -> Term:
    """NumPy's einsum in its string form; an index is any letter, and `...` stands for the axes that have none."""
    left, arrow, result = subscripts.replace(" ", "").partition("->")
    labels = left.split(",")
    if not all(part.replace("...", "", 1).isalpha() or part in ("", "...") for part in (*labels, result)):
        raise UnsupportedError(
            f"einsum {shown(subscripts)}: only letters, commas, ... and one -> are read",
            hint='name every axis: cd.einsum("bij,bjk->bik", A, B)',
        )
    if len(labels) != len(operands):
        raise TypeMismatchError(
            f"einsum {shown(subscripts)} describes {len(labels)} operands, but {len(operands)} are given"
        )
    spread = [_spread(letters, operand) for letters, operand in zip(labels, operands, strict=True)]
    for letters, written, operand in zip(spread, labels, operands, strict=True):
        if len(letters) != len(axes_of(operand)):
            raise TypeMismatchError(
                f"einsum {shown(subscripts)} gives {describe(operand)} the {len(letters)} indices {written!r}, "
                f"but its order is {len(axes_of(operand))}"
            )
    unnamed = "".join(sorted({letter for letters in spread for letter in letters if letter >= UNNAMED}))
    if not arrow:
        once = sorted(c for c in set(left) - {",", "."} if left.count(c) == 1)
        result = "...".join(["", "".join(once)]) if unnamed else "".join(once)
    result = result.replace("...", unnamed)
    if not set(result) <= set("".join(spread)) or len(set(result)) != len(result):
        raise TypeMismatchError(f"einsum {shown(subscripts)}: each index of the result must be one of the left, once")
    return contract(operands, spread, result, f"einsum {shown(subscripts)}")


UNNAMED = "\ue000"  # the first of the private letters, which stand for the axes of `...`


def _spread(letters: str, operand: Term) -> str:
    """The indices of an operand, with a private letter for each axis of `...`: one for one place from the end."""
    missing = len(axes_of(operand)) - len(letters.replace("...", ""))
    private = (chr(ord(UNNAMED) + MOST_UNNAMED - n) for n in range(missing, 0, -1))
    return letters.replace("...", "".join(private))


# --- axes ----------------------------------------------------------------------------------------------------------


def transpose(tensor: Term, axes: Sequence[int] | None = None) -> Term:
    """The axes reversed, or in the order given."""
    order = len(axes_of(tensor))
    chosen = list(reversed(range(order))) if axes is None else positions(axes, order)
    if set(chosen) != set(range(order)) or len(chosen) != order:
        raise TypeMismatchError(f"the axes {shown(axes)} are no order of the {order} axes of {describe(tensor)}")
    indices = current("transpose").fresh_indices(axes_of(tensor)[axis] for axis in chosen)
    sources = dict(zip(chosen, indices, strict=True))
    return lambda_(indices, element(tensor, [sources[axis] for axis in range(order)]))


def sum_axes(tensor: Term, axes: int | Sequence[int] | None = None, keepdims: bool = False) -> Term:
    """The sum over all axes, or over those given, which `keepdims` leaves there with size 1."""
    order = len(axes_of(tensor))
    gone = list(range(order)) if axes is None else positions(axes, order)
    if any(not 0 <= axis < order for axis in gone) or len(set(gone)) != len(gone):
        raise TypeMismatchError(
            f"the axes to sum are {shown(axes)}, but {describe(tensor)} has the axes 0 … {order - 1}"
        )
    indices = current("sum").fresh_indices(axes_of(tensor))
    kept = [index for axis, index in enumerate(indices) if axis not in gone]
    if keepdims:
        ones = current("sum").fresh_indices([Range(1)] * order)
        kept = [ones[axis] if axis in gone else index for axis, index in enumerate(indices)]
    return tabulate(kept, total([indices[axis] for axis in gone], element(tensor, indices)))


def count(tensor: Term, axes: int | Sequence[int] | None = None) -> Term:
    """The number of elements along all axes, or those given."""
    shape = axes_of(tensor)
    return mul(*(size_of_axis(shape[n]) for n in (range(len(shape)) if axes is None else positions(axes, len(shape)))))


def positions(axes: object, order: int) -> list[int]:
    """Axes as numbers from 0 on; one that there is none of stays as it is."""
    given: Iterable[Any] = axes if isinstance(axes, Iterable) else (axes,)
    try:
        found = [operator.index(axis) for axis in given]
    except TypeError:
        raise TypeMismatchError(
            f"{shown(axes)} is no axis and no list of axes", hint="axes are whole numbers"
        ) from None
    return [axis + order if -order <= axis < 0 else axis for axis in found]


def expanded(term: Term) -> Term:
    """A program's result: a number as it is, a tensor as a Lambda over index variables."""
    if isinstance(term, Lambda) or not axes_of(term):
        return term
    indices = current("a result").fresh_indices(axes_of(term))
    return Lambda(indices, element(term, indices))
