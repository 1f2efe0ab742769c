"""What a program costs: a table of its steps, in numbers and in formulas of the sizes.

    print(f.cost(n=100))
    step  operation      equation  shape    flops  bytes   share  in sizes
    t2    matrix-vector  ij,j->i   100     10,000    800   99.0%  n²
    …
    print(f.cost())                     # before: numbers for the sizes of arrays
    t2    matrix-vector  ij,j->i   n           n²    8·n   96.0%

Flops count operations on numbers of the element type, a multiplication with its addition as one. Bytes are those of
the new array a step makes, at 8 bytes for a real number and 16 for a complex one.

Invariant: the table is that of the plan which a call at these sizes runs; its formulas at these sizes are its numbers.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from combdiff.pictures import Picture, bars
from combdiff.planning.memory import in_words
from combdiff.planning.operations.leaves import Fill, Parameter
from combdiff.planning.plan import Plan, cost, peak
from combdiff.planning.quantities import Quantity, form_of, quantity, symbol
from combdiff.records import dataclass

_LETTERS = "ijklmnopqrstuvwxyzabcdefgh"


@dataclass(frozen=True)
class CostRow:
    """One step: its result's name in the source, what it does, the equation over its axes, and what that costs.

    `flops` and `bytes` are numbers that know their formula: `row.flops.form`.
    """

    name: str
    operation: str
    equation: str
    shape: tuple[int, ...]
    flops: Quantity
    bytes: Quantity
    share: float  # of all flops


@dataclass(frozen=True)
class CostTable:
    """The steps of a program with their flops and bytes; prints as a table.

    `flops` is the total, `peak_bytes` the most memory that is held at one time, arguments not counted. Like the numbers
    of the rows they know their formulas: `table.flops.form`, which is `table.flops.form.at({"n": 100})` at n = 100.
    `sizes` are those the plan was made for, `open_sizes` those of them that were not given: it prints formulas of them.
    """

    rows: tuple[CostRow, ...]
    flops: Quantity
    peak_bytes: Quantity
    sizes: Mapping[str, int]
    open_sizes: tuple[str, ...] = ()
    has_formulas: bool = True

    def __str__(self) -> str:
        lines = self._lines()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ["  ".join(map(_padded, line, widths, range(len(line)))) for line in lines]
        return "\n".join([*(line.rstrip() for line in table), *self._totals()])

    def _lines(self) -> list[tuple[str, ...]]:
        """The cells of the table, its head first."""
        write = (lambda value: str(form_of(value))) if self.open_sizes else "{:,}".format
        head = ("step", "operation", "equation", "shape", "flops", "bytes", "share")
        lines = [head, *(_cells(row, write) for row in self.rows)]
        if self.has_formulas and not self.open_sizes:
            formulas = ["in sizes", *(str(row.flops.form) for row in self.rows)]
            lines = [(*line, formula) for line, formula in zip(lines, formulas, strict=True)]
        return lines

    def chart(self) -> Picture:
        """The steps as bars by their share of the flops, as an SVG."""
        write = (lambda value: str(form_of(value))) if self.open_sizes else "{:,}".format
        rows = [(row.name, row.operation, row.share, f"{write(row.flops)}  {row.share:.0%}") for row in self.rows]
        return bars(rows, "flops of each step")

    def _repr_html_(self) -> str:
        head, *lines = ("".join(map(_cell, line, range(len(line)))) for line in self._lines())
        rows = "".join(f"<tr>{line}</tr>" for line in lines)
        totals = "".join(f"<p>{html.escape(line)}</p>" for line in self._totals())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{totals}{self.chart()}"

    def _totals(self) -> list[str]:
        """The last lines: the totals, and the sizes that they hold for."""
        sizes = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
        formulas = f"{self.flops.form} flops, peak {self.peak_bytes.form} bytes"
        if self.open_sizes:
            call = ", ".join(f"{name}=…" for name in self.open_sizes)
            return [f"total {formulas}", f"planned for {sizes}; to plan for others: cost({call})"]
        total = f"total {self.flops:,} flops, peak {in_words(self.peak_bytes)}"
        at = [f"{total}, at {sizes}"] if sizes else [total]
        return [f"in sizes: {formulas}", *at] if self.has_formulas else at


NUMBERS = range(4, 7)  # the columns that stand to the right


def _padded(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if column in NUMBERS else cell.ljust(width)


def _cell(cell: str, column: int) -> str:
    side = "right" if column in NUMBERS else "left"
    return f'<td style="text-align:{side}">{html.escape(cell)}</td>'


def _cells(row: CostRow, write: Callable[[int], str]) -> tuple[str, ...]:
    shape = "×".join(f"({text})" if " " in (text := write(extent)) else text for extent in row.shape) or "1"
    return row.name, row.operation, row.equation, shape, write(row.flops), write(row.bytes), f"{row.share:.1%}"


def table(plan: Plan, names: Sequence[str], given: Collection[str], has_formulas: bool = True) -> CostTable:
    """The table of a plan; `names` are those of its steps in the source, `given` the sizes that are numbers.

    A plan in blocks, whose lengths belong to the sizes, has no formulas.
    """
    open_sizes = tuple(name for name in plan.given_sizes if name not in given)
    symbolic = [name for name in plan.given_sizes if name in open_sizes or not open_sizes] if has_formulas else []
    sizes = {name: Quantity(size, symbol(name)) if name in symbolic else size for name, size in plan.sizes.items()}
    measured = replace(plan, sizes=sizes)
    costs = cost(measured)
    total = sum(spent.flops for spent in costs)
    rows = tuple(
        CostRow(
            names[spent.step],
            spent.operation,
            _equation(plan, spent.step),
            measured.shape(spent.step),
            quantity(spent.flops),
            quantity(spent.bytes),
            int(spent.flops) / int(total) if total else 0.0,
        )
        for spent in costs
        if not isinstance(plan.steps[spent.step].operation, Parameter | Fill)
    )
    formulas = has_formulas and bool(plan.given_sizes)
    return CostTable(rows, quantity(total), quantity(peak(measured)), plan.given_sizes, open_sizes, formulas)


def _equation(plan: Plan, n: int) -> str:
    """The labels of each operand and of the result, as einsum writes them, where all axes have labels."""
    step = plan.steps[n]
    labels = step.operation.labels(step)
    if labels is None:
        return f"->{_text(range(len(step.axes)))}"
    told = [tuple(label for label in pattern if label is not None) for pattern in labels.operands]
    inputs = ",".join(map(_text, told)) if list(map(len, told)) == list(map(len, labels.operands)) else ""
    return f"{inputs}->{_text(labels.result)}"


def _text(labels: Sequence[int]) -> str:
    return "".join(_LETTERS[label % len(_LETTERS)] for label in labels)
