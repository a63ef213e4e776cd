# cython: freethreading_compatible=True
"""The compiled converters, which `interop` exports under the same names."""
cimport cython
from cpython.object cimport PyObject_CallObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

import collections.abc
import inspect
import os
import sys
import threading

from torch import Tensor

cdef extern from "ATen/PythonTorchFunctionTLS.h" namespace "at::impl" nogil:
    bint torch_function_mode_enabled()

cdef extern from "bridges/python.h" namespace "interop::bridges::python":
    object _from_numpy "interop::bridges::python::from_numpy"(object array, object on_readonly)
    object _to_numpy "interop::bridges::python::to_numpy"(object tensor, bint force, bint readonly)
    object _from_buffer "interop::bridges::python::from_buffer"(
        object obj, object dtype, object shape, object offset, object on_readonly)
    object _as_memoryview "interop::bridges::python::as_memoryview"(object tensor, bint readonly)
    object _from_dlpack "interop::bridges::python::from_dlpack"(
        object obj, object device, object copy, object on_readonly)
    object _to_dlpack "interop::bridges::python::to_dlpack"(
        object tensor, object stream, object max_version, object dl_device, object copy, bint readonly)
    object _from_cuda_array_interface "interop::bridges::python::from_cuda_array_interface"(
        object obj, object on_readonly)
    object _to_cuda_array_interface "interop::bridges::python::to_cuda_array_interface"(object tensor, bint readonly)
    object with_fast_path(object function, str name, str module, bytes text)
    object tensor_buffer_type()
    int _set_protocol "interop::bridges::python::set_protocol"(int wanted) except -1
    int _protocol "interop::bridges::python::protocol"() noexcept nogil
    bint is_new_array(object obj) noexcept
    bint is_array_of(object array, object given) noexcept
    int take_buffer(object exporter, Py_buffer* view) except -1
    void drop_buffer(Py_buffer* view) noexcept
    object make_capsule()


# Other modules find the converters through this capsule. interop/bridges.h defines its name.
_bridges_3 = make_capsule()

TensorBuffer = tensor_buffer_type()


@cython.final
@cython.auto_pickle(False)
@cython.no_gc_clear  # Cython would clear the reference in `buffer`, and release nothing
cdef class Taken:
    """Owns a buffer of an object, and exports the same memory, read-only or not, as the object does.

    CPython's own exporters count their exports without a lock. Threads take turns here and in `from_buffer`, where
    ``memoryview(exporter)`` would not wait.
    """
    cdef Py_buffer buffer

    def __cinit__(self, exporter):
        take_buffer(exporter, &self.buffer)

    def __getbuffer__(self, Py_buffer* view, int flags):
        view.buf, view.len, view.itemsize = self.buffer.buf, self.buffer.len, self.buffer.itemsize
        view.readonly, view.format, view.ndim = self.buffer.readonly, self.buffer.format, self.buffer.ndim
        view.shape, view.strides, view.suboffsets = self.buffer.shape, self.buffer.strides, self.buffer.suboffsets
        view.internal = NULL
        view.obj = self  # Cython has set it before, so the struct must not be copied as a whole

    def __dealloc__(self):
        drop_buffer(&self.buffer)


# The process-wide setting: see interop.buffer_protocol. If torch.Tensor already agrees with it, a call only updates
# the records below. The update is atomic: with a GIL because it runs no Python code, without one because of a critical
# section. Changing torch.Tensor takes a lock, because Python code may run in between.
cdef object _books = object()
cdef object _changing = threading.RLock()
os.register_at_fork(before=_changing.acquire, after_in_parent=_changing.release, after_in_child=_changing.release)
cdef bint _is_changing = False
cdef list _blocks = []  # entered and not ended, the latest last
cdef int _outside = 0  # the setting made outside all blocks
cdef int _wanted_now = 0
cdef void* _last = NULL  # borrowed: the last Setting made outside all blocks, if it is still alive


