# For other Cython modules: from your_project.ops cimport swish_
cimport torch.stable.ATen as at

# A new tensor; the GIL is not needed.
cdef at.Tensor swish_(const at.Tensor& x) except * nogil
