"""What an error says to whom it meets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

import combdiff as cd


def message(error: type[cd.CombdiffError], action: Callable[[], Any]) -> str:
    """What is wrong and what mends it, of the error that an action raises, which names the action's file."""
    with pytest.raises(error) as raised:
        action()
    assert f"{action.__code__.co_filename}:" in str(raised.value)
    hint = f" — {raised.value.hint}" if raised.value.hint else ""
    return f"{raised.value.message}{hint}"


def messages_of(wrong: Mapping[str, tuple[type[cd.CombdiffError], Callable[[], Any], str]]) -> Callable[[str], None]:
    """A test of each row: the error, the action that raises it, and how its message begins."""

    @pytest.mark.parametrize("name", wrong)
    def test(name: str) -> None:
        error, action, expected = wrong[name]
        assert message(error, action).startswith(expected)

    return test
