"""Random programs of whole arrays, as a NumPy user writes them: value, gradient, product with the Hessian, prints.

A program is an expression of some ninety functions of numbers, vectors and matrices. NumPy evaluates the same
expression; what is printed, in index notation and in matrix notation, is read back and has the value. Axes have two
sizes or all one, so that an axis taken for another shows in the numbers and not in the shapes.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import combdiff as cd
from combdiff.testing.text_derivatives import extrapolated_differences

SIZES = [{"n": 4, "m": 3}, {"n": 3, "m": 3}]
AXES = {"x": "n", "y": "n", "w": "n", "A": "nn", "B": "nm", "C": "mn", "E": "nn"}
LEAVES = {"": "0.7 2.0", "n": "x y x w", "m": "C[:,0] B[1]", "nn": "A", "nm": "B", "mn": "C"}
Rule = tuple[tuple[str, ...], str]  # the axes of the operands, and what is written of them

NUMBERS = (
    "np.sin({0})|(-{0})|np.exp(-({0})**2)|np.sqrt(1 + ({0})**2)|np.tanh({0})|(1 / (1.5 + np.abs({0})))",
    "({0} - {1})|({0} * {1})|np.maximum({0}, {1})|np.where({0} > {1}, {0}, {1} * 2)|np.hypot({0}, {1} + 2)",
)
OF_VECTORS = (
    "np.sum({0})|np.mean({0})|np.max({0})|np.min({0})|np.prod({0})|np.var({0})|np.ptp({0})|np.linalg.norm({0})|"
    "np.log(np.sum(np.exp({0})))|({0})[0]|({0})[-1]|np.linalg.norm({0}, 1)|np.std({0})|np.max(np.abs({0}))|"
    "np.sum({0} > 0.1)",
    "({0} @ {1})|np.vdot({0}, {1})",
)
OF_MATRICES = "np.sum({0})|np.max({0})|np.min({0})|np.mean({0})|np.linalg.norm({0})|({0})[1, 2]"
SQUARE = "np.trace({0})|np.linalg.det({0} + E)|np.linalg.slogdet({0} + 3 * E)[1]"
VECTORS = (
    "np.sin({0})|np.tanh({0})|(-{0})|np.abs({0})|({0})[::-1]|np.roll({0}, 1)|np.cumsum({0})|np.cumprod({0})|"
    "({0} - np.mean({0}))|({0} / (1 + {0}**2))|np.clip({0}, -0.5, 0.5)|np.exp({0} / 2)|"
    "(np.exp({0}) / np.sum(np.exp({0})))|np.sort({0})|np.where({0} > 0, {0}, 0.1 * {0})|"
    "({0} / (1 + np.linalg.norm({0})))|np.concatenate([({0})[1:], ({0})[:1]])|np.pad({0}, 1)[:-2]|"
    "np.append(({0})[:-1] - ({0})[1:], 0.0)|np.log1p({0}**2)|(np.max({0}) - {0})|({0} / np.max(1 + np.abs({0})))|"
    "np.cumsum({0}[::-1])[::-1]|np.repeat({0}, 2)[::2]|np.maximum.accumulate({0})|np.logaddexp.accumulate({0})|"
    "np.pad(np.diff({0}), (1, 0))",
    "({0} - {1})|({0} * {1})|np.maximum({0}, {1})|np.minimum({0}, {1})|np.where({0} > {1}, {0}, {1})|"
    "({0} / (2 + {1}**2))|np.arctan2({0}, 3 + {1})|({0} + {1})|np.convolve({0}, {1}[:2])[1:]",
)
BY_A_NUMBER = "({0} * {1})|({0} - {1})|({0} / (2 + {1}**2))|np.where({0} > {1}, {0}, {1})"
ALONG = "np.{f}({{0}}, axis={axis})"
MATRICES = (
    "np.sin({0})|(-{0})|({0})[::-1]|np.tril({0})|np.triu({0}, 1)|({0} - np.mean({0}, axis=0))|np.cumsum({0}, axis=1)|"
    "np.where({0} > 0, {0}, 0.1 * {0})|np.roll({0}, 1, axis=0)|({0} - np.max({0}, axis=1, keepdims=True))|"
    "(np.exp({0}) / np.sum(np.exp({0}), axis=1, keepdims=True))|np.abs({0})|np.sort({0}, axis=0)|"
    "({0} / np.linalg.norm({0} + 2, axis=1, keepdims=True))|np.cumprod({0}, axis=0)|np.maximum({0}, 0)|"
    "np.diff(np.pad({0}, 1), axis=0)[1:, 1:-1]",
    "({0} - {1})|({0} * {1})|np.maximum({0}, {1})|({0} + {1})",
)


def several(written: str, *operands: str) -> list[Rule]:
    return [(operands, each) for each in written.split("|")]


def rules(axes: str) -> list[Rule]:
    """How a number, vector or matrix of these axes is written."""
    if not axes:
        found = [rule for count in (1, 2) for rule in several(NUMBERS[count - 1], *[""] * count)]
        for axis in "nm":
            found += several(OF_VECTORS[0], axis) + several(OF_VECTORS[1], axis, axis)
        return found + [rule for of in ("nn", "nm", "mn") for rule in several(OF_MATRICES, of)] + several(SQUARE, "nn")
    if len(axes) == 1:
        other = "m" if axes == "n" else "n"
        found = several(VECTORS[0], axes) + several(VECTORS[1], axes, axes) + several(BY_A_NUMBER, axes, "")
        for of, axis in ((axes + other, 1), (other + axes, 0)):
            found += [((of,), ALONG.format(f=f, axis=axis)) for f in ("sum", "max", "min", "prod", "mean")]
            found += [((of,), ALONG.format(f="linalg.norm", axis=axis))]
        found += [((axes + other, other), "({0} @ {1})"), ((other, other + axes), "({0} @ {1})")]
        found += [((other + axes,), "({0})[1]"), ((axes + other,), "({0})[:, -1]")]
        square: list[Rule] = [(("nn",), "np.diag({0})"), (("nn", "n"), "np.linalg.solve({0} + 3 * E, {1})")]
        square += [(("n",), "({0})[k]"), (("nm", "m"), "np.einsum('ij,j->i', {0}, {1})")]
        return found + square if axes == "n" else found
    one, two = axes
    found = several(MATRICES[0], axes) + several(MATRICES[1], axes, axes)
    found += several("np.outer({0}, {1})|({0}[:, None] - {1})|np.maximum({0}[:, None], {1})", one, two)
    found += [((two + one,), "({0}).T"), ((axes, two), "({0} * {1})"), ((axes, one), "({0} - {1}[:, None])")]
    found += [((axes, ""), "({0} * {1})"), ((axes,), "({0}).reshape(-1)[::-1].reshape({0}.shape)")]
    found += [((two + one,), "np.rot90({0})"), ((axes, two), "np.broadcast_to({1}, {0}.shape)")]
    more: dict[str, list[Rule]] = {
        "nn": [(("nn",), "np.linalg.inv({0} + 3 * E)"), (("n",), "np.diag({0})"), (("nn",), "np.take({0}, k, axis=1)")],
        "nm": [(("n",), "np.lib.stride_tricks.sliding_window_view(np.pad({0}, 1), 3)")],
        "mn": [(("n", "n"), "np.stack([{0}, {1}, {0}])")],
    }
    return found + more[axes]


def drawn(
    random: Random,
    axes: str,
    depth: int,
    leaves: Mapping[str, str] = MappingProxyType({}),
    rules: Callable[[str], list[Rule]] = rules,
) -> str:
    """An expression of these axes; `leaves` are other names for tensors of some."""
    if depth <= 0:
        return random.choice({**LEAVES, **leaves}[axes].split())
    operands, written = random.choice(rules(axes))
    return written.format(*(drawn(random, each, depth - 1 - random.randrange(2), leaves, rules) for each in operands))


FACTORED = {  # P: positive definite matrices, S: three matrices, T: three positive definite ones
    "": {
        "P": "np.linalg.slogdet({0})[1]|np.linalg.eigvalsh({0})[-1]|np.sum(np.log(np.linalg.eigvalsh({0})))",
        "nn": "np.trace({0})|np.sum({0}**2)|np.linalg.norm({0}, 2)",
        "nm": "np.linalg.norm({0}, 'nuc')|np.linalg.norm({0})",
        "n n": "({0} @ {1})|np.sum(np.sin({0}))",
        "n nn": "({0} @ {1} @ {0})",
        "S": "np.sum(np.linalg.det({0}))",
        "T": "np.linalg.slogdet({0})[1][1]|np.sum(np.linalg.eigvalsh({0})[:, 0])",
    },
    "n": {
        "P": "np.linalg.eigvalsh({0})|np.diag(np.linalg.cholesky({0}))|np.abs(np.linalg.eigh({0})[1][:, 0])",
        "P n": "np.linalg.solve({0}, {1})|np.linalg.solve(np.linalg.cholesky({0}), {1})|"
        "(np.linalg.eigh({0})[1].T @ {1})**2",
        "nn": "np.linalg.svd({0}, compute_uv=False)",
        "nn n": "({0} @ {1})",
        "nm n": "({0} @ np.linalg.lstsq({0}, {1})[0])",
        "n n": "({0} * {1})|({0} - {1})",
        "T": "np.linalg.eigvalsh({0})[1]",
        "T n": "np.linalg.solve({0}, {1})[1]",
    },
    "nn": {
        "P": "np.linalg.inv({0})|np.linalg.cholesky({0})|np.abs(np.linalg.eigh({0})[1])|{0}",
        "P nn": "np.linalg.solve({0}, {1})",
        "nn": "np.tril({0})|{0}.T|cd.expm({0})|np.abs(np.linalg.qr({0} + 2 * E)[1])",
        "nn nn": "({0} @ {1})|({0} * {1})",
        "n": "np.diag({0})",
        "n n": "np.outer({0}, {1})",
        "nm": "({0} @ np.linalg.pinv({0}))|({0} @ {0}.T)",
        "S": "{0}[0]|np.sum({0}, axis=0)",
    },
    "nm": {
        "P": "np.linalg.cholesky({0})[:, :3]|np.linalg.eigh({0})[1][:, :3] ** 2|np.linalg.inv({0})[:, :3]",
        "nn nm": "({0} @ {1})",
        "nm": "np.linalg.pinv({0}).T|np.sin({0})",
        "nm n": "({0} * {1}[:, None])",
    },
    "P": {
        "nn": "({0} @ {0}.T + E)|(np.sin({0}) + np.sin({0}).T + 3 * E)",
        "nm": "({0} @ {0}.T + E)",
        "P": "np.linalg.inv({0})|cd.sqrtm({0})|np.einsum('ik,k,jk->ij', np.linalg.eigh({0})[1], "
        "np.exp(-np.linalg.eigvalsh({0})), np.linalg.eigh({0})[1])",
        "P P": "({0} + {1})",
        "T": "{0}[1]",
    },
    "S": {
        "T": "np.linalg.inv({0})|np.linalg.cholesky({0})",
        "S": "np.sin({0})|{0}.mT",
        "S nn": "({0} @ {1})",
        "S S": "({0} * {1})|({0} @ {1})",
        "T S": "np.linalg.solve({0}, {1})",
    },
    "T": {"S": "({0} @ {0}.mT + E)", "T": "np.linalg.inv({0})", "T P": "({0} + {1})"},
}
FACTORED_LEAVES = {
    "P": "(A@A.T+E) (A+A.T+3*E)",
    "S": "np.stack([A,A.T,E]) np.stack([A,E,B@C])",
    "T": "np.stack([A@A.T+E,A+A.T+3*E,E])",
}


def factored(kind: str) -> list[Rule]:
    """How a number, vector, matrix or stack of matrices is written by factors and functions of others."""
    return [rule for operands, written in FACTORED[kind].items() for rule in several(written, *operands.split())]


def function_of(body: str, **more: Any) -> Callable[..., Any]:
    """A function of all tensors by its lines."""
    name = f"<{body}>"
    source = f"def f({', '.join((*AXES, 'k'))}):\n{body}\n"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    found: dict[str, Any] = {"np": np, **more}
    exec(compile(source, name, "exec"), found)
    function: Callable[..., Any] = found["f"]
    return function


def check_prints(shown: cd.Program, given: dict[str, Any], value: Any, spaces: dict[str, Any]) -> None:
    """What is printed has the value; where a print tells no sizes, as `0` and `𝟏` alone, it is refused."""
    for text in (str(shown), shown.matrix()):
        try:
            found = cd.read(text, spaces)(**given)
        except cd.CombdiffError as problem:
            if "nothing tells the range" not in str(problem):
                raise
            continue
        np.testing.assert_allclose(found + np.zeros_like(value), value, rtol=1e-7, atol=1e-8, err_msg=text)


def check(seed: int, body: str, plain: dict[str, Any], traced: dict[str, Any], *, twice: bool) -> None:
    """The program of a function with that body, beside what NumPy computes and differences of it."""
    random, rng = Random(seed), np.random.default_rng(seed)
    sizes = random.choice(SIZES)
    shapes = {name: tuple(sizes[axis] for axis in axes) for name, axes in AXES.items()}
    given = {name: rng.uniform(-1, 1, shape) for name, shape in shapes.items()}
    given |= {"E": 2 * np.eye(sizes["n"]), "k": rng.integers(0, 3, sizes["n"])}
    expected, function = function_of(body, **plain)(**given), function_of(body, **traced)
    spaces = {name: cd.Space(*shape) for name, shape in shapes.items()} | {"k": cd.Space(sizes["n"], dtype=int)}
    function.__annotations__ = spaces
    program = cd.program(function)
    np.testing.assert_allclose(program(**given), expected, rtol=1e-9, atol=1e-9, err_msg=body)
    check_prints(program, given, expected, spaces)
    read = {variable.name for variable in program.term.body.free}
    name = next((name for name in "xABCyw" if name in read), "x")
    gradient = cd.grad(program, name)
    slopes = gradient(**given)
    if not np.isfinite(slopes).all():  # the root of nothing, as of two largest numbers less the largest
        return
    steps = (extrapolated_differences(program, given, sizes, name, scale)[0] for scale in (32.0, 1.0))
    assert any(np.allclose(slopes, each, rtol=1e-3, atol=1e-4) for each in steps), f"{body}\n{gradient}\n{slopes}"
    check_prints(gradient, given, slopes, spaces)
    if twice:
        way = rng.normal(size=given[name].shape)
        ahead, behind = (gradient(**{**given, name: given[name] + step * way}) for step in (1e-5, -1e-5))
        product = cd.hvp(program, name)(**given, **{f"{name}_dot": way})
        np.testing.assert_allclose(product, (ahead - behind) / 2e-5, rtol=2e-3, atol=2e-3, err_msg=body)


@pytest.mark.sample(8)
@pytest.mark.parametrize("seed", range(48))
def test_values_derivatives_and_prints(seed: int) -> None:
    random = Random(seed)
    check(seed, f"    return {drawn(random, '', random.choice([3, 4, 5]))}", {}, {}, twice=seed % 4 == 0)


def in_python(step: Callable[..., Any], init: Any, xs: Any) -> tuple[Any, Any]:
    """What cd.scan means."""
    ys = []
    for x in xs:
        init, y = step(init, x)
        ys.append(y)
    return init, np.array(ys)


class InNumPy:
    """What cd's functions of matrices mean."""

    expm = staticmethod(scipy.linalg.expm)
    sqrtm = staticmethod(scipy.linalg.sqrtm)


