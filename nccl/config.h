// What a caller's ncclConfig_t says.
#pragma once

#include "nccl/errors.h"

namespace occl::nccl {

/// What OCCL makes use of.
struct Config {
  bool isBlocking = true;
};

/// Into `config`, which holds what counts where the caller says nothing (`given` may be NULL).
/// Reads no more than the caller's size, and no fields that the caller's version does not have.
/// InvalidArgument for a struct without initializer and for values that NCCL refuses.
Outcome readConfig(const ncclConfig_t *given, Config &config);

} // namespace occl::nccl
