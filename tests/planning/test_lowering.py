"""Lowered programs against the meaning of terms, and what their plans and sources look like."""

from __future__ import annotations

import cProfile
import itertools
import pstats
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from elements import at
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import Case, examples, programs

import combdiff as cd
from combdiff.errors import UnsupportedError
from combdiff.ir.domains import Cyclic, Domain, Range, Real, Space, Symmetric, Whole
from combdiff.ir.indices import Affine, affine, delta, indicator
from combdiff.ir.interpreter import evaluate
from combdiff.ir.terms import Apply, Lambda, Let, Number, Primitive, Sum, Term, Tuple, Var, add, conj, mul, total
from combdiff.planning.networks import Network, cost_of, from_path
from combdiff.planning.operations.contraction import Contract
from combdiff.planning.operations.leaves import Parameter
from combdiff.planning.plan import cost, peak
from combdiff.planning.planning import make_plan
from combdiff.planning.search import EXACT, trees
from combdiff.runtime.execution import find_paths, plan, run, source
from combdiff.testing import random_array

RNG = np.random.default_rng(7)
MANY = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))


def index(name: str, domain: Domain | int | str = "N") -> Var:
    return Var(name, Range(domain) if isinstance(domain, int | str) else domain)


def tensor(name: str, *axes: Domain | int | str, dtype: type = float) -> Var:
    return Var(name, Space(*axes, dtype=dtype))


def constant(value: int) -> Term:
    return Affine((), value)


def real(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape)


def cplx(*shape: int) -> np.ndarray[Any, Any]:
    return real(*shape) + 1j * real(*shape)


def same(program: Lambda, arrays: Sequence[Any], **sizes: int) -> Any:
    """The lowered program's value, found equal to the meaning of the term, from its source alone too."""
    expected = evaluate(program.body, dict(zip(program.parameters, arrays, strict=True)), sizes)
    namespace: dict[str, Any] = {}
    exec(source(program, "f", sizes), namespace)
    found = run(program, arrays, sizes)
    several = isinstance(expected, tuple)
    for ours in (found, namespace["f"](*arrays)):
        for mine, theirs in zip(ours if several else [ours], expected if several else [expected], strict=True):
            assert np.shape(mine) == np.shape(theirs)
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
    return found


def kernels(program: Lambda, **sizes: int) -> list[str]:
    return [step.operation.title for step in plan(program, sizes).steps if not isinstance(step.operation, Parameter)]


i, j, k, m, n = (index(letter) for letter in "ijkmn")
A, B, x, y = tensor("A", "N", "N"), tensor("B", "N", "N"), tensor("x", "N"), tensor("y", "N")


# --- random programs -----------------------------------------------------------------------------------------------


@MANY
@given(programs())
def test_lowered_programs_mean_what_their_terms_mean(case: Case) -> None:
    arrays = [np.array(array) for array in case.environment.values()]
    kept = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    found = same(case.term, arrays, **case.sizes)
    assert isinstance(found, np.generic | np.ndarray)
    for array, before in zip(arrays, kept, strict=True):
        np.testing.assert_array_equal(array, before)
        assert not np.shares_memory(found, array)


@MANY
@given(programs())
def test_single_precision_stays_single(case: Case) -> None:
    arrays = [np.asarray(a, np.complex64 if np.iscomplexobj(a) else np.float32) for a in case.environment.values()]
    assert run(case.term, arrays, case.sizes).dtype in (np.float32, np.complex64)


@MANY
@given(programs(result="tensor"))
def test_layout_of_arguments_does_not_matter(case: Case) -> None:
    arrays = list(case.environment.values())
    strange = [np.repeat(np.asarray(a)[..., None], 2, -1)[..., 0].copy(order="F") for a in arrays]
    np.testing.assert_allclose(run(case.term, strange, case.sizes), run(case.term, arrays, case.sizes), atol=1e-9)


# --- symmetries ----------------------------------------------------------------------------------------------------

EQUATIONS = ["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = J[q,p,r,s]", "J[p,q,r,s] = conj(J[q,p,s,r])", "D[r,s] = D[s,r]"]
EQUATIONS += ["D[r,s] = conj(D[s,r])", "J[p,q,r,s] = J[q,r,s,p]", "J[p,q,r,s] = J[p,r,q,s]"]


