#pragma once
#include "interop/stable/enumerators.h"
#include "interop/stable/enums.h"
