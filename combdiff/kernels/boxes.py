"""The positions at which conditions hold as boxes of them, never an array of them all, for every library.

    Σ_{j ≤ i} A[i, j]·x[j]        A[4:, :4] @ x[:4],  and the same of the two triangles that are left, …

A condition is `(steps, start, modulus)`: `steps · t + start ≥ 0` for the position t along the labels, or divisible by
the modulus where that is not 0, no multiple of −modulus where it is less, and ≠ 0 where it is None. Congruences are met
by steps of slices. What bounds leave is halved: boxes in which all positions meet the bounds are taken as they are,
those in which none does are dropped, the others are halved again, down to some SMALL elements, among which a mask
selects. There are at most some MOST of these, of about as many boxes in all. The form of a bound is to be at least 0,
and not 0 where it is `apart` (which may be less).

What is done with arrays within a box is here, too, in words that the libraries share: `xp` is the library, and `arange`
makes positions where its arrays are. A library's module adds the boxes up: `_keep`, `_within`.

Invariant: every position at which all conditions hold is in a box, and none at which a congruence fails; a bound that
does not hold throughout a box is told with it.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

SMALL = 16384  # elements of a box that is not halved any more
MOST = 64  # boxes that are halved at a time


def _ends(steps: Any, start: Any, box: Any) -> Any:
    """The least and the greatest value of steps · t + start in a box."""
    ends = [(step * low, step * (high - 1)) for step, (low, high) in zip(steps, box, strict=True)]
    return start + sum(map(min, ends)), start + sum(map(max, ends))


def _fails(bound: Any, least: Any, most: Any) -> Any:
    """Whether a bound may fail between these values of its form."""
    return least <= 0 <= most if bound[2] else least < 0


def _tightened(box: Any, bounds: Any) -> Any:
    """The box without positions along single labels at which a bound cannot hold; None where nothing is left."""
    box = list(box)
    for steps, start, apart in bounds:
        least, most = _ends(steps, start, box)
        if apart:
            if least == most == 0:
                return None
            continue
        for n, step in enumerate(steps):
            low, high = box[n]
            if step > 0:
                box[n] = max(low, high - 1 - most // step), high
            elif step < 0:
                box[n] = low, min(high, low + 1 + most // -step)
        if most < 0 or any(low >= high for low, high in box):
            return None
    return tuple(box)


def _halves(box: Any, bounds: Any) -> Any:
    """The box cut along the label that changes a bound the most; nothing where it is small."""
    sizes = {n: high - low for n, (low, high) in enumerate(box) if any(steps[n] for steps, *_ in bounds)}
    total = 1
    for size in sizes.values():
        total *= size
    if total <= SMALL:
        return ()
    reach = {n: size * max(abs(steps[n]) for steps, *_ in bounds) for n, size in sizes.items() if size > 1}
    longest = max(reach, key=lambda n: reach[n])
    low, high = box[longest]
    middle = (low + high) // 2
    return tuple((*box[:longest], part, *box[longest + 1 :]) for part in ((low, middle), (middle, high)))


def _cut(sizes: Any, bounds: Any) -> Any:
    """Boxes that have all positions at which bounds hold, each with the bounds that do not hold throughout it."""
    todo: Any = [tuple((0, size) for size in sizes)]
    found: Any = []
    while todo:
        partial: Any = []
        for whole in todo:
            box = _tightened(whole, bounds)
            if box is not None:
                left = [bound for bound in bounds if _fails(bound, *_ends(bound[0], bound[1], box))]
                (partial if left else found).append((box, left))
        todo = []
        for box, left in partial:
            halves = _halves(box, left) if len(partial) <= MOST else ()
            todo += halves
            found += [] if halves else [(box, left)]
    return found


def _classes(sizes: Any, conditions: Any) -> Any:
    """Offsets and strides of positions that meet all congruences, with the bounds left, numbered by condition."""
    found: Any = [((0,) * len(sizes), (1,) * len(sizes), ())]
    for number, (steps, start, modulus) in enumerate(conditions):
        more: Any = []
        for offsets, strides, bounds in found:
            here = [step * stride for step, stride in zip(steps, strides, strict=True)]
            first = start + sum(step * offset for step, offset in zip(steps, offsets, strict=True))
            if modulus == 0:
                more.append((offsets, strides, (*bounds, (number, steps, start, False))))
                continue
            least, most = _ends(steps, start, [(0, size) for size in sizes])
            width = abs(modulus or 0)
            multiples = range(-(-least // width) * width, most + 1, width) if width else (0,)
            if modulus is None or modulus < 0:
                holes = tuple((number, steps, start - value, True) for value in multiples)
                more.append((offsets, strides, (*bounds, *holes)))
                continue
            used = [n for n, step in enumerate(here) if step % modulus]
            if modulus ** len(used) > max(64, len(multiples)):
                for value in multiples:
                    turned = tuple(-step for step in steps)
                    equal = (number, steps, start - value, False), (number, turned, value - start, False)
                    more.append((offsets, strides, (*bounds, *equal)))
                continue
            for rests in itertools.product(range(modulus), repeat=len(used)):
                rest = dict(zip(used, rests, strict=True))
                if (first + sum(here[n] * value for n, value in rest.items())) % modulus == 0:
                    moved = tuple(o + rest.get(n, 0) * s for n, (o, s) in enumerate(zip(offsets, strides, strict=True)))
                    wider = tuple(s * (modulus if n in rest else 1) for n, s in enumerate(strides))
                    more.append((moved, wider, bounds))
        found = more
    return found


@functools.lru_cache(maxsize=64)
def _boxes(sizes: Any, conditions: Any) -> Any:
    """Slices along all labels that have the positions at which conditions hold, and the bounds to be looked at."""
    found = []
    classes = _classes(sizes, conditions) if 0 not in sizes else []
    for offsets, strides, bounds in classes:
        counts = [max(0, -(-(n - o) // s)) for n, o, s in zip(sizes, offsets, strides, strict=True)]
        inner = {}
        for bound in bounds:
            _, steps, start, apart = bound
            moved = start + sum(step * offset for step, offset in zip(steps, offsets, strict=True))
            inner[tuple(step * stride for step, stride in zip(steps, strides, strict=True)), moved, apart] = bound
        for box, left in _cut(counts, tuple(inner)) if 0 not in counts else ():
            lanes = zip(box, offsets, strides, strict=True)
            slices = tuple(slice(o + s * low, o + s * (high - 1) + 1, s) for (low, high), o, s in lanes)
            found.append((slices, tuple(inner[bound] for bound in left)))
    if len(classes) == len(found) == 1 and found[0][1] and math.prod(classes[0][1]) == 1 and not any(classes[0][0]):
        return [_widened(found[0], sizes, classes[0][2])]
    return found


def _widened(found: Any, sizes: Any, bounds: Any) -> Any:
    """All positions, with all bounds, in place of a box that is masked anyway and has at least half of them."""
    many = math.prod(part.stop - part.start for part in found[0])
    whole = tuple(slice(0, size, 1) for size in sizes), tuple(bounds)
    return whole if 2 * many >= math.prod(sizes) else found


def _by_host(bounds: Any, hosts: Any, out: Any, count: Any) -> Any:
    """The bounds that each of so many operands is to meet, and those left for the result: of labels that it has."""
    used = {label for _, steps, *_ in bounds for label, step in enumerate(steps) if step}
    own = [[b for b in bounds if not used <= set(out) and hosts[b[0]] == n] for n in range(count)]
    return own, [b for b in bounds if not any(b in group for group in own)]


def _holds(arange: Any, bounds: Any, box: Any, pattern: Any) -> Any:
    """Where bounds hold in a box, along the labels of a pattern; None without bounds."""
    found = None
    for _, steps, form, apart in bounds:
        for axis, label in enumerate(pattern):
            if steps[label]:
                places = arange(box[label].start, box[label].stop, box[label].step)
                form = form + steps[label] * places.reshape((-1, *(1,) * (len(pattern) - 1 - axis)))
        here = form != 0 if apart else form >= 0
        found = here if found is None else found & here
    return found


def _kept(xp: Any, array: Any, mask: Any) -> Any:
    """An array where a mask holds, zeros elsewhere; the array itself without a mask."""
    return array if mask is None else xp.where(mask, array, 0)


def _kept_parts(xp: Any, arange: Any, array: Any, conditions: Any) -> Any:
    """The boxes in which conditions hold, each with the array in it."""
    for box, bounds in _boxes(tuple(array.shape), conditions):
        yield box, _kept(xp, array[box], _holds(arange, bounds, box, range(array.ndim)))


def _product_parts(
    selected: Any, function: Any, arrays: Any, patterns: Any, out: Any, sizes: Any, conditions: Any, hosts: Any
) -> Any:
    """Boxes in which conditions hold, each with the function of the arrays in it, `selected` where bounds are left."""
    for box, bounds in _boxes(sizes, conditions):
        pairs = zip(arrays, patterns, strict=True)
        parts = [array[tuple(box[label] for label in p)] if p else array for array, p in pairs]
        found = selected(function, parts, patterns, out, box, bounds, hosts) if bounds else function(*parts)
        yield tuple(box[label] for label in out), found
        del parts, found


def _selection(words: Any, function: Any, parts: Any, patterns: Any, out: Any, box: Any, *given: Any) -> Any:
    """The function of parts over a box, of what meets the bounds alone; each bound is one of its host's labels.

    The words are the library, what makes positions, and how it chooses by values.
    """
    (xp, arange, either), (bounds, hosts) = words, given
    own, last = _by_host(bounds, hosts, out, len(parts))
    masks = [_holds(arange, group, box, pattern) for group, pattern in zip(own, patterns, strict=True)]
    return _kept(xp, _product_of_kept(xp, either, function, parts, masks), _holds(arange, last, box, out))


def _product_of_kept(xp: Any, either: Any, product: Any, parts: Any, masks: Any, spared: Any = None) -> Any:
    """The product of parts, of which what stands beside their masks has no share: not where it is infinite, or nan.

    A result that is finite throughout is done; `either` is a library's way to look at that. The part of that number is
    spared until then, as the other one is 0 where its mask does not hold.
    """
    result = product(*(part if n == spared else _kept(xp, part, masks[n]) for n, part in enumerate(parts)))
    if len(parts) == 1 or all(mask is None for mask in masks):
        return result

    def infinite(part: Any) -> Any:
        return ~xp.isfinite(part)

    def anything(part: Any) -> Any:
        return xp.ones_like(part, dtype=bool)

    def where(n: int, told: Any) -> Any:
        truth = told(parts[n])
        return truth if masks[n] is None else masks[n] & truth

    def ones(n: int, told: Any) -> Any:
        return xp.where(where(n, told), xp.ones((), dtype=parts[n].dtype), 0)

    def without_infinities() -> Any:  # beside truths, one array of the size of each part at a time
        lost = product(ones(0, infinite), ones(1, anything)) + product(ones(0, anything), ones(1, infinite))
        clean = product(*(xp.where(where(n, xp.isfinite), part, 0) for n, part in enumerate(parts)))
        return xp.where(lost == 0, clean, result)

    return either(xp.isfinite(result).all(), lambda: result, without_infinities)
