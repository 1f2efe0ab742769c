"""Conditions between indices of one operand: no array of zeros and ones, and nothing beside them is read."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, converted, on
from masked_programs import Cube, Matrix, Vector, arrays_of, form, lower, meaning, pairs, product

import combdiff as cd
from combdiff.kernels import boxes
from combdiff.kernels import numpy as kernels


def test_small_triangles_are_written_as_masks() -> None:
    """A few lines, that are right at every size, and where what stands beside them is infinite."""
    source = form.source()
    assert "np.tril(x * A).sum(1)" in source
    assert source.count("\n") < 10
    scope: dict[str, Any] = {}
    exec(source, scope)
    rng = np.random.default_rng(0)
    for n in (0, 1, 7, 200):
        A, x = np.where(np.tri(n) > 0, rng.normal(size=(n, n)), np.inf), rng.normal(size=n)
        np.testing.assert_allclose(scope["form"](A, x), x @ np.tril(A) @ x, rtol=1e-10)


@pytest.mark.parametrize("backend", ["numpy", *BACKENDS])
def test_a_triangle_of_sums_along_any_axis(backend: str) -> None:
    """The bound is one of the result's axes, wherever in the operand the axis stands that is summed."""
    T = np.random.default_rng(0).normal(size=(4, 4, 4))
    arrays = [T] if backend == "numpy" else converted(backend, [T])
    for order in map("".join, itertools.permutations("djp")):

        def sums(T: Cube):
            def element(**at: Any) -> Any:
                return cd.sin(T[tuple(at[index] for index in order)])  # noqa: B023  (called at once)

            return cd.tensor(lambda d, p: cd.where(p < d, cd.sum(lambda j: element(d=d, j=j, p=p), j="n"), 0))

        found = np.asarray(on(backend, cd.program(sums))(*arrays))
        expected = np.tril(np.einsum(f"{order}->dp", np.sin(T)), -1)
        np.testing.assert_allclose(found, expected, atol=1e-5 if backend == "jax" else 1e-12)


@cd.program
def sides(A: Matrix, x: Vector):
    """The gradient of `form` by x."""
    below = cd.tensor(lambda d: cd.sum(lambda j: cd.where(j <= d, A[d, j] * x[j], 0)))
    return cd.tensor(lambda d: below[d] + cd.sum(lambda i: cd.where(d <= i, A[i, d] * x[i], 0)))


@pytest.mark.parametrize("n", [900])
def test_products_within_bounds_take_little_memory(n: int) -> None:
    A, x = np.ones((n, n)), np.arange(float(n))
    for program, arrays in ((form, (A, x)), (sides, (A, x)), (pairs, (A, A)), (lower, (A, x))):
        expected = program(*arrays)
        tracemalloc.start()
        found = program(*arrays)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        np.testing.assert_array_equal(found, expected)
        assert peak < n * n, (program, peak)  # bytes: an eighth of a matrix, as much as a mask of truth values
    np.testing.assert_allclose(lower(A, x), np.cumsum(x))


@pytest.mark.parametrize("n", [5, 300])
def test_what_is_undefined_later_does_not_spread_to_earlier_sums(n: int) -> None:
    A, x, B = np.ones((n, n)), np.ones(n), np.ones((n, 3))
    x[n - 2] = B[n - 2, 1] = np.nan
    assert np.isnan(lower(A, x)).tolist() == [False] * (n - 2) + [True] * 2
    assert np.isnan(product(A, B)).sum() == 2


def test_bounds_on_functions_that_are_undefined_elsewhere() -> None:
    """A negative x[j] is only in the sums that read it."""

    @cd.program
    def logarithms(x: Vector, k: Vector):
        return cd.tensor(lambda i: cd.sum(lambda j: cd.where((j <= i) & (j >= i - 3), cd.log(x[j]) * k[i], 0)))

    x, v = np.full(8, 2.0), np.ones(8)
    x[7] = -1
    with np.errstate(invalid="ignore"):
        found = logarithms(x, v)
    assert np.isnan(found).tolist() == [False] * 7 + [True]
    np.testing.assert_allclose(found[:7], np.log(2) * np.minimum(np.arange(1, 8), 4))


