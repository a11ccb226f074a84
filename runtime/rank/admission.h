// Submission: everything that an invocation needs is reserved here, all or nothing, before any peer
// hears of it. What is admitted waits for no resource.
#pragma once

#include "runtime/invocation/announce_cells.h"
#include "runtime/invocation/shape_cache.h"
#include "runtime/invocation/workspace_pool.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/homes.h"
#include "runtime/observe/report/known_collective.h"
#include "runtime/sched/core.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/light_mutex.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace occl::daemon {

struct Submission {
  uint64_t id = 0; // of the sequence
  const void *input = nullptr;
  void *output = nullptr;
  Callback callback = {};
  const Signature *signature = nullptr; // not null
  const CallOptions *options = nullptr; // not null
  /// An element of the call's type, by which each of the input is multiplied before it is reduced;
  /// null: nothing. A rank's own business: no part of the signature.
  const void *factor = nullptr;
  /// Null: the buffers are there as a whole. They outlive the invocation.
  interpreter::Partitions *partitions = nullptr;
  /// Its block of the arena, if it needs one: no other will do. Null: any.
  transport::Home *home = nullptr;
  /// The caller runs it and takes the result from the invocation: there is neither request nor
  /// callback.
  bool isOwn = false;
  /// When it was submitted first, if that was refused for want of room.
  SteadyClock::time_point since{};
};

/// An invocation that has been admitted. Valid until it may be complete, if it is the caller's own
/// until its result has been taken.
struct Admitted {
  OpenInvocation *invocation = nullptr;
  RequestId request = 0;
  /// If the caller is to begin: it has claimed this task for this visit, and rings the readers when
  /// it has looked at it once. So may be an own one, and a small one with a callback.
  BlockTask *claimed = nullptr;
  scheduler::Visit visit;
};

/// Thread safety: any.
class Admission {
public:
  explicit Admission(Core &core);
  ~Admission();

  /// From now on calls of this signature can be submitted. InvalidArgument: larger than the arena
  /// of some rank; so all ranks are told alike. InvalidPlan: not for this communicator.
  Status learnShape(const Signature &signature, CollectiveSpec spec);
  /// As learnShape; and it stays until letGo(), which nothing of it is in flight after.
  StatusOr<Collective *> hold(const Signature &signature, CollectiveSpec spec);
  void letGo(Collective &shape);
  /// Bytes of the arena that an invocation takes on the rank where it takes most: the same on all
  /// ranks; and all that there are. For any thread, without the lock.
  static uint64_t roomOf(const Collective &shape);
  uint64_t allRoom() const { return arena.size(); }
  /// A block of the arena for one submission at a time, which begins once all others that are there
  /// have ended. Null: beside those that there are there is no room, which is the same on all ranks
  /// that make and give up alike.
  transport::Home *makeHome(uint64_t bytes);
  void giveUp(transport::Home &home);
  /// Of all homes.
  uint64_t homeRoom();
  /// Goes on with giving back what sequences hold that have not been called for long. Now and then,
  /// by anybody: other ranks may wait for it.
  void tidy();
  /// Sequences that may be active without having been called lately; all that are called and do not
  /// fit have to wait for cells. By default so many that all ranks' together are at most half of
  /// the cells there are, with up to 128 ranks. For tests.
  void setMostActive(size_t sequences);
  /// After submit() has returned Again. PeerFailed: it always will, since a rank is gone that would
  /// have to finish earlier invocations first. With `hasWaited` for long it is enough that some of
  /// what is missing is held so, whoever holds the rest.
  Status checkHolders(const Submission &submission, bool hasWaited);
  /// Again names who holds what is missing. InvalidArgument: buffers that do not suit the plan.
  /// InProgress: the shape of the call is not known, or not any more.
  StatusOr<Admitted> submit(const Submission &submission);
  /// In the place of submit(), for an own one that the lane is for (lane_run.h): it is submitted,
  /// and claimed by the caller, for a LaneRun. nullptr if not: then nobody can tell.
  OpenInvocation *enterLane(const Submission &submission);

  /// Name and plan of the sequence's invocation in flight, else of its last one; "id 7" and none if
  /// it is not known.
  insight::KnownCollective lookUp(uint64_t id);
  /// Ids of the sequences that are known, ascending.
  std::vector<uint64_t> sequences();
  /// Calls look(sequence) with the admission's lock held. False if the sequence is not known.
  template <class Look> bool inspect(uint64_t id, Look look) {
    std::lock_guard lock(mutex);
    auto found = ids.find(id);
    if (found == ids.end() || !found->second->plan)
      return false;
    look(static_cast<const IdState &>(*found->second));
    return true;
  }

private:
  struct Taken;

