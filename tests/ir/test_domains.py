"""Spaces, index domains, and symmetry equations as groups."""

from __future__ import annotations

import itertools
import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combdiff.errors import SpaceError
from combdiff.ir.domains import (
    Action,
    Cyclic,
    Domain,
    Function,
    Range,
    Real,
    Space,
    Symmetric,
    extent,
    first_index,
    identity_action,
)
from combdiff.testing.arrays import transform

ERI = ("J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = conj(J[q,p,s,r])")


def square(order: int, *symmetry: str, dtype: Any = float, axis: Any = "N") -> Space:
    return Space(*[axis] * order, dtype=dtype, symmetry=symmetry)


# --- axes, element types, extents


def test_axes_are_sizes_names_or_domains() -> None:
    space = Space(3, "N", Cyclic("K"), Symmetric(2), Real())
    assert space.axes == (Range(3), Range("N"), Cyclic("K"), Symmetric(2), Real())
    assert space.order == 5
    assert repr(space) == "Space(3, 'N', Cyclic(size='K'), Symmetric(bound=2), Real())"
    assert Space().axes == ()
    assert repr(Space("N", "N", dtype=complex, symmetry=["A[i,j] = A[j,i]"])) == (
        "Space('N', 'N', dtype=complex, symmetry=['A[i,j] = A[j,i]'])"
    )


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (float, float),
        (complex, complex),
        (int, int),
        ("float32", float),
        ("complex64", complex),
        (np.float32, float),
        (np.complex64, complex),
        (np.int64, int),
        (np.uint8, int),
        (np.dtype("float32"), float),
        (np.dtype("float64"), float),
        (np.dtype("complex128"), complex),
        (np.dtype("int64"), int),
    ],
)
def test_element_types(dtype: Any, expected: type) -> None:
    assert Space("N", dtype=dtype).dtype is expected


def test_a_numpy_complex_dtype_keeps_the_conjugate_of_a_symmetry() -> None:
    hermitian = square(2, "H[i,j] = conj(H[j,i])", dtype=np.dtype("complex128"))
    assert hermitian.group[1].conjugate
    assert hermitian == square(2, "H[i,j] = conj(H[j,i])", dtype=complex)


@pytest.mark.parametrize(
    ("domain", "count", "first"),
    [
        (Range("N"), 4, 0),
        (Range(7), 7, 0),
        (Range(0), 0, 0),
        (Cyclic("N"), 4, 0),
        (Cyclic(3), 3, 0),
        (Symmetric("N"), 9, -4),
        (Symmetric(2), 5, -2),
        (Symmetric(0), 1, 0),
    ],
)
def test_extent_and_first_index(domain: Domain, count: int, first: int) -> None:
    assert extent(domain, {"N": 4}) == count
    assert first_index(domain, {"N": 4}) == first


def test_a_space_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="a Space cannot be changed; make a new one with another dtype"):
        Space("N").dtype = complex  # type: ignore[misc]


def test_spaces_are_equal_when_axes_type_and_group_are() -> None:
    one = square(3, "T[i,j,k] = T[j,i,k]", "T[i,j,k] = T[k,j,i]")
    other = square(3, "A[a,b,c] = A[b,c,a]", "A[a,b,c] = A[b,a,c]")
    assert one == other
    assert hash(one) == hash(other)
    assert (one.group, one.symmetry, repr(one)) == (other.group, other.symmetry, repr(other))
    assert one.equations("B") == ("B[i,j,k] = B[j,i,k]", "B[i,j,k] = B[k,j,i]")
    assert one != square(3)
    assert one != Space("N", "N", "N", dtype=complex, symmetry=one.symmetry)
    assert Space("N") != "N"


@pytest.mark.parametrize(
    "value",
    [Space(), Space("N", Cyclic(3), dtype=complex), square(4, *ERI, dtype=complex), Function(Space("N"), linear=True)],
)
def test_spaces_and_functions_survive_pickling(value: Any) -> None:
    copy = pickle.loads(pickle.dumps(value))
    assert copy == value
    assert hash(copy) == hash(value)


# --- groups


