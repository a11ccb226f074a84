#include "tools/occlc/commands.h"

#include "compiler/export/DotExport.h"
#include "plan/limits.h"
#include "plan/printer.h"
#include "plan/reader.h"
#include "plan/writer.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <fstream>
#include <iostream>

namespace occl::tools {

namespace {

int fail(const std::string &message) {
  std::cerr << "error: " << message << '\n';
  return 1;
}

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

int writePlan(const plan::Plan &plan, const std::string &path) {
  plan::Status status = path == "-" ? plan::writePlan(plan, plan::Format::Json, std::cout)
                                    : plan::writePlanFile(plan, path);
  return status ? 0 : fail(status.message());
}

/// A plan from a file, proved.
std::optional<plan::Plan> readVerified(const std::string &path, plan::VerifyResult &result) {
  plan::Expected<plan::Plan> plan = plan::readPlanFile(path);
  if (!plan) {
    fail(plan.message());
    return std::nullopt;
  }
  result = plan::verifyPlan(*plan);
  if (result)
    return std::move(*plan);
  std::cerr << path << ": error: the plan is wrong\n" << result.text();
  return std::nullopt;
}

std::string withNewline(std::string text) {
  if (text.empty() || text.back() != '\n')
    text += '\n';
  return text;
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
  driver::Compiler compiler(command.options);
  if (!compiler.load())
    return 1;
  std::string output = command.output;
  if (!command.options.bytes && compiler.version().count > 1) {
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
  if (command.stats)
    std::cerr << withNewline(compiler.verification().text());
  return command.emit == Emit::Dot ? writeDot(*plan, output) : writePlan(*plan, output);
}

int checkVersion(const driver::CompileOptions &options, size_t &count) {
  driver::Compiler compiler(options);
  if (!compiler.load() || !compiler.lower() || !compiler.exportVerifiedPlan())
    return 1;
  if (!options.bytes)
    count = compiler.version().count;
  std::cout << withNewline(compiler.verification().text());
  return 0;
}

} // namespace

int compile(const CompileCommand &command) {
  CompileCommand one = command;
  size_t count = 1;
  int status = 0;
  for (size_t &version = one.options.version; version < count && status == 0; ++version)
    status = compileVersion(one, count);
  return status;
}

int check(const driver::CompileOptions &options) {
  driver::CompileOptions one = options;
  size_t count = 1;
  int status = 0;
  for (size_t &version = one.version; version < count && status == 0; ++version)
    status = checkVersion(one, count);
  return status;
}

int verify(const std::string &path) {
  plan::VerifyResult result;
  if (!readVerified(path, result))
    return 1;
  std::cout << withNewline(result.text());
  return 0;
}

int explain(const std::string &path, std::optional<uint32_t> rank) {
  plan::VerifyResult result;
  std::optional<plan::Plan> plan = readVerified(path, result);
  if (!plan)
    return 1;
  if (rank && *rank >= plan->numRanks)
    return fail("'" + path + "' has " + std::to_string(plan->numRanks) +
                " ranks; there is no rank " + std::to_string(*rank));
  plan::printPlan(*plan, std::cout, rank);
  return 0;
}

int printLimits() {
  for (const plan::LimitInfo &limit : plan::kLimits)
    std::printf("%10llu  %s\n", static_cast<unsigned long long>(plan::Limits().*limit.field),
                limit.text);
  return 0;
}

} // namespace occl::tools
