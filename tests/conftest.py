"""What several test files need, and how Hypothesis draws its examples: the same in every run, so that what fails can
be repeated.

`pytest --hypothesis-profile=explore` draws new ones; `--hypothesis-profile=thousand` a thousand for each fuzz test.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from combdiff.ir.primitives import TABLE

settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.register_profile("explore", deadline=None)
settings.register_profile("thousand", max_examples=1000, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture
def primitive_table() -> Iterator[None]:
    """Gives the table of primitives back as it was."""
    before = dict(TABLE)
    yield
    TABLE.clear()
    TABLE.update(before)


@pytest.fixture
def rule_file(tmp_path: Path) -> Callable[..., str]:
    """Writes a rule file and gives its path."""

    def write(text: str, name: str = "mine.egg") -> str:
        (tmp_path / name).write_text(text, "utf-8")
        return str(tmp_path / name)

    return write
