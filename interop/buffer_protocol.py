"""The buffer protocol on torch.Tensor itself, as a setting of the process."""

import threading
import weakref
from typing import ClassVar, Self

import torch

from interop._bridges import enable_protocol

__all__ = ["disable_buffer_protocol", "enable_buffer_protocol"]


class _Setting:
    """What a change of the setting returns: used in `with`, it takes the change back at the end.

    Blocks may overlap, those of two threads or generators: of those that have not ended, the last one counts, and after
    the last of them what was set outside of all blocks.
    """

    _lock = threading.RLock()
    _blocks: ClassVar[list["_Setting"]] = []
    _outside = False
    _set_outside: ClassVar["_Setting | None"] = None

    def __init__(self, enabled: bool):
        with self._lock:
            last = _Setting._set_outside
            self._enabled, self._before = enabled, _Setting._outside
            self._previous = None if last is None else weakref.ref(last)
            _Setting._outside, _Setting._set_outside = enabled, self
            _set(enabled)

    def __enter__(self) -> Self:
        with self._lock:
            self._take_back()
            self._blocks.append(self)
            _set(self._enabled)
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
            _set(self._blocks[-1]._enabled if self._blocks else _Setting._outside)


def enable_buffer_protocol() -> _Setting:
    """Let torch.Tensor and its subclasses export their memory: ``memoryview(tensor)``, and all that takes buffers.

    That is ``bytes(tensor)``, ``file.write(tensor)``, ``socket.send(tensor)``, ``numpy.asarray(tensor)``, and arguments
    of compiled Cython code that are typed memoryviews, ``float[:, ::1]``. It holds for the whole process, until
    `disable_buffer_protocol`; in ``with enable_buffer_protocol():`` until the end of the block.

    What can be exported is what `as_memoryview` takes, and the memory is owned and kept in its place in the same way. A
    tensor that requires grad is refused, outside of ``torch.no_grad()``: pass ``as_memoryview(tensor, readonly=True)``.
    Who asks for memory that can be written to, as Cython does unless the type is ``const float[:]``, counts up the
    tensor's version, so that autograd finds out. memoryview and NumPy do not say
    whether they will write; call ``torch.autograd.graph.increment_version(tensor)`` if you do through them.

    Returns
    -------
    context manager
        It need not be used.

    Raises
    ------
    BufferError
        Not from here, but from exports that cannot be: see `as_memoryview`.
    """
    return _Setting(True)


def disable_buffer_protocol() -> _Setting:
    """Take back `enable_buffer_protocol`; in ``with``, until the end of the block. Buffers that are out stay valid."""
    return _Setting(False)


def _bytes(tensor: torch.Tensor) -> bytes:
    """The bytes of the elements, in C order. Left to itself, bytes() takes a tensor with one integer for a length."""
    return memoryview(tensor).tobytes()  # type: ignore[arg-type]  # it is a buffer while the protocol is enabled


def _set(enabled: bool) -> None:
    before = enable_protocol(enabled)
    if enabled and not before:
        torch.Tensor.__bytes__ = _bytes  # type: ignore[attr-defined]
    elif before and not enabled:
        del torch.Tensor.__bytes__  # type: ignore[attr-defined]
