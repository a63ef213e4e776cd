# torch.Tensor as a C type, for modules that run under many releases of torch.
from ATen.core.TensorBody cimport Tensor as ATensor

cdef extern from "interop/tensor.h":
    ctypedef class torch.Tensor [object interop_THPVariable, check_size ignore]:
        # In calls and as an argument it is borrowed; a variable that it is assigned to owns a reference.
        cdef ATensor cdata
