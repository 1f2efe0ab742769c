"""Affine forms of integers that arrays hold and of indices, `x[idx[i] + j]`, and several axes read at once."""

from __future__ import annotations

import tracemalloc
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, TORCH, convert, on

import combdiff as cd
from combdiff.errors import IndexingError
from combdiff.ir.interpreter import evaluate

RNG = np.random.default_rng(1)
Ints = cd.Space("B", dtype=int)
Weights = cd.Space("B", "C")


@cd.program
def shifted(x: cd.Space("V"), a: Ints, w: Weights):
    return cd.sum(lambda i, j: x[a[i] + j] ** 3 * w[i, j])


@cd.program
def strided(x: cd.Space("V"), a: Ints, w: Weights):
    return cd.sum(lambda i, j: cd.sin(x[2 * a[i] - j]) * w[i, j])


@cd.program
def mixed(x: cd.Space("V", "D"), a: Ints, w: Weights):
    return cd.sum(lambda i, j, k: x[a[i], j + k] ** 2 * w[i, j], k=2)


@cd.program
def outer(x: cd.Space("V"), a: Ints, b: cd.Space("C", dtype=int), w: Weights):
    return cd.sum(lambda i, j: x[3 * a[i] + b[j]] ** 2 * w[i, j])


@cd.program
def around(x: cd.Space(cd.Cyclic("V")), a: Ints, w: Weights):
    return cd.sum(lambda i, j: x[a[i] - 2 * j + 1] ** 2 * x[j - a[i]] * w[i, j])


@cd.program
def periodic(x: cd.Space(cd.Cyclic("V")), a: cd.Space(cd.Cyclic("V"), dtype=int), w: cd.Space(cd.Cyclic("V"))):
    return cd.sum(lambda k: x[a[k + 1] + k] ** 2 * w[k] * x[k - 1])


@cd.program
def centred(x: cd.Space(cd.Symmetric("V")), a: Ints, w: cd.Space("B", cd.Symmetric(1))):
    return cd.sum(lambda i, b: x[a[i] - b] ** 3 * w[i, b])


@cd.program
def nested(x: cd.Space("V"), a: Ints, b: cd.Space("V", dtype=int), w: Weights):
    return cd.sum(lambda i, j: cd.cos(x[b[a[i] + j] + 1]) * w[i, j])


@cd.program
def chained(x: cd.Space("V"), y: cd.Space("D"), a: Ints, w: Weights):
    return cd.sum(lambda i, j: x[a[i] + j] ** 2 * y[a[i]] * x[i + j] * w[i, j])


@cd.program
def along(x: cd.Space("D", "V", "E"), a: cd.Space("V", dtype=int), b: cd.Space("V", dtype=int)):
    return cd.sum(lambda i: x[a[i], i, b[i]] ** 3)


@cd.program
def apart(x: cd.Space("D", "V", "E"), a: Ints, b: Ints, w: cd.Space("B", "V")):
    return cd.sum(lambda i, v: cd.sin(x[a[i], v, b[i]]) * w[i, v])


@cd.program
def numbered(x: cd.Space("D", "V", "E"), n: cd.Space(dtype=int), b: Ints, w: cd.Space("B", "V")):
    return cd.sum(lambda i, v: cd.sin(x[n, v, b[i]]) * x[n + 1, v, n] * w[i, v])


@cd.program
def counted(x: cd.Space("V"), a: Ints, w: Weights):
    return cd.sum(lambda i, j: (a[i] + 2 * j - 1) * (a[i] * j) * x[a[i]] ** 2 * w[i, j])


def numbers(*shape: int) -> Any:
    return RNG.standard_normal(shape)


