"""DLPack's structs in ctypes, to make capsules with any content and to read the content of capsules."""

import ctypes

import numpy as np

CPU, CUDA, CUDA_HOST, METAL, ROCM, MANAGED = 1, 2, 3, 8, 10, 13
READ_ONLY, IS_COPIED, PADDED = 1, 2, 4
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("index", ctypes.c_int32))


class DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Legacy(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


_python = ctypes.pythonapi
_python.PyCapsule_GetName.restype = ctypes.c_char_p
_python.PyCapsule_GetName.argtypes = [ctypes.py_object]
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]

NAMES = {Legacy: b"dltensor", Versioned: b"dltensor_versioned"}
USED = {Legacy: b"used_dltensor", Versioned: b"used_dltensor_versioned"}
_kept = []


def forget():
    """Frees the structs and arrays of all capsules. No capsule, and no tensor over one, may be alive."""
    _kept.clear()


def call_on_a_thread(function, argument=None):
    """Calls a C function on a thread that Python does not know, and waits for the end of the thread.

    `threading.Thread.join()` returns before the destructors of the thread's keys have run.
    """
    c, thread = ctypes.CDLL(None), ctypes.c_ulong()
    assert c.pthread_create(ctypes.byref(thread), None, ctypes.cast(function, ctypes.c_void_p), argument) == 0
    assert c.pthread_join(thread, None) == 0


def name_of(capsule):
    return _python.PyCapsule_GetName(capsule).decode()


def inside(capsule):
    """The struct in an unused capsule; it keeps the capsule alive."""
    name = _python.PyCapsule_GetName(capsule)
    kind = {name: kind for kind, name in NAMES.items()}[name]
    found = kind.from_address(_python.PyCapsule_GetPointer(capsule, name))
    found.capsule = capsule
    return found


def take(capsule):
    """Marks a capsule as used and returns its struct. The caller must call the deleter."""
    managed = inside(capsule)
    _python.PyCapsule_SetName(capsule, USED[type(managed)])
    return managed


class Capsule:
    """A capsule over an array's memory that counts the calls of its deleter. `change` may edit the struct.

    The deleter frees nothing; only `forget` does.
    """

    def __init__(self, array, kind=Versioned, *, change=lambda managed: None, deleter=True, name=None):
        self.array = array
        self._calls = calls = []
        self.shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        self.strides = (ctypes.c_int64 * max(array.ndim, 1))(*(s // array.itemsize for s in array.strides))
        self.managed = managed = kind()
        if kind is Versioned:
            managed.major, managed.minor = 1, 0
            managed.flags = 0 if array.flags.writeable else READ_ONLY
        tensor = managed.tensor
        tensor.data = array.ctypes.data if array.size else None
        tensor.device = Device(CPU, 0)
        tensor.ndim = array.ndim
        tensor.dtype = DataType(CODES[array.dtype.kind], array.itemsize * 8, 1)
        tensor.shape = ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64))
        tensor.strides = ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64))

        if deleter:
            managed.deleter = DELETER(calls.append)
        change(managed)
        self.capsule = _python.PyCapsule_New(ctypes.addressof(managed), NAMES[kind] if name is None else name, None)
        managed.array = array
        _kept.append(managed)  # a consumer may still read it after this object is gone

    @property
    def deleted(self):
        """The number of calls of the deleter."""
        return len(self._calls)

    @property
    def name(self):
        return name_of(self.capsule)


class Producer:
    """An object with DLPack's methods that returns one capsule and records the arguments of each call."""

    def __init__(self, capsule, device=(CPU, 0), keywords=None):
        self.capsule, self.device, self.keywords, self.calls = capsule, device, keywords, []

    def __dlpack__(self, **given):
        self.calls.append(given)
        if self.keywords is not None and not set(given) <= set(self.keywords):
            raise TypeError(f"unexpected keywords: {given}")
        return self.capsule

    def __dlpack_device__(self):
        return self.device


def array_of(capsule):
    """An array over the memory of an unused capsule, made from the struct alone; it owns nothing."""
    tensor = inside(capsule).tensor
    sizes, strides = tensor.shape[: tensor.ndim], tensor.strides[: tensor.ndim]
    kind = {code: kind for kind, code in CODES.items()}[tensor.dtype.code]
    dtype = np.dtype(f"{kind}{tensor.dtype.bits * tensor.dtype.lanes // 8}")
    if 0 in sizes:
        return np.zeros(sizes, dtype)
    reach = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)) + 1
    memory = (ctypes.c_char * (reach * dtype.itemsize)).from_address(tensor.data + tensor.byte_offset)
    return np.ndarray(sizes, dtype, memory, strides=[stride * dtype.itemsize for stride in strides])
