"""The appendix of F. Lippmann, Designing and Implementing a Tensor Calculus (Jena, 2022), as data.

Each case is an input and the thesis's own derivative, both as printed except for line breaks. Two inputs are printed
with an index missing (the derivative next to them and their orders show where); `printed` keeps them as they stand.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """An input of the appendix and its derivative in the same language, the declarations left out."""

    text: str
    answer: str
    printed: str = ""

    @property
    def answer_text(self) -> str:
        """The thesis's derivative as a text of its own."""
        return f"{self.text.partition('expression')[0]} expression {self.answer}"


CASES = (
    Case("declare a 0 expression a derivative wrt a", "delta(0)"),
    Case("declare a 1 b 1 c 0 expression (a*(i,->)b)*(,->)c derivative wrt c", "(a *(i,->) b)"),
    Case("declare a 0 expression (a*(,->)a) derivative wrt a", "(a + a)"),
    Case("declare a 0 b 0 expression (b*(,->)a) *(,->) a derivative wrt a", "((a *(,->) b) + (b *(,->) a))"),
    Case("declare a 0 b 0 expression a + b derivative wrt a", "delta(0)"),
    Case("declare a 0 b 0 expression a + a + b derivative wrt a", "(delta(0) + delta(0))"),
    Case("declare a 0 b 0 expression a + b + a derivative wrt a", "(delta(0) + delta(0))"),
    Case("declare a 0 b 0 expression a - b derivative wrt b", "-1"),
    Case("declare a 0 b 0 expression a - a - b derivative wrt a", "(delta(0) + -1)"),
    Case("declare a 0 b 0 expression a - b - a derivative wrt a", "(delta(0) + -1)"),
    Case(
        "declare a 1 b 1 c 1 expression a*(i,->i)a + b + c derivative wrt a",
        "((delta(1) *(ai,i->ai) a) + (delta(1) *(ai,i->ai) a))",
    ),
    Case(
        "declare a 1 b 1 c 1 expression a*(i,->i)b + a*(i,->i)c derivative wrt a",
        "((delta(1) *(ai,i->ai) b) + (delta(1) *(ai,i->ai) c))",
    ),
    Case("declare a 1 b 1 c 0 expression a*(i,->)b + c derivative wrt a", "b"),
    Case("declare a 2 b 1 expression a*(ij,j->i)b derivative wrt a", "(delta(1) *(ai,j->aij) b)"),
    Case(
        "declare A 2 B 2 x 1 expression A*(ij,j->i)x + B*(ij,j->i)x derivative wrt x",
        "((delta(1) *(ai,ij->aj) A) + (delta(1) *(ai,ij->aj) B))",
    ),
    Case("declare A 2 B 2 x 1 expression (A+B)*(ij,j->i)x derivative wrt x", "(delta(1) *(ai,ij->aj) (A + B))"),
    Case(
        "declare A 2 B 2 x 1 expression (A*(ij,ij->ij)B) * (ij,j->i)x derivative wrt x",
        "((delta(1) *(ai,ij->aj) (A *(ij,ij->ij) B)))",
    ),
    Case("declare x 1 expression x*(i,i->)x derivative wrt x", "(x + x)"),
    Case(
        "declare a 1 b 1 c 1 d 1 expression a*(i,i->)b + a*(i,i->)c + a*(i,i->)d derivative wrt a",
        "((b + c) + d)",
    ),
    Case(
        "declare a 1 b 1 c 1 expression a*(i,i->i)a - b - c derivative wrt a",
        "((delta(1) *(ai,i->ai) a) + (delta(1) *(ai,i->ai) a))",
        printed="declare a 1 b 1 c 1 expression a*(i,i->)a - b - c derivative wrt a",
    ),
    Case(
        "declare a 1 b 1 c 1 expression a*(i,i->i)b - a*(i,i->i)c derivative wrt a",
        "((delta(1) *(ai,i->ai) b) + ((delta(1) *(ba,a->ba) -1) *(ai,i->ai) c))",
        printed="declare a 1 b 1 c 1 expression a*(i,i->)b - a*(i,i->)c derivative wrt a",
    ),
    Case("declare A 2 B 2 x 1 expression (A-B)*(ij,j->i)x derivative wrt x", "((delta(1) *(ai,ij->aj) (A - B)))"),
    Case("declare x 1 expression sin(x) derivative wrt x", "((delta(1) *(ba,a->ba) (cos(x))))"),
    Case(
        "declare A 2 x 1 expression A *(ij,j->i) (sin(x)) derivative wrt x",
        "((delta(1) *(ai,ij->aj) A) *(ba,a->ba) (cos(x)))",
    ),
    Case(
        "declare A 2 x 1 expression sin( A*(ij,j->i) x ) derivative wrt x",
        "((delta(1) *(ba,a->ba) (cos((A *(ij,j->i) x)))) *(ai,ij->aj) A)",
    ),
    Case(
        "declare x 1 expression cos(x) + sin(x) derivative wrt x",
        "((delta(1) *(ba,a->ba) (-((sin(x))))) + (delta(1) *(ba,a->ba) (cos(x))))",
    ),
    Case("declare x 1 expression exp(x) derivative wrt x", "((delta(1) *(ba,a->ba) (exp(x))))"),
    Case(
        "declare A 2 x 1 expression A *(ij,j->i) exp(x) derivative wrt x",
        "((delta(1) *(ai,ij->aj) A) *(ba,a->ba) (exp(x)))",
    ),
    Case(
        "declare y 1 x 1 expression y / x derivative wrt x",
        "((delta(1) *(ba,a->ba) y) *(ba,a->ba) (-((1 / ((x *(a,a->a) x))))))",
    ),
    Case(
        "declare x 1 expression tan(x) derivative wrt x",
        "((delta(1) *(ba,a->ba) (1 / (((cos(x)) *(a,a->a) (cos(x)))))))",
    ),
    Case("declare x 1 expression arcsin(x) derivative wrt x", "((delta(1) *(ba,a->ba) (1 / (((1 - (x ^ 2)) ^ 0.5)))))"),
    Case(
        "declare x 1 expression arccos(x) derivative wrt x",
        "((delta(1) *(ba,a->ba) (-((1 / (((1 - (x ^ 2)) ^ 0.5)))))))",
    ),
    Case("declare x 1 expression arctan(x) derivative wrt x", "((delta(1) *(ba,a->ba) (1 / (((x *(a,a->a) x) + 1)))))"),
    Case("declare x 1 expression log(x) derivative wrt x", "((delta(1) *(ba,a->ba) (1 / (x))))"),
    Case(
        "declare x 1 expression tanh(x) derivative wrt x",
        "((delta(1) *(ba,a->ba) (1 - ((tanh(x)) *(a,a->a) (tanh(x))))))",
    ),
    Case("declare x 1 expression abs(x) derivative wrt x", "((delta(1) *(ba,a->ba) (sign(x))))"),
    Case("declare x 1 expression sign(x) derivative wrt x", "((delta(1) *(ba,a->ba) 0))"),
    Case("declare x 1 expression relu(x) derivative wrt x", "((delta(1) *(ba,a->ba) (relu((sign(x))))))"),
    Case("declare x 1 a 0 expression x^a derivative wrt x", "((delta(1) *(ba,a->ba) (a *(,a->a) (x ^ (a - 1)))))"),
    Case(
        "declare x 1 a 0 expression (x^a) *(i,i->) x derivative wrt x",
        "((x *(a,a->a) (a *(,a->a) (x ^ (a - 1)))) + (x ^ a))",
    ),
    Case("declare x 0 a 1 expression a^x derivative wrt x", "((a ^ x) *(b,b->b) (log(a)))"),
    Case(
        "declare x 0 a 1 expression x^x derivative wrt x",
        "((((x ^ x) *(, ->) (log(x))) + (((x ^ x) *(, ->) x) *(, ->) (1 / (x)))))",
    ),
    Case(
        "declare A 2 expression inv(A) derivative wrt A",
        "((delta(2) *(efcd,cdab->efab) (((-((inv(A)))) *(ij,kl->kjli) (inv(A))))))",
    ),
    Case("declare A 2 expression det(A) derivative wrt A", "((adj(A)) *(ij,->ji) 1)"),
    Case(
        "declare X 2 expression adj(X) derivative wrt X",
        "((((inv(X)) *(cd,ab->cdab) ((adj(X)) *(ij,->ji) 1)) + ((delta(2) *(abij,->abij) (det(X))) "
        "*(efcd,cdab->efab) (((-((inv(X)))) *(ij,kl->kjli) (inv(X)))))))",
    ),
    Case("declare X 2 expression 1*(ij,->)X derivative wrt X", "(1 *(ij,->ij) 1)"),
    Case("declare X 2 expression X + X derivative wrt X", "((delta(2) + delta(2)))"),
    Case("declare X 2 expression 1*(ij, ij ->) (X + X) derivative wrt X", "(1 + 1)"),
    Case("declare X 2 expression 1*(ij, ij ->) X + 1*(ij, ij ->) X derivative wrt X", "(1 + 1)"),
    Case("declare X 2 expression 1*(ij, ij ->) X + 1*(ij, ij ->) (X+1) derivative wrt X", "(1 + 1)"),
    Case("declare v 1 expression v*(i, i -> )v + 1*(i, i -> )(v) derivative wrt v", "((v + v) + 1)"),
    Case(
        "declare v 1 expression (v *(i,i->i) v) + (v *(i,i->i) v) derivative wrt v",
        "(((delta(1) + delta(1)) *(ai,i->ai) v) + ((delta(1) + delta(1)) *(ai,i->ai) v))",
    ),
    Case("declare v 1 expression (delta(0) + 1) *(,i->i) v derivative wrt v", "(delta(1) *(ai,->ai) (delta(0) + 1))"),
    Case("declare X 2 expression sin(delta(1)) *(ij,ij->) X derivative wrt X", "(sin(delta(1)))"),
    Case(
        "declare a 2 X 4 expression a*(ij,ijkl->ijkl)X + cos(X) derivative wrt X",
        "((delta(4) *(abcdijkl,ij->abcdijkl) a) + (delta(4) *(efghabcd,abcd->efghabcd) (-((sin(X))))))",
    ),
    Case("declare X 2 expression sin(delta(1)) *(ij,ij->) X derivative wrt a", "0"),
)

# The three inputs that introduce the grammar.
INTRODUCTION = (
    "declare v 1 expression v *(i,i->i) v derivative wrt v",
    "declare A 2 x 1 expression (A + 1) *(ij,j->i)x derivative wrt A",
    "declare A 3 x 0 expression A *(ijk,->ijk) exp(x) derivative wrt x",
)
