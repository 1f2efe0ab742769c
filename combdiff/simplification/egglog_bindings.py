"""egglog's compiled module, without the Python front end around it, whose import takes ten times as long.

    bindings().EGraph()             what `egglog.bindings.EGraph()` is; the package egglog itself is not imported

Invariant: it is the same module, whether the package egglog is imported before, after or never.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from typing import Any

NAME = "egglog.bindings"


@cache
def bindings() -> Any:
    """The module `egglog.bindings`, loaded where it is first needed."""
    if NAME in sys.modules:
        return sys.modules[NAME]
    package = find_spec("egglog")
    found = PathFinder.find_spec(NAME, package.submodule_search_locations) if package else None
    spec = spec_from_file_location("combdiff.bindings", found.origin) if found and found.origin else None
    if spec is None or spec.loader is None:
        return import_module(NAME)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
