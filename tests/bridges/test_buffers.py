"""interop.from_buffer, as_memoryview, TensorBuffer and the buffer protocol on torch.Tensor."""

import _testbuffer
import array
import ctypes
import gc
import hashlib
import inspect
import io
import itertools
import mmap
import random
import re
import socket
import struct
import sys
import threading
import weakref
from collections import abc

import numpy as np
import pytest
import torch
from bridge_checks import PLAIN, Owner, bytes_of, filled, refuses, uncountable
from conftest import TESTS, not_in_debug_python, owns_to_the_end
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import interop

pytestmark = [pytest.mark.native, pytest.mark.filterwarnings("ignore:.*Triggered internally:UserWarning")]

FORMATS = {  # native formats, and their dtypes
    **dict.fromkeys("?", torch.bool),
    **dict.fromkeys(["b", "@b", "=b", "<b", ">b"], torch.int8),
    **dict.fromkeys(["B", "c", ">c", None], torch.uint8),
    **dict.fromkeys(["h", "=h", "<h"], torch.int16),
    **dict.fromkeys(["H", "<H"], torch.uint16),
    **dict.fromkeys(["i", "=i", "=l", "<l"], torch.int32),
    **dict.fromkeys(["I", "<L", "< L"], torch.uint32),
    **dict.fromkeys(["l", "q", "n", "@n", "=q", "<q"], torch.int64),
    **dict.fromkeys(["L", "Q", "N", "<Q"], torch.uint64),
    **dict.fromkeys(["e", "<e"], torch.float16),
    **dict.fromkeys(["f", "=f", "f:name:"], torch.float32),
    **dict.fromkeys(["d", "^d", " d "], torch.float64),
}
REFUSED_FORMATS = {
    "(4611686018427387904,4)f": "too large",  # format: a regex of the reason
    ">i": "byte order",
    "!d": "byte order",
    "g": "long double",
    "Zg": "long double",
    "5s": "strings",
    "w": "characters",
    "u": "characters",
    "O": "pointers",
    "P": "pointers",
    "&d": "pointers",
    "X{}": "pointers",
    "z": "pointers",
    "Z": "pointers",
    "t": "bits",
    "if": "several fields",
    "T{f:x:}": "struct",
    "T{T{f:a:i:b:}:x:}": "struct",
    "xB": "padding",
    "0f": "too large|item size|elements",
    "": "no elements",
    "T{f": "cannot be parsed",
    "f}": "cannot be parsed|brace",
    "(2,f": "cannot be parsed",
    "(2,3f": "cannot be parsed",
    "(2,3]f": "cannot be parsed",
    "(f)": "cannot be parsed",
    "f:name": "cannot be parsed",
    "=n": "cannot be parsed",
    "99999999999999999999f": "too large",
    "T{" * 40 + "f" + "}" * 40: "struct|deeply",
}


