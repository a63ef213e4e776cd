// at::Tensor as a handle of torch's C interface, and conversions between it and its Python object.
#pragma once

#include <Python.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "c10/core/Device.h"
#include "c10/core/Layout.h"
#include "c10/core/MemoryFormat.h"
#include "c10/core/ScalarType.h"
#include "c10/core/TensorOptions.h"
#include "c10/util/ArrayRef.h"
#include "interop/callback.h"
#include "interop/device.h"
#include "interop/gil.h"
#include "interop/owned_ref.h"
#include "interop/scalar_type_of.h"
#include "interop/stable/errors.h"
#include "interop/stable/shim.h"

namespace c10 {
class Scalar;
}

namespace interop::stable {

class Tensor;
class TensorField;

// The metadata that the C interface reports for a tensor, for classes that have a handle. The semantics are ATen's.
template <class Self>
class Metadata {
 public:
#define INTEROP_GETTER(type, name, function)         \
  type name() const {                                \
    type result;                                     \
    INTEROP_CALL(function, tensor().get(), &result); \
    return result;                                   \
  }
  INTEROP_GETTER(int64_t, dim, aoti_torch_get_dim)
  INTEROP_GETTER(int64_t, ndimension, aoti_torch_get_dim)
  INTEROP_GETTER(int64_t, numel, aoti_torch_get_numel)
  INTEROP_GETTER(int64_t, storage_offset, aoti_torch_get_storage_offset)
  INTEROP_GETTER(bool, is_contiguous, aoti_torch_is_contiguous)
#undef INTEROP_GETTER

  int64_t size(int64_t dim) const {
    int64_t result;
    INTEROP_CALL(aoti_torch_get_size, tensor().get(), dim, &result);
    return result;
  }
  int64_t stride(int64_t dim) const {
    int64_t result;
    INTEROP_CALL(aoti_torch_get_stride, tensor().get(), dim, &result);
    return result;
  }
  // Borrowed from the tensor, until it is resized.
  at::IntArrayRef sizes() const {
    int64_t* result;
    INTEROP_CALL(aoti_torch_get_sizes, tensor().get(), &result);
    return {result, static_cast<size_t>(dim())};
  }
  at::IntArrayRef strides() const {
    int64_t* result;
    INTEROP_CALL(aoti_torch_get_strides, tensor().get(), &result);
    return {result, static_cast<size_t>(dim())};
  }
  at::ScalarType scalar_type() const {
    int32_t result;
    INTEROP_CALL(aoti_torch_get_dtype, tensor().get(), &result);
    return static_cast<at::ScalarType>(result);
  }
  caffe2::TypeMeta dtype() const {
    return caffe2::TypeMeta(scalar_type());
  }
  at::Layout layout() const {
    int32_t result;
    INTEROP_CALL(aoti_torch_get_layout, tensor().get(), &result);
    return static_cast<at::Layout>(result);
  }
  c10::DeviceType device_type() const {
    int32_t result;
    INTEROP_CALL(aoti_torch_get_device_type, tensor().get(), &result);
    return static_cast<c10::DeviceType>(result);
  }
  c10::DeviceIndex get_device() const {
    int32_t result;
    INTEROP_CALL(aoti_torch_get_device_index, tensor().get(), &result);
    return static_cast<c10::DeviceIndex>(result);
  }
  c10::Device device() const {
    const c10::DeviceType type = device_type();
    return {type, type == c10::kCPU ? c10::DeviceIndex{-1} : get_device()};
  }
  at::TensorOptions options() const {
    return at::TensorOptions(scalar_type()).layout(layout()).device(device());
  }
  size_t itemsize() const {
    return c10::elementSize(scalar_type());
  }
  int64_t element_size() const {
    return static_cast<int64_t>(itemsize());
  }
  size_t nbytes() const {
    return static_cast<size_t>(numel()) * itemsize();
  }
  bool is_complex() const {
    return c10::isComplexType(scalar_type());
  }
  bool is_floating_point() const {
    return c10::isFloatingType(scalar_type());
  }
  bool is_cpu() const {
    return device_type() == c10::kCPU;
  }
  bool is_cuda() const {
    return device_type() == c10::kCUDA;
  }
  bool is_meta() const {
    return device_type() == c10::kMeta;
  }
  bool is_sparse() const {
    return layout() == c10::kSparse;
  }
  bool is_sparse_csr() const {
    return layout() == c10::kSparseCsr;
  }
  bool is_mkldnn() const {
    return layout() == c10::kMkldnn;
  }
  bool is_quantized() const {
    return c10::isQIntType(scalar_type());
  }

  // The tensor itself if its memory is already in this order, else a copy.
  Tensor contiguous(at::MemoryFormat memory_format = at::kContiguous) const;

