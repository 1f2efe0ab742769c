"""Pictures: what they show of a formula, and that nothing in them overlaps."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from thesis_cases import CASES

import combdiff as cd
from combdiff.api.language import parse
from combdiff.pictures import Picture, bars, blocks, cut
from combdiff.printing import sheet
from combdiff.printing.tensor_networks import equations

SVG = "{http://www.w3.org/2000/svg}"
Rect = tuple[float, float, float, float]

WRITTEN = [
    "A symmetric (n, n), x (n)\nx'*A*x",
    "(A, x) -> d -> 2 sum_j A[d,j] x[j]",
    "tr(A*B*C*A)",
    "x (12), w (3)\n(x, w) -> k<3 -> sum_{i<10} x[i + k] w[k]",
    "X (m, n), w (n), y (m)\nsum(log(1 + exp(-y .* (X*w))))",
    "(A, B, C, D) -> (first, two) -> sum_{inner,other} A[first,inner] B[inner,other,two] C[other] D[other]",
    "x -> (i, j) -> delta(i, j) x[j] - 3 x[i] x[j] / (1 + x[i]^2)",
    "x -> 4",
    "u -> (a<n, b<n) -> delta(a, b)",
    "A complex (n, n), z complex (n)\n(A, z) -> -Im(sum_{i,j} z[i] A[i,j] z[j]) / 2 + Re(z[0]) Re(z[1])",
    "(T, a) -> (i, j, k) -> sum_{p,q,r} T[i,j,k,p,q,r] a[p] a[q] a[r] a[i]",
]


def program(text: str) -> cd.Program:
    return cd.read(text, {"u": cd.Space()} if text.startswith("u") else None)


def networks(f: cd.Program) -> list[object]:
    spaces = {p.name: p.type for p in f.parameters if isinstance(p.type, cd.Space)}
    return [term for equation in equations(sheet(f.term), spaces) for term in equation.terms]


def shapes(picture: Picture) -> tuple[list[Rect], list[Rect], list[Rect]]:
    """The boxes of nodes, of texts, and of straight pieces of wires, with their places in the picture."""
    found: tuple[list[Rect], list[Rect], list[Rect]] = ([], [], [])

    def walk(element: ElementTree.Element, dx: float, dy: float) -> None:
        place = re.match(r"translate\(([-\d.]+),([-\d.]+)\)", element.get("transform", ""))
        if place:
            dx, dy = dx + float(place[1]), dy + float(place[2])
        if element.tag == f"{SVG}rect":
            x, y, width, height = (float(element.get(key, "")) for key in ("x", "y", "width", "height"))
            found[0].append((x + dx, y + dy, x + dx + width, y + dy + height))
        if element.tag == f"{SVG}text":
            x, y, width = (float(element.get(key, "")) for key in ("x", "y", "textLength"))
            found[1].append((x + dx, y + dy - 10, x + dx + width, y + dy + 2))
        if element.tag == f"{SVG}polyline":
            points = [tuple(map(float, point.split(","))) for point in element.get("points", "").split()]
            for (a, b), (c, d) in pairwise(points):
                found[2].append((min(a, c) + dx, min(b, d) + dy, max(a, c) + dx, max(b, d) + dy))
        for child in element:
            walk(child, dx, dy)

    walk(ElementTree.fromstring(picture.svg), 0, 0)
    return found


def overlap(one: Rect, other: Rect) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def inside(one: Rect, other: Rect) -> bool:
    return other[0] <= one[0] and one[2] <= other[2] and other[1] <= one[1] and one[3] <= other[3]


def assert_nothing_overlaps(picture: Picture) -> None:
    nodes, texts, wires = shapes(picture)
    root = ElementTree.fromstring(picture.svg)
    whole = (-4.0, -2.0, float(root.get("width", "")), float(root.get("height", "")))
    assert not [pair for pair in combinations(nodes, 2) if overlap(*pair)]
    assert not [pair for pair in combinations(texts, 2) if overlap(*pair)]
    assert not [(t, n) for t in texts for n in nodes if overlap(t, n) and not inside(t, n)]
    assert not [(t, w) for t in texts for w in wires if overlap(t, w)]
    assert not [(n, w) for n in nodes for w in wires if overlap((n[0] + 1, n[1] + 1, n[2] - 1, n[3] - 1), w)]
    assert all(inside(each, whole) for each in [*nodes, *texts, *wires])


@pytest.mark.parametrize("text", WRITTEN)
def test_nothing_overlaps(text: str) -> None:
    assert_nothing_overlaps(program(text).diagram())


def test_nothing_overlaps_in_the_appendix_of_the_thesis() -> None:
    for case in CASES:
        assert_nothing_overlaps(parse(case.text.partition("derivative")[0]).diagram())


def test_a_network_has_the_factors_and_wires_of_its_term() -> None:
    (term,) = networks(program("(A, x) -> d -> 2 sum_j A[d,j] x[j]"))
    assert term.coefficient == "2"
    assert [(node.label, [leg.label for leg in node.legs]) for node in term.nodes] == [("A", ["d", "j"]), ("x", ["j"])]
    assert [term.names[wire] for wire in term.open] == ["d"]
    joined, product = networks(program("x -> (i, j) -> delta(i, j) x[j] - 3 x[i] x[j] / (1 + x[i]^2)"))
    assert joined.open[0] == joined.open[1] == joined.nodes[0].legs[0].wires[0]
    assert [node.label for node in product.nodes] == ["x", "x", "1 / (1 + x[i]²)"]
    assert product.coefficient == "− 3"
    (affine,) = networks(program("x (12), w (3)\n(x, w) -> k<3 -> sum_{i<10} x[i + k] w[k]"))
    assert affine.nodes[0].label == "x[i + k]"
    assert len(affine.nodes[0].legs[0].wires) == 2


def test_rows_in_rows_and_real_parts_are_networks_too() -> None:
    energy = cd.read("A complex (n, n), z complex (n), w (n)\n(A, z, w) -> 2 Re(sum_{i,j} z[i] A[i,j] w[j])")
    (term,) = networks(energy)
    assert term.coefficient == "2 Re"
    assert [node.label for node in term.nodes] == ["z", "A", "w"]
    both = cd.value_and_grad(cd.read("(A, x, y) -> sum_{i,j} x[i] A[i,j] y[j]"), ("x", "y"))
    assert [[node.label for node in term.nodes] for term in networks(both)] == [
        ["A", "x"],
        ["y", "t"],
        ["A", "y"],
        ["t"],
    ]
    assert_nothing_overlaps(energy.diagram())
    assert_nothing_overlaps(both.diagram())


def test_exchanged_axes_are_marked() -> None:
    marks = r'<circle [^>]*r="3.6" (fill="none"|fill="#\w+")'
    for word, count, shown in (("symmetric", 2, "#"), ("antisymmetric", 2, "none"), ("", 0, "")):
        found = re.findall(marks, str(cd.read(f"A {word} (n, n), x (n), y (n)\nx'*A*y").diagram()))
        assert len(found) == count
        assert all(shown in each for each in found)


def test_names_are_escaped_and_long_sums_cut() -> None:
    svg = str(program("x -> 4").diagram())
    assert "<title>read as tensor networks</title>" in svg
    assert "&lt;" in str(bars([("a<b", "c", 1.0, "&")], "<t>"))
    many = program("x -> " + " + ".join(f"x[{k}]^{k + 2}" for k in range(40)))
    assert "… and 16 more terms" in str(many.diagram())
    wide = program("(x, y) -> " + " ".join(f"x[{k}]" for k in range(20)))
    assert "more factors" in str(wide.diagram())


def test_costs_as_bars() -> None:
    table = cd.grad(program(WRITTEN[0]), wrt="x").cost()
    assert_nothing_overlaps(table.chart())
    assert "n²" in str(table.chart())
    assert "1,000,000" in str(cd.grad(program(WRITTEN[0]), wrt="x").cost(n=1000).chart())
    cells = re.findall("<td[^>]*>([^<]*)</td>", table._repr_html_())
    assert cells[:8] == ["step", "operation", "equation", "shape", "flops", "bytes", "share", table.rows[0].name]
    assert len(cells) == 7 * (1 + len(table.rows))


def test_zeros_as_blocks(tmp_path: Path) -> None:
    fit = cd.read("M (m, n), U (m, k), V (n, k)\nsum((M - U*V').^2)")
    sparsity = cd.hessian(fit, wrt="U").sparsity()
    picture = sparsity.picture(m=3, k=2)
    assert len(shapes(picture)[0]) == 1 + 3 * 2 * 2
    assert sparsity._repr_svg_().count("<rect") == 1 + 5 * 5 * 5
    picture.save(str(tmp_path / "zeros.svg"))
    assert ElementTree.fromstring((tmp_path / "zeros.svg").read_text(encoding="utf-8")).find(f"{SVG}rect") is not None
    assert "the first 80 of 100 × 100" in str(blocks(np.eye(100, dtype=bool), 1, "eye"))


def assert_blocks_stand_apart(picture: Picture, count: int) -> None:
    """Cells lie in one block each; blocks and names overlap nothing."""
    rectangles, texts, _ = shapes(picture)
    frames = [one for one in rectangles if not any(one is not other and inside(one, other) for other in rectangles)]
    assert len(frames) == count
    assert not [pair for pair in combinations([*frames, *texts], 2) if overlap(*pair)]


@pytest.mark.thorough
def test_zeros_of_several_variables() -> None:
    """One picture of all blocks; what lies below the diagonal mirrors what lies above."""

    @cd.program
    def fit(U: cd.Space("m", "k"), b: cd.Space("m"), s: cd.Space()):
        return cd.sum(lambda i, j: b[i] * U[i, j] ** 2) + s * cd.sum(lambda i: b[i] ** 2)

    sparsity = cd.hessian(fit, wrt=("U", "b", "s")).sparsity()
    assert [str(part).split(" unless ")[-1] for part in sparsity] == [
        "i = k and j = l",
        "i = k",
        "H_Us[i,j] = 0",
        "i = j",
        "H_bs[i] has no zeros that are known",
        "H_ss[] = 0",
    ]
    m, k = 3, 2
    picture = sparsity.picture(m=m, k=k)
    assert_blocks_stand_apart(picture, 9)
    filled = m * k + 2 * m * k + m + 2 * m
    assert len(shapes(picture)[0]) == 9 + filled
    assert len(shapes(sparsity[1].picture(m=m, k=k))[0]) == 1 + m * k  # of U, of two axes, by b, of one
    assert "at most 26 rows and columns of a block" in str(sparsity.picture(m=9))


def test_zeros_of_a_complex_variable() -> None:
    form = cd.read("z complex (n)\nsum(abs(z).^4)")
    picture = cd.hessian(form, wrt="z").sparsity().picture(n=3)
    assert_blocks_stand_apart(picture, 2)
    assert len(shapes(picture)[0]) == 2 * (1 + 3)
    assert all(name in str(picture) for name in ("z zz̄", "z zz"))


def test_a_long_text_is_cut_to_as_many_letters_with_an_ellipsis() -> None:
    assert [cut(text, 5) for text in ("abcde", "abcdef", " a  b\nc ")] == ["abcde", "abcd…", "a b c"]
