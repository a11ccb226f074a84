// What `occl view` shows: instructions and waits in time, and the messages between them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace occl::view {

/// A row of the picture: a thread block of a rank, or something else that a trace has a row for.
struct Lane {
  uint32_t rank = 0;
  std::string name;
  bool isThreadBlock = false;

  bool operator==(const Lane &) const = default;
};

inline constexpr uint32_t kNone = ~0u;

/// Times are microseconds.
struct Span {
  uint32_t lane = 0;
  double begin = 0, duration = 0;
  uint32_t name = 0;           // in texts: the mnemonic, "wait: a message", ...
  uint32_t text = 0;           // in texts: what it does or waits for
  uint32_t source = kNone;     // in texts: "ring.coll:11:43"
  uint32_t invocation = kNone; // in invocations
  bool isInstruction = false;
  uint32_t instruction = kNone; // position in its thread block
};

struct Arrow {
  uint32_t from = 0, to = 0; // in spans
  bool isSignal = false;
};

struct Link {
  std::string name;
  uint64_t bytes = 0;
  double busy = 0;
};

struct Schedule {
  std::string plan;    // its name, if it is known
  double makespan = 0; // predicted, of all tiles; 0: not known
  uint64_t tiles = 0, tilesInTrace = 0;
  std::vector<std::string> texts;
  std::vector<Lane> lanes;
  std::vector<Span> spans;
  std::vector<Arrow> arrows;
  std::vector<Link> links;
  std::vector<std::string> invocations;
};

/// Strings by number, each once.
class Texts {
public:
  explicit Texts(std::vector<std::string> &texts) : texts(texts) {}
  uint32_t operator()(const std::string &text) {
    auto [place, isNew] = numbers.try_emplace(text, static_cast<uint32_t>(texts.size()));
    if (isNew)
      texts.push_back(text);
    return place->second;
  }

private:
  std::vector<std::string> &texts;
  std::map<std::string, uint32_t> numbers;
};

} // namespace occl::view
