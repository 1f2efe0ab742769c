"""Matrix notation: worked results as people write them, and every text evaluated with NumPy against its program."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thesis_cases import CASES, Case

import combdiff as cd
from combdiff.api.language import derivation, derive, parse
from combdiff.api.programs import Program

Array = np.ndarray[Any, Any]
SIZE = 3
grad, hessian = cache(cd.grad), cache(cd.hessian)

Square = cd.Space("n", "n")
Sym = cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"])
Anti = cd.Space("n", "n", symmetry=["A[i,j] = -A[j,i]"])
General = cd.Space("n", "n", dtype=complex)
Hermitian = cd.Space("n", "n", dtype=complex, symmetry=["A[i,j] = conj(A[j,i])"])
Vector = cd.Space("n")
ComplexVector = cd.Space("n", dtype=complex)


# --- matrix notation read back -------------------------------------------------------------------------------------


def arrays_of(program: Program, seed: int = 0) -> dict[str, Array]:
    """Random arrays with the symmetries that are declared, every axis of length SIZE."""
    rng = np.random.default_rng(seed)
    found = {}
    for parameter in program.parameters:
        space = parameter.type
        assert isinstance(space, cd.Space)
        array = rng.uniform(0.2, 1.0, (SIZE,) * space.order)
        if space.dtype is complex:
            array = array + 1j * rng.uniform(0.2, 1.0, array.shape)
        images = [a.sign * np.transpose(array.conj() if a.conjugate else array, a.axes) for a in space.group]
        found[parameter.name] = np.sum(images, axis=0) / len(images)
    return found


def agrees(program: Program) -> str:
    """The matrix notation of a program, which read back has the program's value."""
    text = program.matrix()
    assert "[" not in text, text
    arrays = arrays_of(program)
    expected = np.asarray(program(**arrays))
    told = text  # 0, 𝟏 and 𝐈 by themselves are of whatever shape
    if not any(re.search(rf"\b{p.name}", text) for p in program.parameters):
        name, order = program.parameters[0].name, len(np.shape(arrays[program.parameters[0].name]))
        shaped = name if order == expected.ndim else f"{name}·{name}ᵀ"
        told = "0" if text == "0" else f"{text} + 0·{shaped}"
    found = np.asarray(cd.read(told, {p.name: p.type for p in program.parameters})(**arrays))
    found = np.zeros(expected.shape) if text == "0" else found
    assert found.shape == expected.shape, text
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=text)
    return text


# --- worked results ------------------------------------------------------------------------------------------------


@cd.program
def quadratic(A: Sym, x: Vector) -> Any:
    return cd.sum(lambda i, j: x[i] * A[i, j] * x[j])


@cd.program
def general(A: Square, x: Vector) -> Any:
    return cd.sum(lambda i, j: x[i] * A[i, j] * x[j])


@cd.program
def hermitian(A: Hermitian, x: ComplexVector) -> Any:
    return cd.sum(lambda i, j: cd.conj(x[i]) * A[i, j] * x[j])


@cd.program
def bilinear(A: Anti, x: Vector, y: Vector) -> Any:
    return cd.sum(lambda i, j: x[i] * A[i, j] * y[j])


@cd.program
def three(A: Square, B: Square, C: Square) -> Any:
    return cd.trace(A @ B @ C)


@cd.program
def squares(A: Square, x: Vector, b: Vector) -> Any:
    return cd.sum(lambda i: (cd.sum(lambda j: A[i, j] * x[j]) - b[i]) ** 2)


@cd.program
def factorised(T: Square, U: Square, W: Square) -> Any:
    residual = T - U @ W.T
    return (residual * residual).sum()


@cd.program
def search(A: Sym, b: Vector, x: Vector, r: Vector, p: Vector, α: cd.Space(), β: cd.Space()) -> Any:
    u = x + α * (r + β * p)
    return 0.5 * cd.sum(lambda i, j: u[i] * A[i, j] * u[j]) - cd.sum(lambda i: b[i] * u[i])


@cd.program
def network(W: Square, x: Vector, v: Vector) -> Any:
    return cd.sum(lambda i: v[i] * cd.tanh(cd.sum(lambda j: W[i, j] * x[j])))


