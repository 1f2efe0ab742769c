"""The functions of a program's body: Σ, tensors, δ, cases, and mathematics in NumPy's names.

    cd.sum(lambda i, j: A[i, j] * x[j])         Sum((i, j), A[i, j]·x[j])
    cd.tensor(lambda i: x[i + 1] - x[i], i=4)   Lambda((i,), x[i + 1] − x[i])
    cd.where(i <= j, a, b)                      [j − i ≥ 0]·a + [i − j − 1 ≥ 0]·b

The parameters of a lambda are the indices; each takes its domain from an axis it indexes bare, or from a keyword.

Invariant: applied to plain numbers and arrays, a function is NumPy's of the same name.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import combdiff.tracing.arrays as arrays
from combdiff.errors import IndexingError, RuleError, TraceError, TypeMismatchError, UnsupportedError, shown
from combdiff.ir import (
    TABLE,
    Affine,
    Cyclic,
    Space,
    Term,
    Var,
    affine_parts,
    axes_of,
    base_name,
    describe,
    evaluate,
    function,
    is_complex,
    mul,
    show_index,
    substituting,
    subterms,
    total,
)
from combdiff.simplification import load
from combdiff.tracing.arrays import tabulate
from combdiff.tracing.context import TracedValue, as_domain, current, show_domain
from combdiff.tracing.indices import Index, equality, index_term
from combdiff.tracing.numpy_protocol import HANDLERS, on_arrays
from combdiff.tracing.reading import hit, integer_value
from combdiff.tracing.values import Value, as_size, combined, lift, traced, wrap


def is_traced(value: object) -> bool:
    """Whether a value belongs to a program that is being traced."""
    return isinstance(value, TracedValue)


# --- indices -------------------------------------------------------------------------------------------------------


def sum_(operand: Any = None, /, axis: Any = None, keepdims: Any = None, **domains: object) -> Any:
    """Σ of a lambda over its indices, `cd.sum(lambda i, j: A[i, j] * x[j])`, or of a tensor over its axes.

    `domains` gives the domain of an index that stands on no axis by itself: a size, a name or a domain. For a tensor
    or array `axis` and `keepdims` are NumPy's. Raises IndexingError for an index of unknown or unequal domain.
    """
    if is_traced(operand):
        check_no_options("sum", domains)
        return wrap(arrays.sum_axes(lift(operand), axis, flag(keepdims)))
    if operand is None:
        raise _no_lambda("cd.sum")
    if not callable(operand):
        return on_arrays("sum", np.sum, operand, axis=axis, keepdims=flag(keepdims), **domains)
    for name, given in (("axis", axis), ("keepdims", keepdims)):  # an index may be called so
        if given is not None:
            domains[name] = given
    indices, body = abstracted("cd.sum", operand, domains)
    if axes_of(body):
        order = len(axes_of(body))
        raise IndexingError(
            f"the lambda of cd.sum gives {describe(body)}, which still has {order} {'axis' if order == 1 else 'axes'}",
            hint="read an element with one index per axis; sums along axes are A.sum(axis=0)",
        )
    return wrap(total(indices, body))


def check_no_options(name: str, domains: Mapping[str, object]) -> None:
    """Raises TypeMismatchError for domains of indices where a tensor, which has its axes, is reduced."""
    if domains:
        raise TypeMismatchError(f"{name} has no option {min(domains)!r}", hint="it takes axis and keepdims")


def flag(value: object, name: str = "keepdims") -> bool:
    """An option that is True or False, or None for False. Raises TypeMismatchError for anything else."""
    if value is not None and not isinstance(value, bool | np.bool_):
        raise TypeMismatchError(f"{name} is {shown(value)}", hint="write True or False")
    return bool(value)


def whole_number(value: Any, what: str, least: int | None = None) -> int:
    """A whole number that is asked for. Raises TypeMismatchError for anything else, and for one below the least."""
    try:
        found = operator.index(value)
    except TypeError:
        raise TypeMismatchError(f"{what} is {shown(value)}", hint="give a whole number") from None
    if least is not None and found < least:
        raise TypeMismatchError(f"{what} is {found}", hint=f"give a whole number from {least} on")
    return found


def parameters_of(function: Callable[..., object], caller: str) -> list[inspect.Parameter]:
    """The parameters of a function that is given. Raises TraceError for one of which Python does not know them."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise TraceError(
            f"{caller} is given {shown(function)}, whose parameters are unknown", hint=f"write {caller}(lambda …: …)"
        ) from None


