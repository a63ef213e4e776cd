"""``python -m opdb.run [all | 0.05 | NAME ...]``: compares all operators, or some, and reports.

The compiled modules and the report go to build/tests/operators.
"""

import json
import sys
import time
import traceback
import warnings
from pathlib import Path

import torch
from conftest import fingerprint

from opdb import FOLDER
from opdb.collect import collect, remembered
from opdb.modules import Modules
from opdb.processes import in_processes
from opdb.report import show, summary
from opdb.results import Run
from opdb.samples import choose
from opdb.shapes import surface
from opdb.side_by_side import Comparison


def main(chosen: list[str]) -> bool:
    warnings.simplefilter("ignore")  # some samples warn by design
    torch.set_num_threads(1)  # the order of summation must not depend on the machine's load
    started = time.monotonic()
    built_from = fingerprint()
    found_by = fingerprint(Path(__file__).parent)
    # The choice changes whenever the inputs of the build do. Until then it stays the same, and is already built.
    seed = int(found_by[:8], 16)
    kind, operators = choose(chosen, seed)
    folder = FOLDER / kind
    surface()  # once here, not in each process
    shapes = remembered(folder / "shapes.json", [found_by, chosen], lambda: collect(operators))
    collected = time.monotonic()
    print(f"{len(shapes)} shapes of calls, found in {collected - started:.0f} s", flush=True)
    modules = Modules(folder, shapes.values(), built_from, lambda line: print(line, flush=True))
    built = time.monotonic()
    run = Run()
    for part in in_processes(Comparison(modules).operator, operators):
        run += part
    seconds = {
        "collecting": round(collected - started, 1),
        "building": round(built - collected, 1),
        "comparing": round(time.monotonic() - built, 1),
    }
    report = summary(run, operators, modules, seed if kind == "some" else None, seconds)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    show(report)
    return not report["failures"]


if __name__ == "__main__":
    try:
        sys.exit(0 if main(sys.argv[1:] or ["all"]) else 1)
    except Exception:
        traceback.print_exc()
        sys.exit(2)
