"""How the built-in laws are matched: egglog joins the tables that a law reads before it computes anything.

Tables that only a computed value ties together, `(= k (vec-get v 0)) (= k (I name over))`, are matched in all
combinations: three such indices took 11 s in an e-graph of 1 500 rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest

from combdiff.simplification.egglog_bindings import bindings
from combdiff.simplification.laws.loading import built_in_files
from combdiff.simplification.laws.syntax import calls

MOST_GROUPS = 3
egg = bindings()
COMMANDS = [command for file in built_in_files() for command in file.commands]
TABLES = {c.name for c in COMMANDS if isinstance(c, egg.Constructor | egg.Relation | egg.FunctionCommand)}
LAWS = [command.rule for command in COMMANDS if isinstance(command, egg.RuleCommand)]


def groups(law: Any) -> int:
    """The number of groups of tables that a law reads, those that share a name, or are equal, in one group."""
    found: list[set[str]] = []
    for names in chain.from_iterable(map(_joined, law.body)):
        touched = [group for group in found if group & names]
        found = [*(group for group in found if not group & names), names.union(*touched)]
    return len(found)


def _joined(fact: Any) -> Iterator[set[str]]:
    """The names that each table of a condition is read with; tables inside a table are joined with it."""
    sides = [fact.left, fact.right] if isinstance(fact, egg.Eq) else [fact.expr]
    rows = [side for side in sides if isinstance(side, egg.Call) and side.name in TABLES]
    apart = [call for side in sides if side not in rows for call in calls(side) if call.name in TABLES]
    here = {side.name for side in sides if isinstance(side, egg.Var)} if rows else set()
    if rows:
        yield here.union(*map(_names, rows))
    yield from map(_names, apart)


def _names(call: Any) -> set[str]:
    inside = (_names(part) for part in call.args if isinstance(part, egg.Call) and part.name in TABLES)
    named = {part.name for part in call.args if isinstance(part, egg.Var) and not part.name.startswith("$")}
    return named.union(*inside)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_tables_are_joined_by_names(law: Any) -> None:
    assert groups(law) <= MOST_GROUPS


def test_a_name_that_is_computed_joins_nothing() -> None:
    source = """
(rule ((= x (At m v)) (= k (vec-get v 0)) (= k (I name over)) (= j (vec-get v 1)) (= j (I row rows))) ((union x x)))
(rule ((element x m s i k) (= k (I name over)) (= i (I row rows))) ((union x x)))
"""
    apart, together = (command.rule for command in egg.EGraph().parse_program(source))
    assert (groups(apart), groups(together)) == (3, 1)
