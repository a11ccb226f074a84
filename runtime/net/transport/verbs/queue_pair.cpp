// A queue pair, its two completion queues, and the way to the connected state.
#include "runtime/net/transport/verbs/queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <utility>

namespace occl::net {
namespace {

/// Most that is worth copying into a request.
constexpr uint32_t kInline = 128;

/// Seven attempts, of which the last begins six times as long after the first: soft RoCE takes 7
/// retries as endless.
constexpr uint8_t kRetries = 6;

/// Of InfiniBand, in whose terms an attempt lasts 4.096 us * 2^exponent: so that all take
/// `silence`.
uint8_t timeoutFor(std::chrono::milliseconds silence) {
  constexpr double kUnit = 4.096e-3;
  constexpr uint8_t kLeast = 8, kMost = 22;
  uint8_t exponent = kLeast;
  while (exponent < kMost && (kRetries + 1) * kUnit * static_cast<double>(1u << exponent) <
                                 static_cast<double>(silence.count()))
    ++exponent;
  return exponent;
}

Status noQueue(const RdmaDevice &device) {
  return rdmaError("no completion queue of " + device.name, errno);
}

} // namespace

CompletionQueue::CompletionQueue(const RdmaDevice &device, ibv_comp_channel *channel, ibv_cq *queue)
    : device(&device), channel(channel), queue(queue),
      notInherited(std::make_unique<bootstrap::ClosedInChildren>(channel->fd)) {}

CompletionQueue::CompletionQueue(CompletionQueue &&other) noexcept
    : device(other.device), channel(std::exchange(other.channel, nullptr)),
      queue(std::exchange(other.queue, nullptr)), notInherited(std::move(other.notInherited)),
      armed(other.armed) {}

StatusOr<CompletionQueue> CompletionQueue::make(const RdmaDevice &device, uint32_t size) {
  const Ibverbs &verbs = device.verbs;
  ibv_comp_channel *channel = verbs.create_comp_channel(device.context);
  if (!channel)
    return noQueue(device);
  // takeEvents() must not wait for an event.
  fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
  ibv_cq *queue =
      verbs.create_cq(device.context, static_cast<int>(size), nullptr, channel, /*vector=*/0);
  if (queue)
    return CompletionQueue(device, channel, queue);
  // The error is read before another call changes it.
  Status failed = noQueue(device);
  verbs.destroy_comp_channel(channel);
  return failed;
}

CompletionQueue::~CompletionQueue() {
  if (!queue)
    return;
  takeEvents(); // destroying waits until all are acknowledged
  device->destroy(queue);
  notInherited.reset();
  device->verbs.destroy_comp_channel(channel);
}

std::optional<size_t> CompletionQueue::poll(std::span<ibv_wc> completions) {
  const int found = ibv_poll_cq(queue, static_cast<int>(completions.size()), completions.data());
  return found < 0 ? std::nullopt : std::optional(static_cast<size_t>(found));
}

void CompletionQueue::arm() {
  if (!std::exchange(armed, true))
    ibv_req_notify_cq(queue, /*solicited_only=*/0);
}

bool CompletionQueue::takeEvents() {
  unsigned events = 0;
  ibv_cq *ofEvent = nullptr;
  void *unused = nullptr;
  while (device->verbs.get_cq_event(channel, &ofEvent, &unused) == 0)
    ++events;
  if (events == 0)
    return false;
  device->verbs.ack_cq_events(queue, events);
  // An event disarms the queue.
  armed = false;
  return true;
}

StatusOr<std::unique_ptr<QueuePair>> QueuePair::make(const RdmaPort &port, uint32_t numSends,
                                                     uint32_t numReceives) {
  auto sends = CompletionQueue::make(*port.device, numSends);
  if (!sends.ok())
    return sends.status();
  auto receives = CompletionQueue::make(*port.device, numReceives);
  if (!receives.ok())
    return receives.status();
  std::unique_ptr<QueuePair> made(new QueuePair(port, std::move(*sends), std::move(*receives)));
  // Made.
  ibv_qp_init_attr wanted{};
  wanted.send_cq = made->sends.get();
  wanted.recv_cq = made->receives.get();
  wanted.cap = {numSends, numReceives, 1, 1, kInline};
  wanted.qp_type = IBV_QPT_RC;
  const Ibverbs &verbs = made->verbs();
  made->protection = verbs.alloc_pd(port.device->context);
  if (made->protection)
    made->pair = verbs.create_qp(made->protection, &wanted);
  if (made->protection && !made->pair) { // some devices have no inline data
    wanted.cap = {numSends, numReceives, 1, 1, 0};
    made->pair = verbs.create_qp(made->protection, &wanted);
  }
  if (!made->pair)
    return rdmaError("no queue pair of " + port.device->name, errno);
  made->maxInline = std::min(kInline, wanted.cap.max_inline_data);
  // Initialized: the peer may write, once there is one.
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = port.number;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  if (Status changed = made->change(
          attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
          "initialize");
      !changed.ok())
    return changed;
  // A random first number keeps packets of an earlier pair out.
  constexpr uint32_t k24Bits = (1 << 24) - 1;
  made->own = {port.address, made->pair->qp_num, std::random_device()() & k24Bits,
               static_cast<uint32_t>(port.mtu)};
  return made;
}

QueuePair::~QueuePair() {
  close();
  if (protection)
    verbs().dealloc_pd(protection);
}

void QueuePair::stop() {
  ibv_qp_attr attributes{};
  // Pending requests are reported as failed from here on.
  attributes.qp_state = IBV_QPS_ERR;
  verbs().modify_qp(pair, &attributes, IBV_QP_STATE);
}

bool QueuePair::hasFailed() const {
  return port.device->hasFailed(pair) || port.device->hasFailed(sends.get()) ||
         port.device->hasFailed(receives.get());
}

void QueuePair::close() {
  if (ibv_qp *open = std::exchange(pair, nullptr))
    port.device->destroy(open);
}

Status QueuePair::change(ibv_qp_attr &attributes, int mask, const char *what) {
  const int error = verbs().modify_qp(pair, &attributes, mask);
  return error
             ? systemError("cannot " + std::string(what) + " a queue pair of " + port.text(), error)
             : Status();
}

Status QueuePair::connect(const QueuePairAddress &peer, std::chrono::milliseconds silence) {
  // Ready to receive.
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(
      std::clamp<uint32_t>(std::min(own.mtu, peer.mtu), IBV_MTU_256, IBV_MTU_4096));
  attributes.dest_qp_num = peer.number;
  attributes.rq_psn = peer.firstPacket;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = 1; // the shortest, 10 us: whoever sends knows that there is room
  ibv_ah_attr &path = attributes.ah_attr;
  path.port_num = port.number;
  path.dlid = static_cast<uint16_t>(peer.port.lid);
  // Without InfiniBand, or to another subnet, addresses count.
  path.is_global =
      !peer.port.isInfiniband ||
      !std::equal(peer.port.gid.begin(), peer.port.gid.begin() + 8, port.address.gid.begin());
  if (path.is_global) {
    std::memcpy(path.grh.dgid.raw, peer.port.gid.data(), peer.port.gid.size());
    path.grh.sgid_index = port.gidIndex;
    path.grh.hop_limit = 64;
  }
  if (Status changed = change(attributes,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                              "connect");
      !changed.ok())
    return changed;
  // Ready to send.
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = timeoutFor(silence);
  attributes.retry_cnt = kRetries;
  attributes.rnr_retry = kRetries;
  attributes.sq_psn = own.firstPacket;
  attributes.max_rd_atomic = 1;
  return change(attributes,
                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                "start");
}

bool QueuePair::post(ibv_send_wr &first) {
  ibv_send_wr *bad = nullptr;
  return ibv_post_send(pair, &first, &bad) == 0;
}

bool QueuePair::post(ibv_recv_wr &first) {
  ibv_recv_wr *bad = nullptr;
  return ibv_post_recv(pair, &first, &bad) == 0;
}

} // namespace occl::net