@MANY
@given(st.data(), st.sets(st.sampled_from(EQUATIONS)))
def test_a_contraction_is_done_once_up_to_the_symmetries_of_its_operands(
    data: st.DataObject, equations: set[str]
) -> None:
    own = {letter: sorted(e for e in equations if e[0] == letter) for letter in "JD"}
    four, two = Space(*"NNNN", dtype=complex, symmetry=own["J"]), Space("N", "N", dtype=complex, symmetry=own["D"])
    J, D = Var("J", four), Var("D", two)
    p, q, r, s = (index(letter) for letter in "pqrs")

    def read(array: Var, space: Space, *at_indices: Term) -> Term:
        action = data.draw(st.sampled_from(space.group))
        element = at(array, *(at_indices[axis] for axis in action.axes))
        return conj(element) if action.conjugate else element

    once, again = (Lambda((p, q), total((r, s), mul(read(J, four, p, q, r, s), read(D, two, r, s)))) for _ in range(2))
    program = Lambda((J, D), Tuple((once, again)))
    same(program, [random_array(space, RNG, {"N": 3}) for space in (four, two)], N=3)
    assert sum(isinstance(step.operation, Contract) for step in plan(program, {"N": 3}).steps) == 1


# --- affine accesses -----------------------------------------------------------------------------------------------

SHIFTED = affine([(i, 1)], -1)
GUARDED = mul(indicator(SHIFTED), at(x, SHIFTED))


@pytest.mark.parametrize(
    ("indices", "body"),
    [
        ((i,), at(A, i, i)),
        ((i, j), at(A, j, i)),
        ((i,), at(A, i, constant(0))),
        ((i,), at(A, constant(0), i)),
        ((i,), GUARDED),
        ((i,), mul(indicator(SHIFTED), Primitive("power", (at(x, SHIFTED), Number(-1))))),
        ((i,), mul(indicator(SHIFTED), Primitive("log", (Primitive("power", (at(x, SHIFTED), Number(2))),)))),
        ((i, j), mul(indicator(affine([(i, 1), (j, -1)])), at(A, affine([(i, 1), (j, -1)]), j))),
        ((i,), total((j,), mul(indicator(affine([(i, 1), (j, -2)])), at(x, affine([(i, 1), (j, -2)]))))),
        ((i, j), add(delta(i, j), at(A, i, j))),
        ((i, j, k), mul(delta(i, j), at(A, i, k))),
        ((i,), total((j,), mul(delta(i, j), at(x, j)))),
        ((i,), total((j, k), mul(delta(i, j), delta(j, k), at(A, k, j)))),
        ((i,), total((j,), mul(delta(affine([(i, 1)], -1), j), at(x, j)))),
        ((i, j), total((k,), mul(at(A, i, k), delta(i, j)))),
        ((i, j), Number(3)),
        ((i, j), at(x, j)),
        ((i,), total((j,), at(x, i))),
        ((i,), mul(indicator(affine([(i, 1)], 2), 3), at(x, i))),
        ((i,), at(x, affine([(Var("N", Whole()), 1), (i, -1)], -1))),
        ((i,), mul(indicator(affine([(i, 1)]), 2), at(x, affine([(i, Fraction(1, 2))])))),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 4])
def test_accesses_and_conditions(indices: tuple[Var, ...], body: Term, size: int) -> None:
    with np.errstate(all="raise"):
        same(Lambda((A, x), Lambda(indices, body)), (real(size, size), real(size)), N=size)


C, w, big = Cyclic("L"), Symmetric("b"), Range(5)
c1, c2, b1, b2 = index("c", C), index("d", C), index("b", w), index("e", w)
P, Q = tensor("P", C, C), tensor("Q", w)


