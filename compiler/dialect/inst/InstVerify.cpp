// What makes an inst.program well-formed: shapes and ranges of each instruction, and that messages
// have one sender and their receivers, in the same order and of the same size on both ends.
#include "compiler/dialect/ProgramHeader.h"
#include "compiler/dialect/inst/Connections.h"
#include "compiler/dialect/inst/Inst.h"
#include "plan/model/limits.h"

#include "llvm/ADT/DenseMap.h"

#include <algorithm>
#include <functional>
#include <numeric>

using namespace mlir;
using namespace occl;
using namespace occl::inst;

static plan::OperandKind bufferOf(PlaceKind kind) { return static_cast<plan::OperandKind>(kind); }

/// An error at a step's place that begins with its name.
static InFlightDiagnostic errorAt(const Step &step) {
  return emitError(step.location) << "'" << nameOf(opcodeOf(step.instruction)) << "' ";
}

/// A place's channel is what the text can say; which ranks there are, verifyRange() knows.
static LogicalResult verifyChannel(const Step &step, const Place &place) {
  if (place.isLocal() && place.channel < -1)
    return errorAt(step) << "names a buffer of rank " << place.channel;
  if (place.kind == PlaceKind::Transfer &&
      (place.channel < -1 || place.channel >= static_cast<int>(plan::limits::kMaxChannels)))
    return errorAt(step) << "needs a channel below " << plan::limits::kMaxChannels << ", got "
                         << place.channel;
  if (place.kind == PlaceKind::Connection && place.channel != -1)
    return errorAt(step) << "names channel " << place.channel << " beside a connection";
  return success();
}

static LogicalResult verifyPlaces(const dialect::ProgramHeader &header, uint32_t rank,
                                  const Step &step) {
  // Sources and destinations have the same rules: a place in a buffer lies within it, on the rank
  // that owns it.
  auto emitError = [&] { return errorAt(step); };
  const Instruction &instruction = step.instruction;
  for (const Places *places : {&instruction.sources, &instruction.destinations})
    for (Place place : *places) {
      if (failed(verifyChannel(step, place)))
        return failure();
      if (place.isLocal() &&
          failed(dialect::verifyRange(emitError, header, static_cast<int32_t>(place.owner(rank)),
                                      bufferOf(place.kind), static_cast<int32_t>(place.index),
                                      static_cast<int32_t>(instruction.count))))
        return failure();
    }
  return success();
}

/// Of the rank's step at `position`.
static LogicalResult verifyStep(const dialect::ProgramHeader &header, uint32_t rank,
                                const Step &step, size_t position) {
  const Instruction &instruction = step.instruction;
  // The numbers of sources and destinations, local and not, have to be those of some instruction:
  // the opcode follows from them.
  if (!hasShapeOf(opcodeOf(instruction), instruction))
    return errorAt(step) << "has operands of another shape than its kind of instruction takes";
  if (size_t operands = instruction.sources.size() + instruction.destinations.size();
      operands > plan::limits::kMaxOperands)
    return errorAt(step) << "has " << operands << " operands; a plan allows "
                         << plan::limits::kMaxOperands;
  if (instruction.extent >= static_cast<uint32_t>(header.partChunks))
    return errorAt(step) << "needs an extent below the " << header.partChunks
                         << " chunks of a part, got " << instruction.extent;
  if (instruction.threadBlock < -1 ||
      instruction.threadBlock >= static_cast<int32_t>(plan::limits::kMaxThreadBlocks))
    return errorAt(step) << "needs a thread block below " << plan::limits::kMaxThreadBlocks
                         << ", got " << instruction.threadBlock;
  if (instruction.group < -1)
    return errorAt(step) << "is of group " << instruction.group
                         << "; groups are numbered from 0, and -1 is none";
  if (static_cast<int32_t>(instruction.count) < 1)
    return errorAt(step) << "needs a count of at least 1, got " << instruction.count;
  // Dependencies name earlier steps of the rank, in ascending order, each once: so the order of
  // steps is one in which they can be executed.
  const auto &before = step.dependencies;
  if (!before.empty() &&
      (before.back() >= position ||
       std::adjacent_find(before.begin(), before.end(), std::greater_equal<>()) != before.end()))
    return errorAt(step) << "waits for what are not ascending positions of earlier instructions";
  return verifyPlaces(header, rank, step);
}