@pytest.mark.parametrize(
    ("space", "size"),
    [
        (Space("N", "M"), 1),
        (square(2, "A[i,j] = A[j,i]"), 2),
        (square(2, "A[i,j] = -A[j,i]"), 2),
        (square(2, "H[i,j] = conj(H[j,i])", dtype=complex), 2),
        (square(2, "H[i,j] = -conj(H[j,i])", dtype=complex), 2),
        (square(2, "H[i,j] = cd.conj(H[j,i])", dtype=complex), 2),
        (square(2, "H[i,j] = H[j,i]*", dtype=complex), 2),
        (square(2, "H[i,j] = -H[j,i] *", dtype=complex), 2),
        (square(3, "T[i,j,k] = T[j,i,k]", "T[i,j,k] = T[k,j,i]"), 6),
        (square(3, "T[i,j,k] = T[j,k,i]"), 3),
        (square(3, "T[i,j,k] = -T[j,i,k]", "T[i,j,k] = -T[k,j,i]"), 6),
        (square(4, *ERI, dtype=complex), 4),
        (square(4, *ERI, "J[p,q,r,s] = J[q,p,r,s]"), 8),
        (square(4, *ERI), 4),
        (square(4, "G[p,q,r,s] = -G[q,p,r,s]", "G[p,q,r,s] = -G[p,q,s,r]", "G[p,q,r,s] = G[r,s,p,q]"), 8),
        (Space(Symmetric("B"), symmetry="w[b] = w[-b]"), 2),
        (Space(Cyclic("N"), symmetry="w[b] = -w[-b]"), 2),
        (square(2, "A[i,j] = A[j,-i]", axis=Cyclic(4)), 4),
        (square(1, "z[i] = conj(z[i])", dtype=complex), 2),
        (square(1, "z[i] = conj(z[i])"), 1),
    ],
)
def test_orders_of_groups(space: Space, size: int) -> None:
    assert len(space.group) == size
    assert space.group[0] == identity_action(space.order)
    assert len(set(space.group)) == size
    for a, b in itertools.product(space.group, repeat=2):
        assert a.then(b) in space.group


def test_the_actions_of_the_coulomb_tensor() -> None:
    """J[p,q,r,s] = J[r,s,p,q] = J[q,p,s,r]* = J[s,r,q,p]* (theory: worked result 4)."""
    none = (False,) * 4
    assert set(square(4, *ERI, dtype=complex).group) == {
        Action((0, 1, 2, 3), none),
        Action((2, 3, 0, 1), none),
        Action((1, 0, 3, 2), none, conjugate=True),
        Action((3, 2, 1, 0), none, conjugate=True),
    }


def test_negated_indices_and_signs() -> None:
    space = Space(Symmetric("B"), Symmetric("B"), symmetry=["A[i, j] = - A[ -j, i ]", "A[i,j] = A[-i,-j]"])
    assert {Action((1, 0), (True, False), -1), Action((0, 1), (True, True))} < set(space.group)


@st.composite
def actions(draw: st.DrawFn, order: int = 3) -> Action:
    axes = draw(st.permutations(range(order)))
    negated = draw(st.lists(st.booleans(), min_size=order, max_size=order))
    return Action(tuple(axes), tuple(negated), draw(st.sampled_from([1, -1])), draw(st.booleans()))


@settings(deadline=None)
@given(actions(), actions(), actions(), st.sampled_from([Cyclic(3), Cyclic(4), Symmetric(1)]))
def test_then_composes_what_the_actions_do(a: Action, b: Action, c: Action, axis: Domain) -> None:
    """Rewriting T[i…] by a, then its right side by b, is rewriting by `a.then(b)`."""
    space = Space(axis, axis, axis, dtype=complex)
    rng = np.random.default_rng(0)
    size = extent(axis, {})
    array = rng.standard_normal((size,) * 3) + 1j * rng.standard_normal((size,) * 3)
    np.testing.assert_array_equal(transform(transform(array, b, space), a, space), transform(array, a.then(b), space))
    assert a.then(b).then(c) == a.then(b.then(c))
    assert a.then(identity_action(3)) == a == identity_action(3).then(a)


