#include "nccl/registration.h"

#include "nccl/abi/exports.h"
#include "nccl/comm.h"
#include "nccl/streams/streams.h"

namespace occl::nccl {

Outcome Registrations::add(void *buffer, size_t bytes, void *&handle) {
  if (!buffer || bytes == 0)
    return invalidArgument("a range to register has an address and a size");
  std::lock_guard lock(mutex);
  const std::pair range(reinterpret_cast<uintptr_t>(buffer), bytes);
  auto [found, isFirst] = handles.emplace(range, next);
  if (isFirst)
    ++next;
  Entry &entry = entries[found->second];
  entry.range = range;
  ++entry.uses;
  handle = reinterpret_cast<void *>(found->second);
  return {};
}

Outcome Registrations::remove(void *handle) {
  if (!handle)
    return {};
  std::lock_guard lock(mutex);
  auto found = entries.find(reinterpret_cast<uintptr_t>(handle));
  if (found == entries.end())
    return invalidUsage("the handle is of no registered range of this communicator");
  if (--found->second.uses == 0) {
    handles.erase(found->second.range);
    entries.erase(found);
  }
  return {};
}

} // namespace occl::nccl

using namespace occl::nccl;

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t size, void **handle) {
  return withComm("ncclCommRegister", comm, [&](Comm &of) {
    return handle ? of.registrations.add(buffer, size, *handle)
                  : invalidArgument("handle must not be NULL");
  });
}
OCCL_NCCL_SECOND_NAME(ncclCommRegister);

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) {
  return withComm("ncclCommDeregister", comm,
                  [&](Comm &of) { return of.registrations.remove(handle); });
}
OCCL_NCCL_SECOND_NAME(ncclCommDeregister);

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t size,
                                    ncclWindow_t *window, int) {
  return withComm("ncclCommWindowRegister", comm, [&](Comm &) -> Outcome {
    if (!window || !buffer || size == 0)
      return invalidArgument("a window has a place for its handle, an address and a size");
    *window = nullptr; // NCCL's way to say that there are none here
    return {};
  });
}
OCCL_NCCL_SECOND_NAME(ncclCommWindowRegister);

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  return withComm("ncclCommWindowDeregister", comm, [&](Comm &) {
    return window ? invalidArgument("window is none of this communicator") : Outcome();
  });
}
OCCL_NCCL_SECOND_NAME(ncclCommWindowDeregister);

ncclResult_t ncclMemAlloc(void **memory, size_t size) {
  return guarded("ncclMemAlloc", [&]() -> Outcome {
    if (!memory)
      return invalidArgument("ptr must not be NULL");
    *memory = nullptr;
    return size == 0 ? Outcome() : streams().allocate(*memory, size);
  });
}
OCCL_NCCL_SECOND_NAME(ncclMemAlloc);

ncclResult_t ncclMemFree(void *memory) {
  return guarded("ncclMemFree", [&] { return memory ? streams().release(memory) : Outcome(); });
}
OCCL_NCCL_SECOND_NAME(ncclMemFree);
