// Machines of a cluster, in one process: threads of the runtime, built with -DOCCL_EXPLORE, are
// fibers that run until they sleep, and time passes when all of them do. So a rank takes no time to
// compute, only to wait, and a minute of a thousand ranks takes as long as what they do in it.
// Sockets are those of tcp_network.h. Everything that happens follows from the seed.
#pragma once

#include "runtime/sync/explored.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace occl::simulation {

using Time = SteadyClock::time_point;
using Duration = std::chrono::nanoseconds;

struct Fiber;
class TcpNetwork;

/// One process on a machine of its own. It lives as long as its first thread, or until it is
/// killed.
struct Machine {
  enum class Process : uint8_t { Runs, Stopped, Ended, Killed };

  uint32_t number = 0;
  Process process = Process::Runs;
  bool isOver() const { return process == Process::Ended || process == Process::Killed; }
  std::vector<Fiber *> fibers; // its threads
  std::deque<Fiber *> held;    // of a stopped process: those that are to run
};

class World {
public:
  explicit World(uint64_t seed);
  ~World();
  World(const World &) = delete;
  World &operator=(const World &) = delete;
  /// The only one; null: there is none.
  static World *current();

  /// A machine whose process begins with `body`.
  uint32_t add(std::function<void()> body);
  /// Once time has come to this point since the beginning.
  void at(Duration time, std::function<void()> action);
  /// Runs until the process of each machine has ended or is killed. Empty, or why not: all threads
  /// sleep for ever, `most` has passed, or something spins.
  std::string run(Duration most);

  // What may happen to a machine. From at(), or from a thread of another one.
  /// The kernel closes its sockets.
  void kill(uint32_t machine);
  void stop(uint32_t machine);
  void resume(uint32_t machine);
  /// With its kernel: nothing is heard of it any more.
  void powerOff(uint32_t machine);

  Time now() const { return time; }
  Duration sinceBegin() const { return time - kBegin; }
  Machine &machine(uint32_t number) const { return *machines[number]; }
  uint32_t numMachines() const { return static_cast<uint32_t>(machines.size()); }
  /// Whose thread runs; only while one does.
  uint32_t currentMachine() const;
  TcpNetwork &network() { return *sockets; }
  std::mt19937_64 &random() { return generator; }

  // explored.h, for the thread that runs.
  bool park(const void *key, Time deadline);
  void wake(const void *key, bool all = true);
  uint32_t spawn(std::function<void()> body);
  bool hasEnded(uint32_t thread) const;
  uint32_t currentThread() const;
  void *&placeOfThisThread(const void *kind);
  const void *endOf(uint32_t thread) const;

  static constexpr Time kBegin{std::chrono::seconds(1000)};

private:
  struct Event {
    Time time;
    uint64_t number = 0; // of events of the same time the one that was made first comes first
    std::function<void()> act;
    bool operator<(const Event &other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  static void enterFiber();
  Fiber &addFiber(uint32_t machine, std::function<void()> body);
  void makeRunnable(Fiber &fiber);
  void wakeByTime(Fiber &fiber, uint64_t sleep);
  void runOne();
  void runFiber();
  void leave();
  void finish(Machine &machine, Machine::Process how);
  std::string describe() const;

  std::mt19937_64 generator;
  std::unique_ptr<TcpNetwork> sockets;
  std::vector<std::unique_ptr<Machine>> machines;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::deque<Fiber *> runnable;
  std::unordered_map<const void *, std::vector<Fiber *>> sleepers; // by what they sleep on
  std::vector<Event> events;                                       // a heap
  uint64_t numEvents = 0;
  Fiber *running = nullptr;
  Time time = kBegin;
  uint32_t numLiving = 0; // machines
};

} // namespace occl::simulation
