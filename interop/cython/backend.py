"""Keeps the two backends apart: `torch.stable`, for many releases of torch, and all else, for the one that is there."""

import re
from collections.abc import Iterable
from pathlib import Path

from interop.cython.dependencies import read_source, wrong_line

__all__ = ["check_backend"]


def check_backend(read: Iterable[str], of_user: Iterable[str], pxd: Path, stable: bool) -> None:
    """Raise SyntaxError if, of our declarations in `pxd`, those that are `read` are not for a module that is `stable`.

    The C++ compiler would say so as well, in headers of torch's.
    """
    ours = [Path(path).relative_to(pxd) for path in read if Path(path).is_relative_to(pxd)]
    wrong = next((path for path in sorted(ours) if ("stable" in path.parts) is not stable), None)
    if wrong is None:
        return
    module = ".".join(wrong.with_suffix("").parts).removesuffix(".__init__")
    if stable:
        message = f"{module} is for one release of torch, and this module for many: it can cimport torch.stable"
    else:
        message = (
            f"{module} needs a module that is built with stable='2.11', say, the oldest torch that it is to run with"
        )
    cimport = rf"^[ \t]*(?:from|cimport)[ \t]+(?={re.escape(module)}\b(?!\.))"
    users = list(of_user)
    path = next((one for one in users if re.search(cimport, read_source(one), re.MULTILINE)), users[0])
    raise wrong_line(message, path, cimport)
