// OCCL for C++20: handles that free themselves, errors as exceptions, spans instead of pointers,
// over occl.h, whose comments are the reference. Header only.
//
//   std::vector<occl::Communicator> ranks = occl::Communicator::all(2);
//   ... on the thread of each rank r, with vectors of float:
//   ranks[r].allReduce<float>(data, result);                               // sum
//   occl::Plan ring("ring.plan");                                          // one of your own
//   ranks[r].start<float>({.plan = ring, .count = data.size(), .id = 7}, data, result).wait();
#pragma once

#include "occl.h"
#include "occl_insight.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace occl {

/// What a call returned that is neither success nor, where that is an answer, "again" or "in
/// progress".
class Error : public std::runtime_error {
public:
  explicit Error(occlResult_t result) : Error(result, occlGetLastError()) {}
  Error(occlResult_t result, const std::string &text)
      : std::runtime_error(std::string(occlGetErrorString(result)) + ": " + text), code(result) {}
  occlResult_t result() const { return code; }

private:
  occlResult_t code;
};

/// Throws Error unless `result` is occlSuccess.
inline void check(occlResult_t result) {
  if (result != occlSuccess)
    throw Error(result);
}

/// Of the library that is loaded, or that a program was compiled with.
struct Version {
  uint32_t major = 0, minor = 0;
  bool operator==(const Version &) const = default;
};

inline constexpr Version kHeaderVersion{OCCL_VERSION_MAJOR, OCCL_VERSION_MINOR};

inline Version libraryVersion() {
  Version version;
  check(occlGetVersion(&version.major, &version.minor));
  return version;
}

/// A plan read from a file and verified. Copies share it. Thread safety: any.
class Plan {
public:
  /// Throws Error (occlInvalidPlan) saying what is wrong.
  explicit Plan(const std::string &path) {
    occlPlan_t loaded = nullptr;
    check(occlPlanLoad(path.c_str(), &loaded));
    plan.reset(loaded, occlPlanDestroy);
  }
  /// Takes over a handle.
  explicit Plan(occlPlan_t handle) : plan(handle, occlPlanDestroy) {}

  occlPlan_t handle() const { return plan.get(); }
  uint32_t numRanks() const {
    uint32_t ranks = 0;
    check(occlPlanQuery(handle(), &ranks, nullptr, nullptr));
    return ranks;
  }
  std::string collective() const {
    const char *text = nullptr;
    check(occlPlanQuery(handle(), nullptr, &text, nullptr));
    return text;
  }

private:
  std::shared_ptr<occlPlan> plan;
};

/// The element type that a C++ type is; those with 8 and 16 bits have none in C++20 but uint8_t,
/// and go by Call::type and pointers.
template <class T> constexpr occlDataType_t dataTypeOf() {
  if constexpr (std::is_same_v<T, uint8_t>)
    return occlUint8;
  else if constexpr (std::is_same_v<T, int8_t>)
    return occlInt8;
  else if constexpr (std::is_same_v<T, int32_t>)
    return occlInt32;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return occlUint32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return occlInt64;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return occlUint64;
  else if constexpr (std::is_same_v<T, float>)
    return occlFloat32;
  else {
    static_assert(std::is_same_v<T, double>, "OCCL has no such element type");
    return occlFloat64;
  }
}

/// What is called: a plan of one's own, or a kind of collective that OCCL brings plans for. See
/// occlCall_t.
struct Call {
  occlKind_t kind = occlKindPlan;
  std::optional<Plan> plan{}; // if kind is occlKindPlan
  uint64_t count = 0;         // elements of one part
  occlDataType_t type = occlFloat32;
  occlRedOp_t op = occlSum;
  uint32_t root = 0;
  uint64_t id = 0; // of what is started: the sequence
  int32_t priority = 0;
  uint32_t timeoutMs = 0;
  std::string name{};
  bool callbacksNeverBlock = false;

  /// The same for the C interface; valid as long as this is.
  occlCall_t given(const void *send, void *receive) const {
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = kind;
    call.plan = plan ? plan->handle() : nullptr;
    call.sendBuffer = send;
    call.recvBuffer = receive;
    call.count = count;
    call.dataType = type;
    call.op = op;
    call.root = root;
    call.id = id;
    call.priority = priority;
    call.timeoutMs = timeoutMs;
    call.name = name.empty() ? nullptr : name.c_str();
    call.callbacksNeverBlock = callbacksNeverBlock;
    return call;
  }
};

