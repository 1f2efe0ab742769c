"""The array libraries beside NumPy that a program runs on: one table of them, and how the tests call a program there.

    on("jax", program)(*converted("jax", arrays))  ≈  program(*arrays)

JAX compiles each operation anew for every shape when it runs them one by one, which takes ten times as long as
compiling the program as one function: so `on` does that. A few tests in test_backends.py run operation by operation.

What a test needs beyond the packages of `make test` it says by `@pytest.mark.needs("torch")`, which the parameter
`TORCH` carries; conftest.py skips what is not installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import pytest

MODULES = {"jax": "jax.numpy", "torch": "torch", "dask": "dask.array"}
TORCH = pytest.param("torch", marks=pytest.mark.needs("torch"))
BACKENDS = ("jax", TORCH, "dask")


def library(name: str) -> Any:
    """The module with the functions of a library."""
    return importlib.import_module(MODULES[name])


def convert(name: str, array: Any, chunks: int | None = None) -> Any:
    """A NumPy array as one of the library, of Dask in chunks of a size; a number stays one."""
    if isinstance(array, int | float | complex):
        return array
    if name == "dask" and chunks and np.ndim(array):
        return library(name).from_array(np.array(array), chunks=chunks)
    return (library(name).from_numpy if name == "torch" else library(name).asarray)(np.array(array))


def converted(name: str, arrays: Iterable[Any], chunks: int | None = None) -> list[Any]:
    """Several of them."""
    return [convert(name, array, chunks) for array in arrays]


def back(result: Any) -> Any:
    """Arrays of any library as NumPy's."""
    return tuple(map(back, result)) if isinstance(result, tuple) else np.asarray(result)


@contextmanager
def quiet(name: str) -> Iterator[None]:
    """Without warnings of what a mask drops or is below 1, which Dask meets in threads that errstate does not reach."""
    if name == "dask":
        import dask

        with dask.config.set(scheduler="synchronous"), np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            yield
    else:
        yield


def double_precision() -> AbstractContextManager[None]:
    """JAX computes in 64 bits, as the other libraries do."""
    import jax

    found: AbstractContextManager[None] = jax.enable_x64(True)
    return found


def on(name: str, program: Callable[..., Any]) -> Callable[..., Any]:
    """The program as a library runs it soonest: on JAX as one compiled function."""
    if name != "jax":
        return program
    import jax

    return jax.jit(lambda *arguments, **named: program(*arguments, **named))
