"""Terms as egglog text and back.

    Σ_i A[i, j]·x[i]
    = (Sum (set-of (I "i" "N")) (Prod (multiset-of (At (T "A") (vec-of (I "i" "N") (I "j" "N"))) …)))

The vocabulary is that of rules/language.egg. A `Codec` remembers which variable each name stands for; parts the laws
do not look into (calls of named maps) are encoded as opaque values that keep the indices free in them.

Invariant: decoding an encoded term gives a term of equal value.
"""

from __future__ import annotations

from collections.abc import Iterable

from combdiff.ir import (
    CUT_BELOW_ZERO,
    TABLE,
    Action,
    Add,
    Apply,
    Conj,
    Cyclic,
    Delta,
    Domain,
    Indicator,
    Lambda,
    Mul,
    Number,
    Primitive,
    Range,
    Real,
    Space,
    Sum,
    Symmetric,
    Term,
    Unequal,
    Var,
    Whole,
    affine_parts,
    apply,
    canonical_names,
    dtype_of,
    free_indices,
    is_branched,
    is_matrix_function,
    is_nonnegative,
    lambda_,
)
from combdiff.simplification.egraph.context import NOTHING, Context
from combdiff.simplification.egraph.matrices import MATRIX_FACTS, facts
from combdiff.simplification.egraph.vocabulary import domain_key, rational

MOST_WRITTEN = 400  # characters of a part that is written where it is used


def function_facts() -> str:
    """What the laws are told of each primitive of the table."""
    mirror = (f'(mirror "{row.name}")' for row in TABLE.values() if row.mirror and not row.real_valued)
    real_valued = (f'(real-valued "{row.name}")' for row in TABLE.values() if row.real_valued)
    return "\n".join([*mirror, *real_valued, MATRIX_FACTS])


