"""Affine index sets: the closed form against brute force, against isl, and on the paper's worked cases."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, permutations, product
from math import lcm, prod

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from index_sets import IndexSet, in_range, index_set

from combdiff.polyhedra.affine import (
    NEVER,
    Bounds,
    Linear,
    eliminate,
    prune,
    tighten,
)
from combdiff.polyhedra.diophantine import hermite, smith, solve

exhaustive = settings(max_examples=60, deadline=None)
quick = settings(exhaustive, max_examples=20)
NAMES = "ijkl"


def symbol(name: str) -> Linear:
    return Linear.symbol(name)


def matrices(rows: int, columns: int, bound: int) -> st.SearchStrategy[list[list[int]]]:
    def of_shape(shape: tuple[int, int]) -> st.SearchStrategy[list[list[int]]]:
        entries = st.integers(-bound, bound)
        row = st.lists(entries, min_size=shape[1], max_size=shape[1])
        return st.lists(row, min_size=shape[0], max_size=shape[0])

    return st.tuples(st.integers(0, rows), st.integers(0, columns)).flatmap(of_shape)


def times(a: Sequence[Sequence], b: Sequence[Sequence]) -> list[list]:
    return [[sum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*b, strict=True)] for row in a]


def apply(a: Sequence[Sequence], x: Sequence) -> list:
    return [sum(entry * value for entry, value in zip(row, x, strict=True)) for row in a]


def determinant(a: Sequence[Sequence[int]]) -> int:
    """Leibniz' formula: slow, and nothing like the code under test."""
    total = 0
    for order in permutations(range(len(a))):
        inversions = sum(order[p] > order[q] for q in range(len(a)) for p in range(q))
        total += (-1) ** inversions * prod(a[r][c] for r, c in enumerate(order))
    return total


