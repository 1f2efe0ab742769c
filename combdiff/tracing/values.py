"""Traced numbers, tensors and named maps: a term each, with Python's operators.

    x[i] * 2 + y          Scalar(Add(Mul(2, x[i]), y))
    A @ x                 Tensor((i) ↦ Σ_k A[i, k]·x[k])
    R(u)                  Scalar(Apply(R, (u,)))

Invariant: a value's term has passed the type checker, so a mismatch is reported at the line that wrote it.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NoReturn, TypeGuard

import numpy as np

import combdiff.tracing.arrays as arrays
from combdiff.errors import TraceError, TypeMismatchError, UnknownAttributeError, UnsupportedError, shown
from combdiff.ir import (
    ONE,
    ZERO,
    Apply,
    Domain,
    Function,
    IndexGuard,
    Number,
    Size,
    Space,
    Term,
    Var,
    Whole,
    add,
    affine,
    affine_parts,
    axes_of,
    describe,
    divide,
    extent,
    function,
    index_form,
    is_complex,
    join,
    mul,
    negate,
    opposite,
    power_of,
    size_of_axis,
    size_of_parts,
    tidy,
    type_of,
)
from combdiff.ir import conj as conj_term
from combdiff.ir import number as number_term
from combdiff.records import dataclass
from combdiff.tracing.arrays import elementwise
from combdiff.tracing.context import Trace, TracedValue, check_live, current, show_domain
from combdiff.tracing.formulas import by_formula
from combdiff.tracing.indices import Condition, Index, IndexDistance, number_of_form
from combdiff.tracing.numpy_protocol import HANDLERS, METHODS, NumpyAware, answer, python_number, refusal
from combdiff.tracing.reading import read

MOST_AXES = 64  # of an array of NumPy's
WHERE_HINT = "conditions are comparisons, joined with parentheses: (x > 0) & (y < 1)"


def _subtract(left: Term, right: Term) -> Term:
    """A difference; 1 less what holds at some indices is what holds at the others: 1 − δ(i, j) is [i ≠ j]."""
    if left is ONE and isinstance(right, IndexGuard) and (others := opposite(right)) is not None:
        return others  # multiplied out, u − δ(i, j) u would lose the digits of what u is added to
    return add(left, negate(right))


_WHOLE = (add, _subtract, mul)  # what makes integers of integers


def _quotient(left: Term, right: Term) -> Term:
    """A quotient; by a constant it is an exact product."""
    if not isinstance(right, Number):
        return divide(left, right)
    if right is ZERO:
        raise TraceError("division by the constant 0")
    if not right.exact:
        return mul(left, number_term(1 / right.value()))
    norm = Fraction(right.real**2 + right.imag**2)
    return mul(left, Number(right.real / norm, -right.imag / norm))


Operator = Callable[["Value", object], "Value"]


def _operator(combine: arrays.Combine) -> tuple[Operator, Operator]:
    """The methods of an operator of NumPy's: with the value on its left and, for what has none itself, on its right."""
    return lambda self, other: combined(combine, self, other), lambda self, other: combined(combine, other, self)


def _comparison(ufunc: np.ufunc) -> Callable[[Value, object], Any]:
    return lambda self, other: HANDLERS[ufunc](self, other)


