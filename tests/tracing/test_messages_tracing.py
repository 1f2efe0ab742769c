"""What a user reads who writes a program wrongly: each message with its values, its hint and its line.

In every function below the line to be named ends in the comment `# here`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from combdiff import tracing as cd
from combdiff.errors import CombdiffError, IndexingError, TraceError, TypeMismatchError, UnsupportedError
from combdiff.ir.domains import Cyclic, Function, Real, Space, Symmetric

Number = Space()
Vector = Space("N")
Matrix = Space("N", "M")
Square = Space("N", "N")
Complex = Space("N", dtype=complex)
Places = Space("N", dtype=int)

Case = tuple[Callable[..., Any], type[CombdiffError], str, str]
CASES: list[Case] = []


def case(error: type[CombdiffError], message: str, hint: str = "") -> Callable[[Callable[..., Any]], None]:
    """Registers a function whose tracing raises the error, with this message and this hint."""

    def register(function: Callable[..., Any]) -> None:
        CASES.append((function, error, message, hint))

    return register


# --- indices -------------------------------------------------------------------------------------------------------


@case(IndexingError, "A has order 2, but is read with 3 indices", "give 2 indices")
def too_many_indices(A: Matrix):
    return cd.sum_(lambda i, j: A[i, j, i])  # here


@case(IndexingError, "x has order 1, but is read with 2 indices", "give 1 index")
def too_many_indices_of_a_vector(x: Vector):
    return x[0, 1]  # here


@case(IndexingError, "a has order 0, but is read with 1 indices", "a number has no elements")
def index_of_a_number(a: Number):
    return a[0]  # here


@case(
    IndexingError,
    "the lambda of cd.sum gives A[i, :], which still has 1 axis",
    "read an element with one index per axis; sums along axes are A.sum(axis=0)",
)
def too_few_indices(A: Matrix):
    return cd.sum_(lambda i: A[i])  # here


@case(
    IndexingError,
    "the index i is over 'M' by axis 1 of C, but over 'N' by axis 0 of A",
    "give both axes the same domain, or use two indices; a range that is given wins, i=3 for the first three",
)
def unequal_domains(A: Matrix, C: Space("M", "M")):
    return cd.sum_(lambda i: A[i, 0] * C[0, i])  # here


@case(
    IndexingError,
    "the index i is over 'N' by axis 0 of x, but over Real() by its keyword",
    "give both axes the same domain, or use two indices; a range that is given wins, i=3 for the first three",
)
def keyword_against_an_axis(x: Vector):
    return cd.sum_(lambda i: x[i], i=Real())  # here


@case(
    IndexingError,
    "the index k is over Cyclic('N') by axis 0 of u, but over Symmetric('B') by axis 0 of w",
    "give both axes the same domain, or use two indices; a range that is given wins, k=3 for the first three",
)
def unequal_kinds_of_domains(u: Space(Cyclic("N")), w: Space(Symmetric("B"))):
    return cd.sum_(lambda k: w[k] * u[k])  # here


@case(
    IndexingError,
    "the domain of the index k is unknown: it indexes no axis by itself",
    "write cd.sum(lambda i, k: …, k=5) for the indices 0 … 4",
)
def unknown_domain(x: Vector):
    return cd.sum_(lambda i, k: x[i] * x[2 * k])  # here


@case(
    IndexingError,
    "the domain of the index n is unknown: it indexes no axis by itself",
    "write cd.tensor(lambda n: …, n=5) for the indices 0 … 4",
)
def unknown_domain_of_a_tensor(x: Vector):
    return cd.tensor(lambda n: x[0])  # here


@case(
    IndexingError,
    "the index k was given the domain 2.5",
    'give a size or a domain: k=5, k="N", k=x.shape[0] or k=cd.Cyclic("N")',
)
def domain_that_is_none(x: Vector):
    return cd.sum_(lambda k: x[2 * k], k=2.5)  # here


AFFINE = "an index expression is made of whole multiples of indices and whole numbers, such as 2*i - j + 1"


WRAPS = "on an axis declared as cd.Cyclic(n), x[i + k] wraps by itself"
READ = (
    "write cd.sum(lambda i: x[i]) or cd.tensor(lambda i: x[i]); indices in an array are a parameter, "
    "x[idx[i]] with idx: cd.Space(…, dtype=int)"
)
NUMBER = "is read with a traced number, but an index is an expression of the indices of a lambda"


@case(IndexingError, f"axis 0 of A {NUMBER}", READ)
def product_of_indices(A: Square):
    return cd.sum_(lambda i, j: A[i, j] * A[i * (j + 1), 0])  # here


@case(IndexingError, f"axis 0 of x {NUMBER}", READ)
def power_of_an_index(x: Vector):
    return cd.sum_(lambda i: x[i**2], i=3)  # here


@case(IndexingError, "i // j: the divisor must be a positive whole number or a size", WRAPS)
def whole_part_of_an_index(x: Vector):
    return cd.sum_(lambda i, j: x[i // j], i=3, j=3)  # here


@case(IndexingError, f"axis 0 of x {NUMBER}", READ)
def quotient_of_indices(x: Vector):
    return cd.sum_(lambda i, j: x[i / j], i=3, j=3)  # here


@case(
    IndexingError,
    "1/2*i is not a whole index, but reads axis 0 of x, which is 'N'",
    "an index expression has whole coefficients, such as 2*i - j + 1",
)
def half_an_index(x: Vector):
    return cd.sum_(lambda i: x[i / 2], i=3)  # here


@case(
    IndexingError,
    "2.0 is not a whole index, but reads axis 0 of x, which is 'N'",
    "an index expression has whole coefficients, such as 2*i - j + 1",
)
def float_index(x: Vector):
    return x[2.0]  # here


@case(
    IndexingError,
    "cd.delta(<traced number a[i]: Space(dtype=int)>, <traced number a[j]: Space(dtype=int)>): "
    "one of them is to be an index expression",
    "elements of tensors are compared by ==: cd.where(a[i] == b[j], 1, 0)",
)
def delta_of_two_lookups(x: Vector, a: Space("N", dtype=int)):
    return cd.sum_(lambda i, j: x[i] * cd.delta(a[i], a[j]))  # here


@case(IndexingError, "'i' is not an index expression", AFFINE)
def text_as_an_index(x: Vector):
    return x["i"]  # here


@case(IndexingError, "'a' is not an index expression beside the index i", AFFINE)
def text_beside_an_index(x: Vector):
    return cd.sum_(lambda i: x[i + "a"])  # here


@case(
    IndexingError,
    "axis 0 of x is read with a traced number, but an index is an expression of the indices of a lambda",
    "write cd.sum(lambda i: x[i]) or cd.tensor(lambda i: x[i]); indices in an array are a parameter, "
    "x[idx[i]] with idx: cd.Space(…, dtype=int)",
)
def traced_number_as_an_index(x: Vector, a: Number):
    return x[a]  # here


@case(
    IndexingError,
    f"axis 0 of x {NUMBER}",
    "integers of an array are added and multiplied within an index; what else is done with them, such as idx[i] // 2, "
    "NumPy computes before, and it is a parameter: x[idx[i]] with idx: cd.Space(…, dtype=int)",
)
def half_of_an_integer_of_an_array(x: Vector, idx: Space("M", dtype=int)):
    return cd.sum_(lambda i, j: x[(idx[i] + j) // 2], j=2)  # here


@case(
    IndexingError,
    "i % 0: the modulus must be a positive whole number or a size",
    "on an axis declared as cd.Cyclic(n), x[i + k] wraps by itself",
)
def modulus_zero(x: Vector):
    return cd.sum_(lambda i: x[i] * cd.where(i % 0 == 0, 1, 2))  # here


@case(IndexingError, "the index 3 is outside of axis 1 of A, which is 3")
def constant_index_out_of_range(A: Space("N", 3)):
    return A[0, 3]  # here


@case(IndexingError, "the index -2 is outside of axis 0 of w, which is Symmetric(1)")
def constant_index_out_of_a_symmetric_range(w: Space(Symmetric(1))):
    return w[-2]  # here


@case(
    IndexingError,
    "the index i is used outside of the lambda that has it as a parameter",
    "use i only inside its lambda: cd.tensor(lambda i: …) keeps all the values",
)
def index_of_a_finished_lambda(x: Vector):
    kept = []
    total = cd.sum_(lambda i: (kept.append(i), x[i])[1])
    return total + x[kept[0]]  # here


@case(
    IndexingError,
    "the index i is used outside of the lambda that has it as a parameter",
    "use i only inside its lambda: cd.tensor(lambda i: …) keeps all the values",
)
def element_of_a_finished_lambda(x: Vector):
    kept = []
    total = cd.sum_(lambda i: (kept.append(x[i]), x[i])[1])
    return total + kept[0]  # here


@case(
    UnsupportedError,
    "axis 0 of x is read with steps of 2, but N by 2 has no name as a size",
    'declare the axis with a number, or as a multiple: "2*n"',
)
def slice_of_an_axis(x: Vector):
    return x[::2]  # here


@case(
    UnsupportedError,
    "A is read with None beside an array of indices",
    "add the axis afterwards: x[idx][:, None]",
)
def new_axis_beside_indices(A: Matrix):
    return A[[0, 1], None]  # here


@case(
    UnsupportedError,
    "a tensor is read with an array of bool",
    "arrays of indices hold whole numbers; in place of a mask multiply by zeros and ones, or use cd.where",
)
def mask_of_data(A: Matrix):
    return A[np.array([[True, False]])]  # here


@case(
    IndexingError,
    "the index t runs over the real line by axis 0 of f, but is used on axis 0 of x",
)
def real_index_on_a_whole_axis(f: Space(Real()), x: Vector):
    return cd.sum_(lambda t: f[t] * x[2 * t])  # here


@case(
    UnsupportedError,
    "the index t runs over the real line and is compared: only whole indices can be",
    "multiply by a function of the declared Space(cd.Real()) instead, or use cd.delta",
)
def comparison_of_real_indices(f: Space(Real())):
    return cd.sum_(lambda t: cd.where(t >= 0, f[t], 0))  # here


@case(IndexingError, "i is compared with 1/2: both must be whole")
def comparison_with_a_half(x: Vector):
    return cd.sum_(lambda i: cd.where(i < 0.5, x[i], 0))  # here


# --- lambdas -------------------------------------------------------------------------------------------------------


@case(
    TraceError,
    "cd.sum is given the domain of k, but the indices of its lambda are i, j",
    "name one of the indices: i=…",
)
def unknown_keyword(A: Matrix):
    return cd.sum_(lambda i, j: A[i, j], k=5)  # here


NAMES = "but each parameter is an index and has just a name"
PLAIN = (
    "write cd.sum(lambda i, j: …); domains are keywords of cd.sum, as in k=5; "
    "names from around the lambda need no default values, as it is called at once"
)


@case(
    TraceError, "the lambda of cd.sum has the parameter k=5, but each parameter is an index and has just a name", PLAIN
)
def default_of_an_index(x: Vector):
    return cd.sum_(lambda i, k=5: x[i])  # here


@case(
    TraceError, "the lambda of cd.sum has the parameter *i, but each parameter is an index and has just a name", PLAIN
)
def starred_index(x: Vector):
    return cd.sum_(lambda *i: x[i])  # here


@case(TraceError, f"the lambda of cd.sum has no parameters, {NAMES}", PLAIN)
def no_index(x: Vector):
    return cd.sum_(lambda: x[0])  # here


@case(
    TraceError,
    "cd.tensor takes a lambda of indices, not <traced tensor x: Space('N')>",
    "write cd.tensor(lambda i, j: …)",
)
def tensor_of_a_tensor(x: Vector):
    return cd.tensor(x)  # here


@case(
    TraceError,
    "the lambda of cd.sum gives a tuple of 2, but a number or tensor is expected",
    "write one cd.sum for each value",
)
def lambda_with_a_tuple(x: Vector):
    return cd.sum_(lambda i: (x[i], 1))  # here


@case(
    TraceError,
    "the lambda of cd.tensor gives nothing, but a number or tensor is expected",
    "write one cd.tensor for each value",
)
def lambda_without_a_value(x: Vector):
    return cd.tensor(lambda i: None)  # here


@case(
    TraceError,
    "the condition of cd.where is 'x > 0'",
    "write a comparison of values or of indices, such as x > 0 or i <= j",
)
def where_on_a_text(x: Vector):
    return cd.sum_(lambda i: cd.where("x > 0", x[i], 2))  # here


PARENTHESES = "put each comparison in parentheses: (i <= j) & (j < 3)"


@case(TraceError, "& and | join conditions, not the index j", PARENTHESES)
def conditions_without_parentheses(A: Square):
    return cd.sum_(lambda i, j: cd.where(i <= j & 1, A[i, j], 0))  # here


@case(TraceError, "& and | join conditions on indices, not True", PARENTHESES)
def condition_and_truth(A: Square):
    return cd.sum_(lambda i, j: cd.where((i <= j) & True, A[i, j], 0))  # here


# --- Python on traced values -----------------------------------------------------------------------------------------

CHOICE = (
    "write cd.where(i <= j, a, b) for index conditions, joined by & and | with parentheses; "
    "cd.maximum, cd.relu, cd.sign or cd.abs for values"
)
TRUTH = "Python's if, and, or, not, in or a chain such as 0 <= i < 3 needs the truth of a"
UNKNOWN = "which has no value while the program is traced"


@case(TraceError, f"{TRUTH} traced tensor, {UNKNOWN}", CHOICE)
def if_on_a_tensor(x: Vector):
    return x if x else -x  # here


@case(TraceError, f"{TRUTH} condition on indices, {UNKNOWN}", CHOICE)
def chain_of_comparisons(x: Vector):
    return cd.sum_(lambda i: cd.where(0 <= i < 3, x[i], 0))  # here


@case(TraceError, f"{TRUTH} traced index, {UNKNOWN}", CHOICE)
def if_on_an_index(x: Vector):
    return cd.sum_(lambda i: x[i] if i else 0)  # here


OF_VALUES = "Python's if, and, or, not, in, max, min or a chain such as 0 < x < 1 needs the truth of a comparison of"


OF_VALUES_HINT = (
    "write cd.where(x > 0, a, b), joined by & and | with parentheses: (x > 0) & (x < 1); "
    "cd.maximum and cd.minimum for the larger and smaller of two"
)


@case(TraceError, f"{OF_VALUES} traced values, {UNKNOWN}", OF_VALUES_HINT)
def comparison_of_values(x: Vector):
    return cd.sum_(lambda i: x[i] if x[i] > 0 else 0)  # here


@case(TraceError, f"{OF_VALUES} traced values, {UNKNOWN}", OF_VALUES_HINT)
def equality_of_values(x: Vector):
    return x[0] if x[0] == x[1] else x[1]  # here


@case(TraceError, f"{OF_VALUES} traced values, {UNKNOWN}", OF_VALUES_HINT)
def numpy_comparison(x: Vector):
    return x if np.float64(2) < x[0] else -x  # here


@case(
    TraceError,
    f"float() is asked of a traced number, {UNKNOWN}",
    "leave the conversion out, and write np.sqrt for math.sqrt",
)
def float_of_a_value(x: Vector):
    return float(x[0])  # here


@case(TraceError, f"int() is asked of a traced number, {UNKNOWN}", "leave the conversion out")
def int_of_a_value(x: Vector):
    return int(x[0])  # here


@case(TraceError, f"complex() is asked of a traced number, {UNKNOWN}", "leave the conversion out")
def complex_of_a_value(x: Vector):
    return complex(x[0])  # here


@case(
    TraceError,
    f"Python asks for the whole number of a traced number, {UNKNOWN}",
    "for a loop over an index write cd.sum(lambda i: …)",
)
def range_of_a_value(a: Number):
    return sum(range(a))  # here


@case(
    TraceError,
    "len of x is asked for, whose first axis is 'N'",
    "use x.shape[0], a number of the program, or declare the axis with a number",
)
def length_of_a_tensor(x: Vector):
    return len(x)  # here


@case(
    TraceError,
    f"Python loops over or unpacks a traced tensor, {UNKNOWN}",
    "write cd.sum(lambda i: …) or cd.tensor(lambda i: …)",
)
def loop_over_a_tensor(x: Vector):
    return sum(element for element in x)  # here


@case(
    TraceError,
    f"an assignment changes an element of a traced tensor, {UNKNOWN}",
    "build the new tensor with cd.tensor(lambda i: …)",
)
def assignment(x: Vector):
    x[0] = 1  # here
    return x


SIDE_BY_SIDE = (
    "write np.stack([a, b]) for a row of numbers or of tensors, np.block([[a, b], [c, d]]) for several rows of numbers"
)
STACKED = f"{SIDE_BY_SIDE}; a tensor needs no conversion"
ANEW = (
    "build the new tensor: np.stack([a, b]), np.concatenate, np.where(np.arange(n) == k, a, y) or "
    "cd.tensor(lambda i: …)"
)


@case(TraceError, f"np.asarray makes an array of numbers, and is given a traced tensor, {UNKNOWN}", STACKED)
def array_of_a_tensor(x: Vector):
    return np.asarray(x)  # here


@case(
    TraceError,
    "determinant meets a TypeError: Cannot cast ufunc 'det' input from dtype('O') to dtype('float64') with casting "
    "rule 'same_kind'",
    SIDE_BY_SIDE,
)
def determinant(x: Vector):
    return np.linalg.det(np.array([[x[0], 1.0], [2.0, x[1]]]))  # here


@case(
    TraceError,
    "exponentials meets a TypeError: loop of ufunc does not support argument 1 of type int which has no callable exp "
    "method",
    SIDE_BY_SIDE,
)
def exponentials(x: Vector):
    return np.exp([x[0], 1])  # here


@case(TraceError, f"float() is asked of a traced number, {UNKNOWN}", SIDE_BY_SIDE)
def array_of_floats(x: Vector):
    return np.array([x[0], 1], dtype=float)  # here


@case(
    TraceError,
    f"NumPy asks for the numbers of a traced tensor, {UNKNOWN}",
    "use cd functions, or NumPy's own of the same name; write lists of numbers as np.stack([a, b]), and leave "
    "np.vectorize out",
)
def list_beside_an_array(x: Vector):
    return np.ones(2) * [x, x]  # here


@case(
    TraceError,
    f"an assignment puts into an array of NumPy's, which holds numbers alone, a traced number, {UNKNOWN}",
    ANEW,
)
def assignment_of_a_number(x: Vector):
    y = np.zeros(3)
    y[0] = x[1]  # here
    return y.sum()


@case(
    TraceError,
    f"an assignment puts into an array of NumPy's, which holds numbers alone, a traced tensor, {UNKNOWN}",
    ANEW,
)
def assignment_of_a_row(x: Vector):
    y = np.zeros((2, 3))
    y[0, :] = x  # here
    return y.sum()


@case(
    UnsupportedError,
    "np.add with out= changes an array in place, as y += x does where y is an array of NumPy's",
    "make a new one: y = y + x",
)
def addition_in_place(x: Space(3)):
    y = np.ones(3)
    y += x  # here
    return y


@case(TraceError, "the traced tensor x is called like a function", "read an element: x[i]")
def call_of_a_tensor(x: Vector):
    return cd.sum_(lambda i: x(i), i=3)  # here


@case(TraceError, "division by the constant 0")
def division_by_zero(x: Vector):
    return x / 0  # here


CLOSURE = np.arange(3.0)


@case(
    TypeMismatchError,
    "axis 0 of x is 'N', but axis 0 of CLOSURE is 3: they cannot be combined element by element",
    "sizes are equal when they have the same name or number; for other pairings write the indices: "
    "cd.tensor(lambda i, j: …)",
)
def constant_array(x: Vector):
    return (x * CLOSURE).sum()  # here


@case(TypeMismatchError, "CLOSURE @ x: axis 0 of CLOSURE is 3, but axis 0 of x is 'N': they must be equal")
def constant_array_first(x: Vector):
    return CLOSURE @ x  # here


@case(
    UnsupportedError,
    "np.unique is not supported in a program: how many elements the result has depends on the values",
    "compute it outside, and pass it as a parameter",
)
def unknown_numpy_function(x: Vector):
    return np.unique(x)  # here


@case(
    UnsupportedError,
    "np.spacing is not supported in a program: it looks at how numbers are stored",
    "leave it out of the program",
)
def unknown_numpy_ufunc(x: Vector):
    return np.spacing(x)  # here


@case(
    UnsupportedError, "np.hypot.reduce is not supported in a program", "write the steps in a Python loop, or as cd.scan"
)
def ufunc_method(x: Vector):
    return np.hypot.reduce(x)  # here


@case(
    UnsupportedError,
    "np.fmax.reduce in a program: got an unexpected keyword argument 'initial'",
    "leave the other options out",
)
def ufunc_method_option(x: Vector):
    return np.fmax.reduce(x, initial=0)  # here


@case(
    UnsupportedError,
    "np.add.accumulate with dtype=<class 'numpy.float32'> in a program",
    "leave it out: the arrays of a call decide; np.trunc cuts to whole numbers",
)
def ufunc_method_dtype(x: Vector):
    return np.add.accumulate(x, dtype=np.float32)  # here


@case(
    UnsupportedError,
    "np.add.at is not supported in a program: it changes an array in place",
    "build the new tensor with cd.tensor(lambda i: …); np.bincount(b, weights=x) adds up in bins",
)
def ufunc_method_in_place(x: Vector):
    return np.add.at(x, [0], x)  # here


@case(
    UnsupportedError,
    "numpy.polynomial.chebyshev.chebval is not supported in a program: it asks for numbers, and a traced tensor has "
    "none while the program is traced",
    "np.polyval(c[::-1], x) for powers; else the basis at known points, np.polynomial.chebyshev.chebvander(x, 3) @ c",
)
def coefficients_of_a_series(x: Vector):
    return np.polynomial.chebyshev.chebval(0.3, x)  # here


@case(
    UnsupportedError,
    "np.maximum.reduceat is not supported in a program, but for sums from known places, in ascending order, each up to "
    "the next",
    "write the parts, np.stack([x[:3].max(), x[3:].max()])",
)
def largest_of_segments(x: Vector):
    return np.maximum.reduceat(x, [0])  # here


@case(
    UnsupportedError,
    "np.bincount of bins that are a parameter: how many there are depends on the values",
    "say how many there are, np.bincount(b, weights=w, minlength=8)",
)
def bins_without_a_number(x: Vector, b: Places):
    return np.bincount(b, weights=x)  # here


@case(
    TypeMismatchError,
    "np.bincount of x: bins are a row of whole numbers from 0 on",
    "declare them as cd.Space(n, dtype=int)",
)
def bins_of_numbers(x: Vector):
    return np.bincount(x, minlength=3)  # here


@case(
    TypeMismatchError,
    "np.bincount of b with weights of a tensor of order 1",
    "give as many weights as there are places",
)
def bins_beside_fewer_weights(x: Vector, b: Places):
    return np.bincount(b, weights=x[1:], minlength=3)  # here


@case(
    UnsupportedError,
    "np.cumprod in a program: got an unexpected keyword argument 'dtype'",
    "leave the other options out",
)
def numpy_option(x: Vector):
    return np.cumprod(x, dtype=float)  # here


# --- parts that do not fit -----------------------------------------------------------------------------------------

PAIRING = (
    "sizes are equal when they have the same name or number; for other pairings write the indices: "
    "cd.tensor(lambda i, j: …)"
)


@case(
    TypeMismatchError,
    "axis 1 of A is 'M', but axis 0 of x is 'N': they cannot be combined element by element",
    PAIRING,
)
def sizes_that_do_not_broadcast(A: Matrix, x: Vector):
    return A + x  # here


@case(TypeMismatchError, "A @ x: axis 1 of A is 'M', but axis 0 of x is 'N': they must be equal")
def sizes_that_do_not_contract(A: Matrix, x: Vector):
    return A @ x  # here


@case(TypeMismatchError, "x @ a: @ takes tensors, but a is a number", "write * for a product with a number")
def product_with_a_number(x: Vector, a: Number):
    return x @ a  # here


@case(
    TypeMismatchError,
    "in einsum 'ij,jk->ik', axis 1 of A is 'M', but axis 0 of A is 'N': they must be equal",
)
def einsum_sizes(A: Matrix):
    return cd.einsum("ij,jk->ik", A, A)  # here


@case(TypeMismatchError, "einsum 'ij,jk->ik' describes 2 operands, but 1 are given")
def einsum_operands(A: Matrix):
    return cd.einsum("ij,jk->ik", A)  # here


@case(TypeMismatchError, "einsum 'ijk->' gives A the 3 indices 'ijk', but its order is 2")
def einsum_order(A: Matrix):
    return cd.einsum("ijk->", A)  # here


@case(TypeMismatchError, "einsum 'ij->ik': each index of the result must be one of the left, once")
def einsum_result(A: Matrix):
    return cd.einsum("ij->ik", A)  # here


@case(
    UnsupportedError,
    "einsum 'i1->i': only letters, commas, ... and one -> are read",
    'name every axis: cd.einsum("bij,bjk->bik", A, B)',
)
def einsum_sign(A: Matrix):
    return cd.einsum("i1->i", A)  # here


@case(TypeMismatchError, "the trace of x is asked for, but its order is 1, not 2")
def trace_of_a_vector(x: Vector):
    return cd.trace(x)  # here


@case(TypeMismatchError, "the axes to sum are 2, but A has the axes 0 … 1")
def sum_over_a_missing_axis(A: Matrix):
    return A.sum(axis=2)  # here


@case(TypeMismatchError, "the axes (0, 0) are no order of the 2 axes of A")
def transpose_of_no_order(A: Matrix):
    return np.transpose(A, (0, 0))  # here


@case(TypeMismatchError, "relu takes real arguments", "take cd.real(…) of the argument first")
def relu_of_complex(z: Complex):
    return cd.sum_(lambda i: cd.relu(z[i]))  # here


@case(TypeMismatchError, "maximum takes real arguments", "take cd.real(…) of the argument first")
def maximum_of_complex(z: Complex):
    return np.maximum(z, 0)  # here


@case(TypeMismatchError, "'a' is not a number or tensor")
def text_in_arithmetic(x: Vector):
    return x + "a"  # here


@case(
    TraceError,
    "a tuple of 2 is used where a number or tensor is expected",
    "give one value here, or a list for a vector; only a whole program returns a tuple",
)
def tuple_in_arithmetic(x: Vector):
    return x + (1, 2)  # noqa: RUF005  # here


@case(TypeMismatchError, "[[1, 2], [3]] is no array: its parts have several lengths")
def ragged_list(x: Vector):
    return x + [[1, 2], [3]]  # noqa: RUF005  # here


@case(TypeMismatchError, "lists in 64 lists are no array: NumPy's have 64 axes at most")
def list_in_itself(x: Vector):
    endless: list[Any] = []
    endless.append(endless)
    return x * endless  # here


# --- named maps and programs in programs -----------------------------------------------------------------------------


@case(
    TypeMismatchError,
    "R is called with 2 arguments, but was declared with 1",
    "declare it as cd.Function(cd.Space(…), cd.Space(…)), or mend the call",
)
def arity_of_a_map(R: Function(Vector), x: Vector):
    return R(x, x)  # here


@case(TypeMismatchError, "argument 0 of R is a tensor over ('N', 'M'), but was declared a tensor over ('N')")
def space_of_a_map(R: Function(Vector), A: Matrix):
    return R(A)  # here


@case(TypeMismatchError, "argument 0 of R is a number, but was declared a tensor over ('N')")
def number_for_a_map_of_tensors(R: Function(Vector), a: Number):
    return R(a)  # here


@case(
    TypeMismatchError,
    "argument 0 of R is complex, but was declared float",
    "declare it with that dtype, or take cd.real(…) of the argument",
)
def complex_for_a_real_map(R: Function(Vector), z: Complex):
    return R(z)  # here


@case(TraceError, "the named function R is used as a number", "call it: R(u)")
def map_as_a_number(R: Function(Vector), x: Vector):
    return R * x  # here


@case(TraceError, "the named function R is read like a tensor", "call it: R(u)")
def map_as_a_tensor(R: Function(Vector)):
    return R[0]  # here


def norm(v: Space("n"), w: Space("n")):
    return cd.sum_(lambda i: v[i] * w[i])


def symmetric_form(S: Space("n", "n", symmetry=["S[i,j] = S[j,i]"]), R: Function(Space("n"))):
    return R(S[0])


NORM, FORM = cd.trace_function(norm).term, cd.trace_function(symmetric_form).term


@case(TypeMismatchError, "axis 0 of the argument w is 'M', but must be 'N'")
def sizes_in_a_called_program(x: Vector, y: Space("M")):
    return cd.inline(NORM, (x, y))  # here


@case(TypeMismatchError, "the argument w has order 2, but the program takes order 1")
def order_in_a_called_program(x: Vector, A: Matrix):
    return cd.inline(NORM, (x, A))  # here


@case(TypeMismatchError, "the argument v is complex, but the program takes float")
def dtype_in_a_called_program(x: Vector, z: Complex):
    return cd.inline(NORM, (z, x))  # here


@case(TypeMismatchError, "the program takes (v, w), but is given 1 arguments")
def arity_of_a_called_program(x: Vector):
    return cd.inline(NORM, (x,))  # here


@case(TraceError, "the argument R must be a Function, not a Space")
def tensor_for_a_named_function(A: Space("N", "N", symmetry=["A[i,j] = A[j,i]"]), x: Vector):
    return cd.inline(FORM, (A, x))  # here


@case(
    TypeMismatchError,
    "the argument S must have the symmetry ['S[i,j] = S[j,i]'], which A does not declare",
    "declare A with that symmetry",
)
def symmetry_in_a_called_program(A: Square, R: Function(Vector)):
    return cd.inline(FORM, (A, R))  # here


@case(
    TraceError,
    "calls_itself meets Python's limit of recursion",
    "end what calls itself; write a loop of thousands of steps as a cd.scan",
)
def calls_itself(x: Vector):
    def again(n):
        return cd.sin(x[n]) + again(n)

    return cd.sum_(lambda i: again(i))  # here


# --- the cases -----------------------------------------------------------------------------------------------------


def marked_line(function: Callable[..., Any]) -> int:
    """The line of the function that is marked."""
    lines, start = inspect.getsourcelines(function)
    (marked,) = (start + n for n, line in enumerate(lines) if "# here" in line)
    return marked


def assert_raised(raised: CombdiffError, error: type[CombdiffError], message: str, hint: str, line: int) -> None:
    """The error is of the class, has message and hint, and its text names file and line."""
    assert type(raised) is error
    assert raised.message == message
    assert raised.hint == hint
    assert str(raised) == f"{__file__}:{line}: {message}" + (f"\n  hint: {hint}" if hint else "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_the_message_names_what_where_and_how_to_mend_it(case: Case) -> None:
    function, error, message, hint = case
    with pytest.raises(CombdiffError) as caught:
        cd.trace_function(function)
    assert_raised(caught.value, error, message, hint, marked_line(function))


# --- definitions ---------------------------------------------------------------------------------------------------


def definition_error(function: Any) -> CombdiffError:
    """The error for a function that is no program; it names the line where the function begins."""
    with pytest.raises(TraceError) as caught:
        cd.trace_function(function)
    assert str(caught.value.location) == f"{__file__}:{function.__code__.co_firstlineno}"
    return caught.value


def test_a_parameter_without_annotation() -> None:
    def energy(A: Matrix, x, R: Function(Vector)):
        return x

    error = definition_error(energy)
    assert error.message == "the parameter x of energy has no annotation: its Space or Function is not known"
    assert error.hint == (
        'write def energy(A: Matrix, x: cd.Space("N"), R: Function(Vector)), with the Spaces you mean'
    )


def test_annotations_that_are_objects_are_shown() -> None:
    def energy(A, x):
        return x

    energy.__annotations__["A"] = Space("N", 2, dtype=complex)
    assert definition_error(energy).hint == (
        """write def energy(A: cd.Space('N', 2, dtype=complex), x: cd.Space("N")), with the Spaces you mean"""
    )


def test_a_parameter_annotated_with_something_else() -> None:
    def f(x: float):
        return x

    error = definition_error(f)
    assert error.message == (
        "the parameter x of f is annotated with <class 'float'>, which is not a Space or a Function"
    )


def test_a_parameter_with_a_default() -> None:
    def f(x: Number = 2.0):
        return x

    assert definition_error(f).message == "the parameter x of f has the default 2.0: a program has none"


def test_starred_parameters() -> None:
    def f(*x: Vector):
        return x

    def g(*, x: Vector):
        return x

    for function in (f, g):
        assert definition_error(function).message == (
            f"the parameter x of {function.__name__} is not a plain one: a program has a fixed list of parameters"
        )


def test_an_annotation_that_is_not_defined() -> None:
    def f(x: Orbital):  # noqa: F821
        return x

    error = definition_error(f)
    assert error.message == (
        "the annotation 'Orbital' of the parameter x cannot be read: name 'Orbital' is not defined"
    )
    assert error.hint == "define the Space before the function, where the function can see it"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "nothing"),
        ([1.0], "a list"),
        ((1.0, (2.0,)), "a tuple in a tuple"),
        ((), "an empty tuple"),
    ],
)
def test_results_that_are_none(value: object, found: str) -> None:
    def f(x: Vector):
        return value

    assert definition_error(f).message.startswith(f"f returns {found}")


def test_a_named_function_or_an_index_is_no_result() -> None:
    def f(R: Function(Vector)):
        return R

    error = definition_error(f)
    assert error.message == ("f returns a named function, but a program returns a number, a tensor or a tuple of them")
    assert error.hint == "end the function with return and such a value"


def test_only_python_functions_are_traced() -> None:
    with pytest.raises(TraceError, match="3 is not a Python function"):
        cd.trace_function(3)


# --- values that leave their program -------------------------------------------------------------------------------


def test_a_value_kept_after_its_program() -> None:
    kept: list[Any] = []

    def f(x: Vector):
        kept.append(x)
        return x

    cd.trace_function(f)
    with pytest.raises(TraceError) as caught:
        kept[0] + 1
    place = f"{__file__}:{f.__code__.co_firstlineno}"
    assert caught.value.message == (f"a traced value of the program f ({place}) is used after that program was traced")
    assert caught.value.hint == "pass it as a parameter, or return it; do not keep it in an outer variable"


def test_a_value_used_in_another_program() -> None:
    def inner(y: Vector):
        return y + outside[0]

    def f(x: Vector):
        outside.append(x)
        return cd.trace_function(inner)

    outside: list[Any] = []
    with pytest.raises(TraceError) as caught:
        cd.trace_function(f)
    places = [f"{g.__name__} ({__file__}:{g.__code__.co_firstlineno})" for g in (f, inner)]
    assert caught.value.message == (f"a traced value of the program {places[0]} is used inside the program {places[1]}")


def test_functions_of_indices_outside_of_a_program() -> None:
    with pytest.raises(TraceError) as caught:
        cd.tensor(lambda i: 1, i=3)
    assert caught.value.message == "cd.tensor is used outside of a program"
    assert caught.value.hint == "use it in a function decorated with @cd.program; on arrays use NumPy"
