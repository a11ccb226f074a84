#include "nccl/bootstrap/meeting.h"

namespace occl::nccl {

namespace {

std::string nameOf(const FromRank &hello) {
  return "rank " + std::to_string(hello.rank) + " on " + hello.host.str();
}

FromRoot message(FromRootKind kind) {
  FromRoot made{};
  made.magic = kMessageMagic;
  made.kind = kind;
  return made;
}

std::string versionText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

} // namespace

bool Meeting::receive(const FromRank &received, Clock::time_point now, const Send &send) {
  // A first message is the only one that may come from a rank that is not known.
  if (received.kind == FromRankKind::Hello)
    return arrive(received, now, send);
  auto found = members.find(received.rank);
  if (found == members.end())
    return false;
  // Each kind is expected in one phase; one that comes in another is an answer that was overtaken
  // by a failure, and means nothing any more.
  if (received.kind == FromRankKind::Prepared && phase == Phase::Preparing)
    onPrepared(found->second, received, now, send);
  else if (received.kind == FromRankKind::Done && phase == Phase::Initializing)
    onDone(found->second, received, send);
  else if (received.kind == FromRankKind::Listening && phase == Phase::Listening)
    onListening(found->second, received, send);
  return true; // what comes after the end is too late to matter
}

FromRoot Meeting::refusal() const {
  // The first failure is what all ranks hear, also those that come later: they would otherwise wait
  // for ranks that have gone.
  if (phase == Phase::Failed)
    return failure;
  FromRoot refused = message(FromRootKind::Failed);
  refused.result = ncclInvalidUsage;
  refused.text = std::string("the ranks of this id have come together without this one");
  return refused;
}

bool Meeting::arrive(const FromRank &hello, Clock::time_point now, const Send &send) {
  if (members.count(hello.rank)) { // whatever has been agreed on, this is not part of it
    fail(ncclInvalidArgument, nameOf(hello) + " has come twice: every rank of an id is another one",
         send);
    return false;
  }
  // Before the new one is entered: it is the other side of a mismatch in the message below.
  const FromRank first = members.empty() ? hello : members.begin()->second.hello;
  Member &member = members[hello.rank];
  member.hello = hello;
  // A wish counts more than where ranks are, which OCCL could do.
  if (const std::string wish = hello.wish.str(); !wish.empty() && !std::exchange(isWished, true))
    why = wish;
  // The first rank sets the number; all others have to agree with it.
  if (numRanks == 0)
    numRanks = hello.numRanks;
  // From here on the cases exclude each other, the worst first.
  if (phase == Phase::Failed) {
    member.isAnswered = true;
    ++numAnswered;
    send(hello.rank, failure);
  } else if (hello.numRanks != numRanks || hello.rank >= numRanks) {
    fail(ncclInvalidArgument,
         nameOf(hello) + " has nranks " + std::to_string(hello.numRanks) + ", " + nameOf(first) +
             " has " + std::to_string(numRanks),
         send);
  } else if (phase == Phase::Preparing) {
    // Late, but in time: the others have been asked already.
    FromRoot request = message(FromRootKind::Prepare);
    request.why = why;
    send(hello.rank, request);
  } else if (hello.machine != machine) {
    // OCCL over the network, or another NCCL: which of them, the ranks' answers decide.
    prepare("ranks are on several machines, or in several containers", now, send);
  } else if (!hello.wish.str().empty()) {
    prepare(hello.wish.str(), now, send);
  } else if (members.size() == numRanks) {
    phase = Phase::Agreed;
    finish(message(FromRootKind::Local), send);
  }
  return true;
}

void Meeting::prepare(const std::string &because, Clock::time_point now, const Send &send) {
  phase = Phase::Preparing;
  if (!isWished)
    why = because;
  end = now + patience;
  FromRoot request = message(FromRootKind::Prepare);
  request.why = why;
  for (const auto &[rank, member] : members)
    send(rank, request);
}

void Meeting::onPrepared(Member &member, const FromRank &received, Clock::time_point now,
                         const Send &send) {
  member.isPrepared = true;
  member.version = received.version;
  // The id of the other NCCL is made by rank 0, as by NCCL's own rule.
  if (received.rank == 0)
    id = received.id;
  if (received.result != ncclSuccess && cannotBeOther.empty())
    cannotBeOther = nameOf(member.hello) + " has no other NCCL: " + received.text.str();
  // All libraries must be of one version, since they speak to each other without a check of it.
  uint32_t numPrepared = 0;
  for (const auto &[rank, other] : members) {
    numPrepared += other.isPrepared;
    if (other.isPrepared && other.version != member.version && cannotBeOther.empty())
      cannotBeOther = "the other NCCL of " + nameOf(member.hello) + " is " +
                      versionText(member.version) + ", that of " + nameOf(other.hello) + " is " +
                      versionText(other.version);
  }
  // A wish (a setting, or more ranks than OCCL does) cannot be met by OCCL, so without another NCCL
  // everything ends here.
  if (isWished && !cannotBeOther.empty())
    return fail(received.result != ncclSuccess ? static_cast<ncclResult_t>(received.result)
                                               : ncclInvalidUsage,
                why + ", which OCCL does not do, and " + cannotBeOther, send);
  if (numPrepared < numRanks)
    return;
  // Several machines alone are no reason to fail: OCCL can do that, too.
  if (!cannotBeOther.empty())
    return goAcross(now, send);
  // All have it: from here on the other NCCL's own bootstrap has to succeed on each rank.
  phase = Phase::Initializing;
  end = now + patience;
  FromRoot request = message(FromRootKind::Init);
  request.id = id;
  for (const auto &[rank, other] : members)
    send(rank, request);
}

/// Rank 0 is where the others come together.
void Meeting::goAcross(Clock::time_point now, const Send &send) {
  phase = Phase::Listening;
  end = now + patience;
  FromRoot request = message(FromRootKind::Listen);
  request.why = why;
  request.text = cannotBeOther;
  send(0, request);
}

void Meeting::onListening(Member &member, const FromRank &received, const Send &send) {
  // Only rank 0 was asked to listen.
  if (member.hello.rank != 0)
    return;
  if (received.result != ncclSuccess)
    return fail(static_cast<ncclResult_t>(received.result),
                nameOf(member.hello) + ": " + received.text.str(), send);
  phase = Phase::Agreed;
  FromRoot last = message(FromRootKind::Across);
  last.why = why;
  last.text = received.text.str();
  finish(last, send);
}

void Meeting::onDone(Member &member, const FromRank &received, const Send &send) {
  if (received.result != ncclSuccess)
    return fail(static_cast<ncclResult_t>(received.result),
                nameOf(member.hello) + ": " + received.text.str(), send);
  // Each has made its communicator; those that are done wait for the others, so that a rank that
  // fails is known to all before anybody uses it.
  member.isDone = true;
  for (const auto &[rank, other] : members)
    if (!other.isDone)
      return;
  phase = Phase::Agreed;
  finish(message(FromRootKind::Ready), send);
}

void Meeting::finish(const FromRoot &last, const Send &send) {
  // The root's own ranks at the end: the process may exit as soon as they have heard of a failure.
  for (const bool isOwn : {false, true})
    for (auto &[rank, member] : members) {
      const bool isHere = member.hello.machine == machine && member.hello.process == process;
      if (isHere != isOwn || std::exchange(member.isAnswered, true))
        // A rank is answered once: failures and endings may overlap.
        continue;
      ++numAnswered;
      send(rank, last);
    }
}

void Meeting::fail(ncclResult_t result, const std::string &text, const Send &send) {
  // What all ranks have agreed on is not taken back: their communicator reports what happens from
  // then on.
  if (phase == Phase::Agreed || phase == Phase::Failed)
    return;
  phase = Phase::Failed;
  failure = message(FromRootKind::Failed);
  failure.result = result;
  failure.text = text;
  finish(failure, send);
}

void Meeting::leave(uint32_t rank, const Send &send) {
  auto found = members.find(rank);
  // After the end every rank closes its connection, which means nothing.
  if (found == members.end() || phase == Phase::Agreed || phase == Phase::Failed)
    return;
  const std::string name = nameOf(found->second.hello);
  found->second.isAnswered = true; // there is nobody to answer
  ++numAnswered;
  fail(ncclRemoteError, name + " has ended or aborted before all ranks had come together", send);
}

std::optional<Meeting::Clock::time_point> Meeting::deadline() const {
  if (phase == Phase::Preparing || phase == Phase::Initializing || phase == Phase::Listening)
    return end;
  return std::nullopt;
}

std::string Meeting::missing() const {
  constexpr uint32_t kMostNamed = 16;
  // In ascending order, and not more than people would read.
  std::string list;
  uint32_t numNamed = 0;
  for (uint32_t rank = 0; rank < numRanks; ++rank) {
    auto found = members.find(rank);
    // Who is missing depends on what the meeting waits for: arrivals and answers, the listening of
    // rank 0, or the end of initialisation.
    const bool isMissing =
        found == members.end() || (phase == Phase::Preparing   ? !found->second.isPrepared
                                   : phase == Phase::Listening ? rank == 0
                                                               : !found->second.isDone);
    if (!isMissing)
      continue;
    if (numNamed++ == kMostNamed)
      return list + " and more";
    list += (list.empty() ? "" : ", ") + std::to_string(rank);
  }
  return list;
}

void Meeting::expire(Clock::time_point now, const Send &send) {
  if (!deadline() || now < end)
    return;
  fail(ncclRemoteError,
       why + ", and after " + std::to_string(patience.count() / 1000) + " s ranks are missing" +
           (phase == Phase::Initializing ? " in the other NCCL's communicator: " : ": ") +
           missing(),
       send);
}

} // namespace occl::nccl
