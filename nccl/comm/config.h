// What a caller's ncclConfig_t says.
#pragma once

#include "nccl/base/errors.h"

namespace occl::nccl {

struct Config {
  /// What OCCL makes use of.
  bool isBlocking = true;
  /// What the caller has given, for the other library; the strings are copies.
  ncclConfig_t values = kNcclConfigInitializer;
  std::string netName, commName;
};

/// Into `config`, which holds what counts where the caller says nothing (`given` may be NULL).
/// Reads no more than the caller's size, and no fields that the caller's version does not have.
/// InvalidArgument for a struct without initializer and for values that NCCL refuses.
Outcome readConfig(const ncclConfig_t *given, Config &config);

} // namespace occl::nccl
