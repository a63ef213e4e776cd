"""Streams, events and guards of any device. Each function uses a few declarations, and says what they said."""
cimport ATen as at
cimport torch
from c10.core.CachingDeviceAllocator cimport DeviceStats, Stat, StatArray, StatType
from c10.core.Device cimport Device, DeviceIndex, DeviceType
from c10.core.DeviceGuard cimport DeviceGuard
from c10.core.Event cimport Event, EventFlag
from c10.core.Stream cimport Stream, StreamId
from c10.core.StreamGuard cimport StreamGuard
from interop.caching_allocator cimport (
    emptyCache, getDeviceStats, getMemoryInfo, recordStream, resetAccumulatedStats, resetPeakStats,
)
from interop.device_guard cimport (
    current_device as current_device_, device_count as device_count_, device_synchronize, set_device as set_device_,
)
from interop.stream cimport record_stream as record_stream_
from interop.stream cimport (
    current_stream, default_stream, set_current_stream as set_current_stream_, stream_from_pool,
)
from interop.cuda cimport Launch
from libc.stdint cimport intptr_t


cdef Stream stream_of(torch.device where, StreamId number) except *:
    """Of the number; of the current device where `where` has no index."""
    cdef Device device = where.device
    if not device.has_index() and not device.is_cpu():
        device = current_device_(device.type())
    return Stream.unpack3(number, device.index(), device.type())


cdef seen(const Stream& stream):
    cdef Stream s = stream
    return s.device().str().decode(), s.id()


cdef text(Device device):
    return device.str().decode()


def device_count(torch.device where not None):
    return device_count_(where.device.type())


def current_device(torch.device where not None):
    return text(current_device_(where.device.type()))


def set_device(torch.device where not None):
    set_device_(where.device)


def synchronize(torch.device where not None):
    with nogil:
        device_synchronize(where.device)


def current(torch.device where not None):
    return seen(current_stream(where.device))


def default(torch.device where not None):
    return seen(default_stream(where.device))


def pool(torch.device where not None, high_priority=None):
    if high_priority is None:
        return seen(stream_from_pool(where.device))
    return seen(stream_from_pool(where.device, <bint>high_priority))


def set_current_stream(torch.device where not None, StreamId number):
    set_current_stream_(stream_of(where, number))


def of_python(torch.Stream stream not None):
    """torch.Stream -> Stream -> torch.Stream."""
    cdef Stream s = Stream.unpack3(
        stream.stream_id, <DeviceIndex>stream.device_index, <DeviceType><int>stream.device_type)
    return torch.wrap_stream(s.id(), s.device())


def unpack(int number, int index, int device_type):
    return seen(Stream.unpack3(number, <DeviceIndex>index, <DeviceType>device_type))


def set_index(torch.device where not None, int index):
    cdef DeviceGuard guard = DeviceGuard(where.device)
    guard.set_index(<DeviceIndex>index)


def about_stream(torch.device where not None, StreamId number):
    cdef Stream s = stream_of(where, number)
    cdef Stream other = s
    return (
        s.defined(), text(s.device()), s.device_type() == where.device.type(), s.device_index(), s.id(), s == other,
        s != Stream.unpack3(number + 1, s.device_index(), s.device_type()),
    )


def native_handle(torch.device where not None, StreamId number):
    return <intptr_t>stream_of(where, number).native_handle()


def query(torch.device where not None, StreamId number):
    return stream_of(where, number).query()


def synchronize_stream(torch.device where not None, StreamId number):
    cdef Stream s = stream_of(where, number)
    with nogil:
        s.synchronize()


def is_capturing(torch.device where not None, StreamId number):
    return stream_of(where, number).is_capturing()


def unassigned_stream(what):
    cdef Stream s
    cdef Event event
    if what == "defined":
        return s.defined()
    if what == "device":
        return text(s.device())
    if what == "query":
        return s.query()
    if what == "synchronize":
        s.synchronize()
    if what == "wait":
        s.wait(event)
    if what == "record":
        event.record(s)


def unassigned_stream_guard():
    cdef Stream s
    cdef StreamGuard guard = StreamGuard(s)
    return seen(guard.current_stream())


def event(torch.device where not None):
    """Everything that an event can do, on the streams 1 and 2."""
    cdef DeviceType type = where.device.type()
    cdef Event e = Event(type, EventFlag.BACKEND_DEFAULT)
    cdef Event later = Event(type, EventFlag.BACKEND_DEFAULT)
    cdef Stream first = stream_of(where, 1), second = stream_of(where, 2)
    said = [
        e.query(), e.was_marked_for_recording(), text(e.device()), e.device_index(), <intptr_t>e.eventId(),
        e.flag() == EventFlag.BACKEND_DEFAULT, e.device_type() == type,
    ]
    e.block(second)
    e.synchronize()
    e.record(first)
    e.recordOnce(second)
    second.wait(e)
    e.block(second)
    e.synchronize()
    later.recordOnce(first)
    later.record(first)
    later.record(first)
    return said + [
        e.query(), e.was_marked_for_recording(), text(e.device()), e.device_index(), <intptr_t>e.eventId() != 0,
        e.elapsedTime(later),
    ]


def assigned_event(torch.device where not None):
    """One that is recorded and another in its place."""
    cdef Event e
    e.record(stream_of(where, 1))
    e = Event(where.device.type())
    return e.was_marked_for_recording()


def record(torch.device where not None):
    cdef Event e
    e.record(stream_of(where, 1))
    return e.query(), e.flag() == EventFlag.PYTORCH_DEFAULT


def record_on_another(torch.device where not None, torch.device other not None):
    cdef Event e
    e.record(stream_of(where, 1))
    e.record(stream_of(other, 1))


