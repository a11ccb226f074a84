// How the two ends of a connection prove to each other that they belong to one job: see
// docs/decisions/hosts/net.md. The initiator proves first.
#pragma once

#include "runtime/base/status.h"
#include "runtime/net/rendezvous/patience.h"
#include "runtime/net/rendezvous/socket.h"
#include "runtime/sync/deadline.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <utility>

namespace occl::net {

inline constexpr uint32_t kHashBytes = 32;
using Hash = std::array<std::byte, kHashBytes>;

/// HMAC-SHA256.
Hash authenticate(std::span<const std::byte> key, std::span<const std::byte> text);
/// In 64 digits, as secrets are text.
std::string hexadecimal(const Hash &hash);
/// A random one; SystemError if the system gives no random bytes.
StatusOr<Hash> drawHash();

/// What a connection is for.
enum class Purpose : uint32_t { Card = 1, Data = 2 };

/// Of a rank whose launcher starts ranks again after failures.
struct Run {
  uint16_t starts = 0;   // of the ranks of its machine, this one counted; 0: not known
  uint16_t meetings = 0; // of its process under this name before this one
};

/// Whether ranks are of different runs of a job. Machines count starts for themselves, so these
/// alone say nothing; but ranks of one run have met as often before.
inline bool areOfDifferentRuns(const Run &a, const Run &b) {
  return a.starts != 0 && b.starts != 0 && a.starts != b.starts && a.meetings != b.meetings;
}

/// What both ends must agree on.
struct Claim {
  Purpose purpose = Purpose::Card;
  uint32_t from = 0, to = 0; // ranks
  uint32_t numRanks = 0;
  uint64_t job = 0; // 0: not known
  Run run{};
};

/// The initiator's side, on a new connection. Mismatch with the responder's reason, or of the
/// protocol's versions; PeerFailed if the responder ends the connection, as it does with who does
/// not know the key. `isProving`: set once this side's proof is on its way.
Status introduce(const Descriptor &socket, const Hash &key, const Claim &claim,
                 const Patience &patience, bool *isProving = nullptr);

/// Connects, as connectTo() does, and introduces itself. A connection that ends before the
/// responder can have judged says nothing, so another one is made: who stalls for a second is
/// dropped. Errors are those of both.
StatusOr<Descriptor> connectAndIntroduce(std::span<const Address> addresses, const Hash &key,
                                         const Claim &claim, const Patience &patience,
                                         std::chrono::milliseconds mostRefused = kNoDeadline);

struct Accepted {
  Descriptor socket;
  uint32_t from = 0;
};

/// The responder's side: of those who connect to a listener, who proves himself. Others are dropped
/// after a second of a call of next(); more than 64 at a time wait in the system's queue.
class Reception {
public:
  /// Why a claim is not accepted; empty if it is.
  struct Refusal {
    Refusal(std::string why) : why(std::move(why)) {}
    Refusal(const char *why) : why(why) {}

    std::string why;
    /// It is of another job that has the same secret: only the one who came is told.
    bool isOfOtherJob = false;
  };
  using Judge = std::function<Refusal(const Claim &claim)>;

  Reception(const Descriptor &listener, const Hash &key);
  Reception(const Reception &) = delete;
  Reception &operator=(const Reception &) = delete;
  ~Reception();

  /// The next one whose claim is accepted. Timeout; SystemError, as of acceptNow(), if it could not
  /// be accepted by the deadline. Mismatch: the one who came knows the key, and `judge` refuses;
  /// both sides are told why. Or why nobody is waited for any more.
  StatusOr<Accepted> next(const Judge &judge, const Patience &patience);
  /// Of those who spoke OCCL's protocol and were dropped, to be added to an error; "" if none did.
  std::string turnedAway() const;

private:
  struct Guest;

  Status admit();
  void wait(const Patience &patience, bool admits);
  bool advance(Guest &guest);

  const Descriptor &listener;
  const Hash key;
  std::list<Guest> guests;
  uint32_t numWithoutKey = 0, numOfOtherJobs = 0, otherVersion = 0; // 0: none
};

} // namespace occl::net
