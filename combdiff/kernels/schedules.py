"""The binomial schedule: between which blocks of steps the states are kept, so that a way back computes few again.

    _kept_before(6, 3)           [0, 3, 5]                     on the way forward: states before these blocks
    list(_way_back(6, 3))        (5, 6, True), (3, 4, False), (4, 5, True), (3, 4, True), …

A pair of blocks and False is a part of the way forward, done again from the states kept last, after which the states
are kept; True is a block that is done back, after which the states kept last, those it began with, are dropped. With s
states kept beside those that a part begins with, no step is done more than r + 1 times forward for up to
(s + r)! / (s! r!) blocks, and no other schedule does with fewer (Griewank & Walther 2000, algorithm 799: revolve).

Invariant: at most `kept` states are held at one time, and each block is done back once, from the last to the first.
"""

from __future__ import annotations

from typing import Any


def _kept_before(blocks: Any, kept: Any) -> Any:
    """The blocks before which states are kept on the way forward."""
    found = [0]
    while blocks > 1:
        piece = _piece(blocks, kept)
        found.append(found[-1] + piece)
        blocks, kept = blocks - piece, kept - 1
    return found


def _way_back(blocks: Any, kept: Any) -> Any:
    """What is done after the way forward: pairs of blocks, from the first up to the last, and whether back."""
    todo, begun = [(0, blocks, kept)], False
    while todo:
        first, blocks, kept = todo.pop()
        if blocks == 1:
            begun = True
            yield first, first + 1, True
            continue
        piece = _piece(blocks, kept)
        if begun:
            yield first, first + piece, False
        todo += [(first, piece, kept), (first + piece, blocks - piece, kept - 1)]


def _piece(blocks: Any, kept: Any) -> Any:
    """How many blocks lie between the states that are kept and the next ones."""
    if kept <= 2:
        return blocks - 1
    slots, sweeps, before, reach = kept - 1, 0, 0, 1
    while reach < blocks:  # reach = (slots + sweeps)! / (slots! sweeps!)
        sweeps += 1
        before, reach = reach, reach * (slots + sweeps) // sweeps
    return min(before, blocks - before * slots // (slots + sweeps - 1))