LogicalResult RankOp::verify() {
  dialect::ProgramHeader header = dialect::headerOf(cast<ProgramOp>((*this)->getParentOp()));
  for (auto [position, step] : llvm::enumerate(getSteps()))
    if (failed(verifyStep(header, getRank(), step, position)))
      return failure();
  return success();
}

LogicalResult ProgramOp::verify() {
  // The op itself; what its ranks do is checked in verifyRegions(), when their ops have been.
  dialect::ProgramHeader header = dialect::headerOf(*this);
  if (failed(dialect::verifyHeader(*this, header)))
    return failure();
  auto connections = unflattenConnections(getConnections());
  if (!connections)
    return emitOpError("has connections that end in the middle of one");
  // Destinations ascend, so that each connection has one spelling and a receiver is found by
  // bisection.
  for (auto [i, connection] : llvm::enumerate(*connections)) {
    const auto &destinations = connection.destinations;
    bool ascending = std::adjacent_find(destinations.begin(), destinations.end(),
                                        std::greater_equal<>()) == destinations.end();
    if (connection.source >= getNumRanks() || destinations.empty() || !ascending ||
        destinations.back() >= getNumRanks() || llvm::is_contained(destinations, connection.source))
      return emitOpError() << "has a connection " << i
                           << " that is not from one rank to ascending others";
    if (connection.channel >= plan::limits::kMaxChannels)
      return emitOpError() << "has a connection " << i << " of channel " << connection.channel
                           << "; a plan allows " << plan::limits::kMaxChannels;
  }
  return success();
}

namespace {

/// One end of a message.
struct End {
  const Step *step;
  uint32_t rank;
  bool isSend;
};

/// Ends by the number of their transfer or connection, those of each in the order in which they
/// were added: all are counted, then added.
class EndsByNumber {
public:
  void count(uint32_t number) {
    if (first.size() < size_t{number} + 2)
      first.resize(size_t{number} + 2);
    ++first[size_t{number} + 1];
  }
  void endCounting() {
    std::partial_sum(first.begin(), first.end(), first.begin());
    ends.resize(first.empty() ? 0 : first.back());
    next = first;
  }
  void add(uint32_t number, End end) { ends[next[number]++] = end; }

  uint32_t size() const { return first.empty() ? 0 : static_cast<uint32_t>(first.size() - 1); }
  llvm::ArrayRef<End> of(uint32_t number) const {
    if (number >= size())
      return {};
    return llvm::ArrayRef(ends).slice(first[number], first[number + 1] - first[number]);
  }

private:
  std::vector<size_t> first, next;
  std::vector<End> ends;
};

/// Numbers for the identifiers of transfers. They are the same up to a bound that goes with the
/// program's size; of what is beyond, only what is there has a number.
class TransferNumbers {
public:
  explicit TransferNumbers(size_t numSteps)
      : bound(static_cast<uint32_t>(
            std::min<size_t>(4 * numSteps + 1024, plan::limits::kMaxInstructions))) {}

  uint32_t of(uint32_t id) {
    if (id < bound)
      return id;
    auto [known, isNew] = numbers.try_emplace(id, bound + static_cast<uint32_t>(beyond.size()));
    if (isNew)
      beyond.push_back(id);
    return known->second;
  }
  uint32_t identifierOf(uint32_t number) const {
    return number < bound ? number : beyond[number - bound];
  }

private:
  uint32_t bound;
  llvm::DenseMap<uint32_t, uint32_t> numbers;
  std::vector<uint32_t> beyond;
};

/// Of a program whose ranks are there, in their order.
class MessageVerifier {
public:
  explicit MessageVerifier(ProgramOp program)
      : program(program), connections(*unflattenConnections(program.getConnections())),
        transferBound(program.getTransferBound().value_or(plan::limits::kMaxInstructions)),
        transferNumbers(numSteps(program)) {}

