"""Writes docs/reference.md, where the site collects the docstrings of public names: python docs/reference.py."""

import ast
import inspect
import textwrap
from importlib import import_module
from pathlib import Path
from typing import Any

import combdiff as cd

PAGE = Path(__file__).parent / "reference.md"
FIRST = {
    "Programs and their derivatives": "program Program grad value_and_grad jacobian hessian Hessian hvp pullback"
    " pushforward simplify scan while_loop",
    "Spaces": "Space Range Cyclic Symmetric Real Function",
    "Texts and pictures": "read derive parse Picture",
}
CHECKS = "check_grad check_rules tensors"


def is_defined(value: Any) -> bool:
    """Whether a definition of that name stands in its module, where the site finds it without running anything."""
    tree = ast.parse(inspect.getsource(import_module(value.__module__)))
    return any(isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name == value.__name__ for n in tree.body)


def section(title: str, values: list[Any], text: str = "") -> str:
    """A heading, and where each docstring is found."""
    found = [f"::: {value.__module__}.{value.__qualname__}" for value in values]
    return "\n\n".join([f"## {title}", *([text] if text else []), *found])


def page() -> str:
    """The whole page."""
    first = {title: [n for n in names.split() if hasattr(cd, n)] for title, names in FIRST.items()}
    public = {name: getattr(cd, name) for name in cd.__all__ if name not in ("interop", "testing")}
    errors = sorted(
        n for n, value in public.items() if isinstance(value, type) and issubclass(value, Warning | Exception)
    )
    rest = sorted(public.keys() - {*errors, *(name for names in first.values() for name in names)})
    table = [name for name in rest if not is_defined(public[name])]
    listed = ", ".join(f"`{name}`" for name in table)
    said = f"Element by element, with the meaning that NumPy or SciPy gives them: {listed}."
    wrapped = "\n".join(textwrap.wrap(said, 118))
    parts = ["# Reference", "Every name here is found in `combdiff` itself, as in `import combdiff as cd`."]
    parts += [section(title, [public[name] for name in names]) for title, names in first.items()]
    parts.append(section("Errors", [public[name] for name in errors]))
    parts.append(section("Functions of tensors", [public[name] for name in rest if name not in table], wrapped))
    checks = [getattr(cd.testing, name) for name in CHECKS.split()]
    parts.append(section("Checks", checks, "In `combdiff.testing`."))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
