"""Streams, events and guards: on the CPU, without CUDA, and on eight fake CUDA devices of c10."""

import re
import textwrap
from pathlib import Path

import pytest
import torch
from conftest import PROJECTS, import_from

import interop

pytestmark = pytest.mark.native

NO_CUDA = (
    r"this torch .* is built without CUDA; install one with it|torch finds no CUDA device; check that .*nvidia-smi"
)
needs_handles = pytest.mark.skipif(
    torch.__version__ < (2, 11), reason="kernels are launched from torch 2.11 on, which gives the handle of a stream"
)
MIRRORS = [
    *(f"c10/core/{name}" for name in ("CachingDeviceAllocator", "DeviceGuard", "Event", "Stream", "StreamGuard")),
    *(
        f"c10/cuda/CUDA{name}"
        for name in ("CachingAllocator", "Event", "Functions", "GraphsC10Utils", "Guard", "Stream")
    ),
    *("ATen/cuda/CUDAContext", "ATen/cuda/CUDAGraphsUtils"),
    *(f"interop/{name}" for name in ("caching_allocator", "device_guard", "stream")),
]
# The functions that raise without CUDA, called without arguments. Other tests below call CUDA_OTHERS.
CUDA_CALLS = [
    "device_count_ensure_non_zero",
    "current_device",
    "set_device",
    "ExchangeDevice",
    "device_synchronize",
    "hasPrimaryContext",
    "getCurrentCUDAStream",
    "getDefaultCUDAStream",
    "getStreamFromPool",
    "getStreamFromExternal",
    "setCurrentCUDAStream",
    "stream",
    "unwrap",
    "synchronize",
    "priority",
    "priority_range",
    "CUDAGuard",
    "CUDAGuard_of_device",
    "OptionalCUDAGuard",
    "CUDAStreamGuard",
    "CUDAStreamGuard_of_stream",
    "OptionalCUDAStreamGuard",
    "record",
    "elapsed_time",
    "getDeviceStats",
    "resetPeakStats",
    "resetAccumulatedStats",
    "emptyCache",
    "getMemoryInfo",
    "getDeviceProperties",
    "getCurrentDeviceProperties",
    "warp_size",
    "canDeviceAccessPeer",
    "currentStreamCaptureStatus",
    "currentStreamCaptureStatusMayInitCtx",
    "assertNotCapturing",
]
CUDA_OTHERS = {
    *("device_count", "is_available", "unrecorded_event"),
    *("recordStream", "CUDAStream_of", "CUDAEvent_with", "unassigned"),
}
GENERIC_CALLS = {
    "current_device": (),
    "set_device": (),
    "synchronize": (),
    "current": (),
    "default": (),
    "pool": (),
    "native_handle": (1,),
    "query": (1,),
    "synchronize_stream": (1,),
    "is_capturing": (1,),
    "set_current_stream": (1,),
    "record": (),
    "within_device": (lambda: None,),
    "within_stream": (1, lambda: None),
    "within_launch_on": (lambda: None,),
    "statistics": (),
    "memory_info": (),
    "reset_peak": (),
    "reset_accumulated": (),
    "empty_cache": (),
}
CPU = torch.device("cpu")
CUDA = torch.device("cuda", 0)

without_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is there")


@pytest.fixture(scope="session")
def streams(site):
    return import_from(site, "streams")


@pytest.fixture(scope="session")
def cuda_mirrors(site):
    return import_from(site, "cuda_mirrors")


@pytest.fixture
def fake(forked, site):
    """Runs code in a new process with eight devices, and with `streams`, `cuda`, `state()` and `raises()` defined."""
    before = """
        import torch, fake_devices, streams, cuda_mirrors as cuda, pytest
        from contextlib import suppress
        from pytest import raises
        fake_devices.enable()
        def device(index=None): return torch.device("cuda") if index is None else torch.device("cuda", index)
        def written(): return fake_devices.written()
        def state():
            "The current device, and the streams that are not the default one."
            ids = dict(streams.current(device(i)) for i in range(8))
            return streams.current_device(device()), {where: number for where, number in ids.items() if number}
        def fail(): raise KeyError(state())
        UNCHANGED = ("cuda:0", {})
        assert state() == UNCHANGED
    """
    return lambda code: forked(textwrap.dedent(before) + textwrap.dedent(code), site)


# Completeness


