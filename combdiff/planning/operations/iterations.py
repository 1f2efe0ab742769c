"""Programs that are done over and over, each time with the states that the time before has given.

An `Iteration` holds what it makes for all steps. Where that is too much, a `Sweep` does the steps block by block, and a
`SweepBack` does what runs from the last step to the first, with the blocks done again from states that were kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.ir import Domain, Lambda
from combdiff.planning.extents import shape
from combdiff.planning.operations.operation import Occurrence, Operation, PartialResult, Step
from combdiff.planning.operations.words import Words
from combdiff.records import dataclass

OBJECT = 160  # bytes that Python takes for an array or a tuple beside its elements
TITLES = {
    "last": "last state",
    "before": "states",
    "after": "of each step",
    "sum": "sum over the steps",
    "each": "of each step",
}


@dataclass(frozen=True)
class Ending:
    """How the steps of an iteration end: by conditions of its states, under which a step is the program `system`.

    Both take what a step takes. Where one of the conditions fails, no later step changes anything.
    """

    conditions: Lambda
    system: Lambda


@dataclass(frozen=True)
class Iteration(Operation):
    """A program done once for each of the `steps`; its results are those of the `IterationResult`s that read it.

    The program takes `states` first, which its first results replace, then slices of `stacks` tensors along their first
    axes, then what is the same in every step. The operands are the first states, those tensors and the rest; those that
    may be infinite or no number somewhere are `partial` parameters. A loop that can end early may be done by `ending`;
    one with `conditions` does so where one of them fails.
    """

    system: Lambda
    steps: Domain
    states: int
    stacks: int
    reverse: bool
    partial: frozenset[str] = frozenset()
    ending: Ending | None = None
    conditions: Lambda | None = None

    @property
    def programs(self) -> tuple[Lambda, ...]:
        """What is done over and over."""
        return (self.system, self.conditions) if self.conditions else (self.system,)

    @property
    def planned(self) -> tuple[Lambda, ...]:
        """What is done over and over, in either form."""
        return (*self.programs, self.ending.system, self.ending.conditions) if self.ending else self.programs

    def flops(self, at: Occurrence) -> int:
        """Those of all steps; none while the program of a step is not planned yet."""
        (steps,) = shape([self.steps], at.sizes)
        return steps * sum(inner.flops for inner in at.inner)

    def held(self, at: Occurrence) -> int:
        """Its results hold what it makes."""
        return 0

    def workspace(self, at: Occurrence) -> int:
        """What a step takes, and the states that it begins with."""
        return max(inner.peak for inner in at.inner) + _bytes(at, 0, self.states)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The statements around it are a loop's."""
        raise TypeError("an iteration is written as a loop")


@dataclass(frozen=True)
class Sweep(Operation):
    """The plan `body` done for each block of the `steps`, from the first to the last, and states `kept` on the way.

    The plan takes `states` first, which its first results replace, then the `captured` parameters; the operands are the
    first states and what is captured. `size` and `start` name the length of a block and its first step.
    """

    body: str
    steps: Domain
    size: str
    start: str
    states: int
    captured: tuple[str, ...]
    kept: int

    def blocks(self, at: Occurrence) -> int:
        """How many blocks there are."""
        (steps,) = shape([self.steps], at.sizes)
        return -(-steps // at.sizes[self.size])

    def flops(self, at: Occurrence) -> int:
        """Those of all blocks."""
        return self.blocks(at) * at.inner[0].flops

    def held(self, at: Occurrence) -> int:
        """The states that are kept, counted as real numbers."""
        return self.kept * (_bytes(at, 0, self.states) + OBJECT * (1 + self.states)) // at.item

    def workspace(self, at: Occurrence) -> int:
        """What a block takes, and the states before and after it."""
        return at.inner[0].peak + 2 * _bytes(at, 0, self.states)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The statements around it are a loop's."""
        raise TypeError("a sweep is written as a loop")


@dataclass(frozen=True)
class SweepBack(Operation):
    """The plan `body` done for each block of the steps of a `forward` sweep, from the last to the first.

    Its plan takes the states of the forward sweep before the block, then `states` of its own, which its first results
    replace, then the `captured` parameters. The plan `advance` of the forward states and `captured` parameters gives
    the next forward states. The operands are the forward sweep, the first own states, and what is captured.
    """

    forward: Sweep
    body: str
    advance: str
    states: int
    captured: tuple[str, ...]

    def flops(self, at: Occurrence) -> int:
        """Those of all blocks back, and forward again between the states that are kept."""
        body, advance = at.inner
        blocks = self.forward.blocks(at)
        again = advances(int(blocks), self.forward.kept) - (int(blocks) - 1)
        return blocks * body.flops + again * advance.flops

    def held(self, at: Occurrence) -> int:
        """Its results hold what it makes."""
        return 0

    def workspace(self, at: Occurrence) -> int:
        """What a block takes, and the states before and after it."""
        return max(inner.peak for inner in at.inner) + 2 * _bytes(at, 1, 1 + self.states)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The statements around it are a loop's."""
        raise TypeError("a sweep is written as a loop")


def advances(blocks: int, kept: int) -> int:
    """Over how many blocks the states are carried forward, so that all are done back: r·blocks − (s + r)!/(s+1)!(r−1)!.

    s = kept − 1, and r is the least number with blocks ≤ (s + r)!/s!r! (Griewank & Walther 2000).
    """
    slots, sweeps, reach = kept - 1, 0, 1
    while reach < blocks:
        sweeps += 1
        reach = reach * (slots + sweeps) // sweeps
    return sweeps * blocks - reach * sweeps // (slots + 1)


def _bytes(at: Occurrence, first: int, last: int) -> int:
    """The bytes of some of the operands."""
    pairs = list(zip(at.given, at.operands, strict=True))[first:last]
    return sum(size * one.item for size, one in pairs)


@dataclass(frozen=True)
class IterationResult(PartialResult):
    """The last of the states that an iteration has, or for all steps what one begins with ("before") or gives.

    Of a sweep: the last states, the "sum" over its blocks of a result of its plan, or that "each" of them gives.
    """

    kind: str
    component: int
    axis: int = 0  # along which blocks lie side by side

    @property
    def title(self) -> str:
        """Which of the results it is."""
        return TITLES[self.kind]

    @property
    def is_made_along(self) -> bool:
        """A last state is one of those that the steps take, which these count."""
        return self.kind != "last"
