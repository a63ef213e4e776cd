# Differentiable functions in Cython: `from torch.autograd cimport Context, Function`. Both parts are cdef functions:
#     cdef at.Tensor exp_forward(Context& ctx, const at.Tensor& x) except * nogil: ...
#     cdef at.Tensor exp_backward(Context& ctx, const at.Tensor& grad) except * nogil: ...
#     cdef Function[at.Tensor] exp
#     exp.define("Exp", exp_forward, exp_backward)
# exp.apply(x.cdata) is Python's Exp.apply(x).
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from ATen.core.TensorBody cimport Tensor
from interop.exceptions cimport translate_exception
from interop.guards cimport AutoDispatchBelowAutograd

cdef extern from "interop/autograd.h" namespace "interop::autograd" nogil:
    # The state that forward saves for backward. Save inputs and outputs only with save_for_backward.
    cppclass Context:
        void save_for_backward(const Tensor& a) except +translate_exception
        void save_for_backward(const Tensor& a, const Tensor& b) except +translate_exception
        void save_for_backward(const Tensor& a, const Tensor& b, const Tensor& c) except +translate_exception
        void save_for_backward(
            const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) except +translate_exception
        void save_for_backward(
            const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, const Tensor& e,
        ) except +translate_exception
        void save_for_backward(
            const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, const Tensor& e, const Tensor& f,
        ) except +translate_exception
        void save_for_backward(const vector[Tensor]& tensors) except +translate_exception
        # For jvp, which without this sees the tensors saved for backward. Takes up to three tensors, or a vector.
        void save_for_forward(const Tensor& a) except +translate_exception
        void save_for_forward(const Tensor& a, const Tensor& b) except +translate_exception
        void save_for_forward(const Tensor& a, const Tensor& b, const Tensor& c) except +translate_exception
        void save_for_forward(const vector[Tensor]& tensors) except +translate_exception
        # A saved tensor, owned. Raises if the tensor was changed in place since, or if the graph was freed.
        Tensor saved_tensor(int64_t index) except +translate_exception
        size_t saved_tensors() except +translate_exception  # the number of saved tensors
        # Whether the gradient of this argument of forward, counted from 0, is needed.
        cbool needs_input_grad(int64_t argument) except +translate_exception
        void mark_dirty(const Tensor& input) except +translate_exception
        void mark_non_differentiable(const Tensor& output) except +translate_exception
        # With False, missing gradients are passed as undefined tensors instead of zeros.
        void set_materialize_grads(cbool value) except +translate_exception
        # State other than tensors: a struct of yours, zero-initialised. Borrowed from the context.
        T* state[T]() except +translate_exception

    # R is at.Tensor, tuple2[at.Tensor, at.Tensor] (up to tuple7), or vector[at.Tensor]. `backward` takes a gradient
    # for each output and returns one for each argument of forward: at.Tensor() for arguments without a gradient.
    cppclass Function[R]:
        Function() noexcept
        void define[F, B](const char* name, F forward, B backward) except +translate_exception  # once
        # `jvp(Context& ctx, const at.Tensor& tangent, ...)` takes a tangent for each argument of forward, undefined
        # for arguments that are not tensors, and returns one for each output.
        void define[F, B, J](const char* name, F forward, B backward, J jvp) except +translate_exception
        R apply() except +translate_exception
        R apply[A](const A& a) except +translate_exception
        R apply[A, B](const A& a, const B& b) except +translate_exception
        R apply[A, B, C](const A& a, const B& b, const C& c) except +translate_exception
        R apply[A, B, C, D](const A& a, const B& b, const C& c, const D& d) except +translate_exception
        R apply[A, B, C, D, E](const A& a, const B& b, const C& c, const D& d, const E& e) except +translate_exception
        R apply[A, B, C, D, E, F](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f) except +translate_exception
        R apply[A, B, C, D, E, F, G](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g,
        ) except +translate_exception
        R apply[A, B, C, D, E, F, G, H](
            const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g, const H& h,
        ) except +translate_exception
