"""Every law of a rule file on random instances of both sides, compared through the reference interpreter.

    (rewrite (Fn "log" (vec-of (Fn "exp" (vec-of x)))) x :name "log of exp")
    → log of exp is false: log(exp(c)) = 1.2+0.4j, but c = 1.2-5.9j, for c = 1.2-5.9j

A law runs alone in an e-graph that holds instances of its left side. Whatever it then puts into one class must have one
value, for complex tensors too unless the law asks for real ones. Primitives that a file declares are compared with
central differences.

Invariant: a law that matched no instance is never reported as one that holds.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from combdiff.errors import ArgumentError, Location, RuleError, TypeMismatchError
from combdiff.ir import (
    Apply,
    Cyclic,
    Row,
    Space,
    Symmetric,
    Term,
    Var,
    evaluate,
    function,
    is_domain,
    subterms,
    type_of,
)
from combdiff.printing import text
from combdiff.simplification import (
    Codec,
    Command,
    RuleFile,
    Source,
    bindings,
    built_in_files,
    function_facts,
    law_names,
    load,
    order_key,
    symbols,
)
from combdiff.testing.arrays import random_array
from combdiff.testing.conditions import Law, signatures
from combdiff.testing.instances import DOMAINS, NAMED_MAP, Instance
from combdiff.testing.meaning import Meaning

INSTANCES = 12  # of a law, in one e-graph
ATTEMPTS = 8  # e-graphs for one law; more than three only until an instance matches
POINTS = 4  # assignments at which two terms are compared
TOLERANCE = 1e-7
ROUNDING = 1e-12

Assignment = dict[Var, Any]


@dataclass(frozen=True)
class Verdict:
    """What the check found of a law or a derivative.

    `status` is "holds", "false" or "untested", `matches` how often it matched, `problem` the counter-example.
    """

    name: str
    place: Location
    status: str
    matches: int = 0
    problem: str = ""

    def __str__(self) -> str:
        if self.status == "holds":
            return f"{self.place}: {self.name}: holds ({self.matches} instances)"
        what = "is false" if self.status == "false" else "could not be tested"
        return f"{self.place}: {self.name} {what}: {self.problem}"


def verdicts(path: str | Path | None = None, seed: int = 0) -> Iterator[Verdict]:
    """The verdict on every law and primitive of a rule file, of the built-in files if none is given.

    The same seed gives the same instances. Raises RuleError for a file that cannot be read as one.
    """
    files = built_in_files() if path is None else load([path])
    wanted = files if path is None else files[-1:]
    checker = _Checker(files)
    for file in wanted:
        yield from checker.laws(file, seed)
        for row in file.rows:
            yield from _derivatives(row, file.source, seed)


class _Checker:
    """An e-graph with the language and the rules that note facts, to which one law at a time is added."""

    def __init__(self, files: Iterable[RuleFile]) -> None:
        commands = [command for file in files for command in file.commands]
        self.sorts = signatures(commands)
        self.rules = [command for command in commands if law_names([command])]
        self.egraph = bindings().EGraph()
        self.egraph.run_program(*(c for c in commands if not law_names([c]) or _ruleset(c) == "facts"))
        self._run(function_facts())

    def _run(self, program: str) -> list[Any]:
        outputs: list[Any] = self.egraph.run_program(*self.egraph.parse_program(program))
        return outputs

    def laws(self, file: RuleFile, seed: int) -> Iterator[Verdict]:
        """The verdicts on the laws of one file, those left out that only take nodes away and so state nothing."""
        for command in file.commands:
            for name in law_names([command]):
                if not name.startswith("what ") and not _only_forgets(command):
                    yield self._law(command, name, file.source.place(command), random.Random(f"{seed} {name}"))

    def _law(self, command: Command, name: str, place: Location, rng: random.Random) -> Verdict:
        law, matches = Law(command, self.sorts), 0
        givers = self._givers(law)
        for attempt in range(ATTEMPTS):
            if attempt >= 3 and matches:
                break
            giver = givers[attempt % len(givers)] if givers else None
            found, problem = self._attempt(command, name, Law(giver, self.sorts) if giver else law, giver, rng)
            matches += found
            if problem:
                return Verdict(name, place, "false", matches, problem)
        if not matches:
            return Verdict(name, place, "untested", 0, "no random instance meets its conditions")
        return Verdict(name, place, "holds", matches)

    def _givers(self, law: Law) -> list[Command]:
        """The laws that assert the facts which a law without patterns of its own is about."""
        asked = {fact.name for fact in law.facts}
        wanted = [] if law.patterns_of_values() else [c for c in self.rules if asked & asserted(c)]
        return [command for command in wanted if _ruleset(command) != "facts"]

    def _attempt(
        self, command: Command, name: str, law: Law, giver: Command | None, rng: random.Random
    ) -> tuple[int, str]:
        """How often the law matched in an e-graph of random instances, and what it got wrong.

        With a `giver` the instances are of that law, which asserts what this one asks; values are substituted in them.
        """
        self._run("(push)")
        try:
            codec, domain = Codec(), rng.choice(DOMAINS)
            ruleset = _ruleset(command)
            if ruleset != "facts":
                self.egraph.run_program(command, *([giver] if giver else []))
            if giver:
                self.egraph.run_program(*(c for c in self.rules if _ruleset(c) == "substitution"))
            seeds = [line for _ in range(INSTANCES) for line in Instance(law, codec, domain, rng).written()]
            self._run(codec.tensor_laws())
            self._run("\n".join(seeds))
            before = Meaning(self.egraph, codec)
            sides = {term for terms in before.classes() for term in terms}
            schedule = f"(run-schedule (repeat 3 (repeat 2 (run facts)) (run laws) (run {ruleset})\n"
            schedule += "  (repeat 4 (run substitution))))"
            (ran,) = self._run(schedule)
            matches = int(ran.report.num_matches_per_rule.get(name, 0))
            return matches, difference(Meaning(self.egraph, codec), sides, np.random.default_rng(rng.randrange(2**32)))
        finally:
            self._run("(pop)")


def asserted(command: Command) -> set[str]:
    """The relations that a rule asserts."""
    heads = command.rule.head if hasattr(command, "rule") else []
    return {action.expr.name for action in heads if type(action).__name__ == "Expr_"}


def _only_forgets(command: Command) -> bool:
    return hasattr(command, "rule") and all(type(action).__name__ == "Change" for action in command.rule.head)


def _ruleset(command: Command) -> str:
    return str(command.rule.ruleset if hasattr(command, "rule") else command.name)


# --- values --------------------------------------------------------------------------------------------------------


def difference(meaning: Meaning, sides: set[Term], rng: np.random.Generator) -> str:
    """Two terms of one class with different values, in words; empty where there are none."""
    found: list[tuple[int, str]] = []
    for terms in meaning.classes():
        distinct = list(dict.fromkeys(terms))
        if len(distinct) > 1:
            found += _class_difference(sorted(distinct, key=lambda t: (t not in sides, symbols(t), order_key(t))), rng)
    return min(found)[1] if found else ""


def _class_difference(terms: list[Term], rng: np.random.Generator) -> Iterator[tuple[int, str]]:
    """A pair of terms of one class that differ, if there is one."""
    variables = sorted(frozenset().union(*(t.free for t in terms)), key=lambda v: v.name)
    for point in range(POINTS):
        scope = _assignment(variables, rng, 5.0 if point % 4 else 1.0)
        values = [(term, _value(term, scope)) for term in terms]
        known = [(term, value) for term, value in values if value is not None]
        for (one, left), (other, right) in combinations(known, 2):
            if not _equal(one, left, other, right, scope):
                yield symbols(one) + symbols(other), _described(one, left, other, right, scope)
                return


def _equal(one: Term, left: complex, other: Term, right: complex, scope: Assignment) -> bool:
    """Whether two values are one up to rounding, which is that of the largest number on the way to them."""
    if isinstance(one, Var) and isinstance(one.type, Cyclic):
        return (left - right).real % 4 == 0
    error = abs(left - right)
    if error <= TOLERANCE * max(1.0, abs(left), abs(right)):
        return True
    parts = {node for term in (one, other) for node in subterms(term) if not node.bound and node.free <= scope.keys()}
    values = [_value(part, scope, 1e30) for part in parts if is_number(part)]
    sizes = [float("inf") if value is None else abs(value) for value in values]
    return error <= ROUNDING * max(sizes, default=1.0)


def is_number(term: Term) -> bool:
    """Whether a term is a scalar, and no index."""
    found = type_of(term)
    return isinstance(found, Space) and not found.order


def _assignment(variables: Iterable[Var], rng: np.random.Generator, scale: float) -> Assignment:
    """Random indices, and arrays that have the symmetries of their tensors."""
    scope: Assignment = {NAMED_MAP: np.arctan}
    places = list(rng.permutation(4))
    for var in variables:
        if isinstance(var.type, Space):
            scope[var] = random_array(var.type, rng, {}) * scale
        elif is_domain(var.type):
            place = int(places.pop() if len(places) > 1 and rng.random() < 0.8 else places[0])
            scope[var] = place - 2 if isinstance(var.type, Symmetric) else place
    return scope


def _value(term: Term, scope: Mapping[Var, Any], most: float = 1e8) -> complex | None:
    """The value of a term; None where it has none: out of range, infinite, of a kind its function refuses."""
    try:
        with np.errstate(all="ignore"):
            value = _fingerprint(evaluate(term, scope, {}))
    except (ArgumentError, TypeMismatchError, ZeroDivisionError, OverflowError, np.linalg.LinAlgError):
        return None
    return value if np.isfinite(value) and abs(value) < most else None


def _fingerprint(value: Any) -> complex:
    """A number that is equal for equal arrays and, but for chance, for no others."""
    array = np.asarray(value)
    return complex(np.sum(array * np.cos(np.arange(array.size)).reshape(array.shape)))


def _described(one: Term, left: complex, other: Term, right: complex, scope: Mapping[Var, Any]) -> str:
    """Both sides with their values, and the numbers in them: elements where they are read, arrays under a Σ."""
    parts = [node for term in (one, other) for node in subterms(term) if isinstance(node, Apply | Var)]
    reads = [p for p in parts if isinstance(p, Apply) and p.free <= scope.keys() and p.function in scope]
    read = {p.function for p in reads}
    summed = {v for p in parts if isinstance(p, Apply) and p not in reads for v in p.free if v in scope}
    plain = {v for v in one.free | other.free if v not in read or v in summed}
    shown = {text(p): _value(p, scope) for p in reads} | {v.name: scope[v] for v in plain if v in scope}
    values = [f"  {name} = {_shown(value)}" for name, value in sorted(shown.items())]
    sides = f"{text(one)} = {_shown(left)}, but {text(other)} = {_shown(right)}"
    return "\n".join([sides + (", for" if values else ""), *values])


def _shown(value: Any) -> str:
    array = np.asarray(value)
    if array.dtype.kind == "O":
        return "arctan"
    if array.ndim == 0:
        number = complex(array.item())
        return f"{number.real:.6g}" if not number.imag else f"{number:.6g}"
    return np.array2string(array, precision=4, separator=", ").replace("\n", "\n    ")


# --- primitives ----------------------------------------------------------------------------------------------------


def _derivatives(row: Row, source: Source, seed: int) -> Iterator[Verdict]:
    """The verdicts on the derivatives of a primitive, and on what is said of its values."""
    place = Location(source.name, source.text[: max(source.text.find(f'"{row.name}"'), 0)].count("\n") + 1)
    rng = np.random.default_rng(seed)
    dtypes = (float,) if row.real_only else (float, complex)
    problems = {f"the derivative of {row.name}": [_slope_problem(row, dtype, rng) for dtype in dtypes]}
    if not row.real_only:
        problems[f"what is said of {row.name}"] = [_said_problem(row, rng)]
    for name, found in problems.items():
        tested = [problem for problem in found if problem is not None]
        wrong = next((problem for problem in tested if problem), "")
        if wrong:
            yield Verdict(name, place, "false", len(tested), wrong)
        elif not tested:
            yield Verdict(name, place, "untested", 0, f"{row.name} is finite at no random point")
        else:
            yield Verdict(name, place, "holds", len(tested))


def _slope_problem(row: Row, dtype: type, rng: np.random.Generator) -> str | None:
    """Where the derivative is not what central differences give; empty where it is, None where nothing is finite."""
    arguments = [Var(f"x{n}", Space(dtype=dtype)) for n in range(row.arity)]
    term, h, tested = function(row.name, *arguments), 1e-6, False
    for _ in range(24):
        point = [_random(dtype, rng) for _ in arguments]
        for n in range(row.arity):
            expected = _slopes(term, arguments, point, n, h, dtype)
            scope = dict(zip(arguments, point, strict=True))
            direct = _value(row.partials[n](*arguments), scope)
            mirrored = _value(row.conjugate_partials[n](*arguments), scope) if row.conjugate_partials else 0.0
            if expected is None or direct is None or mirrored is None:
                continue
            tested = True
            found = (direct, mirrored) if dtype is complex else (direct + mirrored, 0.0)
            for kind, one, other in zip(("", "conjugate "), found, expected, strict=True):
                if abs(one - other) > 1e-4 * max(1.0, abs(other)):
                    where = ", ".join(f"{v.name} = {_shown(x)}" for v, x in scope.items())
                    return (
                        f"by argument {n} the {kind}derivative is {_shown(one)}, "
                        f"but central differences give {_shown(other)}, for {where}"
                    )
    return "" if tested else None


def _slopes(
    term: Term, arguments: list[Var], point: list[complex], n: int, h: float, dtype: type
) -> tuple[complex, complex] | None:
    """∂/∂z and ∂/∂z̄ by central differences; for real arguments the slope and 0."""
    slopes = []
    for direction in (1, 1j) if dtype is complex else (1,):
        ends = []
        for sign in (1, -1):
            moved = [x + sign * h * direction * (m == n) for m, x in enumerate(point)]
            ends.append(_value(term, dict(zip(arguments, moved, strict=True))))
        if ends[0] is None or ends[1] is None or abs(ends[0] - ends[1]) > 1e-2:
            return None
        slopes.append((ends[0] - ends[1]) / (2 * h))
    if dtype is not complex:
        return slopes[0], 0
    return (slopes[0] - 1j * slopes[1]) / 2, (slopes[0] + 1j * slopes[1]) / 2


def _said_problem(row: Row, rng: np.random.Generator) -> str | None:
    """Where (mirror f) or (real-valued f) is false."""
    arguments = [Var(f"x{n}", Space(dtype=complex)) for n in range(row.arity)]
    term, tested = function(row.name, *arguments), False
    for _ in range(24):
        point = [_random(complex, rng) for _ in arguments]
        value = _value(term, dict(zip(arguments, point, strict=True)))
        image = _value(term, {v: np.conj(x) for v, x in zip(arguments, point, strict=True)})
        if value is None or image is None:
            continue
        tested = True
        where = f"{row.name}({', '.join(map(_shown, point))}) = {_shown(value)}"
        if row.real_valued and abs(value.imag) > 1e-9 * max(1, abs(value)):
            return f"it is said to be real, but {where}"
        if row.mirror and abs(image - value.conjugate()) > 1e-9 * max(1, abs(value)):
            return f"it is said to take conjugates to conjugates, but {where}, and of the conjugates {_shown(image)}"
    return "" if tested else None


def _random(dtype: type, rng: np.random.Generator) -> complex:
    value = float(rng.uniform(-2, 2))
    return value if dtype is float else complex(value, rng.uniform(-2, 2))


class FalseLaw(RuleError, AssertionError):
    """A rule file states a law that is false, or one that cannot be tested."""


def require(found: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts, if all laws hold. Raises FalseLaw naming every one that does not, with its counter-example."""
    found = list(found)
    wrong = [verdict for verdict in found if verdict.status != "holds"]
    if wrong:
        raise FalseLaw(
            "\n".join(f"{v.name} {str(v).split(v.name, 1)[1].strip()}" for v in wrong), location=wrong[0].place
        )
    return found
