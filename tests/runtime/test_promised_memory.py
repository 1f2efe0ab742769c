"""The memory that a plan promises is what it takes: for every function of matrices, and programs of all kinds."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_programs import hartree_fock
from measuring import BUFFER, BUFFERS, OWN, assert_keeps_to_the_least_limit, assert_takes_what_is_promised, measured
from planner import coulomb, exchange

import combdiff as cd
from combdiff.ir import MATRIX_TABLE, Lambda, Primitive, Space, Var, extent
from combdiff.planning.plan import peak
from combdiff.runtime.execution import Runner, plan
from combdiff.testing.arrays import random_arrays

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import textbook

BY_LAPACK = 3  # matrices that LAPACK works on, which tracemalloc does not see
RNG = np.random.default_rng(5)
Vector, Matrix, Wide = Space("n"), Space("n", "n"), Space("n", "m")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # products of many numbers overflow
@pytest.mark.sample(4)
@pytest.mark.parametrize("name", MATRIX_TABLE)
def test_functions_of_matrices_hold_what_is_promised(name: str) -> None:
    row = MATRIX_TABLE[name]
    kinds = (float,) if row.real_only or name.startswith("arg") else (float, complex)
    shapes = [(40, 40), (20, 40, 40), (80, 6, 6), *([] if row.square else [(150, 60)])]
    for kind, shape in ((kind, shape) for kind in kinds for shape in shapes):
        array = RNG.normal(size=shape) + (1j * RNG.normal(size=shape) if kind is complex else 0)
        if row.square:
            array = np.swapaxes(array, -1, -2).conj() @ array + np.eye(shape[-1])
        var = Var("X", Space(*shape, dtype=kind))
        program = Lambda((var,), Primitive(name, (var,)))
        promised, run = peak(plan(program, {})), Runner(program, {})
        _, most = measured(lambda run=run, array=array: run([array]))
        assert most <= promised + OWN, (shape, kind)
        unseen = (BY_LAPACK * shape[-1] * shape[-2] + BUFFER) * array.itemsize
        if name in ("expm", "sqrtm", "prod_others", "amax_ties", "cholesky", "eigvecsh", "inv"):
            assert promised <= 1.35 * most + unseen, (shape, kind)


Programs = dict[str, tuple[Callable[..., Any], dict[str, Space]]]
Square = {"A": Matrix, "x": Vector}
Circle = Space(cd.Cyclic("n"))
PROGRAMS: Programs = {
    "product": (lambda A, x: np.tanh(A @ x), {"A": Wide, "x": Space("m")}),
    "gram": (lambda A: A.T @ A, {"A": Wide}),
    "softmax": (lambda A: cd.softmax(A, axis=1), {"A": Wide}),
    "choice": (lambda A: np.where(A > 1, np.log(A), A), {"A": Wide}),
    "triangle": (lambda A, x: cd.tensor(lambda i: cd.sum(lambda j: cd.where(j <= i, A[i, j] * x[j], 0))), Square),
    "running": (lambda A: np.cumsum(A, axis=1) * A, {"A": Wide}),
    "running product": (lambda A: np.cumprod(A, axis=1), {"A": Wide}),
    "running logarithm": (lambda A: np.log(np.cumsum(np.exp(A), axis=0)), {"A": Wide}),
    "largest": (lambda A: np.max(A, axis=1), {"A": Wide}),
    "norms": (lambda A: np.linalg.norm(A, axis=1), {"A": Wide}),
    "solve": (lambda A, x: np.linalg.solve(A, x), Square),
    "gather": (lambda A, at: A[at], {"A": Wide, "at": Space("k", dtype=int)}),
    "diagonal": (lambda x: np.diag(x), {"x": Vector}),
    "circle": (
        lambda x, y: cd.tensor(lambda i: cd.sum(lambda j: x[i - j] * y[j]), i=cd.Cyclic("n")),
        {"x": Circle, "y": Circle},
    ),
    "windows of channels": (
        lambda x, w: cd.tensor(lambda b, i, o: cd.sum(lambda k, c: x[b, i + k, c] * w[k, c, o]), i=85),
        {"x": Space(30, "n", 16), "w": Space(6, 16, 12)},
    ),
    "pairs": (lambda x: cd.tensor(lambda i: cd.sum(lambda j: cd.exp(-((x[i] - x[j]) ** 2)))), {"x": Vector}),
    "slices": (lambda A: A[1:, 1:] - A[:-1, :-1], {"A": Wide}),
    "scan": (lambda A, x: cd.scan(lambda s, _: (np.tanh(A @ s), None), x, length=20)[0], Square),
    "states of matrices": (
        lambda A, B: cd.scan(lambda s, _: (np.tanh(A.T @ s), None), B, length=12)[0],
        {"A": Matrix, "B": Wide},
    ),
    "root": (lambda x: cd.root(lambda y: y**3 + y - x, x), {"x": Vector}),
    "root by SciPy": (lambda x: cd.root(lambda y: np.arctan(y) + y / 50 - x / 3, x + 6), {"x": Vector}),
    "minimum": (lambda x: cd.argmin(lambda y: cd.sum((y**2 - x) ** 2) + y @ y, x), {"x": Vector}),
}
SIZES = {"n": 90, "m": 70, "k": 160}


def program_of(body: Callable[..., Any], spaces: dict[str, Space]) -> cd.Program:
    traced = eval(f"lambda {', '.join(spaces)}: body({', '.join(spaces)})", {"body": body})
    traced.__annotations__ = spaces
    traced.__name__ = "traced"
    return cd.program(traced)


def arrays(parameters: tuple[Var, ...]) -> list[Any]:
    found = []
    for parameter in parameters:
        assert isinstance(parameter.type, Space)
        shape = [extent(axis, SIZES) for axis in parameter.type.axes]
        if parameter.type.dtype is int:
            found.append(RNG.integers(0, SIZES["m"], size=shape))
        else:
            square = len(shape) == 2 and shape[0] == shape[1]
            found.append(
                RNG.uniform(0.5, 1.5, size=shape) / (100 if square else 1) + (np.eye(shape[0]) if square else 0)
            )
    return found


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_hold_what_is_promised_and_keep_to_limits(name: str) -> None:
    body, spaces = PROGRAMS[name]
    program = program_of(body, spaces)
    values = arrays(program.term.parameters)
    for f in (program, cd.pullback(program)):
        given = values if f is program else [*values, RNG.uniform(0.5, 1.5, size=np.shape(program(*values)))]
        sizes = {size: value for size, value in SIZES.items() if any(size in str(space) for space in spaces.values())}
        promised = f.cost(**sizes).peak_bytes
        expected, most = measured(lambda f=f, given=given: f(*given))
        assert most <= promised + OWN
        with pytest.raises(cd.MemoryLimitError) as caught:
            f.compile(memory_limit=1)(*given)
        least = int(caught.value.hint.rpartition("=")[2])
        assert least <= promised
        for limit in (least, (least + promised) // 2):
            limited = f.compile(memory_limit=limit)
            found, most = measured(lambda limited=limited, given=given: limited(*given))
            assert most <= limit + OWN
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_states_of_an_iteration_are_its_result_in_the_end() -> None:
    """The state before a step and what the step makes are there at once; the last state is not one more."""
    body, spaces = PROGRAMS["states of matrices"]
    A, B = RNG.uniform(size=(300, 300)), RNG.uniform(size=(300, 200))
    program = program_of(body, spaces)
    promised = program.cost(n=300, m=200).peak_bytes
    _, most = measured(lambda: program(A, B))
    assert 2 * B.nbytes == promised <= most <= promised + OWN


@cd.program
def rank_one(T: cd.Space("n", "m", "p"), a: cd.Space("n"), b: cd.Space("m"), c: cd.Space("p")):
    return cd.sum(lambda i, j, k: (T[i, j, k] - a[i] * b[j] * c[k]) ** 2) / 2


@cd.program
def smoothed(h: cd.Space("m"), x: cd.Space(cd.Cyclic("n"))):
    return cd.sum(lambda i: cd.sum(lambda k: h[k] * x[i - k]) ** 2, i=cd.Cyclic("n")) / 2


@pytest.mark.parametrize(("f", "wrt"), [(rank_one, "a"), (smoothed, "x")])
def test_arrays_in_another_order_of_axes_and_views_around_a_cycle_take_what_is_promised(
    f: cd.Program, wrt: str
) -> None:
    """a[i] b[j] c[k] is laid out as NumPy finds its factors; x[d + k - i] is a view of x laid out around itself."""
    gradient, sizes = cd.grad(f, wrt), {"n": 87, "m": 80, "p": 94}
    given = [RNG.normal(size=[extent(axis, sizes) for axis in p.type.axes]) for p in f.term.parameters]
    named = {name: size for name, size in sizes.items() if f is rank_one or name != "p"}
    promised = gradient.cost(**named).peak_bytes
    _, most = measured(lambda: gradient(*given))
    assert most <= promised + OWN
    assert promised <= 1.1 * most + OWN


def convolution(
    rows: int,
    n: int,
    inner: int,
    width: int,
    outer: int,
    stride: int,
    start: int,
    kinds: tuple[type, type],
    cyclic: bool,
) -> cd.Program:
    """Σ_{k,c} x[b, stride·i + k + start, c] w[k, c, o], with zeros outside of x where it does not go around."""
    circle = cd.Cyclic(n) if cyclic else n

    @cd.program
    def convolved(x: cd.Space(rows, circle, inner, dtype=kinds[0]), w: cd.Space(width, inner, outer, dtype=kinds[1])):
        def read(b: Any, place: Any, c: Any) -> Any:
            return x[b, place, c] if cyclic else cd.where((place >= 0) & (place < n), x[b, place, c], 0)

        count = max(1, (n - width) // stride + 1)
        return cd.tensor(lambda b, i, o: cd.sum(lambda k, c: read(b, stride * i + k + start, c) * w[k, c, o]), i=count)

    return convolved


def windows_measured(f: cd.Program, parts: tuple[str, ...], seed: int) -> list[tuple[int, int]]:
    """What is promised and taken by a convolution and its pullbacks."""
    rng = np.random.default_rng(seed)

    def drawn(shape: tuple[int, ...], kind: type) -> Any:
        return rng.normal(size=shape) + (1j * rng.normal(size=shape) if kind is complex else 0)

    given = [drawn(tuple(extent(axis, {}) for axis in p.type.axes), p.type.dtype) for p in f.term.parameters]
    result = f(*given)
    k = drawn(result.shape, complex if result.dtype.kind == "c" else float)
    calls = {"": (f, given), "x": (cd.pullback(f, "x"), [*given, k]), "w": (cd.pullback(f, "w"), [*given, k])}
    return [(g.cost().peak_bytes, measured(lambda g=g, a=a: g(*a))[1]) for g, a in (calls[part] for part in parts)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(40))
def test_windows_take_no_more_than_is_promised(seed: int) -> None:
    """By each of the ways: loops over lags, blocks of rows together and apart, roles exchanged, phases, NumPy's own."""
    rng = np.random.default_rng(seed)
    cyclic = bool(rng.random() < 0.2)
    rows, n, inner = rng.choice([1, 1, 4, 30]), rng.choice([7, 20, 90, 400, 2000]), rng.choice([1, 1, 3, 16])
    width, outer = min(n + 3, rng.choice([1, 2, 3, 6, 12, 40, 150])), rng.choice([1, 1, 5, 12, 32])
    stride, start = rng.choice([1, 1, 1, 2, 3]), rng.choice([0, 0, -2])
    kinds = [(float, float), (float, float), (complex, float), (float, complex), (complex, complex)][rng.integers(5)]
    parts = ("", "w") if cyclic else ("", "x", "w")  # nothing is eliminated of the other one's δ on a cycle
    f = convolution(*map(int, (rows, n, inner, width, outer, stride, start)), kinds, cyclic)
    for promised, most in windows_measured(f, parts, seed):
        assert most <= promised + OWN


