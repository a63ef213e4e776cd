"""Calls every declaration of c10.cuda and ATen.cuda: a function of the same name for each."""
cimport ATen as at
cimport torch
from ATen.cuda cimport (
    assertNotCapturing as assertNotCapturing_, canDeviceAccessPeer as canDeviceAccessPeer_, cudaDeviceProp,
    currentStreamCaptureStatus as currentStreamCaptureStatus_,
    getCurrentDeviceProperties as getCurrentDeviceProperties_, getDeviceProperties as getDeviceProperties_,
    is_available as is_available_, warp_size as warp_size_,
)
from c10.core.CachingDeviceAllocator cimport DeviceStats
from c10.core.Device cimport Device
from c10.core.Stream cimport Stream
from c10.cuda cimport (
    CaptureStatus, CUDACachingAllocator, CUDAEvent, CUDAGuard as CUDAGuard_, CUDAStream,
    CUDAStreamGuard as CUDAStreamGuard_, ExchangeDevice as ExchangeDevice_, OptionalCUDAGuard as OptionalCUDAGuard_,
    OptionalCUDAStreamGuard as OptionalCUDAStreamGuard_, cudaEvent_t, cudaEventDefault, cudaEventDisableTiming,
    cudaStream_t, current_device as current_device_, currentStreamCaptureStatusMayInitCtx as MayInitCtx_,
    device_count as device_count_, device_count_ensure_non_zero as device_count_ensure_non_zero_,
    device_synchronize as device_synchronize_, getCurrentCUDAStream as getCurrentCUDAStream_,
    getDefaultCUDAStream as getDefaultCUDAStream_, getStreamFromExternal as getStreamFromExternal_,
    getStreamFromPool as getStreamFromPool_, hasPrimaryContext as hasPrimaryContext_, set_device as set_device_,
    setCurrentCUDAStream as setCurrentCUDAStream_,
)
from libc.stdint cimport intptr_t


cdef CUDAStream stream_1() except *:
    """One that is made of its number, which every build of torch can."""
    return CUDAStream(Stream.unpack3(1, 0, at.kCUDA))


cdef seen(const CUDAStream& stream):
    cdef CUDAStream s = stream
    return s.device().str().decode(), s.id()


cdef text(Device device):
    return device.str().decode()


# These are no errors where there is no device.

def device_count():
    return device_count_()


def is_available():
    return is_available_()


def unrecorded_event():
    cdef CUDAEvent e = CUDAEvent(cudaEventDisableTiming)
    cdef cudaEvent_t event = e.event()
    return e.isCreated(), event == NULL, e.query(), e.device_index()


# These are.

def device_count_ensure_non_zero():
    return device_count_ensure_non_zero_()


def current_device():
    return current_device_()


def set_device(index=0):
    set_device_(<int>index)


def ExchangeDevice(index=0):
    return ExchangeDevice_(<int>index)


def device_synchronize():
    with nogil:
        device_synchronize_()


def hasPrimaryContext():
    return hasPrimaryContext_(0)


def getCurrentCUDAStream(index=None):
    return seen(getCurrentCUDAStream_() if index is None else getCurrentCUDAStream_(<int>index))


def getDefaultCUDAStream(index=None):
    return seen(getDefaultCUDAStream_() if index is None else getDefaultCUDAStream_(<int>index))


def getStreamFromPool(isHighPriority=None, index=None):
    if isHighPriority is None:
        return seen(getStreamFromPool_())
    if index is None:
        return seen(getStreamFromPool_(<bint>isHighPriority))
    return seen(getStreamFromPool_(<bint>isHighPriority, <int>index))


def getStreamFromExternal():
    return seen(getStreamFromExternal_(NULL, 0))


def setCurrentCUDAStream():
    setCurrentCUDAStream_(stream_1())


def stream():
    cdef cudaStream_t stream = stream_1().stream()
    return <intptr_t>stream


def unwrap():
    """A CUDAStream is a Stream, and has what a Stream has."""
    cdef Stream unwrapped = stream_1().unwrap()
    return unwrapped.query()


def synchronize():
    cdef CUDAStream s = stream_1()
    with nogil:
        s.synchronize()


def priority():
    return stream_1().priority()


def priority_range():
    return CUDAStream.priority_range()


def CUDAGuard(index=0, action=None):
    cdef CUDAGuard_ guard = CUDAGuard_(<int>index)
    return action and action(), text(guard.original_device()), text(guard.current_device())


def CUDAGuard_of_device(torch.device where=torch.wrap_device(Device(at.kCUDA, 0)), action=None):
    cdef CUDAGuard_ _guard = CUDAGuard_(where.device)
    return action and action()


