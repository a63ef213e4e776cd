from typing import TypeAlias, TypedDict

from torch import Tensor

_Tensors: TypeAlias = tuple[Tensor | None, ...]
_Places: TypeAlias = tuple[int, ...]

class _BuildInfo(TypedDict):
    torch: str
    compiler: str
    cxx_standard: int

def build_info() -> _BuildInfo: ...
def transformed_forward(
    call: object, tensors: _Tensors
) -> tuple[object, _Tensors, _Places, _Places, _Places, bool]: ...
def transformed_backward(record: object, saved: _Tensors, needs: tuple[bool, ...], grads: _Tensors) -> _Tensors: ...
def transformed_jvp(record: object, saved: _Tensors, tangents: _Tensors) -> _Tensors: ...
