#include "nccl/streams/streams.h"

#include "nccl/environment.h"

namespace occl::nccl {

StreamKind &streams() { return isHostMode() ? hostStreams() : cudaStreams(); }

} // namespace occl::nccl
