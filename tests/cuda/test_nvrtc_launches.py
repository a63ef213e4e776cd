"""Launches of kernels compiled at run time: what they pass to the driver, and what they reject.

The driver and the devices are fakes (tests/projects/nvrtc) in a separate process, so these tests need no GPU.
"""

import ctypes
import functools
import gc
import multiprocessing
import os
import shutil
import struct
import threading
import traceback
from concurrent.futures import ProcessPoolExecutor

import pytest
import torch
from conftest import PROJECTS, import_from, run

from interop.cuda.module import Module
from interop.cuda.nvrtc import Image


def has_driver():
    """Whether NVIDIA's driver can be loaded here. torch has then loaded it, and no look-up would find the fake one."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


pytestmark = pytest.mark.skipif(has_driver(), reason="this machine has NVIDIA's driver, which hides the fake one")
needs_handles = pytest.mark.skipif(
    torch.__version__ < (2, 11), reason="kernels are launched from torch 2.11 on, which gives the handle of a stream"
)


class Driver:
    """The state of the fake driver in the process that has loaded it."""

    def __init__(self, path):
        self._library = ctypes.CDLL(path)

    def __getattr__(self, name):
        return ctypes.c_int.in_dll(self._library, f"fake_{name}").value

    def set(self, name, value):
        ctypes.c_int.in_dll(self._library, f"fake_{name}").value = value

    def set_text(self, name, value):
        (ctypes.c_char * 64).in_dll(self._library, f"fake_{name}").value = value.encode()

    def text(self, name):
        return (ctypes.c_char * 256).in_dll(self._library, f"fake_{name}").value.decode()

    def sizes(self, name):
        return tuple((ctypes.c_uint * 3).in_dll(self._library, f"fake_{name}"))

    def stream(self):
        return ctypes.c_size_t.in_dll(self._library, "fake_stream").value

    def takes(self, *sizes):
        """Sets the sizes of the kernel's parameters in bytes."""
        self.set("parameter_count", len(sizes))
        (ctypes.c_size_t * 32).in_dll(self._library, "fake_parameter_sizes")[: len(sizes)] = sizes

    def arguments(self, layout):
        """The arguments of the last launch; `layout` has their characters in `struct`."""
        rows = (ctypes.c_ubyte * 64 * 32).in_dll(self._library, "fake_arguments")
        return tuple(
            struct.unpack("=" + kind, bytes(row)[: struct.calcsize("=" + kind)])[0]
            for kind, row in zip(layout, rows, strict=False)
        )

    def fails(self, function="", error=0):
        self.set_text("failing", function)
        self.set("error", error)

    def reset(self):
        """Restores the initial state. Threads keep their contexts."""
        gc.collect()
        self.fails()
        self.takes()
        self.set_text("log", "")
        for name in ("loads", "unloads", "launches", "context_sets", "shared_sets", "capturing", "capture_mode"):
            self.set(name, 0)


def start_child(site, path):
    """Loads the fakes in the process for launches. A look-up finds the driver that is loaded already."""
    global driver, fakes, launches, saxpy
    driver = Driver(path)
    fakes, launches, saxpy = (import_from(site, name) for name in ("fakes", "launches", "saxpy"))
    fakes.install()


def run_in_child(name):
    """Runs a test. Returns its error as text, because not every exception can be pickled."""
    driver.reset()
    fakes.set_stream(0, 0)
    try:
        globals()[name].body()
    except BaseException:
        return traceback.format_exc()
    return None


@pytest.fixture(scope="session")
def fake_driver(tmp_path_factory):
    """The file of the fake driver, alone in its folder."""
    return build_driver(tmp_path_factory.mktemp("driver"))


def build_driver(folder, *flags):
    path = folder / "libcuda.so.1"
    compiler = os.environ.get("CC") or shutil.which("cc") or "gcc"
    source = PROJECTS / "nvrtc" / "fake_driver.c"
    run([*compiler.split(), "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", *flags, "-o", path, source])
    return path


