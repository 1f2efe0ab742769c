"""Reading at indices that an integer tensor holds, and adding up there: `x[idx[i]]`."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, back, converted, double_precision, on, quiet

import combdiff as cd
from combdiff.errors import IndexingError
from combdiff.ir.interpreter import evaluate
from combdiff.polyhedra import Lookup
from combdiff.testing.arrays import named_sizes

RNG = np.random.default_rng(0)
Rows = cd.Space("V", "D")


@cd.program
def embedding(x: Rows, idx: cd.Space("B", dtype=int), w: cd.Space("B", "D")):
    return cd.sum(lambda b, d: cd.sin(x[idx[b], d]) * w[b, d])


@cd.program
def picked(x: Rows, idx: cd.Space("V", dtype=int)):
    return cd.sum(lambda i: x[i, idx[i]] ** 3)


@cd.program
def by_pairs(x: cd.Space("V"), idx: cd.Space("B", "C", dtype=int), w: cd.Space("B", "C")):
    return cd.sum(lambda b, c: x[idx[b, c]] ** 2 * w[b, c])


@cd.program
def symmetric(x: cd.Space(cd.Symmetric(2)), idx: cd.Space("B", dtype=int)):
    return cd.sum(lambda b: x[idx[b]] ** 2 * x[-1])


@cd.program
def cyclic(x: cd.Space(cd.Cyclic(4)), idx: cd.Space("B", dtype=int)):
    return cd.sum(lambda b: x[idx[b]] ** 2)


@cd.program
def twice(x: cd.Space("V"), idx: cd.Space("B", dtype=int), jdx: cd.Space("B", dtype=int), w: cd.Space("V")):
    return cd.sum(lambda b, v: x[idx[b]] * x[jdx[b]] * w[v] * x[v])


@cd.program
def computed(x: cd.Space("V"), idx: cd.Space("B", dtype=int), jdx: cd.Space("B", dtype=int)):
    return cd.sum(lambda b: x[idx[b] + 1] ** 2 * x[2 * jdx[b] - idx[b]])


@cd.program
def nested(x: cd.Space("V"), idx: cd.Space("B", dtype=int), jdx: cd.Space("V", dtype=int)):
    return cd.sum(lambda b: cd.sin(x[jdx[idx[b]]]) ** 2)


@cd.program
def turned(x: cd.Space(cd.Cyclic("V")), idx: cd.Space("B", dtype=int), w: cd.Space("B")):
    return cd.sum(lambda b: x[-idx[b] - 1] ** 2 * w[b])


@cd.program
def shifted(x: cd.Space("V"), idx: cd.Space(5, dtype=int), w: cd.Space(4)):
    return cd.sum(lambda b: x[idx[b + 1]] ** 3 * w[b])


@cd.program
def at_pairs(x: cd.Space("V", "D"), idx: cd.Space("B", dtype=int), jdx: cd.Space("B", dtype=int)):
    return cd.sum(lambda b: x[idx[b], jdx[b]] ** 3)


IDX = np.array([0, 2, 2, 4])
CASES: list[tuple[Any, dict[str, Any]]] = [
    (computed, {"x": RNG.standard_normal(6), "idx": IDX, "jdx": np.array([1, 2, 1, 4])}),
    (nested, {"x": RNG.standard_normal(5), "idx": IDX, "jdx": np.array([3, 1, 1, 0, 2])}),
    (turned, {"x": RNG.standard_normal(5), "idx": IDX, "w": RNG.standard_normal(4)}),
    (shifted, {"x": RNG.standard_normal(5), "idx": np.array([4, 0, 2, 2, 3]), "w": RNG.standard_normal(4)}),
    (at_pairs, {"x": RNG.standard_normal((5, 3)), "idx": IDX, "jdx": np.array([1, 2, 2, 0])}),
    (embedding, {"x": RNG.standard_normal((5, 3)), "idx": IDX, "w": RNG.standard_normal((4, 3))}),
    (picked, {"x": RNG.standard_normal((4, 3)), "idx": np.array([2, 0, 1, 1])}),
    (
        by_pairs,
        {"x": RNG.standard_normal(5), "idx": np.array([[0, 1], [1, 4], [3, 3]]), "w": RNG.standard_normal((3, 2))},
    ),
    (symmetric, {"x": RNG.standard_normal(5), "idx": np.array([-2, 2, -2, 0])}),
    (cyclic, {"x": RNG.standard_normal(4), "idx": np.array([-1, 3, 5, 0])}),
    (twice, {"x": RNG.standard_normal(5), "idx": IDX, "jdx": IDX[::-1], "w": RNG.standard_normal(5)}),
    (embedding, {"x": RNG.standard_normal((5, 3)), "idx": np.zeros(0, int), "w": np.zeros((0, 3))}),
]


def arrays_of(f: Any, n: int) -> tuple[list[Any], dict[str, int]]:
    """The nth arrays for a program."""
    arrays = [arrays for program, arrays in CASES if program is f][n]
    return list(arrays.values()), named_sizes(f.parameters, arrays)


def reference(f: Any, arrays: list[Any], sizes: dict[str, int]) -> Any:
    return evaluate(f.term.body, dict(zip(f.term.parameters, arrays, strict=True)), sizes)


def test_source_reads_and_adds_up_without_an_array_of_zeros_and_ones() -> None:
    body = cd.grad(embedding).source().split("def grad_")[1].split("\n\n\n")[0]
    assert "x[idx]" in body
    assert "_scatter(" in body
    assert "arange" not in body


def test_jacobians_and_complex_elements() -> None:
    @cd.program
    def f(x: cd.Space("V", dtype=complex), idx: cd.Space("B", dtype=int)):
        return cd.tensor(lambda b: x[idx[b]] ** 2)

    x = RNG.standard_normal(5) + 1j * RNG.standard_normal(5)
    by_z, by_conjugate = cd.jacobian(f)(x, IDX)
    expected = np.zeros((4, 5), complex)
    expected[np.arange(4), IDX] = 2 * x[IDX]
    np.testing.assert_allclose(by_z, expected)
    np.testing.assert_allclose(by_conjugate, 0)
    k = RNG.standard_normal(4) + 1j * RNG.standard_normal(4)
    pulled = np.zeros(5, complex)
    np.add.at(pulled, IDX, 2 * x[IDX].conj() * k)
    np.testing.assert_allclose(cd.pullback(f)(x, IDX, k), pulled)


def test_an_index_out_of_its_axis_is_refused_before_anything_is_computed() -> None:
    x, w = np.ones((5, 3)), np.ones((2, 3))
    for wrong, value in ((np.array([0, 5]), 5), (np.array([0, -1]), -1)):
        for f in (embedding, cd.grad(embedding), cd.grad(embedding, simplify=False)):
            with pytest.raises(IndexingError) as caught:
                f(x, wrong, w)
            message = f"axis 0 of x is read at idx[1] = {value}, but it has the indices 0 … 4 for V = 5"
            assert caught.value.message == message
    with pytest.raises(IndexingError, match=r"idx\[0\] = 3, but it has the indices -2 … 2"):
        symmetric(np.ones(5), np.array([3]))


def test_only_elements_of_integer_parameters_stand_for_indices() -> None:
    with pytest.raises(IndexingError, match="traced number"):

        @cd.program
        def f(x: cd.Space("V"), a: cd.Space("B")):
            return cd.sum(lambda b: x[a[b]])


def test_a_computed_index_out_of_range_is_refused_at_the_call() -> None:
    x = np.arange(3.0)
    with pytest.raises(IndexingError) as error:
        cd.grad(nested, wrt="x")(x, np.array([0, 2]), np.array([0, 1, 3]))
    assert "axis 0 of x is read at jdx[idx[b]] = 3 (for b = 1), but it has the indices 0 … 2 for V = 3" in str(
        error.value
    )
    with pytest.raises(IndexingError, match=r"axis 0 of jdx is read at idx\[1\] = 7"):
        nested(x, np.array([0, 7]), np.array([0, 1, 2]))
    with pytest.raises(IndexingError, match=r"idx\[b\] \+ 1 = 3 \(for b = 1\)"):
        computed(x, np.array([0, 2]), np.array([0, 1]))


def test_places_in_a_sorted_row_are_indices_of_it() -> None:
    """No call looks whether they are, which would sort once more."""

    @cd.program
    def f(x: cd.Space("V"), A: Rows):
        ordered = x[np.argsort(x)] @ np.sort(A, axis=0)
        return ordered.sum() + x[np.argmax(x)] + cd.sum(lambda i: np.take_along_axis(A, np.argsort(A), axis=1)[i, 0])

    @cd.program
    def other(x: cd.Space("V"), y: cd.Space("B")):
        return x[np.argsort(y)].sum()

    assert not any(isinstance(access, Lookup) for access in f.accesses)
    assert any(isinstance(access, Lookup) for access in other.accesses)
    with pytest.raises(IndexingError):
        other(RNG.normal(size=3), RNG.normal(size=4))
    x, A = RNG.normal(size=4), RNG.normal(size=(4, 3))
    assert f(x, A) == pytest.approx((np.sort(x) @ np.sort(A, axis=0)).sum() + x.max() + A.min(axis=1).sum())
    cd.testing.check_grad(f, "x", x=x, A=A)
    cd.testing.check_grad(f, "A", x=x, A=A)


def test_derivatives_inside_other_programs_still_check_their_indices() -> None:
    @cd.program
    def linear(x: cd.Space("V"), idx: cd.Space("B", dtype=int), w: cd.Space("B")):
        return cd.sum(lambda b: x[idx[b]] * w[b])

    @cd.program
    def outer(x: cd.Space("V"), idx: cd.Space("B", dtype=int), w: cd.Space("B")):
        return cd.tensor(lambda v: 2 * cd.grad(linear)(x, idx, w)[v])

    x, w = np.arange(3.0), np.ones(2)
    np.testing.assert_allclose(outer(x, np.array([2, 2]), w), [0, 0, 4])
    with pytest.raises(IndexingError, match=r"idx\[1\] = 7, but there are the indices 0 … 2 for V = 3"):
        outer(x, np.array([0, 7]), w)


def test_a_mask_is_refused_for_indices() -> None:
    x, w, mask = np.ones((5, 3)), np.ones((4, 3)), np.array([True, False, True, True])
    for f in (embedding, cd.grad(embedding), cd.hvp(embedding)):
        with pytest.raises(cd.ArgumentError) as caught:
            f(x, mask, w, *([x] if len(f.parameters) == 4 else []))
        assert caught.value.message == (
            "idx holds indices of axis 0 of x, but what was given for it has dtype bool: whole numbers are expected, "
            "not a mask"
        )
        assert "np.flatnonzero(idx)" in caught.value.hint
        assert "idx.astype(int)" in caught.value.hint
    with pytest.raises(cd.ArgumentError, match="not a mask"):
        embedding(x, mask.tolist(), w)
    assert embedding(x, [], np.ones((0, 3))) == 0


@pytest.mark.needs("torch")
def test_a_mask_of_torch_is_no_list_of_indices() -> None:
    import torch

    with pytest.raises(cd.ArgumentError, match="not a mask"):
        embedding(torch.ones(5, 3), torch.tensor([True]), torch.ones(1, 3))


def test_truth_values_are_numbers_in_integers_that_are_computed() -> None:
    @cd.program
    def f(x: cd.Space("V"), a: cd.Space("B", dtype=int), late: cd.Space("B", dtype=int)):
        return cd.sum(lambda i: x[a[i] + late[i]] * late[i])

    x, late = np.arange(5.0), np.array([True, False, True])
    assert f(x, np.array([0, 1, 3]), late) == 1 + 4


@cd.program
def language_model(E: cd.Space("V", "d"), W: cd.Space("d", "V"), ids: cd.Space("T", dtype=int)):
    """The cross-entropy of a softmax over words, where each word is to foretell itself."""
    scores = cd.tensor(lambda t, v: cd.sum(lambda d: E[ids[t], d] * W[d, v]))
    return cd.sum(lambda t: cd.log(cd.sum(lambda v: cd.exp(scores[t, v]))) - scores[t, ids[t]])


@pytest.mark.sample(1)
@pytest.mark.parametrize("wrt", ["E", "W"])
def test_softmax_of_looked_up_rows(wrt: str) -> None:
    """A δ of looked-up indices beside exponentials that are kept from overflow."""
    rng = np.random.default_rng(0)
    arrays = {"E": rng.normal(size=(5, 3)), "W": rng.normal(size=(3, 5)), "ids": np.array([0, 2, 2, 4])}
    cd.testing.check_grad(language_model, wrt, **arrays)
    gradient = cd.grad(language_model, wrt)
    np.testing.assert_allclose(gradient(**arrays), cd.grad(language_model, wrt, simplify=False)(**arrays), atol=1e-12)
    large = {**arrays, "W": 1e4 * arrays["W"]}
    assert np.isfinite(gradient(**large)).all()


@cd.program
def packed(low: cd.Space("k", "p"), z: cd.Space("k", "d", "n"), place: cd.Space("d", "d", dtype=int)):
    return cd.tensor(
        lambda k, i, n: cd.sum(lambda j: cd.where(j < i, low[k, place[i, j]], 0) * cd.exp(z[k, j, n])), n="n"
    )


def test_a_packed_triangle_is_read_as_it_stands_in_products() -> None:
    """What is read at place[i, j] has i and j, so that it is kept where j < i, and no other factor is repeated."""
    rng, d = np.random.default_rng(0), 5
    place = np.full((d, d), -1)
    place[np.tril_indices(d, -1)] = np.arange(d * (d - 1) // 2)
    low, z = rng.normal(size=(3, d * (d - 1) // 2)), rng.normal(size=(3, d, 7))
    place[place < 0] = 0
    unpacked = np.tril(low[:, place], -1)
    np.testing.assert_allclose(packed(low, z, place), unpacked @ np.exp(z), atol=1e-12)
    assert "broadcast_to" not in packed.source()
    assert packed.cost(k=9, p=45, d=10, n=100).flops <= 1.3 * 9 * 10 * 10 * 100 + 9 * 10 * 100


def test_an_index_that_is_looked_up_at_a_looked_up_index_of_the_same_sum() -> None:
    """δ(idx[k], j) δ(at, k) y[j, k] is y[idx[at], at], with j and k in one Σ."""

    @cd.program
    def f(y: cd.Space("n", "n"), idx: cd.Space("n", dtype=int), at: cd.Space(dtype=int)):
        return cd.sum(lambda j, k: cd.delta(idx[k], j) * cd.delta(at, k) * y[j, k] * (y[j, k] + y[k, k]))

    @cd.program
    def rows(y: cd.Space("n", "n"), idx: cd.Space("n", dtype=int), at: cd.Space("m", dtype=int)):
        return cd.sum(lambda j, k, a: cd.delta(idx[k], j) * cd.delta(at[a], k) * y[j, k] ** 2)

    y, idx = RNG.standard_normal((4, 4)), np.array([2, 0, 3, 3])
    assert cd.testing.check_routes(f, y=y, idx=idx, at=1) < 2e-5
    assert cd.testing.check_routes(rows, y=y, idx=idx, at=np.array([1, 1, 3])) < 2e-5


def test_an_index_that_is_found_may_be_a_half() -> None:
    """Every second element of what is repeated, read at indices: δ(d/2, idx[i])."""
    first, second = np.array([0, 2, 1]), np.array([2, 2, 1])

    def chosen(x, y):
        twice = np.repeat(y, 2)[::2]
        return (np.where(y > 0, twice[first], twice[second]) * x).sum()

    chosen.__annotations__ = {"x": cd.Space(3), "y": cd.Space(3)}
    program, arrays = cd.program(chosen), {"x": np.array([0.4, 1.3, -0.2]), "y": np.array([1.0, -0.4, 0.7])}
    assert program(**arrays) == pytest.approx(chosen(**arrays))
    cd.testing.check_grad(program, ("x", "y"), **arrays)


@pytest.mark.parametrize("simplify", [False, True])
def test_an_index_masked_where_it_is_looked_up_twice(simplify: bool) -> None:
    """What is read leaves the index of another read to itself; np.insert and np.delete are such reads."""

    @cd.program
    def inserted(B: cd.Space(4, 3), y: cd.Space(4)) -> Any:  # type: ignore[valid-type]
        return np.sum(np.delete(np.insert(B, 0, y, axis=1), 2, axis=1)[:, np.array([0, 1, 0])] * B)

    B, y = RNG.normal(size=(4, 3)), RNG.normal(size=4)
    found = cd.grad(inserted, "y", simplify=simplify)(B, y)
    np.testing.assert_allclose(found, B[:, 0] + B[:, 2])


# --- a row of indices for each value of an index that stays ----------------------------------------------------------

SIZES = {"n": 2, "m": 3, "k": 2}
TENSORS = {"A": "nm", "B": "mn", "C": "nmk", "x": "m", "y": "n", "I": "nm", "J": "nk", "K": "mn", "L": "n"}
POINTING = {"I": "m", "J": "m", "K": "n", "L": "m"}
READ = [
    *("A[i,I[i,j]]", "C[i,I[i,j],l]", "x[I[i,j]]", "x[J[i,l]]", "A[i,J[i,l]]", "A[K[j,i],I[i,j]]", "A[i,L[i]]"),
    *("cd.sin(A[K[j,i],j])", "C[i,I[i,I[i,j]],l]", "C[K[j,i],J[i,l],l]", "y[K[J[i,l],i]] * x[j]"),
]
BESIDE = [
    *("1", "y[i]", "x[j]", "A[i,j]", "B[j,i]", "C[i,j,l]", "x[I[i,j]]", "A[i,J[i,l]]"),
    *("cd.where(j <= i, 1, 0)", "cd.where(I[i,j] == j, 2, 1)"),
]


def along_rows(seed: int) -> tuple[cd.Program, dict[str, Any]]:
    """A random product of reads, summed over some of the indices i, j and l, and arrays."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    body = " * ".join([draw.choice(READ), *(draw.choice(READ + 2 * BESIDE) for _ in range(draw.randint(1, 2)))])
    ranges = {"i": "n", "j": "m", "l": "k"}
    summed = [index for index in ranges if draw.random() < 0.6] or ["j"]
    kept = [index for index in ranges if index not in summed]
    text = body
    for kind, names in (("sum", summed), ("tensor", kept)):
        given = ", ".join(f"{name}='{ranges[name]}'" for name in names)
        text = f"cd.{kind}(lambda {', '.join(names)}: {text}, {given})" if names else text
    traced = eval(f"lambda {', '.join(TENSORS)}: {text}", {"cd": cd})
    kinds = {name: int if name in POINTING else float for name in TENSORS}
    traced.__name__, traced.__annotations__ = text, {n: cd.Space(*a, dtype=kinds[n]) for n, a in TENSORS.items()}
    arrays: dict[str, Any] = {}
    for name, axes in TENSORS.items():
        shape = [SIZES[axis] for axis in axes]
        arrays[name] = rng.integers(0, SIZES[POINTING[name]], shape) if name in POINTING else rng.normal(size=shape)
    return cd.program(traced), arrays


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(24))
def test_pullbacks_of_reads_along_rows(seed: int) -> None:
    f, arrays = along_rows(seed)
    value, pulled = f(**arrays), {name: cd.pullback(f, name, simplify=seed % 2 > 0) for name in "ACx"}
    given = [*arrays.values(), RNG.standard_normal(np.shape(value))]
    np.testing.assert_allclose(value, reference(f, given[:-1], SIZES), rtol=1e-9, atol=1e-9)
    for pullback in pulled.values():
        expected = reference(pullback, given, SIZES)
        np.testing.assert_allclose(pullback(*given), expected, rtol=1e-9, atol=1e-9, err_msg=f.name)
    directions = {name: RNG.standard_normal(arrays[name].shape) for name in pulled}
    along = sum(np.sum(pullback(*given) * directions[name]) for name, pullback in pulled.items())
    ends = [f(**arrays | {n: arrays[n] + h * d for n, d in directions.items()}) for h in (1e-5, -1e-5)]
    slope = np.sum((ends[0] - ends[1]) * given[-1]) / 2e-5
    assert along == pytest.approx(slope, rel=1e-6, abs=1e-6), f.name