class Buffer(ctypes.Structure):
    """Py_buffer."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]


def memory(count=64, readonly=False):
    """An exporter of bytes."""
    data = bytes(range(1, count + 1))
    return data if readonly else bytearray(data)


@pytest.mark.parametrize("text", [text for text in FORMATS if text and not set(text) & set("^: c")])
def test_formats_of_struct(text):
    exporter = _testbuffer.ndarray([1, 0, 1, 1], shape=[4], format=text, flags=_testbuffer.ND_WRITABLE)
    tensor = interop.from_buffer(exporter)
    assert tensor.dtype == FORMATS[text]
    assert tensor.tolist() == [1, 0, 1, 1]


@pytest.mark.parametrize("text", [text for text in FORMATS if text])
def test_formats_are_parsed(bridged, text):
    dtype, sizes, itemsize, reason, pointers = bridged.parsed(text.encode())
    assert (dtype, reason, pointers) == (FORMATS[text], None, False)
    assert itemsize == dtype.itemsize
    assert sizes == []


@pytest.mark.parametrize("text", ["Zf", "F"])
def test_complex_formats_are_parsed(bridged, text):
    assert bridged.parsed(text.encode())[0] == torch.complex64


@pytest.mark.parametrize("text", REFUSED_FORMATS)
def test_formats_without_a_dtype(bridged, text):
    dtype, _, itemsize, reason, pointers = bridged.parsed(text.encode())
    if text == "0f":
        assert itemsize == 0
        return
    assert dtype is None
    assert re.search(REFUSED_FORMATS[text], reason), reason
    assert pointers == ("pointers" in reason)


@pytest.mark.parametrize("text", ["$O", "(2&i", "(2,3P", "k&", "kZ", "T{k:a:Z:b:}", "T{" * 40 + "O" + "}" * 40])
def test_what_cannot_be_parsed_may_be_pointers(bridged, text):
    dtype, _, _, reason, pointers = bridged.parsed(text.encode())
    assert dtype is None
    assert re.search("parsed|nested", reason)
    assert pointers


def test_names_are_no_codes_of_pointers(bridged):
    *_, reason, pointers = bridged.parsed(b"T{k:O:Zd:z:}")
    assert "parsed" in reason
    assert not pointers


class TwoPointers(ctypes.Structure):
    _fields_ = (("text", ctypes.c_char_p), ("wide", ctypes.c_wchar_p))


@pytest.mark.parametrize(
    "type_",
    [ctypes.c_char_p, ctypes.c_wchar_p, ctypes.c_void_p, ctypes.py_object, TwoPointers],
    ids=lambda t: t.__name__,
)
def test_pointers_of_ctypes_never_become_integers(type_):
    for dtype in (torch.int64, torch.uint8):
        with pytest.raises(TypeError, match="pointers"):
            interop.from_buffer((type_ * 4)(), dtype=dtype)


@pytest.mark.parametrize(
    ("text", "sizes"), [("(2,3)f", [2, 3]), ("4f", [4]), ("( 2 , 3 )=d:x:", [2, 3]), ("(2)3i", [2, 3])]
)
def test_subarrays_are_axes(bridged, text, sizes):
    dtype, found, itemsize, reason, _ = bridged.parsed(text.encode())
    assert (reason, found) == (None, sizes)
    assert itemsize == dtype.itemsize * int(np.prod(sizes))


@settings(deadline=None, max_examples=1000)
@given(text=st.text("?bBhilqefdgZFDcsuwOPtTX{}()&:,<>=!@^ x0123456789n", max_size=12))
def test_any_format_is_parsed_or_refused(bridged, text):
    dtype, _, _, reason, _ = bridged.parsed(text.encode())
    assert (dtype is None) != (reason is None)


def test_exporters_of_the_standard_library(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(memory(64))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        exporters = {
            "bytearray": (memory(), torch.uint8, (64,)),
            "array": (array.array("d", [1, 2, 3]), torch.float64, (3,)),
            "array of longs": (array.array("l", [1, 2]), torch.int64, (2,)),
            "ctypes": ((ctypes.c_int * 3 * 2)(), torch.int32, (2, 3)),
            "ctypes scalar": (ctypes.c_double(2.5), torch.float64, ()),
            "ctypes bytes": (ctypes.create_string_buffer(8), torch.uint8, (8,)),
            "memoryview": (memoryview(memory())[3:40:3], torch.uint8, (13,)),
            "cast": (memoryview(memory()).cast("H", [4, 8]), torch.uint16, (4, 8)),
            "ndarray": (np.arange(24.0).reshape(2, 3, 4)[:, 1:, ::2], torch.float64, (2, 2, 2)),
            "transposed": (np.ones((2, 3), "c8").T, torch.complex64, (3, 2)),
            "mmap": (mapped, torch.uint8, (64,)),
            "empty": (bytearray(), torch.uint8, (0,)),
        }
        for name, (exporter, dtype, shape) in exporters.items():
            tensor = interop.from_buffer(exporter)
            assert (tensor.dtype, tuple(tensor.shape)) == (dtype, shape), name
            view = memoryview(exporter)
            assert bytes_of(tensor) == view.tobytes(), name
            if view.nbytes:
                tensor.zero_()
                assert not any(view.tobytes()), name
            view.release()
            with pytest.raises(BufferError):
                mapped.close() if name == "mmap" else bytearray_grows(tensor, exporter)
            del tensor
        gc.collect()


def bytearray_grows(tensor, exporter):
    """Raises BufferError while `exporter` is exported, and always if it cannot grow."""
    if isinstance(exporter, (bytearray, array.array)) and len(exporter):
        exporter.extend(exporter[:1])
    else:
        raise BufferError


def test_an_owner_that_would_move_is_held():
    owner = bytearray(8)
    tensor = interop.from_buffer(owner, dtype=torch.int64)
    view = tensor[0:1]
    del tensor
    with pytest.raises(BufferError):
        owner.extend(b"more")
    del view
    owner.extend(b"more")
    mapped = mmap.mmap(-1, 16)
    tensor = interop.from_buffer(mapped)
    with pytest.raises(BufferError):
        mapped.close()
    del tensor
    mapped.close()


def test_dtype_shape_and_offset():
    data = memory(64)
    whole = torch.frombuffer(data, dtype=torch.uint8)
    for dtype in (torch.int16, torch.float32, torch.bfloat16, torch.float8_e5m2, torch.complex64):
        tensor = interop.from_buffer(data, dtype=dtype, offset=16, shape=(2, -1))
        assert bytes_of(tensor) == bytes(data[16:])
        assert tensor.data_ptr() == whole.data_ptr() + 16
    truth = interop.from_buffer(bytearray([0, 1, 2, 255]), dtype=torch.bool)
    assert (truth.view(torch.uint8) != 0).tolist() == truth.tolist() == [False, True, True, True]
    assert interop.from_buffer(data, shape=(2, 3)).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert interop.from_buffer(data, shape=4, offset=60).tolist() == [61, 62, 63, 64]
    assert interop.from_buffer(data, shape=(), offset=63).tolist() == 64
    assert interop.from_buffer(data, shape=(0, 5), offset=64).shape == (0, 5)
    assert interop.from_buffer(data, offset=64).shape == (0,)
    bits = np.arange(12, dtype=np.uint16).reshape(3, 4)[:, ::2]
    tensor = interop.from_buffer(bits, dtype=torch.bfloat16)
    assert tensor.stride() == (4, 2)
    assert tensor.view(torch.uint16).tolist() == bits.tolist()
    structs = np.zeros(3, "f4,f4")
    assert interop.from_buffer(structs, dtype=torch.complex64).shape == (3,)
    assert interop.from_buffer(structs, dtype=torch.float32, shape=(-1, 2)).shape == (3, 2)


def released():
    """An exporter that raises."""
    view = memoryview(b"ab")
    view.release()
    return view


WRONG = {
    "a list": ({"obj": [1]}, TypeError, ["'obj'", "buffer protocol", "list"]),
    "read-only": ({"obj": b"abc"}, ValueError, ["read-only", "'copy'", "'share'"]),
    "negative strides": ({"obj": memoryview(memory())[::-1]}, ValueError, ["negative", "dtype="]),
    "a part of an element": (
        {"obj": memory(7), "dtype": torch.int16},
        ValueError,
        ["whole number", "2 bytes", "7 bytes"],
    ),
    "misaligned": ({"obj": memory(64), "dtype": torch.int64, "offset": 4, "shape": 2}, ValueError, ["aligned to 8"]),
    "offset too large": ({"obj": memory(8), "offset": 9}, ValueError, ["'offset'", "0 to 8", "9"]),
    "offset negative": ({"obj": memory(8), "offset": -1}, ValueError, ["'offset'", "-1"]),
    "offset a float": ({"obj": memory(8), "offset": 1.0}, TypeError, ["'offset'", "float"]),
    "shape too large": ({"obj": memory(8), "shape": (3, 3)}, ValueError, ["'shape'", "[3, 3]", "8 bytes"]),
    "shape overflows": ({"obj": memory(8), "dtype": torch.int64, "shape": 2**61 + 1}, ValueError, ["'shape'", "fit"]),
    "product overflows": ({"obj": memory(8), "shape": (2**32, 2**32)}, ValueError, ["'shape'", "fit"]),
    "huge": ({"obj": memory(8), "shape": 2**70}, OverflowError, ["'shape'", "64 bits"]),
    "two open sizes": ({"obj": memory(8), "shape": (-1, -1)}, ValueError, ["one -1"]),
    "negative size": ({"obj": memory(8), "shape": (-2,)}, ValueError, [">= 0"]),
    "open beside 0": ({"obj": memory(8), "shape": (0, -1)}, ValueError, ["divide"]),
    "does not divide": ({"obj": memory(8), "shape": (3, -1)}, ValueError, ["divide"]),
    "65 axes": ({"obj": memory(8), "shape": [1] * 65}, ValueError, ["64", "65"]),
    "shape a string": ({"obj": memory(8), "shape": "ab"}, TypeError, ["'shape'", "str"]),
    "shape an object": ({"obj": memory(8), "shape": memory}, TypeError, ["'shape'", "function"]),
    "released": ({"obj": released()}, ValueError, ["released"]),
    "dtype of NumPy": ({"obj": memory(8), "dtype": np.float32}, TypeError, ["'dtype'", "torch.dtype"]),
    "quantized": ({"obj": memory(8), "dtype": torch.qint8}, TypeError, ["'dtype'", "QInt8", "uint8"]),
    "not contiguous": ({"obj": memoryview(memory())[::2], "dtype": torch.int16}, ValueError, ["contiguous"]),
    "objects": ({"obj": np.array([None])}, TypeError, ["pointers"]),
    "objects as numbers": ({"obj": np.array([None]), "dtype": torch.int64}, TypeError, ["pointers"]),
    "swapped": ({"obj": np.ones(2, ">f4")}, TypeError, [">f", "byte order"]),
    "structs": ({"obj": np.zeros(2, "f4,i4")}, TypeError, ["struct", "dtype="]),
    "characters": ({"obj": np.array(["a"])}, TypeError, ["characters"]),
    "longdouble": ({"obj": np.ones(2, np.longdouble)}, TypeError, ["long double"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_from_buffer_refuses(name):
    given, kind, words = WRONG[name]
    arguments = dict(given)
    refuses(lambda obj: interop.from_buffer(obj, **arguments), arguments.pop("obj"), kind, words)


def test_an_array_as_a_shape():
    for shape in (np.array([2, 3]), np.array([6]), np.array(6), torch.tensor(6)):
        tensor = interop.from_buffer(memory(6), shape=shape)
        assert tensor.shape == torch.empty(np.atleast_1d(np.asarray(shape)).tolist()).shape


class Items:
    """A sequence by __getitem__ alone."""

    def __getitem__(self, index):
        return (2, 3)[index]


class Interrupted(Items):
    def __getitem__(self, index):
        raise KeyboardInterrupt


def test_sequences_as_a_shape():
    assert interop.from_buffer(memory(6), shape=Items()).shape == (2, 3)
    with pytest.raises(KeyboardInterrupt):
        interop.from_buffer(memory(6), shape=Interrupted())
    for wrong in (np.array([[2, 3]]), torch.tensor([2, 3])):
        refuses(lambda obj, wrong=wrong: interop.from_buffer(obj, shape=wrong), memory(6), TypeError, ["'shape'"])


def test_a_shape_that_empties_its_list():
    class Last:
        def __index__(self):
            shape.clear()
            return 2

    shape = [Last(), Last(), *range(1000, 1050)]
    with pytest.raises(ValueError, match="'shape'"):
        interop.from_buffer(memory(8), shape=shape)


def test_pointers_to_pointers_to_pointers(bridged):
    """A format may consist of pointers alone; the parser does not recurse for each."""
    assert bridged.parsed(b"&" * 3_000_000 + b"i")[3:] == (bridged.parsed(b"&i")[3], True)


def test_read_only_buffers():
    shared = interop.from_buffer(b"abcd", on_readonly="share")
    assert interop.as_memoryview(shared).readonly
    assert not interop.to_numpy(shared).flags.writeable
    assert interop.from_buffer(b"abcd", on_readonly="copy").fill_(1).tolist() == [1] * 4
    assert not interop.as_memoryview(interop.from_buffer(bytearray(b"abcd"), on_readonly="share")).readonly


def test_hostile_exporters():
    """Thousands of random CPython exporters: any format, prefix, shape and strides, with pointers, without a shape."""
    draw = random.Random(6)
    shared, refusals = 0, []
    for _ in range(4000):
        ndim = draw.randint(0, 4)
        shape = [draw.randint(0 if draw.random() < 0.1 else 1, 4) for _ in range(ndim)]
        text = draw.choice(["", "", "@", "=", "<", ">", "!"]) + draw.choice(
            ["b", "B", "h", "i", "q", "d", "f", "?", "l", "2h"]
        )
        count = int(np.prod(shape))
        flags = draw.choice([0, _testbuffer.ND_WRITABLE, _testbuffer.ND_FORTRAN, _testbuffer.ND_PIL])
        item = (1, 2) if text.endswith("2h") else draw.randint(0, 1)
        try:
            exporter = _testbuffer.ndarray(
                [item] * max(count, 1) if ndim else item, shape=shape, format=text, flags=flags
            )
            for axis in range(ndim):
                if draw.random() < 0.3 and shape[axis]:
                    key = [slice(None)] * ndim
                    key[axis] = slice(None, None, draw.choice([-1, 2, -2]))
                    exporter = exporter[tuple(key) if ndim > 1 else key[0]]
        except (ValueError, NotImplementedError, TypeError, BufferError):
            continue
        view = memoryview(exporter)
        try:
            tensor = interop.from_buffer(exporter, on_readonly="share")
        except (ValueError, TypeError) as error:
            refusals.append(str(error))
            continue
        shared += 1
        assert bytes_of(tensor) == view.tobytes()
        assert tuple(tensor.shape) == (*view.shape, *([2] if text.endswith("2h") else []))
    assert shared > 1000
    reasons = re.compile("byte order|negative|pointers|multiples|aligned")
    assert [message for message in refusals if not reasons.search(message)] == []


LIES = {
    "strides without a shape": {"strides": [1]},
    "no memory": {"address": 0},
    "no memory, with a shape": {"address": 0, "shape": [64]},
    "memory that wraps around": {"address": 2**64 - 32},
    "memory that ends at the last address": {"address": 2**64 - 64},
    "no shape, and two axes": {"ndim": 2},
    "an itemsize of 0": {"itemsize": 0},
    "a negative length": {"length": -1},
    "a length that wraps around": {"length": 2**63 - 1, "shape": [2**63 - 1], "address": 2**63 + 2**62},
    "steps without end": {"shape": [64], "strides": [2**62]},
    "objects, in an unknown dialect": {"format": b"$O", "itemsize": 8, "shape": [8]},
    "what cannot be read": {"format": b"d$", "itemsize": 8, "shape": [8]},
    "what is no text": {"format": b"\xff\xfe", "itemsize": 8, "shape": [8]},
    "pointers, nested too deeply": {"format": b"T{" * 40 + b"O" + b"}" * 40, "itemsize": 8, "shape": [8]},
}


@pytest.mark.parametrize("wanted", [{}, {"offset": 8}, {"dtype": torch.int64}, {"dtype": torch.int64, "offset": 8}])
@pytest.mark.parametrize("name", LIES)
def test_exporters_that_lie(bridged, name, wanted):
    """An impossible buffer raises. A buffer that makes sense gives a tensor within the memory that exists."""
    liar = bridged.Liar(**LIES[name])
    is_bytes = name in ("what cannot be read", "what is no text") and "dtype" in wanted
    if name == "strides without a shape" or is_bytes:
        tensor = interop.from_buffer(liar, **wanted)
        assert tensor.untyped_storage().nbytes() + wanted.get("offset", 0) == 64
        assert tensor.sum() == 0
    else:
        with pytest.raises((TypeError, ValueError), match="'obj'"):
            interop.from_buffer(liar, **wanted)


class Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(Slot)),
    )


@not_in_debug_python(reason="CPython itself aborts at such an exporter")
def test_an_exporter_that_fails_without_an_error():
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)(lambda *_: -1)
    slots = (Slot * 2)(Slot(1, ctypes.cast(function, ctypes.c_void_p)))  # Py_bf_getbuffer
    spec = Spec(b"tests.Silent", object.__basicsize__, 0, 0, slots)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(("PyType_FromSpec", ctypes.pythonapi))
    silent = make(ctypes.byref(spec))()
    for convert in (interop.from_buffer, interop.from_array):
        with pytest.raises(BufferError, match=r"'obj' exports no buffer, and tests\.Silent does not say why"):
            convert(silent)


def test_buffers_of_dead_objects_on_other_threads():
    owner = bytearray(8)
    tensors = [interop.from_buffer(owner)]
    thread = threading.Thread(target=tensors.clear)
    thread.start()
    thread.join()
    owner.append(1)


# Exports of tensors.

NAMES = """
    SIMPLE WRITABLE FORMAT ND STRIDES C_CONTIGUOUS F_CONTIGUOUS ANY_CONTIGUOUS INDIRECT FULL FULL_RO RECORDS RECORDS_RO
    STRIDED STRIDED_RO CONTIG CONTIG_RO
