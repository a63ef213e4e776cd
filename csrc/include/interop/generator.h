// at::Generator whose methods raise where at::Generator's would read a null pointer.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <mutex>
#include <utility>

namespace interop {

// A default-constructed one has no state. ATen's functions take it for the device's default generator.
//
// torch's generators are not thread-safe. Each method that uses the state locks it, as ATen's operators do while they
// draw, except random() and random64().
class Generator : public at::Generator {
 public:
  Generator() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): what ATen returns
  Generator(at::Generator generator) noexcept : at::Generator(std::move(generator)) {}

  uint64_t current_seed() const {
    return locked()->current_seed();
  }
  void set_current_seed(uint64_t seed) {
    locked()->set_current_seed(seed);
  }
  // Seeds from the system's randomness and returns the seed.
  uint64_t seed() {
    return locked()->seed();
  }
  at::Tensor get_state() const {
    const auto implementation = locked();
    return at::Generator::get_state();
  }
  void set_state(const at::Tensor& state) {
    const auto implementation = locked();
    TORCH_CHECK_TYPE(state.defined(), "argument 'state' must be a tensor, got an undefined one (None)");
    at::Generator::set_state(state);
  }
  Generator clone() const {
    const auto implementation = locked();
    return at::Generator::clone();
  }
  c10::Device device() const {
    check();
    return at::Generator::device();
  }
  // For a kernel that draws numbers itself on the CPU: call lock() once, random() any number of times, then unlock().
  void lock() {
    check();
    at::Generator::mutex().lock();
  }
  void unlock() {
    check();
    at::Generator::mutex().unlock();
  }
  uint32_t random() {
    return cpu()->random();
  }
  uint64_t random64() {
    return cpu()->random64();
  }

 private:
  // The implementation, locked for the lifetime of this object.
  class Locked {
   public:
    explicit Locked(c10::GeneratorImpl* implementation)
        : implementation_(implementation), lock_(implementation->mutex_) {}
    c10::GeneratorImpl* operator->() const noexcept {
      return implementation_;
    }

   private:
    c10::GeneratorImpl* implementation_;
    std::lock_guard<std::mutex> lock_;
  };

  void check() const {
    TORCH_CHECK_VALUE(
        defined(),
        "the generator is undefined, so it has no state; take default_generator() or make_cpu_generator(seed)");
  }
  at::CPUGeneratorImpl* cpu() const {
    check();
    TORCH_CHECK_VALUE(
        at::Generator::device().is_cpu(), "numbers can be drawn here only from a generator of the CPU, got one of ",
        at::Generator::device());
    return get<at::CPUGeneratorImpl>();
  }
  Locked locked() const {
    check();
    return Locked(unsafeGetGeneratorImpl());
  }
};

// The CPU's default generator, which torch.manual_seed() seeds.
inline Generator default_generator() {
  return at::detail::getDefaultCPUGenerator();
}

inline Generator make_cpu_generator(uint64_t seed) {
  return at::detail::createCPUGenerator(seed);
}

inline at::Tensor get_state(const Generator& generator) {
  return generator.get_state();
}
inline void set_state(Generator& generator, const at::Tensor& state) {
  generator.set_state(state);
}

}  // namespace interop
