// Rules for calls that are executed as one: the same collective, small, and of buffers that have
// nothing to do with each other.
#include "runtime/api/coalescing/coalesced_call.h"

#include "plan/collectives/collectives.h"
#include "runtime/base/cache_line.h"
#include "runtime/base/data_type.h"

#include <algorithm>
#include <vector>

namespace occl::communicator {

namespace {

using cuda::PackedBuffers;
using cuda::PackedCalls;

/// Each is compared with those before it.
constexpr size_t kMostCalls = 256;
/// Two calls with less together are done sooner by two kernels than by three.
constexpr uint64_t kLeastBytesOfTwo = 256 << 10;

/// How many parts the buffers of the rank have; 0: it has no such buffer.
struct NumParts {
  uint32_t input = 0, output = 0;
  /// Of any rank.
  uint32_t most = 0;
};

NumParts partsOf(const occlCall_t &call, const CoalescingRank &where) {
  const auto collective = static_cast<plan::StandardCollective>(call.kind - occlKindAllReduce);
  const plan::Parts parts = {where.numRanks, call.root, 1};
  const auto input = static_cast<uint32_t>(plan::inputSize(collective, parts));
  const auto output = static_cast<uint32_t>(plan::outputSize(collective, parts));
  return {plan::needsInput(collective, parts, where.rank) ? input : 0,
          plan::needsOutput(collective, parts, where.rank) ? output : 0, std::max(input, output)};
}

bool mayBePacked(const occlCall_t &call) {
  return call.kind != occlKindPlan && !call.scalar && !call.deviceScalar;
}

/// Of the same collective, as all ranks see it.
bool areAlike(const occlCall_t &a, const occlCall_t &b) {
  return a.kind == b.kind && a.dataType == b.dataType && a.op == b.op && a.root == b.root &&
         a.timeoutMs == b.timeoutMs;
}

PackedBuffers buffersOf(const occlCall_t &call) {
  return {static_cast<const char *>(call.sendBuffer), static_cast<char *>(call.recvBuffer),
          call.count * sizeOf(static_cast<DataType>(call.dataType))};
}

/// What of a rank's memory a call accesses.
struct Range {
  uintptr_t begin, end;

  bool overlaps(const Range &other) const { return begin < other.end && other.begin < end; }
};

/// What the calls so far read and write.
class Accesses {
public:
  /// Whether nothing that one of them writes is accessed by another one, with this one added.
  bool add(const PackedBuffers &call, const NumParts &parts) {
    const Range read = rangeAt(call.input, call.partBytes * parts.input);
    const Range written = rangeAt(call.output, call.partBytes * parts.output);
    const auto meets = [](const std::vector<Range> &ranges, const Range &range) {
      return std::ranges::any_of(ranges, [&](const Range &r) { return r.overlaps(range); });
    };
    if (meets(writes, read) || meets(writes, written) || meets(reads, written))
      return false;
    reads.push_back(read);
    writes.push_back(written);
    return true;
  }

private:
  static Range rangeAt(const char *begin, uint64_t bytes) {
    const auto address = reinterpret_cast<uintptr_t>(begin);
    return {address, address + bytes};
  }

  std::vector<Range> reads, writes;
};

} // namespace

size_t numCoalesced(std::span<const occlCall_t *const> calls, const CoalescingRank &where) {
  const occlCall_t &first = *calls.front();
  // A root that there is not is for the call itself to refuse.
  if (calls.size() < 2 || !mayBePacked(first) || first.root >= where.numRanks)
    return 1;
  const NumParts parts = partsOf(first, where);
  Accesses accesses;
  uint64_t partBytes = 0;
  size_t number = 0;
  for (const occlCall_t *call : calls.first(std::min(calls.size(), kMostCalls))) {
    const PackedBuffers buffers = buffersOf(*call);
    if (!mayBePacked(*call) || !areAlike(*call, first) ||
        buffers.partBytes > PackedCalls::kMostBytes)
      break;
    const uint64_t together = partBytes + alignUp(buffers.partBytes, PackedCalls::kAlignment);
    if (together * parts.most > PackedCalls::kMostBytes || !accesses.add(buffers, parts))
      break;
    partBytes = together;
    ++number;
  }
  const bool isWorthIt = number > 2 || partBytes * parts.most >= kLeastBytesOfTwo;
  return isWorthIt ? std::max<size_t>(number, 1) : 1;
}

CoalescedCall coalesce(std::span<const occlCall_t *const> calls, const CoalescingRank &where) {
  const occlCall_t &first = *calls.front();
  const NumParts parts = partsOf(first, where);
  std::vector<PackedBuffers> buffers;
  buffers.reserve(calls.size());
  for (const occlCall_t *call : calls)
    buffers.push_back(buffersOf(*call));
  PackedCalls packed(std::move(buffers), parts.input, parts.output);
  occlCall_t one = first;
  one.sendBuffer = nullptr;
  one.recvBuffer = nullptr;
  one.count = packed.partBytes() / sizeOf(static_cast<DataType>(first.dataType));
  return {one, std::move(packed)};
}

} // namespace occl::communicator
