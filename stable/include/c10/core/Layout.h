#pragma once
#include <torch/headeronly/core/Layout.h>
namespace at {
using namespace c10;
}
