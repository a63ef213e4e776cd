"""What interop.from_dlpack and interop.to_dlpack share, own, describe and reject, against NumPy, torch and ctypes."""

import ctypes
import gc
import pickle
import sys
import threading
import weakref
from functools import partial
from pathlib import Path

import bridge_checks as checks
import dlpack_checks
import dlpack_structs as structs
import numpy as np
import pytest
import torch
from bridge_checks import laid_out, shapes
from broken_dlpack import FROM, TO
from conftest import ENDS, FREE_THREADED
from dlpack_structs import Capsule, Legacy, Producer, Versioned
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses import FakeTensorMode

import interop

pytestmark = [pytest.mark.native, pytest.mark.filterwarnings("ignore:.*Triggered internally:UserWarning")]
without_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is there")
HOSTILE = dlpack_checks.HOSTILE | ({} if torch.cuda.is_available() else dlpack_checks.WITHOUT_CUDA)


# Round trips


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(sorted(checks.PLAIN)), shapes(), st.booleans())
def test_every_array_is_shared(name, shape, plain):
    """Plain arrays are shared without calling `__dlpack__`, subclasses by calling it."""
    array = laid_out(name, *shape)
    checks.shares_an_array(interop.from_dlpack, array if plain else array.view(checks.Owner))


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(sorted(checks.PLAIN)), shapes(), st.sampled_from([Legacy, Versioned]))
def test_every_capsule_is_taken(name, shape, kind):
    dlpack_checks.takes_a_capsule(interop.from_dlpack, laid_out(name, *shape), kind)


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(sorted(checks.PLAIN)), shapes(), st.booleans())
def test_every_tensor_is_exported(name, shape, expand):
    tensor = torch.from_numpy(laid_out(name, *shape))
    dlpack_checks.exports(interop.to_dlpack, tensor.expand(3, *tensor.shape) if expand else tensor)


@checks.needs_writable_capsules
@settings(deadline=None, max_examples=100)
@given(st.sampled_from(sorted(checks.PLAIN)), shapes(), st.booleans(), st.booleans())
def test_numpy_torch_and_ours_agree(name, shape, readonly, expand):
    array = laid_out(name, *shape)
    if expand:
        array = np.broadcast_to(array, (2, *array.shape))
    array.flags.writeable = not (readonly or expand)
    ours = interop.from_dlpack(array, on_readonly="share")
    assert (ours.dtype, ours.shape) == (torch.from_dlpack(array.copy()).dtype, array.shape)
    assert checks.bytes_of(ours) == array.tobytes()
    capsule = interop.to_dlpack(ours, max_version=(1, 0))
    assert structs.inside(capsule).flags == (0 if array.flags.writeable else structs.READ_ONLY)
    theirs = np.from_dlpack(Producer(capsule))
    assert theirs.flags.writeable == array.flags.writeable or not array.size  # NumPy allocates if there is no memory
    assert theirs.tobytes() == array.tobytes()
    again = interop.from_dlpack(interop.to_dlpack(ours, max_version=(1, 0)), on_readonly="share")
    assert (again.stride(), again.data_ptr()) == (ours.stride(), ours.data_ptr())


@pytest.mark.parametrize("dtype", dlpack_checks.DTYPES, ids=str)
def test_every_dtype_goes_and_comes(dtype):
    tensor = torch.arange(1, 33, dtype=torch.uint8).view(torch.uint8 if dtype.itemsize == 1 else dtype)
    tensor = (tensor % 2 if dtype == torch.bool else tensor).view(dtype)
    for capsule in (interop.to_dlpack(tensor), interop.to_dlpack(tensor, max_version=(1, 0)), tensor.__dlpack__()):
        described = structs.inside(capsule).tensor.dtype
        assert (described.code, described.bits, described.lanes) == dlpack_checks.DTYPES[dtype]
        back = interop.from_dlpack(capsule)
        assert (back.dtype, back.data_ptr(), tuple(back.shape)) == (dtype, tensor.data_ptr(), tuple(tensor.shape))
    assert torch.from_dlpack(interop.to_dlpack(tensor)).dtype == dtype


# Our converters pass every check, and each broken converter fails one


def import_checks():
    for name in checks.PLAIN:
        flat = checks.filled(name, 24)
        shaped = [flat, flat[0:0], flat[3:4], flat[5:6].reshape(()), flat.reshape(2, 3, 4)[:, 1:, ::2]]
        for array in (*shaped, flat.reshape(4, 6).T, flat[:0].reshape(2, 0, 3)):
            for kind in (Legacy, Versioned):
                yield partial(dlpack_checks.takes_a_capsule, array=array, kind=kind)
            yield partial(checks.shares_an_array, array=array)
            yield partial(checks.shares_an_array, array=array.view(checks.Owner))
    for change, expected in dlpack_checks.UNDERSTOOD.values():
        yield partial(dlpack_checks.understands, change=change, expected=expected)
    for change, kind, words in HOSTILE.values():
        yield partial(dlpack_checks.refuses_a_capsule, change=change, kind=kind, words=words)
    for make, kind, words in dlpack_checks.TENSOR_REFUSALS.values():
        yield partial(checks.refuses, given=make(), kind=kind, words=words)
    base = torch.arange(24.0)
    for tensor in (base, base.view(4, 6).t(), base[5], base[:0], base.view(2, 3, 4)[:, 1:, ::2]):
        yield partial(dlpack_checks.shares_a_tensor, tensor=tensor)
    yield checks.owns_its_array
    yield checks.stays_in_place
    yield dlpack_checks.heeds_copy
    yield dlpack_checks.heeds_readonly


