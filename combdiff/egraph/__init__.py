"""Simplification by equality saturation in egglog.

From the bottom up: `encoding` (terms as egglog text and back), `deltas` (thinned before saturation), `contraction`
(networks in normal form), `canonical` (names of bound indices under symmetries), `extraction` (the cheapest term of a
class), `saturation` (the schedule) and `sums` (long ones, in groups).
"""