@pytest.mark.parametrize(
    ("indices", "body"),
    [
        ((c1,), total((b1,), mul(at(P, c1, affine([(c1, 1), (b1, 1)])), at(Q, b1)))),
        ((c1,), at(P, affine([(c1, -1)], -1), affine([(c1, 2)], 7))),
        ((b1,), at(Q, affine([(b1, -1)]))),
        ((b1,), at(Q, constant(0))),
        ((c1, c2), mul(delta(affine([(c1, 1)], 1), c2), at(P, c1, c2))),
        ((c1,), total((c2,), mul(delta(affine([(c1, 1)], 1), c2), at(P, c1, c2)))),
        ((c1,), total((b1, c2), mul(delta(affine([(c2, 1), (b1, 1)]), c1), at(P, c2, c2), at(Q, b1)))),
        ((c1,), total((b1,), mul(delta(affine([(c1, 1), (b1, 1)]), constant(0)), at(Q, b1)))),
        ((c1,), total((b1,), mul(indicator(b1), at(Q, b1), at(P, affine([(c1, 1), (b1, -2)]), c1)))),
    ],
)
@pytest.mark.parametrize(("length", "bound"), [(1, 0), (1, 2), (5, 1), (3, 2)])
def test_cyclic_and_symmetric_domains(indices: tuple[Var, ...], body: Term, length: int, bound: int) -> None:
    program = Lambda((P, Q), Lambda(indices, body))
    same(program, (real(length, length), real(2 * bound + 1)), L=length, b=bound)


def test_an_index_on_a_cycle_is_reduced_before_a_condition_sees_it() -> None:
    """[c ≥ d] of a tensor's own index c, the tensor read at −c; and Σ_d δ(d, c + 1) [d ≥ 1], d solved for."""
    inner = Lambda((c1,), total((c2,), mul(indicator(affine([(c1, 1), (c2, -1)])), at(P, c1, c2))))
    read = Lambda((b1,), Apply(inner, (affine([(b1, -1)]),)))
    same(Lambda((P, Q), read), (real(3, 3), real(3)), L=3, b=1)
    solved = total((c2,), mul(delta(c2, affine([(c1, 1)], 1)), indicator(affine([(c2, 1)], -1)), at(P, c2, c1)))
    same(Lambda((P,), Lambda((c1,), solved)), (real(3, 3),), L=3)


@pytest.mark.parametrize("offset", range(-7, 8))
@pytest.mark.parametrize("step", [-2, -1, 1, 2])
def test_reads_that_leave_the_axis_partly_or_wholly_are_zero_there(offset: int, step: int) -> None:
    place, shift = index("i", 3), index("k", 2)
    read = at(tensor("s", 4), affine([(place, step), (shift, 1)], offset))
    found = run(Lambda((tensor("s", 4),), Lambda((place, shift), read)), (np.arange(1.0, 5.0),))
    where = step * np.arange(3)[:, None] + np.arange(2) + offset
    np.testing.assert_array_equal(found, np.where((where >= 0) & (where < 4), where + 1.0, 0.0))


def test_a_convolution_reads_a_strided_view() -> None:
    signal, weights = tensor("s", 9), tensor("w", 3)
    place, offset = index("i", 7), index("k", 3)
    body = total((offset,), mul(at(signal, affine([(place, 1), (offset, 1)])), at(weights, offset)))
    program = Lambda((signal, weights), Lambda((place,), body))
    signals, kernel = real(9), real(3)
    np.testing.assert_allclose(same(program, (signals, kernel)), np.correlate(signals, kernel))
    assert kernels(program) == ["view", "matrix-vector"]


def test_a_raw_gradient_with_a_delta_stays_a_contraction() -> None:
    """Σ_{i,k} δ(i + k, d) g[i] w[k] is solved for i: no array over (i, k, d)."""
    g, weights, d = tensor("g", 7), tensor("w", 3), index("d", 9)
    place, offset = index("i", 7), index("k", 3)
    term = mul(delta(affine([(place, 1), (offset, 1)]), d), at(g, place), at(weights, offset))
    program = Lambda((g, weights), Lambda((d,), total((place, offset), term)))
    gs, ws = real(7), real(3)
    np.testing.assert_allclose(same(program, (gs, ws)), np.convolve(gs, ws))
    assert kernels(program) == ["view", "matrix-vector"]