@cython.final
@cython.auto_pickle(False)
cdef class Setting:
    """A change of the setting. In a `with` statement, it undoes the change at the end of the block.

    The blocks of two threads or generators may overlap. The last block that has not ended wins. After all blocks have
    ended, the setting made outside all blocks applies again.
    """
    cdef int wanted, before
    cdef void* earlier  # borrowed: the neighbours among those made outside all blocks
    cdef void* later

    def __cinit__(self, int wanted):
        global _last, _outside, _wanted_now
        self.wanted = wanted
        with cython.critical_section(_books):
            self.before, self.earlier, self.later = _outside, _last, NULL
            if _last != NULL:
                (<Setting>_last).later = <void*>self
            _last = <void*>self
            _outside = _wanted_now = wanted
        _change()

    def __dealloc__(self):
        with cython.critical_section(_books):
            self.unlink()

    cdef void unlink(self) noexcept:
        """Leave the list. The setting itself stays: undoing later ones goes back to it and no further."""
        global _last
        if self.later != NULL:
            (<Setting>self.later).earlier = NULL
        if self.earlier != NULL:
            (<Setting>self.earlier).later = NULL
        if _last == <void*>self:
            _last = NULL
        self.later = self.earlier = NULL

    cdef void take_back(self) noexcept:
        """Undo the change that __cinit__ made. Later changes stay in effect."""
        global _last, _outside
        if _last == <void*>self:
            _outside, _last = self.before, self.earlier
        elif self.later != NULL:
            (<Setting>self.later).before = self.before
            (<Setting>self.later).earlier = self.earlier
        else:
            return
        if self.earlier != NULL:
            (<Setting>self.earlier).later = self.later
        self.later = self.earlier = NULL

    def __enter__(self):
        global _wanted_now
        with cython.critical_section(_books):
            self.take_back()
            _blocks.append(self)
            _wanted_now = self.wanted
        _change()
        return self

    def __exit__(self, *error):
        global _wanted_now
        cdef Py_ssize_t i
        with cython.critical_section(_books):
            for i in range(len(_blocks) - 1, -1, -1):
                if _blocks[i] is self:
                    del _blocks[i]
                    break
            _wanted_now = (<Setting>_blocks[len(_blocks) - 1]).wanted if _blocks else _outside
        _change()


def _bytes(tensor):
    """The bytes of the elements, in C order. Without this, bytes() would take a tensor with one integer as a length."""
    return _as_memoryview(tensor, True).tobytes()


cdef int _change() except -1:
    """Apply the recorded setting to torch.Tensor."""
    global _is_changing
    cdef int before, wanted
    cdef bint done
    with cython.critical_section(_books):
        done = not _is_changing and _protocol() == _wanted_now
    if done:
        return 0
    with _changing:
        with cython.critical_section(_books):
            done = _is_changing
        if done:
            return 0  # called by a finaliser that ran in the loop below, which applies the newest setting
        while True:
            with cython.critical_section(_books):
                before, wanted = _protocol(), _wanted_now
                _is_changing = before != wanted
            if before == wanted:
                return 0
            try:
                _set_protocol(wanted)
                if wanted and not before:
                    Tensor.__bytes__ = _bytes
                elif before and not wanted and vars(Tensor).get("__bytes__") is _bytes:
                    del Tensor.__bytes__
                if sys.version_info >= (3, 12) and (not before) != (not wanted):
                    # isinstance(tensor, Buffer) caches its answer for each class.
                    collections.abc.Buffer._abc_caches_clear()
            finally:
                with cython.critical_section(_books):
                    _is_changing = False


cdef object _fast(function):
    """The function as CPython's own are made, with the same name, signature and docstring."""
    cdef str name = function.__name__
    text = f"{name}{inspect.signature(function)}\n--\n\n{function.__doc__}"
    return with_fast_path(function, name, __name__, text.encode())


cdef object _unusual = object()


cdef inline object _arrives(value, may_hold):
    """The value to pass to the function, or `_unusual` if the conversion needs the slow path."""
    cdef object kind = type(value)
    if kind is Tensor:
        try:
            return _to_numpy(value, False, False)
        except (TypeError, ValueError, RuntimeError):
            return _unusual
    if kind is int or kind is float or kind is bool or kind is str or value is None or not may_hold(value):
        return value
    return _unusual


@cython.final
@cython.auto_pickle(False)
cdef class Unfinished:
    """A call that `call_with_arrays` leaves to `interop.arrays`: what the function was called with, and its result.

    `given` is None if the arguments need the slow path, so that the function was not called.
    """
    cdef readonly tuple given
    cdef readonly dict named
    cdef readonly object result


