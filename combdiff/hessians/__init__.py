"""Hessians by their structure: δ's split off, cores stored, Newton systems solved at the size of the cores.

    ∇² ‖T − U Vᵀ‖²  =  2 (VᵀV)[j,l] δ[i,k]      stored and solved as one k × k matrix

In: the term of a second derivative. Out: cores with their δ's, the pattern of what may differ from 0, Newton steps.

In the order in which data meets them: `compression` (the structure), `sparsity`, `real_systems` (arrays as columns
of real numbers), `orbit_unknowns` (of tensors with symmetries), `newton` (one variable), `schur` (coupled variables).

Invariant: expanded, the structure is the dense Hessian.
"""

from combdiff.hessians.compression import Structure, compress
from combdiff.hessians.newton import Operator, PivotError
from combdiff.hessians.orbit_unknowns import orbit_basis, transform
from combdiff.hessians.real_systems import apart, assembled, packed, solved
from combdiff.hessians.schur import Coupled
from combdiff.hessians.sparsity import BlockSparsity, Sparsity

__all__ = [
    "BlockSparsity",
    "Coupled",
    "Operator",
    "PivotError",
    "Sparsity",
    "Structure",
    "apart",
    "assembled",
    "compress",
    "orbit_basis",
    "packed",
    "solved",
    "transform",
]
