// The types of interop/symbolic.pxd.
#pragma once

namespace c10 {
class Scalar;
}

namespace interop {

// No C++ expression has this type, and it cannot be defined: code that Cython writes for it does not compile.
struct use_floordiv_or_a_float;

}  // namespace interop
