#include "runtime/plan_library/plan_library.h"

#include "plan/model/hash.h"
#include "plan/testing/random_execution.h"
#include "plan/verify/verifier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

using namespace occl;
using namespace occl::plan_library;

namespace {

std::string archivePath, hostTable, deviceTable, residentTable;

std::string fileOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << path;
  return text.str();
}

std::span<const uint8_t> bytesOf(const std::string &text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

/// A table of algorithms/, in the order of their classes.
struct Table {
  const char *name;
  std::string path;
  PlanClass registered, ordinary;

  bool isHost() const { return ordinary == PlanClass::HostOrdinary; }
  uint32_t mostRanks() const { return maxRanks(ordinary); }
};

/// A row of a table, for one number of ranks and of islands.
struct Row {
  Kind kind = Kind::AllReduce;
  uint32_t numRanks = 0, numIslands = 1;
  std::string algorithm, protocol, buffers; // buffers: empty, registered or ordinary
  uint64_t limit = ~0ull;
};

constexpr uint32_t kMostOnIslands = 16;

/// Of "2,5-8".
std::vector<uint32_t> numbersIn(const std::string &text) {
  std::vector<uint32_t> all;
  std::istringstream numbers(text);
  for (std::string part; std::getline(numbers, part, ',');) {
    const size_t dash = part.find('-');
    const uint32_t last = std::stoul(part.substr(dash == std::string::npos ? 0 : dash + 1));
    for (uint32_t number = std::stoul(part); number <= last; ++number)
      all.push_back(number);
  }
  return all;
}

/// The row for each of "2,5-8", or of "2-4x2-8".
void addShapes(std::vector<Row> &rows, Row row, const std::string &ranks, uint32_t mostRanks) {
  const size_t x = ranks.find('x');
  const bool areSeveral = x != std::string::npos;
  for (uint32_t islands : areSeveral ? numbersIn(ranks.substr(0, x)) : std::vector<uint32_t>{1})
    for (uint32_t size : numbersIn(areSeveral ? ranks.substr(x + 1) : ranks)) {
      row.numIslands = islands;
      row.numRanks = islands * size;
      if (row.numRanks <= (areSeveral ? kMostOnIslands : mostRanks))
        rows.push_back(row);
    }
}

std::vector<Row> rowsOf(const Table &table) {
  std::istringstream lines(fileOf(table.path));
  std::vector<Row> rows;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#'))
      continue;
    std::istringstream words(line);
    std::string collective, ranks, instances, limit;
    Row row;
    words >> collective >> ranks >> row.algorithm;
    if (!table.isHost())
      words >> instances;
    words >> limit >> row.protocol >> row.buffers;
    if (limit != "-")
      row.limit = std::stoull(limit);
    uint32_t kind = 0;
    while (kind < kNumKinds && collective != nameOf(static_cast<Kind>(kind)))
      ++kind;
    EXPECT_LT(kind, kNumKinds) << line;
    row.kind = static_cast<Kind>(kind);
    addShapes(rows, row, ranks, table.mostRanks());
  }
  return rows;
}

std::string textOf(const Wanted &wanted) {
  return std::string(nameOf(wanted.kind)) + ", " + std::to_string(wanted.numRanks) + " ranks, " +
         std::to_string(wanted.bytes) + " bytes, root " + std::to_string(wanted.root) + ", class " +
         std::to_string(static_cast<int>(wanted.where)) + ", " + std::to_string(wanted.numIslands) +
         " islands";
}

bool accessesPeers(const plan::Plan &plan) {
  for (uint32_t r = 0; r < plan.numRanks; ++r)
    for (const plan::ThreadBlock &block : plan.threadBlocksOf(plan.ranks[r]))
      for (const plan::Instruction &i : plan.instructionsOf(block))
        for (const auto &operands : {plan.sourcesOf(i), plan.destinationsOf(i)})
          for (const plan::Operand &o : operands)
            if (o.kind != plan::OperandKind::Connection && o.rank != r)
              return true;
  return false;
}

/// The numbers of islands that there may be plans for.
std::vector<uint32_t> islandsOf(uint32_t numRanks) {
  std::vector<uint32_t> numbers = {1};
  for (uint32_t islands = 2; islands < numRanks; ++islands)
    if (numRanks % islands == 0 && numRanks <= kMostOnIslands)
      numbers.push_back(islands);
  return numbers;
}

