// What occl-run and its agent on another machine tell each other: frames, on the standard input and
// output of the program that connects them, such as ssh.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace occl::run {

/// Of everything below. Both sides must have the same.
inline constexpr std::string_view kWireVersion = "2";
/// The agent's first output; whatever a login shell has said comes before it.
inline constexpr std::string_view kAgentMarker = "\n# OCCL-RUN AGENT #\n";

enum class FrameKind : uint32_t {
  // To the agent.
  Job = 1, // JobOnHost
  Signal,  // `rank` is its number: for all ranks there
  // To occl-run.
  Hello,   // a list: version, two free ports (for OCCL, for a store), addresses
  Refused, // why a rank cannot be started; no rank runs there
  Output,  // of a rank
  Errors,
  Ended, // a list: a rank's process, and its status as waitpid() has it
};

struct Frame {
  FrameKind kind;
  uint32_t rank;
  std::string payload;
};

std::string encode(FrameKind kind, uint32_t rank, std::string_view payload = {});

/// Frames out of bytes as they come.
class FrameReader {
public:
  void add(std::string_view bytes) { pending += bytes; }
  /// What comes before and with the marker; empty until that has come.
  std::optional<std::string> takeUntilMarker();
  std::optional<Frame> next();
  /// What was added is no sequence of frames.
  bool isBroken() const { return broken; }
  /// What has come and is no whole frame.
  const std::string &rest() const { return pending; }

private:
  std::string pending;
  bool broken = false;
};

std::string encodeList(const std::vector<std::string> &list);
std::vector<std::string> decodeList(std::string_view text);
/// 0 if it is none.
uint64_t numberIn(const std::string &text);

/// What the agent of one machine is to do.
struct JobOnHost {
  uint32_t firstRank = 0, numRanks = 0; // there
  uint32_t numAllRanks = 0;             // of the job
  std::string folder;
  std::vector<std::string> environment; // of all ranks, "NAME=value"; the agent adds a rank's place
  std::vector<std::string> command;
};

std::string encodeJob(const JobOnHost &job);
std::optional<JobOnHost> decodeJob(std::string_view text);

} // namespace occl::run
