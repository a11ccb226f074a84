#include "bench/gpu/kernels/interpreter_run.h"

#include "runtime/base/cache_line.h"
#include "runtime/cuda/tables/block_image.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <span>

namespace occl::bench {

using namespace interpreter;
using cuda::makeBlockImage;

namespace {

std::string describe(const BlockReport &report) {
  const char *reasons[] = {"nothing", "an announcement", "data",
                           "credit",  "a dependency",    "a signal"};
  return "rank " + std::to_string(report.rank) + ", thread block " + std::to_string(report.block) +
         " gave up in invocation " + std::to_string(report.invocation) + ", instruction " +
         std::to_string(report.context.instruction) + ", tile " +
         std::to_string(report.context.tile) + ", slice " + std::to_string(report.context.slice) +
         ", waiting for " + reasons[static_cast<unsigned>(report.obstacle.reason)] + " of rank " +
         std::to_string(report.obstacle.peer) + " (connection or thread block " +
         std::to_string(report.obstacle.what) + ")";
}

/// Of the connections that the thread block uses, in the rank's own memory.
std::vector<uint64_t> controlsOf(const Program &program, const BoundBlock &block) {
  std::vector<uint64_t> controls;
  std::set<uint32_t> ends;
  for (const BoundInstruction &instruction :
       std::span(program.instructions + block.firstInstruction, block.numInstructions))
    for (const BoundOperand &operand :
         std::span(program.operands + instruction.firstOperand,
                   uint32_t(instruction.numSources) + instruction.numDestinations)) {
      if (operand.kind != plan::OperandKind::Connection || !ends.insert(operand.end).second)
        continue;
      const ConnectionEnd &end = program.ends[operand.end];
      if (end.dataRank == program.rank && (program.line.bytes == 0 || end.isCounter))
        controls.push_back(end.tailOffset);
      for (uint32_t p = 0;
           end.creditRank == program.rank && end.lastCredit != 0 && p < end.numPeers; ++p)
        controls.push_back(end.headsOffset + p * kControlStride);
    }
  return controls;
}

bool hasMessages(const plan::Plan &plan) {
  return std::ranges::any_of(
      plan.connections, [](const plan::Connection &connection) { return !connection.isCounter; });
}

} // namespace

StatusOr<double> readReports(DeviceGroup &group, const std::vector<char *> &reports,
                             uint32_t blocks, uint32_t measuredInvocations) {
  uint64_t slowest = 0;
  std::string failures;
  std::vector<BlockReport> read(blocks);
  for (uint32_t r = 0; r < reports.size(); ++r) {
    group.download(r, read.data(), reports[r], blocks * sizeof(BlockReport));
    for (const BlockReport &report : read) {
      slowest = std::max(slowest, report.measured);
      if (report.status == BlockReport::GaveUp)
        failures += "\n  " + describe(report);
      else if (report.status == BlockReport::Absent)
        failures += "\n  rank " + std::to_string(r) + ": a thread block did not report";
    }
  }
  if (!failures.empty())
    return Status(StatusCode::Timeout, "not all thread blocks finished:" + failures);
  return double(slowest) / measuredInvocations;
}

StatusOr<std::unique_ptr<InterpreterRun>> InterpreterRun::make(DeviceGroup &group,
                                                               const plan::Plan &plan,
                                                               const UserBuffers &buffers,
                                                               const RunOptions &options) {
  std::unique_ptr<InterpreterRun> run(new InterpreterRun(group, options));
  if (Status status = run->prepare(plan, buffers); !status.ok())
    return status;
  return run;
}

Status InterpreterRun::prepare(const plan::Plan &plan, const UserBuffers &buffers) {
  auto refuse = [&](const char *why) {
    return Status(StatusCode::InvalidArgument, "plan '" + plan.name + "' " + why);
  };
  if (plan.numRanks != group.numRanks() || plan.numRanks > kMaxRanks)
    return refuse("is for another number of ranks");
  if (plan.collective != "allreduce" || !plan.dependencies.empty())
    return refuse("is no all-reduce of independent thread blocks");
  for (uint32_t r = 0; r < plan.numRanks; ++r) {
    auto bound = bind(plan, {.rank = r,
                             .count = options.count,
                             .type = options.type,
                             .op = options.op,
                             .tiles = options.tiles,
                             .placement = options.placement,
                             .lines = kDeviceLines,
                             .stepOperands = options.stepOperands});
    if (!bound.ok())
      return bound.status();
    const Program &program = (*bound)->program();
    if (r > 0 && program.numBlocks != blocks)
      return refuse("has ranks of different numbers of thread blocks");
    blocks = program.numBlocks;
    bindings.push_back(*bound);
    if (isDirect() && hasMessages(plan))
      return refuse("has messages beside direct access");
  }
  if (!takeMemory(buffers))
    return {StatusCode::Again, "the pools have no room for the arenas"};
  if (!uploadControls())
    return {StatusCode::Again, "the pools have no room for the control words"};
  return uploadImages();
}

bool InterpreterRun::takeMemory(const UserBuffers &buffers) {
  group.releasePools();
  std::vector<char *> arenas;
  ranks.resize(group.numRanks());
  for (uint32_t r = 0; r < group.numRanks(); ++r) {
    RankArguments &rank = ranks[r];
    const Binding &binding = *bindings[r];
    rank.buffers[0] = buffers.inputs[r];
    rank.buffers[1] = buffers.outputs[r];
    rank.buffers[2] = group.takeFromPool(r, binding.scratchBytes());
    arenas.push_back(group.takeFromPool(r, kArenaRing * alignUp(binding.arenaBytes(r), 256)));
    reports.push_back(group.takeFromPool(r, blocks * sizeof(BlockReport)));
    rank.reports = reinterpret_cast<BlockReport *>(reports[r]);
    accounts.push_back(group.takeFromPool(r, sizeof(PhaseAccount)));
    rank.account = reinterpret_cast<PhaseAccount *>(accounts[r]);
    if (rank.buffers[2] == nullptr || arenas[r] == nullptr || reports[r] == nullptr ||
        accounts[r] == nullptr)
      return false;
  }
  for (RankArguments &rank : ranks)
    for (uint32_t r = 0; r < group.numRanks(); ++r) {
      rank.arenas[r] = arenas[r];
      rank.arenaStrides[r] = alignUp(bindings[r]->arenaBytes(r), 256);
    }
  return !isDirect() || takeDirectMemory();
}

bool InterpreterRun::takeDirectMemory() {
  uint64_t *begun[kMaxRanks];
  for (uint32_t r = 0; r < group.numRanks(); ++r) {
    auto take = [&](uint64_t bytes) { return group.takeFromPool(r, bytes); };
    char *words = take(reinterpret_cast<uintptr_t>(begunWord(nullptr, blocks, 0)));
    ranks[r].ended = reinterpret_cast<uint64_t *>(take(sizeof(uint64_t)));
    ranks[r].ordinals = reinterpret_cast<uint32_t *>(take(blocks * sizeof(uint32_t)));
    if (words == nullptr || ranks[r].ended == nullptr || ranks[r].ordinals == nullptr)
      return false;
    begun[r] = reinterpret_cast<uint64_t *>(words);
  }
  for (RankArguments &rank : ranks)
    for (uint32_t r = 0; r < group.numRanks(); ++r) {
      rank.begun[r] = begun[r];
      std::copy_n(ranks[r].buffers, 3, rank.peerBuffers + r * 3);
    }
  return true;
}

/// False: the pools have no room.
bool InterpreterRun::uploadControls() {
  std::vector<std::vector<uint64_t>> controls; // by rank and block
  for (const auto &binding : bindings)
    for (uint32_t b = 0; b < blocks; ++b) {
      const Program &program = binding->program();
      controls.push_back(controlsOf(program, program.blocks[b]));
      controls.back().insert(controls.back().begin(), controls.back().size());
      controlsStride = std::max<uint64_t>(controlsStride, controls.back().size());
    }
  for (uint32_t r = 0; r < group.numRanks(); ++r) {
    char *memory = group.takeFromPool(r, blocks * controlsStride * sizeof(uint64_t));
    if (memory == nullptr)
      return false;
    ranks[r].controls = reinterpret_cast<const uint64_t *>(memory);
    for (uint32_t b = 0; b < blocks; ++b) {
      const std::vector<uint64_t> &words = controls[r * blocks + b];
      group.upload(r, memory + b * controlsStride * sizeof(uint64_t), words.data(),
                   words.size() * sizeof(uint64_t));
    }
  }
  return true;
}

Status InterpreterRun::uploadImages() {
  std::vector<std::pmr::vector<char>> images; // by rank and block
  for (const auto &binding : bindings)
    for (uint32_t b = 0; b < blocks; ++b) {
      images.push_back(makeBlockImage(binding->program(), b));
      imageStride = std::max<uint64_t>(imageStride, images.back().size());
    }
  if (imageStride > kTableBytes)
    return {StatusCode::InvalidArgument, "a thread block's tables of " +
                                             std::to_string(imageStride) +
                                             " bytes exceed its shared memory"};
  for (uint32_t r = 0; r < group.numRanks(); ++r) {
    char *memory = group.takeFromPool(r, blocks * imageStride);
    if (memory == nullptr)
      return {StatusCode::Again, "the pools have no room for the tables"};
    ranks[r].images = memory;
    for (uint32_t b = 0; b < blocks; ++b) {
      std::pmr::vector<char> &image = images[r * blocks + b];
      group.upload(r, memory + b * imageStride, image.data(), image.size());
    }
  }
  return {};
}

LoopArguments InterpreterRun::argumentsFor(uint32_t device) const {
  LoopArguments arguments;
  uint32_t local = 0;
  for (uint32_t r = 0; r < group.numRanks(); ++r)
    if (group.deviceOf(r) == device)
      arguments.ranks[local++] = ranks[r];
  arguments.imageStride = imageStride;
  arguments.controlsStride = controlsStride;
  arguments.numRanks = group.numRanks();
  arguments.isDirect = isDirect();
  arguments.patience = kPatience;
  return arguments;
}

InterpreterRun::Launch InterpreterRun::kernel() const {
  bool fixed = options.type == DataType::Float32 && options.op == ReduceOp::Sum && !options.anyFold;
  if (bindings[0]->program().line.bytes != 0)
    return fixed ? launchFixedLines : launchAnyLines;
  return fixed ? launchFixed : launchAny;
}

StatusOr<double> InterpreterRun::loop(uint32_t warmUp, uint32_t measured) {
  return loopWith(kernel(), warmUp, measured, 0);
}

StatusOr<PhaseAccount> InterpreterRun::account(uint32_t warmUp, uint32_t measured,
                                               uint32_t observer) {
  if (auto time = loopWith(launchTimed, warmUp, measured, observer); !time.ok())
    return time.status();
  PhaseAccount account;
  group.download(0, &account, accounts[0], sizeof account);
  return account;
}

StatusOr<double> InterpreterRun::loopWith(Launch launch, uint32_t warmUp, uint32_t measured,
                                          uint32_t observer) {
  for (uint32_t device = 0; device < group.numDevices(); ++device) {
    LoopArguments arguments = argumentsFor(device);
    arguments.firstInvocation = nextInvocation;
    arguments.invocations = warmUp + measured;
    arguments.warmUp = warmUp;
    arguments.observer = observer;
    require(cudaSetDevice(static_cast<int>(device)), "cudaSetDevice");
    require(launch(arguments, blocks, group.ranksPerDevice(), group.stream(device)),
            "launching the interpreter");
  }
  nextInvocation += warmUp + measured;
  group.synchronize();
  return readReports(group, reports, blocks, measured);
}

StatusOr<double> InterpreterRun::inGraph(uint32_t repetitions, uint32_t replays) {
  // Replays repeat the numbers, so they must fit the ring.
  repetitions = static_cast<uint32_t>(alignUp(repetitions, kArenaRing));
  double microseconds =
      group.timeInGraph(repetitions, replays, [&](uint32_t repetition, uint32_t device) {
        LoopArguments arguments = argumentsFor(device);
        arguments.firstInvocation = nextInvocation + repetition;
        arguments.invocations = 1;
        require(kernel()(arguments, blocks, group.ranksPerDevice(), group.stream(device)),
                "launching the interpreter");
      });
  if (auto read = readReports(group, reports, blocks, 1); !read.ok())
    return read.status();
  return microseconds;
}

} // namespace occl::bench
