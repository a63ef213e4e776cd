# torch.library in Cython: `from torch.library cimport define, impl`. A kernel is a cdef function that needs no GIL:
#     cdef at.Tensor scaled_mm(const at.Tensor& a, const at.Tensor& b, double s) except * nogil: ...
from libcpp.string cimport string

from c10.core.ScalarType cimport ScalarType
from interop.exceptions cimport translate_exception

cdef extern from "interop/library.h" nogil:
    # What an operator promises: see the documentation of torch.Tag.
    enum class Tag "at::Tag":
        core
        cudagraph_unsafe
        data_dependent_output
        dynamic_output_shape
        flexible_layout
        generated
        inplace_view
        maybe_aliasing_or_mutating
        needs_exact_strides
        needs_fixed_stride_order
        nondeterministic_bitwise
        nondeterministic_seeded
        pointwise
        pt2_compliant_tag
        view_copy

cdef extern from "interop/library.h":
    # Makes the operator torch.ops.NAMESPACE.NAME: define("demo::mul", "(Tensor a, float s) -> Tensor").
    void define "interop_library.define"(const string& name, const string& schema) except +translate_exception
    void define "interop_library.define"(const string& name, const string& schema, Tag tag) except +translate_exception
    void define "interop_library.define"(
        const string& name, const string& schema, Tag tag, Tag tag2) except +translate_exception
    void define "interop_library.define"(
        const string& name, const string& schema, Tag tag, Tag tag2, Tag tag3) except +translate_exception
    # Gives it a kernel for a dispatch key ("CPU", "Meta", "CompositeImplicitAutograd", ...) or a device ("cpu", ...).
    void impl "interop_library.impl"[F](const string& name, const string& key, F kernel) except +translate_exception
    # Gives it a gradient. `backward(Context& ctx, const at.Tensor& grad, ...)` takes a gradient for each result and
    # returns one for each argument; `setup_context(Context& ctx, arguments, results)` keeps what it needs. Both call
    # operators only, and read no data: torch.compile traces them.
    void register_autograd "interop_library.register_autograd"[B](
        const string& name, B backward) except +translate_exception
    void register_autograd "interop_library.register_autograd"[B, S](
        const string& name, B backward, S setup_context) except +translate_exception
    # `jvp(Context& ctx, const at.Tensor& tangent, ...)`, for forward mode, takes a tangent for each argument, undefined
    # for those that are no tensors, and returns one for each result. It finds what setup_context has kept.
    void register_autograd "interop_library.register_autograd"[B, S, J](
        const string& name, B backward, S setup_context, J jvp) except +translate_exception
    # Under torch.autocast(device), casts floating-point tensors before the call: to the dtype that autocast has, or to
    # `dtype`.
    void register_autocast "interop_library.register_autocast"(
        const string& name, const string& device) except +translate_exception
    void register_autocast "interop_library.register_autocast"(
        const string& name, const string& device, ScalarType dtype) except +translate_exception

cdef extern from "interop/operator.h" namespace "interop" nogil:
    # A registered operator, to be called: Operator[at.Tensor](b"demo::mul").call(a, 2.0). R is what it returns: a
    # tensor, a number, a vector, or tuple2 (up to tuple7) of them. Arguments at the end may be left out if they have
    # a default.
    cppclass Operator[R]:
        Operator() noexcept
        Operator(const string& name) except +translate_exception
        R call() except +translate_exception
        R call[A](const A& a) except +translate_exception
        R call[A, B](const A& a, const B& b) except +translate_exception
        R call[A, B, C](const A& a, const B& b, const C& c) except +translate_exception
        R call[A, B, C, D](const A& a, const B& b, const C& c, const D& d) except +translate_exception
        R call[A, B, C, D, E](const A& a, const B& b, const C& c, const D& d, const E& e) except +translate_exception
        R call[A, B, C, D, E, F](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f) except +translate_exception
        R call[A, B, C, D, E, F, G](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g,
        ) except +translate_exception
        R call[A, B, C, D, E, F, G, H](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g, const H& h,
        ) except +translate_exception
        R call[A, B, C, D, E, F, G, H, I](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g, const H& h,
            const I& i) except +translate_exception
        R call[A, B, C, D, E, F, G, H, I, J](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g, const H& h,
            const I& i, const J& j) except +translate_exception
        R call[A, B, C, D, E, F, G, H, I, J, K](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g, const H& h,
            const I& i, const J& j, const K& k) except +translate_exception
        R call[A, B, C, D, E, F, G, H, I, J, K, L](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g, const H& h,
            const I& i, const J& j, const K& k, const L& l) except +translate_exception
