// occl-opt: runs the compiler's passes, one by one or as occlc does (--occl-default), on textual or
// bytecode IR. For tests and for people who write passes.
#include "compiler/driver/Pipeline.h"
#include "compiler/passes/Passes.h"
#include "tools/command_line/app.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<occl::chunk::ChunkDialect, occl::inst::InstDialect>();
  occl::passes::registerOcclPasses();
  occl::driver::registerPipeline();
  llvm::cl::SetVersionPrinter(
      [](llvm::raw_ostream &out) { out << "occl-opt " << occl::tools::version() << "\n"; });
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "OCCL's pass driver\n", registry));
}
