"""Shares of a sum by a name: p[i] = t[i] / Σ_j t[j], where a program is made of them.

    s = Σ_j t[j] in t[d] (q[d] − (Σ_i q[i] t[i]) / s) / s   →   p[i] = t[i] / Σ_j t[j] in p[d] (q[d] − Σ_i q[i] p[i])

A softmax has derivatives that are short in its own values, which the chain rule tears into numerators and sums.

Invariant: the value is unchanged; every share is read where its numerator and the sum's inverse were multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from combdiff.ir import (
    Add,
    Apply,
    Lambda,
    Mul,
    Names,
    Number,
    Rewriter,
    Space,
    Sum,
    Term,
    Var,
    add,
    apply,
    axes_of,
    dtype_of,
    factors_of,
    items_of,
    joined,
    lambda_,
    let,
    mul,
    put_back,
    raised,
    split,
    substitute,
    subterms,
    total,
    values_of,
)
from combdiff.simplification.egraph.extraction import index_variables
from combdiff.simplification.normal_form.quotients import exponents, with_divisors_in_front

Powers = Mapping[Term, int]
"""The factors of a product by their bases."""
Bindings = Sequence[tuple[Var, Term]]
Part = tuple[Term, int]
"""A base and its exponent; a product may have several of one base."""


def with_named_shares(body: Term) -> Iterator[Term]:
    """The let program with the shares of each definition that is a Σ over one index as a definition."""
    bindings, result = split(body)
    names = Names(body)
    for number, (var, value) in enumerate(bindings):
        outer, summed = (value.parameters, value.body) if isinstance(value, Lambda) else ((), value)
        if not isinstance(summed, Sum) or len(summed.indices) != 1:
            continue
        shares = _Shares(var, outer, summed, names)
        later = [(other, shares.run(term)) for other, term in bindings[number + 1 :]]
        items = [shares.run(item) for item in items_of(result)]
        if not any(shares.share in term.free for term in (*(term for _, term in later), *items)):
            continue
        is_read = any(var in term.free for term in (*(term for _, term in later), *items))
        share = shares.definition if is_read else put_back(shares.definition, {var: value})
        kept = bindings[: number + is_read]
        found = let([*kept, (shares.share, share), *later], joined(result, items))
        yield from _with_constants_apart(found, shares.share)
        yield found


def with_averages_apart(body: Term) -> Iterator[Term]:
    """The let program with what shares that have a name do not average apart, for each of them."""
    bindings = dict(split(body)[0])
    for var, value in bindings.items():
        if _is_share(value, bindings):
            yield from _with_constants_apart(body, var)


def _is_share(value: Term, definitions: Mapping[Var, Term]) -> bool:
    """Whether a tensor is f(…, i) / Σ_j f(…, j), so that it adds up to 1 over its last index."""
    if not isinstance(value, Lambda):
        return False
    powers, index = exponents(value.body), value.parameters[-1]
    for base, n in powers.items():
        summed = put_back(base, definitions) if n == -1 else base
        if isinstance(summed, Sum) and len(summed.indices) == 1 and summed.indices[0].type == index.type:
            addend = exponents(substitute(summed.body, {summed.indices[0]: index}))
            if addend == {each: m for each, m in powers.items() if each is not base}:
                return True
    return False


def _with_constants_apart(body: Term, share: Var) -> Iterator[Term]:
    """The program with what shares do not average apart: Σ_i p[i] (1 + f[i]) is 1 + Σ_i p[i] f[i].

    Also where a definition adds it, t[i] = 1 + f[i].
    """
    bindings, result = split(body)
    averages = _Averages(share)
    changed, items = _rewritten(averages, share, bindings, result)
    if averages.found:
        yield let(changed, items)
    averaged = averages.definitions_in(body)
    for number, (var, value) in enumerate(bindings):
        if not isinstance(value, Lambda) or var not in averaged:
            continue
        terms = _terms(value.body, opened=True)
        constants = [term for term in terms if value.parameters[-1] not in term.free]
        if constants and len(terms) > 1:
            of_names = _AveragesOfNames(averages, var, Lambda(value.parameters, add(*constants)))
            later, items = _rewritten(of_names, var, bindings[number + 1 :], result)
            if not of_names.is_read_whole:
                rest = lambda_(value.parameters, add(*(term for term in terms if term not in constants)))
                yield let([*bindings[:number], (var, rest), *later], items)


def _rewritten(rewriter: Rewriter, read: Var, bindings: Bindings, result: Term) -> tuple[Bindings, Term]:
    """Bindings and a result with those that read a name rewritten."""

    def run(term: Term) -> Term:
        return rewriter.run(term) if read in term.free else term

    return [(var, run(value)) for var, value in bindings], joined(result, map(run, items_of(result)))


def _terms(value: Term, *, opened: bool = False) -> tuple[Term, ...]:
    """The terms of a sum, and of a number times one, if `opened` of any product with one."""
    sums = [factor for factor in factors_of(value) if isinstance(factor, Add)]
    others = [factor for factor in factors_of(value) if not isinstance(factor, Add)]
    if len(sums) != 1 or not (opened or all(isinstance(other, Number) for other in others)):
        return (value,)
    return tuple(mul(*others, term) for term in sums[0].terms)


def _opened(term: Term) -> Term:
    """A sum with the sums in it, and numbers times sums, as its own terms; other terms as they are."""
    return add(*(part for each in term.terms for part in _terms(each))) if isinstance(term, Add) else term


class _Averages(Rewriter):
    """Reads c + Σ_i p[i] t[i] for Σ_i p[i] (c + t[i])."""

    def __init__(self, share: Var) -> None:
        super().__init__()
        self.share = share
        self.found = False

    def node(self, term: Term) -> Term:
        """The term with what does not depend on the index apart."""
        new = self.inside(term)
        if isinstance(new, Sum):
            return self._apart(new)
        return new if new is term else _opened(new)

    def _apart(self, sum_: Sum) -> Term:
        factors = factors_of(sum_.body)
        for index in sum_.indices:
            shares = [factor for factor in factors if self.is_share(factor, index)]
            sums = [factor for factor in factors if isinstance(factor, Add) and index in factor.free]
            others = [factor for factor in factors if factor not in shares and factor not in sums]
            if len(shares) == len(sums) == 1 and not any(index in other.free for other in others):
                constants = [term for term in _terms(sums[0]) if index not in term.free]
                averaged = [term for term in _terms(sums[0]) if index in term.free]
                if constants:
                    self.found = True
                    rest = [each for each in sum_.indices if each is not index]
                    outside = total(rest, mul(*others, add(*constants)))
                    return add(outside, total(sum_.indices, mul(*shares, *others, add(*averaged))))
        return sum_

    def definitions_in(self, body: Term) -> set[Term]:
        """The names of which there are averages, Σ_i p[i] t[i], in a let program."""
        sums = (node for value in values_of(body) for node in subterms(value) if isinstance(node, Sum))
        return {read.function for node in sums if (read := self.definition_in(node))}

    def definition_in(self, sum_: Sum) -> Apply | None:
        """What a Σ over all shares is of, if it is of these times an element of a name alone."""
        factors, index = factors_of(sum_.body), sum_.indices[0]
        shares = [factor for factor in factors if self.is_share(factor, index)]
        read = [factor for factor in factors if isinstance(factor, Apply) and factor not in shares]
        if not len(sum_.indices) == len(shares) == len(read) == 1 or len(factors) != 2:
            return None
        *others, last = read[0].arguments
        return read[0] if last is index and not any(index in other.free for other in others) else None

    def is_share(self, factor: Term, index: Var) -> bool:
        """Whether a factor is the shares, of which a Σ over an index takes all."""
        if not isinstance(factor, Apply) or factor.function is not self.share:
            return False
        *others, last = factor.arguments
        return last is index and index.type == axes_of(self.share)[-1] and not any(index in o.free for o in others)


class _AveragesOfNames(Rewriter):
    """Reads c + t for a definition t, and c + Σ_i p[i] t[i] for Σ_i p[i] t[i]."""

    def __init__(self, averages: _Averages, var: Var, constant: Lambda) -> None:
        super().__init__()
        self.averages, self.var, self.constant = averages, var, constant
        self.is_read_whole = False

    def node(self, term: Term) -> Term:
        """The term with the constant, which does not depend on the last index, apart."""
        if isinstance(term, Sum) and (read := self.averages.definition_in(term)) and read.function is self.var:
            return add(apply(self.constant, read.arguments), term)
        if isinstance(term, Apply) and term.function is self.var:
            arguments = tuple(map(self.run, term.arguments))
            return add(apply(self.constant, arguments), apply(self.var, arguments))
        self.is_read_whole |= term is self.var
        new = self.inside(term)
        return new if new is term else _opened(new)


class _Shares(Rewriter):
    """Reads f(i) / s[…] as p[…, i], where s[…] is Σ_i f(i)."""

    def __init__(self, sums: Var, outer: tuple[Var, ...], summed: Sum, names: Names) -> None:
        super().__init__()
        self.sums, self.outer, self.summed = sums, outer, summed
        own = (*outer, *summed.indices)
        space = Space(*(index.type for index in own), dtype=dtype_of(summed))  # type: ignore[arg-type]
        self.share = names.fresh(Var("p", space))
        new = names.indices(space.axes)
        share = mul(summed.body, raised(apply(sums, outer), -1))
        self.definition = lambda_(new, substitute(share, dict(zip(own, new, strict=True))))

    def node(self, term: Term) -> Term:
        """The term with its products of addends and inverse sums as shares."""
        new = self.inside(term)
        if not isinstance(new, Mul):
            return new
        found = self._joined(mul(*(part for factor in new.factors for part in with_divisors_in_front(factor))))
        return found if self.share in found.free else new

    def _joined(self, product: Term) -> Term:
        """A product in which no addend is left beside an inverse of the sum, nor in a Σ beside one."""
        powers = exponents(product)
        for base, count in powers.items():
            head = base.function if isinstance(base, Apply) else base
            if head is self.sums and count < 0 and (found := self._share(powers, base) or self._in_sum(powers, base)):
                return self._joined(mul(*(raised(each, n) for each, n in found)))
        return product

    def _share(self, powers: Powers, base: Term) -> list[Part] | None:
        """The parts of a product with an addend of the sum, and its inverse, as a share: as often as both are there."""
        at = base.arguments if isinstance(base, Apply) else ()
        addends, (index,) = Lambda((*self.outer, *self.summed.indices), self.summed.body), self.summed.indices
        indices = {i for each in powers for i in index_variables(each) if i.type == index.type}
        for i in sorted(indices, key=lambda i: i.name):
            addend = exponents(apply(addends, (*at, i)))
            often = min(-powers[base], *(powers.get(each, 0) // n for each, n in addend.items()))
            if often > 0:
                first = next(each for each in powers if each in addend)
                share = {first: (apply(self.share, (*at, i)), often)}
                left = {**addend, base: -1}
                parts = ((each, n - often * left.get(each, 0)) for each, n in powers.items())
                return [part for each, n in parts for part in (*filter(None, (share.get(each),)), (each, n))]
        return None

    def _in_sum(self, powers: Powers, base: Term) -> list[Part] | None:
        """The parts of a product with an inverse of the sum put into a Σ among them, where that makes a share there."""
        for factor, n in powers.items():
            if isinstance(factor, Sum) and n == 1 and base.free.isdisjoint(factor.indices):
                whole = mul(factor.body, raised(base, -1))
                inside = self._joined(whole)
                if inside is not whole:
                    left = [(each, n + (each is base)) for each, n in powers.items() if each is not factor]
                    return [(total(factor.indices, inside), 1), *left]
        return None