/// Every wanted thing of a class: all kinds, all numbers of ranks and islands, the sizes.
template <typename Visit>
void forAll(PlanClass where, std::span<const uint64_t> sizes, Visit visit) {
  for (uint32_t kind = 0; kind < kNumKinds; ++kind)
    for (uint32_t n = 1; n <= maxRanks(where); ++n)
      for (uint32_t islands : islandsOf(n))
        for (uint64_t bytes : sizes)
          visit(Wanted{static_cast<Kind>(kind), n, bytes, 0, where, islands});
}

/// Every plan is there, is of the collective, suits the ranks and the size, and uses only what its
/// class allows.
void checkClass(PlanClass where, uint32_t maxBlocks = 128) {
  std::vector<uint64_t> sizes = {0};
  for (uint64_t bytes = 1; bytes <= 1ull << 30; bytes *= 4)
    sizes.push_back(bytes);
  const bool isOrdinary = where == PlanClass::HostOrdinary || where == PlanClass::DeviceOrdinary ||
                          where == PlanClass::ResidentOrdinary;
  std::set<const plan::Plan *> seen;
  forAll(where, sizes, [&](Wanted wanted) {
    wanted.maxBlocks = maxBlocks;
    auto chosen = PlanLibrary::ofProcess().choose(wanted);
    ASSERT_TRUE(chosen.ok()) << textOf(wanted) << ": " << chosen.status().message();
    const plan::Plan &plan = *chosen->plan;
    EXPECT_EQ(plan.collective, nameOf(wanted.kind)) << textOf(wanted);
    EXPECT_EQ(plan.numRanks, wanted.numRanks) << textOf(wanted);
    EXPECT_EQ(plan.root, 0u) << textOf(wanted);
    EXPECT_TRUE(plan.minBytes <= wanted.bytes && wanted.bytes <= plan.maxBytes) << textOf(wanted);
    EXPECT_TRUE(plan.outOfPlace) << textOf(wanted);
    // Nothing is reduced in gather and scatter.
    EXPECT_TRUE(plan.average || wanted.kind == Kind::Gather || wanted.kind == Kind::Scatter)
        << textOf(wanted);
    EXPECT_TRUE(plan.inPlace || wanted.kind == Kind::AllToAll) << textOf(wanted);
    if (!seen.insert(&plan).second)
      return;
    EXPECT_EQ(chosen->hash, plan::hashPlan(plan)) << textOf(wanted);
    EXPECT_TRUE(plan::verifyPlan(plan, {.findSmallestDepth = false}).isOk()) << textOf(wanted);
    EXPECT_FALSE(isOrdinary && accessesPeers(plan)) << textOf(wanted);
    // Without blocks that the tables double for local copies there are 64 at most.
    for (const plan::RankPlan &rank : plan.ranks)
      EXPECT_LE(rank.numThreadBlocks, maxBlocks) << textOf(wanted);
  });
  EXPECT_GT(seen.size(), 64u);
}

TEST(PlanLibrary, hasPlansForHosts) {
  checkClass(PlanClass::HostRegistered);
  checkClass(PlanClass::HostOrdinary);
}

TEST(PlanLibrary, hasPlansForDevicesWithRegisteredBuffers) {
  checkClass(PlanClass::DeviceRegistered);
}

TEST(PlanLibrary, hasPlansForDevicesWithOrdinaryBuffers) { checkClass(PlanClass::DeviceOrdinary); }

TEST(PlanLibrary, hasPlansOfFewThreadBlocksForDevices) {
  for (PlanClass where : {PlanClass::DeviceRegistered, PlanClass::DeviceOrdinary,
                          PlanClass::ResidentRegistered, PlanClass::ResidentOrdinary})
    checkClass(where, kFewestBlocks);
}

/// As many as all ranks have executors; partitioned collectives have several rounds of few.
TEST(PlanLibrary, hasResidentPlansByThreadBlocks) {
  const auto blocksOf = [](Kind kind, uint64_t bytes, uint32_t most) {
    auto chosen = PlanLibrary::ofProcess().choose(
        {kind, 2, bytes, 0, PlanClass::ResidentOrdinary, 1, most});
    return chosen.ok() ? chosen->plan->ranks[0].numThreadBlocks : 0;
  };
  constexpr uint64_t kMost = 64 << 20;
  for (Kind kind : {Kind::AllGather, Kind::ReduceScatter, Kind::Broadcast, Kind::Reduce,
                    Kind::AllToAll, Kind::AllReduce}) {
    EXPECT_EQ(blocksOf(kind, kMost, 64), 32u) << nameOf(kind);
    EXPECT_EQ(blocksOf(kind, kMost, 31), 16u) << nameOf(kind);
    EXPECT_EQ(blocksOf(kind, kMost, 8), kind == Kind::AllReduce ? 0u : 8u) << nameOf(kind);
    EXPECT_LE(blocksOf(kind, 512 << 10, 64), 8u) << nameOf(kind);
  }
}

