"""Eight threads that call the same functions at the same moment: python hammer.py [--seconds N] [--seed N] [JOB ...]

Each of `JOBS` has so many seconds. In a round of a job, all threads are given the same new objects and begin together,
because most that can go wrong goes wrong when an object is first shared. The job that runs is printed before it begins,
with the seed, so that it is known after a crash. The status is 1 if a thread has raised an error.
"""

import argparse
import faulthandler
import random
import sys
import threading
import time
import traceback
import warnings

import ml_dtypes
import numpy as np
import pytest
import torch

import interop

THREADS = 8
OBJECTS = 50
"""In a round. Threads come to the first of them together, and to the others more or less."""

MODULE = """
cimport torch
cimport ATen as at
from interop cimport bridges
from libc.stdint cimport int64_t

def sizes(obj):
    return at.ones(obj, at.kFloat).dim()

def through_cython(torch.Tensor x not None):
    return torch.wrap(bridges.from_numpy(bridges.to_numpy(x.cdata)))

cdef void part(int64_t begin, int64_t end, void* data) noexcept with gil:
    cdef int64_t i
    seen = <object> data
    for i in range(begin, end):
        seen.append(i)
        if i == seen[0]:
            raise KeyError(i)

def loop(int count, int fails):
    seen = [fails]
    at.parallel_for(0, count, 1, part, <void*> seen)
    return seen
"""


def tensors() -> list[torch.Tensor]:
    """New tensors, whose memory nobody has shared yet."""
    return [torch.arange(24, dtype=torch.float32).view(4, 6) for _ in range(OBJECTS)]


def bfloats() -> list[torch.Tensor]:
    """The same, of a dtype that is looked for in ml_dtypes."""
    return [torch.arange(24, dtype=torch.float32).view(4, 6).to(torch.bfloat16) for _ in range(OBJECTS)]


def arrays() -> list[np.ndarray]:
    """New arrays."""
    return [np.arange(24, dtype=np.float32).reshape(4, 6) for _ in range(OBJECTS)]


def same(tensor: torch.Tensor, at: int) -> None:
    """Compare with where memory is to be, and what is to be in it."""
    assert tensor.data_ptr() == at
    assert tensor.flatten()[-1].item() == 23


def to_numpy(tensor: torch.Tensor, own: random.Random) -> None:
    array = interop.to_numpy(tensor, readonly=own.random() < 0.5)
    assert array.ctypes.data == tensor.data_ptr()
    assert float(array[3, 5]) == 23


def as_memoryview(tensor: torch.Tensor, own: random.Random) -> None:
    view = interop.as_memoryview(tensor)
    assert view[3, 5] == 23
    same(interop.from_buffer(view), tensor.data_ptr())


def buffer(tensor: torch.Tensor, own: random.Random) -> None:
    view = memoryview(interop.TensorBuffer(tensor, readonly=own.random() < 0.5))
    assert view.tolist()[3] == [18, 19, 20, 21, 22, 23]


def dlpack(tensor: torch.Tensor, own: random.Random) -> None:
    version = own.choice((None, (1, 0)))
    same(interop.from_dlpack(interop.to_dlpack(tensor, max_version=version)), tensor.data_ptr())
    same(interop.from_dlpack(tensor), tensor.data_ptr())


def dropped(tensor: torch.Tensor, own: random.Random) -> None:
    """Memory that goes around among owners, the last of which is dropped anywhere."""
    at = tensor.data_ptr()
    for _ in range(own.randrange(1, 5)):
        way = own.choice((interop.to_numpy, interop.as_memoryview, interop.to_dlpack))
        back = {interop.to_numpy: interop.from_numpy, interop.as_memoryview: interop.from_buffer}
        tensor = back.get(way, interop.from_dlpack)(way(tensor))
    same(tensor, at)


def one_tensor() -> list[torch.Tensor]:
    """The same tensor again and again."""
    return tensors()[:1] * OBJECTS * 4


def anything(tensor: torch.Tensor, own: random.Random) -> None:
    """What goes with a tensor that others share, too."""
    own.choice((to_numpy, as_memoryview, buffer, dlpack, dropped))(tensor, own)


def protocol(tensor: torch.Tensor, own: random.Random) -> None:
    with interop.enable_buffer_protocol(count_writes=own.choice(("found", "asked"))):
        view = memoryview(tensor)
        assert view[3, 5] == 23
        assert np.asarray(tensor)[3, 5] == 23


def from_numpy(array: np.ndarray, own: random.Random) -> None:
    same(own.choice((interop.from_numpy, interop.from_buffer, interop.from_dlpack))(array), array.ctypes.data)


