// OCCL for C++20: handles that free themselves, errors as exceptions, spans instead of pointers,
// over occl.h, whose comments are the reference. Header only.
//
//   occl::Plan ring("ring.plan");
//   std::vector<occl::Communicator> ranks = occl::Communicator::all(2);
//   ... on the thread of each rank r:
//   ranks[r].add({.id = 7, .plans = {ring}, .count = data.size()});       // float, sum
//   ranks[r].submit(7, std::span<const float>(data), std::span(result)).wait();
#pragma once

#include "occl.h"
#include "occl_insight.h"
#include "occl_registered.h"

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

/// The element type that a C++ type is; 16-bit floats have none in C++20 and go by submit(id,
/// pointer, pointer).
template <class T> constexpr occlDataType_t dataTypeOf() {
  if constexpr (std::is_same_v<T, uint8_t>)
    return occlUint8;
  else if constexpr (std::is_same_v<T, int32_t>)
    return occlInt32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return occlInt64;
  else if constexpr (std::is_same_v<T, float>)
    return occlFloat32;
  else {
    static_assert(std::is_same_v<T, double>, "OCCL has no such element type");
    return occlFloat64;
  }
}

/// What is registered; see occlCollective_t.
struct Collective {
  uint64_t id = 0;
  std::string name{};
  std::vector<Plan> plans{};
  uint64_t count = 0;
  occlDataType_t dataType = occlFloat32;
  occlRedOp_t op = occlSum;
  int32_t priority = 0;
  uint32_t timeoutMs = 0;
  bool callbacksNeverBlock = false;
};

/// A submitted invocation, of which the communicator must outlive. Copies are the same request.
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

  void add(const Collective &collective) {
    std::vector<occlPlan_t> plans;
    for (const Plan &plan : collective.plans)
      plans.push_back(plan.handle());
    occlCollective_t given = OCCL_COLLECTIVE_INITIALIZER;
    given.id = collective.id;
    given.name = collective.name.empty() ? nullptr : collective.name.c_str();
    given.plans = plans.data();
    given.numPlans = static_cast<uint32_t>(plans.size());
    given.count = collective.count;
    given.dataType = collective.dataType;
    given.op = collective.op;
    given.priority = collective.priority;
    given.timeoutMs = collective.timeoutMs;
    given.callbacksNeverBlock = collective.callbacksNeverBlock;
    check(occlRegister(handle(), &given));
  }
  void remove(uint64_t id) { check(occlDeregister(handle(), id)); }

  /// Starts an invocation; throws Error with result() == occlAgain if too much is in flight.
  Request submit(uint64_t id, const void *send, void *receive) {
    std::optional<Request> request = trySubmit(id, send, receive);
    if (!request)
      throw Error(occlAgain);
    return *request;
  }
  template <class T> Request submit(uint64_t id, std::span<const T> send, std::span<T> receive) {
    return submit(id, send.data(), receive.data());
  }
  /// The same; nothing if too much is in flight.
  std::optional<Request> trySubmit(uint64_t id, const void *send, void *receive) {
    occlRequest_t request = 0;
    occlResult_t result = occlSubmit(handle(), id, send, receive, nullptr, nullptr, &request);
    if (result == occlAgain)
      return std::nullopt;
    check(result);
    return Request(handle(), request);
  }
  /// Calls onEnd(result) once when the invocation ends, as occlCallback_t says: what it throws ends
  /// the communicator. False, and onEnd is dropped, if too much is in flight.
  bool trySubmit(uint64_t id, const void *send, void *receive,
                 std::function<void(occlResult_t)> onEnd) {
    auto held = std::make_unique<std::function<void(occlResult_t)>>(std::move(onEnd));
    occlCallback_t call = [](occlRequest_t, occlResult_t result, void *user) {
      std::unique_ptr<std::function<void(occlResult_t)>> function(
          static_cast<std::function<void(occlResult_t)> *>(user));
      (*function)(result);
    };
    occlResult_t result = occlSubmit(handle(), id, send, receive, call, held.get(), nullptr);
    if (result == occlAgain)
      return false;
    check(result);
    held.release(); // the callback's now
    return true;
  }

  /// submit() in the order of a CUDA stream: see occlSubmitOnStream. Nothing if too much is in
  /// flight.
  std::optional<Request> trySubmitOnStream(uint64_t id, const void *send, void *receive,
                                           CUstream_st *stream) {
    occlRequest_t request = 0;
    occlResult_t result =
        occlSubmitOnStream(handle(), id, send, receive, stream, nullptr, nullptr, &request);
    if (result == occlAgain)
      return std::nullopt;
    check(result);
    return Request(handle(), request);
  }

  /// submit() and wait() in one, in less time: see occlRun. Throws Error as both.
  void run(uint64_t id, const void *send, void *receive) {
    check(occlRun(handle(), id, send, receive));
  }
  template <class T> void run(uint64_t id, std::span<const T> send, std::span<T> receive) {
    run(id, send.data(), receive.data());
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
  /// Who waits for whom, now.
  std::string report() const {
    size_t length = 0;
    check(occlCommReport(handle(), nullptr, 0, &length));
    std::string text(length + 1, '\0');
    check(occlCommReport(handle(), text.data(), text.size(), &length));
    text.resize(std::min(length, text.size() - 1));
    return text;
  }

private:
  struct Destroy {
    void operator()(occlComm_t comm) const { occlCommDestroy(comm); }
  };
  std::unique_ptr<occlComm, Destroy> comm;
};

} // namespace occl
