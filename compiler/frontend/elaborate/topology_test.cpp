// Topology files: those that come with the compiler, the example in the documentation, and damaged
// ones.
#include "compiler/frontend/elaborate/Testing.h"
#include "compiler/frontend/elaborate/TopologyReader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace occl::frontend::testing {
namespace {

struct Read {
  SourceManager sources;
  DiagnosticEngine diagnostics{sources};
  std::optional<DeclaredTopology> topology;
};

std::unique_ptr<Read> read(const std::string &path, const std::vector<std::string> &defines = {}) {
  auto result = std::make_unique<Read>();
  result->topology = readTopology(result->sources, path, defines, {}, result->diagnostics);
  return result;
}

std::string writeFile(const std::string &name, const std::string &text) {
  std::string path = ::testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

/// The blocks of the documentation that are marked with `language`, in order.
std::vector<std::string> examplesIn(const std::string &path, const std::string &language) {
  std::vector<std::string> result;
  std::ifstream stream(path);
  std::string line;
  bool isExample = false;
  while (std::getline(stream, line)) {
    if (line == "```" + language) {
      isExample = true;
      result.emplace_back();
    } else if (line == "```") {
      isExample = false;
    } else if (isExample) {
      result.back() += line + "\n";
    }
  }
  return result;
}

TEST(Topologies, ThoseThatComeWithTheCompilerAreGood) {
  auto h200 = read("topologies/h200.topo", {"nodes=2", "gpus=4", "unrelated=3"});
  ASSERT_TRUE(h200->topology) << h200->diagnostics.render();
  EXPECT_EQ(h200->topology->topology.numRanks(), 8u);
  EXPECT_EQ(h200->topology->topology.numNodes(), 2u);
  EXPECT_EQ(h200->topology->topology.bandwidth(0, 3), 360 * topology::kGigabyte);
  EXPECT_EQ(h200->topology->topology.bandwidth(0, 5), 50 * topology::kGigabyte);
  auto dgx1 = read("topologies/dgx1.topo");
  ASSERT_TRUE(dgx1->topology) << dgx1->diagnostics.render();
  const topology::Topology &machine = dgx1->topology->topology;
  for (uint32_t rank = 0; rank < 8; ++rank) {
    uint64_t links = 0;
    for (uint32_t peer = 0; peer < 8; ++peer)
      links += peer == rank ? 0 : machine.bandwidth(rank, peer) / (25 * topology::kGigabyte);
    EXPECT_EQ(links, 6u) << "GPU " << rank << " has six links";
  }
  EXPECT_FALSE(machine.route(0, 5, 0));
  auto host = read("topologies/host.topo", {"cores=2"});
  ASSERT_TRUE(host->topology) << host->diagnostics.render();
  EXPECT_EQ(host->topology->topology.costs.cores, 2u);
}

TEST(Topologies, ExamplesInTheDocumentationAreGood) {
  std::vector<std::string> topologies = examplesIn("docs/topology.md", "topo");
  ASSERT_EQ(topologies.size(), 1u);
  auto pair = read(writeFile("pair.topo", topologies[0]));
  ASSERT_TRUE(pair->topology) << pair->diagnostics.render();
  std::vector<std::string> programs = examplesIn("docs/topology.md", "coll");
  ASSERT_EQ(programs.size(), 1u);
  ElaborationOptions options;
  options.topology = &*pair->topology;
  auto result = compile(programs[0], options);
  EXPECT_TRUE(result->info) << result->diagnostics.render();
}

/// What a program is told.
int64_t answer(const DeclaredTopology &topology, const std::string &expression) {
  ElaborationOptions options;
  options.topology = &topology;
  auto result = compile("algorithm a(answer: int = " + expression +
                            ") implements sendrecv(topology.ranks, 1) { "
                            "input[0][0].copy(output[1][0]); }",
                        options);
  if (result->info)
    return result->info->parameters[0].second;
  ADD_FAILURE() << result->diagnostics.render();
  return -1;
}

TEST(Topologies, ProgramsCanAsk) {
  auto pair = read(writeFile("pair.topo", examplesIn("docs/topology.md", "topo")[0]));
  ASSERT_TRUE(pair->topology) << pair->diagnostics.render();
  const std::pair<const char *, int64_t> answers[] = {
      {"topology.ranks", 8},
      {"topology.nodes", 2},
      {"topology.gpus", 4},
      {"topology.size(1)", 4},
      {"topology.node(3)", 0},
      {"topology.node(4)", 1},
      {"topology.local(6)", 2},
      {"topology.rank(1, 3)", 7},
      {"topology.nics(1)", 2},
      {"topology.nic(3)", 1},
      {"topology.has_link(0, 7) ? 1 : 0", 1},
      {"topology.has_link(3, 3) ? 1 : 0", 0},
      {"topology.bandwidth(0, 1)", 360'000},
      {"topology.bandwidth(4, 0)", 50'000},
      {"topology.bandwidth(1, 4)", 50'000},
      {"topology.latency(0, 1)", 1000},
      {"topology.latency(0, 4)", 2000},
      {"topology.latency(0, 5)", 3000},
      {"topology.latency(2, 2)", 0},
  };
  for (const auto &[expression, expected] : answers)
    EXPECT_EQ(answer(*pair->topology, expression), expected) << expression;
}

TEST(Topologies, DamagedFilesAreGoodOrRejected) {
  const std::string good = examplesIn("docs/topology.md", "topo")[0];
  constexpr uint32_t kSeed = 7;
  std::mt19937 random(kSeed);
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  const std::string pieces[] = {"node", "link", "0",    "9223372036854775807",
                                "->",   ";",    "GB/s", "of",
                                "..",   "{",    "}",    "topology",
                                "(",    "*",    "cost", "="};
  for (int round = 0; round < 400; ++round) {
    std::string text = good;
    for (uint32_t edits = 1 + random() % 3; edits > 0; --edits) {
      size_t at = random() % text.size();
      if (random() % 2)
        text.erase(at, 1 + random() % 12);
      else
        text.insert(at, " " + pieces[random() % std::size(pieces)] + " ");
    }
    auto result = read(writeFile("damaged.topo", text));
    EXPECT_NE(result->topology.has_value(), result->diagnostics.hasErrors()) << text;
  }
}

} // namespace
} // namespace occl::frontend::testing