def export_checks():
    for name in checks.PLAIN:
        flat = torch.from_numpy(checks.filled(name, 24))
        shaped = [flat, flat[0:0], flat[3], flat.view(2, 3, 4)[:, 1:, ::2], flat.view(4, 6).T]
        for tensor in (*shaped, flat[:0].view(2, 0, 3), flat[:3].expand(2, 3)):
            yield partial(dlpack_checks.exports, tensor=tensor)
    for make, kind, words in dlpack_checks.TENSOR_REFUSALS.values():
        yield partial(checks.refuses, given=make(), kind=kind, words=words)
    yield partial(dlpack_checks.capsule_owns_the_memory, used=False)
    yield partial(dlpack_checks.capsule_owns_the_memory, used=True)
    yield dlpack_checks.stays_under_a_capsule
    yield dlpack_checks.heeds_what_is_asked
    yield dlpack_checks.counts_references


def test_ours_pass_every_check():
    for check in import_checks():
        check(interop.from_dlpack)
    for check in export_checks():
        check(interop.to_dlpack)


def is_caught(checks_of, convert):
    """Whether a check fails. An error that the check does not expect is a failure too."""
    for check in checks_of():
        try:
            check(convert)
        except Exception:
            return True
    return False


@pytest.mark.unchecked(by="asan", reason="the broken converters read memory that is gone, on purpose")
@pytest.mark.unchecked(by="leaks", reason="the broken converters leak, on purpose")
@pytest.mark.long
@pytest.mark.parametrize("name", sorted(FROM))
def test_the_checks_catch_a_broken_from_dlpack(name):
    assert is_caught(import_checks, FROM[name](interop.from_dlpack))


@pytest.mark.unchecked(by="asan", reason="the broken converters read memory that is gone, on purpose")
@pytest.mark.unchecked(by="leaks", reason="the broken converters leak, on purpose")
@pytest.mark.long
@pytest.mark.parametrize("name", sorted(TO))
def test_the_checks_catch_a_broken_to_dlpack(name):
    assert is_caught(export_checks, TO[name](interop.to_dlpack))


# Capsules that lie


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_from_dlpack_refuses_a_capsule(name):
    dlpack_checks.refuses_a_capsule(interop.from_dlpack, *HOSTILE[name])


@pytest.mark.parametrize("name", sorted(dlpack_checks.UNDERSTOOD))
def test_from_dlpack_understands_a_capsule(name):
    dlpack_checks.understands(interop.from_dlpack, *dlpack_checks.UNDERSTOOD[name])


NUMBERS = st.one_of(st.integers(-2, 5), st.sampled_from([2**31, 2**61, 2**63 - 1, -(2**63)]))


@settings(deadline=None, max_examples=500)
@given(
    st.lists(st.tuples(NUMBERS, NUMBERS), max_size=4),
    st.tuples(st.integers(0, 20), st.sampled_from([0, 1, 4, 8, 16, 32, 64, 128, 255]), st.integers(0, 3)),
    st.sampled_from([0, 1, 4, 8, 2**40, 2**64 - 1]),
)
def test_anything_is_refused_or_right(axes, dtype, offset):
    """A capsule without memory is accepted only if it has no elements."""

    def change(managed):
        tensor = managed.tensor
        tensor.ndim, tensor.byte_offset, tensor.data = len(axes), offset, None
        tensor.dtype = structs.DataType(*dtype)
        for axis, (size, stride) in enumerate(axes):
            tensor.shape[axis], tensor.strides[axis] = size, stride

    made = Capsule(np.zeros((1, 1, 1, 1)), change=change)
    try:
        tensor = interop.from_dlpack(made.capsule)
    except BufferError:
        assert made.deleted == 0
        return
    assert tuple(tensor.shape) == tuple(size for size, _ in axes)
    assert tensor.numel() == 0
    del tensor
    assert made.deleted == 1


def test_capsules_of_something_else():
    for name in (b"dltensors", b"", b"\xff\n", b"used_dltensor"):
        made = Capsule(np.ones(3), name=name)
        kind = ValueError if name.startswith(b"used") else TypeError
        with pytest.raises(kind, match=r"argument 'obj' must be an? (unused )?capsule"):
            interop.from_dlpack(made.capsule)
        assert made.deleted == 0


