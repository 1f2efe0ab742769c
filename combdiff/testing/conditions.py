"""The conditions of a law, read as a description of the values it matches.

    (= e (Prod ms)) (member ms s) (= s (Fn "sqrt" v))
    → given e: (Prod ms), s: (Fn "sqrt" v); members of ms: s

Invariant: what is noted of a variable is said by the law; conditions of other kinds are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from combdiff.simplification import Command, Expr, bindings


def signatures(commands: Iterable[Command]) -> dict[str, list[str]]:
    """The argument sorts of every constructor, relation and function."""
    found: dict[str, list[str]] = {}
    for command in commands:
        schema = getattr(command, "schema", None)
        if schema is not None:
            found[command.name] = list(schema.input)
        elif type(command).__name__ == "Relation":
            found[command.name] = list(command.inputs)
    return found


def definitions(commands: Iterable[Command]) -> dict[str, Any]:
    """The one rule that asserts a relation, for relations of which there is one rule and it asserts nothing else."""
    found: dict[str, list[Any]] = {}
    for command in commands:
        for action in getattr(getattr(command, "rule", None), "head", ()):
            if type(action).__name__ == "Expr_" and all(map(is_variable, action.expr.args)):
                found.setdefault(action.expr.name, []).append(command.rule)
    return {name: rules[0] for name, rules in found.items() if len(rules) == 1 == len(rules[0].head)}


class Law:
    """The conditions of a law, sorted by what they say about the values it matches.

    A condition on a relation that one rule asserts, in `defined`, says what the conditions of that rule say.
    """

    def __init__(self, command: Command, sorts: Mapping[str, list[str]], defined: Mapping[str, Any]) -> None:
        self.sorts, self.defined = sorts, defined
        self.patterns: list[Expr] = []
        self.given: dict[str, list[Expr]] = {}
        self.elements: dict[str, dict[int, Expr]] = {}
        self.members: dict[str, list[tuple[Expr, Expr | None]]] = {}
        self.contained: dict[str, list[Expr]] = {}
        self.lengths: dict[str, int] = {}
        self.least: dict[str, int] = {}
        self.facts: list[Expr] = []
        for fact in _conditions(command):
            self._condition(fact)

    def _condition(self, fact: Any) -> None:
        if type(fact).__name__ == "Eq":
            self._equation(fact.left, fact.right)
        elif type(fact.expr).__name__ != "Call":  # a number or a name by itself says nothing
            return
        elif fact.expr.name in self.defined:
            self._written_out(fact.expr)
        else:
            self._fact(fact.expr)

    def _written_out(self, call: Expr) -> None:
        """The conditions of the rule that asserts a relation, its other variables under names of this use."""
        rule = self.defined[call.name]
        names = dict(zip((a.name for a in rule.head[0].expr.args), call.args, strict=True))
        for fact in rule.body:
            self._condition(_renamed(fact, names, f"{call.name} {' '.join(map(name_of, call.args))}"))

    def _equation(self, left: Expr, right: Expr) -> None:
        for one, other in ((left, right), (right, left)):
            if self._container(one, other):
                return
        for one, other in ((left, right), (right, left)):
            if is_variable(one) and (is_literal(other) or self._is_pattern(other) or is_variable(other)):
                self.given.setdefault(one.name, []).append(other)
        self.patterns += [side for side in (left, right) if self._is_pattern(side)]

    def _container(self, call: Expr, other: Expr) -> bool:
        """Note what an equation says of the inside of a container; whether it does."""
        name, args = getattr(call, "name", ""), getattr(call, "args", [])
        if name == "vec-get" and is_variable(args[0]):
            self.elements.setdefault(args[0].name, {})[_position(args[1])] = other
            if self._is_pattern(other):
                self.patterns.append(other)
        elif name in ("vec-length", "multiset-length", "set-length") and is_literal(other):
            inner, removed = args[0], 0
            while getattr(inner, "name", "") == "multiset-remove" and getattr(inner, "args", []):
                inner, removed = inner.args[0], removed + 1
            if is_variable(inner):
                self.lengths[inner.name] = other.value.value + removed
        elif name == "multiset-count":
            self.members.setdefault(args[0].name, []).append((args[1], other))
        elif name == "set-get":
            self.contained.setdefault(args[0].name, []).append(other)
        else:
            return False
        return True

    def _fact(self, call: Expr) -> None:
        name, args = call.name, call.args
        if name == "member":
            self.members.setdefault(args[0].name, []).append((args[1], None))
        elif name == "set-contains":
            self.contained.setdefault(args[0].name, []).append(args[1])
        elif name == ">" and is_variable(args[0]) and type(args[1]).__name__ == "Lit":
            self.least[args[0].name] = args[1].value.value + 1
        elif self._is_pattern(call):
            self.patterns.append(call)
        elif name in self.sorts:
            self.facts.append(call)

    def _is_pattern(self, node: Expr) -> bool:
        name = getattr(node, "name", "")
        return type(node).__name__ == "Call" and (name[:1].isupper() or name.endswith(("-of", "-empty")))

    def patterns_of_values(self) -> list[Expr]:
        """The patterns but those of working constructors, which only other laws write."""
        return [pattern for pattern in self.patterns if pattern.name != "Subst"]

    def told(self, relation: str) -> list[Expr]:
        """The conditions on one relation."""
        return [fact for fact in self.facts if fact.name == relation]


def _position(node: Expr) -> int:
    """The position that vec-get asks for; one that is counted from the end is that of a matrix's index."""
    return int(node.value.value if type(node).__name__ == "Lit" else 2 - node.args[1].value.value)


def _conditions(command: Command) -> list[Any]:
    if hasattr(command, "rule"):
        return list(command.rule.body)
    return [bindings().Fact(command.rewrite.lhs), *command.rewrite.conditions]


def _renamed(node: Any, names: Mapping[str, Expr], use: str) -> Any:
    """A condition with other variables: those in `names` as they say, all others marked by the use."""
    egg = bindings()
    match type(node).__name__:
        case "Eq":
            return egg.Eq(node.span, _renamed(node.left, names, use), _renamed(node.right, names, use))
        case "Fact":
            return egg.Fact(_renamed(node.expr, names, use))
        case "Call":
            return egg.Call(node.span, node.name, [_renamed(argument, names, use) for argument in node.args])
        case "Var" if is_variable(node):
            return names.get(node.name) or egg.Var(node.span, f"{node.name} of {use}")
    return node


def is_variable(node: Expr) -> bool:
    """Whether an expression is a variable of a law, not a global."""
    return type(node).__name__ == "Var" and not node.name.startswith("$")


def is_literal(node: Expr) -> bool:
    """Whether an expression is written out: a literal or a global."""
    return type(node).__name__ == "Lit" or (type(node).__name__ == "Var" and node.name.startswith("$"))


def name_of(node: Any) -> str:
    """The name of a variable, empty for anything else."""
    return str(node.name) if node is not None and is_variable(node) else ""
