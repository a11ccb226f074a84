#include "compiler/dialect/inst/Inst.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <sys/resource.h>

namespace occl::inst {
namespace {

/// The most that the process has had, in KiB.
long peakMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// What verification takes goes with the number of instructions, not with what their transfers are
/// called.
TEST(InstVerify, LargeIdentifiersOfTransfersCostNothing) {
  mlir::MLIRContext context;
  context.loadDialect<InstDialect>();
  const long before = peakMemory();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      R"(inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 1, 1>,
             output_chunks = array<i32: 1, 1>, scratch_chunks = array<i32: 0, 0>,
             in_place_offsets = array<i32: 0, 0>} {
           inst.rank 0 {
             %0 = inst.send input[0] into transfer(67108862)
           }
           inst.rank 1 {
             %0 = inst.recv transfer(67108862) into output[0]
           }
         })",
      mlir::ParserConfig(&context));
  EXPECT_TRUE(module);
  EXPECT_LT(peakMemory() - before, 100 << 10);
}

} // namespace
} // namespace occl::inst
