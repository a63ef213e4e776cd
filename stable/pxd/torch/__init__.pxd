# `cimport torch` in a module that runs under many releases of torch.
cimport ATen.core.TensorBody as _aten  # with an underscore, or `from torch cimport *` would take the name

from c10.core.Device cimport Device
from c10.core.Layout cimport Layout
from c10.core.MemoryFormat cimport MemoryFormat
from c10.core.ScalarType cimport ScalarType
from interop.exceptions cimport translate_exception
from interop.guards cimport AutoGradMode, NoGradGuard
from torch._tensor cimport Tensor

cdef extern from "interop/tensor.h" namespace "interop":
    # The Python object of a tensor, a new reference: the one that it already has, else a new one. None if undefined.
    Tensor wrap(const _aten.Tensor& tensor) except +translate_exception
    # The tensor of a Python object, owned; TypeError if it is not a torch.Tensor.
    _aten.Tensor unpack(object obj) except +translate_exception

cdef extern from "interop/python_types.h" namespace "interop":
    # New references to torch's objects for these values, and back; TypeError for other objects.
    object wrap_dtype(ScalarType value) except +translate_exception
    object wrap_layout(Layout value) except +translate_exception
    object wrap_memory_format(MemoryFormat value) except +translate_exception
    object wrap_device(const Device& value) except +translate_exception
