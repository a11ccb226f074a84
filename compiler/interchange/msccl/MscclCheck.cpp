#include "compiler/interchange/msccl/MscclParse.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace occl::interchange::msccl {

using frontend::DiagnosticCode;

namespace {

/// Sorts `items`, gpus or thread blocks, by id; their ids must be 0 to `count` - 1.
template <typename Item>
bool sortById(std::vector<Item> &items, size_t count, uint32_t parent, const char *what,
              Reporter &reporter) {
  // Files may list elements in any order; what follows indexes them by their number.
  std::stable_sort(items.begin(), items.end(),
                   [](const Item &a, const Item &b) { return a.id < b.id; });
  // Numbers go from 0 on without gaps, each once. The first deviation tells what is wrong.
  for (size_t i = 0; i < items.size(); ++i) {
    bool isRepeated = i > 0 && items[i].id == items[i - 1].id;
    if (!isRepeated && static_cast<size_t>(items[i].id) == i && i < count)
      continue;
    if (isRepeated)
      reporter
          .error(DiagnosticCode::ImportBadIdentity, items[i].offset, "id",
                 "there are two " + std::string(what) + "s " + std::to_string(items[i].id))
          .note(reporter.element(items[i - 1].offset), "the other one is here");
    else if (i >= count)
      reporter.error(DiagnosticCode::ImportBadIdentity, items[i].offset, "id",
                     std::string(what) + " " + std::to_string(items[i].id) + " is beyond the " +
                         std::to_string(count) + " that the file speaks of");
    else
      reporter.error(DiagnosticCode::ImportBadIdentity, items[i].offset, "id",
                     std::string(what) + " " + std::to_string(i) + " is missing");
    return false;
  }
  // Everything that is there is right, but there are too few.
  if (items.size() >= count)
    return true;
  reporter.error(DiagnosticCode::ImportBadIdentity, parent,
                 std::string(what) + " " + std::to_string(items.size()) + " is missing");
  return false;
}

/// "gpu 0, tb 1, step 2".
std::string placeOf(const Gpu &gpu, const ThreadBlock &block, size_t step) {
  return "gpu " + std::to_string(gpu.id) + ", tb " + std::to_string(block.id) + ", step " +
         std::to_string(step);
}

class Checker {
public:
  Checker(const Algorithm &algorithm, Reporter &reporter)
      : algorithm(algorithm), reporter(reporter) {}

  void run() {
    for (const Gpu &gpu : algorithm.gpus) {
      for (const InitialCopy &copy : gpu.copies)
        checkCopy(gpu, copy);
      for (const ThreadBlock &block : gpu.threadBlocks)
        checkThreadBlock(gpu, block);
    }
  }

private:
  void checkThreadBlock(const Gpu &gpu, const ThreadBlock &block) {
    // Peers exist; then each step by itself; then who owns the connections.
    checkPeer(gpu, block, block.sendPeer, "send");
    checkPeer(gpu, block, block.recvPeer, "recv");
    bool sends = false, receives = false;
    for (size_t s = 0; s < block.steps.size(); ++s) {
      const Step &step = block.steps[s];
      const StepShape &shape = shapeOf(step.type);
      sends |= shape.sends;
      receives |= shape.receives;
      where = placeOf(gpu, block, s);
      checkStep(gpu, block, step, shape);
      checkDependency(gpu, step);
    }
    // A thread block without a peer is reported at its steps.
    if (sends && block.sendPeer >= 0)
      claim(gpu, block, block.sendPeer, "send");
    if (receives && block.recvPeer >= 0)
      claim(gpu, block, block.recvPeer, "recv");
  }

  void checkPeer(const Gpu &gpu, const ThreadBlock &block, int32_t peer, const char *attribute) {
    if (peer < static_cast<int32_t>(algorithm.numGpus) && peer != gpu.id)
      return;
    std::string what = peer == gpu.id ? "gpu " + std::to_string(peer) + " cannot be its own peer"
                                      : "there is no gpu " + std::to_string(peer) + " among the " +
                                            std::to_string(algorithm.numGpus);
    reporter.error(DiagnosticCode::ImportBadPeer, block.offset, attribute, what);
  }

  /// A connection has one thread block at each end: two would take each other's messages.
  void claim(const Gpu &gpu, const ThreadBlock &block, int32_t peer, const char *attribute) {
    auto key = std::make_tuple(gpu.id, peer, block.channel, attribute[0]);
    auto [owner, isNew] = owners.try_emplace(key, &block);
    if (!isNew)
      reporter
          .error(DiagnosticCode::ImportSharedConnection, block.offset, attribute,
                 "tb " + std::to_string(block.id) + " and tb " + std::to_string(owner->second->id) +
                     " of gpu " + std::to_string(gpu.id) +
                     (attribute[0] == 's' ? " both send to gpu " : " both receive from gpu ") +
                     std::to_string(peer) + " on channel " + std::to_string(block.channel) +
                     ": which message meets which is left to chance; use another channel")
          .note(reporter.element(owner->second->offset), "the other one is here");
  }

