# std::tuple, which ATen returns for multiple results: r = at.max(x, 1); values = get0(r); indices = get1(r).
from interop.exceptions cimport translate_exception

cdef extern from "interop/tuple.h" namespace "interop" nogil:
    cppclass tuple2 "interop::tuple2"[A, B]:
        pass
    cppclass tuple3 "interop::tuple3"[A, B, C]:
        pass
    cppclass tuple4 "interop::tuple4"[A, B, C, D]:
        pass
    cppclass tuple5 "interop::tuple5"[A, B, C, D, E]:
        pass
    cppclass tuple6 "interop::tuple6"[A, B, C, D, E, F]:
        pass
    cppclass tuple7 "interop::tuple7"[A, B, C, D, E, F, G]:
        pass
    cppclass tuple9 "interop::tuple9"[A, B, C, D, E, F, G, H, I]:
        pass

    # Makes a tuple of tensors, numbers and so on: return make_tuple(a, b). (tuple2[...](a, b) crashes Cython's
    # compiler.)
    tuple2[A, B] make_tuple[A, B](const A& a, const B& b) except +translate_exception
    tuple3[A, B, C] make_tuple[A, B, C](const A& a, const B& b, const C& c) except +translate_exception
    tuple4[A, B, C, D] make_tuple[A, B, C, D](
        const A& a, const B& b, const C& c, const D& d) except +translate_exception
    tuple5[A, B, C, D, E] make_tuple[A, B, C, D, E](
        const A& a, const B& b, const C& c, const D& d, const E& e) except +translate_exception
    tuple6[A, B, C, D, E, F] make_tuple[A, B, C, D, E, F](
        const A& a, const B& b, const C& c, const D& d, const E& e, const F& f) except +translate_exception
    tuple7[A, B, C, D, E, F, G] make_tuple[A, B, C, D, E, F, G](
        const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g) except +translate_exception
    tuple9[A, B, C, D, E, F, G, H, I] make_tuple[A, B, C, D, E, F, G, H, I](
        const A& a, const B& b, const C& c, const D& d, const E& e, const F& f, const G& g, const H& h, const I& i,
    ) except +translate_exception

    # Return copies of the elements (a tensor's copy shares its memory).
    A get0[A, B](const tuple2[A, B]& t) noexcept
    A get0[A, B, C](const tuple3[A, B, C]& t) noexcept
    A get0[A, B, C, D](const tuple4[A, B, C, D]& t) noexcept
    A get0[A, B, C, D, E](const tuple5[A, B, C, D, E]& t) noexcept
    A get0[A, B, C, D, E, F](const tuple6[A, B, C, D, E, F]& t) noexcept
    A get0[A, B, C, D, E, F, G](const tuple7[A, B, C, D, E, F, G]& t) noexcept
    A get0[A, B, C, D, E, F, G, H, I](const tuple9[A, B, C, D, E, F, G, H, I]& t) noexcept
    B get1[A, B](const tuple2[A, B]& t) noexcept
    B get1[A, B, C](const tuple3[A, B, C]& t) noexcept
    B get1[A, B, C, D](const tuple4[A, B, C, D]& t) noexcept
    B get1[A, B, C, D, E](const tuple5[A, B, C, D, E]& t) noexcept
    B get1[A, B, C, D, E, F](const tuple6[A, B, C, D, E, F]& t) noexcept
    B get1[A, B, C, D, E, F, G](const tuple7[A, B, C, D, E, F, G]& t) noexcept
    B get1[A, B, C, D, E, F, G, H, I](const tuple9[A, B, C, D, E, F, G, H, I]& t) noexcept
    C get2[A, B, C](const tuple3[A, B, C]& t) noexcept
    C get2[A, B, C, D](const tuple4[A, B, C, D]& t) noexcept
    C get2[A, B, C, D, E](const tuple5[A, B, C, D, E]& t) noexcept
    C get2[A, B, C, D, E, F](const tuple6[A, B, C, D, E, F]& t) noexcept
    C get2[A, B, C, D, E, F, G](const tuple7[A, B, C, D, E, F, G]& t) noexcept
    C get2[A, B, C, D, E, F, G, H, I](const tuple9[A, B, C, D, E, F, G, H, I]& t) noexcept
    D get3[A, B, C, D](const tuple4[A, B, C, D]& t) noexcept
    D get3[A, B, C, D, E](const tuple5[A, B, C, D, E]& t) noexcept
    D get3[A, B, C, D, E, F](const tuple6[A, B, C, D, E, F]& t) noexcept
    D get3[A, B, C, D, E, F, G](const tuple7[A, B, C, D, E, F, G]& t) noexcept
    D get3[A, B, C, D, E, F, G, H, I](const tuple9[A, B, C, D, E, F, G, H, I]& t) noexcept
    E get4[A, B, C, D, E](const tuple5[A, B, C, D, E]& t) noexcept
    E get4[A, B, C, D, E, F](const tuple6[A, B, C, D, E, F]& t) noexcept
    E get4[A, B, C, D, E, F, G](const tuple7[A, B, C, D, E, F, G]& t) noexcept
    E get4[A, B, C, D, E, F, G, H, I](const tuple9[A, B, C, D, E, F, G, H, I]& t) noexcept
    F get5[A, B, C, D, E, F](const tuple6[A, B, C, D, E, F]& t) noexcept
    F get5[A, B, C, D, E, F, G](const tuple7[A, B, C, D, E, F, G]& t) noexcept
    F get5[A, B, C, D, E, F, G, H, I](const tuple9[A, B, C, D, E, F, G, H, I]& t) noexcept
    G get6[A, B, C, D, E, F, G](const tuple7[A, B, C, D, E, F, G]& t) noexcept
    G get6[A, B, C, D, E, F, G, H, I](const tuple9[A, B, C, D, E, F, G, H, I]& t) noexcept
    H get7[A, B, C, D, E, F, G, H, I](const tuple9[A, B, C, D, E, F, G, H, I]& t) noexcept
    I get8[A, B, C, D, E, F, G, H, I](const tuple9[A, B, C, D, E, F, G, H, I]& t) noexcept
