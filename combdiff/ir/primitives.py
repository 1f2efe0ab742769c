"""The flat table of primitive functions: their derivatives, names and domains of validity.

Adding a function is adding a row. With `∂z` and `∂z̄` of a row, the pullback of any primitive h is

    (z, k) ↦ conj(∂h/∂z)·k + (∂h/∂z̄)·conj(k)

which for real arguments and results is h'(z)·k (theory: Li & Damle, Table 1, extended to functions that are not
holomorphic). Rows of two arguments are univariate primitives with a capture: one partial derivative per argument.

Invariant: each row has as many derivatives as arguments; a test compares every one with central differences.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import field
from fractions import Fraction
from typing import Any

import numpy as np

from combdiff.errors import DifferentiationError, UnsupportedError
from combdiff.ir.indices import Coordinate, unequal
from combdiff.ir.relations import OPPOSITES, SIGNS, relation
from combdiff.ir.terms import ONE, ZERO, Add, Mul, Number, Primitive, Term, add, conj, exact, mul, negate
from combdiff.kernels import for_numpy
from combdiff.records import dataclass

Derivative = Callable[..., Term]

SCIPY = "scipy.special."  # before the name of a function that SciPy has
OWN = "numerics."  # before the name of a function of `kernels.numerics`, which emitted source carries with it


@dataclass(frozen=True)
class Row:
    """One primitive.

    `partials[n]` is ∂h/∂zₙ as a term in the arguments; `conjugate_partials[n]` is ∂h/∂z̄ₙ, empty where h is
    holomorphic. `real_partials` replace both where all arguments are real, when given. `real_valued` says that the
    result is real for complex arguments too; `real_only` that complex arguments are refused. `mirror` says that h(z̄) =
    conj(h(z)) for all z: not so on a branch cut, as of log at −1, which is its own conjugate. `parity` is 1 where h(−z)
    = h(z) and −1 where h(−z) = −h(z). `domain` says where the derivative is valid. `fixed` are numbers that the NumPy
    function takes after the arguments. `numpy` is the name of NumPy's function, of SciPy's after `SCIPY`, or of our own
    after `OWN`. `definition` is h in terms of other rows, for a function that neither has.
    """

    name: str
    numpy: str
    latex: str
    partials: tuple[Derivative, ...]
    domain: str
    conjugate_partials: tuple[Derivative, ...] = ()
    real_partials: tuple[Derivative, ...] = ()
    real_valued: bool = False
    real_only: bool = False
    mirror: bool = True
    parity: int = 0
    fixed: tuple[float, ...] = ()
    definition: Derivative | None = None
    origin: str = field(default="", compare=False)  # the rule file that declares it, empty for the rows of this module

    @property
    def arity(self) -> int:
        """How many arguments the function takes."""
        return len(self.partials)

    def numerical(self) -> Callable[..., Any]:
        """NumPy's or SciPy's function. Raises UnsupportedError where SciPy is needed and not installed."""
        if self.numpy.startswith(OWN):
            return for_numpy(self.numpy.removeprefix(OWN))
        if not self.numpy.startswith(SCIPY):
            found: Callable[..., Any] = getattr(np, self.numpy)
            return found
        try:
            special = importlib.import_module(SCIPY.rstrip("."))
        except ModuleNotFoundError:
            raise without_scipy(f"{self.name} is computed") from None
        computed: Callable[..., Any] = getattr(special, self.numpy.removeprefix(SCIPY))
        return computed


def without_scipy(what: str, extra: str = "special") -> UnsupportedError:
    """The error for what SciPy does where it is not installed; `extra` is what installs it."""
    return UnsupportedError(f"{what} by SciPy, which is not installed", hint=f"pip install combdiff[{extra}]")


def no_derivative_by_order(name: str) -> Derivative:
    """The derivative by an order, which is none."""

    def refused(*_: Term) -> Term:
        raise DifferentiationError(
            f"{name} has no derivative by its order", hint="give the order as a number: it may not depend on parameters"
        )

    return refused


HALF: Number = Number(Fraction(1, 2))

AT_ZERO = dict.fromkeys(("exp", "cos", "cosh", "sinc"), ONE)
AT_ZERO |= dict.fromkeys(("sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh", "abs", "sqrt"), ZERO)


def function(name: str, *arguments: Term) -> Term:
    """The primitive `name` of the arguments, folded where that is plain: x¹ = x, sin 0 = 0, Re 2i z = −2 Im z."""
    if arguments == (ZERO,) and name in AT_ZERO:
        return AT_ZERO[name]
    if name == "power":
        if arguments[1] is ONE:
            return arguments[0]
        if arguments[1] is ZERO:
            return ONE
        if all(isinstance(a, Number) for a in arguments):
            return _number_power(*arguments)  # type: ignore[arg-type]
    if name in OPPOSITES:
        return relation(name, *arguments)
    if name in ("real", "imag") and isinstance(product := arguments[0], Mul):
        front = product.factors[0]  # where `mul` has the number of a product
        if isinstance(front, Number) and not (front.real and front.imag):
            rest = mul(*product.factors[1:])
            if not front.imag:
                return mul(front, function(name, rest))
            turned = ("imag", -front.imag) if name == "real" else ("real", front.imag)  # Re i z = −Im z
            return mul(Number(turned[1]), function(turned[0], rest))
    if name in ("real", "imag") and isinstance(sum_ := arguments[0], Add) and all(map(_is_imaginary, sum_.terms)):
        other, sign = ("imag", 1) if name == "real" else ("real", -1)  # Re(i a − i b) = Im(b − a)
        return function(other, add(*(mul(Number(0, sign), term) for term in sum_.terms)))
    return Primitive(name, arguments)


def _is_imaginary(term: Term) -> bool:
    """Whether a term is an imaginary multiple, 2i z."""
    front = term.factors[0] if isinstance(term, Mul) else term
    return isinstance(front, Number) and not front.real and bool(front.imag)


def _number_power(base: Number, exponent: Number) -> Term:
    """An exact number to a small whole power, folded; other powers of numbers stay."""
    whole = isinstance(exponent.real, int) and not exponent.imag and abs(exponent.real) <= 64
    if whole and base.exact and not base.imag and base.real:
        return Number(exact(Fraction(base.real) ** exponent.real))
    return Primitive("power", (base, exponent))


def whole_power(factor: Term) -> tuple[Term, int]:
    """A factor as a base and a whole exponent: s and −2 for s^(−2); others are their own first powers."""
    if isinstance(factor, Primitive) and factor.name == "power":
        exponent = factor.arguments[1]
        if isinstance(exponent, Number) and isinstance(exponent.real, int) and not exponent.imag:
            return factor.arguments[0], exponent.real
    return factor, 1


def raised(base: Term, exponent: int) -> Term:
    """base ** exponent for a whole exponent: what `whole_power` takes apart."""
    return power(base, Number(exponent))


def power(base: Term, exponent: Term) -> Term:
    """base ** exponent."""
    return function("power", base, exponent)


def divide(numerator: Term, denominator: Term) -> Term:
    """numerator / denominator, as a product with a power −1."""
    return mul(numerator, power(denominator, Number(-1)))


def square(term: Term) -> Term:
    """term²."""
    return power(term, Number(2))


def zero(*_: Term) -> Term:
    """The derivative of a piecewise constant function."""
    return ZERO


def parity(term: Term) -> int:
    """1 where a function of one argument, or a whole power, is even in it, −1 where it is odd, else 0."""
    if not isinstance(term, Primitive):
        return 0
    if term.name != "power":
        return TABLE[term.name].parity if term.name in TABLE else 0
    exponent = whole(term.arguments[1])
    return 0 if exponent is None else -1 if exponent % 2 else 1


def is_mirror(term: Primitive) -> bool:
    """Whether h(z̄) = conj(h(z)) for all z: of functions without a branch cut, of whole powers."""
    if term.name == "power":
        return whole(term.arguments[1]) is not None
    row = TABLE.get(term.name)
    return row is not None and row.mirror and not row.real_valued


CUT_BELOW_ZERO = ("log", "sqrt", "power")  # functions whose branch cut is the negative real axis


def is_branched(term: Term) -> bool:
    """Whether a term is a function with a branch cut: −1 has a logarithm if its type is complex, none if it is real."""
    if not isinstance(term, Primitive) or is_mirror(term):
        return False
    row = TABLE.get(term.name)
    return row is not None and not (row.real_only or row.real_valued)


def whole(term: Term) -> int | None:
    """The value of an exact whole number, None for other terms."""
    if isinstance(term, Number) and isinstance(term.real, int) and not term.imag:
        return term.real
    return None


COMMANDS = frozenset(["exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan"])


def _row(name: str, partial: Derivative, domain: str, parity: int = 0, *, mirror: bool = True) -> Row:
    """A holomorphic function of one argument."""
    return Row(name, name, named_operator(name), (partial,), domain, parity=parity, mirror=mirror)


def _branched(name: str, partial: Derivative, domain: str, parity: int = 0) -> Row:
    """A function of one argument that is holomorphic off its branch cut."""
    return _row(name, partial, domain, parity, mirror=False)


def named_operator(name: str) -> str:
    """How LaTeX writes a function by its name: by a command where LaTeX has one."""
    shown = name.replace("_", r"\_")
    return rf"\{name}" if name in COMMANDS else rf"\operatorname{{{shown}}}"


def _over(name: str, *arguments: Term) -> Term:
    return divide(ONE, function(name, *arguments))


def _one_less_square(z: Term) -> Term:
    return add(ONE, negate(square(z)))


def _of_symmetric(partial: Derivative) -> tuple[Derivative, Derivative]:
    """The derivatives of a symmetric function of two arguments, by the one of its first."""
    return partial, lambda x, y: partial(y, x)


def _share(one: Term, both: tuple[Term, Term]) -> Term:
    """exp(one) / (exp(x) + exp(y)), which is at most 1, of one of both x and y: by their logaddexp as it stands."""
    return function("exp", add(one, negate(function("logaddexp", *both))))


def _is_larger(one: Term, other: Term) -> Term:
    """1 where one number is larger than the other and ½ where they are equal, so that shares at a tie add up to 1."""
    return function("heaviside", add(one, negate(other)))


def _is_smaller(one: Term, other: Term) -> Term:
    return _is_larger(other, one)


_ROWS: tuple[Row, ...] = (
    _row("exp", lambda z: function("exp", z), "everywhere"),
    _branched("log", lambda z: divide(ONE, z), "z ≠ 0, off the negative real axis"),
    _branched("sqrt", lambda z: mul(HALF, _over("sqrt", z)), "z ≠ 0, off the negative real axis"),
    _row("sin", lambda z: function("cos", z), "everywhere", parity=-1),
    Row(
        "sinc",
        "sinc",
        r"\operatorname{sinc}",
        (lambda x: function("sinc_slope", ONE, x),),
        "everywhere",
        parity=1,
    ),
    Row(
        "sinc_slope",
        f"{OWN}sinc_slope",
        r"\operatorname{sinc\_slope}",
        (no_derivative_by_order("sinc_slope"), lambda n, x: function("sinc_slope", add(n, ONE), x)),
        "n = 1, 2, …",
    ),
    _row("cos", lambda z: negate(function("sin", z)), "everywhere", parity=1),
    _row("tan", lambda z: power(function("cos", z), Number(-2)), "cos z ≠ 0", parity=-1),
    _branched("arcsin", lambda z: _over("sqrt", _one_less_square(z)), "off the real rays |z| ≥ 1", parity=-1),
    _branched("arccos", lambda z: negate(_over("sqrt", _one_less_square(z))), "off the real rays |z| ≥ 1"),
    _branched("arctan", lambda z: divide(ONE, add(ONE, square(z))), "off the imaginary rays |z| ≥ 1", parity=-1),
    _row("sinh", lambda z: function("cosh", z), "everywhere", parity=-1),
    _row("cosh", lambda z: function("sinh", z), "everywhere", parity=1),
    _row("tanh", lambda z: add(ONE, negate(square(function("tanh", z)))), "cosh z ≠ 0", parity=-1),
    Row(
        "power",
        "power",
        "",
        (
            lambda z, p: mul(_unless_zero(p), p, power(z, add(p, Number(-1)))),
            lambda z, p: _by_exponent(z, p),
        ),
        "z ≠ 0 off the negative real axis, or a whole exponent",
        mirror=False,
    ),
    Row(
        "abs",
        "abs",
        r"\left|{}\right|",
        (lambda z: mul(HALF, conj(function("sign", z))),),
        "z ≠ 0",
        conjugate_partials=(lambda z: mul(HALF, function("sign", z)),),
        real_partials=(lambda x: function("sign", x),),
        real_valued=True,
        parity=1,
    ),
    Row(
        "sign",
        "sign",
        r"\operatorname{sign}",
        (lambda z: mul(HALF, _over("abs", z)),),
        "z ≠ 0",
        conjugate_partials=(lambda z: mul(Number(Fraction(-1, 2)), square(function("sign", z)), _over("abs", z)),),
        real_partials=(zero,),
        parity=-1,
    ),
    Row(
        "real",
        "real",
        r"\operatorname{Re}",
        (lambda z: HALF,),
        "everywhere",
        (lambda z: HALF,),
        real_partials=(lambda x: ONE,),
        real_valued=True,
        parity=-1,
    ),
    Row(
        "imag",
        "imag",
        r"\operatorname{Im}",
        (lambda z: Number(0, Fraction(-1, 2)),),
        "everywhere",
        (lambda z: Number(0, Fraction(1, 2)),),
        real_partials=(zero,),
        real_valued=True,
        mirror=False,
        parity=-1,
    ),
    Row(
        "relu",
        "maximum",
        r"\operatorname{relu}",
        (lambda x: function("step", x),),
        "x ≠ 0",
        real_only=True,
        fixed=(0,),
    ),
    Row("step", "heaviside", r"\operatorname{step}", (zero,), "x ≠ 0", real_only=True, fixed=(0,)),
    Row("heaviside", "heaviside", r"\operatorname{heaviside}", (zero,), "x ≠ 0", real_only=True, fixed=(0.5,)),
    Row("maximum", "maximum", r"\max", _of_symmetric(_is_larger), "x ≠ y", real_only=True),
    Row(
        "logaddexp",
        "logaddexp",
        r"\operatorname{logaddexp}",
        (lambda x, y: _share(x, (x, y)), lambda x, y: _share(y, (x, y))),
        "everywhere",
        real_only=True,
    ),
    Row("minimum", "minimum", r"\min", _of_symmetric(_is_smaller), "x ≠ y", real_only=True),
)


def _unless_zero(exponent: Term) -> Term:
    """The condition that an index is not 0: x⁰ = 1 has the derivative 0 at 0 too, not 0·0⁻¹."""
    return unequal(exponent.form) if isinstance(exponent, Coordinate) else ONE


def _by_exponent(base: Term, exponent: Term) -> Term:
    """z^p log z. Of 0^p it is −0^p / p: 0 for p > 0 and −∞ at 0, where 0 · log 0 is no number."""
    if base is ZERO:
        return negate(divide(power(base, exponent), exponent))
    return mul(power(base, exponent), function("log", base))


def _step_function(name: str) -> Row:
    """A function of real numbers that is constant between jumps."""
    return Row(name, name, named_operator(name), (zero,), "x is not whole", real_only=True)


_ROWS += (
    _branched("arcsinh", lambda z: _over("sqrt", add(ONE, square(z))), "off the imaginary rays |z| ≥ 1", parity=-1),
    _branched("arctanh", lambda z: divide(ONE, _one_less_square(z)), "off the real rays |z| ≥ 1", parity=-1),
    Row(
        "arctan2",
        "arctan2",
        r"\operatorname{arctan2}",
        (
            lambda y, x: divide(x, add(square(x), square(y))),
            lambda y, x: negate(divide(y, add(square(x), square(y)))),
        ),
        "(x, y) off the negative real axis",
        real_only=True,
    ),
    Row(
        "hypot",
        "hypot",
        r"\operatorname{hypot}",
        (
            lambda x, y: divide(x, function("hypot", x, y)),
            lambda x, y: divide(y, function("hypot", x, y)),
        ),
        "(x, y) ≠ 0",
        real_only=True,
    ),
    *map(_step_function, ("floor", "ceil", "trunc", "rint")),
    Row(
        "remainder",
        "remainder",
        r"\operatorname{remainder}",
        (lambda x, y: ONE, lambda x, y: negate(function("floor_divide", x, y))),
        "x / y is not whole",
        real_only=True,
    ),
    Row(
        "fmod",
        "fmod",
        r"\operatorname{fmod}",
        (lambda x, y: ONE, lambda x, y: negate(function("trunc", divide(x, y)))),
        "x / y is not whole",
        real_only=True,
    ),
    Row(
        "floor_divide",
        "floor_divide",
        r"\operatorname{floor\_divide}",
        (zero, zero),
        "x / y is not whole",
        real_only=True,
    ),
)


def _relation(name: str) -> Row:
    """A relation between real numbers, 1 where it holds; NumPy has no name for some opposites."""

    def by_opposite(x: Term, y: Term) -> Term:
        return add(ONE, negate(relation(OPPOSITES[name], x, y)))

    return Row(
        name,
        "" if name.startswith("not_less") else name,
        SIGNS[name],
        (zero, zero),
        "x ≠ y",
        real_valued=True,
        real_only=True,
        definition=by_opposite if name.startswith("not_less") else None,
    )


_ROWS += tuple(map(_relation, OPPOSITES))


TABLE: dict[str, Row] = {row.name: row for row in _ROWS}


def register(row: Row) -> bool:
    """Enter a row that a rule file declares; whether its name was free or stood for an equal row."""
    return TABLE.setdefault(row.name, row) == row
