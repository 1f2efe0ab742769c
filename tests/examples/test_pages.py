"""What the pages show is what their code prints, and what they link to is there."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
from pathlib import Path

import pytest

import combdiff as cd

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


@pytest.mark.usefixtures("primitive_table")
@pytest.mark.sample(2)
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_a_page_shows_what_its_code_prints(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python blocks run one after the other; a text block that follows one is exactly what it prints."""
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {"__name__": "page"}
    blocks = re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", page.read_text(encoding="utf-8"), re.DOTALL)
    for code, expected in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec", dont_inherit=True), scope)
        assert printed.getvalue().strip() == expected.strip(), code


def test_readme_and_the_documents_share_no_paragraph() -> None:
    """Nor a block of code; titles and imports are short."""
    readme, *documents = (
        {" ".join(part.split()) for part in re.split(r"\n\s*\n", page.read_text(encoding="utf-8")) if len(part) > 80}
        for page in PAGES
    )
    assert len(readme) > 20
    assert not [part for part in readme if any(part in document for document in documents)]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert not [link for link in links if "://" not in link and not (page.parent / link).exists()]


def test_the_table_of_numpys_functions_is_that_of_the_script() -> None:
    expected = runpy.run_path(str(ROOT / "docs" / "numpy_functions.py"))["page"]()
    assert (ROOT / "docs" / "guide" / "numpy.md").read_text(encoding="utf-8") == expected, "docs/numpy_functions.py"
    assert "linalg.matrix_rank" in expected


def test_the_reference_is_that_of_the_script() -> None:
    script = ROOT / "docs" / "reference.py"
    expected = runpy.run_path(str(script))["page"]()
    assert (ROOT / "docs" / "reference.md").read_text(encoding="utf-8") == expected, "run python docs/reference.py"
    named = set(re.findall(r"`(\w+)`|^::: [\w.]+\.(\w+?)_?$", expected, re.MULTILINE))
    assert not set(cd.__all__) - {one or other for one, other in named} - {"interop", "testing"}


def test_the_site_has_every_page() -> None:
    listed = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert listed == {str(page.relative_to(ROOT / "docs")) for page in PAGES if "docs" in page.parts}


def test_the_pictures_are_those_of_the_script() -> None:
    """docs/pictures.py draws them; they are committed so that a page shows them where no Python runs."""
    script = ROOT / "docs" / "pictures.py"
    drawn = runpy.run_path(str(script))["drawn"]()
    for name, picture in drawn.items():
        written = (script.parent / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
        assert written.endswith(picture.svg.split(">", 1)[1] + "\n"), f"run python {script.relative_to(ROOT)}"


def test_pages_share_no_paragraph() -> None:
    paragraphs = [
        part.strip()
        for page in PAGES
        for part in re.split(r"\n\n+", re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL))
        if len(part.strip()) > 80
    ]
    assert len(set(paragraphs)) == len(paragraphs)
