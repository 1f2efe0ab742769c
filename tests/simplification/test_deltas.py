"""After simplification no Σ holds a δ that it can take, whatever the budget and however the program is written."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir.indices import Delta
from combdiff.ir.interpreter import evaluate
from combdiff.ir.substitution import subterms
from combdiff.ir.terms import Add, Conj, Mul, Sum, Term, Var
from combdiff.simplification.normal_form.delta_solver import can_take

Camera, Ints = cd.Space("C", 3), cd.Space("O", dtype=int)


@cd.program
def contracted(z: cd.Space("p", "s"), a: cd.Space("s", "x"), b: cd.Space("x", "s", "p")):
    n = cd.einsum("sx,sy->xy", a, a)
    n = cd.einsum("xy,xsp,ysq->pq", n, b, b)
    return cd.log(cd.einsum("xy,xs,ys->", n, z, z))


@cd.program
def entropy(a: cd.Space("n", "m")):
    p = (1 + a) / 2
    return (p * np.log(p)).sum()


@cd.program
def softmax(a: cd.Space("n"), A: cd.Space("n", "n")):
    e = cd.exp(A @ a)
    return cd.log((e / e.sum() * a).sum())


@cd.program
def shifted(a: cd.Space("n"), w: cd.Space("k")):
    return cd.sum(lambda i, k: w[k] * (a[2 * i + k] - a[i]) ** 2, i=cd.Range("n"))


@cd.program
def bundle(a: Camera, t: Camera, f: cd.Space("C"), P: cd.Space("P", 3), cam: Ints, point: Ints, seen: cd.Space("O", 2)):
    """Bundle adjustment: points turned by Rodrigues' formula, moved and projected."""
    angle = cd.tensor(lambda o: cd.sqrt(cd.sum(lambda k: a[cam[o], k] ** 2)))
    axis = cd.tensor(lambda o, k: a[cam[o], k] / angle[o])
    X = cd.tensor(lambda o, k: P[point[o], k])
    even = [(0, 1, 2), (1, 2, 0), (2, 0, 1)]

    def sign(i: Any, j: Any, k: Any) -> Any:
        def at(p: int, q: int, r: int) -> Any:
            return cd.delta(i, p) * cd.delta(j, q) * cd.delta(k, r)

        return sum(at(p, q, r) - at(q, p, r) for p, q, r in even)

    ε = cd.tensor(sign, i=3, j=3, k=3)
    crossed = cd.einsum("ijk,oi,oj->ok", ε, axis, X)
    along = cd.einsum("ok,ok->o", axis, X)
    Y = cd.tensor(
        lambda o, k: (
            cd.cos(angle[o]) * X[o, k]
            + cd.sin(angle[o]) * crossed[o, k]
            + (1 - cd.cos(angle[o])) * along[o] * axis[o, k]
            + t[cam[o], k]
        )
    )

    def missed(n: int) -> Any:
        return cd.sum(lambda o: (f[cam[o]] * Y[o, n] / Y[o, 2] - seen[o, n]) ** 2)

    return missed(0) + missed(1)


def waiting(term: Term) -> Iterator[Delta]:
    """The δ's in a term that a Σ around them can take; reads at integers in arrays are taken where they stand."""

    def held(part: Term, indices: tuple[Var, ...], in_a_sum: bool = False) -> Iterator[Delta]:
        if isinstance(part, Delta) and can_take(indices, part) and (in_a_sum or not part.lookup):
            yield part
        if isinstance(part, Sum | Mul | Add | Conj):
            for child in part.children:
                yield from held(child, indices, in_a_sum or isinstance(part, Add))

    for part in subterms(term):
        if isinstance(part, Sum):
            yield from held(part.body, part.indices)


def bundle_arrays() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shapes = {"a": (2, 3), "t": (2, 3), "f": (2,), "P": (4, 3), "seen": (5, 2)}
    arrays: dict[str, Any] = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    arrays["t"][:, 2] += 9
    return {**arrays, "cam": np.array([0, 1, 1, 0, 1]), "point": np.array([0, 1, 2, 3, 3])}


PROGRAMS = [contracted, entropy, softmax, shifted]


@pytest.mark.thorough
@pytest.mark.parametrize("given", [{}, {"nodes": 10}, {"nodes": 1000}, {"rounds": 0}])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.name)
def test_no_sum_holds_a_delta_that_it_can_take(f: cd.Program, given: dict[str, int]) -> None:
    with warnings.catch_warnings(), cd.budget(**given):
        warnings.simplefilter("ignore", cd.BudgetWarning)
        gradient = cd.grad(f, "a")
        found = [gradient] if f is bundle else [gradient, cd.hvp(f, "a")]
    for program in found:
        assert list(waiting(program.term)) == []


