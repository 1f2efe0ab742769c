"""Text to terms: the text language of F. Lippmann, and what programs print.

    declare A 2 x 1 expression A *(ij,j->i) x      →      (A, x) ↦ a ↦ Σ_j A[a,j] x[j]
    x ↦ Σ_i x[i]²                                  →      x ↦ Σ_i power(x[i], 2)

In: a text. Out: the term of its expression, and what it asks to differentiate by; or the term that prints so.

The text language is that of Designing and Implementing a Tensor Calculus (Jena, 2022). In the order in which data
meets them: `places` (where a mistake stands), `syntax` (the tree), `grammar` (characters to the tree), `inference`
(orders and axes, by unification), `translation` (the tree to a term). Of prints:
`declarations` (the first lines of a text), `formulas` (characters to the documents of `printing`), `recurrences`
(states with a boundary value and a step), `components` (tensors by their elements), `denotations` (what documents
stand for while domains are not known), `index_forms` (index expressions), `reading` (documents to a term), `prints`
(all of that, and which letters are scalars).
"""

from combdiff.text.declarations import declared_part
from combdiff.text.grammar import is_calculus, read
from combdiff.text.inference import infer
from combdiff.text.places import Span, TextError, quoted
from combdiff.text.prints import read_print
from combdiff.text.reading import Printed
from combdiff.text.syntax import Text, Wrt
from combdiff.text.translation import translate

__all__ = [
    "Printed",
    "Span",
    "Text",
    "TextError",
    "Wrt",
    "declared_part",
    "infer",
    "is_calculus",
    "quoted",
    "read",
    "read_print",
    "translate",
]
