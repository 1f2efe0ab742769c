"""Rows of the table of primitives for divided differences of functions, which are their derivatives where nodes meet.

    divided_exp(x, y) = (exp x − exp y) / (x − y)        divided_exp(x, x) = exp x

A divided difference h[x₀, …, xₙ] of more nodes is one of h[x₁, …, xₙ] and h[x₀, …, xₙ₋₁], over xₙ − x₀; its derivative
by a node is that with the node twice. Differences of functions of eigenvalues over gaps between these are written so:
they are finite, and keep their digits, where eigenvalues are equal or almost.

Source: Higham, Functions of matrices (2008), 3.11 (Daleckii and Krein) and B.16.

Invariant: a divided difference is symmetric in its nodes; all are real.
"""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.errors import DifferentiationError
from combdiff.ir.primitives import OWN, TABLE, Derivative, Row, function, named_operator, register
from combdiff.ir.terms import Primitive, Term

DIVIDED = ("exp", "log", "sin", "cos")
MOST_NODES = 5
_PREFIX = "divided_"


def divided(name: str, nodes: Sequence[Term]) -> Term:
    """The divided difference of a function at nodes; its derivative where two nodes are one term."""
    if len(nodes) == 2 and nodes[0] is nodes[1]:
        return TABLE[name].partials[0](nodes[0])
    if len(nodes) > MOST_NODES:
        raise DifferentiationError(
            f"divided differences of {name} are differentiated up to {MOST_NODES} nodes",
            hint="higher derivatives of functions of a matrix: those of cd.expm, cd.sqrtm and cd.inv have any order",
        )
    return function(_name(name, len(nodes)), *nodes)


def divided_function(term: Term) -> str:
    """The function whose divided difference a term is, or nothing."""
    return _FUNCTIONS.get(term.name, "") if isinstance(term, Primitive) else ""


def _name(name: str, count: int) -> str:
    return f"{_PREFIX}{name}" if count == 2 else f"{_PREFIX}{name}_{count}"


def _by_node(name: str, place: int) -> Derivative:
    return lambda *nodes: divided(name, (*nodes[: place + 1], *nodes[place:]))


def _row(name: str, count: int) -> Row:
    own = _name(name, count)
    partials = tuple(_by_node(name, place) for place in range(count))
    domain = _DOMAINS.get(name, "everywhere")
    return Row(own, f"{OWN}{_PREFIX}{name}", named_operator(own), partials, domain, real_only=True, mirror=False)


_DOMAINS = {"log": "all x > 0"}
_FUNCTIONS = {_name(name, count): name for name in DIVIDED for count in range(2, MOST_NODES + 1)}

for _function in DIVIDED:
    for _count in range(2, MOST_NODES + 1):
        register(_row(_function, _count))
