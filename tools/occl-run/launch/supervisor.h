// Waits for the ranks of a job, wherever they are, and ends all when one has failed.
#pragma once

#include <chrono>
#include <csignal>
#include <poll.h>
#include <string>
#include <vector>

namespace occl::run {

/// How a rank, or something that several ranks depend on, has ended.
struct Ended {
  std::string text; // as "rank 2 (process 4711) ended with exit status 5"
  int result = 0;   // 0: well; else what the launcher's exit status may be
  bool wasKilled = false;
  bool endsAllAtOnce = false; // the others get no time to end by themselves
};

/// `waitStatus` as waitpid() has it; `who` as "rank 2 (process 4711)".
Ended endOf(const std::string &who, int waitStatus);

/// The ranks of a job, to be started and seen to their end. No function waits.
class Ranks {
public:
  virtual ~Ranks() = default;
  /// `inherited`: what the ranks' signal mask is. False, after a line on standard error: not all
  /// could be started.
  virtual bool start(const sigset_t &inherited) = 0;
  virtual bool anyRunning() const = 0;
  virtual void signalAll(int signal) = 0;
  /// Passes output on, and adds what has ended since the last time.
  virtual void collect(std::vector<Ended> &gone) = 0;
  /// Adds descriptors that turn readable or writable when there is something to collect.
  virtual void addPolled(std::vector<pollfd> &polled) = 0;
  /// The longest time between calls of collect(); negative: any.
  virtual std::chrono::milliseconds patience() const { return std::chrono::milliseconds(-1); }
  /// Once none is running: passes the rest of the output on.
  virtual void finish() = 0;
};

/// Starts the ranks and returns when all have ended: 0, or what an exit status should be. Says on
/// standard error which has failed first and by what; then, and after a signal that was passed on,
/// the others have `grace` to end by themselves. To be called from the main thread, without other
/// threads.
int supervise(Ranks &ranks, std::chrono::milliseconds grace);

} // namespace occl::run
