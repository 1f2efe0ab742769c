"""Roots and minima on arrays of every library: NumPy's values and derivatives, of the library's type; and compilers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, TORCH, back, convert, on
from test_implicit import CASES, close, grad, layer, linear, real

import combdiff as cd


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Any:
    """The name of a library that is installed; JAX computes in 64 bits."""
    if request.param != "jax":
        yield request.param
        return
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield request.param
    jax.config.update("jax_enable_x64", before)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_numpys(backend: str, name: str) -> None:
    program, arrays = CASES[name]
    given = {key: convert(backend, array) for key, array in arrays.items()}
    value = program(**given)
    close(back(value), program(**arrays), 1e-9)
    if any(np.ndim(array) for array in arrays.values()):
        assert type(value).__module__.split(".")[0] in {"torch", "dask", "jaxlib", "jax"}
    gradient = grad(program, tuple(arrays))
    compiled = on(backend, gradient) if all(map(np.ndim, arrays.values())) else gradient
    close(back(compiled(**given)), gradient(**arrays), 1e-9)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["layer", "complex"])
def test_second_derivatives_are_numpys(backend: str, name: str) -> None:
    program, arrays = CASES[name]
    wrt = "b"
    product = cd.hvp(program, wrt)
    vector = real(*arrays[wrt].shape, seed=11) + 0 * arrays[wrt]
    given = {key: convert(backend, array) for key, array in {**arrays, f"{wrt}_dot": vector}.items()}
    close(back(on(backend, product)(**given)), product(**arrays, **{f"{wrt}_dot": vector}), 1e-9)


def test_the_source_needs_its_library_and_numpy(backend: str) -> None:
    program, arrays = CASES["nested"]
    gradient = grad(program, tuple(arrays))
    text = gradient.source(backend)
    assert "combdiff" not in text
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    found = namespace[gradient.name](*(convert(backend, array) for array in arrays.values()))
    close(back(found), gradient(**arrays), 1e-9)


def test_single_precision_stays(backend: str) -> None:
    A, b = real(3, 3).astype("f4"), real(3, seed=1).astype("f4")
    found = linear(convert(backend, A), convert(backend, b))
    assert str(found.dtype).endswith("float32")
    close(back(found), np.linalg.solve(A, b), 1e-4)


def test_a_number_is_as_wide_as_the_numbers_of_jax() -> None:
    """A Python number has a weak type there, which takes the width of what it stands beside."""
    jax = pytest.importorskip("jax")

    @cd.program
    def cubic(a: cd.Space()):
        return cd.root(lambda x: x**3 - a, like=a)

    for value in (jax.jit(cubic)(8.0), jax.jit(cubic)(8), cubic(jax.numpy.asarray(8.0)), jax.jit(cd.grad(cubic))(8.0)):
        assert value.dtype == jax.numpy.asarray(8.0).dtype
    assert jax.jit(cubic)(jax.numpy.asarray(8, "float16")).dtype == "float16"
    assert np.isclose(jax.jit(cubic)(8.0), 2)


def test_a_program_for_a_map_in_an_equation(backend: str) -> None:
    Number = cd.Space()

    @cd.program
    def balanced(R: cd.Function(Number), b: Number):  # type: ignore
        return cd.root(lambda x: x + R(x) - b, like=b)

    @cd.program
    def third(u: Number):  # type: ignore[no-untyped-def,valid-type]
        return cd.tanh(u) / 3

    b = convert(backend, np.array(0.7))
    close(back(balanced(third, b)), balanced(third, 0.7), 1e-12)  # put in its place, as by partial
    with pytest.raises(cd.UnsupportedError, match=r"calls the named map R is solved for NumPy arrays alone"):
        balanced(lambda u: u / 3, b)
    close(back(balanced.partial(R=third)(b)), balanced(third, 0.7), 1e-12)


@pytest.mark.thorough
def test_jax_compiles_and_maps_them() -> None:
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        _, arrays = CASES["layer"]
        given = [jax.numpy.asarray(array) for array in arrays.values()]
        gradient = cd.grad(layer, "A")
        close(np.asarray(jax.jit(gradient)(*given)), gradient(**arrays), 1e-9)
        close(np.asarray(gradient.compile(backend="jax")(*given)), gradient(**arrays), 1e-9)
        several = np.stack([arrays["b"], 2 * arrays["b"]])
        mapped = jax.vmap(lambda b: layer(given[0], b, given[2]))(jax.numpy.asarray(several))
        close(np.asarray(mapped), np.array([layer(arrays["A"], b, arrays["c"]) for b in several]), 1e-9)
        with pytest.raises(ValueError, match="do not support JVP"):
            jax.grad(layer)(*given)
        derived = jax.grad(cd.interop.jax_function(layer))(*given)
        close(np.asarray(derived), gradient(**arrays), 1e-9)
    finally:
        jax.config.update("jax_enable_x64", before)


def test_compiled_searches_call_numpy_where_newtons_steps_go_astray(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found by steps that go down is found in compiled code, in each lane of vmap by itself."""
    jax = pytest.importorskip("jax")
    called: list[int] = []
    real_callback = jax.pure_callback

    def counted(found: Callable[..., Any], *rest: Any, **named: Any) -> Any:
        return real_callback(lambda *given: called.append(1) or found(*given), *rest, **named)

    @cd.program
    def bent(b: cd.Space()):
        """From far outside, steps along the arc tangent go further out."""
        return cd.root(lambda x: cd.arctan(x) + 0.01 * x - b, like=b)

    monkeypatch.setattr(jax, "pure_callback", counted)
    given = np.array([0.2, 3.0, -0.1, 0.5])
    with jax.enable_x64(True):
        found = jax.jit(jax.vmap(bent))(jax.numpy.asarray(given))
        close(np.asarray(found), np.array([bent(b) for b in given]), 1e-14)
    assert len(called) == 1


@pytest.mark.needs("torch")
def test_torch_does_not_lose_a_gradient() -> None:
    import torch

    _, arrays = CASES["layer"]
    given = [torch.from_numpy(array) for array in arrays.values()]
    given[1].requires_grad_()
    with pytest.raises(cd.UnsupportedError, match=r"PyTorch does not differentiate\n  hint: .*torch_function"):
        layer(*given)
    with torch.no_grad():
        close(back(layer(*given)), layer(**arrays), 1e-9)
    cd.interop.torch_function(layer)(*given).backward()
    close(back(given[1].grad), cd.grad(layer, "b")(**arrays), 1e-9)


def failure(action: Callable[[], Any]) -> str:
    with pytest.raises(cd.ConvergenceError) as raised:
        action()
    return raised.value.message


@pytest.mark.parametrize("name", ["jax", TORCH])
def test_failures_are_told_as_for_numpy(name: str) -> None:
    ones = np.ones((2, 2))
    given = convert(name, ones), convert(name, np.array([1.0, 2.0]))
    assert "the Jacobian of the equation for x is singular" in failure(lambda: linear(*given))
