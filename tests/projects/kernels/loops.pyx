# Loops over torch's threads, and Cython's own prange beside them.
cimport ATen as at
cimport torch
from cython.parallel cimport prange, threadid
from interop cimport all_types, dispatch_part
from libc.stdint cimport int64_t

import threading

cdef extern from *:
    """
    #include <atomic>
    static std::atomic<int> interop_test_present{0};
    """
    int add "interop_test_present.fetch_add"(int n) noexcept nogil
    int present "interop_test_present.load"() noexcept nogil
    void forget "interop_test_present.store"(int n) noexcept nogil

cdef extern from "omp.h" nogil:
    void omp_set_num_threads(int count) noexcept
    int omp_get_max_threads() noexcept


# Every part notes its ends, its thread and what it saw there.

cdef struct Part:
    int64_t begin, end
    int number
    bint in_region, grad


cdef struct Parts:
    int64_t* owner  # of each iteration: the begin of its part
    Part* parts     # by their begin


cdef void _note(int64_t begin, int64_t end, void* data) noexcept nogil:
    cdef Parts* noted = <Parts*> data
    cdef Part* part = &noted.parts[begin]
    cdef int64_t i
    for i in range(begin, end):
        noted.owner[i] += begin + 1
    part.begin, part.end = begin, end
    part.number = at.get_thread_num()
    part.in_region = at.in_parallel_region()
    part.grad = at.GradMode.is_enabled()


def split(int64_t begin, int64_t end, int64_t grain, bint hold_gil=False):
    """How begin:end, both at least 0, falls into parts."""
    cdef at.Tensor owner = at.zeros((max(begin, end),), at.kLong), parts
    parts = at.zeros((max(begin, end) * <int64_t> sizeof(Part),), at.kByte)
    cdef Parts noted
    noted.owner = owner.data_ptr[int64_t]()
    noted.parts = <Part*> parts.mutable_data_ptr()
    if hold_gil:
        at.parallel_for(begin, end, grain, _note, &noted)
    else:
        with nogil:
            at.parallel_for(begin, end, grain, _note, &noted)
    found = [noted.parts[i] for i in range(begin, end) if noted.parts[i].end]
    return [tuple(part.values()) for part in found], torch.wrap(owner)


# Errors.

class Told(Exception):
    pass


cdef void _double(int64_t begin, int64_t end, all_types* values) noexcept nogil:
    cdef int64_t i
    for i in range(begin, end):
        values[i] = 2 * values[i]


def double_(torch.Tensor x not None):
    """Of the dtypes for which there is a part."""
    cdef at.Tensor t = x.cdata
    with nogil:
        at.parallel_for(
            0, t.numel(), 4, dispatch_part(t.scalar_type(), b"double_", _double[float], _double[int64_t]),
            t.data_ptr())


cdef void _raise(int64_t begin, int64_t end, void* data) except * nogil:
    if begin == (<int64_t*> data)[0]:
        with gil:
            raise Told("from", begin)


cdef void _raise_noexcept(int64_t begin, int64_t end, void* data) noexcept nogil:
    if begin == (<int64_t*> data)[0]:
        with gil:
            raise Told("from", begin)


cdef void _raise_everywhere(int64_t begin, int64_t end, void* data) except * nogil:
    with gil:
        raise Told("from", begin)


cdef void _raise_cxx(int64_t begin, int64_t end, void* data) except * nogil:
    if begin == (<int64_t*> data)[0]:
        at.zeros((2,)).view((3,))


cdef int _inner(int64_t begin) except -1 nogil:
    with gil:
        with nogil:
            with gil:
                raise Told("from", begin)
    return 0


cdef void _raise_within(int64_t begin, int64_t end, void* data) except * nogil:
    if begin == (<int64_t*> data)[0]:
        _inner(begin)
        (<int64_t*> data)[0] = -2  # must not be reached


cdef void _catch(int64_t begin, int64_t end, void* data) except * nogil:
    with gil:
        try:
            _inner(begin)
        except Told:
            add(1)


KINDS = "except *", "noexcept", "everywhere", "c++", "within", "caught"


