// The ring of a pair alone, a small one, under all schedules with two preemptions: what is read is
// what was written, in order, and nothing of it is written over before.
#include "runtime/sync/thread.h"
#include "runtime/transfer/pair_ring.h"
#include "test/explore/explorer/explore.h"
#include "test/explore/small_ring.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace occl::explore {
namespace {

using transfer::kLineBytes;

constexpr uint64_t kNumber = 5;

/// One line each, of which only a part is looked at: the rest is padding.
TEST(PairRing, EachMessageReadWasWritten) {
  for (uint32_t perPublication : {1, 2}) {
    Settings settings;
    settings.strategy = Settings::Strategy::Exhaustive;
    settings.preemptions = 2;
    settings.schedules = 10000000;
    Outcome outcome = explore(settings, [&] {
      SmallRing memory;
      Thread source([&] {
        transfer::RingSource ring(memory.ring());
        for (uint64_t i = 0; i < kNumber; ++i) {
          while (*ring.room() == 0) {
            if (ring.unpublished() != 0)
              ring.publish();
            yieldProcessor();
          }
          const uint64_t value = i + 1;
          ring.write(&value, sizeof value);
          if (ring.unpublished() == perPublication * kLineBytes)
            ring.publish();
        }
        if (ring.unpublished() != 0)
          ring.publish();
        while (!ring.isConsumed(ring.position()))
          yieldProcessor();
      });
      readNumbers(memory.ring(), kNumber);
      source.join();
    });
    EXPECT_EQ(outcome.defect, "");
    EXPECT_TRUE(outcome.all);
  }
}

} // namespace
} // namespace occl::explore
