"""What a law of a user's file may compute: numbers and containers that stay small, and nothing that fails half-way.

    (rewrite (Fn "f" (vec-of (Num a b))) (Num (/ $one a) b))
    → conditions (= computed (/ $one a)) (< (bits (numer a)) 128) (< (bits (denom a)) 128), right side (Num computed b)

egglog cannot be interrupted within a step, and some of its functions end the process where they are undefined. So a
file may use those alone that only fail to match; what it computes on a right side is computed among the conditions; and
it sees numbers and containers up to a size only, so that a law that feeds on its own results comes to an end.

Invariant: no law of a user computes a number of more than `MOST_BITS` bits, or calls what may end the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any

from combdiff.records import dataclass
from combdiff.simplification.egglog_bindings import bindings
from combdiff.simplification.laws.syntax import Command, Expr, Source, calls

SEEN_BITS = 128  # of a numerator or denominator that a law computes with
MOST_BITS = 4096  # of a number that a law computes
MOST_MEMBERS = 1024  # of a container that a law computes with
MOST_COPIES = 64

NUMBERS: tuple[str, ...] = ("+", "-", "*", "/", "neg", "abs", "round", "floor", "ceil", "min", "max", "numer", "denom")
WRITTEN = ("bigint", "bigrat", "from-string")
COMPARED = ("=", "!=", "<", ">", "<=", ">=")
MADE: tuple[str, ...] = (
    "vec-of",
    "vec-empty",
    "vec-push",
    "vec-append",
    "set-of",
    "set-empty",
    "set-insert",
    "set-union",
)
MADE += ("set-union",)
MADE += ("multiset-of", "multiset-insert", "multiset-sum", "unstable-fn", "unstable-vec-map", "unstable-multiset-map")
ASKED: tuple[str, ...] = (
    "vec-get",
    "vec-pop",
    "vec-length",
    "vec-contains",
    "vec-not-contains",
    "set-get",
    "set-length",
    "set-contains",
)
ASKED += ("set-not-contains", "set-remove", "set-intersect", "set-diff", "multiset-remove", "multiset-subtract")
ASKED += ("multiset-count", "multiset-length", "multiset-contains", "multiset-not-contains", "multiset-single")
MAY_FAIL = (*NUMBERS, "vec-get", "set-get", "multiset-remove", "multiset-subtract", "multiset-single")
FUNCTIONS = frozenset((*NUMBERS, *WRITTEN, *COMPARED, *MADE, *ASKED))

_LENGTHS = {"Vec": "vec-length", "Set": "set-length", "MultiSet": "multiset-length"}


@dataclass
class Vocabulary:
    """What is declared: the sorts that constructors, relations and functions take and give, containers, globals."""

    takes: dict[str, list[str]] = field(default_factory=dict)
    gives: dict[str, str] = field(default_factory=dict)
    containers: dict[str, str] = field(default_factory=dict)
    globals_: dict[str, Expr] = field(default_factory=dict)

    def add(self, command: Command) -> None:
        """Note what one command declares."""
        match type(command).__name__:
            case "Constructor" | "FunctionCommand":
                self.takes[command.name], self.gives[command.name] = list(command.schema.input), command.schema.output
            case "Relation":
                self.takes[command.name] = list(command.inputs)
            case "Datatype":
                self._variants(command.name, command.variants)
            case "Datatypes":
                for _, name, parts in command.datatypes:
                    self._variants(name, getattr(parts, "variants", getattr(parts, "value", ())) or ())
            case "Sort" if command.presort_and_args:
                self.containers[command.name] = command.presort_and_args[0]
            case "ActionCommand" if type(command.action).__name__ == "Let":
                self.globals_[command.action.lhs] = command.action.rhs

    def _variants(self, sort: str, variants: Iterable[Any]) -> None:
        for variant in variants:
            if hasattr(variant, "types"):
                self.takes[variant.name], self.gives[variant.name] = list(variant.types), sort

    @classmethod
    def of(cls, commands: Iterable[Command]) -> Vocabulary:
        """What some commands declare."""
        found = cls()
        for command in commands:
            found.add(command)
        return found


def check(command: Command, source: Source, known: Vocabulary) -> None:
    """Raise RuleError for a call of what is neither declared nor one of `FUNCTIONS`, and for a number beyond bounds."""
    for call in calls(command):
        if call.name not in known.takes and call.name not in FUNCTIONS:
            raise source.error(call, f"{call.name} is not in the vocabulary of laws", "see rules/README.md")
        _check_call(call, source, known)
    if type(command).__name__ == "FunctionCommand" and command.merge is not None:
        plain = _name(command.merge) in ("old", "new")
        if not plain and getattr(command.merge, "name", "") not in ("min", "max"):
            raise source.error(command, "two values of a function are merged by a computation", "write (min old new)")
    _check_written(command, source)
    sizes = _Sizes(command, known, source)
    for call in calls(command):
        if call.name in NUMBERS:
            sizes.of(call)


def _check_call(call: Expr, source: Source, known: Vocabulary) -> None:
    """Raise RuleError for an argument with which a function of egglog's may end the process."""
    kinds = [_literal_kind(argument) for argument in call.args]
    if call.name == "bigrat" and not (len(call.args) == 2 and _is_nonzero(call.args[1])):
        raise source.error(call, "a denominator is not a number that is written out, or is zero", "divide by / instead")
    if call.name == "from-string" and kinds != ["String"]:
        raise source.error(call, "from-string takes a text in quotation marks")
    if call.name == "unstable-fn" and (kinds[:1] != ["String"] or call.args[0].value.value not in known.takes):
        raise source.error(call, "unstable-fn takes the name of a constructor in quotation marks")
    if call.name == "multiset-single" and (kinds[1:] != ["Int"] or call.args[1].value.value > MOST_COPIES):
        raise source.error(call, f"multiset-single takes a number of copies that is written out, up to {MOST_COPIES}")
    if call.name in (*NUMBERS, "multiset-single") and "String" in kinds:
        raise source.error(call, "a law computes no texts")


