"""The text of a rule file as egglog commands: what may stand in one, and where a mistake stands.

    (rewrite (Conj (Conj x)) y)
    → RuleError: my.egg:1:26: Unbound symbol y, in "y"

A file may declare sorts, constructors, relations and functions, state laws, and assert facts. It may not run, read or
write anything: commands that do, and calls of Python, are refused before egglog sees them. A law without a ruleset
goes to `laws`; one without a name is called by its place.

Invariant: reading a file runs nothing that is written in it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from combdiff.errors import Location, RuleError
from combdiff.records import dataclass
from combdiff.simplification.egglog_bindings import bindings

Command = Any  # of egglog.bindings, which is imported where it is used
Expr = Any

RULESETS = ("units", "facts", "collect", "laws", "substitution")
ALLOWED = {
    *("Sort", "Constructor", "Relation", "FunctionCommand", "Datatype", "Datatypes"),
    *("RuleCommand", "RewriteCommand", "BiRewriteCommand", "ActionCommand"),
}
ACTIONS = {"Let", "Set", "Union", "Expr_", "Change"}
MOST_CHARACTERS = 400_000  # of a file
MOST_NESTED = 60
MOST_DIGITS = 300
MOST_LAWS = 500
SHORT = 160  # characters of a text whose commands are kept
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|;[^\n]*|[()]|[^\s()";]+')
_BEGINS = re.compile(r"\n(?=\()")
_local = threading.local()
_PLACE = re.compile(r"In (\d+):(\d+)-(?:(\d+):)?(\d+)(?: of [^\n]*?)?: ")


@dataclass(frozen=True)
class Source:
    """The text of a rule file, with its name."""

    name: str
    text: str

    def place(self, node: Any) -> Location:
        """Where a command or expression stands."""
        span, text = _span(node), self.text.encode()
        begins = text.index(
            span.file.contents.encode()
        )  # of our own files a command is a text by itself: see `trusted`
        before = text[: begins + span.i].decode()
        return Location(self.name, before.count("\n") + 1, len(before) - before.rfind("\n"))

    def written(self, node: Any) -> str:
        """The text of a command or expression."""
        return text_of(node)

    def error(self, node: Any, problem: str, hint: str = "") -> RuleError:
        """The error that a node is not what it should be."""
        return _error(problem, self.written(node), self.place(node), hint)


def _error(problem: str, text: str, place: Location, hint: str = "") -> RuleError:
    shown = text.strip()
    shown = shown if len(shown) <= 200 else f"{shown[:200]} …"
    return RuleError(f"{problem}, in {shown!r}" if shown else problem, hint=hint, location=place)


def _span(node: Any) -> Any:
    """The span of a node; a command without one has that of its main part, and a push none: the whole file."""
    inner = next((getattr(node, name) for name in _MAIN if hasattr(node, name)), None)
    return node.span if hasattr(node, "span") else _Nowhere() if inner is None else _span(inner)


@dataclass(frozen=True)
class _Empty:
    contents: str = ""


@dataclass(frozen=True)
class _Nowhere:
    i: int = 0
    j: int = 0
    file: _Empty = _Empty()


_MAIN = ("rewrite", "rule", "action", "expr", "schedule", "command")


def translated(error: Exception, source: Source) -> RuleError:
    """What egglog objects to, with the file, the line, the column and the offending text."""
    message = str(error).removeprefix("Panic: ")
    found = _PLACE.match(message) or _PLACE.search(message)
    if found is None or not source.name:
        return RuleError(message, location=Location(source.name, 1, 1) if source.name else None)
    line, column = int(found[1]), int(found[2])
    end_line, end_column = int(found[3] or line), int(found[4])
    lines = source.text.split("\n")
    inside = [*lines[line - 1 : end_line]] or [""]
    inside[-1] = inside[-1][:end_column]
    text = "\n".join(inside)[column - 1 :]
    problem = message[found.end() :].removeprefix(text).strip().removeprefix("parse error: ")
    problem = " ".join(problem.split("\n")[0].split())
    return _error(problem, text, Location(source.name, line, column))


def parse(source: Source) -> list[Command]:
    """The commands of a rule file. Raises RuleError with the place of a mistake, or of what is too large to be read."""
    _bound(source)
    commands: list[Command] = attempt(lambda: bindings().EGraph().parse_program(source.text, source.name), source)
    laws = [c for c in commands if type(c).__name__ in ("RuleCommand", "RewriteCommand", "BiRewriteCommand")]
    if len(laws) > MOST_LAWS:
        raise source.error(laws[MOST_LAWS], f"the file has {len(laws)} laws; {MOST_LAWS} are read")
    return list(commands)


def trusted(text: str) -> list[Command]:
    """The commands of a text of our own, in which each begins a line, read one at a time.

    egglog copies the text that it reads once for each part of it, so the time would be quadratic in its length.
    """
    commands: list[Command] = attempt(lambda: [command for part in _BEGINS.split(text) for command in _read(part)])
    return commands


def _read(text: str) -> tuple[Command, ...]:
    """The commands of a text. Short ones come again and again: the schedule, what is said of tensors of one name."""
    return _parsed(text) if len(text) <= SHORT else _parsed.__wrapped__(text)


@lru_cache(maxsize=64)  # each some ten kilobytes
def _parsed(text: str) -> tuple[Command, ...]:
    return tuple(_parser().parse_program(text))


def _parser() -> Any:
    """An e-graph of this thread that reads texts alone: nothing is run in it."""
    if not hasattr(_local, "parser"):
        _local.parser = bindings().EGraph()
    return _local.parser


def run_text(egraph: Any, text: str) -> list[Any]:
    """Run a text of our own (see `trusted`); what its commands report."""
    outputs: list[Any] = attempt(lambda: egraph.run_program(*trusted(text)))
    return outputs


def _bound(source: Source) -> None:
    """Refuse a text too large or too deeply nested to be worth reading: egglog's parser has no end to its stack."""
    if len(source.text) > MOST_CHARACTERS:
        problem = f"the file has {len(source.text)} characters; {MOST_CHARACTERS} are read"
        raise RuleError(problem, location=Location(source.name, 1, 1))
    depth = 0
    for token in _TOKEN.finditer(source.text):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        longest = max(map(len, re.findall(r"\d+", token[0])), default=0) if token[0][:1] != ";" else 0
        if depth > MOST_NESTED or longest > MOST_DIGITS:
            what = f"more than {MOST_NESTED} parentheses are open" if depth > MOST_NESTED else f"{longest} digits"
            before = source.text[: token.start()]
            place = Location(source.name, before.count("\n") + 1, len(before) - before.rfind("\n"))
            raise RuleError(f"{what} here, which is too much to be read", location=place)


