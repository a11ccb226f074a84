#include "bench/gpu/slice/check.h"

#include "bench/gpu/kernels/interpreter_run.h"
#include "plan/model/names.h"
#include "plan/testing/example_plans.h"
#include "runtime/exec/conformance/reference.h"
#include "runtime/loader/plan_loader.h"

#include <cstdio>
#include <string_view>
#include <utility>

namespace occl::bench {

using namespace interpreter;

namespace {

/// Room for the largest count and misalignment checked here.
constexpr uint64_t kBufferBytes = 1 << 20;

struct Case {
  const char *algorithm;
  uint32_t blocks;
  RunOptions options;
  uint64_t misalignment = 0;
  bool inPlace = false;
  plan::Protocol protocol = plan::Protocol::Simple;
};

class Checker {
public:
  Checker(DeviceGroup &group, const std::string &planDirectory)
      : group(group), planDirectory(planDirectory) {
    for (uint32_t r = 0; r < group.numRanks(); ++r) {
      inputs.push_back(group.allocate(r, kBufferBytes));
      outputs.push_back(group.allocate(r, kBufferBytes));
    }
  }

  Status check(const Case &what) {
    std::string path = planDirectory + "/" + what.algorithm + "_" +
                       std::to_string(group.numRanks()) + "x" + std::to_string(what.blocks) +
                       ".cbor";
    auto loaded = loader::loadPlan(path);
    if (!loaded.ok())
      return loaded.status();
    plan::Plan plan = (*loaded)->plan;
    plan.protocol = what.protocol;
    Status status = run(plan, what);
    if (status.ok())
      return status;
    const RunOptions &options = what.options;
    return {status.code(),
            path + ", " + std::to_string(options.count) + " elements of " + nameOf(options.type) +
                ", " + nameOf(options.op) +
                (options.placement == Placement::AtSource ? ", pulled" : ", pushed") +
                ", misaligned by " + std::to_string(what.misalignment) + ", " +
                std::string(plan::nameOf(what.protocol)) + (what.inPlace ? ", in place: " : ": ") +
                status.message()};
  }

  /// Ranks that receive before they send wait for ever: the kernel must end and name them.
  Status checkGivingUp() {
    plan::Plan plan = plan::testing::oneShotAllReduce(group.numRanks());
    for (const plan::ThreadBlock &block : plan.threadBlocks)
      std::swap(plan.instructions[block.firstInstruction],
                plan.instructions[block.firstInstruction + 1]);
    Case what = {"one_shot", 1, {}};
    what.options.count = 64;
    Status status = run(plan, what);
    if (status.code() != StatusCode::Timeout)
      return {StatusCode::InternalError, "a deadlock was not reported: " + status.message()};
    std::printf("a deadlock is reported: %s\n", status.message().c_str());
    return {};
  }

private:
  Status run(const plan::Plan &plan, const Case &what) {
    const RunOptions &options = what.options;
    UserBuffers buffers;
    std::vector<conformance::Numbers> numbers;
    uint64_t bytes = options.count * sizeOf(options.type);
    for (uint32_t r = 0; r < group.numRanks(); ++r) {
      numbers.push_back(conformance::exactInput(options.count, options.type, options.op, 17 + r));
      buffers.inputs.push_back((what.inPlace ? outputs : inputs)[r] + what.misalignment);
      buffers.outputs.push_back(outputs[r] + what.misalignment);
      group.fill(r, outputs[r], 0x5a, kBufferBytes);
      std::vector<char> encoded = conformance::encode(numbers[r], options.type);
      group.upload(r, buffers.inputs[r], encoded.data(), encoded.size());
    }
    auto made = InterpreterRun::make(group, plan, buffers, options);
    if (!made.ok())
      return made.status();
    // In place a second invocation would reduce the results.
    auto time = (*made)->loop(0, what.inPlace ? 1 : 2 * kArenaRing + 1);
    if (!time.ok())
      return time.status();
    for (uint32_t r = 0; r < group.numRanks(); ++r) {
      std::vector<char> expected =
          conformance::encode(conformance::expectedOutput("allreduce", numbers, r, 0, options.count,
                                                          options.type, options.op),
                              options.type);
      std::vector<char> actual(kBufferBytes);
      group.download(r, actual.data(), outputs[r], kBufferBytes);
      for (uint64_t i = 0; i < kBufferBytes; ++i) {
        bool inside = i >= what.misalignment && i < what.misalignment + bytes;
        if (actual[i] != (inside ? expected[i - what.misalignment] : 0x5a))
          return {StatusCode::InternalError, "byte " + std::to_string(i) + " of rank " +
                                                 std::to_string(r) + "'s output is wrong"};
      }
    }
    return {};
  }