def _check_written(command: Command, source: Source) -> None:
    """Raise RuleError for a tensor or opaque part that a right side names, but no condition does: there may be none."""
    law = getattr(command, "rule", None)
    rewrite = getattr(command, "rewrite", None)
    if law is not None:
        met, written = law.body, law.head
    elif rewrite is not None and type(command).__name__ == "RewriteCommand":
        met, written = [rewrite.lhs, *rewrite.conditions], [rewrite.rhs]
    elif rewrite is not None:
        met, written = [], [rewrite.lhs, rewrite.rhs]
    else:
        return
    known = {(call.name, _text(call)) for part in met for call in calls(part) if call.name in ("T", "Opaque")}
    for call in (call for part in written for call in calls(part)):
        if call.name in ("T", "Opaque") and _text(call) and (call.name, _text(call)) not in known:
            raise source.error(call, f"the right side names {_text(call)!r}, which no condition names")


def _text(call: Expr) -> str:
    """The text in quotation marks that a call begins with; empty for none."""
    return str(call.args[0].value.value) if call.args and _literal_kind(call.args[0]) == "String" else ""


def _literal_kind(node: Expr) -> str:
    return type(node.value).__name__ if type(node).__name__ == "Lit" else ""


def _is_nonzero(node: Expr) -> bool:
    """Whether an expression is a whole number other than 0, written out."""
    is_number = getattr(node, "name", "") in ("bigint", "from-string") and len(node.args) == 1
    inner: Any = node.args[0] if is_number else None
    try:
        return _literal_kind(inner) in ("Int", "String") and int(inner.value.value) != 0
    except ValueError:
        return False


def _name(node: Expr) -> str:
    return str(node.name) if type(node).__name__ == "Var" else ""


class _Sizes:
    """How many bits the numbers of a command may have, from those of its variables."""

    def __init__(self, command: Command, known: Vocabulary, source: Source) -> None:
        self.known, self.source = known, source
        self.open: set[str] = set()
        equations = [f for f in getattr(getattr(command, "rule", None), "body", []) if type(f).__name__ == "Eq"]
        rewrite = getattr(command, "rewrite", None)
        equations += [f for f in getattr(rewrite, "conditions", []) if type(f).__name__ == "Eq"]
        self.defined: dict[str, list[Expr]] = {}
        for equation in equations:
            for one, other in ((equation.left, equation.right), (equation.right, equation.left)):
                if _name(one) and getattr(other, "name", "") in NUMBERS:
                    self.defined.setdefault(_name(one), []).append(other)
        for action in getattr(getattr(command, "rule", None), "head", []):
            if type(action).__name__ == "Let":
                self.defined.setdefault(action.lhs, []).append(action.rhs)

    def of(self, node: Expr) -> int:
        """A bound on the bits of a number. Raises RuleError where it may have more than `MOST_BITS`."""
        if type(node).__name__ == "Lit":
            return 4 * len(str(node.value.value)) if _literal_kind(node) in ("Int", "String") else 64
        if type(node).__name__ == "Var":
            return self._variable(node.name)
        name = getattr(node, "name", "")
        if name not in (*NUMBERS, *WRITTEN):
            return 2 * SEEN_BITS
        found = sum(self.of(argument) for argument in node.args) + 1
        if found > MOST_BITS:
            raise self.source.error(node, f"a law computes a number of more than {MOST_BITS} bits", "use lower powers")
        return found

    def _variable(self, name: str) -> int:
        meant = self.defined.get(name) or ([self.known.globals_[name]] if name in self.known.globals_ else [])
        if name in self.open or not meant:
            return 2 * SEEN_BITS
        self.open.add(name)
        found = max(self.of(one) for one in meant)
        self.open.discard(name)
        return found


