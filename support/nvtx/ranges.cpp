#include "support/nvtx/ranges.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

namespace occl::nvtx {

namespace {

/// Null without a tool.
nvtxDomainHandle_t domain = nullptr;

void look() {
  [[maybe_unused]] static const bool hasLooked = [] {
    domain = nvtxDomainCreateA("OCCL");
    detail::isAttached.store(domain != nullptr, std::memory_order_release);
    return true;
  }();
}

} // namespace

void detail::push(const Named &call) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.category = call.category;
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  attributes.payload.ullValue = call.bytes;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = call.name;
  // Whoever has made this thread's communicator has found the domain.
  std::atomic_thread_fence(std::memory_order_acquire);
  nvtxDomainRangePushEx(domain, &attributes);
}

void detail::pop() { nvtxDomainRangePop(domain); }

uint32_t addCategory(const char *what, uint32_t rank, uint32_t numRanks) {
  static std::atomic<uint32_t> last{0};
  look();
  if (!detail::isAttached.load(std::memory_order_acquire))
    return 0;
  // The number in the name keeps communicators of the same size apart in a tool's list.
  const uint32_t category = ++last;
  const std::string name = std::string(what) + " " + std::to_string(category) + ", rank " +
                           std::to_string(rank) + " of " + std::to_string(numRanks);
  nvtxDomainNameCategoryA(domain, category, name.c_str());
  return category;
}

} // namespace occl::nvtx

#else

namespace occl::nvtx {

void detail::push(const Named &) {}
void detail::pop() {}
uint32_t addCategory(const char *, uint32_t, uint32_t) { return 0; }

} // namespace occl::nvtx

#endif
