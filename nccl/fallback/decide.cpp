#include "nccl/fallback/decide.h"

#include "nccl/base/environment.h"
#include "nccl/base/per_process.h"
#include "nccl/fallback/other_comm.h"
#include "nccl/fallback/setting.h"
#include "nccl/streams/streams.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unistd.h>
#include <utility>

namespace occl::nccl {

namespace {

/// Opens the other library, and as the first rank makes an id there.
Outcome prepare(const NewComm &what, FromRank &prepared) {
  const OtherNccl *nccl = nullptr;
  // A library that cannot be opened is an answer, too: the root then decides without it.
  if (Outcome outcome = openOther(nccl); !outcome.ok())
    return outcome;
  prepared.version = nccl->version;
  // NCCL initialises the device that is current.
  if (Outcome outcome = streams().makeCurrent(what.comm->device); !outcome.ok())
    return outcome;
  return what.rank == 0 ? nccl->outcomeOf(nccl->ncclGetUniqueId(&prepared.id)) : Outcome();
}

struct Account {
  std::mutex mutex;
  bool isBegun = false;
  uint64_t numOwn = 0;
  std::vector<std::string> others;
  std::map<std::string, std::pair<uint64_t, std::string>> refused;

  void write() {
    std::lock_guard lock(mutex);
    if (!isBegun) // of a child that was forked
      return;
    std::string text = "OCCL (libnccl), process " + std::to_string(getpid()) + ": " +
                       std::to_string(numOwn) + " communicators of OCCL's, " +
                       std::to_string(others.size()) + " of another NCCL";
    // What the library is, only if it was opened: opening it for the report would load it into
    // programs that never needed it.
    if (const OtherNccl *nccl = otherIfOpen())
      text += ", " + nccl->title();
    text += "\n";
    for (const std::string &line : others)
      text += "  " + line + "\n";
    for (const auto &[what, times] : refused)
      text += "  refused: " + what + ", " + std::to_string(times.first) +
              " times: " + times.second + "\n";
    std::fputs(text.c_str(), stderr);
  }

  /// Under the lock.
  void begin() {
    if (std::exchange(isBegun, true))
      return;
    static std::atomic<bool> isListed = false; // a forked child inherits what is done at the exit
    FallbackSetting fallback;
    if (readFallbackSetting(fallback).ok() && fallback.isListed && !isListed.exchange(true))
      std::atexit(writeAtExit);
  }
  static void writeAtExit();
};

constinit PerProcess<Account> account;

void Account::writeAtExit() { account.get().write(); }

std::atomic<bool> inUse = false;

} // namespace

namespace {

/// `made` is null without an error if it is to be OCCL's.
Outcome decideAndMake(const NewComm &what, std::string &why, std::shared_ptr<OtherComm> &made,
                      std::optional<Across> &across) {
  auto isAborted = [&] { return what.comm->isAborted(); };
  // The decision of all ranks: OCCL's own, OCCL over the network, or another NCCL.
  Attendance attendance(what.id, what.numRanks, what.rank, what.wish, what.mayBeEarly, isAborted);
  Attendance::Decision decision;
  Outcome outcome =
      attendance.decide([&](FromRank &prepared) { return prepare(what, prepared); }, decision);
  across = std::move(decision.across);
  if (!outcome.ok() || !decision.isOther)
    return outcome;
  why = decision.why;
  const OtherNccl *nccl = nullptr;
  outcome = openOther(nccl);
  // While NCCL's bootstrap waits, another rank may have failed to open its library; the root tells,
  // and this rank need not wait for NCCL's time-out.
  auto failure = [&]() -> Outcome {
    return isAborted() ? invalidUsage("the communicator was aborted") : attendance.othersFailure();
  };
  if (outcome.ok())
    outcome =
        OtherComm::make(*nccl, what.comm->config,
                        {what.numRanks, what.rank, what.comm->device, decision.id}, failure, made);
  // Told to the root also if it failed: no rank may use a communicator that another one has not
  // got.
  outcome = attendance.finish(outcome);
  if (!outcome.ok() && made) // another rank has none
    made->abort();
  return outcome;
}

} // namespace

Outcome makeOther(const NewComm &what, std::shared_ptr<OtherComm> &made,
                  std::optional<Across> &across) {
  std::string why;
  const Outcome outcome = decideAndMake(what, why, made, across);
  const std::string self =
      "rank " + std::to_string(what.rank) + " of " + std::to_string(what.numRanks);
  if (!outcome.ok()) {
    made = nullptr;
    noteRefused(self, outcome.text);
  } else if (made) {
    noteUse(what.numRanks, what.rank, what.comm->device, why);
    log(LogLevel::Info, self + " goes to " + made->nccl.title() + ": " + why);
  }
  return outcome;
}

void noteUse(uint32_t numRanks, uint32_t rank, int device, const std::string &why) {
  Account &to = account.get();
  std::lock_guard lock(to.mutex);
  // An empty reason is OCCL's own communicator.
  to.begin();
  if (why.empty()) {
    ++to.numOwn;
    return;
  }
  inUse = true;
  to.others.push_back("rank " + std::to_string(rank) + " of " + std::to_string(numRanks) +
                      ", device " + std::to_string(device) + ": " + why);
}

void noteRefused(const std::string &what, const std::string &why) {
  Account &to = account.get();
  std::lock_guard lock(to.mutex);
  to.begin();
  // Programs may try again and again: one entry with a number, and the latest reason.
  auto &noted = to.refused[what];
  ++noted.first;
  noted.second = why;
}

bool usesOtherMemory() {
  FallbackSetting fallback;
  const OtherNccl *nccl = nullptr;
  return inUse || (readFallbackSetting(fallback).ok() && fallback.isAll && openOther(nccl).ok());
}

} // namespace occl::nccl
