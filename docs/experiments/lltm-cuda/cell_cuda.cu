// The LLTM cell on a GPU: everything but the matrix products, in one pass over memory forward and one backward.
#include "cell_cuda.h"

#include "interop/cuda/divide.cuh"
#include "interop/cuda/types.cuh"

namespace {

using namespace interop::cuda;

// ---- One element. Values are float where the tensors have 16 bits.

template <class V>
struct Gates {
  V i, o, z;
};

template <class V>
__device__ V sigmoid(V x) {
  return V(1) / (V(1) + exp(-x));
}

template <class V>
__device__ V elu(V x) {
  return x > V(0) ? x : expm1(x);
}

// i, o and z become their activations; c becomes the new one. Returns the new h.
template <class V>
__device__ V forward_cell(Gates<V>& gates, V& c) {
  gates = {sigmoid(gates.i), sigmoid(gates.o), elu(gates.z)};
  c += gates.z * gates.i;
  return tanh(c) * gates.o;
}

// The gradients of the gates before their activations; grad_c becomes that of the old c.
template <class V>
__device__ Gates<V> backward_cell(const Gates<V>& gates, V new_c, V grad_h, V& grad_c) {
  const V t = tanh(new_c);
  grad_c += grad_h * gates.o * (V(1) - t * t);
  return {
      grad_c * gates.z * (V(1) - gates.i) * gates.i,
      grad_h * t * (V(1) - gates.o) * gates.o,
      grad_c * gates.i * (gates.z > V(0) ? V(1) : gates.z + V(1)),
  };
}

// ---- Many elements. A thread computes `width` that lie next to one another in a row.

template <class T>
struct Matrix {
  const T* data;
  int64_t row_stride, column_stride;

  explicit Matrix(const Rows& rows)
      : data(static_cast<const T*>(rows.data)), row_stride(rows.row_stride), column_stride(rows.column_stride) {}

  // Whether vectors can be read from it.
  bool takes_vectors() const {
    return column_stride == 1 && row_stride % vector_width<T> == 0 && aligned(data);
  }

  template <int width>
  __device__ Vector<T, width> load(int64_t row, int64_t column) const {
    return Vector<T, width>::load(data + row * row_stride + (width == 1 ? column * column_stride : column));
  }
};

// Which elements are this thread's.
template <class Divider>
struct Place {
  Divider per_row;  // threads of a row
  int64_t count;    // threads that have work

  // False if this one has none.
  __device__ bool find(int width, int64_t& row, int64_t& column) const {
    const int64_t thread = first_element(1);
    if (thread >= count) {
      return false;
    }
    row = per_row.quotient(thread);
    column = (thread - row * static_cast<int64_t>(per_row.value)) * width;
    return true;
  }
};

template <class T, int width, class Divider>
__global__ void __launch_bounds__(threads_per_block)
    join_kernel(Place<Divider> place, int64_t state, int64_t features, Matrix<T> h, Matrix<T> x, T* joined) {
  int64_t row, column;
  if (!place.find(width, row, column)) {
    return;
  }
  const Vector<T, width> values =
      column < state ? h.template load<width>(row, column) : x.template load<width>(row, column - state);
  values.store(joined + row * (state + features) + column);
}

template <class T, int width, class Divider>
__global__ void __launch_bounds__(threads_per_block)
    forward_kernel(Place<Divider> place, int64_t state, T* gates, Matrix<T> old_c, T* new_h, T* new_c) {
  int64_t row, column;
  if (!place.find(width, row, column)) {
    return;
  }
  using Values = Vector<T, width>;
  T* const first = gates + row * 3 * state + column;
  Values i = Values::load(first), o = Values::load(first + state), z = Values::load(first + 2 * state);
  Values c = old_c.template load<width>(row, column), h;
#pragma unroll
  for (int k = 0; k < width; ++k) {
    Gates<compute_t<T>> g{widen(i.values[k]), widen(o.values[k]), widen(z.values[k])};
    auto value = widen(c.values[k]);
    h.values[k] = narrow<T>(forward_cell(g, value));
    c.values[k] = narrow<T>(value);
    i.values[k] = narrow<T>(g.i);
    o.values[k] = narrow<T>(g.o);
    z.values[k] = narrow<T>(g.z);
  }
  i.store(first);
  o.store(first + state);
  z.store(first + 2 * state);
  h.store(new_h + row * state + column);
  c.store(new_c + row * state + column);
}

template <class T, int width, class Divider>
__global__ void __launch_bounds__(threads_per_block) backward_kernel(
    Place<Divider> place,
    int64_t state,
    Matrix<T> grad_h,
    Matrix<T> grad_c,
    Matrix<T> gates,
    Matrix<T> new_c,
    T* d_gates,
    T* d_c) {
  int64_t row, column;
  if (!place.find(width, row, column)) {
    return;
  }
  using Values = Vector<T, width>;
  Values i = gates.template load<width>(row, column);
  Values o = gates.template load<width>(row, column + state);
  Values z = gates.template load<width>(row, column + 2 * state);
  const Values c = new_c.template load<width>(row, column), gh = grad_h.template load<width>(row, column);
  Values gc = grad_c.template load<width>(row, column);
#pragma unroll
  for (int k = 0; k < width; ++k) {
    auto value = widen(gc.values[k]);
    const Gates<compute_t<T>> g{widen(i.values[k]), widen(o.values[k]), widen(z.values[k])};
    const auto d = backward_cell(g, widen(c.values[k]), widen(gh.values[k]), value);
    gc.values[k] = narrow<T>(value);
    i.values[k] = narrow<T>(d.i);
    o.values[k] = narrow<T>(d.o);
    z.values[k] = narrow<T>(d.z);
  }
  T* const first = d_gates + row * 3 * state + column;
  i.store(first);
  o.store(first + state);
  z.store(first + 2 * state);
  gc.store(d_c + row * state + column);
}

template <class T>
__global__ void __launch_bounds__(threads_per_block)
    sum_kernel(int64_t rows, int64_t columns, const T* matrix, T* sums) {
  const int64_t column = first_element(1);
  if (column >= columns) {
    return;
  }
  compute_t<T> sum = 0;
#pragma unroll 8
  for (int64_t row = 0; row < rows; ++row) {
    sum += widen(matrix[row * columns + column]);
  }
  sums[column] = narrow<T>(sum);
}

// ---- Launches.

// Calls `run` with a width, as a template argument, and the Place of each thread for it.
template <class T, class F>
int over_rows(bool vectors, int64_t rows, int64_t columns, F&& run) {
  constexpr int widest = vector_width<T>;
  if (rows == 0 || columns == 0) {
    return cudaSuccess;
  }
  const int64_t per_row = vectors ? columns / widest : columns, count = rows * per_row;
  const int64_t blocks = parts(count, threads_per_block);
  if (count > INT32_MAX) {  // rare, so it has no vectors
    return run.template operator()<1>(
        Place<WideDivisor>{WideDivisor::of(columns), rows * columns}, parts(rows * columns, threads_per_block));
  }
  const Place<Divisor> place{Divisor::of(static_cast<uint32_t>(per_row)), count};
  return vectors ? run.template operator()<widest>(place, blocks) : run.template operator()<1>(place, blocks);
}

}  // namespace

