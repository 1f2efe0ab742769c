"""Arrays of truth values: moved, joined, counted and added up as NumPy does, with sizes known and named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, back, converted, double_precision, on, quiet

import combdiff as cd
from combdiff.errors import CombdiffError

X = np.array([0.5, 1.5, -1.0])
A = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0], [-1.0, -2.0, -3.0]])
MASK = np.array([True, False, True])

Masks = Callable[[Any, Any], Any]

EITHER: dict[str, Masks] = {
    "read": lambda x, A: ~(A > 0)[1] & (A > 0)[:, 0] | ~(A > 0)[:, None, 1:2, ...][0, :, 0],
    "transposed": lambda x, A: (A > 0).T & ~(A > 0).transpose(1, 0) | (A > 1).mT | np.swapaxes(A > 1, 0, 1),
    "with more axes": lambda x, A: ~np.expand_dims(x > 0, 1) & np.squeeze((A > 0)[:1]) | np.atleast_2d(x > 1),
    "turned": lambda x, A: ~np.flip(A > 0) ^ np.rot90(A > 0) | (x > 0)[::-1],
    "rolled": lambda x, A: ~np.roll(A > 0, 1, axis=1) & (x > 0),
    "laid out": lambda x, A: ~np.diag(x > 0) & np.triu(A < 1, 1) | np.diag(A > 0),
    "stacked": lambda x, A: ~np.stack([x > 0, x > 1]) & (x < 1),
    "picked": lambda x, A: ~np.take_along_axis(A > 0, np.argmax(A, axis=1, keepdims=True), 1)[:, 0],
    "any": lambda x, A: ~np.any(A > 0, axis=1) | (A > 2).any(axis=0),
    "all": lambda x, A: np.all(A > -2.5, axis=0, keepdims=True) & ~(A > -2).all(),
    "all of numbers": lambda x, A: np.all(A, axis=1) ^ np.any(A) & np.allclose(x, x * (1 + 1e-9)),
    "reduced": lambda x, A: np.logical_or.reduce(A > 0, axis=1) ^ np.logical_and.reduce(A > -1.5, axis=1),
    "converted": lambda x, A: ~A.astype(bool) & (x > 0).astype(bool),
    "added": lambda x, A: (x > 0) + (x > 1) + True,
    "added to numbers": lambda x, A: sum([x > 0, x > 1, 1 - (x > 0)]) + (x > 0) * x - 2 * (A > 0),
    "multiplied": lambda x, A: (x > 0) * (A > 0) * 2 + (x > 0) * False,
    "counted": lambda x, A: np.sum(A > 0, axis=0) + np.cumsum(x > 0) + np.mean(A > 0),
}

OF_KNOWN_SIZES: dict[str, Masks] = {
    "cut": lambda x, A: np.split(A > 0, 3)[1] | (x > 0),
    "joined": lambda x, A: ~np.concatenate([x > 0, x > 1]) & np.append(x > 1, x > 0) & np.block([x > 0, x > 1]),
    "laid out anew": lambda x, A: (A > 0).reshape(9) & ~(A > 1).ravel() | (A > 2).flatten(),
    "repeated": lambda x, A: ~np.tile(x > 0, 2) | np.repeat(x > 0, 2),
    "some": lambda x, A: ~np.delete(x > 0, 1) & np.take(x > 0, [2, 0]) & (x > 0)[[0, 2]],
    "constants": lambda x, A: (MASK & (x > 0)) | ((x > 0) ^ MASK) | ~(x > 0) & MASK,
    "constants added": lambda x, A: (MASK + (x > 0)) * MASK + ((x > 0) + MASK) * 2 + MASK * (x > 0),
    "where": lambda x, A: np.any(A > 0, axis=1, where=MASK),
}


def as_program(masks: Masks, *sizes: int | str) -> cd.Program:
    def program(x, A):  # type: ignore[no-untyped-def]
        return masks(x, A)

    program.__annotations__ = {"x": cd.Space(sizes[0]), "A": cd.Space(*sizes)}
    return cd.program(program)


@pytest.mark.parametrize("name", [*EITHER, *OF_KNOWN_SIZES])
def test_masks_are_numpys(name: str) -> None:
    masks = (EITHER | OF_KNOWN_SIZES)[name]
    expected = np.asarray(masks(X, A), float)
    for sizes in [(3, 3), ("n", "n")] if name in EITHER else [(3, 3)]:
        np.testing.assert_array_equal(as_program(masks, *sizes)(X, A), expected)


def triplets(E: Any, y: Any) -> Any:
    """The triplet loss of all rows, those of one class against those of others (Schroff, Kalenichenko & Philbin)."""
    far = ((E[:, None] - E[None]) ** 2).sum(axis=-1)
    same = y[:, None] == y[None, :]
    chosen = same[:, :, None] & ~same[:, None, :] & ~np.eye(6, dtype=bool)[:, :, None]
    return np.sum(np.where(chosen, np.maximum(far[:, :, None] - far[:, None, :] + 0.7, 0), 0))


@cd.program
def loss(E: cd.Space(6, 2), y: cd.Space(6, dtype=int)):
    return triplets(E, y)


E, Y = np.random.default_rng(3).normal(size=(6, 2)), np.array([0, 1, 2, 0, 1, 0])


def test_a_loss_by_masks_and_its_gradient() -> None:
    assert loss(E, Y) == pytest.approx(triplets(E, Y), rel=1e-12)
    assert cd.testing.check_grad(loss, "E", E=E, y=Y) < 1e-6


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_gradient_by_masks_on_other_libraries(backend: str) -> None:
    with double_precision(), quiet(backend):
        found = back(on(backend, cd.grad(loss, "E"))(*converted(backend, [E, Y])))
    np.testing.assert_allclose(found, cd.grad(loss, "E")(E, Y), rtol=1e-10, atol=1e-12)


REFUSED: dict[str, tuple[Masks, str]] = {
    "a difference": (lambda x, A: (x > 0) - (x > 1), "a comparison is subtracted"),
    "a difference from an array": (lambda x, A: MASK - (x > 0), "a comparison is subtracted"),
    "a negative": (lambda x, A: -(x > 0), "a comparison is subtracted"),
    "steps": (lambda x, A: np.diff(x > 0), "np.diff of comparisons alone"),
    "a product of matrices": (lambda x, A: (A > 0) @ (A > 1), "np.matmul of comparisons alone"),
    "a dot": (lambda x, A: np.dot(x > 0, MASK), "np.dot of comparisons alone"),
    "einsum": (lambda x, A: np.einsum("ij,j->i", A > 0, x > 0), "np.einsum of comparisons alone"),
    "bits of numbers": (lambda x, A: ~((x > 0) * 1), "the bits of a traced tensor are asked for"),
    "bits beside numbers": (lambda x, A: (x > 0) & x, "& and | join comparisons"),
    "a choice by Python": (lambda x, A: x if np.any(A > 0) else A, "needs the truth of a comparison"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_has_no_numbers_for_is_refused(name: str) -> None:
    masks, message = REFUSED[name]
    with pytest.raises(CombdiffError) as caught:
        as_program(masks, 3, 3)
    assert message in caught.value.message
    assert caught.value.hint


def test_products_of_a_mask_and_numbers_are_numbers() -> None:
    f = as_program(lambda x, A: (A > 0) @ (1.0 * (x > 0)) + np.dot(A > 0, x), "n", "n")
    np.testing.assert_allclose(f(X, A), (A > 0) @ (1.0 * (X > 0)) + np.dot(A > 0, X), rtol=1e-14)


def test_comparisons_know_their_type() -> None:
    assert as_program(lambda x, A: x if (A > 0).dtype == bool else A, "n", "n")(X, A) is not A
