"""NumPy's functions with arguments of the wrong kind: what is raised is combdiff's, with the name of the function."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.tracing.numpy_protocol import HANDLERS

CALLS = (
    "f(x)",
    "f(x, x)",
    "f(A)",
    "f(A, x)",
    "f(A, A)",
    "f(x, 2)",
    "f(x, 0)",
    "f(A, (1, 0))",
    "f(A, 0, 1)",
    "f([x, x])",
)
BAD = {
    "None": None,
    "a text": "a",
    "a pair": (1, 3),
    "a fraction": 2.5,
    "a negative number": -7,
    "a dictionary": {},
    "an empty list": [],
    "an array": np.array([1.0, 2.0]),
    "an array of texts": np.array(["a"]),
    "an object": object(),
    "a truth": True,
    "a complex number": 1j,
    "nan": float("nan"),
    "a slice": slice(1, 2),
    "a function": lambda a: a,
    "a large number": 10**12,
}
OPTIONS = ("axis", "keepdims", "dtype", "ddof", "mode", "offset", "ord", "initial")


def functions() -> list[Callable[..., Any]]:
    """Those of NumPy that programs take."""
    own = [f for f in HANDLERS if callable(f) and getattr(f, "__module__", None) in ("numpy", "numpy.linalg")]
    return sorted([*own, *(f for f in HANDLERS if isinstance(f, np.ufunc))], key=lambda f: f.__name__)


def outcome(source: str, **names: Any) -> BaseException | None:
    """What a program of one expression raises."""

    def f(x: Any, A: Any) -> Any:
        return eval(source, {**names, "x": x, "A": A})

    f.__annotations__ = {"x": cd.Space(3), "A": cd.Space(3, 3)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cd.program(f)
    except Exception as error:  # noqa: BLE001  (of any kind: which one it is, is asked)
        return error
    return None


@cache
def taken() -> dict[Callable[..., Any], list[str]]:
    """Of each function two calls that are right."""
    return {f: [call for call in CALLS if outcome(call, f=f) is None][:2] for f in functions()}


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", BAD)
def test_what_is_raised_for_a_bad_argument_is_combdiffs(kind: str) -> None:
    for f, calls in taken().items():
        for call in calls:
            given = call[2:-1]
            for source in (f"f({given}, bad)", *(f"f({given}, {option}=bad)" for option in OPTIONS)):
                error = outcome(source, f=f, bad=BAD[kind])
                assert error is None or isinstance(error, cd.CombdiffError), (f.__name__, source, kind, repr(error))


def test_the_error_names_the_function_and_its_arguments() -> None:
    error = outcome("f(A, bad)", f=np.diagonal, bad=None)
    assert "np.diagonal of <traced tensor A: Space(3, 3)>, None" in str(error)


def test_what_a_function_of_the_user_raises_is_its_own() -> None:
    def broken(row: Any) -> Any:
        raise KeyError("mine")

    assert isinstance(outcome("f(bad, 1, A)", f=np.apply_along_axis, bad=broken), KeyError)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("f.vander(x, 10**12)", "np.vander of 1000000000000 columns"),
        ("f.polyint(x, 10**12)", "np.polyint of 1000000000000 integrals"),
        ("f.polyint(x, 2.5)", "m of np.polyint is 2.5"),
    ],
)
def test_a_count_that_is_too_large_is_refused(source: str, words: str) -> None:
    error = outcome(source, f=np)
    assert isinstance(error, cd.CombdiffError)
    assert words in str(error)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("cd.sum(int)", "cd.sum is given <class 'int'>, whose parameters are unknown"),
        ("cd.root(int, like=x)", "cd.root is given <class 'int'>, whose parameters are unknown"),
        ("cd.scan(lambda c: c, x, A)", "the step of cd.scan is called with a carry and an x: too many positional"),
        ("cd.while_loop(lambda: 1, lambda c: c, x, 5)", "the condition of cd.while_loop is called with a carry"),
        ("cd.while_loop(lambda c: c[0] > 0, lambda c, d: c, x, 5)", "missing a required argument: 'd'"),
        ("A[bad:]", "of a slice"),
    ],
)
def test_functions_with_other_parameters_are_refused(source: str, words: str) -> None:
    error = outcome(source, cd=cd, bad=np.array([1.0, 2.0]))
    assert isinstance(error, cd.CombdiffError), repr(error)
    assert words in str(error)


def test_a_polynomial_has_no_more_derivatives_than_coefficients() -> None:
    assert outcome("f.polyder(x, 10**12)", f=np) is None
