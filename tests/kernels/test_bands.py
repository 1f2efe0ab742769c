"""Products with sliding windows by blocks: the emitted helpers and whole programs against the plain sums."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.kernels import texts


@pytest.fixture(scope="module")
def helpers() -> dict[str, Any]:
    namespace: dict[str, Any] = {"np": np, "math": math}
    for text in texts("bands").values():
        exec(text, namespace)
    return namespace


def every_window(array: Any, kept: int, start: int, stride: int, width: int, count: int) -> Any:
    """array[…, start + stride·i + k, …] with i and k after the kept axes, zeros outside."""
    length = array.shape[kept]
    result = np.zeros((*array.shape[:kept], count, width, *array.shape[kept + 1 :]), array.dtype)
    before = (slice(None),) * kept
    for i in range(count):
        for k in range(width):
            place = start + stride * i + k
            if 0 <= place < length:
                result[(*before, i, k)] = array[(*before, place)]
    return result


@pytest.mark.sample(25)
@pytest.mark.parametrize("seed", range(150))
def test_helpers_agree_with_plain_sums(helpers: dict[str, Any], seed: int) -> None:
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    few = [1, 2, 3, 0] if seed % 10 == 0 else [1, 2, 3]
    rows = [choose.choice([1, 2, 3, 40]) for _ in range(choose.randint(0, 3))]
    first, last, outer = ([choose.choice(few) for _ in range(choose.randint(0, 2))] for _ in range(3))
    if seed % 3 == 0:  # plain weights
        first, last, outer = [], [], []
    length, width = choose.choice([1, 2, 17, 70, 300]), choose.choice([0, 1, 2, 5, 11, 12, 40])
    count, stride = choose.choice([0, 1, 2, 31, 33, 64, 200]), choose.choice([1, 1, 1, 2, 3])
    dtype = choose.choice([np.float64, np.float32, np.complex128])

    def make(*shape: int) -> Any:
        turned = 1j if dtype is np.complex128 else 0
        return (rng.standard_normal(shape) + turned * rng.standard_normal(shape)).astype(dtype)

    kept = len(rows)
    array = np.moveaxis(make(*rows, *first, length, *last), kept + len(first), kept)
    array = np.asfortranarray(array) if seed % 4 == 1 else array
    if seed % 5 == 2 and array.size and dtype is not np.complex128:
        array.flat[rng.integers(array.size)] = choose.choice([np.nan, np.inf])
    place, block = (kept, choose.choice([0, choose.randint(-50, 50)]), stride), choose.choice([1, 2, 8, 32])
    weights, other = make(width, *first, *last, *outer), make(*rows, count, *outer)
    windows = every_window(array, *place, width, count)
    tolerance = 1e-3 if dtype is np.float32 else 1e-9
    with np.errstate(all="ignore"):
        expected = np.tensordot(windows, weights, 1 + len(first) + len(last))
        given = weights, count
        sums = [helpers[name](array, *place, *given, block) for name in ("_correlate", "_exchanged")]
        sums.append(helpers["_window_sums"](array, *place, *given))
        if not (first or last or outer) and stride == 1:
            sums.append(helpers["_short"](array, place[1], *given))
        for found in sums:
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
            assert found.dtype == dtype
        expected = np.tensordot(windows, other, (list(range(kept + 1)),) * 2)
        given = other, width
        sums = [helpers[name](array, *place, *given, block) for name in ("_lags", "_by_phases")]
        for found in (*sums, helpers["_lag_sums"](array, *place, *given)):
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
            assert found.dtype == dtype


@pytest.mark.sample(12)
@pytest.mark.parametrize("seed", range(60))
def test_there_is_nothing_beyond_an_axis_for_infinite_weights(helpers: dict[str, Any], seed: int) -> None:
    """Not 0 · ∞, which is nan."""
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    length, width, count = (choose.choice([1, 2, 5, 40]) for _ in range(3))
    count, stride, start = choose.choice([count, 600]), choose.choice([1, 1, 2]), choose.randint(-8, 4)
    rows, inner, outer = choose.choice([(), (2,)]), choose.choice([(), (3,)]), choose.choice([(), (2,)])
    array, weights = rng.standard_normal((*rows, length, *inner)), rng.standard_normal((width, *inner, *outer))
    other = rng.standard_normal((*rows, count, *outer))
    weights[choose.randrange(width)] = np.inf
    whole = (slice(None),) * len(rows)
    other[(*whole, choose.randrange(count))] = np.inf
    expected = np.zeros((*rows, count, *outer)), np.zeros((width, *inner, *outer))
    with np.errstate(all="ignore"):
        for i in range(count):
            for k in range(max(0, -start - stride * i), min(width, length - start - stride * i)):
                row, at = array[(*whole, start + stride * i + k)], (*whole, i)
                expected[0][at] += np.tensordot(row, weights[k], len(inner))
                expected[1][k] += np.tensordot(row, other[at], (range(len(rows)),) * 2)
        place = array, len(rows), start, stride
        sums = [helpers[name](*place, weights, count, 8) for name in ("_correlate", "_exchanged")]
        sums.append(helpers["_window_sums"](*place, weights, count))
        if stride == 1 and not (inner or outer):
            sums.append(helpers["_short"](array, start, weights, count))
        for found in sums:
            np.testing.assert_allclose(found, expected[0], rtol=1e-9, atol=1e-9)
        sums = [helpers[name](*place, other, width, 8) for name in ("_lags", "_by_phases")]
        for found in (*sums, helpers["_lag_sums"](*place, other, width)):
            np.testing.assert_allclose(found, expected[1], rtol=1e-9, atol=1e-9)


@pytest.mark.sample(2)
@pytest.mark.parametrize("rows", [(), (7,), (3, 5)])
@pytest.mark.parametrize("start", [0, -3, 40])
def test_long_rows(helpers: dict[str, Any], rows: tuple[int, ...], start: int) -> None:
    """Rows whose windows are multiplied as they lie, copied a few at a time, or by parts."""
    rng = np.random.default_rng(0)
    array, place = rng.standard_normal((*rows, 1500)), (len(rows), start, 1)
    for width, count in ((3, 700), (11, 1490), (60, 1441), (300, 1300)):
        weights, other = rng.standard_normal(width), rng.standard_normal((*rows, count))
        windows = every_window(array, *place, width, count)
        found = helpers["_correlate"](array, *place, weights, count, 16)
        np.testing.assert_allclose(found, windows @ weights, atol=1e-9)
        expected = np.tensordot(windows, other, (list(range(len(rows) + 1)),) * 2)
        np.testing.assert_allclose(helpers["_lags"](array, *place, other, width, 16), expected, atol=1e-9)


def test_functions_are_computed_before_windows_and_rolls_read_them() -> None:
    @cd.program
    def f(x: cd.Space("n"), w: cd.Space("k"), v: cd.Space("m"), u: cd.Space(cd.Cyclic("c"))):
        waves = cd.sum(lambda i, k: cd.sin(x[i + k]) * w[k] * v[i])
        return waves + cd.sum(lambda i: cd.cos(u[i + 1]) * u[i] + cd.cos(u[i]) + cd.log(u[i - 2]))

    source = f.source().split("def f(")[1].split("\n\n\n")[0]
    assert source.count("np.cos(") == 1
    assert "np.sin(x)" in source
    x, w, v, u = (np.linspace(0.1, 1, n) for n in (9, 3, 7, 5))
    expected = sum(np.sin(x[i + k]) * w[k] * v[i] for i in range(7) for k in range(3))
    expected += (np.cos(np.roll(u, -1)) * u + np.cos(u) + np.log(u)).sum()
    assert abs(f(x, w, v, u) - expected) < 1e-12


@pytest.mark.parametrize("shape", [(), (2,)])
def test_an_infinite_element_times_zero_is_nan(helpers: dict[str, Any], shape: tuple[int, ...]) -> None:
    array, weights = np.ones((40, *shape)), np.ones((14, *shape))
    array[20], weights[3] = np.inf, 0
    with np.errstate(invalid="ignore"):
        found = helpers["_correlate"](array, 0, 0, 1, weights, 27, 8)
        lags = helpers["_lags"](array, 0, 0, 1, np.zeros(27), 14, 8)
    assert np.isnan(found).tolist() == [i == 17 for i in range(27)]
    assert np.isnan(lags).all()


def test_whole_numbers_keep_their_width(helpers: dict[str, Any]) -> None:
    array, weights = np.arange(70, dtype=np.int32), np.arange(12, dtype=np.int32)
    found = helpers["_lags"](array, 0, 0, 1, np.ones(59, np.int32), 12, 16)
    assert found.dtype == helpers["_correlate"](array, 0, 0, 1, weights, 59, 16).dtype == np.int32
    np.testing.assert_array_equal(found, [array[k : k + 59].sum() for k in range(12)])
