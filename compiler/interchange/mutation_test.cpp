// Damaged files are rejected or imported; nothing else. What is imported has been proved.
#include "compiler/frontend/memory/NullChunkSink.h"
#include "compiler/interchange/msccl/MscclImport.h"
#include "compiler/interchange/synthesis/Synthesis.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

namespace occl::interchange {
namespace {

constexpr unsigned kSeed = 20261120;

std::string read(const std::string &path) {
  std::ifstream stream(path);
  EXPECT_TRUE(stream) << path;
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

/// Replaces, removes, repeats or cuts something.
std::string mutate(std::string text, std::mt19937 &random) {
  static const std::vector<std::string> kWords = {"\"",
                                                  "<",
                                                  ">",
                                                  "/>",
                                                  "-1",
                                                  "99999999999",
                                                  "0",
                                                  "1",
                                                  "2",
                                                  "cnt=\"4194304\"",
                                                  "<tb id=\"0\">",
                                                  "</gpu>",
                                                  "&lt;",
                                                  "[",
                                                  "]",
                                                  "{",
                                                  "s_chunks=\"4194304\"",
                                                  "type=\"nop\"",
                                                  "rrcs",
                                                  "hasdep"};
  size_t at = random() % text.size();
  switch (random() % 5) {
  case 0:
    return text.replace(at, random() % 8, kWords[random() % kWords.size()]);
  case 1:
    return text.erase(at, random() % 40);
  case 2:
    return text.insert(at, text.substr(random() % text.size(), random() % 200));
  case 3:
    return text.substr(0, at);
  default: // a digit becomes another
    at = text.find_first_of("0123456789", at);
    if (at != text.npos)
      text[at] = static_cast<char>('0' + random() % 10);
    return text;
  }
}

class Damaged : public testing::TestWithParam<const char *> {};

TEST_P(Damaged, XmlIsRejectedOrProved) {
  std::string text = read(std::string("test/interchange/Inputs/") + GetParam());
  std::mt19937 random(kSeed);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = text;
    for (unsigned times = 1 + random() % 2; times > 0 && !damaged.empty(); --times)
      damaged = mutate(damaged, random);
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", file " + std::to_string(i));
    frontend::SourceManager sources;
    frontend::DiagnosticEngine diagnostics(sources);
    std::vector<Warning> warnings;
    frontend::FileId file = sources.addText("damaged.xml", damaged);
    auto plan = msccl::importAlgorithm(sources, file, {}, diagnostics, warnings);
    EXPECT_EQ(plan.has_value(), !diagnostics.hasErrors()) << diagnostics.render();
  }
}

INSTANTIATE_TEST_SUITE_P(Inputs, Damaged,
                         testing::Values("allreduce_one_step.xml", "alltoall_nops.xml",
                                         "copies.xml", "reduce_mixed.xml", "reducescatter.xml"));

TEST(DamagedSynthesis, IsRejectedOrEmitted) {
  const std::string text =
      R"json({"msccl_type": "algorithm", "name": "a", "collective": {"name": "Allgather(n=2)",
 "nodes": 2, "chunks": [{"pre": [0], "post": [0, 1], "addr": 0},
 {"pre": [1], "post": [0, 1], "addr": 1}]}, "instance": {"chunks": 1, "pipeline": null},
 "steps": [{"rounds": 1, "sends": [[0, 0, 1], [1, 1, 0]]}]})json";
  std::mt19937 random(kSeed);
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", file " + std::to_string(i));
    frontend::SourceManager sources;
    frontend::DiagnosticEngine diagnostics(sources);
    frontend::FileId file = sources.addText("damaged.json", mutate(text, random));
    frontend::NullChunkSink sink;
    auto algorithm = synthesis::parse(sources, file, diagnostics);
    bool isGood = algorithm && synthesis::emit(*algorithm, file, sink, diagnostics);
    EXPECT_EQ(isGood, !diagnostics.hasErrors()) << diagnostics.render();
  }
}

} // namespace
} // namespace occl::interchange