  // t[i]: a view at one index of the first dimension, or a copy of the rows that an index tensor lists.
  Tensor operator[](int64_t index) const;
  Tensor operator[](const Tensor& index) const;

  // The value of a one-element tensor. Synchronises with the device.
  template <class T>
  T item() const;
  c10::Scalar item() const;

  // Borrowed from the storage, without conversion.
  const void* const_data_ptr() const {
    const void* result;
    INTEROP_CALL(torch_get_const_data_ptr, tensor().get(), &result);
    return result;
  }
  void* mutable_data_ptr() const {
    void* result;
    INTEROP_CALL(torch_get_mutable_data_ptr, tensor().get(), &result);
    return result;
  }
  void* data_ptr() const {
    return mutable_data_ptr();
  }
  // Raises RuntimeError if T is not the tensor's element type, as in torch.
  template <class T>
  const T* const_data_ptr() const {
    check_element<T>();
    return static_cast<const T*>(const_data_ptr());
  }
  template <class T>
  T* mutable_data_ptr() const {
    check_element<T>();
    return static_cast<T*>(mutable_data_ptr());
  }
  template <class T>
  T* data_ptr() const {
    return mutable_data_ptr<T>();
  }

 private:
  // The tensor itself, or a temporary Tensor that lasts for the calling expression.
  decltype(auto) tensor() const {
    return static_cast<const Self*>(this)->as_tensor();
  }
  template <class T>
  void check_element() const;
};

template <class Self>
template <class T>
void Metadata<Self>::check_element() const {
  const at::ScalarType type = scalar_type();
  if (type != scalar_type_of<T>()) [[unlikely]] {
    raise(
        Kind::runtime, "expected scalar type ", c10::toString(scalar_type_of<T>()), " but found ", c10::toString(type));
  }
}

// A tensor, usually owned. Null by default: an undefined tensor, which costs nothing. A move leaves an owned tensor
// null.
class Tensor : public Metadata<Tensor> {
 public:
  Tensor() noexcept = default;
  // Takes ownership of the handle, or borrows it for as long as its owner keeps it.
  explicit Tensor(AtenTensorHandle handle, bool owned = true) noexcept : handle_(handle), owned_(owned) {}
  // Owned, unlike the conversion in an argument: std::vector, optional and pair construct their elements in this way
  // and keep them.
  explicit Tensor(const TensorField& field);
  Tensor(const Tensor& other) : handle_(other.new_handle()) {}
  Tensor(Tensor&& other) : handle_(other.owned_ ? std::exchange(other.handle_, nullptr) : other.new_handle()) {}
  Tensor& operator=(const Tensor& other) {
    return *this = Tensor(other);
  }
  Tensor& operator=(Tensor&& other) {
    Tensor taken(std::move(other));  // a borrowed tensor becomes owned
    std::swap(handle_, taken.handle_);
    std::swap(owned_, taken.owned_);
    return *this;
  }
  ~Tensor() {
    if (owned_ && handle_) {
      shim.aoti_torch_delete_tensor_object(handle_);
    }
  }

  // The handle, for a function of the C interface that requires a tensor.
  AtenTensorHandle get() const {
    if (!handle_) [[unlikely]] {
      raise(Kind::type, "the tensor is undefined (None)");
    }
    return handle_;
  }
  bool defined() const {
    bool result = false;
    if (handle_) {
      INTEROP_CALL(aoti_torch_is_defined, handle_, &result);
    }
    return result;
  }
  const Tensor& as_tensor() const noexcept {
    return *this;
  }
  bool is_null() const noexcept {
    return handle_ == nullptr;
  }
  void reset() {
    *this = Tensor();
  }
  // A new reference to the same tensor, which the caller owns. Null stays null.
  AtenTensorHandle new_handle() const {
    AtenTensorHandle result = nullptr;
    if (handle_) {
      INTEROP_CALL(aoti_torch_new_tensor_handle, handle_, &result);
    }
    return result;
  }
  // The same tensor without a reference of its own.
  Tensor borrowed() const noexcept {
    return Tensor(handle_, false);
  }

  struct Pointer;
  Pointer getIntrusivePtr() const;

  const Tensor& set_requires_grad(bool requires_grad) const {
    INTEROP_CALL(torch_set_requires_grad, get(), requires_grad);
    return *this;
  }
  bool requires_grad() const;
  bool is_same(const Tensor& other) const;

 private:
  AtenTensorHandle handle_ = nullptr;
  bool owned_ = true;
};

// See interop/method.h.
struct Tensor::Pointer {
  Tensor tensor;
};
inline Tensor::Pointer Tensor::getIntrusivePtr() const {
  return {borrowed()};
}

// ---- Conversions from and to Python. All need the GIL. official(), requires_grad() and is_same() acquire it.

inline bool is_tensor(PyObject* object) noexcept {
  return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(tensor_type));
}

