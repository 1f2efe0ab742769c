"""Recurrences, roots and minima read back: the scans and searches that they show."""

from __future__ import annotations

import numpy as np
import pytest
from known_programs import driven_pendulum
from strategies import assert_reads_back

import combdiff as cd
from combdiff.api.sameness import signature
from combdiff.ir.domains import Range
from combdiff.ir.indices import affine
from combdiff.ir.iteration import AFTER, BEFORE, LAST, Scan
from combdiff.ir.terms import Apply, Lambda, Tuple, Var, add, let, mul
from combdiff.printing.plain import text as printed

Matrix, Vector, Number, Inputs = cd.Space("n", "n"), cd.Space("n"), cd.Space(), cd.Space("T", "n")
RNG = np.random.default_rng(0)


@cd.program
def network(A: Matrix, x0: Vector, u: Inputs):
    last, states = cd.scan(lambda x, v: (np.tanh(A @ x + v), x), x0, u)
    return last @ last + (states * u).sum()


@cd.program
def loops_in_loops(A: Matrix, x0: Vector):
    def step(x, _):
        inner, _ = cd.scan(lambda y, _: (np.sin(A @ y) + x, None), x, length=2)
        return inner, inner

    last, ys = cd.scan(step, x0, length=3)
    return last.sum() + (ys**2).sum()


@cd.program
def stiff(k: Number, x0: Number):
    last, _ = cd.scan(lambda x, _: (cd.root(lambda y: y - x + 0.1 * k * y**3, like=x), None), x0, length=3)
    return last


@cd.program
def least(A: Matrix, x0: Vector):
    x = cd.argmin(lambda x: x @ A @ x / 2 - x0 @ x, like=x0)
    return x @ x


@cd.program
def shooting(A: Matrix, x0: Vector):
    """A scan inside an equation: each of its steps reads what is sought."""

    def missed(y):
        last, _ = cd.scan(lambda x, _: (0.3 * np.sin(A @ x) + 0.2 * y, None), x0, length=3)
        return y - last

    y = cd.root(missed, like=x0)
    return y @ y


@cd.program
def two_lengths(x0: Vector):
    first, _ = cd.scan(lambda x, _: (np.sin(x), None), x0, length=2)
    _, second = cd.scan(lambda x, _: (np.cos(x), x), first, length=3)
    return (second**2).sum()


@cd.program
def solved_in_loops(A: Matrix, x0: Vector, u: Inputs):
    """Equations in a loop in a loop: one is solved after the other."""

    def step(x, v):
        return cd.scan(lambda z, _: (cd.root(lambda y: y + y**3 - A @ z - v, like=x), None), x, length=2)[0], None

    return (cd.scan(step, x0, u)[0] ** 2).sum()


@cd.program
def visited(A: Matrix, x0: Vector, steps: cd.Space("n", dtype=int)):
    """What integers hold is the number of a step."""
    _, states = cd.scan(lambda x, _: (np.sin(A @ x), np.sin(A @ x)), x0, length=4)
    _, values = cd.scan(lambda x, _: (np.cos(A @ x), x), x0, length=7)
    return np.sum(states[steps] ** 2) + np.sum(values[2 * steps] ** 3)


@cd.program
def steps_over_a_part(x0: Vector, v: cd.Space(4), w: cd.Space(3, 5)):
    """The index of the steps reads axes that are longer, and those read the states."""
    last, states = cd.scan(lambda x, u: (np.sin(u[0] * x) + u[1] * x0, u[0] * x), x0, (v[:2], w[1, 1:3]))
    return states.sum() + last @ last


@cd.program
def filtered(Q: cd.Space(2, 2), A: cd.Space(2, 2), ys: cd.Space(4)):
    """A Kalman filter: what a step computes of its states, other steps read, so that it has a line among them."""

    def step(state, y):
        m, P = A @ state[0], A @ state[1] @ A.T + Q @ Q.T
        s, e, k = P[0, 0] + 0.2, y - m[0], P[:, 0] / (P[0, 0] + 0.2)
        return (m + k * e, P - np.outer(k, P[0])), (np.log(s) + e**2 / s) / 2

    return cd.scan(step, (np.zeros(2), np.eye(2)), ys)[1].sum()