def test_a_deleter_may_be_missing():
    for kind in (Legacy, Versioned):
        made = Capsule(np.arange(3), kind, deleter=False)
        assert interop.from_dlpack(made.capsule).tolist() == [0, 1, 2]


def test_a_deleter_that_leaves_an_error(monkeypatch):
    """A deleter in C leaves a Python error set, which goes to `sys.unraisablehook`."""
    unraisable = []
    failing = ctypes.cast(ctypes.pythonapi.PyErr_NoMemory, structs.DELETER)
    made = Capsule(np.arange(3), deleter=False, change=lambda managed: setattr(managed, "deleter", failing))
    tensor = interop.from_dlpack(made.capsule)
    assert tensor.tolist() == [0, 1, 2]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "unraisablehook", lambda given: unraisable.append(given.exc_type))
        del tensor
    assert unraisable == [MemoryError]


def test_rank_64():
    made = Capsule(np.arange(2.0).reshape([1] * 63 + [2]))
    tensor = interop.from_dlpack(made.capsule)
    assert tensor.dim() == 64
    assert structs.inside(interop.to_dlpack(tensor[None])).tensor.ndim == 65


def test_strides_of_axes_of_length_1_stay():
    tensor = torch.rand(16)[::3][:1]
    for back in (interop.from_dlpack(tensor), interop.from_dlpack(interop.to_dlpack(tensor))):
        assert back.stride() == (3,)
    assert interop.from_dlpack(np.arange(6.0)[2:1:-1]).tolist() == [2.0]
    for array in (np.arange(6.0)[::-1], np.arange(6.0).view(checks.Owner)[::-1]):
        with pytest.raises(BufferError, match="'obj' must not have negative strides"):
            interop.from_dlpack(array)


@pytest.mark.parametrize("name", sorted(checks.ARRAY_REFUSALS.keys() - {"a list", "a scalar", "masked", "read-only"}))
def test_arrays_that_are_refused(name):
    """The message is that of from_numpy, and the error is DLPack's BufferError."""
    make, _, words = checks.ARRAY_REFUSALS[name]
    checks.refuses(interop.from_dlpack, make(), BufferError, words)


# Objects


def test_what_a_producer_is_asked():
    def asked(keywords, **given):
        producer = Producer(Capsule(np.arange(3.0)).capsule, keywords=keywords)
        assert interop.from_dlpack(producer, **given).tolist() == [0, 1, 2]
        return producer.calls

    version = {"max_version": (1, 3)}
    assert asked(None) == [version]
    assert asked([]) == [version, {}]
    assert asked(None, copy=False) == [version | {"copy": False}]
    assert asked(["max_version"], copy=False) == [version | {"copy": False}, {}]
    assert asked(None, copy=True) == [version]
    assert asked(None, device="cpu") == [version]
    assert asked(None, device=torch.device("cpu", 0)) == [version]


@pytest.mark.parametrize(
    "where", [structs.METAL, structs.ROCM, *([] if torch.cuda.is_available() else [structs.MANAGED])]
)
def test_producers_are_asked_to_bring_what_torch_cannot(where):
    producer = Producer(Capsule(np.arange(3.0)).capsule, (where, 0))
    assert interop.from_dlpack(producer, device="cpu").tolist() == [0, 1, 2]
    assert producer.calls == [{"max_version": (1, 3), "dl_device": (1, 0)}]


@pytest.mark.parametrize(
    ("number", "name"),
    [(4, "OpenCL"), (7, "Vulkan"), (8, "Metal"), (10, "ROCm"), (14, "oneAPI"), (15, "WebGPU"), (99, "unknown")],
)
def test_devices_that_torch_cannot_use_have_names(number, name):
    with pytest.raises(BufferError, match=rf"DLPack's device type {number} \({name}\); "):
        interop.from_dlpack(Producer(Capsule(np.arange(3.0)).capsule, (number, 0)))


def test_errors_of_producers_come_through():
    class Failing(Producer):
        def __dlpack__(self, **_):
            raise self.capsule

    for error in (BufferError("no"), KeyError("key"), MemoryError(), TypeError("odd")):
        with pytest.raises(type(error)):
            interop.from_dlpack(Failing(error))

    class Deviceless(Producer):
        def __dlpack_device__(self):
            raise AttributeError("of something else")

    with pytest.raises(AttributeError, match="of something else"):
        interop.from_dlpack(Deviceless(None))


@pytest.mark.parametrize("given", [None, 1, [1.0], "text", object()], ids=lambda given: type(given).__name__)
def test_objects_without_dlpack(given):
    with pytest.raises(TypeError, match=r"'obj' must be a DLPack capsule.*__dlpack__.*torch.as_tensor"):
        interop.from_dlpack(given)


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


@pytest.mark.parametrize("device", [None, (1,), (1, 0, 0), [1, 0], ("cpu", 0), ("cpu", Index(0)), (1.5, 0)])
def test_wrong_devices(device):
    with pytest.raises(TypeError):
        interop.from_dlpack(Producer(Capsule(np.ones(3)).capsule, device))