"""
FLAGS = [getattr(_testbuffer, f"PyBUF_{name}") for name in NAMES.split()]
ALL_FLAGS = sorted({a | b | c for a, b, c in itertools.product(FLAGS, repeat=3)})


def exported(exporter, flags):
    """The Py_buffer of an exporter for the flags, or BufferError."""
    view = Buffer()
    try:
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(exporter), ctypes.byref(view), flags)
    except BufferError:
        return BufferError
    dims = range(view.ndim)
    result = (
        view.len,
        view.itemsize,
        view.readonly,
        view.ndim,
        view.format,
        [view.shape[d] for d in dims] if view.shape else None,
        [view.strides[d] for d in dims] if view.strides else None,
        bool(view.suboffsets),
    )
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))
    return result


def layouts():
    base = torch.arange(24, dtype=torch.int32)
    yield from (base, base[5], base[::3], base.view(4, 6), base.view(4, 6).T, base.view(2, 3, 4)[:, 1:, ::2])
    yield from (base.view(2, 3, 4).permute(2, 0, 1), base[:0], base[:0].view(3, 0, 2), base.view(1, 24)[:, ::2])
    yield from (base[:3].expand(2, 3), torch.empty(0, dtype=torch.int32), base.view(24, 1).T)


@pytest.mark.parametrize("number", range(13))
@pytest.mark.parametrize("readonly", [False, True])
def test_every_combination_of_flags(number, readonly):
    """Exports equal those of CPython's memoryview of an array over the same memory."""
    tensor = list(layouts())[number]
    like = tensor.numpy()
    if readonly or (0 in tensor.stride() and tensor.numel()):
        like.flags.writeable = False
    reference, ours = memoryview(like), interop.TensorBuffer(tensor, readonly=readonly)
    for flags in ALL_FLAGS:
        expected, found = exported(reference, flags), exported(ours, flags)
        if BufferError not in (expected, found) and tensor.numel() == 0:
            expected, found = (*expected[:6], None), (*found[:6], None)  # these strides are unused
        assert found == expected, hex(flags)


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_memoryviews_are_those_of_numpy(name):
    tensor = torch.from_numpy(filled(name, 24)).view(2, 3, 4)[:, 1:, ::2]
    ours, theirs = interop.as_memoryview(tensor), memoryview(tensor.numpy())
    for attribute in ("format", "itemsize", "ndim", "shape", "strides", "readonly", "nbytes", "c_contiguous"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert ours.tobytes() == theirs.tobytes()
    described = interop.TensorBuffer(tensor)
    assert (described.format, described.shape, described.strides) == (theirs.format, theirs.shape, theirs.strides)


def test_exports_that_are_refused():
    for make, kind, words in [
        (lambda: [1], TypeError, ["'tensor'", "list"]),
        (lambda: torch.ones(2, requires_grad=True), RuntimeError, ["require grad"]),
        (lambda: torch.ones(2, dtype=torch.bfloat16), TypeError, ["torch.bfloat16", "uint16"]),
        (lambda: torch.ones(2).to(torch.float8_e5m2), TypeError, ["float8_e5m2", "uint8"]),
        (lambda: torch.ones(2, dtype=torch.complex64).conj(), RuntimeError, ["resolve_conj"]),
        (lambda: torch.ones(2, device="meta"), TypeError, ["meta"]),
        (lambda: torch.ones([1] * 65), ValueError, ["64", "65"]),
    ]:
        refuses(interop.as_memoryview, make(), kind, words)
        refuses(interop.TensorBuffer, make(), kind, words)
    for call in (interop.TensorBuffer, lambda: interop.TensorBuffer(torch.ones(2), True)):
        with pytest.raises(TypeError, match=r"TensorBuffer\(\)"):
            call()
    refuses(interop.from_buffer, torch.ones(2), TypeError, ["interop.as_memoryview"])
    refuses(interop.from_numpy, torch.ones(2), TypeError, ["a tensor already", "interop.to_numpy"])
    view = interop.as_memoryview(torch.ones(2, requires_grad=True), readonly=True)
    assert view.readonly
    assert view.tolist() == [1, 1]
    with pytest.raises(BufferError, match="contiguous"):
        exported_simple(interop.TensorBuffer(torch.ones(3, 2).T))


def exported_simple(exporter):
    io.BytesIO().write(exporter)


def test_exported_memory_stays():
    for move in (
        lambda tensor: tensor.resize_(10_000).fill_(-1),
        lambda tensor: tensor.untyped_storage().resize_(0),
        lambda tensor: tensor.set_(torch.zeros(3, dtype=torch.int64)),
    ):
        tensor = torch.arange(64)
        view = interop.as_memoryview(tensor)
        move(tensor)
        churn = [torch.full((64,), -1) for _ in range(64)]
        assert view.tolist() == list(range(64)), churn
    tensor = torch.arange(64)
    view = interop.as_memoryview(tensor)
    tensor.share_memory_()
    tensor.t_()
    churn = [torch.full((64,), -1) for _ in range(64)]
    assert view.tolist() == list(range(64)), churn
    follow = weakref.ref(tensor)
    del tensor
    assert follow() is None
    assert view.tolist() == list(range(64))


@pytest.mark.parametrize("convert", [torch.Tensor.numpy, interop.to_numpy])
def test_what_an_array_pins_stays_pinned_when_a_buffer_ends(convert):
    """torch's arrays rely on a storage that is never resized."""
    tensor = torch.arange(64)
    view = interop.as_memoryview(tensor)
    array = convert(tensor)
    view.release()
    with pytest.raises(RuntimeError, match="resizable"):
        tensor.untyped_storage().resize_(0)
    assert array.tolist() == list(range(64))


def test_buffers_do_not_pin():
    tensor = torch.arange(8)
    view = interop.as_memoryview(tensor)
    assert tensor.untyped_storage().resizable()
    del view
    assert tensor.resize_(100).untyped_storage().resizable()


def test_no_cycles():
    tensor = torch.ones(3)
    tensor.view_of_it = interop.as_memoryview(tensor)
    follow = weakref.ref(tensor)
    del tensor
    assert follow() is None
    owner = np.ones(3).view(Owner)
    follow = weakref.ref(owner)
    view = interop.as_memoryview(interop.from_numpy(owner))
    del owner
    assert follow() is not None
    view.release()
    del view
    assert follow() is None


def test_the_version_counts_writes():
    tensor = torch.ones(3)
    interop.as_memoryview(tensor, readonly=True)
    memoryview(interop.TensorBuffer(tensor))
    assert tensor._version == 0
    interop.as_memoryview(tensor)
    assert tensor._version == 1
    exported(interop.TensorBuffer(tensor), _testbuffer.PyBUF_WRITABLE)
    assert tensor._version == 2
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    interop.as_memoryview(y.detach())[0] = 5
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with torch.inference_mode():
        unwatched = torch.ones(3)
    interop.as_memoryview(unwatched)[0] = 2.0
    assert unwatched.tolist() == [2, 1, 1]


def as_ctypes(tensor):
    return (ctypes.c_float * 3).from_buffer(tensor)


def as_cython(tensor):
    """Requests what a `float[:]` of Cython requests."""
    return memoryview(_testbuffer.ndarray(tensor, getbuf=_testbuffer.PyBUF_RECORDS))


def set_in(make):
    """A writer, which sets the first element of `make(tensor)`."""

    def write(tensor):
        make(tensor)[0] = 5

    return write


READERS = {
    "bytes": bytes,
    "hashlib": lambda tensor: hashlib.sha256(tensor).digest(),
    "a file": lambda tensor: io.BytesIO().write(tensor),
    "memoryview": lambda tensor: memoryview(tensor).tolist(),
    "ctypes": lambda tensor: list(as_ctypes(tensor)),
    "float[:]": lambda tensor: as_cython(tensor).tolist(),
    "numpy.asarray": lambda tensor: np.asarray(tensor).sum(),
    "numpy.frombuffer": lambda tensor: np.frombuffer(tensor, np.float32).sum(),
    "numpy.ndarray": lambda tensor: np.ndarray(3, np.float32, buffer=tensor).sum(),
    "from_buffer": lambda tensor: interop.from_buffer(tensor).sum(),
}
WRITERS = {
    "memoryview": set_in(memoryview),
    "ctypes": set_in(as_ctypes),
    "float[:]": set_in(as_cython),
    "readinto": lambda tensor: io.BytesIO(bytes(range(12))).readinto(tensor),
    "numpy.asarray": set_in(np.asarray),
    "numpy.frombuffer": set_in(lambda tensor: np.frombuffer(tensor, np.float32)),
    "from_buffer": lambda tensor: interop.from_buffer(tensor).fill_(5),
}
SAVED = {
    "a leaf": lambda: torch.ones(3),
    "a part": lambda: torch.ones(6)[3:],
    "a column": lambda: torch.ones(3, 2)[:, 1],
    "detached": lambda: torch.ones(3, requires_grad=True).exp().detach(),
}


OF_BYTES = {"hashlib", "a file", "ctypes", "readinto", "numpy.frombuffer", "numpy.ndarray"}
"""The uses that need contiguous memory."""


def uses(table):
    """The names of each use and each tensor that it accepts."""
    return [(name, saved) for name in table for saved in SAVED if saved != "a column" or name not in OF_BYTES]


def is_counted(use, tensor):
    """Whether backward reports that `use` modified a tensor that was saved for it."""
    loss = (tensor * torch.ones_like(tensor, requires_grad=True)).sum()
    use(tensor)
    message = None
    try:
        loss.backward()
    except RuntimeError as error:
        message = str(error)
    assert message is None or "modified by an inplace operation" in message
    return message is not None


@pytest.mark.parametrize(("name", "saved"), uses(READERS))
def test_who_only_reads_is_never_counted(bridged, name, saved):
    with interop.enable_buffer_protocol():
        assert not is_counted(READERS[name], SAVED[saved]())
        assert not is_counted(bridged.read_by_a_writer, torch.ones(3))


def shuffle(array):
    np.random.default_rng(0).shuffle(array)


@pytest.mark.parametrize("n", [4, 8, 64, 1000, 8192])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.complex64, torch.int64])
@pytest.mark.parametrize("write", [lambda a: np.negative(a, out=a), lambda a: np.conjugate(a, out=a), shuffle])
def test_regular_writes_are_found(write, dtype, n):
    """Writes that change many words in the same way do not cancel out in the digest."""
    turned = 1j if dtype.is_complex else 1
    for tensor in (torch.arange(1, n + 1).to(dtype) * turned, torch.where(torch.arange(n) % 2 == 0, 1, -1).to(dtype)):
        before, alias = bytes_of(tensor), tensor[:]
        with interop.enable_buffer_protocol():
            write(np.asarray(alias))
        assert tensor._version == (bytes_of(tensor) != before)


