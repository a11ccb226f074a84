#include "runtime/plan_library/plan_library.h"

#include "plan/io/reader.h"
#include "plan/model/hash.h"
#include "plan/transform/relabel.h"
#include "plan/verify/verifier.h"

#include <array>
#include <mutex>
#include <string>
#include <utility>

// Made by the rule embedded_plans: the archive's first byte, and that after its last.
extern "C" const uint8_t occlEmbeddedPlansBegin[], occlEmbeddedPlansEnd[];

namespace occl::plan_library {

namespace {

constexpr std::array<const char *, kNumKinds> kNames = {"allreduce", "allgather", "reducescatter",
                                                        "broadcast", "reduce",    "alltoall",
                                                        "gather",    "scatter"};

constexpr std::array<const char *, kNumClasses> kClasses = {
    "host-registered", "host-ordinary",       "device-registered",
    "device-ordinary", "resident-registered", "resident-ordinary"};

bool hasRoot(Kind kind) {
  return kind == Kind::Broadcast || kind == Kind::Reduce || kind == Kind::Gather ||
         kind == Kind::Scatter;
}

std::string textOf(const Wanted &wanted) {
  return std::string(nameOf(wanted.kind)) + " of " + std::to_string(wanted.numRanks) + " ranks";
}

Status check(const Wanted &wanted) {
  if (static_cast<uint32_t>(wanted.kind) >= kNumKinds ||
      static_cast<uint32_t>(wanted.where) >= kNumClasses)
    return {StatusCode::InvalidArgument, "there is no such collective, or no such place for it"};
  if (wanted.numRanks == 0 || wanted.numRanks > maxRanks(wanted.where))
    return {StatusCode::InvalidArgument,
            textOf(wanted) + ": OCCL comes with plans for 1 to " +
                std::to_string(maxRanks(wanted.where)) +
                " ranks; compile a plan of your own with occlc and give it to the call"};
  if (hasRoot(wanted.kind) ? wanted.root >= wanted.numRanks : wanted.root != 0)
    return {StatusCode::InvalidArgument,
            textOf(wanted) + ": root is " + std::to_string(wanted.root) +
                (hasRoot(wanted.kind) ? ", but ranks count from 0" : "; it has none: give 0")};
  return {};
}

} // namespace

const char *nameOf(Kind kind) { return kNames[static_cast<size_t>(kind)]; }

PlanLibrary::PlanLibrary(std::span<const uint8_t> bytes) : bytes(bytes) {}

PlanLibrary &PlanLibrary::ofProcess() {
  // Never destroyed: threads may still call when the process ends.
  static auto *library = new PlanLibrary(
      {occlEmbeddedPlansBegin, static_cast<size_t>(occlEmbeddedPlansEnd - occlEmbeddedPlansBegin)});
  return *library;
}

StatusOr<ChosenPlan> PlanLibrary::choose(const Wanted &wanted) {
  if (Status status = check(wanted); !status.ok())
    return status;
  std::lock_guard lock(mutex);
  StatusOr<const Entry *> entry = find(wanted);
  if (!entry.ok())
    return entry.status();
  Key key = {(*entry)->blob, (*entry)->firstByte, wanted.root};
  if (auto known = chosen.find(key); known != chosen.end())
    return known->second;
  StatusOr<ChosenPlan> loaded = load(**entry, wanted);
  if (loaded.ok())
    chosen.emplace(key, *loaded);
  return loaded;
}

StatusOr<const Entry *> PlanLibrary::find(const Wanted &wanted) {
  if (!archive)
    archive = std::make_unique<const StatusOr<Archive>>(Archive::read(bytes));
  if (!archive->ok())
    return archive->status();
  for (const Entry &entry : (**archive).entries())
    if (entry.numRanks == wanted.numRanks && wanted.bytes <= entry.maxBytes &&
        entry.collective == nameOf(wanted.kind) &&
        entry.planClass == kClasses[static_cast<size_t>(wanted.where)])
      return &entry;
  return Status(StatusCode::InvalidArgument,
                textOf(wanted) + ": OCCL comes with no plan for parts of " +
                    std::to_string(wanted.bytes) +
                    " bytes; compile one of your own with occlc and give it to the call");
}

StatusOr<ChosenPlan> PlanLibrary::load(const Entry &entry, const Wanted &wanted) {
  StatusOr<std::string> packed = (**archive).planOf(entry);
  if (!packed.ok())
    return packed.status();
  std::string origin =
      "the plan that comes with OCCL for " + textOf(wanted) + ", " + entry.algorithm;
  auto read = plan::readPlan(*packed, origin);
  if (!read)
    return Status(StatusCode::InternalError, read.message());
  if (read->numRanks != wanted.numRanks || read->collective != entry.collective)
    return Status(StatusCode::InternalError, origin + " is one for " + read->collective + " of " +
                                                 std::to_string(read->numRanks) + " ranks");
  if (wanted.root != read->root) {
    read = plan::relabelled(*read, wanted.root);
    if (!read)
      return Status(StatusCode::InternalError, read.message());
  }
  plan::VerifyResult verified = plan::verifyPlan(*read, {.findSmallestDepth = false});
  if (!verified)
    return Status(StatusCode::InternalError, origin + ": " + verified.text());
  ChosenPlan result;
  result.hash = plan::hashPlan(*read);
  result.plan = std::make_shared<const plan::Plan>(std::move(*read));
  return result;
}

} // namespace occl::plan_library
