"""The converters that are compiled: see the names of the same functions in `interop`."""

cdef extern from "bridges/python.h" namespace "interop::bridges::python":
    object _from_numpy "interop::bridges::python::from_numpy"(object array, object readonly)
    object _to_numpy "interop::bridges::python::to_numpy"(object tensor, bint force, bint readonly)
    object make_capsule()


# Other modules find the converters here: see interop/bridges.h, which has the name.
_bridges_1 = make_capsule()


def from_numpy(array, *, readonly="raise"):
    """A tensor over the memory of a NumPy array.

    Parameters
    ----------
    array : numpy.ndarray
        Of any rank up to 64, with any strides that are not negative and are multiples of the item size; 0 as well. An
        axis of length 0 or 1 may have any stride. Of a dtype that torch has: bool, int8 to int64, uint8 to uint64,
        float16, float32, float64, complex64, complex128, and bfloat16 and the float8 types of ml_dtypes.
    readonly : {"raise", "share", "copy"}
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
        If it is read-only; has negative strides, or strides that are no multiples of its item size; is not aligned; or
        has the byte order of other machines. The message says how to copy it.
    """
    return _from_numpy(array, readonly)


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
        If its conjugation or negation is pending, or it reaches beyond its storage.
    RuntimeError
        If it requires grad (outside of ``torch.no_grad()``) and the array would be writable.
    """
    return _to_numpy(tensor, force, readonly)
