"""How dask.array writes array operations: without reshapes, and with contractions that run chunk by chunk.

    (J.reshape(N*N, N*N) @ D.reshape(N*N)).reshape(N, N)    becomes    _contract("pqrs,rs->pq", J, D)

Invariant: nothing is computed before the user asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from combdiff.dialects.numpy import NumPyDialect
from combdiff.ir import MATRIX_TABLE, TABLE
from combdiff.kernels import texts


class DaskDialect(NumPyDialect):
    """dask.array: lazy and chunked; contractions run chunk by chunk."""

    name = "dask"
    module = "dask"
    np = "da"
    imports = ("import dask.array as da", "import numpy as np")
    item = ""
    guard = None
    strided = False
    in_place = False
    writes_over = False
    indexes = False
    boxes = "chunk"  # of NumPy's words
    native = False
    chooses = 0
    iterates = "list"
    solves = False

    def helpers(self) -> Mapping[str, str]:
        """Contractions in chunks; reads at positions that need the whole array as one."""
        return {**texts("dask"), **texts("numerics"), **self.solvers()}

    def largest(self, operand: str, axes: str) -> str:
        """Dask refuses the largest of no elements."""
        return f"_largest({operand}, {axes})"

    def full(self, shape: str, value: str, dtype: str) -> str:
        """An array of one number."""
        return f"da.full({shape}, {value}, dtype={dtype})"

    def eye(self, rows: str, columns: str, dtype: str) -> str:
        """1 on the diagonal."""
        return f"da.eye({rows}, M={columns}, dtype={dtype})"

    def state(self, text: str, dtype: str) -> str:
        """An array of the element type that the states keep."""
        return f"da.asarray({text}).astype({dtype})"

    def scalar(self, text: str, dtype: str) -> str:
        """An array without axes."""
        return f"da.asarray({text}, dtype={dtype})"

    def number(self, text: str) -> str:
        """What is computed of a lazy number stays lazy."""
        return f"_number({text})"

    def copy(self, text: str) -> str:
        """Lazy arrays never change."""
        return text

    def largest_number(self, dtype: str) -> str:
        """Element types are NumPy's."""
        return f"np.finfo({dtype}).max"

    def complex_type(self) -> str:
        """Element types are NumPy's."""
        return "np.result_type(real, np.complex64)"

    def default_type(self, kind: str) -> str:
        """Element types are NumPy's."""
        return f"np.dtype({kind})"

    def real_type(self, arrays: Sequence[tuple[str, bool]], scalars: Sequence[tuple[str, bool]]) -> str:
        """Element types are NumPy's."""
        decisive = [f"{text}.dtype" for text, _ in arrays] or [f"np.asarray({text})" for text, _ in scalars]
        return f"np.finfo(np.result_type({', '.join(decisive)}, np.float16)).dtype"

    def conjugate(self, text: str) -> str:
        """The complex conjugate."""
        return f"{text}.conj()"

    def diagonal(self, subscripts: str, operand: str) -> str:
        """Needs the array as one."""
        return f'_diagonal("{subscripts}", {operand})'

    def prefers_einsum(self, left: int, right: int) -> bool:
        """Reshaping chunked arrays is dear."""
        return True

    def contraction(self, subscripts: str, left: str, right: str) -> str:
        """Chunk by chunk, sums over chunks in a tree."""
        return f'_contract("{subscripts}", {left}, {right})'

    def function(self, name: str, texts: Sequence[str], kinds: Sequence[type], numbers: Sequence[bool]) -> str:
        """Dask lacks heaviside, and nan_to_num its words."""
        if name == "finite":
            return f"{texts[0]}.map_blocks(np.nan_to_num, posinf=0, neginf=0)"
        if name in TABLE and TABLE[name].numpy == "heaviside" and not numbers[0]:
            return f"{texts[0]}.map_blocks(np.heaviside, {TABLE[name].fixed[0]})"
        return super().function(name, texts, kinds, numbers)

    def matrix_function(self, name: str, operand: str, shape: str) -> str:
        """Needs the matrices whole."""
        function = MATRIX_TABLE[name].numpy.format("block", np="np").replace('"block"', f'"{operand}"')
        kind = ", int" if MATRIX_TABLE[name].whole else ""
        return f"_whole(lambda block: {function}, {operand}, {shape}{kind})"

    def fourier(self, operand: str, points: Sequence[str], axes: Sequence[int], sign: int, shape: str) -> str:
        """Needs the axes whole."""
        function = NumPyDialect().fourier("block", points, axes, sign, shape)
        return f"_whole(lambda block: {function}, {operand}, {shape}, np.result_type({operand}, np.complex64))"

    def levels(self, operand: str, shape: str) -> str:
        """Needs the values whole."""
        return f"_whole(lambda block: _levels(np, block), {operand}, {shape})"

    def decomposition(self, names: Mapping[str, str], operand: str, shapes: Sequence[str]) -> tuple[str, str]:
        """One function after the other: a block gives one array."""
        pairs = zip(names, shapes, strict=True)
        texts = [self.matrix_function(name, operand, shape) for name, shape in pairs]
        return ", ".join(names.values()), ", ".join(texts)

    def log_sums_so_far(self, operand: str, axis: int) -> str:
        """Needs the axis whole."""
        return f"{operand}.rechunk({{{axis}: -1}}).map_blocks(np.logaddexp.accumulate, {axis})"

    def linear_solve(self, matrix: str, right: str, name: str) -> str:
        """With the inverse: a system needs both of its arrays whole."""
        return f'(_whole(lambda block: _inverse(np, block, "{name}"), {matrix}, {matrix}.shape) @ {right})'

    def called(self, text: str) -> str:
        """The result of a callable that the user gave."""
        return f"da.asarray({text})"
