#include "bench/gpu/slice/measurement.h"

#include "runtime/loader/plan_loader.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace occl::bench {

using namespace interpreter;

static constexpr uint32_t kWarmUp = 20;
static constexpr uint32_t kBlockCounts[] = {1, 2, 4, 8, 16, 32, 64};

/// Small integers: their sums are exact in any order.
static float inputAt(uint32_t rank, uint64_t i) {
  return static_cast<float>((i * 7 + rank * 13) % 61) - 20.f;
}

void Best::print() const {
  if (time == 0)
    std::printf(" | ");
  else
    std::printf(" | %.2f%s%s%s", time, how.empty() ? "" : " (", how.c_str(),
                how.empty() ? "" : ")");
}

Measurement::Measurement(DeviceGroup &group, const std::string &planDirectory)
    : group(group), planDirectory(planDirectory), library(Nccl::load(group)),
      host(kMaxBytes / sizeof(float)), expected(kMaxBytes / sizeof(float)) {
  for (uint32_t r = 0; r < group.numRanks(); ++r) {
    buffers.inputs.push_back(group.allocate(r, kMaxBytes));
    buffers.outputs.push_back(group.allocate(r, kMaxBytes));
    for (uint64_t i = 0; i < host.size(); ++i) {
      host[i] = inputAt(r, i);
      expected[i] += host[i];
    }
    group.upload(r, buffers.inputs[r], host.data(), kMaxBytes);
  }
}

/// At least 256 bytes and at most 4 MiB of the buffer for a thread block.
bool Measurement::isSensible(uint32_t blocks) const {
  uint64_t share = count * sizeof(float) / blocks;
  return share >= 256 && share <= 4 << 20;
}

StatusOr<Best> Measurement::handWritten(Probe probe) {
  Best best;
  for (uint32_t blocks : kBlockCounts) {
    if (!isSensible(blocks))
      continue;
    spoilOutputs();
    auto time = runProbe(group, probe, buffers, count, blocks, kWarmUp, invocations());
    if (!time.ok())
      return time.status();
    if (Status status = verify("a hand-written kernel"); !status.ok())
      return status;
    best.offer(*time / 1e3, "b" + std::to_string(blocks));
  }
  return best;
}

bool Measurement::isSensible(const Variant &variant) const {
  if (!isSensible(variant.blocks))
    return false;
  uint64_t message = count * sizeof(float) / variant.blocks / numRanks();
  // A slice of less than 16 KiB is all overhead; one of lines has 480 bytes, and is a step.
  if (std::string_view(variant.algorithm) == "direct")
    return variant.slices == 1;
  if (variant.protocol == plan::Protocol::Simple)
    return variant.slices == 1 || message >= variant.slices * (16 << 10);
  return variant.slices == 1 && message <= 4 << 10;
}

StatusOr<InterpretedTimes> Measurement::interpreted(const char *algorithm, Placement placement,
                                                    plan::Protocol protocol) {
  InterpretedTimes times;
  for (uint32_t blocks : kBlockCounts)
    for (uint32_t slices : {1u, 4u}) {
      Variant variant = {algorithm, blocks, placement, slices, protocol};
      if (!isSensible(variant))
        continue;
      if (Status status = offer(times, variant); !status.ok())
        return status;
    }
  return times;
}

Status Measurement::offer(InterpretedTimes &times, const Variant &variant) {
  std::string how = "b" + std::to_string(variant.blocks) +
                    (variant.slices > 1 ? " s" + std::to_string(variant.slices) : "");
  auto run = prepare(variant);
  if (!run.ok())
    return run.status();
  auto time = (*run)->loop(kWarmUp, invocations());
  if (!time.ok())
    return time.status();
  if (Status status = verify(variant.algorithm); !status.ok())
    return status;
  times.loop.offer(*time / 1e3, how);
  spoilOutputs();
  auto graphTime = (*run)->inGraph(40, replays());
  if (!graphTime.ok())
    return graphTime.status();
  times.graph.offer(*graphTime, how);
  return verify(variant.algorithm);
}

StatusOr<Best> Measurement::ncclInGraph() {
  Best best;
  if (!library)
    return best;
  spoilOutputs();
  best.offer(library->inGraph(buffers, count, 40, replays()), "");
  if (Status status = verify("NCCL"); !status.ok())
    return status;
  return best;
}

StatusOr<std::unique_ptr<InterpreterRun>> Measurement::prepare(const Variant &variant) {
  auto loaded =
      loader::loadPlan(planDirectory + "/" + variant.algorithm + "_" + std::to_string(numRanks()) +
                       "x" + std::to_string(variant.blocks) + ".cbor");
  if (!loaded.ok())
    return loaded.status();
  plan::Plan plan = (*loaded)->plan;
  plan.protocol = variant.protocol;
  spoilOutputs();
  RunOptions options;
  options.count = count;
  options.placement = variant.placement;
  options.tiles = {1 << 30, variant.slices}; // one tile
  return InterpreterRun::make(group, plan, buffers, options);
}

void Measurement::spoilOutputs() {
  for (uint32_t r = 0; r < numRanks(); ++r)
    group.fill(r, buffers.outputs[r], 0xff, count * sizeof(float));
}

Status Measurement::verify(const char *what) {
  auto end = host.begin() + static_cast<ptrdiff_t>(count);
  for (uint32_t r = 0; r < numRanks(); ++r) {
    group.download(r, host.data(), buffers.outputs[r], count * sizeof(float));
    auto [wrong, right] = std::mismatch(host.begin(), end, expected.begin());
    if (wrong != end)
      return {StatusCode::InternalError, std::string(what) + ": element " +
                                             std::to_string(wrong - host.begin()) + " of rank " +
                                             std::to_string(r) + " is " + std::to_string(*wrong) +
                                             ", not " + std::to_string(*right)};
  }
  return {};
}

} // namespace occl::bench
