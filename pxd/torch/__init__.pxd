# `cimport torch`: torch.Tensor as a C type, and the way from it to at::Tensor and back. It stays small, so that after
# `import torch` a name such as torch.zeros still means Python's function.
cimport ATen.core.TensorBody as _aten  # with an underscore, or `from torch cimport *` would take the name

from interop.exceptions cimport translate_exception
from interop.guards cimport AutoGradMode, InferenceMode, NoGradGuard
from interop.warnings cimport WarningScope
from torch._tensor cimport Tensor
from torch._types cimport (
    Generator, Size, Stream, device, dtype, layout, memory_format, wrap_device, wrap_dtype, wrap_generator, wrap_layout,
    wrap_memory_format, wrap_size, wrap_stream,
)

cdef extern from "interop/tensor.h" namespace "interop":
    # The Python object of a tensor, a new reference: the one that it already has, else a new one. None if undefined.
    Tensor wrap(const _aten.Tensor& tensor) except +translate_exception
    # The tensor of a Python object, owned; TypeError if it is not a torch.Tensor. (A typed argument checks as well, and
    # its .cdata is borrowed.)
    _aten.Tensor unpack(object obj) except +translate_exception
