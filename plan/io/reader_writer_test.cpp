// Plans written and read again, in both formats, and what the reader says of files that are no
// plans.
#include "plan/io/read_code.h"
#include "plan/io/reader.h"
#include "plan/io/writer.h"
#include "plan/model/hash.h"
#include "plan/model/limits.h"
#include "plan/testing/example_plans.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>

namespace occl::plan {
namespace {

std::vector<Plan> examples() {
  std::vector<Plan> plans;
  for (uint32_t n : {1, 2, 3, 5, 8})
    for (Plan (*make)(uint32_t) :
         {testing::ringAllReduce, testing::oneShotAllReduce, testing::twoShotAllReduce,
          testing::ringAllGather, testing::ringReduceScatter, testing::allToAll})
      plans.push_back(make(n));
  plans.push_back(testing::chainBroadcast(4, 3, 1));
  plans.push_back(testing::chainReduce(4, 3, 1));
  plans.push_back(testing::shift(4));
  return plans;
}

/// The text of ring all-reduce for two ranks with `from` replaced by `to`.
std::string edited(const std::string &from, const std::string &to) {
  std::string text = encodePlan(testing::ringAllReduce(2), Format::Json);
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// What the reader says, without the code.
std::string errorOf(const std::string &bytes) {
  support::Expected<Plan> plan = readPlan(bytes);
  EXPECT_FALSE(plan);
  size_t code = plan.message().rfind(" [E35");
  EXPECT_NE(code, std::string::npos) << plan.message();
  return plan.message().substr(0, code);
}

TEST(ReaderWriter, EveryErrorHasItsCode) {
  auto messageOf = [](const std::string &bytes) { return readPlan(bytes).message(); };
  Limits few;
  few.ranks = 1;
  std::vector<std::string> messages = {
      readPlanFile("no/such/file").message(),
      messageOf("plan"),
      messageOf("{\"schemaVersion\": 1"),
      messageOf("\xbf"),
      messageOf("{}"),
      readPlan(encodePlan(testing::shift(2), Format::Cbor), "plan", few).message()};
  std::vector<std::string> expected = {
      "no/such/file: there is no such file, or it is not a regular file [E350]",
      "plan: this is no plan: neither a JSON object nor a CBOR map [E351]",
      "plan: byte 20: this is not JSON, or is cut off, near '1' [E352]",
      "plan: byte 0: plans have no items of indefinite length [E353]",
      "plan: at the top: the key 'schemaVersion' is missing [E354]",
      "plan: byte 438: at ranks[1]: more than 1 ranks [E355]"};
  EXPECT_EQ(messages, expected);
  EXPECT_EQ(std::size(kReadCodes), expected.size());
}

TEST(ReaderWriter, RoundTripKeepsEverything) {
  for (const Plan &plan : examples()) {
    std::string text = encodePlan(plan, Format::Json), bytes = encodePlan(plan, Format::Cbor);
    EXPECT_LT(bytes.size(), text.size());
    for (const std::string &encoded : {text, bytes}) {
      support::Expected<Plan> copy = readPlan(encoded);
      ASSERT_TRUE(copy) << copy.message();
      EXPECT_EQ(encodePlan(*copy, Format::Json), text);
      EXPECT_EQ(encodePlan(*copy, Format::Cbor), bytes);
      EXPECT_EQ(hashPlan(*copy), hashPlan(plan));
    }
  }
}

TEST(ReaderWriter, EveryFieldTravels) {
  Plan plan = testing::ringAllReduce(2);
  plan.name = "two \"words\", \xc3\xa9";
  plan.parameters = {{"b", -5}, {"a", INT64_MIN}, {"c", INT64_MAX}};
  plan.root = 1;
  plan.outOfPlace = false;
  plan.uniformChunks = true;
  plan.protocol = Protocol::LL128;
  plan.depth = 7;
  plan.minBytes = 12;
  plan.maxBytes = 1ull << 40;
  plan.ranks[1].inPlaceOffset = -3;
  plan.instructions[0].opcode = Opcode::Wait;
  plan.instructions[0].value = 9;
  plan.hasPostcondition = false;
  plan.average = false;
  plan.connections[1].isOrdered = true;
  plan.witnesses = {{0, 2}, {2, 1}};
  plan.places = {{0, 0, 1}, {1, 0, 2}, {1, 0, 3}};
  plan.operands[0].rank = 1;
  plan.operands[1].rank = 1;
  for (Format format : {Format::Json, Format::Cbor}) {
    support::Expected<Plan> copy = readPlan(encodePlan(plan, format));
    ASSERT_TRUE(copy) << copy.message();
    EXPECT_EQ(copy->name, plan.name);
    EXPECT_EQ(copy->parameters, plan.parameters);
    EXPECT_EQ(copy->ranks[1].inPlaceOffset, -3);
    EXPECT_FALSE(copy->average);
    EXPECT_EQ(copy->operands, plan.operands);
    EXPECT_FALSE(copy->connections[0].isOrdered);
    EXPECT_TRUE(copy->connections[1].isOrdered);
    EXPECT_EQ(copy->places, plan.places);
    EXPECT_EQ(copy->witnesses[1].numPlaces, 1u);
    EXPECT_EQ(encodePlan(*copy, Format::Json), encodePlan(plan, Format::Json));
    EXPECT_EQ(hashPlan(*copy), hashPlan(plan));
  }
}

TEST(ReaderWriter, FilesByExtension) {
  Plan plan = testing::twoShotAllReduce(3);
  std::string folder = std::getenv("TEST_TMPDIR");
  for (const char *name : {"/a.plan.json", "/a.plan.cbor"}) {
    ASSERT_TRUE(writePlanFile(plan, folder + name));
    support::Expected<Plan> copy = readPlanFile(folder + name);
    ASSERT_TRUE(copy) << copy.message();
    EXPECT_EQ(hashPlan(*copy), hashPlan(plan));
  }
  EXPECT_EQ(readPlanFile(folder + "/none").message(),
            folder + "/none: there is no such file, or it is not a regular file [E350]");
  EXPECT_EQ(readPlanFile("/dev/zero").message(),
            "/dev/zero: there is no such file, or it is not a regular file [E350]");
  EXPECT_EQ(writePlanFile(plan, folder + "/no/such").message(),
            "cannot open '" + folder + "/no/such' for writing: No such file or directory");
  EXPECT_EQ(writePlanFile(plan, folder).message(),
            "cannot open '" + folder + "' for writing: it is a directory");
  EXPECT_EQ(writePlanFile(plan, "/dev/full").message(),
            "cannot write '/dev/full': is the disk full?");
  EXPECT_TRUE(std::filesystem::exists("/dev/full"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/a.plan.json.partial"));
}

TEST(ReaderWriter, LinksAndModesStay) {
  namespace fs = std::filesystem;
  const std::string folder = std::getenv("TEST_TMPDIR");
  const fs::path file = folder + "/linked.plan.json", link = folder + "/link.plan.json";
  std::ofstream(file) << "an earlier one";
  const fs::perms mode = fs::perms::owner_read | fs::perms::owner_write;
  fs::permissions(file, mode);
  fs::create_symlink(file.filename(), link);
  const Plan plan = testing::twoShotAllReduce(3);
  ASSERT_TRUE(writePlanFile(plan, link));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(fs::status(file).permissions(), mode);
  support::Expected<Plan> copy = readPlanFile(file);
  ASSERT_TRUE(copy) << copy.message();
  EXPECT_EQ(hashPlan(*copy), hashPlan(plan));
  EXPECT_FALSE(fs::exists(file.string() + ".partial"));
  // Also one that leads to nothing yet.
  fs::remove(file);
  ASSERT_TRUE(writePlanFile(plan, link));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(readPlanFile(file));
}

TEST(ReaderWriter, HashSeesWhatIsExecutedOnly) {
  Plan plan = testing::ringAllReduce(4), other = plan;
  other.files[0] = "/elsewhere/ring.coll";
  other.locations[0].line = 99;
  EXPECT_EQ(hashPlan(plan), hashPlan(other));
  other.witnesses = {{0, 1}};
  other.places = {{0, 0, 0}};
  EXPECT_EQ(hashPlan(plan), hashPlan(other));
  other.connections[0].isOrdered = true;
  EXPECT_NE(hashPlan(plan), hashPlan(other)) << "the runtime has to fence";
  other = plan;
  other.operands[3].index ^= 1;
  EXPECT_NE(hashPlan(plan), hashPlan(other));
  EXPECT_EQ(hashPlan(testing::ringAllReduce(2)), 13726590423133575837u)
      << "the hash must not change between builds";
}

TEST(Reader, NamesThePlaceOfWhatIsWrong) {
  EXPECT_EQ(errorOf(edited("\"schemaVersion\": 1", "\"schemaVersion\": 2")),
            "plan: at schemaVersion: this version reads schema version 1, not 2: compile the plan "
            "again");
  EXPECT_EQ(errorOf(edited("\"depth\"", "\"dept\"")),
            "plan: at the top: unknown key 'dept'; did you mean 'depth'?");
  EXPECT_EQ(errorOf(edited("\"depth\": 2", "\"root\": 2")),
            "plan: at root: the key is given twice");
  EXPECT_EQ(errorOf(edited(" \"depth\": 2,", "")), "plan: at the top: the key 'depth' is missing");
  EXPECT_EQ(errorOf(edited("\"depth\": 2", "\"depth\": \"2\"")),
            "plan: at depth: expected an integer from 0 to 4294967295, got '2'");
  EXPECT_EQ(errorOf(edited("\"depth\": 2", "\"depth\": 4294967296")),
            "plan: at depth: expected an integer from 0 to 4294967295, got 4294967296");
  EXPECT_EQ(errorOf(edited("\"depth\": 2", "\"depth\": -1")),
            "plan: at depth: expected an integer from 0 to 4294967295, got -1");
  EXPECT_EQ(errorOf(edited("\"depth\": 2", "\"depth\": 1e99")),
            "plan: at depth: expected an integer from 0 to 4294967295, got a number that is not a "
            "64-bit integer");
  EXPECT_EQ(errorOf(edited("\"depth\": 2", "\"depth\": [[2]]")),
            "plan: at depth: expected no array here");
  EXPECT_EQ(errorOf(edited("\"inPlace\": true", "\"inPlace\": null")),
            "plan: at inPlace: expected true or false, got null");
  EXPECT_EQ(errorOf(edited("\"Simple\"", "\"simple\"")),
            "plan: at protocol: expected \"Simple\", \"LL\" or \"LL128\", got 'simple'");
  EXPECT_EQ(errorOf(edited("\"numRanks\": 2", "\"numRanks\": 3")),
            "plan: at the top: numRanks is 3, but there are 2 ranks");
  EXPECT_EQ(errorOf(edited("\"ranks\": 2}", "\"ranks\": 2, \"ranks\": 3}")),
            "plan: at parameters.ranks: the parameter is given twice");
}

TEST(Reader, NamesThePlaceInAnInstruction) {
  const std::string place = "plan: at ranks[0].threadBlocks[0][0]";
  EXPECT_EQ(errorOf(edited("\"send\"", "\"sent\"")),
            place + ".op: expected the name of an instruction, got 'sent'; did you mean 'send'?");
  // Names that were instructions once are as unknown as any other.
  for (const std::string name : {"gate", "arrive"})
    EXPECT_EQ(errorOf(edited("\"send\"", '"' + name + '"')),
              place + ".op: expected the name of an instruction, got '" + name + "'");
  EXPECT_EQ(errorOf(edited("[\"input\", 0]", "[\"inputs\", 0]")),
            place +
                ".src[0][0]: expected \"input\", \"output\", \"scratch\" or \"connection\", got "
                "'inputs'");
  EXPECT_EQ(errorOf(edited("[\"input\", 0]", "[\"input\"]")),
            place + ".src[0]: expected 2 elements, got 1");
  EXPECT_EQ(errorOf(edited("[\"input\", 0]", "[\"input\", 0, 0, 0]")),
            place + ".src[0][3]: expected at most 3 elements");
  EXPECT_EQ(errorOf(edited("[\"input\", 0]", "7")), place + ".src[0]: expected an array, got 7");
  EXPECT_EQ(errorOf(edited("[\"input\", 0]", "{}")),
            place + ".src[0]: expected an array, got an object");
  EXPECT_EQ(errorOf(edited("\"op\": \"send\", ", "")), place + ": the key 'op' is missing");
  EXPECT_EQ(errorOf(edited("[0, 0, [1]]", "[0, 0, 1]")),
            "plan: at connections[0][2]: expected an array, got 1");
  EXPECT_EQ(errorOf(edited("[0, 0, [1]]", "[0, [1], 0]")),
            "plan: at connections[0][1]: expected no array here");
}

TEST(Reader, RefusesWhatIsNoPlan) {
  EXPECT_EQ(errorOf(""), "plan: this is no plan: neither a JSON object nor a CBOR map");
  EXPECT_EQ(errorOf("[]"), "plan: this is no plan: neither a JSON object nor a CBOR map");
  EXPECT_EQ(errorOf("{}"), "plan: at the top: the key 'schemaVersion' is missing");
  EXPECT_EQ(errorOf("{\"schemaVersion\": 1"),
            "plan: byte 20: this is not JSON, or is cut off, near '1'");
  EXPECT_EQ(errorOf(encodePlan(testing::shift(2), Format::Cbor) + "x").substr(0, 11),
            "plan: byte ");
  EXPECT_NE(errorOf(encodePlan(testing::shift(2), Format::Json) + "x").find("not JSON"),
            std::string::npos);
  EXPECT_EQ(errorOf("\xbf"), "plan: byte 0: plans have no items of indefinite length");
  EXPECT_EQ(errorOf("\xba\xff\xff\xff\xff"),
            "plan: byte 0: the plan is cut off, or declares 4294967295 members that are not there");
  EXPECT_EQ(errorOf(std::string("\xa1\x01\x01")), "plan: byte 1: the key is not a text string");
  EXPECT_EQ(errorOf("\xa1\x64name\xc1\x01"), "plan: byte 6: plans have no tags");
  EXPECT_EQ(errorOf("\xa1\x64name\x41\x01"), "plan: byte 6: plans have no byte strings");
  EXPECT_EQ(errorOf("\xa1\x64name\x7b\xff\xff\xff\xff\xff\xff\xff\xff"),
            "plan: byte 6: the plan is cut off in a string of 18446744073709551615 bytes");
  EXPECT_EQ(errorOf("\xa1\x64name\x62\xff\xff"),
            "plan: byte 6: at name: the text holds control characters or is not UTF-8");
  // Nesting must not cost stack.
  EXPECT_FALSE(readPlan("{\"name\": " + std::string(1 << 20, '[')));
  EXPECT_FALSE(readPlan("\xa1" + std::string(1 << 20, '\x7f')));
  EXPECT_FALSE(readPlan(std::string(1 << 20, '\xa1')));
}

TEST(ReaderWriter, NamesThatAreNoPlainTextCanBeReadAgain) {
  Plan plan = testing::ringAllReduce(2);
  plan.name = "a\nb\x7f";
  plan.collective = "allr\xc3\xa9"
                    "duce";
  plan.files[0] = "caf\xe9/\xf0\x9f\x98\x80.co\x1bll";
  plan.parameters = {{"x\t", 1}};
  for (Format format : {Format::Json, Format::Cbor}) {
    support::Expected<Plan> again = readPlan(encodePlan(plan, format));
    ASSERT_TRUE(again) << again.message();
    EXPECT_EQ(again->name, "a?b?");
    EXPECT_EQ(again->collective, plan.collective);
    EXPECT_EQ(again->files[0], "caf?/\xf0\x9f\x98\x80.co?ll");
    EXPECT_EQ(again->parameters[0].first, "x?");
  }
}

TEST(Reader, HoldsTheLimits) {
  std::string longest(limits::kMaxNameLength, 'a');
  EXPECT_TRUE(readPlan(edited("\"ring_allreduce\"", "\"" + longest + "\"")));
  EXPECT_EQ(errorOf(edited("\"ring_allreduce\"", "\"a" + longest + "\"")),
            "plan: at name: the text has 1025 bytes; at most 1024 are allowed");
  auto repeated = [](const std::string &item, uint32_t times) {
    std::string text;
    for (uint32_t i = 0; i < times; ++i)
      text += (i ? "," : "") + item;
    return text;
  };
  auto withSources = [&](uint32_t count) {
    return edited("[[\"input\", 0]]", "[" + repeated("[\"input\", 0]", count) + "]");
  };
  EXPECT_TRUE(readPlan(withSources(limits::kMaxOperands - 1)));
  EXPECT_EQ(errorOf(withSources(limits::kMaxOperands + 1)),
            "plan: at ranks[0].threadBlocks[0][0].src[4096]: more than 4096 operands");
  auto withDependencies = [&](uint32_t count) {
    return edited("\"count\"", "\"after\": [" + repeated("[0, 0]", count) + "], \"count\"");
  };
  EXPECT_TRUE(readPlan(withDependencies(limits::kMaxDependencies)));
  EXPECT_EQ(errorOf(withDependencies(limits::kMaxDependencies + 1)),
            "plan: at ranks[0].threadBlocks[0][0].after[1024]: more than 1024 dependencies");
  auto withBlocks = [&](uint32_t count) {
    return edited("\"threadBlocks\": [", "\"threadBlocks\": [" + repeated("[]", count) + ",");
  };
  EXPECT_TRUE(readPlan(withBlocks(limits::kMaxThreadBlocks - 1)));
  EXPECT_EQ(errorOf(withBlocks(limits::kMaxThreadBlocks)),
            "plan: at ranks[0].threadBlocks[1024]: more than 1024 thread blocks");
  auto withDestinations = [&](uint32_t count) {
    return edited("[0, 0, [1]]", "[0, 0, [" + repeated("1", count) + "]]");
  };
  EXPECT_TRUE(readPlan(withDestinations(limits::kMaxRanks)));
  EXPECT_EQ(errorOf(withDestinations(limits::kMaxRanks + 1)),
            "plan: at connections[0][2][4096]: more than 4096 destinations");
}

TEST(Reader, CutOffFilesAreErrors) {
  for (Format format : {Format::Json, Format::Cbor}) {
    std::string bytes = encodePlan(testing::shift(3), format);
    if (format == Format::Json)
      bytes.pop_back(); // the last line's end
    for (size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(readPlan(bytes.substr(0, size))) << size;
  }
}

TEST(Reader, DamagedFilesNeverCrash) {
  uint32_t seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  std::mt19937 random(seed);
  for (Format format : {Format::Json, Format::Cbor}) {
    const std::string good = encodePlan(testing::twoShotAllReduce(3), format);
    for (int round = 0; round < 6000; ++round) {
      std::string bytes = good;
      for (uint32_t edits = 1 + random() % 4; edits > 0; --edits) {
        size_t at = random() % bytes.size();
        switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, 1 + random() % 8);
          break;
        default:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 16));
        }
      }
      support::Expected<Plan> plan = readPlan(bytes);
      EXPECT_NE(plan.isOk(), !plan.message().empty()) << "seed " << seed;
    }
  }
}

} // namespace
} // namespace occl::plan