# --- contractions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (Lambda((i,), total((j,), mul(at(A, i, j), at(x, j)))), "matrix-vector"),
        (Lambda((i,), total((j,), mul(at(A, j, i), at(x, j)))), "matrix-vector"),
        (Lambda((i, k), total((j,), mul(at(A, i, j), at(B, k, j)))), "matrix-matrix"),
        (Lambda((i, k), total((j,), mul(at(A, j, i), at(B, j, k)))), "matrix-matrix"),
        (total((i, j), mul(at(A, i, j), at(B, j, i))), "dot"),
        (Lambda((i,), total((j,), mul(at(A, i, j), at(B, i, j)))), "einsum"),
        (Lambda((i, j), mul(at(A, i, j), at(x, j))), "multiply"),
        (Lambda((i, j), mul(at(x, i), at(y, j))), "outer"),
        (Lambda((i, j), at(A, j, i)), "arrange"),
        (Lambda((i,), total((j,), at(A, i, j))), "reduce"),
        (Lambda((i,), at(A, i, i)), "diagonal"),
    ],
)
@pytest.mark.parametrize("size", [0, 1, 3])
def test_each_product_has_its_kernel(term: Term, expected: str, size: int) -> None:
    program = Lambda((A, B, x, y), term)
    assert [name for name in kernels(program) if name != "arrange"] == [expected] * (expected != "arrange")
    same(program, (real(size, size), real(size, size), real(size), real(size)), N=size)


def test_matrix_times_vector_is_written_so() -> None:
    assert "A @ x" in source(Lambda((A, x), Lambda((i,), total((j,), mul(at(A, i, j), at(x, j))))), "f")
    assert "A.T @ x" in source(Lambda((A, x), Lambda((i,), total((j,), mul(at(A, j, i), at(x, j))))), "f")


def test_batched_products() -> None:
    T, U, v = tensor("T", "b", "N", "M"), tensor("U", "M", "b", "K"), tensor("v", "M", "b")
    b, p, q, r = index("b", "b"), index("p", "N"), index("q", "M"), index("r", "K")
    matrices = Lambda((T, U), Lambda((p, r, b), total((q,), mul(at(T, b, p, q), at(U, q, b, r)))))
    vectors = Lambda((T, v), Lambda((p, b), total((q,), mul(at(T, b, p, q), at(v, q, b)))))
    same(matrices, (real(2, 3, 4), real(4, 2, 5)), b=2, N=3, M=4, K=5)
    same(vectors, (real(2, 3, 4), real(4, 2)), b=2, N=3, M=4)
    assert "batched matrix-matrix" in kernels(matrices)
    assert "batched matrix-vector" in kernels(vectors)


def label_sets() -> st.SearchStrategy[Network]:
    operands = st.lists(st.frozensets(st.integers(0, 6), min_size=1, max_size=4), min_size=2, max_size=7)
    extents = st.lists(st.sampled_from([1, 2, 3, 10, 40]), min_size=7, max_size=7)
    return st.builds(
        lambda ops, output, sizes: Network(
            tuple(ops), output & frozenset().union(*ops), {n: sizes[n] for n in frozenset().union(*ops)}
        ),
        operands,
        st.frozensets(st.integers(0, 6), max_size=3),
        extents,
    )


@pytest.mark.thorough
@MANY
@given(label_sets())
def test_no_proposed_order_is_cheaper_than_ours(network: Network) -> None:
    found = trees(network, find_paths)
    paths = find_paths(network.operands, network.output, network.extents)
    proposed = [cost_of(network, from_path(path, len(network.operands)))[0] for path in paths]
    assert cost_of(network, found[0])[0] <= min(proposed)
    assert len(set(found)) == len(found)
    assert cost_of(network, found[0]) == min(cost_of(network, tree) for tree in found)


def test_large_networks_take_the_best_proposal() -> None:
    count = EXACT + 4
    network = Network(
        tuple(frozenset({n, n + 1, 20}) for n in range(count)), frozenset({0, 20}), dict.fromkeys(range(21), 3)
    )
    found = trees(network, find_paths)
    paths = find_paths(network.operands, network.output, network.extents)
    assert found[0] == trees(network, find_paths)[0]
    assert cost_of(network, found[0]) <= min(cost_of(network, from_path(path, count)) for path in paths)


