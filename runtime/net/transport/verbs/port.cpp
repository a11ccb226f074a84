// Finds the RDMA ports of the machine, and pairs those of two ranks.
#include "runtime/net/transport/verbs/port.h"

#include "runtime/base/process_identity.h"
#include "runtime/net/rendezvous/socket.h"
#include "support/name_list.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <mutex>
#include <optional>
#include <tuple>
#include <unistd.h>
#include <utility>

namespace occl::net {
namespace {

/// Of RoCE.
Address hostOf(const PortAddress &address) { return {.host = address.gid}; }

/// What the kernel says of an address; "" if it says nothing.
std::string attributeOf(const ibv_device &device, int port, const char *attribute, int index) {
  std::ifstream file(std::string(device.ibdev_path) + "/ports/" + std::to_string(port) +
                     "/gid_attrs/" + attribute + "/" + std::to_string(index));
  std::string text;
  std::getline(file, text);
  return text;
}

/// Not of RoCE v1, nor of an interface that is in another network namespace.
bool isUsable(const ibv_device &device, int port, int index) {
  const std::string interface = attributeOf(device, port, "ndevs", index);
  return attributeOf(device, port, "types", index) == "RoCE v2" && !interface.empty() &&
         access(("/sys/class/net/" + interface).c_str(), F_OK) == 0;
}

/// As NCCL_IB_HCA says: empty takes all.
bool isAllowed(const std::string &device, unsigned port) {
  const char *text = std::getenv("NCCL_IB_HCA");
  return !text || !*text || NameList(text).takes(device, port);
}

void addPort(const Ibverbs &verbs, const RdmaDevice &device, uint8_t number, RdmaPorts &found) {
  if (!isAllowed(device.name, number))
    return;
  ibv_port_attr port{};
  // The library writes as much as the first version of this structure has.
  if (verbs.query_port(device.context, number, reinterpret_cast<_compat_ibv_port_attr *>(&port)) ||
      port.state != IBV_PORT_ACTIVE)
    return;
  // Ports have numbers across all devices.
  const uint32_t numPorts = found.ports.empty() ? 0 : found.ports.back().address.number + 1;
  const bool isInfiniband = port.link_layer == IBV_LINK_LAYER_INFINIBAND;
  if (!isInfiniband && port.link_layer != IBV_LINK_LAYER_ETHERNET)
    return;
  const int numGids = std::min(port.gid_tbl_len, 255);
  // InfiniBand has its first address, RoCE every one that is usable.
  for (int index = 0; index < (isInfiniband ? 1 : numGids); ++index) {
    ibv_gid gid{};
    if (verbs.query_gid(device.context, number, index, &gid))
      continue;
    PortAddress address;
    std::memcpy(address.gid.data(), gid.raw, sizeof gid.raw);
    address.number = numPorts;
    address.isInfiniband = isInfiniband;
    address.lid = isInfiniband ? port.lid : uint16_t{0};
    if (!isInfiniband && (address.gid == PortAddress().gid || hostOf(address).isLinkLocal() ||
                          !isUsable(*device.context->device, number, index)))
      continue;
    found.ports.push_back({&device, number, static_cast<uint8_t>(index), port.active_mtu, address});
  }
}

void addDevice(const Ibverbs &verbs, ibv_device *device, RdmaPorts &found) {
  ibv_context *context = verbs.open_device(device);
  if (!context)
    return;
  // It stays open: endpoints of any communicator use it.
  const auto *opened = new RdmaDevice(verbs, context, verbs.get_device_name(device));
  constexpr uint8_t kMostPorts = 8; // asked for one that is not there a device gives an error
  for (uint8_t number = 1; number <= kMostPorts; ++number)
    addPort(verbs, *opened, number, found);
}

RdmaPorts find() {
  RdmaPorts found;
  const auto verbs = Ibverbs::load();
  if (!verbs.ok()) {
    found.whyNone = verbs.status().message();
    return found;
  }
  (*verbs)->fork_init(); // on kernels that do not copy registered memory at a fork
  int numDevices = 0;
  ibv_device **devices = (*verbs)->get_device_list(&numDevices);
  for (int i = 0; devices && i < numDevices; ++i)
    addDevice(**verbs, devices[i], found);
  if (devices)
    (*verbs)->free_device_list(devices);
  if (found.ports.empty())
    // The error tells a machine without a device from one whose ports are of no use.
    found.whyNone = numDevices == 0 ? "this machine has no RDMA device"
                                    : "no port of an RDMA device of this machine is up, has an "
                                      "address and is one that NCCL_IB_HCA names, if that is set";
  return found;
}

struct FoundPorts {
  Mutex mutex;
  std::optional<RdmaPorts> ports;
};

/// Smaller is better; none: they cannot reach each other.
std::optional<uint32_t> distance(const PortAddress &a, const PortAddress &b) {
  const bool isIpv4 = hostOf(a).isIpv4();
  if (a.isInfiniband != b.isInfiniband || isIpv4 != hostOf(b).isIpv4())
    return std::nullopt;
  const size_t prefix = isIpv4 ? 15 : 8; // /24, and /64
  return std::equal(a.gid.begin(), a.gid.begin() + prefix, b.gid.begin()) ? 0 : 1;
}

/// How many ports of its machine come before that of this address in this turn.
uint64_t numBefore(std::span<const PortAddress> ports, size_t index, uint32_t turn) {
  // The offer of a peer may leave out ports, so the largest number counts.
  uint64_t numPorts = 0;
  for (const PortAddress &port : ports)
    numPorts = std::max(numPorts, uint64_t{port.number} + 1);
  return (ports[index].number + numPorts - turn % numPorts) % numPorts;
}

} // namespace

std::string RdmaPort::text() const { return device->name + " port " + std::to_string(number); }

const RdmaPorts &rdmaPorts() {
  // What a parent has opened is the parent's.
  static constinit PerProcess<FoundPorts> ofProcess;
  FoundPorts &found = ofProcess.get();
  std::lock_guard lock(found.mutex);
  if (!found.ports)
    found.ports = find();
  return *found.ports;
}

PortPair choosePorts(std::span<const PortAddress> ofFirst, uint32_t turnOfFirst,
                     std::span<const PortAddress> ofSecond, uint32_t turnOfSecond) {
  PortPair best;
  std::tuple<uint32_t, uint64_t, uint64_t> leastCost;
  // The nearest ports are best; among equals those whose turn it is.
  for (size_t i = 0; i < ofFirst.size(); ++i)
    for (size_t j = 0; j < ofSecond.size(); ++j) {
      const auto far = distance(ofFirst[i], ofSecond[j]);
      if (!far)
        continue;
      const std::tuple cost(*far, numBefore(ofFirst, i, turnOfFirst),
                            numBefore(ofSecond, j, turnOfSecond));
      if (best.first < 0 || cost < leastCost) {
        best = {static_cast<int>(i), static_cast<int>(j)};
        leastCost = cost;
      }
    }
  return best;
}

RdmaDevice::RdmaDevice(const Ibverbs &verbs, ibv_context *context, std::string name)
    : verbs(verbs), context(context), name(std::move(name)), notInherited(context->cmd_fd) {
  const int events = context->async_fd;
  fcntl(events, F_SETFL, fcntl(events, F_GETFL) | O_NONBLOCK);
}

bool RdmaDevice::hasFailed(const void *queue) const {
  std::lock_guard lock(mutex);
  ibv_async_event event{};
  // Take all events of the device; those of other queues are kept for their owners.
  while (verbs.get_async_event(context, &event) == 0) {
    switch (event.event_type) {
    case IBV_EVENT_DEVICE_FATAL:
      isBroken = true;
      break;
    case IBV_EVENT_CQ_ERR:
      failedQueues.insert(event.element.cq);
      break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      failedQueues.insert(event.element.qp);
      break;
    default:; // of ports: their connections fail if they do not come back
    }
    verbs.ack_async_event(&event);
  }
  return isBroken || failedQueues.contains(queue);
}

// With the lock, so that nobody takes an event of the queue in between.

void RdmaDevice::destroy(ibv_qp *queue) const {
  std::lock_guard lock(mutex);
  verbs.destroy_qp(queue);
  failedQueues.erase(queue);
}

void RdmaDevice::destroy(ibv_cq *queue) const {
  std::lock_guard lock(mutex);
  verbs.destroy_cq(queue);
  failedQueues.erase(queue);
}

Status rdmaError(const std::string &what, int error) {
  return systemError(error == ENOMEM ? what + ", is the limit of locked memory (ulimit -l) too low?"
                                     : what,
                     error);
}

StatusOr<Registration> Registration::make(ibv_pd *domain, std::span<std::byte> memory, int access) {
  // In parentheses: the header has a macro of this name.
  if (ibv_mr *region = ((*Ibverbs::load())->reg_mr)(domain, memory.data(), memory.size(), access))
    return Registration(region);
  return rdmaError("cannot register " + std::to_string(memory.size()) + " bytes", errno);
}

Registration::~Registration() {
  if (region)
    (*Ibverbs::load())->dereg_mr(region);
}

} // namespace occl::net
