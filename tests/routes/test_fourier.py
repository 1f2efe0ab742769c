"""Discrete Fourier transforms are sums of waves: NumPy's values, derivatives by every route, and fast plans.

They are written as NumPy's functions or as the sums that these are, over ranges, around cycles and from −B to B.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, back, convert, converted, double_precision, on, quiet
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.ir import Coordinate, Number, SummedProduct, Var, add, function, mul, negate
from combdiff.simplification.normal_form.fourier_inversion import collapsed

R = np.random.default_rng(0)
RING, BALL = cd.Cyclic("n"), cd.Symmetric("B")
Wave, Field = cd.Space("n", dtype=complex), cd.Space("n")
Plane = cd.Space("m", "n", dtype=complex)


def complex_array(*shape: int) -> Any:
    return R.normal(size=shape) + 1j * R.normal(size=shape)


def program(function: Callable[..., Any], **spaces: cd.Space) -> cd.Program:
    function.__annotations__ = spaces
    return cd.program(function)


def multiplied(z: Any, h: Any) -> Any:
    """A filter: there, times a number for each frequency, and back."""
    return np.fft.ifft(np.fft.fft(z) * h)


def evolved(psi: Any, v: Any, k: Any) -> Any:
    """Two steps of a wave in a potential, by turns in space and in frequency."""
    for _ in range(2):
        psi = np.exp(-0.1j * v) * psi
        psi = np.fft.ifft(np.exp(-0.2j * k) * np.fft.fft(psi))
    return psi


CASES: dict[str, tuple[Callable[..., Any], dict[str, cd.Space], dict[str, Any]]] = {
    "filter": (multiplied, {"z": Wave, "h": Field}, {"z": complex_array(5), "h": R.normal(size=5)}),
    "spectrum": (lambda x: np.abs(np.fft.fft(x)) ** 2, {"x": Field}, {"x": R.normal(size=6)}),
    "phases": (
        lambda z, b: (np.abs(np.fft.fft2(z)) ** 2 - b) ** 2,
        {"z": Plane, "b": cd.Space("m", "n")},
        {"z": complex_array(2, 3), "b": R.normal(size=(2, 3))},
    ),
    "evolution": (
        evolved,
        {"psi": Wave, "v": Field, "k": Field},
        {"psi": complex_array(3), "v": R.normal(size=3), "k": R.normal(size=3)},
    ),
    "convolution": (
        lambda x, y: np.fft.ifft(np.fft.fft(x, 2 * x.shape[0]) * np.fft.fft(y, 2 * x.shape[0])).real,
        {"x": Field, "y": Field},
        {"x": R.normal(size=3), "y": R.normal(size=3)},
    ),
    "real and back": (
        lambda x: np.fft.irfft(np.fft.rfft(x) ** 2),
        {"x": cd.Space("2*m")},
        {"x": R.normal(size=6)},
    ),
    "odd and back": (
        lambda x: np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(np.tanh(x)), 5),
        {"x": cd.Space(5)},
        {"x": R.normal(size=5)},
    ),
    "stacks": (
        lambda z: np.fft.ifft(np.fft.fft(z, axis=0) ** 2, axis=-1, norm="ortho"),
        {"z": Plane},
        {"z": complex_array(3, 2)},
    ),
    "shifted": (
        lambda z: np.fft.fftshift(np.fft.fft(np.fft.ifftshift(z))) ** 2,
        {"z": cd.Space(5, dtype=complex)},
        {"z": complex_array(5)},
    ),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CASES)
def test_values_are_numpys_and_derivatives_those_of_every_route(name: str) -> None:
    function, spaces, arrays = CASES[name]
    f = program(function, **spaces)
    np.testing.assert_allclose(f(**arrays), function(**arrays), rtol=1e-12, atol=1e-12)
    assert cd.testing.check_routes(f, **arrays) < 2e-5


KINDS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    st.none() | st.integers(1, 9),
    st.sampled_from([0, 1, -1, -2]),
    st.sampled_from([None, "backward", "ortho", "forward"]),
    st.booleans(),
)
def test_numbers_of_points_axes_and_norms_are_numpys(
    kind: str, shape: tuple[int, int], n: int | None, axis: int, norm: str | None, simplified: bool
) -> None:
    transform = getattr(np.fft, kind)
    if kind in ("irfft", "hfft") and n is None and shape[axis] == 1:
        n = 1  # of one number there are 2 (1 - 1) points: NumPy refuses, too
    array = R.normal(size=shape) if kind in ("rfft", "ihfft") else complex_array(*shape)
    space = cd.Space(*shape, dtype=complex if np.iscomplexobj(array) else float)
    f = program(lambda a: transform(a, n, axis, norm), a=space)
    f = cd.simplify(f) if simplified else f
    np.testing.assert_allclose(f(array), transform(array, n, axis, norm), rtol=1e-11, atol=1e-12)


# --- sums of waves that are written out ----------------------------------------------------------------------------


def around(x: cd.Space(RING, dtype=complex)):
    return cd.tensor(lambda k: cd.sum(lambda j: x[j] * cd.exp(-2j * np.pi * j * k / x.size)), k=RING)


def from_below(x: cd.Space(BALL, dtype=complex)):
    return cd.tensor(lambda k: cd.sum(lambda j: x[j] * cd.exp(-2j * np.pi * j * k / x.size)), k=BALL)


def chirped(x: Wave):
    return cd.tensor(lambda k: cd.sum(lambda j: x[j] * cd.exp(2j * np.pi * j * (k + 1) / x.size + 0.3j * j)), k="n")


def by_differences(x: Wave):
    """A matrix whose elements are those of a transform, one for each difference of indices."""
    n = x.size
    return cd.tensor(lambda m, q: cd.sum(lambda j: x[j] * cd.exp(2j * np.pi * j * (m - q) / n)), m="n", q="n")


def by_a_table(x: Wave, y: Wave):
    """By a matrix of waves, and by its adjoint."""
    table = cd.tensor(lambda j, k: cd.exp(-2j * np.pi * j * k / x.size), j="n", k="n")
    return (table @ x) * (table.conj().T @ y)


def halves(x: Wave):
    return cd.tensor(lambda k: cd.sum(lambda j: x[j] * cd.exp(-1j * np.pi * j * k / x.size)), k="2*n")


def waves(j: Any, k: Any, n: int, sign: int = -1) -> Any:
    return np.exp(sign * 2j * np.pi * np.multiply.outer(k, j) / n)


N = np.arange(5)
BALL_INDICES = N - 2
WRITTEN: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "around a cycle": (around, lambda x: waves(N, N, 5) @ x),
    "from −B to B": (from_below, lambda x: waves(BALL_INDICES, BALL_INDICES, 5) @ x),
    "chirped": (chirped, lambda x: waves(N, N + 1, 5, 1) @ (x * np.exp(0.3j * N))),
    "by differences": (by_differences, lambda x: (waves(N, np.subtract.outer(N, N), 5, 1) * x).sum(-1)),
    "by a table": (by_a_table, lambda x, y: (waves(N, N, 5) @ x) * (waves(N, N, 5, 1) @ y)),
    "halves": (halves, lambda x: waves(N, np.arange(10), 10) @ x),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", WRITTEN)
def test_sums_of_waves_are_transforms(name: str) -> None:
    function, expected = WRITTEN[name]
    f = cd.program(function)
    arrays = {p.name: complex_array(5) for p in f.parameters}
    np.testing.assert_allclose(f(**arrays), expected(**arrays), rtol=1e-12, atol=1e-12)
    assert cd.testing.check_routes(f, **arrays) < 2e-5
    for each in (f, cd.simplify(f)):
        assert "fft(" in each.source()


def test_waves_that_are_not_over_a_number_of_points_are_summed_one_by_one() -> None:
    @cd.program
    def f(x: Wave):
        return cd.tensor(lambda k: cd.sum(lambda j: x[j] * cd.exp(-0.7j * j * k)), k="n")

    x = complex_array(5)
    assert "fft(" not in f.source()
    np.testing.assert_allclose(f(x), np.exp(-0.7j * np.multiply.outer(N, N)) @ x)


# --- what is simpler ------------------------------------------------------------------------------------------------


def there_and_back(z: Wave):
    return np.fft.ifft(np.fft.fft(z))


def twice(z: Wave):
    return np.fft.fft(np.fft.fft(z))


def delayed(z: Wave):
    n = z.shape[0]
    return np.fft.ifft(np.fft.fft(z) * np.exp(-6j * np.pi * cd.arange(n) / n))


def total(z: Wave):
    return (np.abs(np.fft.fft(z)) ** 2).sum()


def total_of_real(x: Field):
    return (np.abs(np.fft.fft(x)) ** 2).sum()


def total_in_the_ball(x: cd.Space(BALL, dtype=complex)):
    return cd.sum(lambda k: np.abs(cd.sum(lambda j: x[j] * cd.exp(-2j * np.pi * j * k / x.size))) ** 2, k=BALL)


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (there_and_back, "z ↦ i ↦ z[i]"),
        (twice, "z ↦ i<n ↦ n z[(-i) mod n]"),
        (delayed, "z ↦ i<n ↦ z[(i - 3) mod n]"),
        (total, "z ↦ n Σ_j |z[j]|²"),
    ],
)
def test_waves_cancel_over_a_period(function: Any, shown: str) -> None:
    f = cd.program(function)
    assert str(cd.simplify(f)) == shown
    z = complex_array(5)
    np.testing.assert_allclose(cd.simplify(f)(z), f(z), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (total, "z ↦ d ↦ 2 z[d] n"),
        (total_of_real, "x ↦ d ↦ 2 x[d] n"),
        (total_in_the_ball, "x ↦ d ↦ 2 x[d] (2B + 1)"),
    ],
)
def test_parsevals_theorem_is_a_gradient(function: Any, shown: str) -> None:
    assert str(cd.grad(cd.program(function))) == shown


def test_a_wave_of_others_beside_one_of_the_index_is_none_of_its_phases() -> None:
    """Over the real line: ∫ exp(2π i (k x − u v)) dk is no δ(x, v)."""
    k, x, u, v = (Var(name, cd.Real()) for name in "kxuv")
    turn = Number(0, 2 * np.pi)
    phase = add(mul(turn, Coordinate(k), Coordinate(x)), mul(negate(turn), Coordinate(u), Coordinate(v)))
    product = SummedProduct((k,), (function("exp", phase),))
    assert collapsed(product) is product


def test_a_product_of_spectra_is_no_convolution_of_more_work() -> None:
    """Σ_j x[j] y[(m − j) mod n] is shorter, and takes n² products."""

    @cd.program
    def f(x: Wave, y: Wave):
        return np.fft.ifft(np.fft.fft(x) * np.fft.fft(y))

    for each in (f, cd.simplify(f), cd.pullback(f, "x")):
        assert each.source().count("fft(") == 3


def test_the_gradient_of_a_spectrum_reads_as_it_is_written() -> None:
    @cd.program
    def f(z: cd.Space(8, dtype=complex)):
        return (np.abs(np.fft.fft(z)) ** 4).sum()

    assert str(cd.grad(f)) == (
        "z ↦\n  t[k<8] = Σ_j z[j] exp(-π i k j / 4)\n  d<8 ↦ 4 Σ_j |t[j]|² t[j] exp(π i d j / 4)"
    )


@pytest.mark.parametrize("name", ["filter", "spectrum", "evolution"])
def test_no_array_of_all_waves_is_made(name: str) -> None:
    function, spaces, _ = CASES[name]
    f = program(function, **spaces)
    for each in (f, cd.simplify(f), cd.pullback(f, f.parameters[0].name)):
        assert each.cost(n=4096).peak_bytes < 64 * 4096 * 16


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("library", BACKENDS)
def test_there_is_no_frequency_of_no_numbers(library: str) -> None:
    f = program(lambda z: np.fft.fft(z, axis=0), z=Plane)
    for shape in ((0, 3), (3, 0)):
        with quiet(library):
            assert back(f(convert(library, np.zeros(shape, complex)))).shape == shape


@pytest.mark.sample(6)
@pytest.mark.parametrize("library", BACKENDS)
@pytest.mark.parametrize("name", CASES)
def test_other_libraries_have_the_same_values(library: str, name: str) -> None:
    function, spaces, arrays = CASES[name]
    f = program(function, **spaces)
    with double_precision(), quiet(library):
        given = converted(library, arrays.values())
        np.testing.assert_allclose(back(on(library, f)(*given)), f(**arrays), rtol=1e-9, atol=1e-9)
        k = f(**arrays)
        found = back(on(library, cd.pullback(f))(*given, *converted(library, [k])))
    np.testing.assert_allclose(found, cd.pullback(f)(*arrays.values(), k), rtol=1e-9, atol=1e-9)


def test_float32_stays_narrow() -> None:
    @cd.program
    def f(x: Field):
        return np.fft.fft(x)

    assert f(np.ones(4, np.float32)).dtype == np.fft.fft(np.ones(4, np.float32)).dtype


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda z: np.fft.fft(z, norm="unitary"), "no norm 'unitary'"),
        (lambda z: np.fft.fft(z, 0), "the number of points of np.fft.fft is 0"),
        (lambda z: np.fft.fft(z, 2.5), "the number of points of np.fft.fft is 2.5"),
        (lambda z: np.fft.fft(z, axis=1), "along axis 1"),
        (lambda z: np.fft.rfft(z), "takes real numbers"),
        (lambda z: np.fft.irfft(z, z.shape[0]), "not known whether they are an even number"),
        (lambda z: np.fft.fft(z, 4), "which are more depends on the sizes"),
        (lambda z: np.fft.fft2(z), "fft2"),
        (lambda z: np.fft.fftn(z, (3, 4), axes=(0,)), r"np.fft.fftn at \(3, 4\) points along 1 axes"),
        (lambda z: np.fft.fftn(z, axes=()), "along no axis"),
    ],
)
def test_what_is_no_transform_is_refused_in_words(function: Any, said: str) -> None:
    with pytest.raises(cd.CombdiffError, match=said):
        program(function, z=Wave)
