"""Finds leaks by repetition: a test that has passed is called again and again, and nothing may grow with the calls."""

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

# What changes in every batch, by one or more a call, is leaked. What is made once, or now and then, is not.
WARM_UP, BATCHES, CALLS = 3, 4, 3

# s. Tests that take longer are not repeated: most of them start processes, whose memory cannot be measured from here.
SLOW = 1.5

# Of those that hypothesis tries in the first run of a test.
EXAMPLES = 20

# A leaked reference to an object that lives on anyway takes no memory. These are what native code returns most often,
# and the type of tensors, of which each tensor holds a reference.
COUNTED = {"None": None, "True": True, "False": False, "torch.Tensor": torch.Tensor}

_in_use = ctypes.CDLL(None).__sanitizer_get_current_allocated_bytes
_in_use.restype = ctypes.c_size_t


class Growth:
    """The pytest plugin.

    Parameters
    ----------
    report
        The file that leaks are written to.
    left_out
        A list that gets the name of each test that is not repeated, and the reason.
    """

    def __init__(self, report, left_out):
        self.report = report
        self.left_out = left_out
        gc.freeze()  # else torch's own objects make each collection below take 0.15 s

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
        """What is called to repeat a test that took some time; None if it is not repeated, and the reason is noted."""
        reason = None
        if hasattr(item.obj, "hypothesis"):
            inner = item.obj.hypothesis.inner_test
            if any(isinstance(one, DataObject) for _, named in examples for one in named.values()):
                reason = "it draws while it runs"
        else:
            if seconds > SLOW:  # of those of hypothesis a few are repeated of a few hundred
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
    """Keeps the first examples that hypothesis tries, to be repeated without it: it remembers a little of each run."""
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
    """What changes with each call, and by how much; an empty string if nothing does."""
    for _ in range(WARM_UP):
        call()
    names = ["memory in use (bytes)", *(f"references to {name}" for name in COUNTED)]
    history = np.empty((BATCHES + 1, len(names)), np.int64)  # made before anything is measured
    measure()  # the first one clears what earlier tests left
    history[0] = measure()
    for batch in range(BATCHES):
        for _ in range(CALLS):
            call()
        history[batch + 1] = measure()
    steps = np.diff(history, axis=0) / CALLS
    # The least of the changes if all have one direction. Down is a fault too: a reference that was not ours is dropped.
    steady = np.maximum(steps.min(0), 0) + np.minimum(steps.max(0), 0)
    return ", ".join(f"{name} by {change:+.0f}" for name, change in zip(names, steady, strict=True) if abs(change) >= 1)


def measure() -> list[int]:
    """The bytes that ASan's allocator has given out, and the numbers of references. A clean test changes none."""
    gc.collect()
    if "dlpack_structs" in sys.modules:
        sys.modules["dlpack_structs"].forget()
    # Python's cache of attributes holds the name that each was looked up with, and fills with copies of the same name.
    ctypes.pythonapi.PyType_ClearCache()
    return [_in_use(), *map(sys.getrefcount, COUNTED.values())]
