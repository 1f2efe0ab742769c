"""The e-graph: terms in, classes of equal terms inside, the cheapest of each class out.

In the order in which data meets them: `budget`, `vocabulary` (numbers and domains as text), `context` (what is known
beside the term), `matrices` (tensors as expressions in matrices), `encoding` (terms to egglog and back), `extraction`
(the cheapest term), `provenance` (what was done, noted), `settled` (terms that no law changes), `saturation` (the
schedule), `programs` (a whole let program at once) and `replay` (which laws lead from one term to another).
"""