@pytest.mark.parametrize("seed", range(40))
def test_boxes_have_each_position_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(boxes, "SMALL", int(rng.choice([1, 5, 1000])))
    monkeypatch.setattr(boxes, "MOST", int(rng.choice([1, 4, 64])))
    boxes._boxes.cache_clear()
    sizes = tuple(int(n) for n in rng.choice([0, 1, 2, 3, 5, 9], size=rng.integers(1, 4)))
    conditions = tuple(
        (tuple(int(c) for c in rng.integers(-4, 5, len(sizes))), int(rng.integers(-6, 9)), int(modulus))
        for modulus in rng.choice([0, 0, 2, 3, 17], size=rng.integers(1, 4))
    )
    count = np.zeros(sizes, int)
    for box, bounds in boxes._boxes(sizes, conditions):
        count[box] += boxes._kept(np, np.ones_like(count[box]), boxes._holds(np.arange, bounds, box, range(len(sizes))))
    for place in itertools.product(*map(range, sizes)):
        forms = [(sum(s * t for s, t in zip(c[0], place, strict=True)) + c[1], c[2]) for c in conditions]
        assert count[place] == all(form % modulus == 0 if modulus else form >= 0 for form, modulus in forms)
    boxes._boxes.cache_clear()


def test_running_sums_of_ones_count() -> None:
    @cd.program
    def count(x: Vector):
        return cd.sum(lambda i, j: cd.where(j <= i, 1, 0), i=cd.Range("n"), j=cd.Range("n")) * x[0]

    assert count(np.ones(7)) == 28


@pytest.mark.parametrize("steps", [(1, -1, 1), (-2, -2, 1), (3, 1, 2)])
def test_boxes_of_several_multiples_are_added(steps: tuple[int, ...]) -> None:
    """Three labels and a modulus of 5 give an equation for each multiple, whose boxes overlap."""
    array = np.random.default_rng(0).normal(size=(2, 5, 5, 5))
    grid = np.indices(array.shape)[1:]
    holds = (sum(step * values for step, values in zip(steps, grid, strict=True)) - 1) % 5 == 0
    np.testing.assert_array_equal(kernels._keep(array, (((0, *steps), -1, 5),)), np.where(holds, array, 0))


