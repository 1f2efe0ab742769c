"""Newton systems of complex and of several variables, by the structure of their matrices."""

from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.api.second_derivatives import Hessian

RNG = np.random.default_rng(8)
Left, Right = cd.Space("n", "k", dtype=complex), cd.Space("m", "k", dtype=complex)
Table, Vector = cd.Space("n", "m", dtype=complex), cd.Space("n", dtype=complex)


def squares(R: Any) -> Any:
    return cd.sum(lambda i, j: cd.real(cd.conj(R[i, j]) * R[i, j]))


@cd.program
def factorisation(T: Table, U: Left, V: Right):
    return squares(T - U @ V.conj().T)


@cd.program
def masked(T: Table, M: cd.Space("n", "m"), U: Left, V: Right):
    return squares(M * (T - U @ V.conj().T))


@cd.program
def rows(A: cd.Space("k", "k", dtype=complex), U: Left):
    """Every row couples with itself and its conjugate."""
    form = cd.sum(lambda i, j, k: cd.real(U[i, j] * A[j, k] * U[i, k]))
    return form + 7 * cd.sum(lambda i, j: cd.real(cd.conj(U[i, j]) * U[i, j]))


@cd.program
def ridge(T: cd.Space("n", "m"), U: cd.Space("n", "k"), V: cd.Space("m", "k"), mu: cd.Space()):
    R = T - U @ V.T
    return (R * R).sum() + mu * (U * U).sum()


@cd.program
def quartic_ridge(T: cd.Space("n", "m"), U: cd.Space("n", "k"), V: cd.Space("m", "k")):
    R = T - U @ V.T
    return (R * R).sum() + (U**4).sum()


@cd.program
def separable(z: Vector):
    return cd.sum(lambda i: cd.real(z[i] * cd.conj(z[i])) ** 2 + cd.real(z[i] ** 3))


@cd.program
def entangled(z: Vector):
    energy = cd.sum(lambda i: cd.real(z[i] * cd.conj(z[i])))
    return energy**2 + energy + cd.real(cd.sum(lambda i: z[i] ** 2)) / 9


@cd.program
def mixed(T: cd.Space("n", "m"), U: cd.Space("n", "k"), V: cd.Space("m", "k"), x: cd.Space("n"), y: cd.Space("n")):
    R = T - U @ V.T
    return (R * R).sum() + (np.cosh(x) * np.cosh(y)).sum() + np.cosh(x).sum()


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape)


def complexes(*shape: int) -> np.ndarray[Any, Any]:
    return normal(*shape) + 1j * normal(*shape)


n, m, k = 5, 6, 2
CASES: dict[str, tuple[cd.Program, str, tuple[Any, ...]]] = {
    "factorisation": (factorisation, "U", (complexes(n, m), complexes(n, k), complexes(m, k))),
    "masked": (masked, "U", (complexes(n, m), 1.0 * (normal(n, m) > -1.5), complexes(n, k), complexes(m, k))),
    "rows": (rows, "U", (complexes(k, k), complexes(n, k))),
    "separable": (separable, "z", (complexes(n),)),
}


@pytest.fixture
def no_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("the dense system is solved")

    monkeypatch.setattr(Hessian, "_solve_dense", refuse)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("no_matrix")
def test_complex_systems_by_their_structure(name: str) -> None:
    f, wrt, arrays = CASES[name]
    rhs = complexes(*np.shape(arrays[[p.name for p in f.parameters].index(wrt)]))
    solution = cd.hessian(f, wrt).solve(rhs, *arrays)
    np.testing.assert_allclose(cd.hvp(f, wrt)(*arrays, solution), rhs, atol=1e-9)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CASES)
def test_the_structure_solves_as_the_dense_matrix_does(name: str) -> None:
    f, wrt, arrays = CASES[name]
    rhs = complexes(*np.shape(arrays[[p.name for p in f.parameters].index(wrt)]))
    H = cd.hessian(f, wrt)
    np.testing.assert_allclose(
        H.solve(rhs, *arrays), H._solve_dense(list(arrays), [rhs[..., None]])[0][..., 0], atol=1e-9
    )


