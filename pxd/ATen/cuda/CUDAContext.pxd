# Facade over interop/cuda/context.h: torch's header compiles only if CUDA's own headers are installed.
#
# The properties of a CUDA device.
from libcpp cimport bool as cbool

from c10.core.Device cimport DeviceIndex
from interop.exceptions cimport translate_exception

cdef extern from "interop/cuda/context.h" namespace "interop::cuda" nogil:
    # CUDA's own struct, with the fields that all releases since 12 have.
    cppclass cudaDeviceProp:
        const char* name
        size_t totalGlobalMem
        size_t sharedMemPerBlock
        size_t sharedMemPerBlockOptin
        size_t sharedMemPerMultiprocessor
        size_t totalConstMem
        int major
        int minor
        int multiProcessorCount
        int warpSize
        int maxThreadsPerBlock
        int maxThreadsDim[3]
        int maxGridSize[3]
        int maxThreadsPerMultiProcessor
        int maxBlocksPerMultiProcessor
        int regsPerBlock
        int regsPerMultiprocessor
        int l2CacheSize
        int persistingL2CacheMaxSize
        int memoryBusWidth
        int asyncEngineCount
        int unifiedAddressing
        int managedMemory
        int concurrentManagedAccess
        int concurrentKernels
        int cooperativeLaunch
        int canMapHostMemory
        int integrated
        int isMultiGpuBoard
        int ECCEnabled
        int pciBusID
        int pciDeviceID
        int pciDomainID

    # False if torch finds no device or is built without CUDA.
    cbool is_available() noexcept
    # torch's copy, read once per process.
    const cudaDeviceProp* getCurrentDeviceProperties() except +translate_exception
    const cudaDeviceProp* getDeviceProperties(DeviceIndex device) except +translate_exception
    # The number of threads in a warp on the current device.
    int warp_size() except +translate_exception
    # Whether one device can read the memory of another.
    cbool canDeviceAccessPeer(DeviceIndex device, DeviceIndex peer_device) except +translate_exception
