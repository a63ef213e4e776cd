"""Three extensions of torch ported from C++ to Cython, each against the original built in the same run."""

import argparse

from experiments.harness.building import native
from experiments.harness.display import progress, say
from experiments.harness.driver import Experiment
from interop.cli import CommandError

from . import measure, originals
from .base import FLAGS, NAME, Port, load_ports

ALL = 99


def run(settings: dict, options: argparse.Namespace) -> dict:
    result = {"ports": {}, "measured": {}}
    for name, port in load_ports().items():
        figures = result["ports"][name] = {"requirement": port.requirement, "missing": "", "installed": {}}
        native(NAME, f"{name}_cython")
        if not options.quick:
            figures["installed"] = _installed(name, port, figures)
        if not figures["missing"] and not originals.available(port):
            figures["missing"] = f"{port.module} is not installed"
        there = not figures["missing"]
        if not there:
            say(f"{name}: without the original; {figures['missing']}")
        against, sizes = ("original", settings["sizes"]) if there else ("reference", 1)
        figures["against"] = against
        figures["agreement"] = measure.agreement(port, against, settings["dtypes"], sizes)
        steps = measure.count_of_cases(port, settings["dtypes"], settings["sizes"], len(settings["threads"]))
        with progress(f"timing {name}", steps) as shown:
            result["measured"][name] = measure.times(port, there, settings, shown)
    return result


def _installed(name: str, port: Port, figures: dict) -> dict[str, dict]:
    """The figures of what pip installs: of ours, and of the original if it can be built here."""
    found = {}
    with progress(f"building {name}", 4) as shown:
        found["ours"] = originals.install_ours(port, name, lambda what: shown(f"ours, {what}")).figures
        try:
            found["original"] = originals.install_original(port, lambda what: shown(f"original, {what}")).figures
        except CommandError as error:
            figures["missing"] = str(error)
    return found


EXPERIMENT = Experiment(
    run,
    settings={"rounds": 11, "block": 0.002, "threads": [1, 2], "sizes": ALL, "dtypes": ALL},
    quick={"rounds": 1, "block": 0.0, "sizes": 1, "dtypes": 1},
    flags=FLAGS,
    builds={NAME: "a minute"},
)
