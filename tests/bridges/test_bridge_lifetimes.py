"""How long shared memory lives: on other threads, in chains and cycles, after a fork, at the end of the interpreter."""

import array
import gc
import os
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest
import torch
from bridge_checks import Owner, needs_writable_capsules
from conftest import leaves_daemon_threads, owns_to_the_end

import interop

pytestmark = pytest.mark.native


def on_another_thread(function):
    """The result of `function` on a thread of its own."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


@pytest.mark.parametrize("show", [interop.to_numpy, interop.as_memoryview, interop.TensorBuffer])
def test_what_shows_a_tensor_dies_on_another_thread(show):
    owner = np.ndarray.__new__(Owner, 5)  # not a view: NumPy would keep only its base
    follow = weakref.ref(owner)
    views = [show(interop.from_numpy(owner))]
    del owner
    assert follow() is not None
    on_another_thread(views.clear)
    assert follow() is None


READ_ONLY = {"on_readonly": "share"}
ROUNDS = {
    "dlpack": lambda tensor: interop.from_dlpack(interop.to_dlpack(tensor)),
    "dlpack 1": lambda tensor: interop.from_dlpack(interop.to_dlpack(tensor, max_version=(1, 0))),
    "dlpack, read-only": lambda tensor: interop.from_dlpack(
        interop.to_dlpack(tensor, max_version=(1, 0), readonly=True), **READ_ONLY
    ),
    "a memoryview": lambda tensor: interop.from_buffer(interop.as_memoryview(tensor)),
    "a memoryview, read-only": lambda tensor: interop.from_buffer(
        interop.as_memoryview(tensor, readonly=True), **READ_ONLY
    ),
    "a part of a memoryview": lambda tensor: interop.from_buffer(interop.as_memoryview(tensor)[:]),
    "a TensorBuffer": lambda tensor: interop.from_buffer(interop.TensorBuffer(tensor)),
    "an array": lambda tensor: interop.from_numpy(interop.to_numpy(tensor)),
    "an array, by dlpack": lambda tensor: interop.from_dlpack(interop.to_numpy(tensor)),
}
"""Round trips from a tensor over memory of ours to a tensor over the same memory."""
BY_NUMPY = {
    "numpy's array of numpy's capsule": lambda tensor: interop.from_dlpack(np.from_dlpack(interop.to_numpy(tensor))),
    "numpy's array of our capsule": lambda tensor: interop.from_dlpack(np.from_dlpack(Described(tensor))),
}
"""Round trips through NumPy's arrays of capsules."""
LAYERED = {
    "a view of another class": lambda tensor: interop.from_numpy(interop.to_numpy(tensor).view(Owner)),
    "a view of an array, as a buffer": lambda tensor: interop.from_buffer(interop.to_numpy(tensor)[:]),
    "an array of a memoryview": lambda tensor: interop.from_numpy(np.asarray(interop.as_memoryview(tensor))),
    "an array of a memoryview of an array": lambda tensor: interop.from_numpy(
        np.asarray(memoryview(interop.to_numpy(tensor)))
    ),
    "an array of a buffer of an array": lambda tensor: interop.from_numpy(
        np.frombuffer(pickle.PickleBuffer(interop.to_numpy(tensor)), np.int64)
    ),
    **BY_NUMPY,
    "torch's tensor of our capsule": lambda tensor: torch.from_dlpack(interop.to_dlpack(tensor)),
    "our tensor of torch's capsule": lambda tensor: interop.from_dlpack(torch.utils.dlpack.to_dlpack(tensor)),
}
"""Round trips in which other libraries take part. Each trip adds an owner."""


class Described:
    """A tensor with only the methods of DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, max_version=None, **_):
        return interop.to_dlpack(self.tensor, max_version=max_version)


def memory_of_process():
    """Resident bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measures_the_process(test):
    """For a test that compares the resident memory of the process, which grows below these checkers."""
    for by, reason in (
        ("asan", "AddressSanitizer keeps what was freed, so the process grows"),
        ("leaks", "it runs in the build for AddressSanitizer, which keeps what was freed"),
        ("tsan", "ThreadSanitizer keeps what it has seen, so the process grows"),
    ):
        test = pytest.mark.unchecked(by=by, reason=reason)(test)
    return test