def test_hyper_edges_stay_until_their_last_use() -> None:
    """ij,jk,kl,jl->il: j is in three operands; no intermediate is larger than N³ and the result is right."""
    D, E = tensor("D", "N", "N"), tensor("E", "N", "N")
    a, b, c, d = index("a"), index("b"), index("c"), index("d")
    body = total((b, c), mul(at(A, a, b), at(B, b, c), at(D, c, d), at(E, b, d)))
    program = Lambda((A, B, D, E), Lambda((a, d), body))
    arrays = [real(4, 4) for _ in range(4)]
    np.testing.assert_allclose(same(program, arrays, N=4), np.einsum("ij,jk,kl,jl->il", *arrays))
    steps = plan(program, {"N": 50}).steps
    assert max(len(step.axes) for step in steps) == 2
    assert sum(spent.flops for spent in cost(plan(program, {"N": 50}))) == 2 * 50**3 + 50**2


@pytest.mark.parametrize("shape", list(itertools.product([0, 1, 3], repeat=2)))
def test_labels_that_no_operand_has(shape: tuple[int, int]) -> None:
    M = tensor("M", "N", "K")
    p, q, r = index("p"), index("q", "K"), index("r", "K")
    same(Lambda((M,), Lambda((p, r), total((q,), at(M, p, q)))), (real(*shape),), N=shape[0], K=shape[1])
    same(Lambda((M,), total((p, q, r), at(M, p, q))), (real(*shape),), N=shape[0], K=shape[1])
    same(Lambda((M,), Lambda((p,), total((q,), Number(Fraction(1, 2))))), (real(*shape),), N=shape[0], K=shape[1])


# --- common subexpressions -----------------------------------------------------------------------------------------

J, Orb = tensor("J", "N", "N", "N", "N", dtype=complex), tensor("C", "N", "Ne", dtype=complex)
p, q, r, s, d = (index(letter) for letter in "pqrsd")
e, o, u = (index(letter, "Ne") for letter in "eou")
ENERGY = total(
    (o, u, p, q, r, s), mul(conj(at(Orb, p, o)), at(Orb, q, o), conj(at(Orb, r, u)), at(Orb, s, u), at(J, p, q, r, s))
)
GRADIENT = Lambda(
    (d, e),
    total((u, p, r, s), mul(Number(4), conj(at(J, r, s, p, d)), conj(at(Orb, s, u)), at(Orb, p, e), at(Orb, r, u))),
)


def touching(program: Lambda, name: str, **sizes: int) -> list[str]:
    """The kernels of the contractions that read a parameter, also through views."""
    steps = plan(program, sizes).steps
    sources = {n for n, step in enumerate(steps) if step.operation == Parameter(name)}
    for n, step in enumerate(steps):
        if not step.fresh and sources & set(step.operands):
            sources.add(n)
    return [
        step.operation.title for step in steps if isinstance(step.operation, Contract) and sources & set(step.operands)
    ]


@pytest.mark.parametrize(("size", "electrons"), [(10, 3), (24, 24), (100, 10)])
def test_hartree_fock_value_and_gradient_read_the_integrals_once(size: int, electrons: int) -> None:
    program = Lambda((J, Orb), Tuple((ENERGY, GRADIENT)))
    assert touching(program, "J", N=size, Ne=electrons) == ["matrix-vector"]
    together = plan(program, {"N": size, "Ne": electrons})
    alone = plan(Lambda((J, Orb), ENERGY), {"N": size, "Ne": electrons})
    more = sum(c.flops for c in cost(together)) - sum(c.flops for c in cost(alone))
    assert more <= size * size * electrons + 4 * size * size


def test_hartree_fock_agrees_with_einsum() -> None:
    integrals, orbitals = cplx(4, 4, 4, 4), cplx(4, 2)
    energy, gradient = run(Lambda((J, Orb), Tuple((ENERGY, GRADIENT))), (integrals, orbitals))
    star = orbitals.conj()
    np.testing.assert_allclose(energy, np.einsum("pi,qi,rj,sj,pqrs", star, orbitals, star, orbitals, integrals))
    np.testing.assert_allclose(gradient, 4 * np.einsum("rspd,sj,pe,rj->de", integrals.conj(), star, orbitals, orbitals))


def test_equal_parts_under_other_names_are_computed_once() -> None:
    left = total((j,), mul(at(A, i, j), at(x, j)))
    right = total((m,), mul(at(A, k, m), at(x, m)))
    program = Lambda((A, x), Tuple((Lambda((i,), Primitive("exp", (left,))), Lambda((k,), mul(right, right)))))
    assert kernels(program).count("matrix-vector") == 1
    same(program, (real(3, 3), real(3)), N=3)


