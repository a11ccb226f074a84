#include "compiler/view/TraceReader.h"

#include "plan/model/trace_names.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <optional>

namespace occl::view {

namespace {

using nlohmann::json;
namespace names = plan::trace;

const json *member(const json &object, const char *key) {
  if (!object.is_object())
    return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}
std::string textOf(const json &object, const char *key) {
  const json *found = member(object, key);
  return found && found->is_string() ? found->get<std::string>() : "";
}
std::optional<double> numberOf(const json &object, const char *key) {
  const json *found = member(object, key);
  return found && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}
uint32_t indexOf(const json &object, const char *key) {
  const json *found = member(object, key);
  return found && found->is_number_unsigned() && found->get<uint64_t>() < kNone
             ? found->get<uint32_t>()
             : kNone;
}

class TraceReader {
public:
  explicit TraceReader(Schedule &schedule)
      : schedule(schedule), texts(schedule.texts), invocations(schedule.invocations) {}

  /// False if it lacks something.
  bool take(const json &event) {
    const std::string phase = textOf(event, "ph");
    // Metadata, spans, and both ends of flows; phases as Chrome's trace format has them.
    if (phase == "M")
      nameThread(event);
    else if (phase == "X")
      return takeSpan(event, numberOf(event, "dur"));
    else if (const std::string category = textOf(event, "cat");
             phase == "i" && (category == names::kMark || category == names::kRequest))
      return takeSpan(event, 0);
    else if (phase == "s" || phase == "f")
      return takeEnd(event, phase == "s");
    return true; // counters, and what others have added
  }

  void finish() {
    // Arrows from each sender to each receiver of a flow; a multicast has several receivers.
    for (const auto &[id, ends] : flows)
      for (const uint32_t from : ends.from)
        for (const uint32_t to : ends.to)
          schedule.arrows.push_back({from, to, ends.isSignal});
    // Names come at any place of a trace.
    for (auto &[thread, lane] : lanes)
      if (const auto name = threadNames.find(thread); name != threadNames.end())
        schedule.lanes[lane].name = name->second;
    sortLanes();
  }

private:
  using Thread = std::pair<uint32_t, uint32_t>; // rank, thread
  struct Flow {
    std::vector<uint32_t> from, to; // spans
    bool isSignal = false;
  };

  static std::optional<Thread> threadOf(const json &event) {
    const Thread thread = {indexOf(event, "pid"), indexOf(event, "tid")};
    return thread.first == kNone || thread.second == kNone ? std::nullopt : std::optional(thread);
  }

  void nameThread(const json &event) {
    const auto thread = threadOf(event);
    if (!thread || textOf(event, "name") != "thread_name")
      return;
    if (const json *arguments = member(event, "args"))
      threadNames[*thread] = textOf(*arguments, "name");
  }

  uint32_t laneOf(const Thread &thread) {
    const auto [lane, isNew] =
        lanes.try_emplace(thread, static_cast<uint32_t>(schedule.lanes.size()));
    if (isNew)
      schedule.lanes.push_back({thread.first, "thread " + std::to_string(thread.second)});
    return lane->second;
  }

  /// A moment is a span without a duration.
  bool takeSpan(const json &event, const std::optional<double> &duration) {
    // Times are required, everything else may be missing: traces are also written by other tools.
    const auto thread = threadOf(event);
    const auto begin = numberOf(event, "ts");
    if (!thread || !begin || !duration || *duration < 0)
      return false;
    static const json kNothing = json::object();
    const json *given = member(event, "args");
    const json &arguments = given ? *given : kNothing;
    const std::string category = textOf(event, "cat");
    Span span{.lane = laneOf(*thread), .begin = *begin, .duration = *duration};
    // A span is named by what it does; other categories by themselves.
    span.name =
        texts(category == names::kInstruction || category == names::kWait ? textOf(event, "name")
                                                                          : category);
    span.isInstruction = category == names::kInstruction;
    if (span.isInstruction || category == names::kWait)
      schedule.lanes[span.lane].isThreadBlock = true;
    // The text that is shown on hover.
    const std::string does = textOf(arguments, span.isInstruction ? "does" : "for");
    span.text = texts(does.empty() ? textOf(event, "name") : does);
    if (const std::string source = textOf(arguments, "source"); !source.empty())
      span.source = texts(source);
    span.instruction = indexOf(arguments, "instruction");
    const std::string collective = textOf(arguments, "collective");
    // Which run it belongs to: a trace may have many of the same collective.
    if (const uint32_t number = indexOf(arguments, "invocation"); number != kNone)
      span.invocation = invocations(collective + ", invocation " + std::to_string(number));
    if (category != names::kMark && category != names::kRequest)
      lastOf[*thread] = static_cast<uint32_t>(schedule.spans.size());
    schedule.spans.push_back(span);
    return true;
  }

