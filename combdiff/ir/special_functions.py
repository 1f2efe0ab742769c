"""Rows of the table of primitives for the special functions that SciPy computes, under SciPy's names.

    erf′(x) = 2/√π exp(−x²)        gammaln′ = digamma        polygamma(n)′ = polygamma(n + 1)
    i0′ = i1                       iv(v)′ = (iv(v − 1) + iv(v + 1)) / 2

Sources: NIST Digital Library of Mathematical Functions, 5.15 (polygamma), 7 (error functions), 10.6 and 10.29 (Bessel
functions). Bessel functions of order 1 are differentiated through order 2, not through a quotient by x, so that their
derivatives are right at 0.

Invariant: arguments are real; the order of polygamma and of the Bessel functions is a number that nothing depends on.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import pi

from combdiff.ir.primitives import (
    HALF,
    SCIPY,
    Derivative,
    Row,
    divide,
    function,
    named_operator,
    no_derivative_by_order,
    register,
    square,
)
from combdiff.ir.terms import MINUS_ONE, ONE, Number, Term, add, mul, negate

_PI = Number(pi)
_MINUS_HALF = Number(Fraction(-1, 2))
_SLOPE_OF_ERF = divide(Number(2), function("sqrt", _PI))  # at 0
_DENSITY_AT_0 = divide(ONE, mul(function("sqrt", Number(2)), function("sqrt", _PI)))  # not of 2π, which is one float


def _row(name: str, *partials: Derivative, domain: str = "everywhere", parity: int = 0) -> Row:
    """A function of real numbers."""
    return Row(name, SCIPY + name, named_operator(name), partials, domain, real_only=True, parity=parity)


def _of_order(name: str) -> Callable[[Term, Term], Term]:
    """The Bessel function of a whole or other order, by its own name where it has one: jv(1, x) = j1(x)."""

    def bessel(order: Term, x: Term) -> Term:
        for n, own in ((0, _NAMED[name][0]), (1, _NAMED[name][1])):
            if order is Number(n):
                return function(own, x)
        return function(name, order, x)

    return bessel


_NAMED = {"jv": ("j0", "j1"), "iv": ("i0", "i1"), "ive": ("i0e", "i1e")}
_jv, _iv, _ive = map(_of_order, _NAMED)


def _gaussian(x: Term) -> Term:
    return function("exp", negate(square(x)))


def _half_square(x: Term) -> Term:
    return mul(_MINUS_HALF, square(x))


def _one_less(x: Term) -> Term:
    return add(ONE, negate(x))


def _shifted(order: Term, by: int) -> Term:
    return add(order, Number(by))


def _sign_times(name: str, x: Term) -> Term:
    return mul(function("sign", x), function(name, x))


_ERROR_FUNCTIONS = (
    _row("erf", lambda x: mul(_SLOPE_OF_ERF, _gaussian(x)), parity=-1),
    _row("erfc", lambda x: negate(mul(_SLOPE_OF_ERF, _gaussian(x)))),
    _row("erfcx", lambda x: add(mul(Number(2), x, function("erfcx", x)), negate(_SLOPE_OF_ERF))),
    _row(
        "erfinv",
        lambda x: mul(HALF, function("sqrt", _PI), function("exp", square(function("erfinv", x)))),
        domain="|x| < 1",
        parity=-1,
    ),
    _row("ndtr", lambda x: mul(_DENSITY_AT_0, function("exp", _half_square(x)))),
    _row(
        "log_ndtr",
        lambda x: mul(
            _DENSITY_AT_0,
            function("exp", add(_half_square(x), negate(function("log_ndtr", x)))),
        ),
    ),
    _row(
        "ndtri",
        lambda p: mul(
            function("sqrt", Number(2)), function("sqrt", _PI), function("exp", mul(HALF, square(function("ndtri", p))))
        ),
        domain="0 < x < 1",
    ),
)

_GAMMA_FUNCTIONS = (
    _row("gamma", lambda x: mul(function("gamma", x), function("digamma", x)), domain="x is not 0, −1, −2, …"),
    _row("gammaln", lambda x: function("digamma", x), domain="x is not 0, −1, −2, …"),
    _row("digamma", lambda x: function("polygamma", ONE, x), domain="x is not 0, −1, −2, …"),
    _row(
        "polygamma",
        no_derivative_by_order("polygamma"),
        lambda n, x: function("polygamma", _shifted(n, 1), x),
        domain="n = 0, 1, 2, …, x is not 0, −1, −2, …",
    ),
    _row(
        "betaln",
        lambda a, b: add(function("digamma", a), negate(function("digamma", add(a, b)))),
        lambda a, b: add(function("digamma", b), negate(function("digamma", add(a, b)))),
        domain="x > 0, y > 0",
    ),
)

_LOGARITHMS = (
    _row("xlogy", lambda x, y: function("log", y), lambda x, y: divide(x, y), domain="y > 0"),
    _row(
        "xlog1py",
        lambda x, y: function("log", add(ONE, y)),
        lambda x, y: divide(x, add(ONE, y)),
        domain="y > −1",
    ),
    _row("expit", lambda x: mul(function("expit", x), function("expit", negate(x)))),
    _row("log_expit", lambda x: function("expit", negate(x))),
    _row("logit", lambda p: divide(ONE, mul(p, _one_less(p))), domain="0 < x < 1"),
)

_BESSEL_FUNCTIONS = (
    _row("j0", lambda x: negate(function("j1", x)), parity=1),
    _row("j1", lambda x: mul(HALF, add(function("j0", x), negate(_jv(Number(2), x)))), parity=-1),
    _row("i0", lambda x: function("i1", x), parity=1),
    _row("i1", lambda x: mul(HALF, add(function("i0", x), _iv(Number(2), x))), parity=-1),
    _row("i0e", lambda x: add(function("i1e", x), negate(_sign_times("i0e", x))), domain="x ≠ 0", parity=1),
    _row(
        "i1e",
        lambda x: add(mul(HALF, add(function("i0e", x), _ive(Number(2), x))), negate(_sign_times("i1e", x))),
        domain="x ≠ 0",
        parity=-1,
    ),
    _row(
        "jv",
        no_derivative_by_order("jv"),
        lambda v, x: mul(HALF, add(_jv(_shifted(v, -1), x), negate(_jv(_shifted(v, 1), x)))),
        domain="a whole order, or x > 0",
    ),
    _row(
        "iv",
        no_derivative_by_order("iv"),
        lambda v, x: mul(HALF, add(_iv(_shifted(v, -1), x), _iv(_shifted(v, 1), x))),
        domain="a whole order, or x > 0",
    ),
    _row(
        "ive",
        no_derivative_by_order("ive"),
        lambda v, x: add(
            mul(HALF, add(_ive(_shifted(v, -1), x), _ive(_shifted(v, 1), x))),
            mul(MINUS_ONE, function("sign", x), function("ive", v, x)),
        ),
        domain="x > 0, or a whole order and x ≠ 0",
    ),
)

SPECIAL_FUNCTIONS = (*_ERROR_FUNCTIONS, *_GAMMA_FUNCTIONS, *_LOGARITHMS, *_BESSEL_FUNCTIONS)

for _each in SPECIAL_FUNCTIONS:
    register(_each)