def raising(kind, int64_t at_begin, int64_t n, bint hold_gil=False):
    """Two parts of n iterations; the one that begins at `at_begin` raises. Returns what it left in the data."""
    cdef int64_t where = at_begin
    cdef void (*function)(int64_t, int64_t, void*) except * nogil
    if kind == "except *":
        function = _raise
    elif kind == "noexcept":
        function = _raise_noexcept
    elif kind == "everywhere":
        function = _raise_everywhere
    elif kind == "c++":
        function = _raise_cxx
    elif kind == "within":
        function = _raise_within
    else:
        function = _catch
    forget(0)
    if hold_gil:
        at.parallel_for(0, n, n // 2, function, &where)
    else:
        with nogil:
            at.parallel_for(0, n, n // 2, function, &where)
    return where, present()


def wrong(what):
    cdef int64_t where = 0
    if what == "NULL":
        at.parallel_for(0, 1, 1, NULL, NULL)
    elif what == "grain":
        at.parallel_for(0, 1, -1, _raise, &where)
    elif what == "reduce NULL":
        at.parallel_reduce(0, 1, 1, 0.0, _sum, NULL, NULL)
    elif what == "reduce grain":
        at.parallel_reduce(0, 1, -2, 0.0, _sum, _plus, NULL)


# Threads meet: both parts run at the same time, or one waits for ever. The caller has a time limit.

cdef void _meet(int64_t begin, int64_t end, void* data) noexcept nogil:
    add(1)
    while present() < 2:
        pass


def meet():
    forget(0)
    with nogil:
        at.parallel_for(0, 2, 1, _meet, NULL)


cdef void _python(int64_t begin, int64_t end, void* data) except * nogil:
    with gil:
        (<object> data).append((begin, end, threading.get_ident()))


def into_list(int64_t n):
    """The caller holds the GIL, and each part asks for it."""
    found = []
    at.parallel_for(0, n, n // 2, _python, <void*> found)
    return sorted(found)


# Reductions.

cdef double _sum(int64_t begin, int64_t end, double start, void* data) noexcept nogil:
    cdef double* values = <double*> data
    cdef int64_t i
    for i in range(begin, end):
        start += values[i]
    return start


cdef double _plus(double x, double y) noexcept nogil:
    return x + y


cdef int64_t _digits(int64_t begin, int64_t end, int64_t start, void* data) except * nogil:
    if data != NULL and begin >= (<int64_t*> data)[0]:
        with gil:
            raise Told("from", begin)
    cdef int64_t i
    for i in range(begin, end):
        start = start * 10 + i
    return start


cdef int64_t _concatenate(int64_t x, int64_t y) except * nogil:
    cdef int64_t scale = 1
    while scale <= y:
        scale *= 10
    if x < 0 or y < 0:
        with gil:
            raise Told("combining", x, y)
    return x * scale + y


def total(torch.Tensor x not None, int64_t grain):
    """Of a contiguous tensor of doubles."""
    cdef at.Tensor t = x.cdata
    cdef double result
    with nogil:
        result = at.parallel_reduce(0, t.numel(), grain, 0.0, _sum, _plus, t.mutable_data_ptr())
    return result


def digits(int64_t begin, int64_t end, int64_t raise_from=-1, int64_t start=0):
    """The numbers begin:end, below 10, as the digits of one: parts are combined in their order."""
    return at.parallel_reduce(begin, end, 1, start, _digits, _concatenate, &raise_from if raise_from >= 0 else NULL)


# prange.

def prange_threads(int64_t n, int count):
    """Which OpenMP threads run a prange that asks for `count` threads; for 0 it takes the default."""
    cdef at.Tensor seen = at.full((n,), -1, at.kLong)
    cdef int64_t* values = seen.data_ptr[int64_t]()
    cdef int64_t i
    if count:
        for i in prange(n, nogil=True, schedule="static", num_threads=count):
            values[i] = threadid()
    else:
        for i in prange(n, nogil=True, schedule="static"):
            values[i] = threadid()
    return torch.wrap(seen)


cdef void _prange_in(int64_t begin, int64_t end, void* data) noexcept nogil:
    cdef int64_t i, j
    for i in range(begin, end):
        for j in prange(2, schedule="static"):
            (<int64_t*> data)[2 * i + j] = threadid()


def prange_in_parallel_for(int64_t n):
    cdef at.Tensor seen = at.full((n, 2), -1, at.kLong)
    at.parallel_for(0, n, 1, _prange_in, seen.mutable_data_ptr())
    return torch.wrap(seen)


def parallel_for_in_prange(int64_t n):
    """Counts the parts of at.parallel_for(0, n, 1) that each of two threads of a prange sees."""
    cdef at.Tensor counts = at.zeros((2, 8), at.kLong)  # a cache line each
    cdef int64_t* values = counts.data_ptr[int64_t]()
    cdef int64_t i
    for i in prange(2, nogil=True, schedule="static", num_threads=2):
        at.parallel_for(0, n, 1, _count_part, values + 8 * i)
    return torch.wrap(counts.select(1, 0))


cdef void _count_part(int64_t begin, int64_t end, void* data) noexcept nogil:
    (<int64_t*> data)[0] += 1


def prange_raises(int64_t n):
    cdef int64_t i
    for i in prange(n, nogil=True, schedule="static", num_threads=2):
        if i == n - 1:
            with gil:
                raise Told("from", i)


def omp_threads(int count=0):
    """Sets OpenMP's number of threads for the loops that this thread begins; returns it."""
    if count:
        omp_set_num_threads(count)
    return omp_get_max_threads()


cdef void _again_without(int64_t begin, int64_t end, void* data) noexcept nogil:
    with gil:
        with nogil:
            pass


def releases_within(int64_t n):
    at.parallel_for(0, n, 1, _again_without, NULL)
