// Queries CUDA about memory and streams. Without a CUDA build of torch, this links and raises.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace interop::bridges {

// Creates torch's CUDA context, which torch creates on first use. A tensor over foreign memory needs it.
void initialise_cuda();

// The device of the memory, as CUDA reports it. Raises ValueError for a pointer unknown to CUDA.
c10::Device device_of_pointer(void* pointer);

// Stream numbers for the exchange of GPU memory, the same in DLPack and the CUDA array interface: 1 is the legacy
// default stream, 2 the per-thread default stream, any other number a stream handle, a cudaStream_t. 0 is disallowed
// as ambiguous (array API, __dlpack__; CUDA array interface 3, stream).

// Raises ValueError for an invalid number. `argument` is the subject of the message.
void check_stream(int64_t number, const char* argument);

// The number of the thread's current stream.
int64_t current_stream_number(const c10::Device& device);

// Later work on the stream `number` waits for the work given to the current stream so far.
void let_stream_wait(const c10::Device& device, int64_t number);

// The other way round.
void wait_for_stream(const c10::Device& device, int64_t number);

}  // namespace interop::bridges
