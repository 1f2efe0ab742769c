"""The array libraries a program runs on: whose an array is, what its elements are, how to make one like it.

    library_of(jnp.ones(3)) = LIBRARIES["jax"]        found by the type alone, nothing is imported for it
    LIBRARIES["torch"].array([1, 2], np.dtype("float32"), device)  =  torch.tensor([1., 2.])

Element types are compared as NumPy's, which every library's own map to one to one.

Invariant: a library is imported only when one of its arrays is at hand, or when the user asks for it by name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from combdiff.errors import UnsupportedError, shown
from combdiff.records import dataclass


@dataclass(frozen=True)
class Library:
    """NumPy, and what its arrays are called; the other libraries differ in some of its methods."""

    name: str
    array_name: str
    module: str  # what its functions are in
    roots: tuple[str, ...]  # top-level modules that its array types come from

    def load(self) -> ModuleType:
        """The module of its functions. Raises UnsupportedError where it is not installed."""
        try:
            return importlib.import_module(self.module)
        except ImportError as error:
            raise UnsupportedError(
                f"the backend {self.name!r} is not installed ({error})",
                hint=f"pip install 'combdiff[{self.name}]'",
            ) from error

    def dtype(self, array: Any) -> np.dtype[Any] | None:
        """NumPy's element type for an array's; None where there is none."""
        dtype = array.dtype
        return dtype if isinstance(dtype, np.dtype) else None

    def device(self, array: Any) -> Any:
        """Where the array is, if operations need their operands in one place."""
        return None

    def floating(self) -> np.dtype[Any]:
        """The element type that Python's floats become."""
        return np.dtype(float)

    def result_type(self, dtype: np.dtype[Any], width: np.dtype[Any]) -> np.dtype[Any]:
        """The element type that an array given in `dtype` takes beside others of some width."""
        return dtype

    def array(self, value: Any, dtype: np.dtype[Any], device: Any) -> Any:
        """An array of that element type from an array of the library, a number or nested lists."""
        return np.asarray(value, dtype)

    def scalar(self, value: Any, dtype: np.dtype[Any], device: Any) -> Any:
        """The same without axes, as emitted source takes it."""
        return np.asarray(value, dtype)[()]

    def finished(self, function: Any) -> Any:
        """A compiled function as the library runs it best."""
        return function

    def numbers(self, array: Any) -> np.ndarray[Any, Any]:
        """The numbers in an array. Raises TypeError where they are not known yet, as while JAX traces."""
        return np.asarray(array)

    def looked_at(self, array: Any, look: Callable[..., None], *others: Any) -> Any:
        """The array, after a look at the numbers in it and in others, where they are known."""
        try:
            known = [self.numbers(each) for each in (array, *others)]
        except TypeError:
            return array
        look(*known)
        return array

    def singular(self) -> type[Exception]:
        """The error for a singular matrix; JAX has none and gives infinities."""
        return np.linalg.LinAlgError


@dataclass(frozen=True)
class CuPy(Library):
    """NumPy on the GPU."""

    def array(self, value: Any, dtype: np.dtype[Any], device: Any) -> Any:
        """An array on the current device."""
        return self.load().asarray(value, dtype)

    scalar = array

    def numbers(self, array: Any) -> np.ndarray[Any, Any]:
        """A copy in the memory of this process."""
        return np.asarray(array.get() if hasattr(array, "get") else array)


@dataclass(frozen=True)
class Jax(Library):
    """JAX arrays and tracers."""

    def floating(self) -> np.dtype[Any]:
        """float32 unless 64 bits are enabled."""
        found: np.dtype[Any] = np.dtype(self.load().result_type(float))
        return found

    def array(self, value: Any, dtype: np.dtype[Any], device: Any) -> Any:
        """An array, narrowed where 64 bits are not enabled."""
        jnp = self.load()
        return jnp.asarray(value, importlib.import_module("jax").dtypes.canonicalize_dtype(dtype))

    scalar = array

    def finished(self, function: Any) -> Any:
        """Compiled by XLA."""
        return importlib.import_module("jax").jit(function)


