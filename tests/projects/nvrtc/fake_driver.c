// A libcuda.so.1 that launches nothing and remembers everything. Tests read and set its state through ctypes.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define MAX_PARAMETERS 32
#define MAX_BYTES 64

// What was requested from the driver.
int fake_loads, fake_unloads, fake_launches, fake_context_sets, fake_shared_sets;
char fake_code[256], fake_kernel[256];
unsigned fake_grid[3], fake_block[3], fake_shared_bytes;
size_t fake_stream;
unsigned char fake_arguments[MAX_PARAMETERS][MAX_BYTES];
int fake_shared_allowed, fake_shared_device, fake_capture_mode;

// What the driver is to say.
size_t fake_parameter_sizes[MAX_PARAMETERS];
int fake_parameter_count;
int fake_capturing;
char fake_failing[64];  // this function returns fake_error
int fake_error;
char fake_log[256];

// A context belongs to a thread.
static __thread void* current_context;

static int result_of(const char* function) {
  return strcmp(fake_failing, function) == 0 ? fake_error : 0;
}

int cuInit(unsigned flags) {
  return result_of("cuInit");
}

int cuGetErrorName(int error, const char** name) {
  *name = error == 1 ? "CUDA_ERROR_INVALID_VALUE" : error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : NULL;
  return *name ? 0 : 1;
}

int cuGetErrorString(int error, const char** text) {
  *text = error == 1 ? "invalid argument" : error == 700 ? "an illegal memory access was encountered" : NULL;
  return *text ? 0 : 1;
}

int cuCtxGetCurrent(void** context) {
  *context = current_context;
  return 0;
}

int cuCtxSetCurrent(void* context) {
  ++fake_context_sets;
  current_context = context;
  return result_of("cuCtxSetCurrent");
}

int cuCtxGetDevice(int* device) {
  *device = (int)(size_t)current_context - 100;
  return current_context ? 0 : 201;
}

int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = (void*)(size_t)(100 + device);
  return result_of("cuDevicePrimaryCtxRetain");
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  return 0;
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
  int before = fake_capture_mode;
  fake_capture_mode = *mode;
  *mode = before;
  return 0;
}

int cuLibraryLoadData(
    void** library, const char* code, int* options, void** values, unsigned count, int* o, void** v, unsigned n) {
  for (unsigned i = 0; i + 1 < count; ++i) {
    if (options[i] == 5) {
      snprintf(values[i], (size_t)values[i + 1], "%s", fake_log);
    }
  }
  if (result_of("cuLibraryLoadData")) {
    return fake_error;
  }
  ++fake_loads;
  snprintf(fake_code, sizeof fake_code, "%s", code);
  *library = (void*)(size_t)(0x1000 + fake_loads);
  return 0;
}

int cuLibraryUnload(void* library) {
  // With another mode, a capture on another thread would forbid it.
  fake_unloads += fake_capture_mode == 2 ? 1 : 1000;
  return 0;
}

int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  snprintf(fake_kernel, sizeof fake_kernel, "%s", name);
  *kernel = fake_kernel;
  return result_of("cuLibraryGetKernel");
}

int cuKernelSetAttribute(int attribute, int value, void* kernel, int device) {
  ++fake_shared_sets;
  fake_shared_allowed = attribute == 8 ? value : -1;
  fake_shared_device = device;
  return result_of("cuKernelSetAttribute");
}

#ifndef WITHOUT_PARAMETERS
int cuKernelGetParamInfo(void* kernel, size_t index, size_t* offset, size_t* size) {
  if (result_of("cuKernelGetParamInfo")) {
    return fake_error;
  }
  if (index >= (size_t)fake_parameter_count) {
    return 1;
  }
  *offset = 0;
  *size = fake_parameter_sizes[index];
  return 0;
}
#endif

int cuStreamIsCapturing(void* stream, int* status) {
  *status = fake_capturing;
  return 0;
}

int cuLaunchKernel(
    void* kernel,
    unsigned grid_x,
    unsigned grid_y,
    unsigned grid_z,
    unsigned block_x,
    unsigned block_y,
    unsigned block_z,
    unsigned shared_bytes,
    void* stream,
    void** parameters,
    void** extra) {
  if (!current_context) {
    return 201;  // CUDA_ERROR_INVALID_CONTEXT
  }
  if (result_of("cuLaunchKernel")) {
    return fake_error;
  }
  ++fake_launches;
  unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
  memcpy(fake_grid, grid, sizeof grid);
  memcpy(fake_block, block, sizeof block);
  fake_shared_bytes = shared_bytes;
  fake_stream = (size_t)stream;
  for (int i = 0; i < fake_parameter_count; ++i) {
    memcpy(fake_arguments[i], parameters[i], fake_parameter_sizes[i]);
  }
  return 0;
}
