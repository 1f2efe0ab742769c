"""Every array library: results equal NumPy's, stay in their library, element type and device, also under its compilers.

A library that is not installed is skipped. CuPy needs a GPU: a stand-in with NumPy's functions shows that the code for
it runs (`test_cupy_takes_the_path_of_numpy`).
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, MODULES, back, convert, converted, library, on
from hypothesis import HealthCheck, given, settings
from strategies import Case, examples, programs

import combdiff as cd
from combdiff.ir.domains import Range, Space
from combdiff.ir.interpreter import evaluate
from combdiff.ir.terms import Apply, Lambda, Mul, Number, Primitive, Var, lambda_, let, mul
from combdiff.runtime.execution import run, source

FEW = settings(max_examples=examples(6), deadline=None, suppress_health_check=list(HealthCheck))
RNG = np.random.default_rng(5)

Symmetric = cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"])
Vector = cd.Space("n")
ERI = cd.Space("N", "N", "N", "N", dtype=complex, symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = conj(J[q,p,s,r])"])


@cd.program
def form(A: Symmetric, x: Vector):
    return cd.sum(lambda i, j: x[i] * A[i, j] * x[j])


@cd.program
def coulomb(J: ERI, C: cd.Space("N", "Ne", dtype=complex)):
    return cd.sum(lambda i, j, p, q, r, s: cd.conj(C[p, i]) * C[q, i] * cd.conj(C[r, j]) * C[s, j] * J[p, q, r, s])


@cd.program
def smooth(a: cd.Space(), x: Vector, y: Vector):
    return cd.sum(lambda i: cd.relu(a * x[i]) * cd.maximum(y[i], 0.25) + cd.abs(x[i]) ** 3 + cd.sign(y[i]))


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    """JAX computes in 64 bits."""
    import jax

    with jax.enable_x64(True):
        yield


def close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            close(one, other, tolerance)
        return
    assert np.shape(found) == np.shape(expected)
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0.0, atol=tolerance * scale)


def integrals(size: int) -> Any:
    J = RNG.normal(size=(size,) * 4) + 1j * RNG.normal(size=(size,) * 4)
    J = J + J.transpose(2, 3, 0, 1)
    return J + J.transpose(1, 0, 3, 2).conj()


def orbitals(size: int, electrons: int) -> Any:
    return RNG.normal(size=(size, electrons)) + 1j * RNG.normal(size=(size, electrons))


# --- values --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BACKENDS)
@FEW
@given(case=programs())
def test_random_programs_agree_with_their_meaning(name: str, case: Case) -> None:
    arrays = converted(name, case.environment.values())
    expected = evaluate(case.term.body, case.environment, case.sizes)
    found = on(name, lambda *given: run(case.term, given, case.sizes))(*arrays)
    assert (
        type(found).__module__.partition(".")[0] in {"jax": ("jaxlib",), "torch": ("torch",), "dask": ("dask",)}[name]
    )
    close(back(found), np.asarray(expected))
    namespace: dict[str, Any] = {}
    exec(source(case.term, "f", case.sizes, name), namespace)
    if name != "jax":  # it ran the same text above
        close(back(namespace["f"](*arrays)), np.asarray(expected))
    for array, before in zip(arrays, case.environment.values(), strict=True):
        np.testing.assert_array_equal(np.asarray(array), before)


@pytest.mark.parametrize("name", BACKENDS)
@FEW
@given(case=programs())
def test_single_precision_stays_single(name: str, case: Case) -> None:
    arrays = [
        convert(name, np.asarray(a, np.complex64 if np.iscomplexobj(a) else np.float32))
        for a in case.environment.values()
    ]
    found = on(name, lambda *given: run(case.term, given, case.sizes))(*arrays)
    assert np.asarray(found).dtype in (np.float32, np.complex64)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", BACKENDS)
def test_derivatives_agree(name: str) -> None:
    J, C = integrals(4), orbitals(4, 2)
    value, gradient = cd.value_and_grad(coulomb, wrt="C")(convert(name, J), convert(name, C))
    close((back(value), back(gradient)), cd.value_and_grad(coulomb, wrt="C")(J, C))
    x, y = RNG.normal(size=(2, 6))
    mine = cd.grad(smooth, wrt=("a", "x", "y"))
    close(back(mine(2.0, convert(name, x), convert(name, y))), tuple(map(np.asarray, mine(2.0, x, y))))


@pytest.mark.parametrize("name", BACKENDS)
def test_numbers_and_lists_join_the_arrays_beside_them(name: str) -> None:
    x = convert(name, np.array([1.0, -2.0], np.float32))
    for number in (2, 2.0, np.float64(2)):
        found = smooth(number, x, [3, 4])
        assert np.asarray(found).dtype == np.float32
        close(back(found), np.float32(6 + 1 + 8 + 2), 1e-6)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("exponent", [2, -2, 3, -1, Fraction(1, 2), Fraction(-1, 2)])
def test_powers_of_numbers(name: str, exponent: Any) -> None:
    x, t, i = Var("x", Space("n")), Var("t", Space(dtype=int)), Var("i", Range("n"))
    number = Primitive("power", (mul(Number(2), t), Number(exponent)))
    program = Lambda((x,), let(((t, Number(2)),), lambda_((i,), Mul((Apply(x, (i,)), number, number)))))
    found = run(program, [convert(name, np.array([1.0, 2.0]))])
    close(back(found), np.array([1.0, 2.0]) * 4.0 ** (2 * float(exponent)))


@pytest.mark.parametrize("name", BACKENDS)
def test_element_types_are_promoted(name: str) -> None:
    A, x = np.eye(3), np.arange(3.0)
    single = convert(name, A.astype(np.float32))
    assert np.asarray(cd.grad(form, wrt="x")(single, convert(name, x))).dtype == np.float64
    whole = convert(name, np.arange(9).reshape(3, 3))
    assert np.asarray(cd.grad(form, wrt="x")(whole, convert(name, x.astype(np.float32)))).dtype.kind == "f"
    J = convert(name, np.ones((2, 2, 2, 2), int))
    assert np.asarray(coulomb(J, convert(name, np.ones((2, 1), int)))).dtype.kind == "c"


@pytest.mark.needs("torch")
def test_read_only_and_strided_tensors() -> None:
    torch = library("torch")
    A, x = torch.arange(9.0).reshape(3, 3), torch.arange(6.0)[::2]
    A = A + A.T
    before = A.clone()
    found = cd.grad(form, wrt="x")(A.T, x)
    assert torch.equal(A, before)
    close(back(found), back(2 * A @ x), 1e-6)


@pytest.mark.thorough  # the first use of torch.compile takes seconds
@pytest.mark.needs("torch")
def test_numpys_arrays_that_torch_does_not_take_stand_beside_tensors() -> None:
    """Backwards, in another order of bytes, read-only; constants of the program, too."""
    backwards = np.arange(3.0)[::-1]
    still = np.broadcast_to(np.array(2.0), (3,))

    @cd.program
    def f(x: cd.Space(3), y: cd.Space(3), z: cd.Space(3)):
        return (x * (y + z + backwards)).sum()

    given = convert("torch", np.ones(3)), np.arange(3, dtype=">f8"), still
    close(back(cd.grad(f)(*given)), np.arange(3) + 2 + backwards)
    close(back(cd.grad(f)(given[0], backwards, still)), 2 * backwards + 2)
    gradient = cd.grad(f)
    compiled = library("torch").compile(lambda x: gradient(x, x, x), backend="eager", fullgraph=True)
    close(back(compiled(given[0])), 2 + backwards)


@pytest.mark.needs("torch")
def test_results_of_torch_share_no_memory() -> None:
    torch = library("torch")

    @cd.program
    def conjugates(z: cd.Space("n", dtype=complex), a: cd.Space()):
        return cd.conj(z)

    @cd.program
    def same(a: cd.Space()):
        return a

    z, a = torch.ones(3, dtype=torch.complex128), torch.tensor(2.0)
    result = conjugates(z, a)
    result[0] = 5.0
    assert z[0] == 1.0
    assert not result.is_conj()
    same(a).add_(1.0)
    assert a == 2.0


# --- compilers -----------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_inside_jax_transformations() -> None:
    jnp = library("jax")
    import jax

    J, C = integrals(3), orbitals(3, 2)
    gradient = cd.value_and_grad(coulomb, wrt="C")
    close(back(jax.jit(gradient)(J_ := jnp.asarray(J), jnp.asarray(C))), gradient(J, C))
    batch = np.stack([C, 2 * C])
    mapped = jax.vmap(lambda c: gradient(J_, c)[1])(jnp.asarray(batch))
    close(back(mapped), np.stack([gradient(J, c)[1] for c in batch]))
    x = jnp.arange(3.0)
    A = jnp.eye(3)
    close(back(jax.grad(lambda x: form(A, x))(x)), 2 * np.arange(3.0))
    lowered = jax.jit(lambda a, x, y: smooth(a, x, y)).lower(2.0, x, x)
    assert "callback" not in lowered.as_text()


@pytest.mark.needs("torch")
def test_inside_torch_transformations() -> None:
    torch = library("torch")
    J, C = map(torch.from_numpy, (integrals(3), orbitals(3, 2)))
    gradient = cd.value_and_grad(coulomb, wrt="C")
    compiled = torch.compile(lambda J, C: gradient(J, C)[1] + 1, fullgraph=True, backend="eager")
    close(back(compiled(J, C)), back(gradient(J, C)[1] + 1))
    mapped = torch.func.vmap(lambda c: gradient(J, c)[1])(torch.stack([C, 2 * C]))
    close(back(mapped[1]), back(gradient(J, 2 * C)[1]))
    x = torch.arange(3.0, dtype=torch.float64, requires_grad=True)
    A = torch.eye(3, dtype=torch.float64)
    form(A, x).backward()
    close(back(x.grad), 2 * np.arange(3.0))
    close(back(torch.func.grad(lambda x: form(A, x))(x.detach())), 2 * np.arange(3.0))


@pytest.mark.parametrize("name", ["numpy", *BACKENDS])
def test_compiled_programs_take_numpy_arrays_and_give_their_backend(name: str) -> None:
    A, x = np.eye(3), np.arange(3.0)
    gradient = cd.grad(form, wrt="x").compile(backend=name)
    found = gradient(A, x=x)
    roots = {"numpy": "numpy", "jax": "jaxlib", "torch": "torch", "dask": "dask"}
    assert type(found).__module__.partition(".")[0] == roots[name]
    close(back(found), 2 * x)
    close(back(gradient(A=A, x=[1, 2, 3])), np.array([2.0, 4.0, 6.0]))


def test_compiled_without_backend_takes_arrays_of_any_library() -> None:
    gradient = cd.grad(form, wrt="x").compile()
    close(gradient(np.eye(3), np.arange(3.0)), 2 * np.arange(3.0))
    jnp = library("jax")
    assert isinstance(gradient(jnp.eye(3), jnp.arange(3.0)), jnp.ndarray)


# --- CuPy ----------------------------------------------------------------------------------------------------------


class Device(np.ndarray):
    """An array that says it is CuPy's."""

    __module__ = "cupy"


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A stand-in for CuPy: NumPy's functions on arrays of another type."""
    module = types.ModuleType("cupy")
    for name in dir(np):
        if not name.startswith("__"):
            setattr(module, name, getattr(np, name))
    module.asarray = lambda value, dtype=None: np.asarray(value, dtype).view(Device)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def test_cupy_takes_the_path_of_numpy(cupy: Any) -> None:
    A, x = cupy.asarray(np.eye(3)), cupy.asarray(np.arange(3.0))
    found = cd.grad(form, wrt="x")(A, x)
    np.testing.assert_array_equal(found, 2 * x)
    text = form.source("cupy")
    assert "import cupy as cp" in text
    assert "np." not in text
    np.testing.assert_array_equal(cd.grad(form, wrt="x")(A, np.arange(3.0)), 2 * x)


