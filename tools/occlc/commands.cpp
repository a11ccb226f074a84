#include "tools/occlc/commands.h"

#include "compiler/export/DotExport.h"
#include "plan/limits.h"
#include "tools/occlc/export_command.h"
#include "tools/occlc/output.h"
#include "tools/occlc/plan_file.h"
#include "tools/occlc/trace.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <fstream>
#include <iostream>

namespace occl::tools {

namespace {

/// Writes IR: bytecode to files named .mlirbc, text with locations elsewhere.
int writeIR(mlir::ModuleOp module, const std::string &path) {
  std::error_code error;
  llvm::raw_fd_ostream out(path, error);
  if (error)
    return fail("cannot write '" + path + "': " + error.message());
  if (llvm::StringRef(path).ends_with(".mlirbc"))
    return mlir::succeeded(mlir::writeBytecodeToFile(module, out)) ? 0 : 1;
  module->print(out);
  return 0;
}

int writeDot(const plan::Plan &plan, const std::string &path) {
  if (path == "-") {
    exporter::writeDot(plan, std::cout);
    return 0;
  }
  std::ofstream out(path);
  exporter::writeDot(plan, out);
  return out.flush() ? 0 : fail("cannot write '" + path + "'");
}

/// The options with what is left to the cost model set, which `chosen` says; nothing after an
/// error.
std::optional<driver::CompileOptions> choose(const CompileCommand &command, std::string &chosen) {
  driver::CompileOptions options = command.options;
  if (!command.prediction.bytes.empty())
    options.bytes = command.prediction.bytes.front();
  driver::ChoiceOptions asked = command.choice;
  if (command.emit == Emit::Chunk || !driver::isChoiceAsked(options, asked))
    return options;
  asked.bytes = command.prediction.bytes;
  std::optional<driver::Choice> result = driver::chooseOptions(options, asked);
  if (!result)
    return std::nullopt;
  chosen = result->text();
  return options;
}

} // namespace

std::string versionPath(const std::string &path, const frontend::VersionInfo &version) {
  size_t folder = path.find_last_of('/');
  size_t dot = path.find('.', folder == std::string::npos ? 0 : folder + 1);
  std::string sizes = "." + std::to_string(version.minBytes) + "-" +
                      (version.maxBytes == ~uint64_t{0} ? "max" : std::to_string(version.maxBytes));
  return dot == std::string::npos ? path + sizes : std::string(path).insert(dot, sizes);
}

namespace {

/// Compiles the version that the options name, and learns how many there are.
int compileVersion(const CompileCommand &command, size_t &count) {
  std::string chosen;
  std::optional<driver::CompileOptions> options = choose(command, chosen);
  if (!options)
    return 1;
  driver::Compiler compiler(*options);
  if (!compiler.load())
    return 1;
  std::string output = command.output;
  if (!options->bytes && compiler.version().count > 1) {
    count = compiler.version().count;
    if (output == "-")
      return fail("the algorithm has " + std::to_string(count) +
                  " versions; choose one with --bytes, or write all of them with -o");
    output = versionPath(output, compiler.version());
  }
  if (command.emit == Emit::Chunk)
    return writeIR(compiler.module(), output);
  if (!compiler.lower())
    return 1;
  if (command.emit == Emit::Inst)
    return writeIR(compiler.module(), output);
  std::optional<plan::Plan> plan = compiler.exportVerifiedPlan();
  if (!plan)
    return 1;
  if (command.stats) {
    std::cerr << withNewline(compiler.verification().text()) << chosen;
    if (!printStats(*plan, compiler.topology(), command.prediction, std::cerr))
      return 1;
  }
  if (command.emit == Emit::Trace)
    return writeTrace(*plan, compiler.topology(), command.prediction, output);
  if (command.emit == Emit::MscclXml)
    return writeMscclXml(*plan, output, interchange::msccl::Runtime::Msccl);
  return command.emit == Emit::Dot ? writeDot(*plan, output) : writePlan(*plan, output);
}

int checkVersion(const CompileCommand &command, size_t &count) {
  std::string chosen;
  std::optional<driver::CompileOptions> options = choose(command, chosen);
  if (!options)
    return 1;
  driver::Compiler compiler(*options);
  if (!compiler.load() || !compiler.lower() || !compiler.exportVerifiedPlan())
    return 1;
  if (!options->bytes)
    count = compiler.version().count;
  std::cout << withNewline(compiler.verification().text()) << chosen;
  return 0;
}

/// Calls `run` for each version of the algorithm, or for the one that the options choose.
int forEachVersion(CompileCommand command, int (*run)(const CompileCommand &, size_t &count)) {
  size_t count = 1;
  int status = 0;
  for (size_t &version = command.options.version; version < count && status == 0; ++version)
    status = run(command, count);
  return status;
}

} // namespace

int compile(const CompileCommand &command) { return forEachVersion(command, compileVersion); }

int check(const CompileCommand &command) { return forEachVersion(command, checkVersion); }

int verify(const std::string &path) {
  plan::VerifyResult result;
  if (!readVerified(path, result))
    return 1;
  std::cout << withNewline(result.text());
  return 0;
}

int printLimits() {
  for (const plan::LimitInfo &limit : plan::kLimits)
    std::printf("%10llu  %s\n", static_cast<unsigned long long>(plan::Limits().*limit.field),
                limit.text);
  return 0;
}

} // namespace occl::tools
