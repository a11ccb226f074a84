// A rank's connections to ranks of other islands, and its mirrors of their segments, which it keeps
// up to date: docs/decisions/hosts/net.md. Executors see memory only.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/records/segment.h"
#include "runtime/control/shm/shared_bell.h"
#include "runtime/net/crossing.h"
#include "runtime/net/device_words.h"
#include "runtime/net/message.h"
#include "runtime/net/ring_crossing.h"
#include "runtime/net/slices.h"
#include "runtime/net/transport/transport.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/deadline.h"
#include "runtime/sync/doorbell.h"
#include "runtime/sync/mutex.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace occl::net {

/// An invocation that this rank has submitted: its record is published in the own segment.
struct Call {
  uint64_t id = 0, ordinal = 0;
  transport::CollectiveTraits traits;
  transport::Urgency urgency;
  uint64_t arenaOffset = 0;                      // of its block
  const transport::AnnounceCell *cell = nullptr; // its own; stays
  std::shared_ptr<const Crossing> crossing;
};

/// A rank of another island.
struct Remote {
  uint32_t rank = 0;
  std::unique_ptr<Endpoint> endpoint;
  transport::Segment mirror; // formatted like the peer's segment
  std::string address;       // for errors
};
/// And those of ring_crossing.h.
inline constexpr uint32_t kMirrorRegion = 0, kHeadsRegion = 1, kHeapRegion = 4;
/// What rank `peer` may write to: of its mirror, and of the own segment, which begins at `own`, has
/// the same layout, and may not be formatted yet. isOnDevice: to the heap, too, where messages of
/// ranks on devices lie.
Regions regionsFor(const transport::Segment &mirror, std::byte *own, uint32_t peer,
                   bool isOnDevice = false);

/// How a network reaches the communicator that it serves. Called by its threads.
struct Owner {
  std::function<Status()> failure;
  std::function<void(const Status &)> fail;
};

/// Thread safety: any, but send() is one thread's and receive() is one's.
class Network {
public:
  /// `ownBell`: on which executors of this rank sleep.
  Network(std::vector<Remote> remotes, uint32_t numRanks, Doorbell &ownBell);
  ~Network();
  Network(const Network &) = delete;
  Network &operator=(const Network &) = delete;

  /// Once the own segment is formatted; before the first meeting is over.
  void attach(const transport::Segment &own, Owner owner);
  /// Starts the two threads, which use `bell`: executors of this rank ring it for remote ranks, and
  /// the sending thread sleeps on it. Without that the caller does what they do, as tests may.
  /// SystemError: then none of them runs.
  Status start(std::shared_ptr<bootstrap::SharedBell> bell);
  /// What has been taken is sent, and acknowledged by the peers' machines, within `kFarewell`; then
  /// nothing of `owner` is called any more. Any number of times.
  void stop();
  static constexpr std::chrono::seconds kFarewell{2};
  /// What is told if an own invocation and a peer's do not agree. Before the first open().
  using OnMismatch = std::function<void(const Call &mine, uint32_t peer,
                                        const transport::CollectiveTraits &theirs)>;
  void setOnMismatch(OnMismatch hook) { onMismatch = std::move(hook); }

  /// The invocation's words are watched from now on until all ranks have finished it.
  void open(Call call);
  /// What is moved for kernels of this rank, from now on; null: nothing, and the last one is not
  /// called any more once this returns.
  void setDeviceWords(DeviceWords *words);
  /// Called by the sending thread now and then, from now on, and when a ShrinkRecord has come; it
  /// says for how long it need not be. Null: not any more, once this returns.
  void setVoter(std::function<std::chrono::nanoseconds()> voter);
  /// The sending thread looks at once.
  void wakeSender();
  /// Timeout names a rank that has not entered as often; PeerFailed one that is gone; SystemError:
  /// there was no memory for what has come.
  Status barrier(const Deadline &deadline);

  bool isRemote(uint32_t rank) const { return indexOf[rank] >= 0; }
  bool isUp(uint32_t rank) const;
  /// Why not, once it is not.
  std::string describeDown(uint32_t rank) const;

  // The sending thread.
  /// Sends what has changed and fits. True: all of it.
  bool send();
  /// All that was sent has reached the peers' machines, or never will.
  bool isDelivered() const;
  /// Whether something may change without anybody ringing.
  bool hasOpen();
  /// How long nobody need look, if nobody rings meanwhile.
  std::chrono::nanoseconds pause();

