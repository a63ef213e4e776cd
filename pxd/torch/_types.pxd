# The Python types of dtypes, devices and so on, as C types; torch/__init__.pxd cimports them. A typed argument is
# checked in C. Reading a field does not need the GIL. Never assign to a field: a process has only one torch.float32.
#
# Cython converts any object to an enum through int, and a dtype is not an int: `at.ScalarType s = d` raises
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

    # A tuple. Converting it to a vector copies it: cdef vector[int64_t] shape = size.
    ctypedef class torch.Size [object PyTupleObject, check_size ignore]:
        pass

    ctypedef class torch.Generator [object THPGenerator, check_size ignore]:
        # Borrowed from the Python object. A cdef at.Generator owns a reference.
        cdef ATGenerator cdata

    # torch.cuda.Stream and the streams of other devices are subclasses.
    ctypedef class torch.Stream [object THPStream, check_size ignore]:
        cdef int64_t stream_id
        cdef int64_t device_type
        cdef int64_t device_index

cdef extern from "interop/python_types.h" namespace "interop":
    # These return new references. A dtype, layout or memory_format has one object, which is returned. A number that
    # is not in the enum, and ScalarType.Undefined, raise ValueError.
    dtype wrap_dtype(ScalarType value) except +translate_exception
    layout wrap_layout(Layout value) except +translate_exception
    memory_format wrap_memory_format(MemoryFormat value) except +translate_exception
    # A new object each time; compare with ==.
    device wrap_device(const Device& value) except +translate_exception
    # A copy. Accepts the arguments of an IntArrayRef parameter: t.sizes(), a vector, a list or tuple.
    Size wrap_size(const vector[int64_t]& sizes) except +translate_exception
    # An object that holds this generator; None if undefined. It is not an object that Python created, such as
    # torch.default_generator, because torch's C++ side does not know those. It draws the same numbers.
    Generator wrap_generator(const ATGenerator& generator) except +translate_exception
    # A new torch.Stream each time, even if the id belongs to a torch.cuda.Stream; compare with ==.
    Stream wrap_stream(int64_t stream_id, const Device& where) except +translate_exception