@pytest.fixture(scope="session")
def child(nvrtc_site, fake_driver):
    """A process with the fake driver and devices."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, start_child, (nvrtc_site, str(fake_driver))) as pool:
        yield pool


def in_child(function):
    """A test that runs in the process with the fakes. `driver`, `fakes`, `launches`, `saxpy` are global there."""

    @pytest.mark.native
    @needs_handles
    @functools.wraps(function)
    def test(child):
        failure = child.submit(run_in_child, function.__name__).result(timeout=300)
        if failure:
            pytest.fail(failure, pytrace=False)

    del test.__wrapped__  # pytest would look there for fixtures
    test.body = function
    return test


def handle(entry="_Z5saxpyPfPKffl", arch="sm_90"):
    """A handle of a kernel with this symbol name, whose code only the fake driver accepts."""
    return Module(Image(f"code of {entry}".encode(), (entry,)), ("", "mine.cu", arch, (), ()))[entry]


def pair(device=0, dtype=torch.float32, size=1000):
    return tuple(fakes.on_device(torch.ones(size, dtype=dtype), device) for _ in range(2))


@in_child
def test_launch_passes_what_the_kernel_takes():
    launch = saxpy.Saxpy(handle())
    driver.takes(8, 8, 4, 8)
    y, x = pair()
    launch(y, x, 1.5)
    assert driver.text("code") == "code of _Z5saxpyPfPKffl"
    assert driver.text("kernel") == "_Z5saxpyPfPKffl"
    assert driver.sizes("grid") == (4, 1, 1)
    assert driver.sizes("block") == (256, 1, 1)
    assert driver.shared_bytes == driver.stream() == 0
    assert driver.arguments("QQfq") == (y.data_ptr(), x.data_ptr(), 1.5, 1000)
    part = fakes.on_device(torch.ones(100)[10:12])
    launch(part, part, 1.0)
    assert part.storage_offset() == 10
    assert driver.arguments("QQfq") == (part.data_ptr(), part.data_ptr(), 1.0, 2)
    assert (driver.loads, driver.launches) == (1, 2)


@in_child
def test_launch_runs_on_the_device_and_the_stream_of_the_tensors():
    launch = saxpy.Saxpy(handle())
    driver.takes(8, 8, 4, 8)
    for device, stream in [(0, 5), (3, 7)]:
        fakes.set_stream(device, stream)
        launch(*pair(device), 1.0)
        assert driver.stream() == 1000 * device + stream
        assert fakes.current_device() == 0
        fakes.set_stream(device, 0)
    nothing = launches.Launcher(handle("_Z7nothingv"))
    driver.takes()
    fakes.set_stream(0, 2)
    fakes.set_stream(4, 3)
    nothing.nothing()
    assert driver.stream() == 2
    nothing.on_device(pair(4)[0])
    assert driver.stream() == 4003


@in_child
def test_thread_without_a_context_gets_one():
    launch = saxpy.Saxpy(handle())
    driver.takes(8, 8, 4, 8)
    failed = []

    def run_twice():
        try:
            launch(*pair(2), 1.0)
            assert driver.context_sets == 1
            launch(*pair(2), 1.0)
            assert (driver.context_sets, driver.launches) == (1, 2)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run_twice)
    thread.start()
    thread.join()
    assert not failed, failed
    driver.fails("cuDevicePrimaryCtxRetain", 1)
    thread = threading.Thread(target=run_twice)
    thread.start()
    thread.join()
    assert "device cuda:2 cannot be used: invalid argument" in str(failed[0])


@in_child
def test_threads_share_a_kernel():
    driver.takes(8, 8, 4, 8)
    handles = [handle(), handle()]
    shared = saxpy.Saxpy(handles[0])
    start, failed = threading.Barrier(4), []

    def run_often():
        try:
            start.wait()
            for size in range(50):
                shared(*pair(), 1.0)
                saxpy.Saxpy(handles[size % 2])(*pair(), 1.0)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    handles.clear()
    gc.collect()
    assert driver.loads - driver.unloads == 1
    shared(*pair(), 1.0)


@in_child
def test_sizes_of_grid_and_block():
    launcher = launches.Launcher(handle("_Z7nothingv"))
    launcher.sizes(2, 3, 4, 64, 0)
    assert (driver.sizes("grid"), driver.sizes("block")) == ((2, 3, 4), (64, 1, 1))
    launcher.pairs(5, 6, 7, 8)
    assert (driver.sizes("grid"), driver.sizes("block")) == ((5, 6, 1), (7, 8, 3))
    before = driver.launches
    for empty in [(0, 1, 1), (1, 0, 1), (1, 1, 0)]:
        launcher.sizes(*empty, 32, 0)
    assert driver.launches == before
    for grid, threads, shared, message in [
        ((-1, 1, 1), 32, 0, r"the grid of kernel nothing must have from 0 to 2147483647 blocks.*\(-1, 1, 1\)"),
        ((2**31, 1, 1), 32, 0, r"got \(2147483648, 1, 1\)"),
        ((1, 1, 1), 0, 0, r"the block of kernel nothing must have at least 1 thread.*\(0, 1, 1\)"),
        ((0, 1, 1), -3, 0, r"got \(-3, 1, 1\)"),
        ((1, 1, 1), 1, 2**32, "shared_bytes of kernel nothing must be from 0 to 2147483647, got 4294967296"),
    ]:
        with pytest.raises(ValueError, match=message):
            launcher.sizes(*grid, threads, shared)
    assert driver.launches == before


@in_child
def test_shared_memory_is_asked_for():
    launcher = launches.Launcher(handle("_Z7nothingv"))
    launcher.sizes(1, 1, 1, 1, 1000)
    assert (driver.shared_bytes, driver.shared_allowed, driver.shared_sets) == (1000, 1000, 1)
    launcher.sizes(1, 1, 1, 1, 500)
    assert (driver.shared_bytes, driver.shared_sets) == (500, 1)
    launcher.sizes(1, 1, 1, 1, 100_000)
    assert (driver.shared_bytes, driver.shared_allowed, driver.shared_sets) == (100_000, 100_000, 2)
    driver.fails("cuKernelSetAttribute", 1)
    with pytest.raises(torch.AcceleratorError, match="300000 bytes of shared memory: invalid argument"):
        launcher.sizes(1, 1, 1, 1, 300_000)


@in_child
def test_numbers_keep_their_type():
    launcher = launches.Launcher(handle("_Z7numbersasilfdbi"))
    driver.takes(1, 2, 4, 8, 4, 8, 1, 4)
    launcher.numbers(-1, -2, -3, -(2**40), 0.5, 0.1, True, 1)
    assert driver.arguments("bhiqfd?i") == (-1, -2, -3, -(2**40), 0.5, 0.1, True, 1)
    launcher = launches.Launcher(handle("_Z4many" + "Pf" + "i" * 14 + "d"))
    driver.takes(8, *[4] * 14, 8)
    x, _ = pair()
    launcher.many(x)
    assert driver.arguments("Q" + "i" * 14 + "d") == (x.data_ptr(), *range(1, 15), 15.0)


@in_child
def test_structs_and_pointers():
    launcher = launches.Launcher(handle("_Z1k4Pair"))
    driver.takes(8)
    launcher.struct(1.5, 7)
    assert driver.arguments("d") == struct.unpack("d", struct.pack("fi", 1.5, 7))
    launcher = launches.Launcher(handle("_Z1kPf"))
    launcher.pointer(0x1234567890)
    assert driver.arguments("Q") == (0x1234567890,)


@in_child
def test_arguments_that_do_not_fit():
    floats, _ = pair()
    doubles, _ = pair(dtype=torch.float64)
    for entry, method, argument, message in [
        ("_Z1kf", "of_double", 1.0, r"argument 1 of kernel k\(float\) must be float, got a floating-point number of 8"),
        ("_Z1kf", "of_double", 1.0, "write its C type, such as <float>x"),
        ("_Z1kf", "of_int", 1, "must be float, got a whole number of 4 bytes"),
        ("_Z1ki", "of_int64", 1, "must be int, got a whole number of 8 bytes; .*<int>x"),
        ("_Z1kb", "of_int", 1, "must be bool, got a whole number of 4 bytes"),
        ("_Z1kf", "pointer", 64, "must be float, got a pointer"),
        ("_Z1kPf", "of_int64", 1, r"must be float\*, got a whole number of 8 bytes"),
        ("_Z1kf", "of_tensor", floats, "must be float, got a tensor of torch.float32"),
        ("_Z1k6float4", "of_tensor", floats, "must be float4, got a tensor of torch.float32"),
        ("_Z1kPf", "of_tensor", doubles, r"must be float\*, got a tensor of torch.float64"),
        ("_Z1kPKf", "of_tensor", doubles, r"must be float const\*, got a tensor of torch.float64"),
        ("_Z1kP6__half", "of_tensor", floats, r"must be __half\*, got a tensor of torch.float32"),
        ("_Z1kf", "nothing", None, r"kernel k\(float\) takes 1 argument, got 0"),
        ("_Z1kv", "of_int", 1, r"kernel k\(\) takes 0 arguments, got 1"),
        ("_Z1kPfS_S_", "of_tensor", floats, r"kernel k\(float\*, float\*, float\*\) takes 3 arguments, got 1"),
    ]:
        call = getattr(launches.Launcher(handle(entry)), method)
        with pytest.raises(TypeError, match=message):
            call() if argument is None else call(argument)
    for entry, method, argument in [
        ("_Z1kj", "of_int", 1),
        ("_Z1kx", "of_int64", 1),
        ("_Z1kPv", "of_tensor", doubles),
        ("_Z1kP6float4", "of_tensor", floats),
        ("_Z1kPA4_f", "of_tensor", floats),
        ("_Z1kPj", "of_tensor", pair(dtype=torch.int32)[0]),
        ("_Z1kP13__nv_bfloat16", "of_tensor", pair(dtype=torch.bfloat16)[0]),
    ]:
        driver.takes(4 if entry == "_Z1kj" else 8)
        before = driver.launches
        getattr(launches.Launcher(handle(entry)), method)(argument)
        assert driver.launches == before + 1, entry


@in_child
def test_sizes_of_arguments_where_the_name_tells_nothing():
    launcher = launches.Launcher(handle("plain_c"))
    driver.takes(4)
    launcher.of_int(1)
    for method, argument, message in [
        ("of_int64", 1, "argument 1 of kernel plain_c must have 4 bytes, got a whole number of 8 bytes"),
        ("of_tensor", pair()[0], "must have 4 bytes, got a tensor of torch.float32"),
        ("nothing", None, "kernel plain_c takes 1 argument, got 0"),
    ]:
        call = getattr(launcher, method)
        with pytest.raises(TypeError, match=message):
            call() if argument is None else call(argument)
    with pytest.raises(TypeError, match="must have 4 bytes, got a struct of 8 bytes"):
        launcher.struct(1.0, 2)
    # The sizes are cached.
    driver.takes()
    launcher.of_int(1)
    # A driver that does not report sizes.
    driver.fails("cuKernelGetParamInfo", 801)
    launches.Launcher(handle("plain_c")).of_int(1)


@in_child
def test_tensors_that_do_not_fit():
    launch = saxpy.Saxpy(handle())
    driver.takes(8, 8, 4, 8)
    y, _ = pair()
    with pytest.raises(
        ValueError, match=r"argument '2 of saxpy' must be on a CUDA device, got cpu; copy it with .cuda"
    ):
        launch(y, torch.ones(1000), 1.0)
    with pytest.raises(
        ValueError, match=r"'2 of saxpy' must be on the device of argument '1 of saxpy', cuda:0, got cuda:1"
    ):
        launch(y, pair(1)[0], 1.0)
    with pytest.raises(TypeError, match="argument '1 of k' must be a tensor, got an undefined one"):
        launches.Launcher(handle("_Z1kPf")).of_tensor(None)
    with pytest.raises(ValueError, match="argument '1 of k' must lie within its storage"):
        launches.Launcher(handle("_Z1kPf")).of_tensor(fakes.beyond_its_storage())
    assert driver.launches == 0


@in_child
def test_what_is_written_to():
    launch = saxpy.Saxpy(handle())
    driver.takes(8, 8, 4, 8)
    y, x = pair()
    launch(y, x, 1.0)
    assert (y._version, x._version) == (1, 0)
    x.requires_grad_()
    launch(y, x, 1.0)
    with pytest.raises(RuntimeError, match="argument '1 of saxpy' must not require grad to be written to"):
        launch(x, y, 1.0)
    with torch.no_grad():
        launch(x, y, 1.0)
    expanded = fakes.on_device(torch.ones(1).expand(1000))
    driver.takes(8, 8)
    two = launches.Launcher(handle("_Z4copyPfPKf"))
    two.of_tensors(y, expanded)
    with pytest.raises(RuntimeError, match="'1 of copy' must have memory of its own for each element"):
        two.of_tensors(expanded, y)
    # The name of a C kernel has no types, so it may write to each tensor. An empty launch writes nothing.
    before = y._version
    driver.takes(8)
    launches.Launcher(handle("plain_c")).of_tensor(y)
    assert y._version == before + 1
    driver.takes(8, 8, 4, 8)
    empty = fakes.on_device(torch.ones(0))
    saxpy.Saxpy(handle())(empty, empty, 1.0)
    assert empty._version == 0


@in_child
def test_error_at_the_launch():
    launch = saxpy.Saxpy(handle())
    driver.takes(8, 8, 4, 8)
    driver.fails("cuLaunchKernel", 700)
    message = (
        r"CUDA error at the launch of saxpy \(compiled for sm_90\) with grid \(4, 1, 1\), block \(256, 1, 1\), 0 bytes "
        r"of shared memory: an illegal memory access was encountered \(CUDA_ERROR_ILLEGAL_ADDRESS, 700\)\. .*"
        "CUDA_LAUNCH_BLOCKING=1"
    )
    with pytest.raises(torch.AcceleratorError, match=message) as caught:
        launch(*pair(), 1.0)
    assert caught.value.error_code == 700
    driver.fails("cuLaunchKernel", 12345)
    with pytest.raises(torch.AcceleratorError, match=r"an error that the driver has no name for \(12345\)"):
        launch(*pair(), 1.0)


@in_child
def test_code_that_cannot_be_loaded():
    driver.fails("cuLibraryLoadData", 1)
    driver.set_text("log", "ptxas: first\nsecond")
    message = r"module mine.cu, compiled for {}, cannot be loaded: invalid argument \(.*, 1\): ptxas: first second{}"
    with pytest.raises(torch.AcceleratorError, match=message.format("sm_90", "$")):
        saxpy.Saxpy(handle())
    with pytest.raises(torch.AcceleratorError, match=message.format("compute_80", "; .* compile for sm_N instead")):
        saxpy.Saxpy(handle(arch="compute_80"))
    driver.fails("cuLibraryGetKernel", 1)
    with pytest.raises(
        torch.AcceleratorError, match="kernel saxpy, compiled for sm_90, cannot be found: invalid argument"
    ):
        saxpy.Saxpy(handle())
    gc.collect()
    assert (driver.loads, driver.unloads) == (1, 1)


@in_child
def test_kernel_is_made_of_a_handle():
    with pytest.raises(TypeError, match=r"a Kernel must be made from an interop.cuda.Kernel, such as .*, got str"):
        launches.Launcher("saxpy")
    with pytest.raises(RuntimeError, match="a Kernel must be made from a handle"):
        launches.Launcher().nothing()
    with pytest.raises(RuntimeError, match="a Kernel must be made from a handle"):
        launches.Launcher().of_int(1)


@in_child
def test_code_is_unloaded_with_its_last_user():
    driver.takes(8, 8, 4, 8)
    kernel = handle()
    first, second = launches.Launcher(kernel), saxpy.Saxpy(kernel)
    assert (driver.loads, driver.unloads) == (1, 0)
    del kernel
    gc.collect()
    del first
    second(*pair(), 1.0)
    assert driver.unloads == 0
    del second
    assert driver.unloads == 1

    # The handle keeps the code loaded, and so does a copy.
    kernel = handle()
    launches.Launcher(kernel)
    third = launches.Launcher(kernel)
    assert (driver.loads, driver.unloads) == (2, 1)
    fourth = third.copy()
    third.drop()
    del kernel
    gc.collect()
    assert driver.unloads == 1
    thread = threading.Thread(target=fourth.drop)
    thread.start()
    thread.join()
    assert driver.unloads == 2


@in_child
def test_code_that_a_graph_has_captured_stays():
    driver.takes(8, 8, 4, 8)
    fakes.set_stream(0, 1)
    launch = saxpy.Saxpy(handle())
    driver.set("capturing", 1)
    launch(*pair(), 1.0)
    driver.set("capturing", 0)
    del launch
    gc.collect()
    assert (driver.loads, driver.unloads) == (1, 0)
    launch = saxpy.Saxpy(handle())
    launch(*pair(), 1.0)
    del launch
    gc.collect()
    assert (driver.loads, driver.unloads) == (2, 1)


BEFORE = """
import ctypes, sys
driver = ctypes.CDLL({driver!r}) if {driver!r} else None
import torch, launches, fakes
from interop.cuda.module import Module
from interop.cuda.nvrtc import Image
fakes.install()
kernel = Module(Image(b"code", ("plain_c",)), ("", "mine.cu", "sm_90", (), ()))["plain_c"]
"""


@needs_handles
@pytest.mark.native
def test_python_ends_while_kernels_are_loaded(forked, nvrtc_site, fake_driver):
    code = BEFORE + "kept = launches.Launcher(kernel); kept.nothing(); sys.kept = [kept, kernel]; print('end')"
    assert forked(code.format(driver=str(fake_driver)), nvrtc_site).strip() == "end"


@needs_handles
def test_driver_that_does_not_tell_sizes(forked, nvrtc_site, tmp_path):
    path = build_driver(tmp_path, "-DWITHOUT_PARAMETERS")
    code = BEFORE + "launches.Launcher(kernel).of_int(1); print(ctypes.c_int.in_dll(driver, 'fake_launches').value)"
    assert forked(code.format(driver=str(path)), nvrtc_site).strip() == "1"


def test_driver_that_is_too_old(forked, nvrtc_site, tmp_path):
    path = build_driver(tmp_path, "-DcuLibraryLoadData=cuNothing")
    code = BEFORE + "launches.Launcher(kernel)"
    error = forked(code.format(driver=str(path)), nvrtc_site, check=False).stderr
    assert "AcceleratorError: CUDA kernels that are compiled at run time need a driver for CUDA 12.0 or newer" in error
    assert "has no cuLibraryLoadData" in error


def test_driver_that_finds_no_device(forked, nvrtc_site, fake_driver):
    code = (
        BEFORE
        + """
(ctypes.c_char * 64).in_dll(driver, "fake_failing").value = b"cuInit"
ctypes.c_int.in_dll(driver, "fake_error").value = 1
launches.Launcher(kernel)
"""
    )
    error = forked(code.format(driver=str(fake_driver)), nvrtc_site, check=False).stderr
    assert "AcceleratorError: NVIDIA's driver cannot be used: invalid argument (CUDA_ERROR_INVALID_VALUE, 1)" in error


def test_without_a_driver(forked, nvrtc_site):
    error = forked((BEFORE + "launches.Launcher(kernel)").format(driver=""), nvrtc_site, check=False).stderr
    assert "AcceleratorError: CUDA kernels need NVIDIA's driver, and libcuda.so.1 does not load: libcuda.so.1:" in error
