// How communicators end whose handles are gone: what they have of a device is freed.
#pragma once

#include "nccl/comm/comm.h"

#include <memory>

namespace occl::nccl {

/// Ends it on this thread, as soon as nobody else has it. CUDA frees nothing while kernels run, and
/// starts none meanwhile: freed beside what the program does next, where a kernel of one rank of
/// the process may wait for one of another, it could wait for ever. What holds a communicator that
/// still connects is waited for, but not for long, as ranks may never come: then that ends it.
void endHere(std::shared_ptr<Comm> last);

/// Ends an aborted one on a thread of its own, as what is freed of a device may have to wait for
/// kernels that this thread will have end. If no communicator is left on the device it waits, some
/// seconds at most, until all that were aborted there have ended.
void endApart(std::shared_ptr<Comm> last);

} // namespace occl::nccl