@dataclass(frozen=True, eq=False, repr=False)
class Value(NumpyAware):
    """A number or tensor of the program under way."""

    term: Term
    owner: Trace

    __hash__ = object.__hash__

    @property
    def space(self) -> Space:
        """The Space of the value; `Space()` up to its dtype for a number."""
        space = type_of(self.term)
        assert isinstance(space, Space)
        return space

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.space.order

    @property
    def shape(self) -> tuple[int | Value, ...]:
        """The sizes of the axes; one that is only named is a number of the program."""
        return tuple(self._size(axis) for axis in self.space.axes)

    def _size(self, axis: Domain) -> int | Value:
        """The number of indices of an axis: a number of the program where it is only named."""
        size = size_of_axis(axis)
        return wrap(size) if size.free else extent(axis, {})

    def __len__(self) -> int:
        """The size of the first axis. Raises TraceError where that is only named, and for a number."""
        if not self.space.axes:
            raise TypeMismatchError(f"len of {describe(self.live())}, which is a number")
        size = self._size(self.space.axes[0])
        if isinstance(size, int):
            return size
        raise TraceError(
            f"len of {describe(self.live())} is asked for, whose first axis is {show_domain(self.space.axes[0])}",
            hint="use x.shape[0], a number of the program, or declare the axis with a number",
        )

    def __index__(self) -> int:
        self._refuse_size("a whole number is")
        return super().__index__()

    def __array__(self, *options: object, **more: object) -> NoReturn:
        self._refuse_size("an array is")
        super().__array__(*options, **more)

    def _refuse_size(self, asked: str) -> None:
        """The error that fits where what Python asks for the number of is a size such as `x.shape[0]`."""
        if names := named_sizes(self.term):
            raise TraceError(
                f"{asked} made of the size {names}, which is only named while the program is traced",
                hint="write cd.arange, cd.ones, cd.zeros, cd.full, cd.eye or cd.linspace for NumPy's function of that "
                "name, or declare the axis with a number",
            )

    def __iter__(self) -> Iterator[object]:
        """The parts along the first axis, as in NumPy. Raises TraceError where its size is only named."""
        if self.space.axes and isinstance(self._size(self.space.axes[0]), int):
            return (self[n] for n in range(len(self)))
        return super().__iter__()

    def __repr__(self) -> str:
        shown = describe(self.term)
        kind = self.kind if shown.startswith(("a number", "a tensor of")) else f"{self.kind} {shown}"
        return f"<{kind}: {self.space!r}>"

    def live(self) -> Term:
        """The term, after checking that the value may be used now."""
        check_live(self.term, self.owner)
        self.owner.used(self.term, self)
        return self.term

    __add__, __radd__ = _operator(add)
    __sub__, __rsub__ = _operator(_subtract)
    __mul__, __rmul__ = _operator(mul)
    __truediv__, __rtruediv__ = _operator(_quotient)
    __floordiv__, __rfloordiv__ = _operator(partial(function, "floor_divide"))
    __mod__, __rmod__ = _operator(partial(function, "remainder"))

    def __pow__(self, other: object, modulus: object = None) -> Value:
        if modulus is not None:
            raise UnsupportedError(
                f"pow of a {self.kind} with a modulus is not supported in a program", hint="write (x**n) % m"
            )
        return combined(power_of, self, other)

    def __rpow__(self, other: object) -> Value:
        return combined(power_of, other, self)

    def __matmul__(self, other: object) -> Value:
        return wrap(arrays.matmul(lift(self), lift(other)))

    def __rmatmul__(self, other: object) -> Value:
        return wrap(arrays.matmul(lift(other), lift(self)))

    def __neg__(self) -> Value:
        return combined(negate, self)

    def __pos__(self) -> Value:
        return self

    def __abs__(self) -> Value:
        return combined(lambda term: function("abs", term), self)

    @property
    def T(self) -> Value:
        """The tensor with its axes reversed."""
        return wrap(arrays.transpose(self.live()))

    @property
    def mT(self) -> Value:
        """The last two axes exchanged."""
        found: Value = HANDLERS[np.matrix_transpose](self)
        return found

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of the elements as they are computed: of 64 bits, whatever the arguments of a call have."""
        return np.dtype(self.space.dtype)

    @property
    def size(self) -> int | Value:
        """The number of elements; a number of the program where a size is only named."""
        sizes = self.shape
        named = [size for size in sizes if not isinstance(size, int)]
        return wrap(arrays.count(self.live())) if named else math.prod(size for size in sizes if isinstance(size, int))

    def sum(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Value:
        """The sum over all axes, or over those given, which `keepdims` leaves there with size 1."""
        return wrap(arrays.sum_axes(self.live(), axis, keepdims))

    def transpose(self, *axes: Any) -> Value:
        """The axes reversed, or in the order given: `A.transpose(1, 0)`, `A.transpose((1, 0))`."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return wrap(arrays.transpose(self.live(), order))

    def __getattr__(self, name: str) -> Any:
        """The methods of arrays that NumPy has as functions too: `A.trace()`, `A.dot(x)`, `x.mean()`."""
        if name.startswith("_"):
            raise AttributeError(name)  # Python and NumPy ask for many, and take no for an answer
        if not hasattr(np.ndarray, name):
            raise UnknownAttributeError(
                f"a {self.kind} has no attribute {name!r}", hint="write it with cd functions: cd.tensor(lambda i: …)"
            )
        handler = METHODS.get(name) or HANDLERS.get(getattr(np, name, None))
        if handler is None:
            raise refusal(f"{describe(self.live())}.{name}", getattr(np, name, name))
        return partial(answer, f"{describe(self.live())}.{name}", handler, self)

    def conj(self) -> Value:
        """The complex conjugate, element by element."""
        return combined(_conjugate, self)

    @property
    def real(self) -> Value:
        """The real part, element by element."""
        return combined(_real_part, self)

    @property
    def imag(self) -> Value:
        """The imaginary part, element by element."""
        return combined(_imaginary_part, self)

    def __getitem__(self, key: object) -> Value:
        return wrap(read(self.live(), key))

    __lt__, __le__, __eq__ = _comparison(np.less), _comparison(np.less_equal), _comparison(np.equal)
    __gt__, __ge__, __ne__ = _comparison(np.greater), _comparison(np.greater_equal), _comparison(np.not_equal)

    def __divmod__(self, other: object) -> tuple[Value, Value]:
        return self // other, self % other

    def __rdivmod__(self, other: object) -> tuple[Value, Value]:
        return other // self, other % self

    def _no_bits(self, *_: object) -> Any:
        raise UnsupportedError(f"the bits of a {self.kind} are asked for (&, |, ^, ~, <<, >>)", hint=WHERE_HINT)

    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _no_bits
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _no_bits

    def __round__(self, digits: int = 0) -> Any:
        return HANDLERS[np.round](self, digits)

    def __floor__(self) -> Value:
        return combined(partial(function, "floor"), self)

    def __ceil__(self) -> Value:
        return combined(partial(function, "ceil"), self)

    def __trunc__(self) -> Value:
        return combined(partial(function, "trunc"), self)

    def __call__(self, *_: object) -> NoReturn:
        name = describe(self.term)
        raise TraceError(f"the {self.kind} {name} is called like a function", hint=f"read an element: {name}[i]")


