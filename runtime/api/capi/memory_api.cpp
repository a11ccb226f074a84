// Memory that other ranks can access: occlMemAlloc, occlMemFree.
#include "runtime/api/capi/error.h"
#include "runtime/api/capi/handles.h"

#include <string>

using namespace occl;
using namespace occl::communicator;

occlResult_t occlMemAlloc(occlComm_t comm, size_t bytes, void **memory) {
  if (!comm || !memory)
    return reportInvalid("occlMemAlloc", "comm and memory must not be NULL");
  return guarded("occlMemAlloc", comm, [&]() -> Status {
    transport::SharedHeap &heap = comm->daemon->heap();
    // Device memory, or a part of the heap in this rank's segment.
    *memory = comm->gpu ? comm->gpu->allocate(bytes) : heap.allocate(bytes);
    if (*memory)
      return {};
    // On a device the allocation may have failed because the communicator has.
    if (Status failure = comm->daemon->failure(); comm->gpu && !failure.ok())
      return failure;
    // A device's memory holds the arena, too.
    const uint64_t size =
        comm->gpu ? comm->gpu->settings().bytes - comm->gpu->settings().arenaBytes : heap.size();
    // Other threads may free memory meanwhile, so this is no final answer.
    return {StatusCode::Again, "occlMemAlloc: no " + std::to_string(bytes) +
                                   " bytes in a row are free in the heap of " +
                                   std::to_string(size) + "; set heapBytes higher"};
  });
}

occlResult_t occlMemFree(occlComm_t comm, void *memory) {
  if (!comm)
    return reportInvalid("occlMemFree", "comm must not be NULL");
  return guarded("occlMemFree", comm, [&]() -> Status {
    // As with free(), a null pointer is freed without effect.
    if (!memory || (comm->gpu ? comm->gpu->release(memory) : comm->daemon->heap().release(memory)))
      return {};
    return {StatusCode::InvalidArgument,
            "occlMemFree: this is not the begin of memory of occlMemAlloc, or it is free already"};
  });
}
