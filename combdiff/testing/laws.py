"""Every law of a rule file on random instances of both sides, compared through the reference interpreter.

    (rewrite (Fn "log" (vec-of (Fn "exp" (vec-of x)))) x :name "log of exp")
    → log of exp is false: log(exp(c)) = 1.2+0.4j, but c = 1.2-5.9j, for c = 1.2-5.9j

A law runs alone in an e-graph that holds instances of its left side. Whatever it then puts into one class must have one
value, for complex tensors too unless the law asks for real ones. Primitives that a file declares are compared with
central differences.

Invariant: a law that matched no instance is never reported as one that holds.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from combdiff.errors import CombdiffError, Location, RuleError
from combdiff.ir import (
    TABLE,
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
    is_matrix_function,
    subterms,
    type_of,
)
from combdiff.printing import text
from combdiff.records import dataclass
from combdiff.simplification import (
    Codec,
    Command,
    RuleFile,
    Source,
    attempt,
    bindings,
    built_in_files,
    domain_key,
    function_facts,
    law_names,
    load,
    order_key,
    run_text,
    symbols,
)
from combdiff.testing.arrays import random_array
from combdiff.testing.conditions import Law, definitions, signatures
from combdiff.testing.instances import DOMAINS, NAMED_MAP, POSITIVE, Instance
from combdiff.testing.meaning import Meaning

INSTANCES = 12  # of a law, in one e-graph
GRAPHS = 5  # of instances, in which a law is tried
ATTEMPTS = 8  # of them at most until enough instances match, four times as many until one does
ENOUGH = 8
KINDS: dict[str, tuple[float, ...]] = {  # of points at which two terms are compared: the sizes of the tensors
    "small": (1.0,),
    "large": (5.0,),
    "larger": (5.0, 3.0),
    "zero": (0.0,),
    "zero or not": (0.0, 2.0),
    "tiny": (1e-6,),
    "huge": (1e4,),
    "mixed": (1e-3, 1.0, 1e3),
}
EXACT = ("small", "large", "zero", "zero or not")
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
    checker = _Checker(files, wanted, seed)
    for file in wanted:
        yield from checker.laws(file)
        for row in file.rows:
            yield from _derivatives(row, file.source, seed)


class _Checker:
    """An e-graph with the language and the facts that hold, to which one law at a time is added.

    Facts and the rules that note them are tested first, each beside those before it, and one that is false is left out:
    so it is blamed itself, and not the laws that ask for it.
    """

    def __init__(self, files: Iterable[RuleFile], wanted: Iterable[RuleFile], seed: int) -> None:
        files, self.seed = tuple(files), seed
        commands = [command for file in files for command in file.commands]
        self.sorts = signatures(commands)
        self.rules = [command for command in commands if law_names([command])]
        self.defined = definitions(self.rules)
        self.egraph = bindings().EGraph()
        self.early: dict[int, Verdict] = {}
        self._run_commands(command for command in commands if not law_names([command]) and not _states(command))
        run_text(self.egraph, function_facts())
        tested = set(map(id, (command for file in wanted for command in file.commands)))
        later: list[tuple[RuleFile, Command]] = []
        for file in files:
            for command in file.commands:
                if not _notes(command) and not _states(command):
                    continue
                if id(command) not in tested or _is_question(command):
                    self._run_commands([command])
                elif not self._taken(file, command):
                    later.append((file, command))
        for file, command in later:  # what rests on facts that come after it
            if not self._taken(file, command):
                self._run_commands([command])

    def _run_commands(self, commands: Iterable[Command]) -> None:
        attempt(lambda: self.egraph.run_program(*commands))

    def _taken(self, file: RuleFile, command: Command) -> bool:
        """Test a fact or a rule for facts, and hold it unless it is false; whether there is a verdict."""
        verdict = self._fact(file, command) if _states(command) else self._law(file, command)
        if verdict is not None:
            self.early[id(command)] = verdict
            if verdict.status == "untested" and not _states(command):
                return False
        if verdict is None or verdict.status != "false":
            self._run_commands([command])
        return True

    def laws(self, file: RuleFile) -> Iterator[Verdict]:
        """The verdicts on one file, those left out that state nothing: they only take nodes away, or ask."""
        for command in file.commands:
            if id(command) in self.early:
                yield self.early[id(command)]
            elif law_names([command]) and not _notes(command) and not _only_forgets(command):
                yield self._law(file, command)

    def _law(self, file: RuleFile, command: Command) -> Verdict:
        (name,), place = law_names([command]), file.source.place(command)
        rng = random.Random(f"{self.seed} {name}")
        law, matches = Law(command, self.sorts, self.defined), 0
        givers = self._givers(law)
        laws = {id(giver): Law(giver, self.sorts, self.defined) for giver in givers}
        for count in range(4 * ATTEMPTS):
            if matches and count >= (GRAPHS if matches >= ENOUGH else ATTEMPTS):
                break
            giver = givers[count % len(givers)] if givers else None
            described = laws[id(giver)] if giver else law
            found, problem = self._attempt(command, name, described, giver, rng, count)
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
        self, command: Command, name: str, law: Law, giver: Command | None, rng: random.Random, count: int
    ) -> tuple[int, str]:
        """How often the law matched in an e-graph of random instances, and what it got wrong.

        With a `giver` the instances are of that law, which asserts what this one asks; values are substituted in them.
        """
        run_text(self.egraph, "(push)")
        try:
            codec, domain = Codec(), rng.choice(DOMAINS)
            ruleset = _ruleset(command)
            if giver:
                self._run_commands([giver, *(c for c in self.rules if _ruleset(c) == "substitution")])
            numbers = range(count * INSTANCES, (count + 1) * INSTANCES)
            seeds = [line for n in numbers for line in Instance(law, codec, domain, rng, n).written()]
            run_text(self.egraph, codec.tensor_laws())
            run_text(self.egraph, "\n".join(seeds))
            run_text(
                self.egraph, "(run-schedule (repeat 2 (run facts) (run laws)))"
            )  # so that a term is read as it is afterwards
            sides = {term for terms in Meaning(self.egraph, codec).classes() for term in terms}
            if command is not giver and not (giver and ruleset == "substitution"):
                self._run_commands([command])
            schedule = f"(run-schedule (repeat 3 (repeat 2 (run facts)) (run laws) (run {ruleset})\n"
            schedule += "  (repeat 4 (run substitution))))"
            (ran,) = run_text(self.egraph, schedule)
            matches = int(ran.report.num_matches_per_rule.get(name, 0))
            meaning, points = Meaning(self.egraph, codec), np.random.default_rng(rng.randrange(2**32))
            problem = difference(meaning, sides, points) or false_fact(meaning, asserted(command), points)
            return matches, problem
        finally:
            run_text(self.egraph, "(pop)")

    def _fact(self, file: RuleFile, command: Command) -> Verdict | None:
        """The verdict on a fact or equation that a file states; None for one that is judged with its primitive."""
        action = command.action
        said = file.source.written(command)
        about = [str(a.value.value) for a in getattr(getattr(action, "expr", None), "args", []) if hasattr(a, "value")]
        if any(row.name in about for row in file.rows):
            return None
        rng = _points_of(self.seed, said)
        run_text(self.egraph, "(push)")
        try:
            self._run_commands([command])
            meaning = Meaning(self.egraph, Codec())
            if type(action).__name__ == "Union":
                tested = any(len(set(terms)) > 1 for terms in meaning.classes())
                plainest = {min(terms, key=lambda t: (symbols(t), order_key(t))) for terms in meaning.classes()}
                problem = difference(meaning, plainest, rng)
            else:
                tested = _has_meaning(meaning, action.expr.name)
                problem = false_fact(meaning, {action.expr.name}, rng) if tested else ""
        finally:
            run_text(self.egraph, "(pop)")
        status = "false" if problem else "holds" if tested else "untested"
        problem = problem or ("" if tested else "its sides have no meaning without a term that they are parts of")
        return Verdict(said, file.source.place(command), status, int(tested), problem)


def _points_of(seed: int, name: str) -> np.random.Generator:
    """What draws points for a fact or primitive; seeds of NumPy's own are not negative."""
    return np.random.default_rng(random.Random(f"{seed} {name}").randrange(2**32))


