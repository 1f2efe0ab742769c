"""NumPy's functions of whole arrays: value, shape and derivative of each, as NumPy has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import TORCH, back, convert

import combdiff as cd

SMALL = np.random.default_rng(3)
IDX = np.array([2, 0, 2])

# What is done to a 2 × 3 matrix, as a NumPy user writes it.
OF_A_MATRIX: dict[str, Callable[[Any], Any]] = {
    "x[1:]": lambda A: A[1:],
    "x[:, ::2]": lambda A: A[:, ::2],
    "x[::-1]": lambda A: A[::-1],
    "x[:, -2:]": lambda A: A[:, -2:],
    "x[..., 1]": lambda A: A[..., 1],
    "x[None]": lambda A: A[None],
    "x[:, None, 1:]": lambda A: A[:, None, 1:],
    "x[-1]": lambda A: A[-1],
    "x[1:1]": lambda A: A[1:1],
    "x[:, idx]": lambda A: A[:, IDX],
    "x[[0, 1, 1], idx]": lambda A: A[[0, 1, 1], IDX],
    "x[:, [-1, 0]]": lambda A: A[:, [-1, 0]] + A[[-1, -2], [-3, 2]],
    "take": lambda A: np.take(A, IDX, axis=1),
    "take from the end": lambda A: np.take(A, IDX - 3, axis=1) + np.take_along_axis(A, IDX[None] - 3, axis=1),
    "reshape 3, 2": lambda A: A.reshape(3, 2),
    "reshape -1": lambda A: A.reshape(-1),
    "reshape 2, 1, 3": lambda A: np.reshape(A, (2, 1, 3)),
    "reshape 1, 6": lambda A: A.reshape((1, -1)),
    "ravel": np.ravel,
    "flatten": lambda A: A.flatten(),
    "swapaxes": lambda A: A.swapaxes(0, 1),
    "moveaxis": lambda A: np.moveaxis(A, 0, -1),
    "expand_dims": lambda A: np.expand_dims(A, -1),
    "squeeze": lambda A: np.squeeze(A[None]),
    "broadcast_to": lambda A: np.broadcast_to(A, (4, 2, 3)),
    "concatenate": lambda A: np.concatenate([A, 2 * A[:, 1:]], axis=1),
    "concatenate flat": lambda A: np.concatenate([A, A], axis=None),
    "stack": lambda A: np.stack([A, A * A], axis=1),
    "vstack": lambda A: np.vstack([A, A[0]]),
    "hstack": lambda A: np.hstack([A, A]),
    "column_stack": lambda A: np.column_stack([A[:, 0], A]),
    "split": lambda A: np.split(A, 3, axis=1)[1],
    "array_split": lambda A: np.array_split(A, 2, axis=1)[0],
    "flip": np.flip,
    "fliplr": np.fliplr,
    "roll": lambda A: np.roll(A, 1, axis=1),
    "roll flat": lambda A: np.roll(A, -2),
    "rot90": np.rot90,
    "rot90 thrice": lambda A: np.rot90(A, 3),
    "pad": lambda A: np.pad(A, ((1, 0), (0, 2))),
    "pad ones": lambda A: np.pad(A, 1, constant_values=1),
    "tile": lambda A: np.tile(A, (2, 2)),
    "repeat": lambda A: np.repeat(A, 2, axis=1),
    "diag": lambda A: np.diag(A[0]),
    "diag above": lambda A: np.diag(A[0], 1),
    "diagonal": lambda A: np.diagonal(A, 1),
    "tril": np.tril,
    "triu": lambda A: np.triu(A, 1),
    "ones_like": lambda A: A * np.ones_like(A),
    "mean": lambda A: A.mean(axis=0),
    "var": lambda A: A.var(axis=1, keepdims=True),
    "std": lambda A: np.std(A, axis=1, ddof=1),
    "cumsum": lambda A: np.cumsum(A, axis=1),
    "cumsum flat": np.cumsum,
    "diff": lambda A: np.diff(A, axis=1),
    "norm": lambda A: np.linalg.norm(A, axis=1),
    "norm of all": np.linalg.norm,
    "inner": lambda A: np.inner(A, A),
    "vdot": lambda A: np.vdot(A, A),
    "tensordot": lambda A: np.tensordot(A, A, axes=([1], [1])),
    "kron": lambda A: np.kron(A[:, :2], A),
    "cross": lambda A: np.cross(A, A[::-1]),
    "multi_dot": lambda A: np.linalg.multi_dot([A, A.T, A]),
    "average": lambda A: np.average(A, axis=1, weights=np.arange(1.0, 4.0)),
    "append": lambda A: np.append(A, A[0]),
    "dstack": lambda A: np.dstack([A, A * A]),
    "rollaxis": lambda A: np.rollaxis(A, 1),
    "select": lambda A: np.select([A > 1, A < 0], [A, 2 * A], 0.5 * A),
    "ptp": lambda A: np.ptp(A, axis=0),
    "trapezoid": lambda A: np.trapezoid(A, dx=0.5) + np.nansum(A),
    "degrees": lambda A: np.degrees(A) + np.deg2rad(A) + np.logaddexp2(A, 1.0),
    "polyval": lambda A: np.polyval(A[0], A[1]),
    "vecdot": lambda A: np.vecdot(A, A) + np.fabs(A).sum(1),
    "einsum ...": lambda A: np.einsum("...i,ji->...j", A, A),
    "einsum of stacks": lambda A: np.einsum("...ij,...jk", np.stack([A, A]), np.stack([A.T, A.T])),
    "einsum ... away": lambda A: np.einsum("...j,...j->...", A, A),
    "einsum by lists": lambda A: np.einsum(A, [0, 1], A, [2, 1], [2, 0]),
    "einsum by lists, implicit": lambda A: np.einsum(A, [0, 1], A, [..., 1]),
    "clip": lambda A: np.clip(A, -0.4, 0.7),
    "arctan2": lambda A: np.arctan2(A, A[::-1]),
    "hypot": lambda A: np.hypot(A, 2.0),
    "log2": lambda A: np.log2(A * A + 1),
    "exp2": np.exp2,
    "cbrt": np.cbrt,
    "arcsinh": np.arcsinh,
    "floor": lambda A: np.floor(3 * A) * A,
    "heaviside": lambda A: np.heaviside(A, 0.5) * A,
    "logsumexp": lambda A: cd.logsumexp(A, axis=1, keepdims=True),
    "softmax": lambda A: cd.softmax(A, axis=-1),
    "shape": lambda A: A.sum() / A.shape[0],
    "constants": lambda A: A @ np.arange(6.0).reshape(3, 2) + np.ones(2),
}
REAL = SMALL.normal(size=(2, 3))


def program(operation: Callable[[Any], Any]) -> cd.Program:
    def applied(A):  # type: ignore[no-untyped-def]
        return operation(A)

    applied.__annotations__ = {"A": cd.Space(2, 3)}
    return cd.program(applied)


@pytest.mark.parametrize("name", OF_A_MATRIX)
def test_a_function_of_arrays_is_numpys(name: str) -> None:
    operation = OF_A_MATRIX[name]
    f, expected = program(operation), np.asarray(operation(REAL))
    found = np.asarray(f(REAL))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.sample(14)
@pytest.mark.parametrize("name", OF_A_MATRIX)
def test_its_gradient_is_that_of_central_differences(name: str) -> None:
    operation = OF_A_MATRIX[name]
    weights = SMALL.normal(size=np.shape(operation(REAL)))

    def weighted(A):  # type: ignore[no-untyped-def]
        return (weights * operation(A)).sum()

    weighted.__annotations__ = {"A": cd.Space(2, 3)}
    assert cd.testing.check_grad(cd.program(weighted), "A", A=REAL) < 1e-5


@pytest.mark.sample(20)
@pytest.mark.parametrize("backend", [TORCH, "dask"])  # JAX compiles each for a tenth of a second
@pytest.mark.parametrize("name", OF_A_MATRIX)
def test_other_libraries_agree(name: str, backend: str) -> None:
    f = program(OF_A_MATRIX[name])
    np.testing.assert_allclose(back(f(convert(backend, REAL))), f(REAL), atol=1e-12)


def test_any_letter_is_an_index() -> None:
    f = program(lambda A: cd.einsum("αβ,γβ->γα", A, A))
    np.testing.assert_allclose(f(REAL), REAL @ REAL.T)


def test_a_constant_is_read_with_indices() -> None:
    @cd.program
    def picked(x: cd.Space("n"), w: cd.Space(3)):
        return cd.sum(lambda e: x[cd.constant(IDX)[e]] * w[e])

    x, w = np.arange(4.0), np.array([1.0, 2.0, 3.0])
    assert picked(x, w) == (x[IDX] * w).sum()
    assert cd.testing.check_grad(picked, "x", x=x, w=w) < 1e-8
    assert "IDX[e]" in str(picked)
    with pytest.raises(cd.TraceError, match=r"cd\.constant\(K\)") as caught:

        @cd.program
        def refused(w: cd.Space(3)):
            return cd.sum(lambda e: IDX[e] * w[e])

    assert "NumPy asks for the numbers of a traced index" in caught.value.message


def test_the_same_view_of_a_constant_is_one_constant_wherever_it_is_written() -> None:
    edges = np.array([[0, 1], [1, 2], [2, 0], [3, 1]])
    ends = edges[:, 0].copy()

    @cd.program
    def springs(x: cd.Space("n")):
        return ((x[edges[:, 1]] - x[edges[:, 0]]) ** 2 * x[edges[:, 0]] * x[edges[:, 1]] * x[ends]).sum()

    x = np.array([1.0, 3.0, -2.0, 0.5])
    first, last = edges.T
    np.testing.assert_allclose(springs(x), ((x[last] - x[first]) ** 2 * x[first] * x[last] * x[first]).sum())
    assert list(springs.fixed) == ["c", "c2", "ends"]  # two arrays of equal elements may be changed apart
    assert cd.testing.check_grad(springs, "x", x=x) < 1e-6


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "reshape": (lambda A: A.reshape(4, 2), "cannot be reshaped to (4, 2): the numbers of elements differ"),
    "two unknowns": (lambda A: A.reshape(-1, -1), "only one -1 can be worked out"),
    "order": (lambda A: np.reshape(A, 6, order="K"), "reshape in the order 'K'"),
    "concatenate": (lambda A: np.concatenate([A, A[0]]), "axes other than 0 must be equal"),
    "split": (lambda A: np.split(A, 4, axis=1), "A has 3 elements along axis 1: no 4 equal parts"),
    "split by 0": (lambda A: np.split(A, 0), "the number of parts of a split is 0"),
    "roll": (lambda A: np.roll(A, "x"), "the shift of a roll is 'x'"),
    "outside": (lambda A: A[5], "the index 5 is outside of axis 0 of A"),
    "steps of 0": (lambda A: A[::0], "axis 0 of A is read with steps of 0"),
    "slice": (lambda A: A[0.5:], "axis 0 of A is read with slice(0.5, None, None)"),
    "rows": (lambda A: A[[[0, 1], [1]]], "a tensor is read with [[0, 1], [1]]"),
    "mask": (lambda A: A[np.array([[True, False, True]] * 2)], "a tensor is read with an array of bool"),
    "pad": (lambda A: np.pad(A, (1, 2, 3)), "np.pad of A with the widths (1, 2, 3)"),
    "tril": (lambda A: np.tril(A[0]), "np.tril takes a matrix, but A[0, :] has order 1"),
    "broadcast": (lambda A: np.broadcast_to(A, (3, 3)), "A over (2, 3) does not broadcast to (3, 3)"),
    "tensordot": (lambda A: np.tensordot(A, A, 3), "of order 2 and A of order 2 over the axes"),
    "norm": (lambda A: np.linalg.norm(A, 3), "np.linalg.norm of a matrix with ord=3"),
    "np.matrix": (lambda A: A * np.eye(3).view(np.matrix), "a np.matrix is used in a program, where * would not be"),
    "mask of an array": (lambda A: cd.constant(np.ma.array([1, 2], mask=[0, 1])), "where its mask would be lost"),
    "text": (lambda A: A * np.array(["a", "b", "c"]), "an array of <U1 is used in a program"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_by_its_own_sentence(name: str) -> None:
    operation, message = REFUSED[name]
    with pytest.raises(cd.CombdiffError) as caught:
        program(operation)
    assert message in caught.value.message
    assert __file__ in str(caught.value)


@pytest.mark.thorough
def test_sums_of_exponentials_take_a_lambda() -> None:
    @cd.program
    def f(A: cd.Space("n", "m"), x: cd.Space("m")):
        shares = cd.softmax(lambda i, j: A[i, j] * x[j], axis=1)
        return cd.logsumexp(lambda i, j: A[i, j] * x[j]) + cd.logsumexp(lambda k: k * 1.0, k=4) + cd.sum(shares * A)

    @cd.program
    def same(A: cd.Space("n", "m"), x: cd.Space("m")):
        shares = cd.softmax(A * x, axis=1)
        return cd.logsumexp(A * x) + cd.logsumexp(np.arange(4.0)) + cd.sum(shares * A)

    A, x = np.cos(np.arange(6.0)).reshape(2, 3), np.array([300.0, -4.0, 900.0])
    assert f(A, x) == pytest.approx(same(A, x))
    np.testing.assert_allclose(cd.grad(f, "x")(A, x), cd.grad(same, "x")(A, x))


@pytest.mark.parametrize("name", ["softmax", "logsumexp"])
def test_the_domain_of_no_index_is_refused(name: str) -> None:
    with pytest.raises(cd.CombdiffError, match=f"cd.{name} of a tensor has no option i"):
        getattr(cd, name)(np.ones(3), i=3)


def test_a_roll_round_a_cycle() -> None:
    """Its length need not be known: x[i − 1] is what a roll means there."""

    @cd.program
    def angles(x: cd.Space(cd.Cyclic("n"))):
        return -np.cos(x - np.roll(x, 1)).sum() + np.sin(2 * np.roll(x, -2) - x).sum()

    assert "x[i - 1]" in str(angles)
    x = np.random.default_rng(0).normal(size=5)
    np.testing.assert_allclose(angles(x), -np.cos(x - np.roll(x, 1)).sum() + np.sin(2 * np.roll(x, -2) - x).sum())
    assert cd.testing.check_routes(angles, x=x) < 1e-6


def test_negative_constant_indices_count_from_the_end_of_axes_of_any_size() -> None:
    places = np.array([-1, 0, -2])

    @cd.program
    def f(x: cd.Space("n"), A: cd.Space(3, "n")):
        return (x[places] ** 2 * np.take_along_axis(A, places[:, None], axis=1)[:, 0]).sum() + x[[-1]] @ x[[0]]

    rng = np.random.default_rng(0)
    for n in (2, 4, 5):
        x, A = rng.normal(size=n), rng.normal(size=(3, n))
        expected = (x[places] ** 2 * A[[0, 1, 2], places]).sum() + x[-1] * x[0]
        assert f(x, A) == pytest.approx(expected)
        cd.testing.check_grad(f, "x", x=x, A=A)
    with pytest.raises(cd.IndexingError, match=r"places\[i\] \+ n\*back\[i\] = -1 \(for i = 2\)"):
        f(np.ones(1), np.ones((3, 1)))

    @cd.program
    def too_far(x: cd.Space(2)):
        return x[[0, -3]]

    with pytest.raises(cd.IndexingError, match=r"c\[1\] = -3, but it has the indices 0 … 1"):
        too_far(np.ones(2))


NAMED = {
    "np.tile(x, 2)": "x ↦ i<2*n ↦ x[i mod n]",
    "np.pad(x, (2, 1), mode='wrap')": "x ↦ i<n + 3 ↦ x[(i - 2) mod n]",
    "np.pad(x, (2, 0), mode='reflect')": "x ↦ i<n + 2 ↦ [i ≤ 1] x[2 - i] + [i ≥ 2] x[i - 2]",
    "np.pad(x, (0, 2), mode='symmetric')": "",
    "np.pad(x, (2, 0), mode='edge')": "x ↦ i<n + 2 ↦ [i ≤ 1] x[0] + [i ≥ 2] x[i - 2]",
    "np.repeat(x, 3)": "",
    "np.vdot(x[:, None] * x, x[:, None] + x)": "",
    "np.median(x)": "",
    "np.quantile(x, 0.3)": "",
    "np.trace(x[:, None] * x[None, 1:])": "",
    "np.trace(x[:, None] * x, offset=-1)": "",
    "np.clip(x, a_min=-0.5, a_max=0.5)": "",
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("spelling", NAMED)
def test_of_axes_of_named_sizes(spelling: str) -> None:
    """The value is NumPy's, the slope that of differences, at several sizes; prints are as short as they can be."""

    def f(x: cd.Space("n")):
        return eval(spelling, {"np": np, "x": x})

    def squares(x: cd.Space("n")):
        return (f(x) ** 2).sum()

    program, total = cd.program(f), cd.program(squares)
    assert NAMED[spelling] in ("", str(cd.simplify(program)))
    for size in (4, 5):
        x = np.linspace(-1, 1.1, size) ** 3
        np.testing.assert_allclose(program(x), eval(spelling, {"np": np, "x": x}), rtol=1e-12)
        assert cd.testing.check_grad(total, "x", x=x) < 1e-6


