"""Places in a text, and the error that shows one.

    TextError("'y' is not declared", "declare x 1 expression x + y", 27)
    = line 1, column 28: 'y' is not declared
        declare x 1 expression x + y
                                   ^

Invariant: what a message quotes of a text is one short line of printable characters, whatever the text holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from combdiff.errors import CombdiffError
from combdiff.records import dataclass

BEFORE, AFTER = 48, 40  # characters of the line shown on the two sides of a place
MOST_QUOTED = 40


@dataclass(frozen=True)
class Span:
    """The characters from start (included) to end (not included) of a text."""

    start: int
    end: int

    def through(self, other: Span) -> Span:
        """From the start of this span to the end of another."""
        return Span(self.start, other.end)


class TextError(CombdiffError):
    """A text in the text language that does not describe a derivative.

    `line` and `column` count from 1; `position` counts characters of `text` from 0. The message ends with `excerpt`,
    the line and a caret under the place.
    """

    def __init__(self, message: str, text: str = "", position: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.text, self.position = text, position
        self.excerpt = excerpt(text, position)
        self.line = text.count("\n", 0, position) + 1
        self.column = position - text.rfind("\n", 0, position)
        advice = f"\n  hint: {hint}" if hint else ""
        self.args = (f"line {self.line}, column {self.column}: {message}\n{self.excerpt}{advice}",)


def printable(text: str) -> str:
    """The text with control and other invisible characters written as escapes, on one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def quoted(text: str) -> str:
    """A short printable quotation of a part of a text."""
    joined = " ".join(text[: 4 * MOST_QUOTED].split())
    cut = joined if len(joined) <= MOST_QUOTED else joined[: MOST_QUOTED - 1] + "…"
    return f"'{printable(cut)}'"


def excerpt(text: str, position: int) -> str:
    """The line around a position with a caret under it; a long line is cut."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    first, last = max(start, position - BEFORE), min(end, position + AFTER)
    before = ("…" if first > start else "") + printable(text[first:position])
    after = printable(text[position:last]) + ("…" if last < end else "")
    return f"  {before}{after}\n  {' ' * len(before)}^"


def stopped(problem: Any) -> tuple[int | None, set[str]]:
    """Where lark's parser stopped, None at the end of the text, and what could stand there."""
    token = getattr(problem, "token", None)
    expected = set(getattr(problem, "expected", None) or getattr(problem, "allowed", None) or ())
    ends = token is not None and token.type == "$END"
    return None if ends else max(0, problem.pos_in_stream or 0), expected


def alternatives(words: Sequence[str]) -> str:
    """Words for one of which there is room: `a, b or c`."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or "nothing more"
