"""The dtype to which the inputs of an operation promote is torch's, for all dtypes and kinds of input."""

import pytest
import torch

import interop

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::UserWarning")]

# The header of torch's own function, which interop/promotion.h avoids.
COMPARED = """
#include <ATen/native/TypeProperties.h>

#include "interop/promotion.h"

static const c10::ScalarType none = c10::ScalarType::Undefined;

// Undefined if torch raises.
static c10::ScalarType of_torch(const std::vector<const at::Tensor*>& inputs) {
  try {
    at::native::ResultTypeState state;
    for (const at::Tensor* input : inputs) {
      state = at::native::update_result_type_state(*input, state);
    }
    return at::native::result_type(state);
  } catch (const c10::Error&) {
    return none;
  }
}

static c10::ScalarType ours(const std::vector<const at::Tensor*>& inputs) {
  try {
    interop::detail::Promotion promotion;
    for (const at::Tensor* input : inputs) {
      promotion.add(*input);
    }
    return promotion.dtype();
  } catch (const c10::Error&) {
    return none;
  }
}

// The sets of three inputs, and the first of them for which the functions differ.
static std::pair<long, std::string> compare(const std::vector<at::Tensor>& all) {
  long sets = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = i; j < all.size(); ++j) {
      for (size_t k = j; k < all.size(); ++k) {
        const std::vector<const at::Tensor*> inputs{&all[i], &all[j], &all[k]};
        const auto expected = of_torch(inputs), got = ours(inputs);
        ++sets;
        if (expected != got) {
          std::string message = std::string(c10::toString(expected)) + ", not " + c10::toString(got) + ", of";
          for (const at::Tensor* input : inputs) {
            const bool is_number = input->unsafeGetTensorImpl()->is_wrapped_number();
            message += std::string(input->dim() ? " a tensor of " : is_number ? " a number of " : " one value of ");
            message += c10::toString(input->scalar_type());
          }
          return {sets, message};
        }
      }
    }
  }
  return {sets, ""};
}

static void make_number(const at::Tensor& tensor) {
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
}
"""
SOURCE = """
cimport ATen as at
cimport torch
import torch
from libcpp.string cimport string
from libcpp.utility cimport pair
from libcpp.vector cimport vector

cdef extern from *:
    pair[long, string] compare(const vector[at.Tensor]&) except +
    void make_number(const at.Tensor&)

def compared(list tensors, list numbers):
    cdef vector[at.Tensor] all
    for tensor in tensors:
        all.push_back(torch.unpack(tensor))
    for number in numbers:
        all.push_back(torch.unpack(torch.tensor(number)))
        make_number(all.back())
    found = compare(all)
    return found.first, (<bytes> found.second).decode()
"""
DTYPES = sorted({value for value in vars(torch).values() if isinstance(value, torch.dtype)}, key=str)


@pytest.mark.parametrize("default", [torch.float32, torch.float64], ids=str)
@pytest.mark.extended
def test_as_torch(jit_cache, default):
    """Tensors with dimensions, tensors without, and numbers, of every dtype."""
    module = interop.load_inline(SOURCE, COMPARED, name="promotion")
    inputs = [torch.empty(shape, dtype=dtype) for shape in ((), (1,)) for dtype in DTYPES]
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        sets, different = module.compared(inputs, [True, 3, 2.5, 1j])
    finally:
        torch.set_default_dtype(before)
    assert not different
    assert sets > 100_000
