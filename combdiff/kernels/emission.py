"""The text of kernels, as emitted source carries it: read from the modules that hold them, without their types.

    texts("numpy")["_spread"]      the lines of `kernels.numpy._spread`, for `f.source()`
    texts("numpy", "cp")           the same in the words of CuPy

A module is read, not imported, so that source for a library can be written where that is not installed.

Invariant: what stands in a module is what is linted, type-checked and tested, and what is emitted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path


@cache
def texts(module: str, np: str = "np") -> Mapping[str, str]:
    """The text of each function of a module of kernels, with the library's name in place of `np`.

    Numbers that the module names in capitals stand there as numbers.
    """
    lines = Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8").splitlines()
    found, numbers = {}, dict[str, str]()
    for node in ast.parse("\n".join(lines)).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.isupper():
                numbers[name] = str(eval(compile(ast.Expression(value), module, "eval"), {}))
            case ast.FunctionDef(name=name, lineno=start, end_lineno=end, decorator_list=decorators):
                first = min([start, *(decorator.lineno for decorator in decorators)])
                found[name] = "\n".join(lines[first - 1 : end]) + "\n"
    return {name: _plain(text, numbers, np) for name, text in found.items()}


def _plain(text: str, numbers: Mapping[str, str], np: str) -> str:
    text = re.sub(r"^ *def .*$", lambda line: line[0].replace(": Any = ", "="), text, flags=re.MULTILINE)
    text = re.sub(r": Any\b| -> \w+|, strict=True", "", text)
    for name, number in numbers.items():
        text = re.sub(rf"\b{name}\b", number, text)
    return text if np == "np" else text.replace("np.", f"{np}.")