  IdState *find(uint64_t id);
  IdState &sequenceOf(uint64_t id);
  void makeRoom(IdState &id, uint32_t numBlocks);
  StatusOr<std::unique_ptr<Collective>> bindShape(CollectiveSpec spec);
  StatusOr<Collective *> add(const Signature &signature, std::unique_ptr<Collective> shape);
  Status makeReady(const Collective &shape);
  StatusOr<Admitted> submit(IdState &id, Collective &shape, const Submission &submission);
  StatusOr<Admitted> submitScaled(std::unique_lock<LightMutex> &lock, Collective &shape,
                                  const Submission &submission);
  static bool readsCopy(const Collective &shape, const Submission &submission);
  Status checkScaled(IdState &id, const Collective &shape, const Submission &submission) const;
  StatusOr<ScaledInput> takeScaled(IdState &id, const Collective &shape,
                                   const Submission &submission);
  void giveBack(ScaledInput &scaled);
  void giveBackIfFinished(OpenInvocation *invocation);
  const void *scaleForLane(OpenInvocation &last, const Submission &submission);
  static std::string describe(const IdState &id);
  static std::string describeNext(uint64_t sequence, const IdState *id);
  static std::string noRecord(const IdState &id);
  static void setOptions(OpenInvocation &invocation, const Submission &submission);
  OpenInvocation *earlierForLane(IdState &id, const Collective &shape,
                                 const Submission &submission);
  void keepLane(OpenInvocation &invocation) const;
  static transport::PrepostedRing sizesOf(uint64_t needed, uint64_t mostBytes, bool isOfCalls);
  void makeRing(IdState &id, const Collective &shape);
  static void forgetPeers(IdState &id);
  Status checkRing(IdState &id) const;
  StatusOr<OpenInvocation *> reserve(IdState &id, Collective &shape, const Submission &submission);
  Status reserveMemory(OpenInvocation &invocation, transport::Home *home);
  std::optional<uint64_t> takeBlock(uint64_t bytes, transport::Home *home);
  std::optional<uint64_t> takeLentBlock(uint64_t bytes);
  void giveBlock(const OpenInvocation &invocation, uint64_t bytes);
  bool hasBlock(uint64_t bytes, transport::Home *home);
  bool isInLentHome(const OpenInvocation &invocation) const;
  bool isIn(const transport::Home &home, const OpenInvocation &invocation) const;
  void announce(const OpenInvocation &invocation, uint32_t turn);
  void tellOtherMachines(const OpenInvocation &invocation, transport::Urgency urgency);
  Status checkBuffers(const Collective &collective, const Submission &submission) const;

  bool isShared(const void *buffer, uint64_t bytes) const;
  bool canReclaim(const OpenInvocation &invocation) const;
  bool reclaimAll();
  OpenInvocation *reclaimBefore(IdState &id, const Collective &shape, bool usesRing);
  void reclaimSome();
  void reclaim(OpenInvocation &invocation);
  void forget(OpenInvocation &invocation);
  OpenInvocation *takeInvocation();
  Status again(const std::string &what) const;
  static Status nothingFree(const std::string &what, const std::string &holders,
                            const std::string &remedy = "Wait for a completion");
  Status ensureCell(IdState &id);
  bool isIdle(const IdState &id) const;
  void retire(IdState &id);
  void retireSome(const IdState &id);
  void retireIdle(size_t most);
  void recycleCells(size_t most);
  void dropCell(IdState &id);
  void dropIfUnused(IdState &id);

  Core &core;
  LightMutex mutex; // guards all below
  std::unordered_map<uint64_t, std::unique_ptr<IdState>> ids;
  IdState *lastFound = nullptr; // of these
  ShapeCache shapes;
  AnnounceCells cells;
  size_t mostActive;
  transport::Arena arena;
  transport::Homes homes{arena};
  transport::Arena rings; // that are pre-posted, behind the arena's other blocks
  WorkspacePool workspaces;
  std::vector<std::unique_ptr<OpenInvocation>> invocations; // all that ever were
  std::vector<OpenInvocation *> idle;                       // of these, those not in use
  OpenInvocation *oldest = nullptr, *newest = nullptr;      // of these, those not reclaimed
  OpenInvocation *nextToSweep = nullptr;                    // of these
};

} // namespace occl::daemon
