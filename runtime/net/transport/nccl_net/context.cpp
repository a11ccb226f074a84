// A plugin with its devices, as one communicator uses it.
#include "runtime/net/transport/nccl_net/context.h"

#include "runtime/net/transport/nccl_net/packets.h"

#include <mutex>
#include <utility>

namespace occl::net {
namespace {

/// Of init(), devices() and getProperties(), of all plugins.
constinit PerProcess<Mutex> initializing;

/// Why it is of no use; empty if it is.
std::string faultOf(const NcclNetProperties &properties) {
  if (!(properties.ptrSupport & nccl::kPointerHost))
    return "does not move host memory";
  if (properties.netDeviceType != nccl::kDeviceHost)
    return "needs code on a GPU (type " + std::to_string(properties.netDeviceType) + ")";
  if (properties.maxRecvs < 1 || properties.maxComms < 1)
    return "has " + std::to_string(properties.maxRecvs) + " receives and " +
           std::to_string(properties.maxComms) + " connections at most";
  if (properties.maxP2pBytes < kLeastPacketBytes)
    return "moves " + std::to_string(properties.maxP2pBytes) + " bytes at a time, fewer than " +
           std::to_string(kLeastPacketBytes);
  return "";
}

} // namespace

StatusOr<std::shared_ptr<NcclNetContext>> NcclNetContext::open(const std::string &name) {
  auto plugin = loadNcclNet(name);
  if (!plugin.ok())
    return plugin.status();
  // Plugins are initialized one at a time.
  std::lock_guard lock(initializing.get());
  // Versions before 11 have no context.
  void *context = nullptr;
  if (const int result = (*plugin)->init(&context); result != nccl::kSuccess)
    return (*plugin)->error("init", result);
  std::shared_ptr<NcclNetContext> opened(new NcclNetContext(**plugin, context));
  if (Status found = opened->findDevices(); !found.ok())
    return found;
  return opened;
}

Status NcclNetContext::findDevices() {
  int count = 0;
  if (const int result = plugin.devices(&count); result != nccl::kSuccess)
    return plugin.error("devices", result);
  std::string whyNot;
  // A device that is of no use is passed over; the error says why if none is left.
  for (int number = 0; number < count; ++number) {
    NcclNetProperties properties;
    if (const int result = plugin.getProperties(number, properties); result != nccl::kSuccess)
      return plugin.error("getProperties", result);
    if (const std::string fault = faultOf(properties); !fault.empty())
      whyNot += "; device " + properties.name + " " + fault;
    else
      devices.push_back({number, std::move(properties)});
  }
  if (devices.empty())
    return {StatusCode::SystemError,
            "plugin " + plugin.name + " has no device that can be used" + whyNot};
  return {};
}

NcclNetContext::~NcclNetContext() {
  // A child of fork() calls nothing of the plugin.
  if (!mark.isThisProcess())
    return;
  std::lock_guard lock(mutex);
  plugin.finalize(context);
}

} // namespace occl::net
