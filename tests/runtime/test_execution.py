"""Arguments in, results out: sizes, conversions, messages, named maps, and the source that runs alone."""

from __future__ import annotations

import random
import time
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, back, converted, on

import combdiff as cd
from combdiff.errors import ArgumentError, UnsupportedError
from combdiff.ir.domains import Cyclic, Function, Range, Real, Space, Symmetric
from combdiff.ir.indices import Affine
from combdiff.ir.terms import Apply, Lambda, Mul, Number, Pullback, Term, Tuple, Var, mul, total
from combdiff.runtime.arguments import bind_sizes
from combdiff.runtime.execution import find_paths, run, source

A, x, y = Var("A", Space("N", "M")), Var("x", Space("M")), Var("y", Space("N"))
i, j = Var("i", Range("N")), Var("j", Range("M"))
PRODUCT = Lambda((A, x), Lambda((i,), total((j,), mul(Apply(A, (i, j)), Apply(x, (j,))))))
alpha = Var("alpha", Space())
SCALED = Lambda((alpha, x), Lambda((j,), mul(alpha, Apply(x, (j,)))))
MATRIX, VECTOR = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 3.0])


def message(program: Lambda, *arguments: object) -> str:
    with pytest.raises(ArgumentError) as caught:
        run(program, arguments)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    return str(caught.value)


# --- values --------------------------------------------------------------------------------------------------------


def test_arrays_lists_and_scalars() -> None:
    np.testing.assert_array_equal(run(PRODUCT, (MATRIX, VECTOR)), MATRIX @ VECTOR)
    np.testing.assert_array_equal(run(PRODUCT, (MATRIX.tolist(), [1, 2, 3])), MATRIX @ VECTOR)
    np.testing.assert_array_equal(run(PRODUCT, (MATRIX.astype(int), VECTOR.astype(bool))), MATRIX.sum(1))
    for number in (2, 2.0, np.float64(2), np.array(2.0)):
        np.testing.assert_array_equal(run(SCALED, (number, VECTOR)), 2 * VECTOR)


def test_results_are_numpy_scalars_and_tuples() -> None:
    square = total((j,), mul(Apply(x, (j,)), Apply(x, (j,))))
    assert type(run(Lambda((x,), square), (VECTOR,))) is np.float64
    assert type(run(Lambda((x,), Number(3)), (VECTOR,))) is np.float64
    assert type(run(Lambda((x,), total((j,), Number(3))), (VECTOR,))) is np.float64
    assert type(run(Lambda((x,), Number(0, 1)), (VECTOR,))) is np.complex128
    assert type(run(Lambda((x,), mul(Number(0, 1), square)), (VECTOR,))) is np.complex128
    assert type(run(Lambda((alpha,), alpha), (2,))) is np.float64
    assert run(Lambda((x,), Tuple((square,))), (VECTOR,)) == (14.0,)


def test_results_are_arrays_of_their_own() -> None:
    for result in (x, Lambda((j,), Apply(x, (j,)))):
        first, second = run(Lambda((x,), Tuple((result, result))), (VECTOR,))
        assert not np.shares_memory(first, VECTOR)
        assert not np.shares_memory(first, second)
        first += 1
    k = Var("k", Range("M"))
    for body in (Lambda((j, i), Apply(A, (i, j))), Lambda((i, k, j), Apply(A, (i, j))), Lambda((k,), Apply(x, (k,)))):
        result = run(Lambda((A, x), body), (MATRIX, VECTOR))
        assert result.flags.writeable
        assert not np.shares_memory(result, MATRIX)
    np.testing.assert_array_equal(VECTOR, [1, 2, 3])


def test_element_types() -> None:
    single = MATRIX.astype(np.float32)
    assert run(PRODUCT, (single, VECTOR.astype(np.float32))).dtype == np.float32
    assert run(PRODUCT, (single, VECTOR)).dtype == np.float64
    for number in (2, 2.0, True):
        assert run(SCALED, (number, VECTOR.astype(np.float32))).dtype == np.float32
    assert run(SCALED, (np.float64(2), VECTOR.astype(np.float32))).dtype == np.float64
    z = Var("z", Space("M", dtype=complex))
    copy = Lambda((z,), Lambda((j,), mul(Number(2), Apply(z, (j,)))))
    assert run(copy, (VECTOR.astype(np.float32),)).dtype == np.complex64
    assert run(copy, (VECTOR.astype(int),)).dtype == np.complex128
    whole = Var("n", Space("M", dtype=int))
    assert run(Lambda((whole,), total((j,), Apply(whole, (j,)))), (np.array([1, 2]),)).dtype == np.int64