class Codec:
    """Both directions, with the variables, tensors and opaque parts met so far."""

    def __init__(self, context: Context = NOTHING) -> None:
        self.context = context
        self.matrices: dict[str, list[str]] = {}
        self.indices: dict[tuple[str, str], Var] = {}  # by name and domain: indices of two domains may share a name
        self.domains: dict[str, Domain] = {}
        self.tensors: dict[str, Term] = {}
        self.opaque: dict[str, tuple[tuple[Var, ...], Term]] = {}
        self._opaque_names: dict[Term, str] = {}
        self._pieces: dict[Term, str] = {}
        self._named = 0  # pieces that have a number
        self._commands: list[str] = []

    # --- writing ---------------------------------------------------------------------------------------------------

    def written(self, term: Term) -> tuple[str, str]:
        """Commands that write the long parts of a scalar term, each once, and the expression that names the whole.

        Every Σ of the term must bind names of its own. One nested expression would be written out for each use of a
        shared part, and egglog takes time quadratic in the length of an expression; short ones cost less than commands.
        """
        expression = self._piece(term)
        commands, self._commands = "\n".join(self._commands), []
        return commands, expression

    def _piece(self, term: Term) -> str:
        if not term.children or isinstance(term, Apply | Indicator | Unequal):
            return self._node(term)
        piece = self._pieces.get(term)
        if piece is None:
            piece = self._node(term)
            if len(piece) > MOST_WRITTEN:
                self._commands.append(f"(set (piece {self._named}) {piece})")
                piece, self._named = f"(piece {self._named})", self._named + 1
            self._pieces[term] = piece
        return piece

    def _node(self, term: Term) -> str:
        match term:
            case Number():
                return self._number(term)
            case Mul():
                return self._product(term)
            case Add():
                return f"(Add (multiset-of {self._all(term.terms)}))"
            case Conj():
                return f"(Conj {self._piece(term.body)})"
            case Sum():
                return f"(Sum (set-of {self._indices(term.indices)}) {self._piece(term.body)})"
            case Delta() if term.domain is not None and not term.lookup:
                return self._delta(term)
            case Indicator():
                return f"(Where {self.index(term.form)} {term.modulus})"
            case Unequal():
                return self._unequal(term)
            case Primitive() if is_matrix_function(term):
                return self._access(term, ())
            case Primitive():
                return self._function(term)
            case Var():
                return self._access(term, ())
            case Apply() if isinstance(term.function, Var) and isinstance(term.function.type, Space):
                return self._access(term.function, term.arguments)
            case Apply() if is_matrix_function(term.function):
                return self._access(term.function, term.arguments)
        return self._opaque_part(term)

    def _function(self, term: Primitive) -> str:
        """A function of elements; one with a branch cut is known to be real by its type, or where it is off the cut."""
        written = f'(Fn "{term.name}" (vec-of {self._all(term.arguments)}))'
        if is_branched(term) and (dtype_of(term) is not complex or _is_off_cut(term)):
            self._commands.append(f"(real {written})")
        return written

    def _delta(self, term: Delta) -> str:
        assert term.domain is not None
        key = domain_key(term.domain)
        self.domains[key] = term.domain
        return f'(Delta {self.index(term.left)} {self.index(term.right)} "{key}")'

    def _unequal(self, term: Unequal) -> str:
        key = domain_key(term.domain or Whole())
        if isinstance(term.domain, Cyclic):
            self.domains[key] = term.domain
        return f'(Differ {self.index(term.form)} "{key}")'

    def _all(self, terms: Iterable[Term]) -> str:
        return " ".join(self._piece(term) for term in terms)

    def _number(self, term: Number) -> str:
        if term.exact:
            return f"(Num {rational(term.real)} {rational(term.imag)})"  # type: ignore[arg-type]
        return f"(Float {_float(float(term.real))} {_float(float(term.imag))})"

    def _product(self, term: Mul) -> str:
        first, rest = term.factors[0], term.factors[1:]
        if isinstance(first, Number) and first.exact:
            inner = f"(Prod (multiset-of {self._all(rest)}))" if len(rest) > 1 else self._piece(rest[0])
            return f"(Scale {rational(first.real)} {rational(first.imag)} {inner})"  # type: ignore[arg-type]
        return f"(Prod (multiset-of {self._all(term.factors)}))"

    def _access(self, tensor: Term, arguments: tuple[Term, ...]) -> str:
        return f"(At {self.tensor(tensor)} {self._vec(arguments)})"

    def tensor(self, term: Term, *, is_matrix: bool = False) -> str:
        """The egglog expression of a variable or matrix function; what is known of matrices is noted."""
        if isinstance(term, Primitive):
            return f'(MatrixFn "{term.name}" {self.tensor(term.arguments[0], is_matrix=True)})'
        assert isinstance(term, Var), term
        self.tensors[term.name] = term
        name = f'(T "{term.name}")'
        if is_matrix and term.name not in self.matrices:
            self.matrices[term.name] = []
            self.matrices[term.name] += facts(
                term, name, self.context.known, lambda part: self.tensor(part, is_matrix=True), self._piece
            )
        return name

    def _vec(self, arguments: tuple[Term, ...]) -> str:
        return f"(vec-of {self._indices(arguments)})" if arguments else "(vec-empty)"

    def _indices(self, terms: Iterable[Term]) -> str:
        return " ".join(self.index(term) for term in terms)

    def index(self, term: Term) -> str:
        """The egglog expression of an index form."""
        if isinstance(term, Var):
            key = domain_key(term.type)
            self.indices[term.name, key] = term
            if not isinstance(term.type, Whole):
                self.domains[key] = term.type  # type: ignore[assignment]
            return f'(I "{term.name}" "{key}")'
        parts, offset = affine_parts(term)
        if len(parts) == 1 and parts[0][1] == -1 and not offset:
            return f"(Neg {self.index(parts[0][0])})"
        steps = " ".join(f"(By {rational(c)} {self.index(v)})" for v, c in parts)
        return f"(Affine {f'(vec-of {steps})' if parts else '(vec-empty)'} {rational(offset)})"

    def _opaque_part(self, term: Term) -> str:
        free = free_indices(term)
        form = canonical_names(lambda_(free, term))
        name = self._opaque_names.setdefault(form, f"{type(term).__name__}.{len(self._opaque_names)}")
        self.opaque.setdefault(name, (free, term))
        return f'(Opaque "{name}" {self._vec(free)})'

    # --- the laws of the tensors that occur ------------------------------------------------------------------------

    def tensor_laws(self) -> str:
        """One rewrite per symmetry generator of each tensor met, and what the laws may ask of it: whether it is real.

        Symmetries that change the sign are no laws, as −1 in each class would double it: canonical names take them up.
        """
        laws = [law for name, tensor in self.tensors.items() for law in _laws_of(name, tensor)]
        laws += [fact for name, tensor in self.tensors.items() for fact in _facts_of(name, tensor)]
        keys = {domain_key(i.type): i.type for i in self.indices.values()}
        laws += [f'(domain "{key}" "{_KINDS[type(domain)]}")' for key, domain in sorted(keys.items())]
        laws += [fact for found in self.matrices.values() for fact in found]
        for name, (_, term) in self.opaque.items():
            if dtype_of(term) is not complex:
                laws.append(f'(real-valued "{name}")')
        return "\n".join(laws)

    # --- reading ---------------------------------------------------------------------------------------------------

    def restore(self, name: str, arguments: tuple[Term, ...]) -> Term:
        """An opaque part at other indices."""
        free, term = self.opaque[name]
        return apply(Lambda(free, term), arguments) if free else term