def check_takes(function: Callable[..., object], what: str, *given: str) -> None:
    """Refuse a function that does not take such arguments; of one written in C it shows when it is called."""
    try:
        inspect.signature(function).bind(*given)
    except ValueError:
        return
    except TypeError as mismatch:
        raise TraceError(
            f"{what} is called with {' and '.join(given)}: {mismatch}", hint="write a parameter for each"
        ) from None


def taken(a: Any) -> Any:
    """A tensor of the program, as NumPy's functions take it: lists of numbers are constants."""
    return traced(np.asarray(a) if isinstance(a, list | tuple) else a)


def _no_lambda(caller: str) -> TraceError:
    return TraceError(
        f"{caller} is given no lambda", hint=f"give one whose parameters are the indices: {caller}(lambda i: x[i])"
    )


def tensor(body: Callable[..., object] | None = None, /, *others: object, **domains: object) -> Any:
    """The tensor with the elements a lambda gives: `cd.tensor(lambda i, j: x[i] * y[j])`.

    If the lambda gives a tensor, its axes come last. `domains` is as in `cd.sum`. Raises IndexingError for an index of
    unknown or unequal domain.
    """
    if body is None:
        raise _no_lambda("cd.tensor")
    if others:
        raise TraceError(
            f"cd.tensor takes one lambda, but is given {shown(others[0])} after it",
            hint="name the index whose domain it is: cd.tensor(lambda i: …, i=5)",
        )
    indices, inner = abstracted("cd.tensor", body, domains)
    rest = current("cd.tensor").fresh_indices(axes_of(inner))
    return wrap(tabulate((*indices, *rest), arrays.element(inner, rest)))


def abstracted(caller: str, body: Any, domains: dict[str, Any]) -> tuple[tuple[Var, ...], Term]:
    """The index variables of a lambda and the term it gives, for the function `caller`."""
    trace = current(caller)
    names = _index_names(caller, body)
    unknown = [name for name in domains if name not in names]
    if unknown:
        raise TraceError(
            f"{caller} is given the domain of {unknown[0]}, but the indices of its lambda are {', '.join(names)}",
            hint=f"name one of the indices: {names[0]}=…",
        )
    sizes = {name: as_size(domain) if isinstance(domain, Value) else domain for name, domain in domains.items()}
    given = {name: as_domain(domain, name) for name, domain in sizes.items()}
    with trace.lambda_running(names, given) as binders:
        inner = lift(_result(caller, body(*(Index(binder.placeholder, trace) for binder in binders))))
        variables = tuple(binder.variable(f"{caller}(lambda {', '.join(names)}: …") for binder in binders)
    placeholders = (binder.placeholder for binder in binders)
    named = substituting(dict(zip(placeholders, variables, strict=True)))
    term = named(inner)
    trace.closes(named)
    if any(isinstance(variable.type, Cyclic) for variable in variables):
        _check_cycles(term)
    return variables, term


def _check_cycles(term: Term) -> None:
    """Refuses sums of indices of two cycles: modulo which size such a sum counts is not known."""
    for form in subterms(term):
        parts, _ = affine_parts(form) if isinstance(form, Affine) else ((), 0)
        cyclic = [(base_name(var), var.type) for var, _ in parts if isinstance(var.type, Cyclic)]
        other = next((pair for pair in cyclic if pair[1] != cyclic[0][1]), None)
        if other is not None:
            (one, cycle), (two, another) = cyclic[0], other
            raise IndexingError(
                f"{show_index(form)} adds {one}, an index of {show_domain(cycle)}, "
                f"and {two}, an index of {show_domain(another)}: they have no sum",
                hint="give both axes one Cyclic domain, or declare the axis of the steps as Range or Symmetric",
            )


