"""The buffer protocol on torch.Tensor itself, as a process-wide setting.

The numbers of a `Setting` are those of `Protocol` in csrc/bridges/converters.h.
"""

from interop._bridges import Setting

__all__ = ["disable_buffer_protocol", "enable_buffer_protocol"]


def enable_buffer_protocol(*, count_writes: str = "found") -> Setting:
    """Let torch.Tensor and its subclasses export their memory to every consumer of buffers.

    Consumers are ``memoryview(tensor)``, ``bytes(tensor)``, ``file.write(tensor)``, ``socket.send(tensor)``,
    ``numpy.asarray(tensor)``, and typed memoryviews, such as ``float[:, ::1]``, among the arguments of compiled Cython
    code. The setting holds for the whole process, until `disable_buffer_protocol`; in
    ``with enable_buffer_protocol():`` it holds until the end of the block.

    The setting exports the tensors that `as_memoryview` takes, with the same ownership. A tensor whose memory a
    memoryview or an array shares can no longer be resized, as after ``tensor.numpy()``.

    A tensor that requires grad raises outside of ``torch.no_grad()``, because gradients would be wrong or missing. Only
    ``bytes(tensor)`` can read it. A class that overrides ``__array__``, ``__array_interface__``, ``__array_struct__``,
    ``numpy``, ``__torch_function__`` or ``__getattribute__`` raises too, and so does every tensor while a
    TorchFunctionMode is active, or for ``memoryview(tensor)`` and NumPy a TorchDispatchMode. NumPy then calls
    ``tensor.__array__()``, which the class or mode intercepts. A function assigned to ``torch.Tensor.__array__`` itself
    is no longer called.

    ``numpy.ndarray(buffer=tensor)`` ends its export at once and keeps using the memory, as NumPy does with every
    exporter. It must not outlive the memory that the tensor had: after ``tensor.data = other``, ``set_``,
    ``share_memory_`` or ``swap_tensors`` it reads freed memory. Use ``numpy.asarray(tensor)``, or pass
    ``buffer=memoryview(tensor)``.

    ``bytearray(tensor)`` of a tensor with one integer makes that many zeros, because Python takes the integer for a
    length and requests no buffer. Write ``bytearray(memoryview(tensor))``.

    Parameters
    ----------
    count_writes : {"found", "asked"}
        When to increment the tensor's version, which tells backward that saved values have changed. "found": when an
        export ends, if the elements have changed since it began. Reading alone does not increment it. A write goes
        unnoticed if backward runs before the export ends, if the tensor was saved after the export began, if the
        elements have more than 1 MiB, or if it comes through ``numpy.ndarray(buffer=tensor)``, which ends the export at
        once. If the tensor has views or was saved for backward, the check reads the elements twice; otherwise it reads
        nothing. "asked": when a writable export begins, whether or not the consumer writes.

    Returns
    -------
    context manager
        Using it is optional.

    Raises
    ------
    ValueError
        If `count_writes` has another value.
    BufferError
        From later exports of tensors that cannot be exported: see `as_memoryview`.
    """
    if count_writes == "found":
        return Setting(1)
    if count_writes == "asked":
        return Setting(2)
    raise ValueError(f"argument 'count_writes' must be 'found' or 'asked', got {count_writes!r}")


def disable_buffer_protocol() -> Setting:
    """Undo `enable_buffer_protocol`; in ``with``, until the end of the block. Existing exports stay valid."""
    return Setting(0)
