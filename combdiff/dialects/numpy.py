"""How each array library writes the same array operation: one class per backend, one method per kind of operation.

    operation                  numpy                     jax                 torch
    the transpose of T         T.transpose(2, 0, 1)      the same            T.permute(2, 0, 1)
    0, 1, …, n − 1             np.arange(n)              jnp.arange(n)       torch.arange(n, device=device)

`NumPyDialect` is the base; CuPy and JAX, here, and PyTorch and Dask, beside, override what they write differently.

Invariant: a dialect only writes text; it knows nothing of plans, and needs no library to be installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import factorial, inf

from combdiff.dialects.fragments import tuple_text
from combdiff.errors import UnsupportedError
from combdiff.ir import MATRIX_TABLE, OWN, SCIPY, TABLE, Number
from combdiff.kernels import texts

# Powers that are written as something cheaper.
_POWERS = {
    Number(-2): "1 / {np}.square({0})",
    Number(-1): "1 / {0}",
    Number(2): "{np}.square({0})",
    Number(3): "{0} * {0} * {0}",
    Number(Fraction(1, 2)): "{np}.sqrt({0})",
    Number(Fraction(-1, 2)): "1 / {np}.sqrt({0})",
}
_PARTS = ("real", "imag")  # attributes of an array
# What no program is written with: conditions, quotients, what loses no digits near 1 (see `planning.operations`).
WORDS = {
    "masked": "{np}.where({0}, {1}, -{np}.inf)",
    "finite": "{np}.where({np}.isfinite({0}), {0}, 0)",
    "chosen": "{np}.where({0}, {1}, 0)",
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "equal": "{0} == {1}",
    "not_equal": "{0} != {1}",
    "not_less": "{np}.logical_not({0} < {1})",
    "not_less_equal": "{np}.logical_not({0} <= {1})",
    "log1p": "{np}.log1p({0})",
    "expm1": "{np}.expm1({0})",
    "divide": "{0} / {1}",
}


_OF_JAX = frozenset(
    {
        *("erf", "erfc", "erfcx", "erfinv", "ndtr", "log_ndtr", "ndtri", "gamma", "gammaln", "digamma", "polygamma"),
        *("betaln", "xlogy", "xlog1py", "expit", "logit", "i0", "i1", "i0e", "i1e", "entr", "expi", "exp1", "spence"),
        *("rel_entr", "kl_div", "gammainc", "gammaincc", "zeta", "poch", "betainc", "lambertw", "owens_t"),
    }
)  # of SciPy's special functions

MOST_EXACT = 18  # factorials up to this one are exact as floating point numbers
SOLVERS = ("_checked_step", "_solve", "_descended", "_near", "_search")  # kernels of NumPy's for every library


class NumPyDialect:
    """NumPy's own way of writing."""

    name = "numpy"
    module = "numpy"
    np = "np"
    imports: tuple[str, ...] = ("import numpy as np",)
    special = "special"  # what the module of special functions is called
    special_import = "from scipy import special"
    item = "[()]"  # makes a result without axes a NumPy scalar, of an array that may be a view of an argument too
    guard: str | None = 'with np.errstate(divide="ignore", invalid="ignore", over="ignore"):'
    permute = "transpose"
    powers: Mapping[Number, str] = _POWERS
    strided = True  # arrays have strides, and views of any strides
    lazy_conjugate = False  # a conjugate shares memory with its operand
    in_place = True  # elements of arrays can be written
    widens_integers = True  # functions of integers give real numbers of double precision
    steps_back = True  # slices may have negative steps
    mixes_kinds = True  # products take operands of different element types
    writes_over = True  # results may be written over operands, with out=
    pads = False  # axes are padded, and cut, by one function
    indexes = True  # several axes can be read at arrays of indices
    boxes = "product"  # products of boxes are functions of the library's words, or a "text" for einsum
    fuses_sums = False  # elements are multiplied while they are summed, without an array of the products
    native = True  # arrays of this process's memory, for which kernels and blocks that fit its caches are chosen
    chooses: float = inf  # elements of an array up to which of two ways one alone is gone, by what values are
    vectors_first = False  # a vector times a matrix is quicker than the transposed matrix times the vector
    iterates = "array"  # iterations fill arrays, or a "list", or are a "function" of a step
    solves = True  # the solvers take its arrays; of other libraries NumPy's, by the helper _on_host
    along = ("axis", "axes")  # the words for the axis or the axes of Fourier transforms
    attempts = False  # what is no array of NumPy's is solved in the library's words first, where that succeeds

    def helpers(self) -> Mapping[str, str]:
        """Texts of the functions that emitted source may carry with it, by name."""
        return {**texts("numerics"), **texts("running"), **texts("bands"), **texts("numpy"), **texts("schedules")}

    def solvers(self) -> Mapping[str, str]:
        """The texts of NumPy's solvers, which `_on_host` calls for arrays of other libraries."""
        return {name: texts("numpy")[name] for name in SOLVERS}

    # --- layout

    def transposed(self, text: str, order: Sequence[int]) -> str:
        """The array with axes in that order."""
        identity = list(range(len(order)))
        if list(order) == identity:
            return text
        if list(order) == identity[::-1]:
            return self.reversed_axes(text, len(order))
        return f"{text}.{self.permute}({', '.join(map(str, order))})"

    def reversed_axes(self, text: str, rank: int) -> str:
        """The array with its axes reversed."""
        return f"{text}.T"

    def indexed(self, text: str, items: Sequence[str]) -> str:
        """The elements that slices and numbers select; the array itself where that is all of it."""
        return text if all(item == ":" for item in items) else f"{text}[{', '.join(items)}]"

    def broadcast(self, text: str, shape: str) -> str:
        """The array repeated to that shape."""
        return f"{self.np}.broadcast_to({text}, {shape})"

    # --- new arrays

    def full(self, shape: str, value: str, dtype: str) -> str:
        """An array of one number."""
        return f"{self.np}.full({shape}, {value}, {dtype})"

    def empty_like(self, text: str, shape: str) -> str:
        """An array of that shape to be filled, with the element type of another."""
        return f"{self.np}.empty({shape}, {text}.dtype)"

    def padded(self, text: str, edges: Sequence[tuple[str, str]]) -> str:
        """An array with zeros before and after each axis, for the libraries that pad."""
        raise NotImplementedError

    def summed(self, text: str, axes: Sequence[int], rank: int) -> str:
        """The sum over some of the axes of an array, of which the text is a name or stands in parentheses."""
        if len(axes) == rank:
            return f"{text}.sum()"
        return f"{text}.sum({axes[0] if len(axes) == 1 else tuple(axes)})"

    def stacked(self, texts: Sequence[str], axis: int) -> str:
        """Arrays of one shape side by side along a new axis."""
        return f"{self.np}.stack([{', '.join(texts)}], {axis})"

    def zeros_of(self, text: str, shape: str) -> str:
        """Zeros of that shape, with the element type (and device) of another array."""
        return f"{self.np}.zeros({shape}, {text}.dtype)"

    def arange(self, *bounds: str) -> str:
        """0, 1, … up to a size, or all from a start to a stop."""
        return f"{self.np}.arange({', '.join(bounds)})"

    def eye(self, rows: str, columns: str, dtype: str) -> str:
        """1 on the diagonal."""
        return f"{self.np}.eye({rows}, {columns}, dtype={dtype})"

    def cast(self, text: str, dtype: str) -> str:
        """The array with another element type."""
        return f"{text}.astype({dtype})"

    def scalar(self, text: str, dtype: str) -> str:
        """A Python number or truth value as an array without axes."""
        return f"{dtype}.type({text})"

    # --- results

    def copy(self, text: str) -> str:
        """A result that shares no memory."""
        return f"{self.np}.array({text})"

    def in_rows(self, text: str) -> str:
        """A copy that lies in memory row by row."""
        return f'{self.np}.array({text}, order="C")'

    # --- iterations

    def state(self, text: str, dtype: str) -> str:
        """What an iteration begins with, as an array of its own."""
        return f"{self.np}.array({text}, {dtype})"

    def collection(self, shape: str, dtype: str) -> str:
        """What is to hold a value of each step."""
        return f"{self.np}.empty({shape}, {dtype})"

    def collected(self, name: str, shape: str, dtype: str) -> str:
        """A list of the values of all steps as an array of that shape."""
        return f"{self.np}.stack({name}) if {name} else {self.np}.empty({shape}, dtype={dtype})"

    # --- element types

    def largest_number(self, dtype: str) -> str:
        """The largest finite number of a real element type."""
        return f"{self.np}.finfo({dtype}).max"

    def complex_type(self) -> str:
        """The element type of complex numbers as wide as `real`."""
        return f"{self.np}.result_type(real, {self.np}.complex64)"

    def default_type(self, kind: str) -> str:
        """The element type "int" or "float" where no argument has one."""
        return f"{self.np}.dtype({kind})"

    def real_type(self, arrays: Sequence[tuple[str, bool]], scalars: Sequence[tuple[str, bool]]) -> str:
        """The element type of real numbers as wide as the arguments: arrays decide, else scalars (text, is complex)."""
        decisive = [text for text, _ in arrays] or [f"{self.np}.asarray({text})" for text, _ in scalars]
        return f"{self.np}.finfo({self.np}.result_type({', '.join(decisive)}, {self.np}.float16)).dtype"

    def prelude(self, uses_device: bool, tensors: Sequence[str], scalars: Sequence[tuple[str, bool]]) -> list[str]:
        """Lines at the start of the function, before the arguments (tensors, and scalars of type float) are used."""
        return []

    # --- arithmetic

    def conjugate(self, text: str) -> str:
        """The complex conjugate."""
        return f"{text}.conjugate()"

    def function(self, name: str, texts: Sequence[str], kinds: Sequence[type], numbers: Sequence[bool]) -> str:
        """A function of `primitives.TABLE`; `numbers` tells which arguments are Python numbers."""
        if name in _PARTS:
            return f"{texts[0]}.{name}"
        if name in WORDS:
            return WORDS[name].format(*texts, np=self.np)
        if name == "hypot" and self.native and not all(numbers):
            return f"_hypot({', '.join(texts)})"
        if TABLE[name].numpy.startswith(OWN):
            return f"_{TABLE[name].numpy.removeprefix(OWN)}({self.np}, {', '.join(texts)})"
        if TABLE[name].numpy.startswith(SCIPY):
            return self.special_function(TABLE[name].numpy.removeprefix(SCIPY), texts, numbers)
        return f"{self.np}.{TABLE[name].numpy}({', '.join((*texts, *map(str, TABLE[name].fixed)))})"

    def special_function(self, name: str, texts: Sequence[str], numbers: Sequence[bool]) -> str:
        """A function of SciPy's. Raises UnsupportedError where the library has none of that name."""
        if name == "polygamma" and texts[0].isdigit() and 0 < int(texts[0]) <= MOST_EXACT:
            order = int(texts[0])  # as the ufunc that polygamma calls, which keeps float32
            return f"{(-1) ** (order + 1) * factorial(order)} * {self.special}.zeta({order + 1}, {texts[1]})"
        return f"{self.special}.{name}({', '.join(texts)})"

    def modified_bessel(self, name: str, texts: Sequence[str]) -> str:
        """`iv` or `ive` of a whole order of some size, by those of the orders 0 and 1; else nothing."""
        if name not in ("iv", "ive") or not texts[0].isdigit() or not 1 < int(texts[0]) <= MOST_EXACT:
            return ""
        order, x = texts
        own = [f"{self.special}.{each}{name[2:]}({x})" for each in ("i0", "i1")]
        scale = f"{self.np}.exp(-abs({x}))" if name == "ive" else "1"
        return f"_modified_bessel({self.np}, {order}, {x}, {', '.join(own)}, {scale})"

    def lacking(self, name: str) -> UnsupportedError:
        """The error for a special function that the library has not."""
        return UnsupportedError(
            f"the backend {self.name!r} has no function {name}", hint="call the program with NumPy arrays: SciPy has it"
        )

    def matrix_function(self, name: str, operand: str, shape: str) -> str:
        """A function of `matrices.MATRIX_TABLE`, whose result has that shape."""
        if name == "adj" and self.native:  # the way is chosen by the values
            return f"_det_times_inverse({operand})"
        return MATRIX_TABLE[name].numpy.format(operand, np=self.np)

    def decomposition(self, names: Mapping[str, str], operand: str, shapes: Sequence[str]) -> tuple[str, str]:
        """Functions of one matrix at once: the targets of a statement, called `names`, and what gives them."""
        rows = [MATRIX_TABLE[name] for name in names]
        places = {row.joint[1]: names[row.name] for row in rows if row.joint}
        (text,) = {row.joint[0] for row in rows if row.joint}
        count = sum(1 for row in MATRIX_TABLE.values() if row.joint and row.joint[0] == text)
        return ", ".join(places.get(n, "_") for n in range(count)), text.format(operand, np=self.np)

    def levels(self, operand: str, shape: str) -> str:
        """Values of that shape with one number for those that rounding cannot tell apart."""
        return f"_levels({self.np}, {operand})"

    def largest(self, operand: str, axes: str) -> str:
        """The largest element along some axes, −∞ of none."""
        return f"{operand}.max({axes}, initial=-{self.np}.inf)"

    def extreme(self, name: str, operand: str, axes: str) -> str:
        """The largest or smallest of some elements along some axes."""
        return f"{operand}.{name[1:]}({axes})"

    def linear_solve(self, matrix: str, right: str, name: str) -> str:
        """The inverse of a matrix times a vector or matrix; an error calls the matrix by name."""
        return f'_linear_solve({self.np}, {matrix}, {right}, "{name}")'

    def log_sums_so_far(self, operand: str, axis: int) -> str:
        """log Σ exp of all up to each position along an axis."""
        return f"{self.np}.logaddexp.accumulate({operand}, {axis})"

    def fourier(self, operand: str, points: Sequence[str], axes: Sequence[int], sign: int, shape: str) -> str:
        """Sums with waves along axes, the last one if none is given, at so many points: as many as numbers if none are.

        The result has that shape.
        """
        name = ("fft" if sign < 0 else "ifft") + "n" * (len(axes) > 1)
        words = [operand, *([tuple_text(points, single=False)] if points else [])]
        if axes:
            words.append(f"{self.along[len(axes) > 1]}={tuple_text(map(str, axes), single=False)}")
        if sign > 0:
            words.append('norm="forward"')
        return f"{self.np}.fft.{name}({', '.join(words)})"

    def number(self, text: str) -> str:
        """A function of Python numbers as a Python number."""
        return f"{text}.item()"

    def integer_power(self, base: str, exponent: str) -> str:
        """A power of integer arrays, as floating point numbers."""
        return f"{self.np}.power({base}, {exponent}, dtype=float)"

    def diagonal(self, subscripts: str, operand: str) -> str:
        """The elements of an array whose indices are equal."""
        return f'{self.np}.einsum("{subscripts}", {operand})'

    def prefers_einsum(self, left: int, right: int) -> bool:
        """Whether a contraction of arrays with so many axes is better not a matrix product of reshaped arrays."""
        return False

    def contraction(self, subscripts: str, left: str, right: str) -> str:
        """A contraction of two arrays in einsum's notation."""
        return f'{self.np}.einsum("{subscripts}", {left}, {right})'

    def called(self, text: str) -> str:
        """The result of a callable that the user gave."""
        return f"{self.np}.asarray({text})[()]"


