#include "runtime/api/metrics/metrics_text.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace occl::communicator {

namespace {

constexpr std::array<std::string_view, 4> kOwnLabels = {"rank", "size", "id", "reason"};
constexpr std::array<const char *, occlNumWaitReasons> kReasons = {"announce",   "data",   "credit",
                                                                   "dependency", "signal", "begin"};

/// Exact, and by whole numbers alone: the library needs no functions of floating point.
std::string secondsOf(uint64_t nanoseconds) {
  constexpr uint64_t kSecond = 1'000'000'000;
  std::string text = std::to_string(nanoseconds / kSecond);
  if (nanoseconds % kSecond == 0)
    return text;
  const std::string fraction = std::to_string(kSecond + nanoseconds % kSecond).substr(1);
  return text + "." + fraction.substr(0, fraction.find_last_not_of('0') + 1);
}
std::string textOf(uint64_t value) { return std::to_string(value); }

using Value = std::string (*)(const SequenceCounters &);

struct SequenceMetric {
  const char *name, *kind, *what;
  Value value;
};

constexpr SequenceMetric kOfSequence[] = {
    {"submitted_total", "counter", "Invocations that this rank has submitted.",
     [](const SequenceCounters &of) { return textOf(of.collective.submitted); }},
    {"completed_total", "counter", "Invocations that have completed.",
     [](const SequenceCounters &of) { return textOf(of.collective.completed); }},
    {"failed_total", "counter", "Invocations that have failed.",
     [](const SequenceCounters &of) { return textOf(of.collective.failed); }},
    {"start_seconds_total", "counter", "From submission to the task queue.",
     [](const SequenceCounters &of) { return secondsOf(of.collective.startNs); }},
    {"announce_seconds_total", "counter",
     "From submission until all others were seen to have submitted.",
     [](const SequenceCounters &of) { return secondsOf(of.collective.announceNs); }},
    {"finish_seconds_total", "counter", "From submission to the end.",
     [](const SequenceCounters &of) { return secondsOf(of.collective.finishNs); }},
    {"finish_seconds_max", "gauge", "Longest time from submission to the end.",
     [](const SequenceCounters &of) { return secondsOf(of.collective.longestFinishNs); }},
    {"running_seconds_total", "counter", "Time that slices took.",
     [](const SequenceCounters &of) { return secondsOf(of.blocks.runningNs); }},
    {"preemptions_total", "counter", "Visits that ended with a thread block waiting.",
     [](const SequenceCounters &of) { return textOf(of.blocks.preemptions); }},
    {"slices_total", "counter", "Slices that were executed.",
     [](const SequenceCounters &of) { return textOf(of.blocks.slices); }},
    {"bytes_sent_total", "counter", "Bytes sent by completed invocations.",
     [](const SequenceCounters &of) { return textOf(of.blocks.bytesSent); }},
    {"bytes_received_total", "counter", "Bytes received by completed invocations.",
     [](const SequenceCounters &of) { return textOf(of.blocks.bytesReceived); }},
};

bool isNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool isName(std::string_view name) {
  return !name.empty() && isNameStart(name.front()) && !name.starts_with("__") &&
         std::ranges::all_of(name, [](char c) { return isNameStart(c) || (c >= '0' && c <= '9'); });
}

/// The length of the quoted value that the text begins with, both quotes included; 0 if it begins
/// with none.
size_t quotedLength(std::string_view text) {
  if (!text.starts_with('"'))
    return 0;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"')
      return i + 1;
    if (text[i] == '\n')
      return 0;
    if (text[i] != '\\')
      continue;
    ++i; // what follows is a part of the escape
    if (i == text.size() || std::string_view("\\\"n").find(text[i]) == std::string_view::npos)
      return 0;
  }
  return 0;
}

/// Metrics with their heads, one after the other.
class Exposition {
public:
  explicit Exposition(std::string labels) : labels(std::move(labels)) {}

  void head(const char *name, const char *kind, const char *what) {
    metric = name;
    text += "# HELP occl_" + metric + " " + what + "\n# TYPE occl_" + metric + " " + kind + "\n";
  }
  /// Of the last head; `more` are further labels, each behind a comma.
  void sample(const std::string &value, const std::string &more = "") {
    text += "occl_" + metric + "{" + labels + more + "} " + value + "\n";
  }

  std::string text;

private:
  std::string labels, metric;
};

std::string idLabel(const SequenceCounters &of) {
  return ",id=\"" + (of.id == OCCL_CALLS ? "calls" : std::to_string(of.id)) + "\"";
}

} // namespace

std::string whyNoLabels(std::string_view labels) {
  while (!labels.empty()) {
    const size_t equals = labels.find('=');
    const std::string_view name = labels.substr(0, equals);
    if (!isName(name) || std::ranges::find(kOwnLabels, name) != kOwnLabels.end())
      return "'" + std::string(name) +
             "' is no name for a label: letters, digits and _, and none of rank, size, id, reason";
    labels.remove_prefix(equals == std::string_view::npos ? labels.size() : equals + 1);
    const size_t length = quotedLength(labels);
    if (length == 0)
      return "the label '" + std::string(name) +
             "' has no value in quotes, in which \\\\, \\\" and \\n stand for what they are";
    labels.remove_prefix(length);
    if (labels.empty())
      break;
    if (labels.front() != ',' || labels.size() == 1)
      return "behind the label '" + std::string(name) + "' there is no comma with another one";
    labels.remove_prefix(1);
  }
  return "";
}

std::string metricsText(uint32_t rank, uint32_t numRanks, const occlStats_t &stats,
                        const std::vector<SequenceCounters> &sequences, std::string_view labels) {
  Exposition out("rank=\"" + std::to_string(rank) + "\",size=\"" + std::to_string(numRanks) + "\"" +
                 (labels.empty() ? "" : ",") + std::string(labels));
  const auto single = [&](const char *name, const char *kind, const char *what, uint64_t value) {
    out.head(name, kind, what);
    out.sample(textOf(value));
  };
  single("quits_total", "counter", "Voluntary quits of executors with nothing to do.", stats.quits);
  single("restarts_total", "counter", "Restarts of executors.", stats.restarts);
  single("queue_length_max", "gauge", "Longest task queue since the start.", stats.maxQueueLength);
  single("rank_bytes_sent_total", "counter", "Bytes that the rank has sent, by transfers, too.",
         stats.bytesSent);
  single("rank_bytes_received_total", "counter",
         "Bytes that the rank has received, by transfers, too.", stats.bytesReceived);
  for (const SequenceMetric &metric : kOfSequence) {
    out.head(metric.name, metric.kind, metric.what);
    for (const SequenceCounters &of : sequences)
      out.sample(metric.value(of), idLabel(of));
  }
  out.head("wait_seconds_total", "counter", "Time that thread blocks have waited, by reason.");
  for (const SequenceCounters &of : sequences)
    for (size_t reason = 0; reason < kReasons.size(); ++reason)
      out.sample(secondsOf(of.blocks.waitNs[reason]),
                 idLabel(of) + ",reason=\"" + kReasons[reason] + "\"");
  return out.text;
}

} // namespace occl::communicator