TEST(PlanLibrary, hasPlansForResidentDaemons) {
  checkClass(PlanClass::ResidentRegistered);
  checkClass(PlanClass::ResidentOrdinary);
}

/// At the boundaries of a table the choice is the table's.
void checkBoundaries(const Table &table) {
  std::string bytes = fileOf(archivePath);
  auto archive = Archive::read(bytesOf(bytes));
  ASSERT_TRUE(archive.ok()) << archive.status().message();
  // The size that the next row begins at.
  std::map<std::tuple<Kind, uint32_t, uint32_t, bool>, uint64_t> next;
  size_t numRows = 0;
  for (const Row &row : rowsOf(table)) {
    std::string text = std::string(nameOf(row.kind)) + " of " + std::to_string(row.numRanks) +
                       " ranks, " + row.algorithm + " up to " + std::to_string(row.limit);
    for (bool isOrdinary : {false, true}) {
      if (row.buffers == (isOrdinary ? "registered" : "ordinary"))
        continue;
      uint64_t &first = next[{row.kind, row.numRanks, row.numIslands, isOrdinary}];
      ASSERT_LE(first, row.limit) << text << ": no size is left for the row";
      if (row.algorithm == "flat") {
        first = row.limit + 1;
        continue;
      }
      // Behind a row for all sizes come those of few thread blocks.
      const bool isForFewBlocks = first == ~0ull;
      for (uint64_t size : {first, row.limit}) {
        const PlanClass where = isOrdinary ? table.ordinary : table.registered;
        auto chosen =
            PlanLibrary::ofProcess().choose({row.kind, row.numRanks, size, 0, where, row.numIslands,
                                             isForFewBlocks ? kFewestBlocks : ~0u});
        ASSERT_TRUE(chosen.ok()) << text << ": " << chosen.status().message();
        EXPECT_EQ(chosen->plan->name, row.algorithm.substr(0, row.algorithm.find(':'))) << text;
        EXPECT_EQ(chosen->plan->maxBytes, row.limit) << text;
        EXPECT_EQ(chosen->plan->protocol, row.protocol == "ll"      ? plan::Protocol::LL
                                          : row.protocol == "ll128" ? plan::Protocol::LL128
                                                                    : plan::Protocol::Simple)
            << text;
      }
      first = row.limit == ~0ull ? row.limit : row.limit + 1;
      ++numRows;
    }
  }
  for (const auto &[key, first] : next)
    EXPECT_EQ(first, ~0ull) << nameOf(std::get<0>(key)) << " of " << std::get<1>(key)
                            << " ranks has a limit";
  EXPECT_EQ(std::ranges::count(next, 1u, [](const auto &each) { return std::get<2>(each.first); }),
            2 * kNumKinds * table.mostRanks());
  // The archive has these rows, for each kind of buffers, and no more.
  size_t inArchive = 0;
  for (const Group &group : archive->groups())
    if (group.planClass.starts_with(std::string(table.name) + "-"))
      inArchive += group.entries.size();
  EXPECT_EQ(inArchive, numRows);
}

TEST(PlanLibrary, choosesAsTheTableForHosts) {
  checkBoundaries({"host", hostTable, PlanClass::HostRegistered, PlanClass::HostOrdinary});
}

TEST(PlanLibrary, choosesAsTheTableForDevices) {
  checkBoundaries({"device", deviceTable, PlanClass::DeviceRegistered, PlanClass::DeviceOrdinary});
}

TEST(PlanLibrary, choosesAsTheTableForResidentDaemons) {
  checkBoundaries(
      {"resident", residentTable, PlanClass::ResidentRegistered, PlanClass::ResidentOrdinary});
}