def bounded(command: Command, source: Source, known: Vocabulary) -> Command:
    """A rule that computes nothing on its right side and sees what is small; other commands as they are."""
    egg = bindings()

    if not isinstance(command, egg.RuleCommand):
        return command
    law = command.rule
    moved = _Moved(law, source, known)
    head = [moved.action(action) for action in law.head]
    body = [*law.body, *moved.facts]
    sorts = _sorts(body, known)
    for call in (call for part in body for call in calls(part) if call.name in NUMBERS):
        if any(sorts.get(_name(argument)) == "String" for argument in call.args):
            raise source.error(call, "a law computes no texts")
    used = {_name(a) for part in body for call in calls(part) if call.name in FUNCTIONS for a in call.args}
    guards = [guard for name in sorted(used & sorts.keys()) for guard in _guards(law.span, name, sorts[name], known)]
    return egg.RuleCommand(egg.Rule(law.span, head, [*body, *guards], law.name, law.ruleset))


def _sorts(body: Iterable[Any], known: Vocabulary) -> dict[str, str]:
    """The sorts of the variables of some conditions, as far as constructors tell."""
    found: dict[str, str] = {}
    for part in body:
        for call in calls(part):
            for argument, sort in zip(call.args, known.takes.get(call.name, ()), strict=False):
                if _name(argument) and not _name(argument).startswith("$"):
                    found[_name(argument)] = sort
        if type(part).__name__ == "Eq":
            for one, other in ((part.left, part.right), (part.right, part.left)):
                if _name(one) and getattr(other, "name", "") in known.gives:
                    found[_name(one)] = known.gives[other.name]
    return found


def _guards(span: Any, name: str, sort: str, known: Vocabulary) -> Iterator[Any]:
    """The conditions that what a variable stands for is small."""
    egg = bindings()

    def call(function: str, *arguments: Expr) -> Expr:
        return egg.Call(span, function, list(arguments))

    def below(value: Expr, most: Expr) -> Any:
        return egg.Fact(call("<", value, most))

    variable, bits = egg.Var(span, name), call("bigint", egg.Lit(span, egg.Int(SEEN_BITS)))
    if sort == "BigRat":
        yield from (below(call("bits", call(part, variable)), bits) for part in ("numer", "denom"))
    elif sort == "BigInt":
        yield below(call("bits", variable), bits)
    elif known.containers.get(sort) in _LENGTHS:
        yield below(call(_LENGTHS[known.containers[sort]], variable), egg.Lit(span, egg.Int(MOST_MEMBERS)))


class _Moved:
    """The right side of a rule with what it computes moved among the conditions, where failing is not matching."""

    def __init__(self, law: Any, source: Source, known: Vocabulary) -> None:
        self.law, self.source, self.known = law, source, known
        self.facts: list[Any] = []
        self.local = {action.lhs for action in law.head if type(action).__name__ == "Let"}

    def action(self, action: Any) -> Any:
        """An action without computations."""
        egg = bindings()

        span = self.law.span
        match type(action).__name__:
            case "Let":
                return egg.Let(span, action.lhs, self.expression(action.rhs))
            case "Set":
                return egg.Set(span, action.lhs, list(map(self.expression, action.args)), self.expression(action.rhs))
            case "Union":
                return egg.Union(span, self.expression(action.lhs), self.expression(action.rhs))
            case "Expr_":
                return egg.Expr_(span, self.expression(action.expr))
        return action

    def expression(self, node: Expr) -> Expr:
        """An expression whose computed parts are variables."""
        egg = bindings()

        if not isinstance(node, egg.Call):
            return node
        if node.name in FUNCTIONS and self._is_plain(node):
            variable = egg.Var(self.law.span, f"computed {len(self.facts)} of {self.law.name}")
            self.facts.append(egg.Eq(self.law.span, variable, node))
            return variable
        if node.name in MAY_FAIL:
            raise self.source.error(node, f"{node.name} may fail on a right side", "compute it among the conditions")
        return egg.Call(node.span, node.name, list(map(self.expression, node.args)))

    def _is_plain(self, node: Expr) -> bool:
        """Whether an expression is computed from what the conditions know."""
        names = (_name(part) for part in _variables(node))
        return (
            all(c.name in FUNCTIONS and not c.name.startswith("unstable") for c in calls(node))
            and node.name not in ("vec-of", "vec-empty", "set-of", "set-empty", "multiset-of")
            and self.local.isdisjoint(names)
        )


def _variables(node: Expr) -> Iterator[Expr]:
    if type(node).__name__ == "Var":
        yield node
    for argument in getattr(node, "args", ()):
        yield from _variables(argument)
