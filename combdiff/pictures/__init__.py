"""Pictures as SVG text: shapes, bars and blocks, of which other rooms make their diagrams and charts. No dependency.

In: shapes with their places, rows of numbers, arrays of truth values. Out: a Picture, which notebooks show.

In the order in which data meets them: `drawing` (shapes, text of a known width, the Picture), `charts` (rows of numbers
as bars, truth values as blocks). A tensor network is one more print of a formula: `printing` draws it.

Invariant: nothing overlaps, texts are of one fixed width, and a picture takes the colour of the text around it.
"""

from combdiff.pictures.charts import bars, block_matrix, blocks
from combdiff.pictures.drawing import OPEN, WIRE, Canvas, Picture, cut, width_of

__all__ = ["OPEN", "WIRE", "Canvas", "Picture", "bars", "block_matrix", "blocks", "cut", "width_of"]
