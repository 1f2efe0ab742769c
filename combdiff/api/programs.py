"""Programs: what a user calls, prints and differentiates.

    Python function ──trace──► term ──share──► let program ──run──► arrays

    @combdiff.program                         # before: a Python function annotated with Spaces
    def double(x: combdiff.Space("n")): return 2 * x
    double(np.ones(3)), str(double)           # after: array([2., 2., 2.]) and 'x ↦ i ↦ 2 x[i]'

A `Program` is a closed term `(parameters) ↦ body` in let normal form. `transforms` makes new ones of it.

Invariant: a Program is immutable; two are equal when their terms are, up to what is bound and its names (`sameness`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from combdiff.api.explanation import Explanation, explanation
from combdiff.api.instantiation import instantiated, resolved
from combdiff.api.sameness import signature
from combdiff.api.signatures import Documentation, SignatureOf
from combdiff.errors import ArgumentError, Location, UnsupportedError, refusing_depth
from combdiff.ir import (
    Function,
    Lambda,
    Let,
    Names,
    Pullback,
    Space,
    Term,
    Var,
    Whole,
    canonical_names,
    inline_all,
    letters_of,
    readable,
    share,
    subterms,
)
from combdiff.pictures import Picture
from combdiff.planning import CostTable
from combdiff.polyhedra import Access, Lookup, check, doubtful_accesses, lookups
from combdiff.printing import combinator_text, diagram, latex, matrix_latex, matrix_text, sheet, text
from combdiff.records import dataclass
from combdiff.runtime import Compiled, Runner, checked_sizes, compiled, cost_table, source
from combdiff.simplification import declared, one_warning, restored, simplify_body
from combdiff.tracing import flag, inline, is_traced, trace_function


@dataclass(frozen=True, eq=False)
class Program:
    """A differentiable program: call it with arrays, print it, transform it.

    `parameters` are its variables in order (name and Space or Function); `location` is where the user wrote it.
    `accesses` are those that stay inside their tensors at some sizes alone; a call checks them first.
    `raw` is the body before it was simplified by the laws and `rules`. `inner` names the last parameters where the
    result is a function of them: a call without them gives that function, again a Program. `docstring` is
    the decorated function's; `steps` is what it computed, operation by operation, with the user's names for parts of
    it. A program that `is_derivative` gives no integers, even where an array of them is all that is left.
    Make one with `combdiff.program`.
    """

    term: Lambda
    name: str
    location: Location | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    accesses: tuple[Access | Lookup, ...] = ()
    raw: Term | None = None
    rules: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    docstring: str = ""
    is_derivative: bool = False
    steps: tuple[Term, Mapping[Term, str]] | None = field(default=None, repr=False)
    _runner: Runner = field(init=False, repr=False)

    def __post_init__(self) -> None:
        assert all(isinstance(var.type, Whole) for var in self.term.free), f"{self.name} has free indices"
        object.__setattr__(self, "_runner", Runner(self.term, accesses=self.accesses, real=self.is_derivative))

    __signature__ = SignatureOf()

    # --- using it --------------------------------------------------------------------------------------------------

    @property
    def parameters(self) -> tuple[Var, ...]:
        """The variables that a call must give, in order."""
        return tuple(p for p in self.term.parameters if p.name not in self.fixed and p.name not in self.inner)

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """The value for arrays given by position or by parameter name; inside a traced function, a traced value.

        Raises ArgumentError for missing, unknown or doubly given arguments and for arrays that do not fit.
        """
        values = self._bind(arguments, named)
        if self.inner:
            return self._function(values)
        if set(map(type, values)) != {np.ndarray}:
            if any(is_traced(value) for value in values):
                return inline(self.term, [v.term if isinstance(v, Program) else v for v in values])
            if found := self._with_maps(values):
                f, rest = found
                return f(**rest)
        return self._runner(values)

    def _with_maps(self, values: Sequence[Any]) -> tuple[Program, dict[str, Any]] | None:
        """The program with those that are given for named maps in their place, and the arguments left; else None."""
        pairs = list(zip(self.term.parameters, values, strict=True))
        maps = tuple((p.name, v) for p, v in pairs if isinstance(v, Program) and isinstance(p.type, Function))
        if not maps:
            return None
        taken = self.fixed.keys() | dict(maps).keys()
        return _instantiated(self, maps), {p.name: v for p, v in pairs if p.name not in taken}

    def _bind(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        """One value per parameter of the term, from positions, names and fixed arguments.

        A tuple given last stands for as many arguments as are left, as the cotangents of several results.
        """
        if not named and not self.fixed and not self.inner and len(arguments) == len(self.term.parameters):
            return list(arguments)  # as most calls are; the rest takes microseconds
        open_ = [p.name for p in self.parameters]
        left = len(open_) - len(arguments) - len(named) + 1
        if arguments and isinstance(arguments[-1], tuple) and 1 < left == len(arguments[-1]):
            arguments = (*arguments[:-1], *arguments[-1])
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
        return [given[p.name] for p in self.term.parameters if p.name not in self.inner]

    def _function(self, values: Sequence[Any]) -> Program | Closure:
        """The function that the result is: a program with these arguments fixed, or one of traced values."""
        names = [p.name for p in self.term.parameters if p.name not in self.inner]
        if any(is_traced(value) for value in values):
            parameters = tuple(p for p in self.term.parameters if p.name in self.inner)
            return Closure(self.term, tuple(values), parameters)
        return replace(self, fixed={}, inner=()).partial(**dict(zip(names, values, strict=True)))

    def partial(self, /, **arguments: Any) -> Program:
        """The program with some arguments fixed; derivatives with respect to the others keep them fixed.

        A Program given for a named map takes its place in the formula: calls become its body, derivatives of the map
        become derivatives of the program. Raises TypeMismatchError where it does not fit the declaration of the map.
        """
        names = [p.name for p in self.parameters]
        for name in arguments:
            if name not in names:
                raise ArgumentError(
                    f"{self.name} has no argument {name!r}", hint=f"its arguments are {', '.join(names)}"
                )
        maps = {p: arguments.pop(p.name) for p in self.parameters if isinstance(arguments.get(p.name), Program)}
        inner = {p: given for p, given in maps.items() if isinstance(p.type, Function)}
        f = self._instantiated(inner) if inner else self
        rest = {p.name: given for p, given in maps.items() if p not in inner}
        return replace(f, fixed={**f.fixed, **arguments, **rest})

    def _opened(self) -> Lambda:
        """The term with the parameters that are still open first."""
        fixed = tuple(p for p in self.term.parameters if p.name in self.fixed)
        return Lambda((*self.parameters, *fixed), self.term.body)

    @one_warning()
    def _instantiated(self, maps: Mapping[Var, Program]) -> Program:
        """The program with others in place of named maps; what those have fixed stays fixed, under names of its own."""
        for var, given in maps.items():
            assert isinstance(var.type, Function)
            if len(given.parameters) != len(var.type.arguments):
                raise ArgumentError(
                    f"{var.name} takes {_count(len(var.type.arguments), 'argument')}, but {given.name}, given for it, "
                    f"takes {len(given.parameters)} ({', '.join(p.name for p in given.parameters)})",
                    hint=f"fix the others: {given.name}.partial(…)",
                )
        term = instantiated(self.term, {var: given._opened() for var, given in maps.items()})
        derivative = any(isinstance(node, Pullback) and node.function in maps for node in subterms(self.term))
        body = simplify_body(term.body) if derivative else share(term.body)
        values = [
            given.fixed[p.name] for given in maps.values() for p in given.term.parameters if p.name in given.fixed
        ]
        added = term.parameters[len(self.term.parameters) - len(maps) :]
        fixed = {**self.fixed, **{p.name: value for p, value in zip(added, values, strict=True)}}
        accesses = tuple(a for part in (self, *maps.values()) for a in part.accesses)
        readable_term = readable(Lambda(term.parameters, body), letters_of(term))
        return replace(self, term=readable_term, fixed=fixed, accesses=accesses, steps=None)

    # --- looking at it ---------------------------------------------------------------------------------------------

    @property
    def _curried(self) -> Lambda:
        """The term as x ↦ (y ↦ f(x)(y)) where the result is a function."""
        count = len(self.inner)
        if not count:
            return self.term
        outer, inner = self.term.parameters[:-count], self.term.parameters[-count:]
        return Lambda(outer, Lambda(inner, self.term.body))

    def __str__(self) -> str:
        return text(self._curried)

    def __repr__(self) -> str:
        return f"<Program {self.name}: {text(self._curried)}>"

    def latex(self, aligned: bool = True) -> str:
        """LaTeX of the program in index notation, for mathematics mode.

        Definitions stand in one `aligned` environment; without it each stands on a line of its own, a formula that
        matplotlib reads. Raises TypeMismatchError for an option that is neither True nor False.
        """
        return latex(self._curried, flag(aligned, "aligned"))

    def matrix(self, latex: bool = False, aligned: bool = True) -> str:
        """The program in matrix notation, `2·A·x`, as text or LaTeX; definitions and results without one in indices.

        Products element by element are ⊙, 𝟏 is a vector of ones, 𝐈 the unit matrix, of whatever size fits. With
        `latex` it is LaTeX, in one `aligned` environment or a formula on each line, as `latex()` gives it.
        Raises TypeMismatchError for an option that is neither True nor False.
        """
        aligned = flag(aligned, "aligned")
        return matrix_latex(self.term, aligned) if flag(latex, "latex") else matrix_text(self.term)

    def _repr_latex_(self) -> str:
        return f"$${self.latex()}$$"

    def diagram(self) -> Picture:
        """The tensor network of each term as an SVG: tensors as nodes, indices as wires, those of the result open.

        A δ is a wire; dots of one colour mark axes that may be exchanged, hollow ones where that changes the sign.
        """
        spaces = {p.name: p.type for p in self.term.parameters if isinstance(p.type, Space)}
        return diagram(sheet(self._curried), spaces, f"{self.name} as tensor networks")

    def explain(self) -> Explanation:
        """The steps that led from the raw derivative to this program: each law by name, the term before and after.

        It prints as text, and in notebooks as formulas. A program that was not simplified has no steps.
        """
        body = self.term.body
        if self.raw is None:
            return Explanation(self.term.parameters, (), body, body)
        return explanation(self.term.parameters, self.raw, body, self.rules)

    def combinators(self) -> str:
        """The program without bound variables, by abstraction elimination: what `grad` differentiates.

        It is made of 𝐁 f g (x ↦ f(g(x))), 𝐂 f (f with its arguments exchanged), 𝐈 and functions of one argument; these
        may mention the variable itself, which is a capture.
        """
        return combinator_text(self.term)

    def source(self, /, backend: str = "numpy", **sizes: int) -> str:
        """Standalone Python that computes the program with the backend alone: numpy, jax, torch, cupy or dask.

        It holds for arrays of every size, and is what runs at these sizes (others count as typical). Raises
        UnsupportedError for another backend, and ArgumentError for a size that the program has not.
        """
        return source(
            self.term, self.name, checked_sizes(self.term, self.name, sizes), backend, real=self.is_derivative
        )

    def cost(self, /, memory_limit: str | float | None = None, **sizes: int) -> CostTable:
        """Flops and bytes of each step, total and peak; prints as a table.

        In numbers where all named sizes are given, else in formulas of the others, for a plan at typical values; bytes
        are those for arguments in double precision, which need no copies. With `memory_limit`, as `compile` takes one,
        it is the plan that keeps to it: loops in blocks, and states of a scan that are kept at checkpoints and computed
        again. Raises ArgumentError for a size that the program has not, and MemoryLimitError where no plan keeps to the
        limit.
        """
        return cost_table(self.term, self.name, sizes, memory_limit, real=self.is_derivative)

    def compile(self, backend: str | None = None, memory_limit: str | float | None = None) -> Compiled:
        """The program as a planned callable: on one backend (None: that of the arguments), within a memory limit.

        JAX compiles it (`jax.jit`). `memory_limit` is a number of bytes or a text such as "2GB", and counts all but the
        arguments: copies of those that come in another element type (real numbers for complex ones, lists), too.
        Raises UnsupportedError for another backend, ArgumentError for what is no limit, and, when it is called,
        MemoryLimitError with the smallest limit that works.
        """
        if self.inner:
            raise UnsupportedError(
                f"{self.name} gives a function of {', '.join(self.inner)}, which is not compiled by itself",
                hint=f"compile what it gives for arrays: {self.name}(…).compile(…)",
            )
        return compiled(self._runner, self._bind, self._with_maps, backend, memory_limit)

    @cached_property
    def _printed(self) -> str:
        """What is printed, with bound names replaced by positions."""
        return text(canonical_names(self.term))

    @cached_property
    def _signature(self) -> str:
        return signature(self.term)

    def __eq__(self, other: object) -> bool:
        """Whether the programs print alike, or compute equal parts of equal parts, whatever has a name."""
        if not isinstance(other, Program):
            return NotImplemented
        if self.term.parameters != other.term.parameters or len(self.inner) != len(other.inner):
            return False
        same_arguments = self.fixed.keys() == other.fixed.keys() and all(
            np.array_equal(value, other.fixed[name]) for name, value in self.fixed.items()
        )
        return same_arguments and (self._printed == other._printed or self._signature == other._signature)

    def __hash__(self) -> int:
        return hash(self.term.parameters)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with the primitives of rule files that it needs, so that it runs where the files are not.

        What was traced is left behind: it is nested as deep as there are steps.
        """
        parts = {part.name: getattr(self, part.name) for part in fields(self) if part.init and part.name != "steps"}
        return restored, (declared(self.term), type(self), parts)


