"""What a call takes, and which laws match."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from combdiff.ir.substitution import Names
from combdiff.ir.terms import Term
from combdiff.simplification.egraph import saturation
from combdiff.simplification.egraph.context import NOTHING, Context
from combdiff.simplification.egraph.encoding import Codec
from combdiff.simplification.egraph.extraction import Extractor, read

STEPS = 3  # of saturation, in which every law matches on its example


def measured(call: Callable[[], Any]) -> tuple[Any, int]:
    """The result of a call that has run before, and the most bytes it held."""
    call()
    tracemalloc.start()
    result = call()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return result, most


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
        best = Extractor(read(egraph, codec), codec).best
        found = {name: best[egraph.lookup_function(f"$of{n}", [])][1] for n, name in enumerate(roots)}
    return fired, found