@pytest.mark.parametrize("device", [(2**32 + 1, 0), (1, 2**40), (-1, 0), (1, -1)])
def test_devices_out_of_range(device):
    with pytest.raises(ValueError, match=r"'obj' must be a tuple.*\(-?\d+, -?\d+\)"):
        interop.from_dlpack(Producer(Capsule(np.ones(3)).capsule, device))
    with pytest.raises(ValueError, match=r"'dl_device' must be a tuple.*\(-?\d+, -?\d+\)"):
        interop.to_dlpack(torch.ones(2), dl_device=device)


def test_devices_that_nothing_is_brought_to():
    capsule = Capsule(np.ones(3)).capsule
    for device, words in {"meta": "cpu or cuda, got meta", "cuda:99": "cuda:99|CUDA device"}.items():
        with pytest.raises(BufferError, match=f"argument 'device'.*({words})"):
            interop.from_dlpack(capsule, device=device)
    assert interop.from_dlpack(capsule).tolist() == [1, 1, 1]  # the capsule is still unused


def test_a_copy_of_read_only_memory_is_a_copy_although_it_is_one_already():
    for flags in (structs.READ_ONLY, structs.READ_ONLY | structs.IS_COPIED):
        made = Capsule(np.ones(3), change=lambda managed, flags=flags: setattr(managed, "flags", flags))
        tensor = interop.from_dlpack(made.capsule, copy=True)
        assert tensor.data_ptr() != made.array.ctypes.data
        assert tensor.fill_(2).tolist() == [2, 2, 2]


def test_gradients_of_forward_mode_are_not_lost():
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.ones(2), torch.ones(2))
        for given in ({}, {"copy": True}, {"on_readonly": "copy"}):
            with pytest.raises(BufferError, match="dual"):
                interop.from_dlpack(dual, **given)


def test_masked_arrays():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    for convert in (interop.from_numpy, interop.from_dlpack, interop.from_buffer):
        with pytest.raises(ValueError, match=r"masked.*filled"):
            convert(masked)
        assert convert(np.ma.array([1.0, 2.0])).tolist() == [1, 2]
        assert convert(masked.filled(5)).tolist() == [1, 5]


def test_a_masked_array_behind_another_exporter():
    def nested(array):
        return memoryview(pickle.PickleBuffer(memoryview(array)))

    for wrap in (memoryview, pickle.PickleBuffer, nested):
        masked = np.ma.array([1.0, 2.0], mask=[False, True])
        for convert in (interop.from_buffer, interop.from_array):
            with pytest.raises(ValueError, match=r"masked.*filled"):
                convert(wrap(masked))
            assert convert(wrap(np.ma.array([1.0, 2.0]))).tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"masked.*filled"):
        interop.from_array(memoryview(masked[::-1]))
    assert interop.from_array(memoryview(np.ma.array([1.0, 2.0])[::-1])).tolist() == [2, 1]


def test_tensors_are_those_of_the_mode_that_holds():
    """Under FakeTensorMode, converters return fake tensors, like torch.from_numpy."""
    with FakeTensorMode():
        theirs = torch.from_numpy(np.ones(3))
        for given in (np.ones(3), Capsule(np.ones(3)).capsule):
            assert type(interop.from_dlpack(given)) is type(theirs)
        frozen = np.ones(3)
        frozen.flags.writeable = False
        for ours in (
            interop.from_numpy(np.ones(3)),
            interop.from_buffer(bytearray(8)),
            interop.from_numpy(frozen, on_readonly="copy"),
            interop.from_dlpack(np.ones(3), copy=True),
        ):
            assert type(ours) is type(theirs)
            assert type(ours + 1) is type(theirs)


def test_a_producer_must_give_a_capsule():
    with pytest.raises(TypeError, match="must return a capsule, got int"):
        interop.from_dlpack(Producer(3))


@without_cuda
def test_an_object_on_a_device_that_torch_lacks():
    producer = Producer(Capsule(np.ones(3)).capsule, (structs.CUDA, 0))
    with pytest.raises(BufferError, match=r"CUDA device 0.*finds no CUDA device"):
        interop.from_dlpack(producer)
    assert producer.calls == []
    assert interop.from_dlpack(producer, device="cpu", copy=True).tolist() == [1, 1, 1]
    assert producer.calls == [{"max_version": (1, 3), "dl_device": (1, 0), "copy": True}]