/// All plans with a root, for all roots: verified, right when executed, and with a hash of their
/// own.
TEST(PlanLibrary, hasPlansForAllRoots) {
  uint32_t seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  std::vector<uint64_t> sizes = {0, 6000, 60000, 200000, 1 << 20, 4 << 20, 1ull << 30};
  std::set<std::pair<const plan::Plan *, bool>> executed;
  std::set<const plan::Plan *> verified;
  for (uint32_t where = 0; where < kNumClasses; ++where)
    forAll(static_cast<PlanClass>(where), sizes, [&](Wanted wanted) {
      std::set<uint64_t> hashes;
      // Of many ranks not each is tried.
      const uint32_t step = wanted.numRanks <= 8 ? 1 : 5;
      for (wanted.root = 0; hasRoot(wanted.kind) && wanted.root < wanted.numRanks;
           wanted.root += step) {
        auto chosen = PlanLibrary::ofProcess().choose(wanted);
        ASSERT_TRUE(chosen.ok()) << textOf(wanted) << ": " << chosen.status().message();
        EXPECT_EQ(chosen->plan->root, wanted.root);
        EXPECT_EQ(chosen->hash, plan::hashPlan(*chosen->plan)) << textOf(wanted);
        if (verified.insert(chosen->plan.get()).second) {
          EXPECT_TRUE(plan::verifyPlan(*chosen->plan, {.findSmallestDepth = false}).isOk())
              << textOf(wanted);
        }
        EXPECT_TRUE(hashes.insert(chosen->hash).second) << textOf(wanted);
        for (bool inPlace : {false, true}) {
          if (!executed.insert({chosen->plan.get(), inPlace}).second)
            continue;
          EXPECT_EQ(plan::testing::executeRandomly(*chosen->plan, inPlace, random), "")
              << textOf(wanted);
        }
      }
    });
}

/// The hash of what hosts get, and where it comes from.
uint64_t hostPlan(PlanLibrary &library, Wanted wanted, std::string *name = nullptr) {
  auto chosen = library.choose(wanted);
  EXPECT_TRUE(chosen.ok()) << chosen.status().message();
  if (chosen.ok() && name)
    *name = chosen->plan->name;
  return chosen.ok() ? chosen->hash : 0;
}

TEST(PlanLibrary, hasGroupWisePlansForIslands) {
  auto &library = PlanLibrary::ofProcess();
  for (const Kind kind :
       {Kind::AllReduce, Kind::AllGather, Kind::ReduceScatter, Kind::Broadcast, Kind::Reduce})
    for (const auto &[numRanks, islands] :
         {std::pair(4u, 2u), {6u, 2u}, {6u, 3u}, {8u, 2u}, {8u, 4u}, {16u, 2u}, {16u, 8u}}) {
      std::string name;
      hostPlan(library, {kind, numRanks, 16 << 20, 0, PlanClass::HostOrdinary, islands}, &name);
      EXPECT_EQ(name, kind == Kind::AllReduce && islands > 2 ? "nv_group" : "two_level")
          << nameOf(kind) << ", " << numRanks << " on " << islands;
    }
}

/// Parts that messages of a plan carry to other islands.
double crossing(const plan::Plan &plan, uint32_t sizeOfIsland) {
  uint64_t chunks = 0;
  for (const plan::RankPlan &rank : plan.ranks)
    for (const plan::ThreadBlock &block : plan.threadBlocksOf(rank))
      for (const plan::Instruction &i : plan.instructionsOf(block))
        for (const plan::Operand &o : plan.destinationsOf(i)) {
          if (o.kind != plan::OperandKind::Connection)
            continue;
          const plan::Connection &to = plan.connections[o.index];
          for (uint32_t destination : plan.destinationsOf(to))
            if (to.source / sizeOfIsland != destination / sizeOfIsland)
              chunks += i.count;
        }
  return static_cast<double>(chunks) / plan.partChunks;
}

/// Once what flat plans send once for each rank of an island.
TEST(PlanLibrary, groupWisePlansCrossOnce) {
  auto &library = PlanLibrary::ofProcess();
  for (const Kind kind :
       {Kind::AllReduce, Kind::AllGather, Kind::ReduceScatter, Kind::Broadcast, Kind::Reduce})
    for (const auto &[islands, size] : {std::pair(2u, 2u), {2u, 3u}, {3u, 2u}, {2u, 4u}}) {
      Wanted wanted = {kind, islands * size, 1 << 20, 0, PlanClass::HostOrdinary, islands};
      const auto groupWise = library.choose(wanted);
      wanted.numIslands = 1;
      const auto flat = library.choose(wanted);
      ASSERT_TRUE(groupWise.ok() && flat.ok());
      EXPECT_EQ(crossing(*flat->plan, size), size * crossing(*groupWise->plan, size))
          << nameOf(kind) << ", " << islands << " islands of " << size;
    }
}

