#include "nccl/streams/streams.h"

#include "nccl/base/environment.h"

namespace occl::nccl {

StreamKind &streams() { return isHostMode() ? hostStreams() : cudaStreams(); }

} // namespace occl::nccl
