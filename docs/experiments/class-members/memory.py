"""Measures what an instance takes: the C heap's own account, in a process whose Python allocates there too."""

import ctypes
import gc
import json
import os
import subprocess
import sys
from itertools import repeat

import torch

from experiments import variables
from interop.cli import CommandError

from . import ways

SHARED, OWN = "all of one tensor", "each of a tensor of its own"


def measure(number: int) -> dict[str, dict[str, int]]:
    """Bytes of an instance, by what is counted and by way."""
    code = f"from experiments import load; load({ways.NAME!r}, 'memory').show({number})"
    # Without it, Python takes small objects out of pools of its own, which malloc knows nothing about.
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=os.environ | variables() | {"PYTHONMALLOC": "malloc"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CommandError(f"memory cannot be measured: {(done.stderr.strip() or 'no output').splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def show(number: int) -> None:
    """Measure in this process, and print it."""
    sizes = {way: sys.getsizeof(kind(torch.ones(1))) for way, kind in ways.classes().items()}
    one = torch.ones(1)
    shared = {way: _each(kind, list(repeat(one, number))) for way, kind in ways.classes().items()}
    own = {}
    for way, kind in ways.classes().items():
        before = _allocated()
        kept = [kind(torch.ones(1)) for _ in range(number)]
        own[way] = round((_allocated() - before - sys.getsizeof(kept)) / number)
        del kept
    print(json.dumps({"sys.getsizeof": sizes, SHARED: shared, OWN: own}))


def _each(kind: type, tensors: list) -> int:
    before = _allocated()
    kept = list(map(kind, tensors))
    each = (_allocated() - before - sys.getsizeof(kept)) / len(kept)
    return round(each)


class _MallInfo(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks")),
        *((name, ctypes.c_size_t) for name in ("uordblks", "fordblks", "keepcost")),
    ]


def _allocated() -> int:
    """Bytes that malloc has given out, with its own bookkeeping."""
    gc.collect()
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = _MallInfo
    info = mallinfo()
    return info.uordblks + info.hblkhd
