"""Steps done over and over: values, derivatives, prints and errors of `cd.scan`, against Python's own loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from backends import TORCH, back, converted, double_precision, on
from known_programs import driven_pendulum

import combdiff as cd
from combdiff.ir import evaluate

V, M, R = cd.Space("n"), cd.Space("n", "n"), cd.Space()
Steps, U = cd.Space("T"), cd.Space("T", "n")
C, CM = cd.Space("n", dtype=complex), cd.Space("n", "n", dtype=complex)


@cd.program
def network(A: M, x0: V, u: U):
    last, states = cd.scan(lambda x, v: (np.tanh(A @ x + v), x), x0, u)
    return (last * last).sum() + (states * u).sum()


def network_loop(A: Any, x: Any, u: Any) -> Any:
    value = 0.0
    for v in u:
        value, x = value + x @ v, np.tanh(A @ x + v)
    return x @ x + value


def pendulum_loop(g: Any, v: Any, u: Any) -> Any:
    x, value = 0.3, 0.0
    for force in u:
        value = value + x
        v = v + 0.1 * (force - g * np.sin(x))
        value = value + v * v * force
        x = x + 0.1 * v
    return x * x + v + value


@cd.program
def turning(A: CM, z: C):
    def step(x, _):
        return A @ x + x * x, (x * cd.conj(x)).sum().real

    last, sizes = cd.scan(step, z, length=3)
    return (last * cd.conj(last)).sum().real + sizes.sum()


def turning_loop(A: Any, z: Any) -> Any:
    value = 0.0
    for _ in range(3):
        value, z = value + np.vdot(z, z).real, A @ z + z * z
    return np.vdot(z, z).real + value


@cd.program
def nested(A: M, x0: V, u: U):
    def outer(x, v):
        y, _ = cd.scan(lambda y, _: (np.tanh(A @ y), None), x * v, length=2)
        return y + v, y.sum()

    last, sums = cd.scan(outer, x0, u)
    return last.sum() + (sums * sums).sum()


def nested_loop(A: Any, x: Any, u: Any) -> Any:
    value = 0.0
    for v in u:
        y = np.tanh(A @ np.tanh(A @ (x * v)))
        value, x = value + y.sum() ** 2, y + v
    return x.sum() + value


@cd.program
def under_an_index(a: V, b: V):
    y = cd.tensor(lambda i: cd.scan(lambda s, _: (a[i] * s * (1 - s) + b[i], None), b[i] / 2, length=3)[0])
    return (y * a).sum()


def under_an_index_loop(a: Any, b: Any) -> Any:
    s = b / 2
    for _ in range(3):
        s = a * s * (1 - s) + b
    return (s * a).sum()


rng = np.random.default_rng(0)
CASES: list[tuple[cd.Program, Callable[..., Any], tuple[Any, ...]]] = [
    (network, network_loop, (rng.normal(size=(2, 2)), rng.normal(size=2), rng.normal(size=(3, 2)))),
    (driven_pendulum, pendulum_loop, (1.3, 0.2, rng.normal(size=4))),
    (turning, turning_loop, (rng.normal(size=(2, 2)) * (0.3 + 0.2j), rng.normal(size=2) + 0.4j)),
    (nested, nested_loop, (rng.normal(size=(2, 2)), rng.normal(size=2), rng.normal(size=(2, 2)))),
    (under_an_index, under_an_index_loop, (rng.normal(size=3), rng.normal(size=3))),
]
NAMES = [f.name for f, *_ in CASES]


def differences(f: Callable[..., Any], arguments: tuple[Any, ...], n: int, h: float = 1e-6) -> Any:
    """The gradient by central differences, along the real and the imaginary direction."""
    point = np.asarray(arguments[n])
    found = np.zeros(point.shape, point.dtype)
    for direction in (1, 1j) if np.iscomplexobj(point) else (1,):
        for entry in np.ndindex(point.shape):
            move = np.zeros(point.shape, point.dtype)
            move[entry] = h * direction
            ends = (f(*arguments[:n], point + move * sign, *arguments[n + 1 :]) for sign in (1, -1))
            found[entry] += direction * (next(ends) - next(ends)) / (2 * h)
    return found


@cache
def gradient(f: cd.Program, simplify: bool = True) -> cd.Program:
    return cd.value_and_grad(f, wrt=tuple(p.name for p in f.parameters), simplify=simplify)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("f", "loop", "arguments"), CASES, ids=NAMES)
def test_values_and_gradients_are_those_of_the_loop(
    f: cd.Program, loop: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    expected = loop(*arguments)
    sizes = {
        "n": max(np.shape(a)[-1] for a in arguments if np.ndim(a)),
        "T": len(arguments[-1]) if np.ndim(arguments[-1]) else 0,
    }
    np.testing.assert_allclose(f(*arguments), expected)
    meaning = evaluate(f.term.body, dict(zip(f.term.parameters, arguments, strict=True)), sizes)
    np.testing.assert_allclose(meaning, expected)
    slopes = [differences(loop, arguments, n) for n in range(len(arguments))]
    for derivative in (gradient(f, simplify=False), gradient(f)):
        value, found = derivative(*arguments)
        np.testing.assert_allclose(value, expected)
        for one, slope in zip(found, slopes, strict=True):
            np.testing.assert_allclose(one, slope, atol=1e-7)


@pytest.mark.sample(1)
@pytest.mark.parametrize("backend", ["jax", pytest.param("torch", marks=pytest.mark.needs("torch")), "dask"])
def test_every_library_computes_the_gradient(backend: str) -> None:
    for f, _, arguments in CASES[:2]:
        derivative = gradient(f)
        value, found = derivative(*arguments)
        other, others = derivative.compile(backend)(*arguments)
        np.testing.assert_allclose(np.asarray(other), value, rtol=1e-5)
        for one, two in zip(found, others, strict=True):
            np.testing.assert_allclose(np.asarray(two), one, rtol=1e-4, atol=1e-5)


def test_second_derivatives_are_those_of_differences_of_the_gradient() -> None:
    arguments = CASES[1][2]
    names = ("g", "v0", "u")
    vectors = [rng.normal(size=np.shape(a)) for a in arguments]
    slope, h = cd.grad(driven_pendulum, wrt=names), 1e-5
    ahead, behind = (slope(*(a + sign * h * v for a, v in zip(arguments, vectors, strict=True))) for sign in (1, -1))
    product = cd.hvp(driven_pendulum, wrt=names, simplify=False)(*arguments, *vectors)
    for found, one, two in zip(product, ahead, behind, strict=True):
        np.testing.assert_allclose(found, (one - two) / (2 * h), atol=1e-7)


@pytest.mark.parametrize("mode", ["reverse", "forward", "cross-country"])
def test_the_jacobian_of_the_last_state_in_every_mode(mode: str) -> None:
    @cd.program
    def last(A: M, x: V):
        return cd.scan(lambda y, _: (np.tanh(A @ y) + x, None), x, length=3)[0]

    def loop(A: Any, x: Any) -> Any:
        y = x
        for _ in range(3):
            y = np.tanh(A @ y) + x
        return y

    A, x = CASES[0][2][:2]
    found = cd.jacobian(last, "x", mode, simplify=False)(A, x)
    rows = [differences(lambda x, n=n: loop(A, x)[n], (x,), 0) for n in range(2)]
    np.testing.assert_allclose(found, rows, atol=1e-7)


def test_the_length_adds_nothing_to_the_derivation() -> None:
    def logistic(length: int) -> cd.Program:
        @cd.program
        def last(a: R):
            return cd.scan(lambda x, _: (a * x * (1 - x), None), 0.3, length=length)[0]

        return cd.grad(last)

    short, long = logistic(3), logistic(100_000)
    assert str(short) == (
        "a ↦\n"
        "  x[0] = 0.3\n"
        "  x[t + 1] = a x[t] (1 - x[t])\n"
        "  x2[3] = 1\n"
        "  x2[t] = a x2[t + 1] (1 - 2 x[t])\n"
        "  Σ_t x[t] x2[t + 1] (1 - x[t])"
    )
    assert str(long) == str(short).replace("x2[3]", "x2[100000]")


def test_programs_of_different_lengths_are_different() -> None:
    def powers(length: int) -> cd.Program:
        @cd.program
        def squares(a: R):
            return (cd.scan(lambda x, _: (a * x, x), 1.0, length=length)[1] ** 2).sum()

        return squares

    assert str(powers(3)) == "a ↦\n  x[0] = 1\n  x[t<3 + 1] = a x[t]\n  Σ_i x[i]²"
    assert powers(3) == powers(3) != powers(5)


def test_what_no_state_changes_is_done_before_the_loop() -> None:
    @cd.program
    def driven(A: M, B: M, x0: V, u: U):
        return cd.scan(lambda x, v: (A @ x + np.exp(B @ v), None), x0, u)[0]

    before, loop = driven.source().split("in range(T):")
    assert "np.exp" in before
    assert "np.exp" not in loop
    assert loop.count(" @ ") == 1


def test_what_the_scan_has_computed_is_not_computed_again() -> None:
    source = cd.value_and_grad(network, wrt=("A", "x0", "u")).source()
    assert source.count("np.tanh") == 1
    assert source.count("for ") == 2


@pytest.mark.thorough
def test_the_states_of_a_loop_in_a_loop_are_computed_again_once_and_for_all_steps() -> None:
    assert str(gradient(nested)).count("tanh") == 2  # it was four times


@cd.program
def implicit_euler(k: R, x0: R):
    def step(x, _):
        return cd.root(lambda y: y - x + 0.1 * k * y**3, like=x), None

    return cd.scan(step, x0, length=3)[0]


@cd.program
def through_a_map(D: cd.Function(V, result=V), x0: V, u: U):
    return cd.scan(lambda x, v: (D(x) + v, None), x0, u)[0].sum()


class Sine:
    """A map with a pullback that the library does not know."""

    def __call__(self, x: Any) -> Any:
        return np.sin(x)

    def pullback(self, position: int, arguments: tuple[Any, ...], cotangent: Any) -> Any:
        return cotangent * np.cos(arguments[0])


def test_solvers_and_maps_are_called_step_by_step() -> None:
    slopes = cd.grad(implicit_euler, wrt=("k", "x0"))(2.0, 1.0)
    for n, slope in enumerate(slopes):
        np.testing.assert_allclose(slope, differences(implicit_euler, (2.0, 1.0), n), atol=1e-8)
    x0, u = CASES[0][2][1:]
    for n, slope in enumerate(cd.grad(through_a_map, wrt=("x0", "u"))(Sine(), x0, u), start=1):
        np.testing.assert_allclose(slope, differences(through_a_map, (Sine(), x0, u), n), atol=1e-8)


@cd.program
def attention(A: M, x0: V):
    return (
        cd.scan(lambda x, _: (1000 * cd.softmax(A @ x), None), x0, length=3)[0].sum()
        + cd.scan(lambda x, _: (1000 * cd.softmax(A @ x), cd.logsumexp(A @ x)), x0, length=3)[1].sum()
    )


def attention_loop(A: Any, x: Any) -> Any:
    value = 0.0
    for _ in range(3):
        logits = A @ x
        shifted = np.exp(logits - logits.max())
        value = value + logits.max() + np.log(shifted.sum())
        x = 1000 * shifted / shifted.sum()
    return x.sum() + value


@pytest.mark.thorough
def test_steps_do_not_overflow_where_programs_do_not() -> None:
    arguments = np.array([[1.0, 0.3], [0.2, 1.1]]), np.array([1.0, 2.0])
    np.testing.assert_allclose(attention(*arguments), attention_loop(*arguments))
    slope = cd.grad(attention, "A")(*arguments)
    np.testing.assert_allclose(slope, differences(attention_loop, arguments, 0, 1e-7), rtol=1e-4)


def test_no_steps_give_the_start_and_empty_stacks() -> None:
    @cd.program
    def both(x0: V, u: U):
        return cd.scan(lambda x, v: (x * v, x + v), x0, u)

    x0 = np.ones(2)
    for backend in (None, "jax"):
        last, sums = both.compile(backend)(x0, np.ones((0, 2)))
        np.testing.assert_array_equal(last, x0)
        assert np.shape(sums) == (0, 2)
    assert not np.shares_memory(both(x0, np.ones((0, 2)))[0], x0)


def test_a_program_with_a_scan_is_pickled_and_printed_again() -> None:
    import pickle

    again = pickle.loads(pickle.dumps(network))
    assert again == network
    assert r"x_{t + 1,i} = \tanh" in network.latex()
    assert "𝐁^t" in network.combinators()
    assert cd.read(str(network), {p.name: p.type for p in network.parameters}) == network


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, u: cd.scan(3, x, u), "takes a function of a carry and an x, not 3"),
        (lambda x, u: cd.scan(lambda x, v: x + v, x, u), "the step of cd.scan gives one value"),
        (
            lambda x, u: cd.scan(lambda x, v: (x @ v, None), x, u),
            "is real over .'n'., but gives one that is a real num",
        ),
        (lambda x, u: cd.scan(lambda x, v: ((x, x), None), x, u), r"gives a carry \(·, ·\), but takes one ·"),
        (lambda x, u: cd.scan(lambda x, v: (x, None), x, (u, x)), "takes 'T' steps, but an x has 'n'"),
        (lambda x, u: cd.scan(lambda x, v: (x, None), x, u, length=3), "takes 3 steps, but an x has 'T'"),
        (lambda x, u: cd.scan(lambda x, v: (x, None), x), "is told no number of steps"),
        (lambda x, u: cd.scan(lambda x, v: (x, None), x, length=-1), "the length of cd.scan is -1"),
        (lambda x, u: cd.scan(lambda x, v: (x, None), x, 2.0), "one of them is a number"),
    ],
)
def test_what_is_no_scan_is_refused_at_the_users_line(call: Callable[..., Any], message: str) -> None:
    with pytest.raises(cd.CombdiffError, match=message) as caught:

        @cd.program
        def wrong(x: V, u: U):
            return call(x, u)[0]

    assert "test_scan.py" in str(caught.value)


def test_a_state_is_not_used_outside_of_its_step() -> None:
    kept = []

    def step(x: Any, _: Any) -> Any:
        kept.append(x)
        return x, None

    with pytest.raises(cd.TraceError, match="computes is used outside of the step"):

        @cd.program
        def leaking(x0: V):
            return cd.scan(step, x0, length=2)[0] + kept[0]


def test_what_is_read_beyond_the_end_of_a_short_tensor_is_zero_in_blocks_too() -> None:
    """[i ≤ 0] c[i] of a tensor of one number, where the steps are so many that chains over them go by blocks."""

    @cd.program
    def chain(x: cd.Space(1000)):
        shifted = lambda y: np.concatenate([np.ones(1), y[:-1]])  # noqa: E731
        return cd.scan(lambda y, _: (y + 0.1 * x * shifted(y), None), np.zeros(1000), length=200)[0].sum()

    x, v, h = rng.random(1000), rng.normal(size=1000), 1e-6
    slope = (chain(x + h * v) - chain(x - h * v)) / (2 * h)
    np.testing.assert_allclose(cd.grad(chain)(x) @ v, slope, rtol=1e-6)


def shifted(x: Any, v: Any) -> Any:
    """What is read beyond an end is 0, whatever 1 over it is."""
    return np.concatenate([(x / (v * v))[1:], x[:1]])


UNLIKE_STEPS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "the state is what was read": (lambda x, v: v, lambda x, v: v),
    "the state stays": (lambda x, v: v + cd.scan(lambda z, _: (z, None), x, length=2)[0], lambda x, v: v + x),
    "zeros beyond an end": (shifted, shifted),
}


@pytest.mark.parametrize("name", UNLIKE_STEPS)
def test_steps_of_all_kinds_are_those_of_the_loop(name: str) -> None:
    scanned, plain = UNLIKE_STEPS[name]

    @cd.program
    def f(x: V, u: U):
        last, before = cd.scan(lambda x, v: (scanned(x, v), x * v), x, u)
        return (last * last).sum() + (before * before).sum()

    def loop(x: Any, u: Any) -> Any:
        value = 0.0
        for v in u:
            value, x = value + (x * v) @ (x * v), plain(x, v)
        return x @ x + value

    rng = np.random.default_rng(0)
    x, u, dx, du = (rng.normal(size=shape) for shape in ((3,), (4, 3), (3,), (4, 3)))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(f(x, u), loop(x, u))
        gx, gu = cd.grad(f, wrt=("x", "u"), simplify=False)(x, u)
    ends = [loop(x + h * dx, u + h * du) for h in (1e-6, -1e-6)]
    np.testing.assert_allclose(gx @ dx + (gu * du).sum(), (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize("library", ["jax", TORCH])
def test_a_complex_state_may_become_real(library: str) -> None:
    @cd.program
    def f(A: CM, z: C):
        last, _ = cd.scan(lambda x, _: (np.abs(A @ x), None), z, length=3)
        return (A @ last * last).sum()

    rng = np.random.default_rng(0)
    A, z = (rng.normal(size=shape) + 1j * rng.normal(size=shape) for shape in ((2, 2), (2,)))
    last = np.abs(A @ np.abs(A @ np.abs(A @ z)))
    with double_precision():
        np.testing.assert_allclose(back(on(library, f)(*converted(library, (A, z)))), (A @ last * last).sum())


@pytest.mark.thorough
@pytest.mark.parametrize("library", ["jax", TORCH])
def test_what_begins_real_and_becomes_complex(library: str) -> None:
    """The first state is complex after one step, the second after two, the third never."""

    @cd.program
    def f(A: CM, x: V):
        def step(carry: Any, _: Any) -> Any:
            z, E, size = carry
            return (A @ z, E + z[0] * E.T, size + np.abs(z) ** 2), z[0] * size

        (z, E, size), firsts = cd.scan(step, (x, cd.eye("n"), cd.zeros("n", dtype=complex)), length=3)
        return (np.abs(E @ z) ** 2 + size).sum() + np.real(firsts.sum())

    def loop(A: Any, x: Any) -> Any:
        z, E, size, found = x, np.eye(2), np.zeros(2), 0
        for _ in range(3):
            found = found + (z[0] * size).sum()
            z, E, size = A @ z, E + z[0] * E.T, size + np.abs(z) ** 2
        return (np.abs(E @ z) ** 2 + size).sum() + np.real(found)

    rng = np.random.default_rng(0)
    A, x, dx = rng.normal(size=(2, 2)) + 1j * rng.normal(size=(2, 2)), rng.normal(size=2), rng.normal(size=2)
    slope, curvature = cd.grad(f, "x"), cd.hvp(f, "x")
    np.testing.assert_allclose(f(A, x), loop(A, x))
    np.testing.assert_allclose(slope(A, x) @ dx, (loop(A, x + 1e-6 * dx) - loop(A, x - 1e-6 * dx)) / 2e-6, rtol=1e-7)
    nearby = (slope(A, x + 1e-6 * dx) - slope(A, x - 1e-6 * dx)) / 2e-6
    np.testing.assert_allclose(curvature(A, x, dx), nearby, rtol=1e-6)
    cd.testing.check_grad(f, "A", A=A, x=x)
    with double_precision():
        for program, arrays in ((f, (A, x)), (slope, (A, x)), (curvature, (A, x, dx))):
            found = back(on(library, program)(*converted(library, arrays)))
            np.testing.assert_allclose(found, program(*arrays))


def test_a_largest_element_of_a_step_is_printed() -> None:
    @cd.program
    def f(x: V, u: U):
        return cd.scan(lambda s, v: (x.max(), s * v.sum()), 1.0, u)[1].sum()

    assert "max_j x[j]" in str(f), str(f)


def test_steps_made_stable_one_after_the_other_share_no_names() -> None:
    """The gradient has two scans whose steps scan and take roots; the second reads what the first has given."""

    @cd.program
    def f(A: M, b: V, s: R):
        def step(carry, _):
            s, x = carry
            last, sizes = cd.scan(lambda z, _: (b, s * s * z), s * x, length=2)
            y = last + sizes.sum(0)
            return (y @ (x @ A) / (3 + y @ y), x / np.sqrt(1 + y @ y)), None

        (s, x), _ = cd.scan(step, (s, b), length="n")
        return s * s + x @ x

    rng, h = np.random.default_rng(0), 1e-6
    A, b, s = (rng.normal(size=shape) for shape in ((2, 2), (2,), ()))
    found = cd.grad(f, wrt="s", simplify=False)(A, b, s)
    ends = [f(A, b, s + step) for step in (h, -h)]
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2 * h), rtol=1e-6)


def test_a_step_of_arrays_larger_than_caches_is_computed_in_parts() -> None:
    """The length of a part is a size of the step's own, which the program around it does not have."""

    @cd.program
    def logistic(X: cd.Space("n", "m"), c: R):
        return cd.scan(lambda s, _: (s * (1 - s) * c, None), X, length=4)[0]

    X = np.linspace(0.1, 0.9, 300 * 320).reshape(300, 320)
    expected = X
    for _ in range(4):
        expected = expected * (1 - expected) * 2.5
    np.testing.assert_allclose(logistic(X, 2.5), expected)
