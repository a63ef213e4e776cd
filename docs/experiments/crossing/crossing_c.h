// The functions in C. All they know of a tensor is what the caller passes: where it begins, and how many elements it
// has.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ARRAY(name) const void *name, int64_t name##_size

int64_t crossing_one(ARRAY(a));
int64_t crossing_three(ARRAY(a), ARRAY(b), ARRAY(c));
int64_t crossing_eight(ARRAY(a), ARRAY(b), ARRAY(c), ARRAY(d), ARRAY(e), ARRAY(f), ARRAY(g), ARRAY(h));

#ifdef __cplusplus
}
#endif