def _is_off_cut(term: Primitive) -> bool:
    """Whether a root, logarithm or power is that of a number which is not negative, though of complex type: √(z* z)."""
    base, *exponents = term.arguments
    real = all(dtype_of(exponent) is not complex for exponent in exponents)
    return term.name in CUT_BELOW_ZERO and real and is_nonnegative(base)


def _float(value: float) -> str:
    return repr(value) if value == value else "NaN"


def _laws_of(name: str, tensor: Term) -> Iterable[str]:
    assert isinstance(tensor, Var)
    assert isinstance(tensor.type, Space)
    for action in tensor.type.generators:
        if action.sign < 0:
            continue
        access = f'(At (T "{name}") (vec-of {" ".join(_moved(action))}))'
        if action.conjugate:
            access = f"(Conj {access})"
        yield f'(rewrite (At (T "{name}") v) {access} :ruleset laws :name "{name}: {action.equation(name)}")'


def _facts_of(name: str, tensor: Term) -> Iterable[str]:
    """What the side conditions of laws may ask of a tensor: its element type, its axes, symmetries of two axes."""
    assert isinstance(tensor, Var)
    assert isinstance(tensor.type, Space)
    yield f'(tensor "{name}" {tensor.type.order} "{tensor.type.dtype.__name__}")'
    if tensor.type.dtype is not complex:
        yield f'(real-tensor (T "{name}"))'
    for n, axis in enumerate(tensor.type.axes):
        yield f'(axis "{name}" {n} "{domain_key(axis)}")'
    for action in tensor.type.group:
        moved = [n for n, a in enumerate(action.axes) if a != n]
        if len(moved) != 2 or any(action.negated):
            continue
        if not action.conjugate:
            yield f'({"symmetric" if action.sign > 0 else "antisymmetric"} "{name}" {moved[0]} {moved[1]})'
        elif action.sign > 0:
            yield f'(hermitian "{name}" {moved[0]} {moved[1]})'


_KINDS = {Range: "range", Cyclic: "cyclic", Symmetric: "symmetric", Real: "real line", Whole: "size"}


def _moved(action: Action) -> Iterable[str]:
    for source, negated in zip(action.axes, action.negated, strict=True):
        index = f"(vec-get v {source})"
        yield f"(Neg {index})" if negated else index
