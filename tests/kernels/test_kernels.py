"""The kernels as functions: on each library what they are on NumPy, which other tests compare with plain loops."""

from __future__ import annotations

import gc
import importlib
import itertools
from concurrent.futures import ThreadPoolExecutor
from time import sleep
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from combdiff.kernels import bands, for_numpy, numerics, running, texts
from combdiff.kernels import numpy as reference

LIBRARIES = [
    pytest.param("jax", "jax.numpy", id="jax"),
    pytest.param("torch", "torch", id="torch", marks=pytest.mark.needs("torch")),
    pytest.param("dask", "dask.array", id="dask"),
]
RNG = np.random.default_rng(0)
MATRIX = RNG.normal(size=(5, 4))
HOLED = np.where(np.eye(5, 4, dtype=bool), np.inf, MATRIX)
BOUNDS = (((1, -1), 0, 0), ((1, 2), 1, 2))  # i ≥ j, i + 2 j + 1 even
CASES: dict[str, tuple[Any, ...]] = {
    "_gather": (MATRIX, ((1, (2, 0), 1, 1), (-1, (1, 1), 2, 0)), (3, 6)),
    "_gather of a transpose, turned": (MATRIX, ((6, (0, -2), 1, 0), (-3, (2, 0), 3, 0)), (6, 4)),
    "_gather of a column, repeated": (MATRIX, ((-1, (0, 1, 0), 2, 0), (2, (0, 0, 0), 1, 0)), (2, 9, 3)),
    "_scatter": (MATRIX, np.array([2, 0, 2, 1, 2]), 3),
    "_fold": (MATRIX, -2, 3, 12),
    "_spread": (MATRIX, [0, 1, 0], (5, 4, 5)),
    "_keep": (MATRIX, BOUNDS),
    "_keep of no multiples": (MATRIX, (((1, 1), -2, -3), ((2, -1), 1, None), ((0, 1), 0, 0))),
    "_magnitude": (MATRIX * 1e200, (0,), 2),
}
SPD = MATRIX.T @ MATRIX + np.eye(4)
NUMERICS: dict[str, tuple[Any, ...]] = {
    "inverse": (SPD, "A"),
    "linear_solve": (SPD, MATRIX.T, "A"),
    "adjugate": (np.outer(SPD[0], SPD[1])[:3, :3] + np.diag([1.0, 2.0, 0.0]),),
    "logdet_positive": (SPD, "A"),
    "cholesky": (SPD, "A"),
    "eigvalsh": (SPD,),
    "svdvals": (MATRIX.T,),
    "qr_r": (MATRIX, "A"),
    "expm": (SPD,),
    "sqrtm": (SPD,),
    "products_of_others": (MATRIX,),
    "sinc_slope": (2, MATRIX),
    "levels": (np.array([[-2.0, 1e-16, 3, 3 + 1e-15], [0, 0, 1, 2]]),),
    "divided_exp": (MATRIX, MATRIX + 1e-9, MATRIX[:, :1]),
    "divided_log": (MATRIX**2 + 1, MATRIX**2 + 1.5),
    "divided_cos": (MATRIX, 9 * MATRIX),
    "wrapped": (MATRIX, 0, 3, 30),
}


RUNNING: dict[str, tuple[Any, ...]] = {
    "_running": (MATRIX, 1, -1, np.array([0, 2, 7, -3])),
    "_running of rows, from the end": (MATRIX, 0, 1, np.array([[0, -2], [9, -4]])),
    "_running_max": (MATRIX, 1, -1, np.array([0, 2, 7, -3])),
    "_running_exponentials": (9 * MATRIX, np.ones((5, 4)), MATRIX, 0, -1, np.array([3, 0, -1, 9, 2]), False),
    "_running_exponentials from the end": (MATRIX, -MATRIX, 1, 1, 1, np.array([0, -2, 1, -4]), True),
}


def kernels(library: str) -> ModuleType:
    pytest.importorskip(library)
    return importlib.import_module(f"combdiff.kernels.{library}")


def given(words: ModuleType, arguments: tuple[Any, ...]) -> list[Any]:
    """The arguments, arrays as those of a library."""
    make = getattr(words, "as_tensor", None) or words.asarray
    return [make(each) if isinstance(each, np.ndarray) else each for each in arguments]


@pytest.fixture(autouse=True)
def double_precision() -> Any:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        yield


