// The second name of every exported function.
#pragma once

#include "nccl/nccl_abi.h"

/// Behind the definition of `name`, in its file: pname is the same function.
#define OCCL_NCCL_SECOND_NAME(name) extern "C" __attribute__((alias(#name))) decltype(name) p##name
