# Launches kernels compiled by interop.cuda.compile(), without the GIL.
#
#     cdef class Saxpy:
#         cdef Kernel kernel
#         def __init__(self, handle):                  # interop.cuda.compile(source)["saxpy"]
#             self.kernel = Kernel(handle)
#         cdef int run(self, const at.Tensor& y, const at.Tensor& x, float a) except -1 nogil:
#             cdef int64_t n = y.numel()
#             self.kernel.launch((n + 255) // 256, 256)(y, x, a, n)
#             return 0
#
# The kernel runs on the device of the tensors, else on the current device, and on the stream that is current there. A
# launch does not synchronise and allocates no GPU memory, so a CUDA graph can capture it after the kernel has run once.
#
# Arguments are tensors, C numbers, pointers and plain C structs. They are passed with their C type, which must match
# the kernel's parameter: a double for a float is not converted but raises TypeError. The literal 2.0 is a double, 2
# is an int, and a bint is an int. A tensor is passed as its data pointer: the caller must take care of strides. If
# the parameter is a pointer to non-const, the tensor counts as written to: its version is incremented, and it must
# not require grad.
from libc.stdint cimport int64_t

from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/nvrtc_kernel.h" namespace "interop::cuda":
    # The number of blocks or threads. A number or a tuple of C numbers, such as (32, 8), also works.
    cppclass Dim3:
        int64_t x
        int64_t y
        int64_t z
        Dim3() noexcept nogil
        Dim3(int64_t x) noexcept nogil
        Dim3(int64_t x, int64_t y) noexcept nogil
        Dim3(int64_t x, int64_t y, int64_t z) noexcept nogil

    # Keeps the kernel's code loaded. Copies share it, and several threads may launch it concurrently.
    cppclass Kernel:
        Kernel() noexcept nogil
        # Made from an interop.cuda.Kernel, to which it keeps no reference. Raises torch.AcceleratorError if the
        # driver cannot load the code.
        Kernel(object handle) except +translate_exception
        # kernel.launch(grid, block, shared_bytes)(arguments) is kernel<<<grid, block, shared_bytes>>>(arguments). An
        # empty grid launches nothing.
        # C++ takes references to const, for which Cython 3.1.0 would make constants of tuples, and assign to them.
        Launcher launch[G, B](G grid, B block) noexcept nogil
        Launcher launch[G, B](G grid, B block, size_t shared_bytes) noexcept nogil

    # The result of launch(); call it in the same expression. Raises TypeError and ValueError for arguments that do
    # not fit, and torch.AcceleratorError for errors of the driver.
    cppclass Launcher:
        Launcher() noexcept nogil
        void operator()() except +translate_exception nogil
        void operator()[A](const A& a) except +translate_exception nogil
        void operator()[A, B](const A& a, const B& b) except +translate_exception nogil
        void operator()[A, B, C](const A& a, const B& b, const C& c) except +translate_exception nogil
        void operator()[A, B, C, D](const A& a, const B& b, const C& c, const D& d) except +translate_exception nogil
        void operator()[A, B, C, D, E](
            const A& a, const B& b, const C& c, const D& d, const E& e) except +translate_exception nogil
        void operator()[A, B, C, D, E, F](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f) except +translate_exception nogil
        void operator()[A, B, C, D, E, F, G](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g,
        ) except +translate_exception nogil
        void operator()[A, B, C, D, E, F, G, H](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g, const H& h,
        ) except +translate_exception nogil
        void operator()[A, B, C, D, E, F, G, H, I](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g, const H& h,
            const I& i) except +translate_exception nogil
        void operator()[A, B, C, D, E, F, G, H, I, J](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g, const H& h,
            const I& i, const J& j) except +translate_exception nogil
        void operator()[A, B, C, D, E, F, G, H, I, J, K](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g, const H& h,
            const I& i, const J& j, const K& k) except +translate_exception nogil
        void operator()[A, B, C, D, E, F, G, H, I, J, K, L](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g, const H& h,
            const I& i, const J& j, const K& k, const L& l) except +translate_exception nogil
        void operator()[A, B, C, D, E, F, G, H, I, J, K, L, M](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g, const H& h,
            const I& i, const J& j, const K& k, const L& l, const M& m) except +translate_exception nogil
        void operator()[A, B, C, D, E, F, G, H, I, J, K, L, M, N](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g, const H& h,
            const I& i, const J& j, const K& k, const L& l, const M& m, const N& n) except +translate_exception nogil
        void operator()[A, B, C, D, E, F, G, H, I, J, K, L, M, N, O](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g, const H& h,
            const I& i, const J& j, const K& k, const L& l, const M& m, const N& n, const O& o,
        ) except +translate_exception nogil
        void operator()[A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g, const H& h,
            const I& i, const J& j, const K& k, const L& l, const M& m, const N& n, const O& o, const P& p,
        ) except +translate_exception nogil
