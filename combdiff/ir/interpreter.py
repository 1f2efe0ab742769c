"""The meaning of terms: a naive interpreter that loops over every index and knows no algebra.

    ⟦Σ_i t⟧ρ = Σ_{v in the domain of i} ⟦t⟧ρ[i = v]        ⟦(i) ↦ t⟧ρ = the array of ⟦t⟧ρ[i = v]

    x, i = Var("x", Space("n")), Var("i", Range("n"))
    evaluate(Sum((i,), Mul((Number(2), Apply(x, (i,))))), {x: np.array([1.0, 3.0])}, {"n": 2})
    = 8.0

In a product the indicators and deltas come first: where one is 0 the product is 0 and nothing else in it is
looked at, so `[i ≥ 1]·x[i - 1]` has a value at i = 0. An index of a Cyclic axis wraps; on any other axis an index
outside its domain is an error. step(0) is 0.

Invariant: a term has one value in one environment; every later stage is tested against this module.
"""

from __future__ import annotations

import cmath
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from combdiff.errors import ArgumentError, SingularError, UnsupportedError
from combdiff.ir.domains import Cyclic, Domain, Real, Space, Whole, extent, first_index
from combdiff.ir.equations import solution
from combdiff.ir.implicit import Implicit
from combdiff.ir.indices import Affine, Coordinate, Delta, Guard, Indicator, Unequal
from combdiff.ir.iteration import AFTER, BEFORE, LAST, Scan
from combdiff.ir.matrix_functions import is_matrix_function
from combdiff.ir.primitives import TABLE
from combdiff.ir.relations import Relation
from combdiff.ir.substitution import subterms
from combdiff.ir.terms import (
    Add,
    Apply,
    Conj,
    Lambda,
    Let,
    Mul,
    Number,
    Primitive,
    Pullback,
    Sum,
    Term,
    Tuple,
    Var,
    remembered,
)
from combdiff.ir.types import is_domain, type_of
from combdiff.kernels import for_numpy

Scope = Mapping[Var, Any]


