"""Finds leaks by repetition: calls each test that has passed again and again, and checks that nothing grows."""

import contextlib
import ctypes
import functools
import gc
import sys
import time

import numpy as np
import pytest
import torch
from hypothesis.strategies import DataObject

# A quantity that changes in every batch, by one or more per call, is a leak. Occasional changes are not.
WARM_UP, BATCHES, CALLS = 3, 4, 3

# Seconds. Longer tests are not repeated: most of them start processes, whose memory this process cannot measure.
SLOW = 1.5

# Maximum number of hypothesis' examples kept from the first run of a test.
EXAMPLES = 20

# A leaked reference to an object that lives on anyway takes no memory, so references to these are counted: the
# singletons that native code returns most often, and the tensor type, to which each tensor holds a reference.
COUNTED = {"None": None, "True": True, "False": False, "torch.Tensor": torch.Tensor}

_in_use = ctypes.CDLL(None).__sanitizer_get_current_allocated_bytes
_in_use.restype = ctypes.c_size_t


class Growth:
    """The pytest plugin.

    Parameters
    ----------
    report
        The file for the leaks.
    left_out
        A list that receives the name of each test that is not repeated, and the reason.
    """

    def __init__(self, report, left_out):
        self.report = report
        self.left_out = left_out
        gc.freeze()  # otherwise torch's own objects make each collection below take 0.15 s

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        examples = []
        with recorded(pyfuncitem.obj, examples):
            start = time.monotonic()
            result = yield
            seconds = time.monotonic() - start
        call = self.repetition(pyfuncitem, seconds, examples)
        if call is None:
            return result
        try:
            leaked = leaks(call)
        except Exception as error:
            error.add_note("The test passed once and failed when it was repeated, as `make leaks` does with each test.")
            raise
        if leaked:
            text = f"{pyfuncitem.nodeid} leaks; each call changes {leaked}"
            with open(self.report, "a") as file:
                file.write(f"{text}\n")
            pytest.fail(text, pytrace=False)
        return result

    def repetition(self, item, seconds, examples):
        """A function that repeats a test that took `seconds`; None, with the reason noted, if it is not repeated."""
        reason = None
        if hasattr(item.obj, "hypothesis"):
            inner = item.obj.hypothesis.inner_test
            if any(isinstance(one, DataObject) for _, named in examples for one in named.values()):
                reason = "it draws while it runs"
        else:
            if seconds > SLOW:  # hypothesis tests repeat only a few of a few hundred examples
                reason = f"it takes more than {SLOW} s"
            arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
            inner, examples = item.obj, [((), arguments)]
        if reason:
            self.left_out.append((item.nodeid, f"run once and not repeated, because {reason}"))
            return None

        def call():
            for positional, named in examples:
                inner(*positional, **named)

        return call


@contextlib.contextmanager
def recorded(test, examples):
    """Keeps the first examples of hypothesis, to repeat them without it, because it retains a little of each run."""
    handle = getattr(test, "hypothesis", None)
    if handle is None:
        yield
        return
    inner = handle.inner_test

    @functools.wraps(inner)
    def recording(*positional, **named):
        if len(examples) < EXAMPLES:
            examples.append((positional, named))
        return inner(*positional, **named)

    handle.inner_test = recording
    try:
        yield
    finally:
        handle.inner_test = inner


def leaks(call) -> str:
    """The quantities that change with each call, and by how much; an empty string if none does."""
    for _ in range(WARM_UP):
        call()
    names = ["memory in use (bytes)", *(f"references to {name}" for name in COUNTED)]
    history = np.empty((BATCHES + 1, len(names)), np.int64)  # allocated before the first measurement
    measure()  # the first call clears what earlier tests left
    history[0] = measure()
    for batch in range(BATCHES):
        for _ in range(CALLS):
            call()
        history[batch + 1] = measure()
    steps = np.diff(history, axis=0) / CALLS
    # The smallest change, if all have one sign. A decrease is a fault too: it drops a reference that is not ours.
    steady = np.maximum(steps.min(0), 0) + np.minimum(steps.max(0), 0)
    return ", ".join(f"{name} by {change:+.0f}" for name, change in zip(names, steady, strict=True) if abs(change) >= 1)


def measure() -> list[int]:
    """The bytes in use in ASan's allocator, and the reference counts. A clean test changes none of them."""
    gc.collect()
    if "dlpack_structs" in sys.modules:
        sys.modules["dlpack_structs"].forget()
    # Python's type attribute cache keeps the name of each look-up, and fills with copies of the same name.
    ctypes.pythonapi.PyType_ClearCache()
    return [_in_use(), *map(sys.getrefcount, COUNTED.values())]
