// The dialogue of two ranks that try transports one after another.
#include "runtime/net/choose/agreement.h"

#include "runtime/net/rendezvous/socket.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sys/socket.h>
#include <utility>

namespace occl::net {
namespace {

/// A network that loses everything must not keep the caller waiting.
constexpr std::chrono::milliseconds kLongestTrial{5000};
/// Of what can be done without.
constexpr std::chrono::milliseconds kLongestForMore{2000};

template <size_t Size> std::array<char, Size> textOf(std::string_view from) {
  std::array<char, Size> text{};
  from.copy(text.data(), text.size() - 1);
  return text;
}

template <size_t Size> std::string stringOf(const std::array<char, Size> &text) {
  return {text.data(), strnlen(text.data(), text.size())};
}

const Offer::Entry *find(const Offer &offer, const std::string &name) {
  for (uint32_t i = 0; i < std::min<size_t>(offer.count, Offer::kMost); ++i)
    if (stringOf(offer.entries[i].name) == name)
      return &offer.entries[i];
  return nullptr;
}

} // namespace

Offer offerOf(const std::vector<OwnTransport> &own) {
  Offer offer;
  for (const OwnTransport &transport : own) {
    Offer::Entry &entry = offer.entries[offer.count++];
    entry.name = textOf<16>(transport.name);
    const auto offered = transport.kind->offer();
    entry.works = offered.ok();
    if (offered.ok())
      entry.bytes = *offered;
    else
      entry.whyNot = textOf<256>(offered.status().message());
  }
  return offer;
}

Agreement::Agreement(const RankPair &pair, bootstrap::Descriptor given,
                     const std::vector<OwnTransport> &own, const Offer &mine,
                     const Deadline &deadline)
    : pair(pair), socket(std::move(given)), own(own), mine(mine), deadline(deadline) {
  tell(mine);
}

bool Agreement::advance() {
  while (state != State::Over && lost.ok() && goOn()) {
  }
  return state == State::Over || !lost.ok();
}

/// One step; false: the peer, or the transport, has to do something first.
bool Agreement::goOn() {
  switch (state) {
  case State::HearOffer:
    if (!hear(theirs))
      return false;
    // Both ranks compare the same two offers, so they get the same candidates.
    compareOffers();
    return true;
  case State::Begin:
    begin();
    return true;
  case State::HearMade:
    if (!hearStep(State::HearConnected))
      return false;
    // The peer has made its half, too, so its address is good.
    if (state == State::HearConnected)
      tellStep(attempt->connect(theirStep.bytes), State::HearConnected);
    return true;
  case State::HearConnected:
    return hearStep(State::Try);
  case State::Try:
    tryOut();
    return state != State::Try;
  case State::HearTried:
    // A plugin may have to be called before the peer gets what it waits for.
    if (ownStep.ok())
      attempt->driveOn();
    if (!hearStep(State::Over))
      return false;
    // The peer knows what has worked here, and this rank what has worked there.
    if (state == State::Over)
      attempt->settle(theirStep.bytes);
    return true;
  case State::Over:
    break;
  }
  return false;
}

// --- What is said.

template <class Record> void Agreement::tell(const Record &record) {
  if (lost.ok())
    lost = sendRecord(socket, record, deadline);
}

/// False: it is not all there.
template <class Record> bool Agreement::hear(Record &record) {
  // The part of the record that has come stays in `heard` until the rest is there.
  const size_t before = heard.size();
  heard.resize(sizeof record);
  const ssize_t got =
      recv(socket.get(), heard.data() + before, heard.size() - before, MSG_DONTWAIT);
  heard.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  // An error ends the dialogue by advance().
  if (got == 0)
    lost = {StatusCode::PeerFailed, "the connection has ended"};
  else if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
    lost = {StatusCode::PeerFailed, std::strerror(errno)};
  else if (heard.size() < sizeof record && deadline.passed())
    lost = {StatusCode::Timeout, "it says nothing"};
  if (!lost.ok() || heard.size() < sizeof record)
    return false;
  std::memcpy(&record, heard.data(), sizeof record);
  heard.clear();
  return true;
}

void Agreement::tellStep(const Status &status, State next, const AttemptBytes &bytes) {
  ownStep = status;
  Step step;
  step.succeeded = status.ok();
  step.bytes = bytes;
  step.whyNot = textOf<256>(status.message());
  tell(step);
  state = next;
}

bool Agreement::hearStep(State next) {
  if (!hear(theirStep))
    return false;
  state = next;
  // The lower rank's reason, if both have one: they say the same.
  const bool ownFirst = pair.isFirst() ? !ownStep.ok() : theirStep.succeeded != 0;
  if (!ownStep.ok() && ownFirst)
    giveUp(nameOf(true) + ": " + std::string(textOf<256>(ownStep.message()).data()));
  else if (!theirStep.succeeded)
    giveUp(nameOf(false) + ": " + stringOf(theirStep.whyNot));
  return true;
}

// --- What is tried.

void Agreement::compareOffers() {
  theirs.count = std::min<uint32_t>(theirs.count, Offer::kMost);
  const Offer &first = pair.isFirst() ? mine : theirs, &second = pair.isFirst() ? theirs : mine;
  // The lower rank's order counts, so that both ranks try the same transports.
  for (uint32_t i = 0; i < first.count; ++i)
    compare(first.entries[i], second);
  for (uint32_t i = 0; i < second.count; ++i)
    if (const std::string name = stringOf(second.entries[i].name); !find(first, name))
      addReason(name + ": OCCL_NET of " + nameOf(pair.isFirst()) + " does not allow it");
  state = State::Begin;
}

void Agreement::compare(const Offer::Entry &first, const Offer &ofSecond) {
  const std::string name = stringOf(first.name);
  const Offer::Entry *second = find(ofSecond, name);
  if (!second)
    return addReason(name + ": OCCL_NET of " + nameOf(!pair.isFirst()) + " does not allow it");
  // Both ranks must be able to use it; the first reason is told.
  for (const auto &[entry, isOwn] :
       {std::pair(&first, pair.isFirst()), std::pair(second, !pair.isFirst())})
    if (!entry->works)
      return addReason(name + ": " + nameOf(isOwn) + ": " + stringOf(entry->whyNot));
  const auto transport = std::ranges::find(own, name, &OwnTransport::name);
  if (transport != own.end())
    candidates.push_back({&*transport, pair.isFirst() ? &first.bytes : &second->bytes,
                          pair.isFirst() ? &second->bytes : &first.bytes});
}

void Agreement::begin() {
  if (candidates.empty()) {
    state = State::Over;
    return;
  }
  const Candidate &candidate = candidates.front();
  auto made = candidate.transport->kind->attempt(pair, *candidate.mine, *candidate.theirs);
  if (made.ok())
    attempt = std::move(*made);
  trial.reset();
  tellStep(made.status(), State::HearMade, attempt ? attempt->address() : AttemptBytes());
}

void Agreement::tryOut() {
  if (!trial)
    trial.emplace(std::min(std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()) / 2,
                           attempt->worksAlready() ? kLongestForMore : kLongestTrial));
  // An error, a success, or enough of one when time is over ends the trial.
  const auto tried = attempt->tryOut();
  const bool isOver = trial->passed() || (attempt->endsWithPeer() && hasTold());
  if (!tried.ok() || *tried || (isOver && attempt->worksAlready()))
    tellStep(tried.status(), State::HearTried, attempt->tried());
  else if (trial->passed())
    tellStep({StatusCode::Timeout, "nothing has come over " + attempt->text()}, State::HearTried);
}

