// One class for all versions of NCCL's interface of network plugins.
#include "runtime/net/transport/nccl_net/versions.h"

#include "runtime/net/transport/nccl_net/logger.h"
#include "runtime/sync/atomic.h"

#include <mutex>

namespace occl::net {
namespace {

using namespace nccl;

int profileNothing(void **, int, void *, int64_t, void *) { return kSuccess; }

/// In all that differs, version by version.
template <class Table> class Adapter final : public NcclNetPlugin {
public:
  static constexpr int kVersion = Table::kVersion;
  static constexpr bool kHasContexts = kVersion >= 11, kHasConfig = kVersion == 10,
                        kHasProfiler = kVersion >= 10, kHasSizes = kVersion >= 9;

  explicit Adapter(const Table &table)
      : NcclNetPlugin(kVersion, table.common.name ? table.common.name : "without a name"),
        table(table), f(table.common) {}

  int init(void **context) const override {
    *context = nullptr;
    if constexpr (kHasContexts) {
      // From version 11 on each communicator has a context, with a number of its own.
      Config config = {kNoTrafficClass};
      return f.init(context, nextCommunicator.fetch_add(1, std::memory_order_relaxed), &config,
                    ncclNetLog, profileNothing);
    } else {
      // Older versions are initialized once a process; the caller holds a lock.
      if (isInitialized)
        return kSuccess;
      int result = kSuccess;
      if constexpr (kHasProfiler)
        result = f.init(ncclNetLog, profileNothing);
      else
        result = f.init(ncclNetLog);
      isInitialized = result == kSuccess;
      return result;
    }
  }
  int finalize(void *context) const override {
    if constexpr (kHasContexts)
      return table.finalize ? table.finalize(context) : kSuccess;
    return kSuccess;
  }
  int devices(int *count) const override { return f.devices(count); }

  int getProperties(int device, NcclNetProperties &properties) const override {
    typename Table::Properties given{};
    if (const int result = f.getProperties(device, &given); result != kSuccess)
      return result;
    properties = {};
    // Only the properties that matter here are copied.
    properties.name = given.name ? given.name : "";
    properties.ptrSupport = given.ptrSupport;
    properties.speed = given.speed;
    properties.maxComms = given.maxComms;
    properties.maxRecvs = given.maxRecvs;
    properties.netDeviceType = given.netDeviceType;
    if constexpr (kHasSizes)
      properties.maxP2pBytes = given.maxP2pBytes;
    return kSuccess;
  }

  int listen(void *context, int device, void *handle, void **listenComm) const override {
    if constexpr (kHasContexts)
      return f.listen(context, device, handle, listenComm);
    else
      return f.listen(device, handle, listenComm);
  }
  int connect(void *context, int device, void *handle, void **sendComm) const override {
    void *ofDevice = nullptr; // nothing is offloaded to one
    if constexpr (kHasContexts) {
      return f.connect(context, device, handle, sendComm, &ofDevice);
    } else if constexpr (kHasConfig) {
      Config config = {kNoTrafficClass};
      return f.connect(device, &config, handle, sendComm, &ofDevice);
    } else {
      return f.connect(device, handle, sendComm, &ofDevice);
    }
  }
  int accept(void *listenComm, void **recvComm) const override {
    void *ofDevice = nullptr;
    return f.accept(listenComm, recvComm, &ofDevice);
  }
  int regMr(void *comm, void *data, size_t bytes, void **registration) const override {
    return f.regMr(comm, data, bytes, kPointerHost, registration);
  }
  int deregMr(void *comm, void *registration) const override {
    return f.deregMr(comm, registration);
  }

  int isend(void *sendComm, void *data, size_t bytes, void *registration,
            void **request) const override {
    constexpr int kTag = 0;
    *request = nullptr;
    if constexpr (kHasProfiler)
      return f.isend(sendComm, data, bytes, kTag, registration, nullptr, request);
    else if constexpr (kHasSizes)
      return f.isend(sendComm, data, bytes, kTag, registration, request);
    else
      return f.isend(sendComm, data, static_cast<int>(bytes), kTag, registration, request);
  }
  int irecv(void *recvComm, void *data, size_t bytes, void *registration,
            void **request) const override {
    // The arrays have one entry each, since a request receives one message.
    int tag = 0, narrow = static_cast<int>(bytes);
    void *event = nullptr;
    *request = nullptr;
    if constexpr (kHasProfiler)
      return f.irecv(recvComm, 1, &data, &bytes, &tag, &registration, &event, request);
    else if constexpr (kHasSizes)
      return f.irecv(recvComm, 1, &data, &bytes, &tag, &registration, request);
    else
      return f.irecv(recvComm, 1, &data, &narrow, &tag, &registration, request);
  }
  int test(void *request, bool *isDone, size_t *bytes) const override {
    int done = 0, size = 0;
    const int result = f.test(request, &done, &size);
    *isDone = done != 0;
    // A negative size would become a huge one.
    *bytes = static_cast<size_t>(size < 0 ? 0 : size);
    return result;
  }
  int closeSend(void *sendComm) const override { return f.closeSend(sendComm); }
  int closeRecv(void *recvComm) const override { return f.closeRecv(recvComm); }
  int closeListen(void *listenComm) const override { return f.closeListen(listenComm); }

private:
  const Table &table;
  const decltype(Table::common) &f;
  mutable bool isInitialized = false;
  mutable Atomic<uint64_t> nextCommunicator{1};
};

template <class Table>
std::unique_ptr<NcclNetPlugin> adapt(void *(*find)(void *, const char *), void *library) {
  const std::string symbol = "ncclNetPlugin_v" + std::to_string(Table::kVersion);
  const auto *table = static_cast<const Table *>(find(library, symbol.c_str()));
  return table ? std::make_unique<Adapter<Table>>(*table) : nullptr;
}

} // namespace

std::unique_ptr<NcclNetPlugin> newestNcclNet(void *(*find)(void *, const char *), void *library) {
  // The newest version that the plugin has counts.
  for (const auto adaptOne :
       {adapt<NetV12>, adapt<NetV11>, adapt<NetV10>, adapt<NetV9>, adapt<NetV8>})
    if (auto adapted = adaptOne(find, library))
      return adapted;
  return nullptr;
}

} // namespace occl::net
