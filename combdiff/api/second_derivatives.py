"""Hessians: dense when they are called, and by their structure otherwise.

    H = hessian(‖T − U·Vᵀ‖², wrt="U")        # before: n·k·n·k elements when it is called
    H.compressed()                            # after: H[i,j,k,l] = core[j,l] δ[i,k] and the program of the core, k·k
    H.solve(g, T, U, V)                       # one k×k system instead of one of size n·k

Blocks of several variables are derived once where one mirrors another. A dense result that memory cannot hold is
refused before anything is computed.

Invariant: what the structure gives is what the dense matrix gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from functools import cache, cached_property
from math import prod
from typing import Any

import numpy as np

from combdiff.api.blocks import Blocks, Compressed, pair_of_names, position
from combdiff.api.programs import Program
from combdiff.api.transforms import Wrt, cheapest, check_objective, gradient_of, hvp, names_several, points_of, reduced
from combdiff.differentiation import derived, fine_gradient, hessian_body, modes_of, space_of
from combdiff.errors import ArgumentError, MemoryLimitError, UnsupportedError
from combdiff.hessians import (
    BlockSparsity,
    Coupled,
    Operator,
    PivotError,
    Sparsity,
    Structure,
    apart,
    assembled,
    compress,
    orbit_basis,
    packed,
    solved,
)
from combdiff.ir import (
    Lambda,
    Names,
    Space,
    Term,
    Tuple,
    Var,
    apply,
    extent,
    lambda_,
    let,
    letters_of,
    readable,
    share,
    split,
)
from combdiff.planning import BY_STRUCTURE, refuse_beyond
from combdiff.records import dataclass
from combdiff.runtime import bind_sizes, unequal_lists
from combdiff.simplification import one_warning, rule_paths

ITERATIVE = "its structure does not help: use linear_operator(…) with an iterative method, as scipy.sparse.linalg.cg"
NUMBER_BYTES = {int: 8, float: 8, complex: 16}


@dataclass(frozen=True, eq=False)
class Hessian(Program):
    """The second derivatives of `objective` by the variables `rows`, then `columns`; see `hessian`.

    `several` says that the result is rows of blocks, not one block.
    """

    objective: Program = field(kw_only=True)
    rows: tuple[str, ...] = field(kw_only=True)
    columns: tuple[str, ...] = field(kw_only=True)
    several: bool = field(kw_only=True)

    # --- dense

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """The dense Hessian; with several names rows of blocks that can be indexed by pairs of names.

        Raises MemoryLimitError, before anything is computed, if the result alone would not fit in memory.
        """
        self._check_memory(self._bind(arguments, named), "the dense Hessian")
        result = super().__call__(*arguments, **named)
        return Blocks(result, self.rows) if self.several and isinstance(result, tuple) else result

    def __getitem__(self, names: tuple[str, str]) -> Hessian:
        """The block of two names, first the row, as a Hessian of its own."""
        row, column = pair_of_names(names)
        position(self.rows, row), position(self.columns, column)
        return self._selected((row,), (column,), several=False)

    def _selected(self, rows: tuple[str, ...], columns: tuple[str, ...], several: bool) -> Hessian:
        """The blocks of some of the names."""
        bindings, value = split(self.term.body)
        if self.several:
            assert isinstance(value, Tuple)
            at = [self.columns.index(name) for name in columns]
            chosen = [[value.items[self.rows.index(name)].children[n] for n in at] for name in rows]
            value = Tuple(tuple(Tuple(tuple(row)) for row in chosen)) if several else chosen[0][0]
        term = readable(Lambda(self.term.parameters, share(let(bindings, value))), letters_of(self.term))
        name = "_".join((self.name, *(rows if several else (*rows, *columns))))
        return replace(self, term=term, name=name, rows=rows, columns=columns, several=several)

    def _blocks(self) -> dict[tuple[str, str], tuple[Term, ...]]:
        """The parts of each block, one or the pair (zz̄, zz), under the bindings of the term."""
        value = split(self.term.body)[1]
        if not self.several:
            return {(self.rows[0], self.columns[0]): _parts(value)}
        return {
            (row, column): _parts(value.children[i].children[j])
            for i, row in enumerate(self.rows)
            for j, column in enumerate(self.columns)
        }

    def _check_memory(self, values: Sequence[Any], what: str, hint: str = BY_STRUCTURE) -> None:
        shapes = self._shapes(values)
        needed = self._bytes.get(shapes)
        if needed is None:
            spaces = [space_of(part) for parts in self._blocks().values() for part in parts]
            sizes = self._sizes(values)
            needed = self._bytes[shapes] = sum(NUMBER_BYTES[s.dtype] * prod(_shape(s, sizes)) for s in spaces)
        refuse_beyond(needed, f"{what} {self.name}", hint)

    @cached_property
    def _bytes(self) -> dict[tuple[tuple[int, ...], ...], int]:
        """What the dense Hessian takes, by the shapes of the arguments it was asked for."""
        return {}

    def _shapes(self, values: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
        """The shapes of arrays for the parameters. Raises ArgumentError for lists of unequal lengths."""
        pairs = zip(self.term.parameters, values, strict=True)
        return tuple(_of_array(np.shape, value, f"what was given for {p.name}") for p, value in pairs)

    def _sizes(self, values: Sequence[Any]) -> dict[str, int]:
        """The named sizes that arrays for the parameters have."""
        shapes = self._shapes(values)
        if shapes not in self._known_sizes:
            pairs = zip(self.term.parameters, shapes, strict=True)
            self._known_sizes[shapes] = bind_sizes({p: shape for p, shape in pairs if isinstance(p.type, Space)})
        return self._known_sizes[shapes]

    @cached_property
    def _known_sizes(self) -> dict[tuple[tuple[int, ...], ...], dict[str, int]]:
        """The named sizes by the shapes of the arguments that were given so far."""
        return {}

    # --- structure

    def compressed(self) -> Compressed:
        """The arrays that the Hessian is made of, its cores, as a Program, and how δ's and sums put them together.

        Pairs (zz̄, zz) and blocks give a tuple of structures over one tuple of cores; blocks below the diagonal mirror
        those above and are left out.
        """
        return self._compressed

    @cached_property
    def _compressed(self) -> Compressed:
        bindings, _ = split(self.term.body)
        value, structures = compress(Names(self.term), bindings, list(self._named_parts()))
        term = readable(Lambda(self.term.parameters, share(let(bindings, value))), letters_of(self.term))
        core = Program(term, f"core_{self.name}", self.location, self.fixed, self.accesses, is_derivative=True)
        return Compressed(core, structures[0] if len(structures) == 1 else structures)

    def _named_parts(self) -> Iterable[tuple[str, Term]]:
        blocks = self._blocks()
        for row, column in dict.fromkeys(self._named_blocks()):
            block = f"H_{row}{column}" if self.several else "H"
            parts = blocks[row, column]
            for part, suffix in zip(parts, ("_zz̄", "_zz") if len(parts) > 1 else ("",), strict=True):
                yield block + suffix, part

    def _named_blocks(self) -> Iterable[tuple[str, str]]:
        """The names of the block of each structure: those below the diagonal mirror those above and have none."""
        for (row, column), parts in self._blocks().items():
            if not self.several or self.rows.index(row) <= self.columns.index(column):
                yield from [(row, column)] * len(parts)

    @property
    def _structures(self) -> tuple[Structure, ...]:
        found = self.compressed().structure
        return found if isinstance(found, tuple) else (found,)

    def sparsity(self) -> Sparsity | BlockSparsity:
        """Which entries may differ from 0, known before any data; of a pair or of blocks a sequence of patterns."""
        rows = {p.name: space_of(p).order for p in self.term.parameters if isinstance(p.type, Space)}
        places = list(self._places())
        pairs = zip(self._structures, places, strict=True)
        found = tuple(Sparsity(structure, rows[row]) for structure, (row, _, _) in pairs)
        return found[0] if len(found) == 1 and not self.several else BlockSparsity(found, tuple(places))

    def _places(self) -> Iterable[tuple[str, str, str]]:
        """The names of row and column of each structure, and which of a pair it is."""
        seen: set[tuple[str, str]] = set()
        for row, column in self._named_blocks():
            pair = len(self._blocks()[row, column]) > 1
            yield row, column, ("zz" if (row, column) in seen else "zz̄") if pair else ""
            seen.add((row, column))

    def diag(self, /, *arguments: Any, **named: Any) -> Any:
        """The diagonal, shaped like the variable, as a Program that never forms the rest; with arrays, its value.

        A complex variable has the pair of the diagonals of zz̄ and zz. Raises ArgumentError for arrays that do not fit.
        """
        program = self._diagonal
        return program(*arguments, **named) if arguments or named else program

    @cached_property
    @one_warning()
    def _diagonal(self) -> Program:
        self._check_square("a diagonal")
        bindings, _ = split(self.term.body)
        names, found = Names(self.term), []
        for part in self._blocks()[self.rows[0], self.columns[0]]:
            axes = space_of(part).axes
            indices = names.indices(axes[: len(axes) // 2])
            found.append(lambda_(indices, apply(part, (*indices, *indices))))
        value = found[0] if len(found) == 1 else Tuple(tuple(found))
        term = derived(self.term, Lambda(self.term.parameters, let(bindings, value)), ())
        return Program(term, f"diag_{self.name}", self.location, self.fixed, self.accesses, is_derivative=True)

    # --- products and systems

    def matvec(self, /, vector: Any = None, *arguments: Any, **named: Any) -> Any:
        """The Hessian times a vector shaped like the variable (a tuple of them for several), without the Hessian.

        For a complex variable it is the change of the gradient, 2 (∂²f/∂z̄∂z·v + ∂²f/∂z̄∂z̄·v̄). Raises ArgumentError for
        arrays that do not fit.
        """
        self._check_square("products")
        program, vectors = replace(self._product, fixed=self.fixed), self._for_each(vector, "vector")
        values = [
            value
            for p, value in zip(self.term.parameters, self._bind(arguments, named), strict=True)
            if p.name not in self.fixed
        ]
        return program(*values, *vectors)

    @cached_property
    def _product(self) -> Program:
        return hvp(self.objective, list(self.rows) if self.several else self.rows[0])

    def linear_operator(self, /, *arguments: Any, **named: Any) -> Any:
        """A SciPy LinearOperator of the Hessian at arrays; vectors are flat, Re before Im of what is complex.

        Several variables follow one another. Where the Hessian has structure its cores are computed once, and products
        use them. Raises ArgumentError for arrays that do not fit.
        """
        from scipy.sparse.linalg import LinearOperator

        self._check_square("a linear operator")
        values = self._bind(arguments, named)
        operator = self._operator(values)
        spaces = [space_of(point) for point in self._points]
        shapes = [_shape(space, self._sizes(values)) for space in spaces]
        is_complex = [space.dtype is complex for space in spaces]
        basis = orbit_basis(spaces, shapes) if self._symmetric else None

        def product(vector: Any) -> Any:
            column = np.asarray(vector).reshape(-1, 1)
            column = basis.expanded(basis.reduced(column)) if basis else column  # products trust it to be in the Space
            arrays = [each[..., 0] for each in apart(column, shapes, is_complex)]
            if operator:
                return operator.matvec(arrays[0]).reshape(-1)
            found = self.matvec(tuple(arrays) if self.several else arrays[0], *arguments, **named)
            parts = zip(found if self.several else (found,), is_complex, strict=True)
            return np.concatenate([packed(part[..., None], twice)[:, 0] for part, twice in parts])

        rows = sum(prod(shape) * (1 + twice) for shape, twice in zip(shapes, is_complex, strict=True))
        return LinearOperator((rows, rows), matvec=product, rmatvec=product, dtype=float)

    def _operator(self, values: Sequence[Any]) -> Operator | None:
        """The Hessian by its cores at arrays, where it is one real block of which the structure says all."""
        structure = self.compressed().structure
        if isinstance(structure, tuple) or not structure.compresses:
            return None
        shape = tuple(extent(axis, self._sizes(values)) for axis in structure.axes[: len(structure.axes) // 2])
        return Operator(structure, self._cores(values), shape)

    def _cores(self, values: Sequence[Any]) -> tuple[Any, ...]:
        cores = self._open_core(*values)
        return cores if isinstance(cores, tuple) else (cores,)

    @cached_property
    def _open_core(self) -> Program:
        """The program of the cores that takes all parameters."""
        return replace(self.compressed().core, fixed={})

    def solve(self, /, rhs: Any = None, *arguments: Any, **named: Any) -> Any:
        """The x with H·x = rhs at arrays: a Newton step for rhs = −gradient, shaped like the variable.

        More axes of rhs, last, number right-hand sides. δ's, Kronecker factors and low rank beside δ's are used where
        they are; otherwise the dense system is solved. Several variables take and give a tuple; those that no second
        derivative couples are solved for by themselves, and of those that are coupled the ones whose own block has
        structure are eliminated first. Complex variables: the x whose `matvec` is rhs. Variables with symmetries: the
        x in their Space, one unknown for each orbit of entries. Raises ArgumentError where rhs
        does not fit, SingularError, and MemoryLimitError where the dense matrix is needed and does not fit.
        """
        self._check_square("systems")
        given = self._for_each(rhs, "right-hand side")
        values = self._bind(arguments, named)
        shapes = [_shape(space_of(p), self._sizes(values)) for p in self._points]
        more = given[0].shape[len(shapes[0]) :]
        for name, part, shape in zip(self.rows, given, shapes, strict=True):
            if part.shape != (*shape, *more):
                raise ArgumentError(
                    f"the right-hand side for {name} has shape {part.shape}, but {(*shape, *more)} was expected",
                    hint="it is shaped like the variable; axes that number right-hand sides come last",
                )
            if np.iscomplexobj(part) and space_of(self._point(name)).dtype is not complex:
                raise ArgumentError(f"the right-hand side for {name} is complex, but {name} is real")
        columns = [part.reshape((*shape, prod(more))) for part, shape in zip(given, shapes, strict=True)]
        solution = self._solve_groups(values, columns)
        found = [part.reshape((*shape, *more)) for part, shape in zip(solution, shapes, strict=True)]
        return tuple(found) if self.several else found[0]

    def _for_each(self, value: Any, what: str) -> list[Any]:
        """An array for each variable, from one or a tuple of them."""
        if value is None:
            raise ArgumentError(
                f"no {what} is given", hint=f"give it first, before {', '.join(p.name for p in self.parameters)}"
            )
        if not self.several:
            return [_of_array(np.asarray, value, f"the {what}")]
        if not isinstance(value, tuple | list) or len(value) != len(self.rows):
            names = ", ".join(self.rows)
            raise ArgumentError(f"a tuple was expected, with a {what} for each of {names}", hint=f"give ({names})")
        return [_of_array(np.asarray, part, f"the {what}") for part in value]

    def _solve_groups(self, values: Sequence[Any], right: list[Any]) -> list[Any]:
        """The solution for arrays of columns, by each group of coupled variables."""
        if not self.several:
            return self._solve_together(values, right)
        found: dict[str, Any] = {}
        for names in self._coupled:
            own = [right[self.rows.index(name)] for name in names]
            found.update(zip(names, self._among[names]._solve_together(values, own), strict=True))
        return [found[name] for name in self.rows]

    def _solve_together(self, values: Sequence[Any], right: list[Any]) -> list[Any]:
        """The solution of a system for all variables, by the structure of blocks that have one."""
        structured = self._structured.items() if not self._symmetric else ()
        if any(r == c and any(each.compresses for each in block) for (r, c), block in structured):
            spaces = [space_of(point) for point in self._points]
            shapes = tuple(part.shape[:-1] for part in right)
            is_complex = tuple(space.dtype is complex for space in spaces)
            try:
                solution = Coupled(shapes, is_complex, self._structured, self._cores(values)).solve(right)
            except (PivotError, MemoryLimitError):  # the latter says of the whole what is to be done
                solution = None
            if solution is not None:
                return solution
        return self._solve_dense(values, right)

    @cached_property
    def _structured(self) -> dict[tuple[int, int], tuple[Structure, ...]]:
        """The structures of the blocks on and above the diagonal, by the numbers of row and column."""
        blocks: dict[tuple[int, int], tuple[Structure, ...]] = {}
        for (row, column), structure in zip(self._named_blocks(), self._structures, strict=True):
            place = self.rows.index(row), self.columns.index(column)
            blocks[place] = (*blocks.get(place, ()), structure)
        return blocks

    @cached_property
    def _coupled(self) -> tuple[tuple[str, ...], ...]:
        """The names in groups: second derivatives by variables of two groups are zero."""
        groups: list[tuple[str, ...]] = []
        found = zip(self._named_blocks(), self._structures, strict=True)
        joined = [names for names, structure in found if structure.parts]
        for name in self.rows:
            near = [group for group in groups if any((other, name) in joined for other in group)]
            groups = [group for group in groups if group not in near]
            groups.append((*(other for group in near for other in group), name))
        return tuple(tuple(name for name in self.rows if name in group) for group in groups)

    @cached_property
    def _among(self) -> dict[tuple[str, ...], Hessian]:
        """The Hessians by the groups of names that are coupled."""
        return {names: self._selected(names, names, several=len(names) > 1) for names in self._coupled}

    def _solve_dense(self, values: Sequence[Any], given: list[Any]) -> list[Any]:
        self._check_memory(values, "solving needs the matrix:", ITERATIVE)
        fixed = {p.name: value for p, value in zip(self.term.parameters, values, strict=True)}
        result = replace(self, fixed={}).__call__(**fixed)
        table = result if self.several else ((result,),)
        is_complex = [space_of(p).dtype is complex for p in self._points]
        shapes = [part.shape[:-1] for part in given]
        matrix = assembled(table, [prod(shape) for shape in shapes], is_complex)
        right = np.concatenate([packed(part, twice) for part, twice in zip(given, is_complex, strict=True)])
        if not self._symmetric:
            return list(apart(solved(matrix, right), shapes, is_complex))
        basis = orbit_basis(list(map(space_of, self._points)), shapes)
        unknowns = solved(basis.matrix(matrix), basis.reduced(right))
        return list(apart(basis.expanded(unknowns), shapes, is_complex))

    @property
    def _symmetric(self) -> bool:
        """Whether a variable has symmetries: outside of their Space the Hessian is zero."""
        return any(len(space_of(point).group) > 1 for point in self._points)

    @property
    def _points(self) -> list[Var]:
        return list(map(self._point, self.rows))

    def _point(self, name: str) -> Var:
        return next(p for p in self.term.parameters if p.name == name)

    def _check_square(self, what: str) -> None:
        if self.rows != self.columns:
            raise UnsupportedError(
                f"{what} of the block by {self.rows[0]} and {self.columns[0]}: only a diagonal block is a square matrix"
            )


@one_warning()
def hessian(
    f: Program, wrt: Wrt = None, mode: str = "auto", *, simplify: bool = True, rules: Iterable[str] = ()
) -> Hessian:
    """The second derivative of a real scalar program: H[i…, j…] = ∂²f/∂x[i…]∂x[j…], dense when it is called.

    With respect to a complex parameter it is the pair (∂²f/∂z∂z̄, ∂²f/∂z∂z). A tuple of names gives a block for each
    pair of names, `H["U", "V"]`; those that mirror another are not derived. `mode` is as for `jacobian`, arguments and
    errors as for `grad`. See `Hessian` for what else it can do: `compressed`, `solve`, `diag`, `sparsity`, `matvec`.
    """
    rules = rule_paths(rules)
    check_objective(f, rules)
    f = reduced(f, simplify, rules)
    points = points_of(f, wrt)
    names = [point.name for point in points]

    @cache
    def gradient() -> Program:
        return gradient_of(f, names, "conjugate", simplify, rules, in_spaces=False)

    def body(mode: str) -> Term:
        if mode == "cross-country":
            blocks = hessian_body(fine_gradient(f.term.body, points), points, mode)
        else:
            blocks = hessian_body(gradient().term.body, points, mode)
        return blocks if names_several(wrt) else let(split(blocks)[0], split(blocks)[1].children[0].children[0])

    term, raw = cheapest(f, [body(each) for each in modes_of(mode)], simplify, rule_paths(rules))
    several = names_several(wrt)
    own = tuple(names)
    return Hessian(
        term,
        f"hessian_{f.name}",
        f.location,
        f.fixed,
        f.accesses,
        raw,
        rule_paths(rules),
        is_derivative=True,
        objective=f,
        rows=own,
        columns=own,
        several=several,
    )


def _parts(block: Term) -> tuple[Term, ...]:
    return block.items if isinstance(block, Tuple) else (block,)


def _of_array(function: Callable[[Any], Any], value: Any, what: str) -> Any:
    """What NumPy's function gives of an array. Raises ArgumentError for lists of unequal lengths."""
    try:
        return function(value)
    except ValueError:
        raise unequal_lists(what) from None


def _shape(space: Space, sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(extent(axis, sizes) for axis in space.axes)
