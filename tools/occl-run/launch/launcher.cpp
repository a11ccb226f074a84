#include "tools/occl-run/launch/launcher.h"

#include "support/own_address.h"
#include "tools/occl-run/launch/line_tagger.h"
#include "tools/occl-run/launch/pipe.h"
#include "tools/occl-run/launch/process.h"
#include "tools/occl-run/launch/supervisor.h"
#include "tools/occl-run/launch/variables.h"

#include <csignal>
#include <fmt/core.h>
#include <memory>
#include <random>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace occl::run {
namespace {

/// One stream of output of a rank.
struct Output {
  Output(uint32_t rank, int destination) : tagger(rankPrefix(rank), destination) {}

  Pipe pipe;
  LineTagger tagger;
};

class LocalRanks final : public Ranks {
public:
  explicit LocalRanks(const LaunchOptions &options)
      : options(options), children(options.numRanks) {}

  bool start(const sigset_t &inherited) override;
  bool anyRunning() const override;
  void signalAll(int signal) override;
  void collect(std::vector<Ended> &gone) override;
  void addPolled(std::vector<pollfd> &polled) override;
  void finish() override;

private:
  struct Child {
    pid_t pid = 0;
    bool running = false;
    std::unique_ptr<Output> output, errors; // only when output is tagged
  };

  bool startRank(uint32_t rank, const sigset_t &inherited);
  void forward();

  const LaunchOptions &options;
  std::vector<Child> children;
  const std::string name = newJobName();
  std::string whyNoPort; // then there is none, which most programs do not need
  const HeldPort port = HeldPort::hold(whyNoPort);
};

bool LocalRanks::startRank(uint32_t rank, const sigset_t &inherited) {
  Child &child = children[rank];
  // A command, or a function in the child: measurements run in a copy of this program.
  ProcessStart process;
  process.command = options.command;
  process.body = [&] { return options.body(rank); };
  process.environment = variablesOf({rank, options.numRanks, rank, options.numRanks});
  for (std::string &variable : storeVariables("127.0.0.1", std::to_string(port.number())))
    process.environment.push_back(std::move(variable));
  process.environment.push_back("OCCL_JOB=" + name);
  process.signals = inherited;
  // Asks for a report, which what makes no communicator, or none yet, must survive.
  process.ignored = {SIGUSR1};
  // With a pipe each; without tags the ranks write to the terminal themselves.
  if (options.tagOutput) {
    child.output = std::make_unique<Output>(rank, STDOUT_FILENO);
    child.errors = std::make_unique<Output>(rank, STDERR_FILENO);
    process.output = child.output->pipe.writeEnd();
    process.errors = child.errors->pipe.writeEnd();
  }
  const StartedProcess started = startProcess(process);
  // The parent's copies of the write ends have to go, or the pipes would never end.
  if (options.tagOutput) {
    child.output->pipe.closeWriteEnd();
    child.errors->pipe.closeWriteEnd();
  }
  if (!started.problem.empty()) {
    fmt::print(stderr, "occl-run: {}\n", started.problem);
    return false;
  }
  child.pid = started.pid;
  child.running = true;
  return true;
}

bool LocalRanks::start(const sigset_t &inherited) {
  for (uint32_t rank = 0; rank < options.numRanks; ++rank)
    if (!startRank(rank, inherited))
      return false;
  return true;
}

bool LocalRanks::anyRunning() const {
  for (const Child &child : children)
    if (child.running)
      return true;
  return false;
}

void LocalRanks::signalAll(int signal) {
  for (const Child &child : children)
    if (child.running)
      kill(-child.pid, signal);
}

void LocalRanks::collect(std::vector<Ended> &gone) {
  // Output before ends, so that messages of a failed rank are shown first.
  forward();
  for (uint32_t rank = 0; rank < children.size(); ++rank) {
    Child &child = children[rank];
    int status = 0;
    if (!child.running || waitpid(child.pid, &status, WNOHANG) <= 0)
      continue;
    child.running = false;
    kill(-child.pid, SIGKILL); // what it started itself and left behind
    gone.push_back(endOf(fmt::format("rank {} (process {})", rank, child.pid), status));
  }
}

void LocalRanks::addPolled(std::vector<pollfd> &polled) {
  for (const Child &child : children)
    for (const Output *output : {child.output.get(), child.errors.get()})
      if (output && output->pipe.readEnd() >= 0)
        polled.push_back({output->pipe.readEnd(), POLLIN, 0});
}

void LocalRanks::forward() {
  for (const Child &child : children)
    for (Output *output : {child.output.get(), child.errors.get()})
      if (output)
        output->tagger.add(output->pipe.readSome());
}

void LocalRanks::finish() {
  forward();
  for (const Child &child : children)
    for (Output *output : {child.output.get(), child.errors.get()})
      if (output)
        output->tagger.finish();
}

} // namespace

std::string newJobName() {
  std::random_device random;
  return fmt::format("run-{}-{:08x}{:08x}", getpid(), random(), random());
}

int launch(const LaunchOptions &options) {
  LocalRanks ranks(options);
  return supervise(ranks, options.grace);
}

} // namespace occl::run