def test_conjugates_of_contractions_are_the_contraction_conjugated() -> None:
    M, z = tensor("M", "N", "N", dtype=complex), tensor("z", "N", dtype=complex)
    plain = total((j,), mul(at(M, i, j), at(z, j)))
    turned = total((j,), mul(conj(at(M, i, j)), conj(at(z, j))))
    program = Lambda((M, z), Tuple((Lambda((i,), plain), Lambda((i,), turned))))
    assert kernels(program).count("matrix-vector") == 1
    same(program, (cplx(3, 3), cplx(3)), N=3)


def test_the_conjugate_is_taken_of_the_smaller_operand() -> None:
    M, z = tensor("M", "N", "N", dtype=complex), tensor("z", "N", dtype=complex)
    program = Lambda((M, z), Lambda((i,), total((j,), mul(conj(at(M, i, j)), at(z, j)))))
    same(program, (cplx(3, 3), cplx(3)), N=3)
    steps = plan(program, {"N": 50}).steps
    assert all(len(step.axes) == 1 for step in steps if step.operation.title == "conjugate elements")


# --- unnormalised terms --------------------------------------------------------------------------------------------


def test_lets_in_any_place_and_applied_abstractions() -> None:
    t = tensor("t", "N")
    image = Lambda((i,), total((j,), mul(at(A, i, j), at(x, j))))
    inner = Let(((t, image),), total((k,), mul(at(t, k), at(t, k))))
    same(Lambda((A, x), mul(inner, inner)), (real(3, 3), real(3)), N=3)
    twice = Lambda((m,), add(Apply(image, (m,)), mul(Apply(image, (constant(0),)), at(x, m))))
    program = Lambda((A, x), twice)
    same(program, (real(3, 3), real(3)), N=3)
    assert kernels(program).count("matrix-vector") == 1
    scalar = Var("t", Space())
    captured = Lambda((i,), Let(((scalar, at(x, i)),), mul(scalar, scalar)))
    shadowed = Lambda((A, x), Tuple((captured, Let(((scalar, Number(2)),), mul(scalar, at(x, constant(0)))))))
    same(shadowed, (real(3, 3), real(3)), N=3)


def test_long_chains_of_bindings() -> None:
    bindings, last = [], x
    for number in range(400):
        label = index("i")
        var = tensor(f"t{number}", "N")
        bindings.append((var, Lambda((label,), Primitive("sin", (at(last, label),)))))
        last = var
    program = Lambda((x,), Let(tuple(bindings), Lambda((j,), at(last, j))))
    expected = start = real(3)
    for _ in range(400):
        expected = np.sin(expected)
    np.testing.assert_allclose(run(program, (start,)), expected)


def test_a_factor_used_once_joins_the_product_and_a_shared_one_does_not() -> None:
    chain = total((i,), mul(at(x, i), Sum((j,), mul(at(A, i, j), Sum((k,), mul(at(B, j, k), at(y, k)))))))
    program = Lambda((A, B, x, y), chain)
    assert all(len(step.axes) < 2 for step in plan(program).steps if isinstance(step.operation, Contract))
    same(program, (real(3, 3), real(3, 3), real(3), real(3)), N=3)


# --- what plans tell -----------------------------------------------------------------------------------------------


def test_costs_and_peak_memory() -> None:
    body = Lambda((i, k), total((j,), mul(at(A, i, j), at(B, j, k))))
    product = plan(Lambda((A, B), body), {"N": 10})
    assert [(c.operation, c.flops, c.bytes) for c in cost(product)][-1] == ("matrix-matrix", 1000, 800)
    assert peak(product) == 800
    chain = Lambda((i,), Primitive("exp", (Primitive("sin", (Primitive("cos", (at(x, i),)),)),)))
    assert peak(plan(Lambda((x,), chain), {"N": 10})) == 160
    assert "matrix-matrix" in str(product)
    assert "peak memory 800 bytes" in str(product)