def test_every_declaration_is_called():
    """The C++ compiler does not see an unused declaration, so its mistakes would go unnoticed."""
    sources = "".join(path.read_text() for path in (PROJECTS / "streams").glob("*.pyx"))
    used = set(re.findall(r"\w+", re.sub(r"#.*", "", sources)))
    for mirror in MIRRORS:
        text = re.sub(r"#.*", "", (Path(interop.get_pxd_dir()) / f"{mirror}.pxd").read_text())
        declared = set(
            re.findall(r"^ +(?:ctypedef .*|cppclass )?(?:[\w&*\[\], ]+? )?\**(\w+)(?:\[\w\])?\(", text, re.MULTILINE)
        )
        fields = set(
            re.findall(r"^ +(?:int|size_t|int64_t|const char\*|StatArray|Stat) (\w+)(?:\[3\])?$", text, re.MULTILINE)
        )
        names = (declared | fields) - {"except", "operator"}
        assert names, mirror
        assert names <= used, (mirror, names - used)


def test_every_cuda_call_is_tried(cuda_mirrors):
    functions = {name for name, value in vars(cuda_mirrors).items() if callable(value)}
    assert functions == {*CUDA_CALLS, *CUDA_OTHERS}


# Without CUDA


@without_cuda
@pytest.mark.parametrize("name", CUDA_CALLS)
def test_cuda_is_missing(cuda_mirrors, name):
    with pytest.raises(torch.AcceleratorError, match=NO_CUDA) as raised:
        getattr(cuda_mirrors, name)()
    assert raised.value.error_code == 100


@without_cuda
def test_what_cuda_answers_where_it_is_missing(cuda_mirrors):
    assert cuda_mirrors.device_count() == 0
    assert cuda_mirrors.is_available() is False
    assert cuda_mirrors.unrecorded_event() == (False, True, True, -1)


@without_cuda
@pytest.mark.parametrize("name", GENERIC_CALLS)
def test_devices_are_missing(streams, name):
    with pytest.raises(torch.AcceleratorError, match=NO_CUDA) as raised:
        getattr(streams, name)(CUDA, *GENERIC_CALLS[name])
    assert raised.value.error_code == 100


@without_cuda
def test_devices_of_another_type_are_missing(streams):
    with pytest.raises(torch.AcceleratorError, match="XPU"):
        streams.current(torch.device("xpu", 0))
    assert streams.device_count(torch.device("xpu")) == 0
    assert streams.device_count(CUDA) == 0


@without_cuda
def test_the_stand_in_for_fake_tensors_is_no_device(forked, site):
    """The eight devices that FakeTensorMode leaves behind do not count, if torch has CUDA but finds no device."""
    forked(
        """if 1:
        import torch, pytest, fake_devices, streams, cuda_mirrors
        if torch.version.cuda:
            torch._C._ensureCUDADeviceGuardSet()
        else:
            fake_devices.enable_stand_in()
        device = torch.device("cuda", 0)
        for call in (
            lambda: streams.within_device(device, lambda: None), lambda: streams.current(device),
            lambda: streams.within_launch_on(device, lambda: None), cuda_mirrors.getCurrentCUDAStream,
            cuda_mirrors.CUDAGuard,
        ):
            with pytest.raises(torch.AcceleratorError, match="torch finds no CUDA device; check that nvidia-smi"):
                call()
        assert streams.device_count(device) == cuda_mirrors.device_count() == 0
        """,
        site,
    )


# On the CPU


def test_the_stream_of_the_cpu(streams):
    assert streams.current(CPU) == streams.default(CPU) == streams.pool(CPU) == streams.pool(CPU, True) == ("cpu", 0)
    assert streams.about_stream(CPU, 0) == (True, "cpu", True, -1, 0, True, True)
    assert streams.query(CPU, 0) is True
    assert streams.is_capturing(CPU, 0) is False
    streams.synchronize_stream(CPU, 0)
    streams.synchronize(CPU)
    streams.set_current_stream(CPU, 0)
    with pytest.raises(NotImplementedError, match="the stream of cpu has no handle"):
        streams.native_handle(CPU, 0)


def test_the_device_cpu(streams):
    assert streams.device_count(CPU) == 1
    assert streams.current_device(CPU) == "cpu"
    streams.set_device(CPU)


