# `cimport torch` in a module for many releases of torch.
cimport ATen.core.TensorBody as _aten  # the underscore keeps `from torch cimport *` from importing it

from c10.core.Device cimport Device
from c10.core.Layout cimport Layout
from c10.core.MemoryFormat cimport MemoryFormat
from c10.core.ScalarType cimport ScalarType
from interop.exceptions cimport translate_exception
from interop.guards cimport AutoGradMode, NoGradGuard
from torch._tensor cimport Tensor

cdef extern from "interop/tensor.h" namespace "interop":
    # A new reference to the tensor's Python object, created if there is none yet. None for an undefined tensor.
    Tensor wrap(const _aten.Tensor& tensor) except +translate_exception
    # The owned tensor of a Python object. Raises TypeError if it is not a torch.Tensor.
    _aten.Tensor unpack(object obj) except +translate_exception

cdef extern from "interop/python_types.h" namespace "interop":
    # New references to torch's Python objects for these values.
    object wrap_dtype(ScalarType value) except +translate_exception
    object wrap_layout(Layout value) except +translate_exception
    object wrap_memory_format(MemoryFormat value) except +translate_exception
    object wrap_device(const Device& value) except +translate_exception
