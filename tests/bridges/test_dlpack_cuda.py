"""DLPack of CUDA memory: exported fields and waits between streams, on fake devices and on a GPU."""

import gc
import textwrap
import weakref

import dlpack_structs as structs
import numpy as np
import pytest
import torch

import interop

pytestmark = [pytest.mark.native, pytest.mark.filterwarnings("ignore:.*Triggered internally:UserWarning")]
on_gpu = pytest.mark.cuda


@pytest.fixture
def fake(fake_gpus):
    before = """
        import dlpacked, dlpack_structs as structs
        from dlpack_structs import Capsule, Producer
        CUDA3 = lambda managed: (setattr(managed.tensor.device, "type", 2), setattr(managed.tensor.device, "index", 3))
        def capsule(change=CUDA3):
            return Capsule(np.arange(3.0), change=change)
    """
    return lambda code: fake_gpus(textwrap.dedent(before) + textwrap.dedent(code))


def test_what_is_said_of_a_tensor(fake):
    fake("""
        x = torch.arange(6.0).view(2, 3)
        tensor = on(x.t(), 3)
        for version in (None, (1, 0)):
            said = structs.inside(interop.to_dlpack(tensor, max_version=version)).tensor
            assert (said.device.type, said.device.index, said.data) == (structs.CUDA, 3, x.data_ptr())
            assert (said.shape[:2], said.strides[:2]) == ([3, 2], [1, 3])
        assert dlpacked.described(tensor)[:2] == (x.data_ptr(), (structs.CUDA, 3))
        assert dlpacked.api_view(True, tensor)[1] == (structs.CUDA, 3)
        assert structs.inside(interop.to_dlpack(on(torch.ones(0), 1))).tensor.device.index == 1
    """)


def test_what_cannot_be_exported(fake):
    fake("""
        def refused(tensor, words):
            for call in (interop.to_dlpack, interop.from_dlpack, dlpacked.described, dlpacked.round_trip):
                with raises(BufferError, match=words):
                    call(tensor)
        for pending in (torch._C._set_conj, torch._C._set_neg):
            lazy = on(torch.ones(2, dtype=torch.complex64))
            pending(lazy, True)
            refused(lazy, "resolve_")
        refused(on(torch.ones(2)).requires_grad_(), "require grad")
        refused(fakes.beyond_its_storage(), "storage")
    """)


def test_consumers_that_wait(fake):
    """None is the legacy default stream, 2 the per-thread one. For -1 or the current stream, nothing waits."""
    fake("""
        tensor = on(torch.ones(2), 3)
        waits = {None: 0, 1: 0, 2: 2, 4242: 4242}
        written()
        streams.set_current_stream(torch.device("cuda", 3), 100)
        for stream, number in waits.items():
            interop.to_dlpack(tensor, stream=stream)
            assert written() == ["record cuda:3 100 without one", f"block cuda:3 {number} 1"], stream
        for stream in (-1, 3100):
            interop.to_dlpack(tensor, stream=stream)
            assert written() == [], stream
        for stream in (0, -2, 7):
            with raises(ValueError, match="'stream' must"):
                interop.to_dlpack(tensor, stream=stream)
        dlpacked.exported(tensor), dlpacked.round_trip(tensor), dlpacked.api_round_trip(True, tensor)
        assert written() == []
        with raises(ValueError, match="a copy is necessary to move 'tensor' from cuda:3 to cpu"):
            interop.to_dlpack(tensor, dl_device=(1, 0), copy=False)
        interop.to_dlpack(tensor, dl_device=(2, 3), copy=False)
    """)


def test_what_is_taken(fake):
    fake("""
        given = capsule()
        tensor = interop.from_dlpack(given.capsule)
        assert (tensor.device, tensor.data_ptr()) == (torch.device("cuda:3"), given.array.ctypes.data)
        with raises(ValueError, match="'copy' is False, but a copy is necessary to move 'obj' from cuda:3 to cpu"):
            interop.from_dlpack(capsule().capsule, device="cpu", copy=False)
        assert interop.from_dlpack(capsule().capsule, device="cuda:3").device.index == 3
        with raises(BufferError, match="a CUDA device from 0 to 7, got 8"):
            interop.from_dlpack(capsule(lambda m: (CUDA3(m), setattr(m.tensor.device, "index", 8))).capsule)
        with raises(BufferError, match="from 0 to 7, got -1"):
            interop.from_dlpack(capsule(lambda m: (CUDA3(m), setattr(m.tensor.device, "index", -1))).capsule)
        managed = lambda m: (CUDA3(m), setattr(m.tensor.device, "type", structs.MANAGED))
        assert interop.from_dlpack(capsule(managed).capsule).device.index == 3
        other = interop.from_dlpack(tensor)
        assert other.device == tensor.device and other.data_ptr() == tensor.data_ptr()
        del tensor, other
        assert given.deleted == 1
    """)


