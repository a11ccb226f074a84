// The calls of a rank that are executed in lanes: it makes them, follows the order of those that
// all ranks have made, and keeps those that wait. Knows nothing of CUDA, nor of what executes
// calls. See docs/decisions/gpu/lanes.md.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/lanes/lane_table.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace occl::cuda {

/// One call, as far as lanes are concerned; whoever makes it derives what else there is to it.
struct LaneCall {
  virtual ~LaneCall() = default;

  uint64_t id = 0;
  uint32_t kernel = 0;
  LaneSignature signature;
  /// It takes room in the window though other ranks have not made the call, and holds up others
  /// there until they have: of calls in the order of streams.
  bool entersEarly = false;

private:
  friend class LaneCalls;
  std::optional<CallName> made; // others count on it
  bool isExecuted = false;
};

/// What executes calls.
class LaneEngine {
public:
  virtual ~LaneEngine() = default;

  /// What executing the call in that lane needs is made, before others count on the call. False:
  /// something is lacking just now. An error: the call cannot be executed.
  virtual StatusOr<bool> prepare(LaneCall &call, LaneName lane) = 0;
  /// The call is the next one in that lane; the request, and begin() is to follow. Nothing: there
  /// is no room now. An error makes the communicator fail, unless the call enters early. Right
  /// after prepare() this waits for nobody.
  virtual StatusOr<std::optional<uint64_t>> execute(LaneCall &call, LaneName lane,
                                                    uint64_t number) = 0;
  /// What was executed of the kernel begins, if nobody is there.
  virtual void begin(uint32_t kernel) = 0;
  virtual bool isComplete(uint32_t kernel, uint64_t request) const = 0;
};

/// Thread safety: one thread at a time.
class LaneCalls {
public:
  LaneCalls(LaneTable &table, LaneEngine &engine) : table(table), engine(engine) {}

  using Calls = std::vector<std::unique_ptr<LaneCall>>;

  /// Makes the call and executes it: true. False: it has to wait. Then it goes into the queue; one
  /// that enters early may be forgotten instead. An error: it was not made, unless isMade(): then
  /// the communicator fails. Others that wait may be executed, too: see advance().
  StatusOr<bool> tryNow(LaneCall &call, Calls &executed);
  /// Others count on it.
  bool isMade(const LaneCall &call) const { return call.made.has_value(); }
  /// A number of the call for reports, the same on all ranks; once it is made.
  std::optional<uint64_t> numberOf(const LaneCall &call) const {
    return call.made ? std::optional(call.made->call) : std::nullopt;
  }
  /// Behind those of its id that wait.
  void enqueue(std::unique_ptr<LaneCall> call);

  /// Makes and executes what can be of what waits, and appends what is executed to `executed`, in
  /// order. An error is that of a call that cannot be executed.
  Status advance(Calls &executed);
  /// All that wait, in order: nobody waits any more.
  Calls takeAll();

  size_t numWaiting() const { return waiting.size(); }
  /// Ids of which calls wait that are not made.
  size_t numUnmade() const { return unmade.size(); }
  /// In the order in which they came.
  const std::list<std::unique_ptr<LaneCall>> &queue() const { return waiting; }
  /// A rank that the call waits for and that `isGone` says will never make it, if any.
  std::optional<uint32_t> lostPeerOf(const LaneCall &call,
                                     const std::function<bool(uint32_t rank)> &isGone) const;
  /// The same of one that enters early and was refused: it would be refused for ever.
  std::optional<uint32_t> refusedForLost(const LaneCall &call,
                                         const std::function<bool(uint32_t rank)> &isGone) const;
  /// Ranks that have not made a call that this one has made, as bits.
  uint32_t missingFor(const LaneCall &call) const {
    return call.made ? table.missing(*call.made) : 0;
  }
  /// The id's calls are complete, and none waits: what is known of it goes. False: they are not.
  bool forget(uint64_t id);

private:
  using Waiting = std::list<std::unique_ptr<LaneCall>>;

  struct Sequence {
    std::optional<LaneName> usual[kLaneKernels]; // where its calls are likely to be executed
    std::optional<LaneName> last;                // of the call that was executed last
    uint64_t lastRequest = 0;                    // there
    std::deque<Waiting::iterator> waiting;
    size_t numMade = 0;               // of these
    std::optional<uint32_t> record;   // of its calls
    uint64_t numExecuted = 0;         // of the record's calls, this id's or others' before
    bool isUnsaid = false;            // in `unsaid`
    bool hasLarge[kLaneKernels] = {}; // a call for large lanes was made
  };

  bool isComplete(const Sequence &sequence) const;
  void noteRecord(LaneCall &call, CallName name, Sequence &sequence);
  bool sayDone(Sequence &sequence);
  void sayAllDone();
  StatusOr<bool> make(LaneCall &call, Sequence &sequence);
  StatusOr<bool> tryEarly(LaneCall &call, Sequence &sequence, Calls &executed);
  void noteExecuted(LaneCall &call, Sequence &sequence);
  StatusOr<bool> execute(LaneCall &call, Sequence &sequence, LaneName name, uint64_t number);
  Status follow(LaneCall *current, Calls &executed);
  Status makeWaiting();

  LaneTable &table;
  LaneEngine &engine;
  std::unordered_map<uint64_t, Sequence> sequences;
  std::vector<Sequence *> byRecord = std::vector<Sequence *>(kMostIds); // whose calls are in it
  Waiting waiting;
  std::unordered_set<uint64_t> unmade; // ids of which calls wait that are not made
  std::vector<Sequence *> unsaid;      // others do not know how much of it is complete
};

} // namespace occl::cuda
