#include "runtime/cuda/partitioned/mark_choice.h"

namespace occl::cuda {

// A start needs no memory.
MarkChoice::MarkChoice(const partitioned::Shape &shape) : shape(shape) {
  if (!mayCopy())
    return;
  marked.reserve(shape.partitions);
  copied.reserve(shape.partitions);
}

void MarkChoice::started() {
  ++epoch;
  if (!mayCopy())
    return;
  marked.assign(shape.partitions, false);
  copied.assign(shape.partitions, false);
}

bool MarkChoice::isAny(const std::vector<bool> &flags, plan::Range partitions) {
  for (uint64_t p = partitions.begin; p < partitions.end; ++p)
    if (flags[p])
      return true;
  return false;
}

bool MarkChoice::areWholeMessages(plan::Range partitions) const {
  return partitions.begin % shape.perMessage == 0 &&
         (partitions.end % shape.perMessage == 0 || partitions.end == shape.partitions);
}

MarkBy MarkChoice::choose(plan::Range partitions, uint64_t seen) {
  if (!seesAll || marked.empty()) // there may be no epoch, or too little for a copy
    return MarkBy::Kernel;
  if (isAny(copied, partitions))
    return MarkBy::Nobody;
  const uint64_t bytes = (partitions.end - partitions.begin) * shape.count * sizeOf(shape.type);
  const bool isCopied = seen == epoch && bytes >= kCopiedBytes && areWholeMessages(partitions) &&
                        !isAny(marked, partitions);
  for (uint64_t p = partitions.begin; p < partitions.end; ++p) {
    marked[p] = true;
    copied[p] = isCopied;
  }
  return isCopied ? MarkBy::CopyEngine : MarkBy::Kernel;
}

void MarkChoice::takeBack(plan::Range partitions) {
  for (uint64_t p = partitions.begin; p < partitions.end; ++p)
    marked[p] = copied[p] = false;
}

} // namespace occl::cuda
