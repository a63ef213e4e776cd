"""Threads that convert, load and compute for a long time: `make soak SECONDS=1800`, or

python tests/soak/run.py [--seconds N] [--threads N] [--valgrind]

Each thread calls the functions in `JOBS` in an order of its own, with new objects and with one that all threads share,
and compares the results. Resident memory must not grow after about a third of the time. A line of JSON has the number
of calls of each job and the faults; the status is 1 if there are any. With MALLOC_PERTURB_ set, freed memory is filled
with other bytes. --valgrind runs all this under memcheck, about thirty times slower, and counts the errors that have a
frame in a module of ours.
"""

import argparse
import collections
import gc
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
import xml.etree.ElementTree as ElementTree
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS.parent / "docs"), str(TESTS), str(TESTS / "bridges")]
os.environ.setdefault("CFLAGS", "-O0 -g0")

import conftest  # noqa: E402
from bridge_cases import ARRAYS, BUFFERS, TENSORS, WITH_DTYPE  # noqa: E402
from test_bridge_lifetimes import LAYERED, ROUNDS  # noqa: E402

import interop  # noqa: E402

REFUSALS = (TypeError, ValueError, BufferError, RuntimeError, NotImplementedError)
GROWTH = 24 << 20
"""Maximum growth of resident memory in bytes: threads' arenas are not emptied at the same moments."""

UNDER_VALGRIND = "INTEROP_UNDER_VALGRIND"
SITE = conftest.BUILD / "site"
MODULE = """
cimport torch
cimport ATen as at
def plus(torch.Tensor x not None):
    return torch.wrap(at.add(x.cdata, x.cdata, {number}))
"""


def arrays(random: random.Random) -> None:
    """Any array, through each importer, which shares its memory or rejects it."""
    array = ARRAYS[random.choice(list(ARRAYS))]()
    sharing = partial(interop.from_array, copy=False)
    for convert in (interop.from_numpy, interop.from_buffer, interop.from_dlpack, sharing):
        try:
            tensor = convert(array)
        except REFUSALS:
            continue
        assert tuple(tensor.shape) == array.shape
        assert not tensor.numel() or tensor.data_ptr() == array.__array_interface__["data"][0]


def tensors(random: random.Random) -> None:
    """Any tensor, through each exporter."""
    tensor = TENSORS[random.choice(list(TENSORS))]()
    for convert in (interop.to_numpy, interop.as_memoryview, interop.TensorBuffer, memoryview, np.asarray):
        try:
            shown = convert(tensor)
        except REFUSALS:
            continue
        if isinstance(tensor, torch.Tensor) and not isinstance(shown, interop.TensorBuffer):
            assert tuple(shown.shape) == tuple(tensor.shape)
    try:
        back = interop.from_dlpack(interop.to_dlpack(tensor))
    except REFUSALS:
        return
    assert back.shape == tensor.shape


def buffers(random: random.Random) -> None:
    """Any exporter of a buffer."""
    name = random.choice(list(BUFFERS))
    make, dtype = BUFFERS[name]
    try:
        tensor = interop.from_buffer(make(), dtype=dtype) if name in WITH_DTYPE else interop.from_buffer(make())
    except REFUSALS:
        return
    assert memoryview(interop.to_numpy(tensor)).nbytes == tensor.nbytes


def chains(random: random.Random) -> None:
    """Memory that makes round trips through converters of ours or of other libraries."""
    ways = {**ROUNDS, **LAYERED}
    name = random.choice(list(ways))
    first = torch.arange(random.randrange(1, 100))  # of int64, as one of the ways expects
    tensor, expected = first, first.clone()
    for _ in range(random.randrange(1, 30)):
        tensor = ways[name](tensor)
    assert tensor.data_ptr() == first.data_ptr()
    del first
    assert torch.equal(tensor, expected)


SHARED = torch.arange(24, dtype=torch.float64).view(4, 6)
BYTES = SHARED.numpy().tobytes()


def shared(random: random.Random) -> None:
    """One tensor that all threads export at the same time."""
    for _ in range(20):
        show = random.choice((interop.to_numpy, interop.as_memoryview, memoryview, np.asarray, bytes))
        assert bytes(memoryview(show(SHARED)).cast("B")) == BYTES
        assert bytes(interop.as_memoryview(interop.from_dlpack(interop.to_dlpack(SHARED)))) == BYTES


CUMSUM = interop.with_arrays(np.cumsum)
PASSED = interop.with_arrays(lambda *args, **kwargs: (args, kwargs))


def calls(random: random.Random) -> None:
    """Functions that know only NumPy, called with any tensor, and nested blocks of the buffer protocol."""
    with interop.enable_buffer_protocol(), interop.enable_buffer_protocol():
        assert torch.equal(CUMSUM(SHARED, axis=1), SHARED.cumsum(1))
    tensor = TENSORS[random.choice(list(TENSORS))]()
    if isinstance(tensor, torch.Tensor):
        try:
            args, kwargs = PASSED(tensor, [tensor], name={"x": tensor})
        except REFUSALS:
            return
        assert args[0] is args[1][0] is kwargs["name"]["x"]


