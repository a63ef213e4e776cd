# cython: freethreading_compatible=True
"""The converters that are compiled: see the names of the same functions in `interop`."""
cimport cython

import collections.abc
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
    object tensor_buffer_type()
    int _set_protocol "interop::bridges::python::set_protocol"(int wanted) except -1
    int _protocol "interop::bridges::python::protocol"() noexcept nogil
    object make_capsule()


# Other modules find the converters here: see interop/bridges.h, which has the name.
_bridges_3 = make_capsule()

TensorBuffer = tensor_buffer_type()


# The setting of the process, see interop.buffer_protocol. What is on already costs no more than keeping the books of
# it, which is one piece: with a GIL because no Python code runs in it, without one by a critical section. To change
# torch.Tensor takes a lock, since Python code may run meanwhile.
cdef object _books = object()
cdef object _changing = threading.RLock()
cdef bint _is_changing = False
cdef list _blocks = []  # that have not ended
cdef int _outside = 0  # what was set outside of all blocks
cdef int _wanted_now = 0
cdef void* _last = NULL  # that was set outside of all blocks, if it is still there


@cython.final
@cython.auto_pickle(False)
cdef class Setting:
    """What a change of the setting returns: used in `with`, it takes the change back at the end.

    Blocks may overlap, those of two threads or generators: of those that have not ended, the last one counts, and after
    the last of them what was set outside of all blocks.
    """
    cdef int wanted, before
    cdef void* earlier  # those that were set outside of all blocks, in this order
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
        """What comes later does not go back behind this one, which stays set."""
        global _last
        if self.later != NULL:
            (<Setting>self.later).earlier = NULL
        if self.earlier != NULL:
            (<Setting>self.earlier).later = NULL
        if _last == <void*>self:
            _last = NULL
        self.later = self.earlier = NULL

    cdef void take_back(self) noexcept:
        """What was set when this was made, and not meant to outlast the block; others may have been set after it."""
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
    """The bytes of the elements, in C order. Left to itself, bytes() takes a tensor with one integer for a length."""
    return _as_memoryview(tensor, True).tobytes()


cdef int _change() except -1:
    """torch.Tensor becomes as the books have it."""
    global _is_changing
    cdef int before, wanted
    cdef bint done
    with cython.critical_section(_books):
        done = not _is_changing and _protocol() == _wanted_now
    if done:
        return 0
    with _changing:
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
                    # isinstance(tensor, Buffer) goes by what it has once found of a class.
                    collections.abc.Buffer._abc_caches_clear()
            finally:
                _is_changing = False


cdef object _unusual = object()


cdef inline object _arrives(value, may_hold):
    """What a value arrives as, or `_unusual`."""
    cdef object kind = type(value)
    if kind is Tensor:
        try:
            return _to_numpy(value, False, False)
        except (TypeError, ValueError, RuntimeError):
            return _unusual
    if kind is int or kind is float or kind is bool or kind is str or value is None or not may_hold(value):
        return value
    return _unusual


def arrays_of(tuple args, may_hold):
    """For `interop.arrays`: arguments with arrays for tensors; None if that is not all there is to do.

    Only tensors of the plain class become arrays here. Of what is neither a number nor a string, `may_hold` says
    whether there may be tensors in it.
    """
    if torch_function_mode_enabled():
        return None
    cdef list given = []
    for value in args:
        value = _arrives(value, may_hold)
        if value is _unusual:
            return None
        given.append(value)
    return given


def named_arrays_of(dict kwargs, may_hold):
    """The same of keywords."""
    cdef dict given = {}
    for name, value in kwargs.items():
        value = _arrives(value, may_hold)
        if value is _unusual:
            return None
        given[name] = value
    return given


def from_numpy(array, *, on_readonly="raise"):
    """A tensor over the memory of a NumPy array.

    Parameters
    ----------
    array : numpy.ndarray
        Of any rank up to 64, with any strides that are not negative and are multiples of the item size; 0 as well. An
        axis of length 0 or 1 may have any stride. Of a dtype that torch has: bool, int8 to int64, uint8 to uint64,
        float16, float32, float64, complex64, complex128, and bfloat16 and the float8 types of ml_dtypes.
    on_readonly : {"raise", "share", "copy"}
        What becomes of an array that is read-only. torch has no read-only tensors, and a write to such memory is a
        crash, or a change of what others take for constant. "share" is a promise that nothing writes to the tensor;
        what is made of it by `to_numpy` or as a memoryview is read-only again.

    Returns
    -------
    torch.Tensor
        On the CPU, with the sizes and strides of the array. It shares the array's memory, and owns a reference to the
        array, until its storage dies. The storage cannot be resized. With "copy", and of a read-only array, it owns
        memory of its own and is contiguous.

    Raises
    ------
    TypeError
        If it is not an array, or torch has no such dtype.
    ValueError
        If it is read-only; has masked elements, of which a tensor would show what is behind the mask; has negative
        strides, or strides that are no multiples of its item size; is not aligned; or has the byte order of other
        machines. The message says how to copy it: of a masked array, with ``array.filled(value)``.
    """
    return _from_numpy(array, on_readonly)