A = np.array([0, 2, 3, 2])
W = numbers(4, 3)
CASES: list[tuple[Any, dict[str, Any]]] = [
    (shifted, {"x": numbers(6), "a": A, "w": W}),
    (strided, {"x": numbers(7), "a": A[1:], "w": W[1:]}),
    (mixed, {"x": numbers(5, 4), "a": A, "w": W}),
    (outer, {"x": numbers(14), "a": A, "b": np.array([0, 3, 1]), "w": W}),
    (around, {"x": numbers(5), "a": A - 7, "w": W}),
    (periodic, {"x": numbers(4), "a": A + 3, "w": numbers(4)}),
    (centred, {"x": numbers(7), "a": A - 2, "w": W}),
    (nested, {"x": numbers(6), "a": A, "b": np.array([4, 0, 1, 1, 3, 2]), "w": W}),
    (chained, {"x": numbers(6), "y": numbers(4), "a": A, "w": W}),
    (along, {"x": numbers(5, 4, 3), "a": A, "b": A[::-1] - 1 + (A[::-1] == 0)}),
    (apart, {"x": numbers(5, 2, 4), "a": A, "b": A[::-1], "w": numbers(4, 2)}),
    (numbered, {"x": numbers(5, 2, 4), "n": 3, "b": A, "w": numbers(4, 2)}),
    (counted, {"x": numbers(6), "a": A, "w": W}),
    (shifted, {"x": numbers(6), "a": A[:0], "w": W[:0]}),
]


def reference(f: Any, given: dict[str, Any]) -> Any:
    arrays = list(given.values())
    sizes: dict[str, int] = {}
    for parameter, array in zip(f.term.parameters, arrays, strict=True):
        for axis, size in zip(parameter.type.axes, np.shape(array), strict=True):
            name = getattr(axis, "bound", getattr(axis, "size", None))
            if isinstance(name, str):
                sizes[name] = size // 2 if hasattr(axis, "bound") else size
    return evaluate(f.term.body, dict(zip(f.term.parameters, arrays, strict=True)), sizes)


# Several tests look at one derivative; it is derived once.
grad, hvp = lru_cache(maxsize=None)(cd.grad), lru_cache(maxsize=None)(cd.hvp)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("f", "given"), CASES)
def test_every_route_to_second_order(f: Any, given: dict[str, Any]) -> None:
    np.testing.assert_allclose(f(**given), reference(f, given), atol=1e-12)
    cd.testing.check_grad(f, "x", **given)
    direction, step = numbers(*given["x"].shape), 1e-6
    for simplify in (True, False):
        gradient = grad(f, wrt="x", simplify=simplify)
        np.testing.assert_allclose(gradient(**given), reference(gradient, given), atol=1e-10)
        product = hvp(f, wrt="x", simplify=simplify)
        ends = [gradient(**{**given, "x": given["x"] + sign * step * direction}) for sign in (1, -1)]
        curved = product(*given.values(), direction)
        np.testing.assert_allclose(curved, (ends[0] - ends[1]) / (2 * step), atol=1e-6)
        np.testing.assert_allclose(curved, reference(product, {**given, "k": direction}), atol=1e-10)


def in_library(name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {n: convert(name, a, chunks=2) for n, a in given.items()}


@pytest.mark.sample(2)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("f", "given"), CASES)
def test_values_and_derivatives_on_every_backend(f: Any, given: dict[str, Any], backend: str) -> None:
    direction = numbers(*given["x"].shape)
    exact = {"rtol": 1e-3, "atol": 1e-4} if backend == "jax" else {"rtol": 1e-9, "atol": 1e-10}
    for program, arrays in ((f, given), (grad(f), given), (hvp(f), {**given, "k": direction})):
        expected = program(*arrays.values())
        found = on(backend, program)(*in_library(backend, arrays).values())
        np.testing.assert_allclose(np.asarray(found), expected, **exact)


def test_an_index_out_of_range_is_refused_with_what_it_was_computed_from() -> None:
    x = np.ones(4)
    with pytest.raises(IndexingError) as caught:
        cd.grad(shifted)(x, np.array([0, 2]), np.ones((2, 3)))
    assert caught.value.message == (
        "axis 0 of x is read at a[i] + j = 4 (for i = 1, j = 2), but it has the indices 0 … 3 for V = 4"
    )
    with pytest.raises(IndexingError, match=r"2\*a\[i\] - j = -1 \(for i = 0, j = 1\)"):
        strided(x, np.array([0, 2]), np.ones((2, 2)))


