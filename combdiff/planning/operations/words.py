"""How the steps, sizes and element types of a plan are called in its source: what operations are written in.

    words.form(n − 1)  =  "n - 1"        words.placed("x", (1,), 3)  =  "x[:, None]"

Invariant: what was asked for is noted, so that the source names the sizes, element types and index arrays it uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from combdiff.dialects import IndexArrays, NumPyDialect, literal, parenthesised, tuple_text
from combdiff.ir import ONE, Domain, Lambda, Number, Symmetric, conj, mul
from combdiff.planning.extents import extent_form
from combdiff.polyhedra import Linear
from combdiff.records import dataclass

Pattern = tuple[int, ...]


@dataclass(frozen=True)
class SizeFactor:
    """A number times the extents of some domains."""

    number: Number = ONE
    extents: tuple[Domain, ...] = ()

    @property
    def is_negative(self) -> bool:
        """Whether the number is negative."""
        return not self.number.imag and self.number.real < 0

    def times(self, other: SizeFactor) -> SizeFactor:
        """The product."""
        product = mul(self.number, other.number)
        assert isinstance(product, Number)
        return SizeFactor(product, self.extents + other.extents)

    def conjugate(self) -> SizeFactor:
        """The complex conjugate."""
        number = conj(self.number)
        assert isinstance(number, Number)
        return SizeFactor(number, self.extents)


UNIT = SizeFactor()
NEGATIVE = SizeFactor(Number(-1))


@dataclass
class Words:
    """The words for a plan in a library's dialect; notes which sizes and element types are used.

    `axes`, `kinds` and `numbers` tell of each step the domains of its result, its element type, and whether it is a
    Python number, `positive` whether it is a positive one at `planned`, the sizes that the plan was made for;
    `constants` are the numbers that are written as such. `arguments`, `sizes` and `systems` give the names of named
    maps, of sizes, and of the functions of equations; `host_systems` of those for NumPy's arrays.
    """

    dialect: NumPyDialect
    names: Sequence[str]
    axes: Sequence[tuple[Domain, ...]]
    kinds: Sequence[type]
    numbers: Sequence[bool]
    positive: Sequence[bool]
    constants: Mapping[int, Number]
    arguments: Mapping[str, str]
    sizes: Mapping[str, Linear]
    systems: Mapping[Lambda, str]
    host_systems: Mapping[Lambda, str]
    planned: Mapping[str, int]
    index_arrays: IndexArrays
    integers: bool  # whether all arguments are
    used_sizes: set[str] = field(default_factory=set)
    uses_real: bool = False

    block = "start:stop"  # the part of an axis that a loop is at

    def operand(self, n: int) -> str:
        """How a step is referred to: its name, or the number it is."""
        return literal(self.constants[n]) if n in self.constants else self.names[n]

    # --- sizes and element types

    def form(self, form: Linear) -> str:
        """A linear form in size names as an expression."""
        self.used_sizes.update(form.symbols)
        return str(form.substitute(self.sizes))

    def comment(self, domains: Iterable[Domain]) -> str:
        """A shape, for the reader."""
        return tuple_text([str(extent_form(axis).substitute(self.sizes)) for axis in domains])

    def extent(self, domain: Domain) -> str:
        """The number of indices of a domain."""
        return self.form(extent_form(domain))

    def shape(self, domains: Iterable[Domain]) -> str:
        """A shape tuple."""
        return tuple_text([self.extent(domain) for domain in domains])

    def product(self, domains: Iterable[Domain]) -> str:
        """The number of elements over some domains."""
        parts = [self.extent(domain) for domain in domains]
        return "*".join(part if part.isalnum() or len(parts) == 1 else f"({part})" for part in parts) or "1"

    def dtype(self, kind: type) -> str:
        """The element type of new arrays of that kind: as wide as the arguments."""
        if kind is float and self.integers:
            return self.dialect.default_type("float")
        self.uses_real = True
        return self.dialect.complex_type() if kind is complex else "real"

    def as_kind(self, n: int, text: str, kind: type) -> str:
        """An operand as an array of the result's element type; beside real arguments that of new integers is theirs."""
        if self.numbers[n]:
            return self.dialect.scalar(text, self.dtype(kind))
        same = self.kinds[n] is kind and (kind is not int or self.integers)
        return text if same else self.dialect.cast(text, self.dtype(kind))

    def widened(self, n: int, text: str, kind: type) -> str:
        """An operand for a result of a kind: integers as wide as the arguments, where libraries make them narrower."""
        is_narrow = self.kinds[n] is int and kind is not int and not self.numbers[n]
        return self.as_kind(n, text, float) if is_narrow and not self.dialect.widens_integers else text

    def factor(self, factor: SizeFactor) -> str:
        """A number times extents."""
        parts = [] if factor.number == Number(1) and factor.extents else [literal(factor.number)]
        parts += [f"({text})" if " " in text else text for text in map(self.extent, factor.extents)]
        return " * ".join(parts)

    def scaled(self, factor: SizeFactor, text: str) -> str:
        """factor·array; a complex number stands last, as Python's `complex * np.float64` is no NumPy scalar."""
        if factor == UNIT:
            return text
        return f"{text} * {self.factor(factor)}" if factor.number.imag else f"{self.factor(factor)} * {text}"

    # --- layout

    def placed(self, text: str, pattern: Pattern, rank: int) -> str:
        """The array with its axes where the pattern says among `rank` axes, the others of length 1, none in front."""
        text = self.dialect.transposed(text, sorted(range(len(pattern)), key=pattern.__getitem__))
        if not pattern or min(pattern) + len(pattern) == rank:
            return text
        slots = [":" if axis in pattern else "None" for axis in range(min(pattern), rank)]
        return f"{text}[{', '.join(slots)}]"

    def aligned(self, operands: Sequence[str], patterns: Sequence[Pattern], rank: int) -> list[str]:
        """Arrays with their axes where their patterns say."""
        return [self.placed(text, pattern, rank) for text, pattern in zip(operands, patterns, strict=True)]

    def grid(self, steps: Pattern, start: Linear, axes: Sequence[Domain], full: bool = False) -> str:
        """`steps · t + start` for all t, an array over the axes; `full` says over those with step 0, too."""
        shiftable = [(isinstance(axes[label], Symmetric), label) for label, size in enumerate(steps) if size == 1]
        first = max(shiftable, default=(False, None))[1]  # the label that begins at the start
        parts = [] if first is not None or (start == Linear() and any(steps)) else [self.form(start)]
        for label, (size, domain) in enumerate(zip(steps, axes, strict=True)):
            if size or full:
                shift = start if label == first else Linear()
                bounds = [shift, shift + extent_form(domain)][shift == Linear() :]
                array = self.placed(self.dialect.arange(*map(self.form, bounds)), (label,), len(axes))
                times = f"{parenthesised(str(size))} * {array}"
                parts.append(array if size == 1 else f"-{array}" if size == -1 else times)
        return " + ".join(parts).replace(" + -", " - ")