@pytest.mark.parametrize(("rows", "n", "inner", "width", "outer"), [(30, 700, 16, 6, 12), (4, 2000, 3, 6, 32)])
def test_windows_of_channels_take_all_that_is_promised(rows: int, n: int, inner: int, width: int, outer: int) -> None:
    f = convolution(rows, n, inner, width, outer, 1, 0, (float, float), False)
    for promised, most in windows_measured(f, ("", "x", "w"), 0):
        assert promised <= 1.2 * most + OWN


@pytest.mark.parametrize("way", ["real for complex", "lists"])
def test_copies_of_arguments_count(way: str) -> None:
    """Arrays are converted to the element types that are taken."""
    kind = complex if way == "real for complex" else float
    a, x = RNG.normal(size=(300, 300)), RNG.normal(size=300)
    a = a.tolist() if way == "lists" else a

    @cd.program
    def form(A: cd.Space("n", "n", dtype=kind), x: cd.Space("n", dtype=kind)):
        return cd.real(np.conj(x) @ (A @ x))

    copies = 300 * 300 * np.dtype(kind).itemsize
    _, most = measured(lambda: form(a, x))
    assert copies < most
    with pytest.raises(cd.MemoryLimitError, match="for copies of arguments"):
        form.compile(memory_limit=most - copies // 2)(a, x)
    form.compile(memory_limit=2 * most)(a, x)


def test_a_view_in_another_element_type_is_one_copy() -> None:
    view = np.broadcast_to(RNG.normal(size=300), (300, 300))

    @cd.program
    def form(A: cd.Space("n", "n", dtype=complex), x: cd.Space("n", dtype=complex)):
        return cd.real(np.conj(x) @ (A @ x))

    x = view[0].astype(complex)
    _, most = measured(lambda: form(view, x))
    with pytest.raises(cd.MemoryLimitError) as caught:
        form.compile(memory_limit=1)(view, x)
    assert most <= int(caught.value.hint.rpartition("=")[2]) + OWN <= 1.1 * most + OWN


def test_the_least_limit_is_no_matter_of_the_limit_asked_for() -> None:
    @cd.program
    def factor(A: Matrix):
        return np.linalg.cholesky(A @ A.T)

    pulled = cd.pullback(factor)
    A, k = np.eye(40) + RNG.uniform(size=(40, 40)) / 100, np.ones((40, 40))
    hints = set()
    for limit in (1, 10**4):
        with pytest.raises(cd.MemoryLimitError) as caught:
            pulled.compile(memory_limit=limit)(A, k)
        hints.add(caught.value.hint)
    assert len(hints) == 1


Plane = Space("n", "m")
LARGE: Programs = {
    "in place": (lambda A: np.sin(A.T) * np.exp(A.T), {"A": Plane}),
    "two products": (lambda A, B: A.T @ B - B.T @ np.sin(A), {"A": Plane, "B": Plane}),
    "sum of three": (lambda A, x: A * 3 - x[:, None] + A.imag, {"A": Space("n", "m", dtype=complex), "x": Vector}),
    "overlapping": (lambda A: (A @ A.T) + (A @ A.T).T, {"A": Plane}),
    "another order": (lambda A: np.sin(A.T) * A, {"A": Matrix}),
    "part": (lambda A: 3 * A[1:, :-2], {"A": Plane}),
    "around": (lambda x: cd.tensor(lambda i: (x[i + 1] - x[i - 2]) * x[i - 1] - x[i]), {"x": Circle}),
    "kept where": (lambda A: np.where(A > 1, A, 0), {"A": Plane}),
    "either": (lambda A, B: np.where(A > B, A * B, np.sin(B)), {"A": Plane, "B": Plane}),
    "largest'": (lambda A: np.max(A, axis=1), {"A": Plane}),
    "running": (lambda A: np.cumsum(A, axis=1), {"A": Plane}),
    "products'": (lambda A: np.prod(A, axis=1), {"A": Plane}),
    "looked up": (lambda A, at: A[at], {"A": Plane, "at": Space("k", dtype=int)}),
    "looked up'": (lambda A, at: A[at], {"A": Plane, "at": Space("k", dtype=int)}),
    "sorted'": (lambda A: np.sort(A, axis=1), {"A": Plane}),
    "lower triangle": (lambda A: np.tril(A), {"A": Matrix}),
    "weighted gram": (lambda A, x: A.T @ ((x**2)[:, None] * A), {"A": Plane, "x": Vector}),
    "parts of numbers": (lambda A: np.real(A) * np.imag(A), {"A": Space("n", "m", dtype=complex)}),
    "scan'": (lambda A, x: cd.scan(lambda s, _: (np.tanh(A @ s), None), x, length=100)[0], {"A": Matrix, "x": Vector}),
    "each step'": (
        lambda A, x: cd.scan(lambda s, _: (np.tanh(A @ s), s @ A), x, length=60)[1],
        {"A": Matrix, "x": Vector},
    ),
    "with a diagonal": (lambda A, x: A + np.diag(x), {"A": Matrix, "x": Vector}),
}


def large(name: str) -> tuple[cd.Program, dict[str, int], list[Any]]:
    """A program, the sizes of its arrays, and arguments."""
    body, spaces = LARGE[name]
    program = program_of(body, spaces)
    sizes = {"n": 2 * 10**6 if name == "around" else 500, "m": 520, "k": 300}
    sizes = {size: many for size, many in sizes.items() if any(f"'{size}'" in str(space) for space in spaces.values())}
    drawn = random_arrays(program.term.parameters, RNG, sizes)
    given = [RNG.integers(0, 500, size=300) if array.dtype.kind == "i" else array for array in drawn.values()]
    given = [array / 500 if array.shape == (500, 500) else array for array in given]  # states stay small
    if name.endswith("'"):
        given.append(RNG.uniform(0.5, 1.5, size=np.shape(program(*given))))
        program = cd.pullback(program)
    return program, sizes, given


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", LARGE)
def test_large_arrays_take_what_is_promised_and_hardly_less(name: str) -> None:
    """Also the smallest limit, which is never above what is taken without one."""
    program, sizes, given = large(name)
    promised = program.cost(**sizes).peak_bytes
    expected, most = measured(lambda: program(*given))
    assert most <= promised + OWN <= 1.1 * most + OWN
    with pytest.raises(cd.MemoryLimitError) as caught:
        program.compile(memory_limit=1)(*given)
    least = int(caught.value.hint.rpartition("=")[2])
    assert least <= promised
    limited = program.compile(memory_limit=least)
    found, most = measured(lambda: limited(*given))
    assert most <= least + OWN <= 1.1 * most + OWN
    np.testing.assert_allclose(found, expected)


SINGLE = {"f": np.float32, "c": np.complex64}
NARROW = {"all": slice(None), "the first": slice(0, None, 2), "the second": slice(1, None, 2)}


@pytest.mark.thorough
@pytest.mark.parametrize("way", NARROW)
@pytest.mark.parametrize("name", LARGE)
def test_the_least_limit_is_that_of_the_element_types_of_arguments(name: str, way: str) -> None:
    """In single precision, too, and where that stands beside double: products then copy an operand."""
    program, _, given = large(name)
    for n in [n for n, array in enumerate(given) if array.dtype.kind in SINGLE][NARROW[way]]:
        given[n] = given[n].astype(SINGLE[given[n].dtype.kind])
    with pytest.raises(cd.MemoryLimitError) as caught:
        program.compile(memory_limit=1)(*given)
    least = int(caught.value.hint.rpartition("=")[2])
    limited = program.compile(memory_limit=least)
    found, most = measured(lambda: limited(*given))
    assert most <= least + OWN <= 1.1 * most + BUFFERS
    np.testing.assert_allclose(found, program(*given), rtol=1e-3, atol=1e-3)


# --- programs of books and examples ---------------------------------------------------------------------------------

SHARED = {"hartree_fock": hartree_fock, "coulomb": coulomb, "exchange": exchange}
BOOKS = {entry.title: entry for entry in textbook.entries()[::30]}


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*SHARED, *(f"{name}'" for name in SHARED), *BOOKS])
def test_books_and_examples_take_what_is_promised_and_hardly_less(name: str) -> None:
    """Numbers are so large that norms are scaled, which takes a copy."""
    if name in BOOKS:
        program = BOOKS[name].derivative
    else:
        program = SHARED[name] if name in SHARED else cd.pullback(SHARED[name.removesuffix("'")])
    assert_takes_what_is_promised(program, 1e160)
    assert_keeps_to_the_least_limit(program, 1e160)


