"""Eight threads call the same functions at the same moment: python hammer.py [--seconds N] [--seed N] [JOB ...]

Each of `JOBS` runs for N seconds. In each round of a job, all threads get the same new objects and start together,
because most errors happen when an object is first shared. The program prints each job and the seed before the job
starts, so that both are known after a crash. The exit status is 1 if a thread raised an error.
"""

import argparse
import array
import faulthandler
import itertools
import mmap
import os
import random
import re
import sys
import threading
import time
import traceback
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import interop
import interop.cuda
from interop.stable_abi import release_of
from interop.toolchain import MINIMUM_STABLE

THREADS = 8
FOLDER = Path(__file__).resolve().parents[2] / "build" / "hammer"
"""Of sources that are loaded. Always the same, because the cache of builds is by path."""

OBJECTS = 50
"""Objects in a round. All threads reach the first one together, and the others at about the same time."""

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

GRADIENTS = """
cimport ATen as at
cimport torch
from torch.autograd cimport Context, Function
from torch.library cimport define, impl, register_autograd

cdef at.Tensor exp_forward(Context& ctx, const at.Tensor& x) except * nogil:
    cdef at.Tensor y = at.exp(x)
    ctx.save_for_backward(y)
    return y

cdef at.Tensor exp_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    return at.mul(grad, ctx.saved_tensor(0))

cdef Function[at.Tensor] exp_function
exp_function.define("Exp", exp_forward, exp_backward)

def exp(torch.Tensor x not None):
    cdef at.Tensor t = x.cdata, z
    with nogil:
        z = exp_function.apply(t)
    return torch.wrap(z)

cdef at.Tensor square(const at.Tensor& x) except * with gil:
    return at.mul(x, x)

cdef void square_setup(Context& ctx, const at.Tensor& x, const at.Tensor& result) except * nogil:
    ctx.save_for_backward(x)

cdef at.Tensor square_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    return at.mul(at.mul(grad, ctx.saved_tensor(0)), 2)

define("hammer::square", "(Tensor x) -> Tensor")
impl("hammer::square", "CPU", square)
register_autograd("hammer::square", square_backward, square_setup)
"""

OPERATORS = """
cimport ATen as at
from torch.library cimport VmapInfo, define, impl, register_vmap

cdef at.Tensor twice(const at.Tensor& x) except * nogil:
    return at.add(x, x)

cdef at.Tensor rule(VmapInfo& info, const at.Tensor& x) except * nogil:
    info.set_out_dim(0, info.in_dim(0))
    return at.add(x, x)

def register(bytes name):
    define(name, "(Tensor x) -> Tensor")
    impl(name, "CPU", twice)
    register_vmap(name, rule)
"""

STABLE = """
cimport ATen as at
from torch.library cimport define, impl

cdef at.Tensor twice(const at.Tensor& x) except * nogil:
    return at.add(x, x)

define("hammer_stable_{number}::twice", "(Tensor x) -> Tensor")
impl("hammer_stable_{number}::twice", "CPU", twice)
"""


def tensors() -> list[torch.Tensor]:
    """New tensors, whose memory has not been shared yet."""
    return [torch.arange(24, dtype=torch.float32).view(4, 6) for _ in range(OBJECTS)]


def bfloats() -> list[torch.Tensor]:
    """The same in a dtype that the converters look up in ml_dtypes."""
    return [torch.arange(24, dtype=torch.float32).view(4, 6).to(torch.bfloat16) for _ in range(OBJECTS)]


def arrays() -> list[np.ndarray]:
    """New arrays."""
    return [np.arange(24, dtype=np.float32).reshape(4, 6) for _ in range(OBJECTS)]


def same(tensor: torch.Tensor, at: int) -> None:
    """Check that the tensor is at the address `at` and ends with 23."""
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
    """Pass memory from owner to owner. Any thread may drop the last owner."""
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
    """A random one of the jobs that can share a tensor."""
    own.choice((to_numpy, as_memoryview, buffer, dlpack, dropped))(tensor, own)


