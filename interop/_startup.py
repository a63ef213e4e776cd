"""Detect whether this package is imported for a command. If so, interop/__main__.py decides what to import and check.

``python -m interop doctor`` must run even if ``import interop`` fails. ``interop-config``, which build systems call
many times, should not wait for torch. Python imports the package before either of them starts.

For a command, importing this module also removes the current folder from `sys.path`.
"""

import sys  # and nothing else: the current folder may shadow any module that is not built in

__all__ = ["is_command"]


def is_command() -> bool:
    """Whether this process is ``python -m interop ...`` or ``interop-config``."""
    arguments = getattr(sys, "argv", [""])
    if arguments[:1] != ["-m"]:
        return bool(arguments) and arguments[0].rpartition("/")[2] == "interop-config"
    # While `python -m` looks for a module, sys.argv[0] is "-m". In the typed command line, the module's name precedes
    # its arguments, and may share a word with options.
    options, _, rest = sys.orig_argv[-len(arguments)].rpartition("interop")
    return not rest and (not options or (options[0] == "-" and options[-1] == "m" and options[1:].isalnum()))


def _leave_folder() -> None:
    """Remove the current folder from `sys.path`, where ``python -m`` looks for modules first.

    No command needs files from there, and a torch.py or random.py would shadow the module that the command needs.
    """
    if sys.argv[:1] == ["-m"] and sys.path and not sys.flags.safe_path:
        del sys.path[0]


if is_command():
    _leave_folder()
