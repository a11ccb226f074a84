// occlc: the compiler's command line.
#include "compiler/frontend/Frontend.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

#include <system_error>

namespace {

using namespace occl;

struct Options {
  std::string source;
  std::string output = "-";
  std::string emit = "chunk";
  frontend::FrontendOptions frontend;
};

void addSourceOptions(CLI::App &command, Options &options) {
  command.add_option("source", options.source, "the .coll file")->required();
  command.add_option("-D,--define", options.frontend.defines, "a parameter's value: name=value")
      ->allow_extra_args(false);
  command
      .add_option("-I,--import-path", options.frontend.importPaths,
                  "a folder in which to look for imports")
      ->allow_extra_args(false);
  command.add_option("--algorithm", options.frontend.algorithm,
                     "which algorithm of the file, if it has several");
  command.add_option("--max-ops", options.frontend.maxOps,
                     "reads, copies and reductions that a program may consist of");
}

mlir::OwningOpRef<mlir::ModuleOp> runFrontend(mlir::MLIRContext &context, const Options &options) {
  frontend::SourceManager sources;
  frontend::DiagnosticEngine diagnostics(sources);
  mlir::OwningOpRef<mlir::ModuleOp> module = frontend::compileFileToChunks(
      context, sources, options.source, options.frontend, diagnostics);
  llvm::errs() << diagnostics.render();
  return module;
}

int check(const Options &options) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  return runFrontend(context, options) ? 0 : 1;
}

int compile(const Options &options) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::OwningOpRef<mlir::ModuleOp> module = runFrontend(context, options);
  if (!module)
    return 1;
  std::error_code error;
  llvm::raw_fd_ostream out(options.output, error);
  if (error) {
    llvm::errs() << "error: cannot write '" << options.output << "': " << error.message() << "\n";
    return 1;
  }
  module->print(out);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Compiles collectives written in the .coll language.", "occlc");
  app.require_subcommand(1);
  Options options;
  CLI::App *checkCommand = app.add_subcommand("check", "say what is wrong with a program");
  addSourceOptions(*checkCommand, options);
  CLI::App *compileCommand = app.add_subcommand("compile", "compile a program");
  addSourceOptions(*compileCommand, options);
  compileCommand->add_option("-o,--output", options.output, "the file to write; - for stdout");
  compileCommand->add_option("--emit", options.emit, "what to write")
      ->check(CLI::IsMember({"chunk"}));
  CLI11_PARSE(app, argc, argv);
  return checkCommand->parsed() ? check(options) : compile(options);
}
