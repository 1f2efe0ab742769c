"""What a step of a scan reads of tensors over the steps: slices of what can be made before the first of them.

    (t, x) ↦ x[i]·exp(u[t,i])·b[t]    =    (t, x) ↦ x[i]·s[i]    with the slices s of (t, i) ↦ exp(u[t,i])·b[t]

A product is cut into its factors where it would have more axes than they have.

Invariant: what is sliced mentions no state and calls no solver and no map.
"""

from __future__ import annotations

from combdiff.ir.domains import Function, Space
from combdiff.ir.indices import Affine, Coordinate, Delta, Guard, delta
from combdiff.ir.inlining import free_indices, is_call
from combdiff.ir.rewriting import Rewriter
from combdiff.ir.steps import OpenStep
from combdiff.ir.substitution import Names, apply, subterms
from combdiff.ir.terms import Apply, Lambda, Mul, Term, Var, mul, total
from combdiff.ir.types import type_of


class Slicing(Rewriter):
    """Puts slices in place of what mentions the number of the step and no state."""

    def __init__(self, step: OpenStep, names: Names) -> None:
        super().__init__()
        self.index = step.index
        self.names = names
        self.outside = frozenset(v for v in step.body.free if v != step.index) - frozenset(step.states)
        self.slices: dict[Term, Var] = {}

    def run(self, term: Term) -> Term:
        """The term without the number of the step."""
        return super().run(term) if self.index in term.free else term

    def node(self, term: Term) -> Term:
        """A slice, where a term is slim and known before the steps are done; else what that makes of its parts."""
        if isinstance(term, Mul):
            return self._product(term)
        if self._is_known(term) and self._is_slim(term):
            return self._slice(term)
        if isinstance(term, Apply) and self.index in frozenset().union(*(a.free for a in term.arguments)):
            return self.run(self._by_mask(term))
        return self.inside(term)

    def _by_mask(self, term: Apply) -> Term:
        """x[t] of a tensor x that changes with the steps, as Σ_i δ(i, t) x[i]."""
        space = type_of(term.function)
        assert isinstance(space, Space)
        arguments, summed, masses = [], [], []
        for axis, argument in zip(space.axes, term.arguments, strict=True):
            if self.index in argument.free:
                summed.append(self.names.fresh(Var("i", axis)))
                masses.append(delta(summed[-1], argument, axis))
            arguments.append(summed[-1] if self.index in argument.free else argument)
        return total(summed, mul(*masses, Apply(term.function, tuple(arguments))))

    def _product(self, term: Mul) -> Term:
        """The factors that are known and mention the step go together where that makes no larger tensor."""
        known = [f for f in term.factors if self.index in f.free and self._is_known(f)]
        whole = mul(*known)
        if known and self._is_slim(whole):
            rest = [self.run(f) for f in term.factors if f not in known]
            return mul(*rest, self._slice(whole))
        guards = [f for f in known if isinstance(f, Guard)]  # what is read behind a condition stays behind it
        alone = {f: self._slice(mul(*guards, f)) for f in known if f not in guards}
        return mul(*(alone.get(f) or self.run(f) for f in term.factors))

    def _is_known(self, term: Term) -> bool:
        """Whether a number is made of what is there before the first step, of indices around it and of the step's.

        What is called, a solver or a map, is called in its step.
        """
        if any(map(is_call, subterms(term))):
            return False
        named = frozenset(v for v in term.free if isinstance(v.type, Space | Function))
        space = type_of(term) if not _is_index_form(term) else None
        return isinstance(space, Space) and not space.order and named <= self.outside

    def _is_slim(self, term: Term) -> bool:
        """Whether the tensor of a number over the steps has no more axes than one of those it is made from."""
        own = len(self._own(term))
        leaves = (node for node in subterms(term) if self.index in node.free and _is_leaf(node))
        return own <= max((len(self._own(leaf)) for leaf in leaves), default=0)

    def _own(self, term: Term) -> tuple[Var, ...]:
        return tuple(v for v in free_indices(term) if v != self.index)

    def _slice(self, term: Term) -> Term:
        """The slice of a tensor over the steps, one for equal tensors."""
        own = self._own(term)
        if isinstance(term, Apply) and self._whole(term):
            return apply(self._of(term.function), term.arguments[1:])
        stack = Lambda((self.index, *own), term)
        return apply(self._of(stack), own)

    def _whole(self, term: Apply) -> bool:
        """Whether an access is that of a tensor over the steps at other indices alone."""
        own = self._own(term)
        space = type_of(term.function)
        if not isinstance(term.function, Var) or not isinstance(space, Space) or term.arguments[0] != self.index:
            return False
        return len(set(term.arguments[1:])) == len(own) == len(space.axes) - 1 and all(
            isinstance(a, Var) and a.type == axis for a, axis in zip(term.arguments, space.axes, strict=True)
        )

    def _of(self, stack: Term) -> Var:
        if stack not in self.slices:
            space = type_of(stack)
            assert isinstance(space, Space)
            name = stack.name if isinstance(stack, Var) else "s"
            self.slices[stack] = self.names.fresh(Var(name, Space(*space.axes[1:], dtype=space.dtype)))
        return self.slices[stack]


def _is_index_form(term: Term) -> bool:
    """Whether a term is an index expression."""
    return isinstance(term, Affine) or (isinstance(term, Var) and not isinstance(term.type, Space | Function))


def _is_leaf(term: Term) -> bool:
    return (isinstance(term, Apply) and not is_call(term)) or isinstance(term, Coordinate | Delta | Guard)