@pytest.mark.thorough
@pytest.mark.parametrize("backend", BACKENDS)
def test_reads_along_rows_on_other_libraries(backend: str) -> None:
    f, arrays = along_rows(0)
    pulled = cd.pullback(f, "A")
    given = [*arrays.values(), RNG.standard_normal(np.shape(f(**arrays)))]
    with double_precision(), quiet(backend):
        found = back(on(backend, pulled)(*converted(backend, given)))
    np.testing.assert_allclose(found, pulled(*given), rtol=1e-9, atol=1e-9)


def test_a_row_of_indices_for_each_index_is_added_up_without_an_array_of_zeros_and_ones() -> None:
    @cd.program
    def sort(A: cd.Space("n", "m")):
        return np.sort(A, axis=1)

    pulled, (n, m) = cd.pullback(sort), (30, 40)
    A, k = RNG.standard_normal((n, m)), RNG.standard_normal((n, m))
    expected = np.zeros((n, m))
    np.put_along_axis(expected, np.argsort(A, axis=1), k, 1)
    np.testing.assert_array_equal(pulled(A, k), expected)
    assert pulled.cost(n=n, m=m).peak_bytes <= 4 * 8 * n * m


def test_weights_beside_exponentials_are_looked_up() -> None:
    """exp(y[w]) x[k,w] at k = place is 0 where x[place,w] is; what is shifted by the largest exponent knows of it."""

    @cd.program
    def f(x: cd.Space(3, 3), y: cd.Space(3), place: cd.Space(dtype=int)):  # type: ignore[valid-type]
        t = cd.tensor(lambda s, i: np.exp(y[s]) * x[i, s])
        u = cd.tensor(lambda w: 3 + t[w, place])
        return cd.sum(lambda w, v: cd.where(u[w] / (2 + u[w] ** 2) < 0.11, t[w, v], 2.5))

    x, y = np.arange(9.0).reshape(3, 3), np.arange(3) / 3
    for place in range(3):
        t = np.exp(y)[:, None] * x.T
        u = 3 + t[:, place]
        expected = np.where((u / (2 + u**2) < 0.11)[:, None], t, 2.5).sum()
        assert f(x, y, place) == pytest.approx(expected, rel=1e-12)


