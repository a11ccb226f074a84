#include "runtime/cuda/resident/testing/host_group.h"

#include "runtime/cuda/resident/executor/part_gate.h"
#include "runtime/cuda/resident/testing/host_target.h"
#include "runtime/exec/host/target_host.h"
#include "runtime/sync/deadline.h"
#include "runtime/sync/thread.h"

#include <cstdlib>
#include <cstring>
#include <mutex>

namespace occl::cuda::resident {

namespace {

int32_t inputOf(uint32_t ordinal, uint32_t rank, uint64_t element) {
  return static_cast<int32_t>(ordinal * 1000 + rank * 100 + element % 97);
}

template <class T> std::unique_ptr<T> makeZeroed() { return std::make_unique<T>(); }

} // namespace

HostCollective::HostCollective(const plan::Plan &plan, uint64_t count, uint32_t invocations,
                               uint32_t number)
    : count(count), number(number), nextOrdinals(plan.numRanks) {
  interpreter::conformance::SimulationOptions options;
  options.count = count;
  options.type = DataType::Int32;
  options.tiles = {256, 2};
  for (uint32_t i = 0; i < invocations; ++i) {
    auto made = interpreter::conformance::Simulation::make(plan, options);
    simulations.push_back(std::move(*made));
    simulations.back()->announceAll();
    for (uint32_t r = 0; r < plan.numRanks; ++r)
      for (uint64_t e = 0; e < count; ++e) {
        int32_t value = inputOf(i, r, e);
        std::memcpy(simulations.back()->input(r) + e * sizeof value, &value, sizeof value);
      }
  }
  for (uint32_t r = 0; r < plan.numRanks; ++r)
    words.push_back(std::make_unique<Words>());
  for (uint32_t r = 0; r < plan.numRanks; ++r) {
    Words &own = *words[r];
    own.self = this;
    own.rank = r;
    own.numRanks = plan.numRanks;
    own.done = &own.doneWord;
    own.announced = own.announcedWords;
    own.counts = own.blockCounts;
    for (uint32_t peer = 0; peer < plan.numRanks; ++peer)
      own.announcedAt[peer] = &words[peer]->announcedWords[r];
  }
}

Submission HostCollective::nextOf(uint32_t rank) {
  Submission submission;
  submission.collective = words[rank].get();
  submission.ordinal = nextOrdinals[rank]++;
  submission.home = homeOf(number);
  submission.numBlocks = static_cast<uint8_t>(simulations[submission.ordinal]->numBlocks(rank));
  return submission;
}

bool HostCollective::isRight(uint32_t ordinal) {
  for (uint32_t r = 0; r < numRanks(); ++r)
    for (uint64_t e = 0; e < count; ++e) {
      int32_t expected = 0, actual;
      for (uint32_t peer = 0; peer < numRanks(); ++peer)
        expected += inputOf(ordinal, peer, e);
      std::memcpy(&actual, simulations[ordinal]->output(r) + e * sizeof actual, sizeof actual);
      if (actual != expected)
        return false;
    }
  return simulations[ordinal]->intact();
}

class HostRunner : public HostRunnerBase {
public:
  template <class Body>
  auto visit(const Submission &submission, uint32_t block, bool, const Body &body) {
    auto &words = static_cast<HostCollective::Words &>(*submission.collective);
    return body([&](interpreter::BlockContext &context, uint32_t maxSlices) {
      if (words.parts)
        return runGated(submission, words, block, context, maxSlices);
      auto result =
          words.self->run(submission.ordinal, words.rank, block, context, target, maxSlices);
      if (result.status == interpreter::StepStatus::Blocked)
        yieldProcessor(); // there are more executors than processors
      return result;
    });
  }

private:
  interpreter::StepResult runGated(const Submission &submission, const HostCollective::Words &words,
                                   uint32_t block, interpreter::BlockContext &context,
                                   uint32_t maxSlices) {
    HostTarget lane;
    PartGate<HostTarget> gate(lane, *words.parts, words.rank, block);
    GateCursor cursor = gate.begin();
    interpreter::StepResult result;
    if (gate.opens(cursor, result)) {
      result = words.self->run(submission.ordinal, words.rank, block, context, target, maxSlices);
      if (result.status == interpreter::StepStatus::Finished && gate.finish(result))
        return result;
    }
    if (result.status == interpreter::StepStatus::Blocked)
      yieldProcessor(); // there are more executors than processors
    return result;
  }