def test_what_lies_between_is_not_watched():
    """Writes to other elements of the same memory, or to a tensor above the size limit of the check, are missed."""
    square = torch.ones(4, 4)
    with interop.enable_buffer_protocol():
        column = memoryview(square[:, 3])
        square.numpy()[1, 1] = 7
        column.release()
        assert square._version == 0
        large = torch.zeros(2**18 + 1)
        alias = large[:]
        np.asarray(alias)[0] = 1
        assert large._version == 0


def test_memory_that_is_replaced_meanwhile(tmp_path):
    """An export does not keep the memory of a mapped file, so it does not read that memory when it ends."""
    torch.save(torch.ones(100), tmp_path / "file")
    tensor = torch.load(tmp_path / "file", mmap=True)
    alias = tensor[:]
    with interop.enable_buffer_protocol():
        view = memoryview(tensor)
        tensor.share_memory_()
        view.release()
    assert alias.sum() == 100


@pytest.mark.parametrize(("name", "saved"), uses(WRITERS))
def test_who_has_written_is_counted_at_the_end(name, saved):
    with interop.enable_buffer_protocol():
        assert is_counted(WRITERS[name], SAVED[saved]())


def while_it_lasts(tensor):
    kept.append(np.asarray(tensor))
    kept[-1].fill(5)


