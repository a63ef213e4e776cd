"""The buffer protocol on torch.Tensor itself, as a setting of the process.

The numbers of a `Setting` are those of `Protocol` in csrc/bridges/converters.h.
"""

from interop._bridges import Setting

__all__ = ["disable_buffer_protocol", "enable_buffer_protocol"]


def enable_buffer_protocol(*, count_writes: str = "found") -> Setting:
    """Let torch.Tensor and its subclasses export their memory: ``memoryview(tensor)``, and all that takes buffers.

    That is ``bytes(tensor)``, ``file.write(tensor)``, ``socket.send(tensor)``, ``numpy.asarray(tensor)``, and arguments
    of compiled Cython code that are typed memoryviews, ``float[:, ::1]``. It holds for the whole process, until
    `disable_buffer_protocol`; in ``with enable_buffer_protocol():`` until the end of the block.

    What can be exported is what `as_memoryview` takes, and the memory is owned in the same way. A tensor whose memory a
    memoryview or an array shares cannot be resized any more, as after ``tensor.numpy()``.

    A tensor that requires grad is refused, outside of ``torch.no_grad()``: gradients would be wrong, or missing. Only
    ``bytes(tensor)`` reads it. Refused as well are classes that override ``__array__``, ``__array_interface__``,
    ``__array_struct__``, ``numpy`` or ``__torch_function__``, and all while a TorchFunctionMode is active: NumPy then
    calls ``tensor.__array__()``, which they see.

    ``bytearray(tensor)`` of a tensor with one integer is as many zeros: Python takes it for a length, and does not ask
    for a buffer. Write ``bytearray(memoryview(tensor))``.

    Parameters
    ----------
    count_writes : {"found", "asked"}
        When the tensor's version is counted up, by which backward finds out that saved values have changed. "found":
        when an export ends, if the elements have changed since it began. Nothing that only reads is counted. A write is
        missed if backward runs before the export ends; if the tensor was saved after it began; if there is more than
        1 MiB of elements; and through ``numpy.ndarray(buffer=tensor)``, which ends it at once. The elements are read
        twice for that, if the tensor has views or was saved for backward, and never else. "asked": when an export
        begins that may be written to, whether or not anybody writes.

    Returns
    -------
    context manager
        It need not be used.

    Raises
    ------
    ValueError
        If `count_writes` is something else.
    BufferError
        Not from here, but from exports that cannot be: see `as_memoryview`.
    """
    if count_writes == "found":
        return Setting(1)
    if count_writes == "asked":
        return Setting(2)
    raise ValueError(f"argument 'count_writes' must be 'found' or 'asked', got {count_writes!r}")


def disable_buffer_protocol() -> Setting:
    """Take back `enable_buffer_protocol`; in ``with``, until the end of the block. Buffers that are out stay valid."""
    return Setting(0)