@pytest.mark.sample(3)
@pytest.mark.parametrize(("library", "words"), LIBRARIES)
@pytest.mark.parametrize("name", CASES)
def test_kernels_of_the_libraries(name: str, library: str, words: str) -> None:
    kernel = name.split()[0]
    found = getattr(kernels(library), kernel)(*given(importlib.import_module(words), CASES[name]))
    expected = getattr(reference, kernel)(*CASES[name])
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-13)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("library", "words"), LIBRARIES)
@pytest.mark.parametrize("name", RUNNING)
def test_what_is_found_up_to_each_position(name: str, library: str, words: str) -> None:
    kernel, xp = name.split()[0], importlib.import_module(words)
    own = kernels(library) if library == "dask" else running
    found = getattr(own, kernel)(xp, *given(xp, RUNNING[name]))
    np.testing.assert_allclose(np.asarray(found), getattr(running, kernel)(np, *RUNNING[name]), rtol=1e-13)


def test_pads_read_what_is_gathered() -> None:
    """On JAX, which fuses them: each axis along one of the result, or at one place."""
    import jax.numpy as jnp

    for axes, shape in (
        (((6, (0, -2), 1, 0), (-3, (2, 0), 3, 0)), (6, 4)),
        (((-1, (0, 1, 0), 2, 0), (2, (0, 0, 0), 1, 0)), (2, 9, 3)),
        (((1, (1,), 1, 0), (9, (0,), 1, 0)), (3,)),
        (((1, (1, 0), 1, 0), (0, (0, 1), 1, 0)), (0, 2)),
    ):
        found = kernels("jax")._by_pads(jnp.asarray(MATRIX), axes, shape)
        np.testing.assert_array_equal(np.asarray(found), reference._gather(MATRIX, axes, shape))


@pytest.mark.parametrize(("library", "words"), LIBRARIES[:2])
def test_parts_are_placed_among_zeros(library: str, words: str) -> None:
    """Also where slices hold nothing."""
    xp, placed = importlib.import_module(words), kernels(library)._placed
    for part, slices in ((MATRIX, (slice(2, 7), slice(None, 4))), (MATRIX[:0], (slice(4, 3), slice(None, 4)))):
        expected = np.zeros((9, 6))
        expected[slices] = part
        np.testing.assert_array_equal(reference._placed(part, slices, (9, 6)), expected)
        np.testing.assert_array_equal(np.asarray(placed(*given(xp, (part,)), slices, (9, 6))), expected)


def test_parts_of_lazy_arrays() -> None:
    part = kernels("dask")._part(*given(importlib.import_module("dask.array"), (MATRIX,)), (slice(1, None), slice(2)))
    np.testing.assert_array_equal(
        np.asarray(part), np.where((np.indices((5, 4))[0] > 0) & (np.arange(4) < 2), MATRIX, 0)
    )


@pytest.mark.parametrize("count", [1, 3000])
@pytest.mark.parametrize("kind", [float, np.float32])
def test_hypotenuses_and_quotients_of_few_and_of_many(kind: type, count: int) -> None:
    """Squares are taken of many numbers alone, and where none over- or underflows; a scale of 1 leaves all as it is."""
    limits = np.finfo(kind)
    for size in (1, limits.max / 2, limits.tiny, 0, np.inf):
        legs = np.full(count, size, kind)[() if count > 1 else 0]
        with np.errstate(all="raise"):
            found = reference._hypot(legs, legs)
        assert found.dtype == kind
        np.testing.assert_allclose(found, legs * np.sqrt(kind(2)), rtol=2 * limits.eps)
    array = np.linspace(1, 2, count, dtype=kind)[() if count > 1 else 0]
    np.testing.assert_array_equal(reference._rescaled(array, array), np.ones_like(array))
    assert reference._rescaled(array, array / array) is array


@pytest.mark.parametrize(("kind", "infinite"), [(float, False), (float, True), (complex, False), (np.float32, False)])
def test_a_vector_slides_along_another(kind: type, infinite: bool) -> None:
    """Of every length; where a window leaves the array there is nothing, not even 0 · ∞; the blocks agree."""
    for length, width, count, start in itertools.product((0, 1, 2, 5), (0, 1, 3), (0, 1, 2, 6), (-4, -1, 0, 2)):
        array, weights = (RNG.normal(size=n) + 1j * (kind is complex) for n in (length, width))
        array, weights = (each if kind is complex else each.real.astype(kind) for each in (array, weights))
        if infinite:
            array[1::3], weights[:1] = np.inf, np.inf
        reached = [(i, k) for i in range(count) for k in range(width) if 0 <= start + i + k < length]
        expected = np.zeros(count, kind)
        with np.errstate(invalid="ignore"):  # ∞ − ∞
            for i, k in reached:
                expected[i] += array[start + i + k] * weights[k]
            found = bands._slide(array, start, weights, count)
            blocks = bands._correlate(array, 0, start, 1, weights, count, 8)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found, blocks, rtol=1e-5, atol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("matrix", [MATRIX[:4], np.stack([MATRIX[:2, :2], np.ones((2, 2))])])
