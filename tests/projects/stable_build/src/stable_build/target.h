#pragma once

#include <cstdint>

uint64_t target_of_the_other_source();
