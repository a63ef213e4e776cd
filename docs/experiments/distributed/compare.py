"""Starts the processes, and compares what several have trained with what one has."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from experiments import FOLDER, variables
from experiments.harness import building
from experiments.harness.calls import summary
from interop.cli import CommandError

from .worker import WAYS

NAME = "distributed"
PROCESSES = 2
TOLERANCE = 1e-11
"""In float64, relative to the largest value: sums over the batch are made in another order."""

LIMIT = 600
"""Seconds after which a run is given up."""


def run(processes: int, settings: dict, folder: Path) -> list[dict]:
    """What each process has saved, by rank. One process has no DistributedDataParallel in it."""
    program = [sys.executable, "-P", str(FOLDER / NAME / "rank.py")]
    command = [*program, str(folder), json.dumps(settings)]
    if processes > 1:
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
        command = [*launcher, "--nproc-per-node", str(processes), "--no-python", *command]
    environment = {key: value for key, value in os.environ.items() if key not in ("WORLD_SIZE", "RANK", "MASTER_PORT")}
    # This machine only, also where its name leads elsewhere.
    environment |= variables() | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    log = building.BUILD / NAME / f"{processes}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment)
        try:
            status = process.wait(LIMIT)
        except BaseException as error:  # also an interrupt: no process is to stay behind
            _end(process)
            if isinstance(error, subprocess.TimeoutExpired):
                raise CommandError(f"{processes} processes took longer than {LIMIT} s ({_shown(log)})") from error
            raise
    if status:
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if "Error: " in line]
        raise CommandError(f"training in {processes} processes failed: {(lines or ['no error'])[0]} ({_shown(log)})")
    return [torch.load(folder / f"{processes}-{rank}.pt") for rank in range(processes)]


def _end(process: subprocess.Popen) -> None:
    # torchrun's workers are in sessions of their own; asked to end, it ends them.
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def both(settings: dict) -> tuple[list[dict], list[dict]]:
    """What one process has saved, and what several have."""
    with TemporaryDirectory() as folder:
        return run(1, settings, Path(folder)), run(PROCESSES, settings, Path(folder))


def agreement(one: list[dict], several: list[dict]) -> dict[str, dict[str, dict]]:
    """The largest differences by mode and way; CommandError if one is too large, or if the processes differ."""
    (alone,) = one
    result = {}
    for mode, ways in alone["training"].items():
        result[mode] = {}
        for way, expected in ways.items():
            ranks = [rank["training"][mode][way] for rank in several]
            where = f"{way}, {mode}"
            for what in ("gradients", "parameters"):
                for other in ranks[1:]:
                    if not all(torch.equal(ranks[0][what][name], other[what][name]) for name in ranks[0][what]):
                        raise CommandError(f"{where}: the processes have different {what}")
            found = {what: _difference(where, what, ranks[0], expected) for what in ("gradients", "parameters")}
            found["buckets"] = ranks[0]["reduced"]
            found["shares"] = [rank["share"] for rank in ranks]
            result[mode][way] = found
    return result


def _difference(where: str, what: str, got: dict, expected: dict) -> float:
    largest = 0.0
    if got[what].keys() < expected[what].keys():
        raise CommandError(f"{where}: there are {what} of {', '.join(got[what])} only")
    for name, right in expected[what].items():
        scale = right.abs().max().clamp_min(torch.finfo(right.dtype).tiny)
        difference = ((got[what][name] - right).abs().max() / scale).item()
        if not difference <= TOLERANCE:  # so that nan fails as well
            raise CommandError(f"{where}: {what} of {name} differ from those of one process by {difference:.1e}")
        largest = max(largest, difference)
    return largest


def losses(one: list[dict], several: list[dict], mode: str) -> dict[str, dict[str, list[float]]]:
    """The losses of one process, and the means of several."""
    result = {"one process": {}, "two processes": {}}
    for name, runs in zip(result, (one, several), strict=True):
        for way in WAYS:
            steps = zip(*(run["training"][mode][way]["losses"] for run in runs), strict=True)
            result[name][way] = [round(sum(values) / len(values), 6) for values in steps]
    return result


def times(one: list[dict], several: list[dict]) -> dict[str, dict[str, dict]]:
    """Milliseconds of a step, by the number of processes and by way: median and quartiles."""
    return {
        name: {way: summary([seconds * 1e3 for seconds in runs[0]["seconds"][way]], 3) for way in WAYS}
        for name, runs in (("one process", one), ("two processes", several))
    }


def _shown(log: Path) -> str:
    return f"all of it: {os.path.relpath(log)}"