def test_a_definition_reads_less_than_it_has_indices_for() -> None:
    """t[1] reads nothing of y: 1 is an index of t, and not of y, whichever names the integers have that are given."""
    spaces = {"y": cd.Space(1), "j": cd.Space("n", dtype=int)}
    t = "t[k<2] = [k ≤ 0] y[k] + 1/2 [k ≥ 1]"
    looked_up = cd.read(f"(y, j) ↦\n  {t}\n  d ↦ t[j[d]]", spaces)
    np.testing.assert_array_equal(looked_up([3.0], [0, 1, 1]), [3, 0.5, 0.5])
    with pytest.raises(IndexingError, match=r"j\[1\] = 2, but there are the indices 0 … 1\n  hint: give j indices"):
        looked_up([3.0], [0, 2])
    divided = cd.read(f"(y, x) ↦\n  {t}\n  d ↦ x[d] t[⌊d/3⌋]", {"y": cd.Space(1), "x": cd.Space("m")})
    np.testing.assert_array_equal(divided([3.0], np.ones(6)), [3, 3, 3, 0.5, 0.5, 0.5])
    message = r"floor_divide\(d, 3\) = 2 \(for d = 6\), but there are .* 0 … 1\n  hint: read it at indices from 0 to 1;"
    with pytest.raises(IndexingError, match=message):
        divided([3.0], np.ones(7))