@cd.program
def predators(p: cd.Space(4), x0: cd.Space(2)):
    """Lotka and Volterra's equations by the midpoint rule; decimals stand in front of sums or in them."""

    def slope(x):
        return np.stack([p[0] * x[0] - p[1] * x[0] * x[1], p[2] * x[0] * x[1] - p[3] * x[1]])

    last, states = cd.scan(lambda x, _: (x + 0.1 * slope(x + 0.05 * slope(x)), x), x0, length=5)
    return (states[:, 0] ** 2).sum() + last[1]


ARRAYS = {
    "A": np.eye(3) + 0.1 * np.ones((3, 3)),
    "x0": RNG.normal(size=3),
    "u": RNG.normal(size=(4, 3)),
    "k": 0.7,
    "g": 9.81,
    "v0": 0.2,
    "v": RNG.normal(size=4),
    "w": RNG.normal(size=(3, 5)),
    "steps": np.array([0, 3, 3]),  # the last of which ends with what no step begins with
}
OTHERS = {"stiff": {"x0": 1.1}, "driven_pendulum": {"u": RNG.normal(size=4)}}
DERIVED = {"program": lambda f, name: f, "gradient": cd.grad, "raw": lambda f, name: cd.grad(f, name, simplify=False)}


@pytest.mark.parametrize("program", [filtered, predators], ids=lambda f: f.name)
def test_what_steps_compute_of_their_states_is_what_they_give(program: cd.Program) -> None:
    gradient = cd.grad(program, program.parameters[0].name)
    given = {"Q": RNG.normal(size=(2, 2)), "A": np.array([[1, 0.1], [0, 1]]), "ys": RNG.normal(size=4)}
    given |= {"p": np.full(4, 0.7), "x0": np.array([1.0, 0.5])}
    again = assert_reads_back(gradient.term, {p: given[p.name] for p in gradient.parameters}, {})
    assert again == gradient
    assert len(str(again)) <= 1.05 * len(str(gradient))


@cd.program
def traces(A: Matrix, y: Vector):
    """What a step gives is read on a diagonal of what it computes."""

    def step(s, e):
        inside = s @ A / 3 + np.outer(y, e) / 2
        return np.tanh(inside), np.trace(inside)

    return (cd.scan(step, A, A)[1] ** 2).sum()


@cd.program
def sums_so_far(x0: Vector, v: cd.Space(4, "n")):
    """Sums in sums, with conditions on their indices and in parts that have names; the last state in two ways."""
    last, states = cd.scan(lambda x, u: (np.tanh(np.cumsum(x) + u), x), x0, v)
    return (np.cumsum(states, 0) / 3).sum() + states[-1] @ last + (np.cumsum(states, 1) ** 2).sum()


@cd.program
def chosen(x0: Vector, v: cd.Space(4, "n")):
    """Comparisons, which hold or do not, in front of products that the steps give."""

    def step(x, u):
        new = np.tanh(np.where(u >= x0, u, 0.1 * u) * np.tanh(x))
        return new, new * np.where(u >= x0, u, 0.1 * u)

    last, given = cd.scan(step, x0, v)
    return last.sum() + (given**2).sum()


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", DERIVED)
@pytest.mark.parametrize("program", [traces, sums_so_far, chosen], ids=lambda f: f.name)
def test_what_is_read_is_the_program_whatever_has_a_name(program: cd.Program, kind: str) -> None:
    found = DERIVED[kind](program, program.parameters[-1].name)
    arrays = {"A": ARRAYS["A"], "x0": ARRAYS["x0"], "y": ARRAYS["x0"], "v": ARRAYS["u"]}
    assert assert_reads_back(found.term, {p: arrays[p.name] for p in found.parameters}, {"n": 3}) == found


