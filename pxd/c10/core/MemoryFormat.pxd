cdef extern from "c10/core/MemoryFormat.h" namespace "c10" nogil:
    enum class MemoryFormat "c10::MemoryFormat":
        Contiguous
        Preserve
        ChannelsLast
        ChannelsLast3d
