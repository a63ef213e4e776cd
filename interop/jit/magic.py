"""``%load_ext interop`` and ``%%torch_cython``: Cython cells in IPython and Jupyter."""

import re
import shlex
from pathlib import Path
from types import ModuleType
from typing import cast

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import HTML, display

from interop.jit.diagnostics import BuildError
from interop.jit.loading import module_of_text
from interop.jit.options import checked

__all__ = ["TorchCythonMagics", "load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """Register ``%%torch_cython``; IPython calls it for ``%load_ext interop``."""
    ipython.register_magics(TorchCythonMagics)


def unload_ipython_extension(ipython: InteractiveShell) -> None:
    """Remove ``%%torch_cython``; IPython calls it for ``%unload_ext interop``. Names that cells have defined stay."""
    ipython.magics_manager.magics["cell"].pop("torch_cython", None)


@magics_class
class TorchCythonMagics(Magics):
    """The cell magic ``%%torch_cython``."""

    @magic_arguments()
    @argument("-a", "--annotate", action="store_true", help="show which lines use Python, and the C++ of each line")
    @argument("-f", "--force", action="store_true", help="compile the cell even if it is unchanged")
    @argument("--verbose", action="store_true", help="print the commands and their output")
    @argument(
        *("-c", "--compile-args"),
        action="append",
        default=[],
        metavar="ARGS",
        help="flags for the C++ compiler, as in -c=-O3 or -c '-O3 -march=native'; may be repeated",
    )
    @argument(
        *("-n", "--name"),
        help="the module's name; a cell that registers operators needs one, so that it replaces its earlier state",
    )
    @argument("--stable", metavar="TORCH", help="compile for this release of torch and later ones, such as 2.11")
    @argument("-h", "--help", action="store_true", help="show this help, and compile nothing")
    @cell_magic
    def torch_cython(self, line: str, cell: str) -> None:
        """Compile the cell with `interop.load_inline`, and import the names that it defines."""
        given = parse_argstring(self.torch_cython, line)
        if given.help:
            print(self.torch_cython.parser.format_help())
            return
        flags = [flag for words in given.compile_args for flag in shlex.split(words.strip("'\""))]
        options = {"extra_compile_args": flags, "annotate": given.annotate, "stable": given.stable}
        options = checked("%%torch_cython", {name: value for name, value in options.items() if value})
        text = "\n" + cell  # counts the magic's own line, as the line numbers of a notebook do
        try:
            module = module_of_text(
                text, None, given.name, options, force=given.force, verbose=given.verbose, label="cell", prefix="cell"
            )
        except BuildError as error:
            # Only the message helps; a traceback of the magic would hide it.
            lines = f"BuildError: {error}".splitlines()
            vars(error)["_render_traceback_"] = lambda: lines
            raise
        cast(InteractiveShell, self.shell).push(_public(module), interactive=True)
        if given.annotate:
            display(HTML(_report(module)))


def _public(module: ModuleType) -> dict[str, object]:
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    return {name: getattr(module, name) for name in names}


def _report(module: ModuleType) -> str:
    """Cython's report without the HTML page around it."""
    page = Path(str(module.__file__)).with_name(f"{module.__name__}.html").read_text(encoding="utf-8")
    parts = re.findall(r"<style.*?</style>|(?<=<body).*?>(.*)(?=</body>)", page, re.DOTALL)
    style = re.findall(r"<style.*?</style>", page, re.DOTALL)
    return "".join(style) + "".join(parts)
