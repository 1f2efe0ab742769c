"""Bindings that products read and sum over, and that are larger than all they are made of: parts of the products.

    t[d,e,j,i] = A[d,i]·B[e,i]·C[j,i];  Σ_{j,i} t[d,e,j,i]·x[j,i] + Σ_{j,i} t[e,d,j,i]·x[j,i]
    = two networks of A, B, C and x, and t is never made

Equal contractions of the networks are one step all the same, whatever their indices are called.

Invariant: a tensor that is read otherwise than as a factor within a Σ over one of its indices stays a tensor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from combdiff.ir import Add, Apply, Conj, Cyclic, Lambda, Let, Mul, Sum, Term, Var, free_indices, is_wave, subterms
from combdiff.planning.lowering.running_exponentials import is_bounded_exponential


def summed_intermediates(program: Lambda) -> frozenset[Var]:
    """The variables of such bindings."""
    nodes = list(subterms(program))
    values = {var: value for node in nodes if isinstance(node, Let) for var, value in node.bindings}
    wide = {var for var, value in values.items() if isinstance(value, Lambda) and _is_wide(value)}
    if not wide:
        return frozenset()
    above: dict[Term, list[Term]] = defaultdict(list)
    for node in nodes:
        for child in node.children:
            above[child].append(node)
    return frozenset(var for var in wide if all(_is_summed(reader, var, above) for reader in above[var]))


def _is_wide(value: Lambda) -> bool:
    """Whether a tensor is a product, or a sum of one, of tensors of lower order, and has no axis that is a cycle.

    Or one of waves, or of exponentials within a bound, whose sums are not computed as products of arrays.
    """
    inside = value.body.body if isinstance(value.body, Sum) else value.body
    order = len(value.parameters)
    if is_bounded_exponential(inside) or is_wave(inside):
        return True
    if not isinstance(inside, Mul) or any(isinstance(p.type, Cyclic) for p in value.parameters):
        return False
    return all(len(free_indices(term)) < order for term in inside.factors)


def _is_summed(reader: Term, var: Var, above: dict[Term, list[Term]]) -> bool:
    """Whether a term is an element of the tensor, and a factor in nothing but Σ's over an index of it."""
    if not isinstance(reader, Apply) or reader.function is not var or var in reader.arguments:
        return False
    indices = {index for index in reader.arguments if isinstance(index, Var)}
    sums = list(_sums(reader, above))
    return bool(sums) and all(one is not None and not indices.isdisjoint(one) for one in sums)


def _sums(term: Term, above: dict[Term, list[Term]]) -> Iterator[Sequence[Var] | None]:
    """The indices of each Σ that a term is a factor in, None where it is read by anything else."""
    for node in above[term]:
        if isinstance(node, Sum):
            yield node.indices
        elif isinstance(node, Add | Mul | Conj):
            yield from _sums(node, above)
        else:
            yield None