def test_guards_do_nothing_on_the_cpu(streams):
    x = torch.zeros(3)
    assert streams.within_device(CPU, lambda: 1) == (1, "cpu", "cpu")
    assert streams.within_device_of(x, lambda: 2) == 2
    assert streams.within_stream(CPU, 0, lambda: 3) == (3, ("cpu", 0), ("cpu", 0), "cpu", "cpu")
    with pytest.raises(ValueError, match="a CUDA kernel must be launched on a CUDA device, got cpu"):
        streams.within_launch(x, lambda: None)


def test_events_have_happened_on_the_cpu(streams):
    assert streams.record(CPU) == (True, True)
    assert streams.assigned_event(CPU) is False
    with pytest.raises(ValueError, match="an event for xpu cannot be recorded on a stream of cpu"):
        streams.record_on_another_type(CPU)
    with pytest.raises(ValueError, match="both events must be recorded"):
        streams.elapsed(CPU, True, False)
    with pytest.raises(NotImplementedError, match="an event on the CPU has no time; measure with a clock"):
        streams.event(CPU)


@pytest.mark.parametrize("name", ["statistics", "memory_info", "reset_peak", "reset_accumulated", "empty_cache"])
def test_the_cpu_has_no_caching_allocator(streams, name):
    with pytest.raises(NotImplementedError, match="there is no caching allocator for cpu; request that of a GPU"):
        getattr(streams, name)(CPU)


def test_record_stream_on_the_cpu(streams):
    """torch has no kernel of record_stream for the CPU; its own method raises the same."""
    x = torch.zeros(3)
    with pytest.raises(NotImplementedError, match="aten::record_stream"):
        streams.record_stream(x, CPU)
    with pytest.raises(TypeError, match="argument 'tensor' must be a tensor"):
        streams.record_no_tensor(CPU)
    streams.record_storage(x, CPU)
    with pytest.raises(ValueError, match="the storage is undefined"):
        streams.record_no_storage(CPU)


def test_a_stream_of_python(streams):
    stream = torch.Stream.__new__(torch.Stream, stream_id=7, device_index=2, device_type=1)
    again = streams.of_python(stream)
    assert (again.stream_id, again.device_index, again.device_type) == (7, 2, 1)
    assert streams.unpack(7, 2, 1) == ("cuda:2", 7)
    with pytest.raises(ValueError, match="there is no device cuda:-3"):
        streams.unpack(7, -3, 1)
    with pytest.raises(ValueError, match="there is no device type 99"):
        streams.unpack(7, 0, 99)


# Unassigned variables


def test_an_unassigned_stream(streams, cuda_mirrors):
    assert streams.unassigned_stream("defined") is False
    for what in ("device", "query", "synchronize", "wait", "record"):
        with pytest.raises(ValueError, match=r"the stream is undefined; take one with current_stream\(device\)"):
            streams.unassigned_stream(what)
    for what in ("stream", "priority", "guard"):
        with pytest.raises(ValueError, match="the stream is undefined"):
            cuda_mirrors.unassigned(what)
    with pytest.raises(ValueError, match="the stream is undefined"):
        streams.unassigned_stream_guard()


def test_an_unassigned_guard(streams):
    with pytest.raises(RuntimeError, match=r"has not begun; assign it: guard = DeviceGuard\(device\)"):
        streams.empty_guards(True)
    with pytest.raises(RuntimeError, match=r"has not begun; assign it: guard = StreamGuard\(stream\)"):
        streams.empty_guards(False)


def test_an_event_of_no_type(streams):
    with pytest.raises(ValueError, match="the event has no device type yet"):
        streams.untyped_event()


def test_wrong_arguments_of_the_cuda_mirrors(cuda_mirrors):
    with pytest.raises(ValueError, match="a CUDAStream must belong to CUDA, got cpu"):
        cuda_mirrors.CUDAStream_of(CPU)
    with pytest.raises(ValueError, match="the device of a CUDAGuard must belong to CUDA, got cpu"):
        cuda_mirrors.CUDAGuard_of_device(CPU)
    with pytest.raises(ValueError, match="the stream of a CUDAStreamGuard must belong to CUDA, got cpu"):
        cuda_mirrors.CUDAStreamGuard_of_stream(CPU)
    with pytest.raises(ValueError, match=r"the flags of a CUDAEvent must be cudaEventDefault.*, got 5"):
        cuda_mirrors.CUDAEvent_with(5)
    with pytest.raises(ValueError, match="memory of cpu cannot be used on a stream of cuda:0"):
        cuda_mirrors.recordStream(torch.zeros(3))
    assert cuda_mirrors.CUDAEvent_with(0) is cuda_mirrors.CUDAEvent_with(2) is False


