"""Checks of from_dlpack and to_dlpack, each of which takes the converter. See bridge_checks.py."""

import ctypes
import gc
import sys
import weakref

import bridge_checks as checks
import dlpack_structs as structs
import numpy as np
import torch
from dlpack_structs import Capsule, Legacy, Producer, Versioned

import interop

DTYPES = {  # DLPack's type code, bits, lanes
    **{getattr(torch, f"int{8 * n}"): (0, 8 * n, 1) for n in (1, 2, 4, 8)},
    **{getattr(torch, f"uint{8 * n}"): (1, 8 * n, 1) for n in (1, 2, 4, 8)},
    **{getattr(torch, f"float{8 * n}"): (2, 8 * n, 1) for n in (2, 4, 8)},
    **{getattr(torch, f"complex{8 * n}"): (5, 8 * n, 1) for n in (4, 8, 16)},
    torch.bfloat16: (4, 16, 1),
    torch.bool: (6, 8, 1),
    torch.float8_e4m3fn: (10, 8, 1),
    torch.float8_e4m3fnuz: (11, 8, 1),
    torch.float8_e5m2: (12, 8, 1),
    torch.float8_e5m2fnuz: (13, 8, 1),
    torch.float8_e8m0fnu: (14, 8, 1),
    torch.float4_e2m1fn_x2: (17, 4, 2),
}

# from_dlpack


def takes_a_capsule(convert, array, kind=Versioned):
    """The tensor matches the capsule, shares its memory, and calls the deleter exactly once, when it dies."""
    given = Capsule(array, kind)
    tensor = convert(given.capsule)
    assert given.name == f"used_{structs.NAMES[kind].decode()}"
    assert tensor.dtype == checks.PLAIN[array.dtype.name]
    assert tuple(tensor.shape) == array.shape
    assert checks.bytes_of(tensor) == array.tobytes()
    if array.size:
        assert tensor.data_ptr() == array.ctypes.data
    checks.refuses(convert, given.capsule, ValueError, ["unused capsule"])
    view = tensor.detach()
    del tensor
    assert given.deleted == 0
    del view
    assert given.deleted == 1
    del given.capsule
    assert given.deleted == 1


def understands(convert, change, expected):
    """A capsule changed in a permitted way converts to a tensor of the expected values."""
    given = Capsule(np.arange(6.0).reshape(2, 3), change=change)
    assert convert(given.capsule).tolist() == expected
    assert given.deleted == 1


def later(managed):
    """Data 8 bytes earlier, and a byte offset of 8."""
    managed.tensor.data -= 8
    managed.tensor.byte_offset = 8


def with_offset(managed):
    """Starts at the second row."""
    managed.tensor.byte_offset = 24
    managed.tensor.shape[0] = 1


def without_strides(managed):
    managed.tensor.strides = None


def transposed(managed):
    for axis, (size, stride) in enumerate([(3, 1), (2, 3)]):
        managed.tensor.shape[axis], managed.tensor.strides[axis] = size, stride


def newer_minor(managed):
    managed.minor, managed.flags = 99, 1 << 40


def negative_on_one(managed):
    managed.tensor.shape[0], managed.tensor.strides[0] = 1, -3


def pinned(managed):
    managed.tensor.device.type = structs.CUDA_HOST


UNDERSTOOD = {
    "an offset that leads to the beginning": (later, [[0.0, 1, 2], [3, 4, 5]]),
    "an offset": (with_offset, [[3.0, 4, 5]]),
    "no strides": (without_strides, [[0.0, 1, 2], [3, 4, 5]]),
    "transposed": (transposed, [[0.0, 3], [1, 4], [2, 5]]),
    "a newer minor version, an unknown flag": (newer_minor, [[0.0, 1, 2], [3, 4, 5]]),
    "a negative stride on an axis of length 1": (negative_on_one, [[0.0, 1, 2]]),
    "pinned memory": (pinned, [[0.0, 1, 2], [3, 4, 5]]),
}