def _inverse(matrices: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    try:
        return np.linalg.inv(matrices)
    except np.linalg.LinAlgError:
        raise SingularError("the inverse of a singular matrix is asked for") from None


def _adjugate(matrices: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The transposed cofactors: adj(X)[i, j] is (−1)^(i + j) times the determinant without row j and column i."""
    n = matrices.shape[-1]
    found = np.zeros(matrices.shape, np.result_type(matrices, float))
    for i, j in itertools.product(range(n), range(n)):
        minor = np.delete(np.delete(matrices, j, axis=-2), i, axis=-1)
        found[..., i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    return found


def _logdet(matrices: np.ndarray[Any, Any]) -> Any:
    return np.linalg.slogdet(matrices)[1]


_MATRIX_FUNCTIONS: dict[str, Callable[[np.ndarray[Any, Any]], Any]] = {
    "inv": _inverse,
    "det": np.linalg.det,
    "adj": _adjugate,
    "logdet": _logdet,
    "logdet_positive": _logdet,
    "amax": lambda arrays: np.max(arrays, (-2, -1)),
    "amin": lambda arrays: np.min(arrays, (-2, -1)),
    "amax_ties": lambda arrays: (arrays == np.max(arrays, (-2, -1), keepdims=True)).sum((-2, -1)) * 1.0,
    "amin_ties": lambda arrays: (arrays == np.min(arrays, (-2, -1), keepdims=True)).sum((-2, -1)) * 1.0,
    "amax_marks": lambda arrays: (arrays == np.max(arrays, (-2, -1), keepdims=True)) * 1,
    "amin_marks": lambda arrays: (arrays == np.min(arrays, (-2, -1), keepdims=True)) * 1,
    "signdet": lambda matrices: np.linalg.slogdet(matrices)[0],
    **{name: for_numpy(name) for name in ("eigvalsh", "eigvecsh", "eiglevels", "expm", "sqrtm")},
    **{name: for_numpy(name) for name in ("svdvals", "svd_left", "svd_right", "svdlevels")},
    **{name: partial(for_numpy(name), name="matrix") for name in ("cholesky", "qr_r")},
    "pinv": np.linalg.pinv,
    "prod": lambda arrays: np.prod(arrays, (-2, -1)),
    "prod_others": for_numpy("products_of_others"),
    "cumprod": lambda arrays: np.cumprod(arrays, -1),
    "argsort": lambda arrays: np.argsort(arrays, -1, stable=True),
    "argmax": lambda arrays: np.argmax(arrays, -1),
    "argmin": lambda arrays: np.argmin(arrays, -1),
}


def evaluate(term: Term, environment: Mapping[Var, object], sizes: Mapping[str, int]) -> Any:
    """The value of a term, its free variables looked up in `environment` and its size names in `sizes`.

    A number is a Python int, float or complex; a tensor is a NumPy array, one axis per index in stored order (a
    Symmetric axis begins at −bound); a Tuple is a tuple; a program (a Lambda over tensors) is a Python function of
    its parameters. A named map is any callable of arrays; its Pullback calls the method
    `pullback(position, arguments, cotangent)` of that object. Raises ArgumentError for a variable without a value
    and an index out of range, UnsupportedError for sums, tensors and deltas over the real line and for the
    pullback of a map that brings none.
    """
    needed = {var: environment[var] for var in term.free if var in environment}  # each point of a Σ copies its scope
    return _Interpreter(term, sizes).value(term, needed)


class _Binding:
    """The value of a let binding, computed where it is read and once: under a guard some elements have no value."""

    def __init__(self, interpreter: _Interpreter, term: Term, scope: Scope) -> None:
        self.interpreter, self.term, self.scope = interpreter, term, scope
        self.elements: dict[tuple[int, ...], Any] = {}

    @cached_property
    def whole(self) -> Any:
        """The number, or the array of all elements."""
        return self.interpreter.value(self.term, self.scope)

    def element(self, position: tuple[int, ...]) -> Any:
        """The element stored at a position."""
        if not isinstance(self.term, Lambda) or len(self.term.parameters) != len(position):
            return _unwrap(self.whole[position])
        if position not in self.elements:
            self.elements[position] = self.interpreter.value(self.term.body, self.scope_at(position))
        return self.elements[position]

    def scope_at(self, position: tuple[int, ...]) -> Scope:
        """The scope of the body of a tensor for the element stored at a position."""
        assert isinstance(self.term, Lambda)
        starts = (first_index(p.type, self.interpreter.sizes) for p in self.term.parameters)  # type: ignore[arg-type]
        indices = (start + n for start, n in zip(starts, position, strict=True))
        return {**self.scope, **dict(zip(self.term.parameters, indices, strict=True))}


class _OutsideError(ArgumentError):
    """An element was read that a tensor does not have."""


class _StoredAxis(NamedTuple):
    """An axis of a tensor: whether it is a cycle, how many indices it has, and the first of them."""

    turns: bool
    size: int
    first: int


class _Interpreter:
    """Values of subterms used often are kept per value of their free variables: the work follows the graph."""

    def __init__(self, term: Term, sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)
        self.shared = _used_often(term)
        self.kept: dict[tuple[object, ...], tuple[Any, list[Any]]] = {}
        self.sorted: dict[Mul, list[Term]] = {}
        self.axes: dict[Term, Sequence[_StoredAxis] | None] = {}

    def value(self, term: Term, scope: Scope) -> Any:
        if term not in self.shared:
            return self._node(term, scope)
        known = [scope.get(var) for var in term.free]
        key = (term, *(v if isinstance(v, int) else id(v) for v in known))
        if key not in self.kept:
            self.kept[key] = self._node(term, scope), known  # holding `known` keeps the ids from being used again
        return self.kept[key][0]

    def _node(self, term: Term, scope: Scope) -> Any:
        rule = _RULES.get(type(term))
        if rule is None:
            raise TypeError(f"not a term: {term!r}")
        return rule(self, term, scope)

    def _addition(self, term: Add, scope: Scope) -> Any:
        return sum(self.value(part, scope) for part in term.terms)

    def _sum(self, term: Sum, scope: Scope) -> Any:
        return sum(self.value(term.body, inner) for _, inner in self._points(term.indices, scope))

    def _affine(self, term: Affine, scope: Scope) -> Any:
        return sum(c * self._variable(var, scope) for var, c in term.coefficients) + term.offset

    def _indicator(self, term: Indicator, scope: Scope) -> int:
        form = self.value(term.form, scope)
        return int(form % term.modulus == 0 if term.modulus else form >= 0)

    def _unequal(self, term: Unequal, scope: Scope) -> int:
        form = self.value(term.form, scope)
        return int(form % extent(term.cycle, self.sizes) != 0 if term.cycle else form != 0)

    def _let(self, term: Let, scope: Scope) -> Any:
        for var, bound in term.bindings:
            scope = {**scope, var: _Binding(self, bound, scope)}
        return self.value(term.body, scope)

    def _implicit(self, term: Implicit, scope: Scope) -> Any:
        given: Any = np.asarray(self.value(term.given, scope), term.space.dtype)
        return _unwrap(solution(term.kind, self.value(term.map, scope), given))

    def _iterated(self, term: Scan, scope: Scope) -> Any:
        """One step after the other."""
        states = [self.value(start, scope) for start in term.starts]
        space = type_of(term)
        assert isinstance(space, Space)
        stack: np.ndarray[Any, Any] = np.zeros([extent(axis, self.sizes) for axis in space.axes], space.dtype)
        numbers = range(extent(term.steps, self.sizes))
        for t in reversed(numbers) if term.reverse else numbers:
            if term.kind == BEFORE:
                stack[t] = states[term.component]
            outputs = self.value(term.body, {**scope, term.index: t, **dict(zip(term.states, states, strict=True))})
            if term.kind == AFTER:
                stack[t] = outputs[term.component]
            states = list(outputs[: len(states)])
        return _unwrap(states[term.component] if term.kind == LAST else stack)

    def _variable(self, var: Var, scope: Scope) -> Any:
        found = scope.get(var)
        if isinstance(found, int):  # an index, which is met most
            return found
        if isinstance(found, _Binding):
            return found.whole
        if var in scope:
            scalar = isinstance(var.type, Space) and not var.type.order
            return _unwrap(scope[var]) if scalar else scope[var]
        if isinstance(var.type, Whole) and var.name in self.sizes:
            return self.sizes[var.name]
        raise ArgumentError(f"{var.name} has no value", hint="give every free variable and every size name a value")

    def _points(self, indices: tuple[Var, ...], scope: Scope) -> Iterable[tuple[tuple[int, ...], Scope]]:
        """Every position in the box of the indices, with the scope in which they have their values there."""
        ranges = [range(self._extent(index)) for index in indices]
        starts = [first_index(index.type, self.sizes) for index in indices]  # type: ignore[arg-type]
        for position in itertools.product(*ranges):
            values = map(sum, zip(position, starts, strict=True))
            yield position, {**scope, **dict(zip(indices, values, strict=True))}

    def _extent(self, index: Var) -> int:
        if isinstance(index.type, Real):
            raise UnsupportedError(
                f"{index.name} runs over the real line: arrays cannot be given for it, nor integrals evaluated",
                hint="declare the axis with a size to compute with it",
            )
        return extent(index.type, self.sizes)  # type: ignore[arg-type]

    def _product(self, term: Mul, scope: Scope) -> Any:
        """Guards first: where a factor is 0, behind a condition, the others may read outside their tensors."""
        if term not in self.sorted:
            self.sorted[term] = _guards_first(term)
        factors = self.sorted[term]
        values, outside = [], None
        for factor in factors:
            try:
                values.append(self.value(factor, scope))
            except _OutsideError as error:
                outside = error  # also of a comparison, beside a condition that stands deeper, as in ([i ≥ 1] x)*
                continue
            if isinstance(factor, Guard) and not values[-1]:
                return 0
        if outside is not None and all(values):
            raise outside
        if outside is not None or self._is_guarded(factors, values, scope):
            return 0
        return math.prod(values)

    def _is_guarded(self, factors: Sequence[Term], values: Sequence[Any], scope: Scope) -> bool:
        """Whether one factor is 0 by its conditions where another is infinite or undefined."""
        if all(map(cmath.isfinite, values)):
            return False
        zeros = (factor for factor, value in zip(factors, values, strict=True) if value == 0)
        return any(self._vanishes(factor, scope) for factor in zeros)

    def _vanishes(self, term: Term, scope: Scope) -> bool:
        """Whether a number is 0 because conditions do not hold, whatever the tensors are."""
        match term:
            case Delta() | Indicator() | Unequal() | Relation():
                return not self.value(term, scope)
            case Mul():
                return any(self._vanishes(factor, scope) for factor in term.factors)
            case Add():
                return all(self._vanishes(addend, scope) for addend in term.terms)
            case Conj():
                return self._vanishes(term.body, scope)
            case Sum():
                return all(self._vanishes(term.body, inner) for _, inner in self._points(term.indices, scope))
            case Apply(function=Var() as var) if isinstance(binding := scope.get(var), _Binding):
                axes = self._axes(term.function)
                if axes and isinstance(binding.term, Lambda) and len(binding.term.parameters) == len(axes):
                    return self._vanishes(binding.term.body, binding.scope_at(self._places(term, axes, scope)))
        return False

    def _primitive(self, term: Primitive, scope: Scope) -> Any:
        if is_matrix_function(term):
            return _unwrap(_MATRIX_FUNCTIONS[term.name](np.asarray(self.value(term.arguments[0], scope))))
        row = TABLE[term.name]
        if row.definition is not None:
            return self.value(row.definition(*term.arguments), scope)
        arguments = [np.asarray(self.value(argument, scope)) for argument in term.arguments]
        inexact = [a if a.dtype.kind in "fc" else a.astype(float) for a in arguments]
        return _unwrap(row.numerical()(*inexact, *row.fixed))

    def _delta(self, term: Delta, scope: Scope) -> int:
        left, right = self.value(term.left, scope), self.value(term.right, scope)
        if isinstance(term.domain, Real):
            raise UnsupportedError("a delta on the real line is Dirac's: it has no value at a point")
        if isinstance(term.domain, Cyclic):
            return int((left - right) % extent(term.domain, self.sizes) == 0)
        return int(left == right if isinstance(left, int) else np.array_equal(left, right))

    def _places(self, term: Apply, axes: Sequence[_StoredAxis], scope: Scope) -> tuple[int, ...]:
        """Where in a tensor with these axes the element is stored that an access reads."""
        places = []
        for n, ((turns, size, first), argument) in enumerate(zip(axes, term.arguments, strict=True)):
            index = self._variable(argument, scope) if isinstance(argument, Var) else self.value(argument, scope)
            if turns and index % 1 == 0:
                places.append(int(index) % size)
            elif index % 1 or not first <= index < first + size:
                name = term.function.name if isinstance(term.function, Var) else "a tensor"
                raise _OutsideError(
                    f"axis {n} of {name} has the indices {first} … {first + size - 1}, but was read at {index}"
                )
            else:
                places.append(int(index) - first)
        return tuple(places)

    def _axes(self, function: Term) -> Sequence[_StoredAxis] | None:
        """The axes of a tensor; None of a map."""
        if function not in self.axes:
            space = type_of(function)
            self.axes[function] = [self._axis(axis) for axis in space.axes] if isinstance(space, Space) else None
        return self.axes[function]

    def _axis(self, axis: Domain) -> _StoredAxis:
        return _StoredAxis(isinstance(axis, Cyclic), extent(axis, self.sizes), first_index(axis, self.sizes))

    def _apply(self, term: Apply, scope: Scope) -> Any:
        function, axes = term.function, self._axes(term.function)
        if axes is None:
            arguments = tuple(self.value(argument, scope) for argument in term.arguments)
        else:
            arguments = self._places(term, axes, scope)
        if isinstance(function, Lambda):
            if axes is not None:
                arguments = tuple(axis.first + place for axis, place in zip(axes, arguments, strict=True))
            return self.value(function.body, {**scope, **dict(zip(function.parameters, arguments, strict=True))})
        found = scope.get(function) if isinstance(function, Var) else None
        if isinstance(found, _Binding) and axes is not None:
            return found.element(arguments)
        value = self.value(function, scope)
        return _unwrap(value(*arguments) if axes is None else value[arguments])

    def _lambda(self, term: Lambda, scope: Scope) -> Any:
        if not all(is_domain(parameter.type) for parameter in term.parameters):
            return lambda *values: self.value(term.body, {**scope, **dict(zip(term.parameters, values, strict=True))})
        shape = [self._extent(index) for index in term.parameters]
        space = type_of(term.body)
        assert isinstance(space, Space), space
        inner = [extent(axis, self.sizes) for axis in space.axes]
        array: np.ndarray[Any, Any] = np.zeros([*shape, *inner], space.dtype)
        for position, bound in self._points(term.parameters, scope):
            array[position] = self.value(term.body, bound)
        return array

    def _pullback(self, term: Pullback, scope: Scope) -> Any:
        function = self.value(term.function, scope)
        if not hasattr(function, "pullback"):
            name = term.function.name if isinstance(term.function, Var) else "a map"
            raise UnsupportedError(
                f"the value given for {name} has no pullback",
                hint="give an object with a method pullback(position, arguments, cotangent)",
            )
        arguments = tuple(self.value(argument, scope) for argument in term.arguments)
        return _unwrap(function.pullback(term.position, arguments, self.value(term.cotangent, scope)))


_RULES: dict[type[Term], Callable[[_Interpreter, Any, Scope], Any]] = {
    Apply: _Interpreter._apply,
    Var: _Interpreter._variable,
    Mul: _Interpreter._product,
    Number: lambda _, term, __: _plain(term),
    Add: _Interpreter._addition,
    Sum: _Interpreter._sum,
    Affine: _Interpreter._affine,
    Coordinate: lambda self, term, scope: self.value(term.form, scope),
    Conj: lambda self, term, scope: self.value(term.body, scope).conjugate(),
    Primitive: _Interpreter._primitive,
    Relation: lambda self, term, scope: int(self._primitive(term, scope)),
    Delta: _Interpreter._delta,
    Indicator: _Interpreter._indicator,
    Unequal: _Interpreter._unequal,
    Lambda: _Interpreter._lambda,
    Tuple: lambda self, term, scope: tuple(self.value(item, scope) for item in term.items),
    Let: _Interpreter._let,
    Pullback: _Interpreter._pullback,
    Implicit: _Interpreter._implicit,
    Scan: _Interpreter._iterated,
}


def _guards_first(term: Mul) -> list[Term]:
    """The factors of a product: conditions first, those that read tensors after the others, then all else."""
    return sorted(term.factors, key=_turn)


def _turn(factor: Term) -> int:
    """When a factor is looked at."""
    if not isinstance(factor, Guard):
        return 2
    return int(isinstance(factor, Relation) or (isinstance(factor, Delta) and factor.lookup is not None))


@remembered
def _used_often(term: Term) -> frozenset[Term]:
    """Subterms with several uses, tensors applied or passed on, functions of matrices: loops may use them often."""
    nodes = list(subterms(term))
    uses = Counter(child for node in nodes for child in node.children)
    found = {node for node, count in uses.items() if count > 1 and node.children}
    found.update(node for node in nodes if is_matrix_function(node) or isinstance(node, Implicit))
    for node in nodes:
        if isinstance(node, Apply):
            found.update(child for child in node.children if isinstance(child, Lambda | Apply))
            if isinstance(node.function, Lambda):
                found.add(node.function.body)
    return frozenset(found)


def _plain(term: Number) -> complex | float | int:
    """A constant as Python computes with it, an int where it is one."""
    return term.real if isinstance(term.real, int) and not term.imag else term.value()


def _unwrap(value: Any) -> Any:
    """A Python number in place of an array of order 0."""
    if isinstance(value, np.generic):
        return value.item()
    array = np.asarray(value)
    return array if array.ndim else array.item()
