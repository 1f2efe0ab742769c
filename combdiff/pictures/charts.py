"""Charts: the steps of a plan as bars, the zeros of a Hessian as blocks.

bars([("t2", "matrix-vector", 0.99, "n²")], "…")   →   t2  matrix-vector  ████████████ n²
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from combdiff.pictures.drawing import WIRE, Canvas, Picture, cut, width_of

LONGEST, LINE = 260.0, 22.0
CELL, MOST_CELLS = 9.0, 80


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
    shape = pattern.shape
    height, width = (int(np.prod(part, dtype=int)) for part in (shape[:rows], shape[rows:]))
    matrix = pattern.reshape(height, width)[:MOST_CELLS, :MOST_CELLS]
    canvas = Canvas()
    canvas.box(0, 0, matrix.shape[1] * CELL, matrix.shape[0] * CELL, 0, "currentColor", 0.04)
    for i, j in zip(*np.nonzero(matrix), strict=True):
        canvas.box(j * CELL + 1, i * CELL + 1, CELL - 2, CELL - 2, 1, WIRE, 0.8)
    tall = height // shape[0] if rows > 1 else 0
    _lines(canvas, matrix.shape, tall, width // shape[rows] if len(shape) > rows + 1 else 0)
    if matrix.shape != (height, width):
        canvas.text(0, matrix.shape[0] * CELL + 18, f"the first {MOST_CELLS} of {height} × {width}")
    return canvas.picture(title)


def _lines(canvas: Canvas, shape: tuple[int, ...], tall: int, wide: int) -> None:
    """Lines between the blocks of the first axis, where there are more axes than one."""
    for y in range(tall, shape[0], tall) if tall else ():
        canvas.line([(0, y * CELL), (shape[1] * CELL, y * CELL)])
    for x in range(wide, shape[1], wide) if wide else ():
        canvas.line([(x * CELL, 0), (x * CELL, shape[0] * CELL)])
