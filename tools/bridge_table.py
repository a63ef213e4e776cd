"""``python tools/bridge_table.py``: write the tables in docs/bridges.md, which say what is shared, copied or rejected.

Each cell is the outcome of one function for one case of tests/bridges/bridge_cases.py. It runs in its own process,
which may crash.
"""

import faulthandler
import os
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from marked import with_section

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "bridges.md"
BEGIN = "<!-- cases: written by `python tools/bridge_table.py` -->"
END = "<!-- end of cases -->"

PATIENCE = 60
"""The time limit of a conversion in seconds. Its cell is **SIGALRM** if it takes longer."""

sys.path.insert(0, str(ROOT / "tests" / "bridges"))

import bridge_cases as cases  # noqa: E402
from bridge_checks import bytes_of  # noqa: E402


def outcome(make: Callable, function: Callable) -> str:
    """The outcome of `function` for the object that `make` makes."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # since Python 3.12, fork() warns about threads
        child = os.fork()
    if child == 0:
        torch.set_num_threads(1)  # OpenMP's threads exist only in the parent, and it would wait for them
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE)
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # discards the output of a crash
        try:
            text = _outcome(make, function)
        except Exception as error:
            text = f"FAULT IN THE TABLE: {error!r}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    if text.startswith("FAULT"):
        raise RuntimeError(text)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return text if status == 0 else f"**{signal.Signals(-status).name}**"


def _outcome(make: Callable, function: Callable) -> str:
    warnings.simplefilter("ignore")
    given = make()
    source = _facts(given)
    if isinstance(given, torch.Tensor) and source["bytes"]:
        # Elements that share memory cannot be written one by one.
        source["writable"] = 0 not in [step for size, step in zip(given.shape, given.stride(), strict=True) if size > 1]
    try:
        result = _facts(function(given))
    except Exception as error:
        return type(error).__name__
    if source["bytes"] is None:
        return "**taken**"
    if result["bytes"] != source["bytes"]:
        return "**wrong values**"
    words = ["shared" if result["address"] == source["address"] or not source["bytes"] else "copied"]
    if result["shape"] != source["shape"]:
        same_rank = len(result["shape"]) == len(source["shape"])
        words.append("other shape" if same_rank else f"{len(result['shape'])}-d")
    if words[0] == "shared" and result["writable"] != source["writable"]:
        words.append("writable" if result["writable"] else "read-only")
    return ", ".join(words)


def _facts(thing) -> dict:
    """The address, bytes, shape and writability of an array, a tensor or a buffer."""
    if isinstance(thing, torch.Tensor):
        return _facts_of_tensor(thing)
    if isinstance(thing, np.ndarray):
        writable = thing.flags.writeable
        return {"address": thing.ctypes.data, "bytes": thing.tobytes(), "shape": thing.shape, "writable": writable}
    try:
        view = memoryview(thing)
    except TypeError:
        return {"bytes": None}
    # NumPy cannot read every buffer's format.
    flat = np.frombuffer(view, np.uint8) if view.c_contiguous and view.nbytes else np.asarray(view)
    return {
        "address": flat.ctypes.data,
        "bytes": view.tobytes(),
        "shape": view.shape,
        "writable": not view.readonly,
    }


def _facts_of_tensor(tensor: torch.Tensor) -> dict:
    try:
        values = bytes_of(tensor.detach().resolve_conj().resolve_neg())
        address = tensor.data_ptr()
    except (RuntimeError, NotImplementedError, AttributeError):  # it has no memory, or is not strided
        return {"bytes": None}
    return {"address": address, "bytes": values, "shape": tuple(tensor.shape), "writable": True}


def table(head: str, makers: dict[str, Callable], columns: dict[str, Callable[[str], Callable]]) -> str:
    """A table with a row for each case. Cases of dtypes share a row if all of their outcomes are the same."""
    rows: dict[str, list[str]] = {}
    joined: dict[tuple[str, ...], list[str]] = {}
    for name, make in makers.items():
        cells = [outcome(make, column(name)) for column in columns.values()]
        if name.startswith(cases.DTYPES):
            joined.setdefault(tuple(cells), []).append(name.partition(": ")[2])
        else:
            rows[name] = cells
    lines = [[", ".join(names), *cells] for cells, names in joined.items()] + [[n, *cells] for n, cells in rows.items()]
    top = [f"| {' | '.join([head, *columns])} |", "|---" * (len(columns) + 1) + "|"]
    return "\n".join(top + [f"| {' | '.join(line)} |" for line in lines])


def section() -> str:
    """The tables for arrays, tensors and buffers."""

    def same(columns):
        return {title: lambda _, function=function: function for title, function in columns.items()}

    buffers = {
        title: lambda name, function=function: lambda obj: function(name, obj, cases.BUFFERS[name][1])
        for title, function in cases.BUFFER_COLUMNS.items()
    }
    return "\n\n".join(
        [
            f"torch {torch.__version__.partition('+')[0]}, NumPy {np.__version__}.",
            table("an array", cases.ARRAYS, same(cases.ARRAY_COLUMNS)),
            table("a tensor", cases.TENSORS, same(cases.TENSOR_COLUMNS)),
            table("a buffer", {name: make for name, (make, _) in cases.BUFFERS.items()}, buffers),
        ]
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    text = PAGE.read_text(encoding="utf-8")
    new = with_section(text, BEGIN, END, section())
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(new, encoding="utf-8")
    elif new != text:
        raise SystemExit("docs/bridges.md is not what the functions do; run: python tools/bridge_table.py")
