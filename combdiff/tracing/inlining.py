"""Programs that call programs: the body of one, over the arguments the other gives.

    norm = x ↦ Σ_i x[i]²             in another program:   norm(A @ y)
    inline(norm, (A @ y,))           = Σ_{i.1} (A @ y)[i.1]²

Named sizes of the inner program are those of the arguments, its bound names are renamed apart, and its let list
becomes a graph again: a binding used twice is one object used twice.

Invariant: the result contains no let and no variable of the inner program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from combdiff.errors import TraceError, TypeMismatchError, shown
from combdiff.ir import (
    Apply,
    Cyclic,
    Domain,
    Function,
    Lambda,
    Let,
    Names,
    Range,
    Size,
    Space,
    Sum,
    Symmetric,
    Term,
    Tuple,
    Var,
    Whole,
    held,
    is_domain,
    is_held,
    join,
    names_in,
    resized,
    size_form,
    subterms,
    type_of,
)
from combdiff.tracing.arrays import element, expanded
from combdiff.tracing.context import TracedValue, current, show_domain, size_of
from combdiff.tracing.values import NamedFunction, Value, check_space, lift, wrap

Sizes = dict[str, Size]
Scope = dict[Var, Term]


def inline(term: Lambda, arguments: Sequence[object]) -> Value | tuple[Value, ...]:
    """The result of a program's term on traced values and numbers: a value, or a tuple of values.

    A named map may be given a named map, the Lambda of another program, or a Python function of traced values. Raises
    TypeMismatchError where an argument is not of the Space of its parameter; a named size may stand for any size, but
    everywhere for the same.
    """
    _check_count(term, arguments)
    terms = [None if _is_definition(value) else _argument(value) for value in arguments]
    sizes: Sizes = {}
    for parameter, known in zip(term.parameters, terms, strict=True):
        if known is not None:
            _unify_argument(parameter, known, sizes)
    pairs = zip(term.parameters, terms, arguments, strict=True)
    complete = [_defined(p, value, sizes) if known is None else known for p, known, value in pairs]
    result = called(term, complete, current("a program").names)
    return tuple(wrap(item) for item in result.items) if isinstance(result, Tuple) else wrap(result)


def _is_definition(value: object) -> bool:
    return callable(value) and not isinstance(value, TracedValue | Lambda)


def _defined(parameter: Var, function: Any, sizes: Sizes) -> Lambda:
    """The abstraction that a Python function over traced values stands for, given for a named map."""
    declared = parameter.type
    if not isinstance(declared, Function):
        raise TraceError(
            f"the argument {parameter.name} must be a tensor or number, not the function {shown(function)}"
        )
    trace = current("a program")
    spaces = [_resized_space(space, sizes) for space in declared.arguments]
    variables = tuple(trace.names.fresh(Var("u", space)) for space in spaces)
    try:
        body = lift(function(*(wrap(variable) for variable in variables)))
    finally:
        trace.closed.update(variables)
    check_space(body, _resized_space(declared.result, sizes), f"the value of the function given for {parameter.name}")
    return Lambda(variables, expanded(body))


def called(term: Lambda, arguments: Sequence[Term], names: Names) -> Term:
    """The body of a program over other terms, its bound names renamed apart."""
    _check_count(term, arguments)
    sizes: Sizes = {}
    for parameter, argument in zip(term.parameters, arguments, strict=True):
        _unify_argument(parameter, argument, sizes)
    scope: Scope = dict(zip(term.parameters, arguments, strict=True))
    scope.update((Var(name, Whole()), size_form(size)) for name, size in sizes.items())
    return _Copy(names, sizes).run(term.body, scope)


def _check_count(term: Lambda, arguments: Sequence[object]) -> None:
    if len(arguments) != len(term.parameters):
        expected = ", ".join(parameter.name for parameter in term.parameters)
        raise TypeMismatchError(f"the program takes ({expected}), but is given {len(arguments)} arguments")


def _argument(value: object) -> Term:
    if isinstance(value, NamedFunction):
        return value.live()
    return value if isinstance(value, Lambda) else lift(value)


# --- types ---------------------------------------------------------------------------------------------------------


def _unify_argument(parameter: Var, argument: Term, sizes: Sizes) -> None:
    """Binds the named sizes of a parameter's type, checking that the argument has that type."""
    wanted, found, what = parameter.type, type_of(argument), f"the argument {parameter.name}"
    if isinstance(wanted, Function) and isinstance(found, Function):
        if len(wanted.arguments) != len(found.arguments):
            raise TypeMismatchError(f"{what} takes {len(found.arguments)} arguments, not {len(wanted.arguments)}")
        if isinstance(argument, Var):  # the sizes of a program given for it are found where it is called
            for inner, outer in zip((*wanted.arguments, wanted.result), (*found.arguments, found.result), strict=True):
                _unify_space(inner, outer, sizes, what)
    elif isinstance(wanted, Space) and isinstance(found, Space):
        _unify_space(wanted, found, sizes, what)
        _check_symmetry(parameter.name, wanted, argument)
    else:
        raise TraceError(f"{what} must be a {type(wanted).__name__}, not a {type(found).__name__}")


