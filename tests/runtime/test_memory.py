"""Costs, peak memory, and limits that are obeyed: as counted, and as measured with tracemalloc."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
from backends import TORCH
from hypothesis import HealthCheck, given, settings
from measuring import measured
from strategies import Case, examples, programs

import combdiff as cd
from combdiff.planning.passes.slicing import sliced
from combdiff.planning.plan import peak
from combdiff.runtime.execution import Runner, plan, run
from combdiff.runtime.limits import parse_limit

RNG = np.random.default_rng(3)
MANY = settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))


@cd.program
def screened(L: cd.Space("k", "n", "n"), D: cd.Space("n", "n")):
    """Two contractions of a tensor of order 4 that is too large to be held."""
    J = cd.tensor(lambda p, q, r, s: cd.exp(cd.sum(lambda k: L[k, p, q] * L[k, r, s])))
    F = cd.tensor(lambda p, q: cd.sum(lambda r, s: J[p, q, r, s] * D[r, s]))
    K = cd.tensor(lambda p, s: cd.sum(lambda q, r: J[p, q, r, s] * D[q, r]))
    return F - K / 2


@cd.program
def pairs(x: cd.Space("n", 3), z: cd.Space("n", dtype=complex)):
    """A sum over all pairs of points."""
    return cd.sum(
        lambda i, j: cd.real(z[i] * cd.conj(z[j])) / (1 + cd.sum(lambda c: (x[i, c] - x[j, c]) ** 2)), i="n", j="n"
    )


def arguments(n: int) -> tuple[Any, Any]:
    return RNG.normal(size=(8, n, n)) / 10, RNG.normal(size=(n, n))


# --- limits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"), [("2KB", 2000), ("2 KiB", 2048), ("1.5MiB", 3 << 19), ("2e7", 20_000_000)]
)
def test_units_of_limits(text: str, expected: int) -> None:
    assert parse_limit(text) == expected


@pytest.mark.sample(2)
@pytest.mark.parametrize("limit", ["5MB", "3MB", "2MB", "700KB"])
def test_a_limit_is_obeyed_as_measured(limit: str) -> None:
    L, D = arguments(30)
    expected, free = measured(lambda: screened(L, D))
    assert free > 6e6
    limited = screened.compile(memory_limit=limit)
    found, most = measured(lambda: limited(L, D))
    assert most <= parse_limit(limit)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.thorough
def test_the_gradient_of_a_sum_over_pairs_in_little_memory() -> None:
    x, z = RNG.normal(size=(400, 3)), RNG.normal(size=400) + 1j * RNG.normal(size=400)
    gradient = cd.value_and_grad(pairs, wrt=("x", "z"))
    value, (by_x, by_z) = gradient(x, z)
    limited = gradient.compile(memory_limit="1MB")
    (found, (found_x, found_z)), most = measured(lambda: limited(x, z))
    assert most <= 10**6
    np.testing.assert_allclose(found, value, rtol=1e-10)
    np.testing.assert_allclose(found_x, by_x, atol=1e-9)
    np.testing.assert_allclose(found_z, by_z, atol=1e-9)


@pytest.mark.thorough
def test_a_limit_that_is_too_small_names_the_smallest_that_works() -> None:
    L, D = arguments(20)
    with pytest.raises(cd.MemoryLimitError, match="limit of 1000 bytes is too small: at k = 8, n = 20") as caught:
        screened.compile(memory_limit="1KB")(L, D)
    assert isinstance(caught.value, MemoryError)
    least = int(caught.value.hint.rpartition("=")[2])
    limited = screened.compile(memory_limit=least)
    found, most = measured(lambda: limited(L, D))
    assert most <= least + 4096  # the interpreter's own objects
    np.testing.assert_allclose(found, screened(L, D), atol=1e-9)
    with pytest.raises(cd.MemoryLimitError):
        screened.compile(memory_limit=least - 1)(L, D)


@pytest.mark.thorough
@MANY
@given(programs(result="tensor"))
def test_random_programs_in_blocks_mean_the_same(case: Case) -> None:
    whole = plan(case.term, case.sizes)
    arrays = list(case.environment.values())
    expected = run(case.term, arrays, case.sizes)
    for part in (2, 3, 6):
        limit = max(1, peak(whole) // part)
        if sliced(whole, limit)[0] is None:
            return
        found = Runner(case.term, case.sizes, memory_limit=limit)(arrays)
        scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9 * scale)


@pytest.mark.parametrize("backend", ["jax", TORCH])
def test_limits_on_other_backends(backend: str) -> None:
    L, D = arguments(20)
    limited = screened.compile(backend=backend, memory_limit="400KB")
    if backend == "jax":
        with pytest.raises(cd.UnsupportedError, match="'jax' cannot keep to a memory limit of 391 KiB") as caught:
            limited(L, D)
        least = int(re.findall(r"memory_limit=(\d+), the smallest", str(caught.value))[0])
        found = screened.compile(backend=backend, memory_limit=least)(L, D)
        np.testing.assert_allclose(np.asarray(found), screened(L, D), rtol=1e-4, atol=1e-4)  # in single precision
    else:
        np.testing.assert_allclose(np.asarray(limited(L, D)), screened(L, D), atol=1e-9)


@cd.program
def rows(A: cd.Space("m", "n"), w: cd.Space("m", "n")):
    """Running sums, and elements that are cut off, along an axis beside the one that is cut into blocks."""
    total = cd.tensor(lambda a, i: cd.sum(lambda j: cd.where(j <= i, cd.exp(A[a, j]), 0)), i="n")
    kept = cd.tensor(lambda a, i: cd.where(i >= 2, cd.sin(A[a, i]) * w[a, i], 0))
    return cd.sum(lambda a, i: total[a, i] * w[a, i] + kept[a, i] * total[a, i])


@pytest.mark.thorough
def test_running_sums_in_blocks() -> None:
    A, w = RNG.normal(size=(300, 40)) / 9, RNG.normal(size=(300, 40))
    both = cd.value_and_grad(rows, wrt=("A", "w"))
    (value, gradients), free = measured(lambda: both(A, w))
    assert "np.flip(np.cumsum(" in both.source()
    limit = free // 2
    limited = both.compile(memory_limit=limit)
    (found, others), most = measured(lambda: limited(A, w))
    assert most <= limit
    np.testing.assert_allclose(found, value)
    for one, other in zip(others, gradients, strict=True):
        np.testing.assert_allclose(one, other)


@cd.program
def both_ways(x: cd.Space("n", "k"), y: cd.Space("n")):
    """A table that is read along both of its indices."""
    T = cd.tensor(lambda i, j: cd.exp(cd.sum(lambda c: x[i, c] * x[j, c] ** 2)))
    return cd.tensor(lambda i: cd.sum(lambda j: y[j] * cd.sqrt(T[i, j] + T[j, i])))


@pytest.mark.thorough
def test_what_is_read_along_two_indices_is_made_for_each() -> None:
    x, y = RNG.normal(size=(300, 3)) / 2, RNG.normal(size=300)
    for f in (both_ways, cd.jacobian(both_ways, wrt="y")):
        expected, free = measured(lambda f=f: f(x, y))
        for limit in (500_000, 2_000_000) if f is both_ways else (free - 10**5,):
            limited = f.compile(memory_limit=limit)
            found, most = measured(lambda limited=limited: limited(x, y))
            assert most <= limit
            np.testing.assert_allclose(found, expected)


@pytest.mark.thorough
def test_a_small_array_that_is_made_in_blocks_is_not_read_whole_beside_them() -> None:
    """The sums of a table's rows are needed along both indices of what is made of them."""

    @cd.program
    def f(x: cd.Space("n")):
        t = cd.tensor(lambda i, j: cd.exp(x[i] * x[j]))
        s = t.sum(axis=1)
        return cd.sum(lambda i, j: cd.sin(t[i, j] + s[i] + s[j]))

    x = RNG.normal(size=40)
    assert f.compile(memory_limit=40_000)(x) == pytest.approx(f(x), rel=1e-12)