int lltm_join(
    int8_t dtype, int64_t batch, int64_t state, int64_t features, Rows h, Rows x, void* joined, void* stream) {
  return dispatch(Floating(), dtype, [&]<class T>() {
    const Matrix<T> left(h), right(x);
    const bool vectors = left.takes_vectors() && right.takes_vectors() && state % vector_width<T> == 0 &&
                         features % vector_width<T> == 0 && aligned(joined);
    return over_rows<T>(vectors, batch, state + features, [&]<int width, class D>(Place<D> place, int64_t blocks) {
      return launch(
          join_kernel<T, width, D>, blocks, threads_per_block, stream, place, state, features, left, right,
          static_cast<T*>(joined));
    });
  });
}

int lltm_forward(
    int8_t dtype, int64_t batch, int64_t state, void* gates, Rows c, void* new_h, void* new_c, void* stream) {
  return dispatch(Floating(), dtype, [&]<class T>() {
    const Matrix<T> old_c(c);
    const bool vectors = old_c.takes_vectors() && state % vector_width<T> == 0 && aligned(gates, new_h, new_c);
    return over_rows<T>(vectors, batch, state, [&]<int width, class D>(Place<D> place, int64_t blocks) {
      return launch(
          forward_kernel<T, width, D>, blocks, threads_per_block, stream, place, state, static_cast<T*>(gates), old_c,
          static_cast<T*>(new_h), static_cast<T*>(new_c));
    });
  });
}

int lltm_backward(
    int8_t dtype,
    int64_t batch,
    int64_t state,
    Rows grad_h,
    Rows grad_c,
    Rows gates,
    Rows new_c,
    void* d_gates,
    void* d_c,
    void* stream) {
  return dispatch(Floating(), dtype, [&]<class T>() {
    const Matrix<T> from_h(grad_h), from_c(grad_c), g(gates), c(new_c);
    const bool vectors = from_h.takes_vectors() && from_c.takes_vectors() && g.takes_vectors() && c.takes_vectors() &&
                         state % vector_width<T> == 0 && aligned(d_gates, d_c);
    return over_rows<T>(vectors, batch, state, [&]<int width, class D>(Place<D> place, int64_t blocks) {
      return launch(
          backward_kernel<T, width, D>, blocks, threads_per_block, stream, place, state, from_h, from_c, g, c,
          static_cast<T*>(d_gates), static_cast<T*>(d_c));
    });
  });
}

int lltm_sum(int8_t dtype, int64_t rows, int64_t columns, const void* matrix, void* sums, void* stream) {
  return dispatch(Floating(), dtype, [&]<class T>() {
    return launch(
        sum_kernel<T>, parts(columns, threads_per_block), threads_per_block, stream, rows, columns,
        static_cast<const T*>(matrix), static_cast<T*>(sums));
  });
}