def through_an_earlier_export(others, torch_writes):
    """Writes to a tensor that was saved after the export had begun: see `is_counted`."""

    def begin(tensor):
        kept.append(tensor[:] if others else None)
        view = memoryview(tensor)
        if torch_writes:
            tensor.add_(1)

        def write(_):
            view[0] = 5
            view.release()

        return write

    return begin


kept = []
"""Arrays and tensors that outlive backward."""
EARLIER = "a write after the tensor was saved, through an export that began before"
COUNTED = {
    "`bytes(t)`, hashlib, `file.write(t)`": [READERS[name] for name in ("bytes", "hashlib", "a file")],
    "a read through `memoryview(t)`, `numpy.asarray(t)`, `numpy.frombuffer(t)`, ctypes, `float[:]`": [
        READERS[name] for name in ("memoryview", "numpy.asarray", "numpy.frombuffer", "ctypes", "float[:]")
    ],
    "a write through `memoryview(t)`, `ctypes...from_buffer(t)`, `file.readinto(t)`, `float[:]`": [
        WRITERS[name] for name in ("memoryview", "ctypes", "readinto", "float[:]")
    ],
    "a write through an array of `numpy.asarray(t)` or `numpy.frombuffer(t)`": [
        WRITERS[name] for name in ("numpy.asarray", "numpy.frombuffer")
    ],
    "a write through `numpy.ndarray(buffer=t)`, which ends the export at once": [
        set_in(lambda tensor: np.ndarray(3, np.float32, buffer=tensor))
    ],
    "a write while the export lasts, backward before its end": [while_it_lasts],
    EARLIER: [
        through_an_earlier_export(others=False, torch_writes=False),
        through_an_earlier_export(others=True, torch_writes=True),
    ],
    "a write to a tensor of more than a mebibyte": [WRITERS["memoryview"]],
}
"""What does each row of the table in docs/bridges.md."""


