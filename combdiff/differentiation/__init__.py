"""Derivatives by two rules: programs become B and C combinators, and each combinator has a pullback.

    P(B f g)(x, k)  =  P g (x, P f (g x, k))  +  P f at the capture x        P(C g)(x, k)  =  Σ_b P(g b)(x, k b)

In: the term of a program and the names to differentiate by. Out: the raw derivative, or its simplified let form.

In the order in which data meets them: `univariate` (the primitives with their pullbacks and pushforwards),
`combinators` (abstraction elimination), `calls_by_step` (solvers in scans), `idle_extremes` (largest elements that
cancel), `pullback` (the B rule and the C rule),
`wirtinger` (∂/∂z and ∂/∂z̄ from one sweep), `cross_country` (the whole graph, cheapest product first), `jacobians`,
`derivation` (build, simplify, name), `linearity` (is a program the linear map it is declared to be).

Invariant: no chain rule but that of the B rule; the growth of a derivative is linear in the graph of the program.
"""

from combdiff.differentiation.combinators import (
    Compose,
    ConstantMap,
    Evaluate,
    Exchange,
    Fork,
    Form,
    Identity,
    Iterate,
    Solve,
    eliminate,
)
from combdiff.differentiation.derivation import as_field, derived, items, pulled_back, space_of
from combdiff.differentiation.jacobians import fine_gradient, hessian_body, jacobian_block, modes_of
from combdiff.differentiation.linearity import check_linear
from combdiff.differentiation.pullback import equation_of, onto_spaces, pull, push, zero
from combdiff.differentiation.univariate import (
    Adjoint,
    Call,
    Conjugate,
    Differential,
    Elementwise,
    MatrixFunction,
    Multiply,
    SumOver,
    Translate,
    Univariate,
)

__all__ = [
    "Adjoint",
    "Call",
    "Compose",
    "Conjugate",
    "ConstantMap",
    "Differential",
    "Elementwise",
    "Evaluate",
    "Exchange",
    "Fork",
    "Form",
    "Identity",
    "Iterate",
    "MatrixFunction",
    "Multiply",
    "Solve",
    "SumOver",
    "Translate",
    "Univariate",
    "as_field",
    "check_linear",
    "derived",
    "eliminate",
    "equation_of",
    "fine_gradient",
    "hessian_body",
    "items",
    "jacobian_block",
    "modes_of",
    "onto_spaces",
    "pull",
    "pulled_back",
    "push",
    "space_of",
    "zero",
]