def test_sums_of_sums_of_many_steps_are_compared() -> None:
    """Each written where the next reads it, 28 sums of three terms that read two sums each would be 2²⁸ terms."""

    @cd.program
    def stepped(x: Number, v: Number, h: Number):
        for _ in range(14):
            x, v = x + h * v - 0.1 * x * v, v - h * x + 0.2 * x * v
        return x * v

    gradient = cd.grad(stepped, "h")
    assert cd.read(str(gradient), dict.fromkeys("xvh", Number)) == gradient
    assert cd.read(str(gradient).replace("0.2", "0.3"), dict.fromkeys("xvh", Number)) != gradient


def test_a_state_has_one_name_where_a_matrix_function_is_of_it() -> None:
    @cd.program
    def products(x0: Vector, v: cd.Space(4, "n")):
        last, states = cd.scan(lambda x, u: (np.sin(np.cumprod(x) + u), x), x0, v)
        return last.sum() + (states**2).sum()

    gradient = cd.grad(products, "x0")
    assert "Π_{j=0}^{i} x[t,j]" in str(gradient)
    assert (
        assert_reads_back(
            gradient.term, {p: ARRAYS["x0" if p.name == "x0" else "u"] for p in gradient.parameters}, {"n": 3}
        )
        == gradient
    )


def test_definitions_of_inner_and_outer_steps_are_read() -> None:
    """One of an inner step, which the outer one reads after it, and one that both read."""
    text = (
        "(a, x0) ↦\n  x[0] = x0\n  c[t] = sin(x[t])\n  y[t,0] = x[t]\n  d[t,s] = a c[t] y[t,s]\n"
        "  y[t,s<3 + 1] = cos(d[t,s])\n  x[t<4 + 1] = c[t] + Σ_{s<3} d[t,s] + y[t,3]\n  Σ_{t<4,s<3} c[t] d[t,s] + x[4]"
    )
    found = cd.read(text, {"a": Number, "x0": Number})

    def by_hand(a: float, x: float) -> float:
        value = 0.0
        for _ in range(4):
            c, y, d = np.sin(x), x, []
            for _ in range(3):
                d.append(a * c * y)
                y = np.cos(d[-1])
            x = c + sum(d) + y
            value += c * sum(d)
        return value + x

    np.testing.assert_allclose(found(0.7, 0.3), by_hand(0.7, 0.3))
    assert cd.read(str(found), {"a": Number, "x0": Number}) == found
    with pytest.raises(cd.TextError, match="a step reads a state as the step before left it alone"):
        cd.read(text.replace("cos(d[t,s])", "cos(d[t,0])"), {"a": Number, "x0": Number})


def test_definitions_stand_in_any_order_between_a_state_and_its_step() -> None:
    """One of a state before one that is of none, and a sum over steps that are not known yet."""
    text = (
        "(a, u) ↦\n  x[0] = a\n  p[t] = sin(x[t])\n  s = Σ_t p[t] x[t + 1]\n  q[t] = u[t]² + a\n"
        "  x[t<3 + 1] = p[t] q[t]\n  s + q[2]"
    )
    found = cd.read(text, {"a": Number, "u": cd.Space(3)})
    u, x, total = np.array([0.3, 0.7, -0.2]), 0.4, 0.0
    for each in u:
        p, x = np.sin(x), np.sin(x) * (each**2 + 0.4)
        total += p * x
    np.testing.assert_allclose(found(0.4, u), total + u[2] ** 2 + 0.4)