# --- messages


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Space(2.5), "the size of an axis is 2.5\n  hint: give a whole number such as 5, or a name such as"),
        (lambda: Space(True), "the size of an axis is True"),
        (lambda: Space(None), "the size of an axis is None"),
        (lambda: Space(-1), "the size of an axis is -1, which is negative"),
        (lambda: Space("2n"), "the size of an axis is named '2n', which is not a name\n  hint: use a name of letters"),
        (lambda: Range(-2), "the size of a Range is -2, which is negative"),
        (lambda: Cyclic("a b"), "the size of a Cyclic domain is named 'a b', which is not a name"),
        (lambda: Symmetric(1.0), "the size of a Symmetric domain is 1.0"),
        (lambda: Space(dtype=str), "dtype <class 'str'> is not a number type\n  hint: use float, complex or int"),
        (lambda: Space(dtype="word"), "dtype 'word' is not a number type"),
        (lambda: Space(dtype=bool), "dtype <class 'bool'> is not a number type"),
        (lambda: extent(Real(), {}), "the real line has no number of indices"),
        (lambda: Function("N"), "a Function takes and gives Spaces, not 'N'"),
        (lambda: Function(Space(), result=float), "a Function takes and gives Spaces, not <class 'float'>"),
        (lambda: Function(Space(), Space(), linear=True), "a linear Function takes one argument, not 2"),
        (
            lambda: square(2, "A[i,j]"),
            "the symmetry 'A[i,j]' is not an equation\n  hint: write for example \"A[i,j] = A[j,i]\"",
        ),
        (lambda: square(2, 3), "the symmetry 3 is not an equation"),
        (lambda: square(2, "A[i,j] = A[j,i] = A[i,j]"), "is not an equation"),
        (
            lambda: square(2, "A[i,j] = transpose(A)"),
            "in the symmetry 'A[i,j] = transpose(A)', 'transpose(A)' is not an access\n  hint: write for example",
        ),
        (lambda: square(2, "A[i,j] = A[j,2*i]"), "in the symmetry 'A[i,j] = A[j,2*i]', 'j,2*i' is not a list of index"),
        (lambda: square(2, "A[i,j] = B[j,i]"), "the symmetry 'A[i,j] = B[j,i]' relates two tensors, A and B"),
        (
            lambda: square(2, "A[i,j,k] = A[j,i,k]"),
            "the symmetry 'A[i,j,k] = A[j,i,k]' has 3 indices, but the Space has 2 axes",
        ),
        (lambda: square(2, "A[i,j] = A[i]"), "the symmetry 'A[i,j] = A[i]' has 1 indices, but the Space has 2 axes"),
        (
            lambda: square(2, "A[i,i] = A[i,i]"),
            "the left side of the symmetry 'A[i,i] = A[i,i]' must be plain, distinct",
        ),
        (lambda: square(2, "A[-i,j] = A[j,i]"), "the left side of the symmetry"),
        (
            lambda: square(2, "A[i,j] = A[i,i]"),
            "the right side of the symmetry 'A[i,j] = A[i,i]' must use each index of the left side once",
        ),
        (lambda: square(2, "A[i,j] = A[i,k]"), "must use each index of the left side once"),
        (
            lambda: Space("N", "M", symmetry=["A[i,j] = A[j,i]"]),
            "the symmetry 'A[i,j] = A[j,i]' exchanges axes 0 and 1, which are 'N' and 'M': they must be equal",
        ),
        (
            lambda: square(1, "w[b] = w[-b]"),
            "the symmetry 'w[b] = w[-b]' negates the index of axis 0, a Range without negative indices\n"
            "  hint: declare the axis as Symmetric(…), Cyclic(…) or Real()",
        ),
        (
            lambda: square(2, "A[i,j] = A[j,i]", "A[i,j] = -A[j,i]"),
            "the symmetries ['A[i,j] = A[j,i]', 'A[i,j] = -A[j,i]'] together say T = −T, so only the zero tensor has "
            "them\n  hint: remove one of the equations",
        ),
        (lambda: square(3, "T[i,j,k] = -T[j,k,i]"), "together say T = −T"),
        (lambda: square(3, "T[i,j,k] = -T[j,i,k]", "T[i,j,k] = T[i,k,j]"), "together say T = −T"),
        (lambda: square(1, "z[i] = -z[i]"), "together say T = −T"),
    ],
)
def test_messages(make: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=re.escape(message)):
        make()


def test_a_message_shows_the_line_that_wrote_the_space() -> None:
    with pytest.raises(SpaceError) as caught:
        Space(-1)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    assert str(caught.value).startswith(f"{__file__}:{caught.value.location.line}: the size of an axis is -1")