def test_read_only_and_strided_arguments() -> None:
    matrix = np.arange(24.0).reshape(4, 6)[::2, ::-2]
    matrix.flags.writeable = False
    np.testing.assert_allclose(run(PRODUCT, (matrix, VECTOR)), matrix @ VECTOR)
    np.testing.assert_allclose(run(PRODUCT, (np.asfortranarray(matrix), VECTOR)), matrix @ VECTOR)


def test_sizes_are_read_off_symmetric_and_cyclic_axes() -> None:
    w, c = Var("w", Space(Symmetric("B"))), Var("c", Space(Cyclic("L"), 3))
    assert bind_sizes({w: (5,), c: (4, 3)}) == {"B": 2, "L": 4}
    b = Var("b", Symmetric("B"))
    assert run(Lambda((w,), total((b,), Apply(w, (b,)))), (np.arange(5.0),)) == 10.0


def test_a_size_that_no_argument_shows() -> None:
    program = Lambda((x,), total((i,), Number(1)))
    assert run(program, (VECTOR,), {"N": 7}) == 7.0
    assert "the size N is not known" in message(program, VECTOR)
    with pytest.raises(ArgumentError, match="the size N is not known"):
        source(program, "f")
    assert "N = 7  # no argument shows this size" in source(program, "f", {"N": 7})


# --- messages ------------------------------------------------------------------------------------------------------


def test_messages_about_shapes() -> None:
    text = message(PRODUCT, MATRIX, np.zeros(4))
    assert (
        "M is 3 by axis 1 of A (shape (2, 3), expected (N, M)), but 4 by axis 0 of x (shape (4,), expected (M))" in text
    )
    assert "x has 2 axes, shape (2, 3), but 1 were expected: (M)" in message(PRODUCT, MATRIX, MATRIX)
    fixed = Lambda((Var("t", Space(3, "N")),), Number(0))
    assert "axis 0 of t (shape (2, 5), expected (3, N)) has 2 elements, but 3 were expected" in message(
        fixed, np.zeros((2, 5))
    )
    even = Lambda((Var("w", Space(Symmetric("B"))),), Number(0))
    assert "has 4 elements, but a Symmetric axis has an odd number, 2·B + 1" in message(even, np.zeros(4))


def test_messages_about_missing_and_unfit_arguments() -> None:
    assert "takes 2 arguments (A, x), but 1 were given; missing: x" in message(PRODUCT, MATRIX)
    assert "but 3 were given; 1 too many" in message(PRODUCT, MATRIX, VECTOR, VECTOR)
    assert "no array was given for x" in message(PRODUCT, MATRIX, None)
    text = message(PRODUCT, MATRIX, VECTOR * 1j)
    assert "x takes real numbers, but the array given for it has dtype complex128" in text
    assert "declare x with dtype=complex" in text
    assert "the array given for x has dtype object, which is not a number type" in message(
        PRODUCT, MATRIX, np.array([None])
    )
    assert "has dtype <U1, which is not a number type" in message(PRODUCT, MATRIX, ["a", "b", "c"])
    assert "its lists have unequal lengths" in message(PRODUCT, [[1.0], [1.0, 2.0]], VECTOR)
    assert "A is a tensor, Space('N', 'M'), but a callable was given" in message(PRODUCT, len, VECTOR)
    whole = Lambda((Var("n", Space("M", dtype=int)),), Number(0))
    assert "n takes whole numbers, but the array given for it has dtype float64" in message(whole, VECTOR)


def test_nothing_over_the_real_line() -> None:
    with pytest.raises(UnsupportedError, match="real line"):
        run(Lambda((Var("f", Space(Real())),), Number(0)), (VECTOR,))


# --- named maps ----------------------------------------------------------------------------------------------------

R = Var("R", Function(Space("M")))
L = Var("L", Function(Space("M"), result=Space("N"), linear=True))


