#include "runtime/cuda/standby.h"

#include "runtime/base/deadline.h"
#include "runtime/base/thread.h"

#include <algorithm>

namespace occl::cuda {

namespace {

/// For a kernel to decide, which takes it two microseconds. If it has not by then, it is told as
/// though it stayed: if it does not, the call ends at its timeout.
constexpr auto kPatience = std::chrono::milliseconds(1000);

void ringOne(Bell &bell, const std::array<uint64_t, Bell::kWords> &words) {
  for (uint32_t i = 0; i < Bell::kWords; ++i)
    storeShared(&bell.words[i], words[i], std::memory_order_release);
}

} // namespace

Standby::Standby(uint64_t *memory, uint32_t maxBlocks)
    : state(memory), answers(memory + kPresenceWords),
      bell(reinterpret_cast<Bell *>(answers + AwaitedEnds::wordsFor(maxBlocks))),
      maxBlocks(maxBlocks) {}

void Standby::begin(uint32_t blocks) {
  numBlocks = std::min(blocks, maxBlocks);
  session = 0;
}

Standby::Call Standby::call(uint64_t number, const std::array<char *, 2> &buffers) {
  const EndWords ended = {answers, lastTicket + 1};
  const bool isTaken = isWaiting() && tryRing(ended.ticket, number, buffers);
  lastTicket = ended.ticket;
  if (!isTaken) {
    // Marks come again: what was rung long ago is not to be taken for a call.
    for (uint32_t b = 0; b < numBlocks; ++b)
      ringOne(bell[b], {});
    session = ended.ticket;
  }
  return {ended, isTaken};
}

/// There is a kernel, as far as is known, and the call before is over.
bool Standby::isWaiting() const {
  return session != 0 && EndPoll({answers, lastTicket}, numBlocks).isOver() &&
         loadShared(state, std::memory_order_acquire) != presenceWord(session, Presence::Gone);
}

bool Standby::tryRing(uint64_t ticket, uint64_t number, const std::array<char *, 2> &buffers) {
  const uint64_t values[Bell::kWords] = {reinterpret_cast<uint64_t>(buffers[0]),
                                         reinterpret_cast<uint64_t>(buffers[1]), number};
  std::array<uint64_t, Bell::kWords> words;
  for (uint32_t i = 0; i < Bell::kWords; ++i) {
    if (values[i] >> kBellBits != 0)
      return false;
    words[i] = bellWord(bellMark(ticket), values[i]);
  }
  ringOne(bell[0], words);
  threadFence(std::memory_order_seq_cst);
  if (decision() == Presence::Gone)
    return false;
  for (uint32_t b = 1; b < numBlocks; ++b)
    ringOne(bell[b], words);
  return true;
}

Presence Standby::decision() const {
  auto is = [&](Presence presence) {
    return loadShared(state, std::memory_order_acquire) == presenceWord(session, presence);
  };
  if (is(Presence::Leaving))
    for (Deadline deadline(kPatience); is(Presence::Leaving) && !deadline.passed();)
      relax();
  return is(Presence::Gone) ? Presence::Gone : Presence::There;
}

} // namespace occl::cuda
