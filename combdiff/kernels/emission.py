"""The text of kernels, as emitted source carries it: read from the modules that hold them, without their types.

    texts("numpy")["_spread"]      the lines of `kernels.numpy._spread`, for `f.source()`
    texts("numpy", "cp")           the same in the words of CuPy

What a module takes from another module of kernels comes with it, under the name that it has there. A module is read,
not imported, so that source for a library can be written where that is not installed.

Invariant: what stands in a module is what is linted, type-checked and tested, and what is emitted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from threading import RLock

HERE = Path(__file__).parent
STANDARD = ("functools", "itertools", "math")

_reading = RLock()  # Python 3.11 counts the depth of the trees that all threads make in one number


def texts(module: str, np: str = "np") -> Mapping[str, str]:
    """The text of each function of a module of kernels, with the library's name in place of `np`.

    Numbers that the module names in capitals stand there as numbers.
    """
    with _reading:
        return _texts(module, np)


@cache
def _texts(module: str, np: str) -> Mapping[str, str]:
    lines = HERE.joinpath(f"{module}.py").read_text(encoding="utf-8").splitlines()
    taken, found, numbers = dict[str, str](), dict[str, str](), dict[str, str]()
    for node in ast.parse("\n".join(lines)).body:
        match node:
            case ast.ImportFrom(module=str(path), names=names) if path.startswith("combdiff.kernels."):
                for alias in names:
                    taken |= _renamed(texts(path.rpartition(".")[2], np), alias.name, alias.asname or alias.name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.isupper():
                numbers[name] = str(eval(compile(ast.Expression(value), module, "eval"), {}))
            case ast.FunctionDef(name=name, lineno=start, end_lineno=end, decorator_list=decorators) if name[0] == "_":
                first = min([start, *(decorator.lineno for decorator in decorators)])
                found[name] = "\n".join(lines[first - 1 : end]) + "\n"
    return {**{name: _plain(text, numbers, np) for name, text in found.items()}, **taken}


def _renamed(module: Mapping[str, str], name: str, new: str) -> dict[str, str]:
    """A function of a module under another name, and those that it calls."""
    called = {each: text for each, text in needed(module, [module[name]]).items() if each != name}
    return {new: module[name].replace(f"def {name}(", f"def {new}("), **called}


def needed(helpers: Mapping[str, str], functions: Iterable[str]) -> dict[str, str]:
    """Those of the helpers that functions name, and that these name, in the order in which helpers has them."""
    used, todo = set[str](), list(functions)
    while todo:
        text = todo.pop()
        called = helpers.keys() & set(re.findall(r"\w+", text)) - used
        used |= called
        todo += [helpers[name] for name in called]
    return {name: text for name, text in helpers.items() if name in used}


def standard_imports(functions: Iterable[str]) -> list[str]:
    """The imports of modules of Python's own that functions name."""
    every = "\n".join(functions)
    return [f"import {name}" for name in STANDARD if re.search(rf"\b{name}\.", every)]


def _plain(text: str, numbers: Mapping[str, str], np: str) -> str:
    text = re.sub(r"^ *(?:def .*|\) -> Any:)$", lambda line: _untyped(line[0]), text, flags=re.MULTILINE)
    text = re.sub(r": Any\b|, strict=True", "", text)
    for name, number in numbers.items():
        text = re.sub(rf"\b{name}\b", number, text)
    return text if np == "np" else re.sub(r"\bnp\b", np, text)


def _untyped(head: str) -> str:
    """The first line of a function without types."""
    return re.sub(r": (?:Any|int|float)\b| -> \w+", "", head.replace(": Any = ", "="))
