# For other Cython modules: from your_project.ops cimport softclip_
cimport ATen as at

# A new tensor; the GIL is not needed.
cdef at.Tensor softclip_(const at.Tensor& x, double limit) except * nogil