  bool takeEnd(const json &event, bool isSender) {
    const auto thread = threadOf(event);
    const json *id = member(event, "id");
    if (!thread || !id)
      return false;
    // A flow's end belongs to the last span of its thread, as the format has it.
    const auto span = lastOf.find(*thread);
    if (textOf(event, "cat") != names::kFlow || span == lastOf.end())
      return true;
    // Either end may come first.
    Flow &flow = flows[id->dump()];
    (isSender ? flow.from : flow.to).push_back(span->second);
    flow.isSignal = textOf(event, "name") == names::kFlowOfSignal;
    return true;
  }

  /// Ranks, and in them threads, in order.
  void sortLanes() {
    // The map is sorted by rank and thread; spans get the new numbers.
    std::vector<uint32_t> position(schedule.lanes.size());
    std::vector<Lane> sorted;
    for (const auto &[thread, lane] : lanes) { // by rank and thread
      position[lane] = static_cast<uint32_t>(sorted.size());
      sorted.push_back(std::move(schedule.lanes[lane]));
    }
    schedule.lanes = std::move(sorted);
    for (Span &span : schedule.spans)
      span.lane = position[span.lane];
  }

  Schedule &schedule;
  Texts texts, invocations;
  std::map<Thread, std::string> threadNames;
  std::map<Thread, uint32_t> lanes, lastOf;
  std::map<std::string, Flow> flows;
};

void readPrediction(const json &about, Schedule &schedule) {
  // Only predictions say this; of a measurement it stays empty.
  schedule.plan = textOf(about, "plan");
  schedule.makespan = numberOf(about, "makespanMicroseconds").value_or(0);
  schedule.tiles = static_cast<uint64_t>(numberOf(about, "tiles").value_or(0));
  schedule.tilesInTrace = static_cast<uint64_t>(numberOf(about, "tilesInTrace").value_or(0));
  const json *links = member(about, "links");
  if (!links || !links->is_array())
    return;
  for (const json &link : *links)
    schedule.links.push_back({textOf(link, "name"),
                              static_cast<uint64_t>(numberOf(link, "bytes").value_or(0)),
                              numberOf(link, "busyMicroseconds").value_or(0)});
}

/// What instructions do: by lane and position.
using Actions = std::map<std::pair<uint32_t, uint32_t>, std::string>;

Actions actionsOf(const Schedule &schedule, const std::vector<uint32_t> &laneOf,
                  uint32_t invocation) {
  Actions actions;
  for (const Span &span : schedule.spans)
    if (span.isInstruction && (invocation == kNone || span.invocation == invocation))
      actions[{laneOf[span.lane], span.instruction}] = schedule.texts[span.text];
  return actions;
}

/// "thread block 3 of 'sum' (id 7)" without the collective.
std::string blockOf(const std::string &name) { return name.substr(0, name.find(" of ")); }

/// The lanes of `predicted` that those of `recorded` are; kNone for executors and the like.
std::vector<uint32_t> matchLanes(const Schedule &predicted, const Schedule &recorded) {
  std::map<std::pair<uint32_t, std::string>, uint32_t> known;
  for (uint32_t lane = 0; lane < predicted.lanes.size(); ++lane)
    known[{predicted.lanes[lane].rank, predicted.lanes[lane].name}] = lane;
  std::vector<uint32_t> matched;
  for (const Lane &lane : recorded.lanes) {
    const auto found = known.find({lane.rank, blockOf(lane.name)});
    matched.push_back(lane.isThreadBlock && found != known.end() ? found->second : kNone);
  }
  return matched;
}

/// Keeps the spans of these invocations, in their new lanes, from the first of each on.
void keep(Schedule &recorded, const std::vector<uint32_t> &laneOf,
          const std::vector<bool> &isKept) {
  // Each run begins at its first instruction, so that several can be laid over each other.
  std::vector<double> first(recorded.invocations.size(), -1);
  for (const Span &span : recorded.spans)
    if (span.isInstruction && span.invocation != kNone)
      first[span.invocation] =
          first[span.invocation] < 0 ? span.begin : std::min(first[span.invocation], span.begin);
  std::vector<Span> spans;
  std::vector<uint32_t> position(recorded.spans.size(), kNone);
  // Spans of runs that are shown, moved to lane and time of the prediction.
  for (size_t i = 0; i < recorded.spans.size(); ++i) {
    Span span = recorded.spans[i];
    if (span.invocation == kNone || !isKept[span.invocation] || laneOf[span.lane] == kNone)
      continue;
    position[i] = static_cast<uint32_t>(spans.size());
    span.lane = laneOf[span.lane];
    span.begin -= first[span.invocation];
    spans.push_back(span);
  }
  // Arrows whose two ends are shown.
  std::vector<Arrow> arrows;
  for (const Arrow &arrow : recorded.arrows)
    if (position[arrow.from] != kNone && position[arrow.to] != kNone)
      arrows.push_back({position[arrow.from], position[arrow.to], arrow.isSignal});
  recorded.spans = std::move(spans);
  recorded.arrows = std::move(arrows);
}

} // namespace

support::Expected<Schedule> readTrace(std::string_view trace, const std::string &origin) {
  Schedule schedule;
  TraceReader reader(schedule);
  uint64_t numEvents = 0;
  std::string wrong, key;
  // Events are taken as they are parsed, and not kept: traces are large.
  const auto take = [&](int depth, json::parse_event_t event, json &value) {
    if (event == json::parse_event_t::key && depth == 1)
      key = value.get<std::string>();
    if (event != json::parse_event_t::object_end || depth != 2 || key != "traceEvents")
      return true;
    ++numEvents;
    if (!reader.take(value) && wrong.empty())
      wrong = "event " + std::to_string(numEvents) + " lacks a time, a thread or an id";
    return false;
  };
  // What is left when the events have been taken: the head.
  const json rest = json::parse(trace.begin(), trace.end(), take, false);
  if (rest.is_discarded() || !member(rest, "traceEvents"))
    wrong = "this is neither a plan nor a trace: no JSON object with traceEvents";
  else if (wrong.empty() && schedule.spans.empty())
    wrong = "the trace has no events with a duration";
  if (!wrong.empty())
    return support::Status::error(origin + ": " + wrong);
  reader.finish();
  if (const json *about = member(rest, "otherData"))
    readPrediction(*about, schedule);
  return schedule;
}

support::Status keepRunsOf(const Schedule &predicted, Schedule &recorded,
                           const std::string &origin) {
  std::vector<uint32_t> own(predicted.lanes.size());
  std::iota(own.begin(), own.end(), 0u);
  // What the plan does on each lane, to find its runs by what they do: names may be alike.
  const Actions planned = actionsOf(predicted, own, kNone);
  const std::vector<uint32_t> laneOf = matchLanes(predicted, recorded);
  std::vector<bool> isKept;
  for (uint32_t i = 0; i < recorded.invocations.size(); ++i) {
    const Actions done = actionsOf(recorded, laneOf, i);
    // Several small instructions of LL are one event: so what was done may be a part.
    isKept.push_back(!done.empty() && std::ranges::all_of(done, [&](const auto &action) {
      const auto same = planned.find(action.first);
      return same != planned.end() && same->second == action.second;
    }));
  }
  if (std::ranges::find(isKept, true) == isKept.end())
    return support::Status::error(origin + ": the trace has no run of plan '" + predicted.plan +
                                  "'; its instructions do something else");
  keep(recorded, laneOf, isKept);
  recorded.lanes = predicted.lanes;
  return {};
}

} // namespace occl::view