def call_with_arrays(function, tuple args, dict kwargs, may_hold, frozenset scalars, bint apart):
    """The result of the function, called with arrays in place of tensors, or an `Unfinished`.

    Only tensors of the plain class become arrays here. `may_hold` says whether an argument that is neither a number nor
    a string may contain tensors. A result whose type is in `scalars` is returned as it is. With `apart`, the slow path
    gets a result that is an array among the arguments.
    """
    cdef Unfinished call = Unfinished.__new__(Unfinished)
    if torch_function_mode_enabled():
        return call
    cdef tuple given = PyTuple_New(len(args))
    cdef Py_ssize_t i, other
    for i in range(len(args)):
        value = args[i]
        for other in range(i):
            if args[other] is value:  # the same array for the same tensor
                value = given[other]
                break
        else:
            value = _arrives(value, may_hold)
        if value is _unusual:
            return call
        Py_INCREF(value)
        PyTuple_SET_ITEM(given, i, value)
    cdef dict named = _named(kwargs, may_hold, args, given) if kwargs else None
    if kwargs and named is None:
        return call
    result = function(*given, **named) if kwargs else PyObject_CallObject(function, given)
    if is_new_array(result) and not (apart and _is_among(result, given, named)):
        try:
            return _from_numpy(result, "raise")
        except (TypeError, ValueError):
            pass
    elif type(result) in scalars:
        return result
    call.given, call.named, call.result = given, named, result
    return call


cdef bint _is_among(array, tuple given, dict named):
    """Whether an array that owns its memory is one of the arguments, or one of them is in its memory."""
    for value in given:
        if is_array_of(array, value):
            return True
    if named:
        for value in named.values():
            if is_array_of(array, value):
                return True
    return False


cdef dict _named(dict kwargs, may_hold, tuple args, tuple arrays):
    """The keyword arguments of the function, or None if they need the slow path."""
    cdef dict given = {}
    cdef list values = []
    cdef Py_ssize_t other
    for name, value in kwargs.items():
        values.append(value)
        for other in range(len(args)):
            if args[other] is value:
                given[name] = arrays[other]
                break
        else:
            for other in range(len(values) - 1):
                if values[other] is value and type(value) is Tensor:
                    return None  # rare, so left to the slow path
            value = _arrives(value, may_hold)
            if value is _unusual:
                return None
            given[name] = value
    return given


@_fast
def from_numpy(array, *, on_readonly="raise"):
    """A tensor over the memory of a NumPy array.

    Parameters
    ----------
    array : numpy.ndarray
        An array of up to 64 dimensions. Its strides are multiples of the item size and not negative; 0 is allowed. An
        axis of length 0 or 1 may have any stride. Its dtype is one that torch has: bool, int8 to int64, uint8 to
        uint64, float16, float32, float64, complex64, complex128, and bfloat16 and the float8 types of ml_dtypes.
    on_readonly : {"raise", "share", "copy"}
        What to do with a read-only array. torch has no read-only tensors. A write to such memory crashes, or changes
        memory that other code takes to be constant. "share" promises that nothing writes to the tensor; `to_numpy` and
        memoryviews of the tensor are read-only again.

    Returns
    -------
    torch.Tensor
        A tensor on the CPU with the sizes and strides of the array. It shares the array's memory, and its storage owns
        a reference to the array. The storage cannot be resized. With "copy", a read-only array gives a contiguous
        tensor with memory of its own.

    Raises
    ------
    TypeError
        If `array` is not an array, or torch has no such dtype.
    ValueError
        If the array is read-only; has masked elements, because a tensor would show the values behind the mask; has
        negative strides, or strides that are not multiples of its item size; is not aligned; or has non-native byte
        order. The message says how to copy the array: a masked array with ``array.filled(value)``.
    """
    return _from_numpy(array, on_readonly)


@_fast
def to_numpy(tensor, *, bint force=False, bint readonly=False):
    """A NumPy array over the memory of a tensor.

    Autograd does not see writes through the array. If autograd may have saved the tensor for a gradient, call
    ``torch.autograd.graph.increment_version(tensor)`` after writing, or request a read-only array.

    Parameters
    ----------
    tensor : torch.Tensor
        A tensor on the CPU, of up to 64 dimensions and a dtype that NumPy has; bfloat16 and float8 come from ml_dtypes.
    force : bool
        Convert ``tensor.detach().cpu().resolve_conj().resolve_neg()``. The array may then have copied memory.
    readonly : bool
        Make the array read-only. The tensor may then require grad.

    Returns
    -------
    numpy.ndarray
        An array with the sizes and strides of the tensor. It shares the tensor's memory and owns a reference to the
        memory, not to the tensor. The storage can no longer be resized. The array is read-only if an axis
        has stride 0, as after ``expand()``, or if the memory comes from a read-only array.

    Raises
    ------
    TypeError
        If `tensor` is not a tensor, has no memory of its own on the CPU, is not strided, or has a dtype that NumPy
        lacks.
    ValueError
        If the tensor reaches beyond its storage.
    RuntimeError
        If the tensor's conjugation or negation is pending; or if the tensor requires grad (outside of
        ``torch.no_grad()``) and the array would be writable.
    """
    return _to_numpy(tensor, force, readonly)


