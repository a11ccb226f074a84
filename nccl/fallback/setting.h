// OCCL_NCCL_FALLBACK and what goes with it.
#pragma once

#include "nccl/base/errors.h"

namespace occl::nccl {

/// Words of OCCL_NCCL_FALLBACK, with commas between them: 0: never; 1: where OCCL does not do,
/// which is the default; all: every communicator; list: at the end of the process, what went where.
struct FallbackSetting {
  bool isAllowed = true, isAll = false, isListed = false;
};

/// InvalidUsage if there is another word.
Outcome readFallbackSetting(FallbackSetting &setting);

/// Why OCCL does not do for a communicator of that many ranks, as far as one rank can tell; "" if
/// it does.
std::string wishForOther(const FallbackSetting &setting, uint32_t numRanks);

} // namespace occl::nccl
