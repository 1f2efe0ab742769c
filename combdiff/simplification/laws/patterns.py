"""Laws as egglog matches them: containers in patterns taken apart, sums and products matched in any company.

    (rewrite (Fn "log" (vec-of (Fn "exp" (vec-of x)))) x)
    → (rule ((= whole (Fn "log" v)) (= (Fn "exp" w) (vec-get v 0)) (= 1 (vec-length v)) …) ((union whole x)))

egglog cannot look into a container that a pattern writes out, so its members are asked for one by one. A rewrite of
`(Times a b)` or `(Plus a b)` is a rule for any two members of a product or sum. A law that asks `(real x)` comes with a
rule that adds the conjugate of x, by which it is found real.

Invariant: a law means what it says: the patterns match exactly the containers that are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from combdiff.simplification.egglog_bindings import bindings
from combdiff.simplification.laws.syntax import Command, Expr, Source, calls

PAIRS = {"Times": "Prod", "Plus": "Add"}
CONTAINERS = ("vec-of", "vec-empty", "multiset-of", "set-of", "set-empty")


def matchable(command: Command, source: Source, declared: set[str]) -> Iterator[Command]:
    """A law as rules that egglog matches; anything else as it is. `declared` are the names that patterns are made of.

    Raises RuleError for a pattern that cannot be taken apart.
    """
    egg = bindings()

    if isinstance(command, egg.RuleCommand):
        rule = _Patterns(command.rule, source, declared).rule(command.rule)
        yield from (*_questions(rule.rule), rule)
    elif isinstance(command, egg.RewriteCommand):
        patterns = _Patterns(command.rewrite, source, declared)
        rule = patterns.rewrite(command.rewrite, command.name, command.subsume)
        yield from (*_questions(rule.rule), rule) if rule else (command,)
    elif isinstance(command, egg.BiRewriteCommand):
        law = command.rewrite
        for sides, sign in (((law.lhs, law.rhs), "=>"), ((law.rhs, law.lhs), "<=")):
            one = egg.Rewrite(law.span, *sides, law.conditions, law.name + sign)
            yield from matchable(egg.RewriteCommand(command.name, one, False), source, declared)
    else:
        yield command


def _questions(law: Any) -> Iterator[Command]:
    """A rule that adds (Conj x) where a law asks whether x is real, for the laws of conjugates to answer."""
    egg = bindings()

    asked = [f for f in law.body if isinstance(f, egg.Fact) and isinstance(f.expr, egg.Call) and f.expr.name == "real"]
    if asked:
        others = [fact for fact in law.body if fact not in asked]
        head: list[Any] = [egg.Expr_(law.span, egg.Call(law.span, "Conj", next(calls(f)).args)) for f in asked]
        yield egg.RuleCommand(egg.Rule(law.span, head, others, f"what {law.name} asks", "facts"))


class _Patterns:
    """The patterns of one law; `facts` are what taking containers apart adds."""

    def __init__(self, law: Any, source: Source, declared: set[str]) -> None:
        self.span, self.name, self.source, self.declared = law.span, law.name, source, declared
        self.facts: list[Any] = []
        self.count = 0

    # --- laws

    def rule(self, law: Any) -> Command:
        """A rule with the containers in its conditions taken apart."""
        egg = bindings()
        body = [self.fact(fact) for fact in law.body]
        return egg.RuleCommand(egg.Rule(law.span, law.head, [*body, *self.facts], law.name, law.ruleset))

    def rewrite(self, law: Any, ruleset: str, subsume: bool) -> Command | None:
        """A rewrite as a rule; None where egglog matches it as it is."""
        egg = bindings()

        head = law.lhs.name if isinstance(law.lhs, egg.Call) else ""
        if subsume and head not in self.declared:
            raise self.source.error(law.lhs, "a law with :subsume takes its left side away, which is no node here")
        parts = (law.lhs, law.rhs, *law.conditions)
        plain = self.declared - {*PAIRS, "real"}
        if all(c.name in plain for part in parts for c in calls(part)):
            return None
        whole = self.fresh()
        if head in PAIRS and len(law.lhs.args) != 2:
            raise self.source.error(law.lhs, f"{head} takes 2 arguments, not {len(law.lhs.args)}")
        left, right = self.pair(law) if head in PAIRS else (self.pattern(law.lhs), law.rhs)
        facts = [egg.Eq(law.span, whole, left), *self.facts]
        self.facts = []
        facts += [*map(self.fact, law.conditions), *self.facts]
        gone = [egg.Change(law.span, egg.Subsume(), left.name, left.args)] if subsume else []
        return egg.RuleCommand(egg.Rule(law.span, [*gone, egg.Union(law.span, whole, right)], facts, law.name, ruleset))

    def pair(self, law: Any) -> tuple[Expr, Expr]:
        """The sides of a law about two members of a sum or product, beside whatever others there are."""
        node, members, rest = PAIRS[law.lhs.name], self.fresh(), self.fresh()
        one, other = (self.bound(self.pattern(part)) for part in law.lhs.args)
        self.facts = [
            *(self.asserted("member", members, part) for part in (one, other)),
            self.equal(rest, self.call("multiset-remove", self.call("multiset-remove", members, one), other)),
            *self.facts,
        ]
        return self.call(node, members), self.call(node, self.call("multiset-insert", rest, law.rhs))

    # --- patterns

    def fact(self, fact: Any) -> Any:
        """A condition with the containers in it taken apart."""
        egg = bindings()

        if isinstance(fact, egg.Eq):
            return egg.Eq(fact.span, self.pattern(fact.left), self.pattern(fact.right))
        return egg.Fact(self.pattern(fact.expr))

    def pattern(self, node: Expr) -> Expr:
        """A pattern without containers; what is computed stays as it is."""
        egg = bindings()

        if not isinstance(node, egg.Call) or node.name not in (*self.declared, *CONTAINERS):
            return node
        if node.name in PAIRS:
            mend = f"write ({PAIRS[node.name]} (multiset-of …)) for exactly two"
            raise self.source.error(node, f"{node.name} stands inside a pattern", mend)
        arguments = [self.pattern(argument) for argument in node.args]
        if node.name not in CONTAINERS:
            return egg.Call(node.span, node.name, arguments)
        kind = node.name.split("-")[0]
        return {"vec": self.vector, "multiset": self.multiset, "set": self.set_}[kind](arguments, node)

    def vector(self, members: list[Expr], _: Expr) -> Expr:
        """A vector of exactly these members."""
        whole = self.fresh()
        self.facts += [self.equal(m, self.call("vec-get", whole, self.number(n))) for n, m in enumerate(members)]
        self.facts.append(self.equal(self.number(len(members)), self.call("vec-length", whole)))
        return whole

    def multiset(self, members: list[Expr], _: Expr) -> Expr:
        """A multiset of exactly these members."""
        whole = self.fresh()
        rest = whole
        for member in map(self.bound, members):
            self.facts.append(self.asserted("member", whole, member))
            rest = self.call("multiset-remove", rest, member)
        self.facts.append(self.equal(self.number(0), self.call("multiset-length", rest)))
        return whole

    def set_(self, members: list[Expr], node: Expr) -> Expr:
        """A set of at most one member: of several there is no order to ask for them in."""
        if len(members) > 1:
            mend = "write a set bs with the conditions (set-contains bs i) and (= 2 (set-length bs))"
            raise self.source.error(node, "a set of several members stands in a pattern", mend)
        whole = self.fresh()
        self.facts += [self.equal(m, self.call("set-get", whole, self.number(0))) for m in members]
        self.facts.append(self.equal(self.number(len(members)), self.call("set-length", whole)))
        return whole

    def bound(self, pattern: Expr) -> Expr:
        """A variable that stands for a pattern."""
        if not isinstance(pattern, bindings().Call):
            return pattern
        var = self.fresh()
        self.facts.append(self.equal(var, pattern))
        return var

    # --- egglog's nodes, at the place of the law

    def fresh(self) -> Expr:
        """A variable of its own."""
        self.count += 1
        return bindings().Var(self.span, f"part {self.count} of {self.name}")

    def call(self, function: str, *arguments: Expr) -> Expr:
        """A call."""
        return bindings().Call(self.span, function, list(arguments))

    def asserted(self, function: str, *arguments: Expr) -> Any:
        """The condition that a fact holds."""
        return bindings().Fact(self.call(function, *arguments))

    def equal(self, left: Expr, right: Expr) -> Any:
        """The condition that two expressions are equal."""
        return bindings().Eq(self.span, left, right)

    def number(self, value: int) -> Expr:
        """A whole number."""
        egg = bindings()

        return egg.Lit(self.span, egg.Int(value))
