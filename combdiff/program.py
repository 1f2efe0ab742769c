"""Programs: what a user calls, prints and differentiates.

    Python function ──trace──► term ──share──► let program ──run──► arrays

    @combdiff.program                         # before: a Python function annotated with Spaces
    def double(x: combdiff.Space("n")): return 2 * x
    double(np.ones(3)), str(double)           # after: array([2., 2., 2.]) and 'x ↦ i ↦ 2 x[i]'

A `Program` is a closed term `(parameters) ↦ body` in let normal form. `transforms` makes new ones of it.

Invariant: a Program is immutable; two are equal when their terms are, up to the names they bind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from combdiff.accesses import Access, check, doubtful_accesses
from combdiff.derivation import pulled_back
from combdiff.errors import ArgumentError, Location, RuleError
from combdiff.execution import Compiled, Runner, compiled, run, source
from combdiff.primitives import Row, register
from combdiff.printing import latex, matrix_latex, matrix_text, text
from combdiff.printing.combinators import combinator_text
from combdiff.readability import letters_of, readable
from combdiff.rulefiles.declarations import declared
from combdiff.sharing import canonical_names, share
from combdiff.simplification import simplify_body
from combdiff.terms import Lambda, Term, Var
from combdiff.tracing import inline, is_traced, trace_function


@dataclass(frozen=True, eq=False)
class Program:
    """A differentiable program: call it with arrays, print it, transform it.

    `parameters` are its variables in order (name and Space or Function); `location` is where the user wrote it.
    `accesses` are those that stay inside their tensors at some sizes alone; a call checks them first.
    Make one with `combdiff.program`.
    """

    term: Lambda
    name: str
    location: Location | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    accesses: tuple[Access, ...] = ()
    _runner: Runner = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_runner", Runner(self.term, accesses=self.accesses))

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
        return self._runner(values)

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
        parameters, body = pulled_back(self.term, (self.parameters[position],), tupled=False)
        term = Lambda(parameters, simplify_body(body, ()))
        return run(term, [*self._bind(tuple(arguments), {}), cotangent], accesses=self.accesses)

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

    def matrix(self, latex: bool = False) -> str:
        """The program in matrix notation, `2·A·x`, as text or LaTeX; definitions and results without one in indices.

        Products element by element are ⊙, 𝟏 is a vector of ones, 𝐈 the unit matrix, of whatever size fits.
        """
        return matrix_latex(self.term) if latex else matrix_text(self.term)

    def _repr_latex_(self) -> str:
        return f"$${self.latex()}$$"

    def combinators(self) -> str:
        """The program by abstraction elimination: 𝐁, 𝐂, 𝐈 and univariate primitives with captures."""
        return combinator_text(self.term)

    def source(self, backend: str = "numpy") -> str:
        """Standalone Python that computes the program with the backend alone: numpy, jax, torch, cupy or dask."""
        return source(self.term, self.name, backend=backend)

    def compile(self, backend: str | None = None, memory_limit: str | int | None = None) -> Compiled:
        """The program as a planned callable: on one backend (None: that of the arguments), within a memory limit.

        JAX compiles it (`jax.jit`). A limit is bytes or a text such as "2GB", and counts all but the arguments.
        """
        return compiled(self._runner, self._bind, backend, memory_limit)

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

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with the primitives of rule files that it needs, so that it runs where the files are not."""
        return _restored, (declared(self.term), tuple(getattr(self, part.name) for part in fields(self) if part.init))


def _restored(rows: Sequence[Row], parts: Sequence[Any]) -> Program:
    """A Program from its pickle."""
    for row in rows:
        if not register(row):
            raise RuleError(
                f"a program uses the primitive {row.name} of {row.origin}, which means something else in this process"
            )
    return Program(*parts)


def program(definition: Callable[..., Any]) -> Program:
    """Trace a Python function whose parameters are annotated with Spaces or Functions into a Program.

    Raises TraceError or one of its kin where the function does not describe a program, and IndexingError where a tensor
    is read outside of its axes at sizes that are fixed (of others a call tells).
    """
    traced = trace_function(definition)
    doubtful = doubtful_accesses(traced.term)
    check([access for access in doubtful if access.is_sized], {}, traced.location)
    term = Lambda(traced.term.parameters, share(traced.term.body))
    open_ = tuple(access for access in doubtful if not access.is_sized)
    return Program(readable(term, letters_of(traced.term)), traced.name, traced.location, accesses=open_)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
