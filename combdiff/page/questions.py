"""What may be asked of the page, and within which bounds.

    {"part": "derivative", "text": "x'*A*x", "wrt": ["x"], "sizes": {}}   →   Question("derivative", "x'*A*x", ("x",))

Invariant: a Question is of the right types and within the bounds, whatever JSON it was made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from combdiff.errors import CombdiffError, shown
from combdiff.records import dataclass

PARTS = ("derivative", "source", "explanation", "plan", "check")
MOST_CHARACTERS, MOST_WRT, MOST_SIZES, LARGEST_SIZE = 20_000, 4, 40, 10**12


class QuestionError(CombdiffError):
    """A request that is no question of the page."""


@dataclass(frozen=True)
class Limits:
    """How much one page may take: seconds and bytes of an answer, answers at once, questions that wait, bytes sent."""

    seconds: float = 30.0
    memory: int = 3 << 30
    workers: int = 2
    waiting: int = 8
    request: int = 1 << 16


@dataclass(frozen=True)
class Question:
    """An expression, the lists of names to differentiate by in turn, sizes for costs, and which part is asked for."""

    part: str
    text: str
    wrt: tuple[str, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()


def question(given: Any) -> Question:
    """The question that a JSON value asks. Raises QuestionError, naming the entry, for one that it is not."""
    if not isinstance(given, dict):
        raise QuestionError("a question is a JSON object")
    part = _entry(given, "part", lambda value: value in PARTS, f"one of {', '.join(PARTS)}")
    text = _entry(given, "text", _is_text, f"a text of at most {MOST_CHARACTERS} characters")
    wrt = _entry(given, "wrt", _are_names, f"at most {MOST_WRT} lists of names such as 'A, x'", [])
    sizes = _entry(given, "sizes", _are_sizes, 'sizes such as {"n": 100}', {})
    return Question(part, text, tuple(wrt), tuple(sizes.items()))


def _entry(given: dict[str, Any], key: str, holds: Callable[[Any], bool], expected: str, default: Any = None) -> Any:
    value = given.get(key, default)
    if not holds(value):
        raise QuestionError(f"{key} is {shown(value)}; expected {expected}")
    return value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MOST_CHARACTERS


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MOST_WRT and all(_is_text(each) for each in value)


def _are_sizes(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) > MOST_SIZES:
        return False
    return all(name.isidentifier() and type(n) is int and 0 < n <= LARGEST_SIZE for name, n in value.items())