def test_a_definition_of_more_steps_than_there_are_is_written_out_in_the_step() -> None:
    text = "a ↦\n  x[0] = a\n  p[t<4] = sin(x[t])\n  q[t<4] = p[t] / 2\n  x[t<3 + 1] = p[t] + q[t]\n  Σ_{t<4} p[t]"
    states = [0.3]
    for _ in range(3):
        states.append(1.5 * np.sin(states[-1]))
    np.testing.assert_allclose(cd.read(text, {"a": Number})(0.3), np.sin(states).sum())


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", DERIVED)
@pytest.mark.parametrize(
    "program",
    [network, loops_in_loops, stiff, least, driven_pendulum, shooting, two_lengths],
    ids=lambda f: f.name,
)
def test_recurrences_and_searches_are_read(program: cd.Program, kind: str) -> None:
    found = DERIVED[kind](program, program.parameters[0].name)
    given = {p: {**ARRAYS, **OTHERS.get(program.name, {})}[p.name] for p in found.parameters}
    for width in (20, 100):
        again = assert_reads_back(found.term, given, {"n": 3, "T": 4}, width)
    assert again == found


@pytest.mark.parametrize("name", ["v", "w"])
def test_steps_over_a_part_of_an_axis_are_read(name: str) -> None:
    gradient = cd.grad(steps_over_a_part, name)
    assert assert_reads_back(gradient.term, {p: ARRAYS[p.name] for p in gradient.parameters}, {"n": 3}) == gradient


@pytest.mark.parametrize("kind", DERIVED)
def test_an_index_of_two_domains_is_read(kind: str) -> None:
    """It reads the steps and an axis that is symmetric about 0: bounds alone would not tell which it is."""
    signed = cd.Space(cd.Symmetric(1))

    @cd.program
    def crossed(x0: signed):
        _, states = cd.scan(lambda x, _: (0.5 * x, x), x0, length=2)
        return cd.sum(lambda p: cd.where(p >= 1, states[p, p] * x0[p], 0), p=cd.Symmetric(1))

    found = DERIVED[kind](crossed, "x0")
    assert_reads_back(found.term, {found.parameters[0]: ARRAYS["x0"]}, {})


@pytest.mark.thorough
def test_all_that_a_state_is_has_one_more_entry_than_steps() -> None:
    """Of a state that is read from the first to the last, each element is before a step or after one."""
    forward = cd.read("a ↦\n  x[0] = a\n  x[t<3 + 1] = 2 x[t]\n  t<4 ↦ x[t]²", {"a": Number})
    backward = cd.read("a ↦\n  x[3] = a\n  x[t<3] = 2 x[t + 1]\n  t<4 ↦ x[t]²", {"a": Number})
    np.testing.assert_array_equal(forward(1.0), [1, 4, 16, 64])
    np.testing.assert_array_equal(backward(1.0), [64, 16, 4, 1])
    np.testing.assert_array_equal(cd.jacobian(forward, "a")(3.0), [6, 24, 96, 384])
    with pytest.raises(cd.IndexingError, match="is read at t - 1 = 3"):
        cd.read("a ↦\n  x[0] = a\n  x[t<3 + 1] = 2 x[t]\n  t<5 ↦ x[t]²", {"a": Number})


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", DERIVED)
def test_states_are_read_at_integers(kind: str) -> None:
    found = DERIVED[kind](visited, "A")
    assert "steps[" in str(found)
    assert found == assert_reads_back(found.term, {p: ARRAYS[p.name] for p in found.parameters}, {"n": 3})


@pytest.mark.parametrize("kind", ["program", pytest.param("raw", marks=pytest.mark.thorough)])
def test_solved_in_loops_is_read(kind: str) -> None:
    """In the raw gradient loops give what they solved to loops that have no states."""
    program = DERIVED[kind](solved_in_loops, ("A", "x0", "u"))
    assert cd.read(str(program), {p.name: p.type for p in program.parameters}) == program


def test_ranges_that_only_states_and_definitions_tell_each_other() -> None:
    circular = cd.read(
        "x ↦\n  s[2,i<5] = x[2i]\n  t[k,i] = 1 / (2 + s[k + 1,i]²)\n  s[k,i] = s[k + 1,i] t[k,i] + t[k,i]²\n"
        "  s[1,2] + s[0,3]",
        {"x": cd.Space("n")},
    )
    again = cd.read(str(circular), {"x": cd.Space("n")})
    x = np.arange(1.0, 10.0)
    assert again == circular
    assert again(x) == circular(x)


