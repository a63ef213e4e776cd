"""`interop.from_array` with arrays of any library."""

import array
import ctypes
import re
from types import SimpleNamespace

import bridge_checks as checks
import numpy as np
import pytest
import torch
from bridge_checks import laid_out, shapes
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import interop

pytestmark = pytest.mark.native


@settings(deadline=None)
@given(st.sampled_from(sorted(checks.PLAIN)), shapes())
def test_every_array_is_shared(name, shape):
    checks.shares_an_array(interop.from_array, laid_out(name, *shape))


def with_attribute(name):
    data = np.arange(6.0)
    value = (
        (lambda self, dtype=None, copy=None: data) if name == "__array__" else property(lambda _: getattr(data, name))
    )
    return type("Array", (), {name: value})(), data.ctypes.data


@pytest.mark.unchecked(by="leaks", reason="NumPy's asarray keeps a reference to None for an __array_interface__")
@pytest.mark.parametrize("name", ["__array__", "__array_interface__", "__array_struct__"])
def test_interfaces_of_numpy(name):
    obj, address = with_attribute(name)
    for copy in (None, False):
        assert interop.from_array(obj, copy=copy).data_ptr() == address
    assert interop.from_array(obj, copy=True).data_ptr() != address
    proxy = SimpleNamespace(**{name: getattr(obj, name)})  # an attribute of the object, which NumPy finds too
    assert interop.from_array(proxy).data_ptr() == address == np.asarray(proxy).ctypes.data


@pytest.mark.parametrize(
    "obj", [bytearray(8), array.array("d", [1, 2]), (ctypes.c_float * 3)(), memoryview(bytearray(4))]
)
def test_buffers(obj):
    tensor = interop.from_array(obj)
    assert torch.equal(tensor, interop.from_buffer(obj))
    assert tensor.data_ptr() == interop.from_buffer(obj).data_ptr()
    assert interop.from_array(obj, copy=True).data_ptr() != tensor.data_ptr()


def test_a_tensor_is_itself():
    tensor = torch.ones(3, requires_grad=True)
    assert interop.from_array(tensor) is tensor
    assert interop.from_array(tensor, copy=False, device="cpu") is tensor
    copied = interop.from_array(tensor, copy=True)
    assert copied.data_ptr() != tensor.data_ptr()
    assert copied.grad_fn is not None
    assert interop.from_array(tensor, device="meta").is_meta
    with pytest.raises(ValueError, match="'copy' is False, but a copy is necessary to move 'obj' from cpu to meta"):
        interop.from_array(tensor, device="meta", copy=False)


@pytest.mark.parametrize("size", [0, 8])
def test_a_tensor_that_leaves_its_storage_is_not_copied(size):
    """torch itself copies what lies behind a storage that was resized, or crashes."""
    tensor = torch.arange(6.0)[3:]
    tensor.untyped_storage().resize_(size)
    message = rf"argument 'obj' must lie within its storage of {size} bytes, got sizes \[3\], .*storage was resized"
    for options in ({"copy": True}, {"device": "meta"}):
        with pytest.raises(ValueError, match=message):
            interop.from_array(tensor, **options)
    assert interop.from_array(tensor) is tensor


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_tensors_without_memory_of_their_own_are_copied_by_torch():
    assert interop.from_array(torch.empty(3, device="meta"), copy=True).is_meta
    assert interop.from_array(torch.eye(2).to_sparse(), copy=True).is_sparse
    nested = torch.nested.nested_tensor([torch.ones(2), torch.zeros(3)])
    assert [one.tolist() for one in interop.from_array(nested, copy=True).unbind()] == [[1, 1], [0, 0, 0]]
    assert interop.from_array(torch._efficientzerotensor(3), copy=True).tolist() == [0, 0, 0]
    squared = torch.func.vmap(lambda x: interop.from_array(x, copy=True) ** 2)(torch.arange(3.0))
    assert squared.tolist() == [0, 1, 4]


def test_strides_out_of_the_address_space():
    array = np.lib.stride_tricks.as_strided(np.zeros(4), (3,), (-(2**63),))
    with pytest.raises(ValueError, match=r"argument 'obj' must lie within the address space, got shape \(3,\) with"):
        interop.from_array(array)
    empty = np.lib.stride_tricks.as_strided(np.zeros(4), (0, 5), (8, -(2**63)))
    assert interop.from_array(empty).shape == (0, 5)


def test_only_what_comes_first_is_asked():
    class Both:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **_):
            raise BufferError("not now")

        def __array__(self, dtype=None, copy=None):
            raise AssertionError("asked")

    with pytest.raises(BufferError, match="not now"):
        interop.from_array(Both())


