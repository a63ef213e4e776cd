// Faults on purpose, one of each kind that a checker must notice: a checker that misses one of them is blind.
//
// Every function keeps a name of its own in the report (noinline), and hands on what it reads, so that no optimiser
// may leave the fault out.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "interop/parallel.h"
#include "interop/tensor.h"

#define PLANTED [[gnu::noinline]] inline

namespace planted {

// For AddressSanitizer, the tensor for MALLOC_PERTURB_ as well.

PLANTED float read_past_end(const at::Tensor& tensor) {
  return tensor.const_data_ptr<float>()[tensor.numel()];
}

PLANTED float read_freed_tensor() {
  at::Tensor tensor = at::ones({1000});
  const float* data = tensor.const_data_ptr<float>();
  tensor.reset();
  return data[500];  // the first bytes are the allocator's own now
}

// What a function that returns a reference to its own copy hands out.
PLANTED const std::int64_t* address_of_local(std::int64_t value) {
  std::int64_t local = value;
  const std::int64_t* volatile address = &local;
  return address;
}

PLANTED std::int64_t read_dangling_reference() {
  return *address_of_local(7);
}

// Seen only while Python allocates with malloc.
PLANTED bool read_freed_object() {
  PyObject* tensor = interop::wrap(at::ones({10}));
  Py_DECREF(tensor);
  return reinterpret_cast<interop::THPVariable*>(tensor)->cdata.defined();
}

// For UndefinedBehaviorSanitizer.

PLANTED std::int64_t overflow(std::int64_t a, std::int64_t b) {
  return a + b;
}

PLANTED std::int64_t read_misaligned(const at::Tensor& bytes) {
  return *reinterpret_cast<const std::int64_t*>(bytes.const_data_ptr<std::uint8_t>() + 1);
}

PLANTED std::int64_t call_on_null(const at::Tensor* tensor) {
  return tensor->numel();
}

// For ThreadSanitizer.

inline std::int64_t counter = 0;

PLANTED void count(int rounds) {
  for (int i = 0; i < rounds; i++) {
    counter++;
  }
}

PLANTED std::int64_t race_of_cpp_threads() {
  std::thread first(count, 1000), second(count, 1000);
  first.join();
  second.join();
  return counter;
}

inline std::atomic<int> arrived = 0;

// For two Python threads that have released the GIL. They wait for each other: one that has taken the GIL again before
// the other released it would be ordered, and no race.
PLANTED void race_in_tensor(const at::Tensor& tensor) {
  float* data = tensor.mutable_data_ptr<float>();
  for (arrived++; arrived < 2;) {
  }
  data[0] += 1;
}

PLANTED void race_in_loop_part(std::int64_t begin, std::int64_t end, void* total) {
  *static_cast<std::int64_t*>(total) += end - begin;
}

PLANTED std::int64_t race_in_loop() {
  std::int64_t total = 0;
  interop::parallel_for(0, 1000, 1, race_in_loop_part, &total);
  return total;
}

// For the search for leaks. Each leaks at each call.

PLANTED void leak_memory() {
  char* volatile lost = new char[7777];
  lost = nullptr;
}

PLANTED std::int64_t leak_cpp_tensor() {
  return at::ones({10}).unsafeReleaseTensorImpl()->numel();
}

PLANTED void leak_reference(PyObject* borrowed) {
  Py_INCREF(borrowed);
}

}  // namespace planted
