#include "tools/occlc/import_command.h"

#include "compiler/driver/Compiler.h"
#include "compiler/driver/Printing.h"
#include "compiler/interchange/msccl/MscclImport.h"
#include "plan/model/limits.h"
#include "plan/verify/verifier.h"
#include "tools/occlc/output.h"

#include <iostream>

namespace occl::tools {

namespace {

constexpr const char *kExamples = R"(Examples:
  occlc import ring.xml -o ring.plan.json
  occlc import next.xml --implements alltonext -D chunks=8 -o next.plan.json
  occlc import allgather-dgx1.json -o allgather.plan.json
  occlc import mine.xml --implements mine.coll:exchange -D ranks=4 -o mine.plan.cbor)";

void printWarnings(const std::vector<interchange::Warning> &warnings,
                   const frontend::SourceManager &sources) {
  for (const interchange::Warning &warning : warnings)
    driver::printWarning(warning.message, warning.place, sources, diagnosticFormat());
}

/// The option that was given and says nothing of this file, with why; or nothing.
std::string needlessOption(const ImportCommand &command, bool isSynthesis) {
  // An option that has no effect is refused, since it looks like one that had.
  if (isSynthesis && !command.implements.collective.empty())
    return "--implements: such a file says itself what each rank is to get";
  if (isSynthesis && command.root)
    return "--root: such a file says itself where each chunk starts and ends";
  if (command.implements.collective.empty() && !command.implements.defines.empty())
    return "-D: there are parameters only of what --implements names";
  return "";
}

/// Algorithms without schedule: the compiler makes one.
int compileSynthesis(const ImportCommand &command) {
  // The file says what moves, not in which order or on which channel: so it goes through the passes
  // as a program does.
  driver::CompileOptions options;
  options.path = command.path;
  options.depth = command.depth;
  options.diagnosticFormat = diagnosticFormat();
  driver::Compiler compiler(options);
  if (!compiler.load() || !compiler.lower())
    return 1;
  std::optional<plan::Plan> plan = compiler.exportVerifiedPlan();
  if (!plan)
    return 1;
  std::cerr << forTerminal(compiler.verification().text());
  return writePlan(*plan, command.output);
}

} // namespace

CLI::App *addImport(CLI::App &app, ImportCommand &command) {
  CLI::App *sub = app.add_subcommand(
      "import", "make a verified plan from another tool's file (MSCCL XML, SCCL or TACCL JSON)");
  // Options in the order in which people need them.
  sub->footer(kExamples);
  sub->add_option("file", command.path,
                  "an MSCCL XML file, or an algorithm of SCCL or TACCL if it ends in .json")
      ->required();
  sub->add_option("-o,--output", command.output,
                  "the plan to write: CBOR if it ends in .cbor, else JSON; - is standard output")
      ->capture_default_str();
  sub->add_option("--depth", command.depth,
                  "messages in flight on a connection; default: 2 for Simple, 8 for LL and LL128")
      ->check(CLI::Range(1u, plan::limits::kMaxDepth));
  sub->add_option("--root", command.root,
                  "where a broadcast starts or a reduce ends; default: found out, else 0")
      ->check(CLI::Range(0u, plan::limits::kMaxRanks - 1));
  sub->add_option("--implements", command.implements.collective,
                  "what the algorithm is to be proved to do: a standard collective, or "
                  "file.coll[:name]; default: what the file names");
  sub->add_option("-D,--define", command.implements.defines,
                  "a parameter of the collective: name=value; ranks and chunks default to the "
                  "file's")
      ->allow_extra_args(false);
  sub->add_option("-I,--import-path", command.implements.importPaths,
                  "a folder in which to look for imports")
      ->allow_extra_args(false);
  return sub;
}

int importPlan(const ImportCommand &command) {
  // By the name's end: the two formats have nothing in common.
  const bool isSynthesis = std::string_view(command.path).ends_with(".json");
  if (std::string needless = needlessOption(command, isSynthesis); !needless.empty())
    return fail(needless + " [E025]");
  if (isSynthesis)
    return compileSynthesis(command);
  // The importer reports through the frontend's diagnostics, so that errors in files of other tools
  // look like those in programs.
  frontend::SourceManager sources;
  frontend::DiagnosticEngine diagnostics(sources);
  std::vector<interchange::Warning> warnings;
  interchange::msccl::ImportOptions options;
  options.depth = command.depth;
  options.root = command.root;
  // Without it, the file's own name of a collective is what is proved.
  if (!command.implements.collective.empty())
    options.postcondition = [&](uint32_t ranks, uint32_t chunks) {
      return interchange::instantiatePostcondition(command.implements, ranks, chunks, sources,
                                                   diagnostics);
    };
  plan::VerifyResult proved;
  std::optional<plan::Plan> plan;
  if (auto file = interchange::addImportFile(sources, command.path, diagnostics))
    plan = interchange::msccl::importAlgorithm(sources, *file, options, diagnostics, warnings,
                                               &proved);
  // Warnings also if it fails: they may say why.
  printWarnings(warnings, sources);
  driver::print(diagnostics, sources, diagnosticFormat());
  if (!plan)
    return 1;
  std::cerr << forTerminal(proved.text());
  return writePlan(*plan, command.output);
}

} // namespace occl::tools