def record_on_another_type(torch.device where not None):
    cdef Event e = Event(at.kXPU)
    e.record(stream_of(where, 1))


def wait_on_another_type(torch.device where not None, torch.device other not None):
    cdef Event e
    e.record(stream_of(where, 1))
    current_stream(other.device).wait(e)


def elapsed(torch.device where not None, bint timed, bint recorded):
    cdef EventFlag flag = EventFlag.BACKEND_DEFAULT if timed else EventFlag.PYTORCH_DEFAULT
    cdef Event a = Event(where.device.type(), flag), b = Event(where.device.type(), flag)
    if recorded:
        a.record(stream_of(where, 1))
        b.record(stream_of(where, 1))
    return a.elapsedTime(b)


def untyped_event():
    cdef Event e
    return text(e.device())


def within_device(torch.device where not None, action):
    cdef DeviceGuard guard = DeviceGuard(where.device)
    return action(), text(guard.original_device()), text(guard.current_device())


def within_device_of(torch.Tensor x not None, action):
    cdef DeviceGuard _guard = DeviceGuard(x.cdata.device())
    return action()


def within_stream(torch.device where not None, StreamId number, action):
    cdef StreamGuard guard = StreamGuard(stream_of(where, number))
    return (
        action(), seen(guard.original_stream()), seen(guard.current_stream()), text(guard.original_device()),
        text(guard.current_device()),
    )


def within_launch(torch.Tensor x not None, action):
    cdef Launch launch = Launch(x.cdata)
    return action(), <intptr_t>launch.stream()


def within_launch_on(torch.device where not None, action):
    cdef Launch launch = Launch(where.device)
    return action(), <intptr_t>launch.stream()


def one_after_another(torch.device where not None, torch.device other not None, action):
    """Guards that are begun twice, moved on, and ended early. What `action` says in each."""
    cdef DeviceGuard device = DeviceGuard(where.device)
    said = [action()]
    device = DeviceGuard(other.device)
    said += [action()]
    device.reset_device(where.device)
    said += [action()]
    device.set_index(other.device.index())
    said += [action()]
    device.reset()
    said += [action()]
    device.reset_device(where.device)
    said += [action()]
    device.reset()
    cdef StreamGuard stream = StreamGuard(stream_of(where, 1))
    said += [action()]
    stream = StreamGuard(stream_of(other, 2))
    said += [action()]
    stream.reset_stream(stream_of(where, 3))
    said += [action()]
    stream.reset()
    return said + [action()]


def refused_in_its_place(torch.device where not None, torch.device wrong not None, action):
    """A guard that is begun again with a device that is rejected: what `action` says then."""
    cdef DeviceGuard _guard = DeviceGuard(where.device)
    try:
        _guard = DeviceGuard(wrong.device)
    except ValueError:
        return action()


def empty_guards(bint device):
    cdef DeviceGuard device_guard = DeviceGuard()
    cdef StreamGuard stream_guard = StreamGuard()
    return text(device_guard.current_device()) if device else seen(stream_guard.current_stream())


cdef tuple said_of(const Stat& stat):
    return stat.current, stat.peak, stat.allocated, stat.freed


def statistics(torch.device where not None):
    """All fields, in the order in which they are declared."""
    cdef DeviceStats s = getDeviceStats(where.device)
    cdef StatArray allocated = s.allocated_bytes
    arrays = [
        said_of(s.allocation[0]), said_of(s.segment[0]), said_of(s.active[0]), said_of(s.inactive_split[0]),
        said_of(allocated[<size_t>StatType.AGGREGATE]), said_of(s.reserved_bytes[<size_t>StatType.SMALL_POOL]),
        said_of(s.active_bytes[<size_t>StatType.LARGE_POOL]), said_of(s.inactive_split_bytes[0]),
        said_of(s.requested_bytes[0]), said_of(s.oversize_allocations), said_of(s.oversize_segments),
    ]
    counts = [
        s.num_alloc_retries, s.num_ooms, s.num_sync_all_streams, s.num_device_alloc, s.num_device_free,
        s.max_split_size,
    ]
    return arrays, counts


def memory_info(torch.device where not None):
    return getMemoryInfo(where.device)


def reset_peak(torch.device where not None):
    resetPeakStats(where.device)


def reset_accumulated(torch.device where not None):
    resetAccumulatedStats(where.device)


def empty_cache(torch.device where not None):
    emptyCache(where.device.type())


def record_storage(torch.Tensor x not None, torch.device where not None):
    recordStream(x.cdata.storage(), stream_of(where, 1))


def record_no_storage(torch.device where not None):
    cdef at.Storage storage
    recordStream(storage, stream_of(where, 1))


def record_stream(torch.Tensor x not None, torch.device where not None):
    record_stream_(x.cdata, stream_of(where, 1))


def record_no_tensor(torch.device where not None):
    cdef at.Tensor x
    record_stream_(x, stream_of(where, 1))


# On streams that there are: for tests on a GPU.

def elapsed_on(torch.device where not None, StreamId number, action):
    """Milliseconds that what `action` gives to the stream takes."""
    cdef Event a = Event(where.device.type(), EventFlag.BACKEND_DEFAULT), b = Event(
        where.device.type(), EventFlag.BACKEND_DEFAULT)
    a.record(stream_of(where, number))
    action()
    b.record(stream_of(where, number))
    b.synchronize()
    return a.elapsedTime(b)


def record_stream_on(torch.Tensor x not None, StreamId number):
    record_stream_(x.cdata, Stream.unpack3(number, x.cdata.get_device(), x.cdata.device().type()))
