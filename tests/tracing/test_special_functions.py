"""SciPy's special functions: value, gradient and second derivative of each on every library, laws, prints, refusals."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backends import TORCH, back, convert, double_precision, on
from scipy import linalg, signal, special, stats
from strategies import ORDERED

import combdiff as cd
from combdiff.ir import SPECIAL_FUNCTIONS
from combdiff.ir.primitives import Row
from combdiff.tracing.scipy_names import DERIVED, LINALG, SPELLED

V = cd.Space("n")
X = np.array([0.15, 0.4, 0.85])
Y = np.array([0.7, 0.3, 0.55])
STEP = 1e-5
MISSING = {"jax": {"j0", "j1", "jv", "iv", "ive"}, "torch": {"jv", "iv", "ive", "gamma"}, "dask": set[str]()}


def of(row: Row) -> Any:
    """The function in a program, of one vector or two; of an order, at the order 2."""
    function = getattr(cd, row.name)
    return (
        (lambda x, y: function(2, x))
        if row.name in ORDERED
        else function
        if row.arity == 2
        else lambda x, y: function(x)
    )


def numbers(row: Row, x: Any, y: Any) -> Any:
    """The same by SciPy."""
    arguments = (2, x) if row.name in ORDERED else (x, y)[: row.arity]
    return getattr(special, row.name)(*arguments)


def everything(rows: tuple[Row, ...]) -> Any:
    """x, y, w ↦ Σ_k w[k] Σ_i f_k(x[i], y[i]), so that w chooses a function."""

    @cd.program
    def chosen(x: V, y: V, w: cd.Space(len(rows))):
        return sum((w[k] * cd.sum(of(row)(x, y)) for k, row in enumerate(rows)), 0 * w[0])

    return chosen


@pytest.fixture(scope="module")
def derived() -> tuple[Any, Any]:
    program = everything(SPECIAL_FUNCTIONS)
    return cd.grad(program, wrt=("x", "y"), simplify=False), cd.hvp(program, wrt="x", simplify=False)


def unit(k: int, count: int = len(SPECIAL_FUNCTIONS)) -> Any:
    return np.eye(count)[k]


@pytest.mark.sample(8)
@pytest.mark.parametrize("k", range(len(SPECIAL_FUNCTIONS)), ids=[row.name for row in SPECIAL_FUNCTIONS])
def test_two_derivatives(derived: tuple[Any, Any], k: int) -> None:
    row, (gradient, product) = SPECIAL_FUNCTIONS[k], derived
    by_x, by_y = gradient(X, Y, unit(k))
    slopes = [
        (numbers(row, X + STEP * a, Y + STEP * b) - numbers(row, X - STEP * a, Y - STEP * b)) / (2 * STEP)
        for a, b in ((1, 0), (0, 1))
    ]
    np.testing.assert_allclose(by_x, slopes[0], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(by_y, slopes[1], rtol=1e-7, atol=1e-8)
    ahead, behind = (gradient(X + sign * STEP, Y, unit(k))[0] for sign in (1, -1))
    found = product(X, Y, unit(k), np.ones(3))
    np.testing.assert_allclose(found, (ahead - behind) / (2 * STEP), rtol=1e-6, atol=1e-7)


@pytest.mark.sample(1)
@pytest.mark.parametrize("backend", ["jax", TORCH, "dask"])
def test_libraries(backend: str) -> None:
    """All functions that a library has, and so their derivatives."""
    rows = tuple(row for row in SPECIAL_FUNCTIONS if row.name not in MISSING[backend])
    program = cd.grad(everything(rows), wrt="w", simplify=False)  # the sum of each
    expected = program(X, Y, np.zeros(len(rows)))
    with double_precision():
        found = on(backend, program)(*(convert(backend, array) for array in (X, Y, np.zeros(len(rows)))))
    np.testing.assert_allclose(back(found), expected, rtol=1e-10)


@pytest.mark.parametrize("backend", ["jax", TORCH])
def test_what_a_library_lacks_is_refused_by_name(backend: str) -> None:
    bessel = cd.program(second)
    with pytest.raises(
        cd.UnsupportedError, match=rf"backend '{backend}' has no function jv\n  hint: call the .* NumPy"
    ):
        bessel(convert(backend, X))


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["jax", TORCH])
def test_modified_bessel_functions_of_whole_orders_on_libraries_that_have_two(backend: str) -> None:
    @cd.program
    def f(x: V):
        return np.stack([cd.iv(2, x), cd.ive(2, x), cd.iv(5, x), cd.ive(5, x), cd.iv(9, x) * 1e6])

    x = np.array([0, 1e-3, -0.7, 3, -17.9, 18.1, 59.9, -60.1, 300])
    with double_precision():
        found = back(on(backend, f)(convert(backend, x)))
    np.testing.assert_allclose(found, f(x), rtol=1e-12)


def second(x: V):
    return cd.jv(2, x)


def test_float32_stays() -> None:
    program = everything(SPECIAL_FUNCTIONS)
    arrays = [array.astype(np.float32) for array in (X, Y, unit(0))]
    assert program(*arrays).dtype == np.float32


# --- as users write them -------------------------------------------------------------------------------------------


def test_scipy_asks_traced_values() -> None:
    @cd.program
    def gelu(x: V):
        return (x * (1 + special.erf(x)) / 2).sum()

    gradient = cd.grad(gelu)
    assert str(gelu) == "x ↦ 1/2 Σ_i x[i] (1 + erf(x[i]))"
    assert str(gradient) == "x ↦ d ↦ 1/2 + x[d] exp(-x[d]²) / sqrt(π) + 1/2 erf(x[d])"
    assert str(cd.read(str(gradient))) == str(gradient)
    assert r"\sqrt{\pi}" in gradient.latex()
    assert "from scipy import special\n" in gradient.source()
    assert "jsp.erf(" in gradient.source(backend="jax")
    cd.testing.check_grad(gelu, "x", x=X)


def test_likelihoods() -> None:
    """Gamma and Poisson log-likelihoods, by shape, rate and mean."""

    @cd.program
    def gamma(x: V, a: cd.Space(), b: cd.Space()):
        return cd.sum(a * cd.log(b) - cd.gammaln(a) + cd.xlogy(a - 1, x) - b * x)

    @cd.program
    def poisson(k: V, m: V):
        return cd.sum(cd.xlogy(k, m) - m - cd.gammaln(k + 1))

    assert str(cd.grad(poisson, wrt="m")) == "(k, m) ↦ d ↦ k[d] / m[d] - 1"
    cd.testing.check_grad(gamma, ("a", "b", "x"), x=X, a=1.7, b=0.6)
    np.testing.assert_allclose(cd.grad(poisson, wrt="m")(np.array([0.0, 2, 5]), Y), np.array([0.0, 2, 5]) / Y - 1)


def test_laws() -> None:
    @cd.program
    def ones(x: V, y: V):
        halves = cd.expit(x) + cd.expit(-x) + cd.erf(y) + cd.erfc(y) + cd.ndtr(x - y) + cd.ndtr(y - x)
        return cd.sum((halves + cd.erfc(2 * x) + cd.erfc(-2 * x)) * x)

    @cd.program
    def others(x: V):
        return cd.sum(cd.erf(-x) + cd.erf(x) + cd.logit(cd.expit(x)) + cd.i1(-x) + cd.i1(x))

    assert str(cd.simplify(ones)) == "(x, y) ↦ 5 Σ_i x[i]"
    assert str(cd.simplify(others)) == "x ↦ Σ_i x[i]"
    logistic = cd.simplify(cd.program(lambda_log_expit))
    assert str(logistic) == "x ↦ i ↦ log_expit(x[i])"
    np.testing.assert_allclose(logistic(np.array([-800.0])), [-800.0])
    assert str(cd.grad(cd.program(summed_log_expit))) == "x ↦ d ↦ expit(-x[d])"


def lambda_log_expit(x: V):
    return cd.log(cd.expit(x))


def summed_log_expit(x: V):
    return cd.log_expit(x).sum()


def test_zeros_and_branch_points() -> None:
    """xlogy is 0 at x = 0; Bessel functions have their derivatives at 0, where quotients by x have none."""

    @cd.program
    def f(x: V, y: V):
        return cd.sum(cd.xlogy(x, y) + cd.i1(x) + cd.j1(x))

    zero = np.zeros(2)
    assert f(zero, zero) == 0
    np.testing.assert_allclose(cd.grad(f, wrt="x")(zero, np.ones(2)), [1, 1])
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(cd.grad(f, wrt="x")(zero, zero), [-np.inf, -np.inf])


def test_plain_arrays() -> None:
    np.testing.assert_allclose(cd.polygamma(1, X), special.polygamma(1, X))
    np.testing.assert_allclose(cd.betaln(X, Y), special.betaln(X, Y))
    assert cd.erf(0.0) == 0


# --- refusals ------------------------------------------------------------------------------------------------------


def test_refusals() -> None:
    with pytest.raises(cd.UnsupportedError, match=r"scipy\.special\.airy is not supported in a program"):
        cd.program(of_airy)
    with pytest.raises(cd.TypeMismatchError, match="polygamma is given the order -1, which is not a whole number that"):
        cd.polygamma(-1, X)
    with pytest.raises(cd.TypeMismatchError, match=r"jv is given the order .*, which is not a number"):
        cd.program(of_traced_order)
    with pytest.raises(cd.TypeMismatchError, match="erf takes real arguments"):
        cd.program(of_complex)
    with pytest.raises(cd.TraceError, match="betaln takes 2 arguments, not 1"):
        cd.betaln(X)


def of_airy(x: V):
    return special.airy(x)


def of_traced_order(x: V):
    return cd.jv(x, x)


def of_complex(z: cd.Space("n", dtype=complex)):
    return cd.erf(z)


@pytest.mark.thorough
def test_without_scipy(tmp_path: Path) -> None:
    """SciPy is asked for where a number is computed, not where a program is derived."""
    (tmp_path / "scipy").mkdir()
    (tmp_path / "scipy" / "__init__.py").write_text("raise ModuleNotFoundError('no SciPy', name='scipy')")
    (tmp_path / "run.py").write_text(
        "import sys, numpy as np, combdiff as cd\n"
        "@cd.program\n"
        "def f(x: cd.Space('n')):\n"
        "    return cd.erf(x).sum()\n"
        "print(cd.grad(f))\n"
        "for call in (lambda: f(np.ones(2)), lambda: cd.erf(1.0)):\n"
        "    try:\n"
        "        call()\n"
        "    except cd.UnsupportedError as error:\n"
        "        print(error)\n"
    )
    root = str(Path(cd.__file__).parents[1])
    found = subprocess.run(
        [sys.executable, str(tmp_path / "run.py")],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{root}"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert found.startswith("x ↦ d ↦ 2 exp(-x[d]²) / sqrt(π)\n")
    assert "special functions are computed by SciPy, which is not installed" in found
    assert found.count("pip install combdiff[special]") == 2


SPENCE = """(primitive "spence" "\\\\operatorname{Li}_2")
(numpy "spence" "scipy.special.NAME")
(real-only "spence")
(derivative "spence" 0 (Times (Fn "log" (vec-of (Argument 0)))
    (Fn "power" (vec-of (Plus (Num $one $zero) (Scale (neg $one) $zero (Argument 0))) (Num (neg $one) $zero)))))