class CuPyDialect(NumPyDialect):
    """NumPy's way on the GPU."""

    name = "cupy"
    module = "cupy"
    np = "cp"
    imports = ("import cupy as cp",)
    special_import = "from cupyx.scipy import special"
    item = ""
    guard = None
    native = False
    chooses = 0  # that would wait for the device
    solves = False

    def helpers(self) -> Mapping[str, str]:
        """CuPy's views have no flag that makes them read-only, and its functions give no warnings."""
        found = dict(texts("numpy", self.np))
        for lacking in (", writeable=False", f'@{self.np}.errstate(invalid="ignore")\n'):
            found = {name: text.replace(lacking, "") for name, text in found.items()}
        return {**found, **texts("numerics"), **texts("running"), **self.solvers(), **texts("cupy")}

    def log_sums_so_far(self, operand: str, axis: int) -> str:
        """CuPy accumulates sums and products alone."""
        return f"_log_sums_so_far({self.np}, {operand}, {axis})"


class JaxDialect(NumPyDialect):
    """jax.numpy: arrays never change, so nothing is copied, and views are gathered."""

    name = "jax"
    module = "jax"
    np = "jnp"
    imports = ("import jax.numpy as jnp",)
    special = "jsp"
    special_import = "import jax.scipy.special as jsp"
    item = ""
    guard = None
    strided = False
    in_place = False
    writes_over = False
    boxes = "text"
    pads = True
    vectors_first = True
    iterates = "function"
    native = False
    chooses = 1 << 20  # XLA keeps an array of which it may need both, and large ones cost the most
    solves = False
    attempts = True
    fuses_sums = True

    def helpers(self) -> Mapping[str, str]:
        """Elements are read by index arrays."""
        return {**texts("numerics"), **texts("running"), **self.solvers(), **texts("jax")}

    def real_type(self, arrays: Sequence[tuple[str, bool]], scalars: Sequence[tuple[str, bool]]) -> str:
        """JAX's own promotion: a number of a weak type is as wide as its numbers are, not as what stands beside it."""
        decisive = [text for text, _ in arrays] or [f"jnp.asarray({text})" for text, _ in scalars]
        return f"jnp.finfo(jnp.result_type({', '.join(decisive)}, float)).dtype"

    def scalar(self, text: str, dtype: str) -> str:
        """An array without axes."""
        return f"jnp.asarray({text}, {dtype})"

    def function(self, name: str, texts: Sequence[str], kinds: Sequence[type], numbers: Sequence[bool]) -> str:
        """NumPy's, but for what XLA has in fewer operations."""
        return f"_hypot({', '.join(texts)})" if name == "hypot" else super().function(name, texts, kinds, numbers)

    def special_function(self, name: str, texts: Sequence[str], numbers: Sequence[bool]) -> str:
        """JAX has the functions that it differentiates."""
        if name == "log_expit":
            return f"-jnp.logaddexp(0, -{texts[0]})"
        if text := self.modified_bessel(name, texts):
            return text
        if name not in _OF_JAX:
            raise self.lacking(name)
        return super().special_function(name, texts, numbers)

    def log_sums_so_far(self, operand: str, axis: int) -> str:
        """XLA's scan."""
        return f"jax.lax.cumlogsumexp({operand}, {axis})"

    def copy(self, text: str) -> str:
        """Arrays never change."""
        return text

    def state(self, text: str, dtype: str) -> str:
        """An array of the element type that the states keep."""
        return f"jnp.asarray({text}, {dtype})"

    def padded(self, text: str, edges: Sequence[tuple[str, str]]) -> str:
        """An array with zeros before and after each axis, or without so many elements where that is negative."""
        around = tuple_text([f"({before}, {after}, 0)" for before, after in edges])
        return f"jax.lax.pad({text}, jnp.zeros((), {text}.dtype), {around})"

    def summed(self, text: str, axes: Sequence[int], rank: int) -> str:
        """Rows are added up in their order."""
        first = list(axes) == list(range(len(axes))) and len(axes) < rank
        return f"_sum_of_rows({text}, {len(axes)})" if first else super().summed(text, axes, rank)

    def stacked(self, texts: Sequence[str], axis: int) -> str:
        """A choice for each element, which XLA fuses with what makes the arrays and reads them."""
        return f"_stack([{', '.join(texts)}], {axis})"

    def number(self, text: str) -> str:
        """Inside jax.jit there are no Python numbers; JAX's weak types do not widen float32 either."""
        return text

    def matrix_function(self, name: str, operand: str, shape: str) -> str:
        """What the values of traced arrays decide is a function of JAX's."""
        if name == "adj":
            return f"_det_times_inverse({operand})"
        if name == "expm":
            return f"jax.scipy.linalg.expm({operand}, max_squarings=64)"
        return super().matrix_function("logdet" if name == "logdet_positive" else name, operand, shape)

    def prefers_einsum(self, left: int, right: int) -> bool:
        """Reshaping an array that is sharded over devices moves it."""
        return max(left, right) > 2

    def integer_power(self, base: str, exponent: str) -> str:
        """A power of integer arrays, as floating point numbers."""
        return f"jnp.power({base}.astype(float), {exponent})"

    def called(self, text: str) -> str:
        """The result of a callable that the user gave."""
        return f"jnp.asarray({text})"