WRITTEN: dict[str, tuple[Any, list[str]]] = {
    "slices": (lambda x, y, A: np.concatenate([y[1:], (y / x)[:1]]), ["_placed(", "[max(0, n - 1):]"]),
    "places": (lambda x, y, A: np.stack([x, y]), ["np.stack([x, y], 0)"]),
    "a place": (
        lambda x, y, A: cd.tensor(lambda i, j: cd.where(j == 1, x[i], 0), i="n", j=4),
        ["np.zeros_like(", "[:, 1:2] = "],
    ),
    "both ends": (
        lambda x, y, A: cd.tensor(lambda i: cd.where((i >= 1) & (i <= 3) & (2 * i >= x.shape[0]), x[i] * y[i], 0)),
        ["x[max(1, -((-n) // 2)):4]"],
    ),
    "triangles": (lambda x, y, A: cd.sum(lambda i, j: cd.where(j <= i, A[i, j] ** 2, 0)), ["np.tril(A * A).sum()"]),
    "band": (lambda x, y, A: cd.sum(lambda i, j: cd.where((i <= j + 1) & (j <= i + 2), A[i, j], 0)), [".sum()"]),
    "all but a diagonal": (
        lambda x, y, A: cd.tensor(lambda i: cd.sum(lambda j: cd.where(i != j, A[i, j] * x[j], 0))),
        ["np.where(np.arange(n)[:, None] != np.arange(n), x * A, 0).sum(1)"],
    ),
    "two holes": (
        lambda x, y, A: cd.tensor(lambda i, j: cd.where((i != j) & (j != i + 1), x[i] * y[j], 0), i="n", j="n"),
        [") & (np.arange("],
    ),
    "parity": (
        lambda x, y, A: cd.tensor(lambda i, j: cd.where((i + j) % 2 == 0, A[i, j] * x[j], 0), i="n", j="n"),
        ["np.where((np.arange(n)[:, None] + np.arange(n)) % 2 == 0, "],
    ),
    "not every third": (
        lambda x, y, A: cd.tensor(lambda i: cd.sum(lambda j: cd.where((i + 2 * j) % 3 != 1, A[j, i] * x[j], 0))),
        ["% 3 == 0, ", ".sum(0)"],
    ),
    "beside a diagonal": (lambda x, y, A: np.triu(A * A.T, 2), ["np.triu(", ", 2)"]),
    "of one operand": (lambda x, y, A: np.triu(A, 1) @ A, ["_masked_product(lambda a, b: a @ b"]),
    "running": (lambda x, y, A: np.cumsum(A, axis=1), ["np.cumsum(A, 1)"]),
    "running from the end": (
        lambda x, y, A: cd.tensor(lambda i: cd.sum(lambda j: cd.where(j >= i, x[j], 0)), i="n"),
        ["np.flip(np.cumsum(np.flip(x, (0,)), 0), (0,))"],
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_plain_conditions_are_written_plainly(name: str) -> None:
    """Slices, triangles and running sums; no boxes are looked for, and arrays of every size are taken."""
    body, texts = WRITTEN[name]

    @cd.program
    def f(x: Vector, y: Vector, A: Matrix):  # type: ignore[no-untyped-def]
        return body(x, y, A)

    source = f.source()
    assert "_boxes" not in source
    assert all(text in source for text in texts), source
    scope: dict[str, Any] = {}
    exec(source, scope)
    for n in (0, 1, 2, 3, 7):
        arrays = arrays_of(f, n)
        np.testing.assert_allclose(scope["f"](*arrays), meaning(f, arrays, n), rtol=1e-12)


def test_the_smaller_of_two_operands_is_masked() -> None:
    """Forces of pairs: [i ≠ j] is told of the differences, of three axes, and of the distances, of two."""

    @cd.program
    def forces(x: cd.Space(100, 3), r: cd.Space(100, 100)):  # type: ignore[no-untyped-def, valid-type]
        return cd.tensor(lambda i, e: cd.sum(lambda j: cd.where(i != j, (x[i, e] - x[j, e]) / r[i, j], 0)))

    simple = cd.simplify(forces)
    (product,) = [line for line in simple.source().splitlines() if "= _masked_product(" in line]
    assert "(np.arange(100)[:, None, None] != np.arange(100), np.arange(100)[:, None] != np.arange(100)), 0)" in product
    rng = np.random.default_rng(0)
    x, r = rng.normal(size=(100, 3)), rng.random((100, 100)) + 1
    for size in (1.0, 0.0, np.nan):
        np.fill_diagonal(r, size)
        apart = np.where(np.eye(100)[..., None], 0, (x[:, None] - x) / np.where(np.eye(100), 1, r)[..., None])
        np.testing.assert_allclose(simple(x, r), apart.sum(1), rtol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", *BACKENDS])
@pytest.mark.parametrize("size", [3, pytest.param(150, marks=pytest.mark.thorough)])
def test_what_no_condition_reads_is_not_multiplied(backend: str, size: int) -> None:
    """Infinite and nan entries that conditions leave out have no share, in small arrays and in large ones."""
    conditions: tuple[Any, ...] = (
        lambda i, j: i != j,
        lambda i, j: (i != j) & (i != j + 1),
        lambda i, j: (i + j) % 2 == 1,
        lambda i, j: (i - j) % 3 != 0,
        lambda i, j: (i <= j + 1) & (j <= i + 1) & (i != j),
    )
    rng = np.random.default_rng(size)
    for holds in conditions:

        @cd.program
        def f(A: Matrix, x: Vector):  # type: ignore[no-untyped-def]
            return cd.tensor(lambda i: cd.sum(lambda j: cd.where(holds(i, j), A[i, j] * x[j], 0)))  # noqa: B023

        i, j = np.indices((size, size))
        kept = np.broadcast_to(holds(i, j), (size, size))
        A, x = np.where(kept, rng.normal(size=(size, size)), np.nan), rng.normal(size=size)
        x[1] = np.inf
        with np.errstate(invalid="ignore"):
            expected = np.where(kept, A * x, 0).sum(1)
        found = np.asarray(on(backend, f)(*([A, x] if backend == "numpy" else converted(backend, [A, x]))))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