class Half:
    """R(u) = ½ u·u."""

    def __call__(self, u: Any) -> Any:
        return 0.5 * u @ u

    def pullback(self, position: int, arguments: tuple[Any, ...], cotangent: Any) -> Any:
        assert position == 0
        return cotangent * arguments[0]


DOUBLED = Lambda((j,), mul(Number(2), Apply(x, (j,))))
VALUE = Lambda((R, x), Apply(R, (DOUBLED,)))
SLOPE = Lambda((R, x), Lambda((j,), mul(Number(2), Apply(Pullback(R, 0, (DOUBLED,), Number(1)), (j,)))))


def test_named_maps_and_their_pullbacks() -> None:
    assert run(VALUE, (Half(), VECTOR)) == 28.0
    assert isinstance(run(VALUE, (lambda u: 1, VECTOR)), np.generic)
    np.testing.assert_array_equal(run(SLOPE, (Half(), VECTOR)), 4 * VECTOR)
    image = Lambda((L, x), Lambda((i,), Apply(Apply(L, (x,)), (i,))))
    program = Lambda((L, x, y), Tuple((image.body, Apply(L, (x,)))))
    first, second = run(program, (lambda u: MATRIX @ u, VECTOR, np.zeros(2)))
    np.testing.assert_array_equal(first, MATRIX @ VECTOR)
    np.testing.assert_array_equal(second, first)


def test_messages_about_named_maps() -> None:
    assert "the derivative of R is needed, but what was given for R has no pullback" in message(SLOPE, np.sum, VECTOR)
    assert "R is a map, but what was given for it cannot be called" in message(VALUE, 3.0, VECTOR)
    assert "R gave an array of shape (3,), but () was expected" in message(VALUE, lambda u: u, VECTOR)
    alone = "R takes 1 arguments, which the function given for it cannot be called with"
    assert alone in message(VALUE, lambda u, v: u @ v, VECTOR)
    with pytest.raises(TypeError, match="can only concatenate list"):
        run(VALUE, (lambda u: [] + 1, VECTOR))
    row = Lambda((j,), Apply(A, (i, j)))
    rows = Lambda((R, A), Lambda((i,), Apply(R, (row,))))
    with pytest.raises(UnsupportedError, match="a named map is called for each index i"):
        run(rows, (Half(), MATRIX))


# --- source --------------------------------------------------------------------------------------------------------


def test_source_runs_alone_at_any_size() -> None:
    text = source(PRODUCT, "product")
    assert text.startswith("import numpy as np\n")
    assert "combdiff" not in text
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    for shape in ((2, 3), (5, 1), (0, 4)):
        matrix, vector = np.ones(shape), np.ones(shape[1])
        np.testing.assert_array_equal(namespace["product"](matrix, vector), matrix @ vector)


def test_source_names_what_it_can_and_avoids_clashes() -> None:
    t = Var("lambda", Space("N"))
    np_ = Var("np", Space("N"))
    size = Var("N", Space())
    body = Lambda((i,), Mul((Apply(t, (i,)), Apply(np_, (i,)), size)))
    text = source(Lambda((t, np_, size), body), "f")
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    np.testing.assert_array_equal(namespace["f"](np.arange(3.0), np.ones(3), 2.0), [0, 2, 4])
    assert "def f(lambda_, np_, N):" in text


def test_source_of_a_binding_keeps_its_name() -> None:
    image = Var("image", Space("N"))
    value = PRODUCT.body
    body: Term = total((i,), mul(Apply(image, (i,)), Apply(image, (i,))))
    from combdiff.ir.terms import let

    text = source(Lambda((A, x), let([(image, value)], body)), "f")
    assert "image = A @ x  # (N,) matrix-vector" in text
    assert "image @ image" in text


# --- speed and determinism -----------------------------------------------------------------------------------------


def test_a_cached_call_adds_microseconds() -> None:
    """Of the process's own time, which other processes on the machine do not lengthen."""

    def seconds(call: Callable[[], Any]) -> float:
        return min(timeit.repeat(call, timer=time.process_time, number=1000, repeat=5)) / 1000

    run(PRODUCT, (MATRIX, VECTOR))
    assert seconds(lambda: run(PRODUCT, (MATRIX, VECTOR))) - seconds(lambda: MATRIX @ VECTOR) < 20e-6


