"""What users hold: Programs, the transforms between them, Hessians, explanations.

In: decorated functions, texts, Programs. Out: Programs.

In the order in which data meets them: `signatures` (what editors show of a program), `sameness` (which programs are
equal), `programs` (what a user calls, prints and differentiates), `instantiation` (programs in place of named maps),
`explanation` (how a program came about), `transforms` (derivatives and simplification), `blocks` and
`second_derivatives` (Hessians by their structure), `interop` (programs as functions of JAX and PyTorch), `language`
(the text language: `derive` and `parse`; `read`).
"""

from combdiff.api.language import Derivation, derivation, derive, parse, read
from combdiff.api.programs import Program, program
from combdiff.api.second_derivatives import Hessian, hessian
from combdiff.api.transforms import grad, hvp, jacobian, pullback, pushforward, simplify, value_and_grad

__all__ = [
    "Derivation",
    "Hessian",
    "Program",
    "derivation",
    "derive",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "parse",
    "program",
    "pullback",
    "pushforward",
    "read",
    "simplify",
    "value_and_grad",
]
