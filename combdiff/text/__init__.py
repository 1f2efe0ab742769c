"""The text language of F. Lippmann, Designing and Implementing a Tensor Calculus (Jena, 2022): text to terms.

    declare A 2 x 1 expression A *(ij,j->i) x      →      (A, x) ↦ a ↦ Σ_j A[a,j] x[j]

In: a text. Out: the term of its expression, and what it asks to differentiate by.

In the order in which data meets them: `places` (where a mistake stands), `syntax` (the tree), `grammar` (characters
to the tree), `inference` (orders and axes, by unification), `translation` (the tree to a term).
"""

from combdiff.text.grammar import read
from combdiff.text.inference import infer
from combdiff.text.places import TextError
from combdiff.text.syntax import Text, Wrt
from combdiff.text.translation import translate

__all__ = [
    "Text",
    "TextError",
    "Wrt",
    "infer",
    "read",
    "translate",
]
