// The functions of NCCL that are not there.
#include "nccl/abi/exports.h"
#include "nccl/errors.h"

namespace {

ncclResult_t refuse(const char *name) {
  return occl::nccl::guarded(name, [] {
    return occl::nccl::invalidUsage(
        "OCCL does not implement this function; docs/nccl.md lists what there is");
  });
}

} // namespace

// Whatever arguments a caller passes: by the C calling conventions of all machines that there are
// a callee may leave them alone.
#define OCCL_NCCL_DONE(name)
#define OCCL_NCCL_REFUSED(name)                                                                    \
  extern "C" ncclResult_t name();                                                                  \
  ncclResult_t name() { return refuse(#name); }                                                    \
  OCCL_NCCL_SECOND_NAME(name);
#include "nccl/abi/names.def"
