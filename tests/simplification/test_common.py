"""What the results of a program have in common is bound once, up to symmetry and conjugation, and changes no value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from known_programs import coulomb, hartree_fock

import combdiff as cd
from combdiff.ir import interpreter as reference
from combdiff.ir.let_form import split
from combdiff.printing.plain import text
from combdiff.simplification.normal_form.common_subnetworks import bind_common
from combdiff.testing.arrays import random_arrays
from combdiff.testing.differences import finite_difference_gradient


@cd.program
def form(A: cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"]), x: cd.Space("n")):
    return cd.sum(lambda i, j: x[i] * A[i, j] * x[j])


@cd.program
def hermitian(
    H: cd.Space("n", "n", dtype=complex, symmetry=["H[i,j] = conj(H[j,i])"]), z: cd.Space("n", dtype=complex)
):
    return cd.sum(lambda i, j: cd.conj(z[i]) * H[i, j] * z[j])


@cd.program
def cubic(T: cd.Space("n", "n", "n", symmetry=["T[i,j,k] = T[j,i,k]", "T[i,j,k] = T[i,k,j]"]), x: cd.Space("n")):
    return cd.sum(lambda i, j, k: T[i, j, k] * x[i] * x[j] * x[k])


@cd.program
def turned(A: cd.Space("n", "n", symmetry=["A[i,j] = -A[j,i]"]), x: cd.Space("n"), y: cd.Space("n")):
    return cd.sum(lambda i, j: x[i] * A[i, j] * y[j]) ** 2


@cd.program
def flat(
    w: cd.Space(cd.Symmetric("B"), symmetry=["w[b] = w[-b]"]),
    S: cd.Space("N", "N", cd.Cyclic("K"), cd.Cyclic("K"), dtype=complex, symmetry=["S[p,q,k,l] = conj(S[q,p,l,k])"]),
    U: cd.Space("N", "n", cd.Cyclic("K"), dtype=complex),
):
    """The localisation of Wannier functions with ρ written out twice."""

    def rho(n: Any, b: Any) -> Any:
        return cd.sum(lambda k, p, q: cd.conj(U[p, n, k]) * S[p, q, k, k + b] * U[q, n, k + b])

    return cd.sum(lambda n, b: w[b] * cd.conj(rho(n, b)) * rho(n, b))


CASES = [
    (coulomb, "C", {"N": 3, "Ne": 2}),
    (hartree_fock, "C", {"N": 2, "Ne": 2}),
    (form, "x", {"n": 3}),
    (hermitian, "z", {"n": 3}),
    (cubic, "x", {"n": 3}),
    (turned, ("x", "y"), {"n": 3}),
    (flat, "U", {"N": 2, "n": 2, "K": 3, "B": 1}),
    (flat, "U", {"N": 2, "n": 1, "K": 2, "B": 3}),
]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("program", "wrt", "sizes"), CASES)
def test_every_route_gives_the_value_and_the_central_differences(program: Any, wrt: Any, sizes: dict[str, int]) -> None:
    arrays = random_arrays(program.parameters, np.random.default_rng(0), sizes)
    both, raw = (cd.value_and_grad(program, wrt=wrt, simplify=simplify) for simplify in (True, False))
    meant = reference.evaluate(both.term.body, {p: arrays[p.name] for p in both.parameters}, sizes)
    names = (wrt,) if isinstance(wrt, str) else wrt
    expected = [finite_difference_gradient(lambda **a: np.real(program(**a)), arrays, name) for name in names]
    for value, slopes in (both(**arrays), raw(**arrays), meant):
        assert np.isclose(value, np.real(program(**arrays)))
        for found, wanted in zip((slopes,) if isinstance(wrt, str) else slopes, expected, strict=True):
            np.testing.assert_allclose(found, wanted, atol=2e-6 * max(1.0, np.max(abs(wanted))))


def test_energy_and_gradient_of_hartree_fock_share_the_density_and_the_fock_matrix() -> None:
    """The whole texts are in tests/examples/test_worked_results.py."""
    shared, alone = str(cd.value_and_grad(coulomb, wrt="C")), str(cd.grad(coulomb, wrt="C"))
    assert [text.count("J[") for text in (shared, alone)] == [1, 1]
    assert [text.count("]*") for text in (shared, alone)] == [1, 1]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("program", "wrt", "tensor", "times"),
    [
        (hartree_fock, "C", "J[", 2),
        (hartree_fock, "C", "h[", 2),
        (form, "x", "A[", 1),
        (hermitian, "z", "H[", 1),
        (flat, "U", "S[", 1),
    ],
)
def test_a_tensor_is_read_once_for_all_results(program: Any, wrt: str, tensor: str, times: int) -> None:
    assert str(cd.value_and_grad(program, wrt=wrt)).count(tensor) == times


def test_a_program_with_one_result_stays_as_it_is() -> None:
    body = cd.grad(hartree_fock, wrt="C").term.body
    assert bind_common(body) is body


@pytest.mark.thorough
def test_what_a_product_holds_twice_has_a_name() -> None:
    @cd.program
    def deviance(S: cd.Space("n", "n", symmetry=["S[i,j] = S[j,i]"]), x: cd.Space("n"), m: cd.Space("n")):
        return cd.logdet(S) + (x - m) @ cd.inv(S) @ (x - m)

    found = cd.grad(deviance, wrt="S")
    assert found.matrix() == "t = S⁻¹·(m - x)\nS⁻¹ - t·tᵀ"
    arrays = {"S": np.diag([2.0, 3.0, 4.0]) + 0.5, "x": np.array([1.0, -2.0, 0.5]), "m": np.array([0.3, 0.1, 0.2])}
    expected = cd.grad(deviance, wrt="S", simplify=False)
    np.testing.assert_allclose(found(**arrays), expected(**arrays), rtol=1e-12)
    cd.testing.check_grad(deviance, wrt="S", **arrays)


def test_what_would_cost_more_at_some_sizes_is_not_bound() -> None:
    @cd.program
    def error(T: cd.Space("m", "n"), U: cd.Space("m", "k"), V: cd.Space("n", "k")):
        return cd.sum(lambda i, j: (T[i, j] - cd.sum(lambda a: U[i, a] * V[j, a])) ** 2)

    printed = str(cd.value_and_grad(error, wrt=("U", "V")))
    assert printed.count("Σ_a U[i,a] V[j,a]") == 1  # the residual, and nothing more
    assert printed.count("=") == 1


@pytest.mark.thorough
def test_an_existing_binding_serves_a_network_that_repeats_it() -> None:
    @cd.program
    def twice(A: cd.Space("n", "n"), x: cd.Space("n"), y: cd.Space("n")):
        u = A @ x
        return cd.sum(lambda i: cd.sin(u[i]) * y[i] + cd.exp(u[i]))

    both = cd.value_and_grad(twice, wrt=("x", "y"))
    assert str(both).count("A[") == 2


@cd.program
def localisation(
    w: cd.Space(cd.Symmetric("B"), symmetry=["w[b] = w[-b]"]),
    S: cd.Space("N", "N", cd.Cyclic("K"), cd.Cyclic("K"), dtype=complex, symmetry=["S[p,q,k,l] = conj(S[q,p,l,k])"]),
    U: cd.Space("N", "n", cd.Cyclic("K"), dtype=complex),
):
    """The same with ρ bound once."""
    rho = cd.tensor(
        lambda n, b: cd.sum(lambda p, q, k: cd.conj(U[p, n, k]) * S[p, q, k, k + b] * U[q, n, k + b]),
        b=cd.Symmetric("B"),
    )
    return cd.sum(lambda n, b: w[b] * cd.conj(rho[n, b]) * rho[n, b])


@cd.program
def light(A: cd.Space("n", "n"), x: cd.Space("n")):
    y = A @ x
    return y @ y


@pytest.mark.thorough
def test_a_heavy_tensor_of_the_program_keeps_its_name_in_the_gradient() -> None:
    """A light one is no name."""
    named = cd.grad(localisation, wrt="U")
    assert [var.name for var, _ in split(named.term.body)[0]] == ["rho"]
    assert str(named).splitlines()[-1].startswith("  (d, e, f) ↦ 4 Σ_{p,b} ")
    sizes = {"N": 3, "n": 2, "K": 4, "B": 1}
    arrays = random_arrays(localisation.parameters, np.random.default_rng(3), sizes)
    found = named(**arrays)
    np.testing.assert_allclose(found, cd.grad(localisation, wrt="U", simplify=False)(**arrays))
    np.testing.assert_allclose(found, finite_difference_gradient(localisation, arrays, "U"), rtol=1e-6, atol=1e-6)
    assert "heavy tensors of the program bound again" in str(named.explain())
    assert not split(cd.grad(light, wrt="x").term.body)[0]


@cd.program
def rayleigh(A: cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"]), x: cd.Space("n")):
    return (x @ A @ x) / (x @ x)


@cd.program
def commutator(
    H: cd.Space("n", "n", dtype=complex, symmetry=["H[i,j] = conj(H[j,i])"]), z: cd.Space("n", dtype=complex)
):
    y = H @ z
    return cd.real(cd.exp(y.conj() @ y) + z.conj() @ y)


@pytest.mark.thorough
def test_later_networks_read_what_has_a_name() -> None:
    assert str(cd.grad(rayleigh, "x")).splitlines()[1:] == [
        "  t = Σ_j x[j]²",
        "  d ↦ 2 (Σ_j A[d,j] x[j] - (x[d] Σ_j x[j] Σ_i A[j,i] x[i]) / t) / t",
    ]
    assert cd.grad(rayleigh, "x").matrix().splitlines()[-1] == "2·(A·x - (xᵀ·A·x)·x / t) / t"
    assert str(cd.hessian(rayleigh, "x")).count("Σ") == 3
    assert str(cd.grad(commutator, "z")).count("H[") == 2  # of H z, and of H (H z)


@pytest.mark.thorough
@pytest.mark.parametrize("n", [1, 2, 5])
def test_what_reads_it_has_the_same_value(n: int) -> None:
    rng = np.random.default_rng(n)
    A, x = rng.normal(size=(n, n)), rng.normal(size=n)
    cd.testing.check_grad(rayleigh, "x", A=A + A.T, x=x)
    H = cd.hessian(rayleigh, "x")(A + A.T, x)
    raw = cd.hessian(rayleigh, "x", simplify=False)(A + A.T, x)
    np.testing.assert_allclose(H, raw, atol=1e-12)
    Z, z = (rng.normal(size=s) + 1j * rng.normal(size=s) for s in ((n, n), n))
    cd.testing.check_grad(commutator, "z", H=0.1 * (Z + Z.conj().T), z=z)


@cd.program
def kernel_sum(Y: cd.Space("n", 2)):
    return cd.sum(lambda i, j: cd.exp(-cd.sum(lambda d: (Y[i, d] - Y[j, d]) ** 2)))


@cd.program
def cauchy(Y: cd.Space("n", 2)):
    return cd.sum(lambda i, j: 1 / (1 + cd.sum(lambda d: (Y[i, d] - Y[j, d]) ** 2)))


@pytest.mark.thorough
def test_a_tensor_of_differences_is_seen_to_be_symmetric() -> None:
    """So the two halves of a pair sum's gradient are one; no δ is left where two numbers make it look cheap."""
    found = "Y ↦ (d, e) ↦ 4 Σ_i exp(-Σ_j (Y[d,j] - Y[i,j])²) (Y[i,e] - Y[d,e])"
    assert str(cd.grad(kernel_sum)) == found
    assert str(cd.grad(cauchy)) == "Y ↦ (d, e) ↦ 4 Σ_i (Y[i,e] - Y[d,e]) / (1 + Σ_j (Y[d,j] - Y[i,j])²)²"
    Y = np.random.default_rng(0).normal(size=(5, 2))
    for program in (kernel_sum, cauchy):
        cd.testing.check_grad(program, "Y", Y=Y)
        np.testing.assert_allclose(cd.grad(program)(Y), cd.grad(program, simplify=False)(Y), atol=1e-12)


