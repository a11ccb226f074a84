// A rank's device memory: allocated, described on its card, mapped by the other ranks, and unmapped
// by all before it is freed.
#include "runtime/cuda/memory/device_memory.h"

#include "runtime/base/cache_line.h"
#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/cuda/device/linked_devices.h"
#include "runtime/cuda/tables/device_collective.h"
#include "runtime/sync/deadline.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace occl::cuda {

namespace {

constexpr auto kCopyPatience = std::chrono::milliseconds(20000);
constexpr auto kClosePatience = std::chrono::milliseconds(1000);

/// Of DeviceMemory::page: more than most of what is downloaded.
constexpr uint64_t kPageBytes = 16 << 10;

} // namespace

DeviceMemory::DeviceMemory(const bootstrap::Group &group, std::vector<HostMemory> hosts, int device,
                           Sizes sizes)
    : group(group), hosts(std::move(hosts)), ordinal(device),
      size(alignUp(sizes.bytes + kRecordBytes, kUnit)), arenaSize(sizes.arenaBytes),
      isAsNeeded(sizes.isAsNeeded), arenas(group.numRanks()) {}

StatusOr<std::unique_ptr<DeviceMemory>> DeviceMemory::make(const bootstrap::Group &group,
                                                           std::vector<HostMemory> hosts,
                                                           int device, Sizes sizes) {
  std::unique_ptr<DeviceMemory> memory(new DeviceMemory(group, std::move(hosts), device, sizes));
  Status started = memory->start();
  DeviceCard &card = memory->hosts[group.rank()].block->card;
  memory->isShared = started.ok();
  card.state.store(started.ok() ? DeviceCard::Ready : DeviceCard::Failed,
                   std::memory_order_release);
  if (!started.ok())
    return started;
  return memory;
}

Status DeviceMemory::start() {
  OnDevice on(ordinal);
  if (!on.status().ok())
    return on.status();
  auto shared = sharedStreamOn(ordinal, SharedStream::Memory);
  if (!shared.ok())
    return shared.status();
  stream = *shared;
  Status status = copied.make();
  void *pinned = nullptr;
  if (status.ok())
    status = toStatus(cudaHostAlloc(&pinned, kPageBytes, cudaHostAllocDefault),
                      "allocating pinned memory for what is read from the device");
  if (!status.ok())
    return status;
  page = static_cast<char *>(pinned);
  // Take the memory, so that other ranks of this process find it by its address.
  auto taken = takeShared(ordinal, size,
                          "allocating a rank's device memory (arenaBytes and "
                          "heapBytes of its configuration)");
  if (!taken.ok())
    return taken.status();
  own = std::move(*taken);
  // Fill in the card. Its state is stored last, by make().
  DeviceCard &card = hosts[group.rank()].block->card;
  status = lookAtEnvironment(card.paths);
  if (status.ok())
    status = lookAtPaths(ordinal, card.paths);
  if (!status.ok())
    return status;
  card.bytes = size;
  card.arenaBytes = arenaSize;
  card.isAsNeeded = isAsNeeded ? 1 : 0;
  // Other processes map the memory by a handle, if data goes from device to device.
  isMappedByProcesses =
      group.acrossProcesses() && card.paths.isPeerAccessDisabled == 0 && !isAcrossMachines();
  status = fillIn(card.handle, *own, isMappedByProcesses);
  // Records are zero before any rank writes one.
  return status.ok() ? clear(own->begin, kRecordBytes) : status;
}

Status DeviceMemory::lookAtEnvironment(PeerPaths &paths) const {
  auto wanted = wideLinesFrom(std::getenv("OCCL_LL128"));
  if (!wanted.ok())
    return wanted.status();
  paths.wanted = *wanted;
  auto isDisabled =
      isPeerAccessDisabled(std::getenv("OCCL_P2P_DISABLE"), std::getenv("NCCL_P2P_DISABLE"));
  if (!isDisabled.ok())
    return isDisabled.status();
  paths.isPeerAccessDisabled = *isDisabled;
  return {};
}

