"""Calls of what the user gave, and of solvers of equations."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from combdiff.dialects import tuple_text
from combdiff.errors import UnsupportedError
from combdiff.ir import Function, Lambda, Space, Var
from combdiff.planning.operations.operation import ITEM_BYTES, Occurrence, Operation, Step
from combdiff.planning.operations.words import Words
from combdiff.records import dataclass


@dataclass(frozen=True)
class NamedCall(Operation):
    """A named map of its arguments or, with a position, its pullback (the last operand is the cotangent)."""

    name: str
    position: int | None = None

    fresh = False

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A call of the function, or of its method `pullback`."""
        function = words.arguments[self.name]
        if self.position is None:
            return words.dialect.called(f"{function}({', '.join(operands)})")
        arguments = tuple_text(operands[:-1])
        return words.dialect.called(f"{function}.pullback({self.position}, {arguments}, {operands[-1]})")


# Matrices of the size of the Jacobian that a solver holds while the equation is evaluated (the one before, MINPACK's
# factors of it), and that one step takes (the inverse, its magnitude and LAPACK's copy; SciPy's shifted ones).
MATRICES = {"solve": (0, 4), "root": (2, 4), "argmin": (2, 6)}
VECTORS = 12  # of the size of the unknown


@dataclass(frozen=True)
class SolveEquation(Operation):
    """The solution of an equation, by a solver: `system` gives the equation and its Jacobian (see `systems`).

    The first operand is what is given, the others are the tensors that the system takes after the unknown; those that
    may be infinite or no number somewhere are `partial` parameters.
    """

    kind: str
    system: Lambda
    partial: frozenset[str] = frozenset()

    @property
    def order(self) -> int:
        """How many axes the unknown has."""
        space = self.system.parameters[0].type
        return space.order if isinstance(space, Space) else 0

    def workspace(self, at: Occurrence) -> int:
        """The equation with its Jacobian as a matrix of real numbers, and what solves it; right sides."""
        twice = 2 if at.step.kind is complex else 1
        size = twice * prod(at.shape[len(at.shape) - self.order :])
        matrix = ITEM_BYTES[float] * size**2
        evaluated = max(at.inner[0].peak, 3 * matrix * (twice - 1))  # complex blocks, their sums, the real matrix
        held, at_work = MATRICES[self.kind]
        vectors = 3 * at.given[0] * at.item + VECTORS * ITEM_BYTES[float] * size
        return max(evaluated + held * matrix, at_work * matrix) + vectors

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A call of a solver with the function of the system; on NumPy's arrays, where the library's own do not do."""
        given, *tensors = (_array(words, m, text) for m, text in zip(step.operands, operands, strict=True))
        parameters = self.system.parameters[1:]
        if not words.dialect.solves:
            _check_captures(words, parameters)
        arrays = iter(tensors)
        captures = [words.arguments[p.name] if isinstance(p.type, Function) else next(arrays) for p in parameters]
        name, function = plain_name(self.system.parameters[0]), words.systems[self.system]
        order = f"{self.order}, " if self.kind == "solve" else ""
        solver = f'_solve("{name}", ' if order else f'_search("{self.kind}", "{name}", '
        if words.dialect.solves:
            return f"{solver}{function}, {given}, {order}{', '.join([words.dtype(step.kind), *captures])})"
        on_host = words.host_systems[self.system]
        found = [f"lambda given, dtype, *captures: {solver}{on_host}, given, {order}dtype, *captures)"]
        if words.dialect.attempts:
            attempt = f"_solution, {function}, {self.order}" if order else f'_newton, "{self.kind}", {function}'
            found.insert(0, f"functools.partial({attempt})")
        helper = "_found" if words.dialect.attempts else "_on_host"
        return f"{helper}({', '.join([*found, given, words.dtype(step.kind), *captures])})"


def _array(words: Words, n: int, text: str) -> str:
    """An operand as the function of a system takes it: a Python number as an array without axes."""
    return words.dialect.scalar(text, words.dtype(words.kinds[n])) if words.numbers[n] else text


def plain_name(var: Var) -> str:
    """The name the user gave a variable, without the numbers that keep variables apart."""
    return var.name.split(".")[0].rstrip("0123456789") or "x"


def _check_captures(words: Words, parameters: Sequence[Var]) -> None:
    """Refuse a named map in an equation that is solved with NumPy for another library."""
    for var in parameters:
        if isinstance(var.type, Function):
            raise UnsupportedError(
                f"an equation that calls the named map {var.name} is solved for NumPy arrays alone, "
                f"not on the backend {words.dialect.name!r}",
                hint=f"fix the map first: .partial({var.name}=…)",
            )