def test_what_is_looked_up_keeps_its_range_in_prints() -> None:
    """Σ_{j<4} δ(j, idx[i]) [j ≤ 2], not Σ_{j=0}^{2}, which would hold the integers given to 0 … 2."""

    @cd.program
    def turned(x: cd.Space(4), idx: cd.Space(3, dtype=int)):
        return np.concatenate([np.cumsum(x[::-1])[1:], x[:1]])[idx]

    @cd.program
    def sorted_windows(x: cd.Space(4)):
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, 1), 3)
        return np.sort(np.maximum(windows, 0), axis=0)[1, 2]

    x, idx, direction = np.array([0.3, 0.1, -0.4, 0.2]), np.array([3, 0, 2]), RNG.normal(size=4)
    for shown, given in (
        (turned, (x, idx)),
        (cd.pushforward(turned, "x"), (x, idx, direction)),
        (cd.pullback(turned, "x"), (x, idx, direction[:3])),
        (cd.jacobian(turned, "x"), (x, idx)),
        (cd.pushforward(sorted_windows, "x"), (x, direction)),
    ):
        spaces = {parameter.name: parameter.type for parameter in shown.parameters}
        np.testing.assert_allclose(cd.read(str(shown), spaces)(*given), shown(*given), rtol=1e-12)


def test_a_derivative_with_a_guarded_read_at_a_divided_index_is_read_back() -> None:
    @cd.program
    def f(x: cd.Space(6), y: cd.Space(1), v: cd.Space(3)):
        return cd.sum(
            lambda i: np.sin(cd.sum(lambda k: 1 / (2 + x[3 * i + k] ** 2) * cd.where(i < 1, y[i], 0.5) * v[k], k=3)),
            i=2,
        )

    gradient, given = cd.grad(f, "x"), (RNG.normal(size=6), RNG.normal(size=1), RNG.normal(size=3))
    again = cd.read(str(gradient), {"x": cd.Space(6), "y": cd.Space(1), "v": cd.Space(3)})
    np.testing.assert_allclose(again(*given), gradient(*given), rtol=1e-12)
