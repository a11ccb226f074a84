// The comms of one pair of ranks, their memory, and how both end.
#include "runtime/net/transport/nccl_net/comms.h"

#include "runtime/net/transport/nccl_net/packets.h"
#include "runtime/sync/atomic.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <sys/mman.h>
#include <utility>
#include <vector>

namespace occl::net {
namespace {

/// Never unmapped.
struct Retired {
  Mutex mutex;
  std::vector<bootstrap::Mapping> mappings;
  uint64_t bytes = 0; // without those of a parent, which are not in this process
};
constinit PerProcess<Retired> theRetired;

} // namespace

StatusOr<std::unique_ptr<NcclNetComms>>
NcclNetComms::listen(std::shared_ptr<NcclNetContext> context, const NcclNetDevice &device) {
  std::unique_ptr<NcclNetComms> made(new NcclNetComms(context, device));
  std::lock_guard lock(context->mutex);
  const NcclNetPlugin &plugin = context->plugin;
  if (const int result = plugin.listen(context->context, device.number, made->own.handle.data(),
                                       &made->listenComm);
      result != nccl::kSuccess || !made->listenComm)
    return plugin.error("listen", result);
  made->own.packetBytes = std::min<uint64_t>(kMostPacketBytes, device.properties.maxP2pBytes);
  return made;
}

bool NcclNetComms::setPeer(const NcclNetAddress &address) {
  peer = address;
  bytesOfPacket = std::min(own.packetBytes, peer.packetBytes);
  return bytesOfPacket >= kLeastPacketBytes;
}

StatusOr<bool> NcclNetComms::connect() {
  const NcclNetPlugin &plugin = context->plugin;
  // A function that returns no comm is called again later.
  if (!sendComm)
    if (const int result =
            plugin.connect(context->context, ofDevice->number, peer.handle.data(), &sendComm);
        result != nccl::kSuccess)
      return plugin.error("connect", result);
  if (!recvComm)
    if (const int result = plugin.accept(listenComm, &recvComm); result != nccl::kSuccess)
      return plugin.error("accept", result);
  if (!sendComm || !recvComm)
    return false;
  // Both comms are there, so nobody else is to connect.
  if (const int result = plugin.closeListen(std::exchange(listenComm, nullptr));
      result != nccl::kSuccess)
    return plugin.error("closeListen", result);
  if (Status made = makeMemory(); !made.ok())
    return made;
  if (Status registered = registerMemory(); !registered.ok())
    return registered;
  return true;
}

/// Pages of their own: with them, and nothing else, children that fork() makes do without.
Status NcclNetComms::makeMemory() {
  constexpr uint64_t kLine = 64;
  slotBytes = (bytesOfPacket + kLine - 1) / kLine * kLine;
  auto mapped = bootstrap::Mapping::anonymous(2 * kSlots * slotBytes);
  if (!mapped.ok())
    return mapped.status();
  memory = std::move(*mapped);
  if (madvise(memory.get().data(), memory.get().size(), MADV_DONTFORK) != 0)
    return systemError("memory cannot be kept from children", errno);
  return {};
}

Status NcclNetComms::registerMemory() {
  const NcclNetPlugin &plugin = context->plugin;
  const std::span<std::byte> toSend = memory.get().first(kSlots * slotBytes),
                             toReceive = memory.get().subspan(kSlots * slotBytes);
  // Only memory that was registered is given back by close().
  int result = plugin.regMr(sendComm, toSend.data(), toSend.size(), &sendRegistration);
  isSendRegistered = result == nccl::kSuccess;
  if (isSendRegistered) {
    result = plugin.regMr(recvComm, toReceive.data(), toReceive.size(), &receiveRegistration);
    isReceiveRegistered = result == nccl::kSuccess;
  }
  return isReceiveRegistered ? Status() : plugin.error("regMr", result);
}

StatusOr<bool> NcclNetComms::send(uint64_t number, uint64_t bytes) {
  void *&request = sends[number % kSlots];
  if (const int result = context->plugin.isend(sendComm, sendSlot(number).data(), bytes,
                                               sendRegistration, &request);
      result != nccl::kSuccess) {
    request = nullptr;
    return context->plugin.error("isend", result);
  }
  return request != nullptr;
}

StatusOr<bool> NcclNetComms::receive(uint64_t number) {
  void *&request = receives[number % kSlots];
  if (const int result = context->plugin.irecv(recvComm, receiveSlot(number).data(), bytesOfPacket,
                                               receiveRegistration, &request);
      result != nccl::kSuccess) {
    request = nullptr;
    return context->plugin.error("irecv", result);
  }
  return request != nullptr;
}

StatusOr<bool> NcclNetComms::isSent(uint64_t number) {
  bool isDone = false;
  size_t bytes = 0;
  if (const int result = context->plugin.test(sends[number % kSlots], &isDone, &bytes);
      result != nccl::kSuccess)
    return context->plugin.error("test", result);
  if (isDone)
    sends[number % kSlots] = nullptr;
  return isDone;
}

StatusOr<std::optional<uint64_t>> NcclNetComms::received(uint64_t number) {
  bool isDone = false;
  size_t bytes = 0;
  if (const int result = context->plugin.test(receives[number % kSlots], &isDone, &bytes);
      result != nccl::kSuccess)
    return context->plugin.error("test", result);
  if (!isDone)
    return std::optional<uint64_t>();
  receives[number % kSlots] = nullptr;
  return std::optional<uint64_t>(bytes);
}

// --- The end.

NcclNetComms::~NcclNetComms() {
  if (!context->mark.isThisProcess()) {
    retire(0); // what is at these addresses by now is something else's
    return;
  }
  std::lock_guard lock(context->mutex);
  // Requests that are under way may still write to their slots.
  close();
  const auto isUnderWay = [](const void *request) { return request != nullptr; };
  if (std::ranges::any_of(sends, isUnderWay) || std::ranges::any_of(receives, isUnderWay))
    retireSlots();
}

/// In NCCL's order. What a plugin says of it helps nobody any more.
void NcclNetComms::close() {
  const NcclNetPlugin &plugin = context->plugin;
  if (isSendRegistered)
    plugin.deregMr(sendComm, sendRegistration);
  if (isReceiveRegistered)
    plugin.deregMr(recvComm, receiveRegistration);
  if (sendComm)
    plugin.closeSend(sendComm);
  if (recvComm)
    plugin.closeRecv(recvComm);
  if (listenComm)
    plugin.closeListen(listenComm);
}

void NcclNetComms::retireSlots() {
  // The pages go back, but the addresses stay taken.
  madvise(memory.get().data(), memory.get().size(), MADV_DONTNEED);
  retire(memory.get().size());
}

/// Nobody unmaps the memory. It counts as so many bytes.
void NcclNetComms::retire(uint64_t bytes) {
  Retired &retired = theRetired.get();
  std::lock_guard lock(retired.mutex);
  retired.bytes += bytes;
  retired.mappings.push_back(std::move(memory));
}

uint64_t NcclNetComms::bytesRetired() {
  Retired &retired = theRetired.get();
  std::lock_guard lock(retired.mutex);
  return retired.bytes;
}

} // namespace occl::net