def go_round(convert, tensor, times):
    """The tensor after `times` round trips over the same memory."""
    for _ in range(times):
        tensor = convert(tensor)
    return tensor


@measures_the_process
@pytest.mark.parametrize("make", [torch.arange, lambda n: torch.arange(n).share_memory_()])
@pytest.mark.parametrize("name", ROUNDS)
def test_memory_of_ours_gets_no_further_owner(name, make):
    """However many round trips the memory makes, only the objects of the last remain."""
    first = make(8)
    # A warm-up: makes what is made only once, and fills the holes that earlier tests left.
    tensor = go_round(ROUNDS[name], first, 20_000)
    before = memory_of_process()
    tensor = go_round(ROUNDS[name], tensor, 100_000)
    assert memory_of_process() - before < 2**20, "ten bytes for each round"
    assert tensor.data_ptr() == first.data_ptr()
    del first
    assert tensor.tolist() == list(range(8))


@measures_the_process
@pytest.mark.long
def test_threads_leave_no_memory_behind():
    """A thread keeps the memory of its last tensor for the next one, until it ends."""
    array = np.ones(3)

    def work():
        interop.from_numpy(array)  # dies on this thread

    def start(times):
        for _ in range(times):
            on_another_thread(work)

    start(1000)
    before = memory_of_process()
    start(10_000)
    assert memory_of_process() - before < 2**20, "a tensor and its storage take some 300 bytes"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs_writable_capsules if name in BY_NUMPY else ()) for name in LAYERED]
)
def test_a_long_chain_of_owners_is_freed(name):
    """A thread with a small stack frees 200,000 owners, each of which owns the next."""
    owner = np.arange(8).view(Owner)
    follow = weakref.ref(owner)
    tensors = [go_round(LAYERED[name], interop.from_numpy(owner), 200_000)]
    del owner
    assert tensors[0].tolist() == list(range(8))
    before = threading.stack_size(2**18)
    try:
        on_another_thread(tensors.clear)
    finally:
        threading.stack_size(before)
    gc.collect()
    assert follow() is None


CHAINS_WITHOUT_THE_GIL = """
import interop, numpy, torch

class Sub(numpy.ndarray):
    pass

tensor = torch.arange(8.0)
for _ in range({layers}):
    tensor = interop.from_buffer(interop.to_numpy(tensor)[:].view(Sub))
top = torch.from_numpy(interop.to_numpy(tensor))
del tensor
interop.to_numpy(top)  # from here on its memory counts its owners, without the GIL
if {backward}:
    x = torch.ones(8, requires_grad=True)
    loss = (x * top).sum()
    del top
    loss.backward()
else:
    del top
print("done")
"""


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("layers", [40, 60, 5000])
@pytest.mark.extended
def test_a_chain_whose_first_owner_is_dropped_without_the_gil(forked, layers, backward):
    assert forked(CHAINS_WITHOUT_THE_GIL.format(layers=layers, backward=backward)) == "done\n"


def test_what_a_finalizer_drops_is_gone_at_once():
    """Freeing is deferred only when it is nested deeply."""
    inner = interop.from_numpy(np.ones(3).view(Owner))
    seen = []

    class Outer(np.ndarray):
        def __del__(self):
            follow = weakref.ref(inner_owner.pop())
            tensors.clear()
            seen.append(follow())

    inner_owner = [np.ones(3).view(Owner)]
    tensors = [interop.from_numpy(inner_owner[0])]
    outer = interop.from_numpy(np.ones(3).view(Outer))
    del outer
    assert seen == [None]
    assert inner.tolist() == [1, 1, 1]


def test_buffers_are_released_on_another_thread():
    owner = np.arange(8)
    views = [interop.as_memoryview(interop.from_numpy(owner)), interop.TensorBuffer(interop.from_numpy(owner))]
    count = sys.getrefcount(owner)
    on_another_thread(views.clear)
    assert sys.getrefcount(owner) == count - 2