def read_only(array: np.ndarray, own: random.Random) -> None:
    array = array.view()
    array.flags.writeable = False
    tensor = interop.from_numpy(array, on_readonly=own.choice(("share", "copy")))
    assert interop.to_numpy(tensor).flags.writeable == (tensor.data_ptr() != array.ctypes.data)
    with pytest.raises(ValueError, match="writable"):
        interop.from_numpy(array)


taken: list[int] = []
"""The capsules of this round that were taken."""


def capsules() -> list[object]:
    """Capsules over tensors that nobody else has. Of those of the last round, each was taken once."""
    assert len(set(taken)) == len(taken), taken
    taken.clear()
    return [interop.to_dlpack(tensor, max_version=version) for tensor in tensors()[:5] for version in (None, (1, 0))]


def one_capsule(capsule: object, own: random.Random) -> None:
    try:
        tensor = interop.from_dlpack(capsule)
    except ValueError as error:
        if "must be an unused capsule" not in str(error):
            raise
        return
    taken.append(id(capsule))
    assert tensor.flatten()[-1].item() == 23


def lists() -> list[list[int]]:
    """Sizes, which some threads change while others read them."""
    return [[1, 2, 3] for _ in range(OBJECTS)]


def changing_list(sizes: list[int], own: random.Random) -> None:
    if own.random() < 0.5:
        sizes.clear()
        sizes.extend(range(1, own.randrange(2, 6)))
    else:
        assert 0 <= module().sizes(sizes) < 10


def modules() -> list[int]:
    """Numbers of which a module is made: most are in the cache after the first round."""
    return list(range(3))


def module(number: int = 0):
    """A module that says that it needs no GIL."""
    return interop.load_inline(MODULE + f"\nNUMBER = {number}\n", free_threaded=True)


def load(number: int, own: random.Random) -> None:
    assert number == module(number).NUMBER


def through_cython(tensor: torch.Tensor, own: random.Random) -> None:
    same(module().through_cython(tensor), tensor.data_ptr())


def loops() -> list[int]:
    """Numbers of iterations of a loop on torch's threads, whose parts take the GIL, or what stands for it."""
    return [3, 8, 20]


def loop(count: int, own: random.Random) -> None:
    assert sorted(module().loop(count, -1)[1:]) == list(range(count))
    fails = own.randrange(count)
    with pytest.raises(KeyError, match=f"^{fails}$"):
        module().loop(count, fails)


JOBS = {
    "to_numpy": (tensors, to_numpy),
    "bfloat16": (bfloats, to_numpy),
    "as_memoryview": (tensors, as_memoryview),
    "TensorBuffer": (tensors, buffer),
    "dlpack": (tensors, dlpack),
    "dropped": (tensors, dropped),
    "one tensor": (one_tensor, anything),
    "buffer protocol": (tensors, protocol),
    "from_numpy": (arrays, from_numpy),
    "read-only": (arrays, read_only),
    "one capsule": (capsules, one_capsule),
    "load": (modules, load),
    "changing list": (lists, changing_list),
    "through Cython": (tensors, through_cython),
    "loop": (loops, loop),
}
"""What makes the objects of a round, and what each thread does with each of them."""


def hammer(name: str, seconds: float, seed: int) -> list[str]:
    """Run a job; the tracebacks of the errors that it raised."""
    make, work = JOBS[name]
    objects: list[object] = []
    errors: list[str] = []
    end = time.monotonic() + seconds
    rounds = 0

    def begin() -> None:
        nonlocal objects, rounds
        rounds += 1
        objects = make() if rounds == 1 or time.monotonic() < end else []

    def run(number: int) -> None:
        own = random.Random(f"{seed} {number}")
        try:
            while True:
                made.wait()
                given = list(objects)
                if not given:
                    return
                copied.wait()
                objects.clear()  # so that the last to use an object is the last to own it
                while given:
                    work(given.pop(), own)
        except threading.BrokenBarrierError:
            pass  # because of the error of another thread
        except BaseException:
            errors.append(f"{name}, seed {seed}: {traceback.format_exc()}")
            made.abort()
            copied.abort()

    made, copied = threading.Barrier(THREADS, begin), threading.Barrier(THREADS)
    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1, help="for each job")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=", ".join(JOBS))
    options = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    assert ml_dtypes.bfloat16
    for name in options.jobs or JOBS:
        print(f"{name}, seed {options.seed}", flush=True)
        errors = hammer(name, options.seconds, options.seed)
        if errors:
            print(*errors[:3], sep="\n")
            return 1
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"GIL: {gil}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
