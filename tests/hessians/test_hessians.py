"""Hessians against central differences, the reference and each other: modes, blocks, structure, systems, bad input."""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.api.transforms import hvp
from combdiff.hessians.newton import expanded
from combdiff.ir.interpreter import evaluate
from combdiff.runtime.arguments import bind_sizes

MODES = ("forward", "reverse", "cross-country", "auto")
RNG = np.random.default_rng(7)

Data, Labels, Weights = cd.Space("m", "n"), cd.Space("m"), cd.Space("n")
Square = cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"])
Target, Mask, Left, Right = cd.Space("n", "m"), cd.Space("n", "m"), cd.Space("n", "k"), cd.Space("m", "k")


@cd.program
def logistic(X: Data, y: Labels, w: Weights):
    return np.log(1 + np.exp(-y * (X @ w))).sum()


@cd.program
def ridge(X: Data, y: Labels, w: Weights, mu: cd.Space()):
    return np.log(1 + np.exp(-y * (X @ w))).sum() + mu * (w * w).sum()


@cd.program
def factorisation(T: Target, U: Left, V: Right):
    R = T - U @ V.T
    return (R * R).sum()


@cd.program
def masked(T: Target, O: Mask, U: Left, V: Right):  # noqa: E741
    R = O * (T - U @ V.T)
    return (R * R).sum()


@cd.program
def kronecker(A: Square, B: cd.Space("m", "m", symmetry=["B[i,j] = B[j,i]"]), X: cd.Space("n", "m")):
    return cd.trace(X.T @ A @ X @ B)


@cd.program
def low_rank(U: cd.Space("n", "r"), d: Weights, x: Weights):
    return ((d * x * x).sum() + ((U.T @ x) ** 2).sum()) / 2


@cd.program
def separable(a: Weights, x: Weights):
    return (a * np.exp(x) + np.sin(x) ** 2).sum()


@cd.program
def springs(x: cd.Space(6)):
    return cd.sum(lambda i: cd.where(i <= 4, (x[i + 1] - x[i]) ** 4, 0))


@cd.program
def network(W1: cd.Space("h", "n"), W2: cd.Space("h", "h"), W3: cd.Space("o", "h"), x: Weights, y: cd.Space("o")):
    z = W3 @ cd.relu(W2 @ cd.relu(W1 @ x))
    return cd.log(np.exp(z).sum()) - (y * z).sum()


@cd.program
def batch(W1: cd.Space("h", "n"), W2: cd.Space("o", "h"), X: cd.Space("b", "n"), Y: cd.Space("b", "o")):
    Z = cd.relu(X @ W1.T) @ W2.T
    normaliser = cd.tensor(lambda i: cd.log(cd.sum(lambda c: cd.exp(Z[i, c]))))
    return normaliser.sum() - (Y * Z).sum()


@cd.program
def smooth_network(W1: cd.Space("h", "n"), W2: cd.Space("o", "h"), x: Weights, y: cd.Space("o")):
    z = np.tanh(W2 @ np.tanh(W1 @ x)) - y
    return (z * z).sum()


@cd.program
def several(A: Square, u: Weights, v: Weights):
    return (np.exp(u) * (A @ v)).sum() + (u @ (A @ u)) * (v @ v)


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape)


def symmetric(n: int) -> np.ndarray[Any, Any]:
    a = normal(n, n)
    return a + a.T + 3 * n * np.eye(n)


