#pragma once
#include <torch/headeronly/core/MemoryFormat.h>
namespace at {
using namespace c10;
}