/// Whether what the peer says next is there.
bool Agreement::hasTold() const {
  Step next;
  return recv(socket.get(), &next, sizeof next, MSG_PEEK | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof next);
}

void Agreement::giveUp(const std::string &why) {
  addReason(candidates.front().transport->name + ": " + why);
  candidates.erase(candidates.begin());
  attempt.reset();
  state = State::Begin;
}

Status Agreement::failure() const {
  if (!lost.ok())
    return {lost.code(), nameOf(true) + " cannot agree with " + nameOf(false) +
                             " on a transport: " + lost.message()};
  // Both sides have tried all candidates in vain.
  if (state == State::Over && !attempt)
    return {StatusCode::SystemError, nameOf(pair.isFirst()) + " and " + nameOf(!pair.isFirst()) +
                                         " have no transport that both may use: " + reasons};
  return {};
}

StatusOr<Agreement::Result> Agreement::finish() {
  if (Status failed = failure(); !failed.ok())
    return failed;
  std::string how = attempt->text();
  how += (how.empty() || reasons.empty() ? "" : "; ") + reasons;
  how = std::string(candidates.front().transport->kind->title()) + " (" +
        (how.empty() ? "as OCCL_NET says" : how) + ")";
  return Result{attempt->finish(std::move(socket)), std::move(how)};
}

} // namespace occl::net
