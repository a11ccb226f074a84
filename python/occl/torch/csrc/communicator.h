// A communicator of OCCL, closed when nobody is inside of a call with it, and errors as exceptions.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "library.h"

namespace occl_torch {

/// Milliseconds as OCCL takes them: 0 and less are its longest.
uint32_t timeoutOf(std::chrono::milliseconds timeout);
/// The same, which a time of a clock has room for.
inline std::chrono::milliseconds boundedOf(std::chrono::milliseconds timeout) {
  return std::chrono::milliseconds(timeoutOf(timeout));
}

/// Thread-safe. Calls of it never wait for other ranks, but for join(), shrink() and broadcast().
class Communicator {
public:
  /// Waits for all ranks. Throws c10::DistBackendError with OCCL's text.
  static std::shared_ptr<Communicator> join(int rank, int size, const std::string &name,
                                            const occlConfig_t &config);
  /// The same, for threads of Python's: a signal's exception ends the wait. What the other ranks
  /// make of it then is as if this one had left.
  static std::shared_ptr<Communicator> joinHearing(int rank, int size, const std::string &name,
                                                   const occlConfig_t &config);
  /// One of the ranks of `from` without `excluded`, which do not call, and without those that have
  /// died or do not call within its timeout. Waits for the others, else as joinHearing();
  /// an exception of a signal's aborts `from`.
  static std::shared_ptr<Communicator> shrinkHearing(const std::shared_ptr<Communicator> &from,
                                                     const std::vector<uint32_t> &excluded,
                                                     const occlConfig_t &config);
  ~Communicator();
  Communicator(const Communicator &) = delete;
  Communicator &operator=(const Communicator &) = delete;

  /// Inside of a call with the handle. False once the communicator is closed: then there is none.
  class Use {
  public:
    explicit Use(Communicator &comm);
    ~Use() { comm_.inside_.fetch_sub(1); }
    explicit operator bool() const { return open_; }
    occlComm_t handle() const { return comm_.handle_; }

  private:
    Communicator &comm_;
    bool open_;
  };

  /// As the communicator counts them. Throws DistBackendError if it is closed.
  int rank() { return number(occl().occlCommRank, "rank"); }
  int size() { return number(occl().occlCommSize, "size"); }
  /// Rank 0's text on all ranks: of less than 4 KiB, before any other call. Throws
  /// DistBackendError.
  void broadcast(std::string &text);

  /// Ends what is in flight on all ranks. `why` is what errors say from now on.
  void abort(const std::string &why);
  /// Ends the communicator: nothing is started any more. Waits a second at most for what is in
  /// flight; what has not ended then is waited for in the background.
  void close();
  /// Programs that end without destroying their groups: what ranks of other machines were sent may
  /// still be in this process, which closeAll() is for.
  static void closeAtExit(const std::shared_ptr<Communicator> &comm);
  /// Closes those that closeAtExit() was given, and are open.
  static void closeAll();
  /// Nothing is started any more, and nothing is given back: for what cannot be waited for.
  void leave();

  /// The text of an error: what was done, OCCL's name of the result, why the communicator failed.
  std::string describe(const std::string &what, occlResult_t result);
  /// The same as an exception, c10::DistBackendError.
  std::exception_ptr failure(const std::string &what, occlResult_t result);
  /// Whether it has failed, here or on another rank, as far as this one knows.
  bool failed() { return !whyFailed().empty(); }
  std::string whyFailed();
  /// Who waits for whom now, "" if nobody can tell.
  std::string report();
  /// Whether this process is a child made by fork(), where nothing of it may be touched: not even
  /// its mutexes, which may be locked for ever.
  bool forked() const;
  /// Why it cannot be used, "" if it can.
  std::string unusable() const;

private:
  Communicator() = default;
  static std::shared_ptr<Communicator>
  shrink(Communicator &from, const std::vector<uint32_t> &excluded, const occlConfig_t &config);
  int number(occlResult_t (*of)(occlComm_t, uint32_t *), const char *what);
  bool shut(const std::string &why);

  occlComm_t handle_ = nullptr;
  int owner_ = 0; // process
  std::atomic<int> inside_{0};
  std::atomic<bool> closed_{false};
  std::atomic<bool> interrupted_{false}; // a shrink goes on for nobody
  mutable std::mutex mutex_;
  std::string reason_; // of its end by this rank
};

} // namespace occl_torch
