"""What a program costs at given sizes: a table of its steps.

    print(f.cost(n=100))
    step  operation      equation        flops    bytes   share
    t2    matrix-vector  ij,j->i        10,000      800   99.0%
    …

Flops count operations on numbers of the element type, a multiplication with its addition as one. Bytes are those of
the new array a step makes, at 8 bytes for a real number and 16 for a complex one.

Invariant: the table is that of the plan which a call at these sizes runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from combdiff.lowering import Plan, cost, peak
from combdiff.lowering.steps import (
    Arrange,
    Combine,
    Conjugate,
    Constant,
    Contract,
    Elementwise,
    Parameter,
    Reduce,
    Scale,
    Select,
)
from combdiff.memory import in_words

_LETTERS = "ijklmnopqrstuvwxyzabcdefgh"


@dataclass(frozen=True)
class CostRow:
    """One step: its result's name in the source, what it does, the equation over its axes, and what that costs."""

    name: str
    operation: str
    equation: str
    shape: tuple[int, ...]
    flops: int
    bytes: int
    share: float  # of all flops


@dataclass(frozen=True)
class CostTable:
    """The steps of a program with their flops and bytes; prints as a table.

    `flops` is the total, `peak_bytes` the most memory that is held at one time, arguments not counted.
    """

    rows: tuple[CostRow, ...]
    flops: int
    peak_bytes: int
    sizes: Mapping[str, int]

    def __str__(self) -> str:
        head = ("step", "operation", "equation", "shape", "flops", "bytes", "share")
        lines = [head, *(_cells(row) for row in self.rows)]
        widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
        table = ["  ".join(map(_padded, line, widths, range(len(head)))) for line in lines]
        sizes = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
        total = f"total {self.flops:,} flops, peak {in_words(self.peak_bytes)}" + (f", at {sizes}" if sizes else "")
        return "\n".join([*(line.rstrip() for line in table), total])


def _padded(cell: str, width: int, column: int) -> str:
    """Texts stand to the left, numbers to the right."""
    return cell.ljust(width) if column < 4 else cell.rjust(width)


def _cells(row: CostRow) -> tuple[str, ...]:
    shape = "×".join(map(str, row.shape)) or "1"
    return row.name, row.operation, row.equation, shape, f"{row.flops:,}", f"{row.bytes:,}", f"{row.share:.1%}"


def table(plan: Plan, names: Sequence[str]) -> CostTable:
    """The table of a plan; `names` are those of its steps in the source."""
    costs = cost(plan)
    total = sum(spent.flops for spent in costs)
    rows = tuple(
        CostRow(
            names[spent.step],
            spent.operation,
            _equation(plan, spent.step),
            plan.shape(spent.step),
            spent.flops,
            spent.bytes,
            spent.flops / total if total else 0.0,
        )
        for spent in costs
        if not isinstance(plan.steps[spent.step].operation, Parameter | Constant)
    )
    return CostTable(rows, total, peak(plan), dict(plan.sizes))


def _equation(plan: Plan, n: int) -> str:
    """The labels of each operand and of the result, as einsum writes them."""
    step = plan.steps[n]
    operands = [plan.steps[m] for m in step.operands]
    match step.operation:
        case Contract(left=left, right=right, out=out):
            return f"{_text(left)},{_text(right)}->{_text(out)}"
        case Combine(patterns=patterns) | Elementwise(patterns=patterns) | Select(patterns=patterns):
            return f"{','.join(map(_text, patterns))}->{_text(range(len(step.axes)))}"
        case Reduce(summed=summed):
            axes = range(len(operands[0].axes))
            return f"{_text(axes)}->{_text([axis for axis in axes if axis not in summed])}"
        case Arrange(order=order):
            labels = sorted((axis, label) for label, axis in enumerate(order) if axis is not None)
            return f"{_text([label for _, label in labels])}->{_text(range(len(order)))}"
        case Conjugate() | Scale():
            return f"{_text(range(len(step.axes)))}->{_text(range(len(step.axes)))}"
    return f"->{_text(range(len(step.axes)))}"


def _text(labels: Sequence[int]) -> str:
    return "".join(_LETTERS[label % len(_LETTERS)] for label in labels)
