#include "compiler/analysis/StepWeights.h"

#include "llvm/ADT/STLExtras.h"

#include <tuple>

namespace occl::analysis {

namespace {

constexpr size_t kFields = 8, kFieldsOfWay = 4;

bool isBefore(const RankWay &a, const RankWay &b) {
  return std::tie(a.from, a.to) < std::tie(b.from, b.to);
}

} // namespace

std::vector<uint32_t> StepWeights::numbers() const {
  std::vector<uint32_t> result = {overhead, read,    write,         receive,
                                  send,     fetched, usual.latency, usual.wire};
  for (const RankWay &way : ways)
    result.insert(result.end(), {way.from, way.to, way.weights.latency, way.weights.wire});
  return result;
}

std::optional<StepWeights> StepWeights::of(llvm::ArrayRef<uint32_t> numbers) {
  // The order of numbers() and of the option of passes: eight numbers, then four for each way
  // between two ranks. Passes take options as numbers only.
  if (numbers.size() < kFields || numbers[5] > 1)
    return std::nullopt;
  StepWeights result;
  result.overhead = numbers[0];
  result.read = numbers[1];
  result.write = numbers[2];
  result.receive = numbers[3];
  result.send = numbers[4];
  result.fetched = numbers[5] == 1;
  result.usual = {numbers[6], numbers[7]};
  // Ways ascend, so that they can be found by bisection; another order would not be what numbers()
  // gives.
  llvm::ArrayRef<uint32_t> rest = numbers.drop_front(kFields);
  for (; rest.size() >= kFieldsOfWay; rest = rest.drop_front(kFieldsOfWay)) {
    RankWay way = {rest[0], rest[1], {rest[2], rest[3]}};
    if (!result.ways.empty() && !isBefore(result.ways.back(), way))
      return std::nullopt;
    result.ways.push_back(way);
  }
  // Numbers left over mean that the list is cut off.
  return rest.empty() ? std::optional(std::move(result)) : std::nullopt;
}

const WayWeights &StepWeights::between(uint32_t from, uint32_t to) const {
  RankWay wanted = {from, to, {}};
  auto found = llvm::lower_bound(ways, wanted, isBefore);
  return found != ways.end() && !isBefore(wanted, *found) ? found->weights : usual;
}

uint64_t StepWeights::workOf(const inst::Instruction &instruction) const {
  uint64_t ofChunk = 0;
  for (const inst::Place &source : instruction.sources)
    ofChunk += source.isLocal() ? read : receive;
  for (const inst::Place &destination : instruction.destinations)
    ofChunk += destination.isLocal() ? write : send;
  return instruction.count * ofChunk;
}

} // namespace occl::analysis
