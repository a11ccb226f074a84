// Calls of ids in lanes: made in their order, executed in the order that all ranks share, queued in
// between.
#include "runtime/cuda/lanes/lane_calls.h"

#include <iterator>
#include <utility>

namespace occl::cuda {

namespace {

/// Of a call that enters early: lanes that it is prepared for, until it stays with one.
constexpr uint32_t kTries = 4;

/// Of ranks as bits the first one of which that is true.
std::optional<uint32_t> firstOf(uint32_t ranks, const std::function<bool(uint32_t rank)> &isTrue) {
  for (uint32_t r = 0; ranks >> r != 0; ++r)
    if ((ranks >> r & 1) != 0 && isTrue(r))
      return r;
  return {};
}

} // namespace

bool LaneCalls::isComplete(const Sequence &sequence) const {
  return !sequence.last || engine.isComplete(sequence.last->kernel, sequence.lastRequest);
}

/// Others know how many of the sequence's calls are complete here. False: some are not.
bool LaneCalls::sayDone(Sequence &sequence) {
  if (!isComplete(sequence))
    return false;
  if (sequence.record)
    table.noteDone(*sequence.record, sequence.numExecuted);
  return true;
}

void LaneCalls::sayAllDone() {
  std::erase_if(unsaid, [&](Sequence *sequence) {
    sequence->isUnsaid = !sayDone(*sequence);
    return !sequence->isUnsaid;
  });
}

// --- making calls ---

StatusOr<bool> LaneCalls::tryNow(LaneCall &call, Calls &executed) {
  Sequence &sequence = sequences[call.id];
  if (call.entersEarly)
    return tryEarly(call, sequence, executed);
  // Calls of an id are made in order: earlier ones come first.
  if (sequence.numMade != sequence.waiting.size())
    return false;
  auto isMade = make(call, sequence);
  if (!isMade.ok() || !*isMade)
    return isMade;
  // What is wrong with another call is found again by who goes on.
  Status status = follow(&call, executed);
  return status.ok() || call.isExecuted ? StatusOr<bool>(call.isExecuted) : status;
}

/// Those before it of its id are made. What it lacks just now it may have when its turn comes.
StatusOr<bool> LaneCalls::make(LaneCall &call, Sequence &sequence) {
  // The lane is likely, and not known before the call is in the order.
  std::optional<LaneName> &lane = sequence.usual[call.kernel];
  bool &hasLarge = sequence.hasLarge[call.kernel];
  hasLarge = hasLarge || call.signature.isLarge;
  if (!lane || (hasLarge && !lane->isLarge())) {
    auto usual = table.laneOf(call.id, call.kernel, call.signature.isLarge);
    if (!usual.ok() || !*usual)
      return usual.ok() ? StatusOr<bool>(false) : usual.status();
    lane = **usual;
  }
  // Tables are there before others count on the call.
  if (auto prepared = engine.prepare(call, *lane); !prepared.ok())
    return prepared.status();
  // Others hear how far the id has come, which may free its record or lane.
  sayDone(sequence);
  auto made = table.make(call.id, call.kernel, call.signature);
  if (!made.ok() || !*made)
    return made.ok() ? StatusOr<bool>(false) : made.status();
  noteRecord(call, **made, sequence);
  return true;
}

void LaneCalls::noteRecord(LaneCall &call, CallName name, Sequence &sequence) {
  call.made = name;
  if (sequence.record == name.record)
    return;
  // What was in another record, or was in this one, is complete.
  if (sequence.record && byRecord[*sequence.record] == &sequence)
    byRecord[*sequence.record] = nullptr;
  // Who has had the record has it no more.
  if (Sequence *before = byRecord[name.record])
    before->record.reset();
  sequence.record = name.record;
  sequence.numExecuted = name.call;
  byRecord[name.record] = &sequence;
}

/// Nothing of the order may be before it, and nothing of its id.
StatusOr<bool> LaneCalls::tryEarly(LaneCall &call, Sequence &sequence, Calls &executed) {
  std::optional<LaneName> prepared;
  // Each try ends at a lane that was not prepared: it is prepared for the next try.
  for (uint32_t tries = 0; tries < kTries; ++tries) {
    if (Status status = follow(nullptr, executed); !status.ok())
      return status;
    if (!sequence.waiting.empty())
      return false;
    sayDone(sequence);
    std::optional<LaneName> lacks;
    auto made = table.makeEarly(call.id, call.kernel, call.signature,
                                [&](LaneName lane, uint64_t number) -> StatusOr<bool> {
                                  // Under the lock of the board: only a prepared lane will do.
                                  if (prepared == lane)
                                    return execute(call, sequence, lane, number);
                                  lacks = lane;
                                  return false;
                                });
    if (!made.ok())
      return made.status();
    if (*made) {
      noteRecord(call, **made, sequence);
      noteExecuted(call, sequence);
      return true;
    }
    // Another try would find the same.
    if (!lacks && !table.next())
      return false;
    auto isReady = lacks ? engine.prepare(call, *lacks) : StatusOr<bool>(true);
    if (!isReady.ok() || !*isReady)
      return isReady;
    prepared = lacks;
  }
  return false;
}

void LaneCalls::enqueue(std::unique_ptr<LaneCall> call) {
  Sequence &sequence = sequences[call->id];
  if (call->made)
    ++sequence.numMade;
  else
    unmade.insert(call->id);
  waiting.push_back(std::move(call));
  sequence.waiting.push_back(std::prev(waiting.end()));
}

// --- executing them ---

/// In its turn. False: not now.
StatusOr<bool> LaneCalls::execute(LaneCall &call, Sequence &sequence, LaneName name,
                                  uint64_t number) {
  // In another lane nobody orders it behind what came before.
  if (sequence.last && *sequence.last != name && !sayDone(sequence))
    return false;
  auto request = engine.execute(call, name, number);
  if (!request.ok())
    return request.status();
  if (!*request)
    return false;
  // Later calls of the id are expected there, too.
  sequence.usual[name.kernel] = name;
  sequence.last = name;
  sequence.lastRequest = **request;
  return true;
}

void LaneCalls::noteExecuted(LaneCall &call, Sequence &sequence) {
  call.isExecuted = true;
  sequence.numExecuted = call.made->call + 1;
  if (!std::exchange(sequence.isUnsaid, true))
    unsaid.push_back(&sequence);
  engine.begin(call.kernel);
}

/// Goes on in the order as far as it can. current: is made, and not in the queue; or null.
Status LaneCalls::follow(LaneCall *current, Calls &executed) {
  while (const auto ordered = table.next()) {
    Sequence *sequence = byRecord[ordered->call.record];
    // Calls of an id are executed in order, so it can only be the first one that waits.
    const bool hasFront = sequence && !sequence->waiting.empty();
    LaneCall *call = hasFront ? sequence->waiting.front()->get() : nullptr;
    if (current && current->made == ordered->call)
      call = current;
    if (!call || call->made != ordered->call) { // it was executed before all ranks had made it
      table.pass();
      continue;
    }
    // Without room the order stops here until later.
    auto isExecuted = execute(*call, *sequence, ordered->lane, ordered->number);
    if (!isExecuted.ok() || !*isExecuted)
      return isExecuted.ok() ? Status() : isExecuted.status();
    table.pass();
    noteExecuted(*call, *sequence);
    // The caller has the current call; others leave the queue.
    if (call == current)
      continue;
    const auto place = sequence->waiting.front();
    sequence->waiting.pop_front();
    --sequence->numMade;
    executed.push_back(std::move(*place));
    waiting.erase(place);
  }
  return {};
}

/// What was too far ahead of others, or lacked something.
Status LaneCalls::makeWaiting() {
  for (auto next = unmade.begin(); next != unmade.end();) {
    Sequence &sequence = sequences[*next];
    // In their order, until one of them lacks something.
    while (sequence.numMade != sequence.waiting.size()) {
      auto isMade = make(**sequence.waiting[sequence.numMade], sequence);
      const bool isAgain = !isMade.ok() && isMade.status().code() == StatusCode::Again;
      if (!isMade.ok() && !isAgain)
        return isMade.status();
      if (isAgain || !*isMade)
        break;
      ++sequence.numMade;
    }
    next = sequence.numMade == sequence.waiting.size() ? unmade.erase(next) : std::next(next);
  }
  return {};
}

/// Others that have the lock of the board are not waited for.
Status LaneCalls::advance(Calls &executed) {
  table.setWaiting(false);
  if (table.isDoneWanted())
    sayAllDone();
  // Follow the order, make what waits, order what was held up, and follow again.
  Status status = follow(nullptr, executed);
  if (status.ok())
    status = makeWaiting();
  if (status.ok())
    status = table.orderHeldUp();
  if (status.ok())
    status = follow(nullptr, executed);
  table.setWaiting(true);
  return status.code() == StatusCode::InProgress ? Status() : status;
}

LaneCalls::Calls LaneCalls::takeAll() {
  Calls all(std::make_move_iterator(waiting.begin()), std::make_move_iterator(waiting.end()));
  waiting.clear();
  unmade.clear();
  for (const auto &call : all) {
    Sequence &sequence = sequences[call->id];
    sequence.waiting.clear();
    sequence.numMade = 0;
  }
  return all;
}

// --- what is known of them ---

std::optional<uint32_t>
LaneCalls::lostPeerOf(const LaneCall &call,
                      const std::function<bool(uint32_t rank)> &isGone) const {
  uint32_t missing = 0;
  if (call.made)
    missing = table.without(*call.made);
  else if (const Sequence &sequence = sequences.at(call.id);
           sequence.waiting[sequence.numMade]->get() == &call) // the next one
    missing = table.notBefore(call.id);
  return firstOf(missing, isGone);
}

std::optional<uint32_t>
LaneCalls::refusedForLost(const LaneCall &call,
                          const std::function<bool(uint32_t rank)> &isGone) const {
  const auto lost = firstOf(table.refusing(call.id, call.kernel), isGone);
  // It may have completed its calls in between, and left.
  const bool isRefused = lost && (table.refusing(call.id, call.kernel) >> *lost & 1) != 0;
  return isRefused ? lost : std::nullopt;
}

bool LaneCalls::forget(uint64_t id) {
  auto found = sequences.find(id);
  if (found == sequences.end())
    return true;
  Sequence &sequence = found->second;
  if (!sequence.waiting.empty() || !sayDone(sequence))
    return false;
  // Nothing may lead to the sequence any more.
  if (sequence.isUnsaid)
    std::erase(unsaid, &sequence);
  if (sequence.record && byRecord[*sequence.record] == &sequence)
    byRecord[*sequence.record] = nullptr;
  sequences.erase(found);
  return true;
}

} // namespace occl::cuda