def operators(random: random.Random) -> None:
    """A differentiable function, a registered operator, and errors from kernels."""
    gradients, failing = (conftest.import_from(SITE, name) for name in ("gradients", "failing"))
    x = torch.rand(random.randrange(1, 50), dtype=torch.float64, requires_grad=True)
    y = gradients.exp(x)
    y.sum().backward()
    assert torch.equal(y.detach(), x.detach().exp())
    assert torch.equal(x.grad, y.detach())
    a, b = torch.rand(3, 4), torch.rand(4, 5)
    torch.testing.assert_close(torch.ops.interop_test.scaled_mm(a, b, 2.0), (a @ b) * 2)
    for fail in (torch.ops.interop_test.fail_star, torch.ops.interop_test.fail_plus):
        # Errors of C++, errors of Python, the one that ends generators, and one that only torch has.
        with pytest.raises((RuntimeError, KeyError, failing.Custom, MemoryError, StopIteration)):
            fail(a, random.choice((-1, 0, 1, 4, 5, 6)))


def cython(random: random.Random) -> None:
    """The converters, from Cython."""
    bridged = conftest.import_from(SITE, "bridged")
    size = random.randrange(1, 200)
    assert bridged.numpy_and_back(np.full(size, 2.0)).tolist() == [4.0] * size


_numbers = itertools.count()
_new_modules_until = 0.0


def load(random: random.Random) -> None:
    """Modules from the cache, and new ones in the first quarter of the time, because modules are never unloaded."""
    is_new = random.random() < 0.02 and time.monotonic() < _new_modules_until
    number = next(_numbers) if is_new else 0
    module = interop.load_inline(MODULE.format(number=number))
    assert module.plus(torch.ones(2)).tolist() == [1.0 + number] * 2


JOBS = (arrays, tensors, buffers, chains, shared, calls, operators, cython, load)


def soak(seconds: float, threads: int) -> dict[str, object]:
    """Runs the jobs and returns the results."""
    global _new_modules_until
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # torch calls some kinds of these tensors prototypes
    counts: collections.Counter[str] = collections.Counter()
    faults: list[str] = []
    started = time.monotonic()
    end, _new_modules_until = started + seconds, started + seconds / 4

    def work(seed: int) -> None:
        own = random.Random(seed)
        while time.monotonic() < end and not faults:
            job = own.choice(JOBS)
            try:
                job(own)
            except BaseException:
                faults.append(f"{job.__name__}: {traceback.format_exc()}")
            counts[job.__name__] += 1

    samples = []
    for name in ("operators", "failing"):
        conftest.import_from(SITE, name)
    interop.enable_buffer_protocol()
    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(threads)]
    for worker in workers:
        worker.start()
    process = psutil.Process()
    while any(worker.is_alive() for worker in workers):
        time.sleep(seconds / 200)
        gc.collect()
        samples.append((time.monotonic() - started, process.memory_info().rss))
    early = [rss for at, rss in samples if 0.3 <= at / seconds <= 0.45]
    late = [rss for at, rss in samples if 0.85 <= at / seconds <= 1]
    known = early and late and UNDER_VALGRIND not in os.environ  # valgrind's own memory grows
    grown = round(statistics.median(late) - statistics.median(early)) if known else None
    if grown is not None and grown > GROWTH:
        faults.append(f"resident memory has grown by {grown} bytes")
    return {
        "seconds": round(time.monotonic() - started),
        "threads": threads,
        "perturbed": "MALLOC_PERTURB_" in os.environ,
        "calls": dict(sorted(counts.items())),
        "resident": round(statistics.median(late)) if late else None,
        "grown": grown,
        "faults": faults,
    }


def under_valgrind(arguments: list[str]) -> int:
    """Runs the same command under memcheck; returns 1 if it fails or an error has a frame of ours."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = ["valgrind", "--tool=memcheck", "--leak-check=no", "--xml=yes", f"--xml-file={report}"]
        command += ["--num-callers=40", "--error-limit=no", "--fair-sched=yes", "--child-silent-after-fork=yes"]
        status = subprocess.run(
            [*command, sys.executable, __file__, *arguments],
            env=os.environ | {"PYTHONMALLOC": "malloc", UNDER_VALGRIND: "1"},
        ).returncode
        found = ElementTree.parse(report).getroot().findall("error")
    # memcheck always lists memory that lives until the end, such as types.
    errors = [error for error in found if not error.findtext("kind", "").startswith("Leak_")]
    ours = [error for error in errors if any(map(_is_ours, error.iter("obj")))]
    for error in ours:
        print(error.findtext("kind"), error.findtext("what") or error.findtext("xwhat/text"))
        for frame in error.iter("frame"):
            print("   ", frame.findtext("fn"), frame.findtext("file"), frame.findtext("line"), frame.findtext("obj"))
    print(json.dumps({"valgrind": len(errors), "ours": len(ours)}))
    return int(status != 0 or bool(ours))


def _is_ours(element: ElementTree.Element) -> bool:
    path = Path(element.text or "")
    return path.parent == Path(interop.__file__).parent or conftest.BUILD in path.parents


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--valgrind", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("INTEROP_CACHE_DIR", str(conftest.BUILD / "jit"))
    conftest.build_projects([conftest.PROJECTS / name for name in ("library", "bridges")], SITE)
    if options.valgrind:
        return under_valgrind([f"--seconds={options.seconds}", f"--threads={options.threads}"])
    result = soak(options.seconds, options.threads)
    print(json.dumps(result))
    return int(bool(result["faults"]))


if __name__ == "__main__":
    sys.exit(main())
