"""The operations of plans: each a class that knows its labels, what it costs, and its text in the words of a dialect.

    Contract(left=(0, 1), right=(1,), out=(0,))     flops n·m     A @ x

In: arrays and numbers. Out: one array.

`words` (how steps, sizes and element types are called), `operation` (what each tells of itself, and a `Step`),
`leaves` (arguments, numbers), `positions`, `reads` and `wrapped_reads` (views), `elementwise`, `contraction`,
`reductions`, `diagonals`, `stacks`, `masks` (conditions), `prefixes` (sums up to each position), `windows` and
`sliding`, `indirections` (indices in arrays), `matrices`, `calls`, `loops` (blocks), `iterations` (programs done over
and over).

Invariant: an operation says everything about a step but the sizes; adding one is adding a class here.
"""

from combdiff.planning.operations.calls import NamedCall, SolveEquation, plain_name
from combdiff.planning.operations.contraction import Contract, stack_of, stackable
from combdiff.planning.operations.diagonals import DiagonalEmbed, DiagonalScatterAdd
from combdiff.planning.operations.elementwise import Combine, ConjugateElements, ElementwiseStep, Scale
from combdiff.planning.operations.indirections import At, Clip, IndexEquals, Iota, Scatter, Take
from combdiff.planning.operations.iterations import Ending, Iteration, IterationResult, Sweep, SweepBack
from combdiff.planning.operations.leaves import Fill, Parameter
from combdiff.planning.operations.loops import Block, Choice, Collect
from combdiff.planning.operations.masks import IndexCondition, Mask, MaskedContract
from combdiff.planning.operations.matrices import (
    Decomposition,
    DecompositionResult,
    Gram,
    LinearSolve,
    MatrixFunctionStep,
)
from combdiff.planning.operations.operation import (
    BUFFER,
    ITEM_BYTES,
    InnerCost,
    Labels,
    Occurrence,
    Operation,
    PartialResult,
    Step,
)
from combdiff.planning.operations.positions import Position
from combdiff.planning.operations.prefixes import PrefixExponentials, PrefixMax, PrefixSum
from combdiff.planning.operations.reads import Arrange, JoinAxes, Read
from combdiff.planning.operations.reductions import MagnitudeStep, Reduce, ReduceMax, Rescale
from combdiff.planning.operations.sliding import Correlate, Fold
from combdiff.planning.operations.stacks import SideBySide
from combdiff.planning.operations.words import UNIT, Pattern, SizeFactor, Words

__all__ = [
    "BUFFER",
    "ITEM_BYTES",
    "UNIT",
    "Arrange",
    "At",
    "Block",
    "Choice",
    "Clip",
    "Collect",
    "Combine",
    "ConjugateElements",
    "Contract",
    "Correlate",
    "Decomposition",
    "DecompositionResult",
    "DiagonalEmbed",
    "DiagonalScatterAdd",
    "ElementwiseStep",
    "Ending",
    "Fill",
    "Fold",
    "Gram",
    "IndexCondition",
    "IndexEquals",
    "InnerCost",
    "Iota",
    "Iteration",
    "IterationResult",
    "JoinAxes",
    "Labels",
    "LinearSolve",
    "MagnitudeStep",
    "Mask",
    "MaskedContract",
    "MatrixFunctionStep",
    "NamedCall",
    "Occurrence",
    "Operation",
    "Parameter",
    "PartialResult",
    "Pattern",
    "Position",
    "PrefixExponentials",
    "PrefixMax",
    "PrefixSum",
    "Read",
    "Reduce",
    "ReduceMax",
    "Rescale",
    "Scale",
    "Scatter",
    "SideBySide",
    "SizeFactor",
    "SolveEquation",
    "Step",
    "Sweep",
    "SweepBack",
    "Take",
    "Words",
    "plain_name",
    "stack_of",
    "stackable",
]