def from_buffer(obj, *, dtype=None, shape=None, offset=0, on_readonly="raise"):
    """A tensor over the memory of an object that exports a buffer (PEP 3118).

    Examples are bytes, bytearray, array.array, mmap, memoryviews, and arrays of ctypes and NumPy.

    Parameters
    ----------
    obj
        The exporter. Its strides, dimensions and subarrays become those of the tensor.
    dtype : torch.dtype, optional
        The dtype of the elements, if it differs from the buffer's format. bfloat16 and float8, for which no format
        exists, are accepted. If the item size differs from the buffer's, the buffer must be contiguous, and the result
        has one dimension.
    shape : int or sequence of int, optional
        The shape. The buffer must be contiguous, and may be larger than the shape needs. One size may be -1, which
        takes the rest of the buffer.
    offset : int
        The first byte to use. The buffer must be contiguous.
    on_readonly : {"raise", "share", "copy"}
        What to do with a read-only buffer, as in `from_numpy`.

    Returns
    -------
    torch.Tensor
        A tensor on the CPU. It shares the memory, and holds the export until its storage is freed. Until then a
        bytearray cannot be resized and an mmap cannot be closed. The storage cannot be resized. With "copy", a
        read-only buffer gives a tensor with memory of its own.

    Raises
    ------
    TypeError
        If the object exports no buffer, or its elements have no dtype and none is given. Pointers always raise.
    ValueError
        If the buffer is read-only; belongs to a NumPy array with masked elements; has negative strides, or strides
        that are not multiples of its item size; is not aligned; has suboffsets; is inconsistent; or does not fit
        dtype, shape and offset.
    BufferError
        If the exporter raises it.
    """
    return _from_buffer(obj, dtype, shape, offset, on_readonly)


@_fast
def as_memoryview(tensor, *, bint readonly=False):
    """A memoryview of a tensor's memory, with the tensor's shape and strides.

    Parameters
    ----------
    tensor : torch.Tensor
        A tensor on the CPU, of up to 64 dimensions and a dtype that has a format: all but bfloat16, float8 and
        complex32.
    readonly : bool
        Make the view read-only. The tensor may then require grad. A writable view increments the tensor's version
        once, so that autograd treats the tensor as modified.

    Returns
    -------
    memoryview
        A view that shares the memory and owns it together with the tensor. It does not keep the tensor's Python object
        alive. If the tensor is resized, it gets new memory, and the view keeps the old memory. The view is read-only
        if an axis has stride 0, as after ``expand()``, or if the memory comes from a read-only object.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As `to_numpy` does.
    """
    return _as_memoryview(tensor, readonly)


@_fast
def from_dlpack(obj, *, device=None, copy=None, on_readonly="raise"):
    """A tensor over the memory of an object that supports DLPack.

    Parameters
    ----------
    obj
        A torch.Tensor; an object with the methods ``__dlpack__`` and ``__dlpack_device__``, such as arrays of NumPy,
        CuPy and JAX; an object whose type has the C functions of ``__dlpack_c_exchange_api__``; or a capsule of DLPack
        1 or 0, which can be consumed once. The memory is on the CPU or on CUDA, with up to 64 dimensions and no
        negative strides.
    device : torch.device or str, optional
        The tensor's device. If `obj` is on another device, its memory is copied.
    copy : bool, optional
        True: always copy. False: raise if a copy is necessary. None: copy if necessary.
    on_readonly : {"raise", "share", "copy"}
        What to do with read-only memory, as in `from_numpy`. Memory that is not marked read-only counts as writable; a
        capsule of DLPack 0 cannot mark it.

    Returns
    -------
    torch.Tensor
        A tensor with the sizes and strides of `obj`. Its storage owns the memory together with `obj`, and cannot be
        resized. On CUDA, the current stream waits for the work that produces `obj`. If `obj` is a torch.Tensor, the
        result shares its storage and its version, so that autograd sees a write to either. A copy is contiguous.

    Raises
    ------
    BufferError
        If torch cannot use the memory: unsupported device, dtype or version of DLPack, several lanes, negative
        strides, misaligned memory or impossible sizes. Also if `obj` is a tensor that requires grad, has a pending
        conjugation or negation, or is not strided.
    ValueError
        If `obj` is read-only, is a consumed capsule, or is a NumPy array with masked elements; or if `copy` is False
        and a copy is necessary.
    TypeError
        If `obj` does not support DLPack.
    """
    return _from_dlpack(obj, device, copy, on_readonly)