def _panics() -> tuple[type[BaseException], ...]:
    """The class of panics of egglog's compiled code, which has no name in Python and is made with the first of them."""
    return tuple(kind for kind in BaseException.__subclasses__() if kind.__name__ == "PanicException")


def attempt(action: Callable[[], Any], source: Source | None = None) -> Any:
    """What a call of egglog gives. Raises RuleError for what egglog objects to, and where it panics."""
    try:
        return action()
    except bindings().EggSmolError as error:
        raise translated(error, source or Source("", "")) from None
    except _panics() as error:
        place = Location(source.name, 1, 1) if source else None
        raise RuleError(f"egglog gave up: {error}", location=place) from None


def checked(commands: Iterable[Command], source: Source, taken: Iterable[str]) -> list[Command]:
    """The commands with every law named and in a ruleset; `taken` are names of laws in other files.

    Raises RuleError for a command that is not a declaration, a law or a fact, for a call of Python, for a ruleset that
    no schedule runs and for two laws of one name.
    """
    names = set(taken)
    return [_checked(command, source, names) for command in commands]


def _checked(command: Command, source: Source, names: set[str]) -> Command:
    kind = type(command).__name__
    if kind not in ALLOWED:
        mend = "declare sorts, constructors and relations; state laws and facts"
        raise source.error(command, "a rule file cannot run, read or write anything", mend)
    for call in calls(command):
        if call.name.startswith("py-"):
            raise source.error(call, "a rule file cannot call Python")
    if kind == "ActionCommand" and type(command.action).__name__ not in ACTIONS:
        raise source.error(command, "a rule file cannot do this")
    if kind in ("RuleCommand", "RewriteCommand", "BiRewriteCommand"):
        return _named(command, source, names)
    return command


def _named(command: Command, source: Source, names: set[str]) -> Command:
    """A law, named and in a ruleset."""
    egg = bindings()

    place = source.place(command)
    law: Any = command.rule if isinstance(command, egg.RuleCommand) else command.rewrite
    ruleset = (law.ruleset if isinstance(command, egg.RuleCommand) else command.name) or "laws"
    if ruleset not in RULESETS:
        raise source.error(command, f"no schedule runs the ruleset {ruleset}", f"use one of {', '.join(RULESETS)}")
    name = law.name or f"{place.file.rsplit('/', 1)[-1]}:{place.line}:{place.column}"
    if name in names:
        raise source.error(command, f"there is a law {name!r} already", "give it another :name")
    names.add(name)
    if isinstance(command, egg.RuleCommand):
        if any(type(action).__name__ == "Panic" for action in law.head):
            raise source.error(command, "a law cannot panic")
        return egg.RuleCommand(egg.Rule(law.span, law.head, law.body, name, ruleset))
    rewrite = egg.Rewrite(law.span, law.lhs, law.rhs, law.conditions, name)
    if isinstance(command, egg.BiRewriteCommand):
        return egg.BiRewriteCommand(ruleset, rewrite)
    if command.subsume and not isinstance(law.lhs, egg.Call):
        raise source.error(command, "a law with :subsume takes its left side away, which is no call here")
    return egg.RewriteCommand(ruleset, rewrite, command.subsume)


def law_names(commands: Iterable[Command]) -> list[str]:
    """The names of the laws among some commands."""
    laws = [getattr(c, "rule", None) or getattr(c, "rewrite", None) for c in commands]
    return [law.name for law in laws if law is not None]


def text_of(command: Command) -> str:
    """The text of a command."""
    span = _span(command)
    contents: bytes = span.file.contents.encode()
    return contents[span.i : span.j].decode()


def calls(node: Any) -> Iterator[Expr]:
    """Every call in a command, fact, action or expression, the outer ones first."""
    kind = type(node).__name__
    if kind == "Call":
        yield node
    for part in _PARTS.get(kind, ()):
        inner = getattr(node, part)
        for each in inner if isinstance(inner, list | tuple) else [inner]:
            yield from calls(each)


_PARTS = {
    "Call": ("args",),
    "RuleCommand": ("rule",),
    "Rule": ("head", "body"),
    "RewriteCommand": ("rewrite",),
    "BiRewriteCommand": ("rewrite",),
    "Rewrite": ("lhs", "rhs", "conditions"),
    "ActionCommand": ("action",),
    "Eq": ("left", "right"),
    "Fact": ("expr",),
    "Let": ("rhs",),
    "Set": ("args", "rhs"),
    "Union": ("lhs", "rhs"),
    "Expr_": ("expr",),
    "Change": ("args",),
    "FunctionCommand": ("merge",),
}
