"""Writes docs/guide/numpy.md, which of NumPy's functions a program takes: python docs/numpy_functions.py."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np

import combdiff as cd

assert cd.sum, "the tables are full once tracing is imported"

from combdiff.tracing.numpy_protocol import HANDLERS, REFUSED, UFUNC_METHODS  # noqa: E402

PAGE = Path(__file__).parent / "guide" / "numpy.md"
MODULES = ((np, ""), (np.linalg, "linalg."), (np.fft, "fft."), (np.lib.stride_tricks, "lib.stride_tricks."))


def names(functions: Any) -> list[str]:
    """The names of functions of NumPy's, each with all of its spellings."""
    found = {
        prefix + name
        for module, prefix in MODULES
        for name in dir(module)
        if not name.startswith("_") and callable(value := getattr(module, name)) and value in functions
    }
    return sorted(name for name in found if name.rpartition(".")[2] not in ("bool", "bool_"))


def listed(found: list[str]) -> str:
    """Names as code, in lines of a page."""
    return "\n".join(textwrap.wrap(" ".join(f"`{name}`" for name in found), 118, break_on_hyphens=False))


def page() -> str:
    """The whole page."""
    taken = names({f for f in HANDLERS if callable(f) and f is not np.asarray})  # which NumPy does not ask for
    reasons: dict[tuple[str, str], list[Any]] = {}
    for function, said in REFUSED.items():
        reasons.setdefault(said, []).append(function)
    rows = []
    for (reason, instead), functions in reasons.items():
        methods = sorted(name for name in functions if isinstance(name, str))
        shown = [f"`{name}`" for name in (*names({f for f in functions if callable(f)}), *(f".{m}" for m in methods))]
        rows.append(f"| {', '.join(shown)} | {reason} | {instead.replace('|', '&#124;')} |")
    return (
        "\n\n".join(
            (
                "# NumPy's functions",
                "This page is written by `python docs/numpy_functions.py` from the tables that programs are traced by.",
                "## Taken",
                f"With NumPy's meaning and keywords, of {len(taken)} names:",
                listed(taken),
                f"Of functions of elements also the methods {', '.join(f'`{m}`' for m in sorted(UFUNC_METHODS))}, "
                "as in "
                "`np.add.reduce(A, axis=1)`.\n`np.maximum.accumulate(x)` and the like are recurrences, as `cd.scan` is."
                " What happens at ties, zeros and branch points\nstands in "
                "[a table](arrays.md#where-a-function-has-no-derivative).",
                "## Refused",
                "| not taken | because | write |\n| --- | --- | --- |\n" + "\n".join(rows),
            )
        )
        + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
