# torch.Tensor as a C type, in a module for many releases of torch.
from ATen.core.TensorBody cimport Tensor as ATensor

cdef extern from "interop/tensor.h":
    ctypedef class torch.Tensor [object interop_THPVariable, check_size ignore]:
        # Borrowed in calls and as an argument. A variable that it is assigned to owns a reference.
        cdef ATensor cdata
