#include "compiler/passes/direct/LinearOrder.h"

#include "llvm/ADT/STLExtras.h"

namespace occl::passes {

using namespace analysis;

namespace {

/// The steps at the ends of a connection, in the order of its messages.
struct Ends {
  std::vector<StepRef> senders;
  std::vector<std::vector<StepRef>> receivers; // by destination
};

class Execution {
public:
  explicit Execution(const Program &program)
      : program(program), ends(program.connections.size()), next(program.ranks.size(), 0),
        isOpen(program.ranks.size(), false) {
    for (auto [connection, end] : llvm::zip(program.connections, ends))
      end.receivers.resize(connection.destinations.size());
    for (uint32_t r = 0; r < program.ranks.size(); ++r)
      collectEnds(r);
  }

  std::optional<std::vector<StepRef>> run() {
    for (uint32_t r = 0; r < program.ranks.size(); ++r)
      if (!program.ranks[r].steps.empty() &&
          !advance({r, static_cast<uint32_t>(program.ranks[r].steps.size() - 1)}))
        return std::nullopt;
    return std::move(order);
  }

private:
  void collectEnds(uint32_t r) {
    for (uint32_t i = 0; i < program.ranks[r].steps.size(); ++i) {
      const inst::Instruction &instruction = program.ranks[r].steps[i].instruction;
      auto &numbers = messageNumbers.emplace_back();
      forEachMessage(instruction.sources, [&](const inst::Place &place) {
        auto &receivers = ends[place.index].receivers[slotOf(place.index, r)];
        numbers.push_back(static_cast<uint32_t>(receivers.size()));
        receivers.push_back({r, i});
      });
      forEachMessage(instruction.destinations, [&](const inst::Place &place) {
        auto &senders = ends[place.index].senders;
        numbers.push_back(static_cast<uint32_t>(senders.size()));
        senders.push_back({r, i});
      });
    }
    firstStep.push_back(static_cast<uint32_t>(messageNumbers.size()));
  }

  size_t slotOf(uint32_t connection, uint32_t rank) const {
    const auto &destinations = program.connections[connection].destinations;
    return static_cast<size_t>(llvm::lower_bound(destinations, rank) - destinations.begin());
  }

  bool hasRun(StepRef step) const { return step.step < next[step.rank]; }

  /// Runs `goal` and all that must come before. False if they wait for each other in a cycle.
  bool advance(StepRef goal) {
    std::vector<StepRef> open = {goal};
    isOpen[goal.rank] = true;
    while (!open.empty()) {
      StepRef top = open.back();
      if (hasRun(top)) {
        isOpen[top.rank] = false;
        open.pop_back();
        continue;
      }
      StepRef current = {top.rank, next[top.rank]};
      std::optional<StepRef> missing = findMissing(current);
      if (!missing) {
        order.push_back(current);
        ++next[current.rank];
        continue;
      }
      if (isOpen[missing->rank])
        return false;
      isOpen[missing->rank] = true;
      open.push_back(*missing);
    }
    return true;
  }

  /// The sender of a message that `ref` receives, or the receiver of one that it needs the room of.
  std::optional<StepRef> findMissing(StepRef ref) const {
    const inst::Instruction &instruction = program.ranks[ref.rank].steps[ref.step].instruction;
    const auto &numbers = messageNumbers[firstStep[ref.rank] + ref.step];
    size_t message = 0;
    std::optional<StepRef> missing;
    auto require = [&](StepRef step) {
      if (!missing && !hasRun(step))
        missing = step;
    };
    forEachMessage(instruction.sources, [&](const inst::Place &place) {
      require(ends[place.index].senders[numbers[message++]]);
    });
    forEachMessage(instruction.destinations, [&](const inst::Place &place) {
      uint32_t number = numbers[message++];
      for (const auto &receivers : ends[place.index].receivers)
        if (number >= program.depth)
          require(receivers[number - program.depth]);
    });
    return missing;
  }

  const Program &program;
  std::vector<Ends> ends;
  std::vector<uint32_t> next;            // of each rank
  std::vector<bool> isOpen;              // of each rank: somebody waits for it
  std::vector<uint32_t> firstStep = {0}; // of each rank, in messageNumbers
  /// For each step, which message of its connection each of its sources and destinations is.
  std::vector<llvm::SmallVector<uint32_t, 2>> messageNumbers;
  std::vector<StepRef> order;
};

} // namespace

std::optional<std::vector<StepRef>> linearOrder(const Program &program) {
  return Execution(program).run();
}

} // namespace occl::passes
