#include "tools/occl-run/hosts/wire.h"

#include <array>
#include <charconv>
#include <cstring>

namespace occl::run {
namespace {

/// Larger than any command line that a system takes.
constexpr uint32_t kMostBytes = 64 << 20;

} // namespace

std::string encode(FrameKind kind, uint32_t rank, std::string_view payload) {
  const std::array<uint32_t, 3> head = {static_cast<uint32_t>(kind), rank,
                                        static_cast<uint32_t>(payload.size())};
  std::string text(reinterpret_cast<const char *>(head.data()), sizeof head);
  text += payload;
  return text;
}

std::optional<std::string> FrameReader::takeUntilMarker() {
  const size_t at = pending.find(kAgentMarker);
  if (at == std::string::npos)
    return std::nullopt;
  std::string before = pending.substr(0, at);
  pending.erase(0, at + kAgentMarker.size());
  return before;
}

std::optional<Frame> FrameReader::next() {
  std::array<uint32_t, 3> head;
  // Frames may come in pieces, and several at once.
  if (broken || pending.size() < sizeof head)
    return std::nullopt;
  std::memcpy(head.data(), pending.data(), sizeof head);
  const auto [kind, rank, bytes] = head;
  // A frame that cannot be one means that the stream is out of step; nothing behind it can be
  // trusted.
  broken = kind < static_cast<uint32_t>(FrameKind::Job) ||
           kind > static_cast<uint32_t>(FrameKind::Ended) || bytes > kMostBytes;
  if (broken || pending.size() - sizeof head < bytes)
    return std::nullopt;
  Frame frame = {static_cast<FrameKind>(kind), rank, pending.substr(sizeof head, bytes)};
  pending.erase(0, sizeof head + bytes);
  return frame;
}

std::string encodeList(const std::vector<std::string> &list) {
  std::string text;
  for (const std::string &item : list)
    text += item + '\0';
  return text;
}

std::vector<std::string> decodeList(std::string_view text) {
  std::vector<std::string> list;
  for (size_t end; (end = text.find('\0')) != std::string_view::npos; text.remove_prefix(end + 1))
    list.emplace_back(text.substr(0, end));
  return list;
}

uint64_t numberIn(const std::string &text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

std::string encodeJob(const JobOnHost &job) {
  std::vector<std::string> list = {std::to_string(job.firstRank), std::to_string(job.numRanks),
                                   std::to_string(job.numAllRanks), job.folder,
                                   std::to_string(job.environment.size())};
  list.insert(list.end(), job.environment.begin(), job.environment.end());
  list.insert(list.end(), job.command.begin(), job.command.end());
  return encodeList(list);
}

std::optional<JobOnHost> decodeJob(std::string_view text) {
  const std::vector<std::string> list = decodeList(text);
  // Five fixed fields, the last of which says how many variables follow; the rest is the command,
  // which has one word at least.
  constexpr size_t kFixed = 5;
  const uint64_t numVariables = list.size() > kFixed ? numberIn(list[kFixed - 1]) : 0;
  if (list.size() <= kFixed || list.size() - kFixed <= numVariables)
    return std::nullopt;
  const auto variables = list.begin() + kFixed;
  const auto command = variables + static_cast<ptrdiff_t>(numVariables);
  return JobOnHost{static_cast<uint32_t>(numberIn(list[0])),
                   static_cast<uint32_t>(numberIn(list[1])),
                   static_cast<uint32_t>(numberIn(list[2])),
                   list[3],
                   {variables, command},
                   {command, list.end()}};
}

} // namespace occl::run