def _notes(command: Command) -> bool:
    """Whether a command is a rule that notes facts."""
    return bool(law_names([command])) and _ruleset(command) == "facts"


def _states(command: Command) -> bool:
    """Whether a command states a fact or an equation by itself."""
    action: Any = getattr(command, "action", None)
    if type(action).__name__ == "Union":
        return True
    return type(action).__name__ == "Expr_" and getattr(action.expr, "name", "") in _TRUTHS


def _is_question(command: Command) -> bool:
    """Whether a rule only adds what a law asks about."""
    return any(name.startswith("what ") for name in law_names([command]))


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
    classes = [list(dict.fromkeys(terms)) for terms in meaning.classes()]
    classes = [terms for terms in classes if len(terms) > 1]
    variables = sorted({v for terms in classes for term in terms for v in term.free}, key=lambda v: v.name)
    points = [_LawPoint(kind, variables, rng) for kind in KINDS]
    found: list[tuple[int, str]] = []
    before: set[str] = set()

    def is_new(term: Term) -> bool:
        before.update(map(_like, sides) if not before else ())
        return _like(term) not in before

    for terms in classes:
        terms = sorted(terms, key=lambda t: (t not in sides, symbols(t), order_key(t)))
        found += _class_difference(terms, points, sides, is_new)
    return min(found)[1] if found else ""