@pytest.mark.thorough
def test_bundle_adjustment_is_derived_as_by_hand() -> None:
    with warnings.catch_warnings(), cd.budget(nodes=1000):  # a small one: it is derived faster, and no worse in value
        warnings.simplefilter("ignore", cd.BudgetWarning)
        gradients = cd.grad(bundle, ("a", "P"))
    assert list(waiting(gradients.term)) == []
    arrays = bundle_arrays()
    for found, name in zip(gradients(**arrays), ("a", "P"), strict=True):
        for place in np.ndindex(found.shape):
            step = np.zeros(found.shape)
            step[place] = 1e-6
            ends = [bundle(**{**arrays, name: arrays[name] + sign * step}) for sign in (1, -1)]
            np.testing.assert_allclose(found[place], (ends[0] - ends[1]) / 2e-6, rtol=1e-4, atol=1e-4)


def test_the_entropy_of_two_axes() -> None:
    assert str(cd.grad(entropy)) == "a ↦ (d, e) ↦ 1/2 (1 + log(1/2 (1 + a[d,e])))"


@cd.program
def reflected(x: cd.Space("m", 3), y: cd.Space("m", 3)):
    """A tensor with pieces of its own at some positions, read in products and at a number."""
    turned = cd.tanh(x[:, :1]) * y + np.cross(x, y)
    return ((turned / turned[:, 2:]) ** 2).sum()


@pytest.mark.thorough
def test_a_tensor_of_which_some_positions_have_a_piece_more_keeps_its_name() -> None:
    gradient = cd.grad(reflected, ("x", "y"))
    assert str(gradient).count("turned[") > 4
    assert len(str(gradient)) < 1000  # multiplied out it has 1300
    rng = np.random.default_rng(0)
    cd.testing.check_grad(reflected, ("x", "y"), x=rng.normal(size=(4, 3)), y=rng.normal(size=(4, 3)))


def test_an_index_of_the_user_is_no_index_of_the_solver() -> None:
    """What is left of 2i + 3j = d runs over an index of its own, which the solver calls z0 on its way."""

    @cd.program
    def weighted(x: cd.Space("n"), y: cd.Space("n"), w: cd.Space("n")):
        return cd.tensor(lambda d, z0: cd.sum(lambda i, j: cd.delta(2 * i + 3 * j, d) * x[i] * y[j] * w[z0]), d=11)

    x, y, w = np.arange(1.0, 4), np.arange(2.0, 5), np.array([1.0, 10, 100])
    expected = np.zeros((11, 3))
    for i, j in np.ndindex(3, 3):
        expected[2 * i + 3 * j] += x[i] * y[j] * w
    np.testing.assert_allclose(weighted(x, y, w), expected)
    np.testing.assert_allclose(cd.simplify(weighted)(x, y, w), expected)


@pytest.mark.parametrize(
    "written",
    [
        "Σ_{i,j} δ(2 i, 3 j) x[i] y[j]",
        "(k, l) ↦ w[k] w[l] Σ_{i,j} δ(2 i + 3 j, k) δ(4 i + 6 j, l) x[i] y[j]",
        "k ↦ w[k] Σ_{i,j,l} δ(2 i + 3 j, k + l) δ(2 j + 5 l, 9) x[i] y[j] w[l]",
    ],
)
def test_what_has_no_closed_bounds_is_solved_for_the_unknowns_that_others_determine(written: str) -> None:
    program = cd.read(f"x (n), y (n), w (m)\n(x, y, w) ↦ {written}")
    simple = cd.simplify(program)
    assert list(waiting(simple.term)) == []
    arrays = np.arange(1.0, 5), np.arange(2.0, 6), np.arange(1.0, 21)
    meant = evaluate(program.term.body, dict(zip(program.term.parameters, arrays, strict=True)), {"n": 4, "m": 20})
    assert np.any(meant)
    np.testing.assert_allclose(simple(*arrays), meant)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::combdiff.BudgetWarning")
def test_squares_of_what_holds_a_delta_are_squares() -> None:
    """A coefficient that is bound stands beside each factor as often as the factor is there."""

    @cd.program
    def bent(z: cd.Space(dtype=complex), i: cd.Space("n", dtype=int)) -> Any:  # type: ignore[valid-type]
        def element(j: Any) -> Any:
            u = cd.delta(j, i[0]) * z
            t = cd.arctan(u / (2 + cd.real(u * cd.conj(u))))
            return cd.real(t / (2 + t * cd.conj(t)))

        u = cd.tensor(element, j="n")
        return cd.tensor(lambda j, k: cd.hypot(1 + u[j], u[j]), j="n", k="n")

    arrays = 0.12 + 0.09j, np.array([0]), np.ones((1, 1))
    simple, raw = (cd.pullback(bent, "z", simplify=each)(*arrays) for each in (True, False))
    assert simple == pytest.approx(raw, abs=1e-12)


