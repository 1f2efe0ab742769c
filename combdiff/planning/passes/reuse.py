"""Results written over operands that nothing reads any more.

    t2 = np.exp(t1)                 becomes     t2 = np.exp(t1, out=t1)
    t4 = t2 * t3                                t4 = np.multiply(t2, t3, out=t2)

New memory costs more than arithmetic on it. Done element by element alone, for arrays of some size and in loops, where
the operand is an array of the plan's own with the shape and element type of the result. Which element types arrays have
is known up to their width, so an operand counts as wide enough when its width comes from all the arguments that the
others' do.

Invariant: no argument and no result that was returned changes, and every result has the element type it had.
"""

from __future__ import annotations

from combdiff.planning.operations.words import Words
from combdiff.planning.plan import Plan


def written_over(plan: Plan, words: Words, n: int, text: str) -> str:
    """The expression of a step, written over an operand where one may be; `text` is it without."""
    step = plan.steps[n]
    if (m := next(plan.writable(n), None)) is None:
        return text
    called = step.operation.called(words, step, list(map(words.operand, step.operands)))
    return f"{words.dialect.np}.{called[:-1]}, out={words.operand(m)})" if called else text