def cases() -> dict[str, tuple[cd.Program, str, tuple[Any, ...]]]:
    m, n, k, h, o, b = 6, 2, 3, 4, 3, 5
    signs = np.sign(normal(m))
    return {
        "logistic": (logistic, "w", (normal(m, n), signs, normal(n))),
        "ridge": (ridge, "w", (normal(m, n), signs, normal(n), 0.3)),
        "ridge, wide": (ridge, "w", (normal(2, 5), signs[:2], normal(5), 0.3)),
        "factorisation": (factorisation, "U", (normal(n, m), normal(n, k), normal(m, k))),
        "masked": (masked, "U", (normal(n, m), (normal(n, m) > -1) * 1.0, normal(n, k), normal(m, k))),
        "kronecker": (kronecker, "X", (symmetric(n), symmetric(m), normal(n, m))),
        "low rank": (low_rank, "x", (normal(5, 2), 1 + normal(5) ** 2, normal(5))),
        "separable": (separable, "x", (normal(n), normal(n))),
        "springs": (springs, "x", (normal(6),)),
        "network": (network, "W1", (normal(h, n), normal(h, h), normal(o, h), normal(n), np.eye(o)[1])),
        "network, second layer": (network, "W2", (normal(h, n), normal(h, h), normal(o, h), normal(n), np.eye(o)[1])),
        "batch": (batch, "W1", (normal(h, n), normal(o, h), normal(b, n), np.eye(o)[[0, 2, 1, 1, 0]])),
        "batch, last layer": (batch, "W2", (normal(h, n), normal(o, h), normal(b, n), np.eye(o)[[0, 2, 1, 1, 0]])),
        "smooth network": (smooth_network, "W1", (normal(h, n), normal(o, h), normal(n), normal(o))),
    }


CASES = cases()


def dear(name: str) -> tuple[pytest.MarkDecorator, ...]:
    """The mark of programs that take seconds to derive; `test_singular_systems_are_refused` has one of them."""
    return (pytest.mark.thorough,) if "network" in name or "batch" in name else ()


EACH = [pytest.param(name, marks=dear(name)) for name in CASES]


@cache
def hessian(*given: Any, **options: Any) -> cd.Hessian:
    """Several tests look at one Hessian; it is derived once."""
    return cd.hessian(*given, **options)


gradient = lru_cache(maxsize=None)(cd.grad)


def point_of(f: cd.Program, wrt: str, arrays: tuple[Any, ...]) -> tuple[int, np.ndarray[Any, Any]]:
    at = [p.name for p in f.parameters].index(wrt)
    return at, np.asarray(arrays[at])


def differences(function: Callable[..., Any], arrays: tuple[Any, ...], at: int, step: complex = 1e-6) -> Any:
    """Central differences of a function of arrays by one of them, axes of the result first."""
    point = np.asarray(arrays[at])
    columns = []
    for n in np.ndindex(point.shape):
        moved = []
        for sign in (1, -1):
            shifted = np.array(point, dtype=np.result_type(point, step))
            shifted[n] += sign * step
            moved.append(function(*arrays[:at], shifted, *arrays[at + 1 :]))
        columns.append((moved[0] - moved[1]) / (2 * abs(step)))
    return np.stack(columns, axis=-1).reshape(*np.shape(columns[0]), *point.shape)


def second(f: cd.Program, wrt: str, arrays: tuple[Any, ...]) -> Any:
    at, _ = point_of(f, wrt, arrays)
    return differences(gradient(f, wrt), arrays, at)


# The mode that is chosen for each program, beside one of those that it is chosen from, in turn.
TURNS = [pytest.param(name, mode, marks=dear(name)) for n, name in enumerate(CASES) for mode in ("auto", MODES[n % 3])]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("name", "mode"), TURNS)
def test_every_mode_agrees_with_central_differences_of_the_gradient(name: str, mode: str) -> None:
    f, wrt, arrays = CASES[name]
    dense = hessian(f, wrt, mode)(*arrays)
    np.testing.assert_allclose(dense, second(f, wrt, arrays), atol=2e-6 * (1 + np.abs(dense).max()))


def by_reference(f: cd.Program, arrays: tuple[Any, ...]) -> Any:
    values = dict(zip(f.term.parameters, map(np.asarray, arrays), strict=True))
    return evaluate(f.term.body, values, bind_sizes({var: np.shape(value) for var, value in values.items()}))


@pytest.mark.sample(2)
@pytest.mark.parametrize("mode", MODES[:3])
@pytest.mark.parametrize(
    "name", [n for n in EACH if n.values[0] in ("logistic", "factorisation", "network", "springs", "smooth network")]
)
def test_unsimplified_hessians_agree_on_the_reference_and_on_arrays(name: str, mode: str) -> None:
    f, wrt, arrays = CASES[name]
    raw = hessian(f, wrt, mode, simplify=False)
    expected = hessian(f, wrt)(*arrays)
    np.testing.assert_allclose(raw(*arrays), expected, atol=1e-10)
    if expected.size <= 200:
        np.testing.assert_allclose(by_reference(raw, arrays), expected, atol=1e-10)


