"""Charts: the steps of a plan as bars, the zeros of a Hessian as blocks.

bars([("t2", "matrix-vector", 0.99, "n²")], "…")   →   t2  matrix-vector  ████████████ n²
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from combdiff.pictures.drawing import FONT, WIRE, Canvas, Picture, cut, width_of

LONGEST, LINE = 260.0, 22.0
CELL, MOST_CELLS, GAP = 9.0, 80, 10.0


def bars(rows: Sequence[tuple[str, str, float, str]], title: str) -> Picture:
    """A bar for each row: its name, what it is, its share of all (0 to 1), and the label behind the bar."""
    canvas = Canvas()
    texts = [[name for name, *_ in rows], [what for _, what, *_ in rows]]
    columns = [max((width_of(cut(text, 24)) for text in column), default=0.0) for column in texts]
    start = sum(columns) + 28
    largest = max((row[2] for row in rows), default=1.0) or 1.0
    for number, (name, what, share, label) in enumerate(rows):
        y = number * LINE
        canvas.text(0, y + 14, cut(name, 24))
        canvas.text(columns[0] + 14, y + 14, cut(what, 24))
        length = max(1.0, LONGEST * share / largest)
        canvas.box(start, y + 3, length, LINE - 8, 2, WIRE, 0.75)
        canvas.text(start + length + 8, y + 14, cut(label, 40))
    return canvas.picture(title)


def blocks(pattern: np.ndarray[Any, Any], rows: int, title: str) -> Picture:
    """The places of a matrix that may differ from 0; `rows` axes of the pattern make its rows, in blocks of the first.

    At most 80 rows and columns are drawn.
    """
    canvas = _cells(pattern, rows, MOST_CELLS)
    if cut_off := _cut_off(pattern, rows, MOST_CELLS):
        canvas.text(0, canvas.height + 18, f"the first {MOST_CELLS} of {cut_off}")
    return canvas.picture(title)


def block_matrix(
    grid: Sequence[Sequence[tuple[np.ndarray[Any, Any], int]]], left: Sequence[str], above: Sequence[str], title: str
) -> Picture:
    """Blocks in rows and columns, each a pattern and how many of its axes make rows; names stand left and above.

    At most 80 rows and columns are drawn, as many of each block.
    """
    most = MOST_CELLS // max(len(left), len(above))
    drawn = [[_cells(pattern, rows, most) for pattern, rows in row] for row in grid]
    start = max(width_of(cut(name)) for name in left) + GAP
    widths = [max(width_of(cut(name)), *(row[n].width for row in drawn)) + GAP for n, name in enumerate(above)]
    canvas, y = Canvas(), LINE
    for n, name in enumerate(above):
        canvas.text(start + sum(widths[:n]), 14, cut(name))
    for name, row in zip(left, drawn, strict=True):
        canvas.text(0, y + 12, cut(name))
        for n, cells in enumerate(row):
            canvas.put(cells, start + sum(widths[:n]), y)
        y += max(FONT + 4, *(cells.height for cells in row)) + GAP
    if any(_cut_off(pattern, rows, most) for row in grid for pattern, rows in row):
        canvas.text(0, y + 12, f"at most {most} rows and columns of a block")
    return canvas.picture(title)


def _cells(pattern: np.ndarray[Any, Any], rows: int, most: int) -> Canvas:
    """The first rows and columns of a pattern; a line of the matrix between the blocks of its first axes."""
    shape = pattern.shape
    height, width = _extents(shape, rows)
    matrix = pattern.reshape(height, width)[:most, :most]
    canvas = Canvas()
    canvas.box(0, 0, matrix.shape[1] * CELL, matrix.shape[0] * CELL, 0, "currentColor", 0.04)
    for i, j in zip(*np.nonzero(matrix), strict=True):
        canvas.box(j * CELL + 1, i * CELL + 1, CELL - 2, CELL - 2, 1, WIRE, 0.8)
    tall = height // shape[0] if rows > 1 and height else 0
    _lines(canvas, matrix.shape, tall, width // shape[rows] if len(shape) > rows + 1 and width else 0)
    return canvas


def _extents(shape: tuple[int, ...], rows: int) -> tuple[int, int]:
    height, width = (int(np.prod(part, dtype=int)) for part in (shape[:rows], shape[rows:]))
    return height, width


def _cut_off(pattern: np.ndarray[Any, Any], rows: int, most: int) -> str:
    """The rows and columns of a pattern that is drawn in part; empty where all of it is."""
    height, width = _extents(pattern.shape, rows)
    return f"{height} × {width}" if max(height, width) > most else ""


def _lines(canvas: Canvas, shape: tuple[int, ...], tall: int, wide: int) -> None:
    """Lines between the blocks of the first axis, where there are more axes than one."""
    for y in range(tall, shape[0], tall) if tall else ():
        canvas.line([(0, y * CELL), (shape[1] * CELL, y * CELL)])
    for x in range(wide, shape[1], wide) if wide else ():
        canvas.line([(x * CELL, 0), (x * CELL, shape[0] * CELL)])
