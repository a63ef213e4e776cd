# Reorders the axes of a typed memoryview of any element type, without a copy and without the GIL:
# `from interop.memview cimport permute`, then `turned = permute(view, 0, 3, 1, 2)`. It works only in sources that
# `interop.build` translates, because Cython itself has no memoryviews of template types.
#
# The result is a view of the same memory, and shares its ownership with `view`. It is strided even if `view` is
# declared contiguous: assign it to a `float[:, :]`. Axes may be negative, counted from the last. A wrong axis raises
# ValueError. Cython's memoryviews have at most 7 dimensions.
from interop.exceptions cimport translate_exception

cdef extern from "interop/memview.h" nogil:
    # Axis d of the result is axis `axis_d` of the view, as in torch.permute. Pass one axis for each dimension.
    T[:] permute "interop::memview::permute"[T](T[:] view, Py_ssize_t axis0) except +translate_exception
    T[:, :] permute "interop::memview::permute"[T](
        T[:, :] view, Py_ssize_t axis0, Py_ssize_t axis1) except +translate_exception
    T[:, :, :] permute "interop::memview::permute"[T](
        T[:, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1, Py_ssize_t axis2) except +translate_exception
    T[:, :, :, :] permute "interop::memview::permute"[T](
        T[:, :, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1, Py_ssize_t axis2, Py_ssize_t axis3,
    ) except +translate_exception
    T[:, :, :, :, :] permute "interop::memview::permute"[T](
        T[:, :, :, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1, Py_ssize_t axis2, Py_ssize_t axis3, Py_ssize_t axis4,
    ) except +translate_exception
    T[:, :, :, :, :, :] permute "interop::memview::permute"[T](
        T[:, :, :, :, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1, Py_ssize_t axis2,
        Py_ssize_t axis3, Py_ssize_t axis4, Py_ssize_t axis5) except +translate_exception
    T[:, :, :, :, :, :, :] permute "interop::memview::permute"[T](
        T[:, :, :, :, :, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1, Py_ssize_t axis2,
        Py_ssize_t axis3, Py_ssize_t axis4, Py_ssize_t axis5, Py_ssize_t axis6) except +translate_exception
    # Exchanges two axes, as in torch.transpose.
    T[:] transpose "interop::memview::Rank<1>::transpose"[T](
        T[:] view, Py_ssize_t axis0, Py_ssize_t axis1) except +translate_exception
    T[:, :] transpose "interop::memview::Rank<2>::transpose"[T](
        T[:, :] view, Py_ssize_t axis0, Py_ssize_t axis1) except +translate_exception
    T[:, :, :] transpose "interop::memview::Rank<3>::transpose"[T](
        T[:, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1) except +translate_exception
    T[:, :, :, :] transpose "interop::memview::Rank<4>::transpose"[T](
        T[:, :, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1) except +translate_exception
    T[:, :, :, :, :] transpose "interop::memview::Rank<5>::transpose"[T](
        T[:, :, :, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1) except +translate_exception
    T[:, :, :, :, :, :] transpose "interop::memview::Rank<6>::transpose"[T](
        T[:, :, :, :, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1) except +translate_exception
    T[:, :, :, :, :, :, :] transpose "interop::memview::Rank<7>::transpose"[T](
        T[:, :, :, :, :, :, :] view, Py_ssize_t axis0, Py_ssize_t axis1) except +translate_exception
    # Moves one axis to position `destination` and keeps the order of the others, as in torch.movedim.
    T[:] movedim "interop::memview::Rank<1>::movedim"[T](
        T[:] view, Py_ssize_t source, Py_ssize_t destination) except +translate_exception
    T[:, :] movedim "interop::memview::Rank<2>::movedim"[T](
        T[:, :] view, Py_ssize_t source, Py_ssize_t destination) except +translate_exception
    T[:, :, :] movedim "interop::memview::Rank<3>::movedim"[T](
        T[:, :, :] view, Py_ssize_t source, Py_ssize_t destination) except +translate_exception
    T[:, :, :, :] movedim "interop::memview::Rank<4>::movedim"[T](
        T[:, :, :, :] view, Py_ssize_t source, Py_ssize_t destination) except +translate_exception
    T[:, :, :, :, :] movedim "interop::memview::Rank<5>::movedim"[T](
        T[:, :, :, :, :] view, Py_ssize_t source, Py_ssize_t destination) except +translate_exception
    T[:, :, :, :, :, :] movedim "interop::memview::Rank<6>::movedim"[T](
        T[:, :, :, :, :, :] view, Py_ssize_t source, Py_ssize_t destination) except +translate_exception
    T[:, :, :, :, :, :, :] movedim "interop::memview::Rank<7>::movedim"[T](
        T[:, :, :, :, :, :, :] view, Py_ssize_t source, Py_ssize_t destination) except +translate_exception
