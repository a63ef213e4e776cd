"""Whether this package is imported for a command: then interop/__main__.py decides what is imported and checked.

``python -m interop doctor`` has to run where ``import interop`` fails, and ``interop-config``, which build systems call
many times, should not wait for torch. Both import the package before they get a word in.
"""

import re
import sys
from pathlib import Path

__all__ = ["is_command"]


def is_command() -> bool:
    """Whether this process is ``python -m interop ...`` or ``interop-config``."""
    arguments = getattr(sys, "argv", [""])
    if arguments[:1] != ["-m"]:
        return bool(arguments) and Path(arguments[0]).name == "interop-config"
    # `python -m` puts "-m" in front while it looks for a module. In the command line as it was typed, the module's name
    # stands before its arguments, perhaps in one word with options.
    return re.fullmatch(r"(-\w*m)?interop", sys.orig_argv[-len(arguments)]) is not None
