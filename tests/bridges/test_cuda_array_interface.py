"""The CUDA array interface both ways: errors on any machine, then reading and writing on fake devices and on a GPU."""

import gc
import textwrap
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import interop

pytestmark = [pytest.mark.native, pytest.mark.filterwarnings("ignore:.*Triggered internally:UserWarning")]
without_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is there")
on_gpu = pytest.mark.cuda


def interface(**changes):
    """An object with a valid interface of version 3, except for `changes`. The value ... removes an entry."""
    entries = {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "version": 3, "strides": None, "stream": 1}
    entries |= changes
    return SimpleNamespace(__cuda_array_interface__={k: v for k, v in entries.items() if v is not ...})


REFUSALS = {  # the entries, the error, words of its message
    "no version": ({"version": ...}, TypeError, "an integer for 'version'.*got None"),
    "version 4": ({"version": 4}, ValueError, "version 0 to 3.*got 4"),
    "version -1": ({"version": -1}, ValueError, "version 0 to 3.*got -1"),
    "a version in words": ({"version": "3"}, TypeError, "an integer for 'version'"),
    "a mask": ({"mask": interface()}, ValueError, "no mask"),
    "no shape": ({"shape": ...}, TypeError, "a tuple of integers for 'shape'"),
    "a list for the shape": ({"shape": [2, 3]}, TypeError, r"a tuple of integers for 'shape'.*\[2, 3\]"),
    "fractional sizes": ({"shape": (2.0,)}, TypeError, "a tuple of integers for 'shape'"),
    "a negative size": ({"shape": (-1,)}, ValueError, "sizes >= 0, got -1"),
    "too many axes": ({"shape": (1,) * 65}, ValueError, "0 to 64 dimensions, got 65"),
    "a size beyond 64 bits": ({"shape": (2**64,)}, OverflowError, "64 bits for 'shape'"),
    "huge sizes": ({"shape": (2**62, 2)}, ValueError, "address space"),
    "too few strides": ({"strides": (4,)}, ValueError, "as many strides as sizes, got 1 and 2"),
    "negative strides": ({"strides": (-12, 4)}, ValueError, "negative strides.*-12 on axis 0"),
    "odd strides": ({"strides": (13, 4)}, ValueError, "multiples of its item size, 4 bytes, got 13"),
    "strides in a list": ({"strides": [12, 4]}, TypeError, "a tuple of integers for 'strides'"),
    "no typestr": ({"typestr": ...}, TypeError, "a type such as '<f4' for 'typestr'"),
    "a typestr of bytes": ({"typestr": b"<f4"}, TypeError, "a type such as '<f4'"),
    "a short typestr": ({"typestr": "f4"}, TypeError, "a type such as '<f4'"),
    "another byte order": ({"typestr": ">f4"}, ValueError, "byte order.*>f4"),
    "no byte order": ({"typestr": "|f4"}, ValueError, "byte order"),
    "long doubles": ({"typestr": "<f16"}, TypeError, "dtype that torch has.*<f16"),
    "strings": ({"typestr": "<U4"}, TypeError, "dtype that torch has.*<U4"),
    "a zero in the typestr": ({"typestr": "<f4\0x"}, TypeError, "a type such as '<f4'"),
    "a space in the typestr": ({"typestr": "<f 4"}, TypeError, "a type such as '<f4'"),
    "a truth value for the stream": ({"stream": True}, TypeError, "an integer for 'stream'"),
    "nonsense after the size": ({"typestr": "<f4x"}, TypeError, "dtype that torch has"),
    "bfloat16, as others write it": ({"typestr": "<V2"}, TypeError, r"view\(torch\.bfloat16\)"),
    "no data": ({"data": ...}, TypeError, "an address and a truth value for 'data'"),
    "an address alone": ({"data": 4096}, TypeError, "an address and a truth value"),
    "an address of another kind": ({"data": (b"", False)}, TypeError, "an address and a truth value"),
    "a negative address": ({"data": (-8, False)}, OverflowError, "64 bits for 'data'.*-8"),
    "a null pointer": ({"data": (0, False)}, ValueError, "a null pointer for 6 elements"),
    "a misaligned address": ({"data": (4098, False)}, ValueError, "aligned to 4"),
    "read-only": ({"data": (4096, True)}, ValueError, "read-only.*on_readonly='copy'"),
    "stream 0": ({"stream": 0}, ValueError, "must not be 0, which is ambiguous"),
    "stream -1": ({"stream": -1}, ValueError, "1, 2 or the handle of a stream, got -1"),
    "a stream of another kind": ({"stream": "1"}, TypeError, "an integer for 'stream'"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_from_cuda_array_interface_refuses(name):
    changes, kind, words = REFUSALS[name]
    with pytest.raises(kind, match=words):
        interop.from_cuda_array_interface(interface(**changes))


def test_an_interface_that_changes_while_it_is_read():
    class Last:
        def __index__(self):
            entries["shape"] = None  # the last reference to the tuple that is being read
            spoilt.append([bytearray(64) for _ in range(64)])
            return 2

    spoilt = []
    given = interface(shape=tuple(Last() for _ in range(25)))
    entries = given.__cuda_array_interface__
    with pytest.raises((ValueError, RuntimeError)):
        interop.from_cuda_array_interface(given)


def test_objects_without_the_interface():
    for given in (None, [1.0], np.ones(2), torch.ones(2)):
        with pytest.raises(TypeError, match=r"'obj' must be on a GPU and have the attribute.*interop\.from_dlpack"):
            interop.from_cuda_array_interface(given)
    with pytest.raises(TypeError, match="must be a dict, got 3"):
        interop.from_cuda_array_interface(SimpleNamespace(__cuda_array_interface__=3))
    with pytest.raises(ValueError, match="'on_readonly' must be"):
        interop.from_cuda_array_interface(interface(), on_readonly="no")

    class Failing:
        @property
        def __cuda_array_interface__(self):
            raise KeyError("its own")

    with pytest.raises(KeyError, match="its own"):
        interop.from_cuda_array_interface(Failing())


def test_functions_in_cython_refuse_the_same(bridged):
    for of_python, of_cython, given in (
        (interop.from_cuda_array_interface, bridged.of_cuda_array, interface(data=(4098, False))),
        (interop.to_cuda_array_interface, bridged.as_cuda_array, torch.ones(2)),
    ):
        with pytest.raises((TypeError, ValueError)) as expected:
            of_python(given)
        with pytest.raises(expected.type) as raised:
            of_cython(given)
        assert str(raised.value) == str(expected.value)


@without_cuda
def test_without_cuda_all_that_is_right_is_refused():
    for changes in ({}, {"shape": (0,), "data": (0, False)}, {"stream": None}, {"version": 2, "stream": 0}):
        with pytest.raises(torch.AcceleratorError, match=r"'obj' is on CUDA: (this torch|torch finds no)"):
            interop.from_cuda_array_interface(interface(**changes))


def test_to_cuda_array_interface_refuses():
    for given in (None, [1.0]):
        with pytest.raises(TypeError, match=r"'tensor' must be a torch\.Tensor"):
            interop.to_cuda_array_interface(given)
    with pytest.raises(TypeError, match=r"must be on device cuda, got cpu.*\.cuda\(\)"):
        interop.to_cuda_array_interface(torch.ones(2))
    with pytest.raises(TypeError, match="meta"):
        interop.to_cuda_array_interface(torch.ones(2, device="meta"))
    with pytest.raises(RuntimeError, match="resolve_conj"):
        interop.to_cuda_array_interface(torch.ones(2, dtype=torch.complex64).conj())
    with torch._subclasses.FakeTensorMode(), pytest.raises(TypeError, match="__torch_dispatch__"):
        interop.to_cuda_array_interface(torch.empty(3, device="cuda:0"))


# On fake devices, whose memory is the host's


@pytest.fixture
def fake(fake_gpus):
    before = """
        import types
        def told(tensor, **given):
            return interop.to_cuda_array_interface(tensor, **given).__cuda_array_interface__
        def of(**entries):
            given = {"shape": (2,), "typestr": "<f4", "data": (0, False), "version": 3} | entries
            return types.SimpleNamespace(__cuda_array_interface__=given)
    """
    return lambda code: fake_gpus(textwrap.dedent(before) + textwrap.dedent(code))


@pytest.mark.long
def test_a_finalizer_that_transposes_the_tensor(fake):
    """The interface describes one moment, although each new tuple may start a garbage collection."""
    fake("""
        x = on(torch.arange(6.0).view(2, 3))
        class Turns:
            def __del__(self):
                x.t_()
        gc.disable()
        orders = set()
        for number in range(1, 40):  # of the object at which garbage is collected
            gc.collect()
            before = x.shape
            garbage = Turns()
            garbage.itself = garbage
            del garbage
            gc.set_threshold(number + gc.get_count()[0])
            gc.enable()
            entries = told(x)
            gc.disable()
            orders.add(entries["shape"] == before)
            assert (entries["shape"], entries["strides"]) in (((2, 3), None), ((3, 2), (4, 12))), number
        assert orders == {True, False}  # it was transposed before that, and after
    """)


def test_what_is_said_of_a_tensor(fake):
    fake("""
        x = torch.arange(6.0).view(2, 3)
        address = x.data_ptr()
        entries = {"shape": (2, 3), "typestr": "<f4", "data": (address, False), "version": 3, "strides": None}
        assert told(on(x)) == entries | {"stream": 1}
        assert told(on(x, 3))["stream"] == 3000
        assert told(on(x.t()))["strides"] == (4, 12)
        assert told(on(x[1:, ::2])) == entries | {
            "shape": (1, 2), "data": (address + 12, False), "strides": (12, 8), "stream": 1
        }
        assert told(on(x[:1].expand(2, 3)))["data"] == (address, True)
        assert told(on(x), readonly=True)["data"] == (address, True)
        assert told(on(torch.ones(0, 2)))["data"] == (0, False)
        assert told(on(torch.tensor(1.5)))["shape"] == ()
        kinds = {"bool": "|b1", "uint8": "|u1", "int64": "<i8", "uint16": "<u2", "float16": "<f2", "complex128": "<c16"}
        for dtype, text in kinds.items():
            assert told(on(torch.zeros(2, dtype=getattr(torch, dtype))))["typestr"] == text
        for dtype, way in {"bfloat16": "uint16", "float8_e5m2": "uint8", "complex32": "float16"}.items():
            with raises(TypeError, match=rf"torch.{dtype}; take its bits with .view\\(torch.{way}\\).*to_dlpack"):
                told(on(torch.zeros(2, dtype=getattr(torch, dtype))))
    """)


def test_what_cannot_be_shown(fake):
    fake("""
        grad = on(torch.ones(2)).requires_grad_()
        with raises(RuntimeError, match="require grad"):
            told(grad)
        assert told(grad, readonly=True)["data"][1] is True
        with raises(ValueError, match="storage"):
            told(fakes.beyond_its_storage())
        for pending in (torch._C._set_conj, torch._C._set_neg):
            lazy = on(torch.ones(2, dtype=torch.complex64))
            pending(lazy, True)
            with raises(RuntimeError, match="resolve_"):
                told(lazy)
    """)


def test_what_is_read(fake):
    fake("""
        x = torch.arange(6.0)
        on(x, 5)
        data = (x.data_ptr(), False)
        tensor = interop.from_cuda_array_interface(of(shape=(2, 3), data=data, strides=None))
        assert (tensor.device, tensor.data_ptr()) == (torch.device("cuda:5"), x.data_ptr())
        assert (tensor.dtype, tensor.shape, tensor.stride()) == (torch.float32, (2, 3), (3, 1))
        tensor = interop.from_cuda_array_interface(of(shape=(3, 2), data=data, strides=(4, 12)))
        assert tensor.stride() == (1, 3)
        assert interop.from_cuda_array_interface(of(shape=(), data=data)).shape == ()
        assert interop.from_cuda_array_interface(of(shape=(np.int64(2),), data=data)).shape == (2,)
        streams.set_device(torch.device("cuda", 2))
        for pointer in (0, x.data_ptr()):
            empty = interop.from_cuda_array_interface(of(shape=(0, 3), data=(pointer, False)))
            assert (empty.device, empty.shape, empty.data_ptr()) == (torch.device("cuda:2"), (0, 3), 0)
        with raises(ValueError, match="got the address 0x40, for which CUDA reports: it is not registered"):
            interop.from_cuda_array_interface(of(data=(64, False)))
        with raises(ValueError, match="read-only"):
            interop.from_cuda_array_interface(of(data=(x.data_ptr(), True)))
        shared = interop.from_cuda_array_interface(of(data=(x.data_ptr(), True)), on_readonly="share")
        assert told(shared)["data"] == (x.data_ptr(), True)
    """)


def test_streams_wait(fake):
    """Our stream waits for a different named stream. It waits for none if none is named, or before version 3."""
    fake("""
        x = torch.arange(6.0)
        on(x)
        data = (x.data_ptr(), False)
        written()
        for entries in ({}, {"stream": None}, {"stream": 1}, {"stream": 4242, "version": 2}):
            interop.from_cuda_array_interface(of(data=data, **entries))
            assert written() == [], entries
        for stream in (2, 4242):
            interop.from_cuda_array_interface(of(data=data, stream=stream))
            assert written() == [f"record cuda:0 {stream} without one", "block cuda:0 0 1"]
        streams.set_current_stream(torch.device("cuda", 0), 100)
        assert told(on(x))["stream"] == 100
        interop.from_cuda_array_interface(of(data=data, stream=100))
        assert written() == []
        interop.from_cuda_array_interface(of(data=data, stream=1))
        assert written() == ["record cuda:0 0 without one", "block cuda:0 100 1"]
    """)


def test_owners(fake):
    fake("""
        class Owner(types.SimpleNamespace):
            pass
        x = torch.arange(6.0)
        on(x)
        owner = Owner(**vars(of(data=(x.data_ptr(), False))))
        follow = weakref.ref(owner)
        tensor = interop.from_cuda_array_interface(owner)
        view = tensor.detach()
        del owner, tensor
        assert follow() is not None
        with raises(RuntimeError):
            view.untyped_storage().resize_(1024)
        del view
        assert follow() is None
        array = np.ones(6, np.float32)
        before = sys.getrefcount(array)
        device = on(interop.from_numpy(array))
        given = interop.to_cuda_array_interface(device)
        follow = weakref.ref(device)
        del device
        assert follow() is None and sys.getrefcount(array) > before
        users = sys.getrefcount(given)
        back = interop.from_cuda_array_interface(given)
        assert sys.getrefcount(given) == users  # the tensor owns what `given` owns: round trips do not nest owners
        del given
        assert sys.getrefcount(array) > before
        del back
        gc.collect()
        assert sys.getrefcount(array) == before
        with raises(AttributeError):
            interop.to_cuda_array_interface(on(x)).__cuda_array_interface__ = {}
    """)


# On a GPU


@on_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int8, torch.uint16, torch.bool, torch.complex64])
def test_round_trips_on_a_gpu(dtype):
    x = torch.arange(24, device="cuda").view(2, 3, 4).to(dtype)
    for tensor in (x, x.transpose(0, 2), x[:, 1:, ::2], x[0, 0, 0], x[:0]):
        given = interop.to_cuda_array_interface(tensor)
        back = interop.from_cuda_array_interface(given)
        assert torch.equal(back, tensor)
        assert (back.device, back.data_ptr()) == (tensor.device, tensor.data_ptr())
    assert interop.from_cuda_array_interface(x).data_ptr() == x.data_ptr()  # torch's own interface, of version 2


