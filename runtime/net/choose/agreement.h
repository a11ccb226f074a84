// How the two ranks of a pair agree on a transport, over the TCP connection by which they have met:
// they tell each other what each offers, then try one transport after another, each step of which
// is told to the other side.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/shm/mapping.h"
#include "runtime/net/transport/attempt.h"
#include "runtime/sync/deadline.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace occl::net {

/// A transport that a rank may use.
struct OwnTransport {
  std::string name; // in OCCL_NET: "verbs"
  std::unique_ptr<TransportKind> kind;
};

// --- What ranks tell each other. Fixed layouts: they are sent as they are.

using Text = std::array<char, 256>;

/// First, of all transports that the rank may use, in its order.
struct Offer {
  static constexpr size_t kMost = 4;
  struct Entry {
    std::array<char, 16> name{};
    uint32_t works = 0, unused = 0;
    Text whyNot{};
    OfferBytes bytes{};
  };

  uint32_t count = 0, unused = 0;
  std::array<Entry, kMost> entries;
};

/// Of one step of an attempt, with what the next one needs.
struct Step {
  uint32_t succeeded = 0, unused = 0;
  AttemptBytes bytes{};
  Text whyNot{};
};

Offer offerOf(const std::vector<OwnTransport> &own);

/// Thread safety: none. No function waits, but for the peer's kernel to take what is said.
class Agreement {
public:
  /// `own` and `mine`, which is its offer, and `deadline` stay.
  Agreement(const RankPair &pair, bootstrap::Descriptor socket,
            const std::vector<OwnTransport> &own, const Offer &mine, const Deadline &deadline);

  /// Goes on as far as it can now; true: it is over. Whatever other pairs do, this is called again
  /// soon.
  bool advance();

  /// Why there is nothing, as far as it is known.
  Status failure() const;
  /// Once it is over: what both use, and how that is said; or why there is nothing.
  struct Result {
    std::unique_ptr<Endpoint> endpoint;
    std::string how;
  };
  StatusOr<Result> finish();

private:
  enum class State : uint8_t { HearOffer, Begin, HearMade, HearConnected, Try, HearTried, Over };

  bool goOn();
  template <class Record> void tell(const Record &record);
  template <class Record> bool hear(Record &record);
  bool hearStep(State next);
  void tellStep(const Status &status, State next, const AttemptBytes &bytes = {});
  void compareOffers();
  void compare(const Offer::Entry &first, const Offer &ofSecond);
  void begin();
  void tryOut();
  bool hasTold() const;
  void giveUp(const std::string &why);
  void addReason(const std::string &why) { reasons += (reasons.empty() ? "" : "; ") + why; }
  std::string nameOf(bool isOwn) const {
    return "rank " + std::to_string(isOwn ? pair.rank : pair.peer);
  }

  const RankPair pair;
  bootstrap::Descriptor socket;
  const std::vector<OwnTransport> &own;
  const Offer &mine;
  const Deadline &deadline;

  State state = State::HearOffer;
  std::vector<std::byte> heard; // of the record that is awaited
  Offer theirs;
  Step theirStep;
  Status ownStep;
  /// Of both, in the lower rank's order; the first is being tried.
  struct Candidate {
    const OwnTransport *transport;
    const OfferBytes *mine, *theirs;
  };
  std::vector<Candidate> candidates;
  std::unique_ptr<Attempt> attempt;
  std::optional<Deadline> trial;
  std::string reasons; // why those before it were not taken: equal on both sides
  Status lost;         // the socket
};

} // namespace occl::net