def setting(**fields):
    """A change to a capsule's tensor: fields, and `shape0`, `strides0`, `type`, `index`, `code`, `bits`, `lanes`."""

    def change(managed):
        for name, value in fields.items():
            tensor = managed.tensor
            if name in ("shape0", "strides0"):
                getattr(tensor, name[:-1])[0] = value
            else:
                owner = {"type": tensor.device, "index": tensor.device}.get(
                    name, tensor.dtype if name in ("code", "bits", "lanes") else tensor
                )
                setattr(owner, name, value)

    return change


def flagged(flags):
    return lambda managed: setattr(managed, "flags", flags)


def of_version(major):
    return lambda managed: setattr(managed, "major", major)


def misaligned(managed):
    managed.tensor.data += 4


HOSTILE = {  # the change to a capsule of (2, 3) float64, the error, words of its message
    "ndim -1": (setting(ndim=-1), BufferError, ["0 to 64 dimensions", "-1"]),
    "ndim 65": (setting(ndim=65), BufferError, ["0 to 64 dimensions", "65"]),
    "ndim 2**31-1": (setting(ndim=2**31 - 1), BufferError, ["0 to 64 dimensions"]),
    "null shape": (setting(shape=None), BufferError, ["shape"]),
    "null data": (setting(data=None), BufferError, ["null pointer"]),
    "null data with an offset": (setting(data=None, byte_offset=8), BufferError, ["byte offset"]),
    "a huge offset": (setting(byte_offset=2**64 - 8), BufferError, ["byte offset"]),
    "a negative size": (setting(shape0=-2), BufferError, ["sizes >= 0", "-2", "axis 0"]),
    "a huge size": (setting(shape0=2**62), BufferError, ["address space"]),
    "sizes whose product is 2**64": (
        lambda managed: [setting(shape0=2**31, strides0=0)(managed), managed.tensor.shape.__setitem__(1, 2**33)],
        BufferError,
        ["address space"],
    ),
    "sizes that overflow": (setting(shape0=2**63 - 1, strides=None), BufferError, ["address space"]),
    "strides that overflow": (setting(strides0=2**61), BufferError, ["address space"]),
    "a negative stride": (setting(strides0=-3), BufferError, ["negative strides", "axis 0"]),
    "a very negative stride": (setting(strides0=-(2**63)), BufferError, ["negative strides"]),
    "lanes 2": (setting(lanes=2), BufferError, ["2 lanes"]),
    "lanes 0": (setting(lanes=0), BufferError, ["0 lanes"]),
    "lanes 2 of half the bits": (setting(bits=32, lanes=2), BufferError, ["2 lanes"]),
    "128 bits": (setting(bits=128), BufferError, ["128 bits"]),
    "4 bits": (setting(code=0, bits=4), BufferError, ["4 bits"]),
    "0 bits": (setting(bits=0), BufferError, ["0 bits"]),
    "an opaque type": (setting(code=3), BufferError, ["type code 3"]),
    "an unknown type": (setting(code=200), BufferError, ["type code 200"]),
    "Metal": (setting(type=structs.METAL), BufferError, ["Metal", "CPU"]),
    "ROCm": (setting(type=structs.ROCM), BufferError, ["ROCm", "CPU"]),
    "an unknown device": (setting(type=99), BufferError, ["99"]),
    "a negative device": (setting(type=-1), BufferError, ["-1"]),
    "misaligned": (misaligned, BufferError, ["aligned to 8"]),
    "an odd offset": (setting(byte_offset=3), BufferError, ["aligned to 8"]),
    "padded elements": (flagged(structs.PADDED), BufferError, ["packed"]),
    "version 2": (of_version(2), BufferError, ["version 2.0", "max_version"]),
    "version 0": (of_version(0), BufferError, ["version 0.0"]),
    "read-only": (flagged(structs.READ_ONLY), ValueError, ["read-only", "on_readonly='copy'"]),
}
WITHOUT_CUDA = {
    "CUDA": (setting(type=structs.CUDA), BufferError, ["CUDA device 0", "finds no CUDA device", "device='cpu'"]),
    "managed memory": (setting(type=structs.MANAGED, index=1), BufferError, ["CUDA device 1"]),
}


