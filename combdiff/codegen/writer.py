"""Standalone source of a plan: what this text says is what runs.

    x ↦ Σ_{i,j} x[i]·A[i,j]·x[j]     becomes     def f(A, x):
                                                     t2 = A @ x  # (N,) matrix-vector
                                                     t3 = t2 @ x  # () dot
                                                     return t3

The function holds for arrays of every size and element type; the sizes of the plan only chose the order of the
contractions. float32 stays float32: constants are Python numbers, arrays of 0 and 1 take the type of the arguments.

Invariant: the text needs its backend alone, never changes an argument, and returns arrays that share no memory with
one.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from textwrap import indent

from combdiff.codegen.iteration import IterationLoop, loop_lines, results_of
from combdiff.codegen.sweeps import BlockLines, SweepLoop, back_lines, forward_lines
from combdiff.dialects import IndexArrays, NumPyDialect, dialect, parenthesised
from combdiff.ir import Function, Range, Space, Symmetric, size_parts
from combdiff.kernels import needed, standard_imports
from combdiff.planning import (
    Arrange,
    ChosenProduct,
    Collect,
    Combine,
    ConjugateElements,
    Decomposition,
    DecompositionResult,
    ElementwiseStep,
    Fill,
    Iteration,
    Layout,
    Loop,
    Mask,
    MaskedContract,
    Operation,
    Parameter,
    PartialResult,
    Plan,
    Powers,
    PrefixSum,
    Read,
    Rescale,
    Scale,
    SolveEquation,
    Step,
    Sweep,
    SweepBack,
    Words,
    plain_name,
    repeated,
    written_over,
)
from combdiff.polyhedra import Linear


def source(plan: Plan, name: str, backend: str = "numpy") -> str:
    """The source of `def name(parameters): …` with the imports that it needs, and behind it the helpers.

    Raises UnsupportedError for a backend that is none of `dialects.DIALECTS`.
    """
    used = dialect(backend)
    functions = list(_SourceWriter(plan, name, used).functions())
    solves = any(text.startswith("def _") for text in functions)
    numpy = () if used.solves or not solves else dialect("numpy").imports
    helpers = needed(used.helpers(), functions).values()
    parts = {r"\bjax\.(lax|jit)\b": "import jax", r"\bjax\.scipy\.linalg\b": "import jax.scipy.linalg"}
    jax = tuple(line for part, line in parts.items() if any(re.search(part, text) for text in (*functions, *helpers)))
    libraries = (used, dialect("numpy")) if numpy else (used,)
    special = [each.special_import for each in libraries if _calls_special(each, functions)]
    standard = [*own, ""] if (own := standard_imports((*functions, *helpers))) else []
    imports = "\n".join(dict.fromkeys((*standard, *jax, *used.imports, *numpy, *special)))
    return "\n\n\n".join(text.rstrip() for text in (imports, *functions, *helpers)) + "\n"


def _calls_special(used: NumPyDialect, functions: Sequence[str]) -> bool:
    """Whether functions call a special function in the words of a dialect."""
    return any(re.search(rf"(?<![\w.]){used.special}\.", text) for text in functions)


def step_names(plan: Plan, name: str) -> list[str]:
    """The names that the steps of a plan have in the source of a function of that name."""
    return _SourceWriter(plan, name, dialect("numpy")).names


def _on_numpy_arrays(plan: Plan, name: str) -> str:
    """The function of a plan for NumPy arrays, with helpers of its own, in the source for another library."""
    numpy = dialect("numpy")
    functions = list(_SourceWriter(plan, name, numpy).functions())
    parts = [text.rstrip() for text in (*functions, *needed(numpy.helpers(), functions).values())]
    head = f'def _{name}():\n    """An equation on NumPy arrays."""\n'
    return head + indent("\n\n".join([*parts, f"return {name}"]), "    ") + f"\n\n\n{name} = _{name}()"


class _SourceWriter:
    """Names for steps and sizes, and the lines of the function."""

    def __init__(
        self,
        plan: Plan,
        name: str,
        dialect: NumPyDialect,
        functions: set[str] | None = None,
        around: _SourceWriter | None = None,
        arguments: Mapping[str, str] | None = None,
    ) -> None:
        self.plan = plan
        self.dialect = dialect
        self.is_repeated = around is not None  # so that nothing that it made is left when it begins again
        self.function = name
        self.defined = {name} if functions is None else functions
        names = {"np", "special", "real", "device", "start", "stop", "functools", "itertools", "jax"}
        fixed = {*names, dialect.np, dialect.special}
        self.taken: set[str] = around.taken if around else fixed | {*self.defined, *keyword.kwlist, *dialect.helpers()}
        solved = [step.operation.system for step in plan.steps if isinstance(step.operation, SolveEquation)]
        self.systems = {system: self._fresh(f"{name}_{plain_name(system.parameters[0])}") for system in solved}
        apart = "_on_host" if dialect.attempts else ""
        self.host_systems = {system: self._fresh(own + apart) if apart else own for system, own in self.systems.items()}
        self.defined.update((*self.systems.values(), *self.host_systems.values()))
        self.arguments = dict(arguments or {p.name: self._fresh(p.name) for p in plan.parameters})
        starts = dict.fromkeys([*(loop.start for loop in plan.loops), *(one.start for one in plan.sweeps)], "start")
        self.sizes = {size: starts.get(size) or self._size_name(size, around) for size in sorted(plan.sizes)}
        self.names = [self._name(n, step) for n, step in enumerate(plan.steps)]
        self.index_arrays = IndexArrays(self._fresh)
        self.words = self._words()
        if around:
            self.words.used_sizes = around.words.used_sizes
            self.words.integers = around.words.integers
        self.iterated = {
            n: self._step_writer(n, step.operation)
            for n, step in enumerate(plan.steps)
            if isinstance(step.operation, Iteration)
        }
        self.asking = {n: self._condition_writer(n, writer) for n, writer in self.iterated.items()}
        self.swept = {n: self._block_writers(n, step.operation) for n, step in enumerate(plan.steps)}

    def _words(self) -> Words:
        """What the operations of the plan are written in."""
        steps = self.plan.steps
        spaces = {var.type.dtype for var in self.plan.parameters if isinstance(var.type, Space)}
        return Words(
            dialect=self.dialect,
            names=self.names,
            axes=[step.axes for step in steps],
            kinds=[step.kind for step in steps],
            numbers=self.plan.numbers,
            positive=self.plan.positive,
            constants={n: step.operation.number for n, step in enumerate(steps) if isinstance(step.operation, Fill)},
            arguments=self.arguments,
            sizes={size: Linear.symbol(text) for size, text in self.sizes.items()},
            systems=self.systems,
            host_systems=self.host_systems,
            planned=self.plan.sizes,
            index_arrays=self.index_arrays,
            integers=spaces == {int},
        )

    def _size_name(self, size: str, around: _SourceWriter | None) -> str:
        return around.sizes[size] if around and size in around.sizes else self._fresh(size)

    def _step_writer(self, n: int, operation: Iteration) -> _SourceWriter:
        """The writer of the lines of a step, where its states and slices have names of their own."""
        inner = self.plan.inner[operation.system]
        own = operation.states + operation.stacks
        others = iter(self.plan.steps[n].operands[own:])
        arguments: dict[str, str] = {}
        for position, parameter in enumerate(operation.system.parameters):
            if position < own:
                arguments[parameter.name] = self._fresh(parameter.name.split(".")[0])
            elif isinstance(parameter.type, Function):
                arguments[parameter.name] = self.arguments[parameter.name]
            else:
                arguments[parameter.name] = self.words.operand(next(others))
        return _SourceWriter(inner, self.function, self.dialect, self.defined, self, arguments)

    def _iteration_lines(self, n: int, operation: Iteration) -> Iterator[str]:
        inner = self.iterated[n]
        body = tuple(inner._body(told=True))
        asked, conditions = self._asked(n)
        parameters = operation.system.parameters
        kinds = tuple(p.type.dtype for p in parameters[: operation.states] if isinstance(p.type, Space))
        outputs = tuple(inner._output(m, kind) for m, kind in zip_longest(inner.plan.results, kinds))
        self.words.uses_real |= inner.words.uses_real
        names = [inner.arguments[p.name] for p in parameters]
        own = operation.states + operation.stacks
        states = [names[k] for k in range(operation.states) if self.plan.steps[self.plan.steps[n].operands[k]].axes]
        loop = IterationLoop(
            operation,
            tuple(map(self.words.operand, self.plan.steps[n].operands)),
            results_of(self.plan, n, self.names),
            kinds,
            tuple(names[: operation.states]),
            tuple(names[operation.states : own]),
            body,
            outputs,
            tuple(m in inner.plan.copied for m in inner.plan.results),
            tuple(names[operation.states + k] for k in range(operation.stacks) if self._views_temporary(n, k)),
            self._fresh("step" if "t" in self.taken else "t"),
            self._fresh(f"{self.function}_step"),
            asked,
            conditions,
            self._fresh(f"{self.function}_goes_on"),
            inner._remaining(),
            tuple(states),
        )
        yield from loop_lines(loop, self.words, self.dialect)

    def _condition_writer(self, n: int, step: _SourceWriter) -> _SourceWriter | None:
        """The writer of the lines that ask whether there is one more step."""
        operation = self.plan.steps[n].operation
        assert isinstance(operation, Iteration)
        if operation.conditions is None:
            return None
        asked = self.plan.inner[operation.conditions]
        return _SourceWriter(asked, self.function, self.dialect, self.defined, self, dict(step.arguments))

    def _asked(self, n: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The lines that ask whether there is one more step, and the truth values that they give."""
        inner = self.asking[n]
        if inner is None:
            return (), ()
        lines = tuple(inner._body(told=True))
        self.words.uses_real |= inner.words.uses_real
        return lines, tuple(map(inner.words.operand, inner.plan.results))

    def _views_temporary(self, n: int, stack: int) -> bool:
        """Whether the slices of a tensor that an iteration reads are views of what the plan has made."""
        operation = self.plan.steps[n].operation
        assert isinstance(operation, Iteration)
        m = self.plan.steps[n].operands[operation.states + stack]
        if len(self.plan.steps[m].axes) < 2:
            return False
        while not self.plan.steps[m].fresh and self.plan.steps[m].operands:
            m = self.plan.steps[m].operands[0]
        return not isinstance(self.plan.steps[m].operation, Parameter)

    def _block_writers(self, n: int, operation: Operation) -> tuple[_SourceWriter, ...]:
        """The writers of the lines of a block of a sweep: of what it does, and of what is done forward again."""
        operands = self.plan.steps[n].operands
        functions = {p.name: self.arguments[p.name] for p in self.plan.parameters if isinstance(p.type, Function)}
        if not isinstance(operation, Sweep | SweepBack):
            return ()
        given = operands[len(operands) - len(operation.captured) :]
        captured = dict(zip(operation.captured, map(self.words.operand, given), strict=True))
        states = {
            p.name: self._fresh(p.name.split("_")[0])
            for p in self.plan.inner[operation.body].parameters
            if p.name not in captured
        }
        arguments = {**functions, **captured, **states}
        return tuple(
            _SourceWriter(self.plan.inner[str(name)], self.function, self.dialect, self.defined, self, arguments)
            for name in repeated(self.plan.steps[n])
        )

    def _sweep_lines(self, n: int, operation: Sweep | SweepBack) -> Iterator[str]:
        sweep = operation.forward if isinstance(operation, SweepBack) else operation
        operands = self.plan.steps[n].operands
        first = 1 if isinstance(operation, SweepBack) else 0
        loop = SweepLoop(
            self.plan,
            n,
            self.names[operands[0] if first else n],
            sweep.kept,
            self.words.extent(sweep.steps),
            self.plan.sizes[sweep.size],
            tuple(map(self.words.operand, operands[first : first + operation.states])),
            tuple(self.names),
            self.words,
            self.dialect,
        )
        blocks, sizes = [], []
        for writer in self.swept[n]:
            outside = sweep.size in self.words.used_sizes
            self.words.used_sizes.discard(sweep.size)
            blocks.append(writer._block_lines())
            self.words.uses_real |= writer.words.uses_real
            sizes.append(self.sizes[sweep.size] if sweep.size in self.words.used_sizes else None)
            if outside:
                self.words.used_sizes.add(sweep.size)
        if isinstance(operation, Sweep):
            yield from forward_lines(loop, blocks[0], self._fresh("before"), sizes[0])
        else:
            yield from back_lines(loop, blocks[0], blocks[1], sizes[0], sizes[1])

    def _block_lines(self) -> BlockLines:
        """The plan of a block, which this writer is for."""
        lines = tuple(self._body())
        outputs = tuple(map(self._output, self.plan.results))
        states = tuple(self.arguments[p.name] for p in self.plan.parameters if p.name.startswith("state"))
        return BlockLines(states, lines, outputs, self._remaining())

    def _remaining(self) -> tuple[str, ...]:
        """What the plan has made and holds to its end: results, and what they are views of."""
        last = len(self.plan.steps)
        return tuple(self.names[n] for n in range(last) if self._temporary(n) and self.plan.last_use[n] == last)

    def _output(self, n: int, state: type | None = None) -> str:
        """What a step of an iteration gives, an array or number of its library; of the element type of its state."""
        text, kind = self.words.operand(n), self.plan.steps[n].kind
        if state is not None and state is not kind:
            return self.dialect.state(text, self.words.dtype(state))
        return self.dialect.scalar(text, self.words.dtype(kind)) if self.plan.numbers[n] else text

    def _fresh(self, name: str) -> str:
        name = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
        while name in self.taken or not name.isidentifier():
            name += "_"
        self.taken.add(name)
        return name

    def _name(self, n: int, step: Step) -> str:
        if isinstance(step.operation, Parameter):
            return self.arguments[step.operation.name]
        return self._fresh(self.plan.hints.get(n, f"t{n}"))

    # --- the whole

    def functions(self) -> Iterator[str]:
        """The functions that the solvers of this one evaluate, and the function itself."""
        yield from self._solver_functions()
        written = [*self._body(), self._return()]
        used = self.words.used_sizes
        idle = {self._block_line(loop) for loop in self.plan.loops if loop.size not in used}
        body = [line for line in written if line not in idle]
        prelude = [*self._size_lines(), *self._type_lines(any("device=device" in line for line in body))]
        header = f"def {self.function}({', '.join(self.arguments.values())}):"
        yield "\n".join([header, *(f"    {line}" for line in (*prelude, *body))])

    def _solver_functions(self) -> Iterator[str]:
        """The functions that the solvers in the body evaluate."""
        for system, name in self.systems.items():
            inner = self.plan.inner[system]
            if self.dialect.solves or self.dialect.attempts:
                yield from _SourceWriter(inner, name, self.dialect, self.defined).functions()
            if not self.dialect.solves:
                yield _on_numpy_arrays(self.plan.hosted[system], self.host_systems[system])
        asking = filter(None, self.asking.values())
        for writer in (*self.iterated.values(), *asking, *(one for each in self.swept.values() for one in each)):
            yield from writer._solver_functions()

    def _body(self, told: bool = False) -> Iterator[str]:
        """The lines of the steps; `told` says that all of them stand where the library warns of no infinities."""
        guarded = set() if told else self._guarded()
        done: dict[int, list[int]] = {}
        for n in filter(self._temporary, range(len(self.plan.steps))):
            done.setdefault(self.plan.last_use[n], []).append(n)
        heads = {loop.first: loop for loop in self.plan.loops}
        loop: Loop | None = None
        inside = False
        for n, step in enumerate(self.plan.steps):
            if n in heads or (loop and n == loop.last):
                inside = False
                loop = heads.get(n)
                self.index_arrays.forget()
                yield from self._deleted([m for m in done.get(n, ()) if loop and m < n])
                yield from self._loop_lines(loop) if loop else ()
            indent = "    " * (loop is not None)
            if isinstance(step.operation, Parameter | Fill | PartialResult):  # what a loop before it read is done
                yield from (indent + line for line in self._deleted([m for m in done.get(n, ()) if m < n and not loop]))
                continue
            if (n in guarded) != inside:
                inside = n in guarded
                if inside and self.dialect.guard:
                    yield f"{indent}{self.dialect.guard}  # infinities vanish or are masked"
            indent += "    " * bool(inside and self.dialect.guard)
            if isinstance(step.operation, Collect):
                assert loop is not None
                yield from (indent + line for line in self._collected(n, step.operation))
            elif isinstance(step.operation, Iteration):
                yield from (indent + line for line in self._iteration_lines(n, step.operation))
            elif isinstance(step.operation, Sweep | SweepBack):
                yield from (indent + line for line in self._sweep_lines(n, step.operation))
            elif isinstance(step.operation, Decomposition):
                yield indent + self._decomposition_line(n, step.operation)
            else:
                first, *more = self._statements(n)
                yield from (indent + line for line in self.index_arrays.lines())
                yield f"{indent}{first}  # {self._comment(step)}"
                yield from (indent + line for line in more)
            if n + 1 < len(self.plan.steps) or loop or self.is_repeated:
                dead = done.get(n, ()) if n not in heads else [m for m in done.get(n, ()) if m >= n]
                yield from (indent + line for line in self._deleted(dead))
            yield from self._totals(loop) if loop and n + 1 == loop.last else ()

    def _decomposition_line(self, n: int, operation: Decomposition) -> str:
        """The results of a decomposition, named at once."""
        results = {
            step.operation.name: m
            for m, step in enumerate(self.plan.steps)
            if isinstance(step.operation, DecompositionResult) and step.operands == (n,)
        }
        steps = [self.plan.steps[results[name]] for name in operation.names]
        shapes = [self.words.shape(step.axes) for step in steps]
        operand = self.words.operand(self.plan.steps[n].operands[0])
        names = {name: self.names[results[name]] for name in operation.names}
        left, right = self.dialect.decomposition(names, operand, shapes)
        return f"{left} = {right}  # {', '.join(map(self._comment, steps))}"

    def _deleted(self, steps: Sequence[int]) -> Iterator[str]:
        if steps:
            yield f"del {', '.join(self.names[n] for n in steps)}"

    def _statements(self, n: int) -> Sequence[str]:
        step = self.plan.steps[n]
        operands = [self.words.operand(m) for m in step.operands]
        if lines := step.operation.statements(self.words, step, operands, self.names[n]):
            return lines
        text = step.operation.write(self.words, step, operands)
        text = written_over(self.plan, self.words, n, text) if self.dialect.writes_over else text
        return (f"{self.names[n]} = {text}",)

    def _loop_lines(self, loop: Loop) -> Iterator[str]:
        """Sums that the loop adds up, and its head: at least one round, which tells the element types."""
        for name, _, pairwise in self._sums(loop):
            yield f"{name} = []  # one for each block" if pairwise else f"{name} = 0  # added up block by block"
        total, block = parenthesised(self.words.extent(loop.domain)), self.plan.sizes[loop.size]
        yield f"for start in range(0, {total} or 1, {block}):"
        yield f"    stop = min(start + {block}, {total})"
        yield self._block_line(loop)

    def _block_line(self, loop: Loop) -> str:
        """The line of a loop that names the length of its block."""
        return f"    {self.sizes[loop.size]} = stop - start"

    def _sums(self, loop: Loop) -> Iterator[tuple[str, str, bool]]:
        """The names of sums over the blocks of a loop, their shapes, and whether they are added up after it."""
        for name, step in list(zip(self.names, self.plan.steps, strict=True))[loop.first : loop.last]:
            if isinstance(step.operation, Collect) and step.operation.axis is None:
                yield name, self._comment(step), step.operation.pairwise

    def _collected(self, n: int, collect: Collect) -> Iterator[str]:
        """A block added, or put in its place; the first one makes the array for all."""
        name, part = self.names[n], self.words.operand(self.plan.steps[n].operands[0])
        if collect.axis is None:
            yield f"{name}.append({part})" if collect.pairwise else f"{name} += {part}"
            return
        whole = self.dialect.empty_like(part, self.words.shape(self.plan.steps[n].axes))
        yield "if start == 0:"
        yield f"    {name} = {whole}  # {self._comment(self.plan.steps[n])}, filled block by block"
        yield f"{name}[{':, ' * collect.axis}{self.words.block}] = {part}"

    def _totals(self, loop: Loop) -> Iterator[str]:
        """The sums of what was held for each block."""
        for name, comment, pairwise in self._sums(loop):
            if pairwise:
                yield f"{name} = {self.dialect.np}.sum({name}, axis=0)  # {comment}"

    def _temporary(self, n: int) -> bool:
        step = self.plan.steps[n]
        return bool(step.axes) and not isinstance(step.operation, Parameter)

    def _comment(self, step: Step) -> str:
        return f"{self.words.comment(step.axes)} {step.operation.title}"

    def _return(self) -> str:
        returned: set[int] = set()
        results = [self._result(n, returned) for n in self.plan.results]
        shown = _arranged(self.plan.layout, results)
        return f"return {shown[1:-1] if isinstance(self.plan.layout, tuple) else shown}"

    def _result(self, n: int, returned: set[int]) -> str:
        """The expression for a result: an array of its own, or a NumPy scalar."""
        step, name = self.plan.steps[n], self.words.operand(n)
        if not step.axes:
            if self.plan.numbers[n]:
                return self.dialect.scalar(name, self.words.dtype(step.kind))
            if self.dialect.item and self.plan.maybe_numbers[n]:
                return self.dialect.called(name)
            if self.dialect.item:
                return f"{name}{self.dialect.item}"
        owner = self.plan.owner(n)
        lazy = owner is not None and isinstance(self.plan.steps[owner].operation, ConjugateElements)
        if owner is None or (lazy and self.dialect.lazy_conjugate) or owner in returned:
            return self.dialect.copy(name)
        returned.add(owner)
        return name

    # --- what comes first

    def _size_lines(self) -> Iterator[str]:
        """The named sizes that the body uses, read off the arguments."""
        wanted = set(self.words.used_sizes) & self.plan.given_sizes.keys()
        for var in self.plan.parameters:
            axes = var.type.axes if isinstance(var.type, Space) else ()
            order = self.plan.orders.get(var.name) or range(len(axes))
            for n, axis in enumerate(axes[m] for m in order):
                size = axis.bound if isinstance(axis, Symmetric) else getattr(axis, "size", None)
                if size in wanted:
                    wanted.remove(size)
                    half = " // 2" if isinstance(axis, Symmetric) else ""
                    yield f"{self.sizes[size]} = {self.arguments[var.name]}.shape[{n}]{half}"
        for size, text in self._sums_of_sizes(wanted):
            wanted.discard(size)
            yield f"{self.sizes[size]} = {text}"
        for size in sorted(wanted):
            yield f"{self.sizes[size]} = {self.plan.sizes[size]}  # no argument shows this size"

    def _sums_of_sizes(self, wanted: Collection[str]) -> Iterator[tuple[str, str]]:
        """The sizes that an axis alone shows whose size is a multiple of one and a number."""
        for var in self.plan.parameters:
            axes = var.type.axes if isinstance(var.type, Space) else ()
            for n, axis in enumerate(axes[m] for m in self.plan.orders.get(var.name) or range(len(axes))):
                names, offset = size_parts(axis.size) if isinstance(axis, Range) else ({}, 0)
                for name, factor in names.items() if len(names) == 1 else ():
                    if name in wanted:
                        text = f"({self.arguments[var.name]}.shape[{n}] - {offset})".replace("- -", "+ ")
                        yield name, f"{text} // {factor}"

    def _type_lines(self, uses_device: bool) -> Iterator[str]:
        """The device of the arguments and their width, if the body uses them; scalars as the backend wants them."""
        spaces = [(self.arguments[var.name], var.type) for var in self.plan.parameters if isinstance(var.type, Space)]
        tensors = [text for text, space in spaces if space.order]
        inexact = [(text, space.dtype is complex, space.order) for text, space in spaces if space.dtype is not int]
        scalars = [(text, is_complex) for text, is_complex, order in inexact if not order]
        yield from self.dialect.prelude(uses_device, tensors, scalars)
        if self.words.uses_real:
            arrays = [(text, is_complex) for text, is_complex, order in inexact if order]
            if arrays or scalars:  # a Python number decides nothing beside an array
                yield f"real = {self.dialect.real_type(arrays, scalars)}"
            else:
                yield f"real = {self.dialect.default_type('int' if self.words.integers else 'float')}"

    # --- elements that are computed only to be masked out

    def _vanishes(self, n: int) -> bool:
        """Whether only exponentials read a step, alone or in sums with positive factors: they are 0 where it is −∞."""
        if n in self.plan.results:
            return False
        for m, _ in self.plan.readers[n]:
            operation = self.plan.steps[m].operation
            ends = getattr(operation, "name", "") in ("largest", "exp", "logaddexp")
            match operation:
                case Combine(factors=factors):
                    scaled = [f for f, k in zip(factors, self.plan.steps[m].operands, strict=True) if k == n]
                case Scale(factor=factor):
                    scaled = [factor]
                case _:
                    scaled = []
            passes = isinstance(operation, Combine | Scale | Arrange) and all(
                not f.number.imag and f.number.real > 0 for f in scaled
            )
            if not ends and not (passes and self._vanishes(m)):
                return False
        return True

    def _is_below(self, n: int) -> bool:
        """Whether a step is only read by sums with numbers that stand below 1: the quotient is 0 where it is +∞."""
        if n in self.plan.results:
            return False
        for m, _ in self.plan.readers[n]:
            step = self.plan.steps[m]
            if isinstance(step.operation, Combine | Scale | Arrange):
                others = [k for k in step.operands if k != n]
                if not (all(k in self.words.constants for k in others) and self._is_below(m)):
                    return False
            elif not self._divides(m, n):
                return False
        return True

    def _divides(self, n: int, below: int) -> bool:
        """Whether a step is a reciprocal, or a quotient with another one below the line alone, or such of its power."""
        step = self.plan.steps[n]
        match step.operation:
            case ElementwiseStep("divide"):
                return step.operands[0] != below
            case ElementwiseStep("power"):
                exponent = self.words.constants.get(step.operands[1])
                if exponent is None or exponent.imag:
                    return False
                return exponent.real < 0 or (exponent.real > 0 and self._is_below(n))
        return False

    def _guarded(self) -> set[int]:
        """Steps whose undefined elements a bound drops, from the first that may be undefined on; 1 / (1 + exp(x)) is 0
        where the exponential overflows, and the loop around either is told once.
        """
        feeding: set[int] = set()
        steps = self.plan.steps
        for n in range(len(steps) - 1, -1, -1):
            chosen = getattr(steps[n].operation, "name", "") == "chosen"
            chosen |= isinstance(steps[n].operation, ChosenProduct | Mask | PrefixSum | MaskedContract)
            if n in feeding or chosen:
                feeding.update(steps[n].operands)
        writers = [(n, each) for n, step in self.iterated.items() for each in (step, self.asking[n])]
        loops = {n for n, writer in writers if writer and writer._guarded()}
        logarithms = [n for n, step in enumerate(steps) if getattr(step.operation, "name", "") == "log"]
        exponentials = [n for n, step in enumerate(steps) if getattr(step.operation, "name", "") == "exp"]
        found = {*filter(self._vanishes, logarithms), *filter(self._is_below, exponentials), *loops}
        within = {n for n, step in enumerate(steps) if isinstance(step.operation, MaskedContract)}
        for n in sorted(feeding | within):
            computes = n in feeding and isinstance(steps[n].operation, ElementwiseStep | Rescale | Powers)
            if computes or not found.isdisjoint(steps[n].operands):
                found.add(n)
        return {n for n in found if not isinstance(steps[n].operation, Read | Arrange)}


def _arranged(layout: Layout, results: list[str]) -> str:
    """The results in the tuples that a call returns them in."""
    if isinstance(layout, int):
        return results[layout]
    inside = [_arranged(part, results) for part in layout]
    return f"({', '.join(inside)}{',' if len(inside) == 1 else ''})"
