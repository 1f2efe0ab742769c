"""Iterations block by block: the way forward, and the way back from states that were kept.

    kept, before = [], _kept_before(-(-T // 64), 5)
    for start in range(0, T, 64):                       for first, last, back in _way_back(-(-T // 64), 5):
        stop = min(start + 64, T)                           x = kept[-1]
        if start // 64 in before:                           if not back:
            kept.append(x)                                      … x from block to block
        … the block, and x after it                             kept.append(x)
                                                                continue
                                                            kept.pop()
                                                            … the block, and λ before it

The plan of a block stands in the loop as it is, under names of its own.

Invariant: what a block has made is dropped before the next one.
"""

from __future__ import annotations

from collections.abc import Iterator

from combdiff.codegen.iteration import results_of
from combdiff.dialects import NumPyDialect, parenthesised, tuple_text
from combdiff.planning import Plan, Words
from combdiff.records import dataclass


@dataclass(frozen=True)
class BlockLines:
    """The plan of a block as it is written: its states, its lines, the next states and all it gives, what it drops."""

    states: tuple[str, ...]
    lines: tuple[str, ...]
    outputs: tuple[str, ...]
    dropped: tuple[str, ...]

    def moved(self, given: tuple[str, ...]) -> Iterator[str]:
        """The block, and the states it ends with in place of those it begins with."""
        yield from self.lines
        own = self.states[len(self.states) - len(given) :]
        if own:
            yield f"{', '.join(own)} = {', '.join(given)}"

    def drop(self) -> Iterator[str]:
        """What the block has made is dropped."""
        if self.dropped:
            yield f"del {', '.join(self.dropped)}"


@dataclass(frozen=True)
class SweepLoop:
    """A sweep as it is written: the name of what it keeps, its length, its first states, and its results."""

    plan: Plan
    number: int  # of its step
    kept: str
    most: int  # states that are kept
    steps: str
    block: int
    starts: tuple[str, ...]
    names: tuple[str, ...]
    words: Words
    dialect: NumPyDialect

    @property
    def count(self) -> str:
        """How many blocks there are."""
        return f"-(-{parenthesised(self.steps)} // {self.block})"

    def head(self) -> Iterator[str]:
        """Sums, before anything is added."""
        for result, name, *_ in results_of(self.plan, self.number, self.names):
            if result.kind == "sum":
                yield f"{name} = 0  # added up block by block"

    def collected(self, body: BlockLines, is_first: str) -> Iterator[str]:
        """What a block gives, added or put in its place; the first one makes the array for all."""
        for result, name, axes, _ in results_of(self.plan, self.number, self.names):
            if result.kind == "last":
                continue
            part = body.outputs[result.component]
            if result.kind == "sum":
                yield f"{name} += {part}"
                continue
            yield f"if {is_first}:"
            comment = f"{self.words.comment(axes)} filled block by block"
            yield f"    {name} = {self.dialect.empty_like(part, self.words.shape(axes))}  # {comment}"
            yield f"{name}[{':, ' * result.axis}{self.words.block}] = {part}"

    def last(self, states: tuple[str, ...]) -> Iterator[str]:
        """The states at the end."""
        for result, name, *_ in results_of(self.plan, self.number, self.names):
            if result.kind == "last":
                yield f"{name} = {states[result.component]}"


def forward_lines(loop: SweepLoop, body: BlockLines, before: str, size: str | None) -> Iterator[str]:
    """The lines of a sweep forward; `before` names the blocks at which states are kept, `size` the length of one."""
    yield from _begun(body.states, loop.starts)
    yield from loop.head()
    if loop.most:
        yield f"{loop.kept}, {before} = [], _kept_before({loop.count}, {loop.most})"
    yield f"for start in range(0, {loop.steps}, {loop.block}):"
    yield f"    stop = min(start + {loop.block}, {loop.steps})"
    yield from _sized(size, "    ")
    if loop.most:
        yield f"    if start // {loop.block} in {before}:"
        yield f"        {loop.kept}.append({tuple_text(body.states)})"
    given = body.outputs[: len(body.states)]
    yield from (f"    {line}" for line in (*body.moved(given), *loop.collected(body, "start == 0"), *body.drop()))
    yield from loop.last(body.states)


def back_lines(
    loop: SweepLoop, body: BlockLines, advance: BlockLines, size: str | None, advance_size: str | None
) -> Iterator[str]:
    """The lines of a sweep back, with blocks done forward again; the states of `advance` are those of the body, too."""
    own = body.states[len(advance.states) :]
    yield from _begun(own, loop.starts)
    yield from loop.head()
    yield f"for first, last, back in _way_back({loop.count}, {loop.most}):"
    yield f"    {tuple_text(advance.states)} = {loop.kept}[-1]"
    yield "    if not back:"
    yield f"        for start in range(first * {loop.block}, last * {loop.block}, {loop.block}):"
    yield f"            stop = start + {loop.block}"
    yield from _sized(advance_size, "            ")
    yield from (f"            {line}" for line in (*advance.moved(advance.outputs), *advance.drop()))
    yield f"        {loop.kept}.append({tuple_text(advance.states)})"
    yield "        continue"
    yield f"    {loop.kept}.pop()"
    yield f"    start, stop = first * {loop.block}, min(last * {loop.block}, {loop.steps})"
    yield from _sized(size, "    ")
    given = body.outputs[: len(own)]
    lines = (*body.moved(given), *loop.collected(body, f"stop == {loop.steps}"), *body.drop())
    yield from (f"    {line}" for line in lines)
    yield from loop.last(own)


def _begun(states: tuple[str, ...], starts: tuple[str, ...]) -> Iterator[str]:
    for state, start in zip(states, starts, strict=True):
        yield f"{state} = {start}"


def _sized(size: str | None, indent: str) -> Iterator[str]:
    if size:
        yield f"{indent}{size} = stop - start"
