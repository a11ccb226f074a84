#include "runtime/cuda/lanes/lane_calls.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace occl::cuda {

bool LaneCalls::isComplete(const Sequence &sequence) const {
  return sequence.lastKernel == kNone ||
         engine.isComplete(sequence.lastKernel, sequence.lastRequest);
}

void LaneCalls::trim(uint32_t kernel, Held &lane) {
  while (!lane.inFlight.empty() && engine.isComplete(kernel, lane.inFlight.front()))
    lane.inFlight.pop_front();
}

StatusOr<bool> LaneCalls::tryNow(LaneCall &call) {
  Sequence &sequence = sequences[call.id];
  if (sequence.numWaiting != 0)
    return false;
  std::ranges::fill(lacks, false);
  auto done = tryCall(call, sequence);
  // Somebody may have lanes that he does not need; this rank, too.
  if (done.ok() && !*done && lacks[call.kernel]) {
    table.want(call.kernel, true);
    if (Status left = leaveWanted(); !left.ok())
      return left;
    done = tryCall(call, sequence);
    if (done.ok() && *done && waiting.empty())
      table.want(call.kernel, false);
  }
  return done;
}

/// The lane of the call; null: there is none now.
StatusOr<LaneCalls::Held *> LaneCalls::laneFor(const LaneCall &call, Sequence &sequence) {
  uint32_t &number = sequence.lanes[call.kernel];
  if (number != kNone) {
    Held &lane = held[call.kernel][number];
    trim(call.kernel, lane);
    return &lane;
  }
  auto joined = table.join(call.kernel, call.id);
  if (!joined.ok())
    return joined.status();
  if (!*joined) {
    lacks[call.kernel] = true;
    Status same = compareOthers(call, sequence);
    return same.ok() ? StatusOr<Held *>(nullptr) : same;
  }
  number = (*joined)->number;
  Held &lane = held[call.kernel][number];
  lane = {call.id, true, false, {}};
  return &lane;
}

/// A call that has no lane: of another kernel all that the others have made of its id was made
/// here, too, or their calls at this place of the sequence differ.
Status LaneCalls::compareOthers(const LaneCall &call, const Sequence &sequence) {
  return isComplete(sequence) ? table.compareWithout(call.id, call.kernel, call.signature)
                              : Status();
}

/// The next call of its sequence.
StatusOr<bool> LaneCalls::tryCall(LaneCall &call, Sequence &sequence) {
  // Another daemon does not know when what came before is complete.
  if (sequence.lastKernel != call.kernel && !isComplete(sequence))
    return false;
  auto found = laneFor(call, sequence);
  if (!found.ok() || !*found)
    return found.ok() ? StatusOr<bool>(false) : found.status();
  Held &lane = **found;
  const LaneName name = {call.kernel, sequence.lanes[call.kernel]};
  if (!call.number) {
    auto isReady = engine.prepare(call, name);
    if (!isReady.ok() || !*isReady)
      return isReady;
    if (lane.inFlight.size() >= kMostInFlight || table.shouldYield(name))
      return false;
  }
  // What enters early has room before others hear of it, and can be refused until then.
  bool isExecuted = false;
  if (call.entersEarly) {
    auto done = execute(call, sequence, lane, name);
    if (!done.ok() || !*done)
      return done;
    isExecuted = true;
  }
  auto isAnnounced = announce(call, lane, name);
  if (!isAnnounced.ok() || !*isAnnounced || isExecuted) {
    lane.owes = lane.owes && !isExecuted;
    return isAnnounced;
  }
  if (table.missing(name, *call.number) != 0)
    return false;
  return execute(call, sequence, lane, name);
}

/// From its number on the others count on the call, whatever becomes of it here. False: whether
/// they have made another one instead is not known yet.
StatusOr<bool> LaneCalls::announce(LaneCall &call, Held &lane, LaneName name) {
  Status same;
  if (!call.number) {
    call.number = table.next(name);
    lane.owes = true;
    same = table.announce(name, call.signature);
  }
  if (same.ok() && !call.isCompared) {
    same = table.compareSiblings(name, *call.number, call.signature);
    if (same.code() == StatusCode::InProgress)
      return false;
    call.isCompared = same.ok();
  }
  return same.ok() ? StatusOr<bool>(true) : same;
}

StatusOr<bool> LaneCalls::execute(LaneCall &call, Sequence &sequence, Held &lane, LaneName name) {
  auto request = engine.execute(call, name, call.number.value_or(table.next(name)));
  if (!request.ok())
    return request.status();
  if (!*request)
    return false;
  lane.owes = false;
  lane.inFlight.push_back(**request);
  sequence.lastKernel = call.kernel;
  sequence.lastRequest = **request;
  return true;
}

bool LaneCalls::isIdle(LaneName name) {
  Held &lane = held[name.kernel][name.number];
  if (!lane.isHeld)
    return true;
  trim(name.kernel, lane);
  return !lane.owes && lane.inFlight.empty();
}

