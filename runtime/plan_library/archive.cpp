// Reads the archive of plans that is part of the library.
#include "runtime/plan_library/archive.h"

#include "runtime/plan_library/columns.h"

#include <zstd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace occl::plan_library {

namespace {

/// What a frame may unpack to: far more than there is.
constexpr uint64_t kMaxUnpacked = 1ull << 30;

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

/// Nothing if the frame is damaged, or not of so many bytes.
std::optional<std::string> unpack(std::span<const uint8_t> frame, uint64_t numBytes) {
  if (numBytes > kMaxUnpacked)
    return {};
  std::string bytes(numBytes, '\0');
  if (ZSTD_decompress(bytes.data(), bytes.size(), frame.data(), frame.size()) != numBytes)
    return {};
  return bytes;
}

bool readEntry(Words &words, Entry &entry) {
  const bool hasLimit = words.readLimit(entry.maxBytes);
  entry.algorithm = words.next();
  return hasLimit && words.read(entry.numBlocks) && words.read(entry.hash) &&
         words.read(entry.firstByte) && words.read(entry.packedBytes) && words.read(entry.numBytes);
}

} // namespace

StatusOr<Archive> Archive::read(std::span<const uint8_t> bytes) {
  std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  constexpr std::string_view kBegin = "OCCL plans 5 ";
  // The head has the version, and the bytes of the index, packed and unpacked.
  const size_t end = text.substr(0, 64).find('\n');
  if (!text.starts_with(kBegin) || end == text.npos)
    return damaged("it does not begin as one");
  Words words(text.substr(kBegin.size(), end - kBegin.size()));
  const std::span<const uint8_t> frames = bytes.subspan(end + 1);
  uint64_t packedBytes = 0, indexBytes = 0;
  if (!words.read(packedBytes) || !words.read(indexBytes) || packedBytes > frames.size())
    return damaged("the length of its index is wrong");
  std::optional<std::string> unpacked = unpack(frames.first(packedBytes), indexBytes);
  if (!unpacked)
    return damaged("its index cannot be unpacked");
  // Groups and entries are views of the index, which must not move.
  Archive archive;
  archive.index = std::make_unique<const std::string>(std::move(*unpacked));
  archive.packed = frames.subspan(packedBytes);
  if (Status status = archive.readIndex(); !status.ok())
    return status;
  return archive;
}

Status Archive::readIndex() {
  uint64_t end = 0;
  // A line begins a group, or adds a plan or a limit to the last one.
  for (std::string_view rest = *index; !rest.empty();) {
    const std::string_view line = takeUntil(rest, '\n');
    Words words(line);
    const std::string_view what = words.next();
    bool isRight = false;
    if (what == "for") {
      Group &group = all.emplace_back();
      group.planClass = words.next();
      group.collective = words.next();
      isRight = words.read(group.numRanks) && words.read(group.numIslands) &&
                group.numIslands > 0 && group.numRanks % group.numIslands == 0;
    } else if (what == "flat" && !all.empty()) {
      isRight = words.read(all.back().flatBytes);
    } else if (what == "plan" && !all.empty()) {
      Entry &entry = all.back().entries.emplace_back();
      entry.numIslands = all.back().numIslands;
      // The frame must lie within the archive.
      isRight = readEntry(words, entry) && entry.firstByte <= packed.size() &&
                entry.packedBytes <= packed.size() - entry.firstByte;
      end = std::max(end, entry.firstByte + entry.packedBytes);
    }
    if (!isRight)
      return damaged("its index has the line '" + std::string(line) + "'");
  }
  // Bytes that no entry names belong to another archive.
  return end == packed.size() ? Status() : damaged("there is more than its index names");
}

StatusOr<plan::Plan> Archive::planOf(const Entry &entry) const {
  const auto columns = unpack(packed.subspan(entry.firstByte, entry.packedBytes), entry.numBytes);
  auto plan = columns ? fromColumns(*columns) : std::nullopt;
  if (!plan)
    return damaged("a plan of " + std::string(entry.algorithm) + " cannot be unpacked");
  return std::move(*plan);
}

} // namespace occl::plan_library
