"""What the pages show is what their code prints, and what they link to is there."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


@pytest.mark.usefixtures("primitive_table")
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


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert not [link for link in links if "://" not in link and not (page.parent / link).exists()]


def test_pages_share_no_paragraph() -> None:
    paragraphs = [
        part.strip()
        for page in PAGES
        for part in re.split(r"\n\n+", re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL))
        if len(part.strip()) > 80
    ]
    assert len(set(paragraphs)) == len(paragraphs)
