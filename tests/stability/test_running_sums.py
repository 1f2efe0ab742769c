"""Log-sum-exps of all up to each position, in time and memory that grow as the positions do, at numbers of every size.

    log Σ_{j ≤ i} exp(x[j])        r[i]·Σ_{j < i} w[j]·exp(x[j] − x[i])

What is at risk at each time (Cox), what is left to be ranked (ListMLE), what decays from event to event (Hawkes).
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, back, converted, double_precision, on, quiet
from measuring import measured

import combdiff as cd
from combdiff.kernels.running import _log_sums_so_far
from combdiff.planning.lowering import lower, shifts

Vector, Matrix = cd.Space("n"), cd.Space("n", "n")


@cd.program
def cox(x: Vector, w: Vector):
    return np.sum(w * (x - np.log(np.flip(np.cumsum(np.flip(np.exp(x)))))))


@cd.program
def ranking(x: Vector, w: Vector):
    return cd.sum(lambda i: w[i] * cd.log(1 + cd.sum(lambda j: cd.where(j <= i, cd.exp(x[j]), 0))))


@cd.program
def rows(x: cd.Space("m", "n"), w: Vector):
    return np.sum(w * np.log(np.cumsum(np.exp(x), axis=1)))


@pytest.mark.thorough
@pytest.mark.parametrize("f", [cox, ranking, rows], ids=["cox", "ranking", "rows"])
def test_no_array_of_pairs_is_made(f: cd.Program) -> None:
    n, rng = 20_000, np.random.default_rng(0)
    x, w = rng.normal(size=(2, n)[f is not rows :]) * 30, rng.uniform(size=n)
    for program, more in ((f, ()), (cd.grad(f, "x"), ()), (cd.hvp(f, "x"), (x,))):
        _, most = measured(lambda program=program, more=more: program(x, w, *more))
        assert most < 40 * x.nbytes


@pytest.mark.sample(2)
@pytest.mark.parametrize("size", [1, 800, 1e5, 1e150, 1e300])
def test_at_numbers_of_every_size(size: float) -> None:
    """As a loop over positions has it that takes each largest exponent by itself."""
    x, w, move = np.random.default_rng(1).normal(size=(3, 9)) * [[size], [1], [1]]
    later = [x[i:] for i in range(9)]
    logs = np.array([r.max() + np.log(np.exp(r - r.max()).sum()) for r in later])
    assert cox(x, w) == pytest.approx(float(np.sum(w * (x - logs))), rel=1e-12)
    shares = np.triu(np.exp(np.minimum(x - logs[:, None], 0)))
    np.testing.assert_allclose(cd.grad(cox, "x")(x, w), w - w @ shares, rtol=1e-9, atol=1e-12)
    slopes = [w[i] * (shares[i] * move - shares[i] * (shares[i] @ move)) for i in range(9)]
    np.testing.assert_allclose(cd.hvp(cox, "x")(x, w, move), -np.sum(slopes, 0), rtol=1e-9, atol=1e-12)


def test_infinite_exponents() -> None:
    running = cd.program(_log_cumsum_exp)
    x = np.array([-np.inf, -np.inf, 1.0, -np.inf, 3.0, np.inf, 2.0])
    with np.errstate(divide="ignore"):
        found = running(x)
    np.testing.assert_allclose(found, np.logaddexp.accumulate(x))


def _log_cumsum_exp(x: Vector):
    return np.log(np.cumsum(np.exp(x)))


@pytest.mark.parametrize("kind", [float, np.float32, int])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("later", [False, True])
def test_a_log_sum_exp_so_far_is_one_call_of_numpys(kind: type, axis: int, later: bool) -> None:
    """Up to each position and from it on, along each axis."""

    def so_far(x: cd.Space("m", "n")):
        def element(i: Any, j: Any) -> Any:
            own, read = (i, lambda k: x[k, j]) if axis == 0 else (j, lambda k: x[i, k])
            return cd.log(cd.sum(lambda k: cd.where(k >= own if later else k <= own, cd.exp(read(k)), 0)))

        return cd.tensor(element, i=x.shape[0], j=x.shape[1])

    program = cd.program(so_far)
    source = program.source()
    assert source.count("np.logaddexp.accumulate(") == source.count("def ") == 1
    x = (np.random.default_rng(2).normal(size=(4, 7)) * 300).astype(kind)
    way = slice(None, None, -1 if later else 1)
    flipped = x[way] if axis == 0 else x[:, way]
    expected = np.logaddexp.accumulate(flipped.astype(float), axis)
    found = program(x)
    assert found.dtype == (np.float32 if kind is np.float32 else float)
    again = found[way] if axis == 0 else found[:, way]
    np.testing.assert_allclose(again, expected, rtol=2 * np.finfo(found.dtype).eps)


@pytest.mark.parametrize("library", BACKENDS)
def test_every_library_accumulates_log_sum_exps(library: str) -> None:
    """Along each axis and both ways, of exponents that a mask has made −∞; in every word of the libraries."""

    @cd.program
    def both_ways(x: cd.Space("m", "n")):
        so_far = np.log(np.cumsum(np.exp(2 * x), axis=0))
        later = cd.tensor(lambda i, j: cd.log(cd.sum(lambda k: cd.where(k >= j, cd.exp(x[i, k]), 0))), j=x.shape[1])
        return so_far, later

    x = np.random.default_rng(4).normal(size=(4, 5)) * 300
    x[0, 4] = x[0, 0] = -np.inf
    with double_precision(), quiet(library):
        found = back(on(library, both_ways)(*converted(library, [x])))
    np.testing.assert_allclose(found[0], np.logaddexp.accumulate(2 * x, 0), rtol=1e-14)
    np.testing.assert_allclose(found[1], np.logaddexp.accumulate(x[:, ::-1], 1)[:, ::-1], rtol=1e-14)
    np.testing.assert_allclose(_log_sums_so_far(np, x, 1), np.logaddexp.accumulate(x, 1), rtol=1e-14)  # CuPy's


@pytest.mark.thorough
def test_what_stands_beside_an_empty_sum_may_overflow() -> None:
    """exp(2 x[d]) beside a Σ over the later positions, of which the last has none."""

    @cd.program
    def decaying(x: Vector, w: Vector):
        def earlier(i: Any) -> Any:
            return cd.sum(lambda j: cd.where(j < i, cd.exp(2 * (x[j] - x[i])), 0))

        return cd.sum(lambda i: w[i] * cd.log(2 + earlier(i)))

    x, w = np.arange(9.0) * 300, np.ones(9)
    assert cd.grad(decaying, "x")(x, w) == pytest.approx(np.zeros(9), abs=1e-100)
    x /= 1000
    step = 1e-6 * np.cos(x)
    ahead, behind = decaying(x + step, w), decaying(x - step, w)
    assert cd.grad(decaying, "x")(x, w) @ step == pytest.approx((ahead - behind) / 2, rel=1e-7)


class Drawn(random.Random):
    """Texts of programs of vectors x and y and of a matrix A."""

    def condition(self) -> str:
        return self.choice(("j <= i", "j < i", "j >= i", "j > i", "j <= i + 1", "j + 2 <= i", "i + j <= 4", "j != i"))

    def exponent(self) -> str:
        mixed = ("x[j] - x[i]", "y[j] - 2*x[i]", "2*(x[j] - y[i])", "A[j, i]", "A[j, 0]*x[i]", "cd.sin(x[j]) - y[i]")
        masked = "cd.where(y[j] > 0, x[j], -np.inf)"
        return self.choice(("x[j]", "x[j]", "2*x[j]", "x[j] + y[j]", "-x[j]", "x[j]*y[j]", masked, *mixed))

    def weight(self) -> str:
        inner = "cd.sum(lambda k: A[j, k]*y[k])"
        return self.choice(("1", "1", "y[j]", "y[j]**2", "A[j, i]", "y[i]", "(x[j] - x[i])", "A[j, 0]", inner))

    def running(self, weight: str) -> str:
        term = f"cd.where({self.condition()}, {weight}*cd.exp({self.exponent()}), 0)"
        return f"cd.sum(lambda j: {term}, j='n')"

    def program(self) -> str:
        weighted, plain = self.running(self.weight()), self.running(self.choice(("1", "y[j]**2", "A[j, i]**2")))
        more = self.choice(("0", "1", "cd.exp(x[i])"))
        element = self.choice(
            (
                f"y[i]*cd.log({more} + 0.1 + {plain})",
                f"y[i]*cd.log({more} + {self.running('1')} + cd.exp(-x[i]))",
                f"{weighted}/(1 + {self.running('1')})",
                f"cd.exp(-x[i])*{weighted}",
                f"1/(1 + cd.exp(x[i])*{self.running('1')})",
            )
        )
        return f"cd.sum(lambda i: {element}, i='n')"


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(40))
def test_running_sums_are_what_sums_of_pairs_are(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, rng = Drawn(seed), np.random.default_rng(seed)
    text, size, name = drawn.program(), drawn.choice((0.5, 0.5, 30, 800)), drawn.choice("xxy")
    x, y, move = rng.normal(size=(3, 5)) * np.array([[size], [1], [1]])
    arrays = x, y, rng.normal(size=(5, 5))

    def results() -> list[Any]:
        f: Any = eval(f"lambda x, y, A: {text}", {"np": np, "cd": cd})
        f.__annotations__ = {"x": Vector, "y": Vector, "A": Matrix}
        program = cd.program(f)
        product = cd.hvp(program, name, simplify=seed % 2 == 0)
        return [program(*arrays), cd.grad(program, name)(*arrays), product(*arrays, move)]

    with np.errstate(all="ignore"):
        found = results()
        monkeypatch.setattr(lower, "running_exponentials", lambda *_: None)
        monkeypatch.setattr(shifts, "prefix_largest", lambda *_: None)
        monkeypatch.setattr(lower, "summed_intermediates", lambda _: frozenset())
        expected = results()
    for one, other in zip(found, expected, strict=True):
        there = np.isfinite(other)
        most = np.abs(np.where(there, other, 0)).max()
        np.testing.assert_allclose(np.where(there, one, 0), np.where(there, other, 0), rtol=1e-8, atol=1e-10 * most)
