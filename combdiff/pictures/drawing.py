"""Shapes as SVG text, and the Picture that holds them.

    Canvas().text(0, 12, "A")   →   <text x="0" y="12" …>A</text>

Lines and letters have the colour of the text around the picture (`currentColor`), so that it fits a dark page too.
"""

from __future__ import annotations

import html
from dataclasses import field

from combdiff.records import dataclass

FONT = 13.0
LETTER = 0.62 * FONT  # the width of a letter, which is the same for all
WIRE, OPEN = "#3b7dc4", "#c8761c"  # what is summed over, and what stays; both are seen on white and on black


@dataclass(frozen=True)
class Picture:
    """An SVG; notebooks show it, `str` is its text, `save` writes a file."""

    svg: str

    def __str__(self) -> str:
        return self.svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str) -> None:
        """Write the SVG to the file of that path, on white, for where the text around it has no colour to give."""
        head, rest = self.svg.split(">", 1)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'{head} color="#1c2430">\n<rect width="100%" height="100%" fill="#fff"/>{rest}\n')


def width_of(text: str) -> float:
    """How wide a text is; letters that join to the one before them have no width."""
    return LETTER * len(text)


def cut(text: str, most: int = 28) -> str:
    """A text of at most so many letters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


@dataclass
class Canvas:
    """Shapes drawn so far, and how far they reach from the origin."""

    shapes: list[str] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    def reach(self, x: float, y: float) -> None:
        """Make room as far as a point."""
        self.width, self.height = max(self.width, x), max(self.height, y)

    def text(self, x: float, y: float, shown: str, anchor: str = "start", colour: str = "currentColor") -> None:
        """A line of text; y is where its letters stand."""
        left = {"start": x, "middle": x - width_of(shown) / 2, "end": x - width_of(shown)}[anchor]
        self.reach(left + width_of(shown), y + 4)
        place = f'x="{left:.1f}" y="{y:.1f}" textLength="{width_of(shown):.1f}" lengthAdjust="spacingAndGlyphs"'
        self.shapes.append(f'<text {place} fill="{colour}">{html.escape(shown)}</text>')

    def line(self, points: list[tuple[float, float]], colour: str = "currentColor") -> None:
        """A line through points."""
        for x, y in points:
            self.reach(x + 2, y + 2)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.shapes.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')

    def dot(self, x: float, y: float, colour: str, radius: float = 3.2, hollow: bool = False) -> None:
        """A dot, filled or hollow."""
        self.reach(x + radius, y + radius)
        fill = 'fill="none"' if hollow else f'fill="{colour}"'
        shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" {fill} stroke="{colour}" stroke-width="1.4"/>'
        self.shapes.append(shape)

    def box(self, x: float, y: float, width: float, height: float, radius: float, colour: str, opacity: float) -> None:
        """A rectangle with round corners, tinted."""
        self.reach(x + width + 1, y + height + 1)
        place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius}"'
        self.shapes.append(f'<rect {place} fill="{colour}" fill-opacity="{opacity}" stroke="{colour}"/>')

    def put(self, other: Canvas, x: float, y: float) -> None:
        """Another canvas with its origin at a point of this one."""
        self.shapes.append(f'<g transform="translate({x:.1f},{y:.1f})">{"".join(other.shapes)}</g>')
        self.reach(x + other.width, y + other.height)

    def picture(self, title: str) -> Picture:
        """What is drawn, with a title that is read aloud."""
        width, height = self.width + 8, self.height + 6
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="-4 -2 {width:.0f} {height:.0f}" role="img" font-family="ui-monospace, Menlo, Consolas, '
            f'\'DejaVu Sans Mono\', monospace" font-size="{FONT:g}">'
        )
        return Picture(f"{head}<title>{html.escape(title)}</title>{''.join(self.shapes)}</svg>")
