"""What a call takes, and which laws match."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from combdiff.simplification.egraph import saturation


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
