#include "tools/occlc/commands.h"

#include "compiler/export/DotExport.h"
#include "plan/io/writer.h"
#include "plan/model/limits.h"
#include "tools/occlc/export_command.h"
#include "tools/occlc/output.h"
#include "tools/occlc/plan_file.h"
#include "tools/occlc/trace.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/Support/raw_ostream.h"

#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <span>
#include <vector>

namespace occl::tools {

namespace {

/// Writes IR: bytecode to files named .mlirbc, text with locations elsewhere.
int writeIR(mlir::ModuleOp module, const std::string &path) {
  std::error_code error;
  llvm::raw_fd_ostream out(path, error);
  if (error)
    return failToWrite(path, error.message());
  if (llvm::StringRef(path).ends_with(".mlirbc"))
    (void)mlir::writeBytecodeToFile(module, out); // fails where writing fails
  else
    module->print(out);
  out.flush();
  error = out.error();
  // LLVM's stream ends the process if an error is left in it.
  out.clear_error();
  return error ? failToWrite(path, error.message()) : 0;
}

/// What write(stream) writes, to a file or to standard output.
template <class Write> int writeText(const std::string &path, const Write &write) {
  if (path == "-") {
    write(std::cout);
    return flushOutput();
  }
  std::ofstream out(path);
  write(out);
  return out.flush() ? 0 : failToWrite(path);
}

int writePipeline(driver::Compiler &compiler, const std::string &path) {
  const std::optional<std::string> text = compiler.pipeline();
  if (!text)
    return fail("the program is scheduled already: no passes are to run [E025]");
  return writeText(path, [&](std::ostream &out) { out << *text << '\n'; });
}

int writeDot(const plan::Plan &plan, const std::string &path) {
  return writeText(path, [&](std::ostream &out) { exporter::writeDot(plan, out); });
}

/// The options with what is left to the cost model set, which `chosen` says; nothing after an
/// error.
std::optional<driver::CompileOptions> choose(const CompileCommand &command, std::string &chosen) {
  driver::CompileOptions options = command.options;
  // The first size decides where an algorithm has versions for several.
  if (!command.prediction.bytes.empty())
    options.bytes = command.prediction.bytes.front();
  driver::AutotuneOptions asked = command.autotune;
  // Before the passes nothing is chosen, so nothing has to be compiled for it.
  if (command.emit == Emit::Chunk || !driver::isAutotuningAsked(options, asked))
    return options;
  // The prediction goes by the same sizes that --bytes names.
  asked.bytes = command.prediction.bytes;
  std::optional<driver::AutotuneResult> result = driver::autotune(options, asked);
  if (!result)
    return std::nullopt;
  chosen = forTerminal(result->text());
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

/// A version that is compiled: what to write, where to.
struct CompiledVersion {
  std::unique_ptr<driver::Compiler> compiler;
  std::optional<plan::Plan> plan; // not of --emit=chunk, pipeline and inst
  std::string output;
  std::unique_ptr<plan::StagedPlanFile> file; // of --emit=plan, if the output is one
};

/// Compiles the version that the options name, and learns how many there are; nothing after an
/// error.
std::optional<CompiledVersion> compileVersion(const CompileCommand &command, size_t &count) {
  std::string chosen;
  std::optional<driver::CompileOptions> options = choose(command, chosen);
  // The cost model's choice first: it compiles by itself, several times.
  if (!options)
    return std::nullopt;
  CompiledVersion result{std::make_unique<driver::Compiler>(*options), {}, command.output, {}};
  driver::Compiler &compiler = *result.compiler;
  if (!compiler.load())
    return std::nullopt;
  // Without a size, an algorithm with versions for several ranges makes a plan for each of them.
  if (!options->bytes && compiler.version().count > 1) {
    count = compiler.version().count;
    if (result.output == "-") {
      fail("the algorithm has " + std::to_string(count) +
           " versions; choose one with --bytes, or write all of them with -o [E025]");
      return std::nullopt;
    }
    result.output = versionPath(result.output, compiler.version());
  }
  // How far to go depends on what is to be written; the rest would be wasted, and may even fail.
  if (command.emit == Emit::Chunk || command.emit == Emit::Pipeline)
    return result;
  if (!compiler.lower())
    return std::nullopt;
  if (command.emit == Emit::Inst)
    return result;
  // The plan is written to a draft while it is verified, on another thread: for large plans each
  // takes seconds. It is renamed only once it is proved.
  if (command.emit == Emit::Plan && result.output != "-") {
    result.file = std::make_unique<plan::StagedPlanFile>(result.output);
    result.plan = compiler.exportVerifiedPlan([&](const plan::Plan &p) { result.file->write(p); });
  } else {
    result.plan = compiler.exportVerifiedPlan();
  }
  if (!result.plan)
    return std::nullopt;
  // After the plan is known to be right, as the statistics are about it.
  if (command.stats) {
    std::cerr << forTerminal(compiler.verification().text()) << chosen;
    if (!printStats(*result.plan, compiler.topology(), command.prediction, std::cerr))
      return std::nullopt;
  }
  return result;
}

int writeVersion(const CompileCommand &command, const CompiledVersion &version) {
  const std::string &output = version.output;
  // A case for each kind: the compiler names one that is missing.
  switch (command.emit) {
  case Emit::Chunk:
  case Emit::Inst:
    return writeIR(version.compiler->module(), output);
  case Emit::Pipeline:
    return writePipeline(*version.compiler, output);
  case Emit::Plan:
    return version.file ? reportWritten(version.file->publish(*version.plan))
                        : writePlan(*version.plan, output);
  case Emit::Dot:
    return writeDot(*version.plan, output);
  case Emit::Trace:
    return writeTrace(*version.plan, version.compiler->topology(), command.prediction, output);
  case Emit::MscclXml:
    return writeMscclXml(*version.plan, output, interchange::msccl::Runtime::Msccl);
  }
  return 1;
}

/// Takes back what was written: all versions are there, or none.
void removeWritten(std::span<const CompiledVersion> versions) {
  for (const CompiledVersion &version : versions) {
    std::error_code failure;
    if (std::filesystem::is_regular_file(version.output, failure))
      std::filesystem::remove(version.output, failure);
  }
}

int checkVersion(const CompileCommand &command, size_t &count) {
  std::string chosen;
  std::optional<driver::CompileOptions> options = choose(command, chosen);
  if (!options)
    return 1;
  driver::Compiler compiler(*options);
  // As compile, without anything that is written.
  if (!compiler.load() || !compiler.lower() || !compiler.exportVerifiedPlan())
    return 1;
  if (!options->bytes)
    count = compiler.version().count;
  std::cout << forTerminal(compiler.verification().text()) << chosen;
  return 0;
}

} // namespace

int compile(const CompileCommand &command) {
  // Nothing is written before all versions are right.
  CompileCommand single = command;
  std::vector<CompiledVersion> versions;
  // `count` is known after the first version.
  size_t count = 1;
  for (size_t &version = single.options.version; version < count; ++version) {
    std::optional<CompiledVersion> compiled = compileVersion(single, count);
    if (!compiled)
      return 1;
    versions.push_back(std::move(*compiled));
  }
  // All or nothing: what was written is removed if a later one cannot be.
  for (size_t i = 0; i < versions.size(); ++i)
    if (writeVersion(command, versions[i]) != 0) {
      removeWritten(std::span(versions).first(i));
      return 1;
    }
  return 0;
}

int check(const CompileCommand &command) {
  CompileCommand single = command;
  size_t count = 1;
  for (size_t &version = single.options.version; version < count; ++version)
    if (checkVersion(single, count) != 0)
      return 1;
  return flushOutput();
}

int verify(const std::string &path) {
  plan::VerifyResult result;
  if (!readVerified(path, result))
    return 1;
  std::cout << forTerminal(result.text());
  return flushOutput();
}

int printLimits() {
  for (const plan::LimitInfo &limit : plan::kLimits)
    std::cout << std::setw(10) << plan::Limits().*limit.field << "  " << limit.text << "\n";
  return flushOutput();
}

} // namespace occl::tools
