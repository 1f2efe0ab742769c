"""Every notebook shows what its cells give: its outputs are committed, and are those of this version."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from notebooks import FOLDER, code_cells, outputs

NEEDS = {"hartree_fock": "pyscf"}


PATHS = pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.name)


@PATHS
@pytest.mark.needs("nbformat")
def test_a_notebook_is_one_by_the_format(path: Path) -> None:
    import nbformat

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # missing ids are warned of, and mended silently
        nbformat.validate(nbformat.read(path, as_version=4))


@pytest.mark.sample(1)
@PATHS
def test_a_notebook_shows_what_its_cells_give(path: Path) -> None:
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem])
    cells = code_cells(json.loads(path.read_text(encoding="utf-8")))
    for number, (cell, found) in enumerate(zip(cells, outputs(cells), strict=True), start=1):
        assert cell["outputs"] == found, "run python tests/examples/notebooks.py"
        assert cell["execution_count"] == number