def _index_names(caller: str, body: Any) -> tuple[str, ...]:
    """The parameter names of a lambda, each of which is an index."""
    if not callable(body) or is_traced(body):
        raise TraceError(
            f"{caller} takes a lambda of indices, not {shown(body)}", hint=f"write {caller}(lambda i, j: …)"
        )
    parameters = parameters_of(body, caller)
    odd = [
        p for p in parameters if p.default is not p.empty or p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if odd or not parameters:
        found = f"has the parameter {odd[0]}" if odd else "has no parameters"
        raise TraceError(
            f"the lambda of {caller} {found}, but each parameter is an index and has just a name",
            hint=f"write {caller}(lambda i, j: …); domains are keywords of {caller}, as in k=5; "
            "names from around the lambda need no default values, as it is called at once",
        )
    return tuple(parameter.name for parameter in parameters)


def _result(caller: str, value: object) -> object:
    if value is None or isinstance(value, tuple | list):
        found = "nothing" if value is None else f"a {type(value).__name__} of {len(value)}"
        raise TraceError(
            f"the lambda of {caller} gives {found}, but a number or tensor is expected",
            hint=f"write one {caller} for each value",
        )
    return value


def delta(left: object, right: object, /) -> Any:
    """δ of two index expressions: 1 where they are equal and 0 elsewhere (Dirac's over the real line).

    One of them may be an integer computed from integer parameters, beside an index by itself: `cd.delta(idx[e], i)`.
    Raises IndexingError for what is neither, and where no index is beside two such integers.
    """
    for index, other in ((left, right), (right, left)):
        if isinstance(index, Index) and (value := integer_value(other)) is not None:
            return wrap(hit(index, value))
    if integer_value(left) is not None and integer_value(right) is not None:
        raise IndexingError(
            f"cd.delta({shown(left)}, {shown(right)}): one of them is to be an index expression",
            hint="elements of tensors are compared by ==: cd.where(a[i] == b[j], 1, 0)",
        )
    if not isinstance(left, Index) and not isinstance(right, Index):
        return int(index_term(left) is index_term(right))
    return wrap(equality(index_term(left), index_term(right)))


# --- mathematics, element by element -------------------------------------------------------------------------------


def element_function(name: str, numpy_function: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """The primitive `name` on traced values, and a function of arrays on plain ones; `doc` is for its users."""
    arity = TABLE[name].arity

    def elementary(*values: Any) -> Any:
        if len(values) != arity:
            raise TraceError(f"{name} takes {arity} argument{'s' * (arity > 1)}, not {len(values)}")
        if not any(is_traced(value) for value in values):
            return on_arrays(name, numpy_function, *values)
        return combined(lambda *terms: function(name, *terms), *values)

    elementary.__name__ = elementary.__qualname__ = name
    elementary.__doc__ = f"{doc}\n\n{_what_it_takes(name)}"
    return elementary


def _what_it_takes(name: str) -> str:
    """What docstrings say of shapes and errors of the primitive `name`."""
    row = TABLE[name]
    shapes = "The result has the shape of the argument." if row.arity == 1 else "Arguments are broadcast, as in NumPy."
    unfit = "" if row.arity == 1 else "shapes that cannot be, for "
    unreal = ", and in programs for what is complex" if row.real_only else ""
    return f"{shapes} Raises TypeMismatchError for {unfit}what is no number or tensor{unreal}."


def _elementary(name: str, doc: str, own: Callable[..., Any] | None = None) -> Any:
    """The primitive `name`, and for NumPy's function of that name too."""
    numpy_function: Any = own or getattr(np, name)
    said, mark, more = doc.partition("; ")
    elementary: Any = element_function(name, numpy_function, f"{said}, element by element{mark}{more}.")
    if own is None:
        elementary.__signature__ = inspect.Signature(
            [inspect.Parameter(x, inspect.Parameter.POSITIONAL_ONLY) for x in ("x", "y")[: TABLE[name].arity]]
        )
        HANDLERS[numpy_function] = elementary
    return elementary


exp = _elementary("exp", "The exponential eˣ")
log = _elementary("log", "The natural logarithm, of a complex number its principal value")
sqrt = _elementary("sqrt", "The square root, of a complex number its principal value")
sin = _elementary("sin", "The sine of an angle in radians")
cos = _elementary("cos", "The cosine of an angle in radians")
tan = _elementary("tan", "The tangent of an angle in radians")
arcsin = _elementary("arcsin", "The angle from −π/2 to π/2 radians whose sine is x")
arccos = _elementary("arccos", "The angle from 0 to π radians whose cosine is x")
arctan = _elementary("arctan", "The angle between −π/2 and π/2 radians whose tangent is x")
sinh = _elementary("sinh", "The hyperbolic sine (eˣ − e⁻ˣ)/2")
cosh = _elementary("cosh", "The hyperbolic cosine (eˣ + e⁻ˣ)/2")
tanh = _elementary("tanh", "The hyperbolic tangent sinh(x)/cosh(x)")
_absolute = _elementary("abs", "The absolute value; its derivative at 0 is 0")
sign = _elementary("sign", "−1, 0 or 1, of a complex number z/|z|; the derivative of a real one is 0")
maximum = _elementary("maximum", "The larger of two real numbers; of equal ones each has half of the derivative")
minimum = _elementary("minimum", "The smaller of two real numbers; of equal ones each has half of the derivative")
logaddexp = _elementary("logaddexp", "log(exp(x) + exp(y)), of which no exponential overflows")
arctan2 = _elementary(
    "arctan2", "The angle from −π to π radians of the point with ordinate x and abscissa y, as NumPy orders them"
)
hypot = _elementary("hypot", "√(x² + y²), of which no square overflows")
arcsinh = _elementary("arcsinh", "The inverse of sinh")
arctanh = _elementary("arctanh", "The inverse of tanh, on (−1, 1)")
floor = _elementary("floor", "The largest whole number that is not above x; its derivative is 0")
ceil = _elementary("ceil", "The smallest whole number that is not below x; its derivative is 0")
trunc = _elementary("trunc", "The whole number next to x towards 0; its derivative is 0")
rint = _elementary("rint", "The whole number nearest to x, of two the even one; its derivative is 0")
fmod = _elementary("fmod", "What division by y leaves of x, with the sign of x")
sinc = _elementary("sinc", "sin(πx)/(πx), and 1 at 0")
relu = _elementary("relu", "max(x, 0); its derivative at 0 is 0", lambda x: np.maximum(x, 0))


def abs(x: Any, /) -> Any:
    """The absolute value, element by element; its derivative at 0 is 0.

    An index has one to be compared: `cd.where(abs(i - j) <= 2, a, b)`. The result has the shape of the argument. Raises
    TypeMismatchError for what is no number or tensor.
    """
    return x.__abs__() if isinstance(x, Index) and not x.is_number else _absolute(x)


HANDLERS[np.abs] = abs


def primitive(name: str, rules: Iterable[str | Path] = ()) -> Callable[..., Any]:
    """The element-wise function of that name: one of the table, or one that a rule file declares.

    `rules` are paths of rule files to look in, beside those that installed packages bring. It takes traced values as
    well as numbers and arrays. Raises RuleError for a mistake in a file, and for a name that none of them declares.
    """
    load(rules)
    row = TABLE.get(name) if isinstance(name, str) else None
    if row is None:
        raise RuleError(f"no primitive is called {shown(name)}", hint="give the file that declares it: rules=[…]")
    arguments = tuple(Var(f"argument{n}", Space()) for n in range(row.arity))

    def evaluated(*values: Any) -> Any:
        given = np.broadcast_arrays(*values)
        return evaluate(function(name, *arguments), dict(zip(arguments, given, strict=True)), {})

    return element_function(name, evaluated, f"The primitive {name}, element by element.")


def conj(x: Any, /) -> Any:
    """The complex conjugate, element by element. Raises TypeMismatchError for what is no number or tensor."""
    return _as_value(x).conj() if is_traced(x) else on_arrays("conj", np.conj, x)


def real(x: Any, /) -> Any:
    """The real part, element by element. Raises TypeMismatchError for what is no number or tensor."""
    return _as_value(x).real if is_traced(x) else on_arrays("real", _part(np.real), x)


def imag(x: Any, /) -> Any:
    """The imaginary part, element by element. Raises TypeMismatchError for what is no number or tensor."""
    return _as_value(x).imag if is_traced(x) else on_arrays("imag", _part(np.imag), x)


def _part(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """NumPy's real or imaginary part, which it takes of texts and objects, too."""

    def of_numbers(x: Any) -> Any:
        found = function(x)
        if np.asarray(x).dtype.kind not in "biufc":
            raise TypeError("it is no number")
        return found

    return of_numbers


def _as_value(x: object) -> Value:
    return x if isinstance(x, Value) else traced(x)


# --- whole tensors -------------------------------------------------------------------------------------------------


def einsum(subscripts: Any, *operands: Any) -> Any:
    """NumPy's einsum: `cd.einsum("ij,jk->ik", A, B)`, `"...i,...i->..."`, or `cd.einsum(A, [0, 1], B, [1, 2], [0, 2])`.

    Raises TypeMismatchError where indices and axes do not fit, UnsupportedError for other signs among the subscripts.
    """
    if not any(is_traced(operand) for operand in (subscripts, *operands)):
        return on_arrays("einsum", np.einsum, subscripts, *operands)
    if not isinstance(subscripts, str):
        subscripts, operands = _as_text(subscripts, *operands)
    return wrap(arrays.einsum(subscripts, [lift(operand) for operand in operands]))


def _as_text(*given: Any) -> tuple[str, tuple[Any, ...]]:
    """The subscripts and operands of einsum's form with lists of numbers."""
    pairs, result = given[: len(given) // 2 * 2], given[len(given) // 2 * 2 :]
    lists = [*pairs[1::2], *result]
    if not pairs or not all(isinstance(one, list | tuple) for one in lists):
        raise TypeMismatchError(
            f"einsum takes its subscripts as a string such as 'ij,jk->ik', not {shown(given[0])}",
            hint="or a list of numbers behind each operand: cd.einsum(A, [0, 1], x, [1], [0])",
        )
    texts = ["".join("..." if n is ... else _letter(n) for n in one) for one in lists]
    left = ",".join(texts[: len(pairs) // 2])
    return (f"{left}->{texts[-1]}" if result else left), pairs[::2]


def _letter(number: object) -> str:
    if not isinstance(number, int) or not 0 <= number < 52:
        raise TypeMismatchError(f"einsum has the index {shown(number)}", hint="indices are numbers from 0 to 51")
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[number]


def _transpose(x: Any, axes: Sequence[int] | None = None) -> Value:
    return wrap(arrays.transpose(lift(x), axes))


def _dot(a: Any, b: Any) -> Value:
    """np.dot: @, but a product with a number, and no batches."""
    left, right = lift(a), lift(b)
    if not axes_of(left) or not axes_of(right):
        return combined(mul, a, b)
    if len(axes_of(right)) <= 2:
        return wrap(arrays.matmul(left, right))
    letters = "abcdefghijklmnopqrstuvwxy"
    rows, columns = letters[: len(axes_of(left)) - 1], letters[len(axes_of(left)) - 1 :][: len(axes_of(right)) - 1]
    labels = [rows + "z", columns[:-1] + "z" + columns[-1]]
    return wrap(arrays.contract([left, right], labels, rows + columns, "np.dot"))


def _sum(
    a: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None, initial: Any = 0, where: Any = None
) -> Value:
    """np.sum; `where` leaves elements out, and `initial` is added."""
    check_dtype("np.sum", dtype, a)
    found = wrap(arrays.sum_axes(lift(a) if where is None else lift(_only(where, a)), axis, keepdims))
    return found + initial if isinstance(initial, TracedValue) or initial else found


def _only(where: Any, a: Any) -> Any:
    return HANDLERS[np.where](where, a, 0)


def check_dtype(what: str, dtype: Any, *given: Any) -> None:
    """Raises UnsupportedError for an element type other than NumPy's own of that function of these arrays."""
    if dtype is not None and np.dtype(dtype) == float and any(is_complex(lift(each)) for each in given):
        raise UnsupportedError(
            f"{what} with dtype={shown(dtype)} of complex numbers leaves out their imaginary parts",
            hint="leave dtype out, or take np.real(z)",
        )
    if dtype is not None and np.dtype(dtype) not in (np.dtype(float), np.dtype(complex)):
        raise UnsupportedError(
            f"{what} with dtype={shown(dtype)} in a program",
            hint="leave it out: the arrays of a call decide; np.trunc cuts to whole numbers",
        )


def mean(a: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None, where: Any = None) -> Value:
    """np.mean: the sum by the number of elements."""
    if where is not None:
        counted = _only(where, HANDLERS[np.ones_like](a))
        return _sum(a, axis, keepdims, dtype=dtype, where=where) / _sum(counted, axis, keepdims)
    return _sum(a, axis, keepdims, dtype=dtype) / wrap(arrays.count(lift(a), axis))


def _outer(a: Any, b: Any) -> Value:
    vectors = [each if axes_of(each) and len(axes_of(each)) == 1 else _flat(each) for each in (lift(a), lift(b))]
    return wrap(arrays.contract(vectors, ["i", "j"], "ij", "np.outer"))


def _flat(term: Term) -> Term:
    return lift(HANDLERS[np.reshape](wrap(term), -1))


def _einsum(
    subscripts: Any,
    *operands: Any,
    optimize: Any = None,
    dtype: Any = None,
    order: Any = None,
    casting: Any = None,
) -> Any:
    """np.einsum; the order of contraction is ours whatever `optimize` says."""
    check_dtype("np.einsum", dtype)
    return einsum(subscripts, *operands)


HANDLERS.update(
    {
        np.conj: conj,
        np.real: real,
        np.imag: imag,
        np.sum: _sum,
        np.mean: mean,
        np.size: lambda a: _as_value(a).size,
        np.ndim: lambda a: _as_value(a).ndim,
        np.shape: lambda a: _as_value(a).shape,
        np.einsum: _einsum,
        np.transpose: _transpose,
        np.dot: _dot,
        np.outer: _outer,
        np.square: lambda x: x**2,
        np.reciprocal: lambda x: 1 / x,
        np.log1p: lambda x: log(1 + x),
        np.expm1: lambda x: exp(x) - 1,
        np.float_power: lambda x, y: x**y,
    }
)
