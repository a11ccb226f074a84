#include "runtime/control/records/segment.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace occl::transport {
namespace {

/// Anonymous memory for a segment.
class Memory {
public:
  explicit Memory(uint64_t bytes) : bytes(bytes) {
    start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~Memory() { ::munmap(start, bytes); }
  std::span<std::byte> span() const { return {static_cast<std::byte *>(start), bytes}; }

private:
  uint64_t bytes;
  void *start;
};

TEST(Segment, OpensWhatWasFormatted) {
  Memory memory(Segment::bytesFor(1 << 20));
  auto own = Segment::format(memory.span(), 3, 8);
  ASSERT_TRUE(own.ok());
  auto opened = Segment::open(memory.span(), 3, 8);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ(opened->arenaBytes(), 1u << 20);
  AnnounceOwner(own->announceTable()).take(42)->publish(0, 0, {});
  EXPECT_NE(opened->announceTable().find(42), nullptr);
}

TEST(Segment, WordsThatAllWriteHavePagesOfTheirOwn) {
  constexpr uint64_t kPage = kSegmentPage;
  Memory memory(Segment::bytesFor(2 * kPage + 1, kPage + 1));
  auto own = Segment::format(memory.span(), 0, 2, kPage + 1);
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(kPage % static_cast<uint64_t>(sysconf(_SC_PAGESIZE)), 0u);
  std::span<std::byte> shared = own->sharedPages(), heap = own->heap();
  EXPECT_EQ(own->arenaBytes(), 3 * kPage);
  EXPECT_EQ(heap.size(), 2 * kPage);
  EXPECT_EQ((shared.data() - memory.span().data()) % kPage, 0u);
  EXPECT_EQ(shared.size() % kPage, 0u);
  // header, tables and rings | arena | shared arena, heads and words | heap
  EXPECT_GT(own->arena(), memory.span().data() + sizeof(SegmentHeader));
  EXPECT_EQ(own->arena() + own->arenaBytes(), shared.data());
  EXPECT_EQ(own->sharedArena(), shared.data());
  auto *words = reinterpret_cast<std::byte *>(&own->words());
  auto *heads = reinterpret_cast<std::byte *>(own->ringTo(0).head);
  constexpr uint64_t kHeads = Segment::kMostRanks * sizeof(RingPosition);
  EXPECT_EQ(reinterpret_cast<std::byte *>(own->noticesTo(0).head),
            own->sharedArena() + own->arenaBytes());
  EXPECT_EQ(heads, own->sharedArena() + own->arenaBytes() + kHeads);
  EXPECT_EQ(words, heads + kHeads);
  EXPECT_LE(words + sizeof(SharedWords), shared.data() + shared.size());
  EXPECT_EQ(shared.data() + shared.size(), heap.data());
  EXPECT_EQ(heap.data() + heap.size(), memory.span().data() + memory.span().size());
}

/// Rings, tails and heads of all ranks lie apart, tails and rings where the owner alone may write.
TEST(Segment, EachRankHasARingOfItsOwn) {
  for (uint32_t numRanks : {1u, 2u, 512u, 513u, 1024u}) {
    Memory memory(Segment::bytesFor(1 << 20, 1 << 20));
    auto own = Segment::format(memory.span(), 0, numRanks, 1 << 20);
    ASSERT_TRUE(own.ok());
    const PairRing first = own->ringTo(0), last = own->ringTo(numRanks - 1);
    EXPECT_EQ(first.size, numRanks <= 512 ? 256u << 10 : 128u << 10);
    EXPECT_EQ(last.data, first.data + (numRanks - 1) * first.size);
    EXPECT_EQ(last.tail, first.tail + numRanks - 1);
    EXPECT_EQ(last.head, first.head + numRanks - 1);
    EXPECT_LE(reinterpret_cast<std::byte *>(last.tail + 1), first.data);
    EXPECT_LE(last.data + last.size, own->arena());
    std::span<std::byte> shared = own->sharedPages();
    EXPECT_GE(reinterpret_cast<std::byte *>(first.head), shared.data());
    EXPECT_LE(reinterpret_cast<std::byte *>(last.head + 1),
              reinterpret_cast<std::byte *>(&own->words()));
    EXPECT_EQ(Segment::open(memory.span(), 0, numRanks)->ringTo(numRanks - 1).data, last.data);
  }
  Memory memory(Segment::bytesFor(1 << 20));
  EXPECT_EQ(Segment::format(memory.span(), 0, 1025).status().code(), StatusCode::InvalidArgument);
}

/// Each pair has its own, beside all that is there else.
TEST(Segment, NoticesAndWordsOfPartitionedRequests) {
  Memory memory(Segment::bytesFor(1 << 20));
  auto own = Segment::format(memory.span(), 0, 1024);
  ASSERT_TRUE(own.ok());
  const PairRing first = own->noticesTo(0), last = own->noticesTo(1023), data = own->ringTo(0);
  EXPECT_EQ(first.size, 4096u);
  EXPECT_EQ(last.tail, first.tail + 1023);
  EXPECT_EQ(last.head, first.head + 1023);
  EXPECT_EQ(last.data, first.data + 1023 * first.size);
  EXPECT_LE(reinterpret_cast<std::byte *>(last.tail + 1), first.data);
  const std::span<std::byte> words = own->partitionedWords();
  EXPECT_LE(last.data + last.size, words.data());
  EXPECT_LE(words.data() + words.size(), reinterpret_cast<std::byte *>(data.tail));
  EXPECT_GE(reinterpret_cast<std::byte *>(first.head), own->sharedPages().data());
  EXPECT_LE(last.head + 1, data.head);
}

TEST(Segment, LaterStoresToTheOwnersHeaderMoveNothing) {
  Memory memory(Segment::bytesFor(1 << 20, 1 << 20));
  ASSERT_TRUE(Segment::format(memory.span(), 0, 2, 1 << 20).ok());
  auto opened = Segment::open(memory.span(), 0, 2);
  ASSERT_TRUE(opened.ok());
  const Segment before = *opened;
  std::memset(memory.span().data(), 0xff, sizeof(SegmentHeader));
  EXPECT_EQ(opened->arena(), memory.span().data() + Segment::bytesFor(0) - 4096 -
                                 2 * Segment::kMostRanks * sizeof(RingPosition));
  EXPECT_EQ(opened->arenaBytes(), 1u << 20);
  EXPECT_EQ(opened->heap().data(), before.heap().data());
  EXPECT_EQ(opened->heap().size(), 1u << 20);
  EXPECT_EQ(&opened->words(), &before.words());
}

TEST(Segment, RefusesSizesThatDoNotFit) {
  for (uint64_t heapBytes : {uint64_t{1}, uint64_t{4096}, uint64_t{1} << 63, ~uint64_t{0}}) {
    Memory memory(Segment::bytesFor(8192));
    ASSERT_TRUE(Segment::format(memory.span(), 0, 2).ok());
    reinterpret_cast<SegmentHeader *>(memory.span().data())->heapBytes = heapBytes;
    EXPECT_EQ(Segment::open(memory.span(), 0, 2).status().code(), StatusCode::Mismatch);
  }
  Memory memory(Segment::bytesFor(8192));
  ASSERT_TRUE(Segment::format(memory.span(), 0, 2).ok());
  reinterpret_cast<SegmentHeader *>(memory.span().data())->arenaBytes = 1 << 30;
  EXPECT_EQ(Segment::open(memory.span(), 0, 2).status().code(), StatusCode::Mismatch);
}

TEST(Segment, RefusesForeignMemorySayingWhatDiffers) {
  Memory memory(Segment::bytesFor(4096));
  EXPECT_EQ(Segment::open(memory.span(), 0, 2).status().code(), StatusCode::Mismatch);
  ASSERT_TRUE(Segment::format(memory.span(), 0, 2).ok());
  EXPECT_NE(Segment::open(memory.span(), 1, 2).status().message().find("rank: expected 1, got 0"),
            std::string::npos);
  EXPECT_NE(Segment::open(memory.span(), 0, 3)
                .status()
                .message()
                .find("number of ranks: expected 3, got 2"),
            std::string::npos);
  EXPECT_EQ(Segment::open(memory.span().first(4096), 0, 2).status().code(), StatusCode::Mismatch);
  EXPECT_EQ(Segment::format(memory.span().first(4096), 0, 2).status().code(),
            StatusCode::InvalidArgument);
}

TEST(FailureCause, KeepsTheFirstCauseAndCutsLongText) {
  FailureCause word;
  EXPECT_TRUE(word.readCause().ok());
  word.writeCause({StatusCode::Timeout, std::string(10000, 'x')});
  word.writeCause({StatusCode::Aborted, "later"});
  EXPECT_EQ(word.readCause().code(), StatusCode::Timeout);
  EXPECT_EQ(word.readCause().message(), std::string(FailureCause::kTextBytes - 1, 'x'));
}

TEST(FailureCause, DamagedCodeIsAnInternalError) {
  FailureCause word;
  word.writeCause({StatusCode::Timeout, "late"});
  for (uint32_t code :
       {static_cast<uint32_t>(StatusCode::Success), static_cast<uint32_t>(StatusCode::Again),
        static_cast<uint32_t>(StatusCode::InProgress), 1000u}) {
    word.code = code;
    EXPECT_EQ(word.readCause().code(), StatusCode::InternalError) << code;
  }
}

} // namespace
} // namespace occl::transport