Program.__doc__ = Documentation(Program.__doc__ or "")  # type: ignore[assignment]


@dataclass(frozen=True)
class Closure:
    """The function that a program returned for traced values."""

    term: Lambda
    values: tuple[Any, ...]
    parameters: tuple[Var, ...]

    def __call__(self, *arguments: Any) -> Any:
        """Its value at traced values and numbers."""
        if len(arguments) != len(self.parameters):
            names = ", ".join(p.name for p in self.parameters)
            raise ArgumentError(f"the function takes {_count(len(self.parameters), 'argument')} ({names})")
        return inline(self.term, [v.term if isinstance(v, Program) else v for v in (*self.values, *arguments)])


@lru_cache(maxsize=64)
def _instantiated(f: Program, maps: tuple[tuple[str, Program], ...]) -> Program:
    return f.partial(**dict(maps))


def program(definition: Callable[..., Any]) -> Program:
    """Trace a Python function whose parameters are annotated with Spaces or Functions into a Program.

    The function is called once, on placeholders. Raises TraceError or one of its kin where it does not describe a
    program, and IndexingError where a tensor is read outside of its axes at sizes that are fixed (of others a call
    tells).
    """
    traced = trace_function(definition)
    made = finished(traced.term, traced.name, traced.location, traced.inner, traced.places, traced.names)
    return replace(made, fixed=traced.constants, docstring=inspect.getdoc(definition) or "", steps=traced.steps)


@refusing_depth()
def finished(
    written: Lambda,
    name: str,
    location: Location | None = None,
    inner: tuple[str, ...] = (),
    places: Mapping[str, Location] | None = None,
    names: Mapping[Term, str] | None = None,
) -> Program:
    """The program of a term as it was written, its accesses checked.

    `places` are the lines that read elements, `names` the user's own for parts of the term.
    """
    doubtful = doubtful_accesses(written)
    check([access for access in doubtful if access.is_sized], {}, location, places or {})
    term = Lambda(written.parameters, share(resolved(written.body, Names(written)), names))
    open_: tuple[Access | Lookup, ...] = tuple(access for access in doubtful if not access.is_sized)
    open_ += lookups(Lambda(written.parameters, inline_all(written.body)) if isinstance(written.body, Let) else written)
    term = readable(term, letters_of(written))
    return Program(term, name, location, accesses=open_, inner=inner)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
