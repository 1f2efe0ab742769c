"""What holds of the source itself: rooms, docstrings, what is imported when, and where the rules are."""

import ast
import inspect
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

from mutants import MUTANTS

import combdiff
from combdiff.simplification.laws.loading import BUILT_IN

Node = TypeVar("Node", bound=ast.AST)
PACKAGE = Path(combdiff.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
FUNCTION_LINES = 60
REPEATED_LINES = 5

# The floors of the house, from the ground up: a room imports rooms of lower floors alone. Rooms that stand on one line
# are independent of each other.
FLOORS = (
    "errors records status kernels",
    "ir",
    "polyhedra pictures",
    "simplification dialects",
    "differentiation stability",
    "printing tracing planning",
    "text codegen hessians",
    "runtime",
    "api",
    "testing",
    "page",
    "cli",
    "__main__",
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms.split()}


def dotted(path: Path) -> str:
    """The module name of a file of the package."""
    parts = ("combdiff", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {dotted(path): path for path in MODULES}


@cache
def trees() -> dict[str, ast.Module]:
    """The source of every module, parsed when the first test looks at it."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in NAMES.items()}


@cache
def nodes() -> dict[str, list[ast.AST]]:
    """All that stands in every module, walked through once."""
    return {name: list(ast.walk(tree)) for name, tree in trees().items()}


def imported(name: str) -> Iterator[str]:
    """Every module that the source of a module names in an import, wherever it stands."""
    package = name if NAMES[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in nodes()[name]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            inner = [f"{base}.{alias.name}" for alias in node.names]
            yield from (each if each in NAMES else base for each in inner)


def every(kind: type[Node]) -> Iterator[tuple[str, Node]]:
    """All of one kind that stand in the modules, with the names of these."""
    return ((name, node) for name, found in nodes().items() for node in found if isinstance(node, kind))


@cache
def imports() -> dict[str, frozenset[str]]:
    """What each module imports."""
    return {name: frozenset(imported(name)) for name in NAMES}


@cache
def internal() -> dict[str, list[str]]:
    """What each module imports of the package."""
    return {name: sorted(found & NAMES.keys() - {name}) for name, found in imports().items()}


def cycle(graph: dict[str, list[str]]) -> list[str]:
    """One cycle of the graph as a path that returns to its start, or nothing."""
    finished: set[str] = set()

    def walk(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in finished:
            return []
        found = next((loop for each in graph[node] if (loop := walk(each, [*path, node]))), [])
        finished.add(node)
        return found

    return next((loop for node in graph if (loop := walk(node, []))), [])


def test_the_cycle_finder_finds_cycles() -> None:
    assert cycle({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]
    assert cycle({"a": ["b", "c"], "b": ["c"], "c": []}) == []


def test_imports_form_no_cycle() -> None:
    assert not cycle(internal())


def room(name: str) -> str:
    """The room that a module stands in."""
    return name.split(".")[1] if "." in name else ""


@cache
def crossings() -> list[tuple[str, str]]:
    """The imports from one room to another."""
    found = [(name, other) for name, others in internal().items() for other in others]
    return [(name, other) for name, other in found if room(name) and room(name) != room(other)]


def test_there_are_at_most_thirteen_floors() -> None:
    assert len(FLOORS) <= 13


def test_at_most_four_modules_lie_beside_the_rooms() -> None:
    """But what is called by the package's own name: `import combdiff`, `python -m combdiff`."""
    assert len([path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__")]) <= 4


def test_rooms_import_only_rooms_of_lower_floors() -> None:
    assert not [f"{name} imports {other}" for name, other in crossings() if FLOOR[room(name)] <= FLOOR[room(other)]]


def test_a_room_is_entered_by_its_door() -> None:
    assert not [f"{name} imports {other}" for name, other in crossings() if other.count(".") > 1]


def test_a_door_lists_the_modules_behind_it() -> None:
    """But of operations: adding one is adding one file, and their modules are in no order."""
    for name, path in NAMES.items():
        if path.name == "__init__.py" and path.parent != PACKAGE and name != "combdiff.planning.operations":
            listed = ast.get_docstring(trees()[name]) or ""
            behind = [other.rpartition(".")[2] for other in NAMES if other.rpartition(".")[0] == name]
            assert not [each for each in behind if f"`{each}`" not in listed and f"`{each}/`" not in listed], name


def test_a_function_fits_on_a_page() -> None:
    long = [
        f"{name}.{node.name} has {length} lines"
        for name, node in every(ast.FunctionDef)
        if (length := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES
    ]
    assert not long


def runs(name: str) -> Iterator[tuple[str, int]]:
    """All runs of so many lines in the functions of a module, told without indentation, and where each begins."""
    lines = NAMES[name].read_text(encoding="utf-8").splitlines()
    for node in nodes()[name]:
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            inside = range(body[0].lineno - 1, node.end_lineno or 0) if body else ()
            told = [n for n in inside if re.search(r"\w", lines[n]) and lines[n].strip()[0] != "#"]
            for start in range(len(told) - REPEATED_LINES + 1):
                run = told[start : start + REPEATED_LINES]
                yield "\n".join(lines[n].strip() for n in run), run[0] + 1


def test_no_five_lines_of_a_function_stand_twice() -> None:
    places: dict[str, set[str]] = {}
    for name in NAMES:
        for run, line in runs(name):
            places.setdefault(run, set()).add(f"{name}:{line}")
    assert not [where for where in places.values() if len(where) > 1]


def undocumented(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    """The public functions and classes among the statements, and the public methods of the classes, without docstring.

    A method that a base class of the package documents may go without: `help` shows the inherited text.
    """
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if not ast.get_docstring(node):
                yield f"{prefix}{node.name}"
            if isinstance(node, ast.ClassDef):
                yield from undocumented(node.body, f"{prefix}{node.name}.")


@cache
def inherited() -> set[str]:
    """Names of methods that some class of the package documents."""
    return {
        method.name
        for _, node in every(ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef) and ast.get_docstring(method)
    }


def test_everything_public_is_documented() -> None:
    assert not [name for name, tree in trees().items() if not ast.get_docstring(tree)]
    missing = [
        f"{name}.{found}"
        for name, tree in trees().items()
        for found in undocumented(tree.body, "")
        if not ("." in found and found.rpartition(".")[2] in inherited())
    ]
    assert not missing


def test_what_is_called_says_which_errors_it_raises() -> None:
    """Public functions, and methods that take arrays; or says where that is said, or that there are none."""
    called = {name: value for name in combdiff.__all__ if inspect.isfunction(value := getattr(combdiff, name))}
    for name, kind in (("Program", combdiff.Program), ("Hessian", combdiff.Hessian)):
        for method, value in vars(kind).items():
            if inspect.isfunction(value) and method[0] != "_" and "arguments" in inspect.signature(value).parameters:
                called[f"{name}.{method}"] = value
    assert len(called) > 100
    said = re.compile(r"\b[A-Z]\w+Error\b|\berrors\b[^.]*`\w+`|Raises nothing")
    assert [name for name, value in called.items() if not said.search(value.__doc__ or "")] == []


def code(name: str) -> str:
    """The source of a module without imports, `__all__`, docstrings and comments."""
    lines = NAMES[name].read_text(encoding="utf-8").splitlines()
    for node in nodes()[name]:
        exported = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        told = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if exported or told or isinstance(node, ast.Import | ast.ImportFrom):
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or 0) - node.lineno + 1)
    return "\n".join(line.partition("  #")[0] for line in lines)


def defined(tree: ast.Module) -> Iterator[str]:
    """The functions, classes and constants of a module."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) if not name.startswith("__"):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)) if name[:2] != "__":
                yield name


def test_what_is_defined_is_used_or_public() -> None:
    """Not by tests alone. Kernels are written into source by their names."""
    words = Counter(word for name in NAMES for word in re.findall(r"\w+", code(name)))
    public = {*combdiff.__all__, *combdiff.testing.__all__, *vars(combdiff.interop)}
    found = [(name, each) for name, tree in trees().items() if room(name) != "kernels" for each in defined(tree)]
    assert not [f"{name}.{each}" for name, each in found if words[each] < 2 and each not in public]


def test_a_class_name_has_one_meaning() -> None:
    """A name with an underscore is the name without it: an operation's is shown to users, too."""
    places: dict[str, list[str]] = {}
    for name, node in every(ast.ClassDef):
        places.setdefault(node.name.lstrip("_"), []).append(f"{name}.{node.name}")
    assert not [where for where in places.values() if len(where) > 1]


def test_importing_all_of_combdiff_imports_nothing_heavy() -> None:
    code = "import json, sys; from combdiff import *; print(json.dumps(sorted(sys.modules)))"
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    loaded = {module.partition(".")[0] for module in json.loads(run.stdout)}
    assert "combdiff" in loaded
    assert "numpy" in loaded
    assert not loaded & {"egglog", "opt_einsum", "scipy", "hypothesis", "lark", "jax", "torch", "dask", "pytest"}


def test_only_execution_imports_opt_einsum() -> None:
    users = [name for name, found in imports().items() if any(each.split(".")[0] == "opt_einsum" for each in found)]
    assert users == ["combdiff.runtime.execution"]


def test_dataclasses_are_those_that_are_soon_imported() -> None:
    pythons = [
        name
        for name, node in every(ast.ImportFrom)
        if node.module == "dataclasses"
        if any(alias.name == "dataclass" for alias in node.names)
    ]
    assert sorted(pythons) == ["combdiff.errors", "combdiff.records", "combdiff.records"]


def test_nothing_catches_every_exception() -> None:
    broad = [
        f"{name}:{node.lineno}"
        for name, node in every(ast.ExceptHandler)
        if node.type is None or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"})
    ]
    assert not broad


def test_no_two_test_files_have_one_name() -> None:
    """pytest imports them by their names alone, and collects nothing where two are the same."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, n in names.items() if n > 1] == []


def test_tests_of_plans_derive_nothing() -> None:
    """A plan is of what stands in a program; what derivatives are planned to, tests/routes looks at."""
    transforms = set(defined(trees()["combdiff.api.transforms"])) & set(combdiff.__all__) - {"simplify"}
    deriving = {*transforms, "hessian", "derive", "pull", "push", "check_grad", "check_routes"}
    assert "grad" in transforms
    assert not [
        f"{path.name}: {word}"
        for path in (Path(__file__).parent / "planning").glob("*.py")
        for word in re.findall(r"(?:\.|import |, )(\w+)", path.read_text(encoding="utf-8"))
        if word in deriving
    ]


def test_every_room_has_tests_of_its_own_and_a_break_made_by_hand() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    tested = {path.parent.name for path in Path(__file__).parent.glob("*/test_*.py")}
    assert tested == {*rooms, "routes", "examples"}
    assert rooms <= {mutant.file.partition("/")[0] for mutant in MUTANTS}


def test_the_rule_files_are_found() -> None:
    """In the wheel they lie inside the package, in an editable install beside it."""
    beside, inside = PACKAGE.parent / "rules", PACKAGE / "rules"
    files = {path.name for folder in (beside, inside) for path in folder.glob("*.egg")}
    assert files == set(BUILT_IN)  # a file that is not named there is not read


def test_caches_that_outlive_a_derivation_are_bounded() -> None:
    sizes = [
        int(match) if match != "None" else 10**9
        for path in MODULES
        for match in re.findall(r"lru_cache\(maxsize=(\w+)", path.read_text(encoding="utf-8"))
    ]
    assert sizes
    assert max(sizes) <= 4096


def test_every_mutant_has_its_place() -> None:
    """What a break made by hand is to replace stands there once."""
    lost = [m for m in MUTANTS if (PACKAGE / m.file).resolve().read_text(encoding="utf-8").count(m.old) != 1]
    assert lost == []
