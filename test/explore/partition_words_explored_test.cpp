// Marks and arrivals of partitioned transfers alone, under all schedules with two preemptions: who
// is the last of a message, that its data are visible, and that no mark takes another one back.
#include "runtime/partitioned/arrivals.h"
#include "runtime/partitioned/ready_marks.h"
#include "runtime/sync/thread.h"
#include "test/explore/explorer/explore.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <new>

namespace occl::explore {
namespace {

using partitioned::Arrivals;
using partitioned::Header;
using partitioned::MessageWords;
using partitioned::ReadyMarks;
using partitioned::Shape;
using partitioned::Word;

enum class Mark { Part, Message, Twice };

/// The words of a sender with some partitions, and its data.
struct Sender {
  explicit Sender(uint64_t partitions, uint64_t perMessage)
      : shape{partitions, 1, DataType::Uint64, perMessage},
        marks(shape, MessageWords(new (block.data()) Header, shape.numMessages())) {
    auto *words = reinterpret_cast<Word *>(block.data() + sizeof(Header));
    for (uint64_t i = 0; i < (block.size() - sizeof(Header)) / sizeof(Word); ++i)
      new (words + i) Word(0);
  }
  MessageWords words() { return {reinterpret_cast<Header *>(block.data()), shape.numMessages()}; }
  /// Message: it is ready with this one.
  Mark mark(uint64_t p, uint64_t epoch) {
    if (!marks.mark(p, epoch))
      return Mark::Twice;
    return marks.count(p, epoch) ? Mark::Message : Mark::Part;
  }
  /// Stores to its data and marks it.
  Mark send(uint64_t p, uint64_t epoch) {
    data[p] = 10 * epoch + p;
    return mark(p, epoch);
  }

  alignas(kCacheLine) std::array<std::byte, MessageWords::blockBytes(4)> block{};
  std::array<uint64_t, 4> data{};
  const Shape shape;
  ReadyMarks marks;
};

void exploreAll(const std::function<void()> &body) {
  Settings settings;
  settings.strategy = Settings::Strategy::Exhaustive;
  settings.preemptions = 2;
  settings.schedules = 10000000;
  const auto outcome = explore(settings, body);
  EXPECT_EQ(outcome.defect, "");
  EXPECT_TRUE(outcome.all);
}

/// A reader that finds the word of a message finds the data of all that marked it.
TEST(PartitionWords, TheLastArriverPublishesAll) {
  exploreAll([] {
    Sender sender(2, 2);
    Arrivals arrivals({1, 2, DataType::Uint64});
    arrivals.bind(sender.shape);
    for (uint64_t epoch = 1; epoch <= 2; ++epoch) {
      std::array<Mark, 2> outcomes{};
      Thread other([&] { outcomes[1] = sender.send(1, epoch); });
      Thread reader([&] {
        arrivals.begin(epoch);
        while (sender.words()[0].load(std::memory_order_acquire) != epoch)
          yieldProcessor();
        require(sender.data[0] == 10 * epoch && sender.data[1] == 10 * epoch + 1, "wrong data");
        arrivals.add(0);
      });
      outcomes[0] = sender.send(0, epoch);
      other.join();
      reader.join();
      require((outcomes[0] == Mark::Message) != (outcomes[1] == Mark::Message),
              "not just one is the last");
      require(arrivals.isComplete(), "not complete");
    }
  });
}

/// Of two marks of one partition one is refused, and the message comes once.
TEST(PartitionWords, MarkedTwiceAtOnce) {
  exploreAll([] {
    Sender sender(2, 2);
    std::array<Mark, 2> outcomes{};
    require(sender.mark(0, 1) == Mark::Part, "the first");
    Thread other([&] { outcomes[1] = sender.mark(1, 1); });
    outcomes[0] = sender.mark(1, 1);
    other.join();
    require(outcomes[0] == Mark::Message
                ? outcomes[1] == Mark::Twice
                : outcomes[0] == Mark::Twice && outcomes[1] == Mark::Message,
            "both, or none");
  });
}

/// One that was refused, or would be, in an epoch that is over, comes beside the next one.
TEST(PartitionWords, AMarkThatIsAnEpochLate) {
  exploreAll([] {
    Sender sender(2, 2);
    require(sender.mark(0, 1) == Mark::Part, "first");
    require(sender.mark(1, 1) == Mark::Message, "last");
    Thread late([&] { require(sender.mark(0, 1) == Mark::Twice, "it counted"); });
    require(sender.mark(0, 2) == Mark::Part, "taken back");
    require(sender.words()[0].load() == 1, "too early");
    require(sender.mark(1, 2) == Mark::Message, "lost");
    late.join();
    require(sender.marks.isMarked(0, 2) && sender.words()[0].load() == 2, "taken back");
  });
}

/// What has arrived may be read by another thread than that which has stored it.
TEST(PartitionWords, DataOfPartitionsThatArrivedIsVisible) {
  exploreAll([] {
    Arrivals arrivals({2, 1, DataType::Uint64});
    arrivals.bind({2, 1, DataType::Uint64});
    std::array<uint64_t, 2> target{};
    Thread executor([&] {
      arrivals.begin(1);
      for (uint64_t m : {1, 0}) {
        target[m] = 7 + m;
        arrivals.add(m);
      }
    });
    while (!arrivals.hasArrived(1, 1))
      yieldProcessor();
    require(target[1] == 8, "wrong data");
    while (!arrivals.hasArrived(0, 1))
      yieldProcessor();
    require(target[0] == 7, "wrong data");
    executor.join();
  });
}

} // namespace
} // namespace occl::explore