"""


@pytest.mark.thorough
@pytest.mark.usefixtures("primitive_table")
def test_rule_files_name_functions_of_scipy(tmp_path: Path) -> None:
    rules = tmp_path / "spence.egg"
    rules.write_text(SPENCE.replace("NAME", "spence"), encoding="utf-8")
    spence = cd.primitive("spence", rules=[rules])

    @cd.program
    def f(x: V):
        return spence(x).sum()

    cd.testing.check_grad(f, "x", x=X)
    np.testing.assert_allclose(f(X), special.spence(X).sum())
    for name in ("_ufuncs", "errstate", "spence.reduce", "polygamma"):
        rules.write_text(SPENCE.replace("NAME", name), encoding="utf-8")
        with pytest.raises(cd.RuleError, match=f"SciPy has no element-wise function '{name}'"):
            cd.primitive("spence", rules=[rules])


@pytest.mark.thorough
def test_entropies_and_beta_are_written_by_other_functions() -> None:
    @cd.program
    def f(x: V, y: V):
        both = special.rel_entr(x, y) + special.kl_div(x, y)
        return cd.sum(lambda i: both[i] + special.entr(x)[i] * special.beta(x, y)[i])

    expected = special.rel_entr(X, Y) + special.kl_div(X, Y) + special.entr(X) * special.beta(X, Y)
    np.testing.assert_allclose(f(X, Y), expected.sum(), rtol=1e-12)
    cd.testing.check_grad(f, "x", x=X, y=Y)


@pytest.mark.parametrize(
    ("function", "said", "written"),
    [
        (special.logsumexp, "scipy.special.logsumexp is not supported", "cd.logsumexp"),
        (special.log_softmax, "scipy.special.log_softmax is not supported", "x - cd.logsumexp"),
        (lambda x: special.polygamma(1, x), "scipy.special.polygamma is not supported", "cd.polygamma"),
        (special.y0, "scipy.special.y0 is not supported in a program: its derivative", "a rule file adds"),
        (special.zeta, "scipy.special.zeta is not supported", "a rule file adds"),
        (lambda x: linalg.expm(x[:, None] * x), "scipy.linalg.expm is not supported", "cd.expm"),
        (lambda x: linalg.solve(x[:, None] * x, x), "scipy.linalg.solve is not supported", "np.linalg"),
        (stats.norm.logpdf, "scipy.stats.logpdf is not supported", "write out the density"),
        (lambda x: signal.convolve(x, np.ones(2)), "scipy.signal.convolve is not supported", "np.convolve"),
    ],
)
def test_functions_of_scipy_that_ask_for_numbers_are_refused_by_name(function: Any, said: str, written: str) -> None:
    def f(x: V):
        return function(x)

    with pytest.raises(cd.UnsupportedError, match=said) as refused:
        cd.program(f)
    assert written in str(refused.value)
    assert str(refused.value).startswith(f"{__file__}:")  # SciPy's functions are Python's, with lines of their own


ARGUMENTS = dict.fromkeys(("comb", "binom"), "nk") | dict.fromkeys(("huber", "pseudo_huber"), "dr")
ARGUMENTS |= {"poch": "zm", "powm1": "xy", "factorial": "n", "boxcox": "xl", "boxcox1p": "xl", "inv_boxcox": "yl"}


def test_hints_for_functions_of_scipy_are_right() -> None:
    for name, text in SPELLED.items():
        given = dict(zip(ARGUMENTS.get(name, "x"), (1.3, 0.4), strict=False))
        found = eval(text.removesuffix(", where x > 0"), {"np": np, "cd": cd, **given})
        assert found == pytest.approx(getattr(special, name)(*given.values()), rel=1e-9), name
    for name, text in DERIVED.items():
        function = getattr(special, name)
        before = [2.0, 1.5, 2.5][: 1 if name == "zeta" else function.nin - 1]
        point = 1.4 if name == "zeta" else 0.4
        slope = (function(*before, point + 1e-6) - function(*before, point - 1e-6)) / 2e-6
        scope = {**vars(np), **vars(special), **dict(zip("abc", before, strict=False)), "x": point}
        assert eval(text, scope) == pytest.approx(slope, rel=1e-6), name


LINALG_ARGUMENTS = {
    "orthogonal_procrustes": "AB",
    **dict.fromkeys(("solve_continuous_lyapunov", "solve_discrete_lyapunov"), "AQ"),
    "solve_sylvester": "ABQ",
    "solve": "Ab",
    "solve_triangular": "Lb",
    **dict.fromkeys(("circulant", "fiedler", "hankel", "toeplitz"), "c"),
    "diagsvd": "s",
}


@pytest.mark.parametrize("name", sorted(LINALG))
def test_hints_for_scipy_s_functions_of_matrices_are_right(name: str) -> None:
    """Each in a program, as a message tells its users to write it."""
    n, generator, parameters = 3, np.random.default_rng(2), LINALG_ARGUMENTS.get(name, "A")
    A = generator.normal(size=(n, n))
    arrays = {"A": A @ A.T + np.eye(n), "B": generator.normal(size=(n, n)), "L": np.tril(A) + 2 * np.eye(n)}
    arrays |= {"Q": arrays["A"] + 1, **{key: generator.normal(size=n) for key in "bcs"}}
    scope: dict[str, Any] = {"cd": cd, "np": np, "n": n}
    taken = "Lb" if name == "cho_solve" else "" if name == "dft" else parameters
    exec(f"def f({', '.join(taken or 'A')}):\n    return {LINALG[name]}", scope)
    scope["f"].__annotations__ = {key: cd.Space(*arrays[key].shape) for key in taken or "A"}
    found = cd.program(scope["f"])(*(arrays[key] for key in taken or "A"))
    given = {"dft": [n], "diagsvd": [arrays["s"], n, n], "cho_solve": [(arrays["L"], True), arrays["b"]]}
    options = {"lower": True} if name in ("solve_triangular", "cho_factor") else {}
    expected = getattr(linalg, name)(*given.get(name, [arrays[key] for key in parameters]), **options)
    if name == "cho_factor":
        expected = np.tril(expected[0])
    elif name == "orthogonal_procrustes":
        expected = expected[0]
    for one, other in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, expected)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
