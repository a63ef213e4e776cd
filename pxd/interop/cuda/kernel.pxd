# Launches kernels that interop.cuda.compile() has made, without the GIL.
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
# It runs on the device of the tensors, else on the current one, and on the stream that is current there. It waits for
# nothing and allocates nothing on the GPU, so a CUDA graph can capture it, once it has run before.
#
# Arguments are tensors, C numbers, pointers and plain C structs. They are passed with the C type that they have, and
# compared with what the kernel takes: a double for a float is not converted, but a TypeError. The literal 2.0 is a
# double, 2 an int, and a bint an int. A tensor is passed as its data pointer: strides are up to the caller. One that
# the kernel takes as a pointer that is not const counts as written to: its version is bumped, and it must not require
# grad.
from libc.stdint cimport int64_t

from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/kernel.h" namespace "interop::cuda":
    # How many blocks or threads. A number or a tuple of C numbers, (32, 8), does as well.
    cppclass Dim3:
        int64_t x
        int64_t y
        int64_t z
        Dim3() noexcept nogil
        Dim3(int64_t x) noexcept nogil
        Dim3(int64_t x, int64_t y) noexcept nogil
        Dim3(int64_t x, int64_t y, int64_t z) noexcept nogil

    # Keeps the kernel's code loaded. Copies share it, and several threads may launch it at the same time.
    cppclass Kernel:
        Kernel() noexcept nogil
        # Of an interop.cuda.Kernel, which it does not keep. Raises torch.AcceleratorError where the driver does not
        # load the code.
        Kernel(object handle) except +translate_exception
        # kernel.launch(grid, block, shared_bytes)(arguments), as kernel<<<grid, block, shared_bytes>>>(arguments). With
        # an empty grid, nothing is launched.
        Launcher launch[G, B](const G& grid, const B& block) noexcept nogil
        Launcher launch[G, B](const G& grid, const B& block, size_t shared_bytes) noexcept nogil

    # What launch() returns, to be called where it stands. Raises TypeError and ValueError for arguments that do not
    # fit, and torch.AcceleratorError for what the driver says.
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
