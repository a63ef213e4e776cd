"""The buffer protocol on torch.Tensor itself, as a setting of the process."""

import collections.abc
import sys
import threading
import weakref
from typing import ClassVar, Self

import torch

from interop._bridges import as_memoryview, set_protocol

__all__ = ["disable_buffer_protocol", "enable_buffer_protocol"]


_COUNTING = {"found": 1, "asked": 2}
"""The values of `count_writes`, by what they are in C++; 0 is for a protocol that is disabled."""


class _Setting:
    """What a change of the setting returns: used in `with`, it takes the change back at the end.

    Blocks may overlap, those of two threads or generators: of those that have not ended, the last one counts, and after
    the last of them what was set outside of all blocks.
    """

    _lock = threading.RLock()
    _blocks: ClassVar[list["_Setting"]] = []
    _outside = 0
    _set_outside: ClassVar["_Setting | None"] = None

    def __init__(self, wanted: int):
        with self._lock:
            last = _Setting._set_outside
            self._wanted, self._before = wanted, _Setting._outside
            self._previous = None if last is None else weakref.ref(last)
            _Setting._outside, _Setting._set_outside = wanted, self
            _set(wanted)

    def __enter__(self) -> Self:
        with self._lock:
            self._take_back()
            self._blocks.append(self)
            _set(self._wanted)
        return self

    def _take_back(self) -> None:
        """What was set by the call, and not meant to outlast the block; others may have been set after it."""
        later = _Setting._set_outside
        if later is self:
            _Setting._outside = self._before
            _Setting._set_outside = None if self._previous is None else self._previous()
        while later is not None and later is not self:
            previous = None if later._previous is None else later._previous()
            if previous is self:
                later._before, later._previous = self._before, self._previous
            later = previous

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._blocks.remove(self)
            _set(self._blocks[-1]._wanted if self._blocks else _Setting._outside)


def enable_buffer_protocol(*, count_writes: str = "found") -> _Setting:
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
    if count_writes not in _COUNTING:
        raise ValueError(f"argument 'count_writes' must be 'found' or 'asked', got {count_writes!r}")
    return _Setting(_COUNTING[count_writes])


def disable_buffer_protocol() -> _Setting:
    """Take back `enable_buffer_protocol`; in ``with``, until the end of the block. Buffers that are out stay valid."""
    return _Setting(0)


def _bytes(tensor: torch.Tensor) -> bytes:
    """The bytes of the elements, in C order. Left to itself, bytes() takes a tensor with one integer for a length."""
    return as_memoryview(tensor, readonly=True).tobytes()


def _set(wanted: int) -> None:
    before = set_protocol(wanted)
    if wanted and not before:
        torch.Tensor.__bytes__ = _bytes  # type: ignore[attr-defined]
    elif before and not wanted:
        del torch.Tensor.__bytes__  # type: ignore[attr-defined]
    if sys.version_info >= (3, 12) and bool(before) != bool(wanted):
        # isinstance(tensor, Buffer) goes by what it has once found of a class.
        collections.abc.Buffer._abc_caches_clear()
