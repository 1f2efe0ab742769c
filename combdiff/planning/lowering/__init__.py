"""Terms to operations: scalar terms become arrays over their free indices, equal computations one step.

In the order in which data meets them: `narrow_reads` (sums around cycles counted from elsewhere), `guarded_factors`
(conditions beside what they guard), `joint_iterations` (a loop with a condition and its derivative as one),
`summed_iterations` (sums over the steps of a loop, added up in these), `graph` (equal computations are one step),
`guards`, `products`, `joining`, `folds`, `mask_elimination`, `running_exponentials`, `fourier_sums`, `cyclic_strides`,
`lookups`, `choices` (numbers compared), `hoist_through_views`, `shifts`, `near_one`, `systems` (what a solver
evaluates), `iteration` (what a scan does at each step), `endings` (the condition with which a loop ends), `tiles` (axes
that are joined), `intermediates` (tensors that are only summed over), `lower` (the walk over a term).
"""
