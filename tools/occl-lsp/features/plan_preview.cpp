#include "tools/occl-lsp/features/plan_preview.h"

#include "compiler/cost/Sizes.h"
#include "compiler/driver/Compiler.h"
#include "compiler/export/Explanation.h"
#include "compiler/export/StatsReport.h"
#include "compiler/topology/Machines.h"
#include "support/text/wrapped.h"

#include <algorithm>
#include <sstream>

namespace occl::lsp {
namespace {

constexpr size_t kMaxText = 1u << 20;

std::string chooseAlgorithm(const Analysis &analysis, const Document &document,
                            const PlanParams &params) {
  if (!params.algorithm.empty())
    // What the request names, else the algorithm in which the cursor stands, else the first one.
    return params.algorithm;
  const auto &algorithms = analysis.program.main().algorithms;
  const frontend::Decl *around =
      params.position ? analysis.declAt(document.text.offsetOf(*params.position)) : nullptr;
  for (const frontend::AlgorithmDecl &algorithm : algorithms)
    if (&algorithm == around)
      return std::string(algorithm.name);
  return algorithms.empty() ? "" : std::string(algorithms.front().name);
}

/// The settings' that the algorithm or the topology has a parameter for, then the request's, which
/// count more.
std::vector<std::string> chooseDefines(const Analysis &analysis, const std::string &algorithm,
                                       const Settings &settings, const PlanParams &params) {
  std::vector<std::string> defines;
  for (const frontend::AlgorithmDecl &decl : analysis.program.main().algorithms)
    if (decl.name == algorithm)
      defines = definesFor(decl, settings);
  // A topology has parameters, too, which the same settings set.
  for (const std::string &define : settings.defines)
    if (analysis.topology && analysis.topology->hasParameter(define.substr(0, define.find('='))))
      defines.push_back(define);
  // Last, since the compiler takes the last one of a name.
  defines.insert(defines.end(), params.defines.begin(), params.defines.end());
  return defines;
}

/// Appends what there is to say of a verified plan; an error if it cannot be predicted.
llvm::Error describe(const plan::Plan &plan, const driver::Compiler &compiler,
                     const PlanParams &params, std::ostream &out) {
  // Predictions need a machine: that of the settings, or ranks in shared memory.
  topology::Topology shared = topology::sharedMemory(plan.numRanks);
  const topology::Topology &machine = compiler.topology() ? *compiler.topology() : shared;
  // One size for the explanation, several for the table, unless the request names one.
  std::vector<uint64_t> sizes = cost::usualSizes(plan);
  exporter::ExplainOptions options;
  options.bytes = cost::clampToPlan(plan, 1u << 20);
  if (params.bytes)
    sizes = {options.bytes = static_cast<uint64_t>(*params.bytes)};
  if (params.rank)
    options.rank = static_cast<uint32_t>(*params.rank);
  // In the order of `occlc compile --stats` and `occlc explain`, which print the same.
  out << wrapped(compiler.verification().text(), 4) << "\n";
  support::Status status = exporter::writeStats(plan, machine, sizes, out);
  out << "\n";
  if (status)
    status = exporter::writeExplanation(plan, machine, options, out);
  return status ? llvm::Error::success() : failure(status.message());
}

llvm::Error checkNumbers(const PlanParams &params) {
  constexpr int64_t kMostBytes = int64_t{1} << 40; // as for occlc
  if (params.bytes && (*params.bytes < 0 || *params.bytes > kMostBytes))
    return failure("bytes are 0 to 2^40", protocol::ErrorCode::InvalidParams);
  if (params.rank && *params.rank < 0)
    return failure("ranks count from 0", protocol::ErrorCode::InvalidParams);
  return llvm::Error::success();
}

/// Appends one version, and learns how many there are.
llvm::Error previewVersion(const driver::CompileOptions &options, const PlanParams &params,
                           size_t &count, std::ostream &out) {
  // The compiler prints its messages; here they become the answer's error.
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  driver::CompileOptions own = options;
  own.messages = &stream;
  driver::Compiler compiler(own);
  std::optional<plan::Plan> plan;
  if (compiler.load() && compiler.lower())
    plan = compiler.exportVerifiedPlan();
  if (!plan)
    return failure(messages.empty() ? "there is no plan" : messages);
  // The number of ranks is known only now.
  if (params.rank && *params.rank >= int64_t{plan->numRanks})
    return failure("the plan has " + std::to_string(plan->numRanks) + " ranks; there is no rank " +
                       std::to_string(*params.rank),
                   protocol::ErrorCode::InvalidParams);
  // With a size there is one version, that of the size.
  count = options.bytes ? 1 : compiler.version().count;
  if (count > 1)
    out << "Version " << options.version + 1 << " of " << count << ", from "
        << compiler.version().minBytes << " bytes on\n\n";
  return describe(*plan, compiler, params, out);
}

} // namespace

llvm::Expected<std::string> previewPlan(Workspace &workspace, Document &document,
                                        const PlanParams &params) {
  // Before anything is compiled: the numbers come from a client and need not make sense.
  if (llvm::Error error = checkNumbers(params))
    return error;
  const Analysis &analysis = workspace.analyse(document);
  // The options that occlc would have, with unsaved buffers over the files.
  const Settings &settings = workspace.settings();
  driver::CompileOptions options;
  options.path = document.uri.file().str();
  options.overlay = &workspace.overlay();
  options.algorithm = chooseAlgorithm(analysis, document, params);
  options.importPaths = settings.importPaths;
  options.topology = settings.topology;
  options.defines = chooseDefines(analysis, options.algorithm, settings, params);
  if (params.bytes)
    options.bytes = static_cast<uint64_t>(*params.bytes);
  std::ostringstream out;
  size_t count = 1;
  // The first version says how many there are.
  for (; options.version < count; ++options.version)
    if (llvm::Error error = previewVersion(options, params, count, out))
      return error;
  std::string text = out.str();
  // Editors show the text in a document; one of hundreds of megabytes would freeze them.
  if (text.size() > kMaxText) {
    text.resize(text.rfind('\n', kMaxText) + 1);
    text += "... and more, which is left out: ask for one rank, or run occlc explain\n";
  }
  return llvm::json::fixUTF8(text);
}

} // namespace occl::lsp
