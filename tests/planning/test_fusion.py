"""Element-wise chains in blocks: the same values, element types and results as without, and what the source shows."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import Case, programs

import combdiff as cd
from combdiff.codegen.writer import source as plan_source
from combdiff.ir.terms import Lambda
from combdiff.planning import specialise
from combdiff.planning.passes import fusion
from combdiff.planning.plan import Plan, peak
from combdiff.planning.planning import size_names
from combdiff.runtime.execution import plan

RNG = np.random.default_rng(7)
MANY = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
FEW = settings(MANY, max_examples=5)
N = fusion.LEAST + 17  # points, some more than whole blocks


@cd.program
def chain(a: cd.Space("n"), b: cd.Space("n"), s: cd.Space()):
    return cd.tensor(lambda i: s * a[i] * b[i] + 3 * cd.sin(a[i]) * b[i] - 3 * a[i] + 1)


@cd.program
def stencil(u: cd.Space(cd.Cyclic("n")), v: cd.Space(cd.Cyclic("n"))):
    return cd.tensor(lambda i: (u[i + 1] - 2 * u[i] + u[i - 1]) * v[i] + cd.cos(u[i - 1]) * v[i + 2])


@cd.program
def cut(x: cd.Space("n"), z: cd.Space("n", dtype=complex)):
    before = cd.tensor(lambda i: cd.where(i >= 1, x[i - 1], 0) * cd.conj(z[i]), i="n")
    return cd.tensor(lambda i: before[i] * x[i] + cd.exp(x[i]) * z[i] - 2 * z[i])


@cd.program
def table(A: cd.Space("n", "m"), b: cd.Space("m"), c: cd.Space("n")):
    return cd.sum(lambda i, j: cd.exp(-((A[i, j] - b[j]) ** 2)) * c[i] * (1 + A[i, j] * b[j]))


@cd.program
def softmax(z: cd.Space("n", "k"), y: cd.Space("n", "k")):
    return cd.sum(lambda i: cd.log(cd.sum(lambda c: cd.exp(z[i, c]))) - cd.sum(lambda c: y[i, c] * z[i, c]), i="n")


def function(planned: Plan) -> Any:
    """The function that a plan's source defines."""
    namespace: dict[str, Any] = {}
    exec(plan_source(planned, "f"), namespace)
    return namespace["f"]


def in_small_blocks(whole: Plan, block: int = 4) -> Plan:
    """The plan with every chain in a loop, in blocks of few elements."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"LEAST": 1, "BLOCK": block, "SAVED": -100, "peak": lambda plan: 0}.items():
            patch.setattr(fusion, name, value)
        return fusion.fused(whole)


def unfused(term: Lambda, sizes: dict[str, int]) -> Plan:
    """The plan for NumPy without loops."""
    return specialise(plan(term, sizes), "numpy", fuses=False)


def agree(found: Any, expected: Any, rtol: float = 1e-9) -> None:
    """The same element type and shape, and nearly the same values."""
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            agree(one, other, rtol)
        return
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=rtol * max(1.0, np.max(np.abs(expected), initial=0.0)))


# --- the same as without -------------------------------------------------------------------------------------------


@MANY
@given(programs(result="tensor"), st.integers(1, 5))
def test_random_programs_in_blocks_mean_the_same(case: Case, block: int) -> None:
    whole = unfused(case.term, case.sizes)
    arrays = [np.asarray(array) for array in case.environment.values()]
    agree(function(in_small_blocks(whole, block))(*arrays), function(whole)(*arrays))


def drawn_array(draw: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """An array of that shape: contiguous, strided, reversed or in Fortran's order."""
    values = RNG.normal(size=shape)
    values = values + 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else values
    made = np.asarray(values).astype(dtype)
    layout = draw(st.sampled_from(("plain", "strided", "reversed", "fortran")))
    if layout == "strided" and made.ndim:
        wide = np.zeros((2 * shape[0], *shape[1:]), made.dtype)
        wide[::2] = made
        return wide[::2]
    if layout == "reversed" and made.ndim:
        return made[::-1].copy()[::-1]
    return np.array(made, order="F" if layout == "fortran" else "C")


@cd.program
def chain_moved(a: cd.Space("n"), b: cd.Space("n"), s: cd.Space(), v: cd.Space("n")):
    return cd.tensor(lambda i: v[i] * (b[i] * (3 * cd.cos(a[i]) + s) - 3))


@cd.program
def stencil_moved(u: cd.Space(cd.Cyclic("n")), v: cd.Space(cd.Cyclic("n")), w: cd.Space(cd.Cyclic("n"))):
    ahead = cd.tensor(lambda i: v[i] * (w[i + 1] - 2 * w[i]))
    return cd.tensor(lambda i: ahead[i] + w[i - 1] * (v[i] - v[i + 2] * cd.sin(u[i - 1])))


