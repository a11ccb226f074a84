#include "tools/occlc/export_command.h"

#include "compiler/driver/Printing.h"
#include "compiler/interchange/msccl/MscclImport.h"
#include "tools/occlc/options/words.h"
#include "tools/occlc/output.h"
#include "tools/occlc/plan_file.h"

#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

namespace occl::tools {

namespace {

namespace msccl = interchange::msccl;

constexpr const char *kExamples = R"(Examples:
  occlc export ring.plan.json -o ring.xml
  occlc export scatter.plan.cbor --runtime rccl -o scatter.xml
  occlc compile ring.coll -D ranks=8 --emit=msccl-xml -o ring.xml)";

/// What the plan promises, for a file that calls it custom.
frontend::ProgramInfo promiseOf(const plan::Plan &plan) {
  // The same struct as the frontend makes of a program, so that the importer can check against
  // either.
  frontend::ProgramInfo promise;
  promise.collective = plan.collective;
  promise.numRanks = plan.numRanks;
  promise.partChunks = plan.partChunks;
  promise.root = plan.root;
  promise.outOfPlace = plan.outOfPlace;
  promise.inPlace = plan.inPlace;
  for (const plan::RankPlan &rank : plan.ranks) {
    promise.inputChunks.push_back(rank.inputChunks);
    promise.outputChunks.push_back(rank.outputChunks);
    promise.inPlaceOffsets.push_back(rank.inPlaceOffset);
  }
  // Requirements are flat there: four numbers, then pairs of contributions.
  std::vector<int32_t> &flat = promise.requirements;
  auto push = [&](uint32_t number) { flat.push_back(static_cast<int32_t>(number)); };
  for (const plan::Requirement &requirement : plan.requirements) {
    for (uint32_t number : {requirement.rank, requirement.outputChunk, requirement.count,
                            requirement.numContributions})
      push(number);
    for (const plan::Contribution &contribution : plan.contributionsOf(requirement)) {
      push(contribution.rank);
      push(contribution.chunk);
    }
  }
  return promise;
}

/// Whether the text does what `plan` does, as the importer understands it; prints why not.
bool readBack(const std::string &text, const plan::Plan &plan, const std::string &collective,
              const std::string &path) {
  // The XML is read as any other tool's file would be. That proves the whole way at once: what is
  // written means what the plan means.
  frontend::SourceManager sources;
  frontend::DiagnosticEngine diagnostics(sources);
  std::vector<interchange::Warning> warnings;
  msccl::ImportOptions options;
  options.root = plan.root;
  // For standard collectives the file's own name is enough.
  if (collective == "custom" && plan.hasPostcondition)
    options.postcondition = [&](uint32_t, uint32_t) { return promiseOf(plan); };
  frontend::FileId file = sources.addText(path == "-" ? "<export>" : path, text);
  if (msccl::importAlgorithm(sources, file, options, diagnostics, warnings))
    return true;
  driver::print(diagnostics, sources, diagnosticFormat());
  fail("the plan cannot be said in MSCCL XML; what it becomes is wrong, as shown above, and is not "
       "written. Its "
       "runtimes hold 2 messages on a connection (8 with LL and LL128) and reduce before they pass "
       "on: compile with "
       "--max-depth 2, --no-multicast or --no-fuse to come nearer [E240]");
  return false;
}

} // namespace

CLI::App *addExport(CLI::App &app, ExportCommand &command) {
  CLI::App *sub = app.add_subcommand("export", "write a plan as another tool's file (MSCCL XML)");
  sub->footer(kExamples);
  sub->add_option("plan", command.path, "a plan, JSON or CBOR")->required();
  sub->add_option("-o,--output", command.output, "the file to write; - is standard output")
      ->capture_default_str();
  addWord<msccl::Runtime>(
      *sub, "--runtime", command.runtime,
      {{"msccl", msccl::Runtime::Msccl}, {"rccl", msccl::Runtime::Rccl}},
      "whose names collectives have: msccl (microsoft/msccl) or rccl (also Azure/msccl)");
  return sub;
}

int exportPlan(const ExportCommand &command) {
  plan::VerifyResult result;
  std::optional<plan::Plan> plan = readVerified(command.path, result);
  return plan ? writeMscclXml(*plan, command.output, command.runtime) : 1;
}

int writeMscclXml(const plan::Plan &plan, const std::string &path, msccl::Runtime runtime) {
  // The plan becomes the other tool's structure, if that can say it at all.
  support::Expected<msccl::Algorithm> algorithm = msccl::exportAlgorithm(plan, runtime);
  if (!algorithm)
    return fail(algorithm.message());
  std::ostringstream text;
  msccl::writeAlgorithm(*algorithm, text);
  // Before anything is written.
  if (!readBack(text.str(), plan, algorithm->collective, path))
    return 1;
  // Valid, but more than the runtimes of that format are known to hold.
  for (const std::string &line : msccl::beyondRuntimes(*algorithm))
    driver::printWarning("the algorithm has " + line + " [W240]", {}, {}, diagnosticFormat());
  if (path == "-") {
    std::cout << text.str();
    return flushOutput();
  }
  std::ofstream out(path);
  out << text.str();
  return out.flush() ? 0 : failToWrite(path);
}

} // namespace occl::tools