def test_what_no_machine_has_is_refused_before_it_is_allocated() -> None:
    L = np.broadcast_to(np.ones(()), (2, 10**4, 10**4))
    with pytest.raises(cd.MemoryLimitError, match=r"at k = 2, n = 10000 the program needs .* PiB .*, but"):
        screened(L, np.broadcast_to(np.ones(()), (10**4, 10**4)))


def test_messages_about_limits() -> None:
    for wrong in ("2 bananas", "", 0, -3, 0.5, True, float("nan"), float("inf"), "1" * 5000, 10**5000, None.__class__):
        with pytest.raises(cd.ArgumentError, match="is no memory limit"):
            screened.compile(memory_limit=wrong)
    assert parse_limit("2GB") == 2 * 10**9
    assert parse_limit("1.5 MiB") == 1572864
    assert parse_limit(2e7) == parse_limit("2e7") == parse_limit("20 MB") == 2 * 10**7


# --- what is promised ----------------------------------------------------------------------------------------------

Line, Window = cd.Space("n"), cd.Space("k")


@cd.program
def apart(v: cd.Space("m"), x: Line, w: Window):
    return cd.sum(lambda i, j: v[i] * x[3 * i + j] * w[j])


@cd.program
def sliding(v: cd.Space("m"), x: Line, w: Window):
    return cd.sum(lambda i, j: v[i] * x[i + j] * w[j])


