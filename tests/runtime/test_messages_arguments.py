"""What is given for a tensor and is no array of numbers: the message names its type and says what to do."""

from __future__ import annotations

import array
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import combdiff as cd

A, X = np.eye(3), np.arange(3.0)


@cd.program
def apply(A: cd.Space("n", "n"), x: cd.Space("n")):
    return A @ x


@cd.program
def scaled(a: cd.Space(), x: cd.Space("n")):
    return a * x


@cd.program
def picked(i: cd.Space("m", dtype=int), x: cd.Space("n")):
    return cd.tensor(lambda k: x[i[k]])


CASES: list[tuple[Any, str, str]] = [
    ([[1, 2, 3], [1, 2], [1, 2, 3]], "its lists have unequal lengths", "make them equally long"),
    ("abc", "the array given for A has dtype <U3, which is not a number type", "x.astype(float)"),
    (bytearray(b"abc"), "a bytearray was given for A, which is no array of numbers", "nested lists of numbers"),
    ([["a"] * 3] * 3, "the array given for A has dtype <U1, which is not a number type", "x.astype(float)"),
    (A.astype(object), "has dtype object, which is not a number type", "x.astype(float)"),
    (A.astype("M8[s]"), "has dtype datetime64[s], which is not a number type", "x.astype(float)"),
    ({"a": 1}, "a dict was given for A", "nested lists"),
    ({1.0, 2.0}, "a set was given for A", "nested lists"),
    ((i for i in range(3)), "a generator was given for A", "nested lists"),
    ([[None] * 3] * 3, "a list was given for A, which is no array of numbers", "nested lists"),
    (cd.Space(3), "a combdiff.Space was given for A", "nested lists"),
    (None, "no array was given for A", "by position or by name"),
    (len, "but a callable was given for it", ""),
    (X, "A has 1 axis, shape (3,), but 2 were expected: (n, n)", ""),
    (2.5, "A has 0 axes, shape (), but 2 were expected: (n, n)", ""),
]


@pytest.mark.parametrize(("value", "found", "hint"), CASES, ids=[found[:28] for _, found, _ in CASES])
def test_what_is_no_matrix(value: Any, found: str, hint: str) -> None:
    for call in (apply, apply.compile()):
        with pytest.raises(cd.ArgumentError) as caught:
            call(value, X)
        assert found in caught.value.message
        assert hint in str(caught.value)


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_array", "coo_array", "dia_array"])
def test_sparse_matrices_are_named(kind: str) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    matrix = getattr(sparse, kind)(A)
    with pytest.raises(cd.ArgumentError, match=rf"a scipy\.{kind} was given for A") as caught:
        apply(matrix, X)
    assert ".toarray()" in str(caught.value)
    np.testing.assert_allclose(apply(matrix.toarray(), X), X)


def test_tables_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    np.testing.assert_allclose(apply(pandas.DataFrame(A), pandas.Series(X)), X)
    mixed = pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"], "c": [1, 2, 3]})
    with pytest.raises(cd.ArgumentError, match=r"a pandas\.DataFrame was given for A") as caught:
        apply(mixed, X)
    assert ".to_numpy(dtype=float)" in str(caught.value)


@pytest.mark.parametrize("number", [Fraction(1, 2), Decimal("1.5")])
def test_numbers_of_other_kinds(number: Any) -> None:
    with pytest.raises(cd.ArgumentError, match="was given for a, which is no array of numbers") as caught:
        scaled(number, X)
    assert "give float(…) of it" in str(caught.value)
    np.testing.assert_allclose(scaled(float(number), X), float(number) * X)


MATRICES: list[Any] = [
    A,
    A.tolist(),
    tuple(map(tuple, A)),
    list(A),
    memoryview(A),
    A.view(np.matrix),
    A.astype(bool),
    A.astype("u1"),
    A.astype("f2"),
    A.astype(np.longdouble),
    A.astype(">f8"),
    np.asfortranarray(A),
    A[::-1, ::-1],
    np.eye(6)[::2, ::2],
    np.broadcast_to(A, (2, 3, 3))[1],
]


@pytest.mark.parametrize("matrix", MATRICES, ids=range(len(MATRICES)))
def test_what_works_as_a_matrix(matrix: Any) -> None:
    for vector in (X, X.tolist(), array.array("d", X), X[::-1][::-1], np.repeat(X, 2)[::2]):
        found = apply(matrix, vector)
        assert type(found) is np.ndarray
        np.testing.assert_allclose(found.astype(float), X)


@pytest.mark.parametrize("number", [2, 2.0, True, np.float32(2), np.int64(2), np.array(2.0), 10**30, np.bool_(True)])
def test_what_works_as_a_number(number: Any) -> None:
    found = scaled(number, X.astype("f4"))
    assert found.dtype == (np.float64 if isinstance(number, np.ndarray | np.int64 | np.bool_) else np.float32)
    np.testing.assert_allclose(found, float(number) * X)


def test_empty_lists_have_the_element_type_of_the_parameter() -> None:
    assert picked([], X).shape == (0,)
    assert apply(np.zeros((0, 0)), []).shape == (0,)
    assert apply(np.zeros((0, 0), "f4"), []).dtype == np.float32
    with pytest.raises(cd.ArgumentError, match="takes whole numbers"):
        picked([0.5], X)
