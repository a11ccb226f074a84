// The two sides of the handshake by which a connection begins.
#include "runtime/net/rendezvous/handshake.h"

#include "runtime/sync/thread.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <openssl/crypto.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <vector>

namespace occl::net {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kMagic = 0x31'54'45'4e'4c'43'43'4full; // "OCCLNET1"
constexpr uint32_t kVersion = 7;
constexpr auto kPatience = 1s;
constexpr size_t kMostGuests = 64;
/// Of a proof that is looked at. Who has waited for longer may have been dropped before it came.
constexpr auto kAtOnce = 500ms;
constexpr uint32_t kMostDoubts = 3;

// Records of the handshake as they are on the wire.

struct Hello {
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t purpose = 0;
  uint32_t from = 0, to = 0, numRanks = 0;
  Run run{};
  uint64_t job = 0;
  Hash nonce{};
};

struct Transcript {
  Hello hello;
  Hash challenge{};
};

struct Answer {
  std::array<char, 224> refusal{}; // a text that ends with 0; empty: accepted
  Hash proof{};
};

/// In the place of a challenge, for who speaks another version. Stays as it is in all versions.
struct VersionNotice {
  uint64_t magic = 0x3f'53'52'45'56'43'43'4full; // "OCCVERS?"
  uint32_t version = kVersion;
  std::array<uint32_t, 5> unused{};
};

static_assert(sizeof(VersionNotice) == kHashBytes);
static_assert(sizeof(Hello) == 72 && sizeof(Transcript) == 104 && sizeof(Answer) == 256);

Hash initiatorsProof(const Hash &key, const Transcript &transcript) {
  std::vector<std::byte> text(1, std::byte{'I'});
  const auto bytes = std::as_bytes(std::span(&transcript, 1));
  text.insert(text.end(), bytes.begin(), bytes.end());
  return authenticate(key, text);
}

Hash respondersProof(const Hash &key, const Transcript &transcript, const Answer &answer) {
  std::vector<std::byte> text(1, std::byte{'R'});
  const auto bytes = std::as_bytes(std::span(&transcript, 1));
  const auto refusal = std::as_bytes(std::span(answer.refusal));
  text.insert(text.end(), bytes.begin(), bytes.end());
  text.insert(text.end(), refusal.begin(), refusal.end());
  return authenticate(key, text);
}

/// That of the responder; 0 if it is a challenge.
uint32_t otherVersionIn(const Hash &challenge) {
  // A notice has the length of a challenge, so the initiator reads either.
  VersionNotice notice;
  const uint64_t magic = notice.magic;
  std::memcpy(&notice, challenge.data(), sizeof notice);
  return notice.magic == magic ? notice.version : 0;
}

bool isSame(const Hash &a, const Hash &b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

} // namespace

StatusOr<Hash> drawHash() {
  Hash hash{};
  if (getrandom(hash.data(), hash.size(), 0) != static_cast<ssize_t>(hash.size()))
    return systemError("the system gives no random bytes", errno);
  return hash;
}

Status introduce(const Descriptor &socket, const Hash &key, const Claim &claim,
                 const Patience &patience, bool *isProving) {
  auto nonce = drawHash();
  if (!nonce.ok())
    return nonce.status();
  // The hello has a nonce, so that no earlier answer can be used again.
  Transcript transcript;
  Hello &hello = transcript.hello;
  hello.purpose = static_cast<uint32_t>(claim.purpose);
  hello.from = claim.from;
  hello.to = claim.to;
  hello.numRanks = claim.numRanks;
  hello.job = claim.job;
  hello.run = claim.run;
  hello.nonce = *nonce;
  Answer answer;
  // The responder sends a challenge, or its version if that is another one.
  Status status = sendRecord(socket, hello, patience);
  if (status.ok())
    status = receiveRecord(socket, transcript.challenge, patience);
  if (status.code() == StatusCode::PeerFailed && patience.look().ok())
    return {StatusCode::PeerFailed, peerOf(socket) + " has ended the connection before the " +
                                        "handshake (" + status.message() + ")"};
  if (const uint32_t other = otherVersionIn(transcript.challenge); status.ok() && other != 0)
    return {StatusCode::Mismatch, peerOf(socket) + " speaks version " + std::to_string(other) +
                                      " of OCCL's network protocol, this rank version " +
                                      std::to_string(kVersion) +
                                      "; is the same OCCL installed on all machines?"};
  // This side proves first, so a responder tells strangers nothing to guess the key by.
  if (isProving)
    *isProving = status.ok();
  if (status.ok())
    status = sendRecord(socket, initiatorsProof(key, transcript), patience);
  if (status.ok())
    status = receiveRecord(socket, answer, patience);
  // A responder drops an initiator that does not know the key without a word.
  if (status.code() == StatusCode::PeerFailed && patience.look().ok())
    return {StatusCode::PeerFailed,
            peerOf(socket) + " has ended the connection during the handshake; is the secret the "
                             "same on all ranks, and does it belong to this job?"};
  if (!status.ok())
    return status;
  // The proof covers the refusal, so only a rank of the job can refuse.
  if (!isSame(answer.proof, respondersProof(key, transcript, answer)))
    return {StatusCode::Mismatch,
            peerOf(socket) + " does not know the secret of this job; is OCCL_SECRET the same?"};
  // A peer's text may lack its end.
  answer.refusal.back() = 0;
  if (answer.refusal[0] != 0)
    return {StatusCode::Mismatch, answer.refusal.data()};
  return {};
}

StatusOr<Descriptor> connectAndIntroduce(std::span<const Address> addresses, const Hash &key,
                                         const Claim &claim, const Patience &patience,
                                         std::chrono::milliseconds mostRefused) {
  std::string before;
  for (uint32_t doubts = 0;; sleepFor(20ms)) {
    auto socket = connectTo(addresses, patience, mostRefused);
    if (!socket.ok())
      return Status(socket.status().code(), socket.status().message() + before);
    const auto begin = SteadyClock::now();
    bool isProving = false;
    const Status known = introduce(*socket, key, claim, patience, &isProving);
    if (known.ok())
      return socket;
    // Who has another key is dropped at once, and would be again.
    const bool isJudged =
        isProving && (SteadyClock::now() - begin < kAtOnce || ++doubts == kMostDoubts);
    if (known.code() != StatusCode::PeerFailed || isJudged || !patience.look().ok() ||
        patience.passed())
      return known;
    before = "; before that: " + known.message();
  }
}

/// Who has connected and has not proved himself.
struct Reception::Guest {
  Guest(Descriptor connected, const Deadline &until) : socket(std::move(connected)), until(until) {}

