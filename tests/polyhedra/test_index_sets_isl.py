"""The δ solver against isl: the index sets and bounds that are left of `Σ_α δ(β, Aα + c)·t[α]` are Γ(β), exactly."""

from __future__ import annotations

import random

import pytest

from combdiff.ir.domains import Range, Space, Symmetric, extent, first_index
from combdiff.ir.indices import Delta, Indicator, affine, affine_parts, delta
from combdiff.ir.products import SummedProduct
from combdiff.ir.substitution import Names
from combdiff.ir.terms import ZERO, Apply, Mul, Term, Var, mul, total
from combdiff.simplification.normal_form.delta_solver import solve

isl = pytest.importorskip("islpy")

DOMAINS = [*map(Range, (1, 2, 3, 5, 7)), Symmetric(1), Symmetric(2)]


def text_of(form: Term) -> str:
    """A whole index form, times what makes it whole, as isl writes it."""
    parts, offset = affine_parts(form)
    return " + ".join([*(f"{int(c)}*{v.name.replace('.', '_')}" for v, c in parts), str(int(offset))])


def scaled(form: Term) -> tuple[Term, int]:
    """A form times the common denominator of its coefficients, and that number."""
    parts, offset = affine_parts(form)
    divisor = 1
    for number in (*(c for _, c in parts), offset):
        while (number * divisor) % 1:
            divisor += 1
    return affine([(form, divisor)]), divisor


def condition(term: Term) -> str:
    """A factor that is 0 or 1 as a constraint."""
    if isinstance(term, Indicator):
        form, divisor = scaled(term.form)
        return f"({text_of(form)}) mod {term.modulus * divisor} = 0" if term.modulus else f"{text_of(form)} >= 0"
    assert isinstance(term, Delta)
    return f"{text_of(affine([(term.left, 1), (term.right, -1)]))} = 0"


def names_of(variables: list[Var]) -> str:
    return ", ".join(v.name.replace(".", "_") for v in variables)


def ranges(variables: list[Var]) -> list[str]:
    ends = [(v, first_index(v.type, {}), first_index(v.type, {}) + extent(v.type, {})) for v in variables]
    return [f"{low} <= {v.name.replace('.', '_')} < {high}" for v, low, high in ends]


@pytest.mark.sample(40)
@pytest.mark.parametrize("seed", range(120))
def test_what_the_solver_leaves_is_the_index_set(seed: int) -> None:
    choose = random.Random(seed)
    alpha = [Var(f"a{n}", choose.choice(DOMAINS)) for n in range(choose.randint(1, 3))]
    beta = [Var(f"b{n}", choose.choice(DOMAINS)) for n in range(choose.randint(1, 2))]
    rows = [[choose.choice([0, 1, -1, 2, -2, 3, -4]) for _ in alpha] for _ in beta]
    forms = [affine(zip(alpha, row, strict=True), choose.randint(-2, 4)) for row in rows]
    deltas = [delta(b, form, b.type) for b, form in zip(beta, forms, strict=True)]
    t = Apply(Var("t", Space(*(v.type for v in alpha))), tuple(alpha))
    wanted = isl.Set(
        f"{{ [{names_of(beta)}, {names_of(alpha)}] : "
        + " and ".join([*ranges(alpha), *ranges(beta), *map(condition, (d for d in deltas if isinstance(d, Delta)))])
        + " }"
    )
    solved = solve(SummedProduct(tuple(alpha), (*deltas, t)), Names(total(alpha, mul(*deltas, t))))
    left, factors = solved.indices, solved.factors
    if ZERO in factors:
        assert wanted.is_empty()
        return
    read = next(f for f in factors if isinstance(f, Apply))
    flat = [g for f in factors for g in (f.factors if isinstance(f, Mul) else (f,))]
    asked = [f for f in flat if isinstance(f, Delta | Indicator)]
    assert not any(isinstance(f, Delta) and f.free & set(left) for f in asked), "a δ stays inside the sum"
    images, extra = [], []
    for n, argument in enumerate(read.arguments):
        form, divisor = scaled(argument)
        images.append(f"x{n}")
        extra.append(f"{divisor}*x{n} = {text_of(form)}")
    bound = [*ranges(left), *ranges(beta), *map(condition, asked), *extra]
    quantified = f"exists {names_of(left)} : " if left else ""
    found = isl.Set(f"{{ [{names_of(beta)}, {', '.join(images)}] : {quantified}{' and '.join(bound)} }}")
    assert found.is_equal(wanted), f"{found} is not {wanted}"
    loops = " and ".join([*ranges(left), *ranges(beta), *map(condition, asked)])
    points = isl.Set(f"{{ [{names_of([*beta, *left])}] : {loops} }}").count_val().to_python()
    assert points == wanted.count_val().to_python(), "an index is summed over twice, or in vain"