def refuses_a_capsule(convert, change, kind, words):
    """Raises, and leaves the capsule unused for other consumers, with its deleter not called."""
    given = Capsule(np.arange(6.0).reshape(2, 3), change=change)
    checks.refuses(convert, given.capsule, kind, words)
    assert given.name == "dltensor_versioned"
    assert given.deleted == 0


def heeds_copy(convert):
    """copy=True copies and releases the original; copy=False raises if the exporter made a copy."""
    given = Capsule(np.arange(3.0))
    copied = convert(given.capsule, copy=True)
    assert given.deleted == 1
    assert copied.data_ptr() != given.array.ctypes.data
    assert copied.tolist() == [0, 1, 2]
    tensor = torch.ones(2)
    assert convert(tensor, copy=True).data_ptr() != tensor.data_ptr()
    assert convert(tensor, copy=False).data_ptr() == tensor.data_ptr()
    made = Capsule(np.arange(3.0), change=flagged(structs.IS_COPIED))
    checks.refuses(lambda capsule: convert(capsule, copy=False), made.capsule, ValueError, ["'copy' is False"])
    assert convert(made.capsule, copy=True).data_ptr() == made.array.ctypes.data
    asked = Producer(Capsule(np.ones(1)).capsule)
    convert(asked, copy=False)
    assert asked.calls[0]["copy"] is False


def heeds_readonly(convert):
    given = Capsule(np.broadcast_to(np.arange(3.0), (2, 3)))
    shared = convert(given.capsule, on_readonly="share")
    assert shared.data_ptr() == given.array.ctypes.data
    assert (given.deleted, shared.stride()) == (0, (0, 1))
    given = Capsule(np.broadcast_to(np.arange(3.0), (2, 3)))
    copied = convert(given.capsule, on_readonly="copy")
    assert (given.deleted, copied.stride(), copied.tolist()) == (1, (3, 1), given.array.tolist())


def shares_a_tensor(convert, tensor):
    """A tensor converts to another tensor that shares its storage and its version counter."""
    other = convert(tensor)
    assert type(other) is torch.Tensor
    assert other is not tensor
    assert (other.dtype, other.shape, other.stride()) == (tensor.dtype, tensor.shape, tensor.stride())
    assert other.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr()
    assert other.storage_offset() == tensor.storage_offset()
    version = tensor._version
    other.zero_()
    assert not any(checks.bytes_of(tensor))
    assert tensor._version == version + 1


TENSOR_REFUSALS = {
    name: (make, BufferError, words)
    for name, (make, kind, words) in checks.TENSOR_REFUSALS.items()
    if name not in ("a list", "None", "complex32") and "uncountable" not in name
}

# to_dlpack


def exports(convert, tensor):
    """The capsule describes the tensor correctly and shares its memory."""
    before, overlaps = checks.bytes_of(tensor), 0 in checks.steps(tensor.shape, tensor.stride())
    capsule = convert(tensor, max_version=(1, 0))
    managed = structs.inside(capsule)
    assert isinstance(managed, Versioned)
    assert (managed.major, managed.flags) == (1, structs.READ_ONLY if overlaps else 0)
    described = managed.tensor
    assert described.ndim == tensor.ndim
    assert (described.device.type, described.device.index) == (structs.CPU, 0)
    assert (described.dtype.code, described.dtype.bits, described.dtype.lanes) == DTYPES[tensor.dtype]
    assert tensor.ndim == 0 or (described.shape and described.strides)
    assert tuple(described.shape[: tensor.ndim]) == tuple(tensor.shape)
    assert tuple(described.strides[: tensor.ndim]) == tensor.stride()
    if tensor.numel():
        assert described.data + described.byte_offset == tensor.data_ptr()
    else:
        assert described.data is None
    array = structs.array_of(capsule)
    assert array.tobytes() == before
    if tensor.numel() and not overlaps:
        array.view(f"V{array.itemsize}")[...] = bytes(array.itemsize)
        assert not any(checks.bytes_of(tensor))
    if overlaps:
        checks.refuses(convert, tensor, BufferError, ["max_version=(1, 0)"])
    else:
        assert isinstance(structs.inside(convert(tensor)), Legacy)
        assert structs.name_of(convert(tensor, max_version=(0, 8))) == "dltensor"