def rational_rank(a: Sequence[Sequence[int]]) -> int:
    rows = [[Fraction(x) for x in row] for row in a]
    rank = 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((r for r in range(rank, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for r in range(rank + 1, len(rows)):
            factor = rows[r][column] / rows[rank][column]
            rows[r] = [x - factor * y for x, y in zip(rows[r], rows[rank], strict=True)]
        rank += 1
    return rank


# Integer equations


@exhaustive
@given(matrices(4, 4, 9), st.data())
def test_smith_normal_form(matrix, data):
    columns = len(matrix[0]) if matrix else data.draw(st.integers(0, 4))
    form = smith(matrix, columns)
    assert [list(row) for row in form.S] == times(times(form.U, matrix), form.V) or not columns
    assert abs(determinant(form.U)) == abs(determinant(form.V)) == 1
    assert (len(form.U), len(form.S), len(form.V)) == (len(matrix), len(matrix), columns)
    assert all(form.S[i][j] == 0 for i in range(len(matrix)) for j in range(columns) if i != j)
    diagonal = [form.S[t][t] for t in range(min(len(matrix), columns))]
    assert form.rank == rational_rank(matrix)
    assert all(s > 0 for s in diagonal[: form.rank])
    assert not any(diagonal[form.rank :])
    assert all(b % a == 0 for a, b in pairwise(diagonal[: form.rank]))


def test_smith_makes_the_diagonal_divide():
    assert smith([[2, 0], [0, 3]]).S == ((1, 0), (0, 6))
    assert smith([[2, 4, 4], [-6, 6, 12], [10, -4, -16]]).S == ((2, 0, 0), (0, 6, 0), (0, 0, 12))


@exhaustive
@given(matrices(3, 4, 5), st.data())
def test_hermite_normal_form(matrix, data):
    columns = len(matrix[0]) if matrix else 2
    assume(rational_rank(matrix) == len(matrix))
    normal, transform = hermite(matrix, columns)
    assert [list(row) for row in normal] == times(matrix, transform)
    assert abs(determinant(transform)) == 1
    for t, row in enumerate(normal):
        assert row[t] > 0
        assert not any(row[t + 1 :])
        assert all(0 <= entry < row[t] for entry in row[:t])


def solvable(solution, beta: Sequence[int]) -> bool:
    return not any(apply(solution.cokernel, beta)) and all(
        sum(r * b for r, b in zip(row, beta, strict=True)) % modulus == 0 for row, modulus in solution.congruences
    )


@exhaustive
@given(matrices(3, 3, 5), st.data())
def test_solve_against_brute_force(matrix, data):
    columns = len(matrix[0]) if matrix else 2
    solution = solve(matrix, columns)
    reached = {tuple(apply(matrix, alpha)) for alpha in product(range(-4, 5), repeat=columns)}
    assert all(solvable(solution, beta) for beta in reached)
    beta = data.draw(st.tuples(*[st.integers(-6, 6)] * len(matrix)))
    particular = apply(solution.inverse, beta)
    integral = all(x.denominator == 1 for x in particular) and not any(apply(solution.cokernel, beta))
    assert solvable(solution, beta) == integral
    if integral:
        assert tuple(apply(matrix, particular)) == beta
    else:
        assert beta not in reached


@exhaustive
@given(matrices(3, 4, 5))
def test_the_kernel_spans_every_integer_solution(matrix):
    columns = len(matrix[0]) if matrix else 3
    solution = solve(matrix, columns)
    size = columns - rational_rank(matrix)
    assert all(len(row) == size for row in solution.kernel)
    assert not any(any(row) for row in times(matrix, solution.kernel))
    # The lattice of all integer solutions is saturated: a basis extends to a unimodular matrix.
    assert all(smith(solution.kernel, size).S[t][t] == 1 for t in range(size))
    assert len(solution.cokernel) == len(matrix) - rational_rank(matrix)
    for position, component in enumerate(solution.kept):
        if component is not None:
            assert solution.kernel[component] == tuple(int(t == position) for t in range(size))
            assert not any(solution.inverse[component])


def test_kernel_variables_are_components_of_alpha_where_they_can_be():
    assert solve([[1, 0, 1]]).kept == (1, 2)
    assert solve([[2, -1]]).kept == (0,)
    assert solve([[1, -2, -2]]).kernel == ((2, 2), (1, 0), (0, 1))
    assert solve([[2, 3]]).kept == (None,)
    assert solve([[2, 3, 0]]).kept == (2, None)


def test_conditions_are_few_and_plain():
    assert solve([[2, 0], [0, 3]]).congruences == (((1, 0), 2), ((0, 1), 3))
    assert solve([[4, 6]]).congruences == (((1,), 2),)
    assert solve([[2], [4]]).congruences == (((1, 0), 2),)
    assert solve([[2, 0], [1, 2]]).congruences == (((1, -2), 4),)  # it implies that the first is even
    assert solve([[3, -2]]).inverse == ((1,), (1,))  # not (-1, -2): the kernel is (2, 3)
    assert solve([[3], [-2]]).inverse == ((1, 1),)  # not (-1, -2): the cokernel is (2, 3)
    assert solve([[1], [1]]).cokernel == ((1, -1),)
    assert solve([[1, 0], [1, 1], [0, 1]]).cokernel == ((1, -1, 1),)


# Linear inequalities


def test_linear_is_canonical():
    form = Linear((("b", 2), ("a", Fraction(1, 2)), ("b", -2), ("c", Fraction(4, 2))), Fraction(3, 1))
    assert form == Linear((("a", Fraction(1, 2)), ("c", 2)), 3)
    assert hash(form) == hash(Linear((("c", 2), ("a", Fraction(1, 2))), 3))
    assert form.symbols == ("a", "c")
    assert (form.coefficient("c"), form.coefficient("b")) == (2, 0)
    assert symbol("a") - symbol("a") == Linear()


def test_linear_arithmetic():
    form = symbol("a").scale(2) - symbol("b") + 3
    assert form.evaluate({"a": 5, "b": 4}) == 9
    assert form.scale(Fraction(1, 2)).evaluate({"a": 1, "b": 0}) == Fraction(5, 2)
    swapped = form.substitute({"a": symbol("b"), "b": symbol("a") + 1})
    assert swapped == symbol("b").scale(2) - symbol("a") + 2


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (Linear(), "0"),
        (Linear((), -1), "-1"),
        (symbol("d") - 2, "d - 2"),
        (Linear((), 6) - symbol("d"), "6 - d"),
        (symbol("d").scale(-1), "-d"),
        (symbol("d").scale(Fraction(-1, 2)) + symbol("z").scale(3), "3*z - 1/2*d"),
    ],
)
def test_linear_prints(form, text):
    assert str(form) == text


def test_tighten_keeps_the_integer_points_only():
    assert tighten(symbol("a").scale(2) - 1) == symbol("a") - 1
    assert tighten(symbol("a").scale(Fraction(1, 2)) + Fraction(3, 4)) == symbol("a") + 1
    assert tighten(symbol("a").scale(4) - symbol("b").scale(6) + 3) == symbol("a").scale(2) - symbol("b").scale(3) + 1
    assert tighten(Linear((), Fraction(-1, 2))) == NEVER


def test_prune_removes_what_is_implied():
    a, b, n = symbol("a"), symbol("b"), symbol("N")
    assert prune([a, a]) == (a,)
    assert prune([a + 3, a, a + 1]) == (a,)
    assert prune([a, b, a + b]) == (a, b)
    assert prune([a - b, b - 2, a]) == (b - 2, a - b)
    assert prune([n - 1, a], assume=[n - 1]) == (a,)
    assert prune([n - 1, a], assume=[n]) == (n - 1, a)
    assert prune([Linear((), 4), a]) == (a,)
    assert prune([a + b, a - b, b - a, a]) == (a, a - b, b - a)
    assert prune([a, b, a - b, b - a]) == (a, a - b, b - a)
    assert prune([a, b - a.scale(2), b - a.scale(3) + 1]) == (a, b - a.scale(2), b - a.scale(3) + 1)


def loop(bounds: Sequence[Bounds], values: Mapping[str, int]) -> Iterator[dict[str, int]]:
    if not bounds:
        yield dict(values)
        return
    for value in bounds[0].range(values):
        yield from loop(bounds[1:], {**values, bounds[0].name: value})


@st.composite
def systems(draw):
    variables = "xyz"[: draw(st.integers(1, 3))]
    box = [form for name in variables for form in (symbol(name) + 3, Linear((), 3) - symbol(name))]
    entries = st.integers(-4, 4)
    names = [*variables, "p"]
    count = draw(st.integers(0, 4))
    extra = [Linear(tuple((name, draw(entries)) for name in names), draw(st.integers(-6, 6))) for _ in range(count)]
    return variables, draw(st.permutations(box + extra))


def in_order(points: list[dict[str, int]]) -> list[list[tuple[str, int]]]:
    return sorted(sorted(values.items()) for values in points)


@exhaustive
@given(systems())
def test_prune_is_complete_at_once(system):
    _, constraints = system
    kept = prune(constraints)
    assert prune(kept) == kept
    for position, form in enumerate(kept):
        others = kept[:position] + kept[position + 1 :]
        assert prune([form], assume=others) == (form,)


@exhaustive
@given(systems())
def test_eliminate_against_brute_force(system):
    variables, constraints = system
    elimination = eliminate(constraints, variables)
    assert [bounds.name for bounds in elimination.bounds] == list(variables)
    for position, bounds in enumerate(elimination.bounds):
        allowed = {"p", *variables[position + 1 :]}
        assert all(allowed.issuperset(form.symbols) and d > 0 for form, d in bounds.lower + bounds.upper)
    assert all({"p"}.issuperset(form.symbols) for form in elimination.feasible)
    for p in range(-3, 4):
        expected = []
        for point in product(range(-3, 4), repeat=len(variables)):
            values = {"p": p, **dict(zip(variables, point, strict=True))}
            if all(form.evaluate(values) >= 0 for form in constraints):
                expected.append(values)
        feasible = all(form.evaluate({"p": p}) >= 0 for form in elimination.feasible)
        found = list(loop(elimination.bounds[::-1], {"p": p})) if feasible else []
        assert in_order(found) == in_order(expected)


def test_eliminate_drops_what_the_assumptions_give():
    box = [*in_range("i", "N"), *in_range("j", "M")]
    sizes = [symbol("N") - 1, symbol("M") - 1]
    assert eliminate(box, "ij", sizes).feasible == ()
    assert eliminate(box, "ij").feasible == (symbol("N") - 1, symbol("M") - 1)


def test_eliminate_says_never():
    assert eliminate(in_range("i", 0), "i").feasible == (NEVER,)
    assert eliminate([symbol("p") - 1, symbol("p").scale(-1)], "i").feasible == (NEVER,)


def test_eliminate_stays_small():
    """Six variables in a box and eight dense constraints: without pruning this has thousands of bounds."""
    names = "abcdef"
    box = [form for name in names for form in in_range(name, 5)]
    dense = [Linear(tuple((n, (3 * r + 5 * c * c) % 7 - 3) for c, n in enumerate(names)), r) for r in range(8)]
    elimination = eliminate(box + dense, names)
    assert sum(len(bounds.lower) + len(bounds.upper) for bounds in elimination.bounds) < 150


# Index sets


def closed_form(matrix, sizes, offset=None, extra=(), assume=()) -> IndexSet:
    indices = NAMES[: len(sizes)]
    ranges = [form for name, size in zip(indices, sizes, strict=True) for form in in_range(name, size)]
    targets = [f"d{r}" for r in range(len(matrix))]
    offset = offset or [0] * len(matrix)
    return index_set(matrix, offset, [*ranges, *extra], indices=indices, targets=targets, assume=assume)


def brute_force(matrix, offset, sizes, extra=()) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
    found = defaultdict(list)
    for alpha in product(*map(range, sizes)):
        values = dict(zip(NAMES, alpha, strict=False))
        if all(form.evaluate(values) >= 0 for form in extra):
            found[tuple(x + c for x, c in zip(apply(matrix, alpha), offset, strict=True))].append(alpha)
    return found


@st.composite
def accesses(draw):
    """A matrix, an offset, sizes (0 and 1 among them) and coupled ranges."""
    matrix = draw(matrices(3, 3, 4).filter(bool))
    columns = len(matrix[0])
    offset = draw(st.lists(st.integers(-3, 3), min_size=len(matrix), max_size=len(matrix)))
    sizes = draw(st.lists(st.sampled_from([0, 1, 1, 2, 3, 4, 5, 6]), min_size=columns, max_size=columns))
    entries = st.integers(-2, 2)
    coupled = [
        Linear(tuple((name, draw(entries)) for name in NAMES[:columns]), draw(st.integers(-1, 3)))
        for _ in range(draw(st.integers(0, 2)))
    ]
    return matrix, offset, sizes, coupled


@exhaustive
@given(accesses(), st.data())
def test_index_set_against_brute_force(access, data):
    matrix, offset, sizes, coupled = access
    result = closed_form(matrix, sizes, offset, coupled)
    expected = brute_force(matrix, offset, sizes, coupled)
    for beta, points in expected.items():
        assert sorted(result.points(beta)) == points
    centre = data.draw(st.sampled_from(sorted(expected))) if expected else tuple(offset)
    for shift in product((-2, -1, 0, 1, 2), repeat=len(matrix)):
        beta = tuple(b + s for b, s in zip(centre, shift, strict=True))
        assert sorted(result.points(beta)) == expected.get(beta, [])


@quick
@given(accesses())
def test_sizes_may_stay_symbolic(access):
    matrix, offset, sizes, coupled = access
    names = ["N", "M", "N"][: len(sizes)]
    assume = [symbol("N") - 1, symbol("M") - 1]
    result = closed_form(matrix, names, offset, coupled, assume)
    for n, m in [(1, 1), (1, 4), (3, 2)]:
        values = {"N": n, "M": m}
        expected = brute_force(matrix, offset, [values[name] for name in names], coupled)
        for beta in product(range(-4, 5), repeat=len(matrix)):
            assert sorted(result.points(beta, values)) == expected.get(beta, [])


def isl_constraint(form: Linear, relation: str) -> str:
    scale = lcm(form.constant.denominator, *(value.denominator for _, value in form.coefficients))
    terms = [f"{int(value * scale)} {name}" for name, value in form.coefficients]
    return " + ".join([*terms, f"({int(form.constant * scale)})"]) + f" {relation} 0"


def isl_closed_form(islpy, result: IndexSet, parameters: str):
    outputs = [f"o{r}" for r in range(len(result.alpha))]
    constraints = [isl_constraint(form, "=") for form in result.equalities]
    constraints += [isl_constraint(form, ">=") for form in result.feasible]
    quotients = [f"q{r}" for r in range(len(result.congruences))]
    for name, (form, modulus) in zip(quotients, result.congruences, strict=True):
        constraints.append(isl_constraint(form - Linear(((name, modulus),)), "="))
    for bounds in result.bounds:
        variable = symbol(bounds.name)
        constraints += [isl_constraint(variable.scale(d) - form, ">=") for form, d in bounds.lower]
        constraints += [isl_constraint(form - variable.scale(d), ">=") for form, d in bounds.upper]
    constraints += [isl_constraint(form - symbol(o), "=") for o, form in zip(outputs, result.alpha, strict=True)]
    hidden = [bounds.name for bounds in result.bounds] + quotients
    exists = f"exists {', '.join(hidden)} : " if hidden else ""
    body = " and ".join(constraints) or "1 = 1"
    return islpy.Set(f"[{parameters}] -> {{ [{', '.join([*result.targets, *outputs])}] : {exists}{body} }}")


@exhaustive
@given(accesses(), st.booleans())
def test_index_set_is_what_isl_says_it_is(access, symbolic):
    """Equality of the closed form and of the definition for every β and every size at once."""
    islpy = pytest.importorskip("islpy")
    matrix, offset, numbers, coupled = access
    sizes = ["N", "M", "N"][: len(numbers)] if symbolic else numbers
    assume = [symbol("N") - 1, symbol("M") - 1]
    result = closed_form(matrix, sizes, offset, coupled, assume)
    indices = NAMES[: len(sizes)]
    definition = [isl_constraint(form, ">=") for form in coupled]
    for name, size in zip(indices, sizes, strict=True):
        definition += [isl_constraint(form, ">=") for form in in_range(name, size)]
    for target, row, constant in zip(result.targets, matrix, offset, strict=True):
        reached = Linear(tuple(zip(indices, row, strict=True)), constant)
        definition.append(isl_constraint(reached - symbol(target), "="))
    space = ", ".join([*result.targets, *indices])
    expected = islpy.Set(f"[N, M] -> {{ [{space}] : {' and '.join(definition)} }}")
    positive = islpy.Set("[N, M] -> { : N >= 1 and M >= 1 }").params()
    found = isl_closed_form(islpy, result, "N, M")
    assert found.intersect_params(positive).is_equal(expected.intersect_params(positive))


def bounds_of(result: IndexSet) -> list[str]:
    return [str(bounds) for bounds in result.bounds]


def test_report_derivative_with_respect_to_d():
    """d[i + k], i in 0..2, j in 0..3, k in 0..4, d of length 7 (Urban & van der Smagt 2017, sec. 6)."""
    result = closed_form([[1, 0, 1]], [3, 4, 5], assume=in_range("d0", 7))
    assert bounds_of(result) == ["0 <= j <= 3", "max(0, d0 - 2) <= k <= min(4, d0)"]
    assert [str(form) for form in result.alpha] == ["d0 - k", "j", "k"]
    assert (result.equalities, result.congruences, result.feasible) == ((), (), ())
    assert list(result.points([6])) == [(2, j, 4) for j in range(4)]


def test_report_derivative_with_respect_to_c():
    result = closed_form([[1, 0, 0], [1, 0, 0]], [3, 4, 5], assume=[*in_range("d0", 3), *in_range("d1", 3)])
    assert result.equalities == (symbol("d0") - symbol("d1"),)
    assert bounds_of(result) == ["0 <= j <= 3", "0 <= k <= 4"]
    assert result.feasible == ()
    assert list(result.points([1, 2])) == []
    diagonal = closed_form([[1, 0, 0], [1, 0, 0]], [3, 4, 5], assume=in_range("d1", 3))
    assert diagonal.feasible == ()  # d0 = d1 is in range because d1 is


def test_report_two_dimensional_kernel():
    """i - 2j - 2k, a plane with coupled loops (Urban & van der Smagt 2017, fig. 4, with indices from 0)."""
    result = closed_form([[1, -2, -2]], [4, 5, 6])
    assert [str(form) for form in result.alpha] == ["d0 + 2*j + 2*k", "j", "k"]
    assert len(list(result.points([-8]))) == 10
    assert sorted(result.points([-8])) == brute_force([[1, -2, -2]], [0], [4, 5, 6])[(-8,)]


def test_difference_with_a_stride():
    result = closed_form([[2, -1]], ["N", 5], assume=[symbol("N") - 1])
    assert bounds_of(result) == ["max(0, ceil((d0)/2)) <= i <= min(N - 1, floor((d0 + 4)/2))"]
    assert [str(form) for form in result.alpha] == ["i", "2*i - d0"]
    assert list(result.points([3], {"N": 3})) == [(2, 1)]


def test_reshape_has_one_point_for_each_element():
    result = closed_form([[5, 1]], [4, 5], assume=in_range("d0", 20))
    assert result.feasible == ()
    for d in range(20):
        assert list(result.points([d])) == [divmod(d, 5)]


def test_elements_that_are_not_reached():
    result = closed_form([[2]], ["N"], assume=[symbol("N") - 1])
    assert result.congruences == ((symbol("d0"), 2),)
    assert [str(form) for form in result.alpha] == ["1/2*d0"]
    assert [list(result.points([d], {"N": 3})) for d in range(6)] == [[(0,)], [], [(1,)], [], [(2,)], []]
    shifted = closed_form([[2]], [3], offset=[1])
    assert shifted.congruences == ((symbol("d0") + 1, 2),)


@pytest.mark.parametrize(("matrix", "bounds"), [([[1, 0]], "0 <= j <= d0"), ([[0, 1]], "d0 <= i <= N - 1")])
def test_triangular_range(matrix, bounds):
    result = closed_form(matrix, ["N", "N"], extra=[symbol("i") - symbol("j")], assume=[symbol("N") - 1])
    assert bounds_of(result) == [bounds]


def test_offset_may_name_a_size():
    result = closed_form([[-1]], ["N"], offset=[symbol("N") - 1])
    assert [str(form) for form in result.alpha] == ["N - d0 - 1"]
    assert list(result.points([0], {"N": 4})) == [(3,)]


def test_constant_and_absent_indices():
    constant = closed_form([[]], [], offset=[3])
    assert [list(constant.points([d])) for d in (2, 3)] == [[], [()]]
    scalar = closed_form([], [2, 2])
    assert list(scalar.points([])) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_empty_range_is_never_feasible():
    result = closed_form([[1, 1]], [0, 3])
    assert result.feasible == (NEVER,)
    assert list(result.points([1])) == []


def test_fresh_kernel_names_avoid_the_others():
    ranges = [*in_range("z0", "z1"), *in_range("j", 4)]
    result = index_set([[2, 3]], [symbol("z2")], ranges, indices=["z0", "j"], targets=["z3"])
    assert [bounds.name for bounds in result.bounds] == ["z4"]
    assert list(result.points([9], {"z1": 3, "z2": 2})) == [(2, 1)]


def test_cyclic_axis_through_the_extended_matrix():
    """k + b = d (mod 4), k in 0..3 and b in -1..1: each d is reached three times, round the corner too."""
    ranges = [*in_range("k", 4), symbol("b") + 1, Linear((), 1) - symbol("b")]
    result = index_set([[1, 1, 4]], [0], ranges, indices=["k", "b", "w"], targets=["d"], assume=in_range("d", 4))
    for d in range(4):
        assert sorted((k, b) for k, b, _ in result.points([d])) == sorted(((d - b) % 4, b) for b in (-1, 0, 1))