def to_numpy(tensor, *, bint force=False, bint readonly=False):
    """A NumPy array over the memory of a tensor.

    Writes through the array are not seen by autograd. Where it may have saved the tensor for a gradient, call
    ``torch.autograd.graph.increment_version(tensor)`` after writing, or ask for a read-only array.

    Parameters
    ----------
    tensor : torch.Tensor
        On the CPU, of up to 64 dimensions, of a dtype that NumPy has; bfloat16 and float8 are those of ml_dtypes.
    force : bool
        Take ``tensor.detach().cpu().resolve_conj().resolve_neg()``, so that the array may have copied memory.
    readonly : bool
        Make the array read-only. Then the tensor may require grad.

    Returns
    -------
    numpy.ndarray
        With the sizes and strides of the tensor. It shares the tensor's memory and owns a reference to it, not to the
        tensor; the storage can no longer be resized. It is read-only where elements share memory, as those of
        ``expand()`` do, and where the memory is that of a read-only array.

    Raises
    ------
    TypeError
        If it is not a tensor; has no memory of its own on the CPU, or not as a strided tensor; or NumPy has no such
        dtype.
    ValueError
        If it reaches beyond its storage.
    RuntimeError
        If its conjugation or negation is pending; or if it requires grad (outside of ``torch.no_grad()``) and the array
        would be writable.
    """
    return _to_numpy(tensor, force, readonly)


def from_buffer(obj, *, dtype=None, shape=None, offset=0, on_readonly="raise"):
    """A tensor over the memory of an object that exports a buffer (PEP 3118).

    Such objects are bytes, bytearray, array.array, mmap, memoryviews, arrays of ctypes and of NumPy, and more.

    Parameters
    ----------
    obj
        The exporter. If it says that it is strided, of several dimensions, or of subarrays, so is the tensor.
    dtype : torch.dtype, optional
        What its bytes are, if not what its format says. Also bfloat16 and float8, for which there is no format. Where
        it has another item size than the buffer, the buffer must be contiguous, and becomes one dimension.
    shape : int or sequence of int, optional
        The shape, of the buffer's contiguous memory; it may be smaller than that. One size may be -1: what is left.
    offset : int
        Where to begin, in bytes; the buffer must be contiguous.
    on_readonly : {"raise", "share", "copy"}
        What becomes of a read-only buffer, as in `from_numpy`.

    Returns
    -------
    torch.Tensor
        On the CPU. It shares the memory and holds the export until its storage dies: meanwhile a bytearray cannot be
        resized, nor a mmap be closed. The storage cannot be resized. With "copy", and of a read-only buffer, it owns
        memory of its own.

    Raises
    ------
    TypeError
        If the object exports no buffer, or its elements have no dtype and none is given; and always for pointers.
    ValueError
        If the buffer is read-only; is that of a NumPy array with masked elements; has negative strides, or strides that
        are no multiples of its item size; is not aligned; leads through pointers; contradicts itself; or does not fit
        dtype, shape and offset.
    BufferError
        From the exporter.
    """
    return _from_buffer(obj, dtype, shape, offset, on_readonly)


def as_memoryview(tensor, *, bint readonly=False):
    """A memoryview of a tensor's memory, with the tensor's shape and strides.

    Parameters
    ----------
    tensor : torch.Tensor
        On the CPU, of up to 64 dimensions, of a dtype that has a format: all but bfloat16, float8 and complex32.
    readonly : bool
        Make it read-only. Then the tensor may require grad. Else the tensor's version is counted up, once, so that
        autograd takes it for changed.

    Returns
    -------
    memoryview
        It shares the memory and owns it together with the tensor; it does not keep the tensor's own object. A tensor
        that is resized gets other memory, and the view keeps this. It is read-only where elements share memory, as
        those of ``expand()`` do, and where the memory is that of a read-only object.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As `to_numpy` does.
    """
    return _as_memoryview(tensor, readonly)