# --- messages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_arrays_of_numpy_stand_beside_those_of_one_library(backend: str) -> None:
    """The result is the library's, as wide as its arrays; arrays of the surrounding scope are such."""
    K = np.arange(9.0).reshape(3, 3)

    @cd.program
    def of_constants(x: cd.Space(3)):
        return x @ (K @ x) + cd.hypot(x, 2).sum()

    x = np.arange(3.0)
    given = convert(backend, x)
    for f, found in ((form, form(np.eye(3), given)), (cd.grad(of_constants), cd.grad(of_constants)(given))):
        assert type(found).__module__.split(".")[0] != "numpy"
        expected = f(np.eye(3), x) if f is form else f(x)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)


@pytest.mark.needs("torch")
def test_arrays_of_two_libraries() -> None:
    x = convert("torch", np.arange(3.0))
    jnp = library("jax")
    with pytest.raises(cd.ArgumentError) as caught:
        form(jnp.eye(3), x)
    assert "A is a JAX array, but x is a PyTorch tensor" in str(caught.value)
    assert "convert one of them" in str(caught.value)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    library("jax")
    on_jax = form.compile(backend="jax")
    with pytest.raises(cd.ArgumentError, match="compiled for jax, but A is a PyTorch tensor"):
        on_jax(convert("torch", np.eye(3)), x)


