"""``python -m interop experiments``: run those in docs/experiments of a checkout. Wheels and sdists have none."""

import importlib
import sys
from pathlib import Path

from interop.cli import CommandError

DOCS = Path(__file__).resolve().parent.parent / "docs"
"""The folder of the package `experiments`, if this is a checkout."""

NOT_HERE = (
    "the experiments are not part of an installed package or an sdist: run them in a checkout of torch-interop, "
    "where `make .venv/ready` prepares everything"
)


def main(arguments: list[str]) -> int | None:
    """Run ``python -m interop experiments`` with `arguments`, and return the exit status; None for 0."""
    if not (DOCS / "experiments" / "harness").is_dir():
        if {"-h", "--help"}.intersection(arguments):
            print(f"usage: python -m interop experiments [NAME]\n\n{NOT_HERE[0].upper()}{NOT_HERE[1:]}.")
            return 0
        raise CommandError(NOT_HERE)
    if str(DOCS) not in sys.path:
        sys.path.insert(0, str(DOCS))
    try:
        status: int | None = importlib.import_module("experiments.harness.command").main(arguments)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("rich", "matplotlib", "psutil"):
            raise
        raise CommandError(
            f"the experiments need {missing}; run: pip install matplotlib psutil pybind11 rich"
        ) from error
    return status