def table_of_counts():
    """The rows of the table: what is done, and what becomes of it with "found" and "asked"."""
    text = (TESTS.parent / "docs" / "bridges.md").read_text(encoding="utf-8")
    table = text.partition('| | `"found"` | `"asked"` |\n|---|---|---|\n')[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


@pytest.mark.parametrize(("done", "found", "asked"), table_of_counts())
def test_the_table_of_counts(done, found, asked):
    for use in COUNTED[done]:
        for cell, count_writes in ((found, "found"), (asked, "asked")):
            tensor = torch.ones(2**18 + 1 if "mebibyte" in done else 3)
            with interop.enable_buffer_protocol(count_writes=count_writes):
                write = use(tensor) if done == EARLIER else use
                assert is_counted(write, tensor) == cell.startswith("counted"), count_writes
            kept.clear()


def test_the_table_of_counts_is_whole():
    assert [done for done, *_ in table_of_counts()] == [*COUNTED]
    # The exception to what the table says of an export that began before.
    tensor = torch.ones(3)
    with interop.enable_buffer_protocol():
        assert is_counted(through_an_earlier_export(others=True, torch_writes=False)(tensor), tensor)
    kept.clear()


def test_a_reader_that_is_taken_for_the_writer():
    """If other code writes during an export, and counts no write itself, the export counts it."""

    def read(tensor):
        view = memoryview(tensor)
        interop.to_numpy(tensor)[0] = 5
        view.release()

    with interop.enable_buffer_protocol():
        assert is_counted(read, torch.ones(3))


def test_unknown_ways_to_count():
    with pytest.raises(ValueError, match="'count_writes' must be 'found' or 'asked', got 'never'"):
        interop.enable_buffer_protocol(count_writes="never")


def test_torchs_own_writes_are_counted_once():
    tensor = torch.ones(3)
    with interop.enable_buffer_protocol():
        alias = tensor[:]
        view = memoryview(tensor)
        alias.add_(1)
        view.release()
        assert tensor._version == 1
        view = memoryview(tensor)
        view[0] = 7
        view.release()
        assert tensor._version == 2


def test_what_an_array_shares_is_not_resized():
    """The same holds without the protocol: there numpy.asarray(tensor) is tensor.numpy()."""
    with interop.enable_buffer_protocol():
        for share in (
            np.asarray,
            memoryview,
            lambda one: np.frombuffer(one, np.float32),
            lambda one: np.ndarray(3, np.float32, buffer=one),
        ):
            tensor = torch.ones(3)
            shared = share(tensor)
            with pytest.raises(RuntimeError, match="not resizable"):
                tensor.resize_(1000)
            assert shared[0] == 1
        for read in (READERS["hashlib"], bytes):
            tensor = torch.ones(3)
            read(tensor)
            tensor.resize_(1000)


def test_bytearray_takes_one_integer_for_a_length():
    """bytearray tries __index__ first. Only CPython could change that; the workaround is documented."""
    tensor = torch.tensor([3])
    with interop.enable_buffer_protocol():
        assert bytearray(tensor) == bytes(3)
        assert bytearray(memoryview(tensor)) == bytes(tensor) == bytes_of(tensor)
        assert bytearray(torch.tensor([3, 4])) == bytes_of(torch.tensor([3, 4]))


class Overrides(torch.Tensor):
    def __array__(self, *arguments, **keywords):
        return np.array([42.0])


class Renames(torch.Tensor):
    def numpy(self, *, force=False):
        return np.array([42.0])

    def __array__(self, *arguments, **keywords):
        return self.numpy()


class Intercepts(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        if function is torch.Tensor.__array__:
            return np.array([42.0])
        return super().__torch_function__(function, types, arguments, keywords or {})


class Describes(torch.Tensor):
    DESCRIBED = np.array([42.0])  # the dictionary does not own the memory

    @property
    def __array_interface__(self):
        return self.DESCRIBED.__array_interface__

    def __array__(self, *arguments, **keywords):
        return np.array([42.0])


class Answers(torch.Tensor):
    def __getattribute__(self, name):
        if name == "__array__":
            return lambda *arguments, **keywords: np.array([42.0])
        return super().__getattribute__(name)


class Sees(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), keywords=None):
        if function is torch.Tensor.__array__:
            return np.array([42.0])
        return function(*arguments, **(keywords or {}))


LOSES_NONE = pytest.mark.unchecked(by="leaks", reason="NumPy loses a reference to None for each __array_interface__")


@pytest.mark.parametrize("kind", [Overrides, Renames, Intercepts, Answers, pytest.param(Describes, marks=LOSES_NONE)])
def test_what_a_class_makes_of_itself_is_what_numpy_sees(kind):
    tensor = torch.ones(3).as_subclass(kind)
    expected = np.asarray(tensor)
    assert expected.tolist() == [42]
    with interop.enable_buffer_protocol():
        assert np.asarray(tensor).tolist() == [42]
        with pytest.raises(BufferError, match=f"{kind.__name__}.*float32 with sizes"):
            memoryview(tensor)
    assert interop.to_numpy(tensor).tolist() == [1, 1, 1]


def test_what_a_mode_sees_is_what_numpy_sees():
    tensor = torch.ones(3)
    with interop.enable_buffer_protocol():
        with Sees():
            assert np.asarray(tensor).tolist() == [42]
            with pytest.raises(BufferError, match="TorchFunctionMode"):
                memoryview(tensor)
        with torch.device("cpu"):
            assert memoryview(tensor).tolist() == [1, 1, 1]
        assert memoryview(torch.nn.Parameter(tensor, requires_grad=False)).tolist() == [1, 1, 1]
        assert memoryview(torch.nn.Buffer(tensor)).tolist() == [1, 1, 1]


class Counts(TorchDispatchMode):
    seen = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        self.seen += 1
        return function(*arguments, **(keywords or {}))


def test_what_a_dispatch_mode_sees_of_an_array(bridged):
    """As much as without the protocol, and FakeTensorMode raises for a tensor from outside."""
    tensor = torch.ones(3)
    with Counts() as expected:
        np.asarray(tensor)
    with interop.enable_buffer_protocol():
        with Counts() as found:
            assert np.asarray(tensor).tolist() == [1, 1, 1]
            with pytest.raises(BufferError, match="TorchDispatchMode"):
                memoryview(tensor)
            assert bridged.read_by_a_writer(tensor) == 3  # a typed memoryview has no other way
        assert found.seen == expected.seen > 0
        with FakeTensorMode(), pytest.raises(AssertionError, match="FakeTensor"):
            np.asarray(tensor)
        assert memoryview(tensor).tolist() == [1, 1, 1]


MOVES = {
    "data": lambda tensor: setattr(tensor, "data", torch.zeros(3)),
    "set_": lambda tensor: tensor.set_(torch.zeros(3)),
    "share_memory_": lambda tensor: tensor.share_memory_(),
}
ARRAYS = {
    "asarray": np.asarray,
    "frombuffer": lambda tensor: np.frombuffer(tensor, np.float32),
    "ndarray": lambda tensor: np.ndarray(64, np.float32, buffer=memoryview(tensor)),
}


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_an_array_keeps_memory_that_the_tensor_leaves(move, make):
    class Memory(bytearray):
        pass

    expected = np.arange(64, dtype=np.float32)
    owner = Memory(expected.tobytes())
    follow = weakref.ref(owner)
    tensor = interop.from_buffer(owner, dtype=torch.float32)
    del owner
    with interop.enable_buffer_protocol():
        array = make(tensor)
    move(tensor)
    assert follow() is not None
    assert (array == expected).all()
    del array, tensor
    assert follow() is None


def test_gradients_keep_memory_back(bridged):
    tensor = torch.arange(6.0).view(2, 3).requires_grad_()
    with interop.enable_buffer_protocol():
        assert bytes(tensor) == bytes_of(tensor.detach())
        for read in (memoryview, hashlib.sha256, lambda one: bridged.total(one[0])):
            with pytest.raises(BufferError, match=r"to be read:.*\.detach\(\).*torch.float32 with sizes"):
                read(tensor)
        with pytest.raises(RuntimeError):
            torch.frombuffer(tensor, dtype=torch.float32)
        with pytest.raises(BufferError, match=r"require grad to be written to.*torch.float32 with sizes"):
            bridged.contiguous(tensor)
        with torch.no_grad():
            assert bridged.total(tensor[0]) == 3


class Sub(torch.Tensor):
    pass


def test_the_protocol_on_tensors(tmp_path):
    tensor = torch.arange(6, dtype=torch.float32).view(2, 3)
    with interop.enable_buffer_protocol():

        class Later(torch.Tensor):
            pass

        for kind in (torch.Tensor, Sub, Later):
            one = tensor.as_subclass(kind)
            assert memoryview(one).tolist() == tensor.tolist()
            assert bytes(one) == tensor.numpy().tobytes()
        assert memoryview(torch.nn.Parameter(tensor, requires_grad=False)).shape == (2, 3)
        assert np.asarray(tensor).ctypes.data == tensor.data_ptr()
        assert np.frombuffer(tensor, np.float32).tolist() == tensor.view(-1).tolist()
        assert bytes(torch.tensor(3, dtype=torch.uint8)) == b"\x03"
        assert bytes(tensor.T) == tensor.T.contiguous().numpy().tobytes()
        (tmp_path / "file").write_bytes(tensor)
        with (tmp_path / "file").open("r+b") as file:
            file.readinto(tensor)
            file.write(tensor)
        assert (tmp_path / "file").read_bytes() == bytes(tensor) * 2
        left, right = socket.socketpair()
        with left, right:
            assert left.send(tensor) == 24
            received = torch.zeros(6)
            assert right.recv_into(received) == 24
        assert received.tolist() == tensor.view(-1).tolist()
        assert struct.unpack_from("f", tensor, 4) == (1.0,)
        with pytest.raises(BufferError, match="require grad"):
            memoryview(torch.ones(2, requires_grad=True))
        with pytest.raises(BufferError, match="bfloat16"):
            memoryview(torch.ones(2, dtype=torch.bfloat16))
        with pytest.raises(BufferError, match="meta"):
            memoryview(torch.ones(2, device="meta"))
        with pytest.raises(BufferError, match="unknown dtype and sizes"):
            memoryview(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))
        with pytest.raises(RuntimeError, match="requires grad"):
            np.asarray(torch.ones(2, requires_grad=True))
        outliving = memoryview(tensor)
        assert memoryview(outliving.obj).tolist() == tensor.tolist()
        assert exported(outliving.obj, _testbuffer.PyBUF_WRITABLE) is BufferError
        after = Later
    for one in (tensor, tensor.as_subclass(Sub), tensor.as_subclass(after)):
        with pytest.raises(TypeError, match="bytes-like"):
            memoryview(one)
    assert not hasattr(torch.Tensor, "__bytes__")
    assert outliving.tolist() == tensor.tolist()


def test_blocks_that_overlap():
    """Blocks of two generators or threads overlap. The end of one does not undo the other's setting."""
    first, second = interop.enable_buffer_protocol(), interop.enable_buffer_protocol()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert memoryview(torch.ones(2)).tolist() == [1, 1]
    second.__exit__(None, None, None)
    with pytest.raises(TypeError):
        memoryview(torch.ones(2))
    with interop.enable_buffer_protocol():
        with interop.disable_buffer_protocol(), pytest.raises(TypeError):
            memoryview(torch.ones(2))
        assert memoryview(torch.ones(2)).tolist() == [1, 1]
    interop.enable_buffer_protocol()
    with interop.disable_buffer_protocol():
        pass
    assert memoryview(torch.ones(2)).tolist() == [1, 1]
    interop.disable_buffer_protocol()
    with pytest.raises(TypeError):
        memoryview(torch.ones(2))