@cd.program
def pairs(x: cd.Space("n", 3)):
    """The potential of Lennard and Jones, each pair of particles once."""
    d2 = cd.tensor(lambda i, j: cd.sum(lambda k: (x[i, k] - x[j, k]) ** 2))
    return cd.sum(lambda i, j: cd.where(i < j, d2[i, j] ** -6 - d2[i, j] ** -3, 0))


@pytest.mark.thorough
def test_sums_below_and_above_the_diagonal_are_one_beside_it() -> None:
    found = cd.grad(pairs, "x")
    assert str(found).endswith("(d, e) ↦ 6 Σ_{i≠d} (1 / d2[d,i]⁴ - 2 / d2[d,i]⁷) (x[d,e] - x[i,e])")
    x = 3 * np.random.default_rng(3).uniform(size=(5, 3))
    cd.testing.check_grad(pairs, "x", x=x)
    np.testing.assert_allclose(found(x), cd.grad(pairs, "x", simplify=False)(x), rtol=1e-11)


@cd.program
def neighbours(Y: cd.Space("n", 2), P: cd.Space("n", "n")):
    """The objective of t-SNE up to a constant."""
    q = cd.tensor(lambda i, j: 1 / (1 + cd.sum(lambda d: (Y[i, d] - Y[j, d]) ** 2)))
    total = q.sum()
    return -cd.sum(lambda i, j: P[i, j] * cd.log(q[i, j] / total))