def to_dlpack(tensor, *, stream=None, max_version=None, dl_device=None, copy=None, bint readonly=False):
    """A DLPack capsule over the memory of a tensor: the result of ``__dlpack__``, with the same arguments.

    Autograd does not see what consumers write: see `to_numpy`.

    Parameters
    ----------
    tensor : torch.Tensor
        A strided tensor on the CPU or on CUDA, of any dtype but the quantized ones.
    stream : int, optional
        On CUDA, the consumer's stream, which then waits for the current stream. 1 is the legacy default stream, 2 the
        per-thread default stream, and any other number a cudaStream_t. None means 1. With -1 no stream waits. On the
        CPU, None or -1.
    max_version : tuple of int, optional
        The newest version of DLPack that the consumer supports. Below (1, 0), or without it, the capsule is of DLPack
        0, which has no flags.
    dl_device : tuple of int, optional
        The device of the memory, in the form of ``__dlpack_device__``. A tensor on another device is copied.
    copy : bool, optional
        True: always copy. False: raise if a copy is necessary.
    readonly : bool
        Mark the memory read-only, which needs DLPack 1. The tensor may then require grad.

    Returns
    -------
    capsule
        It owns the tensor's memory, not the tensor. The storage can no longer be resized. A capsule that is never
        consumed releases the memory itself. It is read-only if an axis has stride 0, as after ``expand()``, or if the
        memory comes from a read-only object.

    Raises
    ------
    BufferError
        If the tensor requires grad (outside of ``torch.no_grad()``), has a pending conjugation or negation, is not
        strided, is a wrapper without memory, reaches beyond its storage, or is on an unsupported device; or if it is
        read-only and the capsule would be of DLPack 0.
    ValueError
        If `stream` is not a valid stream, or `copy` is False and a copy is necessary.
    TypeError
        If `tensor` is not a tensor, or another argument has the wrong type.
    """
    return _to_dlpack(tensor, stream, max_version, dl_device, copy, readonly)


def from_cuda_array_interface(obj, *, on_readonly="raise"):
    """A tensor over the memory of an object that has the CUDA array interface (versions 0 to 3).

    Parameters
    ----------
    obj
        An object with the attribute ``__cuda_array_interface__``, such as arrays of CuPy and Numba.
    on_readonly : {"raise", "share", "copy"}
        What to do with read-only memory, as in `from_numpy`.

    Returns
    -------
    torch.Tensor
        A tensor on the device that CUDA reports for the memory. Its storage owns a reference to `obj`. The current
        stream waits for the stream that the interface names.

    Raises
    ------
    TypeError
        If `obj` has no such attribute, an entry of it has the wrong type, or torch has no such dtype.
    ValueError
        If the memory is read-only, masked, misaligned or in non-native byte order; if strides are negative or not
        multiples of the item size; if the version is newer than 3, the stream is 0, or CUDA does not know the memory.
    torch.AcceleratorError
        If torch finds no CUDA device.
    """
    return _from_cuda_array_interface(obj, on_readonly)


def to_cuda_array_interface(tensor, *, bint readonly=False):
    """An object with the attribute ``__cuda_array_interface__`` (version 3) over the memory of a tensor.

    torch.Tensor itself has that attribute in version 2. That version names no stream, so consumers do not wait for the
    stream that produces the tensor, and it marks expanded tensors as writable.

    Parameters
    ----------
    tensor : torch.Tensor
        A strided tensor on CUDA, of a dtype that NumPy has a name for. For bfloat16 and float8, use `to_dlpack`.
    readonly : bool
        Mark the memory read-only. The tensor may then require grad.

    Returns
    -------
    object
        It owns the tensor's memory, not the tensor. The storage can no longer be resized. The consumer waits for the
        work that was queued on the current stream before this call.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As `to_numpy` does; TypeError for a tensor that is not on CUDA.
    """
    return _to_cuda_array_interface(tensor, readonly)