# --- structure


STRUCTURES = {
    "logistic": "H[i,j] = core[i,j]",
    "factorisation": "H[i,j,k,l] = core[j,l] δ[i,k]",
    "masked": "H[i,j,k,l] = core[i,j,l] δ[i,k]",
    "kronecker": "H[i,j,k,l] = core1[i,k] core2[j,l]",
    "low rank": "H[i,j] = core1[i] δ[i,j] + Σ_{r} core2[i,r] core2[j,r]",
    "separable": "H[i,j] = core[i] δ[i,j]",
    "network": "H[i,j,k,l] = core1[i,k] core2[j] core2[l]",
    "batch": "H[i,j,k,l] = Σ_{r} core1[i,k,r] core2[j,r] core2[l,r]",
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_structure_is_found(name: str) -> None:
    f, wrt, _ = CASES[name]
    assert str(hessian(f, wrt).compressed().structure) == STRUCTURES[name]


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", EACH)
def test_the_cores_make_up_the_dense_hessian(name: str) -> None:
    f, wrt, arrays = CASES[name]
    H = hessian(f, wrt)
    dense = H(*arrays)
    pattern = H.sparsity().pattern(H._sizes(arrays))
    assert not dense[~pattern].any()
    operator = H._operator(arrays)
    if operator is not None:
        n = operator.size
        np.testing.assert_allclose(expanded(operator.structure, operator.cores, operator.shape * 2), dense, atol=1e-11)
        v = normal(*operator.shape)
        np.testing.assert_allclose(operator.matvec(v).ravel(), dense.reshape(n, n) @ v.ravel(), atol=1e-10)


def test_the_core_of_a_factorisation_is_small() -> None:
    f, wrt, arrays = CASES["factorisation"]
    core, structure = hessian(f, wrt).compressed()
    assert core(*arrays).shape == (3, 3)
    np.testing.assert_allclose(core(*arrays), 2 * arrays[2].T @ arrays[2])
    assert structure.parts[0].pairs == ((0, 2),)
    f, wrt, arrays = CASES["masked"]
    assert hessian(f, wrt).compressed()(*arrays).shape == (2, 3, 3)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", EACH)
def test_diagonals_and_products(name: str) -> None:
    f, wrt, arrays = CASES[name]
    H = hessian(f, wrt)
    _, point = point_of(f, wrt, arrays)
    matrix = H(*arrays).reshape(point.size, point.size)
    np.testing.assert_allclose(H.diag()(*arrays).ravel(), np.diag(matrix), atol=1e-11)
    np.testing.assert_allclose(H.diag(*arrays).ravel(), np.diag(matrix), atol=1e-11)
    v = normal(*point.shape)
    np.testing.assert_allclose(H.matvec(v, *arrays).ravel(), matrix @ v.ravel(), atol=1e-10)
    np.testing.assert_allclose(H.linear_operator(*arrays) @ v.ravel(), matrix @ v.ravel(), atol=1e-10)


@pytest.mark.parametrize(
    "name",
    ["logistic", "ridge", "ridge, wide", "factorisation", "masked", "kronecker", "low rank", "separable"],
)
def test_newton_systems(name: str) -> None:
    f, wrt, arrays = CASES[name]
    H = hessian(f, wrt)
    _, point = point_of(f, wrt, arrays)
    rhs = normal(*point.shape)
    expected = np.linalg.solve(H(*arrays).reshape(point.size, point.size), rhs.ravel())
    np.testing.assert_allclose(H.solve(rhs, *arrays).ravel(), expected, rtol=1e-8, atol=1e-10)


def test_sparsity_is_known_before_any_data() -> None:
    assert str(hessian(factorisation, "U").sparsity()) == "H[i,j,k,l] = 0 unless i = k"
    assert str(hessian(logistic, "w").sparsity()) == "H[i,j] has no zeros that are known"
    banded = cd.hessian(springs).sparsity()
    assert str(banded) == "H[i,j] = 0 unless i = j or j = i + 1 or i = j + 1"
    assert np.array_equal(banded.pattern(), np.abs(np.subtract.outer(np.arange(6), np.arange(6))) <= 1)

    @cd.program
    def linear(a: Weights, x: Weights):
        return (a * x).sum()

    assert str(cd.hessian(linear, "x").sparsity()) == "H[i,j] = 0"
    assert not cd.hessian(linear, "x")(np.ones(3), np.ones(3)).any()


# --- several variables


@pytest.mark.thorough
def test_blocks_of_several_variables() -> None:
    arrays = (symmetric(4), normal(4), normal(4))
    H = hessian(several, ("u", "v"))
    result = H(*arrays)
    assert len(result) == 2
    assert len(result[0]) == 2
    for row in ("u", "v"):
        for column in ("u", "v"):
            at = ["A", "u", "v"].index(column)
            expected = differences(gradient(several, row), arrays, at)
            np.testing.assert_allclose(result[row, column], expected, atol=1e-5)
            np.testing.assert_allclose(H[row, column](*arrays), result[row, column], atol=1e-12)
    np.testing.assert_array_equal(result["v", "u"], result["u", "v"].T)


@pytest.mark.sample(1)
@pytest.mark.parametrize("mode", MODES)
def test_blocks_in_every_mode(mode: str) -> None:
    f, _, arrays = CASES["factorisation"]
    result = cd.hessian(f, ("U", "V"), mode)(*arrays)
    expected = differences(gradient(f, "U"), arrays, 2)
    np.testing.assert_allclose(result["U", "V"], expected, atol=1e-6)
    np.testing.assert_allclose(result["V", "U"], expected.transpose(2, 3, 0, 1), atol=1e-6)


@pytest.mark.thorough
def test_a_system_of_several_variables() -> None:
    arrays = (symmetric(3), normal(3), normal(3))
    H = hessian(several, ("u", "v"))
    rhs = (normal(3), normal(3))
    u, v = H.solve(rhs, *arrays)
    found = H.matvec((u, v), *arrays)
    np.testing.assert_allclose(found[0], rhs[0], atol=1e-9)
    np.testing.assert_allclose(found[1], rhs[1], atol=1e-9)


@pytest.mark.thorough
def test_mirrored_blocks_are_derived_once() -> None:
    text = str(hessian(several, ("u", "v")))
    assert text.count("exp(") == 1


# --- complex


Hermitian = cd.Space("n", "n", dtype=complex, symmetry=["A[i,j] = conj(A[j,i])"])
Complex = cd.Space("n", dtype=complex)


@cd.program
def quartic(A: Hermitian, z: Complex, x: Weights):
    energy = cd.real(z.conj() @ (A @ z))
    return energy**2 + cd.real((x * z * z).sum()) + (x * x * cd.real(z * z.conj())).sum()


def complex_arrays() -> tuple[Any, ...]:
    a = normal(3, 3) + 1j * normal(3, 3)
    return a + a.conj().T + 4 * np.eye(3), normal(3) + 1j * normal(3), normal(3)


def wirtinger(arrays: tuple[Any, ...], row: str, column: str) -> tuple[Any, Any]:
    """(∂²f/∂r∂c̄, ∂²f/∂r∂c) by central differences of the gradient by c, axes of r first."""
    at = ["A", "z", "x"].index(row)
    half = 0.5 if column == "z" else 1.0  # the gradient is 2 ∂f/∂c̄
    real = np.moveaxis(differences(gradient(quartic, column), arrays, at), -1, 0) * half
    if row == "x":
        return real, real.conj()
    imag = np.moveaxis(differences(gradient(quartic, column), arrays, at, 1e-6j), -1, 0) * half
    direct, mirrored = (real - 1j * imag) / 2, (real + 1j * imag) / 2
    return direct, mirrored.conj()


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES[2:] + MODES[:2])  # the sample is the one that has rules of its own for pairs
def test_complex_hessians_are_pairs(mode: str) -> None:
    arrays = complex_arrays()
    found = hessian(quartic, "z", mode)(*arrays)
    for block, expected in zip(found, wirtinger(arrays, "z", "z"), strict=True):
        np.testing.assert_allclose(block, expected, atol=1e-5)
    np.testing.assert_allclose(found[0], found[0].conj().T, atol=1e-10)
    np.testing.assert_allclose(found[1], found[1].T, atol=1e-10)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
