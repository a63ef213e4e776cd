#pragma once
#include "interop/stable/tensor.h"