@pytest.mark.thorough
def test_quotients_of_quotients_cancel() -> None:
    first, second = text(cd.grad(neighbours, "Y").term, 200).splitlines()[1:3]
    assert first == "  t[i,j] = 1 + Σ_d (Y[i,d] - Y[j,d])²"
    assert "(P[d,i] + P[i,d] - (2 Σ_{j,k} P[k,j]) / (t[d,i] Σ_{j,k} 1 / t[j,k]))" in second
    rng = np.random.default_rng(1)
    Y, P = rng.normal(size=(4, 2)), rng.uniform(size=(4, 4))
    cd.testing.check_grad(neighbours, "Y", Y=Y, P=P)
    np.testing.assert_allclose(
        cd.grad(neighbours, "Y")(Y, P), cd.grad(neighbours, "Y", simplify=False)(Y, P), atol=1e-12
    )


@cd.program
def energy_of_matrix_products(
    A: cd.Space("D", "p", "D"), B: cd.Space("D", "p", "D"), h: cd.Space("p", "p"), u: cd.Space("D"), v: cd.Space("D")
):
    psi = cd.tensor(lambda s, t: cd.sum(lambda a, b, c: u[a] * A[a, s, b] * B[b, t, c] * v[c]))
    return cd.sum(lambda s, t, q: psi[s, t] * h[s, q] * psi[q, t]) / cd.sum(lambda s, t: psi[s, t] ** 2)