  Descriptor socket;
  Deadline until;
  Transcript transcript;
  Hash proof{};
  uint32_t received = 0; // of hello, then of the proof
  bool isChallenged = false, isProved = false;
};

Reception::Reception(const Descriptor &listener, const Hash &key) : listener(listener), key(key) {}

Reception::~Reception() = default;

Status Reception::admit() {
  while (guests.size() < kMostGuests) {
    auto socket = acceptNow(listener);
    if (!socket.ok())
      return socket.status();
    if (!socket->valid())
      break;
    guests.emplace_back(std::move(*socket), Deadline(kPatience));
  }
  return {};
}

/// For a guest to go on and, if more are admitted, for the next one.
void Reception::wait(const Patience &patience, bool admits) {
  std::vector<pollfd> polled;
  // At most kMostGuests are looked after; the rest stays in the system's queue.
  if (admits && guests.size() < kMostGuests)
    polled.push_back({listener.get(), POLLIN, 0});
  for (const Guest &guest : guests)
    polled.push_back({guest.socket.get(), POLLIN, 0});
  constexpr int kMost = 100; // for deadlines of guests
  poll(polled.data(), polled.size(), std::min(patience.milliseconds(patience.end()), kMost));
}

/// False: this one is to be dropped. isProved: no, it is to be answered.
bool Reception::advance(Guest &guest) {
  // A guest sends its hello, and after the challenge its proof.
  const auto into = guest.isChallenged
                        ? std::as_writable_bytes(std::span(&guest.proof, 1))
                        : std::as_writable_bytes(std::span(&guest.transcript.hello, 1));
  const auto rest = into.subspan(guest.received);
  const ssize_t got = recv(guest.socket.get(), rest.data(), rest.size(), 0);
  // Nothing more has come: that is fine until the guest's time is over.
  if (got <= 0)
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) &&
           !guest.until.passed();
  guest.received += static_cast<uint32_t>(got);
  if (guest.received != into.size())
    return true;
  guest.received = 0;
  // The proof is whole, and decides.
  if (guest.isChallenged) {
    guest.isProved = isSame(guest.proof, initiatorsProof(key, guest.transcript));
    numWithoutKey += guest.isProved ? 0 : 1;
    return guest.isProved;
  }
  // The hello is whole: challenge it, or say which version this side has.
  const Hello &hello = guest.transcript.hello;
  auto challenge = drawHash();
  if (hello.magic != kMagic || !challenge.ok())
    return false;
  if (hello.version != kVersion) {
    otherVersion = hello.version;
    [[maybe_unused]] const Status sent = sendRecord(guest.socket, VersionNotice(), guest.until);
    return false;
  }
  guest.transcript.challenge = *challenge;
  guest.isChallenged = true;
  return sendRecord(guest.socket, *challenge, guest.until).ok();
}

