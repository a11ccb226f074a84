// occl-opt: runs the compiler's passes one by one on textual or bytecode IR. For tests and for
// people who write passes.
#include "compiler/passes/Passes.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<occl::chunk::ChunkDialect, occl::inst::InstDialect>();
  occl::passes::registerOcclPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "OCCL's pass driver\n", registry));
}
