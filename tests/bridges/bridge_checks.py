"""Checks that take a converter. Our converters pass all of them; each broken converter fails at least one."""

import gc
import sys
import weakref

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

PLAIN = {
    "bool": torch.bool,
    "int8": torch.int8,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
    "uint8": torch.uint8,
    "uint16": torch.uint16,
    "uint32": torch.uint32,
    "uint64": torch.uint64,
    "float16": torch.float16,
    "float32": torch.float32,
    "float64": torch.float64,
    "complex64": torch.complex64,
    "complex128": torch.complex128,
}
"""The dtypes that NumPy and torch share."""

needs_writable_capsules = pytest.mark.skipif(
    not np.from_dlpack(np.zeros(1)).flags.writeable,
    reason="this NumPy makes read-only arrays of capsules of DLPack, and no capsules of such arrays",
)


class Owner(np.ndarray):
    """An array that its slices keep as their base, so a weak reference to it shows how long its memory lives."""


def bytes_of(tensor):
    """The bytes of a tensor's elements in C order, read by torch alone."""
    return bytes(tensor.detach().clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8).tolist())


def filled(dtype, size):
    """`size` elements whose bytes all differ from their neighbours. None is a NaN, which has many bit patterns."""
    count = size * np.dtype(dtype).itemsize
    raw = (np.arange(count) % 113 + 1).astype(np.uint8)
    return (raw % 2 if np.dtype(dtype) == bool else raw).view(dtype)


@st.composite
def shapes(draw):
    """Sizes, an order of the axes, and for each axis a start and a step."""
    sizes = draw(st.lists(st.integers(0, 3), max_size=5))
    order = draw(st.permutations(range(len(sizes))))
    slices = [slice(draw(st.integers(0, 2)), None, draw(st.integers(1, 3))) for _ in sizes]
    return sizes, order, slices


def laid_out(name, sizes, order, slices):
    """An array of dtype `name`, with strides and an offset."""
    grown = [size * part.step + part.start for size, part in zip(sizes, slices, strict=True)]
    flat = filled(name, int(np.prod(grown)))
    return flat.reshape(grown)[(..., *slices)].transpose(order)


def steps(sizes, strides):
    """The strides of axes longer than 1."""
    return [] if 0 in sizes else [stride for size, stride in zip(sizes, strides, strict=True) if size > 1]


def shares_an_array(convert, array, dtype=None):
    """The tensor has the array's dtype, shape, strides, address and bytes, owns it, and shares writes both ways."""
    before, count = array.tobytes(), sys.getrefcount(array)
    tensor = convert(array)
    assert type(tensor) is torch.Tensor
    assert tensor.dtype == (dtype or PLAIN[array.dtype.name])
    assert tuple(tensor.shape) == array.shape
    assert steps(tensor.shape, [s * tensor.element_size() for s in tensor.stride()]) == steps(
        array.shape, array.strides
    )
    assert not tensor.requires_grad
    assert bytes_of(tensor) == before
    if array.size:
        assert tensor.data_ptr() == array.ctypes.data
    assert sys.getrefcount(array) == count + 1
    if array.size and array.flags.writeable and 0 not in steps(array.shape, array.strides):
        (tensor.view(torch.uint8) if tensor.element_size() == 1 else tensor).zero_()
        assert not any(array.tobytes())
        array[...] = np.frombuffer(before, array.dtype).reshape(array.shape)
        assert bytes_of(tensor) == before
    view = tensor.detach()
    del tensor
    assert sys.getrefcount(array) == count + 1
    del view
    assert sys.getrefcount(array) == count


def owns_its_array(convert):
    """The array lives as long as the last view of the tensor, and no longer."""
    array = filled("float32", 24).reshape(4, 6).view(Owner)
    follow, expected = weakref.ref(array), array[1:, ::2].tobytes()
    tensor = convert(array[1:, ::2])
    view = tensor[:]
    del array, tensor
    gc.collect()
    assert follow() is not None
    assert bytes_of(view) == expected
    del view
    assert follow() is None


def stays_in_place(convert):
    """The storage over an array cannot be resized."""
    tensor = convert(np.ones(3))
    try:
        tensor.untyped_storage().resize_(1024)
    except RuntimeError:
        return
    raise AssertionError("the storage was resized")


