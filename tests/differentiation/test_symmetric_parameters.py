"""Derivatives by tensors with symmetries lie in their Space, and equal programs have equal ones (theory, section 7)."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from strategies import examples

import combdiff as cd
from combdiff.ir import Action, Space, subgroup_factors
from combdiff.testing import random_array, symmetrize, transform

Array = np.ndarray[Any, Any]
S = cd.Space
V, M = S("n"), S("n", "n")
Sym, Alt = (S("n", "n", symmetry=[f"A[i,j] = {sign}A[j,i]"]) for sign in ("", "-"))
Herm, Skew = (S("n", "n", dtype=complex, symmetry=[f"A[i,j] = {sign}conj(A[j,i])"]) for sign in ("", "-"))
SPACES = {
    "symmetric": Sym,
    "antisymmetric": Alt,
    "hermitian": Herm,
    "skew-hermitian": Skew,
    "supersymmetric": S("n", "n", "n", symmetry=["A[i,j,k] = A[j,i,k]", "A[i,j,k] = A[i,k,j]"]),
    "rotations": S("n", "n", "n", symmetry=["A[i,j,k] = A[j,k,i]"]),
    "amplitudes": S("m", "m", "n", "n", symmetry=["A[i,j,a,b] = -A[j,i,a,b]", "A[i,j,a,b] = -A[i,j,b,a]"]),
    "integrals": S("n", "n", "n", "n", symmetry=["A[p,q,r,s] = A[q,p,r,s]", "A[p,q,r,s] = A[r,s,p,q]"]),
    "complex integrals": S(
        "n", "n", "n", "n", dtype=complex, symmetry=["A[p,q,r,s] = A[r,s,p,q]", "A[p,q,r,s] = conj(A[q,p,s,r])"]
    ),
    "weights": S(cd.Symmetric("b"), symmetry=["w[b] = w[-b]"]),
    "odd complex": S(cd.Symmetric("b"), "n", dtype=complex, symmetry=["w[b,i] = -conj(w[-b,i])"]),
    "on a cycle": S(cd.Cyclic("n"), cd.Cyclic("n"), symmetry=["w[i,j] = w[-j,-i]"]),
    "swapped": S(cd.Symmetric("b"), cd.Symmetric("b"), symmetry=["w[a,b] = w[b,-a]"]),
}
SIZES = {"n": 3, "m": 2, "b": 1}
ORDERS = st.integers(1, 3)
FEW = settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))


def objective(space: Space, actions: tuple[Action, ...], quartic: bool) -> cd.Program:
    """A real function of A: Re ⟨B, g A⟩ + Re ⟨C, h A⟩ Re ⟨D, A⟩ (+ Σ |g A|⁴), each read of A rewritten by an action."""
    plain = S(*space.axes, dtype=space.dtype)
    letters = [f"i{n}" for n in range(space.order)]

    def read(tensor: Any, action: Action, indices: tuple[Any, ...]) -> Any:
        at = tuple(-indices[a] if minus else indices[a] for a, minus in zip(action.axes, action.negated, strict=True))
        value = tensor[at]
        return action.sign * (cd.conj(value) if action.conjugate else value)

    def over(body: Any) -> Any:
        domains = dict(zip(letters, space.axes, strict=True))
        return eval(f"lambda {', '.join(letters)}: body(({', '.join(letters)},))", {"body": body}), domains

    def total(body: Any) -> Any:
        function, domains = over(body)
        return cd.sum(function, **domains)

    g, h, k = actions

    @cd.program
    def f(A: space, B: plain, C: plain, D: plain):
        one = total(lambda i: cd.real(cd.conj(B[i]) * read(A, g, i)))
        two = total(lambda i: cd.real(cd.conj(C[i]) * read(A, h, i))) * total(lambda i: cd.real(D[i] * read(A, k, i)))
        return one + two + (total(lambda i: cd.abs(read(A, g, i)) ** 4) if quartic else 0)

    return f


def arrays(space: Space, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    plain = S(*space.axes, dtype=space.dtype)
    return {
        name: random_array(each, rng, SIZES) for name, each in zip("ABCD", (space, plain, plain, plain), strict=True)
    }


def in_space(array: Array, space: Space) -> Array:
    """The array, asserted to have the symmetries."""
    for action in space.group:
        np.testing.assert_allclose(transform(array, action, space), array, atol=1e-12)
    return array


@FEW
@given(st.sampled_from(sorted(SPACES)), st.data())
def test_the_gradient_lies_in_the_space_whatever_the_spelling(kind: str, data: st.DataObject) -> None:
    space, values = SPACES[kind], arrays(SPACES[kind])
    identity = space.group[0]
    quartic = data.draw(st.booleans()) and space.order < 3
    drawn = tuple(data.draw(st.sampled_from(space.group)) for _ in range(3))
    one, other = (objective(space, actions, quartic) for actions in ((identity,) * 3, drawn))
    expected = in_space(cd.grad(one)(**values), space)
    for simplified in (True, False):
        np.testing.assert_allclose(cd.grad(other, simplify=simplified)(**values), expected, atol=1e-12)
    cd.testing.check_grad(other, "A", **values)


def generated(data: st.DataObject) -> Space:
    """A Space whose group, of at most eight elements, random actions generate: permutations, signs, conjugates, −i."""
    axis, order = data.draw(st.sampled_from([cd.Range("n"), cd.Symmetric("b"), cd.Cyclic("n")])), data.draw(ORDERS)
    dtype, letters = data.draw(st.sampled_from([float, complex])), "ijkl"[:order]
    equations = []
    for _ in range(data.draw(st.integers(1, 2))):
        minus = [not isinstance(axis, cd.Range) and data.draw(st.booleans()) for _ in letters]
        right = ",".join("-" * m + x for m, x in zip(minus, data.draw(st.permutations(letters)), strict=True))
        side = f"conj(T[{right}])" if dtype is complex and data.draw(st.booleans()) else f"T[{right}]"
        equations.append(f"T[{','.join(letters)}] = {data.draw(st.sampled_from(['', '-']))}{side}")
    try:
        space = S(*[axis] * order, dtype=dtype, symmetry=equations)
    except cd.CombdiffError:  # the equations make every tensor zero
        assume(False)
    assume(1 < len(space.group) <= 8)
    return space


@pytest.mark.thorough
@settings(FEW, max_examples=examples(5))
@given(st.data())
def test_derivatives_lie_in_spaces_of_random_actions(data: st.DataObject) -> None:
    """Gradient, pullback, Hessian-vector product, Hessian, step: of an objective, and of one rewritten by the laws."""
    space = generated(data)
    values, v = arrays(space), random_array(space, np.random.default_rng(5), SIZES)
    quartic = data.draw(st.booleans()) and space.order < 3
    drawn = tuple(data.draw(st.sampled_from(space.group)) for _ in range(3))
    one, other = (objective(space, actions, quartic) for actions in ((space.group[0],) * 3, drawn))
    expected = in_space(cd.grad(one)(**values), space)
    moved = in_space(cd.hvp(one)(**values, A_dot=v), space)
    cd.testing.check_grad(one, "A", **values)
    for simplified in (True, False):
        close(cd.grad(other, simplify=simplified)(**values), expected)
        close(cd.pullback(other, "A", simplify=simplified)(*values.values(), 1.0), expected)
        close(cd.hvp(other, simplify=simplified)(**values, A_dot=v), moved)
    H = cd.hessian(other, "A")
    close(H.matvec(v, **values), moved)
    if space.dtype is not complex:
        dense, order = H(**values), space.order
        close(np.tensordot(dense, v, order), moved)
        for e in np.ndindex(v.shape):
            in_space(dense[e], space)
        np.testing.assert_allclose(np.transpose(dense, (*range(order, 2 * order), *range(order))), dense, atol=1e-9)
    if quartic:
        with contextlib.suppress(cd.SingularError):
            step = in_space(H.solve(expected, **values), space)
            close(H.matvec(step, **values), expected, 1e-7)


def close(found: Array, expected: Array, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max(initial=0)))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["symmetric", "amplitudes", "hermitian", "weights", "odd complex"])
def test_second_derivatives_act_on_the_space(kind: str) -> None:
    space, values = SPACES[kind], arrays(SPACES[kind])
    f = objective(space, (space.group[-1],) * 3, quartic=space.order < 3)
    v, h = random_array(space, np.random.default_rng(5), SIZES), 1e-5
    gradient = cd.grad(f)
    ahead, behind = (gradient(**values | {"A": values["A"] + s * h * v}) for s in (1, -1))
    product = in_space(cd.hvp(f)(**values, A_dot=v), space)
    np.testing.assert_allclose(product, (ahead - behind) / (2 * h), rtol=1e-6, atol=1e-8)
    for mode in ("forward", "reverse", "cross-country") if kind in ("symmetric", "hermitian") else ("reverse",):
        H = cd.hessian(f, "A", mode)
        np.testing.assert_allclose(H.matvec(v, **values), product, atol=1e-10)
        dense, order = H(**values), space.order
        if space.dtype is not complex:
            np.testing.assert_allclose(np.tensordot(dense, v, order), product, atol=1e-10)
            for e in np.ndindex(v.shape):
                in_space(dense[e], space)
            np.testing.assert_allclose(
                np.transpose(dense, (*range(order, 2 * order), *range(order))), dense, atol=1e-12
            )
        else:
            zz̄, zz = dense
            found = 2 * (np.tensordot(v, zz, order).conj() + np.tensordot(v, zz̄, order))
            np.testing.assert_allclose(found, product, atol=1e-10)


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["symmetric", "antisymmetric", "hermitian", "skew-hermitian", "weights", "on a cycle"])
@pytest.mark.parametrize("mode", ["forward", "reverse", "cross-country"])
def test_a_jacobian_is_that_along_the_space(kind: str, mode: str) -> None:
    space, values = SPACES[kind], arrays(SPACES[kind])
    plain = S(*space.axes, dtype=space.dtype)

    @cd.program
    def f(A: space, B: plain):
        return cd.exp(A / 4) * B + A * A

    A, B = values["A"], values["B"]
    v = random_array(space, np.random.default_rng(5), SIZES)
    expected = v * (np.exp(A / 4) * B / 4 + 2 * A)
    J = cd.jacobian(f, "A", mode)(A, B)
    order = space.order
    if space.dtype is complex:
        assert np.allclose(np.tensordot(J[0], v, order) + np.tensordot(J[1], v.conj(), order), expected, atol=1e-12)
        (turned,) = [a for a in space.group if a.conjugate]
        np.testing.assert_allclose(J[1], turned.sign * np.swapaxes(J[0], -1, -2), atol=1e-12)
    else:
        np.testing.assert_allclose(np.tensordot(J, v, order), expected, atol=1e-12)
        for e in np.ndindex(A.shape):
            in_space(J[e], space)
    k = values["D"]
    found = in_space(cd.pullback(f)(A, B, k), space)
    slopes = cd.testing.finite_difference_pullback(lambda **a: f(**a), {"A": A, "B": B}, "A", k, space=space)
    np.testing.assert_allclose(found, slopes, atol=1e-8)


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["symmetric", "antisymmetric", "hermitian"])
def test_a_newton_step_stays_in_the_space(kind: str) -> None:
    space, values = SPACES[kind], arrays(SPACES[kind])
    axes = space.axes

    @cd.program
    def f(A: space, B: S(*axes, dtype=space.dtype)):
        return cd.sum(lambda i, j: cd.abs(A[i, j] - B[i, j]) ** 2, i=axes[0], j=axes[1]) + cd.sum(
            lambda i, j: cd.abs(A[i, j]) ** 4, i=axes[0], j=axes[1]
        )

    A, B = values["A"], values["B"]
    H = cd.hessian(f)
    g = cd.grad(f)(A, B)
    step = in_space(H.solve(g, A, B), space)
    np.testing.assert_allclose(H.matvec(step, A, B), g, atol=1e-10)
    for _ in range(8):
        A = A - H.solve(cd.grad(f)(A, B), A, B)
    np.testing.assert_allclose(cd.grad(f)(A, B), 0, atol=1e-10)
    in_space(A, space)


# --- what is printed -------------------------------------------------------------------------------------------------


@cd.program
def bilinear(A: Sym, x: V, y: V):
    return x @ A @ y


@cd.program
def mirrored(A: Sym, x: V, y: V):
    return y @ A @ x


@cd.program
def alternating(A: Alt, x: V, y: V):
    return x @ A @ y


@cd.program
def quadratic(A: Sym, x: V):
    return x @ A @ x


@cd.program
def evidence(A: Sym):
    return cd.log(cd.det(A))


@cd.program
def product(A: Sym, B: M, C: M):
    return cd.trace(A @ B @ C)


@cd.program
def longer(A: Alt, B: M, C: M, x: V, y: V):
    return cd.trace(A @ B @ C) + x @ A @ y


@cd.program
def mean_element(A: Sym, x: V, y: V):
    return (x @ A @ y) / (x @ y)


@cd.program
def squared_length(A: Sym, x: V):
    return (x @ A @ A @ x) / (x @ x)


@pytest.mark.parametrize(
    ("f", "printed", "matrix"),
    [
        (mean_element, "(x[d] y[e] + x[e] y[d]) / (2 Σ_j x[j] y[j])", "1/2·(x·yᵀ + y·xᵀ) / (xᵀ·y)"),
        (
            squared_length,
            "(x[e] Σ_k A[d,k] x[k] + x[d] Σ_k A[e,k] x[k]) / Σ_k x[k]²",
            "(A·x·xᵀ + x·xᵀ·A) / ‖x‖²",
        ),
        (bilinear, "1/2 (x[d] y[e] + x[e] y[d])", "1/2·(x·yᵀ + y·xᵀ)"),
        (mirrored, "1/2 (x[d] y[e] + x[e] y[d])", "1/2·(x·yᵀ + y·xᵀ)"),
        (alternating, "1/2 (x[d] y[e] - x[e] y[d])", "1/2·(x·yᵀ - y·xᵀ)"),
        (quadratic, "x[d] x[e]", "x·xᵀ"),
        (evidence, "inv(A)[d,e]", "A⁻¹"),
        (product, "1/2 (Σ_i B[d,i] C[i,e] + Σ_i B[e,i] C[i,d])", "1/2·(B·C + Cᵀ·Bᵀ)"),
    ],
)
def test_two_terms_are_written_out_and_none_where_the_cotangent_is_in_the_space(
    f: cd.Program, printed: str, matrix: str
) -> None:
    assert str(cd.grad(f)).endswith(f"(d, e) ↦ {printed}")
    assert cd.grad(f).matrix() == matrix


def test_more_terms_are_written_with_a_projector_and_computed_once() -> None:
    gradient = cd.grad(longer)
    assert "Alt_{d,e} (" in str(gradient)
    assert r"\operatorname{Alt}_{d,e} \left(" in gradient.latex()
    assert gradient.source().count("@") == 1


def test_a_cotangent_is_only_averaged_over_what_does_not_leave_it_fixed() -> None:
    integrals = SPACES["integrals"]

    @cd.program
    def f(A: integrals, x: V, y: V, z: V):
        return cd.sum(lambda p, q, r, s: A[p, q, r, s] * x[p] * x[q] * y[r] * z[s])

    assert str(cd.grad(f)).endswith("(d, e, f, g) ↦ Sym_{(d,e),(f,g)} Sym_{f,g} x[d] x[e] y[f] z[g]")


def test_groups_are_products_of_subgroups_with_names() -> None:
    for kind, names in (("integrals", 3), ("amplitudes", 2), ("supersymmetric", 1), ("complex integrals", 2)):
        group = SPACES[kind].group
        found = subgroup_factors(group, ())
        assert found is not None
        assert len(found) == names
        assert np.prod([len(each) for each in found]) == len(group)
        products = set(itertools.chain.from_iterable(found))
        assert products <= set(group)
    assert subgroup_factors(SPACES["rotations"].group, ()) is None


def test_check_grad_refuses_a_gradient_that_leaves_the_space() -> None:
    values = arrays(Sym)
    assert cd.testing.check_grad(bilinear, "A", A=values["A"], x=values["B"][0], y=values["B"][1]) < 1e-7
    np.testing.assert_array_equal(symmetrize(values["A"], Sym), values["A"])


@pytest.mark.thorough
def test_derivatives_of_derivatives_and_other_conventions_are_projected_too() -> None:
    values = arrays(Herm)

    @cd.program
    def f(A: Herm, u: S("n", dtype=complex), v: S("n", dtype=complex)):
        return cd.real(cd.conj(u) @ A @ A @ v)

    A, u, v = values["A"], values["B"][0], values["B"][1]
    gradient = in_space(cd.grad(f)(A, u, v), Herm)
    np.testing.assert_allclose(cd.grad(f, convention="jax")(A, u, v), gradient.conj(), atol=1e-12)
    value, same = cd.value_and_grad(f)(A, u, v)
    np.testing.assert_allclose(same, gradient, atol=1e-12)
    np.testing.assert_allclose(value, (u.conj() @ A @ A @ v).real, atol=1e-12)
    np.testing.assert_allclose(cd.simplify(cd.grad(f))(A, u, v), gradient, atol=1e-12)
    blocks = cd.hessian(f, ("A", "u"))(A, u, v)
    w = random_array(Herm, np.random.default_rng(3), SIZES)
    zz̄, zz = blocks["u", "A"]
    moved = 2 * (
        np.tensordot(w, zz̄.transpose(1, 2, 0).conj(), 2) + np.tensordot(w.conj(), zz.transpose(1, 2, 0).conj(), 2)
    )
    h = 1e-5
    ahead, behind = (cd.grad(f, "u")(A + s * h * w, u, v) for s in (1, -1))
    assert moved.shape == ahead.shape
    np.testing.assert_allclose(cd.hvp(f, ("A", "u"))(A, u, v, w, 0 * u)[1], (ahead - behind) / (2 * h), atol=1e-8)