void LaneCalls::enqueue(std::unique_ptr<LaneCall> call) {
  ++sequences[call->id].numWaiting;
  waiting.push_back(std::move(call));
}

/// Others that have the lock of the board are not waited for.
Status LaneCalls::advance(std::vector<std::unique_ptr<LaneCall>> &executed,
                          const std::function<bool()> &mustStop) {
  table.setWaiting(false);
  Status status = leaveWanted();
  if (status.ok())
    status = advanceQueue(executed, mustStop);
  table.setWaiting(true);
  return status.code() == StatusCode::InProgress ? Status() : status;
}

Status LaneCalls::advanceQueue(std::vector<std::unique_ptr<LaneCall>> &executed,
                               const std::function<bool()> &mustStop) {
  std::ranges::fill(lacks, false);
  std::unordered_set<uint64_t> blocked;                           // ids of which a call waits
  std::optional<std::unordered_set<uint64_t>> open[kLaneKernels]; // where no lane is free
  const auto mayHaveLane = [&](const LaneCall &call, const Sequence &sequence) {
    if (!lacks[call.kernel] || sequence.lanes[call.kernel] != kNone)
      return true;
    auto &ids = open[call.kernel];
    if (!ids)
      ids = table.openIds(call.kernel);
    return ids->contains(call.id);
  };
  auto next = waiting.begin();
  while (next != waiting.end() && !mustStop()) {
    const auto here = next++;
    LaneCall &call = **here;
    Sequence &sequence = sequences[call.id];
    if (blocked.contains(call.id) || !mayHaveLane(call, sequence)) {
      blocked.insert(call.id);
      continue;
    }
    auto done = tryCall(call, sequence);
    if (!done.ok())
      return done.status();
    if (!*done) {
      blocked.insert(call.id);
      continue;
    }
    --sequence.numWaiting;
    executed.push_back(std::move(*here));
    waiting.erase(here);
  }
  // What those lack that were not looked at is not known.
  for (uint32_t kernel = 0; kernel < kLaneKernels; ++kernel)
    if (lacks[kernel] || next == waiting.end())
      table.want(kernel, lacks[kernel]);
  return {};
}

std::vector<std::unique_ptr<LaneCall>> LaneCalls::takeAll() {
  std::vector<std::unique_ptr<LaneCall>> all(std::make_move_iterator(waiting.begin()),
                                             std::make_move_iterator(waiting.end()));
  waiting.clear();
  for (const auto &call : all)
    sequences[call->id].numWaiting = 0;
  for (uint32_t kernel = 0; kernel < kLaneKernels; ++kernel)
    table.want(kernel, false);
  return all;
}

Status LaneCalls::leaveWanted() {
  for (uint32_t kernel = 0; kernel < kLaneKernels; ++kernel) {
    if (!table.isWanted(kernel))
      continue;
    for (uint32_t l = 0; l < kMaxLanes; ++l) {
      Held &lane = held[kernel][l];
      if (!lane.isHeld || lane.owes)
        continue;
      trim(kernel, lane);
      if (!lane.inFlight.empty())
        continue;
      if (Status left = table.leave({kernel, l}); !left.ok())
        return left;
      lane.isHeld = false;
      forgetLane(lane.id, kernel);
    }
  }
  return {};
}

void LaneCalls::forgetLane(uint64_t id, uint32_t kernel) {
  if (auto found = sequences.find(id); found != sequences.end())
    found->second.lanes[kernel] = kNone;
}

std::optional<uint32_t>
LaneCalls::lostPeerOf(const LaneCall &call,
                      const std::function<bool(uint32_t rank)> &isGone) const {
  const uint32_t missing = call.number ? missingFor(call) : table.notBefore(call.id, call.kernel);
  for (uint32_t r = 0; missing >> r != 0; ++r)
    if ((missing >> r & 1) != 0 && isGone(r))
      return r;
  return {};
}

uint32_t LaneCalls::missingFor(const LaneCall &call) const {
  const auto lane = laneOf(call.id, call.kernel);
  return lane && call.number ? table.missing({call.kernel, *lane}, *call.number) : 0;
}

std::optional<uint32_t> LaneCalls::laneOf(uint64_t id, uint32_t kernel) const {
  auto found = sequences.find(id);
  if (found == sequences.end() || found->second.lanes[kernel] == kNone)
    return {};
  return found->second.lanes[kernel];
}

bool LaneCalls::forget(uint64_t id) {
  auto found = sequences.find(id);
  if (found == sequences.end())
    return true;
  const Sequence &sequence = found->second;
  if (sequence.numWaiting != 0 || !isComplete(sequence))
    return false;
  for (uint32_t lane : sequence.lanes)
    if (lane != kNone)
      return false;
  sequences.erase(found);
  return true;
}

} // namespace occl::cuda
