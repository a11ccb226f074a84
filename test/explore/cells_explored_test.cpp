// Announce cells under made-up schedules: of a rank that gives its cell back and one that comes
// back to the id, one sees the other.
#include "runtime/control/records/segment.h"
#include "runtime/invocation/announce_cells.h"
#include "runtime/sync/thread.h"
#include "test/explore/explorer/explore.h"
#include "test/explore/fabrics.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace occl::explore {
namespace {

using daemon::AnnounceCells;
using daemon::Fabric;
using daemon::IdState;
using transport::AnnounceCell;
using transport::CellPhase;

constexpr uint64_t kId = 7;

/// One rank's cells, and the only id that there is.
struct Rank {
  explicit Rank(const Fabric &fabric) : cells(fabric) {}

  void submitOnce() {
    require(cells.activate(id) == AnnounceCells::Activation::Done, "activate");
    ++id.nextOrdinal;
  }
  /// Once around all that a deregistered id can do now.
  void goOn() {
    cells.advance(
        1, [](IdState &) {}, [](IdState &) {});
  }

  AnnounceCells cells;
  IdState id{kId, kRanks};
};

/// Each has submitted once, and is done.
struct TwoAtRest {
  TwoAtRest() {
    leaving.submitOnce();
    coming.submitOnce();
    leaving.cells.retire(leaving.id);
    coming.cells.retire(coming.id);
  }

  std::vector<std::unique_ptr<Fabric>> fabrics = makeFabrics();
  Rank leaving{*fabrics[0]}, coming{*fabrics[1]};
};

/// Rank 1 has seen that both are at rest, rank 0 has not. Rank 0 goes on, and leaves if it can;
/// meanwhile rank 1 submits anew. The cell of rank 0 that it finds stays the id's.
void leaveAndComeBack() {
  TwoAtRest ranks;
  Rank &leaving = ranks.leaving, &coming = ranks.coming;
  leaving.goOn();
  coming.goOn();
  require(coming.id.cell->readLife().phase == CellPhase::Ready, "rank 1 is not ready");
  exploreFromHere();
  const AnnounceCell *found = nullptr;
  Thread submitter([&] {
    if (coming.cells.activate(coming.id) == AnnounceCells::Activation::Done)
      found = ranks.fabrics[0]->own().announceTable().find(kId);
  });
  leaving.goOn();
  submitter.join();
  require(!found || found->readLife().phase != CellPhase::Vacant,
          "rank 1 uses a cell that rank 0 has given back");
  require(!leaving.id.cell || leaving.id.nextOrdinal == coming.id.nextOrdinal,
          "the ranks count differently");
}

/// Rank 1 has left, rank 0 is about to. Meanwhile rank 1 submits anew: it counts on from where rank
/// 0 is, or from the start if that has left.
void leaveAndComeAnew() {
  TwoAtRest ranks;
  Rank &leaving = ranks.leaving, &coming = ranks.coming;
  coming.goOn();
  leaving.goOn();
  coming.goOn();
  require(!coming.id.cell && leaving.id.cell, "rank 1 has not left, or rank 0 has");
  exploreFromHere();
  AnnounceCells::Activation came = AnnounceCells::Activation::NoCellFree;
  Thread submitter([&] { came = coming.cells.activate(coming.id); });
  leaving.goOn();
  submitter.join();
  require(came != AnnounceCells::Activation::NoCellFree, "there is a cell");
  require(came == AnnounceCells::Activation::PeerLeaves || !leaving.id.cell ||
              leaving.id.nextOrdinal == coming.id.nextOrdinal,
          "the ranks count differently");
}

/// All schedules with two preemptions, stores being as late as can be.
void tryAll(void (*body)()) {
  Settings settings;
  settings.strategy = Settings::Strategy::Exhaustive;
  settings.schedules = 1000000;
  settings.preemptions = 2;
  settings.fromMark = true;
  Outcome outcome = explore(settings, body);
  EXPECT_TRUE(outcome.defect.empty()) << outcome.defect;
  EXPECT_TRUE(outcome.all) << outcome.schedules << " schedules";
}

TEST(AnnounceCells, ARankThatLeavesAndOneThatComesBackSeeEachOther) { tryAll(leaveAndComeBack); }

TEST(AnnounceCells, ARankThatComesAnewCountsAsOneThatStays) { tryAll(leaveAndComeAnew); }

} // namespace
} // namespace occl::explore
