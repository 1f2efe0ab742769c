"""Random formulas in matrix notation, all axes of one size: value, derivative, and each print read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import numpy as np
import pytest

import combdiff as cd

SPACES = {
    "A": cd.Space("n", "n"),
    "B": cd.Space("n", "n"),
    "S": cd.Space("n", "n", symmetry=["S[i,j] = S[j,i]"]),
    "x": cd.Space("n"),
    "y": cd.Space("n"),
    "c": cd.Space(),
}
SIZE = 3
Value = Callable[[Mapping[str, Any]], Any]
Rule = tuple[str, str, Callable[..., Any]]  # the kinds of the operands, how it is written, what NumPy makes of them
RULES: dict[str, list[Rule]] = {
    "matrix": [
        ("mm", "({} * {})", np.matmul),
        ("mm", "({} + {})", np.add),
        ("mm", "({} - {})", np.subtract),
        ("mm", "({} .* {})", np.multiply),
        ("mm", "({} ./ (3 + exp({})))", lambda a, b: a / (3 + np.exp(b))),
        ("m", "({})'", np.transpose),
        ("sm", "({}*({}))", np.multiply),
        ("vv", "(({})*({})')", np.outer),
        ("v", "diag({})", np.diag),
        ("m", "tanh({})", np.tanh),
        ("", "inv(S + 20*eye)", None),
    ],
    "vector": [
        ("mv", "(({})*({}))", np.matmul),
        ("vm", "(({})'*({}))'", np.matmul),
        ("vv", "({} - {})", np.subtract),
        ("vv", "({} .* {})", np.multiply),
        ("v", "sin({})", np.sin),
        ("vs", "(({})/(1 + ({})^2))", lambda u, s: u / (1 + s**2)),
        ("m", "diag({})", np.diag),
        ("m", "(({})*vector(1))", lambda a: a.sum(1)),
    ],
    "scalar": [
        ("vv", "(({})'*({}))", np.dot),
        ("v", "norm2(1 + {})", lambda u: np.linalg.norm(1 + u)),
        ("m", "norm2({})^2", lambda a: (a**2).sum()),
        ("m", "tr({})", np.trace),
        ("v", "sum({})", np.sum),
        ("s", "log(2 + ({})^2)", lambda s: np.log(2 + s**2)),
        ("ss", "({} - {})", np.subtract),
        ("ss", "(({})*({}))", np.multiply),
    ],
}
LEAVES = {"matrix": ["A", "B", "S", "A'"], "vector": ["x", "y"], "scalar": ["c", "2", "0.5"]}
KINDS = {kind[0]: kind for kind in RULES}


def drawn(random: Random, kind: str, depth: int) -> tuple[str, Value]:
    """A formula of a kind, and what NumPy makes of it."""
    if not depth or random.random() < 0.1:
        leaf = random.choice(LEAVES[kind])
        return leaf, lambda given: given[leaf] if leaf in given else given["A"].T if leaf == "A'" else float(leaf)
    operands, written, function = random.choice(RULES[kind])
    if function is None:
        return written, lambda given: np.linalg.inv(given["S"] + 20 * np.eye(SIZE))
    parts = [drawn(random, KINDS[operand], depth - 1) for operand in operands]
    return written.format(*(text for text, _ in parts)), lambda given: function(*(part(given) for _, part in parts))


def case(seed: int) -> tuple[str, Value, cd.Program, dict[str, Any]]:
    """A formula with tensors, what NumPy makes of it, the program that it is read as, and arrays for all names."""
    random = Random(seed)
    program = None
    while program is None or not program.parameters:
        text, function = drawn(random, "scalar", random.choice([2, 3]))
        program = cd.read(text, {name: space for name, space in SPACES.items() if name in text})
    rng = np.random.default_rng(seed)
    given: dict[str, Any] = {name: rng.normal(size=(SIZE,) * len(space.axes)) for name, space in SPACES.items()}
    given |= {"S": given["S"] + given["S"].T, "c": float(given["c"])}
    return text, function, program, given


def assert_reads_back(program: cd.Program, given: Mapping[str, Any], expected: Any) -> None:
    spaces = {p.name: p.type for p in program.parameters}
    assert cd.read(str(program), spaces) == program
    written = program.matrix()
    if written is None or written == "0":  # which is of any shape
        return
    found = cd.read(written, spaces)
    value = found(**{p.name: given[p.name] for p in found.parameters})
    np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-9, err_msg=written)


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(40))
def test_value_derivative_prints_and_source_of_a_random_formula(seed: int) -> None:
    text, function, program, given = case(seed)
    arguments = {p.name: given[p.name] for p in program.parameters}
    value = program(**arguments)
    np.testing.assert_allclose(value, function(given), rtol=1e-9, atol=1e-9, err_msg=text)
    assert_reads_back(program, given, value)
    name = Random(seed).choice([*arguments])
    gradient = cd.grad(program, name)
    found = gradient(**arguments)
    assert_reads_back(gradient, given, found)
    raw = cd.grad(program, name, simplify=False)(**arguments)
    np.testing.assert_allclose(found, raw, rtol=1e-6, atol=1e-9, err_msg=text)
    direction = np.random.default_rng(seed + 1).normal(size=np.shape(given[name]))
    direction = direction + direction.T if name == "S" else direction
    ends = (function({**given, name: given[name] + step * direction}) for step in (1e-5, -1e-5))
    slope = (next(ends) - next(ends)) / 2e-5
    np.testing.assert_allclose((found * direction).sum(), slope, rtol=1e-4, atol=1e-6, err_msg=text)
    names: dict[str, Any] = {}
    exec(gradient.source(), names)
    alone = names[f"grad_{program.name}"](*(arguments[p.name] for p in gradient.parameters))  # c is Python's number
    np.testing.assert_allclose(alone, found, rtol=1e-9, atol=1e-12, err_msg=text)


def test_bars_of_norms_do_not_nest() -> None:
    """Nor squares of a δ, nor a number of Python's along a diagonal of a source."""
    program = cd.read("norm2(1 + A'*vector(1)*norm2(1 + y))", {"A": SPACES["A"], "y": SPACES["y"]})
    A, y = np.arange(9.0).reshape(3, 3), np.arange(3.0)
    assert_reads_back(program, {"A": A, "y": y}, program(A=A, y=y))
    squares = cd.read("tr(diag(tanh(x))'*diag(tanh(x)))", {"x": SPACES["x"]})
    assert cd.read(str(squares), {"x": SPACES["x"]}) == squares
    names: dict[str, Any] = {}
    exec(cd.grad(cd.read("tr(c*A)", {"A": SPACES["A"], "c": SPACES["c"]}), "A").source(), names)
    np.testing.assert_array_equal(names["grad_read"](A, 2.0), 2 * np.eye(3))