@pytest.mark.parametrize("f", [ridge, quartic_ridge])
@pytest.mark.usefixtures("no_matrix")
def test_parts_with_delta_in_common_are_blocks(f: cd.Program) -> None:
    arrays = (normal(n, m), normal(n, k), normal(m, k), 0.3)[: len(f.parameters)]
    rhs = normal(n, k)
    solution = cd.hessian(f, "U").solve(rhs, *arrays)
    np.testing.assert_allclose(cd.hvp(f, "U")(*arrays, solution), rhs, atol=1e-9)


@pytest.mark.thorough
def test_a_complex_system_without_such_structure_is_solved_densely() -> None:
    z, rhs = complexes(4), complexes(4)
    solution = cd.hessian(entangled, "z").solve(rhs, z)
    np.testing.assert_allclose(cd.hvp(entangled, "z")(z, solution), rhs, atol=1e-9)


@pytest.mark.thorough
def test_variables_that_are_not_coupled_are_solved_for_by_themselves() -> None:
    arrays = (normal(n, m), normal(n, k), normal(m, k), normal(n), normal(n))
    H = cd.hessian(mixed, ("x", "U", "y"))
    assert H._coupled == (("U",), ("x", "y"))
    right = (normal(n), normal(n, k), normal(n))
    solution = H.solve(right, *arrays)
    for one, other in zip(cd.hvp(mixed, ("x", "U", "y"))(*arrays, *solution), right, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
    dense = H._solve_dense(list(arrays), [part[..., None] for part in right])
    for one, other in zip(solution, dense, strict=True):
        np.testing.assert_allclose(one, other[..., 0], atol=1e-9)


@pytest.mark.parametrize("f", [factorisation, rows])
def test_singular_complex_systems_are_refused(f: cd.Program) -> None:
    arrays = [np.zeros([{"n": n, "m": m, "k": k}[axis.size] for axis in p.type.axes], complex) for p in f.parameters]  # type: ignore[union-attr]
    if f is rows:
        arrays[0] = 7.0 * np.eye(k)
    with pytest.raises(cd.SingularError, match="the Newton system is singular"):
        cd.hessian(f, "U").solve(np.ones((n, k), complex), *arrays)


def low_rank(x: Any) -> Any:
    return (x**4).sum() + x.sum() ** 2


def alone(x: Any) -> Any:
    return np.exp(-(x * x).sum()) + (x * x).sum()


def turned(x: Any) -> Any:
    return cd.real((x * x).sum()) + 3 * (np.abs(x) ** 2).sum() + np.abs(x.sum()) ** 2


NOTHING: dict[str, tuple[Any, cd.Space, tuple[int, ...]]] = {
    "beside low rank": (low_rank, cd.Space("n"), (0,)),
    "dense": (alone, cd.Space("n"), (0,)),
    "complex": (turned, Vector, (0,)),
    "hermitian": (turned, cd.Space("n", "n", dtype=complex, symmetry=["A[i,j] = conj(A[j,i])"]), (0, 0)),
    "antisymmetric": (alone, cd.Space("n", "n", symmetry=["A[i,j] = -A[j,i]"]), (1, 1)),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", NOTHING)
def test_a_system_without_unknowns_has_a_solution(name: str) -> None:
    """Of axes of length 0, and in a Space that holds zeros alone."""
    objective, space, shape = NOTHING[name]

    @cd.program
    def f(x: space):
        return objective(x)

    zeros = np.zeros(shape, space.dtype)
    solution = cd.hessian(f).solve(zeros, zeros)
    assert solution.shape == shape
    assert not solution.any()


def test_a_matrix_of_whole_numbers_is_solved_with() -> None:
    @cd.program
    def f(x: cd.Space("n"), a: cd.Space("n", dtype=int), b: cd.Space("n", dtype=int)):
        return cd.sum(lambda i, j: (5 * cd.delta(i, j) + a[i] * b[j]) * x[i] * x[j])

    x, a, b = np.ones(3), np.array([1, 0, 2]), np.array([0, 1, 1])
    H = cd.hessian(f)
    np.testing.assert_allclose(H.matvec(H.solve(x, x, a, b), x, a, b), x)
