"""What array programs are planned to: slices as slices, axes split by reshapes, decompositions."""

from __future__ import annotations

import numpy as np
import pytest

import combdiff as cd

R = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (np.s_[2:], "x[2:]"),
        (np.s_[:3], "x[:3]"),
        (np.s_[1:4], "x[1:4]"),
        (np.s_[::2], "x[::2]"),
        (np.s_[0:5:2], "x[:6:2]"),
        (np.s_[::-1], "[::-1]"),
        (np.s_[5:2:-1], "x[5:2:-1]"),
        (np.s_[4::-2], "x[4::-2]"),
        (np.s_[6:6], "x[6:6]"),
    ],
)
def test_slices_are_written_as_slices(part: slice, text: str) -> None:
    def sliced(x: cd.Space(7)):
        return np.exp(x[part] * 1)

    program, x = cd.program(sliced), np.arange(7.0)
    np.testing.assert_array_equal(program(x), np.exp(x[part]))
    if x[part].size:
        assert text in program.source()


def test_slices_of_named_sizes_hold_for_the_smallest() -> None:
    @cd.program
    def inner(x: cd.Space("n + 2")):
        return np.sin(x[1:-1]) * x[2:] - x[:-2]

    assert "_view" not in inner.source()
    for n in (0, 1, 5):
        x = np.arange(n + 2.0)
        np.testing.assert_allclose(inner(x), np.sin(x[1:-1]) * x[2:] - x[:-2])


def test_one_decomposition_gives_values_and_vectors() -> None:
    @cd.program
    def ellipse(A: cd.Space("n", "n")):
        w, V = cd.eigh(A)
        return cd.sum(lambda i: w[i] * V[0, i]) + w[0]

    assert ellipse.source().count("_eigh(np, A)") == 1


@pytest.mark.parametrize("backend", ["jax", "dask"])
def test_other_libraries_decompose_as_numpy_does(backend: str) -> None:
    @cd.program
    def both(A: cd.Space("n", "n")):
        w, V = cd.eigh(A)
        return w * V[0] ** 2

    A = R.normal(size=(4, 4))
    if backend == "jax":
        import jax.numpy as library
    else:
        import dask.array as library
    np.testing.assert_allclose(both(library.asarray(A)), both(A), rtol=1e-4, atol=1e-6)


def test_an_axis_is_split_by_a_reshape() -> None:
    @cd.program
    def pooled(x: cd.Space(3, 12)):
        return (x.reshape(3, 4, 3) ** 2).sum(axis=-1)

    @cd.program
    def backwards(x: cd.Space(14, 2)):
        return cd.tensor(lambda k, i, j: x[3 * i - j + 3, k], k=2, i=4, j=3)

    x = np.arange(36.0).reshape(3, 12)
    assert ".reshape(3, 4, 3)" in pooled.source()
    np.testing.assert_array_equal(pooled(x), (x.reshape(3, 4, 3) ** 2).sum(-1))
    y = np.arange(28.0).reshape(14, 2)
    expected = np.array([[[y[3 * i - j + 3, k] for j in range(3)] for i in range(4)] for k in range(2)])
    assert "x[1:13, :].reshape(4, 3, 2)[:, ::-1, :]" in backwards.source()
    np.testing.assert_array_equal(backwards(y), expected)
    np.testing.assert_array_equal(backwards(y[:, ::-1]), expected[::-1])