  void checkStep(const Gpu &gpu, const ThreadBlock &block, const Step &step,
                 const StepShape &shape) {
    // The first mistake of a step is enough.
    auto fail = [&](DiagnosticCode code, const char *attribute, const std::string &message) {
      reporter.error(code, step.offset, attribute, where + ": " + message);
    };
    std::string name(shape.name);
    // Steps of other tools, which mean nothing for a collective.
    if (step.type == StepType::ResidualAdd)
      return fail(DiagnosticCode::ImportForeignStep, "type",
                  "'ra' adds buffers that are none of input, output and scratch; no collective "
                  "has them");
    if (step.type == StepType::Nop)
      return;
    // What the step's type needs: chunks, peers, ranges.
    if (step.count == 0)
      return fail(DiagnosticCode::ImportBadValue, "cnt", "'" + name + "' moves no chunks");
    if (shape.sends && block.sendPeer < 0)
      return fail(DiagnosticCode::ImportNoPeer, "type",
                  "'" + name + "' sends, but its thread block has send=\"-1\"");
    if (shape.receives && block.recvPeer < 0)
      return fail(DiagnosticCode::ImportNoPeer, "type",
                  "'" + name + "' receives, but its thread block has recv=\"-1\"");
    if (shape.readsSource)
      checkRange(gpu, step, step.source, "src");
    if (shape.writesDestination)
      checkRange(gpu, step, step.destination, "dst");
  }

  void checkRange(const Gpu &gpu, const Step &step, const Range &range, const std::string &side) {
    // The buffer's size is the file's own number.
    auto [size, buffer] = range.buffer == plan::OperandKind::Input ? std::pair(gpu.inputChunks, "i")
                          : range.buffer == plan::OperandKind::Output
                              ? std::pair(gpu.outputChunks, "o")
                              : std::pair(gpu.scratchChunks, "s");
    std::string name(shapeOf(step.type).name);
    // -1 is "none", which this type of step must have.
    if (range.index < 0) {
      reporter.error(DiagnosticCode::ImportOutOfRange, step.offset, side + "off",
                     where + ": '" + name + "' needs " + side + "buf and " + side + "off");
      return;
    }
    if (uint64_t(range.index) + step.count <= size)
      return;
    std::string last = std::to_string(uint64_t(range.index) + step.count - 1);
    reporter.error(
        DiagnosticCode::ImportOutOfRange, step.offset, side + "off",
        where + ": '" + name + "' uses chunk" +
            (step.count == 1 ? " " + last : "s " + std::to_string(range.index) + " to " + last) +
            " of buffer " + buffer + ", but gpu " + std::to_string(gpu.id) + " has " + buffer +
            "_chunks=\"" + std::to_string(size) + "\"");
  }

  void checkCopy(const Gpu &gpu, const InitialCopy &copy) {
    for (auto [attribute, chunk, size] : {std::tuple("i_off", copy.inputChunk, gpu.inputChunks),
                                          std::tuple("o_off", copy.outputChunk, gpu.outputChunks)})
      if (uint64_t{chunk} + copy.count > size)
        reporter.error(DiagnosticCode::ImportOutOfRange, copy.offset, attribute,
                       "gpu " + std::to_string(gpu.id) + ": the copy uses chunk " +
                           std::to_string(uint64_t{chunk} + copy.count - 1) + " of a buffer of " +
                           std::to_string(size) + " chunks");
  }

  void checkDependency(const Gpu &gpu, const Step &step) {
    // Both numbers name something of the same gpu.
    if (step.dependencyBlock < 0)
      return;
    auto block = static_cast<size_t>(step.dependencyBlock);
    if (block >= gpu.threadBlocks.size()) {
      reporter.error(DiagnosticCode::ImportBadDependency, step.offset, "depid",
                     where + ": it waits for tb " + std::to_string(block) + ", but gpu " +
                         std::to_string(gpu.id) + " has " +
                         std::to_string(gpu.threadBlocks.size()) + " thread blocks");
      return;
    }
    size_t steps = gpu.threadBlocks[block].steps.size();
    if (step.dependencyStep < 0 || static_cast<size_t>(step.dependencyStep) >= steps)
      reporter.error(DiagnosticCode::ImportBadDependency, step.offset, "deps",
                     where + ": it waits for step " + std::to_string(step.dependencyStep) +
                         " of tb " + std::to_string(block) + ", which has " +
                         std::to_string(steps) + " steps");
  }

  const Algorithm &algorithm;
  Reporter &reporter;
  std::string where; // of the step that is checked
  std::map<std::tuple<int32_t, int32_t, uint32_t, char>, const ThreadBlock *> owners;
};

} // namespace

bool checkAlgorithm(Algorithm &algorithm, Reporter &reporter) {
  // Sorted first: the checks index by number.
  if (!sortById(algorithm.gpus, algorithm.numGpus, algorithm.offset, "gpu", reporter))
    return false;
  for (Gpu &gpu : algorithm.gpus)
    if (!sortById(gpu.threadBlocks, gpu.threadBlocks.size(), gpu.offset, "tb", reporter))
      return false;
  Checker(algorithm, reporter).run();
  return !reporter.hasErrors();
}

} // namespace occl::interchange::msccl
