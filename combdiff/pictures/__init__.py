"""Pictures as SVG text: tensor networks of formulas, costs of plans, zeros of Hessians. No dependency.

In: documents of `printing`, rows of numbers, arrays of truth values. Out: a Picture, which notebooks show.

In the order in which data meets them: `drawing` (shapes, text of a known width, the Picture), `networks` (a formula as
nodes and wires), `wiring` (where they lie), `charts` (costs as bars, zeros as blocks).

Invariant: nothing overlaps, texts are of one fixed width, and a picture takes the colour of the text around it.
"""

from combdiff.pictures.charts import bars, blocks
from combdiff.pictures.drawing import Picture
from combdiff.pictures.wiring import diagram

__all__ = ["Picture", "bars", "blocks", "diagram"]
