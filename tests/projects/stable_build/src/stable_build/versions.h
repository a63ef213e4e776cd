#pragma once

#include <cstdint>

uint64_t target_of_the_other_source();

// Of the torch that is in the process; 0 with RuntimeError set if there is none.
uint64_t running_abi();
