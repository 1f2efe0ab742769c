"""The words of each library, tried on arrays, and its helpers, which call nothing but each other and the library."""

from __future__ import annotations

import ast
import builtins
import itertools
from typing import Any

import numpy as np
import pytest
from backends import TORCH, back, convert, library

from combdiff.dialects import DIALECTS, dialect
from combdiff.errors import UnsupportedError
from combdiff.kernels import standard_imports, texts


def outside(text: str) -> set[str]:
    """The names that the text of a function takes from around it."""
    nodes = list(ast.walk(ast.parse(text)))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ExceptHandler) and node.name}
    bound |= {alias.asname or alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    read = {node.id for node in nodes if isinstance(node, ast.Name)}
    return read - bound - set(vars(builtins))


@pytest.mark.parametrize("name", DIALECTS)
def test_helpers_call_each_other_and_the_library_alone(name: str) -> None:
    used = dialect(name)
    helpers = used.helpers()
    known = {*helpers, used.np, "np", "jax"}  # solvers go by NumPy, which source that has them imports
    for helper, text in helpers.items():
        standard = {line.removeprefix("import ") for line in standard_imports([text])}
        assert outside(text) <= known | standard, helper


# The modules of kernels that each dialect joins; CuPy's and the solvers take the place of others on purpose.
MODULES = {
    "numpy": ("numerics", "running", "bands", "numpy", "schedules"),
    "jax": ("numerics", "running", "jax"),
    "torch": ("numerics", "running", "torch", "schedules"),
    "dask": ("numerics", "dask"),
}


@pytest.mark.parametrize("name", MODULES)
def test_no_helper_takes_the_place_of_another_of_its_name(name: str) -> None:
    used = dialect(name)
    tables = [texts(module) for module in MODULES[name]]
    assert used.helpers().keys() == {helper for table in tables for helper in table} | used.solvers().keys()
    for one, other in itertools.combinations(tables, 2):
        assert [helper for helper in one.keys() & other.keys() if one[helper] != other[helper]] == []


@pytest.mark.parametrize("name", ["numpy", "jax", TORCH, "dask"])
def test_words_for_layouts_and_new_arrays(name: str) -> None:
    words, array = dialect(name), np.arange(24.0).reshape(2, 3, 4)
    module = np if name == "numpy" else library(name)
    scope: dict[str, Any] = {words.np: module, "np": np, "x": array if name == "numpy" else convert(name, array)}

    def value(text: str) -> Any:
        return back(eval(text, scope))

    for order in itertools.permutations(range(3)):
        np.testing.assert_array_equal(value(words.transposed("x", order)), array.transpose(order))
    np.testing.assert_array_equal(value(words.indexed("x", ["1", ":", "2"])), array[1, :, 2])
    np.testing.assert_array_equal(value(words.indexed("x", [":", "::-1", ":"])), array[:, ::-1])
    np.testing.assert_array_equal(value(words.broadcast("x", "(5, 2, 3, 4)")), np.broadcast_to(array, (5, 2, 3, 4)))
    zeros = value(words.zeros_of("x", "(2, 0)"))
    assert zeros.shape == (2, 0)
    assert zeros.dtype == value("x").dtype


def test_a_library_that_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="tensorflow"):
        dialect("tensorflow")