bool DeviceMemory::isAcrossMachines() const {
  for (uint32_t r = 0; r < group.numRanks(); ++r)
    if (!group.isLocal(r))
      return true;
  return false;
}

/// All ranks come to the same answers from the cards of all.
Status DeviceMemory::connect() {
  OnDevice on(ordinal);
  Status status = on.status();
  std::vector<PeerPaths> paths;
  // Compare the cards: all ranks must have taken the same.
  for (uint32_t r = 0; r < group.numRanks() && status.ok(); ++r) {
    const DeviceCard &card = hosts[r].block->card;
    const std::string who = "rank " + std::to_string(r);
    if (card.state.load(std::memory_order_acquire) != DeviceCard::Ready)
      status = {StatusCode::PeerFailed, who + " has no device memory; see its error"};
    else if (card.arenaBytes != arenaSize)
      status = {StatusCode::Mismatch, who + " has an arenaBytes of " +
                                          std::to_string(card.arenaBytes) + ", this one of " +
                                          std::to_string(arenaSize) +
                                          "; use the same configuration on all ranks"};
    else if ((card.isAsNeeded != 0) != isAsNeeded)
      status = {StatusCode::Mismatch,
                who + " takes device memory " + (isAsNeeded ? "at once" : "as it is needed") +
                    ", this one " + (isAsNeeded ? "as it is needed" : "at once") +
                    " (asNeeded of the configuration, "
                    "OCCL_NCCL_MEMORY_AS_NEEDED); use the same on all ranks"};
    else if (card.bytes != size || hosts[r].pages.size() != hosts[group.rank()].pages.size())
      status = {StatusCode::Mismatch,
                who + " has " + std::to_string(card.bytes) + " bytes of device memory, this one " +
                    std::to_string(size) + "; use the same configuration on all ranks"};
    paths.push_back(card.paths);
  }
  if (!status.ok())
    return status;
  // All ranks see the same cards, and decide alike how data goes.
  whyHost = isAcrossMachines() ? "ranks are on several machines" : whyThroughHost(paths);
  wideLines = whyHost.empty() && whyNoWideLines(paths).empty();
  // Map all arenas, or pin all of them.
  for (uint32_t r = 0; r < group.numRanks() && status.ok(); ++r)
    status = whyHost.empty() ? import(r) : pin(r);
  return status;
}

/// Each process pins all of them.
Status DeviceMemory::pin(uint32_t rank) {
  // The pages of other processes are mapped read-only at first.
  Status status = group.allowStores(rank, hosts[rank].pages);
  if (!status.ok())
    return status;
  auto pages = HostPages::pin(hosts[rank].pages);
  if (!pages.ok())
    return pages.status();
  auto begin = (*pages)->onDevice();
  if (!begin.ok())
    return begin.status();
  arenas[rank] = *begin;
  pinned.push_back(std::move(*pages));
  return {};
}

Status DeviceMemory::import(uint32_t rank) {
  if (rank == group.rank()) {
    arenas[rank] = own->begin;
    return {};
  }
  auto mapped =
      others.map(hosts[rank].block->card.handle, group.process(rank) == group.process(group.rank()),
                 ordinal, "rank " + std::to_string(rank));
  if (mapped.ok())
    arenas[rank] = *mapped;
  return mapped.status();
}

bool DeviceMemory::othersHaveClosed() const {
  for (uint32_t r = 0; r < group.numRanks(); ++r)
    if (group.isLocal(r) && group.process(r) != group.process(group.rank()) &&
        hosts[r].block->card.hasClosed.load(std::memory_order_acquire) == 0 && group.isAlive(r))
      return false;
  return true;
}

void DeviceMemory::abandon() {
  leave();
  others.abandon();
  for (const auto &pages : pinned)
    pages->leave();
}

void DeviceMemory::keep(std::shared_ptr<DeviceAllocation> more) {
  std::lock_guard lock(keeping);
  if (own->isLeft) // a thread that took it was late
    more->isLeft = true;
  kept.push_back(std::move(more));
}

