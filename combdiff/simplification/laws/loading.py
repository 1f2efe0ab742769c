"""The rule files that hold: the built-in ones, those a user gives by path, and those that packages install.

    cd.grad(f, rules=["my.egg"])                       a path
    [project.entry-points."combdiff.rules"]            in the pyproject.toml of a package: the file laws.egg in the
    mine = "my_package:laws.egg"                       folder of my_package holds wherever that package is installed

Primitives that a file declares are entered in the table of primitives when it is first read, under names that no
other file may give another meaning.

Invariant: no Python of an installed package is imported to find its files, and what a file holds is read as data.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field
from functools import lru_cache, partial
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from combdiff.errors import Location, RuleError, shown
from combdiff.ir import TABLE, Row, register
from combdiff.records import dataclass
from combdiff.simplification.egglog_bindings import bindings
from combdiff.simplification.laws.computation import Vocabulary, bounded, check
from combdiff.simplification.laws.declarations import check_functions, rows, without_declarations
from combdiff.simplification.laws.patterns import matchable
from combdiff.simplification.laws.syntax import Command, Expr, Source, attempt, checked, law_names, parse, trusted

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BUILT_IN = ("language.egg", "algebra.egg", "contraction.egg", "elementwise.egg", "linalg.egg")
GROUP = "combdiff.rules"


@dataclass(frozen=True)
class RuleFile:
    """A rule file that has been read: `commands` for the e-graph, the rows of the primitives it declares."""

    source: Source
    commands: tuple[Command, ...] = field(compare=False, repr=False)
    rows: tuple[Row, ...] = ()


def rule_directory() -> Path:
    """Where the built-in files are: inside an installed package, beside it in a checkout."""
    package = Path(__file__).resolve().parents[2]
    inside = package / "rules"
    return inside if inside.is_dir() else package.parent / "rules"


def rule_paths(rules: Iterable[str | Path]) -> tuple[str, ...]:
    """The paths that a user gives; one path by itself is refused, as its letters would be taken for paths."""
    if isinstance(rules, str | Path):
        raise RuleError(f"rules is {str(rules)!r}, but a list is expected", hint=f"write rules=[{str(rules)!r}]")
    if not isinstance(rules, Iterable) or getattr(rules, "shape", None) == ():
        raise RuleError(f"rules is {shown(rules)}, but a list is expected", hint='write rules=["my.egg"]')
    paths = tuple(rules)
    for path in paths:
        if not isinstance(path, str | Path):
            raise RuleError(f"{shown(path)} stands among the rules, but is no path", hint='write rules=["my.egg"]')
    return tuple(map(str, paths))


def load(paths: Iterable[str | Path] = ()) -> tuple[RuleFile, ...]:
    """The built-in files, those that packages install and those at the paths, each once, checked and registered.

    Raises RuleError for a file that cannot be read, and for what is wrong in one with its line and column.
    """
    sources = dict.fromkeys([*_installed(), *(_read(Path(path)) for path in rule_paths(paths))])
    found = built_in_files()
    for source in sources:
        found = (*found, _file(source, found))
    return found


@lru_cache(maxsize=1)
def built_in_files() -> tuple[RuleFile, ...]:
    """The files that come with combdiff, in their order."""
    return tuple(_parsed(_read(rule_directory() / name)) for name in BUILT_IN)


@lru_cache(maxsize=16)
def _parsed(source: Source) -> RuleFile:
    """A built-in file, read command by command; as a whole, which takes longer, where that fails."""
    try:
        commands = trusted(source.text)
    except RuleError:
        commands = parse(source)
    return RuleFile(source, tuple(commands))


def run_laws(egraph: Any, commands: Iterable[Command]) -> None:
    """Give an e-graph commands of files that hold. Raises RuleError with the place of a mistake in a built-in file."""
    try:
        egraph.run_program(*commands)
    except bindings().EggSmolError:  # users' files were checked as they were read
        files = built_in_files()
        for number, file in enumerate(files):
            _check_types(file.source, parse(file.source), files[:number])
        raise


def _read(path: Path) -> Source:
    try:
        return Source(str(path), path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RuleError(f"the rule file {str(path)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise RuleError(f"the rule file {str(path)!r} is not UTF-8: {error.reason} at byte {error.start}") from None
    except ValueError as error:  # a null character
        raise RuleError(f"the rule file {str(path)!r} cannot be read: {error}") from None


@lru_cache(maxsize=64)
def _file(source: Source, before: tuple[RuleFile, ...]) -> RuleFile:
    """A user's file after others: parsed, checked, its primitives in the table."""
    taken = [name for file in before for name in law_names(file.commands)]
    commands = checked(parse(source), source, taken)
    known = Vocabulary.of([*(c for file in before for c in file.commands), *commands])
    for command in commands:
        check(command, source, known)
    names = set(known.takes)
    rules = (part for command in commands for part in matchable(command, source, names))
    matched = [bounded(rule, source, known) for rule in rules]
    _check_types(source, matched, before)
    declared = rows(commands, source, _globals(before, commands))
    check_functions(commands, source, declared)
    for row in declared:
        if not register(row):
            where = TABLE[row.name].origin or "the table of primitives"
            raise RuleError(
                f"the primitive {row.name} means something else in {where}",
                hint="give it another name; a file that has changed needs a new process",
                location=Location(source.name, 1),
            )
    return RuleFile(source, tuple(without_declarations(matched)), tuple(declared))


def _check_types(source: Source, commands: list[Command], before: tuple[RuleFile, ...]) -> None:
    """Let egglog check sorts in an e-graph that is thrown away."""
    egraph = bindings().EGraph()
    for file in before:
        run_laws(egraph, file.commands)
    for command in commands:
        attempt(partial(egraph.run_program, command), source)


def _globals(files: Iterable[RuleFile], commands: Iterable[Command]) -> dict[str, Expr]:
    """The values that `(let $name …)` gives."""
    lets = [c.action for cs in (*(f.commands for f in files), commands) for c in cs if hasattr(c, "action")]
    return {action.lhs: action.rhs for action in lets if type(action).__name__ == "Let"}


# --- installed files -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _installed() -> tuple[Source, ...]:
    """The files of the entry points of installed packages, ordered by name."""
    if not _may_be_installed():
        return ()
    from importlib.metadata import entry_points

    points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return tuple(_read(_path(point)) for point in points)


def _may_be_installed() -> bool:
    """Whether an entry point of an installed package may be one of the group.

    The texts of all entry points are searched for its name: to import importlib.metadata and to read them takes twenty
    times as long, a tenth of what a short derivative does. What only other finders know of, it is asked of.
    """
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True
    for place in map(Path, dict.fromkeys(sys.path)):
        if place.is_file():  # an archive
            return True
        for file in place.glob("*-[iI][nN][fF][oO]/entry_points.txt"):
            with suppress(OSError):
                if GROUP in file.read_text(encoding="utf-8", errors="replace"):
                    return True
    return False


def _path(point: EntryPoint) -> Path:
    """The file that `package.folder:name.egg` names, found without importing the package."""
    package, *folders = point.module.split(".")
    spec = find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec else []
    for place in places:
        path = Path(place, *folders, point.attr)
        if path.is_file():
            return path
    raise RuleError(
        f"the entry point {point.name} = {point.value!r} of {GROUP} names no file",
        hint='write "package.folder:file.egg", a file inside the package',
    )
