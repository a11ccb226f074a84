// What the network plugin of tests exports: the interface of one version, OCCL_NCCL_NET_VERSION.
#include "runtime/net/transport/nccl_net/testing/sockets.h"

namespace occl::net::test_plugin {
namespace {

using namespace nccl;

#define OCCL_JOIN_(a, b) a##b
#define OCCL_JOIN(a, b) OCCL_JOIN_(a, b)
using Net = OCCL_JOIN(NetV, OCCL_NCCL_NET_VERSION);

template <class Properties> int getProperties(int device, Properties *properties) {
  *properties = {};
  size_t mostBytes = 0;
  const int result = nameOf(device, &properties->name, &mostBytes);
  properties->ptrSupport = kPointerHost;
  properties->speed = 10000;
  properties->maxComms = 65536;
  properties->maxRecvs = 1;
  properties->netDeviceType = kDeviceHost;
  if constexpr (requires { properties->maxP2pBytes; })
    properties->maxP2pBytes = mostBytes;
  if constexpr (requires { properties->railId; })
    properties->railId = properties->planeId = kNoId;
  return result;
}

[[maybe_unused]] int initAlone(Logger logger) { return init(nullptr, logger); }
[[maybe_unused]] int initProfiled(Logger logger, Profiler) { return init(nullptr, logger); }
[[maybe_unused]] int initInContext(void **context, uint64_t, Config *config, Logger logger,
                                   Profiler) {
  return config && config->trafficClass == kNoTrafficClass ? init(context, logger)
                                                           : kInvalidArgument;
}
[[maybe_unused]] int listenAlone(int device, void *handle, void **comm) {
  return listen(nullptr, device, handle, comm);
}
[[maybe_unused]] int connectAlone(int device, void *handle, void **comm, void **) {
  return connect(nullptr, device, handle, comm);
}
[[maybe_unused]] int connectWithConfig(int device, Config *config, void *handle, void **comm,
                                       void **) {
  return config && config->trafficClass == kNoTrafficClass ? connect(nullptr, device, handle, comm)
                                                           : kInvalidArgument;
}
[[maybe_unused]] int connectInContext(void *context, int device, void *handle, void **comm,
                                      void **) {
  return connect(context, device, handle, comm);
}
int acceptOne(void *listenComm, void **comm, void **) { return accept(listenComm, comm); }

/// All versions of it: what lies between the known parameters is of no interest.
template <class Size>
int isendPlain(void *comm, void *data, Size bytes, int, void *registration, void **request) {
  return isend(comm, data, static_cast<size_t>(bytes), registration, request);
}
template <class Size>
int irecvPlain(void *comm, int count, void **data, Size *bytes, int *, void **registrations,
               void **request) {
  return count == 1 ? irecv(comm, data[0], static_cast<size_t>(bytes[0]), registrations[0], request)
                    : kInvalidArgument;
}
[[maybe_unused]] int isendProfiled(void *comm, void *data, size_t bytes, int, void *registration,
                                   void *, void **request) {
  return isend(comm, data, bytes, registration, request);
}
[[maybe_unused]] int irecvProfiled(void *comm, int count, void **data, size_t *bytes, int *,
                                   void **registrations, void **, void **request) {
  return count == 1 ? irecv(comm, data[0], bytes[0], registrations[0], request) : kInvalidArgument;
}

Net tableOf() {
  Net net{};
  auto &f = net.common;
  f.name = "OCCL's plugin of tests";
  f.devices = devices;
  f.getProperties = getProperties<Net::Properties>;
  f.accept = acceptOne;
  f.regMr = regMr;
  f.deregMr = deregMr;
  f.test = test;
  f.closeSend = f.closeRecv = f.closeListen = closeComm;
#if OCCL_NCCL_NET_VERSION >= 11
  f.init = initInContext;
  f.listen = listen;
  f.connect = connectInContext;
  net.finalize = finalize;
#else
  f.listen = listenAlone;
#endif
#if OCCL_NCCL_NET_VERSION == 10
  f.init = initProfiled;
  f.connect = connectWithConfig;
#elif OCCL_NCCL_NET_VERSION < 10
  f.init = initAlone;
  f.connect = connectAlone;
#endif
#if OCCL_NCCL_NET_VERSION >= 10
  f.isend = isendProfiled;
  f.irecv = irecvProfiled;
#elif OCCL_NCCL_NET_VERSION == 9
  f.isend = isendPlain<size_t>;
  f.irecv = irecvPlain<size_t>;
#else
  f.isend = isendPlain<int>;
  f.irecv = irecvPlain<int>;
#endif
  return net;
}

} // namespace
} // namespace occl::net::test_plugin

extern "C" {
__attribute__((visibility("default"))) extern const occl::net::test_plugin::Net
    OCCL_JOIN(ncclNetPlugin_v, OCCL_NCCL_NET_VERSION) = occl::net::test_plugin::tableOf();
}