@cd.program
def cut_moved(x: cd.Space("n"), z: cd.Space("n", dtype=complex), v: cd.Space("n")):
    before = cd.tensor(lambda i: cd.where(i >= 1, x[i] * v[i - 1] + x[i - 1] * v[i], 0) * cd.conj(z[i]), i="n")
    return cd.tensor(lambda i: before[i] + v[i] * z[i] * cd.exp(x[i]))


@cd.program
def table_slopes(A: cd.Space("n", "m"), b: cd.Space("m"), c: cd.Space("n")):
    """The number that `table` gives, and its gradient by each argument."""
    e, f = cd.tensor(lambda i, j: cd.exp(-((A[i, j] - b[j]) ** 2))), cd.tensor(lambda i, j: 1 + A[i, j] * b[j])
    by_a = cd.tensor(lambda i, j: c[i] * e[i, j] * (b[j] - 2 * f[i, j] * (A[i, j] - b[j])))
    by_b = cd.tensor(lambda j: cd.sum(lambda i: c[i] * e[i, j] * (A[i, j] + 2 * f[i, j] * (A[i, j] - b[j]))))
    return (
        cd.sum(lambda i, j: c[i] * e[i, j] * f[i, j]),
        by_a,
        by_b,
        cd.tensor(lambda i: cd.sum(lambda j: e[i, j] * f[i, j])),
    )


@cd.program
def softmax_slope(z: cd.Space("n", "k"), y: cd.Space("n", "k")):
    """The number that `softmax` gives, and its gradient."""
    e = cd.tensor(lambda i, c: cd.exp(z[i, c]))
    total = cd.tensor(lambda i: cd.sum(lambda c: e[i, c]))
    value = cd.sum(lambda i: cd.log(total[i])) - cd.sum(lambda i, c: y[i, c] * z[i, c])
    return value, cd.tensor(lambda i, c: e[i, c] / total[i] - y[i, c])


CHAINS = {chain: chain_moved, stencil: stencil_moved, cut: cut_moved, table: table_slopes, softmax: softmax_slope}


@FEW
@given(st.data())
@pytest.mark.parametrize("program", CHAINS, ids=lambda program: program.name)
def test_chains_of_any_size_layout_and_element_type(program: Any, data: st.DataObject) -> None:
    """Of a program, and of what its derivative computes."""
    term = data.draw(st.sampled_from((program, CHAINS[program]))).term
    sizes = {name: data.draw(st.integers(name == "k", 9)) for name in sorted(size_names(term))}
    whole = unfused(term, sizes)
    arrays = []
    for parameter in whole.parameters:
        space = parameter.type
        assert isinstance(space, cd.Space)
        width = data.draw(st.sampled_from((np.float32, np.float64)))
        dtype = np.result_type(width, np.complex64) if space.dtype is complex else width
        shape = tuple(sizes[axis.size] for axis in space.axes)  # type: ignore[union-attr,index]
        array = drawn_array(data.draw, shape, dtype)
        arrays.append(array if shape else array[()])
    expected = function(whole)(*arrays)
    agree(function(in_small_blocks(whole, data.draw(st.integers(1, 5))))(*arrays), expected, 1e-5)


def test_loops_hold_for_arrays_of_every_size() -> None:
    namespace: dict[str, Any] = {}
    exec(chain.source(n=10**6), namespace)
    for n in (0, 1, 16384, 32768, 32769, 1 << 17, (1 << 17) + 1):
        a, b = RNG.normal(size=(2, n))
        expected = 2 * a * b + 3 * np.sin(a) * b - 3 * a + 1
        found = namespace["chain"](a, b, 2.0)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert found.shape == (n,)
        assert namespace["chain"](a.astype("f"), b.astype("f"), 2.0).dtype == np.float32
        assert namespace["chain"](a.astype("f"), b.astype("f"), np.float64(2)).dtype == np.float64


def test_large_arrays_by_the_public_way() -> None:
    a, b = RNG.normal(size=(2, 2 * N))[:, ::2]
    kept = a.copy(), b.copy()
    np.testing.assert_allclose(chain(a, b, 0.5), 0.5 * a * b + 3 * np.sin(a) * b - 3 * a + 1, atol=1e-12)
    assert chain(a.astype("f"), b.astype("f"), 0.5).dtype == np.float32
    assert chain(a.astype("f"), b, 0.5).dtype == np.float64
    np.testing.assert_array_equal([a, b], kept)
    z = a + 1j * b
    expected = np.concatenate(([0], a[:-1])) * z.conj() * a + np.exp(a) * z - 2 * z
    np.testing.assert_allclose(cut(a, z), expected, atol=1e-12)
    assert cut(a.astype("f"), z.astype("F")).dtype == np.complex64
    expected = (np.roll(a, -1) - 2 * a + np.roll(a, 1)) * b + np.cos(np.roll(a, 1)) * np.roll(b, -2)
    np.testing.assert_allclose(stencil(a, b), expected, atol=1e-12)


