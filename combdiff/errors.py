"""The errors users meet, one family under `CombdiffError`, each with the place in the user's own file.

An error says what was written, what was found, what was expected and how to mend it. `user_location` walks
the stack to the innermost frame outside this package, so a message can name the user's file and line.
"""

from __future__ import annotations

import functools
import linecache
import opcode
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType

_PACKAGE = str(Path(__file__).parent)
_LIBRARY = str(Path(functools.__file__).parent)
_CALLERS = tuple(  # not imported: `--help` needs none
    str(Path(found.origin).parent) for name in ("numpy", "scipy") if (found := find_spec(name)) and found.origin
)


@dataclass(frozen=True)
class Location:
    """A line of the user's source, and the column in it where that is known (0 where not)."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"


def user_location() -> Location | None:
    """The innermost stack frame that is not combdiff's own, or None at top level of an embedded interpreter."""
    frame = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return Location(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def user_asks() -> tuple[str, str]:
    """The operation under way in the innermost frame of the user's, by Python's name of it, and the text of it."""
    frame = next((frame for frame in _frames() if is_users(frame.f_code.co_filename)), None)
    if frame is None:
        return "", ""
    line, _, start, end = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    text = linecache.getline(frame.f_code.co_filename, line).encode()[start:end] if line else b""
    return opcode.opname[frame.f_code.co_code[frame.f_lasti]], text.decode(errors="replace")


def name_of_value(value: object) -> str | None:
    """What the user's code calls a value: the variable of the innermost frame of theirs that holds it."""
    frames = (frame for frame in _frames() if is_users(frame.f_code.co_filename))
    scopes = (scope for frame in frames for scope in (frame.f_locals, frame.f_globals))
    return next(filter(None, (_name_within(scope, value) for scope in scopes)), None)


def local_name(value: object, outermost: CodeType) -> tuple[int, str] | None:
    """The local variable that holds a value, of the outermost function that does, as far out as the one given.

    Before the name, how many functions of the user's lie around that one.
    """
    names: list[str | None] = []
    for frame in _frames():
        if is_users(frame.f_code.co_filename):
            names.append(_name_within(frame.f_locals, value))
        if frame.f_code is outermost:
            break
    return next(((depth, name) for depth, name in enumerate(reversed(names)) if name), None)


def was_there(is_it: Callable[[object], bool], outermost: CodeType) -> bool:
    """Whether the user's code had a name for some value before a function was called: a global, one of those around it.

    The function is the outermost in the stack with that code. What functions within have in their closures is theirs,
    if no variable within holds it.
    """
    own = closed = False
    within = True
    for frame in _frames():
        if not is_users(frame.f_code.co_filename):
            continue
        held, free = frame.f_locals, {*frame.f_code.co_freevars} if within else set[str]()
        if _holds(frame.f_globals, is_it) or (not within and _holds(held, is_it)):
            return True
        closed = closed or _holds({name: held[name] for name in free & held.keys()}, is_it)
        own = own or _holds({name: held[name] for name in held.keys() - free}, is_it)
        within = within and frame.f_code is not outermost
    return closed and not own


def _holds(scope: Mapping[str, object], is_it: Callable[[object], bool]) -> bool:
    return any(is_it(held) for name, held in list(scope.items()) if not name.startswith("_"))


def _frames() -> Iterator[FrameType]:
    """The frames around the caller, from the inside out."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _name_within(scope: Mapping[str, object], value: object) -> str | None:
    return next((name for name, held in list(scope.items()) if held is value and not name.startswith("_")), None)


def is_own(file: str) -> bool:
    """Whether a file is one of combdiff's."""
    return file.startswith(_PACKAGE)


def is_users(file: str) -> bool:
    """Whether a file is none of combdiff's, and of none that calls it back: NumPy, SciPy, Python's `functools`."""
    in_library = file.startswith(_LIBRARY) and "site-packages" not in file
    return not is_own(file) and not file.startswith(_CALLERS) and not in_library


def shown(value: object) -> str:
    """A value that a user gave as a message shows it: its repr, if that is short."""
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, Fraction) and max(value.numerator.bit_length(), value.denominator.bit_length()) > 128:
        return f"a fraction of {value.numerator.bit_length() + value.denominator.bit_length()} bits"
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # whole numbers inside that Python does not write; lists in lists
        text = f"a {type(value).__name__}"
    return text if len(text) <= 200 else f"{text[:200]}…"


class CombdiffError(Exception):
    """Base of every error combdiff raises on purpose.

    `message` is the text without the place, `hint` how to mend the input, `location` the user's file and line,
    `is_placed` whether that is where the mistake stands, not only where combdiff was called.
    """

    def __init__(self, message: str, *, hint: str = "", location: Location | None = None) -> None:
        self.message = message
        self.hint = hint
        self.is_placed = location is not None
        self.location = location or user_location()
        place = f"{self.location}: " if self.location else ""
        advice = f"\n  hint: {hint}" if hint else ""
        super().__init__(f"{place}{message}{advice}")


class SpaceError(CombdiffError):
    """A Space, domain or symmetry that cannot be."""


class TraceError(CombdiffError):
    """A decorated function that does not describe a program."""


class IndexingError(TraceError):
    """A wrong number of indices, an index of unknown or unequal range, a non-affine index expression."""


class UnknownAttributeError(TraceError, AttributeError):
    """An attribute that a traced value does not have."""


class TypeMismatchError(CombdiffError):
    """Parts of a program that do not fit together: sizes, orders, element types."""


class DifferentiationError(CombdiffError):
    """A derivative that does not exist or was asked for wrongly (unknown wrt, objective not real or not scalar)."""


class ArgumentError(CombdiffError):
    """Arrays that do not fit the parameters of a program, or a setting (a limit, a size, a name) that cannot be."""


class ConvergenceError(CombdiffError):
    """An equation without the solution asked for: none found (the residual is given), or not an isolated one."""


class SingularError(ArgumentError):
    """A matrix that is singular, or nearly so, where its inverse or the solution of its equations is asked for."""


class MemoryLimitError(CombdiffError, MemoryError):
    """A program that needs more memory than is free, or than a limit allows, refused before anything is computed."""


class UnsupportedError(CombdiffError):
    """Something combdiff does not do; raised rather than answered wrongly."""


@contextmanager
def refusing_depth() -> Iterator[None]:
    """What is done inside is refused by name where it meets formulas that Python's stack does not hold."""
    try:
        yield
    except RecursionError:
        raise UnsupportedError(
            "an expression is nested too deeply: Python's limit of recursion was met",
            hint="write a loop of many steps as a cd.scan, or a sum of many terms as a cd.sum",
        ) from None


class RuleError(CombdiffError):
    """A rule file that does not parse, does not type, or states a law that is false."""


class BudgetWarning(UserWarning):
    """Equality saturation stopped at a budget: the result is correct, perhaps less simple than it could be."""
