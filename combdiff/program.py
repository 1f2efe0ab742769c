"""Programs and the transforms on them: the whole flow on one page.

    Python function ──trace──► term ──share──► let program ──pull──► its derivative ──simplify──► ──run──► arrays

A `Program` is a closed term `(parameters) ↦ body` in let normal form. Every transform makes a new Program by the same
three steps: build a term (with the B and C rules, see `pullback`), bring it to normal form (`sharing`), simplify it
binding by binding with the e-graph (`simplification`).

Invariant: a Program is immutable; two are equal when their terms are, up to the names they bind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from combdiff.checking import type_of
from combdiff.domains import Function, Space
from combdiff.errors import ArgumentError, DifferentiationError, Location, UnsupportedError
from combdiff.execution import run, source
from combdiff.jacobians import hessian_block, jacobian_block
from combdiff.primitives import function
from combdiff.printing import latex, text
from combdiff.printing.combinators import combinator_text
from combdiff.pullback import cotangent_space, pull, push
from combdiff.readability import letters_of, readable
from combdiff.sharing import canonical_names, share, split
from combdiff.simplification import is_real, simplify_body
from combdiff.substitution import Names, apply
from combdiff.terms import ONE, Lambda, Term, Tuple, Var, conj, lambda_, let
from combdiff.tracing import inline, is_traced, trace_function

Wrt = str | Sequence[str] | None


@dataclass(frozen=True, eq=False)
class Program:
    """A differentiable program: call it with arrays, print it, transform it.

    `parameters` are its variables in order (name and Space or Function); `location` is where the user wrote it.
    Make one with `combdiff.program`.
    """

    term: Lambda
    name: str
    location: Location | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)

    # --- using it --------------------------------------------------------------------------------------------------

    @property
    def parameters(self) -> tuple[Var, ...]:
        """The variables that a call must give, in order."""
        return tuple(p for p in self.term.parameters if p.name not in self.fixed)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """The value for arrays given by position or by parameter name; inside a traced function, a traced value.

        Raises ArgumentError for missing, unknown or doubly given arguments and for arrays that do not fit.
        """
        values = self._bind(arguments, named)
        if any(is_traced(value) for value in values):
            return inline(self.term, [v.term if isinstance(v, Program) else v for v in values])
        return run(self.term, values)

    def _bind(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        """One value per parameter of the term, from positions, names and fixed arguments."""
        open_ = [p.name for p in self.parameters]
        if len(arguments) > len(open_):
            raise ArgumentError(
                f"{self.name} takes {_count(len(open_), 'argument')} ({', '.join(open_)}), not {len(arguments)}"
            )
        given = dict(zip(open_, arguments, strict=False))
        for name, value in named.items():
            if name not in open_:
                raise ArgumentError(
                    f"{self.name} has no argument {name!r}", hint=f"its arguments are {', '.join(open_)}"
                )
            if name in given:
                raise ArgumentError(f"{self.name} got the argument {name!r} twice, by position and by name")
            given[name] = value
        missing = [name for name in open_ if name not in given]
        if missing:
            raise ArgumentError(
                f"{self.name} misses {', '.join(missing)}", hint=f"call {self.name}({', '.join(open_)})"
            )
        given.update(self.fixed)
        return [given[p.name] for p in self.term.parameters]

    def pullback(self, position: int, arguments: Sequence[Any], cotangent: Any) -> Any:
        """The pullback by one argument at arrays: what a derivative asks of a program given for a named map."""
        return pullback(self, wrt=self.parameters[position].name)(*arguments, cotangent)

    def partial(self, **arguments: Any) -> Program:
        """The program with some arguments fixed; derivatives with respect to the others keep them fixed."""
        names = [p.name for p in self.parameters]
        for name in arguments:
            if name not in names:
                raise ArgumentError(
                    f"{self.name} has no argument {name!r}", hint=f"its arguments are {', '.join(names)}"
                )
        return replace(self, fixed={**self.fixed, **arguments})

    # --- looking at it ---------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return text(self.term)

    def __repr__(self) -> str:
        return f"<Program {self.name}: {text(self.term)}>"

    def latex(self) -> str:
        """LaTeX of the program in index notation."""
        return latex(self.term)

    def _repr_latex_(self) -> str:
        return f"$${self.latex()}$$"

    def combinators(self) -> str:
        """The program by abstraction elimination: 𝐁, 𝐂, 𝐈 and univariate primitives with captures."""
        return combinator_text(self.term)

    def source(self, backend: str = "numpy") -> str:
        """Standalone Python that computes the program with the backend alone."""
        if backend != "numpy":
            raise UnsupportedError(f"no source can be written for the backend {backend!r}", hint='use "numpy"')
        return source(self.term, self.name)

    @cached_property
    def _form(self) -> Term:
        """The term with bound names replaced by positions; held, so that equal programs share it."""
        return canonical_names(self.term)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Program):
            return NotImplemented
        same_arguments = self.fixed.keys() == other.fixed.keys() and all(
            np.array_equal(value, other.fixed[name]) for name, value in self.fixed.items()
        )
        return self._form is other._form and same_arguments

    def __hash__(self) -> int:
        return hash(self._form)


def program(definition: Callable[..., Any]) -> Program:
    """Trace a Python function whose parameters are annotated with Spaces or Functions into a Program.

    Raises TraceError or one of its kin where the function does not describe a program.
    """
    traced = trace_function(definition)
    term = Lambda(traced.term.parameters, share(traced.term.body))
    return Program(readable(term, letters_of(traced.term)), traced.name, traced.location)


# --- transforms ----------------------------------------------------------------------------------------------------


def grad(
    f: Program, wrt: Wrt = None, *, convention: str = "conjugate", simplify: bool = True, rules: Iterable[str] = ()
) -> Program:
    """The gradient of a real scalar program: for complex arguments ∂f/∂Re + i ∂f/∂Im, the steepest ascent.

    `wrt` is a parameter name, a tuple of names (then the result is a tuple), or None for the first parameter.
    `convention="jax"` gives the complex conjugate. Raises DifferentiationError when f is not scalar, or is neither of
    real type nor found real by the e-graph.
    """
    return _gradient(f, wrt, convention, simplify, tuple(rules), with_value=False)


def value_and_grad(
    f: Program, wrt: Wrt = None, *, convention: str = "conjugate", simplify: bool = True, rules: Iterable[str] = ()
) -> Program:
    """The pair (value, gradient), every intermediate shared; arguments and errors as for `grad`."""
    return _gradient(f, wrt, convention, simplify, tuple(rules), with_value=True)


def _gradient(
    f: Program, wrt: Wrt, convention: str, simplified: bool, rules: tuple[str, ...], with_value: bool
) -> Program:
    if convention not in ("conjugate", "jax"):
        raise DifferentiationError(f"unknown convention {convention!r}", hint='use "conjugate" (the default) or "jax"')
    _check_objective(f, rules)
    points = _points(f, wrt)
    bindings, value = split(f.term.body)
    names = Names(f.term)
    backward, gradients = pull(f.term.body, points, ONE, names)
    if convention == "jax":
        gradients = [_conjugated(g, names) for g in gradients]
    result = _result(gradients, wrt)
    if with_value:
        result = Tuple((_real_value(value), result))
    kind = "value_and_grad" if with_value else "grad"
    return _derived(f, f.term.parameters, let((*bindings, *backward), result), kind, simplified, rules)


def pullback(f: Program, wrt: Wrt = None, *, simplify: bool = True, rules: Iterable[str] = ()) -> Program:
    """The vector-Jacobian product (x…, k) ↦ P f (x, k): one more argument, last, the cotangent, shaped like the result.

    For complex programs k ↦ (∂f/∂z)*·k + (∂f/∂z̄)·k*. A program with several results takes one cotangent for each.
    """
    points = _points(f, wrt)
    bindings, value = split(f.term.body)
    names = Names(f.term)
    cotangents = [
        names.fresh(Var("k" if not isinstance(value, Tuple) else f"k{n}", cotangent_space(_space(item))))
        for n, item in enumerate(_items(value), start=1)
    ]
    cotangent = Tuple(tuple(cotangents)) if isinstance(value, Tuple) else cotangents[0]
    backward, results = pull(f.term.body, points, cotangent, names)
    body = let((*bindings, *backward), _result(results, wrt))
    return _derived(f, (*f.term.parameters, *cotangents), body, "pullback", simplify, tuple(rules))


def pushforward(f: Program, wrt: Wrt = None, *, simplify: bool = True, rules: Iterable[str] = ()) -> Program:
    """The Jacobian-vector product: one more argument, last, for each wrt: its tangent."""
    points = _points(f, wrt)
    names = Names(f.term)
    tangents = {p: names.fresh(Var(f"{p.name}_dot", cotangent_space(_space(p)))) for p in points}
    forward, result = push(f.term.body, tangents, names)
    body = let((*split(f.term.body)[0], *forward), result)
    return _derived(f, (*f.term.parameters, *tangents.values()), body, "pushforward", simplify, tuple(rules))


def hvp(f: Program, wrt: Wrt = None, *, simplify: bool = True, rules: Iterable[str] = ()) -> Program:
    """The Hessian-vector product of a real scalar program: the pushforward of its gradient; takes the vector last."""
    return pushforward(grad(f, wrt, simplify=simplify, rules=rules), wrt, simplify=simplify, rules=rules)


def simplify(f: Program, rules: Iterable[str] = ()) -> Program:
    """The program simplified by equality saturation, with more rule files if given."""
    body = simplify_body(f.term.body, tuple(rules))
    return replace(f, term=readable(Lambda(f.term.parameters, body), letters_of(f.term)))


# --- what the transforms share -------------------------------------------------------------------------------------


def _derived(
    f: Program, parameters: tuple[Var, ...], body: Term, kind: str, simplified: bool, rules: tuple[str, ...]
) -> Program:
    normal = simplify_body(body, rules) if simplified else share(body)
    term = readable(Lambda(parameters, normal), letters_of(f.term))
    return Program(term, f"{kind}_{f.name}", f.location, f.fixed)


def _points(f: Program, wrt: Wrt) -> tuple[Var, ...]:
    """The parameters that wrt names."""
    _check_program(f)
    known = {p.name: p for p in f.parameters}
    if wrt is None:
        wanted: list[Any] = list(known)[:1]
    else:
        wanted = list(wrt) if isinstance(wrt, tuple | list) else [wrt]
    for name in wanted:
        if not isinstance(name, str):
            raise DifferentiationError(f"wrt names a parameter by {name!r}", hint='give its name, such as wrt="x"')
        if name not in known:
            raise DifferentiationError(
                f"{f.name} has no parameter {name!r} to differentiate by", hint=f"its parameters are {', '.join(known)}"
            )
    if not wanted:
        raise DifferentiationError(f"nothing to differentiate {f.name} by")
    twice = [name for n, name in enumerate(wanted) if name in wanted[:n]]
    if twice:
        raise DifferentiationError(f"wrt names {twice[0]!r} twice")
    points = tuple(known[name] for name in wanted)
    for point in points:
        if isinstance(point.type, Function):
            raise UnsupportedError(f"{point.name} is a named map; only derivatives by tensors can be taken")
        if _space(point).dtype is int:
            raise DifferentiationError(
                f"{point.name} holds integers, which have no derivative", hint="declare it with dtype=float"
            )
    return points


def _check_program(f: object) -> None:
    if not isinstance(f, Program):
        raise DifferentiationError(
            f"a Program was expected, not {f!r}", hint="decorate the function with @combdiff.program first"
        )


def jacobian(
    f: Program, wrt: Wrt = None, mode: str = "auto", *, simplify: bool = True, rules: Iterable[str] = ()
) -> Program:
    """The derivative of a tensor program: result axes first, then the axes of wrt (a tuple of names gives a tuple).

    With respect to a complex parameter it is the pair (∂f/∂z, ∂f/∂z̄). `mode` is "reverse" (unit cotangents pulled
    back), "forward" (unit tangents pushed forward) or "auto", which takes the one with fewer of them.
    """
    points = _points(f, wrt)
    if isinstance(split(f.term.body)[1], Tuple):
        raise UnsupportedError(f"{f.name} has several results", hint="take the jacobian of one of them at a time")
    if mode not in ("auto", "forward", "reverse"):
        raise DifferentiationError(f"unknown mode {mode!r}", hint='use "auto", "forward" or "reverse"')
    bindings, _ = split(f.term.body)
    names = Names(f.term)
    blocks = [jacobian_block(f.term.body, point, mode, names) for point in points]
    return _derived(f, f.term.parameters, let(bindings, _result(blocks, wrt)), "jacobian", simplify, tuple(rules))


def hessian(
    f: Program, wrt: str | None = None, mode: str = "auto", *, simplify: bool = True, rules: Iterable[str] = ()
) -> Program:
    """The second derivative of a real scalar program by one parameter: the jacobian of its gradient.

    With respect to a complex parameter it is the pair (∂²f/∂z∂z̄, ∂²f/∂z∂z), where H[i…, j…] differentiates by zᵢ
    first.
    """
    _check_objective(f, tuple(rules))
    (point,) = _points(f, wrt)
    bindings, _ = split(f.term.body)
    names = Names(f.term)
    backward, (gradient,) = pull(f.term.body, (point,), ONE, names)
    body = share(let((*bindings, *backward), gradient))
    block = hessian_block(body, point, mode, Names(body))
    return _derived(f, f.term.parameters, let(split(body)[0], block), "hessian", simplify, tuple(rules))


def _check_objective(f: Program, rules: tuple[str, ...]) -> None:
    _check_program(f)
    found = type_of(f.term.body)
    if not isinstance(found, Space) or found.order:
        what = (
            f"{len(found)} results" if isinstance(found, tuple) else f"a tensor of order {getattr(found, 'order', '?')}"
        )
        raise DifferentiationError(
            f"grad needs a program with one scalar result, but {f.name} gives {what}",
            hint="use pullback or jacobian, or sum the result",
        )
    if not is_real(f.term.body, rules):
        raise DifferentiationError(
            f"grad needs a real objective, but {f.name} is complex and is not found equal to its conjugate",
            hint="declare the symmetries that make it real, or return cd.real(…) of it",
        )


def _space(term: Term) -> Space:
    found = type_of(term)
    if not isinstance(found, Space):
        raise UnsupportedError(f"a tensor was expected, not {found!r}")
    return found


def _items(term: Term) -> tuple[Term, ...]:
    return term.items if isinstance(term, Tuple) else (term,)


def _result(terms: list[Term], wrt: Wrt) -> Term:
    return terms[0] if wrt is None or isinstance(wrt, str) else Tuple(tuple(terms))


def _real_value(value: Term) -> Term:
    """The value of an objective that is real, as a real number."""
    space = _space(value)
    return function("real", value) if space.dtype is complex else value


def _conjugated(gradient: Term, names: Names) -> Term:
    space = _space(gradient)
    if space.dtype is not complex:
        return gradient
    indices = names.indices(space.axes)
    return lambda_(indices, conj(apply(gradient, indices)))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
