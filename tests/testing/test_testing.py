"""Arrays with symmetries, central differences, check_grad."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from combdiff import testing
from combdiff.api.programs import program
from combdiff.errors import ArgumentError
from combdiff.ir.domains import Cyclic, Function, Real, Space, Symmetric
from combdiff.ir.terms import Var
from combdiff.testing.arrays import (
    array_shape,
    broken_symmetry,
    check_arguments,
    named_sizes,
    random_array,
    random_arrays,
    symmetrize,
    tensors,
    transform,
)
from combdiff.testing.differences import check_grad, finite_difference_gradient, finite_difference_pullback
from combdiff.tracing.functions import conj, sum_

ERI = Space(*"NNNN", dtype=complex, symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = conj(J[q,p,s,r])"])
CUBE = Space(*"NNN", symmetry=["T[i,j,k] = T[j,i,k]", "T[i,j,k] = T[k,j,i]"])
HERMITIAN = Space("N", "N", dtype=complex, symmetry=["H[i,j] = conj(H[j,i])"])
SPACES = [
    Space(),
    Space(dtype=complex),
    Space("N", "M", 2),
    Space("N", dtype=int),
    Space(0, "N"),
    Space("N", "N", symmetry=["A[i,j] = -A[j,i]"]),
    Space("N", "N", dtype=int, symmetry=["A[i,j] = A[j,i]"]),
    HERMITIAN,
    CUBE,
    ERI,
    Space(Symmetric("N"), symmetry=["w[b] = w[-b]"]),
    Space(Cyclic("N"), dtype=complex, symmetry=["w[b] = -conj(w[-b])"]),
    Space(Cyclic(4), Cyclic(4), symmetry=["A[i,j] = A[j,-i]"]),
]
SIZES = {"N": 3, "M": 2}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


# --- arrays


def test_transform_by_hand(rng: np.random.Generator) -> None:
    H = rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3))
    np.testing.assert_array_equal(transform(H, HERMITIAN.group[1], HERMITIAN), H.conj().T)
    T, rotated = rng.standard_normal((2, 2, 2)), Space(2, 2, 2, symmetry=["T[i,j,k] = T[j,k,i]"])
    found = transform(T, rotated.group[1], rotated)
    for i, j, k in np.ndindex(2, 2, 2):
        assert found[i, j, k] in (T[j, k, i], T[k, i, j])
    w = np.arange(5.0)
    for domain, mirrored in ((Symmetric(2), [4, 3, 2, 1, 0]), (Cyclic(5), [0, 4, 3, 2, 1])):
        space = Space(domain, symmetry="w[b] = w[-b]")
        np.testing.assert_array_equal(transform(w, space.group[1], space), mirrored)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_random_arrays_have_the_symmetry_exactly(space: Space, rng: np.random.Generator) -> None:
    array = random_array(space, rng, SIZES)
    assert array.shape == array_shape(space, SIZES)
    assert array.dtype == space.dtype
    assert np.max(np.abs(array), initial=0) <= (9 if space.dtype is int else 1.5)
    for action in space.group:
        np.testing.assert_array_equal(transform(array, action, space), array)
    np.testing.assert_array_equal(symmetrize(array, space), array)
    assert broken_symmetry(array, space, 0.0) is None


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.data(), st.sampled_from(SPACES))
def test_strategy_arrays_have_the_symmetry_exactly(data: st.DataObject, space: Space) -> None:
    array = data.draw(tensors(space, **SIZES))
    assert array.shape == array_shape(space, SIZES)
    assert array.dtype == space.dtype
    for action in space.group:
        np.testing.assert_array_equal(transform(array, action, space), array)


@pytest.mark.thorough
def test_the_strategy_draws_sizes_that_are_not_given_and_shrinks() -> None:
    shapes = set()

    @settings(max_examples=20, database=None, derandomize=True)
    @given(tensors(Space("N", "N", "M"), M=2))
    def collect(array: np.ndarray) -> None:
        shapes.add(array.shape)

    collect()
    assert shapes == {(n, n, 2) for n in range(1, 5)}
    smallest = find(tensors(Space("N", Symmetric("B"))), lambda array: array.size > 2)
    assert smallest.shape in ((3, 1), (1, 3))
    assert not smallest.any()


def test_large_arrays_come_from_a_seed() -> None:
    @settings(max_examples=5, database=None, derandomize=True, deadline=None)
    @given(tensors(ERI, N=6))
    def collect(array: np.ndarray) -> None:
        assert array.shape == (6, 6, 6, 6)
        assert broken_symmetry(array, ERI, 0.0) is None

    collect()


def test_random_arrays_by_name(rng: np.random.Generator) -> None:
    parameters = (Var("A", Space("N", "M")), Var("R", Function(Space("N"))), Var("b", Space(Symmetric("M"))))
    arrays = random_arrays(parameters, rng, SIZES)
    assert {name: array.shape for name, array in arrays.items()} == {"A": (3, 2), "b": (5,)}
    assert named_sizes(parameters, arrays) == SIZES


def test_symmetrize_is_the_projection(rng: np.random.Generator) -> None:
    array = rng.standard_normal((3, 3, 3))
    mean = sum(np.transpose(array, axes) for axes in [(0, 1, 2), (1, 0, 2), (2, 1, 0), (0, 2, 1), (1, 2, 0), (2, 0, 1)])
    np.testing.assert_allclose(symmetrize(array, CUBE), mean / 6)


def test_broken_symmetry_names_the_worst_equation() -> None:
    space = Space("N", "N", dtype=complex, symmetry=["S[i,j] = S[j,i]", "S[i,j] = conj(S[i,j])"])
    assert broken_symmetry(np.array([[0, 1], [1, 0]]), space) is None
    assert broken_symmetry(np.array([[0, 1j], [1j, 0]]), space, name="B") == ("B[i,j] = conj(B[i,j])", 2.0)
    assert broken_symmetry(np.array([[0, 3], [0, 0]]), space) == ("A[i,j] = A[j,i]", 3.0)
    assert broken_symmetry(np.array([[0, 1e-12], [0, 0]]), space) is None


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"A": (2, 3)}, "x is missing; the parameters are A, x"),
        ({"A": (2, 3), "x": (3,), "y": (3,)}, "y is not a parameter; the parameters are A, x"),
        ({"A": (2,), "x": (3,)}, "A has 1 axis, shape (2,), but 2 were expected: (N, M)"),
        (
            {"A": (2, 3), "x": (4,)},
            "M is 3 by axis 1 of A (shape (2, 3), expected (N, M)), but 4 by axis 0 of x (shape (4,), expected (M))",
        ),
    ],
)
def test_messages_for_shapes(arrays: dict[str, tuple[int, ...]], message: str) -> None:
    parameters = (Var("A", Space("N", "M")), Var("x", Space("M")))
    with pytest.raises(ArgumentError, match=re.escape(message)):
        check_arguments(parameters, {name: np.zeros(shape) for name, shape in arrays.items()})


@pytest.mark.parametrize(
    ("space", "array", "message"),
    [
        (Space(3), np.zeros(2), "axis 0 of x (shape (2,), expected (3)) has 2 elements, but 3 were expected"),
        (Space(Symmetric("B")), np.zeros(4), "has 4 elements, but a Symmetric axis has an odd number, 2·B + 1"),
        (Space(Symmetric(2)), np.zeros(3), "has 3 elements, but 5 were expected"),
        (Space(2), np.zeros(2, complex), "x is complex, but Space(2) is declared with dtype float"),
        (
            HERMITIAN,
            np.array([[1, 2j], [2j, 0]]),
            "x violates its declared symmetry 'x[i,j] = conj(x[j,i])': the two sides differ by up to 4\n"
            "  hint: cd.testing.tensors(space, …) and cd.testing.symmetrize(array, space) make arrays that have it",
        ),
    ],
)
def test_messages_for_arrays(space: Space, array: np.ndarray, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        check_arguments((Var("x", space),), {"x": array})


def test_messages_for_spaces() -> None:
    with pytest.raises(ArgumentError, match=r"Space\(Real\(\)\) has an axis over the real line"):
        tensors(Space(Real()))
    with pytest.raises(ArgumentError, match=r"the size N of Space\('N'\) is not given\n  hint: add N=3"):
        array_shape(Space("N"), {})


# --- central differences


def test_gradient_of_a_complex_quadratic_form(rng: np.random.Generator) -> None:
    """∇ x†Ax = 2Ax for Hermitian A; the entries of A count as independent: ∇_A = x* xᵀ conjugated."""
    arrays = {"A": random_array(HERMITIAN, rng, SIZES), "x": random_array(Space(3, dtype=complex), rng, {})}

    def form(A: np.ndarray, x: np.ndarray) -> complex:
        return x.conj() @ A @ x

    found = finite_difference_gradient(form, arrays, "x")
    np.testing.assert_allclose(found, 2 * arrays["A"] @ arrays["x"], atol=1e-8)
    found = finite_difference_gradient(form, arrays, "A")
    np.testing.assert_allclose(found, np.outer(arrays["x"], arrays["x"].conj()), atol=1e-8)


@pytest.mark.parametrize(
    ("function", "pullback"),
    [
        (np.conj, lambda z, k: k.conj()),
        (np.exp, lambda z, k: np.exp(z).conj() * k),
        (lambda z: z * z.conj(), lambda z, k: z * k + z * k.conj()),
        (np.real, lambda z, k: k.real + 0j),
        (np.imag, lambda z, k: 1j * k.real),
        (np.abs, lambda z, k: z / np.abs(z) * k.real),
    ],
)
def test_pullbacks_of_the_table(function: Callable[..., Any], pullback: Callable[..., Any]) -> None:
    """The table of theory.md §2: `(z, k) ↦ (∂h/∂z)*·k + (∂h/∂z̄)·k*`."""
    z, k = np.array([0.3 + 0.4j, -1.0 + 2.0j]), np.array([1.0 - 0.5j, 0.25j])
    found = finite_difference_pullback(lambda z: function(z), {"z": z}, "z", k)
    np.testing.assert_allclose(found, pullback(z, k), atol=1e-8)


def test_pullback_of_a_matrix_product(rng: np.random.Generator) -> None:
    A, x, k = rng.standard_normal((2, 3)), rng.standard_normal(3), rng.standard_normal(2)
    found = finite_difference_pullback(lambda A, x: A @ x, {"A": A, "x": x}, "A", k)
    np.testing.assert_allclose(found, np.outer(k, x), atol=1e-8)


# --- check_grad, against gradients written by hand


@dataclass
class ByHand:
    """What check_grad asks of a program, and its gradients."""

    parameters: tuple[Var, ...]
    value: Callable[..., Any]
    gradients: dict[str, Callable[..., Any]]

    def __call__(self, **arrays: Any) -> Any:
        return self.value(**arrays)


@pytest.fixture
def _grad_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    def grad(f: ByHand, wrt: str | tuple[str, ...] | None = None) -> Callable[..., Any]:
        if isinstance(wrt, tuple):
            return lambda **arrays: tuple(f.gradients[name](**arrays) for name in wrt)
        return f.gradients[wrt or f.parameters[0].name]

    monkeypatch.setattr(testing.differences, "grad", grad)


def form(factor: complex = 2.0, size: int | str = "N") -> ByHand:
    """x†Ax with gradients `factor·Ax` (right for 2) and `x x†`."""
    x, A = Space(size, dtype=complex), Space(size, size, dtype=complex, symmetry=["A[i,j] = conj(A[j,i])"])
    return ByHand(
        (Var("x", x), Var("A", A)),
        lambda x, A: (x.conj() @ A @ x).real,
        {"x": lambda x, A: factor * (A @ x), "A": lambda x, A: np.outer(x, x.conj())},
    )


@pytest.mark.usefixtures("_grad_by_hand")
class TestCheckGrad:
    @pytest.fixture
    def arrays(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return random_arrays(form().parameters, rng, {"N": 3})

    def test_right_gradients_pass_and_the_error_is_returned(self, arrays: dict[str, np.ndarray]) -> None:
        for wrt in (None, "x", "A", ("A", "x"), ("x",)):
            assert 0 <= check_grad(form(), wrt, **arrays) < 1e-8
        assert check_grad(form(), wrt="x", step=1e-4, tolerance=1e-5, **arrays) < 1e-5

    def test_wrong_gradients_are_named(self, arrays: dict[str, np.ndarray]) -> None:
        with pytest.raises(
            AssertionError, match=r"with respect to x is wrong at \[\d\] \((real|imaginary) part\): cent"
        ):
            check_grad(form(2.1), "x", **arrays)
        with pytest.raises(AssertionError, match=r"with respect to x is wrong"):
            check_grad(form(2.1), ("A", "x"), **arrays)
        with pytest.raises(AssertionError, match="is wrong"):
            check_grad(form(2.0 + 1e-4j), "x", **arrays)

    def test_a_conjugated_gradient_is_wrong(self, arrays: dict[str, np.ndarray]) -> None:
        f = form()
        f.gradients["x"] = lambda x, A: 2 * (A @ x).conj()
        with pytest.raises(AssertionError, match=r"\(imaginary part\)"):
            check_grad(f, "x", **arrays)

    def test_the_message_names_entry_expected_and_found(self) -> None:
        f = ByHand((Var("x", Space(2)),), lambda x: 3 * x[0] + x[1], {"x": lambda x: np.array([3.0, 7.0])})
        with pytest.raises(AssertionError) as caught:
            check_grad(f, x=np.zeros(2))
        assert re.fullmatch(
            r"the gradient with respect to x is wrong at \[1\]: central differences give (1|1\.0\d*|0\.9\d*), "
            r"the gradient 7 \(error 2, tolerance 1e-06\)",
            str(caught.value),
        )

    def test_nan_and_wrong_shapes_are_wrong(self) -> None:
        f = ByHand((Var("x", Space("n")),), np.sum, {"x": lambda x: np.array([1.0, np.nan])})
        f.value = lambda x: x.sum()
        with pytest.raises(AssertionError, match=r"at \[1\].*the gradient nan"):
            check_grad(f, x=np.zeros(2))
        with pytest.raises(AssertionError, match=r"has shape \(2,\), not \(3,\)"):
            check_grad(f, x=np.zeros(3))

    def test_many_entries_are_probed_in_random_directions(self, rng: np.random.Generator) -> None:
        big = random_arrays(form().parameters, rng, {"N": 15})
        assert check_grad(form(), ("x", "A"), **big) < 1e-7
        f = form()
        f.gradients["A"] = lambda x, A: np.outer(x, x.conj()) + 0.5 * np.eye(15)
        with pytest.raises(AssertionError, match="with respect to A is wrong along random direction"):
            check_grad(f, "A", **big)

    def test_scalars_and_empty_arrays(self) -> None:
        f = ByHand((Var("x", Space()),), lambda x: float(x) ** 2, {"x": lambda x: 2 * float(x)})
        assert check_grad(f, x=1.5) < 1e-9
        empty = ByHand((Var("x", Space("n")),), lambda x: x.sum(), {"x": np.ones_like})
        empty.gradients["x"] = lambda x: np.ones_like(x)
        assert check_grad(empty, x=np.zeros(0)) == 0.0

    def test_the_rounding_of_large_values_is_no_error(self) -> None:
        f = ByHand((Var("x", Space("n")),), lambda x: 1e7 + np.sin(x).sum(), {})
        f.gradients["x"] = lambda x: np.cos(x)
        assert check_grad(f, x=np.array([0.3, 1.1])) == 0.0
        f.gradients["x"] = lambda x: np.cos(x) + 0.1
        with pytest.raises(AssertionError, match="is wrong at"):
            check_grad(f, x=np.array([0.3, 1.1]))

    def test_integers_for_real_parameters_are_moved_as_reals(self) -> None:
        f = ByHand((Var("x", Space("n")),), lambda x: (x**2).sum(), {"x": lambda x: 2 * x})
        assert check_grad(f, x=[1, 2, 3]) < 1e-8

    def test_violated_symmetries_and_shapes_are_refused(self, arrays: dict[str, np.ndarray]) -> None:
        broken = arrays["A"].copy()
        broken[0, 1] += 0.5
        with pytest.raises(
            ArgumentError, match=r"A violates its declared symmetry .*: the two sides differ by up to 0.5"
        ):
            check_grad(form(), "x", x=arrays["x"], A=broken)
        with pytest.raises(ArgumentError, match=r"N is 2 by axis 0 of x .*, but 3 by axis 0 of A"):
            check_grad(form(), "x", x=arrays["x"][:2], A=arrays["A"])
        with pytest.raises(ArgumentError, match="A is missing; the parameters are x, A"):
            check_grad(form(), "x", x=arrays["x"])


# --- check_grad on programs

Orbitals = Space("N", "Ne", dtype=complex)
Matrix, Columns, Rows = Space("n", "m"), Space("m"), Space("n")


@program
def coulomb(J: ERI, C: Orbitals) -> Any:
    return sum_(lambda i, j, p, q, r, s: conj(C[p, i]) * C[q, i] * conj(C[r, j]) * C[s, j] * J[p, q, r, s])


@program
def residual(A: Matrix, x: Columns, y: Rows) -> Any:
    return sum_(lambda i: (sum_(lambda j: A[i, j] * x[j]) - y[i]) ** 2)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(tensors(ERI, N=2), tensors(Orbitals, N=2, Ne=2))
def test_programs_pass(J: np.ndarray, C: np.ndarray) -> None:
    assert check_grad(coulomb, "C", J=J, C=C) < 1e-6


def test_all_arguments_of_a_program_at_once(rng: np.random.Generator) -> None:
    arrays = random_arrays(residual.parameters, rng, {"n": 2, "m": 3})
    assert check_grad(residual, ("y", "A", "x"), **arrays) < 1e-7
