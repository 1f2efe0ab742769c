"""Where the nodes and wires of a network lie, and the picture of a program.

    ┌─ i ──┐          nodes stand in a row in the order of the formula; wires that are summed over run above them, each
    C      J ── d     on a track that it shares with no other at the same place; what stays open leaves below

A wire between the last axis of a node and the first of the next is a straight line between them. Where three or more
ends meet there are dots.

Invariant: nodes, tracks and labels have disjoint places; every end of a node has a column of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from itertools import pairwise

from combdiff.pictures import OPEN, WIRE, Canvas, Picture, cut, width_of
from combdiff.printing.documents import Sheet
from combdiff.printing.tensor_networks import Equation, Leg, Spaces, TensorNode, TermNetwork, equations
from combdiff.records import dataclass

COLUMN, TALL, TRACK, GAP, STUB = 26.0, 34.0, 24.0, 24.0, 20.0
MARKS = ("#a03a9a", "#2a8f6a", "#b3492b", "#6a6fd1")  # of orbits of axes that may be exchanged
MOST_TERMS, MOST_NODES = 24, 16


def diagram(sheet: Sheet, spaces: Spaces, title: str) -> Picture:
    """Every term of every definition and result as a tensor network, one below the other."""
    canvas, y = Canvas(), 0.0
    found = list(equations(sheet, spaces))
    left = max((width_of(cut(equation.left)) for equation in found), default=0.0)
    for equation in found:
        for row, part in enumerate(_rows(equation)):
            start = left + 12 if left else 0.0
            if row == 0 and equation.left:
                canvas.text(0, y + part.middle + 5, cut(equation.left))
            canvas.put(part.canvas, start, y)
            y += part.canvas.height + 18
    return canvas.picture(title)


@dataclass
class _WiringRow:
    """A term that is drawn, and the height at which its nodes stand."""

    canvas: Canvas
    middle: float


def _rows(equation: Equation) -> Iterable[_WiringRow]:
    several = len(equation.terms) > 1
    for number, term in enumerate(equation.terms[:MOST_TERMS]):
        sign = "+" if number and not term.coefficient.startswith("−") else ""
        yield _Wiring(term, " ".join(each for each in (sign, term.coefficient) if each), several).drawn()
    if len(equation.terms) > MOST_TERMS:
        canvas = Canvas()
        canvas.text(0, 16, f"… and {len(equation.terms) - MOST_TERMS} more terms")
        yield _WiringRow(canvas, 11)


@dataclass
class _End:
    """An end of a wire at a column: above or below its node."""

    x: float
    leg: Leg


@dataclass
class _Wiring:
    """Lays out one network."""

    network: TermNetwork
    before: str
    several: bool
    canvas: Canvas = field(default_factory=Canvas)

    def drawn(self) -> _WiringRow:
        """The network on a canvas of its own."""
        nodes = self.network.nodes[:MOST_NODES]
        straight = self._straight(nodes)
        lefts, x = [], width_of(self.before) + 14 if self.before else 0.0
        for n, node in enumerate(nodes):
            lefts.append(x)
            wire = straight.get(n)
            gap = max(GAP, width_of(self._name(wire)) + 14) if wire is not None else GAP
            x += self._width(node) + gap
        above, below = self._ends(nodes, lefts, straight)
        tracks, lower = _tracks(above, self._name), _tracks(below, self._name)
        top = (max(tracks.values()) + 1) * TRACK + 10 if tracks else 4.0
        if self.before:
            self.canvas.text(0, top + TALL / 2 + 5, self.before)
        for n, wire in straight.items():
            self._direct(lefts[n] + self._width(nodes[n]), lefts[n + 1], top + TALL / 2, wire)
        for wire, ends in above.items():
            self._above(wire, ends, top, top - 14 - tracks[wire] * TRACK)
        for wire, ends in below.items():
            self._below(wire, ends, top + TALL, top + TALL + STUB + lower[wire] * TRACK)
        self._loose(top + TALL / 2, x, {*above, *below, *straight.values()})
        for node, left in zip(nodes, lefts, strict=True):
            self._node(node, left, top, straight, lefts.index(left))
        if len(self.network.nodes) > MOST_NODES:
            self.canvas.text(x, top + TALL / 2 + 5, f"… and {len(self.network.nodes) - MOST_NODES} more factors")
        if not nodes and not self.network.coefficient and not self.network.open:
            self.canvas.text(0, top + TALL / 2 + 5, "1")
        return _WiringRow(self.canvas, top + TALL / 2)

    def __post_init__(self) -> None:
        longest = max((width_of(self._name(wire)) for wire in self.network.names), default=0.0)
        self.column = max(COLUMN, longest + 18)  # a name stands beside its wire, before the next one

    def _width(self, node: TensorNode) -> float:
        count = sum(max(1, len(leg.wires)) for leg in node.legs)
        return max(width_of(cut(node.label)) + 24, self.column * count, TALL + 6)

    def _columns(self, node: TensorNode, position: int, left: float) -> list[float]:
        """Where the wires of a leg meet their node: columns that no other leg has."""
        before = sum(max(1, len(leg.wires)) for leg in node.legs[:position])
        count = sum(max(1, len(leg.wires)) for leg in node.legs)
        space = self._width(node) / count
        return [left + space * (before + k + 0.5) for k in range(len(node.legs[position].wires))]

    def _name(self, wire: int) -> str:
        return cut(self.network.names[wire], 16)

    def _straight(self, nodes: Sequence[TensorNode]) -> dict[int, int]:
        """The wires that run straight from a node to the next, by the number of the left one."""
        ends: dict[int, int] = {}
        for node in nodes:
            for leg in node.legs:
                for wire in leg.wires:
                    ends[wire] = ends.get(wire, 0) + 1
        found: dict[int, int] = {}
        for n, (one, other) in enumerate(pairwise(nodes)):
            if one.legs and other.legs and (n - 1 not in found or len(one.legs) > 1):
                last, first = one.legs[-1], other.legs[0]
                free = len(last.wires) == 1 and last.wires == first.wires and last.wires[0] not in self.network.open
                if free and ends[last.wires[0]] == 2:
                    found[n] = last.wires[0]
        return found

    def _ends(
        self, nodes: Sequence[TensorNode], lefts: Sequence[float], straight: dict[int, int]
    ) -> tuple[dict[int, list[_End]], dict[int, list[_End]]]:
        """The ends of each wire above and below the nodes, but for those of straight ones."""
        above: dict[int, list[_End]] = {}
        below: dict[int, list[_End]] = {}
        for n, (node, left) in enumerate(zip(nodes, lefts, strict=True)):
            for position, leg in enumerate(node.legs):
                is_last = straight.get(n) is not None and position == len(node.legs) - 1
                is_first = straight.get(n - 1) is not None and position == 0
                if is_last or is_first:
                    continue
                columns = self._columns(node, position, left)
                for wire, x in zip(leg.wires, columns, strict=False):
                    side = below if wire in self.network.open else above
                    side.setdefault(wire, []).append(_End(x, leg))
        return above, below

    def _direct(self, start: float, end: float, y: float, wire: int) -> None:
        self.canvas.line([(start, y), (end, y)], WIRE)
        self.canvas.text((start + end) / 2, y - 5, self._name(wire), "middle", WIRE)

    def _above(self, wire: int, ends: list[_End], top: float, y: float) -> None:
        """A wire that is summed over, on its track."""
        xs = [end.x for end in ends]
        for x in xs:
            self.canvas.line([(x, top), (x, y)], WIRE)
            if len(xs) != 2:
                self.canvas.dot(x, y, WIRE)
        self.canvas.line([(min(xs), y), (max(xs), y)], WIRE)
        self.canvas.text(min(xs) + 6, y - 4, self._name(wire), "start", WIRE)

    def _below(self, wire: int, ends: list[_End], bottom: float, y: float) -> None:
        """A wire of the result, with its open end."""
        xs = [end.x for end in ends]
        for x in xs:
            self.canvas.line([(x, bottom), (x, y)], OPEN)
            if len(xs) > 1:
                self.canvas.dot(x, y, OPEN)
        self.canvas.line([(min(xs), y), (max(xs) + 8, y)], OPEN)
        self.canvas.text(max(xs) + 11, y + 4, self._name(wire), "start", OPEN)

    def _loose(self, y: float, x: float, used: set[int]) -> None:
        """Wires that end at no node: a δ of two open indices is one, and so is an index that nothing depends on."""
        for wire in dict.fromkeys(self.network.open):
            if wire not in used:
                self.canvas.line([(x, y), (x + 30, y)], OPEN)
                self.canvas.text(x + 35, y + 5, self._name(wire), "start", OPEN)
                x += 50 + width_of(self._name(wire))

    def _node(self, node: TensorNode, left: float, top: float, straight: dict[int, int], n: int) -> None:
        width = self._width(node)
        self.canvas.box(left, top, width, TALL, TALL / 2 if node.is_tensor else 4, "currentColor", 0.09)
        self.canvas.text(left + width / 2, top + TALL / 2 + 5, cut(node.label), "middle")
        for position, leg in enumerate(node.legs):
            if leg.orbit is None:
                continue
            colour = MARKS[leg.orbit % len(MARKS)]
            if straight.get(n) is not None and position == len(node.legs) - 1:
                self.canvas.dot(left + width, top + TALL / 2, colour, 3.6, leg.sign < 0)
            elif straight.get(n - 1) is not None and position == 0:
                self.canvas.dot(left, top + TALL / 2, colour, 3.6, leg.sign < 0)
            else:
                for wire, x in zip(leg.wires, self._columns(node, position, left), strict=False):
                    y = top + TALL if wire in self.network.open else top
                    self.canvas.dot(x, y, colour, 3.6, leg.sign < 0)


def _tracks(wires: dict[int, list[_End]], name: Callable[[int], str]) -> dict[int, int]:
    """A track for each wire: the nearest on which nothing else lies from its first end to the end of its label."""
    taken: list[list[tuple[float, float]]] = []
    found = {}
    spans = {w: (min(e.x for e in ends), max(e.x for e in ends)) for w, ends in wires.items()}
    for wire in sorted(wires, key=lambda w: spans[w][1] - spans[w][0]):
        low, high = spans[wire]
        low, high = low - 8, max(high, low + width_of(name(wire))) + width_of(name(wire)) + 22
        track = next((n for n, row in enumerate(taken) if all(high < a or b < low for a, b in row)), len(taken))
        if track == len(taken):
            taken.append([])
        taken[track].append((low, high))
        found[wire] = track
    return found
