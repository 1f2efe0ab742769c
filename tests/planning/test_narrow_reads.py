"""Sums around cycles, counted from where their factors read the fewest indices."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import combdiff as cd

Signal = cd.Space(cd.Cyclic("n"))
RNG = np.random.default_rng(6)


def test_lags_of_a_signal_make_no_array_of_three_axes() -> None:
    """The Hessian of a circular filter by its taps."""

    @cd.program
    def lags(x: Signal, w: cd.Space("m")):
        return cd.tensor(lambda a, d: w[a] * w[d] * cd.sum(lambda i: x[i] * x[d + i - a]))

    assert lags.cost(n=300, m=200).peak_bytes < 8 * 300 * 200 * 200 / 10
    x = RNG.normal(size=7)
    shifts = np.stack([np.roll(x, k) for k in range(5)], 1)
    np.testing.assert_allclose(lags(x, np.ones(5)), shifts.T @ shifts, rtol=1e-12)


FORMS = st.sampled_from(["i", "-i", "i + a", "i - a", "d - i", "a + i - d", "d + a - i", "2i", "i + 3"])


@given(st.lists(FORMS, min_size=1, max_size=3))
def test_sums_keep_their_values(forms: list[str]) -> None:
    read = " ".join(f"x[{form}]" for form in forms)
    program = cd.read(f"(x, w) ↦ (a<m, d<m) ↦ Σ_{{i mod n}} {read} w[a] w[d]", {"x": Signal, "w": cd.Space("m")})
    x, w = RNG.normal(size=5), RNG.normal(size=4)
    a, d, i = np.ogrid[:4, :4, :5]
    names = {"a": a, "d": d, "i": i}
    values = np.ones((4, 4, 5))
    for form in forms:
        values = values * x[eval(form.replace("2i", "2*i"), {}, names) % 5]
    np.testing.assert_allclose(program(x, w), values.sum(-1) * w[:, None] * w, rtol=1e-10, atol=1e-12)
