"""The same output everywhere: in any thread, under any hash seed, after pickling, and within budgets."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from known_programs import Integrals, coulomb
from strategies import Case, programs

import combdiff as cd
from combdiff.ir.interpreter import evaluate
from combdiff.ir.let_form import share, split
from combdiff.ir.terms import Add, Apply, Lambda, Mul, Number, Term, Tuple, Var, add, mul
from combdiff.simplification.egraph.budget import current, gathered, one_warning, stopped
from combdiff.simplification.egraph.extraction import cost
from combdiff.simplification.egraph.saturation import simplify as simplify_term
from combdiff.testing.arrays import random_arrays

Vector = cd.Space("n")
Matrix = cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"])


@cd.program
def network(A: Matrix, x: Vector):
    hidden = cd.tanh(A @ x)
    hidden = cd.tanh(A @ hidden + x)
    return (hidden * hidden).sum()


@cd.program
def residual(T: cd.Space("a", "b", "c"), X: cd.Space("a", "r"), Y: cd.Space("b", "r"), Z: cd.Space("c", "r")):
    rest = cd.tensor(lambda i, j, k: T[i, j, k] - cd.sum(lambda n: X[i, n] * Y[j, n] * Z[k, n]))
    return cd.sum(lambda i, j, k: rest[i, j, k] ** 2)


@cache
def expected_output() -> str:
    """The same, derived once in this process."""
    return output()


def output() -> str:
    """What a few derivatives look like."""
    derivatives = [
        cd.value_and_grad(coulomb, wrt="C"),
        cd.hvp(coulomb, wrt="C"),
        cd.grad(network, wrt=("A", "x")),
        cd.grad(residual, wrt=("X", "Y", "Z")),
        cd.hessian(residual, wrt="X"),
    ]
    return "\n".join(f"{each}\n{each.latex()}\n{each.source()}\n{each.combinators()}" for each in derivatives)


# --- hash seeds and threads ----------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_the_output_is_the_same_under_every_hash_seed() -> None:
    here, root = Path(__file__).parent, Path(__file__).parents[2]
    code = f"import sys; sys.path[:0] = {[str(here), str(here.parent), str(root / 'benchmarks')]!r}"
    code += "; import test_sameness; print(test_sameness.output())"
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
        env={"PYTHONHASHSEED": "4242", "PYTHONPATH": str(root), "PYTHONIOENCODING": "utf-8"},
    ).stdout
    assert found == f"{expected_output()}\n"
    assert "4 Σ" in found


@pytest.mark.thorough
def test_threads_derive_the_same() -> None:
    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(lambda _: output(), range(2))) == {expected_output()}


def test_terms_made_in_many_threads_are_one_object() -> None:
    """Each thread makes the same new terms at the same time."""
    ready = threading.Barrier(8)

    def make(_: int) -> list[Term]:
        ready.wait()
        x = Var("racing", cd.Space())
        found: list[Term] = [x]
        for n in range(2000):
            found.append(add(x, mul(Number(n + 0.125), x)))
        return found

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(make, range(8)))
    assert all(one is other for row in made[1:] for one, other in zip(row, made[0], strict=True))


def test_programs_are_traced_in_several_threads() -> None:
    def trace(power: int) -> str:
        @cd.program
        def f(x: Vector):
            return cd.sum(lambda i: x[i] ** power)

        return str(cd.grad(f))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(trace, [3, 4, 5, 6] * 4))
    assert found == [f"x ↦ d ↦ {n} x[d]{e}" for n, e in ((3, "²"), (4, "³"), (5, "⁴"), (6, "⁵"))] * 4


def test_a_thread_that_ends_takes_its_e_graphs_with_it() -> None:
    for _ in range(2):
        thread = threading.Thread(target=lambda: cd.grad(network))
        thread.start()
        thread.join()


# --- pickles -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [Vector, Matrix, Integrals, cd.Function(Vector, result=Matrix), cd.Cyclic("k")])
def test_types_are_pickled(value: Any) -> None:
    assert pickle.loads(pickle.dumps(value)) == value


def test_a_pickled_term_is_the_same_object() -> None:
    for program in (coulomb, cd.grad(network), cd.hessian(residual, wrt="X")):
        assert pickle.loads(pickle.dumps(program.term)) is program.term


def test_a_pickled_program_is_equal_and_runs() -> None:
    rng = np.random.default_rng(0)
    gradient = cd.grad(network, wrt="x")
    again = pickle.loads(pickle.dumps(gradient))
    arrays = random_arrays(gradient.parameters, rng, {"n": 4})
    assert again == gradient
    assert str(again) == str(gradient)
    assert np.array_equal(again(**arrays), gradient(**arrays))


def test_fixed_arguments_are_pickled() -> None:
    A = np.diag([1.0, 2.0, 3.0])
    again = pickle.loads(pickle.dumps(network.partial(A=A)))
    assert again([0.1, 0.2, 0.3]) == network(A, [0.1, 0.2, 0.3])
    assert [p.name for p in again.parameters] == ["x"]


@pytest.mark.thorough
def test_a_pickle_is_read_in_another_process() -> None:
    gradient = cd.grad(coulomb, wrt="C")
    code = "import pickle, sys; f = pickle.load(sys.stdin.buffer); print(f); print(pickle.loads(pickle.dumps(f)) == f)"
    root = str(Path(__file__).parents[2])
    run = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(gradient),
        capture_output=True,
        check=True,
        cwd=root,
        env={"PYTHONPATH": root, "PYTHONIOENCODING": "utf-8"},
    )
    assert run.stdout.decode().splitlines() == [str(gradient), "True"]


@cd.program
def rayleigh(A: cd.Space("n", "n"), x: cd.Space("n")):
    return (x @ A @ x) / (x @ x)


# --- budgets -------------------------------------------------------------------------------------------------------


def random_case(program: cd.Program) -> tuple[dict[str, Any], dict[str, int]]:
    sizes = {"n": 3, "N": 3, "Ne": 2, "a": 2, "b": 3, "c": 2, "r": 2}
    return random_arrays(program.parameters, np.random.default_rng(5), sizes), sizes


@pytest.mark.parametrize(
    ("given", "words"), [({"nodes": 40}, "40 nodes"), ({"rounds": 0}, "0 rounds"), ({"seconds": 0.0}, "0.0 seconds")]
)
@pytest.mark.parametrize("program", [coulomb, rayleigh])
def test_a_budget_set_around_a_transform(program: cd.Program, given: dict[str, Any], words: str) -> None:
    """The warning names the budget, and the result is the derivative."""
    wrt = program.parameters[1].name
    arrays, _ = random_case(program)
    with cd.budget(**given), pytest.warns(cd.BudgetWarning, match=words):
        gradient = cd.grad(program, wrt)
    np.testing.assert_allclose(gradient(**arrays), cd.grad(program, wrt)(**arrays), rtol=1e-10)


@pytest.mark.sample(1)
@pytest.mark.parametrize("derive", [cd.grad, cd.hvp, cd.hessian, cd.simplify], ids=lambda f: f.__name__)
def test_a_call_warns_once_and_says_what_it_left(derive: Callable[[cd.Program], cd.Program]) -> None:
    @cd.program
    def f(x: cd.Space("n"), A: cd.Space("n", "n")):
        y = np.tanh(A @ x) / (1 + x @ x)
        return y @ y

    with warnings.catch_warnings(record=True) as found, cd.budget(rounds=0):
        warnings.simplefilter("always")
        first = derive(f)
        assert len(found) == 1
        first.explain()  # tells of what has been told no more
    (warning,) = found
    assert re.search(r"its budget of 0 rounds, in \d+ of its tensors \(.*t", str(warning.message))
    assert warning.filename == __file__


def test_what_is_not_taken_does_not_warn() -> None:
    """The Jacobian is derived in three modes; only of that which is kept it is told where its budget ended."""
    with gathered() as stops, warnings.catch_warnings():
        warnings.simplefilter("error")
        with gathered() as inner:
            stopped("7 nodes", "a.1")
        assert inner
        assert not stops
        stopped("7 nodes", "t.2")
        stopped("7 nodes", "t.3")
    with pytest.warns(cd.BudgetWarning, match="7 nodes, in 2 of its tensors .t."), one_warning():
        warn_of(stops)


@one_warning()
def warn_of(stops: dict[tuple[str, str], None]) -> None:
    for limit, name in stops:
        stopped(limit, name)


def test_budgets_nest_and_end() -> None:
    before = current()
    with cd.budget(nodes=100), cd.budget(seconds=1.5) as inner:
        assert (inner.nodes, inner.seconds, inner.rounds) == (100, 1.5, before.rounds)
    assert current() == before


def test_a_budget_holds_in_its_own_thread_only() -> None:
    with cd.budget(nodes=1), ThreadPoolExecutor(1) as pool:
        assert pool.submit(current).result().nodes > 1


@pytest.mark.parametrize("given", [{"nodes": -1}, {"seconds": float("nan")}, {"rounds": True}, {"nodes": "many"}])
def test_a_budget_that_is_no_number_is_refused(given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(cd.ArgumentError, match=name), cd.budget(**given):
        pass


def scalars(body: Term) -> list[Term]:
    """The scalar terms under the abstractions of a program's body."""
    bindings, result = split(body)
    values = [value for _, value in bindings] + list(result.items if isinstance(result, Tuple) else [result])
    return [value.body if isinstance(value, Lambda) else value for value in values]


@pytest.mark.thorough
@pytest.mark.parametrize("given_nodes", [1, 60, 400])
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=programs())
def test_a_result_never_costs_more_than_the_input(given_nodes: int, case: Case) -> None:
    for term in scalars(share(case.term.body)):
        if isinstance(term, Add | Mul | Apply) or term.children:
            with warnings.catch_warnings(), cd.budget(nodes=given_nodes):
                warnings.simplefilter("ignore", cd.BudgetWarning)
                assert cost(simplify_term(term)) <= cost(term)


def test_the_same_value_within_any_budget() -> None:
    arrays, sizes = random_case(residual)
    parameters = {p: arrays[p.name] for p in residual.parameters}
    raw = cd.grad(residual, "Y", simplify=False)
    expected = evaluate(raw.term.body, parameters, sizes)
    for nodes in (1, 30, 100, 300, 1000):
        with warnings.catch_warnings(), cd.budget(nodes=nodes):
            warnings.simplefilter("ignore", cd.BudgetWarning)
            body = cd.simplify(raw).term.body
        np.testing.assert_allclose(evaluate(body, parameters, sizes), expected, atol=1e-12)