def is_enabled():
    try:
        memoryview(torch.ones(2))
    except TypeError:
        return False
    return True


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["enable", "disable", "enter", "exit", "drop"]), st.integers(0, 9))))
def test_any_order_of_settings_and_blocks(steps):
    """Against a list: a setting outside of blocks holds until its object is entered, and for good if it is dropped."""
    made, outside, blocks, forever = [], [], [], False
    for step, number in steps:
        if step in ("enable", "disable"):
            wanted = step == "enable"
            made.append((interop.enable_buffer_protocol() if wanted else interop.disable_buffer_protocol(), wanted))
            outside.append(made[-1])
            expected = wanted
        elif step == "exit" and blocks:
            block = blocks[number % len(blocks)]
            blocks.reverse()
            blocks.remove(block)  # the last one, if it was entered more than once
            blocks.reverse()
            block[0].__exit__(None, None, None)
            expected = blocks[-1][1] if blocks else outside[-1][1] if outside else forever
        elif step == "enter" and made:
            block = made[number % len(made)]
            outside = [one for one in outside if one is not block]
            blocks.append(block)
            block[0].__enter__()
            expected = block[1]
        elif step == "drop" and made:
            one = made.pop(number % len(made))
            if one in outside:
                place = outside.index(one)
                forever = one[1]
                del outside[: place + 1]
            one = None
            continue
        else:
            continue
        assert is_enabled() == expected
    for block, _ in reversed(blocks):
        block.__exit__(None, None, None)
    interop.disable_buffer_protocol()
    assert not is_enabled()


def test_enabling_and_disabling():
    tensor = torch.ones(2)

    def works():
        try:
            memoryview(tensor).release()
        except TypeError:
            return False
        return True

    assert not works()
    with interop.enable_buffer_protocol():
        with interop.enable_buffer_protocol():
            assert works()
        assert works()
        with interop.disable_buffer_protocol():
            assert not works()
        assert works()
    assert not works()
    interop.disable_buffer_protocol()
    interop.enable_buffer_protocol()
    assert works()
    interop.disable_buffer_protocol()
    assert not works()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python has __buffer__ from 3.12 on")
class TestBufferInPython:
    """PEP 688: the slots are methods, which Python classes can call and override."""

    @pytest.mark.parametrize("tensor", [torch.arange(6.0).view(2, 3), torch.arange(6.0).view(2, 3).T], ids=["C", "F"])
    def test_flags_give_what_they_give_of_an_array(self, tensor):
        array, refused = tensor.numpy(), 0
        with interop.enable_buffer_protocol():
            for flags in {*map(int, inspect.BufferFlags), *range(2048)}:
                results = []
                for exporter in (array, tensor):
                    try:
                        view = exporter.__buffer__(flags)
                    except (BufferError, ValueError):
                        results.append(None)
                    else:
                        # Without a shape, the memory is bytes, for which NumPy reports no dimensions.
                        shaped = flags & inspect.BufferFlags.ND and (view.format, view.shape, view.strides)
                        results.append((view.nbytes, view.readonly, shaped))
                        view.release()
                expected, got = results
                if got is None:
                    refused += 1
                else:
                    assert got == expected, flags
        assert 0 < refused < 2048

    def test_it_is_there_while_it_is_enabled(self):
        tensor = torch.arange(3)
        for _ in range(2):
            assert not isinstance(tensor, abc.Buffer)
            assert not hasattr(torch.Tensor, "__buffer__")
            with interop.enable_buffer_protocol():
                assert isinstance(tensor, abc.Buffer)
                assert isinstance(torch.nn.Parameter(torch.ones(2)), abc.Buffer)
                view = tensor.__buffer__(inspect.BufferFlags.FULL_RO)
            assert view.tolist() == [0, 1, 2]
            view[0] = 7
            assert tensor.tolist() == [7, 1, 2]
            view.release()
            tensor[0] = 0

    def test_a_subclass_with_a_buffer_of_its_own_keeps_it(self):
        class Own(torch.Tensor):
            def __buffer__(self, flags):
                return memoryview(b"own")

        tensor = torch.ones(2).as_subclass(Own)
        assert bytes(memoryview(tensor)) == b"own"
        with interop.enable_buffer_protocol():
            assert bytes(memoryview(tensor)) == b"own"
            assert np.frombuffer(tensor, np.uint8).tobytes() == b"own"
        assert bytes(memoryview(tensor)) == b"own"

    def test_a_subclass_can_ask_torchs(self):
        asked, released = [], []

        class Asking(torch.Tensor):
            def __buffer__(self, flags):
                asked.append(flags)
                return super().__buffer__(flags)

        class Released(Asking):
            def __release_buffer__(self, view):
                released.append(view.nbytes)

        for kind in (Asking, Released):
            tensor = torch.arange(3.0).as_subclass(kind)
            with interop.enable_buffer_protocol():
                view = memoryview(tensor)
            view[1] = 5
            assert view.tolist() == [0, 5, 2]
            with pytest.raises(AttributeError, match="__buffer__"):
                memoryview(tensor)
            before = weakref.ref(tensor)
            del tensor
            assert view.tolist() == [0, 5, 2]  # kept alive by Python's buffer wrapper
            view.release()
            gc.collect()
            assert before() is None
        assert asked == [inspect.BufferFlags.FULL_RO] * 4
        assert released == [12]

    def test_nothing_is_left_of_an_export(self):
        class Asking(torch.Tensor):
            def __buffer__(self, flags):
                return super().__buffer__(flags)

        tensor, asking = torch.ones(3), torch.ones(3).as_subclass(Asking)

        def export():
            memoryview(tensor).release()
            tensor.__buffer__(0).release()
            memoryview(asking).release()

        with interop.enable_buffer_protocol():
            for _ in range(10):
                export()
            blocks, counts = sys.getallocatedblocks(), [sys.getrefcount(one) for one in (tensor, asking, Asking)]
            for _ in range(1000):
                export()
            assert [sys.getrefcount(one) for one in (tensor, asking, Asking)] == counts
            assert sys.getallocatedblocks() - blocks < 100


@owns_to_the_end
def test_exports_at_the_end_of_the_interpreter(forked):
    code = """
import atexit, torch, interop
interop.enable_buffer_protocol()
tensor = torch.ones(100)
tensor.kept = memoryview(tensor)
held = interop.from_buffer(bytearray(100))
views = [interop.as_memoryview(held), memoryview(torch.ones(3))]
atexit.register(lambda: bytes(views[0]))
print("done")
"""
    assert forked(code) == "done\n"


class _Described:
    """A broken exporter: a memoryview that misreports some of its attributes."""

    def __init__(self, tensor, **lies):
        self.view = interop.as_memoryview(tensor)
        self.lies = lies

    def __getattr__(self, name):
        return self.lies[name](self.view) if name in self.lies else getattr(self.view, name)


def is_the_tensor(convert, tensor):
    """The attributes of the memoryview describe the tensor, and its bytes are the tensor's."""
    view = convert(tensor)
    assert view.format == memoryview(tensor.detach().numpy()).format
    assert (view.itemsize, view.ndim) == (tensor.element_size(), tensor.dim())
    assert view.shape == tuple(tensor.shape)
    assert view.strides == tuple(stride * tensor.element_size() for stride in tensor.stride())
    assert view.nbytes == tensor.numel() * tensor.element_size()
    assert view.readonly == (0 in tensor.stride())
    assert view.tobytes() == bytes_of(tensor)


