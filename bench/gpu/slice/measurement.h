// Single measurements of the slice, each with its result checked on every rank.
#pragma once

#include "bench/gpu/slice/peers.h"

#include <memory>
#include <string>
#include <vector>

namespace occl::bench {

/// The shortest of several times, and how it was got. Microseconds; 0: nothing was measured.
struct Best {
  double time = 0;
  std::string how;

  void offer(double candidate, const std::string &by) {
    if (time == 0 || candidate < time) {
      time = candidate;
      how = by;
    }
  }
  /// As a cell of a table.
  void print() const;
};

/// In a loop in the kernel, and with a launch for each invocation, in a graph.
struct InterpretedTimes {
  Best loop, graph;
};

class Measurement {
public:
  static constexpr uint64_t kMaxBytes = 64 << 20;

  Measurement(DeviceGroup &group, const std::string &planDirectory);

  uint32_t numRanks() const { return group.numRanks(); }
  /// Else they share the first one.
  bool hasDeviceEach() const { return group.numDevices() == group.numRanks(); }
  Nccl *nccl() { return library.get(); }
  /// All that follows is about so many bytes on each rank; at most kMaxBytes.
  void setBytes(uint64_t bytes) { count = bytes / sizeof(float); }

  /// A hand-written kernel with its best number of thread blocks.
  StatusOr<Best> handWritten(Probe probe);
  /// A plan file with its best numbers of thread blocks and of slices a message. With lines (LL,
  /// LL128) nothing is tried whose messages have too many slices to be of use.
  StatusOr<InterpretedTimes> interpreted(const char *algorithm, interpreter::Placement placement,
                                         plan::Protocol protocol = plan::Protocol::Simple);
  StatusOr<Best> ncclInGraph();

  /// How a plan is to be run: its file is of <algorithm> and so many thread blocks a rank.
  struct Variant {
    const char *algorithm;
    uint32_t blocks = 1;
    interpreter::Placement placement = interpreter::Placement::AtSource;
    uint32_t slices = 1;
    plan::Protocol protocol = plan::Protocol::Simple;
  };
  /// A run of one plan, ready to start.
  StatusOr<std::unique_ptr<InterpreterRun>> prepare(const Variant &variant);
  /// Every element of every rank's output.
  Status verify(const char *what);

private:
  Status offer(InterpretedTimes &times, const Variant &variant);
  bool isSensible(const Variant &variant) const;
  bool isSensible(uint32_t blocks) const;
  uint32_t invocations() const { return count <= 1 << 18 ? 400 : count <= 1 << 22 ? 60 : 20; }
  uint32_t replays() const { return count <= 1 << 18 ? 10 : 2; }
  void spoilOutputs();

  DeviceGroup &group;
  const std::string planDirectory;
  std::unique_ptr<Nccl> library;
  UserBuffers buffers;
  std::vector<float> host, expected;
  uint64_t count = 0;
};

} // namespace occl::bench
