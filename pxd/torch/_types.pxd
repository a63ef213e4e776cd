# The Python objects that stand for dtypes, devices and the like, as C types; torch/__init__.pxd hands them on. A typed
# argument is checked in C. A field is read without the GIL. Never assign to a field: there is one torch.float32 in a
# process.
#
# Cython makes an enum of any object by asking it for an int, and a dtype is none: `at.ScalarType s = d` raises
# TypeError. Write d.scalar_type, or (<torch.dtype?>x).scalar_type for an object of unknown type.
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from ATen.core.Generator cimport Generator as ATGenerator
from c10.core.Device cimport Device
from c10.core.Layout cimport Layout
from c10.core.MemoryFormat cimport MemoryFormat
from c10.core.ScalarType cimport ScalarType
from interop.exceptions cimport translate_exception

cdef extern from "interop/python_types.h":
    ctypedef class torch.dtype [object THPDtype, check_size ignore]:
        cdef ScalarType scalar_type

    ctypedef class torch.device [object interop_THPDevice, check_size ignore]:
        cdef Device device

    ctypedef class torch.layout [object THPLayout, check_size ignore]:
        cdef Layout layout

    ctypedef class torch.memory_format [object THPMemoryFormat, check_size ignore]:
        cdef MemoryFormat memory_format

    # A tuple. As a `vector[int64_t]` it is a copy: cdef vector[int64_t] shape = size.
    ctypedef class torch.Size [object PyTupleObject, check_size ignore]:
        pass

    ctypedef class torch.Generator [object THPGenerator, check_size ignore]:
        # Borrowed: lives as long as the Python object. A cdef at.Generator owns.
        cdef ATGenerator cdata

    # torch.cuda.Stream and those of other devices are subclasses.
    ctypedef class torch.Stream [object THPStream, check_size ignore]:
        cdef int64_t stream_id
        cdef int64_t device_type
        cdef int64_t device_index

cdef extern from "interop/python_types.h" namespace "interop":
    # New references. dtype, layout and memory_format: to the one object that there is of each. ValueError for a number
    # that is none of the enum's, and for ScalarType.Undefined.
    dtype wrap_dtype(ScalarType value) except +translate_exception
    layout wrap_layout(Layout value) except +translate_exception
    memory_format wrap_memory_format(MemoryFormat value) except +translate_exception
    # A new object each time; compare with ==.
    device wrap_device(const Device& value) except +translate_exception
    # A copy. Takes what an IntArrayRef of ATen takes: t.sizes(), a vector, a list or tuple.
    Size wrap_size(const vector[int64_t]& sizes) except +translate_exception
    # An object with this generator inside, None if undefined. Not the one that Python made, such as
    # torch.default_generator, because torch does not tell the C++ side of those. It draws the same numbers.
    Generator wrap_generator(const ATGenerator& generator) except +translate_exception
    # A torch.Stream, a new one each time, also where the number is that of a torch.cuda.Stream; compare with ==.
    Stream wrap_stream(int64_t stream_id, const Device& where) except +translate_exception
