#include "runtime/transport/segment.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

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
  EXPECT_EQ(opened->arena() + opened->arenaBytes(), memory.span().data() + memory.span().size());
  AnnounceOwner(own->announceTable()).take(42)->publish(0, 0, {});
  EXPECT_NE(opened->announceTable().find(42), nullptr);
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

TEST(FailureWord, KeepsTheFirstCauseAndCutsLongText) {
  FailureWord word;
  EXPECT_TRUE(word.readCause().ok());
  word.writeCause({StatusCode::Timeout, std::string(10000, 'x')});
  word.writeCause({StatusCode::Aborted, "later"});
  EXPECT_EQ(word.readCause().code(), StatusCode::Timeout);
  EXPECT_EQ(word.readCause().message(), std::string(FailureWord::kTextBytes - 1, 'x'));
}

TEST(FailureWord, DamagedCodeIsAnInternalError) {
  FailureWord word;
  word.writeCause({StatusCode::Timeout, "late"});
  word.code = 1000;
  EXPECT_EQ(word.readCause().code(), StatusCode::InternalError);
}

} // namespace
} // namespace occl::transport