  LogicalResult verify() {
    // All ends of all messages, sorted by transfer or connection; then each is looked at by itself.
    if (failed(collect()))
      return failure();
    for (uint32_t i = 0; i < byTransfer.size(); ++i)
      if (failed(verifyTransfer(transferNumbers.identifierOf(i), byTransfer.of(i))))
        return failure();
    for (uint32_t i = 0; i < connections.size(); ++i)
      if (failed(verifyConnection(i, byConnection.of(i))))
        return failure();
    return success();
  }

private:
  static size_t numSteps(ProgramOp program) {
    size_t number = 0;
    for (RankOp rank : program.getOps<RankOp>())
      number += rank.getSteps().size();
    return number;
  }

  /// Calls fn(step, place, rank, isSend) for all that are messages.
  template <typename Function> void forEachEnd(Function fn) {
    for (RankOp rank : program.getOps<RankOp>())
      for (const Step &step : rank.getSteps()) {
        for (const Place &place : step.instruction.sources)
          if (!place.isLocal())
            fn(step, place, rank.getRank(), false);
        for (const Place &place : step.instruction.destinations)
          if (!place.isLocal())
            fn(step, place, rank.getRank(), true);
      }
  }

  LogicalResult collect() {
    // Two passes over all places, with memory for all ends in one piece: programs have millions,
    // and a list for each would be slower than the checks.
    LogicalResult result = success();
    forEachEnd([&](const Step &step, const Place &place, uint32_t, bool) {
      if (failed(result) || failed(result = verifyNumber(step, place)))
        return;
      if (place.kind == PlaceKind::Transfer)
        byTransfer.count(transferNumbers.of(place.index));
      else
        byConnection.count(place.index);
    });
    if (failed(result))
      return failure();
    // Each end to its place, in the order of ranks and steps.
    byTransfer.endCounting();
    byConnection.endCounting();
    forEachEnd([&](const Step &step, const Place &place, uint32_t rank, bool isSend) {
      if (place.kind == PlaceKind::Transfer)
        byTransfer.add(transferNumbers.of(place.index), {&step, rank, isSend});
      else
        byConnection.add(place.index, {&step, rank, isSend});
    });
    return success();
  }

  LogicalResult verifyNumber(const Step &step, const Place &place) {
    if (place.kind == PlaceKind::Transfer) {
      if (place.index < transferBound)
        return success();
      return errorAt(step) << "names transfer " << place.index << "; they are numbered below "
                           << transferBound;
    }
    if (place.index >= connections.size())
      return errorAt(step) << "names connection " << place.index << " of " << connections.size();
    const bool isControl = step.instruction.isControl();
    if (connections[place.index].isCounter != isControl)
      return errorAt(step) << "names connection " << place.index << ", which is "
                           << (isControl ? "no counter" : "a counter");
    return success();
  }

  LogicalResult verifyTransfer(uint32_t id, llvm::ArrayRef<End> ends) {
    if (ends.empty())
      return success(); // a pass has left it out
    // A transfer is one message: one sender, any number of receivers on different ranks.
    const End *send = llvm::find_if(ends, [](const End &end) { return end.isSend; });
    const auto sends = llvm::count_if(ends, [](const End &end) { return end.isSend; });
    const auto receives = static_cast<ptrdiff_t>(ends.size()) - sends;
    if (sends != 1 || receives == 0)
      return errorAt(sends == 0 ? *ends.front().step : *send->step)
             << "transfer " << id << " needs one sender and a receiver, got " << sends << " and "
             << receives;
    // Ends are in the order of ranks, so two on one rank are neighbours.
    for (size_t i = 1; i < ends.size(); ++i)
      if (ends[i].rank == ends[i - 1].rank)
        return errorAt(*ends[i].step)
               << "transfer " << id << " has two ends on rank " << ends[i].rank;
    for (const End &end : ends)
      if (!end.isSend && failed(verifySizes(*send, end)))
        return failure();
    return success();
  }

