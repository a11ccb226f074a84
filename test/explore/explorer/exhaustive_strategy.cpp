#include "test/explore/explorer/strategy.h"

#include <algorithm>
#include <cstdlib>

namespace occl::explore {

namespace {

/// Depth first over the choices of a schedule, by running it again with another last choice. The
/// first choice is to go on; another one at an access costs a preemption. Who yields is followed by
/// the next thread in turn, always: so loops that poll end.
class ExhaustiveStrategy final : public Strategy {
public:
  explicit ExhaustiveStrategy(const Settings &settings)
      : delaysStores(settings.storeBuffers), boundsDelays(settings.boundsDelays),
        preemptions(settings.preemptions), schedulesLeft(settings.schedules) {
    if (const char *only = std::getenv("OCCL_EXPLORE_PATH")) {
      parse(only);
      schedulesLeft = 1;
    }
  }

  bool begin() override {
    if (schedulesLeft == 0 || complete)
      return false;
    --schedulesLeft;
    if (begun && !advance()) {
      complete = true;
      return false;
    }
    begun = true;
    at = 0;
    preempted = 0;
    return true;
  }

  void started(uint32_t) override {}

  uint32_t choose(Occasion occasion, uint32_t running,
                  std::span<const uint32_t> runnable) override {
    if (occasion == Occasion::Yield)
      return after(running, runnable);
    const bool leaves = occasion == Occasion::Leave || occasion == Occasion::Wake;
    if (runnable.size() == 1 || (preempted == preemptions && (!leaves || boundsDelays)))
      return leaves ? runnable[0] : running;
    if (at == path.size())
      path.push_back({0, 0});
    Choice &choice = path[at++];
    choice.alternatives = static_cast<uint32_t>(runnable.size());
    preempted += choice.taken != 0 && (!leaves || boundsDelays);
    if (leaves)
      return runnable[std::min(choice.taken, choice.alternatives - 1)];
    if (choice.taken == 0)
      return running;
    // The others in ascending order.
    uint32_t index = choice.taken - 1;
    for (uint32_t thread : runnable)
      if (thread != running && index-- == 0)
        return thread;
    return running;
  }

  uint64_t storeDelay() override { return delaysStores ? uint64_t{1} << 40 : 0; }

  std::string replay() const override {
    std::string text = "OCCL_EXPLORE_PATH=";
    for (size_t i = 0; i < at; ++i)
      if (path[i].taken != 0)
        text += std::to_string(i) + ":" + std::to_string(path[i].taken) + ",";
    return text;
  }

  bool isComplete() const override { return complete; }

private:
  struct Choice {
    uint32_t taken = 0, alternatives = 0;
  };

  static uint32_t after(uint32_t running, std::span<const uint32_t> runnable) {
    auto next = std::upper_bound(runnable.begin(), runnable.end(), running);
    return next == runnable.end() ? runnable[0] : *next;
  }

  /// To the next path in order; false if this was the last.
  bool advance() {
    path.resize(at);
    while (!path.empty()) {
      if (++path.back().taken < path.back().alternatives)
        return true;
      path.pop_back();
    }
    return false;
  }

  /// "12:1,40:2,": the choices that are not the first.
  void parse(const char *text) {
    while (*text) {
      char *end = nullptr;
      size_t index = std::strtoull(text, &end, 10);
      if (*end != ':')
        return;
      uint32_t taken = static_cast<uint32_t>(std::strtoul(end + 1, &end, 10));
      path.resize(std::max(path.size(), index + 1));
      path[index].taken = taken;
      text = *end == ',' ? end + 1 : end;
    }
  }

  const bool delaysStores, boundsDelays;
  const uint32_t preemptions;
  uint64_t schedulesLeft;
  std::vector<Choice> path;
  size_t at = 0;          // choices made
  uint32_t preempted = 0; // of the schedule so far
  bool begun = false, complete = false;
};

} // namespace

std::unique_ptr<Strategy> makeExhaustive(const Settings &settings) {
  return std::make_unique<ExhaustiveStrategy>(settings);
}

} // namespace occl::explore