def protocol(tensor: torch.Tensor, own: random.Random) -> None:
    with interop.enable_buffer_protocol(count_writes=own.choice(("found", "asked"))):
        view = memoryview(tensor)
        assert view[3, 5] == 23
        assert np.asarray(tensor)[3, 5] == 23


def outside_blocks() -> list[torch.Tensor]:
    """New tensors. Checks that all blocks of the last round have ended."""
    with pytest.raises(TypeError, match="bytes-like"):
        memoryview(tensors()[0])
    return tensors()


def settings(tensor: torch.Tensor, own: random.Random) -> None:
    """One setting holds for all threads, so that an export may fail, but only for want of the protocol."""
    setting = own.choice((interop.enable_buffer_protocol, interop.disable_buffer_protocol))
    with setting():
        try:
            view = memoryview(tensor)
        except TypeError:
            return  # another thread's block is the latest
        assert view[3, 5] == 23


class OnCuda:
    """An object that says that the array's memory is a GPU's."""

    def __init__(self, array: np.ndarray) -> None:
        self.__cuda_array_interface__ = array.__array_interface__


def cuda_arrays(array: np.ndarray, own: random.Random) -> None:
    """Both directions reject memory of the CPU, also where there is a GPU."""
    with pytest.raises((TypeError, ValueError, RuntimeError), match="CUDA"):
        interop.from_cuda_array_interface(OnCuda(array))
    with pytest.raises(TypeError, match="must be on device cuda, got cpu"):
        interop.to_cuda_array_interface(torch.from_numpy(array))


def from_numpy(array: np.ndarray, own: random.Random) -> None:
    convert = own.choice((interop.from_numpy, interop.from_buffer, interop.from_dlpack, interop.from_array))
    same(convert(array), array.ctypes.data)


added = interop.with_arrays(np.add)
views = interop.with_arrays(lambda array: array.T)


def with_arrays(tensor: torch.Tensor, own: random.Random) -> None:
    assert torch.equal(added(tensor, [2.0] * 6), tensor + 2)
    same(views(tensor), tensor.data_ptr())


def read_only(array: np.ndarray, own: random.Random) -> None:
    array = array.view()
    array.flags.writeable = False
    tensor = interop.from_numpy(array, on_readonly=own.choice(("share", "copy")))
    assert interop.to_numpy(tensor).flags.writeable == (tensor.data_ptr() != array.ctypes.data)
    with pytest.raises(ValueError, match="writable"):
        interop.from_numpy(array)


def cast(tensor: torch.Tensor, own: random.Random) -> None:
    """The options of the converters, of which those that copy may share nothing."""
    for copied in (
        interop.from_dlpack(tensor, copy=True),
        interop.from_dlpack(interop.to_dlpack(tensor, copy=True)),
        interop.from_numpy(interop.to_numpy(tensor.clone().requires_grad_(), force=True)),
        interop.from_buffer(interop.as_memoryview(tensor).tobytes(), dtype=torch.float32, on_readonly="copy"),
    ):
        assert copied.data_ptr() != tensor.data_ptr()
        same(copied, copied.data_ptr())
    values = interop.from_buffer(interop.as_memoryview(tensor), dtype=torch.float32, shape=(2, -1), offset=48)
    same(values, tensor.data_ptr() + 48)


exported: list[Any] = []
"""The exporters of the last round."""


def exporters() -> list[object]:
    """CPython's own, which count their exports. Checks that those of the last round have none."""
    for one in exported:
        end = getattr(one, "release", None) or getattr(one, "close", None) or (lambda one=one: one.append(0))
        end()  # raises BufferError if something has its memory
    data = np.arange(24, dtype=np.float32).tobytes()
    mapped = mmap.mmap(-1, len(data))
    mapped[:] = data
    exported[:] = [bytearray(data), array.array("f", np.arange(24)), mapped, memoryview(bytearray(data))]
    return exported * OBJECTS