def test_views_of_one_tensor_on_many_threads():
    """All threads make and drop views at once; the memory keeps its count of owners and its address."""
    tensor = torch.arange(64)
    kept, start = [], threading.Barrier(4)

    def work():
        start.wait()
        for _ in range(500):
            kept.append(interop.to_numpy(tensor)[1:])
            memoryview(interop.TensorBuffer(tensor, readonly=True)).release()
            kept.append(interop.from_buffer(interop.as_memoryview(tensor)))
            kept.pop(0)
        return True

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = tensor.tolist()
    tensor.set_(torch.zeros(3, dtype=torch.int64))
    gc.collect()
    assert len(kept) == 2000
    assert all(one.tolist() in (expected, expected[1:]) for one in kept)


def test_a_chain_through_everything_is_one_allocation():
    """numpy -> tensor -> memoryview -> numpy -> tensor, of which only the last is kept."""
    first = np.arange(6, dtype=np.int32).view(Owner)
    follow, address = weakref.ref(first), first.ctypes.data
    tensor = interop.from_numpy(first)
    view = interop.as_memoryview(tensor[1:])
    again = np.asarray(view)
    last = interop.from_numpy(again)
    del first, tensor, view, again
    gc.collect()
    assert (last.data_ptr(), last.tolist()) == (address + 4, [1, 2, 3, 4, 5])
    last[0] = 7
    assert follow()[1] == 7
    del last
    assert follow() is None


@pytest.mark.parametrize("rounds", [1, 20])
def test_a_chain_from_a_tensor_is_one_allocation(rounds):
    first = torch.arange(6.0)
    address, chain = first.data_ptr(), first
    for _ in range(rounds):
        chain = interop.from_buffer(interop.as_memoryview(interop.from_numpy(interop.to_numpy(chain))))
    first.set_(torch.zeros(1))
    del first
    gc.collect()
    assert (chain.data_ptr(), chain.tolist()) == (address, [0, 1, 2, 3, 4, 5])


def test_read_only_memory_stays_so_along_a_chain():
    tensor = interop.from_buffer(b"abcd", on_readonly="share")
    assert not np.asarray(interop.as_memoryview(tensor)).flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        interop.from_numpy(interop.to_numpy(tensor))
    with pytest.raises(ValueError, match="read-only"):
        interop.from_buffer(interop.as_memoryview(tensor))
    again = interop.from_buffer(interop.as_memoryview(tensor), on_readonly="share")
    assert not interop.to_numpy(again[1:3]).flags.writeable


class Holder:
    pass


def cycle(*held):
    """A weak reference to an object that refers to itself and to `held`."""
    holder = Holder()
    holder.itself, holder.held = holder, held
    return weakref.ref(holder)


def test_cycles_around_shared_memory_are_collected():
    owner = np.arange(3.0).view(Owner)
    follow = weakref.ref(owner)
    tensor = interop.from_numpy(owner)
    holder = cycle(owner, tensor, interop.as_memoryview(tensor), interop.to_numpy(tensor), interop.TensorBuffer(tensor))
    del owner, tensor
    assert follow() is not None
    gc.collect()
    assert (holder(), follow()) == (None, None)


def test_a_tensor_that_refers_to_what_shows_it_is_no_cycle():
    """A view of a tensor's memory owns the memory, not the tensor."""
    tensor = torch.ones(3)
    tensor.shown = [interop.to_numpy(tensor), interop.as_memoryview(tensor), interop.TensorBuffer(tensor)]
    follow = weakref.ref(tensor)
    del tensor
    assert follow() is None


@pytest.mark.unchecked(by="leaks", reason="it is about what cannot be collected")
def test_a_cycle_through_the_memory_is_not_collected():
    """As docs/bridges.md says, the collector does not see that the memory owns an array. torch behaves the same."""
    for convert in (interop.from_numpy, torch.from_numpy):
        owner = np.ones(3).view(Owner)
        owner.tensor = convert(owner)
        follow = weakref.ref(owner)
        del owner
        gc.collect()
        assert follow() is not None
        del follow().tensor
        assert follow() is None


