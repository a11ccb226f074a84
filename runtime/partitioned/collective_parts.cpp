// Marks and arrivals of a partitioned collective on one rank.
#include "runtime/partitioned/collective_parts.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace occl::partitioned {

namespace {

using interpreter::Program;

/// Adds to `sums`, by units of the cut, what they have of the elements.
template <class Add> void addTo(const plan::UniformCut &cut, plan::Range elements, Add add) {
  const plan::Range units = cut.covering(elements);
  for (uint64_t q = units.begin; q < units.end; ++q) {
    const plan::Range unit = cut.elementsOf(q);
    add(q, std::min(unit.end, elements.end) - std::max(unit.begin, elements.begin));
  }
}

/// By partition: the elements that all steps store together, each as often as it is stored.
std::vector<uint64_t> storedBy(const Program &program, const Side &output) {
  std::vector<uint64_t> all(output.partitions);
  // Add up the destinations in the output, for each partition that they touch.
  for (const interpreter::BoundBlock &block : std::span(program.blocks, program.numBlocks))
    for (const interpreter::BoundInstruction &instruction :
         std::span(program.instructions + block.firstInstruction, block.numInstructions))
      for (const interpreter::BoundOperand &operand :
           std::span(program.operands + instruction.firstOperand + instruction.numSources,
                     instruction.numDestinations)) {
        if (operand.place != static_cast<interpreter::Place>(plan::OperandKind::Output))
          continue;
        const uint64_t begin = operand.offset / program.elementBytes;
        addTo(output.cut(), {begin, begin + instruction.elements},
              [&](uint64_t q, uint64_t elements) { all[q] += elements; });
      }
  return all;
}

} // namespace

CollectiveParts::CollectiveParts(const CollectiveBuffers &buffers, const Program &program,
                                 Doorbell &bell)
    : buffers(buffers), bell(bell), marked(buffers.input.partitions),
      marks(buffers.input.partitions), copied(buffers.input.partitions),
      all(storedBy(program, buffers.output)), sums(buffers.output.partitions) {}

bool CollectiveParts::mark(uint64_t p, uint64_t ofEpoch) {
  return raise(marked[p], ofEpoch, std::memory_order_release);
}

uint64_t CollectiveParts::firstUnmarked(uint64_t ofEpoch) const {
  uint64_t p = 0;
  while (p < marked.size() && isMarked(p, ofEpoch))
    ++p;
  return p;
}

/// A partition of the output may also have elements that no step stores: in place, where they are
/// the input's. Then the program is done with them once it has marked them.
bool CollectiveParts::hasArrived(uint64_t q, uint64_t ofEpoch) const {
  if (sums[q].load(std::memory_order_acquire) != ofEpoch * all[q])
    return false;
  // In place: input that nobody stores there is done when it is marked.
  const plan::Range own =
      buffers.input.cut().covering(buffers.inputOf(buffers.output.elementsOf(q)));
  for (uint64_t p = own.begin; p < own.end; ++p)
    if (!isMarked(p, ofEpoch))
      return false;
  return true;
}

std::optional<uint32_t> CollectiveParts::missing(plan::OperandKind kind, plan::Range elements) {
  const plan::Range needed = buffers.input.cut().covering(
      kind == plan::OperandKind::Input ? elements : buffers.inputOf(elements));
  for (uint64_t p = needed.begin; p < needed.end; ++p)
    if (!isReady(p))
      return static_cast<uint32_t>(p);
  return std::nullopt;
}

bool CollectiveParts::isReady(uint64_t p) {
  return isMarked(p, epoch) && (!copy || copyPartition(p));
}

/// False: another executor is at it, and rings when it is done.
bool CollectiveParts::copyPartition(uint64_t p) {
  // Odd while an executor copies, even when the copy is there.
  const uint64_t isThere = 2 * epoch, isClaimed = isThere - 1;
  uint64_t state = copied[p].load(std::memory_order_acquire);
  if (state == isThere)
    return true;
  if (state == isClaimed ||
      !copied[p].compare_exchange_strong(state, isClaimed, std::memory_order_acquire))
    return state == isThere;
  // This executor has claimed it; others look again later.
  const plan::Range elements = buffers.input.elementsOf(p);
  const uint64_t size = sizeOf(buffers.type), begin = elements.begin * size;
  if (scale.isNone())
    std::memcpy(copy + begin, buffers.data + begin, elements.length() * size);
  else
    interpreter::scaleElements(buffers.type, scale, copy + begin, buffers.data + begin,
                               elements.length());
  copied[p].store(isThere, std::memory_order_release);
  bell.ring();
  return true;
}

void CollectiveParts::stored(plan::Range elements) {
  addTo(buffers.output.cut(), elements,
        [&](uint64_t q, uint64_t number) { sums[q].fetch_add(number, std::memory_order_acq_rel); });
}

} // namespace occl::partitioned