def test_wrong_arguments():
    tensor = torch.ones(2)
    for wrong in ({"copy": 1}, {"copy": "no"}, {"device": 3}, {"device": b"cpu"}):
        with pytest.raises(TypeError, match="argument '"):
            interop.from_dlpack(tensor, **wrong)
    with pytest.raises(ValueError, match="'on_readonly' must be"):
        interop.from_dlpack(tensor, on_readonly="no")
    for wrong in ({"copy": 0}, {"stream": 1.5}, {"stream": True}, {"max_version": 1}, {"max_version": (1,)}):
        with pytest.raises(TypeError, match="argument '"):
            interop.to_dlpack(tensor, **wrong)
    with pytest.raises(TypeError, match=r"argument 'max_version' must be a tuple of two integers"):
        interop.to_dlpack(tensor, max_version=("1", "0"))
    for wrong in (0, 1, 2, -2, 99):
        with pytest.raises(ValueError, match=f"'stream' must be None or -1 for a tensor on cpu.*got {wrong}"):
            interop.to_dlpack(tensor, stream=wrong)
    with pytest.raises(TypeError, match="dl_device"):
        interop.to_dlpack(tensor, dl_device="cpu")
    with pytest.raises(
        BufferError, match=r"'dl_device' must be on the CPU or on CUDA.*Metal.*request the CPU, \(1, 0\)"
    ):
        interop.to_dlpack(tensor, dl_device=(structs.METAL, 0))
    for wrong in (None, [1.0], np.ones(2)):
        with pytest.raises(TypeError, match=r"'tensor' must be a torch\.Tensor"):
            interop.to_dlpack(wrong)


def test_tensors_without_memory_of_their_own():
    with FakeTensorMode(), pytest.raises(BufferError, match="__torch_dispatch__"):
        interop.to_dlpack(torch.empty(3))
    with FakeTensorMode(), pytest.raises(BufferError, match="__torch_dispatch__"):
        interop.to_dlpack(torch.empty(3, device="cuda:0"), max_version=(1, 0))
    with FakeTensorMode(), pytest.raises(BufferError, match="__torch_dispatch__"):
        interop.from_dlpack(torch.empty(3))
    for transform in (torch.func.vmap, torch.func.grad):
        with pytest.raises(BufferError, match=r"torch\.func"):
            transform(lambda x: interop.from_dlpack(interop.to_dlpack(x)).sum())(torch.ones(3, 2)[0])
    with pytest.raises(BufferError, match="functional"):
        torch.func.functionalize(lambda x: interop.to_dlpack(x))(torch.ones(3))


