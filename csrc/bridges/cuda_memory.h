// What only a torch with CUDA can do; without one it links, and raises.
#pragma once

#include <c10/core/Device.h>

namespace interop::bridges {

// torch makes its context when something needs it for the first time; a tensor over foreign memory does.
void initialise_cuda();

// The device on which memory lies, as CUDA says it. Raises ValueError for a pointer that CUDA does not know.
c10::Device device_of_pointer(void* pointer);

}  // namespace interop::bridges