/// A call that was started, which the communicator must outlive. Copies are the same request.
class Request {
public:
  Request(occlComm_t comm, occlRequest_t request) : comm(comm), request(request) {}

  /// Executes this rank's part until it is complete; throws Error if it failed.
  void wait() { check(occlWait(comm, request)); }
  /// Whether it is complete; throws Error if it failed.
  bool test() {
    occlResult_t result = occlTest(comm, request);
    if (result != occlInProgress)
      check(result);
    return result == occlSuccess;
  }
  occlRequest_t id() const { return request; }

private:
  occlComm_t comm;
  occlRequest_t request;
};

/// One rank. Movable; destroyed as occlCommDestroy says. Thread safety: any but for moves and
/// destruction.
class Communicator {
public:
  /// What is sent: whatever a span of it can be made of. T is what is received, or said.
  template <class T> using Input = std::span<const std::type_identity_t<T>>;

  /// numRanks ranks that are threads of this process; element r is rank r.
  static std::vector<Communicator> all(uint32_t numRanks,
                                       const occlConfig_t &config = OCCL_CONFIG_INITIALIZER) {
    std::vector<occlComm_t> handles(numRanks);
    check(occlCommInitAll(handles.data(), numRanks, &config));
    std::vector<Communicator> ranks;
    for (occlComm_t handle : handles)
      ranks.push_back(Communicator(handle));
    return ranks;
  }
  /// This process's rank of a communicator of processes, as the launcher's environment says.
  static Communicator fromEnvironment(const occlConfig_t &config = OCCL_CONFIG_INITIALIZER) {
    occlComm_t handle = nullptr;
    check(occlCommInitFromEnv(&handle, &config));
    return Communicator(handle);
  }
  /// The same, named by the caller.
  static Communicator ofProcesses(uint32_t numRanks, uint32_t rank, const std::string &name,
                                  const occlConfig_t &config = OCCL_CONFIG_INITIALIZER) {
    occlComm_t handle = nullptr;
    check(occlCommInitRank(&handle, numRanks, rank, name.c_str(), &config));
    return Communicator(handle);
  }
  /// Takes over a handle.
  explicit Communicator(occlComm_t handle) : comm(handle) {}

  occlComm_t handle() const { return comm.get(); }
  uint32_t rank() const {
    uint32_t rank = 0;
    check(occlCommRank(handle(), &rank));
    return rank;
  }
  uint32_t numRanks() const {
    uint32_t ranks = 0;
    check(occlCommSize(handle(), &ranks));
    return ranks;
  }

  /// This rank's communicator of its colour; nothing with a negative colour.
  std::optional<Communicator> split(int32_t colour, int32_t key) {
    occlComm_t divided = nullptr;
    check(occlCommSplit(handle(), colour, key, nullptr, &divided));
    if (!divided)
      return std::nullopt;
    return Communicator(divided);
  }

  /// A smaller communicator of the ranks that are left, without those in `exclude`.
  Communicator shrink(const std::vector<uint32_t> &exclude = {}) {
    occlComm_t smaller = nullptr;
    check(occlCommShrink(handle(), exclude.data(), static_cast<uint32_t>(exclude.size()), nullptr,
                         &smaller));
    return Communicator(smaller);
  }

  /// Executes the call, or with a communicator on CUDA devices makes it the next work of the
  /// stream: see occlCall. Throws Error.
  void call(const Call &what, const void *send, void *receive, CUstream_st *stream = nullptr) {
    const occlCall_t given = what.given(send, receive);
    check(occlCall(handle(), &given, stream));
  }
  /// The same with elements of type T, whatever what.type is. The spans are as long as count, kind
  /// or plan, and rank say.
  template <class T>
  void call(Call what, Input<T> send, std::span<T> receive, CUstream_st *stream = nullptr) {
    what.type = dataTypeOf<T>();
    call(what, send.data(), receive.data(), stream);
  }

  /// Starts the call in the sequence what.id: see occlStart. Throws Error, with result() ==
  /// occlAgain if too much is in flight.
  Request start(const Call &what, const void *send, void *receive) {
    std::optional<Request> request = tryStart(what, send, receive);
    if (!request)
      throw Error(occlAgain);
    return *request;
  }
  template <class T> Request start(Call what, Input<T> send, std::span<T> receive) {
    what.type = dataTypeOf<T>();
    return start(what, send.data(), receive.data());
  }
  /// The same; nothing if too much is in flight.
  std::optional<Request> tryStart(const Call &what, const void *send, void *receive) {
    const occlCall_t given = what.given(send, receive);
    occlRequest_t request = 0;
    occlResult_t result = occlStart(handle(), &given, nullptr, nullptr, &request);
    if (result == occlAgain)
      return std::nullopt;
    check(result);
    return Request(handle(), request);
  }
  template <class T>
  std::optional<Request> tryStart(Call what, Input<T> send, std::span<T> receive) {
    what.type = dataTypeOf<T>();
    return tryStart(what, send.data(), receive.data());
  }

