"""How PyTorch writes array operations: its own names, a device for new tensors, one element type in a product.

    np.sign(x[::-1])    becomes    torch.sgn(x.flip(0))

Invariant: the text works on tensors of every device, under autograd, torch.func and torch.compile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from combdiff.dialects.numpy import WORDS, NumPyDialect
from combdiff.ir import OWN, SCIPY, TABLE
from combdiff.kernels import texts

_TORCH = {
    "real": "torch.real({0})",
    "imag": "{0}.imag",
    "relu": "torch.relu({0})",
    "step": "({0} > 0).to({0}.dtype)",
    "masked": "torch.where({0}.bool(), {1}, -torch.inf)",
    "chosen": "torch.where({0}.bool(), {1}, 0)",
    "finite": "torch.nan_to_num({0}, posinf=0, neginf=0)",
    "log1p": "torch.log1p({0})",
    "expm1": "torch.expm1({0})",
    "heaviside": "torch.heaviside({0}, {0}.new_tensor(0.5))",
    "sign": "torch.sgn({0})",
    "rint": "torch.round({0})",
    "power": "torch.pow({0}, {1})",
}

_SPECIAL = {
    **{
        name: f"torch.special.{name}({{0}})"
        for name in (
            *("erf", "erfc", "erfcx", "erfinv", "ndtr", "log_ndtr", "ndtri", "gammaln", "digamma", "expit", "logit"),
            *("i0", "i1", "i0e", "i1e", "entr"),
        )
    },
    "log_expit": "torch.nn.functional.logsigmoid({0})",
    "gamma": "torch.exp(torch.lgamma({0})) * torch.where({0} < 0, 1 - 2 * torch.remainder(torch.floor({0}), 2), 1)",
    "j0": "torch.special.bessel_j0({0})",
    "j1": "torch.special.bessel_j1({0})",
    "polygamma": "torch.special.polygamma({0}, {1})",
    "xlogy": "torch.special.xlogy({0}, {1})",
    "xlog1py": "torch.special.xlog1py({0}, {1})",
    "betaln": "torch.lgamma({0}) + torch.lgamma({1}) - torch.lgamma({0} + {1})",
}  # SciPy's special functions

_OF_TENSORS = (  # which take no numbers
    *("logaddexp", "hypot", "arctan2", "xlogy", "xlog1py", "betaln", "fmod", "floor_divide", "remainder"),
)


class TorchDialect(NumPyDialect):
    """PyTorch: no negative steps, other names for permutations and casts, element types of products made equal."""

    name = "torch"
    module = "torch"
    np = "torch"
    imports = ("import torch",)
    special = "torch.special"
    special_import = "import torch"
    item = ""
    guard = None
    permute = "permute"
    strided = False
    writes_over = False  # a tensor that is differentiated is still needed
    lazy_conjugate = True
    widens_integers = False  # they give numbers of the default type, which is of single precision
    along = ("dim", "dim")
    steps_back = False  # but whole axes are flipped
    mixes_kinds = False
    native = False
    chooses = 0  # that would cut what torch.compile compiles
    iterates = "list"  # of tensors that are differentiated
    solves = False

    def helpers(self) -> Mapping[str, str]:
        """Elements are read by index tensors."""
        return {**texts("numerics"), **texts("running"), **self.solvers(), **texts("torch"), **texts("schedules")}

    def reversed_axes(self, text: str, rank: int) -> str:
        """`.T` is for matrices."""
        return f"{text}.T" if rank == 2 else f"{text}.permute({', '.join(map(str, reversed(range(rank))))})"

    def indexed(self, text: str, items: Sequence[str]) -> str:
        """Reversed axes are flipped."""
        flipped = [n for n, item in enumerate(items) if item == "::-1"]
        text = f"{text}.flip({', '.join(map(str, flipped))})" if flipped else text
        rest = [":" if item == "::-1" else item for item in items]
        return super().indexed(text, rest)

    def full(self, shape: str, value: str, dtype: str) -> str:
        """A tensor of one number."""
        return f"torch.full({shape}, {value}, dtype={dtype}, device=device)"

    def empty_like(self, text: str, shape: str) -> str:
        """A tensor of that shape to be filled, with the element type and device of another."""
        return f"{text}.new_empty({shape})"

    def zeros_of(self, text: str, shape: str) -> str:
        """Zeros of that shape, with the element type and device of another."""
        return f"{text}.new_zeros({shape})"

    def arange(self, *bounds: str) -> str:
        """0, 1, … up to a size, or all from a start to a stop."""
        return f"torch.arange({', '.join(bounds)}, device=device)"

    def eye(self, rows: str, columns: str, dtype: str) -> str:
        """1 on the diagonal."""
        return f"torch.eye({rows}, {columns}, dtype={dtype}, device=device)"

    def state(self, text: str, dtype: str) -> str:
        """A tensor, which may be differentiated."""
        return f"torch.as_tensor({text}, dtype={dtype}, device=device)"

    def collected(self, name: str, shape: str, dtype: str) -> str:
        """A list of the values of all steps as a tensor of that shape."""
        return f"torch.stack({name}) if {name} else torch.empty({shape}, dtype={dtype}, device=device)"

    def cast(self, text: str, dtype: str) -> str:
        """The tensor with another element type."""
        return f"{text}.to({dtype})"

    def scalar(self, text: str, dtype: str) -> str:
        """A tensor without axes, of a number or of a truth value that is a tensor."""
        return f"torch.as_tensor({text}, dtype={dtype}, device=device)"

    def copy(self, text: str) -> str:
        """A result that shares no memory."""
        return f"{text}.clone()"

    def complex_type(self) -> str:
        """The element type of complex numbers as wide as `real`."""
        return "real.to_complex()"

    def default_type(self, kind: str) -> str:
        """The element type where no argument has one."""
        return "torch.int64" if kind == "int" else "torch.get_default_dtype()"

    def real_type(self, arrays: Sequence[tuple[str, bool]], scalars: Sequence[tuple[str, bool]]) -> str:
        """The arguments have one width, so the first decides."""
        text, is_complex = (arrays or scalars)[0]
        return f"{text}.dtype.to_real()" if is_complex else f"{text}.dtype"

    def prelude(self, uses_device: bool, tensors: Sequence[str], scalars: Sequence[tuple[str, bool]]) -> list[str]:
        """The device of the arguments, and numbers as tensors: without axes they do not widen others."""
        lines = [f"device = {tensors[0]}.device" if tensors else "device = None"] if uses_device else []
        for text, is_complex in scalars:
            dtype = "torch.complex128" if is_complex else "torch.float64"
            lines.append(f"{text} = {text} if torch.is_tensor({text}) else torch.tensor({text}, dtype={dtype})")
        return lines

    def conjugate(self, text: str) -> str:
        """The complex conjugate, done when it is used."""
        return f"{text}.conj()"

    def function(self, name: str, texts: Sequence[str], kinds: Sequence[type], numbers: Sequence[bool]) -> str:
        """PyTorch's functions take tensors only; its maximum with a number is a clamp."""
        if all(numbers):
            types = ["torch.complex128" if kind is complex else "torch.float64" for kind in kinds]
            texts = [f"torch.tensor({text}, dtype={kind})" for text, kind in zip(texts, types, strict=True)]
        elif name in ("maximum", "minimum") and any(numbers):
            tensor, number = texts if numbers[1] else texts[::-1]
            return f"{tensor}.clamp({'min' if name == 'maximum' else 'max'}={number})"
        elif name in _OF_TENSORS and any(numbers):
            tensor = texts[numbers.index(False)]
            pairs = zip(texts, numbers, strict=True)
            texts = [f"{tensor}.new_full((), {text})" if number else text for text, number in pairs]
        elif name == "imag" and kinds[0] is not complex:
            return f"torch.zeros_like({texts[0]})"
        if name in _TORCH:
            return _TORCH[name].format(*texts)
        if name in WORDS:
            return WORDS[name].format(*texts, np="torch")
        if TABLE[name].numpy.startswith(OWN):
            return f"_{TABLE[name].numpy.removeprefix(OWN)}({self.np}, {', '.join(texts)})"
        if TABLE[name].numpy.startswith(SCIPY):
            return self.special_function(TABLE[name].numpy.removeprefix(SCIPY), texts, numbers)
        return f"torch.{TABLE[name].numpy}({', '.join(texts)})"

    def special_function(self, name: str, texts: Sequence[str], numbers: Sequence[bool]) -> str:
        """PyTorch has some under names of its own."""
        if text := self.modified_bessel(name, texts):
            return text
        if name not in _SPECIAL:
            raise self.lacking(name)
        return _SPECIAL[name].format(*texts)

    def matrix_function(self, name: str, operand: str, shape: str) -> str:
        """PyTorch has the exponential."""
        return (
            f"torch.linalg.matrix_exp({operand})" if name == "expm" else super().matrix_function(name, operand, shape)
        )

    def largest(self, operand: str, axes: str) -> str:
        """PyTorch refuses the largest of no elements."""
        return f"_largest({operand}, {axes})"

    def extreme(self, name: str, operand: str, axes: str) -> str:
        """PyTorch's `max` takes one axis."""
        return f"{operand}.{name}({axes})"

    def log_sums_so_far(self, operand: str, axis: int) -> str:
        """PyTorch's own."""
        return f"torch.logcumsumexp({operand}, {axis})"

    def integer_power(self, base: str, exponent: str) -> str:
        """A power of integer tensors, as floating point numbers."""
        return f"torch.pow({base}.to(torch.get_default_dtype()), {exponent})"

    def called(self, text: str) -> str:
        """The result of a callable that the user gave."""
        return f"torch.as_tensor({text})"
