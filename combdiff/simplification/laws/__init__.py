"""Rule files: egglog programs in the vocabulary of rules/README.md, read as data.

In the order in which data meets them: `syntax` (text → commands, with places), `computation` (what a law of a user
may compute), `patterns` (laws as egglog matches them), `declarations` (primitives that a file adds), `loading` (the
built-in files, those a user gives and those that packages install) and `reach` (which laws can fire on a term).
"""
