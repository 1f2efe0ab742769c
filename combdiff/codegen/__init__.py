"""Plans as source: standalone Python that needs one array library, as a person would write it.

    Contract(left=(0, 1), right=(1,), out=(0,))   →   A @ x

In: a `Plan` and the name of a backend. Out: text; what this text says is what runs.

In the order in which data meets them: `iteration` (loops of steps), `sweeps` (in blocks), `writer` (the whole plan: it
names what a plan has, and writes its steps line by line; each operation writes itself, in the words of a library).

Invariant: the text needs its backend alone, and the same plan gives the same text in every process.
"""

from combdiff.codegen.writer import source, step_names

__all__ = [
    "source",
    "step_names",
]