# On eight devices


def test_functions_of_devices(fake):
    fake("""
        assert streams.device_count(device()) == cuda.device_count() == cuda.device_count_ensure_non_zero() == 8
        assert cuda.is_available()
        streams.set_device(device(3))
        assert streams.current_device(device()) == "cuda:3" and cuda.current_device() == 3
        streams.set_device(device())
        assert cuda.current_device() == 3
        cuda.set_device(5)
        assert streams.current_device(device()) == "cuda:5"
        assert cuda.ExchangeDevice(2) == 5 and cuda.current_device() == 2
        streams.synchronize(device(4))
        streams.synchronize(device())
        # One that is compiled for a torch with CUDA calls CUDA directly.
        (streams.synchronize(device()) if torch.version.cuda else cuda.device_synchronize())
        assert written() == ["synchronize device 4", "synchronize device 2", "synchronize device 2"]
        for call in (streams.set_device, streams.synchronize, streams.current, streams.default, streams.pool,
                     streams.record, streams.statistics,
                     lambda where: streams.within_device(where, fail), lambda where: streams.query(where, 0),
                     lambda where: streams.set_current_stream(where, 1),
                     lambda where: streams.within_stream(where, 1, fail)):
            fake_devices.use_allocator()
            with raises(ValueError, match="there is no device cuda:8; the last one is cuda:7"): call(device(8))
        for call in (cuda.set_device, cuda.ExchangeDevice, cuda.CUDAGuard, cuda.getCurrentCUDAStream):
            with raises(ValueError, match="there is no device cuda:-3; the index is 0"): call(-3)
        with raises(ValueError, match="there is no device cuda:-3"): streams.set_index(device(1), -3)
        assert state() == ("cuda:2", {}) and written() == []
    """)


def test_functions_of_streams(fake):
    fake("""
        streams.set_device(device(6))
        assert streams.current(device()) == streams.default(device()) == cuda.getCurrentCUDAStream() == ("cuda:6", 0)
        assert streams.pool(device(2)) == streams.pool(device(2), False) == ("cuda:2", 100)
        assert streams.pool(device(), True) == ("cuda:6", 200)
        assert cuda.getStreamFromPool() == cuda.getStreamFromPool(False) == ("cuda:6", 100)
        assert cuda.getStreamFromPool(True) == ("cuda:6", 200) and cuda.getStreamFromPool(True, 1) == ("cuda:1", 200)
        streams.set_current_stream(device(2), 9)
        assert state() == ("cuda:6", {"cuda:2": 9})
        assert streams.current(device(2)) == cuda.getCurrentCUDAStream(2) == ("cuda:2", 9)
        assert streams.default(device(2)) == cuda.getDefaultCUDAStream(2) == ("cuda:2", 0)
        assert cuda.getDefaultCUDAStream() == ("cuda:6", 0)
        cuda.setCurrentCUDAStream()
        assert state() == ("cuda:6", {"cuda:2": 9, "cuda:0": 1})
        assert streams.about_stream(device(2), 9) == (True, "cuda:2", True, 2, 9, True, True)
        if torch.__version__ >= (2, 11): assert streams.native_handle(device(2), 9) == 2009 and cuda.stream() == 1
        else: raises(NotImplementedError, streams.native_handle, device(2), 9).match("CUDAStream.stream")
        assert streams.query(device(2), 0) is True and streams.query(device(2), 1) is False and cuda.unwrap() is False
        if torch.__version__ >= (2, 12):
            assert streams.is_capturing(device(2), 200) is True and streams.is_capturing(device(2), 0) is False
        streams.synchronize_stream(device(2), 9); cuda.synchronize()
        assert written() == ["synchronize cuda:2 9", "synchronize cuda:0 1"]
    """)


def test_a_device_guard_switches_and_restores(fake):
    fake("""
        assert streams.within_device(device(3), state) == (("cuda:3", {}), "cuda:0", "cuda:3")
        assert state() == UNCHANGED
        inner = lambda: (streams.within_device(device(5), state)[0], state())
        assert streams.within_device(device(3), inner)[0] == (("cuda:5", {}), ("cuda:3", {}))
        with raises(KeyError, match="cuda:3"): streams.within_device(device(3), fail)
        assert state() == UNCHANGED
        def failing_inside():
            with suppress(KeyError): streams.within_device(device(5), fail)
            return state()
        assert streams.within_device(device(3), failing_inside)[0] == ("cuda:3", {})
        assert streams.within_device(device(), state) == (UNCHANGED, "cuda:0", "cuda:0")
        assert streams.refused_in_its_place(device(3), device(8), state) == UNCHANGED
        assert state() == UNCHANGED
    """)


