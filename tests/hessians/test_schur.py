"""Newton systems of coupled variables by elimination, several right-hand sides, and low rank beside blocks."""

from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

import combdiff as cd
from combdiff.api.second_derivatives import Hessian

RNG = np.random.default_rng(12)
hessian = cache(cd.hessian)
n, m, k, p = 7, 4, 2, 3
Table, Left, Right = cd.Space("n", "m"), cd.Space("n", "k"), cd.Space("m", "k")
ComplexTable, ComplexLeft = cd.Space("n", "m", dtype=complex), cd.Space("n", "k", dtype=complex)
ComplexRight = cd.Space("m", "k", dtype=complex)


@cd.program
def factorisation(T: Table, U: Left, V: Right):
    R = T - U @ V.T
    return (R * R).sum()


@cd.program
def masked(T: Table, M: Table, U: Left, V: Right, mu: cd.Space()):
    R = M * (T - U @ V.T)
    return (R * R).sum() + mu * ((U * U).sum() + (V * V).sum())


@cd.program
def complex_factorisation(T: ComplexTable, U: ComplexLeft, V: ComplexRight):
    R = T - U @ V.conj().T
    return cd.sum(lambda i, j: cd.real(cd.conj(R[i, j]) * R[i, j]))


@cd.program
def arrow(D: Left, U: Left, c: cd.Space("k")):
    """Points U near the data D, and their common centre."""
    E, F = U - D, cd.tensor(lambda i, j: U[i, j] - c[j], i="n", j="k")
    return (E**4).sum() + (E * E).sum() + (F * F).sum() / 3 + (c**4).sum()


@cd.program
def several(x: cd.Space("n"), U: Left, s: cd.Space(), c: cd.Space("k")):
    """x and U are coupled only with s and c."""
    own = cd.cosh(x).sum() + cd.trace(U @ U.T) + (U**4).sum()
    return own + s * x.sum() + (U @ c).sum() + cd.cosh(s) * (2 + c @ c) + s**2 * c.sum()


@cd.program
def phases(z: cd.Space("n", dtype=complex), t: cd.Space("k"), w: cd.Space(dtype=complex)):
    """A complex variable with a diagonal block, a real one and a complex number that are coupled with it."""
    size = cd.sum(
        lambda i: cd.real(cd.conj(z[i]) * z[i]) ** 2 + cd.real(z[i] ** 2) / 5 + 3 * cd.real(z[i] * cd.conj(z[i]))
    )
    return size + cd.cosh(t).sum() + t.sum() * cd.sum(lambda i: cd.real(z[i] * w)) + 5 * cd.real(w * cd.conj(w))


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape)


def complexes(*shape: int) -> np.ndarray[Any, Any]:
    return normal(*shape) + 1j * normal(*shape)


# The first is in every sample: complex and real variables.
CASES: dict[str, tuple[cd.Program, tuple[str, ...], tuple[Any, ...]]] = {
    "phases": (phases, ("t", "z", "w"), (complexes(n), normal(k), np.array(0.3 - 0.8j))),
    "factorisation": (factorisation, ("U", "V"), (normal(n, m), normal(n, k), normal(m, k))),
    "factorisation, other order": (factorisation, ("V", "U"), (normal(n, m), normal(n, k), normal(m, k))),
    "wide": (factorisation, ("U", "V"), (normal(m, n), normal(m, k), normal(n, k))),
    "masked": (masked, ("U", "V"), (normal(n, m), 1.0 * (normal(n, m) > -1), normal(n, k), normal(m, k), 0.4)),
    "complex": (complex_factorisation, ("U", "V"), (complexes(n, m), complexes(n, k), complexes(m, k))),
    "arrow": (arrow, ("U", "c"), (normal(n, k), normal(n, k), normal(k))),
    "several": (several, ("c", "x", "s", "U"), (normal(n), normal(n, k), np.array(0.3), normal(k))),
}


def right_of(f: cd.Program, wrt: tuple[str, ...], arrays: tuple[Any, ...], *more: int) -> tuple[Any, ...]:
    given = dict(zip([parameter.name for parameter in f.parameters], arrays, strict=True))
    made = {float: normal, complex: complexes}
    return tuple(
        made[complex if np.iscomplexobj(given[name]) else float](*np.shape(given[name]), *more) for name in wrt
    )


def system(name: str, *more: int) -> tuple[Hessian, tuple[str, ...], tuple[Any, ...], tuple[Any, ...]]:
    """A case's Hessian, the names of its variables, the point, and random right-hand sides."""
    f, wrt, arrays = CASES[name]
    return hessian(f, wrt), wrt, arrays, right_of(f, wrt, arrays, *more)


@pytest.fixture
def no_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("the dense system is solved")

    monkeypatch.setattr(Hessian, "_solve_dense", refuse)