/// At the limit that the table has.
TEST(PlanLibrary, hasForSmallPartsOnIslandsWhatOneIslandHas) {
  auto &library = PlanLibrary::ofProcess();
  const Wanted one = {Kind::Broadcast, 8, 32768, 5, PlanClass::HostOrdinary, 1};
  Wanted two = one;
  two.numIslands = 2;
  EXPECT_EQ(hostPlan(library, two), hostPlan(library, one));
  two.bytes += 1;
  EXPECT_NE(hostPlan(library, two), hostPlan(library, one));
}

/// As many islands as ranks, more ranks than there are such plans for, kinds in which each byte
/// goes to one rank only, threads.
TEST(PlanLibrary, hasForOtherIslandsWhatOneIslandHas) {
  auto &library = PlanLibrary::ofProcess();
  for (Wanted wanted : {Wanted{Kind::AllReduce, 8, 1 << 20, 0, PlanClass::HostOrdinary, 8},
                        Wanted{Kind::AllReduce, 18, 1 << 20, 0, PlanClass::HostOrdinary, 2},
                        Wanted{Kind::Gather, 8, 1 << 20, 3, PlanClass::HostOrdinary, 2},
                        Wanted{Kind::Scatter, 8, 1 << 20, 0, PlanClass::HostOrdinary, 2},
                        Wanted{Kind::AllReduce, 8, 1 << 20, 0, PlanClass::HostRegistered, 2},
                        Wanted{Kind::AllReduce, 8, 1 << 20, 0, PlanClass::ResidentOrdinary, 2}}) {
    const uint64_t hash = hostPlan(library, wanted);
    wanted.numIslands = 1;
    EXPECT_EQ(hostPlan(library, wanted), hash) << textOf(wanted);
  }
}

/// Ranks that share an island before they are renamed for another root do so afterwards: what
/// crosses is what crosses with root 0.
TEST(PlanLibrary, keepsIslandsTogetherForOtherRoots) {
  const auto crossing = [](const plan::Plan &plan) {
    size_t number = 0;
    for (const plan::Connection &connection : plan.connections)
      for (uint32_t destination : plan.destinationsOf(connection))
        number += connection.source / 3 != destination / 3;
    return number;
  };
  for (const Kind kind : {Kind::Broadcast, Kind::Reduce})
    for (uint32_t root = 0; root < 6; ++root) {
      auto chosen =
          PlanLibrary::ofProcess().choose({kind, 6, 1 << 20, root, PlanClass::HostOrdinary, 2});
      ASSERT_TRUE(chosen.ok()) << chosen.status().message();
      EXPECT_EQ(crossing(*chosen->plan), 3u) << nameOf(kind) << " from " << root;
    }
}

TEST(PlanLibrary, refusesWhatItHasNoPlanFor) {
  auto refused = [](const Wanted &wanted) {
    auto chosen = PlanLibrary::ofProcess().choose(wanted);
    EXPECT_FALSE(chosen.ok());
    EXPECT_EQ(chosen.status().code(), StatusCode::InvalidArgument);
    return chosen.status().message();
  };
  EXPECT_EQ(refused({Kind::AllReduce, 33, 4, 0, PlanClass::HostOrdinary}),
            "allreduce of 33 ranks: OCCL comes with plans for 1 to 32 ranks; compile a plan of "
            "your own with occlc and give it to the call");
  EXPECT_EQ(refused({Kind::AllReduce, 9, 4, 0, PlanClass::DeviceOrdinary}),
            "allreduce of 9 ranks: OCCL comes with plans for 1 to 8 ranks; compile a plan of your "
            "own with occlc and give it to the call");
  EXPECT_EQ(refused({Kind::Gather, 4, 4, 4, PlanClass::HostOrdinary}),
            "gather of 4 ranks: root is 4, but ranks count from 0");
  EXPECT_EQ(refused({Kind::AllGather, 4, 4, 1, PlanClass::HostOrdinary}),
            "allgather of 4 ranks: root is 1; it has none: give 0");
  refused({Kind::AllReduce, 0, 4, 0, PlanClass::HostOrdinary});
  EXPECT_EQ(refused({Kind::AllReduce, 8, 4, 0, PlanClass::HostOrdinary, 3}),
            "allreduce of 8 ranks on 3 islands: plans are for islands of as many ranks each; say 1 "
            "for others");
  refused({Kind::AllReduce, 8, 4, 0, PlanClass::HostOrdinary, 0});
}