def test_a_device_guard_of_a_tensor(fake):
    fake("""
        from torch._subclasses import FakeTensorMode
        with FakeTensorMode():
            x = torch.empty(3, device="cuda:4")
        assert streams.within_device_of(x, state) == ("cuda:4", {})
        assert state() == UNCHANGED
    """)


def test_a_stream_guard_switches_and_restores(fake):
    fake("""
        streams.set_current_stream(device(0), 11); streams.set_current_stream(device(3), 33)
        before = state()
        assert before == ("cuda:0", {"cuda:0": 11, "cuda:3": 33})
        inside = ("cuda:3", {"cuda:0": 11, "cuda:3": 9})
        assert streams.within_stream(device(3), 9, state) == (inside, ("cuda:0", 11), ("cuda:3", 9), "cuda:0", "cuda:3")
        assert state() == before
        inner = lambda: (
            streams.within_stream(device(3), 5, state)[0], streams.within_device(device(1), state)[0], state())
        assert streams.within_stream(device(3), 9, inner)[0] == (
            ("cuda:3", {"cuda:0": 11, "cuda:3": 5}), ("cuda:1", {"cuda:0": 11, "cuda:3": 9}), inside)
        with raises(KeyError, match="'cuda:3': 9"): streams.within_stream(device(3), 9, fail)
        assert state() == before
    """)


def test_guards_begin_again_and_end_early(fake):
    fake("""
        assert streams.one_after_another(device(3), device(5), state) == [
            ("cuda:3", {}), ("cuda:5", {}), ("cuda:3", {}), ("cuda:5", {}), UNCHANGED, ("cuda:3", {}),
            ("cuda:3", {"cuda:3": 1}), ("cuda:5", {"cuda:5": 2}), ("cuda:3", {"cuda:3": 3}), UNCHANGED]
        assert state() == UNCHANGED
        with raises(KeyError): streams.one_after_another(device(3), device(5), fail)
        assert state() == UNCHANGED
    """)


def test_the_guards_of_cuda(fake):
    fake("""
        assert cuda.CUDAGuard(3, state) == (("cuda:3", {}), "cuda:0", "cuda:3")
        assert cuda.CUDAGuard_of_device(device(2), state) == ("cuda:2", {})
        streams.set_device(device(7))
        assert cuda.OptionalCUDAGuard(3, state) == [
            ("cuda:7", {}), ("cuda:3", {}), ("cuda:7", {}), ("cuda:3", {}), ("cuda:0", {})]
        inside = ("cuda:0", {"cuda:0": 1})
        assert cuda.CUDAStreamGuard(state) == (inside, ("cuda:7", 0), ("cuda:0", 1), "cuda:7", "cuda:0")
        assert cuda.CUDAStreamGuard_of_stream(device(2), state) == ("cuda:2", {"cuda:2": 1})
        assert cuda.OptionalCUDAStreamGuard(state) == [("cuda:7", {}), inside, ("cuda:7", {})]
        for call in (lambda: cuda.CUDAGuard(3, fail), lambda: cuda.CUDAGuard_of_device(device(3), fail),
                     lambda: cuda.OptionalCUDAGuard(3, fail), lambda: cuda.CUDAStreamGuard(fail)):
            with raises(KeyError): call()
            assert state() == ("cuda:7", {})
    """)


@needs_handles
def test_a_launch_switches_and_restores(fake):
    fake("""
        from torch._subclasses import FakeTensorMode
        with FakeTensorMode():
            x = torch.empty(3, device="cuda:4")
        streams.set_current_stream(device(4), 9)
        assert streams.within_launch(x, state) == (("cuda:4", {"cuda:4": 9}), 4009)
        assert streams.within_stream(device(4), 5, lambda: streams.within_launch(x, state))[0][1] == 4005
        assert streams.within_launch_on(device(2), lambda: streams.within_launch(x, state)) == (
            (("cuda:4", {"cuda:4": 9}), 4009), 2000)
        with raises(KeyError, match="cuda:4"): streams.within_launch(x, fail)
        assert state() == ("cuda:0", {"cuda:4": 9})
    """)


