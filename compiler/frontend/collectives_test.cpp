// The two definitions of the standard collectives, which share nothing: what users read in
// Prelude.coll, and the list that the verifier of plans has (plan/collectives).
#include "compiler/frontend/elaborate/Testing.h"
#include "compiler/frontend/sema/Program.h"
#include "plan/collectives/collectives.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

namespace occl::frontend::testing {
namespace {

using plan::Parts;
using plan::StandardCollective;

/// The declaration of a collective in the prelude, under another name: only so is its promise
/// listed.
std::string declarationOf(const std::string &name) {
  const std::string prelude(preludeText()), head = "\ncollective " + name + "(";
  const size_t begin = prelude.find(head);
  if (begin == std::string::npos)
    return "";
  const size_t end = prelude.find("\n}\n", begin) + 3;
  return "collective its_" + prelude.substr(begin + 12, end - begin - 12) + "\n";
}

std::unique_ptr<Compilation> promiseOf(StandardCollective collective, const Parts &parts) {
  const std::string name = plan::nameOf(collective);
  // `chunks` is the size of the larger buffer of an all-to-all, whose users cut it.
  const bool isWhole = collective == StandardCollective::AllToAll;
  std::string arguments = std::to_string(parts.numRanks) + ", " +
                          std::to_string(parts.part * (isWhole ? parts.numRanks : 1));
  if (hasRoot(collective))
    arguments += ", " + std::to_string(parts.root);
  ElaborationOptions options;
  options.promiseOnly = true;
  return compile(declarationOf(name) + "algorithm a() implements its_" + name + "(" + arguments +
                     ") {\n}\n",
                 options);
}

using Place = std::pair<uint32_t, uint64_t>; // rank, chunk
using Promises = std::map<Place, std::vector<Place>>;

Promises listedBy(const ProgramInfo &info) {
  Promises promises;
  const std::vector<int32_t> &list = info.requirements;
  for (size_t at = 0; at < list.size(); at += 4 + 2 * static_cast<size_t>(list[at + 3]))
    for (int32_t i = 0; i < list[at + 2]; ++i) {
      std::vector<Place> &from = promises[{list[at], list[at + 1] + i}];
      for (int32_t k = 0; k < list[at + 3]; ++k)
        from.emplace_back(list[at + 4 + 2 * k], list[at + 5 + 2 * k] + i);
    }
  return promises;
}

Promises definedBy(StandardCollective collective, const Parts &parts) {
  Promises promises;
  for (uint32_t rank = 0; rank < parts.numRanks; ++rank)
    for (uint64_t chunk = 0; chunk < outputSize(collective, parts); ++chunk)
      if (const auto goal = goalOf(collective, parts, rank, chunk))
        for (uint32_t from = 0; from < parts.numRanks; ++from)
          if (goal->ofAllRanks || from == goal->rank)
            promises[{rank, chunk}].emplace_back(from, goal->index);
  return promises;
}

void compare(StandardCollective collective, const Parts &parts) {
  const auto program = promiseOf(collective, parts);
  ASSERT_TRUE(program->info) << program->diagnostics.render();
  const ProgramInfo &info = *program->info;
  EXPECT_EQ(info.numRanks, parts.numRanks);
  EXPECT_EQ(info.partChunks, parts.part);
  EXPECT_EQ(info.root, parts.root);
  EXPECT_TRUE(info.inPlace);
  for (uint32_t r = 0; r < parts.numRanks; ++r) {
    EXPECT_EQ(info.inputChunks[r],
              needsInput(collective, parts, r) ? inputSize(collective, parts) : 0);
    EXPECT_EQ(info.outputChunks[r],
              needsOutput(collective, parts, r) ? outputSize(collective, parts) : 0);
    EXPECT_EQ(info.inPlaceOffsets[r], inPlaceOffset(collective, parts, r));
  }
  EXPECT_EQ(listedBy(info), definedBy(collective, parts));
}

TEST(Collectives, PreludeAndListSayTheSame) {
  for (uint32_t i = 0; i < plan::kNumStandardCollectives; ++i) {
    const auto collective = static_cast<StandardCollective>(i);
    for (uint32_t n = 1; n <= 16; ++n)
      for (uint32_t root = 0; root < (hasRoot(collective) ? n : 1); ++root)
        for (uint64_t part : {1, 2, 5}) {
          compare(collective, {n, root, part});
          if (::testing::Test::HasFailure())
            FAIL() << plan::nameOf(collective) << " of " << n << " ranks, root " << root << ", "
                   << part << " chunks a part";
        }
  }
}

/// Whether a plan lists its promise is the list's to say; the prelude declares more collectives,
/// all of whose plans do.
TEST(Collectives, PromisedByName) {
  for (const plan::CollectiveDefinition &one : plan::kStandardCollectives) {
    ElaborationOptions options;
    options.promiseOnly = true;
    const auto program =
        compile("algorithm a() implements " + std::string(one.name) + "(2, 2) {\n}\n", options);
    ASSERT_TRUE(program->info) << program->diagnostics.render();
    EXPECT_EQ(program->info->isStandard, one.promise == plan::Promise::Named) << one.name;
    EXPECT_EQ(program->info->requirements.empty(), program->info->isStandard) << one.name;
  }
}

} // namespace
} // namespace occl::frontend::testing