def OptionalCUDAGuard(index=0, action=None):
    """Not begun; then begun in each of the ways."""
    cdef OptionalCUDAGuard_ guard
    said = [action and action()]
    guard.set_index(<int>index)
    said += [action and action()]
    guard.reset()
    said += [action and action()]
    guard.set_device(Device(at.kCUDA, <int>index))
    said += [action and action()]
    guard.reset_device(Device(at.kCUDA, 0))
    return said + [action and action()]


def CUDAStreamGuard(action=None):
    cdef CUDAStreamGuard_ guard = CUDAStreamGuard_(stream_1())
    return (
        action and action(), seen(guard.original_stream()), seen(guard.current_stream()), text(guard.original_device()),
        text(guard.current_device()),
    )


def CUDAStreamGuard_of_stream(torch.device where=torch.wrap_device(Device(at.kCUDA, 0)), action=None):
    cdef CUDAStreamGuard_ _guard = CUDAStreamGuard_(Stream.unpack3(1, where.device.index(), where.device.type()))
    return action and action()


def OptionalCUDAStreamGuard(action=None):
    cdef OptionalCUDAStreamGuard_ guard
    said = [action and action()]
    guard.reset_stream(stream_1())
    said += [action and action()]
    guard.reset()
    return said + [action and action()]


def record():
    """On the current stream."""
    cdef CUDAEvent e
    e.record()
    return e.isCreated(), e.device_index()


def elapsed_time():
    cdef CUDAEvent a = CUDAEvent(cudaEventDefault), b = CUDAEvent(cudaEventDefault)
    cdef CUDAStream s = stream_1()
    a.record(s)
    a.recordOnce(s)
    b.record(s)
    b.record(s)
    s.wait(a)
    a.block(s)
    a.synchronize()
    return a.elapsed_time(b)


def getDeviceStats(index=0):
    cdef DeviceStats stats = CUDACachingAllocator.getDeviceStats(<int>index)
    return stats.allocated_bytes[0].peak, stats.num_ooms


def resetPeakStats():
    CUDACachingAllocator.resetPeakStats(0)


def resetAccumulatedStats():
    CUDACachingAllocator.resetAccumulatedStats(0)


def emptyCache():
    CUDACachingAllocator.emptyCache()


def getMemoryInfo():
    return CUDACachingAllocator.getMemoryInfo(0)


def getDeviceProperties():
    """All fields, in the order in which they are declared."""
    return properties(getDeviceProperties_(0))


cdef properties(const cudaDeviceProp* p):
    return (
        p.name.decode(), p.totalGlobalMem, p.sharedMemPerBlock, p.sharedMemPerBlockOptin,
        p.sharedMemPerMultiprocessor, p.totalConstMem, p.major, p.minor, p.multiProcessorCount, p.warpSize,
        p.maxThreadsPerBlock, (p.maxThreadsDim[0], p.maxThreadsDim[1], p.maxThreadsDim[2]),
        (p.maxGridSize[0], p.maxGridSize[1], p.maxGridSize[2]), p.maxThreadsPerMultiProcessor,
        p.maxBlocksPerMultiProcessor, p.regsPerBlock, p.regsPerMultiprocessor, p.l2CacheSize,
        p.persistingL2CacheMaxSize, p.memoryBusWidth, p.asyncEngineCount, p.unifiedAddressing, p.managedMemory,
        p.concurrentManagedAccess, p.concurrentKernels, p.cooperativeLaunch, p.canMapHostMemory, p.integrated,
        p.isMultiGpuBoard, p.ECCEnabled, p.pciBusID, p.pciDeviceID, p.pciDomainID,
    )


def getCurrentDeviceProperties():
    return properties(getCurrentDeviceProperties_())


def warp_size():
    return warp_size_()


def canDeviceAccessPeer():
    return canDeviceAccessPeer_(0, 1)


def currentStreamCaptureStatus():
    return currentStreamCaptureStatus_() == CaptureStatus.None_


def currentStreamCaptureStatusMayInitCtx():
    cdef CaptureStatus status = MayInitCtx_()
    return status == CaptureStatus.Active or status == CaptureStatus.Invalidated


def assertNotCapturing():
    assertNotCapturing_(b"a test")


# These need an argument of the test's.

def recordStream(torch.Tensor x not None):
    CUDACachingAllocator.recordStream(x.cdata.storage(), stream_1())


def CUDAStream_of(torch.device where not None):
    return seen(CUDAStream(Stream.unpack3(0, where.device.index(), where.device.type())))


def CUDAEvent_with(unsigned int flags):
    cdef CUDAEvent e = CUDAEvent(flags)
    return e.isCreated()


def unassigned(what):
    cdef CUDAStream s
    cdef CUDAStreamGuard_ _guard
    if what == "stream":
        return <intptr_t>s.stream()
    if what == "priority":
        return s.priority()
    _guard = CUDAStreamGuard_(s)