def _unify_space(wanted: Space, found: Space, sizes: Sizes, what: str) -> None:
    _unify_axes(wanted, found, sizes, what)
    if join(wanted.dtype, found.dtype) is not wanted.dtype:
        raise TypeMismatchError(f"{what} is {found.dtype.__name__}, but the program takes {wanted.dtype.__name__}")


def _unify_axes(wanted: Space, found: Space, sizes: Sizes, what: str) -> None:
    if wanted.order != found.order:
        raise TypeMismatchError(f"{what} has order {found.order}, but the program takes order {wanted.order}")
    for axis, (inner, outer) in enumerate(zip(wanted.axes, found.axes, strict=True)):
        name, size = size_of(inner), size_of(outer)
        if isinstance(name, str) and not name.isidentifier():
            same = _resized(inner, sizes) == outer  # a sum of names, which other axes tell
        elif isinstance(name, str):
            same = type(inner) is type(outer) and sizes.setdefault(name, size) == size
        else:
            same = inner == outer
        if not same:
            expected = show_domain(_resized(inner, sizes) if type(inner) is type(outer) else inner)
            raise TypeMismatchError(f"axis {axis} of {what} is {show_domain(outer)}, but must be {expected}")


def _check_symmetry(name: str, wanted: Space, argument: Term) -> None:
    """A parameter handed on must have declared the symmetry that the inner program relies on."""
    if isinstance(argument, Var) and isinstance(argument.type, Space) and not {*wanted.group} <= {*argument.type.group}:
        equations = list(wanted.equations(name))
        raise TypeMismatchError(
            f"the argument {name} must have the symmetry {equations}, which {argument.name} does not declare",
            hint=f"declare {argument.name} with that symmetry",
        )


def _resized(domain: Domain, sizes: Sizes) -> Domain:
    """The domain with a named size replaced."""
    size = size_of(domain)
    if not names_in(size) & sizes.keys():
        return domain
    if isinstance(domain, Symmetric):
        return Symmetric(resized(size, sizes))
    return replace(domain, size=resized(size, sizes)) if isinstance(domain, Range | Cyclic) else domain


def _resized_space(space: Space, sizes: Sizes) -> Space:
    return Space(*(_resized(axis, sizes) for axis in space.axes), dtype=space.dtype, symmetry=space.symmetry)


