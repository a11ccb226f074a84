// Which steps of a rank must keep their order because of the memory that they touch.
#pragma once

#include "compiler/analysis/Program.h"

#include "llvm/ADT/ArrayRef.h"

namespace occl::analysis {

/// A range of a rank's memory. Spaces are disjoint; where the program must work in place, input and
/// output share one, so that dependences hold in both modes. Positions count from 0.
struct Range {
  uint32_t space = 0;
  int64_t begin = 0;
  int64_t end = 0;

  bool overlaps(const Range &other) const {
    return space == other.space && begin < other.end && other.begin < end;
  }
  bool operator==(const Range &) const = default;
};

/// The range of a local place of `count` chunks.
Range rangeOf(const Program &program, const Rank &rank, inst::Place place, uint32_t count);

/// Whether two local places of `count` chunks are the same memory in all modes of the program.
bool areSame(const Program &program, const Rank &rank, inst::Place a, inst::Place b,
             uint32_t count);

/// True and false dependences between the steps of one rank, in the order of its steps. Near
/// linear: a range is cut only where accesses begin or end.
class RankDependences {
public:
  RankDependences() = default; // of a rank without steps
  RankDependences(const Program &program, const Rank &rank);

  /// Earlier steps that must complete before `step`; ascending. Steps that are implied by these are
  /// left out.
  llvm::ArrayRef<uint32_t> before(uint32_t step) const { return all.of(step); }

  /// Earlier steps whose result `step` reads; ascending.
  llvm::ArrayRef<uint32_t> producers(uint32_t step) const { return flow.of(step); }

private:
  struct Lists {
    std::vector<uint32_t> starts = {0};
    std::vector<uint32_t> values;

    llvm::ArrayRef<uint32_t> of(uint32_t step) const {
      return llvm::ArrayRef(values).slice(starts[step], starts[step + 1] - starts[step]);
    }
    void append(llvm::SmallVectorImpl<uint32_t> &list);
  };
  Lists all, flow;
};

/// Those of all ranks.
std::vector<RankDependences> dependencesOf(const Program &program);

/// For each step of a rank, the later steps that read its result; ascending.
std::vector<llvm::SmallVector<uint32_t, 2>> consumersOf(const Rank &rank,
                                                        const RankDependences &dependences);

} // namespace occl::analysis
