# `cimport torch`: torch.Tensor as a C type, and conversions between it and at::Tensor. The file stays small, so that
# after `import torch` a name such as torch.zeros still means Python's function.
cimport ATen.core.TensorBody as _aten  # the underscore keeps `from torch cimport *` from importing it

from interop.exceptions cimport translate_exception
from interop.guards cimport AutoGradMode, InferenceMode, NoGradGuard
from interop.warnings cimport WarningScope
from torch._tensor cimport Tensor
from torch._types cimport (
    Generator, Size, Stream, device, dtype, layout, memory_format, wrap_device, wrap_dtype, wrap_generator, wrap_layout,
    wrap_memory_format, wrap_size, wrap_stream,
)

cdef extern from "interop/tensor.h" namespace "interop":
    # A new reference to the tensor's Python object, created if there is none yet. None for an undefined tensor. By
    # value, so that Cython moves the result of a call: the reference count of the Python object need not change.
    Tensor wrap(_aten.Tensor tensor) except +translate_exception
    # The owned tensor of a Python object. Raises TypeError if it is not a torch.Tensor. (A typed argument is checked
    # too, and its .cdata is borrowed.)
    _aten.Tensor unpack(object obj) except +translate_exception