@pytest.mark.thorough
def test_a_tensor_gets_one_name() -> None:
    gradient = cd.grad(energy_of_matrix_products, "A")
    lines = str(gradient).splitlines()
    assert [line.partition("=")[0] for line in lines[1:3]] == ["  psi[s,q] ", "  t "]
    assert sum("B[" in line for line in lines) == 2
    rng = np.random.default_rng(0)
    shapes = {"A": (2, 3, 2), "B": (2, 3, 2), "h": (3, 3), "u": 2, "v": 2}
    cd.testing.check_grad(energy_of_matrix_products, "A", **{name: rng.normal(size=s) for name, s in shapes.items()})


def test_what_factors_leave_behind_is_simplified() -> None:
    """3 (1 − x) − 2 (1 + x) in the gradient of (1 + x)³ (1 − x)², 2i Re z − 2 Im z in that of a squared angle."""

    @cd.program
    def powers(x: cd.Space()):
        return (1 + x) ** 3 * (1 - x) ** 2

    @cd.program
    def angles(z: cd.Space("n", dtype=complex)):
        return cd.sum(np.angle(z) ** 2)

    assert str(cd.grad(powers)) == "x ↦ (1 - 5 x) (1 - x) (1 + x)²"
    assert str(cd.grad(angles)) == "z ↦ d ↦ 2i arctan2(Im(z[d]), Re(z[d])) / z[d]*"
    cd.testing.check_grad(angles, "z", z=np.array([0.3 + 0.4j, -1 + 0.2j]))