@owns_to_the_end
@leaves_daemon_threads
@pytest.mark.parametrize(
    "dropped",
    ["interop.as_memoryview(tensor)", "memoryview(tensor)", "interop.TensorBuffer(tensor)", "interop.to_numpy(tensor)"],
)
@pytest.mark.extended
def test_daemon_threads_at_the_end_of_the_interpreter(forked, dropped):
    """They make and drop views until finalisation, and during it."""
    code = f"""
import threading, time, torch, interop
interop.enable_buffer_protocol()
tensor = torch.ones(1000)
def forever():
    while True:
        {dropped}
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.1)
print("done")
"""
    done = forked(code, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@owns_to_the_end
@leaves_daemon_threads
@pytest.mark.long
def test_what_daemon_threads_own_at_the_end_of_the_interpreter(forked):
    """They own tensors, arrays and views on the stacks of threads that never run again."""
    code = """
import threading, numpy as np, torch, interop
ready = threading.Barrier(2)
def wait():
    tensor = interop.from_numpy(np.ones(1000))
    buffer = interop.from_buffer(bytearray(1000))
    views = [interop.to_numpy(tensor), interop.as_memoryview(buffer), interop.to_numpy(torch.ones(3))]
    ready.wait()
    threading.Event().wait()
threading.Thread(target=wait, daemon=True).start()
ready.wait()
print("done")
"""
    done = forked(code, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_destructors_at_the_end_of_the_interpreter(forked):
    """Objects that die last call a converter again, and own objects that the module state has dropped."""
    code = """
import sys, numpy as np, torch, interop
from_numpy, to_numpy, as_memoryview, ones = interop.from_numpy, interop.to_numpy, interop.as_memoryview, np.ones
class Last:
    def __init__(self):
        self.tensor = from_numpy(ones(10))
        self.view = as_memoryview(self.tensor)
    def __del__(self):
        self.again = to_numpy(self.tensor).sum()
sys.last = Last()
cycle = Last()
cycle.itself = cycle
kept = Last()
print("done")
"""
    done = forked(code, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.mark.long
def test_a_forked_child_uses_and_drops_what_was_shared(forked):
    """The memory is then the child's own. It uses one thread, because libgomp's threads do not survive a fork."""
    code = """
import gc, os, numpy as np, torch, interop
torch.set_num_threads(1)
interop.enable_buffer_protocol()
array, data = np.arange(8.0), bytearray(8)
tensor, bytes_, kept = interop.from_numpy(array), interop.from_buffer(data), torch.arange(8.0)
shown, view = interop.to_numpy(kept), interop.as_memoryview(kept)
child = os.fork()
if child == 0:
    tensor[0] = 5
    assert array[0] == 5 and shown.tolist() == view.tolist() == kept.tolist()
    assert interop.from_numpy(interop.to_numpy(tensor)).data_ptr() == array.ctypes.data
    assert bytes(memoryview(bytes_)) == bytes(8)
    try:
        kept.resize_(1000)
    except RuntimeError:
        del shown, view, tensor, bytes_
        gc.collect()
        data.append(1)
        raise SystemExit(7)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(status, array[0], len(data), shown.tolist() == kept.tolist())
"""
    assert forked(code) == "7 0.0 8 True\n"


def test_versions_are_not_counted_by_what_only_shares():
    tensor = torch.ones(3)
    interop.to_numpy(tensor)
    interop.as_memoryview(tensor, readonly=True)
    interop.TensorBuffer(tensor)
    shared = interop.from_numpy(np.ones(3))
    assert (tensor._version, shared._version) == (0, 0)
    assert interop.from_numpy(np.broadcast_to(1.0, 3), on_readonly="copy")._version == 0
    assert interop.from_buffer(array.array("d", [1, 2]))._version == 0