@cd.program
def channels(x: cd.Space("r", "n", "c"), w: cd.Space("k", "c", "o"), v: cd.Space("r", "m", "o")):
    return cd.sum(lambda b, i, j, c, o: x[b, 2 * i + j, c] * w[j, c, o] * v[b, i, o])


@cd.program
def around(x: cd.Space(cd.Cyclic("n"), "r"), y: cd.Space(cd.Cyclic("n"), "r")):
    return cd.sum(lambda i, a: cd.exp(x[2 * i + 3, a]) * y[i, a] * x[i - 1, a])


@cd.program
def scalars(A: cd.Space("n", "n"), s: Line):
    return cd.sum(lambda i: cd.log(cd.sum(lambda j: cd.exp(A[i, j] * s[i]))))


@cd.program
def copied(A: cd.Space("n", "n"), b: Line):
    return cd.tensor(lambda i, j: A[j, i]), cd.tensor(lambda i, j: A[i, j]), cd.tensor(lambda i, j: 2.5, i="n", j="n")


def promised(f: Any, *arrays: Any, **sizes: int) -> None:
    """What is measured is within what `cost()` promises, up to the interpreter's own objects."""
    _, most = measured(lambda: f(*arrays))
    assert most <= f.cost(**sizes).peak_bytes + 8192, (f.name, sizes)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["v", "x", "w"])
@pytest.mark.parametrize(("f", "stride"), [(apart, 3), (sliding, 1)], ids=["apart", "sliding"])
def test_products_of_windows_take_what_is_promised_and_keep_to_limits(f: Any, stride: int, name: str) -> None:
    gradient = cd.grad(f, wrt=name)
    for m, k in ((4000, 5), (4000, 300), (300, 4000), (5, 4000), (1, 1)):
        sizes = {"m": m, "n": stride * m + k, "k": k}
        arrays = [RNG.normal(size=sizes[axis]) for axis in "mnk"]
        promised(gradient, *arrays, **sizes)
        limit = 2 * 10**6
        try:
            limited = gradient.compile(memory_limit=limit)
            assert measured(lambda limited=limited, arrays=arrays: limited(*arrays))[1] <= limit
        except cd.MemoryLimitError as error:
            least = int(error.hint.rpartition("=")[2])
            limited = gradient.compile(memory_limit=least)
            assert measured(lambda limited=limited, arrays=arrays: limited(*arrays))[1] <= least + 4096


@pytest.mark.parametrize("name", ["x", "w", "v"])
def test_windows_of_images_take_what_is_promised(name: str) -> None:
    sizes = {"r": 6, "n": 403, "m": 200, "k": 4, "c": 3, "o": 5}
    arrays = [RNG.normal(size=[sizes[axis] for axis in axes]) for axes in ("rnc", "kco", "rmo")]
    promised(cd.grad(channels, wrt=name), *arrays, **sizes)


@pytest.mark.thorough
def test_reads_around_cycles_and_copies_of_results_take_what_is_promised() -> None:
    x, y, A = RNG.normal(size=(301, 40)), RNG.normal(size=(301, 40)), RNG.normal(size=(90, 90))
    for f in (around, cd.grad(around), cd.grad(around, wrt="y")):
        promised(f, x, y, n=301, r=40)
    promised(copied, A, A[0], n=90)
    promised(cd.hessian(scalars, wrt="s"), A, A[0], n=90)
    promised(cd.grad(scalars, wrt="A"), A, A[0], n=90)


# --- arguments whose axes lie in another order in memory -----------------------------------------------------------

Integrals = cd.Space(
    "N", "N", "N", "N", dtype=complex, symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = conj(J[q,p,s,r])"]
)


@cd.program
def coulomb(J: Integrals, C: cd.Space("N", "e", dtype=complex)):
    return cd.sum(lambda i, j, p, q, r, s: cd.conj(C[p, i]) * C[q, i] * cd.conj(C[r, j]) * C[s, j] * J[p, q, r, s])


