"""The inputs of the converters and of torch's own: the cases of the table in docs/bridges.md and of its test.

To add a function, name it in ARRAY_COLUMNS, TENSOR_COLUMNS or BUFFER_COLUMNS, and run `python tools/bridge_table.py`.
"""

import array
import ctypes
import mmap
import tempfile

import ml_dtypes
import numpy as np
import torch
from bridge_checks import ARRAY_REFUSALS, PLAIN, TENSOR_REFUSALS, Owner, filled
from torch._subclasses import FakeTensorMode

import interop

DTYPES = "dtypes"
"""Cases whose names start with this share a row if they have the same outcomes."""


def fake():
    with FakeTensorMode():
        return torch.empty(3)


def inference():
    with torch.inference_mode():
        return torch.arange(3)


def memmap():
    mapped = np.memmap(tempfile.TemporaryFile(), np.float32, "w+", shape=(8,))  # noqa: SIM115 the map keeps it
    mapped[:] = range(8)
    return mapped


def anonymous_map():
    mapped = mmap.mmap(-1, 16)
    mapped.write(bytes(range(16)))
    return mapped


ARRAYS = {  # functions that make them
    **{f"{DTYPES}: {name}": lambda name=name: filled(name, 12).reshape(3, 4) for name in PLAIN},
    f"{DTYPES}: longlong": lambda: np.arange(6, dtype=np.longlong),
    f"{DTYPES}: ulonglong": lambda: np.arange(6, dtype=np.ulonglong),
    f"{DTYPES}: bfloat16": lambda: filled("uint16", 6).view(ml_dtypes.bfloat16),
    f"{DTYPES}: float8_e5m2": lambda: filled("uint8", 6).view(ml_dtypes.float8_e5m2),
    f"{DTYPES}: float8_e4m3fn": lambda: filled("uint8", 6).view(ml_dtypes.float8_e4m3fn),
    "no dimensions": lambda: filled("float32", 1).reshape(()),
    "no elements": lambda: np.zeros((3, 0, 2)),
    "64 dimensions": lambda: np.arange(2.0).reshape([1] * 63 + [2]),
    "Fortran order": lambda: np.asfortranarray(filled("float64", 12).reshape(3, 4)),
    "a part with steps": lambda: filled("int32", 24).reshape(4, 6)[1::2, ::3],
    "stride 0 on a longer axis": lambda: np.lib.stride_tricks.as_strided(filled("int16", 3), (2, 3), (0, 2)),
    "negative stride on an axis of length 1": lambda: np.arange(6.0)[2:1:-1],
    "a subclass": lambda: np.ones(3).view(Owner),
    "a memory-mapped file": memmap,
    **{name: make for name, (make, *_) in ARRAY_REFUSALS.items()},
}
TENSORS = {
    **{f"{DTYPES}: {name}": lambda name=name: torch.from_numpy(filled(name, 12)).view(3, 4) for name in PLAIN},
    f"{DTYPES}: bfloat16": lambda: torch.arange(6).to(torch.bfloat16),
    f"{DTYPES}: float8_e5m2": lambda: torch.arange(6.0).to(torch.float8_e5m2),
    f"{DTYPES}: float8_e4m3fn": lambda: torch.arange(6.0).to(torch.float8_e4m3fn),
    "no dimensions": lambda: torch.tensor(3.0),
    "no elements": lambda: torch.zeros(3, 0, 2),
    "64 dimensions": lambda: torch.arange(2.0).view([1] * 63 + [2]),
    "65 dimensions": lambda: torch.arange(2.0).view([1] * 64 + [2]),
    "transposed": lambda: torch.arange(12).view(3, 4).T,
    "a part with an offset and steps": lambda: torch.arange(24).view(4, 6)[1::2, ::3],
    "expanded": lambda: torch.arange(3).expand(2, 3),
    "over a read-only array": lambda: interop.from_numpy(np.broadcast_to(np.arange(3), 3), on_readonly="share"),
    "memory that is copied on write": lambda: torch.arange(3)._lazy_clone(),
    "made in inference mode": inference,
    "a subclass": lambda: torch.nn.Parameter(torch.ones(3), requires_grad=False),
    "fake": fake,
    "of zeros that are not in memory": lambda: torch._efficientzerotensor(3),
    **{name: make for name, (make, *_) in TENSOR_REFUSALS.items() if name != "None"},
}
BUFFERS = {  # each with the dtype for torch.frombuffer
    "bytearray": (lambda: bytearray(range(16)), torch.uint8),
    "array.array": (lambda: array.array("d", [1, 2, 3]), torch.float64),
    "ctypes, 2-d": (lambda: (ctypes.c_int * 3 * 2)((1, 2, 3), (4, 5, 6)), torch.int32),
    "mmap": (anonymous_map, torch.uint8),
    "array, 2-d": (lambda: filled("float32", 12).reshape(3, 4), torch.float32),
    "array, transposed": (lambda: filled("float32", 12).reshape(3, 4).T, torch.float32),
    "memoryview with steps": (lambda: memoryview(bytearray(range(16)))[::3], torch.uint8),
    "no dimensions": (lambda: ctypes.c_double(2.5), torch.float64),
    "no elements": (bytearray, torch.uint8),
    "read-only": (lambda: bytes(range(16)), torch.uint8),
    "negative strides": (lambda: memoryview(bytearray(range(16)))[::-1], torch.uint8),
    "byte-swapped": (lambda: np.ones(3, ">f4"), torch.float32),
    "structs": (lambda: np.zeros(3, "f4,i4"), torch.float32),
    "objects": (lambda: np.array([None, 1]), torch.int64),
    "misaligned": (lambda: memoryview(bytearray(range(17)))[1:].cast("B"), torch.int64),
    "a list": (lambda: [1], torch.uint8),
}
WITH_DTYPE = {"misaligned"}
"""The buffers for which `interop.from_buffer` also gets the dtype."""

ARRAY_COLUMNS = {
    "`interop.from_numpy`": interop.from_numpy,
    "`interop.from_buffer`": interop.from_buffer,
    "`torch.from_numpy`": torch.from_numpy,
}
TENSOR_COLUMNS = {
    "`interop.to_numpy`": interop.to_numpy,
    "`interop.as_memoryview`": interop.as_memoryview,
    "`torch.Tensor.numpy`": torch.Tensor.numpy,
}
BUFFER_COLUMNS = {
    "`interop.from_buffer`": lambda name, obj, dtype: (
        interop.from_buffer(obj, dtype=dtype) if name in WITH_DTYPE else interop.from_buffer(obj)
    ),
    "`torch.frombuffer`": lambda name, obj, dtype: torch.frombuffer(obj, dtype=dtype),
}
if hasattr(interop, "from_dlpack"):
    ARRAY_COLUMNS |= {"`interop.from_dlpack`": interop.from_dlpack, "`torch.from_dlpack`": torch.from_dlpack}
    TENSOR_COLUMNS |= {
        "`interop.to_dlpack`, and back": lambda tensor: interop.from_dlpack(interop.to_dlpack(tensor)),
        "`torch.utils.dlpack.to_dlpack`, and back": lambda tensor: torch.from_dlpack(
            torch.utils.dlpack.to_dlpack(tensor)
        ),
    }