def from_dlpack(obj, *, device=None, copy=None, on_readonly="raise"):
    """A tensor over the memory of an object that supports DLPack.

    Parameters
    ----------
    obj
        A torch.Tensor; an object with the methods ``__dlpack__`` and ``__dlpack_device__``, such as arrays of NumPy,
        CuPy and JAX; one whose type has the C functions of ``__dlpack_c_exchange_api__``; or a capsule of DLPack 1
        or 0, which can be used once. On the CPU or on CUDA, with up to 64 dimensions and without negative strides.
    device : torch.device or str, optional
        Where the tensor is to be. If `obj` is not there, its memory is copied.
    copy : bool, optional
        True: copy in any case. False: raise if it would have to be copied. None: copy if it has to be.
    on_readonly : {"raise", "share", "copy"}
        What becomes of read-only memory, as in `from_numpy`. What does not say that it is read-only is writable: a
        capsule of DLPack 0 cannot say it.

    Returns
    -------
    torch.Tensor
        With the sizes and strides of `obj`. It owns the memory with it, until the storage dies, and that cannot be
        resized. On CUDA, what the current stream does with it comes after what `obj` is made by. Of a torch.Tensor,
        it has the storage and the version, so that writes to one are seen by whoever saved the other. A copy is
        contiguous.

    Raises
    ------
    BufferError
        If torch cannot have its memory: another device, dtype or version of DLPack, several lanes, negative strides,
        misaligned memory, sizes that make no sense; or it is a tensor that requires grad, is conjugated or negated
        lazily, or is not strided.
    ValueError
        If it is read-only; if `copy` is False and it must be copied; if it is a capsule that was used; if it is a NumPy
        array with masked elements.
    TypeError
        If it does not support DLPack.
    """
    return _from_dlpack(obj, device, copy, on_readonly)


def to_dlpack(tensor, *, stream=None, max_version=None, dl_device=None, copy=None, bint readonly=False):
    """A capsule of DLPack over the memory of a tensor: what ``__dlpack__`` is to return, with the same arguments.

    Writes by those who take it are not seen by autograd: see `to_numpy`.

    Parameters
    ----------
    tensor : torch.Tensor
        On the CPU or on CUDA, strided, of any dtype but quantized ones.
    stream : int, optional
        On CUDA, where the consumer works: it waits for the current stream. 1 is the legacy default stream, 2 the
        per-thread default stream, any other number a cudaStream_t; None is 1, and with -1 nothing waits. On the CPU,
        None or -1.
    max_version : tuple of int, optional
        The newest version of DLPack that the consumer knows. Below (1, 0), and of None, the capsule is of DLPack 0,
        which has no flags.
    dl_device : tuple of int, optional
        Where the memory is to be, as ``__dlpack_device__`` says it; copied, if the tensor is not there.
    copy : bool, optional
        True: copy in any case. False: raise if it would have to be copied.
    readonly : bool
        Export it read-only. Then the tensor may require grad. Needs DLPack 1.

    Returns
    -------
    capsule
        It owns the tensor's memory, not the tensor; the storage can no longer be resized. If nobody takes it, it lets
        go of it itself. It is read-only where elements share memory, as those of ``expand()`` do, and where the memory
        is that of a read-only object.

    Raises
    ------
    BufferError
        If the tensor requires grad (outside of ``torch.no_grad()``), is conjugated or negated lazily, is not strided,
        is a wrapper without memory, reaches beyond its storage, or is on another device; and if it is read-only and
        the capsule would be of DLPack 0.
    ValueError
        If `stream` cannot be one, or `copy` is False and it must be copied.
    TypeError
        If it is not a tensor, or another argument is of a wrong type.
    """
    return _to_dlpack(tensor, stream, max_version, dl_device, copy, readonly)


def from_cuda_array_interface(obj, *, on_readonly="raise"):
    """A tensor over the memory of an object that has the CUDA array interface (versions 0 to 3).

    Parameters
    ----------
    obj
        An object with the attribute ``__cuda_array_interface__``, such as arrays of CuPy and Numba.
    on_readonly : {"raise", "share", "copy"}
        What becomes of read-only memory, as in `from_numpy`.

    Returns
    -------
    torch.Tensor
        On the device where CUDA says that the memory is. It owns a reference to `obj`, until its storage dies. The
        current stream waits for the one that the interface names.

    Raises
    ------
    TypeError
        If it has no such attribute, or an entry of it is of a wrong type; if torch has no such dtype.
    ValueError
        If it is read-only, masked, of a newer version, misaligned or of another byte order; if strides are negative
        or no multiples of the item size; if the stream is 0, or CUDA does not know the memory.
    torch.AcceleratorError
        If torch finds no CUDA device.
    """
    return _from_cuda_array_interface(obj, on_readonly)


def to_cuda_array_interface(tensor, *, bint readonly=False):
    """An object with the attribute ``__cuda_array_interface__`` (version 3) over the memory of a tensor.

    torch.Tensor has that attribute itself, of version 2: it names no stream, so nobody waits for the one on which the
    tensor is made, and says of expanded tensors that they can be written to.

    Parameters
    ----------
    tensor : torch.Tensor
        On CUDA, strided, of a dtype that NumPy has a name for: bfloat16 and float8 go by `to_dlpack`.
    readonly : bool
        Say that it is read-only. Then the tensor may require grad.

    Returns
    -------
    object
        It owns the tensor's memory, not the tensor; the storage can no longer be resized. Whoever takes it waits for
        what the current stream was given before this call.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As `to_numpy` does; TypeError for a tensor that is not on CUDA.
    """
    return _to_cuda_array_interface(tensor, readonly)