@cd.program
def unlike(A: cd.Space("n", cd.Symmetric("b"), "k"), at: cd.Space("m", "n", dtype=int), w: cd.Space("m", "n", "k")):
    return cd.sum(lambda i, j, c, b: cd.sin(A[at[i, j], b, c]) * w[i, j, c] + A[j, -b, c] ** 2 * A[j, 1, c])


def as_in_memory(array: Any, order: tuple[int, ...]) -> Any:
    """The array with its axes in that order in memory."""
    return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))


@pytest.mark.thorough
def test_no_order_of_axes_in_memory_is_copied_where_a_view_is_what_is_read() -> None:
    N, gradient = 12, cd.value_and_grad(coulomb, wrt="C")
    J = RNG.normal(size=(N,) * 4) + 1j * RNG.normal(size=(N,) * 4)
    J = J + J.transpose(2, 3, 0, 1)
    J = np.ascontiguousarray(J + J.transpose(1, 0, 3, 2).conj())
    C = RNG.normal(size=(N, 3)) + 1j * RNG.normal(size=(N, 3))
    value, G = gradient(J, C)
    for order in itertools.permutations(range(4)):
        given = as_in_memory(J, order)
        (found, turned), most = measured(lambda given=given: gradient(given, C))
        assert most < J.nbytes / 4, order
        np.testing.assert_allclose(found, value)
        np.testing.assert_allclose(turned, G)


@pytest.mark.thorough
def test_orders_in_memory_mean_the_same() -> None:
    A, w = RNG.normal(size=(9, 21, 30)), RNG.normal(size=(500, 9, 30))
    at = RNG.integers(0, 9, size=(500, 9))
    for f in (unlike, cd.grad(unlike, wrt="A"), cd.grad(unlike, wrt="w")):
        expected = f(A, at, w)
        for order in ((1, 0, 2), (2, 0, 1), (2, 1, 0)):
            given = [as_in_memory(A, order), as_in_memory(at, (1, 0))]
            np.testing.assert_allclose(f(*given, as_in_memory(w, order)), expected)


# --- costs ---------------------------------------------------------------------------------------------------------


def test_the_cost_table() -> None:
    table = screened.cost(k=8, n=15)
    assert table.flops == 8 * 15**4 + 3 * 15**4 + 2 * 15**2
    assert [row.operation for row in table.rows] == [
        "matrix-matrix",
        "exp",
        "matrix-vector",
        "stacked matrix-vector",
        "combine",
    ]
    assert table.rows[0].equation == "ijk,ilm->jklm"
    assert table.rows[0].bytes == 8 * 15**4
    assert sum(row.share for row in table.rows) == pytest.approx(1)
    L, D = arguments(15)
    _, most = measured(lambda: screened(L, D))
    assert most <= table.peak_bytes + 4096
    assert table.peak_bytes <= 1.05 * most + 8 * 15**4  # the copy that a product in another layout takes
    text = str(table)
    assert "step" in text.splitlines()[0]
    assert text.splitlines()[-1].startswith("total 557,325 flops, peak ")
    assert "k = 8, n = 15" in text


def test_messages_about_costs() -> None:
    with pytest.raises(cd.ArgumentError, match="screened has no size 'm'"):
        screened.cost(m=3)
    with pytest.raises(cd.ArgumentError, match="is no size for n"):
        screened.cost(n=2.5)


@cd.program
def squares(x: cd.Space("n")):
    return x @ x


@pytest.mark.parametrize("f", [squares, cd.grad(squares, simplify=False)], ids=["value", "gradient"])
def test_a_view_that_repeats_a_number_counts_as_it_is_written_out(f: cd.Program) -> None:
    """What BLAS copies is known before it runs: neither is a limit broken, nor computed for hours."""
    endless = np.broadcast_to(np.float64(1.5), (10**12,))
    with pytest.raises(cd.MemoryLimitError, match=r"at n = 1000000000000 the program needs .*broadcast_to"):
        f(endless)
    with pytest.raises(cd.MemoryLimitError, match="broadcast_to"):
        f.compile(memory_limit="1GB")(endless)
    large = np.broadcast_to(np.float64(1.5), (10**5,))
    np.testing.assert_allclose(f(large), f(large.copy()))
    with pytest.raises(cd.MemoryLimitError, match="broadcast_to") as caught:
        f.compile(memory_limit=10**5)(large)
    least = int(caught.value.hint.rpartition("=")[2])
    assert least >= large.nbytes
    limited = f.compile(memory_limit=least)
    limited(large.copy())  # planned alike, but for the copy
    found, most = measured(lambda: limited(large))
    assert most <= least + 4096
    np.testing.assert_allclose(found, f(large))
