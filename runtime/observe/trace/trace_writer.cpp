// Writes recorded events as JSON, thread block by thread block.
#include "runtime/observe/trace/trace_writer.h"

#include "plan/io/printer.h"
#include "plan/model/messages.h"
#include "plan/model/trace_names.h"
#include "runtime/control/records/wait_edges.h"
#include "runtime/observe/report/wait_text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <ostream>

namespace occl::insight {

namespace {

namespace names = plan::trace;

std::string quoted(const std::string &text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Threads of a rank's process that are no thread blocks come after all that are.
constexpr uint32_t kRequests = 1'000'000;
constexpr uint32_t kFirstExecutor = kRequests + 1;

const char *waitName(uint8_t reason) {
  switch (static_cast<transport::WaitReason>(reason)) {
  case transport::WaitReason::Data:
    return names::kMessage;
  case transport::WaitReason::Credit:
    return names::kCredit;
  case transport::WaitReason::Dependency:
    return names::kDependency;
  case transport::WaitReason::Signal:
    return names::kSignal;
  case transport::WaitReason::Announce:
  case transport::WaitReason::Begin:
    // Plans have no such waits, so their names are the runtime's.
    break;
  }
  return toString(static_cast<transport::WaitReason>(reason));
}

std::string marked(const std::array<uint64_t, 2> &detail) {
  const auto &[first, number] = detail;
  return number == 1 ? "partition " + std::to_string(first) + " ready"
                     : "partitions " + std::to_string(first) + " to " +
                           std::to_string(first + number - 1) + " ready";
}

std::string momentName(const TraceEvent &event) {
  // Spans have names of their own; these are points in time.
  switch (event.kind) {
  case TraceKind::Mark:
    return marked(event.detail);
  case TraceKind::Submit:
    return "submitted";
  case TraceKind::Announced:
    return "announced by all";
  case TraceKind::Start:
    return "started";
  case TraceKind::Preempt:
    return "preempted";
  case TraceKind::Finish:
    return "finished";
  default:
    return "complete";
  }
}

class TraceWriter {
public:
  TraceWriter(std::ostream &out, const TraceHeader &header, const LookUp &lookUp)
      : out(out), header(header), lookUp(lookUp) {}

  void run(const Trace::Recording &recording) {
    out << "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"rank\":" << header.rank
        << ",\"ranks\":" << header.numRanks << ",\"events\":" << recording.events.size()
        << ",\"dropped\":" << recording.dropped << "},\"traceEvents\":[";
    assignThreads(recording.events);
    writeNames(recording.dropped);
    for (const TraceEvent &event : recording.events)
      write(event);
    out << "\n]}\n";
  }

private:
  struct Collective {
    KnownCollective known;
    uint32_t numBlocks = 0;
    uint32_t firstThread = 0;
    std::map<uint32_t, std::vector<plan::Message>> sentBy, receivedBy; // by instruction
  };

  void assignThreads(const std::vector<TraceEvent> &events) {
    // Find the executors, and how many thread blocks each collective has.
    for (const TraceEvent &event : events) {
      if (event.kind == TraceKind::Visit || event.kind == TraceKind::Callback)
        executors.emplace(event.executor, 0);
      Collective &collective = collectives[event.collective];
      collective.numBlocks = std::max(collective.numBlocks, event.block + 1);
    }
    // Thread blocks of all collectives are numbered consecutively.
    uint32_t next = 0, executor = 0;
    for (auto &[id, collective] : collectives) {
      collective.known = lookUp(id);
      if (const plan::Plan *plan = collective.known.plan.get()) {
        // The plan may have thread blocks without any event.
        collective.numBlocks =
            std::max(collective.numBlocks, plan->ranks[header.rank].numThreadBlocks);
        for (const plan::Message &message : plan::messagesOf(*plan)) {
          collective.sentBy[message.sender].push_back(message);
          collective.receivedBy[message.receiver].push_back(message);
        }
      }
      collective.firstThread = next;
      next += collective.numBlocks;
    }
    // Executors are numbered by their rings.
    for (auto &[ring, thread] : executors)
      thread = executor++;
  }

  std::ostream &begin(const char *phase) {
    out << (isFirst ? "\n" : ",\n") << "{\"ph\":\"" << phase << "\",\"pid\":" << header.rank;
    isFirst = false;
    return out;
  }

  void nameThread(uint32_t thread, const std::string &name) {
    begin("M") << ",\"name\":\"thread_name\",\"tid\":" << thread
               << ",\"args\":{\"name\":" << quoted(name) << "}}";
    begin("M") << ",\"name\":\"thread_sort_index\",\"tid\":" << thread
               << ",\"args\":{\"sort_index\":" << thread << "}}";
  }

  static std::string nameOfExecutor(uint16_t ring, uint32_t number) {
    if (ring < kFirstDeviceExecutor)
      return "thread " + std::to_string(number);
    const uint32_t onDevice = ring - kFirstDeviceExecutor;
    return "executor " + std::to_string(onDevice % kExecutorsOfDaemon) + " of device daemon " +
           std::to_string(onDevice / kExecutorsOfDaemon);
  }

  void writeNames(uint64_t dropped) {
    std::string rank = "rank " + std::to_string(header.rank);
    if (dropped != 0)
      rank += " (" + std::to_string(dropped) + " earlier events dropped)";
    begin("M") << ",\"name\":\"process_name\",\"args\":{\"name\":" << quoted(rank) << "}}";
    begin("M") << ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":" << header.rank
               << "}}";
    // Each thread block has a row, then requests, then executors.
    for (const auto &[id, collective] : collectives)
      for (uint32_t b = 0; b < collective.numBlocks; ++b)
        nameThread(collective.firstThread + b,
                   "thread block " + std::to_string(b) +
                       (collectives.size() > 1 ? " of " + collective.known.name : ""));
    nameThread(kRequests, "requests");
    for (const auto &[ring, executor] : executors)
      nameThread(kFirstExecutor + executor, nameOfExecutor(ring, executor));
  }

  void write(const TraceEvent &event) {
    const Collective &collective = collectives.at(event.collective);
    // Each kind has its row: a thread block, an executor, or the requests.
    switch (event.kind) {
    case TraceKind::Run:
      return writeRun(event, collective);
    case TraceKind::Wait:
      return writeWait(event, collective);
    case TraceKind::Visit:
    case TraceKind::Callback:
      return writeExecutor(event, collective);
    case TraceKind::Preempt:
      return writeMoment(event, collective, collective.firstThread + event.block);
    default:
      return writeMoment(event, collective, kRequests);
    }
  }

  void writeSpan(const char *category, const std::string &name, uint32_t thread,
                 const TraceEvent &event) {
    begin("X") << ",\"cat\":\"" << category << "\",\"name\":" << quoted(name)
               << ",\"tid\":" << thread;
    writeTimes(event);
  }
  void writeTimes(const TraceEvent &event, bool hasDuration = true) {
    uint64_t from = timeOf(event.begin), to = timeOf(event.end);
    char text[80];
    std::snprintf(text, sizeof text, ",\"ts\":%llu.%03llu", micros(from), rest(from));
    out << text;
    if (!hasDuration)
      return;
    std::snprintf(text, sizeof text, ",\"dur\":%llu.%03llu", micros(to - from), rest(to - from));
    out << text;
  }
  uint64_t timeOf(Ticks time) const {
    uint64_t nanoseconds = scale.timeOf(time);
    return nanoseconds > header.origin ? nanoseconds - header.origin : 0;
  }
  static unsigned long long micros(uint64_t nanoseconds) { return nanoseconds / 1000; }
  static unsigned long long rest(uint64_t nanoseconds) { return nanoseconds % 1000; }

  std::ostream &writeInvocation(const TraceEvent &event, const Collective &collective) {
    return out << ",\"args\":{\"collective\":" << quoted(collective.known.name)
               << ",\"invocation\":" << event.ordinal;
  }

  const plan::Instruction *instructionOf(const TraceEvent &event, const Collective &collective) {
    const plan::Plan *plan = collective.known.plan.get();
    return plan ? findInstruction(*plan, {header.rank, event.block, event.instruction}) : nullptr;
  }

  void writeRun(const TraceEvent &event, const Collective &collective) {
    const plan::Instruction *instruction = instructionOf(event, collective);
    writeSpan(names::kInstruction, instruction ? plan::mnemonic(instruction->opcode) : "run",
              collective.firstThread + event.block, event);
    writeInvocation(event, collective)
        << ",\"instruction\":" << event.instruction << ",\"tile\":" << event.detail[0]
        << ",\"slice\":" << event.detail[1];
    if (instruction) {
      const plan::Plan &plan = *collective.known.plan;
      out << ",\"does\":" << quoted(plan::describeAction(plan, *instruction));
      std::string source = plan::describeLocation(plan, instruction->location);
      if (!source.empty())
        out << ",\"source\":" << quoted(source);
    }
    out << "}}";
    // A message begins and ends with its first slice.
    if (instruction && event.detail[1] == 0)
      writeMessages(event, collective, *instruction);
  }

  void writeMessages(const TraceEvent &event, const Collective &collective,
                     const plan::Instruction &instruction) {
    const auto index =
        static_cast<uint32_t>(&instruction - collective.known.plan->instructions.data());
    const auto write = [&](const char *phase, const auto &messages, Ticks time) {
      if (const auto found = messages.find(index); found != messages.end())
        for (const plan::Message &message : found->second)
          writeFlow(phase, message, event, collective, time);
    };
    // The arrow must leave within its span, of which the end is no part.
    write("s", collective.sentBy, event.end > event.begin ? event.end - 1 : event.end);
    write("f", collective.receivedBy, event.begin);
  }

  void writeFlow(const char *phase, const plan::Message &message, const TraceEvent &event,
                 const Collective &collective, Ticks time) {
    begin(phase) << ",\"cat\":\"" << names::kFlow << "\",\"name\":\""
                 << (message.isSignal ? names::kFlowOfSignal : names::kFlow) << "\",\"id\":\""
                 << event.collective << '.' << event.ordinal << '.'
                 << plan::nameOfMessage(message, event.detail[0])
                 << "\",\"tid\":" << collective.firstThread + event.block;
    writeTimes({.begin = time, .end = time}, false);
    out << (*phase == 'f' ? ",\"bp\":\"e\"}" : "}");
  }

  void writeWait(const TraceEvent &event, const Collective &collective) {
    writeSpan(names::kWait, std::string(names::kWaitPrefix) + waitName(event.reason),
              collective.firstThread + event.block, event);
    writeInvocation(event, collective)
        << ",\"instruction\":" << event.instruction << ",\"for\":\"rank " << event.peer << "\"}}";
  }

  void writeExecutor(const TraceEvent &event, const Collective &collective) {
    uint32_t thread = kFirstExecutor + executors.at(event.executor);
    if (event.kind == TraceKind::Callback) {
      writeSpan("callback", "callback", thread, event);
      writeInvocation(event, collective) << "}}";
      return;
    }
    writeSpan("visit", collective.known.name, thread, event);
    writeInvocation(event, collective)
        << ",\"block\":" << event.block << ",\"position\":" << event.detail[0]
        << ",\"queueLength\":" << event.detail[1] << "}}";
    // A counter keeps its value until the next event.
    if (event.detail[1] != queueLength)
      writeQueueLength(event, event.detail[1]);
  }

  void writeQueueLength(const TraceEvent &event, uint64_t length) {
    queueLength = length;
    begin("C") << ",\"name\":\"task queue\"";
    writeTimes({.begin = event.begin, .end = event.begin});
    out << ",\"args\":{\"length\":" << length << "}}";
  }

  void writeMoment(const TraceEvent &event, const Collective &collective, uint32_t thread) {
    begin("i") << ",\"s\":\"t\",\"cat\":\""
               << (event.kind == TraceKind::Mark ? names::kMark : names::kRequest)
               << "\",\"name\":\"" << momentName(event) << "\",\"tid\":" << thread;
    writeTimes(event);
    writeInvocation(event, collective);
    if (event.kind == TraceKind::Preempt)
      out << ",\"position\":" << event.detail[0] << ",\"queueLength\":" << event.detail[1];
    if (event.kind == TraceKind::Start)
      out << ",\"queueLength\":" << event.detail[0];
    if (event.kind == TraceKind::Complete)
      out << ",\"result\":" << event.detail[0];
    out << "}}";
  }

  std::ostream &out;
  const TraceHeader &header;
  const LookUp &lookUp;
  const TickScale scale;
  std::map<uint64_t, Collective> collectives;
  std::map<uint16_t, uint32_t> executors; // by ring
  uint64_t queueLength = ~0ull;
  bool isFirst = true;
};

} // namespace

void writeTrace(std::ostream &out, const TraceHeader &header, const Trace::Recording &recording,
                const LookUp &lookUp) {
  TraceWriter(out, header, lookUp).run(recording);
}

} // namespace occl::insight