def test_paths_are_deterministic_and_leave_the_random_state_alone() -> None:
    operands = [frozenset({n, (n + 1) % 12, (5 * n) % 12}) for n in range(12)]
    random.seed(3)
    before = random.getstate()
    first = find_paths(operands, frozenset({0}), dict.fromkeys(range(12), 3))
    assert random.getstate() == before
    random.seed(4)
    assert find_paths(operands, frozenset({0}), dict.fromkeys(range(12), 3)) == first


def test_constant_indices_out_of_range_read_zero() -> None:
    for place in (-9, -1, 3, 5):
        assert run(Lambda((x,), Apply(x, (Affine((), place),))), (VECTOR,)) == 0.0


def test_numbers_beside_scalars_give_numpy_scalars() -> None:
    """Python's `1j + np.float64` is a Python complex, whose real part is no NumPy scalar."""

    @cd.program
    def real_part(x: cd.Space("n")):  # type: ignore[valid-type, no-untyped-def]
        return cd.real(cd.sum(lambda k, p: 1j + x[k], p="n"))

    for form in (real_part, cd.simplify(real_part)):
        result = form(np.ones(3))
        assert isinstance(result, np.float64)
        assert result == 9.0


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("library", BACKENDS)
def test_powers_of_sizes_are_as_those_of_arrays(library: str) -> None:
    """Python raises ZeroDivisionError at 1/0, and the root of −1 is a complex number to it."""

    @cd.program
    def f(x: cd.Space("n")):
        n = x.shape[0]
        return x.sum() / (n - 1), x.sum() * (n - 2) ** 0.5, x.sum() / n**2, x.sum() * (n - 2) ** (-1.5)

    for n, expected in [
        (0, [0.0, np.nan, np.nan, np.nan]),
        (1, [np.inf, np.nan, 1.0, np.nan]),
        (2, [2.0, 0.0, 0.5, np.inf]),
        (6, [1.2, 12.0, 1 / 6, 0.75]),
    ]:
        found = on(library, f)(*converted(library, [np.ones(n)]))
        np.testing.assert_allclose([float(back(one)) for one in found], expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["u1", "i1", "u8", "i4", ">i8", ">i4"])
def test_integers_of_few_bits_count_like_others(kind: str) -> None:
    """NumPy's products of 8 and 32 bits wrap around, and its exponential of 8 bits has 16."""

    @cd.program
    def f(k: cd.Space("n", dtype=int), x: cd.Space("n")):  # type: ignore[valid-type, no-untyped-def]
        return k * k - 3, cd.exp(k), k.sum() * x

    k, x = np.array([1, 100, 0]), np.array([1.0, 2.0, 3.0])
    if "4" in kind:
        k[2] = -100_000
    for found, expected in zip(f(k.astype(kind), x), (k * k - 3, np.exp(k), k.sum() * x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_arrays_of_the_other_byte_order_are_turned() -> None:
    @cd.program
    def f(x: cd.Space("n")):  # type: ignore[valid-type, no-untyped-def]
        return x[::-1], np.sort(x), x.max()

    x = np.array([1.0, 3.0, 2.0])
    for found, expected in zip(f(x.astype(">f8")), (x[::-1], np.sort(x), 3.0), strict=True):
        assert found.dtype.isnative
        np.testing.assert_array_equal(found, expected)
    assert cd.pushforward(f)(x.astype(">f8"), x)[2] == 3.0


@pytest.mark.parametrize("kind", ["float16", "longdouble"])
def test_functions_of_matrices_name_the_element_types_that_they_take(kind: str) -> None:
    @cd.program
    def f(A: cd.Space("n", "n")):  # type: ignore[valid-type, no-untyped-def]
        return cd.inv(A)

    with pytest.raises(ArgumentError, match="float64 or float32"):
        f(np.eye(2).astype(kind))


def test_nothing_has_no_largest_element() -> None:
    @cd.program
    def f(A: cd.Space("m", "n")):  # type: ignore[valid-type, no-untyped-def]
        return A.max(axis=1).sum() - A.min()

    for g in (f, cd.grad(f)):
        with pytest.raises(cd.ArgumentError, match="the largest of no elements is asked for: an axis has length 0"):
            g(np.zeros((2, 0)))