def test_elements_of_no_bytes():
    with pytest.raises(BufferError, match="'obj' must have a dtype that torch has, got"):
        interop.from_array(np.zeros(3, "V0"))


def test_read_only_memory():
    image = Image.new("L", (3, 2), 7)  # its __array_interface__ is a copy, as bytes
    for obj in (b"abc", image, np.broadcast_to(np.ones(2), (3, 2))):
        with pytest.raises(ValueError, match="read-only"):
            interop.from_array(obj)
        for options in ({"copy": True}, {"on_readonly": "copy"}):
            tensor = interop.from_array(obj, **options)
            tensor.zero_()
        assert np.asarray(obj).any() or isinstance(obj, bytes)


@pytest.mark.parametrize("obj", [[1, 2], (1.0,), 3, "text", None, {1: 2}, object(), range(3), np.ndarray])
def test_what_is_no_array_is_refused(obj):
    with pytest.raises(TypeError, match=f"'obj' must support DLPack, .*, got {type(obj).__name__}; torch"):
        interop.from_array(obj)


@pytest.mark.cuda
def test_cuda():
    x = torch.arange(3.0, device="cuda")

    class Array:
        __cuda_array_interface__ = interop.to_cuda_array_interface(x).__cuda_array_interface__

    assert interop.from_array(Array()).data_ptr() == x.data_ptr()
    assert interop.from_array(Array(), device="cpu").tolist() == [0, 1, 2]


@pytest.mark.parametrize("array", [np.arange(6.0)[::-1], np.arange(6.0).astype(">f8"), np.arange(6.0)[::-2]])
def test_what_torch_lacks_is_copied_if_it_may_be(array):
    for copy in (None, True):
        assert interop.from_array(array, copy=copy).tolist() == array.tolist()
    with pytest.raises((ValueError, BufferError)):
        interop.from_array(array, copy=False)


def test_a_policy_is_checked_and_does_not_allow_a_copy():
    with pytest.raises(ValueError, match="argument 'on_readonly' must be"):
        interop.from_array(torch.ones(1), on_readonly="zzz")
    with pytest.raises((ValueError, BufferError)):
        interop.from_array(bytes(8), copy=False, on_readonly="copy")


class Flipped:
    """An object that NumPy takes for an array with negative strides."""

    def __array__(self, dtype=None, copy=None):
        return np.arange(3.0)[::-1]


@pytest.mark.parametrize("obj", [Flipped(), memoryview(np.arange(3.0))[::-1], np.arange(3.0)[::-1]])
def test_negative_strides_are_copied_whoever_has_them(obj):
    for copy in (None, True):
        assert interop.from_array(obj, copy=copy).tolist() == [2, 1, 0]
    with pytest.raises((ValueError, BufferError), match="negative strides"):
        interop.from_array(obj, copy=False)


def test_an_object_with_an_array_is_named_as_the_argument():
    with pytest.raises(ValueError, match=r"^argument 'obj' must not have negative strides"):
        interop.from_array(Flipped(), copy=False)


@pytest.mark.parametrize("obj", [np.timedelta64(1, "s"), np.datetime64("2026-01-01")])
def test_dates_are_no_bytes(obj):
    for copy in (None, True):
        with pytest.raises((TypeError, BufferError), match="type"):
            interop.from_array(obj, copy=copy)


@pytest.mark.parametrize("mask", [False, True])
def test_a_masked_array_behind_an_interface(mask):
    """The values below a mask are not the array's."""

    class Variable:
        def __array__(self, dtype=None, copy=None):
            return np.ma.masked_array([1.0, 2.0], mask=[False, mask])

    if mask:
        with pytest.raises(ValueError, match=r"argument 'obj' must .*mask"):
            interop.from_array(Variable())
    else:
        assert interop.from_array(Variable()).tolist() == [1, 2]
        assert interop.from_array(np.ma.masked_array([1.0, 2.0])[::-1]).tolist() == [2, 1]
    with pytest.raises(ValueError, match="mask"):
        interop.from_array(np.ma.masked_array([1.0, 2.0], mask=[True, False])[::-1])


@pytest.mark.parametrize(("device", "error"), [(3.5, TypeError), ("nowhere", ValueError), (["cpu"], TypeError)])
def test_a_wrong_device(device, error):
    message = r"argument 'device' must be a torch\.device, its name or its index, got "
    with pytest.raises(error, match=rf"{message}({type(device).__name__}$|{re.escape(repr(device))}: )"):
        interop.from_array(bytearray(8), device=device)
