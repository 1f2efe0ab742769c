"""What a call takes beside what is promised, and which laws match."""

from __future__ import annotations

import math
import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir import Scan, Space, subterms
from combdiff.ir.substitution import Names
from combdiff.ir.terms import Term
from combdiff.planning.operations.matrices import Decomposition, LinearSolve, MatrixFunctionStep
from combdiff.planning.operations.transforms import FourierTransform
from combdiff.planning.planning import size_names
from combdiff.runtime.execution import plan
from combdiff.simplification.egraph import saturation
from combdiff.simplification.egraph.context import NOTHING, Context
from combdiff.simplification.egraph.encoding import Codec
from combdiff.simplification.egraph.extraction import Extractor, read
from combdiff.testing.arrays import array_shape, random_arrays

OWN = 12288  # the interpreter's own objects, in a loop over blocks those of the blocks too
BUFFER = 8192  # elements that NumPy lays out at a time where it must
BUFFERS = 2 * BUFFER * 16  # where an operand has another order of axes, say
UNSEEN = MatrixFunctionStep | LinearSolve | Decomposition | FourierTransform  # of which tracemalloc sees only a part
MOST = 1 << 26  # bytes
STEPS = 3  # of saturation, in which every law matches on its example


def measured(call: Callable[[], Any]) -> tuple[Any, int]:
    """The result of a call that has run before, and the most bytes it held."""
    call()
    tracemalloc.start()
    result = call()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return result, most


def enlarged(program: cd.Program, scale: float = 1.0, longest: int = 130_000) -> tuple[dict[str, int], list[Any]]:
    """Sizes at which arrays take a megabyte or so, or an axis has thousands of indices, and arguments of that scale."""
    spaces = [p.type for p in program.parameters if isinstance(p.type, Space)]
    names, repeats = sorted(size_names(program.term)), any(isinstance(part, Scan) for part in subterms(program.term))
    sizes: dict[str, int] = {}
    for least in (1, 2, 3, 12, 80, 400, 1000, 4000, *(() if repeats else (longest,))):
        larger = {name: least + min(7, least // 2) * (n % 3) for n, name in enumerate(names)}
        given = sum(8 * math.prod(array_shape(space, larger)) for space in spaces)
        taken = given if given > MOST else max(given, program.cost(**larger).peak_bytes)
        if taken > MOST and sizes:
            break
        sizes = larger
        if taken >= 1 << 20:
            break
    drawn = random_arrays(program.parameters, np.random.default_rng(5), sizes).values()
    return sizes, [array * scale if array.dtype.kind == "f" and array.ndim else array for array in drawn]


def assert_takes_what_is_promised(program: cd.Program, scale: float = 1.0, room: float = 1.1) -> None:
    """A program takes the memory that `cost()` promises, and hardly less, at sizes at which that can be told."""
    sizes, given = enlarged(program, scale)
    promised = program.cost(**sizes).peak_bytes
    with np.errstate(all="ignore"):
        _, most = measured(lambda: program(*given))
    assert most <= promised + OWN, (program.name, sizes)
    if not any(isinstance(step.operation, UNSEEN) for step in plan(program.term, sizes).steps):
        assert promised <= room * most + BUFFERS, (program.name, sizes)


def assert_keeps_to_the_least_limit(program: cd.Program, scale: float = 1.0) -> None:
    """The smallest limit that is named is kept to, and hardly less is taken within it."""
    sizes, given = enlarged(program, scale, 16_000)  # as many rounds, of one element, a loop within it may have
    with np.errstate(all="ignore"):
        try:
            program.compile(memory_limit=1)(*given)
        except cd.MemoryLimitError as error:
            least = int(error.hint.rpartition("=")[2])
        else:  # a number that it returns is all that there is
            return
        limited = program.compile(memory_limit=least)
        _, most = measured(lambda: limited(*given))
    assert most <= least + OWN, (program.name, sizes)
    if not any(isinstance(step.operation, UNSEEN) for step in plan(program.term, sizes).steps):
        assert least <= 1.1 * most + BUFFERS, (program.name, sizes)


def laws_counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each law matches from here on."""
    found: Counter[str] = Counter()

    def run(egraph: Any, program: str) -> list[Any]:
        outputs: list[Any] = egraph.run_program(*egraph.parse_program(program))
        for report in (getattr(output, "report", None) for output in outputs):
            found.update(report.num_matches_per_rule if report is not None else ())
        return outputs

    monkeypatch.setattr(saturation, "run_text", run)
    return found


def side_by_side(
    terms: Mapping[str, Term], written: Mapping[str, str] | None = None, context: Context = NOTHING
) -> tuple[Counter[str], dict[str, Term]]:
    """Terms in one e-graph, some as egglog expressions: how often each law matched, and the cheapest form of each."""
    codec, fired, roots = Codec(context), Counter[str](), dict[str, str]()
    with saturation.session(()) as egraph:
        for name, term in terms.items():
            parts, roots[name] = codec.written(saturation.apart(term, Names(term)))
            saturation.run_text(egraph, parts)
        roots |= written or {}
        saturation.run_text(egraph, codec.tensor_laws())
        saturation.run_text(egraph, "\n".join(f"(let $of{n} {root})" for n, root in enumerate(roots.values())))
        for _ in range(STEPS):
            (ran,) = saturation.run_text(egraph, saturation.STEP)
            fired.update(ran.report.num_matches_per_rule)
        best = Extractor(read(egraph, codec), codec).best_of_all()
        found = {name: best[egraph.lookup_function(f"$of{n}", [])][1] for n, name in enumerate(roots)}
    return fired, found