@pytest.mark.needs("torch")
def test_unsupported_element_types() -> None:
    torch = library("torch")
    with pytest.raises(cd.ArgumentError, match=r"A has dtype (torch\.)?bfloat16, which is not supported"):
        form(torch.eye(3, dtype=torch.bfloat16), torch.arange(3.0))
    with pytest.raises(cd.ArgumentError, match="x takes real numbers, but the array given for it has dtype complex64"):
        form(torch.eye(3), torch.ones(3, dtype=torch.complex64))


def test_a_backend_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(cd.UnsupportedError, match="'cupy' is not installed") as caught:
        form.compile(backend="cupy")
    assert "pip install 'combdiff[cupy]'" in caught.value.hint
    for call in (lambda: form.compile(backend="numpi"), lambda: form.source("numpi")):
        with pytest.raises(cd.UnsupportedError, match="for the backend 'numpi'"):
            call()


def test_unknown_chunks() -> None:
    da = library("dask")
    x = da.arange(4)[da.arange(4) > 1]
    with pytest.raises(cd.ArgumentError, match="unknown size"):
        form(da.eye(2), x)


@pytest.mark.needs("torch")
def test_tensors_on_two_devices() -> None:
    torch = library("torch")
    with pytest.raises(cd.ArgumentError, match="A is on device cpu, but x on meta"):
        form(torch.eye(3), torch.ones(3, device="meta"))