def _like(term: Term) -> str:
    """What two terms have in common that differ by the order of indices, as symmetries change it."""
    return re.sub(r"\[([^\[\]]*)\]", lambda found: f"[{''.join(sorted(found[1]))}]", text(term))


class _LawPoint:
    """Values of variables of one kind, and of terms in them."""

    def __init__(self, kind: str, variables: Iterable[Var], rng: np.random.Generator) -> None:
        self.kind, self.scope = kind, _assignment(variables, rng, kind)
        self.values: dict[Term, complex | None] = {}

    def value(self, term: Term) -> complex | None:
        """The value of a term, perhaps not finite; None where it has none."""
        if term not in self.values:
            self.values[term] = _value(term, self.scope)
        return self.values[term]


def _class_difference(
    terms: list[Term], points: list[_LawPoint], sides: set[Term], is_new: Callable[[Term], bool]
) -> Iterator[tuple[int, str]]:
    """A pair of terms of one class that differ, if there is one; `sides` are the terms there are without the law."""
    matrices = any(is_matrix_function(node) for term in terms for node in subterms(term))
    for point in points:
        if matrices and point.kind not in ("small", "large"):  # others are singular, or nearly so
            continue
        known = [(term, value) for term in terms if (value := point.value(term)) is not None]
        undefined = next((term for term in terms if term not in sides and is_undefined(term)), None)
        if undefined is not None and known and known[0][0] in sides and np.isfinite(known[0][1]):
            yield symbols(undefined), f"{text(known[0][0])} has a value, but {text(undefined)} has none"
            return
        for (one, left), (other, right) in combinations(known, 2):
            if not np.isfinite(left):
                continue  # a law may make a value finite
            if not np.isfinite(right) and (one not in sides or point.kind not in EXACT or not is_new(other)):
                continue  # what is huge may overflow
            if not np.isfinite(right) or not _equal(one, left, other, right, point.scope):
                yield symbols(one) + symbols(other), _described(one, left, other, right, point.scope)
                return


@lru_cache(maxsize=4096)
def is_undefined(term: Term) -> bool:
    """Whether a term has no value whatever its variables are: matrices in it are not square, or do not fit."""
    nodes = list(subterms(term))
    matrices = [type_of(node.children[0]) for node in nodes if is_matrix_function(node)]
    reads = [(type_of(n.function), n.arguments) for n in nodes if isinstance(n, Apply) and n.function is not NAMED_MAP]
    if any(not isinstance(m, Space) or m.order < 2 or m.axes[-1] != m.axes[-2] for m in matrices):
        return True
    pairs = [
        (index.type, axis)
        for space, indices in reads
        if isinstance(space, Space)
        for index, axis in zip(indices, space.axes, strict=False)
        if isinstance(index, Var)
    ]
    return any(one != other for one, other in pairs)


