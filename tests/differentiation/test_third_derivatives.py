"""Derivatives of Hessians and of derivatives with several results: every mode, real and complex, all blocks."""

from collections.abc import Callable
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import combdiff as cd
import combdiff.differentiation.jacobians as jacobians
from combdiff.ir.interpreter import evaluate
from combdiff.runtime.arguments import bind_sizes

MODES = ("forward", "reverse", "cross-country")  # "auto" takes the cheapest of them: tests/hessians
hessian, jacobian = cache(cd.hessian), cache(cd.jacobian)
RNG = np.random.default_rng(11)
Real, Complex = cd.Space("n"), cd.Space("n", dtype=complex)


@cd.program
def coupled(A: cd.Space("n", "m"), x: Real, y: cd.Space("m")):
    return (np.exp(x) * (A @ (y * y))).sum() + (x @ x) * (A @ y).sum()


@cd.program
def waves(z: Complex):
    norm = cd.real(cd.sum(lambda i: cd.conj(z[i]) * z[i]))
    return cd.real(cd.sum(lambda i: cd.exp(z[i]) * cd.conj(z[i]) ** 2)) + norm**2


@cd.program
def mixed(z: Complex, x: Real):
    return (
        cd.real(cd.sum(lambda i: x[i] ** 2 * z[i] ** 3))
        + cd.sum(lambda i: cd.real(z[i] * cd.conj(z[i])) ** 2) * x.sum()
    )


@cd.program
def pair(A: cd.Space("n", "n"), x: Real):
    return A @ np.sin(x), (x * np.exp(x)).sum()


def complexes(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape) / 2 + 0.5j * RNG.normal(size=shape)


def along(function: Callable[[Any], Any], point: np.ndarray[Any, Any], unit: complex) -> Any:
    """Central differences in the directions of `unit`, axes of the point last; of every array of nested tuples."""
    columns = []
    for n in np.ndindex(point.shape):
        moved = []
        for sign in (1, -1):
            shifted = point.astype(np.result_type(point, unit))
            shifted[n] += sign * 1e-5 * unit
            moved.append(function(shifted))
        columns.append(over(lambda one, other: (one - other) / 2e-5, *moved))
    return over(lambda *parts: np.stack(parts, axis=-1).reshape(*np.shape(parts[0]), *point.shape), *columns)


def over(f: Callable[..., Any], *values: Any) -> Any:
    """A function of the arrays at each place of equal nested tuples."""
    if isinstance(values[0], tuple):
        return tuple(over(f, *parts) for parts in zip(*values, strict=True))
    return f(*values)


def wirtinger(function: Callable[[Any], Any], point: np.ndarray[Any, Any]) -> Any:
    """The pair (∂/∂z, ∂/∂z̄) in place of each array."""
    real, imag = along(function, point, 1), along(function, point, 1j)
    return over(lambda a, b: ((a - 1j * b) / 2, (a + 1j * b) / 2), real, imag)


def close(found: Any, expected: Any, tolerance: float = 1e-6) -> None:
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        for one, other in zip(found, expected, strict=True):
            close(one, other, tolerance)
    else:
        np.testing.assert_allclose(found, expected, atol=tolerance * (1 + np.abs(expected).max(initial=0.0)))


def by_reference(f: cd.Program, *arrays: Any) -> Any:
    values = dict(zip(f.term.parameters, map(np.asarray, arrays), strict=True))
    return evaluate(f.term.body, values, bind_sizes({var: np.shape(value) for var, value in values.items()}))


