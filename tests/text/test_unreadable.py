"""What cannot be read as a formula, and what is said of it."""

import pytest

import combdiff as cd

SPACES = {
    "a": cd.Space(),
    "x": cd.Space("n"),
    "y": cd.Space("m"),
    "A": cd.Space("n", "n"),
    "M": cd.Space("m", "m"),
    "R": cd.Function(cd.Space("n")),
}
FORMULAS = [
    (
        "x ↦ d ↦ 1",
        "line 1, column 5: nothing tells the range of d\n  x ↦ d ↦ 1\n      ^\n  hint: write it: i<n, |b|≤B",
    ),
    ("x ↦ Σ_i z[i]", "line 1, column 9: z is not declared\n  x ↦ Σ_i z[i]\n          ^"),
    ("x ↦ Σ_i x[i,i]", "line 1, column 9: a tensor of order 1 is read with 2 indices"),
    ("x ↦ x x", "line 1, column 5: two tensors stand side by side"),
    ("x ↦ Σ_i x[i] / 2 x[0]", "column 5: a / b c has two meanings"),
    ("x ↦ Σ_i", "column 5: a Σ or ∫ has nothing after it"),
    ("x ↦ Σ_i x[i", "the text ends; expected"),
    ("x ↦ foo(x[0])", "line 1, column 5: there is no function foo"),
    ("x ↦ softsignum(x[0])", "a function of a rule file is loaded by cd.primitive('softsignum', rules=[…])"),
    ("trace(A)", "there is no function trace\n  trace(A)\n  ^\n  hint: write tr(A)"),
    ("ln(x)", "hint: write log(x)"),
    ("M^T*M", "a number is expected here, not a tensor of order 2\n  M^T*M\n    ^\n  hint: a transpose is A' or Aᵀ"),
    ("x'/A", "hint: by each element divides ./, by a matrix * inv(A)"),
    ("||x||^2", "hint: a norm is norm2(x) or ‖x‖"),
    ("A^100", "a whole power of a square matrix up to 64"),
    ("1e999*x", "line 1, column 1: '1e999' is not a number of double precision"),
    ("x ↦ x[0] + 1e-400", "line 1, column 12: '1e-400' is not a number of double precision"),
    ("x ↦ arctanh(logg(x[0]))", "hint: write log(…)"),
    ("eye(3)*x", "hint: write eye or 𝐈 alone"),
    ("x**2", "'*2' is not expected here; expected an expression\n  x**2\n    ^\n  hint: a power is x^2"),
    ("A.T*x", "'.T*x' is not expected here; expected an expression or an operator"),
    ("A*(x + 1", "the text ends; expected ')' or ','"),
    ("matrix(1)*x", "vector(1) and matrix(1) take theirs from what stands beside them"),
    ("x ↦\n  t = 2\n", "the text ends in a definition"),
    ("x ↦\n  x[0]\n  2", "line 2, column 3: a line before the last is a definition"),
    ("x (n), A symetric (n, n)\nx'*A*x", "line 1, column 8: 'A symetric (n, n)' declares no tensor"),
    ("c scalar (n)\nc'*c", "line 1, column 1: c: a scalar has no axes"),
    ("x vector, A matrix\nx'*A*x", "line 1, column 1: 'x vector' declares no tensor"),
    ("A (n, n), \nA'", "line 1, column 9: the declarations end with a comma"),
    ("x^" + "9" * 1001, "line 1, column 3: a number has 1001 digits; 1000 are read"),
    ("(x, A) ↦ Σ_i x[i] B[i]", "B is not declared"),
    ("(x, y) ↦ Σ_i x[i] y[i]", "axes of unlike sizes meet here: n and m"),
    ("R ↦ R", "R is a map, which takes arguments"),
    ("x ↦ ∫ x[0]", "an integral names its variable at its end"),
    # --- folds
    ("z ↦ max_{i,j,k} z[i,j,k]", "over one index, or over two"),
    ("z ↦ i ↦ max_{j≠i} z[j]", "over all of a range"),
    ("z ↦ i ↦ Π_{j=1}^{i} z[j]", "begins at 0"),
    # --- tensors element by element
    ("a ↦\n  t[1] = a\n  t[2] = a\n  t[1]", "t[1], t[2] are given; lines of elements begin at 0"),
    (
        "a ↦\n  t[0] = a\n  t[1] = 2 a\n  t[3] = a\n  t[1]",
        "t[0], t[1], t[3] are given; lines of elements begin at 0",
    ),
    ("x ↦\n  t[0,i] = x[i]\n  t[1,i] = Σ_j x[j]\n  t[0,i]", "an index is an integer, not a complex number"),
    ("(x, M) ↦\n  t[0,i] = x[i]\n  t[1,i] = M[i,i]\n  t", "unlike sizes"),
    ("x ↦\n  t[0,i] = x[i]\n  t[1] = 1\n  t", "the lines of t have different numbers of indices"),
    ("x ↦ x[2.5]", "an index is an integer, not 5/2"),
    # --- recurrences
    ("a ↦ last(a, 0)", "last takes a scan and which result of its steps"),
    ("a ↦ last(scan((t<3, x) ↦ (x,), a), x)", "last takes a scan and which result of its steps"),
    ("a ↦ last(scan(a, a), 0)", "a scan takes its step and how its states begin"),
    ("a ↦ last(scan((t<3, x) ↦ (x,)), 0)", "a scan of 1 states begins with 0"),
    ("a ↦ last(scan((t<3, x) ↦ (x, a), a), 1)", "there is no result 1 of these steps"),
    ("a ↦ last(scan((t<3, x) ↦ (i<2 ↦ x,), a), 0)", "a state of order 0 has order 1 after a step"),
    ("a ↦ last(scan((t, x) ↦ (2 x,), a), 0)", "nothing tells the range of t"),
    ("a ↦\n  x[0] = a\n  x[2 t] = a\n  x[0]", "a step gives what x is at the step after, t + 1"),
    ("a ↦\n  x[0] = a\n  x[0]", "a recurrence gives x a boundary value and a step"),
    ("a ↦\n  x = a\n  x = 2 a\n  x", "x has two definitions that are not of one recurrence"),
    ("a ↦\n  x[0] = a\n  x[t + 1] = x[t]\n  x[t + 1] = x[t]\n  x[2]", "x has 3 definitions; a recurrence has two"),
    ("a ↦\n  x[0] = a\n  x[t + 1] = x[t + 1] + a\n  x[2]", "a step reads a state as the step before left it"),
    ("a ↦\n  x[0] = a\n  x[t + 1] = 2 x[t]\n  a", "nothing tells the range of the steps of a recurrence"),
    ("a ↦\n  x[0,2i] = a\n  x[t + 1,i] = a\n  x[2,0]", "an index that is bound is a name"),
    ("a ↦ 2 + (a, a)", "several results stand where one number is expected"),
    ("a<n ↦\n  x[0] = 1\n  x[t + 1] = x[t]\n  x[2]", "a parameter is a name"),
    ("a ↦\n  x[0] = a\n  x[t< + 1] = a\n  x[2]", "a step gives what x is at the step after"),
    ("a ↦ root(x ↦ x - a)", "root takes a map and the start of its search"),
    ("a ↦ argmin(x ↦ (i<3 ↦ x), a)", "the map of argmin gives a tensor of order 1"),
]


@pytest.mark.parametrize(("shown", "message"), FORMULAS)
def test_messages(shown: str, message: str) -> None:
    with pytest.raises(cd.TextError) as caught:
        cd.read(shown, SPACES)
    assert message in str(caught.value)