@cd.program
def padded(x: cd.Space("V"), a: Ints, w: Weights):
    return cd.sum(lambda i, j: cd.where(i + j < 3, x[2 * a[i + j] - j] ** 2, 0) * w[i, j])


@cd.program
def causal(x: cd.Space("V"), a: Ints, w: Weights):
    return cd.sum(lambda i, j: cd.where(i >= j, x[a[i - j] - 1] ** 2 * x[a[i]], 0) * w[i, j])


@cd.program
def turned(x: cd.Space(cd.Cyclic("V")), y: cd.Space("M"), b: cd.Space(cd.Cyclic("V"), dtype=int)):
    return cd.sum(lambda k: y[b[k + 1] + k] ** 2 * x[k] * x[k + 2])


@pytest.mark.parametrize("backend", [TORCH, "dask"])
@pytest.mark.parametrize("f", [padded, causal])
def test_a_library_leaves_out_what_a_condition_leaves_out(f: Any, backend: str) -> None:
    given = {"x": numbers(7), "a": np.array([1, 2, 3, 2]), "w": numbers(4, 3)}
    gradient = cd.grad(f)
    np.testing.assert_allclose(np.asarray(gradient(**in_library(backend, given))), gradient(**given))


@pytest.mark.parametrize("f", [padded, causal])
def test_what_a_condition_leaves_out_may_be_out_of_range(f: Any) -> None:
    given = {"x": numbers(7), "a": np.array([1, 2, 3, 2]), "w": numbers(4, 3)}
    for wrt in ("x", "w"):
        cd.testing.check_grad(f, wrt, **given)
        for simplify in (True, False):
            gradient = cd.grad(f, wrt=wrt, simplify=simplify)
            np.testing.assert_allclose(gradient(**given), reference(gradient, given), atol=1e-12)
    with pytest.raises(IndexingError, match="but it has the indices 0 … 6 for V = 7"):
        f(given["x"], given["a"] + 4, given["w"])


def test_indices_of_a_cycle_are_not_shifted_where_they_count_as_numbers() -> None:
    given = {"x": numbers(5), "y": numbers(9), "b": np.array([0, 3, 1, 4, 2])}
    for wrt in ("x", "y"):
        cd.testing.check_grad(turned, wrt, **given)
        gradient = cd.grad(turned, wrt=wrt)
        np.testing.assert_allclose(gradient(**given), reference(gradient, given), atol=1e-12)


def test_reads_print_as_they_are_written() -> None:
    assert str(shifted) == "(x, a, w) ↦ Σ_{i,j} x[a[i] + j]³ w[i,j]"
    shown, latex = str(cd.grad(shifted)), cd.grad(shifted).latex()
    assert "d ↦ 3 x[d]² Σ_{i,j} δ(a[i] + j, d) w[i,j]" in shown
    assert "x_{a_{i} + j}" in shifted.latex()
    assert r"\sum_{i,j} \delta_{a_{i} + j,d} w_{i,j}" in latex
    assert "cos(x[b[a[i] + j] + 1])" in str(nested)
    assert shifted.combinators() == "(x, a, w) ↦ 𝐁 Σ (𝐂 ((i, j) ↦ 𝐁 (x[a[i] + j]³ ·) (𝐁 w 𝐈 [i, j])))"


def test_several_axes_are_read_at_once() -> None:
    assert "x[a, :, b]" in apart.source()
    assert "x[a, np.arange(V), b]" in along.source()
    rows, columns = 2000, 3000

    @cd.program
    def pairs(x: cd.Space("V", "D"), a: Ints, b: Ints):
        return cd.tensor(lambda i: x[a[i], b[i]] ** 2)

    x, few = np.ones((rows, columns)), np.arange(1000)
    compiled = pairs.compile(memory_limit="100 kB")
    tracemalloc.start()
    np.testing.assert_array_equal(compiled(x, few, few), 1)
    assert tracemalloc.get_traced_memory()[1] < 100_000 + 50_000  # of Python's own
    tracemalloc.stop()