  using OnEnd = std::function<void(occlResult_t)>;
  /// Calls onEnd(result) once when the call ends, as occlCallback_t says: what it throws ends the
  /// communicator. Throws Error, and onEnd is dropped, also if too much is in flight.
  void start(const Call &what, const void *send, void *receive, OnEnd onEnd) {
    if (!tryStart(what, send, receive, std::move(onEnd)))
      throw Error(occlAgain);
  }
  template <class T> void start(Call what, Input<T> send, std::span<T> receive, OnEnd onEnd) {
    what.type = dataTypeOf<T>();
    start(what, send.data(), receive.data(), std::move(onEnd));
  }
  /// The same. False, and onEnd is dropped, if too much is in flight.
  bool tryStart(const Call &what, const void *send, void *receive, OnEnd onEnd) {
    auto held = std::make_unique<OnEnd>(std::move(onEnd));
    occlCallback_t callback = [](occlRequest_t, occlResult_t result, void *user) {
      std::unique_ptr<OnEnd> function(static_cast<OnEnd *>(user));
      (*function)(result);
    };
    const occlCall_t given = what.given(send, receive);
    occlResult_t result = occlStart(handle(), &given, callback, held.get(), nullptr);
    if (result == occlAgain)
      return false;
    check(result);
    held.release(); // the callback's now
    return true;
  }
  template <class T> bool tryStart(Call what, Input<T> send, std::span<T> receive, OnEnd onEnd) {
    what.type = dataTypeOf<T>();
    return tryStart(what, send.data(), receive.data(), std::move(onEnd));
  }

  // The standard collectives by the plans that OCCL brings. Each throws Error (occlInvalidArgument)
  // if the spans do not have the lengths that it says; n is the number of ranks. In place: both are
  // the same.

  /// receive: the reduction of all ranks' send, which is as long.
  template <class T>
  void allReduce(Input<T> send, std::span<T> receive, occlRedOp_t op = occlSum,
                 CUstream_st *stream = nullptr) {
    requireLength("allReduce: receive", receive.size(), send.size());
    call<T>({.kind = occlKindAllReduce, .count = send.size(), .op = op}, send, receive, stream);
  }
  /// receive: the sends of all ranks, one after the other; n times as long.
  template <class T>
  void allGather(Input<T> send, std::span<T> receive, CUstream_st *stream = nullptr) {
    requireLength("allGather: receive", receive.size(), send.size() * numRanks());
    call<T>({.kind = occlKindAllGather, .count = send.size()}, send, receive, stream);
  }
  /// receive of rank r: the reduction of part r of all ranks' send, which is n times as long.
  template <class T>
  void reduceScatter(Input<T> send, std::span<T> receive, occlRedOp_t op = occlSum,
                     CUstream_st *stream = nullptr) {
    requireLength("reduceScatter: send", send.size(), receive.size() * numRanks());
    call<T>({.kind = occlKindReduceScatter, .count = receive.size(), .op = op}, send, receive,
            stream);
  }
  /// receive: the root's send, which is as long; the others' is nothing.
  template <class T>
  void broadcast(Input<T> send, std::span<T> receive, uint32_t root = 0,
                 CUstream_st *stream = nullptr) {
    if (rank() == root)
      requireLength("broadcast: send of the root", send.size(), receive.size());
    call<T>({.kind = occlKindBroadcast, .count = receive.size(), .root = root}, send, receive,
            stream);
  }
  /// receive of the root: the reduction of all ranks' send, which is as long; the others' is
  /// nothing.
  template <class T>
  void reduce(Input<T> send, std::span<T> receive, uint32_t root = 0, occlRedOp_t op = occlSum,
              CUstream_st *stream = nullptr) {
    if (rank() == root)
      requireLength("reduce: receive of the root", receive.size(), send.size());
    call<T>({.kind = occlKindReduce, .count = send.size(), .op = op, .root = root}, send, receive,
            stream);
  }
  /// Part r of receive: this rank's part of rank r's send. Both have n parts.
  template <class T>
  void allToAll(Input<T> send, std::span<T> receive, CUstream_st *stream = nullptr) {
    const uint64_t count = send.size() / numRanks();
    requireLength("allToAll: send", send.size(), count * numRanks());
    requireLength("allToAll: receive", receive.size(), send.size());
    call<T>({.kind = occlKindAllToAll, .count = count}, send, receive, stream);
  }
  /// receive of the root: the sends of all ranks, one after the other; n times as long. The others'
  /// is nothing.
  template <class T>
  void gather(Input<T> send, std::span<T> receive, uint32_t root = 0,
              CUstream_st *stream = nullptr) {
    if (rank() == root)
      requireLength("gather: receive of the root", receive.size(), send.size() * numRanks());
    call<T>({.kind = occlKindGather, .count = send.size(), .root = root}, send, receive, stream);
  }
  /// receive of rank r: part r of the root's send, which is n times as long; the others' is
  /// nothing.
  template <class T>
  void scatter(Input<T> send, std::span<T> receive, uint32_t root = 0,
               CUstream_st *stream = nullptr) {
    if (rank() == root)
      requireLength("scatter: send of the root", send.size(), receive.size() * numRanks());
    call<T>({.kind = occlKindScatter, .count = receive.size(), .root = root}, send, receive,
            stream);
  }