def test_adjugates_on_jax_by_one_factorisation(matrix: Any) -> None:
    """The determinant times the inverse where no matrix of a stack is singular."""
    found = kernels("jax")._det_times_inverse(*given(importlib.import_module("jax.numpy"), (matrix,)))
    np.testing.assert_allclose(np.asarray(found), reference._det_times_inverse(matrix), rtol=1e-12, atol=1e-14)


def test_what_is_not_traced_is_chosen_without_jax() -> None:
    """A conditional of XLA's is compiled again in each call: gradients of determinants took a second."""
    truth = importlib.import_module("jax.numpy").asarray(True)
    assert kernels("jax")._either(truth, lambda: "one", lambda: pytest.fail("both")) == "one"


@pytest.mark.parametrize(("library", "words"), LIBRARIES)
def test_products_within_conditions(library: str, words: str) -> None:
    """Σ_j A[i, j]·x[j] over the j at which conditions hold, where infinite elements stand beside them."""
    arrays = given(importlib.import_module(words), (HOLED, RNG.normal(size=4)))
    rest = ((0, 1), (1,)), (0,), (5, 4), (((1, -1), -1, 0),), (0,)
    numpy = lambda a, b: np.einsum("ab,b->a", a, b)  # noqa: E731
    functions = {"jax": "ab,b->a", "torch": lambda a, b: a @ b, "dask": numpy}
    found = kernels(library)._within(functions[library], tuple(arrays), *rest)
    expected = np.tril(MATRIX, -1) @ np.asarray(arrays[1])
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
    np.testing.assert_allclose(reference._within(numpy, (HOLED, np.asarray(arrays[1])), *rest), expected, rtol=1e-12)


@pytest.mark.parametrize(("library", "words"), LIBRARIES[:2])
def test_products_of_what_a_mask_keeps(library: str, words: str) -> None:
    """An infinite x[j] counts in the rows alone that read it; 0·∞ beside the mask is 0."""
    mask, x = np.tri(5, 4, -1, dtype=bool), np.array([1.0, -2.0, 3.0, np.inf])
    expected = np.array([0, *(MATRIX[i, : min(i, 4)] @ x[: min(i, 4)] for i in range(1, 5))])
    given_arrays = given(importlib.import_module(words), (HOLED, x, mask))
    for module, (a, b, kept) in ((kernels(library), given_arrays), (reference, (HOLED, x, mask))):
        found = module._masked_product(lambda one, other: one @ other, (a, b), (kept, None))
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


@pytest.mark.parametrize(("library", "words"), LIBRARIES[:2])
def test_of_two_parts_with_one_mask_the_larger_is_spared(library: str, words: str) -> None:
    """Until it is seen that it has infinities, which the zeros of the other would make nan."""
    mask = np.tri(5, 4, -1, dtype=bool)
    weights, stack = RNG.normal(size=(5, 4)), RNG.normal(size=(5, 4, 3))
    for number in (0.0, np.inf, np.nan):
        held = np.where(mask[..., None], stack, number)
        expected = np.einsum("ij,ijk->ik", np.where(mask, weights, 0), stack)
        given_arrays = given(importlib.import_module(words), (held, weights, mask))
        for module, (a, b, kept) in ((kernels(library), given_arrays), (reference, (held, weights, mask))):
            found = module._masked_product(
                lambda one, other: (one * other[..., None]).sum(1), (a, b), (kept[..., None], kept), 0
            )
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


@pytest.mark.sample(5)
@pytest.mark.parametrize(("library", "words"), LIBRARIES[:2])
@pytest.mark.parametrize("name", NUMERICS)
def test_numerical_functions(name: str, library: str, words: str) -> None:
    xp = pytest.importorskip(words)
    found = getattr(numerics, f"_{name}")(xp, *given(xp, NUMERICS[name]))
    np.testing.assert_allclose(np.asarray(found), for_numpy(name)(*NUMERICS[name]), rtol=1e-9, atol=1e-12)


def test_kernels_are_read_in_several_threads() -> None:
    """Python 3.11 ends in a SystemError where one thread begins to read as another is half through."""

    def read(depth: int, library: str) -> object:
        return read(depth - 1, library) if depth else texts("bands", library)

    def give_way(*_: object) -> None:
        sleep(0)

    often = gc.get_threshold()
    gc.callbacks.append(give_way)
    gc.set_threshold(100)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(read, range(0, 40, 10), [f"np{n}" for n in range(4)]))
    finally:
        gc.set_threshold(*often)
        gc.callbacks.remove(give_way)


def test_derivatives_of_sinc_of_orders_beyond_double_precision_end() -> None:
    """Two terms are made for each order; a reader of formulas may write any."""
    for order in (621.0, 1e12):
        assert np.isnan(numerics._sinc_slope(np, np.float64(order), np.float64(0.3)))
    assert np.isfinite(numerics._sinc_slope(np, np.float64(8), np.float64(0.3)))
