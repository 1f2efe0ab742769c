"""Normal forms: a Σ is a connected network of factors, its δ's solved, its bound indices named canonically.

In the order in which data meets them: `forms` (terms without names), `reindexings`, `canonical` (names under
symmetries), `conditions`, `mixed_radix`, `cyclic_deltas`, `linear_systems`, `around_axes` and `delta_solver` (which
calls these), `fourier_inversion`, `masks`, `places` (counted), `contraction` (networks), `expansion` (sums of
products), `coefficients` (of δ's), `symmetries` (of a value), `orbits` (averages over symmetries, term by term),
`long_sums`, `subnetworks` and `common_subnetworks`, `lengths` (of prints), `joined_networks`, `angles` (added),
`polynomials` (divided), `denominators` and `common_factors`, `quotients`, `shares` (of a sum, by name),
`repeated_parts` (by name), `opened_sums` and `definitions` (that a reader does without), `given_by_steps` and
`unread_results` (of iterations).
"""