@cd.program
def logistic(X: Square, y: Vector, w: Vector) -> Any:
    return cd.sum(lambda i: cd.log(1 + cd.exp(-y[i] * cd.sum(lambda j: X[i, j] * w[j]))))


@cd.program
def rayleigh(A: Sym, x: Vector) -> Any:
    return cd.sum(lambda i, j: x[i] * A[i, j] * x[j]) / cd.sum(lambda i: x[i] ** 2)


@cd.program
def kernel(x: Vector, y: Vector, w: Vector) -> Any:
    return cd.sum(lambda i, j: w[i] * cd.exp(-((x[i] - y[j]) ** 2)))


@cd.program
def spectral(V: Square, u: Vector) -> Any:
    return cd.tensor(lambda i, j: cd.sum(lambda k: V[i, k] * u[k] * V[j, k]))


@pytest.mark.parametrize(
    ("derived", "expected"),
    [
        (lambda: quadratic, "xᵀ·A·x"),
        (lambda: grad(quadratic, "x"), "2·A·x"),
        (lambda: grad(quadratic, "A"), "x·xᵀ"),
        (lambda: hessian(quadratic, "x"), "2·A"),
        (lambda: grad(general, "x"), "(A + Aᵀ)·x"),
        (lambda: hermitian, "x†·A·x"),
        (lambda: grad(hermitian, "x"), "2·A·x"),
        (lambda: bilinear, "-yᵀ·A·x"),
        (lambda: grad(bilinear, "x"), "A·y"),
        (lambda: grad(bilinear, "y"), "-A·x"),
        (lambda: three, "tr(A·B·C)"),
        (lambda: grad(three, "B"), "Aᵀ·Cᵀ"),
        (lambda: grad(squares, "x"), "2·Aᵀ·(A·x - b)"),
        (lambda: grad(squares, "A"), "2·(A·x - b)·xᵀ"),
        (lambda: grad(factorised, "U"), "2·(U·Wᵀ - T)·W"),
        (lambda: grad(search, "α"), "t = r + β·p\ntᵀ·(A·(x + α·t) - b)"),
        (lambda: network, "vᵀ·tanh(W·x)"),
        (lambda: spectral, "V·diag(u)·Vᵀ"),
        (lambda: rayleigh, "xᵀ·A·x / ‖x‖²"),
        (lambda: kernel, "wᵀ·exp(-(x·𝟏ᵀ - 𝟏·yᵀ)^∘2)·𝟏"),
        (lambda: cd.pushforward(quadratic, "x"), "2·x_dotᵀ·A·x"),
        (lambda: cd.jacobian(parse("declare A 2 x 1 expression A *(ij,j->i) x"), "x"), "A"),
        (lambda: parse("declare A 2 expression delta(1) *(ij,->ij) 2 + A + 1"), "𝟏·𝟏ᵀ + 2·𝐈 + A"),
        (lambda: parse("declare A 2 B 2 expression A *(ij,ji->i) B"), "diag(A·B)"),
        (lambda: parse("declare A 2 x 1 expression A *(ij,ij->ij) A *(ij,j->i) x"), "A^∘2·x"),
        (lambda: parse("declare x 1 y 1 expression x / y"), "x ⊘ y"),
        (lambda: parse("declare A 2 expression inv(A) *(ij,jk->ik) A *(ij,->ji) det(A)"), "det(A)·Aᵀ·A⁻ᵀ"),
        (lambda: derive("declare A 2 expression det(A) derivative wrt A"), "adj(A)ᵀ"),
        (lambda: derive("declare A 2 expression log(det(A)^2) derivative wrt A"), "2·A⁻ᵀ"),
        (
            lambda: derive("declare A 2 x 1 expression x *(i,i->) (inv(A) *(ij,j->i) x) derivative wrt A"),
            "-A⁻ᵀ·x·xᵀ·A⁻ᵀ",
        ),
        (lambda: parse("declare a 0 x 1 expression x *(i,->i) (1 / (2 + a)) - 1"), "x / (2 + a) - 𝟏"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_results_read_as_they_are_written(derived: Callable[[], Program], expected: str) -> None:
    program = derived()
    assert program.matrix() == expected
    assert agrees(program) == expected


LONGER = {
    "squares": lambda: squares,
    "factorised": lambda: factorised,
    "search": lambda: search,
    "logistic": lambda: logistic,
    "grad network W": lambda: grad(network, "W"),
    "grad network x": lambda: grad(network, "x"),
    "grad logistic": lambda: grad(logistic, "w"),
    "hessian logistic": lambda: hessian(logistic, "w"),
    "grad rayleigh": lambda: grad(rayleigh, "x"),
    "hessian rayleigh": lambda: hessian(rayleigh, "x"),
    "grad kernel": lambda: grad(kernel, "x"),
    "hessian kernel": lambda: hessian(kernel, "w"),
    "grad search": lambda: grad(search, "β"),
    "hvp rayleigh": lambda: cd.hvp(rayleigh, "x"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", LONGER)
def test_longer_results_have_the_value_of_their_program(name: str) -> None:
    agrees(LONGER[name]())


@pytest.mark.thorough
def test_the_hessian_of_logistic_regression_is_a_product_of_three() -> None:
    assert re.search(r"^-?Xᵀ·diag\(.*\)·X$", hessian(logistic, "w").matrix(), re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tr(A)*x", "tr(A)·x"),
        ("det(X)*tr(inv(X))", "det(X)·tr(X⁻¹)"),
        ("sum(diag(A).*x)", "xᵀ·diag(A)"),
        ("sum((A*x).^3)", "𝟏ᵀ·(A·x)^∘3"),
        ("sum(x.^2.*y)", "xᵀ·diag(y)·x"),
    ],
)
def test_traces_and_sums_of_powers_are_written_as_such(text: str, shown: str) -> None:
    program = cd.read(text)
    assert program.matrix() == shown
    agrees(program)
    agrees(cd.read(shown))


def test_named_maps_keep_their_names() -> None:
    @cd.program
    def step(R: cd.Function(Vector), x: Vector, p: Vector, α: cd.Space()) -> Any:
        return R(x + α * p)

    assert step.matrix() == "R(x + α·p)"
    assert grad(step, "α").matrix() == "pᵀ·∇R(x + α·p)"
    assert grad(step, "x").matrix() == "∇R(x + α·p)"


def test_what_has_no_matrix_notation_stays_in_indices() -> None:
    @cd.program
    def cubic(T: cd.Space("n", "n", "n"), x: Vector) -> Any:
        return cd.sum(lambda i, j, k: T[i, j, k] * x[i] * x[j] * x[k])

    @cd.program
    def both(T: cd.Space("n", "n", "n"), A: Sym, x: Vector) -> Any:
        return cd.sum(lambda i, j, k: T[i, j, k] * x[i] * x[j] * x[k]), A @ x

    @cd.program
    def convolved(x: cd.Space(cd.Cyclic("n")), w: cd.Space(3)) -> Any:
        return cd.tensor(lambda i: cd.sum(lambda k: x[i + k] * w[k]), i=cd.Cyclic("n"))

    @cd.program
    def integral(f: cd.Space(cd.Real())) -> Any:
        return cd.sum(lambda t: f[t] ** 2)

    @cd.program
    def star(A: Square, B: Square, C: Square) -> Any:
        return cd.sum(lambda i, j, k, m: A[i, m] * B[j, m] * C[k, m])

    @cd.program
    def knot(A: Square) -> Any:
        return cd.sum(lambda i, j, k, m: A[i, j] * A[i, k] * A[i, m] * A[j, k] * A[j, m] * A[k, m])

    assert cubic.matrix() == "Σ_{i,j,k} T[i,j,k] x[i] x[j] x[k]"
    assert both.matrix() == "(Σ_{i,j,k} T[i,j,k] x[i] x[j] x[k], A·x)"
    assert "x[" in convolved.matrix()
    assert "∫" in integral.matrix()
    assert agrees(star) == "𝟏ᵀ·C·((Aᵀ·𝟏) ⊙ (Bᵀ·𝟏))"
    assert "Σ" in knot.matrix()


def test_definitions_are_in_matrix_notation_where_they_have_one() -> None:
    assert grad(logistic, "w").matrix() == "-Xᵀ·(y ⊘ (𝟏 + exp(y ⊙ (X·w))))"


def test_latex() -> None:
    assert grad(quadratic, "x").matrix(latex=True) == "2 A x"
    assert spectral.matrix(latex=True) == r"V \operatorname{diag}(u) V^{\top}"
    assert grad(search, "β").matrix(latex=True).startswith(r"\alpha (A (x + \alpha (r + \beta p)) - b)^{\top} p")
    assert parse("declare x 1 y 1 expression x^3 / y").matrix(latex=True) == r"x^{\circ 3} \oslash y"


@pytest.mark.parametrize(
    ("program", "wrt"),
    [
        *((each, "") for each in (quadratic, hermitian, spectral, rayleigh, kernel, three)),
        (kernel, "w"),
        (squares, "A"),
    ],
)
@pytest.mark.needs("matplotlib")
def test_latex_is_read_by_mathtext(program: Program, wrt: str) -> None:
    from matplotlib.mathtext import MathTextParser

    shown = grad(program, wrt) if wrt else program
    MathTextParser("path").parse(f"${shown.matrix(latex=True)}$")


@pytest.mark.sample(14)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_the_appendix_of_the_thesis_in_matrix_notation(case: Case) -> None:
    """Input and derivative; what has more than two axes keeps its indices."""
    for program in derivation(case.text).steps:
        if not re.search(r"\[|\(", program.matrix()) or "↦" not in program.matrix():
            agrees(program)


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_the_latex_of_the_appendix_is_read_line_by_line(case: Case) -> None:
    from matplotlib.mathtext import MathTextParser

    for program in derivation(case.text).steps:
        shown = program.matrix(latex=True)
        lines = [line.removeprefix("& ").removesuffix("\\\\") for line in shown.splitlines()]
        for line in lines if len(lines) == 1 else lines[1:-1]:
            MathTextParser("path").parse(f"${line}$")


# --- random products -----------------------------------------------------------------------------------------------

MATRICES = {"A": Square, "S": Sym, "K": Anti, "G": General, "H": Hermitian}
VECTORS = {"x": Vector, "y": Vector, "z": ComplexVector}


@st.composite
def products(draw: st.DrawFn) -> Program:
    """Σ of up to five factors over up to four indices, of which up to two are those of the result."""
    letters = "ijkm"[: draw(st.integers(1, 4))]
    factors = []
    for _ in range(draw(st.integers(1, 5))):
        matrix = draw(st.booleans())
        name = draw(st.sampled_from(sorted(MATRICES if matrix else VECTORS)))
        indices = [draw(st.sampled_from(letters)) for _ in range(1 + matrix)]
        factors.append((name, indices, draw(st.booleans())))
    used = sorted({index for _, indices, _ in factors for index in indices})
    result = draw(st.permutations(used))[: draw(st.integers(0, min(2, len(used))))]
    summed = [index for index in used if index not in result]
    terms = [f"cd.conj({n}[{','.join(i)}])" if conj else f"{n}[{','.join(i)}]" for n, i, conj in factors]
    body = f"{draw(st.sampled_from(['', '-3 * ', '2j * ']))}{' * '.join(terms)}"
    inner = f"cd.sum(lambda {','.join(summed)}: {body})" if summed else body
    spaces = {**MATRICES, **VECTORS}
    value = f"cd.tensor(lambda {','.join(result)}: {inner})" if result else inner
    names = sorted({name for name, _, _ in factors})
    scope: dict[str, Any] = {"cd": cd}
    exec(f"def f({', '.join(names)}):\n    return {value}", scope)
    scope["f"].__annotations__ = {name: spaces[name] for name in names}
    return cd.program(scope["f"])


@settings(
    max_examples=max(40, settings().max_examples),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(products(), st.booleans())
def test_random_products_have_the_value_of_their_program(program: Program, simplified: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shown = cd.simplify(program) if simplified else program
    if "[" not in shown.matrix():
        agrees(shown)


def test_parts_of_tensors_keep_their_indices() -> None:
    @cd.program
    def part(x: cd.Space(6), y: cd.Space(4)):
        return np.linalg.norm(x[:4]) * x[:4] @ y

    @cd.program
    def corner(A: cd.Space(5, 5), y: cd.Space(4)):
        return A[:4, :4] @ y

    @cd.program
    def units(y: cd.Space(4)):
        return cd.tensor(lambda i, j: cd.delta(i, j), i=3, j=4) @ np.outer(y, y)

    for program in (part, corner, units):
        arrays = {
            p.name: np.random.default_rng(0).normal(size=[axis.size for axis in p.type.axes])
            for p in program.parameters
        }
        again = cd.read(program.matrix(), {p.name: p.type for p in program.parameters})
        np.testing.assert_allclose(again(**arrays), program(**arrays))
    assert "‖" not in part.matrix()
    assert "·" not in corner.matrix()


def test_the_root_of_a_squared_norm_is_the_norm() -> None:
    @cd.program
    def distance(x: cd.Space("n"), y: cd.Space("n")):  # type: ignore
        return cd.sqrt((x - y) @ (x - y))

    @cd.program
    def frobenius(A: cd.Space("m", "n")):  # type: ignore
        return cd.sqrt((A * A).sum())

    assert cd.grad(distance).matrix() == "(x - y) / ‖x - y‖"
    assert frobenius.matrix() == "‖A‖_F"
    assert cd.grad(frobenius).matrix(latex=True) == r"\frac{A}{\left\Vert A \right\Vert_{F}}"


@pytest.mark.thorough
def test_the_inverse_of_a_symmetric_definition_has_no_transpose() -> None:
    @cd.program
    def gram(X: cd.Space("n", "m"), A: cd.Space("m", "m", symmetry=["A[i,j] = A[j,i]"])):
        return cd.logdet(X.T @ X + A)

    assert cd.grad(gram, wrt="X").matrix() == "t = A + Xᵀ·X\n2·X·t⁻¹"
    assert "-\\top" not in cd.grad(gram, wrt="X").matrix(latex=True)

    @cd.program
    def quadratic(L: cd.Space("m", "m"), x: cd.Space("m")):
        return x @ cd.inv(L @ L.T) @ x

    assert "⁻ᵀ" not in cd.grad(quadratic, wrt="L").matrix()


Mixed = cd.Space("n", "n", dtype=complex)


@cd.program
def dissipation(r: Mixed, L: Mixed):
    D = L @ r @ L.conj().T - (L.conj().T @ L @ r + r @ L.conj().T @ L) / 2
    return np.sum(np.abs(D) ** 2)


@cd.program
def divergence(W: cd.Space("n", "k"), H: cd.Space("k", "m"), V: cd.Space("n", "m")):
    return np.sum(V * np.log(V / (W @ H)) - V + W @ H)


@cd.program
def crossed(A: cd.Space("n", "n"), B: cd.Space("n", "n"), x: cd.Space("n")):
    return (A.T + B.T) @ x


@cd.program
def centred(x: cd.Space("n")):
    return x - x.mean()


@cd.program
def huber(a: cd.Space("n"), k: cd.Space()):
    return np.sum(np.where(a <= k, a**2 / 2, k * (a - k / 2)))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("derived", "expected"),
    [
        (lambda: grad(huber, "k"), "(a - k·𝟏)ᵀ·[a > k·𝟏]"),
        (lambda: grad(dissipation, "r"), "2·L†·D·L - D·t - t·D"),
        (lambda: grad(divergence, "W"), "(𝟏·𝟏ᵀ - V ⊘ (W·H))·Hᵀ"),
        (lambda: grad(divergence, "H"), "Wᵀ·(𝟏·𝟏ᵀ - V ⊘ (W·H))"),
        (lambda: crossed, "(A + B)ᵀ·x"),
        (lambda: centred, "x - (𝟏ᵀ·x)·𝟏 / n"),
    ],
)
def test_sums_and_functions_stand_the_way_that_takes_fewer_marks(derived: Callable[[], Program], expected: str) -> None:
    """f(B·Aᵀ)ᵀ is f(A·Bᵀ) for a function of each element, and (Aᵀ·Bᵀ + …)ᵀ is B·A + …; numbers stand before 𝟏."""
    assert derived().matrix().splitlines()[-1] == expected
