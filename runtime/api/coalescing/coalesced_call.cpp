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

plan::StandardCollective collectiveOf(const occlCall_t &call) {
  return static_cast<plan::StandardCollective>(call.kind - occlKindAllReduce);
}

/// How many parts the buffers of every rank have.
struct NumParts {
  uint32_t input = 0, output = 0;

  uint32_t most() const { return std::max(input, output); }
};

NumParts partsOf(const occlCall_t &call, const CoalescingRank &where) {
  const plan::Parts parts = {where.numRanks, 0, 1};
  return {static_cast<uint32_t>(plan::inputSize(collectiveOf(call), parts)),
          static_cast<uint32_t>(plan::outputSize(collectiveOf(call), parts))};
}

/// With a root ranks have different buffers, and would find different ones that overlap.
bool mayBePacked(const occlCall_t &call) {
  return call.kind != occlKindPlan && !plan::hasRoot(collectiveOf(call)) && !call.scalar &&
         !call.deviceScalar;
}

/// Of the same collective, as all ranks see it: where nothing is reduced an operation is nothing.
bool areAlike(const occlCall_t &a, const occlCall_t &b) {
  return a.kind == b.kind && a.dataType == b.dataType &&
         (a.op == b.op || !plan::isReduction(collectiveOf(a)));
}

PackedBuffers buffersOf(const occlCall_t &call) {
  return {static_cast<const char *>(call.sendBuffer), static_cast<char *>(call.recvBuffer),
          call.count * sizeOf(static_cast<DataType>(call.dataType))};
}

/// What of a rank's memory a call accesses; nothing of no bytes.
struct Range {
  uintptr_t begin, end;

  bool overlaps(const Range &other) const {
    return begin < other.end && other.begin < end && begin < end && other.begin < other.end;
  }
};

/// Whether input and output of the call lie in place, or apart.
bool liesWell(const occlCall_t &call, const PackedBuffers &buffers, const CoalescingRank &where,
              const Range &read, const Range &written) {
  const int64_t offset =
      plan::inPlaceOffset(collectiveOf(call), {where.numRanks, 0, buffers.partBytes}, where.rank);
  return !read.overlaps(written) || read.begin - written.begin == static_cast<uintptr_t>(offset);
}

/// What the calls so far read and write.
class Accesses {
public:
  /// Whether nothing that one of them writes is accessed by another one, with this one added; nor
  /// is anything wrong with where its own buffers lie.
  bool add(const occlCall_t &given, const PackedBuffers &call, const NumParts &parts,
           const CoalescingRank &where) {
    const Range read = rangeAt(call.input, call.partBytes * parts.input);
    const Range written = rangeAt(call.output, call.partBytes * parts.output);
    if (!liesWell(given, call, where, read, written))
      return false;
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
  if (calls.size() < 2 || !mayBePacked(first))
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
    if (together * parts.most() > PackedCalls::kMostBytes ||
        !accesses.add(*call, buffers, parts, where))
      break;
    partBytes = together;
    ++number;
  }
  const bool isWorthIt = number > 2 || partBytes * parts.most() >= kLeastBytesOfTwo;
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
  // The shortest of the deadlines that are set; 0: the communicator's.
  for (const occlCall_t *call : calls)
    if (call->timeoutMs != 0 && (one.timeoutMs == 0 || call->timeoutMs < one.timeoutMs))
      one.timeoutMs = call->timeoutMs;
  one.sendBuffer = nullptr;
  one.recvBuffer = nullptr;
  one.count = packed.partBytes() / sizeOf(static_cast<DataType>(first.dataType));
  return {one, std::move(packed)};
}

} // namespace occl::communicator