def test_large_sums_beside_tensors_of_the_same_chain() -> None:
    n, m = 3000, 40
    A, b, c = RNG.normal(size=(n, m)), RNG.normal(size=m), RNG.normal(size=n)
    value, *slopes = table_slopes(A, b, c)
    e = np.exp(-((A - b) ** 2))
    np.testing.assert_allclose(value, np.sum(e * c[:, None] * (1 + A * b)), rtol=1e-11)
    by_a = c[:, None] * e * (b - 2 * (A - b) * (1 + A * b))
    by_b = np.sum(c[:, None] * e * (A + 2 * (A - b) * (1 + A * b)), 0)
    for found, expected in zip(slopes, (by_a, by_b, np.sum(e * (1 + A * b), 1)), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-10)
    z, y = RNG.normal(size=(20000, 7)) * 300, np.eye(7)[RNG.integers(0, 7, 20000)]
    p = np.exp(z - z.max(1, keepdims=True))
    np.testing.assert_allclose(softmax_slope(z, y)[1], p / p.sum(1, keepdims=True) - y, atol=1e-12)


def test_sums_of_blocks_lose_little_to_rounding() -> None:
    @cd.program
    def norm(x: cd.Space("n")):
        return cd.sum(lambda i: cd.sqrt(1 + x[i] ** 2) * cd.exp(-x[i] / 8))

    x = RNG.random(1 << 22, dtype=np.float32)
    assert "append" in norm.source(n=len(x))
    exact = float(np.sum(np.sqrt(1 + np.float64(x) ** 2) * np.exp(-np.float64(x) / 8)))
    assert abs(float(norm(x)) - exact) < 1e-6 * exact


# --- when, and what it takes ---------------------------------------------------------------------------------------


def test_small_arrays_and_short_chains_stay_as_they_are() -> None:
    @cd.program
    def short(a: cd.Space("n"), b: cd.Space("n")):
        return cd.tensor(lambda i: a[i] * b[i])

    assert "for start" not in short.source(n=10**6)
    assert "for start" not in chain.source()
    assert "for start" not in chain.source(n=fusion.LEAST - 1)
    assert "for start" in chain.source(n=fusion.LEAST)
    assert "for start" not in chain.source("jax", n=10**6)
    with pytest.raises(cd.ArgumentError, match="chain has no size 'm'"):
        chain.source(m=3)


def test_what_the_source_shows() -> None:
    lines = [line.strip().partition("  #")[0] for line in stencil.source(n=10**6).splitlines()]
    end = next(n for n, line in enumerate(lines) if line.startswith("return"))  # helpers stand behind the program
    body = lines[lines.index("for start in range(0, n or 1, 32768):") : end]
    assert lines[lines.index("n = u.shape[0]") + 1].endswith("= np.cos(u)")  # read elsewhere, so computed whole
    assert "stop = min(start + 32768, n)" in body
    assert any("_wrapped(np, u, 0, start + 1, block)" in line for line in body)  # two slices where it goes around
    assert not any("np.arange" in line for line in body)
    assert sum(line.startswith("t") and "np.empty((n,)" in line for line in lines) == 1
    assert any("out=" in line for line in body)
    inside = chain.source(n=10**6).partition("for start")[2]
    assert inside.count("np.sin(") == 1
    assert "3 * " not in inside.replace("np.multiply(3, ", "")  # 3 sin(a) b − 3 a is multiplied once


def test_what_is_needed_whole_takes_a_later_loop() -> None:
    @cd.program
    def mixed(A: cd.Space("n", "n")):
        B = cd.tensor(lambda i, j: cd.exp(A[i, j]) * A[i, j] + 2 * A[i, j])
        return cd.tensor(lambda i, j: cd.sin(B[i, j]) * B[j, i] - 3 * B[i, j] + A[i, j])

    assert mixed.source(n=400).count("for start") == 2
    A = RNG.normal(size=(400, 400))
    B = np.exp(A) * A + 2 * A
    np.testing.assert_allclose(mixed(A), np.sin(B) * B.T - 3 * B + A, atol=1e-11)


def test_less_memory_is_taken_and_counted() -> None:
    a, b = RNG.normal(size=(2, 1 << 20))
    chain(a, b, 0.5)
    tracemalloc.start()
    chain(a, b, 0.5)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    cost = chain.cost(n=1 << 20)
    assert most <= cost.peak_bytes + 4096
    assert cost.peak_bytes < 1.2 * a.nbytes < peak(unfused(chain.term, {"n": 1 << 20})) / 2
    limited = chain.compile(memory_limit=int(1.2 * a.nbytes))
    np.testing.assert_array_equal(limited(a, b, 0.5), chain(a, b, 0.5))