def shares_a_tensor(convert, tensor, dtype=None):
    """The array has the tensor's dtype, shape, strides, address and bytes, and shares writes both ways."""
    before = bytes_of(tensor)
    array = convert(tensor)
    assert type(array) is np.ndarray
    assert array.dtype == (dtype or {torch_type: name for name, torch_type in PLAIN.items()}[tensor.dtype])
    assert array.shape == tuple(tensor.shape)
    assert steps(array.shape, array.strides) == steps(
        tensor.shape, [s * tensor.element_size() for s in tensor.stride()]
    )
    assert array.tobytes() == before
    if tensor.numel():
        assert array.ctypes.data == tensor.data_ptr()
    overlaps = 0 in steps(array.shape, array.strides)
    assert array.flags.writeable != overlaps
    if tensor.numel() and not overlaps:
        array.view(f"V{array.itemsize}")[...] = bytes(array.itemsize)
        assert not any(bytes_of(tensor))
        tensor.copy_(torch.frombuffer(bytearray(before), dtype=tensor.dtype).view(tensor.shape))
        assert array.tobytes() == before


def array_owns_the_memory(convert):
    """The memory lives exactly as long as the array, even without the tensor."""
    owner = filled("int64", 8).view(Owner)
    follow, expected = weakref.ref(owner), owner.tobytes()
    tensor = torch.from_numpy(owner)
    array = convert(tensor)
    view = array[:]
    del owner, tensor, array
    gc.collect()
    assert follow() is not None
    assert view.tobytes() == expected
    del view
    gc.collect()
    assert follow() is None
    # The array does not need the Python tensor.
    tensor = torch.arange(8)
    follow = weakref.ref(tensor)
    array = convert(tensor)
    del tensor
    assert follow() is None
    assert array.tolist() == list(range(8))


def stays_under_an_array(convert):
    """A tensor that shares memory with an array cannot be resized. The array survives share_memory_() and set_()."""
    tensor = torch.arange(64)
    array = convert(tensor)
    for resize in (lambda: tensor.untyped_storage().resize_(0), lambda: tensor.resize_(100_000)):
        try:
            resize()
        except RuntimeError:
            continue
        raise AssertionError("the storage was resized")
    tensor = torch.arange(64)
    array = convert(tensor)
    tensor.set_(torch.zeros(64, dtype=torch.int64))
    gc.collect()
    assert array.tolist() == list(range(64))
    tensor = torch.arange(64)
    array = convert(tensor)
    tensor.share_memory_()
    churn = [torch.full((64,), -1) for _ in range(64)]
    assert array.tolist() == list(range(64)), churn


def owns_what_torch_borrowed(convert, borrow):
    """An array over a tensor's foreign memory keeps the memory's owner, even when the storage moves elsewhere."""
    owner = Owner(64, np.int64)  # not a view: NumPy would keep only its base
    owner[:] = range(64)
    follow = weakref.ref(owner)
    tensor = borrow(owner)
    del owner
    array = convert(tensor)
    tensor.share_memory_()
    del tensor
    assert follow() is not None
    assert array.tolist() == list(range(64))
    del array
    assert follow() is None


def refuses(convert, given, kind, words):
    """`convert(given)` raises exactly `kind` with each of `words` in its message."""
    found, text = None, ""  # not the error: its frames form a cycle, and hold arrays whose references are counted
    try:
        convert(given)
    except Exception as error:
        found, text = type(error), str(error)
    assert found is kind, f"{found}: {text}"
    for word in words:
        assert word in text, f"{word!r} is not in {text}"


def misaligned():
    """Four float32 that start at an odd address."""
    return np.frombuffer(bytearray(17), np.uint8, 16, 1).view(np.float32)


