// Transfers between two ranks with mirrors of each other's arenas, step by step in random order: in
// the place of kernels something that writes and reads pieces as pair_slots.h says, several at a
// time, which are ready in any order.
#include "runtime/cuda/net/transfers_crossing.h"

#include "runtime/base/data_type.h"
#include "runtime/net/network.h"
#include "runtime/net/transport/testing/loop.h"
#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace occl::cuda {
namespace {

constexpr uint32_t kRanks = 2;

/// Small slots, few enough that they are used again and again.
PairGeometry geometry() {
  PairGeometry pairs;
  pairs.begin = 256;
  pairs.numRanks = kRanks;
  pairs.numSlots = 4;
  pairs.slotBytes = net::kMaxPut + (40 << 10);
  return pairs;
}

struct Transfer {
  uint64_t count; // of floats
  uint32_t key;

  char byteAt(uint64_t i) const { return static_cast<char>(key * 31 + i * 7 + i / 509); }
};

/// A part of a transfer in a slot.
struct Piece {
  uint64_t number; // of the pair
  const Transfer *transfer;
  uint64_t begin, bytes;
};

struct Member final : net::Sink {
  explicit Member(uint32_t rank)
      : rank(rank),
        memory(kRanks, std::vector<uint64_t>(
                           (geometry().begin + geometry().bytes()) / sizeof(uint64_t) + 1)),
        arenas(rank, {std::as_writable_bytes(std::span(memory[0])),
                      std::as_writable_bytes(std::span(memory[1]))}),
        crossing(arenas, geometry()) {}
  bool message(std::span<const std::byte>) override { return false; }
  net::Regions regions() {
    net::Regions regions;
    regions[net::kHeapRegion] = std::as_writable_bytes(std::span(memory[rank]));
    return regions;
  }
  char *arena(uint32_t of) const { return arenas.of(of); }

  const uint32_t rank;
  std::vector<std::vector<uint64_t>> memory; // by rank: its own, and a mirror
  HostArenas arenas;
  TransfersCrossing crossing;
  std::unique_ptr<net::Endpoint> endpoint;
  std::vector<Piece> toSend, toReceive; // that were not taken
  std::vector<Piece> writing, reading;  // that some thread block has
  bool wasFull = false;
};

class Transfers : public ::testing::Test {
protected:
  Transfers() : random(printedSeed()) {
    std::tie(members[0].endpoint, members[1].endpoint) =
        net::makeLoop(members[0].regions(), members[1].regions(), net::kMaxPut + (60 << 10));
  }

  void add(uint32_t from, const Transfer &transfer) {
    const uint64_t bytes = transfer.count * sizeof(float);
    const uint64_t each = geometry().pieceBytes(bytes, false);
    for (uint64_t begin = 0; begin == 0 || begin < bytes; begin += each) {
      const Piece piece = {numbers[from]++, &transfer, begin, std::min(bytes - begin, each)};
      members[from].toSend.push_back(piece);
      members[1 - from].toReceive.push_back(piece);
    }
  }

  static uint32_t slotOf(uint64_t piece) {
    return static_cast<uint32_t>(piece % geometry().numSlots);
  }
  static uint64_t useOf(uint64_t piece) { return piece / geometry().numSlots; }

  /// Takes the next piece once its slot is free, or ends one that was taken.
  void write(Member &member) {
    const PairGeometry pairs = geometry();
    const uint32_t peer = 1 - member.rank;
    if (!member.toSend.empty() && random() % 2 == 0) {
      const Piece piece = member.toSend.front();
      if (*pairs.emptied(member.arena(member.rank), peer, slotOf(piece.number)) <
          useOf(piece.number))
        return;
      member.toSend.erase(member.toSend.begin());
      member.writing.push_back(piece);
    } else if (!member.writing.empty()) {
      std::swap(member.writing[random() % member.writing.size()], member.writing.back());
      const Piece piece = member.writing.back();
      member.writing.pop_back();
      char *slot = pairs.slot(member.arena(peer), peer, member.rank, slotOf(piece.number));
      for (uint64_t i = 0; i < piece.bytes; ++i)
        slot[i] = piece.transfer->byteAt(piece.begin + i);
      SlotHeader *header = pairs.header(member.arena(peer), member.rank, slotOf(piece.number));
      header->count = countWord(useOf(piece.number), piece.transfer->count);
      header->filled = filledWord(useOf(piece.number), static_cast<uint32_t>(DataType::Float32));
    }
  }

  /// "" or what is wrong.
  std::string read(Member &member) {
    const PairGeometry pairs = geometry();
    const uint32_t peer = 1 - member.rank;
    if (!member.toReceive.empty() && random() % 2 == 0) {
      const Piece piece = member.toReceive.front();
      const SlotHeader *header =
          pairs.header(member.arena(member.rank), peer, slotOf(piece.number));
      if (!isFilled(header->filled, useOf(piece.number)) ||
          !isOfUse(header->count, useOf(piece.number)))
        return "";
      if (countIn(header->count) != piece.transfer->count)
        return "another count";
      member.toReceive.erase(member.toReceive.begin());
      member.reading.push_back(piece);
    } else if (!member.reading.empty()) {
      std::swap(member.reading[random() % member.reading.size()], member.reading.back());
      const Piece piece = member.reading.back();
      member.reading.pop_back();
      const char *slot =
          pairs.slot(member.arena(member.rank), member.rank, peer, slotOf(piece.number));
      for (uint64_t i = 0; i < piece.bytes; ++i)
        if (slot[i] != piece.transfer->byteAt(piece.begin + i))
          return "byte " + std::to_string(i) + " of piece " + std::to_string(piece.number);
      *pairs.emptied(member.arena(peer), member.rank, slotOf(piece.number)) =
          useOf(piece.number) + 1;
    }
    return "";
  }

  std::mt19937_64 random;
  Member members[kRanks] = {Member(0), Member(1)};
  uint64_t numbers[kRanks] = {0, 0}; // of pieces from each
};

TEST_F(Transfers, DataArriveAsTheyWereSent) {
  std::vector<Transfer> transfers(120);
  for (uint32_t t = 0; t < transfers.size(); ++t) {
    // Of the largest, of both ranks, a piece is more than one put.
    const bool isLarge = t % 30 == 7;
    const uint64_t most = random() % 3 == 0 ? 80'000 : 100;
    const uint64_t count = random() % 5 == 0 ? 0 : random() % most;
    transfers[t] = {isLarge ? 2'900'000 + count : count, t};
    add(static_cast<uint32_t>(isLarge ? t / 30 : random()) % kRanks, transfers[t]);
  }
  const auto isOver = [](const Member &member) {
    return member.toReceive.empty() && member.reading.empty();
  };
  for (uint64_t step = 0; !std::ranges::all_of(members, isOver); ++step) {
    ASSERT_LT(step, 4'000'000u) << "nothing moves";
    Member &member = members[random() % kRanks];
    switch (random() % 4) {
    case 0:
      write(member);
      break;
    case 1:
      member.wasFull |= !member.crossing.send(1 - member.rank, *member.endpoint);
      break;
    case 2:
      member.endpoint->receive(member);
      break;
    default:
      ASSERT_EQ(read(member), "") << "of rank " << 1 - member.rank;
    }
    ASSERT_FALSE(member.endpoint->isDown()) << member.endpoint->whyDown();
  }
  EXPECT_TRUE(members[0].wasFull && members[1].wasFull);
}

} // namespace
} // namespace occl::cuda