def test_values_beside_a_state_that_is_read_after_one_of_its_steps() -> None:
    """What another iteration tells of the number of steps does not count then: the state may seem to have one."""
    steps = "scan((t<2, x) ↦ (x / 2 + b, a x²), a)"
    spaces = {"a": Number, "b": Number}
    iterations = f"  y = after({steps}, 1)\n  z[2] = b\n  z[t<2] = z[t + 1] / 2 + y[1]"
    text = f"(a, b) ↦\n{iterations}\n  before({steps}, 0)[1] y[1] z[0]"
    found = cd.read(text, spaces)
    again = cd.read(str(found), spaces)
    assert again == found
    assert again(2.0, 0.3) == found(2.0, 0.3)


def test_what_steps_give_that_mentions_no_step() -> None:
    a, c, x = (Var(name, Number) for name in "acx")
    step = Lambda((Var("t", Range(4)), x), Tuple((mul(x, x), c)))
    last, given = Var("x", Number), Var("y", cd.Space(4))
    results = [(last, Scan(step, (a,), LAST, 0)), (given, Scan(step, (a,), AFTER, 1))]
    body = let(results, add(last, Apply(given, (affine([], 2),))))
    shown = printed(Lambda((a, c), body))
    assert "y[t<4] = c" in shown
    assert cd.read(shown, {"a": Number, "c": Number})(1.0, 3.0) == 1 + 3


def test_programs_differ_by_what_their_steps_are() -> None:
    """A line of its own, or not, is one program; another step, start or length is another."""
    steps = "(a, u) ↦\n  x[0] = {0}\n  {1}x[t + 1] = {2}\n  {3}Σ_t {4}"
    named = ("a", "r[t] = 1 / (1 + x[t]²)\n  ", "x[t] r[t] + u[t]", "", "(u[t] x[t + 1] + r[t])")
    alone = ("a", "", "x[t] / (1 + x[t]²) + u[t]", "", "(u[t] x[t + 1] + 1 / (1 + x[t]²))")
    again = ("a", "", "x[t] / (1 + x[t]²) + u[t]", "", "(u[t] (x[t] / (1 + x[t]²) + u[t]) + 1 / (1 + x[t]²))")
    spaces = {"a": Number, "u": cd.Space("T")}
    one, *same = (cd.read(steps.format(*parts), spaces) for parts in (named, alone, again))
    assert same == [one, one]
    for place, other in [
        (0, "2 a"),
        (2, "x[t] r[t] - u[t]"),
        (2, "x[t] r[t]² + u[t]"),
        (2, "x[t] + r[t] + u[t]"),
        (4, "(u[t] x[t] + r[t])"),
    ]:
        parts = (*named[:place], other, *named[place + 1 :])
        assert cd.read(steps.format(*parts), spaces) != one, other


@pytest.mark.parametrize(("reverse", "before", "after"), [(False, 1, 0), (False, 2, 1), (True, 1, 2), (True, 0, 1)])
def test_what_a_step_begins_with_is_what_the_one_before_gave(reverse: bool, before: int, after: int) -> None:
    """A line for what nobody reads makes their prints differ; x[1] is read as the state that a step begins with."""
    a, b, x = (Var(name, Number) for name in "abx")
    given = add(x, b), mul(x, b)

    def program(kind: str, place: int, outputs: int) -> Lambda:
        steps = Lambda((Var("t", Range(3)), x), Tuple(given[:outputs]))
        scan, y = Scan(steps, (a,), kind, 0, reverse), Var("y", cd.Space(3))
        return Lambda((a, b), let([(y, scan)], Apply(y, (affine([], place),))))

    assert signature(program(BEFORE, before, 1)) == signature(program(AFTER, after, 2))
    assert signature(program(BEFORE, before, 1)) != signature(program(AFTER, (after + 1) % 3, 2))


