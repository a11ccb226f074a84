// Partitioned transfers and collectives for C++20, over occl_partitioned.h, whose comments are the
// reference. A part of occl.hpp of its own; header only.
//
//   auto send = occl::psend<float>(comm, field, 64, 1);      // rank 0; field is any span of float
//   auto receive = occl::precv<float>(comm, field, 48, 0);   // rank 1
//   send.start();
//   send.ready(p);                                           // by any threads, for each partition
//   send.wait();
//
// Functions throw Error. The buffers live until the request is destroyed. Requests are of ranks on
// hosts: those of communicators on devices, whose epochs are work of streams, are refused.
#pragma once

#include "occl.hpp"
#include "occl_partitioned.h"

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

namespace occl {

/// A persistent send, receive or collective, which the communicator must outlive. Movable, not
/// while a thread is in a call of it; threads as occl_partitioned.h says.
///
/// Destroyed with an epoch it waits until that is over, however it ends: so all partitions are
/// marked before. If an exception is why it is destroyed nobody would mark them: then the
/// communicator is aborted first, on all ranks. Without an epoch it is only freed.
class Partitioned {
public:
  /// Takes over a handle of the communicator's, which is started by start() alone. Throws Error
  /// with occlInvalidArgument, and has freed it, if it is of a communicator on devices: what ends
  /// such an epoch is work of a stream, which no scope waits for (occl_partitioned_device.h).
  Partitioned(occlComm_t comm, occlPart_t part) : comm(comm), part(part) {
    // Without an epoch this is nothing else, whatever has become of the communicator.
    if (!part || occlPtest(part) != occlInvalidArgument)
      return;
    const std::string why = occlGetLastError();
    occlPfree(part);
    throw Error(occlInvalidArgument, why);
  }
  Partitioned(Partitioned &&other) noexcept
      : comm(other.comm), part(std::exchange(other.part, nullptr)),
        active(std::exchange(other.active, false)) {}
  Partitioned &operator=(Partitioned &&other) noexcept {
    if (this != &other) {
      end();
      comm = other.comm;
      part = std::exchange(other.part, nullptr);
      active = std::exchange(other.active, false);
      exceptions = std::uncaught_exceptions();
    }
    return *this;
  }
  ~Partitioned() { end(); }

  occlPart_t handle() const { return part; }

  /// Its rounds or messages, and whether arrivals may come before all is marked.
  occlPartInfo_t info() const {
    occlPartInfo_t known = OCCL_PART_INFO_INITIALIZER;
    check(occlPquery(part, &known));
    return known;
  }

  /// Begins the next epoch.
  void start() {
    check(occlPstart(part));
    active = true;
  }
  /// Marks a partition, those from first to last (both included), or those of a list.
  void ready(int64_t partition) { check(occlPready(part, partition)); }
  void readyRange(int64_t first, int64_t last) { check(occlPreadyRange(part, first, last)); }
  void ready(std::span<const int64_t> partitions) {
    check(occlPreadyList(part, partitions.size(), partitions.data()));
  }
  void ready(std::initializer_list<int64_t> partitions) {
    check(occlPreadyList(part, partitions.size(), partitions.begin()));
  }
  /// Whether a partition has arrived, and may be accessed.
  bool arrived(int64_t partition) const {
    int32_t flag = 0;
    check(occlParrived(part, partition, &flag));
    return flag != 0;
  }
  /// Returns when the other side has started this epoch, too; nothing needs it.
  void prepare() { check(occlPprepare(part)); }
  /// The epoch's end: whether it is over, and returns when it is. Throws Error if it failed.
  bool test() {
    const occlResult_t result = occlPtest(part);
    if (result == occlInProgress)
      return false;
    active = false;
    check(result);
    return true;
  }
  void wait() {
    const occlResult_t result = occlPwait(part);
    active = false;
    check(result);
  }

private:
  void end() {
    if (!part)
      return;
    if (active && std::uncaught_exceptions() > exceptions)
      occlCommAbort(comm);
    occlPwait(part);
    occlPfree(part);
    part = nullptr;
  }

