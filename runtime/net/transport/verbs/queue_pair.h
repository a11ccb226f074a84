// A reliable connection over RDMA: a queue pair with a completion queue for what it has sent and
// one for what it has received.
#pragma once

#include "runtime/base/status.h"
#include "runtime/net/transport/verbs/port.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace occl::net {

/// With a descriptor to sleep on. One thread at a time.
class CompletionQueue {
public:
  static StatusOr<CompletionQueue> make(const RdmaDevice &device, uint32_t size);
  CompletionQueue(CompletionQueue &&other) noexcept;
  ~CompletionQueue();

  /// How many there were; nothing: the queue has failed.
  std::optional<size_t> poll(std::span<ibv_wc> completions);
  /// The descriptor turns readable at the next completion. Those before that are still to be
  /// polled.
  void arm();
  /// Takes what made the descriptor readable: false if nothing has.
  bool takeEvents();
  bool isArmed() const { return armed; }
  int descriptor() const { return channel->fd; }
  ibv_cq *get() const { return queue; }

private:
  CompletionQueue(const RdmaDevice &device, ibv_comp_channel *channel, ibv_cq *queue);

  const RdmaDevice *device;
  ibv_comp_channel *channel;
  ibv_cq *queue;
  std::unique_ptr<bootstrap::ClosedInChildren> notInherited;
  bool armed = false;
};

/// What the other side needs to connect. Fixed layout: it is sent as it is.
struct QueuePairAddress {
  PortAddress port;
  uint32_t number = 0, firstPacket = 0, mtu = 0, unused = 0;
};

/// Thread safety: none, but sends and receives are independent.
class QueuePair {
public:
  /// With room for so many requests to send and to receive. Inline data of `maxInline` bytes, if
  /// the device has that.
  static StatusOr<std::unique_ptr<QueuePair>> make(const RdmaPort &port, uint32_t numSends,
                                                   uint32_t numReceives);
  /// What is registered in its domain is not any more.
  ~QueuePair();
  /// Nothing is sent or lands in this process's memory any more.
  void close();
  QueuePair(const QueuePair &) = delete;
  QueuePair &operator=(const QueuePair &) = delete;

  const QueuePairAddress &address() const { return own; }
  /// Afterwards it can send, once the peer has connected, too, and has posted what receives it.
  /// What is not acknowledged for `silence` is an error, within four times of that.
  Status connect(const QueuePairAddress &peer, std::chrono::milliseconds silence);

  /// Nothing is sent or received any more: requests fail.
  void stop();
  /// Whether the device says that it, or this pair, has failed.
  bool hasFailed() const;
  /// In which memory is registered for this pair: the peers of others have no access to it.
  ibv_pd *domain() const { return protection; }

  /// Of a list of requests; whether they were taken.
  bool post(ibv_send_wr &first);
  bool post(ibv_recv_wr &first);

  const RdmaPort port;
  CompletionQueue sends, receives;
  uint32_t maxInline = 0; // bytes of a request that may be reused at once

private:
  const Ibverbs &verbs() const { return port.device->verbs; }
  QueuePair(const RdmaPort &port, CompletionQueue sends, CompletionQueue receives)
      : port(port), sends(std::move(sends)), receives(std::move(receives)) {}
  Status change(ibv_qp_attr &attributes, int mask, const char *what);

  ibv_pd *protection = nullptr;
  ibv_qp *pair = nullptr;
  QueuePairAddress own;
};

} // namespace occl::net