def test_solutions_under_indices_have_names_or_not() -> None:
    spaces = {"x": cd.Space("n"), "y": cd.Space("n")}
    named = "(x, y) ↦\n  r[i] = root(t ↦ t + t³ - x[i], {0})\n  Σ_i y[i] r[i]²"
    alone = "(x, y) ↦ Σ_i y[i] root(t ↦ t + t³ - x[i], {0})²"
    assert cd.read(named.format("y[i]"), spaces) == cd.read(alone.format("y[i]"), spaces)
    assert cd.read(named.format("y[i]"), spaces) != cd.read(alone.format("x[i]"), spaces)
    assert cd.read(alone.format("0"), spaces) != cd.read(alone.replace("t³", "t⁵").format("0"), spaces)


def test_a_complex_state_is_complex_where_a_step_gives_real_numbers() -> None:
    @cd.program
    def program(x: cd.Space(3, dtype=complex), A: cd.Space(4, 3)):
        _, states = cd.scan(lambda c, r: (x.imag * r, c), x, A)
        return np.sum(np.abs(states) ** 2) ** 2

    forward = cd.pushforward(program, "x")
    x, direction = (RNG.normal(size=3) + 1j * RNG.normal(size=3) for _ in range(2))
    given = (x, RNG.normal(size=(4, 3)), direction)
    spaces = {parameter.name: parameter.type for parameter in forward.parameters}
    for text in (str(forward), forward.matrix()):
        np.testing.assert_allclose(cd.read(text, spaces)(*given), forward(*given), rtol=1e-12)


def test_a_condition_tells_that_fewer_steps_are_read_than_an_index_has() -> None:
    """y[i + 1] where i ≤ 1, of an i up to 2, is none of a third step."""

    @cd.program
    def program(x: cd.Space(3)):
        largest = np.maximum.accumulate(x)
        falls = np.append(largest[:-1] - largest[1:], 0.0)
        z = cd.root(lambda v: v - 0.3 * np.tanh(falls) - 0.2 * x, like=x)
        return z[0] * z[-1]

    gradient, x = cd.grad(program), np.array([0.3, -0.2, 0.5])
    np.testing.assert_allclose(cd.read(str(gradient), {"x": cd.Space(3)})(x), gradient(x), rtol=1e-12)


def test_a_recurrence_is_typed() -> None:
    """Forward from 0, and back from the number of steps, whose name need not be known."""
    forward = cd.read("(a, u) ↦\n  x[0] = a\n  x[t + 1] = 2 x[t] + u[t]\n  x[T]", {"a": Number, "u": cd.Space("T")})
    assert forward(1.0, np.array([1.0, 0.0, 3.0])) == 2 * (2 * (2 + 1)) + 3
    back = cd.read("a ->\n  y[3] = a\n  y[t] = (t + 1)*y[t + 1]\n  y[0] + sum_t y[t]", {"a": Number})
    assert back(1.0) == 6 + (3 + 6 + 6)
    loop = cd.read("a ->\n  x[0] = a\n  x[t + 1] = x[t]^2\n  x[5]", {"a": Number})
    assert cd.grad(loop)(1.0) == 32


def test_a_scan_stands_in_an_expression() -> None:
    """As prints write one that is inside an equation; `scan_back` begins with the last step."""
    x0 = {"x0": cd.Space("n")}
    after = cd.read("x0 ↦ after(scan((t<3, x, s) ↦ (i ↦ x[i]², s + t, i ↦ s x[i]), x0, 1), 2)", x0)
    np.testing.assert_allclose(after([2.0]), [[2], [4], [32]])
    before = cd.read("x0 ↦ before(scan_back((t<3, x) ↦ (i ↦ x[i] + t,), x0), 0)", x0)
    np.testing.assert_allclose(before([1.0]), [[4], [3], [1]])
    turned = cd.read("z ↦ last(scan((t<2, x) ↦ (k ↦ z[k] x[k],), k ↦ 1), 0)", {"z": cd.Space("n", dtype=complex)})
    np.testing.assert_allclose(turned(np.array([1, 2j])), [1, -4])