def test_current_devices_and_streams_are_of_a_thread(fake):
    fake("""
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(1) as pool:
            elsewhere = lambda: pool.submit(state).result()
            assert streams.within_stream(device(3), 9, elsewhere)[0] == UNCHANGED
            assert pool.submit(streams.within_device, device(5), state).result()[0] == ("cuda:5", {})
        assert state() == UNCHANGED
    """)


def test_events(fake):
    fake("""
        before = [True, False, "cuda", -1, 0, True, True]
        assert streams.event(device(2)) == before + [True, True, "cuda:2", 2, True, 2.0]
        assert written() == [
            "record cuda:2 1 with a time", "block cuda:2 2 1", "block cuda:2 2 1", "synchronize event 1",
            *["record cuda:2 1 with a time"] * 3, "destroy event 2", "destroy event 2"]
        assert streams.record(device(1)) == (True, True)
        assert written() == ["record cuda:1 1 without one", "destroy event 1"]
        assert streams.assigned_event(device(1)) is False
        assert written() == ["record cuda:1 1 without one", "destroy event 1"]
        assert cuda.record() == (True, 0) and cuda.elapsed_time() == 1.0
        assert written() == ["record cuda:0 0 without one", "destroy event 0", *["record cuda:0 1 with a time"] * 3,
                             "block cuda:0 1 1", "block cuda:0 1 1", "synchronize event 1", *["destroy event 0"] * 2]
        with raises(ValueError, match="was recorded on cuda:1 cannot be recorded on a stream of cuda:2; make another"):
            streams.record_on_another(device(1), device(2))
        with raises(ValueError, match="an event for xpu cannot be recorded on a stream of cuda:1"):
            streams.record_on_another_type(device(1))
        with raises(ValueError, match="a stream of cpu cannot wait for an event of cuda"):
            streams.wait_on_another_type(device(1), torch.device("cpu"))
        with raises(ValueError, match="made with timing: .*BACKEND_DEFAULT"): streams.elapsed(device(1), False, True)
        with raises(ValueError, match="both events must be recorded"): streams.elapsed(device(1), True, False)
        assert streams.elapsed(device(1), True, True) == 0.0
    """)


def test_the_caching_allocator(fake):
    fake("""
        none = ([(0, 0, 0, 0)] * 11, [0] * 6)
        assert streams.statistics(device(3)) == none and cuda.getDeviceStats(3) == (0, 0)
        streams.reset_peak(device(3)); streams.reset_accumulated(device(3)); streams.empty_cache(device())
        assert written() == []
        fake_devices.use_allocator()
        arrays, counts = streams.statistics(device(3))
        assert arrays == [(0, 0, 0, 0)] * 4 + [(103, 103, 103, 0), (203, 203, 203, 0)] + [(0, 0, 0, 0)] * 5
        assert counts == [0, 303, 0, 0, 0, 0]
        assert cuda.getDeviceStats(2) == (102, 302)
        streams.set_device(device(5))
        assert streams.memory_info(device()) == (405, 505) and cuda.getMemoryInfo() == (400, 500)
        streams.reset_peak(device(3)); streams.reset_accumulated(device(4)); streams.empty_cache(device())
        cuda.resetPeakStats(); cuda.resetAccumulatedStats(); cuda.emptyCache()
        assert written() == ["reset peak 3", "reset accumulated 4", "empty cache",
                             "reset peak 0", "reset accumulated 0", "empty cache"]
        with raises(ValueError, match="memory of cpu cannot be used on a stream of cuda:1"):
            streams.record_storage(torch.zeros(3), device(1))
    """)


@without_cuda
@pytest.mark.parametrize(
    "name",
    [
        "getStreamFromExternal",
        "priority",
        "priority_range",
        "hasPrimaryContext",
        "getDeviceProperties",
        "getCurrentDeviceProperties",
        "warp_size",
        "canDeviceAccessPeer",
        "currentStreamCaptureStatus",
        "currentStreamCaptureStatusMayInitCtx",
        "assertNotCapturing",
    ],
)
@pytest.mark.skipif(torch.version.cuda is not None, reason="modules for this torch are compiled with CUDA")
@pytest.mark.long
def test_a_module_that_was_compiled_without_cuda(fake, name):
    fake(f"""
        with raises(NotImplementedError, match="compiled for a torch without CUDA; compile it again with the torch"):
            cuda.{name}()
    """)
