// Small calls of one collective that are executed as one: their inputs are copied behind each
// other, and what comes of it to their outputs. No CUDA in this header.
#pragma once

#include <cstdint>
#include <vector>

namespace occl::cuda {

/// A part is what occlCall_t::count counts the elements of.
struct PackedBuffers {
  const char *input = nullptr;
  char *output = nullptr;
  uint64_t partBytes = 0;
};

/// The two are disjoint.
struct DeviceCopy {
  const char *from;
  char *to;
  uint64_t bytes;
};

/// Each part of the one collective is the parts of all calls, in their order, each from a multiple
/// of kAlignment bytes on. What lies between is anything. Immutable.
class PackedCalls {
public:
  /// Copies of elements that are aligned to it have the fastest instructions.
  static constexpr uint64_t kAlignment = 16;
  /// Of the larger buffer of what is executed as one.
  static constexpr uint64_t kMostBytes = 4 << 20;

  /// inputParts, outputParts: of each buffer of this rank, 0 of those that it has not.
  PackedCalls(std::vector<PackedBuffers> calls, uint32_t inputParts, uint32_t outputParts);

  const std::vector<PackedBuffers> &calls() const { return packed; }
  uint64_t partBytes() const { return bytes; }
  /// Of what this rank has of the one collective, and of a call.
  uint64_t inputBytes() const { return bytes * inputParts; }
  uint64_t outputBytes() const { return bytes * outputParts; }
  uint64_t inputBytesOf(const PackedBuffers &call) const { return call.partBytes * inputParts; }
  uint64_t outputBytesOf(const PackedBuffers &call) const { return call.partBytes * outputParts; }

  /// From all inputs to the one collective's, and from its output to all others'; nothing of 0
  /// bytes.
  std::vector<DeviceCopy> copiesIn(char *input) const;
  std::vector<DeviceCopy> copiesOut(const char *output) const;

private:
  std::vector<PackedBuffers> packed;
  std::vector<uint64_t> places; // of the calls in a part
  uint32_t inputParts, outputParts;
  uint64_t bytes = 0;
};

} // namespace occl::cuda