TEST(PlanLibrary, aTableChangesWhichSizesAPlanIsFor) {
  const std::string archive = fileOf(archivePath);
  PlanLibrary usual(bytesOf(archive)), tuned(bytesOf(archive));
  // Plan 3 up to 4096 bytes; beyond, and for other ranks, what the library has.
  ASSERT_TRUE(tuned
                  .useTable("# of a test\nOCCL plan table 1\n"
                            "host-ordinary allreduce 2 4096 all_pairs 3\n",
                            "a.table")
                  .ok());
  const auto hashOf = [](PlanLibrary &library, uint32_t numRanks, uint64_t bytes) {
    auto chosen = library.choose({Kind::AllReduce, numRanks, bytes, 0, PlanClass::HostOrdinary});
    EXPECT_TRUE(chosen.ok()) << chosen.status().message();
    return chosen.ok() ? chosen->hash : 0;
  };
  const uint64_t third = hashOf(usual, 2, 1 << 20);
  EXPECT_NE(hashOf(usual, 2, 4096), third);
  EXPECT_EQ(hashOf(tuned, 2, 1), third);
  EXPECT_EQ(hashOf(tuned, 2, 4096), third);
  EXPECT_EQ(hashOf(tuned, 2, 4097), hashOf(usual, 2, 4097));
  EXPECT_NE(hashOf(tuned, 2, 4097), third);
  EXPECT_EQ(hashOf(tuned, 4, 100), hashOf(usual, 4, 100));
}

/// A row for islands names the plans of one island, then those of the islands; and one for as many
/// ranks of one island counts where islands have what one has.
TEST(PlanLibrary, aTableIsForAShape) {
  const std::string archive = fileOf(archivePath);
  PlanLibrary usual(bytesOf(archive)), tuned(bytesOf(archive)), other(bytesOf(archive));
  const Wanted one = {Kind::AllReduce, 8, 1 << 20, 0, PlanClass::HostOrdinary, 1};
  const Wanted two = {Kind::AllReduce, 8, 1 << 20, 0, PlanClass::HostOrdinary, 2};
  const Wanted eight = {Kind::AllReduce, 8, 1 << 20, 0, PlanClass::HostOrdinary, 8};
  const auto algorithms = usual.algorithmsFor(two.kind, 8, two.where, 2);
  const auto flat = usual.algorithmsFor(one.kind, 8, one.where);
  ASSERT_TRUE(algorithms.ok() && flat.ok());
  ASSERT_EQ(algorithms->size(), flat->size() + 1);
  EXPECT_EQ(algorithms->back(), "two_level");
  EXPECT_EQ(*usual.numberFor(two), algorithms->size());
  const std::string head = "OCCL plan table 1\nhost-ordinary allreduce ";
  ASSERT_TRUE(tuned.useTable(head + "2x4 1048576 one_shot 1\n", "a.table").ok());
  ASSERT_TRUE(other.useTable(head + "8 1048576 one_shot 1\n", "a.table").ok());
  const uint64_t oneShot = hostPlan(other, one);
  EXPECT_NE(oneShot, hostPlan(usual, one));
  EXPECT_EQ(hostPlan(tuned, two), oneShot);
  EXPECT_EQ(hostPlan(tuned, one), hostPlan(usual, one));
  EXPECT_EQ(hostPlan(other, two), hostPlan(usual, two));
  EXPECT_EQ(hostPlan(other, eight), oneShot);
  Wanted larger = two;
  larger.bytes = 2 << 20;
  EXPECT_EQ(hostPlan(tuned, larger), hostPlan(usual, two));
}

