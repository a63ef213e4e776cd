// The reduction of a loss, as the numbers that ATen's functions take.
#pragma once

namespace at::Reduction {

enum Reduction { None, Mean, Sum, END };

}  // namespace at::Reduction