def test_plans_are_the_same_every_time() -> None:
    program = Lambda((J, Orb), Tuple((ENERGY, GRADIENT)))
    one, two = (make_plan(program, {"N": 8, "Ne": 3}, find_paths) for _ in range(2))
    assert one.steps == two.steps


def test_nothing_over_the_real_line() -> None:
    f, t = Var("f", Space(Real())), Var("t", Real())
    with pytest.raises(UnsupportedError, match="nothing over the real line can be evaluated with arrays"):
        plan(Lambda((x,), total((t,), Number(1))))
    with pytest.raises(UnsupportedError, match="real line"):
        plan(Lambda((f,), total((t,), at(f, t))))


def check_primitive(name: str, values: np.ndarray[Any, Any]) -> None:
    z = tensor("z", "N", dtype=complex if np.iscomplexobj(values) else float)
    same(Lambda((z,), Lambda((i,), Primitive(name, (at(z, i),)))), (values,), N=len(values))


ONE_ARGUMENT = ["exp", "log", "sqrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh"]


@pytest.mark.parametrize("name", [*ONE_ARGUMENT, "abs", "sign", "real", "imag"])
def test_primitives(name: str) -> None:
    check_primitive(name, np.array([0.25, 0.5]))
    check_primitive(name, np.array([0.25 + 0.5j, -0.5j]))


@pytest.mark.parametrize("name", ["relu", "step"])
def test_kinks(name: str) -> None:
    check_primitive(name, np.array([-1.0, 0.0, 2.0]))


@pytest.mark.parametrize("exponent", [-3, -2, -1, 2, 3, 4, Fraction(1, 2), Fraction(-1, 2), Fraction(1, 3), 0.7])
def test_powers(exponent: int | Fraction | float) -> None:
    values = np.array([0.5, 2.0, 3.0])
    program = Lambda((x,), Lambda((i,), Primitive("power", (at(x, i), Number(exponent)))))
    np.testing.assert_allclose(same(program, (values,), N=3), values ** float(exponent))


def test_two_arguments_broadcast() -> None:
    for name in ("maximum", "minimum", "power"):
        body = Primitive(name, (Primitive("abs", (at(A, i, j),)), at(x, i)))
        same(Lambda((A, x), Lambda((j, i), body)), (real(3, 3), real(3)), N=3)


def test_sums_over_indices_of_one_name() -> None:
    """np.convolve and np.cumsum name their indices alike; what bounds the one does not bound the other."""

    @cd.program
    def product(w: Space(2), x: Space(4)) -> Any:  # type: ignore[valid-type]
        return np.sum(np.convolve(w, x)[:4] * np.cumsum(x))

    w, x = real(2), real(4)
    np.testing.assert_allclose(product(w, x), np.sum(np.convolve(w, x)[:4] * np.cumsum(x)))


def test_planning_is_linear_in_the_number_of_steps() -> None:
    """Sums whose parts are shared are looked at once, not as trees."""

    def swing(steps: int) -> cd.Program:
        @cd.program
        def f(velocity: Space(), angle: Space()):
            for _ in range(steps):
                velocity = velocity - np.sin(angle) / 10
                angle = angle + velocity / 10
            return angle

        return f

    def calls(steps: int) -> int:
        term = swing(steps).term
        with cProfile.Profile() as profile:
            plan(term, {})
        return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]

    assert calls(40) <= 2.2 * calls(20)


@pytest.mark.parametrize("function", [np.exp, np.sin, lambda t: t**3, lambda t: 1 / (t + 2), np.sqrt])
def test_functions_of_conjugated_constants(function: Any) -> None:
    """What is known to be a number while planning, exp(i/3) here, is conjugated there, before functions are of it."""

    @cd.program
    def f(z: cd.Space(dtype=complex), x: cd.Space()):  # type: ignore[valid-type]
        t = np.exp(1j / (np.exp(x - x) + 2))
        return np.real(function(np.conj(t)) * np.conj(z) * np.conj(t)) + np.abs(function(t) * z) ** 2

    z, t = 0.5 - 0.1j, np.exp(1j / 3)
    expected = np.real(function(np.conj(t)) * np.conj(z) * np.conj(t)) + np.abs(function(t) * z) ** 2
    for program in (f, cd.simplify(f)):
        assert program(z, 1.0) == pytest.approx(expected, rel=1e-12)