def renamed_sizes(given: Lambda, declared: Function, outer: Lambda, name: str) -> Lambda:
    """A program given for the map `name` of `outer`, with the named sizes that the map declares, others kept apart.

    Raises TypeMismatchError where the Spaces of its first parameters, or of its result, do not fit.
    """
    sizes: Sizes = {}
    found = type_of(given.body)
    what = f"an argument of {name}, by its declaration,"
    for space, parameter in zip(declared.arguments, given.parameters, strict=False):
        if not isinstance(parameter.type, Space):
            raise TypeMismatchError(
                f"{name} takes tensors, but the program given for it takes the map {parameter.name}"
            )
        _unify_space(parameter.type, space, sizes, what)
    if not isinstance(found, Space):
        raise TypeMismatchError(f"{name} gives one result, but the program given for it several")
    result = declared.result
    if join(found.dtype, result.dtype) is not result.dtype:
        raise TypeMismatchError(
            f"{name} gives {result.dtype.__name__} by its declaration, but the program given for it "
            f"{found.dtype.__name__}",
            hint=f"declare {name} with a result of that dtype, or take cd.real(…) of the program's",
        )
    _unify_axes(_resized_space(found, sizes), result, {}, f"the result of {name}, by its declaration,")
    taken = _sizes_in(outer)
    for size in sorted(_sizes_in(given) - sizes.keys()):
        sizes[size] = next(s for s in (size, *(f"{size}{n}" for n in range(2, len(taken) + 3))) if s not in taken)
    scope: Scope = {
        p: Var(p.name, _resized_space(p.type, sizes)) for p in given.parameters if isinstance(p.type, Space)
    }
    parameters = tuple(scope.get(p, p) for p in given.parameters)
    scope.update((Var(size, Whole()), size_form(new)) for size, new in sizes.items())
    return Lambda(parameters, _Copy(Names(given, outer), sizes).run(given.body, scope))  # type: ignore[arg-type]


def _sizes_in(term: Lambda) -> set[str]:
    """The named sizes of the tensors and indices in a term."""
    variables = {v for node in subterms(term) for v in (*node.bound, *node.free)}
    spaces = [v.type for v in variables if isinstance(v.type, Space)]
    maps = [v.type for v in variables if isinstance(v.type, Function)]
    spaces += [space for map_ in maps for space in (*map_.arguments, map_.result)]
    domains: set[Any] = {axis for space in spaces for axis in space.axes}
    domains |= {v.type for v in variables if is_domain(v.type) and not isinstance(v.type, Whole)}
    return {name for domain in domains for name in names_in(size_of(domain))}


# --- copying -------------------------------------------------------------------------------------------------------


class _Copy:
    """A term with variables replaced, sizes renamed, lets unfolded and fresh bound names; shared parts stay shared."""

    def __init__(self, names: Names, sizes: Sizes) -> None:
        self.names = names
        self.sizes = sizes
        self.done: dict[tuple[Term, frozenset[tuple[Var, Term]]], Term] = {}

    def run(self, term: Term, scope: Scope) -> Term:
        """The copy, free variables looked up in the scope."""
        key = (term, frozenset((var, scope[var]) for var in term.free if var in scope))
        if key not in self.done:
            self.done[key] = self._node(term, scope)
        return self.done[key]

    def _node(self, term: Term, scope: Scope) -> Term:
        match term:
            case Var():
                return scope.get(term, term)
            case Let():
                for var, value in term.bindings:
                    scope = {**scope, var: held(self.run(value, scope))}
                return self.run(term.body, scope)
            case Lambda() | Sum():
                bound = tuple(self._fresh(var) for var in term.bound)
                body = self.run(term.children[0], {**scope, **dict(zip(term.bound, bound, strict=True))})
                return term.over(bound, body)
            case Apply():
                return self._apply(term, scope)
        return term.with_children(tuple(self.run(child, scope) for child in term.children))

    def _fresh(self, var: Var) -> Var:
        if isinstance(var.type, Space):  # the unknown of an equation
            return self.names.fresh(Var(var.name, _resized_space(var.type, self.sizes)))
        assert not isinstance(var.type, Function | Whole)
        return self.names.fresh(Var(var.name, _resized(var.type, self.sizes)))

    def _apply(self, term: Apply, scope: Scope) -> Term:
        function = self.run(term.function, scope)
        arguments = tuple(self.run(argument, scope) for argument in term.arguments)
        if is_held(term):
            return Apply(function, ())
        if isinstance(function, Lambda) and isinstance(type_of(function), Function):
            return called(function, arguments, self.names)
        if isinstance(type_of(function), Function):
            return Apply(function, arguments)
        return element(function, arguments)
