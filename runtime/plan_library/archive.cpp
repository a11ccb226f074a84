#include "runtime/plan_library/archive.h"

#include <lzma.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace occl::plan_library {

namespace {

/// What an index, or a blob, may unpack to: far more than there is.
constexpr uint64_t kMaxUnpacked = 1ull << 30;

Status damaged(const std::string &what) {
  return {StatusCode::InternalError,
          "the archive of plans in this build of OCCL is damaged: " + what + "; build it again"};
}

/// The first `wanted` bytes of what `packed` unpacks to; all of it must be sound if `wanted` is
/// what it has.
StatusOr<std::string> unpack(std::span<const uint8_t> packed, uint64_t wanted, bool isWhole,
                             const std::string &what) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, 256u << 20, 0) != LZMA_OK)
    return Status(StatusCode::SystemError, "no memory to unpack plans");
  std::string result;
  stream.next_in = packed.data();
  stream.avail_in = packed.size();
  lzma_ret state = LZMA_OK;
  while (state == LZMA_OK && result.size() < wanted) {
    size_t before = result.size();
    result.resize(std::min<uint64_t>(wanted, before + (1u << 20)));
    stream.next_out = reinterpret_cast<uint8_t *>(result.data()) + before;
    stream.avail_out = result.size() - before;
    state = lzma_code(&stream, LZMA_FINISH);
    result.resize(result.size() - stream.avail_out);
  }
  // The checksum comes after the last byte.
  uint8_t more = 0;
  if (isWhole && state == LZMA_OK) {
    stream.next_out = &more;
    stream.avail_out = 1;
    state = lzma_code(&stream, LZMA_FINISH);
  }
  lzma_end(&stream);
  if (state == LZMA_MEM_ERROR)
    return Status(StatusCode::SystemError, "no memory to unpack plans");
  if (result.size() != wanted ||
      (isWhole ? state != LZMA_STREAM_END : state != LZMA_OK && state != LZMA_STREAM_END))
    return damaged(what + " cannot be unpacked");
  return result;
}

/// What an index of unknown size unpacks to.
StatusOr<std::string> unpackIndex(std::span<const uint8_t> packed) {
  uint64_t memory = 256u << 20;
  size_t in = 0;
  for (size_t capacity = 1u << 16; capacity <= kMaxUnpacked; capacity *= 4) {
    std::string result(capacity, '\0');
    size_t out = in = 0;
    lzma_ret state =
        lzma_stream_buffer_decode(&memory, 0, nullptr, packed.data(), &in, packed.size(),
                                  reinterpret_cast<uint8_t *>(result.data()), &out, capacity);
    if (state == LZMA_BUF_ERROR && out == 0 && in == 0)
      continue; // too small
    if (state != LZMA_OK || in != packed.size())
      break;
    result.resize(out);
    return result;
  }
  return damaged("the index cannot be unpacked");
}

std::string_view takeUntil(std::string_view &text, char end) {
  const std::string_view taken = text.substr(0, text.find(end));
  text.remove_prefix(std::min(text.size(), taken.size() + 1));
  return taken;
}

/// Of a line, each one space behind the one before. Streams take milliseconds for an index.
class Words {
public:
  explicit Words(std::string_view line) : rest(line) {}

  std::string_view next() { return takeUntil(rest, ' '); }
  template <class Number> bool read(Number &number) { return parse(next(), number); }
  /// "-": all there are.
  bool readLimit(uint64_t &number) {
    const std::string_view word = next();
    number = ~uint64_t{0};
    return word == "-" || parse(word, number);
  }

private:
  template <class Number> static bool parse(std::string_view word, Number &number) {
    const char *end = word.data() + word.size();
    const auto [stopped, error] = std::from_chars(word.data(), end, number);
    return error == std::errc() && stopped == end;
  }

  std::string_view rest;
};

} // namespace

StatusOr<Archive> Archive::read(std::span<const uint8_t> bytes) {
  std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  constexpr std::string_view kBegin = "OCCL plans 1 ";
  size_t end = text.substr(0, 64).find('\n');
  uint64_t indexBytes = 0;
  if (!text.starts_with(kBegin) || end == text.npos)
    return damaged("it does not begin as one");
  auto parsed = std::from_chars(text.data() + kBegin.size(), text.data() + end, indexBytes);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + end ||
      indexBytes > bytes.size() - end - 1)
    return damaged("the length of its index is wrong");
  StatusOr<std::string> index = unpackIndex(bytes.subspan(end + 1, indexBytes));
  if (!index.ok())
    return index.status();
  Archive archive;
  if (Status status = archive.readIndex(*index, bytes.subspan(end + 1 + indexBytes)); !status.ok())
    return status;
  return archive;
}

Status Archive::readIndex(std::string_view index, std::span<const uint8_t> packed) {
  while (!index.empty()) {
    const std::string_view line = takeUntil(index, '\n');
    Words words(line);
    const std::string_view what = words.next();
    if (what == "blob") {
      uint64_t packedBytes = 0, numBytes = 0;
      if (!words.read(packedBytes) || !words.read(numBytes) || packedBytes > packed.size() ||
          numBytes > kMaxUnpacked)
        return damaged("it ends too early");
      blobs.push_back({packed.first(packedBytes), numBytes});
      packed = packed.subspan(packedBytes);
      continue;
    }
    Entry entry;
    entry.planClass = words.next();
    entry.collective = words.next();
    const bool hasRanks = words.read(entry.numRanks);
    const bool hasLimit = words.readLimit(entry.maxBytes);
    entry.algorithm = words.next();
    const bool hasPlace =
        words.read(entry.blob) && words.read(entry.firstByte) && words.read(entry.numBytes);
    if (what != "plan" || !hasRanks || !hasLimit || !hasPlace || entry.blob >= blobs.size() ||
        entry.firstByte > blobs[entry.blob].numBytes ||
        entry.numBytes > blobs[entry.blob].numBytes - entry.firstByte)
      return damaged("its index has the line '" + std::string(line) + "'");
    all.push_back(std::move(entry));
  }
  if (!packed.empty())
    return damaged("there is more than its index names");
  return {};
}

StatusOr<std::string> Archive::planOf(const Entry &entry) const {
  const Blob &blob = blobs[entry.blob];
  uint64_t end = entry.firstByte + entry.numBytes;
  StatusOr<std::string> unpacked =
      unpack(blob.packed, end, end == blob.numBytes,
             entry.collective + " of " + std::to_string(entry.numRanks) + " ranks");
  if (!unpacked.ok())
    return unpacked.status();
  return unpacked->substr(entry.firstByte);
}

} // namespace occl::plan_library
