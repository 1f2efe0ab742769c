"""Spaces that type checkers take: what is in `Annotated` is the annotation."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

import combdiff as cd

Vector = Annotated[Any, cd.Space("n")]
CHECKED = """
from typing import Annotated, Any

import numpy as np

import combdiff as cd

Vector = Annotated[Any, cd.Space("n")]


@cd.program
def form(A: Annotated[Any, cd.Space("n", "n")], x: Vector) -> Any:
    return np.exp(x) @ A @ x


value: cd.Program = cd.grad(form, "x")
"""


def test_annotated_spaces_are_those_of_the_parameters() -> None:
    @cd.program
    def form(A: Annotated[Any, cd.Space("n", "n")], x: Vector):
        return x @ A @ x

    @cd.program
    def plain(A: cd.Space("n", "n"), x: cd.Space("n")):
        return x @ A @ x

    assert form == plain
    assert form(np.eye(2), np.arange(2.0)) == 1
    assert list(inspect.signature(form).parameters) == ["A", "x"]


def test_other_annotations_are_refused_as_before() -> None:
    def f(x: Annotated[Any, "a vector"]):
        return x

    with pytest.raises(cd.TraceError, match="which is not a Space or a Function"):
        cd.program(f)


@pytest.mark.needs("mypy")
def test_a_type_checker_takes_annotated_spaces(tmp_path: Path) -> None:
    (tmp_path / "checked.py").write_text(CHECKED, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "checked.py"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Success" in found.stdout, found.stdout
