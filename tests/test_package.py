"""The package as it is imported: its public names, when they are loaded, and what type checkers see of them."""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import combdiff
import combdiff as cd

PACKAGE = Path(combdiff.__file__).parent
STUB = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))


def in_own_process(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=PACKAGE.parent).stdout


def test_the_stub_names_what_the_package_gives() -> None:
    imports = [node for node in STUB.body if isinstance(node, ast.ImportFrom)]
    for node in imports:
        home = __import__(node.module or "", fromlist=["_"])
        for alias in node.names:
            assert getattr(combdiff, alias.asname or alias.name) is getattr(home, alias.name)
    stated = {alias.asname or alias.name for node in imports for alias in node.names}
    (listed,) = (
        ast.literal_eval(node.value)
        for node in STUB.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    assert set(combdiff.__all__) == stated == set(listed)


def test_only_what_is_used_is_imported() -> None:
    assert in_own_process("import sys, combdiff; print('numpy' in sys.modules, combdiff.__version__)") == (
        f"False {combdiff.__version__}\n"
    )


def test_a_derivative_imports_little() -> None:
    derive = "import sys, numpy, combdiff as cd; cd.grad(cd.read('x ↦ x² + exp(x)'))(numpy.ones(()))"
    idle = "{'importlib.metadata', 'email', 'numpy.ma'}"
    assert in_own_process(f"{derive}; print({idle} & {{*sys.modules}})") == "set()\n"


def test_no_module_shares_the_name_of_a_public_function() -> None:
    modules = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert modules & set(combdiff.__all__) == {"testing"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'combdiff' has no attribute 'gradient'"):
        combdiff.gradient  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"NumPy's own functions take the tensors of a program: np\.linalg\.norm"):
        combdiff.norm  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"'sigmoid'; it is cd\.expit"):
        combdiff.sigmoid  # type: ignore[attr-defined]  # noqa: B018
    assert set(combdiff.__all__) <= set(dir(combdiff))


def test_dir_shows_the_public_names_alone() -> None:
    assert dir(combdiff) == sorted(combdiff.__all__)


def test_editors_and_help_show_the_parameters_of_a_program() -> None:
    @cd.program
    def energy(A: cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"]), x: cd.Space("n")):  # type: ignore[no-untyped-def, valid-type]
        """Half of xᵀAx."""
        return x @ A @ x / 2

    wanted = "(A: Space('n', 'n', symmetry=['A[i,j] = A[j,i]']), x: Space('n')) -> Space"
    assert str(inspect.signature(energy)) == wanted + "()"
    assert str(inspect.signature(cd.grad(energy, "x"))) == wanted + "('n')"
    shown = pydoc.render_doc(energy, renderer=pydoc.plaintext)
    assert "Half of xᵀAx." in shown
    assert "x: real, shape (n,)" in shown
    assert "returns a real number" in shown
    assert str(energy) in shown
    assert "term" in inspect.signature(cd.Program).parameters
    assert cd.Program.__doc__.startswith("A differentiable program")  # type: ignore[union-attr]


def public() -> Iterator[tuple[str, Any]]:
    """Every public class and function, and the public methods of the classes."""
    for name in cd.__all__:
        value = getattr(cd, name)
        if callable(value):
            yield name, value
        if isinstance(value, type):
            yield from ((f"{name}.{k}", m) for k, m in vars(value).items() if k[0] != "_" and inspect.isfunction(m))


def test_public_docstrings_begin_with_a_sentence() -> None:
    """It ends on its line or the next, and says more than the name."""
    for name, value in public():
        first = (inspect.getdoc(value) or "").partition("\n\n")[0]
        assert first.endswith("."), name
        assert not first.startswith(f"{name.rpartition('.')[2]},"), name
        assert len(first.split()) > 2, name


KIN = re.compile(r"[Aa]s\s`?(numpy|scipy|np)\.|NumPy's|as\sfor\s`")  # what is meant there is meant here


def test_public_docstrings_name_what_a_call_is_given() -> None:
    """Each parameter that has a name for callers, where there are several."""
    missing = [
        f"{name}: {p.name}"
        for name, value in public()
        if inspect.isfunction(value) and not KIN.search(text := inspect.getdoc(value) or "")
        for p in inspect.signature(value).parameters.values()
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name != "self"
        if len(inspect.signature(value).parameters) > 1 and not re.search(rf"\b{p.name}\b", text)
    ]
    assert not missing