std::string Reception::turnedAway() const {
  std::string text;
  if (numWithoutKey != 0)
    text += "; turned away: " + std::to_string(numWithoutKey) +
            " that did not know the secret of this job, is OCCL_SECRET the same on all ranks?";
  if (numOfOtherJobs != 0)
    text += "; turned away: " + std::to_string(numOfOtherJobs) +
            " of another job, is OCCL_JOB, or what the launcher says, the same on all ranks?";
  if (otherVersion != 0)
    text += "; turned away: one with version " + std::to_string(otherVersion) +
            " of OCCL's network protocol, this rank has version " + std::to_string(kVersion);
  return text;
}

StatusOr<Accepted> Reception::next(const Judge &judge, const Patience &patience) {
  // Nobody was answered since the last call, so the time until now does not count.
  for (Guest &guest : guests)
    guest.until = Deadline(kPatience);
  for (;;) {
    // Admit new guests, and let each go on as far as it can. Without descriptors for more, those
    // that are there may go, or something else of the process.
    const Status admitted = admit();
    for (auto guest = guests.begin(); guest != guests.end();) {
      const bool stays = advance(*guest);
      // The guest has not proved itself yet, or has to go.
      if (!guest->isProved) {
        guest = stays ? std::next(guest) : guests.erase(guest);
        continue;
      }
      // It knows the key, so it gets an answer that it can verify, a refusal as well.
      const Hello &hello = guest->transcript.hello;
      const Refusal refusal = judge({static_cast<Purpose>(hello.purpose), hello.from, hello.to,
                                     hello.numRanks, hello.job, hello.run});
      Answer answer;
      refusal.why.copy(answer.refusal.data(), answer.refusal.size() - 1);
      answer.proof = respondersProof(key, guest->transcript, answer);
      Accepted accepted{std::move(guest->socket), hello.from};
      guests.erase(guest);
      Status sent = sendRecord(accepted.socket, answer, Deadline(kPatience));
      numOfOtherJobs += refusal.isOfOtherJob ? 1 : 0;
      if (!refusal.why.empty() && !refusal.isOfOtherJob)
        return Status(StatusCode::Mismatch, refusal.why);
      if (refusal.why.empty() && sent.ok())
        return accepted;
      break; // the iterator is gone
    }
    if (const Status &gone = patience.look(); !gone.ok())
      return gone;
    if (patience.passed() && !admitted.ok())
      return admitted;
    if (patience.passed())
      return Status(StatusCode::Timeout, "not all ranks have connected in time" + turnedAway());
    wait(patience, admitted.ok());
  }
}

} // namespace occl::net
