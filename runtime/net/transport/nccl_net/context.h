// A plugin as all connections of one communicator use it: NCCL calls what belongs to a communicator
// by one thread at a time, and so does this.
#pragma once

#include "runtime/base/process_identity.h"
#include "runtime/base/status.h"
#include "runtime/net/transport/nccl_net/plugin.h"
#include "runtime/sync/mutex.h"

#include <memory>
#include <string>
#include <vector>

namespace occl::net {

/// One that moves host memory by the host.
struct NcclNetDevice {
  int number = 0; // of the plugin
  NcclNetProperties properties;
};

/// Thread safety: whoever calls the plugin holds `mutex`. A process that fork() makes calls nothing
/// of it.
class NcclNetContext {
public:
  /// Loads and initializes the plugin of that name. SystemError: why it cannot be used, naming the
  /// plugin, its function and its result.
  static StatusOr<std::shared_ptr<NcclNetContext>> open(const std::string &name);
  ~NcclNetContext();
  NcclNetContext(const NcclNetContext &) = delete;
  NcclNetContext &operator=(const NcclNetContext &) = delete;

  const NcclNetPlugin &plugin;
  void *const context; // of the plugin
  const ProcessMark mark;
  mutable Mutex mutex;
  std::vector<NcclNetDevice> devices; // not empty

private:
  NcclNetContext(const NcclNetPlugin &plugin, void *context) : plugin(plugin), context(context) {}
  Status findDevices();
};

} // namespace occl::net