def is_the_buffer(convert, exporter):
    """The tensor has the exporter's address, shape and bytes, and holds the export as long as it lives."""
    tensor = convert(exporter)
    view = memoryview(exporter)
    assert tuple(tensor.shape) == view.shape
    assert tensor.data_ptr() == np.asarray(view).ctypes.data
    assert bytes_of(tensor) == view.tobytes()
    view.release()
    if type(exporter) is bytearray:
        refuses(lambda owner: owner.append(1), exporter, BufferError, [])
        del tensor
        exporter.append(1)


def view_checks(convert):
    base = torch.arange(24, dtype=torch.int32)
    for tensor in (base, base[5], base.view(4, 6).T, base.view(2, 3, 4)[:, 1:, ::2], base[:3].expand(2, 3)):
        is_the_tensor(convert, tensor)
    is_the_tensor(convert, torch.arange(6).to(torch.uint16))


def buffer_checks(convert):
    for exporter in (memory(16), array.array("H", [1, 2, 3]), memoryview(memory(16))[::3], np.ones((2, 3), "f4").T):
        is_the_buffer(convert, exporter)
    refuses(convert, memoryview(memory(8))[::-1], ValueError, ["negative"])
    refuses(convert, np.ones(2, ">f4"), TypeError, ["byte order"])
    refuses(convert, b"abc", ValueError, ["read-only"])


BROKEN_VIEWS = {
    "0-d as 1-d": {"shape": lambda v: v.shape or (1,)},
    "format of bytes": {"format": lambda v: "B"},
    "signed for unsigned": {"format": lambda v: v.format.lower()},
    "itemsize 1": {"itemsize": lambda v: 1},
    "strides in elements": {"strides": lambda v: tuple(step // v.itemsize for step in v.strides)},
    "strides of a contiguous tensor": {"strides": lambda v: memoryview(np.zeros(v.shape, "i4")).strides},
    "shape reversed": {"shape": lambda v: v.shape[::-1]},
    "always writable": {"readonly": lambda v: False},
    "never writable": {"readonly": lambda v: True},
    "bytes of the storage": {"tobytes": lambda v: lambda: bytes(v.nbytes)},
    "length in elements": {"nbytes": lambda v: v.nbytes // v.itemsize},
    "swapped": {"format": lambda v: ">" + v.format},
}
BROKEN_BUFFERS = {
    "copies": lambda obj: interop.from_buffer(obj).clone(),
    "takes bytes": lambda obj: interop.from_buffer(obj, dtype=torch.uint8, shape=(-1,)),
    "drops the owner": lambda obj: (
        torch.frombuffer(obj, dtype=torch.uint8) if len(obj) == 16 else interop.from_buffer(obj)
    ),
    "read-only ignored": lambda obj: interop.from_buffer(obj, on_readonly="share"),
    "read-only copied": lambda obj: interop.from_buffer(obj, on_readonly="copy"),
    "byte order ignored": lambda obj: interop.from_buffer(
        obj, dtype=torch.float32 if isinstance(obj, np.ndarray) and not obj.dtype.isnative else None
    ),
    "negative strides copied": lambda obj: interop.from_buffer(
        bytearray(obj) if isinstance(obj, memoryview) and obj.strides[0] < 0 else obj
    ),
    "flattens": lambda obj: interop.from_buffer(obj).reshape(-1),
    "leaks": lambda obj: _leaked.append(interop.from_buffer(obj)) or _leaked[-1],
}
_leaked = []


def test_ours_pass_the_checks_of_buffers():
    view_checks(interop.as_memoryview)
    buffer_checks(interop.from_buffer)


@pytest.mark.parametrize("name", BROKEN_VIEWS)
def test_the_checks_catch_a_broken_exporter(name):
    with pytest.raises(AssertionError):
        view_checks(lambda tensor: _Described(tensor, **BROKEN_VIEWS[name]))


@pytest.mark.unchecked(by="leaks", reason="one of the broken converters leaks, on purpose")
@pytest.mark.parametrize("name", BROKEN_BUFFERS)
def test_the_checks_catch_a_broken_from_buffer(name):
    with pytest.raises((AssertionError, BufferError, ValueError)):
        buffer_checks(BROKEN_BUFFERS[name])


# From Cython.


def test_converters_in_cython(bridged):
    array = np.arange(4.0)
    assert bridged.numpy_and_back(array).tolist() == [0, 1, 4, 9]
    shared, copied = bridged.shared(np.broadcast_to(array, (2, 4)))
    assert (shared.data_ptr(), copied.is_contiguous()) == (array.ctypes.data, True)
    forced, read_only = bridged.forced(torch.ones(2, requires_grad=True))
    assert (forced.tolist(), read_only.flags.writeable) == ([1, 1], False)
    writable, read_only = bridged.viewed(torch.ones(2))
    assert (writable.readonly, read_only.readonly) == (False, True)
    whole, part = bridged.buffered(bytearray(b"abcdef"))
    assert (whole.tolist(), part.tolist()) == (list(b"abcdef"), [[98, 99], [100, 101]])
    with pytest.raises(ValueError, match="read-only"):
        bridged.buffered(b"abcdef")
    with pytest.raises(TypeError, match="argument 'array'"):
        bridged.numpy_and_back([1])


@pytest.mark.parametrize("name", sorted(set(PLAIN) - {"bool", "float16"}))
def test_typed_memoryviews(bridged, name):
    tensor = torch.arange(6).to(PLAIN[name]).view(2, 3)
    expected = (tensor.numpy() + 1).T
    with interop.enable_buffer_protocol():
        for one in (tensor.T, interop.as_memoryview(tensor.T), interop.TensorBuffer(tensor.T)):
            bridged.shift(one, 1)
            assert tensor.numpy().T.tolist() == expected.tolist()
            assert bridged.total(tensor[0]) == tensor[0].numpy().sum()
            expected = expected + 1
        version = tensor._version
        bridged.total(tensor[0])
        assert tensor._version == version
        bridged.shift(tensor, 0)
        assert tensor._version == version
        alias = tensor[:]  # shares the version counter, as autograd's saved tensors do
        bridged.shift(alias, 1)
        assert tensor._version == version + 1


def test_typed_memoryviews_refuse(bridged):
    with interop.enable_buffer_protocol():
        assert bridged.contiguous(torch.ones(2, 3)) == (2, 3)
        with pytest.raises(BufferError, match="contiguous"):
            bridged.contiguous(torch.ones(3, 2).T)
        with pytest.raises(ValueError, match="mismatch"):
            bridged.contiguous(torch.ones(2, 3, dtype=torch.float64))
        with pytest.raises(BufferError, match="require grad"):
            bridged.contiguous(torch.ones(2, 3, requires_grad=True))
        with pytest.raises(BufferError, match="read-only"):
            bridged.contiguous(torch.ones(3).expand(2, 3))


def test_a_typed_memoryview_that_is_kept(bridged):
    with interop.enable_buffer_protocol():
        tensor = torch.arange(3.0)
        keeper = bridged.Keeper(tensor)
    tensor.set_(torch.zeros(5))
    del tensor
    gc.collect()
    assert keeper.read() == [0, 1, 2]


@pytest.mark.parametrize("make", [uncountable, lambda: torch.ones(()).expand(2**31, 2**30)])
def test_elements_whose_bytes_cannot_be_counted(make):
    """A Py_buffer counts the bytes of elements that share memory, too. A wrong count would make wrong strides."""
    tensor = make()
    message = re.escape("must have at most 2**63 - 1 bytes in all elements, with sizes of 0 as 1, got torch.float")
    with pytest.raises(ValueError, match=message):
        interop.as_memoryview(tensor)
    with interop.enable_buffer_protocol(), pytest.raises(BufferError, match=message):
        memoryview(tensor)
    most = torch.ones((), dtype=torch.int8).expand(2**31, 2**31)
    assert interop.as_memoryview(most).nbytes == 2**62
    assert interop.as_memoryview(most)[2**31 - 1, 2**31 - 1] == 1