  interpreter::HostTarget target;
};

HostRank::HostRank(const Settings &settings)
    : settings(settings), board(makeZeroed<Board>()), page(makeZeroed<HostPage>()),
      submissions(*page, [this](uint64_t generation, bool beside) {
        std::lock_guard lock(mutex);
        current = beside ? 1 - current : current;
        generations[current].push_back(generation);
        changed.notify_all();
      }) {
  for (uint32_t s = 0; s < 2; ++s)
    streams[s] = std::thread([this, s] { runGenerations(s); });
}

HostRank::~HostRank() {
  submissions.abort();
  {
    std::lock_guard lock(mutex);
    isOver = true;
    changed.notify_all();
  }
  for (std::thread &stream : streams)
    stream.join();
}

void HostRank::runGenerations(uint32_t number) {
  std::deque<uint64_t> &mine = generations[number];
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return isOver || (!mine.empty() && !isBusy); });
    if (mine.empty())
      return;
    uint64_t generation = mine.front();
    mine.pop_front();
    lock.unlock();
    runGeneration(generation);
    lock.lock();
    gone.fetch_add(1, std::memory_order_release);
  }
}

void HostRank::mayBegin(bool may) {
  std::lock_guard lock(mutex);
  isBusy = !may;
  changed.notify_all();
}

bool HostRank::areGone() const {
  return gone.load(std::memory_order_acquire) == submissions.starts();
}

void HostRank::runGeneration(uint64_t generation) {
  ExecutorArguments arguments{board.get(), page.get(), generation, settings, marks.get()};
  std::vector<std::thread> executors;
  for (uint32_t e = 0; e < settings.numExecutors; ++e)
    executors.emplace_back([&arguments, e] {
      HostTarget target;
      HostRunner runner;
      auto ledger = makeZeroed<Ledger>();
      Marker<HostTarget> marker(arguments.marks == nullptr ? nullptr : arguments.marks + e, target);
      Executor<HostTarget, HostRunner>(arguments, e, target, runner, *ledger, marker).run();
    });
  for (std::thread &executor : executors)
    executor.join();
}

uint64_t HostRank::submit(HostCollective &collective, uint32_t rank, uint8_t priority) {
  Submission submission = collective.nextOf(rank);
  submission.priority = priority;
  return submit(submission);
}

uint64_t HostRank::submitStreamed(HostCollective &collective, uint32_t rank) {
  Submission submission = collective.nextOf(rank);
  submission.isStreamed = true;
  return submit(submission);
}

uint64_t HostRank::submit(const Submission &submission) {
  for (;;) {
    if (auto request = submissions.submit(submission))
      return *request;
    submissions.restartIfOpen();
    yieldProcessor();
  }
}

void HostRank::reach(uint64_t request) {
  storeShared(submissions.gateOf(request), request + 1, std::memory_order_release);
}

bool HostRank::wait(uint64_t request, std::chrono::milliseconds atMost) {
  Deadline deadline(atMost);
  while (!submissions.isComplete(request)) {
    if (deadline.passed())
      return false;
    submissions.restartIfOpen();
    yieldProcessor();
  }
  return true;
}

std::optional<std::vector<OpenTask>> HostRank::withdraw(uint64_t request,
                                                        std::chrono::milliseconds atMost) {
  Deadline deadline(atMost);
  submissions.hold();
  while (!areGone()) {
    if (deadline.passed())
      return std::nullopt;
    yieldProcessor();
  }
  auto tasks = submissions.openTasks();
  if (!submissions.isComplete(request)) {
    Slot &slot = board->slots[request % kWindow];
    slot.claimable = slot.left = slot.sequence = 0;
    submissions.withdraw(request);
  }
  submissions.resume();
  return tasks;
}

bool HostRank::waitForEnd(std::chrono::milliseconds atMost) {
  for (Deadline deadline(atMost); !areGone(); yieldProcessor())
    if (deadline.passed())
      return false;
  return true;
}

bool HostRank::waitForQuit(std::chrono::milliseconds atMost) {
  Deadline deadline(atMost);
  while (!submissions.hasQuit() || !areGone()) {
    if (deadline.passed())
      return false;
    yieldProcessor();
  }
  return true;
}

} // namespace occl::cuda::resident
