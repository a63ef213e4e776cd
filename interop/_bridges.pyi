from collections.abc import Callable
from typing import Any, Literal, Protocol, Self, final

import numpy.typing
import torch
from typing_extensions import Buffer, CapsuleType

_OnReadonly = Literal["raise", "share", "copy"]

@final
class Setting:
    def __new__(cls, wanted: int) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...

@final
class Taken:
    def __new__(cls, exporter: object) -> Self: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Unfinished:
    given: tuple[Any, ...] | None
    named: dict[str, Any] | None
    result: Any

def call_with_arrays(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    may_hold: Callable[[Any], bool],
    scalars: frozenset[type],
    apart: bool,
) -> Any: ...
def from_numpy(array: numpy.typing.NDArray[Any], *, on_readonly: _OnReadonly = "raise") -> torch.Tensor: ...
def to_numpy(tensor: torch.Tensor, *, force: bool = False, readonly: bool = False) -> numpy.typing.NDArray[Any]: ...
def from_buffer(
    obj: Buffer,
    *,
    dtype: torch.dtype | None = None,
    shape: int | tuple[int, ...] | list[int] | None = None,
    offset: int = 0,
    on_readonly: _OnReadonly = "raise",
) -> torch.Tensor: ...
def as_memoryview(tensor: torch.Tensor, *, readonly: bool = False) -> memoryview: ...
def from_dlpack(
    obj: Any, *, device: torch.device | str | None = None, copy: bool | None = None, on_readonly: _OnReadonly = "raise"
) -> torch.Tensor: ...
def to_dlpack(
    tensor: torch.Tensor,
    *,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
    readonly: bool = False,
) -> CapsuleType: ...

class _CudaArray(Protocol):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

def from_cuda_array_interface(obj: _CudaArray, *, on_readonly: _OnReadonly = "raise") -> torch.Tensor: ...
def to_cuda_array_interface(tensor: torch.Tensor, *, readonly: bool = False) -> _CudaArray: ...

@final
class TensorBuffer:
    def __new__(cls, tensor: torch.Tensor, *, readonly: bool = False) -> Self: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    @property
    def format(self) -> str: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def ndim(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def readonly(self) -> bool: ...
