// What NCCL's network plugins export, by the versions of that interface: names, order and sizes are
// NVIDIA's, the declarations are this project's own. NCCL's ncclResult_t and enumerations are ints.
#pragma once

#include <cstddef>
#include <cstdint>

namespace occl::net::nccl {

/// ncclResult_t.
enum : int {
  kSuccess = 0,
  kCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
};

/// Levels of what a plugin logs.
enum : int { kLogWarn = 2, kLogInfo = 3 };

/// Of `Properties::ptrSupport`, and the type of memory in regMr.
inline constexpr int kPointerHost = 1;
/// Of `Properties::netDeviceType`: connections are driven by the host alone.
inline constexpr int kDeviceHost = 0;
/// What listen() writes for the peer's connect().
inline constexpr size_t kHandleBytes = 128;
/// Requests that each sendComm and recvComm can have.
inline constexpr int kMostRequests = 32;
/// Most bytes of one request where properties do not say.
inline constexpr size_t kBytesBeforeV9 = size_t{1} << 30;
inline constexpr int kNoTrafficClass = -1;
inline constexpr int16_t kNoId = -1;

using Logger = void (*)(int level, unsigned long subsystems, const char *file, int line,
                        const char *format, ...);
using Profiler = int (*)(void **event, int type, void *parent, int64_t plugin, void *data);

struct PropertiesV8 {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, regIsGlobal, speed, port; // speed: Mbit/s
  float latency;
  int maxComms, maxRecvs, netDeviceType, netDeviceVersion;
};
static_assert(sizeof(PropertiesV8) == 64 && offsetof(PropertiesV8, maxRecvs) == 48);

/// The devices that a virtual one is made of.
template <int MostDevices> struct VirtualDevice {
  int numDevices;
  int devices[MostDevices];
};

/// And of v10.
struct PropertiesV9 {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, regIsGlobal, forceFlush, speed, port;
  float latency;
  int maxComms, maxRecvs, netDeviceType, netDeviceVersion;
  VirtualDevice<4> virtualDevice;
  size_t maxP2pBytes, maxCollBytes;
};
static_assert(sizeof(PropertiesV9) == 104 && offsetof(PropertiesV9, maxRecvs) == 52 &&
              offsetof(PropertiesV9, maxP2pBytes) == 88);

struct PropertiesV11 {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, regIsGlobal, forceFlush, speed, port;
  float latency;
  int maxComms, maxRecvs, netDeviceType, netDeviceVersion;
  VirtualDevice<4> virtualDevice;
  size_t maxP2pBytes, maxCollBytes;
  int maxMultiRequestSize;
};
static_assert(sizeof(PropertiesV11) == 112 && offsetof(PropertiesV11, maxMultiRequestSize) == 104);

struct PropertiesV12 {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, regIsGlobal, forceFlush, speed, port;
  float latency;
  int maxComms, maxRecvs, netDeviceType, netDeviceVersion;
  VirtualDevice<8> virtualDevice;
  size_t maxP2pBytes, maxCollBytes;
  int maxMultiRequestSize;
  int16_t railId, planeId;
};
static_assert(sizeof(PropertiesV12) == 128 && offsetof(PropertiesV12, maxP2pBytes) == 104 &&
              offsetof(PropertiesV12, planeId) == 126);

/// From v10 on.
struct Config {
  int trafficClass;
};

/// What is the same in all versions, with the functions that are not as parameters. Functions of
/// connect and accept may succeed with a null comm, isend and irecv with a null request: they are
/// to be called again.
template <class Init, class Properties, class Listen, class Connect, class Isend, class Irecv>
struct Functions {
  const char *name;
  Init *init;
  int (*devices)(int *count);
  int (*getProperties)(int device, Properties *properties);
  Listen *listen;
  Connect *connect;
  int (*accept)(void *listenComm, void **recvComm, void **deviceHandle);
  int (*regMr)(void *comm, void *data, size_t bytes, int type, void **registration);
  int (*regMrDmaBuf)(void *comm, void *data, size_t bytes, int type, uint64_t offset,
                     int descriptor, void **registration);
  int (*deregMr)(void *comm, void *registration);
  Isend *isend;
  Irecv *irecv;
  int (*iflush)(void *recvComm, int count, void **data, int *bytes, void **registrations,
                void **request);
  int (*test)(void *request, int *isDone, int *bytes);
  int (*closeSend)(void *sendComm);
  int (*closeRecv)(void *recvComm);
  int (*closeListen)(void *listenComm);
  int (*getDeviceMr)(void *comm, void *registration, void **deviceRegistration);
  int (*irecvConsumed)(void *recvComm, int count, void *request);
};

using ListenOnDevice = int(int device, void *handle, void **listenComm);
using ListenInContext = int(void *context, int device, void *handle, void **listenComm);
using ConnectOnDevice = int(int device, void *handle, void **sendComm, void **deviceHandle);
using ConnectWithConfig = int(int device, Config *config, void *handle, void **sendComm,
                              void **deviceHandle);
using ConnectInContext = int(void *context, int device, void *handle, void **sendComm,
                             void **deviceHandle);
using IsendInt = int(void *sendComm, void *data, int bytes, int tag, void *registration,
                     void **request);
using IrecvInt = int(void *recvComm, int count, void **data, int *bytes, int *tags,
                     void **registrations, void **request);
using Isend = int(void *sendComm, void *data, size_t bytes, int tag, void *registration,
                  void **request);
using Irecv = int(void *recvComm, int count, void **data, size_t *bytes, int *tags,
                  void **registrations, void **request);
using IsendProfiled = int(void *sendComm, void *data, size_t bytes, int tag, void *registration,
                          void *event, void **request);
using IrecvProfiled = int(void *recvComm, int count, void **data, size_t *bytes, int *tags,
                          void **registrations, void **events, void **request);
using InitInContext = int(void **context, uint64_t communicator, Config *config, Logger logger,
                          Profiler profiler);

struct NetV8 {
  static constexpr int kVersion = 8;
  using Properties = PropertiesV8;
  Functions<int(Logger), Properties, ListenOnDevice, ConnectOnDevice, IsendInt, IrecvInt> common;
};
static_assert(sizeof(NetV8) == 152);

struct NetV9 {
  static constexpr int kVersion = 9;
  using Properties = PropertiesV9;
  Functions<int(Logger), Properties, ListenOnDevice, ConnectOnDevice, Isend, Irecv> common;
  int (*makeVDevice)(int *device, VirtualDevice<4> *parts);
};
static_assert(sizeof(NetV9) == 160);

struct NetV10 {
  static constexpr int kVersion = 10;
  using Properties = PropertiesV9;
  Functions<int(Logger, Profiler), Properties, ListenOnDevice, ConnectWithConfig, IsendProfiled,
            IrecvProfiled>
      common;
  int (*makeVDevice)(int *device, VirtualDevice<4> *parts);
};
static_assert(sizeof(NetV10) == 160);

struct NetV11 {
  static constexpr int kVersion = 11;
  using Properties = PropertiesV11;
  Functions<InitInContext, Properties, ListenInContext, ConnectInContext, IsendProfiled,
            IrecvProfiled>
      common;
  int (*makeVDevice)(int *device, VirtualDevice<4> *parts);
  int (*finalize)(void *context);
  int (*setNetAttr)(void *context, void *attributes);
};
static_assert(sizeof(NetV11) == 176 && offsetof(NetV11, finalize) == 160);

struct NetV12 {
  static constexpr int kVersion = 12;
  using Properties = PropertiesV12;
  Functions<InitInContext, Properties, ListenInContext, ConnectInContext, IsendProfiled,
            IrecvProfiled>
      common;
  int (*makeVDevice)(int *device, VirtualDevice<8> *parts);
  int (*finalize)(void *context);
  int (*setNetAttr)(void *context, void *attributes);
};
static_assert(sizeof(NetV12) == 176 && offsetof(NetV12, finalize) == 160);

} // namespace occl::net::nccl