PADDED = {
    ("edge", (1, 2)): "x ↦ i<7 ↦ [i ≤ 0] x[0] + [1 ≤ i ≤ 4] x[i - 1] + [i ≥ 5] x[3]",
    ("wrap", (2, 1)): "x ↦ i<7 ↦ [i ≤ 1] x[i + 2] + [2 ≤ i ≤ 5] x[i - 2] + [i ≥ 6] x[i - 6]",
    ("reflect", (0, 3)): "x ↦ i<7 ↦ [i ≤ 3] x[i] + [i ≥ 4] x[6 - i]",
    ("symmetric", (4, 0)): "x ↦ i<8 ↦ [i ≤ 3] x[3 - i] + [i ≥ 4] x[i - 4]",
    ("reflect", (4, 9)): "",  # back and forth, by an array of indices
    ("wrap", (9, 0)): "",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize(("mode", "widths"), PADDED)
def test_ends_of_a_literal_size_are_written_by_conditions(mode: Any, widths: tuple[int, int]) -> None:
    """They stood as elements at positions that an array holds, x[c[i]], which says nothing to a reader."""

    @cd.program
    def padded(x: cd.Space(4)):
        return np.pad(x, widths, mode=mode)

    @cd.program
    def squares(x: cd.Space(4)):
        return (np.sin(np.pad(x, widths, mode=mode)) ** 2).sum()

    x = np.array([0.3, -0.8, 0.5, 1.2])
    np.testing.assert_array_equal(padded(x), np.pad(x, widths, mode=mode))
    assert PADDED[mode, widths] in ("", str(padded))
    assert cd.testing.check_grad(squares, "x", x=x) < 1e-6


def test_what_numpy_leaves_as_it_is_around_an_array_is_zero() -> None:
    """The numbers that happened to be there were taken for positions."""

    @cd.program
    def f(x: cd.Space(2), y: cd.Space("n")):
        return np.pad(x, 3, mode="empty").sum() + np.pad(y, 1, mode="empty").sum()

    assert f(np.array([1.0, 2.0]), np.array([4.0])) == 7


def test_a_diagonal_of_unlike_named_sizes_is_refused_and_says_why() -> None:
    def f(A: cd.Space("m", "k")):
        return np.diagonal(A)

    with pytest.raises(cd.UnsupportedError, match="as many elements as the smaller of both, which has no name"):
        cd.program(f)


@pytest.mark.thorough
def test_a_sum_that_is_repeated_is_computed_once_for_each_place() -> None:
    """It was put where it is read, at ⌊j/2⌋, and computed for each j and each rest."""

    @cd.program
    def f(x: cd.Space(3, 6), w: cd.Space(2, 3), y: cd.Space(2, 12)):
        second = np.tanh(np.tensordot(w, x.reshape(3, 3, 2).max(axis=-1), axes=1))
        return (np.repeat(second, 4, axis=1) * y).sum()

    assert "second[i,⌊j/4⌋]" in str(f)
    x, w, y = (np.random.default_rng(0).normal(size=size) for size in ((3, 6), (2, 3), (2, 12)))
    second = np.tanh(w @ x.reshape(3, 3, 2).max(axis=-1))
    assert f(x, w, y) == pytest.approx((np.repeat(second, 4, axis=1) * y).sum())
    assert cd.testing.check_grad(f, ("x", "w"), x=x, w=w, y=y) < 1e-7