def packed(parts: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    """Re before Im of what is complex."""
    flat = [piece for part in parts for piece in ([part.real, part.imag] if np.iscomplexobj(part) else [part])]
    return np.concatenate([np.ravel(piece) for piece in flat])


def matrix_of(H: Hessian, arrays: tuple[Any, ...], wrt: tuple[str, ...]) -> np.ndarray[Any, Any]:
    """The real matrix of the system, column by column from Hessian-vector products."""
    operator = H.linear_operator(*arrays)
    return np.stack([operator @ unit for unit in np.eye(operator.shape[0])], axis=1)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("no_matrix")
def test_coupled_variables_are_eliminated(name: str) -> None:
    H, wrt, arrays, rhs = system(name)
    solution = H.solve(rhs, *arrays)
    for one, other in zip(H.matvec(solution, *arrays), rhs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)
    expected = np.linalg.solve(matrix_of(H, arrays, wrt), packed(rhs))
    np.testing.assert_allclose(packed(solution), expected, rtol=1e-7, atol=1e-8)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", CASES)
def test_the_dense_system_has_the_same_solution(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    H, _, arrays, rhs = system(name)
    solution = H.solve(rhs, *arrays)
    monkeypatch.setattr("combdiff.api.second_derivatives.Coupled.solve", lambda *_: None)
    for one, other in zip(solution, H.solve(rhs, *arrays), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


@pytest.mark.thorough
def test_the_result_equals_numpys_for_the_dense_hessian() -> None:
    H, wrt, arrays, rhs = system("factorisation")
    blocks = H(*arrays)
    matrix = np.block([[blocks[r, c].reshape(blocks[r, r].shape[0] * k, -1) for c in wrt] for r in wrt])
    np.testing.assert_allclose(matrix, matrix.T)
    np.testing.assert_allclose(packed(H.solve(rhs, *arrays)), np.linalg.solve(matrix, packed(rhs)), rtol=1e-8)
    assert str(H.compressed().structure[0]) == "H_UU[i,j,k,l] = core1[j,l] δ[i,k]"
    assert str(H.compressed().structure[2]) == "H_VV[i,j,k,l] = core5[j,l] δ[i,k]"


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("no_matrix")
def test_several_right_hand_sides(name: str) -> None:
    for more in ((3,), (2, 3), (0,)):
        H, _, arrays, rhs = system(name, *more)
        solution = H.solve(rhs, *arrays)
        for place in np.ndindex(*more):
            at = (..., *place)
            single = H.solve(tuple(part[at] for part in rhs), *arrays)
            for one, other in zip(solution, single, strict=True):
                np.testing.assert_allclose(one[at], other, rtol=1e-7, atol=1e-9)
        assert all(one.shape == other.shape for one, other in zip(solution, rhs, strict=True))


# --- one variable


@cd.program
def kronecker(A: cd.Space("n", "n"), B: cd.Space("m", "m"), X: cd.Space("n", "m")):
    return cd.trace(X.T @ (A @ A.T) @ X @ (B @ B.T))


@cd.program
def woodbury(T: Table, U: Left, V: Right, W: cd.Space("r", "n", "k"), mu: cd.Space()):
    """Blocks, a multiple of the unit matrix, and low rank."""
    R = T - U @ V.T
    return (R * R).sum() + mu * (U * U).sum() + cd.sum(lambda r: cd.sum(lambda i, j: W[r, i, j] * U[i, j]) ** 2)


@cd.program
def ridge(X: cd.Space("r", "n"), w: cd.Space("n"), mu: cd.Space()):
    y = X @ w
    return (y * y).sum() + mu * (w * w).sum()


SINGLE: dict[str, tuple[cd.Program, str, tuple[Any, ...]]] = {
    "kronecker": (kronecker, "X", (normal(n, n), normal(m, m), normal(n, m))),
    "woodbury": (woodbury, "U", (normal(n, m), normal(n, k), normal(m, k), normal(2, n, k), 0.3)),
    "ridge": (ridge, "w", (normal(2, n), normal(n), 0.7)),
    "complex": (complex_factorisation, "U", CASES["complex"][2]),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.usefixtures("no_matrix")
def test_one_variable_with_several_right_hand_sides(name: str) -> None:
    f, wrt, arrays = SINGLE[name]
    H = hessian(f, wrt)
    (rhs,) = right_of(f, (wrt,), arrays, 4)
    solution = H.solve(rhs, *arrays)
    for column in range(4):
        np.testing.assert_allclose(H.solve(rhs[..., column], *arrays), solution[..., column], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(H.matvec(solution[..., column], *arrays), rhs[..., column], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("mu", [1e-3, 1e-6, 1e-9, 1e-12])
def test_low_rank_beside_little_stays_accurate(mu: float) -> None:
    """Woodbury's formula loses as many digits as the diagonal is smaller; what it misses is solved for again.

    NumPy's dense solution keeps few digits where the diagonal is small, so 40 are taken for the expected one.
    """
    X, w, rhs = normal(2, 6), normal(6), normal(6)
    H = hessian(ridge, "w")
    solution = H.solve(rhs, X, w, mu)
    matrix = 2 * X.T @ X + 2 * mu * np.eye(6)
    missed = np.linalg.norm(matrix @ solution - rhs)
    assert missed <= 1e-9 * np.linalg.norm(rhs) + 1e-12 * np.linalg.norm(matrix) * np.linalg.norm(solution)
    with mpmath.workdps(40):
        rows = mpmath.matrix(X.tolist())
        exact = mpmath.lu_solve(2 * rows.T * rows + 2 * mpmath.mpf(mu) * mpmath.eye(6), mpmath.matrix(rhs.tolist()))
    expected = np.array([float(number) for number in exact])
    assert np.linalg.norm(solution - expected) <= 1e-12 * np.linalg.norm(expected)


def test_what_cannot_be_eliminated_first_is_solved_together() -> None:
    """The block of x is zero at this point, that of the saddle is not."""

    @cd.program
    def saddle(x: cd.Space("n"), y: cd.Space("n")):
        return (x**4).sum() + x @ y + (y**4).sum()

    zero, rhs = np.zeros(4), (normal(4), normal(4))
    x, y = hessian(saddle, ("x", "y")).solve(rhs, zero, zero)
    np.testing.assert_allclose(x, rhs[1])
    np.testing.assert_allclose(y, rhs[0])
    tiny = np.full(4, 1e-9)
    x, y = hessian(saddle, ("x", "y")).solve(rhs, tiny, tiny)
    np.testing.assert_allclose(x, rhs[1], rtol=1e-9)


# --- operators


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["complex", "several", "phases"])
def test_linear_operators_of_complex_and_several_variables(name: str) -> None:
    f, wrt, arrays = CASES[name]
    H = hessian(f, wrt)
    matrix = matrix_of(H, arrays, wrt)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-10)
    objective = cd.interop.scipy_objective(
        f, wrt, **dict(zip([parameter.name for parameter in f.parameters], arrays, strict=True))
    )
    v = RNG.normal(size=len(matrix))
    np.testing.assert_allclose(matrix @ v, objective.hessp(objective.x0, v), atol=1e-9)
    one = hessian(f, wrt[0])
    operator = one.linear_operator(*arrays)
    (rhs,) = right_of(f, wrt[:1], arrays)
    np.testing.assert_allclose(operator @ packed((rhs,)), packed((one.matvec(rhs, *arrays),)), atol=1e-10)


# --- what is refused


@pytest.mark.thorough
def test_singular_coupled_systems_are_refused() -> None:
    """At an exact factorisation U·Vᵀ = T the objective is constant along U·G, V·G⁻ᵀ."""
    U, V = normal(n, k), normal(m, k)
    H = hessian(factorisation, ("U", "V"))
    with pytest.raises(
        cd.SingularError, match=r"the Newton system is singular: its \d+ × \d+ matrix has a condition"
    ) as info:
        H.solve((U, V), U @ V.T, U, V)
    assert info.value.location is not None
    assert info.value.location.file == __file__
    assert "damping" in info.value.hint


@pytest.mark.thorough
def test_right_hand_sides_that_do_not_fit() -> None:
    H, _, arrays, _ = system("factorisation")
    with pytest.raises(cd.ArgumentError, match="a tuple was expected, with a right-hand side for each of U, V"):
        H.solve(normal(n, k), *arrays)
    with pytest.raises(cd.ArgumentError, match=r"for V has shape \(4, 2\), but \(4, 2, 3\) was expected"):
        H.solve((normal(n, k, 3), normal(m, k)), *arrays)
    with pytest.raises(cd.ArgumentError, match="the right-hand side for U is complex, but U is real"):
        H.solve((complexes(n, k), normal(m, k)), *arrays)
    with pytest.raises(cd.ArgumentError, match="with a vector for each of U, V"):
        H.matvec(normal(n, k), *arrays)


@pytest.mark.thorough
def test_a_dense_system_that_does_not_fit_is_refused() -> None:
    @cd.program
    def entangled(x: cd.Space("n")):
        return cd.exp((x @ x) / 4e5) + cd.sum(lambda i, j: cd.sin(x[i] * x[j]))

    large = np.ones(400_000)
    with pytest.raises(
        cd.MemoryLimitError, match=r"solving needs the matrix: hessian_entangled takes 1\.16 TiB"
    ) as info:
        hessian(entangled).solve(large, large)
    assert "linear_operator(…) with an iterative method" in info.value.hint
    assert info.value.location is not None
    assert info.value.location.file == __file__