def _equal(one: Term, left: complex, other: Term, right: complex, scope: Assignment) -> bool:
    """Whether two values are one up to rounding, which is that of the largest number on the way to them."""
    if isinstance(one, Var) and isinstance(one.type, Cyclic):
        return (left - right).real % 4 == 0
    error = abs(left - right)
    if error <= TOLERANCE * max(abs(left), abs(right)):
        return True
    parts = {node for term in (one, other) for node in subterms(term) if not node.bound and node.free <= scope.keys()}
    values = [_value(part, scope) for part in parts if is_number(part)]
    return error <= ROUNDING * max((_size(value) for value in values), default=1.0)


def _size(value: complex | None) -> float:
    """How large a number is on the way to others; one that is not finite, or so small that its digits are lost: ∞."""
    if value is None or not np.isfinite(value) or 0 < abs(value) < np.finfo(float).tiny:
        return float("inf")
    return abs(value)


def is_number(term: Term) -> bool:
    """Whether a term is a scalar, and no index."""
    found = type_of(term)
    return isinstance(found, Space) and not found.order


def _assignment(variables: Iterable[Var], rng: np.random.Generator, kind: str) -> Assignment:
    """Random indices, and arrays that have the symmetries of their tensors, of one of the `KINDS`."""
    scope: Assignment = {NAMED_MAP: np.arctan}
    places = list(rng.permutation(4))
    for var in variables:
        if isinstance(var.type, Space):
            array = np.asarray(random_array(var.type, rng, {}) * KINDS[kind][rng.integers(len(KINDS[kind]))] + 0.0)
            if var.name in POSITIVE.values():
                array = array @ array.conj().T + np.mean(np.abs(array)) ** 2 * np.eye(len(array))
            scope[var] = array if array.ndim else array.item()
        elif is_domain(var.type):
            place = int(places.pop() if len(places) > 1 and rng.random() < 0.8 else places[0])
            scope[var] = place - 2 if isinstance(var.type, Symmetric) else place
    return scope


def _value(term: Term, scope: Mapping[Var, Any]) -> complex | None:
    """The value of a term; None where it has none: out of range, of a kind its function refuses."""
    try:
        with np.errstate(all="ignore"):
            return _fingerprint(evaluate(term, scope, {}))
    except (CombdiffError, ArithmeticError, np.linalg.LinAlgError):
        return None


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


# --- facts ---------------------------------------------------------------------------------------------------------


def false_fact(meaning: Meaning, relations: Iterable[str], rng: np.random.Generator) -> str:
    """A fact of some relations that is not so, in words; empty where there is none, or where they mean nothing."""
    found = [
        problem
        for relation in sorted(set(relations) & _TRUTHS.keys())
        for inputs in meaning.facts(relation)
        if (problem := _TRUTHS[relation](meaning, relation, inputs, rng))
    ]
    return min(found, key=len) if found else ""


def _has_meaning(meaning: Meaning, relation: str) -> bool:
    """Whether a fact can be tried: a tensor that a file names may be any."""
    if _TRUTHS.get(relation) not in (_must_be_real, _must_be_square):
        return relation in _TRUTHS
    return any(meaning.terms.get(inputs[0]) for inputs in meaning.facts(relation))


def _must_be_real(meaning: Meaning, relation: str, inputs: Sequence[Any], rng: np.random.Generator) -> str:
    """(real v) and (real-tensor m): no value has an imaginary part."""
    terms = [term for term in meaning.terms.get(inputs[0], ()) if isinstance(term, Term)]
    variables = sorted({v for term in terms for v in term.free}, key=lambda v: v.name)
    for kind in EXACT:
        point = _LawPoint(kind, variables, rng)
        for term in terms:
            value = point.value(term)
            if value is not None and np.isfinite(value) and abs(value.imag) > TOLERANCE * max(abs(value), ROUNDING):
                where = _described(term, value, term, value, point.scope).partition(", for")[2]
                return f"({relation} …) is asserted of {text(term)} = {_shown(value)}" + (where and f", for{where}")
    return ""