def one_exporter(exporter: object, own: random.Random) -> None:
    if isinstance(exporter, (array.array, memoryview)):
        assert interop.from_array(exporter).flatten()[-1].item() != 0
    tensor = interop.from_buffer(exporter, dtype=torch.float32)
    assert tensor[23].item() == 23
    if isinstance(exporter, (bytearray, array.array)):
        with pytest.raises(BufferError):
            exporter.append(0)


offered: list[object] = []
"""The capsules of the last round."""

taken: list[int] = []
"""The ids of those that were consumed."""


def all_taken(made: list[object]) -> list[object]:
    """The capsules that a round begins with. Checks that each of the last round was consumed once."""
    assert sorted(taken) == sorted(map(id, offered)), (len(taken), len(offered))
    taken.clear()
    offered[:] = made
    return made


def capsules() -> list[object]:
    """Capsules over tensors of their own."""
    versions = (None, (1, 0))
    return all_taken([interop.to_dlpack(one, max_version=version) for one in tensors()[:5] for version in versions])


def rejected() -> list[object]:
    """Capsules over read-only memory. Those of the last round that every thread has rejected can still be taken."""
    for capsule in offered:
        if id(capsule) not in taken:
            take(capsule, "share")
    return all_taken([interop.to_dlpack(one, max_version=(1, 0), readonly=True) for one in tensors()[:10]])


def take(capsule: object, on_readonly: str) -> None:
    tensor = interop.from_dlpack(capsule, on_readonly=on_readonly)
    taken.append(id(capsule))
    assert tensor.flatten()[-1].item() == 23


def one_capsule(capsule: object, own: random.Random) -> None:
    try:
        take(capsule, own.choice(("raise", "share")))
    except ValueError as error:
        if not re.search("must be an unused capsule|got read-only memory", str(error)):
            raise


def lists() -> list[list[int]]:
    """Lists of sizes, which some threads change while others read them."""
    return [[1, 2, 3] for _ in range(OBJECTS)]


def changing_list(sizes: list[int], own: random.Random) -> None:
    if own.random() < 0.5:
        sizes.clear()
        sizes.extend(range(1, own.randrange(2, 6)))
    else:
        assert 0 <= module().sizes(sizes) < 10


names = itertools.count()


def modules() -> list[int]:
    """Numbers to build modules from. After the first round, most of these modules are in the cache."""
    return list(range(3))


def module(number: int = 0):
    """A module that declares that it needs no GIL."""
    return interop.load_inline(MODULE + f"\nNUMBER = {number}\n", free_threaded=True)


def load(number: int, own: random.Random) -> None:
    assert number == module(number).NUMBER


def files() -> list[Path]:
    """Sources that each round changes, so that the first thread builds them and the others wait."""
    for number in range(3):
        path = FOLDER / f"hammer_file_{number}.pyx"
        path.write_text(f"def seen(): return {next(names) % 4}")  # few, as each is compiled once
    return sorted(FOLDER.glob("*.pyx"))


def load_file(path: Path, own: random.Random) -> None:
    assert interop.get_include() != interop.get_pxd_dir()
    module = interop.load(path, free_threaded=True)
    assert path.read_text().endswith(f"return {module.seen()}")


def kernel(number: int, own: random.Random) -> None:
    """CUDA code that this process compiles first, and then finds in memory or on disk. It needs no GPU."""
    name = f"scale_{number}_{next(names) % 4}"
    source = f"""// {os.getpid()}
        __global__ void {name}(float* x) {{ x[threadIdx.x] *= 2; }}
        template <class T> __global__ void fill(T* x) {{ x[threadIdx.x] = {number}; }}"""
    compiled = interop.cuda.compile(source, arch="compute_80")
    assert compiled.kernels == [name]
    assert name.encode() in compiled.code
    assert compiled[name].parameters == ("float*",)
    assert compiled["fill<double>"].parameters == ("double*",)  # compiled at the first use