def test_dask_finds_an_index_out_of_range_when_it_computes() -> None:
    arrays = in_library("dask", {"x": numbers(4), "a": np.array([0, 2]), "w": numbers(2, 3)})
    lazy = cd.grad(shifted)(**arrays)
    with pytest.raises(IndexingError, match=r"axis 0 of x is read at a\[i\] \+ j = 4 \(for i = 1, j = 2\)"):
        lazy.compute()


def test_an_index_that_equals_what_an_array_holds_there() -> None:
    """No index stands for itself: those i are summed over for which idx[i] is i."""
    spaces = {"x": cd.Space("n"), "idx": cd.Space("n", dtype=int)}
    fixed = cd.read("(x, idx) ↦ Σ_i δ(i, idx[i]) x[i]", spaces)
    assert str(fixed) == "(x, idx) ↦ Σ_i δ(i, idx[i]) x[i]"
    assert str(cd.grad(fixed, "x")) == "(x, idx) ↦ d ↦ δ(idx[d], d)"
    assert fixed(np.arange(1.0, 5.0), np.array([0, 2, 2, 1])) == 1 + 3


DIVIDED = {
    "repeat": (
        (3,),
        (9,),
        lambda x, y: np.repeat(x, 3) ** 2 * y,
        "(x, y) ↦ Σ_i x[⌊i/3⌋]² y[i]",
        "(x, y) ↦ d ↦ 2 x[d] Σ_{j<3} y[3d + j]",
    ),
    "reshape": (
        (3, 4),
        (12,),
        lambda x, y: np.sin(x.reshape(12)) * y,
        "(x, y) ↦ Σ_i sin(x[⌊i/4⌋,i mod 4]) y[i]",
        "(x, y) ↦ (d, e) ↦ y[4d + e] cos(x[d,e])",
    ),
    "split": (
        (12,),
        (3, 4),
        lambda x, y: x.reshape(3, 4) ** 2 * y,
        "(x, y) ↦ Σ_{i,j} x[4i + j]² y[i,j]",
        "(x, y) ↦ d ↦ 2 x[d] y[⌊d/4⌋,d mod 4]",
    ),
    "twice": (
        ("m", "n"),
        (6, 6),
        lambda x, y: np.repeat(np.repeat(x, 2, axis=0), 2, axis=1) ** 2,
        "(x, y) ↦ Σ_{i<2*m,j<2*n} x[⌊i/2⌋,⌊j/2⌋]²",
        "(x, y) ↦ (d, e) ↦ 8 x[d,e]",
    ),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", DIVIDED)
def test_what_is_laid_out_anew_is_read_at_quotients_and_rests(name: str) -> None:
    """And planned by reshapes: no more is computed than there are elements."""
    shape, other, body, shown, gradient = DIVIDED[name]

    def f(x, y):  # type: ignore[no-untyped-def]
        return body(x, y).sum()

    f.__annotations__ = {"x": cd.Space(*shape), "y": cd.Space(*other)}
    program = cd.program(f)
    slope = cd.grad(program)
    assert (str(program), str(slope)) == (shown, gradient)
    for each in (program, slope):
        assert cd.read(str(each), spaces=f.__annotations__) == each
        assert "_gather" not in each.source()
        assert "_within" not in each.source()
    x, y = numbers(*(3 if isinstance(n, str) else n for n in shape)), numbers(*other)
    assert program(x, y) == pytest.approx(body(x, y).sum())
    assert cd.testing.check_grad(program, "x", x=x, y=y) < 1e-6


def test_what_is_divided_twice_keeps_both_remainders() -> None:
    """Of ⌊⌊i/2⌋/3⌋ one was left out, and what was read back had other elements."""

    @cd.program
    def f(c: cd.Space(3)):
        return np.cos(c.repeat(3).repeat(2))

    c = np.array([1.0, 5.0, 7.0])
    np.testing.assert_allclose(cd.read(str(f), {"c": cd.Space(3)})(c), np.cos(c.repeat(6)))