@on_gpu
def test_memory_that_cuda_does_not_know():
    x = torch.ones(4)
    with pytest.raises(ValueError, match="must point to memory of a CUDA device"):
        interop.from_cuda_array_interface(interface(data=(x.data_ptr(), False), shape=(4,)))


@on_gpu
def test_streams_wait_on_a_gpu():
    """The other stream sees the whole result of a slow one."""
    side = torch.cuda.Stream()
    x = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        x += 1
        given = interop.to_cuda_array_interface(x)
    assert given.__cuda_array_interface__["stream"] == side.cuda_stream
    assert interop.from_cuda_array_interface(given).sum().item() == 1 << 20


@on_gpu
def test_cupy():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    array = cupy.arange(24, dtype=cupy.float32).reshape(4, 6)[1:, ::2]
    tensor = interop.from_cuda_array_interface(array)
    assert tensor.data_ptr() == array.data.ptr
    assert tensor.tolist() == array.tolist()
    follow = weakref.ref(array)
    del array
    gc.collect()
    assert follow() is not None
    back = cupy.asarray(interop.to_cuda_array_interface(tensor.t()))
    assert back.data.ptr == tensor.data_ptr()
    assert back.tolist() == tensor.t().tolist()


@on_gpu
def test_numba():
    cuda = pytest.importorskip("numba.cuda", reason="Numba is not installed")
    tensor = torch.arange(12.0, device="cuda").view(3, 4)
    view = cuda.as_cuda_array(interop.to_cuda_array_interface(tensor.t()))
    assert view.copy_to_host().tolist() == tensor.t().tolist()
    made = cuda.to_device(np.arange(5.0))
    taken = interop.from_cuda_array_interface(made)
    taken += 1
    torch.cuda.synchronize()
    assert made.copy_to_host().tolist() == [1, 2, 3, 4, 5]
