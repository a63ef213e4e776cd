// What CUDA must be asked about memory and streams. Without a CUDA build of torch it links, and raises.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace interop::bridges {

// torch makes its context when something needs it for the first time; a tensor over foreign memory does.
void initialise_cuda();

// The device on which memory lies, as CUDA says it. Raises ValueError for a pointer that CUDA does not know.
c10::Device device_of_pointer(void* pointer);

// The streams of those who exchange a GPU's memory. DLPack and the CUDA array interface number them alike: 1 is the
// legacy default stream, 2 the per-thread one, any other number the handle of a stream, a cudaStream_t. 0 is disallowed
// as ambiguous (array API, __dlpack__; CUDA array interface 3, stream).

// Raises ValueError for a number that can be none. `argument` is what the message is about.
void check_stream(int64_t number, const char* argument);

// Of the calling thread's current stream.
int64_t current_stream_number(const c10::Device& device);

// What the stream `number` is given from now on waits for what the current stream was given so far.
void let_stream_wait(const c10::Device& device, int64_t number);

// The other way round.
void wait_for_stream(const c10::Device& device, int64_t number);

}  // namespace interop::bridges
