// Called through ctypes and through cffi.
#include "crossing_c.h"

int64_t crossing_one(ARRAY(a)) {
  static_cast<void>(a);
  return a_size;
}

int64_t crossing_three(ARRAY(a), ARRAY(b), ARRAY(c)) {
  return crossing_one(a, a_size) + crossing_one(b, b_size) + crossing_one(c, c_size);
}

int64_t crossing_eight(ARRAY(a), ARRAY(b), ARRAY(c), ARRAY(d), ARRAY(e), ARRAY(f), ARRAY(g), ARRAY(h)) {
  return crossing_three(a, a_size, b, b_size, c, c_size) + crossing_three(d, d_size, e, e_size, f, f_size) +
         crossing_one(g, g_size) + crossing_one(h, h_size);
}