def capsule_owns_the_memory(convert, used):
    """The memory lives exactly as long as the capsule, or the tensor made from it, without the exported tensor."""
    owner = checks.filled("int64", 8).view(checks.Owner)
    follow, expected = weakref.ref(owner), owner.tolist()
    capsule = convert(torch.from_numpy(owner), max_version=(1, 0))
    del owner
    gc.collect()
    taken = torch.utils.dlpack.from_dlpack(capsule) if used else None
    array = taken.numpy() if used else structs.array_of(capsule)
    assert array.tolist() == expected
    assert follow() is not None
    if used:
        del capsule
        assert follow() is not None
    del array, taken
    capsule = None
    assert follow() is None
    # The tensor's Python object need not stay alive.
    tensor = torch.arange(8)
    follow = weakref.ref(tensor)
    capsule = convert(tensor)
    del tensor
    assert follow() is None
    assert structs.array_of(capsule).tolist() == list(range(8))


def stays_under_a_capsule(convert):
    """Exported memory is not resized, and survives share_memory_() and set_() of the tensor."""
    for change in (
        lambda t: t.untyped_storage().resize_(0),
        lambda t: t.resize_(100_000),
        lambda t: t.share_memory_(),
        lambda t: t.set_(torch.zeros(64, dtype=torch.int64)),
    ):
        tensor = torch.arange(64)
        capsule = convert(tensor)
        try:
            change(tensor)
        except RuntimeError:
            refused = True
        else:
            refused = False
        churn = [torch.full((64,), -1) for _ in range(64)]
        assert structs.array_of(capsule).tolist() == list(range(64)), churn
        assert refused or tensor.data_ptr() != structs.inside(capsule).tensor.data


def heeds_what_is_asked(convert):
    """Honours copy, dl_device, readonly and stream on the CPU."""
    tensor = torch.arange(4)
    for given in ({"copy": True}, {"copy": True, "dl_device": (1, 0)}):
        managed = structs.inside(convert(tensor, max_version=(1, 0), **given))
        assert managed.flags == structs.IS_COPIED
        assert managed.tensor.data != tensor.data_ptr()
        assert structs.inside(convert(tensor, **given)).tensor.data != tensor.data_ptr()
    for given in ({"copy": False}, {"dl_device": (1, 0)}, {"stream": -1}, {"stream": None}):
        assert structs.inside(convert(tensor, **given)).tensor.data == tensor.data_ptr()
    grad = torch.ones(2, requires_grad=True)
    managed = structs.inside(convert(grad, max_version=(1, 0), readonly=True))
    assert (managed.flags, managed.tensor.data) == (structs.READ_ONLY, grad.data_ptr())
    checks.refuses(lambda t: convert(t, stream=1), tensor, ValueError, ["'stream'", "None or -1"])
    checks.refuses(lambda t: convert(t, copy=True, max_version=(1, 0)), grad, BufferError, ["grad"])


def counts_references(convert):
    """Capsules release their references, consumed or not."""
    owner = np.zeros(3).view(checks.Owner)
    tensor = interop.from_numpy(owner)
    before = sys.getrefcount(owner)
    kept = [convert(tensor, max_version=(1, 0)), convert(tensor)]
    assert sys.getrefcount(owner) == before + 2
    kept.clear()
    assert sys.getrefcount(owner) == before
    managed = structs.inside(convert(tensor))
    structs._python.PyCapsule_SetName(managed.capsule, used := ctypes.c_char_p(b"used_dltensor"))
    del managed.capsule
    assert sys.getrefcount(owner) == before + 1, used
    managed.deleter(ctypes.addressof(managed))
    assert sys.getrefcount(owner) == before