ARRAY_REFUSALS = {  # name: the function that makes it, the class of the error, words of the message
    "a list": (lambda: [1.0], TypeError, ["'array'", "numpy.ndarray", "list", "numpy.asarray"]),
    "a scalar": (lambda: np.float32(1), TypeError, ["float32", "numpy.asarray"]),
    "negative strides": (lambda: np.ones(3)[::-1], ValueError, ["negative", "-8", "axis 0", "array.copy()"]),
    "an inner negative stride": (lambda: np.ones((2, 3))[:, ::-1], ValueError, ["negative", "axis 1"]),
    "byte-swapped": (lambda: np.ones(3, ">f4"), ValueError, ["byte order", ">f4", "newbyteorder"]),
    "odd strides": (
        lambda: np.ndarray((2,), "f4", bytearray(16), strides=(6,)),
        ValueError,
        ["multiples", "4 bytes", "6", "array.copy()"],
    ),
    "misaligned": (misaligned, ValueError, ["aligned", "array.copy()"]),
    "misaligned complex": (lambda: np.frombuffer(bytearray(18), np.uint8, 16, 2).view("c8"), ValueError, ["aligned"]),
    "read-only": (lambda: np.broadcast_to(1.0, 3), ValueError, ["read-only", "'copy'", "'share'"]),
    "masked": (lambda: np.ma.array([1.0, 2.0], mask=[False, True]), ValueError, ["masked", "array.filled(value)"]),
    "structured": (lambda: np.zeros(2, "f4,i4"), TypeError, ["fields", "array[name]"]),
    "objects": (lambda: np.array([None]), TypeError, ["object", "astype"]),
    "strings": (lambda: np.array(["a"]), TypeError, ["<U1", "strings"]),
    "empty strings": (lambda: np.zeros(3, "S0"), TypeError, ["|S", "strings"]),
    "string dtype": (lambda: np.array(["a"], np.dtypes.StringDType()), TypeError, ["strings"]),
    "datetimes": (lambda: np.array(["2020"], "M8[s]"), TypeError, ["datetime64", "view(numpy.int64)"]),
    "durations": (lambda: np.array([1], "m8[s]"), TypeError, ["timedelta64", "view(numpy.int64)"]),
    "longdouble": (lambda: np.ones(2, np.longdouble), TypeError, ["float128", "float64"]),
    "clongdouble": (lambda: np.ones(2, np.clongdouble), TypeError, ["complex256", "complex128"]),
    "void": (lambda: np.zeros(2, "V4"), TypeError, ["V4"]),
}


def resized():
    """A tensor whose storage has become too small for it."""
    tensor = torch.ones(8)
    tensor.untyped_storage().resize_(4)
    return tensor


def uncountable():
    """A tensor whose elements share memory, and have together more bytes than an int64 holds."""
    return torch.zeros(7168, dtype=torch.float64).as_strided((1024,) * 6 + (2,), (1,) * 7)


def meta():
    return torch.ones(2, device="meta")


TENSOR_REFUSALS = {
    "a list": (lambda: [1.0], TypeError, ["'tensor'", "torch.Tensor", "list", "torch.as_tensor"]),
    "None": (lambda: None, TypeError, ["NoneType"]),
    "requires grad": (
        lambda: torch.ones(2, requires_grad=True),
        RuntimeError,
        ["require grad", ".detach()", "torch.no_grad()", "readonly=True"],
    ),
    "in a graph": (lambda: torch.ones(2, requires_grad=True) * 2, RuntimeError, ["require grad", ".detach()"]),
    "conj": (lambda: torch.ones(2, dtype=torch.complex64).conj(), RuntimeError, ["resolve_conj"]),
    "neg": (lambda: torch.ones(2, dtype=torch.complex64).conj().imag, RuntimeError, ["resolve_neg"]),
    "sparse": (lambda: torch.eye(2).to_sparse(), TypeError, ["to_dense"]),
    "sparse csr": (lambda: torch.ones(2, 2).to_sparse_csr(), TypeError, ["to_dense"]),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), TypeError, ["int_repr"]),
    "meta": (meta, TypeError, ["meta", "torch.empty_like"]),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(1)]), TypeError, ["unbind"]),
    "resized": (resized, ValueError, ["storage"]),
    "uncountable bytes": (uncountable, ValueError, ["2**63", "torch.float64", "tensor[0]"]),
    "uncountable bytes of no element": (
        lambda: torch.zeros((), dtype=torch.int8).expand(0, 2**62, 2**62),
        ValueError,
        ["2**63", "[0, "],
    ),
    "complex32": (lambda: torch.zeros(2, dtype=torch.complex32), TypeError, ["complex32", "view_as_real"]),
}