def test_a_wrapper_of_a_tensor_on_another_device():
    """Its device is that of what it wraps, so that .cpu() would be no advice."""

    class Wrapper(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
            raise AssertionError(function)

    wrapper = torch.Tensor._make_wrapper_subclass(Wrapper, (2,), device="xla")
    with pytest.raises(BufferError, match="pass the tensor that it wraps"):
        interop.to_dlpack(wrapper)


def test_subclasses():
    class Plain(torch.Tensor):
        pass

    class Own(torch.Tensor):
        def __dlpack__(self, **_):
            return Capsule(np.full(2, 7.0)).capsule

    tensor = torch.ones(3)
    plain = interop.from_dlpack(tensor.as_subclass(Plain))
    assert (type(plain), plain.data_ptr()) == (torch.Tensor, tensor.data_ptr())
    assert interop.from_dlpack(tensor.as_subclass(Own)).tolist() == [7, 7]
    parameter = torch.nn.Parameter(tensor)
    with pytest.raises(BufferError, match="require grad"):
        interop.from_dlpack(parameter)
    with torch.no_grad():
        shared = interop.from_dlpack(parameter)
    assert (type(shared), shared.requires_grad, shared.data_ptr()) == (torch.Tensor, False, tensor.data_ptr())


def test_the_neg_bit_that_torch_overlooks():
    z = torch.tensor([1 + 2j, 3 - 4j])
    for lazy in (z.conj(), z.conj().imag):
        for refused in (interop.to_dlpack, interop.from_dlpack):
            with pytest.raises(BufferError, match="resolve_"):
                refused(lazy)


def test_inference_tensors_and_lazy_clones():
    with torch.inference_mode():
        tensor = torch.arange(3)
        assert interop.from_dlpack(tensor).data_ptr() == tensor.data_ptr()
    assert interop.from_dlpack(tensor).tolist() == interop.from_dlpack(interop.to_dlpack(tensor)).tolist() == [0, 1, 2]
    first = torch.arange(3)
    clone = first._lazy_clone()
    interop.from_dlpack(interop.to_dlpack(clone))[0] = 7
    assert (first.tolist(), clone.tolist()) == ([0, 1, 2], [7, 1, 2])


def test_read_only_memory_stays_read_only():
    array = np.broadcast_to(np.arange(3.0), (2, 3))
    with pytest.raises(ValueError, match="read-only"):
        interop.from_dlpack(array)
    shared = interop.from_dlpack(array, on_readonly="share")
    assert not interop.to_numpy(shared).flags.writeable
    assert memoryview(interop.as_memoryview(shared)).readonly
    with pytest.raises(BufferError, match=r"max_version=\(1, 0\)"):
        interop.to_dlpack(shared)
    with pytest.raises(ValueError, match="read-only"):
        interop.from_dlpack(shared)
    assert interop.from_dlpack(shared, on_readonly="copy").stride() == (3, 1)
    with pytest.raises(ValueError, match="'copy' is False, but 'on_readonly' requests a copy"):
        interop.from_dlpack(shared, on_readonly="copy", copy=False)
    assert interop.from_dlpack(array, copy=True).tolist() == array.tolist()
    assert interop.from_dlpack(torch.ones(2).expand(3, 2)).stride() == (0, 1)


# Lifetimes


@checks.needs_writable_capsules
def test_chains_keep_one_allocation():
    array = np.arange(4).view(checks.Owner)
    follow, address = weakref.ref(array), array.ctypes.data
    chain = interop.from_dlpack(array)
    del array
    for _ in range(3):
        chain = interop.from_dlpack(interop.to_dlpack(chain, max_version=(1, 0)))
        chain = interop.from_numpy(np.from_dlpack(interop.from_dlpack(interop.to_numpy(chain))))
        chain = torch.from_dlpack(interop.to_dlpack(chain))
    assert (chain.data_ptr(), chain.tolist()) == (address, [0, 1, 2, 3])
    assert follow() is not None
    del chain
    gc.collect()
    assert follow() is None


def test_share_memory_leaves_what_was_taken_over():
    tensor = interop.from_dlpack(Capsule(np.arange(4)).capsule)
    array = interop.to_numpy(tensor)
    tensor.share_memory_()
    assert array.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_capsules_of_torch(version):
    """The memory is given back once, when the last tensor or array over it dies."""
    array = np.arange(3.0)
    before = sys.getrefcount(array)
    tensor = interop.from_dlpack(torch.from_numpy(array).__dlpack__(max_version=version))
    assert tensor.data_ptr() == array.ctypes.data
    part, other = tensor[1:], interop.to_numpy(tensor)
    again = interop.from_dlpack(tensor.__dlpack__(max_version=version))
    tensor.share_memory_()  # other memory
    tensor[0] = 7
    del tensor
    assert again.tolist() == other.tolist() == [0, 1, 2]
    assert part.untyped_storage().is_shared()
    assert sys.getrefcount(array) == before + 1
    del again, part
    assert sys.getrefcount(array) == before + 1
    del other
    assert sys.getrefcount(array) == before


def test_deleters_run_on_other_threads():
    made = [Capsule(np.ones(3)) for _ in range(20)]
    tensors = [interop.from_dlpack(one.capsule) for one in made]
    thread = threading.Thread(target=tensors.clear)
    thread.start()
    thread.join()
    assert [one.deleted for one in made] == [1] * 20


def test_deleters_run_on_threads_of_autograd():
    """A deleter that is Python code runs although backward does not hold the GIL."""
    made = Capsule(np.full(3, 2.0, np.float32))
    x = torch.ones(3, requires_grad=True)
    (x * interop.from_dlpack(made.capsule)).sum().backward()
    assert made.deleted == 1
    assert x.grad.tolist() == [2, 2, 2]


def test_capsules_end_without_the_gil(dlpacked):
    """Our deleter runs without the GIL, also for memory with an owner in Python."""
    array = np.ones(3)
    tensor, before = torch.from_numpy(array), sys.getrefcount(array)
    dlpacked.end(tensor)
    dlpacked.end(torch.ones(3))
    assert sys.getrefcount(array) == before


def test_memory_ends_on_a_thread_that_python_does_not_know():
    array = np.ones(3).view(checks.Owner)
    alive = weakref.ref(array)
    capsule = interop.to_dlpack(interop.from_numpy(array), max_version=(1, 0))
    managed = structs.take(capsule)
    del array
    assert alive() is not None
    structs.call_on_a_thread(managed.deleter, ctypes.byref(managed))
    assert alive() is None


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_memory_of_torch_ends_on_a_thread_that_python_does_not_know(version):
    """torch's own deleter runs there without the GIL, and takes it if its tensor has a Python object, as here."""
    tensor = torch.ones(3)
    before = tensor._use_count()
    shared = interop.from_dlpack(tensor.__dlpack__(max_version=version))
    managed = structs.take(interop.to_dlpack(shared, max_version=version))
    del shared
    assert tensor._use_count() == before + 1
    structs.call_on_a_thread(managed.deleter, ctypes.byref(managed))
    assert tensor._use_count() == before


@pytest.mark.skipif(FREE_THREADED, reason="a free-threaded Python itself keeps 5 KB of each thread that C started")
@pytest.mark.unchecked(by="asan", reason="the checker keeps memory of each thread, and freed memory")
@pytest.mark.unchecked(by="leaks", reason="the checker keeps memory of each thread")
@pytest.mark.unchecked(by="tsan", reason="it starts 12,000 threads, which takes minutes there")
def test_memory_ends_after_the_thread_local_objects_of_its_thread(forked):
    """The destructor of a key of pthreads runs after all destructors of C++; it drops the last tensor here.

    The tensor then ends after the thread's own store for its memory, which must not take it: nobody would free it.
    """
    code = """
import ctypes, resource, weakref, dlpack_structs, numpy as np, torch, interop
class Owner(np.ndarray):
    pass
c, key = ctypes.CDLL(None), ctypes.c_uint()
def tensor_on_a_thread():
    array = np.ones(3).view(Owner)
    managed = dlpack_structs.take(interop.from_numpy(array).__dlpack__(max_version=(1, 0)))
    return managed, weakref.ref(array)
managed, owner = tensor_on_a_thread()
assert c.pthread_key_create(ctypes.byref(key), ctypes.cast(managed.deleter, ctypes.c_void_p)) == 0
@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def work(_):
    interop.from_numpy(np.ones(3))  # dies at once, and leaves its memory to the next
    assert owner() is not None
    assert c.pthread_setspecific(key, ctypes.byref(managed)) == 0
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
for count in range(12_000):
    dlpack_structs.call_on_a_thread(work)
    assert owner() is None
    managed, owner = tensor_on_a_thread()
    if count == 2_000:
        before = resident()
assert resident() - before < 2_000_000, resident() - before  # 3.3 MB if it leaks
"""
    forked(code, Path(__file__).parent, seconds=60)


def test_an_exception_in_flight_survives_the_deleter():
    def fail():
        made = Capsule(np.ones(3))
        tensor = interop.from_dlpack(made.capsule)
        capsule = interop.to_dlpack(torch.from_numpy(np.ones(3).view(checks.Owner)))
        raise IndexError(f"of {tensor.numel()} {capsule}")

    with pytest.raises(IndexError, match="of 3"):
        fail()


def test_writes_and_the_version():
    """An export does not increment the version; a tensor imported from a tensor shares its version counter."""
    for write in (False, True):
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        array = np.from_dlpack(Producer(interop.to_dlpack(y.detach())))
        other = interop.from_dlpack(y.detach())
        if write:
            other.add_(1)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
        else:
            y.sum().backward()
        assert array.tolist() == y.tolist()


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.long
def test_the_end_of_the_interpreter(forked, how):
    code = """
import sys, threading, time, atexit, numpy as np, torch, interop
tensor = interop.from_dlpack(np.ones(1000))
unused, kept = interop.to_dlpack(tensor), interop.to_dlpack(torch.ones(1000), max_version=(1, 0))
def forever():
    while True:
        interop.to_dlpack(tensor)
HOW
print("done")
"""
    lines = {
        "globals": "",
        "a daemon thread": "threading.Thread(target=forever, daemon=True).start(); time.sleep(0.2)",
        "an exit function": "atexit.register(lambda: interop.from_dlpack(kept))",
        "a leaked storage": "import ctypes; ctypes.pythonapi.Py_IncRef(ctypes.py_object(tensor.untyped_storage()))",
    }
    done = forked(code.replace("HOW", lines[how]), check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_references_do_not_grow():
    array, tensor, producer = np.ones((2, 3)), torch.ones(2, 3), Producer(None)
    before = sys.getrefcount(array)
    for _ in range(200):
        interop.from_dlpack(array)
        interop.from_dlpack(tensor)
        interop.from_dlpack(interop.to_dlpack(interop.from_dlpack(array), max_version=(1, 0)))
        for bad in (lambda: interop.from_dlpack(array[::-1]), lambda: interop.to_dlpack(tensor.to_sparse())):
            with pytest.raises(BufferError):
                bad()
        with pytest.raises(TypeError):
            interop.from_dlpack(producer)
        producer.calls.clear()
    assert sys.getrefcount(array) == before


# From Cython


def test_functions_in_cython(dlpacked):
    array = np.arange(3.0)
    assert dlpacked.imported(array).data_ptr() == array.ctypes.data
    with pytest.raises(ValueError, match="read-only"):
        dlpacked.imported(np.broadcast_to(array, (2, 3)))
    assert dlpacked.shared(np.broadcast_to(array, (2, 3))).stride() == (0, 1)
    writable, read_only = dlpacked.exported(torch.ones(2))
    assert (structs.inside(writable).flags, structs.inside(read_only).flags) == (0, structs.READ_ONLY)
    tensor = torch.arange(6.0).view(2, 3).t()
    back, flags = dlpacked.round_trip(tensor)
    assert (back.data_ptr(), back.stride(), flags) == (tensor.data_ptr(), tensor.stride(), 0)
    assert dlpacked.round_trip(torch.ones(2, requires_grad=True), True)[1] == structs.READ_ONLY


def test_descriptions_in_cython(dlpacked):
    tensor = torch.arange(12, dtype=torch.int32).view(3, 4)[1:, ::2]
    assert dlpacked.described(tensor) == (tensor.data_ptr(), (1, 0), (0, 32, 1), [2, 2], [4, 2])
    assert dlpacked.described(torch.tensor(1.5, dtype=torch.bfloat16))[2:] == ((4, 16, 1), [], [])
    assert dlpacked.total(torch.arange(5.0, dtype=torch.float64)) == 10
    for name, (make, kind, words) in dlpack_checks.TENSOR_REFUSALS.items():
        checks.refuses(dlpacked.described, make(), kind, words)
        checks.refuses(dlpacked.exported, make(), kind, words)
        checks.refuses(dlpacked.round_trip, make(), kind, words), name
    assert dlpacked.described(torch.ones(2, requires_grad=True), True)[3] == [2]
    with pytest.raises(BufferError, match="share memory"):
        dlpacked.described(torch.ones(1).expand(3))
    assert dlpacked.described(torch.ones(1).expand(3), True)[4] == [0]
    # Modules other than the one that made the tensor must also find the owner of its memory.
    frozen = interop.from_buffer(bytes(8), dtype=torch.float64, on_readonly="share")
    with pytest.raises(BufferError, match="read-only"):
        dlpacked.described(frozen)
    assert dlpacked.described(frozen, True)[0] == frozen.data_ptr()


def test_the_first_use_of_the_functions_by_two_threads(forked, dlpacked):
    """The first use imports the converters, which may release the GIL, so it must hold no lock."""
    code = """
import faulthandler, sys, threading
import torch, dlpacked
assert "interop._bridges" not in sys.modules
faulthandler.dump_traceback_later(60, exit=True)
sys.setswitchinterval(1e-6)
start = threading.Barrier(2)
def use():
    start.wait()
    dlpacked.described(torch.ones(2))
threads = [threading.Thread(target=use) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("both")
"""
    assert forked(code, Path(dlpacked.__file__).parent) == "both\n"


def test_managed_tensors_in_cython(dlpacked):
    before = dlpacked.ends()
    tensor = dlpacked.take(2.5)
    assert (tensor.tolist(), dlpacked.ends()) == ([2.5], before)
    del tensor
    assert dlpacked.ends() == before + 1
    with pytest.raises(BufferError, match=r"version 7\.0"):
        dlpacked.take(2.5, 7)
    with pytest.raises(ValueError, match="read-only"):
        dlpacked.take(2.5, readonly=True)
    assert dlpacked.ends() == before + 3


def test_objects_with_the_exchange_api_alone(dlpacked):
    before = dlpacked.ends()
    for kind in (dlpacked.Fast, dlpacked.Newer):
        assert interop.from_dlpack(kind(1.5)).tolist() == [1.5]
        assert interop.from_dlpack(kind(1.5), copy=True).tolist() == [1.5]
    assert dlpacked.ends() == before + 4
    with pytest.raises(TypeError, match="must be a DLPack capsule"):
        interop.from_dlpack(dlpacked.Unnamed(1.5))

    class Inherits(dlpacked.Fast):
        pass

    class Overrides(dlpacked.Fast):
        def __dlpack_device__(self):
            return structs.CPU, 0

        def __dlpack__(self, **options):
            return interop.to_dlpack(torch.tensor([7.0]), **options)

    class InheritsTheMethod(Overrides):
        pass

    assert interop.from_dlpack(Inherits(1.5)).tolist() == [1.5]
    assert interop.from_dlpack(Overrides(1.5)).tolist() == [7.0]
    assert interop.from_dlpack(InheritsTheMethod(1.5)).tolist() == [7.0]
    refusals = {
        "raises": (BufferError, "it does not want to", 0),
        "fails": (BufferError, "failed without an error message", 0),
        "gives nothing": (BufferError, "returned no tensor", 0),
        "is new": (BufferError, "version 2.0", 1),
        "read-only": (ValueError, "read-only", 1),
        "lanes": (BufferError, "2 lanes", 1),
    }
    for how, (kind, words, ends) in refusals.items():
        before = dlpacked.ends()
        with pytest.raises(kind, match=words):
            interop.from_dlpack(dlpacked.Fast(1.5, how))
        assert dlpacked.ends() == before + ends


def test_our_exchange_api(dlpacked):
    assert dlpacked.api_version(True) == (1, 3, False)
    tensor = torch.arange(6.0).view(2, 3).t()
    for ours in (True, False):
        back = dlpacked.api_round_trip(ours, tensor)
        assert (back.data_ptr(), back.stride()) == (tensor.data_ptr(), tensor.stride())
        assert dlpacked.api_stream(ours, structs.CPU, 0) == 0
        made, errors = dlpacked.api_allocate(ours, [2, 3], 2, 32)
        assert (made.shape, made.dtype, errors) == ((2, 3), torch.float32, [])
    assert dlpacked.api_view(True, tensor) == dlpacked.api_view(False, tensor)
    for call in (dlpacked.api_round_trip, dlpacked.api_view):
        for make, kind, words in dlpack_checks.TENSOR_REFUSALS.values():
            checks.refuses(partial(call, True), make(), kind, words)
        checks.refuses(partial(call, True), [1.0], TypeError, ["torch.Tensor"])
    for wrong in (([2], 3, 8), ([-1], 2, 32), ([2**62, 2**62], 2, 32), ([2], 2, 32, 2), ([2], 2, 32, 1, 99)):
        made, errors = dlpacked.api_allocate(True, *wrong)
        assert made is None
        assert [kind for kind, _ in errors] == ["BufferError"]
