"""Functions of real numbers keep real arguments, also where the laws find that an Re changes nothing."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

Complex = cd.Space("n", dtype=complex)


def chosen(x: Any) -> Any:
    return cd.where(cd.real(x[0]) < 0.3, x[0], x[0] * x[1])


INNER: dict[str, Callable[[Any], Any]] = {
    "quotient": lambda x: x[0] / (2 + cd.abs(x[0]) ** 2),
    "choice": lambda x: chosen(x) / (2 + cd.abs(chosen(x)) ** 2),
    "sum": lambda x: x[0] * x[1].conj() + x[1] * x[0].conj(),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", INNER)
def test_simplified_programs_are_of_real_arguments(name: str) -> None:
    def f(x: Complex):
        inner = cd.real(INNER[name](x))
        return cd.erf(1 + inner) * x[0] + cd.where(inner < 0.11, x[1], x[0]) + cd.maximum(inner, 0.2)

    program, x = cd.program(f), np.array([0.4 + 0.7j, -0.3 + 0.2j])
    assert cd.simplify(program)(x) == pytest.approx(program(x))

    def size(x: Complex):
        return cd.real(f(x))

    gradient = cd.grad(cd.program(size))(x)
    np.testing.assert_allclose(gradient, cd.grad(cd.program(size), simplify=False)(x), rtol=1e-12)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (lambda z: cd.real(z[0] * cd.conj(z[0]) * cd.real(z[1])), "|z[0]|² Re(z[1])"),
        (lambda z: cd.real(cd.sum(lambda i: 2 * z[i] * cd.conj(z[i]) * cd.abs(z[i] + 1))), "2 Σ_i |z[i]|² |1 + z[i]|"),
        (lambda z: cd.real(z[0]) + 1j * cd.imag(z[0]), "z[0]"),
        (lambda z: 2j * cd.real(z[0]) + 2 * cd.imag(z[0]), "2i z[0]*"),
        (lambda z: cd.real(z[0]) ** 2 + cd.imag(z[0]) ** 2, "|z[0]|²"),
    ],
)
def test_parts_and_moduli(written: Callable[[Any], Any], shown: str) -> None:
    """Of what squared moduli make real no Re is left; real and imaginary parts beside each other are one number."""
    written.__annotations__["z"] = Complex
    program = cd.program(written)
    simple = cd.simplify(program)
    assert str(simple).partition(" ↦ ")[2] == shown
    z = np.array([0.4 + 0.7j, -0.3 + 0.2j])
    assert simple(z) == pytest.approx(program(z))
    assert np.isrealobj(simple(z)) == np.isrealobj(program(z))


def test_the_logarithm_of_an_inverse_is_that_of_a_real_number_alone() -> None:
    """log(1/x) = -log x for a real x; on the branch cut of a complex one their imaginary parts have other signs."""

    @cd.program
    def real(x: cd.Space()):
        return np.log(1 / (1 + x * x))

    @cd.program
    def on_the_cut(z: cd.Space(dtype=complex)):
        return np.log(1 / z)

    assert str(cd.simplify(real)) == "x ↦ -log(1 + x²)"
    for program in (on_the_cut, cd.simplify(on_the_cut)):
        assert program(-2 + 0j) == pytest.approx(-np.log(2) + 1j * np.pi * np.sign(np.log(1 / (-2 + 0j)).imag))


def test_the_root_of_a_negative_number_is_a_number_only_where_that_is_of_complex_type() -> None:
    for written, expected in (("sqrt(abs(z)^2 - 4)", np.nan), ("real(sqrt(z*conj(z) - 4))", 0.0)):
        program = cd.read(f"z complex ()\n{written}")
        with np.errstate(invalid="ignore"):
            found = [cd.simplify(program)(1 + 0j), program(1 + 0j)]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("written", "expected", "slope"),
    [
        ("sqrt(abs(z)^2 - 4)", "sqrt(|z|² - 4)", "z / sqrt(|z|² - 4)"),
        ("exp(abs(z)^2)", "exp(|z|²)", "2 z exp(|z|²)"),
        ("1 / (1 + abs(z)^2)^(3/2)", "1 / (1 + |z|²)^(3/2)", "-3 z / (1 + |z|²)^(5/2)"),
        ("1 / abs(z - b)^2", "1 / |b - z|²", "2 (b - z) / |b - z|⁴"),
        ("abs(a*z/b)^2", "|a|² |z|² / |b|²", "2 a z (a / b)* / b"),
        ("real((z + conj(z)) * b * conj(b))", "2 Re(z) |b|²", "2 |b|²"),
    ],
)
def test_squared_moduli_are_real_inside_functions_and_of_sums(written: str, expected: str, slope: str) -> None:
    program = cd.read(f"a complex (), b complex (), z complex ()\n{written}")
    for derived, shown in ((cd.simplify(program), expected), (cd.grad(program, wrt="z"), slope)):
        assert str(derived).partition("↦")[2].strip() == shown
        assert cd.read(f"a complex (), b complex (), z complex ()\n{derived}") == derived
