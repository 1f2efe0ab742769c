"""Expressions for single array steps, in the words of a dialect.

    Contract(left=(0, 1), right=(2, 1), out=(0, 2)) on A, B       A @ B.T
    Contract(left=(0, 1, 2, 3), right=(0, 1), out=(2, 3)) on J, D
    = (J.reshape(N*N, N*N).T @ D.reshape(N*N)).reshape(N, N)      a matrix-vector product, no copy of J

A contraction is a matrix product of the summed labels, once its operands are laid out as matrices: by a reshape
where the groups of labels already stand together, by a transposed copy otherwise.

Invariant: an expression has the value of its step for arrays of every size, 0 and 1 included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from combdiff.codegen.bounds import bounded, within_text
from combdiff.codegen.dialects.numpy import NumPyDialect
from combdiff.codegen.fragments import LETTERS, einsum_operands, literal, parenthesised, slice_text, tuple_text
from combdiff.codegen.index_arrays import IndexArrays, grid
from combdiff.codegen.indirect import indirect
from combdiff.codegen.wrapped import wrapped_read
from combdiff.errors import UnsupportedError
from combdiff.ir import Domain, Function, Lambda, Number, Space, Var
from combdiff.planning import (
    Arrange,
    Block,
    Clip,
    Combine,
    ConjugateElements,
    Contract,
    Correlate,
    DiagonalEmbed,
    DiagonalScatterAdd,
    ElementwiseStep,
    Fill,
    Fold,
    Gram,
    IndexCondition,
    IndexEquals,
    Iota,
    LinearSolve,
    Mask,
    MaskedContract,
    MatrixFunctionStep,
    NamedCall,
    Pattern,
    Plan,
    Position,
    PrefixSum,
    Read,
    Reduce,
    ReduceMax,
    Scale,
    Scatter,
    SizeFactor,
    SolveEquation,
    Step,
    Take,
    base_name,
    extent_form,
    stack_of,
    stack_text,
)
from combdiff.polyhedra import Linear


class Expressions:
    """Expressions for the steps of a plan; notes which sizes, helpers and element types they use."""

    def __init__(
        self,
        plan: Plan,
        names: Sequence[str],
        arguments: Mapping[str, str],
        sizes: Mapping[str, str],
        systems: Mapping[Lambda, str],
        dialect: NumPyDialect,
        index_arrays: IndexArrays,
    ) -> None:
        self.plan = plan
        self.dialect = dialect
        self.names = names
        self.arguments = arguments
        self.systems = systems
        self.sizes = {size: Linear.symbol(text) for size, text in sizes.items()}
        self.used_sizes: set[str] = set()
        self.block = "start:stop"
        self.index_arrays = index_arrays
        self.uses_real = False
        kinds = {var.type.dtype for var in plan.parameters if isinstance(var.type, Space)}
        self.integers = kinds == {int}

    def step(self, n: int) -> str:
        """The expression that computes a step from the names of its operands."""
        step = self.plan.steps[n]
        operands = [self.operand(m) for m in step.operands]
        match step.operation:
            case Read() as read:
                return self._read(read, operands[0], step)
            case Arrange(order=order):
                return self._arrange(order, operands[0], step)
            case ConjugateElements():
                return self._conjugate(n, operands[0])
            case Contract() as contraction:
                return self.contract(contraction, operands, step)
            case DiagonalEmbed(along=along):
                number = self.plan.is_number(step.operands[0])
                array = self.dialect.full("()", operands[0], self.dtype(step.kind)) if number else operands[0]
                return f"_spread({array}, {list(along)}, {self.shape(step.axes)})"
            case DiagonalScatterAdd(along=along, owned=owned):
                total = operands[0] if owned else self.dialect.copy(operands[0])
                return f"_deposit({total}, {operands[1]}, {list(along)})"
            case Gram(axis=axis, flipped=flipped):
                turned = f"{operands[0]}{'.T' if axis else ''}"
                return f"_gram({', '.join([turned, *operands[1:]])}){'.T' if flipped else ''}"
            case Correlate() as correlation:
                return self._correlate(correlation, operands, step)
            case PrefixSum() | Mask():
                return bounded(self, step.operation, operands[0], step)
            case Fold(stride=stride, start=start):
                return f"_fold({operands[0]}, {stride}, {self.form(start)}, {self.extent(step.axes[0])})"
            case MaskedContract() as product:
                return within_text(self, product, operands, step)
            case Take() | Scatter() | IndexEquals() | Clip() | Iota():
                return indirect(self, step.operation, operands, step)
            case Reduce(summed=summed):
                every = len(summed) == len(self.plan.steps[step.operands[0]].axes)
                return f"{operands[0]}.sum({'' if every else f'axis={tuple_text(map(str, summed), single=False)}'})"
            case ReduceMax(summed=summed):
                return self.dialect.largest(operands[0], tuple_text(map(str, summed)))
            case Scale(factor=factor):
                return self._scaled(factor, operands[0])
            case Combine():
                return self._combine(step)
            case ElementwiseStep():
                return self._elementwise(n)
            case MatrixFunctionStep(name=name):
                return self._matrix_function(name, operands[0], step)
            case LinearSolve() as solution:
                return self._linear_solve(solution, operands)
            case IndexCondition() as mask:
                return self._mask(mask, step)
            case NamedCall(name=name, position=position):
                return self._call(name, position, operands)
            case Block(axis=axis):
                return f"{operands[0]}[{':, ' * axis}{self.block}]"
            case SolveEquation() as solve:
                return self._solve(solve, operands, step)
        raise TypeError(f"no expression for {step.operation!r}")

    def operand(self, n: int) -> str:
        """How a step is referred to: its name, or the number it is."""
        operation = self.plan.steps[n].operation
        return literal(operation.number) if isinstance(operation, Fill) else self.names[n]

    # --- sizes and element types

    def form(self, form: Linear) -> str:
        """A linear form in size names as an expression."""
        self.used_sizes.update(form.symbols)
        return str(form.substitute(self.sizes))

    def comment(self, step: Step) -> str:
        """The shape of a step's result, for the reader."""
        return tuple_text([str(extent_form(axis).substitute(self.sizes)) for axis in step.axes])

    def extent(self, domain: Domain) -> str:
        """The number of indices of a domain."""
        return self.form(extent_form(domain))

    def shape(self, domains: Iterable[Domain]) -> str:
        """A shape tuple."""
        return tuple_text([self.extent(domain) for domain in domains])

    def _product(self, domains: Iterable[Domain]) -> str:
        parts = [self.extent(domain) for domain in domains]
        return "*".join(part if part.isalnum() or len(parts) == 1 else f"({part})" for part in parts) or "1"

    def dtype(self, kind: type) -> str:
        """The element type of new arrays of that kind: as wide as the arguments."""
        if kind is float and self.integers:
            return self.dialect.default_type("float")
        self.uses_real = True
        return self.dialect.complex_type() if kind is complex else "real"

    def factor(self, factor: SizeFactor) -> str:
        """A number times extents."""
        parts = [] if factor.number == Number(1) and factor.extents else [literal(factor.number)]
        parts += [f"({text})" if " " in text else text for text in map(self.extent, factor.extents)]
        return " * ".join(parts)

    # --- layout

    def _aligned(self, operands: Sequence[str], patterns: Sequence[Pattern], step: Step) -> list[str]:
        rank = len(step.axes)
        return [self.placed(text, pattern, rank) for text, pattern in zip(operands, patterns, strict=True)]

    def placed(self, text: str, pattern: Pattern, rank: int) -> str:
        """The array with its axes where the pattern says among `rank` axes, the others of length 1, none in front."""
        text = self.dialect.transposed(text, sorted(range(len(pattern)), key=pattern.__getitem__))
        if not pattern or min(pattern) + len(pattern) == rank:
            return text
        slots = [":" if axis in pattern else "None" for axis in range(min(pattern), rank)]
        return f"{text}[{', '.join(slots)}]"

    def _arrange(self, order: tuple[int | None, ...], operand: str, step: Step) -> str:
        kept = [axis for axis in order if axis is not None]
        if len(kept) == len(order):
            return self.dialect.transposed(operand, kept)
        if self.plan.is_number(step_operand := step.operands[0]):
            return self.dialect.full(self.shape(step.axes), operand, self.dtype(self.plan.steps[step_operand].kind))
        pattern = tuple(order.index(axis) for axis in range(len(kept)))
        return self.dialect.broadcast(self.placed(operand, pattern, len(order)), self.shape(step.axes))

    def _read(self, read: Read, operand: str, step: Step) -> str:
        source = self.plan.steps[step.operands[0]].axes
        diagonal = read.diagonal()
        if diagonal is not None and all(
            extent_form(step.axes[label]) == extent_form(axis) for label, axis in zip(diagonal, source, strict=True)
        ):
            letters = "".join(LETTERS[label] for label in diagonal)
            return self.dialect.diagonal(f"{letters}->{LETTERS[: len(step.axes)]}", operand)
        items = [slice_text(position, axis, step.axes) for position, axis in zip(read.positions, source, strict=True)]
        labels = [n for position in read.positions for n, size in enumerate(position.steps) if size]
        if None not in items and sorted(labels) == list(range(len(step.axes))):
            sliced = self.dialect.indexed(operand, [item or "" for item in items])
            return self.dialect.transposed(sliced, [labels.index(n) for n in range(len(labels))])
        if self.dialect.indexes and (text := wrapped_read(self, read, operand, step)):
            return text
        strided = self.dialect.strided and all(position.divisor == 1 for position in read.positions)
        helper = "_view" if strided else "_gather"
        if "_place" in self.dialect.helpers() and read.places(len(step.axes)):
            helper = "_place"
        axes = tuple_text([self._position(position, helper) for position in read.positions])
        return f"{helper}({operand}, {axes}, {self.shape(step.axes)})"

    def _position(self, position: Position, helper: str) -> str:
        divisor = [] if helper == "_view" else [str(position.divisor)]
        parts = [self.form(position.start), tuple_text(map(str, position.steps)), *divisor, str(int(position.wrap))]
        return f"({', '.join(parts)})"

    # --- arithmetic

    def _combine(self, step: Step) -> str:
        """factor·array + …; numbers stand last, as Python's `complex + np.float64` is no NumPy scalar."""
        assert isinstance(step.operation, Combine)
        text = ""
        parts = zip(step.operands, step.operation.patterns, step.operation.factors, strict=True)
        for m, pattern, factor in sorted(parts, key=lambda part: self.plan.is_number(part[0])):
            operation = self.plan.steps[m].operation
            number = operation.number if isinstance(operation, Fill) else Number(1)
            total = factor.times(SizeFactor(number))
            negative = not total.number.imag and total.number.real < 0
            if negative:
                total = total.times(SizeFactor(Number(-1)))
            constant = isinstance(operation, Fill)
            array = self.placed(self.names[m], pattern, len(step.axes))
            sign = (" - " if text else "-") if negative else (" + " if text else "")
            text += sign + (self.factor(total) if constant else self._scaled(total, array))
        return text

    def _scaled(self, factor: SizeFactor, text: str) -> str:
        """factor·array; a complex number stands last, as Python's `complex * np.float64` is no NumPy scalar."""
        if factor == SizeFactor():
            return text
        return f"{text} * {self.factor(factor)}" if factor.number.imag else f"{self.factor(factor)} * {text}"

    def _elementwise(self, n: int) -> str:
        step = self.plan.steps[n]
        assert isinstance(step.operation, ElementwiseStep)
        name = step.operation.name
        texts = self._aligned([self.operand(m) for m in step.operands], step.operation.patterns, step)
        numbers = [self.plan.is_number(m) for m in step.operands]
        text = self._power(step, texts) if name == "power" else None
        if text is None:
            kinds = [self.plan.steps[m].kind for m in step.operands]
            text = self.dialect.function(name, texts, kinds, numbers)
        libraries = (f"{self.dialect.np}.", f"{self.dialect.special}.")
        return self.dialect.number(text) if all(numbers) and text.startswith(libraries) else text

    def _matrix_function(self, name: str, operand: str, step: Step) -> str:
        return self.dialect.matrix_function(name, operand, self.shape(step.axes))

    def _linear_solve(self, solution: LinearSolve, operands: Sequence[str]) -> str:
        matrix, right = (
            f"{text}.T" if turned else text
            for text, turned in zip(operands, (solution.matrix_transposed, solution.right_transposed), strict=True)
        )
        text = self.dialect.linear_solve(matrix, right, operands[0])
        return f"{text}.T" if solution.transposed else text

    def _power(self, step: Step, texts: list[str]) -> str | None:
        """A power where it is not written as a call of a function."""
        base, exponent = (self.plan.steps[m] for m in step.operands)
        if isinstance(exponent.operation, Fill):
            number = exponent.operation.number
            whole = isinstance(number.real, int) and not number.imag and number.real < 0
            texts[1] = f"{texts[1]}.0" if whole and base.kind is int else texts[1]
            if written := self.dialect.powers.get(number):
                of_arrays = "{np}" in written and self.plan.is_number(step.operands[0])
                return None if of_arrays else written.format(texts[0], np=self.dialect.np)
        elif base.kind is int and exponent.kind is int:
            return self.dialect.integer_power(*texts)
        if isinstance(base.operation, Fill) and base.kind is complex:
            return None
        return f"{parenthesised(texts[0])} ** {parenthesised(texts[1])}"

    def _conjugate(self, n: int, operand: str) -> str:
        return f"{operand}.conjugate()" if self.plan.is_number(n) else self.dialect.conjugate(operand)

    def _mask(self, mask: IndexCondition, step: Step) -> str:
        rank, plain = len(step.axes), mask.test == "== 0" and mask.start == Linear()
        if plain and mask.steps in ((1, -1), (-1, 1)) and not mask.logical:
            return self.dialect.eye(self.extent(step.axes[0]), self.extent(step.axes[1]), self.dtype(int))
        form = grid(self, mask.steps, mask.start, step.axes, full=True)
        modulus = parenthesised(self.form(mask.modulus)) if mask.test.endswith("divisible") else ""
        test = {"divisible": "== 0", "indivisible": "!= 0"}.get(mask.test, mask.test)
        condition = f"({form}) % {modulus} {test}" if modulus else f"{form} {test}"
        if mask.logical and rank:
            return condition
        cast = self.dialect.cast if rank else self.dialect.scalar
        return cast(f"({condition})" if rank else condition, self.dtype(int))

    def _call(self, name: str, position: int | None, operands: list[str]) -> str:
        function = self.arguments[name]
        if position is None:
            return self.dialect.called(f"{function}({', '.join(operands)})")
        arguments = tuple_text(operands[:-1])
        return self.dialect.called(f"{function}.pullback({position}, {arguments}, {operands[-1]})")

    def _solve(self, solve: SolveEquation, operands: Sequence[str], step: Step) -> str:
        given, *tensors = operands
        parameters = solve.system.parameters[1:]
        if not self.dialect.solves:
            self._check_captures(parameters)
        arrays = iter(tensors)
        captures = [self.arguments[p.name] if isinstance(p.type, Function) else next(arrays) for p in parameters]
        head = f'"{base_name(solve.system.parameters[0])}", {self.systems[solve.system]}'
        order = f"{solve.order}, " if solve.kind == "solve" else ""
        solver = f"_solve({head}" if order else f'_search("{solve.kind}", {head}'
        if self.dialect.solves:
            return f"{solver}, {given}, {order}{', '.join([self.dtype(step.kind), *captures])})"
        on_host = f"lambda given, dtype, *captures: {solver}, given, {order}dtype, *captures)"
        return f"_on_host({on_host}, {', '.join([given, self.dtype(step.kind), *captures])})"

    def _check_captures(self, parameters: Sequence[Var]) -> None:
        """Refuse a named map in an equation that is solved with NumPy for another library."""
        for var in parameters:
            if isinstance(var.type, Function):
                raise UnsupportedError(
                    f"an equation that calls the named map {var.name} is solved for NumPy arrays alone, "
                    f"not on the backend {self.dialect.name!r}",
                    hint=f"fix the map first: .partial({var.name}=…)",
                )

    # --- contractions

    def _correlate(self, op: Correlate, operands: Sequence[str], step: Step) -> str:
        array, other = (self.dialect.transposed(t, p) for t, p in zip(operands, (op.left, op.right), strict=True))
        short, long = ("[::-1]" if turned else "" for turned in op.turned)
        long = long and f"[{':, ' * op.kept}::-1]"
        place = f"{array}, {op.kept}, {self.form(op.start)}, {op.stride}, {int(op.wrap)}"
        extent = self.extent(step.axes[op.out.index(0 if op.lags else op.kept)])
        if op.lags:
            text = f"_lags({place}, {other}{long}, {extent}){short}"
        else:
            text = f"_correlate({place}, {other}{short}, {extent}){long}"
        return self.dialect.transposed(text, op.out)

    def contract(self, op: Contract, operands: Sequence[str], step: Step) -> str:
        """The expression of a product of two arrays."""
        left, right = operands
        if op.kernel in ("multiply", "outer"):
            place = [tuple(op.out.index(label) for label in pattern) for pattern in (op.left, op.right)]
            return " * ".join(self._aligned(operands, place, step))
        if not self.dialect.mixes_kinds:
            left, right = (self.as_kind(m, text, step.kind) for m, text in zip(step.operands, operands, strict=True))
        if op.kernel == "einsum" or self.dialect.prefers_einsum(len(op.left), len(op.right)):
            return self.dialect.contraction(*einsum_operands(op, left, right))
        if stack := stack_of(op) if op.in_place else None:
            array, vector = (right, left) if stack.matrix else (left, right)
            vector = self.placed(vector, stack.places, len(stack.array))
            text, order = stack_text(stack, op, array, vector)
            return self.dialect.transposed(text, order)
        axes = [self.plan.steps[m].axes for m in step.operands]
        domains = dict(zip((*op.left, *op.right), (*axes[0], *axes[1]), strict=True))
        if not op.batch and not op.left_only and op.right[-len(op.summed) :] == op.summed:
            left, right = right, left  # vector times transposed matrix: rather matrix times vector
            op = Contract(op.right, op.left, op.out)
        left = self._matrix(left, op.left, domains, (op.batch, op.left_only, op.summed))
        right = self._matrix(right, op.right, domains, (op.batch, op.summed, op.right_only))
        text = f"{left} @ {right}"
        if op.batch and not (op.left_only and op.right_only):
            text = f"({text})[..., 0]" if op.left_only else f"({text})[..., 0, :]"
        if len(op.left_only) > 1 or len(op.right_only) > 1:
            text = f"({text}).reshape({', '.join(self.extent(axis) for axis in step.axes)})"
        return text

    def as_kind(self, n: int, text: str, kind: type) -> str:
        """An operand with the element type of the result."""
        return text if self.plan.steps[n].kind is kind else self.dialect.cast(text, self.dtype(kind))

    def _matrix(
        self, text: str, pattern: Pattern, domains: Mapping[int, Domain], groups: tuple[Pattern, Pattern, Pattern]
    ) -> str:
        """An operand as a stack of matrices, batch × rows × columns; without batch an empty group is left out."""
        batch, rows, columns = groups
        turned = pattern == (*batch, *columns, *rows) and pattern != (*batch, *rows, *columns)
        first, second = (columns, rows) if turned else (rows, columns)
        text = self.dialect.transposed(text, [pattern.index(label) for label in (*batch, *first, *second)])
        if len(first) > 1 or len(second) > 1:
            sizes = [self.extent(domains[label]) for label in batch]
            sizes += [self._product(domains[label] for label in group) for group in (first, second) if group]
            text = f"{text}.reshape({', '.join(sizes)})"
        if turned and rows and columns:
            text = f"{text}.swapaxes(-1, -2)" if batch else f"{text}.T"
        if batch and not rows:
            text = f"{text}[..., None, :]"
        return f"{text}[..., None]" if batch and not columns else text
