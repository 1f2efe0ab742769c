"""Programs as functions of other libraries, with combdiff's derivatives as theirs.

    g = interop.jax_function(f)          jax.grad(g) calls combdiff's pullback of f
    g = interop.torch_function(f)        g(x).backward() does
    o = interop.scipy_objective(f, "C", J=J0, C=C0)
    scipy.optimize.minimize(o.fun, o.x0, jac=o.jac, hessp=o.hessp, method="trust-ncg")

A complex argument z counts as the real vector [Re z, Im z]; since gradients are ∂f/∂Re + i ∂f/∂Im, that of the packed
argument is the packed gradient. JAX propagates the conjugates of these cotangents.

Invariant: values and derivatives are those of the program; nothing is differentiated by the other library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from combdiff.api.programs import Program
from combdiff.api.transforms import hvp, pullback, value_and_grad
from combdiff.errors import ArgumentError, UnsupportedError
from combdiff.ir import Function, Space, Var, extent
from combdiff.runtime import bind_sizes, library_named


@lru_cache(maxsize=256)
def _pullback(f: Program, wrt: tuple[str, ...]) -> Program:
    return pullback(f, wrt=wrt)


def _space(var: Var) -> Space:
    """The type of a parameter that arrays can be passed for."""
    if isinstance(var.type, Function):
        raise UnsupportedError(
            f"{var.name} is a named map, which is no argument of another library's functions",
            hint=f"fix it first: f.partial({var.name}=…)",
        )
    assert isinstance(var.type, Space)
    return var.type


def _differentiable(f: Program) -> tuple[str, ...]:
    return tuple(var.name for var in f.parameters if _space(var).dtype is not int)


# --- JAX -----------------------------------------------------------------------------------------------------------


def jax_function(f: Program, convention: str = "jax") -> Callable[..., Any]:
    """A JAX function of the parameters of f, by position, whose reverse derivative is combdiff's pullback of f.

    It works under jit, vmap, grad and vjp. With `convention="jax"`, `jax.grad` of a real function of complex arguments
    is as for every JAX function; with "conjugate" it is ∂f/∂Re + i ∂f/∂Im (for functions that are themselves the
    objective). Raises UnsupportedError without JAX and for parameters that are named maps.
    """
    if convention not in ("jax", "conjugate"):
        raise UnsupportedError(f"unknown convention {convention!r}", hint='use "jax" (the default) or "conjugate"')
    jnp = library_named("jax").load()
    import jax

    names, wrt = [var.name for var in f.parameters], _differentiable(f)
    turn = jnp.conj if convention == "jax" else lambda array: array

    def forward(*arguments: Any) -> tuple[Any, tuple[Any, ...]]:
        return f(*arguments), arguments

    def backward(arguments: tuple[Any, ...], cotangent: Any) -> tuple[Any, ...]:
        cotangents = cotangent if isinstance(cotangent, tuple) else (cotangent,)
        results = _pullback(f, wrt)(*arguments, *map(turn, cotangents))
        pulled = dict(zip(wrt, results, strict=True))
        given = dict(zip(names, arguments, strict=True))
        return tuple(_like(jnp, given[name], turn(pulled[name])) if name in pulled else None for name in names)

    call = jax.custom_vjp(lambda *arguments: f(*arguments))
    call.defvjp(forward, backward)
    return call


def _like(jnp: Any, argument: Any, cotangent: Any) -> Any:
    """The cotangent with the element type of its argument; integers have none."""
    dtype = jnp.result_type(argument)
    if not jnp.issubdtype(dtype, jnp.inexact):
        return None
    real = jnp.issubdtype(dtype, jnp.floating)
    return (jnp.real(cotangent) if real else cotangent).astype(dtype)


# --- PyTorch -------------------------------------------------------------------------------------------------------


def torch_function(f: Program) -> Callable[..., Any]:
    """A function of the parameters of f, by position: a torch.autograd.Function whose backward is combdiff's pullback.

    Backward itself is made of tensor operations, so second derivatives work. Raises UnsupportedError without PyTorch
    and for parameters that are named maps.
    """
    torch = library_named("torch").load()
    names, known = [var.name for var in f.parameters], _differentiable(f)

    class Pulled(torch.autograd.Function):  # type: ignore[misc, name-defined]
        generate_vmap_rule = True

        @staticmethod
        def forward(*arguments: Any) -> Any:
            return f(*arguments)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.save_for_backward(*[value for value in inputs if torch.is_tensor(value)])
            ctx.others = [None if torch.is_tensor(value) else value for value in inputs]

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            tensors = iter(ctx.saved_tensors)
            arguments = [next(tensors) if value is None else value for value in ctx.others]
            needed = zip(names, ctx.needs_input_grad, strict=True)
            wrt = tuple(name for name, need in needed if need and name in known)
            results = _pullback(f, wrt)(*arguments, *cotangents) if wrt else ()
            pulled = dict(zip(wrt, results, strict=True))
            given = dict(zip(names, arguments, strict=True))
            return tuple(_of_kind(given[name], pulled.get(name)) for name in names)

    return lambda *arguments: Pulled.apply(*arguments)


def _of_kind(argument: Any, cotangent: Any) -> Any:
    """The cotangent with the element type of its argument."""
    if cotangent is None:
        return None
    real = cotangent.is_complex() and not argument.is_complex()
    return (cotangent.real if real else cotangent).to(argument.dtype)


# --- SciPy ---------------------------------------------------------------------------------------------------------


class Objective:
    """A real program as functions of one real vector; unpacks as (fun, jac, hessp).

    `x0` is the packed start, if one was given. `fun`, `jac` and `hessp` take the arguments that were not given when the
    objective was made after the vector, as `args=` of scipy.optimize.minimize passes them.
    """

    def __init__(self, f: Program, wrt: tuple[str, ...], arrays: Mapping[str, Any]) -> None:
        self.wrt = [var for name in wrt for var in f.parameters if var.name == name]
        self.start = {name: np.asarray(arrays[name]) for name in wrt if name in arrays}
        self.f = f
        self.fixed = fixed = {name: array for name, array in arrays.items() if name not in wrt}
        rest = [var for var in f.parameters if var.name not in wrt]
        self.others = [var for var in rest if var.name not in fixed]
        self.shapes = {var: np.shape(fixed[var.name]) for var in rest if var.name in fixed}
        self.shapes |= {var: np.shape(f.fixed[var.name]) for var in f.term.parameters if var.name in f.fixed}
        self.shapes = {var: shape for var, shape in self.shapes.items() if isinstance(var.type, Space)}
        self._value_and_grad = value_and_grad(f, wrt=wrt).partial(**fixed)
        self._last: tuple[Any, tuple[Any, ...], Any] | None = None

    @cached_property
    def _hvp(self) -> Program:
        """Derived when it is first asked for: most minimisers use the gradient alone."""
        return hvp(self.f, wrt=tuple(var.name for var in self.wrt)).partial(**self.fixed)

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return iter((self.fun, self.jac, self.hessp))

    @property
    def x0(self) -> np.ndarray[Any, Any]:
        """The start that was given, packed."""
        return self.pack(*[self.start[var.name] for var in self.wrt])

    def pack(self, *arrays: Any) -> np.ndarray[Any, Any]:
        """Arrays for the arguments in wrt as one real vector, Re before Im of each that is complex."""
        parts = []
        for var, array in zip(self.wrt, arrays, strict=True):
            flat = np.asarray(array).reshape(-1)
            parts += [flat.real, flat.imag] if _space(var).dtype is complex else [flat]
        return np.concatenate(parts).astype(float)

    def unpack(self, vector: Any, *others: Any) -> tuple[np.ndarray[Any, Any], ...]:
        """The arrays of a packed vector. Raises ArgumentError where their shapes are not known, or do not fit."""
        shapes = self._shapes(len(vector), others)
        arrays, position = [], 0
        for var, shape in zip(self.wrt, shapes, strict=True):
            size = int(np.prod(shape))
            part = vector[position : position + size]
            position += size
            if _space(var).dtype is complex:
                part = part + 1j * vector[position : position + size]
                position += size
            arrays.append(np.asarray(part).reshape(shape))
        if position != len(vector):
            raise ArgumentError(f"a vector of {position} numbers was expected, but one of {len(vector)} was given")
        return tuple(arrays)

    def _shapes(self, length: int, others: Sequence[Any]) -> list[tuple[int, ...]]:
        if len(self.start) == len(self.wrt):
            return [np.shape(self.start[var.name]) for var in self.wrt]
        spaces = [_space(var) for var in self.wrt]
        if len(spaces) == 1 and spaces[0].order == 1:
            return [(length // 2 if spaces[0].dtype is complex else length,)]
        known = self.shapes | {var: np.shape(value) for var, value in zip(self.others, others, strict=True)}
        sizes = bind_sizes(known)
        try:
            return [tuple(extent(axis, sizes) for axis in space.axes) for space in spaces]
        except KeyError as error:
            names = ", ".join(f"{var.name}=…" for var in self.wrt)
            raise ArgumentError(
                f"the size {error.args[0]} is not known", hint=f"give a start: scipy_objective(f, wrt, {names})"
            ) from None

    def _at(self, vector: Any, others: tuple[Any, ...]) -> Any:
        """The value and the gradients, remembered for the last vector: SciPy asks for both at the same place."""
        last = self._last
        same = last is not None and np.array_equal(last[0], vector) and all(map(lambda a, b: a is b, last[1], others))
        if last is None or not same:
            result = self._value_and_grad(**self._named(self.unpack(vector, *others), others))
            last = self._last = (np.array(vector), others, result)
        return last[2]

    def _named(self, arrays: Sequence[Any], others: Sequence[Any]) -> dict[str, Any]:
        names = [var.name for var in (*self.wrt, *self.others)]
        return dict(zip(names, (*arrays, *others), strict=True))

    def fun(self, vector: Any, *others: Any) -> float:
        """The value."""
        return float(self._at(vector, others)[0])

    def jac(self, vector: Any, *others: Any) -> np.ndarray[Any, Any]:
        """The gradient, packed."""
        return self.pack(*self._at(vector, others)[1])

    def hessp(self, vector: Any, direction: Any, *others: Any) -> np.ndarray[Any, Any]:
        """The product of the Hessian with a packed direction, packed."""
        arrays = self._named(self.unpack(vector, *others), others)
        tangents = self._hvp.parameters[-len(self.wrt) :]
        along = self.unpack(direction, *others)
        named = {var.name: array for var, array in zip(tangents, along, strict=True)}
        return self.pack(*self._hvp(**arrays, **named))


def scipy_objective(f: Program, wrt: str | Sequence[str], **arrays: Any) -> Objective:
    """fun, jac and hessp of a real scalar program for scipy.optimize.minimize, over one or several parameters.

    `arrays` give other parameters their values, and those in wrt a start, which tells their shapes and is `x0`. (The
    shapes may also follow from the other parameters.) Complex arguments are packed as [Re z, Im z]. Raises
    DifferentiationError where f has no gradient by wrt.
    """
    known = [var.name for var in f.parameters]
    for name in arrays:
        if name not in known:
            raise ArgumentError(f"{f.name} has no argument {name!r}", hint=f"its arguments are {', '.join(known)}")
    return Objective(f, (wrt,) if isinstance(wrt, str) else tuple(wrt), arrays)
