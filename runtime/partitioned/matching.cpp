// Notices between ranks, and the pairing of sends with receives of the same tag.
#include "runtime/partitioned/matching.h"

#include "runtime/control/records/pair_id.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

namespace occl::partitioned {

struct Matching::Channel {
  Channel(uint32_t peer, const transport::PairRing &to, const transport::PairRing &from)
      : peer(peer), source(to), sink(from) {}

  const uint32_t peer;
  transfer::RingSource source;
  transfer::RingSink sink;
  Notices waiting; // for room in the ring
  Tags tags;
  /// Until the peer has let go of it.
  struct Mine {
    Party *party; // null once it is freed here: then the peer may still access the rest
    uint64_t block, blockBytes;
    std::vector<std::shared_ptr<const void>> kept{};
    Notices freed = Notices(1); // that it starts no epoch any more
  };
  std::unordered_map<uint64_t, Mine> mine;                           // by serial
  std::unordered_map<uint64_t, std::unique_ptr<Counterpart>> theirs; // by serial
  bool isChanged = false; // something was matched or freed since it was looked at
};

namespace {

Notice noticeOf(const Party &party) {
  Notice notice;
  notice.kind = Notice::Made;
  notice.serial = party.serial;
  notice.isSend = party.isSend ? 1 : 0;
  notice.tag = party.tag;
  notice.partitions = party.shape.partitions;
  notice.count = party.shape.count;
  notice.type = static_cast<uint64_t>(party.shape.type);
  notice.perMessage = party.shape.perMessage;
  notice.block = party.block;
  notice.reference = party.reference;
  notice.deviceWords = party.onDevice.words;
  notice.deviceBuffer = party.onDevice.buffer;
  return notice;
}

transport::Pair pairOf(const Party &party, uint32_t rank) {
  return party.isSend ? transport::Pair{rank, party.peer} : transport::Pair{party.peer, rank};
}

} // namespace

std::string Party::describe(uint32_t rank) const {
  return std::string(isSend ? "partitioned send " : "partitioned receive ") +
         transport::describe(pairOf(*this, rank)) + ", tag " + std::to_string(tag);
}

Matching::Matching(daemon::Fabric &fabric, Doorbell &bell)
    : fabric(fabric), bell(bell), channels(fabric.numRanks()),
      memory(transport::Segment::kPartitionedWordsBytes) {}
Matching::~Matching() = default;

Doorbell &Matching::bellOf(uint32_t peer) const {
  return peer == fabric.rank() ? bell : *fabric.doorbells()[peer];
}

Matching::Channel &Matching::channelTo(uint32_t peer) {
  std::unique_ptr<Channel> &channel = channels[peer];
  if (!channel)
    channel = std::make_unique<Channel>(peer, fabric.own().noticesTo(peer),
                                        fabric.of(peer).noticesTo(fabric.rank()));
  return *channel;
}

/// Nobody looks at the words before the notice that tells of them has been written.
Status Matching::allocate(Party &party) {
  // Only a send on a host has words of messages here.
  const bool hasWords = party.isSend && party.onDevice.words == 0;
  const uint64_t messages = hasWords ? party.shape.numMessages() : 0;
  party.blockBytes = MessageWords::blockBytes(messages);
  const auto block = memory.allocate(party.blockBytes);
  // No room: say how much waits for peers to let go.
  if (!block) {
    size_t held = 0;
    for (const auto &channel : channels)
      held += channel ? std::ranges::count_if(channel->mine,
                                              [](const auto &entry) { return !entry.second.party; })
                      : 0;
    return {StatusCode::Again,
            "there is no room for the words of " + std::to_string(messages) + " messages: " +
                std::to_string(memory.bytesInUse()) + " of " + std::to_string(memory.size()) +
                " bytes are in use, also by " + std::to_string(held) +
                " requests that were freed here and not by their peers. Free some"};
  }
  party.block = *block;
  // Words begin at epoch 0, which none has.
  std::byte *at = fabric.own().partitionedWords().data() + *block;
  party.header = new (at) Header;
  auto *words = reinterpret_cast<Word *>(party.header + 1);
  for (uint64_t i = 0; i < (party.blockBytes - sizeof(Header)) / sizeof(Word); ++i)
    new (words + i) Word(0);
  return {};
}

void Matching::release(uint64_t block, uint64_t bytes) { memory.release(block, bytes); }

Status Matching::add(Party &party) {
  std::lock_guard lock(mutex);
  Channel &channel = channelTo(party.peer);
  // What peers have let go of is there then.
  if (Status looked = lookLocked(channel); !looked.ok())
    return looked;
  if (Status allocated = allocate(party); !allocated.ok())
    return allocated;
  const auto entry = enter(channel, party);
  // The peer may have been earlier.
  Tag &tag = entry->second;
  const auto theirs = tag.theirs.find(party.number);
  if (theirs == tag.theirs.end())
    return {};
  Counterpart &counterpart = *theirs->second;
  tag.theirs.erase(theirs);
  dropIfAsNew(channel, entry);
  return match(channel, party, counterpart);
}

/// The k-th of a tag here is for the k-th there. The entry of its tag. If it throws, the party has
/// no words any more.
Matching::Tags::iterator Matching::enter(Channel &channel, Party &party) {
  auto tag = channel.tags.end();
  Notices made;
  try {
    made.emplace_back();
    channel.mine.try_emplace(nextSerial, Channel::Mine{&party, party.block, party.blockBytes});
    tag = channel.tags.try_emplace({party.isSend, party.tag}).first;
    const uint64_t number = tag->second.nextMine;
    if (!tag->second.theirs.contains(number))
      tag->second.mine.emplace(number, &party);
  } catch (const std::bad_alloc &) {
    channel.mine.erase(nextSerial);
    if (tag != channel.tags.end())
      dropIfAsNew(channel, tag);
    release(party.block, party.blockBytes);
    throw;
  }
  party.serial = nextSerial++;
  party.number = tag->second.nextMine++;
  made.front() = noticeOf(party);
  write(channel, made);
  return tag;
}

void Matching::dropIfAsNew(Channel &channel, Tags::iterator tag) {
  if (tag->second.isAsNew())
    channel.tags.erase(tag);
}

size_t Matching::numOpenTags() {
  std::lock_guard lock(mutex);
  size_t number = 0;
  for (const auto &channel : channels)
    number += channel ? channel->tags.size() : 0;
  return number;
}

void Matching::remove(Party &party) noexcept {
  std::lock_guard lock(mutex);
  Channel &channel = channelTo(party.peer); // is there
  const auto mine = channel.mine.find(party.serial);
  // Matched: forget the peer's request and let go of its words.
  if (const Counterpart *known = party.counterpart.load(std::memory_order_relaxed)) {
    const auto counterpart = channel.theirs.find(known->serial);
    const bool isHeld = known->header != nullptr;
    if (isHeld)
      letGo(channel, *counterpart->second);
    channel.theirs.erase(counterpart);
  } else {
    // Not matched: its number stays used, so that of the peer finds nobody.
    channel.tags.at({party.isSend, party.tag}).mine.erase(party.number);
  }
  mine->second.freed.front() = {.kind = Notice::Freed, .serial = party.serial};
  write(channel, mine->second.freed);
  mine->second.party = nullptr;
  mine->second.kept = std::move(party.kept);
  // The peer may still read the words, unless it has let go of them.
  if (!party.isLetGo)
    return;
  release(party.block, party.blockBytes);
  channel.mine.erase(mine);
}

void Matching::letGo(Channel &channel, Counterpart &counterpart) {
  counterpart.letGo.front() = {.kind = Notice::LetGo, .serial = counterpart.serial};
  write(channel, counterpart.letGo);
}

void Matching::bind(Party &party, uint64_t arrivals) noexcept {
  std::lock_guard lock(mutex);
  const Counterpart *sender = party.counterpart.load(std::memory_order_relaxed);
  party.bound.front() = {
      .kind = Notice::Bound, .serial = sender->serial, .deviceWords = arrivals + 1};
  write(channelTo(party.peer), party.bound);
}

Status Matching::look(uint32_t peer) {
  std::lock_guard lock(mutex);
  return lookLocked(channelTo(peer));
}

Status Matching::lookAtAll() {
  std::lock_guard lock(mutex);
  Status first;
  for (const auto &channel : channels)
    if (channel)
      if (Status looked = lookLocked(*channel); first.ok())
        first = looked;
  return first;
}

Status Matching::lookLocked(Channel &channel) {
  Status first;
  while (first.ok()) {
    const auto available = channel.sink.available();
    if (!available || *available % sizeof(Notice) != 0)
      return damaged(channel.peer);
    if (*available == 0)
      break;
    Notice notice;
    channel.sink.look(&notice, sizeof notice);
    try {
      first = take(channel, notice);
    } catch (const std::bad_alloc &) { // it stays for the next look
      break;
    }
    channel.sink.skip(sizeof notice);
  }
  if (channel.sink.unreleased() != 0) {
    channel.sink.release();
    bellOf(channel.peer).ring(); // it may have more than there was room for
  }
  // Notices that had to wait may fit into the ring.
  writeWaiting(channel);
  if (std::exchange(channel.isChanged, false))
    bell.ring(); // an executor of this rank may sleep for want of it
  return first;
}

/// Behind those that wait. They are never waited for. The list is empty then.
void Matching::write(Channel &channel, Notices &one) {
  channel.waiting.splice(channel.waiting.end(), one);
  writeWaiting(channel);
}

void Matching::writeWaiting(Channel &channel) {
  while (!channel.waiting.empty() &&
         channel.source.room().value_or(0) >= sizeof(Notice)) { // damaged: never
    const Notice &next = channel.waiting.front();
    channel.source.write(&next, sizeof next);
    if (next.kind == Notice::Made)
      if (const auto made = channel.mine.find(next.serial);
          made != channel.mine.end() && made->second.party)
        made->second.party->isTold.store(true, std::memory_order_relaxed);
    channel.waiting.pop_front();
  }
  if (channel.source.unpublished() == 0)
    return;
  channel.source.publish();
  bellOf(channel.peer).ring();
}

Status Matching::take(Channel &channel, const Notice &notice) {
  // Each kind is written by the peer; one that is unknown comes from damage.
  switch (notice.kind) {
  case Notice::Made:
    return takeMade(channel, notice);
  case Notice::Freed:
    return takeFreed(channel, notice.serial);
  case Notice::LetGo:
    takeLetGo(channel, notice.serial);
    return {};
  case Notice::Bound:
    takeBound(channel, notice);
    return {};
  default:
    return damaged(channel.peer);
  }
}

/// Another process has written it: nothing of it is used that is not checked here. If it throws,
/// nothing has changed.
Status Matching::takeMade(Channel &channel, const Notice &notice) {
  auto made = std::make_unique<Counterpart>();
  made->serial = notice.serial;
  made->isSend = notice.isSend != 0;
  made->tag = notice.tag;
  made->shape = {notice.partitions, notice.count, static_cast<DataType>(notice.type),
                 notice.perMessage};
  // The peer gives each serial once.
  if (notice.type >= kNumDataTypes || !made->shape.isSound() ||
      channel.theirs.contains(notice.serial))
    return damaged(channel.peer);
  const bool hasWords = made->isSend && notice.deviceWords == 0;
  const uint64_t messages = hasWords ? made->shape.numMessages() : 0;
  const uint64_t bytes = MessageWords::blockBytes(messages);
  const std::span<std::byte> words = fabric.of(channel.peer).partitionedWords();
  if (notice.block % transport::Arena::kAlignment != 0 || notice.block > words.size() ||
      bytes > words.size() - notice.block)
    return damaged(channel.peer);
  made->header = reinterpret_cast<Header *>(words.data() + notice.block);
  made->messages = MessageWords(made->header, messages);
  made->reference = notice.reference;
  made->onDevice = {notice.deviceWords, notice.deviceBuffer};
  const auto entry = channel.tags.try_emplace({!made->isSend, notice.tag}).first;
  Tag &tag = entry->second;
  Counterpart &counterpart = *made;
  counterpart.number = tag.nextTheirs;
  const auto mine = tag.mine.find(counterpart.number);
  // That of this rank may have been made and freed before: then nobody asks for it.
  counterpart.isWaiting = mine == tag.mine.end() && counterpart.number >= tag.nextMine;
  try {
    if (counterpart.isWaiting)
      tag.theirs.emplace(counterpart.number, &counterpart);
    channel.theirs.emplace(notice.serial, std::move(made));
  } catch (const std::bad_alloc &) {
    tag.theirs.erase(tag.nextTheirs);
    dropIfAsNew(channel, entry);
    throw;
  }
  ++tag.nextTheirs;
  if (mine != tag.mine.end()) {
    Party &party = *mine->second;
    tag.mine.erase(mine);
    dropIfAsNew(channel, entry);
    return match(channel, party, counterpart);
  }
  if (!counterpart.isWaiting)
    dropIfAsNew(channel, entry);
  return {};
}

Status Matching::takeFreed(Channel &channel, uint64_t serial) {
  const auto found = channel.theirs.find(serial);
  if (found == channel.theirs.end())
    return {}; // that of this rank was freed before, which has let go of it
  Counterpart &counterpart = *found->second;
  if (!counterpart.header)
    return damaged(channel.peer); // for the second time
  counterpart.isFreed.store(true, std::memory_order_release);
  channel.isChanged = true;
  if (counterpart.party)
    return {}; // which lets go of it when it is freed
  counterpart.header = nullptr;
  letGo(channel, counterpart);
  // The next one of this rank with its number is told that it is gone.
  if (!counterpart.isWaiting)
    channel.theirs.erase(found);
  return {};
}

void Matching::takeLetGo(Channel &channel, uint64_t serial) {
  const auto mine = channel.mine.find(serial);
  if (mine == channel.mine.end())
    return;
  if (Party *party = mine->second.party) {
    party->isLetGo = true;
    return;
  }
  release(mine->second.block, mine->second.blockBytes);
  channel.mine.erase(mine);
}

/// Of a send of this rank, unless it was freed meanwhile.
void Matching::takeBound(Channel &channel, const Notice &notice) {
  const auto mine = channel.mine.find(notice.serial);
  if (mine == channel.mine.end() || !mine->second.party)
    return;
  if (const Counterpart *known = mine->second.party->counterpart.load(std::memory_order_relaxed))
    channel.theirs.at(known->serial)->arrivals.store(notice.deviceWords, std::memory_order_release);
}

Status Matching::match(Channel &channel, Party &party, Counterpart &counterpart) {
  counterpart.party = &party;
  party.counterpart.store(&counterpart, std::memory_order_release);
  channel.isChanged = true;
  if (party.shape.fits(counterpart.shape))
    return {};
  return mismatch(party, channel.peer, counterpart);
}

Status Matching::mismatch(const Party &party, uint32_t peer, const Counterpart &theirs) const {
  const auto side = [](uint32_t rank, bool isSend, const Shape &shape) {
    return "rank " + std::to_string(rank) + (isSend ? " sends " : " receives ") + shape.describe();
  };
  try {
    return {StatusCode::Mismatch, party.describe(fabric.rank()) + ": ranks disagree: " +
                                      side(fabric.rank(), party.isSend, party.shape) + ", " +
                                      side(peer, theirs.isSend, theirs.shape)};
  } catch (const std::bad_alloc &) { // they are matched: the communicator has to fail
    return outOfMemory();
  }
}

Status Matching::damaged(uint32_t peer) const {
  return {StatusCode::InternalError, "the notices of rank " + std::to_string(peer) +
                                         " of its partitioned requests are damaged: something has "
                                         "overwritten them in memory that it writes"};
}

} // namespace occl::partitioned
