"""The trace under way: which program is being traced, which names are taken, which indices are open.

    @cd.program                        a Trace opens, with the names of the parameters taken
    def f(x: V):
        return cd.sum(lambda i: x[i])  the Binder of i opens, learns its domain from x, closes
                                       the Trace closes

While the lambda runs, the domain of `i` may still be unknown, so a placeholder `?i` stands for it, which is replaced
by the typed variable when the lambda is done.

Invariant: a traced value is used only in the trace that made it, and an index only inside its lambda; all else
raises TraceError.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType
from typing import Any, NoReturn

import numpy as np

from combdiff.errors import (
    IndexingError,
    Location,
    SpaceError,
    TraceError,
    UnsupportedError,
    local_name,
    name_of_value,
    shown,
    user_asks,
)
from combdiff.ir import (
    Domain,
    Names,
    Number,
    Range,
    Real,
    Size,
    Space,
    Symmetric,
    Term,
    Var,
    Whole,
    base_name,
)
from combdiff.records import dataclass
from combdiff.tracing.scipy_names import numbers_function

Array = np.ndarray[Any, Any]

_current: ContextVar[Trace | None] = ContextVar("combdiff_trace", default=None)


class Trace:
    """One run of a decorated function: the names given out and the lambdas that are running."""

    def __init__(self, name: str, location: Location, parameters: Iterable[Term], code: CodeType) -> None:
        self.name = name
        self.code = code
        self.location = location
        self.names = Names(*parameters)
        self.open: dict[Var, Binder] = {}
        self.closed: set[Var] = set()
        self.stepped: set[Var] = set()  # indices and states of the steps of scans that are done
        self.places: dict[str, Location] = {}  # where each element is first read, by what a message calls it
        self.constants: dict[Var, Array] = {}
        self._sources: dict[Var, tuple[Array, int]] = {}  # what each constant is made of
        self.locals: dict[Term, tuple[int, str]] = {}  # what the user calls a value, and in how deep a function
        self.rests: dict[Var, Term] = {}  # of indices divided, each with what it is the rest of

    def __str__(self) -> str:
        return f"the program {self.name} ({self.location})"

    def fresh_indices(self, domains: Iterable[Domain]) -> tuple[Var, ...]:
        """New index variables for whole-tensor operations."""
        return self.names.indices(domains, letters="ijklmnpq")

    def constant(self, array: Array, *, of: tuple[Array, int] | None = None, name: str = "") -> Var:
        """The variable that stands for an array of the surrounding scope, under the name that it has there.

        `of` says for an array made here which one it is made of, and which of several: it is not made twice.
        """
        source = of or (array, 0)
        for variable, (known, which) in self._sources.items():
            if _is_same(known, source[0]) and which == source[1]:
                return variable
        space = Space(*array.shape, dtype=_element_type(array))
        variable = self.names.parameter(Var(name or name_of_value(source[0]) or "c", space))
        self._sources[variable] = source
        # torch.compile takes no array that runs backwards
        self.constants[variable] = array if min(array.strides, default=0) >= 0 else array.copy()
        return variable

    def used(self, term: Term, value: object) -> None:
        """Notes the local variable that holds a value where it is used, the first of the outermost function."""
        if isinstance(term, Var | Number):
            return
        found = local_name(value, self.code)
        if found and (term not in self.locals or found[0] < self.locals[term][0]):
            self.locals[term] = found

    def closes(self, named: Callable[[Term], Term]) -> None:
        """Says in what has a name, too, which variables the indices of a lambda are that is done."""
        self.locals = {named(term): name for term, name in self.locals.items()}

    @contextmanager
    def lambda_running(self, names: Iterable[str], domains: Mapping[str, Domain]) -> Iterator[list[Binder]]:
        """Binders of the names, open while the block runs."""
        binders = [self._binder(name, domains.get(name)) for name in names]
        self.open.update((binder.placeholder, binder) for binder in binders)
        try:
            yield binders
        finally:
            for binder in binders:
                del self.open[binder.placeholder]
                self.closed.add(binder.placeholder)

    def _binder(self, name: str, domain: Domain | None) -> Binder:
        unique = self.names.fresh(Var(name, Whole())).name
        return Binder(name, Var(f"?{unique}", Whole()), domain, "its keyword" if domain else "", given=bool(domain))


def _is_same(one: Array, other: Array) -> bool:
    """Whether two arrays are one, or the same view of one, such as edges[:, 0] wherever it is written."""
    return one is other or (one.base is not None and _view(one) == _view(other))


def _view(array: Array) -> tuple[object, ...]:
    return array.ctypes.data, array.shape, array.strides, array.dtype


def _element_type(array: Array) -> type:
    """The element type of a Space for an array. Raises UnsupportedError where its elements are no numbers."""
    kinds = {"b": int, "i": int, "u": int, "f": float, "c": complex}
    if array.dtype.kind not in kinds:
        raise UnsupportedError(
            f"an array of {array.dtype} is used in a program",
            hint="a constant array holds numbers: floats, complex, ints",
        )
    return kinds[array.dtype.kind]


@contextmanager
def tracing(name: str, location: Location, parameters: Iterable[Term], code: CodeType) -> Iterator[Trace]:
    """A new trace of a function that has that code, current while the block runs."""
    trace = Trace(name, location, parameters, code)
    token = _current.set(trace)
    try:
        yield trace
    finally:
        _current.reset(token)


def current(what: str) -> Trace:
    """The trace under way; raises TraceError, naming what needs one, outside of every program."""
    trace = _current.get()
    if trace is None:
        raise TraceError(
            f"{what} is used outside of a program",
            hint="use it in a function decorated with @cd.program; on arrays use NumPy",
        )
    return trace


def check_live(term: Term, owner: Trace) -> None:
    """Raises TraceError if a value made by the trace `owner` cannot be used now: see the invariant above."""
    trace = _current.get()
    if trace is not owner:
        here = f"inside {trace}" if trace else "after that program was traced"
        raise TraceError(
            f"a traced value of {owner} is used {here}",
            hint="pass it as a parameter, or return it; do not keep it in an outer variable",
        )
    if not owner.stepped.isdisjoint(term.free):
        raise TraceError(
            "a value that a step of cd.scan computes is used outside of the step",
            hint="let the step return it, (next_carry, y), and use what cd.scan gives",
        )
    if not owner.closed.isdisjoint(term.free):
        finished = min(base_name(var) for var in owner.closed & term.free)
        if any(isinstance(var.type, Space) for var in owner.closed & term.free):
            raise TraceError(
                f"the unknown {finished} is used outside of the lambda that has it as a parameter",
                hint="use what cd.root or cd.argmin gives",
            )
        raise IndexingError(
            f"the index {finished} is used outside of the lambda that has it as a parameter",
            hint=f"use {finished} only inside its lambda: cd.tensor(lambda {finished}: …) keeps all the values",
        )


@dataclass
class Binder:
    """One parameter of a running lambda: the domain it has so far, and what gave it that domain.

    `given` says that it was a keyword; `compared` and `whole_use` note uses that the real line does not allow. `cycle`
    is a Cyclic axis that it indexes shifted, x[i + 1], and what a message calls it.
    """

    name: str
    placeholder: Var
    domain: Domain | None
    origin: str
    given: bool
    compared: bool = False
    whole_use: str = ""
    cycle: tuple[Domain, str] | None = None

    def indexes(self, axis: Domain, where: str) -> None:
        """Notes that the index stands bare on an axis; `where` is how a message calls it.

        Raises IndexingError if the index has another domain already. An index whose domain was given keeps it, on any
        axis of whole numbers: whether it stays inside is checked with the other accesses.
        """
        if self.domain is None:
            self.domain, self.origin = axis, where
        elif self.domain != axis and not (self.given and isinstance(axis, Real) == isinstance(self.domain, Real)):
            raise IndexingError(
                f"the index {self.name} is over {show_domain(axis)} by {where}, "
                f"but over {show_domain(self.domain)} by {self.origin}",
                hint="give both axes the same domain, or use two indices; a range that is given wins, "
                f"{self.name}=3 for the first three",
            )

    def variable(self, signature: str) -> Var:
        """The typed variable, once the lambda is done. `signature` is the call, as in `cd.sum(lambda i, k: …`."""
        if self.domain is None and self.cycle is not None:  # once round, whatever it is shifted by
            self.domain, self.origin = self.cycle
        if self.domain is None:
            raise IndexingError(
                f"the domain of the index {self.name} is unknown: it indexes no axis by itself",
                hint=f"write {signature}, {self.name}=5) for the indices 0 … 4",
            )
        if isinstance(self.domain, Real):
            self._check_real()
        return Var(self.placeholder.name.removeprefix("?"), self.domain)

    def _check_real(self) -> None:
        if self.compared:
            raise UnsupportedError(
                f"the index {self.name} runs over the real line and is compared: only whole indices can be",
                hint="multiply by a function of the declared Space(cd.Real()) instead, or use cd.delta",
            )
        if self.whole_use:
            raise IndexingError(
                f"the index {self.name} runs over the real line by {self.origin}, but is used on {self.whole_use}"
            )


# --- names for messages --------------------------------------------------------------------------------------------


def size_of(domain: Domain) -> Size:
    """The size of a domain, the bound of a Symmetric one; 0 for the real line."""
    if isinstance(domain, Symmetric):
        return domain.bound
    return 0 if isinstance(domain, Real) else domain.size


def show_domain(domain: Domain) -> str:
    """A domain as the user writes it: 5, 'N', Cyclic('N')."""
    inner = "" if isinstance(domain, Real) else repr(size_of(domain))
    return inner if isinstance(domain, Range) else f"{type(domain).__name__}({inner})"


def show_space(space: Space) -> str:
    """A Space as a message says it: 'real over (5, 'N')', 'a complex number'."""
    kind = "complex" if space.dtype is complex else "real"
    return f"{kind} over ({', '.join(map(show_domain, space.axes))})" if space.axes else f"a {kind} number"


def as_domain(given: object, name: str) -> Domain:
    """The domain a keyword such as `k=5` or `b=cd.Symmetric("B")` gives the index `name`."""
    try:
        return Space(given).axes[0]  # type: ignore[arg-type]
    except SpaceError:
        raise IndexingError(
            f"the index {name} was given the domain {shown(given)}",
            hint=f'give a size or a domain: {name}=5, {name}="N", {name}=x.shape[0] or {name}=cd.Cyclic("N")',
        ) from None


SIDE_BY_SIDE = (
    "write np.stack([a, b]) for a row of numbers or of tensors, np.block([[a, b], [c, d]]) for several rows of numbers"
)
_ARRAY_MAKERS = ("array", "asarray", "asanyarray", "ascontiguousarray", "asarray_chkfinite")


class TracedValue:
    """Base of everything a traced function computes with: Python can ask it for no number, truth value or item."""

    kind = "traced value"
    is_mask = False

    def _refuse(self, use: str, hint: str) -> NoReturn:
        if asking := numbers_function(sys._getframe(1)):
            name, hint = asking
            raise UnsupportedError(
                f"{name} is not supported in a program: it asks for numbers, and a {self.kind} has none while the "
                "program is traced",
                hint=hint,
            )
        raise TraceError(f"{use} a {self.kind}, which has no value while the program is traced", hint=hint)

    def __bool__(self) -> bool:
        self._refuse(
            "Python's if, and, or, not, in or a chain such as 0 <= i < 3 needs the truth of",
            "write cd.where(i <= j, a, b) for index conditions, joined by & and | with parentheses; "
            "cd.maximum, cd.relu, cd.sign or cd.abs for values",
        )

    def __float__(self) -> float:
        self._refuse_number("float")

    def __int__(self) -> int:
        self._refuse_number("int")

    def __complex__(self) -> complex:
        self._refuse_number("complex")

    def __index__(self) -> int:
        self._refuse("Python asks for the whole number of", "for a loop over an index write cd.sum(lambda i: …)")

    def __len__(self) -> int:
        self._refuse("len() is asked of", "write sizes as in the Space, or leave loops to cd.sum(lambda i: …)")

    def __iter__(self) -> Iterator[object]:
        self._refuse("Python loops over or unpacks", "write cd.sum(lambda i: …) or cd.tensor(lambda i: …)")

    def __array__(self, *_: object, **__: object) -> NoReturn:
        operation, text = user_asks()
        self._refuse_assignment(operation)
        name, *call = text.split("(", 1)
        if call and name.rpartition(".")[2] in _ARRAY_MAKERS:
            self._refuse(
                f"{name} makes an array of numbers, and is given",
                f"{SIDE_BY_SIDE}; a tensor needs no conversion",
            )
        self._refuse(
            "NumPy asks for the numbers of",
            "use cd functions, or NumPy's own of the same name; write lists of numbers as np.stack([a, b]), and leave "
            "np.vectorize out",
        )

    def _refuse_number(self, asked: str) -> NoReturn:
        operation, text = user_asks()
        self._refuse_assignment(operation)
        of_objects = any(f"{maker}(" in text for maker in _ARRAY_MAKERS)  # with a dtype, or asked for their mean
        without = "leave the conversion out" + (", and write np.sqrt for math.sqrt" if asked == "float" else "")
        self._refuse(f"{asked}() is asked of", SIDE_BY_SIDE if of_objects else without)

    def _refuse_assignment(self, operation: str) -> None:
        """The error for `y[0] = x[1]`, where y is an array of NumPy's, which asks what is assigned for its number."""
        if operation in ("STORE_SUBSCR", "STORE_SLICE"):
            self._refuse(
                "an assignment puts into an array of NumPy's, which holds numbers alone,",
                "build the new tensor: np.stack([a, b]), np.concatenate, np.where(np.arange(n) == k, a, y) or "
                "cd.tensor(lambda i: …)",
            )

    def __format__(self, form: str) -> str:
        if form:
            self._refuse("a text is made of", "leave the format out, or print what the program returns")
        return str(self)

    def __setitem__(self, key: object, value: object) -> None:
        self._refuse("an assignment changes an element of", "build the new tensor with cd.tensor(lambda i: …)")
