#include "runtime/plan_library/archive.h"

#include <lzma.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace occl::plan_library {

namespace {

/// What a blob may unpack to: far more than there is.
constexpr uint64_t kMaxUnpacked = 1ull << 30;
/// Of the decoder.
constexpr uint64_t kMostMemory = 256u << 20;

Status damaged(const std::string &what) {
  return {StatusCode::InternalError,
          "the archive of plans in this build of OCCL is damaged: " + what + "; build it again"};
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

/// Where a decoder of a blob has come to. Its address stays: liblzma has it.
struct UnpackedBlob::Decoder {
  lzma_stream stream = LZMA_STREAM_INIT;
  lzma_ret state = LZMA_OK;

  Decoder() = default;
  Decoder(const Decoder &) = delete;
  Decoder &operator=(const Decoder &) = delete;
  ~Decoder() { lzma_end(&stream); }

  /// Appends up to `wanted` bytes.
  void decode(std::string &bytes, uint64_t wanted) {
    const size_t before = bytes.size();
    bytes.resize(before + wanted);
    stream.next_out = reinterpret_cast<uint8_t *>(bytes.data()) + before;
    stream.avail_out = wanted;
    while (state == LZMA_OK && stream.avail_out != 0)
      state = lzma_code(&stream, LZMA_FINISH);
    bytes.resize(bytes.size() - stream.avail_out);
  }
  /// The checksum comes after the last byte.
  void finish() {
    uint8_t more = 0;
    stream.next_out = &more;
    stream.avail_out = 1;
    if (state == LZMA_OK)
      state = lzma_code(&stream, LZMA_FINISH);
  }
};

UnpackedBlob::UnpackedBlob() = default;
UnpackedBlob::~UnpackedBlob() = default;

bool UnpackedBlob::begin(uint32_t newBlob, std::span<const uint8_t> packed) {
  blob = newBlob;
  bytes.clear();
  decoder = std::make_unique<Decoder>();
  decoder->stream.next_in = packed.data();
  decoder->stream.avail_in = packed.size();
  return lzma_stream_decoder(&decoder->stream, kMostMemory, 0) == LZMA_OK;
}

/// All of it has to be sound when its end is reached.
bool UnpackedBlob::reach(uint64_t end, uint64_t numBytes) {
  if (bytes.size() >= end)
    return true;
  if (!decoder)
    return false;
  bytes.reserve(std::min(numBytes, std::max(end, 2 * bytes.size())));
  decoder->decode(bytes, end - bytes.size());
  if (end == numBytes)
    decoder->finish();
  const bool isSound =
      bytes.size() == end && (decoder->state == LZMA_STREAM_END ||
                              (decoder->state == LZMA_OK && end != numBytes));
  if (!isSound || end == numBytes)
    decoder.reset();
  return isSound;
}

StatusOr<Archive> Archive::read(std::span<const uint8_t> bytes) {
  std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  constexpr std::string_view kBegin = "OCCL plans 2 ";
  const size_t end = text.substr(0, 64).find('\n');
  if (!text.starts_with(kBegin) || end == text.npos)
    return damaged("it does not begin as one");
  Words words(text.substr(kBegin.size(), end - kBegin.size()));
  uint64_t indexBytes = 0;
  uint32_t checksum = 0;
  if (!words.read(indexBytes) || !words.read(checksum) || indexBytes > bytes.size() - end - 1)
    return damaged("the length of its index is wrong");
  const std::string_view index = text.substr(end + 1, indexBytes);
  if (lzma_crc32(bytes.data() + end + 1, indexBytes, 0) != checksum)
    return damaged("its index has another checksum");
  Archive archive;
  if (Status status = archive.readIndex(index, bytes.subspan(end + 1 + indexBytes)); !status.ok())
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

StatusOr<std::string_view> Archive::planOf(const Entry &entry, UnpackedBlob &unpacked) const {
  const Blob &blob = blobs[entry.blob];
  if (unpacked.blob != entry.blob && !unpacked.begin(entry.blob, blob.packed)) {
    unpacked.blob = UnpackedBlob::kNone;
    return Status(StatusCode::SystemError, "no memory to unpack plans");
  }
  const uint64_t end = entry.firstByte + entry.numBytes;
  if (!unpacked.reach(end, blob.numBytes)) {
    unpacked.blob = UnpackedBlob::kNone;
    return damaged(entry.collective + " of " + std::to_string(entry.numRanks) +
                   " ranks cannot be unpacked");
  }
  return std::string_view(unpacked.bytes).substr(entry.firstByte, entry.numBytes);
}

} // namespace occl::plan_library
