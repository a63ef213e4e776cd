"""Calls the declared surface with the samples of torch's own operator database, and compares with what torch does.

`samples` has the operators and their samples, `capture` finds out which functions of ATen an operator calls, `shapes`
turns such a call into the ways to write it in Cython, `collect` finds the shapes of all calls that samples make,
`modules` writes and compiles these, `side_by_side` makes each call as torch does and as compiled, `compare` says where
two results differ, `results` holds what was found, `report` puts that into tables, and `run` drives it all, in several
`processes`.
"""

import os

from conftest import BUILD

# The oldest torch of modules for many releases, if such are compiled; else they are for the one that runs.
STABLE = os.environ.get("INTEROP_OPDB_STABLE") or None
FOLDER = BUILD / f"operators{'-stable' if STABLE else ''}"  # for what is compiled, and the report
