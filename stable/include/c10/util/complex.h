#pragma once
#include <torch/headeronly/util/complex.h>