REAL = (RNG.normal(size=(3, 2)), RNG.normal(size=3), RNG.normal(size=2))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("simplified", [True, False])
def test_third_derivatives_by_one_variable(mode: str, simplified: bool) -> None:
    H = hessian(coupled, "x", mode, simplify=simplified)
    third = jacobian(H, "x", mode, simplify=simplified)
    A, x, y = REAL
    found = third(A, x, y)
    close(found, along(lambda x: H(A, x, y), x, 1))
    close(found, by_reference(third, A, x, y), 1e-12)
    for order in permutations(range(3)):
        close(found, found.transpose(order), 1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
def test_third_derivatives_by_several_variables(mode: str) -> None:
    H = hessian(coupled, ("x", "y"), mode)
    third = jacobian(H, ("x", "y"), mode)
    A, x, y = REAL
    found = third(A, x, y)
    for row in range(2):
        for column in range(2):
            close(found[row][column][0], along(lambda x: H(A, x, y)[row][column], x, 1))  # noqa: B023
            close(found[row][column][1], along(lambda y: H(A, x, y)[row][column], y, 1))  # noqa: B023
    close(found[0][0][1], np.moveaxis(found[0][1][0], 1, 2), 1e-12)
    close(jacobian(H["x", "y"], "y", mode)(A, x, y), found[0][1][1], 1e-12)


@pytest.mark.sample(1)
@pytest.mark.parametrize("mode", MODES)
def test_complex_third_derivatives_are_pairs_of_pairs(mode: str) -> None:
    """∂³f/∂z∂z̄∂z, ∂z∂z̄∂z̄, ∂z∂z∂z and ∂z∂z∂z̄; the other four of a real f are their conjugates."""
    z = complexes(3)
    H = hessian(waves, "z", mode)
    third = jacobian(H, "z", mode)
    found = third(z)
    close(found, wirtinger(H, z))
    close(found, by_reference(third, z), 1e-12)
    (zbz, zbb), (zzz, zzb) = found
    close(zbz, np.moveaxis(zzb, 2, 1), 1e-12)
    close(zbb, zbb.swapaxes(1, 2), 1e-12)
    close(zbb.conj(), np.moveaxis(zzb, 2, 0), 1e-12)
    for order in permutations(range(3)):
        close(zzz, zzz.transpose(order), 1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
def test_unsimplified_complex_third_derivatives(mode: str) -> None:
    z = complexes(2)
    raw = jacobian(hessian(waves, "z", mode, simplify=False), "z", mode, simplify=False)
    close(raw(z), jacobian(hessian(waves), "z")(z), 1e-11)
    close(by_reference(raw, z), raw(z), 1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
def test_third_derivatives_by_complex_and_real_variables(mode: str) -> None:
    z, x = complexes(2), RNG.normal(size=2)
    H = hessian(mixed, ("z", "x"), mode)
    found = jacobian(H, ("z", "x"), mode)(z, x)
    by_z, by_x = wirtinger(lambda z: tuple(H(z, x)), z), along(lambda x: tuple(H(z, x)), x, 1)

    def both(one: Any, other: Any) -> Any:
        deeper = isinstance(other, tuple)
        return tuple(map(both, one, other)) if deeper else (one, other)

    close(found, both(by_z, by_x))


@pytest.mark.sample(1)
@pytest.mark.parametrize("mode", MODES)
def test_fourth_derivatives(mode: str) -> None:
    @cd.program
    def bell(x: Real):
        return np.exp(-(x @ x))

    x = RNG.normal(size=2) / 2
    third = jacobian(hessian(bell, "x", mode), "x", mode)
    fourth = jacobian(third, "x", mode)(x)
    close(fourth, along(third, x, 1))
    for order in permutations(range(4)):
        close(fourth, fourth.transpose(order), 1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_jacobians_of_several_results(mode: str) -> None:
    A, x = RNG.normal(size=(3, 3)), RNG.normal(size=3)
    close(jacobian(pair, "x", mode)(A, x), along(lambda x: pair(A, x), x, 1))
    found = jacobian(pair, ("A", "x"), mode)(A, x)
    close(tuple(each[1] for each in found), along(lambda x: pair(A, x), x, 1))
    close(found[0][0], along(lambda A: pair(A, x)[0], A, 1))
    assert not found[1][0].any()


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
def test_named_maps_and_equations_of_complex_numbers(mode: str) -> None:
    """What is linear in the unit by a law of its own: a named map, and the solution of an equation."""

    @cd.program
    def mapped(L: cd.Function(Complex, result=Complex, linear=True), z: Complex):
        image = L(cd.tensor(lambda i: z[i] * cd.conj(z[i]) + z[i] ** 2))
        return cd.tensor(lambda i: cd.conj(image[i]) * z[i])

    @cd.program
    def solved(z: Complex):
        return cd.root(lambda w: w + w * w * cd.conj(z) / 9 - z, like=z)

    matrix, z = complexes(3, 3), complexes(3)

    @cd.program
    def product(M: cd.Space("n", "n", dtype=complex), v: Complex):
        return M @ v

    f = mapped.partial(L=product.partial(M=matrix))
    close(jacobian(f, "z", mode)(z), wirtinger(f, z))
    close(jacobian(mapped, "z", mode).partial(L=product.partial(M=matrix))(z), wirtinger(f, z))
    close(jacobian(solved, "z", mode)(z), wirtinger(solved, z))


@pytest.mark.thorough
def test_symmetric_blocks_are_derived_once(monkeypatch: pytest.MonkeyPatch) -> None:
    derived = []

    def counted(gradient: Any, row: Any, column: Any, *rest: Any) -> Any:
        derived.append((row.name, column.name))
        return original(gradient, row, column, *rest)

    original = jacobians.hessian_block
    monkeypatch.setattr(jacobians, "hessian_block", counted)
    H = cd.hessian(coupled, ("A", "x", "y"), "cross-country")
    assert len(derived) == 6
    assert len(set(map(frozenset, derived))) == 6
    result = H(*REAL)
    for row, column in (("A", "x"), ("A", "y"), ("x", "y")):
        block, order = result[row, column], result[row, column].ndim
        rows = REAL["Axy".index(row)].ndim
        np.testing.assert_array_equal(result[column, row], block.transpose(*range(rows, order), *range(rows)))
        np.testing.assert_array_equal(H[column, row](*REAL), result[column, row])
    assert "H_xy" in str(H) or str(H).count("exp(") == 1
