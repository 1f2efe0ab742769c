"""Notebooks without Jupyter: their cells run, and what they show is as a notebook holds it.

python tests/examples/notebooks.py        # runs every notebook of examples/ and writes its outputs into it
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "examples"
SHOWN = {"text/html": "_repr_html_", "text/latex": "_repr_latex_", "image/svg+xml": "_repr_svg_"}


def outputs(cells: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """What each code cell prints, and shows of the value of its last line."""
    scope: dict[str, Any] = {"__name__": "__notebook__"}
    return [_run("".join(cell["source"]), number, scope) for number, cell in enumerate(cells, start=1)]


def _run(source: str, number: int, scope: dict[str, Any]) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), scope)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), scope)
    found = []
    if printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {kind: _lines(getattr(value, name)()) for kind, name in SHOWN.items() if hasattr(value, name)}
        plain = repr(value)
        data["text/plain"] = _lines(plain if len(plain) < 200 else f"<{type(value).__name__}>")
        found.append({"output_type": "execute_result", "execution_count": number, "data": data, "metadata": {}})
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells that hold code, in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def write(path: Path) -> None:
    """Run a notebook and write its outputs into it; its cells get the names that nbformat 4.5 asks for."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    notebook["cells"] = [{**cell, "id": f"cell-{n}"} for n, cell in enumerate(notebook["cells"])]
    cells = code_cells(notebook)
    for number, (cell, found) in enumerate(zip(cells, outputs(cells), strict=True), start=1):
        cell.update(outputs=found, execution_count=number)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for notebook_ in sorted(FOLDER.glob("*.ipynb")):
        write(notebook_)
