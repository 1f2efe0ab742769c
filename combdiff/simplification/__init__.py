"""Simplification by equality saturation: a program in, the equal program that is cheapest to read and to run out.

    4 terms with δ's   ──normal form──►   Σ of connected networks   ──laws──►   classes   ──extraction──►   one term

In: the let form of a program or of a raw derivative, and rule files. Out: its bindings, simplified, and what they
share.

In the order in which data meets them: `rolling` (loops that were traced step by step, as scans); `pipeline` (the whole
program, binding by binding); `memory` (what differs in names alone is simplified once); `fingerprints` (values at
random points), `commuting_blocks` (of functions of matrices), `vanishing` (sums that are 0), `divided_differences` (for
gaps between eigenvalues) and `eigenvectors` (what they are to each other and to their matrix); `normal_form/` (sums of
products, δ's solved over the integers, forms without names, canonical names of bound indices under the symmetries of
the tensors, common subnetworks and factors); `laws/` (rule files: text, patterns, declared primitives, loading);
`egraph/` (encoding, saturation, extraction, the budget, and the provenance of a result); `own_names` (the user's, for
what is bound anew); `egglog_bindings` (egglog without its Python front end).

Invariant: the value is that of the input, the price never higher, and the text the same under any hash seed.
"""

from combdiff.simplification.egglog_bindings import bindings
from combdiff.simplification.egraph.budget import Stops, budget, gathered, one_warning, stopped
from combdiff.simplification.egraph.encoding import Codec, function_facts
from combdiff.simplification.egraph.extraction import (
    index_variables,
    order_key,
    ordered,
    own_cost,
    program_cost,
    symbols,
    volume,
)
from combdiff.simplification.egraph.provenance import Event, Found, Normalised, Place, Solved, State, recording
from combdiff.simplification.egraph.replay import MET, Replay
from combdiff.simplification.egraph.vocabulary import domain_key
from combdiff.simplification.fingerprints import checked, missing_symmetry
from combdiff.simplification.laws.declarations import declared, restored
from combdiff.simplification.laws.loading import RuleFile, built_in_files, load, rule_paths
from combdiff.simplification.laws.syntax import Command, Expr, Source, attempt, calls, law_names, run_text
from combdiff.simplification.normal_form.canonical import canonical
from combdiff.simplification.normal_form.common_factors import factored
from combdiff.simplification.normal_form.common_subnetworks import bind_again
from combdiff.simplification.normal_form.conditions import plain_conditions
from combdiff.simplification.normal_form.contraction import normalise, without_deltas
from combdiff.simplification.normal_form.delta_solver import on_diagonals, solve
from combdiff.simplification.normal_form.expansion import (
    Addend,
    addends,
    closed,
    coefficient_of,
    collected,
    common_factors,
    weighted,
)
from combdiff.simplification.normal_form.lengths import printed_length
from combdiff.simplification.normal_form.long_sums import groups
from combdiff.simplification.normal_form.quotients import with_shares
from combdiff.simplification.normal_form.symmetries import with_known_symmetries
from combdiff.simplification.own_names import Traced, with_own_names
from combdiff.simplification.pipeline import factors_in_front, is_real, outline, simplify_body
from combdiff.simplification.rolling import rolled_up

__all__ = [
    "MET",
    "Addend",
    "Codec",
    "Command",
    "Event",
    "Expr",
    "Found",
    "Normalised",
    "Place",
    "Replay",
    "RuleFile",
    "Solved",
    "Source",
    "State",
    "Stops",
    "Traced",
    "addends",
    "attempt",
    "bind_again",
    "bindings",
    "budget",
    "built_in_files",
    "calls",
    "canonical",
    "checked",
    "closed",
    "coefficient_of",
    "collected",
    "common_factors",
    "declared",
    "domain_key",
    "factored",
    "factors_in_front",
    "function_facts",
    "gathered",
    "groups",
    "index_variables",
    "is_real",
    "law_names",
    "load",
    "missing_symmetry",
    "normalise",
    "on_diagonals",
    "one_warning",
    "order_key",
    "ordered",
    "outline",
    "own_cost",
    "plain_conditions",
    "printed_length",
    "program_cost",
    "recording",
    "restored",
    "rolled_up",
    "rule_paths",
    "run_text",
    "simplify_body",
    "solve",
    "stopped",
    "symbols",
    "volume",
    "weighted",
    "with_known_symmetries",
    "with_own_names",
    "with_shares",
    "without_deltas",
]