@pytest.mark.parametrize(
    ("written", "short"),
    [
        ("(i<2, j<4) ↦ δ(j, i) [j ≤ 1] s[j] x[j]²", "(i, j) ↦ δ(i, j) s[i] x[i]²"),
        ("(j<4, i<2) ↦ δ(j, i + 1) [1 ≤ j ≤ 2] s[j - 1] x[j]²", "(j<4, i) ↦ δ(j, i + 1) s[i] x[i + 1]²"),
        ("(i<4, j<2) ↦ δ(i, 1) s[j] x[i]²", "(i<4, j) ↦ δ(i, 1) s[j] x[1]²"),
        ("(i<4, j<3) ↦ δ(i, j + 2) x[i]²", "(i, j<3) ↦ δ(i, j + 2) x[i]²"),
    ],
)
def test_what_a_delta_says_of_an_index_stands_for_it(written: str, short: str) -> None:
    """Of the larger domain: no condition has to guard what is left; not where it may be outside of it."""
    spaces = {"s": cd.Space(2), "x": cd.Space(4)}
    program = cd.read(f"(s, x) ↦ {written}", spaces)
    simple = cd.simplify(program)
    assert str(simple).replace("<2", "").replace("j<4", "j") == f"(s, x) ↦ {short}".replace("j<4", "j")
    arrays = {"s": np.array([2.0, 3.0]), "x": np.array([5.0, 7.0, 11.0, 13.0])}
    np.testing.assert_array_equal(simple(**arrays), program(**arrays))


@pytest.mark.parametrize(
    ("axes", "slope"),
    [
        (("n",), "d ↦ -3 Σ_i x[i] (c[d,i] + c[i,d]) / (x[d] x[i] + δ(d, i))⁴"),
        (
            ("n", "k"),
            "(d, e) ↦ 6 Σ_i (c[d,i] + c[i,d]) (x[i,e] - x[d,e]) / (δ(d, i) + Σ_k (x[d,k] - x[i,k])²)⁴",
        ),
    ],
    ids=["products", "distances"],
)
def test_powers_of_a_sum_with_a_delta_meet_before_they_are_multiplied_out(axes: tuple[str, ...], slope: str) -> None:
    """A unit matrix keeps what stands beside it from being 0: its squares and cubes were sums of δ's for themselves."""

    def pairs(x: Any, c: Any) -> Any:
        apart = x[:, None] * x if len(axes) == 1 else np.sum((x[:, None] - x) ** 2, axis=-1)
        return np.sum(c / (apart + cd.eye(x.shape[0])) ** 3)

    pairs.__annotations__ = {"x": cd.Space(*axes), "c": cd.Space("n", "n")}
    program = cd.program(pairs)
    assert str(cd.grad(program)) == f"(x, c) ↦ {slope}"
    rng = np.random.default_rng(0)
    cd.testing.check_grad(program, "x", x=rng.uniform(1, 2, (4, 3)[: len(axes)]), c=rng.normal(size=(4, 4)))


@pytest.mark.parametrize("size", ["n", 5])
def test_an_index_at_an_end_of_its_range_is_that_end(size: Any) -> None:
    """Edges that are repeated stood as sums over one index, `δ(d, 0) Σ_{i=0}^{0} cos(t[i]) sin(t[i])`."""
    space = cd.Space(size)

    @cd.program
    def f(c: space):
        ends = cd.tensor(lambda i: cd.where(i <= 0, c[i], 0) + cd.where(i + 1 >= c.shape[0], c[i], 0) * c[0], i=size)
        return cd.sum(lambda i: np.sin(ends[i]) * c[i]) + cd.sum(lambda i: cd.where(i <= 0, c[i] ** 3, 0))

    gradient = cd.grad(f, "c")
    assert not re.search(r"Σ_\{(\w)=(.*?)\}\^\{\2\}", str(gradient)), gradient
    cd.testing.check_grad(f, "c", c=np.array([0.3, -0.4, 0.7, 0.2, -0.5]))


def test_the_gradient_of_repeated_edges() -> None:
    @cd.program
    def padded(c: cd.Space("n")):
        return (np.sin(np.pad(c, 1, mode="edge")) ** 2).sum()

    gradient = cd.grad(padded, "c")
    text = str(gradient).replace("\n", " ")
    assert "Σ" not in text
    assert "δ(d, 0) cos(c[0]) sin(c[0])" in text
    cd.testing.check_grad(padded, "c", c=np.array([0.3, -0.4, 0.7]))