/// All of this rank's stays until the process ends.
void DeviceMemory::leave() {
  own->isLeft = true;
  std::lock_guard lock(keeping);
  for (const auto &more : kept)
    more->isLeft = true;
}

DeviceMemory::~DeviceMemory() {
  OnDevice on(ordinal);
  // Unmap first, then say so: a rank frees its memory once all others have.
  others.unmap();
  // An abandoned rank may still access the others' memory, and never says so.
  if (!own || !own->isLeft)
    hosts[group.rank()].block->card.hasClosed.store(1, std::memory_order_release);
  // A copy to the page may still be on its way if something of the rank is executed.
  if (page && (!own || !own->isLeft))
    cudaFreeHost(page);
  // Wait until nobody maps this rank's memory, but not for ever.
  Deadline deadline(kClosePatience);
  while (isShared && !own->isLeft && !othersHaveClosed()) {
    if (deadline.passed()) {
      leave();
      break;
    }
    sleepFor(std::chrono::milliseconds(1));
  }
}

std::optional<uint64_t> DeviceMemory::offsetOf(const void *address, uint64_t bytes) const {
  uint64_t offset = reinterpret_cast<uint64_t>(address) - reinterpret_cast<uint64_t>(own->begin);
  if (offset > size || bytes > size - offset)
    return std::nullopt;
  return offset;
}

Status DeviceMemory::finish(cudaError_t error, const char *what) {
  Status put = error == cudaSuccess ? copied.put(stream) : toStatus(error, what);
  if (!put.ok())
    return put;
  const cudaError_t state = pollDevice([&] { return copied.look(); }, kCopyPatience);
  if (state == cudaErrorNotReady)
    return {StatusCode::Timeout, std::string(what) + ": the device does not get round to it"};
  return toStatus(state, what);
}

/// Null if it is no arena of host memory.
char *DeviceMemory::onHost(const char *memory) const {
  for (uint32_t r = 0; r < pinned.size(); ++r) {
    const uint64_t offset =
        reinterpret_cast<uint64_t>(memory) - reinterpret_cast<uint64_t>(arenas[r]);
    if (offset < pinned[r]->bytes())
      return pinned[r]->begin() + offset;
  }
  return nullptr;
}

Status DeviceMemory::change(std::span<const Change> changes) {
  const auto onHostToo = [this](const Change &change) { return onHost(change.to) != nullptr; };
  for (const Change &change : changes) {
    char *const host = onHost(change.to);
    if (host && change.from) {
      storeWords(host, change.from, change.bytes);
    } else if (host) {
      // Kernels see the zeros before any later store of this thread.
      std::memset(host, 0, change.bytes);
      threadFence(std::memory_order_seq_cst);
    }
  }
  if (std::ranges::all_of(changes, onHostToo))
    return {};
  OnDevice on(ordinal);
  std::lock_guard lock(copying);
  cudaError_t error = cudaSuccess;
  for (const Change &change : changes)
    if (error == cudaSuccess && !onHostToo(change))
      error = change.from
                  ? cudaMemcpyAsync(change.to, change.from, change.bytes, cudaMemcpyDefault, stream)
                  : cudaMemsetAsync(change.to, 0, change.bytes, stream);
  return finish(error, "storing into device memory");
}

Status DeviceMemory::download(void *to, const char *from, uint64_t bytes) {
  if (const char *host = onHost(from)) {
    loadWords(to, host, bytes);
    return {};
  }
  OnDevice on(ordinal);
  std::lock_guard lock(copying);
  for (uint64_t at = 0; at < bytes; at += kPageBytes)
    if (Status read = downloadPiece(static_cast<char *>(to) + at, from + at,
                                    std::min(kPageBytes, bytes - at));
        !read.ok())
      return read;
  return {};
}

/// A copy that was late comes before all that follow in the stream, so the page has the last one.
Status DeviceMemory::downloadPiece(char *to, const char *from, uint64_t bytes) {
  Status read = finish(cudaMemcpyAsync(page, from, bytes, cudaMemcpyDefault, stream),
                       "copying from device memory");
  if (read.ok())
    std::memcpy(to, page, bytes);
  return read;
}

} // namespace occl::cuda
