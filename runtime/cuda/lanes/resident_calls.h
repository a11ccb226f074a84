// What a rank knows of calls that were started and of their ids. Private to resident_*.cpp.
#pragma once

#include "runtime/cuda/lanes/resident_rank.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace occl::cuda {

/// A callback that is to be called.
struct ResidentRank::Call {
  ResidentRank *rank;
  daemon::Callback callback;
  daemon::RequestId request = 0;
  StatusCode outcome = StatusCode::Success;
  std::string collective;
  bool neverBlocks = false;
};

/// A call until it ends.
struct ResidentRank::Started : LaneCall {
  std::string name; // "'grad3' (id 3)"
  std::shared_ptr<LaneShape> shape;
  const void *input = nullptr;
  void *output = nullptr;
  /// Of no elements: the call reads its input. Else `to` is the input, and the call's own.
  Scaling scaling;
  uint8_t priority = 0;
  std::chrono::milliseconds timeout = kNoDeadline;
  Clock::time_point since = Clock::now();
  Ticks sinceTicks = ticks();
  std::optional<uint32_t> awaited; // a rank that had not started it
  bool isReported = false;         // that it waits for long
  daemon::Callback callback;
  bool callbackNeverBlocks = false;
  // Of a partitioned collective.
  std::function<void()> ended;
  uint64_t epoch = 0;
  /// As the user has it; 0: that of the daemon, since it did not have to wait.
  daemon::RequestId request = 0;
  uint64_t inDaemon = 0; // once it is executed

  Clock::time_point deadline() const {
    return timeout < kNoDeadline ? since + timeout : Clock::time_point::max();
  }
};

/// An id.
struct ResidentRank::Sequence {
  std::string name; // of the last call: "'grad3' (id 3)"
  std::shared_ptr<const daemon::CollectiveSpec> last;
  std::optional<LaneName> lane; // that it had last
  uint64_t submitted = 0, completed = 0, failed = 0;
  uint64_t finishNs = 0, longestFinishNs = 0;
  uint64_t waitedNs = 0; // until calls entered a daemon
  /// Of what is in flight, or waits, in order.
  std::deque<std::shared_ptr<LaneShape>> open;
  std::vector<daemon::BlockBytes> moved; // by thread block, of what has ended well

  /// Of a partitioned collective: those in flight, by number in the lane.
  std::map<uint64_t, uint64_t> epochs;

  bool isIdle() const { return submitted == completed + failed; }
  void noteEnd(bool isGood) {
    if (open.empty())
      return;
    const auto &bytes = open.front()->shape->bytesOfBlocks();
    if (isGood)
      moved.resize(std::max(moved.size(), bytes.size()));
    for (size_t b = 0; isGood && b < bytes.size(); ++b) {
      moved[b].sent += bytes[b].sent;
      moved[b].received += bytes[b].received;
    }
    open.pop_front();
  }
};

/// The rank stays while there is one: what is told of a call's end is told to it.
class ResidentRank::EndUnderWay {
public:
  explicit EndUnderWay(ResidentRank &rank) : number(rank.endsUnderWay) {
    number.fetch_add(1, std::memory_order_relaxed);
  }
  ~EndUnderWay() { number.fetch_sub(1, std::memory_order_release); }
  EndUnderWay(const EndUnderWay &) = delete;
  EndUnderWay &operator=(const EndUnderWay &) = delete;

private:
  Atomic<uint32_t> &number;
};

/// Executes what has a lane.
class ResidentRank::Engine : public LaneEngine {
public:
  explicit Engine(ResidentRank &rank) : rank(rank) {}

  StatusOr<bool> prepare(LaneCall &call, LaneName lane) override;
  StatusOr<std::optional<uint64_t>> execute(LaneCall &call, LaneName lane,
                                            uint64_t number) override;
  void begin(uint32_t kernel) override { rank.daemonOf(kernel).begin(); }
  bool isComplete(uint32_t kernel, uint64_t request) const override {
    return rank.daemonOf(kernel).isComplete(request);
  }

private:
  ResidentRank &rank;
};

/// A request's number in a daemon and which daemon, in one.
inline daemon::RequestId packedRequest(uint32_t kernel, uint64_t request) {
  return (request + 1) * resident::kNumKernels + kernel;
}
/// Requests of calls that had to wait have numbers of their own, from here on.
inline constexpr daemon::RequestId kFirstDeferred = daemon::RequestId{1} << 60;

} // namespace occl::cuda
