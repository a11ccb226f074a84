// What the steps of a task's life cost that are no communication, beside the OCCL paper's figures
// for its kernel (section 5.1): loading and saving a context, a whole visit that finds a task
// still waiting, reading a submission, writing a completion.
#include "bench/runtime/checked.h"
#include "plan/testing/example_plans.h"
#include "runtime/api/capi/handles.h"
#include "runtime/exec/step/invocation.h"
#include "runtime/queue/completion_queue.h"
#include "runtime/queue/submission_queue.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

namespace {

using occl::bench::callOf;
using occl::bench::check;
using occl::interpreter::BlockContext;

constexpr uint32_t kRepeats = 101;
constexpr uint32_t kEntries = 1024;

/// The median of kRepeats times of step(), which does `operations`, each after prepare().
template <class Prepare, class Step>
double nanosecondsEach(uint32_t operations, Prepare prepare, Step step) {
  std::vector<double> times;
  for (uint32_t repeat = 0; repeat < kRepeats; ++repeat) {
    prepare();
    auto begin = std::chrono::steady_clock::now();
    step();
    std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - begin;
    times.push_back(passed.count() / operations);
  }
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  return times[kRepeats / 2];
}

/// On another thread, so that what it writes comes from another processor's cache.
template <class Work> void elsewhere(Work work) { std::thread(work).join(); }

/// Contexts lie as far apart as those of different tasks.
struct alignas(256) Task {
  BlockContext context;
};

/// Keeps the compiler from leaving out what computes a value.
template <class T> void use(T &value) { asm volatile("" : "+m"(value)); }

void printContexts() {
  std::vector<Task> tasks(kEntries);
  auto writeAll = [&] {
    for (Task &task : tasks)
      ++task.context.tile;
  };
  double load = nanosecondsEach(
      kEntries, [&] { elsewhere(writeAll); },
      [&] {
        for (Task &task : tasks) {
          BlockContext context = task.context;
          use(context);
        }
      });
  BlockContext context{7, 3, 1};
  double save = nanosecondsEach(
      kEntries, [&] { elsewhere(writeAll); },
      [&] {
        for (Task &task : tasks) {
          use(context);
          task.context = context;
        }
        use(tasks);
      });
  std::printf("%-58s %8.1f %14s\n", "context load (16 bytes, last written by another thread)", load,
              "450");
  std::printf("%-58s %8.1f %14s\n", "context save", save, "50");
}

void printQueues() {
  occl::queue::SubmissionQueue<void *> submissions(kEntries);
  int thing = 0;
  double read = nanosecondsEach(
      kEntries,
      [&] {
        elsewhere([&] {
          while (submissions.push(&thing))
            ;
        });
      },
      [&] {
        while (auto entry = submissions.pop())
          use(*entry);
      });
  auto completions =
      occl::queue::makeCompletionQueue(occl::daemon::Options().completionForm, kEntries);
  double write = nanosecondsEach(
      kEntries,
      [&] {
        elsewhere([&] {
          while (completions->pop())
            ;
        });
      },
      [&] {
        for (uint32_t entry = 1; entry <= kEntries; ++entry)
          completions->push(entry);
      });
  std::printf("%-58s %8.1f %14s\n", "submission read (written by another thread)", read, "");
  std::printf("%-58s %8.1f %14s\n", "completion write (last read by another thread)", write, "");
  std::printf("%-58s %8.1f %14s\n", "both", read + write, "7000 to 8000");
}

/// Starts on one of two ranks what the other never does, and lets it visit that again and again.
void printVisit() {
  constexpr uint32_t kTasks = 64;
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  std::vector<occlComm_t> comms(2);
  check(occlCommInitAll(comms.data(), 2, &config));
  std::shared_ptr<occlPlan> plan(
      occl::communicator::adoptPlan(occl::plan::testing::oneShotAllReduce(2)), occlPlanDestroy);
  std::vector<float> data(16);
  occlRequest_t request = 0;
  for (uint64_t id = 0; id < kTasks; ++id)
    request =
        occl::bench::start(comms[0], callOf(plan.get(), data.data(), data.data(), data.size(), id));
  // The worker visits them too, for a while each time: then the times are of both.
  constexpr uint32_t kPasses = 100;
  double visit = nanosecondsEach(
      kTasks * kPasses, [] {},
      [&] {
        for (uint32_t pass = 0; pass < kPasses; ++pass)
          if (occlTest(comms[0], request) != occlInProgress)
            check(occlInternalError);
      });
  std::printf("%-58s %8.1f %14s\n", "whole visit: claim, load, look, count, release", visit, "");
  check(occlCommAbort(comms[0]));
  for (occlComm_t comm : comms)
    check(occlCommDestroy(comm));
}

} // namespace

int main() {
  std::printf("%-58s %8s %14s\n", "median", "ns", "OCCL paper, ns");
  printContexts();
  printQueues();
  printVisit();
}