  // The receiving thread.
  /// Handles some of what the index-th peer has sent: true if there may be more. Then wakes
  /// executors.
  bool receive(size_t index);

private:
  struct Threads;

  /// Of a peer: what does this rank wait for?
  struct Question {
    uint64_t number = 0;
    uint32_t ownNumber = 0; // what the watchdog answers: see SharedWords::askForReport()
    Deadline until;         // answered all the same
  };
  struct Peer final : Sink {
    Peer(Network &network, Remote given);
    bool message(std::span<const std::byte> bytes) override;

    Network &network;
    Remote remote;
    transport::AnnounceOwner owner; // of the mirror's table
    std::unordered_map<uint64_t, transport::AnnounceCell *> cells;
    std::optional<RingCrossing> rings; // once the own segment is there
    uint32_t barriersSent = 0, barriersEntered = 0;
    bool failureIsSent = false, leftIsSent = false;
    uint32_t asksSent = 0;                   // how often the peer was asked
    std::array<uint64_t, 3> divisionsSent{}; // the counters of the own SplitRecord
    uint64_t shrinkSent = 0;                 // the version of the own ShrinkRecord
    std::optional<Question> question;
    Atomic<bool> isFull{false};
    bool wasDown = false; // the receiving thread's
  };
  struct OfPeer {
    bool isPublished = false; // to it
    bool finishedIsSent = false;
    bool hasFinished = false; // and told
  };
  struct OpenCall {
    Call call;
    std::vector<OfPeer> peers; // by index
    std::vector<FlowProgress> sent, received;
  };

  bool isAnythingOpen() const;
  bool sendTo(size_t index);
  bool sendCall(size_t index, OpenCall &open);
  bool sendSlices(Peer &peer, const OpenCall &open, size_t flow, FlowProgress &progress);
  bool sendHeads(Peer &peer, OpenCall &open);
  bool sendHead(Peer &peer, uint64_t offset, FlowProgress &progress);
  bool sendRings(Peer &peer);
  bool sendDivision(Peer &peer);
  bool sendShrink(Peer &peer);
  void vote();
  bool sendReports(Peer &peer);
  bool sendWaits(Peer &peer, uint64_t number);
  bool sendMessage(Peer &peer, const Message &message, std::string_view text = {});
  void dropFinished();

  bool published(Peer &peer, const Message &message);
  bool finished(Peer &peer, const Message &message);
  static void divided(Peer &peer, std::string_view text);
  void shrunk(Peer &peer, std::string_view text);
  void asked(Peer &peer, const Message &message);
  bool answered(Peer &peer, const MessageWithText &answer);
  void compare(const OpenCall &mine, const Peer &peer, const transport::CollectiveTraits &theirs);
  void reportMismatch();
  void runSender();
  void runReceiver();
  bool awaitFrames();
  void handleFrames();
  template <class Round> void attempt(Round round);
  void failForMemory();
  bool mustPoll() const;
  void farewell();
  transport::AnnounceCell *cellOf(Peer &peer, uint64_t id);

  std::deque<Peer> peers;
  std::vector<int32_t> indexOf; // by rank; -1: not remote
  Doorbell &ownBell;
  std::shared_ptr<Threads> threads; // null: not started, or stopped
  Atomic<bool> lacksMemory{false};  // one of them has found none
  OnMismatch onMismatch;

  /// All below.
  mutable Mutex mutex;
  ConditionVariable changed; // a barrier was entered, or a peer is down
  std::optional<transport::Segment> own;
  Owner owner;
  uint32_t barriers = 0;                        // that this rank has entered
  std::vector<std::unique_ptr<OpenCall>> calls; // in the order of submission
  DeviceWords *deviceWords = nullptr;
  Atomic<bool> hasDeviceWords{false};
  std::function<std::chrono::nanoseconds()> voter;
  SteadyClock::time_point nextVote;
  struct Disagreement {
    Call mine;
    uint32_t peer;
    transport::CollectiveTraits theirs;
  };
  std::optional<Disagreement> disagreement; // that was not told yet
  Atomic<bool> mayDisagree{false};          // there is one, or was: not under the lock
};

} // namespace occl::net
