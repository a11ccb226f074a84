// How the ranks of an id decide together who executes their communicator. No sockets, no clock.
#pragma once

#include "nccl/bootstrap/messages.h"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace occl::nccl {

/// At the root. If all ranks are on its machine and none has a wish for the other library, OCCL
/// joins them, and they may come whenever they like. As soon as one is elsewhere, or has such a
/// wish, all of them open the other library, all of one version. If they cannot, OCCL joins ranks
/// of several machines, too; of those with a wish all get the same error; and if one fails, or has
/// not come at the deadline, all fail.
class Meeting {
public:
  using Clock = std::chrono::steady_clock;
  using Send = std::function<void(uint32_t rank, const FromRoot &message)>;

  /// Of a root that is that process on that machine.
  Meeting(const MachineId &machine, int32_t process, std::chrono::milliseconds patience)
      : machine(machine), process(process), patience(patience) {}

  /// False if it is of no member, or of a rank that has come already, which is an error of all: to
  /// be answered with refusal(), and no more.
  bool receive(const FromRank &message, Clock::time_point now, const Send &send);
  FromRoot refusal() const;
  /// Its connection has ended.
  void leave(uint32_t rank, const Send &send);
  /// There is none as long as ranks may come whenever they like.
  std::optional<Clock::time_point> deadline() const;
  void expire(Clock::time_point now, const Send &send);
  /// All ranks know how it has ended.
  bool isOver() const { return numRanks > 0 && numAnswered >= numRanks; }

private:
  enum class Phase { Gathering, Preparing, Initializing, Listening, Agreed, Failed };
  struct Member {
    FromRank hello{};
    bool isPrepared = false, isDone = false, isAnswered = false;
    int version = 0;
  };

  bool arrive(const FromRank &hello, Clock::time_point now, const Send &send);
  void prepare(const std::string &why, Clock::time_point now, const Send &send);
  void onPrepared(Member &member, const FromRank &message, Clock::time_point now, const Send &send);
  void onDone(Member &member, const FromRank &message, const Send &send);
  void goAcross(Clock::time_point now, const Send &send);
  void onListening(Member &member, const FromRank &message, const Send &send);
  void finish(const FromRoot &message, const Send &send);
  void fail(ncclResult_t result, const std::string &text, const Send &send);
  std::string missing() const;

  const MachineId machine;
  const int32_t process;
  const std::chrono::milliseconds patience;
  Phase phase = Phase::Gathering;
  uint32_t numRanks = 0, numAnswered = 0;
  std::map<uint32_t, Member> members;
  std::string why;           // the other library is used
  bool isWished = false;     // by some rank: OCCL does not do
  std::string cannotBeOther; // why the other library does not do; empty: it may
  ncclUniqueId id{};
  Clock::time_point end;
  FromRoot failure{};
};

} // namespace occl::nccl