RESULTS = (
    "np.sum(np.cos(ys))|ys[-1] @ last|np.sum(ys * A)|np.sum(last) + np.prod(ys[0])|np.sum(np.exp(-(ys**2)) @ last)|"
    "np.max(ys)"
)


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(36))
def test_steps_of_whole_arrays(seed: int) -> None:
    """Functions of matrices in steps, too, and as many steps as a state has elements."""
    random = Random(seed)
    after = drawn(random, "n", random.choice([1, 2, 2, 3]), {"n": "c r c x"})
    body = f"""
    def step(c, r):
        after = {after}
        after = after / (1 + after @ after)
        return after, {random.choice(["c", "after", drawn(random, "n", 1, {"n": "c r after"})])}
    last, ys = scan(step, x, {random.choice(["A", "A[::-1]", "A.T", "B @ C"])})
    return {random.choice(RESULTS.split("|"))}"""
    check(seed, body, {"scan": in_python}, {"scan": cd.scan}, twice=seed % 4 == 0)


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(36))
def test_factors_and_functions_of_matrices(seed: int) -> None:
    """Of parts of matrices and of stacks, too; what a result depends on has no signs or phases to choose."""
    random = Random(seed)
    body = f"    return {drawn(random, '', random.choice([2, 3, 3, 4]), FACTORED_LEAVES, factored)}"
    check(seed, body, {"cd": InNumPy}, {"cd": cd}, twice=seed % 3 == 0)
