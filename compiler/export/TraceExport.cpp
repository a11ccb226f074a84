#include "compiler/export/TraceExport.h"

#include "compiler/cost/Predict.h"
#include "compiler/export/WaitText.h"
#include "plan/io/printer.h"
#include "plan/model/messages.h"
#include "plan/model/trace_names.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <ostream>
#include <vector>

namespace occl::exporter {

namespace {

/// Steps that are written if the plan has more on several tiles: viewers grow slow beyond.
constexpr uint64_t kMaxSteps = 1u << 17;

/// `text` as a JSON string.
std::string quoted(const std::string &text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Microseconds, the format's unit.
std::string microseconds(cost::Picoseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%llu.%06llu",
                static_cast<unsigned long long>(time / topology::kMicrosecond),
                static_cast<unsigned long long>(time % topology::kMicrosecond));
  return text;
}

class TraceWriter {
public:
  TraceWriter(const plan::Plan &plan, std::ostream &out)
      : plan(plan), out(out), sentBy(plan.instructions.size()),
        receivedBy(plan.instructions.size()) {
    for (const plan::Message &message : plan::messagesOf(plan)) {
      sentBy[message.sender].push_back(message);
      receivedBy[message.receiver].push_back(message);
    }
  }

  void note(const cost::StepRecord &step) { steps.push_back(step); }

  void run(const topology::Topology &topology, const cost::Prediction &prediction, uint64_t bytes) {
    // The head says what the trace is of, so that viewers can put a prediction and a measurement of
    // the same plan together.
    out << "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"plan\":" << quoted(plan.name)
        << ",\"collective\":" << quoted(plan.collective)
        << ",\"topology\":" << quoted(topology.name) << ",\"bytes\":" << bytes
        << ",\"tiles\":" << prediction.tiles << ",\"tilesInTrace\":" << prediction.simulatedTiles
        << ",\"makespanMicroseconds\":" << microseconds(prediction.makespan) << ",\"links\":[";
    writeLinks(prediction);
    out << "]},\"traceEvents\":[";
    // Names of processes and threads come first, then events in the order of their begin.
    writeNames();
    for (const cost::StepRecord &step : steps) {
      writeStep(step, prediction);
      writeMessages(step);
    }
    out << "\n]}\n";
  }

private:
  std::ostream &begin(const char *phase) {
    out << (isFirst ? "\n" : ",\n") << "{\"ph\":\"" << phase << '"';
    isFirst = false;
    return out;
  }

  void writeNames() {
    for (uint32_t r = 0; r < plan.numRanks; ++r) {
      // "M" is metadata: ranks are processes, thread blocks threads. Without a sort index, viewers
      // sort by name, and rank 10 would stand before rank 2.
      begin("M") << ",\"name\":\"process_name\",\"pid\":" << r << ",\"args\":{\"name\":\"rank " << r
                 << "\"}}";
      begin("M") << ",\"name\":\"process_sort_index\",\"pid\":" << r
                 << ",\"args\":{\"sort_index\":" << r << "}}";
      for (uint32_t b = 0; b < plan.ranks[r].numThreadBlocks; ++b)
        begin("M") << ",\"name\":\"thread_name\",\"pid\":" << r << ",\"tid\":" << b
                   << ",\"args\":{\"name\":\"thread block " << b << "\"}}";
    }
  }

  void writeEvent(const char *category, const std::string &name, const plan::Place &place,
                  cost::Picoseconds from, cost::Picoseconds to) {
    begin("X") << ",\"cat\":\"" << category << "\",\"name\":" << quoted(name)
               << ",\"pid\":" << place.rank << ",\"tid\":" << place.threadBlock
               << ",\"ts\":" << microseconds(from) << ",\"dur\":" << microseconds(to - from);
  }

