# For other Cython modules: from your_project.ops cimport softclip_tensor
cimport ATen as at

# A new tensor; the GIL is not needed.
cdef at.Tensor softclip_tensor(const at.Tensor& x, double limit) except * nogil
