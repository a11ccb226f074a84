// Another NCCL, which does what OCCL does not: NVIDIA's.
#pragma once

#include "nccl/abi/later.h"
#include "nccl/base/errors.h"

namespace occl::nccl {

/// Its functions by their names; NULL where it has none.
struct OtherNccl {
  std::string path;
  int version = 0;
#define OCCL_NCCL_DONE(name) decltype(&::name) name = nullptr;
#define OCCL_NCCL_REFUSED(name) decltype(&::name) name = nullptr;
#include "nccl/abi/names.def"
#undef OCCL_NCCL_DONE
#undef OCCL_NCCL_REFUSED

  /// As "/usr/lib/libnccl.so.2 (2.28.9)".
  std::string title() const;
  /// The text that belongs to a result of its functions, just returned.
  Outcome outcomeOf(ncclResult_t result) const;
};

/// Opens it, the first time: the file that OCCL_NCCL_FALLBACK_LIBRARY names; else, where there are
/// devices, the first libnccl.so.2 that is not OCCL's beside a Python package that the process has
/// loaded libraries of (nvidia/nccl/lib), in LD_LIBRARY_PATH, or in the system's folders. Its names
/// are visible to itself alone, and come before those of the process for it. InvalidUsage if there
/// is none, or it lacks what is needed (2.14 or later).
Outcome openOther(const OtherNccl *&other);
/// NULL as long as nobody has opened it.
const OtherNccl *otherIfOpen();

} // namespace occl::nccl