  LogicalResult verifyConnection(uint32_t number, llvm::ArrayRef<End> ends) {
    const Connection &connection = connections[number];
    // The sends of a connection in their order; everybody else receives.
    SmallVector<End, 8> sends;
    for (const End &end : ends)
      if (end.isSend && end.rank != connection.source)
        return errorAt(*end.step) << "sends on connection " << number << ", which starts on rank "
                                  << connection.source;
      else if (end.isSend)
        sends.push_back(end);
    // Each rank's m-th receive is the m-th message.
    llvm::SmallDenseMap<uint32_t, size_t> received;
    for (const End &end : ends)
      if (!end.isSend && failed(verifyReceive(number, end, sends, received[end.rank]++)))
        return failure();
    // A message that is not taken would block the FIFO. Of a counter not every signal need be
    // waited for.
    for (uint32_t rank : connection.destinations)
      if (!connection.isCounter && received[rank] != sends.size())
        return program.emitOpError()
               << "connection " << number << " carries " << sends.size() << " messages, but rank "
               << rank << " receives " << received[rank];
    return success();
  }

  /// Of the receive, or wait, that is the `message`-th of its rank.
  LogicalResult verifyReceive(uint32_t number, const End &end, llvm::ArrayRef<End> sends,
                              size_t message) {
    const Connection &connection = connections[number];
    if (!llvm::is_contained(connection.destinations, end.rank))
      return errorAt(*end.step) << "receives from connection " << number
                                << ", which does not end on rank " << end.rank;
    const uint32_t count = end.step->instruction.count;
    if (connection.isCounter && count > sends.size())
      return errorAt(*end.step) << "waits for signal " << count << " of counter " << number
                                << ", which has " << sends.size();
    if (connection.isCounter || message >= sends.size())
      return success();
    return verifySizes(sends[message], end);
  }

  LogicalResult verifySizes(const End &send, const End &receive) {
    const Instruction &sent = send.step->instruction, &received = receive.step->instruction;
    if (sent.count == received.count && sent.extent == received.extent)
      return success();
    auto diagnostic = errorAt(*receive.step)
                      << "receives " << received.count << " chunks of extent " << received.extent
                      << ", but " << sent.count << " of extent " << sent.extent << " are sent";
    diagnostic.attachNote(send.step->location) << "the sender is here";
    return diagnostic;
  }

  ProgramOp program;
  std::vector<Connection> connections;
  uint32_t transferBound;
  TransferNumbers transferNumbers;
  EndsByNumber byTransfer, byConnection;
};

} // namespace

LogicalResult ProgramOp::verifyRegions() {
  // One op for each rank, in order, and nothing else: passes index ranks by number.
  uint32_t next = 0;
  for (Operation &op : getBody().front()) {
    auto rank = dyn_cast<RankOp>(op);
    if (!rank)
      return op.emitOpError("is no rank");
    if (rank.getRank() != next++)
      return rank.emitOpError() << "expected rank " << next - 1 << " here, got " << rank.getRank();
  }
  if (next != getNumRanks())
    return emitOpError() << "needs one inst.rank for each of " << getNumRanks() << " ranks, got "
                         << next;
  // The bound is the size of tables that verification and passes make.
  if (IntegerAttr bound = getTransferBoundAttr();
      bound && (bound.getInt() < 0 || bound.getInt() > int64_t{plan::limits::kMaxInstructions}))
    return emitOpError() << "needs a number up to " << plan::limits::kMaxInstructions << " as "
                         << getTransferBoundAttrName().getValue() << ", got " << bound;
  return MessageVerifier(*this).verify();
}