def _must_be_square(meaning: Meaning, relation: str, inputs: Sequence[Any], rng: np.random.Generator) -> str:
    """(square m) and (square-over m key): the last two axes are one, of that domain."""
    for term in meaning.terms.get(inputs[0], ()):
        space = type_of(term)
        axes = space.axes[-2:] if isinstance(space, Space) and space.order > 1 else ()
        keys = {*map(domain_key, axes), *inputs[1:]}
        if len(keys) != 1 or not axes:
            said = " ".join((relation, "…", *map(json.dumps, inputs[1:])))
            return f"({said}) is asserted of {text(term)}, which is a {space!r}"
    return ""


def _must_be_said(meaning: Meaning, relation: str, inputs: Sequence[Any], rng: np.random.Generator) -> str:
    """(mirror f) and (real-valued f), by the values of f."""
    row = TABLE.get(inputs[0])
    if row is None:
        return f"({relation} {inputs[0]!r}) is asserted of what is no function"
    said = replace(row, mirror=relation == "mirror", real_valued=relation == "real-valued")
    return "" if row.real_only else _said_problem(said, rng) or ""


def _must_be_known(meaning: Meaning, relation: str, inputs: Sequence[Any], rng: np.random.Generator) -> str:
    """What is asked of tensors, domains and the tables: as it is declared."""
    said = f"({relation} {' '.join(map(json.dumps, inputs))})"
    tables = {f'(part "{name}")' for name in ("real", "imag")} | set(function_facts().splitlines())
    known = tables | set(meaning.codec.tensor_laws().splitlines())
    return "" if said in known else f"{said} is asserted, which is not so of all that are called so"


_TRUTHS: dict[str, Callable[[Meaning, str, Sequence[Any], np.random.Generator], str]] = {
    **dict.fromkeys(("real", "real-tensor"), _must_be_real),
    **dict.fromkeys(("mirror", "real-valued"), _must_be_said),
    **dict.fromkeys(("tensor", "axis", "domain", "symmetric", "antisymmetric", "hermitian"), _must_be_known),
    **dict.fromkeys(("part", "of-matrix", "of-number"), _must_be_known),
    **dict.fromkeys(("square", "square-over"), _must_be_square),
}

# --- primitives ----------------------------------------------------------------------------------------------------


def _derivatives(row: Row, source: Source, seed: int) -> Iterator[Verdict]:
    """The verdicts on the derivatives of a primitive, and on what is said of its values."""
    place = Location(source.name, source.text[: max(source.text.find(f'"{row.name}"'), 0)].count("\n") + 1)
    rng = _points_of(seed, row.name)
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
            holomorphic = _value(row.partials[n](*arguments), scope)
            antiholomorphic = _value(row.conjugate_partials[n](*arguments), scope) if row.conjugate_partials else 0.0
            if expected is None or holomorphic is None or antiholomorphic is None:
                continue
            tested = True
            found = (holomorphic, antiholomorphic) if dtype is complex else (holomorphic + antiholomorphic, 0.0)
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
    for number in range(24):
        point, mirrored = _mirror_images(row.arity, number % 3, rng)
        value = _value(term, dict(zip(arguments, point, strict=True)))
        image = _value(term, dict(zip(arguments, mirrored, strict=True)))
        if value is None or image is None:
            continue
        tested = True
        where = f"{row.name}({', '.join(map(_shown, point))}) = {_shown(value)}"
        if row.real_valued and abs(value.imag) > 1e-9 * max(1, abs(value)):
            return f"it is said to be real, but {where}"
        if row.mirror and abs(image - value.conjugate()) > 1e-9 * max(1, abs(value)):
            return f"it is said to take conjugates to conjugates, but {where}, and of the conjugates {_shown(image)}"
    return "" if tested else None


def _mirror_images(arity: int, axis: int, rng: np.random.Generator) -> tuple[list[complex], list[complex]]:
    """Arguments and their conjugates: on the real axis the same, on the imaginary one those of the other sign.

    What has a branch cut along an axis takes the two, zeros of both signs told apart, to what are no conjugates.
    """
    points = [_random(complex, rng) for _ in range(arity)]
    if axis == 0:
        real = [complex(2 * z.real) for z in points]
        return real, real
    if axis == 1:
        return [complex(0.0, 2 * z.imag) for z in points], [complex(-0.0, -2 * z.imag) for z in points]
    return points, [z.conjugate() for z in points]


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
