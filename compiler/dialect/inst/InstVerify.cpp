// What makes an inst.program well-formed: shapes and ranges of each instruction, and that messages
// have one sender and their receivers, in the same order and of the same size on both ends.
#include "compiler/dialect/ProgramHeader.h"
#include "compiler/dialect/inst/Connections.h"
#include "compiler/dialect/inst/Inst.h"
#include "plan/model/limits.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace occl;
using namespace occl::inst;

static plan::OperandKind bufferOf(PlaceKind kind) { return static_cast<plan::OperandKind>(kind); }

LogicalResult inst::verifyInstruction(Operation *op) {
  auto instruction = cast<InstructionOpInterface>(op);
  const Instruction &data = instruction.getData();
  auto rank = cast<RankOp>(op->getParentOp());
  dialect::ProgramHeader header = dialect::headerOf(cast<ProgramOp>(rank->getParentOp()));
  if (!hasShapeOf(instruction.getOpcode(), data))
    return op->emitOpError("has operands of another shape than its kind of instruction takes");
  if (data.sources.size() + data.destinations.size() > plan::limits::kMaxOperands)
    return op->emitOpError() << "has " << data.sources.size() + data.destinations.size()
                             << " operands; a plan allows " << plan::limits::kMaxOperands;
  if (data.extent >= static_cast<uint32_t>(header.partChunks))
    return op->emitOpError() << "needs an extent below the " << header.partChunks
                             << " chunks of a part, got " << data.extent;
  if (data.threadBlock < -1 ||
      data.threadBlock >= static_cast<int32_t>(plan::limits::kMaxThreadBlocks))
    return op->emitOpError() << "needs a thread block below " << plan::limits::kMaxThreadBlocks
                             << ", got " << data.threadBlock;
  if (data.group < -1)
    return op->emitOpError() << "is of group " << data.group
                             << "; groups are numbered from 0, and -1 is none";
  if (static_cast<int32_t>(data.count) < 1)
    return op->emitOpError() << "needs a count of at least 1, got " << data.count;
  for (const Places *places : {&data.sources, &data.destinations})
    for (Place place : *places)
      if (place.isPeer() && instruction.getOpcode() != plan::Opcode::LoadReduceStore)
        return op->emitOpError("names another rank's buffer, which only load_reduce_store may");
      else if (place.isLocal() && failed(dialect::verifyRange(
                                      op, header, static_cast<int32_t>(place.owner(rank.getRank())),
                                      bufferOf(place.kind), static_cast<int32_t>(place.index),
                                      static_cast<int32_t>(data.count))))
        return failure();
  return success();
}

LogicalResult ProgramOp::verify() {
  dialect::ProgramHeader header = dialect::headerOf(*this);
  if (failed(dialect::verifyHeader(*this, header)))
    return failure();
  auto connections = unflattenConnections(getConnections());
  if (!connections)
    return emitOpError("has connections that end in the middle of one");
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
  Operation *op;
  uint32_t rank, count, extent;
};

/// The ends of all messages of one transfer or connection.
struct Ends {
  SmallVector<End, 1> sends;
  SmallVector<End, 1> receives;
};

class MessageVerifier {
public:
  explicit MessageVerifier(ProgramOp program)
      : program(program), connections(*unflattenConnections(program.getConnections())),
        byConnection(connections.size()) {}

  LogicalResult verify() {
    for (RankOp rank : program.getOps<RankOp>())
      for (Operation &op : rank.getBody().front())
        if (failed(collect(&op, rank.getRank())))
          return failure();
    for (auto &[id, ends] : byTransfer)
      if (failed(verifyTransfer(id, ends)))
        return failure();
    for (auto [i, ends] : llvm::enumerate(byConnection))
      if (failed(verifyConnection(i, ends)))
        return failure();
    return success();
  }

private:
  LogicalResult collect(Operation *op, uint32_t rank) {
    auto instruction = dyn_cast<InstructionOpInterface>(op);
    if (!instruction)
      return op->emitOpError("is no instruction");
    const Instruction &data = instruction.getData();
    for (const Places *places : {&data.sources, &data.destinations})
      for (Place place : *places) {
        if (place.isLocal())
          continue;
        if (place.kind == PlaceKind::Connection && place.index >= connections.size())
          return op->emitOpError()
                 << "names connection " << place.index << " of " << connections.size();
        if (place.kind == PlaceKind::Connection &&
            connections[place.index].isCounter != data.isControl())
          return op->emitOpError() << "names connection " << place.index << ", which is "
                                   << (data.isControl() ? "no counter" : "a counter");
        Ends &ends =
            place.kind == PlaceKind::Transfer ? byTransfer[place.index] : byConnection[place.index];
        (places == &data.sources ? ends.receives : ends.sends)
            .push_back({op, rank, data.count, data.extent});
      }
    return success();
  }

  LogicalResult verifyTransfer(uint32_t id, const Ends &ends) {
    Operation *any = ends.sends.empty() ? ends.receives.front().op : ends.sends.front().op;
    if (ends.sends.size() != 1 || ends.receives.empty())
      return any->emitOpError() << "transfer " << id << " needs one sender and a receiver, got "
                                << ends.sends.size() << " and " << ends.receives.size();
    llvm::SmallDenseSet<uint32_t> ranks = {ends.sends.front().rank};
    for (const End &end : ends.receives) {
      if (!ranks.insert(end.rank).second)
        return end.op->emitOpError() << "transfer " << id << " has two ends on rank " << end.rank;
      if (failed(verifySizes(ends.sends.front(), end)))
        return failure();
    }
    return success();
  }

  LogicalResult verifyConnection(size_t index, const Ends &ends) {
    const Connection &connection = connections[index];
    for (const End &end : ends.sends)
      if (end.rank != connection.source)
        return end.op->emitOpError()
               << "sends on connection " << index << ", which starts on rank " << connection.source;
    llvm::SmallDenseMap<uint32_t, size_t> received;
    for (const End &end : ends.receives) {
      if (!llvm::is_contained(connection.destinations, end.rank))
        return end.op->emitOpError() << "receives from connection " << index
                                     << ", which does not end on rank " << end.rank;
      size_t message = received[end.rank]++;
      if (connection.isCounter) {
        if (end.count > ends.sends.size())
          return end.op->emitOpError() << "waits for signal " << end.count << " of counter "
                                       << index << ", which has " << ends.sends.size();
        continue;
      }
      if (message < ends.sends.size() && failed(verifySizes(ends.sends[message], end)))
        return failure();
    }
    for (uint32_t rank : connection.destinations)
      if (!connection.isCounter && received[rank] != ends.sends.size())
        return program.emitOpError()
               << "connection " << index << " carries " << ends.sends.size()
               << " messages, but rank " << rank << " receives " << received[rank];
    return success();
  }

  LogicalResult verifySizes(const End &send, const End &receive) {
    if (send.count == receive.count && send.extent == receive.extent)
      return success();
    auto diagnostic = receive.op->emitOpError()
                      << "receives " << receive.count << " chunks of extent " << receive.extent
                      << ", but " << send.count << " of extent " << send.extent << " are sent";
    diagnostic.attachNote(send.op->getLoc()) << "the sender is here";
    return diagnostic;
  }

  ProgramOp program;
  std::vector<Connection> connections;
  std::vector<Ends> byConnection;
  llvm::MapVector<uint32_t, Ends> byTransfer;
};

} // namespace

LogicalResult ProgramOp::verifyRegions() {
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
  return MessageVerifier(*this).verify();
}