# --- source --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: cd.value_and_grad(coulomb, wrt="C"), lambda: cd.hvp(form, wrt="x")])
@pytest.mark.parametrize("name", ["numpy", *MODULES])
def test_source_needs_its_backend_alone(name: str, make: Callable[[], cd.Program]) -> None:
    text = make().source(name)
    imports = [line for line in text.splitlines() if "import" in line]
    roots = {"numpy": {"numpy"}, "jax": {"jax"}, "torch": {"torch"}, "dask": {"dask", "numpy"}}[name]
    assert {line.split()[1].partition(".")[0] for line in imports} == roots


@pytest.mark.parametrize("shape", [(7, 100), (0, 100), (4, 3), (100, 0)])
def test_sums_of_rows_on_jax_are_numpys(shape: tuple[int, int]) -> None:
    """Long rows and short ones, none, and rows within `jax.vmap`."""
    jax = pytest.importorskip("jax")

    @cd.program
    def weighted(x: cd.Space("m", "n"), y: cd.Space("m", "n")):
        return cd.tensor(lambda j: cd.sum(lambda i: x[i, j] * y[i, j]))

    assert "_sum_of_rows" in weighted.source("jax")
    x, y = np.random.default_rng(0).normal(size=(2, *shape)).astype("f4")
    found = jax.jit(weighted)(jax.numpy.asarray(x), y)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, (x * y).sum(0), atol=1e-5)
    mapped = jax.vmap(weighted, (0, None))(jax.numpy.stack([x, 2 * x]), y)
    np.testing.assert_allclose(mapped, np.stack([(x * y).sum(0), 2 * (x * y).sum(0)]), atol=1e-5)
