# For other Cython modules: from your_project.ops cimport swish_
cimport torch.stable as st

# A new tensor; the GIL is not needed.
cdef st.Handle swish_(const st.Handle& x) except * nogil