  void writeStep(const cost::StepRecord &step, const cost::Prediction &prediction) {
    // A wait is an event of its own in front of the instruction, if there is any.
    plan::Place place = plan::placeOf(plan, step.instruction);
    const plan::Instruction &instruction = plan.instructions[step.instruction];
    if (step.begin > step.ready) {
      writeEvent(plan::trace::kWait,
                 plan::trace::kWaitPrefix + std::string(cost::nameOf(step.wait)), place, step.ready,
                 step.begin);
      out << ",\"args\":{\"for\":" << quoted(waitText(plan, step.wait, step.cause)) << "}}";
    }
    writeEvent(plan::trace::kInstruction, plan::mnemonic(instruction.opcode), place, step.begin,
               step.end);
    // The instruction, with what a viewer shows of it: position, tile, text, source line, and what
    // slowed it down.
    out << ",\"args\":{\"instruction\":" << place.instruction << ",\"tile\":" << step.tile
        << ",\"does\":" << quoted(plan::describeAction(plan, instruction));
    std::string source = plan::describeLocation(plan, instruction.location);
    if (!source.empty())
      out << ",\"source\":" << quoted(source);
    if (step.delay > 0)
      out << ",\"slowedBy\":" << quoted(prediction.resources[step.resource].name)
          << ",\"slowedByMicroseconds\":" << microseconds(step.delay);
    out << "}}";
  }

  /// Behind the event of the instruction that sends or receives them.
  void writeMessages(const cost::StepRecord &step) {
    // A flow binds to the event that encloses its time: not to the one after its sender.
    const cost::Picoseconds sent = step.end > step.begin ? step.end - 1 : step.end;
    for (const plan::Message &message : sentBy[step.instruction])
      writeFlow("s", message, step, sent);
    for (const plan::Message &message : receivedBy[step.instruction])
      writeFlow("f", message, step, step.begin);
  }

  void writeFlow(const char *phase, const plan::Message &message, const cost::StepRecord &step,
                 cost::Picoseconds time) {
    plan::Place place = plan::placeOf(plan, step.instruction);
    const char *name = message.isSignal ? plan::trace::kFlowOfSignal : plan::trace::kFlow;
    // Flow events ("s" and "f") draw an arrow between the events of two threads; both
    // ends have the same id. "bp":"e" binds the end to the enclosing event.
    begin(phase) << ",\"cat\":\"" << plan::trace::kFlow << "\",\"name\":\"" << name
                 << "\",\"id\":\"" << plan::nameOfMessage(message, step.tile)
                 << "\",\"pid\":" << place.rank << ",\"tid\":" << place.threadBlock
                 << ",\"ts\":" << microseconds(time) << (*phase == 'f' ? ",\"bp\":\"e\"}" : "}");
  }

  void writeLinks(const cost::Prediction &prediction) {
    const char *separator = "";
    for (const cost::ResourceUse &use : prediction.resources) {
      if (use.bytes == 0)
        // Links that carry nothing are left out.
        continue;
      out << separator << "{\"name\":" << quoted(use.name) << ",\"bytes\":" << use.bytes
          << ",\"busyMicroseconds\":" << microseconds(use.busy) << '}';
      separator = ",";
    }
  }

  const plan::Plan &plan;
  std::ostream &out;
  std::vector<cost::StepRecord> steps;
  std::vector<std::vector<plan::Message>> sentBy, receivedBy; // by instruction
  bool isFirst = true;
};

} // namespace

support::Status writeTrace(const plan::Plan &plan, const topology::Topology &topology,
                           uint64_t bytes, std::ostream &out) {
  TraceWriter writer(plan, out);
  support::Expected<cost::Prediction> prediction = cost::predict(
      plan, topology, {.bytes = bytes, .maxSteps = kMaxSteps, .onStep = [&](const auto &step) {
                         writer.note(step);
                       }});
  if (!prediction)
    return prediction.status();
  writer.run(topology, *prediction, bytes);
  return {};
}

} // namespace occl::exporter
