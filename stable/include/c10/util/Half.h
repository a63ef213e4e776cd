#pragma once
#include <torch/headeronly/util/Half.h>
