"""Running programs on arrays: sizes from shapes, one plan per program and shapes, the emitted source compiled.

    run(A, x ↦ (i ↦ Σ_j A[i,j]·x[j]), [A0, x0])
    = the array of the compiled source `return A @ x`, planned once for shapes and element types like these

Arguments are checked before anything is computed. A repeated call looks the compiled function up by shapes and
element types and calls it.

Invariant: the function that runs is the text `source` gives. Arguments are never changed, and results share no
memory with them.
"""

from __future__ import annotations

import importlib
import importlib.util
import random
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import combinations, count
from typing import Any

import numpy as np

from combdiff.codegen import source as plan_source
from combdiff.codegen import step_names
from combdiff.dialects import dialect
from combdiff.errors import (
    ArgumentError,
    ConvergenceError,
    MemoryLimitError,
    SingularError,
    UnsupportedError,
    refusing_depth,
    shown,
)
from combdiff.ir import (
    TYPICAL_SIZE,
    Lambda,
    Primitive,
    Space,
    Tuple,
    extent,
    matrices_in,
    subterms,
    type_of,
    without_scipy,
)
from combdiff.planning import (
    CostTable,
    Plan,
    in_words,
    make_plan,
    peak,
    size_names,
    specialise,
    table,
    with_real_results,
    with_sums_in_steps,
)
from combdiff.polyhedra import Access, Lookup, check
from combdiff.records import dataclass
from combdiff.runtime.arguments import Prepared, bytes_written_out, described, key, memory_order, prepare, unknown_size
from combdiff.runtime.freed_memory import keep_freed_memory
from combdiff.runtime.libraries import Library, library_named
from combdiff.runtime.limits import check_available, fitted, parse_limit
from combdiff.stability import stable
from combdiff.status import working

MOST_FOR_DP = 16  # operands up to which opt_einsum's dynamic programming is quick, where few share a label
MOST_FOR_DENSE_DP = 9  # operands up to which it is quick in any case
REPEATS = 16  # of a randomised greedy search
Bind = Callable[[tuple[Any, ...], Mapping[str, Any]], list[Any]]
EXTREMES = {"amax": "largest", "amin": "smallest", "argmax": "place of the largest", "argmin": "place of the smallest"}
MOST_PREPARED = 256  # kinds of arguments that a program is prepared for; the oldest are prepared again
TEMPERATURES = (0.3, 1.0, 3.0)  # of randomised greedy searches: how often they take what is not the best next step


# --- contraction paths ---------------------------------------------------------------------------------------------


def find_paths(
    operands: Sequence[frozenset[int]], output: frozenset[int], extents: Mapping[int, int]
) -> list[Sequence[Sequence[int]]]:
    """Contraction paths that opt_einsum, and cotengra if it is installed, propose: the same ones every time."""
    from opt_einsum import paths
    from opt_einsum.path_random import RandomGreedy

    sizes = {label: max(1, size) for label, size in extents.items()}
    finders: list[Callable[..., Any]] = [paths.greedy]
    finders += [RandomGreedy(max_repeats=REPEATS, temperature=temperature) for temperature in TEMPERATURES]
    sharing = sum(not a.isdisjoint(b) for a, b in combinations(operands, 2))
    if len(operands) <= (MOST_FOR_DP if sharing <= 2 * len(operands) else MOST_FOR_DENSE_DP):
        finders.append(paths.DynamicProgramming())
    state = random.getstate()  # the randomised search seeds Python's generator
    try:
        proposed = [finder(list(operands), output, sizes) for finder in finders]
    finally:
        random.setstate(state)
    return proposed + ([_searched(operands, output, sizes)] if _has_cotengra(len(operands)) else [])


def find_path(operands: Sequence[frozenset[int]], output: frozenset[int], extents: Mapping[int, int]) -> list[Any]:
    """The one contraction path that opt_einsum's greedy search proposes."""
    from opt_einsum import paths

    return [paths.greedy(list(operands), output, {label: max(1, size) for label, size in extents.items()})]


def _has_cotengra(operands: int) -> bool:
    """Whether a network is worth cotengra's search, which takes a second, and cotengra is there."""
    return operands > MOST_FOR_DP and importlib.util.find_spec("cotengra") is not None