  /// Memory that all ranks can access; see occlMemAlloc. It ends with the communicator at the
  /// latest.
  void *allocate(size_t bytes) {
    void *memory = nullptr;
    check(occlMemAlloc(handle(), bytes, &memory));
    return memory;
  }
  void release(void *memory) { check(occlMemFree(handle(), memory)); }

  /// Ends everything in flight on all ranks.
  void abort() { check(occlCommAbort(handle())); }
  /// Why the communicator failed; empty if it did not.
  std::string failure() const { return occlCommGetLastError(handle()); }
  occlStats_t stats() const {
    occlStats_t stats{};
    stats.size = sizeof stats;
    check(occlCommGetStats(handle(), &stats));
    return stats;
  }
  /// Counters of a registered collective, and of one or all of its thread blocks.
  occlCollectiveStats_t stats(uint64_t id) const {
    occlCollectiveStats_t stats{};
    stats.size = sizeof stats;
    check(occlCollectiveGetStats(handle(), id, &stats));
    return stats;
  }
  occlBlockStats_t blockStats(uint64_t id, uint32_t block = OCCL_ALL_BLOCKS) const {
    occlBlockStats_t stats{};
    stats.size = sizeof stats;
    check(occlCollectiveGetBlockStats(handle(), id, block, &stats));
    return stats;
  }
  /// The ids of all registered collectives, ascending.
  std::vector<uint64_t> collectives() const {
    std::vector<uint64_t> ids;
    size_t count = 0;
    do {
      ids.resize(count);
      check(occlCommGetCollectives(handle(), ids.data(), ids.size(), &count));
    } while (count > ids.size());
    ids.resize(count);
    return ids;
  }
  /// Records until stopTrace(), which writes the file.
  void startTrace(const std::string &path) { check(occlTraceStart(handle(), path.c_str())); }
  void stopTrace() { check(occlTraceStop(handle())); }
  /// Whether something of this rank may be in flight.
  bool isBusy() const {
    int busy = 0;
    check(occlCommIsBusy(handle(), &busy));
    return busy != 0;
  }
  /// Who waits for whom, now.
  std::string report() const {
    size_t length = 0;
    check(occlCommReport(handle(), nullptr, 0, &length));
    std::string text(length + 1, '\0');
    check(occlCommReport(handle(), text.data(), text.size(), &length));
    text.resize(std::min(length, text.size() - 1));
    return text;
  }
  /// The counters of this rank in the text format of Prometheus, with these further labels, as
  /// job="train". Throws Error (occlInvalidArgument) if they are none.
  std::string metrics(const std::string &labels = "") const {
    std::string text;
    size_t length = 4096;
    do {
      text.resize(length + 1);
      check(occlCommGetMetrics(handle(), labels.c_str(), text.data(), text.size(), &length));
    } while (length >= text.size());
    text.resize(length);
    return text;
  }

private:
  static void requireLength(const char *what, size_t length, size_t expected) {
    if (length != expected)
      throw Error(occlInvalidArgument, std::string(what) + " has " + std::to_string(length) +
                                           " elements, it needs " + std::to_string(expected));
  }

  struct Destroy {
    void operator()(occlComm_t comm) const { occlCommDestroy(comm); }
  };
  std::unique_ptr<occlComm, Destroy> comm;
};

} // namespace occl
