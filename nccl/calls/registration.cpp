#include "nccl/calls/registration.h"

#include "nccl/abi/exports.h"
#include "nccl/base/per_process.h"
#include "nccl/comm/handles.h"
#include "nccl/fallback/decide.h"
#include "nccl/fallback/other_comm.h"
#include "nccl/streams/streams.h"

#include <set>

namespace occl::nccl {

Outcome Registrations::add(void *buffer, size_t bytes, void *&handle) {
  if (!buffer || bytes == 0)
    return invalidArgument("a range to register has an address and a size");
  std::lock_guard lock(mutex);
  // A range that is registered twice has one handle and two uses, as in NCCL: programs register
  // buffers in each layer.
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
  // The last use removes it.
  if (--found->second.uses == 0) {
    handles.erase(found->second.range);
    entries.erase(found);
  }
  return {};
}

bool Registrations::has(void *handle) {
  std::lock_guard lock(mutex);
  return entries.count(reinterpret_cast<uintptr_t>(handle)) > 0;
}

namespace {

struct OtherMemory {
  std::mutex mutex;
  std::set<void *> addresses;
};

/// What the other library has allocated.
constinit PerProcess<OtherMemory> otherMemory;

} // namespace

} // namespace occl::nccl

using namespace occl::nccl;

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t size, void **handle) {
  return withComm("ncclCommRegister", comm, [&](Comm &of) -> Outcome {
    if (!handle)
      return invalidArgument("handle must not be NULL");
    // While ranks come together it is not known whose the communicator is, nor needed: any buffer
    // will do.
    const auto other = of.otherIfKnown();
    if (!other || !other->nccl.ncclCommRegister)
      return of.registrations.add(buffer, size, *handle);
    return other->settle(other->nccl.ncclCommRegister(other->handle(), buffer, size, handle));
  });
}
OCCL_NCCL_SECOND_NAME(ncclCommRegister);

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) {
  return withComm("ncclCommDeregister", comm, [&](Comm &of) -> Outcome {
    const auto other = of.otherIfKnown();
    if (!other || !other->nccl.ncclCommDeregister || of.registrations.has(handle))
      return of.registrations.remove(handle);
    return other->settle(other->nccl.ncclCommDeregister(other->handle(), handle));
  });
}
OCCL_NCCL_SECOND_NAME(ncclCommDeregister);

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t size,
                                    ncclWindow_t *window, int flags) {
  return withComm("ncclCommWindowRegister", comm, [&](Comm &of) -> Outcome {
    if (!window || !buffer || size == 0)
      return invalidArgument("a window has a place for its handle, an address and a size");
    Executor executor; // to know whose windows they are; NCCL waits for the other ranks as well
    if (Outcome outcome = of.forCall(executor); !outcome.ok())
      return outcome;
    if (const auto &other = executor.other; other && other->nccl.ncclCommWindowRegister)
      return other->settle(
          other->nccl.ncclCommWindowRegister(other->handle(), buffer, size, window, flags));
    *window = nullptr; // NCCL's way to say that there are none here
    return {};
  });
}
OCCL_NCCL_SECOND_NAME(ncclCommWindowRegister);

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  return withComm("ncclCommWindowDeregister", comm, [&](Comm &of) -> Outcome {
    if (!window)
      return {};
    const auto other = of.otherIfKnown();
    if (!other || !other->nccl.ncclCommWindowDeregister)
      return invalidArgument("window is none of this communicator");
    return other->settle(other->nccl.ncclCommWindowDeregister(other->handle(), window));
  });
}
OCCL_NCCL_SECOND_NAME(ncclCommWindowDeregister);

ncclResult_t ncclMemAlloc(void **memory, size_t size) {
  return guarded("ncclMemAlloc", [&]() -> Outcome {
    if (!memory)
      return invalidArgument("ptr must not be NULL");
    *memory = nullptr;
    if (size == 0)
      return {};
    // Only memory of the other library can be registered as its window: so it has to be allocated
    // there, and freed there.
    // Windows of the other library's communicators are in memory of that library's; OCCL takes any.
    const OtherNccl *other = usesOtherMemory() ? otherIfOpen() : nullptr;
    if (!other || !other->ncclMemAlloc || !other->ncclMemFree)
      return streams().allocate(*memory, size);
    if (ncclResult_t result = other->ncclMemAlloc(memory, size); result != ncclSuccess)
      return other->outcomeOf(result);
    std::lock_guard lock(otherMemory.get().mutex);
    otherMemory.get().addresses.insert(*memory);
    return {};
  });
}
OCCL_NCCL_SECOND_NAME(ncclMemAlloc);

ncclResult_t ncclMemFree(void *memory) {
  return guarded("ncclMemFree", [&]() -> Outcome {
    if (!memory)
      return {};
    {
      // Whose memory it is was noted when it was made; an address that is neither's is refused by
      // the own allocator.
      std::lock_guard lock(otherMemory.get().mutex);
      if (otherMemory.get().addresses.erase(memory) == 0)
        return streams().release(memory);
    }
    return otherIfOpen()->outcomeOf(otherIfOpen()->ncclMemFree(memory));
  });
}
OCCL_NCCL_SECOND_NAME(ncclMemFree);