  occlComm_t comm;
  occlPart_t part;
  bool active = false; // it has an epoch; only who starts and waits looks
  int exceptions = std::uncaught_exceptions();
};

/// See occlPartConfig_t.
struct PartitionedOptions {
  uint64_t partitionsPerMessage = 0; // of sends
  uint64_t rounds = 0;               // of collectives
};

namespace detail {

inline occlPartConfig_t partConfigOf(const PartitionedOptions &options) {
  occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
  config.partitionsPerMessage = options.partitionsPerMessage;
  config.rounds = options.rounds;
  return config;
}

/// Elements of one of the partitions, all of which have as many.
inline uint64_t elementsOfPartition(const char *what, uint64_t elements, int64_t partitions) {
  const uint64_t number = partitions > 0 ? static_cast<uint64_t>(partitions) : 1;
  if (partitions >= 0 && elements % number == 0 && (partitions != 0 || elements == 0))
    return elements / number;
  throw Error(occlInvalidArgument, std::string(what) + ": " + std::to_string(elements) +
                                       " elements are no " + std::to_string(partitions) +
                                       " partitions of as many each");
}

} // namespace detail

/// `values`, in so many partitions, become those of the receive of rank `destination`. T is said.
template <class T>
Partitioned psend(const Communicator &comm, Communicator::Input<T> values, int64_t partitions,
                  int64_t destination, int64_t tag = 0, const PartitionedOptions &options = {}) {
  const uint64_t count = detail::elementsOfPartition("psend", values.size(), partitions);
  const occlPartConfig_t config = detail::partConfigOf(options);
  occlPart_t part = nullptr;
  check(occlPsendInit(comm.handle(), values.data(), partitions, count, dataTypeOf<T>(), destination,
                      tag, &config, &part));
  return Partitioned(comm.handle(), part);
}
template <class T>
Partitioned precv(const Communicator &comm, std::span<std::type_identity_t<T>> values,
                  int64_t partitions, int64_t source, int64_t tag = 0) {
  const uint64_t count = detail::elementsOfPartition("precv", values.size(), partitions);
  occlPart_t part = nullptr;
  check(occlPrecvInit(comm.handle(), values.data(), partitions, count, dataTypeOf<T>(), source, tag,
                      nullptr, &part));
  return Partitioned(comm.handle(), part);
}

/// A collective: what `call` says, whose count is of a part, and whose buffers are in so many
/// partitions, as occlPcollInit says. The spans are as long as count, kind or plan, and rank say.
inline Partitioned pcall(const Communicator &comm, const Call &what, const void *send,
                         int64_t sendPartitions, void *receive, int64_t recvPartitions,
                         const PartitionedOptions &options = {}) {
  const occlCall_t given = what.given(send, receive);
  const occlPartConfig_t config = detail::partConfigOf(options);
  occlPart_t part = nullptr;
  check(occlPcollInit(comm.handle(), &given, sendPartitions, recvPartitions, &config, &part));
  return Partitioned(comm.handle(), part);
}
template <class T>
Partitioned pcall(const Communicator &comm, Call what, Communicator::Input<T> send,
                  int64_t sendPartitions, std::span<std::type_identity_t<T>> receive,
                  int64_t recvPartitions, const PartitionedOptions &options = {}) {
  what.type = dataTypeOf<T>();
  return pcall(comm, what, send.data(), sendPartitions, receive.data(), recvPartitions, options);
}

/// receive: the reduction of all ranks' send, which is as long.
template <class T>
Partitioned pallReduce(const Communicator &comm, Communicator::Input<T> send,
                       int64_t sendPartitions, std::span<std::type_identity_t<T>> receive,
                       int64_t recvPartitions, occlRedOp_t op = occlSum,
                       const PartitionedOptions &options = {}) {
  if (receive.size() != send.size())
    throw Error(occlInvalidArgument, "pallReduce: receive has " + std::to_string(receive.size()) +
                                         " elements, it needs " + std::to_string(send.size()));
  return pcall<T>(comm, {.kind = occlKindAllReduce, .count = send.size(), .op = op}, send,
                  sendPartitions, receive, recvPartitions, options);
}

} // namespace occl