def test_blocks_of_complex_and_real_variables(mode: str) -> None:
    arrays = complex_arrays()
    found = hessian(quartic, ("z", "x"), mode)(*arrays)
    for row, column in (("z", "z"), ("z", "x"), ("x", "z")):
        for block, expected in zip(found[row, column], wirtinger(arrays, row, column), strict=True):
            np.testing.assert_allclose(block, expected, atol=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("wrt", ["z", ("z", "x"), ("x", "z")])
def test_complex_systems(wrt: Any) -> None:
    arrays = complex_arrays()
    H = hessian(quartic, wrt)
    rhs = {"z": normal(3) + 1j * normal(3), "x": normal(3)}
    given = rhs[wrt] if isinstance(wrt, str) else tuple(rhs[name] for name in wrt)
    solution = H.solve(given, *arrays)
    product = hvp(quartic, wrt)(*arrays, *([solution] if isinstance(wrt, str) else solution))
    for one, other in zip(np.atleast_2d(product), np.atleast_2d(given), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)


# --- jacobians


@cd.program
def chain(A: cd.Space("p", "n"), B: cd.Space("q", "p"), x: Weights):
    return B @ np.sin(np.exp(A @ x))


@pytest.mark.parametrize("mode", MODES)
def test_jacobians_of_several_variables_in_every_mode(mode: str) -> None:
    arrays = (normal(5, 4) / 3, normal(3, 5), normal(4) / 3)
    found = cd.jacobian(chain, ("A", "x"), mode)(*arrays)
    for block, at in zip(found, (0, 2), strict=True):
        np.testing.assert_allclose(block, differences(chain, arrays, at), atol=1e-7)


def test_cross_country_multiplies_the_vectors_first() -> None:
    source = cd.jacobian(chain, "x", "cross-country").source()
    vectors = source.index("(p,) multiply")
    assert vectors < source.index("matrix-matrix")
    assert source.count("matrix-matrix") == 1


@pytest.mark.thorough
def test_matrix_functions_of_other_bindings() -> None:
    """The derivative of expm is expm of a matrix for each element, which has a binding of its own."""

    @cd.program
    def f(A: cd.Space("n", "n")):  # type: ignore[valid-type, no-untyped-def]
        return cd.sum(lambda i, j: cd.expm(0.3 * A)[i, j] ** 2)

    A, V = RNG.normal(size=(2, 2, 2))
    np.testing.assert_allclose(np.tensordot(cd.hessian(f, mode="cross-country")(A), V), cd.hvp(f)(A, V), rtol=1e-9)


@pytest.mark.sample(1)
@pytest.mark.parametrize("mode", MODES)
def test_third_derivatives(mode: str) -> None:
    for name in ("logistic", "separable", *(["smooth network"] if mode == "cross-country" else [])):
        f, wrt, arrays = CASES[name]
        at, _ = point_of(f, wrt, arrays)
        if name == "smooth network":
            arrays = (arrays[0][:2, :2], arrays[1][:2, :2], arrays[2][:2], arrays[3][:2])
        H = hessian(f, wrt)
        third = cd.jacobian(H, wrt, mode)(*arrays)
        np.testing.assert_allclose(third, differences(H, arrays, at), atol=1e-5)


@cd.program
def mixing(A: cd.Space("n", "n", dtype=complex), z: Complex):
    return cd.tensor(lambda i: cd.conj(z[i]) * cd.sum(lambda j: A[i, j] * z[j] * z[j]))


@pytest.mark.parametrize("mode", MODES)
def test_jacobians_of_complex_programs_are_pairs(mode: str) -> None:
    A, z, _ = complex_arrays()
    direct, mirrored = cd.jacobian(mixing, "z", mode)(A, z)
    real, imag = differences(mixing, (A, z), 1), differences(mixing, (A, z), 1, 1e-6j)
    np.testing.assert_allclose(direct, (real - 1j * imag) / 2, atol=1e-7)
    np.testing.assert_allclose(mirrored, (real + 1j * imag) / 2, atol=1e-7)


# --- bad input


def test_a_dense_hessian_that_does_not_fit_is_refused() -> None:
    huge = np.broadcast_to(0.0, (200_000,))
    with pytest.raises(cd.MemoryLimitError, match=r"dense Hessian hessian_separable takes 298 GiB, but .* are free"):
        hessian(separable, "x")(huge, huge)
    with pytest.raises(cd.MemoryLimitError, match=r"\.compressed\(\) or \.solve\(…\), .* or hvp"):
        hessian(separable, "x")(huge, huge)
    assert hessian(separable, "x").diag(huge, huge).shape == (200_000,)
    step = hessian(separable, "x").solve(np.ones(200_000), huge + 1.0, huge)
    np.testing.assert_allclose(step, 1 / 3)


def test_unknown_modes_are_refused() -> None:
    for transform in (cd.hessian, cd.jacobian):
        with pytest.raises(cd.DifferentiationError, match="unknown mode 'sideways'") as info:
            transform(separable, "x", "sideways")
        assert info.value.hint == 'use one of "auto", "forward", "reverse", "cross-country"'


def test_singular_systems_are_refused() -> None:
    U, V, T = normal(4, 3), np.ones((5, 3)), normal(4, 5)
    with pytest.raises(cd.SingularError, match="the Newton system is singular: its 3 × 3 matrix"):
        hessian(factorisation, "U").solve(normal(4, 3), T, U, V)


@pytest.mark.thorough
def test_singular_blocks_are_refused() -> None:
    f, wrt, arrays = CASES["network"]
    with pytest.raises(cd.SingularError):
        hessian(f, wrt).solve(normal(4, 2), *arrays)


@pytest.mark.thorough
def test_wrong_blocks_and_right_hand_sides_are_refused() -> None:
    H = hessian(several, ("u", "v"))
    with pytest.raises(cd.DifferentiationError, match="there is no block by 'w'"):
        H["u", "w"]
    with pytest.raises(cd.DifferentiationError, match="a block is named by two names, not by 'u'"):
        H["u"]
    with pytest.raises(cd.UnsupportedError, match="only a diagonal block is a square matrix"):
        H["u", "v"].diag()
    with pytest.raises(cd.ArgumentError, match=r"the right-hand side for x has shape \(2,\), but \(3,\) was expected"):
        hessian(separable, "x").solve(np.ones(2), np.ones(3), np.ones(3))


def test_lists_of_unequal_lengths_are_refused() -> None:
    H, ragged = hessian(separable, "x"), [[1.0, 2.0], [3.0]]
    for given in (lambda: H(ragged, np.ones(3)), lambda: H.solve(np.ones(3), ragged, np.ones(3))):
        with pytest.raises(cd.ArgumentError, match="what was given for a is not an array: its lists have unequal"):
            given()
    with pytest.raises(cd.ArgumentError, match="the right-hand side is not an array"):
        H.solve(ragged, np.ones(3), np.ones(3))


@pytest.mark.thorough
def test_blocks_of_a_recurrent_network() -> None:
    """Parts that sharing names by canonical indices meet sums whose factors go in front: they keep their indices."""

    @cd.program
    def recurrent(W: cd.Space("h", "h"), b: cd.Space("h"), x: cd.Space("h"), y: cd.Space("h")):
        s = cd.tanh(x + b)
        s = cd.tanh(W @ s + b)
        s = cd.tanh(W @ s + b)
        return cd.sum(lambda i: (s[i] - y[i]) ** 2)

    H, gradients = cd.hessian(recurrent, wrt=("b", "x"), mode="reverse"), cd.grad(recurrent, wrt=("b", "x"))
    W, *vectors = (RNG.normal(size=shape) for shape in ((3, 3), 3, 3, 3))
    step = 1e-6
    for n, name in enumerate("bx"):
        for k, unit in enumerate(np.eye(3)):
            ends = [[v + sign * step * unit if m == n else v for m, v in enumerate(vectors)] for sign in (1, -1)]
            slopes = [(a - b) / (2 * step) for a, b in zip(*(gradients(W, *end) for end in ends), strict=True)]
            for row, slope in zip("bx", slopes, strict=True):
                np.testing.assert_allclose(H[row, name](W, *vectors)[:, k], slope, atol=1e-7)
