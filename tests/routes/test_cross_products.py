"""Cross products: two reads around an axis of three, so that their derivatives are cross products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.testing import check_grad, check_routes

RNG = np.random.default_rng(0)
V, C = cd.Space(3), cd.Space(3, dtype=complex)


def triple(a: V, b: V, c: V):
    return np.cross(a, b) @ c


def area(a: V, b: V):
    return np.linalg.norm(np.cross(a, b)) / 2


def rotated(x: V, k: V, t: cd.Space()):
    turned = x * np.cos(t) + np.cross(k, x) * np.sin(t) + k * (k @ x) * (1 - np.cos(t))
    return (turned**2).sum()


def torque(r: cd.Space("n", 3), f: cd.Space("n", 3), w: V):
    return np.cross(r, f).sum(axis=0) @ w


def along_columns(r: cd.Space(3, "n"), b: V):
    return (np.cross(r, b[:, None], axis=0) ** 3).sum()


def poynting(E: C, H: C):
    return np.cross(E, np.conj(H)).real.sum()


PROGRAMS = [triple, area, rotated, torque, along_columns, poynting]


def arrays(f: cd.Program) -> dict[str, Any]:
    return cd.testing.random_arrays(f.parameters, RNG, {"n": 4})


@pytest.mark.sample(2)
@pytest.mark.parametrize("definition", PROGRAMS, ids=lambda f: f.__name__)
def test_derivatives_by_every_route(definition: Any) -> None:
    f = cd.program(definition)
    given = arrays(f)
    name = f.parameters[0].name
    check_routes(f, **given)
    check_routes(cd.grad(f, wrt=name), **given)
    assert check_grad(f, name, **given) < 1e-6
    direction = cd.testing.random_arrays(f.parameters, RNG, {"n": 4})[name]
    product = cd.hvp(f, wrt=name)
    check_routes(product, **dict(zip((p.name for p in product.parameters), (*given.values(), direction), strict=True)))
    ahead, behind = ({**given, name: given[name] + step * direction} for step in (1e-5, -1e-5))
    beside = (cd.grad(f, wrt=name)(**ahead) - cd.grad(f, wrt=name)(**behind)) / 2e-5
    np.testing.assert_allclose(product(*given.values(), direction), beside, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("definition", "name", "book"),
    [
        (triple, "a", "d<3 ↦ b[(d + 1) mod 3] c[(d - 1) mod 3] - b[(d - 1) mod 3] c[(d + 1) mod 3]"),  # b × c
        (torque, "r", "f[d,(e + 1) mod 3] w[(e - 1) mod 3] - f[d,(e - 1) mod 3] w[(e + 1) mod 3]"),  # f × w
        (poynting, "E", "d<3 ↦ H[(d + 1) mod 3] - H[(d - 1) mod 3]"),
    ],
)
def test_a_gradient_reads_as_a_cross_product(definition: Any, name: str, book: str) -> None:
    assert book in str(cd.grad(cd.program(definition), wrt=name))


def test_the_area_of_a_triangle_has_one_cross_product_of_a_named_one() -> None:
    text = str(cd.grad(cd.program(area), wrt="a"))
    assert len(text.splitlines()) <= 5
    assert "δ" not in text


def test_a_component_and_its_derivative_have_no_remainders() -> None:
    @cd.program
    def upward(a: V, b: V):
        return np.cross(a, b)[2]

    assert str(upward) == "(a, b) ↦ a[0] b[1] - a[1] b[0]"
    assert str(cd.grad(upward, wrt="a")) == "(a, b) ↦ d<3 ↦ δ(d, 0) b[1] - δ(d, 1) b[0]"


def test_a_vector_beside_many() -> None:
    @cd.program
    def beside(a: V, r: cd.Space("n", 3)):
        return np.cross(a, r)

    a, r = RNG.normal(size=3), RNG.normal(size=(5, 3))
    np.testing.assert_allclose(beside(a, r), np.cross(a, r))
    check_routes(beside, a=a, r=r)


def test_what_is_not_finite_stays_where_it_is() -> None:
    @cd.program
    def product(a: V, b: V):
        return np.cross(a, b)

    a, b = np.array([np.inf, 1.0, 2.0]), np.array([1.0, 0.5, 3.0])
    np.testing.assert_array_equal(product(a, b), np.cross(a, b))
