#include "compiler/passes/blocks/BlockLayouts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace occl::passes {

namespace {

std::vector<uint32_t> inOrder(size_t count) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// The largest first, each to the block that has least.
std::vector<uint32_t> balance(llvm::ArrayRef<uint64_t> work, std::vector<uint64_t> load) {
  // Longest processing time first: a simple rule whose result is within 4/3 of the best makespan.
  std::vector<uint32_t> order = inOrder(work.size()), block(work.size());
  llvm::stable_sort(order, [&](uint32_t a, uint32_t b) { return work[a] > work[b]; });
  for (uint32_t group : order) {
    auto least = llvm::min_element(load);
    *least += work[group];
    block[group] = static_cast<uint32_t>(least - load.begin());
  }
  return block;
}

std::vector<uint32_t> balanceByPeers(llvm::ArrayRef<StepGroup> groups, std::vector<uint64_t> load) {
  // Groups with the same peers are one unit: their messages then follow each other in one thread
  // block.
  std::map<llvm::ArrayRef<uint32_t>, uint32_t,
           bool (*)(llvm::ArrayRef<uint32_t>, llvm::ArrayRef<uint32_t>)>
      unitOf([](llvm::ArrayRef<uint32_t> a, llvm::ArrayRef<uint32_t> b) {
        return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
      });
  std::vector<uint32_t> unit;
  std::vector<uint64_t> work;
  for (const StepGroup &group : groups) {
    auto entry = unitOf.try_emplace(group.peers, work.size()).first;
    // What has no peers has nothing in common.
    uint32_t number = group.peers.empty() ? work.size() : entry->second;
    work.resize(std::max<size_t>(work.size(), number + 1), 0);
    unit.push_back(number);
    work[number] += group.work;
  }
  std::vector<uint32_t> blockOfUnit = balance(work, std::move(load)), block;
  for (uint32_t index : unit)
    block.push_back(blockOfUnit[index]);
  return block;
}

/// Groups in the order of time.
std::vector<uint32_t> byTime(llvm::ArrayRef<StepGroup> groups) {
  std::vector<uint32_t> order = inOrder(groups.size());
  llvm::stable_sort(order, [&](uint32_t a, uint32_t b) {
    return std::tie(groups[a].begin, groups[a].end) < std::tie(groups[b].begin, groups[b].end);
  });
  return order;
}

std::vector<uint32_t> takeEarliest(llvm::ArrayRef<StepGroup> groups, std::vector<uint64_t> freeAt) {
  // List scheduling: in the order of their begins, each to the block that is free first.
  std::vector<uint32_t> block(groups.size());
  for (uint32_t index : byTime(groups)) {
    auto first = llvm::min_element(freeAt);
    *first = std::max(*first, groups[index].begin) + groups[index].work;
    block[index] = static_cast<uint32_t>(first - freeAt.begin());
  }
  return block;
}

/// Cuts groups, by the time when they begin, into as many runs as there are blocks at most.
class Phases {
public:
  explicit Phases(llvm::ArrayRef<StepGroup> groups)
      : groups(groups), order(byTime(groups)), block(groups.size()) {}

  /// The cut whose longest run is shortest.
  std::vector<uint32_t> cut(size_t numBlocks) {
    // Bisection on the length: first doubled until it is long enough, then halved down to the
    // shortest that is.
    uint64_t tooShort = 0, longEnough = 1;
    while (cutInto(longEnough) > numBlocks)
      longEnough *= 2;
    while (longEnough - tooShort > 1) {
      uint64_t middle = tooShort + (longEnough - tooShort) / 2;
      (cutInto(middle) > numBlocks ? tooShort : longEnough) = middle;
    }
    // The last trial may have been too short.
    cutInto(longEnough);
    return block;
  }

private:
  /// Cuts into runs of at most that length, or of one group; how many these are. A run takes as
  /// long as its work, and at least from its first begin to its last end.
  size_t cutInto(uint64_t length) {
    // Greedily: a run is closed when the next group would make it too long.
    size_t runs = 0;
    uint64_t work = 0, begin = 0, end = 0;
    for (uint32_t index : order) {
      const StepGroup &group = groups[index];
      work += group.work;
      end = std::max(end, group.end);
      if (runs == 0 || std::max(work, end - begin) > length) {
        ++runs;
        work = group.work;
        begin = group.begin;
        end = group.end;
      }
      block[index] = static_cast<uint32_t>(runs - 1);
    }
    return runs;
  }

  llvm::ArrayRef<StepGroup> groups;
  std::vector<uint32_t> order, block;
};

} // namespace

std::optional<BlockLayout> blockLayoutOf(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<BlockLayout>>(name)
      .Case("balanced", BlockLayout::Balanced)
      .Case("phases", BlockLayout::Phases)
      .Case("peers", BlockLayout::Peers)
      .Case("earliest", BlockLayout::Earliest)
      .Default(std::nullopt);
}

std::vector<uint32_t> layOut(BlockLayout layout, llvm::ArrayRef<StepGroup> groups,
                             std::vector<uint64_t> load) {
  if (layout == BlockLayout::Phases)
    return Phases(groups).cut(load.size());
  if (layout == BlockLayout::Peers)
    return balanceByPeers(groups, std::move(load));
  if (layout == BlockLayout::Earliest)
    return takeEarliest(groups, std::move(load));
  std::vector<uint64_t> work;
  for (const StepGroup &group : groups)
    work.push_back(group.work);
  return balance(work, std::move(load));
}

} // namespace occl::passes