TRANSFORMS = {
    "rows": lambda z: np.fft.fft(z),
    "columns": lambda z: np.fft.fft(z, axis=0),
    "both": lambda z: np.fft.fft2(z),
    "padded": lambda z: np.fft.fft(z, 2 * z.shape[1]),
    "filtered": lambda z: np.fft.ifft2(np.fft.fft2(z) * np.tanh(z.real)).real,
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_fourier_transforms_take_what_is_promised(name: str, kind: type) -> None:
    program = program_of(TRANSFORMS[name], {"z": Space("n", "m", dtype=kind)})
    for each in (program, cd.pullback(program)):
        assert_takes_what_is_promised(each)
        assert_keeps_to_the_least_limit(each)


OVERFLOWING: Programs = {
    "potential": (
        lambda x, m: cd.tensor(lambda d: cd.sum(lambda i: cd.where(i != d, m[i] / abs(x[d] - x[i]), 0.0))),
        {"x": Vector, "m": Vector},
    ),
    "triangle": (
        lambda A, B: cd.tensor(lambda i, k: cd.sum(lambda j: cd.where(j < i, A[i, j] * B[j, k], 0))),
        {"A": Matrix, "B": Wide},
    ),
    "neighbours": (
        lambda A, x: cd.tensor(lambda i: cd.sum(lambda j: cd.where((j != i) & (j != i + 1), A[i, j] ** 2 * x[j], 0))),
        {"A": Matrix, "x": Vector},
    ),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("n", [60, 400])
@pytest.mark.parametrize("name", OVERFLOWING)
def test_masked_products_that_are_infinite_hold_what_is_promised(name: str, n: int) -> None:
    program = program_of(*OVERFLOWING[name])
    drawn = random_arrays(program.parameters, RNG, {"n": n, "m": 30}).values()
    given = [np.where(RNG.random(array.shape) < 2 / len(array), np.inf, array) for array in drawn]
    promised = plan(program.term, {"n": n, "m": 30})
    found, most = measured(lambda: program(*given))
    assert not np.isfinite(found).all()
    assert most <= peak(promised) + OWN
