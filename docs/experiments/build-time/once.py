"""Loads a module once for each factor given, in a process of its own, and says what that took, as JSON.

    python once.py WAY SOURCE FOLDER FACTOR...

WAY is interop or cpp_extension. Before each load the factor is written into SOURCE.
"""

import json
import sys
import time
from pathlib import Path

import torch
from torch.utils import cpp_extension

import interop

FLAGS = ["-O2", "-g0"]


def main(way: str, source: str, folder: str, *factors: str) -> None:
    """Run one process of the experiment."""
    path = Path(source)
    template = path.read_text()

    def load():
        if way == "interop":
            return interop.load(path, extra_compile_args=FLAGS)
        return cpp_extension.load(path.stem, [str(path)], extra_cflags=FLAGS, build_directory=folder)

    x, seconds = torch.ones(3), []
    for factor in factors:
        text = template.replace("FACTOR", factor)
        edited = path.with_name(f"edited{path.suffix}")
        if not edited.exists() or edited.read_text() != text:
            edited.write_text(text)
        path = edited
        started = time.perf_counter()
        module = load()
        seconds.append(time.perf_counter() - started)
        if not module.scaled(x).equal(x * float(factor)):
            raise SystemExit(f"{way} has loaded another module than that with the factor {factor}")
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