@dataclass(frozen=True)
class Dask(Library):
    """Dask's chunked arrays."""

    def array(self, value: Any, dtype: np.dtype[Any], device: Any) -> Any:
        """A lazy array."""
        return self.load().asarray(value).astype(dtype)

    scalar = array

    def looked_at(self, array: Any, look: Callable[..., None], *others: Any) -> Any:
        """The array, of which nothing is computed before the look."""
        da, dask = self.load(), importlib.import_module("dask")

        def seen(*known: Any) -> np.ndarray[Any, Any]:
            look(*map(np.asarray, known))
            return np.zeros((), bool)

        done = da.from_delayed(dask.delayed(seen)(array, *others), (), bool)
        return da.map_blocks(lambda block, _: block, da.asarray(array), done, dtype=array.dtype)


@dataclass(frozen=True)
class Torch(Library):
    """PyTorch tensors; products want operands of one element type, so all arguments take one width."""

    def dtype(self, array: Any) -> np.dtype[Any] | None:
        """NumPy's element type of the same name."""
        try:
            return np.dtype(str(array.dtype).removeprefix("torch."))
        except TypeError:  # bfloat16 and other types that NumPy has not
            return None

    def device(self, array: Any) -> Any:
        """The device of the tensor."""
        return array.device

    def singular(self) -> type[Exception]:
        """PyTorch's own error."""
        found: type[Exception] = self.load().linalg.LinAlgError
        return found

    def numbers(self, array: Any) -> np.ndarray[Any, Any]:
        """A copy in the memory of this process, if it is not there."""
        return np.asarray(array.detach().cpu() if hasattr(array, "detach") else array)

    def floating(self) -> np.dtype[Any]:
        """PyTorch's default."""
        return np.dtype(str(self.load().get_default_dtype()).removeprefix("torch."))

    def result_type(self, dtype: np.dtype[Any], width: np.dtype[Any]) -> np.dtype[Any]:
        """The kind of the element type at that width."""
        if dtype.kind not in "fc":
            return dtype
        return np.result_type(width, np.complex64) if dtype.kind == "c" else width

    def array(self, value: Any, dtype: np.dtype[Any], device: Any) -> Any:
        """A tensor on that device."""
        torch = self.load()
        kind = getattr(torch, dtype.name)
        if isinstance(value, np.ndarray):  # PyTorch takes no negative strides and no foreign order of bytes
            value = np.require(value, dtype, ["C", "W"])
        return value.to(kind) if torch.is_tensor(value) else torch.as_tensor(value, dtype=kind, device=device)

    scalar = array


LIBRARIES: dict[str, Library] = {
    library.name: library
    for library in (
        Library("numpy", "NumPy array", "numpy", ("numpy",)),
        CuPy("cupy", "CuPy array", "cupy", ("cupy",)),
        Jax("jax", "JAX array", "jax.numpy", ("jax", "jaxlib")),
        Dask("dask", "Dask array", "dask.array", ("dask",)),
        Torch("torch", "PyTorch tensor", "torch", ("torch",)),
    )
}


@lru_cache(maxsize=512)
def library_of_type(kind: type) -> Library | None:
    """The library whose arrays are of that type; None for numbers, lists and anything else."""
    if issubclass(kind, np.generic) or not (hasattr(kind, "shape") and hasattr(kind, "dtype")):
        return None
    owners = {root: library for library in LIBRARIES.values() for root in library.roots}
    roots = (base.__module__.partition(".")[0] for base in kind.__mro__)
    return next((owners[root] for root in roots if root in owners), None)


def library_named(name: str) -> Library:
    """The library of that name, installed. Raises UnsupportedError for an unknown or a missing one."""
    if not isinstance(name, str) or name not in LIBRARIES:
        known = ", ".join(f'"{known}"' for known in LIBRARIES)
        raise UnsupportedError(f"no program can be compiled for the backend {shown(name)}", hint=f"use one of {known}")
    LIBRARIES[name].load()
    return LIBRARIES[name]
