"""Views: the elements of an array at affine positions, and its axes in another order; copies that are laid out anew.

    x[i + 1], i < n − 1     Read((Position(steps=(1,), start=1),))       x[1:]
    T[k, i, j]              Arrange((1, 2, 0))                           T.transpose(1, 2, 0)
                            Rows()                                       np.array(T, order="C")

Invariant: an expression has the value of its step for arrays of every size, 0 and 1 included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from combdiff.dialects import LETTERS, tuple_text
from combdiff.ir import Domain, extent
from combdiff.planning.extents import extent_form, never_negative
from combdiff.planning.operations.operation import ITEM_BYTES, Labels, Occurrence, Operation, Step, View
from combdiff.planning.operations.positions import Position
from combdiff.planning.operations.words import Pattern, Words
from combdiff.planning.operations.wrapped_reads import MOST, indexed_read, wrapped_read
from combdiff.polyhedra import Linear
from combdiff.records import dataclass

AGAIN = 4  # times an axis that is read around so often more is gathered by an array of places


@dataclass(frozen=True)
class Read(View):
    """Elements of the operand at affine positions, one `Position` per axis of the operand; 0 outside."""

    positions: tuple[Position, ...]

    @property
    def title(self) -> str:
        """A view, or the diagonal of some axes."""
        return "view" if self.diagonal() is None else "diagonal"

    @property
    def keeps_order(self) -> bool:
        """Whether axes are read along one label each, in the order of the labels, or at one place."""
        along = [n for position in self.positions for n, size in enumerate(position.steps) if size]
        plain = all(p.divisor == 1 and set(p.steps) <= {0, 1} for p in self.positions)
        return plain and along == list(range(len(self.positions[0].steps) if self.positions else 0))

    def diagonal(self) -> Pattern | None:
        """The label along each axis, where every axis is read along one label from its start; None otherwise."""
        along = [position.along() for position in self.positions]
        return None if None in along else tuple(n for n in along if n is not None)

    def _shift(self) -> Pattern | None:
        """The label along each axis, where each is read along one of its own, one by one from some start; else None."""
        plain = all(p.divisor == 1 and not p.wrap and sorted(p.steps)[-1:] == [1] for p in self.positions)
        along = [[n for n, size in enumerate(p.steps) if size] for p in self.positions]
        labels = tuple(n for used in along for n in used)
        alone = all(len(used) == 1 for used in along) and sorted(labels) == list(range(len(labels)))
        return labels if plain and alone and all(len(p.steps) == len(labels) for p in self.positions) else None

    def places(self, labels: int) -> bool:
        """Whether every axis is read along one label of its own with steps 1/n, some n > 1."""
        along = [[n for n, size in enumerate(p.steps) if size] for p in self.positions]
        alone = sorted(n for used in along for n in used) == list(range(labels)) and all(len(u) == 1 for u in along)
        plain = all(not p.wrap and sum(p.steps) == 1 for p in self.positions)
        return alone and plain and any(p.divisor > 1 for p in self.positions)

    def _mixes(self) -> bool:
        """Whether some axis is read around, or along several labels at once."""
        return any(p.wrap or sum(map(bool, p.steps)) > 1 for p in self.positions)

    def labels(self, step: Step) -> Labels:
        """Those of the axes that are read along them; a label goes by blocks where one axis alone is."""
        result = tuple(range(len(step.axes)))
        along = tuple(position.along() for position in self.positions)
        used = [[n for n, position in enumerate(self.positions) if position.steps[label]] for label in result]
        whole = {label for label in result if len(used[label]) != 1 or along[used[label][0]] != label}
        return Labels((along,), result, frozenset(whole))

    def held(self, at: Occurrence) -> int:
        """What is copied."""
        return self._copied(at)[0]

    def workspace(self, at: Occurrence) -> int:
        """What is copied once more, and arrays of places."""
        if (around := self._around(at)) is not None:
            return around
        copied, places = self._copied(at)
        return copied * at.item + places * ITEM_BYTES[int]

    def _around(self, at: Occurrence) -> int | None:
        """Bytes beside the result of a read that goes around axes one by one, each along a label; None for others.

        One call rolls all axes that are read as a whole; parts of them are copied axis by axis.
        """
        places = self.positions
        used = [[label for label, step in enumerate(p.steps) if step] for p in places]
        alone = sorted(label for labels in used for label in labels) == list(range(len(at.shape)))
        steps = {max(p.steps, key=abs, default=0) for p in places}
        if not alone or any(len(labels) != 1 for labels in used) or any(p.divisor > 1 for p in places):
            return None
        length, read = list(at.shape_of(0)), [at.shape[label] for (label,) in used]
        parts = [n for n, place in enumerate(places) if place.along() is None or length[n] != read[n]]
        if not parts or not all(places[n].wrap for n in parts):
            return None
        if steps <= {1, -1} and all(length[n] == read[n] for n in parts):
            return 0
        if steps != {1}:
            return None
        made = most = 0
        for n in parts:
            gathered = read[n] if read[n] > AGAIN * length[n] else 0
            length[n] = read[n]
            most = max(most, (made + prod(length)) * at.item + 2 * gathered * ITEM_BYTES[int])
            made = prod(length)
        return max(0, most - at.elements * at.item)

    def _copied(self, at: Occurrence) -> tuple[int, int]:
        """The elements that a read copies, and those of arrays of places that it takes.

        A view copies nothing, but where it leaves its operand: that is laid out with zeros, or itself, around it. What
        wraps is gathered by index arrays where it has not much more elements than that.
        """
        size, shape, sizes = at.elements, at.shape, dict(at.sizes)
        if self._around(at) is not None:
            return size, 0
        if any(p.divisor > 1 for p in self.positions):
            return size, (0 if self.places(len(shape)) else (len(self.positions) + 3) * size)
        longer, places, inside = 1, 0, True
        gathers = size <= MOST * at.given[0]  # larger ones are views
        for place, axis in zip(self.positions, at.operands[0].axes, strict=True):
            length, first = extent(axis, sizes), int(place.start.evaluate(at.sizes))
            low = first + sum(min(0, along * (many - 1)) for along, many in zip(place.steps, shape, strict=True))
            high = first + sum(max(0, along * (many - 1)) for along, many in zip(place.steps, shape, strict=True))
            if low < 0 or high >= length or not set(at.starts).isdisjoint(place.start.symbols):
                longer, inside = longer * (high + 1 - low), False
            else:
                longer *= length
            if place.wrap and place.along() is None and gathers:
                places += 3 * prod(many for along, many in zip(place.steps, shape, strict=True) if along)
            elif place.wrap and high + 1 - low > AGAIN * length:
                places += 2 * (high + 1 - low)
        if inside or not size:
            return 0, 0
        return (min(size, longer) if places and gathers else longer), places

    def statements(self, words: Words, step: Step, operands: Sequence[str], name: str) -> Sequence[str]:
        """Zeros, and the elements that a shifted array has in them."""
        source = words.axes[step.operands[0]]
        shifts, lengths = self._shifts(step, source) if words.dialect.in_place else None, list(map(extent_form, source))
        if (
            shifts is None
            or self._shift() != tuple(range(len(step.axes)))
            or _sliced(words, self.positions, operands[0], lengths, step)
        ):
            return ()
        edges = [_edges(low, spare) for low, spare in shifts]
        inner, outer = (", ".join(pair[side] for pair in edges) for side in (0, 1))
        zeros = words.dialect.zeros_of(operands[0], words.shape(step.axes))
        part = operands[0] if set(outer) <= set(":, ") else f"{operands[0]}[{outer}]"
        return f"{name} = {zeros}", f"{name}[{inner}] = {part}"

    def _shifts(self, step: Step, source: Sequence[Domain]) -> list[tuple[int, int]] | None:
        """Where each axis of the result begins in that of a shifted operand, and by how much it ends before that.

        Both may be negative; None for other reads, and where sizes decide.
        """
        order = self._shift()
        if order is None:
            return None
        found = []
        for label, place, axis in zip(order, self.positions, source, strict=True):
            spare = extent_form(axis) - place.start - extent_form(step.axes[label])
            if place.start.symbols or spare.symbols:
                return None
            found.append((int(place.start.constant), int(spare.constant)))
        return found

    def _padded(self, words: Words, step: Step, operand: str) -> str | None:
        """A read of the operand with zeros around it; None where that may have axes of negative length, and for others.

        XLA fuses pads and slices into what reads them, and no gather with conditions.
        """
        edges, places, lengths = list[tuple[str, str]](), list[Position](), list[Linear]()
        for place, axis in zip(self.positions, words.axes[step.operands[0]], strict=True):
            (first, last), length = place.ends(step.axes), extent_form(axis)
            if place.wrap or place.divisor > 1:
                return None
            if never_negative(first) and never_negative(length - 1 - last):
                first, last = Linear(), length - 1
            else:  # no fewer elements than none, where labels have none
                last += max(0, -(last + 1 - first).constant)
            if not never_negative(last + 1 - first):
                return None
            edges.append((words.form(first.scale(-1)), words.form(last + 1 - length)))
            places.append(replace(place, start=place.start - first))
            lengths.append(last + 1 - first)
        padded = words.dialect.padded(operand, edges)
        return _sliced(words, places, padded, lengths, step) or indexed_read(words, places, padded, lengths, step)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """An einsum of a diagonal, slices, index arrays or, for what is none of these, a helper."""
        source, operand = words.axes[step.operands[0]], operands[0]
        diagonal = self.diagonal()
        if diagonal is not None and all(
            extent_form(step.axes[label]) == extent_form(axis) for label, axis in zip(diagonal, source, strict=True)
        ):
            letters = "".join(LETTERS[label] for label in diagonal)
            return words.dialect.diagonal(f"{letters}->{LETTERS[: len(step.axes)]}", operand)
        if text := _sliced(words, self.positions, operand, list(map(extent_form, source)), step):
            return text
        if text := _single(words, self.positions, operand, source, step):
            return text
        if text := _split(words, self.positions, operand, source, step):
            return text
        if words.dialect.indexes and (text := wrapped_read(words, self.positions, operand, step)):
            return text
        if words.dialect.pads and (text := self._padded(words, step, operand)):
            return text
        if words.dialect.strided and (order := self._shift()) is not None:
            starts = tuple_text([words.form(position.start) for position in self.positions])
            shifted = f"_shifted({operand}, {starts}, {words.shape([step.axes[n] for n in order])})"
            return words.dialect.transposed(shifted, [order.index(n) for n in range(len(order))])
        strided = words.dialect.strided and all(position.divisor == 1 for position in self.positions)
        around = any(position.wrap for position in self.positions)
        helper = ("_view_around" if around else "_view") if strided else "_gather"
        if "_place" in words.dialect.helpers() and self.places(len(step.axes)):
            helper = "_place"
        labels = [n for position in self.positions for n, size in enumerate(position.steps) if size]
        if "_by_pads" in words.dialect.helpers() and len(labels) == len(set(labels)) and not self._mixes():
            helper = "_by_pads"
        axes = tuple_text([_told(words, position, helper) for position in self.positions])
        return f"{helper}({operand}, {axes}, {words.shape(step.axes)})"


def _sliced(
    words: Words, positions: Sequence[Position], operand: str, lengths: Sequence[Linear], step: Step
) -> str | None:
    """Basic indexing of an operand with axes of these lengths, each read along labels of its own; None for others."""
    items = [_slice(words, position, length, step.axes) for position, length in zip(positions, lengths, strict=True)]
    labels = [n for position in positions for n, size in enumerate(position.steps) if size]
    if None in items or sorted(labels) != list(range(len(step.axes))):
        return None
    sliced = words.dialect.indexed(operand, [item for item in items if item is not None])
    return words.dialect.transposed(sliced, [labels.index(n) for n in range(len(labels))])


def _single(
    words: Words, positions: Sequence[Position], operand: str, source: Sequence[Domain], step: Step
) -> str | None:
    """A read of single places that short axes lack, as the sum of what is there: one element, or none; or None."""
    items, summed, labels = list[str](), list[int](), list[int]()
    for position, axis in zip(positions, source, strict=True):
        used = [n for n, size in enumerate(position.steps) if size]
        item = _slice(words, position, extent_form(axis), step.axes)
        if item is None and not used and position.divisor == 1 and not position.wrap:
            item = _one_place(position.start, extent_form(axis))
            summed.append(sum(":" in each for each in items))
        if item is None:
            return None
        items.append(item)
        labels += used
    if not summed or sorted(labels) != list(range(len(step.axes))):
        return None
    axes = tuple_text(map(str, summed), single=False) if labels else ""
    text = f"{words.dialect.indexed(operand, items)}.sum({axes})"
    return words.dialect.transposed(text, [labels.index(n) for n in range(len(labels))])


def _one_place(start: Linear, length: Linear) -> str | None:
    """A slice of the one place, as far from the begin or the end of an axis at all sizes; None for others."""
    before = length - start  # counted from the end
    if not start.symbols and start.constant >= 0:
        return f"{start.constant}:{start.constant + 1}" if start.constant else ":1"
    if not before.symbols and before.constant > 0:
        return f"{-before.constant}:{1 - before.constant or ''}"
    return None


def _split(
    words: Words, positions: Sequence[Position], operand: str, source: Sequence[Domain], step: Step
) -> str | None:
    """A read of axes at k·i + j, of all j < k, as a reshape, which copies nothing; None for other reads."""
    items, order, turned, shape = list[str](), list[int](), list[bool](), list[str]()
    for place, axis in zip(positions, source, strict=True):
        used = sorted((n for n, size in enumerate(place.steps) if size), key=lambda n: -abs(place.steps[n]))
        item = (
            _slice(words, place, extent_form(axis), step.axes)
            if len(used) < 2
            else _digits(words, place, axis, step.axes, used)
        )
        if item is None:
            return None
        items.append(item)
        order += used
        turned += [len(used) > 1 and place.steps[n] < 0 for n in used]
        shape += [words.extent(step.axes[n]) for n in used]
    if sorted(order) != list(range(len(step.axes))) or (any(turned) and not words.dialect.steps_back):
        return None
    text = f"{words.dialect.indexed(operand, items)}.reshape({', '.join(shape)})"
    if any(turned):
        text = words.dialect.indexed(text, ["::-1" if back else ":" for back in turned])
    return words.dialect.transposed(text, [order.index(n) for n in range(len(order))])


def _digits(words: Words, place: Position, axis: Domain, labels: Sequence[Domain], used: Sequence[int]) -> str | None:
    """The slice of an axis whose positions are numbers with the labels as digits, the first of them the largest."""
    count, start = Linear((), 1), place.start
    for n in reversed(used):
        many, width = extent_form(labels[n]), place.steps[n]
        if count != Linear((), abs(width)):
            return None
        start += (many - 1).scale(width) if width < 0 else Linear()
        count = many.scale(abs(width))
    stop, length = start + count, extent_form(axis)
    if place.divisor > 1 or place.wrap or not (never_negative(start) and never_negative(length - stop)):
        return None
    first, last = ("" if form == bound else words.form(form) for form, bound in ((start, Linear()), (stop, length)))
    return f"{first}:{last}"


def _edges(low: int, spare: int) -> tuple[str, str]:
    """Slices of an axis of the result and of the operand: what they share, where the one begins and ends so.

    They are of one length whatever the sizes are.
    """
    inner = f"{-low if low < 0 else ''}:{spare if spare < 0 else ''}"
    outer = f"{low if low > 0 else ''}:{-spare if spare > 0 else ''}"
    return inner, outer


def _told(words: Words, position: Position, helper: str) -> str:
    """A position as the helpers take it."""
    divisor = [] if helper.startswith("_view") else [str(position.divisor)]
    wrap = [] if helper == "_view" else [str(int(position.wrap))]
    return f"({', '.join([words.form(position.start), tuple_text(map(str, position.steps)), *divisor, *wrap])})"


def _slice(words: Words, position: Position, length: Linear, labels: Sequence[Domain]) -> str | None:
    """Basic indexing that reads an axis there whatever the sizes: a slice within it, or one element; else None."""
    used = [n for n, size in enumerate(position.steps) if size]
    start = position.start
    if position.divisor > 1 or len(used) > 1:
        return None
    if not used:
        inside = never_negative(start) and never_negative(length - 1 - start)
        return words.form(start) if inside else None
    step, count = position.steps[used[0]], extent_form(labels[used[0]])
    stop = start + count.scale(step)  # beyond the last one by a step, which Python cuts where the axis ends
    least, most = (start, stop - step) if step > 0 else (stop - step, start)
    if not (never_negative(least) and never_negative(length - 1 - most)):
        return None
    first = "" if start == (Linear() if step > 0 else length - 1) else words.form(start)
    if step > 0:
        last = "" if never_negative(stop - length) else words.form(stop)
    elif never_negative(stop):
        last = words.form(stop)
    elif never_negative(Linear((), -1) - stop):
        last = ""
    else:
        return None
    text = f"{first}:{last}" + (f":{step}" if step != 1 else "")
    return text if step > 0 or text == "::-1" or words.dialect.steps_back else None


@dataclass(frozen=True)
class Arrange(View):
    """The operand with axes in another order: axis n of the result is axis `order[n]`, or new where that is None."""

    order: tuple[int | None, ...]

    def labels(self, step: Step) -> Labels:
        """Axis n of the result has the label n."""
        kept = [axis for axis in self.order if axis is not None]
        return Labels((tuple(map(self.order.index, range(len(kept)))),), tuple(range(len(self.order))))

    def held(self, at: Occurrence) -> int:
        """A view holds nothing, an array of one number itself."""
        return at.elements if any(at.numbers) else 0

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A transposition, an array of one number, or what repeats the operand."""
        kept, operand = [axis for axis in self.order if axis is not None], operands[0]
        if len(kept) == len(self.order):
            return words.dialect.transposed(operand, kept)
        if words.numbers[step.operands[0]]:
            return words.dialect.full(words.shape(step.axes), operand, words.dtype(words.kinds[step.operands[0]]))
        pattern = tuple(self.order.index(axis) for axis in range(len(kept)))
        return words.dialect.broadcast(words.placed(operand, pattern, len(self.order)), words.shape(step.axes))


@dataclass(frozen=True)
class Rows(Operation):
    """A copy of the operand that lies in memory row by row."""

    def labels(self, step: Step) -> Labels:
        """Those of the result's axes."""
        return Labels.of_elements(step)

    def flops(self, at: Occurrence) -> int:
        """None."""
        return 0

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """An array of its own."""
        return words.dialect.in_rows(operands[0])


@dataclass(frozen=True)
class JoinAxes(View):
    """The operand with its last two axes as one, of which the second runs fastest."""

    def held(self, at: Occurrence) -> int:
        """What is copied where the two are not laid out so."""
        return at.elements

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A reshape."""
        return f"{operands[0]}.reshape({', '.join(map(words.extent, step.axes))})"