class Scalar(Value):
    """A number of the program under way; NumPy makes an array of objects of several, which `lift` takes for a tensor.

    `np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]) @ x`
    """

    kind = "traced number"

    @property
    def __array__(self) -> Any:
        """None, but for the error that fits a size, which NumPy would count up to."""
        if named_sizes(self.term):
            return super().__array__
        raise AttributeError("__array__")

    def __getattr__(self, name: str) -> Any:
        """Functions of elements, too, which NumPy asks the elements of an array of objects for."""
        ufunc = getattr(np, name, None)
        if isinstance(ufunc, np.ufunc) and ufunc in HANDLERS:
            return partial(answer, f"np.{name}", HANDLERS[ufunc], self)
        return super().__getattr__(name)


class Tensor(Value):
    """A tensor of the program under way, with NumPy's operators."""

    kind = "traced tensor"


@dataclass(frozen=True, eq=False, repr=False)
class NamedFunction(TracedValue):
    """A map that is only named, to be called: `R(u)`."""

    term: Var
    owner: Trace

    kind = "named function"

    def live(self) -> Term:
        """The variable, after checking that the map may be used now."""
        check_live(self.term, self.owner)
        return self.term

    def __repr__(self) -> str:
        return f"<named function {self.term.name}>"

    def __call__(self, *arguments: object) -> Value:
        """The value of the map. Raises TypeMismatchError for arguments that are not of its declared Spaces."""
        term, name = self.live(), self.term.name
        declared = self.term.type
        assert isinstance(declared, Function)
        if len(arguments) != len(declared.arguments):
            raise TypeMismatchError(
                f"{name} is called with {len(arguments)} arguments, but was declared with {len(declared.arguments)}",
                hint=f"declare it as cd.Function({', '.join(['cd.Space(…)'] * len(arguments))}), or mend the call",
            )
        terms = [lift(argument) for argument in arguments]
        for position, (given, space) in enumerate(zip(terms, declared.arguments, strict=True)):
            check_space(given, space, f"argument {position} of {name}")
        return wrap(Apply(term, tuple(terms)))

    def __getitem__(self, key: object) -> NoReturn:
        name = self.term.name
        raise TraceError(f"the named function {name} is read like a tensor", hint=f"call it: {name}(u)")


# --- between values and terms --------------------------------------------------------------------------------------


def wrap(term: Term) -> Scalar | Tensor:
    """The traced value of a number or tensor term."""
    kind = Tensor if axes_of(term) else Scalar
    return kind(term, current("a traced value"))


def named_sizes(term: Term) -> str:
    """The names of the sizes that all of a term is made of; none where it reads anything else."""
    only_sizes = all(isinstance(var.type, Whole) for var in term.free)
    return ", ".join(sorted(var.name for var in term.free)) if only_sizes else ""


def as_size(value: Value) -> Size:
    """The size that a number of the program is. Raises UnsupportedError for one that depends on values or indices."""
    form = index_form(value.live())
    coefficients, offset = affine_parts(affine([]) if form is None else form)
    whole = all(isinstance(number, int) for number in (offset, *(factor for _, factor in coefficients)))
    if form is None or not whole or not all(isinstance(var.type, Whole) for var, _ in coefficients):
        raise UnsupportedError(
            f"{value!r} is used as a size, but is no sum of sizes with whole factors, such as 2 * x.shape[0] - 1",
            hint="give the name of an axis or a number; axes whose product would be a size are declared with numbers, "
            "or stay apart, as in x.sum(axis=(0, 1)) or np.einsum",
        )
    return size_of_parts({var.name: int(factor) for var, factor in coefficients}, int(offset))


def traced(value: object) -> Value:
    """A number, an array or a traced value as a traced value; an index as the number that it is."""
    return wrap(lift(value))