// Gets a handle through torch._C._aoti, in releases without a better function.
__attribute__((cold)) Tensor by_capsule(PyObject* object);

// An attribute of a tensor, or with `call` what the method returns, that __torch_function__ and modes do not see, as
// they do not see ATen's. Needs the GIL.
__attribute__((cold)) OwnedRef without_torch_function(PyObject* object, const char* name, bool call);

// The owned tensor of an object that passed is_tensor(), from torch's own functions. Those trust isinstance(), to
// which an object can lie, so no other object may be passed.
inline Tensor official(PyObject* object) {
  const Gil gil;
  if (!shim.torch_tensor_from_pyobject) {
    return by_capsule(object);
  }
  AtenTensorHandle handle = nullptr;
  INTEROP_CALL(torch_tensor_from_pyobject, object, &handle);
  return Tensor(handle);
}

// x.cdata: the memory behind the object header of a torch.Tensor, which Cython sees as a field. If the import found
// the at::Tensor itself there, its address is the handle, and nothing is copied. Otherwise each use asks torch for a
// handle.
class TensorField : public Metadata<TensorField> {
 public:
  TensorField(const TensorField&) = delete;  // only its address has a meaning
  TensorField& operator=(const TensorField&) = delete;

  // Borrowed in an argument. A variable that it is assigned to owns a reference. One that C++ initialises with it,
  // `Tensor t = x->cdata` or a field in braces, borrows; Cython writes neither.
  operator Tensor() const {
    return borrows ? Tensor(address(), false) : official(object());
  }
  operator at::TensorOptions() const = delete;

  Tensor as_tensor() const {
    return *this;
  }
  bool defined() const {
    return as_tensor().defined();
  }
  Tensor::Pointer getIntrusivePtr() const {
    return {as_tensor()};
  }
  bool requires_grad() const {
    return as_tensor().requires_grad();
  }
  bool is_same(const Tensor& other) const {
    return as_tensor().is_same(other);
  }

 private:
  AtenTensorHandle address() const noexcept {
    return reinterpret_cast<AtenTensorHandle>(const_cast<TensorField*>(this));
  }
  PyObject* object() const noexcept {
    return reinterpret_cast<PyObject*>(reinterpret_cast<char*>(const_cast<TensorField*>(this)) - sizeof(PyObject));
  }
};

inline Tensor::Tensor(const TensorField& field) {
  *this = field.as_tensor();
}

// Also through torch._C._aoti. Despite its name, the function copies the tensor behind the handle and leaves the
// handle to us.
__attribute__((cold)) PyObject* wrapped_by_capsule(const Tensor& tensor);

// A new reference to the tensor's torch.Tensor, created if there is none yet. None if undefined.
inline PyObject* wrap(const Tensor& tensor) {
  if (!tensor.defined()) {
    return Py_NewRef(Py_None);
  }
  if (shim.torch_tensor_to_pyobject) {
    void* result = nullptr;
    INTEROP_CALL(torch_tensor_to_pyobject, tensor.get(), nullptr, &result);
    return static_cast<PyObject*>(result);
  }
  return wrapped_by_capsule(tensor);
}

// The tensor of any object. Raises TypeError if the object is not a torch.Tensor.
inline Tensor unpack(PyObject* object) {
  if (!is_tensor(object)) [[unlikely]] {
    const OwnedRef name(checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__")));
    raise_error(
        PyExc_TypeError, "argument 'obj' must be a torch.Tensor, got %S; make one with torch.as_tensor(obj) first",
        name.get());
  }
  return official(object);
}

inline bool Tensor::requires_grad() const {
  if (!defined()) {
    return false;
  }
  return in_python([&] {
    const OwnedRef object(wrap(*this));
    return PyObject_IsTrue(without_torch_function(object.get(), "requires_grad", false).get()) == 1;
  });
}

// Each tensor has one Python object.
inline bool Tensor::is_same(const Tensor& other) const {
  const Gil gil;
  const OwnedRef mine(wrap(*this)), others(wrap(other));
  return mine.get() == others.get();
}

}  // namespace interop::stable

namespace c10 {
using string_view = std::string_view;
}

namespace at {
using namespace c10;
using Tensor = interop::stable::Tensor;
using TensorBase = interop::stable::Tensor;
using TensorList = ArrayRef<Tensor>;
using ITensorListRef = ArrayRef<Tensor>;
}  // namespace at

namespace interop {

using stable::is_tensor;
using stable::unpack;
using stable::wrap;

}  // namespace interop

// The object struct of torch.Tensor, as Cython sees it. Cython names it without a namespace.
struct interop_THPVariable {
  PyObject ob_base;
  interop::stable::TensorField cdata;
};
