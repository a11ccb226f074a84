#include "test/explore/explorer/strategy.h"

#include <algorithm>
#include <cstdlib>
#include <random>

namespace occl::explore {

namespace {

/// A thread that takes so many steps in a row without letting others run is put last: nothing may
/// depend on a spinning thread being preempted at one particular point.
constexpr uint32_t kMostInARow = 4000;

class RandomStrategy final : public Strategy {
public:
  explicit RandomStrategy(const Settings &settings)
      : delaysStores(settings.storeBuffers), next(settings.seed),
        end(settings.seed + settings.schedules) {
    if (const char *only = std::getenv("OCCL_EXPLORE_SEED")) {
      next = std::strtoull(only, nullptr, 10);
      end = next + 1;
    }
  }

  bool begin() override {
    if (next == end)
      return false;
    seed = next++;
    random.seed(seed);
    priorities.clear();
    lowest = 0;
    step = inARow = 0;
    byPriority = random() % 2 == 0;
    constexpr uint32_t kOdds[] = {2, 8, 32};
    odds = kOdds[random() % 3];
    buffered = delaysStores && random() % 2 == 0;
    changes.clear();
    // As often early as late: what is short is explored too.
    for (uint32_t i = 0; i < 1 + seed % 4; ++i)
      changes.push_back(random() % (uint64_t{16} << random() % 12));
    return true;
  }

  void started(uint32_t) override { priorities.push_back(1 + static_cast<int64_t>(random() >> 1)); }

  uint32_t choose(Occasion occasion, uint32_t running,
                  std::span<const uint32_t> runnable) override {
    if (occasion == Occasion::Wake)
      return runnable[random() % runnable.size()];
    ++step;
    bool tooLong = ++inARow > kMostInARow;
    uint32_t chosen = byPriority ? chooseByPriority(occasion, running, runnable, tooLong)
                                 : chooseAtRandom(occasion, running, runnable);
    if (chosen != running)
      inARow = 0;
    return chosen;
  }

  uint64_t storeDelay() override { return buffered && random() % 2 == 0 ? 1 + random() % 64 : 0; }

  std::string replay() const override { return "OCCL_EXPLORE_SEED=" + std::to_string(seed); }

private:
  uint32_t chooseByPriority(Occasion occasion, uint32_t running, std::span<const uint32_t> runnable,
                            bool tooLong) {
    if (occasion == Occasion::Yield || tooLong ||
        std::find(changes.begin(), changes.end(), step) != changes.end())
      priorities[running] = --lowest;
    return *std::max_element(runnable.begin(), runnable.end(),
                             [&](uint32_t a, uint32_t b) { return priorities[a] < priorities[b]; });
  }

  uint32_t chooseAtRandom(Occasion occasion, uint32_t running, std::span<const uint32_t> runnable) {
    if (occasion == Occasion::Access && random() % odds != 0)
      return running;
    return runnable[random() % runnable.size()];
  }

  const bool delaysStores;
  uint64_t next, end, seed = 0;
  std::mt19937_64 random;
  std::vector<int64_t> priorities; // by thread
  std::vector<uint64_t> changes;   // steps at which the running thread is put last
  int64_t lowest = 0;
  uint64_t step = 0;
  uint32_t inARow = 0, odds = 2;
  bool byPriority = false, buffered = false;
};

} // namespace

std::unique_ptr<Strategy> makeRandom(const Settings &settings) {
  return std::make_unique<RandomStrategy>(settings);
}

} // namespace occl::explore
