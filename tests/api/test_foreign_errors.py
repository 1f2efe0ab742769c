"""Whatever is written, there is an answer or a CombdiffError: no exception of another family, no end of the process.

Each case is a piece of code with hostile values; where it has an answer, that is asserted elsewhere or in the table.
"""

# ruff: noqa: B023  (each lambda is called before its variables change)

from __future__ import annotations

import inspect
import itertools
import operator
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.tracing.values import Tensor

Vector, Matrix, Number = cd.Space("n"), cd.Space("n", "n"), cd.Space()
X, A = np.array([0.5, -1.0, 2.0]), np.arange(9.0).reshape(3, 3)
ODD = [None, "a", "", b"x", [], (), {}, [1], (1, 2), object(), np.array([1.0, 2.0]), np.array("a"), np.nan, np.inf]
NUMBERS = [True, 1j, complex(np.nan, 1), 10**400, -(10**5000), Fraction(1, 10**5000), 1e308, 5e-324, 10**40, 2.5, 0, -1]
OBJECTS = [cd, int, Vector, np.float64, lambda: 0, slice(None), ..., np.ma.masked, np.datetime64("2020"), "\0"]
HOSTILE: tuple[Any, ...] = (*ODD, *NUMBERS, *OBJECTS, reduce(lambda inner, _: [inner], range(3000), []))


