# torch.library in Cython: `from torch.library cimport define, impl`. A kernel is a cdef function that needs no GIL:
#     cdef at.Tensor scaled_mm(const at.Tensor& a, const at.Tensor& b, double s) except * nogil: ...
from libc.stdint cimport int64_t
from libcpp.string cimport string

from c10.core.ScalarType cimport ScalarType
from c10.core.SymInt cimport SymInt
from interop.exceptions cimport translate_exception

cdef extern from "interop/library.h" nogil:
    # Properties that an operator declares: see the documentation of torch.Tag.
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
    # Defines the operator torch.ops.NAMESPACE.NAME: define("demo::mul", "(Tensor a, float s) -> Tensor").
    void define "interop_library.define"(const string& name, const string& schema) except +translate_exception
    void define "interop_library.define"(const string& name, const string& schema, Tag tag) except +translate_exception
    void define "interop_library.define"(
        const string& name, const string& schema, Tag tag, Tag tag2) except +translate_exception
    void define "interop_library.define"(
        const string& name, const string& schema, Tag tag, Tag tag2, Tag tag3) except +translate_exception
    # Registers a kernel for a dispatch key ("CPU", "Meta", "CompositeImplicitAutograd", ...) or a device ("cpu", ...).
    void impl "interop_library.impl"[F](const string& name, const string& key, F kernel) except +translate_exception
    # Registers a gradient. `backward(Context& ctx, const at.Tensor& grad, ...)` takes a gradient for each result and
    # returns one for each argument. `setup_context(Context& ctx, arguments, results)` saves values for backward. Both
    # must only call operators, and read no data, because torch.compile traces them.
    void register_autograd "interop_library.register_autograd"[B](
        const string& name, B backward) except +translate_exception
    void register_autograd "interop_library.register_autograd"[B, S](
        const string& name, B backward, S setup_context) except +translate_exception
    # `jvp(Context& ctx, const at.Tensor& tangent, ...)` is for forward mode. It takes a tangent for each argument,
    # undefined for a non-tensor, and returns one for each result. It can read the values that setup_context saved.
    void register_autograd "interop_library.register_autograd"[B, S, J](
        const string& name, B backward, S setup_context, J jvp) except +translate_exception
    # Registers a rule for torch.func.vmap: `rule(VmapInfo& info, arguments)`, with tensors that hold all examples,
    # returns the results for all of them. Like a gradient, it must only call operators.
    void register_vmap "interop_library.register_vmap"[F](const string& name, F rule) except +translate_exception
    # Under torch.autocast(device), casts floating-point tensors before the call, to `dtype` or else to autocast's
    # current dtype.
    void register_autocast "interop_library.register_autocast"(
        const string& name, const string& device) except +translate_exception
    void register_autocast "interop_library.register_autocast"(
        const string& name, const string& device, ScalarType dtype) except +translate_exception

cdef extern from "interop/vmap.h" namespace "interop::vmap" nogil:
    # The argument `randomness` of torch.func.vmap.
    enum class Randomness:
        error
        same
        different

    # What a rule for vmap reads about the call, and what it says about its results. Arguments, results, the elements
    # of a list and dimensions are counted from 0.
    cppclass VmapInfo:
        # The dimension of this argument that has the examples; -1 if all examples share the argument, and if it is not
        # a tensor. With an element, that of a tensor in a list.
        int64_t in_dim(int64_t argument) except +translate_exception
        int64_t in_dim(int64_t argument, int64_t element) except +translate_exception
        # Says which dimension of this result has the examples: by default 0; -1 if all examples share the result. If
        # the result is a list, this is about all of its tensors or, with an element, about one.
        void set_out_dim(int64_t result, int64_t dim) except +translate_exception
        void set_out_dim(int64_t result, int64_t element, int64_t dim) except +translate_exception
        int64_t batch_size() except +translate_exception  # the number of examples; raises if it is symbolic
        SymInt sym_batch_size() noexcept
        Randomness randomness() noexcept

cdef extern from "interop/operator.h" namespace "interop" nogil:
    # Calls a registered operator: Operator[at.Tensor](b"demo::mul").call(a, 2.0). R is the type of the result: a
    # tensor, a number, a vector, or a tuple2 (up to tuple7) of them. Trailing arguments with a default may be omitted.
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