def test_producers_are_told_the_current_stream(fake):
    fake("""
        def asked(**options):
            producer = Producer(capsule(lambda m: setattr(m.tensor.device, "type", 2)).capsule, (2, 0), **options)
            assert interop.from_dlpack(producer).device == torch.device("cuda:0")
            return producer.calls
        version = {"max_version": (1, 3)}
        assert asked() == [version | {"stream": 1}]
        assert asked(keywords=["stream"]) == [version | {"stream": 1}, {"stream": 1}]
        streams.set_current_stream(torch.device("cuda", 0), 100)
        assert asked() == [version | {"stream": 100}]
        unreached = Producer(None, (2, 9))
        with raises(BufferError, match="from 0 to 7, got 9"):
            interop.from_dlpack(unreached)
        assert unreached.calls == []
    """)


def test_ours_waits_for_producers_with_the_exchange_api(fake):
    fake("""
        made = dlpacked.Fast(1.5, "on CUDA")
        streams.set_current_stream(torch.device("cuda", 3), 100)
        written()
        for handle, number in {0: 0, 1: 0, 2: 2, 4242: 4242}.items():
            dlpacked.set_stream(handle)
            assert interop.from_dlpack(made).device == torch.device("cuda:3")
            assert written() == [f"record cuda:3 {number} without one", "block cuda:3 100 1"]
        dlpacked.set_stream(3100)
        interop.from_dlpack(made)
        assert written() == []
        assert dlpacked.api_stream(True, structs.CUDA, 3) == 3100
    """)


# On a GPU


@on_gpu
def test_round_trips_on_a_gpu():
    x = torch.arange(24, device="cuda", dtype=torch.float32).view(2, 3, 4)
    for tensor in (x, x.transpose(0, 2), x[:, 1:, ::2], x[0, 0, 0], x[:0], x.bfloat16(), x > 3):
        for back in (
            interop.from_dlpack(tensor),
            interop.from_dlpack(interop.to_dlpack(tensor, max_version=(1, 0))),
            interop.from_dlpack(tensor.__dlpack__()),
            torch.from_dlpack(interop.to_dlpack(tensor)),
        ):
            assert torch.equal(back, tensor)
            assert (back.device, back.dtype, back.stride()) == (tensor.device, tensor.dtype, tensor.stride())
            assert back.data_ptr() == tensor.data_ptr() or not tensor.numel()


@on_gpu
def test_copies_between_devices():
    x = torch.arange(6.0, device="cuda")
    assert interop.from_dlpack(x, device="cpu").tolist() == list(range(6))
    assert interop.from_dlpack(np.arange(6.0), device="cuda").device.type == "cuda"
    managed = structs.inside(interop.to_dlpack(x, dl_device=(structs.CPU, 0), max_version=(1, 0)))
    assert (managed.flags, managed.tensor.device.type) == (structs.IS_COPIED, structs.CPU)
    assert structs.array_of(managed.capsule).tolist() == list(range(6))


@on_gpu
@pytest.mark.parametrize("number", ["legacy", "per thread", "side"])
def test_streams_wait_on_a_gpu(number):
    """The consumer's stream waits for slow work on ours."""
    side, other = torch.cuda.Stream(), torch.cuda.Stream()
    x = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    handle, consumer = {
        "legacy": (1, torch.cuda.default_stream()),
        "per thread": (2, torch.cuda.ExternalStream(2)),
        "side": (other.cuda_stream, other),
    }[number]
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        x += 1
        capsule = interop.to_dlpack(x, stream=handle)
    with torch.cuda.stream(consumer):
        assert interop.from_dlpack(capsule).sum().item() == 1 << 20


@on_gpu
def test_cuda_is_begun_by_what_comes_first(forked):
    """Memory of another library may be torch's first use of CUDA."""
    pytest.importorskip("cupy", reason="CuPy is not installed")
    code = "import cupy, torch, interop; t = interop.from_dlpack(cupy.arange(3)); t += 1; print(t.tolist())"
    assert forked(code) == "[1, 2, 3]\n"


@on_gpu
def test_cupy():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    array = cupy.arange(24, dtype=cupy.float32).reshape(4, 6)[1:, ::2]
    tensor = interop.from_dlpack(array)
    assert (tensor.data_ptr(), tensor.tolist()) == (array.data.ptr, array.tolist())
    assert interop.from_dlpack(array, device="cpu").tolist() == array.tolist()
    follow = weakref.ref(array)
    del array
    gc.collect()
    assert follow() is not None
    back = cupy.from_dlpack(structs.Producer(interop.to_dlpack(tensor.t()), (structs.CUDA, 0)))
    assert (back.data.ptr, back.tolist()) == (tensor.data_ptr(), tensor.t().tolist())