def _searched(
    operands: Sequence[frozenset[int]], output: frozenset[int], sizes: Mapping[int, int]
) -> Sequence[Sequence[int]]:
    """The path that cotengra's search over greedy trees finds."""
    cotengra = importlib.import_module("cotengra")
    search = cotengra.HyperOptimizer(methods=["greedy"], max_repeats=2 * REPEATS, parallel=False, seed=0)
    path: Sequence[Sequence[int]] = search(list(map(sorted, operands)), sorted(output), dict(sizes))
    return path


# --- planning and running ------------------------------------------------------------------------------------------


class Runner:
    """A program as a callable of the list of its arguments.

    `sizes` are named sizes that no axis of an argument shows, `accesses` are checked at all sizes first, `library` is
    the one to run on, None for the arguments' own. Each kind of arguments (shapes, element types, library) is prepared
    once. What is allocated stays within `memory_limit` bytes. With `real` no result holds integers.
    """

    def __init__(
        self,
        program: Lambda,
        sizes: Mapping[str, int] | None = None,
        accesses: tuple[Access | Lookup, ...] = (),
        library: Library | None = None,
        memory_limit: int | None = None,
        real: bool = False,
    ) -> None:
        self.program = program
        self.real = real
        self.memory_limit = memory_limit
        self.accesses = accesses
        self.sizes = dict(sizes or {})
        self.library = library
        self._numbers: dict[tuple[object, ...], int] = {}
        self._functions: dict[int, Callable[[Sequence[Any]], Any]] = {}
        self._counted = count()
        positions = {p.name: n for n, p in enumerate(program.parameters)}
        held = [one for one in accesses if isinstance(one, Lookup)]
        self._lookups = [([positions[p.name] for p in one.program.parameters], one) for one in held]

    def __reduce__(self) -> tuple[Any, ...]:
        return Runner, (self.program, self.sizes, self.accesses, self.library, self.memory_limit, self.real)

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """The value at arrays, numbers and callables given in the order of the parameters."""
        number = self.number(*arguments)  # before the functions are looked at: torch.compile sees what is there then
        call = self._functions.get(number) or self._prepared(arguments)
        try:
            return call(arguments)
        except MemoryLimitError:
            raise
        except MemoryError as error:  # a copy of a view, say, which the plan does not count
            raise MemoryLimitError(str(error) or "there is not enough memory") from None
        except ArithmeticError as error:
            if type(error) is not ArithmeticError:  # those of its kinds are the user's
                raise
            raise ConvergenceError(str(error), hint="start nearer to a solution, and check that there is one") from None
        except NotImplementedError as error:
            if not str(error).startswith("an equation is solved with NumPy"):
                raise
            raise UnsupportedError(
                str(error),
                hint="detach the tensors, or differentiate with combdiff: combdiff.interop.torch_function(f)",
            ) from None
        except ModuleNotFoundError as error:
            if error.name != "scipy":
                raise
            raise without_scipy("roots and minima are found", "implicit") from None

    def number(self, *arguments: Any) -> int:
        """Which of the prepared functions takes these arguments."""
        signature = tuple(
            [(a.shape, a.dtype) if type(a) is np.ndarray and a.flags.c_contiguous else key(a) for a in arguments]
        )
        number = self._numbers.get(signature)
        if number is None:
            function = self._prepared(arguments)
            self._drop_oldest()
            number = next(self._counted)
            self._functions[number] = function
            self._numbers[signature] = number
        return number

    def _drop_oldest(self) -> None:
        for signature, number in list(self._numbers.items())[: max(0, len(self._numbers) + 1 - MOST_PREPARED)]:
            self._numbers.pop(signature, None)  # another thread may have been here
            self._functions.pop(number, None)

    # torch.compile asks once, at arguments like those to come, instead of tracing through the planner.
    number._dynamo_marked_constant = True  # type: ignore[attr-defined]

    @refusing_depth()
    def _prepared(self, arguments: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:
        prepared = prepare(self.program.parameters, arguments, self.sizes, self.library)
        for positions, lookup in self._lookups:
            if not positions:  # made of indices and sizes alone
                _look(lookup, prepared.sizes)
                continue
            given = described(arguments[positions[0]])
            if 0 not in given.shape:  # an empty list has no element type of its own
                lookup.refuse_mask(given.dtype)
        unknown = sorted(size_names(self.program) - prepared.sizes.keys())
        if unknown:
            raise unknown_size(unknown[0], "write a number in its place, or the name of an axis of an argument")
        check((one for one in self.accesses if isinstance(one, Access)), prepared.sizes)
        _check_extremes(self.program, prepared.sizes)
        names = [parameter.name for parameter in self.program.parameters]
        orders = {name: order for name, a in zip(names, arguments, strict=True) if (order := memory_order(a))}
        orders = orders if prepared.library.name == "numpy" else {}
        sizes = tuple(prepared.sizes.items())
        pairs = zip(arguments, prepared.converters, strict=True)
        copies = prepared.copies + sum(bytes_written_out(argument) for argument, convert in pairs if not convert)
        name, limit = prepared.library.name, self.memory_limit
        ordered, precisions = tuple(orders.items()), tuple(prepared.precisions.items())
        function = _compiled(_PlanRequest(self.program, sizes, self.real, name, limit, ordered, copies, precisions))
        if orders:
            function = _in_order(function, [orders.get(name) for name in names])
        if self.library is not None:
            function = self.library.finished(function)
        converters = prepared.converters
        if self._lookups:
            function = self._checked(function, prepared)
        if not any(converters):
            return lambda arguments: function(*arguments)
        return lambda arguments: function(
            *[convert(a) if convert else a for convert, a in zip(converters, arguments, strict=True)]
        )

    def _checked(self, function: Callable[..., Any], prepared: Prepared) -> Callable[..., Any]:
        """The function, after a look at the indices that its arguments hold."""
        looks = [
            (positions, partial(_look, lookup, prepared.sizes)) for positions, lookup in self._lookups if positions
        ]
        library = prepared.library

        def call(*arguments: Any) -> Any:
            given = list(arguments)
            for positions, look in looks:
                given[positions[0]] = library.looked_at(given[positions[0]], look, *(given[n] for n in positions[1:]))
            return function(*given)

        return call


def _in_order(function: Callable[..., Any], orders: Sequence[Sequence[int] | None]) -> Callable[..., Any]:
    """The function of arguments whose axes it takes in other orders: as they lie in memory."""

    def call(*arguments: Any) -> Any:
        pairs = zip(arguments, orders, strict=True)
        return function(*[argument.transpose(order) if order else argument for argument, order in pairs])

    return call


def _look(lookup: Lookup, sizes: Mapping[str, int], *arrays: np.ndarray[Any, Any]) -> None:
    """Raises IndexingError where an integer that is computed from arrays is none of the indices it is taken for."""
    if lookup.is_stored:
        lookup.check(arrays[0], sizes)
    else:
        values, used = run(lookup.program, arrays, _only(sizes, lookup.program))
        lookup.check(values, sizes, used)


def _check_extremes(program: Lambda, sizes: Mapping[str, int]) -> None:
    """Raises ArgumentError where the largest or smallest of no elements is asked for."""
    for node in subterms(program):
        if isinstance(node, Primitive) and (what := EXTREMES.get(node.name.partition("_")[0])):  # amax_ties, too
            space = type_of(node.arguments[0])
            assert isinstance(space, Space)
            extents = [extent(axis, dict(sizes)) for axis in space.axes]
            if 0 in extents[-2:] and 0 not in extents[:-2]:
                raise ArgumentError(
                    f"the {what} of no elements is asked for: an axis has length 0",
                    hint="give arrays with elements along it",
                )


def _only(sizes: Mapping[str, int], program: Lambda) -> dict[str, int]:
    """The sizes that a program has."""
    return {name: sizes[name] for name in size_names(program) if name in sizes}


@dataclass(frozen=True, repr=False)
class Compiled:
    """A planned callable: takes arguments as the program does."""

    bind: Bind
    runner: Runner
    with_maps: Callable[[Sequence[Any]], tuple[Any, dict[str, Any]] | None]
    backend: str | None
    memory_limit: str | float | None

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """The value for arrays given by position or by parameter name."""
        values = self.bind(arguments, named)
        if found := self.with_maps(values):
            f, rest = found
            return f.compile(self.backend, self.memory_limit)(**rest)
        return self.runner(values)

    def __repr__(self) -> str:
        where = f" for {self.backend}" if self.backend else ""
        within = f" within {self.memory_limit}" if self.memory_limit is not None else ""
        names = ", ".join(p.name for p in self.runner.program.parameters)
        return f"<compiled program of {names}{where}{within}>"


def compiled(
    runner: Runner,
    bind: Bind,
    with_maps: Callable[[Sequence[Any]], tuple[Any, dict[str, Any]] | None],
    backend: str | None = None,
    memory_limit: str | float | None = None,
) -> Compiled:
    """The program of a runner on one backend (None: that of the arguments); `bind` orders the arguments of a call.

    `with_maps` puts the programs among them that are given for named maps in their place.

    Raises UnsupportedError for a backend that is unknown or not installed, and ArgumentError for what is no limit.
    """
    limit = None if memory_limit is None else parse_limit(memory_limit)
    library = None if backend is None else library_named(backend)
    limited = Runner(runner.program, runner.sizes, runner.accesses, library, limit, runner.real)
    return Compiled(bind, limited, with_maps, backend, memory_limit)


def run(
    program: Lambda,
    arguments: Sequence[object],
    sizes: Mapping[str, int] | None = None,
    accesses: tuple[Access | Lookup, ...] = (),
) -> Any:
    """The value of a program at arrays, numbers and callables given in the order of its parameters.

    A tensor comes as an array of its axes (lists are converted), a scalar as a number, a named map as a callable of
    arrays; where a derivative of it is needed it has a method `pullback(position, arguments, cotangent)`. `sizes` gives
    named sizes that no axis of an argument shows. `accesses` are checked at the sizes first. The result is a fresh
    array of the arguments' library (of NumPy: a NumPy scalar where it has no axes), or a tuple of them.
    Raises ArgumentError for arguments that do not fit, naming tensor and axis, IndexingError for an access that leaves
    its tensor, and UnsupportedError for programs that arrays cannot express.
    """
    return _runner(program, tuple(sizes.items()) if sizes else (), accesses)(arguments)


@lru_cache(maxsize=32)
def _runner(program: Lambda, sizes: tuple[tuple[str, int], ...], accesses: tuple[Access | Lookup, ...]) -> Runner:
    return Runner(program, dict(sizes), accesses)


def plan(
    program: Lambda, sizes: Mapping[str, int] | None = None, *, real: bool = False, backend: str = "numpy"
) -> Plan:
    """The array steps of a program; sizes that are not given count as typical ones. With `real`, of real results."""
    every = tuple(_with_typical(program, sizes or {}).items())
    return _plan(program, every, real=real, compiles_steps=dialect(backend).iterates == "function")


def rough_plan(program: Lambda) -> Plan:
    """The plan at typical sizes, its large networks searched but little: near in cost, and soon found.

    It is the plan of the program as written: what keeps its numbers from overflowing is no matter of its form.
    """
    return make_plan(program, _with_typical(program, {}), find_path)


def _with_typical(program: Lambda, sizes: Mapping[str, int]) -> dict[str, int]:
    return dict.fromkeys(sorted(size_names(program)), TYPICAL_SIZE) | dict(sizes)


def source(
    program: Lambda,
    name: str,
    sizes: Mapping[str, int] | None = None,
    backend: str = "numpy",
    *,
    real: bool = False,
) -> str:
    """Standalone Python source of a function `name` that computes the program with the backend alone.

    It takes the parameters in order and holds for arrays of every size; `sizes` only choose the order of contractions,
    and whether element-wise chains go block by block; those not given count as typical ones. (A size that no axis of a
    parameter shows must be given, and is fixed.) With `real` no result holds integers.
    """
    hidden = sorted(size_names(program) - size_names(Tuple(program.parameters)) - set(sizes or {}))
    if hidden:
        raise unknown_size(hidden[0], f"give {hidden[0]}=… itself")
    return plan_source(specialise(plan(program, sizes, real=real, backend=backend), backend), name, backend)


def checked_sizes(program: Lambda, name: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """Sizes of the program that the user gave, as whole numbers.

    Raises ArgumentError for a size that the program has not, and for what is no size.
    """
    known = sorted(size_names(program))
    for size, value in sizes.items():
        if size not in known:
            raise ArgumentError(f"{name} has no size {size!r}", hint=f"its sizes are {', '.join(known) or 'fixed'}")
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
            raise ArgumentError(f"{shown(value)} is no size for {size}", hint="give a whole number")
    return {size: int(value) for size, value in sizes.items()}


def cost_table(
    program: Lambda,
    name: str,
    sizes: Mapping[str, int],
    memory_limit: str | float | None = None,
    *,
    real: bool = False,
) -> CostTable:
    """What each step of a program costs: in numbers, or in formulas of the sizes that are not given.

    The plan is that for the sizes given, and typical ones for the others; within a memory limit, numbers for all.
    Raises ArgumentError for a size that the program has not, for what is no size or no limit, and MemoryLimitError for
    a limit that is too small.
    """
    known = checked_sizes(program, name, sizes)
    doubles = {p.name: np.dtype(float).itemsize for p in program.parameters if isinstance(p.type, Space)}
    if memory_limit is None:
        planned = specialise(plan(program, known, real=real), "numpy", precisions=doubles)
        return table(planned, step_names(planned, name), sizes)
    every = tuple(_with_typical(program, known).items())
    limit, precisions = parse_limit(memory_limit), tuple(doubles.items())
    planned = _within(_PlanRequest(program, every, real, limit=limit, precisions=precisions))
    return table(planned, step_names(planned, name), size_names(program), has_formulas=False)


@lru_cache(maxsize=32)
@refusing_depth()
@working("planning")
def _plan(
    program: Lambda,
    sizes: tuple[tuple[str, int], ...],
    orders: tuple[tuple[str, tuple[int, ...]], ...] = (),
    *,
    real: bool,
    compiles_steps: bool = False,
) -> Plan:
    steady = stable(program)
    if compiles_steps:
        steady = with_sums_in_steps(steady, dict(sizes))
    planned = make_plan(steady, dict(sizes), find_paths, dict(orders))
    return with_real_results(planned) if real else planned


@dataclass(frozen=True)
class _PlanRequest:
    """What is to be planned: a program at some sizes, for a backend, within a memory limit.

    `real` says that results are no integers; `orders` are those of the axes of arguments in memory, by name, and
    `copies` the bytes of copies of arguments: in the element types that are taken, and those that BLAS may make.
    `precisions` are the bytes of a real number in these types.
    """

    program: Lambda
    sizes: tuple[tuple[str, int], ...]
    real: bool
    backend: str = "numpy"
    limit: int | None = None
    orders: tuple[tuple[str, tuple[int, ...]], ...] = ()
    copies: int = 0
    precisions: tuple[tuple[str, int], ...] = ()


def _within(request: _PlanRequest) -> Plan:
    """The plan, in blocks where it must be to keep to the memory limit."""
    backend, limit, copies = request.backend, request.limit, request.copies
    compiles_steps = dialect(backend).iterates == "function"
    whole = _plan(request.program, request.sizes, request.orders, real=request.real, compiles_steps=compiles_steps)
    precisions = dict(request.precisions)
    planned = specialise(whole, backend, precisions=precisions)
    if limit is None or peak(planned) + copies <= limit:
        return planned
    if not dialect(backend).in_place:
        raise UnsupportedError(
            f"the backend {backend!r} cannot keep to a memory limit of {in_words(limit)}: its arrays never change, "
            "so it runs nothing in blocks",
            hint=f"compile for numpy, cupy or torch, or with memory_limit={peak(planned)}, the smallest that works",
        )
    return fitted(specialise(whole, backend, fuses=False, precisions=precisions), limit, copies, peak(planned))


@lru_cache(maxsize=32)
@working("compiling")
def _compiled(request: _PlanRequest) -> Callable[..., Any]:
    """The function that the source of the program at these sizes defines."""
    planned, backend = _within(request), request.backend
    if backend in ("numpy", "torch"):
        check_available(planned, request.copies)
        keep_freed_memory()
    text = plan_source(planned, "program", backend)
    # Named like this module, the text counts as combdiff's own when an error looks for the user's line. What names no
    # module is looked for in every module that is loaded, each time Dask makes a name of a function; one that cannot
    # be imported is refused by torch.compile.
    namespace: dict[str, Any] = {} if backend == "torch" else {"__name__": f"{__name__} (source of a program)"}
    try:
        exec(compile(text, f"{__file__} (source of a program)", "exec"), namespace)
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("scipy"):
            raise
        raise without_scipy("special functions are computed") from None
    compiled: Callable[..., Any] = namespace["program"]
    if not matrices_in(request.program):
        return compiled
    return _refusing_singular(compiled, library_named(backend).singular())


def _refusing_singular(compiled: Callable[..., Any], singular: type[Exception]) -> Callable[..., Any]:
    """The function with a library's error for a singular matrix told as combdiff's."""

    def call(*arguments: Any) -> Any:
        try:
            return compiled(*arguments)
        except singular as error:
            kind = "a positive definite" if "positive" in str(error) else "an invertible"
            hint = f"the value or derivative at these arrays does not exist; give {kind} matrix"
            raise SingularError(str(error), hint=hint) from None
        except TypeError as error:  # NumPy's, for elements of 16 and of 128 bits
            if "unsupported in linalg" not in str(error):
                raise
            raise ArgumentError(
                f"functions of matrices are not computed for these arrays: {error}", hint="give float64 or float32"
            ) from None

    return call
