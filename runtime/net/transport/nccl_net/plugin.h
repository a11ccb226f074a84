// A network plugin of NCCL, loaded where it lies: neither a build nor a program depends on one. One
// interface for all versions of theirs that are known, 8 to 12.
#pragma once

#include "runtime/base/status.h"
#include "runtime/net/transport/nccl_net/abi.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace occl::net {

/// Of a device, as far as it matters here.
struct NcclNetProperties {
  std::string name;
  int ptrSupport = 0, speed = 0, maxComms = 0, maxRecvs = 0, netDeviceType = 0;
  size_t maxP2pBytes = nccl::kBytesBeforeV9;
};

/// The functions of a plugin, with NCCL's results. Thread safety: none is known, so one thread at a
/// time is in those of a context and of what was made in it; init(), devices() and getProperties()
/// one of the process.
class NcclNetPlugin {
public:
  NcclNetPlugin(int version, const char *name) : version(version), name(name) {}
  virtual ~NcclNetPlugin() = default;

  /// Once a communicator; before version 11 once a process, and then the context is null.
  virtual int init(void **context) const = 0;
  virtual int finalize(void *context) const = 0;
  virtual int devices(int *count) const = 0;
  virtual int getProperties(int device, NcclNetProperties &properties) const = 0;
  virtual int listen(void *context, int device, void *handle, void **listenComm) const = 0;
  virtual int connect(void *context, int device, void *handle, void **sendComm) const = 0;
  virtual int accept(void *listenComm, void **recvComm) const = 0;
  /// Of host memory.
  virtual int regMr(void *comm, void *data, size_t bytes, void **registration) const = 0;
  virtual int deregMr(void *comm, void *registration) const = 0;
  virtual int isend(void *sendComm, void *data, size_t bytes, void *registration,
                    void **request) const = 0;
  virtual int irecv(void *recvComm, void *data, size_t bytes, void *registration,
                    void **request) const = 0;
  virtual int test(void *request, bool *isDone, size_t *bytes) const = 0;
  virtual int closeSend(void *sendComm) const = 0;
  virtual int closeRecv(void *recvComm) const = 0;
  virtual int closeListen(void *listenComm) const = 0;

  /// "plugin AWS Libfabric: connect() has failed with 6 (a remote error)".
  Status error(const char *function, int result) const;

  const int version;
  const std::string name;
};

/// The files for that value of NCCL_NET_PLUGIN, of which the first that can be loaded counts: the
/// path that it is, if it has a '/' or ends in ".so"; libnccl-net-NAME.so, then NAME;
/// libnccl-net.so if it is empty.
std::vector<std::string> ncclNetFiles(std::string_view name);

/// Loads it once a process, whatever its name, and never unloads it, as it may have threads.
/// SystemError: it cannot be loaded, has no known version, or was loaded before fork() made this
/// process. Any thread.
StatusOr<const NcclNetPlugin *> loadNcclNet(const std::string &name);

} // namespace occl::net
