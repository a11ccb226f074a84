// A tool of NVTX: remembers the ranges of the process that loads it, for the test that asks for
// them (recorded.h).
#include <nvtx3/nvToolsExt.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Domain {
  std::string name;
};

struct Recorded {
  std::mutex mutex;
  std::map<std::pair<const void *, uint32_t>, std::string> categories; // their names
  std::vector<std::string> ranges;
};

Recorded &recorded() {
  static auto *all = new Recorded; // threads may outlive this library's end
  return *all;
}

thread_local int depth = 0;

nvtxDomainHandle_t createDomain(const char *name) {
  return reinterpret_cast<nvtxDomainHandle_t>(new Domain{name});
}

void nameCategory(nvtxDomainHandle_t domain, uint32_t category, const char *name) {
  std::lock_guard lock(recorded().mutex);
  recorded().categories[{domain, category}] = name;
}

int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event) {
  std::lock_guard lock(recorded().mutex);
  const bool isWhole = event->version == NVTX_VERSION &&
                       event->messageType == NVTX_MESSAGE_TYPE_ASCII &&
                       event->payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  recorded().ranges.push_back(!isWhole ? "an event of another form"
                                       : reinterpret_cast<const Domain *>(domain)->name + " | " +
                                             recorded().categories[{domain, event->category}] +
                                             " | " + event->message.ascii + " | " +
                                             std::to_string(event->payload.ullValue));
  return depth++;
}

int pop(nvtxDomainHandle_t) {
  if (depth == 0) {
    std::lock_guard lock(recorded().mutex);
    recorded().ranges.push_back("an end without a beginning");
    return NVTX_NO_PUSH_POP_TRACKING;
  }
  return --depth;
}

template <class Function> NvtxFunctionPointer pointerTo(Function *function) {
  return reinterpret_cast<NvtxFunctionPointer>(function);
}

} // namespace

extern "C" {

/// NVTX calls it. 1: success.
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t getExportTable) {
  const auto *callbacks =
      static_cast<const NvtxExportTableCallbacks *>(getExportTable(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0)
    return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = pointerTo(createDomain);
  *table[NVTX_CBID_CORE2_DomainNameCategoryA] = pointerTo(nameCategory);
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = pointerTo(push);
  *table[NVTX_CBID_CORE2_DomainRangePop] = pointerTo(pop);
  return 1;
}

/// Calls each(with, range) for the ranges since the last time, in the order of their beginnings.
void occlTestTakeRanges(void (*each)(void *with, const char *range), void *with) {
  std::lock_guard lock(recorded().mutex);
  for (const std::string &range : std::exchange(recorded().ranges, {}))
    each(with, range.c_str());
}

/// Of the calling thread: ranges that are open.
int occlTestOpenRanges() { return depth; }
}