def outcome(attempt: Callable[[], Any]) -> Any:
    """The answer, or the CombdiffError; any other exception is the test's."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return attempt()
        except cd.CombdiffError as error:
            assert str(error)  # noqa: PT017
            return error


def traced(body: Callable[..., Any], **spaces: Any) -> cd.Program:
    body.__annotations__ = spaces
    return cd.program(body)


PYTHON = (round, float, int, complex, bool, len, iter, str, repr, hash)
UNARY = (operator.neg, abs, operator.invert, operator.index, *PYTHON)
BINARY = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.matmul, operator.floordiv),
    *(operator.mod, divmod, operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor, operator.lt),
    *(operator.eq, operator.getitem, operator.contains, cd.maximum, cd.delta, np.add, np.hypot, np.dot, np.einsum),
)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
def test_operators_on_traced_values(function: Any, swapped: bool) -> None:
    for value, space in itertools.product(HOSTILE, (Vector, Number)):
        if swapped and function in (operator.getitem, operator.contains):
            continue  # Python's own containers answer
        both = (lambda x, v=value: function(v, x)) if swapped else (lambda x, v=value: function(x, v))
        found = outcome(lambda: traced(lambda x: 1 * both(x), x=space))
        if isinstance(found, cd.Program):
            outcome(lambda: str(found))


@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_functions_of_one_traced_value(function: Any) -> None:
    for space in (Vector, Number, Matrix):
        outcome(lambda: traced(lambda x: function(x), x=space))


FUNCTIONS = sorted(name for name in dir(cd) if name.islower() and callable(getattr(cd, name)))


def _takes(function: Any, count: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    return True


@pytest.mark.sample(50)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_called_wrongly(name: str) -> None:
    """With nothing, with one hostile value, with two and three, with a traced value among them."""
    function = getattr(cd, name)
    calls = [(), *((value,) * count for value in HOSTILE for count in (1, 2, 3))]
    for arguments in calls:
        if _takes(function, len(arguments)):  # else it is Python's own TypeError
            outcome(lambda: function(*arguments))
        if _takes(function, len(arguments) + 1):
            outcome(lambda: traced(lambda x: function(x, *arguments), x=Vector))


@pytest.mark.parametrize("module", [np, np.linalg, cd, Tensor], ids=lambda m: m.__name__)
def test_unknown_options(module: Any) -> None:
    """Python or NumPy refuses the option before anything of ours is asked: the error names the place all the same."""
    for name in dir(module):
        function = getattr(module, name)
        if name.startswith("_") or isinstance(function, type) or not callable(function):
            continue
        with pytest.raises(cd.CombdiffError, match=r"test_foreign_errors.py:\d+"):
            traced(lambda x: function(x, nothing_of_this_name=3), x=Matrix)


def test_indices_and_domains() -> None:
    for value in HOSTILE:
        outcome(lambda: str(traced(lambda x: cd.sum(lambda i: x[i] * x[i + value]), x=Vector)))
        outcome(lambda: str(traced(lambda x: cd.sum(lambda i: x[i * value]), x=Vector)))
        outcome(lambda: str(traced(lambda x: cd.sum(lambda i: cd.where(i < value, x[i], 0)), x=Vector)))
        outcome(lambda: traced(lambda x: cd.sum(lambda k: x[0], k=value), x=Vector)(X))
        outcome(lambda: traced(lambda x: x.sum(axis=value), x=Matrix)(A))
        outcome(lambda: traced(lambda x: x.transpose(value, 0), x=Matrix)(A))
        for kind in (cd.Range, cd.Cyclic, cd.Symmetric, cd.Space, cd.Function):
            outcome(lambda: kind(value))
        outcome(lambda: cd.Space("n", dtype=value))
        outcome(lambda: cd.Space("n", "n", symmetry=value))
        outcome(lambda: cd.Space("n", "n", symmetry=[value]))


@cd.program
def square(x: Vector, y: Number):
    return y * cd.exp(x) @ x


def test_arguments_of_calls() -> None:
    for value in HOSTILE:
        outcome(lambda: square(value, 1.0))
        outcome(lambda: square(X, value))
        outcome(lambda: square(X, y=value, z=value))
        outcome(lambda: square.partial(y=value)(X))
        outcome(lambda: square.cost(n=value))
        outcome(lambda: square.source(value))
        outcome(lambda: square.compile(value))
        outcome(lambda: square.compile(memory_limit=value)(X, 1.0))
        outcome(lambda: cd.testing.check_grad(square, x=value, y=1.0))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "transform", [cd.grad, cd.jacobian, cd.hessian, cd.simplify, cd.pullback, cd.pushforward, cd.hvp]
)
def test_options_of_transforms(transform: Any) -> None:
    for value in HOSTILE:
        outcome(lambda: transform(square, rules=value))
        outcome(lambda: transform(square, rules=[value]))
        if transform is not cd.simplify:
            outcome(lambda: transform(square, wrt=value))
            outcome(lambda: transform(square, wrt=(value, "x")))
            outcome(lambda: transform(square, simplify=value))
        if transform in (cd.jacobian, cd.hessian):
            outcome(lambda: transform(square, mode=value))
        if transform is cd.grad:
            outcome(lambda: transform(square, convention=value))


def test_simplify_is_true_or_false() -> None:
    """No text is taken for True."""
    for value in ("no", np.array([True, False]), None):
        with pytest.raises(cd.ArgumentError, match=r"simplify=.* is neither True nor False"):
            cd.grad(square, simplify=value)
        for show in (lambda: square.matrix(latex=value), lambda: square.latex(aligned=value)):
            if value is not None:
                with pytest.raises(cd.TypeMismatchError, match="write True or False"):
                    show()
    assert cd.grad(square, simplify=np.True_) == cd.grad(square)


def test_budgets() -> None:
    def within(**limits: Any) -> str:
        with cd.budget(**limits):
            return str(cd.grad(square))

    for name, value in itertools.product(("nodes", "rounds", "seconds"), HOSTILE):
        found = outcome(lambda: within(**{name: value}))
        assert isinstance(found, str | cd.ArgumentError)
    assert "exp" in outcome(lambda: within(rounds=0))


def test_what_is_infinite_stays_so() -> None:
    """The laws are those of finite numbers; 2·∞ = ∞ once grew without end."""
    f = traced(lambda x: (x * x).sum() * np.inf, x=Vector)
    assert str(cd.grad(f)) == "x ↦ d ↦ inf x[d]"
    np.testing.assert_array_equal(cd.grad(f)(X), np.inf * X)
    g = traced(lambda x: (x * x).sum() * np.nan, x=Vector)
    assert np.isnan(cd.grad(g)(X)).all()


def test_numbers_without_a_float_are_named() -> None:
    with pytest.raises(cd.UnsupportedError, match="a number of 401 digits is greater than any floating point number"):
        traced(lambda x: x.sum() * 10**400, x=Vector)(X)
    with pytest.raises(cd.UnsupportedError, match="an exact number has more than 3011 digits"):
        traced(lambda x: x * 10**5000, x=Vector)
    assert traced(lambda x: x.sum() * 10**400 / 10**399, x=Vector)(X) == 15


def test_names_that_python_uses() -> None:
    f = traced(lambda self, y: (self * y).sum() * y, self=Vector, y=Number)
    assert f(self=X, y=2.0) == 4 * X.sum() == f.partial(self=X)(y=2.0) == f.compile()(self=X, y=2.0)
    assert cd.hessian(f, wrt="self")(self=X, y=1.0).shape == (3, 3)
    np.testing.assert_allclose(cd.grad(f)(self=X, y=2.0), 4)


METHODS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: x.transpose(1, 0),
    "transposed by a tuple": lambda x: x.transpose((1, 0)),
    "column sums kept": lambda x: x.sum(axis=0, keepdims=True),
    "all kept": lambda x: x.sum(keepdims=True),
    "row means kept": lambda x: x - x.mean(axis=1, keepdims=True),
    "np.sum": lambda x: np.sum(x, axis=1, keepdims=True) * x,
    "size": lambda x: x.sum() / x.size,
    "size of a number": lambda x: x.sum().size * x.sum().sum() * x.sum().T,
    "size of a row": lambda x: x[0].size * x,
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_mean_what_numpy_means(name: str) -> None:
    f = traced(METHODS[name], x=Matrix)
    found, expected = f(A), METHODS[name](A)
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(cd.simplify(f)(A), expected)


def test_a_fixed_size_is_a_number() -> None:
    def size(x: Any) -> Any:
        assert x.size == 6
        return x.sum() / x.size

    assert traced(size, x=cd.Space(2, 3))(np.ones((2, 3))) == 1


def test_a_program_given_in_a_call_is_put_in_its_place() -> None:
    """As `partial` does: element by element, in derivatives, compiled, with arrays of its own fixed."""
    swish = traced(lambda z, c: z / (1 + cd.exp(-c * z)), z=Number, c=Number).partial(c=2.0)

    @cd.program
    def net(x: Vector, W: Matrix, act: cd.Function(Number)):
        return cd.sum(lambda i: act(cd.sum(lambda j: W[i, j] * x[j])))

    z = A @ X
    assert net(X, A, act=swish) == pytest.approx((z / (1 + np.exp(-2 * z))).sum(), rel=1e-12)
    assert net(X, A, swish) == net.partial(act=swish)(X, A) == net.compile()(X, A, swish)
    np.testing.assert_allclose(cd.grad(net)(X, A, swish), cd.grad(net.partial(act=swish))(X, A), rtol=1e-12)
    assert net.partial(W=A)(X, act=swish) == net(X, A, swish)


def test_singular_matrices_raise_one_error() -> None:
    zero = np.zeros((3, 3))
    for body in (lambda x: cd.inv(x), lambda x: np.linalg.solve(x, x), lambda x: cd.inv(x @ x).sum()):
        with pytest.raises(cd.SingularError, match=r"the matrix (x|t) is singular"):
            traced(body, x=Matrix)(zero)
    with pytest.raises(cd.SingularError):
        cd.hessian(traced(lambda x, B: x @ B @ x, x=Vector, B=Matrix)).solve(X, X, zero)


def test_a_group_of_symmetries_has_a_limit() -> None:
    letters = "abcdefghijkl"
    turned, swapped = letters[1:] + "a", "ba" + letters[2:]
    equations = [f"A[{','.join(letters)}] = A[{','.join(image)}]" for image in (turned, swapped)]
    with pytest.raises(cd.SpaceError, match="generate more than 50000 exchanges of 12 axes"):
        cd.Space(*["n"] * 12, symmetry=equations)


def test_what_numpy_cannot_allocate() -> None:
    f = traced(lambda x, y: cd.exp(x) @ y, x=Vector, y=Vector)
    huge = np.broadcast_to(1.0, 10**12)
    with pytest.raises(cd.MemoryLimitError):
        f(huge, huge)