TEST(PlanLibrary, saysWhatIsWrongWithATable) {
  const std::string archive = fileOf(archivePath), head = "OCCL plan table 1\n";
  const std::string row = "host-ordinary allreduce 2 ";
  for (const auto &[text, error] : std::vector<std::pair<std::string, std::string>>{
           {"", "a.table:0: a plan table begins with the line 'OCCL plan table 1'"},
           {"OCCL plan table 2\n", "a.table:1: a plan table begins with"},
           {head + row + "- all_pairs\n", "a.table:2: a row has six words"},
           {head + row + "- all_pairs 3 x\n", "a.table:2: a row has six words"},
           {head + row + "-1 all_pairs 3\n", "a.table:2: a row has six words"},
           {head + row + "- all_pairs 0\n", "a.table:2: a row has six words"},
           {head + row + "- all_pairs 4\n",
            "a.table:2: the library has no plan 4 for host-ordinary "
            "allreduce of 2 ranks"},
           {head + "host-ordinary allreduce 99 - all_pairs 1\n",
            "a.table:2: the library has no plan"},
           {head + row + "- ring 3\n", "is all_pairs, not ring: the table was made for another"},
           {head + row + "64 all_pairs 3\n" + row + "64 one_shot 1\n",
            "a.table:3: sizes of a class"},
           {head + "host-ordinary allreduce 1x8 - all_pairs 1\n", "a.table:2: a row has six words"},
           {head + "host-ordinary allreduce 2x - all_pairs 1\n", "a.table:2: a row has six words"},
           {head + "host-ordinary allreduce 2x4 - all_pairs 9\n",
            "no plan 9 for host-ordinary allreduce of 8 ranks on 2 islands"},
           {head + "host allreduce 2 - ring 1\n", "a.table:2: there is no class 'host'"},
           {head + "host-ordinary sum 2 - ring 1\n", "or no collective 'sum'"},
           {head + "device-ordinary allreduce 2 - ring 1\n", "a.table:2: tables are for hosts"}}) {
    PlanLibrary library(bytesOf(archive));
    const Status status = library.useTable(text, "a.table");
    EXPECT_EQ(status.code(), StatusCode::InvalidArgument) << text;
    EXPECT_NE(status.message().find(error), std::string::npos) << status.message();
    EXPECT_TRUE(library.choose({Kind::AllReduce, 2, 64, 0, PlanClass::HostOrdinary}).ok());
  }
}

TEST(PlanLibrary, givesAllThreadsOnePlan) {
  std::string bytes = fileOf(archivePath);
  PlanLibrary library(bytesOf(bytes));
  std::vector<const plan::Plan *> plans(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < plans.size(); ++i)
    threads.emplace_back([&, i] {
      auto chosen = library.choose({Kind::Broadcast, 4, 4096, 3, PlanClass::DeviceRegistered});
      plans[i] = chosen.ok() ? chosen->plan.get() : nullptr;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_NE(plans[0], nullptr);
  EXPECT_EQ(std::set(plans.begin(), plans.end()).size(), 1u);
}

/// An archive of which a byte is another, or which ends early, gives an error that says so, or the
/// same plan as before.
TEST(PlanLibrary, saysThatItsArchiveIsDamaged) {
  std::string whole = fileOf(archivePath);
  Wanted wanted = {Kind::AllReduce, 2, 4096, 0, PlanClass::HostOrdinary};
  auto right = PlanLibrary(bytesOf(whole)).choose(wanted);
  ASSERT_TRUE(right.ok()) << right.status().message();
  uint32_t seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  auto check = [&](const std::string &bytes, bool mustFail) {
    PlanLibrary library(bytesOf(bytes));
    auto chosen = library.choose(wanted);
    EXPECT_FALSE(chosen.ok() && (mustFail || plan::hashPlan(*chosen->plan) != right->hash));
    if (!chosen.ok()) {
      EXPECT_EQ(chosen.status().code(), StatusCode::InternalError);
      EXPECT_NE(chosen.status().message().find("the archive of plans in this build of OCCL is "
                                               "damaged: "),
                std::string::npos)
          << chosen.status().message();
    }
  };
  check("", true);
  check("nothing of the kind", true);
  check(whole.substr(0, whole.size() - 1), true);
  check(whole + "x", true);
  for (size_t at = 0; at < 600; ++at) { // the first line, and of the index a good part
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 1u << random() % 8);
    check(bytes, at <= whole.find('\n')); // a bit of zstd's own means nothing
  }
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole;
    bytes[random() % (bytes.size() / 16)] ^= static_cast<char>(1u << random() % 8);
    check(bytes, false);
  }
}

} // namespace

int main(int argc, char **argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 5) {
    std::cerr << "usage: plan_library_test <archive> <host_plans.tsv> <device_plans.tsv> "
                 "<resident_plans.tsv>\n";
    return 2;
  }
  archivePath = argv[1], hostTable = argv[2], deviceTable = argv[3], residentTable = argv[4];
  return RUN_ALL_TESTS();
}
