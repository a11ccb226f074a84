#include "compiler/analysis/Dependences.h"

#include "compiler/analysis/AccessMap.h"

#include "llvm/ADT/STLExtras.h"

namespace occl::analysis {

using inst::Instruction;
using inst::Place;
using inst::PlaceKind;

namespace {

constexpr uint32_t kOutputSpace = 0, kInputSpace = 1, kScratchSpace = 2, kNumSpaces = 3;
constexpr uint32_t kNone = ~0u;

/// Who wrote a piece last, and who read it since.
struct Accesses {
  uint32_t writer = kNone;
  llvm::SmallVector<uint32_t, 2> readers;
};

} // namespace

Range rangeOf(const Program &program, const Rank &rank, Place place, uint32_t count) {
  int64_t begin = place.index;
  // Scratch is a memory of its own. Input and output are, too, unless the program claims in place:
  // then both are one memory, and two places in it may be the same chunk.
  if (place.kind == PlaceKind::Scratch)
    return {kScratchSpace, begin, begin + count};
  if (!program.inPlace)
    return {place.kind == PlaceKind::Output ? kOutputSpace : kInputSpace, begin, begin + count};
  // In place, the input may begin before the output.
  begin += place.kind == PlaceKind::Output ? std::max(0, -rank.inPlaceOffset)
                                           : std::max(0, rank.inPlaceOffset);
  return {kOutputSpace, begin, begin + count};
}

bool areSame(const Program &program, const Rank &rank, Place a, Place b, uint32_t count) {
  return a == b || (!program.outOfPlace &&
                    rangeOf(program, rank, a, count) == rangeOf(program, rank, b, count));
}

void RankDependences::Lists::append(llvm::SmallVectorImpl<uint32_t> &list) {
  llvm::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
  values.insert(values.end(), list.begin(), list.end());
  starts.push_back(static_cast<uint32_t>(values.size()));
}

RankDependences::RankDependences(const Program &program, const Rank &rank) {
  // Who wrote each chunk last, and who has read it since, per memory.
  AccessMap<Accesses> spaces[kNumSpaces];
  llvm::SmallVector<uint32_t> before, producers;
  for (uint32_t i = 0; i < rank.steps.size(); ++i) {
    const Instruction &instruction = rank.steps[i].instruction;
    before.clear();
    producers.clear();
    // A read comes after the last write of each chunk that it covers (read after write): the writer
    // is one of its producers.
    for (Place place : instruction.sources) {
      if (!place.isLocal())
        continue;
      Range range = rangeOf(program, rank, place, instruction.count);
      spaces[range.space].forEach(range.begin, range.end,
                                  [&](int64_t, int64_t, Accesses &accesses) {
                                    if (accesses.writer != kNone)
                                      producers.push_back(accesses.writer);
                                    if (accesses.readers.empty() || accesses.readers.back() != i)
                                      accesses.readers.push_back(i);
                                  });
    }
    before.append(producers.begin(), producers.end());
    // A write comes after all reads since the last write, and after that write itself if nobody
    // read it (write after read, write after write).
    if (const Place *place = instruction.localDestination()) {
      Range range = rangeOf(program, rank, *place, instruction.count);
      spaces[range.space].forEach(range.begin, range.end,
                                  [&](int64_t, int64_t, Accesses &accesses) {
                                    // A reader came after the writer, so that it stands for it.
                                    bool readByOthers = false;
                                    for (uint32_t reader : accesses.readers)
                                      if (reader != i) {
                                        before.push_back(reader);
                                        readByOthers = true;
                                      }
                                    if (!readByOthers && accesses.writer != kNone)
                                      before.push_back(accesses.writer);
                                  });
      // What is written has no readers yet.
      spaces[range.space].assign(range.begin, range.end, Accesses{i, {}});
    }
    all.append(before);
    flow.append(producers);
  }
}

std::vector<RankDependences> dependencesOf(const Program &program) {
  std::vector<RankDependences> dependences(program.ranks.size());
  forEachRankAtOnce(
      program, [&](uint32_t r) { dependences[r] = RankDependences(program, program.ranks[r]); });
  return dependences;
}

std::vector<llvm::SmallVector<uint32_t, 2>> consumersOf(const Rank &rank,
                                                        const RankDependences &dependences) {
  std::vector<llvm::SmallVector<uint32_t, 2>> consumers(rank.steps.size());
  for (uint32_t i = 0; i < rank.steps.size(); ++i)
    for (uint32_t producer : dependences.producers(i))
      consumers[producer].push_back(i);
  return consumers;
}

} // namespace occl::analysis