def combined(combine: arrays.Combine, *operands: object) -> Value:
    """`combine` of the elements of the operands, as by NumPy; beside an integer an index is one: idx[i] + j."""
    if combine in _WHOLE and any(isinstance(each, Value) and each.space.dtype is int for each in operands):
        operands = tuple(wrap(each.integer()) if _is_whole(each) else each for each in operands)
    return wrap(elementwise(combine, *(lift(operand) for operand in operands)))


def lift(value: object) -> Term:
    """The term of a traced value, a number, an array of the surrounding scope, or of a list or an array of such; else
    the error that fits."""
    value = python_number(value)
    if isinstance(value, Value | Condition):
        return value.live()
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.tolist()
    if isinstance(value, list):
        if _holds_traced(value):
            return lift(HANDLERS[np.stack]([wrap(lift(part)) for part in value]))
        value = _array_of(value)
    if isinstance(value, np.ndarray):
        _check_plain(value)
        return by_formula(value) or current("a constant array").constant(value)
    if isinstance(value, numbers.Complex):
        return number_term(_plain(value))
    if isinstance(value, IndexDistance):
        return lift(value.number())
    if isinstance(value, Index):
        return number_of_form(value.live(), value.owner)
    if isinstance(value, NamedFunction):
        name = value.term.name
        raise TraceError(f"the named function {name} is used as a number", hint=f"call it: {name}(u)")
    if isinstance(value, tuple):
        raise TraceError(
            f"a tuple of {len(value)} is used where a number or tensor is expected",
            hint="give one value here, or a list for a vector; only a whole program returns a tuple",
        )
    raise TypeMismatchError(f"{shown(value)} is not a number or tensor")


def _holds_traced(value: object, depth: int = 0) -> bool:
    """Whether lists have values of the program among their elements.

    Raises TypeMismatchError for lists in more lists than an array has axes, as one that holds itself.
    """
    if not isinstance(value, list):
        return isinstance(value, TracedValue)
    if depth == MOST_AXES:
        raise TypeMismatchError(f"lists in {depth} lists are no array: NumPy's have {depth} axes at most")
    return any(_holds_traced(part, depth + 1) for part in value)


def _array_of(value: list[Any]) -> np.ndarray[Any, Any]:
    """The array of a list of numbers, or of lists of one length. Raises TypeMismatchError for others."""
    try:
        return np.array(value)
    except ValueError:
        raise TypeMismatchError(f"{shown(value)} is no array: its parts have several lengths") from None


def _check_plain(array: np.ndarray[Any, Any]) -> None:
    """Raises UnsupportedError for arrays whose operations are others than those of tensors."""
    if isinstance(array, np.matrix):
        raise UnsupportedError(
            "a np.matrix is used in a program, where * would not be the product of matrices that it is for NumPy",
            hint="give np.asarray(…) of it, and write products with @",
        )
    if isinstance(array, np.ma.MaskedArray):
        raise UnsupportedError(
            "a masked array is used in a program, where its mask would be lost", hint="give x.filled(0), or x.data"
        )


HANDLERS[np.asarray] = traced


def on_parts(function: Callable[[Any], Any], value: Value) -> Any:
    """f(Re z) + i f(Im z), as NumPy rounds complex numbers."""
    return function(HANDLERS[np.real](value)) + 1j * function(HANDLERS[np.imag](value))


def _plain(value: numbers.Complex) -> complex | Fraction:
    """The int, Fraction, float or complex that equals a number."""
    if isinstance(value, numbers.Rational):
        return tidy(Fraction(value))
    return float(value) if isinstance(value, numbers.Real) else complex(value)


def check_space(given: Term, declared: Space, what: str) -> None:
    """Raises TypeMismatchError unless the number or tensor is of the declared axes and fits its element type."""
    found = type_of(given)
    assert isinstance(found, Space)
    if found.axes != declared.axes:
        raise TypeMismatchError(f"{what} is {_show_axes(found)}, but was declared {_show_axes(declared)}")
    if join(found.dtype, declared.dtype) is not declared.dtype:
        raise TypeMismatchError(
            f"{what} is {found.dtype.__name__}, but was declared {declared.dtype.__name__}",
            hint="declare it with that dtype, or take cd.real(…) of the argument",
        )


def _show_axes(space: Space) -> str:
    return f"a tensor over ({', '.join(map(show_domain, space.axes))})" if space.axes else "a number"


# --- element functions that fold -----------------------------------------------------------------------------------


def _is_whole(value: object) -> TypeGuard[Index]:
    return isinstance(value, Index) and not value.is_number


def _conjugate(term: Term) -> Term:
    return conj_term(term) if is_complex(term) else term


def _real_part(term: Term) -> Term:
    return function("real", term) if is_complex(term) else term


def _imaginary_part(term: Term) -> Term:
    return function("imag", term) if is_complex(term) else ZERO