  DeviceGroup &group;
  const std::string planDirectory;
  std::vector<char *> inputs, outputs;
};

constexpr const char *kAlgorithms[] = {"one_shot", "two_shot", "ring", "direct"};

/// Direct plans have no messages, so every protocol is the same.
bool suits(const char *algorithm, plan::Protocol protocol) {
  return protocol == plan::Protocol::Simple || std::string_view(algorithm) != "direct";
}

/// Calls check(case) in all shapes until one fails.
template <class Check> Status forShapes(bool quick, const Check &check) {
  for (const char *algorithm : kAlgorithms)
    for (Placement placement : {Placement::AtSource, Placement::AtDestination})
      for (uint32_t blocks : {1u, 4u})
        for (uint64_t count : {uint64_t(1), uint64_t(1003), uint64_t(65536)}) {
          if (quick && (count != 1003 || blocks != 4))
            continue;
          for (TilePolicy tiles : {TilePolicy{1 << 30, 1}, TilePolicy{4096, 2}}) {
            Case what = {algorithm, blocks, {}};
            what.options.count = count;
            what.options.placement = placement;
            what.options.tiles = tiles;
            for (plan::Protocol protocol :
                 {plan::Protocol::Simple, plan::Protocol::LL, plan::Protocol::LL128}) {
              what.protocol = protocol;
              if (!suits(algorithm, protocol))
                continue;
              if (Status status = check(what); !status.ok())
                return status;
            }
          }
        }
  return {};
}

/// The same for all types and operations on one shape of each algorithm.
template <class Check> Status forTypes(bool quick, const Check &check) {
  for (const char *algorithm : kAlgorithms)
    for (unsigned type = 0; type < kNumDataTypes; ++type)
      for (unsigned op = 0; op < kNumReduceOps; ++op)
        for (uint64_t misalignment : {0, 1, 8}) {
          if (quick && (type % 3 != 0 || op != 4 || misalignment == 8))
            continue;
          Case what = {algorithm, 2, {}};
          what.options.count = 307;
          what.options.type = DataType(type);
          what.options.op = ReduceOp(op);
          what.options.placement = type % 2 != 0 ? Placement::AtSource : Placement::AtDestination;
          what.options.tiles = {512, 1};
          what.misalignment = misalignment;
          what.protocol = plan::Protocol((type + op) % 3);
          if (!suits(algorithm, what.protocol))
            what.protocol = plan::Protocol::Simple;
          if (Status status = check(what); !status.ok())
            return status;
        }
  return {};
}

} // namespace

Status checkAll(DeviceGroup &group, const std::string &planDirectory, bool quick) {
  Checker checker(group, planDirectory);
  uint32_t checks = 0;
  auto check = [&](Case what) {
    ++checks;
    return checker.check(what);
  };
  auto checkVariants = [&](Case what) {
    if (Status status = check(what); !status.ok())
      return status;
    what.options.stepOperands = 0;
    if (Status status = check(what); !status.ok())
      return status;
    what.inPlace = true;
    what.options.anyFold = true;
    return check(what);
  };
  if (Status status = forShapes(quick, checkVariants); !status.ok())
    return status;
  std::printf("shapes: %u checks passed\n", checks);
  checks = 0;
  if (Status status = forTypes(quick, check); !status.ok())
    return status;
  std::printf("types and operations: %u checks passed\n", checks);
  return checker.checkGivingUp();
}

} // namespace occl::bench
