"""Random typed terms on which a law matches, made from the patterns of the law.

    (= e (Prod ms)) (= s (Fn "sqrt" v)) (= n (member ms s)) (> n 1)
    → sqrt(z[i])·sqrt(z[i])·x[j]   for a complex z, sqrt(2 c)·sqrt(2 c), …

The conditions of a law are read as instructions: a pattern says how a value is built, `member`, `vec-get` and
`set-contains` what a container holds, `(real x)` and facts of tensors which leaves will do. Conditions that say nothing
of this kind, such as `!=`, are left to egglog, which decides whether an instance matches.

Invariant: an instance is well typed, and every tensor in it has the symmetries it is declared with.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache

from combdiff.ir import (
    MATRIX_TABLE,
    TABLE,
    Apply,
    Cyclic,
    Domain,
    Function,
    Number,
    Primitive,
    Range,
    Row,
    Space,
    Symmetric,
    Term,
    Var,
    add,
    affine,
    mul,
)
from combdiff.simplification import Codec, Expr, domain_key
from combdiff.testing.conditions import Law, is_literal, is_variable, name_of

DOMAINS: tuple[Domain, ...] = (Range(4), Range(4), Cyclic(4), Symmetric(2))
ELEMENTS = {"Arguments": "Value", "Values": "Value", "Indices": "Index", "Binds": "Index", "Steps": "Step"}
RATIONALS = ("1", "-1", "2", "-2", "3", "1/2", "-2/3", "0", "1", "2", "3/2", "-1/2")
WIDTH = Range(3)  # of matrices that are not square
POSITIVE = {float: "P", complex: "W"}  # matrices with positive eigenvalues
NAMED_MAP = Var("F", Function(Space(), result=Space()))


@lru_cache(maxsize=8)
def tensors(domain: Domain) -> tuple[Var, ...]:
    """Tensors over a domain of every order up to 3, element type and common symmetry."""
    two, three = (domain,) * 2, (domain,) * 3
    return (
        Var("r", Space()),
        Var("c", Space(dtype=complex)),
        Var("x", Space(domain)),
        Var("z", Space(domain, dtype=complex)),
        Var("M", Space(*two)),
        Var("Z", Space(*two, dtype=complex)),
        Var("S", Space(*two, symmetry=["S[i,j] = S[j,i]"])),
        Var("K", Space(*two, symmetry=["K[i,j] = -K[j,i]"])),
        Var("H", Space(*two, dtype=complex, symmetry=["H[i,j] = conj(H[j,i])"])),
        Var("T", Space(*three, symmetry=["T[i,j,k] = T[j,i,k]", "T[i,j,k] = T[i,k,j]"])),
        Var("E", Space(*three, symmetry=["E[i,j,k] = -E[j,i,k]"])),
        Var("D", Space(*three, dtype=complex)),
    )


@lru_cache(maxsize=8)
def exactly_symmetric(domain: Domain) -> tuple[Var, ...]:
    """Tensors of order 2 and 3 with one symmetry each, an exchange of two axes, and no other."""
    found = []
    for order, m, n in ((2, 0, 1), (3, 0, 1), (3, 0, 2), (3, 1, 2)):
        left = list("ijk"[:order])
        right = list(left)
        right[m], right[n] = left[n], left[m]
        read, image = (f"A[{','.join(indices)}]" for indices in (left, right))
        kinds = (
            *(("S", image, float), ("K", f"-{image}", float)),
            *(("C", image, complex), ("L", f"-{image}", complex), ("H", f"conj({image})", complex)),
        )
        for kind, side, dtype in kinds:
            space = Space(*[domain] * order, dtype=dtype, symmetry=[f"{read} = {side}"])
            found.append(Var(f"{kind}{order}{m}{n}", space))
    return tuple(found)


def positive(domain: Domain, dtype: type) -> Var:
    """A matrix that equals its conjugate transpose, and has positive eigenvalues."""
    image = "conj(P[j,i])" if dtype is complex else "P[j,i]"
    return Var(POSITIVE[dtype], Space(domain, domain, dtype=dtype, symmetry=[f"P[i,j] = {image}"]))


class Instance:
    """One random instance of a law as egglog commands; `codec` learns the names in it."""

    def __init__(self, law: Law, codec: Codec, domain: Domain, rng: random.Random, number: int = 0) -> None:
        self.number = number  # of the instance: functions are taken in turn
        self.law, self.codec, self.domain, self.rng = law, codec, domain, rng
        self.tensors = tensors(domain)
        self.indices = tuple(Var(name, domain) for name in "ijkl")
        self.bound = tuple(
            Var(name, domain) for name in "mn"
        )  # of a Σ that may bind any: no term mentions them outside
        self.sums = 0  # around what is being built
        self.products = 0  # of matrices, around it
        self.known: dict[str, str] = {}
        self.building: set[str] = set()
        self.real = {name_of(fact.args[0]) for fact in law.told("real")} | self._self_conjugate()
        self.deltas = {name_of(fact.args[0]) for fact in law.told("has-delta")}
        self.deltas |= {name_of(one.args[0]) for name in self.deltas for one in law.given.get(name, []) if one.args}
        self.only_real = 0  # around what is being built: functions of real numbers alone
        self.branched = 0  # and functions with a branch cut
        self.commands: list[str] = []
        self.orders: dict[str, int] = {}

    def written(self) -> list[str]:
        """The commands that write the terms which the patterns describe."""
        for index in (*self.indices, *self.bound):
            self.codec.index(index)
        self.codec.domains[domain_key(self.domain)] = self.domain
        seeds = [self.build(pattern, "") for pattern in self.law.patterns]
        if self.deltas:
            seeds.append(f"(Sum (set-of {self.codec.index(self.bound[0])}) (Num $one $zero))")
        return [*self.commands, *seeds]

    def _self_conjugate(self) -> set[str]:
        """Variables of which a law says x = x*."""
        return {
            name
            for name, given in self.law.given.items()
            for one in given
            if getattr(one, "name", "") == "Conj" and name_of(one.args[0]) == name
        }

    # --- patterns

    def build(self, node: Expr, sort: str) -> str:
        """The egglog text of a pattern with its variables chosen."""
        kind = type(node).__name__
        if kind == "Var" and not node.name.startswith("$"):
            return self.variable(node.name, sort)
        if kind != "Call":
            return str(node)
        if node.name in ("Fn", "At", "I", "Opaque", "Delta", "Subst", "MatrixFn", "MatMul"):
            return str(getattr(self, f"_{node.name.lower()}")(node))
        sorts = self.law.sorts.get(node.name) or [ELEMENTS.get(sort, sort)] * len(node.args)
        self.sums += node.name == "Sum"
        inside = " ".join(self.build(a, s) for a, s in zip(node.args, sorts, strict=True))
        self.sums -= node.name == "Sum"
        return f"({node.name} {inside})" if inside else f"({node.name})"

    def variable(self, name: str, sort: str) -> str:
        """What a variable stands for, chosen where it is first met."""
        if name not in self.known:
            usable = [g for g in self.law.given.get(name, []) if not self._leads_back(g, name)]
            if name in self.building or not usable:
                text = self.chosen(name, sort)
            else:
                self.building.add(name)
                text = self.build(usable[0], sort)
                self.building.discard(name)
            self.known.setdefault(name, text)
        return self.known[name]

    def _leads_back(self, node: Expr, name: str) -> bool:
        """Whether what is given for a variable mentions it, or another variable that is being built."""
        if is_variable(node):
            return node.name == name or (node.name not in self.known and node.name in self.building)
        return any(self._leads_back(argument, name) for argument in getattr(node, "args", []))

    def chosen(self, name: str, sort: str) -> str:
        """A random inhabitant of a sort, as the conditions on the variable ask."""
        match sort:
            case "Value":
                return self.value(real=name in self.real or self.only_real > 0, delta=name in self.deltas)
            case "Index":
                return self.index()
            case "Step":
                return f"(By {self.rational()} {self.index()})"
            case "BigRat":
                return self.rational()
            case "i64":
                return self.rng.choice(["0", "2", "3"])
            case "f64":
                return repr(round(self.rng.uniform(-3, 3), 3))
            case "Tensor":
                return self.matrix(name)
            case "String":
                return '"none"'
        return self.container(name, sort, None)

    def container(self, name: str, sort: str, count: int | None) -> str:
        """A container with what the conditions say is in it."""
        element = ELEMENTS.get(sort, "Value")
        if sort in ("Arguments", "Indices", "Steps"):
            held = self.law.elements.get(name, {})
            least = max(held, default=-1) + 1
            length = count if count is not None else self.law.lengths.get(name, max(least, self.rng.randint(0, 2)))
            parts = [self.build(held[n], element) if n in held else self.chosen("", element) for n in range(length)]
            return f"(vec-of {' '.join(parts)})" if parts else "(vec-empty)"
        if sort == "Binds":
            parts = [self.build(index, element) for index in self.law.contained.get(name, [])]
            more = self.rng.sample(self.bound, self.rng.randint(0, 2)) if name not in self.law.lengths else []
            return f"(set-of {' '.join(dict.fromkeys([*parts, *map(self.codec.index, more)]))})"
        said = self.law.members.get(name, [])
        counted = {str(member) for member, number in said if number is not None}
        said = [(member, number) for member, number in said if number is not None or str(member) not in counted]
        parts = [t for member, number in said for t in [self.build(member, element)] * self._count(number)]
        length = self.law.lengths.get(name, len(parts) + self.rng.randint(0, 2))
        if name in self.deltas:
            parts.append(self.value(real=False, delta=True))
        parts += [self.chosen("", element) for _ in range(length - len(parts))]
        return f"(multiset-of {' '.join(parts)})"

    def _count(self, number: Expr | None) -> int:
        """How often a member occurs."""
        if number is None:
            return 1
        return int(number.value.value) if is_literal(number) else self.law.least.get(number.name, 1)

    # --- constructors whose parts depend on each other

    def _fn(self, node: Expr) -> str:
        name, inside = node.args
        row = TABLE[self._function(name, inside)]
        self.only_real += row.real_only
        self.branched += not row.mirror
        text = self._listed(inside, "Arguments", row.arity)
        self.only_real -= row.real_only
        self.branched -= not row.mirror
        return f'(Fn "{row.name}" {text})'

    def _function(self, name: Expr, inside: Expr) -> str:
        """The function a pattern names, or one of which the conditions hold."""
        text = self.known.get(name_of(name)) if is_variable(name) else str(name)
        if text is None:
            told = {fact.name for fact in self.law.facts if name_of(fact.args[0]) == name.name}
            least = max(self.law.elements.get(name_of(inside), {}), default=-1) + 1
            arity = self.law.lengths.get(name_of(inside))
            fits = [
                row
                for row in TABLE.values()
                if (row.mirror or not row.real_only)  # of real arguments, of which the laws are told nothing
                and row.arity >= least
                and (arity is None or row.arity == arity)
                and ((row.mirror and not row.real_valued) or "mirror" not in told)
                and (row.real_valued or "real-valued" not in told)
                and (row.name in ("real", "imag") or "part" not in told)
            ]
            text = self.known[name.name] = f'"{_in_turn(fits, self.number).name}"'
        return text.strip('"')

    def _listed(self, inside: Expr, sort: str, count: int) -> str:
        """The arguments of a function or the indices of a tensor, as many as it takes."""
        if not is_variable(inside):
            return self.build(inside, sort)
        if inside.name not in self.known:
            self.known[inside.name] = self.container(inside.name, sort, count)
        return self.known[inside.name]

    def _at(self, node: Expr) -> str:
        tensor, inside = node.args
        if getattr(tensor, "name", "T") != "T" and (not is_variable(tensor) or self._is_matrix(tensor.name)):
            text = self.build(tensor, "Tensor")
            return f"(At {text} {self._listed(inside, 'Indices', self.orders.get(text, 2))})"
        order = None if is_variable(inside) else len(inside.args)
        name = getattr(tensor, "args", [None])[0]
        chosen = self._tensor(name, self.law.lengths.get(name_of(inside), order), name_of(inside))
        self.codec.tensors[chosen.name] = chosen
        assert isinstance(chosen.type, Space)
        if is_variable(tensor):
            self.known[tensor.name] = f'(T "{chosen.name}")'
            self.orders[self.known[tensor.name]] = chosen.type.order
        return f'(At (T "{chosen.name}") {self._listed(inside, "Indices", chosen.type.order)})'

    def _tensor(self, name: Expr | None, order: int | None, inside: str) -> Var:
        """A tensor of which the conditions hold; one that a law names is plain and real."""
        least = max(self.law.elements.get(inside, {}), default=-1) + 1
        if name is not None and not is_variable(name):
            return Var(str(name).strip('"'), Space(*[self.domain] * (least if order is None else order)))
        told = [fact for fact in self.law.facts if name is not None and name_of(fact.args[0]) == name.name]
        known = (*self.tensors, *exactly_symmetric(self.domain)) if told else self.tensors
        fits = [t for t in known if _order(t) >= least and order in (None, _order(t)) and all_hold(t, told)]
        held = self.known.get(name.name) if name is not None else None
        fits = [t for t in known if f'"{t.name}"' == held] if held else fits
        chosen = self.rng.choice(fits or self.tensors)
        if name is not None:
            self.known[name.name] = f'"{chosen.name}"'
        return chosen

    def _is_matrix(self, name: str) -> bool:
        """Whether a variable is chosen already, given, or a tensor of which a law asks what it asks of matrices."""
        asked = self._asked("square", "square-over", "real-tensor", "self-adjoint")
        return name in self.known or name in self.law.given or name in asked

    def matrix(self, name: str) -> str:
        """A matrix, square where the law asks for it or reads its elements."""
        real = name in self._asked("real-tensor")
        square = name in self._asked("square", "square-over") or self._reads_elements()
        var = self._named(self.rng.choice("MS" if real else "MZSH"))
        if name in self._asked("self-adjoint"):
            var = positive(self.domain, float if real else self.rng.choice((float, complex)))
        if not square and not self.products and self.rng.random() < 0.4:
            var = self._rectangle(float if real else complex)
        text = self.codec.tensor(var, is_matrix=True)
        self.orders[text] = 2
        return text

    def _rectangle(self, dtype: type, turned: bool = False) -> Var:
        """A matrix of three columns, or turned of three rows."""
        axes = (WIDTH, self.domain) if turned else (self.domain, WIDTH)
        return Var(("Q" if turned else "R") + dtype.__name__[0], Space(*axes, dtype=dtype))

    def _asked(self, *relations: str) -> set[str]:
        return {name_of(fact.args[0]) for relation in relations for fact in self.law.told(relation)}

    def _reads_elements(self) -> bool:
        return any(pattern.name in ("At", "MatrixFn") for pattern in self.law.patterns)

    def _matmul(self, node: Expr) -> str:
        """A product, of matrices that are not square where nothing says that they are."""
        square = self._asked("square", "square-over")
        free = [name for part in node.args if (name := name_of(part)) and name not in square]
        new = [name for name in free if name not in self.known and name not in self.law.given]
        if len(set(new)) == 2 and self.rng.random() < 0.5:
            dtype = self.rng.choice((float, complex))
            for name, turned in zip(new, (False, True), strict=True):
                self.known[name] = self.codec.tensor(self._rectangle(dtype, turned), is_matrix=True)
        elif name_of(node.args[1]) in new and not self._reads_elements() and self.rng.random() < 0.5:
            self.known[name_of(node.args[1])] = self.codec.tensor(self._rectangle(complex), is_matrix=True)
        self.products += 1
        whole = f"(MatMul {' '.join(self.build(part, 'Tensor') for part in node.args)})"
        self.products -= 1
        self.orders[whole] = 2
        return whole

    def _matrixfn(self, node: Expr) -> str:
        name, inside = node.args
        text = self.known.get(name_of(name)) if is_variable(name) else str(name)
        if text is None:
            told = {fact.name for fact in self.law.facts if name_of(fact.args[0]) == name.name}
            asked = told & {"of-matrix", "of-number"}
            fits = [row.name for row in MATRIX_TABLE.values() if asked <= {f"of-{row.kind}"}]
            text = self.known[name.name] = f'"{self.rng.choice(fits)}"'
        whole = f"(MatrixFn {text} {self.build(inside, 'Tensor')})"
        self.orders[whole] = len(MATRIX_TABLE[text.strip('"')].result)
        return whole

    def _i(self, node: Expr) -> str:
        name, key = node.args
        held = self.known.get(name_of(name))
        index = next((i for i in self.indices if f'"{i.name}"' == held), None) or self.rng.choice(self.indices)
        for part, text in ((name, index.name), (key, domain_key(index.type))):
            if is_variable(part):
                self.known[part.name] = f'"{text}"'
        return self.codec.index(index)

    def _delta(self, node: Expr) -> str:
        left, right, key = node.args
        if is_variable(key):
            self.known[key.name] = f'"{domain_key(self.domain)}"'
        return f'(Delta {self.build(left, "Index")} {self.build(right, "Index")} "{domain_key(self.domain)}")'

    def _subst(self, node: Expr) -> str:
        """A replacement of an index by another: forms might hold what a Σ in the value binds, which no term does."""
        index, by, value = node.args
        for part, chosen in zip((index, by), self.rng.sample(self.indices, 2), strict=True):
            if is_variable(part):
                self.known.setdefault(part.name, self.codec.index(chosen))
        return f"(Subst {self.build(index, 'Index')} {self.build(by, 'Index')} {self.build(value, 'Value')})"

    def _opaque(self, node: Expr) -> str:
        name, inside = node.args
        index = self.rng.choice(self.indices)
        text = self.codec.written(Apply(NAMED_MAP, (Apply(self._named("x"), (index,)),)))[1]
        if is_variable(name):
            self.known[name.name] = text.split()[1]
        return f"(Opaque {text.split()[1]} {self._listed(inside, 'Indices', 1)})"

    def _named(self, name: str) -> Var:
        return next(tensor for tensor in self.tensors if tensor.name == name)

    # --- random leaves

    def rational(self) -> str:
        """A small exact number."""
        top, _, bottom = self.rng.choice(RATIONALS).partition("/")
        return f'(bigrat (from-string "{top}") (from-string "{bottom or 1}"))'

    def index(self) -> str:
        """An index, or on a cycle or symmetric domain sometimes a form of indices."""
        index = self.rng.choice(self.indices)
        if self.rng.random() < 0.7 or isinstance(self.domain, Range):
            return self.codec.index(index)
        shift = self.rng.randint(-2, 2) if isinstance(self.domain, Cyclic) else 0
        return self.codec.index(affine([(index, -1)], shift))

    def value(self, *, real: bool, delta: bool) -> str:
        """A random value."""
        term = self._term(real)
        commands, text = self.codec.written(term)
        self.commands += [commands] if commands else []
        if delta:
            i, j = self.codec.index(self.bound[0]), self.codec.index(self.rng.choice(self.indices))
            return f'(Prod (multiset-of (Delta {i} {j} "{domain_key(self.domain)}") {text}))'
        return text

    def _term(self, real: bool) -> Term:
        if not self.only_real and self.rng.random() < (0.5 if self.branched else 0.2 if real else 0.1):
            return self._real_of_complex_type()
        leaf = self._leaf(real)
        kind = self.rng.random()
        if kind < 0.1:
            return Number(self.rng.choice([2, 3, -1]), 0 if real else self.rng.choice([0, 1, -2]))
        if kind < 0.2:
            return mul(Number(self.rng.choice([2, -1, 3])), leaf)
        if kind < 0.3:
            return add(leaf, self._leaf(real))
        if kind < 0.4 and not self.only_real:
            return Primitive("sin", (leaf,))
        return leaf

    def _real_of_complex_type(self) -> Term:
        """A number that is real and may be negative, of complex type: it may lie on the cut of a function."""
        hermitian, index = self._named("H"), self.rng.choice(self.indices)
        return Apply(hermitian, (index, index))

    def _leaf(self, real: bool) -> Term:
        dtype = float if real or self.rng.random() < 0.4 else complex
        fits = [t for t in self.tensors if _space(t).dtype is dtype]
        tensor = self.rng.choice(fits)
        # Distinct: a diagonal of a Hermitian matrix is real, and stands for numbers on branch cuts.
        known = (*self.indices, *self.bound) if self.sums else self.indices
        indices: Sequence[Term] = self.rng.sample(known, _order(tensor))
        return Apply(tensor, tuple(indices)) if indices else tensor


def _in_turn(rows: Iterable[Row], number: int) -> Row:
    """The kinds of functions take turns, and within a kind its functions: one that is alone comes as often as many."""
    kinds: dict[Hashable, list[Row]] = {}
    for row in rows:
        kinds.setdefault((row.mirror, row.real_valued, row.real_only, row.arity, row.parity), []).append(row)
    turn, kind = divmod(number, len(kinds))
    chosen = list(kinds.values())[kind]
    return chosen[turn % len(chosen)]


def _space(var: Var) -> Space:
    assert isinstance(var.type, Space)
    return var.type


def _order(var: Var) -> int:
    return _space(var).order


def all_hold(tensor: Var, facts: Iterable[Expr]) -> bool:
    """Whether what a law asks of a tensor holds of it."""
    space = _space(tensor)
    swaps = [(g.sign, g.conjugate, [n for n, a in enumerate(g.axes) if a != n]) for g in space.group]
    for fact in facts:
        values = [getattr(getattr(a, "value", None), "value", None) for a in fact.args]
        if fact.name == "tensor" and (
            values[1] not in (None, space.order) or values[2] not in (None, space.dtype.__name__)
        ):
            return False
        if fact.name == "axis" and values[1] is not None and values[1] >= space.order:
            return False
        wanted = {"symmetric": (1, False), "antisymmetric": (-1, False), "hermitian": (1, True)}.get(fact.name)
        if wanted and (*wanted, values[1:]) not in swaps:
            return False
    return True