def through_cython(tensor: torch.Tensor, own: random.Random) -> None:
    same(module().through_cython(tensor), tensor.data_ptr())


def gradients(tensor: torch.Tensor, own: random.Random) -> None:
    """Kernels with the GIL and without, called by backward too, of a leaf of this thread and of one that all share."""
    module = interop.load_inline(GRADIENTS, free_threaded=True)
    for x in (tensor.detach().requires_grad_(), tensor):
        for function, expected in ((module.exp, x.exp()), (torch.ops.hammer.square, 2 * x)):
            (found,) = torch.autograd.grad(function(x).sum(), x)
            assert torch.equal(found, expected.detach())


def leaves() -> list[torch.Tensor]:
    """Tensors that require grad."""
    return [tensor.requires_grad_() for tensor in tensors()]


def new_names() -> list[str]:
    """Names of operators that are not defined yet."""
    return [f"hammer::operator_{next(names)}" for _ in range(OBJECTS)]


def register(name: str, own: random.Random) -> None:
    """One of the threads that register the same operator succeeds, and the others are told whose it is."""
    module = interop.load_inline(OPERATORS, free_threaded=True)
    try:
        module.register(name.encode())
    except RuntimeError as error:
        if "this operator is defined already" not in str(error):
            raise
        return
    x = torch.arange(6.0).view(2, 3)
    operator = getattr(torch.ops.hammer, name.partition("::")[2])
    assert torch.equal(operator(x), 2 * x)
    assert torch.equal(torch.vmap(operator)(x), 2 * x)


def stable(number: int, own: random.Random) -> None:
    """Modules for many releases of torch register in a dictionary of the interpreter."""
    interop.load_inline(STABLE.format(number=number), name=f"hammer_{number}", stable="2.11", free_threaded=True)
    x = torch.arange(6.0)
    assert torch.equal(getattr(torch.ops, f"hammer_stable_{number}").twice(x), 2 * x)


def loops() -> list[int]:
    """Iteration counts of a loop on torch's threads. Its parts take the GIL, or attach a thread state without a GIL."""
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
    "options": (tensors, cast),
    "one tensor": (one_tensor, anything),
    "buffer protocol": (tensors, protocol),
    "settings": (outside_blocks, settings),
    "CUDA arrays": (arrays, cuda_arrays),
    "with_arrays": (tensors, with_arrays),
    "gradients": (leaves, gradients),
    "from_numpy": (arrays, from_numpy),
    "read-only": (arrays, read_only),
    "one exporter": (exporters, one_exporter),
    "one capsule": (capsules, one_capsule),
    "rejected capsules": (rejected, one_capsule),
    "load": (modules, load),
    "files": (files, load_file),
    "kernels": (modules, kernel),
    "registration": (new_names, register),
    "stable": (modules, stable),
    "changing list": (lists, changing_list),
    "through Cython": (tensors, through_cython),
    "loop": (loops, loop),
}
"""The function that makes the objects of a round, and the one that each thread calls with each object."""


def unavailable(name: str) -> str:
    """Why the job cannot run here, if it cannot."""
    if name == "stable" and release_of(torch.__version__) < MINIMUM_STABLE:
        return "this torch is too old for modules for many releases"
    if name == "kernels" and not (find_spec("cuda") and find_spec("cuda.bindings")):
        return "the package cuda-bindings is not installed"
    return ""


def hammer(name: str, seconds: float, seed: int) -> list[str]:
    """Run a job and return the tracebacks of its errors."""
    make, work = JOBS[name]
    for state in (exported, offered, taken):
        state.clear()  # of an earlier job
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
                objects.clear()  # so that the last thread to use an object is its last owner
                while given:
                    work(given.pop(), own)
        except threading.BrokenBarrierError:
            pass  # another thread raised an error
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
    if not errors:
        make()  # checks the last round
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
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in options.jobs or JOBS:
        if reason := unavailable(name):
            print(f"{name}: left out, {reason}", flush=True)
            continue
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
