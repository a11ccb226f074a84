// Which partitions of a collective's input are marked on this rank, and which of its output have
// arrived. docs/decisions/hosts/partitioned-collectives.md has the protocol.
#pragma once

#include "runtime/base/data_type.h"
#include "runtime/exec/host/partitions.h"
#include "runtime/partitioned/collective_buffers.h"
#include "runtime/partitioned/spread_words.h"
#include "runtime/partitioned/words.h"
#include "runtime/sync/doorbell.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace occl::partitioned {

/// Thread safety: missing(), stored(), mark(), count() and what is const are for any; begin() and
/// readCopy() for one thread, while no epoch is under way.
class CollectiveParts final : public interpreter::Partitions {
public:
  /// The program is what executes an epoch. bell: of the executors that may wait for a mark; it
  /// lives longest.
  CollectiveParts(const CollectiveBuffers &buffers, const interpreter::Program &program,
                  Doorbell &bell);

  const CollectiveBuffers &shape() const { return buffers; }

  /// Before the epoch's invocation; nothing is marked, and nothing has arrived.
  void begin(uint64_t ofEpoch) { epoch = ofEpoch; }
  /// Marks partition p of the input: steps may read it. False: it is marked already, and nothing
  /// has changed. Who has marked counts its marks, then rings the bell.
  bool mark(uint64_t p, uint64_t ofEpoch);
  /// So many were made: a thread's last access, for with the last of all marks that is counted the
  /// epoch may be over, and this gone.
  void count(uint64_t made) { marks.add(made); }
  bool isMarked(uint64_t p, uint64_t ofEpoch) const {
    return marked[p].load(std::memory_order_acquire) >= ofEpoch;
  }
  /// Whether all partitions of the input are and are counted, so that nobody is at it any more.
  bool areAllMarked(uint64_t ofEpoch) const { return marks.sum() == ofEpoch * marked.size(); }
  /// The first that is not; the number of partitions if there is none.
  uint64_t firstUnmarked(uint64_t ofEpoch) const;
  /// Whether partition q of the output has all that it will have in this epoch.
  bool hasArrived(uint64_t q, uint64_t ofEpoch) const;

  std::optional<uint32_t> missing(plan::OperandKind kind, plan::Range elements) override;
  void stored(plan::Range elements) override;
  void readCopy(char *to, const interpreter::Scale &by) override {
    copy = to;
    scale = by;
  }

private:
  bool isReady(uint64_t p);
  bool copyPartition(uint64_t p);

  const CollectiveBuffers buffers;
  Doorbell &bell;
  SpreadWords marked; // by partition of the input: the last epoch in which it was
  SpreadSum marks;    // of all epochs together
  /// By partition of the input, where a copy is read: twice the last epoch in which it was copied,
  /// or one less while it is.
  std::vector<Word> copied;
  std::vector<uint64_t> all; // by partition of the output: elements that an epoch stores there
  std::vector<Word> sums;    // likewise: that were stored, in all epochs together
  uint64_t epoch = 0;        // the present one
  /// Null: the input is read where it is, in all epochs. Else each has one of its own.
  char *copy = nullptr;
  interpreter::Scale scale;
};

} // namespace occl::partitioned
